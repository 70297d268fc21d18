"""Any number of episodes in bounded memory: the same figures as from all of them at once."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from envprobe_core import episodes, runstore, summary
from envprobe_core.cells import make_cell
from envprobe_core.errors import InputError
from envprobe_core.intervals import mean_interval
from envprobe_core.manifest import make_inputs
from envprobe_core.moments import RunningMean, running_means
from envprobe_core.running import run_missing
from envprobe_core.runstore import open_run
from envprobe_core.summary import result_hash, summarise, summary_rows
from envprobe_core.sweep import run_cells, stream_cells

FINITE = st.floats(-1e150, 1e150)


@given(st.lists(FINITE, min_size=1, max_size=40), st.data())
def test_moments_are_exact_in_any_order_and_cut(values: list[float], data: st.DataObject) -> None:
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    whole = RunningMean(values)
    assert whole.mean == math.fsum(values) / len(values)
    assert whole.variance == float(sum((value - mean) ** 2 for value in exact) / len(exact))
    shuffled = data.draw(st.permutations(values))
    cut = data.draw(st.integers(0, len(values)))
    left, right = RunningMean(shuffled[:cut]), RunningMean()
    for value in shuffled[cut:]:
        right.add(value)
    left.merge(right)
    assert (left.n, left.mean, left.variance) == (whole.n, whole.mean, whole.variance)


def test_moments_of_many_values_are_those_of_numpy() -> None:
    values = np.random.default_rng(7).normal(1e6, 1e-3, 30_000)
    running = RunningMean(values)
    assert running.mean == math.fsum(values) / len(values)
    centred = values - values.mean()
    assert running.variance == pytest.approx(float((centred**2).mean()), rel=1e-6)
    ours, theirs = running.interval(), mean_interval(values)
    assert (ours.value, ours.n) == (theirs.value, theirs.n)
    assert ours[1:3] == pytest.approx(theirs[1:3], rel=1e-14)


def test_few_values_and_bad_ones() -> None:
    assert RunningMean().n == 0
    assert math.isnan(RunningMean().mean)
    assert math.isnan(RunningMean().variance)
    one = RunningMean([0.1])
    assert (one.mean, one.variance, one.n) == (0.1, 0.0, 1)
    assert math.isnan(one.interval().low)
    for bad in (math.nan, math.inf):
        with pytest.raises(InputError, match="NaN or infinity"):
            one.add([bad])
    assert one.n == 1


MEASURES = ("accuracy", "success", "probes", "collapse_onset")


@pytest.mark.parametrize(("batch_size", "jobs"), [(7, 1), (64, 1), (50, 2)])
def test_one_pass_gives_the_means_of_the_whole_table(batch_size: int, jobs: int) -> None:
    cells = [make_cell(world, policy) for world in ("tooldag", "graphnav") for policy in ("simple", "yoked")]
    table = run_cells(cells, np.arange(90))
    blocks = stream_cells(cells, np.arange(90), batch_size=batch_size, jobs=jobs)
    found = running_means(blocks, MEASURES, len(cells))
    for index, means in enumerate(found):
        for name in MEASURES:
            values = table[name][table["cell"] == index].astype(float)
            values = values[~np.isnan(values)]
            assert means[name].n == len(values)
            if len(values):
                assert means[name].mean == math.fsum(values) / len(values)
                assert means[name].variance == pytest.approx(values.var(), rel=1e-12, abs=1e-15)


def test_a_run_folder_is_summed_up_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With pieces so small, and an interval so soon normal, that every path is taken."""
    inputs = make_inputs(["tooldag", "graphnav"], ["simple", "no-probe"], seeds="0:1700", logs="none")
    whole = run_cells(inputs.cells, inputs.seeds_of_cells)
    parts = [{k: v[whole["cell"] == cell] for k, v in whole.items()} for cell in range(4)]
    folders = []
    for large, pieces, rows in ((10_000, 100, 50_000), (1_000, 2, 700)):
        monkeypatch.setattr(summary, "LARGE", large)
        monkeypatch.setattr(runstore, "BLOCK_PARTS", pieces)
        monkeypatch.setattr(episodes, "GROUP_ROWS", rows)
        with open_run(tmp_path / str(large), inputs) as folder:
            made = run_missing(folder, folder.missing(), jobs=1)
        with open_run(tmp_path / str(large), inputs) as folder:
            assert folder.finished
            read = folder.read()
        rows_made = summary_rows(inputs.cells, made)
        assert rows_made == summary_rows(inputs.cells, read) == summarise(inputs.cells, parts)
        assert [row["result_hash"] for row in rows_made] == [result_hash(part) for part in parts]
        table = episodes.read_episodes(tmp_path / str(large) / "episodes.parquet", inputs.cells, [1700] * 4)
        for ours, theirs in zip(table, parts, strict=True):
            for name in episodes.MEASURES:
                np.testing.assert_array_equal(ours[name], theirs[name])
        folders.append(json.loads((tmp_path / str(large) / "manifest.json").read_text()))
    assert folders[0] == folders[1]


PEAK = """
import resource, sys
import numpy as np
from envprobe_core import episodes, runstore
from envprobe_core.cells import make_cell
from envprobe_core.cli import main
from envprobe_core.moments import running_means
from envprobe_core.sweep import stream_cells
what, size, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
runstore.BLOCK_PARTS, episodes.GROUP_ROWS = 4, 2000  # reached by the smaller run too
if what == "stream":
    (means,) = running_means(stream_cells([make_cell("tooldag", "random")], np.arange(size)), ["accuracy"], 1)
    assert means["accuracy"].n == size
else:
    given = ["run", "--world", "tooldag", "--policy", "random", "--seeds", f"0:{size}", "--logs", "none"]
    try:
        main([*given, "--jobs", "1", "--out", out])
    except SystemExit as end:
        assert end.code == 0
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.parametrize("what", ["stream", "run"])
def test_memory_does_not_grow_with_the_episodes(tmp_path: Path, what: str) -> None:
    """The columns of the episodes added here are 3 MiB; a table of them, with its keys, took 15."""
    peaks = []
    for size in (5_000, 30_000):
        given = [sys.executable, "-c", PEAK, what, str(size), str(tmp_path / str(size))]
        done = subprocess.run(given, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout.split()[-1]) / 1024)
    assert peaks[1] - peaks[0] < 8, peaks
