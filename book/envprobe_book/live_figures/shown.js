// Shown: a live figure as it is seen, as a file of its own.
//
// A classic script, after the others. It makes
//
//   EnvProbe.shown(root)   the text of an SVG of what is seen of an element: its pictures with the colours that they
//                          have here, and its words where they stand
//
// Beside the file of a figure as printed, a page offers the figure as shown. It needs no server.
(() => {
  "use strict";

  const { dom: { element, shape } } = globalThis.EnvProbe;
  const PAINT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "fill-opacity", "stroke-opacity", "opacity", "font-size", "font-weight", "font-style", "text-anchor", "visibility", "vector-effect", "paint-order", "stroke-linecap", "stroke-linejoin"];
  const UNSEEN = ".lp-choice, .lp-numbers, .lp-tip, .live-heard, select, button, script, style, svg";
  const BASELINE = 0.24; // of a letter's size, from its foot

  function painted(own, copy) {
    const style = getComputedStyle(own);
    copy.removeAttribute("class");
    copy.removeAttribute("style");
    for (const name of PAINT) copy.setAttribute(name, style.getPropertyValue(name));
    [...own.children].forEach((child, at) => painted(child, copy.children[at]));
  }

  function pictureOf(svg, frame) {
    const copy = /** @type {SVGElement} */ (svg.cloneNode(true)), at = svg.getBoundingClientRect();
    painted(svg, copy);
    const place = { x: at.left - frame.left, y: at.top - frame.top, width: at.width, height: at.height, overflow: "visible" };
    for (const [name, value] of Object.entries(place)) copy.setAttribute(name, String(value));
    return copy;
  }

  // The lines of a text as they are broken here.
  function linesOf(node, frame) {
    const style = getComputedStyle(node.parentElement), size = parseFloat(style.fontSize), range = document.createRange(), lines = new Map();
    for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const at = range.getBoundingClientRect(), key = Math.round(at.bottom);
      if (!lines.has(key)) lines.set(key, { x: at.left - frame.left, y: at.bottom - frame.top - BASELINE * size, words: [] });
      lines.get(key).words.push(word);
    }
    const paint = { fill: style.color, "font-size": style.fontSize, "font-weight": style.fontWeight, "font-style": style.fontStyle };
    return [...lines.values()].map(({ x, y, words }) => shape("text", { x: x.toFixed(1), y: y.toFixed(1), ...paint }, words.join(" ")));
  }

  function groundOf(root) {
    for (let node = root; node; node = node.parentElement) {
      const { backgroundColor } = getComputedStyle(node);
      if (!/^(transparent|rgba\(.*, 0\))$/.test(backgroundColor)) return backgroundColor;
    }
    return "white";
  }

  function shown(root) {
    const frame = root.getBoundingClientRect(), [width, height] = [Math.ceil(frame.width), Math.ceil(frame.height)];
    const whole = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif" },
      shape("rect", { width, height, fill: groundOf(root) }));
    for (const svg of root.querySelectorAll("svg")) if (svg.checkVisibility()) whole.append(pictureOf(svg, frame));
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      const { parentElement } = node;
      if (!parentElement.closest(UNSEEN) && parentElement.checkVisibility({ visibilityProperty: true })) whole.append(...linesOf(node, frame));
    }
    return new XMLSerializer().serializeToString(whole);
  }

  function offer(line) {
    const root = line.previousElementSibling?.querySelector(".lp"), link = line.querySelector("a");
    if (!root || !link) return;
    const button = element("button", { type: "button", class: "live-take" }, "as shown");
    button.addEventListener("click", () => {
      const address = URL.createObjectURL(new Blob([shown(root)], { type: "image/svg+xml" }));
      element("a", { href: address, download: link.textContent.replace(/\.svg$/, "-shown.svg") }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    });
    link.after(" as printed, or ", button);
  }

  globalThis.EnvProbe.shown = shown;
  document.querySelectorAll(".take-along").forEach(offer);
})();
