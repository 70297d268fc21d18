"""A trial of prompts: a local model is asked about the same situations in several versions of the prompts.

    python data/replays/trial.py NAME.trial.gz --world tooldag --prompts 1 --prompts 2

The answers go to a file from which the book computes how many could be used, how many of the seen fields
were written right, how many rows were copied from an example, and how many actions were distinct. Run again
after an interruption, the command resumes where it stopped. The weights are those of `envprobe model fetch`.
"""

import argparse
from pathlib import Path

from envprobe_book.cli.asking import ask_and_keep, end_in_one_line
from envprobe_book.cli.model import LOCAL, ModelOptions
from envprobe_core.conditions import make_condition
from envprobe_core.files import refuse_existing
from envprobe_core.llm import running
from envprobe_core.llm.prompts import find_version


def ask(
    out: Path,
    worlds: list[str],
    prompts: list[str],
    situations: int = 200,
    regime: str = "S1",
    note: str = "",
    given: ModelOptions | None = None,
) -> None:
    """Ask, and write the answers to a new file; what cannot be meant is refused before a store is made."""
    refuse_existing("--out", out)
    given = given or ModelOptions()
    for each in worlds:
        make_condition(each, "simple", regime)
    agent, versions = given.agent(LOCAL), [find_version(each) for each in prompts]
    asked = running.Trial(
        agent=agent, worlds=worlds, versions=versions, policy="simple", regime=regime,
        situations=situations, note=note,
    )  # fmt: skip
    ask_and_keep(out, asked, given, running.ask_trial)


def main() -> None:
    """Run a trial."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path, help="new file")
    parser.add_argument("--world", action="append", required=True, help="may be repeated")
    parser.add_argument(
        "--prompts", action="append", required=True, help="version of the prompts; may be repeated"
    )
    parser.add_argument("--situations", type=int, default=200, help="of each world (200)")
    parser.add_argument("--regime", default="S1", help="S1")
    parser.add_argument("--model", help="another GGUF file")
    parser.add_argument("--concurrency", type=int, help="servers of one thread each (every core)")
    parser.add_argument("--store", type=Path, help="keeps the answers (FILE.answers.sqlite)")
    parser.add_argument("--note", default="", help="where the answers come from, for readers")
    one = parser.parse_args()
    given = ModelOptions(model=one.model, concurrency=one.concurrency, store=one.store)
    asked = (one.out, one.world, one.prompts, one.situations, one.regime, one.note, given)
    end_in_one_line(parser, "trial", lambda: ask(*asked))


if __name__ == "__main__":
    main()
