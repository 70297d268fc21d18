// A reader who has guessed is told; what was guessed is kept, so that it stands before the answer is seen.
//
// A classic script, for pages of the book; in JupyterLab `envprobe_book.pages.guess` runs the same on the same form.
(() => {
  "use strict";

  function guessing(form) {
    const answer = form.querySelector("details");
    const inputs = [...form.querySelectorAll("input")];
    const key = inputs[0].name;
    const said = document.createElement("p");
    said.setAttribute("role", "status");
    said.tabIndex = -1;
    form.querySelector("fieldset").append(said);
    answer.hidden = true;

    function settle(place) {
      inputs.forEach((input, i) => {
        input.checked = i === place;
        input.disabled = true;
        input.parentElement.classList.toggle("guess-right", String(i) === form.dataset.right);
      });
      if (form.dataset.right) said.textContent = String(place) === form.dataset.right ? "Right." : "Not so.";
      answer.hidden = false;
      answer.open = true;
    }

    form.addEventListener("change", (event) => {
      const place = inputs.indexOf(event.target);
      try { localStorage.setItem(key, String(place)); } catch { /* a browser that keeps nothing */ }
      settle(place);
      said.focus({ preventScroll: true }); // what had the focus can no longer be chosen
    });
    form.addEventListener("keydown", (event) => { // arrows look at the choices, the space bar guesses
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key], place = inputs.indexOf(event.target);
      if (step === undefined || place < 0) return;
      inputs[(place + step + inputs.length) % inputs.length].focus();
      event.preventDefault();
    });
    let kept = null;
    try { kept = localStorage.getItem(key); } catch { /* as above */ }
    if (inputs[kept]) settle(Number(kept));
  }

  globalThis.EnvProbe = Object.assign(globalThis.EnvProbe ?? {}, { guessing });
  document.querySelectorAll(".bd-article form.guess").forEach(guessing);
})();
