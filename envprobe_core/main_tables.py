"""The tables of the section on main results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.averages import mean_by
from envprobe_core.figures import STRATUM_TITLES, policy_title
from envprobe_core.markup import EMPTY, FIXED, UNBROKEN, Table, bracket, number, p_value, percent, signed
from envprobe_core.measures import useful_probe_rate
from envprobe_core.tables import badge, show_ledger
from envprobe_core.worlds import WORLDS

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "show_gains",
    "show_information",
    "show_ledger",
    "show_levels",
    "show_policies",
    "show_success",
]
SHORT = {"tooldag": "tools", "objectstate": "rooms", "graphnav": "graph"}


_NAMES = {"simple": "Simple", "periodic": "Periodic", "cd": "$c{+}d$", "minus-u": "$-u$"}


def _comparison(row: pd.Series) -> str:
    """Name a row of the paper's table, with no break inside a policy's name."""
    return f"**{STRATUM_TITLES[row['stratum']]}:** {_NAMES[row['arm']]} against {_NAMES[row['reference']]}"


def show_gains(comparisons: pd.DataFrame) -> Table:
    """Show the accuracy part of the paper's first table, and ours below each of its rows.

    Args:
        comparisons: from `comparisons.load_comparisons`.
    """
    rows = []
    for _, group in comparisons.groupby("claim", sort=False):
        first = group.iloc[0]
        rows.append(
            [
                _comparison(first),
                "*printed*",
                number(first["paper_method_accuracy"], 3),
                number(first["paper_reference_accuracy"], 3),
                signed(first["paper_value"]),
                bracket(first["paper_low"], first["paper_high"]),
                EMPTY,
                f"<{FIXED}.001" if first["paper_accuracy_p"] == 0.001 else p_value(first["paper_accuracy_p"]),
                EMPTY,
                EMPTY,
            ]
        )
        for _, row in group.iterrows():
            rows.append(
                [
                    "",
                    f"`{row['protocol']}`",
                    number(row["method"], 3),
                    number(row["base"], 3),
                    signed(row["estimate"]),
                    bracket(row["low"], row["high"]),
                    bracket(row["low_adjusted"], row["high_adjusted"]),
                    p_value(row["p"]),
                    signed(row["difference"]),
                    badge(row["verdict"]),
                ]
            )
    head = (
        "comparison", "source", "method", "reference", r"$\hat\Delta$", "95% interval", "adjusted", "$p$",
        "ours − printed", "verdict",
    )  # fmt: skip
    caption = (
        "World-state accuracy: every row of the paper's Table 1 as printed, and the same comparison under "
        "each protocol. Levels are shares, differences percentage points."
    )
    return Table("tab-gains", caption, head, rows, "llrrrrrrrl")


def show_success(comparisons: pd.DataFrame) -> Table:
    """Show the task-success part of the paper's first table, with exact McNemar tests.

    Args:
        comparisons: from `comparisons.load_comparisons`.
    """
    rows = []
    for _, group in comparisons.groupby("claim", sort=False):
        first = group.iloc[0]
        method, base = first["paper_method_success_pct"], first["paper_reference_success_pct"]
        p = first["paper_success_mcnemar_p"]
        rows.append(
            [
                _comparison(first),
                "*printed*",
                EMPTY if np.isnan(method) else f"{method:.1f}%",
                EMPTY if np.isnan(base) else f"{base:.1f}%",
                signed(method - base, 1),
                EMPTY,
                EMPTY,
                p_value(p),
                EMPTY,
                EMPTY,
            ]
        )
        for _, row in group.iterrows():
            rows.append(
                [
                    "",
                    f"`{row['protocol']}`",
                    percent(row["success_method"], 1),
                    percent(row["success_base"], 1),
                    signed(row["success_estimate"], 1),
                    number(row["only_arm"], 0),
                    number(row["only_reference"], 0),
                    p_value(row["success_p"]),
                    p_value(row["success_p_adjusted"]),
                    badge(row["success_verdict"]),
                ]
            )
    head = (
        "comparison", "source", "method", "reference", "difference", "only method", "only reference",
        "McNemar $p$", "adjusted", "verdict",
    )  # fmt: skip
    caption = (
        "Task success for the same comparisons: shares of episodes, and the seeds that only one of the two "
        "policies completes."
    )
    return Table("tab-success", caption, head, rows, "llrrrrrrrl")


def show_levels(verdicts: pd.DataFrame) -> Table:
    """Show every level that the paper's first table prints beside ours.

    Args:
        verdicts: of the claims whose name begins with `level-`.
    """
    levels = verdicts[verdicts["claim"].str.startswith("level-")]
    protocols = list(dict.fromkeys(levels["protocol"]))
    rows = []
    for _, group in levels.groupby("claim", sort=False):
        first = group.iloc[0]
        digits = 3 if first["unit"] == "share" else 1
        own = group.set_index("protocol")
        cells = [
            f"{number(own.loc[name, 'estimate'], digits)} ({signed(own.loc[name, 'difference'], digits)}) "
            f"{badge(own.loc[name, 'verdict'])}"
            for name in protocols
        ]
        rows.append([_level(first), number(first["paper_value"], digits), *cells])
    head = ("level", "printed", *(f"`{name}`" for name in protocols))
    caption = (
        "The levels behind the differences: accuracies as shares, task success in percent; ours minus the "
        "printed one in parentheses."
    )
    return Table("tab-levels", caption, head, rows, "lr" + "l" * len(protocols))


def _level(row: pd.Series) -> str:
    """Name a level from its claim: level-simple-procedural, level-success-minus-u."""
    name = row["claim"].removeprefix("level-")
    if name.startswith("success-"):
        return f"task success of {policy_title(name.removeprefix('success-'))}, tool world"
    policy, _, stratum = name.rpartition("-")
    return f"accuracy of {policy_title(policy)}, {STRATUM_TITLES[stratum]}"


def show_information(information: pd.DataFrame) -> Table:
    """Show what EnvProbe-Simple gains over Periodic, and how much of it its answers give.

    Args:
        information: from `comparisons.load_information`.
    """
    rows, last = [], ""
    for _, row in information.iterrows():
        cells = [
            f"{signed(row[name])} {bracket(row[f'{name}_low'], row[f'{name}_high'])}"
            for name in ("gain", "placebo_gain", "information", "terminal_gain")
        ]
        rows.append(
            [
                f"`{row['protocol']}`" if row["protocol"] != last else "",
                STRATUM_TITLES[row["stratum"]],
                *cells,
                f"{row['identical']} of {row['n']}",
            ]
        )
        last = row["protocol"]
    head = (
        "protocol", "worlds", "Simple − Periodic", "Placebo − Periodic", "Simple − Placebo",
        "Simple − Periodic, terminal", "pairs equal",
    )  # fmt: skip
    caption = (
        "How much of a gain is information: differences in percentage points with 95% intervals, and the "
        "pairs in which Simple and Placebo score the same."
    )
    return Table("tab-information", caption, head, rows, "llrrrrr")


def show_policies(grid: pd.DataFrame, resamples: int) -> list[Table]:
    """Show what every policy achieves and how it spends its probes, one table a protocol.

    Args:
        grid: episodes of all policies.
        resamples: bootstrap resamples, for the width of the intervals in the caption.
    """
    tables = []
    for place, protocol in enumerate(dict.fromkeys(grid["protocol"])):
        episodes = grid[grid["protocol"] == protocol]
        half = _widest(episodes, resamples)
        rows = []
        for policy in dict.fromkeys(episodes["policy"]):
            own = episodes[episodes["policy"] == policy]
            rows.append([_short(policy), *_policy_cells(own)])
        worlds = [SHORT[world] for world in WORLDS]
        head = (
            "policy",
            *(f"$A_H$ {world}" for world in worlds),
            *(f"success {world}" for world in worlds),
            "probes",
            "useful",
            "repeated",
            *(f"$\\tau_c$ {world}" for world in worlds),
        )
        caption = (
            f"Every policy under `{protocol}`, {_episodes(episodes)} a cell. 95% intervals of $A_H$ reach "
            f"at most {number(half, 3)} to either side."
        )
        align = "l" + "r" * (len(head) - 1)
        tables.append(Table(f"tab-policies-{place + 1}", caption, head, rows, align))
    return tables


def _short(policy: str) -> str:
    """Name a policy in a narrow column: Simple for EnvProbe-Simple, $-c$ for Simple without c."""
    if policy.startswith("minus-"):
        return f"Simple, $-{policy[-1]}$".replace(" ", FIXED)
    return policy_title(policy).removeprefix("EnvProbe-").replace(" ", FIXED).replace("-", UNBROKEN)


def _episodes(episodes: pd.DataFrame) -> str:
    count = episodes.groupby(["world", "policy"]).size().max()
    return f"{count:,} episodes"


def _widest(episodes: pd.DataFrame, resamples: int) -> float:
    """Return the farthest that an interval of mean accuracy reaches from its mean."""
    means = mean_by(episodes, "accuracy", ("world", "policy"), resamples=resamples)
    reach = np.maximum(means["mean"] - means["low"], means["high"] - means["mean"])
    return float(reach.max())


def _policy_cells(own: pd.DataFrame) -> list[str]:
    """Return a policy's cells, in the order of the table's columns."""
    worlds = [own[own["world"] == world] for world in WORLDS]
    fired = own["probes"].to_numpy()
    useful = useful_probe_rate(own["useful"].to_numpy(), fired)
    repeated = useful_probe_rate(own["repeated_probes"].to_numpy(), fired)
    some = fired > 0
    return [
        *(number(world["accuracy"].mean(), 3) for world in worlds),
        *(percent(world["success"].mean()) for world in worlds),
        number(fired.mean(), 1),
        percent(useful[some].mean()) if some.any() else EMPTY,
        percent(repeated[some].mean()) if some.any() else EMPTY,
        *(
            f"{number(w['collapse_onset'].mean(), 1)}{FIXED}({w['collapse_onset'].isna().sum()})"
            for w in worlds
        ),
    ]
