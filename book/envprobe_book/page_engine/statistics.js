// The statistics of the tables in a page: the core's own bootstrap (envprobe_core/resampling.py) as WebAssembly.
//
// A classic script, after engine.js. It makes `EnvProbe.statistics`:
//
//   ready()                                 a promise: what follows can be called
//   ratios(tops, bottoms, options)          {value, low, high, n} of each ratio of sums, [unit] a column
//   resample([{tops, bottoms, ...options}], {signal, patient})
//                                           a promise of the same of each, by the engine's workers
//   mean(values, options)                   the same of one mean
//   track(values, times, options)           {t, value, low, high} of a track [unit * times + time]
//   trackOf(values, times)                  {tops, bottoms, told}: its ratios, and what makes a track of theirs
//   wilson(successes, n)                    {value, low, high, n} of a share, at 95%
//
// Options are those of Python: `strata`, a label a unit, `resamples`, `contrasted` and `reach`; of `ratios` also `family`,
// the comparisons that `lowAdjusted` and `highAdjusted` allow for.
(() => {
  "use strict";

  const { engine } = globalThis.EnvProbe;
  const RESAMPLES = 10_000, LEVEL = 0.95;
  const MIN_RUNNING = 10; // as `statistics.MIN_RUNNING`
  const Z = 1.9599639845400536; // Python's normal quantile at (1 + LEVEL) / 2
  let machine = null;

  const ready = async () => void (machine = await engine.resampling());

  // The units of each stratum one after the other, strata in the order of their labels, and where each ends.
  function ordered(strata, n) {
    const labels = strata ?? new Array(n).fill(0), places = Array.from({ length: n }, (_, unit) => unit);
    places.sort((a, b) => (labels[a] < labels[b] ? -1 : Number(labels[a] > labels[b])) || a - b);
    const ends = places.flatMap((unit, at) => (labels[unit] === labels[places[at + 1]] && at + 1 < n ? [] : [at + 1]));
    return { places, ends };
  }

  // What the bootstrap's machine is asked, see `resampling.ratios`.
  function taskOf({ tops, bottoms, strata = null, resamples = RESAMPLES, contrasted = false, reach = NaN, family = 1 }) {
    const given = [...tops, ...bottoms], n = given[0].length;
    const { places, ends } = ordered(strata, n), { names, scratch } = engine.names().statistics;
    const columns = given.map((column) => Float64Array.from(places, (unit) => column[unit]));
    const room = Math.max(n + scratch.stratum * ends.length, scratch.least);
    return { columns, ends, resamples, contrasted, level: LEVEL, family, reach, scratch: room, parts: names.length };
  }

  function read({ columns: { written } }) {
    const { names } = engine.names().statistics, place = (name) => names.indexOf(name);
    return Array.from({ length: written.length / names.length }, (_, at) => {
      const own = (name) => written[at * names.length + place(name)];
      return { value: own("mean"), low: own("low"), high: own("high"), n: own("n"), lowAdjusted: own("low_adjusted"), highAdjusted: own("high_adjusted") };
    });
  }

  const ratios = (tops, bottoms, options = {}) => read(machine.run(taskOf({ tops, bottoms, ...options })));

  const resample = async (asked, options) => (await engine.resample(asked.map(taskOf), options)).map(read);

  const mean = (values, options) => ratios([values], [new Float64Array(values.length).fill(1)], options)[0];

  // A track over the units that still run, as ratios, and how it is read from them; NaN where fewer than MIN_RUNNING
  // run (all, if there are fewer).
  function trackOf(values, times) {
    const units = values.length / times, shown = [], tops = [], bottoms = [];
    for (let t = 0; t < times; t++) {
      const own = Float64Array.from({ length: units }, (_, unit) => values[unit * times + t]);
      const runs = own.map((value) => Number(!Number.isNaN(value)));
      if (runs.reduce((sum, one) => sum + one, 0) < Math.min(MIN_RUNNING, units)) continue;
      shown.push(t);
      tops.push(own.map((value) => (Number.isNaN(value) ? 0 : value)));
      bottoms.push(runs);
    }
    const all = Array.from({ length: times }, (_, t) => t);
    const told = (found) => {
      const row = (name) => all.map((t) => found[shown.indexOf(t)]?.[name] ?? NaN);
      return { t: all, value: row("value"), low: row("low"), high: row("high") };
    };
    return { tops, bottoms, told };
  }

  function track(values, times, options) {
    const { tops, bottoms, told } = trackOf(values, times);
    return told(tops.length ? ratios(tops, bottoms, options) : []);
  }

  function wilson(successes, n) {
    const share = successes / n, z = Z * Z;
    const centre = (share + z / (2 * n)) / (1 + z / n);
    const half = (Z * Math.sqrt((share * (1 - share)) / n + z / (4 * n * n))) / (1 + z / n);
    return { value: share, low: successes === 0 ? 0 : centre - half, high: successes === n ? 1 : centre + half, n };
  }

  globalThis.EnvProbe = Object.assign(globalThis.EnvProbe ?? {}, { statistics: { RESAMPLES, ready, ratios, resample, mean, track, trackOf, wilson } });
})();
