"""Section *pareto*: which policies no other beats in accuracy and in completed episodes at once?

Source: the paper's two frontiers (`fig:pareto_proc`, `fig:pareto_spatial`) and what its text says of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from envprobe_core.experiments import DEFAULT_SEEDS, PROTOCOLS, Names, load_grid
from envprobe_core.figures import GREY, GROUND, POLICY_STYLES, STRATA, Drawing, canvas, policy_title, styled
from envprobe_core.markup import Table, Text, bracket, counted, listed, number, percent, signed
from envprobe_core.paper import printed_levels
from envprobe_core.sections.paired import ABLATIONS, DEPLOYABLE, levels
from envprobe_core.sections.report import PRINTED_POINT
from envprobe_core.statistics import RESAMPLES, bootstrap_means

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.lines import Line2D

COMPETING = (*DEPLOYABLE, *ABLATIONS)
DIAGNOSTIC = ("oracle", "oracle-tw")  # they see gold: shown, never part of a frontier
SHOWN = (*COMPETING, *DIAGNOSTIC)
FRONTIERS = ("procedural", "spatial")
DRAWS_AT_ONCE = 2_000
STABLE = 0.95


def load_pareto(
    regime: str = "S2", protocols: Names = PROTOCOLS, profile: str = "typical", seeds: str = DEFAULT_SEEDS
) -> pd.DataFrame:
    """Run every policy and ablation, and the two oracles, in the three worlds."""
    return load_grid(STRATA["combined"], SHOWN, regime, protocols, profile, seeds)


def nondominated(points: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Say which points no other point dominates, [..., point].

    A point dominates another that it matches or exceeds in every coordinate and exceeds in one; of equal
    points none dominates the other.

    Args:
        points: [..., point, coordinate], more is better.
    """
    mine, other = points[..., :, None, :], points[..., None, :, :]
    beaten = (other >= mine).all(axis=-1) & (other > mine).any(axis=-1)
    return ~beaten.any(axis=-1)


def find_frontiers(frame: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Place every policy in the plane of success and accuracy, and find each frontier.

    Args:
        frame: from `load_pareto`.
        resamples: bootstrap resamples.

    Returns:
        One row a protocol, stratum and policy: `protocol stratum policy success success_low success_high
        accuracy accuracy_low accuracy_high n diagnostic nondominated stability beaten_by`. `stability` is the
        share of resamples of the episodes in which the policy is nondominated; `beaten_by` names the policies
        that dominate it. Both and `nondominated` concern deployable policies only (NaN, empty, False).
    """
    accuracy = levels(frame, SHOWN, FRONTIERS, "accuracy", resamples)
    success = levels(frame, SHOWN, FRONTIERS, "success", resamples).drop(columns="n")
    key = ["protocol", "stratum", "policy"]
    both = success.merge(accuracy, on=key, suffixes=("_success", "_accuracy"))
    both.columns = [
        *key, "success", "success_low", "success_high", "accuracy", "accuracy_low", "accuracy_high", "n",
    ]  # fmt: skip
    both["diagnostic"] = both["policy"].isin(DIAGNOSTIC)
    both["nondominated"], both["stability"], both["beaten_by"] = False, np.nan, ""
    for (protocol, stratum), part in both[~both["diagnostic"]].groupby(["protocol", "stratum"], sort=False):
        points = part[["success", "accuracy"]].to_numpy()
        both.loc[part.index, "nondominated"] = nondominated(points)
        both.loc[part.index, "stability"] = _stability(frame, protocol, stratum, resamples)
        both.loc[part.index, "beaten_by"] = [
            " ".join(
                name
                for name, other in zip(part["policy"], points, strict=True)
                if (other >= point).all() and (other > point).any()
            )
            for point in points
        ]
    return both


def _stability(frame: pd.DataFrame, protocol: str, stratum: str, resamples: int) -> np.ndarray:
    """Return the share of resamples in which each competing policy is nondominated, [policy]."""
    chosen = frame[(frame["protocol"] == protocol) & frame["world"].isin(STRATA[stratum])]
    wide = chosen.pivot(index=["world", "seed"], columns="policy", values=["success", "accuracy"])
    columns = [(measure, policy) for policy in COMPETING for measure in ("success", "accuracy")]
    values = wide[columns].to_numpy(dtype=np.float64)
    worlds = wide.index.get_level_values("world").to_numpy(dtype=str)
    draws = bootstrap_means(values, worlds, resamples=resamples).reshape(resamples, len(COMPETING), 2)
    parts = [nondominated(draws[at : at + DRAWS_AT_ONCE]) for at in range(0, resamples, DRAWS_AT_ONCE)]
    return np.concatenate(parts).mean(axis=0)


def opposed(points: npt.NDArray[np.float64]) -> tuple[int, int]:
    """Count the pairs of points that trade one coordinate for the other, and all pairs that differ in both.

    Args:
        points: [point, 2].
    """
    first, second = np.triu_indices(len(points), 1)
    product = np.prod(points[first] - points[second], axis=1)
    return int((product < 0).sum()), int((product != 0).sum())


def printed_points() -> pd.DataFrame:
    """Return the points whose two coordinates the paper prints: `stratum policy accuracy success`."""
    import pandas as pd

    rows = [
        (stratum, policy, printed["accuracy"].value, printed["success_pct"].value / 100)
        for (stratum, policy), printed in printed_levels().items()
        if stratum in FRONTIERS and len(printed) == 2
    ]
    return pd.DataFrame(rows, columns=["stratum", "policy", "accuracy", "success"])


def show_frontier(points: pd.DataFrame, stratum: str) -> Table:
    """Show the coordinates behind one frontier."""
    part = points[points["stratum"] == stratum]
    rows = []
    for row in part.itertuples():
        if row.diagnostic:
            standing, stability = "sees gold", "–"
        elif row.nondominated:
            standing, stability = "nondominated", percent(row.stability)
        else:
            first, *more = row.beaten_by.split()
            rest = f" and {len(more)} more" if more else ""
            standing, stability = f"beaten by {policy_title(first)}{rest}", percent(row.stability)
        rows.append(
            [
                f"`{row.protocol}`",
                policy_title(row.policy),
                number(row.success, 3),
                bracket(row.success_low, row.success_high, 3),
                number(row.accuracy, 3),
                bracket(row.accuracy_low, row.accuracy_high, 3),
                standing,
                stability,
            ]
        )
    head = ("protocol", "policy", "success", "95% interval", "accuracy", "95% interval", "standing", "stable")
    caption = (
        f"Both objectives, {stratum}. *Stable*: the share of bootstrap resamples of the episodes in which "
        f"the "
        "policy is nondominated. Oracles see gold and take no part."
    )
    return Table(f"tab-pareto-{stratum}", caption, head, rows, "llrrrrlr")


@styled
def plot_frontier(points: pd.DataFrame, stratum: str) -> Drawing:
    """Draw one frontier, a panel a protocol: nondominated filled, dominated hollow, the paper's points."""
    protocols = list(dict.fromkeys(points["protocol"]))
    figure, panels = canvas(2.75 * len(protocols) + 0.7, rows=len(protocols), sharex=True)
    printed = printed_points()
    printed = printed[printed["stratum"] == stratum]
    told = []
    for axes, protocol in zip(panels[:, 0], protocols, strict=True):
        part = points[(points["stratum"] == stratum) & (points["protocol"] == protocol)]
        front = part[part["nondominated"]].sort_values(["success", "accuracy"], ascending=[True, False])
        axes.plot(front["success"], front["accuracy"], color=GREY, lw=1.0, zorder=0)
        for row in part.itertuples():
            style = POLICY_STYLES[row.policy]
            error = {
                "xerr": [[row.success - row.success_low], [row.success_high - row.success]],
                "yerr": [[row.accuracy - row.accuracy_low], [row.accuracy_high - row.accuracy]],
            }
            face = style.colour if row.nondominated else GROUND
            axes.errorbar(
                row.success, row.accuracy, **error, **style.dot(markerfacecolor=face, elinewidth=0.7)
            )
        if len(printed):
            axes.plot(printed["success"], printed["accuracy"], **PRINTED_POINT)
        for place, row in enumerate(printed.sort_values("success").itertuples()):
            text, shift = f"printed: {policy_title(row.policy)}", (6, -11 if place % 2 else 4)
            axes.annotate(text, (row.success, row.accuracy), shift, textcoords="offset points", fontsize=7.5)
        axes.set_title(protocol, loc="left")
        axes.set_ylabel("accuracy $A_H$")
        axes.grid()
        names = listed(
            f"{policy_title(r.policy)} ({r.success:.3f}, {r.accuracy:.3f})" for r in front.itertuples()
        )
        told.append(f"under {protocol} nondominated: {names}")
    panels[-1, 0].set_xlabel("task success")
    figure.legend(handles=_legend(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    alt = (
        f"Accuracy against task success of {len(SHOWN)} policies, {stratum}, with intervals on both axes; "
        f"{'; '.join(told)}."
    )
    return Drawing(figure, f"pareto-{stratum}", alt)


def _legend() -> list[Line2D]:
    """Return a filled mark a policy: whether a mark is hollow depends on the panel."""
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], ls="none", marker=style.marker, color=style.colour, label=policy_title(name))
        for name in SHOWN
        if (style := POLICY_STYLES[name])
    ]


def tell_frontier(points: pd.DataFrame, stratum: str) -> Text:
    """Say who is on the frontier, how sure that is, where c+d stands, and whether there is a trade-off."""
    lines = []
    for protocol in dict.fromkeys(points["protocol"]):
        part = points[
            (points["stratum"] == stratum) & (points["protocol"] == protocol) & ~points["diagnostic"]
        ]
        front = part[part["nondominated"]].sort_values("accuracy", ascending=False)
        sure = front[front["stability"] >= STABLE]
        names = listed(f"{policy_title(r.policy)} ({percent(r.stability)})" for r in front.itertuples())
        opposite, pairs = opposed(part[["success", "accuracy"]].to_numpy())
        cd = part[part["policy"] == "cd"].iloc[0]
        line = (
            f"* `{protocol}`: {counted(len(front))} of {counted(len(part))} policies "
            f"{'is' if len(front) == 1 else 'are'} nondominated: {names}, where the percentage is the "
            f"share of "
            f"resamples that agree; {counted(len(sure))} of them in at least {percent(STABLE)}. "
        )
        if cd["nondominated"]:
            line += f"{policy_title('cd')} is among them. "
        else:
            over = cd["beaten_by"].split()
            rival = part[part["policy"].isin(over)].sort_values("accuracy").iloc[-1]
            line += (
                f"{policy_title('cd')} is dominated by {counted(len(over))}, most accurately by "
                f"{policy_title(rival['policy'])} "
                f"({signed(100 * (rival['accuracy'] - cd['accuracy']), 3)} points of "
                f"accuracy, {signed(100 * (rival['success'] - cd['success']), 1)} of success). "
            )
        line += (
            f"Of {pairs} pairs that differ in both, {opposite} trade accuracy for success "
            f"({percent(opposite / pairs)})."
            if pairs
            else "No two policies differ in both."
        )
        lines.append(line)
    return Text("\n".join(lines))


def tell_printed() -> Text:
    """Say which points of the two frontiers the paper prints in full."""
    printed = printed_points()
    lines = []
    for stratum in FRONTIERS:
        part = printed[printed["stratum"] == stratum]
        names = listed(
            f"{policy_title(r.policy)} ({r.success:.3f}, {r.accuracy:.3f})" for r in part.itertuples()
        )
        lines.append(
            f"For the {stratum} frontier the paper prints both coordinates (success, accuracy) of {names}."
            if len(part)
            else f"For the {stratum} frontier the paper prints no point with both coordinates."
        )
    return Text(" ".join(lines))
