"""ToolDAGWorld: tools with prerequisites; loaded tools may become unavailable.

Description: load tools along a dependency graph until the target, the last tool, completes.

| field | type | true if |
|---|---|---|
| `loaded(t)` | procedural | tool t can be used now |
| `dependency satisfied(t)` | procedural | every prerequisite of t is loaded |
| `subgoal complete(t)` | procedural | t was called with success before: this stays true |

| action | valid if | effect |
|---|---|---|
| `call(t)` | t is not loaded, and every prerequisite of t is | t is loaded, and its subgoal complete |

Observation: the tool that was called and its prerequisites, now and then without the last. As released the
loaded state of every tool.

Mutation: a loaded tool, the target aside, becomes unloaded.
"""

import numpy as np

from envprobe_core.compiled.noise import draw, happens
from envprobe_core.compiled.numba_support import inline
from envprobe_core.compiled.records import (
    TEXT,
    Int,
    contains_all,
    dtype_of,
    fill,
    has_bit,
    last_by_name,
    overlook,
    see,
    with_bit,
)
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime
from envprobe_core.worlds.base import PROCEDURAL, World, lowest_draw

NAME, TITLE, CODE = "tooldag", "ToolDAGWorld", 1
TOOLS, PREREQUISITES = (5, 9, 16), (1, 2, 3)  # by complexity, by density
RATES = {"mean": (0.02, 0.10, 0.30), "released": (0.0, 0.10, 0.25)}


TASK = dtype_of(("needs", np.int64, TOOLS[-1]), ("ancestors", np.int64, TOOLS[-1]))
"""Each tool's prerequisites and, direct or not, all tools it depends on, as `sets`."""
STATE = dtype_of(("loaded", np.int64), ("complete", np.int64), ("place", Int))
"""Which tools are loaded and which ever were, as sets; tools have no place, so that it is always 0."""


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


@inline
def create(world, task, state, key):
    """Draw each tool's prerequisites among the earlier tools; nothing is loaded."""
    tools = world.tools
    for tool in range(tools):
        needs, candidates, wanted = 0, tool, world.prerequisites
        if tool > 0 and world.instances == TEXT:  # every tool needs the one before it
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
    if world.sight != TEXT:
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
            used[tool] = (world.structure == TEXT) & has_bit(task.needs[action], tool)
        used[action] = used[world.tools + action] = 1
