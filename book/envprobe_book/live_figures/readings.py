"""What sentences read of a live figure.

A `Reading` is one estimate of a figure. Its `value`, `low` and `high` are numbers that remember where they
come from, so that a page can show them anew when a knob is moved.
"""

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from envprobe_book.pages.markup import Html, listed, number, signed


class Quantity(float):
    """A number of a figure: `figure`, `row` and `part` say which, of a track also `step`."""

    figure: str
    row: int
    part: str
    step: int | None

    def __new__(cls, value: float, figure: str, row: int, part: str, step: int | None = None) -> "Quantity":
        """Keep where the number comes from."""
        made = super().__new__(cls, value)
        made.figure, made.row, made.part, made.step = figure, row, part, step
        return made

    def said(self, digits: int = 1, *, sign: bool = False) -> str:
        """The number in a sentence, which follows the reader in a page.

        >>> Quantity(-3.04, "gains", 0, "value").said()
        '<span class="live-number" data-number="[&quot;gains&quot;,0,&quot;value&quot;]" data-digits="1">−3.0</span>'
        """  # noqa: E501
        place = [self.figure, self.row, self.part, *([] if self.step is None else [self.step])]
        where = html.escape(json.dumps(place, separators=(",", ":")))
        text = (signed if sign else number)(float(self), digits)
        with_sign = ' data-sign="yes"' if sign else ""
        return (
            f'<span class="live-number" data-number="{where}" data-digits="{digits}"{with_sign}>{text}</span>'
        )


@dataclass(frozen=True)
class Reading:
    """One estimate of a live figure, of a track at one step."""

    figure: str
    row: int
    found: dict[str, Any]
    step: int | None = None

    def at(self, step: int) -> "Reading":
        """The estimate of a track at a step; -1 is the last.

        >>> track = {"value": {"value": [1.0, 0.7], "low": [1.0, 0.6], "high": [1.0, 0.8]}}
        >>> Reading("curves", 0, track).at(-1).value
        0.7
        """
        return Reading(self.figure, self.row, self.found, step)

    def _quantity(self, part: str, estimate: str = "value", own: str = "") -> Quantity:
        found = self.found[estimate][own or part]
        number = found if self.step is None else found[self.step]
        return Quantity(number, self.figure, self.row, part, self.step)

    @property
    def value(self) -> Quantity:
        """The estimate itself."""
        return self._quantity("value")

    @property
    def x(self) -> Quantity:
        """The value on the axis across, of a figure of points."""
        return self._quantity("x", "x", "value")

    @property
    def low(self) -> Quantity:
        """The lower end of its interval."""
        return self._quantity("low")

    @property
    def high(self) -> Quantity:
        """The upper end of its interval."""
        return self._quantity("high")


def chips(what: str, numbers: Mapping[str, Quantity], digits: int = 1, *, sign: bool = False) -> Html:
    """A row of numbers below an answer, each with its name; in a page they follow the reader.

    Args:
        what: they all are, with their unit.
        numbers: of a live figure, by what tells them apart, such as a protocol.
        digits: after the point.
        sign: whether a plus is written.

    >>> chips("gain", {"as written": Quantity(-3.04, "gains", 0, "value")}).text
    'gain: as written −3.0'
    """
    each = (
        f'<span class="answer-chip">{html.escape(name)} {value.said(digits, sign=sign)}</span>'
        for name, value in numbers.items()
    )
    write = signed if sign else number
    words = listed(f"{name} {write(float(value), digits)}" for name, value in numbers.items())
    return Html(f'<p class="answer-chips">{html.escape(what)}: {" ".join(each)}</p>', f"{what}: {words}")
