"""What the sections of results share: comparisons of two policies, levels, and the spending of probes.

A comparison takes estimate, intervals, p and verdict from `claims.judge`, the paper's numbers from
`claims.printed`, and adds what a table prints beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims import Claim, PaperValue, find_claim, paper_values
from envprobe_core.claims.printed import STRATA
from envprobe_core.statistics import RESAMPLES

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


def compare(
    frame: pd.DataFrame, comparisons: Sequence[Comparison], resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Test comparisons under every protocol of a frame.

    Args:
        frame: one row an episode, of one regime and profile.
        comparisons: what to compare.
        resamples: bootstrap resamples.

    Returns:
        One row a comparison and protocol, in order: the columns of `claims.judge.judge`, and `stratum arm
        reference_policy method reference only_method only_reference left_out`: the two means over the pairs
        that count, how many pairs only one side of them wins, how many pairs were left out.
    """
    import pandas as pd

    from envprobe_core.claims.judge import judge

    regime, profile = _only(frame, "regime"), _only(frame, "profile")
    protocols = list(dict.fromkeys(frame["protocol"]))
    claims = [in_regime(comparison.claim, regime) for comparison in comparisons]
    verdicts = judge(frame, claims, protocols=protocols, profile=profile, resamples=resamples)
    rows = [
        _pair_facts(frame[frame["protocol"] == protocol], comparison, claim)
        for comparison, claim in zip(comparisons, claims, strict=True)
        for protocol in protocols
    ]
    return pd.concat([verdicts, pd.DataFrame(rows)], axis=1)


def _pair_facts(episodes: pd.DataFrame, comparison: Comparison, claim: Claim) -> dict[str, object]:
    from envprobe_core.comparing import values_of

    chosen = episodes[episodes["world"].isin(comparison.worlds)].sort_values(["world", "seed"])
    table = chosen[["policy", "world", "seed"]].assign(value=values_of(chosen, claim.measures[0]))
    sides = [table[table["policy"] == name] for name in (comparison.arm, comparison.reference)]
    pairs = sides[0].merge(sides[1], on=["world", "seed"], suffixes=("_arm", "_reference"))
    whole = pairs.dropna(subset=["value_arm", "value_reference"])
    arm, reference = (whole[f"value_{side}"].to_numpy() for side in ("arm", "reference"))
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
    """Average a measure over the episodes of each policy, stratum and protocol, as `compare.summarize` does.

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

    from envprobe_core.comparing import summarize

    policies, pooled = list(policies), {name: GROUPS[name] for name in strata}
    chosen = frame[frame["policy"].isin(policies)]
    found = summarize(chosen, measure, ("protocol", "policy"), strata=pooled, resamples=resamples)
    found = found.rename(columns={"mean": "value"}).set_index(["protocol", "stratum", "policy"])
    every = pd.MultiIndex.from_product(
        [frame["protocol"].unique(), pooled, policies], names=["protocol", "stratum", "policy"]
    )
    found = found.reindex(every)[["value", "low", "high", "n"]]
    return found.assign(n=found["n"].fillna(0).astype(int)).reset_index()


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
