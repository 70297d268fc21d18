"""Test claims: pair the episodes, resample the difference, and say what its interval says of the claim.

At the Bonferroni-adjusted interval a claim *holds* where the interval lies on the claimed side,
*holds, other size* where it is also disjoint from the paper's interval (or rounded value), and *reverses*
where it lies on the other side; else it is *inconclusive*, or has *no effect* where the two sides agree in
every episode. A claim of no difference holds where the interval lies within a margin stated beforehand and
reverses where it lies outside. Levels and settings are no comparisons, and have words of their own: *near* or
*differs*, *as printed* or *not as printed*. *input*: the claim was a calibration target of the profile. *not
tested*: the frame cannot test it.

Every statistic is a ratio of sums over units (a seed in a world), for many columns at once. A frame has one
column; the atlas has one for each of its agents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, replace
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from envprobe_core.claims.episodes import MIN_UNITS, Episodes, NotTestable, Sample, draw_sample
from envprobe_core.claims.records import LEVELS, Claim, find_claim, load_claims, policy_and_budget
from envprobe_core.errors import InputError, require
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.statistics import (
    LEVEL,
    RESAMPLES,
    Estimate,
    clustered_rate,
    mcnemar_exact,
    median_bootstrap,
)

HOLDS, OTHER_SIZE, REVERSES = "holds", "holds, other size", "reverses"
INCONCLUSIVE, NO_EFFECT, INPUT, NOT_TESTED = "inconclusive", "no effect", "input", "not tested"
WORDS = {  # how the three sorts of claim call the same outcome
    "comparison": {},
    "level": {HOLDS: "near", OTHER_SIZE: "near", REVERSES: "differs"},
    "setting": {HOLDS: "as printed", OTHER_SIZE: "as printed", REVERSES: "not as printed"},
}
AGREES = (HOLDS, OTHER_SIZE, "near", "as printed")
VERDICTS = (
    HOLDS, OTHER_SIZE, INCONCLUSIVE, NO_EFFECT, REVERSES, "near", "differs", "as printed", "not as printed",
    INPUT, NOT_TESTED,
)  # fmt: skip
CALIBRATED = ("calibrated", "scribe", "scribe-hesitant")
"""Profiles fitted to the paper's targets, or chosen after a look at them: their targets are inputs."""
ABOUT = ("source", "section", "statement", "kind", "about", "family", "regime", "primary")
COLUMNS = (
    "claim", "verdict", "protocol", "profile", "unit", "estimate", "low", "high", "low_adjusted",
    "high_adjusted", "p", "p_adjusted", "n", "paper_value", "paper_low", "paper_high", "paper_n",
    "difference", "reason", "same_n", *ABOUT,
)  # fmt: skip
NUMBERS = ("mean", "low", "high", "low_adjusted", "high_adjusted", "p", "p_adjusted")
EDGE = 1e-9  # relative slack of comparisons with a bound: rounding, not evidence


class Comparison(NamedTuple):
    """One of the comparisons that a claim consists of."""

    measure: str
    arms: tuple[str, ...]
    reference: str | None
    direction: str


def comparisons(claim: Claim) -> list[Comparison]:
    """Return the comparisons that a claim consists of."""
    if claim.kind == "ordering":
        steps = pairwise(claim.arms)
        return [Comparison(claim.measures[0], (arm,), ref, claim.directions[0]) for ref, arm in steps]
    if claim.kind == "dominance":
        return [
            Comparison(measure, (arm,), reference, direction)
            for measure, direction in zip(claim.measures, claim.directions, strict=True)
            for arm in claim.arms
            for reference in claim.references
        ]
    reference = claim.references[0] if claim.references else None
    return [Comparison(claim.measures[0], claim.arms, reference, claim.directions[0])]


def sample_of(claim: Claim, one: Comparison, episodes: Episodes) -> Sample:
    """Return what a comparison of a claim is made of."""
    worlds, rate = claim.worlds + claim.against, claim.kind == "rate"
    return draw_sample(
        episodes, one.measure, claim.regime, worlds, one.arms, one.reference, pooled_events=rate
    )


def groups_of(claim: Claim, sample: Sample) -> list[npt.NDArray[np.bool_]]:
    """Return the units of each group that a claim contrasts, [unit] each; one group where it does not."""
    first = sample.worlds < len(claim.worlds)
    return [first, ~first] if claim.kind == "contrast" else [first]


def level_of(claim: Claim) -> float:
    """Return what the statistic of a claim is compared with: 0 for a difference."""
    return claim.centre if claim.kind in LEVELS else 0.0


def estimate(claim: Claim, sample: Sample, resamples: int = RESAMPLES) -> Estimate:
    """Estimate the statistic of a claim in its own unit, [column]; McNemar's exact p where it names that."""
    settings = {"null": level_of(claim), "family": claim.family, "resamples": resamples}
    if claim.kind == "median":
        columns = np.moveaxis(sample.each * claim.scale, 2, 0)
        found = [median_bootstrap(own.T, sample.worlds, **settings) for own in columns]
        return Estimate(*(np.array(values) for values in zip(*map(astuple, found), strict=True)))
    first = groups_of(claim, sample)[0] if claim.kind == "contrast" else None
    found = clustered_rate(sample.top * claim.scale, sample.bottom, sample.worlds, first=first, **settings)
    if claim.kind != "mcnemar":
        return found
    pairs = zip(*(side.tolist() for side in discordant(sample)), strict=True)
    p = np.array([_exact_p(*pair) for pair in pairs])
    return replace(found, p=p, p_adjusted=np.minimum(1.0, p * claim.family))


_exact_p = cache(mcnemar_exact)


def discordant(sample: Sample) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Count the pairs that only the arm, and those that only the reference wins, [column] each."""
    return np.count_nonzero(sample.top > 0, axis=0), np.count_nonzero(sample.top < 0, axis=0)


def verdicts(claim: Claim, direction: str, sample: Sample, found: Estimate) -> npt.NDArray[np.str_]:
    """Say what an estimate says of a claim, [column]."""
    low, high, level = found.low_adjusted, found.high_adjusted, level_of(claim)
    slack = EDGE * max(1.0, abs(level))
    if direction in ("none", "equal"):
        reach = claim.margin + slack
        within = (level - reach <= low) & (high <= level + reach)
        outside = (low > level + reach) | (high < level - reach)
        return np.select([within, outside], [HOLDS, REVERSES], INCONCLUSIVE)
    if claim.kind == "mcnemar":
        won, lost = discordant(sample)
        claimed = (direction == "either") | ((won > lost) == (direction == "greater"))
        claimed, against = (side & (found.p_adjusted < 1 - LEVEL) for side in (claimed, ~claimed))
    else:
        above, below = low > level + slack, high < level - slack
        claimed, against = (above, below) if direction == "greater" else (below, above)
    same = ~np.any(sample.top, axis=0) if level == 0.0 else np.zeros(low.shape, bool)
    verdict = np.select([claimed, against, same], [HOLDS, REVERSES, NO_EFFECT], INCONCLUSIVE)
    if (paper := _paper_interval(claim)) is None:
        return verdict
    slack = EDGE * max(1.0, *map(abs, paper))
    other = (low > paper[1] + slack) | (high < paper[0] - slack)
    return np.where(claimed & other, OTHER_SIZE, verdict)


def _paper_interval(claim: Claim) -> tuple[float, float] | None:
    """Return the interval that the paper prints, else its rounding; None where no size is compared."""
    if claim.value is None or len(claim.measures) > 1:
        return None
    if claim.low is not None and claim.high is not None:
        return claim.low, claim.high
    return claim.value - claim.half_unit, claim.value + claim.half_unit


# one claim on one frame


def _number(value: float) -> str:
    """Write four significant digits, without the noise of the last bits."""
    return f"{round(value, 9) + 0.0:.4g}"


def _interval(low: float, high: float) -> str:
    return f"[{_number(low)}, {_number(high)}]"


def _title(arm: str) -> str:
    policy, budget = policy_and_budget(arm)
    return POLICIES[policy].title + ("" if budget is None else f" ({budget} probes)")


def _reason(claim: Claim, direction: str, verdict: str, sample: Sample, link: dict[str, Any]) -> str:
    """Say why a comparison has its verdict."""
    told = f"the adjusted interval {_interval(link['low_adjusted'], link['high_adjusted'])} lies "
    level = level_of(claim)
    if direction in ("none", "equal"):
        relation = {HOLDS: "within", REVERSES: "outside", INCONCLUSIVE: "across an end of"}[verdict]
        return f"{told}{relation} the margin {_interval(level - claim.margin, level + claim.margin)}"
    if claim.kind == "mcnemar":
        (won,), (lost,) = discordant(sample)
        told = f"{won} against {lost} discordant pairs give an exact p of {link['p']:.2g} "
        told += f"({link['p_adjusted']:.2g} adjusted)"
    else:
        above = (verdict == REVERSES) != (direction == "greater")
        told += f"{'around' if verdict == INCONCLUSIVE else 'above' if above else 'below'} {_number(level)}"
    if verdict == NO_EFFECT:
        return "the two sides agree in every episode"
    if verdict == INCONCLUSIVE:
        return told
    if verdict == REVERSES:
        return f"{told}, against the claim"
    told += "" if claim.kind == "mcnemar" else " as claimed"
    if (paper := _paper_interval(claim)) is None:
        return told
    return f"{told}, {'missing' if verdict == OTHER_SIZE else 'meeting'} the paper's {_interval(*paper)}"


def _test(claim: Claim, one: Comparison, episodes: Episodes, resamples: int) -> dict[str, Any]:
    """Test one comparison: its numbers, verdict, reason, and how far its interval reaches to the claim."""
    sample = sample_of(claim, one, episodes)
    parts = {one.measure: sample.bottom}
    if claim.kind == "contrast":
        groups, names = groups_of(claim, sample), (claim.worlds, claim.against)
        parts |= {" and ".join(name): sample.bottom[own] for name, own in zip(names, groups, strict=True)}
    for name, bottom in parts.items():
        if (units := np.count_nonzero(bottom)) < MIN_UNITS:
            raise NotTestable(f"{name}: {units} episodes with a value, {MIN_UNITS} are needed")
    found = estimate(claim, sample, resamples)
    verdict = str(verdicts(claim, one.direction, sample, found)[0])
    link = {name: getattr(found, name)[0].item() for name in NUMBERS} | {"n": int(sample.bottom.sum())}
    reason = _reason(claim, one.direction, verdict, sample, link)
    if sample.each is not None and (left_out := np.count_nonzero(np.isnan(sample.each))):
        reason += f"; {left_out} left out (censored, or without an event)"
    low, high = link["low_adjusted"], link["high_adjusted"]
    support = (low if one.direction == "greater" else -high) / max(high - low, EDGE)
    arms = (
        "" if one.reference is None else f", {', '.join(map(_title, one.arms))} minus {_title(one.reference)}"
    )
    return link | {"verdict": verdict, "label": one.measure + arms, "reason": reason, "support": support}


def _judge(claim: Claim, episodes: Episodes, profile: str, resamples: int) -> dict[str, Any]:
    """Return what becomes of a claim, by the names of `COLUMNS`; the weakest of its comparisons decides."""
    row = {name: getattr(claim, name) for name in ABOUT} | {"claim": claim.id, "verdict": NOT_TESTED}
    row |= {"profile": profile, "unit": claim.unit, "same_n": True}
    printed = {"value": claim.value, "low": claim.low, "high": claim.high, "n": claim.n}
    row |= {f"paper_{name}": np.nan if value is None else value for name, value in printed.items()}
    try:
        links = [_test(claim, one, episodes, resamples) for one in comparisons(claim)]
    except NotTestable as why:
        return row | {"reason": f"{why}."}
    ranks = {REVERSES: 0, INCONCLUSIVE: 1, NO_EFFECT: 1}
    weakest = min(links, key=lambda link: (ranks.get(link["verdict"], 2), link["support"]))
    verdict, count = weakest["verdict"], ""
    if len(links) > 1:
        held = sum(link["verdict"] in (HOLDS, OTHER_SIZE) for link in links)
        against = sum(link["verdict"] == REVERSES for link in links)
        alike = {link["verdict"] for link in links} == {NO_EFFECT}
        verdict = NO_EFFECT if alike else HOLDS if held == len(links) else INCONCLUSIVE
        verdict = REVERSES if against else verdict
        count = f"{held} of {len(links)} comparisons hold, {against} reverse; the weakest: "
    mean, n = weakest["mean"], weakest["n"]
    unit = f" {claim.unit}" if claim.unit in ("points", "steps") else ""
    reason = f"{count}{weakest['label']}: {_number(mean)}{unit} (n = {n}); {weakest['reason']}"
    same_n = claim.n in (None, n)
    if not same_n:
        reason += f"; the paper's n is {claim.n}"
    verdict = WORDS[claim.about].get(verdict, verdict)
    if claim.inputs and profile in CALIBRATED:
        verdict, reason = INPUT, f"{reason}; calibrated on {', '.join(claim.inputs)}"
    row |= {name: weakest[name] for name in (*NUMBERS[1:], "n")} | {"estimate": mean}
    row |= {"verdict": verdict, "reason": f"{reason}.", "same_n": same_n}
    return row | {"difference": mean - row["paper_value"]}


def judge(
    frame: pd.DataFrame,
    claims: Iterable[Claim | str] | Claim | str | None = None,
    *,
    section: str | None = None,
    regime: str | None = None,
    protocols: Iterable[str] | None = None,
    profile: str = "typical",
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Test claims on a frame of episodes, under each protocol.

    Args:
        frame: one row an episode (columns: `data/paper/README.md`).
        claims: `Claim`s or their ids; by default every claim of the paper, or of `section`.
        section: a section of the book, instead of `claims`.
        regime: where the claims are asked instead of the regime that they name.
        protocols: names; by default those of the frame.

    Returns:
        One row a claim and protocol, claims in their order, columns `COLUMNS`. Numbers are in the claim's
        unit, NaN where there are none: `low high` is the raw interval, `low_adjusted high_adjusted` the one
        that decides, `p` two-sided (McNemar's exact one where the claim names that test), `difference` ours
        minus the paper's; `same_n` says whether `n` is the paper's (true where it states none). A claim that
        the frame cannot test is *not tested*, with the reason.

    Raises:
        InputError: for an unknown claim or section, and a frame without its key columns, this protocol or
            this profile, with an episode twice, or with a gap in a column that it has.
    """
    if claims is None:
        claims = load_claims(section=section)
    elif section is not None:
        raise InputError(f"claims and section {section!r} are both given; one of them is accepted")
    chosen = [claims] if isinstance(claims, (Claim, str)) else claims
    chosen = [find_claim(claim) if isinstance(claim, str) else claim for claim in chosen]
    if regime is not None:
        chosen = [replace(claim, regime=regime) for claim in chosen]
    if protocols is None:
        require(frame, ["protocol"])
        held = set(frame["protocol"])
        protocols = [*(p for p in PROTOCOLS if p in held), *sorted(held - set(PROTOCOLS))]
    views = {name: Episodes(frame, protocol=name, profile=profile) for name in protocols}
    rows = [
        _judge(claim, episodes, profile, resamples) | {"protocol": protocol}
        for claim in chosen
        for protocol, episodes in views.items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS)
