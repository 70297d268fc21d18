"""Work handed to processes: every answer once, errors as they are, and nobody waits for one that is gone."""

import contextlib
import os
import signal
import time
from multiprocessing import active_children, parent_process, util
from pathlib import Path

import pytest

from envprobe_core.errors import InputError, StoppedError
from envprobe_core.parallel import map_unordered
from processes import wait_for

LARGE = 3_000_000  # bytes: more than any pipe takes before somebody reads


def larger(size):
    return bytes(size + 1)


def refuse(item):
    if parent_process() is None:
        time.sleep(0.1)
        return item
    raise InputError(f"no {item}")


def hand_back_a_function(item):
    return item if parent_process() is None else lambda: item


def answer_or_end_the_other(note):
    """Answer at length in the other process; in this one, end that one while it waits to be read."""
    if parent_process() is not None:
        Path(note).touch()
        return bytes(LARGE)
    wait_for(Path(note).exists)
    time.sleep(0.5)
    (other,) = active_children()
    os.kill(other.pid, signal.SIGKILL)
    return b""


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_every_item_has_one_answer(jobs, here):
    sizes = [*range(5), LARGE]
    assert sorted(map(len, map_unordered(larger, sizes, jobs, here=here))) == [size + 1 for size in sizes]
    assert not active_children()


def test_large_items_and_large_answers_do_not_wait_for_each_other():
    items = [bytes(LARGE)] * 5
    assert list(map_unordered(bytes, items, 2)) == items


def test_an_error_is_raised_as_it_is_and_says_where_it_was_made():
    with pytest.raises(InputError, match="no 1") as told:
        list(map_unordered(refuse, [1, 2], 2))
    assert "in refuse" in "".join(told.value.__notes__)
    assert not active_children()


def test_an_answer_that_cannot_be_sent_is_an_error():
    with pytest.raises(Exception, match="lambda"):
        list(map_unordered(hand_back_a_function, [1, 2], 2))


def test_a_process_that_is_ended_in_the_middle_of_its_answer_keeps_nobody_waiting(tmp_path):
    with pytest.raises(StoppedError, match="ended from outside"):
        list(map_unordered(answer_or_end_the_other, [tmp_path / "note"] * 2, 2))
    assert not active_children()


def test_whoever_has_enough_leaves_no_process():
    answers = map_unordered(larger, range(9), 2)
    next(answers)
    answers.close()
    assert not active_children()


@pytest.mark.parametrize("order", [signal.SIGINT, signal.SIGTERM])
def test_an_order_to_end_while_processes_begin_is_obeyed_when_they_have(order, monkeypatch, capfd):
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    list(map_unordered(larger, range(2), 2))  # Python's own tracker is begun as well, by the first
    send, begun = util.spawnv_passfds, []

    def begin(*given):
        begun.append(send(*given))
        os.kill(os.getpid(), order)  # now it has no word yet of what it is for
        return begun[-1]

    monkeypatch.setattr(util, "spawnv_passfds", begin)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(map_unordered(larger, range(9), 2))
    finally:
        signal.signal(signal.SIGTERM, before)
    with contextlib.suppress(ChildProcessError):  # it is gone
        os.waitpid(begun[0], 0)
    assert capfd.readouterr().err == ""
