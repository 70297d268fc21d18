"""The comparisons of the paper's first table on a frame of episodes, for the page on language models.

A row of Table 1 is a claim of `claims.csv` (section `main`); here it meets the levels behind it, the
paper's printed numbers and the test of task success.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims import Claim, find_claim, load_claims, paper_values
from envprobe_core.claims.printed import stratum_of
from envprobe_core.show.figures import STRATUM_TITLES
from envprobe_core.show.markup import Table
from envprobe_core.show.table import table
from envprobe_core.statistics import RESAMPLES

if TYPE_CHECKING:
    import pandas as pd

TABLE = "tab:main"
ROWS = {  # the claims about accuracy, in the paper's order, and those about success
    "main-procedural": None,
    "main-combined": None,
    "main-spatial": None,
    "main-cd": "main-cd-success",
    "main-minus-u": "main-minus-u-success",
}
FAMILY = 6
PRINTED = (
    "method_accuracy", "reference_accuracy", "accuracy_p", "method_success_pct", "reference_success_pct",
    "success_mcnemar_p",
)  # fmt: skip


def claims_at(section: str, regime: str) -> list[Claim]:
    """Return the claims of a section of `claims.csv`, each asked of a regime."""
    return [replace(claim, regime=regime) for claim in load_claims(section=section)]


def about_success(arm: str, reference: str, worlds: Iterable[str], regime: str) -> Claim:
    """Ask whether two policies differ in task success, by McNemar's exact test: no claim of the paper's."""
    about = {
        "kind": "mcnemar", "measures": ("success",), "directions": ("either",), "worlds": tuple(worlds),
        "arms": (arm,), "references": (reference,), "regime": regime, "family": FAMILY, "primary": False,
        "setting": False, "inputs": (),
    }  # fmt: skip
    nothing = dict.fromkeys(("value", "low", "high", "n"))
    return replace(find_claim("main-procedural"), id=f"{arm} vs {reference}: success", **about, **nothing)


def load_comparisons(
    frame: pd.DataFrame, regime: str = "S2", profile: str = "typical", resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Set every row of the paper's first table beside the same comparison under each protocol.

    Args:
        frame: episodes, from `experiments.load_grid`.
        regime: the regime of the episodes; the paper's is S2.
        profile: the agent profile of the episodes.
        resamples: bootstrap resamples.

    Returns:
        One row a comparison and protocol. Keys: `claim stratum arm reference protocol`. Accuracy, where
        differences are in points: `method base` (the two levels), `estimate low high low_adjusted
        high_adjusted p p_adjusted n equal verdict reason difference` (`equal` counts pairs without a
        difference; the last is ours minus the paper's). Success: `success_method success_base` (shares),
        `only_arm only_reference` (discordant pairs), `success_estimate success_p success_p_adjusted
        success_verdict` (empty where the paper claims nothing). What the paper prints: `paper_` and the
        name; missing numbers are NaN.
    """
    import pandas as pd

    from envprobe_core.claims.judge import judge

    settings = {"profile": profile, "resamples": resamples}
    settings["protocols"] = list(dict.fromkeys(frame["protocol"]))
    claims = [replace(find_claim(name), regime=regime) for name in ROWS]
    asks = [about_success(claim.arms[0], claim.references[0], claim.worlds, regime) for claim in claims]
    claimed = [replace(find_claim(name), regime=regime) for name in ROWS.values() if name]
    accuracy, success = judge(frame, claims, **settings), judge(frame, asks, **settings)
    answers = judge(frame, claimed, **settings).set_index(["claim", "protocol"])["verdict"]
    printed = {(v.row, v.column): v.value for v in paper_values() if v.source == TABLE}
    own = frame[frame["profile"] == profile].sort_values(["policy", "world", "seed"])
    rows = []
    for at, verdict in enumerate(accuracy.itertuples(index=False)):
        claim, tested = find_claim(verdict.claim), success.iloc[at]
        (arm,), (reference,), stratum = claim.arms, claim.references, stratum_of(claim.worlds)
        chosen = own[(own["protocol"] == verdict.protocol) & own["world"].isin(claim.worlds)]
        levels = chosen.groupby("policy")[["accuracy", "success"]].mean().reindex([arm, reference])
        gaps = {name: _gaps(chosen, arm, reference, name) for name in ("accuracy", "success")}
        row = {
            "claim": verdict.claim, "stratum": stratum, "arm": arm, "reference": reference,
            "protocol": verdict.protocol, "method": levels["accuracy"].iloc[0],
            "base": levels["accuracy"].iloc[1], "equal": int((gaps["accuracy"] == 0).sum()),
            "success_method": levels["success"].iloc[0], "success_base": levels["success"].iloc[1],
            "success_estimate": tested["estimate"], "success_p": tested["p"],
            "success_p_adjusted": tested["p_adjusted"],
            "only_arm": (gaps["success"] > 0).sum() if len(gaps["success"]) else np.nan,
            "only_reference": (gaps["success"] < 0).sum() if len(gaps["success"]) else np.nan,
            "success_verdict": answers.get((ROWS[verdict.claim], verdict.protocol), ""),
        }  # fmt: skip
        row |= {name: getattr(verdict, name) for name in _VERDICT}
        pair = f"{stratum}: {arm} vs {reference}"
        rows.append(row | {f"paper_{name}": printed.get((pair, name), np.nan) for name in PRINTED})
    return pd.DataFrame(rows)


_VERDICT = (
    "estimate", "low", "high", "low_adjusted", "high_adjusted", "p", "p_adjusted", "n", "difference",
    "paper_value", "paper_low", "paper_high", "verdict", "reason",
)  # fmt: skip


SHORT = {"simple": "Simple", "periodic": "Periodic", "cd": "$c{+}d$", "minus-u": "$-u$"}


def printed_rows(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Put the paper's own row before those of each comparison, as its Table 1 prints it.

    Args:
        comparisons: from `load_comparisons`.

    Returns:
        The columns of `comparisons`, with `title` (of the comparison) and `source` (protocol or *printed*).
    """
    import pandas as pd

    empty = dict.fromkeys(
        ("low_adjusted", "high_adjusted", "difference", "only_arm", "only_reference", "success_p_adjusted"),
        np.nan,
    )
    first = comparisons.drop_duplicates("claim")
    method, base = first["paper_method_success_pct"] / 100, first["paper_reference_success_pct"] / 100
    paper = first.assign(
        source="*printed*",
        method=first["paper_method_accuracy"],
        base=first["paper_reference_accuracy"],
        estimate=first["paper_value"],
        low=first["paper_low"],
        high=first["paper_high"],
        p=first["paper_accuracy_p"].replace(0.001, 0.0),  # printed as a bound, "p < .001"
        success_method=method,
        success_base=base,
        success_estimate=100 * (method - base),
        success_p=first["paper_success_mcnemar_p"],
        verdict="",
        success_verdict="",
        **empty,
    )
    both = pd.concat([paper, comparisons.assign(source="`" + comparisons["protocol"] + "`")])
    rank = both["claim"].map({name: place for place, name in enumerate(ROWS)})
    both = both.iloc[np.argsort(rank, kind="stable")].reset_index(drop=True)
    title = [
        f"**{STRATUM_TITLES[row.stratum]}:** {SHORT[row.arm]} against {SHORT[row.reference]}"
        for row in both.itertuples()
    ]
    ends = {"adjusted_low": both["low_adjusted"], "adjusted_high": both["high_adjusted"]}
    ends |= {"estimate_low": both["low"], "estimate_high": both["high"]}
    return both.assign(title=title, **ends)


def _gaps(episodes: pd.DataFrame, arm: str, reference: str, measure: str) -> pd.Series:
    """Return the differences of two policies over the pairs of one protocol's episodes, [pair]."""
    sides = (episodes[episodes["policy"] == name].set_index(["world", "seed"]) for name in (arm, reference))
    left, right = (side[measure].astype(float) for side in sides)
    return (left - right).dropna()


def show_gains(comparisons: pd.DataFrame) -> Table:
    """Show the accuracy part of the paper's first table, and ours below each of its rows.

    Args:
        comparisons: from `load_comparisons`.
    """
    return table(
        printed_rows(comparisons),
        "tab-gains",
        "World-state accuracy: every row of the paper's Table 1 as printed, and the same comparison under "
        "each protocol. Levels are shares, differences percentage points.",
        {
            "comparison": "{title}",
            "source": "{source}",
            "method": "{method:3}",
            "reference": "{base:3}",
            r"$\hat\Delta$": "{estimate:+2}",
            "95% interval": "{estimate:[2]}",
            "adjusted": "{adjusted:[2]}",
            "$p$": "{p:p}",
            "ours − printed": "{difference:+2}",
            "verdict": "{verdict:verdict}",
        },
        once="title",
    )
