"""Sphinx extension: where a section can be opened as a notebook. Links only; a page asks nobody for anything.

The repository's address is `repository: url:` in `_config.yml`, and `branch` beside it. Without an address a
page offers its own notebook as a download, and no more.
"""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective

import envprobe_core

BINDER = "https://mybinder.org/v2/gh/{place}/{branch}?urlpath=lab/tree/notebooks/{section}.ipynb"
COLAB = "https://colab.research.google.com/github/{place}/blob/{branch}/notebooks/{section}.ipynb"
_GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?$")


def repository(config: Config) -> tuple[str, str]:
    """Return owner and name on GitHub, empty if none is set, and the branch."""
    match = _GITHUB.match(config.html_theme_options.get("repository_url") or "")
    return match[1] if match else "", config.html_theme_options.get("repository_branch") or "HEAD"


class BinderAddress(SphinxDirective):
    """``{binder-address} SECTION``: the address for this repository, or the pattern to fill in."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A block to copy from."""
        place, branch = repository(self.config)
        text = BINDER.format(place=place or "OWNER/REPOSITORY", branch=branch, section=self.arguments[0])
        return [nodes.literal_block(text, text, language="text")]


def add_links(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], _: object) -> None:
    """Give a section's page what opens it elsewhere (event ``html-page-context``)."""
    section = pagename.removeprefix("executed/")
    context["launch"] = {}
    if section != pagename:
        place, branch = repository(app.config)
        known = {"place": place, "branch": branch, "section": section}
        context["launch"] = {
            "notebook": context["pathto"](f"_sources/{pagename}.ipynb", 1),
            "file": f"{section}.ipynb",
            "links": {"Binder": BINDER.format(**known), "Colab": COLAB.format(**known)} if place else {},
            "clone": f"https://github.com/{place}" if place else "",
        }


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("binder-address", BinderAddress)
    app.connect("html-page-context", add_links)
    return {"version": envprobe_core.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
