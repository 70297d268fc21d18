"""The book as a reader meets it: a small one is built once, then opened in a browser."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from built_book import SMALL, build_book, page_names
from daily import nightly
from envprobe_book.pages.markup import MARK
from envprobe_book.reproduce import build as book
from envprobe_book.reproduce.sections import ROOT, find_sections, plan
from envprobe_core.protocols import SWITCHES, switch_values
from test_pages import seen
from watching import set_formulas

STATED = {"profile": "Agent profile", "protocol": "Protocol", "seeds": "Seeds", "regime": "Regime"}
"""What the foot of a page states, by parameter."""
SECTIONS = find_sections()


def test_sections_were_really_executed(small_book):
    """Jupyter Book executes nothing, so nothing but this would show a page of stale results."""
    known = {name for section in SECTIONS.values() for name in section.parameters}
    given = {name: value for name, value in SMALL.items() if name in known}
    for job in plan(given=given, executed=small_book / "book" / "executed"):
        assert job.fresh, job.section.name
        # what is committed holds no outputs
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in job.section.cells)
        cells = json.loads(job.output.read_text(encoding="utf-8"))["cells"]
        assert any(cell.get("outputs") for cell in cells)


def test_notebooks_that_pages_offer_have_no_marks(small_book, html):
    """Other hosts would write out the addresses of links without a text."""
    offered = list((html / "_sources" / "executed").glob("*.ipynb"))
    assert {path.stem for path in offered} == {*SECTIONS}
    executed = small_book / "book" / "executed"
    assert any(MARK.search((executed / path.name).read_text(encoding="utf-8")) for path in offered)
    assert not any(MARK.search(path.read_text(encoding="utf-8")) for path in offered)


def test_every_page_says_how_its_numbers_were_made(html):
    for name in page_names(html):
        page = seen(html, name)
        for alt in (image.get("alt", "").strip() for image in page("img")):
            assert alt, name
            assert not alt.endswith((".png", ".svg", ".jpg")), (name, alt)
        text = " ".join(page.find("aside", "provenance").get_text(" ").split())
        stated = {words for words in STATED.values() if words in text}
        assert "The embedded agent is a simulation." in text, name
        if not name.startswith("executed/"):
            assert not stated, name
            continue
        declared = SECTIONS[Path(name).stem].parameters
        assert stated == {words for parameter, words in STATED.items() if parameter in declared}
        assert f"envprobe reproduce {Path(name).stem}{' -p ' if declared else ''}" in text
        for given in SMALL.keys() & declared.keys():
            own = declared[given].default
            assert f"{SMALL[given]} (changed; the book’s own value is {own})" in text
    definitions = (html / "definitions.html").read_text(encoding="utf-8")
    for word in [word for switch in SWITCHES for word in (switch, *switch_values(switch))]:
        assert f'<span class="pre">{word}</span>' in definitions, word


# --- in a browser -----------------------------------------------------------------------------


SOUGHT = (
    ("11.76", "main-results.html"),
    ("431", "main-results.html"),
    ("Table 3 of the paper", "terms.html"),
    ("lemma 5.4", "theory.html"),
    ("value of information", "voi.html"),
)
SEARCHES = [("http", SOUGHT[-1:]), ("file", SOUGHT[:3]), ("file", SOUGHT[3:])]


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "sought"), nightly(SEARCHES, SEARCHES[1]))
def test_search_finds_what_the_paper_prints(browse, html, server, scheme, sought):
    """And pages, from a folder and behind a server that is asked for nothing it has not."""
    base = server if scheme == "http" else html.as_uri()
    page = browse(base, "/search.html?q=switch")
    page.locator("#search-results a", has_text="Protocols").first.wait_for()
    for query, leads_to in sought:
        page.goto(f"{base}/search.html?q={query}")
        place = page.locator(f":is(#paper-results, #search-results) a[href*='{leads_to}']")
        place.first.wait_for()
        assert not page.get_by_text("did not match any documents").is_visible()
        place.first.click()
        page.wait_for_url(f"**/{leads_to}*")
        anchor = page.url.partition("#")[2]
        assert not anchor or page.evaluate("id => document.getElementById(id) !== null", anchor)


@pytest.mark.browser
def test_a_reviewer_comes_from_a_printed_number_to_its_claim_its_episode_and_its_section(browse, html):
    page = browse(html.as_uri(), "/items.html")
    page.locator(".bd-article a[href*='executed/scoreboard.html']").first.click()
    page.locator(".review-cell[href='#cell-main-procedural']").nth(1).click()
    card = page.locator(".review-card")
    for link in card.locator("a[href]").all():
        address = link.get_attribute("href")
        target, _, anchor = address.partition("#")
        assert (html / "executed" / target).is_file() if target else page.locator(f"#{anchor}").count() == 1
    seed = card.locator("tr", has_text="as released").locator("a")
    number = seed.inner_text().removeprefix("seed ")
    seed.click()
    told = page.locator(".player-about", has_text=f"seed {number}:")
    told.wait_for()
    assert "EnvProbe-Simple and Periodic in S2 under protocol as released" in told.inner_text()
    page.goto(f"{html.as_uri()}/executed/scoreboard.html?show=against&under=paper")
    claims = page.locator(".scoreboard").first.locator("tbody tr[id]")
    left = [claim for claim in claims.all() if claim.is_visible()]
    assert 0 < len(left) < claims.count()
    assert all("✗" in claim.locator("td").nth(1).inner_text() for claim in left)
    page.emulate_media(media="print")
    assert all(claim.is_visible() for claim in claims.all())


@pytest.mark.browser
def test_the_first_page_has_terms_formulas_and_the_systems_colours_and_a_definition_opens(browse, html):
    page = browse(html.as_uri(), "/index.html", color_scheme="dark")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert set_formulas(page) > 3
    inline = "mjx-container:not([display]):not([data-scrolls])"
    assert page.locator(inline).count() > 3
    assert page.locator(f"{inline}[tabindex='0']").count() == 0  # the tab key passes them by
    link = page.locator('a[href*="#term-budget"]').first
    link.focus()
    tip = page.locator("#definition")
    assert "probes in an episode" in tip.inner_text()
    assert link.get_attribute("aria-describedby") == "definition"
    page.keyboard.press("Escape")
    assert tip.count() == 0
    page.goto(f"{html.as_uri()}/definitions.html#the-scribe")
    opened = page.locator("section > details").evaluate_all("all => all.map((one) => one.open)")
    assert opened.count(True) == 1
    assert page.get_by_text("A profile with scribe keeps nothing").is_visible()


@pytest.mark.browser
def test_a_section_shows_long_tables_on_demand_and_keeps_a_guess(browse, html):
    page = browse(html.as_uri(), "/executed/main-results.html")
    page.locator("details:has(#tab-policies-1)").evaluate_all(
        "all => all.forEach((one) => { one.open = true; })"
    )
    rows = page.locator("#tab-policies-1 tbody tr")
    after = "xpath=following::button[contains(@class, 'all-rows')][1]"
    button, count = page.locator("#tab-policies-1").locator(after), rows.count()
    assert button.inner_text().startswith(f"all {count} rows")
    assert sum(row.is_visible() for row in rows.all()) == 12 < count
    button.click()
    assert sum(row.is_visible() for row in rows.all()) == count
    gap = page.locator("table.dataframe td").first.evaluate("own => getComputedStyle(own).paddingLeft")
    assert float(gap.removesuffix("px")) > 5  # the numbers of neighbouring columns do not run together
    form = page.locator("form.guess").first

    def open_its_fold():
        form.evaluate("own => { own.closest('details').open = true; }")

    open_its_fold()
    assert not form.locator("details").is_visible()
    form.locator("input").first.check()
    assert form.locator("details").is_visible()
    told = "Right." if int(form.get_attribute("data-right")) == 0 else "Not so."
    assert form.get_by_role("status").inner_text() == told
    page.reload(wait_until="load")
    open_its_fold()
    form.get_by_role("status").filter(has_text=told).wait_for()


# --- building it ------------------------------------------------------------------------------


def test_a_second_build_does_nothing(small_book, html):
    before = {path: path.stat().st_mtime_ns for path in html.rglob("*")}
    result = build_book(small_book)
    assert result.returncode == 0, result.stderr
    assert "the book is up to date" in result.stdout
    assert {path: path.stat().st_mtime_ns for path in html.rglob("*")} == before


@pytest.mark.nightly
def test_a_changed_sentence_builds_its_page_and_a_heading_the_whole_book(tmp_path):
    out = book.stage(tmp_path / "small")
    pages, chapters = out / "book", "".join(f"  - file: {name}\n" for name in ("first", "second"))
    (out / "_toc.yml").write_text(f"format: jb-book\nroot: index\nchapters:\n{chapters}", encoding="utf-8")
    (pages / "redirects.yml").write_text("{}\n", encoding="utf-8")
    (pages / "index.md").write_text("# Book\n", encoding="utf-8")
    (pages / "second.md").write_text("# Second\n", encoding="utf-8")
    assert book.build_front(out)
    assert [path.stem for path in book.html_folder(out).glob("[!gs]*.html")] == ["index"]
    assert not book.is_fresh(out)
    for title, text, built in (
        ("First", "A sentence.", {"first", "index", "second"}),
        ("First", "A sentence, mended.", {"first", "index"}),  # which lists the others
        ("Mended", "A sentence.", {"first", "index", "second"}),  # each page's margin shows the heading
    ):
        (pages / "first.md").write_text(f"# {title}\n\n{text}\n[{text}](second.md)\n", encoding="utf-8")
        code, printed = book.build(out)
        assert code == 0, printed
        plain = re.sub(r"\x1b\[[\d;]*m", "", printed)
        written = re.findall(r"writing output\.\.\. \[ *\d+%\] (\w+)", plain)
        assert set(written) == built
        assert f"<p>{text}\n" in (book.html_folder(out) / "first.html").read_text("utf-8")
        assert title in (book.html_folder(out) / "second.html").read_text("utf-8")
        assert book.is_fresh(out)


def test_the_build_fails_on_any_warning(tmp_path):
    """A broken link and an image without a description must not reach a reader."""
    out = book.stage(tmp_path / "broken")
    page = "# Book\n\n[](nowhere.md)\n\n![](assets/paper.css)\n"
    (out / "book" / "index.md").write_text(page, encoding="utf-8")
    (out / "_toc.yml").write_text("format: jb-book\nroot: index\n", encoding="utf-8")
    code, printed = book.build(out)
    assert code != 0
    for fault in ("nowhere.md", "image without alt text", "redirects.yml"):  # it names pages that are gone
        assert fault in printed
    assert not book.is_fresh(out)


@pytest.mark.nightly
def test_the_books_own_command_builds_a_fresh_checkout(tmp_path, write_notebook, checkout):
    """As anybody would try it: `jupyter-book build .` at the root, where nothing is installed or executed.

    A page that shows something of a section follows it, too. The engine's machine code comes along; that it
    is made where it is missing is asked in `test_compiling`.
    """

    def git(*given):
        return subprocess.check_output(["git", *given], cwd=checkout, text=True)

    def write(number):
        shown = 'from myst_nb import glue\nglue("many", f"so many: {n}", display=False)'
        write_notebook("demo", f"n: int = {number}  # how many; accepts 1..10", "print('so many:', n)", shown)

    write(3)
    left_out = shutil.ignore_patterns("__pycache__", "executed", "_build")
    for name in ("envprobe_core", "book", "data"):
        shutil.rmtree(checkout / name, ignore_errors=True)
        shutil.copytree(ROOT / name, checkout / name, ignore=left_out)
    for code in (ROOT / "envprobe_core" / "compiled" / "__pycache__").glob("envprobe-engine-*"):
        shutil.copytree(code, checkout / code.relative_to(ROOT))
    for name in ("_config.yml", "requirements.txt", ".gitignore"):
        shutil.copy(ROOT / name, checkout / name)
    chapters = "chapters:\n  - file: about\n  - file: executed/demo\n"
    (checkout / "_toc.yml").write_text(f"format: jb-book\nroot: index\n{chapters}")
    for name in ("index", "about"):  # Sphinx itself writes the first anew with any other
        shown = f"# {name}\n\n```{{glue}} many\n:doc: executed/demo.ipynb\n```\n"
        (checkout / "book" / f"{name}.md").write_text(shown)
    (checkout / "book" / "redirects.yml").write_text("{}\n")
    git("init", "-q")
    git("add", ".")
    program = str(Path(sys.executable).with_name("jupyter-book"))
    for number in (3, 5):
        write(number)
        done = subprocess.run(
            [program, "build", ".", "-W", "--keep-going", "-n"], cwd=checkout, capture_output=True, text=True,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            timeout=600, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        for page in ("index", "about", "executed/demo"):
            text = (checkout / "_build" / "html" / f"{page}.html").read_text("utf-8")
            assert f"so many: {number}" in text
    assert "??" not in git("status", "--short")
