"""A language model on the command line: its options, runs on it, and what comes before, beside and after.

``envprobe estimate``, ``doctor``, ``model`` and ``store`` are here; ``run`` takes the options. Whatever
cannot be meant, or contradicts something else, is an `InputError` before any work starts.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from envprobe_book.cli import ending, options
from envprobe_book.cli.options import check_positive, file, number, whole
from envprobe_core.errors import InputError, StoppedError, counted, first_fault, look_up
from envprobe_core.files import refuse_existing

if TYPE_CHECKING:
    from envprobe_core.agents.model import ModelAgent
    from envprobe_core.engine.batch import Columns
    from envprobe_core.llm.agent import Asked
    from envprobe_core.llm.client import Counts, Service
    from envprobe_core.llm.replays import Answers, Header
    from envprobe_core.runs.folder import RunFolder
    from envprobe_core.runs.manifest import RunInputs

SIMULATED, OPENAI, LOCAL, INSPECT = "simulated", "openai", "local", "inspect"
DEFAULT_CONCURRENCY = 16
LISTED_MODELS, LISTED_EPISODES = 10, 5
LATENCY = 1.0  # seconds a call, for the time that is shown

model = typer.Typer(no_args_is_help=True, help="Get the weights of a small open model for `--agent local`.")
store = typer.Typer(
    no_args_is_help=True, help="Look into a store of answers, check it, or export a run's answers."
)

# ---------------------------------------------------------------- options

OneObject = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Note = Annotated[str, typer.Option(metavar="TEXT", help="Where the answers come from, for readers.")]
StoreFile = Annotated[Path, typer.Argument(metavar="FILE", help="Store that a run on a model made.")]
Agent = Annotated[
    str,
    typer.Option(
        metavar="[simulated|openai|local|inspect:PROVIDER/MODEL]",
        help="Who acts: the simulated agent, a language model behind an OpenAI-compatible server, one that "
        "runs on this machine without a key (`envprobe model fetch`), or one of any provider that Inspect "
        "knows.",
    ),
]
PANEL = "Language model as the agent"
Model = Annotated[
    str | None,
    typer.Option(
        metavar="M",
        rich_help_panel=PANEL,
        help="Model's name, as in gpt-4o-mini; with --agent local a file, as in M.gguf.",
    ),
]
JudgeModel = Annotated[
    str | None,
    typer.Option(
        metavar="M", show_default="the same", rich_help_panel=PANEL, help="Second model of the policy judge."
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        show_default="OpenAI's",
        rich_help_panel=PANEL,
        help="Of a compatible server, as in http://127.0.0.1:8080/v1; one on this machine needs no key and "
        "is sent a made-up one where OPENAI_API_KEY is not set.",
    ),
]
Prompts = Annotated[
    str | None,
    typer.Option(
        metavar="V",
        show_default="2",
        rich_help_panel=PANEL,
        help="Version of the prompts: 1, 2, public or public-hint.",
    ),
]
Reasks = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=whole(0, 9),
        show_default="2",
        rich_help_panel=PANEL,
        help="Times that an unusable answer is asked for again. [0..9]",
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=whole(1, 100_000),
        show_default="512",
        rich_help_panel=PANEL,
        help="Most tokens of a belief update. [1..100000]",
    ),
]
ExtraBody = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        rich_help_panel=PANEL,
        help="Further parts of each request, one JSON object, as in '{\"top_k\": 1}'.",
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=whole(1, 1024),
        show_default=f"{DEFAULT_CONCURRENCY}; local: cores",
        rich_help_panel=PANEL,
        help="Calls under way at once; with --agent local its servers, of one thread each. [1..1024]",
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        metavar="USD",
        parser=number,
        show_default="no cap",
        rich_help_panel=PANEL,
        help="The most that all attempts in the store may cost; no call is made that could exceed it.",
    ),
]
Prices = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=file,
        show_default="data/prices.json",
        rich_help_panel=PANEL,
        help="Prices, in the form of data/prices.json.",
    ),
]
Store = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=file,
        show_default="DIR.answers.sqlite",
        rich_help_panel=PANEL,
        help="Keeps the answers, also of several runs.",
    ),
]
ReplayOnly = Annotated[
    bool,
    typer.Option(
        "--replay-only",
        rich_help_panel=PANEL,
        help="Take every answer from the store; needs no key and opens no connection.",
    ),
]
Replay = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=file,
        rich_help_panel=PANEL,
        help="Take every answer from a file that `envprobe store export` wrote; it names the model.",
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        metavar="S",
        parser=number,
        show_default="120; local: 900",
        rich_help_panel=PANEL,
        help="Seconds that a call may take to its end.",
    ),
]
Attempts = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=whole(1, 100),
        show_default="6",
        rich_help_panel=PANEL,
        help="Times a call is tried before the run stops. [1..100]",
    ),
]


@dataclass(frozen=True)
class ModelOptions:
    """What was given on the command line; None or False where nothing was."""

    model: str | None = None
    judge_model: str | None = None
    base_url: str | None = None
    prompts: str | None = None
    reasks: int | None = None
    max_tokens: int | None = None
    extra_body: str | None = None
    concurrency: int | None = None
    max_cost: float | None = None
    prices: Path | None = None
    store: Path | None = None
    replay_only: bool = False
    replay: Path | None = None
    timeout: float | None = None
    attempts: int | None = None

    def __post_init__(self) -> None:
        """Refuse numbers and an address that cannot be used."""
        check_positive("--timeout", self.timeout)
        check_positive("--max-cost", self.max_cost or None)
        if self.base_url is not None and not _is_address(self.base_url):
            accepted = "accepted is http://HOST:PORT/... or https://..., without a password"
            raise InputError(f"--base-url {self.base_url.rpartition('@')[2]!r}: {accepted}")

    def refuse(self, names: Iterable[str], why: str) -> None:
        """Refuse the first of some options that was given."""
        for name in names:
            if getattr(self, name) not in (None, False):
                raise InputError(f"--{name.replace('_', '-')} {why}")

    def agent(self, kind: str = OPENAI) -> ModelAgent:
        """Which model is asked, and how."""
        from pydantic import ValidationError

        from envprobe_core.agents.model import PROMPT_VERSION, ModelAgent
        from envprobe_core.llm import calls, local
        from envprobe_core.llm.prompts import find_version
        from envprobe_core.llm.replays import read_replay

        if self.replay is not None:
            alone = set(vars(self)) - {"replay", "replay_only", "timeout", "attempts", "prices"}
            self.refuse(sorted(alone), "cannot stand beside --replay")
            return read_replay(self.replay).agent
        version = find_version(self.prompts or PROMPT_VERSION)
        reasks = ModelAgent.reasks if self.reasks is None else self.reasks
        try:
            if kind == LOCAL:
                self.refuse(
                    ("judge_model", "base_url", "max_tokens", "extra_body"),
                    f"cannot stand beside --agent {LOCAL}",
                )
                return local.local_agent(local.find_weights(self.model), version, reasks)
            if kind.startswith(f"{INSPECT}:"):
                self.refuse(("model", "base_url"), f"cannot stand beside --agent {kind}")
                return ModelAgent(
                    calls.INSPECT, version, kind.removeprefix(f"{INSPECT}:"), judge_model=self.judge_model,
                    reasks=reasks, max_tokens=self.max_tokens or ModelAgent.max_tokens,
                    extra_body=self.extra_body or "",
                )  # fmt: skip
            if self.model is None:
                raise InputError(f"--agent {OPENAI} needs --model, as in --model gpt-4o-mini")
            provider = calls.provider_label(self.base_url)
            return ModelAgent(
                provider, version, self.model, judge_model=self.judge_model, reasks=reasks,
                max_tokens=self.max_tokens or ModelAgent.max_tokens, extra_body=self.extra_body or "",
            )  # fmt: skip
        except ValidationError as error:
            raise InputError(first_fault(error)) from None

    def service(self, agent: ModelAgent, out: Path) -> Service:
        """Open the store, by default beside the run's folder, or the replay file, and say who answers."""
        from envprobe_core.llm import calls, client, local
        from envprobe_core.llm.replays import read_replay
        from envprobe_core.llm.secret import PLACEHOLDER, Secret, secret_from_environment
        from envprobe_core.llm.store import AnswerStore

        if self.replay is not None:
            return client.Service(agent, read_replay(self.replay))
        place = out if out.name else out.resolve()
        path = self.store or place.with_name(f"{place.name}.answers.sqlite")
        if self.replay_only:
            return client.Service(agent, AnswerStore(path, writable=False))
        prices, weights = calls.read_prices(self.prices), None

        def demand_prices(models: Iterable[str]) -> None:
            for name in models if self.max_cost is not None else ():
                if calls.find_price(prices, name) is None:
                    known = f"known: {', '.join(prices)}; give others with --prices"
                    raise InputError(f"--max-cost needs a price for {name!r}; {known}")

        demand_prices(agent.models)
        deadline, at_once = client.Limits.deadline, DEFAULT_CONCURRENCY
        if agent.provider == local.PROVIDER:
            local.check_installed()
            weights, secret = local.find_weights(self.model), Secret(PLACEHOLDER)
            deadline, at_once = local.DEADLINE, os.cpu_count() or 1
        elif agent.provider == calls.INSPECT:
            from envprobe_core.llm.inspect_calls import find_model, secrets_from_environment

            for name in agent.models:
                find_model(name)  # refused before a store is made
            secret = secrets_from_environment()
        else:
            secret = secret_from_environment(agent.provider)
        patience = self.attempts or client.Limits.attempts, self.timeout or deadline
        limits = client.Limits(self.concurrency or at_once, *patience)
        if self.store is None:
            path.parent.mkdir(parents=True, exist_ok=True)
        answers = AnswerStore(path, prices=prices, cap=self.max_cost)
        demand_prices(answers.used())  # the cap counts them too
        urls = (self.base_url or calls.OPENAI_URL,)
        return client.Service(agent, answers, secret, urls, limits, weights)


def _is_address(text: str) -> bool:
    """Whether a server can be asked at a URL: both readers of URLs, and a name service, must take it."""
    from pydantic import HttpUrl

    try:
        parts, read = urlsplit(text), HttpUrl(text)
        parts.netloc.encode("idna")
    except ValueError:
        return False
    plain = text.isprintable() and not any(sign in text for sign in " @\\")
    return plain and bool(parts.scheme in ("http", "https") and parts.hostname and read.port)


def chosen_agent(kind: str, given: ModelOptions, profile: str) -> ModelAgent | None:
    """The model that a run asks, None for the simulated agent."""
    if kind == SIMULATED and given.replay is None:
        given.refuse(vars(given), f"is for a language model; give --agent {OPENAI} too")
        return None
    if not re.fullmatch(rf"{INSPECT}:[^/]+/.+", kind):
        look_up("agent", kind, dict.fromkeys((SIMULATED, OPENAI, LOCAL, f"{INSPECT}:PROVIDER/MODEL")))
    if profile != "typical":
        raise InputError(f"--profile {profile} is of the simulated agent; a language model has none")
    return given.agent(kind)


def refuse_others(given: ModelOptions, asked: ModelAgent | None, source: Path) -> None:
    """Refuse what contradicts the run that is repeated: another model, or another provider."""
    from envprobe_core.llm import calls, local

    if asked is None:
        given.refuse(vars(given), f"is for a language model, and {source} has none")
        return
    here, known = asked.provider == local.PROVIDER, asked.provider in (local.PROVIDER, calls.INSPECT)
    stated = ("judge_model", "prompts", "reasks", "max_tokens", "extra_body", *(() if here else ("model",)))
    given.refuse(stated, f"is stated by {source}")
    offline = given.replay is not None or given.replay_only
    if not offline and not known and calls.provider_label(given.base_url) != asked.provider:
        others = f"{source} was answered by {asked.provider!r}; name its server"
        raise InputError(f"--base-url {given.base_url or 'of OpenAI'}: {others}")


def refuse_unheld(path: Path, inputs: RunInputs) -> None:
    """Refuse a condition or a seed that a replay file has no answers to."""
    from envprobe_core.llm.replays import read_replay
    from envprobe_core.runs.manifest import seed_ranges

    file = read_replay(path)
    run = file.header.inputs
    held = [
        (condition.key, set(own.tolist()))
        for condition, own in zip(run.conditions, run.seeds_of_conditions, strict=True)
    ]
    for condition, seeds in zip(inputs.conditions, inputs.seeds_of_conditions, strict=True):
        if not any(key == condition.key and own.issuperset(seeds.tolist()) for key, own in held):
            asked = "{world} {policy} {protocol} {regime}, seeds ".format(**condition.key) + seed_ranges(
                seeds
            )
            raise InputError(f"--replay {path} has no answers to {asked}; {file.advice}")


# ---------------------------------------------------------------- a run on a model


def run_on_model(folder: RunFolder, service: Service) -> list[Columns]:
    """Run what a folder is for, with a live line on standard error where that is a terminal."""
    from envprobe_core.llm.calls import dollars
    from envprobe_core.llm.running import run_into

    total, began = sum(map(len, folder.inputs.seeds_of_conditions)), time.monotonic()
    storing = ending.storing_first(service.answers.path, lambda: "nothing was scored")
    with storing, _open_answers(service), options.progress_bar("episodes") as show:

        def notice(done: int, counts: Counts) -> None:
            speed = (counts.prompt_tokens + counts.completion_tokens) / max(time.monotonic() - began, 1.0)
            cost = f", {dollars(counts.cost)}" if counts.cost else ""
            tokens = f"{counts.prompt_tokens}+{counts.completion_tokens} tokens, {speed:.0f} a second, "
            text = (
                f"{counts.calls} calls ({counts.faults} failed), {counts.replayed} from the store, "
                f"{tokens if counts.prompt_tokens else ''}{counts.unusable} unusable, {counts.cut} cut{cost}"
            )
            show(done, total, more=text)  # type: ignore[misc]

        return run_into(folder, service, *((notice,) if show else ()))


@contextmanager
def _open_answers(service: Service) -> Iterator[Answers]:
    """The answers of a service until they are closed; says which could not be read there any more."""
    with closing(service.answers) as answers:
        try:
            yield answers
        finally:
            for call in getattr(answers, "set_aside", ()):
                told = "could not be read: it was set aside, and its question asked again"
                typer.echo(f"{answers.path}: call {call} {told}", err=True)


def _named(counts: Mapping[str, int]) -> str:
    """Names with their counts, the most frequent first."""
    by_count = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {count}" for name, count in by_count)


def say_calls(folder: Path) -> Iterator[str]:
    """Yield lines about a run on a model: what it asked for, who answered, which episodes are none."""
    import orjson
    import pandas as pd

    from envprobe_core.llm.agent import COUNTS, WHO
    from envprobe_core.runs.folder import CALLS

    try:
        rows = [orjson.loads(line) for line in (folder / CALLS).read_bytes().splitlines()]
        total = pd.DataFrame(rows)[[*COUNTS]].sum()
        answered = [sum((Counter(row[who]) for row in rows), Counter[str]()) for who in WHO]
        unread = [row for row in rows if row["updates"] == row["invalid_updates"]]
        places = ["{world} {policy} {protocol} seed {seed}".format(**row) for row in unread]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / CALLS} is damaged: {error}") from None
    verdicts = ", {invalid_verdicts} of {verdicts} verdicts invalid" if total["verdicts"] else ""
    text = "{calls} answers ({reasks} asked again), {invalid_updates} belief updates invalid"
    text += ", {loose_updates} read loosely" if total["loose_updates"] else ""
    tokens = ", {prompt_tokens} + {completion_tokens} tokens"
    if total["uncounted"]:
        every = total["uncounted"] == total["calls"]
        tokens = ", tokens" if every else f"{tokens} and those of {{uncounted}} answers"
        tokens += " that the server did not count"
    yield (text + verdicts + tokens).format(**total)
    for who, counts in zip(("answered", "judged"), answered, strict=True):
        if counts:
            yield f"{who} by: {_named(counts)}"
    if unread:
        more = f" and {len(places) - LISTED_EPISODES} more" if len(places) > LISTED_EPISODES else ""
        yield (
            f"{counted(len(unread), 'episode')} of {len(rows)} without one belief update that could be read, "
            f"left out of every mean: {'; '.join(places[:LISTED_EPISODES])}{more}"
        )


def estimate(
    *,
    world: options.World = None,
    policy: options.Policies = None,
    regime: options.Regime = "S2",
    protocol: options.Protocol = None,
    seeds: options.Seeds = None,
    budget: options.Budget = None,
    threshold: options.Threshold = None,
    model: Model = None,
    judge_model: JudgeModel = None,
    base_url: BaseUrl = None,
    concurrency: Concurrency = None,
    prices: Prices = None,
    sample: Annotated[
        int,
        typer.Option(
            metavar="N", parser=whole(1, 10_000), help="Seeds of each condition in the dry run. [1..10000]"
        ),
    ] = 5,
    json: OneObject = False,
) -> None:
    """Estimate calls, tokens and money of a run on a model, from a dry run of its prompts.

    Needs no key and opens no connection: the simulated agent answers on a few seeds. A model's episodes
    differ, so this is no bound; `envprobe run --max-cost` sets one.
    """
    from envprobe_core.llm import agent, calls

    given = ModelOptions(model, judge_model, base_url, concurrency=concurrency, prices=prices)
    asked, known = given.agent(), calls.read_prices(prices)
    grid = options.Grid(world, policy, regime, protocol, seeds, budget, threshold)
    inputs = grid.inputs("typical", "none", asked)
    found = agent.estimate(inputs.conditions, inputs.seeds_of_conditions, asked, known, sample)
    cost, most = found.pop("cost"), found.pop("most")
    if json:
        options.print_json(found | {"cost_usd": cost, "most_usd": most})
        return
    at_once = concurrency or DEFAULT_CONCURRENCY
    unpriced = ", ".join(sorted(one for one in asked.models if calls.find_price(known, one) is None))
    said = f"not known: no price for {unpriced}; give one with --prices"
    if cost is not None:
        said = f"{calls.dollars(cost)}; {calls.dollars(most)} were every call to cost its most"
    typer.echo(
        f"{counted(len(inputs.conditions), 'condition')}, {counted(found['episodes'], 'episode')}; "
        f"dry run of {found['dry_run']}\n"
        f"answers  {found['steps']}\n"
        f"calls    {found['calls']} (policies that meet the same situation share an answer)\n"
        f"tokens   {found['prompt_tokens']} + {found['completion_tokens']}, at "
        f"{agent.CHARACTERS_A_TOKEN} characters a token; rows of digits take 2 to 3 times as many\n"
        f"cost     {said}\n"
        f"time     {found['calls'] * LATENCY / at_once / 60:.0f} min at {LATENCY:g} s a call and concurrency "
        f"{at_once}"
    )


def doctor(
    *,
    world: options.World = None,
    policy: options.Policies = None,
    regime: options.Regime = "S2",
    protocol: options.Protocol = None,
    seeds: options.Seeds = None,
    budget: options.Budget = None,
    threshold: options.Threshold = None,
    model: Model = None,
    base_url: BaseUrl = None,
    prompts: Prompts = None,
    max_tokens: MaxTokens = None,
    extra_body: ExtraBody = None,
    concurrency: Concurrency = None,
    max_cost: MaxCost = None,
    prices: Prices = None,
    store: Store = None,
    timeout: Timeout = None,
    attempts: Attempts = None,
    json: OneObject = False,
) -> None:
    """Try a server before money is spent: what it refuses, and what share of ten situations it reads.

    The situations are of the run that the options describe, by default `simple` in all worlds at S2. They
    are asked as a run would ask them, and their answers are kept in the store. Without --model the server
    is asked which one it serves. A server on this machine needs no key.
    Exit code 0 if an answer at least can be read; 1 if none can; 2 if something given is not accepted.
    """
    from envprobe_core.llm import calls
    from envprobe_core.llm.doctor import (
        LOOSELY,
        NO_ANSWER,
        NOT,
        STRICTLY,
        Tried,
        estimate_run,
        situations_of,
        try_server,
    )

    given = ModelOptions(
        model, None, base_url, prompts, None, max_tokens, extra_body, concurrency, max_cost, prices, store,
        timeout=timeout, attempts=attempts,
    )  # fmt: skip
    wanted = options.Grid(world or ["all"], policy or ["simple"], regime, protocol, seeds, budget, threshold)
    wanted.inputs("typical", "none", None)  # what cannot be meant is refused before anybody is asked
    if given.model is None and given.base_url is not None:
        given = replace(given, model=_only_model(given))
    asked = given.agent()
    inputs = wanted.inputs("typical", "none", asked)
    met = situations_of(inputs.conditions, inputs.seeds_of_conditions, asked)
    service, tried = given.service(asked, Path("doctor")), list[Tried]()

    def so_far() -> str:
        read, left = sum(one.read in (STRICTLY, LOOSELY) for one in tried), len(met) - len(tried)
        return f"{read} of {counted(len(tried), 'situation')} could be read, {left} left"

    with ending.storing_first(service.answers.path, so_far), _open_answers(service):
        found = try_server(service, met, tried.append)
    known = calls.read_prices(prices)
    run = estimate_run(found, inputs.conditions, inputs.seeds_of_conditions, asked, known)
    read, where = found.count(STRICTLY, LOOSELY), given.base_url or calls.OPENAI_URL
    rows = [
        {
            "world": one.exchange.world.name, "seed": one.exchange.seed, "step": one.exchange.step,
            "read": one.read, "fault": one.fault, "prompt_tokens": one.used and one.used.prompt,
            "completion_tokens": one.used and one.used.completion, "seconds": round(one.seconds, 3),
        }
        for one in found.tried
    ]  # fmt: skip
    if json:
        told = {"server": where, "model": asked.model, "prompts": asked.prompt_version, "rungs": found.rungs}
        told |= {"read": read, "asked": len(rows), "answered_by": found.answered_by}
        told |= {"situations": rows, "run": run}
        options.print_json(told | {"store": str(service.answers.path)})
    else:
        shown = []
        for one in rows:
            tokens = (one["prompt_tokens"], one["completion_tokens"])
            used = ("-" if count is None else str(count) for count in tokens)
            shown.append((f"{one['world']}, step {one['step']}", one["read"], *used, f"{one['seconds']:.1f}"))
        typer.echo(f"{asked.model} at {where}, prompts {asked.prompt_version}")
        options.print_table("", ["situation", "read"], ["tokens in", "out", "seconds"], shown)
        share = ", ".join(f"{found.count(how)} {how}" for how in (STRICTLY, LOOSELY, NOT, NO_ANSWER))
        lines = [f"reads    {read} of {len(rows)}: {share}"]
        lines += [f"fault    {text}" + (f" ({count} times)" if count > 1 else "")
                  for text, count in found.faults.items()]  # fmt: skip
        lines += [f"answered {_named(found.answered_by)}"] if found.answered_by else []
        lines += [f"asked    {how}" for how in calls.in_words(found.rungs)] or ["asked    as a run asks"]
        lines += [f"a run    {_said_of_a_run(run, inputs)}", f"kept in  {service.answers.path}"]
        typer.echo("\n".join(lines))
    if not read:
        raise StoppedError(
            f"none of {len(rows)} situations could be read; the answers are kept in {service.answers.path}"
        )


def _only_model(given: ModelOptions) -> str:
    """The model of a server that serves one."""
    from envprobe_core.llm import calls, client
    from envprobe_core.llm.agent import finish_in_loop
    from envprobe_core.llm.secret import secret_from_environment

    url = given.base_url or calls.OPENAI_URL
    limits = client.Limits(1, 1, given.timeout or client.Limits.deadline)
    secret = secret_from_environment(calls.provider_label(url))
    served = finish_in_loop(client.list_models(url, secret, limits))
    if len(served) != 1:
        names = ", ".join(served[:LISTED_MODELS]) + (", ..." if len(served) > LISTED_MODELS else "")
        raise InputError(f"{url} serves {counted(len(served), 'model')}; give --model: {names or 'none'}")
    return served[0]


def _said_of_a_run(run: dict[str, Any], inputs: RunInputs) -> str:
    """What a run would ask, in one line."""
    from envprobe_core.llm.calls import dollars

    said = [f"{counted(len(inputs.conditions), 'condition')} at {inputs.regime}, {run['episodes']} episodes"]
    said.append(f"{run['calls']:,} calls")
    if run["prompt_tokens"] is not None:
        said.append(f"{run['prompt_tokens']:,} + {run['completion_tokens']:,} tokens")
    said.append("no price known" if run["usd"] is None else dollars(run["usd"]))
    if run["minutes"] is not None:
        said.append(f"{math.ceil(run['minutes'])} min at this pace")
    return ", ".join(said)


# ---------------------------------------------------------------- a model on this machine


def fetch() -> None:
    """Fetch the weights (93 MB) once, verify them, and keep them in a cache folder.

    The folder is the platform's own for caches, or ENVPROBE_CACHE. An interrupted fetch resumes where it
    stopped. Any other GGUF file is used with `envprobe run --agent local --model FILE.gguf`.
    """
    from envprobe_core.llm import local

    with options.progress_bar("bytes") as show:
        fetched = local.fetch_weights(show or (lambda there, total: None))
    path = local.fetched_weights()
    typer.echo(f"{local.TITLE}, {local.LICENCE} ({path.with_suffix('.LICENSE').name} beside it)")
    typer.echo(f"{'fetched and verified' if fetched else 'already there'}: {path}, sha256 {local.SHA256}")


# ---------------------------------------------------------------- a store of answers


def stats(
    file: StoreFile,
    *,
    json: OneObject = False,
    prices: Prices = None,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", parser=options.file, help="Say also what each condition of this run cost."
        ),
    ] = None,
) -> None:
    """Count what was asked, answered, wasted and paid.

    An attempt whose usage is not known, such as one that was cut off, counts the most it can have cost.
    With --run the run is replayed, and each condition has the cost of every attempt to get its answers; what
    conditions share was paid once.
    """
    from envprobe_core.llm.calls import dollars, read_prices
    from envprobe_core.llm.store import cost_of_conditions, read_stats

    known = read_prices(prices)
    found, conditions = read_stats(file, known), []
    if run is not None:
        with _replayed(file, run) as (header, _, asked):
            costs = cost_of_conditions(file, [one.answers for one in asked], known)
            conditions = [
                condition.key | cost for condition, cost in zip(header.inputs.conditions, costs, strict=True)
            ]
    if json:
        options.print_json(found | ({"conditions": conditions} if run else {}))
        return
    listed = {
        name: ", ".join(f"{what} {count}" for what, count in found[name].items()) or "none"
        for name in ("models", "finished", "attempts")
    }
    unpriced = f" (and {found['unpriced']} attempts without a price)" if found["unpriced"] else ""
    most = found["uncertain_usd"]
    uncertain = f", of it up to {dollars(most)} where usage is not known" if most else ""
    typer.echo(
        f"asked     {found['questions']} questions ({listed['models']})\n"
        f"answered  {found['answered']} ({listed['finished']})\n"
        f"attempts  {sum(found['attempts'].values())} ({listed['attempts']})\n"
        f"tokens    {found['prompt_tokens']} + {found['completion_tokens']}\n"
        f"wasted    {found['wasted_attempts']} attempts, {dollars(found['wasted_usd'])}\n"
        f"paid      {dollars(found['paid_usd'])}{unpriced}{uncertain}"
    )
    for condition in conditions:
        shared = f", of it {dollars(condition['shared_usd'])} shared" if condition["shared_usd"] else ""
        text = "condition {world} {policy} {protocol}".format(**condition)
        typer.echo(
            f"{text}: {counted(condition['questions'], 'question')}, {dollars(condition['usd'])}{shared}"
        )


def verify(
    file: StoreFile,
    *,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", parser=options.file, help="A finished run whose answers must all be there."
        ),
    ] = None,
) -> None:
    """Recompute every key, verdict and total of a store; with --run, also the run and its calls.jsonl.

    Exit code 0 if all agree; 1 if some do not, each named; 2 if the file is no store, or gives another run.
    """
    from envprobe_core.llm.running import check_calls
    from envprobe_core.llm.store import check_store, read_stats
    from envprobe_core.runs.manifest import read_manifest

    options.stop_at([f"{file}: {fault}" for fault in check_store(file)], "fault", file)
    found = read_stats(file, {})
    asked = counted(found["questions"], "question")
    tried = counted(sum(found["attempts"].values()), "attempt")
    typer.echo(f"{asked}, {tried}: every key, response, verdict and total agrees")
    if run is not None:
        with _replayed(file, run) as (_, _, conditions):
            manifest = read_manifest(run, whole=True)
            options.stop_at([*check_calls(run, manifest, conditions)], "disagreement", run)
            keys = {key for condition in conditions for key in condition.answers}
            typer.echo(f"{run} comes out again, with {counted(len(keys), 'answer')}")


def export(
    file: StoreFile,
    *,
    run: Annotated[
        Path, typer.Option(metavar="DIR", parser=options.file, help="Folder of a finished run on a model.")
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="REPLAY", parser=options.file, help="File to write, as in answers.replay.gz."),
    ],
    note: Note = "",
) -> None:
    """Write the answers that a run used to a small file, with which anybody can replay it.

    The run is replayed first: its hash must come out again. `envprobe run --replay REPLAY` uses the file.
    """
    refuse_existing("--out", out)
    with _replayed(file, run, note) as (header, answers, conditions):
        _write(
            out, header, answers, chain(*(condition.answers for condition in conditions)), header.inputs.agent
        )


@contextmanager
def _replayed(file: Path, run: Path, note: str = "") -> Iterator[tuple[Header, Answers, list[Asked]]]:
    """Replay a finished run from a store: a replay file's header, the store, each condition's result."""
    from envprobe_core.llm.client import Service
    from envprobe_core.llm.replays import Header
    from envprobe_core.llm.running import replay_run
    from envprobe_core.llm.store import AnswerStore
    from envprobe_core.runs.manifest import read_manifest

    manifest = read_manifest(run, whole=True)
    agent, inputs = manifest.inputs.agent, manifest.inputs
    if agent is None:
        raise InputError(f"{run} is a run of the simulated agent: no store holds its answers")
    with closing(AnswerStore(file, writable=False)) as answers:
        answers.advice = f"{run} was answered into another store, or by another engine"
        conditions, found = replay_run(Service(agent, answers), inputs)
        if found != manifest.result_hash:
            raise InputError(f"{run} does not come out of {file}: another result hash; nothing was written")
        stated = {"requests": manifest.requests} if manifest.requests else {}
        yield Header(note=note, inputs=inputs, result_hash=found, **stated), answers, conditions


def _write(out: Path, header: Any, answers: Answers, keys: Iterable[str], agent: ModelAgent) -> None:
    """Write answers to a new file, and say how many."""
    from envprobe_core.llm.replays import write_answers

    out.parent.mkdir(parents=True, exist_ok=True)
    count = write_answers(out, header, answers, keys)
    typer.echo(f"{counted(count, 'answer')} of {agent.model}, {out.stat().st_size} bytes: {out}")
