"""Drives the paper's public code with stub agents in the language model's place, and keeps a row an episode.

    git clone https://github.com/Hik289/Environment-reduce-error DIR && git -C DIR checkout 3266b54
    .venv/bin/python data/public/drive.py DIR --seeds 42:1042

The public code runs unmodified, by its own function for an episode; only the class that asks a language model
is replaced, and the file that it writes steps to is replaced by a count of what the steps hold. Its
Random-Probe seeds its generator with nothing, so that rows of `random` differ from run to run; others do not.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd

HERE = Path(__file__).parent
WORLDS = {"tooldag": "ToolDAGWorld", "objectstate": "ObjectStateWorld", "graphnav": "GraphNavWorld"}
POLICIES = {
    "no-probe": "no_probe",
    "random": "random_probe",
    "periodic": "periodic_probe",
    "simple": "envprobe_simple",
    "oracle": "oracle_probe",
}
PRIMARY = {
    "self-uncertainty": "self_uncertainty_probe",
    "cd": "envprobe_simple_cd",
    "minus-c": "envprobe_simple_minus_c",
    "minus-s": "envprobe_simple_minus_s",
    "minus-u": "envprobe_simple_minus_u",
    "minus-d": "envprobe_simple_minus_d",
}
"""Policies that run in S2 alone, the regime of the paper's tables."""
REGIMES = ("S1", "S2", "S3")
LOST, LOOP = 0.3, 0.2  # of the scribe
CRITICAL, RISKY, NAMES_GOAL, ASKS = 0.92, 0.5, 0.4, 0.3  # of its hesitant variant
FAILURE_MEMORY = 5  # steps
COLUMNS = (
    "world", "regime", "agent", "policy", "seed", "steps", "accuracy", "success", "collapse_onset",
    "action_onset", "probes", "useful", "confident", "confident_wrong", "low_steps", "low_consistent",
)  # fmt: skip


def belief(content: str, **fields: Any) -> dict[str, Any]:
    """Return the one belief that an agent reports."""
    return {
        "id": "b1", "content": content, "type": "other", "source_step": 0, "last_verified_step": 0,
        "used_by_next_action": True, "required_for": ["next"], "criticality": "high", "staleness": 0,
        "confidence": 0.9,
    } | fields  # fmt: skip


EMPTY = {
    "current_location": None, "inventory": [], "object_locations": {}, "door_states": {}, "tool_outputs": {},
    "completed_subgoals": [], "open_dependencies": [],
}  # fmt: skip
"""The table of what an agent believes, as the public code wants it, of one that believes nothing."""


def report(table: dict[str, Any], content: str, action: str, risk: str, **fields: Any) -> dict[str, Any]:
    """Return what the public code takes for a language model's answer, with one belief of these fields."""
    return {
        "belief_world_state": EMPTY | table,
        "beliefs": [belief(content, **fields)],
        "next_decision": {"type": "act", "action": action, "target_belief": "b1"},
        "self_check": {
            "is_current_world_state_consistent": True, "missing_preconditions": [], "risk_level": risk,
        },
    }  # fmt: skip


class Agent:
    """Stands where the public code has its language model; `state` is the world, for those who copy it."""

    state: Any = None
    random: random.Random

    def __init__(self, *_: Any, **__: Any) -> None:
        self.tried: list[tuple[str, bool]] = []  # own last task actions and whether each was valid

    def reset(self, env_name: str, task_description: str) -> None:
        self.name = env_name

    def step(self, observation: dict[str, Any], history: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        """Answer as the language model would, with what the observation and the last five actions say."""
        self.seen = observation
        self.tried = [(row["action"], bool(row["valid"])) for row in history[-5:] if row["type"] == "act"]
        table, action, content = getattr(self, self.name)()
        return report(table, content, action, "low")

    def failed(self, action: str) -> bool:
        """Whether an action failed among the last five."""
        return (action, False) in self.tried


class Scribe(Agent):
    """Copies what is in view, keeps nothing, and never sees a probe's answer."""

    loop = LOOP

    def ToolDAGWorld(self) -> tuple[dict[str, Any], str, str]:
        seen, gold = self.seen, self.state.get_gold_state()  # of gold the names of the tools alone
        target = len(gold["tools"]) - 1
        open_tools = [i for i in range(target + 1) if f"t_{i}" not in seen["completed_tools"]]
        if self.random.random() < self.loop and self.tried:
            action = self.tried[-1][0]
        elif self.random.random() < LOST and open_tools:
            action = f"call_tool(t_{self.random.choice(open_tools)})"
        else:
            action = f"call_tool(t_{min(open_tools, default=target)})"
        table = {
            "completed_subgoals": seen["completed_tools"],
            "tool_outputs": seen["tool_outputs_visible"],
            "open_dependencies": [f"t_{target}"],
        }
        return table, action, f"need v_{target} by {action}"

    def ObjectStateWorld(self) -> tuple[dict[str, Any], str, str]:
        seen = self.seen
        goal = seen["goal_hint"].split("'")[1]
        here, rooms = int(seen["current_location"].split("_")[1]), len(self.state.get_gold_state()["rooms"])
        keys = [item for item in seen["objects_in_view"] if item.endswith("_key")]
        ahead, back, door = (
            f"move_to(room_{here + 1})",
            f"move_to(room_{here - 1})",
            f"unlock(door_{here + 1})",
        )
        if goal in seen["objects_in_view"]:
            action = f"pick_up({goal})"
        elif keys:
            action = f"pick_up({keys[0]})"
        elif self.random.random() < self.loop and self.tried:
            action = self.tried[-1][0]
        elif self.random.random() < LOST:
            action = f"move_to(room_{self.random.randrange(rooms)})"
        elif here + 1 < rooms and not self.failed(ahead):
            action = ahead
        elif here + 1 < rooms and door not in [tried for tried, _ in self.tried]:
            action = door
        elif here > 0:
            action = back
        else:
            action = ahead
        table = {
            "current_location": seen["current_location"],
            "inventory": seen["inventory"],
            "object_locations": dict.fromkeys(seen["objects_in_view"], seen["current_location"]),
        }
        return table, action, f"where the {goal} is"

    def GraphNavWorld(self) -> tuple[dict[str, Any], str, str]:
        seen = self.seen
        number = {node: int(node.split("_")[1]) for node in seen["neighbors"] if "fake" not in node}
        to_target = f"move_to({seen['target_node']})"
        fresh = [node for node in number if not self.failed(f"move_to({node})")]
        if seen["target_node"] in seen["neighbors"] and not self.failed(to_target):
            action = to_target
        elif seen["keys_in_view"]:
            action = f"collect_key({seen['keys_in_view'][0]})"
        elif self.random.random() < self.loop and self.tried:
            action = self.tried[-1][0]
        elif self.random.random() < LOST and number:
            action = f"move_to({self.random.choice(sorted(number))})"
        else:
            action = f"move_to({max(fresh or number, key=number.get, default='n_0')})"
        table = {
            "current_location": seen["current_node"],
            "inventory": seen["inventory"],
            "object_locations": dict.fromkeys(seen["keys_in_view"], seen["current_node"]),
        }
        return table, action, f"from {seen['current_node']} by {action}"


class Hesitant(Scribe):
    """The scribe that proposes probes itself, doubts, and calls every tool open until one is completed."""

    loop = 0.35

    def step(self, observation: dict[str, Any], history: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        self.names_goal = self.random.random() < NAMES_GOAL
        asks = self.random.random() < ASKS and not more["probe_force_act"]
        answer = super().step(observation, history)
        if self.random.random() >= CRITICAL:
            answer["beliefs"][0]["criticality"] = "medium"
        if self.random.random() < RISKY:
            answer["self_check"]["risk_level"] = "medium"
        if asks:
            probe = self.own_probe()
            answer["next_decision"] |= {"type": "probe", "action": probe}
            if self.name != "ObjectStateWorld":  # the text names what is proposed
                content = answer["beliefs"][0]["content"]
                answer["beliefs"][0]["content"] = f"{content.partition(' by ')[0]} by {probe}"
        return answer

    def own_probe(self) -> str:
        """Ask what a policy would make of the text."""
        seen = self.seen
        if self.name == "ToolDAGWorld":
            return f"check_variable_exists({seen['target_variable']})"
        if self.name == "GraphNavWorld":
            return f"inspect_neighbors({seen['current_node']})"
        goal = seen["goal_hint"].split("'")[1]
        return f"check_location({goal})" if self.names_goal else "check_current_position()"

    def ToolDAGWorld(self) -> tuple[dict[str, Any], str, str]:
        table, action, content = super().ToolDAGWorld()
        if not self.seen["completed_tools"]:
            table["open_dependencies"] = list(self.state.get_gold_state()["tools"])  # their names
        return table, action, content

    def ObjectStateWorld(self) -> tuple[dict[str, Any], str, str]:
        table, action, content = super().ObjectStateWorld()
        return table, action, content if self.names_goal else f"in {self.seen['current_location']}"


class CopyGold(Scribe):
    """Acts as the scribe, and writes down the true state in the form that is scored."""

    def step(self, observation: dict[str, Any], history: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        answer = super().step(observation, history, **more)
        answer["belief_world_state"] |= self.true_table()
        return answer

    def true_table(self) -> dict[str, Any]:
        gold = self.state.get_gold_state()
        if self.name == "ToolDAGWorld":
            return {
                "completed_subgoals": list(gold["completed_tools"]),
                "tool_outputs": {name: True for name in gold["available_variables"]},
                "open_dependencies": [t for t in gold["tools"] if t not in gold["completed_tools"]],
            }
        if self.name == "ObjectStateWorld":
            return {
                "current_location": gold["agent_location"],
                "inventory": list(gold["inventory"]),
                "object_locations": dict(gold["object_locations"]),
                "door_states": dict(gold["door_states"]),
                "completed_subgoals": list(gold["completed_subgoals"]),
            }
        return {
            "current_location": gold["agent_node"],
            "inventory": list(gold["inventory"]),
            "object_locations": dict(gold["key_locations"]),
            "door_states": {
                name: "locked" if edge["locked"] else "open" for name, edge in gold["edges"].items()
            },
        }


class Scripted(Scribe):
    """Never lost and never in a loop: the scribe's plan without its two rates."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()
        self.random = Never()


class Never(random.Random):
    """Draws nothing that is below a rate."""

    def random(self) -> float:
        return 1.0


AGENTS = {"scribe": Scribe, "copy-gold": CopyGold, "scripted": Scripted}
IN_S2 = {"scribe-hesitant": Hesitant}
"""Agents that run in S2 alone, with the policies that run everywhere."""


class Count:
    """Takes the place of the file of steps; counts what the public estimators read from it."""

    def __init__(self, _: Any) -> None:
        Count.last = self
        self.confident = self.confident_wrong = self.low_steps = self.low_consistent = 0

    def __enter__(self) -> Count:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def write(self, row: dict[str, Any]) -> None:
        """Count confident beliefs and wrong ones among them, and low steps that report consistency."""
        wrong = {found["id"]: found["delta_i"] for found in row.get("oracle_delta_per_belief") or []}
        for held in row["belief_table"] if wrong else []:
            if float(held["confidence"]) >= 0.7 and held["id"] in wrong:
                self.confident += 1
                self.confident_wrong += wrong[held["id"]] > 0
        if row["world_state_accuracy"] < 0.6:
            self.low_steps += 1
            self.low_consistent += bool(row["self_check_reported"])


def measured(found: dict[str, Any]) -> tuple:
    """What the public code says of an episode, in the order of `COLUMNS` from `steps` to `useful`."""
    own = found["episode_metrics"]
    return (
        own["n_steps"], own["world_state_accuracy"], own["task_success"], own["collapse_onset"],
        own["action_collapse_onset"], found["probes_used"], found["useful_probe_count"],
    )  # fmt: skip


def episodes(folder: str, world: str, regime: str, agent: str, policy: str, seeds: range) -> list[tuple]:
    """Run one cell of the public code."""
    sys.path.insert(0, folder)
    from src.environments import make_environment
    from src.scripts import run_main

    def made(name: str) -> Any:
        kind.state = make_environment(name)
        return kind.state

    kind = (AGENTS | IN_S2)[agent]
    run_main.make_environment, run_main.LLMAgent = made, kind
    run_main.LLMClient, run_main.JsonlLogger = (lambda **_: None), Count
    rows = []
    for seed in seeds:
        kind.random = random.Random(f"{agent} {world} {regime} {seed}")
        cell = run_main.CellSpec(
            "cell", WORLDS[world], regime, (POLICIES | PRIMARY)[policy], 1, [seed], "fixture"
        )
        found = run_main.run_one_episode(cell, seed, "stub", Path("steps"), Path(folder) / "errors.jsonl")
        count = Count.last
        seen = (count.confident, count.confident_wrong, count.low_steps, count.low_consistent)
        rows.append((world, regime, agent, policy, seed, *measured(found), *seen))
    return rows


def arguments(description: str, seeds: str, out: Path) -> argparse.Namespace:
    """What the command line gives: `folder`, `seeds` as a range, `jobs` and `out`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", help="a checkout of the public code")
    parser.add_argument("--seeds", default=seeds, type=lambda text: range(*map(int, text.split(":"))))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=out)
    return parser.parse_args()


def run_cells(
    episodes: Callable[..., list[tuple]], cells: list[tuple], given: argparse.Namespace
) -> list[tuple]:
    """The rows of all cells in their order, each run in a process of its own."""
    rows: list[tuple] = []
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(episodes, given.folder, *cell, given.seeds) for cell in cells]
        for cell, done in zip(cells, waiting, strict=True):
            rows += done.result()
            print(*cell, flush=True)
    return rows


def run_what_is_missing(
    episodes: Callable[..., list[tuple]],
    cells: list[tuple],
    given: argparse.Namespace,
    columns: Sequence[str],
) -> None:
    """Run the cells whose rows are not in the file yet, and write it with theirs behind.

    The first columns name a cell, as many as it has parts.
    """
    kept = pd.read_parquet(given.out) if given.out.exists() else pd.DataFrame(columns=columns)
    there = set(kept[list(columns[: len(cells[0])])].itertuples(index=False, name=None))
    rows = run_cells(episodes, [cell for cell in cells if cell not in there], given)
    found = pd.DataFrame(rows, columns=columns)
    frame = pd.concat([kept, found]) if len(kept) else found
    frame.to_parquet(given.out, compression="zstd", index=False)


def main() -> None:
    """Run every cell and write `episodes.parquet` beside this file."""
    given = arguments(__doc__, "42:1042", HERE / "episodes.parquet")
    cells = [
        *product(WORLDS, REGIMES, AGENTS, POLICIES),
        *product(WORLDS, ["S2"], AGENTS, PRIMARY),
        *product(WORLDS, ["S2"], IN_S2, POLICIES),
    ]
    run_what_is_missing(episodes, cells, given, COLUMNS)


if __name__ == "__main__":
    main()
