// ToolDAGWorld drawn: one line a tool, arcs from each prerequisite, and its three fields as lights.
import { shape } from "./dom.js";
import { standing } from "./player-data.js";
import { badge, flash, lens } from "./player-marks.js";

const TOOL_LINE = 27, TOOL_HEAD = 24, TOOL_COLUMN = 104, TOOL_LIGHTS = [172, 236, 300];

export function drawTools(scene, moment) {
  const height = TOOL_HEAD + TOOL_LINE * scene.tools.length + 4;
  const y = (tool) => TOOL_HEAD + TOOL_LINE * (tool + 0.5);
  const parts = scene.heads.map((head, place) =>
    shape("text", { x: TOOL_LIGHTS[place], y: 13, class: "player-head" }, head));
  if (moment.aim) {
    parts.push(shape("rect", {
      x: 1, y: y(moment.aim[1]) - TOOL_LINE / 2 + 1, width: 338, height: TOOL_LINE - 2, rx: 5,
      class: moment.probed < 0 ? "player-aim" : "player-aim player-put-off",
    }));
  }
  scene.tools.forEach((tool, number) => {
    for (const before of tool.needs) parts.push(arc(y(before), y(number)));
  });
  scene.tools.forEach((tool, number) => parts.push(...toolLine(scene, moment, tool, number, y(number))));
  return { height, parts };
}

// An arc on the left, from a prerequisite down to the tool that needs it.
function arc(from, to) {
  const bow = Math.min(84, 14 + 0.32 * (to - from));
  const x = TOOL_COLUMN - 10;
  return shape("path", {
    d: `M${x} ${from + 3}C${x - bow} ${from + 6} ${x - bow} ${to - 6} ${x - 1} ${to - 3}`,
    class: "player-arc",
  });
}

function toolLine(scene, moment, tool, number, y) {
  const { run, t } = moment;
  const target = number === scene.target;
  const parts = [
    shape("circle", {
      cx: TOOL_COLUMN, cy: y, r: 10,
      class: `player-node${target ? " player-target" : ""}${tool.needed ? "" : " player-idle"}`,
    }),
    shape("text", { x: TOOL_COLUMN, y: y + 3.8, class: "player-number" }, String(number)),
  ];
  if (target) parts.push(shape("circle", { cx: TOOL_COLUMN, cy: y, r: 12.6, class: "player-target" }));
  if (moment.aim?.[1] === number) {
    parts.push(shape("path", { d: `M${TOOL_COLUMN + 16} ${y - 5}l9 5l-9 5z`, class: "player-arrow" }));
  }
  tool.parts.forEach((field, place) => {
    const x = TOOL_LIGHTS[place];
    const on = run.gold[t][field] === 1;
    parts.push(
      shape("circle", { cx: x, cy: y, r: 7, class: on ? "player-light player-on" : "player-light" }),
      ...(on ? [shape("path", { d: `M${x - 3.2} ${y}l2.4 2.6l4.2 -5`, class: "player-tick" })] : []),
      ...badge(standing(run, t, field), x + 12.5, y - 3),
    );
    if (moment.moved.includes(field)) parts.push(flash(x - 14, y));
    if (moment.probed === field) parts.push(...lens(x, y, 11));
  });
  return parts;
}
