"""`interact`: a section's figure at the page's values, or under sliders that compute it anew."""

import asyncio
import html

import pandas as pd
import pytest

from envprobe_book import draw, interact
from envprobe_book.pages import SERVED
from envprobe_book.pages.figures import Frame, keeping
from envprobe_book.pages.interact import DRAFT
from envprobe_core import run, summarize
from envprobe_core.engine.batch import simulate
from envprobe_core.errors import InputError
from envprobe_core.experiment import KeptCells, keeping_cells


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
    # -1 once for the page, once for the frame in which data move
    moves = [(-1, 1.5, DRAFT), (2, 1.5, DRAFT), (2, 4.0, DRAFT), (-1, 4.0, DRAFT)]
    assert asked == [(-1, 1.5, 10_000), *moves]
    bundle = one._repr_mimebundle_()  # in JupyterLab, and the page when it is saved
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "live-link" in bundle["text/html"]


def test_a_slow_figure_answers_with_a_draft_that_the_whole_one_follows(live, monkeypatch):
    monkeypatch.setattr("envprobe_book.pages.interact.ANSWER", 0.0)  # whatever the machine, it takes longer
    asked = []

    def means(budget, seeds="0:96"):
        episodes = run("tooldag", "simple", protocols="paper", seeds=seeds, budgets=budget)
        asked.append((budget, len(episodes)))
        return draw("forest", summarize(episodes, "accuracy", ("policy",)), "one", "mean", x="policy")

    async def move():
        one = live(means)
        one.sliders["budget"].value = 3
        one.sliders["budget"].value = 4
        draft = shown(one), one._note.value
        while one._waiting is not None:
            await asyncio.sleep(0.05)
        whole = shown(one), one._note.value
        one.sliders["budget"].value = 7  # the page's own is there
        return draft, whole, one._waiting

    draft, whole, waiting = asyncio.run(move())
    assert asked == [(-1, 96), (-1, 96), (3, 12), (4, 12), (4, 96)]
    assert means(4, "0:12").alt in draft[0]
    assert "From the first seeds alone" in draft[1]
    assert means(4).alt in whole[0]
    assert "seeds" not in whole[1]
    assert waiting is None


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


def test_cells_that_do_not_change_are_run_once(monkeypatch):
    """By threshold, Simple alone is run again, and first seeds never; what is kept is what would be run."""
    asked, kept = [], KeptCells()

    def counted(cell, seeds):
        asked.append(cell.policy.name)
        return simulate(cell, seeds)

    monkeypatch.setattr("envprobe_core.experiment.measure", counted)
    given = ("tooldag", "periodic simple", "S2", "paper", "typical")
    settings = [("0:6", 1.5), ("0:6", 2.0), ("0:4", 1.5), ("0:6", 1.5), ("0,2,3", 1.5), ("0:4", 1.5)]
    with keeping_cells(kept):
        found = [run(*given, seeds, thresholds=gate) for seeds, gate in settings]
    assert asked == ["periodic", "simple", "simple", *["periodic", "simple"] * 2]
    for frame, (seeds, gate) in zip(found, settings, strict=True):
        pd.testing.assert_frame_equal(frame, run(*given, seeds, thresholds=gate))


@pytest.mark.parametrize("kind", ["forest", "bars", "curves", "frontier"])
def test_data_that_move_in_a_frame_are_told_as_they_would_be_alone(kind):
    """The frame stays; its axes reach as far as the data."""
    first = pd.DataFrame({"policy": ["simple", "periodic"], "mean": [0.3, 0.5], "share": [0.2, 0.6]})
    moved, stays = first.assign(mean=[0.9, 0.1]), Frame()
    how = {"x": "share" if kind in ("curves", "frontier") else "policy", "series": "policy"}
    for frame in (first, moved):
        with keeping(stays):
            drawing = draw(kind, frame, "one", "mean", **how)
        assert drawing.svg().count("<path") >= 2
    assert drawing.figure is stays.figure
    alone = draw(kind, moved, "one", "mean", **how)
    assert drawing.alt == alone.alt
    panel, other = drawing.figure.axes[0], alone.figure.axes[0]
    drawn = [len([*one.lines, *one.collections, *one.patches, *one.artists]) for one in (panel, other)]
    assert drawn[0] == drawn[1], "what moved is drawn once"
    across = kind in ("forest", "bars")
    low, high = panel.get_xlim() if across else panel.get_ylim()
    assert low <= 0.1 < 0.9 <= high
    names = [[text.get_text() for text in one.get_yticklabels()] for one in (panel, other)]
    assert not across or names[0] == names[1] == ["EnvProbe-Simple", "Periodic"]
