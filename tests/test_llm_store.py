"""The store: nothing lost, nothing overwritten, and a clear word about every file that is no store."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from envprobe_core.errors import InputError
from envprobe_core.llm.calls import (
    LARGEST_RESPONSE,
    TOO_LARGE,
    Fault,
    Price,
    Raw,
    RunStoppedError,
    Tokens,
    question,
    total_cost,
)
from envprobe_core.llm.store import MACHINE, VERSION, AnswerStore, check_store, cost_of_conditions, read_stats

BODY = b'{"choices":[{"message":{"content":"text %d"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}'
PRICES = {"m": Price(input=1e6, output=1e6)}  # a dollar a token
TESTS = Path(__file__).parent


def asked(number):
    return question("local", {"model": "m", "messages": [], "seed": number}, "sample")


WORST = total_cost(PRICES, {"m": asked(0).most})


def done(store, change, *given):
    """Commit one change; what it returns."""
    (result,) = store.commit([partial(change, *given)])
    if isinstance(result, Exception):
        raise result
    return result


def begin(store, number, seconds=60.0):
    """Claim a question; the call, or None."""
    return done(store, store.claim, asked(number), seconds)


def answer(store, call, number):
    done(store, store.settle, call, Raw(200, "application/json", BODY % number))


def add(store, number):
    """Ask and answer, unless it is answered."""
    if (call := begin(store, number)) is not None:
        answer(store, call, number)


def text_of(store, number):
    found = store.find(asked(number).key)
    return None if found is None else found.text


def change(path, *statements):
    """Change a store's file behind its back."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def assert_whole(path, numbers):
    """Every one of these answers is there, and every row is as it was stored."""
    with closing(AnswerStore(path, writable=False)) as store:
        assert all(text_of(store, number) == f"text {number}" for number in numbers)
    assert list(check_store(path)) == []


@pytest.fixture
def path(tmp_path):
    """A store with three answers."""
    with closing(AnswerStore(tmp_path / "a.sqlite")) as store:
        for number in range(3):
            add(store, number)
    return store.path


@pytest.fixture
def store(path):
    with closing(AnswerStore(path, prices=PRICES)) as opened:
        yield opened


def test_a_question_has_one_claim_and_one_answer_for_every_process(path):
    with closing(AnswerStore(path)) as store, closing(AnswerStore(path)) as other:
        assert (text_of(other, 8), begin(other, 0)) == (None, None)
        first = begin(store, 8, seconds=0.0)
        second = begin(other, 8)  # the time of the first is over
        assert begin(store, 8) is None
        answer(other, second, 80)
        answer(store, first, 8)  # too late: paid, and not used
        assert text_of(store, 8) == text_of(other, 8) == "text 80"
        done(store, store.settle, begin(store, 9), Fault("timeout"))
        assert begin(other, 9) is not None
    assert sorted(item.name for item in path.parent.iterdir()) == [path.name]
    assert list(check_store(path)) == []
    stats = read_stats(path, PRICES)
    assert stats["attempts"] == {"answer": 4, "duplicate": 1, "started": 1, "timeout": 1}
    assert (stats["questions"], stats["answered"], stats["wasted_attempts"]) == (5, 4, 3)
    assert (stats["models"], stats["finished"]) == ({"m": 5}, {"not said": 4})
    assert (stats["wasted_usd"], stats["paid_usd"]) == (9 + 2 * WORST, 5 * 9 + 2 * WORST)
    assert (stats["uncertain_usd"], stats["prompt_tokens"]) == (2 * WORST, 35)
    unpriced = read_stats(path, {})  # no price is no cost, and is said
    assert (unpriced["paid_usd"], unpriced["unpriced"], unpriced["prompt_tokens"]) == (0, 7, 35)


@pytest.mark.parametrize(("number", "gone"), [("{pid}", True), ("1", False), ("4194304", True)])
def test_a_claim_of_a_process_that_has_ended_holds_nobody_up(number, gone, store):
    """Numbers above the kernel's highest are nobody's; our own, in another's claim, was given twice."""
    begin(store, 8)
    holder = f"{number.format(pid=os.getpid())} other {MACHINE}"
    change(store.path, f"UPDATE calls SET holder = '{holder}' WHERE holder NOT NULL")
    assert (begin(store, 8) is not None) == gone


def test_the_cap_counts_every_claim_at_its_most_until_it_is_settled(store):
    store.cap = 27 + WORST
    call = begin(store, 9)
    assert begin(store, 8) is None  # the call that is under way may leave room
    assert total_cost(PRICES, store.used()) == 27 + WORST
    store.cap = 31
    settling = partial(store.settle, call, Fault("timeout", used=Tokens(4, 0, 1)))
    settled, refused = store.commit([settling, partial(store.claim, asked(8), 60.0)])
    assert settled.name == "timeout"  # and is kept, though what is committed with it is refused
    assert str(refused).startswith("the cap of $31.00 is reached: $31.00 are spent")
    assert store.used() == {"m": Tokens(25, 6, 1)}
    store.cap += WORST
    assert begin(store, 8) is not None


def test_a_cell_costs_every_attempt_to_get_its_answers(store):
    done(store, store.settle, begin(store, 3), Fault("timeout", used=Tokens(4, 0)))
    add(store, 3)
    keys = [[asked(number).key.hex() for number in numbers] for numbers in ((0, 1), (1, 2, 3))]
    assert cost_of_conditions(store.path, keys, PRICES) == [
        {"questions": 2, "usd": 18.0, "shared_usd": 9.0},
        {"questions": 3, "usd": 31.0, "shared_usd": 9.0},
    ]


# ---------------------------------------------------------------- processes

HEAD = """
import os, resource, sys
from test_llm_store import *
path, number = Path(sys.argv[1]), int(sys.argv[2])
"""
FILLS = """
store = AnswerStore(path)
try:
    for one in range(number, number + 100_000):
        add(store, one)
        {then}
except RunStoppedError as error:
    print(error)
"""


def program(text, path, number, **more):
    """Start a program that knows this file's helpers, with a store and a number."""
    command = [sys.executable, "-c", HEAD + text, str(path), str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=TESTS, **more)


def test_a_killed_process_loses_no_committed_answer_nor_one_that_is_looked_at(path):
    """A process that leaves a store must not take the write-ahead log from one that still writes."""
    waiting = FILLS.format(then="print(one, flush=True); input()")
    with program(waiting, path, 100, stdin=subprocess.PIPE) as process:

        def answers(count):
            for _ in range(count):
                assert process.stdout.readline()
                process.stdin.write("\n")
                process.stdin.flush()

        answers(20)
        look = [sys.executable, "-m", "envprobe_book", "store", "stats", str(path)]
        assert subprocess.run(look, capture_output=True, timeout=600).returncode == 0
        answers(20)
        assert not list(check_store(path))  # in this process, and once more
        answers(20)
        process.send_signal(signal.SIGKILL)
    assert_whole(path, range(100, 160))


def test_a_full_disk_stops_with_a_word_and_keeps_what_was_there(path):
    limit = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({20 * path.stat().st_size}, resource.RLIM_INFINITY))"
    said, _ = program(limit + FILLS.format(then="print(one)"), path, 1000).communicate(timeout=600)
    *numbers, message = said.splitlines()
    assert "cannot be used (disk I/O error); what was stored is still there" in message
    assert len(numbers) > 3
    with closing(AnswerStore(path)) as store:
        add(store, 7)  # once there is room again it goes on
    assert_whole(path, [0, 1, 2, 7, *map(int, numbers)])


# ---------------------------------------------------------------- files that are no store


@pytest.mark.parametrize("writable", [True, False])
@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda path: change(path, "PRAGMA application_id=1"), "belongs to another program"),
        (lambda path: change(path, f"PRAGMA user_version={VERSION + 1}"), "newer version"),
        (lambda path: change(path, "PRAGMA user_version=1"), "earlier version"),
        (lambda path: os.truncate(path, path.stat().st_size // 2), "damaged|malformed"),
        (lambda path: path.write_bytes(b"SQLite format 3\0"), "file is not a database"),
    ],
)
def test_what_is_no_store_is_refused_and_left_alone(spoil, word, writable, path):
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(InputError, match=word) as refused:
        AnswerStore(path, writable=writable)
    assert "\n" not in str(refused.value)
    assert before == path.read_bytes()


def test_a_missing_store_is_made_only_to_be_written(tmp_path):
    for name, writable in (("a.sqlite", False), ("nowhere/a", True), (".", True)):
        with pytest.raises(InputError, match=r"does not exist|no plain file"):
            AnswerStore(tmp_path / name, writable=writable)
    (tmp_path / "a.sqlite").touch()  # left by a process that was ended at its first step
    AnswerStore(tmp_path / "a.sqlite").close()
    AnswerStore(tmp_path / "a.sqlite", writable=False).close()


def test_damage_within_is_named_where_it_is_met(path):
    with closing(AnswerStore(path)) as store:
        add(store, 3)
        change(
            path,
            "UPDATE calls SET prompt = 8 WHERE id = 1",
            "UPDATE calls SET response = x'00112233' WHERE id = 2",
            "UPDATE calls SET question = x'789c03' WHERE id = 3",
            "UPDATE calls SET status = NULL, kind = NULL, response = NULL WHERE id = 4",
        )
        with (
            closing(AnswerStore(path, writable=False)) as reader,
            pytest.raises(RunStoppedError, match="call 2 cannot be read"),
        ):
            text_of(reader, 1)
        assert text_of(store, 2) == "text 2"
    named = [fault.split(":")[0] for fault in check_store(path)]
    assert named == ["call 1", "call 2", "call 3", "call 4", "tokens"]


def test_an_answer_that_cannot_be_read_is_set_aside_and_asked_for_again(path):
    change(path, "UPDATE calls SET response = x'00112233' WHERE id = 2")
    with closing(AnswerStore(path)) as store:
        assert text_of(store, 1) is None
        add(store, 1)
        assert (text_of(store, 1), store.set_aside) == ("text 1", [2])
    assert not list(check_store(path))
    assert read_stats(path, {})["attempts"] == {"answer": 3, "damaged": 1}


@pytest.mark.parametrize("size", [LARGEST_RESPONSE, LARGEST_RESPONSE + 1])
def test_the_store_takes_what_it_gives_back_and_nothing_larger(size, path):
    body = BODY % 9
    with closing(AnswerStore(path)) as store:
        call = begin(store, 9)
        done(store, store.settle, call, Raw(200, "application/json", body + b" " * (size - len(body))))
        assert text_of(store, 9) == (None if size > LARGEST_RESPONSE else "text 9")
        add(store, 9)
        assert text_of(store, 9) == "text 9"
    assert read_stats(path, {})["attempts"].get(TOO_LARGE, 0) == (size > LARGEST_RESPONSE)
    assert not list(check_store(path))
