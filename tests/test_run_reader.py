"""A run's folder in other hands: read as frames, repeated from its manifest, described for archives."""

import json

import numpy as np
import pytest
from processes import call, contents

from envprobe_core.errors import InputError
from envprobe_core.runs import read_run
from envprobe_core.runs.manifest import CRATE

GRID = ["run", "--world=tooldag", "--policy=simple", "--policy=periodic", "--protocol=observed", "--budget=4"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    assert call(*GRID, "--seeds=3:9", "--logs=sample:2", f"--out={folder}") == 0
    return folder


@pytest.mark.parametrize("name", ["", "manifest.json"])
def test_a_manifest_is_enough_to_repeat_a_run(made, tmp_path, capsys, name):
    assert call("run", "--from", made / name, "--out", tmp_path / "again") == 0
    assert "every result is the same as before" in capsys.readouterr().err
    assert contents(tmp_path / "again") == contents(made)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--seeds=0:2"], "--from states the whole run"),
        (["--world=tooldag"], "--from states the whole run"),
        (["--profile=perfect"], "--from states the whole run"),
        (["--model=m"], "--model is for a language model"),
    ],
)
def test_a_repeated_run_is_not_another(made, tmp_path, capsys, given, words):
    assert call("run", "--from", made, "--out", tmp_path / "again", *given) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_repeated_is_told(made, tmp_path, capsys):
    assert call("run", "--from", made, "--out", made) == 2
    assert call("run", "--from", tmp_path, "--out", tmp_path / "again") == 2
    manifest = json.loads((made / "manifest.json").read_text())
    manifest["result_hash"] = "0" * 64
    manifest["versions"]["numpy"] = "1.0"
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    capsys.readouterr()
    assert call("run", "--from", tmp_path, "--out", tmp_path / "again") == 1
    told = capsys.readouterr().err
    assert "was made differently (versions numpy: 1.0 there" in told
    assert "the results differ: 0000" in told


def test_a_run_is_read_as_frames(made):
    run = read_run(made)
    assert list(run.cells["policy"]) == ["simple", "periodic"]
    assert len(run.episodes) == 12
    steps = run.steps(policy="simple")
    assert sorted(set(steps["seed"])) == [3, 4]
    last = steps[steps["success"].notna()]
    gold, belief = (last.filter(regex=f"^{name} ").to_numpy() for name in ("gold", "belief"))
    first = run.episodes[run.episodes["policy"] == "simple"]["accuracy_terminal"].to_numpy()[:2]
    np.testing.assert_array_equal((gold == belief).mean(axis=1), first)
    with pytest.raises(InputError, match="2 cells of"):
        run.steps(world="tooldag")


def test_a_run_is_described_for_archives(made):
    graph = {entry["@id"]: entry for entry in json.loads((made / CRATE).read_text())["@graph"]}
    manifest = json.loads((made / "manifest.json").read_text())
    assert graph[CRATE]["conformsTo"]["@id"] == "https://w3id.org/ro/crate/1.1"
    assert {"name", "description", "datePublished", "license", "hasPart"} <= set(graph["./"])
    assert {part["@id"] for part in graph["./"]["hasPart"]} == {"manifest.json", *manifest["sha256"]}
    assert {name: graph[name]["sha256"] for name in manifest["sha256"]} == manifest["sha256"]
    assert graph["#engine"]["version"] == manifest["engine"]["version"]
