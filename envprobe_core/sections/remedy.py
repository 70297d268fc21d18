"""Whether the structural score avoids the failure patterns (section *failure cases*)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envprobe_core.markup import Table, Text, bracket, listed, number, signed
from envprobe_core.statistics import RESAMPLES, paired_bootstrap

if TYPE_CHECKING:
    import pandas as pd
from envprobe_core.sections.failures import PATTERNS


def motives(frame: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Test whether (c+d) shows the patterns less often than Simple, as the paper's remedy implies.

    Returns:
        One row a protocol and pattern: `protocol pattern n simple cd difference low high` in points of
        episodes with the pattern, (c+d) minus Simple, paired by seed, resampled within world.
    """
    import pandas as pd

    rows = []
    for protocol in dict.fromkeys(frame["protocol"]):
        for pattern, worlds in PATTERNS.items():
            part = frame[(frame["protocol"] == protocol) & frame["world"].isin(worlds)]
            hits = part.assign(hit=100.0 * (part["full"] > 0))
            sides = hits.pivot(index=["world", "seed"], columns="policy", values="hit")
            if not {"simple", "cd"} <= set(sides.columns):
                continue
            gap = paired_bootstrap(
                (sides["cd"] - sides["simple"]).to_numpy(), sides.index.get_level_values("world"),
                resamples=resamples,
            )  # fmt: skip
            means = sides["simple"].mean(), sides["cd"].mean()
            rows.append((protocol, pattern, gap.n, *means, gap.mean, gap.low, gap.high))
    columns = ["protocol", "pattern", "n", "simple", "cd", "difference", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def show_motives(table: pd.DataFrame) -> Table:
    """Show the share of episodes with each pattern under Simple and (c+d)."""
    rows = [
        (
            f"`{row.protocol}`", row.pattern, str(row.n), f"{number(row.simple, 1)}%",
            f"{number(row.cd, 1)}%", signed(row.difference, 1), bracket(row.low, row.high, 1),
        )
        for row in table.itertuples()
    ]  # fmt: skip
    return Table(
        "tab-motives",
        "Episodes with a failure pattern under EnvProbe-Simple and the structural score (c+d): difference in "
        "points, paired by seed.",
        ("protocol", "pattern", "pairs", "Simple", "(c+d)", "difference", "95% interval"),
        rows,
        "llrrrrl",
    )


def tell_motives(table: pd.DataFrame) -> Text:
    """Say whether the structural score avoids the patterns, protocol by protocol."""
    if table.empty:
        return Text("These runs hold no pair of EnvProbe-Simple and (c+d).")
    lines = []
    for protocol, part in table.groupby("protocol", sort=False):
        said = []
        for row in part.itertuples():
            if row.simple == 0 and row.cd == 0:
                said.append(f"neither policy shows the {row.pattern} pattern on any seed")
                continue
            side = "less often" if row.high < 0 else "more often" if row.low > 0 else "about as often"
            said.append(
                f"(c+d) shows the {row.pattern} pattern {side} "
                f"({signed(row.difference, 1)} points, {bracket(row.low, row.high, 1)})"
            )
        lines.append(f"* `{protocol}`: {listed(said)}.")
    return Text("\n".join(lines))
