"""The bootstrap, compiled once for Python and for pages: sums over resampled units, and what they tell.

A page runs it as WebAssembly (`engine.wasm`), so a figure that is moved shows the numbers of a table. Only
+ - * / and comparisons are used, which every machine rounds alike; sums are exact, in fixed point, or rounded
once, so neither the order of units nor that of columns moves a bit.
"""

import math

import numpy as np

from envprobe_core.compiled import noise
from envprobe_core.compiled.noise import GOLDEN, choice, mix, u64
from envprobe_core.compiled.numba_support import for_pages, inline, kernel, summing

RESAMPLING = noise.STREAMS  # the first stream that the engine does not use
UNSEEN = RESAMPLING + 1  # and two more, for pairs that nobody saw: one for each side of a contrast
FIXED_POINT_BITS = 52
TIE = 1e-12  # relative distance below which a resampled statistic counts as equal to the null
PARTIALS = 64  # numbers whose exact sum holds any sum of Float64s
SCALES = 4  # columns of scratch that a stratum needs, see `lay_out`
SPARSE = 10  # of so many pairs fewer than one differs: the two sides hardly differ
ONCE = tuple(
    noise.level32(sum(math.exp(-1.0) / math.factorial(k) for k in range(fewer))) for fewer in range(1, 13)
)
"""Below which a half of a word says fewer than 1, 2, ... times, by Poisson's law with mean 1."""
MEAN, LOW, HIGH, P, UNITS, LOW_ADJUSTED, HIGH_ADJUSTED, P_ADJUSTED, P_GREATER, P_LESS = range(10)
PARTS = 10  # of `statistics.Estimate`, in its order


def scratch_columns(units: int, strata: int) -> int:
    """How many columns of scratch `draw_means` and `ratios` need in `whole`.

    >>> scratch_columns(660, 3)
    672
    """
    return max(units + SCALES * strata, PARTIALS)


@inline
def two_to(power):
    """2**power, by products."""
    product, step = 1.0, 2.0 if power > 0 else 0.5
    for _ in range(abs(power)):
        product *= step
    return product


@inline
def nearest(x):
    """The nearest whole number, halves to the even one."""
    below = math.floor(x)
    rest = x - below
    if rest < 0.5 or (rest == 0.5 and below % 2.0 == 0.0):
        return below
    return below + 1.0


@inline
def fixed_point(values, first, last):
    """The power of two by which values are whole numbers whose sum over a resample is below 2**53."""
    largest, power = 0.0, FIXED_POINT_BITS
    for unit in range(first, last):
        largest = max(largest, abs(values[unit]))
    largest *= last - first
    while 1.0 <= largest < math.inf:
        largest, power = largest * 0.5, power - 1
    while 0.0 < largest < 0.5:
        largest, power = largest * 2.0, power + 1
    return power


@inline
def key_of(n, seed, stream):
    """The key of the resamples of n units, as `noise.stream_keys` makes the keys of a world."""
    return mix(mix(u64(seed) + GOLDEN) ^ mix(((u64(n) << u64(32)) + u64(stream)) * GOLDEN))


@inline
def lay_out(columns, first, last, whole, scales):
    """Write a stratum's values as whole numbers into `whole` [column, unit].

    Of each column four numbers follow in `whole`, from `scales` on: two powers of two that lead back, its sum
    over a resample if that is known, and whether it is, as where every unit counts once.
    """
    n = last - first
    for column in range(len(columns)):
        power = fixed_point(columns[column], first, last)
        half = power // 2  # in two steps: 2**power may be too large where what it makes is not
        up, more, is_known = two_to(half), two_to(power - half), 1.0
        for unit in range(first, last):
            whole[column, unit] = nearest(columns[column, unit] * up * more)
            if whole[column, unit] != whole[column, first]:
                is_known = 0.0
        whole[column, scales] = two_to(-half) if n > 1 else np.nan
        whole[column, scales + 1] = two_to(half - power)
        whole[column, scales + 2] = n * whole[column, first] + 0.0  # of the two zeros the positive one
        whole[column, scales + 3] = is_known


@summing
def weighed(values, times):
    """The sum of values, each so many times."""
    total = 0.0
    for place in range(len(values)):
        total += values[place] * times[place]
    return total


@inline
def draw_units(key, resample, n, drawn, times):
    """Draw the units of a resample; write how many `times` [unit] each is among them. Scratch is `drawn`."""
    word = key + u64(resample * n) * GOLDEN
    for place in range(n):  # apart from the counting, so that a processor does some at a time
        word += GOLDEN
        drawn[place] = choice(mix(word), n)
    for unit in range(n):
        times[unit] = 0.0
    for place in range(n):
        times[drawn[place]] += 1.0


@inline
def draw_means(columns, ends, seed, drawn, whole, draws):
    """Fill `draws` [column, resample] with resampled means of `columns` [column, unit].

    Units of one stratum stand together, and `ends` [stratum] says where each ends. Draw k of resample r of a
    stratum of n units is its unit `(word >> 32) * n >> 32`, where `word` is number r n + k of the engine's
    hash under the key of (seed, n): no resample depends on how many there are. The k-th stratum begins k
    resamples on, so strata of one size are drawn independently, and those that follow each other share each
    drawing. One of a single unit says nothing of how means vary: then all are NaN. Scratch is `drawn` [unit]
    and `whole` [column + 1, `scratch_columns`], whose last row holds how often each unit is drawn.
    """
    width, units = columns.shape
    resamples, strata, first, stratum = draws.shape[1], len(ends), 0, 0
    for column in range(width):
        for resample in range(resamples):
            draws[column, resample] = 0.0
    while stratum < strata:
        n, past = ends[stratum] - first, stratum + 1
        while past < strata and ends[past] - ends[past - 1] == n:
            past += 1
        alike, key = past - stratum, key_of(n, seed, RESAMPLING)
        for one in range(alike):
            begin = first + one * n
            lay_out(columns, begin, begin + n, whole, units + SCALES * one)
            behind = first + (alike - one) % alike * n  # where the drawing of so many turns ago stands
            draw_units(key, (-stratum - one) % resamples, n, drawn, whole[width, behind : behind + n])
        for at in range(resamples):
            newest = first + at % alike * n  # where the drawing of this turn stands
            if at > 0:
                draw_units(key, (at - stratum) % resamples, n, drawn, whole[width, newest : newest + n])
            for one in range(alike):
                begin, scales, own = first + one * n, units + SCALES * one, first + (at - one) % alike * n
                times = whole[width, own : own + n]
                for column in range(width):
                    if whole[column, scales + 3]:
                        total = whole[column, scales + 2]
                    else:
                        total = weighed(whole[column, begin : begin + n], times)
                    draws[column, at] += total * whole[column, scales] * whole[column, scales + 1]
        first, stratum = ends[past - 1], past
    for column in range(width):
        for resample in range(resamples):
            draws[column, resample] /= units


@inline
def times_seen(half):
    """How often something is drawn that is drawn once on average, by a half of a word."""
    times = 0
    for level in ONCE:
        times += half >= level
    return times


@inline
def events(values):
    """How many of some values are not 0."""
    count = 0
    for value in values:
        count += value != 0.0
    return count


@inline
def add_unseen(values, counting, reach, side, seed, draws):
    """Let resampled means of pairs that hardly differ hold two more, one to each side, that nobody saw.

    Where fewer than one of `SPARSE` pairs differs, those that do are too few to say how many there could have
    been, and how far they could differ. So each resample also draws, once on average, a pair that differs as
    far as one can, and one that does so to the other side: the bootstrap's form of what Bonett and Price
    (2012) add to a normal interval. How far is `reach`, or, where that is 0, estimated by the k pairs that
    differ: (k + 1) / k times as far as the furthest.
    """
    differ, furthest, units = events(values), 0.0, len(values)
    if SPARSE * differ >= events(counting):
        return
    for value in values:
        if abs(value) > abs(furthest):
            furthest = value  # with its sign, so that two sides that are swapped get the mirrored interval
    if reach > 0.0:
        furthest = -reach if furthest < 0.0 else reach
    elif differ > 0:
        furthest *= (differ + 1.0) / differ
    key = key_of(units, seed, UNSEEN + side)
    for resample in range(len(draws)):
        word = mix(key + u64(resample + 1) * GOLDEN)
        more = times_seen(word >> u64(32)) - times_seen(word & noise.LOW)
        draws[resample] += more * furthest / units


@inline
def exact_sum(values, partials):
    """The sum of values, rounded once (Shewchuk 1997), as `math.fsum`."""
    kept = 0
    for x in values:
        left = 0
        for i in range(kept):
            y = partials[i]
            if abs(x) < abs(y):
                x, y = y, x
            high = x + y
            low = y - (high - x)
            if low != 0.0:
                partials[left] = low
                left += 1
            x = high
        if x != 0.0:
            partials[left] = x
            left += 1
        kept = left
    high = low = 0.0
    while kept > 0 and low == 0.0:
        kept -= 1
        x, y = high, partials[kept]
        high = x + y
        low = y - (high - x)
    # halfway between two numbers the next partial sum decides
    if kept > 0 and ((low < 0.0 and partials[kept - 1] < 0.0) or (low > 0.0 and partials[kept - 1] > 0.0)):
        twice = low * 2.0
        x = high + twice
        if twice == x - high:
            high = x
    return high


@inline
def sift(values, first, root, count, sign):
    """Let a value sink to its place in the heap below it, of `count` values from the first on.

    With sign 1 its root is the largest; with -1 it stands backwards from the first, its root the smallest.
    """
    while 2 * root + 1 < count:
        child = 2 * root + 1
        beside = child + 1
        if beside < count and sign * values[first + sign * beside] > sign * values[first + sign * child]:
            child = beside
        here, there = first + sign * root, first + sign * child
        if sign * values[here] >= sign * values[there]:
            return
        values[here], values[there] = values[there], values[here]
        root = child


@inline
def sort_end(values, count, kept, sign):
    """Bring the lowest of some values to the front in order, or with sign -1 the highest to the back.

    A heap holds those kept so far, and most values are compared with its root alone: heap sort without
    recursion, memory or a bad case.
    """
    first = 0 if sign == 1 else count - 1
    for root in range(kept // 2 - 1, -1, -1):
        sift(values, first, root, kept, sign)
    for place in range(kept, count):
        here = first + sign * place
        if sign * values[here] < sign * values[first]:
            values[here], values[first] = values[first], values[here]
            sift(values, first, 0, kept, sign)
    for last in range(kept - 1, 0, -1):
        here = first + sign * last
        values[here], values[first] = values[first], values[here]
        sift(values, first, 0, last, sign)


@inline
def quantile(ordered, count, share):
    """The quantile of values whose ends are in order, linearly interpolated, as NumPy does it."""
    place = (count - 1) * share
    at = int(place)
    low, high, part = ordered[at], ordered[min(at + 1, count - 1)], place - at
    if part >= 0.5:
        return high - (high - low) * (1.0 - part)
    return low + (high - low) * part


@inline
def sum_up(draws, count, null, level, family, written):
    """Write the ends and p that resampled statistics give an observed one into `written` [part]; sorts them.

    P_GREATER is (1 + #{draws <= null}) / (1 + draws), and P_LESS its mirror image: the observed sample counts
    as one of its resamples, so p is never 0 (Davison and Hinkley 1997, section 4.2). Where draws are NaN, so
    is all.
    """
    largest, below, above = abs(null), 1, 1
    for at in range(count):
        largest = max(largest, abs(draws[at]))
    for at in range(count):
        below += draws[at] <= null + TIE * largest
        above += draws[at] >= null - TIE * largest
    kept = int((count - 1) * (1.0 - level) / 2.0) + 2  # the adjusted ends lie further out
    if 2 * kept < count:
        sort_end(draws, count, kept, 1)
        sort_end(draws, count, kept, -1)
    else:
        sort_end(draws, count, count, 1)
    for low, high, share in ((LOW, HIGH, level), (LOW_ADJUSTED, HIGH_ADJUSTED, 1.0 - (1.0 - level) / family)):
        tail = (1.0 - (share if family > 1 else level)) / 2.0
        written[low], written[high] = quantile(draws, count, tail), quantile(draws, count, 1.0 - tail)
    written[P_GREATER], written[P_LESS] = below / (1 + count), above / (1 + count)
    written[P] = min(1.0, 2.0 * min(written[P_GREATER], written[P_LESS]))
    written[P_ADJUSTED] = min(1.0, written[P] * family)
    if count == 0 or np.isnan(draws[0]):
        for part in range(LOW, PARTS):
            if part != UNITS:
                written[part] = np.nan


@kernel
def means(columns, ends, seed, drawn, whole, draws):
    """As `draw_means`, for Python."""
    draw_means(columns, ends, seed, drawn, whole, draws)


@kernel
def summed_up(draws, null, level, family, written):
    """As `sum_up`, of all draws, for Python."""
    sum_up(draws, len(draws), null, level, family, written)


@kernel
@for_pages
def ratios(columns, ends, contrasted, seed, null, level, family, reach, drawn, whole, draws, written):
    """Estimate ratios of two sums over units, resampled by unit within strata.

    Args:
        columns: [column, unit], the numerators of all ratios, then their denominators, from 0.
        ends: [stratum], the first unit behind it.
        contrasted: 1 if a statistic is a ratio minus another: those of the first half of the ratios, minus
            those of the second.
        seed: of the resampling.
        null: what p is against.
        level: of the raw interval.
        family: the comparisons that adjusted ends and p allow for (Bonferroni).
        reach: how far a pair can differ, 0 if that is not known (`add_unseen`); NaN of what are no pairs.
        drawn: [unit], scratch.
        whole: [column + 1, `scratch_columns`], scratch.
        draws: [column, resample], scratch: the statistics without resamples in which a ratio has no event.
        written: [statistic, part], by the names above; NaN where no resample is left.
    """
    draw_means(columns, ends, seed, drawn, whole, draws)
    width, resamples = draws.shape
    pairs = width // 2
    statistics = pairs // 2 if contrasted else pairs
    for column in range(width):
        whole[column, 0] = exact_sum(columns[column], whole[width])
    if not np.isnan(reach):
        for column in range(pairs):
            side = int(column >= statistics)
            add_unseen(columns[column], columns[pairs + column], reach, side, seed, draws[column])
    for one in range(statistics):
        other, count = one + statistics, 0
        written[one, MEAN] = whole[one, 0] / whole[pairs + one, 0]
        written[one, UNITS] = events(columns[pairs + one])
        if contrasted:
            written[one, MEAN] -= whole[other, 0] / whole[pairs + other, 0]
            written[one, UNITS] += events(columns[pairs + other])
        for resample in range(resamples):
            kept = draws[pairs + one, resample] != 0.0
            if contrasted:
                kept = kept and draws[pairs + other, resample] != 0.0
            if kept:
                value = draws[one, resample] / draws[pairs + one, resample]
                if contrasted:
                    value -= draws[other, resample] / draws[pairs + other, resample]
                draws[one, count] = value
                count += 1
        sum_up(draws[one], count, null, level, family, written[one])
