"""Is the order of policies the same from regime to regime? Part of section *stress*."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from envprobe_core.figures import STRATA, WORLD_TITLES, policy_title
from envprobe_core.markup import Table, Text, listed, number
from envprobe_core.regimes import REGIMES
from envprobe_core.sections.paired import DEPLOYABLE

if TYPE_CHECKING:
    import pandas as pd

WORLDS = STRATA["combined"]
ARM = "simple"


def agreement(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return Kendall's tau-a of two lists of scores [item].

    Pairs in the same order minus pairs in the other, over all pairs: 1 is the same order, -1 the opposite;
    tied pairs count 0.
    """
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    i, j = np.triu_indices(len(one), 1)
    return float(np.mean(np.sign(one[i] - one[j]) * np.sign(other[i] - other[j])))


def find_order(frame: pd.DataFrame, reference: str = "S2") -> pd.DataFrame:
    """Order the deployable policies by mean accuracy in every regime, and compare with one regime.

    Returns:
        One row a protocol, world and regime: `protocol world regime best worst simple_rank tau`; ranks count
        from 1, the highest accuracy; `tau` is `agreement` with the reference regime.
    """
    import pandas as pd

    means = frame.groupby(["protocol", "world", "regime", "policy"], sort=False)["accuracy"].mean().unstack()
    means = means[list(DEPLOYABLE)]
    rows = []
    for (protocol, world, regime), own in means.iterrows():
        rows.append(
            {
                "protocol": protocol,
                "world": world,
                "regime": regime,
                "best": str(own.idxmax()),
                "worst": str(own.idxmin()),
                "simple_rank": 1 + int((own > own[ARM]).sum()),
                "tau": agreement(own, means.loc[(protocol, world, reference)]),
            }
        )
    return pd.DataFrame(rows)


def show_order(order: pd.DataFrame, reference: str) -> Table:
    """Show how the order of policies agrees with that of the reference regime."""
    protocols = list(dict.fromkeys(order["protocol"]))
    index = order.set_index(["world", "regime", "protocol"])
    rows = []
    for world in WORLDS:
        for regime in REGIMES:
            row = [f"**{WORLD_TITLES[world]}**" if regime == next(iter(REGIMES)) else "", f"`{regime}`"]
            for protocol in protocols:
                own = index.loc[(world, regime, protocol)]
                row += [policy_title(own["best"]), str(own["simple_rank"]), number(own["tau"])]
            rows.append(row)
    head = ["world", "regime"]
    for protocol in protocols:
        head += [f"`{protocol}`, best", "Simple's rank", r"$\tau$"]
    caption = (
        f"Order of the {len(DEPLOYABLE)} deployable policies by mean accuracy: the best, the rank of "
        rf"EnvProbe-Simple, and Kendall's $\tau$ with the order in `{reference}` (1: the same order)."
    )
    return Table("tab-stress-order", caption, head, rows, "ll" + "lrr" * len(protocols))


def tell_order(order: pd.DataFrame, reference: str) -> Text:
    """Say whether the order of policies is stable, and where Simple stands."""
    lines = []
    for protocol in dict.fromkeys(order["protocol"]):
        own = order[order["protocol"] == protocol]
        rest = own[own["regime"] != reference]
        low = rest.loc[rest["tau"].idxmin()]
        bests = own["best"].value_counts()
        first = listed(f"{policy_title(name)} ({count})" for name, count in bests.items())
        lines.append(
            f"* `{protocol}`: the mean agreement with the order in `{reference}` is "
            f"{number(rest['tau'].mean())} "
            f"(lowest {number(low['tau'])}: {WORLD_TITLES[low['world']]} in `{low['regime']}`). Best of the "
            f"{len(own)} cells: {first}. EnvProbe-Simple ranks from {own['simple_rank'].min()} to "
            f"{own['simple_rank'].max()}, in the median {number(own['simple_rank'].median(), 1)}."
        )
    return Text("\n".join(lines))
