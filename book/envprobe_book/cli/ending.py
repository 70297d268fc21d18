"""How a command ends that is told to: at an interrupt, a termination or the loss of its terminal.

It is unwound, says so in a line, and its exit code is 128 and the number of the signal. Work that asks a
language model ends more slowly: calls under way are paid for, and are stored first.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from envprobe_core.errors import StoppedError

INTERRUPTED = 128 + signal.SIGINT
ENDED = {
    INTERRUPTED: "interrupted", 128 + signal.SIGTERM: "terminated", 128 + signal.SIGHUP: "hung up",
}  # fmt: skip
BREAKABLE = ("numba", "llvmlite", "importlib")  # what an exception would break: compiling, importing
SHOW_CURSOR = "\x1b[?25h"  # a progress bar hides it
AGAIN = 0.1  # seconds after which a termination signal is sent again


class EndedError(StoppedError):
    """Work that an order to end stopped: the message says what is kept, `code` is the exit code."""

    def __init__(self, number: int, kept: str) -> None:
        self.code = 128 + number
        super().__init__(f"{ENDED[self.code]}; {kept}")


def obey_orders() -> None:
    """Let this process end at every signal that asks for it, except what it shall ignore."""
    heard = [signal.SIGINT] if signal.getsignal(signal.SIGINT) == signal.default_int_handler else []
    for order in (*_orders_to_end(), *heard):
        signal.signal(order, _end)
    sys.unraisablehook = _order_again
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # one more would kill what ends already


@contextmanager
def storing_first(answers: Path, done: Callable[[], str]) -> Iterator[None]:
    """Let calls to a model that are under way be stored before an order to end is obeyed.

    Args:
        answers: where they are stored.
        done: says what has come of the work until then.

    Raises:
        EndedError: at an order to end, when all is stored.
    """
    came = [signal.SIGINT]

    def pass_on(number: int, frame: FrameType | None) -> None:
        came.append(signal.Signals(number))
        signal.raise_signal(signal.SIGINT)

    # the event loop obeys an interrupt where Python's own handler is set; background jobs may ignore it
    handlers: dict[int, Any] = dict.fromkeys(_orders_to_end(), pass_on)
    handlers[signal.SIGINT] = signal.default_int_handler
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    except KeyboardInterrupt:
        logging.disable()  # after a second interrupt asyncio would tell of all that is left open
        kept = f"all answers are kept in {answers}: run the command again to continue"
        raise EndedError(came[-1], f"{done()}, {kept}") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _orders_to_end() -> list[signal.Signals]:
    """The signals that ask a command to end: a lost terminal too, unless nohup ignores it."""
    lost = [] if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGTERM, *lost]


def _end(number: int, frame: FrameType | None) -> None:
    """End the process by unwinding it, or at once while something is compiled or imported.

    LLVM calls back into Python, drops what is raised there and goes on with a half-made function; a module of
    C tells of another error in its place. Nothing is lost then: what is written is there whole or not at all.
    """
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] not in BREAKABLE:
        frame = frame.f_back
    if frame is not None:
        if sys.stderr.isatty():
            print(SHOW_CURSOR, end="", file=sys.stderr)
        print(f"envprobe: {ENDED[128 + number]}", file=sys.stderr, flush=True)
        os._exit(128 + number)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def _order_again(swallowed: Any) -> None:
    """Send a termination signal again that arrived in a callback, where Python can only print a traceback."""
    interrupted = swallowed.exc_type is KeyboardInterrupt
    code = INTERRUPTED if interrupted else getattr(swallowed.exc_value, "code", None)
    if code not in ENDED:
        sys.__unraisablehook__(swallowed)
        return
    again = threading.Timer(AGAIN, signal.pthread_kill, (threading.main_thread().ident, code - 128))
    again.daemon = True
    again.start()
