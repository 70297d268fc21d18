"""Facts about worlds and regimes, measured on their instances, draws and recordings.

Sizes come from the worlds themselves, chains from `plans`, mutation from the draws of real seeds, and what
mutation does from recordings of episodes. Nothing here depends on a policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from envprobe_core import metrics
from envprobe_core.averages import mean_by
from envprobe_core.engine.compiling import entry
from envprobe_core.engine.noise import MUTATION, STREAMS, draw, happens, stream_keys
from envprobe_core.engine.recording import Trajectory
from envprobe_core.engine.records import NONE, Word
from envprobe_core.instances import after_actions, instances, rules_of
from envprobe_core.protocols import Protocol, parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.statistics import RESAMPLES
from envprobe_core.worlds import WORLDS, make_world
from envprobe_core.worlds.base import PROCEDURAL, Floats, Mask, World

if TYPE_CHECKING:
    import pandas as pd

SIZES = {  # what the levels of complexity and density set, by world: attribute, one, many
    "tooldag": (
        ("tools", "tool", "tools"),
        ("prerequisites", "prerequisite each", "prerequisites each"),
    ),
    "objectstate": (
        ("rooms", "room", "rooms"),
        ("keys", "key", "keys"),
        ("boxes", "box", "boxes"),
        ("goals", "goal", "goals"),
        ("locks", "locked door", "locked doors"),
    ),
    "graphnav": (
        ("nodes", "node", "nodes"),
        ("edges", "edge", "edges"),
        ("keys", "key", "keys"),
        ("locks", "locked edge", "locked edges"),
    ),
}


def mutable_fields(world: World, instance: Any) -> Mask:
    """Say which fields can mutate by themselves, [row, field].

    Doors and edges without a lock never do; a tool that is not loaded and an object that is held are
    mutable, though at that moment nothing can happen to them.

    Args:
        world: the world.
        instance: [row].
    """
    mutable = np.tile(world.rates > 0, (len(instance), 1))
    if world.name == "objectstate":
        first, locks = world.rules.objects, instance.task.key_of_door[:, : world.rules.doors]
    elif world.name == "graphnav":
        first, locks = 1 + world.rules.keys, instance.task.key_of_edge[:, : world.rules.edges]
    else:
        return mutable
    mutable[:, first : first + locks.shape[1]] &= locks != NONE
    return mutable


def sizes(world: World) -> str:
    """Name the numbers that complexity and density set: `10 rooms, 3 keys, ...`."""
    counts = ((getattr(world.rules, name), one, many) for name, one, many in SIZES[world.name])
    return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counts)


def describe_worlds(regimes: Sequence[str], protocol: Protocol) -> pd.DataFrame:
    """Describe every world in every regime, one row each.

    Args:
        regimes: names of regimes.
        protocol: whose instances and mutation table apply.

    Returns:
        Columns `regime world sizes fields procedural spatial actions horizon budget mutable rate
        observation`; `mutable` counts fields, `rate` is the nominal probability that one of them
        mutates in a tick (NaN where none can).
    """
    import pandas as pd

    rows = []
    for regime in regimes:
        for name in WORLDS:
            world = make_world(name, REGIMES[regime], protocol)
            mutable = mutable_fields(world, instances(world, [0]))[0]
            rows.append(
                {
                    "regime": regime,
                    "world": name,
                    "sizes": sizes(world),
                    "fields": world.fields,
                    "procedural": world.field_kinds.count(PROCEDURAL),
                    "spatial": world.fields - world.field_kinds.count(PROCEDURAL),
                    "actions": world.actions,
                    "horizon": world.regime.horizon,
                    "budget": world.regime.budget,
                    "mutable": int(mutable.sum()),
                    "rate": float(world.rates[mutable].mean()) if mutable.any() else np.nan,
                    "observation": world.regime.observation,
                }
            )
    return pd.DataFrame(rows)


def drawn_mutation(world: World, seeds: npt.ArrayLike) -> Floats:
    """Measure how often the draws of a seed let a mutable field mutate, [seed].

    The share of pairs (mutable field, world tick) with a mutation event, over the ticks 0..H-1 that an
    episode may pass; 0 where no field can mutate. An event need not change anything: the tool may not be
    loaded, the object may be held or land where it lay.

    Args:
        world: the world, built for its regime and protocol.
        seeds: [seed].
    """
    mutable = mutable_fields(world, instances(world, seeds))
    hits = np.zeros(len(mutable), dtype=np.int64)
    _count_events(rules_of(world), np.asarray(seeds, np.int64), mutable, world.regime.horizon, hits)
    return hits / np.maximum(mutable.sum(axis=1) * world.regime.horizon, 1)


@entry
def _count_events(world, seeds, mutable, ticks, hits):
    """Count the mutation events of a seed's mutable fields over the first ticks, [row]."""
    keys = np.zeros(STREAMS, Word)
    for row in range(len(seeds)):
        stream_keys(seeds[row], world.code, keys)
        for tick in range(ticks):
            for field in range(world.fields):
                if mutable[row, field] and happens(draw(keys[MUTATION], tick, field), world.mutation):
                    hits[row] += 1


def effective_mutation(world: World, seeds: npt.ArrayLike, recording: Trajectory) -> tuple[Floats, Floats]:
    """Measure what mutation really changed in recorded episodes without probes, [row] each.

    Every state is rebuilt from gold, the executed action is carried out again, and what then still differs
    from gold one step later is the work of mutation.

    Args:
        world: the world.
        seeds: [row], the seeds of the recording.
        recording: episodes in which the world's clock ran at every step.

    Returns:
        The share of mutable fields that changed in a tick (0 where none can), and the share of all fields
        (fields that follow from others, as *dependency satisfied*, count here).
    """
    instance = instances(world, seeds)
    mutable = mutable_fields(world, instance)
    running = np.arange(recording.acted.shape[1])[None, :] < recording.steps[:, None]
    moved = after_actions(world, instance, recording) != recording.gold[:, 1:]
    moved &= running[:, :, None]
    changed, everywhere = (moved & mutable[:, None, :]).sum(axis=(1, 2)), moved.sum(axis=(1, 2))
    ticks = np.maximum(recording.steps, 1)
    return changed / np.maximum(mutable.sum(axis=1) * ticks, 1), everywhere / (world.fields * ticks)


def accuracy_track(recording: Trajectory) -> Floats:
    """Return A_t, the share of fields believed right at each time, [row, time]; NaN after the end."""
    share = metrics.right_fields(recording.belief, recording.gold) / recording.gold.shape[2]
    over = np.arange(share.shape[1])[None, :] > recording.steps[:, None]
    return np.where(over, np.nan, share)


def half_life(rate: float) -> float:
    """Return after how many ticks half of the mutable fields have had an event; infinite at rate 0.

    ln(1/2) / ln(1 - rate): events are independent from tick to tick.
    """
    if rate <= 0:
        return float("inf")
    return 1.0 if rate >= 1 else float(np.log(0.5) / np.log1p(-rate))


def idle(frame: pd.DataFrame, regime: str) -> pd.DataFrame:
    """Return the No-Probe episodes of a regime."""
    return frame[(frame["policy"] == "no-probe") & (frame["regime"] == regime)]


def _means(rows: pd.DataFrame, columns: dict[str, str], resamples: int) -> pd.DataFrame:
    """Average columns by protocol and world; each new name gets `_low` and `_high` beside it."""
    table = None
    for column, name in columns.items():
        found = mean_by(rows, column, ("protocol", "world"), resamples=resamples)
        if table is None:
            table = found[["protocol", "world", "n"]].copy()
        for part, end in (("mean", ""), ("low", "_low"), ("high", "_high")):
            table[name + end] = found[part].to_numpy()
    return table


def summarise_mutation(frame: pd.DataFrame, regime: str, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Set nominal mutation rates beside what the draws gave and what they changed.

    Args:
        frame: from `experiments.load_environments`.
        regime: which of its regimes.
        resamples: bootstrap resamples.

    Returns:
        One row a protocol and world: `rate` (nominal, 0 where nothing mutates), `drawn` (events a mutable
        field and tick) and `changed` (changes likewise) with `_low` and `_high`, `changed_all` (changes a
        field of any kind and tick), `mutable`, `fields`, and `half_life` in ticks.
    """
    names = {"mutation_rate": "drawn", "changed": "changed", "changed_all": "changed_all"}
    table = _means(idle(frame, regime), names, resamples)
    facts = {
        (protocol, row.world): row
        for protocol in dict.fromkeys(table["protocol"])
        for row in describe_worlds([regime], parse_protocol(protocol)).itertuples()
    }
    about = [facts[key] for key in zip(table["protocol"], table["world"], strict=True)]
    table["rate"] = np.nan_to_num([row.rate for row in about])
    table["mutable"] = [row.mutable for row in about]
    table["fields"] = [row.fields for row in about]
    table["half_life"] = [half_life(rate) for rate in table["rate"]]
    return table


def summarise_chains(frame: pd.DataFrame, regime: str, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Describe how long the shortest plans of a regime are.

    Args:
        frame: from `experiments.load_environments`.
        regime: which of its regimes.
        resamples: bootstrap resamples.

    Returns:
        One row a protocol and world: `length` with `_low` and `_high`, `shortest`, `longest`, and `fits`, the
        share of instances whose plan and full probe budget fit into the horizon together.
    """
    rows = idle(frame, regime)
    table = _means(rows, {"chain_length": "length"}, resamples)
    groups = rows.groupby(["protocol", "world"])
    keys = list(zip(table["protocol"], table["world"], strict=True))
    table["shortest"] = groups["chain_length"].min().loc[keys].to_numpy()
    table["longest"] = groups["chain_length"].max().loc[keys].to_numpy()
    fits = (rows["chain_length"] + rows["budget"] <= rows["horizon"]).groupby(
        [rows["protocol"], rows["world"]]
    )
    table["fits"] = fits.mean().loc[keys].to_numpy()
    return table


def summarise_drift(
    frame: pd.DataFrame, drift: pd.DataFrame, regime: str, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Describe how right a table is that is never checked: where it begins, peaks and ends.

    Args:
        frame: from `experiments.load_environments`.
        drift: from `experiments.load_drift`, of the same regime and seeds.
        regime: which of the frame's regimes.
        resamples: bootstrap resamples.

    Returns:
        One row a protocol and world: `start` (A_0) and `end` (the plain share of right fields when the
        episode ends) with `_low` and `_high`; `below`, the share of episodes with A_0 < .6; `early`, the
        share that has collapsed by the protocol's own rule within its first two scored times; `top` and
        `top_step`, the highest mean A_t; `last` and `running`, the mean A_t at the last step that is drawn,
        and how many of the `n` episodes run on to it.
    """
    rows = idle(frame, regime)
    rows = rows.assign(below=rows["initial_accuracy"] < metrics.COLLAPSE, early=rows["collapse_onset"] < 2)
    names = {"initial_accuracy": "start", "accuracy_terminal": "end", "below": "below", "early": "early"}
    table = _means(rows, names, resamples)
    curves = {
        key: curve[curve["accuracy"].notna()]
        for key, curve in drift.groupby(["protocol", "world"], sort=False)
    }
    own = [curves[key] for key in zip(table["protocol"], table["world"], strict=True)]
    table["top"] = [curve["accuracy"].max() for curve in own]
    table["top_step"] = [int(curve["t"].iloc[curve["accuracy"].argmax()]) for curve in own]
    table["last"] = [curve["accuracy"].iloc[-1] for curve in own]
    table["running"] = [int(curve["running"].iloc[-1]) for curve in own]
    return table
