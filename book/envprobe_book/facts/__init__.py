"""What `run` can measure of an episode beside its scores: the registry of facts."""

import numpy as np

from envprobe_book.facts import zero  # noqa: F401  # which fills FACTS too
from envprobe_book.facts.registry import Columns, arrays, fact
from envprobe_book.facts.replay import Witnessed, match
from envprobe_book.plans import chain_length, drawn_mutation, mutable_fields, plan_length, try_actions
from envprobe_core.compiled.records import NO_ACTION, UNKNOWN
from envprobe_core.engine.batch import simulate
from envprobe_core.engine.scoring import COLLAPSE
from envprobe_core.facts import FACTS as FACTS
from envprobe_core.measures import (
    confident_counts,
    consistent,
    count_true,
    held_beliefs,
    reports,
    right_fields,
    step_accuracy,
)
from envprobe_core.policies import TERMS
from envprobe_core.policies.rules import SELF_UNCERTAINTY_ALPHA
from envprobe_core.worlds.base import PROCEDURAL

NOTICING = 5  # steps within which a change counts as noticed (ours)
SCAN = 0.5  # accuracy below which the high-confidence scan looks
SAMPLE = 5  # the smaller sample: seeds that this divides
LEVELS = 101  # reported confidence is a whole percent


# probes


@fact("first_probe", "last_probe", "steps_left", "probe_step", "helped_step")
def when_probed(seen: Witnessed) -> Columns:
    """Find the steps of probes; NaN without any.

    The first and the last one, how long the episode went on after it, the mean step, and the first probe that
    corrects a wrong belief before an action that works.
    """
    recording, fired = seen.trajectory, seen.fired()
    steps = np.arange(fired.shape[1])
    last = steps[-1] - np.argmax(fired[:, ::-1], axis=1)
    mean = (fired * steps).sum(axis=1) / np.maximum(fired.sum(axis=1), 1)
    columns = (np.argmax(fired, axis=1), last, recording.steps - last, mean)
    helped = seen.corrects()[:, :-1] & recording.acted[:, 1:] & recording.valid[:, 1:]
    first_help = np.where(helped.any(axis=1), np.argmax(helped, axis=1), np.nan)
    return *(np.where(fired.any(axis=1), own, np.nan) for own in columns), first_help


FOUND = ("early_probes", "unknown_probes", "wrong_probes")


@fact(*FOUND)
def what_probes_found(seen: Witnessed) -> Columns:
    """Count probes within the first B steps, of a field with unknown value, and of one known and wrong.

    The last two together are what the paper's words call useful, whatever the protocol counts (its switch
    `useful`).
    """
    fired = seen.fired()
    early = np.arange(fired.shape[1]) < seen.condition.budget_in_force
    unknown = seen.at_probes(seen.trajectory.belief[:, :-1]) == UNKNOWN
    return [mask.sum(axis=1) for mask in (fired & early, fired & unknown, seen.corrects())]


FIRED = ("fired_c", "fired_s", "fired_u", "fired_d", "structure_probes", "soon_probes")


@fact(*FIRED)
def what_was_it_fired_for(seen: Witnessed) -> Columns:
    """Add up the terms of an episode's probed fields, and count probes.

    `structure_probes` are those whose c + d alone reaches the threshold, `soon_probes` those of the first 2B
    steps.
    """
    row, step = np.nonzero(seen.fired())
    terms = seen.terms[row, step, seen.trajectory.probe[row, step]]
    structure = terms[:, TERMS.index("c")] + terms[:, TERMS.index("d")] >= seen.condition.threshold_in_force
    columns = [*terms.T, structure, step < 2 * seen.condition.budget_in_force]
    return [np.bincount(row, own.astype(np.float64), len(seen.seeds)) for own in columns]


@fact("answered", "spent", "failed")
def what_was_spent(seen: Witnessed) -> Columns:
    """Count the probes whose answer stands in the table a step later, and all steps that are no wait."""
    recording = seen.trajectory
    stands = seen.at_probes(recording.belief[:, 1:]) == recording.answer
    probes, actions = (recording.measures[name].astype(np.int64) for name in ("probes", "actions"))
    return (stands & seen.fired()).sum(axis=1), probes + actions, (~recording.success).astype(np.int64)


PATTERN = (
    "stage1", "stage2", "stage3", "stage4", "stage5", "pattern", "pattern_step", "pattern_field",
    "pattern_missed",
)  # fmt: skip


@fact(*PATTERN)
def what_failed(seen: Witnessed) -> Columns:
    """Count the probes that meet the first conditions of the world's failure pattern, and all of them.

    The first full match is given by its step, its field and the field that should have been asked for; -1
    where there is none.
    """
    found, rows = match(seen), len(seen.seeds)
    counts = np.zeros((rows, found.stage.shape[1]))
    np.add.at(counts, found.row, found.stage)
    stages, first = np.full((rows, 5), np.nan), np.full((rows, 3), -1)
    stages[:, : counts.shape[1]] = counts
    full = np.flatnonzero(found.stage[:, -1])[::-1]  # the earliest is written last
    first[found.row[full]] = np.stack([found.step[full], found.field[full], found.missed[full]], axis=1)
    return list(np.column_stack([stages, counts[:, -1], first]).T)


@fact("read", "read_right")
def what_actions_read(seen: Witnessed) -> Columns:
    """Count the fields that task actions read when they are taken, and those of them believed right.

    A field is read where its dependency role is 1. Both are 0 where the agent names the roles itself, as
    under `structure=reported`: what it names is not what the action reads.
    """
    recording = seen.trajectory
    if seen.condition.protocol.structure != "graph":
        return [np.zeros(len(seen.seeds))] * 2
    read = (seen.term("d") == 1) & recording.acted[..., None]
    right = (recording.belief == recording.gold)[:, :-1]
    return [mask.sum(axis=(1, 2)) for mask in (read, read & right)]


# the world and the table


@fact("reproduced")
def what_comes_out_again(seen: Witnessed) -> Columns:
    """Run the condition once more, its seeds in the opposite order, and say which episodes are the same."""
    again = simulate(seen.condition, seen.seeds[::-1])["digest"][::-1]
    return [(again == seen.trajectory.measures["digest"]).astype(np.float64)]


@fact("chain_length", "mutation_rate", "procedural", "spatial")
def what_the_seed_holds(seen: Witnessed) -> Columns:
    """Measure K, the shortest plan at the start, events a mutable field and tick, and fields by type."""
    world, seeds = seen.world, seen.seeds
    procedural = world.field_kinds.count(PROCEDURAL)
    fields = (np.full(len(seeds), count) for count in (procedural, world.fields - procedural))
    return chain_length(world, seeds), drawn_mutation(world, seeds), *fields


@fact("effective")
def effective_actions(seen: Witnessed) -> Columns:
    """Count the valid actions that shorten the shortest plan of the true world by one, before success."""
    recording, world, before = seen.trajectory, seen.world, seen.states[:, :-1]
    after = try_actions(
        world, seen.instance, before, np.where(recording.valid, recording.action, NO_ACTION)
    ).states
    shorter = plan_length(world, seen.instance, before) - 1 == plan_length(world, seen.instance, after)
    return [(recording.valid & shorter & ~seen.goal_reached()[:, :-1]).sum(axis=1)]


@fact("track")
def accuracy_over_time(seen: Witnessed) -> Columns:
    """Keep the accuracy that the protocol watches, an array [time] an episode; NaN where it is not scored."""
    return [arrays(seen.trajectory.accuracy)]


@fact("right_track", "initial_accuracy")
def what_was_right(seen: Witnessed) -> Columns:
    """Follow A_t, the share of fields believed right: an array [time] an episode, NaN after its end."""
    belief, gold = seen.trajectory.belief, seen.trajectory.gold
    share = right_fields(belief, gold) / count_true(gold != UNKNOWN)
    share[~seen.lived()] = np.nan
    return arrays(share), share[:, 0]


@fact("changed", "changed_all")
def what_changed(seen: Witnessed) -> Columns:
    """Measure the share of mutable, and of all, fields that mutation changed in a tick.

    In episodes in which the clock ran at every step. Fields that follow from others, as *dependency
    satisfied*, count among all. 0 where no field is mutable.
    """
    mutable, moved = mutable_fields(seen.world, seen.instance), seen.exogenous()
    ticks = np.maximum(seen.trajectory.steps, 1)
    changed = (moved & mutable[:, None, :]).sum(axis=(1, 2)) / np.maximum(mutable.sum(axis=1) * ticks, 1)
    return changed, moved.sum(axis=(1, 2)) / (seen.world.fields * ticks)


@fact("changes", "noticed")
def what_was_noticed(seen: Witnessed) -> Columns:
    """Count changes of the world to fields believed right, and those noticed within `NOTICING` steps.

    A change is noticed where the table holds the new value before it changes once more. Changes too close
    to the episode's end are not counted.
    """
    gold, right = seen.trajectory.gold, seen.trajectory.belief == seen.trajectory.gold
    last = gold.shape[1] - 1 - NOTICING
    change = seen.exogenous()[:, :last] & right[:, :last] & seen.lived()[:, 1 + NOTICING :, None]
    noticed, lasting = np.zeros_like(change), np.ones_like(change)
    for later in range(1, NOTICING + 2):
        lasting &= gold[:, later : later + last] == gold[:, 1 : last + 1]
        noticed |= lasting & right[:, later : later + last]
    return change.sum(axis=(1, 2)), (change & noticed).sum(axis=(1, 2))


# confidence

SURE = (
    "confident", "confident_wrong", "wrong", "total", "low_steps", "low_consistent", "scan_beliefs",
    "scan_confident", "scan_wrong", "sample_confident", "sample_wrong", "wrong_known",
)  # fmt: skip


@fact(*SURE)
def what_was_sure(seen: Witnessed) -> Columns:
    """Count what the four estimators of the confident-wrong rate need.

    The counts of `confident_counts`; task actions at A_t < .6 (under `confident=anything` probes too), and
    those before which the agent's self-check was consistent; beliefs held at A_t < .5 where they are
    compared, the confident ones, the wrong among these; canonical counts on seeds that `SAMPLE` divides, 0
    elsewhere; wrong beliefs whose value was known or reported.
    """
    condition, recording = seen.condition, seen.trajectory
    held, here, wrong, confident = reports(condition, recording)
    counts = confident_counts(recording, condition)
    accuracy, acted = step_accuracy(recording, condition.protocol), recording.acted
    if condition.protocol.confident == "anything":
        acted = seen.lived()[:, 1:]
    low = acted & (accuracy[:, : acted.shape[1]] < COLLAPSE)
    passes = consistent(recording.acted, recording.valid) | condition.profile.scribe
    scanned = (accuracy < SCAN)[..., None]
    known = (held.belief != UNKNOWN) | confident
    scan = (here & scanned & known, confident & scanned, confident & wrong & scanned)
    sampled = [np.where(seen.seeds % SAMPLE == 0, counts[name], 0) for name in SURE[:2]]
    return [
        *(counts[name] for name in SURE[:4]),
        *(mask.sum(axis=1) for mask in (low, low & passes)),
        *(count_true(mask).sum(axis=1) for mask in scan),
        *sampled,
        count_true(wrong & known).sum(axis=1),
    ]


@fact("sure_right", "sure_wrong")
def how_sure(seen: Witnessed) -> Columns:
    """Count right and wrong known beliefs by reported confidence: arrays [percent] an episode.

    A belief is right or wrong about its own field, under every protocol and in every condition: reliability
    is about that, whatever `reports` calls wrong.
    """
    held = held_beliefs(seen.trajectory, seen.condition.protocol)
    used, differs = held.counted[..., None] & (held.belief != UNKNOWN), held.belief != held.gold
    place, shape = held.confidence.astype(np.int64), (len(used), LEVELS)
    place += LEVELS * np.arange(len(used))[:, None, None]
    masks = (used & ~differs, used & differs)
    return [arrays(np.bincount(place[own], minlength=np.prod(shape)).reshape(shape)) for own in masks]


@fact("step_wrong", "step_confident", "step_confident_wrong", "step_reached")
def what_was_believed(seen: Witnessed) -> Columns:
    """Count beliefs over the decision steps: wrong, held with alpha confidence, both; wrong and probed."""
    recording, lived = seen.trajectory, seen.lived()[:, 1:]
    wrong = (recording.belief != recording.gold)[:, :-1] & lived[..., None]
    confident = (recording.confidence >= SELF_UNCERTAINTY_ALPHA)[:, :-1] & lived[..., None]
    beliefs = (mask.sum(axis=(1, 2)) for mask in (wrong, confident, wrong & confident))
    return *beliefs, (recording.useful & lived).sum(axis=1)
