r"""Sphinx extension: notebooks hold Markdown that is read elsewhere too, and pages what only MyST has.

GitHub, VS Code, Colab and nbconvert show a directive as its raw text. So a notebook writes a formula between
dollars, with its label as a TeX comment in the first line, which nobody shows, and links a page of text from
where the notebook lies in the repository. A page of the book gets the labelled formula, and its own link::

    $$
    % label: eq-score
    \rho = c\,s\,u\,d
    $$

    [Definitions](../book/definitions.md)
"""

import json
import re
from typing import Any

from sphinx.application import Sphinx

FORMULA = re.compile(r"^\$\$\n% label: ([\w-]+)\n(.*?)\n\$\$$", re.DOTALL | re.MULTILINE)
PAGE = re.compile(r"(\[[^\]]*\])\(\.\./book/([\w-]+\.md(?:#[\w-]+)?)\)")


def to_myst(text: str) -> str:
    r"""A notebook's Markdown as pages of the book are written, line by line.

    >>> to_myst("See [Definitions](../book/definitions.md).\n\n$$\n% label: eq-a\nx = 1\n$$")
    'See [Definitions](../definitions.md).\n\n```{math}\n:label: eq-a\nx = 1\n```'
    """
    text = FORMULA.sub(lambda found: f"```{{math}}\n:label: {found[1]}\n{found[2]}\n```", text)
    return PAGE.sub(r"\1(../\2)", text)


def read_notebook(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the book's forms into a notebook that is about to be read (event ``source-read``)."""
    if not str(app.env.doc2path(docname)).endswith(".ipynb"):
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = to_myst("".join(cell["source"]))
    source[0] = json.dumps(notebook)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", read_notebook)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
