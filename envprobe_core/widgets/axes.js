// The frame of a plot: scales, axes with ticks and units. A plot is drawn for a width of 360 CSS pixels.

import { change, element, freshId, keyed, say, sayWithSubscripts, shape } from "./dom.js";

export const WIDTH = 360;

// A linear scale from values to pixels.
export function scale(low, high, from, to) {
  const at = (value) => from + ((value - low) / (high - low)) * (to - from);
  at.low = low;
  at.high = high;
  return at;
}

// Pixels with one decimal, which is finer than a screen shows.
export function px(value) {
  return Math.round(value * 10) / 10;
}

// Ticks at the multiples of a step.
export function ticks(low, high, step) {
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, i) => Number(((first + i) * step).toFixed(6)));
}

// The ends of an interval [mean, low, high]; a single episode has none, and the mean stands for both.
export function ends([mean, low, high]) {
  return [low ?? mean, high ?? mean];
}

// An empty plot under a heading: a picture with a name, its axes and a group for the data.
export function plot(height, heading) {
  const id = freshId("ew-plot");
  const axes = { left: shape("g"), bottom: shape("g"), leftTitle: axisTitle(), bottomTitle: axisTitle() };
  const frame = shape("g", { class: "ew-frame" }, ...Object.values(axes));
  const data = shape("g");
  const attributes = { class: "ew-plot", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-labelledby": id };
  const caption = element("figcaption", { id, class: "ew-heading" }, heading);
  const root = element("figure", { class: "ew-figure" }, caption, shape("svg", attributes, frame, data));
  return { root, axes, data };
}

function axisTitle() {
  return shape("text", { class: "ew-axis-title" });
}

// Draw or update the axis at the bottom: lines across the plot, numbers, and what they mean.
export function bottomAxis(axes, { x, values, top, bottom, title, format = String }) {
  const marks = keyed(axes.bottom, values.map(String), () => shape("g", {}, shape("line"), shape("text")));
  values.forEach((value, i) => {
    const [line, text] = marks[i].children;
    const at = px(x(value));
    change(line, { x1: at, x2: at, y1: top, y2: bottom + 4 });
    change(text, { x: at, y: bottom + 16, "text-anchor": "middle" });
    say(text, format(value));
  });
  change(axes.bottomTitle, { x: px((x(x.low) + x(x.high)) / 2), y: bottom + 33, "text-anchor": "middle" });
  sayWithSubscripts(axes.bottomTitle, title);
}

// Set what the values along the left mean; it stands above them, so that it reads level.
export function leftTitle(axes, title) {
  change(axes.leftTitle, { x: 2, y: 12 });
  sayWithSubscripts(axes.leftTitle, title);
}

// Draw or update the axis at the left.
export function leftAxis(axes, { y, values, left, right, title, format = String }) {
  const marks = keyed(axes.left, values.map(String), () => shape("g", {}, shape("line"), shape("text")));
  values.forEach((value, i) => {
    const [line, text] = marks[i].children;
    const at = px(y(value));
    change(line, { x1: left - 4, x2: right, y1: at, y2: at });
    change(text, { x: left - 8, y: at + 4, "text-anchor": "end" });
    say(text, format(value));
  });
  leftTitle(axes, title);
}

// Move labels along one direction as little as possible, until none is nearer to another than `gap`.
export function apart(places, gap, low, high) {
  const order = places.map((_, i) => i).sort((a, b) => places[a] - places[b]);
  const moved = [];
  for (const i of order) moved.push({ i, at: Math.max(places[i], (moved.at(-1)?.at ?? low - gap) + gap) });
  let limit = high;
  for (const label of moved.toReversed()) {
    label.at = Math.min(label.at, limit);
    limit = label.at - gap;
  }
  const result = [];
  for (const { i, at } of moved) result[i] = at;
  return result;
}
