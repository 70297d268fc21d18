"""The page on plans: sums by hand from made-up rates, and real measurements on a few episodes."""

import pytest

from envprobe_core.analyses import planning
from envprobe_core.analyses.planning import Rate
from envprobe_core.llm.estimate import Estimate

RATES = [
    Rate("tooldag", {"none": 1e-4, "full": 4e-4}, 20, 1_980, {"none": 100, "full": 2_000}),
    Rate("graphnav", {"none": 3e-4, "full": 6e-4}, 40, 3_960, {"none": 100, "full": 4_000}),
]


def test_a_plan_by_hand():
    found = planning.plan(RATES, 1e-4, planning.Machines(10, 0.5, 0.1), (10**6, 36_000_000))
    assert found["episodes"].tolist() == [10**6] * 3 + [36_000_000] * 3
    large = found.iloc[3:].set_index("what")
    # 36e6 x 2e-4 s = 2 h; half of the time computes: 4 core hours, 24 minutes on ten
    assert large["core_hours"].tolist() == pytest.approx([4, 10, 2])
    assert large["seconds"].map(planning.duration).tolist() == [
        "24.0 minutes",
        "60.0 minutes",
        "12.0 minutes",
    ]
    assert large["dollars"].tolist() == pytest.approx([0.4, 1.0, 0.2])
    sizes = large[["stored", "at_most"]].iloc[:2].map(planning.size)
    assert sizes.to_numpy().tolist() == [["1.08 GB", "4.68 GB"], ["108 GB", "216 GB"]]
    assert large.loc["atlas", ["stored", "at_most"]].isna().all()


def test_a_comparison_by_hand():
    one = Estimate(100, 4, 900, 640, 1_000_000, 100_000, None, None)
    comparison = planning.Comparison(one, "paper", 5, 2.0, 16)
    assert comparison.seconds == 80
    assert (comparison.tokens.prompt, comparison.tokens.completion) == (1_000_000, 100_000)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3, "3.0 seconds"), (119, "119.0 seconds"), (7_200, "2.0 hours"), (3 * 86_400, "3.0 days")],
)
def test_durations(seconds, text):
    assert planning.duration(seconds) == text


def test_sizes():
    assert [planning.size(n) for n in (12, 1_500, 2e12)] == ["12 B", "1.5 kB", "2 TB"]


def test_rates_are_of_real_run_folders():
    rates = planning.measure_rates("S3", "released", "perfect", "0:3")
    assert [rate.world for rate in rates] == ["tooldag", "objectstate", "graphnav"]
    for rate in rates:
        assert min(rate.seconds.values()) > 0
        assert 0 < rate.table_bytes < rate.log_bytes
