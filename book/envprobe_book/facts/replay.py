"""Recordings with the score terms in them, and the paper's two failure patterns in these.

The terms c and d stand only in what a policy sees, and under `released` they come from the agent. So the
recorded episodes are played again, step by step, with the probes that were made.

A failure pattern (Appendix, Failure Case Analysis) is a chain of conditions on one probe; a probe matches if
it meets all of them, and the counts after each condition say where the chain thins out. The cut-offs are
ours: the paper gives none.
"""

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from envprobe_book.plans import instances, members, states_of, try_actions
from envprobe_core.compiled.records import NO_ACTION, UNKNOWN
from envprobe_core.conditions import Condition, Seeds
from envprobe_core.engine.batch import Trajectory, simulate_logged, terms_of
from envprobe_core.policies import TERMS
from envprobe_core.worlds.base import Floats, Ints, Mask, Values, World
from envprobe_core.zero import yoked

DOUBT = 0.3  # u = 1 - conf: confidence of 70 or less, the alpha of Self-Uncertainty
MINOR = 0.5  # c: half of the greatest weight
STALE = 0.5  # s = min(1, tau_hat / 10): five steps or more

PROCEDURAL_STAGES = (  # in tools
    "uncertain and minor field probed",
    "a precondition of the proposed call is wrong",  # another field: not loaded, and not known so
    "the next call fails on it",
    "the probe corrects a belief",
    "the task stays unfinished",
)
SPATIAL_STAGES = (  # in rooms and graphs
    "field reported stale probed",
    "it has not changed for that long",
    "the probe confirms the belief",
    "a location that the world changed stays stale",  # believed as it once was, and still at the next step
)


@dataclass
class Witnessed:
    """Recorded episodes of one condition, and what else is to be seen in them, worked out when asked for."""

    condition: Condition
    seeds: Seeds  # [row]
    trajectory: Trajectory

    @cached_property
    def world(self) -> World:
        """The world that the episodes are in."""
        return self.condition.built

    @cached_property
    def instance(self) -> Any:
        """Task graphs and first states, [row]."""
        return instances(self.world, self.seeds)

    @cached_property
    def states(self) -> Any:
        """The true states, [row, time]."""
        return states_of(self.world, self.trajectory.gold, self.trajectory.place)

    @cached_property
    def terms(self) -> Floats:
        """The score's terms, [row, step, field, term], c, s, u, d in order; NaN after an episode's end."""
        return terms_of(self.condition, self.seeds, self.trajectory)

    @cached_property
    def placebo(self) -> Trajectory:
        """The yoked placebo of the episodes: the same probes at the same steps, without answers."""
        return yoked(self.condition, self.seeds, self.trajectory)

    def term(self, name: str) -> Floats:
        """One term, [row, step, field]."""
        return self.terms[..., TERMS.index(name)]

    @property
    def kept_terms(self) -> tuple[str, ...]:
        """The terms that the condition's policy adds up; none where it has no threshold."""
        return self.condition.policy.terms or ()

    def rho(self) -> Floats:
        """The policy's own score, [row, step, field]: its kept terms in the order ((c + s) + u) + d.

        A policy without a threshold keeps no terms; for it all four are added up.
        """
        kept = [self.term(name) for name in TERMS if name in (self.kept_terms or TERMS)]
        return reduce(np.add, kept)

    def lived(self) -> Mask:
        """Which times belong to the episodes, [row, time]; step t does where time t + 1 does."""
        return np.arange(self.trajectory.gold.shape[1]) <= self.trajectory.steps[:, None]

    def fired(self) -> Mask:
        """Say at which steps there was a probe, [row, step]."""
        return self.trajectory.probe >= 0

    def at_probes(self, table: np.ndarray) -> np.ndarray:
        """A table's value [row, step, field] of the probed field, [row, step]; else of field 0."""
        field = np.maximum(self.trajectory.probe, 0)[..., None].astype(np.int64)
        return np.take_along_axis(table, field, axis=2)[..., 0]

    def corrects(self) -> Mask:
        """Which probes tell that a known value is wrong, [row, step], whatever counts as useful."""
        held = self.at_probes(self.trajectory.belief[:, :-1])
        return self.fired() & (held != UNKNOWN) & (held != self.trajectory.answer)

    def after_action(self) -> Values:
        """Return gold after the executed action and before mutation, [row, step, field].

        The recorded action is carried out again in each true state.
        """
        action = np.where(self.trajectory.acted, self.trajectory.action, NO_ACTION)
        return try_actions(self.world, self.instance, self.states[:, :-1], action).gold

    def exogenous(self) -> Mask:
        """Which fields mutation changed between t and t + 1, [row, step, field]; False after the end."""
        return (self.after_action() != self.trajectory.gold[:, 1:]) & self.lived()[:, 1:, None]

    def goal_reached(self) -> Mask:
        """Say at which times the goal had been reached, [row, time]; it is not lost again."""
        reached = try_actions(self.world, self.instance, self.states).reached & self.lived()
        return np.logical_or.accumulate(reached, axis=1)


def witness(condition: Condition, seeds: Seeds) -> Witnessed:
    """Run a condition on seeds [row] and keep what its policy saw."""
    return Witnessed(condition, seeds, simulate_logged(condition, seeds))


# failure patterns


@dataclass(frozen=True)
class Matches:
    """The probes of a block of episodes, and how far each follows its world's pattern."""

    row: Ints  # [probe], which probe
    step: Ints
    field: Ints
    missed: Ints  # [probe], the field to ask for (of several the first or most critical), -1: none is named
    stage: Mask  # [probe, stage], whether this and all earlier conditions hold


def match(seen: Witnessed) -> Matches:
    """Follow the pattern of a world through the probes of witnessed episodes, by row, then step."""
    row, step = np.nonzero(seen.trajectory.probe >= 0)
    field = seen.trajectory.probe[row, step].astype(np.int64)
    follow = _procedural if seen.world.name == "tooldag" else _spatial
    missed, conditions = follow(seen, row, step, field)
    return Matches(row, step, field, missed, np.logical_and.accumulate(np.stack(conditions, axis=1), axis=1))


def _procedural(seen: Witnessed, row: Ints, step: Ints, field: Ints) -> tuple[Ints, list[Mask]]:
    """The field that should have been asked for, and each condition of the pattern, [probe]."""
    recording, tools = seen.trajectory, seen.world.rules.tools
    standing, inside = _blockers(seen, row, step), field < tools
    standing[inside, field[inside]] = False  # the probed field itself is not overlooked
    steps = recording.acted.shape[1]
    acted = np.where(recording.acted, np.arange(steps), steps)
    following = np.minimum.accumulate(acted[:, ::-1], axis=1)[:, ::-1]  # the first task action from here on
    later = np.pad(following, ((0, 0), (0, 1)), constant_values=steps)[row, step + 1]
    at = np.where(later < steps, later, 0)
    failed = (later < steps) & ~recording.valid[row, at]
    blocking = standing & _blockers(seen, row, at) & failed[:, None]
    return np.where(blocking.any(axis=1), np.argmax(blocking, axis=1), -1), [
        (seen.term("u")[row, step, field] >= DOUBT) & (seen.term("c")[row, step, field] < MINOR),
        standing.any(axis=1),
        blocking.any(axis=1),
        recording.useful[row, step],
        ~seen.goal_reached()[row, step] & ~recording.success[row],
    ]


def _blockers(seen: Witnessed, row: Ints, step: Ints) -> Mask:
    """Which prerequisites of the proposed call are not loaded, unknown to the agent, [probe, tool]."""
    recording, tools = seen.trajectory, seen.world.rules.tools
    call = recording.action[row, step].astype(np.int64)
    needs = seen.instance.task.needs[row, np.maximum(call, 0)]
    absent = recording.gold[row, step, :tools] == 0
    unaware = recording.belief[row, step, :tools] != 0
    return members(needs, tools) & (call >= 0)[:, None] & absent & unaware


def _spatial(seen: Witnessed, row: Ints, step: Ints, field: Ints) -> tuple[Ints, list[Mask]]:
    """The field that should have been asked for, and each condition of the pattern, [probe]."""
    recording, last = seen.trajectory, _last_change(seen.trajectory.gold)
    reported = recording.staleness[row, step, field].astype(np.int64)
    stale = _stale_locations(seen, last)[row, step] & (recording.belief != recording.gold)[row, step + 1]
    stale[np.arange(len(row)), field] = False
    critical = np.where(stale, seen.term("c")[row, step], -1.0)
    return np.where(stale.any(axis=1), np.argmax(critical, axis=1), -1), [
        seen.term("s")[row, step, field] >= STALE,
        step - last[row, step, field] >= np.minimum(reported, step),
        ~recording.useful[row, step],
        stale.any(axis=1),
    ]


def _last_change(gold: np.ndarray) -> Ints:
    """Return when each field last changed, [row, time, field]; 0 where it never did."""
    changed = np.zeros(gold.shape, dtype=bool)
    changed[:, 1:] = gold[:, 1:] != gold[:, :-1]
    times = np.arange(gold.shape[1])[None, :, None]
    return np.maximum.accumulate(np.where(changed, times, 0), axis=1)


def _stale_locations(seen: Witnessed, last: Ints) -> Mask:
    """Which locations the world changed last and are believed as they once were, [row, time, field]."""
    belief, gold = seen.trajectory.belief, seen.trajectory.gold
    location = np.array([name.startswith("location") for name in seen.world.field_names])
    moved = np.take_along_axis(seen.exogenous(), np.maximum(last - 1, 0), axis=1) & (last > 0)
    former = np.zeros(gold.shape, dtype=bool)  # the belief is a value that gold had
    for t in range(1, gold.shape[1]):
        former[:, t] = (belief[:, t : t + 1] == gold[:, :t]).any(axis=1)
    return (belief != UNKNOWN) & (belief != gold) & moved & former & location
