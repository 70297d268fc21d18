"""The experiment as a whole: room above and below, and nothing lost by a perfect agent."""

import pytest

from envprobe_core import run
from envprobe_core.worlds import WORLDS


@pytest.mark.parametrize("world", WORLDS)
def test_there_is_room_above_and_below_and_a_perfect_agent_in_a_still_world_loses_nothing(world):
    found = run(world, "no-probe", "S2", "paper observed").groupby("protocol")
    for means in (found[name].mean() for name in ("success", "accuracy_terminal")):
        assert means.between(0.1, 0.9).all()
    still = run(world, "no-probe", "S1", "paper:rates=released", "perfect")  # its low regime does not mutate
    assert (still["accuracy"] == 1.0).all()
    assert still["success"].all()
