"""Algorithm 1: one episode, from its first observation to its end.

`run` plays episodes with the simulated agent. Whoever has another agent, or another policy, asks it for one
stage of a step at a time (`batch.EpisodeBatch`).
"""

import numpy as np

from envprobe_core import released, worlds
from envprobe_core.agents import minds
from envprobe_core.agents import simulated as agent
from envprobe_core.compiled.noise import (
    IMPULSE,
    INSTANCE,
    MUTATION,
    PROBE,
    VISIBLE,
    choice,
    draw,
    happens,
    percent,
    stream_keys,
)
from envprobe_core.compiled.numba_support import for_pages, helper, inline, kernel
from envprobe_core.compiled.records import (
    CERTAIN,
    CODE,
    NO_ACTION,
    NONE,
    STALENESS_LIMIT,
    TEXT,
    UNKNOWN,
    WAIT,
    fill,
    first_highest,
)
from envprobe_core.engine import scoring
from envprobe_core.policies import gates
from envprobe_core.policies.rules import RANDOM

STALENESS_TERM = (
    np.minimum(np.arange(STALENESS_LIMIT + 1), 10) / 10.0
)  # s by reported staleness (Section 4.1)
UNCERTAINTY_TERM = 1.0 - np.arange(CERTAIN + 1) / 100.0  # u by reported confidence


# the stages of a step, and what comes before the first and after the last
BEGIN, PROPOSE, RECORD, SENSE, DECIDE, ADVANCE, REPEAT, CLOSE, MEASURE = (1 << stage for stage in range(9))
TO_THE_END = PROPOSE | RECORD | DECIDE | ADVANCE | REPEAT
WHOLE = BEGIN | TO_THE_END | CLOSE | MEASURE


@kernel
@for_pages
def run(stages, params, block, seeds, logs, schedules, fields, measures, reader):
    """Run some stages of Algorithm 1's step in every episode that is not over, with REPEAT until all are.

    Each row of `block`, `logs`, `schedules` and `fields` is an episode's, or one row serves all in turn.

    Args:
        stages: a sum of stages.
        params: the record of a condition (`batch.kernel_params`).
        block: episodes, [row].
        seeds: [row].
        logs: [row, time], take what happens.
        schedules: [row, step], the fields that a replayed policy probes, or no steps.
        fields: [row], what is probed: decided here, or given to those who advance without a decision.
        measures: [row], filled in; without CLOSE they hold steps and success already.
        reader: a reader's policy (`custom.rule_of`), or `custom.NOBODY`.

    Returns:
        The row at which a reader's policy failed, or NONE.
    """
    for row in range(len(seeds)):
        at = row if len(fields) > 1 else 0
        episode, log = block[row if len(block) > 1 else 0], logs[row if len(logs) > 1 else 0]
        schedule = schedules[row if len(schedules) > 1 else 0]
        if stages & BEGIN:
            begin(params, episode, seeds[row])
        while not episode.over:
            if stages & PROPOSE:
                propose(params, episode)  # the agent updates b_t and proposes a task action
            if stages & RECORD:
                record(params, episode, log)
                if episode.over:
                    break
            if stages & SENSE:
                sense(params, episode, schedule)
            if stages & DECIDE:
                fields[at] = decide(params, episode, schedule, reader)  # score all fields; the gate
            if stages & ADVANCE:
                advance(params, episode, fields[at], log)  # probe or act; the world mutates
            if not stages & REPEAT:
                break
        if stages & CLOSE:
            measures[row].steps, measures[row].success = episode.t, episode.succeeded
        if stages & MEASURE:
            scoring.measure(params, log, measures[row])
        if episode.fault:
            return row
    return NONE


@helper
def begin(params, episode, seed):
    """Create the world of a seed; the agent looks around, and has its first beliefs."""
    world, task, state = params.world, episode.task, episode.state
    stream_keys(seed, world.code, episode.keys)
    if params.habits.own_noise:
        agent.draw_own_luck(params.policy, episode.keys)
    worlds.create(world, task, state, episode.keys[INSTANCE])
    worlds.weigh(world, task, episode.weight)
    heaviest = episode.weight[first_highest(episode.weight, world.fields)]
    for i in range(world.fields):
        episode.sight.c[i] = episode.weight[i] / heaviest
    minds.meet(world, task, episode.mind)
    gates.begin(params, episode)
    worlds.reveal(world, task, state, episode.gold)
    episode.fields = 0
    for i in range(world.fields):
        episode.fields += episode.gold[i] != UNKNOWN
    agent.lean(params.habits.importance, episode)
    fill(episode.recent.action, NO_ACTION)
    episode.t = episode.tick = episode.probes_used = episode.succeeded = episode.has_quit = episode.risk = 0
    episode.over = episode.fault = episode.worked = 0
    episode.told, episode.acting = NONE, NO_ACTION
    fill(episode.awaited.field, NONE)
    episode.observation.came_from = episode.observation.place = state.place
    episode.observation.count = 0
    fill(episode.observation.value, UNKNOWN)
    observe(params, episode)
    known = episode.gold if params.protocol.start == TEXT else episode.observation.value
    agent.know(world, episode.table, known)


@inline
def propose(params, episode):
    """Let the simulated agent update its table and propose.

    If it proposes a probe, the public harness finds it something to do where the policy acts.
    """
    failing = params.protocol.failing
    if failing > 0 and happens(draw(episode.keys[IMPULSE], episode.t, agent.FAILS), percent(failing)):
        agent.fail(params, episode)
        return
    agent.propose(params, episode)
    affordable = episode.probes_used < params.policy.budget  # or else it is told to act
    if params.protocol.baselines == CODE and params.habits.scribe and affordable:
        word = draw(episode.keys[IMPULSE], episode.t, agent.ASKS)
        if happens(word, params.habits.asks):
            episode.action = released.stand_in(params.world, episode.task, episode.observation, word)


@inline
def record(params, episode, log):
    """Record b_t and g_t; note whether the episode is over: at the horizon, or at a goal that ends it."""
    now, table = log[episode.t], episode.table
    for i in range(params.world.fields):
        now.belief[i] = table.value[i]
        now.gold[i] = episode.gold[i]
        now.staleness[i] = table.staleness[i]
        now.confidence[i] = table.confidence[i]
    now.place = episode.state.place
    if worlds.succeeded(params.world, episode.task, episode.state):
        episode.succeeded = 1
    episode.over = episode.t == params.protocol.horizon or (
        params.protocol.end == CODE and episode.succeeded == 1
    )


@inline
def decide(params, episode, schedule, reader):
    """Ask the policy for a field to probe; NONE without budget."""
    affordable = episode.probes_used < params.policy.budget
    if not affordable and not params.protocol.scores_all:
        episode.sight.highest = np.nan
        return NONE
    sense(params, episode, schedule)
    field = gates.choose(params, episode, reader)
    return field if affordable else NONE


@inline
def sense(params, episode, schedule):
    """Fill in what a policy may see: the table and the four terms of the score."""
    sight, table, structure = episode.sight, episode.table, params.world.structure
    sight.fields, sight.step, sight.horizon = episode.fields, episode.t, params.protocol.horizon
    sight.budget, sight.used = params.policy.budget, episode.probes_used
    sight.threshold = params.policy.threshold
    sight.action, sight.risk = episode.action, episode.risk
    sight.draw = draw(episode.keys[PROBE], episode.t, 0)
    sight.scheduled = schedule[episode.t] if len(schedule) else NONE
    if structure == TEXT:
        worlds.roles(params.world, episode.task, episode.observation.place, episode.action, sight.d)
    for i in range(sight.fields):
        silent = structure == CODE and table.value[i] == UNKNOWN
        sight.value[i] = table.value[i]
        sight.staleness[i] = 0 if silent else table.staleness[i]
        sight.confidence[i] = CERTAIN if silent else table.confidence[i]
        sight.s[i] = STALENESS_TERM[sight.staleness[i]]
        sight.u[i] = UNCERTAINTY_TERM[sight.confidence[i]]


@inline
def advance(params, episode, field, log):
    """Probe a field, or carry out the proposed action; the world mutates; the agent observes."""
    act(params, episode, field, log)
    if field == NONE or params.protocol.clock == TEXT:
        worlds.mutate(params.world, episode.task, episode.state, episode.keys[MUTATION], episode.tick)
        episode.tick += 1
        observe(params, episode)
    episode.t += 1


@inline
def act(params, episode, field, log):
    """Carry out the proposed action, or probe a field: b_{t+1} := g_t (Definition 3.1); record which.

    A probe is useful if the truth differs from the belief, or where the public code says so. What is recorded
    as its answer is the truth, whatever the agent is told, and when.
    """
    now, table = log[episode.t], episode.table
    answer = episode.gold[max(field, 0)]
    now.action, now.probe = episode.action, field
    now.score = episode.sight.highest + 0.0  # of the two zeros the positive one
    now.answer = answer if field != NONE else 0
    now.useful = field != NONE and answer != table.value[field]
    if field != NONE and params.protocol.useful == CODE:
        names_goal = agent.names_goal(params.habits, episode.keys, episode.t)
        by_name = params.policy.gate.kind != RANDOM
        now.useful = released.informs(
            params, episode.task, table.value, episode.gold, field, by_name, names_goal
        )
    now.acted = field == NONE and episode.action != WAIT
    for i in range(params.world.fields):
        table.staleness[i] = min(table.staleness[i] + 1, STALENESS_LIMIT)
    episode.told, episode.acting, episode.worked = NONE, NO_ACTION, False
    delivers = params.protocol.answer == TEXT and params.policy.answered
    if delivers and params.protocol.wrong > 0 and field != NONE:
        answer = told_wrong(params, episode, field, answer)
    if field != NONE:
        episode.probes_used += 1
        if delivers and params.protocol.delay == 0:
            deliver(episode, field, answer, 0)
    if delivers and params.protocol.delay > 0:
        wait_for(params.protocol.delay, episode, field, answer)
    if field == NONE:
        episode.acting = episode.action
        if episode.action != WAIT:
            episode.worked = worlds.act(params.world, episode.task, episode.state, episode.action)
    now.valid = episode.worked
    episode.recent.action[episode.t % 5], episode.recent.valid[episode.t % 5] = episode.acting, episode.worked
    episode.observation.fresh = 0


@inline
def deliver(episode, field, answer, age):
    """Tell the agent an answer of so many steps ago; it takes it to be certain."""
    table = episode.table
    table.value[field], table.staleness[field], table.confidence[field] = answer, age, CERTAIN
    episode.told, episode.answer = field, answer


@inline
def told_wrong(params, episode, field, answer):
    """Return the answer, or now and then another value of the field; the agent cannot tell which."""
    word = draw(episode.keys[PROBE], episode.t, 1 + field)
    if happens(word, percent(params.protocol.wrong)):
        other = choice(word, params.world.domain[field] - 1)
        return other + (other >= answer)
    return np.int64(answer)


@inline
def wait_for(delay, episode, field, answer):
    """Put off a step's answer, or none; deliver the one asked for `delay` steps ago, as it was then."""
    awaited, now, due = episode.awaited, episode.t % (delay + 1), (episode.t + 1) % (delay + 1)
    awaited.field[now], awaited.value[now] = field, answer
    if awaited.field[due] != NONE:
        deliver(episode, awaited.field[due], awaited.value[due], delay)


@inline
def observe(params, episode):
    """Show the agent its surroundings after a task action, WAIT or NO_ACTION."""
    world, task, state, observation = params.world, episode.task, episode.state, episode.observation
    worlds.reveal(world, task, state, episode.gold)
    word = draw(episode.keys[VISIBLE], episode.tick, 0)
    for number in range(observation.count):
        observation.value[observation.field[number]] = UNKNOWN
    observation.count, observation.hidden = 0, NONE
    worlds.show(world, task, state, episode.acting, word, observation)
    observation.came_from = observation.place
    observation.place = state.place
    observation.action, observation.valid, observation.fresh = episode.acting, episode.worked, 1
