// Episodes made in the page: by its engine, what `player.record_pair` makes in Python, value for value.
//
// The engine runs the condition step by step; `lexicon` (player.lexicon) holds what Python alone knows: names,
// titles, the frames of the drawings, and the sentences that both fill in.

const TERMS = ["c", "s", "u", "d"];
const NONE = -1; // as a field or an action: no probe, a wait
const TOP = 5; // as timeline.TOP

// The pair of a setting: {world, policies, seed, regime, protocol, profile, budget, threshold}, as record_pair's
// arguments; null for a budget and a threshold of the condition's own.
async function recordPair(engine, lexicon, setting) {
  const protocol = readProtocol(engine, lexicon, setting.protocol);
  const seen = [];
  for (const name of setting.policies) {
    seen.push(await witness(engine, conditionOf(lexicon, setting, name), BigInt(setting.seed)));
  }
  const frame = lexicon.frames[lexicon.frame_of[setting.world][setting.regime]];
  const scene = makeScene(frame, seen[0].task);
  const runs = seen.map((one, place) => recordRun(lexicon, scene, protocol, setting.policies[place], one));
  const parts = runs.length > 1 ? partingStep(...runs) : null;
  const { world, seed, regime, profile, budget, threshold } = setting;
  return {
    key: `${world}-${protocol.name}-${seed}`,
    about: said(lexicon, "about", {
      world: lexicon.worlds[world], seed, regime, profile, protocol: protocol.title,
      policies: listed([...new Set(runs.map(({ title }) => title))]),
    }),
    world, seed, regime, profile, budget, threshold, scene, runs, parts,
    protocol: protocol.name,
    rules: protocol.title,
    parting: runs.length > 1 ? partingWords(lexicon, runs, parts) : "",
  };
}

// The plain condition of a setting under one of its policies; the threshold is for those that have one.
function conditionOf(lexicon, { world, regime, protocol, profile, budget, threshold }, policy) {
  const gate = lexicon.policies[policy]?.terms ? threshold : null;
  return { world, policy, regime, protocol, profile, budget, threshold: gate };
}

// A protocol's switches, the name that Python gives it, and what pages call it.
function readProtocol(engine, lexicon, text) {
  const switches = engine.protocol(text);
  const [base] = text.split(":");
  const own = engine.protocol(base);
  const turned = Object.keys(own).filter((key) => switches[key] !== own[key]).map((key) => `${key}=${switches[key]}`);
  const rest = turned.length ? `:${turned.join(",")}` : "";
  return { switches, name: base + rest, title: lexicon.protocols[base] + rest };
}

// One episode, and what its logs do not hold: the score's terms before each decision, and the truth after each
// action, before the world moved. That comes from a second engine in which nothing mutates: before each step it
// is put where the first one stands.
async function witness(engine, condition, seed) {
  const episode = await engine.episodes(condition, [seed]);
  const still = await engine.episodes({ ...condition, mutation_rate: 0 }, [seed]);
  const task = (path) => episode.of(0, `task.${path}`);
  const seen = { task, terms: [], acted: [] };
  episode.propose();
  while (episode.record()) {
    episode.sense();
    seen.terms.push(Object.fromEntries(TERMS.map((term) => [term, episode.of(0, `sight.${term}`)])));
    const field = episode.decide();
    still.standAs(episode).advance(field);
    seen.acted.push(still.of(0, "gold"));
    episode.advance(field).propose();
  }
  const { logs, steps } = episode.measures();
  const sight = (name) => episode.of(0, `sight.${name}`);
  const limits = { budget: sight("budget"), threshold: sight("threshold") };
  return Object.assign(seen, limits, { logs, steps: steps[0], reached: episode.of(0, "succeeded") === 1 });
}

// One run as `timeline.record_run` makes it.
function recordRun(lexicon, scene, protocol, name, seen) {
  const { title, terms, answered } = lexicon.policies[name];
  const { steps, budget } = seen;
  const fields = scene.fields.length;
  const lived = [...Array(steps + 1).keys()], decided = lived.slice(0, steps);
  const row = (values, t) => Array.from(values).slice(t * fields, (t + 1) * fields);
  const tables = (log) => lived.map((t) => row(seen.logs[log].values, t));
  const list = (log, times) => times.map((t) => seen.logs[log].values[t]);
  const belief = tables("belief"), gold = tables("gold"), probe = list("probe", decided);
  const ownTerms = Object.fromEntries(TERMS.map((term) => [term, seen.terms.map((at) => row(at[term], 0))]));
  const kept = terms ?? TERMS;
  const score = decided.map((t) => gold[t].map((_, field) => kept.map((term) => ownTerms[term][t][field]).reduce(sum)));
  const compared = list("score", decided);
  const ownScore = terms !== null && compared.some((value, t) => !Number.isNaN(value) && value !== Math.max(...score[t]));
  const right = belief.map((held, t) => held.filter((value, field) => value === gold[t][field]).length);
  const used = lived.map((t) => probe.slice(0, t).filter((field) => field !== NONE).length);
  const acted = seen.acted.map((values) => row(values, 0));
  const { wrong, delay } = protocol.switches;
  const delivered = answered && protocol.switches.answer === "delivered" && wrong === "0" && delay === "0";
  const answer = list("answer", decided);
  // what the agent held when it began to write: an answer is in its table at once
  const held = decided.map((t) => belief[t].map((value, field) => (delivered && probe[t] === field ? answer[t] : value)));
  const run = {
    name, title, budget, steps, belief, gold, right, used, probe, ...ownTerms,
    threshold: terms ? seen.threshold : null,
    terms: kept,
    own_score: ownScore,
    confidence: tables("confidence"),
    staleness: tables("staleness"),
    place: list("place", lived),
    accuracy: right.map((count) => count / fields),
    track: trackOf(seen, protocol.switches, lived),
    action: list("action", decided),
    top: score.map((values, t) => topOf(values, probe[t])),
    moved: decided.map((t) => differing(acted[t], gold[t + 1])),
    world: decided.map((t) => changes(lexicon, scene, acted[t], gold[t + 1]).map(([, text]) => text)),
    wrote: decided.map((t) => (
      changes(lexicon, scene, held[t], belief[t + 1]).map(([field, text]) => [text, belief[t + 1][field] === gold[t + 1][field]])
    )),
  };
  const valid = list("valid", decided), useful = list("useful", decided);
  const told = decided.map((t) => {
    const at = { compared: compared[t], score: score[t], answer: answer[t], valid: valid[t] === 1, useful: useful[t] === 1 };
    return decision(lexicon, scene, protocol, run, seen.threshold, t, at);
  });
  for (const part of ["outcome", "gate", "deed", "reply"]) run[part] = told.map((own) => own[part]);
  const end = said(lexicon, seen.reached ? "reached" : "missed", { right: right[steps], fields });
  return { ...run, brief: [...told.map(({ brief }) => brief), end] };
}

const sum = (one, other) => one + other;

// The protocol's own accuracy, where that is not the share of right fields; a belief that is scored a step later
// has its value one step later.
function trackOf({ logs, steps }, { accuracy, pairing }, lived) {
  if (accuracy === "terminal" && pairing === "same-step") return null;
  const { values } = logs.accuracy;
  const tracked = pairing === "lagged" ? values.slice(1) : values;
  return Array.from(tracked.slice(0, steps + 1), (value) => (Number.isNaN(value) ? null : roundedHalfEven(value * 1e4) / 1e4));
}

function topOf(score, probe) {
  const order = [...score.keys()].sort((one, other) => score[other] - score[one]).slice(0, TOP);
  return probe === NONE || order.includes(probe) ? order : [...order, probe];
}

// What was decided and done at a step, in words, as `timeline._decision` says it.
function decision(lexicon, scene, protocol, run, threshold, t, at) {
  const { replays, answered } = lexicon.policies[run.name];
  const field = run.probe[t], used = run.used[t], { budget, title } = run;
  const asks = field !== NONE, left = used < budget, gated = run.threshold !== null && replays === null;
  const tell = (name, values) => said(lexicon, name, values);
  const action = run.action[t] === NONE ? tell("waits") : scene.actions[run.action[t]];
  const probes = asks ? tell("probes", { field: scene.fields[field] }) : "";
  let then = tell(asks ? "then probe" : "then act");
  const count = tell("count", { used, budget }), gateAt = general(threshold);

  let gate;
  if (gated && !run.own_score) {
    const highest = Math.max(...at.score), reached = highest >= threshold;
    const first = reached && left ? at.score.indexOf(highest) : NONE;
    if (field !== first) then = tell(run.name === "judge" ? "but judge" : "but rule", { does: probes || tell("vetoes") });
    const signs = { sign: reached ? "≥" : "<", less: left ? "<" : "=" };
    gate = tell("gate", { score: fixed(highest, 2), threshold: gateAt, used, budget, then, ...signs });
  } else if (run.own_score) {
    gate = tell("own score", { title, score: fixed(at.compared, 2), threshold: gateAt, then, count });
  } else {
    gate = tell("no score", { title, does: probes || tell("silent"), count });
  }

  if (asks) {
    const deed = tell("put off", { action: run.action[t] === NONE ? "wait" : action });
    const rules = protocol.switches;
    let how = at.useful ? "corrects" : "confirms";
    if (!answered) how = "withheld";
    else if (rules.answer !== "delivered") how = "logged";
    else if (rules.delay !== "0") how = "late";
    else if (rules.wrong !== "0") how = "unsure";
    const words = { said: valueWord(scene, field, at.answer), held: valueWord(scene, field, run.belief[t][field]), steps: rules.delay };
    return { outcome: "probe", gate, deed, brief: probes, reply: tell(how, { field: scene.fields[field], ...words }) };
  }
  let outcome = left || !budget ? "act" : "spent";
  if (gated) outcome = at.compared < threshold ? "below" : left ? "veto" : "spent";
  const waits = run.action[t] === NONE;
  const brief = waits ? action : tell(at.valid ? "acts" : "fails", { action });
  const deed = waits ? tell("wait") : tell(at.valid ? "valid" : "invalid", { action });
  return { outcome, gate, deed, reply: "", brief };
}

// The fields that have another value.
function differing(before, after) {
  return [...after.keys()].filter((field) => before[field] !== after[field]);
}

// The same in words: [field, its name with the old and the new value].
function changes(lexicon, scene, before, after) {
  return differing(before, after).map((field) => {
    const [old, now] = [before, after].map((values) => valueWord(scene, field, values[field]));
    return [field, said(lexicon, "change", { field: scene.fields[field], old, new: now })];
  });
}

// The first step after which two runs of one seed are not the same any more; null if they never part.
function partingStep(one, other) {
  const same = (a, b) => a.every((value, place) => value === b[place]);
  for (let t = 0; t < Math.min(one.steps, other.steps); t++) {
    if (one.probe[t] !== other.probe[t] || one.action[t] !== other.action[t]) return t;
    const tables = ["belief", "gold", "staleness", "confidence"];
    if (!tables.every((name) => same(one[name][t + 1], other[name][t + 1]))) return t;
  }
  return null;
}

function partingWords(lexicon, runs, step) {
  const [one, other] = runs.map(({ brief }) => brief.at(step ?? -1));
  const titles = runs.map(({ title }) => title);
  const how = step === null ? "never" : one === other ? "alike" : "differ";
  return said(lexicon, how, { titles: listed(titles), first: titles[0], second: titles[1], one, other, step });
}

// What a field's value is called; the first word of each list stands for the unknown.
function valueWord(scene, field, value) {
  return scene.words[scene.word_of[field]][value + 1];
}

// A sentence of Python's with its blanks filled in.
function said(lexicon, name, values = {}) {
  return lexicon.said[name].replace(/\{(\w+)\}/g, (_, blank) => String(values[blank]));
}

function listed(items) {
  return items.length > 1 ? `${items.slice(0, -1).join(", ")} and ${items.at(-1)}` : items[0];
}

// Numbers as Python writes them.

// With so many decimals; of two that are equally near the even one, where `toFixed` takes the larger.
function fixed(value, digits) {
  const isTie = Number.isInteger(value * 2 ** (digits + 1)) && !Number.isInteger(value * 2 ** digits);
  return (isTie ? roundedHalfEven(value * 10 ** digits) / 10 ** digits : value).toFixed(digits);
}

// A whole number; of two that are equally near the even one.
function roundedHalfEven(value) {
  const below = Math.floor(value);
  if (value - below !== 0.5) return Math.round(value);
  return below % 2 === 0 ? below : below + 1;
}

// With six digits, as `:g` does.
function general(value) {
  const [digits, power] = value.toExponential(5).split("e");
  if (power >= -4 && power < 6) return String(Number(value.toPrecision(6)));
  return `${Number(digits)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

// The structure of an instance, as it is drawn: a frame with what the instance was drawn with. `task` reads a
// part of the engine's record.

function makeScene(frame, task) {
  const scene = structuredClone(frame);
  FILL[scene.kind](scene, task);
  return scene;
}

const FILL = {
  tools(scene, task) {
    const inside = (set) => [...scene.tools.keys()].filter((tool) => (set >> BigInt(tool)) & 1n);
    const needed = [...inside(task("ancestors")[scene.target]), scene.target];
    const needs = task("needs");
    scene.tools.forEach((tool, number) => {
      tool.needs = inside(needs[number]);
      tool.needed = needed.includes(number);
    });
  },
  rooms(scene, task) {
    const keys = task("key_of_door");
    scene.doors.forEach((door, number) => (door.key = keys[number]));
  },
  graph(scene, task) {
    const ends = task("ends"), keys = task("key_of_edge");
    scene.edges.forEach((edge, number) => {
      edge.ends = [ends[2 * number], ends[2 * number + 1]];
      edge.key = keys[number];
    });
    scene.spots = layered(scene.nodes, scene.edges.map((edge) => edge.ends), task("start"));
    scene.target = task("target");
  },
};

// Places for the nodes of a connected graph, as `player.layered` finds them: x is the distance from the start,
// a column is ordered by where the nodes before it stand.
function layered(nodes, ends, start) {
  const neighbours = Array.from({ length: nodes }, () => new Set());
  for (const [one, other] of ends) {
    neighbours[one].add(other);
    neighbours[other].add(one);
  }
  const spots = Array(nodes).fill(null);
  const height = (node) => {
    const before = [...neighbours[node]].filter((other) => spots[other]).map((other) => spots[other][1]);
    return -before.reduce(sum, 0) / Math.max(before.length, 1);
  };
  for (let column = [start], depth = 0; column.length; depth++) {
    const heights = new Map(column.map((node) => [node, height(node)]));
    column.sort((one, other) => heights.get(one) - heights.get(other) || one - other);
    column.forEach((node, place) => (spots[node] = [depth, (column.length - 1) / 2 - place]));
    const next = new Set(column.flatMap((node) => [...neighbours[node]]));
    column = [...next].filter((node) => !spots[node]);
  }
  return spots;
}

// How far apart two policies end on each default seed of a setting: the paired difference of accuracy, in
// points, first minus second.
async function surveySeeds(engine, lexicon, setting, options) {
  const conditions = setting.policies.map((name) => conditionOf(lexicon, setting, name));
  const { switches } = readProtocol(engine, lexicon, setting.protocol);
  const [begin, past] = engine.names().seeds[setting.regime][switches.seeds];
  const [one, other] = await engine.run(conditions, `${begin}:${past}`, options);
  // ties without the last bits
  const gaps = Array.from(one.accuracy, (value, row) => Number((100 * (value - other.accuracy[row])).toFixed(9)));
  return gaps.map((gap, row) => ({ seed: begin + row, gap }));
}

// Which seed of a survey to show; of ties the lowest.
const PICK = {
  typical(survey) {
    const sorted = [...survey].sort((one, other) => one.gap - other.gap || one.seed - other.seed);
    const median = sorted[Math.floor((sorted.length - 1) / 2)].gap;
    return sorted.find(({ gap }) => gap === median);
  },
  largest: (survey) => survey.reduce((most, one) => (Math.abs(one.gap) > Math.abs(most.gap) ? one : most)),
  random: (survey) => survey[Math.floor(Math.random() * survey.length)],
};

// How rare a seed of a survey is, in words.
function rarity(kind, survey, { seed, gap }, /** @type {string[]} */ [first, second]) {
  const count = survey.length;
  const far = survey.filter((one) => Math.abs(one.gap) >= Math.abs(gap)).length;
  const same = survey.filter((one) => one.gap === gap).length;
  const points = Math.abs(gap).toFixed(1);
  const stands = gap === 0
    ? `${first} and ${second} end level`
    : `${first} ends ${points} points of accuracy ${gap > 0 ? "ahead of" : "behind"} ${second}`;
  const share = gap === 0
    ? `so they do on ${same} of ${count} seeds`
    : `${far} of ${count} seeds are at least as far apart`;
  const chosen = {
    typical: `the median difference over ${count} seeds`,
    largest: `the largest difference over ${count} seeds`,
    random: `drawn at random, 1 of ${count} seeds`,
  };
  return `Seed ${seed}, ${chosen[kind]}: with the simulated agent ${stands}; ${share}.`;
}
