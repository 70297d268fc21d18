"""Which episodes the page shows: found by rule among all seeds, not by eye.

The rules look at one number a seed: how much larger the share of right beliefs is with the first policy than
with the second, on average over the episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from envprobe_core import metrics
from envprobe_core.cells import make_cell
from envprobe_core.errors import InputError
from envprobe_core.experiments import (
    DEFAULT_SEEDS,
    PROTOCOLS,
    Names,
    find_protocols,
    names,
    read_seeds,
    record,
)
from envprobe_core.figures import WORLD_TITLES, policy_title
from envprobe_core.markup import signed
from envprobe_core.player.pairs import Setting, record_pair
from envprobe_core.worlds import WORLDS, make_world

if TYPE_CHECKING:
    import pandas as pd

AHEAD, MIDDLE, BEHIND = "ahead", "middle", "behind"
RULES = (AHEAD, MIDDLE, BEHIND)


@dataclass(frozen=True)
class Choice:
    """An episode that a rule picked, and the difference that it was picked for."""

    protocol: str
    world: str
    rule: str
    seed: int
    difference: float


def pair_of(policies: Names) -> tuple[str, str]:
    """Return the first two policies of a text.

    Raises:
        InputError: if there are not two different ones.
    """
    given = tuple(dict.fromkeys(names(policies)))
    if len(given) < 2:
        raise InputError(f"policies {policies!r}: the player compares two; name two, as in 'simple periodic'")
    return given[0], given[1]


def load_gaps(
    policies: Names = "simple periodic",
    worlds: Names = tuple(WORLDS),
    regime: str = "S2",
    protocols: Names = PROTOCOLS,
    profile: str = "typical",
    seeds: str = DEFAULT_SEEDS,
) -> pd.DataFrame:
    """Compare two policies seed by seed.

    Args:
        policies: names; the first two are compared.
        worlds: names.
        regime: its name.
        protocols: names, with or without switches turned.
        profile: the agent's.
        seeds: `FIRST:PAST`, or `default` for each cell's own.

    Returns:
        One row a protocol, world and seed: `protocol world regime profile policy other seed mean_policy
        mean_other difference`; means are over t = 0..steps of the share of right beliefs.
    """
    import pandas as pd

    pair, chosen, parts = pair_of(policies), read_seeds(seeds), []
    for protocol in find_protocols(protocols):
        for world in names(worlds):
            cells = [make_cell(world, policy, regime, protocol, profile) for policy in pair]
            drawn = cells[0].default_seeds() if chosen is None else chosen
            fields = make_world(world, cells[0].regime, protocol).fields
            means: list[list[np.ndarray]] = [[], []]
            for cell, _, recording in record(cells, [drawn, drawn]):
                right = metrics.right_fields(recording.belief, recording.gold)
                lived = np.arange(right.shape[1])[None, :] <= recording.steps[:, None]
                mean = (right * lived).sum(axis=1) / (fields * (recording.steps + 1))
                means[cells.index(cell)].append(mean)
            first, second = (np.concatenate(blocks) for blocks in means)
            parts.append(
                pd.DataFrame(
                    {"protocol": protocol.name, "world": world, "regime": regime, "profile": profile}
                    | {"policy": pair[0], "other": pair[1], "seed": drawn}
                    | {"mean_policy": first, "mean_other": second, "difference": first - second}
                )
            )
    return pd.concat(parts, ignore_index=True)


def choose(gaps: pd.DataFrame, rule: str) -> Choice:
    """Pick a seed of one protocol and world by a rule; of equals the lowest seed.

    Args:
        gaps: rows of `load_gaps`, of one protocol and world.
        rule: `ahead`, the largest difference; `behind`, the smallest; `middle`, the (lower) median.
    """
    if rule == AHEAD:
        ordered = gaps.sort_values(["difference", "seed"], ascending=[False, True])
    else:
        ordered = gaps.sort_values(["difference", "seed"])
    row = ordered.iloc[(len(gaps) - 1) // 2 if rule == MIDDLE else 0]
    return Choice(str(row["protocol"]), str(row["world"]), rule, int(row["seed"]), float(row["difference"]))


def choose_all(gaps: pd.DataFrame) -> list[Choice]:
    """Pick by every rule in every world under the first protocol, and the median under the others."""
    first = gaps["protocol"].iloc[0]
    return [
        choose(part, rule)
        for (protocol, _), part in gaps.groupby(["protocol", "world"], sort=False)
        for rule in (RULES if protocol == first else (MIDDLE,))
    ]


def record_choices(gaps: pd.DataFrame, choices: Sequence[Choice]) -> list[dict[str, Any]]:
    """Record the chosen episodes for the player, with their group and label in its menu."""
    row = gaps.iloc[0]
    policies = (str(row["policy"]), str(row["other"]))
    return [
        record_pair(
            Setting(
                choice.world, policies, choice.seed, str(row["regime"]), choice.protocol, str(row["profile"])
            )
        )
        | {
            "group": f"{WORLD_TITLES[choice.world]}, protocol {choice.protocol}",
            "label": f"{rule_words(choice.rule, policies[0])} ({signed(choice.difference)}): "
            f"seed {choice.seed}",
        }
        for choice in choices
    ]


def rule_words(rule: str, policy: str) -> str:
    """Say what a rule looks for."""
    title = policy_title(policy)
    return {
        AHEAD: f"{title} best against the other",
        MIDDLE: "the median seed",
        BEHIND: f"{title} worst against the other",
    }[rule]
