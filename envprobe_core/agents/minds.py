"""What the simulated agent makes of a world: a module a world, with the same functions.

The paper's worlds have theirs in this folder. A world of one's own has these functions in its own module,
beside MIND, the record of what the agent remembers.
"""

from types import ModuleType

from envprobe_core.agents import mind_of_graphs, mind_of_rooms, mind_of_tools
from envprobe_core.worlds import optional, required

MINDS: dict[str, ModuleType] = {
    "tooldag": mind_of_tools,
    "objectstate": mind_of_rooms,
    "graphnav": mind_of_graphs,
}


def mind_of(world: ModuleType) -> ModuleType:
    """The module of the agent's mind in a world.

    >>> from envprobe_core.worlds import tooldag
    >>> mind_of(tooldag).MIND.names
    ('calls', 'failed_at')
    """
    return MINDS.get(world.NAME, world)


@required(mind_of)
def meet(world, task, mind):
    """Begin to remember."""


@required(mind_of)
def remember(world, task, mind, observation, t):
    """Note what is worth remembering of a step."""


@required(mind_of)
def conclude(world, task, observation, news):
    """Add to the news what the outcome of the agent's own action tells beyond what is seen."""


@optional(mind_of)
def derive(world, task, table, observation, told, news):
    """Add to the news what follows by the task graph from what was seen or told."""


@required(mind_of)
def plan(world, task, table, mind, place):
    """The next task action, by the beliefs in the table."""


@optional(mind_of)
def wander(world, task, observation, recent, again, lost, word):
    """The next task action of a scribe, which keeps no table; without a rule of its own it waits."""
    return -1
