"""Sentences with numbers, made from frames: what probes are worth and when they are spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims.judge import HOLDS, OTHER_SIZE
from envprobe_core.figures import policy_title
from envprobe_core.markup import Text, code, counted, listed, number, percent, signed, span, under_each
from envprobe_core.measures import useful_probe_rate
from envprobe_core.prose import lean
from envprobe_core.protocols import parse_protocol

if TYPE_CHECKING:
    import pandas as pd

PLACES = {
    "procedural": "on the tool world",
    "spatial": "on the two spatial worlds",
    "combined": "on all three worlds together",
}
STRATA = ("procedural", "spatial", "combined")


def tell_information(information: pd.DataFrame) -> Text:
    """Say what answers are worth, and what of the gain is there without any.

    Args:
        information: from `comparisons.load_information`.
    """
    told = {}
    for protocol, rows in information.groupby("protocol", sort=False):
        own = rows.set_index("stratum")
        if (own["n"] == 0).any():
            told[protocol] = " there are too few episodes to tell."
        elif (own["identical"] == own["n"]).all():
            told[protocol] = _without(own)
        else:
            told[protocol] = _with(own)
    return Text(under_each(told))


def _worth(row: pd.Series, name: str) -> str:
    return f"{signed(row[name])} points ({span(row[f'{name}_low'], row[f'{name}_high'])})"


def _without(own: pd.DataFrame) -> str:
    """Tell a protocol under which Placebo and Simple score the same in every pair."""
    total = own.loc["combined"]
    gains = [f"{_worth(own.loc[stratum], 'gain')} {PLACES[stratum]}" for stratum in STRATA]
    text = (
        f" Placebo and EnvProbe-Simple score the same in each of the {total['n']:.0f} pairs: the answers "
        f"are worth {number(total['information'])} points. EnvProbe-Simple's difference to Periodic, "
        f"{listed(gains)}, is the placebo's to the last digit: it needs no information from any probe."
    )
    return text + _plain(own)


def _with(own: pd.DataFrame) -> str:
    """Tell a protocol under which answers make a difference."""
    parts = [f"{_worth(own.loc[stratum], 'information')} {PLACES[stratum]}" for stratum in STRATA]
    text = f" the answers are worth {listed(parts)}."
    total = own.loc["combined"]
    worth = lean(total["information_low"], total["information_high"])
    ahead = lean(total["gain_low"], total["gain_high"])
    if worth == 1:
        text += " Being told helps"
        text += {
            1: ", and EnvProbe-Simple ends ahead of Periodic",
            0: ", and EnvProbe-Simple ends about level with Periodic",
            -1: ", and yet Periodic, which is told too, ends ahead",
        }[ahead or 0]
        text += (
            f": with its answers EnvProbe-Simple differs from it by {signed(total['gain'])} points on all "
            f"worlds together, without them by {signed(total['placebo_gain'])}."
        )
    elif worth == 0:
        text += " On all worlds together that cannot be told from nothing."
    elif worth == -1:
        text += " Being told does harm here."
    return text + _plain(own)


def _plain(own: pd.DataFrame) -> str:
    """Say how the plain share of right fields at the end compares, where it is not the measure itself."""
    if np.allclose(own["gain"], own["terminal_gain"], equal_nan=True):
        return ""
    parts = [f"{_worth(own.loc[stratum], 'terminal_gain')} {PLACES[stratum]}" for stratum in STRATA]
    return f" By the plain share of correct fields at the end, the difference to Periodic is {listed(parts)}."


def tell_spending(grid: pd.DataFrame, steps: pd.DataFrame) -> Text:
    """Say when Simple and Periodic spend their probes, and what these find.

    Args:
        grid: episodes.
        steps: from `experiments.load_probe_steps`, for the same episodes.
    """
    told = {}
    for protocol in dict.fromkeys(grid["protocol"]):
        parts, age = [], {}
        for policy in ("simple", "periodic"):
            own = grid[(grid["protocol"] == protocol) & (grid["policy"] == policy)]
            when = steps[(steps["protocol"] == protocol) & (steps["policy"] == policy)]
            if when.empty:
                parts.append(f"{policy_title(policy)} never probes")
                continue
            found, again = (
                np.nanmean(useful_probe_rate(own[name].to_numpy(), own["probes"].to_numpy()))
                for name in ("useful", "repeated_probes")
            )
            age[policy] = when["age"].mean()
            parts.append(
                f"{policy_title(policy)} fires its first probe at step {number(when['first'].mean(), 1)} "
                f"and its last at step {number(when['last'].mean(), 1)} on average; {percent(found)} of "
                f"its probes find a wrong or unknown belief, {percent(again)} repeat a field"
            )
        told[protocol] = f" {'. '.join(parts)}."
        if parse_protocol(protocol).answer == "withheld":
            told[protocol] += " No answer is delivered, so that none of these probes repairs anything."
        elif len(age) == 2 and age["simple"] > age["periodic"] + 1:
            told[protocol] += (
                f" When the episode ends, Simple's last look is {number(age['simple'], 1)} steps old and "
                f"Periodic's {number(age['periodic'], 1)}: what Simple saw has had longer to go out of date."
            )
    return Text(under_each(told))


def tell_takeaway(comparisons: pd.DataFrame, information: pd.DataFrame, profile: str) -> Text:
    """Close the section with what its numbers, taken together, say.

    Args:
        comparisons: from `comparisons.load_comparisons`.
        information: from `comparisons.load_information`.
        profile: name of the agent profile.
    """
    held = comparisons[comparisons["verdict"].isin([HOLDS, OTHER_SIZE])]
    total = comparisons["claim"].nunique()
    counts = [
        f"{counted(int((held['protocol'] == protocol).sum()))} under `{protocol}`"
        for protocol in dict.fromkeys(comparisons["protocol"])
    ]
    lines = [
        f"* Of the {counted(total)} accuracy rows of the paper's table, those that hold: {listed(counts)}."
    ]
    combined = information[information["stratum"] == "combined"]
    blind = _names(combined[(combined["n"] > 0) & (combined["identical"] == combined["n"])])
    if blind:
        lines.append(
            f"* Under {code(blind)} a difference to Periodic is no evidence that probes repair beliefs: "
            "the same difference appears when no answer is given. What makes it must lie in the world "
            "that stands still during a probe, or in the measure."
        )
    worth = _names(combined[combined["information_low"] > 0])
    if worth:
        lines.append(f"* Under {code(worth)} answers do help: EnvProbe-Simple ends ahead of its own placebo.")
    open_cases = _names(
        combined[
            (combined["information_low"] <= 0)
            & (combined["information_high"] >= 0)
            & (combined["identical"] < combined["n"])
        ]
    )
    if open_cases:
        lines.append(
            f"* Under {code(open_cases)} what the answers are worth on all worlds together cannot be told "
            "from nothing."
        )
    lines.append(
        f"* All this is said of one simulated agent, `{profile}`. Its levels are not those of the paper's "
        "language model, and another agent may turn a direction round. The intervals cover the seeds, not "
        "that choice."
    )
    return Text("\n".join(lines))


def _names(rows: pd.DataFrame) -> list[str]:
    """Name the protocols of some rows."""
    return list(rows["protocol"])
