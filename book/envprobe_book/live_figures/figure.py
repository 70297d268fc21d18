"""One verb for figures under the reader's hand: `live` describes a figure once, as data.

From the description Python makes the static figure, and a page the live one (`live.js`), with the same
digits at the page's own values. JupyterLab shows the same front end as the book.
"""

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import pandas as pd

from envprobe_book.analyses import nondominated
from envprobe_book.live_figures.estimates import Asked, Found, evaluate
from envprobe_book.live_figures.readings import Reading
from envprobe_book.live_figures.scripts import lab_widget
from envprobe_book.live_figures.telling import HIGHEST, Told
from envprobe_book.pages.draw import PROTOCOL_DASHES, draw
from envprobe_book.pages.figures import POLICY_STYLES, Drawing, policy_title, titled
from envprobe_book.pages.markup import holds, script_json
from envprobe_core.conditions import find_profile, find_regime, is_whole
from envprobe_core.errors import InputError
from envprobe_core.policies import THRESHOLD
from envprobe_core.protocols import in_words
from envprobe_core.statistics import RESAMPLES

Row = Mapping[str, Any]
OWN = -1  # as a budget: the regime's
LABELS = ("panel", "name", "series")
NUMBERS = "numbers"  # a figure that sentences alone show
BOTH = ("points", "frontier")  # whose marks have two values


@dataclass
class LiveFigure:
    """A figure of estimates; a notebook's last expression.

    Attributes:
        kind: as `draw` takes it, or `numbers`, which are shown by sentences alone.
        name: a name no other figure of the page has.
        rows: one an estimate: `value`, of points also `x`, and its labels `panel name series`; what the paper
            prints in `printed` and `printed_x`; of a frontier, whether it is `competing` (by default it is).
        setting: the page's budget, threshold, regime and profile, from which a reader moves.
        moves: what of it a reader may move here.
    """

    kind: str
    name: str
    rows: Sequence[Row]
    setting: Mapping[str, Any]
    seeds: str
    resamples: int
    look: Mapping[str, Any]
    moves: tuple[str, ...]
    _found: list[dict[str, Found]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Run what the figure shows."""
        parts = [(row, part) for row in self.rows for part in ("value", "x") if part in row]
        found = iter(evaluate([row[part] for row, part in parts], self.setting, self.seeds, self.resamples))
        self._found = [{part: next(found) for part in ("value", "x") if part in row} for row in self.rows]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """What the figure shows: a row an estimate, or a step of a track.

        Labels, then `value low high`, of points also `x x_low x_high`, and what is printed.
        """
        rows: list[dict[str, Any]] = []
        for row, found in zip(self.rows, self._found, strict=True):
            labels = {name: row.get(name, "") for name in LABELS}
            printed = {f"printed_{part}": row[key] for part, key in _PRINTED if row.get(key) is not None}
            own = found["value"]
            if row["value"].statistic == "track":
                steps = zip(own["t"], own["value"], own["low"], own["high"], strict=True)
                rows += [
                    labels | dict(zip(("t", "value", "low", "high"), step, strict=True)) for step in steps
                ]
                continue
            values = {"value": own["value"], "value_low": own["low"], "value_high": own["high"]}
            if "x" in found:
                other = found["x"]
                values |= {"x": other["value"], "x_low": other["low"], "x_high": other["high"]}
                values["competing"] = row.get("competing", True)
            rows.append(labels | values | printed)
        frame = pd.DataFrame(rows)
        if self.kind == "frontier":
            frame["nondominated"] = False
            for _, part in frame[frame["competing"]].groupby("panel", sort=False):
                frame.loc[part.index, "nondominated"] = nondominated(part[["x", "value"]])
        return frame

    def at(self, **labels: str) -> Reading:
        """The estimate whose labels these are, for a condition or a number in a sentence.

        Raises:
            InputError: if not exactly one row has them.
        """
        own = [
            place
            for place, row in enumerate(self.rows)
            if all(row.get(name) == value for name, value in labels.items())
        ]
        if len(own) != 1:
            raise InputError(f"{self.name}: {len(own)} rows have {labels}; one is accepted")
        return Reading(self.name, own[0], self._found[own[0]])

    @cached_property
    def drawing(self) -> Drawing:
        """The figure at the page's values, as `draw` makes it."""
        look, frame = self.look, self.frame
        by_step = "t" in frame
        across = "t" if by_step else "x" if self.kind in BOTH else "name"
        ends = {"value_low": "low", "value_high": "high"} if not by_step else {}
        return draw(
            self.kind,
            frame.rename(columns={} if self.kind in BOTH else ends),
            self.name,
            "value",
            x=across,
            panels="panel" if frame["panel"].any() else "",
            series="series" if frame["series"].any() else "",
            label=look["label"],
            across=look["across"],
            line=look["line"],
            limits=look["limits"],
            columns=look["columns"],
            about=look["about"],
        )

    def as_data(self) -> dict[str, Any]:
        """The figure as a page is given it: how it looks, its estimates, and their values as printed here."""
        rows = []
        for row, found in zip(self.rows, self._found, strict=True):
            told = {name: _text(row.get(name, "")) for name in ("panel", "name")}
            told |= {"series": str(row.get("series", "")), "competing": row.get("competing", True)}
            told |= {f"printed_{part}": _plain(row.get(key)) for part, key in _PRINTED}
            told |= {part: row[part].as_data() for part in found}
            rows.append(told | {"found": _plain(found)})
        look = dict(self.look) | {name: _text(self.look[name]) for name in ("label", "across", "lead")}
        if isinstance(look["title"], Told):
            look["title"] = look["title"].as_data()
        said = {"kind": self.kind, "name": self.name, "series": _series(self.rows), "rows": rows}
        return look | said | {
            "setting": dict(self.setting), "moves": list(self.moves), "seeds": self.seeds,
            "resamples": self.resamples,
        }  # fmt: skip

    def page_html(self) -> str:
        """The figure in a page: the static one, which a script replaces, and the description."""
        still = "" if self.kind == NUMBERS else f'<div class="live-static">{self.drawing.svg()}</div>'
        return (
            f'<div class="live-figure" data-engine id="{html.escape(self.name)}">{still}'
            f'<script type="application/json">{script_json(self.as_data())}</script></div>'
        )

    def _repr_mimebundle_(self, **keywords: Any) -> Any:
        # of numbers, which sentences read, there is nothing to see
        plain = str(self.look["title"]) if self.kind == NUMBERS else self.drawing.alt
        page = {"text/html": self.page_html(), "text/plain": plain}
        data, metadata = lab_widget(self.as_data())._repr_mimebundle_(**keywords) or ({}, {})
        return {**data, **page}, metadata


_PRINTED = (("value", "printed"), ("x", "printed_x"))


def _text(value: Any) -> str:
    """A label as a page shows it: a title for a name."""
    return titled(value) if value else ""


def _plain(value: Any) -> Any:
    """A value as JSON can hold it: None for what is not finite."""
    if isinstance(value, Mapping):
        return {name: _plain(own) for name, own in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _series(rows: Iterable[Row]) -> dict[str, Any]:
    """How each series is drawn: a policy by its own mark and colour, a protocol by its dashes."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(str(row.get("series", "")) for row in rows):
        if name in POLICY_STYLES:
            title = policy_title(name)
            found[name] = POLICY_STYLES[name].mark() | {"title": title, "dash": ""}
        elif name:
            dash = PROTOCOL_DASHES.get(name, "-")
            dashes = "" if isinstance(dash, str) else " ".join(str(length) for length in dash[1])
            ink = {"colour": "currentColor", "dark": "currentColor", "marker": "", "filled": True}
            found[name] = ink | {"title": in_words(name), "dash": dashes}
    return found


def live(
    kind: str,
    name: str,
    rows: Iterable[Row],
    *,
    title: "str | Callable[[LiveFigure], Told]",
    when: Callable[[LiveFigure], Any] | None = None,
    label: str = "",
    across: str = "",
    line: float | None = None,
    limits: tuple[float, float] | None = None,
    columns: int = 1,
    lead: str = "",
    loud: Iterable[str] = (),
    digits: int = 2,
    about: str = "",
    budget: int = OWN,
    threshold: float = THRESHOLD,
    regime: str | None = "S2",
    profile: str | None = "typical",
    seeds: str = "default",
    resamples: int = RESAMPLES,
) -> LiveFigure:
    """A figure that the reader's budget and threshold move, in the book and in JupyterLab.

    Args:
        kind: as `draw` takes it.
        name: a name no other figure of the page has.
        rows: an estimate each (`mean`, `gain`, `shift`, `track`), see `LiveFigure`.
        title: what to look at; or what is found: a function of the figure that gives a telling sentence, or a
            sentence with `when`.
        when: a fixed title's condition, asked of the figure, as `conclude` takes it; where it fails, `about`
            stands in its place.
        label, across, line, limits, columns, about: as `draw` takes them.
        lead: the panel that a page shows at first, large, with a choice of the others; print has them all.
        loud: the series in colour and with names there, the others being grey until a reader asks for them.
        digits: of the values that are written beside marks.
        budget: where it stands at first; -1 is the regime's own.
        threshold: likewise; policies without a gate ignore it.
        regime, profile: of the estimates that name none; None where each names its own, and nobody moves it.
        seeds: as `run` takes them.
        resamples: of the intervals.

    Raises:
        InputError: for no rows, an unknown name, or a value out of range.
        ConclusionError: if the title is not so with the book's own values.

    >>> from envprobe_book.live_figures import gain
    >>> rows = [{"name": "paper", "value": gain("simple", "periodic", worlds="procedural", protocol="paper")}]
    >>> figure = live("forest", "one", rows, title="Behind by half a point", seeds="0:40", resamples=200)
    >>> figure.frame["value"].round(2).tolist()
    [-0.46]
    """
    given = list(rows)
    if not given:
        raise InputError(f"live: nothing to show in {name}; give at least one row")
    for row in given:
        if not isinstance(row.get("value"), Asked):
            raise InputError(f"live: a row of {name} has no estimate as its value: {str(row)[:200]}")
    level = find_regime(regime or "S2")
    if not is_whole(budget) or not OWN <= budget <= level.horizon:
        raise InputError(f"live: budget {budget!r} is not a whole number in {OWN}..{level.horizon}")
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= HIGHEST:
        raise InputError(f"live: threshold {threshold!r} is not a number in 0..{HIGHEST:g}")
    setting: dict[str, Any] = {"budget": None if budget == OWN else budget, "threshold": float(threshold)}
    if regime is not None:
        setting["regime"] = level.name
    if profile is not None:
        setting["profile"] = find_profile(profile).name
    look = {
        "title": title, "label": label, "across": across, "line": line, "limits": limits, "columns": columns,
        "lead": lead, "loud": list(loud), "digits": digits, "about": about or title,
    }  # fmt: skip
    figure = LiveFigure(kind, name, given, setting, seeds, resamples, look, tuple(setting))
    if not isinstance(title, str):
        told = title(figure)
        figure.look = look | {"title": told, "about": about or told.plain}
        return figure
    if when is None:
        return figure
    if not holds(title, lambda: when(figure)):
        figure.look = look | {"title": look["about"]}
    return figure


def over(
    of: Callable[[Any, Any], Any], panels: Iterable[Any], names: Iterable[Any], *, series: bool = False
) -> list[Row]:
    """Rows of a figure: the estimate `of` each panel and name, or such with more of a row beside it.

    Args:
        of: gives an estimate, or a row without panel and name.
        panels, names: or mappings to what pages call them.
        series: whether a name is also how its mark is drawn.

    >>> from envprobe_book.live_figures import mean
    >>> over(lambda rule, who: mean(who, protocol=rule), ["paper"], ["simple"])[0]["panel"]
    'paper'
    """
    called = [
        own if isinstance(own, Mapping) else {one: one for one in own} for own in map(_kept, (panels, names))
    ]
    rows = []
    for (panel, above), (name, title) in product(called[0].items(), called[1].items()):
        found = of(panel, name)
        own = found if isinstance(found, Mapping) else {"value": found}
        rows.append({"panel": above, "name": title} | ({"series": name} if series else {}) | dict(own))
    return rows


def _kept(given: Any) -> Any:
    return given if isinstance(given, Mapping) else list(given)
