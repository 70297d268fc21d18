"""The front page's abstract: the paper's numbers in a paragraph, each a chip that opens what came of it here.

A `Claim` is a printed number with a figure beside it, sentences that follow the reader, and ways on. The page
(`front.js`) shows one claim at a time; without a script all of them stand below the paragraph.
"""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from envprobe_book.live_figures.figure import LiveFigure
from envprobe_book.live_figures.readings import Reading
from envprobe_book.live_figures.telling import Slot, Told, worded
from envprobe_core.errors import look_up

SIGNS = {"+": "▲", "-": "▼", "0": "○", "~": "○", "=": "○", "?": "·"}
"""Of a chip's marks: above zero, below, and not clearly either."""


@dataclass(frozen=True)
class Claim:
    """A number of the abstract.

    Attributes:
        chip: what the paper prints, in few words.
        figure: the printed value and ours.
        made_of: the parts that ours add up from.
        lines: sentences that follow the reader.
        marks: of the chip, one a protocol: where ours lie.
        links: address by words, from the book's root.
        world, arms: whose typical episode is offered, and which two policies play it.
    """

    chip: str
    figure: LiveFigure
    made_of: LiveFigure
    lines: Sequence[Told]
    marks: Sequence[Reading] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    world: str = "tooldag"
    arms: tuple[str, str] = ("simple", "periodic")

    @property
    def slots(self) -> list[Slot]:
        """The marks, one a protocol."""
        return [worded(SIGNS, one) for one in self.marks]

    def chip_html(self, name: str, *, is_open: bool) -> str:
        """The button in the paragraph."""
        marks = "".join(slot.html for slot in self.slots)
        return (
            f'<button type="button" class="live-chip" aria-controls="{name}" '
            f'aria-expanded="{str(is_open).lower()}">'
            f'<b>{html.escape(self.chip)}</b><span class="live-chip-marks">{marks}</span></button>'
        )

    def page_html(self, name: str) -> str:
        """What the chip opens."""
        said = "".join(f'<p class="live-keeps-place">{line.html}</p>' for line in self.lines)
        links = " · ".join(
            f'<a href="{html.escape(target)}">{html.escape(words)}</a>'
            for words, target in self.links.items()
        )
        return (
            f'<div class="live-claim" id="{name}" data-world="{self.world}" '
            f'data-arms="{" ".join(self.arms)}">'
            f'<div class="live-claim-said">{said}'
            f'<p class="live-claim-on">{links} · <a class="live-claim-episode" '
            'href="executed/one-episode.html">A typical episode at your setting</a></p></div>'
            f"{self.figure.page_html()}"
            f'<div class="live-claim-parts">{self.made_of.page_html()}</div></div>'
        )


@dataclass(frozen=True)
class Abstract:
    """A paragraph with {claims}; the last expression of a cell, or glued."""

    text: str
    claims: Mapping[str, Claim]
    key: str
    first: str = ""
    title: str = "The paper’s abstract, alive"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        names = {name: f"claim-{name}" for name in self.claims}

        def chip(match: "re.Match[str]") -> str:
            claim = look_up("claim of the abstract", match[1], self.claims)
            return claim.chip_html(names[match[1]], is_open=match[1] == self.first)

        paragraph = re.sub(r"\{([a-z]+)\}", chip, html.escape(self.text, quote=False))
        panels = "".join(claim.page_html(names[name]) for name, claim in self.claims.items())
        page = (
            f'<section class="live-abstract" data-engine><h2>{html.escape(self.title)}</h2><p>{paragraph}</p>'
            f'<p class="live-abstract-key">{html.escape(self.key)}</p>{panels}</section>'
        )
        plain = re.sub(r"\{([a-z]+)\}", lambda match: self.claims[match[1]].chip, self.text)
        return {"text/html": page, "text/plain": plain}
