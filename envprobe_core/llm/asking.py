"""What passes between an agent and whatever answers it: one request, one answer, or the end of the run.

A request is the body of an OpenAI chat completion (`model`, `messages`, `response_format`,
`temperature`, `max_tokens`, `seed`), as plain JSON values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

ChatRequest = dict[str, Any]
DEMAND = "This answer cannot be used"
"""How the last message of a request begins that asks again."""


@dataclass(frozen=True)
class Tokens:
    """What a server says that a call used."""

    prompt: int
    completion: int
    cached: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        """Add what another call used."""
        return Tokens(
            self.prompt + other.prompt, self.completion + other.completion, self.cached + other.cached
        )


NO_TOKENS = Tokens(0, 0)


@dataclass(frozen=True)
class Answered:
    """One answer.

    Attributes:
        text: the raw content of the message; empty where the server gave none.
        key: the key under which the answer is stored, in hexadecimal; empty where there is no store.
        tokens: what it used; None where the server did not say.
        fingerprint: the server's own name for what answered; empty where it gave none.
    """

    text: str
    key: str = ""
    tokens: Tokens | None = None
    fingerprint: str = ""


class Asker(Protocol):
    """Anything that answers requests."""

    async def ask(self, request: ChatRequest, identity: str) -> Answered:
        """Answer a request.

        Args:
            request: the body of a chat completion; never changed by the asker.
            identity: whose sample it is (an episode's seed and the role that asks): with the request, the
                whole key of an answer. Two policies that meet one situation share request and identity.

        Raises:
            RunStoppedError: if no answer can be had; it passes through the agent and stops the run.
        """


class RunStoppedError(Exception):
    """A run cannot go on: the answers so far are kept and nothing was scored.

    Its message is one line that says why and what to do; the command line shows it and ends with exit code 1.
    """


class MissingAnswerError(RunStoppedError):
    """A replay needs an answer that its store does not hold."""
