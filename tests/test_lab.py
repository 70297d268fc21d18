"""The classroom: bad policies are told why, good ones are those of the engine, and the solutions run."""

import contextlib
import functools
import json
import re
import types
import warnings

import numpy as np
import pytest
from built_book import SMALL
from processes import call

from envprobe_core import lab
from envprobe_core.cells import Cell, parse_seeds
from envprobe_core.cli import reproduce
from envprobe_core.engine import loop, running
from envprobe_core.engine.running import measure, record
from envprobe_core.errors import InputError
from envprobe_core.lab import contest as contests
from envprobe_core.lab import drawing, exercises, guard
from envprobe_core.policies import POLICIES, custom_policy, find_policy, own
from envprobe_core.policies.own import View
from envprobe_core.protocols import parse_protocol
from envprobe_core.reproduce.sections import cell_source, cell_tags, find_sections, plan
from envprobe_core.statistics import paired_bootstrap

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
BAD = {
    "gold": (reads_gold, r"reads view\.gold at line \d+ \(`truth = view\.gold`\): the truth is for oracles"),
    "weights": (lambda view: view.weights, r"reads view\.weights .*a view has c, s, u, d"),
    "the array below": (lambda view: view.c.base.setflags(write=True), r"AttributeError"),
    "a number for all": (lambda view: view.c.sum(), r"a float64 \(was it summed over the field.*" + SHAPE),
    "a table": (lambda view: np.array([view.c, view.d]), r"shape \(2, 27\); return an array of " + SHAPE),
    "a matrix": (matrix, r"shape \(1, 27\)"),
    "a list": (lambda view: view.c.tolist(), "returns a list; return an array"),
    "a list of unequal rows": (lambda view: [[1.0], [1.0, 2.0]], "returns a list; return an array"),
    "nothing": (lambda view: None, "returns a NoneType; return an array"),
    "complex numbers": (lambda view: view.c * 1j, r"values of type complex128; scores must be real numbers"),
    "masked values": (lambda view: np.ma.masked_less(view.c, 0.5), r"gives nan for \d+ of 27 scores"),
    "nan": (lambda view: view.c * np.nan, r"gives nan for 27 of 27 scores, first for field 0 at step 0"),
    "an exception": (lambda view: view.c + 1 // 0, r"fails at line \d+ \(`.*`\): ZeroDivisionError"),
    "one truth value for all": (lambda view: view.c if view.s > 0.5 else view.d, r"np\.where\(condition, "),
    "an array taken for a table": (lambda view: view.c / view.c.max(axis=1), r"AxisError.*arrays are \[fie"),
    "a write": (writes, r"fails at line \d+ \(`view\.c\[0\] = 9`\).*view\.c\.copy\(\)"),
    "an attribute set": (lambda view: setattr(view, "step", 3), r"a view cannot be changed"),
    "dice": (rolls_dice, r"a second time \(step 0\).*for chance use view\.draw,"),
    "memory": (keeps_count, r"scores the same view differently a second time"),
    "what came before": (smooths, r"another score when others came before it .*from the view alone"),
    "a loop that lets no fault through": (swallows, r"more than 0\.3 s for one decision"),
    "an exit": (leaves, r"fails at line \d+ \(`raise SystemExit\(0\)`\): SystemExit"),
    "two arguments": (lambda view, t: view.c, r"missing 1 required positional argument: 't'"),
    "no function": (7, r"'int' object is not callable"),
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
    + [(name, "is not accepted") for name in ("", "<b>x</b>", "$x$", "x" * 31, "a|b", reads_gold)],
)
def test_a_name_that_is_taken_or_would_be_markup_is_refused(name, said):
    with pytest.raises(lab.PolicyError, match=re.escape(f"policy name {name!r} {said}")):
        lab.policy(name)


def nan_late(view):
    return np.where(view.step == 13, np.nan, view.c)


def dice_late(view):
    return np.random.default_rng().random(view.c.shape) if view.step == 13 else view.c


def endless_late(view):
    while view.step == 13:
        pass
    return view.c


@pytest.mark.parametrize(
    ("late", "said"),
    [
        (nan_late, r"'mine' gives nan for 27 of 27 .* step 13"),
        (dice_late, r"differently a second time \(step 13"),
        (endless_late, r"'mine' takes more than 0\.3 s .*at line"),
    ],
)
def test_a_fault_that_only_the_run_meets_is_told_too(late, said, monkeypatch):
    monkeypatch.setattr(guard, "LONGEST_CALL", 0.3)
    made = lab.policy("mine")(late)
    with pytest.raises(lab.PolicyError, match=said):
        lab.compete(made, seeds="0:60", worlds="tooldag", rivals=())


def looks_for(view):
    place = 0
    while place < len(view.c) - 1 and view.c[place] < 1:
        place += 1
    score = np.zeros(len(view.c))
    score[place] = 2.0
    return score


def test_nothing_but_what_a_view_names_can_be_read():
    view = guard.trial_views()[0]
    assert not {"gold", "weights", "scheduled", "rho"} & set(dir(view))
    assert all(part.base is None and not part.flags.writeable for part in view[:7])
    told = next(c for c in find_sections()["your-policy"].cells if "readable" in cell_source(c))
    assert re.findall(r'^    "(\w+)":', cell_source(told), re.MULTILINE) == list(View._fields)


# --- good policies ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def final():
    mine = lab.policy("structure")(lambda view: view.c + view.d)
    calm = lab.policy("calm")(lambda view: view.s + view.u)
    given = {"seeds": "3:12", "held_out": "40:49", "protocols": "paper released", "rivals": "cd periodic"}
    return lab.compete([mine, calm], **given)


@pytest.fixture(scope="module")
def board(final):
    return lab.leaderboard(final, 200)


@pytest.mark.parametrize("world", ["tooldag", "objectstate", "graphnav"])
@pytest.mark.parametrize("protocol", ["paper", "released:threshold=fixed"])
def test_a_readers_policy_is_the_engines_step_by_step(world, protocol):
    """The score c + d written in the lab is EnvProbe-(c+d), where thresholds are not scaled."""
    mine = lab.policy("structure")(lambda view: view.c + view.d)
    first, second = (
        record(Cell(world, p, protocol=parse_protocol(protocol)), np.arange(9))
        for p in (mine, find_policy("cd"))
    )
    for name in ("belief", "gold", "probe", "score", "staleness", "confidence", "action"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)


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


def scalar_division(view):
    score = view.c.copy()
    score[0] = 2.0 if view.s[0] / view.u[0] > 0.5 else 0.0  # NumPy goes on, compiled code would not
    return score


OWN = {function.__name__: function for function in (summed, chosen, alone, by_name)}


@pytest.mark.parametrize("name", OWN)
def test_compiled_and_called_policies_are_the_same_to_the_bit(name, monkeypatch):
    made = lab.policy("mine")(OWN[name])
    for world in ("tooldag", "objectstate", "graphnav"):
        cell, seeds = Cell(world, made, protocol=parse_protocol("released")), np.arange(12)
        fast = record(cell, seeds)
        with monkeypatch.context() as patched:
            patched.setattr(running, "rule_of", own.Called)
            slow = record(cell, seeds)
        for part in ("belief", "gold", "probe", "score", "action"):
            np.testing.assert_array_equal(getattr(fast, part), getattr(slow, part), err_msg=part)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (chosen, ""),
        (alone, ""),
        (summed, "last digit"),
        (scalar_division, "last digit"),
        (by_name, r"at line \d+ \(`return sum\(getattr\(view, name\)"),
        (looks_for, "it has a `while` loop"),
    ],
)
def test_what_is_not_compiled_is_told_in_a_line_and_runs(function, said, capsys):
    made = lab.policy("mine")(function)
    told = capsys.readouterr().out
    assert re.search(said, told)
    assert told.count("\n") == bool(said)
    assert (own.made(made.score).rule is None) == bool(said)
    assert not any(word in told for word in ("numba", "nopython", "TypingError", "Literal"))
    assert measure(Cell("tooldag", made), np.arange(5))["probes"].sum() > 0


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
    count = len(loop.run.signatures)
    measure(Cell("tooldag", custom_policy("other", by_name)), np.arange(2))
    assert len(loop.run.signatures) == count, "the engine is not compiled again for a reader's policy"


def out_of_bounds(view):
    score = np.zeros(len(view.c))
    score[3 * view.step] = 1.0
    return score


def test_faults_of_compiled_policies_are_told():
    with pytest.raises(IndexError, match="index 27 is out of bounds"):
        measure(Cell("tooldag", custom_policy("mine", out_of_bounds)), np.arange(5))
    with pytest.raises(InputError, match="27 finite scores"):
        measure(Cell("tooldag", custom_policy("mine", nan_late)), np.arange(5))


def test_leaderboard_numbers_are_those_of_the_episodes(final, board):
    assert len(board) == 2 * 2 * 6
    for row in board.itertuples():
        part = final.frame[(final.frame["protocol"] == row.protocol) & (final.frame["set"] == row.set)]
        part = part.sort_values(["world", "seed"])
        mine = part[part["policy"] == row.policy]
        assert row.n == len(mine) == 27
        means = mine[["accuracy", "success", "probes"]].mean()
        assert [row.accuracy, row.success, row.probes] == pytest.approx(list(means))
        useful = (mine["useful"] / mine["probes"].where(mine["probes"] > 0)).mean()
        assert row.useful_rate == pytest.approx(useful, nan_ok=True)
        for column, other in contests.REFERENCES.items():
            pairs = mine.merge(part[part["policy"] == other], on=["world", "seed"])
            points = 100 * (pairs["accuracy_x"] - pairs["accuracy_y"]).to_numpy()
            found = paired_bootstrap(points, pairs["world"].to_numpy(dtype=str), 200)
            ends = [getattr(row, column + end) for end in ("", "_low", "_high")]
            assert ends == pytest.approx([found.mean, found.low, found.high], abs=1e-9)


# --- design and held-out ----------------------------------------------------------------------


def test_held_out_seeds_are_new_and_looks_at_them_are_counted(final, monkeypatch):
    sets = final.frame.groupby("set")["seed"].unique()
    assert set(sets["design"]) == set(range(3, 12))
    assert set(sets["held-out"]) == set(range(40, 49))
    with pytest.raises(InputError, match=r"2 seeds are both design and held-out, the first 8"):
        lab.compete(seeds="0:10", held_out="8:12")
    for name in ("your-policy", "exercises"):
        parameters = find_sections()[name].parameters
        design, held = (parse_seeds(parameters[given].default) for given in ("seeds", "held_out"))
        assert not np.intersect1d(design, held).size
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


@pytest.mark.parametrize(("given", "name"), [([reads_gold], "reads_gold"), ([POLICIES["cd"]], "cd")])
def test_what_is_no_entry_is_refused(given, name):
    with pytest.raises(InputError, match=rf'{name} is no policy of yours: write @policy\("my rule"\)'):
        lab.compete(given)
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
    shown = lab.show_leaderboard(board)
    assert shown.caption.endswith("shy fired 0 of 7 probes: its highest score was 1, the gate is 1.5.")
    assert board["accuracy"].is_monotonic_decreasing
    assert {row[1]: row[0] for row in shown.rows}["Oracle"] == "–", "an oracle has no rank"


# --- the exercises ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def key(tmp_path_factory, small_book):
    """What `envprobe answers --out` writes of the small book's exercises."""
    out = tmp_path_factory.mktemp("answers") / "key"
    known = find_sections()[exercises.NAME].parameters
    given = [text for name in known & SMALL.keys() for text in ("-p", f"{name}={SMALL[name]}")]
    with pytest.MonkeyPatch.context() as patched:
        planned = functools.partial(plan, executed=small_book / "book" / "executed")
        patched.setattr(reproduce, "plan", planned)
        assert call("answers", "--out", out, *given) == 0
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
    checks = [cell for cell in solved["cells"] if exercises.CHECK in cell_tags(cell)]
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


def test_answers_are_executed_and_printed(checkout, write_notebook, monkeypatch, capsys):
    fence = "````"
    path = write_notebook("exercises", "n: int = 3  # how many; accepts 1..10", "print('so many:', n)")
    notebook = json.loads(path.read_text())
    texts = (
        f"{fence}{{exercise}} Count\n:label: ex\n\n*Level: craft; about 5 minutes; teaches counting.*\n\nHow "
        f"many?\n{fence}",
        f"{fence}{{solution-start}} ex\n{fence}",
        f"{fence}{{solution-end}}\n{fence}",
    )
    first = notebook["cells"][0]
    exercise, start, end = ({**first, "id": f"c{i}", "source": text} for i, text in enumerate(texts))
    notebook["cells"][2:] = [exercise, start, notebook["cells"][2], end]
    path.write_text(json.dumps(notebook))
    monkeypatch.setattr(reproduce, "plan", functools.partial(plan, root=checkout))
    assert call("answers", "-p", "n=4") == 0
    assert "## 1. Count\n\n*craft, about 5 minutes; teaches counting*\n\nHow many?" in (
        told := capsys.readouterr().out
    )
    assert "~~~text\nso many: 4\n" in told


def test_a_malformed_exercise_is_named():
    cell = {
        "cell_type": "markdown",
        "metadata": {},
        "source": "````{exercise} Sums\n:label: ex\n\n1 + 1\n````",
    }
    with pytest.raises(InputError, match="exercise in cell 2 is not of the form"):
        exercises.read_exercises([cell | {"source": "# Exercises"}, cell])


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
