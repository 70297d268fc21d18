"""Replay files: the answers of one run, small enough to hand on, and whom they came from.

A gzip file of JSON lines. The first says what the file is, which model answered, what was run and which
result hash came out; then a line an answer, `[key, text, prompt tokens, completion tokens, fingerprint]`, in
order of key; the last counts them. It holds no requests: the run makes them again, and finds its answers by
their keys. So whoever has the file can run it, and see that the same episodes come out.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from envprobe_core.errors import InputError
from envprobe_core.llm.identity import ModelAgent
from envprobe_core.llm.reading import Completion, Tokens
from envprobe_core.llm.store import AnswerStore
from envprobe_core.runs.inputs import RunInputs, make_inputs, stated_inputs
from envprobe_core.runs.tables import replacing

FORMAT = "envprobe-replay/1"
LEVEL = 9


class ReplayFile:
    """A replay file that was read; it answers as a store does and takes nothing.

    Attributes:
        path: the file.
        inputs: the run whose answers it holds.
        result_hash: of that run.
        note: what the file says of its origin.
    """

    writable = False

    def __init__(
        self, path: Path, inputs: RunInputs, result_hash: str, note: str, answers: dict[bytes, Completion]
    ) -> None:
        self.path, self.inputs, self.result_hash, self.note = path, inputs, result_hash, note
        self._answers = answers

    @property
    def agent(self) -> ModelAgent:
        """Return which model answered, and how it was asked."""
        assert self.inputs.agent is not None  # `read_replay` refuses a file that names none
        return self.inputs.agent

    @property
    def fingerprints(self) -> frozenset[str]:
        """Return the names that the servers gave to what answered."""
        return frozenset(answer.fingerprint for answer in self._answers.values())

    def find(self, key: bytes) -> Completion | None:
        """Return the answer to a question, None where the file has none."""
        return self._answers.get(key)

    def lacks(self, what: str) -> str:
        """Say that an answer is not here, and what is."""
        inputs = self.inputs
        held = f"{' '.join(inputs.worlds)}; {' '.join(inputs.policies)}; {' '.join(inputs.protocols)}"
        seeds = inputs.seeds or "the default ones"
        return (
            f"replay {self.path} has no answer to {what}; it holds {held}; {inputs.regime}, seeds {seeds}, "
            "and replays as it was run or not at all"
        )

    def forms(self) -> dict[tuple[str, str], str]:
        """Return nothing: nobody is asked."""
        return {}

    def close(self) -> None:
        """Do nothing: the file was read at once."""

    def __len__(self) -> int:
        return len(self._answers)


Answers = AnswerStore | ReplayFile


def write_replay(
    path: Path, inputs: RunInputs, result_hash: str, note: str, store: AnswerStore, keys: Iterable[bytes]
) -> int:
    """Write the answers of a run on a model.

    Args:
        path: the file to write.
        inputs: the run.
        result_hash: its result hash.
        note: where the answers come from, for its readers.
        store: where they are.
        keys: the questions.

    Returns:
        How many there are.
    """
    stated = {name: value for name, value in stated_inputs(inputs).items() if name != "logs"}
    header = {"format": FORMAT, "note": note, "inputs": stated, "result_hash": result_hash}
    lines = [orjson.dumps(header)]
    for key in sorted(set(keys)):
        found = store.find(key)
        if found is None:
            raise RuntimeError(f"answer {key.hex()} was used and is not in the store")
        counts = (found.tokens.prompt, found.tokens.completion) if found.tokens else (None, None)
        lines.append(orjson.dumps([key.hex(), _as_ascii(found.text), *counts, found.fingerprint]))
    lines.append(orjson.dumps({"answers": len(lines) - 1}))
    with replacing(path) as temporary:
        temporary.write_bytes(gzip.compress(b"\n".join(lines) + b"\n", LEVEL, mtime=0))
    return len(lines) - 2


def read_replay(path: Path) -> ReplayFile:
    """Read a replay file.

    Raises:
        InputError: if it is none, or damaged, or cut short.
    """
    try:
        head, *lines, foot = gzip.decompress(path.read_bytes()).splitlines()
        header, footer = orjson.loads(head), orjson.loads(foot)
        if header.get("format") != FORMAT:
            raise InputError(f"its format is {header.get('format')!r}, not {FORMAT!r}")
        inputs, result_hash = _run(header)
        answers = dict(map(_answer, map(orjson.loads, lines)))
        if footer != {"answers": len(answers)} or len(lines) != len(answers):
            raise InputError("it is cut short or altered: it does not count its own lines")
    except InputError as error:
        raise InputError(f"replay {path}: {error}") from None
    except OSError as error:
        raise InputError(f"replay {path} cannot be read ({error.strerror or error})") from None
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is no replay file, or a damaged one ({error})") from None
    return ReplayFile(path, inputs, result_hash, str(header.get("note", "")), answers)


def _run(header: Any) -> tuple[RunInputs, str]:
    inputs = make_inputs(**header["inputs"])
    if inputs.agent is None:
        raise TypeError("it names no model")
    return inputs, str(header["result_hash"])


def _answer(line: Any) -> tuple[bytes, Completion]:
    key, text, prompt, completion, fingerprint = line
    if not (isinstance(text, str) and isinstance(fingerprint, str)):
        raise TypeError("an answer is no text")
    tokens = None if prompt is None else Tokens(int(prompt), int(completion))
    return bytes.fromhex(key), Completion(text, tokens, fingerprint)


def _as_ascii(text: str) -> str:
    """Replace lone surrogates, which no file can hold; such a text is no usable answer either way."""
    return text.encode("utf-8", "backslashreplace").decode()
