"""The lab: a reader's policies and the companion's, on the same seeds; first design, then held-out.

Whoever tries many scores on one set of seeds will find one that fits its luck. So there are two sets: the
design seeds may be looked at as often as one likes; the held-out seeds tell what is left of the gain.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from envprobe_book.classroom.checks import check
from envprobe_book.classroom.policy_check import GuardedScore, PolicyError, diagnose, policy
from envprobe_core.comparing import summarize
from envprobe_core.conditions import (
    Condition,
    Names,
    find_policies,
    find_profile,
    find_protocols,
    find_regime,
    find_worlds,
    parse_seeds,
)
from envprobe_core.engine.batch import simulate_logged
from envprobe_core.errors import InputError
from envprobe_core.experiment import run_frame
from envprobe_core.policies import POLICIES, Policy, find_policy
from envprobe_core.protocols import in_words
from envprobe_core.statistics import RESAMPLES, ratios
from envprobe_core.worlds import WORLDS

__all__ = [
    "Contest", "PolicyError", "check", "compete", "diagnose", "in_percent",
    "leaderboard", "policy",
]  # fmt: skip

DESIGN, HELD_OUT = "design", "held-out"
REFERENCES = {"minus_simple": "simple", "minus_no_probe": "no-probe"}
"""What every policy is compared with, by the leaderboard's column."""
KEYS = ["protocol", "set", "policy"]
_looks: Counter[str] = Counter()  # how often this session has run its own policies on held-out seeds


@dataclass(frozen=True)
class Contest:
    """Episodes of several policies on the same seeds."""

    frame: pd.DataFrame  # one row an episode, columns as in `experiment.run`, and `set`: design or held-out
    own: tuple[str, ...]  # names of the reader's policies, in order
    looks: int  # how often the held-out seeds have been run in this session, this time included
    silent: dict[tuple[str, str], str]  # (protocol, policy) -> why a policy of the reader fired no probe


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
        rivals: names of the companion's policies; EnvProbe-Simple and No-Probe always take part.
        budget: probes an episode may spend; by default the regime's.

    Raises:
        InputError: for an unknown name, something that is no policy, two policies of one name, or seeds
            that are both design and held-out.
    """
    mine = list(own) if isinstance(own, list | tuple) else [own]
    for one in mine:
        if not isinstance(one, Policy) or not isinstance(one.score, GuardedScore):
            name = getattr(one, "name", getattr(one, "__name__", repr(one)))
            raise InputError(
                f'{name} is no policy of yours: write @policy("my rule") above its `def`; those of the '
                "book are named in `rivals`"
            )
    entries = tuple(one.name for one in mine)
    if repeated := [name for name in entries if entries.count(name) > 1]:
        raise InputError(f"two policies are named {repeated[0]!r}; give each a name of its own")
    design, held = parse_seeds(seeds), parse_seeds(held_out) if held_out else np.empty(0, np.int64)
    if len(shared := np.intersect1d(design, held)):
        raise InputError(
            f"{len(shared)} seeds are both design and held-out, the first {shared[0]}: held-out seeds "
            f"must be new; design is {seeds}, held-out {held_out}"
        )
    others = list(dict.fromkeys((*find_policies(rivals), *map(find_policy, REFERENCES.values()))))
    cells = [
        Condition(world, one, find_regime(regime), protocol, find_profile(profile), budget)
        for protocol in find_protocols(protocols)
        for world in find_worlds(worlds)
        for one in (*mine, *others)
    ]
    if not cells:
        raise InputError(f"a contest needs a world and a protocol; given are {worlds!r} and {protocols!r}")
    frame = run_frame(cells, np.concatenate([design, held]))
    frame["set"] = np.where(frame["seed"].isin(design), DESIGN, HELD_OUT)
    if held_out and mine:
        _looks[held_out] += 1
    probes, silent = frame.groupby(["protocol", "policy"])["probes"].sum(), {}
    for key in probes.index[(probes == 0) & probes.index.isin(entries, "policy")]:
        alike = [cell for cell in cells if (cell.protocol.name, cell.policy.name) == key]
        highest = max(float(np.nanmax(simulate_logged(cell, design).score)) for cell in alike)
        silent[key] = (
            f"fired 0 of {alike[0].budget_in_force} probes: its highest score was {highest:.3g}, the gate is "
            f"{alike[0].threshold_in_force:g}"
        )
    return Contest(frame, entries, _looks[held_out or ""], silent)


def in_percent(board: pd.DataFrame) -> pd.DataFrame:
    """A leaderboard in one unit, for reading: percent, and percentage points where something is compared.

    Returns:
        A row a policy, by its title: `accuracy`, `completed` (tasks), `useful` (of its probes), `ahead` (of
        EnvProbe-Simple, in accuracy, on the same episodes) with its interval `from`, `to`. Where there are
        several protocols or sets, these stand before the policy.
    """
    shares = {"accuracy": "accuracy", "success": "completed", "useful_rate": "useful"}
    points = {"minus_simple": "ahead", "minus_simple_low": "from", "minus_simple_high": "to"}
    shown = (
        (100 * board[list(shares)]).rename(columns=shares).join(board[list(points)].rename(columns=points))
    )
    named = board["policy"].map(lambda name: POLICIES[name].title if name in POLICIES else name)
    keys = [in_words(str(name)) for name in board["protocol"]], board["set"], named
    several = [level for level in keys[:2] if len(set(level)) > 1]
    return shown.set_index([*map(pd.Index, several), pd.Index(named, name="policy")]).round(1)


def _beside_references(frame: pd.DataFrame, resamples: int) -> pd.DataFrame:
    """The paired differences of every policy from each of `REFERENCES`, in points, all policies at once.

    Returns:
        A row a protocol, set and policy; the columns are those of `REFERENCES`, each with `_low` and `_high`.
    """
    parts = {}
    for key, part in frame.groupby(KEYS[:2], sort=False):
        accuracy = part.pivot(index=["world", "seed"], columns="policy", values="accuracy")
        worlds = accuracy.index.get_level_values("world").to_numpy(dtype=str)
        ends = {}
        for name, other in REFERENCES.items():
            points = 100 * accuracy.sub(accuracy[other], axis=0).to_numpy()
            found = ratios(points, np.ones_like(points), worlds, resamples=resamples, reach=0.0)
            ends |= {name: found.mean, f"{name}_low": found.low, f"{name}_high": found.high}
        parts[key] = pd.DataFrame(ends, accuracy.columns)
    return pd.concat(parts, names=KEYS)


def leaderboard(contest: Contest, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Summarise a contest; intervals resample its episodes within each world.

    Returns:
        One row a protocol, set and policy, by accuracy: `protocol set policy own deployable rank n silent`,
        the means `accuracy success useful_rate probes`, and for each of `REFERENCES` the mean paired
        difference in accuracy in points, all with `_low` and `_high`. Oracles see gold and have rank 0; the
        useful rate is NaN without any probe; `silent` says why a reader's policy fired none.
    """
    frame = contest.frame
    measures = ["accuracy", "success", "useful/probes", "probes"]
    board = frame[KEYS].drop_duplicates().reset_index(drop=True)
    board["own"] = board["policy"].isin(contest.own)
    board["deployable"] = [name not in POLICIES or not POLICIES[name].sees_gold for name in board["policy"]]
    board["n"] = frame.groupby(KEYS, sort=False).size().to_numpy()
    for measure, part in summarize(frame, measures, KEYS, resamples=resamples).groupby("measure", sort=False):
        name = measure.replace("useful/probes", "useful_rate")
        board[[name, f"{name}_low", f"{name}_high"]] = part[["mean", "low", "high"]].to_numpy(dtype=float)
    board = board.join(_beside_references(frame, resamples), on=KEYS)
    board["silent"] = [contest.silent.get((row.protocol, row.policy), "") for row in board.itertuples()]
    board["part"] = board.groupby(KEYS[:2], sort=False).ngroup()
    board = board.sort_values(["part", "accuracy"], ascending=[True, False], ignore_index=True)
    board.insert(5, "rank", board.groupby("part")["deployable"].cumsum().where(board["deployable"], 0))
    return board.drop(columns="part")
