"""VoI beside the policies of the paper (ours): its variants, and the test on held-out seeds."""

from itertools import product

import numpy as np
import pandas as pd

from envprobe_book.analyses import COMPETING
from envprobe_core.conditions import Names, parse_seeds
from envprobe_core.errors import InputError
from envprobe_core.estimating import reach_of
from envprobe_core.experiment import OWN, run
from envprobe_core.policies import POLICIES, value_policy
from envprobe_core.statistics import RESAMPLES, ratios

VARIANTS = ("voi-success", "voi", "voi-accuracy")
WEIGHTED = {  # VoI by its weight of accuracy
    0.0: POLICIES["voi-success"],
    0.25: value_policy("voi@0.25", "VoI, weight 0.25", 0.25),
    0.5: POLICIES["voi"],
    0.75: value_policy("voi@0.75", "VoI, weight 0.75", 0.75),
    1.0: POLICIES["voi-accuracy"],
}
MEASURES = ("accuracy", "success")
MARGIN = 1.0  # points: what still counts as no worse
DESIGN = "100000:102000"  # seeds on which VoI's constants and weights were chosen


def load_heldout(
    regimes: Names = "S1 S2 S3",
    protocols: Names = "paper observed",
    profile: str = "typical",
    seeds: str = "200000:202000",
    resamples: int = RESAMPLES,
    budget: int = OWN,
    threshold: float = OWN,
) -> pd.DataFrame:
    """Run VoI and its rivals on held-out seeds and compare them in every pair of world and regime.

    Args:
        seeds: none of them among the design seeds.
        resamples: of each interval; all arms share the resampled seeds, so that pairs stay pairs.
        budget: probes an episode may spend; -1 is the regime's own.
        threshold: of the policies that have one; -1 is 1.5.

    Returns:
        One row a protocol, regime, world, rival and variant: these, `n`, the paired differences in points
        `accuracy accuracy_low accuracy_high success success_low success_high`, and `passes`: whether neither
        lower end is below `-MARGIN` and one is above 0.

    Raises:
        InputError: for an unknown name, or if a seed was used in the design.
    """
    if len(used := np.intersect1d(parse_seeds(seeds), parse_seeds(DESIGN))):
        raise InputError(
            f"seed {used[0]} was used to design VoI; a held-out test takes seeds outside {DESIGN}"
        )
    pairs = pd.DataFrame(product(COMPETING, VARIANTS), columns=["rival", "variant"])
    place, parts = ["protocol", "regime", "world"], []
    frame = run(
        policies=[*COMPETING, *VARIANTS], regimes=regimes, protocols=protocols, profiles=profile,
        seeds=seeds, budgets=budget, thresholds=threshold,
    )  # fmt: skip
    for key, own in frame.groupby(place, sort=False):
        part = pairs.assign(**dict(zip(place, key, strict=True)), n=own["seed"].nunique())
        for measure in MEASURES:
            points = 100.0 * own.pivot(index="policy", columns="seed", values=measure).astype(float)
            gains = points.loc[pairs["variant"]].to_numpy() - points.loc[pairs["rival"]].to_numpy()
            reach = 100.0 * reach_of(measure)
            found = ratios(gains.T, np.ones_like(gains.T), resamples=resamples, reach=reach)
            part[[measure, f"{measure}_low", f"{measure}_high"]] = np.transpose(found[:3])
        lows = part[[f"{measure}_low" for measure in MEASURES]]
        parts.append(part.assign(passes=(lows >= -MARGIN).all(axis=1) & (lows > 0).any(axis=1)))
    return pd.concat(parts, ignore_index=True)


def margins(compared: pd.DataFrame) -> pd.DataFrame:
    """Return VoI's differences from No-Probe and the most accurate rival in every pair of `load_heldout`."""
    mine = compared[compared["variant"] == "voi"]
    nearest = mine.groupby(["protocol", "regime", "world"])["accuracy"].idxmin()
    return mine[(mine["rival"] == "no-probe") | mine.index.isin(nearest)]


def margins_by_measure(compared: pd.DataFrame) -> pd.DataFrame:
    """The differences of `margins` as a table shows them.

    Returns:
        A row a `protocol`, `regime`, `world` and `policy` of the paper; of each measure, the first level of
        columns, the `gain` in points with its ends `gain_low` and `gain_high`.

    >>> one = {"protocol": "paper", "regime": "S2", "world": "tooldag", "variant": "voi", "rival": "no-probe"}
    >>> one |= {f"{measure}{end}": 1.0 for measure in MEASURES for end in ("", "_low", "_high")}
    >>> list(margins_by_measure(pd.DataFrame([one])).columns)[:2]
    [('accuracy', 'gain'), ('accuracy', 'gain_low')]
    """
    keys = ["protocol", "regime", "world", "policy"]
    nearest = margins(compared).rename(columns={"rival": "policy"}).set_index(keys)
    ends = {"": "gain", "_low": "gain_low", "_high": "gain_high"}
    return pd.concat(
        {
            measure: nearest[[f"{measure}{end}" for end in ends]].set_axis([*ends.values()], axis=1)
            for measure in MEASURES
        },
        axis=1,
    )
