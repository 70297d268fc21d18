"""Section *collapse*: how accuracy runs through an episode, and when it falls below the threshold.

Source: the figure of accuracy trajectories (`fig:collapse_curves`) and the delay in the running text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.experiments import (
    DEFAULT_SEEDS,
    PROTOCOLS,
    Names,
    load_grid,
    names,
)
from envprobe_core.figures import WORLD_TITLES, policy_title
from envprobe_core.markup import (
    Table,
    Text,
    bracket,
    number,
    percent,
    signed,
    span,
)
from envprobe_core.metrics import COLLAPSE
from envprobe_core.protocols import parse_protocol
from envprobe_core.sections.paired import Comparison, compare, printed
from envprobe_core.statistics import RESAMPLES, mean_interval, paired_bootstrap
from envprobe_core.worlds import WORLDS

if TYPE_CHECKING:
    import pandas as pd

SHOWN = "no-probe periodic simple cd oracle"
DELAY = Comparison(
    "procedural",
    "simple",
    "periodic",
    "collapse-delay",
    "sec:results:secondary",
    "procedural: simple vs periodic",
)
PRINTED = {"simple": "method_collapse_onset", "periodic": "reference_collapse_onset"}
COMPARED = ("simple", "periodic", "placebo")  # run in any case


def load_onsets(
    policies: Names = SHOWN,
    regime: str = "S2",
    protocols: Names = PROTOCOLS,
    profile: str = "typical",
    seeds: str = DEFAULT_SEEDS,
) -> pd.DataFrame:
    """Run the policies, and those of `COMPARED` in any case, in the three worlds; see `load_grid`."""
    chosen = tuple(dict.fromkeys((*names(policies), *COMPARED)))
    return load_grid(WORLDS, chosen, regime, protocols, profile, seeds)


def onsets(frame: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Average the collapse onset of each world and policy.

    Returns:
        One row a protocol, world and policy: `mean low high` over the episodes that collapse, `n`, `censored`
        (never below), `at_once` (share of all with onset 0 or 1).
    """
    import pandas as pd

    rows = []
    for key, part in frame.groupby(["protocol", "world", "policy"], sort=False):
        onset = part["collapse_onset"].to_numpy(dtype=float)
        there = onset[~np.isnan(onset)]
        mean = mean_interval(there, resamples=resamples) if len(there) else (np.nan,) * 3
        rows.append(
            (*key, *mean[:3], len(onset), len(onset) - len(there), float((there <= 1).sum() / len(onset)))
        )
    columns = ["protocol", "world", "policy", "mean", "low", "high", "n", "censored", "at_once"]
    return pd.DataFrame(rows, columns=columns)


def show_onsets(table: pd.DataFrame, world: str = "tooldag") -> Table:
    """Show the onsets of one world, every protocol and policy, beside the two that the paper prints."""
    rows = []
    for row in table[table["world"] == world].itertuples():
        paper = printed(DELAY.source, DELAY.row, PRINTED.get(row.policy, ""))
        rows.append(
            (
                f"`{row.protocol}`", policy_title(row.policy), number(row.mean), bracket(row.low, row.high),
                f"{row.censored} of {row.n}", percent(row.at_once),
                str(paper) if paper and world == "tooldag" else "",
            )
        )  # fmt: skip
    return Table(
        f"tab-onset-{world}",
        f"Collapse onset in {WORLD_TITLES[world]}, in steps: mean over the episodes that collapse, its 95% "
        "interval, how many never do (*censored*), and which share is below the threshold by step 1.",
        ("protocol", "policy", "onset", "95% interval", "censored", "by step 1", "the paper's onset"),
        rows,
        "llrlrrr",
    )


def delays(frame: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Test the delay of collapse on tools, and again with censored episodes counted as H + 1 (ours).

    Returns:
        One row a protocol: what `paired.compare` returns; `all_n all_mean all_low all_high` of the difference
        over all pairs, an onset that never comes set to H + 1; `as_placebo`, on how many seeds Simple
        collapses at the very step at which its Placebo does, which is told nothing.
    """
    table = compare(frame, [DELAY], resamples)
    rows = []
    for protocol in table["protocol"]:
        part = frame[(frame["protocol"] == protocol) & (frame["world"] == "tooldag")]
        late = part["collapse_onset"].fillna(part["horizon"] + 1)
        sides = part.assign(onset=late).pivot(index="seed", columns="policy", values="onset")
        pairs = (sides["simple"] - sides["periodic"]).dropna().to_numpy(dtype=float)
        whole = paired_bootstrap(pairs, resamples=resamples)
        same = int((sides["simple"] == sides["placebo"]).sum())
        rows.append((whole.n, whole.mean, whole.low, whole.high, same))
    for place, column in enumerate(("all_n", "all_mean", "all_low", "all_high", "as_placebo")):
        table[column] = [row[place] for row in rows]
    return table


def show_delays(table: pd.DataFrame) -> Table:
    """Show Simple's delay over Periodic under every protocol, both ways of treating censored episodes."""
    rows = [
        (
            f"`{row.protocol}`", number(row.reference), number(row.method), signed(row.estimate),
            bracket(row.low, row.high), number(row.n, 0), str(row.left_out), signed(row.all_mean),
            bracket(row.all_low, row.all_high),
        )
        for row in table.itertuples()
    ]  # fmt: skip
    paper = [printed(DELAY.source, DELAY.row, PRINTED[policy]) for policy in ("periodic", "simple")]
    change = printed(DELAY.source, DELAY.row, "collapse_onset_difference")
    delay = signed(change.value) if change else ""
    rows.append(("*the paper*", *(str(v) if v else "" for v in paper), delay, "", "", "", "", ""))
    return Table(
        "tab-delay",
        "Delay of collapse in ToolDAGWorld, EnvProbe-Simple minus Periodic, in steps: over the seeds on "
        "which both collapse, and (ours) over all seeds with a collapse that never comes counted as $H + 1$.",
        ("protocol", "Periodic", "Simple", "delay", "95% interval", "pairs", "left out", "delay, all seeds",
         "95% interval, all"),
        rows,
        "lrrrlrrrl",
    )  # fmt: skip


def tell_delays(table: pd.DataFrame) -> Text:
    """Say under which protocols Simple collapses later, and what censoring does to the answer."""
    lines = []
    for row in table.itertuples():
        if row.n is None or np.isnan(row.estimate):
            lines.append(f"* `{row.protocol}`: not testable: {row.reason}")
            continue
        other = _side(row.all_low, row.all_high)
        total = int(row.n + row.left_out)
        text = f"* `{row.protocol}`: over the {row.n:.0f} seeds on which both collapse, "
        if row.method == row.reference == 0:  # means of onsets, none of which is negative
            text += "both collapse at step 0 in every pair."
        else:
            side = _side(row.low, row.high)
            text += f"Simple does so {side} ({signed(row.estimate)} steps, {span(row.low, row.high)})."
        if row.left_out:
            text += (
                f" {row.left_out} of {total} pairs are left out because a side never falls below {COLLAPSE}; "
                f"counting *never* as $H + 1$, Simple collapses {other} ({signed(row.all_mean)} steps, "
                f"{span(row.all_low, row.all_high)})."
            )
        same = "all" if row.as_placebo == row.all_n else f"{row.as_placebo} of {row.all_n}"
        text += f" On {same} seeds its onset is that of its Placebo, which is told nothing."
        lines.append(text)
    return Text("\n".join(lines))


def _side(low: float, high: float) -> str:
    return "later" if low > 0 else "earlier" if high < 0 else "neither clearly later nor clearly earlier"


def tell_saturation(table: pd.DataFrame) -> Text:
    """Say whether spatial episodes start below the threshold, which the paper gives as its reason."""
    lines = []
    for protocol, part in table.groupby("protocol", sort=False):
        spatial = part[part["world"] != "tooldag"]
        share = float(np.average(spatial["at_once"], weights=spatial["n"]))
        never = float(spatial["censored"].sum() / spatial["n"].sum())
        known = parse_protocol(str(protocol)).start == "gold"
        reason = (
            "the table starts equal to the truth and has to decay first"
            if known
            else "what the first observation does not show is unknown, and unknown counts as wrong"
        )
        lines.append(
            f"* `{protocol}`: {percent(share)} of the spatial episodes are below {COLLAPSE} by step 1 and "
            f"{percent(never)} never fall below it; {reason}."
        )
    return Text("\n".join(lines))
