"""VoI beside the policies of the paper (ours): what it learns, the held-out test, who dominates whom."""

from __future__ import annotations

import numpy as np
import pandas as pd

from envprobe_core.analyses.frontier import COMPETING, beaten_by
from envprobe_core.cells import (
    Cell,
    Names,
    find_profile,
    find_protocols,
    find_regime,
    make_cell,
    names,
    parse_seeds,
)
from envprobe_core.engine.running import Episodes, walk
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES, Policy, find_policy, value_policy
from envprobe_core.statistics import RESAMPLES, bootstrap_means, percentile_interval
from envprobe_core.sweep import run_cells
from envprobe_core.worlds import WORLDS, make_world
from envprobe_core.worlds.base import Floats, Ints

ORACLES = ("oracle", "oracle-tw")  # they see gold: shown, never part of a frontier
VARIANTS = ("voi-success", "voi", "voi-accuracy")
WEIGHTED: dict[float, Policy] = {
    0.0: POLICIES["voi-success"],
    0.25: value_policy("voi@0.25", "VoI, weight 0.25", 0.25),
    0.5: POLICIES["voi"],
    0.75: value_policy("voi@0.75", "VoI, weight 0.75", 0.75),
    1.0: POLICIES["voi-accuracy"],
}
"""VoI by its weight of accuracy."""
AT_ONCE = value_policy("voi-at-once", "VoI for accuracy, spent at once", 1.0, paced=False)
GIVEN = value_policy("voi-given", "VoI, rates given", 0.5, given=True)
KINDS = {"tooldag": ("loaded tools",), "objectstate": ("objects", "doors"), "graphnav": ("keys", "edges")}
MEASURES = ("accuracy", "success")
MARGIN = 1.0  # points: what still counts as no worse
DESIGN = "100000:102000"  # seeds on which VoI's constants and weights were chosen


def watched_rates(cell: Cell, seeds: Ints) -> list[Floats]:
    """Return the hazards that VoI holds at each decision, [step] of [row, kind]."""
    episodes, rates = Episodes(cell, seeds), []

    def decide() -> Ints:
        fields, evidence = episodes.decide(), episodes.block.evidence
        rates.append(evidence.changes / evidence.steps)
        return fields

    walk(episodes, decide)
    return rates


def compare_notes(
    regime: str = "S2", protocols: Names = "paper observed", profile: str = "typical", seeds: str = "0:220"
) -> pd.DataFrame:
    """Let VoI keep its notes through episodes in which nothing is probed: how right are they at the end?

    Returns:
        One row a protocol and world: `protocol world table notes`, the shares of fields that the agent's
        table and VoI's notes have right at the last decision.
    """
    rows = []
    for protocol in find_protocols(protocols):
        for world in WORLDS:
            cell = Cell(world, POLICIES["voi"], find_regime(regime), protocol, find_profile(profile), 0)
            episodes, right = Episodes(cell, parse_seeds(seeds)), np.zeros(2)

            def decide(episodes: Episodes = episodes, right: Floats = right) -> Ints:
                fields, block = episodes.decide(), episodes.block
                width = slice(0, int(episodes.setting.world.fields))
                held = (block.table.value, block.evidence.value)
                right[:] = [(values == block.gold)[:, width].mean() for values in held]
                return fields

            walk(episodes, decide)
            rows.append((protocol.name, world, *right))
    return pd.DataFrame(rows, columns=["protocol", "world", "table", "notes"])


def learned_rates(
    regimes: Names = "S1 S2 S3", protocol: str = "paper", profile: str = "typical", seeds: str = "0:220"
) -> pd.DataFrame:
    """Record the hazards that VoI holds at every step.

    Returns:
        One row a world, regime, kind and step: `world regime kind step true rate rate_low rate_high`; between
        the ends lie the middle eight tenths of the episodes.
    """
    chosen, rows = parse_seeds(seeds), []
    for regime in map(find_regime, names(regimes)):
        for world in WORLDS:
            cell = Cell(world, POLICIES["voi"], regime, find_protocols(protocol)[0], find_profile(profile))
            true = float(make_world(world, regime, cell.protocol).rates.max())
            for step, held in enumerate(watched_rates(cell, chosen)):
                low, high = np.quantile(held, (0.1, 0.9), axis=0)
                rows += [
                    (world, regime.name, kind, step, true, held[:, at].mean(), low[at], high[at])
                    for at, kind in enumerate(KINDS[world])
                ]
    head = ["world", "regime", "kind", "step", "true", "rate", "rate_low", "rate_high"]
    return pd.DataFrame(rows, columns=head)


def load_heldout(
    regimes: Names = "S1 S2 S3",
    protocols: Names = "paper observed",
    profile: str = "typical",
    seeds: str = "200000:202000",
    resamples: int = RESAMPLES,
    budget: int = -1,
    threshold: float = 1.5,
) -> pd.DataFrame:
    """Run VoI and its rivals on held-out seeds and compare them in every pair of world and regime.

    Args:
        seeds: none of them among the design seeds.
        resamples: of each interval; all arms share the resampled seeds, so that pairs stay pairs.
        budget: probes an episode may spend; -1 is the regime's own.

    Returns:
        One row a protocol, regime, world, rival and variant: these, `n`, the paired differences in points
        `accuracy accuracy_low accuracy_high success success_low success_high`, and `passes`: whether neither
        lower end is below `-MARGIN` and one is above 0.

    Raises:
        InputError: for an unknown name, or if a seed was used in the design.
    """
    chosen = parse_seeds(seeds)
    used = np.intersect1d(chosen, parse_seeds(DESIGN))
    if len(used):
        raise InputError(
            f"seed {used[0]} was used to design VoI; a held-out test takes seeds outside {DESIGN}"
        )
    arms, pairs, episodes = list(map(find_policy, (*COMPETING, *VARIANTS))), [], []
    for protocol in find_protocols(protocols):
        for regime in names(regimes):
            for world in WORLDS:
                cells = [
                    make_cell(
                        world, arm.name, regime, protocol, profile, None if budget < 0 else budget,
                        threshold if arm.has_threshold else None,
                    )
                    for arm in arms
                ]  # fmt: skip
                columns = run_cells(cells, chosen)
                episodes += [100.0 * columns[measure].reshape(len(arms), -1) for measure in MEASURES]
                pairs.append({"protocol": protocol.name, "regime": regime, "world": world})
    means = np.concatenate(episodes).mean(axis=1).reshape(len(pairs), len(MEASURES), len(arms))
    draws = bootstrap_means(np.concatenate(episodes).T, resamples=resamples).reshape(resamples, *means.shape)
    parts = []
    for number, pair in enumerate(pairs):
        part = pd.DataFrame(
            pair
            | {"rival": np.repeat(COMPETING, len(VARIANTS)), "variant": np.tile(VARIANTS, len(COMPETING))}
        )
        part["n"] = len(chosen)
        for at, measure in enumerate(MEASURES):
            part[measure] = _gains(means[number, at])
            part[f"{measure}_low"], part[f"{measure}_high"] = percentile_interval(
                _gains(draws[:, number, at])
            )
        lows = part[[f"{measure}_low" for measure in MEASURES]]
        parts.append(part.assign(passes=(lows >= -MARGIN).all(axis=1) & (lows > 0).any(axis=1)))
    return pd.concat(parts, ignore_index=True)


def _gains(values: Floats) -> Floats:
    """Return variant minus rival of arms in the last axis, [..., rival x variant]."""
    rivals, variants = values[..., : len(COMPETING), None], values[..., None, len(COMPETING) :]
    return (variants - rivals).reshape(*values.shape[:-1], -1)


def margins(compared: pd.DataFrame) -> pd.DataFrame:
    """Return VoI's differences from No-Probe and the most accurate rival in every pair of `load_heldout`."""
    mine = compared[compared["variant"] == "voi"]
    nearest = mine.groupby(["protocol", "regime", "world"])["accuracy"].idxmin()
    return mine[(mine["rival"] == "no-probe") | mine.index.isin(nearest)]


def dominance(points: pd.DataFrame) -> pd.DataFrame:
    """Say in every world and regime how VoI's points stand to those of the paper's policies.

    Args:
        points: a row a `protocol regime world policy`, with its mean `accuracy` and `success`; oracles are
            left out.

    Returns:
        One row a protocol, regime and world: `rivals` on the paper's own frontier, how many of them some
        weight of VoI `beats` (matches or exceeds in both means, exceeds in one), how many of VoI's `weights`
        are `beaten` so by a policy of the paper, the `most` accurate and the `best` completing policy of the
        paper, VoI's largest `accuracy` and `success` less theirs, in points, and `idle`: whether VoI is
        No-Probe at every weight.
    """
    rows, key = [], ["protocol", "regime", "world"]
    for place, part in points[~points["policy"].isin(ORACLES)].groupby(key, sort=False):
        by_policy = part.set_index("policy")[list(MEASURES)]
        voi = by_policy.index.str.startswith("voi")
        ours, theirs = by_policy[voi], by_policy[~voi]
        front = theirs[~beaten(theirs, theirs)]
        gains = 100 * (ours.max() - theirs.max())
        rows.append(
            dict(zip(key, place, strict=True))
            | {"rivals": len(front), "beats": int(beaten(front, ours).sum())}
            | {"weights": len(ours), "beaten": int(beaten(ours, theirs).sum())}
            | {"most": theirs["accuracy"].idxmax(), "best": theirs["success"].idxmax()}
            | gains.to_dict()
            | {"idle": bool((ours == theirs.loc["no-probe"]).all(axis=None))}
        )
    return pd.DataFrame(rows)


def beaten(points: pd.DataFrame, others: pd.DataFrame) -> np.ndarray:
    """Say which points some other point matches or exceeds in all columns and exceeds in one, [point]."""
    return beaten_by(points, others).any(axis=1)
