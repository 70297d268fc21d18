"""What scripts share that ask a model and keep its answers as data (`data/replays`)."""

import argparse
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from envprobe_book.cli.model import ModelOptions
from envprobe_core.errors import InputError, StoppedError, counted
from envprobe_core.llm.client import Service
from envprobe_core.llm.replays import write_answers


def ask_and_keep(
    out: Path, asked: Any, given: ModelOptions, ask: Callable[[Any, Service], list[str]]
) -> None:
    """Ask, and write the answers to a new file; those that were had are kept if asking stops.

    Args:
        out: the file.
        asked: what is asked, as the file states it; it has an `agent`.
        given: how the model is reached.
        ask: asks everything of a service, and returns the keys of the answers.
    """
    service = given.service(asked.agent, out)
    with closing(service.answers) as answers:
        keys = ask(asked, service)
        out.parent.mkdir(parents=True, exist_ok=True)
        count = write_answers(out, asked, answers, keys)
    print(f"{counted(count, 'answer')} of {asked.agent.model}, {out.stat().st_size} bytes: {out}")


def end_in_one_line(parser: argparse.ArgumentParser, name: str, work: Callable[[], None]) -> None:
    """Do a script's work; what was wrong ends it with 2, what stopped it with 1, an interrupt with 130."""
    try:
        work()
    except (InputError, StoppedError) as error:
        parser.exit(2 if isinstance(error, InputError) else 1, f"{name}: {error}\n")
    except KeyboardInterrupt:
        parser.exit(130, f"{name}: interrupted; all answers are kept: run the command again to continue\n")
