"""The paper's printed numbers against each other: which of them rounding alone cannot reconcile.

No episode is run for this. Each rule below takes the numbers and yields what breaks it; a number that other
printed numbers do not reach breaks none.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from envprobe_book.claims import PaperValue

POOLED = {"combined": ("procedural", "spatial"), "spatial": ("graphnav", "objectstate")}
"""Strata that are pooled, and their parts."""
PER_PROBE_FIRED, PER_PROBE_ALLOWED = "tab:g4_main", "tab:g4_norm"
"""The tables of useful probes per probe fired, and per probe allowed."""
WRONG_COUNT = "the count is none of those announced"
SMALL_P = 0.001  # below it a p-value is told as a bound
_EXACT = 1e-9  # what arithmetic in binary may be off
_NOT_A_MEAN = re.compile(r"_p$|median|threshold|floor|lcb|chain|^pairs$")
_SIDE = re.compile(r"(?P<stratum>\w+): (?P<method>[\w-]+) vs (?P<reference>[\w-]+)")
_NORMAL = NormalDist()
_FAMILY = 6  # comparisons among which the paper's lower bounds are adjusted


@dataclass(frozen=True)
class Contradiction:
    """One printed number, and what others say of it."""

    what: str  # the rule that it breaks
    value: PaperValue
    follows: str  # what the other printed numbers imply
    why: str  # with the numbers


Broken = Iterator[Contradiction]
Cells = dict[str, PaperValue]  # a row of a table: column -> number


def find_contradictions(numbers: Sequence[PaperValue]) -> list[Contradiction]:
    """All contradictions among printed numbers, rule by rule.

    >>> from envprobe_book.claims import paper_values
    >>> found = find_contradictions(paper_values())
    >>> found[0].what
    'the difference does not follow from its cells'
    >>> find_contradictions([found[0].value])  # by itself
    []
    """
    return [found for rule in RULES for found in rule(numbers)]


def rows_of(numbers: Sequence[PaperValue]) -> list[Cells]:
    """The rows of the tables that hold some numbers, in their order."""
    rows = defaultdict[tuple[str, str], Cells](dict)
    for value in numbers:
        rows[value.source, value.row][value.column] = value
    return list(rows.values())


def differences_of(numbers: Sequence[PaperValue]) -> Iterator[tuple[Cells, str, PaperValue]]:
    """The printed differences, each with its row and the name of what is compared."""
    for cells in rows_of(numbers):
        for column, value in cells.items():
            measure, sign, _ = column.partition("_difference")
            if sign:
                yield cells, measure, value


def row_and_measure(value: PaperValue) -> tuple[str, str]:
    """What a number measures, as row and column: a cell of a comparison belongs to its policy's row."""
    found = _SIDE.fullmatch(value.row)
    side, _, measure = value.column.partition("_")
    if found and side in ("method", "reference"):
        return f"{found['stratum']}: {found[side]}", measure
    return value.row, value.column


def allows(value: PaperValue, number: float) -> bool:
    """Whether a number is what is printed: equal to it, or on the printed side of it."""
    return {"<": number <= value.value, ">": number >= value.value, "=": number == value.value}[
        value.relation
    ]


# the rules


def differences_follow(numbers: Sequence[PaperValue]) -> Broken:
    """Differences that are not method minus reference within the rounding of the three numbers."""
    for cells, measure, value in differences_of(numbers):
        method, reference = cells.get(f"method_{measure}"), cells.get(f"reference_{measure}")
        if method is None or reference is None:
            continue
        scale = 100 if value.column.endswith("_pct") else 1
        expected = scale * (method.value - reference.value)
        slack = scale * (method.half_unit + reference.half_unit) + value.half_unit
        if abs(value.value - expected) > slack + _EXACT:
            follows = f"{expected:+.{value.decimals}f}"
            why = f"{method} - {reference} = {follows}, not {value.value:+g}"
            yield Contradiction("the difference does not follow from its cells", value, follows, why)


def quantities_have_one_value(numbers: Sequence[PaperValue]) -> Broken:
    """Quantities that are printed twice, with values that rounding does not reconcile."""
    first: dict[tuple[str, str], PaperValue] = {}
    for value in numbers:
        other = first.setdefault(row_and_measure(value), value)
        if value.relation == other.relation == "=":
            slack = max(value.half_unit, other.half_unit)
            agree = abs(value.value - other.value) <= slack + _EXACT
        else:
            agree = allows(value, other.value) or allows(other, value.value)
        if agree:
            continue
        why = f"{other.source} prints {other}, {value.source} prints {value}"
        for twin in numbers:  # the same figure in another row may be where it came from
            same = twin.column == other.column and twin.value == other.value != value.value
            if same and twin.row != other.row:
                why += f"; {twin.source} prints {twin} for {twin.row!r}"
        yield Contradiction("one quantity, two values", value, str(other), why)


def pools_are_those_of_their_parts(numbers: Sequence[PaperValue]) -> Broken:
    """Pooled figures that are not those of their parts.

    Means are weighted by n, else by the announced pairs; counts are added.
    """
    index = {(value.source, value.row, value.column): value for value in numbers}
    for value in numbers:
        stratum, colon, rest = value.row.partition(":")
        found = [
            index.get((value.source, part + colon + rest, value.column)) for part in POOLED.get(stratum, ())
        ]
        parts = [part for part in found if part is not None]
        if not parts or len(parts) < len(found):
            continue
        pairs = [index.get(("sec:setup", part, "pairs")) for part in POOLED[stratum]]
        counts = [part.n or (int(own.value) if own else 1) for part, own in zip(parts, pairs, strict=True)]
        if value.n is not None and value.n != sum(counts):
            yield Contradiction(
                WRONG_COUNT, value, str(sum(counts)), f"n = {value.n}, its parts have {counts}"
            )
        total = sum(part.value for part in parts)
        if value.column == "pairs" and value.value != total:
            yield Contradiction(WRONG_COUNT, value, str(total), "pairs do not add up")
        weighted = sum(part.value * count for part, count in zip(parts, counts, strict=True))
        expected = weighted / sum(counts)
        slack = value.half_unit + max(part.half_unit for part in parts)
        if abs(value.value - expected) > slack + _EXACT and not _NOT_A_MEAN.search(value.column):
            why = f"the parts {', '.join(map(str, parts))} pool to {expected:.{value.decimals + 1}f}"
            follows = f"{expected:.{value.decimals}f}"
            yield Contradiction("the pooled figure is not the mean of its parts", value, follows, why)


def counts_are_as_announced(numbers: Sequence[PaperValue]) -> Broken:
    """Numbers of pairs that are not announced, seeds that are not n, budgets that are not floor(H / 4)."""
    announced = sorted({int(value.value) for value in numbers if value.column == "pairs"})
    for value in numbers:
        compared = value.column == "accuracy_difference_pct" and value.n is not None
        if compared and announced and value.n not in announced:
            why = f"n = {value.n}; the paper announces {', '.join(map(str, announced))} pairs"
            yield Contradiction(WRONG_COUNT, value, " or ".join(map(str, announced)), why)
    for cells in rows_of(numbers):
        first, last = cells.get("first"), cells.get("last")
        if first and last and last.n is not None:
            count = int(last.value - first.value) + 1
            if count != last.n:
                yield Contradiction(WRONG_COUNT, last, str(last.n), f"{count} seeds for n = {last.n}")
        horizon, budget = cells.get("horizon"), cells.get("budget")
        if horizon and budget:
            quarter = int(horizon.value) // 4
            if quarter != budget.value:
                yield Contradiction(WRONG_COUNT, budget, str(quarter), f"floor(H / 4) = {quarter}")


def bounds_hold_in_every_row(numbers: Sequence[PaperValue]) -> Broken:
    """Rows outside a bound that is stated for all rows of their table."""
    for bound in (value for value in numbers if value.row.startswith("every ") and value.relation != "="):
        place = bound.source.removesuffix(" caption")
        for value in numbers:
            if value.source == place and value.column == bound.column and not allows(bound, value.value):
                why = f"{bound.source} says {bound} for {bound.row}; {value.row!r} has {value}"
                yield Contradiction("a row breaks a bound stated for all rows", value, str(bound), why)


def p_values_fit_their_intervals(numbers: Sequence[PaperValue]) -> Broken:
    """P-values that do not fit difference and interval as a two-sided test (read as normal)."""
    for cells, measure, value in differences_of(numbers):
        p = cells.get(f"{measure}_p")
        if p is None or value.low is None or value.high is None:
            continue
        z = value.value / ((value.high - value.low) / (2 * _NORMAL.inv_cdf(0.975)))
        two_sided = 2 * _NORMAL.cdf(-abs(z))
        sides = {
            "two-sided": two_sided,
            "one-sided (greater)": _NORMAL.cdf(-z),
            "one-sided (less)": _NORMAL.cdf(z),
        }
        if p.relation == "=":
            away = {side: abs(math.log(max(own, 1e-12) / p.value)) for side, own in sides.items()}
            nearest = min(away, key=lambda side: away[side])
        else:
            nearest = next((side for side, own in sides.items() if allows(p, own)), "no")
        if nearest != "two-sided":
            implied = f"below {SMALL_P:g}" if two_sided < SMALL_P else f"about {two_sided:.2f}"
            why = (
                f"{value} [{value.low}, {value.high}] implies a two-sided p {implied}; "
                f"p {p.relation} {p.value} is its {nearest} p"
            )
            what = "the p-value is one-sided where others are two-sided"
            yield Contradiction(what, p, implied, why)


def rates_fit_the_probes_allowed(numbers: Sequence[PaperValue]) -> Broken:
    """Rates of useful probes per probe allowed above what the episodes with a probe can hold.

    Such a rate is at most that per probe fired times the share of episodes that fire one.
    """
    rows = {(value.source, value.row): cells for cells in rows_of(numbers) for value in cells.values()}
    for (source, row), cells in rows.items():
        fired = cells.get("method_useful_probe_rate")
        if source != PER_PROBE_FIRED or fired is None or fired.n is None:
            continue
        stratum, _, pair = row.partition(": ")
        own = rows.get((PER_PROBE_ALLOWED, f"{stratum}: {pair.partition(' vs ')[0]}"), {})
        pairs = rows.get(("sec:setup", stratum), {}).get("pairs")
        for value in own.values() if pairs else ():
            most = (fired.value + fired.half_unit) * fired.n / pairs.value
            if value.value - value.half_unit > most:
                why = (
                    f"{fired} over {fired.n} of {pairs.value:.0f} episodes leaves at most {most:.3f}, "
                    "if no probe is fired in the others"
                )
                what = "more useful probes than the episodes with a probe can hold"
                yield Contradiction(what, value, f"≤ {most:.2f}", why)


def differences_differ(numbers: Sequence[PaperValue]) -> Broken:
    """Comparisons of one table that share a difference but for its sign."""
    seen: dict[tuple[str, str, float], PaperValue] = {}
    for _, _, value in differences_of(numbers):
        other = seen.get((value.source, value.column, -value.value))
        if value.value and other is not None:
            why = f"{other.value:+g} for {other.row!r} and {value.value:+g} for {value.row!r}"
            what = "two comparisons print the same figure with opposite signs"
            yield Contradiction(what, value, "two numbers", why)
        seen[value.source, value.column, value.value] = value


def lower_bounds_are_within_reach(numbers: Sequence[PaperValue]) -> Broken:
    """Lower confidence bounds of a mean in [0, 1] that lie below Hoeffding's, the loosest."""
    for cells in rows_of(numbers):
        for column, value in cells.items():
            rate = cells.get(column.removesuffix("_lcb"))
            if not column.endswith("_lcb") or rate is None or value.n is None:
                continue
            furthest = rate.value - math.sqrt(math.log(_FAMILY / 0.025) / (2 * value.n))
            if value.value + value.half_unit < furthest:
                away = (rate.value - value.value) / math.sqrt(rate.value * (1 - rate.value) / value.n)
                why = (
                    f"{value} lies {away:.1f} binomial standard errors below {rate} (n = {value.n}); "
                    f"even Hoeffding's 95% bound, adjusted for six comparisons, is {furthest:.3f}"
                )
                what = "the lower bound is further off than its sample allows"
                yield Contradiction(what, value, f"≥ {furthest:.3f}", why)


RULES = (
    differences_follow, quantities_have_one_value, pools_are_those_of_their_parts, counts_are_as_announced,
    bounds_hold_in_every_row, p_values_fit_their_intervals, rates_fit_the_probes_allowed, differences_differ,
    lower_bounds_are_within_reach,
)  # fmt: skip
