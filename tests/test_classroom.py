"""What the instructors' page says of each figure that it links to, read from that figure in a browser."""

import json
from urllib.parse import unquote

import pytest

from built_book import SMALL
from envprobe_book import classroom as lab
from envprobe_book.classroom import compete, leaderboard
from envprobe_book.classroom.exercises import student_copy
from envprobe_book.reproduce.sections import cell_source
from envprobe_book.widgets.player import record_pair
from envprobe_core.conditions import parse_seeds
from test_explorer import shown_at_rest
from watching import tell

pytestmark = pytest.mark.browser


@pytest.fixture
def instructors(browse, html):
    return browse(html.as_uri(), "/instructors.html")


def follow(page, words):
    """Click a link of the page; the explorer's figures, by name, policy and measure: (value, low, high)."""
    page.get_by_role("link", name=words, exact=True).click()
    page.locator(".live-explorer[data-ready=yes]").wait_for()
    found = {}
    for figure in ("levels", "differences"):
        shown = shown_at_rest(page, figure)
        for one, values in zip(shown["asked"], shown["values"], strict=True):
            found[figure, one["arms"][0]["policy"], one["measure"]] = values
    shown_at_rest(page, "table")
    rows = page.locator(".explorer-table tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.children].map((cell) => cell.firstChild.textContent))"
    )
    heads = [head.lower() for head in page.locator(".explorer-table thead th").all_text_contents()[1:]]
    return found, {name: dict(zip(heads, own, strict=True)) for name, *own in rows}


def test_more_accuracy_is_not_more_success(instructors):
    found, _ = follow(instructors, "a budget of 14")
    assert found["differences", "simple", "accuracy"][1] > 0
    assert found["differences", "simple", "success"][2] < 0


@pytest.mark.nightly
def test_useful_probes_need_not_help(instructors):
    found, table = follow(instructors, "nearly all probes")
    assert float(table["EnvProbe-Simple"]["useful"]) > 0.9
    assert float(table["EnvProbe-Simple"]["useful"]) > float(table["Periodic"]["useful"])
    for measure in ("accuracy", "success"):
        assert found["differences", "simple", measure][2] < 0


@pytest.mark.nightly
def test_a_gain_need_not_be_information(instructors):
    found, _ = follow(instructors, "As released")
    assert found["differences", "simple", "accuracy"] == [0, 0, 0]
    assert found["differences", "periodic", "accuracy"][2] < -5


@pytest.mark.nightly
def test_doubt_does_not_find_errors_of_the_sure(instructors):
    found, table = follow(instructors, "an overconfident agent")
    assert float(table["Self-Uncertainty"]["probes an episode"]) == 0
    assert found["levels", "self-uncertainty", "accuracy"][2] < 0.75


@pytest.mark.nightly
def test_an_interval_with_zero_says_that_these_pairs_cannot_decide(instructors):
    found, _ = follow(instructors, "on 220 seeds")
    _, low, high = found["differences", "simple", "accuracy"]
    assert low < 0 < high
    instructors.go_back()
    found, _ = follow(instructors, "on 2,000")
    assert found["differences", "simple", "accuracy"][2] < 0


@pytest.mark.nightly
def test_with_one_seed_policies_share_events_and_not_states(instructors):
    instructors.get_by_role("link", name="here", exact=True).click()
    pair = tell(instructors, record_pair("tooldag", ("simple", "no-probe"), 0, protocol="observed"))
    instructors.get_by_text(pair["about"], exact=True).wait_for()
    assert instructors.get_by_role("button", name="Where they part").is_visible()
    simple, none = pair["runs"]
    assert simple["gold"][0] == none["gold"][0]
    assert simple["gold"] != none["gold"]


@pytest.mark.nightly
def test_a_few_seeds_leave_a_wide_interval(instructors):
    instructors.get_by_role("link", name="Twenty seeds", exact=True).click()
    instructors.locator(".own-controls").wait_for()
    assert instructors.locator(".own-policy").get_by_label("Seeds").input_value() == "0:20"
    mine = lab.policy("mine")(lambda view: view.c + 2 * view.d)
    board = leaderboard(compete(mine, seeds="0:20", rivals=())).set_index("policy").loc["mine"]
    assert board["minus_simple_high"] - board["minus_simple_low"] > 2


def test_a_link_sets_up_a_class_and_what_was_run_can_be_handed_in(instructors):
    page = instructors
    page.get_by_role("link", name="this link", exact=True).click()
    page.locator(".own-controls").wait_for()
    seeds = page.locator(".own-policy").get_by_label("Seeds")
    assert seeds.input_value() == "500:560"
    page.get_by_text("Seeds 20000:20220 are held out").wait_for()
    said = json.loads(unquote(page.url.partition("#policy=")[2]))
    assert (said["seeds"], said["heldOut"], said["protocol"]) == ("500:560", "20000:20220", "observed")
    page.reload()
    page.locator(".own-controls").wait_for()
    assert seeds.input_value() == "500:560"
    page.goto(page.url.replace("20000", "550").replace("20220", "570"))
    page.get_by_text("its seeds 500:560 and its held-out seeds 550:570 share some").wait_for()


def class_of(page):
    """Regime and profile of a page's bar."""
    setting = page.evaluate("EnvProbe.bar.setting()")
    return [setting["regime"], setting["profile"]]


def test_the_bar_and_the_explorer_go_along_with_a_class(instructors):
    page = instructors
    page.get_by_role("link", name="this one", exact=True).click()
    page.locator(".live-bar").wait_for()
    assert class_of(page) == ["S3", "careful"]
    page.locator(".bd-article a[href*='main-results.html']").first.click()
    page.locator(".live-bar").wait_for()
    assert class_of(page) == ["S3", "careful"]
    page.goto(page.url.partition("/executed/")[0] + "/instructors.html")
    page.get_by_role("link", name="the explorer", exact=True).click()
    page.locator(".live-explorer[data-ready=yes]").wait_for()
    setting = page.evaluate("EnvProbe.bar.setting()")
    assert (setting["world"], setting["protocol"], setting["seeds"]) == (
        "tooldag", "observed:clock=stands", "500:720",
    )  # fmt: skip
    assert setting["policies"] == "simple,periodic"


def test_the_first_exercises_are_done_in_the_pages_own_figure(browse, html):
    """A link of the exercise sets the bar, and the figure answers."""
    page = browse(html.as_uri(), "/executed/exercises.html")
    figure = page.locator(".live-figure").first
    figure.scroll_into_view_if_needed()
    numbers = figure.locator(".lp-numbers")
    figure.locator("svg").first.wait_for()
    before = numbers.text_content()
    page.get_by_role("link", name="twice the budget", exact=True).click()
    page.wait_for_url("**/exercises.html?budget=14#first-steps")
    page.locator(".live-bar").wait_for()
    assert page.evaluate("EnvProbe.bar.setting().budget") == 14
    page.wait_for_function(
        "before => document.querySelector('.lp-numbers').textContent !== before", arg=before
    )
    assert len(parse_seeds(SMALL["seeds"])) < 220
    words = "\n".join(cell_source(cell) for cell in student_copy()["cells"])
    assert "{at}" not in words
    assert "twice the budget" in words
