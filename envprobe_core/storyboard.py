"""A told episode as a page shows it: Algorithm 1 on the left, what happened on the right, step by step."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from envprobe_core.policies import TERMS
from envprobe_core.timeline import Change, Episode, Scored, Step

LINES = {  # lines of the paper's Algorithm 1 that a step passes, in our notation
    "score": ("3–10", "for each field i: ρᵢ ← cᵢ + sᵢ + uᵢ + dᵢ"),
    "gate": ("11", "if max ρ ≥ ρ★ and probes_used < B"),
    "probe": ("12–14", "Probe(i★): b ← g; probes_used += 1"),
    "act": ("15–16", "else: execute the task action"),
    "clock": ("18", "t ← t + 1"),
}
COLOURS = {"c": ("#0072B2", "#56B4E9"), "s": ("#B57F00", "#E6B450"), "u": ("#B8669A", "#D99BC0"),
           "d": ("#009E73", "#3FC79A")}  # fmt: skip
LARGEST = 4.0  # each term lies in 0..1


@dataclass(frozen=True)
class Storyboard:
    """An episode to show.

    Attributes:
        episode: the told episode.
        opened: steps shown unfolded; the others show one line until they are opened.
        name: a name no other storyboard of the page has.
    """

    episode: Episode
    opened: tuple[int, ...] = (0,)
    name: str = "story"

    def text(self) -> str:
        """Return the whole episode as plain text."""
        told = self.episode
        parts = [
            f"{told.policy} in {told.world}, protocol {told.protocol}, profile {told.profile}, "
            f"seed {told.seed}"
        ]
        for step in told.steps:
            parts.append(f"t = {step.t}  A = {step.accuracy:.2f}")
            parts += [f"  {LINES['score'][0]:>6}  {scored_text(field, told.terms)}" for field in step.fields]
            parts += [f"  {number:>6}  {said}" for number, _, said in _happened(step)]
        parts.append("goal reached" if told.success else "goal not reached")
        return "\n".join(parts)

    def html(self) -> str:
        """Return the episode as HTML in the page's colours; each step folds."""
        told = self.episode
        blocks = "".join(self._step(step) for step in told.steps)
        end = "The goal was reached." if told.success else "The goal was not reached."
        head = f'<div class="ep-story" id="{html.escape(self.name)}">{_STYLE}{_legend()}'
        return f"{head}{blocks}<p>{end}</p></div>"

    def _step(self, step: Step) -> str:
        kind = "probe" if step.fired else "act"
        opened = " open" if step.t in self.opened else ""
        summary = (
            f'<summary><span class="ep-t">t = {step.t}</span> '
            f'<span class="ep-a">A = {step.accuracy:.2f}</span> '
            f'<span class="ep-kind ep-{kind}">{kind}</span> {html.escape(step.deed)}</summary>'
        )
        bars = "".join(_bar(field, self.episode.terms) for field in step.fields)
        number, code = LINES["score"]
        rows = _row(number, code, bars)
        for number, code, said in _happened(step):
            rows += _row(number, code, html.escape(said), off=said == NOT_REACHED)
        return f'<details class="ep-step"{opened}>{summary}<div class="ep-lines">{rows}</div></details>'

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": self.text()}


NOT_REACHED = "not reached"


def scored_text(field: Scored, kept: Sequence[str]) -> str:
    """Write one field's score as a sum: `lock(2): c .70 + s .30 + u .11 + d 1.00 = 2.11; believed ...`."""
    parts = [
        f"{name} {value:.2f}"
        for name, value in zip(TERMS, field.terms, strict=True)
        if name in (kept or TERMS)
    ]
    truth = "right" if field.right else f"truth: {field.truth}"
    return (
        f"{field.field}: {' + '.join(parts)} = {field.rho:.2f}; believed {field.believed} ({truth}), "
        f"confidence {field.confidence}%, reported age {field.staleness}"
    )


def _happened(step: Step) -> Iterable[tuple[str, str, str]]:
    """List line numbers, code and what happened, for the lines after the score."""
    yield *LINES["gate"], step.gate
    yield *LINES["probe"], step.deed if step.fired else NOT_REACHED
    yield *LINES["act"], NOT_REACHED if step.fired else step.deed
    after = [f"The world changes {_changes(step.world)}." if step.world else "The world stays as it is."]
    if step.wrote:
        wrong = sum(not change.right for change in step.wrote)
        after.append(
            f"The agent writes {_changes(step.wrote)}{f' ({wrong} of them wrong)' if wrong else ''}."
        )
    if step.succeeded:
        after.append("The goal is reached.")
    yield *LINES["clock"], " ".join(after)


def _changes(changes: Sequence[Change]) -> str:
    return ", ".join(map(str, changes))


def _row(number: str, code: str, said: str, *, off: bool = False) -> str:
    """Lay one line of the algorithm beside what happened; `said` is HTML."""
    return (
        f'<div class="ep-line{" ep-off" if off else ""}"><span class="ep-no">{number}</span>'
        f'<code>{html.escape(code)}</code><div class="ep-said">{said}</div></div>'
    )


def _bar(field: Scored, kept: Sequence[str]) -> str:
    """Draw one field's score as a stacked bar above its numbers."""
    pieces = "".join(
        f'<span class="ep-{name}" style="width: {100 * value / LARGEST:.2f}%"></span>'
        for name, value in zip(TERMS, field.terms, strict=True)
        if name in (kept or TERMS)
    )
    wrong = "" if field.right else " ep-wrong"
    text = html.escape(scored_text(field, kept))
    return f'<div class="ep-field{wrong}"><div class="ep-bar" aria-hidden="true">{pieces}</div>{text}</div>'


def _legend() -> str:
    names = {"c": "criticality", "s": "staleness", "u": "uncertainty", "d": "dependency role"}
    items = "".join(f'<span><i class="ep-{key}"></i>{key}: {name}</span>' for key, name in names.items())
    return f'<p class="ep-legend">{items}</p>'


def _style() -> str:
    dark = 'html[data-theme="dark"] .ep-story, [data-jp-theme-light="false"] .ep-story'
    light_inks = "".join(f"--ep-{key}: {pair[0]};" for key, pair in COLOURS.items())
    dark_inks = "".join(f"--ep-{key}: {pair[1]};" for key, pair in COLOURS.items())
    fills = "".join(f".ep-story .ep-{key}{{background: var(--ep-{key})}}" for key in COLOURS)
    return (
        f"<style>.ep-story{{{light_inks}font-size: .9em; line-height: 1.45}}{dark}{{{dark_inks}}}{fills}"
        ".ep-step{border-top: 1px solid var(--pst-color-border, #ccc); padding: .15rem 0}"
        ".ep-step summary{cursor: pointer; padding: .2rem 0}"
        ".ep-t{font-weight: 600; font-variant-numeric: tabular-nums}"
        ".ep-kind{border: 1px solid currentColor; border-radius: .3rem; padding: 0 .3rem; font-size: .85em}"
        ".ep-a{font-variant-numeric: tabular-nums; margin: 0 .4rem; white-space: nowrap}"
        ".ep-story .ep-probe{background: var(--ep-c); border-color: var(--ep-c); color:"
        " var(--pst-color-background, #fff)}"
        ".ep-line{display: grid; grid-template-columns: 2.8rem 13rem 1fr; gap: .6rem; padding: .25rem 0;"
        " align-items: start}"
        ".ep-no{text-align: right; font-variant-numeric: tabular-nums}"
        ".ep-story code{white-space: normal; font-size: .88em}.ep-off code{color: inherit}"
        ".ep-off, .ep-no{color: var(--pst-color-text-muted, var(--jp-content-font-color2, #5a5a5a))}"
        ".ep-field{margin-bottom: .35rem}.ep-wrong{font-style: italic}"
        ".ep-bar{display: flex; height: .55rem; margin: .2rem 0 .1rem; max-width: 24rem;"
        " background: var(--pst-color-surface, #eee)}"
        ".ep-legend{display: flex; flex-wrap: wrap; gap: .2rem 1rem}"
        ".ep-legend i{display: inline-block; width: .8em; height: .8em; margin-right: .35em}"
        "@media (max-width: 720px){.ep-line{grid-template-columns: 2.6rem 1fr}.ep-said{grid-column: 1 / -1;"
        " padding-left: 3.2rem}}</style>"
    )


_STYLE = _style()
