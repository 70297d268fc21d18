// Boxes that scroll sideways (wide tables, code, formulas) can be reached and scrolled by keyboard: those that
// are wider than their place take the focus and have a name; those that fit do not stop the tab key.
(() => {
  const BOXES = ".bd-article :is(div, pre, figure, mjx-container)";

  function scrolls(box) {
    return box.scrollWidth > box.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(box).overflowX);
  }

  function nameOf(box) {
    const caption = box.querySelector("caption")?.textContent.trim();
    if (caption) return `Table: ${caption}`;
    if (box.matches("pre") || box.querySelector("pre")) return "Code";
    return box.querySelector("table") ? "Table" : box.querySelector("mjx-container") ? "Formula" : "Figure";
  }

  function mark(box) {
    if (scrolls(box)) {
      if (box.hasAttribute("aria-label") && !box.dataset.scrolls) return; // it has a name of its own
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", `${nameOf(box)} (scrolls sideways)`);
      box.dataset.scrolls = "yes";
    } else if (box.dataset.scrolls) {
      for (const name of ["tabindex", "role", "aria-label", "data-scrolls"]) box.removeAttribute(name);
    }
  }

  function markAll() {
    document.querySelectorAll(BOXES).forEach(mark);
  }

  let waiting = 0;
  function soon() {
    clearTimeout(waiting);
    waiting = setTimeout(markAll, 100);
  }

  function start() {
    markAll();
    window.addEventListener("resize", soon);
    document.addEventListener("toggle", soon, true); // a folded cell or solution is opened
    window.MathJax?.startup?.promise?.then(soon);
  }

  if (document.readyState === "complete") start();
  else window.addEventListener("load", start);
})();
