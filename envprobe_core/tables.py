"""What tables of several sections share: verdicts as badges, an agent's habits, the ledger of claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envprobe_core.cells import find_profile
from envprobe_core.claims.judge import HOLDS, INCONCLUSIVE, INPUT, NO_EFFECT, NOT_TESTED, OTHER_SIZE, REVERSES
from envprobe_core.markup import EMPTY, Table, chunked, number, percent

if TYPE_CHECKING:
    import pandas as pd

BADGES = {
    HOLDS: "bdg-success",
    OTHER_SIZE: "bdg-info",
    INCONCLUSIVE: "bdg-muted-line",
    NO_EFFECT: "bdg-muted-line",
    REVERSES: "bdg-danger",
    "near": "bdg-success",
    "differs": "bdg-muted-line",
    "as printed": "bdg-success",
    "not as printed": "bdg-muted-line",
    INPUT: "bdg-warning",
    NOT_TESTED: "bdg-light",
}
HABITS = {  # what each number of an agent profile means
    "omit": ("share of news it fails to write down", True),
    "overwrite": ("chance a step that it spoils a random belief", True),
    "slip": ("chance a step that it proposes a random action", True),
    "quit": ("chance a step that it takes its task for finished", True),
    "misreport": ("share of reports with a wrong staleness", True),
    "hedge": ("share of reports with a low confidence", True),
    "confidence": ("confidence it reports for what it has just written, percent", False),
    "spread": ("how far below that a report may lie, percent", False),
    "fade": ("percent of confidence it loses a step without news", False),
    "single_report": ("reports a single belief a step", False),
    "writes": ("how it writes the value of a loaded tool", False),
    "keeps_open": ("keeps its list of open tools", False),
    "scribe": ("keeps nothing and copies what is in view", False),
    "copies_gold": ("writes down the true state: an oracle", False),
    "lost": ("of a scribe: chance a step that it strays from its plan", True),
    "loop": ("of a scribe: chance a step that it repeats its last action", True),
}


def badge(verdict: str) -> str:
    """Return a verdict as a coloured label; the word says it all without its colour."""
    return f"{{{BADGES[verdict]}}}`{verdict}`" if verdict in BADGES else EMPTY


def describe_profile(profile: str) -> tuple[pd.DataFrame, str]:
    """List the habits of an agent profile.

    Returns:
        One row a habit, `habit value meaning`; and what the profile assumes, in words.
    """
    import pandas as pd

    found = find_profile(profile)
    rows = []
    for name, (meaning, rate) in HABITS.items():
        value = getattr(found, name)
        text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
        rows.append((name, percent(value) if rate else text, meaning))
    return pd.DataFrame(rows, columns=["habit", "value", "meaning"]), found.assumption


def show_ledger(verdicts: pd.DataFrame, label: str, caption: str) -> Table:
    """Show the verdict on every claim that is not about a level, with what was measured.

    Args:
        verdicts: from `claims.judge.judge`.
        label: the table's label.
        caption: what the claims are about.
    """
    protocols = list(dict.fromkeys(verdicts["protocol"]))
    rows = []
    for _, claim in without_levels(verdicts).groupby("claim", sort=False):
        own = claim.set_index("protocol")
        first = claim.iloc[0]
        cells = [
            f"{badge(own.loc[name, 'verdict'])} {_amount(own.loc[name], 'estimate')}" for name in protocols
        ]
        rows.append([chunked(first["statement"]), f"{_amount(first, 'paper_value')} {first['unit']}", *cells])
    head = ("the paper's claim, in our words", "printed", *(f"`{name}`" for name in protocols))
    return Table(label, caption, head, rows, "lr" + "l" * len(protocols))


def without_levels(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Leave out the claims that a level is the printed one; their names begin with `level-`."""
    return verdicts[~verdicts["claim"].str.startswith("level-")]


def _amount(verdict: pd.Series, name: str) -> str:
    """Write a number of a verdict with the digits its unit asks for."""
    value = verdict[name]
    return number(None if value is None else float(value), 3 if verdict["unit"] == "share" else 2)
