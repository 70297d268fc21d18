// Belief accuracy A_t over the horizon: one line a policy, named at its end, and the line of belief collapse.

import { apart, bottomAxis, leftAxis, plot, px, scale, ticks, WIDTH } from "./axes.js";
import { change, keyed, say, shape } from "./dom.js";
import { ink, mark } from "./marks.js";

const HEIGHT = 300;
const BOX = { left: 36, right: WIDTH - 104, top: 26, bottom: HEIGHT - 42 };
const LABEL_GAP = 12.5;

// Returns {root, update(view)}, as `paretoPlot`.
export function curvePlot() {
  const { root, axes, data } = plot(HEIGHT, "Accuracy over time");
  const rule = shape("line", { class: "ew-rule" });
  const ruleName = shape("text", { class: "ew-rule-name" });
  const lines = shape("g");
  data.append(shape("g", {}, rule, ruleName), lines);

  function update({ readings, vocabulary, horizon }) {
    const x = scale(0, horizon, BOX.left, BOX.right);
    const y = scale(0, 1, BOX.bottom, BOX.top);
    bottomAxis(axes, { x, values: ticks(0, horizon, stepFor(horizon)), ...BOX, title: "step t" });
    leftAxis(axes, { y, values: ticks(0, 1, 0.2), ...BOX, title: "mean accuracy A_t of episodes still running" });
    change(rule, { x1: BOX.left, x2: BOX.right, y1: px(y(vocabulary.collapse)), y2: px(y(vocabulary.collapse)) });
    say(ruleName, `collapse below ${vocabulary.collapse}`);
    change(ruleName, { x: BOX.left + 5, y: px(y(vocabulary.collapse)) + 13 });

    const names = [...readings.keys()];
    const drawn = keyed(lines, names, (name) => curve(vocabulary.policy(name)));
    const ends = names.map((name) => lastPoint(readings.get(name).curve));
    const heights = apart(ends.map(({ value }) => y(value)), LABEL_GAP, BOX.top, BOX.bottom);
    names.forEach((name, i) => {
      const [path, leader, place, text] = drawn[i].children;
      const [endX, endY] = [x(ends[i].step), y(ends[i].value)];
      change(path, { d: pathOf(readings.get(name).curve, x, y) });
      change(leader, { x1: px(endX), y1: px(endY), x2: BOX.right + 13, y2: px(heights[i]) });
      change(place, { transform: `translate(${px(endX)} ${px(endY)})` });
      change(text, { x: BOX.right + 15, y: px(heights[i] + 4) });
    });
  }

  return { root, update };
}

function curve(policy) {
  const line = shape("path", { class: policy.filled ? "ew-line" : "ew-line ew-dashed" });
  const leader = shape("line", { class: "ew-leader" });
  const name = shape("text", { class: "ew-label" }, policy.short);
  return shape("g", { class: "ew-ink", ...ink(policy) }, line, leader, shape("g", {}, mark(policy, 4)), name);
}

// Where no episode is left (the protocol stops at success), there is no mean, and the line ends.
function lastPoint(curve) {
  const step = curve.findLastIndex((value) => value !== null);
  return { step, value: curve[step] };
}

function pathOf(curve, x, y) {
  let pen = "M";
  let d = "";
  curve.forEach((value, step) => {
    if (value === null) pen = "M";
    else {
      d += `${pen}${px(x(step))} ${px(y(value))}`;
      pen = "L";
    }
  });
  return d;
}

export function stepFor(horizon) {
  return [1, 2, 5, 10, 20, 50, 100].find((step) => horizon / step <= 6.5) ?? horizon;
}
