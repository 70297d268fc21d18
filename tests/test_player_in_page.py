"""Episodes that a page makes with its engine: the same object as `record_pair` makes, value for value."""

import json
import random
import re

import numpy as np
import pytest

from envprobe_book.page_engine import inline_page_engine, knobs
from envprobe_book.widgets.host import FOLDER
from envprobe_book.widgets.player import lexicon, record_pair
from envprobe_core.agents.profiles import PROFILES
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PROTOCOLS, parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS

pytestmark = pytest.mark.browser
RECORD = """async ([lexicon, settings]) => {
  const pairs = [];
  for (const setting of settings) pairs.push(await recordPair(EnvProbe.engine, lexicon, setting));
  return JSON.stringify(pairs);
}"""
CHOOSE = """async ([lexicon, setting, titles]) => {
  const survey = await surveySeeds(EnvProbe.engine, lexicon, setting);
  const kinds = Object.keys(PICK).map((kind) => [kind, PICK[kind](survey)]);
  return kinds.map(([kind, one]) => [kind, one.seed, one.gap, rarity(kind, survey, one, titles)]);
}"""


@pytest.fixture
def page(tmp_path, browse):
    """A page with the engine and the module, as classic scripts."""
    module = (FOLDER / "episode.js").read_text(encoding="utf-8")
    (tmp_path / "engine.js").write_text(inline_page_engine(), encoding="utf-8")
    (tmp_path / "episode.js").write_text(module, encoding="utf-8")
    (tmp_path / "page.html").write_text(
        "<!doctype html><meta charset=utf-8><script src=engine.js></script><script src=episode.js></script>"
    )
    return browse(tmp_path.as_uri(), "/page.html")


def any_setting(luck, world):
    """Draw what a reader may choose."""
    protocol = luck.choice(list(PROTOCOLS))
    if luck.random() < 0.5:
        switches = luck.sample(knobs.SWITCHES, luck.randint(1, 4))
        protocol += ":" + ",".join(f"{one}={luck.choice(knobs.KNOBS[one])}" for one in switches)
    regime = luck.choice(list(REGIMES))
    return {
        "world": world,
        "policies": luck.sample(list(POLICIES), luck.choice([1, 2, 2, 2])),
        "seed": luck.choice([luck.randrange(300), luck.randrange(2**40)]),
        "regime": regime,
        "protocol": protocol,
        "profile": luck.choice(list(PROFILES)),
        "budget": luck.choice([None, 0, luck.randint(0, REGIMES[regime].horizon)]),
        "threshold": luck.choice([None, None, 0.75, 2.125, luck.uniform(-1, 4), 0.00002]),
    }


@pytest.mark.parametrize("world", WORLDS)
def test_random_settings_give_the_pairs_of_python(page, world):
    luck = random.Random(f"pairs of {world}")
    settings = [any_setting(luck, world) for _ in range(24)]
    found = json.loads(page.evaluate(RECORD, [lexicon(), settings]))
    for setting, pair in zip(settings, found, strict=True):
        wanted = json.loads(json.dumps(record_pair(**setting)))
        for made, told in zip(pair["runs"], wanted["runs"], strict=True):
            differ = [name for name in told if made.get(name) != told[name]]
            assert not differ, (setting, differ, made[differ[0]], told[differ[0]])
        assert pair == wanted, setting


def test_every_policy_of_every_world_is_told_alike(page):
    settings = [
        {"world": world, "policies": [policy], "seed": 7, "regime": "S2", "protocol": protocol}
        | {"profile": "typical", "budget": None, "threshold": None}
        for world in WORLDS
        for protocol in PROTOCOLS
        for policy in POLICIES
    ]
    found = json.loads(page.evaluate(RECORD, [lexicon(), settings]))
    for setting, pair in zip(settings, found, strict=True):
        assert pair == json.loads(json.dumps(record_pair(**setting))), setting


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_seeds_are_chosen_by_the_difference_and_it_is_said_how_rare_they_are(page, protocol):
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
    told = {row[0]: row[1:] for row in page.evaluate(CHOOSE, [lexicon(), setting, ["A", "B"]])}
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
