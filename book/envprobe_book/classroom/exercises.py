"""Exercises of a class: the students' copy without solutions, and the answer key.

An exercise is a `{exercise}` directive in a cell of its own. Its second line says `Level: ...; about N
minutes; teaches ...`. Its solution is what stands between `{solution-start}` and `{solution-end}`; the last
cell of it, tagged `self-check`, goes to the students.
"""

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from envprobe_book.pages.markup import Html, download
from envprobe_book.reproduce.sections import (
    HEADING,
    METADATA_KEY,
    as_json,
    cell_source,
    cell_tags,
    find_sections,
    read_section,
)
from envprobe_core.errors import InputError
from envprobe_core.sources import ROOT

EXERCISES = "exercises"
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"  # of nbgrader
CHECK = "# Self-check"  # begins the cell of a check
POINTS = 4  # for an answer that is graded by hand
_HELLO = """# Exercises

These exercises lead in four levels from a first run to questions that nobody has answered. Each says what
it teaches and about how long it takes. Write your code into the empty cell under an exercise; the cell
below that one looks at your result and says whether it has the right form. It does not know the answer.
Run the next two cells first: all exercises share their setting."""
_EXERCISE = re.compile(
    r"````\{exercise\} (?P<title>.+)\n:label: \S+\n\n"
    r"\*Level: (?P<level>first steps|understanding|craft|research); (?P<about>about \d+ minutes; teaches .+?)"
    r"\.\*\n\n(?P<task>.+)\n````\s*$",
    re.DOTALL,
)
_LINK = re.compile(
    r"\[([^\]]*)\]\((?:\.\./)?(?:executed/|book/)?([\w-]+)\.(?:ipynb|md)(?:\?[^)#\s]*)?(?:#[\w-]*)?\)"
)
"""A link to a page of the book: its words, and the page's name."""
_OWN = re.compile(rf"\[([^\]]*)\]\({EXERCISES}\.ipynb\?[^)\s]*\)")
"""A link of the exercises to their own figure at a setting: its words."""
_AT = re.compile(r"\{at\}`([^`<]+) <(?:executed/)?([\w-]+)[^`>]*>`")
"""A link to a page at a setting: its words, and the page's name."""
_TABLE = re.compile(r"~~~\{table\} (.*)\n:name: .*\n:align: left\n\n((?:\|.*\n)+)~~~")
_ROLE = re.compile(r"\{[a-z:-]+\}(`[^`]+`)")
Notebook = Mapping[str, Any]


def parts(notebook: Notebook) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Go through a notebook of exercises: what each cell is, the cell, and its text.

    A cell is an `exercise` (whose text any viewer shows), the `start` or `end` of a solution, part of a
    `solution`, a `check`, for a `key` alone, or any `other`.

    Raises:
        InputError: if an exercise is not of the module's form.
    """
    inside, count = False, 0
    for place, cell in enumerate(notebook["cells"], 1):
        text, tags, kind = cell_source(cell), cell_tags(cell), "solution" if inside else "other"
        if "{exercise}" in text:
            match, count, kind = _EXERCISE.match(text), count + 1, "exercise"
            if match is None:
                raise InputError(
                    f"exercise in cell {place} is not of the form that classroom/exercises.py describes"
                )
            text = "Exercise {}: {title}\n\n*{level}, {about}*\n\n{task}".format(count, **match.groupdict())
        elif "{solution-start} " in text or "{solution-end}" in text:
            inside = "{solution-start} " in text
            kind = "start" if inside else "end"
        elif inside and "self-check" in tags:
            kind = "check"
        elif "solution-only" in tags:
            kind = "key"
        yield kind, cell, text


def student_copy() -> dict[str, Any]:
    """The exercises without their solutions, an empty cell and a self-check after each, as JSON."""
    notebook = read_section(ROOT / "notebooks" / f"{EXERCISES}.ipynb").notebook
    cells: list[dict[str, Any]] = []

    def add(kind: str, source: str, metadata: Mapping[str, Any]) -> None:
        cell = {"cell_type": kind, "id": f"student-{len(cells):02d}", "metadata": metadata, "source": source}
        cells.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))

    add("markdown", _HELLO, {})
    for kind, cell, text in list(parts(notebook))[1:]:
        if kind == "exercise":
            asked = _OWN.sub(r"\1", text)  # a notebook has a bar, and no address
            add("markdown", f"### {asked}", {})
        elif kind in ("start", "check"):
            add("code", text if kind == "check" else "", {})
        elif kind == "other":
            add(cell["cell_type"], text, dict(cell["metadata"]))
    kept = {"kernelspec", "language_info"} & notebook["metadata"].keys()
    metadata = {key: notebook["metadata"][key] for key in kept}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def assignment() -> dict[str, Any]:
    """The exercises as the source of an nbgrader assignment, with solutions, as JSON.

    An answer is a cell for code, graded by hand, as there are several right ones; its self-check is a cell of
    tests that grades itself, one point for the right form. `nbgrader generate_assignment exercises` makes the
    students' copy.
    """
    made, code, label = student_copy(), list[str](), ""
    solutions: dict[str, str] = {}
    for kind, cell, text in parts(read_section(ROOT / "notebooks" / f"{EXERCISES}.ipynb").notebook):
        if kind == "start":
            label, code = text.split()[1], []
        elif kind == "solution" and cell["cell_type"] == "code":
            code.append(text)
        elif kind == "end":
            solutions[label] = "\n\n".join(code)
    left = iter(solutions.items())
    for cell in made["cells"]:
        if cell["cell_type"] == "code" and not cell["source"]:
            label, solved = next(left)
            cell["source"] = f"{BEGIN}\n{solved}\n{END}"
            cell["metadata"] = {"nbgrader": _graded(f"{label}-answer", solution=True, points=POINTS)}
        elif cell["source"].startswith(CHECK):
            cell["source"] = cell["source"].rstrip().removesuffix(")") + ", graded=True)"
            cell["metadata"] = {"nbgrader": _graded(f"{label}-check", solution=False, points=1)}
    return made


def _graded(name: str, *, solution: bool, points: int) -> dict[str, Any]:
    """What nbgrader keeps of a cell that it grades, in the third version of its form."""
    kinds = {"grade": True, "solution": solution, "locked": not solution, "task": False}
    return kinds | {"grade_id": name, "points": points, "schema_version": 3, "cell_type": "code"}


def student_download() -> Html:
    """A link to the exercises without solutions, as a notebook."""
    content, name = as_json(student_copy()), "envprobe-exercises.ipynb"
    words = "Download the exercises without solutions (a notebook)"
    return Html(f"<p>{download(name, words, content, 'application/x-ipynb+json')}</p>", f"{words}: {name}")


def answer_key(notebook: Notebook) -> str:
    """The answer key of an executed notebook of exercises, in Markdown that any viewer shows."""
    given = notebook["metadata"][METADATA_KEY]["parameters"]
    values = ", ".join(f"{name} = {value}" for name, value in given.items())
    lines = ["# Answer key", f"Computed with {values}."]
    for kind, cell, text in parts(notebook):
        if kind == "exercise":
            lines += [f"## {text}", "**Solution**"]
        elif kind == "solution":
            lines.append(f"~~~python\n{text}\n~~~" if cell["cell_type"] == "code" else text)
            for output in cell.get("outputs", ()):
                data = output.get("data", {"text/plain": output.get("text", "")})
                shown = "".join(data.get("text/markdown", data.get("text/plain", "")))
                lines.append(shown if "text/markdown" in data else f"~~~text\n{shown}\n~~~")
    text = _TABLE.sub(r"\2\n\n*\1*", "\n\n".join(lines))
    return _ROLE.sub(r"\1", linked(text)).rstrip() + "\n"


def linked(text: str, place: str = "", places: Mapping[str, str] | None = None) -> str:
    """A text with its links to pages of the book as from `place` to `places`, else their words.

    Of a link to a page at a setting the setting goes: a copy of the page in a notebook has no address.

    >>> linked("Open {at}`the explorer <executed/explorer?budget=3>`.", places={"explorer": "explorer.ipynb"})
    'Open [the explorer](explorer.ipynb).'
    """
    text = _AT.sub(r"[\1](\2.ipynb)", text)

    def link(match: re.Match[str]) -> str:
        words, target = match[1] or page_titles()[match[2]], (places or {}).get(match[2])
        return f"[{words}]({os.path.relpath(target, os.path.dirname(place))})" if target else words

    return _LINK.sub(link, text)


@cache
def page_titles() -> dict[str, str]:
    """The title of every page of the book, by the name of its file."""
    titles = {name: section.title for name, section in find_sections().items()}
    for path in (ROOT / "book").glob("*.md"):
        if heading := HEADING.search(path.read_text(encoding="utf-8")):
            titles[path.stem] = heading[1]
    return titles
