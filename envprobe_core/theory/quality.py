"""The marginal quality gamma of probe scores, by definition and by the paper's proxy (Definition 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from envprobe_core.experiments import Names, load_grid, names
from envprobe_core.theory.forks import Setting, look, seeds_in
from envprobe_core.theory.gains import (
    DEPTH,
    SCORES,
    SMALLEST_GAIN,
    accuracies,
    least_ratio,
    rank_values,
    ratio_interval,
)
from envprobe_core.worlds.base import Floats

if TYPE_CHECKING:
    import pandas as pd

Ints = npt.NDArray[np.int64]
MOST_FORKS = 60_000  # a belief type; where nearly everything is wrong a past asks for thousands
FEWEST_PASTS = 8


@dataclass(frozen=True)
class QualityRun:
    """Greedy steps of every score on every past, for one belief type.

    Attributes:
        setting, kind: what was run.
        realized: by score, [row, step], mean gain of the field that the score takes at the step.
        best: by score, [row, step], gain of the best field, chosen on one half and valued on the other.
        total: by score, [row], G_T of the set taken in all steps.
        futures: futures a past.
        left_out: pasts that had ended before the moment.
    """

    setting: Setting
    kind: str
    realized: dict[str, Floats]
    best: dict[str, Floats]
    total: dict[str, Floats]
    futures: int
    left_out: int


class _Subsets:
    """The queries of one past: subsets of its wrong fields, each once."""

    def __init__(self, wrong: Ints) -> None:
        self.place = {int(field): bit for bit, field in enumerate(wrong)}
        self.wrong = wrong
        self.index: dict[int, int] = {}

    def ask(self, mask: int) -> None:
        self.index.setdefault(mask, len(self.index))

    def reduce(self, chosen: Sequence[int]) -> int:
        return sum(1 << self.place[f] for f in chosen if f in self.place)

    def others(self, mask: int) -> list[int]:
        return [mask | 1 << bit for bit in range(len(self.wrong)) if not mask >> bit & 1]


def run_quality(
    setting: Setting, kind: str, seeds: Ints, futures: int = 16, depth: int = DEPTH
) -> QualityRun:
    """Play every greedy step of every score.

    Args:
        setting: where the forks start.
        kind: the belief type T.
        seeds: [past]; taken in order until `MOST_FORKS` futures are asked for.
        futures: futures a past, even: one half chooses, the other values.
        depth: B_T, greedy steps.
    """
    past = look(setting, seeds)
    own = np.flatnonzero(setting.of_type(kind))
    depth = min(depth, len(own))
    orders = {
        score: own[np.argsort(-rank_values(setting, past, score)[:, own], axis=1, kind="stable")]
        for score in SCORES
    }
    plans: list[_Subsets] = []
    played = 0
    for row in range(len(past.seeds)):
        sets = _Subsets(own[past.wrong[row, own]])
        for order in orders.values():
            for step in range(depth + 1):
                mask = sets.reduce(order[row, :step].tolist())
                sets.ask(mask)
                if step < depth:
                    for other in sets.others(mask):
                        sets.ask(other)
        played += len(sets.index) * futures
        if played > MOST_FORKS and len(plans) >= FEWEST_PASTS:
            break
        plans.append(sets)
    rows = np.repeat(np.arange(len(plans)), [len(sets.index) for sets in plans])
    repaired = np.zeros((len(rows), setting.world.fields), dtype=bool)
    at = 0
    for sets in plans:
        for mask in sets.index:
            repaired[at, [field for field, bit in sets.place.items() if mask >> bit & 1]] = True
            at += 1
    accuracy = accuracies(setting, past, rows, repaired, futures)[0][kind]
    halves = np.stack([accuracy[:, 0::2].mean(axis=1), accuracy[:, 1::2].mean(axis=1)], axis=1)
    shape = (len(plans), depth)
    realized = {score: np.zeros(shape) for score in SCORES}
    best = {score: np.zeros(shape) for score in SCORES}
    total = {score: np.zeros(len(plans)) for score in SCORES}
    start = 0
    for row, sets in enumerate(plans):
        values = halves[start : start + len(sets.index)]
        start += len(sets.index)
        for score, order in orders.items():
            for step in range(depth):
                mask = sets.reduce(order[row, :step].tolist())
                now = values[sets.index[mask]]
                gains = np.array([values[sets.index[other]] - now for other in sets.others(mask)])
                best[score][row, step] = _cross_fitted_best(gains)
                if score == "random":
                    realized[score][row, step] = (
                        gains.mean(axis=1).sum() / (len(own) - step) if len(gains) else 0.0
                    )
                else:
                    after = values[sets.index[sets.reduce(order[row, : step + 1].tolist())]]
                    realized[score][row, step] = (after - now).mean()
            end = values[sets.index[sets.reduce(order[row, :depth].tolist())]]
            total[score][row] = (end - values[sets.index[0]]).mean()
    return QualityRun(setting, kind, realized, best, total, futures, past.left_out)


def _cross_fitted_best(gains: Floats) -> float:
    """Value on one half the field that is best on the other, [field, half]; a right field gives 0."""
    if not len(gains):
        return 0.0
    values = []
    for chooser in (0, 1):
        field = int(np.argmax(gains[:, chooser]))
        values.append(gains[field, 1 - chooser] if gains[field, chooser] > 0 else 0.0)
    return float(np.mean(values))


def quality_frame(runs: Sequence[QualityRun], proxies: pd.DataFrame | None, resamples: int) -> pd.DataFrame:
    """Summarise gamma by definition and by proxy.

    Returns:
        One row a world, type and score: `gamma gamma_low gamma_high` (by definition), `proxy proxy_low
        proxy_high` (gain of the whole set over Oracle-TW's), `proxy_episodes` (the same on whole episodes
        of the policy, where there is one), `gain`, `pasts`.
    """
    import pandas as pd

    rows = []
    for run in runs:
        for score in SCORES:
            gamma = least_ratio(run.realized[score], run.best[score], resamples)
            proxy = ratio_interval(run.total[score], run.total["oracle-tw"], resamples)
            rows.append(
                {
                    "world": run.setting.world.name,
                    "kind": run.kind,
                    "score": score,
                    "gamma": gamma.value,
                    "gamma_low": gamma.low,
                    "gamma_high": gamma.high,
                    "proxy": proxy.value,
                    "proxy_low": proxy.low,
                    "proxy_high": proxy.high,
                    "gain": float(run.total[score].mean()),
                    "pasts": gamma.n,
                }
            )
    frame = pd.DataFrame(rows)
    if proxies is not None:
        frame = frame.merge(proxies, on=["world", "score"], how="left")
    return frame


EPISODE_POLICIES = {
    "full": "simple",
    "c+d": "cd",
    "u": "self-uncertainty",
    "random": "random",
    "periodic": "periodic",
    "oracle": "oracle",
    "oracle-tw": "oracle-tw",
}


def episode_proxies(frame: pd.DataFrame) -> pd.DataFrame:
    """The paper's proxy on whole episodes: a policy's gain over No-Probe as a share of Oracle-TW's.

    Args:
        frame: episodes (`experiments.load_grid`) of one protocol, No-Probe and Oracle-TW among them.

    Returns:
        `world score proxy_episodes`; NaN where Oracle-TW gains nothing.
    """
    import pandas as pd

    mean = frame.groupby(["world", "policy"])["accuracy_terminal"].mean()
    rows = []
    for world in frame["world"].unique():
        scale = mean[world, "oracle-tw"] - mean[world, "no-probe"]
        for score, policy in EPISODE_POLICIES.items():
            gain = mean[world, policy] - mean[world, "no-probe"]
            rows.append((world, score, gain / scale if scale > SMALLEST_GAIN else np.nan))
    return pd.DataFrame(rows, columns=["world", "score", "proxy_episodes"])


def load_quality(
    worlds: Names, regime: str, protocol: str, profile: str, seeds: str,
    pasts: int = 120, futures: int = 16, share: float = 0.5, depth: int = DEPTH,
) -> list[QualityRun]:  # fmt: skip
    """Run every type of every world on the first `pasts` of the seeds; arguments as in `run_quality`."""
    chosen = seeds_in(seeds, regime, protocol)[:pasts]
    settings = [Setting.of(world, regime, protocol, profile, share) for world in names(worlds)]
    return [run_quality(s, kind, chosen, futures, depth) for s in settings for kind in s.types]


def load_proxies(worlds: Names, regime: str, protocol: str, profile: str, seeds: str) -> pd.DataFrame:
    """Run whole episodes of the policies that the scores belong to, for `episode_proxies`."""
    policies = ("no-probe", *EPISODE_POLICIES.values())
    return episode_proxies(load_grid(worlds, policies, regime, [protocol], profile, seeds))
