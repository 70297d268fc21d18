"""From one protocol to another, switch by switch: a walk of a gain along its axis, in any order.

A page begins where the walk does. A reader presses switches, and each press runs the pairs anew
(`walking.js`). Python runs the walk in one order and the other way round: the first is the still figure, both
give the range of the axis, and a switch that moves no pair on either is told apart.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import pandas as pd

from envprobe_book.live_figures.estimates import Asked, Found, answers, evaluate, gain, shift
from envprobe_book.live_figures.figure import NUMBERS, OWN, LiveFigure, _plain, _series, live
from envprobe_book.live_figures.scripts import lab_widget
from envprobe_book.live_figures.telling import Told, families, pattern, tell
from envprobe_book.pages.draw import draw
from envprobe_book.pages.figures import Drawing, policy_title
from envprobe_book.pages.markup import listed, script_json
from envprobe_book.pages.switches import deeds
from envprobe_core.errors import InputError
from envprobe_core.policies import THRESHOLD
from envprobe_core.protocols import DEPARTURES, SWITCHES, in_words, parse_protocol, turned
from envprobe_core.statistics import RESAMPLES

EDGE = 0.5  # points beyond the last interval
FEW = 100  # resamples, where none is printed


@dataclass(frozen=True)
class Walk:
    """A gain on its way from one protocol to another; a notebook's last expression.

    Attributes:
        arms: whose gain over whom.
        order: the switches in which the two protocols differ and that move a pair, as the still figure walks.
        idle: those that move none.
        path: the protocols of that walk; `found` has the gain and what of it is answers at each, `shares`
            what each step adds.
        range: of the axis.
        numbers, lead, together: what some switches do, wherever the reader's budget and threshold are; these.
        printed: the gain that the paper prints, None where it prints none.
    """

    name: str
    arms: tuple[str, str]
    worlds: str
    first: str
    last: str
    order: tuple[str, ...]
    idle: tuple[str, ...]
    path: tuple[str, ...]
    found: Sequence[tuple[Found, Found]]
    shares: Sequence[Found]
    range: tuple[float, float]
    numbers: LiveFigure
    lead: Told
    about: str
    together: tuple[str, ...] = ()
    printed: float | None = None

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row a step: the switch, its protocol, gain, what it added, and what of it is answers."""
        labels = [in_words(self.first), *(_said(self.last, one)[0] for one in self.order)]
        shares = [{"value": float("nan"), "low": float("nan"), "high": float("nan")}, *self.shares]
        rows = []
        for label, protocol, (own, of_it), share in zip(labels, self.path, self.found, shares, strict=True):
            row: dict[str, Any] = {"name": label, "protocol": protocol, **own}
            for kind, one in (("share", share), ("answers", of_it)):
                row |= {kind: one["value"], f"{kind}_low": one["low"], f"{kind}_high": one["high"]}
            rows.append(row)
        return pd.DataFrame(rows)

    @cached_property
    def drawing(self) -> Drawing:
        """The walk in one order, as a still figure."""
        rows = self.frame.assign(panel="")
        if self.printed is not None:
            rows.loc[rows.index[-1], "printed_value"] = self.printed
        return draw(
            "forest", rows, self.name, "value", x="name", line=0.0, limits=self.range, label=self.about,
            about=self.about,
        )  # fmt: skip

    def as_data(self) -> dict[str, Any]:
        """What a page is given: estimates without a protocol, the switches with their words, this walk."""
        first, last = parse_protocol(self.first), parse_protocol(self.last)
        ways = {"gain": gain, "answers": answers}
        held = {one: getattr(first, one) for one in SWITCHES}
        switches = [
            {"name": one, "value": getattr(last, one)}
            | dict(zip(("do", "doing", "means"), _said(self.last, one), strict=False))
            | {"together": one in self.together}
            for one in self.order
        ]
        return {
            "name": self.name, "about": self.about, "base": self.first.partition(":")[0], "held": held,
            "switches": switches, "idle": [_said(self.last, one)[0] for one in self.idle],
            "ends": [in_words(self.first), in_words(self.last)], "range": list(self.range),
            "estimates": {kind: of(*self.arms, worlds=self.worlds).as_data() for kind, of in ways.items()},
            "series": _series({"series": one} for one in self.arms), "arms": list(self.arms),
            "printed": self.printed, "titles": [policy_title(one) for one in self.arms],
            "say": {name: families()[name] for name in ("ahead", "adds", "turns")},
            "setting": dict(self.numbers.setting), "seeds": self.numbers.seeds,
            "resamples": self.numbers.resamples,
            "path": list(self.path), "found": _plain(self.found), "shares": _plain(self.shares),
        }  # fmt: skip

    def _repr_mimebundle_(self, **keywords: Any) -> Any:
        told = [
            f"{label}: {own:.1f} [{low:.1f}, {high:.1f}]"
            for label, own, low, high in self.frame[["name", "value", "low", "high"]].itertuples(index=False)
        ]
        page = (
            f'<div class="live-walk" data-engine id="{self.name}"><div class="live-static">'
            f"{self.drawing.svg()}</div>"
            f'<script type="application/json">{script_json(self.as_data())}</script></div>'
            f"{self.numbers.page_html()}"
        )
        state = self.as_data() | {"numbers": self.numbers.as_data()}
        data, metadata = lab_widget(state, "walking")._repr_mimebundle_(**keywords) or ({}, {})
        return {**data, "text/html": page, "text/plain": f"{self.about}. {listed(told)}."}, metadata


def _said(last: str, switch: str) -> list[str]:
    """What one does who sets a switch as a protocol has it, the doing, and what it means."""
    return deeds()[switch][getattr(parse_protocol(last), switch)]


def _turns(doing: str) -> dict[str, str]:
    """The words for what turning a switch does, by the places of the change, of before and of after."""
    own = doing[0].upper() + doing[1:]
    return {place: text.replace("{Doing}", own) for place, text in families()["turns"].items()}


def along(first: str, last: str, order: Iterable[str]) -> list[str]:
    """The protocols from the first on, the switches set in an order as the last one has them.

    >>> along("paper", "released", ["accuracy", "clock"])
    ['paper', 'paper:accuracy=slots', 'paper:clock=stands,accuracy=slots']
    """
    own, stop = parse_protocol(first), parse_protocol(last)
    names = [own.name]
    for switch in order:
        own = turned(own, **{switch: getattr(stop, switch)})
        names.append(own.name)
    return names


def walk(
    name: str,
    arm: str,
    reference: str,
    first: str,
    last: str,
    *,
    worlds: str = "combined",
    together: tuple[str, str] = ("counting over the steps", "accuracy"),
    about: str = "",
    printed: float | None = None,
    budget: int = OWN,
    threshold: float = THRESHOLD,
    regime: str = "S2",
    profile: str = "typical",
    seeds: str = "default",
    resamples: int = RESAMPLES,
) -> Walk:
    """The walk of a gain from one protocol to another, which a reader takes switch by switch.

    Args:
        name: a name no other figure of the page has.
        arm, reference: whose gain over whom.
        first, last: protocols that differ in one switch at least.
        worlds: whose episodes are pooled.
        together: of the lead: what one does, and the switches that it turns.
        about: what the axis shows.
        printed: the gain that the paper prints, if it does.
        budget, threshold, regime, profile, seeds, resamples: as `live` takes them.

    Raises:
        InputError: where no switch moves a pair.
    """
    start, stop = parse_protocol(first), parse_protocol(last)
    first, last = start.name, stop.name
    ordered = [one for one in deeds() if one in DEPARTURES and getattr(start, one) != getattr(stop, one)]
    named = {"threshold": threshold, "regime": regime, "profile": profile}

    def run(rows: Iterable[Asked], draws: int = resamples) -> list[Found]:
        return evaluate(rows, named | {"budget": None if budget == OWN else budget}, seeds, draws)

    def gains(names: Iterable[str], of: Callable[..., Asked] = gain) -> list[Asked]:
        return [of(arm, reference, worlds=worlds, protocol=one) for one in names]

    def shares(names: Sequence[str]) -> list[Asked]:
        turns = [({"protocol": after}, {"protocol": before}) for before, after in pairwise(names)]
        return [shift(arm, reference, *turn, worlds=worlds) for turn in turns]

    def still(order: Sequence[str]) -> set[str]:
        found = run(shares(along(first, last, order)), FEW)
        return {one for one, own in zip(order, found, strict=True) if _is_nothing(own)}

    idle = still(ordered) & still(ordered[::-1])
    order = tuple(one for one in ordered if one not in idle)
    if not order:
        raise InputError(f"walk: no switch between {first} and {last} moves {arm} against {reference}")
    path, back = along(first, last, order), along(first, last, reversed(order))
    found = run(gains(path))
    ends = [own[part] for own in [*found, *run(gains(back), FEW)] for part in ("low", "high")]
    ends += [] if printed is None else [printed]
    label = about or f"{policy_title(arm)} minus {policy_title(reference)}, points of accuracy"
    doing, switches = together
    both = [first, along(first, last, switches.split())[-1]]
    asked = zip(("before", "after", "share"), [*gains(both), *shares(both)], strict=True)
    rows = [{"name": own, "value": one} for own, one in asked]
    more: dict[str, Any] = named | {"budget": budget, "seeds": seeds, "resamples": resamples}
    numbers = live(NUMBERS, f"{name}-numbers", rows, title=label, **more)
    read = [numbers.at(name=own) for own in ("share", "before", "after")]
    lead = tell("**{turns}**", turns=pattern(read, _turns(doing), unit="point"))
    return Walk(
        name, (arm, reference), worlds, first, last, order,
        tuple(one for one in ordered if one in idle), tuple(path),
        list(zip(found, run(gains(path, answers)), strict=True)), run(shares(path)),
        (float(min(ends)) - EDGE, float(max(ends)) + EDGE), numbers, lead, label, tuple(switches.split()),
        printed,
    )  # fmt: skip


def _is_nothing(found: Mapping[str, float]) -> bool:
    return found["value"] == found["low"] == found["high"] == 0
