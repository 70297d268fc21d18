"""The reader's path: where things are, what can be taken along, and that everyone can use every page."""

import csv
import functools
import html as markup
import io
import json
import re
import shlex
import xml.etree.ElementTree as ElementTree
from collections import Counter
from itertools import pairwise
from urllib.parse import unquote

import nbformat
import pytest
from bs4 import BeautifulSoup
from playwright import sync_api as playwright

from built_book import SMALL, page_names
from daily import nightly
from envprobe_book.analyses.departures import GROUPS
from envprobe_book.claims import load_claims, paper_values, read_rows
from envprobe_book.claims.paper_items import KINDS, PLACES, load_items
from envprobe_book.classroom.readable import READABLE
from envprobe_book.pages.figures import FIGURE_CLASS, Drawing, canvas
from envprobe_book.pages.markup import Text
from envprobe_book.pages.table import Table
from envprobe_book.reproduce import build as book
from envprobe_book.reproduce.execution import clean
from envprobe_book.reproduce.parameters import parse_assignments, resolve
from envprobe_book.reproduce.sections import METADATA_KEY, ROOT, find_sections
from envprobe_core.policies.custom import View
from envprobe_core.protocols import DEPARTURES
from watching import AT_REST, serious_in_both_themes, set_formulas, watch

SECTIONS = find_sections()
FRAME = sorted(path.stem for path in (ROOT / "book").glob("*.md"))
PAGES = [*(f"{name}.html" for name in FRAME), *(f"executed/{name}.html" for name in SECTIONS)]
MADE_BY_SPHINX = ("genindex.html", "search.html", "prf-prf.html")
HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
LINKS = (
    r"$\href{javascript:window.hacked=1}{one}$ and [two](javascript:window.hacked=1), "
    r"[three](JavaScript:window.hacked=1), [four](data:text/html,x), <vbscript:five>"
)


def read(html, name):
    return (html / name).read_text(encoding="utf-8")


# --- the items of the paper -------------------------------------------------------------------


LAST = {
    r"Equation \(": 29, "Table ": 7, "Figure ": 7, r"Definition 3\.": 2, "Algorithm ": 1, "Section ": 8,
    r"Appendix A\.": 6, r"(?:Assumption|Definition|Lemma|Proposition|Theorem) 5\.": 8,
}  # fmt: skip
"""What the paper numbers, and how far."""


def test_whatever_the_paper_numbers_and_the_data_name_is_an_item():
    tensions, departures = read_rows("tensions.csv"), read_rows("departures.csv")
    assert len({row["id"] for row in tensions}) == len(tensions)
    assert all(all(row.values()) for row in tensions)
    named = {*(value.source for value in paper_values()), *(claim.source for claim in load_claims()), *PLACES}
    named |= {place for row in (*tensions, *departures) for place in row["places"].split()}
    items = {item.label: item for item in load_items()}
    assert {place.removesuffix(" caption") for place in named} <= set(items)
    assert {item.kind for item in items.values()} == set(KINDS)
    assert sorted(filter(None, (row["switch"] for row in departures))) == sorted(DEPARTURES)
    for start, count in LAST.items():
        found = (re.fullmatch(rf"{start}(\d+)\)?", item.name) for item in items.values())
        assert sorted(int(match[1]) for match in found if match) == list(range(1, count + 1)), start


def test_sections_list_all_that_there_is():
    """The way between two protocols turns every switch that keeps pairs; a view's names are explained."""
    turned = [switch for group in GROUPS.values() for switch in group]
    assert sorted([*turned, "seeds"]) == sorted(DEPARTURES)
    assert tuple(READABLE) == View._fields


def test_every_item_leads_to_a_place_that_exists(html):
    rows = re.findall(r"<tr class=\"row-(?:even|odd)\">(.*?)</tr>", read(html, "items.html"), re.DOTALL)
    found = {}
    for row in rows:
        if first := re.search(r"<td[^>]*><p>(.*?)</p>", row):
            found[markup.unescape(first[1])] = re.findall(r'href="([^"]+)"', row)
    for item in load_items():
        assert len(found[item.name]) == len(item.targets), item
        for link in found[item.name]:
            page, _, anchor = link.partition("#")
            assert not anchor or f'id="{unquote(anchor)}"' in read(html, page or "items.html"), (item, link)


# --- to take along ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_can_be_taken_along(html, name):
    """Its tables, its figures, the notebook, and the command that makes the page."""
    text = read(html, f"executed/{name}.html")
    places = re.findall(r'<[a-z][^<>]* id="([^"]+)"', text)
    assert len(set(places)) == len(places) > 10
    links = re.findall(r'<a href="\.\./(_downloads/[^"]+)" download>', text)
    tables = [link for link in links if link.endswith(".csv")]
    figures = [link for link in links if link.endswith(".svg")]
    assert len(set(links)) == len(links)
    assert len(figures) == text.count(f'<svg class="{FIGURE_CLASS}"')
    shown = re.findall(r'<table class="[^"]*\btable\b.*?</table>', text, re.DOTALL)
    for link, table in zip(tables, shown, strict=True):
        rows = list(csv.reader(io.StringIO(read(html, link))))
        cells = [
            re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in table.split("</tr>")[:-1]
        ]
        assert [len(row) for row in rows] == [len(row) for row in cells], link
    for link in figures:
        written = (html / link).read_text(encoding="utf-8")
        assert ElementTree.fromstring(written).tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(" not in written
        assert "currentColor" not in written
    notebook = re.search(rf'<a href="\.\./([^"]+)" download="{name}\.ipynb">', text)
    assert "mybinder.org" not in text  # no address is set
    foot = text.split('id="run-again"')[1]
    command = shlex.split(markup.unescape(re.search(r"<code>(.*?)</code>", foot, re.DOTALL)[1]))
    assert command[:3] == ["envprobe", "reproduce", name]
    assert command[3::2] == ["-p"] * len(command[4::2])
    values = resolve(SECTIONS[name].model, parse_assignments(command[4::2]))
    made = nbformat.read(html / notebook[1], as_version=4).metadata[METADATA_KEY]
    assert made["parameters"] == values


# --- for everyone -----------------------------------------------------------------------------

UNREACHABLE = """() => [...document.querySelectorAll(".bd-article *")].filter((box) =>
  box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0
  && /auto|scroll/.test(getComputedStyle(box).overflowX) && box.tabIndex < 0
).map((box) => box.outerHTML.slice(0, 120))"""
WIDER = "document.documentElement.scrollWidth - window.innerWidth"
OPEN_ALL = "document.querySelectorAll('details').forEach((folded) => { folded.open = true; })"
WAITS = (
    """() => [...document.querySelectorAll(".static-widget")].every((host) => host.dataset.ready === "yes")"""
)


@pytest.fixture(scope="module")
def tab(chromium, html):
    """One tab, in which one page after the other is opened, and what has gone wrong in it."""
    context = chromium.new_context(color_scheme="light", reduced_motion="reduce")
    page = context.new_page()
    yield page, watch(page, html.as_uri())
    context.close()


FORMULA = r'<(?:span|div) class="math[^"]*"[^>]*>(.*?)</(?:span|div)>'
INSIDE = f"svg.{FIGURE_CLASS} > *"  # a drawing is one image, with a text of its own
UNSEEN = {"exclude": [[f"svg.{FIGURE_CLASS}"], ["mjx-container"]]}  # formulas are asked by UNREACHABLE
LEAVE_OUT = """(inside) => {
  document.querySelectorAll(inside).forEach((node) => node.remove());
  const seen = new Map(), made = new Map(), whole = "button, summary, select, a";
  const own = (node) =>
    [node.tagName, node.getAttribute("class"), node.getAttribute("style"), node.role].join();
  const structure = (node) => {
    if (!made.has(node)) made.set(node, `${own(node)}(${[...node.children].map(structure)})`);
    return made.get(node);
  };
  const look = (node) => {
    if (node.matches("label")) return; // what it names stands elsewhere
    const { parentElement: box } = node;
    const kind = [structure(node), own(box), own(box.parentElement)].join();
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
    if (seen.get(kind) <= 5) return node.matches(whole) || [...node.children].forEach(look);
    if (node.matches("td, th, dt, dd")) node.textContent = ""; // a row keeps its columns, a list its pairs
    else node.remove();
  };
  document.querySelectorAll(".bd-article").forEach((article) => [...article.children].forEach(look));
}"""
"""What is built as five others in places like theirs has their faults; axe-core takes its time for each."""


def test_sections_of_more_are_folded(html):
    for name, section in SECTIONS.items():
        text = (("".join(cell["source"])) for cell in section.cells if cell["cell_type"] == "markdown")
        asked = len(re.findall(r"^#+ More:", "\n".join(text), re.MULTILINE))
        page = read(html, f"executed/{name}.html")
        assert page.count('<details class="more-fold"><summary>') == asked, name


@pytest.mark.nightly
def test_a_cell_that_is_folded_as_a_whole_says_what_it_holds(html):
    for name, section in SECTIONS.items():
        page = seen(html, f"executed/{name}.html")
        titles = [title.get_text() for title in page.select("details.hide > summary .collapsed")]
        for cell in section.cells:
            if "hide-cell" in cell["metadata"].get("tags", ()):
                assert titles.count(cell["metadata"]["mystnb"]["code_prompt_show"]) == 1, (name, cell["id"])


@pytest.mark.browser
def test_what_is_folded_opens_by_its_title_a_link_a_search_and_in_print(browse, html):
    address = f"{html.as_uri()}/executed/main-results.html"
    page = browse(html.as_uri(), "/executed/main-results.html")
    opened = page.locator("details.more-fold[open]")
    assert opened.count() == 0
    assert page.locator(".take-away").is_visible()
    assert not page.locator("#tab-gains").is_visible()
    page.locator("details.more-fold:has(#tab-gains) > summary").click()
    assert page.locator("#tab-gains").is_visible()
    page.goto(f"{address}#tab-information")
    assert page.locator("#tab-information").is_visible()
    assert opened.count() == 2
    page = browse(html.as_uri(), "/executed/main-results.html#tab-information")
    opened = page.locator("details.more-fold[open]")
    opened.wait_for()
    assert opened.locator("#tab-information").count() == 1
    page.evaluate("localStorage.setItem('sphinx_highlight_terms', 'equal chance')")
    page.goto(f"{address}?")
    page.locator("details.more-fold[open] .highlighted").first.wait_for()
    closed = page.locator("details.more-fold:not([open])")
    before = closed.count()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert closed.count() == before > 0, "a print is the story"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.get_by_role("button", name="Read all").click()
    assert closed.count() == 0, "or all, where that is read"
    page.get_by_role("button", name="Read the story").click()
    assert opened.count() == 0


HIDDEN = re.compile(r"<script\b.*?</script>|<style\b.*?</style>|(?<=>)[^<]*(?=</script>)", re.DOTALL)
DRAWN = re.compile(r"(<svg\b[^>]*>).*?</svg>", re.DOTALL)


@functools.cache
def seen(html, name):
    """A page without what its scripts carry and what its drawings are made of."""
    text = DRAWN.sub(r"\1</svg>", HIDDEN.sub("", read(html, name)))
    return BeautifulSoup(text, "html.parser")


def words_of(node):
    """What a link or button is called by who cannot see it."""
    own = [node.get_text(strip=True), node.get("aria-label"), node.get("title")]
    own += [image.get("alt") or image.get("aria-label") for image in node.find_all(["img", "svg"])]
    return any(own) or node.get("aria-hidden") == "true"


def faults_of(page):
    """What a page's HTML alone shows that is wrong for somebody, as axe-core would say it."""
    ids = [node["id"] for node in page.find_all(id=True)]
    yield from (f"id {one} twice" for one, count in Counter(ids).items() if count > 1)
    if page.html.get("lang") != "en" or not page.title.get_text(strip=True):
        yield "no language or title"
    levels = [int(node.name[1]) for node in page.find("article").find_all(re.compile("^h[1-6]$"))]
    if levels[:1] != [1] or levels.count(1) != 1:
        yield f"headings begin with {levels[:3]}"
    yield from (f"from h{one} to h{other}" for one, other in pairwise(levels) if other > one + 1)
    for node in page.find_all(["img", "iframe"]):
        if node.get("alt") is None and not node.get("title"):
            yield f"{node.name} without words"
    for node in page.find_all(role="img"):
        if not node.get("aria-label") and not node.get("aria-labelledby"):
            yield f"{node.name} {node.get('class')} is an image without words"
    labelled = {node["for"] for node in page.find_all("label") if node.get("for")}
    for node in page.find_all(["input", "select", "textarea"]):
        named = any(node.get(how) for how in ("aria-label", "aria-labelledby", "title"))
        inside = node.find_parent("label") or node.get("id") in labelled or node.get("type") == "hidden"
        if not named and not inside:
            yield f"{node.name} {node.get('class')} without a label"
    for node in page.find_all(["a", "button", "summary"]):
        if (node.name != "a" or node.get("href")) and not words_of(node):
            yield f"{node.name} {node.get('class')} {node.get('href', '')[:40]} without words"
    for node in page.find_all(attrs={"aria-describedby": True}):
        for name in set(node["aria-describedby"].split()) - set(ids):
            yield f"{node.name} is described by {name}, which is not there"


SHOWN = {"ul", "ol", "dl", "table", "figure", "pre", "div", "blockquote", "details", "svg", "form"}


def left_hanging(page):
    """Paragraphs that end in a colon, and neither list, table, figure, formula nor code to see after them."""
    for node in page.main.find_all("p"):
        if not node.get_text(strip=True).endswith(":") or node.find_parent(["figure", "form", "li"]):
            continue
        after, outer = node.find_next_sibling(), node
        while after is None and outer.parent.name in ("section", "div"):
            outer = outer.parent
            after = outer.find_next_sibling()
        if after is None or after.name not in SHOWN or "more-fold" in after.get("class", []):
            yield node.get_text()[-60:]


@pytest.mark.parametrize("name", PAGES)
def test_the_html_of_every_page_is_for_everyone_and_a_colon_is_followed_by_something_to_see(html, name):
    page = seen(html, name)
    assert list(faults_of(page)) == []
    assert list(left_hanging(page)) == []


def test_every_page_is_looked_at(html):
    assert set(page_names(html)) == {*PAGES, *MADE_BY_SPHINX}


def test_no_page_says_where_it_was_made(html, small_book):
    made_at = [str(ROOT), str(small_book)]
    assert [(name, at) for name in page_names(html) for at in made_at if at in read(html, name)] == []


LAID_OUT = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


OF_EACH_KIND = (
    "index.html", "items.html", "search.html", "executed/main-results.html", "executed/one-episode.html",
    "executed/scoreboard.html", "executed/explorer.html", "executed/your-policy.html",
)  # fmt: skip
"""The plane, a table of links, what Sphinx makes, live figures, a player, the review, the explorer, and a
policy of one's own."""


@pytest.mark.browser
@pytest.mark.parametrize("name", nightly(OF_EACH_KIND, "index.html", "executed/main-results.html"))
def test_everyone_can_use_the_page(tab, html, name):
    """As `use` says, of one page of each kind; the others are looked at every night."""
    use(tab, html, name)


@pytest.mark.nightly
@pytest.mark.browser
@pytest.mark.parametrize("name", sorted({*PAGES, *MADE_BY_SPHINX} - set(OF_EACH_KIND)))
def test_every_page_is_for_everyone(tab, html, name):
    use(tab, html, name)


def use(tab, html, name):
    """Opened from a folder: no request leaves it, nothing fails, formulas are set, whatever scrolls takes the
    focus, also on a phone, and axe-core finds no serious fault; in light and dark, text is legible."""
    tab, faults = tab
    faults.clear()
    tab.set_viewport_size({"width": 390, "height": 844})
    tab.goto(f"{html.as_uri()}/{name}", wait_until="load")
    tab.wait_for_function(WAITS)
    set_formulas(tab)
    for drawing in tab.locator(f"svg.{FIGURE_CLASS}").all():
        assert drawing.get_attribute("role") == "img"
        assert drawing.get_attribute("aria-label")
    tab.evaluate(OPEN_ALL)
    for width in (390, 1280):
        tab.set_viewport_size({"width": width, "height": 844})
        tab.evaluate(LAID_OUT)
        tab.wait_for_function(AT_REST)  # the columns take their widths little by little
        tab.wait_for_function(f"{WIDER} <= 0")
        tab.wait_for_function(f"({UNREACHABLE})().length === 0")  # a page looks at its boxes after a change
    tab.evaluate(LEAVE_OUT, INSIDE)
    assert serious_in_both_themes(tab, UNSEEN) == []
    assert not faults


BUDGET = "body > .live-bar input[data-knob=budget]"


def open_the_bar(page):
    page.locator("body > .live-bar summary").click()


def move_until_told(page):
    page.locator(BUDGET).fill("0")
    page.locator("[data-settled=yes]").first.wait_for(state="attached", timeout=60_000)


def read_a_mark(page):
    picture = page.locator(".lp-picture").first
    picture.scroll_into_view_if_needed()
    picture.focus()
    page.keyboard.press("ArrowRight")
    page.locator(".lp-tip").first.wait_for()


def play_half_way(page):
    page.get_by_role("slider", name="Step", exact=True).fill("9")


def ask_for_what_cannot_be_run(page):
    page.goto(f"{page.url}?budget=99&world=mars")
    playwright.expect(page.locator(".explorer-message")).not_to_be_empty()


def open_a_card(page):
    page.locator(".review-cell").first.click()
    page.locator(".review-card").wait_for()


def choose_a_verdict(page):
    page.locator(".review-chip").first.click()


MOVED = [  # what a reader makes of a page, which is not as it was built
    ("main-results", read_a_mark), ("scoreboard", open_a_card),
]  # fmt: skip
MOVED_AT_NIGHT = [
    ("voi", open_the_bar), ("terms", move_until_told), ("one-episode", play_half_way),
    ("scoreboard", choose_a_verdict), ("explorer", ask_for_what_cannot_be_run),
]  # fmt: skip


@pytest.mark.browser
@pytest.mark.parametrize("width", nightly([390, 1280], 390))
@pytest.mark.parametrize(
    ("name", "move"),
    nightly([*MOVED, *MOVED_AT_NIGHT], *MOVED),
    ids=[f"{name}-{move.__name__}" for name, move in (*MOVED, *MOVED_AT_NIGHT)],
)
def test_everyone_can_use_a_page_that_a_reader_has_moved(tab, html, name, move, width):
    """As above: sentences told anew, a mark read, a card or a bar open, an episode half way, a message."""
    tab, faults = tab
    faults.clear()
    tab.set_viewport_size({"width": width, "height": 844})
    tab.goto(f"{html.as_uri()}/executed/{name}.html", wait_until="load")
    tab.wait_for_function(WAITS)
    set_formulas(tab)
    move(tab)
    assert tab.evaluate(WIDER) <= 0
    tab.wait_for_function(f"({UNREACHABLE})().length === 0")  # a page looks at its boxes after a change
    tab.evaluate(LEAVE_OUT, INSIDE)
    assert serious_in_both_themes(tab, UNSEEN) == []
    assert not faults


def test_formulas_are_formulas(html):
    """Two dollar signs in a sentence would make one of the words between them."""
    found = [text for name in page_names(html) for text in re.findall(FORMULA, read(html, name), re.DOTALL)]
    assert len(found) > 100
    assert [
        text for text in found if "`" in text or re.search(r"(?<!\\text\{)\b(and|under|about)\b", text)
    ] == []


FOCUS = """() => {
  const node = document.activeElement;
  const card = node.matches(".sd-stretched-link") ? "::after" : null;  // its link covers all of a card
  const seen = getComputedStyle(node, card);
  const outlined = seen.outlineStyle !== "none" && parseFloat(seen.outlineWidth) > 0;
  const box = node.getBoundingClientRect();
  return {
    name: node.tagName, html: node.outerHTML.slice(0, 120),
    visible: outlined || seen.boxShadow !== "none" || node.matches("[type=radio], [type=checkbox]"),
    place: node === document.body || (box.width > 0 && box.bottom > 0 && box.top < innerHeight),
  };
}"""


@pytest.mark.browser
@pytest.mark.parametrize(
    "name", nightly(["index.html", "items.html", "executed/main-results.html"], "index.html")
)
def test_the_keyboard_shows_where_it_is(tab, html, name):
    """The first stop skips to the text; every stop after it is on the screen and can be seen."""
    tab, _ = tab
    tab.set_viewport_size({"width": 1280, "height": 900})
    tab.goto(f"{html.as_uri()}/{name}", wait_until="load")
    tab.wait_for_function(WAITS)
    set_formulas(tab)  # nothing moves from here on
    tab.keyboard.press("Tab")
    skip = tab.locator(":focus")
    text = skip.get_attribute("href")
    assert tab.locator(".bd-article > section").first.get_attribute("id") == text.removeprefix("#")
    tab.wait_for_function(f"({FOCUS})().place")  # it slides in
    tab.keyboard.press("Enter")
    assert tab.evaluate("location.hash") == text
    stops = []
    for _ in range(60):
        tab.keyboard.press("Tab")
        tab.wait_for_function(f"({FOCUS})().place")  # the page scrolls there
        stops.append(tab.evaluate(FOCUS))
        if stops[-1]["name"] == "BODY":
            break
    stops = [stop for stop in stops if stop["name"] != "BODY"]
    assert len(stops) > 5
    assert [stop["html"] for stop in stops if not stop["visible"]] == []


@pytest.mark.browser
def test_a_wide_table_scrolls_by_keyboard_and_a_command_is_copied(browse, server):
    allowed = {
        "permissions": ["clipboard-read", "clipboard-write"],
        "viewport": {"width": 390, "height": 844},
    }
    page = browse(server, "/executed/main-results.html", **allowed)
    for summary in page.locator("details.more-fold > summary").all():
        summary.click()
    box = page.locator("[data-scrolls=yes]:visible").first
    assert box.get_attribute("role") == "region"
    assert box.get_attribute("aria-label")
    box.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.activeElement.scrollLeft > 0")
    block = page.locator(".provenance .highlight")
    block.locator("button.copybtn").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".provenance button.copybtn.success")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == block.locator("code").inner_text().strip()
    assert f"-p seeds={SMALL['seeds']}" in copied


# --- what readers supply ----------------------------------------------------------------------


def hostile_drawing():
    figure, panels = canvas(1.0)
    panels[0, 0].set_title(HOSTILE)
    return Drawing(figure, "hostile", HOSTILE)


@pytest.fixture(scope="module")
def hostile_html(tmp_path_factory):
    """A book of one section, whose data are an attack, in a repository with an address."""
    out = book.stage(tmp_path_factory.mktemp("hostile") / "book")
    breaks_out = f"x\n:name: y\n\n~~~\n\n```{{raw}} html\n{HOSTILE}\n```\n"
    table = Table("tab-hostile", f"{HOSTILE} {breaks_out}", ("a", HOSTILE), [[HOSTILE, breaks_out]], "ll")
    shown = (table, Text(f"The policy {HOSTILE}. {LINKS}"), hostile_drawing())
    outputs = [nbformat.v4.new_output("display_data", one._repr_mimebundle_()) for one in shown]
    cell = nbformat.v4.new_code_cell("show()", outputs=outputs, execution_count=1)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Main results"), cell])
    values = {"profile": HOSTILE}
    record = {"section": "main-results", "inputs_sha256": "0" * 64, "parameters": values, "defaults": values}
    whole = clean(notebook, record | {"engine_version": "0"}, ROOT)
    (out / "book" / "executed").mkdir()
    (out / "book" / "executed" / "main-results.ipynb").write_text(json.dumps(whole), "utf-8")
    (out / "book" / "index.md").write_text("# Book\n", "utf-8")
    toc = "format: jb-book\nroot: index\nchapters:\n  - file: executed/main-results\n"
    (out / "_toc.yml").write_text(toc, encoding="utf-8")
    (out / "book" / "redirects.yml").write_text("{}\n", encoding="utf-8")
    text = (out / "_config.yml").read_text(encoding="utf-8")
    assert '  url: ""\n' in text
    text = text.replace('  url: ""\n', '  url: "https://github.com/someone/companion"\n')
    (out / "_config.yml").write_text(text, encoding="utf-8")
    code, printed = book.build(out)
    assert code == 0, printed
    return book.html_folder(out)


@pytest.mark.browser
def test_what_readers_supply_never_becomes_markup_and_does_not_run(browse, hostile_html):
    text = read(hostile_html, "executed/main-results.html")
    assert "<script>window.hacked" not in text
    assert "<img src=x" not in text
    assert text.count("&lt;script&gt;window.hacked") >= 6
    assert "<script" not in read(hostile_html, "_downloads/figures/main-results-figure-1.svg")
    assert "<script" not in Table("t", HOSTILE, (HOSTILE,), [[HOSTILE]], "l").html()
    page = browse(hostile_html.as_uri(), "/executed/main-results.html")
    set_formulas(page)
    links = page.evaluate("[...document.links, ...document.querySelectorAll('[href]')].map(a => a.href + '')")
    assert links
    assert not [link for link in links if link.startswith(("javascript:", "data:text", "vbscript:"))]
    assert page.evaluate("window.hacked") is None
    assert page.locator(".bd-article", has_text="window.hacked").count() == 1
    place = "notebooks/main-results.ipynb"  # one setting, the repository's address, gives all others
    binder = f"https://mybinder.org/v2/gh/someone/companion/main?urlpath=lab/tree/{place}"
    for part in (
        f'<a href="{binder}"',
        f'<a href="https://colab.research.google.com/github/someone/companion/blob/main/{place}"',
        "!git clone https://github.com/someone/companion companion",
        "%pip install -e 'companion[book]'",
    ):
        assert part in text


# --- a class, and a shared link ---------------------------------------------------------------


@pytest.mark.parametrize("minutes", [50, 90])
def test_a_plan_adds_up(minutes):
    """Slots follow one another to the end, and none is shorter than its exercises take alone."""
    told = "\n".join("".join(cell["source"]) for cell in SECTIONS["exercises"].cells)
    takes = dict(re.findall(r":label: (ex-\w+)\n.*?about (\d+) minutes", told, re.DOTALL))
    text = (ROOT / "book/instructors.md").read_text(encoding="utf-8")
    plan = text.split(f"## A plan for {minutes} minutes")[1].split("\n## ")[0]
    slots = re.findall(r"^\| (\d+)–(\d+) \|(.*)\|$", plan, re.MULTILINE)
    starts, ends = ([int(slot[place]) for slot in slots] for place in (0, 1))
    assert [*starts, minutes] == [0, *ends]
    exercises = [re.findall(r"\{ref\}`(ex-\w+)`", row.split("|")[-1]) for *_, row in slots]
    assert sum(map(len, exercises)) >= 3
    for start, end, labels in zip(starts, ends, exercises, strict=True):
        assert sum(int(takes[label]) for label in labels) <= end - start


def test_a_shared_link_has_a_picture(html):
    page = (html / "executed/voi.html").read_text(encoding="utf-8")
    tags = dict(re.findall(r'<meta property="(og:[\w:]+)" content="([^"]*)">', page))
    assert tags["og:image"] == "../_static/preview.png"
    assert "EnvProbe-Simple" in tags["og:image:alt"]
    assert "<" not in tags["og:title"]
    picture = (html / "_static/preview.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert [int.from_bytes(picture[place : place + 4]) for place in (16, 20)] == [1200, 630]


@pytest.mark.browser
@pytest.mark.nightly
def test_on_a_phone_each_row_of_a_table_says_what_it_is_about(browse, html):
    page = browse(html.as_uri(), "/executed/language-model.html", viewport={"width": 390, "height": 844})
    above = "cell => cell.textContent.trim() || getComputedStyle(cell, '::after').content.slice(1, -1)"
    told = page.locator("#tab-one-step td:first-child").evaluate_all(f"cells => cells.map({above})")
    assert told[:4] == ["the answer line"] * 3 + ["English hint"]
    assert all(told)


@pytest.mark.browser
def test_the_player_of_a_page_plays_any_episode_from_a_folder(browse, html):
    """The engine is loaded with the page; on a phone the steps stay at hand below the theme's header."""
    page = browse(html.as_uri(), "/executed/one-episode.html", viewport={"width": 390, "height": 844})
    page.locator("[data-module=player][data-ready=yes]").wait_for()
    assert re.search(r"\d+ of \d+ seeds", page.locator(".player-rarity").inner_text())
    page.locator(".player-other > summary").click()
    page.get_by_label("World", exact=True).select_option("graphnav")
    page.locator(".player-about").get_by_text("graphs").first.wait_for()
    page.get_by_role("button", name="Typical seed").click()
    page.locator(".player-rarity").get_by_text("the median difference over 220 seeds").wait_for()
    drawing = page.locator(".player-scene").first
    drawing.evaluate("(node) => scrollBy(0, node.getBoundingClientRect().top - 150)")
    place = "(node) => node.getBoundingClientRect().top"
    header = page.locator(".bd-header-article").evaluate("(node) => node.getBoundingClientRect().bottom")
    assert header <= page.get_by_role("button", name="Next step").evaluate(place) < 150
    assert header <= page.get_by_role("slider", name="Step", exact=True).evaluate(place) < 150
    assert page.evaluate(WIDER) <= 0
