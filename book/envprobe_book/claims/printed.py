"""The paper's tables as it prints them: which number stands in which cell, and which claim tests it.

The numbers are those of `data/paper/tables.csv`; here are their places, in the paper's order of rows and
columns. Columns of words are left out. A row of the running text is a table of its own at the end.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from envprobe_book.claims import Claim, PaperValue, load_claims, paper_values
from envprobe_book.claims.paper_items import place
from envprobe_core.comparing import STRATA
from envprobe_core.policies import POLICIES
from envprobe_core.worlds import WORLDS

VALUE, INTERVAL, COUNT = "value", "interval", "count"
"""What of a number a cell shows: itself, the interval printed with it, or of how many episodes it is."""
MEASURES = {"useful_probe_rate": "useful/probes", "useful_per_budget": "useful/budget"}
"""Columns of the file whose measure has another name in a frame."""
TIMING = {
    "offset_mean_steps": ("level", "action_onset-collapse_onset"),
    "offset_median_steps": ("median", "action_onset-collapse_onset"),
    "drift_first_pct": ("level", "action_onset>collapse_onset"),
    "action_first_pct": ("level", "action_onset<collapse_onset"),
}
"""Columns of the timing table, as kind and measure of their claims."""
NAMED = {
    ("canonical", "confident_wrong"): "pcw-canonical",
    ("supplementary audit", "confident_wrong"): "pcw-canonical",
    ("self-check", "confident_wrong"): "pcw-self-check",
    ("high-confidence scan", "confident_wrong"): "pcw-scan",
    ("smaller sample", "confident_wrong"): "pcw-sample",
    ("canonical", "confidence_threshold"): "pcw-canonical",
    ("self-check", "accuracy_threshold"): "pcw-self-check",
    ("high-confidence scan", "accuracy_threshold"): "pcw-scan",
    ("regime medium", "horizon"): "horizon-s2",
    ("regime medium", "budget"): "budget-s2",
    ("budget", "horizon"): "horizon-s2",
    ("spatial", "offset_p"): "drift-offset-spatial",
}
"""Numbers whose claim has no arms to be known by."""
_STRATA = STRATA | {name: (name,) for name in WORLDS} | {"unstated": STRATA["combined"]}
_DIFFERENCE = re.compile(r"(?P<measure>\w+?)(_difference(_pct)?|(_mcnemar)?_p)")
_LEVEL = re.compile(r"(?:method_|reference_)?(?P<measure>\w+?)(?P<end>_pct|_lcb)?")


@dataclass(frozen=True)
class Cell:
    """One cell: a number of the paper, and what of it the cell shows."""

    value: PaperValue
    part: str = VALUE


@dataclass(frozen=True)
class PrintedTable:
    """A table of the paper, its columns of words aside."""

    source: str  # its label
    name: str  # as the paper calls it
    about: str  # what it is about, in our words
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]  # what a row is about, and its cells

    def cells(self) -> Iterator[Cell]:
        """Go through the cells that hold a number, row by row."""
        for _, row in self.rows:
            yield from filter(None, row)


_COMPARED = ("method_{0}", "reference_{0}", "{0}_difference_pct", "{0}_difference_pct interval", "{0}_p")
_LAYOUT = {  # source -> what it is about; heads; the file's columns, each perhaps with the part that is shown
    "tab:main": (
        "Gains in accuracy on paired seeds, and task success of two variants",
        "n; method; reference; difference; 95% interval; p; success, method; success, reference; McNemar p",
        ("accuracy_difference_pct count", *(one.format("accuracy") for one in _COMPARED),
         "method_success_pct", "reference_success_pct", "success_mcnemar_p"),
    ),
    "tab:ordering": (
        "Neighbours in the expected order of accuracy",
        "n; higher policy; lower policy; difference",
        ("accuracy_difference_pct count", "method_accuracy", "reference_accuracy", "accuracy_difference_pct"),
    ),
    "tab:ablation": (
        "The full score with a term left out, on tools (n = 220)",
        "accuracy; difference from the full score; 95% interval; p; McNemar p of success",
        ("accuracy method_accuracy", "accuracy_difference_pct", "accuracy_difference_pct interval",
         "accuracy_p", "success_mcnemar_p"),
    ),
    "tab:g4_main": (
        "Useful probes per probe fired",
        "n; EnvProbe-Simple; Random; difference; 95% interval; p; floor; lower bound",
        ("useful_probe_rate_difference_pct count", *(one.format("useful_probe_rate") for one in _COMPARED),
         "method_useful_probe_rate_floor_pct", "method_useful_probe_rate_lcb"),
    ),
    "tab:pcw_audit": (
        "Four estimators of confidently wrong",
        "n; threshold; rate",
        ("confident_wrong count", "confidence_threshold accuracy_threshold", "confident_wrong"),
    ),
    "timing": (
        "Steps from the onset of drift to that of failing actions",
        "n; mean; median; drift first; action first",
        ("offset_mean_steps count", *TIMING),
    ),
}  # fmt: skip
_PIVOT, _SETTINGS = "tab:g4_norm", "tab:hparams_appendix"
_ORDER = (
    "tab:main", "tab:ordering", "tab:ablation", _SETTINGS, "tab:g4_main", _PIVOT, "tab:pcw_audit", "timing",
)  # fmt: skip
TEXT = ("abstract", "sec:results:g1", "sec:results:secondary")
"""Places of the running text that print results."""


@cache
def printed_tables() -> tuple[PrintedTable, ...]:
    """The paper's tables in its order, and the results of its running text.

    >>> table = printed_tables()[0]
    >>> table.name, [(cell.part, cell.value.value) for cell in table.cells()][1:4]
    ('Table 1', [('value', 0.431), ('value', 0.313), ('value', 11.76)])
    """
    make = {_PIVOT: _pivoted, _SETTINGS: _settings}
    return (*(make.get(source, _plain)(source) for source in _ORDER), _in_the_text())


def _by_row(source: str) -> dict[str, dict[str, PaperValue]]:
    found: dict[str, dict[str, PaperValue]] = {}
    for value in paper_values():
        if value.source == source:
            found.setdefault(value.row, {})[value.column] = value
    return found


def _plain(source: str) -> PrintedTable:
    about, heads, columns = _LAYOUT[source]
    rows = []
    for row, own in _by_row(source).items():
        cells: list[Cell | None] = []
        for column in columns:
            *names, part = column.split() if column.endswith((INTERVAL, COUNT)) else (*column.split(), VALUE)
            value = next((own[name] for name in names if name in own), None)
            has = value is not None and {VALUE: True, INTERVAL: value.low is not None, COUNT: value.n}[part]
            cells.append(Cell(value, part) if value is not None and has else None)
        rows.append((row, tuple(cells)))
    return PrintedTable(source, place(source), about, tuple(heads.split("; ")), tuple(rows))


def _pivoted(source: str) -> PrintedTable:
    """The table whose columns are policies."""
    own = {row: next(iter(columns.values())) for row, columns in _by_row(source).items()}
    strata, policies = (list(dict.fromkeys(row.split(": ")[part] for row in own)) for part in (0, 1))
    rows = tuple(
        (stratum, tuple(Cell(own[f"{stratum}: {policy}"]) for policy in policies)) for stratum in strata
    )
    heads = tuple(POLICIES[policy].title for policy in policies)
    return PrintedTable(source, place(source), "Useful probes per probe allowed", heads, rows)


def _settings(source: str) -> PrintedTable:
    """The table that lists one setting a line."""
    rows = tuple(
        (f"{row}, {column.replace('_', ' ')}", (Cell(value),))
        for row, own in _by_row(source).items()
        for column, value in own.items()
    )
    return PrintedTable(source, place(source), "Settings of the main results", ("value",), rows)


def _in_the_text() -> PrintedTable:
    rows = tuple(
        (f"{place(value.source)}: {value.row}, {quantity(value)}", (Cell(value),))
        for value in paper_values()
        if value.source in TEXT
    )
    return PrintedTable("text", "In the text", "Results that the running text gives", ("printed",), rows)


def quantity(value: PaperValue) -> str:
    """What a number is, in words: `difference in accuracy`.

    >>> quantity(printed_tables()[0].rows[0][1][3].value)
    'difference in accuracy'
    """
    name = re.sub(r"_(pct|steps)$", "", value.column)
    measure, sign, _ = name.partition("_difference")
    words = measure.removeprefix("method_").removeprefix("reference_").replace("_", " ")
    if sign:
        return f"difference in {words}"
    if name.endswith("_p"):
        test = "McNemar p" if name.endswith("_mcnemar_p") else "p"
        return f"{test} of {words.removesuffix(' p').removesuffix(' mcnemar')}"
    return words


@cache
def claim_of(value: PaperValue) -> Claim | None:
    """The claim that tests a printed number; None where none does.

    A difference with its interval and p is tested by the claim that compares the two policies, a level by
    that on the policy alone. Of several the first that the same place makes is taken.

    >>> claim_of(printed_tables()[0].rows[0][1][3].value).id
    'main-procedural'
    """
    found = [claim for claim in load_claims() if _tests(claim, value)]
    found.sort(key=lambda claim: (claim.source != value.source, claim.value != value.value))
    return found[0] if found else None


def _tests(claim: Claim, value: PaperValue) -> bool:
    if name := NAMED.get((value.row, value.column)):
        return claim.id == name
    stratum, _, names = value.row.partition(": ")
    if set(claim.worlds) != set(_STRATA.get(stratum, ())) or claim.against:
        return False
    if value.column in TIMING:
        return (claim.kind, *claim.measures) == TIMING[value.column] and claim.value is not None
    first, versus, second = names.partition(" vs ")
    if (match := _DIFFERENCE.fullmatch(value.column)) and versus:
        measure = MEASURES.get(match["measure"], match["measure"])
        arms = claim.arms == (first,) and claim.references == (second,)
        return arms and claim.measures == (measure,) and claim.kind in ("paired", "mcnemar", "equivalence")
    if claim.references or claim.kind != "level":
        return False
    column = value.column.replace("_floor_pct", "_lcb")
    match = _LEVEL.fullmatch(column)
    policy = second if column.startswith("reference_") else first
    measure = MEASURES.get(match["measure"], match["measure"]) if match else ""
    if claim.arms != (policy,) or claim.measures != (measure,):
        return False
    if match and match["end"] == "_lcb":
        return claim.directions == ("greater",)
    return claim.directions == ("equal",) and claim.value == value.value


def tested_claims() -> tuple[str, ...]:
    """The ids of the claims that test a number of the tables or of the text, in order of first appearance.

    >>> tested_claims()[:2]
    ('main-procedural', 'level-simple-procedural')
    """
    found = (claim_of(cell.value) for table in printed_tables() for cell in table.cells())
    return tuple(dict.fromkeys(claim.id for claim in found if claim))
