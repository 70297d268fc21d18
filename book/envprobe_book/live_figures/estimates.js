// Estimates in a page: what `estimates.py` beside this file says as data, found by the engine of the page.
//
// A classic script, after engine.js and statistics.js. It makes `EnvProbe.estimates`:
//
//   evaluate(estimates, setting, {seeds, resamples, quick, signal, patient})
//       a promise of {found, resamples, seeds}: found is {value, low, high} for each, of a track arrays, with
//       `t`. With `quick`, a slider can be followed: intervals come from fewer resamples, and a figure of many
//       conditions runs its first seeds alone. What was used is told; null stands for all seeds. What is
//       `patient` waits while anything else is to be done.
//   remember(estimates, setting, {seeds, resamples}, found)
//       what these are at a setting, so that they are not run there
//   known(estimates, {setting, seeds, resamples})
//       whether nothing of these is to be run
//   conditionOf(arm, world, setting)
//       the condition of an arm: its own words, and the setting's where it has none
//
// Conditions that ran are kept, and what was found, so that a figure runs only what a knob has changed.
(() => {
  "use strict";

  const { engine, statistics } = globalThis.EnvProbe;
  const KNOBS = ["budget", "threshold", "regime", "horizon", "profile", "protocol", "mutation_rate"];
  const KEPT = 400_000; // episodes, of some hundred bytes each
  const MIN_UNITS = 10; // as `estimating.MIN_UNITS`
  const QUICK = 6e6; // draws in all of a figure that is moved: about a hundredth of a second
  const SORTED = 100; // so many draws take as long as sorting a resampled mean among the others
  const FEWEST = 100; // resamples
  const EPISODES = 2400; // in all that a figure runs while it is moved: about a twentieth of a second
  const LEAST = 16; // seeds of each condition
  const LEARNED = 100; // reference seeds of a zero, while a figure is moved
  const BANDS = 1000; // resamples of a track, as in Python: its band is read by eye
  const SLICE = 12; // milliseconds of arithmetic before the page may breathe
  const AT_ONCE = 4; // ratios that a worker is given, which share what they draw
  const MEASURE = /^([a-z_]+)(?:([/<>-])([a-z_]+|\d+(?:\.\d+)?))?$/;
  const kept = new Map();
  let held = 0; // episodes in `kept`

  function conditionOf(arm, world, setting) {
    const condition = { world };
    for (const knob of KNOBS) if (setting[knob] !== undefined && setting[knob] !== null) condition[knob] = setting[knob];
    Object.assign(condition, arm);
    const known = engine.names();
    const policy = known.policies[condition.policy];
    if (policy && policy.threshold === null) delete condition.threshold;
    const horizon = condition.horizon ?? known.regimes[condition.regime ?? "S2"]?.horizon;
    if (condition.budget > horizon) condition.budget = horizon; // of a regime that is shorter than the bar's
    return condition;
  }

  const keyOf = (condition, seeds, kind) => JSON.stringify([condition, seeds, kind]);
  const PLAIN = "measures", LOGGED = "logs", ZERO = "zero"; // what is asked of a condition's episodes
  const COST = { [PLAIN]: 1, [LOGGED]: 2, [ZERO]: 4 }; // so many times as long it takes

  const flying = new Map(); // what runs for a figure, which another takes: promises of {columns, isCut}

  // Run what is not kept: columns by key, how many seeds each has at most, and the keys that have fewer than asked.
  async function columnsOf(wanted, seeds, options) {
    const { signal, quick, patient } = options, found = new Map(), cut = new Set();
    for (const [key] of wanted) if (kept.has(key)) found.set(key, touched(key));
    const missing = [...wanted].filter(([key]) => !found.has(key));
    const cost = missing.reduce((sum, [, { kind }]) => sum + COST[kind], 0);
    const most = quick ? Math.max(LEAST, Math.floor(EPISODES / cost)) : Infinity, flight = (key) => `${quick} ${patient} ${key}`;
    const take = (key) => ({ columns, isCut }) => {
      found.set(key, columns);
      if (isCut) cut.add(key);
    };
    const shared = new Set(missing.map(([key]) => key).filter((key) => flying.has(flight(key))));
    const landing = [...shared].map((key) => flying.get(flight(key)).then(take(key), () => {}));
    for (const kind of Object.keys(COST)) {
      const own = missing.filter(([key, one]) => one.kind === kind && !shared.has(key));
      if (own.length === 0) continue;
      const logs = kind === LOGGED && ["accuracy", "probe"], zero = kind === ZERO && (quick ? LEARNED : true);
      const running = engine.run(own.map(([, { condition }]) => condition), seeds, { signal, logs, most, zero, patient });
      own.forEach(([key, { condition }], i) => {
        const one = running.then((ran) => {
          const columns = { ...ran[i], ...constants(condition) }, isCut = columns.digest.length >= most || Boolean(quick && zero);
          if (!isCut) keep(key, columns);
          return { columns, isCut };
        });
        flying.set(flight(key), one);
        landing.push(one.then(take(key)).finally(() => flying.delete(flight(key))));
      });
    }
    await Promise.all(landing);
    if (signal?.aborted) throw engine.overtaken();
    const failed = new Map([...wanted].filter(([key]) => !found.has(key))); // another figure was overtaken
    const more = failed.size ? await columnsOf(failed, seeds, options) : { columns: [], cut: [] };
    for (const [key, columns] of more.columns) found.set(key, columns);
    for (const key of more.cut) cut.add(key);
    const fewest = Math.min(...[...cut].map((key) => found.get(key).digest.length));
    return { columns: found, most: cut.size ? fewest : null, cut };
  }

  // What `run` says of a condition beside what it measures.
  function constants(condition) {
    const known = engine.names();
    const regime = known.regimes[condition.regime?.name ?? condition.regime ?? "S2"];
    const horizon = condition.horizon ?? regime.horizon;
    return { horizon, budget: condition.budget ?? known.budgets[horizon] };
  }

  function touched(key) {
    const columns = kept.get(key);
    kept.delete(key);
    kept.set(key, columns);
    return columns;
  }

  const sizeOf = (columns) => columns.digest.length * (columns.logs ? 4 : 1);

  function keep(key, columns) {
    kept.set(key, columns);
    held += sizeOf(columns);
    for (const [oldest, own] of kept) { // first those that were not asked for longest
      if (held <= KEPT || oldest === key) return;
      kept.delete(oldest);
      held -= sizeOf(own);
    }
  }

  // A measure of some episodes, [row]; NaN where it is undefined. As `comparing.measured`.
  function measured(text, columns) {
    const parts = MEASURE.exec(text);
    if (!parts) throw new Error(`The measure ${JSON.stringify(text)} cannot be read.`);
    const [, name, sign, other] = parts;
    const column = (which) => {
      const own = columns[which];
      if (own === undefined) throw new Error(`The page's engine measures no ${which}.`);
      return typeof own === "number" ? new Float64Array(columns.digest.length).fill(own) : Float64Array.from(own, Number);
    };
    const left = column(name);
    if (!sign) return left;
    const isNumber = /\d/.test(other[0]);
    const right = isNumber ? null : column(other);
    return left.map((one, row) => {
      const value = isNumber && Number.isNaN(one) ? Infinity : one;
      const against = isNumber ? Number(other) : right[row];
      if (sign === "/") return against > 0 ? value / against : NaN;
      if (sign === "-") return value - against;
      if (Number.isNaN(value) || Number.isNaN(against)) return NaN;
      return Number(sign === "<" ? value < against : value > against);
    });
  }

  // What is said of episodes: {found}, or {asked, told}: ratios of sums over them, as `statistics.resample` takes
  // them, and what reads an estimate of theirs.

  const NOTHING = { found: { value: NaN, low: NaN, high: NaN } };
  const first = ([one]) => one;

  function meanOf(values, labels, isSuccess, resamples) {
    const known = [...values.keys()].filter((row) => !Number.isNaN(values[row]));
    if (known.length === 0) return NOTHING;
    const own = known.map((row) => values[row]);
    if (isSuccess) return { found: statistics.wilson(own.reduce((sum, value) => sum + value, 0), own.length) };
    const strata = known.map((row) => labels[row]), bottom = new Float64Array(own.length).fill(1);
    const one = strata.every((label) => label === strata[0]);
    return { asked: { tops: [own], bottoms: [bottom], strata: one ? null : strata, resamples }, told: first };
  }

  // The differences of pairs, 0 where one side is unknown, and which pairs count, [row] each.
  function differences(one, other, scale) {
    const top = new Float64Array(one.length), counts = new Float64Array(one.length);
    one.forEach((value, row) => {
      const each = value - other[row];
      if (Number.isNaN(each)) return;
      top[row] = scale * each;
      counts[row] = 1;
    });
    return [top, counts];
  }

  const total = (values) => values.reduce((sum, value) => sum + value, 0);

  // How far a pair can differ in a measure, 0 if that is not known.
  const reachOf = (measure, scale) => (new RegExp(`^(?:${engine.names().statistics.yesOrNo})$`).test(measure) ? scale : 0);

  function gainOf([one, other], labels, scale, resamples, reach) {
    const [top, counts] = differences(one, other, scale);
    if (total(counts) < MIN_UNITS) return NOTHING;
    return { asked: { tops: [top], bottoms: [counts], strata: labels, resamples, reach }, told: first };
  }

  // The change of a gain; a resample draws the same seeds on both sides.
  function shiftOf(arms, labels, scale, resamples, reach) {
    const [after, behind] = differences(arms[0], arms[1], scale), [before, below] = differences(arms[2], arms[3], scale);
    if (total(behind) < MIN_UNITS || total(below) < MIN_UNITS) return NOTHING;
    const tops = [after, before], bottoms = [behind, below];
    return { asked: { tops, bottoms, strata: labels, resamples, reach, contrasted: true }, told: first };
  }

  // The share of episodes that probe at each step; behind the last step nothing can.
  function probesOf({ values, rows, times }) {
    const found = { t: [], value: [], low: [], high: [] };
    for (let t = 0; t < times - 1; t++) {
      let fired = 0;
      for (let row = 0; row < rows; row++) if (values[row * times + t] >= 0) fired++;
      const { value, low, high } = statistics.wilson(fired, rows);
      Object.entries({ t, value, low, high }).forEach(([name, own]) => found[name].push(own));
    }
    return found;
  }

  // The logs of some worlds, one under the other.
  function stacked(logs) {
    const times = logs[0].shape[1], rows = logs.reduce((sum, { shape }) => sum + shape[0], 0);
    const values = new Float64Array(rows * times);
    let at = 0;
    for (const own of logs) {
      values.set(own.values, at);
      at += own.values.length;
    }
    return { values, rows, times };
  }

  function sampleOf({ statistic, measure, worlds, scale, keys }, columns, resamples) {
    if (statistic === "track") {
      const logs = keys[0].map((key) => columns.get(key).logs[measure]);
      if (measure === "probe") return { found: probesOf(stacked(logs)) };
      const strata = logs.flatMap(({ shape }, place) => Array(shape[0]).fill(place));
      const { values, times } = stacked(logs), { tops, bottoms, told } = statistics.trackOf(values, times);
      if (tops.length === 0) return { found: told([]) };
      return { asked: { tops, bottoms, strata: logs.length > 1 ? strata : null, resamples: Math.min(BANDS, resamples) }, told };
    }
    const whole = keys.map((own) => own.map((key) => measured(measure, columns.get(key))));
    const counts = worlds.map((_, place) => Math.min(...whole.map((own) => own[place].length)));
    const arms = whole.map((own) => own.map((values, place) => values.subarray(0, counts[place]))); // the same seeds
    const labels = worlds.flatMap((_, place) => Array(counts[place]).fill(place));
    const joined = arms.map((own) => Float64Array.from(own.flatMap((values) => [...values])));
    if (statistic === "mean") return meanOf(joined[0], labels, measure === "success", resamples);
    const found = statistic === "gain" ? gainOf : shiftOf;
    return found(joined, labels, scale, resamples, reachOf(measure, scale));
  }

  // Which samples can share what is drawn: as in `estimating.estimates_of`.
  function kindOf({ tops, bottoms, strata, resamples, reach, contrasted = false }) {
    const sizes = {};
    for (const label of strata ?? bottoms[0].map(() => 0)) sizes[label] = (sizes[label] ?? 0) + 1;
    return JSON.stringify([sizes, tops.length, resamples, String(reach), contrasted]);
  }

  // Of samples with one stratum after the other, and a ratio or a contrast each, some at a time.
  async function resampled(samples, options) {
    const kinds = new Map();
    for (const sample of samples.filter(({ asked }) => asked)) {
      const kind = kindOf(sample.asked);
      kinds.set(kind, [...(kinds.get(kind) ?? []), sample]);
    }
    const groups = [...kinds.values()].flatMap((own) => {
      const most = own[0].told === first ? AT_ONCE : 1; // a track has many ratios of its own
      return Array.from({ length: Math.ceil(own.length / most) }, (_, at) => own.slice(most * at, most * (at + 1)));
    });
    const halves = ({ contrasted }) => (contrasted ? [0, 1] : [0]); // of contrasts all that is taken away stands behind
    const asked = groups.map((own) => {
      if (own.length === 1) return own[0].asked;
      const joined = (part) => halves(own[0].asked).flatMap((half) => own.map((one) => one.asked[part][half]));
      return { ...own[0].asked, tops: joined("tops"), bottoms: joined("bottoms") };
    });
    const found = await statistics.resample(asked, options);
    groups.forEach((own, at) => own.forEach((one, place) => {
      one.found = one.told(own.length === 1 ? found[at] : [found[at][place]]);
    }));
  }

  const ANSWERS = 2000; // estimates that are kept: figures of a page share some, and a threshold leaves many as they are
  const answers = new Map();

  const finite = (found) => Object.fromEntries(Object.entries(found).map(([part, value]) => [part, value ?? NaN])); // JSON has no NaN

  // An estimate with its conditions at a setting, the name of what it is with all seeds and resamples, and that, if
  // it is known.
  function placed(estimate, setting, seeds, resamples) {
    const { statistic, measure, scale, arms, worlds, found } = estimate;
    const kind = statistic === "track" ? LOGGED : /\bzero\b/.test(measure) ? ZERO : PLAIN;
    const conditions = arms.map((arm) => worlds.map((world) => conditionOf(arm, world, setting)));
    const keys = conditions.map((own) => own.map((condition) => keyOf(condition, seeds, kind)));
    const name = JSON.stringify([statistic, measure, scale, worlds, keys, resamples]);
    return { ...estimate, conditions, kind, keys, name, known: statistic === "fixed" ? finite(found) : answers.get(name) };
  }

  function answer(name, found) {
    answers.set(name, found);
    if (answers.size > ANSWERS) answers.delete(answers.keys().next().value);
  }

  function remember(estimates, setting, { seeds, resamples }, found) {
    const known = (own) => own ?? NaN; // JSON has no NaN
    estimates.forEach((estimate, at) => {
      if (estimate.statistic === "fixed") return;
      const parts = Object.entries(found[at]).map(([part, own]) => [part, Array.isArray(own) ? own.map(known) : known(own)]);
      answer(placed(estimate, setting, seeds, resamples).name, Object.fromEntries(parts));
    });
  }

  // Whether all of these are known at a setting, so that nothing is to be run.
  function known(estimates, { setting, seeds, resamples }) {
    return estimates.every((estimate) => placed(estimate, setting, seeds, resamples).known);
  }

  // Resamples of a figure that is moved: the more it draws, the fewer.
  function quickly(asked, columns, resamples) {
    const draws = ({ statistic, measure, keys }) => {
      if (measure === "probe" || (statistic === "mean" && measure === "success")) return 0; // nothing is drawn
      const own = keys.flat().map((key) => columns.get(key));
      const episodes = own.reduce((sum, { digest }) => sum + digest.length, 0);
      return (episodes + SORTED) * (statistic === "track" ? own[0].logs.accuracy.shape[1] : 1);
    };
    const all = asked.reduce((sum, one) => sum + draws(one), 0);
    return Math.min(resamples, Math.max(FEWEST, Math.floor(QUICK / Math.max(1, all))));
  }

  async function evaluate(estimates, setting, options = {}) {
    const { seeds = "default", resamples = statistics.RESAMPLES, quick = false, signal = null, patient = false } = options;
    const asked = estimates.map((estimate) => placed(estimate, setting, seeds, resamples));
    const open = asked.filter(({ known }) => !known), wanted = new Map();
    for (const { keys, conditions, kind } of open) {
      keys.forEach((own, arm) => own.forEach((key, place) => wanted.set(key, { condition: conditions[arm][place], kind })));
    }
    const { columns, most, cut } = await columnsOf(wanted, seeds, { signal, quick, patient });
    const draws = quick ? quickly(open, columns, resamples) : resamples, samples = [];
    let begun = performance.now();
    for (const one of open) {
      if (performance.now() - begun > SLICE) {
        await engine.breath();
        begun = performance.now();
      }
      if (signal?.aborted) throw engine.overtaken();
      samples.push(sampleOf(one, columns, draws));
    }
    await resampled(samples, { signal, patient });
    open.forEach((one, at) => {
      one.known = samples[at].found;
      if (draws === resamples && !one.keys.flat().some((key) => cut.has(key))) answer(one.name, one.known);
    });
    return { found: asked.map(({ known }) => known), resamples: draws, seeds: most };
  }

  globalThis.EnvProbe.estimates = { evaluate, remember, known, conditionOf, constants, measured };
})();
