"""Section *calibration*, second half: what a fitted agent says of the claims that it was not fitted to.

A claim is outside the fit where neither its number nor an arm of it was a target (column `input` of
claims.csv). Claims that state a setting of the experiment compare nothing and are left to their section.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims import Claim
from envprobe_core.claims.judge import (
    CALIBRATED,
    HOLDS,
    INPUT,
    NOT_TESTED,
    OTHER_SIZE,
    REVERSES,
    VERDICTS,
    judge,
)
from envprobe_core.experiments import DEFAULT_SEEDS, PROTOCOLS, Names, find_protocols, names
from envprobe_core.markup import EMPTY, Table, Text, code, counted, listed, number, percent
from envprobe_core.scoreboard import SETTINGS_FAMILY, choose_claims, load_scoreboard_frame
from envprobe_core.statistics import RESAMPLES

if TYPE_CHECKING:
    import pandas as pd

AGREES = (HOLDS, OTHER_SIZE)
POINTS = {"points": 1.0, "share": 100.0}  # to percentage points


def outside_claims(regime: str = "S2") -> tuple[Claim, ...]:
    """Return the claims that compare something and are no input of a fit, asked of a regime."""
    return tuple(c for c in choose_claims(regime=regime) if not c.inputs and c.family != SETTINGS_FAMILY)


def load_outside(
    profiles: Names = ("typical", *CALIBRATED),
    protocols: Names = PROTOCOLS,
    seeds: str = DEFAULT_SEEDS,
    regime: str = "S2",
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Test every claim outside the fit with each agent.

    Args:
        profiles: names; one that is named twice runs once.
        protocols: as in `experiments.load_grid`.
        seeds: as in `scoreboard.load_scoreboard_frame`.
        regime: where claims about the paper's primary regime are asked.
        resamples: bootstrap resamples.

    Returns:
        One row a profile, claim and protocol, as `claims.judge.judge` gives it.
    """
    import pandas as pd

    claims = outside_claims(regime)
    chosen = [protocol.name for protocol in find_protocols(protocols)]
    parts = []
    for profile in dict.fromkeys(names(profiles)):
        frame = load_scoreboard_frame(claims, protocols, profile, seeds, regime)
        parts.append(judge(frame, claims, protocols=chosen, profile=profile, resamples=resamples))
    return pd.concat(parts, ignore_index=True)


def of_profile(outside: pd.DataFrame, profile: str) -> pd.DataFrame:
    """Return the rows of one agent, as the scoreboard's tables take them."""
    return outside[outside["profile"] == profile].reset_index(drop=True)


def count_verdicts(outside: pd.DataFrame) -> pd.DataFrame:
    """Count the verdicts of each agent under each protocol: `protocol profile`, a column each, `tested`."""
    counts = outside.groupby(["protocol", "profile", "verdict"], sort=False).size().unstack(fill_value=0)
    counts = counts.reindex(columns=[v for v in VERDICTS if v != INPUT], fill_value=0)
    order = outside[["protocol", "profile"]].drop_duplicates()
    counts = counts.reindex(
        [tuple(pair) for pair in order.sort_values("protocol", key=_place(outside)).values]
    )
    counts["tested"] = counts.drop(columns=NOT_TESTED).sum(axis=1)
    return counts.reset_index()


def _place(outside: pd.DataFrame) -> object:
    order = list(dict.fromkeys(outside["protocol"]))
    return lambda column: column.map(order.index)


def show_counts(outside: pd.DataFrame) -> Table:
    """Show how many claims outside the fit got which verdict."""
    counts = count_verdicts(outside)
    verdicts = [verdict for verdict in VERDICTS if verdict in counts.columns]
    rows = [
        [
            f"`{row['protocol']}`",
            f"`{row['profile']}`",
            *(str(row[verdict]) for verdict in verdicts),
            percent(_agreement(row)),
        ]
        for _, row in counts.iterrows()
    ]
    caption = (
        f"Verdicts on the {outside['claim'].nunique()} claims that no fit has seen, by protocol and agent. "
        "*Agree*: share of the tested claims that hold, in whatever size."
    )
    head = ("protocol", "agent", *verdicts, "agree")
    return Table("tab-calibration-counts", caption, head, rows, "ll" + "r" * (len(verdicts) + 1))


def _agreement(row: pd.Series) -> float:
    return float(sum(row[verdict] for verdict in AGREES)) / row["tested"] if row["tested"] else np.nan


def load_gaps(outside: pd.DataFrame) -> pd.DataFrame:
    """Measure how far the agents' figures lie from the printed ones.

    Returns:
        One row a protocol, profile and kind of figure (`points`, `steps`): `protocol profile unit n median
        within`: claims with a printed figure, the median distance, and the share of them that came out
        within 3 points or 1 step.
    """
    import pandas as pd

    there = outside[outside["paper_value"].notna() & outside["estimate"].notna()].copy()
    there["gap"] = there["difference"].astype(float).abs() * there["unit"].map(POINTS).fillna(1.0)
    there["figure"] = np.where(there["unit"].isin(list(POINTS)), "points", there["unit"])
    rows = []
    for protocol in dict.fromkeys(outside["protocol"]):
        for profile in dict.fromkeys(outside["profile"]):
            for figure, near in (("points", 3.0), ("steps", 1.0)):
                gap = there[
                    (there["protocol"] == protocol)
                    & (there["profile"] == profile)
                    & (there["figure"] == figure)
                ]["gap"].to_numpy(dtype=float)
                known = len(gap) > 0
                rows.append(
                    (
                        protocol,
                        profile,
                        figure,
                        len(gap),
                        float(np.median(gap)) if known else np.nan,
                        float((gap <= near).mean()) if known else np.nan,
                    )
                )
    return pd.DataFrame(rows, columns=["protocol", "profile", "unit", "n", "median", "within"])


def show_gaps(gaps: pd.DataFrame) -> Table:
    """Show the distance of the agents' figures from the printed ones."""
    rows = [
        [
            f"`{row.protocol}`",
            f"`{row.profile}`",
            row.unit,
            str(row.n),
            number(row.median, 1),
            percent(row.within),
        ]
        for row in gaps.itertuples()
    ]
    caption = (
        "How far the figures of claims outside the fit lie from the printed ones: the median distance, and "
        "the share within 3 points or 1 step. Accuracies, rates and differences of both are in points."
    )
    head = ("protocol", "agent", "unit", "figures", "median distance", "near")
    return Table("tab-calibration-gaps", caption, head, rows, "lllrrr")


def tell_outside(outside: pd.DataFrame, gaps: pd.DataFrame) -> Text:
    """Say whether fitting the targets made the rest of the paper come out better."""
    agents = list(dict.fromkeys(outside["profile"]))
    common = _tested_by_all(outside)
    if common.empty:
        return Text("No claim outside the fit can be tested on these episodes.")
    lines = []
    for protocol, part in common.groupby("protocol", sort=False):
        told = [
            f"with `{agent}` {_held(part, agent)} of {part['claim'].nunique()} claims hold and "
            f"{int(((part['profile'] == agent) & (part['verdict'] == REVERSES)).sum())} reverse"
            for agent in agents
        ]
        lines.append(f"* `{protocol}`: {'; '.join(told)}{_gap_words(gaps, protocol, agents)}.")
    text = "\n".join(lines)
    if len(agents) < 2:
        return Text(text)
    return Text(f"{text}\n\n{_gained(common, agents)} {_changed(common, agents)}")


def _tested_by_all(outside: pd.DataFrame) -> pd.DataFrame:
    """Return the claims and protocols that every agent's episodes could answer."""
    tested = (
        (outside["verdict"] != NOT_TESTED).groupby([outside["claim"], outside["protocol"]]).transform("all")
    )
    return outside[tested]


def _held(part: pd.DataFrame, agent: str) -> int:
    return int(((part["profile"] == agent) & part["verdict"].isin(AGREES)).sum())


def _gap_words(gaps: pd.DataFrame, protocol: str, agents: Sequence[str]) -> str:
    part = gaps[(gaps["protocol"] == protocol) & (gaps["unit"] == "points")].set_index("profile")
    told = [number(part.loc[agent, "median"], 1) for agent in agents]
    return "" if EMPTY in told else f"; printed figures are missed by {listed(told)} points in the median"


def _gained(common: pd.DataFrame, agents: Sequence[str]) -> str:
    first, fitted = agents[0], agents[-1]
    better, worse, same = [], [], []
    for protocol, part in common.groupby("protocol", sort=False):
        before, after = _held(part, first), _held(part, fitted)
        (better if after > before else worse if after < before else same).append(protocol)
    said = [
        f"{word} under {code(where)}"
        for word, where in (("more of them hold", better), ("fewer hold", worse), ("as many hold", same))
        if where
    ]
    return (
        f"Counted by verdicts on the claims that both can answer, the fit changed this: with `{fitted}` "
        f"instead of `{first}`, {listed(said)}. The claims share their episodes, so no test is attached to "
        "that count."
    )


def _changed(common: pd.DataFrame, agents: Sequence[str]) -> str:
    wide = common.pivot(index=["claim", "protocol"], columns="profile", values="verdict")
    first, fitted = wide[agents[0]], wide[agents[-1]]
    turned = (first.isin(AGREES) & (fitted == REVERSES)) | ((first == REVERSES) & fitted.isin(AGREES))
    across = int(turned.sum())
    text = (
        f"Of the {len(wide)} verdicts {int((first != fitted).sum())} differ between the two agents, and "
        f"{counted(across)} of these"
    )
    if not across:
        return f"{text} by going to the other side."
    return (
        f"{text} {'goes' if across == 1 else 'go'} to the other side: the agent is part of the experiment, "
        "not a detail of it."
    )
