"""`run --agent openai`, `estimate` and `store`, as a user meets them: real processes, a real server."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
import zlib

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from processes import COMMAND, call, contents, envprobe, keyless
from scripted_server import CONTENT, PASSING, server_process

from envprobe_core.cells import make_cell
from envprobe_core.grid import run_cells
from envprobe_core.llm.calls import read_prices
from envprobe_core.llm.prompts import PROMPT_VERSION
from envprobe_core.llm.store import check_store, read_stats
from envprobe_core.runs.tables import HEADER

BACKGROUND = ("sh", "-c", "trap '' INT; exec \"$@\"", "sh")  # as a script starts what ends with &
KEY = "sk-a-secret-of-the-run-tests/0123456789"
CLOSED = "http://127.0.0.1:9/v1"  # nothing listens there
SMALL = ["--world", "tooldag", "--policy", "simple", "--regime", "S1", "--seeds", "0:6"]
STEPS = 6 * 21  # answers of SMALL: one at each t = 0..H
MODEL = ["--agent", "openai", "--model", "gpt-4o-mini"]
UNLIKE = "calls.jsonl"  # what was asked again differs where answers were spoiled


def stats_of(store):
    return read_stats(store, read_prices())


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """The engine is compiled before the first process is looked at, which would say that it does so."""
    run_cells([make_cell("tooldag", "simple", "S1")], np.arange(1))


@pytest.fixture(scope="module")
def plain():
    """A server that does nothing wrong."""
    with server_process() as server:
        yield server


@pytest.fixture(scope="module")
def undisturbed(plain, tmp_path_factory):
    """The small run, as it is when nothing happens; its answers stand beside it."""
    run = tmp_path_factory.mktemp("runs") / "run"
    done = envprobe("run", *SMALL, *MODEL, "--base-url", plain.url, "--max-cost", "1", "--out", run)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{STEPS} answers (0 asked again), 0 belief updates invalid" in done.stdout
    return run


@pytest.fixture
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.mark.usefixtures("no_key")
def test_a_run_through_the_server_equals_the_simulated_run(plain, tmp_path, capsys):
    grid = ["--world", "all", "--regime", "S1", "--seeds", "50:51", "--protocol", "released"]
    for policy in ("simple", "random", "judge", "yoked"):
        grid += ["--policy", policy]
    model, simulated = tmp_path / "model", tmp_path / "simulated"
    assert call("run", *grid, *MODEL, "--base-url", plain.url, "--out", model) == 0
    assert call("run", *grid, "--out", simulated) == 0
    capsys.readouterr()
    tables = [pd.read_parquet(run / "episodes.parquet") for run in (model, simulated)]
    assert set(tables[0].pop("profile")) == {"gpt-4o-mini"}
    assert set(tables[1].pop("profile")) == {"typical"}
    pd.testing.assert_frame_equal(*tables)
    for log in sorted((model / "logs").iterdir()):
        ours, others = (pq.read_table(run / "logs" / log.name) for run in (model, simulated))
        assert ours.equals(others)
        agent = json.loads(ours.schema.metadata[HEADER])["agent"]
        assert (agent["model"], agent["prompt_version"]) == ("gpt-4o-mini", PROMPT_VERSION)
        assert "agent" not in json.loads(others.schema.metadata[HEADER])
    assert call("recompute", model) == 0


def asked_and_stored(server, store):
    """Requests that the server has seen, and answers that are stored."""
    requests = server.counts()["requests"]
    with contextlib.closing(sqlite3.connect(store)) as connection:
        query = "SELECT count(*) FROM calls WHERE response NOT NULL"
        return requests, connection.execute(query).fetchone()[0]


def test_six_kills_lose_nothing_and_repeat_only_what_was_under_way(undisturbed, tmp_path):
    run, store, concurrency = tmp_path / "run", tmp_path / "run.answers.sqlite", 4
    dice, lost = random.Random(5), 0
    asked_before = stored_before = 0
    with server_process("--latency", "0.03") as server:
        given = ["run", *SMALL, *MODEL, "--base-url", server.url, "--max-cost", "1", "--out", str(run)]
        given += ["--concurrency", str(concurrency)]
        for _ in range(6):
            with subprocess.Popen(
                [*COMMAND, *given], env=keyless(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ) as process:
                while server.counts()["requests"] == asked_before and process.poll() is None:
                    time.sleep(0.002)
                time.sleep(dice.uniform(0, 0.12))
                assert process.poll() is None, "the run was over before it was killed"
                process.send_signal(signal.SIGKILL)
            time.sleep(0.1)  # let the server read what was on its way
            asked, stored = asked_and_stored(server, store)
            under_way = (asked - asked_before) - (stored - stored_before)
            assert 0 <= under_way <= concurrency
            lost, asked_before, stored_before = lost + under_way, asked, stored
        done = envprobe(*given)
        assert done.returncode == 0, done.stderr
        counts = server.counts()
    assert contents(run) == contents(undisturbed)
    assert counts["distinct"] == STEPS
    assert counts["requests"] == STEPS + lost
    attempts = stats_of(store)["attempts"]
    assert attempts.pop("answer") == STEPS  # so nothing that was stored was asked again
    assert lost <= attempts.pop("started", 0) <= 6 * concurrency
    assert not attempts


@pytest.mark.parametrize(
    ("order", "shell"),
    [(signal.SIGINT, ()), (signal.SIGTERM, ()), (signal.SIGTERM, BACKGROUND)],
    ids=["interrupt", "end", "end-in-background"],
)
def test_an_interrupted_run_says_what_is_kept_and_leaves_no_claim(order, shell, tmp_path):
    run, store = tmp_path / "run", tmp_path / "run.answers.sqlite"
    with server_process("--latency", "1") as server:
        given = [*shell, *COMMAND, "run", *SMALL, *MODEL, "--base-url", server.url, "--out", str(run)]
        with subprocess.Popen(given, env=keyless(), stderr=subprocess.PIPE, text=True) as process:
            while server.counts()["answered"] == 0:
                time.sleep(0.01)
            process.send_signal(order)
            _, said = process.communicate(timeout=600)
        asked = server.counts()["requests"]
    assert process.returncode == 130
    assert said == (
        f"envprobe: interrupted; nothing was scored, all answers are kept in {store}: run the command again "
        "to continue\n"
    )
    assert stats_of(store)["attempts"] == {"answer": asked}


def test_a_fifth_of_mixed_faults_changes_no_byte(undisturbed, tmp_path):
    run = tmp_path / "run"
    with server_process("--faults", "mixed", "--rate", "0.2") as server:
        limits = ["--timeout", "8", "--attempts", "12", "--concurrency", "16", "--max-cost", "1"]
        done = envprobe(
            "run", *SMALL, *MODEL, "--base-url", server.url, *limits, "--out", run, OPENAI_API_KEY=KEY
        )
        assert done.returncode == 0, done.stderr
        faults = server.counts()["faults"]
    assert len(faults) >= 12, faults
    assert sum(faults.values()) > STEPS / 8
    one, other = contents(run), contents(undisturbed)
    calls = [json.loads(line) for line in one.pop(UNLIKE).splitlines()]
    other.pop(UNLIKE)
    assert one == other
    passing, content = (sum(faults.get(name, 0) for name in kind) for kind in (PASSING, CONTENT))
    assert sum(line["reasks"] for line in calls) == content > 0  # an answer that cannot be used is an answer
    assert sum(line["invalid_updates"] for line in calls) == 0
    stats = stats_of(tmp_path / "run.answers.sqlite")
    assert stats["wasted_attempts"] >= passing > 0  # a slow machine adds time-outs of its own


def test_a_replay_needs_no_key_and_no_connection(undisturbed, tmp_path, monkeypatch, capsys):
    store = undisturbed.with_name("run.answers.sqlite")
    closed = ["--base-url", CLOSED, "--store", str(store), "--replay-only"]
    program = (
        "import socket, sys\n"
        "def refuse(*given): raise AssertionError('a connection')\n"
        "socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse\n"
        "from envprobe_core.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    given = [*SMALL, *MODEL, *closed, "--out", str(tmp_path / "run")]
    done = envprobe("run", *given, command=[sys.executable, "-c", program])
    assert (done.returncode, done.stderr) == (0, "")
    assert contents(tmp_path / "run") == contents(undisturbed)
    other = [*SMALL[:-1], "0:7", *MODEL, *closed, "--out", str(tmp_path / "more")]
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert call("run", *other) == 1
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "has no answer to" in said.err
    assert "update of episode 6" in said.err
    assert not (tmp_path / "more" / "episodes.parquet").exists()


@pytest.mark.usefixtures("no_key")
def test_an_exported_run_replays_from_a_small_file(undisturbed, tmp_path, capsys):
    store, file = undisturbed.with_name("run.answers.sqlite"), tmp_path / "answers.replay.gz"
    assert call("store", "export", store, "--run", undisturbed, "--out", file, "--note", "a test") == 0
    assert f"{STEPS} answers of gpt-4o-mini" in capsys.readouterr().out
    assert file.stat().st_size < store.stat().st_size / 10
    assert call("run", *SMALL, "--replay", file, "--out", tmp_path / "run") == 0
    assert contents(tmp_path / "run") == contents(undisturbed)
    assert call("store", "verify", store) == 0
    assert call("store", "stats", store, "--json") == 0
    printed = capsys.readouterr().out
    stats = json.loads(printed[printed.index("\n{") :])
    assert (stats["questions"], stats["answered"], stats["wasted_attempts"]) == (STEPS, STEPS, 0)
    assert 0 < stats["paid_usd"] < 0.1
    assert call("store", "stats", store, "--json", "--run", undisturbed) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert [(cell["policy"], cell["questions"], cell["shared_usd"]) for cell in cells] == [
        ("simple", STEPS, 0)
    ]
    assert cells[0]["usd"] == pytest.approx(stats["paid_usd"])
    assert call("store", "stats", store, "--run", undisturbed) == 0
    assert capsys.readouterr().out.count("\ncell ") == len(cells)


def test_overlapping_runs_share_one_store_and_pay_for_nothing_twice(undisturbed, tmp_path):
    """Three runs at once, and looks at their store: whoever ends first takes nothing from the others."""
    shared = tmp_path / "shared.sqlite"
    with server_process("--latency", "0.02") as server:
        given = [*COMMAND, "run", *SMALL, *MODEL, "--base-url", server.url, "--store", str(shared)]
        runs = [tmp_path / name for name in ("one", "two", "three")]
        processes = [
            subprocess.Popen([*given, "--out", str(run)], env=keyless(), stdout=subprocess.DEVNULL)
            for run in runs
        ]
        while server.counts()["requests"] == 0:
            time.sleep(0.01)
        looks = [envprobe("store", what, shared) for what in ("stats", "verify")]
        assert [process.wait(timeout=600) for process in processes] == [0, 0, 0]
        assert server.counts()["requests"] == STEPS
    assert [(look.returncode, look.stderr) for look in looks] == [(0, ""), (0, "")]
    assert all(contents(run) == contents(undisturbed) for run in runs)
    assert stats_of(shared)["attempts"] == {"answer": STEPS}
    assert not list(check_store(shared))
    for run in runs:
        assert call("store", "verify", shared, "--run", run) == 0


def everything(folder):
    """All bytes under a folder, and those within its compressed files."""
    found = b""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        found += path.read_bytes()
        if path.suffix == ".gz":
            found += gzip.decompress(path.read_bytes())
        if path.suffix == ".sqlite":
            with contextlib.closing(sqlite3.connect(path)) as connection:
                for row in connection.execute("SELECT question, response FROM calls"):
                    found += b"".join(zlib.decompress(content) for content in row if content)
    return found


@pytest.mark.parametrize(
    ("faults", "code"), [("echo,echo-in-answer", 0), ("key-refused", 1)], ids=["passing", "refused"]
)
def test_the_key_is_nowhere(faults, code, tmp_path):
    with server_process("--faults", faults, "--rate", "0.3" if code == 0 else "1") as server:
        given = [*SMALL[:-1], "0:2", *MODEL, "--base-url", server.url, "--out", tmp_path / "run"]
        done = envprobe("run", *given, OPENAI_API_KEY=KEY, OPENAI_LOG="debug", PYTHONASYNCIODEBUG="1")
    assert done.returncode == code, done.stderr
    assert KEY not in done.stdout + done.stderr
    assert KEY.encode() not in everything(tmp_path)
    if code:
        assert [line for line in done.stderr.splitlines() if line.startswith("envprobe: ")] == [
            "envprobe: local gave no answer: key-refused (HTTP 401: Incorrect API key provided: [API key]); "
            f"nothing was scored, all answers are kept in {tmp_path / 'run.answers.sqlite'}: "
            "run the command again to continue"
        ]
        assert not (tmp_path / "run" / "episodes.parquet").exists()


@pytest.mark.usefixtures("no_key")
def test_the_cap_stops_a_run_that_a_higher_one_completes(plain, undisturbed, tmp_path, capsys):
    given = ["run", *SMALL, *MODEL, "--base-url", plain.url, "--out", tmp_path / "run"]
    assert call(*given, "--max-cost", "0.01") == 1
    said = capsys.readouterr().err
    assert said.startswith("envprobe: the cap of $0.01 is reached: ")
    assert said.count("\n") == 1
    store = tmp_path / "run.answers.sqlite"
    first = stats_of(store)
    assert 0.004 < first["paid_usd"] <= 0.01
    assert first["answered"] > 0
    assert call(*given, "--max-cost", "1") == 0
    assert contents(tmp_path / "run") == contents(undisturbed)
    assert stats_of(store)["attempts"] == {"answer": STEPS}


@pytest.mark.usefixtures("no_key")
def test_an_estimate_of_all_seeds_is_what_is_asked(undisturbed, capsys):
    grid = [*SMALL, "--policy", "placebo"]  # which shares its first answers with Simple
    assert call("estimate", *grid, "--model", "gpt-4o-mini", "--sample", "6", "--json") == 0
    both = json.loads(capsys.readouterr().out)
    assert call("estimate", *SMALL, "--model", "gpt-4o-mini", "--sample", "6", "--json") == 0
    one = json.loads(capsys.readouterr().out)
    stats = stats_of(undisturbed.with_name("run.answers.sqlite"))
    assert (one["episodes"], one["steps"], one["calls"]) == (6, STEPS, stats["questions"])
    assert both["steps"] == 2 * STEPS
    assert STEPS < both["calls"] < 2 * STEPS
    paid = stats["paid_usd"]
    assert paid <= one["cost_usd"] <= 1.3 * paid
    assert one["most_usd"] > one["cost_usd"]
    assert call("estimate", *SMALL, "--model", "unheard-of") == 0
    assert "no price for unheard-of" in capsys.readouterr().out


@pytest.mark.usefixtures("no_key")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "m"], "--model is for a language model"),
        (["--replay-only"], "--replay-only is for a language model"),
        (["--agent", "gpt"], "unknown agent 'gpt'"),
        (["--agent", "openai"], "needs --model"),
        ([*MODEL], "OPENAI_API_KEY is not set"),
        ([*MODEL, "--jobs", "2"], "--jobs is for the simulated agent"),
        ([*MODEL, "--profile", "perfect"], "is of the simulated agent"),
        ([*MODEL, "--base-url", "127.0.0.1:80"], "--base-url '127.0.0.1:80': accepted is"),
        ([*MODEL, "--base-url", "http://u:secret@host/v1"], "without a password"),
        (["--agent", "openai", "--model", "own", "--base-url", CLOSED, "--max-cost", "1"], "price for 'own'"),
        ([*MODEL, "--base-url", CLOSED, "--max-cost", "-1"], "--max-cost -1.0"),
        ([*MODEL, "--base-url", CLOSED, "--timeout", "0"], "--timeout 0.0"),
        ([*MODEL, "--replay-only"], "does not exist"),
        (["--replay", "nowhere.gz"], "nowhere.gz cannot be read"),
        ([*MODEL, "--prompts", "3"], "unknown prompts '3'"),
        (["--agent", "local", "--model", "nowhere.gguf"], "nowhere.gguf cannot be read"),
        ([*MODEL, "--reasks", "-1"], "reasks"),
    ],
)
def test_what_cannot_be_meant_is_one_line(arguments, words, tmp_path, capsys):
    assert call("run", *SMALL, *arguments, "--out", tmp_path / "run") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert "secret" not in captured.err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--judge-model", "m"), "--judge-model is stated by"),
        (("--reasks", "2"), "--reasks is stated by"),
        (("--base-url", "http://elsewhere.test/v1"), "was answered by 'local'; name its server"),
        ((), "was answered by 'local'; name its server"),
    ],
)
def test_a_repeated_run_asks_the_same_model_at_the_same_provider(undisturbed, tmp_path, given, words):
    given = ("run", "--from", undisturbed, "--out", tmp_path / "run", *given)
    done = envprobe(*given, OPENAI_API_KEY=KEY)
    assert (done.returncode, done.stderr.count("\n"), words in done.stderr) == (2, 1, True), done.stderr
    assert not list(tmp_path.iterdir())


def test_a_local_server_is_asked_past_any_proxy(plain, undisturbed, tmp_path):
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"), "http://127.0.0.1:9")
    done = envprobe("run", *SMALL, *MODEL, "--base-url", plain.url, "--out", tmp_path / "run", **proxies)
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "run") == contents(undisturbed)
    given = ("run", *SMALL, *MODEL, "--base-url", "http://elsewhere.test/v1", "--attempts", "1")
    odd = {"OPENAI_API_KEY": KEY, "HTTPS_PROXY": "nonsense", "HTTP_PROXY": "x:y"}
    done = envprobe(*given, "--out", tmp_path / "odd", **odd)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "no connection can be made as this environment says" in done.stderr


def test_nothing_of_the_model_is_loaded_for_a_simulated_run(tmp_path):
    program = (
        "import sys\nsys.modules['coverage'] = None\n"  # Numba loads it where it is, and that loads sqlite3
        "from envprobe_core.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n    assert not end.code\n"
        "loaded = {'openai', 'aiohttp', 'sqlite3', 'asyncio'} & set(sys.modules)\nassert not loaded, loaded\n"
    )
    done = envprobe("run", *SMALL, "--out", tmp_path / "run", command=[sys.executable, "-c", program])
    assert (done.returncode, done.stderr) == (0, "")
