"""What the scoreboard says in sentences, and the reasons of claims that no other page shows.

Every count and every word of direction is computed from the scoreboard's frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from envprobe_core import places
from envprobe_core.claims import find_claim
from envprobe_core.claims.judge import HOLDS, INCONCLUSIVE, INPUT, NOT_TESTED, OTHER_SIZE, REVERSES
from envprobe_core.markup import Table, Text, counted, listed
from envprobe_core.scoreboard import PRIMARY_REGIME, SETTINGS_FAMILY
from envprobe_core.scoreboard_page import SIGNS

if TYPE_CHECKING:
    import pandas as pd

FATES = {
    REVERSES: "reverse",
    INCONCLUSIVE: "stay open",
    INPUT: "served as input of the profile",
    NOT_TESTED: "could not be tested",
}


def _sort(claim: str) -> str:
    """What sort of claim it is: of a comparison, of a level, or of a setting."""
    about = find_claim(claim)
    if about.family == SETTINGS_FAMILY:
        return "settings"
    return "levels" if about.directions == ("equal",) else "comparisons"


def tell_scoreboard(board: pd.DataFrame) -> Text:
    """Say for each protocol how many claims hold, reverse and stay open, and of which sort they are."""
    lines = []
    for protocol, part in board.groupby("protocol", sort=False):
        found = part["verdict"].value_counts()
        holds = part["verdict"].isin([HOLDS, OTHER_SIZE])
        parts = [
            f"{counted(int(holds.sum()))} hold, "
            f"{counted(int(found.get(OTHER_SIZE, 0)))} of them with another size",
            *(
                f"{counted(int(found[verdict]))} {words}"
                for verdict, words in FATES.items()
                if found.get(verdict)
            ),
        ]
        sorts = part["claim"].map(_sort)
        kinds = [
            f"{counted(int(held.sum()))} of {len(held)} {sort}"
            for sort, held in holds.groupby(sorts, sort=False)
        ]
        lines.append(
            f"* `{protocol}`, {len(part)} claims: {'; '.join(parts)}. Those that hold: {listed(kinds)}."
        )
    regimes = sorted(set(board["regime"]) - {"S1", PRIMARY_REGIME, "S3"})
    moved = f"\n\nClaims about the medium regime were asked of {listed(regimes)}." if regimes else ""
    return Text("\n".join(lines) + moved)


def tell_agreement(board: pd.DataFrame) -> Text:
    """Say on how many claims the protocols agree, and which flip from one side to the other."""
    sides = {HOLDS: "holds", OTHER_SIZE: "holds", REVERSES: "reverses"}
    protocols = list(dict.fromkeys(board["protocol"]))
    side = board.assign(side=board["verdict"].map(sides)).pivot(
        index="claim", columns="protocol", values="side"
    )
    side = side.loc[list(dict.fromkeys(board["claim"])), protocols]
    if len(protocols) < 2:
        return Text("Only one protocol was run, so there is nothing to compare it with.")
    same = (side.nunique(axis=1) == 1) & side.notna().all(axis=1)
    flips: dict[str, list[str]] = {}
    for name, row in side[side.nunique(axis=1) == 2].iterrows():
        parts = [
            f"{word} under {listed(f'`{p}`' for p in protocols if row[p] == word)}"
            for word in ("holds", "reverses")
        ]
        flips.setdefault("; ".join(parts), []).append(f"`{name}`")
    count = sum(map(len, flips.values()))
    head = (
        f"{counted(int(same.sum())).capitalize()} of {len(side)} claims get the same side under all "
        f"protocols. {counted(count).capitalize()} hold under one and reverse under another"
    )
    lines = [f"* {pattern}: {', '.join(names)}" for pattern, names in flips.items()]
    return Text("\n".join([f"{head}{':' if lines else '.'}", "", *lines]))


def show_reasons(board: pd.DataFrame, section: str) -> Table:
    """Show the claims of one section with the reason of each verdict."""
    part = board[board["section"] == section]
    rows, last = [], ""
    for row in part.itertuples():
        first = row.claim != last
        last = row.claim
        rows.append(
            [
                row.statement if first else "",
                places.place(row.source) if first else "",
                f"`{row.protocol}`",
                f"{SIGNS[row.verdict]} {row.verdict}",
                row.reason,
            ]
        )
    return Table(
        f"tab-claims-{section}",
        f"The claims of the section *{section}*, which no other page shows, and why each verdict fell.",
        ("claim", "where", "protocol", "verdict", "reason"),
        rows,
        "lllll",
    )
