"""The front page: settings dragged in its first sentence, the plane with its legend, the abstract alive."""

import re
from xml.etree import ElementTree

import pytest
from playwright import sync_api as playwright

from daily import nightly
from envprobe_book.live_figures import gain, handle, live
from envprobe_book.live_figures.front import Abstract, Claim

SETTLED = """![...document.querySelectorAll(':is(.live-plane, .live-abstract) :is(.live-old, .live-rough)')]
  .some((one) => one.checkVisibility())"""
PLACED = ".live-plane-lead, .live-handle, .live-plane-frame, form.guess, .live-episode, .live-abstract"
TOPS = f"""[...document.querySelectorAll('{PLACED}')]
  .map((node) => Math.round(node.getBoundingClientRect().top + scrollY)).join()"""
LEFTS = (
    "[...document.querySelectorAll('.live-handle')].map((node) => node.getBoundingClientRect().left).join()"
)
ADDED = """() => {
  const figure = (name) => EnvProbe.live.figures[`claim-without-u-${name}`];
  const found = (name) => figure(name).found.map(({value}) => value.value);
  const [, ...whole] = found("figure"), parts = found("parts");
  return whole.map((one, at) => [one, parts.slice(3 * at, 3 * at + 3)]);
}"""
OLD = "document.querySelectorAll('.live-plane-lead :is(.live-old, .live-rough)').length"


def test_a_handle_says_the_setting_and_its_bounds():
    figure = live(
        "numbers", "n", [{"value": gain("simple", "periodic")}], title="n", seeds="0:20", resamples=100
    )
    slot = handle(figure, "budget", 15, 1, "look")
    assert (slot.text, slot.data["kind"], slot.data["most"]) == ("7 looks", "handle", 15)


def test_an_abstract_reads_as_a_paragraph_and_has_a_panel_a_claim():
    rows = [{"name": "a", "value": gain("simple", "periodic")}]
    figure = live("forest", "f", rows, title="", seeds="0:20", resamples=100)
    one = Claim("+1.0", figure, figure, [], [figure.at(name="a")], {"On": "a.html"})
    page = Abstract("It prints {all}.", {"all": one}, "Press.", first="all")._repr_mimebundle_()
    assert page["text/plain"] == "It prints +1.0."
    assert (
        page["text/html"].count('id="claim-all"') == page["text/html"].count('aria-controls="claim-all"') == 1
    )


@pytest.mark.browser
@pytest.mark.parametrize("width", nightly([1400, 390], 390))
def test_a_setting_is_dragged_in_the_headline_and_nothing_moves(browse, html, width):
    page = browse(html.as_uri(), "/index.html", viewport={"width": width, "height": 900})
    budget, threshold = (page.locator(".live-handle").nth(at) for at in (0, 1))
    page.locator(".live-plane .lp-here").wait_for()
    page.wait_for_function(SETTLED, timeout=60_000)
    tops, lefts, box = page.evaluate(TOPS), page.evaluate(LEFTS), budget.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 60):
        page.mouse.move(x + 2 * step, y)
        assert (page.evaluate(TOPS), page.evaluate(LEFTS)) == (tops, lefts)
    page.mouse.up()
    playwright.expect(budget).to_have_text("15 times")
    assert "budget=15" in page.evaluate("new Promise(go => setTimeout(() => go(location.search), 400))")
    threshold.focus()
    for key, value in (("ArrowRight", "1.75"), ("PageUp", "2.75"), ("End", "4.00"), ("Home", "0.00")):
        page.keyboard.press(key)
        playwright.expect(threshold).to_have_text(value)
        assert threshold.get_attribute("aria-valuetext") == value
        page.wait_for_function(f"{OLD} === 0", timeout=2_000)  # it is known at every cell
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.browser
def test_a_guess_is_answered_by_the_plane_and_kept(browse, html):
    page = browse(html.as_uri(), "/index.html", viewport={"width": 1400, "height": 900})
    page.locator(".live-plane .lp-here").wait_for()
    assert page.get_by_label("looks saved for the end").count() == 0
    page.get_by_label("Look where a score is highest").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):  # looks at each choice, and guesses none
        page.keyboard.press(key)
    assert page.locator("form.guess input:checked").count() == 0
    page.keyboard.press("Space")
    said = page.locator("form.guess").get_by_role("status")
    playwright.expect(said).to_contain_text("You said: look where")
    playwright.expect(said).to_be_focused()
    playwright.expect(page.locator(".live-plane-behind")).to_have_text("end better")
    assert page.get_by_label("looks saved for the end").is_checked()
    page.reload()
    playwright.expect(page.locator("form.guess").get_by_role("status")).to_contain_text("You said")


@pytest.mark.browser
def test_a_number_of_the_abstract_opens_what_came_of_it(browse, html):
    page = browse(html.as_uri(), "/index.html?budget=15&threshold=2.5")
    chips = page.locator(".live-chip")
    for at in range(chips.count()):
        if chips.nth(at).get_attribute("aria-expanded") == "false":
            chips.nth(at).press("Enter")
        claim = page.locator(".live-claim:visible")
        assert claim.count() == 1
        assert claim.get_attribute("id") == chips.nth(at).get_attribute("aria-controls")
        playwright.expect(claim.locator(".live-claim-episode")).to_have_attribute(
            "href", re.compile("budget=15")
        )
    page.wait_for_function(SETTLED, timeout=60_000)
    playwright.expect(page.locator("#claim-u")).to_contain_text("with 15 looks and a gate at 2.50")
    for whole, parts in page.evaluate(ADDED):
        assert sum(parts) == pytest.approx(whole, abs=1e-9)


@pytest.mark.browser
def test_a_sections_lead_has_the_setting_under_the_hand(browse, html):
    page = browse(html.as_uri(), "/executed/main-results.html")
    handle = page.get_by_role("slider", name="Looks that an episode may spend")
    handle.press("ArrowRight")
    playwright.expect(handle).to_have_text("8 probes")
    slider = page.locator(".live-bar [data-knob=budget]")
    playwright.expect(slider).to_have_value("8")
    page.get_by_role("button", name="Back to this page").press("Enter")
    playwright.expect(slider).to_have_value("7")
    playwright.expect(slider).to_be_focused()


@pytest.mark.browser
def test_a_figure_is_taken_as_printed_and_as_shown_from_a_folder_too(browse, html):
    page = browse(html.as_uri(), "/executed/main-results.html?budget=12")
    page.wait_for_function("document.querySelector('#gains').dataset.settled === 'yes'", timeout=60_000)
    offered = page.locator("figure:has(#gains) ~ .take-along").first
    with page.expect_download() as taken:
        offered.get_by_role("link", name="fig-gains.svg").click()
    assert taken.value.suggested_filename == "fig-gains.svg"
    printed = html / "_downloads" / "figures" / "fig-gains.svg"
    assert taken.value.path().read_bytes() == printed.read_bytes()
    with page.expect_download() as taken:
        offered.get_by_role("button", name="as shown").click()
    assert taken.value.suggested_filename == "fig-gains-shown.svg"
    root = ElementTree.parse(taken.value.path()).getroot()
    texts = {"".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"tools", "all worlds", *page.locator("#gains .lp-value").all_text_contents()} <= texts
    assert "var(" not in ElementTree.tostring(root, encoding="unicode")
