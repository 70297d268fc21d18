"""The experiment as a whole: room above and below, and nothing lost by a perfect agent."""

import pytest

from envprobe_core.cells import make_cell
from envprobe_core.grid import run_cells
from envprobe_core.protocols import OBSERVED, PAPER, parse_protocol
from envprobe_core.worlds import WORLDS


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("protocol", [PAPER, OBSERVED], ids=lambda p: p.name)
def test_nothing_sits_at_a_floor_or_a_ceiling(world, protocol):
    run = run_cells([make_cell(world, "no-probe", "S2", protocol)])
    assert 0.1 <= run["success"].mean() <= 0.9
    assert 0.2 <= run["accuracy_terminal"].mean() <= 0.8


@pytest.mark.parametrize("world", WORLDS)
def test_a_perfect_agent_in_a_still_world_is_right_to_the_end(world):
    still = parse_protocol("paper:rates=released")  # its low regime does not mutate
    run = run_cells([make_cell(world, "no-probe", "S1", still, "perfect")])
    assert (run["accuracy"] == 1.0).all()
    assert run["success"].all()
