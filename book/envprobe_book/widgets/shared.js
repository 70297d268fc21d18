// Small tools for building and updating a document. Text is always set as text, never as markup.
// The player has them in its module, and live figures as `EnvProbe.dom` (live_figures/scripts.py).

const SVG = "http://www.w3.org/2000/svg";

// A new HTML element: attributes by name, then children (elements or texts).
function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

// A new SVG element, likewise.
function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  change(node, attributes);
  node.append(...children);
  return node;
}

// Set attributes, but only those that differ: a slider's tick then touches little. `null` removes one.
function change(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }
}

// Set a node's text, if it differs.
function say(node, text) {
  if (node.textContent !== String(text)) node.textContent = text;
}

let names = 0;

// An id that nothing else in the document has.
function freshId(stem) {
  names += 1;
  return `${stem}-${names}`;
}

// The name that a name or a title stands for, in upper or lower case; undefined where it stands for none.
// `titles` has of each name those that pages print, as Python's `naming` takes them.
function nameOf(text, titles) {
  const folded = (one) => one.replace(/\s+/g, " ").replace(/[\u2011\u2212]/g, "-").trim().toLowerCase();
  if (Object.hasOwn(titles, text)) return text;
  return Object.keys(titles).find((name) => [name, ...titles[name]].some((one) => folded(one) === folded(text)));
}

// JupyterLab takes arrow keys for itself unless the control says otherwise.
const KEEPS_KEYS = { "data-lm-suppress-shortcuts": "true" };

// A line through values at their steps: where a value is null, there is none, and the line ends.
function pathOf(values, x, y) {
  const pen = (step) => (step > 0 && values[step - 1] !== null ? "L" : "M");
  return values.map((value, step) => (value === null ? "" : `${pen(step)}${x(step)} ${y(value)}`)).join("");
}

// How a policy is drawn: one mark and one colour, the same as in the book's other figures.

const star = (points, inner) =>
  Array.from({ length: 2 * points }, (_, i) => {
    const angle = (Math.PI * i) / points - Math.PI / 2;
    const radius = i % 2 ? inner : 1.25;
    return `${(radius * Math.cos(angle)).toFixed(3)} ${(radius * Math.sin(angle)).toFixed(3)}`;
  }).join("L");

const PLUS = "M-.35-1H.35V-.35H1V.35H.35V1H-.35V.35H-1V-.35H-.35Z";

// Outlines of Matplotlib's markers, one unit in radius.
const OUTLINES = {
  o: "M1 0A1 1 0 1 1-1 0A1 1 0 1 1 1 0Z",
  s: "M-.88-.88H.88V.88H-.88Z",
  D: "M0-1.15L1.15 0L0 1.15L-1.15 0Z",
  d: "M0-1.25L.75 0L0 1.25L-.75 0Z",
  v: "M-1.05-.8H1.05L0 1.1Z",
  "^": "M-1.05 .8H1.05L0-1.1Z",
  "<": "M.8-1.05V1.05L-1.1 0Z",
  ">": "M-.8-1.05V1.05L1.1 0Z",
  p: "M0-1.05L1-.32L.62.85H-.62L-1-.32Z",
  P: PLUS,
  "*": `M${star(5, 0.5)}Z`,
  X: "M-1-.5L-.5-1L0-.5L.5-1L1-.5L.5 0L1 .5L.5 1L0 .5L-.5 1L-1 .5L-.5 0Z",
};

// A policy's mark at the origin, to be moved by `transform`.
function mark(policy, radius = 5) {
  return shape("path", {
    class: policy.filled ? "ew-mark" : "ew-mark ew-hollow",
    d: OUTLINES[policy.marker] ?? OUTLINES.o,
    transform: `scale(${radius})`,
    "vector-effect": "non-scaling-stroke",
  });
}

// What gives an element the policy's colour, as `currentColor`, in light and in dark mode.
function ink(policy) {
  return { style: `--light: ${policy.colour}; --dark: ${policy.dark}` };
}

// The mark as a small picture beside a name.
function swatch(policy) {
  const picture = shape("svg", { viewBox: "-8 -8 16 16", width: 16, height: 16, "aria-hidden": "true" }, mark(policy));
  return element("span", { class: "ew-ink ew-swatch", ...ink(policy) }, picture);
}

// Bring a widget into view once it stands in the page and the formulas above it have their size.
async function reveal(root) {
  if (document.readyState !== "complete") await new Promise((go) => addEventListener("load", go, { once: true }));
  await window.MathJax?.startup?.promise;
  setTimeout(() => root.scrollIntoView({ block: "start" }));
}

const LINK_DELAY = 250; // milliseconds; browsers refuse to rewrite an address many times a second
