"""Rows of the paper's tables, each above what episodes say of the same comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from envprobe_core.claims import PaperValue, find_claim, paper_values
from envprobe_core.claims.judge import judge
from envprobe_core.claims.printed import stratum_of
from envprobe_core.protocols import in_words
from envprobe_core.show.markup import EMPTY, MINUS
from envprobe_core.statistics import RESAMPLES


def beside_paper(
    frame: pd.DataFrame,
    rows: Mapping[str, str],
    sources: str,
    columns: Sequence[str],
    *,
    regime: str = "S2",
    profile: str = "typical",
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Judge claims that compare two policies, and put the paper's own numbers above each.

    Args:
        frame: a row an episode.
        rows: claims, and the row of `data/paper/tables.csv` that prints each.
        sources: tables of the paper; a number is taken from the first that prints it.
        columns: where the paper prints method, reference, difference and p.

    Returns:
        For each claim a row of the paper and one a protocol: `claim stratum arm base_policy source printed`;
        `method base` (the two means, success in percent) `estimate low high adjusted_low adjusted_high p
        difference verdict n`; `only_arm only_base`, pairs in which one side alone is higher, and `left_out`,
        pairs without a value on some side. The paper's numbers are texts, as it prints them.
    """
    ledger = judge(frame, list(rows), regime=regime, profile=profile, resamples=resamples)
    ledger = ledger.set_index(["claim", "protocol"])
    found = []
    for name, row in rows.items():
        claim = find_claim(name)
        (arm,), (base,), (measure,) = claim.arms, claim.references, claim.measures
        about = {"claim": name, "stratum": stratum_of(claim.worlds), "arm": arm, "base_policy": base}
        method, reference, gap, p = (printed_at(sources.split(), row, column) for column in columns)
        found.append(
            about
            | {"source": "*printed*", "printed": True, "stratum": row.partition(":")[0]}
            | {"method": as_printed(method), "base": as_printed(reference)}
            | {"estimate": as_printed(gap, sign=True), "p": as_printed(p), "verdict": None}
            | {"low": gap and gap.low, "high": gap and gap.high}
        )
        own = frame[frame["world"].isin(claim.worlds)]
        for protocol, episodes in own.groupby("protocol", sort=False):
            sides = episodes.pivot(index=["world", "seed"], columns="policy", values=measure)
            pairs = sides[[arm, base]].astype(float).dropna()
            scale = claim.scale if measure == "success" else 1.0
            tested = ledger.loc[(name, protocol)]
            found.append(
                about
                | {"source": in_words(protocol), "printed": False, "protocol": protocol}
                | {"method": scale * pairs[arm].mean(), "base": scale * pairs[base].mean()}
                | {key: tested[key] for key in ("estimate", "low", "high", "p", "difference", "verdict")}
                | {"n": len(pairs)}
                | {"adjusted_low": tested["low_adjusted"], "adjusted_high": tested["high_adjusted"]}
                | {"only_arm": int((pairs[arm] > pairs[base]).sum())}
                | {"only_base": int((pairs[arm] < pairs[base]).sum())}
                | {"left_out": len(sides) - len(pairs)}
            )
    return pd.DataFrame(found).replace({np.nan: None})


def printed_at(sources: Sequence[str], row: str, column: str) -> PaperValue | None:
    """Return the number printed in a row and column of the first source that has it, None where none does."""
    known = {(value.source, value.row, value.column): value for value in paper_values()}
    return next((known[key] for source in sources if (key := (source, row, column)) in known), None)


def as_printed(value: PaperValue | None, *, sign: bool = False) -> str:
    """Write a number with the digits and the relation that the paper prints; none as a dash."""
    if value is None:
        return EMPTY
    text = f"{abs(value.value):.{value.decimals}f}"
    if value.column.endswith("_p"):
        text = text.replace("0.", ".", 1)
    mark = MINUS if value.value < 0 else "+" if sign and value.value > 0 else ""
    return {"=": "", "<": "< ", ">": "> "}[value.relation] + mark + text
