"""Drive the paper's public code with agents whose table never changes, that never act, or that know all.

    python data/public/constant.py FOLDER [--seeds 42:262] [--jobs 2]

FOLDER holds a checkout of the public repository at commit 3266b54, which is no part of this repository and
not changed. All agents see what the scribe of `drive.py` sees and have its luck; only what they write into
the table differs, and whether they act.

    first-table        acts as the scribe; the table stays what the scribe writes first
    true-first-table   acts as the scribe; the table stays the true state of the first step
    best-constant      acts as the scribe; of all tables that never change the best on episodes of the same
                       world and policy with other seeds, 800000 to 800199, played with an empty table (which
                       the oracle's probes hang on, and no other's)
    all-done           acts as the scribe, on tools: every tool completed, every output there, every tool open
    never-acts         writes nothing and proposes what does nothing
    never-acts-first   writes what the scribe writes first, and proposes what does nothing
    never-acts-best    the best table of its own episodes, and proposes what does nothing
    knows-all          acts as the scribe, on tools: writes the true state at every step, and of outputs the
                       values, as the prompt asks and the scribe does; the code compares them with True

Beside this file it writes `constant.parquet`, one row an episode, with the columns of `idle.parquet`.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import cache
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any, ClassVar

from drive import (  # beside this file
    EMPTY,
    PRIMARY,
    WORLDS,
    CopyGold,
    Scribe,
    arguments,
    measured,
    run_what_is_missing,
)
from drive import POLICIES as EVERYWHERE
from idle import COLUMNS

HERE = Path(__file__).parent
POLICIES = {name: own for name, own in (EVERYWHERE | PRIMARY).items() if name != "random"}
"""All whose rows do not differ from run to run."""
LEARNED = range(800000, 800200)
TOOLS = {"S1": 5, "S2": 9, "S3": 16}
MOST_ITEMS = 11  # of a list, so that all its parts are tried
NOTHING = "wait()"
Table = dict[str, Any]


class Constant(Scribe):
    """Acts as the scribe, and writes the same table at every step."""

    table: Table = EMPTY
    acts = True

    def step(self, observation: dict[str, Any], history: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        answer = super().step(observation, history, **more)
        answer["belief_world_state"] = self.written(answer["belief_world_state"])
        if not self.acts:
            answer["next_decision"]["action"] = NOTHING
        return answer

    def written(self, _: Table) -> Table:
        """What stands in the table, whatever the scribe would write."""
        return EMPTY | type(self).table


class FirstTable(Constant):
    """Keeps the table that it wrote first."""

    def reset(self, env_name: str, task_description: str) -> None:
        super().reset(env_name, task_description)
        self.first: Table | None = None

    def written(self, own: Table) -> Table:
        if self.first is None:
            self.first = deepcopy(own)
        return self.first


class TrueFirstTable(FirstTable, CopyGold):
    """Keeps the true state of the first step, in the form that is scored."""

    def written(self, own: Table) -> Table:
        return super().written(own | self.true_table())


class NeverActs(Constant):
    """Writes nothing or one table, and proposes what does nothing."""

    acts = False


class NeverActsFirst(FirstTable):
    """Keeps the table that it wrote first, and proposes what does nothing."""

    acts = False


class KnowsAll(Constant, CopyGold):
    """Writes the true state at every step, outputs by their values."""

    def written(self, own: Table) -> Table:
        return own | {"tool_outputs": dict(self.state.get_gold_state()["tool_outputs"])}


AGENTS: dict[str, type[Constant]] = {
    "first-table": FirstTable,
    "true-first-table": TrueFirstTable,
    "best-constant": Constant,
    "all-done": Constant,
    "never-acts": NeverActs,
    "never-acts-first": NeverActsFirst,
    "never-acts-best": NeverActs,
    "knows-all": KnowsAll,
}
ON_TOOLS = {"all-done", "knows-all"}


class States:
    """Takes the place of the file of steps; keeps the true state that each step's table is scored against."""

    seen: ClassVar[list[Table]] = []

    def __init__(self, _: Any) -> None:
        States.seen = []

    def __enter__(self) -> States:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def write(self, row: dict[str, Any]) -> None:
        """Keep a copy: the public environment hands out lists that it goes on changing."""
        States.seen.append(deepcopy(row["gold_state"]))


def slots(world: str, gold: Table) -> Table:
    """What a table is compared with, slot by slot, as the public environments score it."""
    if world == "tooldag":
        return {
            "completed_subgoals": gold["completed_tools"],
            "tool_outputs": dict.fromkeys(gold["available_variables"], True),
            "open_dependencies": [tool for tool in gold["tools"] if tool not in gold["completed_tools"]],
        }
    if world == "objectstate":
        own = ("inventory", "object_locations", "door_states", "completed_subgoals")
        return {"current_location": gold["agent_location"]} | {name: gold[name] for name in own}
    return {
        "current_location": gold["agent_node"],
        "inventory": gold["inventory"],
        "door_states": {name: "locked" if edge["locked"] else "open" for name, edge in gold["edges"].items()},
        "object_locations": gold["key_locations"],
    }


def best_table(world: str, episodes: Iterable[list[Table]], overlap: Callable[[Any, Any], float]) -> Table:
    """The table that never changes with the highest mean score on some episodes, slot by slot.

    Args:
        world: whose slots.
        episodes: the true states that the steps of each were scored against.
        overlap: how the public code compares a slot (`flat_overlap`).
    """
    values: dict[str, list[tuple[Any, float]]] = defaultdict(list)
    for states in episodes:
        for gold in states:
            for name, value in slots(world, gold).items():
                values[name].append((value, 1 / len(states)))
    return {name: best_slot(own, overlap) for name, own in values.items()}


def best_slot(values: list[tuple[Any, float]], overlap: Callable[[Any, Any], float]) -> Any:
    """The value of a slot with the highest weighted mean overlap with the true ones, (value, weight) each."""
    kind = type(values[0][0])
    if kind is dict:  # each entry by itself: one that the truth does not have costs nothing
        entries: dict[str, list[tuple[Any, float]]] = defaultdict(list)
        for own, weight in values:
            for name, value in own.items():
                entries[name].append((value, weight / len(own)))
        return {name: best_slot(own, overlap) for name, own in sorted(entries.items())}
    if kind is not list:
        sums: dict[Any, float] = defaultdict(float)
        for value, weight in values:
            sums[value] += weight
        return max(sorted(sums, key=str), key=sums.__getitem__)
    sets: dict[tuple[str, ...], float] = defaultdict(float)
    for own, weight in values:
        sets[tuple(sorted(own))] += weight
    items = sorted({item for own in sets for item in own})

    def mean(listed: Iterable[str]) -> float:
        return sum(weight * overlap(list(listed), list(own)) for own, weight in sets.items())

    if len(items) <= MOST_ITEMS:
        every = chain.from_iterable(combinations(items, count) for count in range(len(items) + 1))
        return list(max(every, key=mean))
    return sorted(max((climbed(set(start), items, mean) for start in ((), items)), key=mean))


def climbed(listed: set[str], items: list[str], mean: Callable[[Iterable[str]], float]) -> set[str]:
    """A list that taking one item in or out does not improve, reached from the one given."""
    best, before = mean(listed), None
    while best != before:
        before = best
        for item in items:
            if (found := mean(listed ^ {item})) > best + 1e-12:
                best, listed = found, listed ^ {item}
    return listed


def all_done(regime: str) -> Table:
    """Every tool is completed, every output is there, and every tool is still open."""
    tools = [f"t_{number}" for number in range(TOOLS[regime])]
    outputs = {f"v_{number}": True for number in range(TOOLS[regime])}
    return {"completed_subgoals": tools, "tool_outputs": outputs, "open_dependencies": tools}


def play(
    folder: str, world: str, regime: str, kind: type[Constant], policy: str, seed: int
) -> dict[str, Any]:
    """Run one episode of the public code; `States.seen` then holds its true states."""
    sys.path.insert(0, folder)
    from src.environments import make_environment
    from src.scripts import run_main

    def made(name: str) -> Any:
        kind.state = make_environment(name)
        return kind.state

    run_main.make_environment, run_main.LLMAgent = made, kind
    run_main.LLMClient, run_main.JsonlLogger = (lambda **_: None), States
    kind.random = random.Random(f"scribe {world} {regime} {seed}")  # the scribe's own luck
    cell = run_main.CellSpec("cell", WORLDS[world], regime, POLICIES[policy], 1, [seed], "fixture")
    found = run_main.run_one_episode(cell, seed, "stub", Path("steps"), Path(folder) / "errors.jsonl")
    sys.path.remove(folder)
    return found


@cache
def learned(folder: str, world: str, regime: str, policy: str, acts: bool) -> Table:
    """The best table of episodes with other seeds, in which the agent acts as the scribe or never."""
    kind = type("Learning", (Constant,), {"acts": acts})
    sys.path.insert(0, folder)
    from src.environments.base import flat_overlap

    sys.path.remove(folder)
    seen = []
    for seed in LEARNED:
        play(folder, world, regime, kind, policy, seed)
        seen.append(States.seen)
    return best_table(world, seen, flat_overlap)


def episodes(folder: str, world: str, regime: str, agent: str, policy: str, seeds: range) -> list[tuple]:
    """Run one cell of the public code."""
    kind = AGENTS[agent]
    kind.table = EMPTY
    if agent == "all-done":
        kind.table = all_done(regime)
    elif agent.endswith(("-constant", "-best")):
        kind.table = learned(folder, world, regime, policy, kind.acts)
    found = (play(folder, world, regime, kind, policy, seed) for seed in seeds)
    return [
        (world, regime, agent, policy, seed, *measured(one)) for seed, one in zip(seeds, found, strict=True)
    ]


def main() -> None:
    """Run every cell and write `constant.parquet` beside this file."""
    given = arguments(__doc__, "42:262", HERE / "constant.parquet")
    cells = [one for one in product(WORLDS, ["S2"], AGENTS, POLICIES) if not ON_TOOLS & {*one}]
    cells += product(["tooldag"], TOOLS, ["all-done"], POLICIES)
    cells += product(["tooldag"], ["S2"], ["knows-all"], POLICIES)
    run_what_is_missing(episodes, cells, given, COLUMNS)


if __name__ == "__main__":
    main()
