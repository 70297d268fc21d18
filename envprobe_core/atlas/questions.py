"""The questions: the paper's claims that an episode frame can test, and a few of ours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from envprobe_core.claims import Claim, load_claims, policy_and_budget
from envprobe_core.claims.records import measure_columns

REGIME = "S2"
FRAME = ("accuracy", "success", "probes", "useful", "budget", "collapse_onset", "action_onset")
REPORTS = ("confident", "confident_wrong")
OURS = "ours"
HEADLINES = ("main-procedural", "main-spatial", "collapse-delay", "ablation-structure")


def columns_of(claim: Claim) -> set[str]:
    """Return the frame's columns that a claim needs."""
    return {name for measure in claim.measures for name in measure_columns(measure)}


def _ours(name: str, statement: str, worlds: str, arm: str, reference: str) -> Claim:
    base = next(claim for claim in load_claims() if claim.id == "main-procedural")
    return replace(
        base,
        id=name,
        source=OURS,
        section="atlas",
        statement=statement,
        worlds=tuple(worlds.split("+")),
        arms=(arm,),
        references=(reference,),
        value=None,
        low=None,
        high=None,
        n=None,
        primary=False,
        inputs=(),
    )


def our_claims() -> tuple[Claim, ...]:
    """Return the questions that the paper leaves open and that its extra policies answer (ours)."""
    tools, spatial = "tooldag", "objectstate+graphnav"
    return (
        _ours(
            "information-procedural",
            "On the tool world EnvProbe-Simple is more accurate than its yoked placebo, which spends "
            "the same steps and is told nothing.",
            tools,
            "simple",
            "yoked",
        ),
        _ours(
            "information-spatial",
            "On the spatial worlds EnvProbe-Simple is more accurate than its yoked placebo.",
            spatial,
            "simple",
            "yoked",
        ),
        _ours(
            "gain-without-answers",
            "On the tool world the placebo, which is told nothing, is more accurate than Periodic.",
            tools,
            "placebo",
            "periodic",
        ),
        _ours(
            "better-than-no-probe",
            "Over the three worlds EnvProbe-Simple is more accurate than not probing at all.",
            f"{tools}+{spatial}",
            "simple",
            "no-probe",
        ),
        _ours(
            "weights-help-the-oracle",
            "Over the three worlds the task-weighted oracle is more accurate than the unweighted one.",
            f"{tools}+{spatial}",
            "oracle-tw",
            "oracle",
        ),
    )


def atlas_claims(claims: Iterable[Claim] | None = None) -> tuple[Claim, ...]:
    """Return the claims the atlas tests: those of its regime whose columns it has, then ours.

    Left out are claims about the settings of the environments (a family of one), which do not depend on
    the agent, about other budgets, and about the agent's log, but for the canonical confident-wrong rate.
    """
    chosen = load_claims() if claims is None else claims

    def testable(claim: Claim) -> bool:
        budgets = [policy_and_budget(arm)[1] for arm in claim.arms + claim.references]
        known = columns_of(claim) <= {*FRAME, *REPORTS}
        return claim.regime == REGIME and not claim.setting and known and set(budgets) == {None}

    return (*(claim for claim in chosen if testable(claim)), *our_claims())
