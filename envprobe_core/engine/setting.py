"""A cell of the experiment as the engine's numbers, and room for its episodes."""

from __future__ import annotations

from typing import Any

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
        loop_switches(cell.protocol, cell.regime.horizon, scores_all),
        habits_of(cell.profile, cell.protocol, cell.regime.observation == "distractor"),
        policy_of(cell.policy, cell.protocol, cell.budget_in_force, cell.threshold_in_force, built),
        scoring_of(cell.profile, cell.protocol),
    )
    return records.filled(SETTINGS[cell.world], values)


def loop_switches(protocol: Protocol, horizon: int, scores_all: bool) -> loop.Switches:
    """Return the switches that act in the loop."""
    return loop.Switches(
        horizon,
        protocol.start == "gold",
        protocol.answer == "delivered",
        protocol.clock == "runs",
        protocol.end == "success",
        protocol.structure == "reported",
        protocol.memory == "none",
        protocol.useful == "released",
        scores_all,
    )


def habits_of(profile: AgentProfile, protocol: Protocol, distracted: bool) -> agent.Habits:
    """Return a profile with its probabilities as levels of draws."""
    return agent.Habits(
        level16(profile.omit),
        level16(profile.hedge),
        level16(profile.misreport),
        level32(profile.overwrite),
        level32(profile.slip),
        level32(profile.quit),
        profile.confidence,
        profile.spread,
        profile.fade,
        profile.single_report,
        distracted,
        protocol.structure == "reported",
        profile.scribe,
        profile.copies_gold,
        level32(profile.lost),
        level32(profile.loop),
        level32(profile.critical),
        level32(profile.risky),
        level32(profile.names_goal),
        level32(profile.asks),
    )


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
