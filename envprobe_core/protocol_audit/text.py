"""The sentences of section *protocol-audit*: facts, each computed; conclusions are the reader's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envprobe_core.markup import Text, code, counted, listed, number, signed, span
from envprobe_core.prose import lean
from envprobe_core.protocol_audit.departures import load_departures
from envprobe_core.protocol_audit.headlines import HEADLINES, LEVELS
from envprobe_core.protocol_audit.running import TURNED
from envprobe_core.protocol_audit.tables import FIRST, bases, clear
from envprobe_core.protocol_audit.turning import GROUPS
from envprobe_core.sections.paired import PRIMARY_REGIME

if TYPE_CHECKING:
    import pandas as pd


def tell_audit(frame: pd.DataFrame, effects: pd.DataFrame) -> Text:
    """Say whose numbers these are and how much was turned."""
    profile, regime = str(frame["profile"].iloc[0]), str(frame["regime"].iloc[0])
    count = int(frame.groupby(["protocol", "world", "policy"], sort=False).size().max())
    text = (
        f"The agent on this page is a simulation with the profile `{profile}`; no language model was called. "
        f"From {code(bases(effects))}, each of {len(TURNED)} switches is turned alone, on the same {count} "
        f"seeds of regime {regime} in every world."
    )
    if regime != PRIMARY_REGIME:
        text += (
            f" The paper prints its figures for {PRIMARY_REGIME}; those of this page are another regime's."
        )
    return Text(text)


def tell_departures() -> Text:
    """Say how many departures there are and how many can be turned."""
    every = load_departures()
    simulated = sum(bool(one.switch) for one in every)
    return Text(
        f"Reading and running the public code at commit 3266b54 beside the text gives {len(every)} "
        f"differences. {simulated} of them are switches of a protocol; {len(every) - simulated} can only be "
        "listed."
    )


def tell_effects(effects: pd.DataFrame, claim: str = FIRST) -> Text:
    """Say which switches move a headline most, which turn its sign, and how many move it at all."""
    (headline,) = (one for one in HEADLINES if one.claim == claim)
    own = number if headline in LEVELS else signed
    lines = []
    for base in bases(effects):
        part = effects[(effects["base"] == base) & (effects["claim"] == claim)]
        before = part[part["switch"] == ""].iloc[0]
        turned = [row for row in part[part["switch"] != ""].itertuples() if row.estimate == row.estimate]
        if before["estimate"] != before["estimate"] or not turned:
            lines.append(f"* From `{base}`: too few episodes carry the figure.")
            continue
        sure = sorted((row for row in turned if clear(row)), key=lambda row: -abs(row.estimate))
        line = (
            f"* From `{base}`, where it is {own(before['estimate'])} {headline.unit}: "
            f"the change can be told from 0 for {counted(len(sure))} of {counted(len(turned))} switches"
        )
        if sure:
            said = listed(
                f"`{row.switch}={row.value}` ({signed(row.estimate)}, {span(row.low, row.high)})"
                for row in sure[:3]
            )
            line += f", {'most of all' if len(sure) > 1 else 'namely'} {said}"
        lines.append(f"{line}.{_flips(sure, before['estimate'])}")
    return Text("\n".join(lines))


def _flips(sure: list[Any], before: float) -> str:
    """Say which switches turn a figure's sign, and which take it to where no sign can be told."""
    sides = {True: [], False: []}
    for row in sure:
        if row.after * before < 0:
            sides[bool(lean(row.after_low, row.after_high))].append(f"{row.switch}={row.value}")
    said = ""
    if sides[True]:
        said += f" Alone, {code(sides[True])} {'turn' if len(sides[True]) > 1 else 'turns'} its sign."
    if sides[False]:
        said += (
            f" Turned alone, {code(sides[False])} {'take' if len(sides[False]) > 1 else 'takes'} it to the "
            "other side of 0, where its own interval still holds 0."
        )
    return said


def tell_inert(effects: pd.DataFrame) -> Text:
    """Name the switches that leave every headline exactly as it is, and those that move every one."""
    lines = []
    for base in bases(effects):
        part = effects[(effects["base"] == base) & (effects["switch"] != "")].dropna(subset=["estimate"])
        still = [
            switch
            for switch, rows in part.groupby("switch", sort=False)
            if ((rows["low"] == 0) & (rows["high"] == 0) & (rows["estimate"] == 0)).all()
        ]
        moved = (
            part.assign(sure=(part["low"] > 0) | (part["high"] < 0))
            .groupby("switch", sort=False)["sure"]
            .sum()
        )
        top = moved[moved == moved.max()]
        line = f"* From `{base}`: "
        if still:
            line += f"{code(still)} {'change' if len(still) > 1 else 'changes'} none of the headlines. "
        line += (
            f"Most headlines, {counted(int(top.iloc[0]))} of {counted(len(HEADLINES))}, "
            f"{'are' if top.iloc[0] != 1 else 'is'} moved by {code(top.index)}."
        )
        lines.append(line)
    return Text("\n".join(lines))


def tell_path(path: pd.DataFrame, first: str, last: str) -> Text:
    """Say which group of switches makes most of the way from one protocol to the other."""
    lines = []
    for stratum, part in path.groupby("stratum", sort=False):
        rows = {row.part: row for row in part.itertuples()}
        whole = rows["last"].value - rows["first"].value
        top = max(GROUPS, key=lambda name: abs(rows[name].value))
        against = [name for name in GROUPS if rows[name].value * whole < 0 and clear(rows[name])]
        turns = ", in the opposite direction" if top in against else ""
        against = [name for name in against if name != top]
        line = (
            f"* *{stratum}*: from {signed(rows['first'].value)} under `{first}` to "
            f"{signed(rows['last'].value)} under `{last}`, a way of {signed(whole)} points. The greatest "
            f"share is that of *{top}* ({signed(rows[top].value)}, "
            f"{span(rows[top].low, rows[top].high)}){turns}."
        )
        if against:
            line += f" Opposite to the way: {listed(f'*{n}* ({signed(rows[n].value)})' for n in against)}."
        lines.append(line)
    return Text("\n".join(lines))


def _these(count: int, every: int) -> str:
    return f"all {counted(every)}" if count == every else f"{counted(count)} of them"


def tell_witnesses(found: pd.DataFrame) -> Text:
    """Say what gain appears where no probe is answered, and what the plain share of right fields shows."""
    protocol = found["protocol"].iloc[0]
    sure = found[found["low"] > 0]
    shift = found["onset_simple"] - found["onset_periodic"]
    later = found[shift > 0]
    head = (
        f"Under `{protocol}` no answer reaches any of these {counted(len(found))} agents, and Simple and its "
        f"Placebo differ in {counted(int(found['differ'].sum()))} of {found['n'].sum():,} episodes. "
    )
    if len(sure):
        head += (
            f"By the protocol's own measure {_these(len(sure), len(found))} nevertheless show a gain over "
            f"Periodic whose interval lies above 0, from {signed(sure['gain'].min())} to "
            f"{signed(sure['gain'].max())} points"
        )
    else:
        head += "None of them shows a gain over Periodic whose interval lies above 0"
    if len(later):
        least, most = shift[later.index].min(), shift[later.index].max()
        head += (
            f", and for {_these(len(later), len(found))} accuracy collapses later on average, by "
            f"{number(least)} to {number(most)} steps among the episodes that collapse"
        )
    same = found[(found["terminal"] == 0) & (found["terminal_low"] == 0) & (found["terminal_high"] == 0)]
    up = found[found["terminal_low"] > 0]
    tail = (
        f" By the share of fields right at the end Simple and Periodic are equal, episode by episode, for "
        f"{counted(len(same))} of them, and Simple is ahead for {counted(len(up))}."
    )
    return Text(head + "." + tail)
