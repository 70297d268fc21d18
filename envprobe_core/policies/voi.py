"""VoI (ours): a policy that weighs what an answer is expected to gain against the step it costs.

Of every field it believes the last value with evidence, and holds the chance that this is still so: a field
changes at an unknown moment, at a rate (its hazard) that fields of one kind share. The rates are learned from
the episode: how often had a value that was evident changed when it was seen again? The form of the dynamics
is in the paper's Section 6.1, the task graph is given to policies where the protocol says so; gold is never
asked for.

The weight lambda sets what is measured: U = lambda A_H + (1 - lambda) success. There are three reasons to
probe: the answer repairs a belief that would be wrong at the end; the plan hangs on a field that may have
changed; the agent waits because it believes the task done, and no evidence says so.
"""

import numpy as np

from envprobe_core.compiled.numba_support import helper, inline
from envprobe_core.compiled.records import (
    FIELDS,
    LONGEST_HORIZON,
    NONE,
    TEXT,
    UNKNOWN,
    WAIT,
    Flag,
    Float,
    Int,
    dtype_of,
    fill,
    first_highest,
    has_bit,
    with_bit,
)
from envprobe_core.policies.base import Policy, Rule
from envprobe_core.worlds import WORLDS, graphnav, nothing, of_each, zero
from envprobe_core.worlds.base import DROP_PROBABILITY

VOI, NOTED = 9, 13
KINDS = {
    VOI: "Probe where an answer is expected to gain more than the step is worth (ours)",
    NOTED: "Rank first where the table and VoI's notes differ, else the stalest field (ours)",
}
EVIDENCE = dtype_of(
    ("value", Int, FIELDS), ("chance", Float, FIELDS), ("since", Int, FIELDS), ("watched", Flag, FIELDS),
    ("changes", Float, 2), ("steps", Float, 2), ("started", Flag), ("done", Flag),
    ("distance", Int, 20), ("gain", Float, FIELDS),
)  # fmt: skip
"""What VoI remembers: the last evident value of each field, the chance that it still holds, steps since the
evidence, whether a change since would still be counted; changes seen and steps watched, [kind], prior
included; whether it has begun, and whether the task was seen done; each node's distance to the target. `gain`
is what an answer about each field is worth at the end, for its arithmetic.
"""
MEMORY = {"evidence": EVIDENCE}
RULES_FOR = tuple(WORLDS)  # its arithmetic differs by world (end of this file)
LEARNED = -1.0  # as the rate that it is told

PRIOR_CHANGES, PRIOR_STEPS = 0.5, 5.0  # as if half a change had been seen in five steps, before any is
MUCH = 1e9  # steps watched, as if: a hazard that is given is never corrected
PACE = 0.6  # the share of task actions taken to bring the goal one action nearer
SETTLED = 0.5  # how much of a derived belief's gain an answer about its premise is credited with
THINGS, LOCKS = FIELD_KINDS = 0, 1  # of fields that change by themselves (`bounds`)
FURTHEST = 20  # actions to a goal

FINISH = np.zeros((LONGEST_HORIZON + 1, FURTHEST + 1))
"""The chance to do m actions in l steps, [l, m], where a step does one with chance PACE."""
FINISH[:, 0] = 1.0
for left in range(1, LONGEST_HORIZON + 1):
    FINISH[left, 1:] = PACE * FINISH[left - 1, :-1] + (1.0 - PACE) * FINISH[left - 1, 1:]


def value_policy(name: str, title: str, weight: float, *, given: bool = False, paced: bool = True) -> Policy:
    """Make VoI with a weight between task success (0) and accuracy (1).

    >>> value_policy("mine", "Mine", 0.5).rule.weight
    0.5
    """
    return Policy(name, title, Rule(VOI, weight=weight, paced=paced), given=given)


POLICIES = (
    value_policy("voi", "VoI", 0.5),
    value_policy("voi-accuracy", "VoI for accuracy", 1.0),
    value_policy("voi-success", "VoI for success", 0.0),
)


# what the loop asks of a policy's module


@inline
def begin(params, episode):
    """Start an episode with nothing but what can never change, and the rate if that is told."""
    forget(
        params.world, episode.task, episode.evidence, params.world.rate if params.policy.given else LEARNED
    )


@inline
def notice(params, episode):
    """Take in a step, where answers reach the agent."""
    if params.protocol.answer == TEXT:
        watch(
            params.world, episode.task, episode.evidence, episode.table, episode.observation, episode.told,
            episode.answer, params.protocol.delay,
        )  # fmt: skip


@inline
def opens(params, rule, episode, reader):
    """Write the field that is ranked first into the sight; say whether it should be probed now."""
    sight = episode.sight
    if rule.kind == NOTED:
        sight.first = first_highest(sight.staleness, sight.fields)
        for field in range(sight.fields - 1, -1, -1):
            noted = episode.evidence.value[field]
            if noted != UNKNOWN and noted != sight.value[field]:
                sight.first = field
        return False
    if params.protocol.answer != TEXT:
        return False
    return weigh_up(
        params.world, episode.task, episode.evidence, episode.table, sight, episode.observation.place,
        rule.weight, rule.paced,
    )  # fmt: skip


# its notes, and what they make a probe worth


@helper
def forget(world, task, evidence, given_rate):
    """Start an episode with nothing but what can never change; a negative rate is one to be learned."""
    fill(evidence.value, UNKNOWN)
    fill(evidence.chance, 0.0)
    fill(evidence.since, 0)
    fill(evidence.watched, 0)
    fill(evidence.changes, PRIOR_CHANGES if given_rate < 0.0 else given_rate * MUCH)
    fill(evidence.steps, PRIOR_STEPS if given_rate < 0.0 else MUCH)
    evidence.started = evidence.done = 0
    if world.structure == TEXT:
        study(world, task, evidence)


@helper
def watch(world, task, evidence, table, observation, told, answer, delay):
    """Take in the answer about `told`, the world's step and what is seen; at first the table.

    An answer that is late is of so many steps ago; what was seen since is better.
    """
    changed = NONE
    if evidence.started:
        if told != NONE and evidence.since[told] >= delay:
            evidence.since[told] -= delay
            for kind in FIELD_KINDS:
                if told in fields_of(world, kind):
                    changes, steps = compare(world, task, evidence, kind, told, answer)
                    evidence.changes[kind] += changes
                    evidence.steps[kind] += steps
            note(evidence, told, answer)
            if delay > 0:
                grow_old(world, task, evidence, told, delay)
        if observation.fresh:
            let_pass(world, task, evidence)
        changed = touched(world, observation.action)
    else:
        evidence.started = 1
        learn(world, task, evidence, table.value, NONE)
    learn(world, task, evidence, observation.value, changed)
    if observation.fresh:
        miss(world, evidence, observation)
    derive(world, task, evidence, observation)
    if evidence.value[world.goal_field] == done_value(world, task):
        evidence.done = 1


@helper
def weigh_up(world, task, evidence, table, sight, place, weight, paced):
    """Weigh what will be right at the end and what the plan needs now; say whether to probe `sight.first`."""
    left, waits, goal = sight.horizon - sight.step, sight.action == WAIT, world.goal_field
    sure, to_go, fading, luck, thing, saved = prospect(world, task, evidence, place)
    now, later = FINISH[left, to_go], FINISH[left - 1, to_go]
    step = sure * ((now - later) + fading * later) + (1.0 - sure) * luck  # what it is worth in task success
    if evidence.done:
        step = 0.0
    held_back = weight / world.fields  # what a probe kept for the end can repair: one field

    late = need = restore = -1.0
    expect_gains(world, task, evidence, table, left)
    best = first_highest(evidence.gain, sight.fields)
    if not paced or left <= sight.budget - sight.used:  # earlier, waiting gains more
        late = weight * evidence.gain[best] / world.fields - (1.0 - weight) * (0.0 if waits else step)
    believed_done = table.value[goal] == done_value(world, task)
    if not waits:
        need = (1.0 - weight) * (step * (saved - 1.0)) - held_back
    elif believed_done and not evidence.done and evidence.since[goal] > 0:  # it waits in error, perhaps
        restore = (1.0 - weight) * later - held_back

    sight.highest, sight.first = max(late, need, restore), best
    if restore > 0.0:
        sight.first = goal
    elif need > 0.0:
        sight.first = thing
    return late >= 0.0 or need > 0.0 or restore > 0.0


# the change-point belief


@inline
def fields_of(world, kind):
    """The fields of a kind."""
    return range(bounds(world)[kind], bounds(world)[kind + 1])


@inline
def hazard(evidence, kind):
    """The chance that a field of a kind changes in a step: changes seen over steps watched."""
    return evidence.changes[kind] / evidence.steps[kind]


@inline
def mean_wait(evidence, kind):
    """The mean number of steps between changes, by what is known so far."""
    return evidence.steps[kind] / evidence.changes[kind] if evidence.changes[kind] > 0.0 else np.inf


@inline
def one_step_on(chance, leaves, returns):
    """The chance that a value holds one step later: a change leads away, or by luck back."""
    back = (1.0 - chance) * (leaves * returns)
    return chance * (1.0 - leaves) + back


@inline
def let_pass(world, task, evidence):
    """Let the world move once."""
    for kind in FIELD_KINDS:
        leaves, returns = hazard(evidence, kind), landing(world, kind)
        for field in fields_of(world, kind):
            value, chance = evidence.value[field], evidence.chance[field]
            if value != UNKNOWN and loose(world, task, kind, field, value):
                evidence.chance[field] = one_step_on(chance, leaves, returns)
    for field in range(world.fields):
        evidence.since[field] += 1


@inline
def grow_old(world, task, evidence, field, steps):
    """Let a value just noted be of so many steps ago: the world has moved since, as in `let_pass`."""
    evidence.since[field] = steps
    for kind in FIELD_KINDS:
        if field in fields_of(world, kind) and loose(world, task, kind, field, evidence.value[field]):
            for _ in range(steps):
                evidence.chance[field] = one_step_on(
                    evidence.chance[field], hazard(evidence, kind), landing(world, kind)
                )


@inline
def learn(world, task, evidence, value, changed):
    """Take in the values that are known, and count changes but for the field that the own action changed."""
    for kind in FIELD_KINDS:
        changes = steps = 0.0
        for field in fields_of(world, kind):
            if value[field] != UNKNOWN and field != changed:
                more = compare(world, task, evidence, kind, field, value[field])
                changes, steps = changes + more[0], steps + more[1]
        evidence.changes[kind] += changes
        evidence.steps[kind] += steps
    for field in range(world.fields):
        if value[field] != UNKNOWN:
            note(evidence, field, value[field])


@inline
def compare(world, task, evidence, kind, field, value):
    """What seeing a field again tells of its kind: changes, one or none, and steps watched."""
    held, since = evidence.value[field], evidence.since[field]
    if not evidence.watched[field] or since == 0 or not loose(world, task, kind, field, held):
        return 0.0, 0.0
    wait = mean_wait(evidence, kind)
    if value != held:
        return 1.0, min((since + 1) * 0.5, wait)
    if landing(world, kind) == 1.0:  # what changes twice comes back: beyond the mean, a wait says no more
        return 0.0, min(since * 1.0, wait)
    return 0.0, since * 1.0


@inline
def note(evidence, field, value):
    """Hold a value for certain, and watch the field."""
    evidence.value[field], evidence.chance[field] = value, 1.0
    evidence.since[field], evidence.watched[field] = 0, 1


@inline
def right(world, evidence, field, believed):
    """The chance that the agent's belief about a field is right."""
    if believed == UNKNOWN:
        return 0.0
    if evidence.value[field] == UNKNOWN:
        return 1.0 / values(world, field)
    if believed == evidence.value[field]:
        return evidence.chance[field]
    return (1.0 - evidence.chance[field]) / (values(world, field) - 1)


@inline
def expect_gains(world, task, evidence, table, left):
    """Write into `gain` what each answer is expected to repair by the end."""
    gain = evidence.gain
    for field in range(world.fields):
        gain[field] = 1.0 - right(world, evidence, field, table.value[field])
    for kind in FIELD_KINDS:
        stays = power(1.0 - hazard(evidence, kind), left)
        for field in fields_of(world, kind):
            if loose(world, task, kind, field, evidence.value[field]):
                gain[field] *= stays
    credit(world, task, gain)


@inline
def power(base, exponent):
    """Raise to a whole power by repeated squaring: only multiplications, in one order."""
    result = 1.0
    while exponent > 0:
        if exponent & 1:
            result = result * base
        base = base * base
        exponent >>= 1
    return result


# what anybody may know of tools: loaded ones may unload, all else follows from what was called and is loaded


@inline
def derive_tools(world, task, evidence, observation):
    """A valid call proves its tool complete; a dependency's chance is the product of its prerequisites'."""
    if observation.valid and observation.action >= 0:
        note(evidence, 2 * world.tools + observation.action, 1)
    for tool in range(world.tools if world.structure == TEXT else 0):
        ready = 1.0
        for other in range(tool):
            if has_bit(task.needs[tool], other):
                chance, value = evidence.chance[other], evidence.value[other]
                ready *= 0.5 if value == UNKNOWN else chance if value == 1 else 1.0 - chance
        evidence.value[world.tools + tool] = ready >= 0.5
        evidence.chance[world.tools + tool] = ready if ready >= 0.5 else 1.0 - ready


@inline
def credit_premises(world, task, gain):
    """An answer about a tool lets the agent settle anew the dependencies of the tools that need it."""
    for tool in range(1, world.tools if world.structure == TEXT else 0):
        for other in range(tool):
            if has_bit(task.needs[tool], other):
                gain[other] += SETTLED * gain[world.tools + tool]


@inline
def tools_missing(world, task, evidence, place):
    """Count the needed tools that are not loaded; without the graph go for the next action."""
    missing, needed = 0, with_bit(0, world.tools - 1)
    for tool in range(world.tools - 1, -1, -1):  # a tool comes after its prerequisites
        if has_bit(needed, tool) and evidence.value[tool] != 1:
            missing, needed = missing + 1, needed | task.needs[tool]
    return 1.0, missing if world.structure == TEXT else 1, 0.0, 0.0, 0, 0.0


# what anybody may know of places: things drift while nobody holds them, locks flip where there is a key


@inline
def loose_in_place(world, task, kind, field, value):
    """Whether a field could change by itself if it had this value; the highest of a thing is held."""
    if kind == THINGS:
        return value != world.domain[field] - 1
    return world.structure != TEXT or key_of(world, task, field - bounds(world)[LOCKS]) != NONE


@inline
def landing_in_place(world, kind):
    """The chance that a change leads back to the value that stood before."""
    return 1.0 / (world.domain[bounds(world)[THINGS]] - 1) if kind == THINGS else 1.0


@inline
def note_open(world, task, evidence):
    """A door or edge without a key is open for good."""
    for field in fields_of(world, LOCKS):
        if key_of(world, task, field - bounds(world)[LOCKS]) == NONE:
            evidence.value[field], evidence.chance[field] = 0, 1.0


@inline
def miss_here(world, evidence, observation):
    """Doubt, by Bayes' rule, what lies here by the evidence and is not seen, unless it is overlooked."""
    changes = steps = 0.0
    overlooking = DROP_PROBABILITY if world.drop > 0 else 0.0
    for field in fields_of(world, THINGS):
        if evidence.value[field] == observation.place and observation.value[field] == UNKNOWN:
            overlooked = evidence.chance[field] * overlooking
            total = overlooked + (1.0 - evidence.chance[field])
            doubted = overlooked / total if total > 0.0 else 0.0
            if evidence.watched[field]:
                gone = 1.0 - doubted
                changes += gone
                steps += gone * min((evidence.since[field] + 1) * 0.5, mean_wait(evidence, THINGS))
            evidence.chance[field], evidence.watched[field] = doubted, 0
    evidence.changes[THINGS] += changes
    evidence.steps[THINGS] += steps


@inline
def fetch(world, task, evidence, place):
    """Compare the walk to where the goal object was last, and a search if it is gone, with an answer.

    A search is taken to last as many steps as there are rooms; an answer leads to a room at the mean
    distance, if the object is still there on arrival.
    """
    rooms, thing, where = world.rooms, world.goal, evidence.value[world.goal]
    gone = hazard(evidence, THINGS) if loose(world, task, THINGS, thing, where) else 0.0
    distance, sure = 0, 0.0  # of what is held, and of what was never seen
    if 0 <= where < rooms:
        distance, sure = abs(where - place), evidence.chance[thing]

    beyond = rooms - 1 - place
    total = place * (place + 1) + beyond * (beyond + 1)  # twice the distances to all rooms, summed
    mean = total / (2.0 * rooms)
    there = power(1.0 - gone, (total + rooms) // (2 * rooms))
    answered = there * (mean + 1.0) + (1.0 - there) * (mean + rooms)
    saved = (1.0 - sure) * ((distance + rooms) - answered)
    return sure * power(1.0 - gone, distance), distance + 1, gone, 1.0 / rooms, thing, saved


@inline
def walk(world, task, evidence, place):
    """The way to the target is at least as long as over open edges; walking shows what a probe would."""
    return 1.0, evidence.distance[place] if world.structure == TEXT else 1, 0.0, 0.0, 0, 0.0


@inline
def study_graph(world, task, evidence):
    """Note which edges are open for good, and measure every node's distance to the target over all edges."""
    note_open(world, task, evidence)
    graphnav.search(task, graphnav.all_edges(world), task.target, graphnav.NOWHERE)
    evidence.distance[task.target] = 0
    for number in range(1, world.nodes):  # in the order in which they were reached
        node = task.scratch.queue[number]
        evidence.distance[node] = evidence.distance[task.scratch.came_from[node]] + 1


# what differs by world


bounds = of_each(  # where the fields of each kind begin, and where the last end
    lambda world: (0, world.tools, world.tools),
    lambda world: (0, world.objects, world.held),
    lambda world: (1, 1 + world.keys, world.fields),
    otherwise=lambda world: (0, world.fields, world.fields),
)
values = of_each(  # how many values a field has; of tools two, which spares a division
    lambda world, field: 2,
    lambda world, field: world.domain[field],
    lambda world, field: world.domain[field],
    otherwise=lambda world, field: world.domain[field],
)
done_value = of_each(
    lambda world, task: 1,
    lambda world, task: 1,
    lambda world, task: task.target,
    otherwise=lambda world, task: 1,
)
touched = of_each(  # the field that the own action may have changed, or NONE
    lambda world, action: max(action, NONE),
    lambda world, action: (action - world.pick) % world.held if action >= world.pick else NONE,
    lambda world, action: 1 + action - world.nodes if action >= world.nodes else NONE,
    otherwise=lambda world, action: NONE,
)
loose = of_each(  # whether a field could change by itself if it had a value
    lambda world, task, kind, field, value: value == 1 and field < world.tools - 1,  # but the target stays
    loose_in_place,
    loose_in_place,
    otherwise=lambda world, task, kind, field, value: False,
)
key_of = of_each(  # a door's or edge's key, or NONE
    nothing,
    lambda world, task, lock: task.key_of_door[lock],
    lambda world, task, lock: task.key_of_edge[lock],
)
landing = of_each(zero, landing_in_place, landing_in_place, otherwise=zero)
study = of_each(nothing, note_open, study_graph)
miss = of_each(nothing, miss_here, miss_here)
derive = of_each(derive_tools, nothing, nothing)
credit = of_each(credit_premises, nothing, nothing)
prospect = of_each(
    tools_missing, fetch, walk, otherwise=lambda world, task, evidence, place: (1.0, 1, 0.0, 0.0, 0, 0.0)
)
