"""The episode player: what it shows is what was recorded, and a reader can watch it without a mouse."""

import copy
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from envprobe_core.facts.witness import witness
from envprobe_core.policies import POLICIES, TERMS, custom_policy
from envprobe_core.runs.tables import step_table
from envprobe_core.show.timeline import word
from envprobe_core.sweep import Piece, Task, simulate
from envprobe_core.widgets.host import STYLES, module_text, style_text
from envprobe_core.widgets.player import (
    BEST,
    MEDIAN,
    WORST,
    Player,
    Setting,
    choose,
    read_setting,
    record_choices,
    record_pair,
)
from envprobe_core.worlds import WORLDS, make_world

SETTINGS = [
    Setting("tooldag", ("simple", "periodic"), 3),
    Setting("tooldag", ("minus-d", "placebo"), 44, protocol="released"),
    Setting("objectstate", ("judge", "oracle"), 1001, regime="S3"),
    Setting("objectstate", ("simple", "no-probe"), 5, protocol="observed", profile="perfect"),
    Setting("graphnav", ("self-uncertainty", "yoked"), 8, protocol="observed", budget=3),
    Setting("graphnav", ("simple", "random"), 60, protocol="released", threshold=0.75),
]
PAIRS = [
    record_pair(setting) | {"group": setting.world, "label": f"seed {setting.seed}"} for setting in SETTINGS
]
TABLES = ("belief", "gold", "confidence", "staleness")
each_pair = pytest.mark.parametrize(("setting", "pair"), list(zip(SETTINGS, PAIRS, strict=True)))


def seeds(setting):
    return np.array([setting.seed], dtype=np.int64)


# --- what is recorded -------------------------------------------------------------------------


@each_pair
def test_the_player_shows_what_the_log_holds(setting, pair):
    """Every table, decision and accuracy equals the step log of an independent run of the same cell."""
    for cell, run in zip(setting.cells(), pair["runs"], strict=True):
        log = simulate(Task((Piece(0, cell, seeds(setting)),)), reports=True)
        *lines, last = step_table(cell, seeds(setting), log).to_pylist()
        assert run["steps"] == len(lines)
        assert run["success"] == last["success"]
        for name in TABLES:
            values = [[v for key, v in line.items() if key.startswith(f"{name} ")] for line in (*lines, last)]
            assert run[name] == values
        assert run["place"] == [line["place"] for line in (*lines, last)]
        assert run["probe"] == [-1 if line["probe"] is None else line["probe"] for line in lines]
        assert run["action"] == [line["action"] for line in lines]
        for t, line in enumerate((*lines, last)):
            gold = {key[5:]: value for key, value in line.items() if key.startswith("gold ")}
            right = sum(line[f"belief {field}"] == value for field, value in gold.items())
            assert run["right"][t] == right
            assert run["accuracy"][t] == right / len(gold)
            assert run["used"][t] == sum(line["probe"] is not None for line in lines[:t])


@each_pair
def test_terms_add_up_to_the_score_of_the_gate(setting, pair):
    for cell, run in zip(setting.cells(), pair["runs"], strict=True):
        seen = witness(cell, seeds(setting))
        terms = {name: np.array(run[name]) for name in TERMS}
        for name in TERMS:
            assert (terms[name] == seen.term(name)[0, : run["steps"]]).all()
        total = sum((terms[name] for name in run["terms"][1:]), terms[run["terms"][0]])
        assert (total == seen.rho()[0, : run["steps"]]).all()
        recorded = seen.trajectory.score[0, : run["steps"]]
        if cell.policy.has_threshold and not cell.policy.replays:
            assert (total.max(axis=1) == recorded).all()
        assert [top[0] for top in run["top"]] == total.argmax(axis=1).tolist()
        assert all(field < 0 or field in top for field, top in zip(run["probe"], run["top"], strict=True))


@each_pair
def test_outcomes_follow_the_gate(setting, pair):
    for cell, run in zip(setting.cells(), pair["runs"], strict=True):
        score = simulate(Task((Piece(0, cell, seeds(setting)),)), reports=True).score[0]
        for t, outcome in enumerate(run["outcome"]):
            assert (outcome == "probe") == (run["probe"][t] >= 0) == bool(run["reply"][t])
            if outcome == "below":
                assert score[t] < run["threshold"]
            if outcome == "spent":
                assert run["used"][t] == run["budget"]
            if outcome == "veto":
                assert cell.policy.name == "judge"
                assert score[t] >= run["threshold"]


def test_withheld_answers_are_told_as_withheld():
    """The table keeps what it held, and the player says so."""
    shown = 0
    for setting, phrase in ((SETTINGS[1], "only logged"), (SETTINGS[4], "withheld")):
        run = record_pair(setting)["runs"][0 if phrase == "only logged" else 1]
        for reply in filter(None, run["reply"]):
            shown += 1
            assert phrase in reply
            assert "corrects" not in reply
            assert "confirms" not in reply
    assert shown


@each_pair
def test_changes_by_the_world_are_those_of_gold(setting, pair):
    """What the drawing flags at a probe, where nobody acts, is what gold did."""
    for run in pair["runs"]:
        gold = np.array(run["gold"])
        for t, moved in enumerate(run["moved"]):
            assert len(moved) == len(run["world"][t])
            if run["probe"][t] >= 0:
                assert moved == np.flatnonzero(gold[t] != gold[t + 1]).tolist()


# --- two policies -----------------------------------------------------------------------------


@each_pair
def test_up_to_where_they_part_both_sides_are_the_same(setting, pair):
    one, other = pair["runs"]
    step = pair["parts"]
    assert step is not None
    tables = [[np.array(run[name]) for name in TABLES] for run in (one, other)]
    for a, b in zip(*tables, strict=True):
        assert (a[: step + 1] == b[: step + 1]).all()
    assert (one["probe"][:step], one["action"][:step]) == (other["probe"][:step], other["action"][:step])
    later = [[table[step + 1] for table in side] for side in tables]
    differs = any((a != b).any() for a, b in zip(*later, strict=True))
    assert differs or (one["probe"][step], one["action"][step]) != (
        other["probe"][step],
        other["action"][step],
    )
    assert f"step {step}" in pair["parting"]


def test_runs_that_never_part():
    twice = record_pair(Setting("graphnav", ("simple", "simple"), 2))
    assert twice["parts"] is None
    silent = record_pair(Setting("tooldag", ("simple", "placebo"), 50, protocol="released"))
    assert silent["parts"] is None
    assert "never part" in silent["parting"]
    assert silent["runs"][0]["belief"] == silent["runs"][1]["belief"]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("regime", ["S1", "S3"])
def test_a_scene_holds_every_field_once_and_every_action(world, regime):
    setting = Setting(world, seed=7, regime=regime)
    scene = record_pair(setting)["scene"]
    made = make_world(world, setting.cells()[0].regime, setting.cells()[0].protocol)
    drawn = [field for tool in scene.get("tools", ()) for field in tool["parts"]]
    drawn += [part[name] for part in scene.get("things", ()) for name in ("location", "held") if name in part]
    drawn += [part["field"] for name in ("doors", "edges") for part in scene.get(name, ())]
    if world == "graphnav":
        drawn.append(0)
    assert sorted(drawn) == list(range(made.fields))
    assert len(scene["aims"]) == made.actions
    for field in range(made.fields):
        for value in range(-1, int(made.domain[field])):
            assert scene["words"][scene["word_of"][field]][value + 1] == word(made, field, value)


# --- episodes chosen by rule ------------------------------------------------------------------


def test_rules_pick_the_extremes_and_the_median():
    gaps = pd.DataFrame({"protocol": "paper", "world": "tooldag", "seed": [4, 2, 9, 1, 7]})
    gaps["difference"] = [0.1, 0.3, -0.2, 0.3, 0.0]
    assert choose(gaps).set_index("rule")["seed"].to_dict() == {BEST: 1, MEDIAN: 4, WORST: 9}


def test_choices_are_recorded_with_their_rule():
    seeds = {"protocol": "released", "world": "tooldag", "seed": [40, 41, 42], "difference": [0.2, 0.0, -0.1]}
    named = {"policy": "simple", "other": "periodic", "regime": "S2", "profile": "typical"}
    choices = choose(pd.DataFrame(seeds)).assign(**named)
    assert choices["rule"].tolist() == [BEST, MEDIAN, WORST]
    for seed, pair in zip((40, 41, 42), record_choices(choices), strict=True):
        assert pair["label"].endswith(f": seed {seed}")
        setting = Setting("tooldag", ("simple", "periodic"), seed, protocol="released")
        assert pair["runs"] == record_pair(setting)["runs"]


# --- the live form ----------------------------------------------------------------------------

CHOSEN = {
    "world": "graphnav", "first": "simple", "second": "periodic", "protocol": "observed", "regime": "S1",
    "profile": "perfect", "seed": "1003", "budget": "", "threshold": "0.5",
}  # fmt: skip


def replies(setting, monkeypatch):
    """What a live player sends for a question, and for a message that is none."""
    player, sent = Player(live=True), []
    monkeypatch.setattr(player, "send", sent.append)
    player._receive(None, {"kind": "ask", "request": 5, "setting": setting}, [])
    player._receive(None, {"kind": "other"}, [])
    return sent


def test_a_live_player_answers_with_the_episode_asked_for(monkeypatch):
    asked = Setting("graphnav", seed=1003, regime="S1", protocol="observed", profile="perfect", threshold=0.5)
    pair = record_pair(asked)
    assert replies(CHOSEN, monkeypatch) == [{"kind": "answer", "request": 5, "pair": pair}]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": "x"}, "seeds 'x'"),
        ({"seed": "0:3"}, "3 episodes"),
        ({"budget": "2.5"}, "not a whole number"),
        ({"budget": "99"}, "budget 99 is not in 0..20"),
        ({"threshold": "nan"}, "not a finite number"),
        ({"first": "nobody"}, "unknown policy 'nobody'"),
        ({"protocol": "paper:clock=backwards"}, "accepts runs or stands"),
    ],
)
def test_a_live_player_says_what_it_cannot_run(change, message, monkeypatch):
    (answer,) = replies(CHOSEN | change, monkeypatch)
    assert message in answer["error"]
    assert "pair" not in answer


def test_a_policy_of_ones_own_is_shown_with_its_own_score():
    mine = custom_policy("mine", lambda view: 2.0 * view.d, "<b>Mine</b>")
    player = Player(live=True, policies=[mine])
    assert ("mine", "<b>Mine</b>") in player.state["choices"]["first"]
    setting = read_setting(CHOSEN | {"first": "mine", "threshold": ""}, {"mine": mine})
    run = record_pair(setting)["runs"][0]
    assert run["own_score"]
    assert any(run["probe"][t] >= 0 for t in range(run["steps"]))
    assert "compares its own score, 2.00, with 1.50" in run["gate"][0]


# --- in a browser -----------------------------------------------------------------------------


def write_page(folder: Path, player: Player) -> str:
    """Write the player into a page as the book's extension does, and return the page's address."""
    modules = json.dumps({"player": module_text("player")}).replace("<", "\\u003c")
    script = (STYLES / "static-widgets.js").as_uri()
    page = folder / "page.html"
    page.write_text(
        "<!doctype html><html lang='en' data-theme='light'><head><meta charset='utf-8'><title>Player</title>"
        f"<meta name='viewport' content='width=device-width'><style>{style_text('player')}</style>"
        f"<script>window.WIDGET_MODULES = {modules};</script><script src='{script}' defer></script></head>"
        f"<body><main><h1>Player</h1>{player.static_html()}</main></body></html>",
        encoding="utf-8",
    )
    return page.as_uri()


@pytest.fixture
def opened(chromium, tmp_path):
    """Open a player in a page; fails on any error in the console or request to another host."""
    faults, contexts = [], []

    def open_player(player, **settings):
        context = chromium.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        page.on(
            "request",
            lambda asked: faults.append(asked.url) if not asked.url.startswith(("file:", "blob:")) else None,
        )
        page.goto(write_page(tmp_path, player))
        page.locator("[data-ready=yes]").wait_for()
        return page

    yield open_player
    for context in contexts:
        context.close()
    assert not faults


def value_text(pair, t):
    """What the slider says of a step."""
    said = [f"{run['title']} {run['brief'][t] if t < run['steps'] else 'has ended'}" for run in pair["runs"]]
    return f"step {t} of {max(run['steps'] for run in pair['runs'])}: {'; '.join(said)}"


def shown_step(page):
    return page.locator(".player-step").inner_text()


@pytest.mark.browser
def test_a_reader_steps_by_mouse_and_by_keyboard(opened):
    page = opened(Player(PAIRS))
    last = PAIRS[0]["runs"][0]["steps"]
    for name, step in (
        ("Next step", 1), ("Last step", last), ("Previous step", last - 1), ("First step", 0),
        ("Where they part", PAIRS[0]["parts"]),
    ):  # fmt: skip
        page.get_by_role("button", name=name).click()
        assert shown_step(page) == f"{step} of {last}"
    slider = page.get_by_role("slider", name="Step")
    slider.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    assert shown_step(page) == f"{last - 1} of {last}"
    assert slider.get_attribute("aria-valuetext") == value_text(PAIRS[0], last - 1)
    page.get_by_role("button", name="First step").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert shown_step(page) == f"2 of {last}"
    told = page.locator(".player-told").inner_text()
    assert all(run["sentence"][2] in told for run in PAIRS[0]["runs"])


@pytest.mark.browser
def test_waits_are_skipped_unless_the_reader_wants_them(opened):
    pair = record_pair(Setting("objectstate", seed=1))
    last = max(run["steps"] for run in pair["runs"])
    idle = [
        all(t >= run["steps"] or (run["action"][t] < 0 and run["probe"][t] < 0) for run in pair["runs"])
        for t in range(last + 1)
    ]
    stops = [t for t in range(len(idle)) if t in (0, last) or not (idle[t] and idle[t - 1])]
    assert len(stops) < len(idle)
    page = opened(Player([pair]))
    seen = [shown_step(page)]
    while seen[-1] != f"{last} of {last}":
        page.get_by_role("button", name="Next step").click()
        seen.append(shown_step(page))
    assert seen == [f"{t} of {last}" for t in stops]
    page.get_by_label("skip waits").uncheck()
    page.get_by_role("button", name="Previous step").click()
    assert shown_step(page) == f"{last - 1} of {last}"


@pytest.mark.browser
def test_a_link_restores_episode_and_step(opened):
    page = opened(Player(PAIRS), viewport={"width": 800, "height": 500})
    page.get_by_label("Episode").select_option("2")
    page.get_by_role("slider", name="Step").fill("4")
    page.wait_for_function("location.hash.endsWith('step=4')")
    link = page.url
    assert PAIRS[2]["key"] in link
    page.evaluate("document.body.style.paddingTop = '3000px'")
    page.get_by_label("Episode").select_option("0")
    page.wait_for_function("location.hash.endsWith('step=0')")
    page.evaluate("(hash) => { scrollTo(0, 0); location.hash = hash; }", link.partition("#")[2])
    page.get_by_text(PAIRS[2]["about"], exact=True).wait_for()
    assert shown_step(page).startswith("4 of")
    page.wait_for_function("document.querySelector('.player').getBoundingClientRect().top < innerHeight / 2")
    page.evaluate("location.hash = '#episode=nowhere&step=x'")
    assert shown_step(page).startswith("4 of")


@pytest.mark.browser
def test_one_policy_alone_is_shown_from_a_step_on(opened):
    pair = record_pair(Setting("graphnav", ("cd",), 4))
    page = opened(Player([pair], start=6))
    assert shown_step(page).startswith("6 of")
    assert page.locator(".player-run").count() == 1
    assert pair["runs"][0]["gate"][6] in page.locator(".player-story").inner_text()
    assert page.get_by_role("button", name="Where they part").count() == 0


@pytest.mark.browser
def test_it_plays_pauses_and_stops_at_the_end(opened):
    short = copy.deepcopy(PAIRS[0])
    page = opened(Player([short]))
    page.clock.install()
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(3600)
    assert shown_step(page).startswith("3 of")
    assert page.locator(".player-told").get_attribute("aria-live") == "off"
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(5000)
    assert shown_step(page).startswith("3 of")
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(60_000)
    assert shown_step(page) == "30 of 30"
    assert page.get_by_role("button", name="Play").count() == 1


READ_TABLE = """() => [...document.querySelectorAll(".player-table")].map((table) =>
  [...table.querySelectorAll("tbody tr")].map((line) =>
    [...line.children].map((cell) => cell.textContent)))"""


@pytest.mark.browser
@pytest.mark.parametrize("place", range(len(PAIRS)))
def test_the_page_shows_what_was_recorded(opened, place):
    """At several steps: the table of all fields, the bars and the marks of the drawing."""
    pair = PAIRS[place]
    page = opened(Player(PAIRS))
    page.get_by_label("Episode").select_option(str(place))
    for summary in page.get_by_text("All fields as a table").all():
        summary.click()
    scene = pair["scene"]
    longest = max(run["steps"] for run in pair["runs"])
    for t in sorted({0, 3, longest // 2, longest}):
        page.get_by_role("slider", name="Step").fill(str(t))
        tables = page.evaluate(READ_TABLE)
        assert len(tables) == 2
        for number, (run, table) in enumerate(zip(pair["runs"], tables, strict=True)):
            at = min(t, run["steps"])
            belief, gold = (np.array(run[name][at]) for name in ("belief", "gold"))
            terms = [run[name] for name in TERMS]
            for field, line in enumerate(table):
                words = scene["words"][scene["word_of"][field]]
                state = (
                    "right" if belief[field] == gold[field] else "unknown" if belief[field] < 0 else "wrong"
                )
                assert line[:3] == [scene["fields"][field], words[gold[field] + 1], words[belief[field] + 1]]
                assert line[3].endswith(state)
                if at < run["steps"]:
                    assert [float(cell) for cell in line[6:10]] == pytest.approx(
                        [term[at][field] for term in terms], abs=0.0051
                    )
            side = page.locator(".player-run").nth(number)
            assert f"{run['right'][at]} of {len(gold)} right" in side.locator(".player-facts").inner_text()
            bars = side.locator(".player-score").count()
            assert bars == (len(run["top"][at]) if at < run["steps"] else 0)
            unknown = side.locator("svg .player-badge-unknown").count()
            wrong = side.locator("svg .player-badge-wrong").count()
            if scene["kind"] != "rooms":  # what is believed not held is not drawn in the hand
                assert unknown >= int((belief < 0).sum()) - 3
            assert wrong + unknown <= 2 * len(gold)
            if (belief == gold).all():
                assert wrong + unknown == 0


@pytest.mark.browser
def test_text_of_others_never_becomes_markup(opened):
    pair = copy.deepcopy(PAIRS[0])
    evil = "<script>window.broken = 1</script><img src=x onerror='window.broken = 1'>"
    pair["scene"]["fields"] = [evil + name for name in pair["scene"]["fields"]]
    pair["scene"]["words"] = [[evil + text for text in words] for words in pair["scene"]["words"]]
    pair["label"] = pair["about"] = pair["parting"] = evil
    for run in pair["runs"]:
        run["title"] = evil
        for name in ("gate", "deed", "reply", "sentence", "brief"):
            run[name] = [evil + text for text in run[name]]
        run["world"] = [[evil] for _ in run["world"]]
        run["wrote"] = [[[evil, False]] for _ in run["wrote"]]
    page = opened(Player([pair, pair]))
    for summary in page.get_by_text("All fields as a table").all():
        summary.click()
    for _ in range(3):
        page.get_by_role("button", name="Next step").click()
    assert page.evaluate("window.broken") is None
    assert page.locator(".player script, .player img").count() == 0
    assert page.locator(".player-table tbody tr").first.inner_text().count("<script>") == 3


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_serious_for_axe(opened, theme):
    from axe_playwright_python.sync_playwright import Axe

    page = opened(Player(PAIRS))
    page.evaluate(
        """(theme) => {
          document.documentElement.dataset.theme = theme;
          const [ground, ink, surface, muted] = theme === "dark"
            ? ["#14181e", "#ced6dd", "#222832", "#9ca4af"] : ["#ffffff", "#222832", "#f5f5f5", "#48566b"];
          document.documentElement.style.cssText = `--pst-color-background: ${ground};
            --pst-color-text-base: ${ink}; --pst-color-surface: ${surface};
            --pst-color-text-muted: ${muted}; background: ${ground}; color: ${ink}`;
        }""",
        theme,
    )
    for summary in page.get_by_text("All fields as a table").all():
        summary.click()
    for place in (0, 2, 5):
        page.get_by_label("Episode").select_option(str(place))
        page.get_by_role("button", name="Next step").click()
        found = [v for v in Axe().run(page).response["violations"] if v["impact"] in ("serious", "critical")]
        assert not found, [(v["id"], [node["html"][:200] for node in v["nodes"][:4]]) for v in found]


@pytest.mark.browser
@pytest.mark.parametrize("width", [320, 390])
def test_it_fits_a_phone(opened, width):
    page = opened(Player(PAIRS), viewport={"width": width, "height": 800})
    for place in range(len(PAIRS)):
        page.get_by_label("Episode").select_option(str(place))
        page.get_by_role("slider", name="Step").fill("5")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), place


def test_without_javascript_the_first_episode_is_told():
    player = Player(PAIRS)
    assert PAIRS[0]["runs"][0]["sentence"][4].replace("<", "&lt;") in player.static_html()
    assert set(POLICIES) <= set(player.state["marks"])
