"""A policy as a formula in Python's expression syntax: `lab.formula("c + 2 * d")`, and the same in the page.

The formula gives what a probe of one field is worth now, from what an agent sees of that field. Nothing is
executed as Python: the text is cut into known signs, parsed by `ast`, and only the nodes listed here are
computed. `formula.js` does the same in a page; both give equal bits and the same sentences, which
`tests/test_formula.py` compares. So there is no function here whose last bit two languages may round
differently: powers are repeated multiplications, and of the roots there is only the square root.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from envprobe_book.classroom.policy_check import GuardedScore, PolicyError, check_name
from envprobe_core.engine.records import LONGEST_HORIZON
from envprobe_core.policies import THRESHOLD, Policy, custom_policy
from envprobe_core.policies.custom import View
from envprobe_core.worlds.base import Floats

Look = Mapping[str, float]
"""What is seen of one field at one step: a number for each of `QUANTITIES`."""
Value = Callable[[Look], float]

BY_FIELD = ("c", "s", "u", "d", "staleness", "confidence")
BY_STEP = ("step", "horizon", "used", "budget")
QUANTITIES = BY_FIELD + BY_STEP
FUNCTIONS = {
    "min": "two or more values",
    "max": "two or more values",
    "abs": "one value",
    "sqrt": "one value",
}
TRUTHS = {"True": 1.0, "False": 0.0}
WORDS = ("and", "or", "not", "if", "else")
LONGEST, MOST_SIGNS, MOST_BRACKETS = 500, 150, 20  # characters; signs; brackets open at once
LARGEST_NUMBER, LARGEST_EXPONENT = 1e6, 8
SHOWN = 200  # characters of a reader's text in a message
SHUT = -1e9  # a score that no gate lets through
SIGN = re.compile(
    r"(?P<number>(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<mark>\*\*|//|<=|>=|==|!=|[-+*/%<>(),])"
)
BLANKS = " \t\r\n"
ACCEPTED = (
    "accepted are numbers, brackets, + - * / % **, comparisons, and, or, not, `x if y else z`, "
    f"{', '.join(FUNCTIONS)} and the names {', '.join(QUANTITIES)}"
)


class FormulaError(PolicyError):
    """A formula that cannot be read, or that gives no number; one sentence says what to change."""


def shown(text: str) -> str:
    """A text as a message names it, in one line and cut.

    >>> shown("c + d")
    '`c + d`'
    """
    line = re.sub(f"[{BLANKS}]+", " ", text)
    return f"`{line}`" if len(line) <= SHOWN else f"`{line[:SHOWN]}…`"


# --- reading ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sign:
    """A number, name or mark of a formula."""

    kind: str  # number, name, function, word or mark
    text: str

    @property
    def begins_value(self) -> bool:
        """Whether a value can begin with it, which then cannot follow another value."""
        return self.kind in ("number", "name", "function") or self.text in ("(", "not")

    @property
    def ends_value(self) -> bool:
        """Whether a value can end with it."""
        return self.kind in ("number", "name") or self.text == ")"


def signs_of(text: str) -> list[Sign]:
    """The signs of a formula, each known, brackets closed, and an operator between any two values.

    Raises:
        FormulaError: for what is not accepted.

    >>> [sign.text for sign in signs_of("2*c >= .5")]
    ['2', '*', 'c', '>=', '.5']
    """
    if not isinstance(text, str):
        raise FormulaError(f"a formula is a text, as in lab.formula('c + 2 * d'), not {type(text).__name__}")
    if len(text) > LONGEST:
        raise FormulaError(
            f"the formula has {len(text)} characters; at most {LONGEST} are accepted: {shown(text)}"
        )
    signs, at = [], 0
    while at < len(text):
        if text[at] in BLANKS:
            at += 1
            continue
        found = SIGN.match(text, at)
        if not found:
            raise FormulaError(f"the formula has the character {shown(text[at])}; {ACCEPTED}")
        signs.append(_sign(found.lastgroup or "", found[0]))
        at = found.end()
    if not signs:
        raise FormulaError(f"the formula is empty; {ACCEPTED}")
    if len(signs) > MOST_SIGNS:
        raise FormulaError(
            f"the formula has {len(signs)} numbers, names and operators; at most {MOST_SIGNS} are accepted: "
            f"{shown(text)}"
        )
    _check_order(signs, text)
    return signs


def _sign(kind: str, text: str) -> Sign:
    if kind == "number" and not float(text) <= LARGEST_NUMBER:
        raise FormulaError(f"the number {shown(text)} is too large; numbers up to 1000000 are accepted")
    if text == "//":
        raise FormulaError("the formula has `//`; / divides, and a % b is what is left over")
    if kind == "name":
        if text in FUNCTIONS:
            kind = "function"
        elif text in WORDS:
            kind = "word"
        elif text not in QUANTITIES and text not in TRUTHS:
            raise FormulaError(f"the formula has the name {shown(text)}; {ACCEPTED}")
    return Sign(kind, text)


def _check_order(signs: list[Sign], text: str) -> None:
    """Refuse what the grammar would refuse as well, in words that say where."""
    open_brackets = 0
    for place, sign in enumerate(signs):
        after = signs[place + 1] if place + 1 < len(signs) else None
        open_brackets += (sign.text == "(") - (sign.text == ")")
        if open_brackets < 0:
            raise FormulaError(f"a bracket is closed that was not opened: {shown(text)}")
        if open_brackets > MOST_BRACKETS:
            raise FormulaError(f"more than {MOST_BRACKETS} brackets are open at once: {shown(text)}")
        if sign.kind == "function" and (after is None or after.text != "("):
            raise FormulaError(
                f"{shown(sign.text)} is a function: write {sign.text}(…) with {FUNCTIONS[sign.text]}"
            )
        if sign.ends_value and after is not None and after.begins_value:
            raise FormulaError(
                f"an operator such as + or * is missing between {shown(sign.text)} and {shown(after.text)}"
            )
    if open_brackets:
        raise FormulaError(f"a bracket is not closed: {shown(text)}")


def parse(text: str) -> Value:
    """The value of a formula as a function of what is seen of one field.

    Raises:
        FormulaError: if the text is no such formula.

    >>> parse("c + 2 * d if step >= 10 else 0")({"c": 0.5, "d": 1.0, "step": 12.0})
    2.5
    """
    signs = signs_of(text)
    try:
        tree = ast.parse(" ".join(sign.text for sign in signs), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise unreadable(text) from None
    if not all(isinstance(node, NODES) for node in ast.walk(tree)):
        raise unreadable(text)
    return _built(tree.body, text)


def unreadable(text: str) -> FormulaError:
    """The message for signs that are known and make no formula."""
    return FormulaError(f"the formula {shown(text)} cannot be read; {ACCEPTED}")


# --- computing --------------------------------------------------------------------------------


def finite(value: float) -> float:
    """A result, which must be a finite number."""
    if not math.isfinite(value):
        raise FormulaError("the formula gives a number that is too large to compute with")
    return value


def quotient(a: float, b: float) -> float:
    """The quotient of two numbers."""
    if b == 0:
        raise FormulaError("the formula divides by zero: guard the division, as in c / s if s > 0 else 0")
    return finite(a / b)


def remainder(a: float, b: float) -> float:
    """What a division leaves over, with the sign of the divisor."""
    if b == 0:
        raise FormulaError("the formula takes a remainder by zero: guard it, as in c % s if s > 0 else 0")
    return a % b


def root(a: float) -> float:
    """The square root."""
    if a < 0:
        raise FormulaError("the formula takes the square root of a number below 0; use max(0, …) in it")
    return math.sqrt(a)


def power(a: float, exponent: int) -> float:
    """A product of equal factors, 1 of none."""
    product = 1.0
    for _ in range(exponent):
        product = finite(product * a)
    return product


OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: finite(a + b),
    ast.Sub: lambda a, b: finite(a - b),
    ast.Mult: lambda a, b: finite(a * b),
    ast.Div: quotient,
    ast.Mod: remainder,
}
SIGNED: dict[type[ast.unaryop], Callable[[float], float]] = {
    ast.UAdd: lambda a: a,
    ast.USub: lambda a: -a,
    ast.Not: lambda a: float(a == 0),
}
COMPARED: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
NODES = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare,
    ast.IfExp, ast.Call, ast.Pow, ast.And, ast.Or, *OPERATORS, *SIGNED, *COMPARED,
)  # fmt: skip
CALLED: dict[str, Callable[..., float]] = {"min": min, "max": max, "abs": abs, "sqrt": root}


def _built(node: ast.expr, text: str) -> Value:
    """A node as a function; every number is a float, and a comparison is 1 or 0."""

    def part(inner: ast.expr) -> Value:
        return _built(inner, text)

    match node:
        case ast.Constant(value=bool() | int() | float() as number):
            constant = float(number)
            return lambda look: constant
        case ast.Name(id=name) if name in QUANTITIES:
            return operator.itemgetter(name)
        case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
            return _power(part(base), exponent)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            combine, first, second = OPERATORS[type(op)], part(left), part(right)
            return lambda look: combine(first(look), second(look))
        case ast.UnaryOp(op=op, operand=operand):
            change, inner = SIGNED[type(op)], part(operand)
            return lambda look: change(inner(look))
        case ast.BoolOp(op=op, values=values):
            return _first_that_decides([part(value) for value in values], isinstance(op, ast.Or))
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _chain(
                part(left), [(COMPARED[type(op)], part(o)) for op, o in zip(ops, others, strict=True)]
            )
        case ast.IfExp(test=test, body=body, orelse=orelse):
            then, asked, otherwise = part(body), part(test), part(orelse)
            return lambda look: then(look) if asked(look) != 0 else otherwise(look)
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in CALLED:
            return _call(name, [part(argument) for argument in arguments])
    raise unreadable(text)


def _power(base: Value, exponent: ast.expr) -> Value:
    match exponent:
        case ast.Constant(value=int() as times) if type(times) is int and times <= LARGEST_EXPONENT:
            return lambda look: power(base(look), times)
    raise FormulaError(f"after ** a whole number from 0 to {LARGEST_EXPONENT} is accepted")


def _call(name: str, parts: list[Value]) -> Value:
    fits = len(parts) == 1 if FUNCTIONS[name] == "one value" else len(parts) > 1
    if not fits:
        raise FormulaError(f"`{name}` takes {FUNCTIONS[name]}, here {len(parts)}")
    function = CALLED[name]
    return lambda look: function(*[one(look) for one in parts])


def _first_that_decides(parts: list[Value], wanted: bool) -> Value:
    """What `or` gives: the first operand that is not 0, else the last; `and`: the first that is 0."""

    def value(look: Look) -> float:
        for one in parts[:-1]:
            found = one(look)
            if (found != 0) is wanted:
                return found
        return parts[-1](look)

    return value


def _chain(first: Value, links: list[tuple[Callable[[float, float], bool], Value]]) -> Value:
    """A < b <= c asks b once, and c only if a < b."""

    def value(look: Look) -> float:
        left = first(look)
        for compare, part in links:
            right = part(look)
            if not compare(left, right):
                return 0.0
            left = right
        return 1.0

    return value


# --- a policy ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class FormulaScore:
    """The score function of a formula, a gate and the steps at which it may probe."""

    text: str  # as the reader wrote it
    value: Value
    gate: float  # what the highest value must reach
    not_before: int  # the first step at which it probes
    last: int | None  # it probes in so many last steps only; None: in all

    def __call__(self, view: View) -> Floats:
        """The scores, [field]: the first field of the highest value is probed if that reaches the gate."""
        left = view.horizon - view.step  # steps, this one included
        if view.step < self.not_before or (self.last is not None and left > self.last):
            return np.full(len(view.c), SHUT)
        step = {name: float(getattr(view, name)) for name in BY_STEP}
        fields = zip(*(getattr(view, name).tolist() for name in BY_FIELD), strict=True)
        values = [self.value(step | dict(zip(BY_FIELD, map(float, one), strict=True))) for one in fields]
        scores = np.array(values)
        if self.gate == view.threshold:
            return scores
        # the engine's gate stands elsewhere: it is shown what this one decides, no number moved by rounding
        opens = scores.max() >= self.gate
        return np.where((scores == scores.max()) & opens, view.threshold, SHUT)


def formula(
    text: str, name: str = "mine", *, gate: float = THRESHOLD, not_before: int = 0, last: int | None = None
) -> Policy:
    """A policy of one formula, which the page *Your own policy* runs in the same way, digit for digit.

    The formula is computed for every field at every step, from `c s u d staleness confidence step horizon
    used budget`, all as floats. The first field of the highest value is probed, if the value reaches the gate
    and budget is left. How many probes an episode may fire is a matter of `compete(budget=…)`.

    Args:
        name: as `@policy` takes it.
        gate: what the highest value must reach.
        not_before: the first step at which it may probe, from 0.
        last: the last so many steps are those in which it may probe; None: all.

    Raises:
        FormulaError: if the text is no formula, or a number is not accepted.

    >>> formula("c + 2 * d", "what matters next", last=7).name
    'what matters next'
    """
    check_name(name)
    value = parse(text)
    if not _is_number(gate) or not math.isfinite(gate):
        raise FormulaError(f"the gate is {shown(str(gate))}; a finite number is accepted")
    for what, steps in (("not_before", not_before), ("last", last)):
        least = 0 if what == "not_before" else 1
        if steps is None and what == "last":
            continue
        if type(steps) is not int or not least <= steps <= LONGEST_HORIZON:
            raise FormulaError(
                f"{what} is {shown(str(steps))}; a whole number from {least} to {LONGEST_HORIZON} is accepted"
            )
    score = FormulaScore(text, value, float(gate), not_before, last)
    return custom_policy(name, GuardedScore(score, name))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
