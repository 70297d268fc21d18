"""The experiment as a whole: figures that something else produced, and room above and below."""

import numpy as np
import pytest

from envprobe_core.cells import make_cell
from envprobe_core.protocols import OBSERVED, PAPER, RELEASED, parse_protocol
from envprobe_core.sweep import run_cells
from envprobe_core.worlds import WORLDS

# measured on the public code itself, 220 seeds 42-261, ToolDAGWorld S2 (book/protocols.md):
# accuracy of No-Probe, Periodic, Simple; onset of Periodic, Simple; success of the three
MEASURED = {
    "scripted": ((0.218, 0.236, 0.364), (1.12, 8.12), 0.5),
    "scripted-open": ((0.412, 0.455, 0.591), (1.62, 8.37), 0.5),
    "scripted-true": ((0.511, 0.552, 0.568), (1.58, 8.34), 0.5),
    "scripted-true-open": ((0.705, 0.772, 0.795), (16.4, 19.6), 2.0),
}
SUCCESS = (0.964, 0.877, 0.877)


@pytest.mark.parametrize("profile", MEASURED)
def test_scripted_agents_meet_the_figures_measured_on_the_public_code(profile: str) -> None:
    accuracy, onset, onset_margin = MEASURED[profile]
    runs = {
        policy: run_cells([make_cell("tooldag", policy, "S2", RELEASED, profile)])
        for policy in ("no-probe", "periodic", "simple", "placebo", "yoked")
    }
    main = [runs[policy] for policy in ("no-probe", "periodic", "simple")]
    assert all(len(run["seed"]) == 220 for run in main)
    assert [run["seed"].min() for run in main] == [42] * 3
    for run, expected, success in zip(main, accuracy, SUCCESS, strict=True):
        assert run["accuracy"].mean() == pytest.approx(expected, abs=0.02)
        assert run["success"].mean() == pytest.approx(success, abs=0.04)
    for run, expected in zip(main[1:], onset, strict=True):
        assert np.nanmean(run["collapse_onset"]) == pytest.approx(expected, abs=onset_margin)
    for policy in ("simple", "placebo", "yoked"):
        np.testing.assert_array_equal(
            runs["periodic"]["accuracy_terminal"], runs[policy]["accuracy_terminal"]
        )


def test_scripted_gain_of_simple_over_periodic_vanishes_with_same_step_scoring() -> None:
    same_step = parse_protocol("released:pairing=same-step,encoding=meaning")
    runs = [
        run_cells([make_cell("tooldag", policy, "S2", same_step, "scripted-true-open")], np.arange(42, 262))
        for policy in ("periodic", "simple")
    ]
    assert runs[0]["accuracy"].mean() == pytest.approx(runs[1]["accuracy"].mean(), abs=1e-12)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("protocol", [PAPER, OBSERVED], ids=lambda p: p.name)
def test_nothing_sits_at_a_floor_or_a_ceiling(world: str, protocol: object) -> None:
    run = run_cells([make_cell(world, "no-probe", "S2", protocol)])
    assert 0.1 <= run["success"].mean() <= 0.9
    assert 0.2 <= run["accuracy_terminal"].mean() <= 0.8


@pytest.mark.parametrize("world", WORLDS)
def test_a_perfect_agent_in_a_still_world_is_right_to_the_end(world: str) -> None:
    still = parse_protocol("paper:rates=released")  # its low regime does not mutate
    run = run_cells([make_cell(world, "no-probe", "S1", still, "perfect")])
    assert (run["accuracy"] == 1.0).all()
    assert run["success"].all()
