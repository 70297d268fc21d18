"""Useful probes per probe allowed: the second table of section *useful-probes* (`tab:g4_norm`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims.printed import paper_values
from envprobe_core.figures import POLICY_STYLES, WORLD_TITLES, Drawing, canvas, interval, policy_title, styled
from envprobe_core.markup import Table, Text, bracket, listed, number, signed
from envprobe_core.sections.paired import levels
from envprobe_core.sections.report import PRINTED_POINT, rows_from_top
from envprobe_core.sections.useful import SHOWN
from envprobe_core.statistics import RESAMPLES

if TYPE_CHECKING:
    import pandas as pd

GROUPS = ("graphnav", "objectstate", "spatial", "procedural")


def load_normalized(frame: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Average useful probes over the budget, for every policy, group and protocol.

    Returns:
        The columns of `paired.levels`, and `printed`: the paper's number, NaN where it prints none.
    """
    found = levels(frame, SHOWN, GROUPS, "useful/budget", resamples)
    theirs = {v.row: v.value for v in paper_values() if v.source == "tab:g4_norm"}
    found["printed"] = [
        theirs.get(f"{group}: {policy}", np.nan)
        for group, policy in zip(found["stratum"], found["policy"], strict=True)
    ]
    return found


def show_normalized(rates: pd.DataFrame) -> Table:
    """Show useful probes per probe allowed."""
    protocols = list(dict.fromkeys(rates["protocol"]))
    rows = []
    for group in GROUPS:
        for policy in SHOWN:
            part = rates[(rates["stratum"] == group) & (rates["policy"] == policy)].set_index("protocol")
            theirs = float(part["printed"].iloc[0])
            row = [f"**{_title(group)}**" if policy == SHOWN[0] else "", policy_title(policy), number(theirs)]
            for protocol in protocols:
                own = part.loc[protocol]
                row.append(f"{number(own['value'])} {bracket(own['low'], own['high'])}")
                row.append(signed(own["value"] - theirs))
            rows.append(row)
    head = ["world", "policy", "*printed*"]
    for protocol in protocols:
        head += [f"`{protocol}`", "ours − printed"]
    caption = (
        "Normalized useful-probe rate: useful probes over the budget $B$, mean over all episodes, with 95% "
        "intervals in brackets."
    )
    return Table("tab-upr-normalized", caption, head, rows, "llr" + "rr" * len(protocols))


def _title(group: str) -> str:
    return WORLD_TITLES.get(group, f"{group} pool" if group == "spatial" else group)


@styled
def plot_normalized(rates: pd.DataFrame) -> Drawing:
    """Draw normalized rates, a panel a group and protocol, with the paper's numbers."""
    protocols = list(dict.fromkeys(rates["protocol"]))
    figure, panels = canvas(6.6, rows=len(GROUPS), columns=len(protocols), sharex=True, sharey=True)
    told = []
    for row, group in enumerate(GROUPS):
        for column, protocol in enumerate(protocols):
            axes = panels[row, column]
            part = rates[(rates["stratum"] == group) & (rates["protocol"] == protocol)]
            for place, point in enumerate(part.itertuples()):
                style = POLICY_STYLES[point.policy].dot()
                interval(axes, point.value, point.low, point.high, place, **style)
                axes.plot([point.printed], [place], **PRINTED_POINT)
            axes.set_xlim(-0.04, 1.04)
            axes.grid(axis="x")
            axes.set_title(protocol if row == 0 else "", loc="left")
            if column == 0:
                axes.set_ylabel(_title(group), fontsize=9)
            values = ", ".join(f"{policy_title(p.policy)} {p.value:.2f}" for p in part.itertuples())
            told.append(f"{_title(group)} under {protocol}: {values}")
    rows_from_top(panels[0, 0], [policy_title(name) for name in SHOWN])
    figure.supxlabel("useful probes per probe allowed", fontsize=10)
    alt = f"Useful probes over the budget by policy, world and protocol. {'; '.join(told)}."
    return Drawing(figure, "upr-normalized", alt)


def tell_normalized(rates: pd.DataFrame, group: str = "spatial") -> Text:
    """Say how policies order by useful probes per budget, and how far the paper's numbers are."""
    lines = []
    for protocol in dict.fromkeys(rates["protocol"]):
        part = rates[rates["protocol"] == protocol]
        order = part[part["stratum"] == group].sort_values("value", kind="stable")
        ranks = " < ".join(f"{policy_title(r.policy)} {number(r.value)}" for r in order.itertuples())
        gaps = (part["value"] - part["printed"]).abs()
        far = part.loc[gaps.idxmax()]
        lines.append(
            f"* `{protocol}`, {group}: {ranks}. Over all {len(part)} printed rates the mean distance to "
            f"ours is "
            f"{number(gaps.mean())}; the largest is {_title(far['stratum'])}, {policy_title(far['policy'])} "
            f"({number(far['value'])} against {number(far['printed'])})."
        )
    theirs = rates[rates["protocol"] == rates["protocol"].iloc[0]]
    theirs = theirs[theirs["stratum"] == group].sort_values("printed", kind="stable")
    ranks = " < ".join(f"{policy_title(r.policy)} {number(r.printed)}" for r in theirs.itertuples())
    oracle = theirs.set_index("policy")["printed"]
    above = [policy_title(name) for name in theirs["policy"] if oracle[name] > oracle["oracle"]]
    last = f"* The paper, {group}: {ranks}."
    if above:
        verb = "lies" if len(above) == 1 else "lie"
        last += (
            f" By its own numbers {listed(above)} {verb} above the oracle, which probes nothing but errors."
        )
    lines.append(last)
    return Text("\n".join(lines))
