"""The options of a language model as the agent, what they stand for, and a run on one in the terminal."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer

from envprobe_core.cli import options
from envprobe_core.cli.options import File, Number, Text, Whole, check_positive
from envprobe_core.errors import InputError

if TYPE_CHECKING:
    from envprobe_core.llm.calls import Price
    from envprobe_core.llm.client import Counts
    from envprobe_core.llm.identity import ModelAgent
    from envprobe_core.llm.running import Service
    from envprobe_core.runs.folder import RunFolder
    from envprobe_core.runs.summary import Summary

SIMULATED, OPENAI, LOCAL = "simulated", "openai", "local"
DEFAULT_CONCURRENCY = 16


option = partial(options.option, panel="Language model as the agent")
Agent = options.option(
    str,
    "--agent",
    "Who acts: the simulated agent, a language model behind an OpenAI-compatible server, or one that runs on "
    "this machine without a key (`envprobe model fetch`).",
    "[simulated|openai|local]",
)


@dataclass(frozen=True)
class ModelOptions:
    """What was given on the command line; None or False where nothing was."""

    model: option(
        Text, "--model", "Model's name, as in gpt-4o-mini; with --agent local a file, as in M.gguf.", "M"
    ) = None
    judge_model: option(Text, "--judge-model", "Second model of the policy judge.", "M", "the same") = None
    base_url: option(
        Text,
        "--base-url",
        "Of a compatible server, as in http://127.0.0.1:8080/v1; one on this machine needs no key and is "
        "sent a made-up one where OPENAI_API_KEY is not set.",
        "URL",
        "OpenAI's",
    ) = None
    prompts: option(Text, "--prompts", "Version of the prompts: 1, 2, public or public-hint.", "V", "2") = (
        None
    )
    reasks: option(
        Whole,
        "--reasks",
        "Times that an answer that cannot be used is asked for again.",
        None,
        "2",
        min=0,
        max=9,
    ) = None
    concurrency: option(
        Whole,
        "--concurrency",
        "Calls under way at once; with --agent local its servers, of one thread each.",
        default=f"{DEFAULT_CONCURRENCY}; local: as many as cores",
        min=1,
        max=1024,
    ) = None
    max_cost: option(
        Number,
        "--max-cost",
        "The most that all attempts in the store may cost together; the run stops before a call that could "
        "exceed it.",
        "USD",
        "no cap",
    ) = None
    prices: option(
        File, "--prices", "Prices of models, in the form of data/prices.json.", "FILE", "data/prices.json"
    ) = None
    store: option(
        File, "--store", "Where answers are kept; several runs may share it.", "FILE", "DIR.answers.sqlite"
    ) = None
    replay_only: option(
        bool, "--replay-only", "Take every answer from the store; needs no key and opens no connection."
    ) = False
    replay: option(
        File,
        "--replay",
        "Take every answer from a file that `envprobe store export` wrote; it names the model.",
        "FILE",
    ) = None
    timeout: option(
        Number, "--timeout", "Seconds that a call may take, to its last byte.", "S", "120; local: 900"
    ) = None
    attempts: option(
        Whole, "--attempts", "Times that a call is tried before the run stops.", default="6", min=1, max=100
    ) = None

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
        from envprobe_core.llm.calls import provider_label
        from envprobe_core.llm.identity import PROMPT_VERSION, ModelAgent, find_version
        from envprobe_core.llm.local import find_weights, local_agent
        from envprobe_core.llm.replay import read_replay

        if self.replay is not None:
            alone = set(vars(self)) - {"replay", "replay_only", "timeout", "attempts", "prices"}
            self.refuse(sorted(alone), "cannot stand beside --replay")
            return read_replay(self.replay).agent
        version = find_version(self.prompts or PROMPT_VERSION)
        reasks = ModelAgent.reasks if self.reasks is None else self.reasks
        if kind == LOCAL:
            self.refuse(("judge_model", "base_url"), f"cannot stand beside --agent {LOCAL}")
            return local_agent(find_weights(self.weights), version, reasks)
        if self.model is None:
            raise InputError(f"--agent {OPENAI} needs --model, as in --model gpt-4o-mini")
        provider = provider_label(self.base_url)
        return ModelAgent(provider, version, self.model, judge_model=self.judge_model, reasks=reasks)

    @property
    def weights(self) -> Path | None:
        """Return the file that --model names with --agent local."""
        return None if self.model is None else Path(self.model)

    def price_table(self, agent: ModelAgent) -> dict[str, Price]:
        """Return the prices in force.

        Raises:
            InputError: if a file cannot be read, or a cap is given and a model has no price.
        """
        from envprobe_core.llm.calls import read_prices

        prices = read_prices(self.prices)
        if self.max_cost is not None:
            _demand_prices(prices, agent.models)
        return prices

    def service(self, agent: ModelAgent, out: Path) -> Service:
        """Open the store, by default beside the run's folder, or the replay file, and say who answers.

        Raises:
            InputError: for a store, key, price or number that cannot be used.
        """
        from envprobe_core.llm import local
        from envprobe_core.llm.calls import OPENAI_URL
        from envprobe_core.llm.client import Limits
        from envprobe_core.llm.provider import PLACEHOLDER, Secret, secret_from_environment
        from envprobe_core.llm.replay import read_replay
        from envprobe_core.llm.running import Service
        from envprobe_core.llm.store import AnswerStore

        if self.replay is not None:
            return Service(agent, read_replay(self.replay))
        place = out if out.name else out.resolve()
        path = self.store or place.with_name(f"{place.name}.answers.sqlite")
        if self.replay_only:
            return Service(agent, AnswerStore(path, writable=False))
        prices, weights = self.price_table(agent), None
        deadline, at_once = Limits.deadline, DEFAULT_CONCURRENCY
        if agent.provider == local.PROVIDER:
            local.check_installed()
            weights, secret = local.find_weights(self.weights), Secret(PLACEHOLDER)
            deadline, at_once = local.DEADLINE, os.cpu_count() or 1
        else:
            secret = secret_from_environment(agent.provider)
        limits = Limits(
            self.concurrency or at_once,
            self.max_cost,
            self.attempts or Limits.attempts,
            self.timeout or deadline,
        )
        if self.store is None:
            path.parent.mkdir(parents=True, exist_ok=True)
        store = AnswerStore(path)
        if self.max_cost is not None:
            _demand_prices(prices, store.used())
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


def _demand_prices(prices: Mapping[str, Price], models: Iterable[str]) -> None:
    """Refuse a cap where a model that is asked, or that the store holds calls to, has no price."""
    from envprobe_core.llm.calls import find_price

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


def refuse_others(options: ModelOptions, asked: ModelAgent | None, source: Path) -> None:
    """Refuse what contradicts the run that is repeated: another model, or another provider.

    Raises:
        InputError: naming the first such option.
    """
    from envprobe_core.llm.calls import provider_label
    from envprobe_core.llm.local import PROVIDER

    if asked is None:
        options.refuse(vars(options), f"is for a language model, and {source} has none")
        return
    stated = ("judge_model", "prompts", "reasks") + (() if asked.provider == PROVIDER else ("model",))
    options.refuse(stated, f"is stated by {source}")
    offline = options.replay is not None or options.replay_only
    if not offline and asked.provider != PROVIDER and provider_label(options.base_url) != asked.provider:
        raise InputError(
            f"--base-url {options.base_url or 'of OpenAI'}: {source} was answered by {asked.provider!r}; "
            "name its server"
        )


# ---------------------------------------------------------------- as the terminal shows it


def run_on_model(folder: RunFolder, service: Service) -> list[Summary]:
    """Run what a folder lacks, with a live line on standard error where that is a terminal."""
    from envprobe_core.llm.running import run_missing

    missing = folder.missing()
    # a job that a script put into the background ignores interrupts, and asyncio then would end on none
    orders = {signal.SIGINT: signal.default_int_handler} | dict.fromkeys(options.orders_to_end(), _interrupt)
    before = {number: signal.signal(number, handler) for number, handler in orders.items()}
    try:
        total = sum(len(part.seeds) for part in missing)
        with service.at_work() as ready, _live_line(total, service) as notice:
            return run_missing(folder, missing, ready, notice)
    except KeyboardInterrupt:
        kept = f"all answers are kept in {service.answers.path}: give the command again to go on"
        typer.echo(f"envprobe: interrupted; nothing was scored, {kept}", err=True)
        raise typer.Abort from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Treat an order to end as an interrupt from the keyboard: calls under way are stored, and it is said."""
    signal.raise_signal(signal.SIGINT)


@contextmanager
def _live_line(total: int, service: Service) -> Iterator[Callable[[int, Counts], None]]:
    """Show episodes, calls, answers from the store, tokens, cost and unusable answers."""
    if not sys.stderr.isatty():
        yield lambda done, counts: None
        return
    from rich import progress as bars
    from rich.console import Console

    from envprobe_core.llm.calls import dollars

    columns = (
        bars.TextColumn("episodes"), bars.BarColumn(10), bars.MofNCompleteColumn(), bars.TimeElapsedColumn(),
        bars.TextColumn("left"), bars.TimeRemainingColumn(), bars.TextColumn("{task.description}"),
    )  # fmt: skip
    started = time.monotonic()
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)

        def notice(done: int, counts: Counts) -> None:
            cost = f", {dollars(counts.cost)}" if service.prices else ""
            tokens = counts.prompt_tokens + counts.completion_tokens
            speed = tokens / max(time.monotonic() - started, 1.0)
            text = (
                f"{counts.calls} calls ({counts.faults} failed), {counts.replayed} from the store, "
                f"{counts.prompt_tokens}+{counts.completion_tokens} tokens, {speed:.0f} a second{cost}, "
                f"{counts.unusable} unusable, {counts.cut} cut"
            )
            progress.update(task, completed=done, description=text)

        yield notice


def say_calls(folder: Path) -> str:
    """Say in one line what a run on a model asked for, and how much of it was invalid."""
    from envprobe_core.llm.running import total_tally
    from envprobe_core.runs.folder import CALLS

    total = total_tally((folder / CALLS).read_bytes())
    verdicts = (
        f", {total['invalid_verdicts']} of {total['verdicts']} verdicts invalid" if total["verdicts"] else ""
    )
    return (
        f"{total['calls']} answers ({total['reasks']} asked again), {total['invalid_updates']} belief "
        f"updates invalid{verdicts}, {total['prompt_tokens']} + {total['completion_tokens']} tokens"
    )


@contextmanager
def stopped_runs() -> Iterator[None]:
    """Say in one line why a run on a model stopped, and end with exit code 1."""
    from envprobe_core.llm.calls import RunStoppedError

    try:
        yield
    except RunStoppedError as error:
        typer.echo(f"envprobe: {error}", err=True)
        raise typer.Exit(1) from None
