r"""Sphinx extension: notebooks hold Markdown that is read elsewhere too, and pages what only MyST has.

GitHub, VS Code, Colab and nbconvert show a directive or a role as its raw text. So a notebook writes a
formula between dollars, with its label as a TeX comment in the first line; a label, and what makes a
statement of a few paragraphs, as a comment, which nobody shows; and a link with words, to where its page
lies in the repository. A page of the book gets what MyST has for them: it numbers formulas, tables and
statements, and names sources::

    $$
    % label: eq-score
    \rho = c\,s\,u\,d
    $$

    <!-- prf:lemma lem-repair -->
    **The repair bound**

    With [the score](#eq-score) of [Shapley (1953)](../book/references.bib#shapley), $G \ge 0$.
    <!-- end -->

    [Definitions](../book/definitions.md), [The same with twice the budget](exercises.ipynb?budget=14)
"""

import json
import re
from typing import Any

from sphinx.application import Sphinx

FORMULA = re.compile(r"^\$\$\n% label: ([\w-]+)\n(.*?)\n\$\$$", re.DOTALL | re.MULTILINE)
STATEMENT = re.compile(
    r"^<!-- (prf:\w+) ([\w-]+)( nonumber)? -->\n\*\*([^\n]*)\*\*\n(.*?)\n<!-- end -->$",
    re.DOTALL | re.MULTILINE,
)
LABEL = re.compile(r"^<!-- label: ([\w-]+) -->$", re.MULTILINE)
PAGE = re.compile(r"(\[[^\]]*\])\(\.\./book/([\w-]+\.md)\)")
PLACE = re.compile(r"(\[[^\]]*\])\((?:\.\./book/[\w-]+\.md|[\w-]+\.ipynb)?#([\w-]+)\)")
SOURCE = re.compile(r"\[(\(?)[^\]]*\]\(\.\./book/references\.bib#(\w+)\)")
SETTING = re.compile(r"\[([^\]]+)\]\(([\w-]+)\.ipynb((?:\?|#review-)[^)]*)\)")
ROLES = {"tab": "numref", "fig": "numref", "eq": "eq", "ex": "ref"}
ROLES |= dict.fromkeys(("ass", "def", "lem", "pro", "thm", "alg"), "prf:ref")
"""What a page says in place of a link's words, by how its target begins."""


def to_myst(text: str) -> str:
    r"""A notebook's Markdown as pages of the book are written, line by line.

    >>> to_myst("See [Definitions](../book/definitions.md).\n\n$$\n% label: eq-a\nx = 1\n$$")
    'See [Definitions](../definitions.md).\n\n```{math}\n:label: eq-a\nx = 1\n```'
    >>> to_myst("[This table](#tab-a) follows [Shapley (1953)](../book/references.bib#shapley).")
    '{numref}`tab-a` follows {cite:t}`shapley`.'
    """
    text = FORMULA.sub(lambda found: f"```{{math}}\n:label: {found[1]}\n{found[2]}\n```", text)
    text = STATEMENT.sub(_statement, text)
    text = LABEL.sub(r"(\1)=", text)
    text = PAGE.sub(r"\1(../\2)", text)
    text = SOURCE.sub(lambda found: f"{{cite:{'p' if found[1] else 't'}}}`{found[2]}`", text)
    text = SETTING.sub(r"{at}`\1 <executed/\2\3>`", text)
    return PLACE.sub(_place, text)


def _statement(found: re.Match[str]) -> str:
    kind, label, unnumbered, title, body = found.groups()
    if unnumbered:
        body = ":nonumber:\n" + body.removeprefix("\n")
    return f"````{{{kind}}} {title}\n:label: {label}\n{body}\n````"


def _place(found: re.Match[str]) -> str:
    words, label = found.groups()
    role = ROLES.get(label.partition("-")[0])
    return f"{{{role}}}`{label}`" if role else f"{words}({label})"


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
