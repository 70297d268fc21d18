"""A language model as the agent: which one a run asks, and how, as manifests, logs and hashes carry it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Annotated, Literal

import pydantic
from pydantic import AfterValidator, ConfigDict, Field

from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.errors import InputError

PROMPT_VERSION = "2-d4d9bffe"
"""Of the prompts that are asked with by default; `prompts.toml` states every version."""
LONGEST_NAME = 120
LONGEST_EXTRA = 10_000
OWN_PARTS = (
    "model", "messages", "response_format", "temperature", "max_tokens", "max_completion_tokens", "seed",
    "stream", "n",
)  # fmt: skip
"""Parts of a request that the run itself sets, or whose answer it could not read."""


def _named(text: str) -> str:
    if not (text.isprintable() and 0 < len(text) <= LONGEST_NAME):
        raise InputError(f"model {text[:LONGEST_NAME]!r}: accepted are 1..{LONGEST_NAME} letters")
    return text


def _further(text: str) -> str:
    """Further parts of requests as JSON in one form, empty for none; what is no JSON, as NaN, is refused."""
    try:
        said = json.loads(text or "{}") if len(text) <= LONGEST_EXTRA else None
        form = json.dumps(said, sort_keys=True, allow_nan=False)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise InputError(f"--extra-body {text[:LONGEST_NAME]!r}: accepted is one JSON object")
    if twice := [name for name in OWN_PARTS if name in said]:
        raise InputError(f"--extra-body: {twice[0]!r} is set by the run itself")
    return form if said else ""


_Name = Annotated[str, AfterValidator(_named)]
_Tokens = Annotated[int, Field(ge=1, le=10**6)]


@pydantic.dataclasses.dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class ModelAgent:
    """A language model as the agent of a run; pydantic refuses what cannot be asked for."""

    kind: Literal["openai"] = field(default="openai", kw_only=True)
    provider: _Name  # who answers, as in the keys of answers
    prompt_version: str  # of the prompts it is asked with
    model: _Name  # as the server calls it
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0  # 0 in the paper
    max_tokens: _Tokens = 512  # of a belief update, 512 in the paper
    # the second model of EnvProbe-Judge; None means the same (the paper's choice)
    judge_model: _Name | None = None
    judge_max_tokens: _Tokens = 64  # of its verdict
    reasks: Annotated[int, Field(ge=0, le=9)] = 2  # times that an unusable answer is asked for again
    # further parts of each request, as the JSON of one object; empty for none
    extra_body: Annotated[str, AfterValidator(_further)] = ""

    def as_dict(self) -> dict[str, object]:
        """Return what manifests, logs and hashes carry; what was not given goes without saying."""
        stated = asdict(self)
        if not self.extra_body:
            del stated["extra_body"]
        return stated

    @property
    def models(self) -> set[str]:
        """Every model that is asked."""
        return {self.model, self.judge_model or self.model}

    @property
    def profile(self) -> AgentProfile:
        """What stands in the place of a simulated agent's profile: how its table is scored."""
        return ModelProfile(self.model, assumption="A language model: its errors are its own.", agent=self)


@dataclass(frozen=True)
class ModelProfile(AgentProfile):
    """The scoring habits of a language model's table, and who it is; its rates are not used."""

    agent: ModelAgent | None = None

    @property
    def identity(self) -> dict[str, object]:
        """What logs and hashes carry of it."""
        return {"agent": self.agent.as_dict()} if self.agent else {}

    def as_dict(self) -> dict[str, object]:
        """How its table is scored, for manifests."""
        return {"name": self.name, "writes": self.writes, "keeps_open": self.keeps_open}
