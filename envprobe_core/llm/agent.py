"""The language-model agent: asks a model for every belief update and proposal of its episodes.

It keeps what a program can keep without judging: where the agent has been, which calls failed, whether the
last task action was valid. Everything else, beliefs included, is the model's. It reads observations and
what checks told, never gold or the world's state.

An answer that cannot be used is asked for again, with its fault named. What stays unusable is an *invalid
update*: beliefs unchanged, nothing reported (c = d = 0, risk low), the proposal is `wait`; it is counted.

Every episode is a block of its own (or of a few rows, in lockstep, where answers come at once, as from a
store), so one slow answer holds up nobody else. What they leave behind is joined to one trajectory, as
if the engine had run them: the same scores, columns and logs take it.

In a *rehearsal* the simulated agent stands in a model's place. It answers from the episode itself and not
from the prompt; that a prompt tells everything it uses is tested with a program that reads nothing else.
Worked examples come from a rehearsal, and so does the estimate of what a run would ask and cost. A model's
answers differ, and so do its episodes: an estimate is no bound. `--max-cost` is one.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np

from envprobe_core.agents.model import ModelAgent
from envprobe_core.agents.profiles import PROFILES, TYPICAL, AgentProfile
from envprobe_core.agents.simulated import UNKNOWN_STALENESS
from envprobe_core.compiled.records import NONE, UNKNOWN
from envprobe_core.conditions import Condition
from envprobe_core.engine.batch import Columns, EpisodeBatch, Trajectory, kernel_params, step_batch
from envprobe_core.engine.kernel import PROPOSE
from envprobe_core.llm import answers
from envprobe_core.llm.answers import NO_UPDATE, Update, Verdict, write_update
from envprobe_core.llm.calls import (
    Answer,
    Ask,
    ChatRequest,
    Prices,
    RunStoppedError,
    Tokens,
    find_price,
    question,
)
from envprobe_core.llm.prompts import NONE_YET, NOTHING, SEEN, Case, Prompts, SituationWriter, plain_prompts
from envprobe_core.llm.served import fault_in_words, read_served
from envprobe_core.measures import is_played
from envprobe_core.policies import POLICIES
from envprobe_core.regimes import Regime
from envprobe_core.worlds import World, make_world
from envprobe_core.worlds.base import Ints

JUDGED = "judge"  # the policy whose decisions a second model makes
COUNTS = (
    "calls", "reasks", "updates", "invalid_updates", "loose_updates", "verdicts", "invalid_verdicts",
    "loose_verdicts", "prompt_tokens", "completion_tokens", "uncounted",
)  # fmt: skip
"""What is counted of an episode: answers taken, stored or fresh, re-asks and verdicts among them; re-asks;
belief updates, re-asks aside; those that stayed unusable; those that were read loosely (see `served`);
verdicts likewise; tokens as far as the server counted them, and answers of which it counted none."""
WHO = ("answered_by", "judged_by")
"""Of an episode: how many answers each model gave, by the name that the server calls it, of updates and of
verdicts."""
NOT_SAID = "not said"  # the name of a model where its server does not say which one answered
Tally = list[dict[str, Any]]  # COUNTS, WHO, and the `fingerprints` of what answered, [row]
Result = TypeVar("Result")


@dataclass
class Readings:
    """How the answers of a run could be read so far, over all its episodes."""

    readable: int = 0  # belief updates that could be used
    fault: str = ""  # the first of an answer that could not

    def check(self) -> None:
        """Stop a run of which an episode is over and no update could be read.

        Raises:
            RunStoppedError: with the first fault, and what to try.
        """
        if not self.readable:
            raise RunStoppedError(
                f"no belief update of the first episode could be read; first fault: {self.fault}. Nothing "
                "was scored, all answers are kept. Try a larger --max-tokens where answers are "
                "cut, other --prompts, or another model"
            )


class LanguageModelAgent:
    """Proposes for a block of episodes by asking a model about each that is not over.

    Attributes:
        tally: what was asked for, [row].
    """

    def __init__(
        self,
        episodes: EpisodeBatch,
        ask: Ask | None,
        model: ModelAgent,
        prompts: Prompts | None = None,
        readings: Readings | None = None,
    ) -> None:
        """Take episodes that have just begun, of which it reads what the simulated agent may; who answers."""
        self._readings = readings or Readings()
        condition, rows = episodes.condition, len(episodes.seeds)
        self.tally: Tally = [
            dict.fromkeys(COUNTS, 0) | {"fingerprints": []} | {name: {} for name in WHO} for _ in range(rows)
        ]
        self._world = make_world(condition.world, condition.regime, condition.protocol)
        self._episodes, self._ask, self._model = episodes, ask, model
        self._prompts = prompts or prompts_of(condition, model.prompt_version)
        self._keeping_notes = simulated_setting(self._world, condition.regime, PROFILES["perfect"])
        self._noting = episodes.block.copy()
        self._seeds: list[int] = episodes.seeds.tolist()
        self._last_worked = np.full(rows, NONE_YET)
        self._situations = SituationWriter(self._world, episodes.block.task, model.prompt_version)

    async def propose(self) -> None:
        """Ask for the update of every episode that is not over; write it down, and what it proposes."""
        block = np.asarray(self._episodes.block)  # attributes of records take long
        for part in ("observation", "t", "over"):
            self._noting[part] = block[part]
        step_batch(
            PROPOSE, self._keeping_notes, self._noting
        )  # keeps notes as the simulated agent keeps its own
        block["mind"] = self._noting["mind"]
        lose_tables(self._world, block)
        seen = block["observation"]
        acted = (seen["fresh"] == 1) & (seen["action"] >= 0)
        self._last_worked = np.where(acted, seen["valid"], self._last_worked)
        due = np.flatnonzero(block["over"] == 0)
        situations = self._situations.write(block, self._last_worked, due, self._episodes.logs["action"])
        updates = []
        for row, situation in zip(due.tolist(), situations, strict=True):
            answer = await self._answer(row, situation)
            self.tally[row]["updates"] += 1
            self.tally[row]["invalid_updates"] += answer is None
            self._readings.readable += answer is not None
            updates.append(answer or NO_UPDATE)
        block["action"][due] = [update.action for update in updates]
        block["risk"][due] = [update.risk for update in updates]
        answers.apply_updates(block["table"], due, updates, block["told"][due])
        if answers.gives_reasons(self._world):
            for row, update in zip(due.tolist(), updates, strict=True):
                known = block["table"]["value"][row, : self._world.fields] != UNKNOWN
                for name, terms in zip("cd", answers.reported_terms(update, known), strict=True):
                    block["sight"][name][row, : self._world.fields] = terms

    async def judge(self) -> Ints:
        """Ask a second model about every episode with budget left; return fields to probe, or NONE, [row]."""
        self._embedded = self._episodes.decide()  # fills in the sights
        block, fields = self._episodes.block, np.full(len(self._seeds), NONE)
        budget = self._episodes.params.policy.budget
        asked = np.flatnonzero((block.over == 0) & (block.probes_used < budget))
        for row, case in zip(asked.tolist(), self._situations.cases(block.sight[asked]), strict=True):
            verdict = await self._answer(row, case)
            self.tally[row]["verdicts"] += 1
            self.tally[row]["invalid_verdicts"] += verdict is None
            fields[row] = verdict.field if verdict and verdict.override else case.decision
        return fields

    def _question(self, row: int, asked: str | Case) -> tuple[ChatRequest, str, Callable[[str], Any]]:
        """A request, whose sample its answer is, and how that is read: by role, in an episode."""
        seed, role = self._seeds[row], "judge" if isinstance(asked, Case) else "update"
        if isinstance(asked, Case):
            read = partial(answers.parse_verdict, candidates=asked.candidates)
        else:
            read = partial(answers.parse_update, world=self._world, step=self._step(row))
        return self._prompts.request(self._model, asked, seed), f"{role} of episode {seed}", read

    def _step(self, row: int) -> int | None:
        """The step by which an update's rows are dated, None where they give ages."""
        return int(self._episodes.block["t"][row]) if self._prompts.version["dated"] else None

    async def _answer(self, row: int, asked: str | Case) -> Any:
        """Ask until an answer can be used, but not for ever; None where none could."""
        (request, identity, read), tally, spoilt = self._question(row, asked), self.tally[row], ""
        for attempt in range(self._model.reasks + 1):
            answer = await self._ask(request, identity, spoilt)
            tally["calls"] += 1
            tally["reasks"] += attempt > 0
            tally["fingerprints"] = sorted({answer.fingerprint, *tally["fingerprints"]} - {""})
            who, served = tally[WHO[isinstance(asked, Case)]], answer.served or NOT_SAID
            who[served] = who.get(served, 0) + 1
            tally["uncounted"] += answer.used is None
            if answer.used is not None:
                tally["prompt_tokens"] += answer.used.prompt
                tally["completion_tokens"] += answer.used.completion
            try:
                found, loose = read_served(read, answer.text)
                tally["loose_verdicts" if isinstance(asked, Case) else "loose_updates"] += loose
                return found
            except answers.InvalidAnswer as fault:
                self._readings.fault = self._readings.fault or fault_in_words(fault, answer)
                request = self._prompts.asked_again(request, answer.text, str(fault))
                spoilt = answer.key
        return None


def lose_tables(world: World, block: Any) -> None:
    """Let go of the beliefs of every row, where the protocol keeps none from one step to the next."""
    if world.protocol.memory == "none":
        later = (block["over"] == 0) & (block["t"] > 0)
        for name, lost in (("value", UNKNOWN), ("staleness", UNKNOWN_STALENESS), ("confidence", 0)):
            block["table"][name][later, : world.fields] = lost


@dataclass(frozen=True)
class Asked:
    """The result of running episodes of a condition on a model."""

    trajectory: Trajectory
    columns: Columns  # of the table of episodes, [row]
    tally: Tally  # [row], what was asked for
    answers: dict[str, Answer]  # those that were used, by key, in order of their first use


async def run_model(
    condition: Condition,
    seeds: Ints,
    ask: Ask,
    model: ModelAgent,
    *,
    live: asyncio.Semaphore,
    rows: int = 1,
    readings: Readings | None = None,
) -> Asked:
    """Run episodes of a condition with a language model; errors of `ask` end the run as they are.

    Where `readings` are given, which several conditions may share, a run stops after its first episode if no
    update of it could be read.

    The condition's profile only says how a table is scored. At most `live` blocks of `rows` episodes are
    under way: 1 row while answers take time, a few hundred where they are at hand.
    """
    used: dict[str, Answer] = {}

    async def ask_and_note(request: ChatRequest, identity: str, spoilt: str) -> Answer:
        answer = await ask(request, identity, spoilt)
        used[answer.key] = answer
        return answer

    async def run(some: Ints) -> tuple[Trajectory, Tally]:
        async with live:
            make = partial(LanguageModelAgent, ask=ask_and_note, model=model, readings=readings)
            done = await run_rows(condition, some, make)
            if readings is not None:
                readings.check()
            return done

    blocks = [seeds[start : start + rows] for start in range(0, len(seeds), rows)]
    trajectories, tallies = zip(*await together([run(some) for some in blocks]), strict=True)
    whole, tally = Trajectory.joined(list(trajectories)), list(chain.from_iterable(tallies))
    columns = condition.named(seeds, whole.measures) | shares(tally)
    return Asked(whole, columns, tally, used)


def who_answered(condition: Condition, tally: Tally) -> dict[str, Any]:
    """What a manifest states of a condition's answers: how many each model gave, and the `fingerprints`.

    `unread` counts the episodes that are none, since no belief update of theirs could be read.
    """
    found: dict[str, Any] = {name: condition.key[name] for name in ("world", "policy", "protocol")}
    for who in WHO:
        counts = Counter[str]()
        for one in tally:
            counts.update(one[who])
        found |= {who: dict(sorted(counts.items()))} if counts else {}
    prints = sorted({text for one in tally for text in one["fingerprints"]})
    played = is_played(shares(tally)["invalid_share"])
    return found | {"fingerprints": prints, "unread": int((~played).sum())}


def shares(tally: Tally) -> Columns:
    """Return which share of each episode's belief updates was invalid, and which read loosely, [row]."""
    counts = {name: np.array([one[name] for one in tally], dtype=float) for name in COUNTS}
    updates = np.maximum(counts["updates"], 1.0)
    return {
        "invalid_share": counts["invalid_updates"] / updates,
        "loose_share": counts["loose_updates"] / updates,
    }


async def run_rows(
    condition: Condition, seeds: Ints, make: Callable[[EpisodeBatch], LanguageModelAgent]
) -> tuple[Trajectory, Tally]:
    """Run a block of a condition, with an agent that `make` puts in charge of its episodes.

    A policy that replays another first runs that one, by the same answers.
    """
    schedules = None
    if condition.policy.replays is not None:
        original = replace(condition, policy=POLICIES[condition.policy.replays])
        played, _ = await run_rows(original, seeds, make)
        schedules = np.ascontiguousarray(played.probe, dtype=np.int64)
    episodes = EpisodeBatch(condition, seeds, schedules=schedules)
    agent = make(episodes)
    while True:
        await agent.propose()
        if not episodes.record():
            return episodes.recording(), agent.tally
        episodes.advance(await agent.judge() if condition.policy.name == JUDGED else episodes.decide())


async def together(waiting: Sequence[Awaitable[Result]]) -> list[Result]:
    """Wait for all at once; the first failure cancels the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in waiting]  # type: ignore[arg-type]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


def finish_in_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, also where a loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass  # and no error that follows is told to have followed this one
    else:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, work).result()
    return asyncio.run(work)


# ---------------------------------------------------------------- rehearsals

AT_ONCE = 250  # episodes in lockstep where every answer is at hand
CHARACTERS_A_TOKEN = 3.5  # of English; rows of digits and signs take two to three times as many tokens
EXAMPLE_SEED = 900_001  # of the episode that worked examples are taken from; in no regime's seeds
SURE = 95  # percent, in worked examples


class Exchange(NamedTuple):
    """What a model would be asked at a step of an episode, and what is answered in its place."""

    world: World
    seed: int
    step: int
    seen: list[tuple[int, int]]  # the fields that the observation shows, and their values
    request: ChatRequest
    identity: str  # whose sample the answer is
    read: Callable[[str], Any]  # how an answer is read: to an Update or a Verdict, or an InvalidAnswer
    answer: str  # the simulated agent's, or the embedded judge's

    @property
    def situation(self) -> str:
        """The last message: the situation, or a judge's case."""
        return str(self.request["messages"][-1]["content"])


class _Rehearsal(LanguageModelAgent):
    """Answers from the episode, and notes what it is asked."""

    def __init__(
        self, profile: AgentProfile, met: list[Exchange], episodes: EpisodeBatch, **given: Any
    ) -> None:
        super().__init__(episodes, **given)
        self._met = met
        self._said: dict[int, Update] = {}
        self._setting = simulated_setting(self._world, self._episodes.condition.regime, profile)

    async def propose(self) -> None:
        block = self._episodes.block
        due = np.flatnonzero(block.over == 0)
        own = block[due]
        self._said = dict(zip(due.tolist(), simulated_updates(own, self._world, self._setting), strict=True))
        block.has_quit[due] = own.has_quit
        await super().propose()

    async def _answer(self, row: int, asked: str | Case) -> Any:
        answer = write_update(self._said[row], self._world, self._step(row))
        if isinstance(asked, Case):
            field = int(self._embedded[row])
            overrides = field != asked.decision
            answer = Verdict(override=overrides, field=field if overrides else NONE).model_dump_json()
        block = np.asarray(self._episodes.block)[row]
        values = block["observation"]["value"][: self._world.fields].tolist()
        seen = [(field, value) for field, value in enumerate(values) if value != UNKNOWN]
        place = self._world, self._seeds[row], int(block["t"]), seen
        self._met.append(Exchange(*place, *self._question(row, asked), answer))
        return self._met[-1].read(answer)


def exchanges(
    condition: Condition,
    seeds: Ints,
    agent: ModelAgent,
    profile: AgentProfile = TYPICAL,
    prompts: Prompts | None = None,
) -> Iterator[Exchange]:
    """Yield what a model would be asked in episodes of a condition; the answers err as a profile does."""
    for some in np.split(seeds, range(AT_ONCE, len(seeds), AT_ONCE)):
        met: list[Exchange] = []
        rehearsing = partial(_Rehearsal, profile, met, ask=None, model=agent, prompts=prompts)
        with suppress(StopIteration):  # what never has to wait is finished at once
            run_rows(condition, some, rehearsing).send(None)
        yield from met


@lru_cache(maxsize=64)
def simulated_setting(world: World, regime: Regime, profile: AgentProfile) -> Any:
    """The engine's setting of a simulated agent in a world, of whose regime the observations count."""
    condition = Condition(world.name, POLICIES["no-probe"], regime, world.protocol, profile)
    setting = kernel_params(condition, world=world)
    setting.world.distracts = regime.observation == "distractor"
    return setting


def simulated_updates(block: Any, world: World, setting: Any) -> list[Update]:
    """Let the simulated agents answer, [row], and write down what each changes.

    Args:
        block: the episodes, [row], with notes as they were before this step; it is changed.
        world: of all of them.
        setting: from `simulated_setting`.
    """
    lose_tables(world, block)
    before, rows = block.table.copy(), np.arange(len(block))
    fades = np.where(block.t > 0, int(setting.habits.fade), 0).tolist()
    answers.apply_updates(before, rows, [replace(NO_UPDATE, fade=fade) for fade in fades], block.told)
    step_batch(PROPOSE, setting, block)
    # where the graph gives c, reasons name what the action uses
    reasons = block.sight.c if answers.gives_reasons(world) else block.used
    was, now = (
        np.stack([table[name][:, : world.fields] for name in ("value", "staleness", "confidence")], axis=2)
        for table in (before, block.table)
    )
    changed = [np.flatnonzero(fields).tolist() for fields in (was != now).any(axis=2)]
    return [
        Update(
            tuple((field, *now[row, field].tolist()) for field in changed[row]),
            fades[row],
            int(block.action[row]),
            int(block.risk[row]),
            tuple(
                (field, int(2 * c), int(c == 1), int(c == 1))
                for field, c in enumerate(reasons[row, : world.fields].tolist())
                if c
            ),
        )
        for row in rows.tolist()
    ]


@lru_cache(maxsize=256)
def prompts_of(condition: Condition, version: str) -> Prompts:
    """The prompts of a condition in a version."""
    world = make_world(condition.world, condition.regime, condition.protocol)
    plain = plain_prompts(world, version, condition.policy.name)
    if not plain.version["examples"]:
        return plain
    simple = replace(condition, policy=POLICIES["simple"], budget=None, threshold=None)
    nobody, perfect = ModelAgent("nobody", version, "none"), PROFILES["perfect"]
    met = exchanges(simple, np.array([EXAMPLE_SEED]), nobody, perfect, replace(plain, hint=""))
    return replace(plain, turns=worked_examples([*met]))


def worked_examples(met: Sequence[Exchange]) -> tuple[tuple[str, str], ...]:
    """Return three worked situations as turns: much seen, nothing seen, much seen late in the episode.

    A simulated agent without errors meets them; the answers set what is seen and nothing else.
    """
    said = {one.step: one.read(one.answer) for one in met}
    acting = [one for one in met if said[one.step].action >= 0] or met
    most = max(len(one.seen) for one in acting)
    telling = [one for one in acting if len(one.seen) >= min(2, most)]
    late = acting[len(acting) // 2 :]
    blind = next((one for one in late if not one.seen), late[0])
    nothing = f"{blind.situation.rpartition(SEEN)[0]}{SEEN}{NOTHING}"
    turns = []
    for one, text in zip((telling[0], blind, telling[-1]), (None, nothing, None), strict=True):
        entries = tuple((*row, 0, SURE) for row in one.seen if text is None)
        update = replace(said[one.step], entries=entries, fade=0, risk=0)
        turns += [("user", text or one.situation), ("assistant", write_update(update, one.world, one.step))]
    return tuple(turns)


# ---------------------------------------------------------------- what a run would ask and cost


def estimate(
    conditions: Sequence[Condition], seeds: Sequence[Ints], agent: ModelAgent, prices: Prices, sample: int
) -> dict[str, Any]:
    """Estimate a run: what a sample of each condition's seeds asks, scaled to all of them.

    Returns:
        `episodes` of the run and, of them, those of the `dry_run`; `steps`, answers it would use; `calls`,
        the questions, once for all policies that share them; `prompt_tokens` and `completion_tokens` of
        these, roughly; in dollars their `cost`, and the `most` it could be, both None without a price.
    """
    asked: dict[bytes, tuple[float, ...]] = {}
    steps = 0
    runs = (
        exchanges(condition, own[:sample], agent) for condition, own in zip(conditions, seeds, strict=True)
    )
    for one in chain.from_iterable(runs):
        steps += 1
        whole = question(agent.provider, one.request, one.identity)
        if whole.key not in asked:
            prompt = sum(len(part["content"]) for part in one.request["messages"])
            tokens = Tokens(*(math.ceil(n / CHARACTERS_A_TOKEN) for n in (prompt, len(one.answer))))
            price = find_price(prices, whole.model)
            costs = (price.cost(tokens), price.cost(whole.most)) if price else (math.nan, math.nan)
            asked[whole.key] = tokens.prompt, tokens.completion, *costs
    episodes, dry_run = sum(map(len, seeds)), sum(min(sample, len(own)) for own in seeds)
    prompt, completion, *money = map(sum, zip(*asked.values(), strict=True))
    counts = {"steps": steps, "calls": len(asked), "prompt_tokens": prompt, "completion_tokens": completion}
    cost, most = (None if math.isnan(total) else total * (episodes / dry_run) for total in money)
    scaled = {name: math.ceil(count * episodes / dry_run) for name, count in counts.items()}
    return {"episodes": episodes, "dry_run": dry_run} | scaled | {"cost": cost, "most": most}
