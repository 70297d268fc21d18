"""Section *stress*: do gain, cost and order of policies depend on how hard the world is?

Source: the paper's stress regimes (`sec:setup`), S1 to S3, and the one-at-a-time changes R1 to R6 around S2
that its public code names; R5 (clean observations) completes the set and is ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.cells import make_cell
from envprobe_core.experiments import DEFAULT_SEEDS, PROTOCOLS, Names, find_protocols, read_seeds, run_frame
from envprobe_core.figures import (
    BLUE,
    GREEN,
    INK,
    STRATA,
    VERMILLION,
    WORLD_TITLES,
    Drawing,
    canvas,
    interval,
    styled,
)
from envprobe_core.markup import EMPTY, Table, Text, bracket, code, counted, listed, signed
from envprobe_core.regimes import REGIMES
from envprobe_core.sections.paired import DEPLOYABLE
from envprobe_core.sections.report import rows_from_top
from envprobe_core.statistics import RESAMPLES, clustered_rate

if TYPE_CHECKING:
    import pandas as pd

SHOWN = (*DEPLOYABLE, "cd")
WORLDS = STRATA["combined"]
MEASURES = {"accuracy": "accuracy", "success": "task success", "useful/probes": "useful-probe rate"}
WORLD_MARKS = {"tooldag": (BLUE, "o"), "objectstate": (VERMILLION, "D"), "graphnav": (GREEN, "s")}
ARM, REFERENCE = "simple", "periodic"
CLAIMED = ("S1", "S2", "S3")  # where claims ask for c+d


def load_stress(
    regime: str = "S2", protocols: Names = PROTOCOLS, profile: str = "typical", seeds: str = DEFAULT_SEEDS
) -> pd.DataFrame:
    """Run the deployable policies in every regime, and c+d where the paper mixes all stresses.

    Args:
        regime: whose episodes `seeds` are; the other regimes run on their own seeds.
        protocols: names.
        profile: name of the agent profile.
        seeds: `FIRST:PAST`, or `default`.

    Returns:
        One row an episode, columns as in `experiments.load_grid`.
    """
    chosen = read_seeds(seeds)
    cells = [
        make_cell(world, policy, level, protocol, profile)
        for protocol in find_protocols(protocols)
        for level in REGIMES
        for world in WORLDS
        for policy in (SHOWN if level in CLAIMED else DEPLOYABLE)
    ]
    own = [cell.default_seeds() if chosen is None or cell.regime.name != regime else chosen for cell in cells]
    return run_frame(cells, own)


def find_gains(frame: pd.DataFrame, reference: str = "S2", resamples: int = RESAMPLES) -> pd.DataFrame:
    """Measure what Simple gains over Periodic, in every regime, world and protocol.

    Args:
        frame: from `load_stress`.
        reference: the regime that others are compared with.
        resamples: bootstrap resamples.

    Returns:
        One row a protocol, world, regime and measure: `protocol world regime measure n gain low high` in
        points with the 95% interval, and for accuracy `shift shift_low shift_high`: the gain minus that in
        the reference regime, with an interval adjusted for the number of other regimes. NaN where too few
        episodes carry a value.
    """
    import pandas as pd

    from envprobe_core.compare import compare

    strata, by = {world: (world,) for world in WORLDS}, ("protocol", "regime")
    found = []
    for measure in MEASURES:
        gains = compare(frame, ARM, REFERENCE, measure, by=by, strata=strata, resamples=resamples)
        gains = gains.rename(columns={"stratum": "world", "gain_low": "low", "gain_high": "high"})
        found.append(gains.assign(measure=measure, n=gains["n"].where(gains["gain"].notna(), 0)))
    order = [frame["protocol"].unique(), WORLDS, REGIMES, MEASURES]
    keys = pd.MultiIndex.from_product(order, names=["protocol", "world", "regime", "measure"])
    table = pd.concat(found).set_index(list(keys.names))[["n", "gain", "low", "high"]].reindex(keys)
    table["n"] = table["n"].fillna(0).astype(int)
    shifts = _shifts(frame, reference, resamples)
    table[["shift", "shift_low", "shift_high"]] = [shifts.get(key, (np.nan,) * 3) for key in keys]
    return table.reset_index()


def _shifts(frame: pd.DataFrame, reference: str, resamples: int) -> dict[tuple[str, ...], tuple[float, ...]]:
    """Return the gain in accuracy minus that in the reference regime, where both can be told.

    Returns:
        (protocol, world, regime, measure) -> estimate and ends of its adjusted interval, in points.
    """
    from envprobe_core.claims.episodes import MIN_UNITS, Episodes, NotTestable, draw_sample

    shifts = {}
    for protocol, part in frame.groupby("protocol", sort=False):
        episodes = Episodes(part)
        for world in WORLDS:
            gaps = {}
            for regime in REGIMES:
                try:
                    pairs = draw_sample(episodes, "accuracy", regime, (world,), (ARM,), REFERENCE)
                except NotTestable:
                    continue
                if len(pairs.top) >= MIN_UNITS:
                    gaps[regime] = 100 * pairs.top[:, 0]
            there = gaps.pop(reference, None)
            for regime, here in gaps.items() if there is not None else ():
                both, first = np.concatenate([here, there]), np.repeat([True, False], [len(here), len(there)])
                moved = clustered_rate(
                    both, np.ones(len(both)), first=first, family=len(REGIMES) - 1, resamples=resamples
                )
                ends = (moved.mean, moved.low_adjusted, moved.high_adjusted)
                shifts[protocol, world, regime, "accuracy"] = ends
    return shifts


def show_costs(gains: pd.DataFrame) -> Table:
    """Show what Simple gains over Periodic in success and in the useful-probe rate."""
    protocols = list(dict.fromkeys(gains["protocol"]))
    index = gains.set_index(["measure", "world", "regime", "protocol"])
    rows = []
    for world in WORLDS:
        for regime in REGIMES:
            row = [f"**{WORLD_TITLES[world]}**" if regime == next(iter(REGIMES)) else "", f"`{regime}`"]
            for protocol in protocols:
                for measure in ("success", "useful/probes"):
                    own = index.loc[(measure, world, regime, protocol)]
                    gap = f"{signed(own['gain'], 1)} {bracket(own['low'], own['high'], 1)}"
                    row.append(gap if own["n"] else EMPTY)
            rows.append(row)
    head = ["world", "regime"]
    for protocol in protocols:
        head += [f"`{protocol}`, success", "useful probes"]
    caption = (
        "EnvProbe-Simple minus Periodic in task success and in the raw useful-probe rate, points, with 95% "
        "intervals."
    )
    return Table("tab-stress-costs", caption, head, rows, "ll" + "rr" * len(protocols))


@styled
def plot_gains(gains: pd.DataFrame, measure: str = "accuracy") -> Drawing:
    """Draw the gain of Simple over Periodic in one measure: a row a regime, a mark a world."""
    protocols = list(dict.fromkeys(gains["protocol"]))
    figure, panels_ = canvas(5.2, columns=len(protocols), sharex=True, sharey=True)
    told = []
    for axes, protocol in zip(panels_[0], protocols, strict=True):
        part = gains[(gains["protocol"] == protocol) & (gains["measure"] == measure)]
        for shift, (world, (colour, marker)) in zip((-0.22, 0.0, 0.22), WORLD_MARKS.items(), strict=True):
            own = part[part["world"] == world].set_index("regime").loc[list(REGIMES)]
            for place, row in enumerate(own.itertuples()):
                label = WORLD_TITLES[world] if place == 0 else None
                style = {"color": colour, "marker": marker, "ms": 4.5, "ls": "none", "elinewidth": 1.2}
                interval(axes, row.gain, row.low, row.high, place + shift, ends=False, label=label, **style)
            values = ", ".join(f"{r} {signed(v, 1)}" for r, v in own["gain"].items())
            told.append(f"{WORLD_TITLES[world]} under {protocol}: {values}")
        axes.axvline(0, color=INK, lw=0.9)
        axes.grid(axis="x")
        axes.set_title(protocol, loc="left", fontsize=10)
    rows_from_top(panels_[0, 0], [f"{name}: {REGIMES[name].title}" for name in REGIMES])
    figure.supxlabel(f"Simple − Periodic in {MEASURES[measure]} [points]", fontsize=10)
    handles, labels = panels_[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=3, frameon=False, fontsize=8.5)
    alt = f"Gain of EnvProbe-Simple over Periodic in {MEASURES[measure]} by regime. {'; '.join(told)}."
    return Drawing(figure, f"stress-{measure.replace('/', '-')}", alt)


def tell_shifts(gains: pd.DataFrame, reference: str) -> Text:
    """Say in which regimes the gain in accuracy differs from that in the reference regime."""
    part = gains[(gains["measure"] == "accuracy") & (gains["regime"] != reference)]
    lines = []
    for protocol in dict.fromkeys(part["protocol"]):
        own = part[(part["protocol"] == protocol)]
        moved = own[(own["shift_low"] > 0) | (own["shift_high"] < 0)]
        line = f"* `{protocol}`: {counted(len(moved))} of {len(own)} world-regime gains differ from those in "
        line += f"`{reference}` beyond their adjusted intervals"
        if len(moved):
            far = moved.loc[moved["shift"].abs().idxmax()]
            line += (
                f", most of all {WORLD_TITLES[far['world']]} in `{far['regime']}` ({signed(far['shift'])} "
                f"points, to "
                f"{signed(far['gain'])})"
            )
        flips = [
            f"{WORLD_TITLES[row.world]} in `{row.regime}`"
            for row in own.itertuples()
            if (row.low > 0 or row.high < 0) and _against_reference(gains, row, reference)
        ]
        line += (
            f". The sign turns, with both intervals off 0, for {listed(flips)}."
            if flips
            else ". No gain turns its sign with an interval off 0."
        )
        lines.append(line)
    return Text("\n".join(lines))


def _against_reference(gains: pd.DataFrame, row: object, reference: str) -> bool:
    """Say whether a gain has the other sign than in the reference regime, both beyond their 95% intervals."""
    same = gains[
        (gains["measure"] == row.measure)
        & (gains["world"] == row.world)
        & (gains["protocol"] == row.protocol)
        & (gains["regime"] == reference)
    ].iloc[0]
    return bool((same["low"] > 0 and row.high < 0) or (same["high"] < 0 and row.low > 0))


def tell_costs(gains: pd.DataFrame) -> Text:
    """Say how often Simple completes fewer or more episodes than Periodic, and finds more errors."""
    lines = []
    for protocol in dict.fromkeys(gains["protocol"]):
        parts = []
        for measure in ("success", "useful/probes"):
            own = gains[(gains["protocol"] == protocol) & (gains["measure"] == measure) & (gains["n"] > 0)]
            up, down = int((own["low"] > 0).sum()), int((own["high"] < 0).sum())
            parts.append(
                f"{MEASURES[measure]} is higher in {counted(up)} and lower in {counted(down)} of {len(own)}"
            )
        lines.append(f"* `{protocol}`: {listed(parts)} world-regime cells (95% intervals, not adjusted).")
    return Text("\n".join(lines))


def tell_setting(frame: pd.DataFrame) -> Text:
    """Say whose numbers the page shows, and on how many episodes each regime rests."""
    counts = (
        frame[frame["policy"] == ARM].groupby(["regime", "world", "protocol"]).size().groupby("regime").max()
    )
    sizes = listed(f"`{name}` {int(counts[name])}" for name in REGIMES)
    return Text(
        f"The agent on this page is a simulation with the profile `{frame['profile'].iloc[0]}`; no "
        f"language model "
        f"was called. Episodes a world, policy and protocol: {sizes}; protocols "
        f"{code(dict.fromkeys(frame['protocol']))}."
    )
