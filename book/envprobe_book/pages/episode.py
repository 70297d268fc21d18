"""The drawing of one episode at a glance: accuracy, the highest score by term, and the table of beliefs."""

from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from envprobe_book.facts.replay import Witnessed, witness
from envprobe_book.pages.figures import GREY, GROUND, INK, TERM_TINTS, Drawing, canvas, styled
from envprobe_core.conditions import Condition
from envprobe_core.engine.records import UNKNOWN
from envprobe_core.engine.scoring import COLLAPSE
from envprobe_core.policies import TERMS

TERM_NAMES = {"c": "criticality", "s": "staleness", "u": "uncertainty", "d": "dependency role"}
_LEGEND: dict[str, Any] = {
    "ncols": 3,
    "fontsize": 7.5,
    "frameon": False,
    "loc": "upper center",
    "columnspacing": 0.8,
    "handlelength": 1.2,
}


@styled
def draw_episode(condition: Condition, seed: int) -> Drawing:
    """One episode by time, in three panels below each other.

    Accuracy, with the threshold of collapse; the terms of the field that is probed, or else scores highest,
    with the gate; and for each field when its belief is wrong or unknown, probed, or changed by the world.
    """
    seen = witness(condition, np.array([seed], dtype=np.int64))
    recording, fields = seen.trajectory, seen.world.fields
    steps, track = int(recording.steps[0]), recording.accuracy[0]
    heights = (1, 1.3, max(1.5, 0.12 * fields))
    figure, panels = canvas(3.4 + 0.15 * fields, rows=3, sharex=True, height_ratios=heights)
    top, middle, bottom = panels[:, 0]
    top.plot(np.arange(len(track)), track, color=INK)
    top.axhline(COLLAPSE, color=GREY, linestyle=(0, (4, 3)), linewidth=1)
    top.set_ylim(0, 1.02)
    top.set_ylabel("accuracy\n(share)")
    fired = _draw_terms(middle, seen, steps)
    _draw_beliefs(bottom, seen, steps)
    bottom.set_xlabel("time t (steps)")
    bottom.set_xlim(-0.6, condition.regime.horizon + 0.6)
    low = float(np.nanmin(track)) if np.isfinite(track).any() else np.nan
    alt = (
        f"One episode: accuracy by time (lowest {low:.2f}), the highest score at each step by term, and "
        f"which of {fields} fields are believed right, wrong or unknown. {fired} probes, "
        f"{int(recording.useful[0].sum())} of them useful."
    )
    return Drawing(figure, "episode", alt)


def _draw_terms(axes: Axes, seen: Witnessed, steps: int) -> int:
    """Stack the terms of the probed, else of the best field at each step; return the number of probes."""
    kept, score, probe = seen.kept_terms or TERMS, seen.rho()[0], seen.trajectory.probe[0, :steps].astype(int)
    shown = np.where(probe >= 0, probe, np.argmax(np.nan_to_num(score[:steps], nan=-1.0), axis=1))
    times, base = np.arange(steps), np.zeros(steps)
    for term in kept:
        height = seen.term(term)[0, times, shown]
        tint = {"color": INK, "alpha": TERM_TINTS[term], "linewidth": 0}
        axes.bar(times, height, bottom=base, width=0.8, label=f"{term}: {TERM_NAMES[term]}", **tint)
        base = base + height
    axes.plot(times[probe >= 0], base[probe >= 0] + 0.15, "v", color=INK, markersize=5, label="probe")
    if seen.condition.policy.has_threshold:
        axes.axhline(seen.condition.threshold_in_force, color=INK, linewidth=1, linestyle=(0, (1, 2)))
    axes.set_ylim(0, len(kept) + 0.4)
    axes.set_ylabel("score ρ")
    axes.legend(bbox_to_anchor=(0.5, 1.32), **_LEGEND)
    return int((probe >= 0).sum())


def _draw_beliefs(axes: Axes, seen: Witnessed, steps: int) -> None:
    """Mark each field's beliefs by time, wrong or unknown; probes and mutations."""
    recording, world = seen.trajectory, seen.world
    belief, gold = recording.belief[0, : steps + 1], recording.gold[0, : steps + 1]
    unknown = belief == UNKNOWN
    for mask, tint, label in (
        ((belief != gold) & ~unknown, 0.55, "believed wrong"),
        (unknown, 0.18, "unknown"),
    ):
        look = {"color": INK, "alpha": tint, "linewidth": 0}
        for field in range(world.fields):
            runs = [
                list(part) for held, part in groupby(range(steps + 1), key=mask[:, field].__getitem__) if held
            ]
            if runs:
                spans = [(times[0] - 0.5, float(len(times))) for times in runs]
                axes.broken_barh(spans, (field - 0.4, 0.8), **look)
        axes.barh([0], [0], label=label, **look)
    time, field = np.nonzero(seen.exogenous()[0, :steps])
    axes.plot(time + 0.5, field, "x", color=INK, markersize=4, linestyle="none", label="the world changes it")
    times = np.flatnonzero(recording.probe[0, :steps] >= 0)
    for useful, face in ((True, INK), (False, GROUND)):
        some = times[recording.useful[0, times] == useful]
        label = "probe that corrects" if useful else "probe that confirms"
        mark = {"markerfacecolor": face, "markersize": 5.5, "linestyle": "none"}
        axes.plot(some, recording.probe[0, some], "o", color=INK, label=label, **mark)
    axes.set_yticks(range(world.fields), world.field_names, fontsize=7.5)
    axes.set_ylim(world.fields - 0.4, -0.6)
    axes.legend(bbox_to_anchor=(0.5, -0.14), **_LEGEND)
