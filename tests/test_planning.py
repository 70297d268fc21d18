"""What the page on plans measures and writes."""

import pytest

from envprobe_core.analyses import planning


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3, "3.0 seconds"), (119, "119.0 seconds"), (7_200, "2.0 hours"), (3 * 86_400, "3.0 days")],
)
def test_durations(seconds, text):
    assert planning.duration(seconds) == text


def test_sizes():
    assert [planning.size(n) for n in (12, 1_500, 2e12)] == ["12 B", "1.5 kB", "2 TB"]


def test_rates_are_of_real_run_folders():
    rates = planning.measure_rates("S3", "released", "perfect", "0:3").set_index(["world", "logs"])
    assert [world for world, logs in rates.index if logs == "full"] == ["tooldag", "objectstate", "graphnav"]
    assert (rates[["seconds", "table", "parts"]] > 0).all(axis=None)
    for logs, written in rates["log"].groupby("logs"):
        assert (written > 0).all() == (logs == "full")
    assert (rates["log"] > rates["table"])[:, "full"].all()


def test_a_dry_run_counts_what_a_model_would_be_asked():
    one = planning.dry_run("S3", "released paper", 1)
    assert 0 < one.dry_run < one.episodes < one.calls < one.completion_tokens < one.prompt_tokens
