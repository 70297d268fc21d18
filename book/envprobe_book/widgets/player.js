// The episode player: two policies on one seed, stepping together through recorded episodes.

// Says whether a belief is right, wrong or unknown. -1 is the engine's "unknown".
function standing(run, t, field) {
  const held = run.belief[t][field];
  if (held === run.gold[t][field]) return "right";
  return held === -1 ? "unknown" : "wrong";
}

// Adds a field's terms up as the policy does, ((c + s) + u) + d over the terms it keeps.
function rho(run, t, field) {
  return run.terms.map((term) => run[term][t][field]).reduce((sum, term) => sum + term);
}

// The time of a run that belongs to a time of the pair: an episode that has ended stays as it ended.
function timeOf(run, t) {
  return Math.min(t, run.steps);
}

function lastTime(pair) {
  return Math.max(...pair.runs.map((run) => run.steps));
}

// The parts of the player's drawings, each of some kinds: what a kind looks like stands in player.css.

const kinds = (names) => names.split(" ").filter(Boolean).map((name) => `player-${name}`).join(" ");
const stroke = (d, kind) => shape("path", { d, class: kinds(kind) });
const disc = (cx, cy, r, kind) => shape("circle", { cx, cy, r, class: kinds(kind) });
const plate = (x, y, width, height, rx, kind) => shape("rect", { x, y, width, height, rx, class: kinds(kind) });
const lettering = (x, y, text, kind) => shape("text", { x, y, class: kinds(kind) }, String(text));

// The signs. What is drawn is the truth; a mark says how the belief stands to it, always by its shape as well
// as by its colour.

// A cross for a wrong belief, a question mark for an unknown one; nothing for a right one.
function badge(state, x, y) {
  if (state === "right") return [];
  const cross = `M${x - 2.1} ${y - 2.1}L${x + 2.1} ${y + 2.1}M${x - 2.1} ${y + 2.1}L${x + 2.1} ${y - 2.1}`;
  const sign = state === "unknown" ? lettering(x, y + 3.1, "?", "badge-sign") : stroke(cross, "badge-cross");
  return [disc(x, y, 5.2, `badge-${state}`), sign];
}

// How the belief of a field stands; a flash where the world has changed it by itself since the step before,
// and a lens where the policy asks about it. Each is given where it stands.
function marks({ run, t, moved, probed }, field, at, flashAt, lensAt) {
  const parts = badge(standing(run, t, field), ...at);
  if (moved.includes(field)) parts.push(flash(...flashAt));
  if (probed === field) parts.push(...lens(...lensAt));
  return parts;
}

function flash(x, y) {
  return stroke(`M${x + 1.5} ${y - 6}L${x - 3} ${y + 0.8}H${x}L${x - 1.5} ${y + 6}L${x + 3} ${y - 0.8}H${x}Z`, "flash");
}

function lens(x, y, r) {
  const reach = r * Math.SQRT1_2;
  return [disc(x, y, r, "lens"), stroke(`M${x + reach} ${y + reach}l5.5 5.5`, "lens-handle")];
}

// A padlock with the name of its key: shut where locked, its shackle up where open.
function padlock(x, y, locked) {
  const shackle = locked ? `M${x - 3} ${y}v-3a3 3 0 0 1 6 0v3` : `M${x - 3} ${y}v-4.5a3 3 0 0 1 6 0`;
  return [stroke(shackle, "shackle"), plate(x - 4.6, y, 9.2, 7, 1.4, locked ? "lock" : "lock lock-open")];
}

// A thing with its name; a ghost where it is only believed to be.
function token(thing, x, y, kind) {
  const role = thing.goal ? "goal" : thing.key ? "key" : "box";
  return [
    plate(x - 13.5, y - 7.5, 27, 15, 4, `token ${role} ${kind}`),
    lettering(x, y + 3.6, thing.label, `token-name ${role} ${kind}`),
  ];
}

// The agent itself: a head and shoulders; dashed where it only believes to be.
function person(x, y, kind) {
  return [stroke(`M${x - 6.5} ${y + 7}a6.5 7 0 0 1 13 0z`, `person ${kind}`), disc(x, y - 4.4, 3.6, `person ${kind}`)];
}

// What the agent's next action aims at; put off where the step goes to a probe.
const aimed = ({ aim }, kind, number) => aim?.[0] === kind && aim[1] === number;
const aimKind = ({ probed }) => (probed < 0 ? "aim" : "aim put-off");

// A hand's width of tokens: what is held, and what is only believed to be.
function tray(moment, things, y, width) {
  const parts = [lettering(6, y + 3.6, "in hand:", "note")];
  let x = 70;
  for (const { thing, kind, field } of things) {
    parts.push(...token(thing, x, y, kind), ...marks(moment, field, [x + 12, y - 7], [x - 16, y], [x, y, 16]));
    x = Math.min(x + 42, width - 18);
  }
  if (!things.length) parts.push(lettering(57, y + 3.6, "nothing", "note"));
  return parts;
}

// ToolDAGWorld drawn: one line a tool, arcs from each prerequisite, and its three fields as lights.

const TOOL_LINE = 27, TOOL_HEAD = 24, TOOL_COLUMN = 104, TOOL_LIGHTS = [172, 236, 300];

function drawTools(scene, moment) {
  const height = TOOL_HEAD + TOOL_LINE * scene.tools.length + 4;
  const y = (tool) => TOOL_HEAD + TOOL_LINE * (tool + 0.5);
  const parts = scene.heads.map((head, place) => lettering(TOOL_LIGHTS[place], 13, head, "head"));
  if (moment.aim) parts.push(plate(1, y(moment.aim[1]) - TOOL_LINE / 2 + 1, 338, TOOL_LINE - 2, 5, aimKind(moment)));
  scene.tools.forEach((tool, number) => parts.push(...tool.needs.map((before) => arc(y(before), y(number)))));
  scene.tools.forEach((tool, number) => parts.push(...toolLine(scene, moment, tool, number, y(number))));
  return { height, parts };
}

// An arc on the left, from a prerequisite down to the tool that needs it.
function arc(from, to) {
  const bow = Math.min(84, 14 + 0.32 * (to - from));
  const x = TOOL_COLUMN - 10;
  return stroke(`M${x} ${from + 3}C${x - bow} ${from + 6} ${x - bow} ${to - 6} ${x - 1} ${to - 3}`, "arc");
}

function toolLine(scene, moment, tool, number, y) {
  const target = number === scene.target;
  const parts = [
    disc(TOOL_COLUMN, y, 10, `node ${target ? "target" : ""} ${tool.needed ? "" : "idle"}`),
    lettering(TOOL_COLUMN, y + 3.8, number, "number"),
  ];
  if (target) parts.push(disc(TOOL_COLUMN, y, 12.6, "target"));
  if (moment.aim?.[1] === number) parts.push(stroke(`M${TOOL_COLUMN + 16} ${y - 5}l9 5l-9 5z`, "arrow"));
  tool.parts.forEach((field, place) => {
    const x = TOOL_LIGHTS[place];
    const on = moment.run.gold[moment.t][field] === 1;
    parts.push(disc(x, y, 7, on ? "light on" : "light"));
    if (on) parts.push(stroke(`M${x - 3.2} ${y}l2.4 2.6l4.2 -5`, "tick"));
    parts.push(...marks(moment, field, [x + 12.5, y - 3], [x - 14, y], [x, y, 11]));
  });
  return parts;
}

// ObjectStateWorld drawn: rooms in a row with their doors, what lies in them, and the agent.

const ROW_WIDTH = 340, ROW_MARGIN = 4, ROW_ROOMS = 10, ROW_STACK = 19, ROW_TOP = 18, ROW_FOOT = 25;

function drawRooms(scene, moment) {
  const columns = Math.min(scene.rooms, ROW_ROOMS);
  const wide = (ROW_WIDTH - 2 * ROW_MARGIN) / columns;
  const tall = 30 + ROW_STACK * moment.depth;
  const left = (room) => ROW_MARGIN + wide * (room % ROW_ROOMS);
  const top = (room) => ROW_TOP + (tall + ROW_TOP + ROW_FOOT) * Math.floor(room / ROW_ROOMS);
  const place = { wide, tall, left, top };
  const parts = [];
  for (let room = 0; room < scene.rooms; room++) parts.push(...drawRoom(scene, moment, room, place));
  scene.doors.forEach((door, number) => parts.push(...drawDoor(moment, door, number, place)));
  const stacked = (room, height) => [left(room) + wide / 2, top(room) + 13 + ROW_STACK * height];
  parts.push(...drawThings(scene, moment, scene.rooms, stacked, { badge: [12, -8], flash: [-11, -6] }));
  const y = top(scene.rooms - 1) + tall + ROW_FOOT + 13;
  parts.push(...tray(moment, inHand(scene, moment), y, ROW_WIDTH));
  return { height: y + 16, parts };
}

// The most things that one room ever holds or is believed to hold in any of the runs, so that the drawings
// keep their size and stand at the same height.
function deepest(scene, runs) {
  let most = 1;
  for (const run of runs) {
    for (let t = 0; t <= run.steps; t++) {
      const counts = new Array(scene.rooms + 1).fill(0);
      for (const { location } of scene.things) {
        const [is, held] = [run.gold[t][location], run.belief[t][location]];
        counts[is] += 1;
        if (held !== is && held >= 0) counts[held] += 1;
      }
      most = Math.max(most, ...counts.slice(0, scene.rooms));
    }
  }
  return most;
}

function drawRoom(scene, moment, room, { wide, tall, left, top }) {
  const [x, y] = [left(room), top(room)];
  const parts = [lettering(x + wide / 2, y - 5, room, "note middle")];
  if (aimed(moment, "room", room)) parts.push(plate(x + 2, y + 1, wide - 4, tall - 2, 3, aimKind(moment)));
  const ends = [...(room === 0 ? [x] : []), ...(room === scene.rooms - 1 ? [x + wide] : [])];
  const outer = ends.map((end) => `M${end} ${y}v${tall}`).join("");
  parts.push(stroke(`M${x} ${y}h${wide}M${x} ${y + tall}h${wide}${outer}`, "wall"));
  if (moment.run.place[moment.t] === room) parts.push(...person(x + wide / 2, y + tall - 11, "true"));
  return parts;
}

function drawDoor(moment, door, number, { tall, left, top, wide }) {
  const [x, y] = [left(number) + wide, top(number)];
  const locked = moment.run.gold[moment.t][door.field] === 1;
  const parts = [stroke(`M${x} ${y}v${tall}`, locked ? "door shut" : "door")];
  const foot = y + tall + 8;
  if (aimed(moment, "door", number)) parts.push(disc(x, foot, 11, "aim"));
  if (door.key >= 0) parts.push(...padlock(x, foot - 2, locked), lettering(x, foot + 15, `k${door.key}`, "key-name"));
  const [aside, above] = door.key >= 0 ? [9, 4] : [0, 0];
  parts.push(...marks(moment, door.field, [x + aside, foot - above], [x - 10, foot + 1], [x, foot, 12]));
  return parts;
}

// Things where they are, and ghosts where they are believed to be; those in one of so many places stand where
// `stacked` says. The marks of a thing stand so far from it.
function drawThings(scene, moment, places, stacked, { badge: aside, flash: behind }) {
  const { run, t } = moment;
  const heights = new Array(places).fill(0);
  const parts = [];
  scene.things.forEach((thing, number) => {
    const field = thing.location;
    const [is, held] = [run.gold[t][field], run.belief[t][field]];
    if (is < places) {
      const [x, y] = stacked(is, heights[is]++);
      const [at, flashAt] = [aside, behind].map(([dx, dy]) => [x + dx, y + dy]);
      parts.push(...token(thing, x, y, aimed(moment, "thing", number) ? "true aimed" : "true"));
      parts.push(...marks(moment, field, at, flashAt, [x, y, 18]));
    }
    if (held !== is && held >= 0 && held < places) parts.push(...token(thing, ...stacked(held, heights[held]++), "ghost"));
  });
  return parts;
}

// What is in the agent's hand, and what it believes to be: the field "held" and the location "held".
function inHand(scene, { run, t, probed }) {
  return scene.things.flatMap((thing) => {
    const { location } = thing;
    const field = thing.held ?? location;
    const inside = (values) =>
      thing.held === undefined ? wordIsHeld(scene, location, values[location]) : values[field] === 1;
    const [is, held] = [inside(run.gold[t]), inside(run.belief[t])];
    const asked = run.belief[t][field] === -1 && probed === field;
    return is || held || asked ? [{ thing, kind: is ? "true" : "ghost", field }] : [];
  });
}

// The last value of a location means that the thing is held.
function wordIsHeld(scene, field, value) {
  return value === scene.words[scene.word_of[field]].length - 2;
}

// GraphNavWorld drawn: nodes in columns by distance from the start, edges with their locks, keys, the agent.

const MAP_WIDTH = 340, MAP_SIDE = 24, MAP_RISE = 62, MAP_TOP = 34;

function drawGraph(scene, moment) {
  const xs = scene.spots.map(([x]) => x), ys = scene.spots.map(([, y]) => y);
  const wide = (MAP_WIDTH - 2 * MAP_SIDE) / Math.max(1, Math.max(...xs) - Math.min(...xs));
  const highest = Math.max(...ys);
  const spots = scene.spots.map(([x, y]) => [MAP_SIDE + wide * x, MAP_TOP + MAP_RISE * (highest - y)]);
  const bottom = MAP_TOP + MAP_RISE * (highest - Math.min(...ys)) + 36;
  const stacked = (node, height) => {
    const [x, y] = spots[node];
    return [x, y + 20 + 16 * height + (node === scene.target ? 17 : 0)];
  };
  const parts = [
    ...scene.edges.flatMap((edge) => drawEdge(moment, edge, spots)),
    ...spots.flatMap((spot, node) => drawNode(scene, moment, node, spot)),
    ...drawAgent(moment, spots),
    ...drawThings(scene, moment, spots.length, stacked, { badge: [13, -6], flash: [-18, 0] }),
    ...tray(moment, inHand(scene, moment), bottom + 16, MAP_WIDTH),
  ];
  return { height: bottom + 32, parts };
}

function drawEdge(moment, edge, spots) {
  const [[x0, y0], [x1, y1]] = edge.ends.map((end) => spots[end]);
  // an edge within a column bows out, so that it does not run through the nodes between
  const far = Math.abs(y1 - y0);
  const bow = x0 === x1 && far > MAP_RISE + 1 ? -0.2 * far : 0;
  const [mx, my] = [(x0 + x1) / 2 + bow, (y0 + y1) / 2];
  const [x, y] = [mx - bow / 2, my];
  const locked = moment.run.gold[moment.t][edge.field] === 1;
  const parts = [stroke(`M${x0} ${y0}Q${mx} ${my} ${x1} ${y1}`, locked ? "edge shut" : "edge")];
  if (edge.key >= 0) {
    parts.push(disc(x, y + 1, 9.5, "ground"), ...padlock(x, y - 0.5, locked));
    parts.push(lettering(x + 6, y + 15, `k${edge.key}`, "key-name"));
  }
  const [aside, above] = edge.key >= 0 ? [9, 7] : [0, 0];
  parts.push(...marks(moment, edge.field, [x + aside, y - above], [x - 12, y], [x, y, 13]));
  return parts;
}

function drawNode(scene, moment, node, [x, y]) {
  const target = node === scene.target;
  const parts = aimed(moment, "node", node) ? [disc(x, y, 18, aimKind(moment))] : [];
  parts.push(disc(x, y, 11, target ? "node target" : "node"), lettering(x, y + 3.8, node, "number"));
  if (target) parts.push(disc(x, y, 13.8, "target"), lettering(x, y + 25, "target", "note middle target-name"));
  return parts;
}

// The agent stands above its node; the node field is what it believes of its own place.
function drawAgent(moment, spots) {
  const field = 0;
  const [is, held] = [moment.run.gold[moment.t][field], moment.run.belief[moment.t][field]];
  const [x, y] = spots[is];
  const still = { ...moment, moved: [] }; // the world does not move it
  const parts = [...person(x, y - 19, "true"), ...marks(still, field, [x + 10, y - 24], [], [x, y - 18, 12])];
  if (held !== is && held >= 0) parts.push(...person(spots[held][0], spots[held][1] - 19, "ghost"));
  return parts;
}

// The scores of the best fields as stacked bars with the gate's threshold, and accuracy so far as a line.

const LARGEST = 4; // each of the four terms lies in 0..1

function scoreRows(scene, run, t) {
  return run.top[t].map((field) => {
    const [probed, state] = [run.probe[t] === field, standing(run, t, field)];
    const name = element("span", { class: "player-score-name" }, scene.fields[field]);
    if (probed) name.append(element("strong", { class: "player-asked" }, " asked"));
    if (state !== "right") name.append(element("span", { class: `player-word-${state}` }, ` ${state}`));
    const sum = element("span", { class: "player-score-sum" }, rho(run, t, field).toFixed(2));
    const kind = probed ? "player-score player-score-asked" : "player-score";
    return element("li", { class: kind }, name, scoreBar(run, t, field), sum);
  });
}

function scoreBar(run, t, field) {
  const bar = element("span", { class: "player-bar", "aria-hidden": "true" });
  const wide = (value) => `${(100 * Math.min(value, LARGEST)) / LARGEST}%`;
  for (const term of TERMS.filter((name) => run.terms.includes(name) && run[name][t][field])) {
    const value = run[term][t][field];
    const piece = element("span", { class: `player-term player-term-${term}` }, value > 0.2 ? term : "");
    piece.style.width = wide(value);
    bar.append(piece);
  }
  if (run.threshold !== null && !run.own_score) {
    const gate = element("span", { class: "player-gate-line" });
    gate.style.left = wide(run.threshold);
    bar.append(gate);
  }
  return bar;
}

const CURVE = { width: 340, height: 92, left: 30, right: 8, top: 8, bottom: 22 };

// A_t up to now, with the line of collapse; `last` is the longer run's last step, so that axes agree.
function accuracyLine(run, t, last, collapse) {
  const { width, height, left, right, top, bottom } = CURVE;
  const x = (time) => left + ((width - left - right) * time) / Math.max(1, last);
  const y = (share) => height - bottom - (height - bottom - top) * share;
  const level = (share, kind) => [
    stroke(`M${left} ${y(share)}H${width - right}`, kind),
    lettering(left - 5, y(share) + 3.5, share, "note end"),
  ];
  const parts = [...level(0, "axis"), ...level(1, "axis"), ...level(collapse, "collapse")];
  parts.push(...[0, Math.round(last / 2), last].map((time) => lettering(x(time), height - 3, time, "note middle")));
  run.probe.slice(0, t).forEach((field, time) => {
    if (field >= 0) parts.push(stroke(`M${x(time)} ${height - bottom + 1}l2.6 5h-5.2z`, "probe-tick"));
  });
  const path = (values) => pathOf(values.slice(0, t + 1), (time) => x(time).toFixed(1), (value) => y(value).toFixed(1));
  if (run.track) parts.push(stroke(path(run.track), "track"));
  parts.push(stroke(path(run.accuracy), "curve"), disc(x(t), y(run.accuracy[t]), 3.6, "now"));
  return parts;
}

const CURVE_BOX = `0 0 ${CURVE.width} ${CURVE.height}`;

// Every field of one moment as a table: what the drawing and the bars show, for readers who prefer to read.

const HEADS = ["field", "truth", "belief", "standing", "confidence", "reported age"];
const SIGNS = { right: "✓ right", wrong: "✗ wrong", unknown: "? unknown" };

function fieldTable(scene, run, t, caption) {
  const decided = t < run.steps;
  const heads = [...HEADS, ...(decided ? [...TERMS, "ρ"] : [])].map((text) => element("th", { scope: "col" }, text));
  const lines = scene.fields.map((name, field) => {
    const state = standing(run, t, field);
    const cells = [
      valueWord(scene, field, run.gold[t][field]),
      valueWord(scene, field, run.belief[t][field]),
      SIGNS[state],
      `${run.confidence[t][field]}%`,
      run.staleness[t][field],
      ...(decided ? [...TERMS.map((term) => run[term][t][field]), rho(run, t, field)].map((value) => value.toFixed(2)) : []),
    ];
    const head = element("th", { scope: "row" }, name);
    return element("tr", { class: `player-line-${state}` }, head, ...cells.map((text) => element("td", {}, String(text))));
  });
  return element(
    "table", { class: "player-table" },
    element("caption", {}, caption), element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...lines),
  );
}

// One policy's side of the player: its drawing, what it decided and did, its scores and its accuracy.

const DRAWN = { tools: drawTools, rooms: drawRooms, graph: drawGraph };

// Builds one side and returns {root, show(t)}.
function makeRun(pair, run, collapse) {
  const chip = element("span", { class: "player-chip" });
  const name = element("span", { class: "player-name" }, ...(run.mark ? [swatch(run.mark)] : []), run.title);
  const picture = shape("svg", { role: "img", class: "player-scene" });
  const facts = element("p", { class: "player-facts" });
  const story = element("dl", { class: "player-story" });
  const bars = element("ul", { class: "player-scores" });
  const scores = element(
    "div", { class: "player-score-block" },
    element("p", { class: "player-small" }, scoreCaption(run)), bars,
  );
  const line = shape("svg", { role: "img", viewBox: CURVE_BOX, class: "player-line" });
  const curve = element("div", {}, element("p", { class: "player-small" }, curveCaption(run, pair)), line);
  const holder = element("div", { class: "player-table-holder", tabindex: "0", role: "region" });
  change(holder, { "aria-label": `All fields, ${run.title}` });
  const details = element("details", {}, element("summary", {}, "All fields as a table"), holder);
  const depth = pair.scene.kind === "rooms" ? deepest(pair.scene, pair.runs) : 0;
  let now = 0;
  const fill = () => {
    if (!details.open) return;
    const caption = `${run.title}, step ${timeOf(run, now)}`;
    holder.replaceChildren(fieldTable(pair.scene, run, timeOf(run, now), caption));
  };
  details.addEventListener("toggle", fill);
  const root = element(
    "section", { class: "player-run", "aria-label": run.title, id: freshId("player-run") },
    element("div", { class: "player-run-head" }, name, chip), picture, facts, story, scores, curve, details,
  );

  function show(t, last) {
    now = t;
    const at = timeOf(run, t);
    const over = at === run.steps;
    say(chip, over ? "episode over" : OUTCOMES[run.outcome[at]]);
    change(chip, { class: `player-chip player-chip-${over ? "over" : run.outcome[at]}` });
    drawScene(pair.scene, run, at, depth, picture);
    const shown = run.accuracy[at].toFixed(2);
    facts.replaceChildren(
      element("span", {}, `A = ${shown}, ${run.right[at]} of ${pair.scene.fields.length} right`),
      pips(run.used[at], run.budget),
    );
    story.replaceChildren(...storyLines(run, at).flatMap(([term, texts]) => [
      element("dt", {}, term), ...texts.map((text) => element("dd", {}, text)),
    ]));
    bars.replaceChildren(...(over ? [] : scoreRows(pair.scene, run, at)));
    line.replaceChildren(...accuracyLine(run, at, last, collapse));
    change(line, { "aria-label": `Accuracy up to step ${at}, where it is ${shown}; collapse below ${collapse}` });
    fill();
  }
  return { root, show };
}

function drawScene(scene, run, at, depth, picture) {
  const over = at === run.steps;
  const aim = over ? null : scene.aims[run.action[at]] ?? null; // a wait aims at nothing
  const moment = { run, t: at, depth, aim, probed: over ? -1 : run.probe[at], moved: run.moved[at - 1] ?? [] };
  const { height, parts } = DRAWN[scene.kind](scene, moment);
  picture.replaceChildren(...parts);
  const label = `${run.right[at]} of ${scene.fields.length} beliefs are right; ${run.brief[at]}`;
  change(picture, { viewBox: `0 0 340 ${height}`, "aria-label": label });
}

// What happened at a step, as a list of headings, with lines of the paper's Algorithm 1, and texts.
/** @returns {[string, string[]][]} */
function storyLines(run, at) {
  if (at === run.steps) return [["End", [run.brief[at]]]];
  /** @type {[string, string[]][]} */
  const lines = [["Gate (11)", [run.gate[at]]]];
  if (run.reply[at]) lines.push(["Probe (12–14)", [run.reply[at]]], ["Action", [run.deed[at]]]);
  else lines.push(["Acts (15–16)", [run.deed[at]]]);
  lines.push(["World", run.world[at].length ? run.world[at] : ["stays as it is"]]);
  const wrote = run.wrote[at].map(([text, right]) => (right ? text : `${text} (wrong)`));
  lines.push(["Writes", wrote.length ? wrote : ["nothing new"]]);
  return lines;
}

function scoreCaption({ own_score: own, threshold, terms }) {
  let added = `Scores ρ, gate at ${threshold}`;
  if (own) added = "The policy compares a score of its own; for comparison";
  else if (threshold === null) added = "This policy compares no score; for comparison";
  return `${added}: ${terms.join(" + ")}`;
}

function curveCaption(run, pair) {
  const scored = run.track ? `; dotted: the accuracy scored ${pair.rules}` : "";
  return `Accuracy so far: share of right beliefs${scored}`;
}

function pips(used, budget) {
  const full = "●".repeat(Math.min(used, budget)) + "○".repeat(Math.max(0, budget - used));
  return element(
    "span", { class: "player-budget" },
    `${used} of ${budget} probes used `, element("span", { "aria-hidden": "true" }, full),
  );
}

// The form: any episode, made by the page's engine.

const NO_ENGINE = "This page cannot run the engine, which needs WebAssembly, so only the stored episodes can be shown.";
const OWN_POLICY = "is a policy in Python, which a page cannot run; the stored episode shows it.";
const UNASKED = "AbortError"; // of a run that a later one has overtaken

// The engine that the page has loaded, or that came along as text, in JupyterLab; null where none can run.
async function findEngine(model) {
  const text = model.get("engine");
  if (!globalThis.EnvProbe?.engine && text) document.head.append(element("script", {}, text)); // runs at once
  if (!globalThis.EnvProbe?.engine && document.readyState !== "complete") {
    await new Promise((go) => addEventListener("load", go, { once: true })); // its script may come later
  }
  const engine = globalThis.EnvProbe?.engine;
  return engine?.available() ? engine : null;
}

/** @type {[string, string, Record<string, string>?][]} */
const FORM = [
  ["world", "World"],
  ["first", "Policy"],
  ["second", "Beside"],
  ["protocol", "Protocol"],
  ["switches", "Switches (clock=stands, …)", { type: "text", spellcheck: "false" }],
  ["regime", "Regime"],
  ["profile", "Profile"],
  ["seed", "Seed", { type: "text", inputmode: "numeric" }],
  ["budget", "Budget (empty: the regime’s)", { type: "text", inputmode: "numeric" }],
  ["threshold", "Threshold (empty: 1.5)", { type: "text", inputmode: "decimal" }],
];
const CHOSEN = [["typical", "Typical seed"], ["largest", "Largest difference"], ["random", "Random seed"]];

// The setting of an episode, as `recordPair` reads it.
function settingOf(pair) {
  const { world, seed, regime, protocol, profile, budget, threshold, runs } = pair;
  return { world, seed, regime, protocol, profile, budget, threshold, policies: runs.map(({ name }) => name) };
}

// A number that a reader wrote; null where nothing is written. What it is called stands in the refusal.
function numberIn(text, name, { whole = false } = {}) {
  const written = text.trim();
  if (written === "") return null;
  if (whole && !/^\d+$/.test(written)) throw new Error(`The ${name} “${written}” is not a whole number.`);
  const value = Number(written);
  if (!Number.isFinite(value)) throw new Error(`The ${name} “${written}” is not a number.`);
  return whole && !Number.isSafeInteger(value) ? BigInt(written) : value;
}

// Builds the form and the buttons that choose a seed. `receive(pair, step)` gets every new episode; `follow(pair)`
// turns to a stored one, and `play(setting, step)` makes one.
function makeForm(model, { choices, lexicon }, receive) {
  const controls = new Map();
  const message = element("p", { class: "player-message", role: "alert" });
  const rare = element("p", { class: "player-rarity", role: "status" });
  const fields = element("form", { class: "player-form", "aria-label": "Choose an episode" });
  for (const [name, label, kind] of FORM) {
    const id = freshId("player-choice");
    const control = element(kind ? "input" : "select", { id, ...kind, ...KEEPS_KEYS });
    if (!kind) control.append(...choices[name].map(([value, text]) => element("option", { value }, text)));
    controls.set(name, control);
    fields.append(element("div", { class: "player-choice" }, element("label", { for: id }, label), control));
  }
  const buttons = CHOSEN.map(([kind, text]) => {
    const button = element("button", { type: "button", class: "player-button player-wide" }, text);
    button.addEventListener("click", () => choose(kind));
    return button;
  });
  const root = element(
    "div", { class: "player-choose" },
    element("div", { class: "player-seeds", role: "group", "aria-label": "Choose a seed" }, ...buttons),
    rare,
    element("details", { class: "player-other" }, element("summary", {}, "Choose any other episode"), fields),
    message,
  );
  let overtake = new AbortController();
  let lacking = ""; // why nothing but the stored episodes can be shown
  let writing = null; // the field that a reader is writing in: an episode that comes meanwhile leaves it alone

  const busy = (is) => change(root, { "aria-busy": is ? "true" : null });

  // Does what takes the engine a moment; what is asked later overtakes it, and what goes wrong is said.
  async function attempt(act) {
    overtake.abort();
    const { signal } = (overtake = new AbortController());
    busy(true);
    try {
      const engine = await findEngine(model);
      if (!engine) throw new Error(NO_ENGINE);
      const { pair, told, step } = await act(engine, signal);
      if (signal.aborted) return;
      say(message, "");
      say(rare, told);
      fill(pair);
      receive(pair, step);
    } catch (error) {
      if (error.name !== UNASKED && !signal.aborted) {
        say(rare, "");
        say(message, error.message);
      }
    }
    if (!signal.aborted) busy(false);
  }

  // What the form says.
  function setting() {
    const value = (name) => controls.get(name).value;
    const policies = [value("first"), value("second")].filter(Boolean);
    if (!value("first")) throw new Error("Choose a policy that the page can run.");
    const switches = value("switches").trim();
    return {
      world: value("world"),
      policies,
      seed: numberIn(value("seed"), "seed", { whole: true }) ?? 0,
      regime: value("regime"),
      protocol: value("protocol") + (switches ? `:${switches}` : ""),
      profile: value("profile"),
      budget: numberIn(value("budget"), "budget", { whole: true }),
      threshold: numberIn(value("threshold"), "threshold"),
    };
  }

  function play(wanted, step = 0) {
    return attempt(async (engine) => ({ pair: await recordPair(engine, lexicon, wanted), told: "", step }));
  }

  function choose(kind) {
    return attempt(async (engine, signal) => {
      const wanted = setting();
      if (wanted.policies.length < 2) throw new Error("Seeds are chosen by the difference of two policies; choose a second.");
      say(rare, "Running all seeds of both policies.");
      const survey = await surveySeeds(engine, lexicon, wanted, { signal });
      const one = PICK[kind](survey);
      const titles = wanted.policies.map((name) => lexicon.policies[name].title);
      const pair = await recordPair(engine, lexicon, { ...wanted, seed: one.seed });
      return { pair, told: rarity(kind, survey, one, titles) };
    });
  }

  // Shows in the form what an episode was made with.
  function fill(pair) {
    const [protocol, ...switches] = pair.protocol.split(":");
    const [first, second = ""] = settingOf(pair).policies;
    const shown = { ...pair, protocol, switches: switches.join(":"), first, second };
    for (const [name, control] of controls) if (control !== writing) control.value = shown[name] ?? "";
  }

  // Turns to a stored episode.
  function follow(pair) {
    overtake.abort(); // an episode on its way is out of date
    busy(false);
    writing = null;
    fill(pair);
    const own = pair.runs.find(({ name }) => !lexicon.policies[name]);
    say(message, own ? `${own.title} ${OWN_POLICY}` : lacking);
    say(rare, pair.rarity ?? "");
  }

  fields.addEventListener("input", ({ target }) => { writing = target; });
  fields.addEventListener("focusout", () => { writing = null; });
  fields.addEventListener("change", ({ target }) => {
    if (writing === target) writing = null;
    attempt(async (engine) => ({ pair: await recordPair(engine, lexicon, setting()), told: "" }));
  });
  fields.addEventListener("submit", (event) => event.preventDefault());
  findEngine(model).then((engine) => {
    if (engine) return;
    say(message, (lacking = NO_ENGINE));
    for (const control of [...controls.values(), ...buttons]) control.disabled = true;
  });
  return { root, follow, play, close: () => overtake.abort() };
}

const PACE = 1100; // milliseconds a step while it plays
const SPEEDS = [[0.5, "half speed"], [1, "speed 1"], [2, "speed 2"], [4, "speed 4"]];

// The times to stop at where waits are skipped: of a row in which nobody does anything only the first.
function stopsOf(pair) {
  const idle = (t) => pair.runs.every((run) => t >= run.steps || (run.action[t] < 0 && run.probe[t] < 0));
  return [...Array(lastTime(pair) + 1).keys()].filter((t, _, { length }) => (
    t === 0 || t === length - 1 || !idle(t) || !idle(t - 1)
  ));
}

// The part of an address that leads to an episode and a step: everything that it was made with.
function addressOf(pair, step) {
  const { regime, profile, budget, threshold, policies } = settingOf(pair);
  const said = new URLSearchParams({ episode: pair.key, policies: policies.join(" "), regime, profile });
  if (budget !== null) said.set("budget", budget);
  if (threshold !== null) said.set("threshold", threshold);
  said.set("step", step);
  return `#${said}`;
}

// What an address leads to: {key, setting, step}, or null; `whole` if it says all of the setting.
function readAddress(address, lexicon) {
  const given = new URLSearchParams(new URL(address).hash.slice(1));
  const { titles } = lexicon;
  const [, place, rules, seed] = /^([^-]+)-(.*)-(\d+)$/.exec(given.get("episode") ?? "") ?? [];
  const world = place && nameOf(place, titles.world);
  if (!world) return null;
  const [rule, ...turned] = rules.split(":");
  const protocol = [nameOf(rule, titles.protocol) ?? rule, ...turned].join(":");
  const key = `${world}-${protocol}-${seed}`;
  const number = (name) => (given.has(name) ? Number(given.get(name)) : null);
  const told = given.get("policies") ?? ""; // titles may have blanks, and then commas divide them
  const policies = told.split(told.includes(",") ? "," : " ").map((one) => nameOf(one, titles.policy) ?? one);
  const setting = {
    world, protocol, seed: numberIn(seed, "seed", { whole: true }), policies,
    regime: given.get("regime") ?? "S2", profile: given.get("profile") ?? "typical",
    budget: number("budget"), threshold: number("threshold"),
  };
  return { key, setting, whole: given.has("policies"), step: /^\d+$/.test(given.get("step") ?? "") ? number("step") : null };
}

// Copies the address of what is shown; where a browser refuses that, the address is there to be selected.
function makeLink(address) {
  const button = element("button", { type: "button", class: "player-button player-wide" }, "Copy link to this episode");
  const done = element("span", { class: "player-small", role: "status" });
  const shown = element("input", { type: "text", readonly: "", class: "player-address", "aria-label": "Link to this episode" });
  shown.hidden = true;
  button.addEventListener("click", async () => {
    shown.value = address();
    try {
      await navigator.clipboard.writeText(shown.value);
      say(done, "copied");
    } catch {
      shown.hidden = false;
      shown.select();
      say(done, "select and copy it");
    }
  });
  return element("p", { class: "player-link" }, button, " ", done, shown);
}

// On a phone one policy is in sight, and this says which; where both have room they stand side by side.
function makeSwitch(runs) {
  const root = element("div", { class: "player-switch", role: "group", "aria-label": "Policy in sight" });
  let sight = 0;
  function show(place) {
    sight = place;
    change(runs, { "data-sight": place });
    [...root.children].forEach((button, number) => change(button, { "aria-pressed": number === place }));
  }
  function resize(titles) {
    const makeButton = (title, place) => {
      const button = element("button", { type: "button", class: "player-button player-wide" }, title);
      button.addEventListener("click", () => show(place));
      return button;
    };
    root.replaceChildren(...titles.map(makeButton));
    root.hidden = titles.length < 2;
    show(Math.min(sight, titles.length - 1));
  }
  return { root, resize };
}

function render({ model, el }) {
  const state = model.get("state");
  const stored = state.pairs.map((recorded) => tellPair(state.lexicon, recorded));
  const inPage = Boolean(model.get("page")); // the address is the page's own, and not JupyterLab's
  const root = element("div", { class: "player" });
  const about = element("p", { class: "player-about" });
  const parting = element("p", { class: "player-parting" });
  const told = element("p", { class: "player-told", "aria-live": "polite" });
  const runs = element("div", { class: "player-runs" });
  const sight = makeSwitch(runs);
  const transport = makeTransport(visit);
  let pair, sides, t, last;
  let timer = 0;

  function open(opened, at = opened.start ?? 0) {
    transport.stop();
    pair = opened;
    last = lastTime(pair);
    sides = pair.runs.map((run) => makeRun(pair, { ...run, mark: state.marks[run.name] }, state.collapse));
    runs.replaceChildren(...sides.map((side) => side.root));
    sight.resize(pair.runs.map(({ title }) => title));
    say(about, pair.about);
    say(parting, pair.parting);
    parting.hidden = !pair.parting;
    transport.resize(last, pair.parts, stopsOf(pair));
    go(Math.min(at, last));
  }

  function go(wanted, playing = false) {
    t = Math.max(0, Math.min(last, wanted));
    for (const side of sides) side.show(t, last);
    change(told, { "aria-live": playing ? "off" : "polite" });
    const said = pair.runs.map((run) => `${run.title} ${run.brief[timeOf(run, t)]}`);
    const sentence = `Step ${t} of ${last}: ${said.join("; ")}.`;
    say(told, sentence);
    transport.show(t, last, sentence);
    return t < last;
  }

  // A step that the reader went to stands in the page's address, from where a link takes it back.
  function visit(wanted, playing = false) {
    const more = go(wanted, playing);
    if (!playing) remember();
    return more;
  }

  function remember() {
    if (!inPage) return;
    clearTimeout(timer);
    timer = setTimeout(() => history.replaceState(history.state, "", addressOf(pair, t)), LINK_DELAY);
  }

  // The stored episode that an address leads to: the first of those that it may mean.
  function storedAt({ key, setting, whole }) {
    const same = (one) => Object.entries(settingOf(one)).every(([name, value]) => String(value) === String(setting[name]));
    return stored.findIndex((one) => one.key === key && (!whole || same(one)));
  }

  // Goes where an address says, at once if that is a stored episode; says whether it leads to one at all.
  function follow(address) {
    const wanted = inPage ? readAddress(address, state.lexicon) : null;
    if (!wanted) return false;
    const place = storedAt(wanted);
    if (place >= 0) {
      menu.show(place);
      form.follow(stored[place]);
      open(stored[place], wanted.step ?? undefined);
    } else if (wanted.whole) {
      if (!pair) open(stored[0]); // until the engine has made the other
      form.play(wanted.setting, wanted.step ?? 0);
    } else return false;
    reveal(root);
    return true;
  }

  const menu = makeMenu(stored, (place) => {
    form.follow(stored[place]);
    open(stored[place]);
    remember();
  });
  const form = makeForm(model, state, (made, step) => {
    menu.clear(); // what is shown is none of its episodes
    open(made, step);
    remember();
  });
  transport.root.append(sight.root);
  const stage = element("div", {}, transport.root, parting, runs); // as far as this goes, the transport stays in sight
  if (stored.length > 1) root.append(menu.root);
  root.append(form.root, about, stage, element("div", { class: "player-foot" }, makeLegend(), told));
  if (inPage) root.append(makeLink(() => new URL(addressOf(pair, t), location.href).href));
  root.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, summary, .player-table-holder");
    const move = { ArrowLeft: transport.near(-1), ArrowRight: transport.near(1), Home: 0, End: last }[event.key];
    if (typing || move === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    transport.stop();
    visit(move);
  });
  form.follow(stored[0]);
  if (!follow(location.href)) open(stored[0]);
  // not the page's own address, which `remember` may have written over since
  const linked = ({ newURL }) => follow(newURL);
  addEventListener("hashchange", linked);
  el.append(root);
  return () => {
    removeEventListener("hashchange", linked);
    clearTimeout(timer);
    transport.stop();
    form.close();
  };
}

// The menu of the episodes that came with the page.
function makeMenu(pairs, choose) {
  const id = freshId("player-episode");
  const menu = element("select", { id, class: "player-menu", ...KEEPS_KEYS });
  const groups = new Map();
  pairs.forEach((pair, place) => {
    if (!groups.has(pair.group)) {
      groups.set(pair.group, element("optgroup", { label: pair.group }));
      menu.append(groups.get(pair.group));
    }
    groups.get(pair.group).append(element("option", { value: place }, pair.label));
  });
  menu.addEventListener("change", () => choose(Number(menu.value)));
  menu.append(element("option", { value: "", hidden: "" }, "another one, see below"));
  menu.value = 0;
  const root = element("div", { class: "player-choice" }, element("label", { for: id }, "Episode"), menu);
  return { root, clear: () => (menu.value = ""), show: (place) => (menu.value = place) };
}

const ICONS = {
  "First step": "M3 3h2v10H3zM13 3v10L6 8z",
  "Previous step": "M11.5 3v10L4.5 8z",
  Play: "M4 2.5v11L13.5 8z",
  Pause: "M4 3h3v10H4zM9 3h3v10H9z",
  "Next step": "M4.5 3v10l7-5z",
  "Last step": "M11 3h2v10h-2zM3 3v10l7-5z",
};

// Buttons and slider. `go(t, playing)` shows a time and says whether more follow.
function makeTransport(go) {
  let now = 0, end = 0, parts = null, timer = 0, stops = [];
  const button = (name, act, kind = "", content = icon(name)) => {
    const made = element("button", { type: "button", class: `player-button ${kind}`, "aria-label": name, title: name }, content);
    made.addEventListener("click", act);
    return made;
  };
  const icon = (name) => (
    shape("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, shape("path", { d: ICONS[name] }))
  );
  const jump = (to) => () => {
    stop();
    go(to());
  };
  const play = button("Play", () => (timer ? stop() : start()));
  const first = button("First step", jump(() => 0));
  const before = button("Previous step", jump(() => near(-1)));
  const after = button("Next step", jump(() => near(1)));
  const final = button("Last step", jump(() => end));
  const differ = button("Where they part", jump(() => parts), "player-differ", "Where they part");
  const id = freshId("player-step");
  const slider = element("input", { id, type: "range", min: 0, step: 1, class: "player-slider", ...KEEPS_KEYS });
  const shown = element("output", { for: id, class: "player-step" });
  slider.addEventListener("input", jump(() => Number(slider.value)));
  const skip = element("input", { type: "checkbox", ...KEEPS_KEYS });
  skip.checked = true;
  const skips = element("label", { class: "player-skip" }, skip, " skip waits");
  const speed = element("select", { class: "player-speed", "aria-label": "Speed", ...KEEPS_KEYS },
    ...SPEEDS.map(([times, text]) => element("option", { value: times }, text)));
  speed.value = 1;
  speed.addEventListener("change", () => timer && start());
  const root = element("div", { class: "player-transport" },
    element("div", { class: "player-buttons", role: "group", "aria-label": "Playback" }, first, before, play, after, final, differ),
    element("div", { class: "player-slide" }, element("label", { for: id, class: "player-slider-label" }, "Step"), slider, shown),
    element("div", { class: "player-ways" }, speed, skips));

  // The next time to stop at, forwards or backwards.
  function near(way) {
    if (!skip.checked) return now + way;
    return way > 0 ? (stops.find((t) => t > now) ?? end) : (stops.findLast((t) => t < now) ?? 0);
  }

  function namePlay(name) {
    change(play, { "aria-label": name, title: name });
    change(play.firstChild.firstChild, { d: ICONS[name] });
  }
  function start() {
    namePlay("Pause");
    if (now === end) go(0, true);
    clearInterval(timer);
    timer = setInterval(() => {
      if (!go(near(1), true)) stop();
    }, PACE / Number(speed.value));
  }
  function stop() {
    clearInterval(timer);
    timer = 0;
    namePlay("Play");
  }
  function resize(last, parting, times) {
    [end, parts, stops] = [last, parting, times];
    skips.hidden = times.length === last + 1;
    differ.hidden = parting === null;
    change(slider, { max: last });
  }
  function show(t, last, text) {
    now = slider.value = t;
    change(slider, { "aria-valuetext": text });
    say(shown, `${t} of ${last}`);
    // a button that loses its use keeps its place and its focus
    for (const [one, place] of [[first, 0], [before, 0], [after, last], [final, last], [differ, parts]]) {
      change(one, { "aria-disabled": t === place ? "true" : null });
    }
  }
  return { root, stop, near, resize, show };
}

function makeLegend() {
  const key = (kind, sign, text) => element("span", { class: "player-key" },
    element("span", { class: kind, "aria-hidden": "true" }, sign), ` ${text}`);
  const terms = { c: "criticality", s: "staleness", u: "uncertainty", d: "dependency role" };
  return element("p", { class: "player-legend" },
    element("strong", {}, "The drawing is the truth."),
    key("player-sign player-sign-wrong", "✗", "believed wrongly"),
    key("player-sign player-sign-unknown", "?", "not known"),
    key("player-sign player-sign-ghost", "", "where the agent believes it"),
    key("player-sign player-sign-lens", "", "asked about"),
    key("player-sign player-sign-aim", "", "proposed action"),
    key("player-sign", "↯", "changed by the world"),
    ...Object.entries(terms).map(([term, name]) => key(`player-term player-term-${term}`, term, name)),
    element("span", { class: "player-key" }, "(11): line of the paper’s Algorithm 1"));
}

export default { render };
