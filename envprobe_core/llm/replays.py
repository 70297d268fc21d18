"""Replay files: the answers of one run, small enough to hand on.

A gzip file of JSON lines. The first says which model answered, what was run and which result hash came out;
then a line an answer, `[key, text, prompt tokens, completion tokens, fingerprint, served]`, in order of key,
without its end where the server did not say which model answered; the last line counts them. It holds no
requests: the run makes them again, and finds its answers by their keys.
"""

import gzip
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import orjson
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

from envprobe_core.agents.model import ModelAgent
from envprobe_core.errors import InputError, first_fault
from envprobe_core.files import atomic_write, read_whole
from envprobe_core.llm.calls import MOST_TOKENS, Answer, Tokens
from envprobe_core.llm.store import AnswerStore
from envprobe_core.runs.manifest import RunInputs


def _of_a_model(inputs: RunInputs) -> RunInputs:
    if inputs.agent is None:
        raise InputError("its inputs name no model")
    return inputs


class Header(BaseModel):
    """The first line of a replay file."""

    format: Literal["envprobe-replay/1"] = "envprobe-replay/1"
    note: str = ""
    inputs: Annotated[RunInputs, AfterValidator(_of_a_model)]
    result_hash: str
    requests: dict[str, list[str]] = {}  # rungs of the ladder that they took, by model


Count = Annotated[int, Field(ge=0, le=MOST_TOKENS)] | None
LINE = TypeAdapter(tuple[str, str, Count, Count, str] | tuple[str, str, Count, Count, str, str])
Head = TypeVar("Head", bound=BaseModel)


@dataclass(frozen=True)
class ReplayFile:
    """A replay file that was read; it answers as a store does and takes nothing."""

    path: Path
    header: Header  # what it says of itself
    answers: Mapping[bytes, Answer]  # by key

    @property
    def agent(self) -> ModelAgent:
        """Which model answered, and how it was asked."""
        return self.header.inputs.agent  # type: ignore[return-value]  # its header would have been refused

    @property
    def fingerprints(self) -> frozenset[str]:
        """The names that the servers gave to what answered."""
        return frozenset(answer.fingerprint for answer in self.answers.values())

    def rungs(self) -> dict[str, list[str]]:
        """The rungs of the ladder that requests took, by model."""
        return self.header.requests

    def find(self, key: bytes) -> Answer | None:
        """The answer to a question, None where the file has none."""
        return self.answers.get(key)

    @property
    def advice(self) -> str:
        """What answers are here."""
        run = self.header.inputs
        held = "; ".join(map(" ".join, (run.worlds, run.policies, run.protocols, [run.regime])))
        return f"it holds {held}, seeds {run.seeds or 'by default'}"

    def close(self) -> None:
        """Do nothing: the file was read at once."""


Answers = AnswerStore | ReplayFile


def write_answers(path: Path, header: BaseModel, store: Answers, keys: Iterable[str]) -> int:
    """Write a header and the answers to some questions, in hexadecimal; return how many there are."""
    stated = {name: part for name, part in header.model_dump().items() if name != "requests" or part}
    lines, distinct = [orjson.dumps(stated)], sorted(set(keys))
    for key in distinct:
        found = store.find(bytes.fromhex(key))
        assert found is not None, "it was used"
        counts = (found.used.prompt, found.used.completion) if found.used else (None, None)
        # a lone surrogate, which no file can hold, is replaced: no usable answer has one
        text = found.text.encode("utf-8", "backslashreplace").decode()
        served = [found.served] if found.served else []
        lines.append(orjson.dumps([key, text, *counts, found.fingerprint, *served]))
    lines.append(orjson.dumps({"answers": len(distinct)}))
    with atomic_write(path, new=True) as temporary:
        temporary.write_bytes(gzip.compress(b"\n".join(lines) + b"\n", mtime=0))
    return len(distinct)


def read_replay(path: Path) -> ReplayFile:
    """Read a replay file; see `read_answers`."""
    return ReplayFile(path, *read_answers(path, Header))


def read_answers(path: Path, kind: type[Head]) -> tuple[Head, dict[bytes, Answer]]:
    """Read a header of some kind, and the answers by key.

    Raises:
        InputError: if the file is none, or damaged, or cut short.
    """
    try:
        head, *lines, foot = read_whole(path, packed=True).splitlines()
        found, answers = kind.model_validate_json(head), {}
        for line in lines:
            key, text, prompt, completion, fingerprint, *served = LINE.validate_json(line)
            used = None if prompt is None or completion is None else Tokens(prompt, completion)
            answers[bytes.fromhex(key)] = Answer(
                text, used, fingerprint, key=key, served=next(iter(served), "")
            )
        if not orjson.loads(foot) == {"answers": len(lines)} == {"answers": len(answers)}:
            raise ValueError("it does not count its own lines")
        return found, answers
    except OSError as error:
        raise InputError(f"replay {path} cannot be read ({error.strerror or error})") from None
    except (ValueError, EOFError, zlib.error) as error:
        why = first_fault(error) if isinstance(error, ValidationError) else error
        raise InputError(f"{path} is no replay file, or a damaged one ({why})") from None
