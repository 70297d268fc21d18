"""Runs on a model: into a run folder, from stored answers alone, and trials of prompts.

A run that was killed is simply run again: what was answered is replayed from the store. Beside the table,
`calls.jsonl` says of each episode what was asked for. A replay file is run again without a key or a network.

A trial asks one model in several versions of the prompts about the situations that are met in a rehearsal:
the same ones, whatever the model would have done. From its file of answers the book computes figures.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice, product, zip_longest
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
import pandas as pd
from pydantic import BaseModel

from envprobe_core.agents.model import ModelAgent
from envprobe_core.agents.profiles import PROFILES
from envprobe_core.comparing import JOINED, WHO
from envprobe_core.conditions import Condition, Seeds, make_condition
from envprobe_core.engine.batch import Columns
from envprobe_core.errors import InputError
from envprobe_core.experiment import episode_frame
from envprobe_core.files import read_whole
from envprobe_core.ledger import note_other
from envprobe_core.llm.agent import (
    AT_ONCE,
    NOT_SAID,
    Asked,
    Exchange,
    Readings,
    exchanges,
    finish_in_loop,
    run_model,
    together,
    who_answered,
)
from envprobe_core.llm.calls import RunStoppedError
from envprobe_core.llm.client import Client, Counts, Service
from envprobe_core.llm.replays import ReplayFile, read_replay
from envprobe_core.measures import is_played
from envprobe_core.runs.folder import CALLS, RunFolder
from envprobe_core.runs.manifest import MANIFEST, Manifest, RunInputs, total_hash
from envprobe_core.runs.tables import READ, result_hash, step_table
from envprobe_core.sources import DATA, ROOT

LIVE_PER_CALL = 2  # episodes under way for each call that may be
FOLDER = DATA / "replays"
SUFFIX = ".replay.gz"
FINGERPRINT = "scripted-1"  # of answers by the scripted test server: no language model gave them


def with_client(
    service: Service,
    work: Callable[[Client], Awaitable[object]],
    notice: Callable[[Counts], object] = lambda counts: None,
) -> None:
    """Do what asks a service; its answers are all stored when this returns.

    What the work returns is thrown away: `asyncio.run` would write it out whole as it frees SIGINT.
    """

    async def run() -> None:
        async with service.client(notice) as client:
            await work(client)

    finish_in_loop(run())


def run_on(
    service: Service,
    work: Sequence[tuple[Condition, Seeds]],
    keep: Callable[[int, Asked], None],
    notice: Callable[[Counts], None] = lambda counts: None,
) -> None:
    """Run rows of conditions on a model, as many at once as calls may be.

    `keep` gets the place and the result of each when it is done, `notice` the counts after every call.
    """
    per_call = 1 if service.weights else LIVE_PER_CALL
    live = asyncio.Semaphore(service.limits.concurrency * per_call if service.secret else 1)
    rows, readings = 1 if service.secret else AT_ONCE, Readings()

    async def run(client: Client, place: int) -> None:
        how = {"live": live, "rows": rows, "readings": readings}
        keep(place, await run_model(*work[place], client.ask, service.agent, **how))

    with_client(service, lambda client: together([run(client, one) for one in range(len(work))]), notice)


def run_into(
    folder: RunFolder, service: Service, notice: Callable[[int, Counts], None] = lambda done, counts: None
) -> list[Columns]:
    """The measures of each condition, columns [row], of a run on a model that is written into an open folder.

    A log is written when its condition is done. Answers are in the store before they are used: a run
    that ends early loses none, and the next one takes them from there.

    Args:
        folder: the open folder.
        service: who answers.
        notice: is called with the episodes done, and the counts after every call.

    Raises:
        RunStoppedError: if an answer cannot be had.
    """
    done, calls, who, inputs = 0, dict[int, bytes](), dict[int, Any](), folder.inputs
    work = list(zip(inputs.conditions, inputs.seeds_of_conditions, strict=True))

    def keep(place: int, asked: Asked) -> None:
        nonlocal done
        condition, seeds = work[place]
        logged, steps = inputs.logged_seeds[place], None
        if len(logged):
            steps = step_table(condition, logged, asked.trajectory.rows(slice(len(logged))))
        folder.store(place, asked.columns, steps)
        calls[place] = calls_of(condition, seeds, asked)
        who[place] = who_answered(condition, asked.tally)
        done += len(seeds)

    run_on(service, work, keep, lambda counts: notice(done, counts))
    lines = b"".join(calls[place] for place in range(len(work)))
    return folder.finish(lines, service.answers.rungs(), [who[place] for place in range(len(work))])


def calls_of(condition: Condition, seeds: Seeds, asked: Asked) -> bytes:
    """The lines of `calls.jsonl` about some seeds of a condition: what was asked for, and who answered."""
    names = {name: condition.key[name] for name in ("world", "policy", "protocol")}
    rows = zip(seeds.tolist(), asked.tally, strict=True)
    return b"".join(orjson.dumps(names | {"seed": seed} | counts) + b"\n" for seed, counts in rows)


def who_answered_each(inputs: RunInputs, conditions: Sequence[Asked]) -> list[dict[str, Any]]:
    """Who answered each condition of a run; see `agent.who_answered`."""
    tallies = [one.tally for one in conditions]
    return [who_answered(*pair) for pair in zip(inputs.conditions, tallies, strict=True)]


def check_calls(folder: Path, manifest: Manifest, conditions: Sequence[Asked]) -> Iterator[str]:
    """Yield a text for every line of a run's `calls.jsonl` that is not what its conditions come to.

    So for who answered, as its manifest states it.
    """
    inputs = manifest.inputs
    if manifest.as_dict().get("answered") != who_answered_each(inputs, conditions):
        yield f"{MANIFEST}, answered: it does not say who answered"
    due = b"".join(map(calls_of, inputs.conditions, inputs.seeds_of_conditions, conditions)).splitlines()
    pairs = zip_longest(read_whole(folder / CALLS).splitlines(), due)
    for number, (stated, right) in enumerate(pairs, 1):
        if stated != right:
            yield f"{CALLS}, line {number}: it does not say what was asked and answered"


def replay_run(service: Service, inputs: RunInputs) -> tuple[list[Asked], str]:
    """The result of every condition of a run, from a store or a replay file, and the result hash.

    Raises:
        RunStoppedError: if an answer is not there.
    """
    note_other("episodes of a language model's answers, replayed", sum(map(len, inputs.seeds_of_conditions)))
    found: dict[int, Asked] = {}
    run_on(service, list(zip(inputs.conditions, inputs.seeds_of_conditions, strict=True)), found.__setitem__)
    conditions = [found[place] for place in range(len(inputs.conditions))]
    return conditions, total_hash(
        inputs.conditions, [result_hash(condition.columns) for condition in conditions]
    )


# ---------------------------------------------------------------- replay files, run again


def find_replay(text: str) -> Path:
    """The replay file of a name in `data/replays/`, or of a path, absolute or from the checkout.

    Raises:
        InputError: if there is none.
    """
    for path in (FOLDER / f"{text}{SUFFIX}", FOLDER / text, ROOT / text):
        if path.is_file():
            return path
    known = [path.name.removesuffix(SUFFIX) for path in sorted(FOLDER.glob(f"*{SUFFIX}"))]
    raise InputError(f"no replay {text!r}; accepted: {', '.join(known)}, or the path of a file")


@dataclass(frozen=True)
class ReplayedRun:
    """A replay file, and the result of running it."""

    file: ReplayFile
    label: str  # model and prompt version, as tables name it
    fault: str = ""  # why it has no results; empty where it has
    # a row an episode, `experiment.COLUMNS` and `tables.READ`, but for those of which nothing could be read;
    # `profile` is the model. None with a fault
    frame: pd.DataFrame | None = None
    # a row an episode, each of them: what was asked for (`agent.COUNTS`). None likewise
    tally: pd.DataFrame | None = None

    @property
    def inputs(self) -> RunInputs:
        """What was run."""
        return self.file.header.inputs

    @property
    def scripted(self) -> bool:
        """Whether no language model was asked: every answer is the scripted test server's."""
        return self.file.fingerprints == {FINGERPRINT}

    @property
    def seeds(self) -> int:
        """How many seeds its smallest condition has."""
        return min(map(len, self.inputs.seeds_of_conditions))


def quoted(text: str) -> str:
    """Write what a file says, in Markdown, so that it stays text whatever it is."""
    plain = " ".join(text.split()).replace("`", "'")
    return f"`{plain}`"


def replay_file(path: Path) -> ReplayedRun:
    """Run a replay file again, without network or key.

    Where its prompts are of another version, an answer is missing or another hash comes out, it has no
    results and says why.

    Raises:
        InputError: if it is none, or a damaged one.
    """
    file = read_replay(path)
    run = ReplayedRun(file, f"{quoted(file.agent.model)[1:-1]}, prompts {file.agent.prompt_version}")
    try:
        conditions, found = replay_run(Service(file.agent, file), run.inputs)
    except InputError as error:
        return replace(run, fault=f"it cannot be asked again: {error}")
    except RunStoppedError:
        return replace(run, fault="an answer is missing: this engine asks something else")
    if found != file.header.result_hash:
        return replace(run, fault="other episodes come out with this engine")
    columns = {
        name: np.concatenate([condition.columns[name] for condition in conditions])
        for name in conditions[0].columns
    }
    columns["condition"] = np.repeat(
        np.arange(len(conditions)), [len(condition.tally) for condition in conditions]
    )
    tally = pd.DataFrame([counts for condition in conditions for counts in condition.tally])
    frame = episode_frame(run.inputs.conditions, columns, READ)
    who = [JOINED.join(one[WHO]) for one in who_answered_each(run.inputs, conditions)]
    if {*who} != {NOT_SAID}:
        frame[WHO] = np.array(who)[columns["condition"]]
    return replace(run, frame=frame[is_played(frame["invalid_share"])], tally=tally)


def load_replays(folder: Path = FOLDER) -> list[ReplayedRun]:
    """Run every replay file of a folder again; those with one label are told apart by their files' names."""
    runs = {path.name.removesuffix(SUFFIX): replay_file(path) for path in sorted(folder.glob(f"*{SUFFIX}"))}
    labels = [run.label for run in runs.values()]
    return [
        replace(run, label=f"{run.label}, {name}") if labels.count(run.label) > 1 else run
        for name, run in runs.items()
    ]


# ---------------------------------------------------------------- trials of prompts

EVERY = 3  # steps between two situations of an episode, so that a few seeds give different ones
FIRST_SEED, SEEDS = 1000, 20  # of the episodes, and how many are rehearsed in lockstep


class Trial(BaseModel):
    """What is asked, as the first line of a trial's file states it."""

    format: Literal["envprobe-trial/1"] = "envprobe-trial/1"
    agent: ModelAgent
    worlds: list[str]  # each world is asked about in each version
    versions: list[str]
    policy: str  # of the episodes that are met
    regime: str
    situations: int  # how many of each world
    note: str = ""  # where the answers come from

    def met(self, world: str, version: str) -> list[Exchange]:
        """What is asked of a world in a version, the same situations in every one."""
        condition, agent = (
            make_condition(world, self.policy, self.regime),
            replace(self.agent, prompt_version=version),
        )
        found, seeds = [], np.arange(FIRST_SEED, FIRST_SEED + SEEDS)
        while len(found) < self.situations:
            asked = sorted(exchanges(condition, seeds, agent, PROFILES["perfect"]), key=lambda one: one.seed)
            for seed, own in groupby(asked, key=lambda one: one.seed):
                identity = f"trial on episode {seed}"
                found += [one._replace(identity=identity) for one in islice(own, 0, None, EVERY)]
            seeds = seeds + SEEDS
        return found[: self.situations]


def ask_trial(trial: Trial, service: Service) -> list[str]:
    """Ask everything that a trial of prompts asks; return the keys of the answers, in hexadecimal.

    Raises:
        RunStoppedError: if an answer cannot be had; those given are kept.
    """
    keys: list[str] = []

    async def ask(client: Client) -> None:
        for version, world in product(trial.versions, trial.worlds):
            asked = [client.ask(one.request, one.identity) for one in trial.met(world, version)]
            keys.extend(answer.key for answer in await together(asked))

    with_client(service, ask)
    return keys
