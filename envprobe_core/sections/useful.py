"""Section *useful-probes*: how many probes correct an error, per probe fired and per probe allowed.

Source: the paper's two tables of useful-probe rates (`tab:g4_main`, `tab:g4_norm`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims.printed import paper_value
from envprobe_core.experiments import DEFAULT_SEEDS, PROTOCOLS, Names
from envprobe_core.figures import STRATA
from envprobe_core.markup import (
    EMPTY,
    Table,
    Text,
    bracket,
    listed,
    number,
    p_value,
    percent,
    signed,
)
from envprobe_core.sections.paired import Comparison, compare, printed, spending
from envprobe_core.sections.report import (
    as_printed,
    moves,
    spending_table,
    withheld,
)
from envprobe_core.sections.timed import load_timed
from envprobe_core.statistics import RESAMPLES, wilson
from envprobe_core.tables import badge

if TYPE_CHECKING:
    import pandas as pd

SHOWN = ("simple", "random", "periodic", "self-uncertainty", "oracle")
RAW = tuple(
    Comparison(stratum, "simple", "random", f"upr-{stratum}", "tab:g4_main", f"{stratum}: simple vs random")
    for stratum in ("spatial", "combined", "procedural")
)
FLOOR = 0.5


def load_useful(
    regime: str = "S2", protocols: Names = PROTOCOLS, profile: str = "typical", seeds: str = DEFAULT_SEEDS
) -> pd.DataFrame:
    """Run the five policies of the paper's tables in the three worlds, probes timed."""
    return load_timed(STRATA["combined"], SHOWN, regime, protocols, profile, seeds)


def compare_raw(frame: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Compare Simple with Random per probe fired, over pairs in which both fired.

    Returns:
        The columns of `paired.compare`, and `p_greater` (one-sided) and `floor_raw floor_adjusted
        floor_wilson`: lower ends of Simple's own rate over those pairs, from the 95% interval of the
        bootstrap, from that interval adjusted for six comparisons, and from Wilson's for the pooled probes.
    """
    import pandas as pd

    from envprobe_core.statistics import clustered_rate, mean_of_ratios

    found = compare(frame, RAW, resamples)
    more = []
    for row in found.itertuples():
        chosen = frame[
            (frame["protocol"] == row.protocol)
            & frame["world"].isin(_worlds(row.stratum))
            & (frame["probes"] > 0)
        ]
        sides = [
            chosen[chosen["policy"] == name].sort_values(["world", "seed"]) for name in ("simple", "random")
        ]
        pairs = sides[0].merge(sides[1], on=["world", "seed"], suffixes=("", "_random"))
        if pairs["world"].value_counts().min() < 2 or pairs.empty:
            more.append(dict.fromkeys(("p_greater", "floor_raw", "floor_adjusted", "floor_wilson"), np.nan))
            continue
        worlds = pairs["world"].to_numpy(dtype=str)
        gap = pairs["useful"] / pairs["probes"] - pairs["useful_random"] / pairs["probes_random"]
        ones = np.ones(len(gap))
        test = clustered_rate(gap.to_numpy(), ones, worlds, family=6, resamples=resamples)
        own = mean_of_ratios(
            pairs["useful"].to_numpy(), pairs["probes"].to_numpy(), worlds, family=6, resamples=resamples
        )
        pooled = wilson(int(pairs["useful"].sum()), int(pairs["probes"].sum()))
        more.append(
            {
                "p_greater": test.p_greater,
                "floor_raw": own.low,
                "floor_adjusted": own.low_adjusted,
                "floor_wilson": pooled.low,
            }
        )
    return pd.concat([found, pd.DataFrame(more)], axis=1)


def _worlds(group: str) -> tuple[str, ...]:
    return STRATA.get(group, (group,))


def show_raw(numbers: pd.DataFrame) -> Table:
    """Show useful probes per probe fired, over pairs in which both policies fired."""
    head = (
        "stratum", "source", "$n$", "Simple", "Random", r"$\hat\Delta$", "95% interval", "adjusted",
        "$p$, two-sided", "$p$, one-sided", "lower ends", "verdict",
    )  # fmt: skip
    rows = []
    for comparison in RAW:
        name = "useful_probe_rate"
        method, reference, gap, p, floor = (
            printed("tab:g4_main", comparison.row, column)
            for column in (
                f"method_{name}",
                f"reference_{name}",
                f"{name}_difference_pct",
                f"{name}_p",
                f"method_{name}_lcb",
            )
        )
        span = EMPTY if gap is None else bracket(gap.low, gap.high, 1)
        count = EMPTY if gap is None else str(gap.n)
        theirs = [as_printed(method), as_printed(reference), as_printed(gap, sign=True), span, EMPTY, EMPTY]
        rows.append(
            [
                f"**{comparison.stratum}**",
                "*printed*",
                count,
                *theirs,
                as_printed(p),
                as_printed(floor),
                EMPTY,
            ]
        )
        rows.extend(
            [
                "",
                f"`{row.protocol}`",
                str(row.n),
                number(row.method, 3),
                number(row.reference, 3),
                signed(row.estimate, 1),
                bracket(row.low, row.high, 1),
                bracket(row.low_adjusted, row.high_adjusted, 1),
                p_value(row.p),
                p_value(row.p_greater),
                f"{number(row.floor_raw, 3)} / {number(row.floor_adjusted, 3)} / "
                f"{number(row.floor_wilson, 3)}",
                badge(row.verdict),
            ]
            for row in numbers[numbers["claim"] == comparison.claim].itertuples()
        )
    caption = (
        "Raw useful-probe rate: mean over episodes of useful probes per probe fired, over the $n$ pairs "
        "in which "
        "both policies fired. *One-sided*: that Simple's rate is higher. *Lower ends* of Simple's rate: "
        "bootstrap "
        "95% / bootstrap adjusted for six comparisons / Wilson on the pooled probes."
    )
    return Table("tab-upr-raw", caption, head, rows, "llrrrrrrrrrl")


def show_spending(frame: pd.DataFrame, stratum: str) -> Table:
    """Show on what each policy spends its probes in one stratum."""
    return spending_table(
        spending(frame, SHOWN, stratum),
        f"tab-upr-spending-{stratum}",
        f"What the probes found ({stratum}): probes an episode, their mean step, and shares of all probes "
        "fired. Probes of an unknown field and of a wrong one are the useful ones.",
    )


def tell_raw(numbers: pd.DataFrame) -> Text:
    """Say how Simple's rate compares with Random's, on how many pairs, and whether it clears one half."""
    lines = []
    for comparison in RAW:
        part = numbers[numbers["claim"] == comparison.claim]
        told = listed(
            f"{moves(row)} points under `{row.protocol}` ({row.n} pairs"
            + (f", {row.left_out} left out for want of a probe)" if row.left_out else ")")
            for row in part.itertuples()
        )
        gap = paper_value("tab:g4_main", comparison.row, "useful_probe_rate_difference_pct")
        lines.append(
            f"* *{comparison.stratum.capitalize()}.* From Random to Simple the share of useful probes "
            f"{told}. "
            f"The paper prints {signed(gap.value, 1)} on {gap.n} pairs."
        )
    spatial = numbers[numbers["claim"] == RAW[0].claim]
    clear = [row for row in spatial.itertuples() if row.floor_adjusted >= FLOOR]
    names = listed(f"`{row.protocol}` ({number(row.floor_adjusted, 3)})" for row in clear)
    lines.append(
        f"* *One half.* The adjusted lower end of Simple's spatial rate clears {percent(FLOOR)} under "
        f"{names}."
        if clear
        else f"* *One half.* Under no protocol does the adjusted lower end of Simple's spatial rate clear "
        f"{percent(FLOOR)}."
    )
    return Text("\n".join(lines))


def tell_spending(frame: pd.DataFrame, stratum: str) -> Text:
    """Say why Simple's probes are useful or not: what it held about the fields it asked for."""
    spent = spending(frame, ("simple",), stratum)
    lines = []
    for row in spent.itertuples():
        line = (
            f"* `{row.protocol}`, {stratum}: of Simple's probes {percent(row.unknown)} meet a field it "
            f"knew nothing "
            f"about, {percent(row.wrong)} a wrong belief, and {percent(1 - row.unknown - row.wrong)} "
            f"confirm what it "
            f"held; {percent(row.repeated)} ask for a field again."
        )
        if withheld([row.protocol]):
            line += " No answer is delivered, so a *useful* probe repairs nothing here."
        lines.append(line)
    return Text("\n".join(lines))
