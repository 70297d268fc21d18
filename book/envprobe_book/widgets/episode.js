// Episodes in words and as they are drawn: the one place that tells what happened in an episode.
//
// What it tells of are logs: arrays by time and field. They come from Python (`player.record_pair`) or from the
// page's engine (`recordPair`), and `tellPair` makes of both what the player shows. `lexicon` (player.lexicon)
// holds the labels that Python alone knows: names, titles, words for values, the frames of the drawings.

const TERMS = ["c", "s", "u", "d"];
const NONE = -1; // as a field or an action: no probe, a wait
const TOP = 5; // fields whose scores are drawn at a step; the probed one is added where it is none of them
const OUTCOMES = { // how the gate decided
  probe: "probe",
  below: "below threshold: act",
  spent: "budget spent: act",
  veto: "probe vetoed: act",
  act: "act",
};
const BY_FIELD = ["belief", "gold", "confidence", "staleness"];
const BY_STEP = ["probe", "answer", "action", "valid", "useful", "score"];

// The pair of a setting: {world, policies, seed, regime, protocol, profile, budget, threshold}, as record_pair's
// arguments; null for a budget and a threshold of the condition's own.
async function recordPair(engine, lexicon, setting) {
  const { policies, protocol, ...rest } = setting;
  const rules = readProtocol(engine, lexicon, protocol);
  const seen = [];
  for (const name of policies) {
    seen.push(await witness(engine, lexicon, conditionOf(lexicon, setting, name), BigInt(setting.seed)));
  }
  return tellPair(lexicon, { ...rest, ...rules, task: seen[0].task, runs: seen.map(({ run }) => run) });
}

// What is told of recorded episodes. `recorded` is as `record_pair` gives it.
function tellPair(lexicon, recorded) {
  const { world, regime, seed, profile, protocol, rules } = recorded;
  const scene = makeScene(lexicon.frames[lexicon.frame_of[world][regime]], recorded.task);
  const runs = recorded.runs.map((logs) => tellRun(scene, recorded.switches, logs));
  const parts = runs.length > 1 ? partingStep(...runs) : null;
  const policies = listed([...new Set(runs.map(({ title }) => title))]);
  return {
    ...recorded, scene, runs, parts,
    key: `${world}-${protocol}-${seed}`,
    about: `${lexicon.worlds[world]}, seed ${seed}: ${policies} in ${regime} under protocol ${rules}; simulated agent, profile ${profile}`,
    parting: runs.length > 1 ? partingWords(runs, parts) : "",
  };
}

// The plain condition of a setting under one of its policies; the threshold is for those that have one.
function conditionOf(lexicon, { world, regime, protocol, profile, budget, threshold }, policy) {
  const gate = lexicon.policies[policy]?.kept ? threshold : null;
  return { world, policy, regime, protocol, profile, budget, threshold: gate };
}

// A protocol's switches, the name that Python gives it, and what pages call it.
function readProtocol(engine, lexicon, text) {
  const switches = engine.protocol(text);
  const [base] = text.split(":");
  const own = engine.protocol(base);
  const turned = Object.keys(own).filter((key) => switches[key] !== own[key]).map((key) => `${key}=${switches[key]}`);
  const rest = turned.length ? `:${turned.join(",")}` : "";
  return { switches, protocol: base + rest, rules: lexicon.protocols[base] + rest };
}

// One episode's logs as Python hands them over, with what the engine's do not hold: the score's terms before each
// decision, and the truth after each action, before the world moved. That comes from a second engine in which
// nothing mutates: before each step it is put where the first one stands.
async function witness(engine, lexicon, condition, seed) {
  const episode = await engine.episodes(condition, [seed]);
  const still = await engine.episodes({ ...condition, mutation_rate: 0 }, [seed]);
  const { fields } = episode;
  const row = (values, t = 0) => Array.from(values).slice(t * fields, (t + 1) * fields);
  const terms = [], acted = [];
  episode.propose();
  while (episode.record()) {
    episode.sense();
    terms.push(TERMS.map((term) => row(episode.of(0, `sight.${term}`))));
    const field = episode.decide();
    still.standAs(episode).advance(field);
    acted.push(row(still.of(0, "gold")));
    episode.advance(field).propose();
  }
  const { logs, steps: [steps] } = episode.measures();
  const lived = [...Array(steps + 1).keys()], decided = lived.slice(0, steps);
  const sight = (name) => episode.of(0, `sight.${name}`);
  const flat = (found) => (typeof found === "object" ? Array.from(/** @type {any} */ (found)) : [found]);
  const { drawn_with: parts } = lexicon.frames[lexicon.frame_of[condition.world][condition.regime]];
  const told = lexicon.policies[condition.policy];
  const run = {
    name: condition.policy, ...told, terms, acted, steps,
    budget: sight("budget"), threshold: told.kept ? sight("threshold") : null, reached: episode.of(0, "succeeded") === 1,
    ...Object.fromEntries(BY_FIELD.map((log) => [log, lived.map((t) => row(logs[log].values, t))])),
    ...Object.fromEntries(["place", "accuracy"].map((log) => [log, lived.map((t) => logs[log].values[t])])),
    ...Object.fromEntries(BY_STEP.map((log) => [log, decided.map((t) => logs[log].values[t])])),
  };
  for (const log of ["valid", "useful"]) run[log] = run[log].map((value) => value === 1);
  return { run, task: Object.fromEntries(parts.map((part) => [part, flat(episode.of(0, `task.${part}`))])) };
}

// One run's logs with what is told of it: of each time `right` (fields believed rightly), `accuracy` (their share),
// `used` (probes fired before), `track` (the protocol's own accuracy; null where that is the share) and `brief`; of
// each step `c s u d` by field, `top` (fields by score), `moved` (fields that the world changed), what `decision`
// says, `world` (what changed) and `wrote` (what the agent changed in its table, and whether that is true).
function tellRun(scene, switches, logs) {
  const { steps, belief, gold, probe, acted, answered } = logs;
  const lived = [...Array(steps + 1).keys()], decided = lived.slice(0, steps);
  const terms = Object.fromEntries(TERMS.map((term, at) => [term, logs.terms.map((byTerm) => byTerm[at])]));
  const kept = logs.kept ?? TERMS;
  const score = decided.map((t) => gold[t].map((_, field) => kept.map((term) => terms[term][t][field]).reduce(sum)));
  const own = (t) => isNumber(logs.score[t]) && logs.score[t] !== Math.max(...score[t]);
  const right = belief.map((held, t) => held.filter((value, field) => value === gold[t][field]).length);
  const delivered = answered && switches.answer === "delivered" && switches.wrong === "0" && switches.delay === "0";
  // what the agent held when it began to write: an answer is in its table at once
  const held = decided.map((t) => belief[t].map((value, field) => (delivered && probe[t] === field ? logs.answer[t] : value)));
  const run = {
    ...logs, ...terms, right,
    terms: kept,
    compares: logs.score,
    threshold: logs.kept ? logs.threshold : null,
    own_score: logs.kept !== null && decided.some(own),
    used: lived.map((t) => probe.slice(0, t).filter((field) => field !== NONE).length),
    accuracy: right.map((count) => count / scene.fields.length),
    track: trackOf(logs, switches, lived),
    top: score.map((values, t) => topOf(values, probe[t])),
    moved: decided.map((t) => differing(acted[t], gold[t + 1])),
    world: decided.map((t) => changes(scene, acted[t], gold[t + 1]).map(([, text]) => text)),
    wrote: decided.map((t) => (
      changes(scene, held[t], belief[t + 1]).map(([field, text]) => [text, belief[t + 1][field] === gold[t + 1][field]])
    )),
  };
  const told = decided.map((t) => decision(scene, switches, run, t, score[t]));
  for (const part of ["outcome", "gate", "deed", "reply"]) run[part] = told.map((one) => one[part]);
  const end = `ends with ${right[steps]} of ${scene.fields.length} beliefs right; the goal was ${logs.reached ? "" : "not "}reached`;
  return { ...run, brief: [...told.map(({ brief }) => brief), end] };
}

const sum = (one, other) => one + other;
const isNumber = (value) => typeof value === "number" && !Number.isNaN(value);

// The protocol's own accuracy, where that is not the share of right fields; a belief that is scored a step later
// has its value one step later.
function trackOf(logs, { accuracy, pairing }, lived) {
  if (accuracy === "terminal" && pairing === "same-step") return null;
  const shifted = pairing === "lagged" ? 1 : 0;
  return lived.map((t) => (isNumber(logs.accuracy[t + shifted]) ? logs.accuracy[t + shifted] : null));
}

function topOf(score, probe) {
  const order = [...score.keys()].sort((one, other) => score[other] - score[one]).slice(0, TOP);
  return probe === NONE || order.includes(probe) ? order : [...order, probe];
}

// What was decided and done at a step: `outcome` (see OUTCOMES); in words `gate` (line 11 of Algorithm 1), `deed`
// (what the agent proposed, and what became of it), `reply` (what a probe was told, or nothing) and `brief`.
function decision(scene, switches, run, t, score) {
  const { title, budget, replays, answered } = run;
  const field = run.probe[t], used = run.used[t], compared = run.compares[t], gate = general(run.threshold ?? 0);
  const asks = field !== NONE, left = used < budget, gated = run.threshold !== null && replays === null;
  const waits = run.action[t] === NONE;
  const action = waits ? "waits" : scene.actions[run.action[t]];
  const probes = asks ? `probes ${scene.fields[field]}` : "";
  const then = asks ? ": probe" : ": act", count = ` (${used} of ${budget} probes used)`;
  let weighed = `${title} compares no score with a threshold; it ${probes || "does not probe"}${count}`;
  if (gated && !run.own_score) {
    const highest = Math.max(...score), reached = highest >= run.threshold;
    const first = reached && left ? score.indexOf(highest) : NONE;
    const who = run.name === "judge" ? "judge" : "rule";
    const end = field === first ? then : `, but the ${who} ${probes || "vetoes the probe"}`;
    weighed = `max ρ = ${highest.toFixed(2)} ${reached ? "≥" : "<"} ${gate} and ${used} ${left ? "<" : "="} ${budget}${end}`;
  } else if (run.own_score) {
    weighed = `${title} compares its own score, ${compared.toFixed(2)}, with ${gate}${then}${count}`;
  }
  if (!asks) {
    let outcome = left || !budget ? "act" : "spent";
    if (gated) outcome = compared < run.threshold ? "below" : left ? "veto" : "spent";
    const valid = run.valid[t];
    const deed = valid ? `${action}: valid` : `${action}: invalid, nothing happens`;
    const brief = waits ? action : `does ${action}${valid ? "" : " in vain"}`;
    const idle = "wait: the agent takes its task for done, or sees nothing to do";
    return { outcome, gate: weighed, deed: waits ? idle : deed, reply: "", brief };
  }
  const deed = `${waits ? "wait" : action}, put off: the step goes to the probe`;
  return { outcome: "probe", gate: weighed, deed, brief: probes, reply: replyOf(scene, switches, run, t, field, answered) };
}

// What became of a probe's answer.
function replyOf(scene, { answer, delay, wrong }, run, t, field, answered) {
  const [said, held] = [run.answer[t], run.belief[t][field]].map((value) => valueWord(scene, field, value));
  const ways = [
    [!answered, `but the answer is withheld; the table keeps ${held}`],
    [answer !== "delivered", `but the answer is only logged; the table keeps ${held}`],
    [delay !== "0", `but the answer comes ${delay} step${delay === "1" ? "" : "s"} later; the table holds ${held}`],
    [wrong !== "0", `but the agent may be told another value; it held ${held}`],
    [run.useful[t], `which corrects the belief (${held})`],
    [true, "which confirms the belief"],
  ];
  return `${scene.fields[field]}: the world says ${said}, ${ways.find(([is]) => is)[1]}`;
}

// The fields that have another value.
function differing(before, after) {
  return [...after.keys()].filter((field) => before[field] !== after[field]);
}

// The same in words: [field, its name with the old and the new value].
function changes(scene, before, after) {
  return differing(before, after).map((field) => {
    const [old, now] = [before, after].map((values) => valueWord(scene, field, values[field]));
    return [field, `${scene.fields[field]}: ${old} → ${now}`];
  });
}

// The first step after which two runs of one seed are not the same any more: they do different things, or do the
// same and one agent is told the answer; null if they never part.
function partingStep(one, other) {
  const same = (a, b) => a.every((value, place) => value === b[place]);
  for (let t = 0; t < Math.min(one.steps, other.steps); t++) {
    if (one.probe[t] !== other.probe[t] || one.action[t] !== other.action[t]) return t;
    if (!BY_FIELD.every((name) => same(one[name][t + 1], other[name][t + 1]))) return t;
  }
  return null;
}

function partingWords(runs, step) {
  const [one, other] = runs.map(({ brief }) => brief.at(step ?? -1));
  const [first, second] = runs.map(({ title }) => title);
  if (step === null) return `${first} and ${second} never part on this seed: every step is the same.`;
  if (one !== other) return `They first differ at step ${step}: ${first} ${one}, ${second} ${other}.`;
  return `They first differ at step ${step}: both do the same (${one}), and the agents come to know different things by it.`;
}

// What a field's value is called; the first word of each list stands for the unknown.
function valueWord(scene, field, value) {
  return scene.words[scene.word_of[field]][value + 1];
}

function listed(items) {
  return items.length > 1 ? `${items.slice(0, -1).join(", ")} and ${items.at(-1)}` : items[0];
}

// A threshold as it is compared: with as many digits as it has, six at most.
const general = (value) => String(Number(value.toPrecision(6)));

// The structure of an instance, as it is drawn: a frame with what the instance was drawn with (`task`). What is
// true or believed is no part of it.

function makeScene(frame, task) {
  const scene = structuredClone(frame);
  FILL[scene.kind](scene, task);
  return scene;
}

const FILL = {
  tools(scene, { needs, ancestors }) {
    const inside = (set) => [...scene.tools.keys()].filter((tool) => (BigInt(set) >> BigInt(tool)) & 1n);
    const needed = [...inside(ancestors[scene.target]), scene.target];
    scene.tools.forEach((tool, number) => {
      tool.needs = inside(needs[number]);
      tool.needed = needed.includes(number);
    });
  },
  rooms(scene, { key_of_door: keys }) {
    scene.doors.forEach((door, number) => (door.key = Number(keys[number])));
  },
  graph(scene, { ends, key_of_edge: keys, start: [start], target: [target] }) {
    scene.edges.forEach((edge, number) => {
      edge.ends = [2 * number, 2 * number + 1].map((place) => Number(ends[place]));
      edge.key = Number(keys[number]);
    });
    scene.spots = layered(scene.nodes, scene.edges.map((edge) => edge.ends), Number(start));
    scene.target = Number(target);
  },
};

// Places for the nodes of a connected graph: x is the distance from the start, a column is ordered by where the
// nodes before it stand.
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
