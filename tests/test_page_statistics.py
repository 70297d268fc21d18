"""The statistics of a page are Python's to the last bit, on samples of every sort.

In Chromium, and in Firefox where there is one. What JSON has no number for goes there and back as text.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import envprobe_book
from envprobe_core import statistics as stats
from envprobe_core.errors import InputError
from firefox import FIREFOX, firefox

pytestmark = pytest.mark.browser
SCRIPT = Path(envprobe_book.__path__[0]) / "page_engine" / "statistics.js"
CALL = """([name, given]) => {
  const through = (value, one) => {
    if (ArrayBuffer.isView(value)) value = [...value];
    if (Array.isArray(value)) return value.map((part) => through(part, one));
    if (value === null || typeof value !== 'object' || 'number' in value) return one(value);
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, through(part, one)]));
  };
  const read = (value) => (value?.number === undefined ? value : Number(value.number));
  const written = (value) => {
    if (typeof value !== 'number' || (Number.isFinite(value) && !Object.is(value, -0))) return value;
    return { number: Object.is(value, -0) ? '-0' : String(value) };
  };
  try {
    return { found: through(EnvProbe.statistics[name](...through(given, read)), written) };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { refused: error.message };
  }
}"""
NAMES = {  # of the page, in the order of Python's
    "estimate": ["mean", "low", "high", "n"],
    "interval": ["value", "low", "high", "n"],
}
ANY = st.floats(-1e300, 1e300)  # the smallest numbers as well
DRAW = ANY.map(lambda draw: draw + 0.0)  # no resampled mean is -0, which NumPy and pages sort otherwise
SCORES = st.sampled_from([-1.0, -0.5, -1 / 3, 0.0, 0.1, 0.25, 1 / 3, 2 / 3, 1.0])
SEEDS = st.one_of(st.integers(0, 3), st.integers(0, 2**53 - 1))
ASKED = st.fixed_dictionaries(
    {"resamples": st.integers(1, 120), "seed": SEEDS},
    optional={"level": st.sampled_from([0.5, 0.8, 0.9, 0.99])},
)
LABELS = st.sampled_from([["graphnav", "objectstate", "tooldag"], [10, 2, 33], [True, False]])


def bits(numbers):
    """Every number as its 64 bits; NaN is one."""
    floats = [math.nan if math.isnan(number) else float(number) for number in numbers]
    return struct.pack(f"{len(floats)}d", *floats).hex(" ", 8)


def for_json(value):
    """A value whose numbers JSON can hold; others become texts, as `CALL` reads them."""
    if isinstance(value, dict):
        return {name: for_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [for_json(part) for part in value]
    if isinstance(value, float) and (
        not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0)
    ):
        return {"number": {"inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))}
    return value


def from_json(value):
    """A value that came from the page, numbers as they were there."""
    if isinstance(value, list):
        return [from_json(part) for part in value]
    if isinstance(value, dict):
        if value.keys() == {"number"}:
            return float(value["number"])
        return {name: from_json(part) for name, part in value.items()}
    return value


@dataclass
class Page:
    """A tab that has the script."""

    tab: object

    def call(self, name, *given):
        """Call a function of the page; what it refuses is an InputError here."""
        answer = self.tab.evaluate(CALL, [name, for_json(given)])
        if "refused" in answer:
            raise InputError(answer["refused"])
        return from_json(answer["found"])

    def numbers(self, kind, name, *given):
        found = self.call(name, *given)
        assert list(found) == NAMES[kind]
        return list(found.values())


@pytest.fixture(scope="module")
def firefox_tab():
    if FIREFOX is None:
        pytest.skip("no Firefox here")
    with firefox() as tab:
        yield tab


@pytest.fixture(params=["chromium", "firefox"])
def page(request):
    """A tab in Chromium, and one in Firefox where there is one."""
    if request.param == "chromium":
        tab = request.getfixturevalue("browse")("about:blank")
    else:
        tab = request.getfixturevalue("firefox_tab")
    tab.evaluate("(script) => { (0, eval)(script); return true; }", SCRIPT.read_text(encoding="utf-8"))
    return Page(tab)


def same(page, kind, name, given, ours):
    """Both find the same bits, or both refuse."""
    try:
        expected = ours()
    except InputError:
        with pytest.raises(InputError):
            page.call(name, *given)
    else:
        assert bits(page.numbers(kind, name, *given)) == bits(shown(kind, expected))


def shown(kind, expected):
    """What a page shows of what Python finds."""
    return [getattr(expected, name) for name in NAMES[kind]]


def strata_of(data, n):
    """Labels of a sort for n units, or none."""
    return data.draw(
        st.none() | LABELS.flatmap(lambda own: st.lists(st.sampled_from(own), min_size=n, max_size=n))
    )


def test_counts_are_pythons(page):
    for n, resamples, seed in [(1, 2, 0), (2, 9, 2**53 - 1), (7, 50, 3), (220, 1_000, 0), (65_535, 2, 2**32)]:
        counts = stats.resample_counts(n, resamples, seed)
        assert page.call("resampleCounts", n, resamples, seed) == counts.ravel().tolist()


@settings(max_examples=120)
@given(st.data(), ASKED)
def test_means_of_pairs_are_pythons(page, data, asked):
    values = data.draw(st.lists(data.draw(st.sampled_from([ANY, SCORES])), min_size=1, max_size=30))
    given_ = asked | {"strata": strata_of(data, len(values))}
    same(
        page,
        "estimate",
        "pairedBootstrap",
        [values, given_],
        lambda: stats.paired_bootstrap(values, **given_),
    )
    interval = {name: given_[name] for name in ("resamples", "seed", "level", "strata") if name in given_}
    same(
        page, "interval", "meanInterval", [values, interval], lambda: stats.mean_interval(values, **interval)
    )


@settings(max_examples=120)
@given(st.data(), ASKED)
def test_ratios_are_pythons(page, data, asked):
    n = data.draw(st.integers(1, 20))
    bottom = data.draw(
        st.lists(data.draw(st.sampled_from([st.integers(0, 3), st.just(2)])), min_size=n, max_size=n)
    )
    top = data.draw(st.lists(SCORES, min_size=n, max_size=n))
    given_ = asked | {"strata": strata_of(data, n)}
    same(
        page,
        "estimate",
        "clusteredRate",
        [top, bottom, given_],
        lambda: stats.clustered_rate(top, bottom, **given_),
    )


@settings(max_examples=100)
@given(st.lists(DRAW, min_size=1, max_size=60), st.sampled_from([0.05, 0.5, 0.9, 0.95, 0.999]))
def test_percentiles_and_sums_are_pythons(page, values, level):
    assert bits(page.call("percentileInterval", values, level)) == bits(
        stats.percentile_interval(values, level)
    )
    assert bits([page.call("fsum", values)]) == bits([math.fsum(values)])


def test_sums_are_rounded_once(page):
    for values in (
        [1e16, 1.0, 1e-16],
        [1e16, -1.0, 1e-16],
        [0.1] * 10,
        [2.0**53, 1.0, 2.0**-80],
        [-0.0],
        [1e300, -1e300, 5e-324],
    ):
        assert bits([page.call("fsum", values)]) == bits([math.fsum(values)])


def test_a_sample_as_large_as_the_books_is_pythons(page):
    """Nine strata of 220 pairs; and so many units that a page draws counts again, row by row."""
    values = np.random.default_rng(3).choice([-1.0, 0.0, 1 / 3, 1.0], 9 * 220)
    for sizes, asked in (([220] * 9, {"resamples": 1_000}), ([5_000], {"resamples": 900, "seed": 4})):
        own = np.resize(values, sum(sizes))
        given_ = asked | {"strata": np.repeat(np.arange(len(sizes)), sizes).tolist()}
        expected = stats.paired_bootstrap(own, **given_)
        found = page.numbers("estimate", "pairedBootstrap", own.tolist(), given_)
        assert bits(found) == bits(shown("estimate", expected))


@settings(max_examples=80)
@given(st.integers(1, 1_500), st.data())
def test_shares_are_pythons(page, n, data):
    k = data.draw(st.integers(0, n) | st.integers(0, min(n, 4)))
    level = data.draw(st.sampled_from([0.8, 0.9, 0.95, 0.99]))
    assert bits(page.numbers("interval", "wilson", k, n, level)) == bits(stats.wilson(k, n, level))


def test_every_share_of_the_books_sample_is_pythons(page):
    wilson = page.tab.evaluate(
        "() => Array.from({ length: 221 }, (_, k) => EnvProbe.statistics.wilson(k, 220))"
    )
    for k, found in enumerate(wilson):
        assert bits(found.values()) == bits(stats.wilson(k, 220))


@pytest.mark.parametrize(
    ("name", "given_", "sentence"),
    [
        ("pairedBootstrap", [[]], "0 numerators, 0 denominators"),
        ("pairedBootstrap", [[1, math.inf]], "values hold Infinity at unit 1; finite numbers"),
        ("pairedBootstrap", [[1, 2], {"resamples": 0}], "resamples are 0; a whole number from 1"),
        ("pairedBootstrap", [[1, 2], {"seed": 2**53}], "the seed is 9007199254740992; a whole number from 0"),
        ("pairedBootstrap", [[1, 2], {"strata": [1]}], "1 strata, 2 units; one label a unit"),
        ("pairedBootstrap", [[1, 2], {"level": 1}], "level 1; a level in (0, 1)"),
        ("clusteredRate", [[1, 2], [1, -1]], "denominators hold -1; numbers from 0"),
        ("clusteredRate", [[1, 2], [0, 0]], "denominators are all 0; at least one event"),
        ("clusteredRate", [[1, 2], [0, 1], {"resamples": 1, "seed": 2}], "no resample holds an event"),
        ("meanInterval", [[]], "no values; at least one"),
        ("percentileInterval", [[1, 2], 0], "level 0; a level in (0, 1)"),
        ("wilson", [4, 3], "4 successes of 3; n from 1"),
        ("wilson", [1, 3, 0.94], "level 0.94; one of 0.8, 0.9, 0.95, 0.99"),
        ("wilson", [0, 0], "0 successes of 0; n from 1"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(page, name, given_, sentence):
    with pytest.raises(InputError) as refused:
        page.call(name, *given_)
    assert str(refused.value).startswith(sentence)
