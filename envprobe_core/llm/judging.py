"""EnvProbe-Judge with a second model: what it is shown, and what its verdict decides.

The judge sees the belief table, the proposed action, the three highest-scored fields with the terms of their
scores, and what the score alone decides; its override is binary (Section 4.2). A verdict that stays
unusable lets the decision stand and is counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from envprobe_core.agents.base import Consultation
from envprobe_core.belief import BeliefTable
from envprobe_core.llm.answers import NO_FIELD, Verdict
from envprobe_core.llm.situations import TABLE, action_name, belief_texts
from envprobe_core.policies import JUDGE_CANDIDATES, JUDGE_CONFIDENCE, probe_score
from envprobe_core.views import Decision, View
from envprobe_core.worlds.base import Floats, Ints, Mask, World

CANDIDATES = "Candidates (index field: value, staleness, confidence; c, s, u, d, score)"
ACT, CHECK = "carry out the action", "check field "


@dataclass(frozen=True)
class Cases:
    """What a judge rules on, for every row.

    Attributes:
        view: what the policy may look at.
        rho: [row, field], the score.
        order: [row, candidate], the highest-scored fields, best first.
        best: [row], the highest score.
        probes: [row], whether the score alone probes: then the first candidate.
        open: [row], whether a verdict can matter: budget is left.
    """

    view: View
    rho: Floats
    order: Ints
    best: Floats
    probes: Mask
    open: Mask

    @classmethod
    def of(cls, consultation: Consultation) -> Cases:
        """Score the fields as EnvProbe-Simple does."""
        view = consultation.view
        rho = probe_score(view)
        order = np.argsort(-rho, axis=1, kind="stable")[:, :JUDGE_CANDIDATES]
        best = rho[np.arange(len(rho)), order[:, 0]]
        return cls(view, rho, order, best, best >= view.threshold, view.used < view.budget)

    def texts(self, world: World) -> list[str]:
        """Write the case of every row."""
        view = self.view
        tables = belief_texts(world, BeliefTable(view.value, view.staleness, view.confidence))
        terms = (view.c, view.s, view.u, view.d, self.rho)
        texts = []
        for row, table in enumerate(tables):
            lines = table.split("\n")
            candidates = [
                f"{lines[field]}; " + ", ".join(f"{term[row, field]:.3f}" for term in terms)
                for field in self.order[row].tolist()
            ]
            decision = f"{CHECK}{self.order[row, 0]}" if self.probes[row] else ACT
            texts.append(
                f"{TABLE}\n{table}\n\nProposed action: {action_name(world, int(view.action[row]))}\n"
                + "\n".join([CANDIDATES, *candidates, f"Decision: {decision}"])
            )
        return texts

    def ruled(self, verdicts: list[Verdict]) -> Decision:
        """Return what the verdicts, one a row, make of the score's decisions."""
        overrides = np.array([verdict.override for verdict in verdicts])
        field = np.array([verdict.field for verdict in verdicts])
        chosen = field != NO_FIELD
        return Decision(
            np.where(overrides, chosen, self.probes),
            np.where(overrides & chosen, field, self.order[:, 0]),
            self.best,
        )


def embedded_verdict(case: str) -> Verdict:
    """Rule on a case's text as the embedded judge does: veto d = 0, force a doubted direct blocker (ours)."""
    lines = case.partition(CANDIDATES + "\n")[2].split("\n")
    probes = lines.pop().startswith(f"Decision: {CHECK}")
    fields, confidence, d = [], [], []
    for line in lines:
        entry, _, terms = line.rpartition("; ")
        fields.append(int(re.match(r"\d+", line)[0]))  # type: ignore[index]
        confidence.append(int(entry.rpartition(",")[2]))
        d.append(float(terms.split(", ")[3]))
    if probes and d[0] > 0:
        return Verdict(False, NO_FIELD)
    doubted = (
        field
        for field, sure, role in zip(fields, confidence, d, strict=True)
        if role == 1.0 and sure < JUDGE_CONFIDENCE
    )
    forced = next(doubted, NO_FIELD)
    return Verdict(probes or forced != NO_FIELD, forced)
