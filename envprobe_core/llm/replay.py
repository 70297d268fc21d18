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
from typing import Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, TypeAdapter, ValidationError

from envprobe_core.errors import InputError
from envprobe_core.llm.asking import Tokens
from envprobe_core.llm.identity import ModelAgent
from envprobe_core.llm.reading import Completion
from envprobe_core.llm.store import AnswerStore
from envprobe_core.runs.inputs import RunInputs, make_inputs, stated_inputs
from envprobe_core.runs.tables import replacing

LEVEL = 9


class Header(BaseModel):
    """The first line of a replay file."""

    format: Literal["envprobe-replay/1"] = "envprobe-replay/1"
    note: str = ""
    inputs: dict[str, Any]
    result_hash: str


Line = tuple[str, str, int | None, int | None, str]
LINE = TypeAdapter(Line)


class ReplayFile:
    """A replay file that was read; it answers as a store does and takes nothing.

    Attributes:
        path: the file.
        inputs: the run whose answers it holds.
        agent: which model answered, and how it was asked.
        result_hash: of that run.
        note: what the file says of its origin.
    """

    def __init__(self, path: Path, header: Header, answers: dict[bytes, Completion]) -> None:
        """Take what was read."""
        self.path, self.result_hash, self.note = path, header.result_hash, header.note
        self.inputs: RunInputs = make_inputs(**header.inputs)
        if self.inputs.agent is None:
            raise TypeError("it names no model")
        self.agent: ModelAgent = self.inputs.agent
        self._answers = answers

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

    def close(self) -> None:
        """Do nothing: the file was read at once."""

    def __len__(self) -> int:
        return len(self._answers)


Answers = AnswerStore | ReplayFile


def write_replay(
    path: Path, inputs: RunInputs, result_hash: str, note: str, store: AnswerStore, keys: Iterable[str]
) -> int:
    """Write the answers of a run on a model.

    Args:
        path: the file to write.
        inputs: the run.
        result_hash: its result hash.
        note: where the answers come from, for its readers.
        store: where they are.
        keys: the questions, in hexadecimal.

    Returns:
        How many there are.
    """
    stated = {name: value for name, value in stated_inputs(inputs).items() if name != "logs"}
    header = Header(note=note, inputs=stated, result_hash=result_hash)
    return write_answers(path, header, store, keys)


def write_answers(path: Path, header: BaseModel, store: AnswerStore, keys: Iterable[str]) -> int:
    """Write a header and the answers to some questions, in hexadecimal; return how many there are."""
    lines = [orjson.dumps(header.model_dump())]
    for key in sorted(set(keys)):
        found = store.find(bytes.fromhex(key))
        if found is None:
            raise RuntimeError(f"answer {key} was used and is not in the store")
        counts = (found.used.prompt, found.used.completion) if found.used else (None, None)
        # a lone surrogate, which no file can hold, is replaced: no usable answer has one
        text = found.text.encode("utf-8", "backslashreplace").decode()
        lines.append(orjson.dumps([key, text, *counts, found.fingerprint]))
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
        return ReplayFile(path, *read_answers(path, Header))
    except (TypeError, AttributeError) as error:
        raise _no_replay(path, error) from None


Head = TypeVar("Head", bound=BaseModel)


def read_answers(path: Path, kind: type[Head]) -> tuple[Head, dict[bytes, Completion]]:
    """Read a header of some kind, and the answers by key.

    Raises:
        InputError: if the file is none, or damaged, or cut short.
    """
    try:
        head, *lines, foot = gzip.decompress(path.read_bytes()).splitlines()
        answers = dict(_answer(LINE.validate_json(line)) for line in lines)
        if orjson.loads(foot) != {"answers": len(answers)} or len(lines) != len(answers):
            raise ValueError("it does not count its own lines")
        return kind.model_validate_json(head), answers
    except InputError as error:
        raise InputError(f"replay {path}: {error}") from None
    except OSError as error:
        raise InputError(f"replay {path} cannot be read ({error.strerror or error})") from None
    except (ValueError, TypeError, AttributeError, EOFError, zlib.error) as error:
        raise _no_replay(path, error) from None


def _no_replay(path: Path, error: Exception) -> InputError:
    why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
    return InputError(f"{path} is no replay file, or a damaged one ({why})")


def _answer(line: Line) -> tuple[bytes, Completion]:
    key, text, prompt, completion, fingerprint = line
    used = None if prompt is None or completion is None else Tokens(prompt, completion)
    return bytes.fromhex(key), Completion(text, used, fingerprint)
