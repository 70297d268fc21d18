"""The options of a language model as the agent, shared by `run` and `estimate`, and what they stand for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from envprobe_core.errors import InputError

if TYPE_CHECKING:
    from envprobe_core.llm.identity import ModelAgent
    from envprobe_core.llm.prices import Price
    from envprobe_core.llm.running import Service

SIMULATED, OPENAI = "simulated", "openai"
PANEL = "Language model as the agent"
DEFAULT_CONCURRENCY = 16

Agent = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="[simulated|openai]",
        help="Who acts: the simulated agent, or a language model behind an OpenAI-compatible server.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="M", help="Model's name, as in gpt-4o-mini.", rich_help_panel=PANEL),
]
JudgeModel = Annotated[
    str | None,
    typer.Option(
        "--judge-model",
        metavar="M",
        help="Second model of the policy judge.",
        show_default="the same",
        rich_help_panel=PANEL,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="Of a compatible server, as in http://127.0.0.1:8080/v1; one on this machine needs no key and "
        "is sent a made-up one where OPENAI_API_KEY is not set.",
        show_default="OpenAI's",
        rich_help_panel=PANEL,
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "--concurrency",
        min=1,
        max=1024,
        help="Calls under way at once.",
        show_default=str(DEFAULT_CONCURRENCY),
        rich_help_panel=PANEL,
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        metavar="USD",
        help="The most that all attempts in the store may cost together; the run stops before a call that "
        "could exceed it.",
        show_default="no cap",
        rich_help_panel=PANEL,
    ),
]
Prices = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        help="Prices of models, in the form of data/prices.json.",
        show_default="data/prices.json",
        rich_help_panel=PANEL,
    ),
]
Store = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE",
        help="Where answers are kept; several runs may share it.",
        show_default="DIR.answers.sqlite",
        rich_help_panel=PANEL,
    ),
]
ReplayOnly = Annotated[
    bool,
    typer.Option(
        "--replay-only",
        help="Take every answer from the store; needs no key and opens no connection.",
        rich_help_panel=PANEL,
    ),
]
Replay = Annotated[
    Path | None,
    typer.Option(
        "--replay",
        metavar="FILE",
        help="Take every answer from a file that `envprobe store export` wrote; it names the model.",
        rich_help_panel=PANEL,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="S",
        help="Seconds that a call may take, to its last byte.",
        show_default="120",
        rich_help_panel=PANEL,
    ),
]
Attempts = Annotated[
    int | None,
    typer.Option(
        "--attempts",
        min=1,
        max=100,
        help="Times that a call is tried before the run stops.",
        show_default="6",
        rich_help_panel=PANEL,
    ),
]


@dataclass(frozen=True)
class ModelOptions:
    """What was given on the command line; None or False where nothing was."""

    model: Model = None
    judge_model: JudgeModel = None
    base_url: BaseUrl = None
    concurrency: Concurrency = None
    max_cost: MaxCost = None
    prices: Prices = None
    store: Store = None
    replay_only: ReplayOnly = False
    replay: Replay = None
    timeout: Timeout = None
    attempts: Attempts = None

    def refuse_all(self) -> None:
        """Refuse every option: the simulated agent has none of them.

        Raises:
            InputError: naming the first one given.
        """
        for name, value in vars(self).items():
            if value not in (None, False):
                raise InputError(
                    f"--{name.replace('_', '-')} is for a language model; give --agent {OPENAI} too"
                )

    def agent(self) -> ModelAgent:
        """Return which model is asked, and how.

        Raises:
            InputError: if no model is named, or an option contradicts another.
        """
        from envprobe_core.llm.asking import ModelSettings
        from envprobe_core.llm.identity import ModelAgent
        from envprobe_core.llm.keys import provider_label
        from envprobe_core.llm.prompts import PROMPT_VERSION
        from envprobe_core.llm.replay import read_replay

        if self.replay is not None:
            for name in ("model", "judge_model", "base_url", "concurrency", "max_cost", "store"):
                if getattr(self, name) is not None:
                    raise InputError(f"--{name.replace('_', '-')} cannot stand beside --replay")
            return read_replay(self.replay).agent
        if self.model is None:
            raise InputError(f"--agent {OPENAI} needs --model, as in --model gpt-4o-mini")
        if self.base_url is not None:
            parts = urlsplit(self.base_url)
            if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
                raise InputError(
                    "--base-url: accepted is http://HOST/... or https://HOST/..., without a password"
                )
        settings = ModelSettings(self.model, judge_model=self.judge_model)
        return ModelAgent(provider_label(self.base_url), PROMPT_VERSION, settings)

    def price_table(self, agent: ModelAgent) -> dict[str, Price]:
        """Return the prices in force.

        Raises:
            InputError: if a file cannot be read, or a cap is given and a model has no price.
        """
        from envprobe_core.llm.prices import find_price, read_prices

        prices = read_prices(self.prices)
        settings = agent.settings
        for model in (settings.model, settings.judge_model or settings.model):
            if self.max_cost is not None and find_price(prices, model) is None:
                raise InputError(
                    f"--max-cost needs a price for {model!r}; known: {', '.join(prices)}; give others with "
                    "--prices"
                )
        return prices

    def service(self, agent: ModelAgent, out: Path) -> Service:
        """Open the store, or the replay file, and say who answers.

        Args:
            agent: which model is asked.
            out: the run's folder, beside which answers are kept by default.

        Raises:
            InputError: for a store, key, price or number that cannot be used.
        """
        from envprobe_core.llm.client import Limits, judge_unread
        from envprobe_core.llm.hiding import secret_from_environment
        from envprobe_core.llm.prices import PICO, cost_afterwards
        from envprobe_core.llm.replay import read_replay
        from envprobe_core.llm.retries import Patience
        from envprobe_core.llm.running import Service
        from envprobe_core.llm.store import AnswerStore

        if self.replay is not None:
            return Service(agent, read_replay(self.replay))
        path = self.store or out.with_name(f"{out.name}.answers.sqlite")
        if self.replay_only:
            return Service(agent, AnswerStore(path, writable=False))
        if self.max_cost is not None and not (math.isfinite(self.max_cost) and self.max_cost >= 0):
            raise InputError(f"--max-cost {self.max_cost}: accepted is a number of dollars from 0")
        if self.timeout is not None and not (math.isfinite(self.timeout) and self.timeout > 0):
            raise InputError(f"--timeout {self.timeout}: accepted is a number of seconds above 0")
        prices = self.price_table(agent)
        secret = secret_from_environment(agent.provider)
        cap = None if self.max_cost is None else math.floor(self.max_cost * PICO)
        patience = Patience(self.attempts or Patience.attempts, self.timeout or Patience.deadline)
        limits = Limits(self.concurrency or DEFAULT_CONCURRENCY, cap, patience)
        if self.store is None:
            path.parent.mkdir(parents=True, exist_ok=True)
        store = AnswerStore(path)
        judge_unread(store, prices)
        if cap is not None:
            store.price(lambda model, request, tokens: cost_afterwards(prices, model, request, tokens))
        return Service(agent, store, secret, self.base_url, limits, prices)


def chosen_agent(kind: str, options: ModelOptions, profile: str) -> ModelAgent | None:
    """Return the model that a run asks, None for the simulated agent.

    Raises:
        InputError: if options and agent do not fit together.
    """
    if options.replay is not None and kind == SIMULATED:
        kind = OPENAI
    if kind == SIMULATED:
        options.refuse_all()
        return None
    if kind != OPENAI:
        raise InputError(f"unknown agent {kind!r}; accepted: {SIMULATED}, {OPENAI}")
    if profile != "typical":
        raise InputError(f"--profile {profile} is of the simulated agent; a language model has none")
    return options.agent()
