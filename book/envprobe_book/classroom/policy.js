// A policy of one's own, in the page: weights or a formula, ranked among all policies of the book as it is moved.
//
// A move shows the reader's dot at once, on few seeds or resamples and marked so; at rest it has all of them. What the
// other policies do is known beforehand (`known`, from Python) or run once and kept.
//
// A classic script, after engine.js, the tools of widgets/shared.js (`EnvProbe.dom`), statistics.js and
// formula.js. The element `.own-policy` holds what it needs as JSON (envprobe_book/classroom/policy_page.py). It
// adds `EnvProbe.ownPolicy`:
//
//   episodes(policy, seeds, {signal, onprogress})   a promise of {world: measures}, one number a seed each
//   written(weights)                                the weights as a formula
//   asLink(policy), fromLink(hash)                  a policy as the end of an address, and back; with `seeds` and
//                                                   `heldOut` where these are not the page's own
//
// A policy is {form: "weights" or "formula", weights, formula, gate, notBefore, last, world, protocol, budget},
// `last` null for all steps and `budget` null for the usual one. The function that `inPython` writes decides
// alike in the lab (tests/test_own_policy.py).
(() => {
  "use strict";

  const TERMS = ["c", "s", "u", "d"];
  const CHUNK = 20; // seeds that are walked between two breaths of the page: some hundredths of a second
  const FIRST = 5; // seeds a world of the first answer, where a rule is walked
  const FEW = 300; // resamples while a control moves
  const REST = 200; // milliseconds after which a hand rests
  const MOST_SEEDS = 2000, LONGEST_LINK = 4000;
  const REFERENCES = ["simple", "periodic", "voi"];
  const { engine, statistics, formula: formulas, dom } = globalThis.EnvProbe;
  const { element, shape, say } = dom;

  const refuse = (sentence) => {
    throw new Error(sentence);
  };
  const total = (numbers) => numbers.reduce((sum, one) => sum + one, 0);

  // policies

  // The weights as a formula whose bits are the engine's: it adds in the order c, s, u, d.
  function written(weights) {
    const parts = TERMS.filter((term) => weights[term] !== 0);
    return parts.map((term) => (weights[term] === 1 ? term : `${weights[term]} * ${term}`)).join(" + ") || "0";
  }

  const textOf = (policy) => (policy.form === "weights" ? written(policy.weights) : policy.formula);

  // Whether the engine's own record can say it; workers then run it at full speed.
  const isPlain = ({ form, notBefore, last }) => form === "weights" && notBefore === 0 && last === null;

  // What a step asks: the first field of the highest value, where that reaches the gate and budget is left.
  function ruleOf(policy) {
    const text = textOf(policy), { value } = formulas.parse(text);
    const byField = formulas.quantities.byField.filter((name) => new RegExp(`\\b${name}\\b`).test(text)); // the rest is not read
    return (episodes, row) => {
      const one = (name) => episodes.of(row, `sight.${name}`);
      const [step, horizon, used, budget] = ["step", "horizon", "used", "budget"].map(one);
      const tooLate = policy.last !== null && horizon - step > policy.last;
      if (used >= budget || step < policy.notBefore || tooLate) return -1;
      const columns = byField.map(one);
      const look = { step, horizon, used, budget };
      let best = -1, highest = -Infinity;
      for (let field = 0, fields = one("fields"); field < fields; field++) {
        byField.forEach((name, at) => (look[name] = columns[at][field]));
        const found = value(look);
        if (found > highest) [best, highest] = [field, found];
      }
      return highest >= policy.gate ? best : -1;
    };
  }

  function conditionOf({ protocol, budget }, world, policy = "simple") {
    return { world, policy, protocol, ...(budget === null ? {} : { budget }) };
  }

  async function walked(policy, world, seeds, { signal, onprogress }) {
    const rule = ruleOf(policy), kept = { accuracy: [], success: [], probes: [], digest: [] };
    for (let first = 0; first < seeds.length; first += CHUNK) {
      await engine.breath();
      if (signal?.aborted) throw engine.overtaken();
      const episodes = await engine.episodes(conditionOf(policy, world), seeds.slice(first, first + CHUNK));
      const found = episodes.walk(rule);
      for (const name of Object.keys(kept)) kept[name].push(...found[name]);
      onprogress?.(Math.min(first + CHUNK, seeds.length) / seeds.length);
    }
    return kept;
  }

  const worldsOf = ({ world }) => (world === "all" ? Object.keys(engine.names().worlds).sort() : [world]);

  async function episodes(policy, seeds, { signal = null, onprogress = null } = {}) {
    const worlds = worldsOf(policy), list = seedsIn(seeds), found = {};
    formulas.parse(textOf(policy));
    if (isPlain(policy)) {
      const own = { weights: policy.weights, threshold: policy.gate };
      const conditions = worlds.map((world) => ({ ...conditionOf(policy, world), ...own }));
      const results = await engine.run(conditions, list, { signal, onprogress: ({ share }) => onprogress?.(share) });
      worlds.forEach((world, at) => (found[world] = results[at]));
      return found;
    }
    for (const [at, world] of worlds.entries()) {
      const told = (share) => onprogress?.((at + share) / worlds.length);
      found[world] = await walked(policy, world, list, { signal, onprogress: told });
    }
    return found;
  }

  // The seeds of a text "FIRST:PAST".
  function seedsIn(text) {
    const match = /^\s*([0-9]{1,9}):([0-9]{1,9})\s*$/.exec(text);
    const [first, past] = match ? [Number(match[1]), Number(match[2])] : [0, 0];
    if (past <= first || past - first > MOST_SEEDS) {
      refuse(`the seeds \`${text.slice(0, 200)}\` are not accepted: write FIRST:PAST, as in 0:220, at most ${MOST_SEEDS} seeds`);
    }
    return Array.from({ length: past - first }, (_, i) => first + i);
  }

  function wholeIn(value, name, least, most) {
    const fits = Number.isInteger(value) && value >= least && value <= most;
    return fits ? value : refuse(`${name} accepts a whole number from ${least} to ${most}, not \`${String(value).slice(0, 200)}\``);
  }

  // A policy with every part as it must be; a link or a form may hold anything.
  function checked(policy, { worlds, protocols, horizon }) {
    const finite = (value, name) => (Number.isFinite(value) ? value : refuse(`${name} accepts a finite number`));
    const one = (value, name, known) => (known.includes(value) ? value : refuse(`${name} accepts ${known.join(", ")}`));
    const or = (value, check) => (value === null ? null : check(value));
    const made = {
      form: one(policy?.form, "the form", ["weights", "formula"]),
      weights: Object.fromEntries(TERMS.map((term) => [term, finite(policy.weights?.[term], `the weight of ${term}`)])),
      formula: String(policy.formula ?? ""),
      gate: finite(policy.gate, "the gate"),
      notBefore: wholeIn(policy.notBefore, "the first step", 0, horizon),
      last: or(policy.last, (value) => wholeIn(value, "the number of last steps", 1, horizon)),
      world: one(policy.world, "the world", ["all", ...Object.keys(worlds)]),
      protocol: one(policy.protocol, "the protocol", Object.keys(protocols)),
      budget: or(policy.budget, (value) => wholeIn(value, "the budget", 0, horizon)),
    };
    formulas.parse(textOf(made));
    return made;
  }

  const asLink = (policy) => `#policy=${encodeURIComponent(JSON.stringify(policy))}`;

  function fromLink(hash) {
    if (!hash.startsWith("#policy=")) return null;
    try {
      if (hash.length > LONGEST_LINK) refuse("it is too long");
      return JSON.parse(decodeURIComponent(hash.slice("#policy=".length)));
    } catch {
      return refuse("the link holds no policy: part of it may be missing");
    }
  }

  // A policy as the lab takes it: a Python function of the same decisions. A formula is a Python expression.
  function inPython(policy, { seeds }) {
    const text = textOf(policy).replace(/\s+/g, " ").trim(), { byField, byStep } = formulas.quantities;
    const used = (names) => names.filter((name) => new RegExp(`\\b${name}\\b`).test(text));
    const steps = used(byStep), fields = used(byField).length ? used(byField) : ["c"];
    const lists = fields.map((name) => `view.${name}.tolist()`).join(", ");
    const when = [`(value == value.max()) & (value >= ${policy.gate})`];
    if (policy.notBefore > 0) when.push(`(view.step >= ${policy.notBefore})`);
    if (policy.last !== null) when.push(`(view.horizon - view.step <= ${policy.last})`);
    const given = [`seeds="${seeds}"`, `protocols="${policy.protocol}"`];
    if (policy.world !== "all") given.push(`worlds="${policy.world}"`);
    if (policy.budget !== null) given.push(`budget=${policy.budget}`);
    return [
      ...(/\bsqrt\b/.test(text) ? ["from math import sqrt"] : []),
      "import numpy as np",
      "from envprobe_book import classroom as lab",
      "",
      '@lab.policy("mine")',
      "def mine(view):",
      ...(steps.length ? [`    ${steps.join(", ")} = ${steps.map((name) => `view.${name}`).join(", ")}`] : []),
      `    fields = ${fields.length > 1 ? `zip(${lists})` : lists}`,
      `    value = np.array([float(${text}) for ${fields.join(", ")} in fields])`,
      `    probe = ${when.join(" & ")}  # the first of these fields`,
      "    return np.where(probe, view.threshold, view.threshold - 1)",
      "",
      `lab.leaderboard(lab.compete(mine, ${given.join(", ")}))`,
    ].join("\n");
  }

  // measures

  // The numbers of all worlds, one after the other, and the world of each.
  function pooled(found, measure) {
    const values = [], strata = [];
    for (const world of Object.keys(found).sort()) {
      for (const value of found[world][measure]) {
        values.push(Number(value));
        strata.push(world);
      }
    }
    return { values, strata };
  }

  // Mean accuracy, success and probes with intervals, as the lab's leaderboard has them.
  function summary(found, resamples = statistics.RESAMPLES) {
    const { values, strata } = pooled(found, "accuracy");
    const known = values.map((value) => !Number.isNaN(value));
    const only = (list) => list.filter((_, at) => known[at]);
    const wins = pooled(found, "success").values, probes = pooled(found, "probes").values;
    return {
      accuracy: statistics.mean(only(values), { strata: only(strata), resamples }),
      success: statistics.wilson(total(wins), wins.length),
      probes: total(probes) / probes.length,
    };
  }

  // What one gains over another in accuracy, in points, on the same seeds: the first of them, where one ran fewer.
  function gain(found, other, resamples = statistics.RESAMPLES) {
    const heads = Object.fromEntries(Object.keys(found).map((world) => (
      [world, { accuracy: other[world].accuracy.slice(0, found[world].accuracy.length) }]
    )));
    const mine = pooled(found, "accuracy"), theirs = pooled(heads, "accuracy").values;
    const differences = mine.values.map((value, at) => 100 * (value - theirs[at]));
    const known = differences.map((value) => !Number.isNaN(value));
    const only = (list) => list.filter((_, at) => known[at]);
    return statistics.mean(only(differences), { strata: only(mine.strata), resamples, reach: 0 });
  }

  // words

  const minus = (text) => text.replace("-", "−");
  const signed = (value, digits = 1) => minus(`${value > 0 ? "+" : ""}${value.toFixed(digits)}`);
  const interval = ({ low, high }, digits) => minus(`[${low.toFixed(digits)}, `) + minus(`${high.toFixed(digits)}]`);
  const points = (one) => `${signed(one.value)} points ${interval(one, 1)}`;
  const looked = (count) => (count === 0 ? "You have not looked at them yet." : `You have looked at them ${["", "once", "twice"][count] ?? `${count} times`}.`);

  function ordinal(place) {
    const ending = place % 100 > 10 && place % 100 < 14 ? "th" : ({ 1: "st", 2: "nd", 3: "rd" }[place % 10] ?? "th");
    return `${place}${ending}`;
  }

  // How one stands to another, by where the interval of the difference lies.
  function stands({ value, low, high }, other) {
    const by = Math.abs(value).toFixed(1);
    if (low > 0) return `${by} points ahead of ${other}`;
    return high < 0 ? `${by} points behind ${other}` : `not clearly apart from ${other}`;
  }

  // drawing

  // What is clicked, or sent, does something.
  function on(event, act, node) {
    node.addEventListener(event, act);
    return node;
  }

  const colourOf = ({ colour, dark }) => `--light:${colour};--dark:${dark}`;
  const NAMED = ["voi", "simple", "periodic", "no-probe"]; // the others are grey until they are asked
  const ROOM = 9, BASE = 46, MINE = 96, FOOT = 118, NEAR = 12; // pixels: of a dot; where others and one's own stand; the axis; from a dot to the pointer

  // Every policy's mean accuracy on one axis, the reader's below with its interval.
  function makeStrip() {
    const picture = shape("svg", { class: "own-picture", role: "img" });
    let scale = null, last = null, placed = []; // of others: [x, y, what they are]
    const asked = shape("text", { class: "own-label own-middle own-asked" });
    picture.addEventListener("pointermove", ({ clientX, clientY }) => {
      const frame = picture.getBoundingClientRect(), far = ([x, y]) => Math.hypot(clientX - frame.left - x, clientY - frame.top - y);
      const [near] = placed.filter((one) => far(one) < NEAR).sort((one, other) => far(one) - far(other));
      asked.textContent = near?.[2] ?? "";
      if (near) dom.change(asked, { x: Math.min(Math.max(near[0], 70), frame.width - 70), y: MINE - 24 });
    });
    picture.addEventListener("pointerleave", () => (asked.textContent = ""));

    // Others keep their places while the reader's moves: the axis only ever grows.
    function show(rivals, mine) {
      last = [rivals, mine];
      const width = Math.max(280, picture.clientWidth || 340);
      const own = mine ? [mine.low, mine.high, mine.value].filter(Number.isFinite) : [];
      const ends = [...Object.values(rivals ?? {}).map(({ accuracy }) => accuracy.value), ...own];
      if (!ends.length) return;
      const [least, most] = [Math.min(...ends) - 0.01, Math.max(...ends) + 0.01];
      scale = scale ? [Math.min(scale[0], least), Math.max(scale[1], most)] : [least, most];
      const x = (value) => 14 + ((width - 28) * (value - scale[0])) / (scale[1] - scale[0]);
      const parts = [shape("line", { class: "own-axis", x1: 6, x2: width - 6, y1: FOOT, y2: FOOT })];
      const step = scale[1] - scale[0] > 0.3 ? 0.1 : 0.05;
      for (let tick = Math.ceil(scale[0] / step) * step; tick < scale[1]; tick += step) {
        parts.push(shape("text", { class: "own-tick", x: x(tick), y: FOOT + 13 }, tick.toFixed(2)));
      }
      parts.push(...others(rivals ?? {}, x, width));
      if (mine) {
        const at = x(mine.value);
        parts.push(shape("line", { class: "own-reach", x1: at, x2: at, y1: BASE - 26, y2: FOOT }));
        if (Number.isFinite(mine.low)) parts.push(shape("line", { class: "own-range-line", x1: x(mine.low), x2: x(mine.high), y1: MINE, y2: MINE }));
        parts.push(shape("circle", { class: "own-you", cx: at, cy: MINE, r: 7 }));
        const isLate = at > width - 60;
        parts.push(shape("text", { class: `own-label own-you-name ${isLate ? "own-end" : ""}`, x: at + (isLate ? -11 : 11), y: MINE - 8 }, "you"));
      }
      picture.setAttribute("viewBox", `0 0 ${width} ${FOOT + 18}`);
      picture.replaceChildren(...parts, asked);
    }

    function others(rivals, x, width) {
      const rows = [], names = [];
      placed = [];
      const sorted = Object.entries(rivals).sort(([, a], [, b]) => a.accuracy.value - b.accuracy.value);
      const dots = sorted.map(([name, { accuracy, title, mark }]) => {
        const at = x(accuracy.value);
        let row = rows.findIndex((end) => at - end >= ROOM);
        if (row < 0) row = rows.push(-Infinity) - 1;
        rows[row] = at;
        const y = BASE + row * ROOM;
        const isNamed = NAMED.includes(name);
        if (isNamed) names.push([at, y, title]);
        const drawn = shape("path", { d: dom.OUTLINES[mark.marker] ?? dom.OUTLINES.o, transform: `translate(${at} ${y}) scale(${isNamed ? 4.6 : 3.2})`,
          class: `own-other ${isNamed ? "own-named" : ""} ${mark.filled ? "" : "own-hollow"}`, "vector-effect": "non-scaling-stroke", style: colourOf(mark) });
        placed.push([at, y, `${title}: ${accuracy.value.toFixed(3)}`]);
        return drawn;
      });
      const ends = [-Infinity, -Infinity, -Infinity]; // of three lines of labels
      const labels = names.flatMap(([at, y, title]) => {
        const wide = title.length * 6.2, left = Math.min(Math.max(at, wide / 2 + 2), width - wide / 2 - 2);
        let line = ends.findIndex((end) => left - wide / 2 > end + 6);
        if (line < 0) line = 2;
        ends[line] = left + wide / 2;
        const top = 11 + 12 * line;
        return [shape("line", { class: "own-lead", x1: at, x2: left, y1: y - 5, y2: top + 2 }), shape("text", { class: "own-label own-middle", x: left, y: top }, title)];
      });
      return [...labels, ...dots];
    }

    new ResizeObserver(() => last && show(...last)).observe(picture);
    return { picture, show, forget: () => (scale = null) };
  }

  function table(rows) {
    const cell = (one) => element("td", {}, `${one.value.toFixed(3)} `, element("span", { class: "own-range" }, interval(one, 3)));
    const heads = ["", "policy", "accuracy", "success", "probes"].map((text) => element("th", { scope: "col" }, text));
    let place = 0;
    return element("table", { class: "own-table" }, element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...rows.map((row) => element("tr", { class: row.own ? "own-mine" : null },
        element("td", {}, row.deployable ? ordinal(++place) : "–"), element("th", { scope: "row" }, row.title),
        cell(row.accuracy), cell(row.success), element("td", {}, row.probes.toFixed(1))))));
  }

  // the widget

  let widgets = 0;

  function attach(root) {
    const config = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const given = { seeds: config.seeds, heldOut: config.heldOut }; // the page's own, which a link may replace
    const prefix = `own-policy-${++widgets}`;
    const kept = new Map(); // what the book's policies did, by setting
    const attempts = []; // {policy, seeds, gain, key}
    const tested = new Map(); // policies that were tested on held-out seeds, with what came of it
    const inputs = {};
    const start = { form: "weights", weights: { c: 1, s: 1, u: 1, d: 1 }, formula: "c + s + u + d", gate: 1.5, notBefore: 0,
      last: null, world: "all", protocol: config.protocol, budget: null };
    let running = null, current = null, isReaders = false; // whether a reader has moved anything, or brought a link

    // controls

    const named = (name, label, input, hint = null) => {
      const id = `${prefix}-${name}`;
      input.id = id;
      inputs[name] = input;
      return element("div", { class: "own-field" }, element("label", { for: id }, label), input, ...(hint ? [element("small", {}, hint)] : []));
    };
    const number = (attributes) => element("input", { type: "number", inputmode: "decimal", ...attributes });
    const choice = (options) => element("select", {}, ...Object.entries(options).map(([value, title]) => element("option", { value }, title)));
    const button = (text, act, attributes = {}) => on("click", act, element("button", { type: "button", ...attributes }, text));

    const meanings = { c: "criticality", s: "staleness", u: "uncertainty", d: "dependency" };
    const slider = (name, label, attributes) => {
      const field = named(name, label, element("input", { type: "range", ...attributes }));
      field.querySelector("label").append(" ", element("output", { for: inputs[name].id }));
      return field;
    };
    const sliders = TERMS.map((term) => slider(term, `${term}, ${meanings[term]}`, { min: -1, max: 3, step: 0.1 }));
    const form = (value, text) => {
      const input = element("input", { type: "radio", name: `${prefix}-form`, value, id: `${prefix}-form-${value}` });
      inputs[value] = input;
      return [input, element("label", { for: input.id }, text)];
    };
    const shownFormula = element("code");
    const weightPart = element("div", { class: "own-weights" }, ...sliders, element("p", { class: "own-written" }, "As a formula: ", shownFormula));
    const fault = element("p", { class: "own-fault", id: `${prefix}-fault`, role: "status" });
    const area = element("textarea", { rows: 2, spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-describedby": fault.id });
    const formulaPart = element("div", {}, named("formula", "Value of probing a field now", area,
      "Python’s expression syntax. c, s, u and d: 0 to 1. confidence: 0 to 100 percent. staleness, step, horizon: steps. used, budget: probes. Also min, max, abs, sqrt and x if y else z."));
    const gatePart = element("div", { class: "own-weights" }, slider("gate", "Gate: ask once the best value reaches", { min: -1, max: 6, step: 0.05 }),
      named("last", "Ask only in so many last steps", number({ min: 1, max: config.horizon, step: 1 }), "Empty: at any step"));
    const settings = element("details", { class: "own-more" }, element("summary", {}, "World, protocol, budget, seeds"), element("div", { class: "own-settings" },
      named("notBefore", "Not before step", number({ min: 0, max: config.horizon, step: 1 })),
      named("budget", "Budget, of every policy", number({ min: 0, max: config.horizon, step: 1 }), `Empty: ${config.budget}`),
      named("world", "World", choice({ all: "all three", ...config.worlds })),
      named("protocol", "Protocol", choice(config.protocols)),
      named("seeds", "Your seeds", element("input", { type: "text", autocomplete: "off", maxlength: 25 }))));
    const examples = config.examples.map(({ title, policy }) => button(title, () => {
      const { world, protocol, budget } = inputs; // the experiment stays the reader's
      isReaders = true;
      say(notice, "");
      show({ ...start, world: world.value, protocol: protocol.value, ...policy, budget: budget.value === "" ? null : budget.valueAsNumber });
      move();
    }));

    // what is shown

    const strip = makeStrip();
    const notice = element("p", { class: "own-notice", role: "alert" });
    const headline = element("p", { class: "own-headline" });
    const status = element("p", { class: "own-result", role: "status", "aria-live": "polite" });
    const stage = element("div", { class: "own-stage" }, headline, strip.picture, status);
    const final = element("div", { class: "own-final" }), results = element("div", { class: "own-results" }), history = element("div", { class: "own-history" });

    function show(policy, seeds = inputs.seeds.value) {
      inputs.seeds.value = seeds;
      for (const term of TERMS) inputs[term].value = policy.weights[term];
      inputs.gate.min = Math.min(-1, policy.gate); // a link may hold any
      inputs.gate.max = Math.max(6, policy.gate);
      for (const name of ["formula", "gate", "notBefore", "world", "protocol"]) inputs[name].value = policy[name];
      for (const name of ["last", "budget"]) inputs[name].value = policy[name] ?? "";
      inputs[policy.form === "formula" ? "formula_" : "weights"].checked = true; // `formula` is the text
    }

    const weightsShown = () => Object.fromEntries(TERMS.map((term) => [term, inputs[term].valueAsNumber]));

    // The policy of the controls with its seeds; an Error says in a sentence what is not accepted.
    function read() {
      const optional = (name) => (inputs[name].value === "" && !inputs[name].validity.badInput ? null : inputs[name].valueAsNumber);
      const policy = checked({
        form: inputs.formula_.checked ? "formula" : "weights", weights: weightsShown(), formula: inputs.formula.value,
        gate: inputs.gate.valueAsNumber, notBefore: inputs.notBefore.valueAsNumber, last: optional("last"),
        world: inputs.world.value, protocol: inputs.protocol.value, budget: optional("budget"),
      }, config);
      const seeds = inputs.seeds.value.trim(), own = new Set(seedsIn(seeds));
      if (seedsIn(config.heldOut).some((seed) => own.has(seed))) refuse(`the seeds ${config.heldOut} are held out for the final; choose others`);
      return { policy, seeds, key: keyOf(policy, seeds) };
    }

    // A policy with its seeds as the end of an address.
    function keyOf(policy, seeds) {
      return asLink({ ...policy, ...(seeds === given.seeds ? {} : { seeds }), ...(config.heldOut === given.heldOut ? {} : { heldOut: config.heldOut }) });
    }

    function sentence(error) {
      const text = String(error.message || error);
      return `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
    }

    // running

    const settingKey = ({ world, protocol, budget }, seeds) => JSON.stringify([world, protocol, budget, seeds]);

    // What the book's policies did in a setting, where that is known.
    function rivalsKnown(policy, seeds) {
      const key = settingKey(policy, seeds);
      const isPages = policy.world === "all" && policy.budget === null && seeds === given.seeds;
      if (!kept.has(key) && isPages && config.known[policy.protocol]) kept.set(key, config.known[policy.protocol]);
      return kept.get(key) ?? null;
    }

    async function rivalsOf(policy, seeds, signal) {
      const known = rivalsKnown(policy, seeds);
      if (known) return known;
      const worlds = worldsOf(policy), names = Object.keys(config.policies);
      const conditions = names.flatMap((name) => worlds.map((world) => conditionOf(policy, world, name)));
      const found = await engine.run(conditions, seedsIn(seeds), { signal });
      const rivals = {};
      for (const [at, name] of names.entries()) {
        await engine.breath();
        if (signal.aborted) throw engine.overtaken();
        const own = Object.fromEntries(worlds.map((world, i) => [world, { accuracy: found[at * worlds.length + i].accuracy }]));
        rivals[name] = { found: own, ...summary(Object.fromEntries(worlds.map((world, i) => [world, found[at * worlds.length + i]]))) };
      }
      kept.set(settingKey(policy, seeds), rivals);
      return rivals;
    }

    const titled = (rivals) => rivals && Object.fromEntries(Object.entries(rivals).map(([name, one]) => [name, { ...one, ...config.policies[name] }]));

    // What came of a policy so far: where it stands among the others, and against those that it is paired with.
    function outcomeOf(found, rivals, resamples) {
      const own = summary(found, resamples);
      if (!rivals) return { ...own, rivals, rank: null, gains: /** @type {Record<string, any>} */ ({}) };
      const able = Object.entries(rivals).filter(([name]) => config.policies[name].deployable);
      const rank = 1 + able.filter(([, one]) => one.accuracy.value > own.accuracy.value).length;
      /** @type {Record<string, any>} */
      const gains = Object.fromEntries(REFERENCES.map((name) => [name, gain(found, rivals[name].found, resamples)]));
      return { ...own, rivals, rank, of: able.length + 1, gains };
    }

    // A control has moved: the dot follows at once, and what is final comes when the hand rests.
    function move() {
      refresh();
      running?.abort();
      const { signal } = (running = new AbortController());
      stage.classList.add("own-old");
      if (fault.textContent) return; // what is shown belongs to the policy before
      run(read(), signal).catch((error) => {
        if (error.name !== "AbortError") say(notice, sentence(error));
      });
    }

    async function run({ policy, seeds, key }, signal) {
      const isStill = () => {
        if (signal.aborted) throw engine.overtaken();
      };
      const started = performance.now(), known = rivalsKnown(policy, seeds);
      await statistics.ready();
      if (!isPlain(policy)) {
        const first = seedsIn(seeds).slice(0, FIRST);
        const few = await episodes(policy, `${first[0]}:${first.at(-1) + 1}`, { signal });
        isStill();
        report(outcomeOf(few, known, FEW), true);
      }
      const found = await episodes(policy, seeds, { signal });
      isStill();
      report(outcomeOf(found, known, FEW), true);
      await new Promise((go) => setTimeout(go, Math.max(0, REST - (performance.now() - started))));
      isStill();
      const outcome = outcomeOf(found, await rivalsOf(policy, seeds, signal), statistics.RESAMPLES);
      isStill();
      current = { policy, seeds, outcome, key };
      const same = (one) => describe(one.policy) === describe(policy) && settingKey(one.policy, one.seeds) === settingKey(policy, seeds);
      if (!attempts.some(same)) attempts.push({ policy, seeds, gain: outcome.gains.simple.value, key });
      if (isReaders) globalThis.history.replaceState(globalThis.history.state, "", key);
      report(outcome, false);
      tell();
    }

    // The final: held-out seeds, for what is shown.
    async function playFinal() {
      const { policy, key } = current;
      if (tested.has(key)) return;
      const pressed = final.querySelector("button"), isFocused = document.activeElement === pressed;
      pressed.disabled = true;
      try {
        const found = await episodes(policy, config.heldOut), worlds = worldsOf(policy);
        const conditions = REFERENCES.flatMap((name) => worlds.map((world) => conditionOf(policy, world, name)));
        const theirs = await engine.run(conditions, seedsIn(config.heldOut));
        tested.set(key, Object.fromEntries(REFERENCES.map((name, at) => (
          [name, gain(found, Object.fromEntries(worlds.map((world, i) => [world, theirs[at * worlds.length + i]])))]
        ))));
      } catch (error) {
        say(notice, sentence(error));
      }
      tell();
      if (isFocused && document.activeElement === document.body) final.querySelector(".own-held").focus({ preventScroll: true }); // the button is another
    }

    // saying

    function refresh() {
      const isFormula = inputs.formula_.checked;
      weightPart.hidden = isFormula;
      formulaPart.hidden = !isFormula;
      for (const name of [...TERMS, "gate"]) {
        const text = minus(inputs[name].value);
        inputs[name].parentElement.querySelector("output").textContent = text;
      }
      shownFormula.textContent = written(weightsShown());
      try {
        read();
        fault.textContent = "";
      } catch (error) {
        fault.textContent = sentence(error);
      }
      area.setAttribute("aria-invalid", String(Boolean(fault.textContent)));
    }

    // The dot, the rank and the numbers; rough ones say so.
    function report(outcome, isRough) {
      stage.classList.remove("own-old");
      stage.classList.toggle("own-rough", isRough);
      const about = isRough ? "~" : "", { accuracy } = outcome;
      const rank = outcome.rank === null ? "" : `${about}${ordinal(outcome.rank)} of ${outcome.of}: `;
      headline.replaceChildren(element("strong", {}, `${rank}accuracy ${about}${accuracy.value.toFixed(3)}`), " ", element("span", { class: "own-range" }, interval(accuracy, 3)));
      strip.show(titled(outcome.rivals), accuracy);
      strip.picture.setAttribute("aria-label", `Mean accuracy of each policy; yours ${accuracy.value.toFixed(3)}.`);
      stage.dataset.state = isRough ? "rough" : "final";
    }

    // What is said once a policy is final.
    function tell() {
      refresh();
      const { policy, seeds, outcome, key } = current, { gains } = outcome;
      const where = worldsOf(policy).length === 1 ? config.worlds[policy.world] : "all three worlds";
      const under = config.protocols[policy.protocol].replace(/^partial/, "with a partial");
      status.textContent = `On ${seedsIn(seeds).length} seeds of ${where}, ${under}, with our simulated agent, you are ` +
        `${stands(gains.voi, "VoI")}, ${stands(gains.simple, "EnvProbe-Simple")} and ${stands(gains.periodic, "Periodic")}. ` +
        `Tasks completed: ${(100 * outcome.success.value).toFixed(0)}%.`;
      status.dataset.outcome = JSON.stringify({ accuracy: outcome.accuracy, success: outcome.success, gains, rank: outcome.rank });
      tellFinal(key, gains);
      const mine = { title: "your policy", own: true, deployable: true, ...outcome };
      const rows = [mine, ...Object.values(titled(outcome.rivals))].sort((a, b) => b.accuracy.value - a.accuracy.value);
      const wide = element("div", { class: "own-scroll", tabindex: 0, role: "region", "aria-label": "All policies" }, table(rows));
      const isOpen = [...results.querySelectorAll("details")].map(({ open }) => open);
      const folds = [
        ["All policies on your seeds, with 95% intervals", wide, element("p", { class: "own-note" }, "Oracles see the truth, which no deployed policy can; they have no rank.")],
        ["The same in Python", element("pre", { tabindex: 0 }, inPython(policy, { seeds }))],
      ];
      results.replaceChildren(...folds.map(([title, ...parts], at) => element("details", isOpen[at] ? { open: "" } : {}, element("summary", {}, title), ...parts)));
      tellAttempts();
    }

    function tellFinal(key, gains) {
      const held = tested.get(key);
      const looks = looked(tested.size);
      const said = held
        ? `On the held-out seeds you are ${stands(held.voi, "VoI")} (${points(held.voi)}; ${points(gains.voi)} on yours), ` +
          `and ${stands(held.simple, "EnvProbe-Simple")} (${points(held.simple)}; ${points(gains.simple)}). ${looks}`
        : `Seeds ${config.heldOut} are held out: a gain that you have searched for is partly luck. Look once, at the end. ${looks}`;
      final.replaceChildren(element("strong", {}, "Beat VoI"), " ",
        button("Play the final with this policy", playFinal, { disabled: held ? "" : null, class: "own-test" }), " ",
        element("span", { class: "own-held", role: "status", tabindex: -1 }, said),
        element("p", { class: "own-note" }, "What weights cannot say: VoI keeps notes of when it last saw each field, learns how fast it changes, and asks late. ",
          element("a", { href: "voi.html" }, "How it does"), " · ", element("a", { href: "optimal-bound.html" }, "How much room is left")));
    }

    function tellAttempts() {
      const { policy, seeds, key } = current;
      const alike = attempts.filter((one) => settingKey(one.policy, one.seeds) === settingKey(policy, seeds)).sort((a, b) => b.gain - a.gain);
      const best = alike.slice(0, 8).map((one) => element("li", {}, element("code", {}, describe(one.policy)), ` ${signed(one.gain)} `,
        on("click", (event) => { event.preventDefault(); isReaders = true; show(one.policy, one.seeds); move(); }, element("a", { href: one.key }, "take up again"))));
      const isOpen = history.querySelector("details")?.open, isFocused = history.contains(document.activeElement);
      history.replaceChildren(
        element("details", isOpen ? { open: "" } : {}, element("summary", {}, `Your attempts: ${alike.length}, the best ${signed(alike[0].gain)} points over EnvProbe-Simple`),
          element("ol", { class: "own-attempts" }, ...best)),
        element("p", { class: "own-note" }, "The address of this page carries your policy: ", element("a", { href: key }, "link to it"), "."));
      if (isFocused) history.querySelector("summary").focus({ preventScroll: true }); // what had the focus is another
    }

    function describe(policy) {
      const steps = [...(policy.notBefore ? [`from step ${policy.notBefore}`] : []), ...(policy.last === null ? [] : [`last ${policy.last} steps`])];
      return [`${textOf(policy).replace(/\s+/g, " ").trim()} ≥ ${policy.gate}`, ...steps].join(", ");
    }

    function fromAddress() {
      try {
        const linked = fromLink(location.hash);
        if (!linked) return;
        const seeds = linked.seeds ?? given.seeds, heldOut = linked.heldOut ?? given.heldOut;
        const own = new Set(seedsIn(seeds));
        if (seedsIn(heldOut).some((seed) => own.has(seed))) refuse(`its seeds ${seeds} and its held-out seeds ${heldOut} share some`);
        const policy = checked(linked, config);
        config.heldOut = heldOut;
        isReaders = true;
        say(notice, "");
        strip.forget();
        show(policy, seeds);
        move();
        root.scrollIntoView({ block: "nearest" });
      } catch (error) {
        say(notice, `This link was not taken up: ${error.message || error}.`);
      }
    }

    const controls = on("submit", (event) => event.preventDefault(), element("form", { class: "own-controls" },
      element("p", { class: "own-examples" }, "Start from: ", ...examples),
      element("fieldset", { class: "own-form" }, element("legend", {}, "What a probe of a field is worth"), ...form("weights", "Weights"), ...form("formula_", "Formula")),
      weightPart, formulaPart, fault, gatePart, settings));
    inputs.formula_.addEventListener("change", () => {
      inputs.formula.value = written(weightsShown()); // so that a reader sees the step from one to the other
    });
    inputs.formula_.value = "formula";
    controls.addEventListener("input", (event) => {
      isReaders = true;
      say(notice, "");
      if (["world", "protocol", "budget", "seeds"].some((name) => inputs[name] === event.target)) strip.forget(); // another axis
      move();
    });
    root.replaceChildren(notice, element("div", { class: "own-board" }, stage, controls), final, results, history);
    show(start, config.seeds);
    move();
    fromAddress();
    globalThis.addEventListener("hashchange", fromAddress);
  }

  globalThis.EnvProbe = Object.assign(globalThis.EnvProbe ?? {}, { ownPolicy: { episodes, written, asLink, fromLink, inPython, summary, gain } });
  if (engine?.available() && statistics && formulas) document.querySelectorAll(".own-policy").forEach(attach);
})();
