"""The command ``envprobe``: a thin door to the engine and the book."""

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from envprobe_book.cli import ending, model, reproduce, run
from envprobe_book.extras import check_command, extra_of
from envprobe_core import __version__
from envprobe_core.errors import InputError, StoppedError, in_one_line
from envprobe_core.sources import ROOT

GONE = "the working folder is gone; change to one that is there"
OF_A_CHECKOUT = ("reproduce", "book", "answers", "lab")

app = typer.Typer(
    name="envprobe",
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Beside their results lie two scripts: data/profiles/fit.py (which was calibrate) and "
    "data/replays/trial.py (which was model trial).",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group, commands in {
    app: (
        run.run, model.estimate, model.doctor, run.recompute, reproduce.reproduce, reproduce.book,
        run.claims, reproduce.answers, reproduce.lab, run.compile_engine, run.list_names,
    ),
    model.model: (model.fetch,),
    model.store: (model.stats, model.verify, model.export),
}.items():  # fmt: skip
    for command in commands:
        group.command(command.__name__.partition("_")[0])(command)
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
        ending.obey_orders()
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
    except ending.EndedError as order:
        _fail(str(order), order.code)
    except StoppedError as error:
        _fail(str(error), 1)
    except KeyboardInterrupt:
        code = ending.INTERRUPTED
    except SystemExit as order:
        code = 0 if type(sys.stdout).__name__ == "PacifyFlushWrapper" else order.code  # read enough: as below
    except BrokenPipeError:  # whoever read has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        gone = isinstance(error, FileNotFoundError) and error.filename is None
        _fail(GONE if gone else f"{error.filename or 'input and output'}: {error.strerror or error}")
    if code in ending.ENDED:
        print(f"envprobe: {ending.ENDED[code]}", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int = 2) -> NoReturn:
    if message:  # a group of commands without a command has shown its help instead
        print(f"envprobe: {in_one_line(message)}", file=sys.stderr)
    sys.exit(code)


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
