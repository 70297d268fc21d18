"""What VoI learns on its way: hazards by step, what learning costs, and when the probes fall."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.cells import Cell, find_profile, find_regime
from envprobe_core.engine.running import Episodes, walk
from envprobe_core.experiments import Names, find_protocols, names
from envprobe_core.figures import BLUE, ROSE, VERMILLION, WORLD_TITLES, Drawing, canvas, styled
from envprobe_core.markup import Table, Text, bracket, counted, listed, number, signed
from envprobe_core.policies import POLICIES, value_policy
from envprobe_core.statistics import RESAMPLES, paired_bootstrap
from envprobe_core.sweep import parse_seeds, run_cells
from envprobe_core.worlds import WORLDS, make_world
from envprobe_core.worlds.base import Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

KINDS = {
    "tooldag": ("loaded tools",),
    "objectstate": ("objects", "doors"),
    "graphnav": ("keys", "edges"),
}
WEIGHT = 0.5
GIVEN = value_policy("voi-given", "VoI, rates given", WEIGHT, given=True)
_COLOURS = (ROSE, BLUE, VERMILLION)


def watched_rates(cell: Cell, seeds: Ints) -> list[Floats]:
    """Return the hazards that VoI holds at each decision, [step] of [row, kind]."""
    episodes, rates = Episodes(cell, seeds), []

    def decide() -> Ints:
        fields, evidence = episodes.decide(), episodes.block.evidence
        rates.append(evidence.changes / evidence.steps)
        return fields

    walk(episodes, decide)
    return rates


def learned_rates(
    regimes: str = "S1 S2 S3", protocol: str = "paper", profile: str = "typical", seeds: str = "0:220"
) -> pd.DataFrame:
    """Record the hazards that VoI holds at every step.

    Returns:
        One row a world, regime, kind and step: `world regime kind step true mean low high n`; `low` and
        `high` hold the middle eight tenths of the episodes.
    """
    import pandas as pd

    chosen, rows = parse_seeds(seeds), []
    law = find_protocols(protocol)[0]
    for regime in names(regimes):
        for world in WORLDS:
            cell = Cell(world, POLICIES["voi"], find_regime(regime), law, find_profile(profile))
            true = float(make_world(world, cell.regime, law).rates.max())
            for step, held in enumerate(watched_rates(cell, chosen)):
                for kind, title in enumerate(KINDS[world]):
                    low, high = np.quantile(held[:, kind], (0.1, 0.9))
                    rows.append(
                        (world, regime, title, step, true, held[:, kind].mean(), low, high, len(chosen))
                    )
    head = ["world", "regime", "kind", "step", "true", "mean", "low", "high", "n"]
    return pd.DataFrame(rows, columns=head)


@styled
def plot_rates(learned: pd.DataFrame) -> Drawing:
    """Draw the learned hazard by step, a panel a world and kind, a colour a regime, the true rate dashed."""
    panels = list(learned.groupby(["world", "kind"], sort=False))
    figure, axes = canvas(1.55 * len(panels) + 0.6, rows=len(panels), sharex=True)
    told = []
    for panel, ((world, kind), part) in zip(axes[:, 0], panels, strict=True):
        for colour, (regime, own) in zip(_COLOURS, part.groupby("regime", sort=False), strict=False):
            panel.fill_between(own["step"], own["low"], own["high"], color=colour, alpha=0.18, lw=0)
            panel.plot(own["step"], own["mean"], color=colour, label=regime)
            panel.plot(own["step"], own["true"], color=colour, ls=(0, (4, 2)), lw=1.0)
            last = own.iloc[-1]
            told.append(f"{kind} in {regime}: {last['mean']:.2f} at the end, true {last['true']:.2f}")
        panel.set_title(f"{WORLD_TITLES[world]}: {kind}", loc="left")
        panel.set_ylim(bottom=0)
        panel.set_ylabel("rate a step")
        panel.grid()
    axes[-1, 0].set_xlabel("decision step $t$")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    alt = f"The change rate that VoI has learned by each step, and the true one, dashed. {'; '.join(told)}."
    return Drawing(figure, "voi-rates", alt)


def tell_rates(learned: pd.DataFrame) -> Text:
    """Say how near the learned rates come to the true ones by the end."""
    last = learned[learned["step"] == learned.groupby("regime")["step"].transform("max")]
    inside = last[(last["low"] <= last["true"]) & (last["true"] <= last["high"])]
    off = (last["mean"] - last["true"]).abs().mean()
    begun = (learned[learned["step"] == 0]["mean"] - learned[learned["step"] == 0]["true"]).abs().mean()
    below = int((last["mean"] < last["true"]).sum())
    return Text(
        f"At the last step the true rate lies within the middle eight tenths of the episodes in "
        f"{len(inside)} of {len(last)} curves. The mean distance from it is {number(off, 3)}, against "
        f"{number(begun, 3)} before anything was seen. {counted(below).capitalize()} of {len(last)} curves "
        "end below the truth: two changes between two looks count as one, or, if the second undoes the "
        "first, as none."
    )


def price_of_learning(
    regimes: str = "S1 S2 S3",
    protocols: Names = "paper observed",
    profile: str = "typical",
    seeds: str = "0:220",
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Compare VoI with a privileged one that is told the true rates.

    Returns:
        One row a protocol, regime and world: `protocol regime world`, and for accuracy and success the
        difference given − learned in points, `_low` and `_high`.
    """
    import pandas as pd

    chosen, rows = parse_seeds(seeds), []
    cells = [
        Cell(world, policy, find_regime(regime), protocol, find_profile(profile))
        for protocol in find_protocols(protocols)
        for regime in names(regimes)
        for world in WORLDS
        for policy in (GIVEN, POLICIES["voi"])
    ]
    columns = run_cells(cells, chosen)
    for pair in range(len(cells) // 2):
        cell, row = cells[2 * pair], {}
        for measure in ("accuracy", "success"):
            given, learned = columns[measure].reshape(-1, len(chosen))[2 * pair : 2 * pair + 2].astype(float)
            found = paired_bootstrap(100.0 * (given - learned), resamples=resamples)
            row |= {measure: found.mean, f"{measure}_low": found.low, f"{measure}_high": found.high}
        rows.append({"protocol": cell.protocol.name, "regime": cell.regime.name, "world": cell.world} | row)
    return pd.DataFrame(rows)


def show_price(price: pd.DataFrame) -> Table:
    """Show what knowing the true rates would add."""
    rows = [
        [
            f"`{row['protocol']}`",
            f"{row['regime']}, {WORLD_TITLES[row['world']]}",
            signed(row["accuracy"], 1),
            bracket(row["accuracy_low"], row["accuracy_high"], 1),
            signed(row["success"], 1),
            bracket(row["success_low"], row["success_high"], 1),
        ]
        for _, row in price.iterrows()
    ]
    caption = "VoI that is told the true rates (privileged) minus VoI that learns them, in points, paired."
    head = ("protocol", "pair", "accuracy", "95% interval", "success", "95% interval")
    return Table("tab-voi-price", caption, head, rows, "llrrrr")


def tell_price(price: pd.DataFrame) -> Text:
    """Say whether knowing the rates would help."""
    parts = []
    for measure in ("accuracy", "success"):
        better = int((price[f"{measure}_low"] > 0).sum())
        worse = int((price[f"{measure}_high"] < 0).sum())
        ends = price[measure]
        parts.append(
            f"in {measure} it does better in {better} and worse in {worse} of {len(price)} pairs "
            f"(from {signed(ends.min(), 1)} to {signed(ends.max(), 1)} points)"
        )
    told = f"The policy that is told the rates is no deployable policy; {listed(parts)}."
    if (price[["accuracy_high", "success_high"]] < 0).any(axis=None):
        told += (
            " Where it does worse the rate is not what is wrong: what the plan needs is estimated by rough "
            "formulas, and the right number need not be the best one in them."
        )
    return Text(told)
