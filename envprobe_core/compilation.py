"""Compile all that the engine, the book and its notebooks call, ahead of time: by a tiny run of each.

What is compiled already is taken from the disk. Whoever does not do this compiles at first use.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

from envprobe_core.agents.profiles import PROFILES
from envprobe_core.bound.ceilings import success_ceiling
from envprobe_core.bound.exact import leaves
from envprobe_core.bound.small import Setting as SmallSetting
from envprobe_core.bound.states import grow
from envprobe_core.cells import make_cell
from envprobe_core.engine.running import Episodes, measure, record, walk
from envprobe_core.environments import drawn_mutation
from envprobe_core.instances import after_actions, instances, succeeded
from envprobe_core.llm import notes
from envprobe_core.plans import chain_length
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PAPER
from envprobe_core.regimes import REGIMES
from envprobe_core.theory.forks import Setting, look, play
from envprobe_core.theory.gains import rank_values
from envprobe_core.worlds import WORLDS, make_world

SEEDS = np.arange(2)
S2 = REGIMES["S2"]


def compile_everything() -> dict[str, float]:
    """Compile for the three worlds, in two processes; return the processor seconds of each part.

    Each process has functions of its own: where two write Numba's index of one function at a time, the work
    of one of them is lost.
    """
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1), mp_context=get_context("spawn")) as pool:
        parts = [pool.submit(whole_runs), pool.submit(single_steps)]
        return {name: seconds for part in parts for name, seconds in part.result().items()}


def whole_runs(worlds: Iterable[str] = tuple(WORLDS)) -> dict[str, float]:
    """Compile what runs a cell from its first step to its last; return the processor seconds by world."""
    took = {}
    for world in worlds:
        begin = time.process_time()
        with contextlib.redirect_stderr(io.StringIO()):  # whoever asked says it
            measure(make_cell(world, "simple"), SEEDS)
            record(make_cell(world, "yoked"), SEEDS)
        took[world] = time.process_time() - begin
    return took


def single_steps() -> dict[str, float]:
    """Compile what takes a block step by step, and what the analyses add to the engine."""
    begin = time.process_time()
    for world in WORLDS:
        with contextlib.redirect_stderr(io.StringIO()):
            _steps(world)
            _forks(world)
            success_ceiling(world, S2, PAPER, PROFILES["typical"], SEEDS)
    small = SmallSetting(horizon=1, budget=1)
    grow(small)
    leaves(small, POLICIES["simple"])
    return {"steps and analyses": time.process_time() - begin}


def _steps(world: str) -> None:
    """Take episodes to their end, and look at them as the analyses and a language model's notes do."""
    episodes = Episodes(make_cell(world, "simple"), SEEDS)
    notes.remember(episodes.setting, episodes.block)
    notes.take_over(episodes.setting, episodes.block, SEEDS)
    episodes.look()
    walk(episodes, episodes.decide)
    episodes.go_on()
    built = make_world(world, S2, PAPER)
    instance = instances(built, SEEDS)
    succeeded(built, instance, instance.state[:, None])
    after_actions(built, instance, episodes.recording())
    chain_length(built, SEEDS)
    drawn_mutation(built, SEEDS)


def _forks(world: str) -> None:
    """Repair a belief in the middle of an episode."""
    setting = Setting.of(world, "S2", PAPER, "typical")
    past = look(setting, SEEDS)
    rank_values(setting, past, "random")
    play(setting, past.seeds, past.seeds, past.wrong)
