"""The desk: the folder that `make lab` opens, and START and the exercises in a real JupyterLab."""

import json
import os
import re

import nbformat
import pytest
from processes import call

from envprobe_core.lab import desk, exercises
from envprobe_core.reproduce.sections import ROOT, cell_source


@pytest.fixture(scope="module")
def laid(tmp_path_factory):
    """The folder as a class finds it."""
    folder = tmp_path_factory.mktemp("desk") / "lab"
    assert desk.lay_out(folder) == []
    return folder


def test_the_desk_has_start_exercises_and_every_section_and_no_solution(laid):
    names = {path.relative_to(laid).as_posix() for path in laid.rglob("*.ipynb")}
    sections = {f"sections/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert names == sections - {"sections/exercises.ipynb"} | {"START.ipynb", "exercises.ipynb"}
    for path in laid.rglob("*.ipynb"):
        nbformat.validate(nbformat.read(path, as_version=4))
        assert "{solution" not in path.read_text(encoding="utf-8")


def test_links_of_the_desk_lead_somewhere(laid):
    """Relative links of START, the exercises, sections and pages have words, and are files of the desk."""
    for path in (*laid.rglob("*.ipynb"), *laid.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            cells = json.loads(text)["cells"]
            text = "\n".join(cell_source(cell) for cell in cells if cell["cell_type"] == "markdown")
        for words, target in re.findall(r"\[([^\]]*)\]\(([^)#]+\.(?:ipynb|md))", text):
            assert words, (path.name, target)
            assert (path.parent / target).is_file(), (path.name, target)


def test_start_names_what_is_there_in_the_books_order_and_its_cells_run(laid):
    cells = json.loads((laid / desk.START).read_text(encoding="utf-8"))["cells"]
    text = "\n".join(cell_source(cell) for cell in cells if cell["cell_type"] == "markdown")
    listed = re.findall(r"\]\(sections/([\w-]+)\.ipynb\)", text.partition("in which order")[2])
    contents = re.findall(r"executed/([\w-]+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert listed == [name for name in contents if name != exercises.NAME]
    assert [text.count(f"**{count}. ") for count in (1, 2, 3)] == [1, 1, 1]
    code = [cell_source(cell) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) == 3
    for source in code:
        exec(source.replace("0:220", "0:4").replace("0:60", "0:4").replace("1_000", "100"), {})


def test_what_a_reader_changed_is_left_and_the_rest_is_brought_up_to_date(tmp_path):
    folder = tmp_path / "lab"
    desk.lay_out(folder)
    mine, opened, gone = (folder / "sections" / f"{name}.ipynb" for name in ("terms", "pareto", "voi"))
    notebook = json.loads(mine.read_text(encoding="utf-8"))
    notebook["cells"][1]["source"] = "seeds = '0:3'"
    mine.write_text(json.dumps(notebook), encoding="utf-8")
    was_saved = json.loads(opened.read_text(encoding="utf-8"))
    was_saved["metadata"]["widgets"] = {}  # opened and saved, not changed
    opened.write_text(json.dumps(was_saved), encoding="utf-8")
    gone.unlink()
    (folder / "notes.md").write_text("mine\n", encoding="utf-8")
    assert desk.lay_out(folder) == ["sections/terms.ipynb"]
    assert json.loads(mine.read_text(encoding="utf-8")) == notebook
    assert "widgets" not in opened.read_text(encoding="utf-8")
    assert gone.is_file()
    assert (folder / "notes.md").read_text(encoding="utf-8") == "mine\n"
    mine.write_text("no notebook any more", encoding="utf-8")
    (folder / desk.RECORD).write_text("{}", encoding="utf-8")  # what was put there is not known
    assert "sections/terms.ipynb" in desk.lay_out(folder)
    assert mine.read_text(encoding="utf-8") == "no notebook any more"


@pytest.mark.parametrize("record", [b"{", b"[1]", b"[" * 100_000, b"\xff"])
def test_a_desk_that_was_damaged_is_left_as_it_is(tmp_path, record):
    folder = tmp_path / "lab"
    desk.lay_out(folder)
    (folder / desk.RECORD).write_bytes(record)
    link, pipe = (folder / "sections" / f"{name}.ipynb" for name in ("terms", "pareto"))
    link.unlink()
    link.symlink_to("nowhere")
    pipe.unlink()
    os.mkfifo(pipe)
    assert {*desk.lay_out(folder)} >= {"sections/terms.ipynb", "sections/pareto.ipynb"}
    assert link.is_symlink()
    assert pipe.is_fifo()


def test_a_folder_with_other_things_is_no_desk(tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x", encoding="utf-8")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for name, said in (("full", "holds other files"), ("file", "a file stands there")):
        assert call("lab", "--files-only", "--out", tmp_path / name) == 2
        assert said in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.tex"]
