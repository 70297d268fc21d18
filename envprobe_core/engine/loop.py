"""Algorithm 1: one episode, from its first observation to its end.

`run` plays episodes with the simulated agent. Whoever has another agent, or another policy, asks it for one
stage of a step at a time (`running.Episodes`).
"""

import numpy as np

from envprobe_core import agents as agent
from envprobe_core import worlds
from envprobe_core.engine import scoring
from envprobe_core.engine.compiling import apart, compiled, entry
from envprobe_core.engine.noise import IMPULSE, INSTANCE, MUTATION, PROBE, VISIBLE, draw, happens, stream_keys
from envprobe_core.engine.records import (
    CERTAIN,
    NO_ACTION,
    NONE,
    STALENESS_LIMIT,
    UNKNOWN,
    WAIT,
    fill,
    first_highest,
)
from envprobe_core.policies import rules, voi

S = np.minimum(np.arange(STALENESS_LIMIT + 1), 10) / 10.0  # s by reported staleness (Section 4.1)
U = 1.0 - np.arange(CERTAIN + 1) / 100.0  # u by reported confidence


# the stages of a step, and what comes before the first and after the last
BEGIN, PROPOSE, SETTLE, LOOK, DECIDE, ADVANCE, REPEAT, CLOSE, MEASURE = (1 << stage for stage in range(9))
TO_THE_END = PROPOSE | SETTLE | DECIDE | ADVANCE | REPEAT
WHOLE = BEGIN | TO_THE_END | CLOSE | MEASURE


@entry
def run(stages, setting, block, seeds, logs, schedules, fields, measures, own):
    """Take the episodes that are not over through some stages, to their end if these repeat (Algorithm 1).

    Each row of `block`, `logs`, `schedules` and `fields` is an episode's, or one row serves all in turn.

    Args:
        stages: a sum of stages.
        setting: the record of a cell (`running.setting_of`).
        block: episodes, [row].
        seeds: [row].
        logs: [row, time], take what happens.
        schedules: [row, step], the fields that a replayed policy probes, or no steps.
        fields: [row], what is probed: decided here, or given to those who advance without a decision.
        measures: [row], filled in; without CLOSE they hold steps and success already.
        own: a reader's policy, compiled (`own.rule_of`), or `own.NOBODY`.

    Returns:
        The row at which a reader's policy failed, or NONE.
    """
    for row in range(len(seeds)):
        at = row if len(fields) > 1 else 0
        episode, log = block[row if len(block) > 1 else 0], logs[row if len(logs) > 1 else 0]
        schedule = schedules[row if len(schedules) > 1 else 0]
        if stages & BEGIN:
            begin(setting, episode, seeds[row])
        while not episode.over:
            if stages & PROPOSE:
                propose(setting, episode)  # the agent updates b_t and proposes a task action
            if stages & SETTLE:
                settle(setting, episode, log)
                if episode.over:
                    break
            if stages & LOOK:
                look(setting, episode, schedule)
            if stages & DECIDE:
                fields[at] = decide(setting, episode, schedule, own)  # score all fields; the gate
            if stages & ADVANCE:
                advance(setting, episode, fields[at], log)  # probe or act; the world mutates
            if not stages & REPEAT:
                break
        if stages & CLOSE:
            measures[row].steps, measures[row].success = episode.t, episode.succeeded
        if stages & MEASURE:
            scoring.measure(setting, log, measures[row])
        if episode.fault:
            return row
    return NONE


@apart
def begin(setting, episode, seed):
    """Create the world of a seed; the agent looks around, and has its first beliefs."""
    world, task, state = setting.world, episode.task, episode.state
    stream_keys(seed, world.code, episode.keys)
    worlds.create(world, task, state, episode.keys[INSTANCE])
    worlds.weigh(world, task, episode.weight)
    heaviest = episode.weight[first_highest(episode.weight, world.fields)]
    for i in range(world.fields):
        episode.sight.c[i] = episode.weight[i] / heaviest
    worlds.meet(world, task, episode.mind)
    if setting.policy.remembers:
        voi.forget(world, task, episode.evidence, setting.policy.told_rate)
    worlds.reveal(world, task, state, episode.gold)
    episode.fields = 0
    for i in range(world.fields):
        episode.fields += episode.gold[i] != UNKNOWN
    fill(episode.recent.action, NO_ACTION)
    episode.t = episode.tick = episode.probes_used = episode.succeeded = episode.has_quit = episode.risk = 0
    episode.over = episode.fault = episode.worked = 0
    episode.told, episode.acting = NONE, NO_ACTION
    episode.observation.came_from = episode.observation.place = state.place
    episode.observation.count = 0
    fill(episode.observation.value, UNKNOWN)
    observe(setting, episode)
    known = episode.gold if setting.protocol.starts_with_gold else episode.observation.value
    agent.know(world, episode.table, known)


@compiled
def propose(setting, episode):
    """Let the simulated agent update its table and propose.

    If it proposes a probe, the public harness finds it something to do where the policy acts.
    """
    agent.propose(setting, episode)
    affordable = episode.probes_used < setting.policy.budget  # or else it is told to act
    if setting.policy.released and setting.habits.scribe and affordable:
        word = draw(episode.keys[IMPULSE], episode.t, agent.ASKS)
        if happens(word, setting.habits.asks):
            episode.action = worlds.stand_in(setting.world, episode.task, episode.observation, word)


@compiled
def settle(setting, episode, log):
    """Record b_t and g_t; note whether the episode is over: at the horizon, or at a goal that ends it."""
    entry, table = log[episode.t], episode.table
    for i in range(setting.world.fields):
        entry.belief[i] = table.value[i]
        entry.gold[i] = episode.gold[i]
        entry.staleness[i] = table.staleness[i]
        entry.confidence[i] = table.confidence[i]
    entry.place = episode.state.place
    if worlds.succeeded(setting.world, episode.task, episode.state):
        episode.succeeded = 1
    episode.over = episode.t == setting.protocol.horizon or (
        setting.protocol.stops and episode.succeeded == 1
    )


@compiled
def decide(setting, episode, schedule, own):
    """Ask the policy for a field to probe; NONE without budget."""
    affordable = episode.probes_used < setting.policy.budget
    if not affordable and not setting.protocol.scores_all:
        episode.sight.highest = np.nan
        return NONE
    look(setting, episode, schedule)
    field = rules.choose(setting, episode, own)
    return field if affordable else NONE


@compiled
def look(setting, episode, schedule):
    """Fill in what a policy may see: the table and the four terms of the score."""
    sight, table, protocol = episode.sight, episode.table, setting.protocol
    sight.fields, sight.step, sight.horizon = episode.fields, episode.t, protocol.horizon
    sight.budget, sight.used = setting.policy.budget, episode.probes_used
    sight.threshold = setting.policy.threshold
    sight.action, sight.risk = episode.action, episode.risk
    sight.draw = draw(episode.keys[PROBE], episode.t, 0)
    sight.scheduled = schedule[episode.t] if len(schedule) else NONE
    if not protocol.reported:
        worlds.roles(setting.world, episode.task, episode.observation.place, episode.action, sight.d)
    for i in range(sight.fields):
        silent = protocol.reported and table.value[i] == UNKNOWN
        sight.value[i] = table.value[i]
        sight.staleness[i] = 0 if silent else table.staleness[i]
        sight.confidence[i] = CERTAIN if silent else table.confidence[i]
        sight.s[i] = S[sight.staleness[i]]
        sight.u[i] = U[sight.confidence[i]]


@compiled
def advance(setting, episode, field, log):
    """Probe a field, or carry out the proposed action; the world mutates; the agent observes."""
    act(setting, episode, field, log)
    if field == NONE or setting.protocol.clock_runs:
        worlds.mutate(setting.world, episode.task, episode.state, episode.keys[MUTATION], episode.tick)
        episode.tick += 1
        observe(setting, episode)
    episode.t += 1


@compiled
def act(setting, episode, field, log):
    """Carry out the proposed action, or probe a field: b_{t+1} := g_t (Definition 3.1); record which.

    A probe is useful if its answer differs from the belief, or where the public code says so.
    """
    entry, table = log[episode.t], episode.table
    answer = episode.gold[max(field, 0)]
    entry.action, entry.probe = episode.action, field
    entry.score = episode.sight.highest + 0.0  # of the two zeros the positive one
    entry.answer = answer if field != NONE else 0
    entry.useful = field != NONE and answer != table.value[field]
    if field != NONE and setting.protocol.informs:
        named = agent.names_goal(setting.habits, episode.keys, episode.t)
        entry.useful = informs(setting, episode.task, table.value, episode.gold, field, named)
    entry.acted = field == NONE and episode.action != WAIT
    for i in range(setting.world.fields):
        table.staleness[i] = min(table.staleness[i] + 1, STALENESS_LIMIT)
    episode.told, episode.acting, episode.worked = NONE, NO_ACTION, False
    if field != NONE:
        episode.probes_used += 1
        if setting.protocol.delivers and setting.policy.answered:
            table.value[field], table.staleness[field], table.confidence[field] = answer, 0, CERTAIN
            episode.told, episode.answer = field, answer
    else:
        episode.acting = episode.action
        if episode.action != WAIT:
            episode.worked = worlds.act(setting.world, episode.task, episode.state, episode.action)
    entry.valid = episode.worked
    episode.recent.action[episode.t % 5], episode.recent.valid[episode.t % 5] = episode.acting, episode.worked
    episode.observation.fresh = 0


@compiled
def informs(setting, task, value, gold, field, names_goal):
    """Say whether the public code calls the probe of a field useful."""
    named = setting.habits.scribe and setting.policy.gate.kind != rules.RANDOM  # by the report's text
    placed = named and not names_goal
    return worlds.informs(setting.world, task, value, gold, field, named, placed, setting.scoring)


@compiled
def observe(setting, episode):
    """Show the agent its surroundings after a task action, WAIT or NO_ACTION."""
    world, task, state, observation = setting.world, episode.task, episode.state, episode.observation
    worlds.reveal(world, task, state, episode.gold)
    word = draw(episode.keys[VISIBLE], episode.tick, 0)
    for number in range(observation.count):
        observation.value[observation.field[number]] = UNKNOWN
    observation.count, observation.hidden = 0, NONE
    worlds.show(world, task, state, episode.acting, word, observation)
    observation.came_from = observation.place
    observation.place = state.place
    observation.action, observation.valid, observation.fresh = episode.acting, episode.worked, 1
