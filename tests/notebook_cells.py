"""What a notebook's cells define, without what they run: a section's own functions can be tested."""

import ast
import json
from types import SimpleNamespace

from envprobe_core.sources import ROOT


def definitions(notebook, *ids, **given):
    """Return a notebook's parameters, and imports, functions and constants (in capitals) of some cells.

    The names `given` stand for what further cells would have made.
    """
    cells = json.loads((ROOT / "notebooks" / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = {cell["id"]: "".join(cell["source"]) for cell in cells}
    exec(
        next("".join(cell["source"]) for cell in cells if "parameters" in cell["metadata"].get("tags", ())),
        given,
    )
    for name in ids:
        body = [
            node
            for node in ast.parse(sources[name]).body
            if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)
            or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).isupper())
        ]
        exec(compile(ast.Module(body, []), f"{notebook}, cell {name}", "exec"), given)
    return SimpleNamespace(**given)
