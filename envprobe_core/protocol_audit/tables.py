"""The tables of section *protocol-audit*."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims import find_claim
from envprobe_core.figures import WORLD_TITLES, policy_title
from envprobe_core.markup import EMPTY, Table, bracket, code, counted, listed, number, signed
from envprobe_core.places import place
from envprobe_core.protocol_audit.departures import load_departures
from envprobe_core.protocol_audit.headlines import HEADLINES, Headline
from envprobe_core.protocol_audit.running import TURNED
from envprobe_core.protocol_audit.turning import GROUPS
from envprobe_core.sections.paired import PRIMARY_REGIME

if TYPE_CHECKING:
    import pandas as pd

FIRST = "main-procedural"  # the headline that departures are measured by


def clear(row: object) -> bool:
    """Say whether the interval of a change lies on one side of 0."""
    return bool(row.low > 0 or row.high < 0)  # type: ignore[attr-defined]


def bases(effects: pd.DataFrame) -> list[str]:
    """Return the protocols that were started from, in order."""
    return list(dict.fromkeys(effects["base"]))


def _written(row: object) -> str:
    if not np.isfinite(row.estimate):  # type: ignore[attr-defined]
        return EMPTY
    if row.low == row.high == 0:  # type: ignore[attr-defined]
        return "0"
    text = signed(row.estimate)  # type: ignore[attr-defined]
    bold = f"**{text}**" if clear(row) else text
    return f"{bold} {bracket(row.low, row.high)}"  # type: ignore[attr-defined]


def show_headlines(effects: pd.DataFrame) -> Table:
    """Show the headline figures as printed and under the protocols as they are."""
    own = {(row.base, row.claim): row for row in effects[effects["switch"] == ""].itertuples()}
    rows = []
    for headline in HEADLINES:
        printed = EMPTY if headline.printed is None else number(headline.printed)
        cells = []
        for base in bases(effects):
            row = own[base, headline.claim]
            finite = np.isfinite(row.estimate)
            cells.append(f"{number(row.estimate)} {bracket(row.low, row.high)}" if finite else EMPTY)
        rows.append([headline.title, headline.unit, printed, *cells])
    (rate,) = (one for one in HEADLINES if one.claim == "pcw-canonical")
    pooled, printed_over = rate.about(PRIMARY_REGIME).arms, find_claim(rate.claim).arms
    caption = (
        "The headline figures: as the paper prints them (for S2), and under the protocols as they are, with "
        f"95% intervals. Confident beliefs are pooled over {counted(len(pooled))} policies here "
        f"({listed(policy_title(name) for name in pooled)}), over {counted(len(printed_over))} in the paper."
    )
    head = ("headline", "unit", "printed", *(f"`{base}`" for base in bases(effects)))
    return Table("tab-audit-headlines", caption, head, rows, "llr" + "r" * len(bases(effects)))


def show_effects(effects: pd.DataFrame, headlines: Sequence[Headline], label: str) -> Table:
    """Show what each switch does to some headlines when it is turned alone.

    Args:
        effects: from `turning.turned_alone`.
        headlines: the columns.
        label: the table's label.
    """
    keyed = {(row.base, row.switch, row.claim): row for row in effects.itertuples()}
    rows = [
        [
            f"`{base}`",
            f"`{switch}={keyed[base, switch, FIRST].value}`",
            *(_written(keyed[base, switch, headline.claim]) for headline in headlines),
        ]
        for base in bases(effects)
        for switch in TURNED
    ]
    caption = (
        "One switch turned alone: how much each headline changes (after minus before, in its own unit), with "
        "paired 95% intervals. Bold where 0 lies outside; a plain 0 where no episode differs; a dash where "
        "too few episodes carry the figure."
    )
    head = ("from", "switch turned", *(f"{one.title} [{one.unit}]" for one in headlines))
    return Table(label, caption, head, rows, "ll" + "r" * len(headlines))


def show_simulated(effects: pd.DataFrame) -> Table:
    """List the departures that a switch simulates, each with what it does to the first headline."""
    keyed = {(row.base, row.switch): row for row in effects[effects["claim"] == FIRST].itertuples()}
    rows = []
    for one in load_departures():
        if one.switch:
            cells = [
                _written(keyed[base, one.switch]) if (base, one.switch) in keyed else "not turned"
                for base in bases(effects)
            ]
            rows.append([one.about, _places(one.places), one.text, one.code, f"`{one.switch}`", *cells])
    caption = (
        "Where text and public code (commit 3266b54) differ and a switch simulates it. The last columns: "
        "points by which the gain of EnvProbe-Simple over Periodic on tools changes when this switch alone "
        "is turned in the protocol named. Other seeds would break the pairs: that switch is not turned."
    )
    head = (
        "about", "where", "the text", "the public code", "switch",
        *(f"turned in `{base}`" for base in bases(effects)),
    )  # fmt: skip
    return Table("tab-audit-simulated", caption, head, rows, "lllll" + "r" * len(bases(effects)))


def show_listed() -> Table:
    """List the departures that no switch simulates."""
    rows = [
        [one.about, _places(one.places), one.text, one.code] for one in load_departures() if not one.switch
    ]
    caption = (
        "Where text and public code (commit 3266b54) differ and no switch simulates it, most of them because "
        "they concern calls of a language model or what is published. Their consequence is not measured here."
    )
    return Table("tab-audit-listed", caption, ("about", "where", "the text", "the public code"), rows, "llll")


def _places(places: Sequence[str]) -> str:
    return ", ".join(place(one) for one in places) if places else EMPTY


def show_path(path: pd.DataFrame, first: str, last: str) -> Table:
    """Show how the gain changes from one protocol to the other, group by group and on average over orders."""
    strata = list(dict.fromkeys(path["stratum"]))
    keyed = {(row.stratum, row.part): row for row in path.itertuples()}
    rows = []
    for part in ("first", *GROUPS, "last"):
        title = {"first": f"gain under `{first}`", "last": f"gain under `{last}`"}.get(part, part)
        cells = []
        for stratum in strata:
            row = keyed[stratum, part]
            bold = f"**{signed(row.value)}**" if clear(row) else signed(row.value)
            cells += [f"{bold} {bracket(row.low, row.high)}", number(row.after)]
        rows.append([title, code(GROUPS[part]) if part in GROUPS else EMPTY, *cells])
    caption = (
        f"From `{first}` to `{last}`: the gain of EnvProbe-Simple over Periodic in points. For each group of "
        "switches its share (Shapley value over all orders, 95% interval; the shares and the first row sum "
        "to the last row) and the gain once this group and all groups above it are turned."
    )
    head = ["group", "switches"]
    for stratum in strata:
        head += [f"{stratum}: share", f"{stratum}: reached"]
    return Table("tab-audit-path", caption, head, rows, "ll" + "rr" * len(strata))


def show_witnesses(found: pd.DataFrame) -> Table:
    """Show the accuracies and gains of agents that are never told an answer."""
    rows = [
        [
            f"`{row.profile}`",
            " / ".join(number(getattr(row, name), 1) for name in ("idle", "periodic", "simple")),
            f"{signed(row.gain)} {bracket(row.low, row.high)}",
            f"{signed(row.terminal)} {bracket(row.terminal_low, row.terminal_high)}",
            f"{number(row.onset_periodic)} → {number(row.onset_simple)}",
            f"{number(row.success_periodic, 1)} / {number(row.success_simple, 1)}",
            f"{row.differ} of {row.n}",
        ]
        for row in found.rename(columns={"no-probe": "idle"}).itertuples()
    ]
    caption = (
        f"{WORLD_TITLES['tooldag']} under `{found['protocol'].iloc[0]}`, where no probe is answered: "
        "accuracy by the protocol's own measure, the gain in it, the gain in the share of fields right at "
        "the end (belief and world of one step), collapse onset and success from Periodic to "
        "EnvProbe-Simple, and in how many episodes Simple differs from its Placebo. Percent, points and "
        "steps."
    )
    head = (
        "agent", "No-Probe / Periodic / Simple", "Simple − Periodic", "the same, share right at the end",
        "onset", "success", "Simple ≠ Placebo",
    )  # fmt: skip
    return Table("tab-audit-witnesses", caption, head, rows, "lrrrrrr")
