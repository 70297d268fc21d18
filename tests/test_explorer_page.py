"""The explorer in the book's page: no kernel, no network, and the engine's own numbers."""

import gzip
import re
from decimal import ROUND_HALF_UP, Decimal
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import expect

from built_book import SMALL
from envprobe_book.pages.figures import POLICY_STYLES
from envprobe_book.widgets.explorer import COMPARED, OWN_STYLES, Explorer
from envprobe_book.widgets.grid import POOL, pooled, take_readings
from envprobe_book.widgets.host import MODULES, module_text
from envprobe_core.conditions import make_condition, parse_seeds
from envprobe_core.policies import POLICIES, custom_policy
from envprobe_core.protocols import PROTOCOLS

SEEDS, RESAMPLES = parse_seeds(SMALL["seeds"]), int(SMALL["resamples"])
PAGE = "executed/explorer.html"
WIDGET = "#explorer[data-ready=yes]"
FOLLOWED = """([given, late]) => new Promise((followed) => {
  const before = location.href;
  window.addEventListener("hashchange", () => setTimeout(followed), { once: true });
  location.hash = given;
  if (late) history.replaceState(history.state, "", before);
})"""
"""Sets the address, and may write the old one over it before the page is told; ends when it has followed."""
HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


@pytest.fixture
def opened(browse, html, server):
    """Open the page."""

    def open_page(fragment="", scheme="file", **options):
        page = browse(server if scheme == "http" else html.as_uri(), f"/{PAGE}{fragment}", **options)
        page.wait_for_selector(WIDGET)
        return page

    return open_page


def slider(page, name):
    return page.get_by_role("slider", name=name)


def shown(page):
    """What the page tells at this moment: the marks' places, and the table's text by row and column."""
    marks = page.locator(".ew-figure").first.locator("g.ew-ink > g")
    rows = page.locator(".ew-readout tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.children].map((cell) => cell.textContent.trim()))"
    )
    return marks.evaluate_all("nodes => nodes.map((node) => node.getAttribute('transform'))"), rows


def expected_rows(world, protocol, policies, budget, threshold):
    """The table's rows as the engine computes them."""
    settings = []
    for name in policies:
        own = threshold if POLICIES[name].has_threshold else None
        place = "tooldag" if world == POOL else world
        cell = make_condition(place, name, "S2", PROTOCOLS[protocol], "typical", budget, own)
        settings.append(pooled(cell) if world == POOL else (cell,))
    readings = take_readings(settings, SEEDS, resamples=RESAMPLES)
    return [as_row(POLICIES[name].title, r) for name, r in zip(policies, readings, strict=True)]


def as_row(title, reading):
    """One row of the read-out from a reading."""

    def told(values):
        mean, low, high = map(rounded, values)
        return f"{mean} [{low}, {high}]"

    fired, again, rate = reading["useful"][1], "– no probe", "– no probe"
    if fired:
        again = f"{rounded(reading['repeated'] / fired)} {reading['repeated']} of {fired}"
        rate = told(reading["useful_rate"])
    each = f"{fired / reading['n']:.2f}"
    return [title, told(reading["accuracy"]), told(reading["success"]), rate, again, each]


def rounded(value):
    """Three decimals; a half goes up, as in JavaScript, where Python goes to the even digit."""
    return str(Decimal(value).quantize(Decimal("0.001"), ROUND_HALF_UP))


IN_VIEW = """() => {
  const { top } = document.querySelector("#explorer").getBoundingClientRect();
  return top > -40 && top < innerHeight / 2;
}"""


@pytest.mark.browser
@pytest.mark.parametrize(
    ("world", "protocol", "policies", "budget", "threshold"),
    [
        ("graphnav", "released", ("periodic", "minus-d", "yoked", "oracle-tw"), 15, 0.25),
        ("objectstate", "observed", ("self-uncertainty", "judge", "cd"), 0, 4.0),
        (POOL, "observed", ("no-probe", "random", "simple", "oracle"), 11, 2.75),
    ],
)
def test_a_link_restores_a_setting_and_shows_the_engines_numbers(
    opened, world, protocol, policies, budget, threshold
):
    asked = f"policies={','.join(policies)}&budget={budget}&threshold={threshold}"
    page = opened(f"#world={world}&protocol={protocol}&{asked}")
    ordered = [name for name in POLICIES if name in policies]
    assert shown(page)[1] == expected_rows(world, protocol, ordered, budget, threshold)
    for value in (world, protocol):
        assert page.locator(f'input[value="{value}"]').is_checked()
    assert slider(page, "Probe budget B").get_attribute("aria-valuetext") == f"{budget} of 30 steps"
    assert float(slider(page, "Base threshold ρ⋆").get_attribute("aria-valuetext")) == threshold
    begins = {line.get_attribute("d").partition(" ")[0] for line in page.locator(".ew-line").all()}
    assert (begins == {"M36"}) == (protocol != "released")  # its A_t begins after the first action
    page.wait_for_function(IN_VIEW)
    page.locator("tbody tr").first.hover()  # a policy under the pointer stands out everywhere
    bright = {one.get_attribute("data-policy") for one in page.locator("[data-policy]:not(.ew-dim)").all()}
    assert bright == {ordered[0]}
    assert page.locator(".ew details").get_attribute("open") is not None  # what is folded at first is chosen


IMPORTED = """async (source) => {
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const { scales, OUTLINES } = await import(url);
  const readings = new Map([["one", { success: [1, 1, 1], accuracy: [1, null, null] }]]);
  const { x, y } = scales({ readings, others: new Map(), printed: [] });
  return [Object.keys(OUTLINES), [x(1), y(1)].map(Number.isFinite)];
}"""


@pytest.mark.browser
def test_every_policy_has_its_mark_and_values_that_are_all_one_have_axes(chromium):
    page = chromium.new_page()
    source = module_text("explorer") + "\nexport { OUTLINES, scales };\n"
    outlines, finite = page.evaluate(IMPORTED, source)
    page.close()
    assert {style.marker for style in (*POLICY_STYLES.values(), *OWN_STYLES)} <= set(outlines)
    assert finite == [True, True]


def test_what_a_reader_supplies_stays_text():
    """In the page's source it cannot end the script that holds it; a front end never makes markup."""
    own = custom_policy("mine", lambda view: view.d, title=HOSTILE)
    widget = Explorer(policies=[own], identity='a"><script>')
    assert widget.state["vocabulary"]["policies"][-1]["title"] == HOSTILE
    assert "needs JavaScript" in widget.static_html()
    widget.page_state = widget.state
    assert "<script>window" not in widget.static_html()
    assert widget.static_html().count("<script") == 1
    makes_markup = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b"
    assert not any(re.search(makes_markup, module_text(name)) for name in MODULES)


@pytest.mark.browser
def test_malformed_links_change_nothing_and_those_of_the_page_set_the_figure(opened):
    page = opened()
    before = shown(page)
    wrong = "#world=nowhere&budget=99&threshold=NaN&policies="
    for fragment in ("#what-to-try", wrong, "#%E0%A4%A", "#budget=1e1"):
        page.evaluate(FOLLOWED, [fragment, False])
        assert shown(page) == before, fragment
    links = page.locator('.bd-article a[href^="#world="]')
    assert links.count() >= 6
    for place, late in ((0, False), (-1, False), (0, True)):
        link = links.nth(place)
        href = link.get_attribute("href")
        page.evaluate(FOLLOWED, [href, True]) if late else link.click()
        asked = dict(pair.split("=") for pair in href[1:].split("&"))
        told = f"{asked['budget']} of 30 steps"
        expect(slider(page, "Probe budget B")).to_have_attribute("aria-valuetext", told)
        assert len(shown(page)[1]) == len(asked["policies"].split(","))


@pytest.mark.browser
def test_everything_works_from_the_keyboard(opened):
    page = opened()
    page.locator(".ew input").first.focus()
    for key in ("ArrowRight", "Tab", "ArrowRight", "Tab", "End", "Tab", "Home", "Tab", "Space"):
        page.keyboard.press(key)  # world, protocol, budget, threshold, first policy
    for name in ("ObjectStateWorld", "partial start"):
        assert page.get_by_role("radio", name=name).is_checked()
    assert slider(page, "Probe budget B").get_attribute("aria-valuetext") == "15 of 30 steps"
    assert slider(page, "Base threshold ρ⋆").get_attribute("aria-valuetext") == "0.00"
    chosen = [name for name in COMPARED if name != "no-probe"]
    assert shown(page)[1] == expected_rows("objectstate", "observed", chosen, 15, 0.0)
    page.wait_for_function("location.hash.includes('budget=15')")
    assert page.locator(".ew-sentence").get_attribute("aria-live") == "polite"
    page.wait_for_function("document.querySelector('.ew-sentence').textContent.includes('budget 15')")


@pytest.mark.browser
def test_the_page_is_light_redraws_while_a_slider_is_dragged_and_its_link_can_be_copied(opened, html):
    """Under 2 MB over the wire with everything it loads, the grid under 700 KB of it."""
    page, urls = opened(scheme="http", permissions=["clipboard-read", "clipboard-write"]), set()
    page.on("requestfinished", lambda asked: urls.add(asked.url))
    page.reload(wait_until="networkidle")
    loaded = {unquote(urlsplit(url).path) for url in urls if not url.startswith("blob:")}  # made in the page
    total = sum(len(gzip.compress((html / path[1:]).read_bytes(), mtime=0)) for path in loaded)
    assert len(loaded) > 5
    state = re.search(r'octet-stream">(.*?)</script>', (html / PAGE).read_text(encoding="utf-8"))[1]
    assert len(gzip.compress(state.encode())) < 700_000
    assert total < 2_000_000
    for name, end in (("Base threshold ρ⋆", 0.7), ("Probe budget B", 0)):
        slider(page, name).scroll_into_view_if_needed()
        before, box = shown(page), slider(page, name).bounding_box()
        slider(page, name).hover(position={"x": box["width"] - 8, "y": box["height"] / 2})
        page.mouse.down()
        page.mouse.move(box["x"] + end * box["width"], box["y"], steps=8)
        assert shown(page) != before, name
        page.mouse.up()
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("Copied.").wait_for()
    assert "budget=0" in page.evaluate("navigator.clipboard.readText()").partition("#")[2]
