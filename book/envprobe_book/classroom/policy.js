// A policy of one's own, in the page: weights or a formula, run beside all policies of the book.
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
// `last` null for all steps and `budget` null for the usual one. What a policy means is what it means in the lab:
// `lab.formula(text, gate=…, not_before=…, last=…)` gives the same digits (tests/test_own_policy.py).
(() => {
  "use strict";

  const TERMS = ["c", "s", "u", "d"];
  const CHUNK = 20; // seeds that are walked between two breaths of the page: some hundredths of a second
  const MOST_SEEDS = 2000, LONGEST_LINK = 4000;
  const REFERENCES = ["simple", "periodic"];
  const { engine, statistics, formula: formulas, dom } = globalThis.EnvProbe;
  const { element, shape } = dom;

  const refuse = (sentence) => {
    throw new Error(sentence);
  };
  const overtaken = () => new DOMException("Overtaken by a later run.", "AbortError");
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
    const { value } = formulas.parse(textOf(policy));
    const { byField } = formulas.quantities;
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
      if (signal?.aborted) throw overtaken();
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

  // A policy as the lab takes it: two lines of Python.
  function inPython(policy, { seeds }) {
    const quoted = JSON.stringify(textOf(policy).replace(/\s+/g, " ").trim());
    const more = [`gate=${policy.gate}`];
    if (policy.notBefore > 0) more.push(`not_before=${policy.notBefore}`);
    if (policy.last !== null) more.push(`last=${policy.last}`);
    const given = [`seeds="${seeds}"`, `protocols="${policy.protocol}"`];
    if (policy.world !== "all") given.push(`worlds="${policy.world}"`);
    if (policy.budget !== null) given.push(`budget=${policy.budget}`);
    return `mine = lab.formula(${quoted}, "mine", ${more.join(", ")})\nlab.leaderboard(lab.compete(mine, ${given.join(", ")}))`;
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
  function summary(found) {
    const { values, strata } = pooled(found, "accuracy");
    const known = values.map((value) => !Number.isNaN(value));
    const only = (list) => list.filter((_, at) => known[at]);
    const wins = pooled(found, "success").values, probes = pooled(found, "probes").values;
    return {
      accuracy: statistics.mean(only(values), { strata: only(strata) }),
      success: statistics.wilson(total(wins), wins.length),
      probes: total(probes) / probes.length,
    };
  }

  // What one gains over another in accuracy, in points, on the same seeds.
  function gain(found, other) {
    const mine = pooled(found, "accuracy"), theirs = pooled(other, "accuracy").values;
    const differences = mine.values.map((value, at) => 100 * (value - theirs[at]));
    const known = differences.map((value) => !Number.isNaN(value));
    const only = (list) => list.filter((_, at) => known[at]);
    return statistics.mean(only(differences), { strata: only(mine.strata) });
  }

  // drawing

  // What is clicked, or sent, does something.
  function on(event, act, node) {
    node.addEventListener(event, act);
    return node;
  }

  const minus = (text) => text.replace("-", "−");
  const signed = (value) => minus(`${value > 0 ? "+" : ""}${value.toFixed(2)}`);
  const interval = ({ low, high }, digits) => minus(`[${low.toFixed(digits)}, `) + minus(`${high.toFixed(digits)}]`);
  const points = (one) => `${signed(one.value)} points ${interval(one, 2)}`;

  // A mean with its interval on the scale of its column, [least, most].
  function strip(one, [least, most], colour) {
    const at = (value) => 4 + (92 * (value - least)) / Math.max(most - least, 1e-9);
    const line = { x1: at(one.low), x2: at(one.high), y1: 7, y2: 7, stroke: "currentColor" };
    return shape("svg", { class: "own-strip", viewBox: "0 0 100 14", "aria-hidden": "true", style: colour },
      shape("line", line), shape("circle", { cx: at(one.value), cy: 7, r: 3.5, fill: "currentColor" }));
  }

  const colourOf = ({ colour, dark }) => `--light:${colour};--dark:${dark}`;

  function table(rows) {
    const scale = (name) => {
      const known = rows.map((row) => row[name]).filter(({ low }) => Number.isFinite(low));
      return [Math.min(...known.map(({ low }) => low)), Math.max(...known.map(({ high }) => high))];
    };
    const scales = { accuracy: scale("accuracy"), success: scale("success") };
    const cell = (row, name) =>
      element("td", {}, element("span", {}, `${row[name].value.toFixed(3)} `), element("span", { class: "own-range" }, interval(row[name], 3)),
        strip(row[name], scales[name], colourOf(row.mark)));
    const heads = ["policy", "accuracy", "success", "probes"].map((text) => element("th", { scope: "col" }, text));
    return element("table", { class: "own-table" }, element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...rows.map((row) =>
        element("tr", { class: row.own ? "own-mine" : null }, element("th", { scope: "row" }, row.title),
          cell(row, "accuracy"), cell(row, "success"), element("td", {}, row.probes.toFixed(1))))));
  }

  // Every attempt's gain, and the best so far as a step line.
  function curve(gains) {
    const width = 320, height = 130, left = 40, bottom = 24;
    const low = Math.min(0, ...gains), high = Math.max(0, ...gains), range = high - low || 1;
    const x = (number) => left + ((width - left - 14) * number) / Math.max(1, gains.length - 1) + 4;
    const y = (value) => 10 + ((height - bottom - 16) * (high - value)) / range;
    let best = -Infinity, path = "";
    gains.forEach((value, at) => {
      best = Math.max(best, value);
      path += at === 0 ? `M${x(0)} ${y(best)}` : `H${x(at)}V${y(best)}`;
    });
    const label = (text, attributes) => shape("text", { "font-size": 11, fill: "currentColor", ...attributes }, text);
    const told = `Gain of ${gains.length} attempts over EnvProbe-Simple in points; the best is ${signed(best)}.`;
    return shape("svg", { class: "own-curve", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": told },
      shape("line", { x1: left, x2: width - 4, y1: y(0), y2: y(0), stroke: "currentColor", "stroke-dasharray": "3 3", opacity: 0.6 }),
      shape("path", { d: path, class: "own-best" }),
      ...gains.map((value, at) => shape("circle", { cx: x(at), cy: y(value), r: 4, class: "own-dot" }, shape("title", {}, `attempt ${at + 1}: ${signed(value)}`))),
      label(signed(high), { x: left - 4, y: y(high) + 4, "text-anchor": "end" }),
      ...(low < high ? [label(signed(low), { x: left - 4, y: y(low) + 4, "text-anchor": "end" })] : []),
      label("attempts, in order", { x: width - 4, y: height - 6, "text-anchor": "end" }));
  }

  // the widget

  let widgets = 0;

  function attach(root) {
    const config = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const given = { seeds: config.seeds, heldOut: config.heldOut }; // the page's own, which a link may replace
    const prefix = `own-policy-${++widgets}`;
    const cache = new Map(); // what the book's policies did, by setting
    const attempts = []; // {policy, seeds, gain, key}
    const tested = new Map(); // policies that were tested on held-out seeds, with what came of it
    const inputs = {};
    let running = null, current = null;

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
    const sliders = TERMS.map((term) => {
      const field = named(term, `${term}, ${meanings[term]}`, element("input", { type: "range", min: -1, max: 3, step: 0.1 }));
      field.querySelector("label").append(" ", element("output", { for: inputs[term].id }));
      return field;
    });
    const form = (value, text) => {
      const input = element("input", { type: "radio", name: `${prefix}-form`, value, id: `${prefix}-form-${value}` });
      inputs[value] = input;
      return [input, element("label", { for: input.id }, text)];
    };
    const shownFormula = element("code");
    const weightPart = element("div", { class: "own-weights" }, ...sliders, element("p", { class: "own-written" }, "As a formula: ", shownFormula));
    const fault = element("p", { class: "own-fault", id: `${prefix}-fault`, role: "status" });
    const area = element("textarea", { rows: 3, spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-describedby": fault.id });
    const formulaPart = element("div", {}, named("formula", "Value of probing a field now", area,
      "Python’s expression syntax. c, s, u and d: 0 to 1. confidence: 0 to 100 percent. staleness, step, horizon: steps. used, budget: probes. Also min, max, abs, sqrt and x if y else z."));
    const settings = element("div", { class: "own-settings" },
      named("gate", "Gate: probe from this value on", number({ step: "any" })),
      named("notBefore", "Not before step", number({ min: 0, max: config.horizon, step: 1 })),
      named("last", "Only this many last steps", number({ min: 1, max: config.horizon, step: 1 }), "Empty: all of them"),
      named("budget", "Budget, of every policy", number({ min: 0, max: config.horizon, step: 1 }), `Empty: ${config.budget}`),
      named("world", "World", choice({ all: "all three", ...config.worlds })),
      named("protocol", "Protocol", choice(config.protocols)),
      named("seeds", "Your seeds", element("input", { type: "text", autocomplete: "off", maxlength: 25 })));
    const bar = element("progress", { max: 1, value: 0, "aria-label": "Episodes that were run", hidden: "" });
    const status = element("p", { class: "own-result", role: "status", "aria-live": "polite" });
    const results = element("div", { class: "own-results" });
    const history = element("div", { class: "own-history" });
    const runButton = element("button", { type: "submit", class: "own-run" }, "Run"); // so that Enter in a field runs, too
    const moved = element("p", { class: "own-moved", role: "status", hidden: "" }, "The controls have moved on: what stands below is the run before. Press Run.");
    const examples = config.examples.map(({ title, policy }) => button(title, () => {
      const { world, protocol } = inputs; // the experiment stays the reader's
      show({ ...start, world: world.value, protocol: protocol.value, ...policy });
      run();
    }));
    const start = { form: "weights", weights: { c: 1, s: 1, u: 1, d: 1 }, formula: "c + s + u + d", gate: 1.5, notBefore: 0,
      last: null, world: "all", protocol: config.protocol, budget: null };

    function show(policy, seeds = inputs.seeds.value) {
      inputs.seeds.value = seeds;
      for (const term of TERMS) inputs[term].value = policy.weights[term];
      for (const name of ["formula", "gate", "notBefore", "world", "protocol"]) inputs[name].value = policy[name];
      for (const name of ["last", "budget"]) inputs[name].value = policy[name] ?? "";
      inputs[policy.form === "formula" ? "formula_" : "weights"].checked = true; // `formula` is the text
      refresh();
    }

    function weightsShown() {
      return Object.fromEntries(TERMS.map((term) => [term, inputs[term].valueAsNumber]));
    }

    // The policy of the controls; an Error says in a sentence what is not accepted.
    function read() {
      const optional = (name) => (inputs[name].value === "" && !inputs[name].validity.badInput ? null : inputs[name].valueAsNumber);
      return checked({
        form: inputs.formula_.checked ? "formula" : "weights", weights: weightsShown(), formula: inputs.formula.value,
        gate: inputs.gate.valueAsNumber, notBefore: inputs.notBefore.valueAsNumber, last: optional("last"),
        world: inputs.world.value, protocol: inputs.protocol.value, budget: optional("budget"),
      }, config);
    }

    function refresh() {
      const isFormula = inputs.formula_.checked;
      weightPart.hidden = isFormula;
      formulaPart.hidden = !isFormula;
      for (const [at, term] of TERMS.entries()) sliders[at].querySelector("output").textContent = minus(inputs[term].value);
      shownFormula.textContent = written(weightsShown());
      let key = null; // what is not accepted is not what ran
      try {
        seedsIn(inputs.seeds.value);
        key = keyOf(read(), inputs.seeds.value.trim());
        fault.textContent = "";
      } catch (error) {
        fault.textContent = sentence(error);
      }
      // what is shown belongs to the run before as soon as a control has another value
      const isMoved = current !== null && key !== current.key;
      moved.hidden = !isMoved;
      for (const part of [status, results]) part.classList.toggle("own-stale", isMoved);
      area.setAttribute("aria-invalid", String(Boolean(fault.textContent)));
      runButton.disabled = Boolean(fault.textContent);
    }

    // A policy with its seeds as the end of an address.
    function keyOf(policy, seeds) {
      return asLink({ ...policy, ...(seeds === given.seeds ? {} : { seeds }), ...(config.heldOut === given.heldOut ? {} : { heldOut: config.heldOut }) });
    }

    function sentence(error) {
      const text = String(error.message || error);
      return `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
    }

    async function rivalsOf(policy, seeds, { signal, onprogress }) {
      const key = JSON.stringify([policy.world, policy.protocol, policy.budget, seeds]);
      if (cache.has(key)) return cache.get(key);
      const worlds = worldsOf(policy), names = Object.keys(config.policies);
      const conditions = names.flatMap((name) => worlds.map((world) => conditionOf(policy, world, name)));
      const found = await engine.run(conditions, seedsIn(seeds), { signal, onprogress: ({ share }) => onprogress(share) });
      const rivals = {};
      for (const [at, name] of names.entries()) {
        await engine.breath();
        if (signal.aborted) throw overtaken();
        const own = Object.fromEntries(worlds.map((world, i) => [world, found[at * worlds.length + i]]));
        rivals[name] = { found: own, ...summary(own) };
      }
      cache.set(key, rivals);
      return rivals;
    }

    // Run a policy and the book's on some seeds; a later run overtakes an earlier one.
    async function compete(policy, seeds) {
      running?.abort();
      const { signal } = (running = new AbortController());
      bar.hidden = false;
      bar.value = 0;
      status.textContent = "Running.";
      try {
        await statistics.ready();
        const found = await episodes(policy, seeds, { signal, onprogress: (share) => (bar.value = 0.4 * share) });
        const rivals = await rivalsOf(policy, seeds, { signal, onprogress: (share) => (bar.value = 0.4 + 0.5 * share) });
        const gains = Object.fromEntries(REFERENCES.map((name) => [name, gain(found, rivals[name].found)]));
        if (signal.aborted) throw overtaken();
        return { ...summary(found), gains, rivals, found };
      } finally {
        if (!signal.aborted) bar.hidden = true;
      }
    }

    async function run() {
      let policy, seeds;
      try {
        seeds = inputs.seeds.value.trim();
        const own = new Set(seedsIn(seeds)), shared = seedsIn(config.heldOut).filter((seed) => own.has(seed));
        if (shared.length) refuse(`the seeds ${config.heldOut} are held out for the test at the end; choose others`);
        policy = read();
        const outcome = await compete(policy, seeds);
        const key = keyOf(policy, seeds);
        current = { policy, seeds, outcome, key };
        if (attempts.every((one) => one.key !== key)) attempts.push({ policy, seeds, gain: outcome.gains.simple.value, key });
        globalThis.history.replaceState(null, "", key);
        report();
      } catch (error) {
        if (error.name !== "AbortError") status.textContent = sentence(error);
      }
    }

    async function testOnce() {
      const { policy, key } = current;
      if (tested.has(key)) return;
      try {
        const outcome = await compete(policy, config.heldOut);
        tested.set(key, outcome.gains);
        report();
      } catch (error) {
        if (error.name !== "AbortError") status.textContent = sentence(error);
      }
    }

    function looks() {
      if (tested.size === 0) return "at which you have not looked.";
      return `at which you have looked ${tested.size === 1 ? "once" : `${tested.size} times`}, with other policies.`;
    }

    function report() {
      refresh();
      const { policy, seeds, outcome, key } = current;
      const count = `${seedsIn(seeds).length} seeds in ${worldsOf(policy).length === 1 ? config.worlds[policy.world] : "all three worlds"}`;
      status.textContent = `Accuracy ${outcome.accuracy.value.toFixed(3)}, success ${outcome.success.value.toFixed(3)}, on ${count}, ` +
        `with our simulated agent. Against EnvProbe-Simple ${points(outcome.gains.simple)} of accuracy; against Periodic ${points(outcome.gains.periodic)}.`;
      status.dataset.outcome = JSON.stringify({ accuracy: outcome.accuracy, success: outcome.success, gains: outcome.gains });
      const mine = { title: "your policy", own: true, mark: config.mark, ...outcome };
      const others = Object.entries(outcome.rivals).map(([name, found]) => ({ ...found, ...config.policies[name], own: false }));
      const rows = [mine, ...others].sort((a, b) => b.accuracy.value - a.accuracy.value);
      const held = tested.get(key);
      const heldText = held
        ? `Against EnvProbe-Simple: ${points(outcome.gains.simple)} on your seeds, ${points(held.simple)} on the held-out seeds ${config.heldOut}; ` +
          `against Periodic ${points(outcome.gains.periodic)}, then ${points(held.periodic)}.`
        : `Seeds ${config.heldOut}, ${looks()} Look once, at the end: a gain that you have searched for is partly luck.`;
      const wide = element("div", { class: "own-scroll", tabindex: 0, role: "region", "aria-label": "All policies" }, table(rows));
      results.replaceChildren(
        element("details", { open: "" }, element("summary", {}, "All policies on your seeds, by accuracy, with 95% intervals"), wide,
          element("p", { class: "own-note" }, "Oracles see the truth, which no deployed policy can.")),
        element("p", {}, button("Test once on held-out seeds", testOnce, { disabled: held ? "" : null, class: "own-test" }), " ",
          element("span", { class: "own-held", role: "status" }, heldText)),
        element("details", {}, element("summary", {}, "The same in the lab, digit for digit"), element("pre", { tabindex: 0 }, inPython(policy, { seeds }))),
      );
      const setting = (one) => JSON.stringify([one.policy.world, one.policy.protocol, one.policy.budget, one.seeds]);
      const alike = attempts.filter((one) => setting(one) === setting(current));
      history.replaceChildren(
        element("h3", {}, "Your attempts"),
        element("p", { class: "own-note" }, "Gain in accuracy over EnvProbe-Simple, in points, in this world, protocol, budget and seeds; the line is the best so far."),
        curve(alike.map((one) => one.gain)),
        element("ol", { class: "own-attempts" }, ...alike.map((one) =>
          element("li", {}, element("code", {}, describe(one.policy)), ` ${signed(one.gain)} `,
            on("click", (event) => { event.preventDefault(); show(one.policy, one.seeds); run(); }, element("a", { href: one.key }, "take up again"))))),
        element("p", {}, "The address of this page now carries your policy: ", element("a", { href: key }, "link to it"), "."),
      );
    }

    function describe(policy) {
      const times = [...(policy.notBefore ? [`from step ${policy.notBefore}`] : []), ...(policy.last === null ? [] : [`last ${policy.last} steps`])];
      return [`${textOf(policy).replace(/\s+/g, " ").trim()} ≥ ${policy.gate}`, ...times].join(", ");
    }

    function fromAddress() {
      try {
        const linked = fromLink(location.hash);
        if (linked) {
          const seeds = linked.seeds ?? given.seeds, heldOut = linked.heldOut ?? given.heldOut;
          const own = new Set(seedsIn(seeds));
          if (seedsIn(heldOut).some((seed) => own.has(seed))) refuse(`its seeds ${seeds} and its held-out seeds ${heldOut} share some`);
          config.heldOut = heldOut;
          show(checked(linked, config), seeds);
          root.scrollIntoView({ block: "nearest" });
        }
      } catch (error) {
        status.textContent = `This link was not taken up: ${error.message || error}.`;
      }
    }

    const controls = on("submit", (event) => { event.preventDefault(); if (!runButton.disabled) run(); }, element("form", { class: "own-controls" },
      element("fieldset", { class: "own-form" }, element("legend", {}, "What a probe of a field is worth"), ...form("weights", "Weights"), ...form("formula_", "Formula")),
      weightPart, formulaPart, settings, fault,
      element("p", { class: "own-buttons" }, runButton)));
    inputs.formula_.addEventListener("change", () => {
      inputs.formula.value = written(weightsShown()); // so that a reader sees the step from one to the other
    });
    inputs.formula_.value = "formula";
    controls.addEventListener("input", refresh);
    controls.addEventListener("change", refresh);
    root.replaceChildren(controls, element("p", { class: "own-examples" }, "Things to try: ", ...examples), bar, moved, status, results, history);
    show(start, config.seeds);
    fromAddress();
    globalThis.addEventListener("hashchange", fromAddress);
  }

  globalThis.EnvProbe = Object.assign(globalThis.EnvProbe ?? {}, { ownPolicy: { episodes, written, asLink, fromLink, inPython, summary, gain } });
  if (engine?.available() && statistics && formulas) document.querySelectorAll(".own-policy").forEach(attach);
})();
