"""One rollout for every policy, protocol and agent: Algorithm 1, on a block of episodes, without I/O.

`rollout` is a generator: it yields what it wants to know from its agent and is resumed with the answer.
A driver runs it: `drive` answers from an agent that works on whole blocks.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core import noise
from envprobe_core.agents.base import Agent, Reply, Request
from envprobe_core.belief import BeliefTable
from envprobe_core.noise import Stream
from envprobe_core.policies import Policy, View
from envprobe_core.trajectory import Recorder, Trajectory
from envprobe_core.worlds.base import NO_ACTION, Floats, Ints, Mask, World

NOT_PROBED = -1


@dataclass(frozen=True)
class Arm:
    """A run of neighbouring rows of a block that share their policy."""

    policy: Policy
    rows: slice


@dataclass(frozen=True)
class Block:
    """A block of episodes of one world, regime and protocol.

    Attributes:
        world: the world, built for its regime and protocol.
        seeds: [row].
        arms: the policies and their rows, in order, covering all rows.
        budget: [row], at least 0.
        threshold: [row], already scaled.
        schedule: [row, step], for replayed policies the field to probe or -1; None if there are none.
    """

    world: World
    seeds: npt.NDArray[np.int64]
    arms: Sequence[Arm]
    budget: Ints
    threshold: Floats
    schedule: Ints | None = None


def rollout(block: Block, instance: Any, *, reports: bool = True) -> Generator[Request, Reply, Trajectory]:
    """Run a block of episodes; yields Requests, takes Replies, returns the recorded trajectory.

    Args:
        block: what to run.
        instance: the instance of every row.
        reports: whether to record staleness and confidence too (logs need them, scores do not).
    """
    world, protocol = block.world, block.world.protocol
    horizon, rows = world.regime.horizon, len(block.seeds)
    seeds, seed_of_row = np.unique(block.seeds, return_inverse=True)
    exogenous = noise.keys(seeds, world.code, Stream.MUTATION)
    visibility = noise.keys(block.seeds, world.code, Stream.VISIBLE)
    chance = noise.keys(block.seeds, world.code, Stream.PROBE)
    exposed = world.exposed
    clock_runs, delivers = protocol.clock == "runs", protocol.answer == "delivered"
    # one draw for all rows that share a seed, [tick * seeds + seed, field]
    changes = np.concatenate([noise.words(exogenous, tick, exposed) for tick in range(horizon)])
    everyone, nobody = np.ones(rows, dtype=bool), np.zeros(rows, dtype=bool)
    answered = by_arm(block.arms, rows, lambda policy: policy.answered) & delivers

    weights = world.weights(instance.map)
    criticality = weights / weights.max(axis=1, keepdims=True)
    state = world.start(instance)
    gold = world.gold(instance, state)
    place = world.place(state)
    tick: int | Ints = 0 if clock_runs else np.zeros(rows, dtype=np.int64)
    action, valid = np.full(rows, NO_ACTION), nobody
    observation = world.observe(
        instance, state, gold, draws_at(visibility, tick), action, valid, place, everyone
    )
    table = BeliefTable.known(gold, everyone[:, None] if protocol.start == "gold" else observation.seen)
    used = np.zeros(rows, dtype=np.int64)
    told = np.full(rows, NOT_PROBED)
    recorder = Recorder(rows, horizon, world.fields, reports)

    for t in range(horizon + 1):
        reply = yield Request(t, table, observation, told)
        recorder.state(t, table, gold, place, world.succeeded(instance, state))
        if t == horizon or (protocol.end == "success" and recorder.all_ended):
            break

        c = criticality if reply.criticality is None else reply.criticality
        d = world.roles(instance.map, place, reply.action) if reply.dependency is None else reply.dependency
        probes, target, rho = decide(
            block, t, table, c, d, reply, used, noise.word(chance, t, 0), gold, weights
        )
        answer = gold[np.arange(rows), target]
        useful = probes & (answer != table.value[np.arange(rows), target])
        used = used + probes

        table.age()
        repaired = np.flatnonzero(probes & answered)
        table.repair(repaired, target[repaired], answer[repaired])
        told = np.where(probes & answered, target, NOT_PROBED)

        acting = np.where(probes, NO_ACTION, reply.action)
        state, worked = world.act(instance, state, acting)
        moving = everyone if clock_runs else ~probes
        state = world.mutate(instance, state, changes.take(tick * len(seeds) + seed_of_row, axis=0), moving)
        tick = tick + 1 if clock_runs else tick + moving
        recorder.decision(t, reply.action, probes, target, answer, useful, worked, rho)

        gold = world.gold(instance, state)
        action = np.where(moving, acting, action)
        valid = np.where(moving, worked, valid)
        came_from = np.where(moving, place, observation.came_from)
        place = world.place(state)
        observation = world.observe(
            instance, state, gold, draws_at(visibility, tick), action, valid, came_from, moving
        )
    return recorder.finish(protocol)


def decide(
    block: Block,
    t: int,
    table: BeliefTable,
    c: Floats,
    d: Floats,
    reply: Reply,
    used: Ints,
    draws: npt.NDArray[np.uint64],
    gold: npt.NDArray[np.int8],
    weights: Floats,
) -> tuple[Mask, Ints, Floats]:
    """Ask every arm's policy for its decision and enforce the budget.

    Returns:
        [row] whether it probes, [row] which field, [row] the highest score (NaN where a policy has none).
    """
    rows = len(used)
    if block.world.protocol.structure == "reported":
        table = table.reported()
    probes = np.zeros(rows, dtype=bool)
    target = np.zeros(rows, dtype=np.int64)
    rho = np.full(rows, np.nan)
    silent = np.full(rows, NOT_PROBED)
    schedule = silent if block.schedule is None else block.schedule[:, t]
    for arm in block.arms:
        part, sees_gold = arm.rows, arm.policy.sees_gold
        view = View(
            step=t,
            horizon=block.world.regime.horizon,
            value=table.value[part],
            staleness=table.staleness[part],
            confidence=table.confidence[part],
            c=c[part],
            d=d[part],
            action=reply.action[part],
            risk=reply.risk[part],
            budget=block.budget[part],
            used=used[part],
            threshold=block.threshold[part],
            draws=draws[part],
            schedule=schedule[part],
            protocol=block.world.protocol,
            gold=gold[part] if sees_gold else None,
            weights=weights[part] if sees_gold else None,
        )
        decision = arm.policy.rule(view)
        probes[part] = decision.probe & (used[part] < block.budget[part])
        target[part] = decision.field
        if decision.score is not None:
            rho[part] = decision.score
    return probes, target, rho


def drive(episode: Generator[Request, Reply, Trajectory], agent: Agent) -> Trajectory:
    """Run a rollout with an agent that answers for all rows at once."""
    request = next(episode)
    while True:
        try:
            request = episode.send(agent.answer(request))
        except StopIteration as finished:
            return finished.value


def by_arm(arms: Sequence[Arm], rows: int, value: Any) -> Mask:
    """Spread a property of the policies over the rows, [row]."""
    spread = np.zeros(rows, dtype=bool)
    for arm in arms:
        spread[arm.rows] = value(arm.policy)
    return spread


def draws_at(key: npt.NDArray[np.uint64], tick: int | Ints) -> npt.NDArray[np.uint64]:
    """Draw one word a row at the world tick."""
    return noise.word(key, tick, 0) if isinstance(tick, int) else noise.words(key, tick, 1)[:, 0]
