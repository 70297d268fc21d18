"""The paper against its own arithmetic: checks of the printed numbers against each other.

Each check yields findings (kind, the number at odds, what was expected, why). A number is at odds
when it is further off than the rounding of all numbers that enter the check. Nothing is typed in.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from statistics import NormalDist

from envprobe_core.claims.printed import PaperValue

PARTS = {  # a pooled stratum and what it pools
    "combined": ("procedural", "spatial"),
    "spatial": ("graphnav", "objectstate"),
}
NOT_A_MEAN = re.compile(r"_p$|median|threshold|floor|lcb|chain|^pairs$")
NORMAL = NormalDist()

Finding = tuple[str, PaperValue, str, str]


def _by_row(values: tuple[PaperValue, ...]) -> dict[tuple[str, str], dict[str, PaperValue]]:
    rows: dict[tuple[str, str], dict[str, PaperValue]] = defaultdict(dict)
    for v in values:
        rows[v.source, v.row][v.column] = v
    return rows


def _comparisons(values: tuple[PaperValue, ...]) -> Iterator[tuple[dict[str, PaperValue], str, PaperValue]]:
    """Yield each printed difference with its row and the name of what is compared."""
    for cells in _by_row(values).values():
        for column, v in cells.items():
            measure, sign, _ = column.partition("_difference")
            if sign:
                yield cells, measure, v


def _differences(values: tuple[PaperValue, ...]) -> Iterator[Finding]:
    """A difference must be method minus reference within the rounding of the three numbers."""
    for cells, measure, v in _comparisons(values):
        method, reference = cells.get(f"method_{measure}"), cells.get(f"reference_{measure}")
        if method is None or reference is None:
            continue
        scale = 100 if v.column.endswith("_pct") else 1
        expected = scale * (method.value - reference.value)
        if abs(v.value - expected) > scale * (method.half_unit + reference.half_unit) + v.half_unit + 1e-9:
            why = f"{method} - {reference} = {expected:+.{v.decimals}f}, not {v.value:+g}"
            yield "difference", v, f"{expected:+.{v.decimals}f}", why


def _quantity(v: PaperValue) -> tuple[str, str]:
    """What a number measures: cells of a comparison name the policy they belong to."""
    found = re.fullmatch(r"(\w+): ([\w-]+) vs ([\w-]+)", v.row)
    arm, _, measure = v.column.partition("_")
    if found and arm in ("method", "reference"):
        return f"{found[1]}: {found[2] if arm == 'method' else found[3]}", measure
    return v.row, v.column


def _two_values(values: tuple[PaperValue, ...]) -> Iterator[Finding]:
    """One quantity must have one value, within rounding, wherever it is printed."""
    first: dict[tuple[str, str], PaperValue] = {}
    for v in values:
        other = first.setdefault(_quantity(v), v)
        if v.relation == other.relation == "=":
            agree = abs(v.value - other.value) <= max(v.half_unit, other.half_unit) + 1e-9
        else:
            agree = _allows(v, other.value) or _allows(other, v.value)
        if not agree:
            twins = (w for w in values if w.column == other.column and w.value == other.value != v.value)
            why = f"{other.source} prints {other}, {v.source} prints {v}"
            why += "".join(f"; {w.source} prints {w} for {w.row!r}" for w in twins if w.row != other.row)
            yield "two values", v, str(other), why


def _allows(v: PaperValue, number: float) -> bool:
    return {"<": number <= v.value, ">": number >= v.value, "=": number == v.value}[v.relation]


def _pools(values: tuple[PaperValue, ...]) -> Iterator[Finding]:
    """A pooled mean is the mean of its parts, weighted by n; a pooled n is their sum.

    Where no n is printed beside the parts, the announced pairs of the setup weigh them.
    """
    index = {(v.source, v.row, v.column): v for v in values}
    for v in values:
        stratum, colon, rest = v.row.partition(":")
        parts = [index.get((v.source, p + colon + rest, v.column)) for p in PARTS.get(stratum, ())]
        if not parts or None in parts:
            continue
        pairs = [index.get(("sec:setup", p, "pairs")) for p in PARTS[stratum]]
        counts = [p.n or (int(k.value) if k else 1) for p, k in zip(parts, pairs, strict=True)]
        if v.n is not None and v.n != sum(counts):
            yield "count", v, str(sum(counts)), f"n = {v.n}, its parts have {counts}"
        if v.column == "pairs" and v.value != sum(p.value for p in parts):
            yield "count", v, str(sum(p.value for p in parts)), "pairs do not add up"
        if NOT_A_MEAN.search(v.column):
            continue
        expected = sum(p.value * k for p, k in zip(parts, counts, strict=True)) / sum(counts)
        slack = v.half_unit + max(p.half_unit for p in parts)
        if abs(v.value - expected) > slack + 1e-9:
            why = f"the parts {', '.join(map(str, parts))} pool to {expected:.{v.decimals + 1}f}"
            yield "pool", v, f"{expected:.{v.decimals}f}", why


def _counts(values: tuple[PaperValue, ...]) -> Iterator[Finding]:
    """Accuracy comparisons are paired over the announced numbers of pairs; B = floor(H / 4)."""
    announced = sorted({int(v.value) for v in values if v.column == "pairs"})
    for v in values:
        if v.column == "accuracy_difference_pct" and v.n is not None and v.n not in announced:
            why = f"n = {v.n}; the paper announces {', '.join(map(str, announced))} pairs"
            yield "count", v, " or ".join(map(str, announced)), why
    for cells in _by_row(values).values():
        first, last = cells.get("first"), cells.get("last")
        if first and last and last.n is not None and (seeds := int(last.value - first.value) + 1) != last.n:
            yield "count", last, str(last.n), f"{seeds} seeds for n = {last.n}"
        horizon, budget = cells.get("horizon"), cells.get("budget")
        if horizon and budget and (due := int(horizon.value) // 4) != budget.value:
            yield "count", budget, str(due), f"floor(H / 4) = {due}"


def _bounds(values: tuple[PaperValue, ...]) -> Iterator[Finding]:
    """A bound stated for every row of a table must hold in every row."""
    for bound in (v for v in values if v.row.startswith("every ") and v.relation != "="):
        table = bound.source.removesuffix(" caption")
        for v in values:
            if v.source == table and v.column == bound.column and not _allows(bound, v.value):
                why = f"{bound.source} says {bound} for {bound.row}; {v.row!r} has {v}"
                yield "bound", v, str(bound), why


def _p_values(values: tuple[PaperValue, ...]) -> Iterator[Finding]:
    """A p-value must fit its difference and interval as a two-sided test (normal reading)."""
    for cells, measure, v in _comparisons(values):
        p = cells.get(f"{measure}_p")
        if p is None or v.low is None or v.high is None:
            continue
        z = v.value / ((v.high - v.low) / (2 * NORMAL.inv_cdf(0.975)))
        two = 2 * NORMAL.cdf(-abs(z))
        sides = {"two-sided": two, "one-sided (greater)": NORMAL.cdf(-z), "one-sided (less)": NORMAL.cdf(z)}
        if p.relation == "=":
            nearest = min(sides, key=lambda side: abs(math.log(max(sides[side], 1e-12) / p.value)))
        else:
            nearest = next((side for side in sides if _allows(p, sides[side])), "no")
        if nearest != "two-sided":
            implied = "below 0.001" if two < 0.001 else f"about {two:.2f}"
            why = f"{v} [{v.low}, {v.high}] implies a two-sided p {implied}; p {p.relation} "
            yield "p side", p, implied, why + f"{p.value} is its {nearest} p"


def _mirrored(values: tuple[PaperValue, ...]) -> Iterator[Finding]:
    """Two comparisons of one table with the same difference but for its sign."""
    seen: dict[tuple[str, str, float], PaperValue] = {}
    for _, _, v in _comparisons(values):
        other = seen.get((v.source, v.column, -v.value))
        if v.value and other is not None:
            why = f"{other.value:+g} for {other.row!r} and {v.value:+g} for {v.row!r}"
            yield "mirrored", v, "two numbers", why
        seen[v.source, v.column, v.value] = v


def _lower_bounds(values: tuple[PaperValue, ...]) -> Iterator[Finding]:
    """A lower confidence bound of a mean in [0, 1] cannot lie below Hoeffding's, the loosest."""
    for cells in _by_row(values).values():
        for column, v in cells.items():
            rate = cells.get(column.removesuffix("_lcb"))
            if not column.endswith("_lcb") or rate is None or v.n is None:
                continue
            furthest = rate.value - math.sqrt(math.log(6 / 0.025) / (2 * v.n))
            if v.value + v.half_unit < furthest:
                away = (rate.value - v.value) / math.sqrt(rate.value * (1 - rate.value) / v.n)
                why = f"{v} lies {away:.1f} binomial standard errors below {rate} (n = {v.n}); "
                why += f"even Hoeffding's 95% bound, adjusted for six comparisons, is {furthest:.3f}"
                yield "lower bound", v, f"≥ {furthest:.3f}", why


CHECKS = (
    _differences, _two_values, _pools, _counts, _bounds, _p_values, _mirrored, _lower_bounds,
)  # fmt: skip
