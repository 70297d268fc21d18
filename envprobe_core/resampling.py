"""The bootstrap, compiled once for Python and for pages: sums over resampled units, and what they tell.

A page runs it as WebAssembly (`engine.wasm`), so a figure that is moved shows the numbers of a table. Only
+ - * / and comparisons are used, which every machine rounds alike; sums are exact, in fixed point, or rounded
once, so neither the order of units nor that of columns moves a bit.
"""

import math

import numpy as np

from envprobe_core.engine import noise
from envprobe_core.engine.noise import GOLDEN, choice, mix, u64
from envprobe_core.engine.numba_support import for_pages, inline, kernel

RESAMPLING = noise.STREAMS  # the first stream that the engine does not use
FIXED_POINT_BITS = 52
TIE = 1e-12  # relative distance below which a resampled statistic counts as equal to the null
PARTIALS = 64  # numbers whose exact sum holds any sum of Float64s
MEAN, LOW, HIGH, P, UNITS, LOW_ADJUSTED, HIGH_ADJUSTED, P_ADJUSTED, P_GREATER, P_LESS = range(10)
PARTS = 10  # of `statistics.Estimate`, in its order


@inline
def two_to(power):
    """2**power, by products."""
    found, step = 1.0, 2.0 if power > 0 else 0.5
    for _ in range(abs(power)):
        found *= step
    return found


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
def key_of(n, seed):
    """The key of the resamples of n units, as `noise.stream_keys` makes the keys of a world."""
    return mix(mix(u64(seed) + GOLDEN) ^ mix(((u64(n) << u64(32)) + u64(RESAMPLING)) * GOLDEN))


@inline
def draw_means(columns, ends, seed, drawn, whole, draws):
    """Fill `draws` [column, resample] with resampled means of `columns` [column, unit].

    Units of one stratum stand together, and `ends` [stratum] says where each ends. Draw k of resample r of a
    stratum of n units is its unit `(word >> 32) * n >> 32`, where `word` is number r n + k of the engine's
    hash under the key of (seed, n): no resample depends on how many there are. The k-th stratum begins k
    resamples on, so strata of one size are drawn independently. One of a single unit says nothing of how
    means vary: then all are NaN. Scratch is `drawn` [unit] and `whole` [column, unit + 3].
    """
    width, units = columns.shape
    resamples, first = draws.shape[1], 0
    for column in range(width):
        for resample in range(resamples):
            draws[column, resample] = 0.0
    for stratum in range(len(ends)):
        last = ends[stratum]
        n = last - first
        for column in range(width):
            power = fixed_point(columns[column], first, last)
            half = power // 2  # in two steps: 2**power may be too large where what it makes is not
            up, more = two_to(half), two_to(power - half)
            level = 1.0  # whether all values are one, as where every unit counts once
            for unit in range(n):
                whole[column, unit] = nearest(columns[column, first + unit] * up * more)
                if whole[column, unit] != whole[column, 0]:
                    level = 0.0
            whole[column, units + 2] = level
            whole[column, units] = two_to(-half) if n > 1 else np.nan
            whole[column, units + 1] = two_to(half - power)
        word = key_of(n, seed)
        for resample in range(resamples):
            for unit in range(n):
                word += GOLDEN
                drawn[unit] = choice(mix(word), n)
            at = (resample + stratum) % resamples
            for one in range(0, width, 2):  # two at a time: an addition waits for the one before it
                other = min(one + 1, width - 1)
                over, under = n * whole[one, 0] + 0.0, n * whole[other, 0] + 0.0  # of zeros the positive one
                if not (whole[one, units + 2] and whole[other, units + 2]):
                    over = under = 0.0
                    for unit in range(n):
                        over += whole[one, drawn[unit]]
                        under += whole[other, drawn[unit]]
                draws[one, at] += over * whole[one, units] * whole[one, units + 1]
                if other > one:
                    draws[other, at] += under * whole[other, units] * whole[other, units + 1]
        first = last
    for column in range(width):
        for resample in range(resamples):
            draws[column, resample] /= units


@inline
def events(values):
    """How many of some values are not 0."""
    count = 0
    for value in values:
        count += value != 0.0
    return count


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
def sift(values, root, count):
    """Let a value sink to its place in the heap below it."""
    while 2 * root + 1 < count:
        child = 2 * root + 1
        if child + 1 < count and values[child + 1] > values[child]:
            child += 1
        if values[root] >= values[child]:
            return
        values[root], values[child] = values[child], values[root]
        root = child


@inline
def sort(values, count):
    """Sort the first of some values (heap sort: without recursion, memory or a bad case)."""
    for root in range(count // 2 - 1, -1, -1):
        sift(values, root, count)
    for last in range(count - 1, 0, -1):
        values[0], values[last] = values[last], values[0]
        sift(values, 0, last)


@inline
def quantile(ordered, count, share):
    """The quantile of ordered values, linearly interpolated, as NumPy does it."""
    place = (count - 1) * share
    at = int(place)
    low, high, part = ordered[at], ordered[min(at + 1, count - 1)], place - at
    if part >= 0.5:
        return high - (high - low) * (1.0 - part)
    return low + (high - low) * part


@inline
def tell(draws, count, null, level, family, found):
    """Write what resampled statistics say of an observed one: the ends and p of `found` [part]; sorts them.

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
    sort(draws, count)
    for low, high, share in ((LOW, HIGH, level), (LOW_ADJUSTED, HIGH_ADJUSTED, 1.0 - (1.0 - level) / family)):
        tail = (1.0 - (share if family > 1 else level)) / 2.0
        found[low], found[high] = quantile(draws, count, tail), quantile(draws, count, 1.0 - tail)
    found[P_GREATER], found[P_LESS] = below / (1 + count), above / (1 + count)
    found[P] = min(1.0, 2.0 * min(found[P_GREATER], found[P_LESS]))
    found[P_ADJUSTED] = min(1.0, found[P] * family)
    if count == 0 or np.isnan(draws[0]):
        for part in range(LOW, PARTS):
            if part != UNITS:
                found[part] = np.nan


@kernel
def counts(seed, found):
    """How often each unit is drawn, for Python: add it to `found` [resample, unit], which holds zeros."""
    resamples, n = found.shape
    word = key_of(n, seed)
    for resample in range(resamples):
        for _ in range(n):
            word += GOLDEN
            found[resample, choice(mix(word), n)] += 1


@kernel
def means(columns, ends, seed, drawn, whole, draws):
    """As `draw_means`, for Python."""
    draw_means(columns, ends, seed, drawn, whole, draws)


@kernel
def told(draws, null, level, family, found):
    """As `tell`, for Python: of all draws."""
    tell(draws, len(draws), null, level, family, found)


@kernel
@for_pages
def ratios(columns, ends, contrasted, seed, null, level, family, drawn, whole, draws, found):
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
        drawn: [unit], scratch.
        whole: [column, unit + 3], scratch, at least `PARTIALS` wide.
        draws: [column, resample], scratch: the statistics without resamples in which a ratio has no event.
        found: [statistic, part], by the names above; NaN where no resample is left.
    """
    draw_means(columns, ends, seed, drawn, whole, draws)
    width, resamples = draws.shape
    pairs = width // 2
    statistics = pairs // 2 if contrasted else pairs
    for column in range(width):
        whole[column, 0] = exact_sum(columns[column], whole[column])
    for one in range(statistics):
        other, count = one + statistics, 0
        found[one, MEAN] = whole[one, 0] / whole[pairs + one, 0]
        found[one, UNITS] = events(columns[pairs + one])
        if contrasted:
            found[one, MEAN] -= whole[other, 0] / whole[pairs + other, 0]
            found[one, UNITS] += events(columns[pairs + other])
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
        tell(draws[one], count, null, level, family, found[one])
