"""What a notebook's cells define, without what they run: a section's own functions can be tested."""

import ast
import json
from types import SimpleNamespace

from envprobe_core.sources import ROOT

KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


def definitions(notebook, *ids, whole=(), **given):
    """Return a notebook's parameters, and imports, functions and constants (in capitals) of some cells.

    Args:
        whole: those of the cells that are run in full.
        given: other values of parameters, and names that further cells would have made.
    """
    cells = json.loads((ROOT / "notebooks" / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = {cell["id"]: "".join(cell["source"]) for cell in cells}
    (parameters,) = (cell["id"] for cell in cells if "parameters" in cell["metadata"].get("tags", ()))
    space = {}
    exec(sources[parameters], space)
    space |= given
    for name in ids:
        body = [
            node
            for node in ast.parse(sources[name]).body
            if name in whole
            or isinstance(node, KEPT)
            or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).strip("()").isupper())
        ]
        exec(compile(ast.Module(body, []), f"{notebook}, cell {name}", "exec"), space)
    return SimpleNamespace(**space)
