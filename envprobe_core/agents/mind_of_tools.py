"""What the simulated agent makes of tools: which calls it remembers, what it concludes, and its plan."""

from envprobe_core.compiled.noise import choice
from envprobe_core.compiled.numba_support import inline
from envprobe_core.compiled.records import (
    NO_ACTION,
    TEXT,
    WAIT,
    Int,
    add,
    bits_from,
    contains_all,
    dtype_of,
    fill,
    has_bit,
    with_bit,
)
from envprobe_core.worlds.tooldag import TOOLS

FAILURE_MEMORY = 5  # calls; for so long an agent without the graph avoids a tool whose call failed

MIND = dtype_of(("calls", Int), ("failed_at", Int, TOOLS[-1]))
"""The agent's own calls: how many, and when one of each tool failed last."""


@inline
def meet(world, task, mind):
    """Begin with no calls."""
    mind.calls = 0
    fill(mind.failed_at, -FAILURE_MEMORY)


@inline
def remember(world, task, mind, observation, t):
    """Count own calls and note when one failed; with the graph there is no need to."""
    if world.structure != TEXT and observation.fresh and observation.action >= 0:
        if not observation.valid:
            mind.failed_at[observation.action] = mind.calls
        mind.calls += 1


@inline
def conclude(world, task, observation, news):
    """A valid call completes its tool; where the graph is unknown its validity tells the dependency too."""
    tools, action, valid = world.tools, observation.action, observation.valid
    if valid:
        add(news, 2 * tools + action, 1)
    if world.structure != TEXT and action >= 0 and (valid or observation.value[action] == 0):
        add(news, tools + action, valid)


@inline
def derive(world, task, table, observation, told, news):
    """Settle the dependencies of the tools that need a tool just seen or told."""
    tools, heard = world.tools, 0
    if world.structure != TEXT:
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
    if world.structure == TEXT:
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
