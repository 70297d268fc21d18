"""Test claims: pair the episodes, resample the difference, and say what its interval says of the claim.

At the Bonferroni-adjusted interval a claim *holds* where the interval lies on the claimed side,
*holds, other size* where it is also disjoint from the paper's interval (or rounded value), and *reverses*
where it lies on the other side; else it is *inconclusive*. Two words say that a claimed difference is not
there: *no effect* where the two sides agree in every episode, and *negligible* where the whole interval lies
within `TRIFLE` of zero, on whichever side. A claim of no difference holds where the interval lies within a
margin stated beforehand and reverses where it lies outside. Levels and settings are no comparisons, and
have words of their own: *near* or *differs*, *as printed* or *not as printed*. *input*: the claim was a
calibration target of the profile. *not tested*: the frame cannot test it.

A yes-or-no measure *cannot differ* where both sides say the same in nearly every pair of episodes. Such an
agent has one answer to any claim about the two, be it of a difference or of none, so it counts for nothing.
The few pairs that differ may decide a claim all the same, if there are very many episodes.

A claim of several comparisons holds where all hold and reverses where any does. Where each holds, shows that
nothing is there or cannot differ, and not all hold, that word is the claim's. `held` counts those that hold.

Every statistic is a ratio of sums over units (a seed in a world), for many columns at once. A frame has one
column; the atlas has one for each of its agents. Where all episodes of a yes-or-no measure have one value,
resampling cannot spread; the interval is then the exact one for so many trials.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from envprobe_book.claims import UNITS, Claim, Comparison, claims_by_id, load_claims
from envprobe_core.comparing import NotTestable, PairedEpisodes
from envprobe_core.conditions import Names, find_protocols
from envprobe_core.errors import InputError, look_up, require
from envprobe_core.estimating import MIN_UNITS, Sample, estimates_of, reach_of
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.statistics import (
    LEVEL,
    RESAMPLES,
    Estimate,
    exact_interval,
    mcnemar_exact,
    median_bootstrap,
)
from envprobe_core.worlds.base import Mask

HOLDS, OTHER_SIZE, REVERSES = "holds", "holds, other size", "reverses"
INCONCLUSIVE, NO_EFFECT, NEGLIGIBLE = "inconclusive", "no effect", "negligible"
CANNOT_DIFFER = "cannot differ"
INPUT, NOT_TESTED = "input", "not tested"
OPEN = (INCONCLUSIVE, NO_EFFECT, NEGLIGIBLE, CANNOT_DIFFER)
"""Neither for a claim nor against it."""
HARDLY = 0.03
"""Two arms cannot differ where the exact 95% interval of the share of pairs that do lies below this share. So
few is one pair of 220, or none of 121; the printed p of success rest on 47 and 54 of 220."""
TRIFLE = {"points": 0.5}
"""By unit, up to where a difference is negligible: a quarter of 2 points, the least margin of a claim of no
difference in accuracy. Units without an entry have no such word."""
WORDS = {  # how the three sorts of claim call the same outcome
    "comparison": {},
    "level": {HOLDS: "near", OTHER_SIZE: "near", REVERSES: "differs"},
    "setting": {HOLDS: "as printed", OTHER_SIZE: "as printed", REVERSES: "not as printed"},
}
AGREES = (HOLDS, OTHER_SIZE, "near", "as printed")
UNCOUNTED = (CANNOT_DIFFER, NOT_TESTED)
"""What is no outcome: shares of claims that agree leave it out."""
VERDICTS = (
    HOLDS, OTHER_SIZE, INCONCLUSIVE, NO_EFFECT, NEGLIGIBLE, CANNOT_DIFFER, REVERSES, "near", "differs",
    "as printed", "not as printed", INPUT, NOT_TESTED,
)  # fmt: skip
CALIBRATED = ("calibrated", "scribe", "scribe-hesitant", "scribe-settled")
"""Profiles fitted to the paper's targets, or chosen after a look at them: their targets are inputs."""
ABOUT = ("source", "section", "statement", "kind", "about", "family", "regime", "primary")
COLUMNS = (
    "claim", "verdict", "protocol", "profile", "unit", "estimate", "low", "high", "low_adjusted",
    "high_adjusted", "p", "p_adjusted", "n", "paper_value", "paper_low", "paper_high", "paper_n",
    "difference", "reason", "same_n", "held", *ABOUT,
)  # fmt: skip
NUMBERS = ("mean", "low", "high", "low_adjusted", "high_adjusted", "p", "p_adjusted")
EDGE = 1e-9  # relative slack of comparisons with a bound: rounding, not evidence


class Case(NamedTuple):
    """A verdict, and between which bounds an adjusted interval lies that has it."""

    verdict: str
    low: float = -np.inf  # the least that its low end may be
    high: float = np.inf  # the most that its high end may be
    same: bool = False  # instead: the two sides agree in every episode
    side: int = 0  # 1 of the claimed side, -1 of the other, 0 of neither


class Several(NamedTuple):
    """A verdict of a claim of several comparisons, and which verdicts of these have it."""

    verdict: str
    some: tuple[str, ...] = ()  # one of these is among them
    every: tuple[str, ...] = ()  # none but these are among them


OF_SEVERAL = (
    Several(NOT_TESTED, some=(NOT_TESTED,)),
    Several(REVERSES, some=(REVERSES,)),
    Several(HOLDS, every=(HOLDS, OTHER_SIZE)),
    Several(
        CANNOT_DIFFER, some=(CANNOT_DIFFER,), every=(HOLDS, OTHER_SIZE, NO_EFFECT, NEGLIGIBLE, CANNOT_DIFFER)
    ),
    Several(NO_EFFECT, every=(HOLDS, OTHER_SIZE, NO_EFFECT)),
    Several(NEGLIGIBLE, every=(HOLDS, OTHER_SIZE, NO_EFFECT, NEGLIGIBLE)),
)
"""The first that fits is the claim's; else *inconclusive*."""


class Decision(NamedTuple):
    """What became of one comparison of a claim, in those columns that have enough episodes."""

    sample: Sample
    enough: Mask  # [column], of all columns
    found: Estimate  # in the claim's own unit
    verdict: npt.NDArray[np.str_]


def assess_claim(
    claim: Claim, one: Comparison, episodes: PairedEpisodes, resamples: int = RESAMPLES
) -> Decision:
    """Test one comparison of a claim, column by column.

    Raises:
        NotTestable: where no column has `MIN_UNITS` episodes with a value, and as `Episodes.sample`.
    """
    worlds, pooled = claim.worlds + claim.against, claim.kind == "rate"
    sample = episodes.sample(one.measure, claim.regime, worlds, one.arms, one.reference, pooled_events=pooled)
    first, groups = sample.worlds < len(claim.worlds), {one.measure: sample.worlds >= 0}
    if claim.kind == "contrast":
        groups |= {" and ".join(claim.worlds): first, " and ".join(claim.against): ~first}
    units = np.array([np.count_nonzero(sample.bottom[own], axis=0) for own in groups.values()])
    enough = (units >= MIN_UNITS).all(axis=0)
    if not enough.any():
        name, count = next(own for own in zip(groups, units[:, 0], strict=True) if own[1] < MIN_UNITS)
        raise NotTestable(f"{name}: {count} episodes with a value, {MIN_UNITS} are needed")
    each = None if sample.each is None else sample.each[..., enough]
    sample = replace(sample, top=sample.top[:, enough], bottom=sample.bottom[:, enough], each=each)
    settings = {"null": claim.level, "family": claim.family, "resamples": resamples}
    if claim.kind == "median":
        columns = np.moveaxis(each * UNITS[claim.unit], 2, 0)
        medians = [median_bootstrap(own.T, sample.worlds, **settings) for own in columns]
        found = Estimate(*np.array(medians).T)
    else:
        whole = sample.times(UNITS[claim.unit])
        asked = whole.among(first).minus(whole.among(~first)) if claim.kind == "contrast" else whole
        (found,) = estimates_of([asked], **settings)
        found = _exact_where_flat(claim, one, sample, found)
    if claim.kind == "mcnemar":
        p = np.array([mcnemar_exact(*pair) for pair in zip(*discordant(sample), strict=True)])
        found = found._replace(p=p, p_adjusted=np.minimum(1.0, p * claim.family))
    verdict = verdicts(claim, one.direction, sample, found)
    return Decision(sample, enough, found, _without_the_same_episodes(claim, one, sample, verdict))


def says_yes_or_no(claim: Claim, one: Comparison) -> bool:
    """Whether a comparison counts episodes in which something is so."""
    return bool(reach_of(one.measure)) and claim.kind not in ("contrast", "rate", "median")


def _exact_where_flat(claim: Claim, one: Comparison, sample: Sample, found: Estimate) -> Estimate:
    """The estimate with exact ends in columns where every episode of a yes-or-no measure has one value."""
    if one.reference is not None or not says_yes_or_no(claim, one) or claim.about == "setting":
        return found
    top, bottom = sample.top, sample.bottom
    none, whole = ~top.any(axis=0), (top == bottom).all(axis=0)
    ends = np.stack([found.low, found.high, found.low_adjusted, found.high_adjusted])
    for column in np.flatnonzero(none | whole):
        n = int(bottom[:, column].sum())
        for place, level in ((0, LEVEL), (2, 1 - (1 - LEVEL) / claim.family)):
            exact = exact_interval(n if whole[column] else 0, n, level)
            ends[place : place + 2, column] = UNITS[claim.unit] * exact.low, UNITS[claim.unit] * exact.high
    low, high, low_adjusted, high_adjusted = ends
    return found._replace(low=low, high=high, low_adjusted=low_adjusted, high_adjusted=high_adjusted)


def _without_the_same_episodes(
    claim: Claim, one: Comparison, sample: Sample, verdict: npt.NDArray[np.str_]
) -> npt.NDArray[np.str_]:
    """The verdicts, [column], *cannot differ* where so few pairs of a yes-or-no measure do."""
    if one.reference is None or not says_yes_or_no(claim, one):
        return verdict
    differ = np.add(*discordant(sample))
    same = [
        exact_interval(int(some), int(n), LEVEL).high < HARDLY
        for some, n in zip(differ, sample.bottom.sum(axis=0), strict=True)
    ]
    decided = np.isin(verdict, [case.verdict for case in cases_of(claim, one.direction) if case.side])
    return np.where(np.array(same) & ~decided, CANNOT_DIFFER, verdict)


def discordant(sample: Sample) -> tuple[list[int], list[int]]:
    """Count the pairs that only the arm, and those that only the reference wins, [column] each."""
    won, lost = sample.top > 0, sample.top < 0
    return np.count_nonzero(won, axis=0).tolist(), np.count_nonzero(lost, axis=0).tolist()


def _past(bound: float) -> float:
    """The least number above a bound."""
    return float(np.nextafter(bound, np.inf))


def _before(bound: float) -> float:
    return float(np.nextafter(bound, -np.inf))


def cases_of(claim: Claim, direction: str) -> tuple[Case, ...]:
    """The verdicts that a comparison can have, of which the first that fits is its own; else *inconclusive*.

    A page that runs other seeds is given them as data. Of a test by p (`mcnemar`) the sides have no bounds.

    >>> from envprobe_book.claims import find_claim
    >>> [case.verdict for case in cases_of(find_claim("main-procedural"), "greater")]
    ['no effect', 'negligible', 'holds, other size', 'holds, other size', 'holds', 'reverses']
    """
    level = claim.level
    slack = EDGE * max(1.0, abs(level))
    if direction in ("none", "equal"):
        reach = claim.margin + slack  # type: ignore[operator]  # it has one
        outside = Case(REVERSES, low=_past(level + reach)), Case(REVERSES, high=_before(level - reach))
        return Case(HOLDS, level - reach, level + reach), *outside
    above, below = Case(HOLDS, low=_past(level + slack)), Case(HOLDS, high=_before(level - slack))
    claimed, against = (above, below) if direction == "greater" else (below, above)
    if claim.kind == "mcnemar":
        claimed = against = Case(HOLDS)
    claimed, against = claimed._replace(side=1), against._replace(verdict=REVERSES, side=-1)
    found = []
    if level == 0.0:
        found.append(Case(NO_EFFECT, same=True))
        if claim.unit in TRIFLE:
            found.append(Case(NEGLIGIBLE, -TRIFLE[claim.unit], TRIFLE[claim.unit]))
    if claim.printed is not None:
        least, most = claim.printed
        slack = EDGE * max(1.0, abs(least), abs(most))
        other = claimed._replace(verdict=OTHER_SIZE)
        found.append(other._replace(low=max(claimed.low, _past(most + slack))))
        found.append(other._replace(high=min(claimed.high, _before(least - slack))))
    return *found, claimed, against


def verdicts(claim: Claim, direction: str, sample: Sample, found: Estimate) -> npt.NDArray[np.str_]:
    """What an estimate says of a claim, [column]."""
    low, high, claimed = found.low_adjusted, found.high_adjusted, None
    if claim.kind == "mcnemar":
        won, lost = map(np.array, discordant(sample))
        claimed = (direction == "either") | ((won > lost) == (direction == "greater"))
    significant = found.p_adjusted < 1 - LEVEL

    def fits(one: Case) -> Mask:
        if one.same:
            return ~np.any(sample.top, axis=0)
        by_p = True if claimed is None or not one.side else significant & (claimed == (one.side > 0))
        return (one.low <= low) & (high <= one.high) & by_p

    cases = cases_of(claim, direction)
    return np.select([fits(one) for one in cases], [one.verdict for one in cases], INCONCLUSIVE)


def combine(found: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    """What verdicts [comparison, column] make of a claim of them all: one that reverses refutes it."""
    fits = [
        (np.isin(found, one.some).any(axis=0) | (not one.some))
        & (np.isin(found, one.every).all(axis=0) | (not one.every))
        for one in OF_SEVERAL
    ]
    return np.select(fits, [one.verdict for one in OF_SEVERAL], INCONCLUSIVE)


# one claim on one frame


def reason_of(claim: Claim, one: Comparison, decided: Decision) -> str:
    """What a comparison measured, in the first column, and why it has its verdict."""
    sample, found, verdict = decided.sample, decided.found, decided.verdict[0]
    level, margin = claim.level, claim.margin or 0.0
    ends = found.low_adjusted[0], found.high_adjusted[0], level - margin, level + margin
    mean, level, low, high, least, most, *printed = (
        f"{round(value, 9) + 0.0:.4g}"  # without the noise of the last bits
        for value in (found.mean[0], level, *ends, *(claim.printed or ()))
    )
    names = []
    for arm in (*one.arms, *filter(None, [one.reference])):
        policy, _, budget = arm.partition("@")
        names.append(POLICIES[policy].title + (f" ({budget} probes)" if budget else ""))
    sides = f", {', '.join(names[:-1])} minus {names[-1]}" if one.reference else ""
    unit = f" {claim.unit}" if claim.unit in ("points", "steps") else ""
    told = f"{one.measure}{sides}: {mean}{unit} (n = {int(sample.bottom[:, 0].sum())}); "
    interval = f"the adjusted interval [{low}, {high}] lies "
    if verdict == CANNOT_DIFFER:
        (won, *_), (lost, *_) = discordant(sample)
        told += f"the two sides differ in {won + lost} pairs, so that no claim about them can be tested"
    elif one.direction in ("none", "equal"):
        relation = {HOLDS: "within", REVERSES: "outside", INCONCLUSIVE: "across an end of"}[verdict]
        told += f"{interval}{relation} the margin [{least}, {most}]"
    elif verdict == NO_EFFECT:
        told += "the two sides agree in every episode"
    elif verdict == NEGLIGIBLE:
        told += f"{interval}within {TRIFLE[claim.unit]:g} of zero"
    else:
        if claim.kind == "mcnemar":
            (won, *_), (lost, *_) = discordant(sample)
            told += f"{won} against {lost} discordant pairs give an exact p of {found.p[0]:.2g} "
            told += f"({found.p_adjusted[0]:.2g} adjusted)"
        else:
            above = (verdict == REVERSES) != (one.direction == "greater")
            side = "around" if verdict == INCONCLUSIVE else "above" if above else "below"
            told += f"{interval}{side} {level}" + (" as claimed" if verdict in (HOLDS, OTHER_SIZE) else "")
        if verdict == REVERSES:
            told += ", against the claim"
        elif verdict != INCONCLUSIVE and claim.printed is not None:
            met = "missing" if verdict == OTHER_SIZE else "meeting"
            told += f", {met} the paper's [{', '.join(printed)}]"
    if sample.each is not None and (left_out := np.count_nonzero(np.isnan(sample.each))):
        told += f"; {left_out} left out (censored, or without an event)"
    return told


def _judge(claim: Claim, episodes: PairedEpisodes, profile: str, resamples: int) -> dict[str, Any]:
    """What becomes of a claim, by the names of `COLUMNS`; the weakest of its comparisons decides."""
    row = {name: getattr(claim, name) for name in ABOUT} | {"claim": claim.id, "verdict": NOT_TESTED}
    row |= {"profile": profile, "unit": claim.unit, "same_n": True, "held": ""}
    printed = {"value": claim.value, "low": claim.low, "high": claim.high, "n": claim.n}
    row |= {f"paper_{name}": np.nan if value is None else value for name, value in printed.items()}
    links = []
    try:
        for one in claim.comparisons:
            decided = assess_claim(claim, one, episodes, resamples)
            verdict, found = str(decided.verdict[0]), decided.found
            low, high = found.low_adjusted[0], found.high_adjusted[0]  # how far they reach to the claim
            support = (low if one.direction == "greater" else -high) / max(high - low, EDGE)
            rank = 0 if verdict == REVERSES else 1 if verdict in OPEN else 2
            links.append(((rank, support), verdict, one, decided))
    except NotTestable as why:
        return row | {"reason": f"{why}."}
    _, verdict, one, decided = min(links, key=lambda link: link[0])
    reason = reason_of(claim, one, decided)
    if len(links) > 1:
        every = [own for _, own, _, _ in links]
        held, against = sum(own in (HOLDS, OTHER_SIZE) for own in every), every.count(REVERSES)
        verdict = str(combine(np.array(every)[:, None])[0])
        row["held"] = f"{held} of {len(links)}"
        reason = f"{held} of {len(links)} comparisons hold, {against} reverse; the weakest: {reason}"
    row |= {name: getattr(decided.found, name)[0].item() for name in NUMBERS}
    row |= {"estimate": row["mean"], "n": int(decided.sample.bottom.sum())}
    row |= {"same_n": claim.n in (None, row["n"]), "difference": row["mean"] - row["paper_value"]}
    if not row["same_n"]:
        reason += f"; the paper's n is {claim.n}"
    verdict = WORDS[claim.about].get(verdict, verdict)
    if claim.inputs and profile in CALIBRATED:
        verdict, reason = INPUT, f"{reason}; calibrated on {', '.join(claim.inputs)}"
    return row | {"verdict": verdict, "reason": f"{reason}."}


def judge(
    frame: pd.DataFrame,
    claims: Iterable[Claim | str] | Claim | str | None = None,
    *,
    section: str | None = None,
    regime: str | None = None,
    protocols: Names | None = None,
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
        minus the paper's; `held` counts the comparisons that hold, where there are several; `same_n` says
        whether `n` is the paper's (true where it states none). A claim that the frame cannot test is *not
        tested*, with the reason.

    Raises:
        InputError: for an unknown claim or section, and a frame without its key columns, this protocol or
            this profile, with an episode twice, or with a gap in a column that it has.
    """
    if claims is None:
        claims = load_claims(section=section)
    elif section is not None:
        raise InputError(f"claims and section {section!r} are both given; one of them is accepted")
    chosen = [claims] if isinstance(claims, (Claim, str)) else claims
    known = claims_by_id()
    chosen = [look_up("claim", one, known) if isinstance(one, str) else one for one in chosen]
    if regime is not None:
        chosen = [replace(claim, regime=regime) for claim in chosen]
    if protocols is None:
        require(frame, ["protocol"])
        held = set(frame["protocol"])
        protocols = [*(p for p in PROTOCOLS if p in held), *sorted(held - set(PROTOCOLS))]
    else:
        protocols = [protocol.name for protocol in find_protocols(protocols)]
    views = {name: PairedEpisodes.of(frame, protocol=name, profile=profile)[0][1] for name in protocols}
    rows = [
        _judge(claim, episodes, profile, resamples) | {"protocol": protocol}
        for claim in chosen
        for protocol, episodes in views.items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS)
