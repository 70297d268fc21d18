"""Parameters are checked at every door: papermill and a Jupyter kernel as under `envprobe reproduce`."""

import ast
import json
import subprocess
import sys

import nbformat
import papermill
import pytest
from papermill.exceptions import PapermillExecutionError

from envprobe_book.reproduce.declared import check_history
from envprobe_book.reproduce.parameters import accepted, check, kind_of
from envprobe_book.reproduce.sections import cell_source, cell_tags, read_section
from envprobe_core.errors import InputError
from envprobe_core.sources import ROOT
from processes import call

DECLARED = 'n: int = 3  # how many; accepts 1..10\nseeds: str = "0:9"  # whose; accepts seeds'
BAD = {
    ("theory", "moment", 5): "parameter moment of this notebook: 5 given; accepted: a number, 0..0.9",
    ("theory", "moments", 0.5): "unknown parameter 'moments' of this notebook; accepted: seeds, regime, ",
    ("optimal-bound", "steps", 14): "parameter steps of this notebook: 14 given; accepted: a whole number",
    ("main-results", "resamples", 10**9): "parameter resamples of this notebook: 1000000000 given; ",
    ("main-results", "seeds", 614): "parameter seeds of this notebook: 614 given; accepted: text, seeds",
}  # fmt: skip

SECTIONS = {path.stem: read_section(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
DECLARING = [name for name, section in SECTIONS.items() if section.parameters]


def declaration(section):
    """The cell that declares a section's parameters."""
    (cell,) = [one for one in section.cells if "parameters" in cell_tags(one)]
    return cell_source(cell)


def bad_values(parameter):
    """Values that a parameter does not accept: of another type, beyond its bounds, no word of its rule."""
    if kind_of(parameter) == "str":
        return [7, "no such word"]
    if kind_of(parameter) == "bool":
        return ["no such word", 2]
    number = {"int": int, "float": float}[kind_of(parameter)]
    low, high = map(number, accepted(parameter).split(".."))
    return ["no such word", low - 1, high + 1]


@pytest.fixture(scope="module")
def told():
    """Run code in one real kernel; what error it ends with, nothing where it goes well."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", cwd=str(ROOT / "notebooks"))

    def run(code):
        answer = client.execute_interactive(code, store_history=True, output_hook=lambda _: None, timeout=120)
        return answer["content"].get("evalue", "")

    assert run("import envprobe_book") == ""
    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("name", DECLARING)
def test_the_model_of_every_notebook_refuses_what_a_parameter_does_not_accept(name):
    """Every door goes through it."""
    section = SECTIONS[name]
    for own, parameter in section.parameters.items():
        assert check(section.model, {own: parameter.default})[own] == parameter.default
        for bad in bad_values(parameter):
            with pytest.raises(InputError, match=f"^parameter {own} of {name}: "):
                check(section.model, {own: bad})


@pytest.mark.parametrize("name", DECLARING)
def test_a_parameter_of_every_notebook_is_checked_in_a_kernel_set_below_or_edited(name, told):
    """Papermill sets values in a cell below the declaration; a reader of Jupyter edits the declaration."""
    section = SECTIONS[name]
    right = declaration(section)
    lines = {line.partition(":")[0]: line for line in right.splitlines()}
    assert {*lines} == {*section.parameters}
    own, parameter = next(reversed(section.parameters.items()))
    head, _, rest = lines[own].partition("  # ")
    below, *_, within = bad_values(parameter)
    edited = f"{head.partition(' = ')[0]} = {json.dumps(within)}  # {rest}"
    for wrong in (f"{right}\n", f"# Parameters\n{own} = {below!r}"), (right.replace(lines[own], edited),):
        assert {told(code) for code in wrong} == {""}
        refused, place = told("computed = True"), [*lines].index(own) + 1
        named = f"parameter {own} of this notebook: ", f"line {place} of its parameters"
        assert any(words in refused for words in named), refused
    assert told(right) == ""
    assert told("assert 'computed' not in globals()") == ""


def test_parameters_are_checked_by_reproduce(capsys):
    for name, given in (
        ("theory", "moment=5"),
        ("main-results", "seeds=no such word"),
        ("terms", "no_such=1"),
    ):
        assert call("reproduce", name, "-p", given) == 2
        printed = capsys.readouterr()
        assert (printed.out, printed.err.count("\n")) == ("", 1)
        own = given.partition("=")[0]
        assert f"parameter {own} of {name}" in printed.err or f"unknown parameter '{own}'" in printed.err


@pytest.mark.parametrize("name", DECLARING)
def test_the_first_cell_below_a_declaration_computes_nothing_before_it_is_checked(name):
    code = [cell for cell in SECTIONS[name].cells if cell["cell_type"] == "code"]
    place = next(at for at, cell in enumerate(code) if "parameters" in cell_tags(cell))
    assert place == 0
    body = ast.parse(cell_source(code[1])).body
    own = (
        isinstance(one, ast.Import | ast.ImportFrom) and "envprobe_book" in ast.unparse(one) for one in body
    )
    first = [*own].index(True)
    assert all(isinstance(one, ast.Import | ast.ImportFrom) for one in body[:first])


@pytest.mark.nightly
def test_jupyter_execute_is_refused_what_a_declaration_does_not_accept(tmp_path):
    notebook = nbformat.read(ROOT / "notebooks" / "theory.ipynb", as_version=4)
    (cell,) = [one for one in notebook.cells if "parameters" in cell_tags(one)]
    line = next(line for line in cell.source.splitlines() if line.startswith("moment:"))
    default = line.partition(" = ")[2].partition("  #")[0]
    cell.source = cell.source.replace(line, line.replace(f" = {default} ", " = 5 ", 1))
    path = tmp_path / "theory.ipynb"
    nbformat.write(notebook, path)
    before = path.read_bytes()
    program = [sys.executable, "-m", "jupyter", "execute", "--inplace", str(path)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path)
    assert done.returncode != 0
    assert "parameter moment of this notebook: 5 given; accepted: a number, 0..0.9" in done.stderr
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "bad", [pytest.param(bad, marks=pytest.mark.nightly if at else ()) for at, bad in enumerate(BAD)], ids=str
)
def test_papermill_is_refused_what_no_section_accepts(tmp_path, bad):
    """By one error, in the first cell of code; nothing below it runs, and it shows no result."""
    section, name, value = bad
    out = tmp_path / "out.ipynb"
    with pytest.raises(PapermillExecutionError) as raised:
        papermill.execute_notebook(
            ROOT / "notebooks" / f"{section}.ipynb", out, {name: value}, cwd=ROOT / "notebooks",
            kernel_name="python3", progress_bar=False,
        )  # fmt: skip
    assert (raised.value.ename, raised.value.evalue[: len(BAD[bad])]) == ("InputError", BAD[bad])
    cells = [cell for cell in nbformat.read(out, as_version=4).cells if cell.cell_type == "code"]
    outputs = [one for cell in cells for one in cell.outputs]
    assert [one.output_type for one in outputs] == ["error"]
    assert sum(cell.execution_count is not None for cell in cells) == 3, "declared, injected, refused"


def test_a_kernel_checks_again_what_is_edited_and_lets_it_be_mended():
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", cwd=str(ROOT / "notebooks"))
    try:

        def told(code):
            answer = client.execute_interactive(
                code, store_history=True, output_hook=lambda _: None, timeout=120
            )
            return answer["content"].get("evalue", "")

        assert told(DECLARED) == ""
        assert told("import envprobe_book") == ""
        assert told("n = [3]  # a name of one's own, later on") == ""
        assert told("n") == ""
        assert told(DECLARED.replace("3", "30")) == ""
        for _ in range(2):
            assert "parameter n of this notebook: 30 given; accepted: a whole number, 1..10" in told("n")
        assert told(DECLARED.replace("3", "4")) == ""
        assert told("assert n == 4") == ""
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.parametrize(
    ("injected", "values", "message"),
    [
        ("n = 4", {"n": 4, "seeds": "0:9"}, ""),
        ("n = True", {"n": True}, "True given; accepted: a whole number"),
        ("n = 4.0", {"n": 4.0}, "4.0 given"),
        ("n = 11", {"n": 11}, "11 given; accepted: a whole number, 1..10"),
        ("seeds = 7", {"seeds": 7}, "7 given; accepted: text, seeds"),
        ("seeds = '9:1'", {"seeds": "9:1"}, "parameter seeds of this notebook: "),
        ("m = 4", {"m": 4}, "unknown parameter 'm' of this notebook; accepted: n, seeds"),
    ],
)
def test_what_is_set_below_a_declaration_is_held_to_it(injected, values, message):
    cells = ["", "n = 99", DECLARED, f"# Parameters\n{injected}"]
    if not message:
        check_history(cells, values)
        return
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        check_history(cells, values)


def test_what_declares_nothing_is_left_alone():
    check_history(["n: int = 99", "# Parameters\nm = 4"], {"n": 99, "m": 4})
