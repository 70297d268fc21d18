"""The exercises as data: read from their notebook, handed to students without solutions, or as an answer key.

An exercise is a `{exercise}` directive in a cell of its own. Its second line says `Level: ...; about N
minutes; teaches ...`. Its solution is what stands between `{solution-start}` and `{solution-end}`; the last
cell of it, tagged `self-check`, goes to the students.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envprobe_core.errors import InputError
from envprobe_core.reproduce.sections import ROOT, cell_source
from envprobe_core.show.markup import Html, download

NAME = "exercises"
CHECK = "self-check"  # tag of a solution's last cell
_HELLO = """# Exercises

These exercises lead in four levels from a first run to questions that nobody has answered. Each says what
it teaches and about how long it takes. Write your code into the empty cell under an exercise; the cell
below that one looks at your result and says whether it has the right form. It does not know the answer.
Run the next two cells first: all exercises share their setting."""
LEVELS = ("first steps", "understanding", "craft", "research")
_EXERCISE = re.compile(
    r"````\{exercise\} (?P<title>.+)\n:label: (?P<label>\S+)\n\n"
    r"\*Level: (?P<level>[a-z ]+); about (?P<minutes>\d+) minutes; teaches (?P<teaches>.+?)\.\*\n\n"
    r"(?P<task>.+)\n````\s*$",
    re.DOTALL,
)
_TABLE = re.compile(r"~~~\{table\} (.*)\n:name: .*\n:align: left\n\n((?:\|.*\n)+)~~~")
LINK = re.compile(r"\[([^\]]*)\]\((?:\.\./)?(?:executed/)?([\w-]+)\.(?:ipynb|md)(?:#[\w-]*)?\)")
"""A link to a page of the book: its words, and the page's name."""
_ROLE = re.compile(r"\{[a-z:-]+\}(`[^`]+`)")
_START, _END = "{solution-start} ", "{solution-end}"
Cell = Mapping[str, Any]


@dataclass(frozen=True)
class Exercise:
    """One exercise and the cells of its solution."""

    label: str
    title: str
    level: str
    minutes: int
    teaches: str
    task: str
    solution: tuple[Cell, ...]


def exercises_notebook() -> dict[str, Any]:
    """Return the notebook of exercises of the checkout."""
    return json.loads((ROOT / "notebooks" / f"{NAME}.ipynb").read_text(encoding="utf-8"))


def read_exercises(cells: Sequence[Cell]) -> list[Exercise]:
    """Read every exercise of a notebook, executed or not, in order.

    Raises:
        InputError: if an exercise is not of the module's form or has no solution.
    """
    found = []
    for place, cell in enumerate(cells):
        source = cell_source(cell)
        if "{exercise}" not in source:
            continue
        match = _EXERCISE.match(source)
        if match is None or match["level"] not in LEVELS:
            raise InputError(
                f"exercise in cell {place + 1} is not of the form that lab/exercises.py describes"
            )
        solution = _solution_after(cells, place, match["label"])
        fields = match.groupdict() | {"minutes": int(match["minutes"])}
        found.append(Exercise(**fields, solution=solution))
    return found


def _solution_after(cells: Sequence[Cell], place: int, label: str) -> tuple[Cell, ...]:
    sources = [cell_source(cell) for cell in cells]
    if place + 1 == len(cells) or f"{_START}{label}\n" not in sources[place + 1]:
        raise InputError(f"exercise {label}: no solution follows it")
    inner = []
    for at in range(place + 2, len(cells)):
        if _END in sources[at]:
            return tuple(inner)
        if not _is_check(cells[at]):
            inner.append(cells[at])
    raise InputError(f"exercise {label}: its solution has no end")


def _is_check(cell: Cell) -> bool:
    return CHECK in cell["metadata"].get("tags", ())


def student_copy(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """Return the exercises without their solutions, an empty cell and a self-check after each, as JSON."""
    cells: list[dict[str, Any]] = []
    inside, count = False, 0
    cells.append(_new_cell(cells, "markdown", _HELLO))
    for cell in notebook["cells"][1:]:
        source = cell_source(cell)
        if _START in source:
            inside = True
            cells.append(_new_cell(cells, "code", ""))
        elif _END in source:
            inside = False
        elif inside and _is_check(cell):
            cells.append(_new_cell(cells, "code", source))
        elif not inside and (match := _EXERCISE.match(source)):
            count += 1
            about = f"*{match['level']}, about {match['minutes']} minutes; teaches {match['teaches']}*"
            text = f"### Exercise {count}: {match['title']}\n\n{about}\n\n{match['task']}"
            cells.append(_new_cell(cells, "markdown", text))
        elif not inside and "solution-only" not in cell["metadata"].get("tags", ()):
            cells.append(_new_cell(cells, cell["cell_type"], source))
            cells[-1]["metadata"] = dict(cell["metadata"])
    metadata = {key: notebook["metadata"][key] for key in ("kernelspec", "language_info")}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _new_cell(cells: Sequence[object], kind: str, source: str) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": kind,
        "id": f"student-{len(cells):02d}",
        "metadata": {},
        "source": source,
    }
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def answer_key(notebook: Mapping[str, Any]) -> str:
    """Return the answer key of an executed notebook of exercises, in Markdown.

    Raises:
        InputError: if a solution was not executed or failed.
    """
    record = notebook["metadata"].get("envprobe", {}).get("parameters", {})
    values = ", ".join(f"{name} = {value}" for name, value in record.items())
    lines = ["# Answer key", "", f"Computed with {values or 'the defaults'}.", ""]
    for count, exercise in enumerate(read_exercises(notebook["cells"]), 1):
        about = f"*{exercise.level}, about {exercise.minutes} minutes; teaches {exercise.teaches}*"
        lines += [f"## {count}. {exercise.title}", "", about, "", exercise.task, "", "**Solution**", ""]
        for cell in exercise.solution:
            if cell["cell_type"] != "code":
                lines += [cell_source(cell), ""]
                continue
            if not cell["execution_count"]:
                raise InputError(f"exercise {exercise.label}: its solution was not executed")
            lines += ["~~~python", cell_source(cell), "~~~", "", *_outputs(cell, exercise.label)]
    return plain("\n".join(lines)).rstrip() + "\n"


def plain(text: str) -> str:
    """Write MyST as Markdown that any viewer shows: plain tables, and words for links into the book."""

    def words(match: re.Match[str]) -> str:
        return match[1] or f"*{_page_title(match[2])}*"

    return _ROLE.sub(r"\1", LINK.sub(words, _TABLE.sub(r"\2\n\n*\1*", text)))


def _page_title(name: str) -> str:
    """Return the title of a page of the book, a notebook or a text."""
    notebook = ROOT / "notebooks" / f"{name}.ipynb"
    if notebook.is_file():
        text = cell_source(json.loads(notebook.read_text(encoding="utf-8"))["cells"][0])
    else:
        text = (ROOT / "book" / f"{name}.md").read_text(encoding="utf-8")
    return first_heading(text)


def first_heading(text: str) -> str:
    """Return the first heading of a page."""
    return next(line.removeprefix("# ") for line in text.splitlines() if line.startswith("# "))


def _outputs(cell: Cell, label: str) -> list[str]:
    lines = []
    for output in cell["outputs"]:
        if output["output_type"] == "error":
            raise InputError(f"exercise {label}: its solution failed with {output['ename']}")
        data = output.get("data", {"text/plain": output.get("text", "")})
        text = "".join(data.get("text/markdown", data.get("text/plain", "")))
        lines += [text, ""] if "text/markdown" in data else ["~~~text", text, "~~~", ""]
    return lines


def student_download() -> Html:
    """Return a link to the exercises without solutions, as a notebook."""
    content = json.dumps(student_copy(exercises_notebook()), ensure_ascii=False, indent=1)
    name, words = "envprobe-exercises.ipynb", "Download the exercises without solutions (a notebook)"
    return Html(f"<p>{download(name, words, content, 'application/x-ipynb+json')}</p>", f"{words}: {name}")
