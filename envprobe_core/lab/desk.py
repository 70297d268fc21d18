"""The desk: a folder of one's own in which JupyterLab opens, with copies of the notebooks and of the pages.

What a reader has changed there is never written over.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from envprobe_core.errors import InputError
from envprobe_core.files import read_whole, replacing
from envprobe_core.lab.exercises import LINK, NAME, first_heading, student_copy
from envprobe_core.reproduce.sections import cell_source
from envprobe_core.sources import ROOT

START, SECTIONS, PAGES = "START.ipynb", "sections", "pages"
READ = ("how-to-read", "definitions")  # pages of the book that JupyterLab can show
CONFIG = ".jupyter"  # on JUPYTER_CONFIG_PATH while the lab runs
RECORD = ".laid-out.json"  # file -> SHA-256 of what was put there
SETTINGS = {  # defaults of JupyterLab; a reader's own settings go before them
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Markdown Preview"}},
}
_HELLO = r"""# Start here

An agent keeps a table of beliefs about its world, and before each action it may look at one field
instead. When is a look worth the step that it costs? *EnvProbe* adds up four numbers for each field
and looks where the sum is largest, if it reaches a gate:

$$\rho_i(t) = c_i + s_i(t) + u_i(t) + d_i(t) \ge 1.5 .$$

Run a cell with Shift+Enter. All files of this folder are yours: the next start of the lab leaves
what you have changed as it is. A file that you delete comes back as it was."""
_EPISODE = """**2. Look over the agent's shoulder.** These are its first probes in one episode, and
what it believed of each field. {link} shows whole episodes, step by step."""
_POLICY = """**3. Write a policy of your own**, and see where it comes in. Its score may use the
four numbers and more; {link} goes on from here."""
_ORDER = f"""## What is here, and in which order

The [exercises]({{exercises}}) come without solutions, and with a cell under each that checks the
form of your answer. `{SECTIONS}/` holds the notebook of every page of the book, `{PAGES}/` the
pages to look things up. In the book's order:

"""
_TRY_BUDGET = """\
from envprobe_core import compare, draw, interact, run


def gain(budget, threshold):
    episodes = run(policies="simple periodic", seeds="0:220", budgets=budget, thresholds=threshold)
    points = compare(episodes, "simple", "periodic", resamples=1_000)
    return draw("forest", points, "gain", "gain", x="protocol", panels="stratum", line=0.0,
                label="what probing by score gains over a fixed schedule [points]")


interact(gain)"""
_TRY_EPISODE = """\
from envprobe_core import play

seen = play("tooldag", "simple", seed=3)
seen.assign(rho=seen["c"] + seen["s"] + seen["u"] + seen["d"]).query("probe").head()"""
_TRY_POLICY = """\
from envprobe_core import lab


@lab.policy("what matters next")
def mine(view):
    return view.c + 2 * view.d  # one number a field: the highest is probed, if it is 1.5 or more


contest = lab.compete(mine, seeds="0:60", rivals="periodic cd")
lab.show_leaderboard(lab.leaderboard(contest, resamples=1_000))"""


def lay_out(folder: Path) -> list[str]:
    """Put START, exercises without solutions, notebooks and pages into a folder, made if it is not there.

    Returns:
        The files that were left as their reader has changed them.

    Raises:
        InputError: if the folder is a file, or holds other things than a desk.
    """
    record = folder / RECORD
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder}: a file stands there; give a folder")
    if folder.is_dir() and any(folder.iterdir()) and not record.is_file():
        raise InputError(f"--out {folder}: the folder holds other files; give a new one")
    folder.mkdir(parents=True, exist_ok=True)
    known = _recorded(record)
    kept = []
    for name, text in _files():
        path, digest = folder / name, _digest(text)
        if os.path.lexists(path) and _digest(_read(path)) not in (known.get(name), digest):
            kept.append(name)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial_file:
            partial_file.write_text(text, encoding="utf-8")
        known[name] = digest
    with replacing(record) as partial_file:
        partial_file.write_text(json.dumps(known, indent=1, sort_keys=True), encoding="utf-8")
    return kept


def _recorded(record: Path) -> dict[str, str]:
    """Return the hashes of the files that were laid out, by name; a record that is damaged tells nothing."""
    with suppress(ValueError, RecursionError):
        if isinstance(known := json.loads(_read(record) or "{}"), dict):
            return known
    return {}


def _read(path: Path) -> str:
    """Return a file's text; of what is none, nothing."""
    with suppress(OSError, ValueError):
        return read_whole(path).decode()
    return ""


def _digest(text: str) -> str:
    """Return the hash of a file, of a notebook without what JupyterLab adds when it is opened and saved."""
    try:
        cells = json.loads(text)["cells"]
        text = json.dumps([(one["cell_type"], cell_source(one), one.get("outputs")) for one in cells])
    except (ValueError, KeyError, TypeError, RecursionError):
        pass  # no notebook, or none any more: all of it counts
    return hashlib.sha256(text.encode()).hexdigest()


def _files() -> Iterator[tuple[str, str]]:
    """Yield every file of the desk with its text."""
    sources = {path.stem: path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
    books = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in sources.items()}
    pages = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "book").glob("*.md"))}
    titles = {name: first_heading(cell_source(book["cells"][0])) for name, book in books.items()}
    titles |= {name: first_heading(text) for name, text in pages.items()}
    places = {name: f"{SECTIONS}/{name}.ipynb" for name in books} | {NAME: f"{NAME}.ipynb"}
    places |= {name: f"{PAGES}/{name}.md" for name in READ}
    linked = partial(_linked, titles=titles, places=places)
    yield START, _text({"cells": _start(titles, places), "metadata": books[NAME]["metadata"]})
    for name, book in books.items():
        shown = student_copy(book) if name == NAME else book
        up = "" if name == NAME else "../"
        cells = [
            cell | {"source": linked(cell_source(cell), up=up)} if cell["cell_type"] == "markdown" else cell
            for cell in shown["cells"]
        ]
        yield places[name], _text(shown | {"cells": cells})
    for name in READ:
        yield places[name], linked(pages[name], up="../")
    yield f"{CONFIG}/labconfig/default_setting_overrides.json", json.dumps(SETTINGS, indent=1) + "\n"


def _text(notebook: Mapping[str, Any]) -> str:
    whole = {"nbformat": 4, "nbformat_minor": 5, **notebook}
    return json.dumps(whole, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _linked(text: str, titles: Mapping[str, str], places: Mapping[str, str], up: str) -> str:
    """Let a page's links lead to where the desk has their targets; those that it has not keep their words."""

    def link(match: re.Match[str]) -> str:
        words, name = match[1] or titles.get(match[2], match[2]), match[2]
        return f"[{words}]({up}{places[name]})" if name in places else words

    return LINK.sub(link, text)


def _start(titles: Mapping[str, str], places: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the cells of START: what is here, in the order of the book, and three things to try."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    order = []
    for part in toc["parts"]:
        names = [Path(chapter["file"]).name for chapter in part["chapters"]]
        links = [f"[{titles[name]}]({places[name]})" for name in names if name in places]
        order.append(f"* **{part['caption']}**: {' · '.join(links)}")
    texts = [
        ("markdown", _HELLO),
        (
            "markdown",
            "## Three things to try\n\n**1. Move the budget and the gate.** Does probing still pay?",
        ),
        ("code", _TRY_BUDGET),
        ("markdown", _EPISODE.format(link=f"[{titles['one-episode']}]({places['one-episode']})")),
        ("code", _TRY_EPISODE),
        ("markdown", _POLICY.format(link=f"[{titles['your-policy']}]({places['your-policy']})")),
        ("code", _TRY_POLICY),
        ("markdown", _ORDER.format(exercises=places[NAME]) + "\n".join(order)),
    ]
    return [
        {"id": f"start-{count}", "cell_type": kind, "metadata": {}, "source": text}
        | ({"execution_count": None, "outputs": []} if kind == "code" else {})
        for count, (kind, text) in enumerate(texts)
    ]
