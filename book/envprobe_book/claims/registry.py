"""The registry of the public repository's runs, and which of its campaigns a printed row can come from."""

from collections.abc import Sequence

import pandas as pd

from envprobe_book.claims import PaperValue
from envprobe_core.comparing import STRATA
from envprobe_core.policies import POLICIES

CAMPAIGNS = {
    "first": ["spine_primary", "ablation", "revision_cd", "revision_oracle_tw"],
    "second": ["r3_stage_d", "r3_stage_d_ablation", "r3_stage_d_tw"],
    "gate A": ["gate_a"],
}
"""What we call each campaign, and the roles that the registry gives its cells."""
REGIME = "S2"  # of the paper's tables
WITH_A_PROBE = "tab:g4_main"  # the table whose n counts episodes with a probe
APART = 0.01  # two levels of one policy that lie further apart are not those of one campaign


def find_campaigns(
    cells: pd.DataFrame,
    worlds: Sequence[str],
    policies: Sequence[str],
    n: float | None = None,
    *,
    at_least: bool = False,
) -> list[str]:
    """The campaigns that hold policies in worlds.

    Args:
        cells: the registry, a row a cell: `campaign regime world policy n`.
        n: episodes of each policy, all worlds together; by default any number.
        at_least: whether more will do.
    """
    found = []
    for name, roles in CAMPAIGNS.items():
        own = cells[cells["campaign"].isin(roles) & (cells["regime"] == REGIME)]
        counts = own.pivot(index="world", columns="policy", values="n").reindex(worlds, columns=policies)
        enough = n is None or ((counts.sum() >= n) if at_least else (counts.sum() == n)).all()
        if counts.notna().all(axis=None) and enough:
            found.append(name)
    return found


def level_on_tools(numbers: Sequence[PaperValue], source: str, row: str) -> float | None:
    """The accuracy of EnvProbe-Simple on tools that a printed row contains or implies, or None.

    Args:
        numbers: the paper's.
    """
    printed = {(one.source, one.row, one.column): one.value for one in numbers}
    own = {
        column: value for (place, name, column), value in printed.items() if (place, name) == (source, row)
    }
    stratum, _, names = row.partition(": ")
    if stratum == "combined" and "method_accuracy" in own:  # the mean of three worlds
        return 3 * own["method_accuracy"] - 2 * printed[source, f"spatial: {names}", "method_accuracy"]
    if "accuracy" in own or (names.startswith("simple") and "method_accuracy" in own):
        return own.get("accuracy", own.get("method_accuracy"))
    if "accuracy_difference_pct" in own:
        return own["method_accuracy"] - own["accuracy_difference_pct"] / 100
    return None


def find_origins(cells: pd.DataFrame, numbers: Sequence[PaperValue], first_level: float) -> pd.DataFrame:
    """The campaigns that each row of the paper's tables can come from, a row each that names policies.

    Args:
        cells: the registry.
        numbers: the paper's.
        first_level: accuracy of EnvProbe-Simple on tools in the first campaign, as recorded figures imply it.

    Returns:
        `source row stratum n`, `fits` (campaigns, in words) and `why` (`registry`, or `recorded level` where
        the registry alone would leave the first campaign).
    """
    rows = []
    for source, row, n in dict.fromkeys((one.source, one.row, one.n) for one in numbers):
        stratum, _, names = row.partition(": ")
        policies = [name for name in names.split(" vs ") if name in POLICIES]
        if not policies or not source.startswith("tab:"):
            continue
        some = source == WITH_A_PROBE
        tools, spatial = STRATA["procedural"], STRATA["spatial"]
        worlds = STRATA["combined"] if stratum == "unstated" else STRATA.get(stratum, (stratum,))
        also = ""
        if stratum == "combined":  # in each part on its own, since the second campaign has tools alone
            sizes = (1, 1) if some else (n / 3, 2 * n / 3)
            fits = find_campaigns(cells, tools, policies, sizes[0], at_least=some)
            there = find_campaigns(cells, spatial, policies, sizes[1], at_least=some)
            also = "; in rooms and graphs " + " or ".join(there)
        else:
            fits = find_campaigns(cells, worlds, policies, n, at_least=some)
        why = "registry"
        asked = "simple" in policies and worlds != spatial
        level = level_on_tools(numbers, source, row) if asked else None
        if level is not None and "first" in fits and abs(level - first_level) > APART:
            fits, why = [name for name in fits if name != "first"], "recorded level"
        told = ("on tools " if also else "") + " or ".join(fits) + also
        rows.append({"source": source, "row": row, "stratum": stratum, "n": n, "fits": told, "why": why})
    return pd.DataFrame(rows)
