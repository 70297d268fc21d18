"""The comparisons of the paper's first table, and of a probe with a placebo, on a frame of episodes.

A row of Table 1 is a claim of `claims.csv` (section `main`); here it meets the levels behind it, the
paper's printed numbers and the test of task success. Statistics come from `verdicts` and `stats` alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims import Claim, find_claim, load_claims
from envprobe_core.figures import STRATA, stratum_of
from envprobe_core.panel import NotTestableError, Panel
from envprobe_core.paper import paper_values
from envprobe_core.stats import RESAMPLES
from envprobe_core.verdicts import evaluate

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
INFORMATION = {  # what is set against what, and in which measure
    "gain": ("simple", "periodic", "accuracy"),
    "placebo_gain": ("placebo", "periodic", "accuracy"),
    "information": ("simple", "placebo", "accuracy"),
    "terminal_gain": ("simple", "periodic", "accuracy_terminal"),
}


def claims_at(section: str, regime: str) -> list[Claim]:
    """Return the claims of a section, each asked of another regime than the paper's.

    Args:
        section: a section of `claims.csv`.
        regime: the regime whose episodes are to answer.
    """
    return [replace(claim, regime=regime) for claim in load_claims(section=section)]


def question(
    arm: str, reference: str, measure: str, worlds: Iterable[str], regime: str, *, kind: str = "paired"
) -> Claim:
    """Ask for a difference that the paper makes no claim about.

    Args:
        arm: a policy.
        reference: the policy that is subtracted.
        measure: a column of the frame that holds shares.
        worlds: names; pooled, resampled within each.
        regime: name of a regime.
        kind: `paired`, or `mcnemar` for the exact test of a difference in successes.

    Returns:
        A claim in points, which `verdicts.evaluate` answers; its `paired` interval is not adjusted.
    """
    return replace(
        find_claim("main-procedural"),
        id=f"{arm} vs {reference}: {measure}",
        kind=kind,
        measures=(measure,),
        worlds=tuple(worlds),
        arms=(arm,),
        references=(reference,),
        directions=("either" if kind == "mcnemar" else "greater",),
        value=None,
        low=None,
        high=None,
        n=None,
        family=FAMILY if kind == "mcnemar" else 1,
        primary=False,
        regime=regime,
        inputs=(),
    )


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

    printed = {(v.row, v.column): v for v in paper_values() if v.source == TABLE}
    rows = []
    for protocol in dict.fromkeys(frame["protocol"]):
        panel = Panel(frame, protocol, profile)
        for name, success_name in ROWS.items():
            claim = replace(find_claim(name), regime=regime)
            (arm,), (reference,) = claim.arms, claim.references
            row: dict[str, object] = {
                "claim": name,
                "stratum": stratum_of(claim.worlds),
                "arm": arm,
                "reference": reference,
                "protocol": protocol,
            }
            row |= _accuracy(claim, panel, resamples)
            row |= _success(claim, success_name, panel, resamples)
            for column in (
                "method_accuracy", "reference_accuracy", "accuracy_p", "method_success_pct",
                "reference_success_pct", "success_mcnemar_p",
            ):  # fmt: skip
                value = printed.get((f"{row['stratum']}: {arm} vs {reference}", column))
                row[f"paper_{column}"] = np.nan if value is None else value.value
            rows.append(row)
    table = pd.DataFrame(rows)
    order = table["claim"].map({name: place for place, name in enumerate(ROWS)})
    return table.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)


TITLES = {"procedural": "tool world", "spatial": "spatial worlds", "combined": "all worlds"}
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
        f"**{TITLES[row.stratum]}:** {SHORT[row.arm]} against {SHORT[row.reference]}"
        for row in both.itertuples()
    ]
    ends = {"adjusted_low": both["low_adjusted"], "adjusted_high": both["high_adjusted"]}
    ends |= {"estimate_low": both["low"], "estimate_high": both["high"]}
    return both.assign(title=title, **ends)


def _accuracy(claim: Claim, panel: Panel, resamples: int) -> dict[str, object]:
    verdict = evaluate(claim, panel, protocol=panel.protocol, profile=panel.profile, resamples=resamples)
    chosen = panel.frame[panel.frame["world"].isin(claim.worlds)]
    levels = chosen.groupby("policy")["accuracy"].mean()
    found = {"method": levels.get(claim.arms[0], np.nan), "base": levels.get(claim.references[0], np.nan)}
    for name in (
        "estimate", "low", "high", "low_adjusted", "high_adjusted", "p", "p_adjusted", "n", "difference",
        "paper_value", "paper_low", "paper_high",
    ):  # fmt: skip
        value = getattr(verdict, name)
        found[name] = np.nan if value is None else value
    found["equal"] = equal_pairs(panel, claim, "accuracy")[1]
    return found | {"verdict": verdict.verdict, "reason": verdict.reason}


def equal_pairs(panel: Panel, claim: Claim, measure: str) -> tuple[int, int, int, int]:
    """Count the pairs of a claim's two arms: all, equal, the arm higher, the reference higher."""
    try:
        sample = panel.sample(measure, claim.regime, claim.worlds, claim.arms, claim.references[0])
    except NotTestableError:
        return 0, 0, 0, 0
    pairs = sample.numerators
    return len(pairs), int((pairs == 0).sum()), int((pairs > 0).sum()), int((pairs < 0).sum())


def _success(claim: Claim, success_name: str | None, panel: Panel, resamples: int) -> dict[str, object]:
    (arm,), (reference,) = claim.arms, claim.references
    ask = question(arm, reference, "success", claim.worlds, claim.regime, kind="mcnemar")
    tested = evaluate(ask, panel, protocol=panel.protocol, profile=panel.profile, resamples=resamples)
    chosen = panel.frame[panel.frame["world"].isin(claim.worlds)]
    shares = chosen.groupby("policy")["success"].mean()
    found: dict[str, object] = {
        "success_method": shares.get(arm, np.nan),
        "success_base": shares.get(reference, np.nan),
        "success_estimate": np.nan if tested.estimate is None else tested.estimate,
        "success_p": np.nan if tested.p is None else tested.p,
        "success_p_adjusted": np.nan if tested.p_adjusted is None else tested.p_adjusted,
        "only_arm": np.nan,
        "only_reference": np.nan,
        "success_verdict": "",
    }
    pairs, _, only_arm, only_reference = equal_pairs(panel, ask, "success")
    if pairs:
        found |= {"only_arm": only_arm, "only_reference": only_reference}
    if success_name is not None:
        about = replace(find_claim(success_name), regime=claim.regime)
        verdict = evaluate(about, panel, protocol=panel.protocol, profile=panel.profile, resamples=resamples)
        found["success_verdict"] = verdict.verdict
    return found


def load_information(
    frame: pd.DataFrame, regime: str = "S2", profile: str = "typical", resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Split the gain of EnvProbe-Simple over Periodic into what its answers give and what is left.

    Args:
        frame: episodes of Simple, Placebo and Periodic.
        regime: the regime of the episodes.
        profile: the agent profile of the episodes.
        resamples: bootstrap resamples.

    Returns:
        One row a protocol and stratum: `protocol stratum n identical` (pairs in which Simple and Placebo
        score the same) and, in points, each name of `INFORMATION` with its 95% interval in `<name>_low`
        and `<name>_high` (not adjusted: the paper claims none of them).
    """
    import pandas as pd

    rows = []
    for protocol in dict.fromkeys(frame["protocol"]):
        panel = Panel(frame, protocol, profile)
        for stratum, worlds in STRATA.items():
            pair = question("simple", "placebo", "accuracy", worlds, regime)
            n, identical, _, _ = equal_pairs(panel, pair, "accuracy")
            row: dict[str, object] = {
                "protocol": protocol,
                "stratum": stratum,
                "n": n,
                "identical": identical,
            }
            for name, (arm, reference, measure) in INFORMATION.items():
                ask = question(arm, reference, measure, worlds, regime)
                found = evaluate(ask, panel, protocol=protocol, profile=profile, resamples=resamples)
                for part in ("", "_low", "_high"):
                    value = getattr(found, part[1:] or "estimate")
                    row[name + part] = np.nan if value is None else value
            rows.append(row)
    return pd.DataFrame(rows)
