"""What the explorer's page says: settings worth trying, each a link with what the grid holds there.

Every number and direction is read from the grid, so the sentences stay true for any seeds, regime or agent.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from envprobe_core.cells import find_regime
from envprobe_core.explorer.encoding import encode
from envprobe_core.explorer.grid import POOL, Grid
from envprobe_core.explorer.readings import Reading
from envprobe_core.figures import WORLD_TITLES, policy_title
from envprobe_core.markup import Html, Text, code, listed, number, numbered, percent
from envprobe_core.policies import THRESHOLD
from envprobe_core.worlds import WORLDS

HIGH_THRESHOLD = 2.5
SAME = 0.0005  # shares that differ by less are told as equal: half of the last digit shown


@dataclass(frozen=True)
class Place:
    """One position of the explorer's controls."""

    world: str
    protocol: str
    policies: tuple[str, ...]
    budget: int
    threshold: float = THRESHOLD

    def link(self, text: str) -> str:
        """Return a link that sets the explorer of the same page to this place."""
        said = {
            "world": self.world,
            "protocol": self.protocol,
            "policies": ",".join(self.policies),
            "budget": str(self.budget),
            "threshold": f"{self.threshold:g}",
        }
        fragment = "&".join(f"{name}={quote(value, safe=',')}" for name, value in said.items())
        return f"[{text}](#{fragment})"


def reading_at(grid: Grid, place: Place, policy: str) -> Reading:
    """Return what the grid holds of one policy at a place of the grid."""
    rows = grid.rows[place.protocol, place.world, policy]
    across = grid.thresholds.index(place.threshold) if rows.shape[1] > 1 else 0
    return grid.readings.record(int(rows[grid.budgets.index(place.budget), across]))


def tell_tries(grid: Grid) -> Html:
    """Suggest four places to go, and say what is found there."""
    protocols = list(dict.fromkeys(protocol for protocol, _, _ in grid.rows))
    tries = [_budget(grid, protocols[0]), _threshold(grid, protocols[0])]
    tries += [_placebo(grid, protocols), _oracle(grid, protocols[0])]
    return numbered(tries)


def _budget(grid: Grid, protocol: str) -> str:
    world, policies = next(iter(WORLDS)), ("no-probe", "periodic", "simple")
    none, usual, most = (
        Place(world, protocol, policies, budget)
        for budget in (0, find_regime(grid.regime).budget, grid.budgets[-1])
    )
    changes = []
    for policy in policies[1:]:
        first, last = (reading_at(grid, place, policy) for place in (none, most))
        moved = [_moved(word, last[word][0] - first[word][0]) for word in ("accuracy", "success")]
        changes.append(f"{policy_title(policy)} {listed(moved)}")
    return (
        f"**What does a probe cost?** Start {none.link('without a budget')} in {WORLD_TITLES[world]} under "
        f"`{protocol}`, pass {usual.link(f'the budget of the paper, B = {usual.budget}')}, and go on "
        f"{most.link(f'to B = {most.budget}')}. From the first to the last, {listed(changes)}."
    )


def _moved(word: str, change: float) -> str:
    if abs(change) < SAME:
        return f"keeps its {word}"
    return f"{'gains' if change > 0 else 'loses'} {number(100 * abs(change), 1)} points of {word}"


def _threshold(grid: Grid, protocol: str) -> str:
    world, budget = next(iter(WORLDS)), find_regime(grid.regime).budget
    places = [Place(world, protocol, ("simple", "minus-d"), budget, at) for at in (THRESHOLD, HIGH_THRESHOLD)]
    found = []
    for place in places:
        reading = reading_at(grid, place, "simple")
        fired = reading["useful"][1]
        early = percent(sum(reading["fires"][:budget]) / fired) if fired else ""
        told = f"{early} of its probes fall within the first {budget} steps" if fired else "it fires none"
        rate = reading["useful_rate"]
        useful = f", and a probing episode finds {percent(rate[0])} of them useful" if rate else ""
        found.append(f"at threshold {place.threshold:g}, {told}{useful}")
    return (
        f"**When does {policy_title('simple')} probe?** In {WORLD_TITLES[world]} under `{protocol}`, watch "
        f"the third plot {places[0].link('at the threshold of the paper')} and "
        f"{places[1].link(f'at {HIGH_THRESHOLD:g}')}: {'; '.join(found)}."
    )


def _placebo(grid: Grid, protocols: Sequence[str]) -> str:
    world, budget = next(iter(WORLDS)), find_regime(grid.regime).budget
    found = []
    for protocol in protocols:
        place = Place(world, protocol, ("no-probe", "simple", "placebo"), budget)
        simple, placebo = (reading_at(grid, place, policy) for policy in ("simple", "placebo"))
        gap = simple["accuracy"][0] - placebo["accuracy"][0]
        ahead = policy_title("simple" if gap > 0 else "placebo")
        told = (
            "every number of the two is the same"
            if simple == placebo
            else f"their accuracies are {number(100 * abs(gap), 1)} points apart, with {ahead} ahead"
            if abs(gap) >= SAME
            else "their accuracies are the same, though not every number is"
        )
        found.append(f"{place.link(f'under `{protocol}`')} {told}")
    return (
        f"**Is it information?** The placebo spends its steps as {policy_title('simple')} does and is told "
        f"nothing. Compare the two in {WORLD_TITLES[world]}: {listed(found)}."
    )


def _oracle(grid: Grid, protocol: str) -> str:
    place = Place(POOL, protocol, ("no-probe", "simple", "oracle"), find_regime(grid.regime).budget)
    told = []
    for policy in place.policies:
        reading = reading_at(grid, place, policy)
        told.append(f"{policy_title(policy)} {number(reading['accuracy'][0], 3)}")
    return (
        f"**How much is there to win?** An oracle sees which beliefs are wrong and has the same budget. "
        f"{place.link('In all three worlds together')}, under `{protocol}`, accuracy is: {listed(told)}."
    )


def tell_grid(grid: Grid) -> Text:
    """Say how many settings the page holds, how they were run, and what they weigh."""
    payload: dict[str, Any] = encode(grid)
    settings = sum(rows.size for rows in grid.rows.values())
    size = len(zlib.compress(payload["data"].encode(), 9))
    policies = len({policy for _, _, policy in grid.rows})
    return Text(
        f"The page carries {settings:,} settings: {policies} policies, {len(grid.budgets)} budgets, "
        f"{len(grid.thresholds)} thresholds where a policy has one, each world and the three pooled, under "
        f"{code(payload['protocols'])}, on {payload['episodes']} paired seeds each. Many of "
        "them are the same episodes: a budget that is never reached, a threshold that no score falls below. "
        f"Only distinct trajectories are run; {len(grid.readings):,} distinct readings are left, which take "
        f"{size / 1000:.0f} kB of this page."
    )
