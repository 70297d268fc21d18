"""The options of a language model as the agent, shared by `run` and `estimate`, and what they stand for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from envprobe_core.cli.options import check_positive
from envprobe_core.errors import InputError

if TYPE_CHECKING:
    from envprobe_core.llm.identity import ModelAgent
    from envprobe_core.llm.prices import Price
    from envprobe_core.llm.running import Service

SIMULATED, OPENAI, LOCAL = "simulated", "openai", "local"
PANEL = "Language model as the agent"
DEFAULT_CONCURRENCY = 16


def _option(
    name: str, about: str, metavar: str | None = None, default: str | bool = True, **more: Any
) -> Any:
    """Return an option of the panel; `default` is what help shows in the place of None."""
    return typer.Option(
        name, help=about, metavar=metavar, show_default=default, rich_help_panel=PANEL, **more
    )


Agent = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="[simulated|openai|local]",
        help="Who acts: the simulated agent, a language model behind an OpenAI-compatible server, or one "
        "that runs on this machine without a key (`envprobe model fetch`).",
    ),
]
Model = Annotated[
    str | None,
    _option("--model", "Model's name, as in gpt-4o-mini; with --agent local a file, as in M.gguf.", "M"),
]
JudgeModel = Annotated[
    str | None, _option("--judge-model", "Second model of the policy judge.", "M", "the same")
]
BaseUrl = Annotated[
    str | None,
    _option(
        "--base-url",
        "Of a compatible server, as in http://127.0.0.1:8080/v1; one on this machine needs no key and "
        "is sent a made-up one where OPENAI_API_KEY is not set.",
        "URL",
        "OpenAI's",
    ),
]
Prompt = Annotated[
    str | None,
    _option("--prompts", "Version of the prompts: 1, 2, public or public-hint.", "V", "2"),
]
Reasks = Annotated[
    int | None,
    _option(
        "--reasks", "Times that an answer that cannot be used is asked for again.", default="2", min=0, max=9
    ),
]
Concurrency = Annotated[
    int | None,
    _option(
        "--concurrency",
        "Calls under way at once; with --agent local its servers, of one thread each.",
        default=f"{DEFAULT_CONCURRENCY}; local: as many as cores",
        min=1,
        max=1024,
    ),
]
MaxCost = Annotated[
    float | None,
    _option(
        "--max-cost",
        "The most that all attempts in the store may cost together; the run stops before a call that "
        "could exceed it.",
        "USD",
        "no cap",
    ),
]
Prices = Annotated[
    Path | None,
    _option("--prices", "Prices of models, in the form of data/prices.json.", "FILE", "data/prices.json"),
]
Store = Annotated[
    Path | None,
    _option(
        "--store",
        "Where answers are kept; several runs may share it.",
        "FILE",
        "DIR.answers.sqlite",
    ),
]
ReplayOnly = Annotated[
    bool,
    _option("--replay-only", "Take every answer from the store; needs no key and opens no connection."),
]
Replay = Annotated[
    Path | None,
    _option(
        "--replay",
        "Take every answer from a file that `envprobe store export` wrote; it names the model.",
        "FILE",
    ),
]
Timeout = Annotated[
    float | None,
    _option("--timeout", "Seconds that a call may take, to its last byte.", "S", "120; local: 900"),
]
Attempts = Annotated[
    int | None,
    _option("--attempts", "Times that a call is tried before the run stops.", default="6", min=1, max=100),
]


@dataclass(frozen=True)
class ModelOptions:
    """What was given on the command line; None or False where nothing was."""

    model: Model = None
    judge_model: JudgeModel = None
    base_url: BaseUrl = None
    prompts: Prompt = None
    reasks: Reasks = None
    concurrency: Concurrency = None
    max_cost: MaxCost = None
    prices: Prices = None
    store: Store = None
    replay_only: ReplayOnly = False
    replay: Replay = None
    timeout: Timeout = None
    attempts: Attempts = None

    def __post_init__(self) -> None:
        """Refuse numbers and an address that cannot be used."""
        check_positive("--timeout", self.timeout)
        if self.max_cost != 0:
            check_positive("--max-cost", self.max_cost)
        if self.base_url is not None and not _is_address(self.base_url):
            shown = self.base_url.rpartition("@")[2]
            raise InputError(
                f"--base-url {shown!r}: accepted is http://HOST:PORT/... or https://..., without a password"
            )

    def refuse(self, names: Iterable[str], why: str) -> None:
        """Refuse some of the options.

        Raises:
            InputError: naming the first that was given.
        """
        for name in names:
            if getattr(self, name) not in (None, False):
                raise InputError(f"--{name.replace('_', '-')} {why}")

    def agent(self, kind: str = OPENAI) -> ModelAgent:
        """Return which model is asked, and how.

        Raises:
            InputError: if no model is named or found, or an option contradicts another.
        """
        from envprobe_core.llm.identity import ModelAgent, ModelSettings
        from envprobe_core.llm.keys import provider_label
        from envprobe_core.llm.prompts import PROMPT_VERSION, find_version
        from envprobe_core.llm.replay import read_replay

        if self.replay is not None:
            alone = set(vars(self)) - {"replay", "replay_only", "timeout", "attempts", "prices"}
            self.refuse(sorted(alone), "cannot stand beside --replay")
            return read_replay(self.replay).agent
        version = find_version(self.prompts or PROMPT_VERSION)
        reasks = ModelSettings.reasks if self.reasks is None else self.reasks
        if kind == LOCAL:
            from envprobe_core.llm.local import local_agent
            from envprobe_core.llm.weights import find_weights

            self.refuse(("judge_model", "base_url"), f"cannot stand beside --agent {LOCAL}")
            return local_agent(find_weights(self.weights), version, reasks)
        if self.model is None:
            raise InputError(f"--agent {OPENAI} needs --model, as in --model gpt-4o-mini")
        settings = ModelSettings(self.model, judge_model=self.judge_model, reasks=reasks)
        return ModelAgent(provider_label(self.base_url), version, settings)

    @property
    def weights(self) -> Path | None:
        """Return the file that --model names with --agent local."""
        return None if self.model is None else Path(self.model)

    def price_table(self, agent: ModelAgent) -> dict[str, Price]:
        """Return the prices in force.

        Raises:
            InputError: if a file cannot be read, or a cap is given and a model has no price.
        """
        from envprobe_core.llm.prices import read_prices

        prices = read_prices(self.prices)
        if self.max_cost is not None:
            demand_prices(prices, agent.settings.models)
        return prices

    def service(self, agent: ModelAgent, out: Path) -> Service:
        """Open the store, or the replay file, and say who answers.

        Args:
            agent: which model is asked.
            out: the run's folder, beside which answers are kept by default.

        Raises:
            InputError: for a store, key, price or number that cannot be used.
        """
        from envprobe_core.llm import local
        from envprobe_core.llm.calling import Patience
        from envprobe_core.llm.client import Limits
        from envprobe_core.llm.hiding import PLACEHOLDER, Secret, secret_from_environment
        from envprobe_core.llm.keys import OPENAI_URL
        from envprobe_core.llm.replay import read_replay
        from envprobe_core.llm.running import Service
        from envprobe_core.llm.store import AnswerStore
        from envprobe_core.llm.weights import find_weights

        if self.replay is not None:
            return Service(agent, read_replay(self.replay))
        path = self.store or out.with_name(f"{out.name}.answers.sqlite")
        if self.replay_only:
            return Service(agent, AnswerStore(path, writable=False))
        here = agent.provider == local.PROVIDER
        prices = self.price_table(agent)
        secret = Secret(PLACEHOLDER) if here else secret_from_environment(agent.provider)
        weights = find_weights(self.weights) if here else None
        if here:
            local.check_installed()
        deadline = self.timeout or (local.DEADLINE if here else Patience.deadline)
        at_once = self.concurrency or ((os.cpu_count() or 1) if here else DEFAULT_CONCURRENCY)
        limits = Limits(at_once, self.max_cost, Patience(self.attempts or Patience.attempts, deadline))
        if self.store is None:
            path.parent.mkdir(parents=True, exist_ok=True)
        store = AnswerStore(path)
        if self.max_cost is not None:
            demand_prices(prices, store.used())
        return Service(agent, store, secret, (self.base_url or OPENAI_URL,), limits, prices, weights)


def _is_address(text: str) -> bool:
    """Say whether a server can be asked at a URL: both readers of URLs, and a name service, must take it."""
    from pydantic import HttpUrl

    try:
        parts, read = urlsplit(text), HttpUrl(text)
        parts.netloc.encode("idna")
    except ValueError:
        return False
    plain = text.isprintable() and not any(sign in text for sign in " @\\")
    return plain and bool(parts.scheme in ("http", "https") and parts.hostname and read.port)


def demand_prices(prices: Mapping[str, Price], models: Iterable[str]) -> None:
    """Refuse a cap where a model that is asked, or that the store holds calls to, has no price.

    Raises:
        InputError: naming the first.
    """
    from envprobe_core.llm.prices import find_price

    for model in models:
        if find_price(prices, model) is None:
            known = ", ".join(prices)
            raise InputError(
                f"--max-cost needs a price for {model!r}; known: {known}; give others with --prices"
            )


def chosen_agent(kind: str, options: ModelOptions, profile: str) -> ModelAgent | None:
    """Return the model that a run asks, None for the simulated agent.

    Raises:
        InputError: if options and agent do not fit together.
    """
    if options.replay is not None and kind == SIMULATED:
        kind = OPENAI
    if kind == SIMULATED:
        options.refuse(vars(options), f"is for a language model; give --agent {OPENAI} too")
        return None
    if kind not in (OPENAI, LOCAL):
        raise InputError(f"unknown agent {kind!r}; accepted: {SIMULATED}, {OPENAI}, {LOCAL}")
    if profile != "typical":
        raise InputError(f"--profile {profile} is of the simulated agent; a language model has none")
    return options.agent(kind)
