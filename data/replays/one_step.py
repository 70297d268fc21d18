"""One step of a language model, with and without the answer of a check, under three hints, each asked twice.

    python data/replays/one_step.py NAME.one-step.gz                    the weights of `envprobe model fetch`
    python data/replays/one_step.py NAME.one-step.gz --model MY.gguf    a model of one's own
    python data/replays/one_step.py NAME.one-step.gz --model NAME --base-url http://127.0.0.1:8000/v1

What is tested was fixed before the first answer came. The belief: does the table that is written give the
checked field the told value? The action: is another one proposed? Pairs of requests about one situation are
compared by McNemar's exact test: with the answer line and without it (for each hint), with a hint and without
one (for each of the other lines), asked once and asked again. As an action has no right value, its changes
are what is compared: by the answer line against by asking again. If no pair changes against the rule, the
test finds at the 5% level, with a probability of .8, a change in 6.6% of 120 pairs, in 13% of 60, and in 19%
of 40, which are one world's.

Run again after an interruption, the command resumes where it stopped. Situations are asked one after another,
eight of each world in turn, so that fewer of them (--situations) are the first ones of more.
"""

import argparse
from pathlib import Path

from envprobe_book.cli.asking import ask_and_keep, end_in_one_line
from envprobe_book.cli.model import LOCAL, OPENAI, ModelOptions
from envprobe_core.conditions import make_condition
from envprobe_core.files import refuse_existing
from envprobe_core.llm.one_step import PROMPTS, OneStep, ask_one_step
from envprobe_core.worlds import WORLDS


def ask(
    out: Path, situations: int = 40, worlds: list[str] | None = None, note: str = "",
    given: ModelOptions | None = None,
) -> None:  # fmt: skip
    """Ask, and write the answers to a new file; what cannot be meant is refused before a store is made."""
    refuse_existing("--out", out)
    given = given or ModelOptions(prompts=PROMPTS)
    for each in worlds or WORLDS:
        make_condition(each, "simple")
    agent = given.agent(OPENAI if given.base_url else LOCAL)
    asked = OneStep(agent=agent, worlds=worlds or [*WORLDS], situations=situations, note=note)
    ask_and_keep(out, asked, given, ask_one_step)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path, help="new file")
    parser.add_argument("--world", action="append", help="may be repeated (all)")
    parser.add_argument("--situations", type=int, default=40, help="of each world (40)")
    parser.add_argument("--model", help="another GGUF file, or the server's name of a model")
    parser.add_argument("--base-url", help="of a server that speaks OpenAI's protocol")
    parser.add_argument("--concurrency", type=int, help="servers of one thread each, or calls at once")
    parser.add_argument("--store", type=Path, help="keeps the answers (FILE.answers.sqlite)")
    parser.add_argument("--note", default="", help="where the answers come from, for readers")
    one = parser.parse_args()

    def work() -> None:
        told = {"model": one.model, "base_url": one.base_url, "store": one.store}
        given = ModelOptions(prompts=PROMPTS, concurrency=one.concurrency, **told)
        ask(one.out, one.situations, one.world, one.note, given)

    end_in_one_line(parser, "one step", work)


if __name__ == "__main__":
    main()
