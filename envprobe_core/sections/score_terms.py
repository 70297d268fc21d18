"""What EnvProbe-Simple's probes were fired for, over all seeds (section *score*)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.cells import Cell, make_cell
from envprobe_core.experiments import DEFAULT_SEEDS, PROTOCOLS, Names, find_protocols, read_seeds
from envprobe_core.figures import (
    WORLD_TITLES,
)
from envprobe_core.markup import Table, Text, bracket, number, percent
from envprobe_core.policies import TERMS
from envprobe_core.statistics import RESAMPLES, clustered_rate
from envprobe_core.witness import Witnessed, witness
from envprobe_core.worlds import WORLDS

if TYPE_CHECKING:
    import pandas as pd
from envprobe_core.sections.score import TERM_NAMES


def load_scores(
    regime: str = "S2",
    protocols: Names = PROTOCOLS,
    profile: str = "typical",
    seeds: str = DEFAULT_SEEDS,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Measure what EnvProbe-Simple's probes were fired for, over all seeds.

    Returns:
        One row a protocol and world: `probes`; the mean of each term at the probed field (`c s u d`);
        `structure low high`, the share of probes whose c + d alone reaches the threshold (clustered by
        seed); `early`, the share fired among the first 2B steps; `useful`, the share that corrects a belief.
    """
    import pandas as pd

    chosen, rows = read_seeds(seeds), []
    for protocol in find_protocols(protocols):
        for world in WORLDS:
            cell = make_cell(world, "simple", regime, protocol, profile)
            rows.append(
                _fired(witness(cell, cell.default_seeds() if chosen is None else chosen), cell, resamples)
            )
    return pd.DataFrame(rows)


def _fired(seen: Witnessed, cell: Cell, resamples: int) -> dict[str, object]:
    recording, count = seen.trajectory, len(seen.seeds)
    row, step = np.nonzero(recording.probe >= 0)
    terms = seen.terms[row, step, recording.probe[row, step]]
    structure = terms[:, TERMS.index("c")] + terms[:, TERMS.index("d")] >= cell.threshold_in_force
    fired = np.bincount(row, minlength=count)
    some = len(row) > 0
    nothing = np.nan, np.nan, np.nan
    if some and count > 1:
        rate = clustered_rate(np.bincount(row, structure, count), fired, resamples=resamples)
        ends = rate.mean, rate.low, rate.high
    else:
        ends = (float(structure.mean()), np.nan, np.nan) if some else nothing
    means = terms.mean(axis=0) if some else np.full(len(TERMS), np.nan)
    return (
        {"protocol": cell.protocol.name, "world": cell.world, "episodes": count, "probes": len(row)}
        | dict(zip(TERMS, means.tolist(), strict=True))
        | dict(zip(("structure", "low", "high"), ends, strict=True))
        | {"early": float((step < 2 * cell.budget_in_force).mean()) if some else np.nan}
        | {"useful": float(recording.useful[row, step].mean()) if some else np.nan}
    )


def show_scores(table: pd.DataFrame) -> Table:
    """Show what the probes of EnvProbe-Simple were fired for."""
    rows = [
        (
            f"`{row.protocol}`", WORLD_TITLES[row.world], f"{row.probes:,}",
            *(number(getattr(row, term)) for term in TERMS), percent(row.structure),
            bracket(100 * row.low, 100 * row.high, 1), percent(row.early), percent(row.useful),
        )
        for row in table.itertuples()
    ]  # fmt: skip
    return Table(
        "tab-fired",
        "What EnvProbe-Simple's probes were fired for: mean of each term at the probed field; the share of "
        "probes for which $c + d$ alone reaches the threshold (95% interval in percent, clustered by seed); "
        "the share fired in the first $2B$ steps; the share whose answer corrects a belief.",
        ("protocol", "world", "probes", *TERMS, "c + d suffices", "95% interval", "first 2B steps", "useful"),
        rows,
        "ll" + "r" * 6 + "lrr",
    )


def tell_scores(table: pd.DataFrame) -> Text:
    """Say how early the budget goes, how much of it structure alone decides, and what it corrects."""
    lines = []
    for protocol, part in table.groupby("protocol", sort=False):
        total = part["probes"].sum()
        if not total:
            lines.append(f"* `{protocol}`: no probe is fired.")
            continue
        weight = part["probes"].to_numpy()
        share = {
            name: float(np.average(part[name].fillna(0.0), weights=weight))
            for name in ("structure", "early", "useful")
        }
        largest = max(TERMS, key=lambda term: float(np.average(part[term].fillna(0.0), weights=weight)))
        lines.append(
            f"* `{protocol}`: {percent(share['early'])} of {total:,} probes fall into the first $2B$ steps; "
            f"for {percent(share['structure'])} of them $c + d$ alone reaches the threshold; the largest "
            f"term on average is {largest} ({TERM_NAMES[largest]}); "
            f"{percent(share['useful'])} correct a belief."
        )
    return Text("\n".join(lines))
