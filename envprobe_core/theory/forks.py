"""Forks: one episode up to a moment, some fields repaired for free, and many futures from there (ours).

G_T(S) of Section 5.1 compares two futures of one past: with the fields of S answered at one moment, and
without. The past is that of No-Probe on a seed. At the moment t the answers are written as a probe's would
be, b_{t+1} := g_t, but no step is spent; from then on the world and the agent draw from the future's seed,
which all sets S share (common random numbers). Nobody probes afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core import noise
from envprobe_core.agents.base import Request
from envprobe_core.agents.simulated import SimulatedAgent
from envprobe_core.belief import CERTAIN, BeliefTable
from envprobe_core.cells import find_profile, find_regime, make_cell
from envprobe_core.experiments import read_seeds
from envprobe_core.noise import Stream
from envprobe_core.profiles import AgentProfile
from envprobe_core.protocols import Protocol, parse_protocol
from envprobe_core.rollout import NOT_PROBED
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import NO_ACTION, PROCEDURAL, SPATIAL, Floats, Mask, Values, World

Ints = npt.NDArray[np.int64]
FUTURES = 1 << 40  # seeds of futures start here, far from those of episodes
FUTURES_OF_ONE = 100_000
BATCH_ROWS = 4_000
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
    def title(self) -> str:
        """Return the world's printed name."""
        return self.world.title

    @property
    def horizon(self) -> int:
        """Return H."""
        return self.world.regime.horizon

    @property
    def types(self) -> tuple[str, ...]:
        """Return the belief types that this world has."""
        return tuple(kind for kind in TYPES if kind in self.world.field_kinds)

    def of_type(self, kind: str) -> Mask:
        """Say which fields are of a type, [field]."""
        return np.array(self.world.field_kinds) == kind


@dataclass(frozen=True)
class Past:
    """What stands at the moment t, one row an episode that still runs then.

    Attributes:
        seeds: [row].
        belief, gold: [row, field].
        staleness, confidence: [row, field], as reported.
        c, d, weights: [row, field].
        left_out: episodes that had ended before.
    """

    seeds: Ints
    belief: Values
    gold: Values
    staleness: npt.NDArray[np.uint8]
    confidence: npt.NDArray[np.uint8]
    c: Floats
    d: Floats
    weights: Floats
    left_out: int

    @property
    def wrong(self) -> Mask:
        """Say which beliefs differ from gold, [row, field]: repairing any other changes nothing."""
        return self.belief != self.gold


@dataclass(frozen=True)
class Futures:
    """What became of the forks.

    Attributes:
        right: [row, field], beliefs that are right at the end.
        success: [row].
        actions: [row], valid task actions from the moment on, that of step t included.
    """

    right: Mask
    success: Mask
    actions: Ints


def future_seeds(past_seeds: Ints, number: Ints) -> Ints:
    """Return the seed of the numbered future of each past, [row]."""
    return FUTURES + past_seeds % (1 << 20) * FUTURES_OF_ONE + number


def taken(record: Any, rows: Ints) -> Any:
    """Take rows of every array of a frozen record, nested records included."""
    changes = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, np.ndarray):
            changes[field.name] = value[rows]
        elif is_dataclass(value):
            changes[field.name] = taken(value, rows)
    return replace(record, **changes)


def look(setting: Setting, seeds: Ints) -> Past:
    """Run No-Probe up to the moment and return what a policy and an oracle would see there."""
    past, _ = _walk(setting, seeds, None, None)
    return past


def play(setting: Setting, seeds: Ints, futures: Ints, repaired: Mask) -> Futures:
    """Run forks to the end.

    Args:
        setting: world, profile and moment.
        seeds: [row], the pasts.
        futures: [row], seeds of the futures (`future_seeds`); a past's own seed continues it as it was.
        repaired: [row, field], which beliefs are set to gold at the moment.
    """
    parts = [
        _walk(setting, seeds[rows], futures[rows], repaired[rows])[1]
        for rows in (slice(first, first + BATCH_ROWS) for first in range(0, len(seeds), BATCH_ROWS))
    ]
    return Futures(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Futures)))


def _walk(setting: Setting, seeds: Ints, futures: Ints | None, repaired: Mask | None) -> tuple[Past, Futures]:
    """The loop of No-Probe (`rollout` without a gate), with the repair and the new seeds at the moment."""
    world, rows = setting.world, len(seeds)
    different, position = np.unique(seeds, return_inverse=True)
    instance = taken(world.instances(different), position)
    agent = SimulatedAgent(world, instance.map, seeds, [setting.profile], np.zeros(rows, dtype=np.int64))
    exogenous = noise.keys(seeds, world.code, Stream.MUTATION)
    visibility = noise.keys(seeds, world.code, Stream.VISIBLE)
    everyone, silent = np.ones(rows, dtype=bool), np.full(rows, NOT_PROBED)
    stops = world.protocol.end == "success"

    state = world.start(instance)
    gold, place = world.gold(instance, state), world.place(state)
    action, valid = np.full(rows, NO_ACTION), ~everyone
    observation = world.observe(
        instance, state, gold, noise.word(visibility, 0, 0), action, valid, place, everyone
    )
    known = everyone[:, None] if world.protocol.start == "gold" else observation.seen
    table = BeliefTable.known(gold, known)
    success, ended = ~everyone, ~everyone
    right = np.zeros((rows, world.fields), dtype=bool)
    actions = np.zeros(rows, dtype=np.int64)
    for t in range(setting.horizon + 1):
        reply = agent.answer(Request(t, table, observation, silent))
        success = success | world.succeeded(instance, state)
        right = np.where(ended[:, None], right, table.value == gold)
        ended = ended | (success & stops)
        if t == setting.moment:
            past = _seen(setting, seeds, instance, table, gold, place, reply, ended)
            if futures is None or repaired is None:
                return past, Futures(right, success, actions)
            agent.draw_from(futures)
            exogenous = noise.keys(futures, world.code, Stream.MUTATION)
            visibility = noise.keys(futures, world.code, Stream.VISIBLE)
        if t == setting.horizon or (t >= setting.moment and ended.all()):
            break
        table.age()
        if t == setting.moment and repaired is not None:
            table.value[repaired] = gold[repaired]
            table.staleness[repaired] = 0
            table.confidence[repaired] = CERTAIN
        state, worked = world.act(instance, state, reply.action)
        state = world.mutate(instance, state, noise.words(exogenous, t, world.exposed), everyone)
        if t >= setting.moment:
            actions += worked & ~ended
        gold, before = world.gold(instance, state), place
        place = world.place(state)
        observation = world.observe(
            instance, state, gold, noise.word(visibility, t + 1, 0), reply.action, worked, before, everyone
        )
    return past, Futures(right, success, actions)


def _seen(
    setting: Setting, seeds: Ints, instance: Any, table: BeliefTable, gold: Values, place: Ints,
    reply: Any, ended: Mask,
) -> Past:  # fmt: skip
    """Copy what stands at the moment, for the rows that still run."""
    world, runs = setting.world, np.flatnonzero(~ended)
    weights = world.weights(instance.map)
    c = weights / weights.max(axis=1, keepdims=True) if reply.criticality is None else reply.criticality
    d = reply.dependency
    if d is None:
        d = world.roles(instance.map, place, reply.action)
    columns = (seeds, table.value, gold, table.staleness, table.confidence, c, d, weights)
    return Past(*(column[runs] for column in columns), left_out=int(ended.sum()))


def type_accuracy(setting: Setting, right: Mask) -> dict[str, Floats]:
    """Return A_H^T of every row for each type of the world, [row]."""
    return {kind: right[:, setting.of_type(kind)].mean(axis=1) for kind in setting.types}


def seeds_in(text: str, regime: str, protocol: str) -> Ints:
    """Read a section's seeds; `default` are those of the regime and protocol."""
    chosen = read_seeds(text)
    if chosen is not None:
        return chosen
    return make_cell("tooldag", "no-probe", regime, parse_protocol(protocol)).default_seeds()
