"""The engine and the naive twin, written apart from one specification, take the same steps."""

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import cells, seeds
from twinning import assert_same, schedule_of, simulate_cell, twin_episodes

from envprobe_core.cells import Cell, make_cell
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.worlds import WORLDS


@settings(max_examples=250, deadline=None)
@given(cells(), seeds)
def test_random_experiments_are_identical_step_by_step(cell: Cell, some_seeds: np.ndarray) -> None:
    engine = simulate_cell(cell, some_seeds)
    twins = twin_episodes(cell, some_seeds, schedule_of(cell, some_seeds))
    for row, episode in enumerate(twins):
        assert_same(engine, row, episode)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_main_grid_is_identical(world: str, protocol: str) -> None:
    some_seeds = np.arange(3)
    for policy in POLICIES:
        cell = make_cell(world, policy, "S2", PROTOCOLS[protocol])
        engine = simulate_cell(cell, some_seeds)
        for row, episode in enumerate(twin_episodes(cell, some_seeds, schedule_of(cell, some_seeds))):
            assert_same(engine, row, episode)
