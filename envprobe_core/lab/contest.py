"""A contest: a reader's policies and the companion's, on the same seeds; first design, then held-out.

Whoever tries many scores on one set of seeds will find one that fits its luck. So there are two sets: the
design seeds may be looked at as often as one likes; the held-out seeds tell what is left of the gain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.cells import Cell, find_profile, find_regime, parse_seeds
from envprobe_core.errors import InputError
from envprobe_core.experiments import Names, find_protocols, names, run_frame
from envprobe_core.lab.guard import GuardedScore
from envprobe_core.policies import POLICIES, Policy, find_policy
from envprobe_core.worlds import WORLDS

if TYPE_CHECKING:
    import pandas as pd

DESIGN, HELD_OUT = "design", "held-out"
REFERENCES = ("simple", "no-probe")  # every policy is compared with these
_looks: Counter[str] = Counter()  # how often this session has run its own policies on held-out seeds


@dataclass(frozen=True)
class Contest:
    """Episodes of several policies on the same seeds.

    Attributes:
        frame: one row an episode, columns as in `experiments.load_grid`, and `set`: design or held-out.
        own: names of the reader's policies, in order.
        looks: how often the held-out seeds have been run in this session, this time included.
    """

    frame: pd.DataFrame
    own: tuple[str, ...]
    looks: int


def compete(
    own: Policy | Sequence[Policy] = (),
    *,
    seeds: str = "0:220",
    held_out: str | None = None,
    worlds: Names = tuple(WORLDS),
    regime: str = "S2",
    protocols: Names = "observed",
    profile: str = "typical",
    rivals: Names = tuple(POLICIES),
    budget: int | None = None,
) -> Contest:
    """Run a reader's policies beside the companion's on paired seeds.

    Args:
        own: one policy or several, made with `@policy`.
        seeds: the design seeds, `FIRST:PAST`; look at them as often as you like.
        held_out: other seeds, to be run last; None to leave them shut.
        worlds: names.
        regime: name of a regime.
        protocols: names.
        profile: name of the agent profile.
        rivals: names of the companion's policies; EnvProbe-Simple and No-Probe always take part.
        budget: probes an episode may spend; by default the regime's.

    Raises:
        InputError: for an unknown name, something that is no policy, two policies of one name, or seeds
            that are both design and held-out.
    """
    mine = _own_policies(own)
    others = [find_policy(name) for name in dict.fromkeys((*names(rivals), *REFERENCES))]
    sets = {DESIGN: parse_seeds(seeds)}
    if held_out is not None:
        sets[HELD_OUT] = parse_seeds(held_out)
        shared = np.intersect1d(*sets.values())
        if len(shared):
            raise InputError(
                f"{len(shared)} seeds are both design and held-out, the first {shared[0]}: held-out seeds "
                f"must be new; design is {seeds}, held-out {held_out}"
            )
    cells = [
        Cell(world, policy, find_regime(regime), protocol, find_profile(profile), budget)
        for protocol in find_protocols(protocols)
        for world in names(worlds)
        for policy in (*mine, *others)
    ]
    frame = run_frame(cells, np.concatenate(list(sets.values())))
    frame["set"] = np.where(frame["seed"].isin(sets[DESIGN]), DESIGN, HELD_OUT)
    if held_out is not None and mine:
        _looks[held_out] += 1
    return Contest(frame, tuple(policy.name for policy in mine), _looks[held_out or ""])


def _own_policies(own: Policy | Sequence[Policy]) -> list[Policy]:
    given = [own] if isinstance(own, Policy) or callable(own) else list(own)
    for policy in given:
        if not isinstance(policy, Policy):
            raise InputError(
                f"{getattr(policy, '__name__', repr(policy))} is no policy yet: write "
                '@policy("my rule") above its `def`'
            )
        if not isinstance(policy.score, GuardedScore):
            raise InputError(
                f"policy {policy.name!r} was not made in the lab; the companion's own policies are named in "
                "`rivals`"
            )
    counts = Counter(policy.name for policy in given)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise InputError(f"two policies are named {twice[0]!r}; give each a name of its own")
    return given
