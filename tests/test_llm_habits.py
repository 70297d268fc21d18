"""Servers as they are: each habit that users report, met by a run on a real server, with what it comes to."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from envprobe_core.llm.store import check_store
from processes import call
from scripted_server import server_process
from server_habits import HABITS, LOOSE, STOPPED, STRICT, UNREADABLE

KEY = "sk-a-secret-of-the-habits/0123456789"
RUN = ["--world", "tooldag", "--policy", "simple", "--regime", "S1", "--seeds", "0:1", "--logs", "none"]
UPDATES, ACCURACY = 21, "0.733"  # of this episode, where every update is read
EVERY_UPDATE = [name for name, habit in HABITS.items() if habit.read in (STRICT, LOOSE)]
STOPS = [name for name, habit in HABITS.items() if habit.read in (UNREADABLE, STOPPED) and not habit.every]


@pytest.fixture(scope="module")
def server():
    with server_process() as scripted:
        yield scripted


@pytest.fixture
def run_on(server, tmp_path, monkeypatch, capsys):
    """Run on a server with a habit: exit code, what is printed, and the folder."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def run(habit, *more):
        out = tmp_path / habit
        asking = ["--agent", "openai", "--model", habit, "--base-url", server.url, "--concurrency", "1"]
        code = call("run", *RUN, *asking, "--reasks", "0", *more, "--out", out)
        printed = capsys.readouterr()
        assert KEY not in printed.out + printed.err
        assert not list(check_store(out.with_name(f"{habit}.answers.sqlite")))
        return code, printed, out

    return run


def test_the_habits_of_servers_are_at_least_thirty_five():
    assert len(HABITS) >= 35


@pytest.mark.parametrize("name", EVERY_UPDATE)
def test_a_habit_takes_its_rung_and_changes_no_number(name, run_on, tmp_path):
    habit = HABITS[name]
    code, printed, out = run_on(name)
    assert (code, printed.err) == (0, ""), printed.err
    assert ACCURACY in printed.out
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest.get("requests", {}) == ({name: list(habit.rungs)} if habit.rungs else {})
    (asked,) = map(json.loads, (out / "calls.jsonl").read_text().splitlines())
    loose = UPDATES if habit.read == LOOSE else 0
    assert (asked["updates"], asked["invalid_updates"], asked["loose_updates"]) == (UPDATES, 0, loose)
    (condition,) = manifest["conditions"]
    assert (condition["invalid_share"], condition["loose_share"]) == (0, loose / UPDATES)
    assert call("run", *RUN, "--out", tmp_path / "simulated") == 0
    found, plain = (pd.read_parquet(each / "episodes.parquet") for each in (out, tmp_path / "simulated"))
    assert (found.pop("loose_share") == loose / UPDATES).all()
    pd.testing.assert_frame_equal(
        found.drop(columns="profile"), plain.drop(columns=["profile", "loose_share"])
    )


@pytest.mark.parametrize("name", STOPS)
def test_a_habit_that_leaves_nothing_to_read_stops_the_run_and_is_named(name, run_on):
    habit = HABITS[name]
    code, printed, out = run_on(name, "--timeout", "1", "--attempts", "1")
    assert (code, printed.out, printed.err.count("\n")) == (1, "", 1), printed.err
    assert habit.says in printed.err
    assert ("no belief update of the first episode could be read" in printed.err) == (
        habit.read == UNREADABLE
    )
    assert "all answers are kept" in printed.err
    assert not (out / "episodes.parquet").exists()


def test_updates_that_are_refused_now_and_then_are_counted_wherever_the_run_is_told(run_on):
    name = "refuses-now-and-then"
    code, printed, out = run_on(name)
    assert code == 0
    invalid = UPDATES // HABITS[name].every
    assert f"{invalid} belief updates invalid" in printed.out
    assert f"{invalid / UPDATES:.3f}" in printed.out
    (condition,) = json.loads((out / "manifest.json").read_text())["conditions"]
    assert condition["invalid_share"] == pytest.approx(invalid / UPDATES)
    assert pd.read_parquet(out / "episodes.parquet")["invalid_share"].item() == condition["invalid_share"]
