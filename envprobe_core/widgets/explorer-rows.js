// Two plots with one row a policy: when its probes fire, and how many of them were useful.

import { bottomAxis, ends, leftTitle, plot, px, scale, ticks, WIDTH } from "./axes.js";
import { change, keyed, shape } from "./dom.js";
import { stepFor } from "./explorer-curves.js";
import { ink, mark } from "./marks.js";

const HEIGHT = 300;
const BOX = { left: 96, right: WIDTH - 12, top: 26, bottom: HEIGHT - 42 };
const TALLEST_ROW = 58;

function rowsOf(names) {
  const height = Math.min(TALLEST_ROW, (BOX.bottom - BOX.top) / names.length);
  return { height, top: (i) => BOX.bottom - (names.length - i) * height };
}

// When the probes fire: bars, as high as the share of episodes that probe at a step. Returns {root, update}.
export function firesPlot() {
  const { root, axes, data } = plot(HEIGHT, "When the probes fire");

  function update({ readings, vocabulary, horizon }) {
    const x = scale(0, horizon, BOX.left, BOX.right);
    bottomAxis(axes, { x, values: ticks(0, horizon, stepFor(horizon)), ...BOX, title: "step t" });
    leftTitle(axes, "episodes that probe at step t (a full row: all)");
    const names = [...readings.keys()];
    const rows = rowsOf(names);
    const drawn = keyed(data, names, (name) => {
      const policy = vocabulary.policy(name);
      const base = shape("line", { class: "ew-base" });
      const bars = shape("path", { class: "ew-bars" });
      return shape("g", { class: "ew-ink", ...ink(policy) }, base, bars, label(policy));
    });
    names.forEach((name, i) => {
      const { fires, n } = readings.get(name);
      const bottom = rows.top(i) + rows.height - 2;
      const [base, bars, text] = drawn[i].children;
      change(base, { x1: BOX.left, x2: BOX.right, y1: px(bottom), y2: px(bottom) });
      change(bars, { d: barsOf(fires, n, x, bottom, rows.height - 5) });
      change(text, { x: BOX.left - 8, y: px(bottom - rows.height / 2 + 5) });
    });
  }

  return { root, update };
}

function barsOf(fires, n, x, bottom, height) {
  const width = px(Math.max(x(1) - x(0) - 1, 0.6));
  const bar = (count, step) =>
    count ? `M${px(x(step) + 0.5)} ${px(bottom)}v${px((-count / n) * height)}h${width}V${px(bottom)}Z` : "";
  return fires.map(bar).join("");
}

// Useful probes: the rate with its interval, and the share of probes of a field probed before. As above.
export function ratesPlot() {
  const { root, axes, data } = plot(HEIGHT, "Useful and repeated probes");

  function update({ readings, vocabulary }) {
    const x = scale(0, 1, BOX.left, BOX.right);
    bottomAxis(axes, { x, values: ticks(0, 1, 0.25), ...BOX, title: "share of probes" });
    leftTitle(axes, "useful (mark, 95% interval) and repeated (upright line)");
    const names = [...readings.keys()];
    const rows = rowsOf(names);
    const drawn = keyed(data, names, (name) => {
      const policy = vocabulary.policy(name);
      const parts = [shape("line", { class: "ew-repeated" }), shape("line", { class: "ew-interval" })];
      const none = shape("text", { class: "ew-none", x: BOX.left + 6 }, "fires no probe");
      return shape("g", { class: "ew-ink", ...ink(policy) }, ...parts, shape("g", {}, mark(policy)), label(policy), none);
    });
    names.forEach((name, i) => {
      const { useful, useful_rate: rate, repeated } = readings.get(name);
      const middle = px(rows.top(i) + rows.height / 2);
      const [again, across, place, text, none] = drawn[i].children;
      const shown = { display: rate ? null : "none" };
      change(text, { x: BOX.left - 8, y: middle + 4 });
      change(none, { y: middle + 4, display: rate ? "none" : null });
      [again, across, place].forEach((part) => change(part, shown));
      if (!rate) return;
      const at = px(x(repeated / useful[1]));
      const half = Math.min(9, rows.height / 2 - 1);
      change(again, { x1: at, x2: at, y1: middle - half, y2: middle + half });
      const [low, high] = ends(rate);
      change(across, { x1: px(x(low)), x2: px(x(high)), y1: middle, y2: middle });
      change(place, { transform: `translate(${px(x(rate[0]))} ${middle})` });
    });
  }

  return { root, update };
}

function label(policy) {
  return shape("text", { class: "ew-label", "text-anchor": "end" }, policy.short);
}
