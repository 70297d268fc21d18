"""No condition of the book is an identity: each can be made false by other numbers.

A section's cells run with few seeds and without drawing, once as they are and then with numbers that are
changed on their way in: arms swapped, scores or facts shuffled over the rows, or scores mirrored. Numbers of
live figures change their sign then, the paper's numbers stand in other rows of their columns, agents of a fit
have their arms in reverse order, and a model's answers to a trial are given to other questions. What no frame
of episodes holds is measured again with other parameters (`OTHERWISE`). Every condition is made false by
something.
"""

import json
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import envprobe_book
import envprobe_book.facts  # which fills FACTS
from envprobe_book import claims
from envprobe_book.analyses import calibration
from envprobe_book.claims import PaperValue
from envprobe_book.live_figures import Asked, estimates, figure
from envprobe_book.pages import markup
from envprobe_core import experiment, parallel
from envprobe_core.facts import FACTS
from envprobe_core.llm import replays, running
from envprobe_core.llm.one_step import OneStep
from envprobe_core.sources import ROOT

SEEDS = "42:54"
FEW = {
    "seeds": SEEDS, "more_seeds": "42:66", "training": "10000:10006", "resamples": 200,
    "setting_resamples": 200, "profiles": 16, "seeds_each": 10, "wide_profiles": 16, "pasts": 8,
    "futures": 4, "points": 3, "held_out": "10000:10012", "dry_run": 1, "jobs": 1,
    "rounds": 3, "at_once": 16, "logs": "42:54",
}  # fmt: skip
MEASURED = (
    "accuracy", "accuracy_terminal", "accuracy_slot", "success", "probes", "useful", "collapse_onset",
    "action_onset", "actions", "valid_actions", "steps", "confident", "confident_wrong", "value", "n",
)  # fmt: skip
MIRRORED = (*MEASURED[:4], "collapse_onset", "action_onset", "value", "book_95", "resampled_95")
SECTIONS = (
    "what-the-repository-records", "terms", "over-time", "pareto",
    "what-probes-find", "why-the-numbers", "one-episode", "how-a-section-is-made", "text-and-code",
    "environments", "voi", "theory", "robustness", "other-settings", "scoreboard", "optimal-bound",
    "language-model", "learning", "worth-of-nothing", "when-a-look-pays",
)  # fmt: skip
OTHERWISE = {
    "optimal-bound": ({"probes": 1}, {"steps": 6}),  # which enumerates states
    "language-model": ({"policies": "simple"},),  # whose estimate counts what policies share
    "voi": ({"protocol": "observed"},),  # which reads the policy's own notes
    "robustness": ({"profile": "overconfident"},),  # which asks what tells a wrong belief
    "when-a-look-pays": (
        {"profile": "scribe"},
        {"more_seeds": "42:44", "seeds": "42:44"},
    ),  # which steps through
    "theory": ({"protocol": "observed"}, {"profile": "careful"}),  # which repairs fields by itself
}
"""Parameters with which a section is run again, each by itself."""


def swapped(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its policies in reverse order: of two, each under the other's name."""
    if "policy" not in frame:
        return frame
    own = list(dict.fromkeys(frame["policy"]))
    return frame.assign(policy=frame["policy"].map(dict(zip(own, own[::-1], strict=True))))


def shuffled(frame: pd.DataFrame, measured: Iterable[str] = MEASURED) -> pd.DataFrame:
    """The frame with what is measured shuffled over its rows, an episode's numbers together."""
    order, chance = np.arange(len(frame)), np.random.default_rng(0)
    alike = frame["unit"] if "unit" in frame else np.zeros(len(frame))  # points with points
    for kind in np.unique(alike):
        places = np.flatnonzero(alike == kind)
        order[places] = chance.permutation(places)
    columns = [name for name in measured if name in frame]
    return frame.assign(**{name: frame[name].to_numpy()[order] for name in columns})


def otherwise_found(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its facts shuffled over its rows and its scores where they were."""
    return shuffled(frame, [name for name in FACTS if name not in MEASURED])


def mirrored(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with scores and onsets mirrored between their least and greatest values; counts stay."""
    found = {}
    for name in filter(frame.__contains__, MIRRORED):
        own = frame[name]
        if pd.api.types.is_numeric_dtype(own):
            found[name] = ~own if own.dtype == bool else own.max() + own.min() - own
    return frame.assign(**found)


CHANGES = (lambda frame: frame, swapped, mirrored, shuffled, otherwise_found)


def reprinted(values: Iterable[PaperValue]) -> tuple[PaperValue, ...]:
    """The paper's numbers, each column of a table shuffled over its rows, every column by itself."""
    chance, columns = np.random.default_rng(0), {}
    for value in values:
        columns.setdefault((value.source, value.column), []).append(value)
    found = []
    for own in columns.values():
        rows = [value.row for value in own]
        found += [
            replace(own[at], row=row) for at, row in zip(chance.permutation(len(own)), rows, strict=True)
        ]
    return tuple(found)


class Nothing:
    """Stands for what draws and shows."""

    def __call__(self, *_: object, **__: object) -> "Nothing":
        return self

    def __getattr__(self, _: str) -> "Nothing":
        return self


class Remembering:
    """Does work as a process beside this one would, which only reads what it is sent, and once."""

    def __init__(self) -> None:
        self.answers: dict[bytes, bytes] = {}

    def __call__(self, work: Callable[[object], object], items: Iterable[object]) -> Iterator[object]:
        for item in items:
            try:
                asked = pickle.dumps((work, item))
            except AttributeError:  # of a policy that is made on the spot
                yield work(item)
                continue
            if asked not in self.answers:
                self.answers[asked] = pickle.dumps(work(item))
            yield pickle.loads(self.answers[asked])


@contextmanager
def changed(
    change: Callable[[pd.DataFrame], pd.DataFrame], found: dict[str, bool], remembering: Remembering
) -> Iterator[None]:
    """Change what episodes are measured to be, draw nothing, and keep which conditions hold."""
    nothing = Nothing()

    def keep(text: str, when: object, about: str = "") -> markup.Text:
        found[text] = markup.is_so(when)
        return markup.Text(text)

    def reading(read: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
        return lambda *given, **named: change(read(*given, **named))

    def measuring(*given: object, **named: object) -> pd.DataFrame:
        return change(frame_of(*given, **named))

    def turned(asked: Iterable[Asked], *given: object) -> list[estimates.Found]:
        asked = list(asked)
        found = evaluated(asked, *given)
        if change is CHANGES[0]:
            return found
        return [
            own if one.found else own | {"value": -own["value"], "low": -own["high"], "high": -own["low"]}
            for one, own in zip(asked, found, strict=True)
        ]

    def opposed(*given: object, **named: object) -> dict[str, np.ndarray]:
        return {name: own[:, ::-1] for name, own in agents_of(*given, **named).items()}

    def replaying(path: Path) -> running.ReplayedRun:
        run = replay_file(path)
        return run if run.frame is None else replace(run, frame=change(run.frame))

    def exchanged(path: Path, kind: type) -> tuple[object, dict[bytes, object]]:
        head, answers = read_answers(path, kind)
        texts = list(answers.values())
        asked = kind in (running.Trial, OneStep)
        turn = len(texts) // 2 if asked and change is not CHANGES[0] else 0
        return head, dict(zip(answers, texts[turn:] + texts[:turn], strict=True))

    frame_of, evaluated = experiment.episode_frame, estimates.evaluate
    agents_of = calibration.run_agents
    replay_file, read_answers = running.replay_file, replays.read_answers
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of means of nothing, where few episodes are left
        patch.setattr(parallel, "map", remembering, raising=False)  # changes come after what episodes do
        patch.setattr(pd, "read_parquet", reading(pd.read_parquet))
        patch.setattr(pd, "read_csv", reading(pd.read_csv))
        patch.setattr(experiment, "episode_frame", measuring)
        patch.setattr(figure, "evaluate", turned)
        if change is not CHANGES[0]:
            other = reprinted(claims.paper_values())
            patch.setattr(claims, "paper_values", lambda: other)
            patch.setattr(calibration, "run_agents", opposed)
        patch.setattr(running, "replay_file", replaying)
        patch.setattr(replays, "read_answers", exchanged)
        patch.setattr(envprobe_book, "conclude", keep, raising=False)
        for name in ("draw", "table"):
            patch.setattr(envprobe_book, name, nothing, raising=False)
        patch.setattr("myst_nb.glue", nothing)
        yield


def conclusions(
    section: str,
    change: Callable[[pd.DataFrame], pd.DataFrame],
    remembering: Remembering,
    parameters: Mapping[str, object] = FEW,
) -> dict[str, bool]:
    """Which conclusions of a section hold under a change and with parameters, by their texts."""
    cells = json.loads((ROOT / "notebooks" / f"{section}.ipynb").read_text(encoding="utf-8"))["cells"]
    found: dict[str, bool] = {}
    space: dict[str, object] = {"display": Nothing()}
    with changed(change, found, remembering):
        for cell in cells:
            if cell["cell_type"] != "code":
                continue
            exec(compile("".join(cell["source"]), f"{section}, cell {cell['id']}", "exec"), space)
            if "parameters" in cell["metadata"].get("tags", ()):
                space |= {name: value for name, value in parameters.items() if name in space}
        plt.close("all")
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("section", SECTIONS)
def test_every_conclusion_can_be_false(section: str) -> None:
    left: set[str] | None = None
    remembering = Remembering()
    again = [(CHANGES[0], FEW | other) for other in ({}, *OTHERWISE.get(section, ()))]
    again += [(change, FEW) for change in CHANGES[1:]]
    for change, parameters in again:
        held = conclusions(section, change, remembering, parameters)
        assert held
        true = {text for text, so in held.items() if so}
        left = true if left is None else left & true
        if not left:
            break
    assert not left


@pytest.mark.parametrize("change", CHANGES[1:])
def test_a_change_of_numbers_changes_them(change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    frame = envprobe_book.run("tooldag", "simple periodic", protocols="paper", seeds="0:8", facts="changed")
    other = change(frame)
    assert sorted(other["policy"]) == sorted(frame["policy"])
    one, two = (
        own.set_index(["policy", "seed"])[["accuracy", "changed"]].sort_index() for own in (frame, other)
    )
    assert not one.equals(two)


def test_the_second_finding_compares_two_programs() -> None:
    """As released EnvProbe-Simple and its placebo are one; with memory and answers they can differ."""
    delivered = "released:memory=kept,answer=delivered"
    found = envprobe_book.run(policies="simple placebo", protocols=["released", delivered], seeds="0:60")
    pairs = found.pivot(index=["protocol", "world", "seed"], columns="policy", values="accuracy")
    same = (pairs["simple"] == pairs["placebo"]).groupby("protocol").mean()
    assert same["released"] == 1 > same[delivered]
