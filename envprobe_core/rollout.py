"""One rollout for every policy, protocol and agent: Algorithm 1, on a block of episodes, without I/O.

`rollout` is a generator: it yields what it wants to know from its agent and is resumed with the answer.
Drivers run it: `drive` with an agent that works on whole blocks, `llm.driver` with a language model.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core import noise
from envprobe_core.agents.base import Agent, Consultation, Reply, Request
from envprobe_core.belief import BeliefTable
from envprobe_core.blocks import Block
from envprobe_core.deciding import Deciders
from envprobe_core.noise import Stream
from envprobe_core.trajectory import Recorder, Trajectory
from envprobe_core.views import Decision, Sight
from envprobe_core.worlds.base import NO_ACTION, Ints

NOT_PROBED = -1
Episode = Generator[Request | Consultation, Reply | Decision, Trajectory]


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
    clock_runs, delivers = protocol.clock == "runs", protocol.answer == "delivered"
    everyone, nobody = np.ones(rows, dtype=bool), np.zeros(rows, dtype=bool)
    answered = block.by_arm(lambda policy: policy.answered) & delivers

    deciders = Deciders(block, instance.map, world.weights(instance.map))
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
    recorder = Recorder(rows, horizon, world.fields, reports)

    for t in range(horizon + 1):
        due = recorder.running if protocol.end == "success" else None
        reply = yield Request(t, table, observation, told, due)
        recorder.state(t, table, gold, place, world.succeeded(instance, state))
        if t == horizon or (protocol.end == "success" and recorder.all_ended):
            break

        asked = everyone if reports else used < block.budget
        sight = Sight(observation, told, heard, np.arange(rows))
        probes, target, rho = yield from deciders.decide(t, asked, table, reply, sight, used, gold, place)
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


def drive(episode: Episode, agent: Agent) -> Trajectory:
    """Run a rollout with an agent that answers for all rows at once."""
    request = next(episode)
    while True:
        try:
            request = episode.send(agent.answer(request))
        except StopIteration as finished:
            return finished.value


def draws_at(key: npt.NDArray[np.uint64], tick: int | Ints) -> npt.NDArray[np.uint64]:
    """Draw one word a row at the world tick."""
    return noise.word(key, tick, 0) if isinstance(tick, int) else noise.words(key, tick, 1)[:, 0]
