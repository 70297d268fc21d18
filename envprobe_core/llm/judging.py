"""EnvProbe-Judge with a second model: what it is shown, and what its verdict decides.

The judge sees the belief table, the proposed action, the three highest-scored fields with the terms of their
scores, and what the score alone decides; its override is binary (Section 4.2). A verdict that stays
unusable lets the decision stand and is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from envprobe_core.engine.records import NONE
from envprobe_core.llm.answers import Verdict
from envprobe_core.llm.situations import TABLE, action_name, belief_texts
from envprobe_core.policies.rules import JUDGE_CANDIDATES
from envprobe_core.worlds.base import World

CANDIDATES = "Candidates (index field: value, staleness, confidence; c, s, u, d, score)"
ACT, CHECK = "carry out the action", "check field "


@dataclass(frozen=True)
class Case:
    """What a judge rules on.

    Attributes:
        text: what it is shown.
        candidates: the highest-scored fields, best first.
        decision: the field that the score alone probes, or NONE.
    """

    text: str
    candidates: list[int]
    decision: int

    def ruled(self, verdict: Verdict) -> int:
        """Return the field that is probed, or NONE."""
        return verdict.field if verdict.override else self.decision


def cases_of(world: World, sights: Any) -> list[Case]:
    """Write the case of every sight, [row], which the score has been written to."""
    count = world.fields
    order = np.argsort(-sights.rho[:, :count], axis=1, kind="stable")[:, :JUDGE_CANDIDATES].tolist()
    terms = np.stack([sights[name][:, :count] for name in ("c", "s", "u", "d", "rho")], axis=2).tolist()
    columns = (
        belief_texts(world, sights, sights.fields),
        sights.action.tolist(),
        (sights.highest >= sights.threshold).tolist(),
        order,
        terms,
    )
    cases = []
    for table, action, probes, candidates, scored in zip(*columns, strict=True):
        lines, decision = table.split("\n"), candidates[0] if probes else NONE
        shown = [f"{lines[i]}; " + ", ".join(f"{term:.3f}" for term in scored[i]) for i in candidates]
        text = (
            f"{TABLE}\n{table}\n\nProposed action: {action_name(world, action)}\n"
            + "\n".join([CANDIDATES, *shown])
            + f"\nDecision: {ACT if decision == NONE else f'{CHECK}{decision}'}"
        )
        cases.append(Case(text, candidates, decision))
    return cases
