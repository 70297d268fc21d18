"""The store: nothing lost, nothing overwritten, and a clear word about every file that is no store."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from envprobe_core.errors import InputError
from envprobe_core.llm.asking import ModelSettings
from envprobe_core.llm.auditing import check_store, read_stats
from envprobe_core.llm.client import judge_unread
from envprobe_core.llm.identity import ModelAgent
from envprobe_core.llm.keys import key_of, question
from envprobe_core.llm.opening import APPLICATION_ID, VERSION
from envprobe_core.llm.prices import Price
from envprobe_core.llm.reading import Completion, Tokens
from envprobe_core.llm.replay import read_replay, write_replay
from envprobe_core.llm.stopping import RunStoppedError
from envprobe_core.llm.store import AnswerStore, Judgement, Raw
from envprobe_core.runs.inputs import make_inputs

BODY = b'{"choices":[{"message":{"content":"text %d"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}'
NOBODY = 65534


def asked(number: int) -> bytes:
    return question("local", {"model": "m", "messages": [], "seed": number}, "sample")


def add(store: AnswerStore, number: int, *, judged: bool = True, cost: int | None = 90) -> int:
    raw = Raw(200, "application/json", BODY % number)
    attempt = store.add(asked(number), "json_schema", raw, None, cost, None)
    if judged:
        store.judge(Judgement(attempt, "answer", Tokens(7, 2), cost))
    return attempt


def text_of(store: AnswerStore, number: int) -> str | None:
    found = store.find(key_of(asked(number)))
    return None if found is None else found.text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with three answers."""
    path = tmp_path / "a.sqlite"
    store = AnswerStore(path)
    for number in range(3):
        add(store, number)
    store.close()
    return path


def test_an_answer_is_there_at_once_and_for_good(path: Path) -> None:
    store, other = AnswerStore(path), AnswerStore(path)
    assert text_of(other, 5) is None
    add(store, 5, judged=False)
    assert text_of(other, 5) == text_of(store, 5) == "text 5"
    store.close()
    other.close()
    assert sorted(item.name for item in path.parent.iterdir()) == [path.name]
    assert list(check_store(path)) == []


def test_the_first_good_answer_stays_the_answer(path: Path) -> None:
    store = AnswerStore(path)
    store.add(asked(8), "json_schema", Raw(200, "text/html", b"<html>"), None, 0, None)
    first = Raw(200, "application/json", BODY % 80)
    store.add(asked(8), "json_schema", first, None, 0, None)
    add(store, 8)
    assert text_of(store, 8) == "text 80"
    store.close()


def test_costs_add_up_with_every_change(path: Path) -> None:
    store = AnswerStore(path)
    assert store.spent() == 270
    began = store.reserve(asked(9), "json_schema", 1000, limit=1270)
    assert began is not None
    assert store.spent() == 1270
    assert store.reserve(asked(10), "json_schema", 1, limit=1270) is None
    assert store.add(asked(9), "json_schema", None, "timeout", 1000, began) == began
    store.judge(Judgement(began, "timeout", None, 40))
    assert store.spent() == 1270
    store.settle()
    assert store.spent() == 310
    store.close()


def test_attempts_without_a_price_are_priced_later(path: Path) -> None:
    store = AnswerStore(path)
    add(store, 20, cost=None)
    store.add(asked(21), "json_schema", None, "timeout", None, None)
    store.price(lambda model, request, tokens: 5 if tokens else 1000 + request["seed"])
    assert store.spent() == 270 + 5 + 1021
    store.close()


def test_a_judgement_that_was_lost_is_made_again(path: Path) -> None:
    store = AnswerStore(path)
    add(store, 6, judged=False)
    bad = store.add(asked(7), "json_schema", Raw(500, "", b""), None, 0, None)
    assert bad
    # as if the process had been killed: nothing was judged
    assert text_of(store, 6) == "text 6"
    assert text_of(store, 7) is None
    judge_unread(store, {"m": Price(1, 10, 1)})
    store.close()
    assert list(check_store(path)) == []
    stats = read_stats(path)
    assert stats.attempts == {"answer": 4, "server-error": 1}
    assert stats.paid == 270 + 27


KILLED = """
import sys
from pathlib import Path
from test_llm_store import add
from envprobe_core.llm.store import AnswerStore
store = AnswerStore(Path(sys.argv[1]))
for number in range(100, 100_000):
    add(store, number)
    print(number, flush=True)
"""


def test_a_killed_process_loses_no_committed_answer(path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(60)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
    store = AnswerStore(path)
    last = int([line for line in lines if line.endswith("\n")][-1])
    assert all(text_of(store, number) == f"text {number}" for number in range(100, last + 1))
    store.close()
    assert list(check_store(path)) == []


WRITER = """
import sys
from pathlib import Path
from test_llm_store import add
from envprobe_core.llm.store import AnswerStore
store = AnswerStore(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), int(sys.argv[2]) + 150):
    add(store, number)
store.close()
"""


def test_two_processes_make_and_fill_one_store(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), first], cwd=Path(__file__).parent)
        for first in ("0", "100")
    ]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    store = AnswerStore(path, writable=False)
    assert all(text_of(store, number) == f"text {number}" for number in range(250))
    assert store.spent() == 300 * 90
    store.close()
    stats = read_stats(path)
    assert (stats.questions, stats.answered, stats.attempts) == (250, 250, {"answer": 300})
    assert (stats.wasted_attempts, stats.wasted) == (50, 50 * 90)  # both asked the same


def foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE notes (text)")
    connection.commit()
    connection.close()


def newer(path: Path) -> None:
    AnswerStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version={VERSION + 1}")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def truncated(path: Path) -> None:
    store = AnswerStore(path)
    for number in range(300):
        add(store, number)
    store.close()
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("writable", [True, False])
@pytest.mark.parametrize(
    ("make", "word"),
    [
        (foreign, "belongs to another program"),
        (newer, "newer version"),
        (truncated, "damaged"),
        (lambda path: path.write_text("seed,accuracy\n" * 20), "no store of answers"),
        (lambda path: path.write_bytes(b"SQLite format 3\0"), "no store of answers"),
        (lambda path: path.mkdir(), "is a folder"),
    ],
    ids=["foreign", "newer", "truncated", "text", "stub", "folder"],
)
def test_what_is_no_store_is_refused_and_left_alone(
    make: object, word: str, writable: bool, tmp_path: Path
) -> None:
    path = tmp_path / "a.sqlite"
    make(path)  # type: ignore[operator]
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(InputError, match=word) as refused:
        AnswerStore(path, writable=writable)
    assert "\n" not in str(refused.value)
    assert before == (path.read_bytes() if path.is_file() else None)


def test_a_missing_store_is_made_only_to_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        AnswerStore(tmp_path / "a.sqlite", writable=False)
    with pytest.raises(InputError, match="there is no folder"):
        AnswerStore(tmp_path / "nowhere" / "a.sqlite")
    (tmp_path / "a.sqlite").touch()  # left by a process that was ended at its first step
    AnswerStore(tmp_path / "a.sqlite").close()
    assert (tmp_path / "a.sqlite").read_bytes()[68:72] == APPLICATION_ID.to_bytes(4)


def test_damage_within_is_named_where_it_is_met(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE attempts SET body = x'00112233' WHERE id = 2")
    connection.execute("UPDATE questions SET content = x'789c03' WHERE id = 3")
    connection.execute("UPDATE attempts SET verdict = 'html' WHERE id = 1")
    connection.execute("UPDATE spent SET picodollars = 1")
    connection.commit()
    connection.close()
    store = AnswerStore(path)
    with pytest.raises(RunStoppedError, match="attempt 2 cannot be read"):
        text_of(store, 1)
    assert text_of(store, 2) == "text 2"
    store.close()
    faults = list(check_store(path))
    assert [fault.split(":")[0] for fault in faults] == ["question 3", "attempt 1", "attempt 2", "costs"]


READER = """
import os, sys
from pathlib import Path
from test_llm_store import add, text_of
from envprobe_core.errors import InputError
from envprobe_core.llm.store import AnswerStore
os.setuid(int(sys.argv[2]))
path = Path(sys.argv[1])
try:
    AnswerStore(path)
except InputError as error:
    print(error)
store = AnswerStore(path, writable=False)
print(text_of(store, 1))
store.close()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's rights are needed")
def test_a_read_only_store_can_be_replayed_and_says_so_otherwise(path: Path) -> None:
    folder = Path("/tmp") / f"envprobe-read-only-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        shutil.copy(path, folder / "a.sqlite")
        (folder / "a.sqlite").chmod(0o444)
        given = [sys.executable, "-c", READER, str(folder / "a.sqlite"), str(NOBODY)]
        done = subprocess.run(given, capture_output=True, text=True, cwd=Path(__file__).parent, timeout=60)
        assert done.returncode == 0, done.stderr
        first, second = done.stdout.splitlines()
        assert "is read-only; copy it, or give --replay-only" in first
        assert second == "text 1"
    finally:
        shutil.rmtree(folder)


FULL = """
import resource, sys
from pathlib import Path
from test_llm_store import add
from envprobe_core.llm.stopping import RunStoppedError
from envprobe_core.llm.store import AnswerStore
store = AnswerStore(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    for number in range(1000, 100_000):
        add(store, number)
        print(number)
except RunStoppedError as error:
    print(error)
"""


def test_a_full_disk_stops_with_a_word_and_keeps_what_was_there(path: Path) -> None:
    limit = 3 * path.stat().st_size
    given = [sys.executable, "-c", FULL, str(path), str(limit)]
    done = subprocess.run(given, capture_output=True, text=True, cwd=Path(__file__).parent, timeout=60)
    assert done.returncode == 0, done.stderr
    *numbers, message = done.stdout.splitlines()
    assert "disk is full or fails" in message
    assert len(numbers) > 3
    store = AnswerStore(path)
    assert all(text_of(store, int(number)) == f"text {number}" for number in ["0", "1", "2", *numbers])
    add(store, 7)  # and once there is room again it goes on
    store.close()
    assert list(check_store(path)) == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


# ---------------------------------------------------------------- replay files

AGENT = ModelAgent("local", "1", ModelSettings("m"))
RUN = make_inputs(["tooldag"], ["simple"], seeds="0:3", agent=AGENT)


def test_a_replay_file_holds_the_answers_asked_for(path: Path, tmp_path: Path) -> None:
    store = AnswerStore(path, writable=False)
    keys = [key_of(asked(number)) for number in (2, 0, 2)]
    file = tmp_path / "r.gz"
    assert write_replay(file, RUN, "a hash", "a test", store, keys) == 2
    store.close()
    replay = read_replay(file)
    assert (replay.agent, replay.note, len(replay)) == (AGENT, "a test", 2)
    assert replace(replay.inputs, logs="full") == RUN
    assert replay.result_hash == "a hash"
    assert replay.find(keys[0]) == Completion("text 2", Tokens(7, 2), "")
    assert replay.find(key_of(asked(1))) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:-40] + bytes(40),
        lambda data: b"not gzip",
        lambda data: b"",
    ],
)
def test_a_damaged_replay_file_is_refused(spoil: object, path: Path, tmp_path: Path) -> None:
    store = AnswerStore(path, writable=False)
    file = tmp_path / "r.gz"
    write_replay(file, RUN, "a hash", "", store, [key_of(asked(0))])
    store.close()
    file.write_bytes(spoil(file.read_bytes()))  # type: ignore[operator]
    with pytest.raises(InputError, match=r"r\.gz"):
        read_replay(file)
