// Accuracy against task success: one mark a policy with its intervals, and the paper's own points.

import { bottomAxis, ends, leftAxis, plot, px, scale, ticks, WIDTH } from "./axes.js";
import { change, keyed, shape } from "./dom.js";
import { ink, mark } from "./marks.js";

const HEIGHT = 300;
const BOX = { left: 36, right: WIDTH - 12, top: 26, bottom: HEIGHT - 42 };
const LETTER = 6; // pixels, on average
const LIFTS = [10, -10, 22, -22, 34, -34, 46, -46, 58, -58];
const PLACES = LIFTS.flatMap((lift) => [1, -1].map((side) => [side, lift]));

// Returns {root, update(view)}; a view holds `readings` and `others` (policy -> reading), `printed` (the
// paper's points), `vocabulary`, `setting`.
export function paretoPlot() {
  const { root, axes, data } = plot(HEIGHT, "Accuracy against success");
  const layers = Object.fromEntries(["others", "printed", "points", "labels"].map((name) => [name, shape("g")]));
  data.append(...Object.values(layers));

  function update(view) {
    const { x, y } = scales(view);
    bottomAxis(axes, { x, values: tickValues(x), ...BOX, title: "task success (share of episodes)" });
    leftAxis(axes, { y, values: tickValues(y), ...BOX, title: "accuracy A_H" });
    drawOthers(layers.others, view, x, y);
    drawPrinted(layers.printed, view, x, y);
    drawPoints(layers.points, view, x, y);
    drawLabels(layers.labels, view, x, y);
  }

  return { root, update };
}

// The whole range of a share, or a close-up of all that is drawn; its ends are multiples of a tenth.
function scales({ readings, others, printed, setting }) {
  const spans = (measure) => {
    const all = [...readings.values(), ...others.values()].flatMap((reading) => reading[measure]);
    return [...all, ...printed.map((point) => point[measure])].filter((value) => value !== null);
  };
  const [xs, ys] = [spans("success"), spans("accuracy")];
  const range = (values) =>
    setting.close
      ? [Math.floor(Math.min(...values) * 10 + 1e-9) / 10, Math.ceil(Math.max(...values) * 10 - 1e-9) / 10]
      : [0, 1];
  return { x: scale(...range(xs), BOX.left, BOX.right), y: scale(...range(ys), BOX.bottom, BOX.top) };
}

function tickValues({ low, high }) {
  return ticks(low, high, high - low > 0.55 ? 0.2 : high - low > 0.25 ? 0.1 : 0.05);
}

function drawOthers(layer, { others, vocabulary }, x, y) {
  const names = [...others.keys()].filter((name) => others.get(name).success);
  const marks = keyed(layer, names, (name) => {
    const policy = vocabulary.policy(name);
    return shape("g", { class: "ew-other" }, shape("title", {}, policy.title), mark(policy, 3.2));
  });
  names.forEach((name, i) => moveTo(marks[i], others.get(name), x, y));
}

// A cross in the policy's colour; where the paper prints no success, a stroke at the accuracy's height.
function drawPrinted(layer, { printed, vocabulary }, x, y) {
  const keys = printed.map((point) => `${point.world} ${point.policy}`);
  const marks = keyed(layer, keys, (_, i) => {
    const { policy, source, success } = printed[i];
    const d = success === null ? "M-9 0H9" : "M-4.5-4.5L4.5 4.5M-4.5 4.5L4.5-4.5";
    const title = `The paper's ${vocabulary.policy(policy).title} (${source})`;
    const outline = [shape("title", {}, title), shape("path", { d })];
    const name = shape("text", { x: success === null ? -13 : 8, y: 4 }, "paper");
    change(name, { "text-anchor": success === null ? "end" : "start" });
    return shape("g", { class: "ew-ink ew-printed", ...ink(vocabulary.policy(policy)) }, ...outline, name);
  });
  printed.forEach(({ success, accuracy }, i) => {
    const atX = success === null ? BOX.right - 10 : x(success);
    change(marks[i], { transform: `translate(${px(atX)} ${px(y(accuracy))})` });
  });
}

function drawPoints(layer, { readings, vocabulary }, x, y) {
  const names = [...readings.keys()];
  const points = keyed(layer, names, (name) => {
    const policy = vocabulary.policy(name);
    const lines = [shape("line", { class: "ew-interval" }), shape("line", { class: "ew-interval" })];
    return shape("g", { class: "ew-ink", ...ink(policy) }, ...lines, shape("g", {}, mark(policy)));
  });
  names.forEach((name, i) => {
    const { success, accuracy } = readings.get(name);
    const [across, upright, place] = points[i].children;
    const [atX, atY] = [px(x(success[0])), px(y(accuracy[0]))];
    const [left, right] = ends(success);
    const [low, high] = ends(accuracy);
    change(across, { x1: px(x(left)), x2: px(x(right)), y1: atY, y2: atY });
    change(upright, { x1: atX, x2: atX, y1: px(y(low)), y2: px(y(high)) });
    change(place, { transform: `translate(${atX} ${atY})` });
  });
}

// Each name takes the first free place near its mark: beside it, then higher and lower, with a line back.
function drawLabels(layer, { readings, vocabulary }, x, y) {
  const names = [...readings.keys()];
  const labels = keyed(layer, names, (name) => {
    const policy = vocabulary.policy(name);
    const attributes = { class: "ew-ink ew-label", ...ink(policy) };
    return shape("g", attributes, shape("line", { class: "ew-leader" }), shape("text", {}, policy.short));
  });
  const marks = names.map((name) => [x(readings.get(name).success[0]), y(readings.get(name).accuracy[0])]);
  const taken = marks.map(([atX, atY]) => ({ left: atX - 6, right: atX + 6, top: atY - 6, bottom: atY + 6 }));
  names.forEach((name, i) => {
    const [atX, atY] = marks[i];
    const width = LETTER * vocabulary.policy(name).short.length;
    const all = PLACES.map(([side, lift]) => labelBox(atX, atY, width, side, lift));
    const box = all.find((one) => isInside(one) && !taken.some((other) => overlap(one, other))) ?? all[0];
    taken.push(box);
    const [line, text] = labels[i].children;
    const [from, toward] = box.side > 0 ? [box.left, "start"] : [box.right, "end"];
    change(text, { x: px(from), y: px(box.bottom - 3), "text-anchor": toward });
    const middle = (box.top + box.bottom) / 2;
    change(line, { x1: px(atX + box.side * 4), y1: px(atY), x2: px(from - box.side * 2), y2: px(middle) });
  });
}

function labelBox(atX, atY, width, side, lift) {
  const near = atX + side * 11;
  const [left, right] = side > 0 ? [near, near + width] : [near - width, near];
  return { side, left, right, top: atY - lift - 6, bottom: atY - lift + 6 };
}

const isInside = (box) =>
  box.left >= BOX.left && box.right <= WIDTH && box.top >= BOX.top - 8 && box.bottom <= BOX.bottom;

const overlap = (one, other) =>
  one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

function moveTo(node, reading, x, y) {
  change(node, { transform: `translate(${px(x(reading.success[0]))} ${px(y(reading.accuracy[0]))})` });
}
