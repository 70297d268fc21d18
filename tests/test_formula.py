"""The page's formulas: what is no formula is one sentence; what is one gives the number that Python gives."""

import contextlib
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envprobe_book.page_engine import HERE

FOLDER = HERE.parent / "classroom"
QUANTITIES = ["c", "s", "u", "d", "staleness", "confidence", "step", "horizon", "used", "budget"]
CALLED = {"min": min, "max": max, "abs": abs, "sqrt": math.sqrt}
LOOKS = [
    dict(zip(QUANTITIES, map(float, numbers), strict=True))
    for numbers in (
        (0.5, 0.3, 0.2, 1, 3, 80, 0, 24, 0, 6),
        (1, 0, 0, 0, 0, 100, 23, 24, 6, 6),
        (1 / 3, 0.1, 0.7, 0.5, 1, 30, 11, 30, 2, 7),
    )
]
COMPUTE = """([texts, looks]) => texts.map((text) => {
  let value;
  try { ({ value } = EnvProbe.formula.parse(text)); } catch (error) { return error.message; }
  return looks.map((look) => { try { return value(look); } catch (error) { return error.message; } });
})"""

pytestmark = pytest.mark.browser


def in_python(text, look):
    """The number that the text is worth as Python, None where it is worth none."""
    whole = " ".join(text.split())
    try:
        found = float(eval(whole, {"__builtins__": {}}, CALLED | look))
    except (ZeroDivisionError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


HOSTILE = [
    "", " ", "\n", "\t \r", "()", "(", ")", ")(", "((((", "c)", "(c", "c +", "+", "* c", "c * * d",
    "c d", "2 c", "2c", "c2", "1 2", "1.2.3", "..", ".", "1..2", "007", "0x10", "0b1", "1_000", "1j",
    "1e", "1e400", "1e9", "1000001", "9" * 400, "1e-400 + c1", "nan", "NaN", "inf", "Infinity", "-inf",
    "float('nan')", "float(c)", "int(c)", "c.real", "c.__class__", "().__class__", "(1).real", "c[0]",
    "[c]", "{c}", "{}", "[]", "[x for x in c]", "(x for x in c)", "{1: 2}", "lambda: 1", "lambda c: c",
    "c := 1", "(c := 1)", "c = 1", "c == ", "== c", "c = d", "c += 1", "c; d", "c: d", "c, d", "(c, d)",
    "(c,)", "c,", ",", "min", "min()", "min(c)", "min(c,)", "min(,c)", "min(c,,d)", "min(*c)",
    "min(**c)", "min(c for c in d)", "min(c=1)", "min c", "min(c, d", "(min)(c, d)", "min(min)",
    "min(c)(d)", "abs()", "abs(c, d)", "abs", "sqrt()", "sqrt(c, d)", "max(c)", "pow(c, 2)", "sum(c)",
    "exp(c)", "log(c)", "round(c)", "print(c)", "eval('1')", "exec('1')", "open('/etc/passwd')",
    "__import__('os')", "__import__", "__builtins__", "globals()", "locals()", "vars()", "dir()",
    "getattr(c, 'real')", "import os", "from os import *", "while True: pass",
    "for i in range(10**9): pass", "def f(): pass", "return c", "yield c", "await c", "async c",
    "raise c", "assert c", "del c", "pass", "break", "global c", "with c: pass", "try: c", "if c",
    "if c else d", "c if d", "c if d else", "c else d", "c if if d else d", "if", "else", "and", "or",
    "not", "c and", "and c", "c or", "c not d", "not", "c and or d", "c is d", "c in d", "c not in d",
    "c is not d", "None", "none", "true", "false", "Ellipsis", "...", "'text'", '"text"', "f'{c}'",
    "b'c'", "'" + "a" * 400 + "'", "c # comment", "# c", "c \\\n + d", "c\0d", "\0", "c\u00a0+ d",
    "с + d", "ｃ + d", "c × d", "c − d", "c ÷ d", "√c", "c²", "π", "😀", "😀" * 300, "\ud800", "c // d",
    "c // 0", "c @ d", "c << 9", "c >> 1", "c & d", "c | d", "c ^ d", "~c", "!c", "c && d", "c || d",
    "c ? d : s", "c === d", "c <> d", "c =< d", "c => d", "c -> d", "c++", "c--", "++", "c ** d",
    "c ** 9", "c ** -1", "c ** 2.0", "c ** 2 ** 2", "c ** (1 + 1)", "c ** 99", "c ** True", "c ** 1e0",
    "10**9", "10**10**10", "2**100000", "9**9**9**9", "2 ** c", "(" * 21 + "c" + ")" * 21,
    "(" * 200 + "c" + ")" * 200, "(" * 250, "-" * 400 + "c", "not " * 120 + "c",
    "abs(" * 30 + "c" + ")" * 30, "c + " * 100 + "c", "c + " * 200 + "c", "c if d else " * 50 + "c",
    "c < " * 90 + "c", "c" * 501, "a" * 10_000, " " * 501, "C", "S", "Step", "gold", "value", "view",
    "view.c", "threshold", "draw", "random()", "Math.max(c, d)", "this", "window", "document.cookie",
    "constructor", "constructor('x')()", "toString", "hasOwnProperty", "__proto__", "prototype",
    "alert(1)", "<script>alert(1)</script>", "';drop table", "`c`", "$c", "${c}", "%s", "%", "c %",
    "% c", "c\\d", "c | ls", "$(ls)", "../../etc", "NaN + c", "c / / d", "c * / d", "c < < d",
]  # fmt: skip
COMPUTED = [
    "1 / 0", "c / (d - d)", "c % 0", "sqrt(-1)", "sqrt(c - 2)", "(10 ** 6) ** 8 * (10 ** 6) ** 8",
    "(1e6 ** 8) ** 8", "1e6 ** 8 ** 1", "-0 * c", "min(0, -0.0)", "max(-0.0, 0)", "-7 % 3", "7 % -3",
    "-6 % -3", "6 % -3", "1 if c else 1 / 0", "c and 1 / 0", "c or 1 / 0", "0 and 1 / 0",
    "0 > 1 > 1 / 0", "not not c", "True", "c ** 0", "0 ** 0", "c ** (2)", "min(c, d,)", "- - c",
    "-c ** 2", "2 ** 3 * c", "not c == d", "c < d < s", "\n c\n+ d\t", "1.", ".5e1", "1e-400",
    "c >= .5 and d", "d if s else u if c else 1", "(c if s else d) ** 2",
    "1 if s > 0 else 0 if u > 0 else 1", "True + True", "c == c != d", "c - d - s", "c / 2 / 2",
    "0.1 + 0.2",
]  # fmt: skip


@pytest.fixture(scope="module")
def tab(chromium):
    page = chromium.new_page()
    page.add_script_tag(path=FOLDER / "formula.js")
    yield page
    page.close()


def assert_python(tab, texts):
    """What the page computes is what Python does; what it refuses to is worth no number, or overflows."""
    for text, found in zip(texts, tab.evaluate(COMPUTE, [texts, LOOKS]), strict=True):
        assert isinstance(found, list), (text, found)
        for look, here in zip(LOOKS, found, strict=True):
            due = in_python(text, look)
            if isinstance(here, str):
                assert due is None or "too large" in here or "1 / 0" in text, (text, here, due)
            else:
                assert due is not None, (text, here)
                assert math.isclose(here, due, rel_tol=1e-12), (text, here, due)  # ** is rounded elsewhere


def test_hostile_texts_are_refused_in_one_sentence_each(tab):
    texts = [text for text in HOSTILE if text != "\ud800"]  # no driver sends half a character
    assert len(texts) >= 200
    answers = tab.evaluate(COMPUTE, [texts, LOOKS])
    for text, told in zip(texts, answers, strict=True):
        if isinstance(told, str):
            assert "\n" not in told.replace(text, ""), told
            assert len(told) < 600, told
    let_in = [text for text, told in zip(texts, answers, strict=True) if not isinstance(told, str)]
    assert len(let_in) <= 4, let_in  # long but plain ones, which are computed
    assert_python(tab, let_in)
    assert tab.evaluate("Object.keys(EnvProbe).join()") == "formula"


def test_odd_formulas_are_worth_what_python_says(tab):
    refused = [text for text, told in zip(COMPUTED, tab.evaluate(COMPUTE, [COMPUTED, LOOKS]), strict=True)
               if isinstance(told, str)]  # fmt: skip
    assert set(refused) <= {"1e6 ** 8 ** 1", "c ** (2)", "min(c, d,)"}
    assert_python(tab, [text for text in COMPUTED if text not in refused])


NUMBERS = st.one_of(
    st.sampled_from(["0", "1", "2", "0.5", ".1", "1e-3", "3.", "1e6", "1000000"]),
    st.floats(0, 1e6).map(repr),
    st.integers(0, 1000).map(str),
)
LEAVES = st.one_of(NUMBERS, st.sampled_from([*QUANTITIES, "True", "False"]))


def larger(part):
    operators = st.sampled_from(["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "and", "or"])
    return st.one_of(
        st.tuples(part, operators, part).map(" ".join),
        st.tuples(st.sampled_from(["-", "+", "not "]), part).map("".join),
        part.map("({})".format),
        st.tuples(part, st.integers(0, 8)).map(lambda given: "({}) ** {}".format(*given)),
        st.tuples(part, part, part).map(lambda given: "{} if {} else {}".format(*given)),
        st.tuples(st.sampled_from(["min", "max"]), part, part).map(lambda given: "{}({}, {})".format(*given)),
        st.tuples(st.sampled_from(["abs", "sqrt"]), part).map(lambda given: "{}({})".format(*given)),
    )


FORMULAS = st.recursive(LEAVES, larger, max_leaves=14)


def is_python(text):
    """Whether Python reads it: `a if b if c else d else e`, for one, it does not."""
    with contextlib.suppress(SyntaxError):
        return bool(compile(text, "formula", "eval"))
    return False


@settings(max_examples=25)
@given(st.lists(FORMULAS.filter(is_python), min_size=20, max_size=40))
def test_random_formulas_are_worth_what_python_says(tab, texts):
    assert_python(tab, texts)


def test_random_rows_of_signs_are_refused_or_are_python(tab):
    luck = random.Random(5)
    pieces = [*"cd18+-*/%<>(),", "0.5", "**", "<=", "==", "and", "or", "not", "if", "else"]
    pieces += [f"{name}(" for name in CALLED]
    texts = [" ".join(luck.choices(pieces, k=luck.randint(1, 9))) for _ in range(5_000)]
    answers = tab.evaluate(COMPUTE, [texts, LOOKS])
    assert_python(tab, [text for text, told in zip(texts, answers, strict=True) if isinstance(told, list)])
