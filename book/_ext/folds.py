"""Sphinx extension: what is folded, and where the fold stands.

Sections whose title begins with *More:* are folded, text and cells together. A reader opens one by its title,
a link or a search that leads into it; print shows all (``reader.js``). The take-away that ends a page stands
below the folds. In a notebook such a section is a heading as any other.

The folded code of a cell stands below what it shows: a reader comes for the answer. Code that shows nothing
joins the fold below it, and so does code that says a sentence: no link stands between the sentences of an
answer. For the same reason the parameters, which begin a notebook, stand in a page below its answer and its
figure, before the first of its parts; of those that were given other values the page shows these alone.
A cell that is folded as a whole, code and output, keeps its place and its title.
"""

import re
from typing import Any

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx

MORE = "More:"
CLOSING = "take-away"  # class of what is never folded
PARAMETERS, GIVEN = "tag_parameters", "tag_injected-parameters"
"""Classes of cells that say what can be changed, and what was given in place of it."""
SAYING = (nodes.paragraph, nodes.bullet_list)


def fold(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put each such section behind its title (event ``doctree-resolved``)."""
    if app.builder.format != "html":
        return
    for section in list(doctree.findall(nodes.section)):
        title = section.next_node(nodes.title)
        if title is None or title.parent is not section or not title.astext().startswith(MORE):
            continue
        end = next((place for place, part in enumerate(section) if closes(part)), len(section))
        section.insert(end, nodes.raw("", "</details>", format="html"))
        place = section.index(title)
        section.insert(place + 1, nodes.raw("", "</summary>", format="html"))
        section.insert(place, nodes.raw("", '<details class="more-fold"><summary>', format="html"))


def show_first(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put what a cell shows before its folded code (event ``doctree-resolved``)."""
    if app.builder.format != "html":
        return
    waiting: list[nodes.Node] = []  # folded code that shows nothing, which joins the fold below it
    for cell in list(doctree.findall(nodes.container)):
        folded = cell[0] if cell.get("nb_element") == "cell_code" and cell.children else None
        if not isinstance(folded, HideCodeCellNode) or "above-input" not in folded["classes"]:
            continue
        whole = cell["hide_mode"] == "all"  # code and what it shows are one fold, whose title says what it is
        if not whole and _says(cell[1:]) and _folds_later(cell):
            waiting += folded.children
            cell.remove(folded) if len(cell) > 1 else cell.parent.remove(cell)
            continue
        folded.children, waiting = [*waiting, *folded.children], []
        if whole:
            continue
        folded["prompt_show"], folded["prompt_hide"] = "Show the code", "Hide the code"
        if cell[-1].get("nb_element") == "cell_code_output":
            cell.children = [*cell.children[1:], folded]


def show_parameters_later(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the parameters before the first part of a page (event ``doctree-resolved``)."""
    for cell in list(doctree.findall(nodes.container)):
        page = cell.parent
        if not {PARAMETERS, GIVEN} & {*cell["classes"]} or not isinstance(page, nodes.section):
            continue
        if cell not in page.children:  # its values stand in the cell above by now
            continue
        below = cell.next_node(descend=False, siblings=True)
        if PARAMETERS in cell["classes"] and isinstance(below, nodes.container) and GIVEN in below["classes"]:
            block, given = (next(iter(one.findall(nodes.literal_block)), None) for one in (cell, below))
            if block is not None and given is not None:
                text = _with_values(block.astext(), given.astext())
                block.children, block.rawsource = [], text
                block += nodes.Text(text)
                page.remove(below)
        part = next((one for one in page if isinstance(one, nodes.section)), None)
        if part is not None:
            page.remove(cell)
            page.insert(page.index(part), cell)


def _with_values(declared: str, given: str) -> str:
    r"""Lines of parameters with the values that were given in place of their defaults.

    >>> _with_values('n: int = 3  # how many; accepts 1..9', "# Parameters\nn = 4")
    'n: int = 4  # how many; accepts 1..9'
    """
    for name, value in re.findall(r"^(\w+) = (.*)$", given, re.MULTILINE):
        line = re.compile(rf"^({name}: \w+ = ).+?(?=  # )", re.MULTILINE)
        declared = line.sub(lambda found, value=value: found[1] + value, declared)
    return declared


def _says(outputs: list[nodes.Node]) -> bool:
    """Whether all that a cell shows is text, or nothing."""
    shown = [part for one in outputs for part in one.children]
    inner = [part for one in shown for part in (one.children if isinstance(one, nodes.container) else [one])]
    return all(isinstance(part, SAYING) or _is_unseen(part) for part in inner)


def _is_unseen(part: nodes.Node) -> bool:
    """Whether a part is a figure of numbers, which sentences alone show."""
    text = part.astext() if isinstance(part, nodes.raw) else ""
    return 'class="live-figure"' in text and 'class="live-static"' not in text


def _folds_later(cell: nodes.Node) -> bool:
    """Whether one of the cells right below, with no text between them, has folded code."""
    below = cell.next_node(descend=False, siblings=True)
    while isinstance(below, nodes.container) and below.get("nb_element") == "cell_code":
        if _folds(below):
            return True
        below = below.next_node(descend=False, siblings=True)
    return False


def _folds(cell: nodes.Node | None) -> bool:
    """Whether a node is a cell whose code is folded."""
    first = cell[0] if isinstance(cell, nodes.container) and cell.children else None
    return isinstance(first, HideCodeCellNode) and "above-input" in first["classes"]


def closes(part: nodes.Node) -> bool:
    """Whether a part of a section holds the take-away of the page."""
    return any(CLOSING in found["classes"] for found in part.findall(nodes.Admonition))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", fold)
    app.connect("doctree-resolved", show_first)
    app.connect("doctree-resolved", show_parameters_later)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
