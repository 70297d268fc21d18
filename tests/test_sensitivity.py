"""Which habit decides a claim: against analysis of variance, and with an answer that was planted."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hypothesis import given
from hypothesis import strategies as st

from envprobe_book.analyses import atlas, sensitivity
from envprobe_book.analyses.sensitivity import NOBODY, explained_share, find_deciders, parts_of, slices_of
from envprobe_book.pages.atlas import draw_deciding, draw_shares, draw_space, draw_wide
from envprobe_core.conditions import find_protocols
from palette import hues


@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(12, 40))
def test_the_share_explained_is_the_adjusted_r_squared_of_a_one_way_analysis(seed, count, agents):
    rng = np.random.default_rng(seed)
    cut = np.resize(np.arange(count), agents)
    support = rng.normal(size=agents) + rng.normal(size=count)[cut]
    support[rng.random(agents) < 0.1] = np.nan
    known = ~np.isnan(support)
    data = pd.DataFrame({"support": support[known], "cut": cut[known].astype(str)})
    (found,) = explained_share(parts_of(cut, support).sum(axis=0, keepdims=True))
    assert found == pytest.approx(smf.ols("support ~ cut", data).fit().rsquared_adj, abs=1e-9)


def test_a_resample_that_draws_an_agent_twice_has_it_twice():
    rng = np.random.default_rng(3)
    cut, support = np.resize(np.arange(3), 20), rng.normal(size=20)
    counts = rng.multinomial(20, np.full(20, 0.05), size=4)
    drawn = explained_share(counts @ parts_of(cut, support))
    for row, share in zip(counts, drawn, strict=True):
        again = parts_of(np.repeat(cut, row), np.repeat(support, row)).sum(axis=0, keepdims=True)
        assert share == pytest.approx(explained_share(again)[0], abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=16, max_size=64, unique=True), st.integers(2, 8))
def test_slices_are_of_equal_size_and_in_the_order_of_the_values(values, count):
    cut = slices_of(values, count)
    sizes = np.bincount(cut)
    assert len(sizes) == count
    assert sizes.max() - sizes.min() <= 1
    assert (np.diff(cut[np.argsort(values)]) >= 0).all()


@pytest.fixture(scope="module")
def planted():
    """An atlas of 128 agents whose support is `omit` and a little noise under one protocol, nothing else."""
    agents, claims = atlas.sample_profiles(128), atlas.atlas_claims()
    protocols = [one.name for one in find_protocols("paper released")]
    support = np.full((2, len(agents), len(claims)), np.nan)
    at = [one.id for one in claims].index("main-spatial")
    omit = np.array([one.omit for one in agents])
    support[0, :, at] = 1 - 3 * omit + np.random.default_rng(0).normal(0, 0.1, len(agents))
    support[1, :, at] = 1.0
    return SimpleNamespace(profiles=agents, claims=claims, protocols=protocols, support=support)


def test_a_planted_habit_is_found_and_what_never_varies_has_none(planted):
    found = find_deciders(planted, ["main-spatial"]).set_index("protocol")
    assert found.loc["paper", "behaviour"] == "omit"
    assert found.loc["paper", "low"] < found.loc["paper", "explains"] < found.loc["paper", "high"]
    assert found.loc["paper", "explains"] > 0.9
    assert found.loc["paper", "sure"] == 1
    assert found.loc["paper", "rank"] < -0.9
    assert found.loc["released", "axis"] == NOBODY


def test_the_figure_of_deciders_draws_medians_and_the_middle_of_the_agents(planted):
    drawing = draw_deciding(planted, find_deciders(planted, ["main-spatial"]))
    axes = drawing.figure.axes[0]
    omit, support = (np.array([one.omit for one in planted.profiles]), planted.support[0])
    support = support[:, [one.id for one in planted.claims].index("main-spatial")]
    cut = slices_of(omit, sensitivity.MOST_SLICES)
    low, middle, high = (
        [np.quantile(support[cut == place], q) for place in range(cut.max() + 1)] for q in (0.1, 0.5, 0.9)
    )
    ends = [line.get_ydata() for line in axes.lines if len(line.get_ydata()) == 2][1:]  # the first is zero's
    marks = [line for line in axes.lines if line.get_marker() in ("o", "v")]
    assert sorted(y for line in marks for y in line.get_ydata()) == pytest.approx(sorted(middle))
    assert sorted(min(pair) for pair in ends) == pytest.approx(sorted(low))
    assert sorted(max(pair) for pair in ends) == pytest.approx(sorted(high))
    for line in marks:
        assert all((y > 0) == (line.get_marker() == "o") for y in line.get_ydata())
    assert "by omit" in drawing.alt
    assert hues(drawing) == []


def test_shares_are_of_the_agents_that_can_be_tested():
    claims = [one for one in atlas.atlas_claims() if one.id in ("main-spatial", "main-combined")]
    words = np.array([["holds", "not tested"], ["reverses", "not tested"], ["holds", "holds"]], object)
    found = atlas.shares_of(words[None], claims, ["paper"])
    assert found["holds"].tolist() == pytest.approx([200 / 3, np.nan], nan_ok=True)
    assert found["reverses"].tolist() == pytest.approx([100 / 3, np.nan], nan_ok=True)
    both = [draw_shares(found, found, "all"), draw_wide(found, found)]
    assert "not testable" in both[0].svg()
    assert both[1].alt.count("percent on average") == 2
    agents = pd.DataFrame({"a": [0.2, 0.4], "b": [0.3, 0.1]}, index=["typical", "atlas-0001"])
    both.append(draw_space(agents, {"a": 0.25, "b": 0.2}, (("a", "b"),)))
    assert "1 sampled agents" in both[2].svg()
    assert [hues(one) for one in both] == [[], [], []]
