"""What the front page shows of the results: the headline with its plane and a guess, and the abstract.

Both are made from the same few comparisons of EnvProbe-Simple, under the three named protocols; the sentences
follow the reader (`telling`), and the page glues them from the section *Does probing pay?*.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from envprobe_book.claims import paper_value
from envprobe_book.live_figures import (
    LiveFigure,
    each,
    fixed,
    gain,
    handle,
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
from envprobe_book.pages.guess import Guess, guess
from envprobe_book.pages.markup import signed
from envprobe_core.protocols import in_words, parse_protocol

RULES = {"paper": "as written", "observed": "with a partial start", "released": "as released"}
AGAINST = {"periodic": "a fixed schedule", "late": "looks saved for the end"}
WORLDS = {"procedural": "on tools", "spatial": "in rooms and graphs", "combined": "together"}
TERMS = {"c": "without criticality", "d": "without the role"}
HEADLINE = {  # no wording is longer than the first, so that the picture below has its place at once
    "+": "{n} {unit} more accurate| than by checking {than}|",
    "-": "{n} {unit} less accurate| than by checking {than}|",
    "0": "not clearly apart| from checking {than}|",
    "~": "within half a point| of checking {than}|",
    "=": "exactly level| with checking {than}|",
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
        "Let our simulated agent check what it believes {times} in 30 steps, whenever a score "
        "reaches {gate}. It ends {written} in the experiment that the paper describes, "
        f"and {{released}} by the rules of its public code. The paper prints +{printed}.",
        times=handle(headline, "budget", 15, 1, "time"),
        gate=handle(headline, "threshold", 4, 0.25, digits=2),
        written=worded(HEADLINE, headline.at(panel="paper"), than="by the clock", within=0.5),
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
        "Which rule ends with the higher accuracy?",
        {
            "Look where a score is highest": lambda: best == "simple",
            "Look every fourth step": lambda: best == "periodic",
            "Save the looks for the end": lambda: best == "late",
        },
        tell(
            "As the paper describes it, looks saved for the end leave the agent {score} and {clock}. "
            "As released: {released}. The picture now compares with them.",
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
    """The paper's abstract in our words, with five numbers that open what became of them here.

    Args:
        setting: `seeds`, `budget`, `threshold` and `resamples`, as `live` takes them.
    """
    answers = live(
        "numbers",
        "abstract-answers",
        [
            {"panel": rule, "name": where, "value": gain("simple", "placebo", worlds=where, protocol=rule)}
            for rule in RULES
            for where in WORLDS
        ],
        title="What answers are worth to the score",
        **setting,
    )
    claims = {where: _gain_claim(where, answers, **setting) for where in WORLDS}
    claims |= {"terms": _terms_claim(**setting), "doubt": _doubt_claim(**setting)}
    return Abstract(
        "Beliefs about a changing world go out of date, and a look at it costs a step. The paper lets an "
        "agent look where a score is highest. Against looks by the clock it prints {procedural} of accuracy "
        "on tools, {spatial} in rooms and graphs and {combined} together. Most of this, it finds, comes from "
        "what the task says: without these two terms {terms}. What the agent says of its own doubt is no "
        "help: {doubt}.",
        claims,
        "Press a number. ▲ above zero, ▼ below, ○ not clearly either, in our runs at your setting: "
        "as written, with a partial start, as released.",
        [answers],
        "procedural",
    )


SECTION = {"The section": "executed/main-results.html"}
ABLATION = {"The section": "executed/terms.html"}
WALK = {"From text to code, switch by switch": "executed/text-and-code.html#fig-switches"}
LOOK = {"line": 0.0, "digits": 1}


def _ours(panel: str, printed: Any, arm: str, reference: str, worlds: str) -> list[dict[str, Any]]:
    """The rows of a claim: what is printed, and ours under each protocol."""
    rows = {"printed": printed} | {
        in_words(rule): gain(arm, reference, worlds=worlds, protocol=rule) for rule in RULES
    }
    return [{"panel": panel, "name": name, "value": one} for name, one in rows.items()]


def _read(figure: LiveFigure, **panel: str) -> dict[str, Reading]:
    """Ours of a figure, by how a sentence calls the protocol."""
    return {words: figure.at(name=in_words(rule), **panel) for rule, words in RULES.items()}


def _where_we_are(figure: LiveFigure) -> Mapping[str, Slot]:
    """The setting that a figure's numbers belong to."""
    return {"looks": knob(figure, "budget", "look"), "gate": knob(figure, "threshold", digits=2)}


def _gain_claim(where: str, answers: LiveFigure, **setting: Any) -> Claim:
    value = paper_value("tab:main", f"{where}: simple vs periodic", "accuracy_difference_pct")
    figure = live(
        "forest",
        f"claim-{where}-figure",
        _ours("", fixed(value.value, value.low, value.high), "simple", "periodic", where),
        title="",
        label="gain, Simple − Periodic [points of accuracy]",
        about=f"Gain {WORLDS[where]}, as printed and ours",
        **LOOK,
        **setting,
    )
    worth = {words: answers.at(panel=rule, name=where) for rule, words in RULES.items()}
    lines = [
        tell(
            "With {looks} and a gate at {gate}, asking by score ends {each}.",
            each=each(GAINS, _read(figure), than="the schedule", within=0.5),
            **_where_we_are(figure),
        ),
        tell(
            "How much of it is answers? Beside a placebo that asks by the same rule and is told nothing, "
            "they {each}.",
            each=each(WORTH, worth, within=0.5),
        ),
    ]
    chip = f"+{value} points" if where == "procedural" else f"+{value}"
    world = "objectstate" if where == "spatial" else "tooldag"
    return Claim(chip, figure, lines, list(_read(figure).values()), SECTION | WALK, world)


def _printed_without(term: str) -> Any:
    """What the paper prints for the score without a term, on tools."""
    table = "tab:main" if term == "u" else "tab:ablation"
    return paper_value(table, f"procedural: minus-{term} vs simple", "accuracy_difference_pct")


def _terms_rows(term: str, panel: str) -> list[dict[str, Any]]:
    value = _printed_without(term)
    printed = fixed(value.value, value.low, value.high)
    return _ours(panel, printed, f"minus-{term}", "simple", "procedural")


def _terms_claim(**setting: Any) -> Claim:
    figure = live(
        "forest",
        "claim-terms-figure",
        [row for term, title in TERMS.items() for row in _terms_rows(term, title)],
        title="",
        columns=2,
        label="accuracy on tools, minus the full score’s [points]",
        about="The score without its terms c and d, as printed and ours",
        **LOOK,
        **setting,
    )
    c_of, d_of = (_read(figure, panel=title) for title in TERMS.values())
    lines = [
        tell(
            "With {looks} and a gate at {gate}, the score without criticality ends {each}.",
            each=each(GAINS, c_of, than="the full one", within=0.5),
            **_where_we_are(figure),
        ),
        tell(
            "Without the role of a belief in the next action it ends {each}. As released no answer arrives, "
            "so nothing that a term is worth there is answers.",
            each=each(GAINS, d_of, than="the full one", within=0.5),
        ),
    ]
    chip = f"{signed(_printed_without('c').value)} and {signed(_printed_without('d').value)}"
    return Claim(chip, figure, lines, list(c_of.values()), ABLATION | WALK, arms=("simple", "minus-c"))


def _doubt_claim(**setting: Any) -> Claim:
    figure = live(
        "forest",
        "claim-doubt-figure",
        _terms_rows("u", ""),
        title="",
        label="accuracy on tools, minus the full score’s [points]",
        about="The score without the agent’s doubt, as printed and ours",
        **LOOK,
        **setting,
    )
    lines = [
        tell(
            "With {looks} and a gate at {gate}, the score without the agent’s own doubt ends {each}.",
            each=each(GAINS, _read(figure), than="the full one", within=0.5),
            **_where_we_are(figure),
        ),
        tell(
            "The paper also counts 92% of confident beliefs as wrong. Its formula counts 44% for an agent "
            "that is never wrong."
        ),
    ]
    ways = ABLATION | {"Confidently wrong": "executed/what-probes-find.html"}
    return Claim(
        f"{signed(_printed_without('u').value)} without it",
        figure,
        lines,
        list(_read(figure).values()),
        ways,
        arms=("simple", "minus-u"),
    )
