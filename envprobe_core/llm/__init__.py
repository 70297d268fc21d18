"""A language model as the agent: which one a run asks, and how, as manifests, logs and hashes carry it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pydantic import ConfigDict, TypeAdapter, ValidationError

from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.errors import InputError, first_fault

FIRST, SECOND, PUBLIC, HINTED = "1-4e55db8f", "2-d4d9bffe", "public-73333185", "public-hint-4c95a9cf"
VERSIONS = (FIRST, SECOND, PUBLIC, HINTED)
"""Of the prompts, all of which can be asked with: the first, today's, and the public code's two."""
PROMPT_VERSION = SECOND
LONGEST_NAME = 120
BOUNDS = {"temperature": (0, 2), "max_tokens": (1, 10**6), "judge_max_tokens": (1, 10**6), "reasks": (0, 9)}


def find_version(text: str) -> str:
    """Return the version of a name: `1`, `2`, `public`, `public-hint`, or with its fingerprint.

    Raises:
        InputError: if there is none; the message lists those there are.
    """
    for version in VERSIONS:
        if text in (version, version.rpartition("-")[0]):
            return version
    raise InputError(f"unknown prompts {text[:200]!r}; accepted: {', '.join(VERSIONS)}")


@dataclass(frozen=True)
class ModelAgent:
    """A language model as the agent of a run."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    provider: str  # who answers, as in the keys of answers
    prompt_version: str  # of the prompts it is asked with
    model: str  # as the server calls it
    temperature: float = 0.0  # 0 in the paper
    max_tokens: int = 512  # of a belief update, 512 in the paper
    # the second model of EnvProbe-Judge; None means the same (the paper's choice)
    judge_model: str | None = None
    judge_max_tokens: int = 64  # of its verdict
    reasks: int = 2  # how often an answer that cannot be used is asked for again

    def __post_init__(self) -> None:
        """Refuse what cannot be asked for."""
        for name in (self.provider, self.model, self.judge_model):
            if name is not None and not (name.isprintable() and 0 < len(name) <= LONGEST_NAME):
                raise InputError(f"model {name[:LONGEST_NAME]!r}: accepted are 1..{LONGEST_NAME} letters")
        for name, (least, most) in BOUNDS.items():
            if not least <= getattr(self, name) <= most:
                raise InputError(f"{name} {str(getattr(self, name))[:20]} is not in {least}..{most}")

    @property
    def models(self) -> set[str]:
        """Return every model that is asked."""
        return {self.model, self.judge_model or self.model}

    def as_dict(self) -> dict[str, object]:
        """Return every value by name, as a manifest states them."""
        return {"kind": "openai", **asdict(self)}

    @classmethod
    def from_dict(cls, stated: Mapping[str, object]) -> ModelAgent:
        """Read what a manifest states.

        Raises:
            InputError: if it states something else.
        """
        rest = dict(stated)
        if rest.pop("kind", None) != "openai":
            raise InputError("the agent is of another kind")
        try:
            return TypeAdapter(cls).validate_python(rest)
        except ValidationError as error:
            raise InputError(f"the agent's {first_fault(error)}") from None

    @property
    def profile(self) -> AgentProfile:
        """Return what stands in the place of a simulated agent's profile: how its table is scored."""
        own = "A language model: its errors are its own."
        return ModelProfile(self.model, assumption=own, agent=tuple(self.as_dict().items()))


@dataclass(frozen=True)
class ModelProfile(AgentProfile):
    """The scoring habits of a language model's table, and who it is; its rates are not used."""

    agent: tuple[tuple[str, object], ...] = ()

    @property
    def identity(self) -> dict[str, object]:
        """Return what logs and hashes carry of it."""
        return {"agent": dict(self.agent)}

    def as_dict(self) -> dict[str, object]:
        """Return how its table is scored, for manifests."""
        return {"name": self.name, "writes": self.writes, "keeps_open": self.keeps_open}
