"""A page's statistics are Python's to the last bit: in Chromium, and in Firefox where there is one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from built_book import engine_page
from envprobe_book.page_engine import HERE
from envprobe_core import statistics as stats
from firefox import FIREFOX, firefox

pytestmark = pytest.mark.browser
BITS = """async ([name, given, parts]) => {
  await EnvProbe.statistics.ready();
  const known = (list) => list.map((value) => value ?? NaN); // JSON has no NaN
  const [values, ...others] = given;
  const found = EnvProbe.statistics[name](name === "track" ? known(values) : values, ...others);
  const bits = (numbers) => [...new BigUint64Array(Float64Array.from(numbers).buffer)].map(String);
  return [found].flat().map((one) => bits(parts.flatMap((part) => one[part])));
}"""
PARTS = ["value", "low", "high", "n"]
NUMBERS = st.floats(-1e300, 1e300)  # the smallest as well
SCORES = st.sampled_from([-1.0, -0.5, -1 / 3, 0.0, 0.1, 0.25, 1 / 3, 2 / 3, 1.0])


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    script = (HERE / "statistics.js").read_text(encoding="utf-8")
    return (
        engine_page(tmp_path_factory.mktemp("statistics"), "statistics.js", script)
        .as_uri()
        .rpartition("page.html")[:2]
    )


@pytest.fixture(scope="module")
def firefox_tab(address):
    if FIREFOX is None:
        pytest.skip("no Firefox here")
    with firefox() as tab:
        tab.goto("".join(address))
        yield tab


@pytest.fixture(params=["chromium", "firefox"])
def page(request, address):
    """A function that calls one of the page, and gives the bits of what it finds."""
    if request.param == "chromium":
        tab = request.getfixturevalue("browse")(*address)
    else:
        tab = request.getfixturevalue("firefox_tab")
    return lambda name, *given, parts=PARTS: tab.evaluate(BITS, [name, given, parts])


def bits(*columns):
    """Numbers [part, statistic] as a page says them; NaN is one."""
    rows = np.array(columns, dtype=np.float64).T
    rows[np.isnan(rows)] = np.nan
    return rows.view(np.uint64).astype(str).tolist()


@settings(max_examples=100)
@given(st.data(), st.integers(1, 30), st.booleans())
def test_ratios_and_their_contrasts_are_pythons(page, data, n, contrasted):
    def columns(values):
        width = 2 * data.draw(st.integers(1, 2)) if contrasted else 3
        return np.array(
            data.draw(st.lists(st.lists(values, min_size=n, max_size=n), min_size=width, max_size=width))
        )

    tops = columns(data.draw(st.sampled_from([NUMBERS, SCORES])))
    bottoms = np.resize(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), tops.shape)
    bottoms[:, 0] = 2.0
    strata = data.draw(st.none() | st.lists(st.sampled_from([10, 2, 33]), min_size=n, max_size=n))
    asked = {"strata": strata, "contrasted": contrasted, "resamples": data.draw(st.integers(60, 120))}
    reach = data.draw(st.sampled_from([{}, {"reach": 0.0}, {"reach": 1.0}]))
    if reach:
        tops[:, 1:] = 0.0  # pairs hardly differ
    expected = stats.ratios(tops.T, bottoms.T.astype(float), **asked, **reach)
    found = page("ratios", tops.tolist(), bottoms.tolist(), asked | reach)
    places = [stats.Estimate._fields.index(name) for name in ("mean", "low", "high", "n")]
    assert found == bits(*(expected[place] for place in places))


def test_a_sample_as_large_as_the_books_is_pythons(page):
    """Nine strata of 220 pairs, by their names."""
    values = np.random.default_rng(3).choice([-1.0, 0.0, 1 / 3, 1.0], 9 * 220)
    strata = np.repeat(list("qwertzuio"), 220).tolist()
    expected = stats.mean_interval(values, strata)
    assert page("mean", values.tolist(), {"strata": strata}) == bits(*np.transpose([expected]))


def test_tracks_are_pythons(page):
    luck = np.random.default_rng(5)
    for units in (4, 40):
        track = luck.random((units, 9))
        track[np.arange(9) > luck.integers(3, 12, (units, 1))] = np.nan
        asked = {"resamples": 200, "strata": (np.arange(units) % 3).tolist()}
        expected = stats.mean_track(track, 200, asked["strata"])
        values = [None if np.isnan(value) else value for value in track.ravel().tolist()]
        wanted = np.concatenate([expected[part] for part in ("accuracy", "low", "high")])
        assert page("track", values, 9, asked, parts=["value", "low", "high"]) == bits(*wanted[:, None])


def test_every_share_of_the_books_sample_is_pythons(page):
    for k in range(221):
        assert page("wilson", k, 220) == bits(*np.transpose([stats.wilson(k, 220)]))
