"""Sentences with numbers, made from frames: the paper's first table, in the section on main results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims.judge import HOLDS, OTHER_SIZE
from envprobe_core.figures import policy_title
from envprobe_core.markup import (
    Text,
    code,
    counted,
    listed,
    p_value,
    percent,
    signed,
    span,
    under_each,
)
from envprobe_core.probe_prose import PLACES, STRATA, tell_information, tell_spending, tell_takeaway
from envprobe_core.prose import lean, tell_ledger
from envprobe_core.regimes import REGIMES

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "tell_gains",
    "tell_information",
    "tell_ledger",
    "tell_levels",
    "tell_regime",
    "tell_spending",
    "tell_success",
    "tell_takeaway",
]
WORDS = {1: "*more* accurate", -1: "*less* accurate", 0: "neither clearly more nor clearly less accurate"}


def tell_regime(regime: str) -> Text:
    """Say what verdicts mean where the episodes are of another regime than the paper's."""
    if regime == "S2":
        return Text("The episodes are those of the paper's primary regime, `S2`, as its table's are.")
    return Text(
        f"The episodes are of `{regime}`, {REGIMES[regime].title}; the paper's table is about `S2`. Its "
        "figures stand here for comparison, and a verdict says whether the statement carries over."
    )


def tell_gains(comparisons: pd.DataFrame) -> Text:
    """Say in which direction every row of the paper's first table goes under each protocol.

    Args:
        comparisons: from `comparisons.load_comparisons`.
    """
    told = {}
    for protocol, rows in comparisons.groupby("protocol", sort=False):
        parts = [
            _group(group, policy_title(str(arm)), policy_title(str(reference)))
            for (arm, reference), group in rows.groupby(["arm", "reference"], sort=False)
        ]
        told[protocol] = f" {'. '.join(parts)}."
    gains = comparisons[comparisons["reference"] == "periodic"]
    intro = "Differences in points, each with its 95% interval:"
    return Text(f"{intro}\n\n{under_each(told)}\n\n{_agreement(gains)}")


def _group(rows: pd.DataFrame, arm: str, reference: str) -> str:
    """Tell one pair of policies in all its strata, those of one direction together."""
    by_side: dict[str, list[str]] = {}
    for row in rows.itertuples():
        side = lean(row.low_adjusted, row.high_adjusted)
        if side is None:
            word, size = f"has too few episodes in common with {reference}", ""
        elif row.equal == row.n:
            word, size = f"scores the same as {reference} in every pair", ""
        else:
            word = f"is {WORDS[side]} than {reference}"
            size = f" ({signed(row.estimate)}; {span(row.low, row.high)})"
        by_side.setdefault(word, []).append(PLACES[row.stratum] + size)
    told = [f"{word} {listed(places)}" for word, places in by_side.items()]
    return f"{arm} {listed(told, 'but')}"


def _agreement(gains: pd.DataFrame) -> str:
    """Compare the gains over Periodic with the paper's, sign by sign."""
    printed = gains.drop_duplicates("stratum").set_index("stratum")["paper_value"]
    text = (
        f"The paper prints {listed(f'{signed(printed[s])} ({s})' for s in STRATA)} points for the gain over "
        "Periodic. "
    )
    sides: dict[str, list[int | None]] = {
        str(protocol): [lean(row.low_adjusted, row.high_adjusted) for row in rows.itertuples()]
        for protocol, rows in gains.groupby("protocol", sort=False)
    }
    same = [name for name, found in sides.items() if all(side == 1 for side in found)]
    against = [name for name, found in sides.items() if all(side == -1 for side in found)]
    mixed = [name for name in sides if name not in (*same, *against)]
    parts = []
    if same:
        parts.append(f"every one of these gains has the paper's sign under {code(same)}")
    if against:
        parts.append(f"every one has the opposite sign under {code(against)}")
    if mixed:
        parts.append(f"they do not all have one clear sign under {code(mixed)}")
    text += f"In our runs {listed(parts)}."
    if same and against:
        text += (
            " Agent, worlds and rules of the policies are the same in all of them; only the protocol "
            "differs. Whether probing pays has no answer before one says how the experiment is run and "
            "scored."
        )
    return text


def tell_success(comparisons: pd.DataFrame) -> Text:
    """Say what probing costs in completed tasks, and where two policies complete the same episodes.

    Args:
        comparisons: from `comparisons.load_comparisons`.
    """
    told = {}
    for protocol, rows in comparisons.groupby("protocol", sort=False):
        parts, equal = [], []
        for row in rows.itertuples():
            arm, reference = policy_title(row.arm), policy_title(row.reference)
            if row.reference != "periodic" and row.only_arm == 0 and row.only_reference == 0:
                equal.append(arm)
            elif row.stratum != "combined":
                parts.append(_completed(row, arm, reference))
        if equal:
            verb = "completes" if len(equal) == 1 else "complete"
            parts.append(f"{listed(equal)} {verb} exactly the episodes that EnvProbe-Simple completes")
        told[protocol] = f" {'; '.join(parts)}."
    return Text(under_each(told))


def _completed(row: object, arm: str, reference: str) -> str:
    """Tell one comparison of completed episodes."""
    if np.isnan(row.success_p):
        return f"{arm} and {reference} share too few episodes {PLACES[row.stratum]}"
    clear = row.success_p_adjusted < 0.05
    word = "more" if row.success_estimate > 0 else "fewer"
    verdict = f"*{word}* episodes than" if clear else "neither clearly more nor clearly fewer episodes than"
    return (
        f"{arm} completes {verdict} {reference} {PLACES[row.stratum]}, {percent(row.success_method, 1)} "
        f"against {percent(row.success_base, 1)} (exact $p$ {p_value(row.success_p)}, adjusted "
        f"{p_value(row.success_p_adjusted)})"
    )


def tell_levels(verdicts: pd.DataFrame) -> Text:
    """Say plainly how far our levels are from the printed ones.

    Args:
        verdicts: of the claims whose name begins with `level-`.
    """
    levels = verdicts[verdicts["claim"].str.startswith("level-")]
    accuracies = levels[~levels["claim"].str.startswith("level-success-")]
    told = {}
    for protocol, rows in accuracies.groupby("protocol", sort=False):
        apart = 100 * rows["difference"].astype(float)
        if apart.isna().any():
            told[protocol] = " there are too few episodes to compare levels."
            continue
        sides = ((apart > 0).sum(), "above"), ((apart < 0).sum(), "below")
        where = listed(f"{counted(int(n))} lie {word}" for n, word in sides if n)
        nearest, farthest = (apart.iloc[place] for place in (apart.abs().argmin(), apart.abs().argmax()))
        inside = int(rows["verdict"].isin([HOLDS, OTHER_SIZE]).sum())
        told[protocol] = (
            f" {where} the printed value. The nearest is {signed(nearest, 1)} points off, the farthest "
            f"{signed(farthest, 1)}; {counted(inside)} has its adjusted interval within three points of it."
        )
    count = accuracies["claim"].nunique()
    return Text(f"Of the paper's {counted(count)} accuracy levels:\n\n{under_each(told)}")
