"""Verdicts: each claim of the paper tested on a frame of episodes, never typed in.

At the Bonferroni-adjusted interval a claim *holds* where the interval lies on the claimed side,
*holds, other size* where it is also disjoint from the paper's interval (or rounded value), and
*reverses* where it lies on the other side; else it is *inconclusive*. A claim of no difference, or
of a level, holds where the interval lies within a margin stated beforehand and reverses where it
lies outside. *input*: the claim was a calibration target of the profile. *not tested*: the frame
cannot test it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims import Claim, find_claim, load_claims
from envprobe_core.claims.records import LEVELS
from envprobe_core.errors import InputError
from envprobe_core.intervals import LEVEL
from envprobe_core.medians import median_bootstrap
from envprobe_core.panel import NotTestableError, Panel, Sample, require_units
from envprobe_core.stats import (
    RESAMPLES,
    Estimate,
    bonferroni,
    clustered_rate,
    contrast_bootstrap,
    equivalence,
    mcnemar_exact,
)

if TYPE_CHECKING:
    import pandas as pd

HOLDS, OTHER_SIZE, REVERSES = "holds", "holds, other size", "reverses"
INCONCLUSIVE, INPUT, NOT_TESTED = "inconclusive", "input", "not tested"
VERDICTS = (HOLDS, OTHER_SIZE, INCONCLUSIVE, REVERSES, INPUT, NOT_TESTED)
CALIBRATED = ("calibrated",)  # profiles fitted to the paper's targets: their targets are inputs
PROTOCOLS = ("paper", "observed", "released")
EDGE = 1e-9  # relative slack of comparisons with a bound: rounding, not evidence


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one claim is worth on one frame; numbers are in the claim's unit, None where none."""

    claim: str
    verdict: str
    protocol: str
    profile: str
    unit: str
    estimate: float | None = None
    low: float | None = None  # raw interval
    high: float | None = None
    low_adjusted: float | None = None  # the interval that decides
    high_adjusted: float | None = None
    p: float | None = None  # two-sided; McNemar's exact p where the claim names that test
    p_adjusted: float | None = None
    n: int | None = None
    paper_value: float | None = None
    paper_low: float | None = None
    paper_high: float | None = None
    paper_n: int | None = None
    difference: float | None = None  # ours minus the paper's
    reason: str = ""

    @property
    def same_n(self) -> bool:
        """Whether the frame has as many episodes as the paper (true where it states none)."""
        return self.n is None or self.paper_n is None or self.n == self.paper_n


@dataclass(frozen=True, slots=True)
class _Link:
    """One comparison: an estimate in the claim's unit and what it says about the claim."""

    verdict: str
    label: str
    estimate: Estimate
    n: int
    p: float
    reason: str
    support: float  # how far the interval reaches to the claimed side; the least is the weakest


def _estimate(claim: Claim, sample: Sample, resamples: int, *, contrast: bool = False) -> Estimate:
    settings = {"family": claim.family, "resamples": resamples}
    top = sample.numerators * claim.scale
    if contrast:
        first = sample.worlds < len(claim.worlds)
        for group, worlds in ((first, claim.worlds), (~first, claim.against)):
            require_units(np.count_nonzero(sample.denominators[group]), " and ".join(worlds))
        return contrast_bootstrap(top, sample.denominators, first, sample.worlds, **settings)
    null = claim.centre if claim.kind in LEVELS else 0.0
    if claim.kind == "median":
        values = sample.spread * claim.scale
        return median_bootstrap(values, sample.worlds, null=null, **settings)
    return clustered_rate(top, sample.denominators, sample.worlds, null=null, **settings)


def _number(value: float) -> str:
    """Four significant digits, without the noise of the last bits."""
    return f"{round(value, 9) + 0.0:.4g}"


def _interval(low: float, high: float) -> str:
    return f"[{_number(low)}, {_number(high)}]"


def _adjusted(estimate: Estimate) -> str:
    return f"the adjusted interval {_interval(estimate.low_adjusted, estimate.high_adjusted)}"


def _paper_interval(claim: Claim) -> tuple[float, float] | None:
    if claim.value is None:
        return None
    if claim.low is not None and claim.high is not None:
        return claim.low, claim.high
    return claim.value - claim.half_unit, claim.value + claim.half_unit


def _side(claim: Claim, direction: str, estimate: Estimate, bound: float) -> tuple[str, str]:
    """Verdict and reason of a directed claim from the adjusted interval."""
    slack = EDGE * max(1.0, abs(bound))
    above = estimate.low_adjusted > bound + slack
    below = estimate.high_adjusted < bound - slack
    where = "above" if above else "below" if below else "around"
    reason = f"{_adjusted(estimate)} lies {where} {_number(bound)}"
    if not above and not below:
        return INCONCLUSIVE, reason
    if above != (direction == "greater"):
        return REVERSES, f"{reason}, against the claim"
    return _size(claim, estimate, f"{reason} as claimed")


def _size(claim: Claim, estimate: Estimate, reason: str) -> tuple[str, str]:
    """Holds, or holds with another size: the adjusted interval against the paper's."""
    paper = _paper_interval(claim)
    if paper is None or len(claim.measures) > 1:
        return HOLDS, reason
    slack = EDGE * max(1.0, abs(paper[0]), abs(paper[1]))
    low, high = estimate.low_adjusted, estimate.high_adjusted
    if low > paper[1] + slack or high < paper[0] - slack:
        return OTHER_SIZE, f"{reason}, missing the paper's {_interval(*paper)}"
    return HOLDS, f"{reason}, meeting the paper's {_interval(*paper)}"


def _within(claim: Claim, estimate: Estimate) -> tuple[str, str]:
    """Verdict and reason of a claim of no difference, or of a level, by interval inclusion."""
    centre = 0.0 if claim.kind == "equivalence" else claim.centre
    margin = claim.margin + EDGE * max(1.0, abs(centre))
    where = equivalence(estimate.low_adjusted, estimate.high_adjusted, margin, centre)
    band = _interval(centre - claim.margin, centre + claim.margin)
    verdict = {"inside": HOLDS, "outside": REVERSES, "undecided": INCONCLUSIVE}[where]
    relation = {"inside": "within", "outside": "outside", "undecided": "across an end of"}[where]
    return verdict, f"{_adjusted(estimate)} lies {relation} the margin {band}"


def _mcnemar(claim: Claim, sample: Sample, estimate: Estimate) -> tuple[str, str, float]:
    """Verdict, reason and exact p of a claim about paired successes."""
    only_arm = int(np.count_nonzero(sample.numerators > 0))
    only_reference = int(np.count_nonzero(sample.numerators < 0))
    p = mcnemar_exact(only_arm, only_reference)
    adjusted = bonferroni(p, claim.family)
    reason = f"{only_arm} against {only_reference} discordant pairs give an exact p of {p:.2g} "
    reason += f"({adjusted:.2g} adjusted)"
    if adjusted >= 1 - LEVEL:
        return INCONCLUSIVE, reason, p
    side = "greater" if only_arm > only_reference else "less"
    if claim.directions[0] not in ("either", side):
        return REVERSES, f"{reason}, against the claim", p
    return *_size(claim, estimate, reason), p


def comparisons(claim: Claim) -> list[tuple[str, tuple[str, ...], str | None, str]]:
    """(measure, arms, reference, direction) of each comparison a claim consists of."""
    if claim.kind == "ordering":
        steps = zip(claim.arms[1:], claim.arms[:-1], strict=True)
        return [(claim.measures[0], (arm,), ref, claim.directions[0]) for arm, ref in steps]
    if claim.kind == "dominance":
        return [
            (measure, (arm,), reference, direction)
            for measure, direction in zip(claim.measures, claim.directions, strict=True)
            for arm in claim.arms
            for reference in claim.references
        ]
    reference = claim.references[0] if claim.references else None
    return [(claim.measures[0], claim.arms, reference, claim.directions[0])]


def _test(
    claim: Claim,
    panel: Panel,
    link: tuple[str, tuple[str, ...], str | None, str],
    resamples: int,
) -> _Link:
    measure, arms, reference, direction = link
    worlds = claim.worlds + claim.against
    sample = panel.sample(measure, claim.regime, worlds, arms, reference, pooled_events=claim.kind == "rate")
    estimate = _estimate(claim, sample, resamples, contrast=claim.kind == "contrast")
    p = estimate.p
    if claim.kind == "mcnemar":
        verdict, reason, p = _mcnemar(claim, sample, estimate)
    elif direction in ("none", "equal"):
        verdict, reason = _within(claim, estimate)
    else:
        bound = claim.centre if claim.kind in LEVELS else 0.0
        verdict, reason = _side(claim, direction, estimate, bound)
    label = measure if reference is None else f"{measure}, {' '.join(arms)} - {reference}"
    if sample.left_out:
        reason += f"; {sample.left_out} left out (censored, or without an event)"
    low, high = estimate.low_adjusted, estimate.high_adjusted
    width = max(high - low, EDGE)
    support = low / width if direction == "greater" else -high / width
    return _Link(verdict, label, estimate, sample.n, p, reason, support)


def _joined(links: list[_Link]) -> tuple[str, _Link, str]:
    """The verdict of a claim that needs all its comparisons, its weakest one, and why."""
    verdicts = [link.verdict for link in links]
    ranks = {REVERSES: 0, INCONCLUSIVE: 1}
    weakest = min(links, key=lambda link: (ranks.get(link.verdict, 2), link.support))
    if len(links) == 1:
        return weakest.verdict, weakest, ""
    held = sum(v in (HOLDS, OTHER_SIZE) for v in verdicts)
    against = verdicts.count(REVERSES)
    verdict = REVERSES if against else HOLDS if held == len(links) else INCONCLUSIVE
    count = f"{held} of {len(links)} comparisons hold, {against} reverse; the weakest: "
    return verdict, weakest, count


def _evaluate(claim: Claim, panel: Panel, resamples: int) -> Verdict:
    blank = Verdict(
        claim.id, NOT_TESTED, panel.protocol, panel.profile, claim.unit,
        paper_value=claim.value, paper_low=claim.low, paper_high=claim.high, paper_n=claim.n,
    )  # fmt: skip
    try:
        links = [_test(claim, panel, link, resamples) for link in comparisons(claim)]
    except NotTestableError as why:
        return replace(blank, reason=f"{why}.")
    verdict, link, count = _joined(links)
    estimate = link.estimate
    unit = f" {claim.unit}" if claim.unit in ("points", "steps") else ""
    reason = f"{count}{link.label}: {_number(estimate.mean)}{unit} (n = {link.n}); {link.reason}"
    if claim.n is not None and claim.n != link.n:
        reason += f"; the paper's n is {claim.n}"
    if claim.inputs and panel.profile in CALIBRATED:
        verdict = INPUT
        reason += f"; calibrated on {', '.join(claim.inputs)}"
    return replace(
        blank,
        verdict=verdict,
        estimate=estimate.mean,
        low=estimate.low,
        high=estimate.high,
        low_adjusted=estimate.low_adjusted,
        high_adjusted=estimate.high_adjusted,
        p=link.p,
        p_adjusted=bonferroni(link.p, claim.family),
        n=link.n,
        difference=None if claim.value is None else estimate.mean - claim.value,
        reason=f"{reason}.",
    )


def evaluate(
    claim: Claim | str,
    frame: pd.DataFrame | Panel,
    *,
    protocol: str,
    profile: str = "typical",
    resamples: int = RESAMPLES,
) -> Verdict:
    """Test one claim (or its id) on an episode frame under one protocol and profile.

    `frame` has a row an episode (columns: `data/paper/README.md`). Refused: an unknown claim, a
    frame without its key columns, this protocol or this profile, or with an episode twice. A claim
    that the frame cannot test comes back as *not tested*, with the reason.
    """
    claim = find_claim(claim) if isinstance(claim, str) else claim
    panel = frame if isinstance(frame, Panel) else Panel(frame, protocol, profile)
    if (panel.protocol, panel.profile) != (protocol, profile):
        raise InputError(
            f"the panel is of protocol {panel.protocol!r} and profile {panel.profile!r}, asked for "
            f"are {protocol!r} and {profile!r}"
        )
    return _evaluate(claim, panel, resamples)


def evaluate_all(
    frame: pd.DataFrame,
    claims: Iterable[Claim | str] | None = None,
    *,
    protocols: Iterable[str] | None = None,
    profile: str = "typical",
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Test many claims (default: all) under each protocol (default: those of the frame).

    One row a claim and protocol, claims in their order: `Verdict`'s fields, `same_n`, and the
    claim's `source section statement kind regime primary`. What is refused: as in `evaluate`.
    """
    import pandas as pd

    chosen = load_claims() if claims is None else claims
    chosen = [find_claim(claim) if isinstance(claim, str) else claim for claim in chosen]
    if protocols is None:
        held = set(frame["protocol"]) if "protocol" in frame.columns else ()
        protocols = [*(p for p in PROTOCOLS if p in held), *sorted(set(held) - set(PROTOCOLS))]
    panels = [Panel(frame, protocol, profile) for protocol in protocols]
    about = ("source", "section", "statement", "kind", "regime", "primary")
    rows = []
    for claim in chosen:
        for panel in panels:
            verdict = _evaluate(claim, panel, resamples)
            extra = {name: getattr(claim, name) for name in about}
            rows.append(asdict(verdict) | {"same_n": verdict.same_n} | extra)
    names = [*Verdict.__dataclass_fields__, "same_n", *about]
    return pd.DataFrame(rows, columns=names)
