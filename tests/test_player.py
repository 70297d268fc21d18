"""The episode player: logs come from Python or from the page's engine, and one teller says them."""

import functools
import json
import random
import re

import numpy as np
import pytest

from envprobe_book.facts.replay import witness
from envprobe_book.page_engine import SCRIPT, inline_page_engine, knobs, write_page_engine
from envprobe_book.widgets.host import FOLDER, STYLES, module_text, style_text
from envprobe_book.widgets.player import Player, lexicon, record_pair
from envprobe_core.agents.profiles import PROFILES
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate, simulate_logged
from envprobe_core.policies import POLICIES, TERMS, custom_policy
from envprobe_core.protocols import PROTOCOLS, parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.runs.tables import step_table
from envprobe_core.worlds import WORLDS
from watching import serious, tell

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


# --- logs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(len(SETTINGS)))
def test_the_logs_are_those_of_an_independent_run(place):
    pair, (world, policies, seed, regime, protocol, profile, budget, gate) = recorded(place), SETTINGS[place]
    for name, run in zip(policies, pair["runs"], strict=True):
        own = gate if POLICIES[name].has_threshold else None
        condition = make_condition(world, name, regime, PROTOCOLS[protocol], profile, budget, own)
        seeds = np.array([seed])
        rows = step_table(condition, seeds, simulate_logged(condition, seeds)).to_dict("records")
        lines = rows[:-1]
        assert run["steps"] == len(lines)
        for table in TABLES:
            values = [[v for key, v in row.items() if key.startswith(f"{table} ")] for row in rows]
            assert run[table] == values
        assert run["place"] == [row["place"] for row in rows]
        assert run["probe"] == [-1 if line["probe"] is None else line["probe"] for line in lines]
        assert run["action"] == [line["action"] for line in lines]
        terms, seen = np.array(run["terms"]), witness(condition, seeds)
        for at, term in enumerate(TERMS):
            assert (terms[:, at] == seen.term(term)[0, : len(lines)]).all()
        if condition.policy.has_threshold and not condition.policy.replays:
            kept = [TERMS.index(term) for term in run["kept"]]
            score = functools.reduce(np.add, [terms[:, at] for at in kept])
            assert score.max(axis=1).tolist() == run["score"]
    json.dumps(pair, allow_nan=False)


def any_setting(luck, world):
    """Draw what a reader may choose."""
    protocol = luck.choice(list(PROTOCOLS))
    if luck.random() < 0.5:
        switches = luck.sample(knobs.SWITCHES, luck.randint(1, 4))
        protocol += ":" + ",".join(f"{one}={luck.choice(knobs.KNOBS[one])}" for one in switches)
    regime = luck.choice(list(REGIMES))
    return {
        "world": world,
        "policies": luck.sample(list(POLICIES), luck.choice([1, 2])),
        "seed": luck.choice([luck.randrange(300), luck.randrange(2**40)]),
        "regime": regime,
        "protocol": protocol,
        "profile": luck.choice(list(PROFILES)),
        "budget": luck.choice([None, 0, luck.randint(0, REGIMES[regime].horizon)]),
        "threshold": luck.choice([None, None, 0.75, 2.125, luck.uniform(-1, 4), 0.00002]),
    }


BESIDE = """async ([lexicon, settings, recorded]) => {
  const faults = [];
  for (const [at, setting] of settings.entries()) {
    const mine = JSON.stringify(await recordPair(EnvProbe.engine, lexicon, setting), sorted);
    const theirs = JSON.stringify(tellPair(lexicon, recorded[at]), sorted);
    if (mine !== theirs) faults.push([setting, firstDifference(JSON.parse(mine), JSON.parse(theirs))]);
  }
  return faults;
  function sorted(_, value) {
    const isRecord = value && typeof value === "object" && !Array.isArray(value);
    if (typeof value === "bigint") return Number(value);
    return isRecord ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value;
  }
  function firstDifference(one, other, path = "") {
    if (typeof one !== "object" || one === null || other === null) return [path, one, other];
    const differ = (key) => JSON.stringify(one[key]) !== JSON.stringify(other[key]);
    const keys = [...new Set([...Object.keys(one), ...Object.keys(other)])].filter(differ);
    return firstDifference(one[keys[0]], other[keys[0]], `${path}.${keys[0]}`);
  }
}"""


@pytest.fixture
def scripts(tmp_path, browse):
    """A page with the engine and the teller, as classic scripts."""
    module = (FOLDER / "episode.js").read_text(encoding="utf-8")
    (tmp_path / "engine.js").write_text(inline_page_engine(), encoding="utf-8")
    (tmp_path / "episode.js").write_text(module, encoding="utf-8")
    (tmp_path / "page.html").write_text(
        "<!doctype html><meta charset=utf-8><script src=engine.js></script><script src=episode.js></script>"
    )
    return browse(tmp_path.as_uri(), "/page.html")


@pytest.mark.browser
@pytest.mark.parametrize("world", WORLDS)
def test_the_pages_engine_has_the_logs_that_python_hands_over(scripts, world):
    luck = random.Random(f"pairs of {world}")
    settings = [any_setting(luck, world) for _ in range(12)]
    handed = [record_pair(**setting) for setting in settings]
    assert scripts.evaluate(BESIDE, [lexicon(), settings, handed]) == []


# --- words --------------------------------------------------------------------------------------


@pytest.mark.browser
@pytest.mark.parametrize("place", range(len(SETTINGS)))
def test_what_is_told_follows_from_the_logs(scripts, place):
    """Up to where they part both sides are the same."""
    pair = tell(scripts, recorded(place))
    for run, logs in zip(pair["runs"], recorded(place)["runs"], strict=True):
        right = (np.array(run["belief"]) == run["gold"]).sum(axis=1)
        assert run["right"] == right.tolist()
        assert run["accuracy"] == (right / len(run["gold"][0])).tolist()
        assert run["used"] == [sum(field >= 0 for field in run["probe"][:t]) for t in range(len(right))]
        kept = [TERMS.index(term) for term in logs["kept"] or TERMS]
        total = functools.reduce(np.add, [np.array(logs["terms"])[:, at] for at in kept])
        assert [top[0] for top in run["top"]] == total.argmax(axis=1).tolist()
        assert all(field < 0 or field in top for field, top in zip(run["probe"], run["top"], strict=True))
        after = np.array(run["acted"])
        moved = [np.flatnonzero(line).tolist() for line in after != np.array(run["gold"])[1:]]
        assert run["moved"] == moved
        assert [len(said) for said in run["world"]] == [len(fields) for fields in moved]
    (one, other), step = pair["runs"], pair["parts"]
    assert f"step {step}" in pair["parting"]
    for names, upto in ((TABLES, step + 1), (("probe", "action"), step)):
        assert all(one[name][:upto] == other[name][:upto] for name in names)
    deeds = any(one[name][step] != other[name][step] for name in ("probe", "action"))
    assert deeds or any(one[name][step + 1] != other[name][step + 1] for name in TABLES)


@pytest.mark.browser
def test_what_is_told_of_a_step_is_what_its_gate_compared(scripts):
    """A threshold is told as it is: scaled under `released`, it has three decimals."""
    minus, placebo = tell(scripts, recorded(0))["runs"]
    assert minus["threshold"] == 1.125
    assert all("1.125 and" in gate for gate in minus["gate"])
    for run, reply in ((minus, "the answer is only logged"), (placebo, "the answer is withheld")):
        assert [bool(told) for told in run["reply"]] == [field >= 0 for field in run["probe"]]
        assert all(reply in told for told in run["reply"] if told)
    simple = tell(scripts, recorded(3))["runs"][0]
    spent = [t for t in range(simple["steps"]) if simple["used"][t] == simple["budget"]]
    assert spent
    assert all(f"{simple['budget']} = {simple['budget']}: act" in simple["gate"][t] for t in spent)
    assert {simple["outcome"][t] for t in spent} <= {"spent", "below"}
    assert "but the judge vetoes the probe" in " ".join(tell(scripts, recorded(1))["runs"][0]["gate"])


@pytest.mark.browser
@pytest.mark.parametrize(("delay", "late"), [("1", "1 step"), ("2", "2 steps")])
def test_a_late_answer_says_by_how_many_steps(scripts, delay, late):
    run = tell(scripts, record_pair("objectstate", ("simple",), 9, protocol=f"paper:delay={delay}"))["runs"][
        0
    ]
    replies = [told for told in run["reply"] if told]
    assert replies
    assert all(f"but the answer comes {late} later;" in told for told in replies)


@pytest.mark.browser
def test_a_policy_of_ones_own_is_told_with_its_own_score(scripts):
    mine = custom_policy("mine", lambda view: 2.0 * view.d, "<b>Mine</b>")
    made = record_pair("graphnav", ("mine", "periodic"), 1003, "S1", "observed", "perfect", own=[mine])
    run = tell(scripts, made)["runs"][0]
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
    made = record_pair("objectstate", seed=1)
    page = opened(Player([made]))
    pair = tell(page, made)
    last = max(run["steps"] for run in pair["runs"])
    waits = [all(run["action"][t] < 0 and run["probe"][t] < 0 for run in pair["runs"]) for t in range(last)]
    stops = [t for t in range(last) if t == 0 or not (waits[t] and waits[t - 1])] + [last]
    assert len(stops) <= last
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
    told = tell(page, recorded(2))
    assert told["key"] in link
    page.evaluate("document.body.style.paddingTop = '3000px'")
    page.get_by_label("Episode", exact=True).select_option("0")
    page.wait_for_function("location.hash.endsWith('step=0')")
    page.evaluate("(hash) => { scrollTo(0, 0); location.hash = hash; }", link.partition("#")[2])
    page.get_by_text(told["about"], exact=True).wait_for()
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
@pytest.mark.nightly
def test_the_page_shows_what_was_recorded_to_everyone_and_fits_a_phone(opened):
    """At several steps: the table of all fields, the bars and the marks of the drawing."""
    alone = record_pair("graphnav", ("cd",), 4) | {"group": "one policy alone", "label": "seed 4"}
    shown = [alone, *map(recorded, range(3))]
    page = opened(Player([alone | {"start": 6}, *shown[1:]]), viewport={"width": 320, "height": 800})
    assert shown_step(page).startswith("6 of")
    for place, pair in enumerate([tell(page, one) for one in shown]):
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
    wanted = tell(page, record_pair("graphnav", **asked))
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


WRITING = """async () => {
  const [regime, switches] = ["Regime", "Switches"].map((label) =>
    document.getElementById([...document.querySelectorAll(".player-form label")]
      .find((one) => one.textContent.startsWith(label)).htmlFor));
  switches.focus();
  regime.value = "S3";
  regime.dispatchEvent(new Event("change", {bubbles: true}));
  for (let turn = 0; turn < 20; turn += 1) await null;  // until the form is read
  switches.value = "clock=st";
  switches.dispatchEvent(new Event("input", {bubbles: true}));
}"""


@pytest.mark.browser
def test_an_episode_that_comes_leaves_the_field_alone_that_a_reader_writes_in(opened):
    page = opened(Player([recorded(0)]))
    choose(page, World="graphnav", Regime="S1", Protocol="observed", Policy="simple", Beside="periodic")
    page.locator(".player-about", has_text="in S1 under").wait_for()
    page.evaluate(WRITING)
    page.locator(".player-about", has_text="in S3 under").wait_for()
    switches = page.locator(".player-form").get_by_label(re.compile("^Switches"))
    assert switches.input_value() == "clock=st"
    switches.press_sequentially("ands")
    switches.press("Tab")
    page.locator(".player-about", has_text="clock=stands").wait_for()
    choose(page, Regime="S1")
    page.locator(".player-about", has_text="in S1 under").wait_for()
    assert switches.input_value() == "clock=stands"


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
    page.get_by_text(tell(page, recorded(1))["about"], exact=True).wait_for()
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


CHOOSE = """async ([lexicon, setting, titles]) => {
  const survey = await surveySeeds(EnvProbe.engine, lexicon, setting);
  const kinds = Object.keys(PICK).map((kind) => [kind, PICK[kind](survey)]);
  return kinds.map(([kind, one]) => [kind, one.seed, one.gap, rarity(kind, survey, one, titles)]);
}"""


@pytest.mark.browser
@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_seeds_are_chosen_by_the_difference_and_it_is_said_how_rare_they_are(scripts, protocol):
    setting = {
        "world": "objectstate",
        "policies": ["simple", "periodic"],
        "regime": "S2",
        "profile": "typical",
    }
    setting |= {"protocol": protocol, "budget": None, "threshold": None}
    columns = []
    for policy in setting["policies"]:
        condition = make_condition("objectstate", policy, "S2", parse_protocol(protocol))
        columns.append(simulate(condition, condition.default_seeds())["accuracy"])
    seeds, gaps = condition.default_seeds(), np.round(100 * (columns[0] - columns[1]), 9)
    count = len(seeds)
    order = np.sort(gaps)
    median = order[(len(order) - 1) // 2]
    told = {row[0]: row[1:] for row in scripts.evaluate(CHOOSE, [lexicon(), setting, ["A", "B"]])}
    assert told["typical"][:2] == [seeds[gaps == median].min(), pytest.approx(median)]
    largest = np.abs(gaps).max()
    assert told["largest"][0] == seeds[np.abs(gaps) == largest].min()
    for seed, gap, sentence in told.values():
        assert sentence.startswith(f"Seed {seed}, ")
        assert f"{count} seeds" in sentence
        assert re.search("ahead of|behind|level", sentence)
        if gap:
            assert (
                f"{(np.abs(gaps) >= abs(gap)).sum()} of {count} seeds are at least as far apart" in sentence
            )
            assert f"{abs(gap):.1f} points" in sentence
