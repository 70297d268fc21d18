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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import PROCEDURAL, SPATIAL, Floats, Ints, Mask, Values, World

FUTURES = 1 << 40  # seeds of futures start here, far from those of episodes
FUTURES_OF_ONE = 100_000
BATCH_ROWS = 1_000
MOST_FORKS = 60_000  # a belief type; where nearly everything is wrong a past asks for thousands
FEWEST_PASTS = 8

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

    @property
    def terms(self) -> dict[str, Floats]:
        """Return the four terms of the probe score, [row, field] each."""
        return {"c": self.c, "s": S[self.staleness], "u": U[self.confidence], "d": self.d}


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
    ended = (episodes.block.ended == 1) & (setting.world.protocol.end == "success")
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
    pasts, parts = _until(setting, different), []
    for first in range(0, len(seeds), BATCH_ROWS):
        rows = slice(first, first + BATCH_ROWS)
        forks, own = copy.copy(pasts), past[rows]
        forks.seeds, forks.block, forks.logs = (
            part.take(own, axis=0) for part in (pasts.seeds, pasts.block, pasts.logs)
        )
        _draw_from(forks.setting, forks.block, futures[rows])
        parts.append(_finish(setting, forks, repaired[rows]))
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


@entry
def _draw_from(setting, block, seeds):
    """Let episodes draw from other seeds from now on."""
    for row in range(len(block)):
        stream_keys(seeds[row], setting.world.code, block[row].keys)


def _finish(setting: Setting, forks: Episodes, repaired: Mask) -> Futures:
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
    seeds, shape = np.repeat(past.seeds[row], futures), (len(row), futures)
    numbers = np.tile(np.arange(first, first + futures), len(row))
    played = play(setting, seeds, future_seeds(seeds, numbers), np.repeat(repaired, futures, axis=0))
    right = {kind: played.right[:, setting.of_type(kind)].mean(axis=1) for kind in setting.types}
    by_type = {kind: share.reshape(shape) for kind, share in right.items()}
    return by_type, played.actions.reshape(shape).astype(np.float64)


# what scores rank fields by

TERM_SCORES = {"full": "csud", "c+d": "cd", "s+u": "su", "c": "c", "s": "s", "u": "u", "d": "d"}
SCORES = (*TERM_SCORES, "random", "periodic", "oracle", "oracle-tw")


def rank_values(setting: Setting, past: Past, score: str) -> Floats:
    """Return what a score ranks fields by, [row, field]: higher is probed earlier, ties to the first field.

    A repaired field leaves the competition, and c, d, s and u of the others stay what they were, so one
    ranking serves all sets that the score visits.
    """
    shape = past.c.shape
    if score in TERM_SCORES:
        return np.asarray(sum(past.terms[term] for term in TERM_SCORES[score]))
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


def orders_of(setting: Setting, past: Past, kind: str) -> dict[str, Ints]:
    """Return the fields of a type as each score would repair them, [row, place]."""
    own = np.flatnonzero(setting.of_type(kind))
    ranks = {score: rank_values(setting, past, score)[:, own] for score in SCORES}
    return {score: own[np.argsort(-values, axis=1, kind="stable")] for score, values in ranks.items()}


# sets of repairs: bit masks of the wrong fields of one past


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
        realized = [float((self.value[after] - self.value[mask]).mean()) for mask, after in pairwise(masks)]
        return realized, [best_of_halves(self.gains(mask)) for mask in masks[:-1]]


def best_of_halves(gains: Floats) -> float:
    """Value on one half what is best on the other, [option, half]; nothing at all gives 0."""
    with_none = np.concatenate([np.zeros((1, 2)), gains])
    return float(np.mean([with_none[np.argmax(with_none[:, half]), 1 - half] for half in (0, 1)]))


def in_halves(accuracy: Floats) -> Floats:
    """Average [set, future] over the two halves of the futures, [set, half]."""
    return np.stack([accuracy[:, half::2].mean(axis=1) for half in (0, 1)], axis=1)


def play_sets(
    setting: Setting,
    past: Past,
    kind: str,
    asked: Sequence[tuple[int, Iterable[int], Sequence[int]]],
    futures: int,
) -> list[Floats]:
    """Play sets of repairs.

    Args:
        asked: a row of the past, its wrong fields, and masks of them, for each past that is asked about.

    Returns:
        For each, A_H^T of its sets, [set, future].
    """
    if not asked:
        return []
    ends = np.cumsum([len(masks) for *_, masks in asked])
    repaired = np.zeros((ends[-1], setting.world.fields), dtype=bool)
    for own, (_, fields, masks) in zip(np.split(repaired, ends[:-1]), asked, strict=True):
        for bit, field in enumerate(fields):
            own[:, field] = np.array(masks) >> bit & 1
    rows = np.repeat([row for row, *_ in asked], [len(masks) for *_, masks in asked])
    return np.split(accuracies(setting, past, rows, repaired, futures)[0][kind], ends[:-1])


class Lattice(NamedTuple):
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
    wrong = [np.flatnonzero(past.wrong[row] & setting.of_type(kind)) for row in rows]
    asked = [(int(row), own, range(1 << len(own))) for row, own in zip(rows, wrong, strict=True)]
    played = play_sets(setting, past, kind, asked, futures)
    return [Lattice(row, own, found.T) for (row, own, _), found in zip(asked, played, strict=True)]


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
    depth, orders = min(depth, len(own)), orders_of(setting, past, kind)
    asked, played = [], 0
    for row in range(len(past.seeds)):
        sets = Repairs(own[past.wrong[row, own]], {})
        masks = {}
        for order in orders.values():
            visited = [sets.mask(order[row, :step].tolist()) for step in range(depth + 1)]
            masks |= dict.fromkeys(
                [*visited, *(one for mask in visited[:-1] for one in sets.following(mask))]
            )
        played += len(masks) * futures
        if played > MOST_FORKS and len(asked) >= FEWEST_PASTS:
            break
        asked.append((row, sets.bit, list(masks)))
    realized, best = ({score: np.zeros((len(asked), depth)) for score in SCORES} for _ in range(2))
    total = {score: np.zeros(len(asked)) for score in SCORES}
    found = play_sets(setting, past, kind, asked, futures)
    for (row, wrong, masks), accuracy in zip(asked, found, strict=True):
        sets = Repairs(wrong, dict(zip(masks, in_halves(accuracy), strict=True)))
        for score, order in orders.items():
            chosen = order[row].tolist()
            realized[score][row], best[score][row] = sets.steps(chosen, depth)
            total[score][row] = (sets.value[sets.mask(chosen[:depth])] - sets.value[0]).mean()
            if score == "random":  # the mean of all fields left, the right ones gain 0
                left = (sets.gains(sets.mask(chosen[:step])).mean(axis=1).sum() for step in range(depth))
                realized[score][row] = [gained / (len(own) - step) for step, gained in enumerate(left)]
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
        mean, own = accuracy.mean(axis=1), setting.of_type(kind)[field]
        change = mean[len(plain) :] - mean[row]
        gain[row[own], field[own]] = change[own]
        other[row[~own], field[~own]] = change[~own]
    return past, gain, other
