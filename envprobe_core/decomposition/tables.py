"""The tables of section *decomposition*; each takes what `running` and `splitting` return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envprobe_core.decomposition.hybrids import (
    FACTOR_NAMES,
    FACTORS,
    IDLE,
    INFORMATION,
    METRIC,
    SELECTION,
    TIME,
    TIMING,
    own_level,
)
from envprobe_core.decomposition.running import Factorial
from envprobe_core.decomposition.splitting import GAIN, PAIRS, START
from envprobe_core.figures import WORLD_TITLES, policy_title
from envprobe_core.markup import EMPTY, Table, bracket, code, number, percent, signed

if TYPE_CHECKING:
    import pandas as pd

PARTS = (START, *FACTOR_NAMES, GAIN)


def shown_parts(reference: str) -> tuple[str, ...]:
    """Return the parts of a gain in order; over Periodic nothing is there before a factor is turned."""
    return PARTS if reference == IDLE else PARTS[1:]


def clear(row: object) -> bool:
    """Say whether an interval lies on one side of 0."""
    return bool(row.low > 0 or row.high < 0)  # type: ignore[attr-defined]


def with_interval(row: object) -> str:
    """Write a part with its interval, in bold where the interval leaves 0 out."""
    text = signed(row.value)  # type: ignore[attr-defined]
    bold = f"**{text}**" if clear(row) else text
    return f"{bold} {bracket(row.low, row.high)}"  # type: ignore[attr-defined]


def show_factors(runs: Factorial) -> Table:
    """Show the two levels of each factor, and which protocols have the upper one by themselves."""
    rows = []
    for factor in FACTORS:
        on = [name for name in runs.protocols if own_level(name) & factor.bit]
        whose = "every policy but Periodic" if factor.name in ("selection", "timing") else code(on)
        rows.append([f"*{factor.name}*", factor.lower, factor.upper, whose])
    return Table(
        "tab-decomposition-factors",
        "The five factors and their levels (ours). All other switches of a protocol stay as they are.",
        ("factor", "lower level", "upper level", "upper by itself"),
        rows,
        "llll",
    )


def show_split(
    splits: pd.DataFrame, reference: str, policies: tuple[str, ...] = ("simple",), game: str = "own"
) -> Table:
    """Show the parts of the gains over a reference, with intervals.

    Args:
        splits: from `splitting.split_gains`.
        reference: `periodic` or `no-probe`.
        policies: which gains.
        game: `own`: at the protocol's own levels; `all`: with every factor at its upper level.
    """
    chosen = splits[(splits["reference"] == reference) & (splits["game"] == game)]
    chosen = chosen[chosen["policy"].isin(policies)]
    several = len(policies) > 1
    *summands, gain = shown_parts(reference)
    parts, rows = (gain, *summands), []
    for (protocol, world, policy), part in chosen.groupby(["protocol", "world", "policy"], sort=False):
        own = {row.part: row for row in part.itertuples()}
        rows.append(
            [
                f"`{protocol}`",
                WORLD_TITLES[world],
                *([policy_title(policy)] if several else ()),
                *(with_interval(own[name]) if name in own else EMPTY for name in parts),
            ]
        )
    what = "at the protocol's own levels" if game == "own" else "with all five factors at their upper level"
    before = "" if reference != IDLE else "what is there with every factor at its lower level (*start*), and "
    caption = (
        f"Gains {'' if several else f'of {policy_title(policies[0])} '}over {policy_title(reference)} "
        f"{what}, in points of accuracy. A gain is the sum of its row: {before}the Shapley value of each "
        "factor. A dash: the factor is not turned. 95% intervals; bold where 0 lies outside."
    )
    head = ("protocol", "world", *(("policy",) if several else ()), *parts)
    label = f"tab-decomposition-{reference}-{game}" + ("-policies" if several else "")
    return Table(label, caption, head, rows, ("lll" if several else "ll") + "r" * len(parts))


def show_cells(runs: Factorial, world: str = "tooldag", policy: str = "simple") -> Table:
    """Show the mean outcome of all 32 arms of one policy in one world."""
    across = ((0, 0), (SELECTION, 0), (0, TIMING), (SELECTION, TIMING))
    rows = []
    for protocol in runs.protocols:
        means = runs.outcome[protocol, world, policy].mean(axis=0)
        for metric in (0, METRIC):
            for clock in (0, TIME):
                for told in (0, INFORMATION):
                    rest = metric | clock | told
                    cells = [number(means[rest | field | times]) for field, times in across]
                    own = rest | SELECTION | TIMING == own_level(protocol)
                    if own:
                        cells[-1] = f"**{cells[-1]}**"
                    rows.append(
                        [
                            f"`{protocol}`",
                            "slots" if metric else "terminal",
                            "stands" if clock else "moves",
                            "returned" if told else "withheld",
                            *cells,
                        ]
                    )
    caption = (
        f"All 32 arms of {policy_title(policy)} in {WORLD_TITLES[world]}: mean accuracy in percent. The "
        "first column of numbers is Periodic, the last one the policy; in bold the policy under the protocol "
        "as it is."
    )
    head = (
        "protocol", "metric", "world", "answer", "Periodic's times and fields",
        "Periodic's times, own fields", "own times, Periodic's fields", "own times and fields",
    )  # fmt: skip
    return Table("tab-decomposition-cells", caption, head, rows, "llllrrrr")


def show_cross(crossed: pd.DataFrame, policy: str = "simple", reference: str = "periodic") -> Table:
    """Show the interaction of every pair of factors."""
    places = list(crossed.groupby(["protocol", "world"], sort=False).groups)
    keyed = {(row.protocol, row.world, row.first, row.second): row for row in crossed.itertuples()}
    rows = [
        [
            f"`{protocol}`",
            WORLD_TITLES[world],
            *(_cross_cell(keyed[protocol, world, *pair]) for pair in PAIRS),
        ]
        for protocol, world in places
    ]
    caption = (
        f"Interactions in the gain of {policy_title(policy)} over {policy_title(reference)}, all five "
        "factors playing: how many points two factors add together beyond what each adds alone, averaged "
        "over the levels of the others. Bold where the 95% interval leaves 0 out."
    )
    head = ("protocol", "world", *(f"{first} × {second}" for first, second in PAIRS))
    return Table("tab-decomposition-interactions", caption, head, rows, "ll" + "r" * len(PAIRS))


def _cross_cell(row: object) -> str:
    text = signed(row.value)  # type: ignore[attr-defined]
    return f"**{text}**" if clear(row) else text


def show_placebos(valued: pd.DataFrame) -> Table:
    """Show what Simple's answers are worth against each placebo."""
    keyed = {(row.protocol, row.world, row.against): row for row in valued.itertuples()}
    places = list(valued.groupby(["protocol", "world"], sort=False).groups)
    rows = [
        [
            f"`{protocol}`",
            WORLD_TITLES[world],
            *(with_interval(keyed[protocol, world, against]) for against in ("yoked", "choice", "placebo")),
        ]
        for protocol, world in places
    ]
    caption = (
        "What the answers of EnvProbe-Simple are worth, in points, by the protocol's own clock and measure "
        "when answers are returned: with times and fields held fixed (yoked), through the later choices "
        "that they change, and both together (its Placebo)."
    )
    head = ("protocol", "world", "answers alone", "choices they change", "together")
    return Table("tab-decomposition-placebo", caption, head, rows, "llrrr")


def show_identified(runs: Factorial) -> Table:
    """Show how often each policy fires and how many probes its two hybrids fire."""
    rows = []
    for protocol in runs.protocols:
        own = own_level(protocol)
        for policy in runs.policies:
            fired = [runs.fired[protocol, world, policy] for world in runs.worlds]
            counts = [
                sum(runs.probes[protocol, world, policy][arm] for world in runs.worlds) / len(runs.worlds)
                for arm in (own, own & ~SELECTION, own & ~TIMING, own & ~(SELECTION | TIMING))
            ]
            rows.append(
                [
                    f"`{protocol}`",
                    policy_title(policy),
                    percent(sum(fired) / len(fired)),
                    *(number(count) for count in counts),
                ]
            )
    caption = (
        "How much each contrast has to work with, over the three worlds: episodes in which the policy probes "
        "at all, and probes an episode in the four arms at the protocol's own levels of all else."
    )
    head = (
        "protocol", "policy", "episodes with a probe", "own times and fields", "own times, Periodic's fields",
        "Periodic's times, own fields", "Periodic",
    )  # fmt: skip
    return Table("tab-decomposition-identified", caption, head, rows, "llrrrrr")
