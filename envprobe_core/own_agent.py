"""A reader's own agent: a class with two methods, run like the paper's on the same seeds.

The worlds, their mutations and noise are drawn by seed alone, so that a frame of `run_agent` can be compared
with one of `run`, episode by episode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from envprobe_core.agents.profiles import PROFILES, AgentProfile
from envprobe_core.algorithm1 import play_episode
from envprobe_core.conditions import (
    Condition,
    Names,
    Seeds,
    find_policies,
    find_protocols,
    find_regime,
    find_worlds,
    names,
    read_seeds,
)
from envprobe_core.engine.batch import Columns, Trajectory
from envprobe_core.environment import Agent, Environment, NamedPolicy
from envprobe_core.errors import LONGEST, InputError
from envprobe_core.experiment import episode_frame, run_conditions
from envprobe_core.policies import POLICIES, Policy
from envprobe_core.worlds import WORLDS

METHODS = ("update", "propose")
MakeAgent = Callable[[Environment], Agent]


def run_agent(
    make_agent: MakeAgent,
    worlds: Names = tuple(WORLDS),
    policies: Names | Sequence[str | Policy] = ("no-probe", "simple"),
    regimes: Names = "S2",
    protocols: Names = "paper",
    seeds: str = "default",
    name: str = "",
) -> pd.DataFrame:
    """The frame of `run` for an agent of the reader's own: one row an episode.

    >>> class LastSeen:
    ...     '''Believes what it saw last, and goes through its actions in turn.'''
    ...
    ...     def __init__(self, environment):
    ...         self.actions = environment.world.actions
    ...
    ...     def update(self, observation):
    ...         self.step, belief = observation.step, observation.belief
    ...         for field, value in observation.seen.items():
    ...             belief.value[field], belief.staleness[field], belief.confidence[field] = value, 0, 90
    ...         return belief
    ...
    ...     def propose(self):
    ...         return self.step % self.actions
    >>> frame = run_agent(LastSeen, worlds="tooldag", policies="no-probe simple", seeds="0:20")
    >>> frame.groupby("policy").probes.mean().to_dict()
    {'no-probe': 0.0, 'simple': 7.0}

    Args:
        make_agent: the class, or a function, that gives a new agent for an environment; it is called before
            each episode begins, and no agent is used twice.
        worlds: names, as text or a sequence; so for the next three.
        policies: names, or policies made by `custom_policy`.
        regimes: names.
        protocols: names, with or without switches turned.
        seeds: `FIRST:PAST`, or `default` for each condition's own.
        name: what the column `profile` calls the agent; by default the class's own name.

    Raises:
        InputError: for an unknown name, or what an agent returns that is no belief or no action.
    """
    if not callable(make_agent):
        raise InputError(f"make_agent {str(make_agent)[:LONGEST]!r}: accepted is a class, or a function")
    called = name or getattr(make_agent, "__name__", type(make_agent).__name__)
    if called in PROFILES:
        raise InputError(f"agent name {called!r} is that of a profile; taken: {', '.join(PROFILES)}")
    profile = AgentProfile(called, assumption="An agent of a reader's own: its errors are its own.")
    conditions = [
        Condition(world, policy, regime, protocol, profile)
        for protocol in find_protocols(protocols)
        for regime in map(find_regime, names(regimes))
        for world in find_worlds(worlds)
        for policy in find_policies(policies)
    ]
    return episode_frame(
        conditions, run_conditions(conditions, read_seeds(seeds), work=partial(_measure, make_agent))
    )


def _measure(make_agent: MakeAgent, condition: Condition, seeds: Seeds) -> Columns:
    played = [play_own(make_agent, condition, int(seed)) for seed in seeds]
    return Trajectory.joined(played).measures


def play_own(make_agent: MakeAgent, condition: Condition, seed: int) -> Trajectory:
    """The recording of one episode of a condition with an agent of one's own, one row.

    A policy that replays another repeats what that one did with this agent.
    """
    schedule = None
    if condition.policy.replays is not None:
        original = play_own(make_agent, replace(condition, policy=POLICIES[condition.policy.replays]), seed)
        schedule = original.probe[0].astype(np.int64)
    environment = Environment(condition, schedule=schedule)
    agent = make_agent(environment)
    if missing := [name for name in METHODS if not callable(getattr(agent, name, None))]:
        raise InputError(
            f"agent {str(agent)[:LONGEST]!r} has no method {missing[0]}; needed: {', '.join(METHODS)}"
        )
    return play_episode(environment, agent, NamedPolicy(environment), seed)
