"""Tables that never change, compiled once for Python and for pages: the best of them, and what it scores.

A page runs this as WebAssembly (`engine.wasm`), so a zero follows the reader's hand. How right a table is
says `released.overlap`, which scores episodes too; no formula stands here a second time.
"""

import numpy as np

from envprobe_core import released, worlds
from envprobe_core.compiled.numba_support import for_pages, helper, inline, kernel
from envprobe_core.compiled.records import CODE, UNKNOWN, fill

JOINT = -1  # of a field that is read together with others
MOST_TABLES = 1024  # so many are all tried; of more, those that climb from two starts
RISE = 1e-12  # of a mean accuracy, which rounding does not make
VALUES = 32  # of a field, at most


# what the slots of a world read: each field's part, whose fields count alike, or JOINT


@inline
def read_tools(world, habits, part):
    """Tools: the list of loaded tools. No slot reads the other fields."""
    for field in range(world.fields):
        part[field] = JOINT if field < world.tools else 0


@inline
def read_rooms(world, habits, part):
    """Rooms: where each object is by itself, but for a scribe, who names no place of what is held."""
    for field in range(world.fields):
        part[field] = 0 if field < world.objects and not released.is_bare(habits) else JOINT


@inline
def read_graphs(world, habits, part):
    """Graphs: the agent's node, and the state of each edge; keys are a list too."""
    for field in range(world.fields):
        part[field] = JOINT if 0 < field <= world.keys else 1 if field else 0


@inline
def read_together(world, habits, part):
    """A world from outside: whatever its overlap reads."""
    fill(part, JOINT)


read = worlds.of_each(read_tools, read_rooms, read_graphs, otherwise=read_together)


@kernel
@for_pages
def constant(params, gold, place, steps, own_gold, own_place, own_steps, table, found, track, scratch, sums):
    """Learn the best table of some episodes, and score a table in others.

    Args:
        params: the record of the condition (`batch.kernel_params`), whose accuracy counts.
        gold: [row, time, field] of the episodes that are learned from; without rows the table is given.
        place: [row, time], where the agent is.
        steps: [row], the last time of each.
        own_gold, own_place, own_steps: the same of those that are scored.
        table: [field + 1], the table, then the place that it names.
        found: [row], filled in: the accuracy of the table by the protocol's own measure.
        track: [row, time], filled in: the same at each time; NaN where it is not measured.
        scratch: [3, field], whole numbers.
        sums: [field + 1, VALUES].
    """
    if len(gold):
        learn(params, gold, place, steps, table, scratch, sums)
    world, protocol = params.world, params.protocol
    for row in range(len(own_gold)):
        last, total = own_steps[row], 0.0
        fill(track[row], np.nan)
        for t in range(1 if protocol.accuracy == CODE else 0, last + 1):
            if protocol.accuracy == CODE:
                stays = own_place[row, t] == table[world.fields]
                track[row, t] = released.overlap(
                    world, protocol, params.habits, table, own_gold[row, t], own_gold[row, 0], stays
                )
                total += track[row, t]
            else:
                track[row, t] = share_right(world, table, own_gold[row, t])
        found[row] = total / max(last, 1) if protocol.accuracy == CODE else track[row, last]


@inline
def share_right(world, table, gold):
    """The share of an instance's fields that a table is right about."""
    right = known = 0
    for field in range(world.fields):
        known += gold[field] != UNKNOWN
        right += (gold[field] != UNKNOWN) & (table[field] == gold[field])
    return right / known


@helper
def learn(params, gold, place, steps, table, scratch, sums):
    """Fill in the table of the highest mean accuracy: modes, and of what is read together the best found."""
    world, protocol = params.world, params.protocol
    part, best, climbed = scratch[0], scratch[1], scratch[2]
    fill(part, 0)
    if protocol.accuracy == CODE:
        read(world, params.habits, part)
    for field in range(world.fields + 1):
        fill(sums[field], 0.0)
    for row in range(len(gold)):
        first, weight = steps[row], 1.0
        if protocol.accuracy == CODE:
            first, weight = 1, 1.0 / max(steps[row], 1)
        for t in range(first, steps[row] + 1):
            count_values(world, part, gold[row, t], weight, sums)
            sums[world.fields, place[row, t]] += weight
    for field in range(world.fields + 1):
        table[field] = 0
        for value in range(1, VALUES):
            if sums[field, value] > sums[field, table[field]]:
                table[field] = value
    if protocol.accuracy != CODE:
        return
    tables = 1.0
    for field in range(world.fields):
        if part[field] == JOINT:
            tables *= world.domain[field]
    if tables <= MOST_TABLES:
        try_all(params, gold, steps, table, part, best)
        return
    for field in range(world.fields):
        best[field] = climbed[field] = table[field]
        if part[field] == JOINT:
            climbed[field] = 0
    from_modes = climb(params, gold, steps, best, part)
    from_zeros = climb(params, gold, steps, climbed, part)
    for field in range(world.fields):
        table[field] = climbed[field] if from_zeros > from_modes + RISE else best[field]


@inline
def count_values(world, part, gold, weight, sums):
    """Add a state to the weights of all values; fields of one part share its weight."""
    for field in range(world.fields):
        if gold[field] == UNKNOWN:
            continue
        alike = 0
        for other in range(world.fields):
            alike += (part[other] == part[field]) & (gold[other] != UNKNOWN)
        sums[field, gold[field]] += weight / alike


@helper
def mean_overlap(params, gold, steps, table):
    """The mean over episodes of a table's mean overlap, but for the place that it names."""
    whole = 0.0
    for row in range(len(gold)):
        total = 0.0
        for t in range(1, steps[row] + 1):
            total += released.overlap(
                params.world, params.protocol, params.habits, table, gold[row, t], gold[row, 0], False
            )
        whole += total / max(steps[row], 1)
    return whole / len(gold)


@helper
def try_all(params, gold, steps, table, part, tried):
    """Fill in the best values of the fields that are read together, of all that they can have."""
    world, highest, left = params.world, -1.0, True
    for field in range(world.fields):
        tried[field] = 0 if part[field] == JOINT else table[field]
    while left:
        found = mean_overlap(params, gold, steps, tried)
        if found > highest + RISE:
            highest = found
            for field in range(world.fields):
                table[field] = tried[field]
        left = False
        for field in range(world.fields - 1, -1, -1):  # the next one, as an odometer counts
            if part[field] == JOINT:
                tried[field] += 1
                if tried[field] < world.domain[field]:
                    left = True
                    break
                tried[field] = 0


@helper
def climb(params, gold, steps, table, part):
    """Change one field at a time while that helps; return the mean that is reached."""
    world, highest, before = params.world, mean_overlap(params, gold, steps, table), -1.0
    while highest > before:
        before = highest
        for field in range(world.fields):
            if part[field] != JOINT:
                continue
            for value in range(world.domain[field]):
                kept = table[field]
                table[field] = value
                found = mean_overlap(params, gold, steps, table)
                if found > highest + RISE:
                    highest = found
                else:
                    table[field] = kept
    return highest
