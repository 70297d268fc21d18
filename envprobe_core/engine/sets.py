"""Sets of tools, doors or nodes: a whole number each, whose bit i says that number i is in it."""

from envprobe_core.engine.compiling import compiled


@compiled
def has(members, one):
    """Say whether one is in the set."""
    return (members >> one) & 1 == 1


@compiled
def covers(members, others):
    """Say whether all others are in the set."""
    return others & ~members == 0


@compiled
def plus(members, one):
    """Add one."""
    return members | (1 << one)


@compiled
def minus(members, one):
    """Take one out."""
    return members & ~(1 << one)
