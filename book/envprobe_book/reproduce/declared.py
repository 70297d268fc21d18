"""Parameters of an open notebook, checked before it computes: JupyterLab, papermill, `jupyter execute`.

`envprobe reproduce` checks what a reader gives before a kernel starts. Every other door only changes the
notebook's text: papermill adds a cell ``# Parameters`` below the declaration, a reader edits the declaration.
So the import of `envprobe_book`, with which every section begins, makes the model of the declaration that the
kernel has run, and holds the kernel's values to it; and so does each cell that is run after either changed.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from envprobe_book.reproduce.parameters import check, read_parameters
from envprobe_core.errors import InputError

INJECTED = "# Parameters"
"""How the cell begins that papermill adds, unless it is told otherwise."""
_SET = re.compile(r"^(\w+) = ", re.MULTILINE)  # a line of such a cell


def declares(source: str) -> bool:
    """Whether a cell is one of parameters: each line says what is accepted.

    >>> declares("n: int = 3  # how many; accepts 1..10"), declares("n = 3")
    (True, False)
    """
    lines = [line for line in source.splitlines() if line.strip()]
    return bool(lines) and all("; accepts " in line for line in lines)


def check_history(cells: Sequence[str], values: Mapping[str, Any]) -> None:
    r"""Check what stands in a kernel against the last declaration among the cells that it has run.

    Args:
        cells: texts in the order in which they were run.
        values: the kernel's variables.

    Raises:
        InputError: for an injected name that is not declared, or a value that is not accepted.

    >>> check_history(["n: int = 3  # how many; accepts 1..10", "# Parameters\nm = 4"], {"n": 3, "m": 4})
    Traceback (most recent call last):
    envprobe_core.errors.InputError: unknown parameter 'm' of this notebook; accepted: n
    """
    places = [place for place, cell in enumerate(cells) if declares(cell)]
    if not places:
        return
    model = read_parameters(cells[places[-1]], "this notebook")
    injected = [cell for cell in cells[places[-1] + 1 :] if cell.lstrip().startswith(INJECTED)]
    names = {
        name for cell in injected for name in _SET.findall(cell)
    } | model.model_fields.keys() & values.keys()
    check(model, {name: values.get(name) for name in sorted(names)})


class ParametersChecked:
    """A step of IPython's, before each cell: one that follows unchecked parameters is refused if they are."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.checked = 0  # cells of the history up to which all was in order

    def check(self) -> None:
        """Check the parameters if any were set since they last were, and are not being set by this cell."""
        *done, current = self.shell.history_manager.input_hist_raw
        if _sets(current):  # which may mend what was refused
            return
        if any(map(_sets, done[self.checked :])):
            check_history(done, self.shell.user_ns)
        self.checked = len(done)

    def visit(self, tree: ast.AST) -> ast.AST:
        """A cell as it is."""
        from IPython.core.error import InputRejected

        try:
            self.check()
        except InputError as error:
            raise InputRejected(str(error)) from None
        return tree


def _sets(source: str) -> bool:
    return declares(source) or source.lstrip().startswith(INJECTED)


def check_this_notebook() -> None:
    """Check the parameters of the notebook that this process is the kernel of, now and from here on.

    Nothing happens elsewhere, or where the notebook declares none.

    Raises:
        InputError: for a name that is not declared, or a value that is not accepted.
    """
    from IPython import get_ipython

    if (shell := get_ipython()) is None:
        return
    kept = [one for one in shell.ast_transformers if type(one).__name__ == ParametersChecked.__name__]
    if not kept:
        shell.ast_transformers.append(ParametersChecked(shell))
    (kept or shell.ast_transformers[-1:])[0].check()
