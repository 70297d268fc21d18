"""Other regimes: the paper's claims of a gain asked in each, and whether policies keep their order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from envprobe_core.claims import find_claim
from envprobe_core.claims.judge import judge
from envprobe_core.regimes import REGIMES
from envprobe_core.statistics import RESAMPLES

DEPLOYABLE = ("no-probe", "random", "periodic", "self-uncertainty", "simple", "judge")
GAINS = {"procedural": "main-procedural", "spatial": "main-spatial", "combined": "main-combined"}
STRUCTURE = "cd"  # claims ask for c+d where all stresses are mixed


def policies_of(regime: str) -> tuple[str, ...]:
    """Return the policies that this page runs in a regime."""
    return (*DEPLOYABLE, STRUCTURE) if regime.startswith("S") else DEPLOYABLE


def ask_everywhere(episodes: pd.DataFrame, profile: str, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Ask the paper's three claims of a gain in every regime.

    Outside its own regime the paper prints no number, so that a claim there holds, reverses or is
    inconclusive.

    Returns:
        The rows of `judge`, with `stratum` and `title` (the regime in words).
    """
    claims = [
        claim
        if regime == claim.regime
        else replace(claim, regime=regime, value=None, low=None, high=None, n=None)
        for claim in map(find_claim, GAINS.values())
        for regime in REGIMES
    ]
    asked = judge(episodes, claims, profile=profile, resamples=resamples)
    strata = {claim: stratum for stratum, claim in GAINS.items()}
    titles = {name: regime.title for name, regime in REGIMES.items()}
    return asked.assign(stratum=asked["claim"].map(strata), title=asked["regime"].map(titles))


def agreement(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return Kendall's tau-a of two lists of scores [item].

    Pairs in the same order minus pairs in the other, over all pairs: 1 is the same order, -1 the opposite;
    tied pairs count 0.
    """
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    i, j = np.triu_indices(len(one), 1)
    return float(np.mean(np.sign(one[i] - one[j]) * np.sign(other[i] - other[j])))


def order_policies(episodes: pd.DataFrame, reference: str = "S2") -> pd.DataFrame:
    """Order the deployable policies by mean accuracy in every regime, and compare with one regime.

    Returns:
        A row a protocol, world and regime: `protocol world regime best rank tau`; `rank` is that of
        EnvProbe-Simple, 1 the highest accuracy; `tau` is `agreement` with the reference regime.
    """
    by = ["protocol", "world", "regime", "policy"]
    means = episodes.groupby(by, sort=False)["accuracy"].mean().unstack()[list(DEPLOYABLE)]
    rows = []
    for (protocol, world, regime), own in means.iterrows():
        tau = agreement(own, means.loc[(protocol, world, reference)])
        rank = 1 + int((own > own["simple"]).sum())
        rows.append((protocol, world, regime, str(own.idxmax()), rank, tau))
    return pd.DataFrame(rows, columns=["protocol", "world", "regime", "best", "rank", "tau"])
