"""The workspace: the folder that `make lab` opens, with all that a class needs; it is its reader's own."""

import json
import os
import re

import nbformat
import pytest

from envprobe_book.classroom import workspace
from envprobe_book.reproduce.sections import ROOT, cell_source
from processes import call, contents


@pytest.fixture
def folder(tmp_path):
    assert workspace.lay_out(tmp_path / "lab") == []
    return tmp_path / "lab"


def words_of(path):
    """The prose of a page or notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    cells = json.loads(text)["cells"]
    return "\n".join(cell_source(cell) for cell in cells if cell["cell_type"] == "markdown")


def test_the_workspace_has_every_section_its_links_lead_somewhere_and_no_solution(folder):
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*.ipynb")}
    sections = {f"sections/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert names == sections - {"sections/exercises.ipynb"} | {"START.ipynb", "exercises.ipynb"}
    for path in folder.rglob("*.ipynb"):
        nbformat.validate(nbformat.read(path, as_version=4))
        assert "{solution" not in path.read_text(encoding="utf-8")
    for path in (*folder.rglob("*.ipynb"), *folder.rglob("*.md")):
        for words, target in re.findall(r"\[([^\]]*)\]\(([^)#]+\.(?:ipynb|md))", words_of(path)):
            assert words, (path.name, target)
            assert (path.parent / target).is_file(), (path.name, target)


def test_copies_fold_what_the_book_folds_and_give_no_answer_away(folder):
    """Parameters stay in sight; the words of a guess's answer stand in no cell that does."""
    folds = 0
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        if path.stem == workspace.EXERCISES:
            continue
        copy = json.loads((folder / "sections" / path.name).read_text(encoding="utf-8"))["cells"]
        for own, cell in zip(json.loads(path.read_text(encoding="utf-8"))["cells"], copy, strict=True):
            tags, folded = set(own["metadata"].get("tags", ())), cell["metadata"].get("jupyter", {})
            code = cell["cell_type"] == "code" and "parameters" not in tags
            assert folded.get("source_hidden", False) == bool(
                code and tags & workspace.FOLDED["source_hidden"]
            )
            assert folded.get("outputs_hidden", False) == bool(
                code and tags & workspace.FOLDED["outputs_hidden"]
            )
            folds += bool(folded)
            if code and re.search(r"\bguess\(", cell_source(cell)):
                assert folded["source_hidden"], (path.name, cell["id"])
    assert folds > 100


def test_start_names_what_is_there_in_the_books_order_and_its_cells_run(folder):
    text = words_of(folder / workspace.START)
    listed = re.findall(r"\]\(sections/([\w-]+)\.ipynb\)", text.partition("in which order")[2])
    contents = re.findall(r"executed/([\w-]+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert listed == [name for name in contents if name != workspace.EXERCISES]
    assert [text.count(f"**{count}. ") for count in (1, 2, 3)] == [1, 1, 1]
    cells = json.loads((folder / workspace.START).read_text(encoding="utf-8"))["cells"]
    code = [cell_source(cell) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) == 3
    for source in code:
        exec(source.replace("0:220", "0:4").replace("0:60", "0:4").replace("1_000", "100"), {})


def test_what_a_reader_changed_is_left_and_the_rest_is_brought_up_to_date(folder):
    laid = contents(folder)
    mine, opened, gone = (folder / "sections" / f"{name}.ipynb" for name in ("terms", "pareto", "voi"))
    mine.write_text(mine.read_text(encoding="utf-8").replace("0:220", "0:3"), encoding="utf-8")
    changed = mine.read_bytes()
    saved = json.loads(opened.read_text(encoding="utf-8"))
    saved["metadata"]["widgets"] = {}  # opened and saved, not changed
    opened.write_text(json.dumps(saved), encoding="utf-8")
    gone.unlink()
    (folder / "notes.md").write_text("mine\n", encoding="utf-8")
    assert workspace.lay_out(folder) == ["sections/terms.ipynb"]
    assert contents(folder) == laid | {"sections/terms.ipynb": changed, "notes.md": b"mine\n"}


@pytest.mark.parametrize("record", [b"{", b"[1]", b"[" * 100_000, b"\xff", b"{}"])
def test_a_workspace_that_was_damaged_is_left_as_it_is(folder, record):
    (folder / workspace.RECORD).write_bytes(record)
    broken, link, pipe = (folder / "sections" / f"{name}.ipynb" for name in ("voi", "terms", "pareto"))
    broken.write_text("no notebook any more", encoding="utf-8")
    link.unlink()
    link.symlink_to("nowhere")
    pipe.unlink()
    os.mkfifo(pipe)
    assert {*workspace.lay_out(folder)} >= {f"sections/{path.name}" for path in (broken, link, pipe)}
    assert link.is_symlink()
    assert pipe.is_fifo()
    assert broken.read_text(encoding="utf-8") == "no notebook any more"


def test_a_folder_with_other_things_is_no_workspace_and_a_malformed_notebook_is_named(
    tmp_path, checkout, write_notebook, monkeypatch, capsys
):
    (tmp_path / "thesis.tex").write_text("x", encoding="utf-8")
    write_notebook("voi", "n = 3")
    monkeypatch.setattr(workspace, "ROOT", checkout)
    before = contents(tmp_path)
    for place, said in (
        (tmp_path, "holds other files"),
        (tmp_path / "thesis.tex", "a file stands there"),
        (tmp_path / "lab", "notebook voi: line 1 of its parameters is not of the form"),
    ):
        assert call("lab", "--files-only", "--out", place) == 2
        assert said in capsys.readouterr().err
    assert call("lab", "voi", "--out", tmp_path / "new") == 2  # which Jupyter would refuse, but too late
    assert "lab 'voi': options of `jupyter lab` are accepted" in capsys.readouterr().err
    assert contents(tmp_path) == before
