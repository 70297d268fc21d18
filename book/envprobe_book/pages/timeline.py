"""One recorded episode, step by step and in words, along the lines of Algorithm 1.

Nothing is computed again: values come from the recording, score terms from what the policy saw before each
decision (`witness`), mutations from the world's own states.
"""

from typing import Any

import numpy as np
import pandas as pd

from envprobe_book.facts.replay import Witnessed
from envprobe_core import measures
from envprobe_core.engine.records import NONE, UNKNOWN, WAIT
from envprobe_core.policies import TERMS
from envprobe_core.protocols import Protocol, parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import Floats, Values, World

TOP = 5  # fields whose scores are drawn at a step; the probed one is added where it is none of them
OUTCOMES = {
    "probe": "probe",
    "below": "below threshold: act",
    "spent": "budget spent: act",
    "veto": "probe vetoed: act",
    "act": "act",
}
"""How the gate decided, as the player labels it."""
WAITS = "waits"
SAID = {
    "change": "{field}: {old} → {new}",
    "reached": "ends with {right} of {fields} beliefs right; the goal was reached",
    "missed": "ends with {right} of {fields} beliefs right; the goal was not reached",
    "probes": "probes {field}",
    "vetoes": "vetoes the probe",
    "silent": "does not probe",
    "then probe": ": probe",
    "then act": ": act",
    "but rule": ", but the rule {does}",
    "but judge": ", but the judge {does}",
    "gate": "max ρ = {score} {sign} {threshold} and {used} {less} {budget}{then}",
    "own score": "{title} compares its own score, {score}, with {threshold}{then}{count}",
    "no score": "{title} compares no score with a threshold; it {does}{count}",
    "count": " ({used} of {budget} probes used)",
    "waits": WAITS,
    "wait": "wait: the agent takes its task for done, or sees nothing to do",
    "acts": "does {action}",
    "fails": "does {action} in vain",
    "valid": "{action}: valid",
    "invalid": "{action}: invalid, nothing happens",
    "put off": "{action}, put off: the step goes to the probe",
    "withheld": "{field}: the world says {said}, but the answer is withheld; the table keeps {held}",
    "logged": "{field}: the world says {said}, but the answer is only logged; the table keeps {held}",
    "late": "{field}: the world says {said}; the answer comes {steps} steps later, the table holds {held}",
    "unsure": "{field}: the world says {said}; the agent may be told another value, and held {held}",
    "corrects": "{field}: the world says {said}, which corrects the belief ({held})",
    "confirms": "{field}: the world says {said}, which confirms the belief",
}
"""What is said of an episode: Python fills these in, and a page does (`widgets/episode.js`)."""
RECORDED = ("belief", "gold", "confidence", "staleness", "place")


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


def changes(world: World, before: Values, after: Values) -> dict[int, str]:
    """Which fields have another value: field -> its name, the old and the new value in words."""
    return {
        i: SAID["change"].format(
            field=world.field_names[i], old=word(world, i, before[i]), new=word(world, i, after[i])
        )
        for i in np.flatnonzero(before != after).tolist()
    }


def record_run(seen: Witnessed) -> dict[str, Any]:
    """The first of the episodes that were witnessed, ready for JSON.

    Returns:
        `name title threshold terms own_score budget steps`; tables [time, field] over t = 0..steps: `belief
        gold confidence staleness`; [step, field]: `c s u d`. Lists over t = 0..steps: `place`, `right`
        (fields believed rightly), `accuracy` (their share), `used` (probes fired before t), `track` (the
        protocol's own accuracy, or None where it is the share of right fields), `brief`. Lists over steps:
        `probe`, `action`, `top` (fields by score), `moved` (fields that the world changed), what
        `_decision` says, `world` (what mutated, in words) and `wrote` (what the agent changed in its table,
        and whether that is true).
    """
    recording, cell, world, policy = seen.trajectory, seen.condition, seen.world, seen.condition.policy
    steps = int(recording.steps[0])
    lived, decided = slice(steps + 1), slice(steps)
    belief, gold, probe = recording.belief[0, lived], recording.gold[0, lived], recording.probe[0, decided]
    fired, score, acted = probe >= 0, seen.rho()[0, decided], seen.after_action()[0]
    right, used = (belief == gold).sum(axis=1), np.concatenate([[0], np.cumsum(fired)]).tolist()
    held = belief[decided].copy()
    if policy.answered and at_once(cell.protocol):
        held[fired, probe[fired]] = recording.answer[0, decided][fired]
    track = measures.step_accuracy(recording, cell.protocol)[0, lived]
    own_track = cell.protocol.accuracy != "terminal" or cell.protocol.pairing != "same-step"
    compared = recording.score[0, decided]
    differs = ~np.isnan(compared) & (compared != score.max(axis=1, initial=-np.inf))
    own_score = policy.has_threshold and bool(differs.any())
    told = [_decision(seen, t, used[t], score[t], own_score) for t in range(steps)]
    end = SAID["reached" if seen.goal_reached()[0, steps] else "missed"]
    end = end.format(right=right[-1], fields=world.fields)
    return {
        "name": policy.name,
        "title": policy.title,
        "threshold": cell.threshold_in_force if policy.has_threshold else None,
        "terms": list(seen.kept_terms or TERMS),
        "own_score": own_score,
        "budget": cell.budget_in_force,
        "steps": steps,
        **{name: getattr(recording, name)[0, lived].tolist() for name in RECORDED},
        **{name: seen.term(name)[0, decided].tolist() for name in TERMS},
        "right": right.tolist(),
        "accuracy": (right / world.fields).tolist(),
        "used": used,
        "track": [None if np.isnan(x) else round(x, 4) for x in track] if own_track else None,
        "probe": probe.tolist(),
        "action": recording.action[0, decided].tolist(),
        "top": [_top(score[t], int(probe[t])) for t in range(steps)],
        "moved": [np.flatnonzero(line).tolist() for line in seen.exogenous()[0, decided]],
        "world": [list(changes(world, acted[t], gold[t + 1]).values()) for t in range(steps)],
        "wrote": [
            [(said, bool(belief[t + 1][i] == gold[t + 1][i])) for i, said in new.items()]
            for t, new in enumerate(map(changes, [world] * steps, held, belief[1:]))
        ],
        **{name: [own[name] for own in told] for name in ("outcome", "gate", "deed", "reply")},
        "brief": [*(own["brief"] for own in told), end],
    }


def _top(score: Floats, probe: int) -> list[int]:
    order = np.argsort(-score, kind="stable")[:TOP].tolist()
    return order if probe < 0 or probe in order else [*order, probe]


def _decision(seen: Witnessed, t: int, used: int, score: Floats, own_score: bool) -> dict[str, str]:
    """What was decided and done at a step.

    Args:
        used: probes fired before.
        score: rho, [field].
        own_score: whether the gate compares another score than that.

    Returns:
        `outcome` (a key of `OUTCOMES`); in words `gate` (line 11 of Algorithm 1), `deed` (what the agent
        proposed, and what became of it), `reply` (what a probe was told, or nothing) and `brief`.
    """
    recording, world, policy = seen.trajectory, seen.world, seen.condition.policy
    budget, threshold = seen.condition.budget_in_force, seen.condition.threshold_in_force
    field, proposed = int(recording.probe[0, t]), int(recording.action[0, t])
    asks, left, compared = field >= 0, used < budget, float(recording.score[0, t])
    gated = policy.has_threshold and not policy.replays
    action = WAITS if proposed == WAIT else world.action_names[proposed]
    probes = SAID["probes"].format(field=world.field_names[field]) if asks else ""
    then = SAID["then probe" if asks else "then act"]
    count, gate_at = SAID["count"].format(used=used, budget=budget), f"{threshold:g}"

    if gated and not own_score:
        reached = score.max() >= threshold
        if field != (int(np.argmax(score)) if reached and left else NONE):
            who = "but judge" if policy.name == "judge" else "but rule"
            then = SAID[who].format(does=probes or SAID["vetoes"])
        gate = SAID["gate"].format(
            score=f"{score.max():.2f}",
            sign="≥" if reached else "<",
            threshold=gate_at,
            used=used,
            less="<" if left else "=",
            budget=budget,
            then=then,
        )
    elif own_score:
        own = {"title": policy.title, "score": f"{compared:.2f}", "threshold": gate_at}
        gate = SAID["own score"].format(then=then, count=count, **own)
    else:
        gate = SAID["no score"].format(title=policy.title, does=probes or SAID["silent"], count=count)

    if not asks:
        outcome, valid = "act" if left or not budget else "spent", recording.valid[0, t]
        if gated:
            outcome = "below" if compared < threshold else "veto" if left else "spent"
        brief = SAID["acts" if valid else "fails"].format(action=action)
        deed = SAID["valid" if valid else "invalid"].format(action=action)
        if action == WAITS:
            brief, deed = WAITS, SAID["wait"]
        return {"outcome": outcome, "gate": gate, "deed": deed, "reply": "", "brief": brief}
    deed = SAID["put off"].format(action="wait" if action == WAITS else action)
    held, said = (
        word(world, field, int(own)) for own in (recording.belief[0, t, field], recording.answer[0, t])
    )
    how, rules = "corrects" if recording.useful[0, t] else "confirms", seen.condition.protocol
    if not policy.answered:
        how = "withheld"
    elif rules.answer != "delivered":
        how = "logged"
    elif rules.delay != "0":
        how = "late"
    elif rules.wrong != "0":
        how = "unsure"
    reply = SAID[how].format(field=world.field_names[field], said=said, held=held, steps=rules.delay)
    return {"outcome": "probe", "gate": gate, "deed": deed, "reply": reply, "brief": probes}


def at_once(protocol: Protocol) -> bool:
    """Whether a probe's answer, which is the truth, is in the belief table at once.

    >>> from envprobe_core.protocols import parse_protocol
    >>> at_once(parse_protocol("paper")), at_once(parse_protocol("paper:delay=2"))
    (True, False)
    """
    return (protocol.answer, protocol.wrong, protocol.delay) == ("delivered", "0", "0")


def describe_steps(
    episode: pd.DataFrame, world: str, regime: str = "S2", protocol: str = "paper", *, fold: bool = True
) -> pd.DataFrame:
    """What happened at each step of an episode from `play`.

    Args:
        fold: whether steps in a row on which the agent only waits become one row.

    Returns:
        One row a step: `step` (or first and last of those folded), `right` (share of beliefs), `best` and
        `rho` (the highest score and its field), `deed`, and `moved`: the fields whose truth is another one
        step later (of folded steps, how many `changes`).
    """
    rules = parse_protocol(protocol)
    built, told = make_world(world, REGIMES[regime], rules), []
    steps = [rows.reset_index(drop=True) for _, rows in episode.groupby("t", sort=True)]
    for rows, later in zip(steps, [*steps[1:], steps[-1]], strict=True):
        rho, first = rows[list(TERMS)].sum(axis=1), rows.iloc[0]
        deed = f"{first['action']}: {'works' if first['valid'] else 'fails'}" if first["acted"] else WAITS
        if rows["probe"].any():
            at = int(rows["probe"].idxmax())
            held, truth = (word(built, at, rows[name][at]) for name in ("belief", "gold"))
            found = "confirms it" if held == truth else f"it is {truth}"
            deed = f"asks for *{rows['field'][at]}*, believed {held}: {found}"
            deed += "; the answer never reaches the agent" * (rules.answer == "withheld")
        moved = changes(built, rows["gold"].to_numpy(), later["gold"].to_numpy()).values()
        told.append(
            {
                "step": str(first["t"]),
                "right": float((rows["belief"] == rows["gold"]).mean()),
                "best": rows["field"][rho.idxmax()],
                "rho": float(rho.max()),
                "deed": deed,
                "changes": len(moved),
                "moved": "; ".join(moved),
            }
        )
    shown: list[dict[str, Any]] = []
    for row in told:
        if fold and shown and row["deed"] == shown[-1]["deed"] == WAITS:
            first, count = shown[-1]["step"].partition("–")[0], shown[-1]["changes"] + row["changes"]
            shown[-1] |= {"step": f"{first}–{row['step']}", "changes": count, "moved": f"{count} changes"}
        else:
            shown.append(row)
    return pd.DataFrame(shown)
