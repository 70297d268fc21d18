"""The command ``envprobe``: a thin door to the engine and the book."""

import atexit
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.exceptions import Abort, TyperException

from envprobe_book.cli import model, options, reproduce, run
from envprobe_book.extras import check_command, extra_of
from envprobe_core import __version__
from envprobe_core.errors import InputError, StoppedError, in_one_line
from envprobe_core.sources import ROOT

INTERRUPTED = 128 + signal.SIGINT
ENDED = {
    INTERRUPTED: "interrupted", 128 + signal.SIGTERM: "terminated", 128 + signal.SIGHUP: "hung up",
}  # fmt: skip
GONE = "the working folder is gone; change to one that is there"
COMPILER = ("numba", "llvmlite")
SHOW_CURSOR = "\x1b[?25h"  # a progress bar hides it
AGAIN = 0.1  # seconds after which a termination signal is sent again
OF_A_CHECKOUT = ("reproduce", "book", "answers", "lab")

app = typer.Typer(
    name="envprobe",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group, commands in {
    app: (
        run.run, model.estimate, model.doctor, run.recompute, reproduce.reproduce, reproduce.book,
        run.calibrate, run.claims, reproduce.answers, reproduce.lab, run.compile_engine, run.list_names,
    ),
    model.model: (model.fetch, model.trial),
    model.store: (model.stats, model.verify, model.export),
}.items():  # fmt: skip
    for command in commands:
        group.command(command.__name__.partition("_")[0])(options.expanded(command))
app.add_typer(model.store, name="store")
app.add_typer(model.model, name="model")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"envprobe {__version__}")
        raise typer.Exit()


VERSION = typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")


@app.callback()
def _options(version: Annotated[bool, VERSION] = False) -> None:
    """Recompute, question and extend the results of 'Ask the World Before Acting'."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line, by default the process's own, and leave with its exit code.

    Bad input of any kind, be it an option or a value, is one line on standard error and exit code 2, and
    work that had to stop a line and 1. An interrupt ends with 130, a termination with 143, each said in a
    line, and nothing goes on behind it.
    """
    given = sys.argv[1:] if arguments is None else arguments
    if arguments is None:
        heard = [signal.SIGINT] if signal.getsignal(signal.SIGINT) == signal.default_int_handler else []
        for order in (*options.orders_to_end(), *heard):
            signal.signal(order, _end)
        sys.unraisablehook = _order_again
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # one more would kill what ends already
        nowhere = Path(os.devnull).open("w")  # noqa: SIM115 - to the end of the process
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere  # closed by whoever started us
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a console may lack a sign
    try:
        _check(given)
        check_command(given)
        code = app(given or ["--help"], prog_name="envprobe", standalone_mode=False)
    except InputError as error:
        _fail(str(error))
    except ModuleNotFoundError as error:
        if (extra := extra_of(error.name)) is None:
            raise
        _fail(f"{error.name} is not installed: pip install 'envprobe-core[{extra}]'")
    except TyperException as error:
        _fail(error.format_message())
    except StoppedError as error:
        _fail(str(error), 1)
    except Abort:  # said already
        sys.exit(INTERRUPTED)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit as order:
        code = 0 if type(sys.stdout).__name__ == "PacifyFlushWrapper" else order.code  # read enough: as below
    except BrokenPipeError:  # whoever read has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        gone = isinstance(error, FileNotFoundError) and error.filename is None
        _fail(GONE if gone else f"{error.filename or 'input and output'}: {error.strerror or error}")
    if code in ENDED:
        print(f"envprobe: {ENDED[code]}", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int = 2) -> NoReturn:
    if message:  # a group of commands without a command has shown its help instead
        print(f"envprobe: {in_one_line(message)}", file=sys.stderr)
    sys.exit(code)


def _end(number: int, frame: FrameType | None) -> None:
    """End the process by unwinding it, or at once while the compiler works, which an exception would break.

    LLVM calls back into Python, drops what is raised there and goes on with a half-made function. Nothing of
    ours is open then: machine code and results are written whole or not at all.
    """
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] not in COMPILER:
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


def _check(arguments: list[str]) -> None:
    """Refuse what no command can use: arguments that are no text, sections where there are none."""
    threads = os.environ.get("NUMBA_NUM_THREADS", "1")
    if not threads.isdecimal() or int(threads) == 0:  # which Numba would tell with a traceback
        raise InputError(f"NUMBA_NUM_THREADS={threads}: accepted is a whole number from 1")
    for text in arguments:
        if any("\ud800" <= sign <= "\udfff" for sign in text):
            raise InputError(f"{text!r} is not UTF-8; give files and values names that are")
        if "\0" in text:
            raise InputError(f"{text!r} holds a null character")
    if arguments and arguments[0] in OF_A_CHECKOUT and not (ROOT / "notebooks").is_dir():
        lacks = f"{arguments[0]} needs the notebooks and pages of a checkout, and none are in {ROOT}"
        raise InputError(f"{lacks}; clone the companion and give `pip install -e .` there")
