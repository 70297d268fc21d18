"""One recorded episode as the player shows it: tables, decisions, and every step in words.

Nothing is computed again: values come from the trajectory, score terms from what the policy saw, words from
`timeline`. The front end only adds the terms up, in the order in which the policy does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from envprobe_core.engine.records import WAIT
from envprobe_core.figures import policy_title
from envprobe_core.player.packing import pack
from envprobe_core.policies import POLICIES, TERMS
from envprobe_core.timeline import Step, action_name, goal_times, rho, tell, word
from envprobe_core.tracks import step_accuracy
from envprobe_core.witness import Witnessed

TOP = 5  # fields whose scores are drawn at a step; the probed one is added where it is none of them

OUTCOMES = {
    "probe": "probe",
    "below": "below threshold: act",
    "spent": "budget spent: act",
    "veto": "probe vetoed: act",
    "act": "act",
}
"""How the gate decided, as the player labels it."""


def record_run(seen: Witnessed, row: int = 0) -> dict[str, Any]:
    """Return one policy's episode.

    Args:
        seen: witnessed episodes.
        row: which of them.

    Returns:
        `title name threshold terms own_score budget steps success`; packed tables `belief gold confidence
        staleness`, a line for t = 0..steps, and `c s u d`, a line a step; lists over t = 0..steps: `place`,
        `right` (fields believed rightly), `accuracy` (their share), `used` (probes fired before t), `track`
        (the protocol's own accuracy, or None where it is the share of right fields), `brief`, `sentence`;
        lists over steps: `probe`, `useful`, `action`, `outcome` (a key of `OUTCOMES`), `top` (fields by
        score), `moved` (fields that the world changed), `gate`, `deed`, `reply`, `world`, `wrote`.
    """
    recording, cell = seen.trajectory, seen.cell
    steps = int(recording.steps[row])
    story = tell(seen, row).steps
    score = rho(seen)[row]
    belief, gold = recording.belief[row, : steps + 1], recording.gold[row, : steps + 1]
    fired = recording.probe[row, :steps] >= 0
    used = np.concatenate([[0], np.cumsum(fired)])
    outcomes = [_outcome(seen, row, t, int(used[t])) for t in range(steps)]
    gates = [_gate(seen, row, step, int(used[step.t])) for step in story]
    replies = [_reply(seen, row, t) for t in range(steps)]
    briefs = [_brief(seen, row, t) for t in range(steps)]
    counts = (belief == gold).sum(axis=1)
    sentences = [
        _sentence(step, gate, reply, int(count), seen.world.fields)
        for step, gate, reply, count in zip(story, gates, replies, counts[:-1], strict=True)
    ]
    reached = bool(goal_times(seen)[row, steps])
    end = f"the episode is over, the goal {'was' if reached else 'was not'} reached"
    track = step_accuracy(recording, cell)[row, : steps + 1]
    own_track = cell.protocol.accuracy != "terminal" or cell.protocol.pairing != "same-step"
    return {
        "name": cell.policy.name,
        "title": title_of(seen),
        "threshold": cell.threshold_in_force if cell.policy.has_threshold else None,
        "terms": list(seen.kept_terms or TERMS),
        "own_score": has_own_score(seen),
        "budget": cell.budget_in_force,
        "steps": steps,
        "success": bool(recording.success[row]),
        "belief": pack(belief),
        "gold": pack(gold),
        "confidence": pack(recording.confidence[row, : steps + 1]),
        "staleness": pack(recording.staleness[row, : steps + 1]),
        **{name: pack(seen.term(name)[row, :steps]) for name in TERMS},
        "place": recording.place[row, : steps + 1].tolist(),
        "right": counts.tolist(),
        "accuracy": (counts / seen.world.fields).tolist(),
        "used": used.tolist(),
        "track": [_rounded(x) for x in track.tolist()] if own_track else None,
        "probe": recording.probe[row, :steps].tolist(),
        "useful": recording.useful[row, :steps].tolist(),
        "action": recording.action[row, :steps].tolist(),
        "outcome": outcomes,
        "top": [_top(score[t], int(recording.probe[row, t])) for t in range(steps)],
        "moved": [np.flatnonzero(line).tolist() for line in seen.exogenous()[row, :steps]],
        "gate": gates,
        "deed": [_deed(seen, row, t) for t in range(steps)],
        "reply": replies,
        "world": [list(map(str, step.world)) for step in story],
        "wrote": [[[str(change), change.right] for change in step.wrote] for step in story],
        "brief": [*briefs, end],
        "sentence": [
            *sentences, f"{counts[-1]} of {seen.world.fields} beliefs are right; {end}.",
        ],
    }  # fmt: skip


def title_of(seen: Witnessed) -> str:
    """Return how tables call the cell's policy; a reader's own policy brings its own title."""
    policy = seen.cell.policy
    return policy_title(policy.name) if policy.name in POLICIES else policy.title


def has_own_score(seen: Witnessed) -> bool:
    """Say whether the gate compared another score than the sum of the kept terms."""
    recorded = seen.trajectory.score
    if not seen.cell.policy.has_threshold or np.isnan(recorded).all():
        return False
    known = ~np.isnan(recorded)
    return bool((recorded[known] != rho(seen).max(axis=2)[known]).any())


def _rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 4)


def _top(score: np.ndarray, probe: int) -> list[int]:
    order = np.argsort(-score, kind="stable")[:TOP].tolist()
    return order if probe < 0 or probe in order else [*order, probe]


def _outcome(seen: Witnessed, row: int, t: int, used: int) -> str:
    """Name how the gate decided, a key of `OUTCOMES`."""
    recording, cell = seen.trajectory, seen.cell
    if recording.probe[row, t] >= 0:
        return "probe"
    if not cell.policy.has_threshold or cell.policy.replays:
        return "spent" if 0 < cell.budget_in_force <= used else "act"
    if recording.score[row, t] < cell.threshold_in_force:
        return "below"
    return "spent" if used >= cell.budget_in_force else "veto"


def _gate(seen: Witnessed, row: int, step: Step, used: int) -> str:
    """Say line 11 in words; where a reader's own score decides, with that score."""
    if not has_own_score(seen):
        return step.gate
    top, threshold = float(seen.trajectory.score[row, step.t]), seen.cell.threshold_in_force
    budget = seen.cell.budget_in_force
    return (
        f"{title_of(seen)} compares its own score, {top:.2f}, with {threshold:.2f} ({used} of {budget} "
        f"probes used): {'probe' if step.fired else 'act'}"
    )


def _deed(seen: Witnessed, row: int, t: int) -> str:
    """Say what the agent proposed and what became of it."""
    recording = seen.trajectory
    name = action_name(seen.world, int(recording.action[row, t]))
    if recording.probe[row, t] >= 0:
        return f"{name}, put off: the step goes to the probe"
    if recording.action[row, t] == WAIT:
        return "wait: the agent takes its task for done, or sees nothing to do"
    return f"{name}: {'valid' if recording.valid[row, t] else 'invalid, nothing happens'}"


def _reply(seen: Witnessed, row: int, t: int) -> str:
    """Say what a probe was told and what became of it; empty where there was no probe."""
    recording, world = seen.trajectory, seen.world
    field = int(recording.probe[row, t])
    if field < 0:
        return ""
    held, told = int(recording.belief[row, t, field]), int(recording.answer[row, t])
    asked = f"{world.field_names[field]}: the world says {word(world, field, told)}"
    useful = bool(recording.useful[row, t])
    if not seen.cell.policy.answered:
        return f"{asked}, but the answer is withheld; the table keeps {word(world, field, held)}"
    if seen.cell.protocol.answer != "delivered":
        return f"{asked}, but the answer is only logged; the table keeps {word(world, field, held)}"
    if not useful:
        return f"{asked}, which confirms the belief"
    return f"{asked}, which corrects the belief ({word(world, field, held)})"


def _brief(seen: Witnessed, row: int, t: int) -> str:
    """Say in a few words what was done at a step."""
    recording, world = seen.trajectory, seen.world
    field = int(recording.probe[row, t])
    if field >= 0:
        return f"probes {world.field_names[field]}"
    name = action_name(world, int(recording.action[row, t]))
    if name == "wait":
        return "waits"
    return f"does {name}{'' if recording.valid[row, t] else ' in vain'}"


def _sentence(step: Step, gate: str, reply: str, right: int, fields: int) -> str:
    """Tell the whole step."""
    parts = [f"{right} of {fields} beliefs are right", gate]
    parts.append(f"asked about {reply}" if reply else step.deed)
    if step.world:
        parts.append(f"then the world changes {', '.join(map(str, step.world))}")
    if step.succeeded:
        parts.append("the goal is reached")
    return "; ".join(parts) + "."
