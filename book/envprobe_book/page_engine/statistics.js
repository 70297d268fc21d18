// The statistics of the tables in a page: the core's own bootstrap (envprobe_core/resampling.py) as WebAssembly.
//
// A classic script, after engine.js. It makes `EnvProbe.statistics`:
//
//   ready()                                 a promise: what follows can be called
//   ratios(tops, bottoms, options)          {value, low, high, n} of each ratio of sums, [unit] a column
//   mean(values, options)                   the same of one mean
//   track(values, times, options)           {t, value, low, high} of a track [unit * times + time]
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

  const ready = async () => void (machine ??= await engine.resampling());

  // The units of each stratum one after the other, strata in the order of their labels, and where each ends.
  function ordered(strata, n) {
    const labels = strata ?? new Array(n).fill(0), places = Array.from({ length: n }, (_, unit) => unit);
    places.sort((a, b) => (labels[a] < labels[b] ? -1 : Number(labels[a] > labels[b])) || a - b);
    const ends = places.flatMap((unit, at) => (labels[unit] === labels[places[at + 1]] && at + 1 < n ? [] : [at + 1]));
    return { places, ends };
  }

  function ratios(tops, bottoms, { strata = null, resamples = RESAMPLES, contrasted = false, reach = NaN, family = 1 } = {}) {
    const columns = [...tops, ...bottoms], width = columns.length, n = columns[0].length;
    const { places, ends } = ordered(strata, n);
    const { names, scratch } = engine.names().statistics;
    const count = contrasted ? tops.length / 2 : tops.length;
    machine.clear();
    const returned = machine.room(16), given = machine.floats(width, n), behind = machine.room(8 * ends.length);
    const drawn = machine.room(8 * n), beside = Math.max(n + scratch.stratum * ends.length, scratch.least);
    const whole = machine.floats(width + 1, beside);
    const draws = machine.floats(width, resamples), found = machine.floats(count, names.length);
    const values = machine.values(given);
    columns.forEach((column, at) => places.forEach((unit, place) => (values[at * n + place] = column[unit])));
    new BigInt64Array(machine.memory.buffer, behind, ends.length).set(ends.map(BigInt));
    machine.call(
      returned, returned + 8, ...machine.two(given), ...machine.one(behind, ends.length, 8), BigInt(contrasted), 0n, 0, LEVEL, family, reach,
      ...machine.one(drawn, n, 8), ...machine.two(whole), ...machine.two(draws), ...machine.two(found),
    );
    const parts = machine.values(found), place = (name) => names.indexOf(name);
    const read = (at, name) => parts[at * names.length + place(name)];
    return Array.from({ length: count }, (_, at) => ({ value: read(at, "mean"), low: read(at, "low"), high: read(at, "high"), n: read(at, "n"), lowAdjusted: read(at, "low_adjusted"), highAdjusted: read(at, "high_adjusted") }));
  }

  const mean = (values, options) => ratios([values], [new Float64Array(values.length).fill(1)], options)[0];

  // Over the units that still run; NaN where fewer than MIN_RUNNING do (all, if there are fewer).
  function track(values, times, options) {
    const units = values.length / times, shown = [], tops = [], bottoms = [];
    for (let t = 0; t < times; t++) {
      const own = Float64Array.from({ length: units }, (_, unit) => values[unit * times + t]);
      const runs = own.map((value) => Number(!Number.isNaN(value)));
      if (runs.reduce((sum, one) => sum + one, 0) < Math.min(MIN_RUNNING, units)) continue;
      shown.push(t);
      tops.push(own.map((value) => (Number.isNaN(value) ? 0 : value)));
      bottoms.push(runs);
    }
    const found = shown.length ? ratios(tops, bottoms, options) : [], all = Array.from({ length: times }, (_, t) => t);
    const row = (name) => all.map((t) => found[shown.indexOf(t)]?.[name] ?? NaN);
    return { t: all, value: row("value"), low: row("low"), high: row("high") };
  }

  function wilson(successes, n) {
    const share = successes / n, z = Z * Z;
    const centre = (share + z / (2 * n)) / (1 + z / n);
    const half = (Z * Math.sqrt((share * (1 - share)) / n + z / (4 * n * n))) / (1 + z / n);
    return { value: share, low: successes === 0 ? 0 : centre - half, high: successes === n ? 1 : centre + half, n };
  }

  globalThis.EnvProbe = Object.assign(globalThis.EnvProbe ?? {}, { statistics: { RESAMPLES, ready, ratios, mean, track, wilson } });
})();
