"""The agent fitted to the paper: how near it comes, what stands in the way, and what it says of the rest.

What may be fitted, to what, and the search are in `calibration`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.analyses.calibration import (
    FREE,
    TARGETS,
    Search,
    Settings,
    compare_targets,
    fit_record,
    loss,
    predict,
    read_fit,
    target_values,
)
from envprobe_core.analyses.scoreboard import choose_claims, run_claims
from envprobe_core.cells import DEFAULT_SEEDS, Names, find_profile, find_protocols, names
from envprobe_core.claims.judge import AGREES, INPUT, NOT_TESTED, VERDICTS, judge
from envprobe_core.claims.places import PLACES
from envprobe_core.claims.printed import paper_value
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.show.markup import EMPTY, listed, number
from envprobe_core.statistics import RESAMPLES

COMMITTED = "calibrated"
OTHERS = "typical careful overconfident"  # settled before the fit
SHORT = Settings(population=16, generations=8)  # what a page may spend on a fit of its own
LEFT = "*left to the paper's number*"
STEP = 0.1  # how far a rate is moved, as a share of its range
POINTS = {"points": 1.0, "share": 100.0}  # to percentage points
NEAR = {"points": 3.0, "steps": 1.0}


# --- the fit ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fitted:
    """A fitted agent."""

    profile: AgentProfile
    fit: dict[str, Any]  # what its file says of the fit, or the same of a fit made just now
    fresh: bool  # whether it was made just now


def load_fit(refit: bool = False) -> Fitted:
    """Read the committed fit, or search again, shorter; what that finds may differ."""
    if not refit:
        return Fitted(find_profile(COMMITTED), read_fit(COMMITTED), False)
    search = Search()
    found = search.run(settings=SHORT)
    return Fitted(found.profile, fit_record(found, [], search, SHORT)["fit"], True)


def list_targets() -> pd.DataFrame:
    """List what the fit may use: `target printed where again counts`, in words."""
    rows = []
    for target in TARGETS:
        again = [f"{paper_value(*place)} ({PLACES[place[0]]})" for place in target.repeats]
        counts = f"no: {target.dropped}" if target.dropped else "follows" if target.follows else "yes"
        where = PLACES[target.place[0]], listed(again) if again else EMPTY
        rows.append((target.name, str(target.printed), *where, counts))
    return pd.DataFrame(rows, columns=["target", "printed", "where", "again", "counts"])


def measure_targets(fitted: Fitted, others: Names = OTHERS) -> pd.DataFrame:
    """Measure the fitted agent's targets and others', as `calibration.compare_targets`, and as `printed`."""
    profiles = [find_profile(name) for name in dict.fromkeys(names(others)) if name != COMMITTED]
    found = compare_targets([fitted.profile, *profiles])
    return found.assign(printed=found["target"].map({one.name: str(one.printed) for one in TARGETS}))


def objectives(targets: pd.DataFrame) -> pd.Series:
    """Return the objective of each agent, by name."""
    wide = targets.pivot(index="profile", columns="target", values="ours")
    wide = wide.loc[targets["profile"].unique(), [target.name for target in TARGETS]]
    return pd.Series(loss(wide.to_numpy(), target_values()), wide.index)


# --- what stands in the way ---------------------------------------------------------------------------


def pull(fitted: Fitted) -> pd.DataFrame:
    """Move each free rate, and turn each habit, and see where the targets go.

    Returns:
        A row a change: `change`, the difference it makes to each target (by symbol), and to the `objective`;
        the last row is what is left to the paper's numbers.
    """
    profile, changes = fitted.profile, {}
    for one in FREE:
        now, reach = getattr(profile, one.name), STEP * (one.high - one.low)
        new = now - reach if now - reach >= one.low else now + reach
        changes[f"`{one.name}` {number(new, 3)} instead of {number(now, 3)}"] = {one.name: new}
    other, word = ("true", "`True`") if profile.writes == "number" else ("number", "numbers")
    changes[f"tool values written as {word}"] = {"writes": other}
    changes["remembers nothing, but writes the true state"] = {"copies_gold": True}
    ours = predict([profile, *(replace(profile, name=name, **own) for name, own in changes.items())])
    losses = loss(ours, target_values())
    table = pd.DataFrame(ours[1:] - ours[0], columns=[target.symbol for target in TARGETS])
    table["objective"] = losses[1:] - losses[0]
    table.loc[len(table)] = [*(target_values() - ours[0]), np.nan]
    return table.assign(change=[*changes, LEFT])


def list_left_out(fitted: Fitted) -> pd.DataFrame:
    """List the fits in which one kind of target did not count; none for a fit made just now.

    Returns:
        A row a target, or free rate, and fit: `what printed kind value left`; `left` says whether the target
        is of the kind left out.
    """
    rows = []
    for entry in fitted.fit["left_out"]:
        kind = entry["kind"].replace("canonical p_cw", "confident-wrong rate")
        for target in TARGETS:
            left = entry["kind"] == target.kind
            rows.append((target.name, str(target.printed), kind, entry["ours"][target.name], left))
        rows += [(f"`{one.name}`", "", kind, entry["rates"][one.name], False) for one in FREE]
    return pd.DataFrame(rows, columns=["what", "printed", "kind", "value", "left"])


# --- the rest of the paper ----------------------------------------------------------------------------


def judge_outside(
    profiles: Names = ("typical", COMMITTED),
    protocols: Names = tuple(PROTOCOLS),
    seeds: str = DEFAULT_SEEDS,
    regime: str = "S2",
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Test every claim that compares something and is no input of a fit with each agent.

    Args:
        profiles: names; one that is named twice runs once.
        seeds: as in `scoreboard.run_claims`.
        regime: where claims about the paper's primary regime are asked.

    Returns:
        A row a profile, claim and protocol, as `judge` gives it.
    """
    claims = [one for one in choose_claims(regime=regime) if not one.inputs and one.about == "comparison"]
    wanted = [protocol.name for protocol in find_protocols(protocols)]
    parts = [
        judge(
            run_claims(claims, protocols, profile, seeds, regime),
            claims, protocols=wanted, profile=profile, resamples=resamples,
        )
        for profile in dict.fromkeys(names(profiles))
    ]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def count_verdicts(outside: pd.DataFrame) -> pd.DataFrame:
    """Count verdicts: `protocol profile`, a column a verdict, `agree` (share of tested claims that hold)."""
    agents, order = outside["profile"].unique(), outside["protocol"].unique()
    counts = outside.groupby(["protocol", "profile", "verdict"]).size().unstack(fill_value=0)
    counts = counts.reindex(pd.MultiIndex.from_product([order, agents]), fill_value=0)
    met = set(outside["verdict"]) | {NOT_TESTED}
    counts = counts.reindex(columns=[word for word in VERDICTS if word in met - {INPUT}], fill_value=0)
    tested = counts.drop(columns=NOT_TESTED).sum(axis=1)
    agree = counts[counts.columns.intersection(AGREES)].sum(axis=1) / tested
    return counts.assign(agree=agree).rename_axis(["protocol", "profile"]).reset_index()


def measure_gaps(outside: pd.DataFrame) -> pd.DataFrame:
    """Measure how far the agents' figures lie from the printed ones.

    Returns:
        A row a protocol, profile and kind of figure: `protocol profile unit n median within`: claims with a
        printed figure, the median distance, and the share of them within 3 points or 1 step.
    """
    there = outside.dropna(subset=["paper_value", "estimate"])
    gap = there["difference"].astype(float).abs() * there["unit"].map(POINTS).fillna(1.0)
    unit = there["unit"].replace("share", "points")
    there = there.assign(gap=gap, unit=unit, near=(gap <= unit.map(NEAR)).astype(float))
    found = there.groupby(["protocol", "profile", "unit"]).agg(
        n=("gap", "size"), median=("gap", "median"), within=("near", "mean")
    )
    order = [outside["protocol"].unique(), outside["profile"].unique(), list(NEAR)]
    found = found.reindex(pd.MultiIndex.from_product(order, names=found.index.names))
    return found.assign(n=found["n"].fillna(0).astype(int)).reset_index()
