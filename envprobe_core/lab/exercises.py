"""The exercises: as students get them, without solutions; as an answer key; and checks of a student's result.

An exercise is a `{exercise}` directive in a cell of its own. Its second line says `Level: ...; about N
minutes; teaches ...`. Its solution is what stands between `{solution-start}` and `{solution-end}`; the last
cell of it, tagged `self-check`, goes to the students.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envprobe_core.errors import InputError, in_one_line
from envprobe_core.reproduce.sections import ROOT, cell_source, cell_tags
from envprobe_core.show.markup import Html, Text, code, download

NAME = "exercises"
CHECK = "self-check"  # tag of a solution's last cell
LEVELS = ("first steps", "understanding", "craft", "research")
LINK = re.compile(r"\[([^\]]*)\]\((?:\.\./)?(?:executed/)?([\w-]+)\.(?:ipynb|md)(?:#[\w-]*)?\)")
"""A link to a page of the book: its words, and the page's name."""
_HELLO = """# Exercises

These exercises lead in four levels from a first run to questions that nobody has answered. Each says what
it teaches and about how long it takes. Write your code into the empty cell under an exercise; the cell
below that one looks at your result and says whether it has the right form. It does not know the answer.
Run the next two cells first: all exercises share their setting."""
_EXERCISE = re.compile(
    r"````\{exercise\} (?P<title>.+)\n:label: (?P<label>\S+)\n\n"
    rf"\*Level: (?P<about>(?:{'|'.join(LEVELS)}); about \d+ minutes; teaches .+?)\.\*\n\n"
    r"(?P<task>.+)\n````\s*$",
    re.DOTALL,
)
_START, _END = "{solution-start} ", "{solution-end}"
_TABLE = re.compile(r"~~~\{table\} (.*)\n:name: .*\n:align: left\n\n((?:\|.*\n)+)~~~")
_ROLE = re.compile(r"\{[a-z:-]+\}(`[^`]+`)")
Cell = Mapping[str, Any]


@dataclass(frozen=True)
class Exercise:
    """One exercise and the cells of its solution."""

    label: str
    title: str
    about: str  # its level, how long it takes, and what it teaches
    task: str
    solution: list[Cell]


def exercises_notebook() -> dict[str, Any]:
    """Return the notebook of exercises of the checkout."""
    return json.loads((ROOT / "notebooks" / f"{NAME}.ipynb").read_text(encoding="utf-8"))


def read_exercises(cells: Sequence[Cell]) -> list[Exercise]:
    """Read every exercise of a notebook, executed or not, in order.

    Raises:
        InputError: if an exercise is not of the module's form.
    """
    found: list[Exercise] = []
    inside = False
    for place, cell in enumerate(cells, 1):
        source = cell_source(cell)
        if "{exercise}" in source:
            found.append(_read(source, place))
        elif _START in source or _END in source:
            inside = _START in source
        elif inside and CHECK not in cell_tags(cell):
            found[-1].solution.append(cell)
    return found


def _read(source: str, place: int) -> Exercise:
    match = _EXERCISE.match(source)
    if match is None:
        raise InputError(f"exercise in cell {place} is not of the form that lab/exercises.py describes")
    about = match["about"].replace(";", ",", 1)
    return Exercise(match["label"], match["title"], f"*{about}*", match["task"], [])


def student_copy(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """Return the exercises without their solutions, an empty cell and a self-check after each, as JSON."""
    cells: list[dict[str, Any]] = []

    def add(kind: str, source: str, metadata: Mapping[str, Any]) -> None:
        cell = {"cell_type": kind, "id": f"student-{len(cells):02d}", "metadata": metadata, "source": source}
        cells.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))

    inside, count = False, 0
    add("markdown", _HELLO, {})
    for place, cell in enumerate(notebook["cells"][1:], 2):
        source, tags = cell_source(cell), cell_tags(cell)
        if _START in source:
            inside = True
            add("code", "", {})
        elif _END in source:
            inside = False
        elif inside and CHECK in tags:
            add("code", source, {})
        elif not inside and "{exercise}" in source:
            count, one = count + 1, _read(source, place)
            add("markdown", f"### Exercise {count}: {one.title}\n\n{one.about}\n\n{one.task}", {})
        elif not inside and "solution-only" not in tags:
            add(cell["cell_type"], source, dict(cell["metadata"]))
    metadata = {key: notebook["metadata"][key] for key in ("kernelspec", "language_info")}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def student_download() -> Html:
    """Return a link to the exercises without solutions, as a notebook."""
    content = json.dumps(student_copy(exercises_notebook()), ensure_ascii=False, indent=1)
    name, words = "envprobe-exercises.ipynb", "Download the exercises without solutions (a notebook)"
    return Html(f"<p>{download(name, words, content, 'application/x-ipynb+json')}</p>", f"{words}: {name}")


# --- the answer key ---------------------------------------------------------------------------


def answer_key(notebook: Mapping[str, Any]) -> str:
    """Return the answer key of an executed notebook of exercises, in Markdown that any viewer shows."""
    record = notebook["metadata"].get("envprobe", {}).get("parameters", {})
    values = ", ".join(f"{name} = {value}" for name, value in record.items())
    lines = ["# Answer key", "", f"Computed with {values or 'the defaults'}.", ""]
    for count, exercise in enumerate(read_exercises(notebook["cells"]), 1):
        lines += [f"## {count}. {exercise.title}", "", exercise.about, "", exercise.task, "", "**Solution**"]
        for cell in exercise.solution:
            source = cell_source(cell)
            lines += ["", *(["~~~python", source, "~~~"] if cell["cell_type"] == "code" else [source])]
            for output in cell.get("outputs", ()):
                data = output.get("data", {"text/plain": output.get("text", "")})
                text = "".join(data.get("text/markdown", data.get("text/plain", "")))
                lines += ["", *([text] if "text/markdown" in data else ["~~~text", text, "~~~"])]
        lines.append("")
    text = _TABLE.sub(r"\2\n\n*\1*", "\n".join(lines))
    titles = page_titles()
    text = LINK.sub(lambda match: match[1] or f"*{titles[match[2]]}*", text)
    return _ROLE.sub(r"\1", text).rstrip() + "\n"


def page_titles() -> dict[str, str]:
    """Return the title of every page of the book, by the name of its file."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "book").glob("*.md")}
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        texts[path.stem] = cell_source(json.loads(path.read_text(encoding="utf-8"))["cells"][0])
    return {name: first_heading(text) for name, text in texts.items()}


def first_heading(text: str) -> str:
    """Return the first heading of a page."""
    return next(line.removeprefix("# ") for line in text.splitlines() if line.startswith("# "))


# --- self-checks ------------------------------------------------------------------------------


def self_check(names: str, wanted: Mapping[str, Callable[..., Any]]) -> Text:
    """Look at results of the notebook and say of each property whether they have it, but not the result.

    Args:
        names: of the notebook's variables, divided by spaces.
        wanted: a property in words -> a function of these variables that says whether it is so; where it
            fails, the answer is no, with the failure.
    """
    frame = inspect.currentframe()
    space = frame.f_back.f_globals if frame and frame.f_back else {}
    lacking = [name for name in names.split() if name not in space]
    if lacking:
        them = "it" if len(lacking) == 1 else "them"
        return Text(
            f"☐ There is no {code(lacking)} yet: work the exercise in the cell above, name your result so, "
            f"and run both cells. The check looks at {them} by name."
        )
    lines, good = [], True
    for words, has in wanted.items():
        try:
            met, fault = bool(has(*(space[name] for name in names.split()))), ""
        except Exception as error:  # a result of another kind may fail in any way
            met, fault = False, f" ({in_one_line(f'{type(error).__name__}: {error}')[:120]})"
        good = good and met
        lines.append(f"* {'☑' if met else '☐'} {words}{fault}")
    end = "The form is right; whether the answer is, the numbers must say." if good else "Not yet."
    return Text("\n".join([*lines, "", end]))
