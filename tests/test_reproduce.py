"""Sections: parameters are checked first, unchanged work is skipped, failures are told plainly."""

import functools
import json
import operator
import os
from multiprocessing import active_children

import nbformat
import pytest
from processes import call

from envprobe_core.cli import reproduce
from envprobe_core.errors import InputError
from envprobe_core.reproduce import execution
from envprobe_core.reproduce import sections as notebooks
from envprobe_core.reproduce.parameters import check_words, parse_assignments, read_parameters, resolve

CELL = """\
seeds: str = "0:220"  # episodes of each cell; accepts seeds
resamples: int = 10_000  # bootstrap resamples; accepts 100..100000
threshold: float = 1.5  # gate; accepts -0.5..4
measure: str = "terminal"  # which accuracy; accepts one of mean terminal
pooled: bool = False  # one row for all worlds; accepts true or false
"""


# --- parameters -------------------------------------------------------------------------------


def test_a_parameters_cell_and_assignments_are_read():
    declared = read_parameters(CELL, "demo")
    assert (declared["resamples"].default, declared["resamples"].accepts) == (10_000, "100..100000")
    assert declared["threshold"].description == "gate"
    values = resolve(declared, {"threshold": "-0.5", "pooled": "TRUE", "resamples": "100"})
    assert list(values.values()) == ["0:220", 100, -0.5, "terminal", True]
    text = "protocols=paper:clock=stands"
    assert parse_assignments([text]) == {"protocols": "paper:clock=stands"}
    for given, message in (
        (["seeds"], "NAME=VALUE"),
        (["=3"], "NAME=VALUE"),
        (["a=1", "a=2"], "a: given twice"),
    ):
        with pytest.raises(InputError, match=message):
            parse_assignments(given)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("resamples", "ten", r"resamples: 'ten' is not a whole number; accepted: 100\.\.100000"),
        ("resamples", "99", r"99 given; accepted: 100\.\.100000"),
        ("threshold", "nan", r"nan given; accepted: -0\.5\.\.4"),
        ("threshold", "", "'' is not a number"),
        ("measure", "median", "'median' given; accepted: one of mean terminal"),
        ("pooled", "1", "'1' is not true or false"),
        ("seeds", "5:5", "parameter seeds: "),
    ],
)
def test_a_bad_value_is_named_with_what_is_accepted(name, text, message):
    declared = read_parameters(CELL, "demo")
    with pytest.raises(InputError, match=message):
        resolve(declared, {name: text})


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ("worlds", "tooldag, graphnav", "tooldag tooldag"),
        ("policies", "simple periodic", "simple,clever"),
        ("protocols", "released paper:clock=stands,end=success", "paper:clock=backwards"),
        ("protocols", "released", ""),
        ("regime", "S3", "S9"),
        ("profile", "perfect", "forgetful"),
        ("seeds", "0:12", "12:0"),
    ],
)
def test_vocabularies(rule, good, bad):
    check_words(rule, good)
    with pytest.raises(ValueError, match=r"\w"):
        check_words(rule, bad)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("n = 3  # how many; accepts 1..9", r"^notebook demo: line 1 .* is not of the form"),
        ("n: int = 3", r"line 1 .* is not of the form"),
        ("n: int = 3  # how many; accepts anything", "no rule 'anything'"),
        ("n: int = 3  # how many; accepts 1..00", r"parameter n: 3 given; accepted: 1\.\.00"),
        ("n: int = 3.0  # how many; accepts 1..9", "default 3.0 is not a whole number"),
        ("n: int = m  # how many; accepts 1..9", "default m is not a whole number"),
        ("import os", "is not of the form"),
    ],
)
def test_a_malformed_declaration_is_refused(line, message):
    with pytest.raises(InputError, match=message):
        read_parameters(line, "demo")


# --- planning ---------------------------------------------------------------------------------

COUNT = "n: int = 3  # how many; accepts 1..10"


def test_unknown_names_are_refused_before_anything_runs(checkout, write_notebook):
    write_notebook("first", COUNT)
    write_notebook("second", CELL)
    for names, given, message in (
        (["third"], {}, "unknown section 'third'; accepted: first, second"),
        ([], {"m": "1"}, "unknown parameter 'm' of any of these sections"),
        (["first"], {"seeds": "0:3"}, "unknown parameter 'seeds' of first; accepted: n"),
        ([], {"n": "11"}, "11 given"),
    ):
        with pytest.raises(InputError, match=message):
            notebooks.plan(names, given, checkout)
    assert not (checkout / "book").exists()
    jobs = notebooks.plan(given={"n": "4"}, root=checkout)
    assert [job.changed for job in jobs] == [{"n": 4}, {}]
    (plain,), (given,) = (notebooks.plan(["first"], given, checkout) for given in ({}, {"n": "3"}))
    assert (given.digest, given.changed) == (plain.digest, {}), "a default that is given changes nothing"


PACKAGE = {
    "__init__.py": "from envprobe_core.verbs import run as run\nfrom envprobe_core.idle import rest\n",
    "verbs.py": "from envprobe_core.engine import RATE\ndef run(): return RATE\n",
    "idle.py": "def rest(): pass\n",
    "shown/__init__.py": '"""Pictures."""\n',
    "shown/curves.py": "def draw():\n    from envprobe_core import idle\n    return idle\n",
    "shown/curves.js": "export default 1;\n",
    "alone.py": "import json\n",
}
READS = {
    "from envprobe_core import run": {"__init__", "verbs", "engine"},
    "import envprobe_core": {"__init__", "verbs", "engine", "idle"},
    "from envprobe_core.shown import (\n    curves as c,  # (a picture)\n)": {
        "__init__", "shown/__init__", "shown/curves", "idle",
    },
    "%time import json": set(),
}  # fmt: skip


@pytest.mark.parametrize("code", READS)
def test_a_section_depends_on_the_files_that_its_imports_reach(checkout, write_notebook, code):
    for name, text in PACKAGE.items():
        path = checkout / "envprobe_core" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    write_notebook("first", COUNT, code)
    write_notebook("second", COUNT, "import envprobe_core.alone")
    for path in sorted((checkout / "envprobe_core").rglob("*.*")):
        before = [job.digest for job in notebooks.plan(root=checkout)]
        path.write_text(f"{path.read_text()}\n")
        first, second = (
            old != job.digest for old, job in zip(before, notebooks.plan(root=checkout), strict=True)
        )
        name = path.relative_to(checkout / "envprobe_core").with_suffix("").as_posix()
        assert first == (name in READS[code]), path
        assert second == (name in ("__init__", "alone"))


def test_the_digest_covers_cells_data_and_lock_but_no_outputs(checkout, write_notebook):
    path = write_notebook("first", COUNT, "print(n)")
    write_notebook("second", COUNT, 'print(n, DATA / "deep")')

    def digest():
        first, second = notebooks.plan(root=checkout)
        return first.digest, second.digest

    def edit(change):
        notebook = nbformat.read(path, as_version=4)
        change(notebook.cells)
        nbformat.write(notebook, path)
        return digest()

    before = digest()

    def run_by_hand(cells):
        cells[2].execution_count = 7
        cells[2].outputs = [nbformat.v4.new_output("stream", text="3\n")]
        cells[2].id = "another"

    def tag(cells):
        cells[2].metadata["tags"] = ["hide-input"]

    def describe(cells):
        cells[2].metadata["mystnb"] = {"image": {"alt": "a line"}}

    def rename(cells):
        cells[0].source = "# Another title"

    assert edit(run_by_hand) == before
    seen = [before, *(edit(change) for change in (tag, describe, rename))]
    assert len({first for first, _ in seen}) == len(seen)
    assert len({second for _, second in seen}) == 1, "a sentence concerns its own section alone"
    for name, changes in (
        ("requirements.txt", (True, True)),
        ("data/deep/more.json", (False, True)),
        ("data/numbers.csv", (False, False)),
    ):
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_text("# changed\n")
        seen.append(digest())
        assert tuple(map(operator.ne, *seen[-2:])) == changes, name


# --- execution --------------------------------------------------------------------------------


def execute(root, given=None, workers=2):
    stale = [job for job in notebooks.plan(given=given, root=root) if not job.fresh]
    return {outcome.name: outcome for outcome in execution.run(stale, workers)}


FIGURE = """\
%config InlineBackend.figure_formats = ["svg", "png"]
import matplotlib.pyplot as plt
plt.plot([1, n])
plt.gcf();"""
NOISY = """\
import sys, os
for i in range(30):
    print(i, flush=True)
    print(i, file=sys.stderr, flush=True)
print(os.path.abspath("x"), os.environ["PYTHONHASHSEED"], hash("a"), {"a", "b", "c"})
object()"""
WIDGET = """\
import ipywidgets
from myst_nb import glue
slider = ipywidgets.IntSlider(description='n')
glue("slider", slider, display=False)
slider"""


def test_two_runs_give_the_same_bytes_and_leave_nothing_behind(checkout, write_notebook):
    write_notebook("first", COUNT, NOISY, WIDGET, FIGURE)
    where = "import os\n(os.getcwd(), os.environ['TZ'], 'seen' in globals())\nseen = 1"
    pool = (
        "from concurrent.futures import ProcessPoolExecutor as Pool\n"
        "from multiprocessing import get_context\n"
        "with Pool(2, mp_context=get_context('spawn')) as pool:\n    print(list(pool.map(abs, [-1, 2])))"
    )
    write_notebook("pool", COUNT, where, pool)
    folder = checkout / "book" / "executed"
    before, found = (dict(os.environ), os.getcwd()), []
    for workers in (2, 1):
        assert not any(outcome.error for outcome in execute(checkout, {"n": "4"}, workers).values())
        found.append({path.name: path.read_bytes() for path in folder.glob("*.ipynb")})
        for path in folder.iterdir():
            path.unlink()
    assert found[0] == found[1]
    assert b"[1, 2]" in found[0]["pool.ipynb"]
    assert not active_children()  # kernels are gone
    assert (dict(os.environ), os.getcwd()) == before
    text = found[0]["first.ipynb"].decode()
    assert str(checkout) not in text
    assert "object at" not in text
    notebook = json.loads(text)
    assert "widgets" not in notebook["metadata"]
    assert [cell["id"] for cell in notebook["cells"]] == [f"cell-{i}" for i in range(6)]
    assert "n = 4" in "".join(notebook["cells"][2]["source"])
    assert len(notebook["cells"][3]["outputs"]) == 3  # stdout, stderr, the object
    kinds = [[*one["data"]] for one in notebook["cells"][4]["outputs"]]
    assert kinds == [["application/papermill.record/text/plain"], ["text/plain"]]


def test_unchanged_sections_are_skipped_and_changed_ones_run_again(checkout, write_notebook):
    write_notebook("first", COUNT, "print('first', n)")
    write_notebook("second", COUNT, "print('second', n)")
    assert sorted(execute(checkout)) == ["first", "second"]
    assert execute(checkout) == {}
    write_notebook("second", COUNT, "print('second again', n)")
    assert list(execute(checkout)) == ["second"]
    assert sorted(execute(checkout, {"n": "5"})) == ["first", "second"]
    record = notebooks.stored_record(checkout / "book" / "executed" / "first.ipynb")
    assert (record["parameters"], record["defaults"]) == ({"n": 5}, {"n": 3})
    assert len([job for job in notebooks.plan(root=checkout) if not job.fresh]) == 2, (
        "other values, other results"
    )


def test_a_failure_is_told_and_the_others_finish(checkout, write_notebook):
    write_notebook("good", COUNT, "print(n)")
    write_notebook("bad", COUNT, "a = 1\nb = 2\nc = undefined + 1\nd = 4", "print('not reached')")
    write_notebook("dead", COUNT, "import os\nos._exit(3)")
    shown = "class Shown:\n    def _repr_mimebundle_(self, **_):\n        raise ValueError('no form')"
    write_notebook("mute", COUNT, "#\n" * 9 + shown, "Shown()")
    outcomes = execute(checkout, {"n": "4"})
    assert outcomes["good"].error is None
    assert outcomes["bad"].error.splitlines() == [
        "bad: cell 3 of 4 (In [3])",
        "  > 3 | c = undefined + 1",
        "  NameError: name 'undefined' is not defined",
    ]
    told = ["mute: cell 4 of 4 (In [4])", "  ValueError: no form"]
    assert outcomes["mute"].error.splitlines() == told  # its own lines are not at fault
    assert outcomes["dead"].error.startswith("dead: cell 3 of 3")
    assert "Kernel died" in outcomes["dead"].error
    assert [path.name for path in (checkout / "book" / "executed").iterdir()] == ["good.ipynb"]
    # a failed section is not taken for done, and what was there before is kept
    assert sorted(execute(checkout, {"n": "4"})) == ["bad", "dead", "mute"]


# --- the command line -------------------------------------------------------------------------


def test_reproduce_ends_with_1_if_a_section_fails(checkout, write_notebook, capsys, monkeypatch):
    monkeypatch.setattr(reproduce, "plan", functools.partial(notebooks.plan, root=checkout))
    write_notebook("bad", COUNT, "1 / 0")
    write_notebook("good", COUNT, "print(n)")
    assert call("reproduce", "--jobs", "1") == 1
    printed = capsys.readouterr()
    assert all(text in printed.out for text in ("FAILED  bad", "ran     good"))
    assert "1 executed, 0 unchanged, 1 failed" in printed.out
    assert "bad: cell 3 of 3" in printed.err
    assert call("reproduce", "good") == 0
    assert "0 executed, 1 unchanged, 0 failed" in capsys.readouterr().out
    assert call("--version") == 0
    assert capsys.readouterr().out.startswith("envprobe ")
