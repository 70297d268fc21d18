"""Sets of tools, doors or nodes: a whole number each, whose bit i says that number i is in it."""

from envprobe_core.engine.compiling import compiled
from envprobe_core.engine.records import NONE


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


@compiled
def of_ones(values, first, count):
    """Return the set of those of `count` values, from the first on, that are 1."""
    members = 0
    for number in range(count):
        members |= (values[first + number] == 1) << number
    return members


@compiled
def earliest(members, times):
    """Return which of a set of numbers has the earliest time; NONE of an empty set."""
    first = NONE
    for number in range(len(times)):
        if has(members, number) and (first == NONE or times[number] < times[first]):
            first = number
    return first


@compiled
def last_by_name(members, count):
    """Return which of a set of numbers comes last as a word, 2 after 19; NONE of an empty set."""
    last, highest = NONE, -1
    for number in range(count):
        rank = rank_by_name(number)
        if has(members, number) and rank > highest:
            last, highest = number, rank
    return last


@compiled
def rank_by_name(number):
    """Return where a number below 20 comes among words."""
    return 20 * number if number < 10 else 20 * (number // 10) + 1 + number % 10
