"""One verb for the figures of results: `draw(kind, frame, ...)` in the book's style."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Polygon

from envprobe_core.analyses import nondominated
from envprobe_core.errors import InputError, look_up, require
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import in_words
from envprobe_core.show.figures import (
    BLUE,
    GREY,
    GROUND,
    INK,
    OTHER_DASHES,
    POLICY_STYLES,
    PROTOCOL_DASHES,
    STRATUM_TITLES,
    WORLD_TITLES,
    Drawing,
    Style,
    canvas,
    policy_title,
    styled,
)
from envprobe_core.show.markup import number
from envprobe_core.worlds.base import Floats

ROW, PANEL_EDGE = 0.27, 0.62  # inches
TITLE = 48  # characters that fit above the panels of a row, together
CAP = 6  # points, of an interval's ends
UPRIGHT = ("curves", "points", "frontier")  # the value's axis is the vertical one
PLAIN = Style(BLUE, "o")
PRINTED = {"color": INK, "marker": "d", "markerfacecolor": "none", "linestyle": "none"}


@styled
def draw(
    kind: str,
    frame: pd.DataFrame,
    name: str,
    y: str,
    *,
    x: str = "",
    panels: str = "",
    series: str = "",
    label: str = "",
    across: str = "",
    line: float | None = None,
    limits: tuple[float, float] | None = None,
    columns: int = 1,
    about: str = "",
) -> Drawing:
    """Draw a frame; one message a figure.

    Args:
        kind: `forest` (a value with its interval a row), `curves` (a value over `x`, with its band), `bars`
            (a value a row), `tornado` (bars by size, from zero), `points` (of `x` and `y`) or `frontier`
            (points, those that no other beats filled and joined; a column `nondominated` may say which).
        frame: a row an estimate; an interval stands in `<value>_low`, `<value>_high`, or `low`, `high`; what
            the paper prints, if anything, in `printed_<value>`: a number or several, drawn as diamonds.
        name: a name no other figure of the page has.
        y: the column that holds the value.
        x: the column of the rows (`forest`, `bars`, `tornado`), of the axis across (`curves`, `frontier`).
        panels: a column; a panel for each of its values.
        series: a column; a colour (policies) or a dash (protocols) for each of its values.
        label: what the value is, with its unit.
        across: what `x` is, where it is an axis.
        line: where a thin line marks no difference, or a threshold.
        limits: of the value's axis.
        columns: panels beside each other.
        about: what the figure shows, for those who do not see it; its numbers are added.

    Raises:
        InputError: for an unknown kind, a column that the frame does not have, and a frame without rows.
    """
    require(frame, [column for column in (y, x, panels, series) if column])
    if frame.empty:
        raise InputError(f"draw: nothing to show in {name}; the frame has no rows")
    plot = look_up("kind of figure", kind, _KINDS)
    how = {"x": x, "series": series, "line": 0.0 if kind == "tornado" else line, "limits": limits}
    groups = list(dict.fromkeys(frame[panels])) if panels else [None]
    parts = [frame[frame[panels] == group] if panels else frame for group in groups]
    down, upright = -(-len(groups) // columns), kind in UPRIGHT
    tallest = max(1.9 if upright else ROW * max(2, len(own)) for own in parts)
    height = down * (tallest + PANEL_EDGE * (0.55 if panels else 0.2)) + 0.55
    figure, axes = canvas(height, rows=down, columns=columns, sharex=True, sharey=upright)
    told = []
    for panel, group, own in zip(axes.flat, groups, parts, strict=False):
        if kind == "tornado":
            own = own.loc[own[y].abs().sort_values(ascending=False, kind="stable").index]
        said, title = plot(panel, own, y, how), titled(group)
        in_one_line = title.replace("\n", ", ")
        told.append(f"{in_one_line}: {said}" if panels else said)
        if panels:
            title = title.replace(", ", ",\n", 1) if len(title) > TITLE / columns else title
            panel.set_title(title, loc="left", y=1.0)  # where it belongs, as nothing stands on top
    for panel in axes.flat[len(groups) :]:
        panel.set_visible(False)
    if kind in ("forest", "bars") and len({tuple(own[x]) for own in parts}) == 1:
        for panel in axes[:, 1:].flat:  # equal rows are named once, on the left
            panel.tick_params(axis="y", labelleft=False)
    (figure.supylabel if upright else figure.supxlabel)(label, fontsize=9.5)
    if upright:
        axes[-1, columns // 2].set_xlabel(across)  # below a panel: a figure's label meets the legend
    if series and upright:
        handles, labels = axes.flat[0].get_legend_handles_labels()
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=min(3, max(1, len(labels))))
        if kind == "frontier":  # a filling tells of one panel, and the legend of all
            for mark in legend.legend_handles:
                mark.set_markerfacecolor(mark.get_markeredgecolor())
    return Drawing(figure, name, f"{about or label}. {'; '.join(told)}.")


def titled(value: Any) -> str:
    """Write a name as figures show it: a world, a policy, a stratum; anything else as it is."""
    names = WORLD_TITLES | STRATUM_TITLES
    return names.get(value) or (policy_title(value) if value in POLICIES else in_words(str(value)))


def _interval(own: pd.DataFrame, y: str) -> tuple[Floats, Floats]:
    """Return the ends of a column's intervals, [row] each; NaN where the frame has none."""
    low = next((name for name in (f"{y}_low", "low") if name in own), "")
    if not low:
        return np.full(len(own), np.nan), np.full(len(own), np.nan)
    return own[low].to_numpy(dtype=float), own[low.removesuffix("low") + "high"].to_numpy(dtype=float)


def _style(value: Any) -> Style:
    return POLICY_STYLES.get(value, PLAIN)


def _forest(axes: Axes, own: pd.DataFrame, y: str, how: Any, *, bars: bool = False) -> str:
    """Draw a row for each value, the first one on top: a dot with its interval, or a bar."""
    names, values = [titled(value) for value in own[how["x"]]], own[y].to_numpy(dtype=float)
    if how["line"] is not None:
        axes.axvline(how["line"], color=INK, lw=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    if how["limits"]:
        axes.set_xlim(how["limits"])
    axes.grid(axis="x")

    low, high = _interval(own, y)
    styles = [_style(value) for value in own[how["series"]]] if how["series"] else [PLAIN] * len(own)
    places, colours = np.flatnonzero(~np.isnan(low)), [style.colour for style in styles]
    if bars:
        axes.barh(range(len(own)), own[y], height=0.62, color=colours if how["series"] else BLUE)
        if len(places):
            axes.hlines(places, low[places], high[places], color=INK, lw=1.2, zorder=2, capstyle="projecting")
    else:
        if len(places):
            lows, highs = np.minimum(low, values)[places], np.maximum(high, values)[places]
            inks = [colours[place] for place in places]
            axes.hlines(places, lows, highs, colors=inks, lw=1.6, zorder=2)
            caps = {"marker": "|", "s": CAP**2, "linewidths": 1.0, "zorder": 2}
            axes.scatter(np.r_[lows, highs], np.r_[places, places], c=inks * 2, **caps)
        for style in dict.fromkeys(styles):
            alike = [place for place, other in enumerate(styles) if other == style]
            axes.plot(values[alike], alike, **style.dot())

    printed = [
        (value, place)
        for place, several in enumerate(own.get(f"printed_{y}", ()))
        for value in np.atleast_1d(np.asarray(several, dtype=float))
        if value == value
    ]
    if printed:
        axes.plot(*zip(*printed, strict=True), **PRINTED)
    told = []
    for name, value, *ends in zip(names, values, low, high, strict=True):
        spans = not bars and ends[0] == ends[0]
        span = f" ({number(ends[0], 2)} to {number(ends[1], 2)})" if spans else ""
        told.append(f"{name} {number(value, 2)}{span}")
    return ", ".join(told)


def _curves(axes: Axes, own: pd.DataFrame, y: str, how: Any) -> str:
    told, series = [], how["series"]
    lines = list(dict.fromkeys(own[series])) if series else [None]
    plain = () if PROTOCOL_DASHES.keys() & set(lines) else tuple(PROTOCOL_DASHES.values())
    others = iter((*plain, *OTHER_DASHES * len(lines)))
    for value in lines:
        curve, style, policy = own[own[series] == value] if series else own, _style(value), value in POLICIES
        colour = style.colour if policy else INK
        dash = PROTOCOL_DASHES.get(value) or ("-" if value is None or policy else next(others))
        marks: dict[str, Any] = {}
        if policy:  # told apart where colours are not, a mark every fifth point
            face = style.colour if style.filled else GROUND
            marks = {"marker": style.marker, "markevery": 5, "markersize": 4, "markerfacecolor": face}
        low, high = _interval(curve, y)
        times, values = curve[how["x"]].to_numpy(), curve[y].to_numpy(dtype=float)
        for part in np.ma.clump_unmasked(np.ma.masked_invalid(low)):  # a band ends where its interval does
            edge = np.c_[np.r_[times[part], times[part][::-1]], np.r_[low[part], high[part][::-1]]]
            axes.add_artist(Polygon(edge, color=colour, alpha=0.18, lw=0))
            axes.update_datalim(edge)  # `fill` takes ten times as long to find the same
        axes.plot(times, values, color=colour, ls=dash, label=titled(value) if series else None, **marks)
        seen = values[~np.isnan(values)]
        if len(seen):
            who = f"{titled(value)} " if series else ""
            told.append(f"{who}from {number(seen[0], 2)} to {number(seen[-1], 2)}")
    if how["line"] is not None:
        axes.axhline(how["line"], color=INK, lw=0.8, ls=(0, (1, 3)))
    if how["limits"]:
        axes.set_ylim(how["limits"])
    axes.grid(axis="y")
    if own[how["x"]].dtype.kind == "i":  # steps are whole
        axes.xaxis.get_major_locator().set_params(integer=True)
    return ", ".join(told)


def _points(axes: Axes, own: pd.DataFrame, y: str, how: Any) -> str:
    told, x = [], how["x"]
    colours = [_style(name).colour for name in own[how["series"]]]
    for value, other, lines in ((x, y, axes.hlines), (y, x, axes.vlines)):
        if f"{value}_low" in own:
            low, high = _interval(own, value)  # of a resampled mean; it holds the value itself
            ends = np.minimum(low, own[value]), np.maximum(high, own[value])
            lines(own[other], *ends, colors=colours, lw=0.8, zorder=2)
    for row in own.to_dict("records"):
        name, style = row[how["series"]], _style(row[how["series"]])
        dot = style.dot()
        if "nondominated" in row:
            dot["markerfacecolor"] = style.colour if row["nondominated"] else GROUND
        axes.plot(row[x], row[y], label=titled(name), **dot)
        if not np.isnan(row.get(f"printed_{y}", np.nan)):
            axes.plot(row[f"printed_{x}"], row[f"printed_{y}"], **PRINTED | {"color": style.colour})
        told.append(f"{titled(name)} {number(row[x], 2)}, {number(row[y], 2)}")
    axes.grid()
    return "; ".join(told)


def _frontier(axes: Axes, own: pd.DataFrame, y: str, how: Any) -> str:
    if "nondominated" not in own:
        own = own.assign(nondominated=nondominated(own[[how["x"], y]]))
    best = own[own["nondominated"]].sort_values([how["x"], y], ascending=[True, False])
    axes.plot(best[how["x"]], best[y], color=GREY, lw=0.9, zorder=0)
    names = ", ".join(titled(name) for name in best[how["series"]])
    return f"nondominated: {names}; {_points(axes, own, y, how)}"


_bars = partial(_forest, bars=True)
_KINDS: dict[str, Any] = {
    "forest": _forest, "bars": _bars, "tornado": _bars,
    "curves": _curves, "points": _points, "frontier": _frontier,
}  # fmt: skip
