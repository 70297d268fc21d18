"""Figures: how the book draws, one style for every policy, and the drawing that a notebook shows.

A figure is shown as SVG inside the page, so that its text and axes follow the page's own colours in light
and in dark mode and can be read aloud: black is drawn in the text colour of the page, white in its ground.
The same data give the same bytes.
"""

from __future__ import annotations

import functools
import html
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, TypeVar

from envprobe_core.policies import POLICIES
from envprobe_core.protocols import in_words
from envprobe_core.worlds import WORLDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, GROUND = "#000000", "#ffffff"  # become the page's text colour and its ground
BLUE, VERMILLION, GREEN = "#0072b2", "#b84f00", "#007a5a"  # after Okabe and Ito (2008), darkened so
PURPLE, AMBER, SKY = "#a0508a", "#8a6200", "#2b78a6"  # that text in them reads on white (4.5:1)
ROSE = "#c2185b"
GREY = "#808080"
DARK = {  # the same colours on a dark page
    BLUE: "#56b4e9",
    VERMILLION: "#f0853f",
    GREEN: "#2fc79a",
    PURPLE: "#e09ccb",
    AMBER: "#eeb43c",
    SKY: "#9bd4f5",
    ROSE: "#ff86b3",
}
RC = {
    "svg.fonttype": "none",
    "svg.hashsalt": "envprobe",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # for measuring; pages show their own font
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.labelsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.edgecolor": INK,
    "axes.axisbelow": True,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "grid.color": GREY,
    "grid.alpha": 0.35,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.5,
}
WIDTH = 4.25  # inches; narrow, so that a phone shows all of a figure
LARGEST = 1.41  # how far a page may enlarge a figure
READABLE = 10  # pixels of its smallest text, to which a narrow page may shrink it; beyond that it scrolls
POINTS = 72  # an inch, the unit of SVG
MARGIN = 0.4  # of the data's range, beside data for which an axis is widened
UNDATED = {"Date": None}
_PIXELS = 96
FIGURE_CLASS = "envprobe-figure"
THEMES = (  # where a colour holds, and whether the ground is light there
    ("html", True),
    ('html[data-theme="dark"]', False),
    ('[data-jp-theme-light="false"]', False),
)
ROLES = {
    "agent": BLUE,
    "asked": BLUE,
    "goal": VERMILLION,
    "wrong": VERMILLION,
    "key": AMBER,
    "unknown": AMBER,
}
"""The colours of what is drawn of a world and of a belief, in figures and in pages."""
_COLOURS = "".join(
    f"{theme} .{FIGURE_CLASS}{{"
    + "".join(f"--ink-{light[1:]}:{light if day else dark};" for light, dark in DARK.items())
    + "}"
    for theme, day in THEMES
)
_FONTS = "var(--pst-font-family-base, system-ui, sans-serif)"


@dataclass(frozen=True)
class Style:
    """How one policy is drawn, everywhere."""

    colour: str
    marker: str
    filled: bool = True
    above: bool = False  # stays in sight where marks coincide

    def dot(self, **more: Any) -> dict[str, Any]:
        """The keywords of a marker, and more of them, as `Axes.plot` takes them."""
        face = self.colour if self.filled else GROUND
        return {
            "color": self.colour,
            "marker": self.marker,
            "markerfacecolor": face,
            "markeredgecolor": self.colour,
            "linestyle": "none",
            "zorder": 2.5 if self.above else 2.0,
        } | more

    def mark(self) -> dict[str, Any]:
        """How a widget draws it, on a light and on a dark page; ink is the text's own colour."""
        light, dark = (self.colour, DARK[self.colour]) if self.colour in DARK else ("currentColor",) * 2
        return {"colour": light, "dark": dark, "marker": self.marker, "filled": self.filled}


_OWN_STYLES: dict[str, Style] = {
    "no-probe": Style(INK, "o", filled=False),
    "random": Style(PURPLE, "s"),
    "periodic": Style(VERMILLION, "D"),
    "self-uncertainty": Style(AMBER, "v"),
    "simple": Style(BLUE, "o", above=True),
    "minus-c": Style(GREEN, "<"),
    "minus-s": Style(GREEN, ">"),
    "minus-u": Style(GREEN, "^"),
    "minus-d": Style(GREEN, "v"),
    "cd": Style(SKY, "^"),
    "judge": Style(SKY, "P"),
    "oracle": Style(INK, "*"),
    "oracle-tw": Style(INK, "X"),
    "placebo": Style(BLUE, "o", filled=False),
    "yoked": Style(BLUE, "s", filled=False),
    "late": Style(VERMILLION, "s"),
    "late-stalest": Style(VERMILLION, "v"),
    "late-mismatch": Style(VERMILLION, "^"),
    "voi": Style(ROSE, "p"),
    "voi-accuracy": Style(ROSE, "^"),
    "voi-success": Style(ROSE, ">"),
}
_IN_INK = cycle("sDv^<>pP")  # outlines that no style above has in ink
POLICY_STYLES: dict[str, Style] = _OWN_STYLES | {
    name: Style(INK, next(_IN_INK)) for name in POLICIES if name not in _OWN_STYLES
}
"""Of every policy; one that has none of its own is drawn in ink."""
PLAIN = Style(INK, "o")
"""Of what is no policy: hues belong to policies."""
TERM_TINTS = {"c": 0.85, "s": 0.6, "u": 0.35, "d": 0.15}
"""How much of the text's colour each of the score's terms has."""
STRATUM_TITLES = {"procedural": "tools", "spatial": "rooms and graphs", "combined": "all worlds"}


def palette() -> str:
    """The colours as a style sheet: `--role-agent` and the like, for light and dark pages.

    >>> palette().splitlines()[0]
    'html{--role-agent:#0072b2;--role-asked:#0072b2;--role-goal:#b84f00;--role-wrong:#b84f00;--role-key:#8a6200;--role-unknown:#8a6200}'
    """
    sheets = (
        ";".join(f"--role-{role}:{light if day else DARK[light]}" for role, light in ROLES.items())
        for _, day in THEMES
    )
    return "\n".join(f"{theme}{{{own}}}" for (theme, _), own in zip(THEMES, sheets, strict=True))


def policy_title(name: str) -> str:
    """How tables and figures call a policy; a reader's own by its name."""
    return POLICIES[name].title if name in POLICIES else name


def titled(value: Any) -> str:
    """Write a name as figures show it: a world, a policy, a stratum; anything else as it is."""
    return (WORLDS | STRATUM_TITLES).get(value) or in_words(policy_title(str(value)))


def style_of(value: Any) -> Style:
    """How a policy is drawn, and what is none."""
    return POLICY_STYLES.get(value, PLAIN)


@dataclass(frozen=True)
class Drawing:
    """A figure with a description, which a notebook shows as SVG in the page's colours."""

    figure: Figure  # the Matplotlib figure, for readers who want to change it
    name: str  # a name no other figure of the page has
    alt: str  # what the figure shows, for those who do not see it

    def svg(self) -> str:
        """The figure as one SVG element for an HTML page."""
        import matplotlib

        with matplotlib.rc_context(RC):
            written = _written(self.figure)
        return _embedded(written, self.name, self.alt)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": self.svg(), "text/plain": self.alt}


@dataclass(frozen=True)
class Choice:
    """Drawings of which a page shows one, large, with a choice of the others; print has them all."""

    drawings: Mapping[str, Drawing]  # by what the choice calls them
    name: str
    alt: str

    def html(self) -> str:
        """The choice as tabs of Sphinx's design, which need no script."""
        tabs = []
        for place, (title, drawing) in enumerate(self.drawings.items()):
            own, checked = f"{self.name}-choice-{place}", "" if place else " checked"
            tabs.append(
                f'<input{checked} id="{own}" name="{self.name}-choice" type="radio">'
                f'<label class="sd-tab-label" for="{own}">{html.escape(title)}</label>'
                f'<div class="sd-tab-content">{drawing.svg()}</div>'
            )
        return f'<div class="sd-tab-set">{"".join(tabs)}</div>'

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": self.alt}


def _written(figure: Figure) -> str:
    """The file that Matplotlib makes of a figure."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    for patch in (figure.patch, *(panel.patch for panel in figure.axes)):
        patch.set(facecolor="none", edgecolor="none")
    figure.set_dpi(POINTS)
    buffer = io.StringIO()
    FigureCanvasSVG(figure).print_svg(buffer, metadata=UNDATED)  # `savefig` draws twice for the same bytes
    return buffer.getvalue()


Plot = TypeVar("Plot", bound=Callable[..., Drawing])


def styled(plot: Plot) -> Plot:
    """Let a plotting function draw in the book's style."""

    @functools.wraps(plot)
    def drawn(*arguments: Any, **keywords: Any) -> Drawing:
        import matplotlib

        with matplotlib.rc_context(RC):
            drawing = plot(*arguments, **keywords)
            if (
                engine := drawing.figure.get_layout_engine()
            ):  # everything gets its place, and must not move again
                engine.execute(drawing.figure)
                drawing.figure.set_layout_engine("none")
        return drawing

    return drawn  # type: ignore[return-value]


def canvas(height: float, *, rows: int = 1, columns: int = 1, **settings: Any) -> tuple[Figure, Any]:
    """Make an empty figure in the book's style.

    Args:
        height: in inches; every figure is `WIDTH` wide.
        settings: as `Figure.subplots` takes them (`sharex`, `width_ratios` and so on).

    Returns:
        The figure and its panels, a 2-d array [row, column].
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **settings)


def _embedded(svg: str, name: str, alt: str) -> str:
    """Turn Matplotlib's SVG file into an element that lives in a page among others."""
    svg = svg[svg.index("<svg") :].strip()
    rules = r"<defs>\s*<style.*?</style>\s*</defs>"  # for all "*"
    svg = re.sub(rf"(<metadata>.*?</metadata>|{rules})\s*", "", svg, flags=re.DOTALL)
    used = set(re.findall(r'(?:href="|url\()#([\w.-]+)', svg))
    svg = re.sub(r' id="([\w.-]+)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(href="|url\()#', rf"\g<1>#{name}-", svg)
    svg = re.sub(r"font-family: [^;\"]*;? ?", "", svg)
    svg = svg.replace(INK, "currentColor").replace(GROUND, "var(--pst-color-background, #fff)")
    for colour in DARK:
        svg = svg.replace(colour, f"var(--ink-{colour[1:]})")
    svg = re.sub(r"\s*\n\s*", " ", svg)
    head = re.match(r'<svg[^>]*width="([\d.]+)pt"[^>]*(viewBox="[^"]*")[^>]*>', svg)
    assert head is not None, "Matplotlib's SVG does not begin as expected"
    width, sizes = float(head[1]) * _PIXELS / POINTS, re.findall(r'<text style="font-size: ([\d.]+)px', svg)
    smallest = min(map(float, sizes), default=READABLE) * _PIXELS / POINTS
    style = (
        f"width: 100%; max-width: {LARGEST * width:.0f}px; min-width: {width * READABLE / smallest:.0f}px; "
        f"height: auto; font-family: {_FONTS}"
    )
    opening = (
        f"<style>{_COLOURS}</style>"
        f'<svg class="{FIGURE_CLASS}" xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink" {head[2]} role="img" '
        f'aria-label="{html.escape(alt)}" fill="currentColor" '
        f'stroke-linejoin="round" style="{style}">'
    )
    return opening + svg[head.end() :]
