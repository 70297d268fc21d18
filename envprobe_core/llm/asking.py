"""What passes between an agent and whatever answers it: one request, one answer.

A request is the body of an OpenAI chat completion (`model`, `messages`, `response_format`,
`temperature`, `max_tokens`, `seed`), as plain JSON values. An `Asker` answers it: the client with its
store, or `Scripted`, which needs no network. An asker raises its own errors for infrastructure
failures; they pass through the agent and the driver unchanged and stop the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

ChatRequest = dict[str, Any]


@dataclass(frozen=True)
class Usage:
    """Tokens of one answer, as the server counted them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class Answered:
    """One answer.

    Attributes:
        text: the raw content of the message; empty where the server gave none.
        key: the key under which the answer is stored; empty where there is no store.
        usage: its tokens; None where the server did not say.
        fingerprint: the server's own name for what answered; empty where it gave none.
    """

    text: str
    key: str = ""
    usage: Usage | None = None
    fingerprint: str = ""


class Asker(Protocol):
    """Anything that answers requests."""

    async def ask(self, request: ChatRequest, identity: str) -> Answered:
        """Answer a request.

        Args:
            request: the body of a chat completion; never changed by the asker.
            identity: whose sample it is (an episode's seed and the role that asks): with the request, the
                whole key of an answer. Two policies that meet one situation share request and identity.
        """


@dataclass(frozen=True)
class ModelSettings:
    """Which model is asked, and how; all of it is part of every request.

    Attributes:
        model: as the server calls it.
        temperature: 0 in the paper.
        max_tokens: of a belief update, 512 in the paper.
        judge_model: the second model of EnvProbe-Judge; None means the same (the paper's choice).
        judge_max_tokens: of its verdict.
        reasks: how often an answer that cannot be used is asked for again.
    """

    model: str
    temperature: float = 0.0
    max_tokens: int = 512
    judge_model: str | None = None
    judge_max_tokens: int = 64
    reasks: int = 2
