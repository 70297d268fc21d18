"""Servers as they are: each habit that users report, met by a run on a real server, with what it comes to."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest

from envprobe_core import compare, run, summarize
from envprobe_core.errors import InputError
from envprobe_core.llm.running import FINGERPRINT, replay_file
from envprobe_core.llm.store import check_store
from envprobe_core.runs import read_run
from processes import call
from scripted_server import server_process
from server_habits import HABITS, LOOSE, STOPPED, STRICT, UNREADABLE

KEY = "sk-a-secret-of-the-habits/0123456789"
RUN = ["--world", "tooldag", "--policy", "simple", "--regime", "S1", "--seeds", "0:1", "--logs", "none"]
UPDATES, ACCURACY = 21, "0.733"  # of this episode, where every update is read
EVERY_UPDATE = [name for name, habit in HABITS.items() if habit.read in (STRICT, LOOSE)]
AT_TIMES = [name for name, habit in HABITS.items() if habit.every or habit.after]
STOPS = [name for name, one in HABITS.items() if one.read in (UNREADABLE, STOPPED) and name not in AT_TIMES]


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


def test_an_episode_of_which_nothing_could_be_read_is_named_counted_and_in_no_mean(run_on):
    code, printed, out = run_on("turns-to-prose", "--seeds", "0:3")
    assert (code, printed.err) == (0, "")
    whole = pd.read_parquet(out / "episodes.parquet")
    played = whole[whole["invalid_share"] < 1]
    unread = sorted({0, 1, 2} - {*played["seed"]})
    assert 1 <= len(unread) <= 2  # two episodes are under way at once
    *_, last = printed.out.splitlines()
    named = "; ".join(f"tooldag simple paper seed {seed}" for seed in unread)
    assert re.match(rf"{len(unread)} episodes? of 3 without one belief update .*: {named}$", last)
    assert json.loads((out / "manifest.json").read_text())["answered"][0]["unread"] == len(unread)
    assert f"{played['accuracy'].mean():.3f} [" in printed.out
    assert played["accuracy"].mean() < whole["accuracy"].mean()
    assert read_run(out).episodes["seed"].tolist() == played["seed"].tolist()
    told = summarize(whole, "accuracy", "policy").iloc[0]
    assert (told["n"], told["mean"]) == (len(played), pytest.approx(played["accuracy"].mean()))


def test_who_answered_is_told_wherever_the_run_is(run_on, tmp_path, capsys):
    code, printed, out = run_on("falls-back")
    assert code == 0
    assert "answered by: falls-back 14, llama-3-8b 7" in printed.out.splitlines()
    who = {"falls-back": 14, "llama-3-8b": 7}
    (asked,) = map(json.loads, (out / "calls.jsonl").read_text().splitlines())
    assert asked["answered_by"] == who
    (answered,) = json.loads((out / "manifest.json").read_text())["answered"]
    assert (answered["answered_by"], answered["fingerprints"]) == (who, [FINGERPRINT])
    store, replay = tmp_path / "falls-back.answers.sqlite", tmp_path / "a.replay.gz"
    assert call("store", "verify", store, "--run", out) == 0
    assert call("store", "export", store, "--run", out, "--out", replay) == 0
    assert call("run", *RUN, "--replay", replay, "--out", tmp_path / "again") == 0
    assert "answered by: falls-back 14, llama-3-8b 7" in capsys.readouterr().out
    assert replay_file(replay).frame["answered_by"].tolist() == ["falls-back + llama-3-8b"]


def test_episodes_that_several_models_answered_are_compared_where_that_is_asked_for_alone():
    frame = run("tooldag", "simple periodic", protocols="paper", seeds="0:12").assign(answered_by="q")
    tools = {"tools": ("tooldag",)}
    known = compare(frame, "simple", "periodic", strata=tools)
    for who in ("llama", "q + llama"):
        mixed = frame.assign(answered_by=frame["answered_by"].where(frame["policy"] == "simple", who))
        with pytest.raises(InputError, match=r"several models answered \(periodic: .*llama; simple: q\)"):
            compare(mixed, "simple", "periodic", strata=tools)
        pd.testing.assert_frame_equal(
            compare(mixed, "simple", "periodic", strata=tools, across_models=True), known
        )
