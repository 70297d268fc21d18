// The scores of the best fields as stacked bars with the gate's threshold, and accuracy so far as a line.
import { element, shape } from "./dom.js";
import { TERMS, rho, standing } from "./player-data.js";

const LARGEST = 4; // each of the four terms lies in 0..1

export function scoreRows(scene, run, t) {
  return run.top[t].map((field) => {
    const probed = run.probe[t] === field;
    const name = element("span", { class: "player-score-name" }, scene.fields[field]);
    if (probed) name.append(element("strong", { class: "player-asked" }, " asked"));
    const state = standing(run, t, field);
    if (state !== "right") name.append(element("span", { class: `player-word-${state}` }, ` ${state}`));
    return element(
      "li",
      { class: probed ? "player-score player-score-asked" : "player-score" },
      name,
      scoreBar(run, t, field),
      element("span", { class: "player-score-sum" }, rho(run, t, field).toFixed(2)),
    );
  });
}

function scoreBar(run, t, field) {
  const bar = element("span", { class: "player-bar", "aria-hidden": "true" });
  for (const term of TERMS) {
    const value = run[term][t][field];
    if (!value) continue;
    const leftOut = !run.terms.includes(term);
    if (leftOut) continue;
    const piece = element("span", { class: `player-term player-term-${term}` }, value > 0.2 ? term : "");
    piece.style.width = `${(100 * value) / LARGEST}%`;
    bar.append(piece);
  }
  if (run.threshold !== null && !run.own_score) {
    const gate = element("span", { class: "player-gate-line" });
    gate.style.left = `${(100 * Math.min(run.threshold, LARGEST)) / LARGEST}%`;
    bar.append(gate);
  }
  return bar;
}

const CURVE = { width: 340, height: 92, left: 30, right: 8, top: 8, bottom: 22 };

// A_t up to now, with the line of collapse; `last` is the longer run's last step, so that axes agree.
export function accuracyLine(run, t, last, collapse) {
  const { width, height, left, right, top, bottom } = CURVE;
  const x = (time) => left + ((width - left - right) * time) / Math.max(1, last);
  const y = (share) => height - bottom - (height - bottom - top) * share;
  const parts = [];
  for (const share of [0, 1]) {
    parts.push(
      shape("path", { d: `M${left} ${y(share)}H${width - right}`, class: "player-axis" }),
      shape("text", { x: left - 5, y: y(share) + 3.5, class: "player-note player-end" }, String(share)),
    );
  }
  parts.push(
    shape("path", { d: `M${left} ${y(collapse)}H${width - right}`, class: "player-collapse" }),
    shape("text", { x: left - 5, y: y(collapse) + 3.5, class: "player-note player-end" }, String(collapse)),
  );
  for (const time of [0, Math.round(last / 2), last]) {
    parts.push(
      shape("text", { x: x(time), y: height - 3, class: "player-note player-middle" }, String(time)),
    );
  }
  const probes = run.probe.slice(0, t).flatMap((field, time) => (field >= 0 ? [time] : []));
  for (const time of probes) {
    parts.push(shape("path", { d: `M${x(time)} ${height - bottom + 1}l2.6 5h-5.2z`, class: "player-probe-tick" }));
  }
  if (run.track) parts.push(shape("path", { d: path(run.track, t, x, y), class: "player-track" }));
  parts.push(
    shape("path", { d: path(run.accuracy, t, x, y), class: "player-curve" }),
    shape("circle", { cx: x(t), cy: y(run.accuracy[t]), r: 3.6, class: "player-now" }),
  );
  return parts;
}

export const CURVE_BOX = `0 0 ${CURVE.width} ${CURVE.height}`;

function path(values, t, x, y) {
  let pen = "M";
  return values
    .slice(0, t + 1)
    .map((value, time) => {
      if (value === null) return "";
      const point = `${pen}${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = "L";
      return point;
    })
    .join("");
}
