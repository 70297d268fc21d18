"""Episodes that a rule chooses: the rule is worked anew here, and the recording is the one it names."""

import pandas as pd
import pytest

from envprobe_book import run
from envprobe_book.widgets.chosen import choose, where_a_probe_helps, worth_seeing
from envprobe_book.widgets.player import record_pair

PAIR = ("simple", "periodic")


def of_seeds(values):
    """Gaps in rooms, as written, by seed."""
    index = pd.MultiIndex.from_tuples([("paper", "objectstate", seed) for seed in values])
    return pd.Series([*values.values()], index)


@pytest.mark.parametrize(
    ("asked", "seed", "how", "alike"),
    [
        (-1, 4, "the median of 4, by how far EnvProbe-Simple ends from Periodic", 2),
        (6, 6, "chosen by hand", 1),
        (77, 77, "chosen by hand", 0),
    ],
)
def test_a_page_opens_with_the_typical_seed_or_the_one_asked_for(asked, seed, how, alike):
    gaps = of_seeds({3: -5.0, 9: 1.0, 4: 1.0, 6: 8.0})
    chosen = choose(gaps, PAIR, "objectstate", "paper", asked, budget=3)
    assert chosen.recorded == record_pair("objectstate", PAIR, seed, budget=3)
    assert (chosen.how, chosen.alike, chosen.seeds) == (how, alike, 4)
    assert chosen.about.startswith("A decision of EnvProbe-Simple in ")
    assert chosen.about.endswith(f", as written. Seed {seed} is {how}.")
    fired = [t for t, field in enumerate(chosen.recorded["runs"][0]["probe"]) if field >= 0]
    assert chosen.step in fired
    assert chosen.offered["start"] == chosen.step
    assert f"{alike} of 4 seeds" in chosen.offered["rarity"]
    last = chosen.recorded["runs"][0]["steps"] - 1
    assert choose(gaps, PAIR, "objectstate", "paper", asked, 999, budget=3).step == last


def test_where_a_probe_helps_the_first_reaches_the_goal_and_the_second_misses_it():
    episodes = run("objectstate", PAIR, protocols="paper", seeds="0:220", facts="helped_step")
    fits = {
        row.seed
        for row in episodes.itertuples()
        if row.policy == "simple" and row.success and row.helped_step >= 0
    } - {row.seed for row in episodes.itertuples() if row.policy == "periodic" and row.success}
    (found,) = where_a_probe_helps(episodes, PAIR)
    assert found["seed"] == min(fits)
    assert f"1 of {len(fits)} such" in found["label"]
    assert [one["reached"] for one in found["runs"]] == [True, False]
    assert where_a_probe_helps(episodes[~episodes["seed"].isin(fits)], PAIR) == []
    assert where_a_probe_helps(episodes[episodes["policy"] == "simple"], ("simple",)) == []


def test_the_menu_has_typical_seeds_of_all_and_the_furthest_of_one_protocol():
    places = [("paper", "tooldag"), ("released", "graphnav")]
    index = pd.MultiIndex.from_tuples([(*place, seed) for place in places for seed in (3, 4, 5)])
    gaps = pd.Series([0.0, -2.0, 7.0, 1.0, 1.0, 4.0], index)
    shown = worth_seeing(gaps, PAIR, "paper", budget=3)
    asked = [(one["world"], one["protocol"], one["seed"]) for one in shown]
    assert asked == [*(("tooldag", "paper", seed) for seed in (3, 5, 4)), ("graphnav", "released", 3)]
    alone = record_pair("tooldag", seed=5, budget=3)
    assert {name: shown[1][name] for name in alone} == alone
