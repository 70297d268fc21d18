"""The drawing of one episode at a glance: accuracy, the highest score by term, and the table of beliefs."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from envprobe_book.pages.figures import GREY, GROUND, INK, TERM_TINTS, Drawing, canvas, styled
from envprobe_core.compiled.records import UNKNOWN
from envprobe_core.engine.scoring import COLLAPSE
from envprobe_core.policies import TERMS
from envprobe_core.protocols import parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS, make_world

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
def draw_episode(recorded: Mapping[str, Any], name: str = "episode") -> Drawing:
    """The first policy's episode by time, in three panels below each other.

    Accuracy, with the threshold of collapse; the terms of the field that is probed, or else scores highest,
    with the gate; and for each field when its belief is wrong or unknown, probed, or changed by the world.

    Args:
        recorded: from `widgets.player.record_pair`.
        name: a name no other figure of the page has.
    """
    run, regime = recorded["runs"][0], REGIMES[recorded["regime"]]
    world = make_world(recorded["world"], regime, parse_protocol(recorded["protocol"]))
    fields, track = world.fields, np.array(run["accuracy"], dtype=float)
    heights = (1, 1.3, max(1.5, 0.12 * fields))
    figure, panels = canvas(3.4 + 0.15 * fields, rows=3, sharex=True, height_ratios=heights)
    top, middle, bottom = panels[:, 0]
    top.plot(np.arange(len(track)), track, color=INK)
    top.axhline(COLLAPSE, color=GREY, linestyle=(0, (4, 3)), linewidth=1)
    top.set_ylim(0, 1.02)
    top.set_ylabel("accuracy\n(share)")
    fired = _draw_terms(middle, run)
    _draw_beliefs(bottom, run, world.field_names)
    bottom.set_xlabel("time t (steps)")
    bottom.set_xlim(-0.6, regime.horizon + 0.6)
    low = float(np.nanmin(track)) if np.isfinite(track).any() else np.nan
    alt = (
        f"{WORLDS[world.name]}, seed {recorded['seed']}, {run['title']}, {recorded['rules']}: accuracy by "
        f"time (lowest {low:.2f}), the highest score at each step by term, and which of {fields} fields are "
        f"believed right, wrong or unknown. {fired} probes, {sum(run['useful'])} of them useful."
    )
    return Drawing(figure, name, alt)


def _draw_terms(axes: Axes, run: Mapping[str, Any]) -> int:
    """Stack the terms of the probed, else of the best field at each step; return the number of probes."""
    kept, probe, times = run["kept"] or TERMS, np.array(run["probe"], dtype=int), np.arange(run["steps"])
    terms = dict(zip(TERMS, np.moveaxis(np.array(run["terms"]), 1, 0), strict=True))
    score = sum(terms[term] for term in kept)
    shown = np.where(probe >= 0, probe, np.argmax(score, axis=1))
    base = np.zeros(len(times))
    for term in kept:
        height = terms[term][times, shown]
        tint = {"color": INK, "alpha": TERM_TINTS[term], "linewidth": 0}
        axes.bar(times, height, bottom=base, width=0.8, label=f"{term}: {TERM_NAMES[term]}", **tint)
        base = base + height
    axes.plot(times[probe >= 0], base[probe >= 0] + 0.15, "v", color=INK, markersize=5, label="probe")
    if run["threshold"] is not None:
        axes.axhline(run["threshold"], color=INK, linewidth=1, linestyle=(0, (1, 2)))
    axes.set_ylim(0, len(kept) + 0.4)
    axes.set_ylabel("score ρ")
    axes.legend(bbox_to_anchor=(0.5, 1.32), **_LEGEND)
    return int((probe >= 0).sum())


def _draw_beliefs(axes: Axes, run: Mapping[str, Any], names: Sequence[str]) -> None:
    """Mark each field's beliefs by time, wrong or unknown; probes and mutations."""
    belief, gold, steps = np.array(run["belief"]), np.array(run["gold"]), run["steps"]
    probe, useful = np.array(run["probe"], dtype=int), np.array(run["useful"], dtype=bool)
    unknown = belief == UNKNOWN
    for mask, tint, label in (
        ((belief != gold) & ~unknown, 0.55, "believed wrong"),
        (unknown, 0.18, "unknown"),
    ):
        look = {"color": INK, "alpha": tint, "linewidth": 0}
        for field in range(len(names)):
            runs = [
                list(part) for held, part in groupby(range(steps + 1), key=mask[:, field].__getitem__) if held
            ]
            if runs:
                spans = [(times[0] - 0.5, float(len(times))) for times in runs]
                axes.broken_barh(spans, (field - 0.4, 0.8), **look)
        axes.barh([0], [0], label=label, **look)
    time, field = np.nonzero(np.array(run["acted"]) != gold[1:])
    axes.plot(time + 0.5, field, "x", color=INK, markersize=4, linestyle="none", label="the world changes it")
    for corrects, face in ((True, INK), (False, GROUND)):
        some = np.flatnonzero((probe >= 0) & (useful == corrects))
        label = "probe that corrects" if corrects else "probe that confirms"
        mark = {"markerfacecolor": face, "markersize": 5.5, "linestyle": "none"}
        axes.plot(some, probe[some], "o", color=INK, label=label, **mark)
    axes.set_yticks(range(len(names)), names, fontsize=7.5)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.legend(bbox_to_anchor=(0.5, -0.14), **_LEGEND)
