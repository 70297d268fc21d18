"""What `run` can measure of an episode beside its scores: the registry of facts."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from envprobe_core.cells import Cell, Seeds
from envprobe_core.engine.records import NO_ACTION, UNKNOWN
from envprobe_core.engine.running import Trajectory, measure
from envprobe_core.facts.witness import match, witness
from envprobe_core.instances import (
    act,
    chain_length,
    drawn_mutation,
    effective_mutation,
    exogenous,
    instances,
    plan_length,
    states_of,
    succeeded,
)
from envprobe_core.measures import audit_counts, confidence_histogram, count_true, right_fields
from envprobe_core.policies import TERMS
from envprobe_core.policies.rules import SELF_UNCERTAINTY_ALPHA
from envprobe_core.worlds import World, make_world
from envprobe_core.worlds.base import PROCEDURAL

Columns = Sequence[np.ndarray]
Fact = Callable[[Cell, Seeds, Trajectory], Columns]
NOTICING = 5  # steps within which a change counts as noticed (ours)
FACTS: dict[str, Callable[[Cell, Seeds, Trajectory], Mapping[str, np.ndarray]]] = {}
"""What measures a column that `run` can add, by the column's name."""


def fact(*columns: str) -> Callable[[Fact], Fact]:
    """Register what measures some columns, [row] each, of a cell, its seeds [row] and the recording."""

    def keep(function: Fact) -> Fact:
        if taken := FACTS.keys() & set(columns):
            raise ValueError(f"measured already: {', '.join(sorted(taken))}")
        FACTS.update(dict.fromkeys(columns, partial(_by_name, columns, function)))
        return function

    return keep


def _by_name(columns: tuple[str, ...], function: Fact, *episodes: Any) -> dict[str, np.ndarray]:
    return dict(zip(columns, function(*episodes), strict=True))


def world_of(cell: Cell) -> World:
    """Return the world that a cell's episodes are in."""
    return make_world(cell.world, cell.regime, cell.protocol)


def arrays(rows: np.ndarray) -> np.ndarray:
    """Return the rows of a table as a column of arrays, [row]; copies, which do not keep a whole block."""
    return np.fromiter((row.copy() for row in rows), dtype=object, count=len(rows))


# probes


def at_probes(recording: Trajectory, table: np.ndarray) -> np.ndarray:
    """Return a table's value [row, step, field] of the probed field, [row, step]; of field 0 without one."""
    field = np.maximum(recording.probe, 0)[..., None].astype(np.int64)
    return np.take_along_axis(table, field, axis=2)[..., 0]


def corrects(recording: Trajectory) -> np.ndarray:
    """Say which probes tell that a known value is wrong, [row, step], whatever the protocol calls useful."""
    held = at_probes(recording, recording.belief[:, :-1])
    return (recording.probe >= 0) & (held != UNKNOWN) & (held != recording.answer)


@fact("first_probe", "last_probe", "steps_left", "probe_step", "helped_step")
def when_probed(cell: Cell, seeds: Seeds, recording: Trajectory) -> Columns:
    """Find the steps of probes; NaN without any.

    The first and the last one, how long the episode went on after it, the mean step, and the first probe that
    corrects a wrong belief before an action that works.
    """
    fired = recording.probe >= 0
    steps = np.arange(fired.shape[1])
    last = steps[-1] - np.argmax(fired[:, ::-1], axis=1)
    mean = (fired * steps).sum(axis=1) / np.maximum(fired.sum(axis=1), 1)
    columns = (np.argmax(fired, axis=1), last, recording.steps - last, mean)
    helped = corrects(recording)[:, :-1] & recording.acted[:, 1:] & recording.valid[:, 1:]
    first_help = np.where(helped.any(axis=1), np.argmax(helped, axis=1), np.nan)
    return *(np.where(fired.any(axis=1), own, np.nan) for own in columns), first_help


FOUND = ("early_probes", "unknown_probes", "wrong_probes")


@fact(*FOUND)
def what_probes_found(cell: Cell, seeds: Seeds, recording: Trajectory) -> Columns:
    """Count probes within the first B steps, of a field with unknown value, and of one known and wrong.

    The last two together are what the paper's words call useful, whatever the protocol counts (its switch
    `useful`).
    """
    fired, steps = recording.probe >= 0, np.arange(recording.probe.shape[1])
    unknown = fired & (at_probes(recording, recording.belief[:, :-1]) == UNKNOWN)
    found = fired & (steps < cell.budget_in_force), unknown, corrects(recording)
    return [mask.sum(axis=1) for mask in found]


FIRED = ("fired_c", "fired_s", "fired_u", "fired_d", "structure_probes", "soon_probes")


@fact(*FIRED)
def what_was_it_fired_for(cell: Cell, seeds: Seeds, recording: Trajectory) -> Columns:
    """Add up the terms of an episode's probed fields, and count probes.

    `structure_probes` are those whose c + d alone reaches the threshold, `soon_probes` those of the first 2B
    steps.
    """
    row, step = np.nonzero(recording.probe >= 0)
    terms = witness(cell, seeds).terms[row, step, recording.probe[row, step]]
    structure = terms[:, TERMS.index("c")] + terms[:, TERMS.index("d")] >= cell.threshold_in_force
    columns = [*terms.T, structure, step < 2 * cell.budget_in_force]
    return [np.bincount(row, own.astype(np.float64), len(seeds)) for own in columns]


@fact("answered", "spent", "failed")
def what_was_spent(cell: Cell, seeds: Seeds, recording: Trajectory) -> Columns:
    """Count the probes whose answer stands in the table a step later, and all steps that are no wait."""
    stands = at_probes(recording, recording.belief[:, 1:]) == recording.answer
    probes, actions = (recording.measures[name].astype(np.int64) for name in ("probes", "actions"))
    answered = (stands & (recording.probe >= 0)).sum(axis=1)
    return answered, probes + actions, (~recording.success).astype(np.int64)


PATTERN = (
    "stage1", "stage2", "stage3", "stage4", "stage5", "pattern", "pattern_step", "pattern_field",
    "pattern_missed",
)  # fmt: skip


@fact(*PATTERN)
def what_failed(cell: Cell, seeds: Seeds, recording: Trajectory) -> Columns:
    """Count the probes that meet the first conditions of the world's failure pattern, and all of them.

    The first full match is given by its step, its field and the field that should have been asked for; -1
    where there is none.
    """
    found = match(witness(cell, seeds))
    counts = np.zeros((len(seeds), found.stage.shape[1]))
    np.add.at(counts, found.row, found.stage)
    stages, first = np.full((len(seeds), 5), np.nan), np.full((len(seeds), 3), -1)
    stages[:, : counts.shape[1]] = counts
    full = np.flatnonzero(found.stage[:, -1])[::-1]  # the earliest is written last
    first[found.row[full]] = np.stack([found.step[full], found.field[full], found.missed[full]], axis=1)
    return list(np.column_stack([stages, counts[:, -1], first]).T)


# the world and the table


@fact("reproduced")
def what_comes_out_again(cell: Cell, seeds: Seeds, recording: Trajectory) -> Columns:
    """Run the cell once more, its seeds in the opposite order, and say which episodes are the same."""
    again = measure(cell, seeds[::-1])["digest"][::-1]
    return [(again == recording.measures["digest"]).astype(np.float64)]


@fact("chain_length", "mutation_rate", "procedural", "spatial")
def what_the_seed_holds(cell: Cell, seeds: Seeds, recording: Trajectory) -> Columns:
    """Measure K, the shortest plan at the start, events a mutable field and tick, and fields by type."""
    world = world_of(cell)
    procedural = world.field_kinds.count(PROCEDURAL)
    fields = (np.full(len(seeds), count) for count in (procedural, world.fields - procedural))
    return chain_length(world, seeds), drawn_mutation(world, seeds), *fields


@fact("effective")
def effective_actions(cell: Cell, seeds: Seeds, recording: Trajectory) -> Columns:
    """Count the valid actions that shorten the shortest plan of the true world by one, before success."""
    world = world_of(cell)
    instance = instances(world, seeds)
    before = states_of(world, recording.gold[:, :-1], recording.place[:, :-1])
    after, _ = act(world, instance, before, np.where(recording.valid, recording.action, NO_ACTION))
    shorter = plan_length(world, instance, before) - 1 == plan_length(world, instance, after)
    reached = np.logical_or.accumulate(succeeded(world, instance, before), axis=1)
    return [(recording.valid & shorter & ~reached).sum(axis=1)]


@fact("track")
def accuracy_over_time(cell: Cell, seeds: Seeds, recording: Trajectory) -> Columns:
    """Keep the accuracy that the protocol watches, an array [time] an episode; NaN where it is not scored."""
    return [arrays(recording.accuracy)]


@fact("right_track", "initial_accuracy")
def what_was_right(cell: Cell, seeds: Seeds, recording: Trajectory) -> Columns:
    """Follow A_t, the share of fields believed right: an array [time] an episode, NaN after its end."""
    share = right_fields(recording.belief, recording.gold) / count_true(recording.gold != UNKNOWN)
    share[np.arange(share.shape[1])[None, :] > recording.steps[:, None]] = np.nan
    return arrays(share), share[:, 0]


@fact("changed", "changed_all")
def what_changed(cell: Cell, seeds: Seeds, recording: Trajectory) -> Columns:
    """Measure the share of mutable, and of all, fields that mutation changed in a tick."""
    return effective_mutation(world_of(cell), seeds, recording)


@fact("changes", "noticed")
def what_was_noticed(cell: Cell, seeds: Seeds, recording: Trajectory) -> Columns:
    """Count changes of the world to fields believed right, and those noticed within `NOTICING` steps.

    A change is noticed where the table holds the new value before it changes once more. Changes too close
    to the episode's end are not counted.
    """
    world, right = world_of(cell), recording.belief == recording.gold
    moved = exogenous(world, instances(world, seeds), recording)
    last = recording.gold.shape[1] - 1 - NOTICING
    change = moved[:, :last] & right[:, :last]
    change &= (np.arange(last)[None, :] + 1 + NOTICING <= recording.steps[:, None])[..., None]
    noticed, lasting = np.zeros_like(change), np.ones_like(change)
    new = recording.gold[:, 1 : last + 1]
    for later in range(1, NOTICING + 2):
        lasting &= recording.gold[:, later : later + last] == new
        noticed |= lasting & right[:, later : later + last]
    return change.sum(axis=(1, 2)), (change & noticed).sum(axis=(1, 2))


# confidence

SURE = (
    "confident", "confident_wrong", "wrong", "total", "low_steps", "low_consistent", "scan_beliefs",
    "scan_confident", "scan_wrong", "sample_confident", "sample_wrong", "wrong_known",
)  # fmt: skip


@fact(*SURE)
def what_was_sure(cell: Cell, seeds: Seeds, recording: Trajectory) -> Columns:
    """Count what the audit of confidently wrong beliefs needs."""
    counts = audit_counts(recording, cell, seeds)
    return [counts[name] for name in SURE]


@fact("sure_right", "sure_wrong")
def how_sure(cell: Cell, seeds: Seeds, recording: Trajectory) -> Columns:
    """Count right and wrong known beliefs by reported confidence: arrays [percent] an episode."""
    return [arrays(counts) for counts in confidence_histogram(recording, cell.protocol)]


@fact("step_wrong", "step_confident", "step_confident_wrong", "step_reached")
def what_was_believed(cell: Cell, seeds: Seeds, recording: Trajectory) -> Columns:
    """Count beliefs over the decision steps: wrong, held with alpha confidence, both; wrong and probed."""
    steps = recording.probe.shape[1]
    lived = np.arange(steps)[None, :] < recording.steps[:, None]
    wrong = (recording.belief[:, :steps] != recording.gold[:, :steps]) & lived[:, :, None]
    confident = (recording.confidence[:, :steps] >= SELF_UNCERTAINTY_ALPHA) & lived[:, :, None]
    beliefs = (mask.sum(axis=(1, 2)) for mask in (wrong, confident, wrong & confident))
    return *beliefs, (recording.useful & lived).sum(axis=1)
