"""The three worlds on a page: their sizes and rates, what mutation changes, and how a belief table drifts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from envprobe_core.comparing import summarize
from envprobe_core.engine.scoring import COLLAPSE
from envprobe_core.instances import instances, mutable_fields
from envprobe_core.protocols import Protocol, parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.statistics import RESAMPLES
from envprobe_core.worlds import WORLDS, make_world
from envprobe_core.worlds.base import PROCEDURAL, World

SIZES = {  # what the levels of complexity and density set, by world: attribute, one (many take an s)
    "tooldag": {"tools": "tool", "prerequisites": "prerequisite each"},
    "objectstate": {
        "rooms": "room", "keys": "key", "boxes": "box", "goals": "goal", "locks": "locked door",
    },
    "graphnav": {"nodes": "node", "edges": "edge", "keys": "key", "locks": "locked edge"},
}  # fmt: skip
MANY = {"box": "boxes", "prerequisite each": "prerequisites each"}


def sizes(world: World) -> str:
    """Name the numbers that complexity and density set: `10 rooms, 3 keys, ...`."""
    counts = [(getattr(world.rules, name), one) for name, one in SIZES[world.name].items()]
    return ", ".join(f"{count} {one if count == 1 else MANY.get(one, f'{one}s')}" for count, one in counts)


def describe_worlds(regimes: Sequence[str], protocol: Protocol) -> pd.DataFrame:
    """Describe every world in every regime, one row each, by a protocol's instances and mutation table.

    Returns:
        Columns `regime world sizes fields procedural spatial actions horizon budget mutable rate
        observation`; `mutable` counts fields, `rate` is the nominal probability that one of them
        mutates in a tick (NaN where none can).
    """
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


def half_life(rate: float) -> float:
    """Return after how many ticks half of the mutable fields have had an event; infinite at rate 0.

    ln(1/2) / ln(1 - rate): events are independent from tick to tick.
    """
    if rate <= 0:
        return float("inf")
    return 1.0 if rate >= 1 else float(np.log(0.5) / np.log1p(-rate))


def _means(rows: pd.DataFrame, columns: dict[str, str], resamples: int) -> pd.DataFrame:
    """Average columns by protocol and world; each new name gets `_low` and `_high` beside it."""
    found = summarize(rows, columns, ("protocol", "world"), resamples=resamples)
    parts = [found.drop_duplicates(["protocol", "world"]).set_index(["protocol", "world"])[["n"]]]
    for column, name in columns.items():
        own = found[found["measure"] == column].set_index(["protocol", "world"])[["mean", "low", "high"]]
        parts.append(own.set_axis([name, f"{name}_low", f"{name}_high"], axis=1))
    return pd.concat(parts, axis=1).reset_index()


def summarise_mutation(frame: pd.DataFrame, regime: str, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Set nominal mutation rates beside what the draws gave and what they changed.

    Args:
        frame: episodes with the facts `mutation_rate changed changed_all`, No-Probe's among them.

    Returns:
        One row a protocol and world: `rate` (nominal, 0 where nothing mutates), `drawn` (events a mutable
        field and tick) and `changed` (changes likewise) with `_low` and `_high`, `changed_all` (changes a
        field of any kind and tick), `mutable`, `fields`, and `half_life` in ticks.
    """
    names = {"mutation_rate": "drawn", "changed": "changed", "changed_all": "changed_all"}
    idle = frame[(frame["policy"] == "no-probe") & (frame["regime"] == regime)]
    about = pd.concat(
        describe_worlds([regime], parse_protocol(name)).assign(protocol=name)
        for name in idle["protocol"].unique()
    )[["protocol", "world", "rate", "mutable", "fields"]]
    table = _means(idle, names, resamples).merge(about, on=["protocol", "world"]).fillna({"rate": 0.0})
    return table.assign(half_life=table["rate"].map(half_life))


def summarise_drift(
    frame: pd.DataFrame, drift: pd.DataFrame, regime: str, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Describe how right a table is that is never checked: where it begins, peaks and ends.

    Args:
        frame: episodes with the fact `initial_accuracy`, No-Probe's among them.
        drift: a row a protocol, world and time: `t accuracy running`, as `statistics.mean_track` gives.

    Returns:
        One row a protocol and world: `start` (A_0) and `end` (the plain share of right fields when the
        episode ends) with `_low` and `_high`; `below`, the share of episodes with A_0 < .6; `early`, the
        share that has collapsed by the protocol's own rule within its first two scored times; `top` and
        `top_step`, the highest mean A_t; `last` and `running`, the mean A_t at the last step that is drawn,
        and how many of the `n` episodes run on to it.
    """
    rows = frame[(frame["policy"] == "no-probe") & (frame["regime"] == regime)]
    rows = rows.assign(below=rows["initial_accuracy"] < COLLAPSE, early=rows["collapse_onset"] < 2)
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
