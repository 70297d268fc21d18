"""What repairs of beliefs are worth, measured on forks of episodes (Section 5.1 of the paper; ours).

G_T(S) compares two futures of one past: with the fields of S answered at one moment, and without. The past is
that of No-Probe on a seed. At the moment t the answers are written as a probe's would be, b_{t+1} := g_t, but
no step is spent; from then on the world and the agent draw from the future's seed, which all sets S share
(common random numbers). Nobody probes afterwards.

Repairing a belief that is right changes nothing that anybody reads later, so G_T(S) = G_T(S and E) with E the
wrong beliefs: only subsets of E need to be played.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.compiled.noise import PROBE, STREAMS, draw, stream_keys
from envprobe_core.compiled.numba_support import kernel
from envprobe_core.compiled.records import CERTAIN, NONE, Word
from envprobe_core.conditions import Condition, find_profile, find_regime
from envprobe_core.engine.batch import EpisodeBatch
from envprobe_core.engine.kernel import STALENESS_TERM, UNCERTAINTY_TERM
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import parse_protocol
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import PROCEDURAL, SPATIAL, Floats, Ints, Mask, World

FUTURES = 1 << 40  # seeds of futures start here, far from those of episodes
FUTURES_OF_ONE = 100_000
BATCH_ROWS = 1_000

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
        """The belief types that this world has."""
        return tuple(kind for kind in (PROCEDURAL, SPATIAL) if kind in self.world.field_kinds)

    def of_type(self, kind: str) -> Mask:
        """Which fields are of a type, [field]."""
        return np.array(self.world.field_kinds) == kind


class Past(NamedTuple):
    """What a policy and an oracle see at the moment t, one row an episode that still runs then."""

    seeds: Ints  # [row]
    wrong: Mask  # [row, field], beliefs that differ from gold: repairing any other changes nothing
    terms: dict[str, Floats]  # the four terms of the probe score, [row, field] each
    weights: Floats  # [row, field], the task weights


class Futures(NamedTuple):
    """How the forks ended."""

    right: Mask  # [row, field], beliefs that are right at the end
    success: Mask  # [row]
    actions: Ints  # [row], valid task actions from the moment on, that of step t included


def future_seeds(past_seeds: Ints, number: Ints) -> Ints:
    """The seed of the numbered future of each past, [row]."""
    return FUTURES + past_seeds % (1 << 20) * FUTURES_OF_ONE + number


def look(setting: Setting, seeds: Ints) -> Past:
    """Run No-Probe up to the moment and return what a policy and an oracle would see there."""
    episodes = _until(setting, seeds)
    ended = (episodes.block.succeeded == 1) & (setting.world.protocol.end == "success")
    episodes.sense()
    rows, own = episodes.block[~ended], np.s_[:, : setting.world.fields]
    table, sight = rows.table, rows.sight
    terms = {
        "c": sight.c,
        "s": STALENESS_TERM[table.staleness],
        "u": UNCERTAINTY_TERM[table.confidence],
        "d": sight.d,
    }
    wrong = (table.value != rows.gold)[own]
    return Past(seeds[~ended], wrong, {name: term[own] for name, term in terms.items()}, rows.weight[own])


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
        _draw_from(forks.params, forks.block, futures[rows])
        parts.append(_finish(setting, forks, repaired[rows]))
    return Futures(*map(np.concatenate, zip(*parts, strict=True)))


def _until(setting: Setting, seeds: Ints) -> EpisodeBatch:
    """Run No-Probe up to the moment's decision."""
    world = setting.world
    condition = Condition(
        world.name, POLICIES["no-probe"], world.regime, world.protocol, setting.profile, budget=0
    )
    episodes = EpisodeBatch(condition, seeds, world=world, scores_all=False)
    for t in range(setting.moment + 1):
        if t > 0:
            episodes.advance(np.full(len(seeds), NONE))
        episodes.propose()
        episodes.record()
    return episodes


@kernel
def _draw_from(setting, block, seeds):
    """Let episodes draw from other seeds from now on."""
    for row in range(len(block)):
        stream_keys(seeds[row], setting.world.code, block[row].keys)


def _finish(setting: Setting, forks: EpisodeBatch, repaired: Mask) -> Futures:
    """Run forks from the moment's decision, which is to act, to the end."""
    block, width = forks.block, setting.world.fields
    rows, field = np.nonzero(repaired & (block.over == 0)[:, None])
    gold = block.gold[rows, field]
    forks.advance(np.full(len(block), NONE))
    table = block.table  # repaired once it has aged, before the agent reads it again
    table.value[rows, field], table.staleness[rows, field], table.confidence[rows, field] = gold, 0, CERTAIN
    forks.propose()
    forks.record()
    forks.go_on()
    right = table.value[:, :width] == block.gold[:, :width]
    return Futures(right, block.succeeded == 1, forks.logs.valid[:, setting.moment :].sum(axis=1))


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
    """What a score ranks fields by, [row, field]: higher is probed earlier, ties to the first field.

    A repaired field leaves the competition, and c, d, s and u of the others stay what they were, so one
    ranking serves all sets that the score visits.
    """
    shape = past.wrong.shape
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


@kernel
def _draw(code, seeds, clock, words):
    """Draw a word of the probing stream for every field, [row, field]."""
    keys = np.zeros(STREAMS, Word)
    for row in range(len(seeds)):
        stream_keys(seeds[row], code, keys)
        for field in range(words.shape[1]):
            words[row, field] = draw(keys[PROBE], clock, field)


def play_singles(setting: Setting, seeds: Ints, futures: int = 8) -> tuple[Past, Floats, Floats]:
    """Repair every field alone, on every past [past]; refused where no episode still runs at the moment.

    Returns:
        The pasts, and the mean change of A_H^T over the futures, [row, field]: of the field's own type, and
        of the other type (0 in a world of one type).
    """
    past = look(setting, seeds)
    if not len(past.seeds):
        none = f"none of {len(seeds)} episodes in {setting.world.name} still runs at step {setting.moment}"
        raise InputError(f"{none}; more seeds, or an earlier moment, are needed")
    row, field = np.nonzero(past.wrong)
    plain = np.arange(len(past.seeds))
    repaired = np.zeros((len(plain) + len(row), setting.world.fields), dtype=bool)
    repaired[len(plain) + np.arange(len(row)), field] = True
    by_type, _ = accuracies(setting, past, np.concatenate([plain, row]), repaired, futures)
    gain, other = np.zeros((2, *past.wrong.shape))
    for kind, accuracy in by_type.items():
        mean, own = accuracy.mean(axis=1), setting.of_type(kind)[field]
        change = mean[len(plain) :] - mean[row]
        gain[row[own], field[own]] = change[own]
        other[row[~own], field[~own]] = change[~own]
    return past, gain, other
