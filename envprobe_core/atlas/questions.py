"""The questions: the paper's claims that an episode frame can test, and a few of ours."""

from __future__ import annotations

from dataclasses import replace

from envprobe_core.claims import Claim, find_claim, load_claims, policy_and_budget
from envprobe_core.claims.records import columns_of

REGIME = "S2"
FRAME = ("accuracy", "success", "probes", "useful", "budget", "collapse_onset", "action_onset")
REPORTS = ("confident", "confident_wrong")
OURS = "ours"
HEADLINES = ("main-procedural", "main-spatial", "collapse-delay", "ablation-structure")
ANSWERS = (  # that the paper leaves open and its extra policies answer: id, statement, worlds, arm, reference
    (
        "information-procedural",
        "On the tool world EnvProbe-Simple is more accurate than its yoked placebo, which spends "
        "the same steps and is told nothing.",
        ("tooldag",), "simple", "yoked",
    ),
    (
        "information-spatial",
        "On the spatial worlds EnvProbe-Simple is more accurate than its yoked placebo.",
        ("objectstate", "graphnav"), "simple", "yoked",
    ),
    (
        "gain-without-answers",
        "On the tool world the placebo, which is told nothing, is more accurate than Periodic.",
        ("tooldag",), "placebo", "periodic",
    ),
    (
        "better-than-no-probe",
        "Over the three worlds EnvProbe-Simple is more accurate than not probing at all.",
        ("tooldag", "objectstate", "graphnav"), "simple", "no-probe",
    ),
    (
        "weights-help-the-oracle",
        "Over the three worlds the task-weighted oracle is more accurate than the unweighted one.",
        ("tooldag", "objectstate", "graphnav"), "oracle-tw", "oracle",
    ),
)  # fmt: skip


def our_claims() -> tuple[Claim, ...]:
    """Return the questions of `ANSWERS` as claims of ours, which print no number."""
    base = replace(
        find_claim("main-procedural"), source=OURS, section="atlas", value=None, low=None, high=None, n=None,
        primary=False, inputs=(),
    )  # fmt: skip
    return tuple(
        replace(base, id=name, statement=statement, worlds=worlds, arms=(arm,), references=(reference,))
        for name, statement, worlds, arm, reference in ANSWERS
    )


def atlas_claims() -> tuple[Claim, ...]:
    """Return the claims the atlas tests: those of its regime whose columns it has, then ours.

    Left out are claims about the settings of the environments (a family of one), which do not depend on
    the agent, about other budgets, and about the agent's log, but for the canonical confident-wrong rate.
    """

    def testable(claim: Claim) -> bool:
        budgets = {policy_and_budget(arm)[1] for arm in claim.arms + claim.references}
        known = columns_of(claim) <= {*FRAME, *REPORTS}
        return claim.regime == REGIME and not claim.setting and known and budgets == {None}

    return (*filter(testable, load_claims()), *our_claims())
