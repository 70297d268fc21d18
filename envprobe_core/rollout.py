"""One rollout for every policy, protocol and agent: Algorithm 1, on a block of episodes, without I/O.

`rollout` is a generator: it yields what it wants to know from its agent and is resumed with the answer.
Drivers run it: `drive` with an agent that works on whole blocks, `llm.driver` with a language model.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core import noise
from envprobe_core.agents.base import Agent, Consultation, Reply, Request
from envprobe_core.belief import BeliefTable
from envprobe_core.noise import Stream
from envprobe_core.policies import Decision, Policy, Rule, Sight, View
from envprobe_core.trajectory import Recorder, Trajectory
from envprobe_core.worlds.base import NO_ACTION, Floats, Ints, Mask, Observation, World

NOT_PROBED = -1
Episode = Generator[Request | Consultation, Reply | Decision, Trajectory]


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
        consults: names of policies whose decisions the agent is asked for instead of their rules.
    """

    world: World
    seeds: npt.NDArray[np.int64]
    arms: Sequence[Arm]
    budget: Ints
    threshold: Floats
    schedule: Ints | None = None
    consults: tuple[str, ...] = ()


def rollout(block: Block, instance: Any, *, reports: bool = True) -> Episode:
    """Run a block of episodes; yields Requests, takes Replies, returns the recorded trajectory.

    It yields a Consultation, and takes a Decision, where the block consults its agent on a policy.

    Args:
        block: what to run.
        instance: the instance of every row.
        reports: whether to record staleness and confidence, and max rho also of rows whose budget is spent
            (logs need them, measures do not).
    """
    world, protocol = block.world, block.world.protocol
    horizon, rows = world.regime.horizon, len(block.seeds)
    exogenous = noise.keys(block.seeds, world.code, Stream.MUTATION)
    visibility = noise.keys(block.seeds, world.code, Stream.VISIBLE)
    chance = noise.keys(block.seeds, world.code, Stream.PROBE)
    clock_runs, delivers = protocol.clock == "runs", protocol.answer == "delivered"
    everyone, nobody = np.ones(rows, dtype=bool), np.zeros(rows, dtype=bool)
    nowhere, unscored = np.zeros(rows, dtype=np.int64), np.full(rows, np.nan)
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
    heard = np.zeros(rows, dtype=np.int8)
    rules = [begin(arm, world, instance.map) for arm in block.arms]
    recorder = Recorder(rows, horizon, world.fields, reports)

    for t in range(horizon + 1):
        due = recorder.running if protocol.end == "success" else None
        reply = yield Request(t, table, observation, told, due)
        recorder.state(t, table, gold, place, world.succeeded(instance, state))
        if t == horizon or (protocol.end == "success" and recorder.all_ended):
            break

        asked = everyone if reports else used < block.budget
        probes, target, rho = nobody, nowhere, unscored
        if asked.any():
            c = criticality if reply.criticality is None else reply.criticality
            d = reply.dependency
            if d is None:
                d = world.roles(instance.map, place, reply.action)
            sight = Sight(observation, told, heard, np.arange(rows))
            draws = noise.word(chance, t, 0)
            probes, target, rho = yield from decide(
                block, t, asked, table, c, d, reply, used, draws, gold, weights, rules, sight
            )
        answer = gold[np.arange(rows), target]
        useful = probes & (answer != table.value[np.arange(rows), target])
        used = used + probes

        table.age()
        repaired = np.flatnonzero(probes & answered)
        table.repair(repaired, target[repaired], answer[repaired])
        told = np.where(probes & answered, target, NOT_PROBED)
        heard = table.value[np.arange(rows), target]

        acting = np.where(probes, NO_ACTION, reply.action)
        state, worked = world.act(instance, state, acting)
        moving = everyone if clock_runs else ~probes
        state = world.mutate(instance, state, noise.words(exogenous, tick, world.exposed), moving)
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
    asked: Mask,
    table: BeliefTable,
    c: Floats,
    d: Floats,
    reply: Reply,
    used: Ints,
    draws: npt.NDArray[np.uint64],
    gold: npt.NDArray[np.int8],
    weights: Floats,
    rules: Sequence[Rule],
    sight: Sight,
) -> Generator[Consultation, Decision, tuple[Mask, Ints, Floats]]:
    """Ask every arm's policy, or the agent on its behalf, for its decision on the rows that are `asked`.

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
    for arm, rule in zip(block.arms, rules, strict=True):
        if not asked[arm.rows].any():
            continue
        part, sees_gold = rows_asked(arm.rows, asked), arm.policy.sees_gold
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
            sight=None if arm.policy.begin is None else taken(sight, part),
        )
        consults = arm.policy.name in block.consults
        decision = (yield Consultation(view, part)) if consults else rule(view)
        probes[part] = decision.probe & (used[part] < block.budget[part])
        target[part] = decision.field
        if decision.score is not None:
            rho[part] = decision.score
    return probes, target, rho


def drive(episode: Episode, agent: Agent) -> Trajectory:
    """Run a rollout with an agent that answers for all rows at once."""
    request = next(episode)
    while True:
        try:
            request = episode.send(agent.answer(request))
        except StopIteration as finished:
            return finished.value


def begin(arm: Arm, world: World, static: Any) -> Rule:
    """Return an arm's rule, opened for this block where it has a memory."""
    policy = arm.policy
    return policy.rule if policy.begin is None else policy.begin(world, static, arm.rows)


def taken(sight: Sight, part: slice | Ints) -> Sight:
    """Return what is seen of some rows."""
    observation = sight.observation
    parts = {
        field.name: value[part]
        if isinstance(value := getattr(observation, field.name), np.ndarray)
        else value
        for field in fields(observation)
    }
    return Sight(Observation(**parts), sight.told[part], sight.answer[part], sight.position[part])


def rows_asked(rows: slice, asked: Mask) -> slice | Ints:
    """Return those of an arm's rows that are asked; all of them need no copy."""
    among = asked[rows]
    return rows if among.all() else rows.start + np.flatnonzero(among)


def by_arm(arms: Sequence[Arm], rows: int, value: Any) -> Mask:
    """Spread a property of the policies over the rows, [row]."""
    spread = np.zeros(rows, dtype=bool)
    for arm in arms:
        spread[arm.rows] = value(arm.policy)
    return spread


def draws_at(key: npt.NDArray[np.uint64], tick: int | Ints) -> npt.NDArray[np.uint64]:
    """Draw one word a row at the world tick."""
    return noise.word(key, tick, 0) if isinstance(tick, int) else noise.words(key, tick, 1)[:, 0]
