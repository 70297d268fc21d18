"""One episode at a time, on objects with the field's names: an environment, an agent, a probe policy.

Underneath are the stages of the compiled kernel (`engine.kernel`), so that an episode played here is, to the
last bit, the one that `run` measures: the same instance, mutations and noise for the same seed, whatever the
agent or policy (common random numbers). `algorithm1` puts the three together.

An agent is any object with two methods, `update(observation)` and `propose()`; a policy any with
`choose(view)`. `SimulatedAgent` and `NamedPolicy` are the paper's.
"""

from __future__ import annotations

import typing
from typing import Any, NamedTuple

import numpy as np

from envprobe_core.agents.simulated import UNKNOWN_STALENESS
from envprobe_core.compiled.records import CERTAIN, NONE, STALENESS_LIMIT, UNKNOWN, WAIT
from envprobe_core.conditions import Condition, check_seed, is_whole, make_condition
from envprobe_core.engine.batch import EpisodeBatch, Trajectory, schedules_of
from envprobe_core.engine.kernel import RECORD, SENSE
from envprobe_core.errors import LONGEST, InputError
from envprobe_core.policies.custom import View, view_of
from envprobe_core.protocols import parse_protocol
from envprobe_core.worlds import World
from envprobe_core.worlds.base import Floats, Ints

RISKS = (0, 1, 2)  # low, medium, high


class Belief(NamedTuple):
    """The belief table b_t that an agent keeps, and what it reports beside it.

    Arrays are [field], of the fields that the instance has (`Environment.fields`).
    """

    value: Ints  # believed values, -1 where unknown
    staleness: Ints  # as the agent reports it, in steps, 0 to 99
    confidence: Ints  # as the agent reports it, in percent
    c: Floats | None = None  # reported criticality and
    d: Floats | None = None  # dependency, read only where the protocol takes them from the report; None is 0
    risk: int = 0  # how likely the proposed action is to fail: 0 low, 1 medium, 2 high


class Observation(NamedTuple):
    """What an agent is shown at a step t, and its own table as it stands."""

    step: int  # t, from 0
    last: bool  # whether the episode ends here: the agent may update b_t, nothing is done any more
    seen: dict[int, int]  # fields in view and their values
    place: int  # its room or node; 0 where a world has no places
    action: int  # the task action that this follows; -1 a wait, -2 a probe, or nothing yet
    valid: bool  # whether that action worked
    fresh: bool  # whether the world has moved since the last observation
    probed: int  # the field that a probe has just repaired, or -1
    answer: int  # its true value, or -1
    belief: Belief  # a copy of b_(t-1), a step older, with the probe's answer written down


class Agent(typing.Protocol):
    """An agent of the worlds: a reader's own class needs these two methods and no base class."""

    def update(self, observation: Observation) -> Belief:
        """Return b_t, from what is observed; `observation.belief` may be changed and returned."""
        ...

    def propose(self) -> int:
        """A task action by its number (`World.action_names`), or -1 to wait."""
        ...


class ProbePolicy(typing.Protocol):
    """A probe policy: it sees what an agent believes and proposes, and never the truth."""

    def choose(self, view: View) -> int:
        """The field to probe, or -1 to let the agent act."""
        ...


class Environment:
    """One world under a regime and a protocol, played episode by episode.

    Actions: `step(action)` carries out a task action, `probe(field)` asks for the true value of one field
    instead, at most B times an episode. Either takes one of the H decision steps.
    Observations: an `Observation` each; the belief table in it is the agent's own.
    Episode end: at the horizon H, or at the goal where the protocol ends episodes there.
    Errors: an `InputError` for a number that is no action or field, a probe beyond the budget, a step that
    follows the last, or one that comes before `reset`.

    >>> environment = make_environment("tooldag")
    >>> environment.reset(seed=0).step, environment.budget, environment.horizon
    (0, 7, 30)
    >>> environment.world.action_names[:2], environment.world.field_names[9]
    (('call(0)', 'call(1)'), 'dependency satisfied(0)')
    >>> environment.step(0).valid  # the first tool needs no other
    True
    >>> seen = environment.probe(0)
    >>> seen.probed, seen.answer, seen.belief.confidence[0].item()
    (0, 1, 100)

    Attributes:
        condition: what is played; its budget and threshold are in force.
        world: names and numbers of fields and actions.
        episodes: the engine's block of the one episode, gold included, for what is built on the engine.
    """

    def __init__(self, condition: Condition, *, schedule: Ints | None = None) -> None:
        """Take a condition, and for a policy that replays another the fields it probes, [step].

        By default a replayed schedule is the one that the simulated agent's episode of the seed had.
        """
        self.condition, self.world = condition, condition.built
        self._schedule = schedule
        self._episodes: EpisodeBatch | None = None
        self._last = False

    @property
    def horizon(self) -> int:
        """The horizon H: the decision steps that an episode has at most."""
        return self.condition.regime.horizon

    @property
    def budget(self) -> int:
        """The probe budget B of an episode."""
        return self.condition.budget_in_force

    @property
    def fields(self) -> int:
        """The belief fields of the present instance, which come first: a graph may lack some edges."""
        return int(self.episodes.block.fields[0])

    @property
    def episodes(self) -> EpisodeBatch:
        """The engine's block of the present episode, one row."""
        if self._episodes is None:
            raise InputError("the environment has no episode yet; call reset(seed) first")
        return self._episodes

    @property
    def task(self) -> Any:
        """A copy of the instance's task graph (`TASK` of the world's module); None where none is told."""
        if self.world.protocol.structure != "graph":
            return None
        return self.episodes.block.task[0].copy()

    def reset(self, seed: int) -> Observation:
        """The observation at step 0 of a seed's episode, which is the same in every run."""
        check_seed(seed)
        seeds = np.array([seed], np.int64)
        schedules = schedules_of(self.condition, seeds) if self._schedule is None else self._schedule[None, :]
        self._episodes = EpisodeBatch(self.condition, seeds, schedules=schedules)
        return self._observe()

    def view(self, belief: Belief, action: int) -> View:
        """What a policy may see, c, s, u and d of every field among it; b_t is recorded beside g_t.

        Args:
            belief: b_t, after the agent's update.
            action: the task action that it proposes, which `d` depends on.
        """
        self._refuse_after_the_end()
        self._write(belief)
        self._write_action(action)
        self.episodes.take_stages(RECORD)
        self.episodes.block["sight"]["highest"] = np.nan  # no score, unless a named policy makes one
        self.episodes.take_stages(SENSE)
        return view_of(self.episodes.block.sight[0].tobytes())

    def step(self, action: int) -> Observation:
        """The observation after a task action, or -1 for a wait; the world has mutated once."""
        self._refuse_after_the_end()
        self._write_action(action)
        self.episodes.advance(np.array([NONE]))
        return self._observe()

    def probe(self, field: int) -> Observation:
        """The observation after a probe: b_(t+1) holds the true value of the field (Definition 3.1)."""
        self._refuse_after_the_end()
        if not is_whole(field) or not 0 <= field < self.fields:
            raise InputError(f"field {field!r} is not a whole number in 0..{self.fields - 1}")
        if self.episodes.block.probes_used[0] >= self.budget:
            raise InputError(f"probe of field {field}: the budget of {self.budget} probes is spent")
        self.episodes.advance(np.array([field]))
        return self._observe()

    def finish(self, belief: Belief) -> Trajectory:
        """The recording of an episode that has ended, with its measures, after the agent's last update."""
        if not self._last:
            raise InputError("the episode has not ended; finish(belief) follows the last observation")
        self._write(belief)
        self.episodes.take_stages(RECORD)
        return self.episodes.recording()

    def belief(self) -> Belief:
        """A copy of the belief table as it stands, with what the agent reports beside it."""
        block, n = self.episodes.block, self.fields
        table, sight = block.table[0], block.sight[0]
        value, staleness, confidence = (table[name][:n].copy() for name in Belief._fields[:3])
        return Belief(
            value, staleness, confidence, sight.c[:n].copy(), sight.d[:n].copy(), int(block.risk[0])
        )

    def _observe(self) -> Observation:
        block, n = self.episodes.block, self.fields
        self.episodes.take_stages(RECORD)  # says whether the episode is over; recorded again after the update
        self._last = bool(block.over[0])
        block["over"] = 0
        shown, step = block.observation[0], int(block.t[0])
        told, belief = int(block.told[0]), self.belief()
        if self.world.protocol.memory == "none" and step > 0:
            for column, lost in zip(belief[:3], (UNKNOWN, UNKNOWN_STALENESS, 0), strict=True):
                column[:] = lost
        values = shown.value[:n].tolist()
        return Observation(
            step,
            self._last,
            {field: value for field, value in enumerate(values) if value != UNKNOWN},
            int(shown.place),
            int(shown.action),
            bool(shown.valid),
            bool(shown.fresh),
            told,
            int(block.answer[0]) if told != NONE else UNKNOWN,
            belief,
        )

    def _write(self, belief: Belief) -> None:
        """Take over an agent's belief table, once it is checked: the truth must be comparable with it."""
        if not isinstance(belief, Belief):
            raise InputError(f"belief: update returned {str(belief)[:LONGEST]!r}; accepted is a Belief")
        block, n = self.episodes.block, self.fields
        highest: tuple[Any, ...] = (self.world.domain[:n] - 1, STALENESS_LIMIT, CERTAIN)
        lowest = (UNKNOWN, 0, 0)
        for name, low, high, column in zip(Belief._fields[:3], lowest, highest, belief[:3], strict=True):
            array = np.asarray(column)
            if array.shape != (n,) or array.dtype.kind not in "iu":
                raise InputError(f"belief: {name} must hold {n} whole numbers, one a field")
            if (wrong := (array < low) | (array > high)).any():
                at = int(np.argmax(wrong))
                most = int(np.broadcast_to(high, n)[at])
                raise InputError(f"belief: {name} of field {at} is {array[at]}; accepted: {low}..{most}")
            block["table"][name][0, :n] = array
        if not is_whole(belief.risk) or belief.risk not in RISKS:
            raise InputError(f"belief: risk {belief.risk!r} is not 0, 1 or 2")
        block["risk"] = belief.risk
        if self.world.protocol.structure == "reported":
            for name, reported in (("c", belief.c), ("d", belief.d)):
                terms = np.zeros(n) if reported is None else np.asarray(reported, np.float64)
                if terms.shape != (n,) or not ((terms >= 0) & (terms <= 1)).all():
                    raise InputError(f"belief: {name} must hold {n} numbers from 0 to 1, one a field")
                block["sight"][name][0, :n] = terms

    def _write_action(self, action: int) -> None:
        if not is_whole(action) or not WAIT <= action < self.world.actions:
            raise InputError(f"action {action!r} is not a whole number in -1..{self.world.actions - 1}")
        self.episodes.block["action"] = action

    def _refuse_after_the_end(self) -> None:
        if self._last:
            raise InputError("the episode has ended; call reset(seed) for another")


def make_environment(
    world: str,
    *,
    policy: str = "simple",
    regime: str = "S2",
    protocol: str = "paper",
    profile: str = "typical",
    budget: int | None = None,
    threshold: float | None = None,
) -> Environment:
    """The environment of a named setting; what `Condition` refuses is refused.

    >>> make_environment("graphnav", regime="S1", budget=3).budget
    3
    """
    return Environment(
        make_condition(world, policy, regime, parse_protocol(protocol), profile, budget, threshold)
    )


class SimulatedAgent:
    """The simulated agent: it notes what it sees, errs as its profile says, and plans on its beliefs."""

    def __init__(self, environment: Environment) -> None:
        """Take the environment whose profile it acts by."""
        self._environment = environment

    def update(self, observation: Observation) -> Belief:
        """The belief table after what was observed, which the engine holds."""
        self._environment.episodes.propose()
        return self._environment.belief()

    def propose(self) -> int:
        """The task action that it has settled on while it updated."""
        return int(self._environment.episodes.block.action[0])


class NamedPolicy:
    """The policy that an environment's condition names, decided by the compiled rules.

    The two oracles are shown gold there, VoI what the agent observes, and Yoked its schedule.
    """

    def __init__(self, environment: Environment) -> None:
        """Take the environment whose policy it is."""
        self._environment = environment

    def choose(self, view: View) -> int:
        """The field to probe, or -1."""
        return int(self._environment.episodes.decide()[0])


__all__ = [
    "Agent",
    "Belief",
    "Environment",
    "NamedPolicy",
    "Observation",
    "ProbePolicy",
    "SimulatedAgent",
    "View",
    "World",
    "make_environment",
]
