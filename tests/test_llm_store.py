"""The store: nothing lost, nothing overwritten, and a clear word about every file that is no store."""

from __future__ import annotations

import contextlib
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
from envprobe_core.llm.calls import (
    Answer,
    Price,
    Raw,
    RunStoppedError,
    Tokens,
    key_of,
    most_tokens,
    question,
    total_cost,
)
from envprobe_core.llm.identity import ModelAgent
from envprobe_core.llm.replay import read_replay, write_replay
from envprobe_core.llm.store import (
    APPLICATION_ID,
    MACHINE,
    VERSION,
    AnswerStore,
    Refusal,
    check_store,
    cost_of_cells,
    read_stats,
)
from envprobe_core.runs.inputs import make_inputs

BODY = b'{"choices":[{"message":{"content":"text %d"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}'
NOBODY = 65534
USED = Tokens(7, 2)
PRICES = {"m": Price(input=1e6, output=1e6)}  # a dollar a token


def request(number: int) -> dict[str, object]:
    return {"model": "m", "messages": [], "seed": number}


def asked(number: int) -> bytes:
    return question("local", request(number), "sample")


MOST = most_tokens(request(0))


def begin(store: AnswerStore, number: int, seconds: float = 60.0, **more: object) -> int | Refusal:
    return store.claim(asked(number), most_tokens(request(number)), seconds, **more)  # type: ignore[arg-type]


def add(store: AnswerStore, number: int) -> None:
    """Ask and answer, unless it is answered."""
    call = begin(store, number)
    if isinstance(call, int):
        store.settle(call, Raw(200, "application/json", BODY % number), "answer", USED)


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
    add(store, 5)
    assert text_of(other, 5) == text_of(store, 5) == "text 5"
    assert begin(other, 5) is Refusal.TAKEN
    store.close()
    other.close()
    assert sorted(item.name for item in path.parent.iterdir()) == [path.name]
    assert list(check_store(path)) == []


def test_a_question_has_one_claim_until_it_is_settled_or_its_time_is_over(path: Path) -> None:
    store, other = AnswerStore(path), AnswerStore(path)
    first = begin(store, 8, seconds=0.0)
    second = begin(other, 8)
    assert isinstance(first, int)
    assert isinstance(second, int)
    assert begin(store, 8) is Refusal.TAKEN
    other.settle(second, Raw(200, "application/json", BODY % 80), "answer", USED)
    store.settle(
        first, Raw(200, "application/json", BODY % 8), "answer", USED
    )  # too late: paid, and not used
    assert text_of(store, 8) == "text 80"
    failed = begin(store, 9)
    store.settle(failed, None, "timeout", None)
    assert isinstance(begin(other, 9), int)
    store.close()
    other.close()
    assert list(check_store(path)) == []
    stats = read_stats(path, PRICES)
    assert stats["attempts"] == {"answer": 4, "duplicate": 1, "started": 1, "timeout": 1}
    assert (stats["wasted_usd"], stats["paid_usd"]) == (9 + 2 * total(MOST), 5 * 9 + 2 * total(MOST))
    assert stats["uncertain_usd"] == 2 * total(MOST)


def total(tokens: Tokens) -> float:
    return total_cost(PRICES, {"m": tokens})


@pytest.mark.parametrize(("number", "gone"), [("{pid}", True), ("1", False), ("4194304", True)])
def test_a_claim_of_a_process_that_has_ended_holds_nobody_up(number: str, gone: bool, path: Path) -> None:
    """Numbers above the kernel's highest are nobody's; our own, in another's claim, was given twice."""
    store = AnswerStore(path)
    begin(store, 8)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        holder = f"{number.format(pid=os.getpid())} other {MACHINE}"
        connection.execute("UPDATE calls SET holder = ? WHERE holder NOT NULL", (holder,))
        connection.commit()
    assert isinstance(begin(store, 8), int) == gone
    store.close()


def test_what_is_used_adds_up_with_every_change_and_a_cap_holds(path: Path) -> None:
    store = AnswerStore(path)
    assert store.used() == {"m": Tokens(21, 6)}
    cap = 27 + total(MOST)
    room = {"fits": lambda used: total_cost(PRICES, used) <= cap}
    call = begin(store, 9, **room)
    assert isinstance(call, int)
    assert begin(store, 8, **room) is Refusal.OVER_CAP
    assert total_cost(PRICES, store.used()) == cap
    store.settle(call, None, "timeout", Tokens(4, 0, 1))
    assert store.used() == {"m": Tokens(25, 6, 1)}
    assert isinstance(begin(store, 8, fits=lambda used: total_cost(PRICES, used) <= 31 + total(MOST)), int)
    store.close()


def test_a_cell_costs_every_attempt_to_get_its_answers(path: Path) -> None:
    store = AnswerStore(path)
    store.settle(begin(store, 3), None, "timeout", Tokens(4, 0))
    add(store, 3)
    store.close()
    keys = [[key_of(asked(number)).hex() for number in numbers] for numbers in ((0, 1), (1, 2, 3))]
    assert cost_of_cells(path, keys, PRICES) == [
        {"questions": 2, "usd": 18.0, "shared_usd": 9.0},
        {"questions": 3, "usd": 31.0, "shared_usd": 9.0},
    ]
    assert read_stats(path, PRICES)["paid_usd"] == 18 + 31 - 9


def test_no_price_is_no_cost_and_is_said(path: Path) -> None:
    stats = read_stats(path, {})
    assert (stats["paid_usd"], stats["unpriced"], stats["prompt_tokens"]) == (0, 3, 21)


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


RUNNING = KILLED.replace("print(number, flush=True)", "print(number, flush=True); input()")


def test_a_look_at_a_store_during_a_run_loses_nothing(path: Path) -> None:
    """A process that leaves a store must not take the write-ahead log from one that still writes."""
    command = [sys.executable, "-c", RUNNING, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def answers(count: int) -> None:
            for _ in range(count):
                assert process.stdout.readline()
                process.stdin.write("\n")
                process.stdin.flush()

        answers(20)
        look = [sys.executable, "-m", "envprobe_core", "store", "stats", str(path)]
        assert subprocess.run(look, capture_output=True, timeout=120).returncode == 0
        answers(20)
        assert not list(check_store(path))  # in this process, and once more
        answers(20)
        process.send_signal(signal.SIGKILL)
    store = AnswerStore(path)
    assert all(text_of(store, number) == f"text {number}" for number in range(100, 160))
    store.close()
    assert list(check_store(path)) == []


@pytest.mark.skipif(sys.platform != "linux", reason="locks are read from /proc")
def test_a_process_keeps_its_locks_on_an_open_store(path: Path) -> None:
    store = AnswerStore(path)
    add(store, 7)
    mine = f" {os.getpid()} "
    inode = f":{path.stat().st_ino} "
    locks = [line for line in Path("/proc/locks").read_text().splitlines() if mine in line and inode in line]
    assert locks, "nothing tells other processes that this one uses the store"
    store.close()


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
    assert [process.wait(timeout=300) for process in processes] == [0, 0]
    store = AnswerStore(path, writable=False)
    assert all(text_of(store, number) == f"text {number}" for number in range(250))
    assert store.used() == {"m": Tokens(250 * 7, 250 * 2)}
    store.close()
    stats = read_stats(path, {})
    assert (stats["questions"], stats["answered"], stats["attempts"]) == (250, 250, {"answer": 250})


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


def earlier(path: Path) -> None:
    newer(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=1")
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
        (earlier, "earlier version"),
        (truncated, "damaged"),
        (lambda path: path.write_text("seed,accuracy\n" * 20), "no store of answers"),
        (lambda path: path.write_bytes(b"SQLite format 3\0"), "no store of answers"),
        (lambda path: path.mkdir(), "is a folder"),
    ],
    ids=["foreign", "newer", "earlier", "truncated", "text", "stub", "folder"],
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
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE calls SET response = x'00112233' WHERE id = 2")
        connection.execute("UPDATE calls SET question = x'789c03' WHERE id = 3")
        connection.execute("UPDATE calls SET prompt = 8 WHERE id = 1")
        connection.commit()
    store = AnswerStore(path)
    with pytest.raises(RunStoppedError, match="call 2 cannot be read"):
        text_of(store, 1)
    assert text_of(store, 2) == "text 2"
    store.close()
    faults = list(check_store(path))
    assert [fault.split(":")[0] for fault in faults] == ["call 1", "call 2", "call 3", "tokens"]


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
        done = subprocess.run(given, capture_output=True, text=True, cwd=Path(__file__).parent, timeout=300)
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
from envprobe_core.llm.calls import RunStoppedError
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
    limit = 20 * path.stat().st_size
    given = [sys.executable, "-c", FULL, str(path), str(limit)]
    done = subprocess.run(given, capture_output=True, text=True, cwd=Path(__file__).parent, timeout=300)
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

AGENT = ModelAgent("local", "1", "m")
RUN = make_inputs(["tooldag"], ["simple"], seeds="0:3", agent=AGENT)


def test_a_replay_file_holds_the_answers_asked_for(path: Path, tmp_path: Path) -> None:
    store = AnswerStore(path, writable=False)
    keys = [key_of(asked(number)).hex() for number in (2, 0, 2)]
    file = tmp_path / "r.gz"
    assert write_replay(file, RUN, "a hash", "a test", store, keys) == 2
    store.close()
    replay = read_replay(file)
    assert (replay.agent, replay.header.note, len(replay)) == (AGENT, "a test", 2)
    assert replace(replay.inputs, logs="full") == RUN
    assert replay.header.result_hash == "a hash"
    assert replay.find(bytes.fromhex(keys[0])) == Answer("text 2", Tokens(7, 2), "")
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
    write_replay(file, RUN, "a hash", "", store, [key_of(asked(0)).hex()])
    store.close()
    file.write_bytes(spoil(file.read_bytes()))  # type: ignore[operator]
    with pytest.raises(InputError, match=r"r\.gz"):
        read_replay(file)
