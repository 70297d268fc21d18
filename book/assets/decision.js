// One decision, told by scrolling: the picture of the step that is read stays in sight.
//
// A classic script, for pages with a `.decision` (envprobe_book/pages/decision.py). Without it each step has its own
// picture below its text, and so has print. The list of steps is links, which need no script either.
(() => {
  "use strict";

  function attach(root) {
    const steps = [...root.querySelectorAll(".decision-step")], ways = root.querySelector(".decision-ways");
    const screen = document.createElement("div"), stage = document.createElement("div");
    screen.className = "decision-screen";
    screen.setAttribute("aria-hidden", "true"); // each step has the same picture for those who hear the page
    stage.className = "decision-stage";
    const pictures = steps.map((step) => step.querySelector("svg").cloneNode(true));
    screen.append(...pictures);
    stage.append(ways, screen);
    root.prepend(stage);
    root.classList.add("decision-on");
    const links = [...ways.querySelectorAll("a")];
    let now = -1;

    links.forEach((link, at) => link.addEventListener("click", (event) => {
      event.preventDefault(); // the focus stays on the list, so that the tab key leads to the next step
      history.replaceState(null, "", link.hash);
      steps[at].scrollIntoView();
    }));

    function show(place) {
      if (place === now) return;
      now = place;
      pictures.forEach((picture, at) => picture.classList.toggle("decision-shown", at === place));
      steps.forEach((step, at) => step.classList.toggle("decision-here", at === place));
      links.forEach((link, at) => (at === place ? link.setAttribute("aria-current", "step") : link.removeAttribute("aria-current")));
    }

    // The step whose text is nearest to where one reads: below the stage where that is above, else mid-window.
    function follow() {
      const below = stage.getBoundingClientRect(), isAbove = getComputedStyle(root).gridTemplateColumns.split(" ").length < 2;
      root.style.setProperty("--decision-top", `${below.height + parseFloat(getComputedStyle(stage).top)}px`);
      const line = isAbove ? below.bottom + (innerHeight - below.bottom) / 3 : innerHeight / 2;
      const texts = steps.map((step) => step.querySelector("p").getBoundingClientRect());
      const isEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 1; // nothing more comes up
      show(isEnd ? steps.length - 1 : Math.max(0, texts.findLastIndex(({ top }) => top <= line)));
    }

    let asked = 0;
    const soon = () => (asked ||= requestAnimationFrame(() => {
      asked = 0;
      follow();
    }));
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    follow();
  }

  document.querySelectorAll(".decision").forEach(attach);
})();
