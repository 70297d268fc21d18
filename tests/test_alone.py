"""The core with its own dependencies alone: what others install and build on needs nothing of the book."""

import subprocess
import sys

import numpy as np
import pytest

NOT_NEEDED = ("matplotlib", "typer", "papermill", "ipywidgets", "openai", "sphinx", "envprobe_book")
IMPORTED = f"""
import sys
import envprobe_core
from envprobe_core import compare, play, run, summarize
import envprobe_core.runs.folder, envprobe_core.runs.recompute, envprobe_core.algorithm1
print(*[name for name in {NOT_NEEDED} if name in sys.modules])
"""


def test_it_is_imported_without_what_only_pages_need():
    done = subprocess.run(
        [sys.executable, "-P", "-c", IMPORTED], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_it_runs_compares_summarizes_and_plays():
    from envprobe_core import compare, play, run, summarize

    frame = run("tooldag", "simple periodic", protocols="paper", seeds="0:20")
    assert len(frame) == 40
    tools = {"tools": ("tooldag",)}
    (gain,) = compare(frame, "simple", "periodic", strata=tools, resamples=200)["gain"]
    wide = frame.pivot(index="seed", columns="policy", values="accuracy")
    assert gain == pytest.approx(100 * (wide["simple"] - wide["periodic"]).mean())
    assert len(summarize(frame, "accuracy", "policy", resamples=200)) == 2
    assert len(play("tooldag", "simple", seed=0)) > 20


def test_a_run_is_kept_read_and_recomputed(tmp_path):
    from envprobe_core.runs import read_run
    from envprobe_core.runs.folder import open_run
    from envprobe_core.runs.manifest import RunInputs
    from envprobe_core.runs.recompute import check_run

    with open_run(tmp_path / "run", RunInputs(["tooldag"], ["simple", "no-probe"], seeds="0:6")) as folder:
        folder.fill(jobs=1)
        folder.finish()
    run = read_run(tmp_path / "run")
    assert run.manifest["finished"]
    assert len(run.episodes) == 12
    assert np.isfinite(run.episodes["accuracy"]).all()
    wrong, checked = check_run(tmp_path / "run")
    assert wrong == []
    assert "12 episodes" in checked
