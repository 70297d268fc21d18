"""The replay file that the book comes with, made by the scripted server: no language model was asked.

    python -m envprobe_core.llm.demonstration        (or `make replay`)

It starts the server on loopback, runs the policies of the paper's first table through it as `envprobe run
--agent openai` does, and exports the answers. The same file comes out each time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from envprobe_core.llm.asking import ModelSettings
from envprobe_core.llm.client import Limits
from envprobe_core.llm.hiding import PLACEHOLDER, Secret
from envprobe_core.llm.identity import ModelAgent
from envprobe_core.llm.keys import LOCAL
from envprobe_core.llm.prompts import PROMPT_VERSION
from envprobe_core.llm.replay import write_replay
from envprobe_core.llm.replayed import FOLDER, SUFFIX
from envprobe_core.llm.running import Service, replay_cells, run_missing
from envprobe_core.llm.store import AnswerStore
from envprobe_core.runs.folder import open_run
from envprobe_core.runs.inputs import RunInputs, make_inputs
from envprobe_core.sweep import Piece
from envprobe_core.worlds import WORLDS

FILE = "scripted"
MODEL = "scripted-server"  # and not `scripted`, which is a profile of the simulated agent
POLICIES = ("periodic", "simple", "cd", "minus-u")
SEEDS = "0:12"
NOTE = "Made by the project's scripted test server, which is no language model."


def demonstrated_run(seeds: str = SEEDS) -> RunInputs:
    """Return the run whose answers the file holds, or the same on other seeds."""
    agent = ModelAgent(LOCAL, PROMPT_VERSION, ModelSettings(MODEL))
    return make_inputs(WORLDS, POLICIES, seeds=seeds, logs="none", agent=agent)


@contextmanager
def scripted_server() -> Iterator[str]:
    """Start the scripted server in a process of its own; gives its address."""
    command = [sys.executable, "-m", "envprobe_core.llm.server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def make_replay(out: Path, inputs: RunInputs) -> int:
    """Run through the scripted server and write the answers.

    Args:
        out: the file.
        inputs: what is run.

    Returns:
        How many answers there are.
    """
    assert inputs.agent is not None
    with tempfile.TemporaryDirectory(prefix="envprobe-") as name, scripted_server() as url:
        store = AnswerStore(Path(name) / "answers.sqlite")
        try:
            service = Service(inputs.agent, store, Secret(PLACEHOLDER), url, Limits())
            with open_run(Path(name) / "run", inputs) as folder:
                run_missing(folder, folder.missing(), service)
                total = str(folder.manifest["result_hash"])
            pieces = [
                Piece(index, cell, seeds)
                for index, (cell, seeds) in enumerate(zip(inputs.cells, inputs.seeds_of_cells, strict=True))
            ]
            _, _, keys = replay_cells(Service(inputs.agent, store), pieces)
            return write_replay(out, inputs, total, NOTE, store, map(bytes.fromhex, keys))
        finally:
            store.close()


def main() -> None:
    """Make the file again, or another one beside it."""
    parser = argparse.ArgumentParser(prog="python -m envprobe_core.llm.demonstration", description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER / f"{FILE}{SUFFIX}", help="file to write")
    out = parser.parse_args().out
    out.parent.mkdir(parents=True, exist_ok=True)
    print(f"{make_replay(out, demonstrated_run())} answers, {out.stat().st_size} bytes: {out}")


if __name__ == "__main__":
    main()
