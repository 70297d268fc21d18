"""The episode player: what it shows is what was recorded, and a reader can watch it without a mouse."""

import functools
import json
import re

import numpy as np
import pytest

from envprobe_book.facts.replay import witness
from envprobe_book.page_engine import SCRIPT, write_page_engine
from envprobe_book.pages.timeline import WAITS
from envprobe_book.widgets.host import STYLES, module_text, style_text
from envprobe_book.widgets.player import Player, record_pair
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate_logged
from envprobe_core.policies import POLICIES, TERMS, custom_policy
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.runs.tables import step_table
from watching import serious

TABLES = ("belief", "gold", "confidence", "staleness")
SETTINGS = [  # world, policies, seed, regime, protocol, profile, budget, threshold
    ("tooldag", ("minus-d", "placebo"), 44, "S2", "released", "typical", None, None),
    ("objectstate", ("judge", "oracle"), 1001, "S3", "paper", "typical", None, None),
    ("graphnav", ("self-uncertainty", "yoked"), 8, "S2", "observed", "perfect", 3, None),
    ("tooldag", ("simple", "random"), 60, "S2", "paper", "typical", None, 0.75),
]


@functools.cache
def recorded(place):
    """A setting's recording, made once where a test wants it."""
    own = SETTINGS[place]
    return record_pair(*own) | {"group": own[0], "label": f"seed {own[2]}"}


# --- what is recorded -------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(len(SETTINGS)))
def test_the_player_shows_what_the_log_holds(place):
    """Tables, decisions and accuracies are those of an independent run; terms add up to the gate's score; up
    to where they part both sides are the same."""
    pair, (world, policies, seed, regime, protocol, profile, budget, gate) = recorded(place), SETTINGS[place]
    for name, run in zip(policies, pair["runs"], strict=True):
        own = gate if POLICIES[name].has_threshold else None
        condition = make_condition(world, name, regime, PROTOCOLS[protocol], profile, budget, own)
        seeds = np.array([seed])
        rows = step_table(condition, seeds, simulate_logged(condition, seeds)).to_pylist()
        lines = rows[:-1]
        assert run["steps"] == len(lines)
        for table in TABLES:
            values = [[v for key, v in row.items() if key.startswith(f"{table} ")] for row in rows]
            assert run[table] == values
        assert run["place"] == [row["place"] for row in rows]
        assert run["probe"] == [-1 if line["probe"] is None else line["probe"] for line in lines]
        assert run["action"] == [line["action"] for line in lines]
        right = (np.array(run["belief"]) == run["gold"]).sum(axis=1)
        assert run["right"] == right.tolist()
        assert run["accuracy"] == (right / len(run["gold"][0])).tolist()
        assert run["used"] == [sum(field >= 0 for field in run["probe"][:t]) for t in range(len(right))]
        seen = witness(condition, seeds)
        terms = {term: np.array(run[term]) for term in TERMS}
        assert all((terms[term] == seen.term(term)[0, : len(lines)]).all() for term in TERMS)
        total = functools.reduce(np.add, [terms[term] for term in run["terms"]])
        if condition.policy.has_threshold and not condition.policy.replays:
            assert (total.max(axis=1) == seen.trajectory.score[0, : len(lines)]).all()
        assert [top[0] for top in run["top"]] == total.argmax(axis=1).tolist()
        assert all(field < 0 or field in top for field, top in zip(run["probe"], run["top"], strict=True))
    (one, other), step = pair["runs"], pair["parts"]
    assert f"step {step}" in pair["parting"]
    for names, upto in ((TABLES, step + 1), (("probe", "action"), step)):
        assert all(one[name][:upto] == other[name][:upto] for name in names)
    deeds = any(one[name][step] != other[name][step] for name in ("probe", "action"))
    assert deeds or any(one[name][step + 1] != other[name][step + 1] for name in TABLES)


def test_what_is_told_of_a_step_is_what_its_gate_compared():
    """A threshold is told as it is: scaled under `released`, it has three decimals."""
    minus, placebo = recorded(0)["runs"]
    assert minus["threshold"] == 1.125
    assert all("1.125 and" in gate for gate in minus["gate"])
    for run, reply in ((minus, "the answer is only logged"), (placebo, "the answer is withheld")):
        assert [bool(told) for told in run["reply"]] == [field >= 0 for field in run["probe"]]
        assert all(reply in told for told in run["reply"] if told)
    simple = recorded(3)["runs"][0]
    spent = [t for t in range(simple["steps"]) if simple["used"][t] == simple["budget"]]
    assert spent
    assert all(f"{simple['budget']} = {simple['budget']}: act" in simple["gate"][t] for t in spent)
    assert {simple["outcome"][t] for t in spent} <= {"spent", "below"}
    spoken = Player([recorded(0)]).fallback  # to readers without JavaScript
    assert all(told in spoken for run in (minus, placebo) for told in (*run["gate"], run["brief"][-1]))
    assert "but the judge vetoes the probe" in " ".join(recorded(1)["runs"][0]["gate"])


def test_a_policy_of_ones_own_is_shown_with_its_own_score():
    mine = custom_policy("mine", lambda view: 2.0 * view.d, "<b>Mine</b>")
    run = record_pair("graphnav", ("mine", "periodic"), 1003, "S1", "observed", "perfect", own=[mine])[
        "runs"
    ][0]
    assert max(run["probe"]) >= 0
    assert "compares its own score, 2.00, with 1.5:" in run["gate"][0]


# --- in a browser -----------------------------------------------------------------------------


def write_page(folder, player, engine=True):
    """Write the player into a page as the book's extensions do, and return the page's address."""
    modules = json.dumps({"player": module_text("player")}).replace("<", "\\u003c")
    if engine:
        write_page_engine(folder)
    scripts = [SCRIPT] * engine + [(STYLES / "static-widgets.js").as_uri()]
    loaded = "".join(f"<script src='{script}' defer></script>" for script in scripts)
    page = folder / "page.html"
    page.write_text(
        "<!doctype html><html lang='en' data-theme='light'><head><meta charset='utf-8'><title>Player</title>"
        f"<meta name='viewport' content='width=device-width'><style>{style_text('player')}</style>"
        f"<script>window.WIDGET_MODULES = {modules};</script>{loaded}</head>"
        f"<body><main><h1>Player</h1>{player.static_html()}</main></body></html>",
        encoding="utf-8",
    )
    return page.as_uri()


@pytest.fixture
def opened(browse, tmp_path):
    """Open a player in a page."""

    def open_player(player, engine=True, address="", **settings):
        page = browse(
            "file:", f"{write_page(tmp_path, player, engine)}{address}".removeprefix("file:"), **settings
        )
        page.locator("[data-ready=yes]").wait_for()
        return page

    return open_player


def value_text(pair, t):
    """What the slider says of a step."""
    said = [f"{run['title']} {run['brief'][min(t, run['steps'])]}" for run in pair["runs"]]
    return f"Step {t} of {max(run['steps'] for run in pair['runs'])}: {'; '.join(said)}."


def shown_step(page):
    return page.locator(".player-step").inner_text()


@pytest.mark.browser
def test_a_reader_steps_by_mouse_by_keyboard_and_by_the_clock(opened):
    """Rows of waits are one stop, unless the reader wants them all."""
    pair = record_pair("objectstate", seed=1)
    last = max(run["steps"] for run in pair["runs"])
    waits = [all(run["brief"][t] == WAITS for run in pair["runs"]) for t in range(last)]
    stops = [t for t in range(last) if t == 0 or not (waits[t] and waits[t - 1])] + [last]
    assert len(stops) <= last
    page = opened(Player([pair]))
    page.clock.install()
    slider = page.get_by_role("slider", name="Step")

    def click(name, *steps):
        for step in steps:
            page.get_by_role("button", name=name).click()
            assert shown_step(page) == f"{step} of {last}"

    click("Next step", *stops[1:])
    click("Previous step", stops[-2])
    click("First step", 0)
    page.get_by_label("skip waits").uncheck()
    click("Last step", last)
    click("Where they part", pair["parts"])
    click("Last step", last)
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert slider.get_attribute("aria-valuetext") == value_text(pair, last - 1)
    page.get_by_role("button", name="First step").focus()
    for key in ("Enter", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert page.locator(".player-told").inner_text() == value_text(pair, 2)
    page.keyboard.press("Home")
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(3600)
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(2500)
    assert shown_step(page) == f"3 of {last}"
    for key in ("End", "ArrowLeft"):
        page.keyboard.press(key)
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(3600)
    assert shown_step(page) == f"{last} of {last}"
    assert page.get_by_role("button", name="Play").count() == 1


@pytest.mark.browser
def test_a_link_restores_episode_and_step(opened):
    page = opened(Player([recorded(place) for place in range(3)]), viewport={"width": 800, "height": 500})
    page.get_by_label("Episode", exact=True).select_option("2")
    page.get_by_role("slider", name="Step").fill("4")
    page.wait_for_function("location.hash.endsWith('step=4')")
    link = page.url
    assert recorded(2)["key"] in link
    page.evaluate("document.body.style.paddingTop = '3000px'")
    page.get_by_label("Episode", exact=True).select_option("0")
    page.wait_for_function("location.hash.endsWith('step=0')")
    page.evaluate("(hash) => { scrollTo(0, 0); location.hash = hash; }", link.partition("#")[2])
    page.get_by_text(recorded(2)["about"], exact=True).wait_for()
    page.wait_for_function("document.querySelector('.player').getBoundingClientRect().top < innerHeight / 2")
    page.evaluate("location.hash = '#episode=nowhere&step=x'")
    assert shown_step(page).startswith("4 of")


READ_TABLE = """() => [...document.querySelectorAll(".player-table")].map((table) =>
  [...table.querySelectorAll("tbody tr")].map((line) =>
    [...line.children].map((condition) => condition.textContent)))"""


def open_tables(page):
    for number in range(page.locator(".player-run").count()):
        page.locator(".player-run details").nth(number).evaluate("(details) => (details.open = true)")
        page.locator(".player-table").nth(number).wait_for(state="attached")  # it is filled once it is open


@pytest.mark.browser
def test_the_page_shows_what_was_recorded_to_everyone_and_fits_a_phone(opened):
    """At several steps: the table of all fields, the bars and the marks of the drawing."""
    alone = record_pair("graphnav", ("cd",), 4) | {"group": "one policy alone", "label": "seed 4"}
    shown = [alone, *map(recorded, range(3))]
    page = opened(Player(shown, start=6), viewport={"width": 320, "height": 800})
    assert shown_step(page).startswith("6 of")
    for place, pair in enumerate(shown):
        page.get_by_label("Episode", exact=True).select_option(str(place))
        open_tables(page)
        switch = page.get_by_role("group", name="Policy in sight").get_by_role("button").all()
        for t in (3, max(run["steps"] for run in pair["runs"])):
            page.get_by_role("slider", name="Step").fill(str(t))
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), place
            for number, (run, table) in enumerate(zip(pair["runs"], page.evaluate(READ_TABLE), strict=True)):
                side = page.locator(".player-run").nth(number)
                if switch:
                    switch[number].click()
                assert side.is_visible()
                check_side(side, pair["scene"], run, table, min(t, run["steps"]))
        assert serious(page) == []


def check_side(side, scene, run, table, at):
    """One policy's side of the player at a step."""
    belief, gold = (np.array(run[name][at]) for name in ("belief", "gold"))
    for field, line in enumerate(table):
        words = scene["words"][scene["word_of"][field]]
        state = "right" if belief[field] == gold[field] else "unknown" if belief[field] < 0 else "wrong"
        assert line[:3] == [scene["fields"][field], words[gold[field] + 1], words[belief[field] + 1]]
        assert line[3].endswith(state)
        if at < run["steps"]:
            terms = [run[name][at][field] for name in TERMS]
            assert [float(condition) for condition in line[6:10]] == pytest.approx(terms, abs=0.0051)
    assert f"{run['right'][at]} of {len(gold)} right" in side.locator(".player-facts").inner_text()
    assert side.locator(".player-score").count() == (len(run["top"][at]) if at < run["steps"] else 0)
    marks = side.locator("svg :is(.player-badge-unknown, .player-badge-wrong)").count()
    assert bool(marks) == bool((belief != gold).any())


# --- any other episode --------------------------------------------------------------------------


def choose(page, **chosen):
    """Fill in the form, opened first, and leave each field as a reader does."""
    form = page.locator(".player-form")
    if not form.is_visible():
        page.get_by_text("Choose any other episode").click()
    for label, value in chosen.items():
        control = form.get_by_label(re.compile(f"^{label}\\b"))
        if label in ("Seed", "Budget", "Threshold", "Switches"):
            control.fill(value)
            control.press("Tab")
        else:
            control.select_option(value)


@pytest.mark.browser
def test_a_page_plays_any_episode_says_what_it_cannot_and_links_to_it(opened):
    page = opened(Player([recorded(0)]))
    about, message = page.locator(".player-about"), page.locator(".player-message")
    choose(page, World="graphnav", Regime="S1", Protocol="observed", Policy="simple", Beside="periodic")
    choose(page, Seed="1003", Threshold="0.5", Switches="clock=stands")
    asked = {"seed": 1003, "regime": "S1", "protocol": "observed:clock=stands", "threshold": 0.5}
    wanted = record_pair("graphnav", **asked)
    page.get_by_text(wanted["about"], exact=True).wait_for()
    page.get_by_role("slider", name="Step").fill("5")
    page.get_by_text(value_text(wanted, 5), exact=True).wait_for()
    page.wait_for_function("location.hash.endsWith('step=5')")
    for label, value, said in (
        ("Budget", "99", "The budget 99 is not in 0..20."),
        ("Budget", "2.5", "The budget “2.5” is not a whole number."),
        ("Seed", "0:3", "The seed “0:3” is not a whole number."),
        ("Threshold", "high", "The threshold “high” is not a number."),
        ("Switches", "clock=backwards", "The protocol switch clock accepts runs or stands"),
    ):
        before = page.locator(".player-form").get_by_label(re.compile(f"^{label}\\b")).input_value()
        choose(page, **{label: value})
        message.get_by_text(said).wait_for()
        assert about.inner_text() == wanted["about"]
        choose(page, **{label: before})
        page.wait_for_function("document.querySelector('.player-message').textContent === ''")
    page.get_by_role("slider", name="Step").fill("5")
    page.wait_for_function("location.hash.endsWith('step=5')")
    linked = opened(Player([recorded(0)]), address=page.evaluate("location.hash"))
    linked.get_by_text(wanted["about"], exact=True).wait_for()
    assert shown_step(linked).startswith("5 of")
    choose(linked, Beside="")
    linked.wait_for_function("document.querySelectorAll('.player-run').length === 1")
    assert linked.locator(".player-form").get_by_label("Seed").input_value() == "1003"


@pytest.mark.browser
def test_buttons_choose_a_seed_by_keyboard_too(opened):
    page = opened(Player([recorded(1)]))
    said = {"Typical seed": "median", "Largest difference": "largest", "Random seed": "at random"}
    for name, how in said.items():
        page.get_by_role("button", name=name).focus()
        page.keyboard.press("Enter")
        rare = page.locator(".player-rarity")
        rare.get_by_text(re.compile(f"^Seed .*{how}.* 30 seeds")).wait_for()
        seed = re.match(r"Seed (\d+)", rare.inner_text())[1]
        page.locator(".player-about").get_by_text(f"seed {seed}:").wait_for()
        assert page.locator(".player-form").get_by_label("Seed").input_value() == seed


@pytest.mark.browser
def test_without_an_engine_the_stored_episodes_stay(opened):
    page = opened(Player([recorded(0), recorded(1)]), engine=False)
    page.get_by_text("so only the stored episodes can be shown").wait_for()
    assert page.get_by_role("button", name="Typical seed").is_disabled()
    page.get_by_label("Episode", exact=True).select_option("1")
    page.get_by_text(recorded(1)["about"], exact=True).wait_for()
    assert page.get_by_text("so only the stored episodes can be shown").is_visible()


@pytest.mark.browser
def test_a_policy_in_python_is_shown_and_it_is_said_that_no_page_runs_it(opened):
    mine = custom_policy("mine", lambda view: 2.0 * view.d, "<b>Mine</b>")
    page = opened(Player([record_pair("objectstate", ("mine", "simple"), 3, own=[mine])]))
    page.locator(".player-name", has_text="<b>Mine</b>").wait_for()
    page.get_by_text("<b>Mine</b> is a policy in Python, which a page cannot run").wait_for()
    page.get_by_role("button", name="Typical seed").click()
    page.get_by_text("Choose a policy that the page can run.").wait_for()


@pytest.mark.browser
def test_a_phone_shows_one_policy_with_the_steps_at_hand(opened):
    page = opened(Player([recorded(0)]), viewport={"width": 390, "height": 760})
    sides, switch = page.locator(".player-run"), page.get_by_role("group", name="Policy in sight")
    assert [side.is_visible() for side in sides.all()] == [True, False]
    switch.get_by_role("button").nth(1).focus()
    page.keyboard.press("Enter")
    assert [side.is_visible() for side in sides.all()] == [False, True]
    sides.nth(1).locator(".player-scene").evaluate(
        "(drawing) => scrollBy(0, drawing.getBoundingClientRect().top - 250)"
    )
    slider = page.get_by_role("slider", name="Step").bounding_box()
    assert 0 <= slider["y"] < 200
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.set_viewport_size({"width": 1400, "height": 900})
    assert [side.is_visible() for side in sides.all()] == [True, True]
    assert not switch.is_visible()
