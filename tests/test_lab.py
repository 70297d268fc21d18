"""The classroom: bad policies are told why, good ones are those of the engine, and the solutions run."""

import contextlib
import functools
import json
import re
import types
import warnings

import numpy as np
import pytest

from envprobe_core import lab
from envprobe_core.cells import Cell, parse_seeds
from envprobe_core.cli import main
from envprobe_core.engine import loop, running
from envprobe_core.engine.running import measure, record
from envprobe_core.errors import InputError
from envprobe_core.lab import contest as contests
from envprobe_core.lab import drawing, exercises, guard
from envprobe_core.policies import POLICIES, custom_policy, find_policy, own
from envprobe_core.policies.own import View
from envprobe_core.protocols import parse_protocol
from envprobe_core.reproduce import sections as notebooks
from envprobe_core.reproduce.sections import cell_source
from envprobe_core.statistics import paired_bootstrap

SMALL = {"seeds": "0:6", "held_out": "50:56", "resamples": "100", "protocol": "observed"}


# --- policies that are refused ----------------------------------------------------------------


def reads_gold(view):
    truth = view.gold
    return (view.value != truth) * 2.0


def writes(view):
    view.c[0] = 9
    return view.c


def rolls_dice(view):
    return np.random.default_rng().random(view.c.shape)


def keeps_count(view, seen=[]):  # noqa: B006
    seen.append(view.step)
    return view.c + len(seen)


def smooths(view, seen=[None, 0, 0]):  # noqa: B006
    """Lean on the step before, whatever episode that was of."""
    if seen[0] != (view.step, view.draw):
        seen[:] = [(view.step, view.draw), seen[2], view.step]
    return view.c + seen[1] / 100


def swallows(view):
    while True:
        with contextlib.suppress(Exception):
            sum(range(10**7))


def matrix(view):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.matrix(view.c)


def leaves(view):
    raise SystemExit(0)


SHAPE = r"shape \[field\], here \(27,\), as view\.c \+ view\.u has it"
PLAIN = "the view is one agent's at one step: arrays are \\[field\\], all else is one number"


SHAPE = r"shape \[field\], here \(27,\), as view\.c \+ view\.u has it"
PLAIN = "the view is one agent's at one step: arrays are \\[field\\], all else is one number"
BAD = {
    "gold": (reads_gold, r"reads view\.gold at line \d+ \(`truth = view\.gold`\): the truth is for oracles"),
    "weights": (lambda view: view.weights, r"reads view\.weights .*use view\.c"),
    "what is not to be seen": (lambda view: view.schedule * 1.0, r"has no 'schedule'; it has c, s, u, d"),
    "the array below": (lambda view: view.c.base.setflags(write=True), r"AttributeError"),
    "a number for all": (lambda view: view.c.sum(), r"a float64 \(was it summed over the field.*" + SHAPE),
    "a table": (lambda view: np.array([view.c, view.d]), r"shape \(2, 27\); return an array of " + SHAPE),
    "a list": (lambda view: view.c.tolist(), "returns a list; return an array"),
    "nothing": (lambda view: None, "returns nothing: end it with `return`"),
    "complex numbers": (lambda view: view.c * 1j, r"values of type complex128; scores must be real numbers"),
    "masked values": (lambda view: np.ma.masked_less(view.c, 0.5), r"returns masked values.*np\.ma\.filled"),
    "nan": (lambda view: view.c * np.nan, r"gives nan for 27 of 27 scores, first for field 0 at step 0"),
    "an exception": (lambda view: view.c + 1 // 0, r"fails at line \d+ \(`.*`\): ZeroDivisionError"),
    "one truth value for all": (lambda view: view.c if view.s > 0.5 else view.d, r"np\.where\(condition, "),
    "an array taken for a table": (lambda view: view.c / view.c.max(axis=1), "AxisError.*" + PLAIN),
    "a write": (writes, r"writes into the view at line \d+ \(`view\.c\[0\] = 9`\).*view\.c\.copy\(\)"),
    "an attribute set": (lambda view: setattr(view, "step", 3), r"writes into the view"),
    "dice": (rolls_dice, r"a second time \(step 0\).*for chance use view\.draw,"),
    "memory": (keeps_count, r"scores the same view differently a second time"),
    "what came before": (smooths, r"another score when others came before it .*from the view alone"),
    "a loop that lets no fault through": (swallows, r"more than 0\.3 s for one decision"),
    "an exit": (leaves, r"ends Python at line \d+ \(`raise SystemExit\(0\)`\)"),
    "two arguments": (lambda view, t: view.c, r"one argument, the view; this one takes \(view, t\)"),
    "no function": (7, r"7 is no function; write it as `def my_rule\(view\)"),
    "a policy": (POLICIES["cd"], r"this is a policy already, named 'cd'"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_policy_gets_one_message_that_says_what_to_change(kind, monkeypatch):
    monkeypatch.setattr(guard, "LONGEST_CALL", 0.3)
    function, message = BAD[kind]
    with pytest.raises(lab.PolicyError, match=message) as caught:
        lab.policy("mine")(function)
    text = str(caught.value)
    assert "'mine'" in text
    assert "\n" not in text
    assert caught.value._render_traceback_() == [f"PolicyError: {text}"]
    assert lab.diagnose(function, "mine").markdown == f"~~~text\n{text}\n~~~"


@pytest.mark.parametrize(
    ("name", "said"),
    [("cd", "is taken"), ("Oracle", "is taken")]
    + [(name, "is not accepted: begin") for name in ("", "<b>x</b>", "$x$", "x" * 31, "a|b")],
)
def test_a_name_that_is_taken_or_would_be_markup_is_refused(name, said):
    with pytest.raises(lab.PolicyError, match=re.escape(f"policy name {name!r} {said}")):
        lab.policy(name)


@pytest.mark.parametrize(
    ("late", "said"),
    [
        (
            lambda view: np.where(view.step == 13, np.nan, view.c),
            r"'by chance' gives nan for 27 of 27 .* step 13",
        ),
        (
            lambda view: np.random.default_rng().random(view.c.shape) if view.step == 13 else view.c,
            r"differently a second time \(step 13",
        ),
    ],
)
def test_a_fault_that_only_the_run_meets_is_told_too(late, said):
    with pytest.raises(lab.PolicyError, match=said):
        lab.compete(lab.policy("by chance")(late), seeds="0:60", worlds="tooldag", rivals=())


def looks_for(view):
    place = 0
    while place < len(view.c) - 1 and view.c[place] < 1:
        place += 1
    score = np.zeros(len(view.c))
    score[place] = 2.0
    return score


def ends_late(view):
    while view.step > 3:
        pass
    return view.c


def test_a_loop_is_run_where_it_can_be_stopped(capsys, monkeypatch):
    made = lab.policy("mine")(looks_for)
    assert "it has a `while` loop" in capsys.readouterr().out
    assert measure(Cell("tooldag", made), np.arange(2))["probes"].sum() > 0
    for function in (alone, chosen, summed, lambda view: np.array([c for c in view.c])):
        assert not guard.has_while(function)
    monkeypatch.setattr(guard, "LONGEST_CALL", 0.3)
    monkeypatch.setattr(guard, "TRIAL_STEPS", (0, 1))
    guard.trial_views.cache_clear()
    late = lab.policy("late loop")(ends_late)
    guard.trial_views.cache_clear()
    with pytest.raises(lab.PolicyError, match=r"'late loop' takes more than 0\.3 s .*at line"):
        lab.compete(late, seeds="0:2", worlds="tooldag", rivals=())


def test_everything_a_view_offers_can_be_read_and_nothing_else():
    whole = guard.trial_views()[0]
    shown = guard.ReadersView(whole)
    for name in guard.READABLE:
        seen = getattr(shown, name)
        np.testing.assert_array_equal(seen, getattr(whole, name))
        assert not (isinstance(seen, np.ndarray) and seen.flags.writeable), name
    assert tuple(guard.READABLE) == View._fields
    for name in ("gold", "weights", "weight", "scheduled", "rho", "fields", "protocol", "_asdict", "count"):
        with pytest.raises((AttributeError, guard.ForbiddenError)):
            getattr(shown, name)


def weighted(view, weight):
    return weight * view.c


# --- good policies ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def setting():
    return {"seeds": "3:12", "protocols": "paper released", "rivals": "cd periodic"}


@pytest.fixture(scope="module")
def final(setting):
    mine = lab.policy("structure")(lambda view: view.c + view.d)
    calm = lab.policy("calm")(lambda view: view.s + view.u)
    return lab.compete([mine, calm], held_out="40:49", **setting)


@pytest.fixture(scope="module")
def board(final):
    return lab.leaderboard(final, 200)


@pytest.mark.parametrize("world", ["tooldag", "objectstate", "graphnav"])
@pytest.mark.parametrize("protocol", ["paper", "released:threshold=fixed"])
def test_a_readers_policy_is_the_engines_step_by_step(world, protocol):
    """The score c + d written in the lab is EnvProbe-(c+d), where thresholds are not scaled."""
    mine = lab.policy("structure")(lambda view: view.c + view.d)
    plain = custom_policy("plain", lambda view: view.c + view.d)
    seeds = np.arange(9)
    runs = [
        record(Cell(world, p, protocol=parse_protocol(protocol)), seeds)
        for p in (mine, plain, find_policy("cd"))
    ]
    for other in runs[1:]:
        for name in ("belief", "gold", "probe", "score", "staleness", "confidence", "action"):
            np.testing.assert_array_equal(getattr(runs[0], name), getattr(other, name), err_msg=name)


WEIGHT = 2.0


def summed(view):
    return view.c / np.sum(view.u + 1.0) + 2 * view.d


def chosen(view):
    return np.where((view.staleness > 3) & (view.value >= 0), view.c + view.d, 0)


def alone(view):
    score = np.zeros(len(view.c))
    for i in range(len(score)):
        score[i] = WEIGHT * view.c[i] if view.used < view.budget - 1 else view.d[i] + view.draw % 2
    return score


def by_name(view):
    return sum(getattr(view, name) for name in ("c", "s"))


OWN = {function.__name__: function for function in (summed, chosen, alone, by_name)}


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("world", ["tooldag", "objectstate", "graphnav"])
def test_compiled_and_called_policies_are_the_same_to_the_bit(world, name, monkeypatch):
    made = lab.policy("mine")(OWN[name])
    cell, seeds = Cell(world, made, protocol=parse_protocol("released")), np.arange(12)
    fast = record(cell, seeds)
    monkeypatch.setattr(running, "rule_of", own.Called)
    slow = record(cell, seeds)
    for part in ("belief", "gold", "probe", "score", "action"):
        np.testing.assert_array_equal(getattr(fast, part), getattr(slow, part), err_msg=part)
    for measured in fast.measures:
        np.testing.assert_array_equal(fast.measures[measured], slow.measures[measured])


def test_what_is_not_compiled_is_told_in_a_line(capsys):
    for name, said in (("chosen", ""), ("alone", ""), ("summed", "last digit"), ("by_name", "at line")):
        lab.policy("mine")(OWN[name])
        told = capsys.readouterr().out
        assert said in told
        assert told.count("\n") == bool(said)
        assert (own.made(OWN[name]).rule is None) == bool(said)
        assert lab.diagnose(OWN[name]).markdown.count("\n") == 2
    assert "(`return sum(getattr(view, name)" in told
    assert not any(word in told for word in ("numba", "nopython", "TypingError", "Literal"))


def test_a_function_is_compiled_once_until_what_it_uses_changes(monkeypatch):
    first = own.made(alone).rule
    assert own.made(alone).rule is first
    again = functools.partial(types.FunctionType, alone.__code__)
    assert own.made(again(dict(globals()))).rule is first, "as a process that unpickles it anew"
    cell, seeds = Cell("tooldag", custom_policy("mine", alone)), np.arange(6)
    before = record(cell, seeds).score
    monkeypatch.setitem(globals(), "WEIGHT", 5.0)
    assert own.made(alone).rule is not first
    assert np.nanmax(record(cell, seeds).score) == 2.5 * np.nanmax(before)
    table = np.array([1.0, 2.0])
    inside = own.made(lambda view: view.c * table[0]).rule
    assert inside is not None


def test_the_engine_is_not_compiled_again_for_a_readers_policy():
    measure(Cell("tooldag", lab.policy("one")(lambda view: view.c + view.s)), np.arange(2))
    count = len(loop.run.signatures)
    measure(Cell("tooldag", lab.policy("two")(lambda view: view.c + 2 * view.s)), np.arange(2))
    measure(Cell("tooldag", custom_policy("three", by_name)), np.arange(2))
    assert len(loop.run.signatures) == count


def scalar_division(view):
    score = view.c.copy()
    score[0] = 2.0 if view.s[0] / view.u[0] > 0.5 else 0.0  # NumPy goes on, compiled code would not
    return score


def out_of_bounds(view):
    score = np.zeros(len(view.c))
    score[3 * view.step] = 1.0
    return score


def test_what_fails_only_when_compiled_is_called_and_faults_are_told(capsys):
    made = lab.policy("mine")(scalar_division)
    assert "plain Python" in capsys.readouterr().out
    assert measure(Cell("tooldag", made), np.arange(5))["probes"].sum() > 0
    with pytest.raises(IndexError, match="index 27 is out of bounds"):
        measure(Cell("tooldag", custom_policy("mine", out_of_bounds)), np.arange(5))
    made = custom_policy("mine", lambda view: np.where(view.step == 13, np.nan, view.c))
    with pytest.raises(InputError, match="27 finite scores"):
        measure(Cell("tooldag", made), np.arange(5))


def test_leaderboard_numbers_are_those_of_the_episodes(final, board):
    assert len(board) == 2 * 2 * 6
    for row in board.itertuples():
        part = final.frame[(final.frame["protocol"] == row.protocol) & (final.frame["set"] == row.set)]
        mine = part[part["policy"] == row.policy]
        assert row.n == len(mine) == 27
        fired = mine[mine["probes"] > 0]
        means = {name: mine[name].mean() for name in ("accuracy", "success", "probes")}
        means["useful_rate"] = (fired["useful"] / fired["probes"]).mean()
        for name, mean in means.items():
            assert getattr(row, name) == pytest.approx(mean, rel=1e-12, nan_ok=True)
        for column, other in contests.REFERENCES.items():
            pairs = mine.merge(part[part["policy"] == other], on=["world", "seed"])
            pairs = pairs.sort_values(["world", "seed"])
            points = 100 * (pairs["accuracy_x"] - pairs["accuracy_y"]).to_numpy()
            found = paired_bootstrap(points, pairs["world"].to_numpy(dtype=str), 200)
            ends = [getattr(row, column + end) for end in ("", "_low", "_high")]
            assert ends == pytest.approx([found.mean, found.low, found.high], abs=1e-9)


# --- design and held-out ----------------------------------------------------------------------


def test_held_out_seeds_are_new(final):
    sets = final.frame.groupby("set")["seed"].unique()
    assert set(sets["design"]) == set(range(3, 12))
    assert set(sets["held-out"]) == set(range(40, 49))
    with pytest.raises(InputError, match=r"2 seeds are both design and held-out, the first 8"):
        lab.compete(seeds="0:10", held_out="8:12")
    for name in ("your-policy", "exercises"):
        parameters = notebooks.find_sections()[name].parameters
        design, held = (parse_seeds(parameters[given].default) for given in ("seeds", "held_out"))
        assert not np.intersect1d(design, held).size


def test_looks_at_the_held_out_seeds_are_counted(monkeypatch):
    monkeypatch.setattr(contests, "_looks", contests.Counter())
    mine = lab.policy("mine")(lambda view: view.c)
    play = functools.partial(lab.compete, worlds="tooldag", rivals=())
    assert play(mine, seeds="0:2").looks == 0
    assert play(seeds="0:2", held_out="7:9").looks == 0  # nothing of one's own was looked at
    assert [play(mine, seeds="0:2", held_out="7:9").looks for _ in range(2)] == [1, 2]
    assert play(mine, seeds="0:2", held_out="20:22").looks == 1
    board = lab.leaderboard(play(mine, seeds="0:2"), 100)
    said = [lab.show_differences(board, looks).caption for looks in range(3)]
    assert ["held-out" in text for text in said] == [False, True, True]
    assert "run 2 times" in said[2]


@pytest.mark.parametrize(
    ("given", "named", "said"),
    [
        ([reads_gold], {}, r'reads_gold is no policy yet: write @policy\("my rule"\)'),
        ([POLICIES["cd"]], {}, r"'cd' was not made in the lab; .*`rivals`"),
        ([], {"protocol": "paper"}, "takes no 'protocol'; did you mean 'protocols'; it takes own,"),
    ],
)
def test_what_is_no_entry_is_refused(given, named, said):
    with pytest.raises(InputError, match=said):
        lab.compete(given, **named)
    with pytest.raises(InputError, match="two policies are named 'mine'"):
        lab.compete([lab.policy("mine")(lambda view: view.c)] * 2)


# --- what is shown ----------------------------------------------------------------------------


def test_tables_and_figures_tell_the_board(final, board):
    levels, differences = lab.show_leaderboard(board), lab.show_differences(board, final.looks)
    own = board[(board["policy"] == "calm") & (board["protocol"] == "released")].set_index("set")
    (row,) = (row for row in levels.rows if "**calm**" in row and "as released" in row)
    assert [row[3][:5], row[4][:5]] == [f"{own.loc[name, 'accuracy']:.3f}" for name in ("design", "held-out")]
    assert len(levels.rows) == len(differences.rows) == 12
    one = board[(board["set"] == "design") & (board["protocol"] == "paper")]
    assert "held-out" not in lab.show_leaderboard(one).head
    for made in (drawing.plot_plane(board, "a"), drawing.plot_transfer(board, "b")):
        labels = {text.get_text() for legend in made.figure.legends for text in legend.get_texts()}
        assert {"structure", "calm", "Periodic", "EnvProbe-(c+d)"} <= labels


def test_a_policy_that_never_fires_is_told_so():
    shy = lab.policy("shy")(lambda view: (view.d > 0) * 1.0)
    board = lab.leaderboard(lab.compete(shy, seeds="0:4", worlds="tooldag graphnav", rivals="oracle cd"), 100)
    said = "shy fired 0 of 7 probes: its highest score was 1, the gate is 1.5."
    shown = lab.show_leaderboard(board)
    assert shown.caption.endswith(said)
    assert board["accuracy"].is_monotonic_decreasing
    assert {row[1]: row[0] for row in shown.rows}["Oracle"] == "–", "an oracle has no rank"


# --- the exercises ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    """What `envprobe answers --out` writes, on few seeds."""
    out = tmp_path_factory.mktemp("answers") / "key"
    given = [text for name, value in SMALL.items() for text in ("-p", f"{name}={value}")]
    with pytest.raises(SystemExit) as ended:
        main(["answers", "--out", str(out), *given])
    assert ended.value.code == 0
    return out


@pytest.fixture(scope="module")
def whole():
    return exercises.exercises_notebook()


def test_the_answer_key_has_every_exercise_with_its_output_in_plain_markdown(key):
    solved = json.loads((key / "solved.ipynb").read_text())
    assert solved["metadata"]["envprobe"]["parameters"]["seeds"] == SMALL["seeds"]
    text, found = (key / "answers.md").read_text(), exercises.read_exercises(solved["cells"])
    for count, exercise in enumerate(found, 1):
        assert f"## {count}. {exercise.title}\n" in text
        assert exercise.task in text
        ran = [cell for cell in exercise.solution if cell["cell_type"] == "code"]
        assert any(cell["outputs"] for cell in ran), exercise.label
    assert text.count("**Solution**") == len(found) >= 12
    assert not re.search(r"\bnan\b", text)
    prose = re.sub(r"^~~~(?:python|text)\n.*?^~~~$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"\{[a-z:-]+\}`|^:::|\]\([\w./-]+\.(?:ipynb|md)", prose, re.MULTILINE)


def test_students_get_questions_that_run_self_checks_and_no_solution(key, whole):
    copy, solved = (json.loads((key / f"{name}.ipynb").read_text()) for name in ("exercises", "solved"))
    sources = [cell_source(cell) for cell in copy["cells"]]
    text = "\n".join(sources)
    assert "{solution" not in text
    found = exercises.read_exercises(whole["cells"])
    for exercise in found:
        assert exercise.task in text
        assert not any(cell_source(cell) in text for cell in exercise.solution)
    checks = [c for c in solved["cells"] if exercises.CHECK in c["metadata"].get("tags", ())]
    assert len(checks) == len(found) == sources.count("")
    for cell in checks:
        said = "".join(cell["outputs"][0]["data"]["text/markdown"])
        assert ("☑" in said, "☐" in said) == (True, False), f"{cell_source(cell)}\n{said}"
        assert sources[sources.index(cell_source(cell)) - 1] == ""
    space = {}
    for source in [cell_source(cell) for cell in copy["cells"] if cell["cell_type"] == "code"][:2]:
        exec(source, space)  # all that the questions need
    assert space["play"]("no-probe").belief.shape[0] == 220
    link = exercises.student_download()._repr_mimebundle_()["text/html"]
    assert 'download="envprobe-exercises.ipynb"' in link


def test_a_broken_key_is_not_handed_out(whole, capsys):
    with pytest.raises(InputError, match="exercise ex-cell: its solution was not executed"):
        exercises.answer_key(whole)
    cut = [cell for cell in whole["cells"] if "{solution-end}" not in cell_source(cell)]
    with pytest.raises(InputError, match="its solution has no end"):
        exercises.read_exercises(cut)
    with pytest.raises(SystemExit) as ended:
        main(["answers", "-p", "seeds=5:5"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("envprobe: parameter seeds")


# --- self-checks ------------------------------------------------------------------------------


def test_a_self_check_says_what_is_missing_and_not_the_answer():
    space = {"lab": lab}
    wanted = '{"has two numbers": lambda x: len(x) == 2, "is positive": lambda x: min(x) > 0}'
    call = f'said = lab.self_check("mine", {wanted})'
    exec(call, space)
    assert "There is no `mine` yet" in space["said"].markdown
    for mine, marks in (([1, 2], "☑☑"), ([1, -2], "☑☐"), ([-1], "☐☐"), (5, "☐☐")):
        exec(call, space := space | {"mine": mine})
        assert "".join(re.findall("[☑☐]", space["said"].markdown)) == marks
    assert "TypeError" in space["said"].markdown
    for names, wanted in (("", {"x": len}), ("mine", {})):
        with pytest.raises(InputError, match="self_check takes names and properties"):
            lab.self_check(names, wanted)
