"""The simulated agent: it reads what it sees, errs as its profile says, and plans on what it believes.

It is given the task graph, its table and its observation; gold and the world's state it never sees.
Source: book/definitions.md, "The simulated agent"; every behaviour is an assumption, none is the paper's.
"""

import numpy as np

from envprobe_core import worlds
from envprobe_core.agents import minds
from envprobe_core.compiled.noise import (
    IMPULSE,
    STALENESS,
    WRITE,
    choice,
    draw,
    happens,
    own_key,
    quarter,
    quarter_choice,
)
from envprobe_core.compiled.numba_support import inline
from envprobe_core.compiled.records import CERTAIN, CODE, FIELDS, NO_ACTION, NONE, UNKNOWN, WAIT, add

UNKNOWN_STALENESS = 10
HEDGED_BELOW, LONGEST_MISREPORT, SINGLE_REPORT_CONFIDENCE = 70, 10, 90
REPORTED_DEPENDENCY = 0.5 + 0.5 * min(1.0, 1 / 3)
RISK_LOW, RISK_MEDIUM = 0, 1
NOTHING = np.full(FIELDS, UNKNOWN)
OVERWRITE, DISTRACTED, SLIP, QUIT, LOOP, LOST = range(6)  # fields of the IMPULSE stream
CRITICAL, RISKY, NAMES_GOAL, ASKS, FAILS = range(6, 11)


@inline
def know(world, table, value):
    """Know the values that are given and nothing else; the rest is unknown and stale."""
    for field in range(world.fields):
        known = value[field] != UNKNOWN
        table.value[field] = value[field]
        table.staleness[field] = 0 if known else UNKNOWN_STALENESS
        table.confidence[field] = CERTAIN if known else 0


@inline
def draw_own_luck(policy, keys):
    """Key what the agent draws by its policy and budget too; all else keeps the luck of the seed."""
    keys[WRITE] = own_key(keys[WRITE], policy.arm, policy.budget)
    keys[STALENESS] = own_key(keys[STALENESS], policy.arm, policy.budget)
    keys[IMPULSE] = own_key(keys[IMPULSE], policy.arm, policy.budget)


@inline
def lean(importance, episode):
    """Spread the agent's errors over the fields: evenly, by their weights w, or between the two.

    A weight follows from the task alone (`worlds.weigh`), not from what is true at a step.
    """
    total = 0.0
    for field in range(episode.fields):
        total += episode.weight[field]
    for field in range(episode.fields):
        share = episode.weight[field] * episode.fields / total
        episode.prone[field] = 1.0 + importance * (share - 1.0)


@inline
def propose(params, episode):
    """Update the belief table with what was observed, and propose the next task action."""
    world, task, observation = params.world, episode.task, episode.observation
    if params.habits.scribe:
        scribble(params, episode)
    else:
        minds.remember(world, task, episode.mind, observation, episode.t)
        if episode.t > 0:
            if params.habits.contrary > 0:
                recall(world, episode)
            if params.protocol.memory == CODE:
                know(world, episode.table, NOTHING)
            update(params, episode)
        if params.habits.contrary > 0:
            turn_round(params, episode)
        action = minds.plan(world, task, episode.table, episode.mind, observation.place)
        word = draw(episode.keys[IMPULSE], episode.t, SLIP)
        if happens(word, params.habits.slip):
            action = choice(word, world.actions)
        if quits(params.habits, episode.keys, episode.t):
            episode.has_quit = 1
        episode.action = WAIT if episode.has_quit else action
    if params.world.structure == CODE or params.habits.single_report:
        report(params, episode)


@inline
def fail(params, episode):
    """Propose and report nothing, since the call has failed; the public code makes a no-op of that.

    A table that is kept stays as it is: what was seen at this step is lost.
    """
    if params.protocol.memory == CODE:
        know(params.world, episode.table, NOTHING)
    episode.action, episode.risk = WAIT, RISK_LOW
    if params.world.structure == CODE:
        for field in range(params.world.fields):
            episode.sight.c[field] = episode.sight.d[field] = 0.0


@inline
def scribble(params, episode):
    """Copy what is in view, or as an oracle all there is, and choose by that and the last five steps."""
    world, habits, keys, t = params.world, params.habits, episode.keys, episode.t
    know(world, episode.table, episode.gold if habits.copies_gold else episode.observation.value)
    again, lost = NO_ACTION, draw(keys[IMPULSE], t, LOST)
    if happens(draw(keys[IMPULSE], t, LOOP), habits.loop):
        for back in range(min(t, 5), 0, -1):  # the last task action, if it is not longer ago
            before = episode.recent.action[(t - back) % 5]
            again = before if before != NO_ACTION else again
    episode.action = minds.wander(
        world, episode.task, episode.observation, episode.recent, again, happens(lost, habits.lost), lost
    )
    episode.risk = RISK_MEDIUM if happens(draw(keys[IMPULSE], t, RISKY), habits.risky) else RISK_LOW


@inline
def names_goal(habits, keys, t):
    """Whether a scribe's report names its goal at a step, and not where it is."""
    return happens(draw(keys[IMPULSE], t, NAMES_GOAL), habits.names_goal)


@inline
def update(params, episode):
    """Let confidence fade, write the news and what follows from it, and err."""
    world, habits, task = params.world, params.habits, episode.task
    table, observation, news = episode.table, episode.observation, episode.news
    told, fade = episode.told, habits.fade
    for field in range(world.fields):
        if field != told:
            table.confidence[field] -= min(table.confidence[field], fade)
    news.count = 0
    for number in range(observation.count):
        add(news, observation.field[number], observation.value[observation.field[number]])
    if (
        observation.fresh or params.protocol.memory == CODE
    ):  # without a table it reads its action's outcome again
        minds.conclude(world, task, observation, news)
    write(habits, episode)
    minds.derive(world, task, table, observation, episode.told, news)
    write(habits, episode)
    overwrite(params, episode, OVERWRITE)
    if params.world.distracts:
        overwrite(params, episode, DISTRACTED)
    if observation.fresh and observation.action >= 0:
        episode.risk = RISK_LOW if observation.valid else RISK_MEDIUM


@inline
def write(habits, episode):
    """Write the news into the table, but for omissions; then there are none."""
    news = episode.news
    for number in range(news.count):
        field = news.field[number]
        word = draw(episode.keys[WRITE], episode.t, field)
        if quarter(word, 0) >= habits.omit * episode.prone[field]:
            put(habits, episode, field, news.value[number], word)
    news.count = 0


@inline
def put(habits, episode, field, value, word):
    """Write a value with the confidence and staleness that the profile reports."""
    table = episode.table
    table.value[field] = value
    table.confidence[field] = habits.confidence - quarter_choice(word, 2, habits.spread + 1)
    if quarter(word, 1) < habits.hedge:
        table.confidence[field] = quarter_choice(word, 2, HEDGED_BELOW)
    if value == UNKNOWN:
        table.confidence[field] = 0
    table.staleness[field] = 0
    if quarter(word, 3) < habits.misreport:
        lie = draw(episode.keys[STALENESS], episode.t, field)
        table.staleness[field] = 1 + choice(lie, LONGEST_MISREPORT)


@inline
def overwrite(params, episode, impulse):
    """Now and then overwrite a random field with a random value."""
    word = draw(episode.keys[IMPULSE], episode.t, impulse)
    if happens(word, params.habits.overwrite):
        field = one_in_proportion(quarter(word, 2), episode.prone, episode.fields)
        value = quarter_choice(word, 3, params.world.domain[field])
        put(params.habits, episode, field, value, draw(episode.keys[WRITE], episode.t, field))


@inline
def one_in_proportion(quarter, shares, count):
    """Choose one of `count` by a quarter of a word, with chances as the shares, whose mean is 1."""
    reached, place = 0.0, quarter * count / 65536.0
    for one in range(count - 1):
        reached += shares[one]
        if place < reached:
            return one
    return count - 1


@inline
def turn_round(params, episode):
    """State confidence turned round its mean over what is known, and keep in mind what is held."""
    table, total, known = episode.table, 0.0, 0
    for field in range(params.world.fields):
        episode.held[field] = table.confidence[field]
        if table.value[field] != UNKNOWN:
            total += table.confidence[field]
            known += 1
    for field in range(params.world.fields):
        if table.value[field] != UNKNOWN:
            held = table.confidence[field]
            stated = held + 2.0 * params.habits.contrary * (total / known - held)
            table.confidence[field] = np.int64(min(max(stated, 0.0), 100.0) + 0.5)


@inline
def recall(world, episode):
    """Take the confidence that is held in place of what was stated, but for what a probe has just told."""
    for field in range(world.fields):
        if field != episode.told:
            episode.table.confidence[field] = episode.held[field]


@inline
def quits(habits, keys, t):
    """Whether the agent takes its task for finished at a step; never at the first."""
    return t > 0 and happens(draw(keys[IMPULSE], t, QUIT), habits.quit)


@inline
def report(params, episode):
    """Report c and d of what the action uses, where they are asked for, and a single belief by habit."""
    world, habits, table, used = params.world, params.habits, episode.table, episode.used
    c, d, first = episode.sight.c, episode.sight.d, NONE
    criticality = 1.0
    clock = 0 if habits.critical_once else episode.t
    reserved = habits.scribe or habits.critical_once  # who else reports calls all that it uses critical
    if reserved and not happens(draw(episode.keys[IMPULSE], clock, CRITICAL), habits.critical):
        criticality = 0.5
    worlds.uses(world, episode.task, episode.observation.place, episode.action, used)
    for field in range(world.fields):
        if habits.scribe:  # its one belief is about its goal, whether it knows that or not
            used[field] = first == NONE and world.is_goal[field]
        elif table.value[field] == UNKNOWN:
            used[field] = 0
        if used[field] and first == NONE:
            first = field
    if habits.single_report:
        for field in range(world.fields):
            table.staleness[field] = 0
            table.confidence[field] = SINGLE_REPORT_CONFIDENCE if field == first else CERTAIN
    if params.world.structure == CODE:
        for field in range(world.fields):
            named = used[field] and (not habits.single_report or field == first)
            goal = world.is_goal[field] and table.value[field] != UNKNOWN
            c[field] = criticality if named else (0.5 if goal and not habits.single_report else 0.0)
            d[field] = REPORTED_DEPENDENCY if named else 0.0
