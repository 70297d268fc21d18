"""Work handed to processes: every answer once, errors as they are, and nobody waits for one that is gone."""

import contextlib
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import active_children, util
from pathlib import Path

import pytest

from envprobe_core.errors import InputError, StoppedError
from envprobe_core.parallel import map_unordered, processes
from processes import wait_for

LARGE = 3_000_000  # bytes: more than any pipe takes before somebody reads


def larger(size):
    return bytes(size + 1)


def take_for_ever(item):
    while item:
        time.sleep(1)


def refuse(item):
    raise InputError(f"no {item}")


def hand_back_a_function(item):
    return lambda: item


def end_oneself(item):
    os.kill(os.getpid(), signal.SIGKILL)


class HalfSent:
    """An answer that kills its sender when the first half of it is in the pipe."""

    def __reduce__(self):
        def end():
            time.sleep(0.5)  # until the pipe is full
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=end, daemon=True).start()
        return bytes, (bytes(30 * LARGE),)


def send_half(item):
    return HalfSent()


def managers():
    """The threads that pools of this process are run by."""
    return [thread for thread in threading.enumerate() if "Executor" in type(thread).__name__]


def who_is_deaf(item):
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.fixture(autouse=True)
def no_process_stays():
    yield
    assert not active_children()


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_every_item_has_one_answer(jobs):
    sizes = [*range(5), LARGE]
    with processes(jobs) as executor:
        assert sorted(map(len, map_unordered(larger, sizes, executor))) == [size + 1 for size in sizes]
    assert sorted(map(len, map_unordered(larger, sizes))) == [size + 1 for size in sizes]


def test_large_items_and_large_answers_do_not_wait_for_each_other():
    items = [bytes(LARGE)] * 5
    with processes(2) as executor:
        assert list(map_unordered(bytes, items, executor)) == items


def test_an_error_is_raised_as_it_is_and_says_where_it_was_made():
    with processes(2) as executor, pytest.raises(InputError, match=r"no [12]") as told:
        list(map_unordered(refuse, [1, 2], executor))
    assert "in refuse" in str(told.value.__cause__)


def test_an_answer_that_cannot_be_sent_is_an_error():
    with processes(2) as executor, pytest.raises(Exception, match="lambda"):
        list(map_unordered(hand_back_a_function, [1, 2], executor))


@pytest.mark.parametrize("work", [end_oneself, send_half])
def test_a_process_that_is_ended_also_in_the_middle_of_its_answer_keeps_nobody_waiting(work):
    with processes(2) as executor, pytest.raises(StoppedError, match="ended from outside"):
        list(map_unordered(work, [1, 2, 3], executor))
    assert not managers()


def test_whoever_has_enough_leaves_no_process():
    with processes(2) as executor:
        next(map_unordered(larger, range(9), executor))


def test_processes_that_end_before_what_is_left_is_done_leave_no_traceback():
    with processes(2) as executor:
        answers = map_unordered(take_for_ever, range(50), executor)
        next(answers)
        assert managers()
        answers.close()
        for child in active_children():
            child.kill()
        wait_for(lambda: not managers())


def test_processes_hear_no_interrupt_and_work_goes_on(capfd):
    with processes(2) as executor:
        assert all(map_unordered(who_is_deaf, range(4), executor))
        for child in active_children():
            os.kill(child.pid, signal.SIGINT)
        assert len(list(map_unordered(larger, range(4), executor))) == 4
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("order", [signal.SIGINT, signal.SIGTERM])
def test_an_order_to_end_while_processes_begin_is_obeyed_when_they_have(order, monkeypatch, capfd):
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    with processes(2) as executor:  # Python's own tracker is begun as well, by the first
        list(map_unordered(larger, range(2), executor))
    send, begun = util.spawnv_passfds, []

    def begin(*given):
        begun.append(send(*given))
        os.kill(begun[-1], signal.SIGINT)  # as a terminal does, before it has got to anything
        os.kill(os.getpid(), order)  # now it has no word yet of what it is for
        return begun[-1]

    monkeypatch.setattr(util, "spawnv_passfds", begin)
    try:
        with pytest.raises(KeyboardInterrupt), processes(2) as executor:
            list(map_unordered(larger, range(9), executor))
    finally:
        signal.signal(signal.SIGTERM, before)
    with contextlib.suppress(ChildProcessError):  # it is gone
        os.waitpid(begun[0], 0)
    assert capfd.readouterr().err == ""


def test_a_grid_has_the_same_rows_by_any_executor():
    from envprobe_core.experiment import run  # every process that is begun imports this module

    given = {"worlds": "tooldag", "policies": "simple yoked", "protocols": "paper", "seeds": "0:40"}
    here = run(**given)
    with ThreadPoolExecutor(2) as threads, processes(2) as beside:
        for executor in (threads, beside):
            assert run(**given, executor=executor).equals(here)
        with pytest.raises(InputError, match="give one of the two"):
            run(**given, jobs=2, executor=beside)


def test_a_process_follows_the_one_that_began_it(tmp_path):
    """Also where that is killed and can end nothing any more."""
    import subprocess
    import sys

    note = tmp_path / "note"
    program = (
        "import os, sys, time; from envprobe_core.parallel import map_unordered, processes\n"
        "if __name__ == '__main__':\n"
        "  with processes(1) as one:\n"
        f"    open({str(note)!r}, 'w').write(str(list(map_unordered(os.getpgid, [0], one))) + ' ')\n"
        "    from multiprocessing import active_children\n"
        f"    open({str(note)!r}, 'w').write(str(active_children()[0].pid) + ' ')\n"
        "    time.sleep(600)\n"
    )
    path = tmp_path / "script.py"
    path.write_text(program)
    with subprocess.Popen([sys.executable, path]) as process:
        child = wait_for(
            lambda: note.exists() and note.read_text().rstrip("] ").isdigit() and note.read_text()
        )
        process.kill()
    wait_for(lambda: not Path(f"/proc/{int(child)}").exists())
