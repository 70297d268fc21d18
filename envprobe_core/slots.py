"""The public code's accuracy: a weighted overlap of the slots of a state description (protocol `released`).

Weights: tools .3 completed, .4 values, .3 open; rooms .20 position, .15 inventory, .30 objects, .20 doors,
.15 subgoals; graph .25 position, .20 inventory, .30 edges, .25 keys. Sets count by Jaccard, maps by the
share of gold entries matched.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from envprobe_core import bits
from envprobe_core.bits import Bits, count_true
from envprobe_core.trajectory import Trajectory
from envprobe_core.worlds.base import Floats, Mask, Values, World

TOOL_WEIGHTS = (0.3, 0.4, 0.3)
ROOM_WEIGHTS = (0.20, 0.15, 0.30, 0.20, 0.15)
GRAPH_WEIGHTS = (0.25, 0.20, 0.30, 0.25)
_COUNTS = np.arange(32)
_RATIOS = np.where(_COUNTS == 0, 1.0, _COUNTS[:, None] / np.maximum(_COUNTS, 1)).ravel()


def jaccard(believed: Mask, gold: Mask) -> Floats:
    """Return the overlap of two sets [..., member]; two empty sets count 1."""
    return _overlap(bits.pack(believed), bits.pack(gold))


def _overlap(believed: Bits, gold: Bits) -> Floats:
    return _ratio(np.bitwise_count(believed & gold), np.bitwise_count(believed | gold))


def _ratio(part: npt.NDArray[np.integer], whole: npt.NDArray[np.integer]) -> Floats:
    """Divide counts of at most 31; nothing out of nothing counts 1."""
    return _RATIOS.take(part * np.int64(len(_COUNTS)) + whole)


def share(matched: Mask) -> Floats:
    """Return the share of matching entries [..., entry]."""
    return count_true(matched) / matched.shape[-1]


def slot_overlap(
    trajectory: Trajectory, world: World, lagged: bool, values_match: Mask, keeps_open: Mask
) -> Floats:
    """Score the state at times 1..H, [row, step]; worked out time by time, as recordings lie in memory.

    Args:
        trajectory: the recording.
        world: the world, for the layout of its fields.
        lagged: whether the belief before the action meets gold after it, instead of the belief after it.
        values_match: [row], whether a tool value written as the agent writes it can match gold.
        keeps_open: [row], whether the agent keeps its list of open tools.
    """
    belief, gold, place = (
        array.swapaxes(0, 1) for array in (trajectory.belief, trajectory.gold, trajectory.place)
    )
    belief, gold = belief[:-1] if lagged else belief[1:], gold[1:]
    if world.name == "tooldag":
        overlap = _tools(belief, gold, world.actions, values_match, keeps_open)
    elif world.name == "graphnav":
        overlap = _graph(belief, gold, world)
    else:
        at_place = place[:-1] == place[1:] if lagged else np.ones(gold.shape[:2], dtype=bool)
        overlap = _rooms(belief, gold, at_place, world)
    return overlap.swapaxes(0, 1)


def _weighted(weights: tuple[float, ...], *parts: npt.NDArray[np.generic]) -> Floats:
    total = weights[0] * parts[0]
    for weight, part in zip(weights[1:], parts[1:], strict=True):
        total = total + weight * part
    return total


def _tools(belief: Values, gold: Values, tools: int, values_match: Mask, keeps_open: Mask) -> Floats:
    loaded = bits.pack((belief == 1)[..., :tools])
    unloaded = bits.pack((belief == 0)[..., :tools]) * keeps_open
    available = bits.pack((gold == 1)[..., :tools])
    matched = np.bitwise_count(loaded & available) * values_match
    values = _ratio(matched, np.bitwise_count(available))
    is_open = ~available & (bits.single(tools) - bits.ONE)
    return _weighted(TOOL_WEIGHTS, _overlap(loaded, available), values, _overlap(unloaded, is_open))


def _rooms(belief: Values, gold: Values, at_place: Mask, world: World) -> Floats:
    objects = sum(name.startswith("held") for name in world.field_names)
    doors = world.fields - 2 * objects
    held = slice(objects + doors, None)
    goal = list(world.goal_fields[1:])
    same, believed, true = belief == gold, belief == 1, gold == 1
    return _weighted(
        ROOM_WEIGHTS,
        at_place,
        jaccard(believed[..., held], true[..., held]),
        share(same[..., :objects]),
        share(same[..., objects : objects + doors]),
        jaccard(believed[..., goal], true[..., goal]),
    )


def _graph(belief: Values, gold: Values, world: World) -> Floats:
    nodes = int(world.domain[0])
    keys = slice(1, 1 + sum(name.startswith("location") for name in world.field_names))
    same = belief == gold
    return _weighted(
        GRAPH_WEIGHTS,
        same[..., 0],
        jaccard((belief == nodes)[..., keys], (gold == nodes)[..., keys]),
        share(same[..., keys.stop :]),
        share(same[..., keys]),
    )
