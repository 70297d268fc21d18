"""Sentences that are true by construction: their words are chosen by where an interval lies.

`tell` fills the slots of a sentence. A slot reads live figures and carries, as data, all that it may say, so
that a page (`telling.js`) says it anew at each move, by the same rule. Words of slots are plain text, with

    {n} {v} {low} {high}   a reading without and with its sign, and its ends; {1.n} is the second reading's
    {unit} {than}          `point` or `points`; what is compared with: |of {than}| goes where there is nothing
    {names}                those of a group
    <...>                  what `each` says in its first clause alone

Families of words, for all pages, stand in `wordings.json`.
"""

import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from envprobe_book.live_figures.readings import Reading
from envprobe_book.live_figures.words import PLACES, REST, fits, in_units, said
from envprobe_book.pages.markup import Text, marked, number, pack, span_of
from envprobe_core.conditions import find_regime
from envprobe_core.errors import InputError, look_up
from envprobe_core.protocols import in_words

HIGHEST = 4.0  # threshold: a score is the sum of four terms of at most 1
MOST = 4  # readings of a slot whose places are all tried
Words = str | Mapping[str, str]


@dataclass(frozen=True)
class Slot:
    """A part of a sentence: what a page is given of it, and what it says here."""

    data: Mapping[str, Any]
    text: str

    @property
    def markdown(self) -> str:
        """The words between two marks, which show nothing wherever a notebook is read."""
        return marked(self.text, self._mark)

    @property
    def html(self) -> str:
        """The same in HTML."""
        return f"{span_of(self._mark)}{html.escape(self.text)}{span_of('end')}"

    @property
    def _mark(self) -> str:
        return pack(json.dumps(self.data, separators=(",", ":")))


@dataclass(frozen=True)
class Told(Text):
    """A sentence with slots; `parts` as a figure's title has them, texts and slots."""

    parts: tuple[str | Slot, ...]

    @property
    def plain(self) -> str:
        """What it says here, without marks."""
        return "".join(part if isinstance(part, str) else part.text for part in self.parts).replace("**", "")

    @property
    def html(self) -> str:
        """The sentence in HTML, its texts without Markdown."""
        return "".join(
            html.escape(part) if isinstance(part, str) else part.html for part in self.parts
        ).replace("**", "")

    def as_data(self) -> list[Any]:
        """The sentence as a page is given it, where it is no Markdown."""
        own = [
            part.replace("**", "") if isinstance(part, str) else dict(part.data) | {"text": part.text}
            for part in self.parts
        ]
        return [part for part in own if part]


def tell(text: str, **slots: Slot | Told) -> Told:
    """Say a sentence in Markdown whose {slots} follow the reader; a slot may stand between `**`.

    >>> one = Reading("gains", 0, {"value": {"value": -3.04, "low": -4.1, "high": -1.9}})
    >>> tell("It ends **{w}**.", w=worded("ahead", one, than="a fixed schedule")).plain
    'It ends 3.0 points behind a fixed schedule.'

    Raises:
        InputError: for a slot that is not given.
    """
    parts: list[str | Slot] = []
    for at, piece in enumerate(re.split(r"\{([a-z_]\w*)\}", text)):
        own = look_up("slot of a sentence", piece, slots) if at % 2 else piece
        parts += own.parts if isinstance(own, Told) else [own]
    return Told("".join(part if isinstance(part, str) else part.markdown for part in parts), tuple(parts))


def each(say: Words, readings: Mapping[str, Reading], than: str = "", **more: Any) -> Told:
    """Words for each of some readings, before its name; what is compared with is named once.

    Readings with the same words are named together.

    >>> here, there = (Reading("f", 0, {"value": {"value": x, "low": x, "high": x}}) for x in (1.0, -2.0))
    >>> each("ahead", {"here": here, "there": there}, than="it").plain
    '1.0 points ahead of it here and 2.0 points behind there'
    >>> each("ahead", {"here": here, "there": there, "abroad": here}, than="it").plain
    '1.0 points ahead of it here and abroad, and 2.0 points behind there'
    """
    if isinstance(say, str):
        say, more = look_up("family of words", say, families()), {"within": 0.5} | more
    words = {key: _than(text, than, once="<{}>") for key, text in say.items()}
    own = {"unit": "point", "names": list(readings)} | more
    return tell("{each}", each=_slot("each", tuple(readings.values()), words, **own))


def worded(
    say: Words, *readings: Reading, than: str = "", unit: str = "point", digits: int = 1, **more: float
) -> Slot:
    """Words for the place of the first reading: a family of `wordings.json`, or a text for each place.

    Args:
        say: the place `~` is asked for where `within` is given or a family has it.
        readings: the first decides; texts may show the others.
        than, unit: what the words name, and count, in the singular.
        digits: after the point.
        more: `scale`, by which readings are multiplied first; `base`, with which they are compared then, and
            `within`, the margin around it.

    >>> one = Reading("gains", 0, {"value": {"value": 0.2, "low": -1.5, "high": 1.8}})
    >>> worded("ahead", one).text
    'not clearly apart (+0.2 [−1.5, 1.8])'
    >>> worded({"?": "an unknown share", "*": "{n}%"}, one, scale=100, digits=0).text
    '20%'
    """
    if isinstance(say, str):
        say, more = look_up("family of words", say, families()), {"within": 0.5} | more
    return _slot(
        "places",
        readings,
        {key: re.sub("[<>]", "", _than(text, than)) for key, text in say.items()},
        unit=unit,
        digits=digits,
        **more,
    )


def pattern(readings: Iterable[Reading], cases: Mapping[str, str], **more: Any) -> Slot:
    """Words for the places of several readings, by the first case that fits; `*` is all the rest.

    A case is a place for each reading, `.` for any (`--+`); or `every -`, `some +`, `no +`, `both`.

    >>> up, down = (Reading("f", 0, {"value": {"value": x, "low": x, "high": x}}) for x in (1.0, -1.0))
    >>> pattern([down, up], {"every -": "It loses", "both": "It depends", "*": "Open"}).text
    'It depends'
    """
    return _slot("places", tuple(readings), cases, **more)


def grouped(readings: Mapping[str, Reading], say: Mapping[str, str], **more: Any) -> Slot:
    """What is named, by place: `ahead in tools and graphs, behind in rooms`; `every` names all of them."""
    return _slot("groups", tuple(readings.values()), say, names=list(readings), **more)


def ranked(readings: Mapping[str, Reading], top: int = 0, digits: int = 1, **more: Any) -> Slot:
    """Names from the largest value down, those that show the same number together: `VoI (92.1), then ...`."""
    named = tuple(readings.values())
    return _slot("ranks", named, {REST: ""}, names=list(readings), top=top, digits=digits, **more)


def counted(readings: Iterable[Reading], place: str = "+", **more: Any) -> Slot:
    """How many readings lie at a place: `2 of 3`, `all 3`, `none of 3`."""
    return _slot("counts", tuple(readings), {place: ""}, **more)


def knob(figure: Any, name: str, unit: str = "", digits: int = 0) -> Slot:
    """The setting that a figure's numbers belong to: never another than the sentence's other slots show."""
    value = figure.setting[name]
    value = find_regime(figure.setting.get("regime", "S2")).budget if value is None else value
    data = {"kind": "knob", "figures": [figure.name], "knob": name, "unit": unit, "digits": digits}
    return Slot(data, in_units(f"{number(value, digits)} {{unit}}" if unit else number(value, digits), unit))


def handle(figure: Any, name: str, most: float, step: float, unit: str = "", digits: int = 0) -> Slot:
    """A setting that a reader moves in the sentence itself, by dragging it or with the keys of a slider.

    It shows where the bar is at once; what the sentence says of it follows, see `knob`.
    """
    own = knob(figure, name, unit, digits)
    return Slot({**own.data, "kind": "handle", "most": most, "step": step}, own.text)


def at_setting(figure: Any) -> Told:
    """A figure's budget and threshold in a sentence and under the hand: `7 probes and a gate at 1.50`."""
    most = find_regime(figure.setting.get("regime", "S2")).horizon
    return tell(
        "{probes} and a gate at {gate}",
        probes=handle(figure, "budget", most, 1, "probe"),
        gate=handle(figure, "threshold", HIGHEST, 0.25, digits=2),
    )


def in_a_sentence(protocol: str) -> str:
    """How a sentence calls a protocol: "it ends ahead ... with a partial start".

    >>> in_a_sentence("observed"), in_a_sentence("paper")
    ('with a partial start', 'as written')
    """
    return in_words(protocol).replace("partial", "with a partial")


@cache
def families() -> dict[str, dict[str, str]]:
    """The words of `wordings.json`, by family and place."""
    return json.loads((Path(__file__).parent / "wordings.json").read_text(encoding="utf-8"))


def _than(text: str, than: str, once: str = "{}") -> str:
    """A text with what it compares with, where there is such; `once` marks it."""
    return re.sub(r"\|([^|]*)\|", lambda m: once.format(m[1].replace("{than}", than)) if than else "", text)


def _slot(
    kind: str, readings: tuple[Reading, ...], say: Mapping[str, str], digits: int = 1, **more: Any
) -> Slot:
    """A slot of readings; what makes a case impossible is refused before a page shows it."""
    if not readings:
        raise InputError("tell: a slot reads nothing; give at least one reading")
    where = [[one.figure, one.row, *([] if one.step is None else [one.step])] for one in readings]
    figures = list(dict.fromkeys(one.figure for one in readings))
    data = {"kind": kind, "figures": figures, "of": where, "say": dict(say), "digits": digits} | {
        name: value for name, value in more.items() if value
    }
    if kind in ("places", "each"):
        places = product(PLACES, repeat=1 if kind == "each" else min(len(readings), MOST))
        if not all(any(fits(case, "".join(own)) for case in say) for own in places) and REST not in say:
            raise InputError(
                f"tell: these cases leave a place without words: {', '.join(say)}; give one for `*`"
            )
    found = [{part: float(getattr(one, part)) for part in ("value", "low", "high")} for one in readings]
    return Slot(data, said(data, found))
