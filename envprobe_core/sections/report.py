"""Tables and phrases that the sections of results share; every word of direction is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from envprobe_core.analyses.printed_p import as_printed
from envprobe_core.figures import policy_title
from envprobe_core.markup import (
    EMPTY,
    Table,
    Text,
    code,
    number,
    percent,
    signed,
)
from envprobe_core.plots import PRINTED
from envprobe_core.protocols import parse_protocol
from envprobe_core.sections.paired import PRIMARY_REGIME

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

PRINTED_POINT = {name: value for name, value in PRINTED.items() if name != "elinewidth"}  # no interval
HEAD = (
    "comparison", "source", "method", "reference", r"$\hat\Delta$", "95% interval", "adjusted", "$p$",
    "ours − printed", "verdict",
)  # fmt: skip


def comparison_table(
    numbers: pd.DataFrame,
    comparisons: Sequence[Comparison],
    columns: tuple[str, str, str, str],
    label: str,
    caption: str,
    *,
    level_digits: int = 3,
) -> Table:
    """Set the paper's row and ours under each protocol below each other.

    Args:
        numbers: from `paired.compare`, of these comparisons.
        comparisons: the rows.
        columns: where the paper prints method, reference, difference and p (columns of tables.csv).
        label: the table's label.
        caption: the table's caption.
        level_digits: digits of the two levels.
    """
    rows = []
    for comparison in comparisons:
        part = numbers[numbers["claim"] == comparison.claim]
        method, reference, difference, p = (
            printed(comparison.source, comparison.row, column) for column in columns
        )
        title = f"{comparison.stratum}: {policy_title(comparison.arm)} − {policy_title(comparison.reference)}"
        gap = EMPTY if difference is None else bracket(difference.low, difference.high)
        theirs = (as_printed(method), as_printed(reference), as_printed(difference, sign=True), gap, EMPTY)
        rows.append([f"**{title}**", "*printed*", *theirs, as_printed(p), EMPTY, EMPTY])
        rows.extend(
            [
                f"n = {row.n}",
                f"`{row.protocol}`",
                number(row.method, level_digits),
                number(row.reference, level_digits),
                signed(row.estimate),
                bracket(row.low, row.high),
                bracket(row.low_adjusted, row.high_adjusted),
                p_value(row.p),
                signed(row.difference),
                badge(row.verdict),
            ]
            for row in part.itertuples()
        )
    return Table(label, caption, HEAD, rows, "llrrrrrrrl")


def spending_table(spent: pd.DataFrame, label: str, caption: str) -> Table:
    """Show when and on what each policy spends its probes, from `paired.spending`."""
    head = ("protocol", "policy", "probes", "mean step", "in the first $B$ steps", "field was unknown",
            "field was known and wrong", "same field again")  # fmt: skip
    rows = [
        [
            f"`{row.protocol}`",
            policy_title(row.policy),
            number(row.probes),
            number(row.probe_step, 1),
            *(percent(getattr(row, name)) for name in ("early", "unknown", "wrong", "repeated")),
        ]
        for row in spent.itertuples()
    ]
    return Table(label, caption, head, rows, "llrrrrrr")


def moves(row: object) -> str:
    """Say where a difference lies, by its adjusted interval: rises, falls, or cannot be told from zero.

    Args:
        row: with `estimate low_adjusted high_adjusted`.
    """
    estimate: float = row.estimate  # type: ignore[attr-defined]
    if row.low_adjusted > 0:  # type: ignore[attr-defined]
        return f"rises by {number(estimate)}"
    if row.high_adjusted < 0:  # type: ignore[attr-defined]
        return f"falls by {number(-estimate)}"
    return f"cannot be told from unchanged ({signed(estimate)})"


def rows_from_top(axes: Axes, labels: Sequence[str]) -> None:
    """Label the rows of a panel from top to bottom."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)


def withheld(protocols: Sequence[str]) -> list[str]:
    """Return the protocols under which a probe's answer never reaches the agent."""
    return [name for name in protocols if parse_protocol(name).answer == "withheld"]


def tell_setting(frame: pd.DataFrame, *, section: str = "page") -> Text:
    """Say whose numbers a page shows: the simulated agent, its profile, the regime, the episodes.

    Args:
        frame: one row an episode.
        section: what the reader is looking at.
    """
    profile, regime = str(frame["profile"].iloc[0]), str(frame["regime"].iloc[0])
    count = int(frame.groupby(["protocol", "world", "policy", "regime"]).size().max())
    text = (
        f"The agent on this {section} is a simulation with the profile `{profile}`; no language model was "
        f"called. Each cell holds up to {count} episodes of regime {regime}, under "
        f"{code(dict.fromkeys(frame['protocol']))}."
    )
    if regime != PRIMARY_REGIME:
        text += (
            f" The paper prints its numbers for {PRIMARY_REGIME}; its claims are asked of {regime} here, so "
            "that a difference from the paper's number is one of regime as well."
        )
    return Text(text)
