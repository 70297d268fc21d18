"""One decision of a recorded episode, in six steps of text beside a picture that stays.

Belief, drift, score, gate, probe, what it cost. Each step has its own picture, which is the one before with
one thing more, so that a page without script shows the six below each other (`book/assets/decision.js` lets
one picture stay while the text scrolls). Every number and word follows from the logs.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from envprobe_book.pages.figures import palette
from envprobe_book.pages.markup import number
from envprobe_book.pages.worlds import value_word
from envprobe_book.reproduce.sections import ROOT
from envprobe_core.compiled.records import UNKNOWN, WAIT
from envprobe_core.errors import counted
from envprobe_core.policies import TERMS
from envprobe_core.protocols import parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import World

STEPS = ("Belief", "Drift", "Score", "Gate", "Probe", "Cost")
BEST, MOST = 5, 8  # rows: of the fields with the highest scores, and of all, with those that are wrong
MEANING = {
    "c": "how critical it is to the task",
    "s": "how stale the agent says it is",
    "u": "how unsure the agent says it is",
    "d": "what the next action needs of it",
}


def first_worth_telling(run: Mapping[str, Any]) -> int:
    """The step of the first probe that meets a wrong or unknown belief anywhere, else of the first probe.

    Args:
        run: of `record_pair`'s `runs`; one that never probes is told from its first step.
    """
    fired = [t for t, field in enumerate(run["probe"]) if field >= 0]
    return next((t for t in fired if run["belief"][t] != run["gold"][t]), fired[0] if fired else 0)


def step_to_tell(run: Mapping[str, Any], asked: int = -1) -> int:
    """The step whose decision is told: the one asked for, at most the last; else the first worth telling.

    >>> run = {"probe": [-1, 2, 0], "belief": [[0], [0], [0]], "gold": [[0], [0], [1]], "steps": 3}
    >>> [step_to_tell(run, asked) for asked in (-1, 0, 9)]
    [2, 0, 2]
    """
    return first_worth_telling(run) if asked < 0 else min(asked, run["steps"] - 1)


@dataclass(frozen=True)
class Decision:
    """A step of the first of recorded episodes; the last expression of a cell, or glued.

    Attributes:
        recorded: from `widgets.player.record_pair`; of two runs the second is what the first is compared
            with at the end.
        step: which decision.
        about: what episode it is of.
    """

    recorded: Mapping[str, Any]
    step: int
    about: str = ""

    @property
    def world(self) -> World:
        """The world of the episodes."""
        rules = parse_protocol(self.recorded["protocol"])
        return make_world(self.recorded["world"], REGIMES[self.recorded["regime"]], rules)

    @property
    def run(self) -> Mapping[str, Any]:
        """The logs of the episode that is told."""
        return self.recorded["runs"][0]

    @property
    def terms(self) -> dict[str, np.ndarray]:
        """The terms that the policy adds up, [field] each."""
        kept = self.run["kept"] or TERMS
        found = np.array(self.run["terms"][self.step])
        return {term: found[TERMS.index(term)] for term in kept}

    @property
    def score(self) -> np.ndarray:
        """The score of each field, summed in the engine's order."""
        return sum(self.terms.values(), start=np.zeros(self.world.fields))

    @property
    def shown(self) -> list[int]:
        """The fields of the picture, the highest score first: the best, and those believed wrongly."""
        order = np.argsort(-self.score, kind="stable").tolist()
        belief, gold, t = self.run["belief"][self.step], self.run["gold"][self.step], self.step
        wrong = [field for field in order[BEST:] if belief[field] != gold[field]]
        asked = [field for field in (self.run["probe"][t],) if field >= 0]
        chosen = list(dict.fromkeys([*order[:BEST], *asked, *wrong]))[:MOST]
        return [field for field in order if field in chosen]

    def texts(self) -> list[str]:
        """What is said of each of the six steps, as HTML."""
        run, t, world = self.run, self.step, self.world
        belief, gold = run["belief"][t], run["gold"][t]
        names, fields = [f"<em>{html.escape(name)}</em>" for name in world.field_names], world.fields
        wrong = [field for field in range(fields) if belief[field] not in (gold[field], UNKNOWN)]
        unknown = sum(held == UNKNOWN for held in belief)
        best, highest = int(np.argmax(self.score)), number(float(self.score.max()))
        used = sum(field >= 0 for field in run["probe"][:t])
        asked = run["probe"][t]
        return [
            f"The agent does not see its whole world. It keeps a table of {fields} beliefs, and acts on them."
            f" Here are {len(self.shown)} of them, before the decision of step {t}."
            + (f" Of {unknown} fields it knows nothing." if unknown else ""),
            "The world moves while the agent is busy. " + self._drift(wrong, names),
            f"The policy cannot see the truth. For each belief it adds up {self._adds()} Here {names[best]} "
            f"comes first, with {highest}.{self._overlooked(wrong, names)}",
            self._gate(best, used),
            self._probe(names, asked),
            self._cost(),
        ]

    def _drift(self, wrong: Sequence[int], names: Sequence[str]) -> str:
        """What is believed wrongly."""
        run, t, world = self.run, self.step, self.world
        if not wrong:
            return f"At step {t} no belief is wrong yet."
        field = wrong[0]
        held, truth = (value_word(world, field, int(run[part][t][field])) for part in ("belief", "gold"))
        are = f"{len(wrong)} of {world.fields} beliefs are" if len(wrong) > 1 else f"1 of {world.fields} is"
        return (
            f"The agent believes {names[field]} to be <em>{held}</em>, and it is <em>{truth}</em>. "
            f"By now {are} wrong (✗), and nobody tells the agent."
        )

    def _adds(self) -> str:
        """The sum of the score in words."""
        parts = [f"{MEANING[term]} (<em>{term}</em>)" for term in self.terms]
        return f"{', '.join(parts[:-1])} and {parts[-1]}." if len(parts) > 1 else f"{parts[0]}."

    def _overlooked(self, wrong: Sequence[int], names: Sequence[str]) -> str:
        """Whether the highest score is of a belief that is wrong."""
        if not wrong:
            return ""
        place = np.argsort(-self.score, kind="stable").tolist().index(wrong[0]) + 1
        if place == 1:
            return " That is the belief which is wrong."
        low = number(float(self.score[wrong[0]]))
        return f" The wrong belief, {names[wrong[0]]}, comes {_ordinal(place)} with {low}."

    def _gate(self, best: int, used: int) -> str:
        """How the gate decided."""
        run, highest = self.run, float(self.score[best])
        left = used < run["budget"]
        have = f"{used} of {run['budget']} probes {'is' if used == 1 else 'are'} used"
        if run["threshold"] is None:
            return f"This policy has no threshold: it asks by a rule of its own. So far {have}."
        own = run["score"][self.step]
        if own is not None and own != highest:
            return (
                f"This policy compares a score of its own, {number(own)}, with {run['threshold']:g}; {have}."
            )
        reaches = highest >= run["threshold"]
        gate = f"{'reaches' if reaches else 'does not reach'} {run['threshold']:g}"
        opens = (
            "It is open: the agent asks before it acts."
            if run["probe"][self.step] >= 0
            else "It stays shut: the agent acts."
        )
        joint = "and" if reaches == left else "but"
        return f"A gate decides between asking and acting. The highest score {gate}, {joint} {have}. {opens}"

    def _probe(self, names: Sequence[str], asked: int) -> str:
        """What was asked, what came back, and what had to wait."""
        run, t, world = self.run, self.step, self.world
        action = run["action"][t]
        deed = "wait" if action == WAIT else world.action_names[action]
        if asked < 0:
            return f"No probe: the agent does what it had planned, <em>{html.escape(deed)}</em>."
        told = value_word(world, asked, int(run["answer"][t]))
        rules = self.recorded["switches"]
        if not run["answered"] or rules["answer"] != "delivered":
            came = "No answer reaches the agent."
        elif rules["delay"] != "0":
            late = counted(int(rules["delay"]), "step")
            came = f"The world says <em>{told}</em>; the answer comes {late} later."
        elif rules["wrong"] != "0":
            came = f"The world says <em>{told}</em>; the agent may be told another value."
        elif run["useful"][t]:
            new = (
                "and the belief is put right"
                if run["belief"][t][asked] != UNKNOWN
                else "which it did not know"
            )
            came = f"The world says <em>{told}</em>, {new}."
        else:
            came = f"The world says <em>{told}</em>, which the agent believed already."
        waits = "" if action == WAIT else f" Its own plan, <em>{html.escape(deed)}</em>, has to wait a step."
        return f"The agent asks the world about {names[asked]}. {came}{waits}"

    def _cost(self) -> str:
        """What all the episode's probes took and gave, beside the other policy."""
        run, others, fields = self.run, self.recorded["runs"][1:], self.world.fields
        fired = [t for t, field in enumerate(run["probe"]) if field >= 0]
        told = sum(run["useful"])
        rights = [sum(map(int.__eq__, one["belief"][-1], one["gold"][-1])) for one in (run, *others)]
        count = {0: "none", 1: "one"}.get(told, told)
        gave = "told the agent anything new" if self._arrives() else "met a belief that was wrong or unknown"
        spent = f"{len(fired)} of the {run['steps']} steps went to probes, and {count} of them {gave}."
        if fired:
            spent += f" The last one was at step {fired[-1]}; the world moved on until step {run['steps']}."
        end = f" At the end {rights[0]} of {fields} beliefs are right and the goal is {_reached(run)}."
        if others:
            other = html.escape(others[0]["title"])
            end += f" {other}, on the same seed: {rights[1]} right, the goal {_reached(others[0])}."
        return spent + end

    # the pictures

    def picture(self, number_: int) -> str:
        """The picture of one of the six steps, as SVG."""
        shown, t, run, world = self.shown, self.step, self.run, self.world
        top, line = 26, 22
        foot = top + line * len(shown) + 14
        height = foot + 46
        scale = _Scale(self.score.max(initial=0.0), run["threshold"])
        parts = [_text(6, 14, "belief about", "head"), _text(118, 14, "agent says", "head")]
        if number_ >= 1:
            parts.append(_text(186, 14, "truth", "head"))
        if number_ >= 2:
            for at, term in enumerate(self.terms):  # the key of the bars below
                parts.append(_rect(term, scale.left + 28 * at, 5, 9, 9))
                parts.append(_text(scale.left + 28 * at + 13, 14, term, "head"))
        for place, field in enumerate(shown):
            parts += self._row(field, top + line * place, number_, scale)
        if number_ >= 3 and run["threshold"] is not None:
            x = scale.at(run["threshold"])
            parts.append(f'<path class="decision-gate" d="M{x:.1f} {top - 4}V{foot - 10}"/>')
            parts.append(_text(x, foot + 1, f"gate {run['threshold']:g}", "note middle"))
        if number_ >= 5:
            parts += _walk(run, foot + 14, t)
        about = f"{STEPS[number_]}, drawn for {len(shown)} of {world.fields} beliefs at step {t}"
        head = f'<svg class="decision-picture" viewBox="0 0 340 {height}" role="img" aria-label="{about}">'
        return f"{head}{''.join(parts)}</svg>"

    def _row(self, field: int, y: float, number_: int, scale: "_Scale") -> list[str]:
        """A field's line: its name, the belief, the truth, its score, and the probe's mark."""
        run, t, world = self.run, self.step, self.world
        held, truth = run["belief"][t][field], run["gold"][t][field]
        asked = run["probe"][t] == field
        corrected = number_ >= 4 and asked and run["useful"][t] and self._arrives()
        kind = "name strong" if number_ >= 4 and asked else "name"
        says = value_word(world, field, int(run["answer"][t] if corrected else held))
        parts = [_text(6, y + 11, world.field_names[field], kind), _text(118, y + 11, says, "value")]
        if number_ >= 1:
            wrong = held != truth and not corrected
            parts.append(
                _text(186, y + 11, value_word(world, field, int(truth)), "value" if wrong else "note")
            )
            if held != truth:
                parts.append(
                    _text(176, y + 11, "✓" if corrected else "✗", "note end" if corrected else "wrong end")
                )
        if number_ >= 2:
            x = scale.left
            for term, values in self.terms.items():
                wide = scale.at(float(values[field])) - scale.left
                if wide > 0:
                    parts.append(_rect(term, x, y + 1, wide, 13))
                if wide > 11:
                    parts.append(_text(x + wide / 2, y + 11, term, f"term middle on-{term}"))
                x += wide
        if number_ >= 4 and asked:
            parts.append(_rect("asked", 2, y - 3, scale.right - 1, 21))
        return parts

    def _arrives(self) -> bool:
        """Whether the answer is in the table at once."""
        rules = [self.recorded["switches"][name] for name in ("answer", "delay", "wrong")]
        return self.run["answered"] and rules == ["delivered", "0", "0"]

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        texts = self.texts()
        ways = "".join(f'<li><a href="#decision-{at + 1}">{name}</a></li>' for at, name in enumerate(STEPS))
        told = "".join(
            f'<section class="decision-step" id="decision-{at + 1}" tabindex="-1">'
            f"<p><strong>{at + 1}. {name}.</strong> {texts[at]}</p>{self.picture(at)}</section>"
            for at, name in enumerate(STEPS)
        )
        about = f'<p class="decision-about">{html.escape(self.about)}</p>' if self.about else ""
        page = (
            f'{about}<style>{palette()}{_sheet()}</style><div class="decision">'
            f'<ol class="decision-ways">{ways}</ol><div class="decision-steps">{told}</div></div>'
        )
        plain = "\n".join(f"{name}: {_plain(text)}" for name, text in zip(STEPS, texts, strict=True))
        return {"text/html": page, "text/plain": f"{self.about}\n{plain}".strip()}


@cache
def _sheet() -> str:
    """The style sheet, which goes along: JupyterLab and GitHub have no other."""
    return (ROOT / "book/assets/decision.css").read_text(encoding="utf-8")


@dataclass(frozen=True)
class _Scale:
    """The axis of the scores."""

    highest: float
    threshold: float | None
    left: float = 232.0
    right: float = 334.0

    def at(self, value: float) -> float:
        """Where a sum ends."""
        return self.left + (self.right - self.left) * value / max(
            1.1 * max(self.highest, self.threshold or 0.0), 1e-9
        )


def _walk(run: Mapping[str, Any], y: float, now: int) -> list[str]:
    """The steps of an episode in a row: probes filled, actions open, waits dotted, failures struck."""
    wide = 328 / run["steps"]
    side = min(wide - 2, 14)
    parts = [
        _text(
            6,
            y + 27,
            f"all {run['steps']} steps: filled a probe, dotted a wait, struck an action that fails",
            "note",
        )
    ]
    for t in range(run["steps"]):
        kind = "probe" if run["probe"][t] >= 0 else "wait" if run["action"][t] == WAIT else "act"
        x = 6 + wide * t
        parts.append(_rect(f"{kind} now" if t == now else kind, x, y, side, side))
        if kind == "act" and not run["valid"][t]:
            parts.append(
                f'<path class="decision-failed" d="M{x:.1f} {y + side:.1f}l{side:.1f} {-side:.1f}"/>'
            )
    return parts


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    kinds = " ".join(f"decision-{name}" for name in kind.split())
    return f'<rect class="{kinds}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    kinds = " ".join(f"decision-{name}" for name in kind.split())
    return f'<text class="{kinds}" x="{x:.1f}" y="{y:.1f}">{html.escape(text)}</text>'


def _reached(run: Mapping[str, Any]) -> str:
    return "reached" if run["reached"] else "missed"


def _ordinal(place: int) -> str:
    """A place in words.

    >>> [_ordinal(place) for place in (2, 3, 11, 21)]
    ['second', 'third', '11th', '21st']
    """
    if place in (2, 3):
        return {2: "second", 3: "third"}[place]
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def _plain(text: str) -> str:
    return html.unescape(text.replace("<em>", "").replace("</em>", ""))
