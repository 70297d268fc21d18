"""What the sections of results share: comparisons of two policies, levels, and the spending of probes.

A comparison takes estimate, intervals, p and verdict from `verdicts`, the paper's numbers from `paper`, and
adds what a table prints beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims import Claim, find_claim
from envprobe_core.figures import STRATA
from envprobe_core.intervals import mean_intervals, wilson
from envprobe_core.panel import Panel
from envprobe_core.paper import PaperValue, paper_values
from envprobe_core.stats import RESAMPLES
from envprobe_core.verdicts import evaluate_all

if TYPE_CHECKING:
    import pandas as pd

GROUPS = STRATA | {world: (world,) for world in STRATA["combined"]}  # strata, and each world alone
PRIMARY_REGIME = "S2"  # where the paper prints its numbers
DEPLOYABLE = ("no-probe", "random", "periodic", "self-uncertainty", "simple", "judge")
ABLATIONS = ("minus-c", "minus-d", "minus-s", "minus-u", "cd")


@dataclass(frozen=True)
class Comparison:
    """One row of a table of the paper: arm minus reference, the claim it makes, and where it is printed."""

    stratum: str
    arm: str
    reference: str
    claim: str
    source: str
    row: str  # as in data/paper/tables.csv

    @property
    def worlds(self) -> tuple[str, ...]:
        """Return the worlds that are pooled."""
        return GROUPS[self.stratum]


def in_regime(claim: Claim | str, regime: str) -> Claim:
    """Return a claim about S2 as a claim about `regime`; other claims as they are."""
    claim = find_claim(claim) if isinstance(claim, str) else claim
    return replace(claim, regime=regime) if claim.regime == PRIMARY_REGIME else claim


def printed(source: str, row: str, column: str) -> PaperValue | None:
    """Return the number printed at a place of the paper, None where it prints none."""
    wanted = (source, row, column)
    return next((v for v in paper_values() if (v.source, v.row, v.column) == wanted), None)


def panels(frame: pd.DataFrame, profile: str) -> list[Panel]:
    """Return a panel for every protocol of a frame, in its order."""
    return [Panel(frame, protocol, profile) for protocol in dict.fromkeys(frame["protocol"])]


def compare(
    frame: pd.DataFrame, comparisons: Sequence[Comparison], resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Test comparisons under every protocol of a frame.

    Args:
        frame: one row an episode, of one regime and profile.
        comparisons: what to compare.
        resamples: bootstrap resamples.

    Returns:
        One row a comparison and protocol, in order: the fields of `verdicts.Verdict`, and `stratum arm
        reference_policy method reference only_method only_reference left_out`: the two means over the pairs
        that count, how many pairs only one side of them wins, how many pairs were left out.
    """
    import pandas as pd

    regime, profile = _only(frame, "regime"), _only(frame, "profile")
    claims = [in_regime(comparison.claim, regime) for comparison in comparisons]
    verdicts = evaluate_all(
        frame, claims, protocols=list(dict.fromkeys(frame["protocol"])), profile=profile, resamples=resamples
    )
    rows = [
        _pair_facts(panel, comparison, claim)
        for comparison, claim in zip(comparisons, claims, strict=True)
        for panel in panels(frame, profile)
    ]
    return pd.concat([verdicts, pd.DataFrame(rows)], axis=1)


def _pair_facts(panel: Panel, comparison: Comparison, claim: Claim) -> dict[str, object]:
    table = panel.frame[["world", "policy", "seed"]].assign(value=panel.measure(claim.measures[0]))
    table = table[table["world"].isin(comparison.worlds)]
    sides = [table[table["policy"] == name] for name in (comparison.arm, comparison.reference)]
    pairs = sides[0].merge(sides[1], on=["world", "seed"], suffixes=("_arm", "_reference"))
    whole = pairs.dropna(subset=["value_arm", "value_reference"])
    arm, reference = (whole[f"value_{side}"].to_numpy(dtype=float) for side in ("arm", "reference"))
    scale = claim.scale if claim.measures[0] == "success" else 1.0
    return {
        "stratum": comparison.stratum,
        "arm": comparison.arm,
        "reference_policy": comparison.reference,
        "method": scale * arm.mean() if len(arm) else np.nan,
        "reference": scale * reference.mean() if len(arm) else np.nan,
        "only_method": int((arm > reference).sum()),
        "only_reference": int((reference > arm).sum()),
        "left_out": len(pairs) - len(whole),
    }


def _only(frame: pd.DataFrame, column: str) -> str:
    values = frame[column].unique()
    if len(values) != 1:
        raise ValueError(f"the frame holds several values of {column}: {', '.join(map(str, values))}")
    return str(values[0])


def levels(
    frame: pd.DataFrame,
    policies: Iterable[str],
    strata: Iterable[str],
    measure: str = "accuracy",
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Average a measure over the episodes of each policy, stratum and protocol, with its interval.

    Success has Wilson's interval, every other measure the percentile interval of the bootstrap, resampled
    within worlds. Episodes in which the measure is undefined are left out.

    Args:
        frame: one row an episode, of one regime and profile.
        policies: names.
        strata: names of `GROUPS`.
        measure: a column, or two joined by `/`.
        resamples: bootstrap resamples.

    Returns:
        Columns `protocol stratum policy value low high n`; NaN where fewer than two episodes count.
    """
    import pandas as pd

    rows = []
    for panel in panels(frame, _only(frame, "profile")):
        table = panel.frame[["world", "policy", "seed"]].assign(value=panel.measure(measure)).dropna()
        for stratum in strata:
            for policy in policies:
                part = table[(table["policy"] == policy) & table["world"].isin(GROUPS[stratum])]
                ends = _interval(part["value"].to_numpy(dtype=float), part["world"], measure, resamples)
                rows.append((panel.protocol, stratum, policy, *ends, len(part)))
    return pd.DataFrame(rows, columns=["protocol", "stratum", "policy", "value", "low", "high", "n"])


def _interval(
    values: np.ndarray, worlds: pd.Series, measure: str, resamples: int
) -> tuple[float, float, float]:
    if measure == "success" and len(values):
        share = wilson(int(values.sum()), len(values))
        return share.value, share.low, share.high
    if len(values) < 2 or worlds.value_counts().min() < 2:
        return (float(values.mean()) if len(values) else np.nan), np.nan, np.nan
    ends = mean_intervals(values[:, None], worlds.to_numpy(dtype=str), resamples=resamples)
    return tuple(float(end[0]) for end in ends)  # type: ignore[return-value]


def spending(frame: pd.DataFrame, policies: Iterable[str], stratum: str) -> pd.DataFrame:
    """Say when and on what each policy spends its probes, from a frame of `timed.load_timed`.

    Returns:
        One row a protocol and policy: `protocol policy probes probe_step early unknown wrong repeated n`:
        means an episode; `probe_step` over probes (NaN without any), `early unknown wrong repeated` as
        shares of all probes fired.
    """
    import pandas as pd

    rows = []
    for protocol in dict.fromkeys(frame["protocol"]):
        for policy in policies:
            part = frame[
                (frame["protocol"] == protocol)
                & (frame["policy"] == policy)
                & frame["world"].isin(GROUPS[stratum])
            ]
            fired = int(part["probes"].sum())
            steps = float((part["probe_step"] * part["probes"]).sum())
            of = {
                name: float(part[column].sum()) / fired if fired else np.nan
                for name, column in (
                    ("early", "early_probes"),
                    ("unknown", "unknown_probes"),
                    ("wrong", "wrong_probes"),
                    ("repeated", "repeated_probes"),
                )
            }
            row = {"protocol": protocol, "policy": policy, "probes": fired / max(len(part), 1)}
            rows.append(row | {"probe_step": steps / fired if fired else np.nan} | of | {"n": len(part)})
    return pd.DataFrame(rows)
