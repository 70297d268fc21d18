"""The agent fitted to the paper: how near it comes, what stands in the way, and what it says of the rest.

What may be fitted, and to what, is in `calibration`; the search in `calibration_search`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.calibration import (
    BASE,
    FREE,
    PROTOCOL,
    TARGETS,
    compare_targets,
    loss,
    predict,
    target_values,
)
from envprobe_core.calibration_search import Search, Settings, fit_record, read_fit
from envprobe_core.cells import find_profile
from envprobe_core.claims import Claim
from envprobe_core.claims.judge import AGREES, INPUT, NOT_TESTED, REVERSES, VERDICTS, judge
from envprobe_core.claims.places import PLACES
from envprobe_core.claims.printed import paper_value
from envprobe_core.experiments import DEFAULT_SEEDS, PROTOCOLS, Names, names
from envprobe_core.protocols import PAPER, parse_protocol
from envprobe_core.scoreboard import choose_claims, load_scoreboard_frame
from envprobe_core.show.markup import EMPTY, listed, number
from envprobe_core.statistics import RESAMPLES

COMMITTED = "calibrated"
OTHERS = "typical careful overconfident"  # settled before the fit
SHORT = Settings(population=16, generations=8)  # what a page may spend on a fit of its own
LEFT = "*left to the paper's number*"
STEP = 0.1  # how far a rate is moved, as a share of its range
SWITCHES = (
    "answer",
    "memory",
    "clock",
    "end",
    "accuracy",
    "pairing",
)  # what a spent step can mean to the score
POINTS = {"points": 1.0, "share": 100.0}  # to percentage points
NEAR = {"points": 3.0, "steps": 1.0}


# --- the fit ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fitted:
    """A fitted agent.

    Attributes:
        profile: the agent.
        fit: what its file says of the fit, or the same of a fit made just now.
        fresh: whether it was made just now.
    """

    profile: AgentProfile
    fit: dict[str, Any]
    fresh: bool


def load_fit(refit: bool = False) -> Fitted:
    """Read the committed fit, or search again for a bounded time.

    Args:
        refit: search again, shorter than for the committed profile; its result may differ from that.
    """
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
        rows.append(
            (
                target.name,
                str(target.printed),
                PLACES[target.place[0]],
                listed(again) if again else EMPTY,
                f"no: {target.dropped}" if target.dropped else "follows" if target.follows else "yes",
            )
        )
    return pd.DataFrame(rows, columns=["target", "printed", "where", "again", "counts"])


def list_rates(fitted: Fitted) -> pd.DataFrame:
    """List the rates that the fit may choose: `rate range base fitted why`."""
    rows = [
        (
            one.name,
            f"{one.low:g} to {one.high:g}",
            getattr(BASE, one.name),
            getattr(fitted.profile, one.name),
            one.why,
        )
        for one in FREE
    ]
    return pd.DataFrame(rows, columns=["rate", "range", "base", "fitted", "why"])


def measure_targets(fitted: Fitted, others: Names = OTHERS) -> pd.DataFrame:
    """Measure the targets for the fitted agent and for others.

    Returns:
        The rows of `calibration.compare_targets` with `printed`, the number as the paper has it.
    """
    profiles = [find_profile(name) for name in dict.fromkeys(names(others)) if name != COMMITTED]
    found = compare_targets([fitted.profile, *profiles])
    found["printed"] = found["target"].map({target.name: str(target.printed) for target in TARGETS})
    return found


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
    profile = fitted.profile
    changes: dict[str, AgentProfile] = {}
    for one in FREE:
        now, reach = getattr(profile, one.name), STEP * (one.high - one.low)
        new = now - reach if now - reach >= one.low else now + reach
        changes[f"`{one.name}` {number(new, 3)} instead of {number(now, 3)}"] = replace(
            profile, name=f"{one.name} moved", **{one.name: new}
        )
    other = "true" if profile.writes == "number" else "number"
    changes[f"tool values written as {'`True`' if other == 'true' else 'numbers'}"] = replace(
        profile, name="writes", writes=other
    )
    changes["remembers nothing, but writes the true state"] = replace(profile, name="true", copies_gold=True)
    ours = predict([profile, *changes.values()])
    losses = loss(ours, target_values())
    symbols = [target.symbol for target in TARGETS]
    table = pd.DataFrame(ours[1:] - ours[0], columns=symbols)
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
        kind = entry["kind"].replace("p_cw", "$p_{cw}$")
        for target in TARGETS:
            left = entry["kind"] == target.kind
            rows.append((target.name, str(target.printed), kind, entry["ours"][target.name], left))
        rows += [(f"`{one.name}`", "", kind, entry["rates"][one.name], False) for one in FREE]
    return pd.DataFrame(rows, columns=["what", "printed", "kind", "value", "left"])


def turn_switches(fitted: Fitted) -> pd.DataFrame:
    """Turn single switches of the targets' protocol back to the text, and see what a difference becomes.

    Returns:
        A row a protocol: `protocol switch`, and No-Probe minus Periodic on the spatial worlds in points for
        the `fitted` agent and for the `typical` one.
    """
    symbols = [target.symbol for target in TARGETS]
    one, other = symbols.index("No-Probe (spatial)"), symbols.index("Periodic (spatial)")
    rows = []
    for switch in ("", *SWITCHES):
        turned = f"{PROTOCOL.name}:{switch}={getattr(PAPER, switch)}" if switch else PROTOCOL.name
        ours = predict([fitted.profile, find_profile("typical")], protocol=parse_protocol(turned))
        rows.append((turned, switch, *(100 * (ours[:, one] - ours[:, other])).tolist()))
    return pd.DataFrame(rows, columns=["protocol", "switch", "fitted", "typical"])


# --- the rest of the paper ----------------------------------------------------------------------------


def outside_claims(regime: str = "S2") -> tuple[Claim, ...]:
    """Return the claims that compare something and are no input of a fit, asked of a regime."""
    return tuple(c for c in choose_claims(regime=regime) if not c.inputs and c.about == "comparison")


def judge_outside(
    profiles: Names = ("typical", COMMITTED),
    protocols: Names = PROTOCOLS,
    seeds: str = DEFAULT_SEEDS,
    regime: str = "S2",
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Test every claim outside the fit with each agent.

    Args:
        profiles: names; one that is named twice runs once.
        protocols: names.
        seeds: as in `scoreboard.load_scoreboard_frame`.
        regime: where claims about the paper's primary regime are asked.
        resamples: bootstrap resamples.

    Returns:
        A row a profile, claim and protocol, as `judge` gives it.
    """
    claims = outside_claims(regime)
    parts = []
    for profile in dict.fromkeys(names(profiles)):
        episodes = load_scoreboard_frame(claims, protocols, profile, seeds, regime)
        wanted = [parse_protocol(name).name for name in names(protocols)]
        parts.append(judge(episodes, claims, protocols=wanted, profile=profile, resamples=resamples))
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
    there = outside[outside["paper_value"].notna() & outside["estimate"].notna()]
    gap = there["difference"].astype(float).abs() * there["unit"].map(POINTS).fillna(1.0)
    there = there.assign(gap=gap, figure=there["unit"].replace("share", "points"))
    rows = []
    for protocol in outside["protocol"].unique():
        for profile in outside["profile"].unique():
            for figure, near in NEAR.items():
                chosen = there[["protocol", "profile", "figure"]].eq([protocol, profile, figure]).all(axis=1)
                own = there.loc[chosen, "gap"]
                within = (own <= near).mean() if len(own) else np.nan
                rows.append((protocol, profile, figure, len(own), own.median(), within))
    return pd.DataFrame(rows, columns=["protocol", "profile", "unit", "n", "median", "within"])


def count_turned(outside: pd.DataFrame) -> pd.Series:
    """Count verdicts that differ between the first agent and the last: `both differ opposite`."""
    wide = outside.pivot(index=["claim", "protocol"], columns="profile", values="verdict")
    wide = wide[(wide != NOT_TESTED).all(axis=1)]
    agents = outside["profile"].unique()
    first, last = (wide[agent] for agent in (agents[0], agents[-1]))
    opposite = (first.isin(AGREES) & (last == REVERSES)) | ((first == REVERSES) & last.isin(AGREES))
    return pd.Series(
        {"both": len(wide), "differ": int((first != last).sum()), "opposite": int(opposite.sum())}
    )
