// The statistics of envprobe_core/statistics.py in a page: the same numbers to the last bit of a Float64.
//
// A classic script, which opens from a folder as well; it adds `EnvProbe.statistics` to the page. Names and
// definitions are those of the Python module, which says what each statistic means and where it comes from; here
// are those that a page shows.
// Bits are equal because only + - * /, square roots and comparisons are used, which every machine rounds
// alike, in Python's order wherever an order matters; sums are exact, or rounded once as math.fsum rounds them.
// What is not accepted is refused by a RangeError of one sentence.
(() => {
  "use strict";

  const RESAMPLES = 10_000;
  const LEVEL = 0.95;
  const LARGE = 10_000; // units above which Python gives a mean the normal interval
  const FIXED_POINT_BITS = 52;
  const RESAMPLING = 8; // the stream of the hash that resamples are drawn in
  const MIN_RUNNING = 10; // as `statistics.MIN_RUNNING`
  const KEPT_DRAWS = 4_000_000; // a larger matrix of counts is drawn again at each use, row by row
  const KEPT_MATRICES = 8;
  // Python's normal quantiles at (1 + level) / 2: its logarithm may differ from a browser's in the last bit
  const NORMAL_QUANTILES = new Map([
    [0.8, 1.2815515655446008],
    [0.9, 1.6448536269514715],
    [0.95, 1.9599639845400536],
    [0.99, 2.5758293035489],
  ]);

  /** @returns {never} */
  function refuse(sentence) {
    throw new RangeError(sentence);
  }

  function checkLevel(level) {
    if (!(level > 0 && level < 1)) refuse(`level ${level}; a level in (0, 1) is accepted`);
  }

  // numbers to the bit

  const oneFloat = new Float64Array(1);
  const itsHalves = new Uint32Array(oneFloat.buffer); // the lower one first, as on every machine with WebAssembly

  // 2**exponent, from -1022 to 1023.
  function powerOfTwo(exponent) {
    itsHalves[0] = 0;
    itsHalves[1] = (exponent + 1023) << 20;
    return oneFloat[0];
  }

  // x 2**exponent. Only the last step rounds: where the exponent is below -1000, x is a whole number.
  function scaled(x, exponent) {
    for (; exponent > 1000; exponent -= 1000) x *= powerOfTwo(1000);
    for (; exponent < -1000; exponent += 1000) x *= powerOfTwo(-1000);
    return x * powerOfTwo(exponent);
  }

  // The e of |x| = m 2**e with m in [1/2, 1); 0 for 0.
  function binaryExponent(x) {
    if (x === 0) return 0;
    oneFloat[0] = x;
    const bits = (itsHalves[1] >>> 20) & 0x7ff;
    return bits ? bits - 1022 : binaryExponent(x * powerOfTwo(64)) - 64;
  }

  // The nearest whole number, halves to the even one.
  function rounded(x) {
    const below = Math.floor(x);
    const rest = x - below;
    if (rest !== 0.5) return rest < 0.5 ? below : below + 1;
    return below % 2 === 0 ? below : below + 1;
  }

  // The sum of numbers, rounded once: Shewchuk's partial sums, as in CPython's math.fsum.
  function fsum(values) {
    const partials = [];
    for (let x of values) {
      let kept = 0;
      for (let y of partials) {
        if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
        const high = x + y;
        const low = y - (high - x);
        if (low !== 0) partials[kept++] = low;
        x = high;
      }
      partials.length = kept;
      if (x !== 0) partials.push(x);
    }
    let left = partials.length;
    if (left === 0) return 0;
    let high = partials[--left];
    let low = 0;
    while (left > 0) {
      const x = high;
      const y = partials[--left];
      high = x + y;
      low = y - (high - x);
      if (low !== 0) break;
    }
    // halfway between two numbers the next partial sum decides
    if (left > 0 && low !== 0 && low < 0 === partials[left - 1] < 0) {
      const y = low * 2;
      const x = high + y;
      if (y === x - high) high = x;
    }
    return high;
  }

  // resampling: the hash in halves of 32 bits, since a page has no fast whole numbers of 64

  /** @typedef {[number, number]} Word the upper and the lower half */
  /** @type {Word} */
  const GOLDEN = [0x9e3779b9, 0x7f4a7c15];
  /** @type {Word} */
  const FIRST = [0xbf58476d, 0x1ce4e5b9];
  /** @type {Word} */
  const SECOND = [0x94d049bb, 0x133111eb];

  // The upper half of the product of two halves (Warren, Hacker's Delight, 2012, section 8-2).
  function upperProduct(a, b) {
    const aHigh = a >>> 16;
    const aLow = a & 0xffff;
    const bHigh = b >>> 16;
    const bLow = b & 0xffff;
    const middle = (Math.imul(aHigh, bLow) + (Math.imul(aLow, bLow) >>> 16)) | 0;
    const other = (Math.imul(aLow, bHigh) + (middle & 0xffff)) | 0;
    return (Math.imul(aHigh, bHigh) + (middle >>> 16) + (other >>> 16)) | 0;
  }

  /** @returns {Word} */
  function plus(/** @type {Word} */ [aHigh, aLow], /** @type {Word} */ [bHigh, bLow]) {
    const low = (aLow >>> 0) + (bLow >>> 0);
    return [(aHigh + bHigh + (low > 0xffffffff ? 1 : 0)) | 0, low | 0];
  }

  /** @returns {Word} */
  function times(/** @type {Word} */ [aHigh, aLow], /** @type {Word} */ [bHigh, bLow]) {
    return [(upperProduct(aLow, bLow) + Math.imul(aHigh, bLow) + Math.imul(aLow, bHigh)) | 0, Math.imul(aLow, bLow)];
  }

  /** @returns {Word} */
  function xor(/** @type {Word} */ [aHigh, aLow], /** @type {Word} */ [bHigh, bLow]) {
    return [aHigh ^ bHigh, aLow ^ bLow];
  }

  // SplitMix64, as `mix` of the engine's noise.
  function mix(/** @type {Word} */ word) {
    /** @type {(word: Word, by: number) => Word} */
    const folded = ([high, low], by) => [high ^ (high >>> by), low ^ ((low >>> by) | (high << (32 - by)))];
    return folded(times(folded(times(folded(word, 30), FIRST), 27), SECOND), 31);
  }

  // A whole number from 0 below 2**53 as a word.
  /** @returns {Word} */
  function word(number) {
    return [Math.floor(number / 2 ** 32) | 0, number | 0];
  }

  // The key of the resamples of n units.
  function keyOf(n, seed) {
    return mix(xor(mix(plus(word(seed), GOLDEN)), mix(times([n, RESAMPLING], GOLDEN))));
  }

  // Count in `counts`, from `at`, how often each of n units is drawn in a resample: `mix` written out.
  function drawResample(key, n, resample, counts, at) {
    let [high, low] = plus(key, times(word(resample * n), GOLDEN));
    for (let draw = 0; draw < n; draw++) {
      const sum = (low >>> 0) + 0x7f4a7c15;
      high = (high + 0x9e3779b9 + (sum > 0xffffffff ? 1 : 0)) | 0;
      low = sum | 0;
      let l = low ^ ((low >>> 30) | (high << 2));
      let h = high ^ (high >>> 30);
      // times FIRST, then times SECOND, in parts of 16 bits: a call a product would take twice as long at first
      let a = l >>> 16;
      let b = l & 0xffff;
      let middle = (Math.imul(a, 0xe5b9) + (Math.imul(b, 0xe5b9) >>> 16)) | 0;
      let other = (Math.imul(b, 0x1ce4) + (middle & 0xffff)) | 0;
      let upper = (Math.imul(a, 0x1ce4) + (middle >>> 16) + (other >>> 16)) | 0;
      h = (upper + Math.imul(h, 0x1ce4e5b9) + Math.imul(l, 0xbf58476d)) | 0;
      l = Math.imul(l, 0x1ce4e5b9);
      l ^= (l >>> 27) | (h << 5);
      h ^= h >>> 27;
      a = l >>> 16;
      b = l & 0xffff;
      middle = (Math.imul(a, 0x11eb) + (Math.imul(b, 0x11eb) >>> 16)) | 0;
      other = (Math.imul(b, 0x1331) + (middle & 0xffff)) | 0;
      upper = (Math.imul(a, 0x1331) + (middle >>> 16) + (other >>> 16)) | 0;
      h = (upper + Math.imul(h, 0x133111eb) + Math.imul(l, 0x94d049bb)) | 0;
      h ^= h >>> 31; // of the last fold a draw needs the upper half alone
      counts[at + Math.floor(((h >>> 0) * n) / 2 ** 32)]++;
    }
  }

  function checkResampling(n, resamples, seed) {
    if (!(Number.isInteger(resamples) && resamples >= 1)) refuse(`resamples are ${resamples}; a whole number from 1 is accepted`);
    if (!(Number.isSafeInteger(seed) && seed >= 0)) refuse(`the seed is ${seed}; a whole number from 0 below 2**53 is accepted`);
    if (!(Number.isInteger(n) && n >= 1 && n < 65_536)) refuse(`${n} units; a whole number from 1 below 65536 is accepted`);
  }

  const matrices = new Map();

  // How often each unit is drawn in each resample, [resample * n + unit], made once a sample size.
  function resampleCounts(n, resamples = RESAMPLES, seed = 0) {
    checkResampling(n, resamples, seed);
    const name = `${n} ${resamples} ${seed}`;
    let counts = matrices.get(name);
    matrices.delete(name); // what is used last goes last
    if (counts === undefined) {
      counts = new Uint16Array(n * resamples);
      const key = keyOf(n, seed);
      for (let resample = 0; resample < resamples; resample++) drawResample(key, n, resample, counts, resample * n);
    }
    if (counts.length <= KEPT_DRAWS) matrices.set(name, counts);
    if (matrices.size > KEPT_MATRICES) matrices.delete(matrices.keys().next().value);
    return counts;
  }

  // The sum of counts[at + unit] times each of four columns, which may be one and the same, into `sums`. Short
  // functions of their own, which browsers make machine code of at once; all sums are exact, in any order.
  function sumFour(counts, at, /** @type {Float64Array[]} */ [one, two, three, four], sums) {
    let a = 0, b = 0, c = 0, d = 0;
    for (let unit = 0; unit < one.length; unit++) {
      const count = counts[at + unit];
      a += count * one[unit];
      b += count * two[unit];
      c += count * three[unit];
      d += count * four[unit];
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
  }

  // Of one column, four units at a time, which is faster than waiting for each addition.
  function sumOne(counts, at, values) {
    const n = values.length, whole = n - (n % 4);
    let a = 0, b = 0, c = 0, d = 0;
    for (let unit = 0; unit < whole; unit += 4) {
      a += counts[at + unit] * values[unit];
      b += counts[at + unit + 1] * values[unit + 1];
      c += counts[at + unit + 2] * values[unit + 2];
      d += counts[at + unit + 3] * values[unit + 3];
    }
    for (let unit = whole; unit < n; unit++) a += counts[at + unit] * values[unit];
    return a + b + (c + d);
  }

  // The sums of each column ([unit] each) over every resample, [resample] a column, in fixed point: exact.
  function resampledSums(columns, resamples, seed) {
    const n = columns[0].length;
    const exponents = columns.map((column) => {
      let largest = 0;
      for (const value of column) largest = Math.max(largest, Math.abs(value));
      return FIXED_POINT_BITS - binaryExponent(n * largest);
    });
    const whole = columns.map((column, at) => column.map((value) => rounded(scaled(value, exponents[at]))));
    const sums = columns.map(() => new Float64Array(resamples)), found = new Float64Array(4);
    const fours = [];
    for (let at = 0; at < whole.length; at += 4) fours.push([0, 1, 2, 3].map((more) => whole[at + more] ?? whole[at]));
    const kept = n * resamples <= KEPT_DRAWS ? resampleCounts(n, resamples, seed) : null;
    const key = kept ? null : keyOf(n, seed), drawn = kept ?? new Uint16Array(n);
    for (let resample = 0; resample < resamples; resample++) {
      const at = kept ? resample * n : 0;
      if (!kept) drawResample(key, n, resample, drawn.fill(0), 0);
      if (whole.length === 1) sums[0][resample] = sumOne(drawn, at, whole[0]);
      else {
        for (let four = 0; four < fours.length; four++) {
          sumFour(drawn, at, fours[four], found);
          for (let column = 4 * four, i = 0; i < 4 && column < whole.length; column++, i++) sums[column][resample] = found[i];
        }
      }
    }
    sums.forEach((own, at) => {
      // one factor does what `scaled` does, except for the smallest and the largest numbers
      const exponent = -exponents[at], factor = Math.abs(exponent) <= 1000 ? powerOfTwo(exponent) : null;
      for (let resample = 0; resample < resamples; resample++) {
        own[resample] = factor === null ? scaled(own[resample], exponent) : own[resample] * factor;
      }
    });
    return sums;
  }

  // The places of the units of each stratum, strata in the order of their labels.
  function groupsOf(labels) {
    const places = new Map();
    labels.forEach((label, unit) => {
      if (!places.has(label)) places.set(label, []);
      places.get(label).push(unit);
    });
    return [...places.keys()].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)).map((label) => places.get(label));
  }

  // Resampled means of columns ([unit] each) within strata, [resample] a column; NaN where a stratum has one unit.
  function resampledMeans(columns, strata, resamples, seed) {
    const n = columns[0].length;
    checkResampling(n, resamples, seed);
    for (const column of columns) {
      const bad = column.findIndex((value) => !Number.isFinite(value));
      if (bad >= 0) refuse(`values hold ${column[bad]} at unit ${bad}; finite numbers are accepted`);
    }
    const labels = strata === null ? new Array(n).fill(0) : Array.from(strata);
    if (labels.length !== n) refuse(`${labels.length} strata, ${n} units; one label a unit is accepted`);
    if (labels.some(Number.isNaN)) refuse("strata hold NaN; a label for every unit is accepted");
    const totals = columns.map(() => new Float64Array(resamples));
    groupsOf(labels).forEach((places, shift) => {
      if (places.length === 1) {
        for (const total of totals) total.fill(NaN);
        return;
      }
      const sums = resampledSums(columns.map((column) => Float64Array.from(places, (unit) => column[unit])), resamples, seed);
      // strata of one size read the same counts, each a row further, and so are drawn independently
      totals.forEach((total, at) => {
        let to = shift % resamples;
        for (const sum of sums[at]) {
          total[to++] += sum;
          if (to === resamples) to = 0;
        }
      });
    });
    for (const total of totals) for (let resample = 0; resample < resamples; resample++) total[resample] /= n;
    return totals;
  }

  // Resampled means of `values` [unit], [resample].
  function bootstrapMeans(values, { strata = null, resamples = RESAMPLES, seed = 0 } = {}) {
    const column = Array.from(values);
    if (column.length === 0) refuse("no values; at least one is accepted");
    return resampledMeans([column], strata, resamples, seed)[0];
  }

  // what resamples say

  // The quantile of sorted numbers, interpolated and rounded as NumPy does.
  function quantile(sorted, share) {
    const place = (sorted.length - 1) * share;
    const at = Math.min(Math.floor(place), sorted.length - 1);
    const [low, high] = [sorted[at], sorted[Math.min(at + 1, sorted.length - 1)]];
    const part = place - Math.floor(place);
    return part >= 0.5 ? high - (high - low) * (1 - part) : low + (high - low) * part;
  }

  // Sorted copies; a NaN among the numbers makes all of them NaN.
  function sortedOf(draws) {
    const sorted = new Float64Array(draws).sort();
    return sorted.length && Number.isNaN(sorted[sorted.length - 1]) ? sorted.fill(NaN) : sorted;
  }

  // The two quantiles of draws at (1 -+ level) / 2.
  function percentileInterval(draws, level = LEVEL) {
    checkLevel(level);
    const tail = (1 - level) / 2;
    const sorted = sortedOf(draws);
    return [quantile(sorted, tail), quantile(sorted, 1 - tail)];
  }

  // The ratio of two sums over units, resampled by unit within `strata` [unit].
  function clusteredRate(numerators, denominators, { strata = null, resamples = RESAMPLES, seed = 0, level = LEVEL } = {}) {
    const [top, bottom] = [numerators, denominators].map((part) => Float64Array.from(part));
    if (!(top.length && top.length === bottom.length)) {
      refuse(`${top.length} numerators, ${bottom.length} denominators; equal lengths, not 0, are accepted`);
    }
    if (bottom.some((value) => value < 0)) refuse(`denominators hold ${Math.min(...bottom)}; numbers from 0 are accepted`);
    if (!bottom.some((value) => value !== 0)) refuse("denominators are all 0; at least one event is needed");
    const same = Number.isInteger(bottom[0]) && bottom.every((value) => value === bottom[0]); // so in every resample
    const [over, under] = resampledMeans(same ? [top] : [top, bottom], strata, resamples, seed);
    const draws = over.map((value, resample) => value / (same ? bottom[0] : under[resample]));
    const own = same ? draws : draws.filter((_, resample) => under[resample] !== 0);
    if (own.length === 0) refuse("no resample holds an event; more resamples are needed");
    const [low, high] = percentileInterval(own, level);
    return { mean: fsum(top) / fsum(bottom), low, high, n: bottom.filter((value) => value !== 0).length };
  }

  // The mean at each time of tracks [unit * times + time], NaN behind a unit's end, over the units that still
  // run: {t, value, low, high}, [time] each; NaN where fewer than MIN_RUNNING run (all, if there are fewer).
  function meanTrack(tracks, times, { strata = null, resamples = RESAMPLES, seed = 0 } = {}) {
    const units = tracks.length / times;
    const columns = Array.from({ length: times }, (_, t) => {
      const above = new Float64Array(units), runs = new Float64Array(units);
      for (let unit = 0; unit < units; unit++) {
        const value = tracks[unit * times + t];
        if (Number.isNaN(value)) continue;
        above[unit] = value;
        runs[unit] = 1;
      }
      return { above, runs, running: runs.reduce((sum, one) => sum + one, 0) };
    });
    const shown = columns.filter(({ running }) => running >= Math.min(MIN_RUNNING, units));
    const ended = shown.filter(({ running }) => running < units); // elsewhere all resamples hold all units
    const means = resampledMeans([...shown, ...ended].map((column, at) => (at < shown.length ? column.above : column.runs)), strata, resamples, seed);
    shown.forEach((column, at) => {
      const under = ended.includes(column) ? means[shown.length + ended.indexOf(column)] : null;
      const draws = under === null ? means[at] : means[at].map((over, resample) => over / under[resample]).filter((_, resample) => under[resample] !== 0);
      const [low, high] = percentileInterval(draws);
      Object.assign(column, { value: fsum(column.above) / column.running, low, high });
    });
    const row = (what) => columns.map((column) => column[what] ?? NaN);
    return { t: columns.map((_, t) => t), value: row("value"), low: row("low"), high: row("high") };
  }

  // The mean of paired differences [unit]; options as in `clusteredRate`.
  function pairedBootstrap(differences, options = {}) {
    return clusteredRate(differences, new Float64Array(differences.length).fill(1), options);
  }

  // intervals of one mean or share

  // The mean of `values` [unit] with its percentile interval.
  function meanInterval(values, { strata = null, level = LEVEL, resamples = RESAMPLES, seed = 0 } = {}) {
    const n = values.length;
    if (n > LARGE && strata === null) refuse(`${n} units; up to ${LARGE} are resampled in a page`);
    const draws = bootstrapMeans(values, { strata, resamples, seed });
    const [low, high] = percentileInterval(draws, level);
    return { value: fsum(values) / n, low, high, n };
  }

  // The share successes / n with Wilson's score interval, at the levels whose normal quantile stands above.
  function wilson(successes, n, level = LEVEL) {
    const fits = Number.isInteger(successes) && Number.isInteger(n) && successes >= 0 && successes <= n && n >= 1;
    if (!fits) refuse(`${successes} successes of ${n}; n from 1 and successes from 0 to n are accepted`);
    const z = NORMAL_QUANTILES.get(level) ?? refuse(`level ${level}; one of ${[...NORMAL_QUANTILES.keys()].join(", ")} is accepted`);
    const share = successes / n;
    const centre = (share + (z * z) / (2 * n)) / (1 + (z * z) / n);
    const half = (z * Math.sqrt((share * (1 - share)) / n + (z * z) / (4 * n * n))) / (1 + (z * z) / n);
    return { value: share, low: successes === 0 ? 0 : centre - half, high: successes === n ? 1 : centre + half, n };
  }

  const statistics = {
    RESAMPLES, fsum, resampleCounts, bootstrapMeans, percentileInterval, clusteredRate, meanTrack, pairedBootstrap, meanInterval, wilson,
  };
  globalThis.EnvProbe = Object.assign(globalThis.EnvProbe ?? {}, { statistics });
})();
