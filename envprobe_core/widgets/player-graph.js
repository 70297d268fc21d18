// GraphNavWorld drawn: nodes in columns by distance from the start, edges with their locks, keys, the agent.
import { shape } from "./dom.js";
import { standing } from "./player-data.js";
import { badge, flash, lens, padlock, person, token, tray } from "./player-marks.js";
import { inHand } from "./player-rooms.js";

const MAP_WIDTH = 340, MAP_SIDE = 24, MAP_RISE = 62, MAP_TOP = 34;

export function drawGraph(scene, moment) {
  const xs = scene.spots.map(([x]) => x), ys = scene.spots.map(([, y]) => y);
  const wide = (MAP_WIDTH - 2 * MAP_SIDE) / Math.max(1, Math.max(...xs) - Math.min(...xs));
  const highest = Math.max(...ys);
  const spots = scene.spots.map(([x, y]) => [MAP_SIDE + wide * x, MAP_TOP + MAP_RISE * (highest - y)]);
  const bottom = MAP_TOP + MAP_RISE * (highest - Math.min(...ys)) + 36;
  const parts = [];
  for (const edge of scene.edges) parts.push(...drawEdge(moment, edge, spots));
  spots.forEach((spot, node) => parts.push(...drawNode(scene, moment, node, spot)));
  parts.push(...drawAgent(moment, spots), ...drawKeys(scene, moment, spots));
  parts.push(...tray(inHand(scene, moment), bottom + 16, MAP_WIDTH));
  return { height: bottom + 32, parts };
}

function drawEdge(moment, edge, spots) {
  const { run, t } = moment;
  const [[x0, y0], [x1, y1]] = edge.ends.map((end) => spots[end]);
  // an edge within a column bows out, so that it does not run through the nodes between
  const far = Math.abs(y1 - y0);
  const bow = x0 === x1 && far > MAP_RISE + 1 ? -0.2 * far : 0;
  const [mx, my] = [(x0 + x1) / 2 + bow, (y0 + y1) / 2];
  const [x, y] = [mx - bow / 2, my];
  const locked = run.gold[t][edge.field] === 1;
  const asked = moment.probed === edge.field;
  const kind = locked ? "player-edge player-shut" : "player-edge";
  const parts = [shape("path", { d: `M${x0} ${y0}Q${mx} ${my} ${x1} ${y1}`, class: kind })];
  if (edge.key >= 0) {
    parts.push(shape("circle", { cx: x, cy: y + 1, r: 9.5, class: "player-ground" }));
    parts.push(...padlock(x, y - 0.5, locked));
    parts.push(shape("text", { x: x + 6, y: y + 15, class: "player-key-name" }, `k${edge.key}`));
  }
  parts.push(...badge(standing(run, t, edge.field), x + (edge.key >= 0 ? 9 : 0), y - (edge.key >= 0 ? 7 : 0)));
  if (moment.moved.includes(edge.field)) parts.push(flash(x - 12, y));
  if (asked) parts.push(...lens(x, y, 13));
  return parts;
}

function drawNode(scene, moment, node, [x, y]) {
  const target = node === scene.target;
  const parts = [];
  if (moment.aim?.[0] === "node" && moment.aim[1] === node) {
    parts.push(shape("circle", {
      cx: x, cy: y, r: 18, class: moment.probed < 0 ? "player-aim" : "player-aim player-put-off",
    }));
  }
  parts.push(
    shape("circle", { cx: x, cy: y, r: 11, class: target ? "player-node player-target" : "player-node" }),
    shape("text", { x, y: y + 3.8, class: "player-number" }, String(node)),
  );
  if (target) {
    parts.push(shape("circle", { cx: x, cy: y, r: 13.8, class: "player-target" }));
    parts.push(shape("text", { x, y: y + 25, class: "player-note player-middle player-target-name" }, "target"));
  }
  return parts;
}

// The agent stands above its node; the node field is what it believes of its own place.
function drawAgent(moment, spots) {
  const { run, t } = moment;
  const field = 0;
  const [is, held] = [run.gold[t][field], run.belief[t][field]];
  const [x, y] = spots[is];
  const parts = [...person(x, y - 19, "true"), ...badge(standing(run, t, field), x + 10, y - 24)];
  if (moment.probed === field) parts.push(...lens(x, y - 18, 12));
  if (held !== is && held >= 0) parts.push(...person(spots[held][0], spots[held][1] - 19, "ghost"));
  return parts;
}

function drawKeys(scene, moment, spots) {
  const { run, t } = moment;
  const used = new Array(spots.length).fill(0);
  const parts = [];
  const put = (thing, node, kind, state, asked, moved) => {
    const [x, y] = [spots[node][0], spots[node][1] + 20 + 16 * used[node]++ + (node === scene.target ? 17 : 0)];
    parts.push(...token(thing, x, y, kind), ...badge(state, x + 13, y - 6));
    if (moved) parts.push(flash(x - 18, y));
    if (asked) parts.push(...lens(x, y, 18));
  };
  scene.things.forEach((thing, number) => {
    const [is, held] = [run.gold[t][thing.location], run.belief[t][thing.location]];
    const asked = moment.probed === thing.location;
    const aimed = moment.aim?.[0] === "thing" && moment.aim[1] === number ? "true player-aimed" : "true";
    const moved = moment.moved.includes(thing.location);
    if (is < spots.length) put(thing, is, aimed, standing(run, t, thing.location), asked, moved);
    if (held !== is && held >= 0 && held < spots.length) put(thing, held, "ghost", "right", false, false);
  });
  return parts;
}
