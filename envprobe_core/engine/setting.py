"""A cell of the experiment as the engine's numbers, and room for its episodes."""

from __future__ import annotations

from typing import Any, get_type_hints

import numpy as np

from envprobe_core.agents import simulated as agent
from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.cells import Cell
from envprobe_core.engine import loop, records, scoring
from envprobe_core.engine.noise import level16, level32
from envprobe_core.engine.records import NONE, WAIT
from envprobe_core.policies import Policy, rules
from envprobe_core.protocols import Protocol
from envprobe_core.worlds import MODULES, RULES, World, make_world

EPISODES: dict[str, np.dtype] = {
    name: records.episode(module.TASK, module.STATE, module.MIND) for name, module in MODULES.items()
}
SETTINGS: dict[str, np.dtype] = {
    name: records.record(
        ("world", kind),
        ("protocol", records.numbers(loop.Switches)),
        ("habits", records.numbers(agent.Habits)),
        ("policy", records.numbers(rules.PolicyInForce)),
        ("scoring", records.numbers(scoring.Scoring)),
    )
    for name, kind in RULES.items()
}
LEARNED = -1.0  # as a rate that VoI is told


def setting_of(cell: Cell, *, scores_all: bool = False, world: World | None = None) -> Any:
    """Put a cell into the engine's numbers.

    Args:
        cell: the cell.
        scores_all: whether the highest score is wanted also where the budget is spent, as logs hold it.
        world: a world other than that of the cell's regime and protocol, as a smaller one.
    """
    built = make_world(cell.world, cell.regime, cell.protocol) if world is None else world
    values = (
        built.rules,
        loop_switches(cell, scores_all),
        habits_of(cell.profile),
        policy_of(cell.policy, cell.protocol, cell.budget_in_force, cell.threshold_in_force, built),
        scoring_of(cell.profile, cell.protocol),
    )
    return records.filled(SETTINGS[cell.world], values)


def loop_switches(cell: Cell, scores_all: bool) -> loop.Switches:
    """Return the switches that act in the loop."""
    protocol = cell.protocol
    return loop.Switches(
        cell.regime.horizon,
        protocol.start == "gold",
        protocol.answer == "delivered",
        protocol.clock == "runs",
        protocol.end == "success",
        cell.regime.observation == "distractor",
        protocol.structure == "reported",
        protocol.memory == "none",
        protocol.useful == "released",
        scores_all,
    )


def habits_of(profile: AgentProfile) -> agent.Habits:
    """Return a profile with its probabilities as levels of draws."""

    def number(name: str, kind: type) -> Any:
        value = getattr(profile, name)
        if kind is np.uint64:
            return level32(value)
        return level16(value) if name in agent.QUARTERS else value

    return agent.Habits(*(number(name, kind) for name, kind in get_type_hints(agent.Habits).items()))


def policy_of(
    policy: Policy, protocol: Protocol, budget: int, threshold: float, world: World
) -> rules.PolicyInForce:
    """Return a policy's rules and what is in force for them."""
    return rules.PolicyInForce(
        policy.rule,
        policy.selector or policy.rule,
        policy.selector is None,
        policy.answered,
        protocol.baselines == "released",
        protocol.oracle == "report",
        policy.remembers,
        float(world.rates.max()) if policy.given else LEARNED,
        budget,
        float(threshold),
    )


def scoring_of(profile: AgentProfile, protocol: Protocol) -> scoring.Scoring:
    """Return the switches that act on a recorded episode."""
    return scoring.Scoring(
        protocol.accuracy == "slots",
        protocol.pairing == "lagged",
        protocol.onset == "two-below",
        protocol.encoding == "meaning" or profile.writes == "true",
        profile.keeps_open or profile.copies_gold,
        profile.scribe and not profile.copies_gold,
        profile.lists_all,
        protocol.actions == "two-invalid",
    )


def room_for_episodes(world: str, rows: int) -> Any:
    """Make a block of empty episodes, [row]."""
    return records.new(EPISODES[world], rows)


def room_for_logs(horizon: int, rows: int) -> Any:
    """Make empty logs, [row, time]; what an episode does not reach stays without action, probe and score."""
    logs = records.new(records.ENTRY, rows, horizon + 1)
    logs["action"], logs["probe"], logs["score"] = WAIT, NONE, np.nan
    return logs
