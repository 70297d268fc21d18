"""What several figures of results share: the mark of a printed number, and long names."""

from __future__ import annotations

from envprobe_core.figures import GROUND, INK

PRINTED = {"color": INK, "marker": "d", "markerfacecolor": GROUND, "linestyle": "none", "elinewidth": 1.2}


def folded(name: str) -> str:
    """Break the name of a protocol with switches turned after each of them."""
    return (
        name.replace(":", ":\n", 1).replace("ours:\n", "ours: ", 1).replace(",", ",\n")
        if "=" in name
        else name
    )
