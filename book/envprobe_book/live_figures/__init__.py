"""Figures under the reader's hand: described once as data, drawn by Python and by the page alike.

`live` makes one from estimates: `mean` of a policy, `gain` over another, `shift` of a gain, `track` over
time, `fixed` for a number that nobody moves; a gain in accuracy is made of `steps` and `answers`.
`chips` sets some of its numbers below an answer, and `tell`
says a sentence whose words follow them: `worded`, `pattern`, `grouped`, `ranked`, `counted`, `knob`.
The scripts beside the modules do the same in a page: `estimates.js` finds the numbers, `draw.js` draws them,
`bar.js` holds budget and threshold for all figures of a page, `live.js` joins the three.
"""

from envprobe_book.live_figures.estimates import (
    Asked,
    answers,
    easing,
    fixed,
    gain,
    idling,
    mean,
    shift,
    steps,
    track,
)
from envprobe_book.live_figures.figure import LiveFigure, live, over
from envprobe_book.live_figures.readings import chips
from envprobe_book.live_figures.telling import (
    at_setting,
    counted,
    each,
    grouped,
    handle,
    in_a_sentence,
    knob,
    pattern,
    ranked,
    tell,
    worded,
)
from envprobe_book.live_figures.walking import walk

__all__ = [
    "Asked", "LiveFigure", "answers", "at_setting", "chips", "counted", "each", "easing", "fixed", "gain",
    "grouped", "handle", "idling", "in_a_sentence", "knob", "live", "mean", "over", "pattern", "ranked",
    "shift", "steps", "tell", "track", "walk", "worded",
]  # fmt: skip
