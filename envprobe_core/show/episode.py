"""The figure of one episode: a drawing of its own kind."""

from __future__ import annotations

from itertools import groupby

import numpy as np
from matplotlib.axes import Axes

from envprobe_core.cells import Cell
from envprobe_core.engine.records import UNKNOWN
from envprobe_core.engine.scoring import COLLAPSE
from envprobe_core.facts.witness import Witnessed, witness
from envprobe_core.policies import TERMS
from envprobe_core.show.figures import (
    BLUE,
    GREY,
    GROUND,
    INK,
    TERM_COLOURS,
    VERMILLION,
    Drawing,
    canvas,
    styled,
)

TERM_NAMES = {"c": "criticality", "s": "staleness", "u": "uncertainty", "d": "dependency role"}


@styled
def draw_episode(cell: Cell, seed: int, name: str = "episode") -> Drawing:
    """Draw an episode at a glance: accuracy, the best field's score by term, and the table by time."""
    seen = witness(cell, np.array([seed], dtype=np.int64))
    recording, world, steps = seen.trajectory, seen.world, int(seen.trajectory.steps[0])
    figure, panels = canvas(
        3.4 + 0.15 * world.fields, rows=3, sharex=True, height_ratios=(1, 1.3, max(1.5, 0.12 * world.fields))
    )
    top, middle, bottom = panels[:, 0]
    track = recording.accuracy[0]
    top.plot(np.arange(len(track)), track, color=BLUE)
    top.axhline(COLLAPSE, color=GREY, linestyle=(0, (4, 3)), linewidth=1)
    top.set_ylim(0, 1.02)
    top.set_ylabel("accuracy\n(share)")
    fired = _bars(middle, seen, steps)
    _grid(bottom, seen, steps)
    bottom.set_xlabel("time t (steps)")
    bottom.set_xlim(-0.6, seen.cell.regime.horizon + 0.6)
    useful = int(recording.useful[0].sum())
    low = float(np.nanmin(track)) if np.isfinite(track).any() else np.nan
    alt = (
        f"One episode: accuracy by time (lowest {low:.2f}), the highest score at each step by term, and "
        f"which of {world.fields} fields are believed right, wrong or unknown. {fired} probes, {useful} "
        "of them useful."
    )
    return Drawing(figure, name, alt)


def _bars(axes: Axes, seen: Witnessed, steps: int) -> int:
    """Stack the terms of the probed, else of the best field at each step; return the number of probes."""
    recording, score = seen.trajectory, seen.rho()[0]
    kept = seen.kept_terms or TERMS
    probe = recording.probe[0, :steps].astype(np.int64)
    shown = np.where(probe >= 0, probe, np.argmax(np.nan_to_num(score[:steps], nan=-1.0), axis=1))
    times, base = np.arange(steps), np.zeros(steps)
    for term in kept:
        height = seen.term(term)[0, times, shown]
        name = f"{term}: {TERM_NAMES[term]}"
        axes.bar(times, height, bottom=base, width=0.8, color=TERM_COLOURS[term], label=name)
        base = base + height
    axes.plot(times[probe >= 0], base[probe >= 0] + 0.15, "v", color=INK, markersize=5, label="probe")
    if seen.cell.policy.has_threshold:
        axes.axhline(seen.cell.threshold_in_force, color=INK, linewidth=1, linestyle=(0, (1, 2)))
    axes.set_ylim(0, len(kept) + 0.4)
    axes.set_ylabel("score ρ")
    axes.legend(
        ncols=3, fontsize=7.5, frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.32), columnspacing=1
    )
    return int((probe >= 0).sum())


def _grid(axes: Axes, seen: Witnessed, steps: int) -> None:
    """Mark each field's beliefs by time: wrong, unknown; probes and mutations."""
    recording, world = seen.trajectory, seen.world
    belief, gold = recording.belief[0, : steps + 1], recording.gold[0, : steps + 1]
    unknown = belief == UNKNOWN
    for mask, colour, label in (
        ((belief != gold) & ~unknown, VERMILLION, "wrong"),
        (unknown, GREY, "unknown"),
    ):
        for field in range(world.fields):
            runs = _runs(mask[:, field])
            if runs:
                axes.broken_barh(runs, (field - 0.4, 0.8), color=colour, alpha=0.55, linewidth=0)
        axes.barh(
            [0], [0], color=colour, alpha=0.55, label=f"believed {label}" if label == "wrong" else label
        )
    time, field = np.nonzero(seen.exogenous()[0, :steps])
    axes.plot(time + 0.5, field, "x", color=INK, markersize=4, linestyle="none", label="the world changes it")
    times = np.flatnonzero(recording.probe[0, :steps] >= 0)
    for useful, face in ((True, INK), (False, GROUND)):
        some = times[recording.useful[0, times] == useful]
        axes.plot(
            some, recording.probe[0, some], "o", color=INK, markerfacecolor=face, markersize=5.5,
            linestyle="none", label="probe that corrects" if useful else "probe that confirms",
        )  # fmt: skip
    axes.set_yticks(range(world.fields), world.field_names, fontsize=7)
    axes.set_ylim(world.fields - 0.4, -0.6)
    axes.legend(
        ncols=3, fontsize=7.5, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), columnspacing=1
    )


def _runs(mask: np.ndarray) -> list[tuple[float, float]]:
    """List runs of true entries as (start, width), centred on whole times."""
    runs, start = [], 0
    for value, group in groupby(mask.tolist()):
        length = len(list(group))
        if value:
            runs.append((start - 0.5, float(length)))
        start += length
    return runs
