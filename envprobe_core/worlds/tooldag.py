"""ToolDAGWorld: tools with prerequisites; loaded tools may become unavailable.

Description: load tools along a dependency graph until the target, the last tool, completes.
Fields: loaded, dependency satisfied, subgoal complete, one of each a tool; all procedural.
Actions: `call(t)`, valid if t is not loaded and every prerequisite is.
Observations: local: the called tool and its prerequisites; released: every tool's loaded state.
Mutation: a loaded tool, the target aside, becomes unloaded.
"""

import numpy as np

from envprobe_core.engine.noise import choice, draw, happens
from envprobe_core.engine.numba_support import inline
from envprobe_core.engine.records import (
    NO_ACTION,
    NONE,
    UNKNOWN,
    WAIT,
    Int,
    add,
    bits_from,
    contains_all,
    dtype_of,
    fill,
    has_bit,
    last_by_name,
    overlook,
    see,
    with_bit,
    without_bit,
)
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime
from envprobe_core.worlds.base import PROCEDURAL, World, lowest_draw, ratio

NAME, TITLE, CODE = "tooldag", "ToolDAGWorld", 1
TOOLS, PREREQUISITES = (5, 9, 16), (1, 2, 3)  # by complexity, by density
RATES = {"mean": (0.02, 0.10, 0.30), "released": (0.0, 0.10, 0.25)}
FAILURE_MEMORY = 5  # calls; for so long an agent without the graph avoids a tool whose call failed


TASK = dtype_of(("needs", np.int64, TOOLS[-1]), ("ancestors", np.int64, TOOLS[-1]))
"""Each tool's prerequisites and, direct or not, all tools it depends on, as `sets`."""
STATE = dtype_of(("loaded", np.int64), ("complete", np.int64), ("place", Int))
"""Which tools are loaded and which ever were, as sets; tools have no place, so that it is always 0."""
MIND = dtype_of(("calls", Int), ("failed_at", Int, TOOLS[-1]))
"""The agent's own calls: how many, and when one of each tool failed last."""


def describe(regime: Regime, protocol: Protocol, tools: int | None = None) -> World:
    """Build the world of a regime: 5, 9 or 16 tools with 1, 2 or 3 prerequisites each.

    Args:
        regime: its levels.
        protocol: its switches.
        tools: another number of tools, at most 16.
    """
    tools = TOOLS[regime.complexity] if tools is None else tools
    parts = ("loaded", "dependency satisfied", "subgoal complete")
    each = [(part, tool) for part in parts for tool in range(tools)]
    fields = [
        (f"{part}({tool})", PROCEDURAL, 2, part == "loaded" and tool < tools - 1) for part, tool in each
    ]
    actions = [f"call({tool})" for tool in range(tools)]
    goals = (tools - 1, 2 * tools - 1, 3 * tools - 1)
    rules = {"tools": tools, "prerequisites": PREREQUISITES[regime.density]}  # of each tool
    return World((NAME, TITLE, CODE), regime, protocol, RATES, fields, actions, goals, rules)


# the world


@inline
def create(world, task, state, key):
    """Draw each tool's prerequisites among the earlier tools; nothing is loaded."""
    tools = world.tools
    for tool in range(tools):
        needs, candidates, wanted = 0, tool, world.prerequisites
        if tool > 0 and not world.sampled:  # every tool needs the one before it
            needs, candidates, wanted = with_bit(0, tool - 1), tool - 1, wanted - 1
        for _ in range(min(wanted, candidates)):
            needs = with_bit(needs, lowest_draw(key, tool * tools, needs, candidates))
        task.needs[tool] = task.ancestors[tool] = needs
        for other in range(tool):
            if has_bit(needs, other):
                task.ancestors[tool] |= task.ancestors[other]
    state.loaded = state.complete = 0


@inline
def weigh(world, task, weight):
    """Weigh a tool's fields by the number of needed tools that depend on it, itself included."""
    tools = world.tools
    needed = with_bit(task.ancestors[tools - 1], tools - 1)
    for tool in range(tools):
        count = 0
        for other in range(tool, tools):
            count += has_bit(needed, other) & has_bit(with_bit(task.ancestors[other], other), tool)
        weight[tool] = weight[tools + tool] = weight[2 * tools + tool] = count


@inline
def reveal(world, task, state, gold):
    """Write the true value of every field."""
    tools = world.tools
    for tool in range(tools):
        gold[tool] = has_bit(state.loaded, tool)
        gold[tools + tool] = contains_all(state.loaded, task.needs[tool])
        gold[2 * tools + tool] = has_bit(state.complete, tool)


@inline
def succeeded(world, task, state):
    """Whether the target is complete."""
    return has_bit(state.complete, world.tools - 1)


@inline
def act(world, task, state, action):
    """Call a tool; return whether that was valid."""
    if has_bit(state.loaded, action) or not contains_all(state.loaded, task.needs[action]):
        return False
    state.loaded, state.complete = with_bit(state.loaded, action), with_bit(state.complete, action)
    return True


@inline
def mutate(world, task, state, key, tick):
    """Unload tools, the target aside, at their rate."""
    lost = 0
    for tool in range(world.tools - 1):
        lost |= happens(draw(key, tick, tool), world.mutation) << tool
    state.loaded &= ~lost


@inline
def show(world, task, state, action, word, observation):
    """Show the called tool and its prerequisites, perhaps not the last; or every tool, perhaps one hidden."""
    if not world.local:
        for tool in range(world.tools):
            see(observation, tool, has_bit(state.loaded, tool))
        if happens(word, world.drop):
            observation.hidden = last_by_name(state.loaded)
    elif action >= 0:
        see(observation, action, has_bit(state.loaded, action))
        for tool in range(action):
            if has_bit(task.needs[action], tool):
                see(observation, tool, has_bit(state.loaded, tool))
        if happens(word, world.drop):
            overlook(observation)


@inline
def roles(world, task, place, action, d):
    """Write the dependency role of every field for a call: 1 what it reads, .5 what that depends on."""
    tools = world.tools
    fill(d, 0.0)
    if action >= 0:
        for tool in range(tools):
            d[tools + tool] = 0.5 * has_bit(task.ancestors[action], tool)
            d[tool] = d[tools + tool] + 0.5 * has_bit(task.needs[action], tool)
        d[action] = d[tools + action] = 1.0


@inline
def uses(world, task, place, action, used):
    """Mark what the agent itself knows a call to use; without the graph these are the tool's own fields."""
    fill(used, 0)
    if action >= 0:
        for tool in range(world.tools):
            used[tool] = world.knows_graph & has_bit(task.needs[action], tool)
        used[action] = used[world.tools + action] = 1


# the agent's mind


@inline
def meet(world, task, mind):
    """Begin with no calls."""
    mind.calls = 0
    fill(mind.failed_at, -FAILURE_MEMORY)


@inline
def remember(world, task, mind, observation, t):
    """Count own calls and note when one failed; with the graph there is no need to."""
    if not world.knows_graph and observation.fresh and observation.action >= 0:
        if not observation.valid:
            mind.failed_at[observation.action] = mind.calls
        mind.calls += 1


@inline
def conclude(world, task, observation, news):
    """A valid call completes its tool; where the graph is unknown its validity tells the dependency too."""
    tools, action, valid = world.tools, observation.action, observation.valid
    if valid:
        add(news, 2 * tools + action, 1)
    if not world.knows_graph and action >= 0 and (valid or observation.value[action] == 0):
        add(news, tools + action, valid)


@inline
def derive(world, task, table, observation, told, news):
    """Settle the dependencies of the tools that need a tool just seen or told."""
    tools, heard = world.tools, 0
    if not world.knows_graph:
        return
    for number in range(observation.count):
        heard = with_bit(heard, observation.field[number])
    if 0 <= told < tools:
        heard = with_bit(heard, told)
    loaded = bits_from(table.value, 0, world.tools)
    for tool in range(tools):
        if task.needs[tool] & heard != 0:
            add(news, tools + tool, contains_all(loaded, task.needs[tool]))


@inline
def plan(world, task, table, mind, place):
    """Call the lowest needed tool not believed loaded, or, without the graph, the lowest not just failed."""
    tools, loaded = world.tools, bits_from(table.value, 0, world.tools)
    if table.value[world.fields - 1] == 1:
        return WAIT
    if world.knows_graph:
        action, needed = tools - 1, with_bit(0, tools - 1)
        for tool in range(tools - 1, -1, -1):  # a tool comes after its prerequisites
            if has_bit(needed & ~loaded, tool):
                action, needed = tool, needed | task.needs[tool]
        return action
    for tool in range(tools):
        if not has_bit(loaded, tool) and mind.calls - mind.failed_at[tool] >= FAILURE_MEMORY:
            return tool
    for tool in range(tools):
        if not has_bit(loaded, tool):
            return tool
    return tools - 1


@inline
def wander(world, task, observation, recent, again, lost, word):
    """Choose as the scribe does: the last call, a random tool that is not completed, or the lowest."""
    done, count = bits_from(observation.value, 0, world.tools), 0
    for tool in range(world.tools):
        count += not has_bit(done, tool)
    if again != NO_ACTION:
        return again
    left = choice(word, count) if lost and count > 0 else 0
    for tool in range(world.tools):
        if not has_bit(done, tool):
            if left == 0:
                return tool
            left -= 1
    return world.tools - 1


@inline
def stand_in(world, task, observation, word):
    """Call the first tool that is not completed and whose inputs are there, as the public harness does."""
    done = bits_from(observation.value, 0, world.tools)
    there = done if observation.hidden == NONE else without_bit(done, observation.hidden)
    for tool in range(world.tools):
        if not has_bit(done, tool) and contains_all(there, task.needs[tool]):
            return tool
    return 0


# the public code's estimators


@inline
def scribe_lists(world, scoring, idle, tool):
    """Whether a scribe lists a tool as open: its target alone, or all of them while none is loaded."""
    return tool == world.tools - 1 or (scoring.lists_all and idle)


@inline
def informs(world, task, value, gold, field, named, placed, scoring):
    """Whether the public code calls the probe of a field useful: a value, a call's inputs, a schema."""
    tools, loaded = world.tools, bits_from(value, 0, world.tools)
    tool = field % tools
    if field < tools:
        return (gold[tool] == 1) != has_bit(loaded, tool)
    unknown = not contains_all(loaded, task.needs[tool])
    if field < 2 * tools:  # its inputs are missing, or it is ready and the agent takes it to be open
        listed = scoring.keeps_open and not has_bit(loaded, tool)
        if scoring.bare:
            listed = scribe_lists(world, scoring, loaded == 0, tool)
        return gold[field] != 1 or listed or unknown
    return unknown or not has_bit(loaded, tool)


@inline
def mismatched(world, task, value, gold, action, named):
    """Whether the public oracle finds something wrong with what is reported, by name or anywhere."""
    tools, target, known, there = world.tools, world.tools - 1, 0, 0
    for tool in range(tools):
        known += value[tool] == 1
        there += gold[tool] == 1
        if not named and (value[tools + tool] != UNKNOWN and gold[tools + tool] == 0):
            return True
        if not named and value[tool] != UNKNOWN and (value[tool] == 1) != (gold[tool] == 1):
            return True
    if named and ((value[target] == 1) != (gold[target] == 1) or (action >= 0 and gold[tools + action] == 0)):
        return True
    return known != there


@inline
def overlap(world, belief, gold, first, stayed, scoring):
    """The weighted overlap: .3 completed, .4 values, .3 open."""
    completed = available = matched = open_right = open_any = 0
    idle = bits_from(belief, 0, world.tools) == 0
    for tool in range(world.tools):
        loaded, is_loaded = belief[tool] == 1, gold[tool] == 1
        open_, is_open = scoring.keeps_open & (belief[tool] == 0), gold[tool] != 1
        if scoring.bare:
            open_ = scribe_lists(world, scoring, idle, tool)
        available += is_loaded
        matched += loaded & is_loaded
        completed += loaded | is_loaded
        open_right += open_ & is_open
        open_any += open_ | is_open
    values = ratio(matched if scoring.values_match else 0, available)
    return (0.3 * ratio(matched, completed) + 0.4 * values) + 0.3 * ratio(open_right, open_any)
