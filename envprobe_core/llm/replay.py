"""Replay files: the answers of one run, small enough to hand on, and whom they came from.

A gzip file of JSON lines. The first says what the file is, which model answered, what was run and which
result hash came out; then a line an answer, `[key, text, prompt tokens, completion tokens, fingerprint]`, in
order of key; the last counts them. It holds no requests: the run makes them again, and finds its answers by
their keys. So whoever has the file can run it, and see that the same episodes come out.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from envprobe_core.errors import InputError, first_fault
from envprobe_core.files import read_whole, replacing
from envprobe_core.llm.calls import MOST_TOKENS, Answer, Tokens
from envprobe_core.llm.identity import ModelAgent
from envprobe_core.llm.store import AnswerStore
from envprobe_core.runs.manifest import RunInputs

LEVEL = 9


class Header(BaseModel):
    """The first line of a replay file."""

    format: Literal["envprobe-replay/1"] = "envprobe-replay/1"
    note: str = ""
    inputs: dict[str, Any]
    result_hash: str


Count = Annotated[int, Field(ge=0, le=MOST_TOKENS)] | None
LINE = TypeAdapter(tuple[str, str, Count, Count, str])
Head = TypeVar("Head", bound=BaseModel)


@dataclass(frozen=True)
class ReplayFile:
    """A replay file that was read; it answers as a store does and takes nothing."""

    path: Path
    header: Header  # what it says of itself
    inputs: RunInputs  # the run whose answers it holds
    agent: ModelAgent  # which model answered, and how it was asked
    answers: Mapping[bytes, Answer]  # by key

    @property
    def fingerprints(self) -> frozenset[str]:
        """Return the names that the servers gave to what answered."""
        return frozenset(answer.fingerprint for answer in self.answers.values())

    def find(self, key: bytes) -> Answer | None:
        """Return the answer to a question, None where the file has none."""
        return self.answers.get(key)

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
        return len(self.answers)


Answers = AnswerStore | ReplayFile


def write_replay(
    path: Path, inputs: RunInputs, result_hash: str, note: str, store: AnswerStore, keys: Iterable[str]
) -> int:
    """Write the answers of a run on a model to a file; return how many there are.

    The `note` tells readers where they come from; `keys` are the questions, in hexadecimal.
    """
    stated = {name: value for name, value in inputs.as_dict().items() if name != "logs"}
    return write_answers(path, Header(note=note, inputs=stated, result_hash=result_hash), store, keys)


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
    with replacing(path, new=True) as temporary:
        temporary.write_bytes(gzip.compress(b"\n".join(lines) + b"\n", LEVEL, mtime=0))
    return len(lines) - 2


def read_replay(path: Path) -> ReplayFile:
    """Read a replay file.

    Raises:
        InputError: if it is none, or damaged, or cut short.
    """
    header, answers = read_answers(path, Header)
    try:
        inputs = RunInputs.from_dict(header.inputs)
        if inputs.agent is None:
            raise InputError("it names no model")
    except InputError as error:
        raise InputError(f"replay {path}: {error}") from None
    return ReplayFile(path, header, inputs, inputs.agent, answers)


def read_answers(path: Path, kind: type[Head]) -> tuple[Head, dict[bytes, Answer]]:
    """Read a header of some kind, and the answers by key.

    Raises:
        InputError: if the file is none, or damaged, or cut short.
    """
    try:
        head, _, rest = read_whole(path, packed=True).partition(b"\n")
        found = kind.model_validate_json(head)
        lines, _, foot = rest.rstrip(b"\n").rpartition(b"\n")
        count = {"answers": lines.count(b"\n") + bool(lines)}
        answers = {}
        for line in io.BytesIO(lines):
            key, text, prompt, completion, fingerprint = LINE.validate_json(line)
            used = None if prompt is None or completion is None else Tokens(prompt, completion)
            answers[bytes.fromhex(key)] = Answer(text, used, fingerprint)
        if not orjson.loads(foot) == count == {"answers": len(answers)}:
            raise ValueError("it does not count its own lines")
        return found, answers
    except OSError as error:
        raise InputError(f"replay {path} cannot be read ({error.strerror or error})") from None
    except (ValueError, EOFError, zlib.error) as error:
        why = first_fault(error) if isinstance(error, ValidationError) else error
        raise InputError(f"{path} is no replay file, or a damaged one ({why})") from None
