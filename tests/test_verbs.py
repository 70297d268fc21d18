"""The eight verbs that make a section: what each gives, and what each refuses."""

import re

import numpy as np
import pandas as pd
import pytest

import envprobe_core
from envprobe_book import conclude, draw, guess, table, take_away
from envprobe_book.facts import FACTS
from envprobe_book.pages import BOOK, EXECUTED
from envprobe_book.pages.markup import MARK, ConclusionError
from envprobe_core import compare, play, run, summarize
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate, simulate_logged
from envprobe_core.errors import InputError
from envprobe_core.policies import TERMS
from envprobe_core.protocols import parse_protocol

SEEDS = "0:12"
PAIR = {"arm": "simple", "reference": "periodic"}


def test_every_verb_is_found_and_no_other_name():
    assert all(callable(getattr(envprobe_core, name)) for name in envprobe_core.__all__)
    assert set(envprobe_core.__all__) <= set(dir(envprobe_core))
    with pytest.raises(AttributeError, match="runn"):
        _ = envprobe_core.runn


def test_run_gives_what_its_cells_give_and_facts_change_no_score():
    given = ("tooldag graphnav", ["simple"], "S1 S2", "paper:clock=stands", "typical", SEEDS, [2, -1], 2)
    frame, rich = run(*given), run(*given, facts=list(FACTS), jobs=2)
    assert len(frame) == 2 * 2 * 2 * 12
    assert set(frame["budget"]) == {2, 5, 7}
    pd.testing.assert_frame_equal(rich[frame.columns], frame)
    cell = make_condition("graphnav", "simple", "S1", parse_protocol("paper:clock=stands"), "typical", 2, 2.0)
    part = rich[(rich["world"] == "graphnav") & (rich["regime"] == "S1") & (rich["budget"] == 2)]
    recording, found = simulate_logged(cell, np.arange(12)), simulate(cell, np.arange(12))
    for name in ("accuracy", "success", "probes", "action_onset"):
        np.testing.assert_array_equal(part[name], found[name])
    fired = recording.probe >= 0
    first = np.where(fired.any(axis=1), np.argmax(fired, axis=1), np.nan)
    np.testing.assert_array_equal(part["first_probe"], first)
    np.testing.assert_array_equal(np.stack(part["track"]), recording.accuracy)
    low = np.stack(part["track"]) < 0.6
    onset = np.where(low.any(axis=1), low.argmax(axis=1), np.nan)
    np.testing.assert_array_equal(onset, part["collapse_onset"])


def test_what_is_asked_twice_is_run_once_so_that_pairs_can_be_joined():
    """Several thresholds are one to a policy that has none, and the regime's budget may be given as well."""
    frame = run("tooldag", "random cd", protocols="paper", seeds="0:3", budgets=[-1, 7], thresholds=[1, 2])
    assert frame.groupby(["policy", "threshold"], dropna=False).size().tolist() == [3] * 3


@pytest.mark.parametrize("world", ["tooldag", "objectstate", "graphnav"])
def test_play_shows_what_the_policy_saw(world):
    seen = play(world, "simple", seed=5, protocol="observed")
    recording = simulate_logged(
        make_condition(world, "simple", protocol=parse_protocol("observed")), np.array([5])
    )
    width = recording.belief.shape[2]
    assert len(seen) == recording.steps[0] * width
    score = seen[list(TERMS)].sum(axis=1).to_numpy().reshape(-1, width)
    fired = recording.probe[0, : len(score)]
    assert seen.loc[seen["probe"], "t"].tolist() == np.flatnonzero(fired >= 0).tolist()
    for t in np.flatnonzero(fired >= 0):
        assert score[t].argmax() == fired[t]
        assert score[t].max() >= 1.5
    np.testing.assert_array_equal(seen["gold"], recording.gold[0, : len(score)].ravel())


# what is refused

OF_FRAMES = {
    compare: PAIR,
    summarize: {"measures": "accuracy", "by": "policy"},
    table: {"label": "t", "caption": "T.", "columns": {"a": "{seed}"}},
    draw: {"kind": "bars", "name": "d", "y": "accuracy", "x": "policy"},
}
NO_FRAME, WHOLE = "is no frame, as `run` gives", "is not a whole number in 0.."


@pytest.mark.parametrize(
    ("verb", "asked", "says"),
    [
        (run, {"policies": "clever"}, "unknown policy 'clever'; accepted: no-probe"),
        (run, {"policies": ""}, "run: nothing to run; give at least one of worlds"),
        *((run, {name: []}, "run: nothing to run") for name in ("worlds", "budgets")),
        *((run, {"policies": odd}, f"{odd} stands where names do") for odd in (3, None)),
        (
            run,
            {"worlds": "moon"},
            "unknown world 'moon'; accepted: tooldag (tools or ToolDAGWorld or tool world), objectstate",
        ),
        *((run, {"worlds": [name]}, f"unknown world {name!r}; accepted") for name in (3, None, ["tooldag"])),
        *((run, {"protocols": [name]}, f"unknown protocol {name!r}; accepted") for name in (3, None, [])),
        (run, {"regimes": "S9"}, "unknown regime 'S9'; accepted: S1, S2"),
        (run, {"profiles": "angel"}, "unknown profile 'angel'; accepted: typical, perfect"),
        *((run, {"budgets": n}, f"budget {n} is not in 0..30 (the horizon of S2)") for n in (31, -2)),
        *((run, {"budgets": n}, f"budget {n} is not a whole number of probes") for n in (2.5, True)),
        (run, {"budgets": [1, 2.5]}, "budget 2.5 is not a whole number of probes"),
        *((run, {"thresholds": n}, f"threshold {n} is not a finite") for n in (np.nan, np.inf, True)),
        (run, {"thresholds": "high"}, "threshold 'high' is not a finite number"),
        (run, {"thresholds": [10**400]}, "threshold 1000"),
        (run, {"worlds": "tooldag tooldag"}, "'tooldag tooldag' names one twice"),
        (run, {"protocols": ["paper", "paper:clock=runs"]}, "names one twice"),
        (run, {"jobs": 0}, "jobs 0 is not a whole number of processes from 1"),
        (run, {"seeds": 5}, "seeds 5: give a text such as '0:220'"),
        (run, {"facts": "moods"}, "unknown fact 'moods'; accepted: zero"),
        *((play, {"seed": seed}, f"play: seed {seed!r} {WHOLE}") for seed in (-1, 2**63, 1.5, True, "1")),
        *((verb, {"frame": frame}, NO_FRAME) for frame in (3, None, [1], "episodes") for verb in OF_FRAMES),
        (compare, {"measure": "Accuracy"}, "measure 'Accuracy' cannot be read; a column, or two joined"),
        (compare, {"arm": "simpel"}, "the frame has no policy 'simpel'; it holds no-probe, periodic"),
        (compare, {"by": "place"}, "the frame has no column place"),
        (compare, {"by": ()}, "in tooldag, S2, occurs twice; one budget and one threshold"),
        *((compare, {"strata": {"a": odd}}, f"'a' is {odd!r}; give a tuple of") for odd in ("tooldag", ())),
        *((verb, {"strata": {"a": ("moon",)}}, "unknown world 'moon'") for verb in (compare, summarize)),
        *((compare, {"resamples": n}, f"resamples are {n!r}; a whole number") for n in (0, -5, 2.5, "x")),
        (compare, {"measure": "regime"}, "column regime holds no numbers: "),
        (summarize, {"measures": "probes regime"}, "one of the columns probes, regime holds no numbers: "),
        (summarize, {"measures": 3}, "3 stands where names do"),
        (compare, {"measure": 3}, "measure 3 cannot be read"),
        (compare, {"by": "policy"}, "by 'policy': a pair is of two policies"),
        (summarize, {"measures": "acuracy"}, "the frame has no column acuracy"),
        (table, {"columns": {"a": "{acuracy:2}"}}, "no column acuracy"),
        (table, {"columns": {"a": "{seed:[2]}"}}, "no column low, high"),
        *((table, {"columns": {"a": odd}}, f"{odd!r} is no template") for odd in ("{seed:x}", "{}", "{seed")),
        (table, {"align": "ll"}, "align 'll' is not a letter (l, r, c) for each of 1 columns"),
        (table, {"across": "moods"}, "no column moods"),
        (draw, {"y": "acuracy"}, "no column acuracy"),
        (draw, {"y": "regime"}, "draw: column regime holds no numbers: could not"),
        (draw, {"kind": "frontier", "x": "seed"}, "draw: frontier needs series"),
        (draw, {"kind": "cakes"}, "unknown kind of figure 'cakes'; accepted"),
        (draw, {"frame": pd.DataFrame({"accuracy": [], "policy": []})}, "nothing to show in d"),
    ],
)
def test_what_a_verb_cannot_use_is_told(verb, asked, says, episodes):
    given = {"seeds": SEEDS} if verb is run else {}
    given |= {"frame": episodes} | OF_FRAMES[verb] if verb in OF_FRAMES else {}
    with pytest.raises(InputError, match=re.escape(says)):
        verb(**given | asked)


@pytest.fixture(scope="module")
def episodes():
    return run(policies="no-probe periodic simple placebo", seeds=SEEDS)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda frame: frame.drop(columns="seed"), "the frame has no column seed"),
        (lambda frame: frame.drop(columns="policy"), "the frame has no column policy"),
        (lambda frame: pd.concat([frame, frame.assign(regime="R1")]), "the frame has regimes S2, R1; name"),
        (lambda frame: frame.assign(accuracy=frame["accuracy"].mask(frame["seed"] == 3)),
         "accuracy is missing for seed 3 of simple in tooldag"),
    ],
)  # fmt: skip
def test_a_damaged_frame_is_not_compared(damage, says, episodes):
    with pytest.raises(InputError, match=says):
        compare(damage(episodes), **PAIR)


# what pages show

FRAME = pd.DataFrame(
    {
        "protocol": ["paper", "paper", "released"],
        "policy": ["simple", "cd", "simple"],
        "gain": [1.234, -0.5, np.nan],
        "gain_low": [0.1, -1.0, np.nan],
        "gain_high": [2.0, 0.0, np.nan],
        "share": [0.125, 1.0, 0.0],
        "printed_gain": [np.nan, 0.55, np.nan],
        "printed_share": [np.nan, 0.2, np.nan],
        "nondominated": [False, True, False],
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
    assert made.rows[1] == ["", "EnvProbe-(c+d)", "−0.50 [−1.0,\u00a00.0]", "100.0%", ".040", "3,456 pairs"]
    assert made.rows[2][2] == "– –"
    assert made.align == "llrrrr"


@pytest.mark.parametrize("kind", ["forest", "bars", "tornado", "frontier", "curves"])
def test_draw_tells_its_values_and_what_is_printed_or_nondominated(kind):
    x = "share" if kind in ("frontier", "curves") else "policy"
    drawing = draw(kind, FRAME[:2], "figure", "gain", x=x, series="policy", label="gain", across="share")
    assert ("from 1.23" if kind == "curves" else "1.23") in drawing.alt
    assert "EnvProbe-Simple" in drawing.alt
    assert "<svg" in drawing.svg()
    axes = drawing.figure.axes[0]
    if kind in ("forest", "bars"):
        diamonds = [one for one in axes.lines if one.get_marker() == "d" and len(one.get_xdata())]
        places = [(one.get_xdata()[0], one.get_ydata()[0]) for one in diamonds]
        assert [place for place in places if np.isfinite(place).all()] == [(0.55, 1)]
    if kind == "frontier":
        dots = [line for line in axes.lines if not line.get_label().startswith("_")]
        assert [dot.get_markerfacecolor() == "#ffffff" for dot in dots] == [True, False]
        assert "nondominated: EnvProbe-(c+d);" in drawing.alt


def test_a_sentence_that_is_not_so_fails_the_book_and_says_so_elsewhere(monkeypatch):
    yes = conclude("Yes.", when=pd.Series([True, True]))
    shown = yes._repr_mimebundle_()
    assert shown.pop("application/vnd.jupyter.widget-view+json"), "JupyterLab's says what it belongs to"
    assert shown == {"text/markdown": "Yes.", "text/plain": "Yes."}
    with monkeypatch.context() as patch:
        patch.setenv(EXECUTED, "here")
        assert yes._repr_mimebundle_() == {"text/markdown": yes.markdown, "text/plain": "Yes."}
    assert yes.markdown == "[](live:fixed)Yes.[](live:end)", "what no slider moves is marked, for pages"
    box = take_away("A.", [yes, conclude("C.", when=True)], "D.").markdown
    for part in ("**The paper says.** A.", "**We find.** Yes. C.", "**Limits.** D."):
        assert part in MARK.sub("", box)
    for when in (lambda: {}["not run"], lambda: pd.Series(dtype=float).idxmax() == "simple"):
        assert "these do not:* No." in conclude("No.", when=when).markdown
    monkeypatch.setenv(BOOK, "1")
    assert conclude("Yes.", when=True) == yes
    for when in (False, [], [True, False], lambda: [][1]):
        with pytest.raises(ConclusionError, match="this is not so: No"):
            conclude("No.", when=when)


def test_which_guess_is_right_is_computed(monkeypatch):
    asked = guess("Is <b> so?", {"No": False, "Yes": lambda: True}, "For a reason.")
    for part in ('data-right="1"', "Is &lt;b&gt; so?", "With the book&#x27;s own values: For"):
        assert part in asked.html
    none = guess("Q?", {"A": lambda: {}["not run"], "B": False}, "R.")
    assert "data-right" not in none.html
    assert none.text == "Guess first: Q? A / B?", "where a form cannot be shown, nothing is given away"
    assert "These values do not decide it." in none.html
    monkeypatch.setenv(BOOK, "1")
    assert "<strong>A.</strong> R." in guess("Q?", {"A": True, "B": False}, "R.").html
    for choices in ({"A": False, "B": False}, {"A": True, "B": True}):
        with pytest.raises(ConclusionError, match="answers are right: Q"):
            guess("Q?", choices, "R.")
