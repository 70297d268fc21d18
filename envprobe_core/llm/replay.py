"""Replay files: the answers of one run, small enough to hand on, and whom they came from.

A gzip file of JSON lines. The first says what the file is and which model answered; then a line an answer,
`[key, text, prompt tokens, completion tokens, fingerprint]`, in order of key; the last counts them. It holds
no requests: the run makes them again, and finds its answers by their keys.
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
from envprobe_core.parts import replacing

FORMAT = "envprobe-replay/1"
LEVEL = 9


class ReplayFile:
    """A replay file that was read; it answers as a store does and takes nothing.

    Attributes:
        path: the file.
        agent: which model answered, and how it was asked.
        note: what the file says of its origin.
    """

    writable = False

    def __init__(self, path: Path, agent: ModelAgent, note: str, answers: dict[bytes, Completion]) -> None:
        self.path, self.agent, self.note = path, agent, note
        self._answers = answers

    def find(self, key: bytes) -> Completion | None:
        """Return the answer to a question, None where the file has none."""
        return self._answers.get(key)

    def forms(self) -> dict[tuple[str, str], str]:
        """Return nothing: nobody is asked."""
        return {}

    def close(self) -> None:
        """Do nothing: the file was read at once."""

    def __len__(self) -> int:
        return len(self._answers)


Answers = AnswerStore | ReplayFile


def write_replay(path: Path, agent: ModelAgent, note: str, store: AnswerStore, keys: Iterable[bytes]) -> int:
    """Write the answers to some questions.

    Args:
        path: the file to write.
        agent: which model answered.
        note: where the answers come from, for its readers.
        store: where they are.
        keys: the questions.

    Returns:
        How many there are.
    """
    lines = [orjson.dumps({"format": FORMAT, "note": note, "agent": agent.as_dict()})]
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
            raise InputError(f"replay {path}: its format is {header.get('format')!r}, not {FORMAT!r}")
        agent = ModelAgent.from_dict(header["agent"])
        answers = dict(map(_answer, map(orjson.loads, lines)))
        if footer != {"answers": len(answers)} or len(lines) != len(answers):
            raise InputError(f"replay {path} is cut short or altered: it does not count its own lines")
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"replay {path} cannot be read ({error.strerror or error})") from None
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is no replay file, or a damaged one ({error})") from None
    return ReplayFile(path, agent, str(header.get("note", "")), answers)


def _answer(line: Any) -> tuple[bytes, Completion]:
    key, text, prompt, completion, fingerprint = line
    if not (isinstance(text, str) and isinstance(fingerprint, str)):
        raise TypeError("an answer is no text")
    tokens = None if prompt is None else Tokens(int(prompt), int(completion))
    return bytes.fromhex(key), Completion(text, tokens, fingerprint)


def _as_ascii(text: str) -> str:
    """Replace lone surrogates, which no file can hold; such a text is no usable answer either way."""
    return text.encode("utf-8", "backslashreplace").decode()
