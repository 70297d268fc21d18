"""The summary table and the hash of a condition's outcomes, and the memory that a run takes."""

import hashlib
import math
import struct
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate_logged
from envprobe_core.engine.scoring import DIGEST_KEY
from envprobe_core.errors import InputError
from envprobe_core.experiment import run_conditions
from envprobe_core.measures import right_fields
from envprobe_core.protocols import RELEASED
from envprobe_core.runs import folder as folders
from envprobe_core.runs import tables
from envprobe_core.runs.folder import open_run
from envprobe_core.runs.manifest import RunInputs
from envprobe_core.runs.tables import HASHED, mean_of, result_hash, summary_rows
from envprobe_core.statistics import LARGE, mean_interval, wilson
from strategies import conditions, seeds


def split(table, count):
    return [{k: v[table["condition"] == index] for k, v in table.items()} for index in range(count)]


def hashes(grid, some, **how):
    return [result_hash(part) for part in split(run_conditions(grid, some, **how), len(grid))]


def columns(n=4, **changes):
    """A condition's episodes, made up."""
    made = {
        "seed": np.arange(n), "steps": np.full(n, 30), "accuracy": np.linspace(0.2, 0.8, n),
        "accuracy_terminal": np.linspace(0.1, 0.4, n), "accuracy_slot": np.full(n, 0.5),
        "success": np.arange(n) == 1, "probes": np.resize([0, 2, 4, 4], n),
        "useful": np.resize([0, 1, 1, 0], n), "collapse_onset": np.resize([3.0, np.nan, 5.0, np.nan], n),
        "actions": np.full(n, 20), "valid_actions": np.full(n, 15), "action_onset": np.full(n, np.nan),
        "repeated_probes": np.zeros(n, dtype=np.int64),
        "digest": np.arange(n, dtype=np.uint64) + np.uint64(2**63),
    }  # fmt: skip
    return made | changes


def test_a_row_by_hand():
    (row,) = summary_rows([make_condition("tooldag", "simple", protocol=RELEASED)], [columns()])
    accuracy, success = mean_interval(columns()["accuracy"]), wilson(1, 4)
    expected = {
        "world": "tooldag", "policy": "simple", "regime": "S2", "protocol": "released", "profile": "typical",
        "n": 4, "accuracy": accuracy.value, "accuracy_low": accuracy.low, "accuracy_high": accuracy.high,
        "accuracy_terminal": 0.25, "accuracy_slot": 0.5, "task_success": 0.25,
        "task_success_low": success.low, "task_success_high": success.high, "probes": 2.5,
        "useful_probe_rate": (1 / 2 + 1 / 4 + 0 / 4) / 3, "collapse_onset": 4.0, "onset_censored": 2,
        "result_hash": result_hash(columns()),
    }  # fmt: skip
    assert list(row) == list(expected)
    assert row == pytest.approx(expected)
    assert accuracy.value == pytest.approx(0.5)


def test_a_mean_without_events_is_none_and_one_episode_has_no_interval():
    never, nothing = np.full(4, np.nan), np.zeros(4, dtype=np.int64)
    part = columns(probes=nothing, useful=nothing, collapse_onset=never)
    (row,) = summary_rows([make_condition("tooldag", "no-probe")], [part])
    assert (row["useful_probe_rate"], row["collapse_onset"]) == (None, None)
    assert (row["onset_censored"], row["probes"]) == (4, 0)
    (row,) = summary_rows([make_condition("tooldag", "no-probe")], [columns(1)])
    assert (row["accuracy"], row["accuracy_low"], row["accuracy_high"]) == (0.2, None, None)
    assert row["task_success_high"] < 1


@pytest.mark.parametrize("odd", [np.inf, np.nan])
@pytest.mark.parametrize("name", ["accuracy", "accuracy_slot"])
def test_what_no_measure_can_be_is_refused(name, odd):
    """Of a table that a run never wrote."""
    with pytest.raises(InputError, match="NaN or infinity" if name == "accuracy" else "accuracy_slot is not"):
        summary_rows(
            [make_condition("tooldag", "simple")], [columns(**{name: np.array([0.5, odd, 0.5, 0.5])})]
        )


def test_the_hash_is_that_of_its_definition_and_every_outcome_enters_it():
    part, octets = columns(), b""
    for row in range(4):
        for name in HASHED[:-1]:
            value = float(part[name][row])
            octets += struct.pack("<q", -1 if np.isnan(value) else int(value))
        octets += struct.pack("<Q", int(part["digest"][row]))
    shuffled = {name: column[[2, 0, 3, 1]] for name, column in part.items()}
    assert result_hash(shuffled) == hashlib.sha256(octets).hexdigest()
    for name in HASHED:
        changed = part[name].copy()
        changed[2] = ~changed[2] if changed.dtype == bool else 7 if name == "action_onset" else changed[2] + 1
        assert result_hash(columns(**{name: changed})) != result_hash(part), name


def words(key, count):
    """The numbered words of a key (SplitMix64) in plain integers."""
    wrap = 2**64 - 1
    for number in range(1, count + 1):
        word = (key + number * 0x9E3779B97F4A7C15) & wrap
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & wrap
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & wrap
        yield word ^ (word >> 31)


@settings(max_examples=30)
@given(conditions(), seeds)
def test_the_digest_is_that_of_its_definition(condition, some):
    trajectory = simulate_logged(condition, some)
    right = right_fields(trajectory.belief, trajectory.gold)
    horizon = condition.regime.horizon
    drawn = list(words(int(DIGEST_KEY), 2 * horizon + 1))
    for row, steps in enumerate(trajectory.steps.tolist()):
        total = sum((int(right[row, t]) + 1) * drawn[t] for t in range(steps + 1))
        total += sum((int(trajectory.probe[row, t]) + 2) * drawn[horizon + 1 + t] for t in range(steps))
        assert int(trajectory.measures["digest"][row]) == total % 2**64


@settings(max_examples=15)
@given(st.lists(conditions(), min_size=1, max_size=4), st.integers(1, 9), st.randoms(use_true_random=False))
def test_the_hash_of_a_cell_depends_on_nothing_around_it(grid, batch_size, shuffle):
    some = np.arange(5)
    shuffled = some.copy()
    shuffle.shuffle(shuffled)
    expected = [hashes([condition], some)[0] for condition in grid]
    assert hashes(grid, shuffled, batch_size=batch_size) == expected
    assert hashes(grid[::-1], some) == expected[::-1]


ROUNDED = st.floats(0, 2**20, allow_subnormal=False).map(lambda value: round(value, 12))


@given(st.lists(ROUNDED, min_size=1, max_size=40), st.data())
def test_a_mean_is_the_rounded_true_one_in_any_order(values, data):
    shuffled = data.draw(st.permutations(values))
    assert mean_of("x", np.array(shuffled)) == float(sum(map(Fraction, values))) / len(values)


def test_many_episodes_have_the_normal_interval():
    values = np.random.default_rng(7).uniform(0.3, 0.9, LARGE + 1)
    condition, made = make_condition("tooldag", "random"), columns(len(values), accuracy=values)
    (row,) = summary_rows([condition], [made])
    half = NormalDist().inv_cdf(0.975) * values.std() / math.sqrt(len(values))
    ends = (row["accuracy"], row["accuracy_low"], row["accuracy_high"])
    assert ends == pytest.approx((values.mean(), values.mean() - half, values.mean() + half), rel=1e-13)


def test_a_run_folder_sums_up_what_its_table_holds(tmp_path, monkeypatch):
    """In memory and read again, made of several pieces and written in several row groups."""
    monkeypatch.setattr(folders, "BARE_AT_ONCE", 300)
    monkeypatch.setattr(tables, "GROUP_ROWS", 700)
    inputs = RunInputs(["tooldag", "graphnav"], ["simple", "no-probe"], seeds="0:1700", logs="none")
    parts = split(run_conditions(inputs.conditions, inputs.seeds_of_conditions), 4)
    with open_run(tmp_path / "run", inputs) as folder:
        folder.fill(jobs=1)
        made = summary_rows(inputs.conditions, folder.finish())
    with open_run(tmp_path / "run", inputs) as folder:
        assert folder.manifest.finished
        read = folder.read()
    assert summary_rows(inputs.conditions, read) == made == summary_rows(inputs.conditions, parts)
    assert [row["result_hash"] for row in made] == [result_hash(part) for part in parts]
    none = dict.fromkeys(tables.READ, np.zeros(1700))  # of a simulated agent's updates, none is unreadable
    for ours, theirs in zip(read, (none | part for part in parts), strict=True):
        for name in tables.MEASURES:
            np.testing.assert_array_equal(ours[name], theirs[name])


PEAK = """
import sys
from pathlib import Path
from envprobe_core.runs.folder import open_run
from envprobe_core.runs.manifest import RunInputs
size, out = sys.argv[1:]
with open_run(Path(out), RunInputs(["tooldag"], ["random"], seeds=f"0:{size}", logs="none")) as folder:
    folder.fill(jobs=1)
    folder.finish()
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.nightly
def test_an_episode_takes_no_more_memory_than_is_said(tmp_path):
    """`runs.folder` says 0.9 kB; `getrusage` would tell this process's peak, if that is higher."""
    sizes, peaks = (20_000, 120_000), []
    for size in sizes:
        given = [sys.executable, "-c", PEAK, str(size), str(tmp_path / str(size))]
        done = subprocess.run(given, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout.split()[-1]) * 1024)
    assert (peaks[1] - peaks[0]) / (sizes[1] - sizes[0]) < 900, peaks
