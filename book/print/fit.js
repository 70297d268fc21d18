// What overflows its page shrinks until it fits; so do tables and formulas wider than the paper.
const fit = () => {
  for (const page of document.querySelectorAll(".page")) {
    const content = page.firstElementChild;
    for (let size = 1; page.scrollHeight > page.clientHeight && size > 0.5; size -= 0.01)
      content.style.zoom = size;
  }
  for (const wide of document.querySelectorAll("table, mjx-container[display] > mjx-math")) {
    const room = wide.parentElement.clientWidth;
    if (room && wide.scrollWidth > room) wide.style.zoom = room / wide.scrollWidth;
  }
};
window.addEventListener("load", () => MathJax.startup.promise.then(fit));
