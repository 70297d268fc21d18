"""What repairs of beliefs are worth, measured on forks of episodes (Section 5.1 of the paper; ours).

G_T(S) compares two futures of one past: with the fields of S answered at one moment, and without. The past is
that of No-Probe on a seed. At the moment t the answers are written as a probe's would be, b_{t+1} := g_t, but
no step is spent; from then on the world and the agent draw from the future's seed, which all sets S share
(common random numbers). Nobody probes afterwards.

Repairing a belief that is right changes nothing that anybody reads later, so G_T(S) = G_T(S and E) with E the
wrong beliefs: only subsets of E are played. Where the best of several noisy numbers is taken, it is chosen on
one half of the futures and valued on the other.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.cells import Cell, find_profile, find_regime
from envprobe_core.engine.compiling import entry
from envprobe_core.engine.loop import S, U
from envprobe_core.engine.noise import PROBE, STREAMS, draw, stream_keys
from envprobe_core.engine.records import CERTAIN, NONE, Word
from envprobe_core.engine.running import Episodes
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import parse_protocol
from envprobe_core.statistics import Interval, bootstrap_means, percentile_interval
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import PROCEDURAL, SPATIAL, Floats, Ints, Mask, Values, World

FUTURES = 1 << 40  # seeds of futures start here, far from those of episodes
FUTURES_OF_ONE = 100_000
BATCH_ROWS = 1_000
MOST_FORKS = 60_000  # a belief type; where nearly everything is wrong a past asks for thousands
FEWEST_PASTS = 8
SMALLEST_GAIN = 1e-9

# forks


@dataclass(frozen=True)
class Setting:
    """What all forks of a measurement share; `moment` is the step t at which fields are repaired."""

    world: World
    profile: AgentProfile
    moment: int

    @classmethod
    def of(cls, world: str, regime: str, protocol: str, profile: str, share: float = 0.5) -> Setting:
        """Build a setting from names; the moment is that share of the horizon, rounded down."""
        built = make_world(world, find_regime(regime), parse_protocol(protocol))
        return cls(built, find_profile(profile), int(share * built.regime.horizon))

    @property
    def types(self) -> tuple[str, ...]:
        """Return the belief types that this world has."""
        return tuple(kind for kind in (PROCEDURAL, SPATIAL) if kind in self.world.field_kinds)

    def of_type(self, kind: str) -> Mask:
        """Say which fields are of a type, [field]."""
        return np.array(self.world.field_kinds) == kind


@dataclass(frozen=True)
class Past:
    """What stands at the moment t, one row an episode that still runs then."""

    seeds: Ints  # [row]
    belief: Values  # [row, field]
    gold: Values  # [row, field]
    staleness: npt.NDArray[np.uint8]  # [row, field], as reported
    confidence: npt.NDArray[np.uint8]  # [row, field], as reported
    c: Floats  # [row, field]
    d: Floats  # [row, field]
    weights: Floats  # [row, field]

    @property
    def wrong(self) -> Mask:
        """Say which beliefs differ from gold, [row, field]: repairing any other changes nothing."""
        return self.belief != self.gold


class Futures(NamedTuple):
    """How the forks ended."""

    right: Mask  # [row, field], beliefs that are right at the end
    success: Mask  # [row]
    actions: Ints  # [row], valid task actions from the moment on, that of step t included


def future_seeds(past_seeds: Ints, number: Ints) -> Ints:
    """Return the seed of the numbered future of each past, [row]."""
    return FUTURES + past_seeds % (1 << 20) * FUTURES_OF_ONE + number


def look(setting: Setting, seeds: Ints) -> Past:
    """Run No-Probe up to the moment and return what a policy and an oracle would see there."""
    episodes = _until(setting, seeds)
    stops = setting.world.protocol.end == "success"
    ended = (episodes.block.ended == 1) & stops
    episodes.look()
    rows, width = episodes.block[~ended], setting.world.fields
    table, sight = rows.table, rows.sight
    columns = (
        table.value.astype(np.int8), rows.gold.astype(np.int8), table.staleness.astype(np.uint8),
        table.confidence.astype(np.uint8), sight.c, sight.d, rows.weight,
    )  # fmt: skip
    return Past(seeds[~ended], *(column[:, :width] for column in columns))


def play(setting: Setting, seeds: Ints, futures: Ints, repaired: Mask) -> Futures:
    """Run forks to the end.

    Args:
        setting: world, profile and moment.
        seeds: [row], the pasts.
        futures: [row], seeds of the futures (`future_seeds`); a past's own seed continues it as it was.
        repaired: [row, field], which beliefs are set to gold at the moment.
    """
    different, past = np.unique(seeds, return_inverse=True)
    pasts = _until(setting, different)
    parts = [
        _continued(setting, _forked(pasts, past[rows], futures[rows]), repaired[rows])
        for rows in (slice(first, first + BATCH_ROWS) for first in range(0, len(seeds), BATCH_ROWS))
    ]
    return Futures(*map(np.concatenate, zip(*parts, strict=True)))


def _until(setting: Setting, seeds: Ints) -> Episodes:
    """Run No-Probe up to the moment's decision."""
    world = setting.world
    cell = Cell(world.name, POLICIES["no-probe"], world.regime, world.protocol, setting.profile, budget=0)
    episodes = Episodes(cell, seeds, world=world, scores_all=False)
    for t in range(setting.moment + 1):
        if t > 0:
            episodes.advance(np.full(len(seeds), NONE))
        episodes.propose()
        episodes.settle()
    return episodes


def _forked(pasts: Episodes, rows: Ints, futures: Ints) -> Episodes:
    """Copy rows, and let them draw from the futures' seeds."""
    forks = copy.copy(pasts)
    forks.seeds, forks.block, forks.logs = pasts.seeds[rows], pasts.block[rows], pasts.logs[rows]
    _draw_from(forks.setting, forks.block, futures)
    return forks


@entry
def _draw_from(setting, block, seeds):
    for row in range(len(block)):
        stream_keys(seeds[row], setting.world.code, block[row].keys)


def _continued(setting: Setting, forks: Episodes, repaired: Mask) -> Futures:
    """Run forks from the moment's decision, which is to act, to the end."""
    block, width = forks.block, setting.world.fields
    rows, field = np.nonzero(repaired & (block.over == 0)[:, None])
    gold = block.gold[rows, field]
    forks.advance(np.full(len(block), NONE))
    table = block.table  # repaired once it has aged, before the agent reads it again
    table.value[rows, field], table.staleness[rows, field], table.confidence[rows, field] = gold, 0, CERTAIN
    forks.propose()
    forks.settle()
    forks.go_on()
    right = table.value[:, :width] == block.gold[:, :width]
    return Futures(right, block.ended == 1, forks.logs.valid[:, setting.moment :].sum(axis=1))


def accuracies(
    setting: Setting, past: Past, row: Ints, repaired: Mask, futures: int, first: int = 0
) -> tuple[dict[str, Floats], Floats]:
    """Play each query's futures.

    Args:
        row: [query], a row of the past.
        repaired: [query, field].
        futures: futures a query.
        first: number of the first future; numbers from another range are fresh futures.

    Returns:
        A_H^T by type, [query, future], and the number of valid task actions taken, [query, future].
    """
    seeds = np.repeat(past.seeds[row], futures)
    numbers = np.tile(np.arange(first, first + futures), len(row))
    played = play(setting, seeds, future_seeds(seeds, numbers), np.repeat(repaired, futures, axis=0))
    shape = (len(row), futures)
    by_type = {
        kind: played.right[:, setting.of_type(kind)].mean(axis=1).reshape(shape) for kind in setting.types
    }
    return by_type, played.actions.reshape(shape).astype(np.float64)


# what scores rank fields by

TERM_SCORES = {"full": "csud", "c+d": "cd", "s+u": "su", "c": "c", "s": "s", "u": "u", "d": "d"}
SCORES = (*TERM_SCORES, "random", "periodic", "oracle", "oracle-tw")


def terms_of(past: Past) -> dict[str, Floats]:
    """Return the four terms of the probe score at the moment, [row, field] each."""
    return {"c": past.c, "s": S[past.staleness], "u": U[past.confidence], "d": past.d}


def rank_values(setting: Setting, past: Past, score: str) -> Floats:
    """Return what a score ranks fields by, [row, field]: higher is probed earlier, ties to the first field.

    A repaired field leaves the competition, and c, d, s and u of the others stay what they were, so one
    ranking serves all sets that the score visits.
    """
    terms, shape = terms_of(past), past.c.shape
    if score in TERM_SCORES:
        return np.asarray(sum(terms[term] for term in TERM_SCORES[score]))
    if score == "random":
        words = np.zeros(shape, np.uint64)
        _draw(setting.world.rules.code, past.seeds, setting.moment, words)
        return words.astype(np.float64)
    if score == "periodic":
        horizon, budget = setting.world.regime.horizon, setting.world.regime.budget
        probed = min(budget, max(0, (setting.moment - 1) // max(1, horizon // max(1, budget))))
        turn = (np.arange(shape[1]) - probed) % shape[1]
        return np.broadcast_to(-turn.astype(np.float64), shape)
    if score == "oracle":
        return past.wrong.astype(np.float64)
    return np.where(past.wrong, 1.0 + past.weights, 0.0)  # oracle-tw


@entry
def _draw(code, seeds, clock, words):
    """Draw a word of the probing stream for every field, [row, field]."""
    keys = np.zeros(STREAMS, Word)
    for row in range(len(seeds)):
        stream_keys(seeds[row], code, keys)
        for field in range(words.shape[1]):
            words[row, field] = draw(keys[PROBE], clock, field)


# sets of repairs: an array [..., 2**item]; entry `mask` is the value of the set with the bits of `mask`


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


def play_subsets(setting: Setting, past: Past, kind: str, rows: Ints, futures: int) -> list[Lattice]:
    """Play every subset of the wrong fields of a type, on the given rows of a past."""
    own = setting.of_type(kind)
    wrong = [np.flatnonzero(past.wrong[row] & own) for row in rows]
    if not wrong:
        return []
    counts = [1 << len(fields) for fields in wrong]
    repaired = np.zeros((sum(counts), setting.world.fields), dtype=bool)
    for start, fields in zip(np.cumsum([0, *counts[:-1]]), wrong, strict=True):
        repaired[start : start + (1 << len(fields)), fields] = subsets(len(fields))
    accuracy = accuracies(setting, past, np.repeat(rows, counts), repaired, futures)[0][kind]
    parts = np.split(accuracy, np.cumsum(counts)[:-1])
    return [Lattice(int(row), fields, part.T) for row, fields, part in zip(rows, wrong, parts, strict=True)]


Gains = dict[str, Floats]
"""By score, [row] or [row, step]."""


def play_quality(
    setting: Setting, kind: str, seeds: Ints, futures: int = 16, depth: int = 3
) -> tuple[Gains, Gains, Gains]:
    """Play every greedy step of every score.

    Args:
        setting: world, profile and moment.
        kind: the belief type T.
        seeds: [past]; taken in order until `MOST_FORKS` futures are asked for.
        futures: futures a past, even: one half chooses, the other values.
        depth: B_T, greedy steps.

    Returns:
        By score: the mean gain of the field that it takes at each step, and that of the best field left,
        [row, step] each; and G_T of the set taken in all steps, [row].
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
    return realized, best, total


def play_singles(setting: Setting, seeds: Ints, futures: int = 8) -> tuple[Past, Floats, Floats]:
    """Repair every field alone, on every past [past].

    Returns:
        The pasts, and the mean change of A_H^T over the futures, [row, field]: of the field's own type, and
        of the other type (0 in a world of one type).
    """
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
    return past, gain, other


def least_ratio(top: Floats, bottom: Floats, resamples: int) -> Interval:
    """Return the smallest ratio of sums, over the columns of [past, column], resampled by past.

    NaN where some sum below is not positive, ends NaN where it is not in more than 1% of the resamples.
    """
    n, columns = top.shape
    nothing = Interval(np.nan, np.nan, np.nan, n)
    if n < 2 or (bottom.mean(axis=0) <= SMALLEST_GAIN).any():
        return nothing
    value = float((top.mean(axis=0) / bottom.mean(axis=0)).min())
    means = bootstrap_means(np.concatenate([top, bottom], axis=1), resamples=resamples)
    good = (means[:, columns:] > SMALLEST_GAIN).all(axis=1)
    if good.mean() < 0.99:
        return nothing._replace(value=value)
    low, high = percentile_interval((means[good, :columns] / means[good, columns:]).min(axis=1))
    return Interval(value, float(low), float(high), n)
