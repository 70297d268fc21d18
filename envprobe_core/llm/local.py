"""A language model on this machine: llama.cpp's own server, a process of one thread for each core.

A server ends when its standard input does, so none outlives the run that started it, however that run ends.

    python -m envprobe_core.llm.local FILE.gguf        (prints its address)
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from envprobe_core.errors import InputError
from envprobe_core.llm.identity import ModelAgent, ModelSettings
from envprobe_core.llm.prompts import PROMPT_VERSION
from envprobe_core.llm.weights import file_sha256

PROVIDER = "llama.cpp"
CONTEXT = 8192  # tokens of a prompt with its answer; the longest prompt of the largest world has fewer
SHOWN_HASH = 12  # digits of the weights' hash in the model's name, and so in the key of every answer
DEADLINE = 900.0  # seconds a call may take on a machine that is busy with other things
LAST_WORDS = 200  # characters of a server's log that a message repeats


def local_agent(
    weights: Path, version: str = PROMPT_VERSION, reasks: int = ModelSettings.reasks
) -> ModelAgent:
    """Return the agent that asks weights on this machine; its name holds their hash."""
    name = f"{weights.stem}@{file_sha256(weights)[:SHOWN_HASH]}"
    return ModelAgent(PROVIDER, version, ModelSettings(name, reasks=reasks))


def check_installed() -> None:
    """Refuse to begin without llama.cpp.

    Raises:
        InputError: naming the extra that brings it.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise InputError("a local model needs llama.cpp: pip install 'envprobe-core[local]'")


@contextmanager
def serving(weights: Path, servers: int) -> Iterator[tuple[str, ...]]:
    """Serve weights in processes of one thread each; gives their addresses and ends them.

    Raises:
        InputError: if llama.cpp is not installed, or cannot read the weights.
    """
    check_installed()
    with ExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile())
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", __name__, str(weights)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    start_new_session=True,  # an interrupt from the keyboard is the run's to handle
                )
            )
            for _ in range(servers)
        ]
        stack.callback(_end, processes)
        addresses = tuple(str(process.stdout.readline()).strip() for process in processes)  # type: ignore[union-attr]
        if not all(addresses):
            log.seek(0)
            words = " ".join(log.read().decode("utf-8", "replace").split())[-LAST_WORDS:]
            raise InputError(f"llama.cpp cannot serve {weights}: {words}")
        yield addresses


def _end(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.kill()  # it holds nothing that has to be saved


def serve(weights: Path) -> None:
    """Serve weights until standard input ends."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.n_ctx, parameters.n_parallel, parameters.port = CONTEXT, 1, 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    import os

    serve(Path(sys.argv[1]))
    os._exit(0)  # at once: llama.cpp would first finish what it is writing
