"""The book as a reader meets it: a small one is built once, then opened in a browser."""

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from built_book import SMALL, build_book, page_names
from watching import set_formulas, watch

from envprobe_core.protocols import SWITCHES, switch_values
from envprobe_core.reproduce import build as book
from envprobe_core.reproduce.sections import ROOT, find_sections, plan, stored_record


class Page(HTMLParser):
    """The images of a page and the text of its provenance block."""

    def __init__(self, text):
        super().__init__()
        self.images: list[dict] = []
        self.provenance = ""
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "img":
            self.images.append(given)
        if tag == "aside" and given.get("class") == "provenance":
            self._inside = True

    def handle_endtag(self, tag):
        self._inside = self._inside and tag != "aside"

    def handle_data(self, data):
        if self._inside:
            self.provenance += f" {' '.join(data.split())}"


def read_page(html, name):
    return Page((html / name).read_text(encoding="utf-8"))


# --- the pages --------------------------------------------------------------------------------


def test_every_section_has_a_page(html):
    pages = page_names(html)
    for name in find_sections():
        assert f"executed/{name}.html" in pages
    frame = {path.stem for path in (ROOT / "book").glob("*.md")}
    assert {f"{name}.html" for name in frame} <= set(pages)


def test_sections_were_really_executed(small_book):
    """Jupyter Book executes nothing, so nothing but this would show a page of stale results."""
    executed = small_book / "book" / "executed"
    sections = find_sections()
    known = {name for section in sections.values() for name in section.parameters}
    given = {name: value for name, value in SMALL.items() if name in known}
    for job in plan(given=given, executed=executed):
        assert job.fresh, job.section.name
        cells = json.loads(job.output.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code" and cell["source"]]
        assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
        assert any(cell["outputs"] for cell in code)
        assert stored_record(job.output)["parameters"] == dict(job.values)


def test_committed_notebooks_hold_no_outputs():
    for section in find_sections().values():
        for cell in section.cells:
            assert not cell.get("outputs"), section.name
            assert cell.get("execution_count") is None, section.name


def test_every_page_says_how_its_numbers_were_made(html):
    sections = find_sections()
    for name in page_names(html):
        text = read_page(html, name).provenance
        assert "The embedded agent is a simulation." in text, name
        for label in ("Agent profile", "Protocol", "Seeds", "Regime", "Bootstrap resamples"):
            assert label in text, (name, label)
        assert "envprobe_core" in text
        assert "Song and Cai" in text
        section = sections.get(Path(name).stem) if name.startswith("executed/") else None
        if section is None:
            assert "0:12" in text, name
            continue
        values = " -p " if section.parameters else ""
        assert f"envprobe reproduce {section.name}{values}" in text
        for given, value in SMALL.items():
            if given in section.parameters:
                default = section.parameters[given].default
                assert f"{value} (changed; the book’s own value is {default})" in text


def test_every_image_is_described(html):
    for name in page_names(html):
        for image in read_page(html, name).images:
            alt = image.get("alt", "").strip()
            assert alt, (name, image)
            assert not alt.endswith((".png", ".svg", ".jpg")), (name, alt)


def test_the_definitions_have_every_switch_and_value(html):
    text = (html / "definitions.html").read_text(encoding="utf-8")
    for switch in SWITCHES:
        for word in (switch, *switch_values(switch)):
            assert f'<span class="pre">{word}</span>' in text, (switch, word)


# --- in a browser -----------------------------------------------------------------------------


SERVED = (
    "index",
    "items",
    "executed/explorer",
    "executed/one-episode",
    "executed/theory",
    "executed/scoreboard",
)


@pytest.mark.browser
def test_pages_work_behind_a_web_server(chromium, server):
    """`test_pages` opens every page from a folder; a server is asked for nothing that it has not either."""
    page = chromium.new_page()
    faults = watch(page, server)
    for name in SERVED:
        page.goto(f"{server}/{name}.html", wait_until="load")
        set_formulas(page)
        assert not faults, name
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_search_finds_a_page(chromium, html, server, scheme):
    base = server if scheme == "http" else html.as_uri()
    page = chromium.new_page()
    page.goto(f"{base}/search.html?q=switch")
    page.locator("#search-results li").first.wait_for()
    assert page.locator("#search-results a", has_text="Protocols").count() >= 1
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["http", "file"])
@pytest.mark.parametrize(
    ("query", "leads_to"),
    [
        ("11.76", "main-results.html"),
        ("0.924", "what-probes-find.html"),
        ("Table 3 of the paper", "terms.html"),
        ("lemma 5.4", "theory.html"),
        ("value of information", "voi.html"),
    ],
)
def test_search_finds_what_the_paper_prints(chromium, html, server, scheme, query, leads_to):
    base = server if scheme == "http" else html.as_uri()
    page = chromium.new_page()
    faults = watch(page, base)
    page.goto(f"{base}/search.html?q={query}")
    place = page.locator(f":is(#paper-results, #search-results) a[href*='{leads_to}']")
    place.first.wait_for()
    place.first.click()
    page.wait_for_url(f"**/{leads_to}*")
    anchor = page.url.partition("#")[2]
    assert not anchor or page.evaluate("id => document.getElementById(id) !== null", anchor)
    assert not faults
    page.close()


@pytest.mark.browser
def test_a_long_table_shows_its_first_rows_and_on_demand_all(chromium, html):
    page = chromium.new_page()
    page.goto(f"{html.as_uri()}/executed/main-results.html", wait_until="load")
    rows = page.locator("#tab-gains tbody tr")
    button = (
        page.locator("figure, div").filter(has=page.locator("#tab-gains")).locator("button.all-rows").first
    )
    count = rows.count()
    assert count > 12
    assert button.inner_text() == f"all {count} rows"
    assert sum(row.is_visible() for row in rows.all()) == 12
    button.click()
    assert sum(row.is_visible() for row in rows.all()) == count
    page.emulate_media(media="print")
    assert not button.is_visible()
    page.close()


@pytest.mark.browser
def test_the_scoreboard_opens_place_by_place(chromium, html):
    page = chromium.new_page()
    page.goto(f"{html.as_uri()}/executed/scoreboard.html", wait_until="load")
    board = page.locator(".scoreboard").first
    claims, places = board.locator('tbody th[scope="row"]'), board.locator(".scoreboard-place")
    assert claims.count() > places.count() > 12
    assert not any(claim.is_visible() for claim in claims.all())
    second = places.filter(has_text="Figure 1")
    told = re.search(r"(\d+) claims", second.inner_text())
    signs = second.locator("td").first.inner_text()
    assert sum(map(int, re.findall(r"\d+", signs))) == int(told[1])
    second.get_by_role("button").press("Enter")
    assert sum(claim.is_visible() for claim in claims.all()) == int(told[1])
    every = page.get_by_role("button", name="open every place").first
    every.click()
    assert all(claim.is_visible() for claim in claims.all())
    page.get_by_role("button", name="close every place").first.click()
    assert not any(claim.is_visible() for claim in claims.all())
    page.emulate_media(media="print")
    assert all(claim.is_visible() for claim in claims.all())
    page.close()


@pytest.mark.browser
def test_a_link_to_a_definition_opens_it(chromium, html):
    page = chromium.new_page()
    page.goto(f"{html.as_uri()}/definitions.html#the-scribe", wait_until="load")
    folded = page.locator("section > details")
    assert [one.get_attribute("open") is not None for one in folded.all()].count(True) == 1
    assert page.get_by_text("A profile with scribe keeps nothing").is_visible()
    page.close()


@pytest.mark.browser
def test_a_term_says_what_it_means(chromium, html):
    page = chromium.new_page()
    page.goto(f"{html.as_uri()}/index.html", wait_until="load")
    link = page.locator('a[href*="#term-budget"]').first
    link.focus()
    tip = page.locator("#definition")
    assert "probes in an episode" in tip.inner_text()
    assert link.get_attribute("aria-describedby") == "definition"
    page.keyboard.press("Escape")
    assert tip.count() == 0
    page.close()


@pytest.mark.browser
def test_a_guess_is_kept_before_the_answer_is_seen(chromium, html):
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{html.as_uri()}/executed/main-results.html", wait_until="load")
    form = page.locator("form.guess").first
    assert not form.locator("details").is_visible()
    form.locator("input").first.check()
    assert form.locator("details").is_visible()
    right = int(form.get_attribute("data-right"))
    told = "Right." if right == 0 else "Not so."
    assert form.get_by_role("status").inner_text() == told
    page.wait_for_timeout(2_000)  # what a page keeps is written down by another process of the browser
    page.reload(wait_until="load")
    page.locator("form.guess").first.get_by_role("status").filter(has_text=told).wait_for()
    context.close()


@pytest.mark.browser
def test_the_tab_key_passes_formulas_by(chromium, html):
    page = chromium.new_page()
    page.goto(f"{html.as_uri()}/index.html", wait_until="load")
    assert set_formulas(page) > 3
    inline = "mjx-container:not([display]):not([data-scrolls])"
    assert page.locator(inline).count() > 3
    assert page.locator(f"{inline}[tabindex='0']").count() == 0
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_colours_follow_the_system(chromium, html, scheme):
    page = chromium.new_page(color_scheme=scheme)
    page.goto(f"{html.as_uri()}/index.html", wait_until="load")
    assert page.locator("html").get_attribute("data-theme") == scheme
    page.close()


# --- building it ------------------------------------------------------------------------------


def test_a_second_build_does_nothing(small_book, html):
    before = {path: path.stat().st_mtime_ns for path in html.rglob("*")}
    result = build_book(small_book)
    assert result.returncode == 0, result.stderr
    assert "the book is up to date" in result.stdout
    assert {path: path.stat().st_mtime_ns for path in html.rglob("*")} == before


def test_compiled_modules_are_no_input(tmp_path):
    out = book.stage(tmp_path / "book")
    before = book.book_digest(out)
    compiled = out / "book" / "_ext" / "__pycache__" / "shown.cpython-311.pyc"
    compiled.parent.mkdir(parents=True)
    compiled.write_bytes(b"compiled")
    assert book.book_digest(out) == before
    (out / "book" / "more.md").write_text("# More\n", encoding="utf-8")
    assert book.book_digest(out) != before


def test_the_build_fails_on_any_warning(tmp_path):
    """A broken link and an image without a description must not reach a reader."""
    out = book.stage(tmp_path / "broken")
    page = out / "book" / "index.md"
    page.write_text("# Book\n\n[](nowhere.md)\n\n![](assets/paper.css)\n", encoding="utf-8")
    (out / "_toc.yml").write_text("format: jb-book\nroot: index\n", encoding="utf-8")
    code, printed = book.build(out)
    assert code != 0
    assert "nowhere.md" in printed
    assert "image without alt text" in printed
    assert not book.is_fresh(out)


def test_the_books_own_command_builds_a_fresh_checkout(tmp_path, write_notebook, checkout):
    """As anybody would try it: `jupyter-book build .` at the root, where nothing is installed or executed."""
    write_notebook("demo", "n: int = 3  # how many; accepts 1..10", "print('so many:', n)")
    left_out = shutil.ignore_patterns("__pycache__", "executed", "_build")
    for name in ("envprobe_core", "book", "data"):
        shutil.rmtree(checkout / name, ignore_errors=True)
        shutil.copytree(ROOT / name, checkout / name, ignore=left_out)
    for name in ("_config.yml", "requirements.txt", ".gitignore"):
        shutil.copy(ROOT / name, checkout / name)
    (checkout / "_toc.yml").write_text("format: jb-book\nroot: index\nchapters:\n  - file: executed/demo\n")
    (checkout / "book" / "index.md").write_text("# Book\n")
    (checkout / "book" / "redirects.yml").write_text("{}\n")
    subprocess.run(["git", "init", "-q"], cwd=checkout, check=True)
    subprocess.run(["git", "add", "."], cwd=checkout, check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(Path(sys.executable).with_name("jupyter-book")), "build", ".", "-W", "--keep-going", "-n"],
        cwd=checkout, env=environment, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "so many: 3" in (checkout / "_build" / "html" / "executed" / "demo.html").read_text("utf-8")
    status = ["git", "status", "--short"]
    made = subprocess.run(status, cwd=checkout, capture_output=True, text=True, check=True).stdout
    assert not [line for line in made.splitlines() if line.startswith("??")], made


def test_a_foreign_folder_is_not_built_into(tmp_path):
    (tmp_path / "letters.txt").write_text("mine")
    result = build_book(tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith("envprobe: --out ")
    assert result.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]
    assert build_book(ROOT / "book" / "assets").returncode == 2
