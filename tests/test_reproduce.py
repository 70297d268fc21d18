"""Sections: parameters are checked first, unchanged work is skipped, failures are told plainly."""

import json
import os
import re
import shutil
from pathlib import Path

import nbformat
import papermill
import pytest

from envprobe_book.reproduce import build, execution, frozen, sections
from envprobe_book.reproduce.parameters import parse_assignments, read_parameters, resolve
from envprobe_book.reproduce.sections import plan
from envprobe_core.errors import COMPILING, InputError
from envprobe_core.sources import ROOT
from processes import MARK, call, processes_of

CELL = """\
seeds: str = "0:220"  # episodes of each cell; accepts seeds
resamples: int = 10_000  # bootstrap resamples; accepts 100..100000
threshold: float = 1.5  # gate; accepts -0.5..4
measure: str = "terminal"  # which accuracy; accepts one of mean terminal

pooled: bool = False  # one row for all worlds; accepts true or false
worlds: str = "tooldag"  # where; accepts worlds
policies: str = "simple"  # who; accepts policies
protocols: str = "paper"  # how; accepts protocols
regime: str = "S2"  # how hard; accepts regime
profile: str = "typical"  # which agent; accepts profile
answered: str = "paper released"  # some; accepts protocols, one with answers
solved: str = "observed"  # some; accepts protocols, one with an optimum
held_out: str = "9:12"  # other episodes; accepts seeds outside 0:9
"""
COUNT = "n: int = 3  # how many; accepts 1..10"


def values(*assignments):
    return resolve(read_parameters(CELL, "demo"), parse_assignments(assignments))


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ("resamples=1_00", "resamples", 100),
        ("threshold = -0.5", "threshold", -0.5),
        ("pooled=TRUE", "pooled", True),
        ("worlds=tooldag, graphs", "worlds", "tools, graphs"),
        ("protocols=paper:clock=stands,end=success", "protocols", "as written:clock=stands,end=success"),
    ],
)
def test_defaults_and_what_a_reader_gives_are_typed(given, name, value):
    found = values(given)
    assert found == values() | {name: value}
    assert [type(found[name]) for name in ("seeds", "resamples", "threshold", "pooled")] == [
        str, int, float, bool,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("resamples=ten", r"^parameter resamples of demo: 'ten' .*: a whole number, 100\.\.100000$"),
        ("resamples=99", "99 given"),
        ("resamples=100.5", "a whole number"),
        ("threshold=nan", r"nan given; accepted: a number, -0\.5\.\.4"),
        ("threshold=", "'' given"),
        ("measure=median", "accepted: text, one of mean terminal$"),
        ("pooled=1", "'1' given; accepted: true or false$"),
        ("seeds=12:0", "parameter seeds of demo: "),
        ("held_out=12,8:10", "parameter held_out of demo: '12,8:10' has seed 8; .*: seeds outside 0:9$"),
        ("worlds=tooldag tooldag", "names one twice"),
        ("protocols=", "'' given; accepted: protocols$"),
        ("answered=released released:end=horizon", "accepted: protocols, one with answers$"),
        ("solved=paper:clock=stands", "'paper:.* accepted: protocols, one with an optimum$"),
        ("protocols=paper:clock=backwards", "backwards"),
        ("policies=simple,clever", "unknown policy 'clever'"),
        ("regime=S9", "unknown regime 'S9'"),
        ("profile=forgetful", "unknown profile 'forgetful'"),
        ("seeds", "NAME=VALUE"),
        ("=3", "NAME=VALUE"),
    ],
)
def test_a_bad_value_is_named_with_what_is_accepted(given, message):
    with pytest.raises(InputError, match=message):
        values(given)
    with pytest.raises(InputError, match="-p seeds: given twice"):
        values("seeds=0:3", "seeds=0:4")


@pytest.mark.parametrize(
    "line",
    [
        "n = 3  # how many; accepts 1..9",
        "n: int = 3",
        "n: int = 3  # how many; accepts anything",
        "n: int = 3  # how many; accepts 1..00",
        "n: int = 3.0  # how many; accepts 1..9",
        "n: str = m  # how many; accepts seeds",
        'n: str = "3"  # how many; accepts 1..9',
        "import os",
    ],
)
def test_a_malformed_declaration_is_refused(line):
    with pytest.raises(InputError, match=r"^notebook demo: line 2 of its parameters"):
        read_parameters(f"{COUNT}\n{line}", "demo")


# --- what has to run --------------------------------------------------------------------------


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
            plan(names, given, checkout)
    assert not (checkout / "book").exists()
    jobs = plan(given={"n": "4"}, root=checkout)
    assert [job.changed for job in jobs] == [{"n": 4}, {}]
    (plain,), (given,) = (plan(["first"], given, checkout) for given in ({}, {"n": "3"}))
    assert (given.digest, given.changed) == (plain.digest, {}), "a default that is given changes nothing"


FILES = {
    "../notebooks/matplotlibrc": "",
    "../requirements.txt": "",
    "../data/deep/more.json": "{}",
    "worlds/shapes.toml": "",
    "worlds/tooldag.py": "",
    "../book/envprobe_book/pages/figures.py": "",
}
"""What every section depends on, by its place beside the core's own files."""


def test_a_section_depends_on_core_and_book_package_whole_the_data_and_the_lock(checkout, write_notebook):
    """And on nothing that is compiled, built or somebody's own."""
    core = checkout / "envprobe_core"
    others = ["worlds/__pycache__/tooldag.pyc", "../book/intro.md", "../tests/test_a.py", "../runs/a.py"]
    for name in (*FILES, *others):
        (core / name).parent.mkdir(parents=True, exist_ok=True)
        (core / name).write_text(FILES.get(name, ""))
    write_notebook("first", COUNT, "import envprobe_core")
    write_notebook("second", COUNT, "import json")

    def changed(name):
        before = [job.digest for job in plan(root=checkout)]
        (core / name).write_text((core / name).read_text() + "\n")
        return [old != job.digest for old, job in zip(before, plan(root=checkout), strict=True)]

    for name in FILES:
        assert changed(name) == [True, True], name
    for name in others:
        assert changed(name) == [False, False], name


def test_a_section_depends_on_its_cells_and_not_on_outputs(checkout, write_notebook):
    path = write_notebook("first", COUNT, "print(n)")
    write_notebook("second", COUNT, "print(n)")

    def digests(key=None, value=None, cell=2):
        notebook = nbformat.read(path, as_version=4)
        if key:
            notebook.cells[cell][key] = value
        nbformat.write(notebook, path)
        return [job.digest for job in plan(root=checkout)]

    before = digests()
    printed = [nbformat.v4.new_output("stream", text="3\n")]
    for key, value in (("execution_count", 7), ("outputs", printed), ("id", "another")):
        assert digests(key, value) == before, key
    seen = [before[0]]
    for edit in (("metadata", {"tags": ["hide-input"]}), ("source", "print(n) "), ("source", "# Other", 0)):
        first, second = digests(*edit)
        assert first not in seen
        assert second == before[1], "a sentence concerns its own section alone"
        seen.append(first)


# --- execution --------------------------------------------------------------------------------


def execute(root, workers=1):
    return [outcome.error for outcome in execution.run(plan(given={"n": "4"}, root=root), workers)]


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
FIGURE = """\
%config InlineBackend.figure_formats = ["svg", "png"]
import matplotlib.pyplot as plt
plt.plot([1, n])
plt.gcf();"""
POOL = """\
from concurrent.futures import ProcessPoolExecutor as Pool
from multiprocessing import get_context
with Pool(2, mp_context=get_context('spawn')) as pool:
    print(list(pool.map(abs, [-1, 2])))"""


@pytest.mark.nightly
def test_two_runs_give_the_same_bytes_and_leave_nothing_behind(checkout, write_notebook, monkeypatch):
    monkeypatch.setenv(MARK, str(checkout))
    write_notebook("first", COUNT, NOISY, WIDGET, FIGURE)
    where = "import os\n(os.getcwd(), os.environ['TZ'], 'seen' in globals())\nseen = 1"
    write_notebook("pool", COUNT, where, POOL)
    before, found = (dict(os.environ), os.getcwd()), []
    for workers in (2, 1):
        assert execute(checkout, workers) == [None, None]
        found.append({path: path.read_bytes() for path in (checkout / "book" / "executed").iterdir()})
        for path in found[0]:
            path.unlink()
    assert found[0] == found[1]
    assert not processes_of(str(checkout))  # kernels are gone
    assert (dict(os.environ), os.getcwd()) == before
    first, pool = (found[0][path].decode() for path in sorted(found[0]))
    assert "[1, 2]" in pool
    assert str(checkout) not in first
    assert "object at" not in first
    notebook = json.loads(first)
    assert "widgets" not in notebook["metadata"]
    assert [cell["id"] for cell in notebook["cells"]] == [f"cell-{i}" for i in range(6)]
    assert "n = 4" in "".join(notebook["cells"][2]["source"])
    assert len(notebook["cells"][3]["outputs"]) == 3  # stdout, stderr, the object
    kinds = [[*one["data"]] for one in notebook["cells"][4]["outputs"]]
    assert kinds == [["application/papermill.record/text/plain"], ["text/plain"]]


@pytest.mark.nightly
def test_a_changed_sentence_is_put_around_outputs_that_stand(checkout, write_notebook, monkeypatch):
    path = write_notebook("first", COUNT, NOISY, WIDGET)
    output = checkout / "book" / "executed" / path.name
    assert execute(checkout) == [None]
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].source = "# Other"
    notebook.cells.insert(
        2, nbformat.v4.new_markdown_cell("A sentence.\n\nAnd another.", metadata={"tags": ["x"]})
    )
    nbformat.write(notebook, path)
    with monkeypatch.context() as nothing_runs:
        nothing_runs.setattr(execution, "run_one", None)
        assert execute(checkout) == [None]
    told = output.read_bytes()
    output.unlink()
    assert execute(checkout) == [None]
    assert b"And another." in told
    assert told == output.read_bytes()


SHOWN = "class Shown:\n    def _repr_mimebundle_(self, **_):\n        raise ValueError('no form')"
FAULTS = {
    "bad": (
        ["a = 1\nb = 2\nc = undefined + 1\nd = 4", "print('not reached')"],
        "cell 3 of 4\n  > 3 | c = undefined + 1\n  NameError: name 'undefined' is not defined",
    ),
    "dead": (["import os\nos._exit(3)"], "cell 3 of 3\n  DeadKernelError: Kernel died"),
    "left": (
        ["raise SystemExit", "print()"],
        "cell 3 of 4\n  SystemExit: the cells below this one did not run",
    ),
    "long": (["raise ValueError('so\\n' * 9000)"], f"  ValueError: {' '.join(['so'] * 60)}"),
    "magic": (["%nosuch"], "cell 3 of 3\n  CellExecutionError: UsageError: Line magic function `%nosuch` n"),
    "mute": (["#\n" * 9 + SHOWN, "Shown()", "print()"], "cell 4 of 5\n  ValueError: no form"),
}
"""Further cells of a section, and what is told of it."""


def test_a_kernel_that_dies_before_its_first_cell_is_started_once_more(checkout, write_notebook, monkeypatch):
    write_notebook("first", COUNT, "print(n)")
    started, execute_notebook = [], papermill.execute_notebook

    def once_in_vain(*given, **options):
        started.append(options["extra_arguments"])
        bad = {"extra_arguments": ["--ProfileDir.location=/dev/null/nowhere"]} if len(started) == 1 else {}
        return execute_notebook(*given, **options | bad)

    monkeypatch.setattr(papermill, "execute_notebook", once_in_vain)
    assert execute(checkout) == [None]
    assert len(started) == 2


def test_what_changed_runs_a_failure_is_told_and_the_others_finish(own_checkout, write_notebook, capsys):
    write_notebook("good", COUNT, "print(n)")
    for name, (cells, _) in FAULTS.items():
        write_notebook(name, COUNT, *cells)
    assert call("reproduce", "-p", "n=4") == 1
    printed = capsys.readouterr()
    assert "sections: 1 executed, 0 unchanged, 6 failed" in printed.out
    assert sorted(re.findall(r"^  (\w+ +\w+)", printed.out, re.MULTILINE)) == [
        *(f"FAILED  {name}" for name in FAULTS),
        "ran     good",
    ]
    told = dict(text.split(": ", 1) for text in printed.err.strip().split("\n\n"))
    for name, (_, fault) in FAULTS.items():
        assert fault in told.pop(name)
    assert not told
    assert len(printed.err) < 3_000
    assert [path.name for path in (own_checkout / "book" / "executed").iterdir()] == ["good.ipynb"]
    record = sections.stored_record(own_checkout / "book" / "executed" / "good.ipynb")
    assert (record["parameters"], record["defaults"]) == ({"n": 4}, {"n": 3})
    for name in FAULTS:
        write_notebook(name, COUNT, "print('mended', n)")
    for _ in range(2):
        assert call("reproduce", "-p", "n=4") == 0
    printed = capsys.readouterr().out
    assert [f"sections: {told} unchanged, 0 failed" in printed for told in ("6 executed, 1", "0 executed, 7")]
    assert not any(job.fresh for job in plan(root=own_checkout)), "other values, other results"


def test_where_a_section_failed_no_page_looks_built(own_checkout, write_notebook, capsys):
    """Neither its own, nor one that shows something of it; and what collects its findings does not run."""
    write_notebook("bad", COUNT, "undefined")
    write_notebook("late", COUNT, "def collect(*found):\n    print(found)", 'collect("bad", "gain")')
    write_notebook("other", COUNT, "print(n)")
    html = build.html_folder(own_checkout)
    (html / "executed").mkdir(parents=True)
    names = ("index", "about", "executed/bad", "executed/late", "executed/other")
    for name in names:
        (html / f"{name}.html").write_text("of an earlier build")
    (own_checkout / "book" / "index.md").write_text(
        "# Book\n\n```{glue} front\n:doc: executed/bad.ipynb\n```\n"
    )
    (own_checkout / "book" / "about.md").write_text("# About\n\n{doc}`executed/bad`\n")
    assert call("book") == 1
    said = capsys.readouterr()
    assert "sections: 1 executed, 0 unchanged, 2 failed" in said.out
    assert "late: it shows findings of bad, which failed" in said.err
    assert [name for name in names if (html / f"{name}.html").exists()] == ["about", "executed/other"]


EDITS = """
from pathlib import Path
for name, text in {edits}.items():
    Path(name).write_text(text)
import envprobe_core.statistics
print(Path("../data/numbers.csv").read_text())
"""


def test_an_edit_while_a_section_runs_neither_enters_its_result_nor_is_fresh(own_checkout, write_notebook):
    """It reads modules, data and lock as they were at the start; taken back, the edit never was."""
    shutil.rmtree(own_checkout / "envprobe_core")
    ignored = shutil.ignore_patterns("__pycache__", "data")
    shutil.copytree(ROOT / "envprobe_core", own_checkout / "envprobe_core", ignore=ignored)
    shutil.copytree(ROOT / "book" / "envprobe_book", own_checkout / "book" / "envprobe_book", ignore=ignored)
    module = own_checkout / "envprobe_core" / "statistics.py"
    kept = {path: path.read_text() for path in (module, own_checkout / "data" / "numbers.csv")}
    edits = dict(zip(map(str, kept), ('print("EDITED")\n' + kept[module], "EDITED"), strict=True))
    write_notebook("demo", COUNT, EDITS.format(edits=edits))
    assert call("reproduce") == 0
    (job,) = plan(root=own_checkout)
    cells = json.loads(job.output.read_text())["cells"]
    (shown,) = [output["text"] for cell in cells for output in cell.get("outputs", ())]
    assert shown == ["value\n", "1\n", "\n"]
    assert not job.fresh
    for path, text in kept.items():
        path.write_text(text)
    (job,) = plan(root=own_checkout)
    assert job.fresh
    made_of = sections.stored_record(job.output)["made_of_sha256"]
    assert made_of == job.made_of
    assert set(made_of) == {"core", "book", "data", "lock"}


def test_a_module_that_was_edited_since_the_command_began_is_named(tmp_path):
    (tmp_path / "core").mkdir()
    for name, moment in (("core/old.py", 10), ("core/new.py", 30), ("core/new.json", 30)):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (moment, moment))
    assert frozen.edited_since(tmp_path, 20) == Path("core/new.py")
    assert frozen.edited_since(tmp_path, 40) is None


def test_a_section_that_an_earlier_release_executed_is_read_as_it_stands(tmp_path, monkeypatch):
    (page := tmp_path / "old.ipynb").write_text('{"cells": []}')
    monkeypatch.setattr(build, "stored_record", lambda path: {"section": "old"})
    assert build.frame_of(page) == ['{"cells": []}']


def test_no_output_says_that_the_engine_was_compiled_first():
    """Of what a cell writes to standard error, these lines alone are left out."""
    said = f"{COMPILING}ToolDAGWorld, once; about 15 seconds\n"
    streams = [nbformat.v4.new_output("stream", name="stderr", text=text) for text in (said, f"{said}own\n")]
    cell = nbformat.v4.new_code_cell("run()", outputs=streams)
    whole = execution.clean(nbformat.v4.new_notebook(cells=[cell]), {}, Path.cwd())
    (left,) = whole["cells"][0]["outputs"]
    assert "".join(left["text"]) == "own\n"
