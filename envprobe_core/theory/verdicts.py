"""What became of each statement: one row a statement, mathematics and measurement apart, all computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.markup import Table
from envprobe_core.theory import pure
from envprobe_core.theory.assumption import AssumptionTest
from envprobe_core.theory.singles import SelfReport
from envprobe_core.theory.tables import of_total, violations_of

if TYPE_CHECKING:
    import pandas as pd

HOLDS, CONDITION = "holds", "needs a condition more"
MET, NOT_MET, MIXED, UNTESTED = "as stated", "not as stated", "in part", "nothing to test"


@dataclass(frozen=True)
class Outcome:
    """One statement: what its mathematics and what its measurement came to."""

    statement: str
    mathematics: str
    measured: str
    verdict: str


def _share(met: int, total: int) -> str:
    return UNTESTED if total == 0 else MET if met == total else NOT_MET if met == 0 else MIXED


def outcomes(
    tests: Sequence[AssumptionTest],
    lemma: pd.DataFrame,
    reports: Sequence[SelfReport],
    miscoverage: pd.DataFrame,
    efficiency: pd.DataFrame,
    displacement: pd.DataFrame,
    changes: pd.DataFrame,
) -> list[Outcome]:
    """Judge every statement by the section's own results; arguments are those of its tables."""
    retried = violations_of(tests)
    standing = sum(v.holds_up for v in retried)
    pasts = sum(len(test.lattices) for test in tests)
    tells, slots, harm = pure.neighbour_tells(), pure.stuck_agents_act_longest(), pure.harmful_gains()
    spatial = [r for r in reports if r.kind == "spatial" and not np.isnan(r.epsilon)]
    exact = (miscoverage["eligible"] - miscoverage["ceiling"]).abs().dropna()
    known = efficiency[efficiency["efficiency"].notna()]
    trades = int((changes["shape"] == "trade-off").sum())
    falls = int((changes["accuracy_high"] < 0).sum())
    flat = pure.displacement_bound(0.5, 30, 1) == pure.displacement_bound(0.5, 2, 1)
    within = sum(r.within for r in spatial)
    return [
        Outcome(
            "{prf:ref}`ass-repair`",
            "an assumption",
            f"{of_total(standing, len(retried))} of the retried counterexamples stand",
            UNTESTED if not pasts else NOT_MET if standing else MET,
        ),
        Outcome(
            "{prf:ref}`lem-repair`",
            HOLDS,
            f"met in {of_total(int(lemma['holds'].sum()), len(lemma))} rows" if len(lemma) else UNTESTED,
            _share(int(lemma["holds"].sum()), len(lemma)) if len(lemma) else UNTESTED,
        ),
        Outcome(
            "{prf:ref}`lem-self-report`",
            CONDITION if tells.advantage > 2 * tells.epsilon else HOLDS,
            f"within 2ε in {of_total(within, len(spatial))} spatial rows",
            _share(within, len(spatial)),
        ),
        Outcome(
            "{prf:ref}`pro-miscoverage`",
            HOLDS,
            f"ceiling exact in {of_total(int((exact < 1e-9).sum()), len(exact))} rows",
            _share(int((exact < 1e-9).sum()), len(exact)),
        ),
        Outcome(
            "{prf:ref}`pro-uniform`",
            CONDITION if harm.mean() / harm.max() >= 1 else HOLDS,
            f"clearly below 1 in {of_total(int(known['below_one'].sum()), len(known))} rows",
            _share(int(known["below_one"].sum()), len(known)),
        ),
        Outcome(
            "{prf:ref}`lem-displacement`",
            CONDITION if slots.success > slots.bound(slots.pooled_share) else HOLDS,
            "interval not above the bound in "
            f"{of_total(int(displacement['holds'].sum()), len(displacement))} rows, "
            f"{int(displacement['short'].sum()):,} successes short of *K*",
            _share(int((displacement["holds"] & (displacement["short"] == 0)).sum()), len(displacement)),
        ),
        Outcome(
            "{prf:ref}`thm-frontier`",
            CONDITION if flat else HOLDS,
            f"a trade-off in {of_total(trades, len(changes))} comparisons, accuracy falls in "
            f"{of_total(falls, len(changes))}",
            _share(trades, len(changes)),
        ),
    ]


def show_outcomes(found: Sequence[Outcome]) -> Table:
    """Show what became of each statement."""
    return Table(
        "tab-theory-outcomes",
        "What became of each statement: its mathematics as printed, and what the simulated agent's episodes "
        "say.",
        ("Statement", "Mathematics", "Measured", "In the episodes"),
        [[o.statement, o.mathematics, o.measured, f"**{o.verdict}**"] for o in found],
        "llll",
    )
