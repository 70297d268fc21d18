// How a policy is drawn: one mark and one colour, the same as in the book's other figures.

import { element, shape } from "./dom.js";

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
  P: PLUS,
  "*": `M${star(5, 0.5)}Z`,
  X: "M-1-.5L-.5-1L0-.5L.5-1L1-.5L.5 0L1 .5L.5 1L0 .5L-.5 1L-1 .5L-.5 0Z",
};

// A policy's mark at the origin, to be moved by `transform`.
export function mark(policy, radius = 5) {
  return shape("path", {
    class: policy.filled ? "ew-mark" : "ew-mark ew-hollow",
    d: OUTLINES[policy.marker] ?? OUTLINES.o,
    transform: `scale(${radius})`,
    "vector-effect": "non-scaling-stroke",
  });
}

// What gives an element the policy's colour, as `currentColor`, in light and in dark mode.
export function ink(policy) {
  return { style: `--light: ${policy.colour}; --dark: ${policy.dark}` };
}

// The mark as a small picture beside a name.
export function swatch(policy) {
  const picture = shape("svg", { viewBox: "-8 -8 16 16", width: 16, height: 16, "aria-hidden": "true" }, mark(policy));
  return element("span", { class: "ew-ink ew-swatch", ...ink(policy) }, picture);
}
