"""`interact`: a section's figure at the page's values, or under sliders that compute it anew."""

import html

import pytest

from envprobe_book import draw, interact
from envprobe_book.pages import SERVED
from envprobe_book.pages.interact import FEW
from envprobe_core import run, summarize
from envprobe_core.errors import InputError


def draw_means(budget, threshold):
    episodes = run("tooldag", "periodic simple", seeds="0:6", budgets=budget, thresholds=threshold)
    means = summarize(episodes, "accuracy", ("protocol", "policy"), resamples=100)
    return draw("forest", means, "means", "mean", x="policy", series="policy", panels="protocol")


@pytest.fixture
def live(monkeypatch):
    """`interact` in a notebook that a Jupyter server runs."""
    monkeypatch.setenv(SERVED, "lab/one.ipynb")
    return interact


def shown(one):
    return html.unescape(one._image.value)


def test_a_page_shows_the_figure_once_with_a_link_to_the_explorer(monkeypatch):
    monkeypatch.delenv(SERVED, raising=False)
    one, alone = interact(draw_means, policies="periodic simple"), draw_means(-1, 1.5)
    address = "explorer.html#budget=7&amp;threshold=1.5&amp;policies=periodic,simple"
    link = f'<a href="{address}">Move the budget and the threshold in the explorer</a>'
    page = f'{alone.svg()}<p class="live-link">{link}</p>'
    assert one._repr_mimebundle_() == {"text/html": page, "text/plain": alone.alt}
    assert not one.sliders


def test_sliders_compute_the_figure_anew(live):
    asked = []

    def sampled(budget, threshold, resamples=10_000):
        asked.append((budget, threshold, resamples))
        return draw_means(budget, threshold)

    one = live(sampled)
    budget, threshold = one.sliders["budget"], one.sliders["threshold"]
    assert (budget.value, budget.min, budget.max, threshold.value) == (7, 0, 15, 1.5)
    assert all(slider.continuous_update for slider in one.sliders.values())
    assert one._image.value == draw_means(-1, 1.5).svg()
    budget.value = 2
    moved = draw_means(2, 1.5).alt
    assert moved in shown(one)
    assert "Drawn for budget 2, threshold 1.5, intervals from 500 resamples" in one._note.value
    threshold.value = 4.0
    assert moved not in shown(one)
    budget.value, threshold.value = 7, 1.5
    assert one._image.value == draw_means(-1, 1.5).svg(), "back to the page's own values"
    assert "resamples" not in one._note.value
    moves = [(2, 1.5, FEW), (2, 4.0, FEW), (-1, 4.0, FEW)]  # -1 is the page's own
    assert asked == [(-1, 1.5, 10_000), *moves]
    bundle = one._repr_mimebundle_()  # in JupyterLab, and the page when it is saved
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "live-link" in bundle["text/html"]


def test_a_fault_on_the_way_is_one_line_and_the_last_figure_stays(live):
    def fails(threshold):
        if threshold > 2:
            raise ZeroDivisionError("<b>of</b>\nmine")
        return draw_means(7, threshold)

    one = live(fails)
    before = shown(one)
    one.sliders["threshold"].value = 3
    assert shown(one) == before
    assert "ZeroDivisionError: &lt;b&gt;of&lt;/b&gt; mine" in one._note.value
    one.sliders["threshold"].value = 1
    assert "Drawn for threshold 1" in one._note.value


@pytest.mark.parametrize(
    ("given", "named", "said"),
    [
        ((draw,), {}, "the function takes kind, frame, name, y"),
        ((3,), {}, "takes a function that draws, not int '3': write interact"),
        ((lambda budget, seeds: 3,), {}, "the function takes budget, seeds; write"),
        ((lambda budget: [1, 2],), {}, r"returns list '\[1, 2\]'; it must return a figure"),
        ((draw_means, 31), {}, r"budget 31 is not a whole number in -1\.\.30"),
        ((draw_means, -1, "high"), {}, r"threshold 'high' is not a number in 0\.\.4"),
        ((draw_means,), {"regime": "S9"}, "unknown regime 'S9'"),
        ((draw_means,), {"policies": "simpel"}, "unknown policy 'simpel'"),
    ],
)
def test_bad_use_is_refused_in_one_line(given, named, said):
    with pytest.raises(InputError, match=said) as refused:
        interact(*given, **named)
    assert "\n" not in str(refused.value)
