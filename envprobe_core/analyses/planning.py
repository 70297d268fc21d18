"""What a large run takes: rates and sizes measured here, and a dry run of a language model's prompts.

Rates are processor seconds of one core of the machine that executes the page; what else a plan rests on
(cores, the share of their time that computes, prices, latency) is the page's own.
"""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from envprobe_core.atlas.running import load_atlas
from envprobe_core.cells import parse_seeds
from envprobe_core.experiments import PAPER_POLICIES, names
from envprobe_core.llm.estimate import Estimate, estimate
from envprobe_core.llm.identity import ModelAgent, ModelSettings
from envprobe_core.llm.keys import provider_label
from envprobe_core.llm.prices import read_prices
from envprobe_core.llm.prompts import PROMPT_VERSION
from envprobe_core.policies import OF_THE_PAPER
from envprobe_core.runs.folder import EPISODES, open_run
from envprobe_core.runs.inputs import make_inputs, seed_ranges
from envprobe_core.worlds import WORLDS

ATLAS_PROFILES, ATLAS_SEEDS = 32, 20  # of the small atlas that is timed
LOGGED_SHARE = 10  # one in ten: writing logs takes that much longer
HOUR = 3600


def measure_rates(regime: str, protocol: str, profile: str, seeds: str) -> pd.DataFrame:
    """Make a run folder of every policy in each world, with logs and without, and look what it took.

    Args:
        regime: its name.
        protocol: names of protocols.
        profile: of the simulated agent.
        seeds: episodes of each cell, as text; a tenth of them is run with logs.

    Returns:
        One row a world and kind of log, each number that of a mean episode: `world logs seconds` (of one
        core, from the first draw to the file on disk) and the bytes of its `table`, of its `log` and of its
        `parts`, which stand beside both until these are whole.
    """
    _measure("tooldag", regime, protocol, profile, "0", "full")  # imports are not counted
    chosen = np.sort(parse_seeds(seeds))
    some = seed_ranges(chosen[: math.ceil(len(chosen) / LOGGED_SHARE)])
    return pd.DataFrame(
        {"world": world, "logs": logs} | _measure(world, regime, protocol, profile, given, logs)
        for world in WORLDS
        for logs, given in (("none", seeds), ("full", some))
    )


def _measure(world: str, regime: str, protocol: str, profile: str, seeds: str, logs: str) -> dict[str, float]:
    inputs = make_inputs([world], OF_THE_PAPER, regime, names(protocol), profile, seeds=seeds, logs=logs)
    with tempfile.TemporaryDirectory() as name, open_run(Path(name), inputs) as folder:

        def size_of(pattern: str) -> int:
            return sum(path.stat().st_size for path in folder.path.glob(pattern))

        begun = time.process_time()
        folder.fill(jobs=1)
        took = {"parts": size_of("parts/*")}
        made = folder.finish()
        took |= {"seconds": time.process_time() - begun, "table": size_of(EPISODES), "log": size_of("logs/*")}
    return {what: amount / sum(own.n for own in made) for what, amount in took.items()}


def measure_atlas(protocol: str, resamples: int) -> float:
    """Run a small atlas and return the processor seconds of an episode, every claim's verdict included.

    Args:
        protocol: names of protocols; the first one counts.
        resamples: bootstrap resamples of each interval.
    """
    atlas = load_atlas(ATLAS_PROFILES, ATLAS_SEEDS, names(protocol)[0], resamples, jobs=1)
    return atlas.processor_seconds / atlas.simulated


def dry_run(regime: str, protocol: str, sample: int) -> Estimate:
    """Ask what one model would be asked by the paper's policies in every world, under the first protocol.

    Args:
        regime: its name.
        protocol: names of protocols.
        sample: seeds of each cell to try.
    """
    model = ModelSettings(next(iter(read_prices())))
    agent = ModelAgent(provider_label(None), PROMPT_VERSION, model)
    inputs = make_inputs(WORLDS, PAPER_POLICIES, regime, names(protocol)[:1], agent=agent)
    return estimate(inputs.cells, inputs.seeds_of_cells, agent, read_prices(), sample)


def size(count: float) -> str:
    """Write a number of bytes."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:,.3g} {unit}"
    return f"{count:.0f} B"


def duration(seconds: float) -> str:
    """Write a time in the largest unit of which there are two."""
    for unit, factor in (("days", 24 * HOUR), ("hours", HOUR), ("minutes", 60)):
        if seconds >= 2 * factor:
            return f"{seconds / factor:,.1f} {unit}"
    return f"{seconds:,.1f} seconds"
