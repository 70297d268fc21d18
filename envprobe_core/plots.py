"""What several figures of results share: the mark of a printed number, and long names."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims.printed import paper_value
from envprobe_core.environments import idle
from envprobe_core.figures import (
    GREY,
    GROUND,
    INK,
    OTHER_DASHES,
    POLICY_STYLES,
    PROTOCOL_DASHES,
    STRATA,
    WORLD_TITLES,
    Drawing,
    canvas,
    interval,
    policy_title,
    styled,
)
from envprobe_core.markup import listed, number, signed
from envprobe_core.measures import COLLAPSE
from envprobe_core.worlds import WORLDS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

PRINTED = {"color": INK, "marker": "d", "markerfacecolor": GROUND, "linestyle": "none", "elinewidth": 1.2}


def folded(name: str) -> str:
    """Break the name of a protocol with switches turned after each of them."""
    return (
        name.replace(":", ":\n", 1).replace("ours:\n", "ours: ", 1).replace(",", ",\n")
        if "=" in name
        else name
    )
