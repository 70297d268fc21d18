"""Figures under the reader's hand in the built book: every page with one, from a folder, in Chromium."""

import html as markup
import itertools
import json
import re

import pytest
from playwright import sync_api as playwright

from daily import nightly
from envprobe_book.live_figures import estimates
from envprobe_book.live_figures.estimates import Asked
from envprobe_book.live_figures.words import said
from envprobe_book.reproduce.sections import find_sections
from test_pages import WAITS
from test_telling import readings

pytestmark = pytest.mark.browser
LIVE = (
    "worth-of-nothing", "main-results", "why-the-numbers", "terms", "over-time", "pareto", "what-probes-find",
    "other-settings", "robustness", "voi", "what-we-found", "how-a-section-is-made", "theory",
)  # fmt: skip
FOUND = "name => EnvProbe.live.figures[name].found.map(({value}) => [value.value, value.low, value.high])"


def settled(page, name):
    page.wait_for_function(
        "name => document.getElementById(name)?.dataset.settled === 'yes'", arg=name, timeout=120_000
    )


def expected(figure, setting):
    """What Python finds for a figure at a setting."""
    asked = [
        Asked(one["statistic"], one["measure"], tuple(one["arms"]), tuple(one["worlds"]), one.get("found"))
        for one in (row["value"] for row in figure["rows"])
    ]
    return estimates.evaluate(asked, setting, figure["seeds"], figure["resamples"])


@pytest.mark.parametrize("name", nightly(LIVE, "voi"))
def test_the_main_figure_answers_both_sliders(browse, html, name):
    page = browse(html.as_uri(), f"/executed/{name}.html")
    page.locator(".live-bar input[type=range]").first.wait_for()
    assert page.locator("body > .live-bar input[type=range]").count() == 2
    root = page.locator(".live-figure:has(.lp)").first
    root.scroll_into_view_if_needed()
    numbers, ident = root.locator(".lp-numbers"), root.get_attribute("id")
    before = numbers.text_content()
    budget = page.locator("body > .live-bar input[data-knob=budget]")
    budget.focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    playwright.expect(root.locator(".live-note")).to_contain_text("Run in this page")
    settled(page, ident)
    assert numbers.text_content() != before
    assert "budget=3" in page.evaluate("new Promise(go => setTimeout(() => go(location.search), 400))")
    page.get_by_role("button", name="Back to this page").click()
    playwright.expect(numbers).to_have_text(before)


@pytest.mark.parametrize("name", find_sections())
def test_sentences_and_chips_follow_figures_that_are_on_their_page(html, name):
    text = markup.unescape((html / f"executed/{name}.html").read_text(encoding="utf-8"))
    shown = set(re.findall(r'class="live-figure" data-engine id="([^"]+)"', text))
    followed = set(re.findall(r'data-number="\["([^"]+)",', text))
    followed |= set(re.findall(r'\["([a-z][\w-]*)",\d+,"(?:value|low|high|x)', text))
    followed |= set(re.findall(r'"figures":\["([^"]+)"', text))
    assert followed <= shown
    assert followed or name not in LIVE or name == "how-a-section-is-made"


def test_chips_follow_both_sliders(browse, html):
    page = browse(html.as_uri(), "/executed/terms.html")
    chips = page.locator(".answer-chips .live-number")
    before = chips.all_text_contents()
    page.locator("body > .live-bar input[data-knob=threshold]").fill("2.5")
    playwright.expect(chips.first).not_to_have_text(before[0], timeout=60_000)
    assert len(before) == 3
    settled(page, "terms-worth")
    moved = chips.all_text_contents()
    page = browse(html.as_uri(), "/executed/terms.html?threshold=2.5")  # as a link brings it
    playwright.expect(page.locator(".answer-chips .live-number")).to_have_text(moved, timeout=60_000)


@pytest.mark.parametrize(
    "name", nightly(["main-results", "terms", "pareto", "over-time", "theory"], "pareto")
)
def test_a_moved_figure_shows_what_python_finds(browse, html, name):
    page = browse(html.as_uri(), f"/executed/{name}.html?budget=4&threshold=2.25&profile=careful")
    page.locator(".live-figure .lp").first.wait_for()
    texts = re.findall(
        r'<div class="live-figure"[^>]*>.*?<script type="application/json">(.*?)</script>',
        (html / f"executed/{name}.html").read_text("utf-8"),
        re.DOTALL,
    )
    figure = next(one for one in map(json.loads, texts) if one["kind"] != "numbers")
    page.locator(f"#{figure['name']}").scroll_into_view_if_needed()
    page.wait_for_function(
        "name => EnvProbe.live.figures[name].setting.budget === 4", arg=figure["name"], timeout=120_000
    )
    settled(page, figure["name"])
    found = page.evaluate(FOUND, figure["name"])
    setting = figure["setting"] | {"budget": 4, "threshold": 2.25, "profile": "careful"}
    for (value, *ends), ours in zip(found, expected(figure, setting), strict=True):
        theirs = value if isinstance(value, list) else [value, *ends]
        mine = (
            ours["value"].tolist() if isinstance(value, list) else [ours[p] for p in ("value", "low", "high")]
        )
        for one, other in zip(theirs, mine, strict=True):
            assert (one != one and other != other) or abs(one - other) < 1e-9


def test_the_values_go_along_to_the_next_page_and_back_to_the_pages_own(browse, html):
    page = browse(html.as_uri(), "/executed/main-results.html")
    page.locator(".live-bar input[data-knob=threshold]").first.fill("2.5")
    page.locator("a.right-next, .next-prev a").last.click()
    page.wait_for_url(re.compile("threshold=2.5"))
    assert page.locator("body > .live-bar output").nth(1).text_content() == "2.50"
    page.locator("body > .live-bar").get_by_role("button", name="Back").click()
    page.wait_for_function("!location.search.includes('threshold')")


def test_what_an_address_cannot_mean_is_left_out(browse, html):
    page = browse(
        html.as_uri(), "/executed/main-results.html?budget=-3&threshold=<b>&regime=S9&profile=nobody"
    )
    page.locator("body > .live-bar output").first.wait_for()
    assert page.locator("body > .live-bar output").all_text_contents() == ["7", "1.50"]


PLACES = [f"executed/{name}" for name in LIVE if name != "how-a-section-is-made"]
TOLD = "all => all.map((span) => [JSON.parse(span.dataset.told), span.textContent])"


@pytest.mark.parametrize(
    ("budget", "threshold"), nightly([(15, 2.5), (9, 2.25), (3, 0.75), (0, 1.5)], (15, 2.5))
)
@pytest.mark.parametrize("name", nightly(["index", *PLACES], "index"))
def test_sentences_say_what_is_so_wherever_a_reader_stands(browse, html, name, budget, threshold):
    """What a page says after a move is what Python says of the numbers that Python finds there."""
    page = browse(html.as_uri(), f"/{name}.html?budget={budget}&threshold={threshold}")
    page.locator(".live-told").first.wait_for(state="attached")
    figures = page.evaluate("Object.values(EnvProbe.live.figures).map(({figure}) => [figure.name, figure])")
    figures = dict(figures)
    for span in page.locator(".live-told").all():
        if span.is_visible():
            span.scroll_into_view_if_needed()
            playwright.expect(span).not_to_have_class(re.compile("live-(old|rough)"), timeout=60_000)
    found = {}
    for slot, text in page.locator(".live-told:visible").evaluate_all(TOLD):
        if slot["kind"] in ("knob", "handle"):
            continue
        for figure in slot["figures"]:
            own = figures[figure]
            found.setdefault(
                figure, expected(own, own["setting"] | {"budget": budget, "threshold": threshold})
            )
        assert text == said(slot, list(readings(slot, figures, found)))


@pytest.mark.parametrize("name", nightly(LIVE, "how-a-section-is-made"))
def test_what_stands_still_says_what_it_belongs_to_once_a_slider_has_moved(browse, html, name):
    """Its own words for it, or the budget and threshold of the page."""
    page = browse(html.as_uri(), f"/executed/{name}.html?budget=15&threshold=2.5")
    page.locator(".live-is-moved").first.wait_for(state="attached")
    for sentence in page.locator(".live-fixed").all():
        playwright.expect(sentence).to_have_attribute("data-belongs", re.compile("."))
        about, said = sentence.evaluate(
            "one => [one.dataset.about, getComputedStyle(one, '::after').content]"
        )
        assert about in said if about else re.search(r"\b7\b.*\b1\.50\b", said)


def test_what_is_not_final_wears_its_mark(browse, html):
    """A move fades what is old in the frame that it is painted in; few seeds are told by `~`."""
    page = browse(html.as_uri(), "/executed/main-results.html")
    page.locator("#gains .lp").wait_for()
    marks = page.evaluate(
        "() => new Promise((go) => { EnvProbe.bar.move({ budget: 15 });"
        " const told = [...document.querySelectorAll('.live-told')];"
        " const seen = () => go(told.map((one) => one.className).join());"
        " requestAnimationFrame(() => setTimeout(seen)); })"
    )
    assert "live-old" in marks
    first = page.locator(".live-told:not(.live-handle)").first
    playwright.expect(first).not_to_have_class(re.compile("live-(old|rough)"), timeout=60_000)
    assert (
        page.locator(".live-heard").text_content() == page.locator("p:has(.live-told)").first.text_content()
    )


@pytest.mark.parametrize("width", nightly([390, 1400], 390))
@pytest.mark.parametrize("name", nightly(PLACES, "executed/main-results"))
def test_a_dragged_slider_moves_by_a_step(browse, html, name, width):
    """The bar keeps its place under the pointer, also where what it says appears meanwhile."""
    page = browse(html.as_uri(), f"/{name}.html")
    page.set_viewport_size({"width": width, "height": 900})
    slider = page.locator("body > .live-bar input[data-knob=budget]")
    box = slider.bounding_box()
    share = float(slider.input_value()) / float(slider.get_attribute("max"))
    x, y = box["x"] + 8 + (box["width"] - 16) * share, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    values = [float(slider.input_value())]
    for step in range(1, 12):
        page.mouse.move(x + 2 * step, y)
        values.append(float(slider.input_value()))
    page.mouse.up()
    assert max(abs(one - other) for one, other in itertools.pairwise(values)) <= 1
    assert slider.bounding_box()["x"] == box["x"]


def test_every_step_of_a_curve_is_read(browse, html):
    page = browse(html.as_uri(), "/executed/voi.html")
    page.locator("#voi-when .lp").wait_for()
    picture = page.locator("#voi-when .lp-picture").first
    picture.focus()
    said = page.locator("#voi-when .lp-tip")
    page.keyboard.press("ArrowRight")
    assert said.text_content().startswith("step t 0: Periodic")
    page.keyboard.press("ArrowRight")
    assert said.text_content().startswith("step t 1: Periodic")
    page.keyboard.press("ArrowDown")
    assert said.text_content().startswith("step t 1: EnvProbe-Simple")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert said.text_content().startswith("step t 1: VoI")
    values = "EnvProbe.live.figures['voi-when'].found[1].value.value.map((one) => one.toFixed(2)).join(' ')"
    assert page.evaluate(values) in page.locator("#voi-when .lp-numbers li").nth(1).text_content()


def test_a_drag_shows_figures_on_its_way_and_ends_where_it_ends(browse, html):
    page = browse(html.as_uri(), "/executed/main-results.html")
    page.locator("#gains .lp").wait_for()
    page.locator("#gains").scroll_into_view_if_needed()
    drawn = page.evaluate(
        """async () => {
          const root = document.getElementById("gains"), picture = root.querySelector(".lp-picture");
          const slider = document.querySelector("body > .live-bar input[data-knob=threshold]");
          let drawn = 0, least = Infinity;
          const watching = new MutationObserver(() => {
            drawn += 1;
            least = Math.min(least, picture.querySelectorAll(".lp-mark").length);
          });
          const numbers = root.querySelector(".lp-numbers");
          watching.observe(numbers, {childList: true, subtree: true, characterData: true});
          const wait = (time) => new Promise((go) => setTimeout(go, time));
          for (let value = 0; value <= 4.001; value += 0.05) {
            slider.value = value;
            slider.dispatchEvent(new Event("input"));
            await wait(25);
          }
          const onItsWay = drawn;
          while (root.dataset.settled !== "yes") await wait(10);
          const {threshold} = EnvProbe.live.figures.gains.setting;
          return {onItsWay, least, threshold, note: root.querySelector(".live-note").textContent};
        }"""
    )
    assert drawn["onItsWay"] > 2
    assert drawn["least"] > 0
    assert drawn["threshold"] == 4
    assert "While you move" not in drawn["note"]
    found = page.evaluate(FOUND, "gains")
    page.locator("body > .live-bar input[data-knob=threshold]").fill("3.5")
    page.locator("body > .live-bar input[data-knob=threshold]").fill("4")
    settled(page, "gains")
    assert page.evaluate(FOUND, "gains") == found


@pytest.mark.parametrize("width", [1400, 390])
def test_the_front_page_opens_on_the_plane(browse, html, width):
    page = browse(html.as_uri(), "/index.html", viewport={"width": width, "height": 900})
    plane = page.locator(".live-plane")
    plane.locator(".lp-here").wait_for()
    number = plane.locator("dl:visible .live-number").first
    before = number.text_content()
    page.get_by_label("Budget", exact=True).first.fill("2")
    playwright.expect(number).not_to_have_text(before, timeout=60_000)
    plane.get_by_label("as released").check()
    assert plane.locator("dl:visible").count() == 1
    plane.locator(".live-steps").first.wait_for(timeout=60_000)
    plane.locator(".lp-picture").scroll_into_view_if_needed()
    picture = plane.locator(".lp-picture").bounding_box()
    page.mouse.click(picture["x"] + picture["width"] * 0.9, picture["y"] + picture["height"] * 0.2)
    playwright.expect(plane.locator(".live-handle").first).to_have_text(re.compile("1[0-5]"))
    assert page.evaluate("document.documentElement.scrollWidth") <= width


FIRST_SCREEN = """() => {
  const seen = (node) => node.getClientRects().length > 0 && !node.closest("details:not([open])");
  const figures = ".lp-picture, .decision-picture, svg.envprobe-figure, .player-scene, .review table, "
    + ".own-policy form";
  const figure = [...document.querySelectorAll(`.bd-article :is(${figures})`)].find(seen);
  if (!figure) return null;
  const told = ".answer-chips, .live-told, .live-fixed, h1 ~ p, h1 ~ .cell p";
  const answer = [...document.querySelectorAll(`.bd-article :is(${told})`)].find(seen);
  const whole = figure.closest(".lp-panels") ?? figure, bar = document.querySelector("body > .live-bar");
  const page = { top: scrollY, bottom: bar?.getBoundingClientRect().top ?? innerHeight };
  const { bottom } = whole.getBoundingClientRect(), { top } = figure.getBoundingClientRect();
  return { answer: answer.getBoundingClientRect().bottom, top, bottom, page };
}"""
"""Where on a page's first screen its answer ends, and its first figure begins and ends."""


PLANE = "document.querySelector('.explorer-plane[data-settled=no]')"
"""The explorer's plane, as long as its cells run."""


FIRST = ("main-results", "one-episode")
"""A live figure and a player; all others are asked at night."""


@pytest.mark.parametrize("name", nightly(find_sections(), *FIRST))
def test_answer_and_figure_stand_on_the_first_screen(browse, html, name):
    """On a desk the whole figure, above the bar; on a phone its top."""
    for width, height in ((1400, 900), (390, 844)):
        page = browse(html.as_uri(), f"/executed/{name}.html", viewport={"width": width, "height": height})
        page.wait_for_function(WAITS)
        page.wait_for_function(f"({FIRST_SCREEN})()?.bottom > 0 && !{PLANE}")
        found = page.evaluate(FIRST_SCREEN)
        screen = found["page"]["bottom"]
        assert found["page"]["top"] == 0
        assert found["answer"] < screen
        assert found["bottom" if width > height else "top"] < screen, (width, found)
