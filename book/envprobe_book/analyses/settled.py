"""The settled scribe: a profile fitted to how many pairs disagree and how many episodes have no probe.

The paper prints McNemar's p for two pairs of arms on tools, and in how many episodes both EnvProbe-Simple and
Random fired. From these follow two counts of discordant pairs and two shares of episodes in which Simple
never probes; with Periodic's two accuracies they are all that the fit looks at. Which arm wins a pair, how
accurate the others are and how often they succeed are no targets. That (c+d) and Simple without u are more
accurate and complete fewer had been seen before the habits were chosen, as all figures of `scribe-hesitant`
had: what is not fitted is no blind prediction.

The search, `data/profiles/fit.py`, is that of `calibration`, on seeds that no page of the book runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd

from envprobe_book.analyses.calibration import PROTOCOL, REGIME, Free, Place, soft_l1
from envprobe_book.claims import paper_value
from envprobe_core.agents.profiles import HESITANT, AgentProfile
from envprobe_core.conditions import Condition, Seeds
from envprobe_core.experiment import run_conditions
from envprobe_core.policies import POLICIES
from envprobe_core.statistics import mcnemar_exact
from envprobe_core.worlds.base import Floats

NAME = "scribe-settled"
SEEDS = np.arange(3_000_000, 3_002_200)  # ten times as many as the paper has; no page runs them
EPISODES = 220  # of an arm on tools, in the paper
PAIRS_SCALE, SHARE_SCALE = 10 / EPISODES, 0.03  # stated before the fit: ten pairs, three points
TOOLS, SPATIAL = ("tooldag",), ("objectstate", "graphnav")
STRATA = (("procedural", TOOLS, "tools"), ("spatial", SPATIAL, "rooms and graphs"))
ARMS = {"simple": "EnvProbe-Simple", "cd": "(c+d)", "minus-u": "Simple without u"}


def pairs_behind(method: float, reference: float, p: float, episodes: int = EPISODES) -> tuple[int, int]:
    """The discordant pairs behind two shares of success and the exact McNemar p between them.

    Args:
        method, reference: shares of successful episodes.
        p: two-sided, as printed; of the counts with the difference of the shares, those of the nearest p.
        episodes: of each arm.

    Returns:
        Pairs in which the method alone succeeds, and the reference alone.

    >>> pairs_behind(0.159, 0.205, 0.22), pairs_behind(0.082, 0.205, 0.0001)
    ((22, 32), (10, 37))
    """
    more = round(episodes * reference) - round(episodes * method)
    alone = range(max(0, -more), episodes)
    ours = min(alone, key=lambda one: abs(np.log(mcnemar_exact(one, one + more) / p)))
    return ours, ours + more


def printed_pairs(policy: str) -> tuple[int, int]:
    """The discordant pairs behind what the paper prints of a policy against EnvProbe-Simple on tools."""
    row = ("tab:main", f"procedural: {policy} vs simple")
    own, simple = (paper_value(*row, f"{arm}_success_pct").value / 100 for arm in ("method", "reference"))
    return pairs_behind(own, simple, paper_value(*row, "success_mcnemar_p").value)


@dataclass(frozen=True)
class Target:
    """One figure that the fit may use: a share of pairs, of episodes without a probe, or an accuracy."""

    name: str
    kind: str  # "pairs", "silent" or "accuracy"
    policy: str  # which is compared with Simple, never probes, or is measured
    worlds: tuple[str, ...]
    scale: float
    place: Place  # where tables.csv prints what it follows from

    @property
    def value(self) -> float:
        """The figure that follows from what the paper prints, a share."""
        printed = paper_value(*self.place)
        if self.kind == "pairs":
            return sum(printed_pairs(self.policy)) / EPISODES
        if self.kind == "silent":
            return 1 - printed.n / (EPISODES * len(self.worlds))
        return printed.value


TARGETS = (
    *(
        Target(
            f"pairs of {ARMS[policy]} and EnvProbe-Simple that disagree", "pairs", policy, TOOLS, PAIRS_SCALE,
            ("tab:main", f"procedural: {policy} vs simple", "success_mcnemar_p"),
        )
        for policy in ("cd", "minus-u")
    ),
    *(
        Target(
            f"episodes of EnvProbe-Simple without a probe, {place}", "silent", "simple", worlds, SHARE_SCALE,
            ("tab:g4_main", f"{stratum}: simple vs random", "method_useful_probe_rate"),
        )
        for stratum, worlds, place in STRATA
    ),
    *(
        Target(
            f"accuracy of Periodic, {place}", "accuracy", "periodic", worlds, SHARE_SCALE,
            ("tab:main", f"{stratum}: simple vs periodic", "reference_accuracy"),
        )
        for stratum, worlds, place in STRATA
    ),
)  # fmt: skip
BASE = replace(HESITANT, own_noise=True, critical_once=True)
FREE = (
    Free("critical", 0.0, 1.0, "an episode whose report is not critical never opens the gate of Simple"),
    Free("lost", 0.0, 1.0, "fewer episodes succeed, so that fewer pairs can disagree"),
    Free("loop", 0.0, 1.0, "the same, at another cost in accuracy"),
)
ASSUMPTION = (
    "The hesitant scribe that settles once an episode how critical its reports are, and has luck of its own "
    "under each policy. Three rates, fitted under `released` to the pairs that disagree by the printed "
    "McNemar p, the printed shares of episodes without a probe, and Periodic's accuracies. *Post-hoc*: its "
    "other habits were chosen after the paper's figures had been seen."
)


def predict(profiles: Sequence[AgentProfile], seeds: Seeds = SEEDS, *, jobs: int = 1) -> Floats:
    """The targets' figures for some profiles, [profile, target]."""
    arms = list(dict.fromkeys(
        (world, policy)
        for target in TARGETS
        for world, policy in product(target.worlds, dict.fromkeys((target.policy, "simple")))
        if target.kind == "pairs" or policy == target.policy
    ))  # fmt: skip
    conditions = [
        Condition(world, POLICIES[policy], REGIME, PROTOCOL, profile)
        for world, policy in arms
        for profile in profiles
    ]
    table = run_conditions(conditions, seeds, jobs=jobs)
    shape = (len(arms), len(profiles), len(seeds))
    columns = {name: table[name].reshape(shape) for name in ("success", "probes", "accuracy")}

    def of(name: str, target: Target, policy: str) -> Floats:
        """A column of a policy in the target's worlds, [world, profile, seed]."""
        return columns[name][[arms.index((world, policy)) for world in target.worlds]]

    found = []
    for target in TARGETS:
        if target.kind == "pairs":
            each = of("success", target, target.policy) != of("success", target, "simple")
        elif target.kind == "silent":
            each = of("probes", target, target.policy) == 0
        else:
            each = of("accuracy", target, target.policy)
        found.append(each.mean(axis=(0, 2)))
    return np.stack(found, axis=-1)


def target_values() -> Floats:
    """The figures that follow from the paper, [target]."""
    return np.array([target.value for target in TARGETS])


def loss(predicted: Floats, paper: Floats) -> Floats:
    """The objective, the sum of `soft_l1` of each target's distance by its own scale, [...].

    Args:
        predicted: [..., target].
        paper: [target].
    """
    scales = np.array([target.scale for target in TARGETS])
    return soft_l1((predicted - paper) / scales).sum(axis=-1)


# beside the paper


def printed_figures() -> pd.DataFrame:
    """What the paper prints, or what follows from it, of the settled scribe's arms.

    Returns:
        A row a figure, in the order of `figures`: `figure`, `fitted` (whether the fit looked at it), `unit`
        (pairs of 220, or percent), `printed`.

    >>> printed_figures().groupby("fitted").size().to_dict()
    {False: 12, True: 6}
    """
    scales = {"pairs": ("pairs", EPISODES), "silent": ("percent", 100), "accuracy": ("percent", 100)}
    rows = [
        (target.name, True, scales[target.kind][0], scales[target.kind][1] * target.value)
        for target in TARGETS
    ]
    for arm in ("cd", "minus-u"):
        own, simple = printed_pairs(arm)
        rows.append((f"{ARMS[arm]} alone succeeds", False, "pairs", own))
        rows.append((f"EnvProbe-Simple alone succeeds, beside {ARMS[arm]}", False, "pairs", simple))
    for arm, title in ARMS.items():
        row = ("tab:main", f"procedural: {'cd' if arm == 'simple' else arm} vs simple")
        side = "reference" if arm == "simple" else "method"
        accuracy, success = (
            paper_value(*row, f"{side}_{name}").value for name in ("accuracy", "success_pct")
        )
        rows.append((f"accuracy of {title}, tools", False, "percent", 100 * accuracy))
        rows.append((f"success of {title}, tools", False, "percent", success))
    spatial = paper_value("tab:main", "spatial: simple vs periodic", "method_accuracy").value
    useful = paper_value("tab:g4_main", "spatial: simple vs random", "method_useful_probe_rate").value
    rows.append(("accuracy of EnvProbe-Simple, rooms and graphs", False, "percent", 100 * spatial))
    rows.append(("useful probes of EnvProbe-Simple, rooms and graphs", False, "percent", 100 * useful))
    return pd.DataFrame(rows, columns=["figure", "fitted", "unit", "printed"])


def figures(episodes: pd.DataFrame) -> list[float]:
    """The figures of `printed_figures`, of one agent's episodes as `run` gives them; pairs are of 220.

    Args:
        episodes: of Periodic, Simple, (c+d) and Simple without u in every world, on the same seeds.
    """
    success, accuracy = (
        episodes.pivot(index=["world", "seed"], columns="policy", values=name)
        for name in ("success", "accuracy")
    )
    tools = success.loc["tooldag"]
    spatial = episodes["world"].isin(SPATIAL)
    simple = episodes["policy"] == "simple"
    silent = (episodes["probes"] == 0)[simple].groupby(spatial).mean()
    pairs = {}
    for arm in ("cd", "minus-u"):
        alone = [(tools[arm] & ~tools["simple"]).mean(), (tools["simple"] & ~tools[arm]).mean()]
        pairs[arm] = [EPISODES * float(one) for one in alone]
    found = [*map(sum, pairs.values()), 100 * silent[False], 100 * silent[True]]
    found += [
        100 * accuracy.loc["tooldag", "periodic"].mean(),
        100 * accuracy.loc[list(SPATIAL), "periodic"].mean(),
    ]
    found += [one for own in pairs.values() for one in own]
    for arm in ARMS:
        found += [100 * accuracy.loc["tooldag", arm].mean(), 100 * tools[arm].mean()]
    fired = episodes[simple & spatial & (episodes["probes"] > 0)]
    found.append(100 * accuracy.loc[list(SPATIAL), "simple"].mean())
    return [*map(float, found), float(100 * (fired["useful"] / fired["probes"]).mean())]
