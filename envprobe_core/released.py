"""The public code (commit 3266b54) where it goes its own way: what its harness does, and its estimators.

Whatever a page calls *as released* is a switch of the protocol at its second value, asked for where it acts.
What takes more than a line there stands here: the action that the harness finds for an agent that asks for a
probe (`baselines`), which probes are called useful (`useful`), when an oracle probes (`oracle`), and the
overlap of slots that is its accuracy (`accuracy`).
"""

import numpy as np

from envprobe_core.compiled.noise import choice
from envprobe_core.compiled.numba_support import inline
from envprobe_core.compiled.records import (
    BY_NAME,
    NONE,
    TEXT,
    UNKNOWN,
    bits_from,
    contains_all,
    has_bit,
    without_bit,
)
from envprobe_core.worlds import graphnav, of_each, zero
from envprobe_core.worlds.base import ratio


@inline
def informs(params, task, value, gold, field, by_name, names_goal):
    """Whether the public code calls the probe of a field useful.

    Args:
        params: of the condition.
        task: the world's task graph.
        value: [field], the agent's beliefs.
        gold: [field].
        field: what is probed.
        by_name: whether the policy probes what a report names, not a field that it draws.
        names_goal: whether a scribe's report names its goal at this step, and not where it is.
    """
    named = params.habits.scribe and by_name
    placed = named and not names_goal
    return informs_in(params.world, task, params.habits, value, gold, field, named, placed)


@inline
def keeps_open(habits):
    """Whether the agent keeps its list of open tools, 1 or 0."""
    return habits.keeps_open | habits.copies_gold


@inline
def is_bare(habits):
    """Whether an agent writes down no subgoals and no place of what is held, 1 or 0: a scribe does not."""
    return habits.scribe & (1 - habits.copies_gold)


# tools


@inline
def stand_in_tools(world, task, observation, word):
    """Call the first tool that is not completed and whose inputs are there, as the public harness does."""
    done = bits_from(observation.value, 0, world.tools)
    there = done if observation.hidden == NONE else without_bit(done, observation.hidden)
    for tool in range(world.tools):
        if not has_bit(done, tool) and contains_all(there, task.needs[tool]):
            return tool
    return 0


@inline
def scribe_lists(world, habits, idle, tool):
    """Whether a scribe lists a tool as open: its target alone, or all of them while none is loaded."""
    return tool == world.tools - 1 or (habits.lists_all and idle)


@inline
def informs_tools(world, task, habits, value, gold, field, by_name, placed):
    """Whether the public code calls the probe of a field useful: a value, a call's inputs, a schema."""
    tools, loaded = world.tools, bits_from(value, 0, world.tools)
    tool = field % tools
    if field < tools:
        return (gold[tool] == 1) != has_bit(loaded, tool)
    unknown = not contains_all(loaded, task.needs[tool])
    if field < 2 * tools:  # its inputs are missing, or it is ready and the agent takes it to be open
        listed = keeps_open(habits) and not has_bit(loaded, tool)
        if is_bare(habits):
            listed = scribe_lists(world, habits, loaded == 0, tool)
        return gold[field] != 1 or listed or unknown
    return unknown or not has_bit(loaded, tool)


@inline
def mismatched_tools(world, task, value, gold, action, by_name):
    """Whether the public oracle finds something wrong with what is reported, by name or anywhere."""
    tools, target, known, there = world.tools, world.tools - 1, 0, 0
    for tool in range(tools):
        known += value[tool] == 1
        there += gold[tool] == 1
        if not by_name and (value[tools + tool] != UNKNOWN and gold[tools + tool] == 0):
            return True
        if not by_name and value[tool] != UNKNOWN and (value[tool] == 1) != (gold[tool] == 1):
            return True
    if by_name and (value[target] == 1) != (gold[target] == 1):
        return True
    if by_name and action >= 0 and gold[tools + action] == 0:
        return True
    return known != there


@inline
def overlap_tools(world, protocol, habits, belief, gold, first, stayed):
    """The weighted overlap: .3 completed, .4 values, .3 open."""
    completed = available = matched = open_right = open_any = 0
    idle = bits_from(belief, 0, world.tools) == 0
    for tool in range(world.tools):
        loaded, is_loaded = belief[tool] == 1, gold[tool] == 1
        open_, is_open = keeps_open(habits) & (belief[tool] == 0), gold[tool] != 1
        if is_bare(habits):
            open_ = scribe_lists(world, habits, idle, tool)
        available += is_loaded
        matched += loaded & is_loaded
        completed += loaded | is_loaded
        open_right += open_ & is_open
        open_any += open_ | is_open
    values = ratio(matched if protocol.encoding == TEXT or habits.writes else 0, available)
    return (0.3 * ratio(matched, completed) + 0.4 * values) + 0.3 * ratio(open_right, open_any)


# rooms


@inline
def stand_in_rooms(world, task, observation, word):
    """Pick up something in view, or else move on to the right, as the public harness does."""
    place, count = observation.place, 0
    for item in range(world.objects):
        count += observation.value[item] == place
    left = choice(word, max(count, 1))  # there the first by name, which is any
    for item in range(world.objects):
        left -= observation.value[item] == place
        if left < 0:
            return world.pick + item
    return place + 1 if place < world.doors else place  # there is no further room: not valid


@inline
def held_differ(world, value, gold):
    """Whether the objects believed held are not those that are."""
    differ = False
    for field in range(world.held, world.fields):
        differ |= (value[field] == 1) != (gold[field] == 1)
    return differ


@inline
def informs_rooms(world, task, habits, value, gold, field, by_name, placed):
    """Whether the public code calls the probe of a field useful: the own room never is."""
    if placed:
        return False
    if field < world.held:
        return value[field] != gold[field]
    return held_differ(world, value, gold)


@inline
def mismatched_rooms(world, task, value, gold, action, by_name):
    """Whether the public oracle finds something wrong with what is reported, by name or anywhere."""
    wrong = held_differ(world, value, gold)
    for field in range(world.held):
        wrong |= value[field] != gold[field]
    return wrong


@inline
def overlap_rooms(world, protocol, habits, belief, gold, first, stayed):
    """The weighted overlap: .2 position, .15 inventory, .3 objects, .2 doors, .15 subgoals.

    A subgoal is a key held or a door unlocked that was locked at `first`; a scribe names none.
    """
    right_objects = right_doors = right_held = any_held = right_done = any_done = 0
    for item in range(world.objects):
        holds, is_held = belief[world.held + item] == 1, gold[world.held + item] == 1
        right_objects += (belief[item] == gold[item]) & ~(is_bare(habits) & is_held)
        right_held += holds & is_held
        any_held += holds | is_held
        if item < world.keys:
            right_done += holds & is_held & ~is_bare(habits)
            any_done += (holds & ~is_bare(habits)) | is_held
    for field in range(world.objects, world.held):
        right_doors += belief[field] == gold[field]
        believed = (belief[field] == 0) & (first[field] == 1) & ~is_bare(habits)
        unlocked = (gold[field] == 0) & (first[field] == 1)
        right_done += believed & unlocked
        any_done += believed | unlocked
    subgoals = ratio(right_done, any_done)
    position_and_inventory = 0.2 * stayed + 0.15 * ratio(right_held, any_held)
    objects, doors = right_objects / world.objects, right_doors / world.doors
    return ((position_and_inventory + 0.3 * objects) + 0.2 * doors) + 0.15 * subgoals


# graphs


@inline
def stand_in_graph(world, task, observation, word):
    """Move to the neighbour in view that comes first by name, as the public harness does."""
    node = observation.place
    for other in BY_NAME:
        if other != observation.hidden and graphnav.edge_between(task, node, other) != NONE:
            return np.int64(other)
    for key in range(world.keys):
        if observation.value[1 + key] == node:
            return world.nodes + key
    return 1


@inline
def informs_graph(world, task, habits, value, gold, field, by_name, placed):
    """Whether the public code calls the probe of a field useful: a neighbourhood always is."""
    return by_name or value[field] != gold[field]


@inline
def mismatched_graph(world, task, value, gold, action, by_name):
    """Whether the public oracle finds something wrong with what is reported, by name or anywhere."""
    for field in range(1, 1 + world.keys + task.edges):
        known = field > world.keys or (not by_name and value[field] != UNKNOWN)
        if known and value[field] != gold[field]:
            return True
    return False


@inline
def overlap_graph(world, protocol, habits, belief, gold, first, stayed):
    """The weighted overlap: .25 position, .20 inventory, .30 edges, .25 keys."""
    position, edges, right, keys, both, either = belief[0] == gold[0], 0, 0, 0, 0, 0
    for field in range(1 + world.keys, world.fields):
        edges += gold[field] != UNKNOWN
        right += (gold[field] != UNKNOWN) & (belief[field] == gold[field])
    for field in range(1, 1 + world.keys):
        keys += (belief[field] == gold[field]) & ~(is_bare(habits) & (gold[field] == world.nodes))
        both += (belief[field] == world.nodes) & (gold[field] == world.nodes)
        either += (belief[field] == world.nodes) | (gold[field] == world.nodes)
    inventory = 0.20 * ratio(both, either)
    return ((0.25 * position + inventory) + 0.30 * (right / edges)) + 0.25 * (keys / world.keys)


# what differs by world; one of somebody's own may have functions of these names


@inline
def never(world, *asked):
    """False, of a world of somebody's own that has no such rule."""
    return False


@inline
def wait(world, *asked):
    """WAIT, in a world of somebody's own that has no such rule."""
    return -1


stand_in = of_each(stand_in_tools, stand_in_rooms, stand_in_graph, otherwise=wait, name="stand_in")
"""What the harness does for an agent that asks for a probe where the policy acts."""
informs_in = of_each(informs_tools, informs_rooms, informs_graph, otherwise=never, name="informs")
mismatched = of_each(mismatched_tools, mismatched_rooms, mismatched_graph, otherwise=never, name="mismatched")
"""Whether the oracle finds a report wrong, by what it names or anywhere."""
overlap = of_each(overlap_tools, overlap_rooms, overlap_graph, otherwise=zero, name="overlap")
"""The weighted overlap of slots, whose mean is the public code's accuracy."""
