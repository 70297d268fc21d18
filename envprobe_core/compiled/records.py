"""What an episode consists of: NumPy records, the same bytes for Python and for compiled functions.

A record is one row of a structured array, so a block of episodes is an array of them (`block.table.value` is
[row, field]), a copy is an assignment, and a file is `np.save`. Lists and tables have room for the largest
world; how many entries count is in the world's rules, so that a world is compiled once and not once a size.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from envprobe_core.compiled.noise import STREAMS
from envprobe_core.compiled.numba_support import inline

FIELDS = 48  # room for the belief fields of the largest world: ToolDAGWorld of 16 tools
UNKNOWN = -1  # as a value
WAIT, NO_ACTION = -1, -2  # as an action
NONE = -1  # as a field, key, edge or tool
TEXT, CODE = 0, 1  # of a protocol's switch: as the paper's text says it, or as its public code does it
LONGEST_HORIZON = 200  # steps
LONGEST_DELAY = 8  # steps by which an answer may come late
STALENESS_LIMIT, CERTAIN = 99, 100  # of what an agent reports: whole steps, whole percents

BY_NAME = np.array(sorted(range(20), key=str))  # numbers in the order of words: 0, 1, 10, 11, ...

Int, Float, Word, Flag = np.int32, np.float64, np.uint64, np.int8  # truth values of records are whole numbers


@cache
def dtype_of(*parts: Any) -> np.dtype:
    """Describe a record whose parts are attributes.

    >>> dtype_of(("value", Int), ("chance", Float)).names
    ('value', 'chance')
    """
    return np.dtype((np.record, list(parts)))


def new(kind: np.dtype, *shape: int) -> Any:
    """Make an array of records, all zero.

    >>> new(MEASURES, 3).steps.tolist()
    [0, 0, 0]
    """
    return np.zeros(shape, kind).view(np.recarray)


def record_from(values: Mapping[str, Any]) -> Any:
    """A record of numbers, arrays, other records, and mappings of such, which become records too.

    >>> record_from({"horizon": 30, "rates": {"omit": 0.5}}).rates.omit.item()
    0.5
    """
    parts = {
        name: record_from(part) if isinstance(part, Mapping) else np.asarray(part)
        for name, part in values.items()
    }
    wide = {"b": Flag, "i": np.int64, "f": Float, "u": Word}
    kinds = [(name, wide.get(part.dtype.kind, part.dtype), part.shape) for name, part in parts.items()]
    made = np.zeros(1, dtype_of(*kinds))
    for name, part in parts.items():
        made[name] = part
    return made.view(np.recarray)[0]


TABLE = dtype_of(("value", Int, FIELDS), ("staleness", Int, FIELDS), ("confidence", Int, FIELDS))
"""The belief table b_t: value, reported staleness (steps) and reported confidence (percent), [field]."""

OBSERVATION = dtype_of(
    ("count", Int), ("field", Int, FIELDS), ("value", Int, FIELDS), ("place", Int),
    ("action", Int), ("valid", Int), ("came_from", Int), ("fresh", Int), ("hidden", Int),
)  # fmt: skip
"""What the agent sees after a step: a list of fields, and the value of every field (UNKNOWN: not seen).

`action` is the task action it follows, WAIT or NO_ACTION, `valid` whether that worked, `came_from` the place
where it was taken; `fresh` says whether the world has moved since the last observation; `hidden` is a
neighbouring node that is overlooked, or NONE.
"""

RECENT = dtype_of(("action", Int, 5), ("valid", Int, 5))
"""The last five steps, step t at t % 5: the task action (NO_ACTION: a probe, or nothing yet), and whether it
was valid. The public code's prompt holds these."""

NEWS = dtype_of(("count", Int), ("field", Int, 2 * FIELDS), ("value", Int, 2 * FIELDS))
"""What the agent is about to write into its table: a list of fields and values."""

SIGHT = dtype_of(
    ("fields", Int), ("step", Int), ("horizon", Int), ("budget", Int), ("used", Int), ("threshold", Float),
    ("value", Int, FIELDS), ("staleness", Int, FIELDS), ("confidence", Int, FIELDS),
    ("c", Float, FIELDS), ("s", Float, FIELDS), ("u", Float, FIELDS), ("d", Float, FIELDS),
    ("rho", Float, FIELDS), ("highest", Float), ("first", Int),
    ("action", Int), ("risk", Int), ("draw", Word), ("scheduled", Int),
)  # fmt: skip
"""What a policy may look at when it decides (Sections 3 and 4.1), and what it makes of it.

`rho` is the score, `highest` its maximum, `first` the field that the policy ranks first; `draw` is a word of
its own random stream, `scheduled` the field that a replayed policy probes, or NONE.
"""

AWAITED = dtype_of(("field", Int, LONGEST_DELAY + 1), ("value", Int, LONGEST_DELAY + 1))
"""Answers under way, that of step t at t % (delay + 1): the field (NONE: no answer) and what will be told."""


def episode(task: np.dtype, state: np.dtype, mind: np.dtype, memories: Mapping[str, np.dtype]) -> np.dtype:
    """Describe everything that stands at a step: enough to go on from here, with the same luck or another.

    Args:
        task: the world's static task graph, which agent and policy may know.
        state: the world's hidden state.
        mind: what the simulated agent remembers of this world.
        memories: what policies remember, each by its name.

    Of the whole numbers, `t` counts steps and `tick` the times the world has moved; `succeeded` says whether
    the goal was reached, `over` whether the episode is over, `fault` whether a reader's policy failed;
    `fields` counts the fields that this instance has, which come first (a graph may lack some edges); `told`
    and `answer` are the field whose answer has come with the last step (NONE: none) and its value, `awaited`
    the answers that have not come yet, `acting` and `worked` the last step's task action and whether it was
    valid.

    Of the simulated agent, `prone` says how much of its errors falls on each field, 1 on average, and `held`
    how sure it is, where it states another confidence.
    """
    return dtype_of(
        ("keys", Word, STREAMS),
        ("t", Int), ("tick", Int), ("probes_used", Int), ("succeeded", Int), ("over", Int), ("fault", Int),
        ("fields", Int), ("recent", RECENT),
        ("task", task), ("state", state), ("gold", Int, FIELDS), ("weight", Float, FIELDS),
        ("observation", OBSERVATION), ("told", Int), ("answer", Int), ("awaited", AWAITED),
        ("acting", Int), ("worked", Int),
        ("table", TABLE), ("mind", mind), ("news", NEWS), ("has_quit", Int),
        ("prone", Float, FIELDS), ("held", Int, FIELDS),
        ("action", Int), ("risk", Int), ("used", Int, FIELDS),
        ("sight", SIGHT), *memories.items(),
    )  # fmt: skip


ENTRY = dtype_of(
    ("belief", np.int8, FIELDS), ("gold", np.int8, FIELDS),
    ("staleness", np.uint8, FIELDS), ("confidence", np.uint8, FIELDS),
    ("place", np.int8), ("action", np.int16), ("probe", np.int16),
    ("answer", np.int8), ("useful", np.int8), ("valid", np.int8), ("acted", np.int8), ("score", Float),
    ("right", Int), ("overlap", Float), ("accuracy", Float),
)  # fmt: skip
"""What a log holds of one time t: beliefs, gold, what was decided at t, and how right the beliefs are."""

MEASURES = dtype_of(
    ("steps", Int), ("accuracy", Float), ("accuracy_terminal", Float), ("accuracy_slot", Float),
    ("success", Int), ("probes", Int), ("useful", Int), ("collapse_onset", Float), ("actions", Int),
    ("valid_actions", Int), ("action_onset", Float), ("repeated_probes", Int), ("digest", Word),
)  # fmt: skip
"""What one episode was worth."""


@inline
def fill(array, value):
    """Set every entry (Numba compiles a loop in a tenth of a slice's time)."""
    for i in range(len(array)):
        array[i] = value


@inline
def first_highest(values, count):
    """The first position of the highest value."""
    best, highest = 0, values[0]
    for i in range(1, count):
        if values[i] > highest:
            best, highest = i, values[i]
    return best


@inline
def tried_recently(recent, action):
    """Whether an action was taken within the last five steps."""
    happened = False
    for step in range(5):
        happened |= recent.action[step] == action
    return happened


@inline
def failed(recent, action):
    """Whether an action was taken within the last five steps and was not valid."""
    happened = False
    for step in range(5):
        happened |= (recent.action[step] == action) & (recent.valid[step] == 0)
    return happened


@inline
def see(observation, field, value):
    """Add a field to what is seen."""
    observation.field[observation.count] = field
    observation.value[field] = value
    observation.count += 1


@inline
def overlook(observation):
    """Take the last field back."""
    observation.count -= 1
    observation.value[observation.field[observation.count]] = UNKNOWN


@inline
def add(news, field, value):
    """Add to what is going to be written."""
    news.field[news.count], news.value[news.count] = field, value
    news.count += 1


# sets of tools, doors or nodes: a whole number each, whose bit i says that number i is in it


@inline
def has_bit(members, number):
    """Whether a number is in the set."""
    return (members >> number) & 1 == 1


@inline
def contains_all(members, others):
    """Whether all others are in the set."""
    return others & ~members == 0


@inline
def with_bit(members, number):
    """The set with a number in it too."""
    return members | (1 << number)


@inline
def without_bit(members, number):
    """The set without a number."""
    return members & ~(1 << number)


@inline
def bits_from(values, first, count):
    """The set of those of `count` values, from the first on, that are 1."""
    members = 0
    for number in range(count):
        members |= (values[first + number] == 1) << number
    return members


@inline
def earliest(members, times):
    """Which of a set of numbers has the earliest time; NONE of an empty set."""
    first = NONE
    for number in range(len(times)):
        if has_bit(members, number) and (first == NONE or times[number] < times[first]):
            first = number
    return first


@inline
def last_by_name(members):
    """Which of a set of numbers below 20 comes last as a word, 2 after 19; NONE of an empty set."""
    for place in range(len(BY_NAME) - 1, -1, -1):
        if has_bit(members, BY_NAME[place]):
            return np.int64(BY_NAME[place])
    return NONE
