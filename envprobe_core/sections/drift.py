"""Section *drift*: does the table go wrong before the actions do?

Source: the scatter of onsets (`fig:drift_appendix`), the unnumbered timing table, the running text. Drift
onset is the first time below accuracy .6, action onset the first step at which the running share of valid
task actions is below .6; only episodes with both count, of all seven policies of the paper pooled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.experiments import DEFAULT_SEEDS, PAPER_POLICIES, PROTOCOLS, Names, load_grid
from envprobe_core.figures import (
    AMBER,
    BLUE,
    GREY,
    POLICY_STYLES,
    STRATA,
    WORLD_TITLES,
    Drawing,
    canvas,
    policy_title,
)
from envprobe_core.markup import Table, Text, bracket, listed, number, percent, signed
from envprobe_core.paper import PaperValue
from envprobe_core.sections.paired import printed
from envprobe_core.statistics import RESAMPLES, clustered_rate
from envprobe_core.worlds import WORLDS

if TYPE_CHECKING:
    import pandas as pd

ORDER = ("combined", "spatial", "procedural")  # as the paper's table has them
COLOURS = {"tooldag": BLUE, "objectstate": AMBER, "graphnav": POLICY_STYLES["random"].colour}
BOTH = ["collapse_onset", "action_onset"]


def load_timing(
    regime: str = "S2",
    protocols: Names = PROTOCOLS,
    profile: str = "typical",
    seeds: str = DEFAULT_SEEDS,
) -> pd.DataFrame:
    """Run the paper's seven policies in the three worlds; see `load_grid`."""
    return load_grid(WORLDS, PAPER_POLICIES, regime, protocols, profile, seeds)


def timing(frame: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Compute the paper's timing table under each protocol.

    Returns:
        One row a protocol and stratum: `total` episodes, `n` with both onsets, `no_drift no_action` without
        one, `mean low high` of action minus drift onset (clustered by seed), `median`, and the shares
        `drift_first action_first tied`; NaN where no episode has both.
    """
    import pandas as pd

    rows = []
    for protocol in dict.fromkeys(frame["protocol"]):
        for stratum in ORDER:
            part = frame[(frame["protocol"] == protocol) & frame["world"].isin(STRATA[stratum])]
            both = part.dropna(subset=BOTH)
            offset = (both["action_onset"] - both["collapse_onset"]).to_numpy(dtype=float)
            mean, low, high = _mean_offset(part, resamples)
            some = len(offset) > 0
            rows.append(
                {
                    "protocol": protocol,
                    "stratum": stratum,
                    "total": len(part),
                    "n": len(both),
                    "no_drift": int(part["collapse_onset"].isna().sum()),
                    "no_action": int(part["action_onset"].isna().sum()),
                    "mean": mean,
                    "low": low,
                    "high": high,
                    "median": float(np.median(offset)) if some else np.nan,
                    "drift_first": float((offset > 0).mean()) if some else np.nan,
                    "action_first": float((offset < 0).mean()) if some else np.nan,
                    "tied": float((offset == 0).mean()) if some else np.nan,
                }
            )
    return pd.DataFrame(rows)


def _mean_offset(part: pd.DataFrame, resamples: int) -> tuple[float, float, float]:
    offset = part["action_onset"] - part["collapse_onset"]
    table = part.assign(offset=offset.fillna(0.0), there=offset.notna().astype(float))
    units = table.groupby(["world", "seed"])[["offset", "there"]].sum()
    if not units["there"].sum():
        return np.nan, np.nan, np.nan
    rate = clustered_rate(
        units["offset"].to_numpy(), units["there"].to_numpy(), units.index.get_level_values("world"),
        resamples=resamples,
    )  # fmt: skip
    return rate.mean, rate.low, rate.high


def show_timing(table: pd.DataFrame) -> Table:
    """Show the timing table, the paper's row first in each stratum."""
    rows = []
    for stratum in ORDER:
        paper = {
            name: printed("timing", stratum, column)
            for name, column in (
                ("mean", "offset_mean_steps"),
                ("median", "offset_median_steps"),
                ("drift_first", "drift_first_pct"),
                ("action_first", "action_first_pct"),
            )
        }
        tied = 100 - paper["drift_first"].value - paper["action_first"].value
        rows.append(
            (
                stratum, "*the paper*", f"{paper['mean'].n:,}", signed(paper["mean"].value), "",
                number(paper["median"].value, 1), f"{paper['drift_first']}%", f"{paper['action_first']}%",
                f"{tied:.1f}%",
            )
        )  # fmt: skip
        for row in table[table["stratum"] == stratum].itertuples():
            rows.append(
                (
                    "", f"`{row.protocol}`", f"{row.n:,} of {row.total:,}", signed(row.mean),
                    bracket(row.low, row.high), number(row.median, 1), percent(row.drift_first, 1),
                    percent(row.action_first, 1), percent(row.tied, 1),
                )
            )  # fmt: skip
    return Table(
        "tab-timing",
        "Action onset minus drift onset, in steps, over the episodes that have both; all seven policies of "
        "the paper are pooled. Intervals (95%) are clustered by seed. The paper's ties are what its two "
        "shares leave.",
        ("stratum", "", "n", "mean", "95% interval", "median", "drift first", "actions first", "tied"),
        rows,
        "llrrlrrrr",
    )


def show_censored(frame: pd.DataFrame) -> Table:
    """Show which policies' episodes enter: per world and protocol, how many have both onsets."""
    protocols = list(dict.fromkeys(frame["protocol"]))
    rows = []
    for policy in dict.fromkeys(frame["policy"]):
        cells = []
        for protocol in protocols:
            for stratum in ("spatial", "procedural"):
                part = frame[
                    (frame["policy"] == policy)
                    & (frame["protocol"] == protocol)
                    & frame["world"].isin(STRATA[stratum])
                ]
                cells.append(f"{len(part.dropna(subset=BOTH))} of {len(part)}")
        rows.append((policy_title(policy), *cells))
    head = [f"`{p}`, {stratum}" for p in protocols for stratum in ("spatial", "procedural")]
    return Table(
        "tab-timing-n",
        "Episodes in which both onsets come, by policy; the others are censored and left out.",
        ("policy", *head),
        rows,
        "l" + "r" * len(head),
    )


def plot_onsets(frame: pd.DataFrame, name: str = "onsets") -> Drawing:
    """Draw action onset against drift onset, episodes of the same pair as one dot of their number."""
    protocols = list(dict.fromkeys(frame["protocol"]))
    strata = ("spatial", "procedural")
    figure, panels = canvas(
        0.7 + 2.0 * len(protocols), rows=len(protocols), columns=2, sharex=True, sharey=True
    )
    horizon = int(frame["horizon"].max())
    said = []
    for protocol, line in zip(protocols, panels, strict=True):
        for stratum, axes in zip(strata, line, strict=True):
            part = frame[(frame["protocol"] == protocol) & frame["world"].isin(STRATA[stratum])]
            both = part.dropna(subset=BOTH)
            for world, own in both.groupby("world", sort=False):
                dots = own.groupby(BOTH).size().reset_index(name="episodes")
                axes.scatter(
                    dots["collapse_onset"], dots["action_onset"], s=6 + 1.6 * dots["episodes"],
                    color=COLOURS[str(world)], alpha=0.55, linewidths=0, label=WORLD_TITLES[str(world)],
                )  # fmt: skip
            axes.plot([0, horizon], [0, horizon], color=GREY, linestyle=(0, (4, 3)), linewidth=1)
            axes.set_xlim(-1, horizon + 1)
            axes.set_ylim(-1, horizon + 1)
            above = int((both["action_onset"] > both["collapse_onset"]).sum())
            said.append(f"{protocol}, {stratum}: {above:,} of {len(both):,} episodes lie above the diagonal")
            axes.set_title(f"{protocol}, {stratum}:\n{above:,} of {len(both):,} above", fontsize=9)
        line[0].set_ylabel("action onset\n(step)")
    for axes in panels[-1]:
        axes.set_xlabel("drift onset τ_d (step)")
    handles = {
        label: handle
        for axes in panels.ravel()
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if handles:
        legend = figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), frameon=False
        )
        for mark in legend.legend_handles:
            mark.set_sizes([40])
    alt = (
        "Action onset against drift onset; the area of a dot is its number of episodes; dashed: the "
        f"diagonal. {listed(said)}."
    )
    return Drawing(figure, name, alt)


def tell_timing(table: pd.DataFrame) -> Text:
    """Say for each protocol and stratum which comes first, on how many episodes."""
    lines = []
    for protocol, part in table.groupby("protocol", sort=False):
        said = []
        for stratum in ("spatial", "procedural"):
            row = part[part["stratum"] == stratum].iloc[0]
            said.append(f"{stratum} episodes: {_first(row)}")
        lines.append(f"* `{protocol}`: {'; '.join(said)}.")
    return Text("\n".join(lines))


def _first(row: pd.Series) -> str:
    if not row["n"]:
        return f"none of {row['total']:,} has both onsets, so that nothing can be said"
    side = (
        "drift comes first on average"
        if row["low"] > 0
        else "actions fail first on average"
        if row["high"] < 0
        else "neither comes clearly first on average"
    )
    return (
        f"{side} ({signed(row['mean'])} steps, {bracket(row['low'], row['high'])}; "
        f"{row['n']:,} of {row['total']:,} episodes)"
    )


def tell_counts(table: pd.DataFrame) -> Text:
    """Set the number of usable episodes beside the paper's, and say where the rest went."""
    lines = []
    for protocol, part in table.groupby("protocol", sort=False):
        row = part[part["stratum"] == "combined"].iloc[0]
        own = [f"{part[part['stratum'] == s]['n'].iloc[0]:,}" for s in ORDER]
        lines.append(
            f"* `{protocol}`: {own[0]} ({own[1]} spatial, {own[2]} procedural) of {row['total']:,}; in "
            f"{row['no_drift']:,} accuracy never falls below the threshold, in {row['no_action']:,} the "
            "share of valid actions never does (some lack both)."
        )
    paper = [f"{_printed(stratum).n:,}" for stratum in ORDER]
    head = f"The paper counts {paper[0]} episodes ({paper[1]} spatial, {paper[2]} procedural). Here:"
    return Text(head + "\n\n" + "\n".join(lines))


def _printed(stratum: str) -> PaperValue:
    value = printed("timing", stratum, "offset_mean_steps")
    if value is None or value.n is None:
        raise LookupError(f"the timing table has no row {stratum}")
    return value


def tell_diagonal() -> Text:
    """Do the paper's arithmetic: which side of the diagonal is drift first, and how many ties it implies."""
    spatial = {
        name: printed("timing", "spatial", f"{name}_pct").value for name in ("drift_first", "action_first")
    }
    tied = 100 - sum(spatial.values())
    return Text(
        "With drift onset across and action onset upwards, an episode in which drift comes first has the "
        "larger number upwards and lies *above* the diagonal; the caption of the paper's figure says below. "
        f"Its spatial shares leave {tied:.1f}% of the episodes on the diagonal itself: in these, table and "
        "actions fail at the same step."
    )
