"""`envprobe doctor` tries a server before money is spent, as a user meets it: real servers on loopback."""

from __future__ import annotations

import doctest
import json
import re
import signal
from importlib import import_module

import pytest

from daily import nightly
from envprobe_core.llm.calls import RUNGS, read_prices
from envprobe_core.llm.store import check_store, read_stats
from processes import call, envprobe, going, wait_for
from scripted_server import server_process
from server_habits import HABITS

KEY = "sk-a-secret-of-the-doctor/0123456789"
TOOLS = ["--world", "tooldag"]
SHARED = 4  # of ten situations in three worlds, those of the first
STEPS = 31  # answers of an episode at S2: one at each t = 0..H
STORE = "doctor.answers.sqlite"


@pytest.fixture(scope="module")
def server():
    with server_process() as scripted:
        yield scripted


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """No key, and a folder where the store is made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def ask(server, capsys):
    """Ask about a model: exit code, what the JSON says, and the line on standard error."""

    def doctor(model, *more, url=server.url):
        code = call("doctor", "--base-url", url, "--model", model, "--json", *more)
        printed = capsys.readouterr()
        return code, json.loads(printed.out or "{}"), printed.err

    return doctor


@pytest.mark.parametrize("module", ["calls", "client", "doctor", "served"])
def test_examples_in_docstrings_give_what_they_say(module):
    failed, tried = doctest.testmod(import_module(f"envprobe_core.llm.{module}"))
    assert failed == 0 < tried


def test_ten_situations_of_three_worlds_are_read_and_their_answers_are_a_runs(server, ask, tmp_path, capsys):
    code, told, said = ask("fence")
    assert (code, said, told["read"], told["asked"], told["rungs"]) == (0, "", 10, 10, [])
    situations = told["situations"]
    assert {one["read"] for one in situations} == {"loosely"}
    assert [one["world"] for one in situations].count("tooldag") == SHARED
    assert {one["world"] for one in situations} == {"tooldag", "objectstate", "graphnav"}
    assert len({(one["world"], one["step"]) for one in situations}) == 10
    assert all(one["prompt_tokens"] > 500 and one["completion_tokens"] > 5 for one in situations)
    assert told["run"]["calls"] > told["run"]["episodes"] == 660
    assert told["run"]["prompt_tokens"] > 500 * told["run"]["calls"]
    before = server.counts()["requests"]
    again = ask("fence")[1]
    assert server.counts()["requests"] == before  # what was answered is not asked twice
    assert (again["read"], again["run"]["minutes"]) == (10, None)
    given = ["--agent", "openai", "--model", "fence", "--base-url", server.url, "--store", STORE]
    assert call("run", *TOOLS, "--policy", "simple", "--seeds", "0:1", *given, "--out", tmp_path / "run") == 0
    assert server.counts()["requests"] == before + STEPS - SHARED
    assert not list(check_store(tmp_path / STORE))
    capsys.readouterr()


def test_a_table_and_what_a_run_would_ask(server, capsys):
    given = ["--base-url", server.url, "--model", "gpt-4o-mini", "--seeds", "0:20", *TOOLS]
    assert call("doctor", *given) == 0
    printed = capsys.readouterr().out
    assert printed.count(" strictly ") == 10
    assert "reads    10 of 10: 10 strictly, 0 loosely, 0 not, 0 no answer" in printed
    assert "asked    as a run asks" in printed
    assert f"{20 * STEPS} calls" in printed
    assert "$0." in printed


RUNG = {name for name, habit in HABITS.items() if habit.rungs}


@pytest.mark.parametrize("model", sorted(RUNG))
def test_the_rungs_that_a_server_needs_are_named(model, ask, server, capsys):
    code, told, said = ask(model, *TOOLS)
    assert (code, said, told["read"]) == (0, "", 10)
    assert told["rungs"] == list(HABITS[model].rungs)
    assert call("doctor", "--base-url", server.url, "--model", model, *TOOLS) == 0
    assert RUNGS[HABITS[model].rungs[0]] in capsys.readouterr().out


@pytest.mark.parametrize("model", ["prose", "refusal", "filter", "nothing", "cut-answer"])
def test_a_server_of_which_nothing_can_be_read_is_code_1_and_its_answers_are_kept(model, ask, tmp_path):
    code, told, said = ask(model)
    assert (code, told["read"], said.count("\n")) == (1, 0, 1)
    assert {HABITS[model].says in one["fault"] for one in told["situations"]} == {True}
    assert {one["read"] for one in told["situations"]} == {"not"}
    assert read_stats(tmp_path / STORE, read_prices())["answered"] == 10


def test_some_unreadable_answers_are_counted_and_the_server_can_be_used(ask):
    code, told, _ = ask("refuses-now-and-then", "--concurrency", "1")
    assert (code, told["read"]) == (0, 8)
    assert [one["read"] for one in told["situations"]].count("not") == 2


@pytest.mark.parametrize(
    ("model", "words"),
    nightly(
        [("refuses-key", "key-refused"), ("redirects-elsewhere", "the key is not sent")],
        ("refuses-key", "key-refused"),
    ),
)
def test_a_server_that_gives_no_answer_says_why_and_shows_no_key(model, words, server):
    given = ["--base-url", server.url, "--model", model]
    done = envprobe("doctor", *given, OPENAI_API_KEY=KEY)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "10 no answer" in done.stdout
    assert words in done.stdout
    assert KEY not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("order", "how"),
    nightly([(signal.SIGTERM, "terminated"), (signal.SIGINT, "interrupted")], (signal.SIGTERM, "terminated")),
)
def test_an_order_to_end_says_what_was_read_and_loses_no_answer(order, how, tmp_path):
    with server_process(0.5) as server:
        given = ["--base-url", server.url, "--model", "gpt-4o-mini", *TOOLS, "--concurrency", "1"]
        with going("doctor", *given, "--store", tmp_path / STORE) as process:
            wait_for(lambda: server.counts()["answered"] >= 2, process)
            process.send_signal(order)
            out, said = process.communicate(timeout=600)
        first = server.counts()["requests"]
        told = re.fullmatch(
            rf"envprobe: {how}; (\d) of (\d) situations? could be read, (\d) left, all answers are kept in "
            rf"{re.escape(str(tmp_path / STORE))}: run the command again to continue\n",
            said,
        )
        assert told, said
        read, tried, left = map(int, told.groups())
        assert (process.returncode, out, read, tried + left) == (128 + order, "", tried, 10)
        assert read_stats(tmp_path / STORE, read_prices())["attempts"] == {"answer": first}
        assert call("doctor", *given, "--store", tmp_path / STORE) == 0
        assert 1 <= tried <= first < server.counts()["requests"] == 10


def test_where_nothing_answers_there_is_code_1(ask):
    code, told, said = ask("m", "--attempts", "1", url="http://127.0.0.1:9/v1")
    assert (code, told["read"], said.count("\n")) == (1, 0, 1)
    assert all("no-connection" in one["fault"] for one in told["situations"])
    assert call("doctor", "--base-url", "http://127.0.0.1:9/v1") == 1


def test_a_server_is_asked_for_its_one_model_and_a_choice_is_listed(server, capsys, tmp_path):
    assert call("doctor", "--base-url", server.url, "--json") == 0
    assert json.loads(capsys.readouterr().out)["model"] == "scripted-0"
    base = server.url.removesuffix("/v1")
    for path, words in {
        "/3/v1": "serves 3 models; give --model: scripted-0, ",
        "/nowhere": "give --model",
    }.items():
        assert call("doctor", "--base-url", f"{base}{path}", "--store", "other.sqlite") == 2
        printed = capsys.readouterr()
        assert (printed.out, printed.err.count("\n"), words in printed.err) == ("", 1, True), printed.err
    assert not (tmp_path / "other.sqlite").exists()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--base-url", "127.0.0.1:80", "--model", "m"], "--base-url '127.0.0.1:80': accepted is"),
        (["--base-url", "http://u:secret@h/v1", "--model", "m"], "without a password"),
        (["--base-url", "http://elsewhere.test/v1", "--model", "m"], "OPENAI_API_KEY is not set"),
        (["--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--world", "no"], "unknown world 'no'"),
        (["--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--max-cost", "1"], "needs a price for 'm'"),
        ([], "needs --model"),
    ],
)
def test_what_cannot_be_meant_is_one_line_and_nothing_is_written(given, words, capsys, tmp_path):
    assert call("doctor", *given) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n"), words in printed.err) == ("", 1, True), printed.err
    assert "secret" not in printed.err
    assert not list(tmp_path.iterdir())
