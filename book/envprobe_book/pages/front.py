"""What the front page shows of the results: the headline with its plane and a guess, and the abstract.

Both are made from the same few comparisons of EnvProbe-Simple, under the three named protocols; the sentences
follow the reader (`telling`), and the page glues them from the section *Does probing pay?*.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from envprobe_book.claims import PaperValue, paper_value
from envprobe_book.live_figures import (
    LiveFigure,
    answers,
    each,
    easing,
    fixed,
    gain,
    handle,
    idling,
    knob,
    live,
    pattern,
    tell,
    worded,
)
from envprobe_book.live_figures.front import Abstract, Claim
from envprobe_book.live_figures.plane import Plane, planes_of
from envprobe_book.live_figures.readings import Reading
from envprobe_book.live_figures.telling import Slot, Told
from envprobe_book.pages.figures import policy_title
from envprobe_book.pages.guess import Guess, guess
from envprobe_book.pages.markup import signed
from envprobe_core.conditions import find_regime
from envprobe_core.policies import THRESHOLD
from envprobe_core.protocols import in_words, parse_protocol

RULES = {"paper": "as written", "observed": "with a partial start", "released": "as released"}
AGAINST = {"periodic": "a fixed schedule", "late": "looks saved for the end"}
WORLDS = {"procedural": "on tools", "spatial": "in rooms and graphs", "combined": "over all worlds"}
HEADLINE = {  # no wording is longer than the first, so that the picture below has its place at once
    "+": "{n} {unit} more accurate| than with probes {than}|",
    "-": "{n} {unit} less accurate| than with probes {than}|",
    "0": "not clearly apart| from one with probes {than}|",
    "~": "within half a point| of one with probes {than}|",
    "=": "exactly as accurate| as with probes {than}|",
    "?": "with too few runs to tell",
}
GAINS = {  # intervals stand in the picture beside the words
    "+": "{n} {unit} ahead| of {than}|",
    "-": "{n} {unit} behind| {than}|",
    "0": "not clearly apart| from {than}|",
    "~": "within half a point| of {than}|",
    "=": "exactly level| with {than}|",
    "?": "with too few runs to tell",
}
WORTH = {
    "+": "add {n} {unit}",
    "-": "cost {n} {unit}",
    "0": "add nothing clear",
    "~": "add less than half a point",
    "=": "add exactly nothing",
    "?": "add what too few runs tell",
}


ZEROS = {
    "+": "gains {n} {unit}",
    "-": "loses {n} {unit}",
    "0": "gains or loses nothing clear",
    "~": "moves by less than half a point",
    "=": "does not move",
    "?": "moves by what too few runs tell",
}


@dataclass(frozen=True)
class _Words:
    """How a claim of the abstract is told: what ends beside what, where it leads, what else is to say."""

    subject: str
    than: str
    links: Mapping[str, str]
    more: str = ""


def front_plane(frame: pd.DataFrame, **setting: Any) -> Plane:
    """The headline, the plane of budget and threshold, the numbers beside it and the guess that it answers.

    Args:
        frame: episodes of `simple`, `periodic` and `late` as written, which say what the guess's answer is.
        setting: `seeds`, `budget`, `threshold` and `resamples`, as `live` takes them.
    """
    numbers = live(
        "numbers",
        "front-numbers",
        [
            {
                "panel": rule,
                "name": f"simple {other} {measure}",
                "value": gain("simple", other, measure, protocol=rule),
            }
            for rule in RULES
            for other in AGAINST
            for measure in ("accuracy", "success", "useful/probes")
        ],
        title="What the front page says",
        **setting,
    )
    headline = live(
        "numbers",
        "headline",
        [{"panel": rule, "value": gain("simple", "periodic", protocol=rule)} for rule in RULES],
        title="The headline",
        **setting,
    )
    printed = paper_value("tab:main", "combined: simple vs periodic", "accuracy_difference_pct")
    lead = tell(
        "Let our simulated agent probe {times} in 30 steps, whenever a field’s score, of at most "
        "4, reaches {gate}. Its table ends {written} in the experiment that the paper describes. By the "
        "rules of the paper’s public code, which average over the steps, it is {released}. The paper, at "
        f"{find_regime('S2').budget} and {THRESHOLD:.2f}, prints +{printed}.",
        times=handle(headline, "budget", 15, 1, "time"),
        gate=handle(headline, "threshold", 4, 0.25, digits=2),
        written=worded(HEADLINE, headline.at(panel="paper"), than="at fixed times", within=0.5),
        released=worded(HEADLINE, headline.at(panel="released"), within=0.5),
    )
    rules = _rules(**setting)
    question, first = _question(frame, rules)
    beside = "".join(_beside(numbers, rule, other, printed) for rule in RULES for other in AGAINST)
    body = (
        f'{question.html}<span class="live-guess-right" hidden>{Told("", (first,)).html}</span>\n'
        f'<h2 class="live-plane-head">Asking by score, compared, in points</h2>{beside}'
        f'<div class="live-episode"></div>{rules.page_html()}'
    )
    found = planes_of(list(RULES), list(AGAINST), setting["seeds"], setting["resamples"])
    planes = {(name, AGAINST[name]): cells for name, cells in found.items()}
    first_rule = ("periodic", AGAINST["periodic"])
    return Plane(
        planes.pop(first_rule), numbers, body, lead.html, first_rule, planes, headline
    )  # the other planes follow a choice of the reader


def _rules(**setting: Any) -> LiveFigure:
    """The three rules of the guess, compared two by two."""
    pairs = (("late", "simple"), ("late", "periodic"), ("simple", "periodic"))
    rows = [
        {"panel": rule, "name": f"{arm} {other}", "value": gain(arm, other, protocol=rule)}
        for rule in ("paper", "released")
        for arm, other in pairs
    ]
    return live("numbers", "front-rules", rows, title="Three rules compared", **setting)


def _question(frame: pd.DataFrame, rules: LiveFigure) -> tuple[Guess, Slot]:
    """The guess, and the slot that tells which of its choices is right at the reader's setting."""
    ends = frame[frame["protocol"] == "paper"].groupby("policy")["accuracy"].mean()
    best = ends[["simple", "periodic", "late"]].idxmax()
    three = [
        rules.at(panel="paper", name=name) for name in ("late simple", "late periodic", "simple periodic")
    ]
    question = guess(
        "A third rule saves its looks for the end. Which of the three ends most accurate?",
        {
            "Look where a score is highest": lambda: best == "simple",
            "Look every fourth step": lambda: best == "periodic",
            "Save the looks for the end": lambda: best == "late",
        },
        tell(
            "As the paper describes it, looks saved for the end leave the agent {score} and {clock}. "
            "As released: {released}. The choice below turns the picture to them.",
            score=worded("better", three[0], than="asking by score"),
            clock=worded("better", three[1], than="asking by the clock"),
            released=worded("better", rules.at(panel="released", name="late simple"), than="asking by score"),
        ),
    )
    return question, pattern(three, {"++.": "2", "-.+": "0", ".--": "1", "*": ""})


def _beside(numbers: LiveFigure, rule: str, other: str, printed: object) -> str:
    """The three numbers beside the plane of one protocol and one comparison."""

    def shown(measure: str) -> str:
        own = numbers.at(panel=rule, name=f"simple {other} {measure}")
        ends = f"[{own.low.said(1)}, {own.high.said(1)}]"
        return f"<strong>{own.value.said(1, sign=True)}</strong> <small>{ends}</small>"

    at_end = parse_protocol(rule).accuracy == "terminal"
    measured = "Accuracy at the end" if at_end else "Accuracy over the steps"
    paper = f' <small class="live-plane-printed">printed: +{printed}</small>' if other == "periodic" else ""
    return (
        f'<dl data-protocol="{rule}" data-against="{other}">\n'
        f"<dt>{measured}</dt><dd>{shown('accuracy')}{paper}</dd>\n"
        f"<dt>Tasks completed</dt><dd>{shown('success')}</dd>\n"
        f"<dt>Useful probes</dt><dd>{shown('useful/probes')}</dd>\n</dl>"
    )


def front_abstract(**setting: Any) -> Abstract:
    """The paper's abstract in our words, with six numbers that open what became of them here.

    Args:
        setting: `seeds`, `budget`, `threshold` and `resamples`, as `live` takes them.
    """
    return Abstract(
        "Beliefs about a changing world go out of date, and a look at it costs a step. The paper lets an "
        "agent look where a score is highest. Against looks by the clock it prints {procedural} of accuracy "
        "on tools, {spatial} in rooms and graphs and {combined} together. Most of this, it finds, comes from "
        "what the task says: {c} without the one of these two terms, {d} without the other. What the agent "
        "says of its own doubt is no help: {u}.",
        {where: _gain_claim(where, **setting) for where in WORLDS}
        | {term: _term_claim(term, **setting) for term in TERMS},
        "Press a number. ▲ above zero, ▼ below, ○ not clearly either, in our runs at your setting: "
        "as written, with a partial start, as released.",
        "procedural",
    )


SECTION = {"The section": "executed/main-results.html"}
ABLATION = {"The section": "executed/terms.html"}
CONFIDENT = {"Confidently wrong": "executed/what-probes-find.html"}
ZERO = {"What is a zero?": "executed/worth-of-nothing.html"}
WALK = {"From text to code, switch by switch": "executed/text-and-code.html#fig-switches"}
PARTS = {"easier episodes": easing, "idling": idling, "answers": answers}
_FULL = "the full one"
TERMS = {
    "c": _Words("the score without criticality", _FULL, ABLATION),
    "d": _Words("the score without the role of a belief in the next action", _FULL, ABLATION),
    "u": _Words(
        "the score without the agent’s own doubt",
        _FULL,
        ABLATION | CONFIDENT,
        "The paper also counts 92% of confident beliefs as wrong. Its formula counts many even for an agent "
        "that is never wrong.",
    ),
}


def _claim(
    name: str,
    chip: str,
    pair: tuple[str, str],
    worlds: str,
    printed: PaperValue,
    told: _Words,
    **setting: Any,
) -> Claim:
    """A printed number: ours beside it, and what ours are made of."""
    label = f"{' − '.join(map(policy_title, pair))}, {WORLDS[worlds]}"
    ours = {in_words(rule): gain(*pair, worlds=worlds, protocol=rule) for rule in RULES}
    figure = live(
        "forest",
        f"claim-{name}-figure",
        [
            {"panel": "", "name": who, "value": value}
            for who, value in {"printed": fixed(printed.value, printed.low, printed.high), **ours}.items()
        ],
        title="",
        label=f"{label} [points of accuracy]",
        about=f"{label}: as printed and ours",
        line=0.0,
        digits=1,
        **setting,
    )
    parts = live(
        "forest",
        f"claim-{name}-parts",
        [
            {"panel": in_words(rule), "name": part, "value": of(*pair, worlds=worlds, protocol=rule)}
            for rule in RULES
            for part, of in PARTS.items()
        ],
        title="",
        label="what ours add up from [points]",
        about=f"{label}: easier episodes, idling and answers, which add up to ours",
        columns=3,
        line=0.0,
        digits=1,
        **setting,
    )
    own = {words: figure.at(name=in_words(rule)) for rule, words in RULES.items()}

    def part(which: str) -> dict[str, Reading]:
        return {words: parts.at(panel=in_words(rule), name=which) for rule, words in RULES.items()}

    lines = [
        tell(
            f"{WORLDS[worlds].capitalize()}, with {{looks}} and a gate at {{gate}}, {told.subject} "
            "ends {each}.",
            each=each(GAINS, own, than=told.than, within=0.5),
            looks=knob(figure, "budget", "look"),
            gate=knob(figure, "threshold", digits=2),
        ),
        tell(
            "Its zero: by the steps alone a table that never changes {each}.",
            each=each(ZEROS, part("easier episodes"), within=0.5),
        ),
        tell("Beyond the steps, answers {each}.", each=each(WORTH, part("answers"), within=0.5)),
    ]
    if told.more:
        lines.append(tell(told.more))
    world = "objectstate" if worlds == "spatial" else "tooldag"
    return Claim(chip, figure, parts, lines, list(own.values()), told.links | ZERO | WALK, world, pair)


def _gain_claim(where: str, **setting: Any) -> Claim:
    value = paper_value("tab:main", f"{where}: simple vs periodic", "accuracy_difference_pct")
    chip = f"+{value} points" if where == "procedural" else f"+{value}"
    told = _Words("asking by score", "the schedule", SECTION)
    return _claim(where, chip, ("simple", "periodic"), where, value, told, **setting)


def _term_claim(term: str, **setting: Any) -> Claim:
    table = "tab:main" if term == "u" else "tab:ablation"
    value = paper_value(table, f"procedural: minus-{term} vs simple", "accuracy_difference_pct")
    chip = f"{signed(value.value)} without it" if term == "u" else signed(value.value)
    return _claim(
        f"without-{term}", chip, (f"minus-{term}", "simple"), "procedural", value, TERMS[term], **setting
    )
