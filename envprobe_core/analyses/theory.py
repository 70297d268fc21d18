"""What repairs are worth, measured (Section 5.1 of the paper; the measurement is ours).

`theory.forks` stops an episode at a moment and plays it on with other luck, `theory.gains` does so with sets
of fields repaired. Here: is the gain monotone and submodular, how well do scores choose, how much does greedy
repair reach, what does a uniform probe lose, what do self-reports add. Where the best of several noisy
numbers is taken, it is chosen on one half of the futures or pasts and valued on the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pandas as pd

from envprobe_core.cells import Names, names
from envprobe_core.show.figures import WORLD_TITLES
from envprobe_core.statistics import mean_interval, wilson
from envprobe_core.theory.forks import Past, Setting, look, seeds_in
from envprobe_core.theory.gains import (
    DEPTH,
    SCORES,
    accuracies,
    least_ratio,
    rank_values,
    ratio_interval,
    terms_of,
)
from envprobe_core.worlds.base import Floats, Ints, Mask

POINTS = 100.0
TOLERANCE = 1e-12
MOST_WRONG = 6  # fields whose subsets are all played
FRESH = 50_000  # number of the first future that serves confirmation alone
MOST_FORKS = 60_000  # a belief type; where nearly everything is wrong a past asks for thousands
FEWEST_PASTS = 8
FEWEST_IN_BIN = 30
STALENESS_EDGES = (0.0, 0.35, 0.75)  # bins of s: below .35, below .75, the rest
DOUBT_EDGES = (0.0, 0.15, 0.30)  # bins of u: sure, less sure, below alpha = .7
CRITICALITY_EDGES = (0.0, 1 / 3, 2 / 3)
DEPENDENCY_EDGES = (0.0, 0.5, 1.0)
TITLES = {
    "full": "full score",
    "oracle": "Oracle",
    "oracle-tw": "Oracle-TW",
    "greedy": "greedy repair (ours)",
}


def place_of(setting: Setting, kind: str) -> str:
    """Return how tables call a belief type of a world."""
    return f"{WORLD_TITLES[setting.world.name]}, {kind}"


def ends(name: str, found: Sequence[float]) -> dict[str, float]:
    """Return a value with its interval as the columns `name name_low name_high`."""
    return dict(zip((name, f"{name}_low", f"{name}_high"), found[:3], strict=True))


def settings_of(worlds: Names, regime: str, protocol: str, profile: str, share: float) -> list[Setting]:
    """Return the setting of every world: where its episodes are stopped, as a share of the horizon."""
    return [Setting.of(world, regime, protocol, profile, share) for world in names(worlds)]


# set functions: an array [..., 2**item], whose entry `mask` is the value of the set with the bits of `mask`


def subsets(items: int) -> Mask:
    """Return every set as a row, [2**item, item]."""
    return (np.arange(1 << items)[:, None] >> np.arange(items)) & 1 == 1


def first_differences(values: Floats) -> tuple[Ints, Ints, Floats]:
    """Return (S, i, Delta(i | S)) of every set and item outside it."""
    sets, item = np.nonzero(~subsets(values.shape[-1].bit_length() - 1))
    return sets, item, values[..., sets | 1 << item] - values[..., sets]


def second_differences(values: Floats) -> tuple[Ints, Ints, Ints, Floats]:
    """Return (S, j, i, Delta(i | S) - Delta(i | S + j)) of every S and unordered pair outside it, j before i.

    A set function is submodular if and only if none of them is negative: one further member suffices.
    """
    out = ~subsets(values.shape[-1].bit_length() - 1)
    sets, other, item = np.nonzero(np.triu(out[:, :, None] & out[:, None, :], 1))
    larger = sets | 1 << other
    gain = values[..., sets | 1 << item] - values[..., sets]
    return sets, other, item, gain - (values[..., larger | 1 << item] - values[..., larger])


class Repairs:
    """What the sets of wrong fields of one past are worth once repaired, on two halves of the futures.

    Where the best of several sets is taken, one half chooses and the other values, both ways round.

    Attributes:
        bit: the place of each wrong field in a mask.
        value: A_H^T by mask, [half]; an array [2**item, half], or a mapping of the sets that were played.
    """

    def __init__(self, wrong: Iterable[int], value: Floats | Mapping[int, Floats]) -> None:
        self.bit = {int(field): bit for bit, field in enumerate(wrong)}
        self.value = value

    def mask(self, chosen: Iterable[int]) -> int:
        """Return the set of those chosen fields that are wrong; to repair a right one changes nothing."""
        return sum(1 << self.bit[field] for field in chosen if field in self.bit)

    def following(self, mask: int) -> list[int]:
        """Return the sets with one wrong field more."""
        return [mask | 1 << bit for bit in self.bit.values() if not mask >> bit & 1]

    def gains(self, mask: int) -> Floats:
        """Return what each field that is left adds to a set, [field, half]."""
        gained = [self.value[larger] - self.value[mask] for larger in self.following(mask)]
        return np.array(gained).reshape(-1, 2)

    def steps(self, order: Sequence[int], depth: int) -> tuple[list[float], list[float]]:
        """Return realized and best marginal gain of each step of a score that ranks fields so, [step]."""
        masks = [self.mask(order[:step]) for step in range(depth + 1)]
        realized = [
            float((self.value[after] - self.value[mask]).mean()) for mask, after in itertools.pairwise(masks)
        ]
        return realized, [best_of_halves(self.gains(mask)) for mask in masks[:-1]]

    def greedy(self, size: int) -> float:
        """Return G_T of the set that greedy repair takes."""
        values = []
        for half in (0, 1):
            mask = 0
            for _ in range(size):
                options = [mask, *self.following(mask)]
                mask = max(options, key=lambda own, half=half: self.value[own][half])
            values.append(self.value[mask][1 - half] - self.value[0][1 - half])
        return float(np.mean(values))


def best_of_halves(gains: Floats) -> float:
    """Value on one half what is best on the other, [option, half]; nothing at all gives 0."""
    with_none = np.concatenate([np.zeros((1, 2)), gains])
    return float(np.mean([with_none[np.argmax(with_none[:, half]), 1 - half] for half in (0, 1)]))


def in_halves(accuracy: Floats) -> Floats:
    """Average [query, future] over the two halves of the futures, [query, half]."""
    return np.stack([accuracy[:, half::2].mean(axis=1) for half in (0, 1)], axis=1)


# every subset of the wrong fields


@dataclass(frozen=True)
class Lattice:
    """The accuracy A_H^T after each subset of the wrong fields of one past was repaired."""

    row: int  # the past's row
    wrong: Ints  # [item], the wrong fields of the type
    accuracy: Floats  # [future, 2**item]

    @property
    def repairs(self) -> Repairs:
        """Return what the sets are worth."""
        return Repairs(self.wrong, in_halves(self.accuracy.T))


@dataclass(frozen=True)
class Lattices:
    """The lattices of one world and belief type, on pasts with two to `MOST_WRONG` wrong fields."""

    setting: Setting
    kind: str
    past: Past
    lattices: list[Lattice]

    @property
    def place(self) -> str:
        """Return how tables call it."""
        return place_of(self.setting, self.kind)


def play_subsets(
    setting: Setting, past: Past, kind: str, rows: Ints, futures: int, first: int = 0
) -> list[Lattice]:
    """Play every subset of the wrong fields of a type, on the given rows of a past."""
    own = setting.of_type(kind)
    wrong = [np.flatnonzero(past.wrong[row] & own) for row in rows]
    if not wrong:
        return []
    counts = [1 << len(fields) for fields in wrong]
    repaired = np.zeros((sum(counts), setting.world.fields), dtype=bool)
    for start, fields in zip(np.cumsum([0, *counts[:-1]]), wrong, strict=True):
        repaired[start : start + (1 << len(fields)), fields] = subsets(len(fields))
    accuracy = accuracies(setting, past, np.repeat(rows, counts), repaired, futures, first)[0][kind]
    parts = np.split(accuracy, np.cumsum(counts)[:-1])
    return [Lattice(int(row), fields, part.T) for row, fields, part in zip(rows, wrong, parts, strict=True)]


def load_lattices(
    worlds: Names, regime: str, protocol: str, profile: str, seeds: str, share: float = 0.5,
    futures: int = 96, pasts: int = 24,
) -> list[Lattices]:  # fmt: skip
    """Play every subset for every type of every world, on the first `pasts` episodes that suit."""
    found = []
    for setting in settings_of(worlds, regime, protocol, profile, share):
        past = look(setting, seeds_in(seeds, regime, protocol))
        for kind in setting.types:
            size = (past.wrong & setting.of_type(kind)).sum(axis=1)
            rows = np.flatnonzero((size >= 2) & (size <= MOST_WRONG))[:pasts]
            found.append(Lattices(setting, kind, past, play_subsets(setting, past, kind, rows, futures)))
    return found


def check_assumption(played: Sequence[Lattices], fresh: int = 4_000) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Look for violations of Assumption 5.1, and try the clearest of each kind again on fresh futures.

    Args:
        played: from `load_lattices`.
        fresh: futures of each confirmation.

    Returns:
        One row a place and property: `place property pasts compared negative clear`, and the share of pasts
        with a clear violation, `share share_low share_high` in percent (clear at the Bonferroni-adjusted
        level); one row a violation tried again: `place kind property seed smaller added item found value
        value_low value_high stands actions`, in points. `actions` are the extra valid actions that the agent
        takes when the item is repaired too.
    """
    counted, violations = [], []
    for own, name in itertools.product(played, ("monotone", "submodular")):
        parts = [_differences(lattice, name) for lattice in own.lattices]
        scores = [_z_scores(values) for _, values in parts]
        compared = sum(values.shape[1] for _, values in parts)
        cut = -NormalDist().inv_cdf(1 - 0.025 / max(1, compared))
        failing = sum(bool((z < cut).any()) for z in scores)
        share = wilson(failing, len(parts))[:3] if parts else (np.nan,) * 3
        place = {"place": own.place, "kind": own.kind, "property": name}
        counted.append(
            place | {
                "pasts": len(parts), "compared": compared,
                "negative": sum(int((values.mean(axis=0) < -TOLERANCE).sum()) for _, values in parts),
                "clear": sum(int((z < cut).sum()) for z in scores),
            } | ends("share", [POINTS * part for part in share])
        )  # fmt: skip
        lowest = [z.min(initial=0.0) for z in scores]
        if lowest and min(lowest) < 0:
            at = int(np.argmin(lowest))
            where = int(np.argmin(scores[at]))
            sets = tuple(int(column[where]) for column in parts[at][0])
            found = POINTS * float(parts[at][1][:, where].mean())
            violations.append(place | _try_again(own, own.lattices[at], sets, fresh) | {"found": found})
    columns = ["place", "kind", "property", "seed", "smaller", "added", "item", "found", "value", "value_low",
               "value_high", "stands", "actions"]  # fmt: skip
    return pd.DataFrame(counted), pd.DataFrame(violations, columns=columns)


def _differences(lattice: Lattice, name: str) -> tuple[tuple[Ints, ...], Floats]:
    """Return S, R and i of all differences that should not be negative, and their values [future, place]."""
    if name == "monotone":
        sets, item, values = first_differences(lattice.accuracy)
        return (sets, sets, item), values
    sets, other, item, values = second_differences(lattice.accuracy)
    return (sets, sets | 1 << other, item), values


def _z_scores(values: Floats) -> Floats:
    """Return the mean over its standard error by column; 0 where nothing varies."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return np.divide(values.mean(axis=0), error, out=np.zeros(values.shape[1]), where=error > TOLERANCE)


def _try_again(own: Lattices, lattice: Lattice, sets: tuple[int, ...], fresh: int) -> dict[str, object]:
    """Play the four sets of one difference again, on futures that nothing was chosen on."""
    smaller, larger, item = sets
    fields = np.array(own.setting.world.field_names, dtype=object)[lattice.wrong]
    every = subsets(len(fields))
    repaired = np.zeros((4, own.setting.world.fields), dtype=bool)
    for corner, mask in enumerate([smaller, smaller | 1 << item, larger, larger | 1 << item]):
        repaired[corner, lattice.wrong[every[mask]]] = True
    by_type, actions = accuracies(own.setting, own.past, np.full(4, lattice.row), repaired, fresh, FRESH)
    a = by_type[own.kind]
    values = a[1] - a[0] if smaller == larger else (a[1] - a[0]) - (a[3] - a[2])
    mean = POINTS * float(values.mean())
    half = POINTS * NormalDist().inv_cdf(0.975) * values.std(ddof=1) / np.sqrt(fresh)
    return {
        "seed": int(own.past.seeds[lattice.row]),
        "smaller": ", ".join(fields[every[smaller]]) or "∅",
        "added": ", ".join(fields[every[larger & ~smaller]]) or None,
        "item": fields[item],
        "stands": "yes" if mean + half < 0 else "no",
        "actions": float((actions[3] - actions[2]).mean()),
        **ends("value", (mean, mean - half, mean + half)),
    }


def greedy_repair(played: Sequence[Lattices], size: int, resamples: int) -> pd.DataFrame:
    """Let every score, and greedy repair itself, choose `size` fields where every subset was played.

    Returns:
        One row a place and score: `place score gamma` on the visited sets (cut to 0..1), `realized` E[G_T(S)]
        with `realized_low realized_high`, and `best` E[G_T(S*)], in points.
    """
    rows = []
    for own in played:
        if len(own.lattices) < 2:
            continue
        fields = np.flatnonzero(own.setting.of_type(own.kind))
        repairs = [lattice.repairs for lattice in own.lattices]
        best = float(np.mean([_best_set(one, size) for one in repairs]))
        for score in ("greedy", *SCORES):
            if score == "greedy":
                gamma, realized = 1.0, np.array([one.greedy(size) for one in repairs])
            else:
                values = rank_values(own.setting, own.past, score)[:, fields]
                orders = fields[np.argsort(-values, axis=1, kind="stable")]
                order_of = [orders[lattice.row].tolist() for lattice in own.lattices]
                steps = [one.steps(order, size) for one, order in zip(repairs, order_of, strict=True)]
                gained, most = (np.stack(column) for column in zip(*steps, strict=True))
                gamma = float(np.clip(np.nan_to_num(least_ratio(gained, most, resamples).value), 0.0, 1.0))
                realized = gained.sum(axis=1)
            mean = [POINTS * end for end in mean_interval(realized, resamples=resamples)[:3]]
            row = {"place": own.place, "score": score, "gamma": gamma, "best": POINTS * best}
            rows.append(row | ends("realized", mean))
    columns = ["place", "score", "gamma", "realized", "realized_low", "realized_high", "best"]
    return pd.DataFrame(rows, columns=columns)


def _best_set(repairs: Repairs, size: int) -> float:
    """Return G_T(S*) of the best set of at most `size` fields."""
    allowed = subsets(len(repairs.bit)).sum(axis=1) <= size
    return best_of_halves((repairs.value - repairs.value[0])[allowed])


# how well scores choose, on full-size worlds


@dataclass(frozen=True)
class Quality:
    """Greedy steps of every score on every past, for one belief type; arrays by score."""

    setting: Setting
    kind: str
    realized: dict[str, Floats]  # [row, step], mean gain of the field that the score takes at the step
    best: dict[str, Floats]  # [row, step], gain of the best field left
    total: dict[str, Floats]  # [row], G_T of the set taken in all steps


def play_quality(setting: Setting, kind: str, seeds: Ints, futures: int = 16, depth: int = DEPTH) -> Quality:
    """Play every greedy step of every score.

    Args:
        kind: the belief type T.
        seeds: [past]; taken in order until `MOST_FORKS` futures are asked for.
        futures: futures a past, even: one half chooses, the other values.
        depth: B_T, greedy steps.
    """
    past, own = look(setting, seeds), np.flatnonzero(setting.of_type(kind))
    depth = min(depth, len(own))
    orders = {
        score: own[np.argsort(-rank_values(setting, past, score)[:, own], axis=1, kind="stable")]
        for score in SCORES
    }
    plans: list[Repairs] = []
    played = 0
    for row in range(len(past.seeds)):
        asked = Repairs(own[past.wrong[row, own]], {})
        for order in orders.values():
            for step in range(depth + 1):
                mask = asked.mask(order[row, :step].tolist())
                for one in (mask, *(asked.following(mask) if step < depth else ())):
                    asked.value.setdefault(one, len(asked.value))
        played += len(asked.value) * futures
        if played > MOST_FORKS and len(plans) >= FEWEST_PASTS:
            break
        plans.append(asked)
    counts = [len(asked.value) for asked in plans]
    rows = np.repeat(np.arange(len(plans)), counts)
    repaired = np.zeros((len(rows), setting.world.fields), dtype=bool)
    every = ((asked, mask) for asked in plans for mask in asked.value)
    for line, (asked, mask) in zip(repaired, every, strict=True):
        line[[field for field, bit in asked.bit.items() if mask >> bit & 1]] = True
    halves = in_halves(accuracies(setting, past, rows, repaired, futures)[0][kind])

    realized, best = ({score: np.zeros((len(plans), depth)) for score in SCORES} for _ in range(2))
    total = {score: np.zeros(len(plans)) for score in SCORES}
    for row, (asked, part) in enumerate(zip(plans, np.split(halves, np.cumsum(counts)[:-1]), strict=True)):
        asked.value = dict(zip(asked.value, part, strict=True))
        for score, order in orders.items():
            chosen = order[row].tolist()
            realized[score][row], best[score][row] = asked.steps(chosen, depth)
            total[score][row] = (asked.value[asked.mask(chosen[:depth])] - asked.value[0]).mean()
            if score == "random":  # the mean of all fields left, the right ones gain 0
                realized[score][row] = [
                    asked.gains(asked.mask(chosen[:step])).mean(axis=1).sum() / (len(own) - step)
                    for step in range(depth)
                ]
    return Quality(setting, kind, realized, best, total)


def measure_quality(
    worlds: Names, regime: str, protocol: str, profile: str, seeds: str, share: float = 0.5,
    pasts: int = 120, futures: int = 16, resamples: int = 10_000,
) -> pd.DataFrame:  # fmt: skip
    """Estimate the marginal quality gamma of every score (Definition 5.2), and the paper's proxy for it.

    Returns:
        One row a world, type and score: `place world kind score`, `gamma` and `proxy` (gain of the whole set
        over Oracle-TW's), each with `_low _high`; NaN where no repair gains anything. `pasts` were used.
    """
    chosen, rows = seeds_in(seeds, regime, protocol)[:pasts], []
    for setting in settings_of(worlds, regime, protocol, profile, share):
        for kind in setting.types:
            run = play_quality(setting, kind, chosen, futures)
            place = {"place": place_of(setting, kind), "world": setting.world.name, "kind": kind}
            for score in SCORES:
                gamma = least_ratio(run.realized[score], run.best[score], resamples)
                proxy = ratio_interval(run.total[score], run.total["oracle-tw"], resamples)
                row = place | {"score": score} | ends("gamma", gamma) | ends("proxy", proxy)
                rows.append(row | {"pasts": gamma.n})
    return pd.DataFrame(rows)


# single repairs


@dataclass(frozen=True)
class SingleGains:
    """Gain of repairing each field alone."""

    setting: Setting
    past: Past
    gain: Floats  # [row, field], change of A_H^T of the field's own type, mean over futures
    other: Floats  # [row, field], change of A_H^T of the other type (0 in a world of one type)


def play_singles(setting: Setting, seeds: Ints, futures: int = 8) -> SingleGains:
    """Repair every field alone, on every past [past]."""
    past = look(setting, seeds)
    row, field = np.nonzero(past.wrong)
    plain = np.arange(len(past.seeds))
    repaired = np.zeros((len(plain) + len(row), setting.world.fields), dtype=bool)
    repaired[len(plain) + np.arange(len(row)), field] = True
    by_type, _ = accuracies(setting, past, np.concatenate([plain, row]), repaired, futures)
    gain, other = np.zeros(past.c.shape), np.zeros(past.c.shape)
    for kind, accuracy in by_type.items():
        mean = accuracy.mean(axis=1)
        change = mean[len(plain) :] - mean[row]
        own = setting.of_type(kind)[field]
        gain[row[own], field[own]] = change[own]
        other[row[~own], field[~own]] = change[~own]
    return SingleGains(setting, past, gain, other)


def load_singles(
    worlds: Names, regime: str, protocol: str, profile: str, seeds: str, share: float = 0.5, futures: int = 8
) -> list[SingleGains]:
    """Repair every field alone in every world."""
    chosen, settings = (
        seeds_in(seeds, regime, protocol),
        settings_of(worlds, regime, protocol, profile, share),
    )
    return [play_singles(setting, chosen, futures) for setting in settings]


def by_type(runs: Sequence[SingleGains]) -> Iterator[tuple[str, SingleGains, str, Ints]]:
    """Yield each world and belief type: how tables call it, the run, the type and its fields."""
    for run in runs:
        for kind in run.setting.types:
            yield place_of(run.setting, kind), run, kind, np.flatnonzero(run.setting.of_type(kind))


def mean_gains(runs: Sequence[SingleGains], resamples: int) -> pd.DataFrame:
    """Return q_i of every field with its interval, in points: `place field q q_low q_high`, largest first."""
    rows = []
    for place, run, _, own in by_type(runs):
        for field in own:
            q = mean_interval(POINTS * run.gain[:, field], resamples=resamples)
            rows.append({"place": place, "field": run.setting.world.field_names[field]} | ends("q", q))
    frame = pd.DataFrame(rows)
    order = frame["place"].map({place: at for at, place in enumerate(frame["place"].unique())})
    return frame.iloc[np.lexsort([-frame["q"], order])].reset_index(drop=True)


def compare_uniform(runs: Sequence[SingleGains], resamples: int) -> pd.DataFrame:
    """Compare a uniform with a targeted single probe.

    Returns:
        One row a world and type: `place`, the mean gain `uniform` and that of the best field `targeted`, in
        points, `efficiency` with `_low _high`, `best_field` (None if all gains are equal).
    """
    rows = []
    for place, run, _, own in by_type(runs):
        gain, best = run.gain[:, own], np.zeros(len(run.gain))
        for half in (0, 1):
            best[1 - half :: 2] = gain[1 - half :: 2, int(np.argmax(gain[half::2].mean(axis=0)))]
        q = gain.mean(axis=0)
        first = run.setting.world.field_names[own[int(np.argmax(q))]]
        row = {"place": place, "uniform": POINTS * q.mean(), "targeted": POINTS * best.mean()}
        row |= ends("efficiency", ratio_interval(gain.mean(axis=1), best, resamples))
        rows.append(row | {"best_field": first if np.ptp(q) else None})
    return pd.DataFrame(rows)


def leaks(runs: Sequence[SingleGains], resamples: int) -> pd.DataFrame:
    """Measure what repairs of one type, each done alone, do in sum to the other type, in points.

    Returns:
        `place leak leak_low leak_high`; worlds with one type are left out.
    """
    rows = []
    for place, run, _, own in by_type(runs):
        if len(run.setting.types) > 1:
            other = POINTS * run.other[:, own].sum(axis=1)
            rows.append({"place": place} | ends("leak", mean_interval(other, resamples=resamples)))
    return pd.DataFrame(rows, columns=["place", "leak", "leak_low", "leak_high"])


def compare_reports(runs: Sequence[SingleGains], resamples: int) -> pd.DataFrame:
    """Estimate both sides of the self-report bound (Lemma 5.4) from binned features.

    Returns:
        One row a world and type: `place kind bins`; `epsilon`, the largest |m(h, z) - m0(h)| over bins with
        enough entries (biased upwards), and `epsilon_split`, the same bin chosen on one half of the pasts and
        valued on the other; the mean gain of the best rule of h (`structural`) and of both, fitted
        on one half and valued on the other, and the `advantage` of both with `_low _high`. In points.
    """
    return pd.DataFrame(
        {"place": place, "kind": kind} | _report(run, own, resamples)
        for place, run, kind, own in by_type(runs)
    )


def _report(run: SingleGains, own: Ints, resamples: int) -> dict[str, object]:
    gain = POINTS * run.gain[:, own]
    h, hz = feature_codes(run.past, own)

    def deviations(rows: slice, least: int) -> Floats:
        alone = bin_means(h[rows], gain[rows], least)[:9]
        return bin_means(hz[rows], gain[rows], least) - np.repeat(alone, 9)

    whole = deviations(slice(None), FEWEST_IN_BIN)
    halves = [deviations(slice(half, None, 2), FEWEST_IN_BIN // 2) for half in (0, 1)]
    usable = ~np.isnan(halves[0]) & ~np.isnan(halves[1])
    split = []
    for chooser in (0, 1) if usable.any() else ():
        worst = int(np.argmax(np.where(usable, np.abs(halves[chooser]), -1.0)))
        split.append(halves[1 - chooser][worst] * np.sign(halves[chooser][worst]))
    by_h, by_both = np.zeros(len(gain)), np.zeros(len(gain))
    for half in (0, 1):
        fit, test = slice(half, None, 2), slice(1 - half, None, 2)
        for codes, value in ((h, by_h), (hz, by_both)):
            promise = np.nan_to_num(bin_means(codes[fit], gain[fit], 1))
            picked = np.argmax(promise[codes[test]], axis=1)
            value[test] = gain[test][np.arange(len(picked)), picked]
    known = whole[~np.isnan(whole)]
    return {
        "bins": len(known),
        "epsilon": np.abs(known).max() if len(known) else np.nan,
        "epsilon_split": float(np.mean(split)) if split else np.nan,
        "structural": by_h.mean(),
        "both": by_both.mean(),
        **ends("advantage", mean_interval(by_both - by_h, resamples=resamples)),
    }


def feature_codes(past: Past, own: Ints) -> tuple[Ints, Ints]:
    """Code h = (c, d) and (h, z) with z = (s, u) by bins, [row, own field] each."""
    terms = {name: value[:, own] for name, value in terms_of(past).items()}

    def binned(name: str, edges: tuple[float, ...]) -> Ints:
        return np.searchsorted(np.asarray(edges), terms[name], side="right") - 1

    h = binned("c", CRITICALITY_EDGES) * 3 + binned("d", DEPENDENCY_EDGES)
    return h, h * 9 + binned("s", STALENESS_EDGES) * 3 + binned("u", DOUBT_EDGES)


def bin_means(codes: Ints, gain: Floats, least: int = FEWEST_IN_BIN) -> Floats:
    """Return the mean gain of each code, [code]; NaN in bins with fewer entries than `least`."""
    count = np.bincount(codes.ravel(), minlength=81)
    total = np.bincount(codes.ravel(), gain.ravel(), minlength=81)
    return np.divide(total, count, out=np.full(len(count), np.nan), where=count >= least)
