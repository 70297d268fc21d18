"""The paper's two failure patterns as predicates over recorded episodes (Appendix, Failure Case Analysis).

Each pattern is a chain of conditions on one probe; a probe matches when it meets all of them, and the
counts after each condition say where the chain thins out. The cut-offs are ours: the paper gives none.

procedural (tools)
    1. the probed field is uncertain (u at least `DOUBT`) and of little criticality (c below `MINOR`);
    2. the call that stands proposed has a prerequisite, another field, that is not loaded and not known so;
    3. the next executed call is invalid and still has such a prerequisite among those of 2;
    4. the probe corrects a belief;
    5. the target is not complete by then and never becomes so.

spatial (rooms, graph)
    1. the probed field is reported stale (s at least `STALE`);
    2. its true value has been the same for as long as reported;
    3. the probe confirms the belief;
    4. the location of another object or key, changed by the world alone, is believed as it once was,
       and still is at the next step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from envprobe_core.engine.records import UNKNOWN
from envprobe_core.facts.witness import Witnessed
from envprobe_core.instances import members
from envprobe_core.worlds.base import Ints, Mask

DOUBT = 0.3  # u = 1 - conf: confidence of 70 or less, the alpha of Self-Uncertainty
MINOR = 0.5  # c: half of the greatest weight
STALE = 0.5  # s = min(1, tau_hat / 10): five steps or more

PROCEDURAL_STAGES = (
    "uncertain and minor field probed",
    "a precondition of the proposed call is wrong",
    "the next call fails on it",
    "the probe corrects a belief",
    "the task stays unfinished",
)
SPATIAL_STAGES = (
    "field reported stale probed",
    "it has not changed for that long",
    "the probe confirms the belief",
    "a location that the world changed stays stale",
)


@dataclass(frozen=True)
class Matches:
    """The probes of a block of episodes, and how far each follows its world's pattern.

    Attributes:
        row, step, field: [probe], which probe.
        missed: [probe], the field that should have been asked for (of several the first, or the most
            critical), or -1 where no stage names one.
        stage: [probe, stage], whether this and all earlier conditions hold.
    """

    row: Ints
    step: Ints
    field: Ints
    missed: Ints
    stage: Mask

    @property
    def full(self) -> Mask:
        """Say which probes match the whole pattern, [probe]."""
        return self.stage[:, -1]

    def episodes(self, rows: int) -> Ints:
        """Count for each stage the probes of every episode that reach it, [row, stage]."""
        counts = np.zeros((rows, self.stage.shape[1]), dtype=np.int64)
        np.add.at(counts, self.row, self.stage)
        return counts


def match(seen: Witnessed) -> Matches:
    """Follow the pattern of a world through witnessed episodes."""
    return _procedural(seen) if seen.world.name == "tooldag" else _spatial(seen)


def _probes(seen: Witnessed) -> tuple[Ints, Ints, Ints]:
    """List all probes by row, then step: row, step, field, [probe] each."""
    row, step = np.nonzero(seen.trajectory.probe >= 0)
    return row, step, seen.trajectory.probe[row, step].astype(np.int64)


def _chain(*conditions: Mask | np.bool_) -> Mask:
    """Put conditions [probe] side by side, each together with all before it."""
    return np.logical_and.accumulate(np.stack(conditions, axis=1), axis=1)


def _procedural(seen: Witnessed) -> Matches:
    recording, tools = seen.trajectory, seen.world.rules.tools
    row, step, field = _probes(seen)
    doubted = seen.term("u")[row, step, field] >= DOUBT
    minor = seen.term("c")[row, step, field] < MINOR
    standing = _blockers(seen, row, step)
    inside = field < tools
    standing[inside, field[inside]] = False  # the probed field itself is not overlooked
    later = _next_action(recording.acted, row, step)
    exists = later >= 0
    at = np.where(exists, later, 0)
    failed = exists & ~recording.valid[row, at]
    blocking = standing & _blockers(seen, row, at) & failed[:, None]
    reached = seen.goal_reached()[row, step]
    stage = _chain(
        doubted & minor,
        standing.any(axis=1),
        blocking.any(axis=1),
        recording.useful[row, step],
        ~reached & ~recording.success[row],
    )
    missed = np.where(blocking.any(axis=1), np.argmax(blocking, axis=1), -1)
    return Matches(row, step, field, missed, stage)


def _blockers(seen: Witnessed, row: Ints, step: Ints) -> Mask:
    """Say which prerequisites of the proposed call are not loaded, unknown to the agent, [probe, tool]."""
    recording, tools = seen.trajectory, seen.world.rules.tools
    call = recording.action[row, step].astype(np.int64)
    needs = seen.instance.task.needs[row, np.maximum(call, 0)]
    needed = members(needs, tools) & (call >= 0)[:, None]
    absent = recording.gold[row, step, :tools] == 0
    return needed & absent & (recording.belief[row, step, :tools] != 0)


def _next_action(acted: Mask, row: Ints, step: Ints) -> Ints:
    """Return the first step after the given one with an executed task action, -1 if none, [probe]."""
    steps = acted.shape[1]
    following = np.full((len(acted), steps + 1), steps, dtype=np.int64)
    for t in range(steps - 1, -1, -1):
        following[:, t] = np.where(acted[:, t], t, following[:, t + 1])
    found = following[row, step + 1]
    return np.where(found < steps, found, -1)


def _spatial(seen: Witnessed) -> Matches:
    recording = seen.trajectory
    row, step, field = _probes(seen)
    reported = recording.staleness[row, step, field].astype(np.int64)
    still = _unchanged_for(recording.gold, row, step, field) >= np.minimum(reported, step)
    stale = _stale_locations(seen, row, step)
    stale[np.arange(len(row)), field] = False
    stage = _chain(
        seen.term("s")[row, step, field] >= STALE,
        still,
        ~recording.useful[row, step],
        stale.any(axis=1),
    )
    critical = np.where(stale, seen.term("c")[row, step], -1.0)
    missed = np.where(stale.any(axis=1), np.argmax(critical, axis=1), -1)
    return Matches(row, step, field, missed, stage)


def _unchanged_for(gold: np.ndarray, row: Ints, step: Ints, field: Ints) -> Ints:
    """Count the steps for which a field's true value has been what it is, at most `step`, [probe]."""
    age = np.zeros(gold.shape, dtype=np.int64)
    for t in range(1, gold.shape[1]):
        age[:, t] = np.where(gold[:, t] == gold[:, t - 1], age[:, t - 1] + 1, 0)
    return age[row, step, field]


def _stale_locations(seen: Witnessed, row: Ints, step: Ints) -> Mask:
    """Say which locations the world changed last and are believed as they were before, [probe, field].

    They are wrong at this step and the next, and the belief is a value that the field had earlier.
    """
    recording, world = seen.trajectory, seen.world
    belief, gold = recording.belief, recording.gold
    location = np.array([name.startswith("location") for name in world.field_names])
    moved = seen.exogenous()
    drifted = np.zeros(gold.shape, dtype=bool)  # the last change was the world's
    former = np.zeros(gold.shape, dtype=bool)  # the belief is a value that gold had
    for t in range(1, gold.shape[1]):
        changed = gold[:, t] != gold[:, t - 1]
        drifted[:, t] = np.where(changed, moved[:, t - 1], drifted[:, t - 1])
        former[:, t] = (belief[:, t : t + 1] == gold[:, :t]).any(axis=1)
    held = belief != UNKNOWN
    wrong = held & (belief != gold) & drifted & former & location
    return wrong[row, step] & (belief != gold)[row, step + 1]
