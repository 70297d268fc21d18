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

from daily import nightly
from envprobe_core.agents.model import PROMPT_VERSION
from envprobe_core.conditions import make_condition
from envprobe_core.experiment import run_conditions
from envprobe_core.llm.calls import read_prices
from envprobe_core.llm.store import check_store, read_stats
from envprobe_core.runs.tables import HEADER
from processes import COMMAND, call, contents, envprobe, going, keyless, wait_for
from scripted_server import CONTENT, PASSING, server_process

BACKGROUND = ("sh", "-c", "trap '' INT; exec \"$@\"", "sh")  # as a script starts what ends with &
KEY = "sk-a-secret-of-the-run-tests/0123456789"
LOUD = {"OPENAI_API_KEY": KEY, "OPENAI_LOG": "debug", "PYTHONASYNCIODEBUG": "1"}  # all logs there are
CLOSED = ["--base-url", "http://127.0.0.1:9/v1"]  # nothing listens there
SMALL = ["--world", "tooldag", "--policy", "simple", "--regime", "S1", "--seeds", "0:6"]
STEPS = 6 * 21  # answers of SMALL: one at each t = 0..H
MODEL = ["--agent", "openai", "--model", "gpt-4o-mini"]
UNLIKE = "calls.jsonl"  # what was asked again differs where answers were spoiled


def asking(server, *given):
    """The small run on a server, as it is given to the command."""
    return ["run", *SMALL, *MODEL, "--base-url", server.url, *map(str, given)]


def stats_of(store):
    return read_stats(store, read_prices())


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """The engine is compiled before the first process is looked at, which would say that it does so."""
    run_conditions([make_condition("tooldag", "simple", "S1")], np.arange(1))


@pytest.fixture(scope="module")
def plain():
    """A server that does nothing wrong."""
    with server_process() as server:
        yield server


@pytest.fixture(scope="module")
def undisturbed(plain, tmp_path_factory):
    """The small run, as it is when nothing happens but that a cap stops it, and a higher one completes it."""
    run = tmp_path_factory.mktemp("runs") / "run"
    store = run.with_name("run.answers.sqlite")
    done = envprobe(*asking(plain, "--max-cost", "0.01", "--out", run))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("envprobe: the cap of $0.01 is reached: ")
    assert 0.004 < stats_of(store)["paid_usd"] <= 0.01
    done = envprobe(*asking(plain, "--max-cost", 1, "--out", run))
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{STEPS} answers (0 asked again), 0 belief updates invalid" in done.stdout
    assert stats_of(store)["attempts"] == {"answer": STEPS}
    return run


@pytest.fixture
def store(undisturbed):
    """The answers of the undisturbed run."""
    return undisturbed.with_name("run.answers.sqlite")


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_a_run_through_the_server_equals_the_simulated_run(undisturbed, tmp_path):
    assert call("run", *SMALL, "--out", tmp_path / "simulated") == 0
    model, simulated = (
        pd.read_parquet(run / "episodes.parquet") for run in (undisturbed, tmp_path / "simulated")
    )
    assert (set(model.pop("profile")), set(simulated.pop("profile"))) == ({"gpt-4o-mini"}, {"typical"})
    pd.testing.assert_frame_equal(model, simulated)
    (log,) = (undisturbed / "logs").iterdir()
    ours, others = (pq.read_table(path) for path in (log, tmp_path / "simulated" / "logs" / log.name))
    assert ours.equals(others)
    agent = json.loads(ours.schema.metadata[HEADER])["agent"]
    assert (agent["model"], agent["prompt_version"]) == ("gpt-4o-mini", PROMPT_VERSION)
    assert "agent" not in json.loads(others.schema.metadata[HEADER])
    assert call("recompute", undisturbed) == 0


# ---------------------------------------------------------------- nothing paid is lost


@pytest.mark.nightly
def test_kills_lose_nothing_and_repeat_only_what_was_under_way(undisturbed, tmp_path):
    run, concurrency, kills, dice = tmp_path / "run", 4, 4, random.Random(5)
    with server_process(0.06) as server:
        given = asking(server, "--max-cost", 1, "--out", run, "--concurrency", concurrency)
        for _ in range(kills):
            before = server.counts()["requests"]
            with going(*given) as process:
                wait_for(lambda before=before: server.counts()["requests"] > before, process)
                time.sleep(dice.uniform(0, 0.12))
                assert process.poll() is None, "the run was over before it was killed"
        done = envprobe(*given)
        assert done.returncode == 0, done.stderr
        counts = server.counts()
    assert contents(run) == contents(undisturbed)
    assert STEPS == counts["distinct"] < counts["requests"] <= STEPS + kills * concurrency
    attempts = stats_of(tmp_path / "run.answers.sqlite")["attempts"]
    assert attempts.pop("answer") == STEPS  # and none that was stored was asked again, a duplicate
    assert attempts.pop("started") >= counts["requests"] - STEPS
    assert not attempts


@pytest.mark.parametrize(
    ("order", "shell", "how"),
    nightly(
        [(signal.SIGINT, (), "interrupted"), (signal.SIGTERM, BACKGROUND, "terminated")],
        (signal.SIGINT, (), "interrupted"),
    ),
)
def test_an_interrupted_run_says_what_is_kept_and_leaves_no_claim(order, shell, how, tmp_path):
    store = tmp_path / "run.answers.sqlite"
    with server_process(1) as server:
        with going(*asking(server, "--out", tmp_path / "run"), command=[*shell, *COMMAND]) as process:
            wait_for(lambda: server.counts()["answered"], process)
            process.send_signal(order)
            _, said = process.communicate(timeout=600)
        asked = server.counts()["requests"]
    assert process.returncode == 128 + order
    assert said == (
        f"envprobe: {how}; nothing was scored, all answers are kept in {store}: run the command again "
        "to continue\n"
    )
    assert stats_of(store)["attempts"] == {"answer": asked}


def everything(folder):
    """All bytes under a folder, and those within its compressed files."""
    found = contents(folder)
    whole = [*found.values(), *(gzip.decompress(found[name]) for name in found if name.endswith(".gz"))]
    with contextlib.closing(sqlite3.connect(folder / "run.answers.sqlite")) as connection:
        for row in connection.execute("SELECT question, response FROM calls"):
            whole += [zlib.decompress(content) for content in row if content]
    return b"".join(whole)


@pytest.mark.nightly
def test_faults_of_every_kind_change_no_byte_and_the_key_that_some_repeat_is_nowhere(undisturbed, tmp_path):
    run = tmp_path / "run"
    with server_process(faults="mixed", rate=0.3) as server:
        limits = ["--timeout", 8, "--attempts", 12, "--concurrency", 16, "--max-cost", 1]
        done = envprobe(*asking(server, *limits, "--out", run), **LOUD)
        assert done.returncode == 0, done.stderr
        faults = server.counts()["faults"]
    assert len(faults) >= 10, faults
    assert KEY not in done.stdout + done.stderr
    assert KEY.encode() not in everything(tmp_path)
    one, other = contents(run), contents(undisturbed)
    calls = [json.loads(line) for line in one.pop(UNLIKE).splitlines()]
    other.pop(UNLIKE)
    told, undisturbed_told = (json.loads(files.pop("manifest.json")) for files in (one, other))
    (said,), (usual,) = (own.pop("answered") for own in (told, undisturbed_told))
    assert (one, told) == (other, undisturbed_told)
    passing, content = (sum(faults.get(name, 0) for name in kind) for kind in (PASSING, CONTENT))
    assert said.pop("answered_by") == {"gpt-4o-mini": STEPS + content}
    assert usual.pop("answered_by") == {"gpt-4o-mini": STEPS}
    assert said == usual
    assert sum(line["reasks"] for line in calls) == content > 0  # an answer that cannot be used is an answer
    assert sum(line["invalid_updates"] for line in calls) == 0
    stats = stats_of(tmp_path / "run.answers.sqlite")
    assert stats["wasted_attempts"] >= passing + content  # a slow machine adds time-outs of its own
    assert stats["attempts"]["unusable"] == content


@pytest.mark.nightly
def test_a_refused_key_stops_the_run_in_one_line_that_does_not_show_it(tmp_path):
    with server_process(faults="key-refused") as server:
        done = envprobe(*asking(server, "--out", tmp_path / "run"), **LOUD)
    assert done.returncode == 1
    assert KEY not in done.stdout + done.stderr
    assert KEY.encode() not in everything(tmp_path)
    assert [line for line in done.stderr.splitlines() if line.startswith("envprobe: ")] == [
        "envprobe: local gave no answer: key-refused (HTTP 401: Incorrect API key provided: [API key]); "
        f"nothing was scored, all answers are kept in {tmp_path / 'run.answers.sqlite'}: "
        "mend this and run the command again to continue"
    ]
    assert not (tmp_path / "run" / "episodes.parquet").exists()


@pytest.mark.nightly
def test_a_run_whose_first_episode_is_unreadable_ends_with_code_1_and_keeps_the_answers(tmp_path, capsys):
    run, store = tmp_path / "run", tmp_path / "run.answers.sqlite"
    with server_process(faults="prose") as server:
        given = asking(
            server, "--reasks", 0, "--max-tokens", 99, "--extra-body", '{"top_k": 1}', "--out", run
        )
        done = envprobe(*given)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
        assert "no belief update of the first episode could be read; first fault: the answer" in done.stderr
        assert "all answers are kept" in done.stderr
        kept = stats_of(store)["answered"]
        assert kept >= STEPS // 6
        assert not (run / "episodes.parquet").exists()
        manifest = json.loads((run / "manifest.json").read_text())
        assert (manifest["finished"], manifest["inputs"]["agent"]["max_tokens"]) == (False, 99)
        assert json.loads(manifest["inputs"]["agent"]["extra_body"]) == {"top_k": 1}
    assert call(*given, "--replay-only") == 1
    assert "could be read; first fault" in capsys.readouterr().err
    assert stats_of(store)["answered"] == kept


@pytest.mark.nightly
def test_overlapping_runs_share_one_store_and_pay_for_nothing_twice(undisturbed, tmp_path):
    """Two runs at once, and looks at their store: whoever ends first takes nothing from the other."""
    shared, runs = tmp_path / "shared.sqlite", [tmp_path / name for name in ("one", "two")]
    with server_process(0.02) as server:
        given = [*COMMAND, *asking(server, "--store", shared, "--out")]
        quiet = {"env": keyless(), "stdout": subprocess.DEVNULL}
        processes = [subprocess.Popen([*given, run], **quiet) for run in runs]
        wait_for(lambda: server.counts()["requests"], processes[0])
        assert [call("store", what, shared) for what in ("stats", "verify")] == [0, 0]
        assert [process.wait(timeout=600) for process in processes] == [0, 0]
        assert server.counts()["requests"] == STEPS
    assert all(contents(run) == contents(undisturbed) for run in runs)
    assert stats_of(shared)["attempts"] == {"answer": STEPS}
    assert not list(check_store(shared))
    assert call("store", "verify", shared, "--run", runs[0]) == 0


# ---------------------------------------------------------------- replays

OFFLINE = """
import socket, sys
def refuse(*given): raise AssertionError("a connection")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
from envprobe_book.cli import main
main(sys.argv[1:])
"""


def test_an_exported_run_replays_from_a_small_file_without_a_key_or_a_connection(
    undisturbed, store, tmp_path, capsys
):
    file = tmp_path / "answers.replay.gz"
    assert call("store", "export", store, "--run", undisturbed, "--out", file, "--note", "a test") == 0
    assert f"{STEPS} answers of gpt-4o-mini" in capsys.readouterr().out
    assert file.stat().st_size < store.stat().st_size / 10
    from_store = [*MODEL, *CLOSED, "--store", store, "--replay-only"]
    for name, given in {"one": from_store, "two": ["--replay", file]}.items():
        done = envprobe(
            "run", *SMALL, *given, "--out", tmp_path / name, command=[sys.executable, "-c", OFFLINE]
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert contents(tmp_path / name) == contents(undisturbed)
    assert call("run", *SMALL[:-1], "0:7", *from_store, "--out", tmp_path / "more") == 1
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "has no answer to" in said.err
    assert "update of episode 6" in said.err
    assert not (tmp_path / "more" / "episodes.parquet").exists()
    for given in ("--world", "graphnav"), ("--policy", "cd"), ("--protocol", "observed"), ("--seeds", "5:7"):
        assert call("run", *SMALL, *given, "--replay", file, "--out", tmp_path / "other") == 2
        assert capsys.readouterr().err.endswith("; it holds tooldag; simple; paper; S1, seeds 0:6\n")
        assert not (tmp_path / "other").exists()
    assert call("run", *SMALL, "--logs", "none", "--out", tmp_path / "simulated") == 0
    assert call("store", "verify", store, "--run", tmp_path / "simulated") == 2
    said = tmp_path / "one" / "calls.jsonl"
    said.write_text(said.read_text().replace('"calls":21', '"calls":20', 1))
    assert call("store", "verify", store, "--run", tmp_path / "one") == 1
    assert "calls.jsonl, line 1: it does not say what was asked" in capsys.readouterr().err
    manifest = json.loads((undisturbed / "manifest.json").read_text())
    manifest["inputs"]["seeds"] = "6:12"  # those of another store
    (tmp_path / "one" / "manifest.json").write_text(json.dumps(manifest))
    capsys.readouterr()
    assert call("store", "verify", store, "--run", tmp_path / "one") == 1
    assert "was answered into another store" in capsys.readouterr().err


def test_a_store_says_what_was_asked_and_paid_and_what_each_cell_cost(undisturbed, store, capsys):
    assert call("store", "verify", store, "--run", undisturbed) == 0
    assert f"{undisturbed} comes out again, with {STEPS} answers" in capsys.readouterr().out
    assert call("store", "stats", store, "--json", "--run", undisturbed) == 0
    stats = json.loads(capsys.readouterr().out)
    assert (stats["questions"], stats["answered"], stats["wasted_attempts"]) == (STEPS, STEPS, 0)
    assert 0 < stats["paid_usd"] < 0.1
    (condition,) = stats["conditions"]
    assert (condition["policy"], condition["questions"], condition["shared_usd"]) == ("simple", STEPS, 0)
    assert condition["usd"] == pytest.approx(stats["paid_usd"])
    assert call("store", "stats", store, "--run", undisturbed) == 0
    assert capsys.readouterr().out.count("\ncondition ") == 1


def test_an_estimate_of_all_seeds_is_what_is_asked(store, capsys):
    given = ["--model", "gpt-4o-mini", "--sample", "6", "--json"]
    assert call("estimate", *SMALL, "--policy", "placebo", *given) == 0  # shares first answers with Simple
    both = json.loads(capsys.readouterr().out)
    assert call("estimate", *SMALL, *given) == 0
    one, stats = json.loads(capsys.readouterr().out), stats_of(store)
    assert (one["episodes"], one["steps"], one["calls"]) == (6, STEPS, stats["questions"])
    assert STEPS < both["calls"] < both["steps"] == 2 * STEPS
    assert stats["paid_usd"] <= one["cost_usd"] <= 1.3 * stats["paid_usd"]
    assert one["most_usd"] > one["cost_usd"]
    assert call("estimate", *SMALL, "--model", "gpt-4o-mini", "--judge-model", "unheard-of") == 0
    assert "no price for" not in capsys.readouterr().out  # nobody asks it
    assert call("estimate", *SMALL, "--policy", "judge", *given[:2], "--judge-model", "unheard-of") == 0
    assert "no price for unheard-of" in capsys.readouterr().out


# ---------------------------------------------------------------- proxies, and what cannot be meant


@pytest.mark.nightly
def test_a_local_server_is_asked_past_any_proxy(plain, undisturbed, tmp_path):
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"), "http://127.0.0.1:9")
    done = envprobe(*asking(plain, "--out", tmp_path / "run"), **proxies)
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "run") == contents(undisturbed)
    given = ("run", *SMALL, *MODEL, "--base-url", "http://elsewhere.test/v1", "--out", tmp_path / "odd")
    done = envprobe(*given, OPENAI_API_KEY=KEY, HTTPS_PROXY="nonsense", HTTP_PROXY="x:y")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "no connection can be made as this environment says" in done.stderr


REPEATED = object()  # the whole run, as the undisturbed one was
REFUSED = [
    (["--model", "m"], "--model is for a language model"),
    (["--replay-only"], "--replay-only is for a language model"),
    (["--agent", "gpt"], "unknown agent 'gpt'"),
    (["--agent", "openai"], "needs --model"),
    ([*MODEL], "OPENAI_API_KEY is not set"),
    ([*MODEL, "--model", ""], "model '': accepted are 1..120 letters"),
    ([*MODEL, "--jobs", "2"], "--jobs is for the simulated agent"),
    ([*MODEL, "--profile", "perfect"], "is of the simulated agent"),
    ([*MODEL, "--base-url", "127.0.0.1:80"], "--base-url '127.0.0.1:80': accepted is"),
    ([*MODEL, "--base-url", "http://u:secret@host/v1"], "without a password"),
    (["--agent", "openai", "--model", "own", *CLOSED, "--max-cost", "1"], "price for 'own'"),
    ([*MODEL, *CLOSED, "--max-cost", "-1"], "--max-cost -1.0"),
    ([*MODEL, *CLOSED, "--timeout", "0"], "--timeout 0.0"),
    ([*MODEL, "--replay-only"], "does not exist"),
    (["--replay", "nowhere.gz"], "nowhere.gz cannot be read"),
    ([*MODEL, "--prompts", "3"], "unknown prompts '3'"),
    (["--agent", "local", "--model", "nowhere.gguf"], "nowhere.gguf cannot be read"),
    ([*MODEL, "--reasks", "-1"], "reasks"),
    ([*MODEL, *CLOSED, "--max-tokens", "0"], "Invalid value for '--max-tokens'"),
    ([*MODEL, *CLOSED, "--extra-body", '{"top_p": NaN}'], "NaN}': accepted is one JSON object"),
    ([*MODEL, *CLOSED, "--extra-body", '{"top_p": 1e999}'], "accepted is one JSON object"),
    ([*MODEL, *CLOSED, "--extra-body", "[" * 5000], "accepted is one JSON object"),
    ([*MODEL, *CLOSED, "--extra-body", '{"seed": 1}'], "'seed' is set by the run itself"),
    ([REPEATED, "--max-tokens", "9"], "--max-tokens is stated by"),
    ([REPEATED, "--judge-model", "m"], "--judge-model is stated by"),
    ([REPEATED, "--base-url", "http://elsewhere.test/v1"], "was answered by 'local'; name its server"),
    ([REPEATED], "was answered by 'local'; name its server"),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED)
def test_what_cannot_be_meant_is_one_line(arguments, words, undisturbed, tmp_path, capsys):
    first, *more = arguments
    given = ["--from", undisturbed, *more] if first is REPEATED else [*SMALL, *arguments]
    assert call("run", *given, "--out", tmp_path / "run") == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n"), words in captured.err) == ("", 1, True), captured.err
    assert "secret" not in captured.err
    assert not list(tmp_path.iterdir())


def test_nothing_of_the_model_is_loaded_for_a_simulated_run(tmp_path):
    program = (
        "import sys\nsys.modules['coverage'] = None\n"  # Numba loads it where it is, and that loads sqlite3
        "from envprobe_book.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n    assert not end.code\n"
        "loaded = {'openai', 'aiohttp', 'sqlite3', 'asyncio'} & set(sys.modules)\nassert not loaded, loaded\n"
    )
    done = envprobe("run", *SMALL, "--out", tmp_path / "run", command=[sys.executable, "-c", program])
    assert (done.returncode, done.stderr) == (0, "")
