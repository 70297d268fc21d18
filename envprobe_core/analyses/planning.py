"""What a large run takes: rates and sizes measured here, and with them cores, hours, storage and money.

A comparison of language models is planned from a dry run of the prompts.

Rates are processor seconds of one core of the machine that executes the page; what else a plan rests on
(cores, the share of their time that computes, prices, latency) is given and named beside the result.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd

from envprobe_core.atlas.running import load_atlas
from envprobe_core.cells import parse_seeds
from envprobe_core.experiments import PAPER_POLICIES, names
from envprobe_core.llm.asking import Tokens
from envprobe_core.llm.estimate import Estimate, estimate
from envprobe_core.llm.identity import ModelAgent, ModelSettings
from envprobe_core.llm.keys import provider_label
from envprobe_core.llm.prices import read_prices
from envprobe_core.llm.prompts import PROMPT_VERSION
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


def measure_atlas(protocol: str, resamples: int) -> float:
    """Run a small atlas and return the processor seconds of an episode, every claim's verdict included.

    Args:
        protocol: names of protocols; the first one counts.
        resamples: bootstrap resamples of each interval.
    """
    atlas = load_atlas(ATLAS_PROFILES, ATLAS_SEEDS, names(protocol)[0], resamples, jobs=1)
    return atlas.processor_seconds / atlas.simulated


def plan(rates: Sequence[Rate], atlas: float, machines: Machines, episodes: Sequence[int]) -> pd.DataFrame:
    """Work out what runs of several sizes take, episodes spread evenly over the worlds.

    Args:
        rates: of run folders.
        atlas: processor seconds of an episode of the atlas.
        machines: what is assumed.
        episodes: of each plan.

    Returns:
        One row a size and kind of run: `episodes what`, `core_hours` paid, `seconds` that pass, `stored` and
        `at_most` (bytes of the finished folder, and while parts stand beside what is made of them; NaN for
        the atlas, which stores nothing), `dollars`.
    """
    nothing = (float("nan"), float("nan"))
    kinds = [
        (f"run, logs {logs}", fmean(rate.seconds[logs] for rate in rates), stored_bytes(rates, logs))
        for logs in LOGS
    ]
    rows = []
    for count, (kind, each, stored) in product(episodes, (*kinds, ("atlas", atlas, nothing))):
        hours = count * each / machines.efficiency / HOUR
        rows.append(
            {"episodes": count, "what": kind, "core_hours": hours, "seconds": hours * HOUR / machines.cores}
            | {"stored": count * stored[0], "at_most": count * stored[1]}
            | {"dollars": hours * machines.core_price}
        )
    return pd.DataFrame(rows)


def stored_bytes(rates: Sequence[Rate], logs: str) -> tuple[float, float]:
    """Return the bytes of a mean episode, in a finished folder and at most."""
    finished, at_most = zip(*(rate.stored(logs) for rate in rates), strict=True)
    return fmean(finished), fmean(at_most)


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


@dataclass(frozen=True)
class Comparison:
    """What it takes to compare language models on the paper's main grid.

    Attributes:
        one: what a single model would be asked, from a dry run.
        protocol: the protocol.
        models: how many models.
        latency: seconds a call takes.
        concurrency: calls under way at once.
    """

    one: Estimate
    protocol: str
    models: int
    latency: float
    concurrency: int

    @property
    def tokens(self) -> Tokens:
        """Return the tokens of one model's calls."""
        return Tokens(self.one.prompt_tokens, self.one.completion_tokens)

    @property
    def seconds(self) -> float:
        """Return how long one model takes."""
        return self.one.calls * self.latency / self.concurrency


def plan_comparison(
    regime: str, protocol: str, sample: int, models: int, latency: float, concurrency: int
) -> Comparison:
    """Dry-run the prompts of the paper's policies in every world, under the first protocol.

    Args:
        regime: its name.
        protocol: names of protocols.
        sample: seeds of each cell to try.
        models: how many models are to be compared.
        latency: seconds a call takes.
        concurrency: calls under way at once.
    """
    first = names(protocol)[0]
    model = next(iter(read_prices()))
    agent = ModelAgent(provider_label(None), PROMPT_VERSION, ModelSettings(model))
    inputs = make_inputs(WORLDS, PAPER_POLICIES, regime, [first], agent=agent)
    one = estimate(inputs.cells, inputs.seeds_of_cells, agent, read_prices(), sample)
    return Comparison(one, first, models, latency, concurrency)
