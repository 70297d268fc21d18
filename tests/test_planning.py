"""The page on plans: sums by hand from made-up rates, and real measurements on a few episodes."""

from __future__ import annotations

import pytest

from envprobe_core import planning, planning_models
from envprobe_core.llm.estimate import Estimate
from envprobe_core.llm.prices import read_prices

RATES = [
    planning.Rate("tooldag", {"none": 1e-4, "full": 4e-4}, 20, 1_980, {"none": 100, "full": 2_000}),
    planning.Rate("graphnav", {"none": 3e-4, "full": 6e-4}, 40, 3_960, {"none": 100, "full": 4_000}),
]


def test_a_plan_by_hand() -> None:
    table = planning.show_plan(RATES, 1e-4, planning.Machines(10, 0.5, 0.1), 36_000_000)
    assert [row[0] for row in table.rows] == ["1,000,000"] * 3 + ["36,000,000"] * 3
    bare, logged, atlas = table.rows[3:]
    # 36e6 x 2e-4 s = 2 h; half of the time computes: 4 core hours, 24 minutes on ten
    assert bare[1:] == ["run, logs none", "4", "24.0 minutes", "1.08 GB / 4.68 GB", "$0.40"]
    assert logged[1:] == ["run, logs full", "10", "60.0 minutes", "108 GB / 216 GB", "$1.00"]
    assert atlas[1:] == ["atlas", "2", "12.0 minutes", "–", "$0.20"]
    told = planning.tell_plan(RATES, 1e-4, planning.Machines(10, 0.5, 0.1), 72_000_000).markdown
    assert "72,000,000 episodes is 2.0 hours of computing on one core, or 24.0 minutes on 10." in told
    assert "takes 2.5 times the processor time" in told


def test_a_comparison_by_hand() -> None:
    one = Estimate(100, 4, 900, 640, 1_000_000, 100_000, None, None)
    plan = planning_models.Comparison(one, "paper", 5, 2.0, 16)
    rows = {row[0]: row[1:] for row in planning_models.show_comparison(plan).rows}
    assert list(rows) == [f"`{model}`" for model in read_prices()]
    price = read_prices()["gpt-4o"]
    cost = (1_000_000 * price.input + 100_000 * price.output) / 1e12
    assert rows["`gpt-4o`"] == [f"${cost:.2f}", f"${5 * cost:.2f}"]
    told = planning_models.tell_comparison(plan, RATES).markdown
    assert "one model takes 80.0 seconds and 5 in turn 6.7 minutes" in told
    assert "19.2 MB of text" in told
    assert "0.062% of the time" in told


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3, "3.0 seconds"), (119, "119.0 seconds"), (7_200, "2.0 hours"), (3 * 86_400, "3.0 days")],
)
def test_durations(seconds: float, text: str) -> None:
    assert planning.duration(seconds) == text


def test_sizes() -> None:
    assert [planning.size(n) for n in (12, 1_500, 2e12)] == ["12 B", "1.5 kB", "2 TB"]


def test_rates_are_of_real_run_folders() -> None:
    rates = planning.measure_rates("S3", "released", "perfect", "0:3")
    assert [rate.world for rate in rates] == ["tooldag", "objectstate", "graphnav"]
    for rate in rates:
        assert min(rate.seconds.values()) > 0
        assert 0 < rate.table_bytes < rate.log_bytes
    assert len(planning.show_rates(rates).rows) == 3
