"""Compile all that the engine, the book and its notebooks call, ahead of time: by a tiny run of each.

What is compiled already is taken from the disk. Whoever does not do this compiles at first use.
"""

import contextlib
import gc
import io
import time

import numpy as np

from envprobe_book.analyses.ceilings import success_ceiling
from envprobe_book.analyses.repairs import Setting, look, play, rank_values
from envprobe_book.analyses.small_worlds import SmallWorld, grow, leaves
from envprobe_book.facts import FACTS
from envprobe_book.page_engine import statistics_module
from envprobe_core.conditions import make_condition
from envprobe_core.engine import wasm
from envprobe_core.engine.batch import simulate_logged
from envprobe_core.engine.instances import informative
from envprobe_core.experiment import run
from envprobe_core.parallel import cores, map_unordered, processes
from envprobe_core.policies import POLICIES
from envprobe_core.statistics import median_bootstrap, paired_bootstrap
from envprobe_core.worlds import WORLDS

SEEDS = np.arange(2)


def compile_everything() -> dict[str, float]:
    """Compile for the three worlds, side by side; return the processor seconds of each."""
    slowest_first = list(WORLDS)[::-1]
    with processes(min(cores(), len(WORLDS))) as executor:
        return dict(map_unordered(compile_world, slowest_first, executor))


def compile_world(world: str) -> tuple[str, float]:
    """Compile what runs a world, and what the analyses add to it; return it, and the processor seconds."""
    begin = time.process_time()
    gc.disable()  # a compiler makes much, and little that is garbage: to look for it takes a tenth longer
    with contextlib.redirect_stderr(io.StringIO()):  # whoever asked says it
        condition = make_condition(world, "simple")
        run(world, "simple yoked", seeds="0:2", facts=FACTS)
        wasm.module_of(world)
        informative(condition, SEEDS, simulate_logged(condition, SEEDS))
        success_ceiling(condition, SEEDS)
        setting = Setting.of(world, "S2", "paper", "typical")
        past = look(setting, SEEDS)
        rank_values(setting, past, "random")
        play(setting, past.seeds, past.seeds, past.wrong)
        if world == "tooldag":
            paired_bootstrap([1.0, 2.0])
            median_bootstrap([[1.0], [2.0]])
            statistics_module()
            small = SmallWorld(horizon=1, budget=1)
            grow(small)
            leaves(small, POLICIES["simple"])
    gc.enable()
    return world, time.process_time() - begin
