"""Episodes that a rule chooses, with what a page says of them: typical ones, the furthest, one that helps.

An episode chosen by eye can be made to prove anything. Each of these follows from the seeds' own numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from envprobe_book.pages.decision import step_to_tell
from envprobe_book.pages.markup import signed
from envprobe_book.widgets.player import record_pair
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import in_words
from envprobe_core.worlds import WORLDS

HERE = "This page"  # the menu's group of what a page itself has chosen


@dataclass(frozen=True)
class Chosen:
    """An episode of two policies, and how it was chosen.

    Attributes:
        recorded: from `record_pair`.
        step: whose decision is told.
        how: a clause, "chosen by hand".
        alike: how many of the page's seeds have this seed's difference, none where it is not among them.
        seeds: how many the page has.
    """

    recorded: Mapping[str, Any]
    step: int
    how: str
    alike: int
    seeds: int

    @property
    def about(self) -> str:
        """What is said above its decision."""
        own = self.recorded
        who, where = own["runs"][0]["title"], WORLDS[own["world"]]
        return f"A decision of {who} in {where}, {own['rules']}. Seed {own['seed']} is {self.how}."

    @property
    def offered(self) -> dict[str, Any]:
        """The episode as a menu offers it."""
        seed = self.recorded["seed"]
        return dict(self.recorded) | {
            "group": HERE,
            "label": f"the episode above, seed {seed}",
            "start": self.step,
            "rarity": f"Seed {seed} is {self.how}. {self.alike} of {self.seeds} seeds have its difference.",
        }


def choose(
    gaps: pd.Series,
    pair: Sequence[str],
    world: str,
    protocol: str,
    seed: int = -1,
    step: int = -1,
    **setting: Any,
) -> Chosen:
    """The episode that a page opens with: the typical one of its seeds, or the one that is asked for.

    Args:
        gaps: how far the first of the pair ends from the second, by protocol, world and seed.
        pair: a policy or two.
        world: of the episode.
        protocol: of the episode.
        seed: of the episode; -1 for the typical one.
        step: whose decision is told; -1 for the first that is worth it.
        setting: of the recording, as `record_pair` takes it.
    """
    own, how = gaps[protocol, world], "chosen by hand"
    if seed < 0:
        seed, titles = typical(own), [POLICIES[name].title for name in pair]
        how = f"the median of {len(own)}, by how far {titles[0]} ends from {titles[-1]}"
    recorded = record_pair(world, pair, seed, protocol=protocol, **setting)
    alike = int((own == own.get(seed)).sum())
    return Chosen(recorded, step_to_tell(recorded["runs"][0], step), how, alike, len(own))


def where_a_probe_helps(episodes: pd.DataFrame, pair: Sequence[str], **setting: Any) -> list[dict[str, Any]]:
    """The lowest seed on which a probe helps the first policy to a goal that the second misses, recorded.

    Args:
        episodes: of the pair in one world under one protocol, with the fact `helped_step`: there a probe
            corrected a wrong belief, and the action of the next step worked.
        pair: two policies.
        setting: of the recording, as `record_pair` takes it.

    Returns:
        That episode, as a menu offers it; nothing where there is no such seed.
    """
    by = episodes.set_index(["policy", "seed"])
    first, second = by.loc[pair[0]], by.loc[pair[-1]]
    fits = first["helped_step"].notna() & first["success"] & ~second["success"]
    if not fits.any():
        return []
    world, protocol = episodes[["world", "protocol"]].iloc[0]
    seed, other = int(fits.idxmax()), POLICIES[pair[-1]].title
    label = f"a probe helps, and {other} does not get there: seed {seed}, 1 of {fits.sum()} such"
    recorded = record_pair(world, pair, seed, protocol=protocol, **setting)
    return [recorded | {"group": HERE, "label": label}]


def typical(gaps: pd.Series) -> int:
    """The lowest seed that has the median of some values, which are indexed by seed.

    >>> typical(pd.Series([2.0, 1.0, 1.0, 0.0], [4, 7, 5, 9]))
    5
    """
    return int(gaps.index[gaps == gaps.quantile(0.5, "lower")].min())


def worth_seeing(gaps: pd.Series, pair: Sequence[str], extremes: str, **setting: Any) -> list[dict[str, Any]]:
    """Recordings of a pair of policies on seeds that a rule chooses, for the menu of the player.

    Args:
        gaps: how far the first ends from the second, in points, by protocol, world and seed.
        pair: two policies.
        extremes: the protocol of which the seeds of the largest gaps are there, too.
        setting: of the recordings, as `record_pair` takes it.

    Returns:
        For each protocol and world the typical seed, with what the menu says of it.
    """
    first, recorded = POLICIES[pair[0]].title, []
    for (rule, world), part in gaps.groupby(level=[0, 1], sort=False):
        own = part.droplevel([0, 1])
        picks = {"a typical seed": typical(own)}
        if rule == extremes:
            picks |= {f"{first} furthest ahead": own.idxmax(), f"{first} furthest behind": own.idxmin()}
        for words, seed in picks.items():
            alike = int((own == own[seed]).sum())
            recorded.append(record_pair(world, pair, int(seed), protocol=rule, **setting) | {
                "group": f"{WORLDS[world]}, {in_words(rule)}",
                "label": f"{words}: seed {seed}, {signed(own[seed], 1)} points",
                "rarity": f"Why this seed: {words}. {alike} of {len(own)} seeds have this difference.",
            })  # fmt: skip
    return recorded
