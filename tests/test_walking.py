"""The walk from text to code: its values, its words, and the page in which a reader takes it."""

import json
import random

import numpy as np
import pytest
from playwright import sync_api as playwright

from built_book import SMALL, engine_page
from daily import nightly
from envprobe_book import compare, run
from envprobe_book.live_figures import walk
from envprobe_book.live_figures.explorer import FAULTS_IN_WORDS, explorer
from envprobe_book.live_figures.scripts import front_end
from envprobe_book.live_figures.walking import along
from envprobe_book.pages.markup import signed
from envprobe_book.pages.switches import OTHERS, deeds, protocol_title
from envprobe_core.errors import InputError
from envprobe_core.protocols import DEPARTURES, FAULTS, parse_protocol, switch_values

ACCURACY = {
    "start", "memory", "answer", "clock", "rates", "instances", "sight", "structure", "baselines", "end",
    "accuracy", "pairing", "encoding",
}  # fmt: skip
SETTLED = "document.querySelector('.live-walk').dataset.settled === 'yes'"


def test_every_departure_has_words_both_ways():
    assert {*deeds(), "seeds"} == {*DEPARTURES}
    for switch, words in deeds().items():
        assert {*words} == {*switch_values(switch)}


def test_every_other_switch_has_words_in_titles_and_in_the_explorer():
    assert {*OTHERS} == {*FAULTS, "seeds"}
    assert {*FAULTS_IN_WORDS} == {*FAULTS}


def test_a_switch_without_words_is_refused_with_the_place_where_they_belong(monkeypatch):
    monkeypatch.delitem(OTHERS, "delay")
    with pytest.raises(InputError, match=r"'delay' has no words in switches.json, nor in OTHERS; there are "):
        protocol_title("paper:delay=2")
    monkeypatch.delitem(FAULTS_IN_WORDS, "delay")
    with pytest.raises(
        InputError, match="'delay' has no words in FAULTS_IN_WORDS; there are those of wrong, f"
    ):
        explorer().as_data()


def test_a_walk_is_what_compare_finds_and_its_shares_add_up():
    one = walk("w", "simple", "periodic", "paper", "released", seeds="0:30", resamples=200)
    frame = one.frame
    episodes = run(policies="periodic simple", protocols=list(one.path), seeds="0:30", regimes="S2")
    found = compare(episodes, "simple", "periodic", "accuracy")
    whole = found[found["stratum"] == "combined"].set_index("protocol")["gain"]
    assert np.allclose(frame["value"], [whole[name] for name in frame["protocol"]], atol=1e-12)
    assert np.isclose(frame["share"].sum(), frame["value"].iloc[-1] - frame["value"].iloc[0], atol=1e-9)
    assert {*one.order} <= ACCURACY
    by_answers = frame["answers"][frame["name"].eq("withhold answers").idxmax() :]
    assert (by_answers == 0).all()  # of none that arrives
    assert frame["answers"].iloc[0] < 0
    assert len(one.order) > 8


@pytest.mark.parametrize("seed", range(6))
def test_the_order_moves_shares_and_not_the_end_and_idle_switches_nothing(seed):
    draw = random.Random(seed)
    order = draw.sample(sorted(ACCURACY), len(ACCURACY))
    idle = draw.choice(sorted({*DEPARTURES} - ACCURACY - {"seeds"}))
    cut = draw.randrange(len(order))
    names = [along("paper", "released", own)[-1] for own in (order[:cut], [*order[:cut], idle], order)]
    episodes = run(policies="periodic simple", protocols=[*dict.fromkeys([*names, "released"])], seeds="0:12")
    one, other, all_, code = (
        episodes.loc[episodes["protocol"] == name, "accuracy"].to_numpy() for name in (*names, "released")
    )
    assert np.array_equal(one, other)
    assert np.array_equal(all_, code)
    back = along("released", "paper", order)[-1]
    assert [getattr(parse_protocol(back), s) for s in ACCURACY] == [
        getattr(parse_protocol("paper"), s) for s in ACCURACY
    ]


@pytest.mark.browser
@pytest.mark.parametrize("width", nightly([390, 1400], 390))
def test_a_reader_walks_by_keyboard_and_nothing_moves_under_the_hand(browse, html, width):
    page = browse(html.as_uri(), "/executed/text-and-code.html")
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 844})
    page.locator(".live-walk").scroll_into_view_if_needed()
    said = page.locator(".live-walk-said")
    playwright.expect(said).to_contain_text("As written, EnvProbe-Simple ends")
    places = "[...document.querySelectorAll('.live-press')].map(b => b.offsetTop).join()"
    before = page.evaluate(places)
    page.locator("[data-switch=accuracy]").focus()
    page.keyboard.press("Space")
    page.wait_for_function(SETTLED)
    playwright.expect(said).to_contain_text("Counting over the steps")
    assert page.evaluate("document.activeElement.dataset.switch") == "accuracy"
    page.get_by_role("button", name="Press the rest").click()
    page.wait_for_function(SETTLED, timeout=60_000)
    playwright.expect(said).to_contain_text("This is the experiment as released.")
    page.get_by_role("button", name="The other way round").click()
    page.wait_for_function(SETTLED, timeout=60_000)
    playwright.expect(said).to_contain_text("Counting over the steps")
    forward = walk("w", "simple", "periodic", "paper", "released", seeds=SMALL["seeds"], resamples=200)
    share = forward.frame["share"].iloc[forward.order.index("start") + 1]
    playwright.expect(page.locator(".live-walk-twice")).to_contain_text(
        f"Starting from one look is worth {signed(share, 1)} ["
    )
    assert page.evaluate(places) == before
    assert "accuracy,round" in page.evaluate("new Promise(go => setTimeout(() => go(location.search), 400))")
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.browser
def test_a_notebook_has_the_walk_with_a_bar_of_its_own(browse, tmp_path):
    one = walk("w", "simple", "periodic", "paper", "released", seeds="0:12", resamples=200)
    state = json.dumps(one.as_data() | {"numbers": one.numbers.as_data()})
    script = f"{front_end()}\nEnvProbe.walking.show(document.querySelector('main'), {state});"
    path = engine_page(tmp_path, "walk.js", script, "<main></main>")
    page = browse(*path.as_uri().rpartition("page.html")[:2])
    page.get_by_role("button", name="Withhold answers").press("Enter")
    playwright.expect(page.locator(".live-walk-said")).to_contain_text("Withholding answers")
    playwright.expect(page.locator(".live-walk-answers")).to_contain_text("exactly nothing")
    page.get_by_role("slider", name="Budget").fill("0")
    playwright.expect(page.locator(".live-walk-said")).to_contain_text("changes nothing here")
    assert "walk=" not in page.url
