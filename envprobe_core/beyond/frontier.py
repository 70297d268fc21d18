"""The frontier of accuracy and success: every policy of the paper, and VoI over its weights and budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.analyses.frontier import DIAGNOSTIC, nondominated
from envprobe_core.cells import Cell, find_profile, find_regime, make_cell
from envprobe_core.experiments import DEFAULT_SEEDS, Names, find_protocols, names, read_seeds, run_frame
from envprobe_core.figures import GROUND, POLICY_STYLES, WORLD_TITLES, Drawing, canvas, policy_title, styled
from envprobe_core.markup import EMPTY, Table, Text, code, counted, listed, number, percent, signed
from envprobe_core.policies import Policy, value_policy
from envprobe_core.protocols import parse_protocol
from envprobe_core.sections.paired import ABLATIONS, DEPLOYABLE
from envprobe_core.worlds import WORLDS

if TYPE_CHECKING:
    import pandas as pd

WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
BUDGETS = (0.5, 1.0, 2.0)  # of the paper's B
COMPETING = (*DEPLOYABLE, *ABLATIONS)


def weighted(weight: float) -> Policy:
    """Return VoI with a weight, named after it."""
    return value_policy(f"voi@{weight:g}", f"VoI, $\\lambda = {weight:g}$", weight)


def load_frontier(
    regimes: str, protocols: Names, profile: str = "typical", seeds: str = DEFAULT_SEEDS
) -> pd.DataFrame:
    """Run every policy of the paper, both oracles, and VoI over weights and budgets.

    Returns:
        One row an episode, as `experiments.load_grid`; VoI's policies are named `voi@WEIGHT`.
    """
    agent = find_profile(profile)
    chosen = [weighted(weight) for weight in WEIGHTS]
    cells = []
    for protocol in find_protocols(protocols):
        for regime in names(regimes):
            for world in WORLDS:
                cells += [
                    make_cell(world, policy, regime, protocol, profile)
                    for policy in (*COMPETING, *DIAGNOSTIC)
                ]
                level = find_regime(regime)
                if protocol.answer == "withheld":  # VoI never probes, whatever its weight and budget
                    cells.append(Cell(world, chosen[WEIGHTS.index(0.5)], level, protocol, agent))
                    continue
                cells += [
                    Cell(world, policy, level, protocol, agent, int(level.budget * share))
                    for share in BUDGETS
                    for policy in (chosen if share == 1.0 else chosen[::2])
                ]
    return run_frame(cells, read_seeds(seeds))


def place(frame: pd.DataFrame) -> pd.DataFrame:
    """Average the episodes of every setting.

    Returns:
        One row a protocol, regime, world, policy and budget: these, `weight` (NaN for the paper's policies),
        `share` (of the paper's budget), `accuracy`, `success`, `n`.
    """
    key = ["protocol", "regime", "world", "policy", "budget"]
    found = (
        frame.groupby(key, sort=False)
        .agg(accuracy=("accuracy", "mean"), success=("success", "mean"), n=("seed", "size"))
        .reset_index()
    )
    name = found["policy"].str.partition("@")
    found["weight"] = np.where(name[0] == "voi", name[2], "nan").astype(float)
    usual = {regime: find_regime(regime).budget for regime in found["regime"].unique()}
    shares = {(int(base * share), regime): share for regime, base in usual.items() for share in BUDGETS}
    found["share"] = [shares[key] for key in zip(found["budget"], found["regime"], strict=True)]
    return found


def tell_frame(frame: pd.DataFrame) -> Text:
    """Say whose numbers the page shows."""
    count = int(frame.groupby(["protocol", "world", "policy", "regime", "budget"]).size().max())
    return Text(
        f"The agent on this page is a simulation with the profile `{frame['profile'].iloc[0]}`; no language "
        f"model was called. {len(frame):,} episodes, up to {count} a setting: {len(WORLDS)} worlds in "
        f"{listed(dict.fromkeys(frame['regime']))} under {code(dict.fromkeys(frame['protocol']))}; "
        f"{len(COMPETING)} policies of the paper, {counted(len(DIAGNOSTIC))} oracles, and VoI with "
        f"{counted(len(WEIGHTS))} weights."
    )


def dominance(points: pd.DataFrame) -> pd.DataFrame:
    """Say in every pair and protocol how VoI's points stand to those of the paper, at the budget B.

    Returns:
        One row a protocol, regime and world: `rivals` on the paper's own frontier, how many of them some
        weight of VoI `beats` (matches or exceeds in both means, exceeds in one), which are `unbeaten`, how
        many of VoI's points (`weights`) are `beaten` by a policy of the paper, the `most` accurate and the
        `best` completing policy of the paper,
        VoI's gain over the first in `accuracy` and over the second in `success` (its best weight each, in
        points), and `same`: whether VoI is No-Probe at every weight.
    """
    import pandas as pd

    rows = []
    usual = points[(points["share"] == 1.0) & ~points["policy"].isin(DIAGNOSTIC)]
    for (protocol, regime, world), part in usual.groupby(["protocol", "regime", "world"], sort=False):
        ours, theirs = part[part["weight"].notna()], part[part["weight"].isna()]
        mine, other = (side[["accuracy", "success"]].to_numpy() for side in (ours, theirs))
        front = other[nondominated(other)]
        idle = theirs[theirs["policy"] == "no-probe"][["accuracy", "success"]].to_numpy()
        rows.append(
            {
                "protocol": protocol,
                "regime": regime,
                "world": world,
                "rivals": len(front),
                "beats": int(_beaten(front, mine).sum()),
                "unbeaten": " ".join(theirs["policy"][nondominated(other)][~_beaten(front, mine)]),
                "beaten": int(_beaten(mine, other).sum()),
                "weights": len(mine),
                "most": theirs.loc[theirs["accuracy"].idxmax(), "policy"],
                "best": theirs.loc[theirs["success"].idxmax(), "policy"],
                "accuracy": 100 * (mine[:, 0].max() - other[:, 0].max()),
                "success": 100 * (mine[:, 1].max() - other[:, 1].max()),
                "same": bool((mine == idle).all()),
            }
        )
    return pd.DataFrame(rows)


def _beaten(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Say which points some other point matches or exceeds in both and exceeds in one, [point]."""
    mine, other = points[:, None], others[None]
    return ((other >= mine).all(axis=2) & (other > mine).any(axis=2)).any(axis=1)


@styled
def plot_frontier(points: pd.DataFrame, regime: str) -> Drawing:
    """Draw accuracy against success in a regime: a row a protocol, a column a world."""
    own = points[points["regime"] == regime]
    protocols, worlds = list(dict.fromkeys(own["protocol"])), list(dict.fromkeys(own["world"]))
    figure, panels = canvas(1.75 * len(protocols) + 0.9, rows=len(protocols), columns=len(worlds))
    for line, protocol in zip(panels, protocols, strict=True):
        for axes, world in zip(line, worlds, strict=True):
            _draw(axes, own[(own["protocol"] == protocol) & (own["world"] == world)])
            short = protocol.partition(":")[0]
            axes.set_title(f"{WORLD_TITLES[world].removesuffix('World')}, {short}", loc="left", fontsize=8)
            axes.tick_params(labelsize=7)
            axes.grid()
        line[0].set_ylabel("accuracy $A_H$")
    for axes in panels[-1]:
        axes.set_xlabel("task success")
    figure.legend(handles=_legend(), loc="outside lower center", ncols=3, frameon=False, fontsize=7.5)
    told = "; ".join(
        f"{WORLD_TITLES[row.world]} under {row.protocol}: "
        + ("VoI never probes" if row.same else f"VoI beats {row.beats} of {row.rivals}")
        for row in dominance(own).itertuples()
    )
    alt = (
        f"Accuracy against task success in {regime}, a panel a protocol and world. Of the policies on the "
        f"paper's own frontier: {told}."
    )
    return Drawing(figure, f"beyond-{regime.lower()}", alt)


def _draw(axes: object, part: pd.DataFrame) -> None:
    """Draw one panel: the paper's policies, and a line of VoI over its weights for each budget."""
    style = POLICY_STYLES["voi"]
    for share, line in part[part["weight"].notna()].groupby("share"):
        line = line.sort_values("weight")
        usual = share == 1.0
        axes.plot(  # type: ignore[attr-defined]
            line["success"], line["accuracy"], color=style.colour, marker=style.marker,
            ms=4.5 if usual else 2.5, lw=1.4 if usual else 0.8, alpha=1.0 if usual else 0.6,
            ls="-" if usual else (0, (3, 2)) if share < 1 else (0, (1, 1)),
        )  # fmt: skip
    for row in part[part["weight"].isna()].itertuples():
        mark = POLICY_STYLES[row.policy]
        face = mark.colour if mark.filled else GROUND
        axes.plot(  # type: ignore[attr-defined]
            row.success, row.accuracy, marker=mark.marker, ms=4, color=mark.colour, markerfacecolor=face,
        )  # fmt: skip
    if part["success"].max() == 0:
        axes.set_xticks([0])  # type: ignore[attr-defined]
        axes.set_title("no task is completed", loc="right", fontsize=7)  # type: ignore[attr-defined]


def _legend() -> list[object]:
    from matplotlib.lines import Line2D

    marks: list[object] = []
    for name in (*COMPETING, *DIAGNOSTIC):
        dot = POLICY_STYLES[name].dot(ms=4, label=policy_title(name))
        marks.append(Line2D([], [], **{key: value for key, value in dot.items() if key != "elinewidth"}))
    style = POLICY_STYLES["voi"]
    for title, dashes in (("VoI at $B$", "-"), ("VoI at $B/2$", (0, (3, 2))), ("VoI at $2B$", (0, (1, 1)))):
        marks.append(Line2D([], [], color=style.colour, marker=style.marker, ms=4, ls=dashes, label=title))
    return marks


def show_dominance(found: pd.DataFrame) -> Table:
    """Show how VoI stands to the paper's policies, pair by pair."""
    rows = []
    for row in found.itertuples():
        gains = [EMPTY] * 2 if row.same else [signed(row.accuracy, 1), signed(row.success, 1)]
        rows.append(
            [
                f"`{row.protocol}`",
                f"{row.regime}, {WORLD_TITLES[row.world]}",
                EMPTY if row.same else f"{row.beats} of {row.rivals}",
                EMPTY if row.same else f"{row.beaten} of {row.weights}",
                f"{gains[0]} ({policy_title(row.most)})",
                f"{gains[1]} ({policy_title(row.best)})",
            ]
        )
    caption = (
        "At the paper's budget: how much of the paper's own frontier some weight of VoI beats in both means, "
        "how many of VoI's weights a policy of the paper beats, and the largest accuracy and success of VoI "
        "(over its weights) minus the largest of the paper's policies, which is named; in points. A dash: "
        "VoI never probes."
    )
    head = ("protocol", "pair", "beats", "beaten", "largest accuracy", "largest success")
    return Table("tab-beyond-dominance", caption, head, rows, "llrrrr")


def tell_dominance(found: pd.DataFrame) -> Text:
    """Say where VoI dominates and by how much, and where it does not and why."""
    lines = []
    for protocol in dict.fromkeys(found["protocol"]):
        part = found[found["protocol"] == protocol]
        idle = part[part["same"]]
        if len(idle) == len(part):
            behind = part[part["accuracy"] < 0]
            line = (
                f"* `{protocol}`: VoI never probes and is No-Probe to the last step, since no answer reaches "
                "the agent."
            )
            if len(behind):
                line += (
                    f" In {len(behind)} of {len(part)} pairs some policy of the paper then has the larger "
                    f"accuracy, by {number(-behind['accuracy'].min(), 1)} points at most, and no probe told "
                    "anybody anything: where such a gain comes from is split in [](text-and-code.ipynb)."
                )
            lines.append(line)
            continue
        whole = part[part["beats"] == part["rivals"]]
        short = part[part["beats"] < part["rivals"]]
        ahead = part["success"].map(lambda points: points < 0).sum()
        line = (
            f"* `{protocol}`: in {len(whole)} of {len(part)} pairs VoI beats the whole frontier of the "
            f"paper. Its largest accuracy exceeds the paper's by {signed(part['accuracy'].min(), 1)} to "
            f"{signed(part['accuracy'].max(), 1)} points, its largest success by "
            f"{signed(part['success'].min(), 1)} to {signed(part['success'].max(), 1)}."
        )
        if len(short):
            line += " Unbeaten are " + listed(
                f"{listed(policy_title(name) for name in row.unbeaten.split())} in {WORLD_TITLES[row.world]} "
                f"{row.regime} (largest success of VoI over the paper's largest: {signed(row.success, 1)})"
                for row in short.itertuples()
            )
            line += (
                f". In {counted(int(ahead))} of {len(part)} pairs some policy of the paper completes more "
                "than every weight of VoI: there a step is worth more than any answer that VoI knows how to "
                "ask for."
                if ahead
                else "."
            )
        lines.append(line)
    return Text("\n".join(lines))


def tell_budgets(points: pd.DataFrame) -> Text:
    """Say what half the budget costs VoI, and whether it then still beats the paper's policies."""
    lines = []
    for protocol in dict.fromkeys(points["protocol"]):
        if parse_protocol(protocol).answer == "withheld":
            continue
        own = points[(points["protocol"] == protocol) & ~points["policy"].isin(DIAGNOSTIC)]
        ahead, of, gains = 0, 0, []
        for _, part in own.groupby(["regime", "world"], sort=False):
            half = part[(part["share"] == BUDGETS[0]) & (part["weight"] == 0.5)].iloc[0]
            whole = part[(part["share"] == 1.0) & (part["weight"] == 0.5)].iloc[0]
            rivals = part[part["weight"].isna()]
            ahead += half["accuracy"] > rivals["accuracy"].max()
            gains.append(whole["accuracy"] - half["accuracy"])
            of += 1
        lines.append(
            f"* `{protocol}`: with half the budget VoI (weight ½) is still more accurate than every policy "
            f"of the paper with all of it in {ahead} of {of} pairs ({percent(ahead / of)}); the second half "
            f"adds {signed(100 * min(gains), 1)} to {signed(100 * max(gains), 1)} points."
        )
    return Text(
        "\n".join(lines) if lines else f"Under the {counted(1)} protocol shown no answer is delivered."
    )
