"""What a step of a section's sliders takes: run what its figure needs, move a slider, time the step.

Of a notebook only the statements run that the figure's function needs, its parameters at their defaults;
each section in a process of its own: `python benchmarks/sliders.py NOTEBOOK` prints a JSON line.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import time
from pathlib import Path

from envprobe_book.pages import SERVED

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
MARK = "live_figure_timed_here"
STEPS = {"budget": (3, 4, 5, 6), "threshold": (0.9, 1.1, 1.3, 1.4)}  # no two figures alike


def sections() -> list[str]:
    """Return the notebooks that put a figure under sliders."""
    return [path.stem for path in sorted(NOTEBOOKS.glob("*.ipynb")) if needed(path) is not None]


def needed(path: Path) -> ast.Module | None:
    """Return the statements that a notebook's call of `interact` needs, the call itself last."""
    cells = json.loads(path.read_text())["cells"]
    lines = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    statements = ast.parse(lines).body
    calls = [
        node
        for node in ast.walk(ast.Module(statements, []))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "interact"
    ]
    if not calls:
        return None
    call = ast.Assign([ast.Name(MARK, ast.Store())], calls[0])
    last, wanted = ast.fix_missing_locations(ast.copy_location(call, calls[0])), _names(call, ast.Load)
    before = [
        one
        for one in statements
        if one.end_lineno < calls[0].lineno and not isinstance(one, ast.Expr)  # type: ignore[operator]
    ]
    kept: list[ast.stmt] = []
    while new := [one for one in before if one not in kept and _names(one, ast.Store) & wanted]:
        kept += new  # a function may read what is given a value after it
        wanted |= set().union(*(_names(one, ast.Load) for one in new))
    return ast.Module([*(one for one in before if one in kept), last], [])


def _names(node: ast.AST, context: type) -> set[str]:
    """Return the names that a statement reads (`ast.Load`) or gives a value (`ast.Store`)."""
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, context)}
    if context is ast.Store:
        if isinstance(node, ast.FunctionDef):
            found = {node.name}
        for one in ast.walk(node):
            if isinstance(one, ast.Import | ast.ImportFrom):
                found |= {(alias.asname or alias.name).partition(".")[0] for alias in one.names}
            if isinstance(one, ast.Subscript | ast.Attribute) and isinstance(one.ctx, ast.Store):
                found |= {inner.id for inner in ast.walk(one.value) if isinstance(inner, ast.Name)}
    return found


def steps(notebook: str) -> dict[str, list[float]]:
    """Return the processor seconds of each step, by slider."""
    statements = needed(NOTEBOOKS / f"{notebook}.ipynb")
    if statements is None:
        raise SystemExit(f"{notebook} has no figure under sliders")
    os.environ[SERVED] = notebook  # as in JupyterLab
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(statements, notebook, "exec"), names)
    live, took = names[MARK], {}
    for name, slider in live.sliders.items():  # type: ignore[attr-defined]
        took[name] = []
        for value in STEPS[name]:
            begin = time.process_time()
            slider.value = value
            took[name].append(time.process_time() - begin)
            if "alert" in live._note.value:  # type: ignore[attr-defined]
                raise SystemExit(live._note.value)  # type: ignore[attr-defined]
    return took


if __name__ == "__main__":
    print(json.dumps(steps(sys.argv[1])))
