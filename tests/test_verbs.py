"""The eight verbs that make a section."""

import sys

import numpy as np
import pandas as pd
import pytest

import envprobe_core
from envprobe_core import compare, conclude, draw, guess, judge, play, run, summarize, table, take_away
from envprobe_core.cells import make_cell
from envprobe_core.claims import claims_by_id
from envprobe_core.engine.running import record
from envprobe_core.errors import InputError
from envprobe_core.facts import FACTS
from envprobe_core.grid import run_cells
from envprobe_core.policies import TERMS
from envprobe_core.protocols import parse_protocol
from envprobe_core.show.markup import BOOK, ConclusionError
from envprobe_core.statistics import resample_counts

SEEDS = "0:12"


@pytest.fixture(scope="module")
def episodes():
    return run(policies="no-probe periodic simple placebo", seeds=SEEDS)


def functions_called(call, since=None):
    """What a call gives, and the package's functions that it calls, by module, since one last returned."""
    seen, begun = set(), [since is None]

    def look(frame, event, _):
        code = frame.f_code
        _, ours, module = code.co_filename.rpartition("/envprobe_core/")
        if ours and "<" not in code.co_name:
            if event == "call" and begun[0]:
                seen.add((module, code.co_qualname))
            elif event == "return" and (module, code.co_qualname) == since:
                begun[0] = True
                seen.clear()

    sys.setprofile(look)
    try:
        return call(), seen
    finally:
        sys.setprofile(None)


def test_few_functions_stand_between_a_belief_and_a_number():
    """After the engine's loop: from the beliefs to a cell of the main table, and to one verdict."""
    given = {"protocols": "paper", "seeds": "0:20"}

    def made():
        grid = run("tooldag", "periodic simple", **given)
        gains = compare(grid, "simple", "periodic", resamples=200)
        return grid, table(gains, "tab-x", "Gains.", {"gain": "{gain:+2} {gain:[2]}"})

    made()
    resample_counts.cache_clear()
    (grid, shown), seen = functions_called(made, ("engine/loop.py", "run"))
    assert "[" in shown.rows[0][0]
    assert 10 < len(seen) <= 25, sorted(seen)
    assert len({module for module, _ in seen}) <= 10
    assert claims_by_id()
    verdict, seen = functions_called(lambda: judge(grid, "main-procedural", resamples=200))
    assert verdict["verdict"][0] != "not tested"
    assert 10 < len(seen) <= 15, sorted(seen)


def test_every_verb_is_found_and_no_other_name():
    for name in envprobe_core.__all__:
        assert callable(getattr(envprobe_core, name))
    with pytest.raises(AttributeError, match="runn"):
        _ = envprobe_core.runn


def test_run_gives_what_its_cells_give():
    given = ("tooldag graphnav", ["simple"], "S1 S2", "paper:clock=stands")
    frame = run(*given, seeds=SEEDS, budgets=[2, -1], thresholds=2)
    assert len(frame) == 2 * 2 * 2 * 12
    protocol = parse_protocol("paper:clock=stands")
    part = frame[(frame["world"] == "graphnav") & (frame["regime"] == "S1") & (frame["budget"] == 2)]
    cell = make_cell("graphnav", "simple", "S1", protocol, "typical", 2, 2.0)
    found = run_cells([cell], np.arange(12))
    for name in ("seed", "accuracy", "success", "probes", "action_onset"):
        np.testing.assert_array_equal(part[name], found[name])
    assert set(frame["budget"]) == {2, 5, 7}


@pytest.mark.parametrize(
    "wrong",
    [
        {"policies": "clever"}, {"policies": ""}, {"policies": None}, {"worlds": []}, {"regimes": "S9"},
        {"protocols": "x"}, {"budgets": 99}, {"budgets": 2.5}, {"budgets": True}, {"budgets": []},
        {"seeds": 5}, {"seeds": ""}, {"facts": "moods"},
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_run_is_refused(wrong):
    with pytest.raises(InputError):
        run(**{"seeds": SEEDS} | wrong)


def test_what_is_no_seed_or_no_frame_is_refused_by_every_verb():
    for seed in (-1, 2**63, 1.5, True, "1"):
        with pytest.raises(InputError, match="is not a whole number"):
            play("tooldag", "simple", seed=seed)
    for frame in (3, None, [1], "episodes"):
        for verb in (
            lambda frame=frame: compare(frame, "simple", "periodic"),
            lambda frame=frame: summarize(frame, "accuracy", "policy"),
            lambda frame=frame: table(frame, "t", "T.", {"a": "{a}"}),
            lambda frame=frame: draw("bars", frame, "d", "a"),
        ):
            with pytest.raises(InputError, match="is no frame"):
                verb()


def test_columns_and_kinds_that_are_not_there_are_named(episodes):
    def compared(*more, **given):
        return lambda: compare(episodes, "simple", "periodic", *more, **given)

    for verb, words in (
        (compared("acuracy"), "no column acuracy"),
        (compared(strata={"a": ("nowhere",)}), "unknown world 'nowhere'"),
        (compared(strata={"a": "tooldag"}), "give a tuple of worlds"),
        (lambda: summarize(episodes, "acuracy", "policy"), "no column acuracy"),
        (lambda: table(episodes, "t", "T.", {"a": "{acuracy:2}"}), "no column acuracy"),
        (lambda: table(episodes, "t", "T.", {"a": "{seed}"}, across="moods"), "no column moods"),
        (lambda: draw("bars", episodes, "d", "acuracy"), "no column acuracy"),
        (lambda: draw("cakes", episodes, "d", "accuracy"), "unknown kind of figure 'cakes'"),
        (lambda: draw("bars", episodes[:0], "d", "accuracy"), "nothing to show in d"),
    ):
        with pytest.raises(InputError, match=words):
            verb()


def test_facts_change_no_score_and_come_from_the_same_episodes():
    bare, rich = (
        run("tooldag", "simple no-probe", seeds=SEEDS, protocols="paper", facts=facts)
        for facts in ("", list(FACTS))
    )
    pd.testing.assert_frame_equal(rich[bare.columns], bare)
    recording = record(make_cell("tooldag", "simple"), np.arange(12))
    first = np.argmax(recording.probe >= 0, axis=1)
    np.testing.assert_array_equal(rich["first_probe"][:12], first)
    assert rich["first_probe"][12:].isna().all()
    np.testing.assert_array_equal(np.stack(rich["track"][:12]), recording.accuracy)
    low = np.stack(rich["track"]) < 0.6
    onset = np.where(low.any(axis=1), low.argmax(axis=1), np.nan)
    np.testing.assert_array_equal(onset, rich["collapse_onset"])


@pytest.mark.parametrize("world", ["tooldag", "objectstate", "graphnav"])
def test_play_shows_what_the_policy_saw(world):
    seen = play(world, "simple", seed=5, protocol="observed")
    recording = record(make_cell(world, "simple", protocol=parse_protocol("observed")), np.array([5]))
    width = recording.belief.shape[2]
    assert len(seen) == recording.steps[0] * width
    score = seen[list(TERMS)].sum(axis=1).to_numpy().reshape(-1, width)
    fired = recording.probe[0, : len(score)]
    spent = np.cumsum(fired >= 0) - (fired >= 0)
    for t in np.flatnonzero((spent < 7) & (fired >= 0)):
        assert score[t].argmax() == fired[t]
        assert score[t].max() >= 1.5
    probed = seen[seen["probe"]]
    assert probed["t"].tolist() == np.flatnonzero(fired >= 0).tolist()
    np.testing.assert_array_equal(seen["gold"], recording.gold[0, : len(score)].ravel())


FRAME = pd.DataFrame(
    {
        "protocol": ["paper", "paper", "released"],
        "policy": ["simple", "periodic", "simple"],
        "gain": [1.234, -0.5, np.nan],
        "gain_low": [0.1, -1.0, np.nan],
        "gain_high": [2.0, 0.0, np.nan],
        "share": [0.125, 1.0, 0.0],
        "p": [0.0001, 0.04, 1.0],
        "n": [12, 3456, 0],
    }
)


def test_table_writes_each_column_as_its_template_says():
    columns = {"": "{protocol:code}", "who": "{policy:policy}", "gain": "{gain:+2} {gain:[1]}"}
    columns |= {"share": "{share:%1}", "$p$": "{p:p}", "n": "{n} pairs"}
    made = table(FRAME, "tab-x", "A table.", columns, once="protocol")
    first = ["as written", "EnvProbe-Simple", "+1.23 [0.1,\u00a02.0]", "12.5%", "<\u00a0.001", "12 pairs"]
    assert made.rows[0] == first
    assert made.rows[1] == ["", "Periodic", "−0.50 [−1.0,\u00a00.0]", "100.0%", ".040", "3,456 pairs"]
    assert made.rows[2][2] == "– –"
    assert made.align == "llrrrr"


@pytest.mark.parametrize("kind", ["forest", "bars", "tornado", "frontier", "curves"])
def test_draw_tells_its_values(kind):
    x = "share" if kind in ("frontier", "curves") else "policy"
    drawing = draw(kind, FRAME.dropna(), "figure", "gain", x=x, series="policy", label="gain")
    assert ("from 1.23" if kind == "curves" else "1.23") in drawing.alt
    assert "EnvProbe-Simple" in drawing.alt
    assert "<svg" in drawing.svg()
    with pytest.raises(ValueError, match="pie"):
        draw("pie", FRAME, "figure", "gain")


def test_a_sentence_that_is_not_so_fails_the_book_and_is_struck_out_elsewhere(monkeypatch):
    yes = conclude("Yes.", when=pd.Series([True, True]))
    assert yes._repr_mimebundle_()["text/markdown"] == yes.markdown == "Yes."
    box = take_away("A.", [yes, conclude("C.", when=True)], "D.").markdown
    for part in ("**The paper says.** A.", "**We find.** Yes. C.", "**It depends on.** D."):
        assert part in box
    for when in (lambda: {}["not run"], lambda: pd.Series(dtype=float).idxmax() == "simple"):
        assert "<s>No.</s>" in conclude("No.", when=when).markdown
    monkeypatch.setenv(BOOK, "1")
    assert conclude("Yes.", when=True) == yes
    for when in (False, [], [True, False], lambda: [][1]):
        with pytest.raises(ConclusionError, match="this is not so: No"):
            conclude("No.", when=when)


def test_which_guess_is_right_is_computed(monkeypatch):
    asked = guess("Is <b> so?", {"No": False, "Yes": lambda: True}, "For a reason.")
    assert 'data-right="1"' in asked.html
    assert "<strong>Yes.</strong> With the book&#x27;s own values: For a reason." in asked.html
    assert "Is &lt;b&gt; so?" in asked.html
    none = guess("Q?", {"A": lambda: {}["not run"], "B": False}, "R.")
    assert "data-right" not in none.html
    assert none.text == "Guess first: Q? A / B? These values do not decide it. With the book's own values: R."
    monkeypatch.setenv(BOOK, "1")
    assert guess("Q?", {"A": True, "B": False}, "R.").text == "Guess first: Q? A / B? A. R."
    for choices in ({"A": False, "B": False}, {"A": True, "B": True}):
        with pytest.raises(ConclusionError, match="answers are right: Q"):
            guess("Q?", choices, "R.")


ROWS = pd.DataFrame(
    {
        "policy": ["simple", "cd"],
        "mean": [0.5, 0.6],
        "mean_low": [0.4, 0.5],
        "mean_high": [0.6, 0.7],
        "share": [0.1, 0.3],
        "printed_mean": [np.nan, 0.55],
        "printed_share": [np.nan, 0.2],
        "nondominated": [False, True],
    }
)


@pytest.mark.parametrize("kind", ["forest", "bars"])
def test_printed_numbers_are_diamonds_on_their_rows(kind):
    axes = draw(kind, ROWS, "figure", "mean", x="policy").figure.axes[0]
    diamonds = [one for one in axes.lines if one.get_marker() == "d" and np.isfinite(one.get_xdata()).all()]
    assert [(one.get_xdata()[0], one.get_ydata()[0]) for one in diamonds] == [(0.55, 1)]


def test_the_frontier_joins_and_fills_what_is_nondominated():
    drawing = draw(
        "frontier", ROWS, "figure", "mean", x="share", series="policy", label="accuracy", across="success"
    )
    axes = drawing.figure.axes[0]
    assert axes.lines[0].get_xdata().tolist() == [0.3]
    dots = [line for line in axes.lines if not line.get_label().startswith("_")]
    hollow = [dot.get_markerfacecolor() == "#ffffff" for dot in dots]
    assert hollow == [True, False]
    assert "nondominated: EnvProbe-(c+d);" in drawing.alt
