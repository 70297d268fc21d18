// The explorer: a setting in the reader's hand, and four plots and a table that follow it.

// The frame of a plot: scales, axes with ticks and units. A plot is drawn for a width of 360 CSS pixels.

const WIDTH = 360;

// A linear scale from values to pixels.
function scale(low, high, from, to) {
  const at = (value) => from + ((value - low) / (high - low)) * (to - from);
  at.low = low;
  at.high = high;
  return at;
}

// Pixels with one decimal, which is finer than a screen shows.
function px(value) {
  return Math.round(value * 10) / 10;
}

// Ticks at the multiples of a step.
function ticks(low, high, step) {
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, i) => Number(((first + i) * step).toFixed(6)));
}

// The ends of an interval [mean, low, high]; a single episode has none, and the mean stands for both.
function ends([mean, low, high]) {
  return [low ?? mean, high ?? mean];
}

// An empty plot under a heading: a picture with a name, its axes and a group for the data.
function plot(height, heading) {
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

// Draw or update an axis: at each value `place(line, text, value)` puts a line across the plot and a number.
function axis(group, values, place) {
  const ticks = keyed(group, values.map(String), () => shape("g", {}, shape("line"), shape("text")));
  values.forEach((value, i) => {
    place(...ticks[i].children, value);
    say(ticks[i].lastChild, value);
  });
}

// The axis at the bottom, and what its numbers mean.
function bottomAxis(axes, { x, values, top, bottom, title }) {
  axis(axes.bottom, values, (line, text, value) => {
    const at = px(x(value));
    change(line, { x1: at, x2: at, y1: top, y2: bottom + 4 });
    change(text, { x: at, y: bottom + 16, "text-anchor": "middle" });
  });
  change(axes.bottomTitle, { x: px((x(x.low) + x(x.high)) / 2), y: bottom + 33, "text-anchor": "middle" });
  sayWithSubscripts(axes.bottomTitle, title);
}

// What the values along the left mean; it stands above them, so that it reads level.
function leftTitle(axes, title) {
  change(axes.leftTitle, { x: 2, y: 12 });
  sayWithSubscripts(axes.leftTitle, title);
}

// The axis at the left.
function leftAxis(axes, { y, values, left, right, title }) {
  axis(axes.left, values, (line, text, value) => {
    const at = px(y(value));
    change(line, { x1: left - 4, x2: right, y1: at, y2: at });
    change(text, { x: left - 8, y: at + 4, "text-anchor": "end" });
  });
  leftTitle(axes, title);
}

// Draw or update one group a policy, in its colour: `make(policy)` gives its parts, which `place(parts,
// reading, i)` puts where they belong.
function eachPolicy(layer, { vocabulary }, readings, make, place, kind = "ew-ink") {
  const names = [...readings.keys()];
  const groups = keyed(layer, names, (name) => {
    const policy = vocabulary.policy(name);
    return shape("g", { class: kind, "data-policy": name, ...ink(policy) }, ...make(policy));
  });
  names.forEach((name, i) => place([...groups[i].children], readings.get(name), i));
}

const whisker = () => shape("line", { class: "ew-interval" });
const leader = () => shape("line", { class: "ew-leader" });
const held = (...parts) => shape("g", {}, ...parts); // moved as one
const moveTo = (node, x, y) => change(node, { transform: `translate(${px(x)} ${px(y)})` });
const between = (line, x1, x2, y1, y2) => change(line, { x1: px(x1), x2: px(x2), y1: px(y1), y2: px(y2) });

// Move labels along one direction as little as possible, until none is nearer to another than `gap`.
function apart(places, gap, low, high) {
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

// The names behind a setting, with what the front end looks up in them all the time.

const LONGEST = 16; // characters of a name beside a mark

// The page's vocabulary, with `policy(name)`, `world(name)` and `protocol(name)`; a policy has a short name.
function openVocabulary(given) {
  const lookup = (items) => (name) => items.find((item) => item.name === name);
  const policies = given.policies.map((policy) => {
    const short = policy.title.replace(/^EnvProbe-|^Simple (?=without)/, "");
    return { ...policy, short: short.length > LONGEST ? `${short.slice(0, LONGEST - 1)}…` : short };
  });
  const [policy, world, protocol] = [policies, given.worlds, given.protocols].map(lookup);
  return { ...given, policies, policy, world, protocol };
}

// Join names as a sentence does.
function listed(names) {
  return names.length < 2 ? (names[0] ?? "none") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

// What the reader has chosen, and how a link says it. A setting is
// {world, protocol, policies, budget, threshold, regime, profile, seeds, horizon}; live, all may change.

// Read a link's fragment. What it does not say, or says of something unknown, stays as it is in `setting`;
// a fragment that is no setting at all (a heading's, say) gives null.
function readFragment(fragment, setting, vocabulary) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const known = Object.entries(READERS).filter(([name]) => given.has(name));
  if (!known.length) return null;
  const changes = known.map(([name, read]) => [name, read(given.get(name), vocabulary)]);
  return { ...setting, ...Object.fromEntries(changes.filter(([, value]) => value !== null)) };
}

const named = (text, choices) => (choices.some((choice) => choice.name === text) ? text : null);
const onScale = (text, values) => (/^\d+(\.\d+)?$/.test(text) && values.includes(Number(text)) ? Number(text) : null);

const READERS = {
  world: (text, { worlds }) => named(text, worlds),
  protocol: (text, { protocols }) => named(text, protocols),
  policies: (text, { policies }) => {
    const chosen = policies.map(({ name }) => name).filter((name) => text.split(",").includes(name));
    return chosen.length ? chosen : null;
  },
  budget: (text, { budgets }) => onScale(text, budgets),
  threshold: (text, { thresholds }) => onScale(text, thresholds),
};

// Write a setting as a fragment that `readFragment` reads back.
function writeFragment(setting) {
  const { world, protocol, policies, budget, threshold } = setting;
  const said = { world, protocol, policies: policies.join(","), budget, threshold };
  const pairs = Object.entries(said).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `#${pairs.join("&").replaceAll("%2C", ",")}`;
}

// Opens the grid that a page carries (grid.py): a function from {world, protocol, policy, budget, threshold}
// to its reading.
function openGrid({ budgets, thresholds, units, rows, readings }) {
  const scaled = (values, unit) => values.map((value) => (value < 0 ? null : value / unit)); // -1: there is none
  return ({ protocol, world, policy, budget, threshold }) => {
    const own = rows[`${protocol}/${world}/${policy}`];
    const at = own[own.length > 1 ? thresholds.indexOf(threshold) : 0][budgets.indexOf(budget)];
    const reading = Object.fromEntries(Object.entries(readings).map(([name, column]) => [name, column[at]]));
    for (const [name, unit] of Object.entries(units)) reading[name] = scaled(reading[name], unit);
    return reading.useful_rate[0] === null ? { ...reading, useful_rate: null } : reading;
  };
}

// Where readings come from: the grid inside the page, which answers at once, or the engine, of which
// JupyterLab's kernel is asked. Either way `ask(setting, others)` leads to `answer(setting, readings, others,
// note)` or `refuse(message)`, the latest setting winning.
function openSource(model, payload, { answer, ...hooks }) {
  if (payload) {
    const grid = openGrid(payload);
    const read = (setting, policies) => new Map(policies.map((policy) => [policy, grid({ ...setting, policy })]));
    const ask = (setting, others) => answer(setting, read(setting, setting.policies), read(setting, others), "");
    return { ask, close() {} };
  }
  const told = (setting, { episodes, readings }, took) => {
    const note = `Recomputed by the engine: ${episodes} episodes, ${Math.round(took)} ms.`;
    answer(setting, new Map(Object.entries(readings)), new Map(), note);
  };
  return openQuestions(model, { ...hooks, answer: told });
}

// Accuracy against task success: one mark a policy with its intervals, and the paper's own points.

const HEIGHT = 300;
const PARETO = { left: 36, right: WIDTH - 12, top: 26, bottom: HEIGHT - 42 };
const LETTER = 6; // pixels, on average
const LIFTS = [10, -10, 22, -22, 34, -34, 46, -46, 58, -58];
const PLACES = LIFTS.flatMap((lift) => [1, -1].map((side) => [side, lift]));

// Returns {root, update(view)}; a view holds `readings` and `others` (policy -> reading), `printed` (the
// paper's points), `vocabulary`, `setting`.
function paretoPlot() {
  const { root, axes, data } = plot(HEIGHT, "Accuracy against success");
  const layers = ["others", "printed", "points", "labels"].map(() => shape("g"));
  data.append(...layers);

  function update(view) {
    const { x, y } = scales(view);
    const spread = ({ low, high }) => ticks(low, high, high - low > 0.55 ? 0.2 : high - low > 0.25 ? 0.1 : 0.05);
    bottomAxis(axes, { x, values: spread(x), ...PARETO, title: "task success (share of episodes)" });
    leftAxis(axes, { y, values: spread(y), ...PARETO, title: "accuracy A_H" });
    [drawOthers, drawPrinted, drawPoints, drawLabels].forEach((draw, i) => draw(layers[i], view, x, y));
  }

  return { root, update };
}

// A close-up of all that is drawn; its ends are multiples of a tenth.
function scales({ readings, others, printed }) {
  const spans = (measure) => {
    const all = [...readings.values(), ...others.values()].flatMap((reading) => reading[measure]);
    return [...all, ...printed.map((point) => point[measure])].filter((value) => value !== null);
  };
  const fit = (measure, from, to) => {
    const values = spans(measure);
    const low = Math.min(0.9, Math.floor(Math.min(...values) * 10 + 1e-9) / 10); // even if all are 1
    return scale(low, Math.max(low + 0.1, Math.ceil(Math.max(...values) * 10 - 1e-9) / 10), from, to);
  };
  return { x: fit("success", PARETO.left, PARETO.right), y: fit("accuracy", PARETO.bottom, PARETO.top) };
}

function drawOthers(layer, view, x, y) {
  const make = (policy) => [shape("title", {}, policy.title), mark(policy, 3.2)];
  const place = ([, outline], { success, accuracy }) => moveTo(outline.parentNode, x(success[0]), y(accuracy[0]));
  eachPolicy(layer, view, view.others, make, place, "ew-other");
}

// A cross in the policy's colour; where the paper prints no success, a stroke at the accuracy's height.
function drawPrinted(layer, { printed, vocabulary }, x, y) {
  const keys = printed.map((point) => `${point.world} ${point.policy}`);
  const marks = keyed(layer, keys, (_, i) => {
    const { policy, source, success } = printed[i];
    const d = success === null ? "M-9 0H9" : "M-4.5-4.5L4.5 4.5M-4.5 4.5L4.5-4.5";
    const title = `The paper's ${vocabulary.policy(policy).title} (${source})`;
    const outline = [shape("title", {}, title), shape("path", { d })];
    const name = shape("text", { x: success === null ? -13 : 8, y: 4 }, "printed");
    change(name, { "text-anchor": success === null ? "end" : "start" });
    return shape("g", { class: "ew-ink ew-printed", ...ink(vocabulary.policy(policy)) }, ...outline, name);
  });
  printed.forEach(({ success, accuracy }, i) => {
    moveTo(marks[i], success === null ? PARETO.right - 10 : x(success), y(accuracy));
  });
}

function drawPoints(layer, view, x, y) {
  const make = (policy) => [whisker(), whisker(), held(mark(policy))];
  eachPolicy(layer, view, view.readings, make, ([across, upright, place], { success, accuracy }) => {
    const [atX, atY] = [x(success[0]), y(accuracy[0])];
    const [left, right] = ends(success);
    const [low, high] = ends(accuracy);
    between(across, x(left), x(right), atY, atY);
    between(upright, atX, atX, y(low), y(high));
    moveTo(place, atX, atY);
  });
}

// Each name takes the first free place near its mark: beside it, then higher and lower, with a line back.
function drawLabels(layer, view, x, y) {
  const at = ({ success, accuracy }) => [x(success[0]), y(accuracy[0])];
  const taken = [...view.readings.values()].map(at).map(([atX, atY]) => (
    { left: atX - 6, right: atX + 6, top: atY - 6, bottom: atY + 6 }
  ));
  const make = (policy) => [leader(), shape("text", {}, policy.short)];
  const place = ([line, text], reading) => {
    const [atX, atY] = at(reading);
    const width = LETTER * text.textContent.length;
    const all = PLACES.map(([side, lift]) => labelBox(atX, atY, width, side, lift));
    const box = all.find((one) => isInside(one) && !taken.some((other) => overlap(one, other))) ?? all[0];
    taken.push(box);
    const [from, toward] = box.side > 0 ? [box.left, "start"] : [box.right, "end"];
    change(text, { x: px(from), y: px(box.bottom - 3), "text-anchor": toward });
    between(line, atX + box.side * 4, from - box.side * 2, atY, (box.top + box.bottom) / 2);
  };
  eachPolicy(layer, view, view.readings, make, place, "ew-ink ew-label");
}

function labelBox(atX, atY, width, side, lift) {
  const near = atX + side * 11;
  const [left, right] = side > 0 ? [near, near + width] : [near - width, near];
  return { side, left, right, top: atY - lift - 6, bottom: atY - lift + 6 };
}

const isInside = (box) =>
  box.left >= PARETO.left && box.right <= WIDTH && box.top >= PARETO.top - 8 && box.bottom <= PARETO.bottom;

const overlap = (one, other) =>
  one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

// Belief accuracy A_t over the horizon: one line a policy, named at its end, and the line of belief collapse.

const CURVES = { left: 36, right: WIDTH - 104, top: 26, bottom: HEIGHT - 42 };
const LABEL_GAP = 12.5;

// Returns {root, update(view)}, as `paretoPlot`.
function curvePlot() {
  const { root, axes, data } = plot(HEIGHT, "Accuracy over time");
  const rule = shape("line", { class: "ew-rule" });
  const ruleName = shape("text", { class: "ew-rule-name" });
  const lines = shape("g");
  data.append(shape("g", {}, rule, ruleName), lines);

  function update(view) {
    const { readings, vocabulary, horizon } = view;
    const x = scale(0, horizon, CURVES.left, CURVES.right);
    const y = scale(0, 1, CURVES.bottom, CURVES.top);
    bottomAxis(axes, { x, values: ticks(0, horizon, stepFor(horizon)), ...CURVES, title: "step t" });
    leftAxis(axes, { y, values: ticks(0, 1, 0.2), ...CURVES, title: "mean accuracy A_t of episodes still running" });
    const collapse = y(vocabulary.collapse);
    between(rule, CURVES.left, CURVES.right, collapse, collapse);
    say(ruleName, `collapse below ${vocabulary.collapse}`);
    change(ruleName, { x: CURVES.left + 5, y: px(collapse) + 13 });
    const lasts = [...readings.values()].map(({ curve }) => lastPoint(curve));
    const heights = apart(lasts.map(({ value }) => y(value)), LABEL_GAP, CURVES.top, CURVES.bottom);
    const make = (policy) => [
      shape("path", { class: policy.filled ? "ew-line" : "ew-line ew-dashed" }),
      leader(),
      held(mark(policy, 4)),
      shape("text", { class: "ew-label" }, policy.short),
    ];
    eachPolicy(lines, view, readings, make, ([path, line, place, text], { curve }, i) => {
      const [endX, endY] = [x(lasts[i].step), y(lasts[i].value)];
      change(path, { d: pathOf(curve, (step) => px(x(step)), (value) => px(y(value))) });
      between(line, endX, CURVES.right + 13, endY, heights[i]);
      moveTo(place, endX, endY);
      change(text, { x: CURVES.right + 15, y: px(heights[i] + 4) });
    });
  }

  return { root, update };
}

// Where no episode is left (the protocol stops at success), there is no mean, and the line ends.
function lastPoint(curve) {
  const step = curve.findLastIndex((value) => value !== null);
  return { step, value: curve[step] };
}

function stepFor(horizon) {
  return [1, 2, 5, 10, 20, 50, 100].find((step) => horizon / step <= 6.5) ?? horizon;
}

// Two plots with one row a policy: when its probes fire, and how many of them were useful.

const ROWS = { left: 96, right: WIDTH - 12, top: 26, bottom: HEIGHT - 42 };
const TALLEST_ROW = 58;

// Returns {root, update(view)}; `place(parts, reading, row, x)` puts a policy's parts into its row.
function rowsPlot(heading, title, bottomTitle, { reach, step, make, place }) {
  const { root, axes, data } = plot(HEIGHT, heading);

  function update(view) {
    const most = reach(view);
    const x = scale(0, most, ROWS.left, ROWS.right);
    bottomAxis(axes, { x, values: ticks(0, most, step(most)), ...ROWS, title: bottomTitle });
    leftTitle(axes, title);
    const height = Math.min(TALLEST_ROW, (ROWS.bottom - ROWS.top) / view.readings.size);
    const top = (i) => ROWS.bottom - (view.readings.size - i) * height;
    const put = (parts, reading, i) => place(parts, reading, { top: top(i), height }, x);
    eachPolicy(data, view, view.readings, make, put);
  }

  return { root, update };
}

// When the probes fire: bars, as high as the share of episodes that probe at a step.
function firesPlot() {
  const make = (policy) => [shape("line", { class: "ew-base" }), shape("path", { class: "ew-bars" }), label(policy)];
  const place = ([base, bars, text], { fires, n }, { top, height }, x) => {
    const bottom = top + height - 2;
    between(base, ROWS.left, ROWS.right, bottom, bottom);
    change(bars, { d: barsOf(fires, n, x, bottom, height - 5) });
    change(text, { x: ROWS.left - 8, y: px(bottom - height / 2 + 5) });
  };
  const title = "episodes that probe at step t (a full row: all)";
  return rowsPlot("When the probes fire", title, "step t", { reach: ({ horizon }) => horizon, step: stepFor, make, place });
}

function barsOf(fires, n, x, bottom, height) {
  const width = px(Math.max(x(1) - x(0) - 1, 0.6));
  const bar = (count, step) =>
    count ? `M${px(x(step) + 0.5)} ${px(bottom)}v${px((-count / n) * height)}h${width}V${px(bottom)}Z` : "";
  return fires.map(bar).join("");
}

// Useful probes: the rate with its interval, and the share of probes of a field probed before.
function ratesPlot() {
  const none = () => shape("text", { class: "ew-none", x: ROWS.left + 6 }, "fires no probe");
  const make = (policy) => [
    shape("line", { class: "ew-repeated" }), whisker(), held(mark(policy)), label(policy), none(),
  ];
  const place = ([again, across, dot, text, nothing], reading, { top, height }, x) => {
    const { useful, useful_rate: rate, repeated } = reading;
    const middle = top + height / 2;
    change(text, { x: ROWS.left - 8, y: px(middle) + 4 });
    change(nothing, { y: px(middle) + 4, display: rate ? "none" : null });
    [again, across, dot].forEach((part) => change(part, { display: rate ? null : "none" }));
    if (!rate) return;
    const at = x(repeated / useful[1]);
    const half = Math.min(9, height / 2 - 1);
    between(again, at, at, middle - half, middle + half);
    between(across, ...ends(rate).map(x), middle, middle);
    moveTo(dot, x(rate[0]), middle);
  };
  const title = "useful (mark, 95% interval) and repeated (upright line)";
  return rowsPlot("Useful and repeated probes", title, "share of probes", { reach: () => 1, step: () => 0.25, make, place });
}

function label(policy) {
  return shape("text", { class: "ew-label", "text-anchor": "end" }, policy.short);
}

// What the reader sets: native controls with labels, so that keyboard and screen reader work as they know.

// Returns {root, update(setting)}; `onChange` is told what the reader changed, as part of a setting.
function controls(vocabulary, live, onChange, start) {
  const parts = [
    choice("World", "world", vocabulary.worlds, onChange),
    choice("Protocol", "protocol", vocabulary.protocols, onChange),
    side("ew-sliders", budgetSlider(vocabulary, onChange), thresholdSlider(vocabulary, live, onChange)),
    policyBoxes(vocabulary, onChange, start),
    live ? engineFields(vocabulary, onChange) : pageNote(vocabulary),
  ];
  const root = element("form", { class: "ew-controls", "aria-label": "Setting" }, ...parts.map((part) => part.root));
  root.addEventListener("submit", (event) => event.preventDefault());
  return { root, update: (setting) => parts.forEach((part) => part.update(setting)) };
}

// Several controls beside each other.
function side(kind, ...parts) {
  const root = element("div", { class: kind }, ...parts.map((part) => part.root));
  return { root, update: (setting) => parts.forEach((part) => part.update(setting)) };
}

// One of a few: radio buttons in a row, with a line on the one chosen.
function choice(legend, name, options, onChange) {
  const group = freshId(`ew-${name}`);
  const inputs = options.map((option) => {
    const input = element("input", { type: "radio", name: group, value: option.name, id: freshId(group), ...KEEPS_KEYS });
    input.addEventListener("change", () => onChange({ [name]: option.name }));
    return input;
  });
  const buttons = options.map(({ title }, i) => (
    element("span", { class: "ew-option" }, inputs[i], element("label", { for: inputs[i].id }, title))
  ));
  const line = element("p", { class: "ew-hint" });
  const row = element("div", { class: "ew-options" }, ...buttons);
  const root = element("fieldset", { class: "ew-choice" }, element("legend", {}, legend), row, line);
  function update(setting) {
    for (const input of inputs) input.checked = input.value === setting[name];
    say(line, options.find((option) => option.name === setting[name])?.line ?? "");
    line.hidden = !line.textContent;
  }
  return { root, update };
}

// What a page without an engine holds, and how to get the rest.
function pageNote({ regimes }) {
  const [held, command] = [element("span"), element("code")];
  function update({ regime, seeds, profile }) {
    const { title } = regimes.find(({ name }) => name === regime);
    say(held, `This page holds regime ${regime}, ${title}, with seeds ${seeds} and the agent profile ${profile}. Others: `);
    say(command, `envprobe reproduce explorer -p regime=${regime === "S2" ? "S3" : "S2"}`);
  }
  return { root: element("p", { class: "ew-hint" }, held, command, ", or this notebook in JupyterLab."), update };
}

// A range input with its label, its value in words, and a hint below.
function slider(labelText, onInput) {
  const id = freshId("ew-slider");
  const input = element("input", { type: "range", id, "aria-describedby": `${id}-hint`, ...KEEPS_KEYS });
  const value = element("output", { for: id });
  const hint = element("p", { class: "ew-hint", id: `${id}-hint` });
  const head = element("div", { class: "ew-slider-head" }, element("label", { for: id }, labelText), value);
  input.addEventListener("input", () => onInput(Number(input.value)));
  return { root: element("div", { class: "ew-slider" }, head, input, hint), input, value, hint };
}

function budgetSlider(vocabulary, onChange) {
  const { root, input, value, hint } = slider("Probe budget B", (budget) => onChange({ budget }));
  function update({ budget, horizon, regime }) {
    const usual = vocabulary.regimes.find(({ name }) => name === regime).budget;
    const text = `${budget} of ${horizon} steps`;
    change(input, { min: 0, max: vocabulary.budgets?.at(-1) ?? horizon, step: 1, "aria-valuetext": text });
    input.value = budget;
    say(value, text);
    say(hint, `The paper's budget for ${regime} is ${usual}.`);
  }
  return { root, update };
}

function thresholdSlider(vocabulary, live, onChange) {
  const { root, input, value, hint } = slider("Base threshold ρ⋆", (threshold) => onChange({ threshold }));
  const { thresholds } = vocabulary;
  change(input, { min: thresholds[0], max: thresholds.at(-1), step: thresholds[1] - thresholds[0] });
  const exact = element("input", { type: "number", step: "any", "aria-label": "Base threshold, any value", ...KEEPS_KEYS });
  onCommit(exact, (text) => onChange({ threshold: text === "" ? null : Number(text) }));
  if (live) value.replaceWith(exact);
  function update({ threshold, policies }) {
    if (threshold === null) return; // an empty field, which the engine refuses in words
    const text = live ? String(threshold) : threshold.toFixed(2);
    change(input, { "aria-valuetext": text });
    input.value = threshold;
    if (document.activeElement !== exact) exact.value = threshold;
    say(value, text);
    const readers = policies.map(vocabulary.policy).filter((policy) => policy.threshold);
    const names = readers.length ? `Used by ${listed(readers.map(({ short }) => short))}.` : "Used by none of these.";
    say(hint, `${names} The paper's is ${vocabulary.threshold}.`);
  }
  return { root, update };
}

// One box a policy, with the mark that it has in every plot; those that are not shown at first are folded.
function policyBoxes(vocabulary, onChange, start) {
  const boxes = vocabulary.policies.map((policy) => {
    const input = element("input", { type: "checkbox", id: freshId("ew-policy"), value: policy.name, ...KEEPS_KEYS });
    input.addEventListener("change", () => {
      const policies = boxes.filter((box) => box.input.checked).map((box) => box.input.value);
      if (policies.length) onChange({ policies });
      else input.checked = true; // something must be compared
    });
    const label = element("label", { for: input.id }, swatch(policy), policy.title);
    return { input, root: element("span", { class: "ew-box", "data-policy": policy.name }, input, label) };
  });
  const legend = element("legend", {}, "Policies to compare");
  const first = ({ input }) => start.policies.includes(input.value);
  const row = (some) => element("div", { class: "ew-boxes" }, ...some.map(({ root }) => root));
  const others = boxes.filter((box) => !first(box));
  const more = element("details", {}, element("summary", {}, `${others.length} more policies`), row(others));
  const root = element("fieldset", { class: "ew-choice" }, legend, row(boxes.filter(first)), more);
  function update({ policies }) {
    for (const { input } of boxes) input.checked = policies.includes(input.value);
    more.open ||= others.some(({ input }) => input.checked);
  }
  return { root, update };
}

// What only an engine can change: regime, horizon, seeds, profile.
function engineFields({ regimes, profiles }, onChange) {
  const pickRegime = (name) => {
    const { horizon, budget } = regimes.find((one) => one.name === name);
    onChange({ regime: name, horizon, budget });
  };
  return side(
    "ew-fields",
    select("Regime", "regime", regimes, ({ name, title }) => `${name}, ${title}`, pickRegime),
    field("Horizon H", "horizon", { type: "number", min: 1, step: 1 }, (text) => onChange({ horizon: Number(text) })),
    field("Seeds", "seeds", { type: "text", spellcheck: "false" }, (text) => onChange({ seeds: text })),
    select("Agent profile", "profile", profiles, ({ name }) => name, (name) => onChange({ profile: name })),
  );
}

// A control below its label, which shows a part of the setting unless the reader is in it.
function labelled(text, name, input) {
  const root = element("div", { class: "ew-field" }, element("label", { for: input.id }, text), input);
  function update({ [name]: value }) {
    if (document.activeElement !== input && input.value !== String(value)) input.value = value;
  }
  return { root, update };
}

function select(text, name, options, told, onPick) {
  const all = options.map((option) => element("option", { value: option.name }, told(option)));
  const input = element("select", { id: freshId("ew-select"), ...KEEPS_KEYS }, ...all);
  input.addEventListener("change", () => onPick(input.value));
  return labelled(text, name, input);
}

function field(text, name, attributes, onSet) {
  const input = element("input", { id: freshId("ew-field"), ...attributes, ...KEEPS_KEYS });
  onCommit(input, onSet);
  return labelled(text, name, input);
}

// Tell of a text when the reader leaves it or presses Enter, which JupyterLab would take for itself.
function onCommit(input, onSet) {
  input.addEventListener("change", () => onSet(input.value));
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    onSet(input.value);
  });
}

// The numbers that the plots show: a table, and one sentence that a screen reader says when they settle.

const SETTLED = 400; // milliseconds without a change, so that a drag is not read aloud tick by tick
const HEAD = ["Policy", "Accuracy A_H", "Task success", "Useful probes", "Repeated", "Probes an episode"];

const digits = (value) => value.toFixed(3);
const interval = ([, low, high]) => (low === null ? "" : `[${digits(low)}, ${digits(high)}]`);

// Returns {root, sentence, update(view), close()}. Roles are spelled out, since a phone shows the table as blocks.
function readout() {
  const caption = element("caption");
  const heads = HEAD.map(() => element("th", { scope: "col", role: "columnheader" }));
  heads.forEach((head, i) => sayWithSubscripts(head, HEAD[i]));
  const body = element("tbody", { role: "rowgroup" });
  const top = element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...heads));
  const table = element("table", { role: "table" }, caption, top, body);
  const sentence = element("p", { class: "ew-sentence", "aria-live": "polite" });
  let timer = 0;

  function update(view) {
    const { readings, vocabulary } = view;
    const names = [...readings.keys()];
    const { n } = readings.values().next().value;
    say(caption, `${where(view)}; ${n} episodes of each policy, the same seeds. In brackets: 95% intervals.`);
    const rows = keyed(body, names, (name) => row(vocabulary.policy(name)));
    names.forEach((name, i) => fill(rows[i], readings.get(name)));
    clearTimeout(timer);
    timer = setTimeout(() => say(sentence, tell(view)), sentence.textContent ? SETTLED : 0);
  }

  return { root: element("div", { class: "ew-readout" }, table), sentence, update, close: () => clearTimeout(timer) };
}

function row(policy) {
  const name = element("th", { scope: "row", role: "rowheader" }, swatch(policy), element("span", {}, policy.title));
  const cell = () => element("td", { role: "cell" }, element("span"), " ", element("small"));
  return element("tr", { role: "row", "data-policy": policy.name }, name, ...HEAD.slice(1).map(cell));
}

function fill(line, reading) {
  const { n, accuracy, success, useful, useful_rate: rate, repeated } = reading;
  const fired = useful[1];
  const told = [
    [digits(accuracy[0]), interval(accuracy)],
    [digits(success[0]), interval(success)],
    rate ? [digits(rate[0]), interval(rate)] : ["–", "no probe"],
    fired ? [digits(repeated / fired), `${repeated} of ${fired}`] : ["–", "no probe"],
    [(fired / n).toFixed(2), ""],
  ];
  told.forEach(([value, note], i) => {
    const [main, , small] = line.children[i + 1].childNodes;
    say(main, value);
    say(small, note);
  });
}

function where({ setting, vocabulary }) {
  const { world, protocol, budget, threshold } = setting;
  return `${vocabulary.world(world).title}, ${vocabulary.protocol(protocol).title}, B = ${budget}, ρ⋆ = ${threshold}`;
}

function tell({ readings, vocabulary, setting: { budget, threshold } }) {
  const best = (measure, leads, alike) => {
    const values = [...readings].map(([name, reading]) => [vocabulary.policy(name).title, reading[measure][0]]);
    const most = Math.max(...values.map(([, value]) => value));
    const names = values.filter(([, value]) => value === most).map(([title]) => title);
    const same = names.length === values.length && names.length > 1;
    return `${same ? alike : `${leads} ${listed(names)}`} (${digits(most)})`;
  };
  const accurate = best("accuracy", "most accurate is", "all policies shown are equally accurate");
  const finished = best("success", "most tasks are completed by", "all complete the same share of tasks");
  return `At budget ${budget} and threshold ${threshold}, ${accurate}, ${finished}.`;
}

// A button that copies a link to the present setting, or shows it where the browser does not let it.
function copyLink(fragment) {
  const button = element("button", { type: "button", class: "ew-button" }, "Copy link to this setting");
  const said = element("span", { role: "status" });
  const shown = element("input", { type: "text", readonly: "", hidden: "", "aria-label": "Link to this setting" });
  button.addEventListener("click", async () => {
    const link = new URL(fragment(), location.href).href;
    try {
      await navigator.clipboard.writeText(link);
      say(said, "Copied.");
    } catch {
      shown.hidden = false;
      shown.value = link;
      shown.select();
      say(said, "Copy it from here:");
    }
  });
  return element("span", { class: "ew-link" }, button, " ", said, shown);
}

function render({ model, el }) {
  const { start, vocabulary: given, grid } = model.get("state");
  const live = model.get("live");
  const vocabulary = openVocabulary(given);
  const plots = [paretoPlot(), curvePlot(), firesPlot(), ratesPlot()];
  const table = readout();
  const message = element("p", { class: "ew-message", role: "alert" });
  const note = element("p", { class: "ew-note" }, live ? "Asking the engine for the first setting." : "");
  let setting = (!live && readFragment(location.hash, start, vocabulary)) || start;
  let timer = 0;

  function answer(asked, readings, others, words) {
    const printed = given.points.filter(({ world, policy }) => world === asked.world && asked.policies.includes(policy));
    const horizon = readings.values().next().value.curve.length - 1;
    const view = { setting: asked, readings, others, printed, vocabulary, horizon };
    plots.forEach((plot) => plot.update(view));
    table.update(view);
    say(message, "");
    say(note, words);
  }

  const refuse = (error) => say(message, error);
  const wait = (seconds) => say(note, `The engine is at work, or busy with another cell: ${seconds} s.`);
  const source = openSource(model, grid, { answer, refuse, wait });

  function set(changes) {
    setting = { ...setting, ...changes };
    panel.update(setting);
    const others = vocabulary.policies.map(({ name }) => name).filter((name) => !setting.policies.includes(name));
    source.ask(setting, others);
    if (live) return;
    clearTimeout(timer);
    timer = setTimeout(() => history.replaceState(history.state, "", writeFragment(setting)), LINK_DELAY);
  }

  const panel = controls(vocabulary, live, set, start);
  const tools = live ? [] : [copyLink(() => writeFragment(setting))];
  const legend = element("p", { class: "ew-hint" }, LEGEND[live ? "live" : "static"]);
  const root = element(
    "div",
    { class: "ew" },
    element("div", { class: "ew-inner" }, panel.root, ...tools, message, table.sentence,
      element("div", { class: "ew-figures" }, ...plots.map((plot) => plot.root)), legend, table.root, note),
  );
  el.append(root);

  // A policy under the pointer stands out in every plot and in the table.
  function highlight({ type, target }) {
    const name = type === "pointerover" ? target.closest("[data-policy]")?.dataset.policy : undefined;
    for (const part of root.querySelectorAll("[data-policy]")) {
      part.classList.toggle("ew-dim", name !== undefined && part.dataset.policy !== name);
    }
  }
  root.addEventListener("pointerover", highlight);
  root.addEventListener("pointerleave", highlight);

  // The event says where the link led: the address may have been written over since.
  function follow({ newURL }) {
    const linked = readFragment(new URL(newURL).hash, start, vocabulary);
    if (!linked) return;
    set(linked);
    reveal(root);
  }

  set({});
  clearTimeout(timer); // the address changes when the reader changes something
  if (!live) {
    addEventListener("hashchange", follow);
    if (readFragment(location.hash, start, vocabulary)) reveal(root);
  }
  return () => {
    removeEventListener("hashchange", follow);
    clearTimeout(timer);
    table.close();
    source.close();
  };
}

const CROSSES =
  "Lines through a mark are 95% intervals. A cross, or a stroke where the paper prints no success, is the " +
  "paper's own value, measured with its language model.";
const LEGEND = { live: CROSSES, static: `${CROSSES} Faint marks are the other policies at the same setting.` };

export default { render };
