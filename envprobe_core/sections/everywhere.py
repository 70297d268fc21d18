"""The paper's claims of a gain, asked in every regime. Part of section *stress*."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from envprobe_core.claims import find_claim
from envprobe_core.claims.judge import HOLDS, INCONCLUSIVE, OTHER_SIZE, REVERSES, judge
from envprobe_core.markup import Table, Text, bracket, counted, signed
from envprobe_core.regimes import REGIMES
from envprobe_core.statistics import RESAMPLES
from envprobe_core.tables import badge

if TYPE_CHECKING:
    import pandas as pd

GAINS = ("main-procedural", "main-spatial", "main-combined")  # the paper's claims, asked in every regime


def ask_everywhere(frame: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Ask the paper's three claims of a gain in every regime; rows as `claims.judge.judge` gives them.

    Outside S2 the paper prints no number, so a claim there either holds, reverses or is inconclusive.
    """
    claims = [
        replace(
            claim,
            regime=regime,
            **({} if regime == claim.regime else {"value": None, "low": None, "high": None, "n": None}),
        )
        for claim in map(find_claim, GAINS)
        for regime in REGIMES
    ]
    protocols = list(dict.fromkeys(frame["protocol"]))
    profile = str(frame["profile"].iloc[0])
    return judge(frame, claims, protocols=protocols, profile=profile, resamples=resamples)


def show_claims(asked: pd.DataFrame) -> Table:
    """Show the three claims of a gain in every regime, with adjusted intervals and verdicts."""
    protocols = list(dict.fromkeys(asked["protocol"]))
    rows = []
    for stratum, claim in zip(("procedural", "spatial", "combined"), GAINS, strict=True):
        part = asked[asked["claim"] == claim].set_index(["regime", "protocol"])
        for regime in REGIMES:
            title = f"**{stratum}**" if regime == next(iter(REGIMES)) else ""
            row = [title, f"`{regime}`", REGIMES[regime].title]
            for protocol in protocols:
                own = part.loc[(regime, protocol)]
                numbers = f"{signed(own['estimate'])} {bracket(own['low_adjusted'], own['high_adjusted'])} "
                row.append((numbers if own["estimate"] is not None else "") + badge(own["verdict"]))
            rows.append(row)
    caption = (
        "The gain of EnvProbe-Simple over Periodic in accuracy, points, with the interval adjusted for six "
        "comparisons and the verdict on the paper's claim of a gain. The paper prints numbers for S2 "
        "only. R5 is "
        "ours."
    )
    head = ("stratum", "regime", "", *(f"`{name}`" for name in protocols))
    return Table("tab-stress-claims", caption, head, rows, "lll" + "l" * len(protocols))


def tell_claims(asked: pd.DataFrame) -> Text:
    """Say in how many regimes each claim of a gain holds, reverses or stays open."""
    lines = []
    for protocol in dict.fromkeys(asked["protocol"]):
        parts = []
        for stratum, claim in zip(("procedural", "spatial", "combined"), GAINS, strict=True):
            own = asked[(asked["claim"] == claim) & (asked["protocol"] == protocol)]
            held = own["verdict"].isin((HOLDS, OTHER_SIZE)).sum()
            against, open_ = (own["verdict"] == REVERSES).sum(), (own["verdict"] == INCONCLUSIVE).sum()
            parts.append(
                f"the {stratum} gain holds in {counted(int(held))}, reverses in {counted(int(against))} "
                f"and is "
                f"inconclusive in {counted(int(open_))} of {len(own)} regimes"
            )
        lines.append(f"* `{protocol}`: {'; '.join(parts)}.")
    return Text("\n".join(lines))
