"""The paper's tables as printed: where each number stands, what tests it, and what the page says of it."""

import functools
import re
from urllib.parse import parse_qs

import numpy as np
import pytest

from envprobe_book.analyses import review
from envprobe_book.analyses.scoreboard import choose_claims, run_claims
from envprobe_book.claims import find_claim, paper_value, paper_values, printed
from envprobe_book.claims.judge import AGREES, judge
from envprobe_book.claims.printed import TEXT, VALUE, claim_of, printed_tables
from envprobe_book.pages.review import STYLE, Findings, review_script, show_tables, verdict_data
from envprobe_core.errors import look_up
from envprobe_core.experiment import run
from envprobe_core.policies import POLICIES
from envprobe_core.sources import ROOT
from envprobe_core.worlds import WORLDS

SEEDS, RESAMPLES = "0:60", 200
ASSETS = ROOT / "book" / "assets"


@functools.cache
def findings():
    claims = [find_claim(name) for name in printed.tested_claims()]
    frame = run_claims(claims, seeds=SEEDS)
    board = judge(frame, claims, resamples=RESAMPLES)
    turns = review.find_turns(claims, board, seeds=SEEDS, resamples=RESAMPLES)
    episodes = review.typical_episodes(frame, claims)
    return Findings(board, turns, episodes, review.own_settings(SEEDS, "S2", RESAMPLES))


def test_every_number_of_the_papers_tables_stands_in_a_cell():
    shown = {cell.value for table in printed_tables() for cell in table.cells() if cell.part == VALUE}
    tables = {table.source for table in printed_tables()} | {*TEXT}
    assert {value for value in paper_values() if value.source in tables} == shown
    assert [table.name for table in printed_tables()[:7]] == [f"Table {number}" for number in range(1, 8)]
    for table in printed_tables():
        assert all(len(cells) == len(table.heads) for _, cells in table.rows)


def test_a_number_is_tested_by_the_claim_that_has_it():
    """Of a p the claim has the difference; of a lower bound the level that it bounds."""
    for table in printed_tables():
        for cell in table.cells():
            value, claim = cell.value, claim_of(cell.value)
            if claim is None:
                assert table.name == "Table 4", value
            elif claim.value is not None and not re.search(
                r"_p$|_lcb$|_floor_pct$|_threshold$", value.column
            ):
                scale = 1.0 if claim.unit != "points" or value.column.endswith("_pct") else 100.0
                rounded = abs(scale * value.value - claim.value) <= scale * value.half_unit + 1e-9
                assert rounded or value.source == "sec:results:secondary", (value, claim.id)


@pytest.mark.nightly
def test_a_switch_turns_a_verdict_exactly_where_a_run_of_its_own_says_so():
    claims = [find_claim(name) for name in ("main-procedural", "upr-procedural", "level-cd-procedural")]
    turns = findings().turns
    for switch in ("start", "accuracy", "memory", "oracle"):
        value = {"start": "observation", "accuracy": "slots", "memory": "none", "oracle": "report"}[switch]
        name = f"paper:{switch}={value}"
        frame = run_claims(claims, ["paper", name], seeds=SEEDS)
        told = judge(frame, claims, resamples=RESAMPLES).set_index(["claim", "protocol"])["verdict"]
        for claim in claims:
            turned = (told[claim.id, "paper"] in AGREES) != (told[claim.id, name] in AGREES)
            listed = turns[(turns["claim"] == claim.id) & (turns["switch"] == switch)]
            assert len(listed) == turned
            assert not turned or listed["verdict"].item() == told[claim.id, name]
    assert 0 < len(turns) < 15 * len(printed.tested_claims())
    assert review.find_turns(claims, findings().board, "released").empty, "nothing is left to turn"


def test_an_episode_is_the_one_nearest_to_its_claims_mean_and_its_address_says_all_of_it():
    one = findings().episodes["main-spatial", "observed"]
    frame = run("objectstate graphnav", "simple periodic", protocols="observed", seeds=SEEDS)
    sides = frame.pivot(index=["world", "seed"], columns="policy", values="accuracy")
    gains = sides["simple"] - sides["periodic"]
    assert gains[one.world, one.seed] == pytest.approx(one.value)
    assert abs(one.value - gains.mean()) == pytest.approx((gains - gains.mean()).abs().min())
    for (claim, protocol), found in findings().episodes.items():
        said = {name: value for name, (value,) in parse_qs(found.address.partition("#")[2]).items()}
        assert said["episode"] == f"{found.world}-{protocol}-{found.seed}"
        assert said["policies"].split() == list(found.policies)
        assert said["regime"] == find_claim(claim).regime
        assert found.world in find_claim(claim).worlds
        assert np.isfinite(found.value)
        for name in found.policies:
            look_up("policy", name, POLICIES)
        look_up("world", found.world, WORLDS)


@pytest.mark.nightly
def test_what_is_recorded_stands_beside_what_is_printed():
    gain = paper_value("tab:main", "procedural: cd vs simple", "accuracy_difference_pct")
    assert [(row["value"], row["line"]) for row in review.recorded_of(gain)] == [("34", "140")]
    shown = show_tables(findings()).html
    note = shown.partition('id="cell-main-cd"')[2].partition("</section>")[0]
    assert "34 points" in note
    assert "verify_floor.py</code>, line 140" in note


def test_every_cell_is_a_link_to_one_place_with_everything_that_is_known():
    shown = show_tables(findings()).html
    links, places = re.findall(r'href="#(cell-[\w-]+)"', shown), re.findall(r' id="(cell-[\w-]+)"', shown)
    assert len(links) == sum(len(list(table.cells())) for table in printed_tables())
    assert len(places) == len(set(places)) == len(set(links))
    claims = {f"#claim-{claim.id}" for claim in choose_claims()}
    assert set(re.findall(r'href="(#claim-[\w-]+)"', shown)) <= claims
    for part in shown.split('<section class="review-note"')[1:]:
        text = re.sub(r"<[^>]*>", " ", part)
        if "our run" in text:
            assert all(rule in text for rule in ("as written", "partial start", "as released"))
            assert "switch" in text


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """The tables in a page with the book's scripts and styles, and a list of claims below."""
    shown = show_tables(findings()).html
    rows = ""
    for name, own in findings().board.groupby("claim", sort=False):
        told = verdict_data(dict(zip(own["protocol"], own["verdict"], strict=True)))
        rows += f'<tr id="claim-{name}"{told}><td>{name}</td></tr>'
    folder = tmp_path_factory.mktemp("review")
    styles = "scoreboard.css", STYLE
    text = "".join(f"<style>{(ASSETS / name).read_text()}</style>" for name in styles)
    claims = f'<table class="scoreboard"><tbody>{rows}</tbody></table>'
    text += f'<article class="bd-article">{shown}{claims}</article>'
    text += f"<script>{review_script()}</script>"
    path = folder / "page.html"
    path.write_text(f'<!doctype html><html lang="en"><meta charset="utf-8"><title>t</title>{text}</html>')
    return path


@pytest.mark.browser
def test_a_number_tells_by_pointer_click_and_keyboard(browse, page_file):
    page = browse(page_file.as_uri())
    card = page.locator(".review-card")
    gain = page.locator('.review-cell[href="#cell-main-procedural"]').nth(1)
    assert not card.is_visible()
    gain.hover()
    card.get_by_text("as released").wait_for()
    page.mouse.move(0, 0)
    card.wait_for(state="hidden")
    gain.focus()
    assert card.is_visible()
    page.keyboard.press("Enter")
    assert page.url.endswith("#cell-main-procedural")
    assert card.evaluate("card => card === document.activeElement")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')").startswith(
        "one-episode.html#episode="
    )
    page.keyboard.press("Escape")
    assert not card.is_visible()
    assert gain.evaluate("link => link === document.activeElement"), "back where the reader was"
    own = findings().board.query("claim == 'main-procedural' and protocol == 'released'")["verdict"].item()
    page.goto(f"{page_file.as_uri()}#cell-main-procedural")
    page.reload()
    assert own in card.locator("tr", has_text="as released").inner_text()


@pytest.mark.browser
def test_the_filter_leaves_what_was_asked_for_and_stands_in_the_address(browse, page_file):
    page = browse(page_file.as_uri())
    board = findings().board
    chip = page.locator('.review-chip[data-group="against"]').first
    chip.focus()
    page.keyboard.press("Space")
    page.get_by_label("Under which protocol").last.select_option("observed")
    wanted = set(board.query("protocol == 'observed' and verdict in ['reverses', 'not as printed']")["claim"])

    def left():
        return {
            row.get_attribute("id").removeprefix("claim-") for row in page.locator("tr[id]:visible").all()
        }

    assert left() == wanted
    cells = page.locator(".review-cell:visible").evaluate_all("all => all.map((one) => one.hash.slice(6))")
    assert set(cells) == wanted & set(cells) != set()
    assert page.url.endswith("?show=against&under=observed")
    page.reload()
    assert left() == wanted
    assert chip.get_attribute("aria-pressed") == "true"
    page.locator('.review-chip[data-group="agrees"]').last.click()
    wanted |= set(
        board.query("protocol == 'observed' and verdict in ['holds', 'near', 'as printed']")["claim"]
    )
    assert left() == wanted
    page.get_by_role("button", name="show all").first.click()
    assert page.locator("tr[id]:visible").count() == board["claim"].nunique()
    assert "show=" not in page.url


@pytest.mark.browser
def test_without_scripts_the_tables_stand_and_a_link_opens_its_place(browse, page_file):
    page = browse(page_file.as_uri(), java_script_enabled=False)
    assert page.locator(".review-card, .review-filter").count() == 0
    note = page.locator("#cell-main-procedural")
    assert not note.is_visible()
    page.locator('.review-cell[href="#cell-main-procedural"]').first.click()
    note.get_by_text("as released").wait_for()
