"""The explorer in a page: what it shows is what Python runs, at any setting; no kernel, no network."""

import json
import math

import numpy as np
import pytest
from playwright.sync_api import expect

from built_book import engine_page, serving
from daily import nightly
from envprobe_book import compare, run, summarize
from envprobe_book.live_figures import estimates
from envprobe_book.live_figures.explorer import COMPARED, explorer, link
from envprobe_book.live_figures.scripts import SCRIPT, STYLES, front_end
from envprobe_book.page_engine import from_plain
from envprobe_core.compiled.noise import level32
from envprobe_core.engine import batch
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES
from envprobe_core.sources import ROOT

FIGURES = ("levels", "differences", "above-zero", "frontier", "over-time", "probes", "useful", "table")
SHOWN = """(name) => {
  const told = ({value, low, high}) => [value, low, high].flat().map((one) => (Number.isNaN(one) ? null : one));
  const {rows, found, setting, seeds} = EnvProbe.explorer.state.figures[name];
  const parts = rows.flatMap((row, i) => ["value", "x"].filter((part) => row[part]).map((part) => [row[part], told(found[i][part])]));
  const all = EnvProbe.bar.setting();
  return {setting, seeds: all.seeds, asked: parts.map(([one]) => one), values: parts.map(([, own]) => own)};
}"""  # noqa: E501
SETTLED = """(name) => {
  const place = document.querySelector(name === "table" ? ".explorer-numbers" : `[data-figure=${name}]`);
  place.scrollIntoView({block: "center"});
  return place.dataset.settled === "yes" && EnvProbe.explorer.state.figures[name];
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A page with the explorer alone, as the book holds it."""
    styles = "".join((ROOT / "book" / "assets" / sheet).read_text("utf-8") for sheet in STYLES)
    body = f"{explorer(seeds='0:60').page_html()}<p><a href='{link(world='pool', budget=3)}'>A try</a></p>"
    made = tmp_path_factory.mktemp("explorer")
    page = engine_page(made, SCRIPT, front_end(), body, head=f"<style>{styles}</style>")
    page.rename(made / "explorer.html")  # the name that links to it know
    return made


@pytest.fixture
def opened(folder, browse):
    """Open the page at a query."""

    def open_page(query="", base=None, **options):
        page = browse(base or folder.as_uri(), f"/explorer.html{query}", **options)
        page.wait_for_selector(".live-explorer[data-ready=yes]")
        return page

    return open_page


def shown_at_rest(page, name):
    """What a figure shows once all resamples are drawn: setting, estimates and their values."""
    page.wait_for_function(SETTLED, arg=name)
    return page.evaluate(SHOWN, name)


def computed(found):
    """What Python makes of a figure's estimates."""
    plain = {name: value for name, value in found["setting"].items() if name != "mutation_rate"}
    asked = [
        estimates.Asked(one["statistic"], one["measure"], tuple(one["arms"]), tuple(one["worlds"]))
        for one in found["asked"]
    ]
    values = []
    for one in estimates.evaluate(asked, plain, found["seeds"]):
        flat = np.concatenate([np.atleast_1d(one[end]) for end in ("value", "low", "high")]).tolist()
        values.append([None if math.isnan(value) else value for value in flat])
    return values


def assert_alike(found):
    for one, own, wanted in zip(found["asked"], found["values"], computed(found), strict=True):
        assert [value is None for value in own] == [value is None for value in wanted], one
        known = [[value for value in side if value is not None] for side in (own, wanted)]
        np.testing.assert_allclose(*known, rtol=0, atol=1e-9, err_msg=json.dumps(one))


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["file", "http"])
def test_at_first_the_numbers_are_those_of_run_summarize_and_compare(opened, folder, scheme):
    with serving(folder) as address:
        page = opened(base=address if scheme == "http" else None)
        found = shown_at_rest(page, "differences")
        shown_at_rest(page, "table")
        cells = page.locator(".explorer-table tbody tr").evaluate_all(
            "rows => rows.map((row) => [...row.children].map((cell) => cell.firstChild.textContent))"
        )
    frame = run("tooldag", list(COMPARED), protocols="paper", seeds="0:60", facts="zero")
    measures = ("accuracy", "zero", "success", "useful/probes", "repeated_probes/probes", "probes")
    means = summarize(frame, list(measures), "policy").set_index(["policy", "measure"])["mean"]
    for row, policy in zip(cells, COMPARED, strict=True):
        told = [f"{means[policy, measure]:.{2 if measure == 'probes' else 3}f}" for measure in measures]
        assert row == [POLICIES[policy].title, *("–" if own == "nan" else own for own in told)]
    for one, (value, low, high) in zip(found["asked"], found["values"], strict=True):
        policy = one["arms"][0]["policy"]
        wanted = compare(frame, policy, "periodic", one["measure"], strata={"here": ("tooldag",)}).iloc[0]
        np.testing.assert_allclose(
            [value, low, high], wanted[["gain", "gain_low", "gain_high"]].astype(float), atol=1e-9
        )


SETTINGS = {
    "switches": "world=graphnav&protocol=paper:clock=stands,end=success&policies=simple,voi,yoked&budget=9",
    "habits": "world=pool&habits=omit:0.3,spread:10&policies=simple,oracle&threshold=2.2&seeds=100:140",
    "mutation": "world=tooldag&mutation_rate=0.2&policies=periodic,placebo&reference=simple&budget=4",
    "horizon": "world=objectstate&horizon=45&budget=40&threshold=0.35&policies=cd,judge&protocol=observed",
    "later habits": "world=pool&protocol=observed&policies=simple,cd,yoked&reference=simple&seeds=0:80"
    "&habits=importance:0.8,contrary:0.9,own_noise:true",
    "settled": "world=tooldag&protocol=released&profile=scribe-settled&policies=simple,cd&seeds=0:120"
    "&habits=critical:0.5",
    "seeds": "regime=S3&profile=perfect&protocol=released&seeds=7:407&policies=random,minus-d&world=graphnav",
}


@pytest.mark.browser
@pytest.mark.parametrize("name", nightly(SETTINGS, "switches", "habits", "settled"))
def test_at_any_setting_every_figure_is_what_python_runs(opened, monkeypatch, name):
    page = opened(f"?{SETTINGS[name]}")
    assert page.locator(".explorer-message").inner_text() == ""
    made = batch.kernel_params
    rate = page.evaluate("EnvProbe.bar.setting().mutation_rate")

    def mutating(condition, **options):
        """The record of a condition, with the rate that no condition has."""
        setting = made(condition, **options)
        if rate is not None:
            setting.world.mutation = level32(rate)
        return setting

    monkeypatch.setattr(batch, "kernel_params", mutating)
    for figure in FIGURES:
        assert_alike(shown_at_rest(page, figure))


@pytest.mark.browser
def test_the_address_holds_the_setting_and_a_link_sets_it(opened):
    page = opened()
    page.get_by_label("All three pooled").check()
    page.get_by_role("slider", name="Budget").focus()
    page.keyboard.press("ArrowRight")
    page.locator("summary", has_text="Switches").click()
    page.get_by_label("Withhold answers").check()
    page.get_by_label("Answers that are wrong").select_option("20")
    page.locator("summary", has_text="More").click()
    page.locator("input[data-habit=omit]").fill("0.25")
    page.get_by_label("Number of seeds").fill("20")
    page.keyboard.press("Tab")
    page.wait_for_function("location.search.includes('seeds=0:20')")
    setting, address = page.evaluate("[EnvProbe.bar.setting(), location.search]")
    assert setting["budget"] == 8
    assert setting["habits"] == "omit:0.25"
    assert setting["protocol"] == "paper:answer=withheld,wrong=20"
    folded = page.locator("summary", has_text="Switches, turned").inner_text()
    assert folded == "Switches, turned: withhold answers; Answers that are wrong: 20%"
    assert opened(address).evaluate("EnvProbe.bar.setting()") == setting
    page.get_by_role("link", name="A try").press("Enter")  # figures above it may still grow
    page.wait_for_function("EnvProbe.bar.setting().budget === 3")
    own = page.evaluate("EnvProbe.bar.setting()")
    assert (own["world"], own["budget"], own["habits"]) == ("pool", 3, "")
    page.get_by_role("button", name="Back to this page").click()
    assert page.evaluate("EnvProbe.bar.isOwn()")


@pytest.mark.browser
@pytest.mark.nightly
def test_each_later_habit_is_a_knob_that_changes_what_is_shown(opened):
    """Stated confidence and errors move Simple's probes; luck of its own parts two arms that agreed."""
    page = opened("?world=objectstate&policies=simple,no-probe")
    page.locator("summary", has_text="More").click()
    seen = [shown_at_rest(page, "levels")["values"]]
    for habit in ("importance", "contrary"):
        page.locator(f"input[data-habit={habit}]").fill("1")
        page.wait_for_function(f"location.search.includes('{habit}:1')")
        seen.append(shown_at_rest(page, "levels")["values"])
        assert seen[-1] not in seen[:-1]
    page.get_by_label("own noise").select_option("true")
    page.wait_for_function("location.search.includes('own_noise:true')")
    seen.append(shown_at_rest(page, "levels")["values"])
    assert seen[-1] not in seen[:-1]
    page = opened("?protocol=released&profile=scribe-hesitant&policies=simple&habits=critical:0.5")
    before = shown_at_rest(page, "probes")["values"]
    page.locator("summary", has_text="More").click()
    page.get_by_label("critical once").select_option("true")
    page.wait_for_function("location.search.includes('critical_once:true')")
    assert shown_at_rest(page, "probes")["values"] != before


@pytest.mark.browser
def test_what_cannot_be_run_is_said_and_the_figures_stay(opened):
    page = opened("?budget=99&world=mars")
    message = page.locator(".explorer-message")
    expect(message).to_contain_text("budget and world")
    before = shown_at_rest(page, "levels")["values"]
    page.evaluate("EnvProbe.bar.move({habits: 'spread:60,confidence:20'})")
    expect(message).to_contain_text("exceeds its confidence")
    page.wait_for_function("document.querySelector('[data-figure=levels]').dataset.settled === 'refused'")
    assert page.evaluate(SHOWN, "levels")["values"] == before
    page.evaluate("EnvProbe.bar.rest()")
    expect(message).to_be_empty()
    page.locator("summary", has_text="More").click()
    for label, wrong in (("Number of seeds", "9"), ("Horizon", "201"), ("Mutation rate", "1.5")):
        page.get_by_role("spinbutton", name=label).fill(wrong)
        page.keyboard.press("Tab")
        expect(message).to_contain_text("is not accepted")
    assert page.evaluate("EnvProbe.bar.isOwn()")


@pytest.mark.browser
def test_the_plane_comes_first_follows_the_setting_and_runs_whole_when_asked(opened):
    page = opened("?horizon=8&seeds=0:20")
    plane, note = page.locator("[data-figure=plane]"), page.locator("[data-figure=plane] .live-note")
    expect(note).to_contain_text("45 pairs")
    assert page.locator("[data-figure]").first.get_attribute("data-figure") == "plane"
    plane.get_by_role("button", name="Run every cell").click()
    expect(note).to_contain_text("153 pairs")
    cells = page.evaluate("EnvProbe.explorer.state.figures.plane.cells")
    some = next(cell for cell in cells if (cell["x"], cell["y"]) == (4, 2.5))
    own = {"world": "tooldag", "horizon": 8, "budget": 4}
    plain = [own | {"policy": "simple", "threshold": 2.5}, own | {"policy": "periodic"}]
    ends = [batch.simulate(from_plain(one), np.arange(20))["accuracy"].mean() for one in plain]
    assert some["value"] == pytest.approx(100 * (ends[0] - ends[1]))
    assert some["low"] <= some["value"] <= some["high"]
    page.evaluate("EnvProbe.bar.move({protocol: 'released'})")
    expect(note).to_contain_text("45 pairs")
    assert page.evaluate("EnvProbe.explorer.state.figures.plane.cells") != cells
    page.evaluate("EnvProbe.bar.move({seeds: '0:5000', horizon: null})")
    plane.get_by_role("button", name="Run every cell").click()
    plane.get_by_role("button", name="Cancel").click()
    expect(note).to_have_text("Cancelled.")


@pytest.mark.browser
def test_on_a_phone_nothing_is_wider_than_the_screen(opened):
    page = opened(viewport={"width": 390, "height": 800})
    for summary in page.locator("summary").all():
        summary.click()
    for name in FIGURES:
        shown_at_rest(page, name)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_what_no_explorer_begins_with_is_refused():
    for wrong in ({"world": "mars"}, {"seeds": "0:9"}, {"seeds": "0:5,9:30"}, {"policies": "best"}):
        with pytest.raises(InputError):
            explorer(**wrong)
    text = explorer("pool").page_html()
    assert text.count("<script") == 1
    assert "needs JavaScript" in text
