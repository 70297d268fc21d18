"""What a large run takes: rates and sizes measured here, and with them cores, hours, storage and money.

Rates are processor seconds of one core of the machine that executes the page; what else a plan rests on
(cores, the share of their time that computes, prices, latency) is given and named beside the result.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from envprobe_core.atlas.running import load_atlas
from envprobe_core.cells import parse_seeds
from envprobe_core.experiments import names
from envprobe_core.figures import WORLD_TITLES
from envprobe_core.markup import EMPTY, Table, Text, number
from envprobe_core.policies import OF_THE_PAPER
from envprobe_core.runs.folder import EPISODES, open_run
from envprobe_core.runs.inputs import make_inputs, seed_ranges
from envprobe_core.worlds import WORLDS

LOGS = ("none", "full")
ATLAS_PROFILES, ATLAS_SEEDS = 32, 20  # of the small atlas that is timed
LOGGED_SHARE = 10  # one in ten: writing logs takes that much longer
HOUR = 3600
SIZES = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


@dataclass(frozen=True)
class Rate:
    """What one world's episodes take, a mean over policies and protocols.

    Attributes:
        world: its name.
        seconds: processor time of an episode, by what is logged: from the first draw to the file on disk.
        table_bytes: of an episode in episodes.parquet.
        log_bytes: of its log.
        part_bytes: of its parts, which stand beside table and log until these are whole; by what is logged.
    """

    world: str
    seconds: dict[str, float]
    table_bytes: float
    log_bytes: float
    part_bytes: dict[str, float]

    def stored(self, logs: str) -> tuple[float, float]:
        """Return the bytes of an episode in a finished folder, and the most while it is put together."""
        finished = self.table_bytes + (logs == "full") * self.log_bytes
        return finished, finished + self.part_bytes[logs]


@dataclass(frozen=True)
class Machines:
    """What a plan takes for granted.

    Attributes:
        cores: of the cluster.
        efficiency: the share of their time that computes.
        core_price: dollars for a core and hour.
    """

    cores: int
    efficiency: float
    core_price: float


def measure_rates(regime: str, protocol: str, profile: str, seeds: str) -> list[Rate]:
    """Make a run folder of every policy in each world, with logs and without, and look what it took.

    Args:
        regime: its name.
        protocol: names of protocols.
        profile: of the simulated agent.
        seeds: episodes of each cell, as text; a tenth of them is run with logs.
    """
    _measure("tooldag", regime, protocol, profile, "0", "full")  # imports are not counted
    chosen = np.sort(parse_seeds(seeds))
    some = seed_ranges(chosen[: math.ceil(len(chosen) / LOGGED_SHARE)])
    rates = []
    for world in WORLDS:
        bare, table, _, small = _measure(world, regime, protocol, profile, seeds, "none")
        logged, _, log, large = _measure(world, regime, protocol, profile, some, "full")
        seconds, parts = {"none": bare, "full": logged}, {"none": small, "full": large}
        rates.append(Rate(world, seconds, table, log, parts))
    return rates


def _measure(
    world: str, regime: str, protocol: str, profile: str, seeds: str, logs: str
) -> tuple[float, float, float, float]:
    """Return seconds, bytes of the table, of the logs and of the parts, each of an episode."""
    inputs = make_inputs([world], OF_THE_PAPER, regime, names(protocol), profile, seeds=seeds, logs=logs)
    with tempfile.TemporaryDirectory() as name, open_run(Path(name), inputs) as folder:
        begun = time.process_time()
        folder.fill(jobs=1)
        parts = sum(path.stat().st_size for path in folder.path.glob("parts/*"))
        made = folder.finish()
        seconds = time.process_time() - begun
        table = (folder.path / EPISODES).stat().st_size
        written = sum(path.stat().st_size for path in folder.path.glob("logs/*"))
    episodes = sum(own.n for own in made)
    return seconds / episodes, table / episodes, written / episodes, parts / episodes


def show_rates(rates: Sequence[Rate]) -> Table:
    """Show what an episode takes in each world."""
    rows = [
        [
            WORLD_TITLES[rate.world],
            *(f"{1 / rate.seconds[logs]:,.0f}" for logs in LOGS),
            size(rate.table_bytes),
            size(rate.log_bytes),
        ]
        for rate in rates
    ]
    caption = (
        f"Measured while this page was made, on one core: {len(OF_THE_PAPER)} policies in turn, everything "
        "included from the first draw to the file on disk. With few seeds, starting a block outweighs its "
        "episodes, and a large run is faster than this."
    )
    head = ("world", "episodes a second", "with full logs", "table, an episode", "log, an episode")
    return Table("tab-machine-rates", caption, head, rows, "lrrrr")


def measure_atlas(protocol: str, resamples: int) -> float:
    """Run a small atlas and return the processor seconds of an episode, every claim's verdict included.

    Args:
        protocol: names of protocols; the first one counts.
        resamples: bootstrap resamples of each interval.
    """
    atlas = load_atlas(ATLAS_PROFILES, ATLAS_SEEDS, names(protocol)[0], resamples, jobs=1)
    return atlas.processor_seconds / atlas.simulated


def show_plan(rates: Sequence[Rate], atlas: float, machines: Machines, episodes: int) -> Table:
    """Show what runs of several sizes take, up to the one asked for.

    Args:
        rates: of run folders.
        atlas: processor seconds of an episode of the atlas.
        machines: what is assumed.
        episodes: of the largest plan.
    """
    kinds = [
        (
            f"run, logs {logs}",
            float(np.mean([rate.seconds[logs] for rate in rates])),
            np.mean([rate.stored(logs) for rate in rates], axis=0).tolist(),
        )
        for logs in LOGS
    ]
    rows = []
    for count in sorted({10**6, episodes}):
        for kind, each, stored in (*kinds, ("atlas", atlas, [])):
            hours = count * each / machines.efficiency / HOUR
            rows.append(
                [
                    f"{count:,}",
                    kind,
                    f"{hours:,.3g}",
                    duration(hours * HOUR / machines.cores),
                    " / ".join(size(count * each) for each in stored) or EMPTY,
                    f"${hours * machines.core_price:,.2f}",
                ]
            )
    caption = (
        f"Plans at the rates of {{numref}}`tab-machine-rates`, episodes spread evenly over the worlds, and "
        f"of an atlas measured beside them (verdicts included; it stores nothing else). Assumed: "
        f"{machines.cores:,} cores like this one, {100 * machines.efficiency:.0f}% of their time spent "
        f"computing, ${machines.core_price:g} for a core and hour. Storage is that of the finished folder, "
        "and what it takes at most, while parts stand beside what is made of them."
    )
    head = (
        "episodes",
        "what",
        "core hours paid",
        f"time on {machines.cores:,} cores",
        "storage / at most",
        "money",
    )
    return Table("tab-machine-plan", caption, head, rows, "rlrrrr")


def tell_plan(rates: Sequence[Rate], atlas: float, machines: Machines, episodes: int) -> Text:
    """Say how long the atlas of this size takes, and what logs cost."""
    seconds = episodes * atlas
    ratio = float(np.mean([rate.seconds["full"] for rate in rates]))
    ratio /= float(np.mean([rate.seconds["none"] for rate in rates]))
    return Text(
        f"So an atlas of {episodes:,} episodes is {duration(seconds)} of computing on one core, or "
        f"{duration(seconds / machines.efficiency / machines.cores)} on {machines.cores:,}. A run that "
        f"writes every step takes {number(ratio, 1)} times the processor time of one that writes none: for a "
        "large grid log a sample (`--logs sample:20`), and run the cell again that you want to look into, "
        "since a seed gives the same episode wherever it is run."
    )


def size(count: float) -> str:
    """Write a number of bytes."""
    for unit, factor in SIZES:
        if count >= factor:
            return f"{count / factor:,.3g} {unit}"
    return f"{count:.0f} B"


def duration(seconds: float) -> str:
    """Write a time in the largest unit of which there are two."""
    for unit, factor in (("days", 24 * HOUR), ("hours", HOUR), ("minutes", 60)):
        if seconds >= 2 * factor:
            return f"{seconds / factor:,.1f} {unit}"
    return f"{seconds:,.1f} seconds"
