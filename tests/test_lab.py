"""The classroom: bad policies are told why, good ones are those of the engine, and the solutions run."""

import contextlib
import functools
import json
import re

import nbformat
import numpy as np
import pytest
from numba import njit

from built_book import SMALL
from envprobe_book import classroom as lab
from envprobe_book.classroom import checks, exercises, policy_check
from envprobe_book.classroom.checks import CHECKS, check
from envprobe_book.classroom.exercises import BEGIN, END
from envprobe_book.reproduce.sections import cell_source, find_sections
from envprobe_core.conditions import Condition, parse_seeds
from envprobe_core.engine.batch import simulate, simulate_logged
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES, custom_policy, find_policy
from envprobe_core.protocols import parse_protocol
from envprobe_core.statistics import paired_bootstrap
from processes import call

# --- policies that are refused ----------------------------------------------------------------


def reads_gold(view):
    truth = view.gold
    return (view.value != truth) * 2.0


def writes(view):
    view.c[0] = 9
    return view.c


def smooths(view, seen=[None, 0, 0]):  # noqa: B006
    """Lean on the step before, whatever episode that was of."""
    if seen[0] != (view.step, view.draw):
        seen[:] = [(view.step, view.draw), seen[2], view.step]
    return view.c + seen[1] / 100


def gives_one_array(view, scores=np.zeros(99)):  # noqa: B008
    scores += 1
    return scores[: len(view.c)]


def swallows(view):
    while True:
        with contextlib.suppress(Exception):
            sum(range(10**7))


def leaves(view):
    raise SystemExit(0)


def late(what):
    """Make a function that is fine until step 13, which no trial has."""

    def score(view):
        return what(view) if view.step == 13 else view.c

    return score


def dice(view):
    return np.random.default_rng().random(view.c.shape)


def counts(view):
    return view.c + sum(1.0 for _ in range(10**12))


SHAPE = r"shape \[field\], here \(27,\), as view\.c \+ view\.u has it"
AGAIN = r"the same view differently a second time \(step {}.*for chance use view\.draw,"
BAD = {
    "gold": (reads_gold, r"at line \d+ \(`truth = view\.gold`\): .*the truth is for oracles"),
    "what is not there": (lambda view: view.weights, r"no attribute 'weights'; a view has c, s, u, d"),
    "a number for all": (lambda view: view.c.sum(), r"float64 \(was it summed over the field.*" + SHAPE),
    "a table": (lambda view: np.array([view.c, view.d]), r"shape \(2, 27\); return an array of " + SHAPE),
    "a list": (lambda view: view.c.tolist(), "of type list; return an array"),
    "complex numbers": (lambda view: view.c * 1j, r"values of type complex128; scores must be real numbers"),
    "masked values": (lambda view: np.ma.masked_less(view.c, 0.5), r"gives nan for \d+ of 27 scores"),
    "nan": (lambda view: view.c * np.nan, r"at line \d+ \(`\"nan.*\) gives nan for 27 .* field 0 at step 0"),
    "an exception": (lambda view: view.c + 1 // 0, r"fails at line \d+ \(`.*`\): ZeroDivisionError"),
    "one truth value for all": (lambda view: view.c if view.s > 0.5 else view.d, r"np\.where\(condition, "),
    "an array taken for a table": (lambda view: view.c / view.c.max(axis=1), r"AxisError.*arrays are \[fie"),
    "a write": (writes, r"fails at line \d+ \(`view\.c\[0\] = 9`\).*view\.c\.copy\(\)"),
    "an attribute set": (lambda view: setattr(view, "step", 3), r"a view cannot be changed"),
    "dice": (dice, AGAIN.format(22)),
    "what came before": (smooths, AGAIN.format(r"\d+")),
    "one array for all": (gives_one_array, AGAIN.format(r"\d+")),
    "a loop that lets no fault through": (swallows, r"more than 0\.3 s for one decision"),
    "no argument": (lambda: 1, r"takes one argument: def score\(view\)"),
    "a long loop": (counts, r"at line \d+ \(`.*`\): .*more than 0\.3 s"),
    "an exit": (leaves, r"fails at line \d+ \(`raise SystemExit\(0\)`\): SystemExit"),
    "no function": (7, r"'int' object is not callable"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_policy_gets_one_message_that_says_what_to_change(kind, monkeypatch):
    function, message = BAD[kind]
    if "more than" in message:  # all others have their time
        monkeypatch.setattr(policy_check, "LONGEST_CALL", 0.3)
    with pytest.raises(lab.PolicyError, match=message) as caught:
        lab.policy("mine")(function)
    text = str(caught.value)
    assert text.startswith("policy 'mine' ")
    assert "\n" not in text
    assert caught.value._render_traceback_() == [f"PolicyError: {text}"]
    if kind not in ("what came before", "one array for all"):  # these remember the first trial
        assert lab.diagnose(function, "mine").markdown == f"~~~text\n{text}\n~~~"


@pytest.mark.parametrize("name", ["cd", "Oracle", "", "<b>x</b>", "$x$", "x" * 31, "a|b"])
def test_a_name_that_is_taken_or_would_be_markup_is_refused(name):
    with pytest.raises(lab.PolicyError, match=re.escape(f"policy name {name!r} is ")):
        lab.policy(name)


def out_of_bounds(view):
    score = np.zeros(len(view.c))
    score[39 if view.step == 13 else 0] = 1.0
    return score


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (late(lambda view: view.c * np.nan), r"'mine' at line .* gives nan .* step 13"),
        (late(dice), AGAIN.format(13)),
        (late(swallows), r"'mine' fails at line \d+ .*more than 0\.3 s"),
        (late(counts), r"'mine' fails at line \d+ .*more than 0\.3 s"),
        (lambda view: np.where(view.step == 13, np.nan, view.c), r"'mine' at line .* gives nan .* step 13"),
        (out_of_bounds, r"'mine' fails at line \d+ .*index 39 is out of bounds"),
    ],
)
def test_a_fault_that_only_the_run_meets_is_told_too(function, said, monkeypatch):
    if "more than" in said:
        monkeypatch.setattr(policy_check, "LONGEST_CALL", 0.3)
    made = lab.policy("mine")(function)
    with pytest.raises(lab.PolicyError, match=said):
        lab.compete(made, seeds="0:60", worlds="tooldag", rivals=())


def test_a_view_leads_to_nothing_else():
    view = policy_check.trial_views()[0]
    assert not {"gold", "weights", "scheduled", "rho"} & set(dir(view))
    assert all(len(part.base) == part.nbytes and not part.flags.writeable for part in view[:7])


# --- good policies ----------------------------------------------------------------------------


@pytest.mark.parametrize("world", ["tooldag", "objectstate", "graphnav"])
@pytest.mark.parametrize("protocol", ["paper", "released:threshold=fixed"])
def test_a_readers_policy_is_the_engines_step_by_step(world, protocol):
    """The score c + d written in the lab is EnvProbe-(c+d), where thresholds are not scaled."""
    mine = lab.policy("structure")(lambda view: view.c + view.d)
    first, second = (
        simulate_logged(Condition(world, p, protocol=parse_protocol(protocol)), np.arange(9))
        for p in (mine, find_policy("cd"))
    )
    for name in ("belief", "gold", "probe", "score", "staleness", "confidence", "action"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)


def alone(view):
    score = np.zeros(len(view.c))
    for i in range(len(score)):
        score[i] = 2 * view.c[i] if view.used < view.budget - 1 else view.d[i] + view.draw % 2
    return score


@pytest.mark.parametrize("world", ["tooldag", "objectstate", "graphnav"])
def test_a_function_that_numba_compiled_is_called_like_any_other(world):
    plain, fast = (lab.policy("mine")(function) for function in (alone, njit(alone)))
    first, second = (
        simulate_logged(Condition(world, mine, protocol=parse_protocol("released")), np.arange(12))
        for mine in (plain, fast)
    )
    assert np.nanmax(first.score) > 1
    for part in ("belief", "gold", "probe", "score", "action"):
        np.testing.assert_array_equal(getattr(first, part), getattr(second, part), err_msg=part)


def test_a_fault_in_compiled_code_is_one_message_too():
    """Its line is Numba's to tell, and Numba does not tell it."""

    @njit
    def beyond(view):
        if view.step == 9:
            raise ValueError("my own")
        return view.c + view.d

    with pytest.raises(lab.PolicyError, match=r"^policy 'mine' fails.*: ValueError: my own$"):
        lab.policy("mine")(beyond)


def test_values_that_a_function_takes_from_outside_are_those_of_the_moment():
    weight = [1.0]
    mine, cell_seeds = lab.policy("mine")(lambda view: weight[0] * view.c), np.arange(6)
    before = simulate_logged(Condition("tooldag", mine), cell_seeds).score
    weight[0] = 5.0
    assert np.nanmax(simulate_logged(Condition("tooldag", mine), cell_seeds).score) == 5 * np.nanmax(before)


def test_a_function_that_no_lab_has_tried_is_checked_too():
    nan = custom_policy("mine", lambda view: np.where(view.step == 13, np.nan, view.c))
    with pytest.raises(InputError, match="27 finite scores"):
        simulate(Condition("tooldag", nan), np.arange(5))


# --- a contest --------------------------------------------------------------------------------


def test_leaderboard_numbers_are_those_of_the_episodes():
    mine = [lab.policy("structure")(lambda view: view.c + view.d), lab.policy("calm")(lambda view: view.s)]
    sets = {"design": "3:12", "held-out": "40:49"}
    final = lab.compete(
        mine, seeds=sets["design"], held_out=sets["held-out"], protocols="paper released", rivals="cd oracle"
    )
    board = lab.leaderboard(final, 200)
    assert len(board) == 2 * 2 * 6
    for (protocol, kind), part in board.groupby(["protocol", "set"]):
        assert part["accuracy"].is_monotonic_decreasing
        assert sorted(part["rank"]) == list(range(6)), "an oracle has no rank"
        episodes = final.frame[(final.frame["protocol"] == protocol) & (final.frame["set"] == kind)]
        assert set(episodes["seed"]) == set(parse_seeds(sets[kind]))
        for row in part.itertuples():
            own, simple = (
                episodes[episodes["policy"] == name].set_index(["world", "seed"]).sort_index()
                for name in (row.policy, "simple")
            )
            means = own.assign(useful=own["useful"] / own["probes"].where(own["probes"] > 0))
            means = means[["accuracy", "success", "probes", "useful"]].mean()
            found = [row.accuracy, row.success, row.probes, row.useful_rate]
            assert found == pytest.approx(list(means), nan_ok=True)
            points = 100 * (own["accuracy"] - simple["accuracy"])
            gain = paired_bootstrap(points.to_numpy(), [world for world, _ in own.index], 200)
            ends = [row.minus_simple, row.minus_simple_low, row.minus_simple_high]
            assert (row.n, ends) == (27, pytest.approx([gain.mean, gain.low, gain.high], abs=1e-9))


def test_held_out_seeds_are_new_and_looks_at_them_are_counted(monkeypatch):
    for name in ("your-policy", "exercises"):
        parameters = find_sections()[name].parameters
        design, held = (parse_seeds(parameters[given].default) for given in ("seeds", "held_out"))
        assert not np.intersect1d(design, held).size
    monkeypatch.setattr(lab, "_looks", lab.Counter())
    mine = lab.policy("mine")(lambda view: view.c)
    play = functools.partial(lab.compete, worlds="tooldag", rivals=(), seeds="0:2")
    assert [play(mine).looks, play(held_out="7:9").looks] == [0, 0]  # nothing of one's own was looked at
    assert [play(mine, held_out=seeds).looks for seeds in ("7:9", "7:9", "20:22")] == [1, 2, 1]


@pytest.mark.parametrize(
    ("own", "given", "said"),
    [
        ([reads_gold], {}, r'reads_gold is no policy of yours: write @policy\("my rule"\) above its `def`'),
        (POLICIES["cd"], {}, "cd is no policy of yours"),
        ("cd", {}, "'cd' is no policy of yours"),
        (None, {}, "None is no policy of yours"),
        ((), {"seeds": "0:10", "held_out": "8:12"}, "2 seeds are both design and held-out, the first 8"),
        ((), {"seeds": range(10)}, r"seeds range\(0, 10\): give a text such as '0:220'"),
        ((), {"worlds": ""}, "a contest needs a world and a protocol; given are '' and 'observed'"),
        ((), {"rivals": "nobody"}, "unknown policy 'nobody'"),
        ((), {"rivals": "cd cd"}, "'cd cd' names one twice"),
        ((), {"budget": 31}, r"budget 31 is not in 0\.\.30"),
    ],
)
def test_what_is_no_contest_is_refused(own, given, said):
    with pytest.raises(InputError, match=said):
        lab.compete(own, **given)


def test_two_policies_of_one_name_are_refused():
    mine = lab.policy("mine")(lambda view: view.c)
    with pytest.raises(InputError, match="two policies are named 'mine'"):
        lab.compete([mine, mine])


def test_a_policy_that_never_fires_is_told_so():
    shy = lab.policy("shy")(lambda view: (view.d > 0) * 1.0)
    board = lab.leaderboard(lab.compete(shy, seeds="0:4", worlds="tooldag graphnav", rivals="cd"), 100)
    told = dict(zip(board["policy"], board["silent"], strict=True))
    assert told.pop("shy") == "fired 0 of 7 probes: its highest score was 1, the gate is 1.5"
    assert not any(told.values())


# --- the exercises ----------------------------------------------------------------------------

EXERCISES = find_sections()[exercises.EXERCISES]


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    """What `envprobe answers --out` executes and writes, of few seeds."""
    out = tmp_path_factory.mktemp("answers") / "key"
    given = [text for name in EXERCISES.parameters & SMALL.keys() for text in ("-p", f"{name}={SMALL[name]}")]
    assert call("answers", "--out", out, *given) == 0
    return out


@pytest.mark.nightly
def test_the_answer_key_has_every_exercise_with_its_output_in_plain_markdown(key):
    solved, text = json.loads((key / "solved.ipynb").read_text()), (key / "answers.md").read_text()
    assert f"seeds = {SMALL['seeds']}" in text.splitlines()[2]
    kinds = list(exercises.parts(solved))
    code = [cell for kind, cell, _ in kinds if kind == "solution" and cell["cell_type"] == "code"]
    asked = [told for kind, _, told in kinds if kind == "exercise"]
    assert [text.count(f"## {told.splitlines()[0]}\n") for told in asked] == [1] * len(asked)
    assert text.count("**Solution**") == len(asked) >= 12
    assert text.count("~~~python") == len(code)
    assert text.count("~~~text") + text.count("| :--") >= len(asked)  # what they gave
    assert not re.search(r"\bnan\b", text)
    prose = re.sub(r"^~~~(?:python|text)\n.*?^~~~$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"\{[a-z:-]+\}`|^:::|\]\([\w./-]+\.(?:ipynb|md)", prose, re.MULTILINE)


def test_students_get_questions_that_run_self_checks_and_no_solution(key):
    copy, solved = (json.loads((key / f"{name}.ipynb").read_text()) for name in ("exercises", "solved"))
    sources, kinds = [cell_source(cell) for cell in copy["cells"]], list(exercises.parts(solved))
    assert "{solution" not in "".join(sources)
    assert not {cell_source(cell) for kind, cell, _ in kinds if kind in ("solution", "key")} & {*sources}
    asked = [f"### {exercises.linked(text)}" for kind, _, text in kinds if kind == "exercise"]
    assert [text in sources for text in asked] == [True] * sources.count("")
    for _, cell, text in (one for one in kinds if one[0] == "check"):
        assert sources[sources.index(text) - 1] == ""
        said = "".join(cell["outputs"][0]["data"]["text/markdown"])
        assert ("☑" in said, "☐" in said) == (True, False), f"{text}\n{said}"
    space = {}
    for source in [cell_source(cell) for cell in copy["cells"] if cell["cell_type"] == "code"][:3]:
        exec(source, space)  # all that the questions need
    assert space["play"]("no-probe").belief.shape[0] == 220
    assert 'download="envprobe-exercises.ipynb"' in exercises.student_download().html


def test_a_malformed_exercise_is_named():
    cells = [cell for cell in EXERCISES.cells if "{exercise}" in cell_source(cell)]
    notebook = {"cells": [cells[0], cells[1] | {"source": cell_source(cells[1]).replace("Level: ", "")}]}
    with pytest.raises(InputError, match="exercise in cell 2 is not of the form"):
        list(exercises.parts(notebook))


def test_a_self_check_says_what_is_missing_and_not_the_answer(monkeypatch):
    wanted = {"has two numbers": lambda mine: len(mine) == 2, "is positive": lambda mine: min(mine) > 0}
    monkeypatch.setitem(checks.CHECKS, "ex-mine", wanted)
    call = 'said = lab.check("ex-mine")'
    exec(call, space := {"lab": lab})
    assert "There is no `mine` yet" in space["said"].markdown
    for mine, marks in (([1, 2], "☑☑"), ([1, -2], "☑☐"), ([-1], "☐☐"), (5, "☐☐")):
        exec(call, space := space | {"mine": mine})
        assert "".join(re.findall("[☑☐]", space["said"].markdown)) == marks
    assert "TypeError" in space["said"].markdown
    with pytest.raises(InputError, match="unknown exercise 'ex-moon'; accepted: ex-cell, "):
        lab.check("ex-moon")


def test_a_self_check_is_shorter_than_its_exercise_and_each_exercise_with_code_has_one():
    asked = re.findall(r":label: (ex-[a-z]+)", "".join(map(cell_source, EXERCISES.cells)))
    found, work = {}, 0
    for kind, cell, text in exercises.parts(EXERCISES.notebook):
        if kind == "solution" and cell["cell_type"] == "code":
            work += len(text)
        elif kind == "check":
            (label,) = re.findall(r'lab\.check\("(ex-[a-z]+)"\)', text)
            found[label] = len(text) < work, len(text.splitlines())
        elif kind == "start":
            work = 0
    assert found == dict.fromkeys(checks.CHECKS, (True, 2))
    assert set(found) <= set(asked)


def test_a_policy_without_parentheses_is_told_what_to_write():
    with pytest.raises(
        lab.PolicyError, match=r"above 'mine' without a name: write @lab.policy\(\"my rule\"\)"
    ):

        @lab.policy
        def mine(view):
            return view.c


def test_a_leaderboard_in_one_unit_has_the_boards_numbers():
    board = lab.leaderboard(lab.compete(seeds="0:10", rivals="periodic"), 100)
    shown = lab.in_percent(board)
    assert shown.index.tolist() == [POLICIES[name].title for name in board["policy"]]
    np.testing.assert_allclose(shown["accuracy"], 100 * board["accuracy"], atol=0.05)
    np.testing.assert_allclose(shown["ahead"], board["minus_simple"], atol=0.05)
    assert shown.loc["EnvProbe-Simple", ["ahead", "from", "to"]].tolist() == [0, 0, 0]


def test_the_exercises_are_an_assignment_of_nbgrader(tmp_path):
    """Its form, as version 3 of nbgrader wants it, and no solution outside the marks that it clears."""
    assert call("answers", "--nbgrader", "--out", tmp_path) == 0
    text = (tmp_path / "source" / "exercises" / "exercises.ipynb").read_text()
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    graded = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    about = [cell.metadata["nbgrader"] for cell in graded]
    names = [one["grade_id"] for one in about]
    assert len(set(names)) == len(names)
    assert {name.removesuffix("-check") for name in names if name.endswith("-check")} == {*CHECKS}
    assert {name.removesuffix("-answer") for name in names if name.endswith("-answer")} >= {*CHECKS}
    for cell, one in zip(graded, about, strict=True):
        assert one["schema_version"] == 3
        assert one["locked"] is not one["solution"]
        source = cell.source
        if one["solution"]:
            assert source.startswith(BEGIN)
            assert source.endswith(END)
        else:
            assert source.endswith(", graded=True)")
        compile(source, one["grade_id"], "exec")
    cleared = re.sub(f"{BEGIN}.*?{END}", "", text, flags=re.DOTALL)
    assert 'run(\\"tooldag\\", \\"simple no-probe\\"' not in cleared
    assert call("answers", "--nbgrader", "--out", tmp_path) == 2
    assert call("answers", "--nbgrader") == 2


def test_a_graded_check_is_an_error_where_the_form_is_not_right():
    space = {"check": check, "split": {"gain": 3.0, "answers": 1.0, "the rest": 2.0}}
    exec("found = check('ex-placebo', graded=True)", space)
    assert space["found"].markdown.endswith("the numbers must say.")
    for wrong in ({}, {"split": {"gain": 3.0}}):
        with pytest.raises(AssertionError):
            exec("check('ex-placebo', graded=True)", {"check": check} | wrong)
