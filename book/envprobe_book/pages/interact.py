"""One verb for live figures: `interact` puts a section's figure under sliders for budget and threshold.

In JupyterLab the section's own function is called as a slider moves. A page without a kernel shows the figure
at the page's values, and a link to the explorer at that setting.
"""

import html
import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import ipywidgets

from envprobe_book.pages import in_jupyterlab
from envprobe_book.pages.figures import Drawing
from envprobe_core.conditions import Names, find_regime, is_whole, names
from envprobe_core.errors import LONGEST, InputError, in_one_line
from envprobe_core.policies import THRESHOLD, find_policy
from envprobe_core.regimes import Regime

OWN = -1  # as a budget: the regime's
HIGHEST, STEP = 4.0, 0.05  # of the threshold's slider: a score is the sum of four terms of at most 1
KNOBS = ("budget", "threshold")
FEW = 500  # bootstrap resamples of a figure that is moved, where its function takes a number
LINK = "Move the budget and the threshold in the explorer"


class Interaction:
    """A figure under sliders; a notebook's last expression.

    Attributes:
        sliders: `budget` and `threshold`, those that the figure takes; empty in a page without a kernel.
        drawing: the figure at the page's values.
    """

    def __init__(
        self, figure: Callable[..., Drawing], own: dict[str, float], regime: Regime, policies: tuple[str, ...]
    ) -> None:
        self._figure, self._own = figure, own
        self._start = own | {"budget": regime.budget} if own.get("budget") == OWN else own
        said = {"policies": ",".join(policies)} if policies else {}
        self._link = f"explorer.html{fragment(self._start | said)}"
        self._resamples = "resamples" in inspect.signature(figure).parameters
        self.drawing = self._draw(own)
        self.sliders: dict[str, Any] = {}
        if in_jupyterlab():
            self._go_live(regime.horizon)

    def _draw(self, setting: Mapping[str, float], *, moving: bool = False) -> Drawing:
        """Draw a setting; a figure that is moved has few resamples."""
        made = self._figure(**setting, **({"resamples": FEW} if moving and self._resamples else {}))
        if not isinstance(made, Drawing):
            raise InputError(
                f"interact: the function returns {type(made).__name__} {str(made)[:LONGEST]!r}; it must "
                "return a figure, as `draw` does"
            )
        return made

    def _go_live(self, horizon: int) -> None:
        common = {"continuous_update": True, "style": {"description_width": "initial"}}
        if "budget" in self._own:
            start = int(self._start["budget"])
            most, said = max(start, horizon // 2), "Budget B [probes]"
            self.sliders["budget"] = ipywidgets.IntSlider(start, 0, most, description=said, **common)
        if "threshold" in self._own:
            scale = {"min": 0, "max": HIGHEST, "step": STEP, "description": "Threshold of the gate"}
            self.sliders["threshold"] = ipywidgets.FloatSlider(self._start["threshold"], **scale, **common)
        for slider in self.sliders.values():
            slider.layout.width = "30em"
            slider.observe(self._move, "value")
        self._image, self._note = ipywidgets.HTML(self.drawing.svg()), ipywidgets.HTML()
        row = ipywidgets.HBox(list(self.sliders.values()), layout={"flex_flow": "row wrap"})
        self._box = ipywidgets.VBox([row, self._image, self._note])
        self._box.add_class("envprobe-interact")

    def _asked(self) -> dict[str, float]:
        """The sliders' values; where they stood at first, the page's own, which may be -1."""
        return {
            name: self._own[name] if one.value == self._start[name] else one.value
            for name, one in self.sliders.items()
        }

    def _move(self, _: object) -> None:
        """Show the figure at the sliders' values.

        The front end keeps one message on its way and then sends the latest value, so that a drag does not
        queue while a figure is drawn.
        """
        began, asked = time.perf_counter(), self._asked()
        try:
            drawing = self.drawing if asked == self._own else self._draw(asked, moving=True)
            self._image.value = drawing.svg()
        except Exception as error:  # a section's function may raise anything; the last figure stays
            fault = f"{type(error).__name__}: {in_one_line(str(error))[:LONGEST]}"
            self._note.value = f'<span role="alert">Nothing is drawn here. {html.escape(fault)}</span>'
        else:
            told = ", ".join(f"{name} {one.value:g}" for name, one in self.sliders.items())
            if self._resamples and asked != self._own:
                told += f", intervals from {FEW} resamples"
            self._note.value = f"Drawn for {told}, in {1000 * (time.perf_counter() - began):.0f} ms."

    def _repr_mimebundle_(self, **keywords: Any) -> dict[str, Any]:
        link = f'<p class="live-link"><a href="{html.escape(self._link)}">{LINK}</a></p>'
        page = {"text/html": self.drawing.svg() + link, "text/plain": self.drawing.alt}
        return {**(self._box._repr_mimebundle_(**keywords) if self.sliders else {}), **page}


def interact(
    figure: Callable[..., Drawing],
    budget: int = OWN,
    threshold: float = THRESHOLD,
    *,
    regime: str = "S2",
    policies: Names = (),
) -> Interaction:
    """Show a figure that JupyterLab recomputes as the reader moves budget and threshold.

    A page without a kernel shows it once, at the values given, with a link to the explorer at that setting.

    Args:
        figure: a function of `budget` and `threshold`, or of one of them, that runs what it needs and returns
            what `draw` returns. Where it has a further argument `resamples`, with the page's own number as
            its default, a figure that is moved has 500.
        budget: where its slider stands at first; -1 is the regime's own.
        threshold: likewise; policies without a gate ignore it.
        regime: whose horizon and own budget the slider has.
        policies: names of those that the explorer is to show; by default its own choice.

    Raises:
        InputError: if `figure` is no such function, or for an unknown name or a value out of range.
    """
    shown = "interact(lambda budget, threshold: draw(...), budget, threshold)"
    if not callable(figure):
        raise InputError(
            f"interact takes a function that draws, not {type(figure).__name__} {str(figure)[:LONGEST]!r}: "
            f"write {shown}"
        )
    parameters = inspect.signature(figure).parameters.values()
    taken = [one.name for one in parameters if one.name in KNOBS or one.default is one.empty]
    if not taken or not set(taken) <= set(KNOBS):
        raise InputError(f"interact: the function takes {', '.join(taken) or 'nothing'}; write {shown}")
    level = find_regime(regime)
    if not is_whole(budget) or not OWN <= budget <= level.horizon:
        raise InputError(f"interact: budget {budget!r} is not a whole number in {OWN}..{level.horizon}")
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= HIGHEST:
        raise InputError(f"interact: threshold {threshold!r} is not a number in 0..{HIGHEST:g}")
    own = {name: value for name, value in zip(KNOBS, (budget, threshold), strict=True) if name in taken}
    return Interaction(figure, own, level, tuple(find_policy(name).name for name in names(policies)))


def fragment(setting: Mapping[str, Any]) -> str:
    """The end of an address that puts the explorer at a setting."""
    return "#" + "&".join(f"{name}={quote(str(value), safe=',')}" for name, value in setting.items())
