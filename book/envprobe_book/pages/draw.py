"""One verb for the figures of results: `draw(kind, frame, ...)` in the book's style."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Polygon

from envprobe_book.analyses import nondominated
from envprobe_book.pages.figures import GREY, GROUND, INK, Drawing, canvas, style_of, styled, titled
from envprobe_book.pages.markup import ends_of, number
from envprobe_core.errors import InputError, look_up, require
from envprobe_core.policies import POLICIES
from envprobe_core.worlds.base import Floats

ROW, PANEL_EDGE = 0.27, 0.62  # inches
TITLE = 40  # characters that fit above the panels of a row, together
CAP = 6  # points, of an interval's ends
UPRIGHT = ("curves", "points", "frontier")  # the value's axis is the vertical one
PROTOCOL_DASHES = {"paper": "-", "observed": (0, (5, 2)), "released": (0, (1.2, 1.6))}
OTHER_DASHES = ((0, (5, 2, 1, 2)), (0, (9, 2)), (0, (3, 1, 1, 1, 1, 1)))  # protocols with switches turned
WHOLE, PART_TINTS = "gain", (0.16, 0.42, 0.8)  # of figures of parts: hues belong to policies
PRINTED = {"color": INK, "marker": "d", "markerfacecolor": "none", "linestyle": "none"}


@styled
def draw(
    kind: str,
    frame: pd.DataFrame,
    name: str,
    y: str,
    *,
    x: str,
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
            (a value a row), `tornado` (bars by size, from zero), `parts` (a row's bars one after the other
            from zero, the series `gain` their sum, as a dot with its interval), `points` (of `x` and `y`) or
            `frontier` (points, those that no other beats filled and joined; a column `nondominated` may say
            which).
        frame: a row an estimate; an interval stands in `<value>_low`, `<value>_high`, or `low`, `high`; what
            the paper prints, if anything, in `printed_<value>`: a number or several, drawn as diamonds.
        name: a name no other figure of the page has.
        y: the column that holds the value.
        x: the column of the rows (`forest`, `bars`, `tornado`), or of the axis across.
        panels: a column; a panel for each of its values.
        series: a column; a colour (policies) or a dash (protocols) for each of its values. It names points.
        label: what the value is, with its unit.
        across: what `x` is, where it is an axis.
        line: where a thin line marks no difference, or a threshold.
        limits: of the value's axis.
        columns: panels beside each other.
        about: what the figure shows, for those who do not see it; its numbers are added.

    Raises:
        InputError: for an unknown kind, a column that the frame does not have or that holds no numbers where
            they are needed, and a frame without rows.
    """
    plot, upright = look_up("kind of figure", kind, _KINDS), kind in UPRIGHT
    both = kind in ("points", "frontier")
    if both and not series:
        raise InputError(f"draw: {kind} needs series, the column that names its points")
    require(frame, [y, x, *filter(None, (panels, series))])
    if frame.empty:
        raise InputError(f"draw: nothing to show in {name}; the frame has no rows")
    for value in (y, x) if both else (y,):
        frame = _with_numbers(frame, value)
    line = 0.0 if kind == "tornado" else line
    groups = list(dict.fromkeys(frame[panels])) if panels else [None]
    parts = [frame[frame[panels] == group] if panels else frame for group in groups]
    down = -(-len(groups) // columns)
    rows = [own[x].nunique() if kind == "parts" else len(own) for own in parts]
    tallest = max(1.9 if upright else ROW * max(3, count) for count in rows)
    height = down * (tallest + PANEL_EDGE * (0.55 if panels else 0.2)) + 0.55
    figure, axes = canvas(height, rows=down, columns=columns, sharex=True, sharey=upright)
    told = []
    for panel, group, own in zip(axes.flat, groups, parts, strict=False):
        if kind == "tornado":
            own = own.sort_values(y, key=lambda size: -size.abs(), kind="stable")
        if line is not None:
            mark = panel.axhline if upright else panel.axvline
            mark(line, color=INK, lw=0.8, ls=(0, (1, 3)) if upright else "-")
        said, title = plot(panel, own, x, y, series), titled(group)
        if limits:
            (panel.set_ylim if upright else panel.set_xlim)(limits)
        in_one_line = title.replace("\n", ", ")
        told.append(f"{in_one_line}: {said}" if panels else said)
        if panels:
            title = title.replace(", ", ",\n", 1) if len(title) > TITLE / columns else title
            panel.set_title(title, loc="left", y=1.0)  # where it belongs, as nothing stands on top
    for panel in axes.flat[len(groups) :]:
        panel.set_visible(False)
    if kind in ("forest", "bars", "parts") and len({tuple(own[x]) for own in parts}) == 1:
        for panel in axes[:, 1:].flat:  # equal rows are named once, on the left
            panel.tick_params(axis="y", labelleft=False)
    if kind == "parts":
        axes[-1, columns // 2].set_xlabel(label)  # below a panel: a figure's label meets the legend
    else:
        (figure.supylabel if upright else figure.supxlabel)(label, fontsize=9.5)
    if upright:
        axes[-1, columns // 2].set_xlabel(across)
    if kind == "parts":
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=1 if max(map(len, labels)) > 30 else 2
        )
    if series and upright:
        handles, labels = axes.flat[0].get_legend_handles_labels()
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=min(3, max(1, len(labels))))
        if kind == "frontier":  # a filling tells of one panel, and the legend of all
            for mark in legend.legend_handles:
                mark.set_markerfacecolor(mark.get_markeredgecolor())
    return Drawing(figure, name, ". ".join(filter(None, (about or label, "; ".join(told)))) + ".")


def _with_numbers(frame: pd.DataFrame, value: str) -> pd.DataFrame:
    """The frame with a column of numbers; refuse one of anything else, or with half an interval."""
    require(frame, ends_of(frame, value) or ())
    try:
        return frame.assign(**{value: frame[value].astype(float)})
    except (TypeError, ValueError) as error:
        raise InputError(f"draw: column {value} holds no numbers: {error}") from None


def _interval(own: pd.DataFrame, y: str) -> tuple[Floats, Floats]:
    """The ends of a column's intervals, [row] each; NaN where the frame has none."""
    low, high = ends_of(own, y) or ("", "")
    none = pd.Series(np.nan, own.index)
    return own.get(low, none).to_numpy(dtype=float), own.get(high, none).to_numpy(dtype=float)


def _forest(axes: Axes, own: pd.DataFrame, x: str, y: str, series: str, *, bars: bool = False) -> str:
    """Draw a row for each value, the first one on top: a dot with its interval, or a bar."""
    names, values = [titled(value) for value in own[x]], own[y].to_numpy()
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")

    low, high = _interval(own, y)
    styles = [style_of(value) for value in (own[series] if series else names)]
    places, colours = np.flatnonzero(~np.isnan(low)), [style.colour for style in styles]
    if bars:
        axes.barh(range(len(own)), own[y], height=0.62, color=colours)
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


def _parts(axes: Axes, own: pd.DataFrame, x: str, y: str, series: str) -> str:
    """Draw what a sum is made of: bars that begin where those of their side end, and the sum as a dot."""
    names = list(dict.fromkeys(own[x]))
    kinds = [kind for kind in dict.fromkeys(own[series]) if kind != WHOLE]
    axes.set_yticks(range(len(names)), map(titled, names))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    values = own.pivot(index=x, columns=series, values=y).loc[names]
    ends = np.zeros((2, len(names)))  # of the bars left and right of zero
    for kind, tint in zip(kinds, PART_TINTS, strict=False):
        sizes = values[kind].to_numpy()
        side = (sizes > 0).astype(int)
        left = ends[side, range(len(names))]
        style = {"height": 0.62, "facecolor": INK, "alpha": tint, "linewidth": 0}
        axes.barh(range(len(names)), sizes, left=left, label=titled(kind), **style)
        ends[side, range(len(names))] += sizes
    whole = own[own[series] == WHOLE].set_index(x).loc[names]
    low, high = _interval(whole, y)
    for colour, wider in ((GROUND, 2.4), (INK, 0.0)):  # to be seen on dark and on light bars
        axes.hlines(range(len(names)), low, high, color=colour, lw=1.4 + wider, zorder=3)
        size = {"markersize": 5 + wider, "markeredgewidth": 0}
        axes.plot(whole[y], range(len(names)), "o", color=colour, zorder=3, **size)
    told = []
    for name in names:
        each = ", ".join(f"{titled(kind)} {number(values.loc[name, kind], 1)}" for kind in [WHOLE, *kinds])
        told.append(f"{titled(name)}: {each}")
    return "; ".join(told)


def _curves(axes: Axes, own: pd.DataFrame, x: str, y: str, series: str) -> str:
    told = []
    lines = list(dict.fromkeys(own[series])) if series else [None]
    plain = () if PROTOCOL_DASHES.keys() & set(lines) else tuple(PROTOCOL_DASHES.values())
    others = iter((*plain, *OTHER_DASHES * len(lines)))
    for value in lines:
        curve, style = own[own[series] == value] if series else own, style_of(value)
        policy = value in POLICIES
        colour = style.colour if policy else INK
        dash = PROTOCOL_DASHES.get(value) or ("-" if value is None or policy else next(others))
        marks: dict[str, Any] = {}
        if policy:  # told apart where colours are not, a mark every fifth point
            face = style.colour if style.filled else GROUND
            marks = {"marker": style.marker, "markevery": 5, "markersize": 4, "markerfacecolor": face}
        low, high = _interval(curve, y)
        times, values = curve[x].to_numpy(), curve[y].to_numpy()
        for part in np.ma.clump_unmasked(np.ma.masked_invalid(low)):  # a band ends where its interval does
            edge = np.c_[np.r_[times[part], times[part][::-1]], np.r_[low[part], high[part][::-1]]]
            axes.add_artist(Polygon(edge, color=colour, alpha=0.18, lw=0))
            axes.update_datalim(edge)  # `fill` takes ten times as long to find the same
        axes.plot(times, values, color=colour, ls=dash, label=titled(value) if series else None, **marks)
        seen = values[~np.isnan(values)]
        if len(seen):
            who = f"{titled(value)} " if series else ""
            told.append(f"{who}from {number(seen[0], 2)} to {number(seen[-1], 2)}")
    axes.grid(axis="y")
    if own[x].dtype.kind == "i":  # steps are whole
        axes.xaxis.get_major_locator().set_params(integer=True)
    return ", ".join(told)


def _points(axes: Axes, own: pd.DataFrame, x: str, y: str, series: str) -> str:
    told, colours = [], [style_of(name).colour for name in own[series]]
    for value, other, lines in ((x, y, axes.hlines), (y, x, axes.vlines)):
        if f"{value}_low" in own:
            low, high = _interval(own, value)  # of a resampled mean; it holds the value itself
            ends = np.minimum(low, own[value]), np.maximum(high, own[value])
            lines(own[other], *ends, colors=colours, lw=0.8, zorder=2)
    for row in own.to_dict("records"):
        name, style = titled(row[series]), style_of(row[series])
        dot = style.dot()
        if "nondominated" in row:
            dot["markerfacecolor"] = style.colour if row["nondominated"] else GROUND
        axes.plot(row[x], row[y], label=name, **dot)
        if not np.isnan(row.get(f"printed_{y}", np.nan)):
            axes.plot(row[f"printed_{x}"], row[f"printed_{y}"], **PRINTED | {"color": style.colour})
        told.append(f"{name} {number(row[x], 2)}, {number(row[y], 2)}")
    axes.grid()
    return "; ".join(told)


def _frontier(axes: Axes, own: pd.DataFrame, x: str, y: str, series: str) -> str:
    if "nondominated" not in own:
        own = own.assign(nondominated=nondominated(own[[x, y]]))
    best = own[own["nondominated"]].sort_values([x, y], ascending=[True, False])
    axes.plot(best[x], best[y], color=GREY, lw=0.9, zorder=0)
    return f"nondominated: {', '.join(map(titled, best[series]))}; {_points(axes, own, x, y, series)}"


_bars = partial(_forest, bars=True)
_KINDS: dict[str, Any] = {
    "forest": _forest, "bars": _bars, "tornado": _bars, "parts": _parts,
    "curves": _curves, "points": _points, "frontier": _frontier,
}  # fmt: skip
