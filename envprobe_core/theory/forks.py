"""Forks: one episode up to a moment, some fields repaired for free, and many futures from there (ours).

G_T(S) of Section 5.1 compares two futures of one past: with the fields of S answered at one moment, and
without. The past is that of No-Probe on a seed. At the moment t the answers are written as a probe's would
be, b_{t+1} := g_t, but no step is spent; from then on the world and the agent draw from the future's seed,
which all sets S share (common random numbers). Nobody probes afterwards.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.cells import Cell, find_profile, find_regime, make_cell, read_seeds
from envprobe_core.engine.compiling import entry
from envprobe_core.engine.noise import stream_keys
from envprobe_core.engine.records import CERTAIN, NONE
from envprobe_core.engine.running import Episodes
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import Protocol, parse_protocol
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import PROCEDURAL, SPATIAL, Floats, Ints, Mask, Values, World

FUTURES = 1 << 40  # seeds of futures start here, far from those of episodes
FUTURES_OF_ONE = 100_000
BATCH_ROWS = 1_000
TYPES = (PROCEDURAL, SPATIAL)


@dataclass(frozen=True)
class Setting:
    """What all forks of a measurement share; `moment` is the step t at which fields are repaired."""

    world: World
    profile: AgentProfile
    moment: int

    @classmethod
    def of(
        cls, world: str, regime: str, protocol: str | Protocol, profile: str, share: float = 0.5
    ) -> Setting:
        """Build a setting from names; the moment is that share of the horizon, rounded down."""
        level = find_regime(regime)
        rules = parse_protocol(protocol) if isinstance(protocol, str) else protocol
        built = make_world(world, level, rules)
        return cls(built, find_profile(profile), int(share * level.horizon))

    @property
    def types(self) -> tuple[str, ...]:
        """Return the belief types that this world has."""
        return tuple(kind for kind in TYPES if kind in self.world.field_kinds)

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


@dataclass(frozen=True)
class Futures:
    """What became of the forks."""

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
    return Futures(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Futures)))


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


def seeds_in(text: str, regime: str, protocol: str) -> Ints:
    """Read a section's seeds; `default` are those of the regime and protocol."""
    chosen = read_seeds(text)
    if chosen is not None:
        return chosen
    return make_cell("tooldag", "no-probe", regime, parse_protocol(protocol)).default_seeds()
