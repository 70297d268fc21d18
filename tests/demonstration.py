"""The replay file that the book comes with, made by the scripted server: no language model was asked.

    python tests/demonstration.py        (or `make replay`)

It starts the server on loopback, runs the policies of the paper's first table through it as `envprobe run
--agent openai` does, and exports the answers. The same file comes out each time.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import chain
from pathlib import Path

from scripted_server import server_process

from envprobe_core.llm.calls import LOCAL
from envprobe_core.llm.client import Limits
from envprobe_core.llm.identity import ModelAgent
from envprobe_core.llm.prompts import PROMPT_VERSION
from envprobe_core.llm.provider import PLACEHOLDER, Secret
from envprobe_core.llm.replay import write_replay
from envprobe_core.llm.replayed import FOLDER, SUFFIX
from envprobe_core.llm.running import Service, replay_run, run_missing
from envprobe_core.llm.store import AnswerStore
from envprobe_core.runs.folder import open_run
from envprobe_core.runs.manifest import RunInputs
from envprobe_core.worlds import WORLDS

FILE = "scripted"
MODEL = "scripted-server"  # and not `scripted`, which is a profile of the simulated agent
POLICIES = ("periodic", "simple", "cd", "minus-u")
SEEDS = "0:12"
NOTE = "Made by the project's scripted test server, which is no language model."


def demonstrated_run(seeds=SEEDS):
    """Return the run whose answers the file holds, or the same on other seeds."""
    agent = ModelAgent(LOCAL, PROMPT_VERSION, MODEL)
    return RunInputs(WORLDS, POLICIES, seeds=seeds, logs="none", agent=agent)


def make_replay(out, inputs):
    """Run through the scripted server and write the answers.

    Args:
        out: the file.
        inputs: what is run.

    Returns:
        How many answers there are.
    """
    assert inputs.agent is not None
    with tempfile.TemporaryDirectory(prefix="envprobe-") as name, server_process() as server:
        store = AnswerStore(Path(name) / "answers.sqlite")
        try:
            service = Service(inputs.agent, store, Secret(PLACEHOLDER), (server.url,), Limits())
            with open_run(Path(name) / "run", inputs) as folder:
                run_missing(folder, folder.missing(), service)
            replayed = replay_run(Service(inputs.agent, store), inputs)
            return write_replay(
                out, inputs, replayed.result_hash, NOTE, store, chain.from_iterable(replayed.keys)
            )
        finally:
            store.close()


def main():
    """Make the file again, or another one beside it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER / f"{FILE}{SUFFIX}", help="file to write")
    out = parser.parse_args().out
    out.parent.mkdir(parents=True, exist_ok=True)
    print(f"{make_replay(out, demonstrated_run())} answers, {out.stat().st_size} bytes: {out}")


if __name__ == "__main__":
    main()
