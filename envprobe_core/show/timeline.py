"""One recorded episode, step by step and in words, along the lines of Algorithm 1: what the player shows.

Nothing is computed again: values come from the recording, score terms from what the policy saw before each
decision (`witness`), mutations from the world's own states.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from envprobe_core import measures
from envprobe_core.engine.records import UNKNOWN, WAIT
from envprobe_core.facts.witness import Witnessed
from envprobe_core.policies import TERMS
from envprobe_core.protocols import Protocol, parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import Values, World

TOP = 5  # fields whose scores are drawn at a step; the probed one is added where it is none of them
OUTCOMES = {
    "probe": "probe",
    "below": "below threshold: act",
    "spent": "budget spent: act",
    "veto": "probe vetoed: act",
    "act": "act",
}
"""How the gate decided, as the player labels it."""


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


def changes(world: World, before: Values, after: Values) -> dict[int, str]:
    """Say which fields have another value: field -> its name, the old and the new value in words."""
    return {
        i: f"{world.field_names[i]}: {word(world, i, before[i])} → {word(world, i, after[i])}"
        for i in np.flatnonzero(before != after).tolist()
    }


def record_run(seen: Witnessed) -> dict[str, Any]:
    """Return the first of the episodes that were witnessed, ready for JSON.

    Returns:
        `name title threshold terms own_score budget steps success`; tables [time, field] over t = 0..steps:
        `belief gold confidence staleness`; [step, field]: `c s u d`. Lists over t = 0..steps: `place`,
        `right` (fields believed rightly), `accuracy` (their share), `used` (probes fired before t), `track`
        (the protocol's own accuracy, or None where it is the share of right fields), `brief`, `sentence`.
        Lists over steps: `probe`, `useful`, `action`, `outcome` (a key of `OUTCOMES`), `top` (fields by
        score), `moved` (fields that the world changed), and in words `gate`, `deed` (what the agent proposed
        and what became of it), `reply` (what a probe was told, or nothing), `world` (what mutated) and
        `wrote` (what the agent changed in its table, and whether that is true).
    """
    recording, cell, world = seen.trajectory, seen.cell, seen.world
    steps = int(recording.steps[0])
    lived, decided = slice(steps + 1), slice(steps)
    belief, gold = recording.belief[0, lived], recording.gold[0, lived]
    probe, fired = recording.probe[0, decided], recording.probe[0, decided] >= 0
    score, right, counts = seen.rho()[0], (belief == gold).tolist(), (belief == gold).sum(axis=1)
    acted, held = seen.after_action()[0], belief[decided].copy()
    if cell.policy.answered and cell.protocol.answer == "delivered":  # the answer is in the table at once
        held[fired, probe[fired]] = recording.answer[0, decided][fired]
    used = np.concatenate([[0], np.cumsum(fired)]).tolist()
    goal = seen.goal_reached()[0]
    accuracies = measures.step_accuracy(recording, cell.protocol)[0, lived]
    own_track = cell.protocol.accuracy != "terminal" or cell.protocol.pairing != "same-step"
    track = [None if np.isnan(x) else round(x, 4) for x in accuracies]

    run: dict[str, Any] = {
        "name": cell.policy.name,
        "title": seen.cell.policy.title,
        "threshold": cell.threshold_in_force if cell.policy.has_threshold else None,
        "terms": list(seen.kept_terms or TERMS),
        "own_score": has_own_score(seen),
        "budget": cell.budget_in_force,
        "steps": steps,
        "success": bool(recording.success[0]),
        "belief": belief.tolist(),
        "gold": gold.tolist(),
        "confidence": recording.confidence[0, lived].tolist(),
        "staleness": recording.staleness[0, lived].tolist(),
        **{name: seen.term(name)[0, decided].tolist() for name in TERMS},
        "place": recording.place[0, lived].tolist(),
        "right": counts.tolist(),
        "accuracy": (counts / world.fields).tolist(),
        "used": used,
        "track": track if own_track else None,
        "probe": probe.tolist(),
        "useful": recording.useful[0, decided].tolist(),
        "action": recording.action[0, decided].tolist(),
        "outcome": [_outcome(seen, t, used[t]) for t in range(steps)],
        "top": [_top(score[t], int(probe[t])) for t in range(steps)],
        "moved": [np.flatnonzero(line).tolist() for line in seen.exogenous()[0, decided]],
        "gate": [_gate(seen, t, used[t]) for t in range(steps)],
        "deed": [_deed(seen, t) for t in range(steps)],
        "reply": [_reply(seen, t) for t in range(steps)],
        "world": [list(changes(world, acted[t], gold[t + 1]).values()) for t in range(steps)],
        "wrote": [
            [(said, right[t + 1][i]) for i, said in changes(world, held[t], belief[t + 1]).items()]
            for t in range(steps)
        ],
        "brief": [_brief(seen, t) for t in range(steps)],
        "sentence": [],
    }
    for t in range(steps):
        parts = [f"{counts[t]} of {world.fields} beliefs are right", run["gate"][t]]
        parts.append(f"asked about {run['reply'][t]}" if run["reply"][t] else run["deed"][t])
        parts += [f"then the world changes {', '.join(run['world'][t])}"] * bool(run["world"][t])
        parts += ["the goal is reached"] * bool(goal[t + 1] and not goal[t])
        run["sentence"].append("; ".join(parts) + ".")
    end = f"the episode is over, the goal {'was' if goal[steps] else 'was not'} reached"
    run["brief"].append(end)
    run["sentence"].append(f"{counts[-1]} of {world.fields} beliefs are right; {end}.")
    return run


def has_own_score(seen: Witnessed) -> bool:
    """Say whether the gate compared another score than the sum of the kept terms."""
    recorded = seen.trajectory.score
    if not seen.cell.policy.has_threshold or np.isnan(recorded).all():
        return False
    known = ~np.isnan(recorded)
    return bool((recorded[known] != seen.rho().max(axis=2)[known]).any())


def _top(score: np.ndarray, probe: int) -> list[int]:
    order = np.argsort(-score, kind="stable")[:TOP].tolist()
    return order if probe < 0 or probe in order else [*order, probe]


def _outcome(seen: Witnessed, t: int, used: int) -> str:
    recording, cell = seen.trajectory, seen.cell
    if recording.probe[0, t] >= 0:
        return "probe"
    if not cell.policy.has_threshold or cell.policy.replays:
        return "spent" if 0 < cell.budget_in_force <= used else "act"
    if recording.score[0, t] < cell.threshold_in_force:
        return "below"
    return "spent" if used >= cell.budget_in_force else "veto"


def _gate(seen: Witnessed, t: int, used: int) -> str:
    """Say line 11 of Algorithm 1 in words; where a reader's own score decides, with that score."""
    policy, budget, names = seen.cell.policy, seen.cell.budget_in_force, seen.world.field_names
    threshold, probe = seen.cell.threshold_in_force, int(seen.trajectory.probe[0, t])
    count, verdict = f"{used} of {budget} probes used", "probe" if probe >= 0 else "act"
    if has_own_score(seen):
        top = float(seen.trajectory.score[0, t])
        return f"{policy.title} compares its own score, {top:.2f}, with {threshold:.2f} ({count}): {verdict}"
    if not policy.has_threshold or policy.replays:
        verdict = f"probes {names[probe]}" if probe >= 0 else "does not probe"
        return f"{policy.title} compares no score with a threshold; it {verdict} ({count})"
    best = int(np.argmax(seen.rho()[0, t]))
    top = float(seen.rho()[0, t, best])
    reached, left = top >= threshold, used < budget
    text = f"max ρ = {top:.2f} {'≥' if reached else '<'} {threshold:.2f}"
    text += f" and {used} {'<' if left else '='} {budget}"
    if (probe == best) == (reached and left) and (probe < 0 or probe == best):
        return f"{text}: {verdict}"
    override = f"asks for {names[probe]}" if probe >= 0 else "vetoes the probe"
    return f"{text}, but the {'judge' if policy.name == 'judge' else 'rule'} {override}"


def _deed(seen: Witnessed, t: int) -> str:
    recording = seen.trajectory
    name = action_name(seen.world, int(recording.action[0, t]))
    if recording.probe[0, t] >= 0:
        return f"{name}, put off: the step goes to the probe"
    if recording.action[0, t] == WAIT:
        return "wait: the agent takes its task for done, or sees nothing to do"
    return f"{name}: {'valid' if recording.valid[0, t] else 'invalid, nothing happens'}"


def _reply(seen: Witnessed, t: int) -> str:
    recording, world = seen.trajectory, seen.world
    field = int(recording.probe[0, t])
    if field < 0:
        return ""
    held = word(world, field, int(recording.belief[0, t, field]))
    told = word(world, field, int(recording.answer[0, t]))
    asked = f"{world.field_names[field]}: the world says {told}"
    if not seen.cell.policy.answered:
        return f"{asked}, but the answer is withheld; the table keeps {held}"
    if seen.cell.protocol.answer != "delivered":
        return f"{asked}, but the answer is only logged; the table keeps {held}"
    if recording.useful[0, t]:
        return f"{asked}, which corrects the belief ({held})"
    return f"{asked}, which confirms the belief"


def _brief(seen: Witnessed, t: int) -> str:
    recording, world = seen.trajectory, seen.world
    field, name = int(recording.probe[0, t]), action_name(world, int(recording.action[0, t]))
    if field >= 0:
        return f"probes {world.field_names[field]}"
    if name == "wait":
        return "waits"
    return f"does {name}{'' if recording.valid[0, t] else ' in vain'}"


WAITS = "waits"


def describe_steps(
    episode: pd.DataFrame, world: str, regime: str = "S2", protocol: str = "paper", *, fold: bool = True
) -> pd.DataFrame:
    """Say what happened at each step of an episode from `play`.

    Args:
        fold: whether steps in a row on which the agent only waits become one row.

    Returns:
        One row a step: `step` (or first and last of those folded), `right` (share of beliefs), `best` and
        `rho` (the highest score and its field), `deed`, and `moved`: the fields whose truth is another one
        step later (of folded steps, how many `changes`).
    """
    rules = parse_protocol(protocol)
    built = make_world(world, REGIMES[regime], rules)
    steps = [rows.reset_index(drop=True) for _, rows in episode.groupby("t", sort=True)]
    told = []
    for rows, later in zip(steps, [*steps[1:], steps[-1]], strict=True):
        rho = rows[list(TERMS)].sum(axis=1)
        moved = changes(built, rows["gold"].to_numpy(), later["gold"].to_numpy()).values()
        told.append(
            {
                "step": str(rows["t"][0]),
                "right": float((rows["belief"] == rows["gold"]).mean()),
                "best": rows["field"][rho.idxmax()],
                "rho": float(rho.max()),
                "deed": _told_deed(rows, built, rules),
                "changes": len(moved),
                "moved": "; ".join(moved),
            }
        )
    if fold:
        groups = [list(group) for _, group in groupby(told, key=lambda row: row["deed"] == WAITS)]
        told = [row for group in groups for row in _folded(group)]
    return pd.DataFrame(told)


def _folded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make one row of several on which the agent waits."""
    if rows[0]["deed"] != WAITS or len(rows) == 1:
        return rows
    count = sum(row["changes"] for row in rows)
    span = f"{rows[0]['step']}–{rows[-1]['step']}"
    return [rows[0] | {"step": span, "changes": count, "moved": f"{count} changes"}]


def _told_deed(rows: pd.DataFrame, built: World, rules: Protocol) -> str:
    """Say what was done at a step: a probe and what it found, an action and whether it worked, or nothing."""
    if not rows["probe"].any():
        return (
            WAITS
            if not rows["acted"][0]
            else f"{rows['action'][0]}: {'works' if rows['valid'][0] else 'fails'}"
        )
    at = int(rows["probe"].idxmax())
    held, truth = (word(built, at, rows[name][at]) for name in ("belief", "gold"))
    found = "confirms it" if held == truth else f"it is {truth}"
    told = f"asks for *{rows['field'][at]}*, believed {held}: {found}"
    return told + ("; the answer never reaches the agent" if rules.answer == "withheld" else "")
