"""One episode, step by step, told along the lines of Algorithm 1.

`tell` turns a witnessed row into steps in plain words; `Timeline` shows them as text or HTML. Every number
is read from the recording: scores as the policy saw them, mutations as the world made them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from envprobe_core.engine.records import STALENESS_LIMIT, UNKNOWN, WAIT
from envprobe_core.instances import states_of, succeeded
from envprobe_core.policies import TERMS
from envprobe_core.witness import Witnessed
from envprobe_core.worlds.base import Mask, Values, World

SHOWN = 3  # fields listed a step: the best scored, then what the step turns on


@dataclass(frozen=True)
class Scored:
    """One field as the policy saw it: the belief about it, the truth, and its score terms c, s, u, d."""

    field: str
    believed: str
    truth: str
    right: bool
    confidence: int
    staleness: int
    terms: tuple[float, ...]
    rho: float


@dataclass(frozen=True)
class Change:
    """A value that changed, in words; `right` says of a belief whether it is true now."""

    field: str
    before: str
    after: str
    right: bool = True

    def __str__(self) -> str:
        return f"{self.field}: {self.before} → {self.after}"


@dataclass(frozen=True)
class Step:
    """What happened at one decision step.

    Attributes:
        t: the step.
        accuracy: A_t.
        fields: the highest-scored fields, and any the step turns on.
        gate: line 11 in words.
        fired: whether a probe was executed.
        deed: the executed probe or action in words.
        world: what mutated before the next observation.
        wrote: what the agent changed in its table afterwards.
        succeeded: whether the goal was reached by this step's action.
    """

    t: int
    accuracy: float
    fields: tuple[Scored, ...]
    gate: str
    fired: bool
    deed: str
    world: tuple[Change, ...]
    wrote: tuple[Change, ...]
    succeeded: bool


@dataclass(frozen=True)
class Episode:
    """One told episode: who ran where, and its steps."""

    world: str
    policy: str
    protocol: str
    profile: str
    seed: int
    terms: tuple[str, ...]  # the terms that enter the policy's score
    steps: tuple[Step, ...]
    success: bool


def word(world: World, field: int, value: int) -> str:
    """Say a field's value in words."""
    name = world.field_names[field]
    if value == UNKNOWN:
        return "unknown"
    if name.startswith(("lock", "state")):
        return "locked" if value else "open"
    if name.startswith("location") and value == world.domain[field] - 1:
        return "held"
    if name.startswith(("location", "node")):
        return f"{'room' if world.name == 'objectstate' else 'node'} {value}"
    return "yes" if value else "no"


def action_name(world: World, action: int) -> str:
    """Say a task action in words."""
    return "wait" if action == WAIT else world.action_names[action]


def rho(seen: Witnessed) -> np.ndarray:
    """Return the policy's own score, [row, step, field]: its kept terms in the order ((c + s) + u) + d.

    A policy without a threshold keeps no terms; for it all four are added up, so that a reader can compare.
    """
    kept = [seen.term(name) for name in TERMS if name in (seen.kept_terms or TERMS)]
    total = kept[0].copy()
    for term in kept[1:]:
        total += term
    return total


def scored(seen: Witnessed, row: int, t: int, fields: Sequence[int]) -> tuple[Scored, ...]:
    """Describe some fields of one decision."""
    world, recording = seen.world, seen.trajectory
    score = rho(seen)[row, t]
    return tuple(
        Scored(
            world.field_names[i],
            word(world, i, int(recording.belief[row, t, i])),
            word(world, i, int(recording.gold[row, t, i])),
            bool(recording.belief[row, t, i] == recording.gold[row, t, i]),
            int(recording.confidence[row, t, i]),
            min(int(recording.staleness[row, t, i]), STALENESS_LIMIT),
            tuple(float(x) for x in seen.terms[row, t, i]),
            float(score[i]),
        )
        for i in fields
    )


def tell(seen: Witnessed, row: int = 0, watch: Sequence[tuple[int, int]] = ()) -> Episode:
    """Tell one row's episode.

    Args:
        seen: witnessed episodes.
        row: which of them.
        watch: (step, field) pairs to list beside the best scored.
    """
    recording, world = seen.trajectory, seen.world
    score, acted, goal = rho(seen)[row], seen.after_action()[row], goal_times(seen)[row]
    steps = []
    used = 0
    for t in range(int(recording.steps[row])):
        order = np.argsort(-score[t], kind="stable")[:SHOWN].tolist()
        probe = int(recording.probe[row, t])
        extra = [probe] if probe >= 0 else []
        extra += [field for step, field in watch if step == t]
        listed = order + [field for field in dict.fromkeys(extra) if field not in order]
        reached = bool(goal[t + 1] and not goal[t])
        steps.append(_step(seen, row, t, listed, order[0], used, acted[t], reached))
        used += probe >= 0
    cell = seen.cell
    return Episode(
        world.name, cell.policy.name, cell.protocol.name, cell.profile.name, int(seen.seeds[row]),
        seen.kept_terms, tuple(steps), bool(recording.success[row]),
    )  # fmt: skip


def _step(
    seen: Witnessed, row: int, t: int, listed: list[int], best: int, used: int, acted: Values, reached: bool
) -> Step:
    recording, world = seen.trajectory, seen.world
    belief, gold = recording.belief[row], recording.gold[row]
    probe = int(recording.probe[row, t])
    before = belief[t].copy()
    if probe >= 0:
        deed, delivered = _probe(seen, row, t, probe)
        if delivered:
            before[probe] = recording.answer[row, t]
    else:
        deed = _action(seen, row, t)
    return Step(
        t,
        float((belief[t] == gold[t]).mean()),
        scored(seen, row, t, listed),
        _gate(seen, row, t, best, used, probe),
        probe >= 0,
        deed,
        tuple(
            Change(world.field_names[i], word(world, i, acted[i]), word(world, i, gold[t + 1, i]))
            for i in np.flatnonzero(acted != gold[t + 1])
        ),
        tuple(
            Change(
                world.field_names[i],
                word(world, i, before[i]),
                word(world, i, belief[t + 1, i]),
                bool(belief[t + 1, i] == gold[t + 1, i]),
            )
            for i in np.flatnonzero(before != belief[t + 1])
        ),
        reached,
    )


def goal_times(seen: Witnessed) -> Mask:
    """Say at which times the goal had been reached, [row, time]; it is not lost again."""
    recording, world = seen.trajectory, seen.world
    reached = succeeded(world, seen.instance, states_of(world, recording.gold, recording.place))
    lived = np.arange(reached.shape[1])[None, :] <= recording.steps[:, None]
    return np.logical_or.accumulate(reached & lived, axis=1)


def _probe(seen: Witnessed, row: int, t: int, field: int) -> tuple[str, bool]:
    recording, world = seen.trajectory, seen.world
    name = world.field_names[field]
    held, told = recording.belief[row, t, field], recording.answer[row, t]
    verb = "corrects" if recording.useful[row, t] else "confirms"
    text = f"Probe({name}): the world says {word(world, field, told)}, which {verb} the belief"
    text += f" ({word(world, field, held)})" if recording.useful[row, t] else ""
    delivered = seen.cell.policy.answered and seen.cell.protocol.answer == "delivered"
    return text + ("" if delivered else "; the answer is logged and never reaches the agent"), delivered


def _action(seen: Witnessed, row: int, t: int) -> str:
    name = action_name(seen.world, int(seen.trajectory.action[row, t]))
    if name == "wait":
        return "wait: the agent takes its task for done, or sees nothing to do"
    return f"{name}: {'valid' if seen.trajectory.valid[row, t] else 'invalid, nothing happens'}"


def _gate(seen: Witnessed, row: int, t: int, best: int, used: int, probe: int) -> str:
    policy, budget = seen.cell.policy, seen.cell.budget_in_force
    count = f"{used} of {budget} probes used"
    if not policy.has_threshold or policy.replays:
        verdict = f"probes {seen.world.field_names[probe]}" if probe >= 0 else "does not probe"
        return f"{policy.title} compares no score with a threshold; it {verdict} ({count})"
    top, threshold = float(rho(seen)[row, t, best]), seen.cell.threshold_in_force
    reached, left = top >= threshold, used < budget
    text = f"max ρ = {top:.2f} {'≥' if reached else '<'} {threshold:.2f}"
    text += f" and {used} {'<' if left else '='} {budget}"
    if (probe == best) == (reached and left) and (probe < 0 or probe == best):
        return f"{text}: {'probe' if probe >= 0 else 'act'}"
    return f"{text}, but the {'judge' if policy.name == 'judge' else 'rule'} {_override(seen, probe)}"


def _override(seen: Witnessed, probe: int) -> str:
    return f"asks for {seen.world.field_names[probe]}" if probe >= 0 else "vetoes the probe"
