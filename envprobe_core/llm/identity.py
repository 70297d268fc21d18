"""Which model a run asks, and how: what its manifest, logs and hash carry, and what its cells are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pydantic import ConfigDict, TypeAdapter, ValidationError

from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.errors import InputError, first_fault

LONGEST_NAME = 120
HIGHEST_TEMPERATURE = 2.0


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

    __pydantic_config__ = ConfigDict(extra="forbid")

    model: str
    temperature: float = 0.0
    max_tokens: int = 512
    judge_model: str | None = None
    judge_max_tokens: int = 64
    reasks: int = 2

    @property
    def models(self) -> set[str]:
        """Return every model that is asked."""
        return {self.model, self.judge_model or self.model}


@dataclass(frozen=True)
class ModelAgent:
    """A language model as the agent of a run.

    Attributes:
        provider: who answers, as in the keys of answers.
        prompt_version: of the prompts it is asked with.
        settings: which model, and how.
    """

    provider: str
    prompt_version: str
    settings: ModelSettings

    def __post_init__(self) -> None:
        """Refuse what cannot be asked for."""
        for name in (self.provider, self.settings.model, self.settings.judge_model):
            if name is not None and not (name.isprintable() and 0 < len(name) <= LONGEST_NAME):
                raise InputError(f"model {name[:LONGEST_NAME]!r}: accepted are 1..{LONGEST_NAME} letters")
        if not 0 <= self.settings.temperature <= HIGHEST_TEMPERATURE:
            raise InputError(f"temperature {self.settings.temperature} is not in 0..{HIGHEST_TEMPERATURE:g}")

    def as_dict(self) -> dict[str, object]:
        """Return every value by name, as a manifest states them."""
        return {
            "kind": "openai",
            "provider": self.provider,
            "prompt_version": self.prompt_version,
            **asdict(self.settings),
        }

    @classmethod
    def from_dict(cls, stated: Mapping[str, object]) -> ModelAgent:
        """Read what a manifest states.

        Raises:
            InputError: if it states something else.
        """
        rest = dict(stated)
        if rest.pop("kind", None) != "openai":
            raise InputError("the agent is of another kind")
        own = {name: rest.pop(name, None) for name in ("provider", "prompt_version")}
        try:
            return TypeAdapter(cls).validate_python({**own, "settings": rest})
        except ValidationError as error:
            raise InputError(f"the agent's {first_fault(error)}") from None

    @property
    def profile(self) -> AgentProfile:
        """Return what stands in the place of a simulated agent's profile: how its table is scored."""
        return ModelProfile(
            self.settings.model,
            writes="number",
            keeps_open=True,
            assumption="A language model: its errors are its own.",
            agent=tuple(self.as_dict().items()),
        )


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
