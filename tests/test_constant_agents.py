"""The public code, agents whose table never changes (`data/public/constant.py`): theorem, record, search."""

import importlib
import os
import sys
from itertools import chain, combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envprobe_book.claims import paper_values
from envprobe_core.sources import DATA
from envprobe_core.worlds import WORLDS

FOLDER = DATA / "public"
REPOSITORY = os.environ.get("ENVPROBE_PUBLIC_CODE", "")
"""A clone of the public repository at commit 3266b54, to run an episode again."""
ACT_AS_THE_SCRIBE = ("first-table", "true-first-table", "best-constant", "knows-all")


@pytest.fixture(scope="module")
def public():
    return pd.read_parquet(FOLDER / "constant.parquet")


@pytest.fixture(scope="module")
def constant():
    """The script, which stands beside the data and imports its neighbours by name."""
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module("constant")
    sys.path.remove(str(FOLDER))


def jaccard(one, other):
    """The overlap of two lists as the public code has it: an empty one matches an empty one alone."""
    one, other = set(one), set(other)
    if not one and not other:
        return 1.0
    return len(one & other) / len(one | other) if one and other else 0.0


@pytest.mark.parametrize("tools", [1, 5, 9, 16])
def test_everything_done_there_and_open_scores_seven_tenths_in_every_state(tools):
    """By the public weights: lists by overlap, outputs by the share of the true ones that are named."""
    every = range(tools)
    for done in range(tools + 1):
        completed, still_open = range(done), range(done, tools)
        outputs = 1.0  # each true one is named; of none, none is missing
        score = 0.3 * jaccard(every, completed) + 0.4 * outputs + 0.3 * jaccard(every, still_open)
        assert score == pytest.approx(0.7, abs=1e-12)


def test_the_public_code_gives_that_table_seven_tenths_in_every_episode(public):
    done = public[public["agent"] == "all-done"]
    assert done.groupby("regime").size().to_dict() == dict.fromkeys(("S1", "S2", "S3"), 10 * 220)
    np.testing.assert_allclose(done["accuracy"], 0.7, atol=1e-12)
    assert 0 < done["success"].mean() < 1


def test_every_printed_accuracy_on_tools_lies_below_it():
    printed = [
        one.value
        for one in paper_values()
        if one.column in ("method_accuracy", "reference_accuracy", "accuracy")
        and one.relation == "="
        and one.row.startswith("procedural")
    ]
    assert len(printed) == 17
    assert max(printed) < 0.7


def test_each_agent_plays_every_policy_on_the_same_seeds_with_the_scribes_luck(public):
    assert (
        public.groupby(["world", "regime", "agent", "policy"])["seed"]
        .agg(list)
        .map(lambda own: own == list(range(42, 262)))
        .all()
    )
    scribes = pd.read_parquet(FOLDER / "episodes.parquet")
    scribes = scribes[(scribes["agent"] == "scribe") & (scribes["regime"] == "S2") & (scribes["seed"] < 262)]
    key = ["world", "policy", "seed"]
    scribes = scribes.set_index(key)
    for agent in ACT_AS_THE_SCRIBE:  # only the table differs, so that the episodes are the same
        own = public[(public["agent"] == agent) & public["policy"].isin(["no-probe", "periodic", "simple"])]
        own = own.set_index(key)
        for name in ("success", "steps", "probes"):
            assert (own[name] == scribes.loc[own.index, name]).all()


def test_a_table_that_never_changes_gains_more_than_the_scribe_who_copies_what_it_sees(public):
    def ahead(frame):
        wide = frame.pivot_table(index="seed", columns="policy", values="accuracy")
        return 100 * (wide["simple"] - wide["periodic"]).mean()

    scribes = pd.read_parquet(FOLDER / "episodes.parquet")
    scribes = scribes[(scribes["agent"] == "scribe") & (scribes["regime"] == "S2") & (scribes["seed"] < 262)]
    kept = public[public["agent"] == "first-table"]
    for world, least in zip(WORLDS, (15, 12, 12), strict=True):
        gain = ahead(kept[kept["world"] == world])
        assert gain > max(least, ahead(scribes[scribes["world"] == world]) + 3)


def test_an_agent_that_knows_all_gains_as_much_with_nothing_to_repair_and_stays_below_the_certain_table(
    public,
):
    wide = public[public["agent"] == "knows-all"].pivot_table(
        index="seed", columns="policy", values="accuracy"
    )
    assert wide.mean().max() < 0.7
    assert 9 < 100 * (wide["simple"] - wide["periodic"]).mean() < 12


def test_an_agent_that_never_acts_has_the_score_of_what_it_writes(public):
    idle = public[public["agent"] == "never-acts"].groupby("world")["accuracy"]
    assert idle.mean().round(12).to_dict() == {"graphnav": 0.2, "objectstate": 0.3, "tooldag": 0.7}
    assert (idle.std() < 1e-12).all()
    assert not public.loc[public["agent"].str.startswith("never-acts"), "success"].any()
    best = public[(public["agent"] == "never-acts-best") & (public["world"] == "tooldag")]
    np.testing.assert_allclose(best["accuracy"], 1.0)


lists = st.lists(st.sampled_from("abcd"), unique=True).map(sorted)


@settings(max_examples=60)
@given(st.lists(st.tuples(lists, st.floats(0.1, 1.0)), min_size=1, max_size=6))
def test_the_best_list_is_the_best_of_all_lists(constant, values):
    def mean(own):
        return sum(weight * jaccard(own, true) for true, weight in values)

    every = chain.from_iterable(combinations("abcd", count) for count in range(5))
    assert mean(constant.best_slot(values, jaccard)) == pytest.approx(max(map(mean, every)))


def test_the_best_map_and_the_best_place_are_the_most_frequent(constant):
    maps = [({"a": 1, "b": 2}, 1.0), ({"a": 1}, 1.0), ({"a": 3}, 1.5)]
    assert constant.best_slot(maps, jaccard) == {"a": 1, "b": 2}
    assert constant.best_slot([("x", 1.0), ("y", 1.5), ("x", 1.0)], jaccard) == "x"


@pytest.mark.skipif(not REPOSITORY, reason="no clone of the public code is at hand")
@pytest.mark.parametrize(
    "agent", ["first-table", "true-first-table", "never-acts-first", "all-done", "knows-all"]
)
def test_the_record_is_what_the_public_code_gives_again(public, constant, agent):
    cell = ("tooldag", "S2", agent, "simple")
    again = constant.episodes(REPOSITORY, *cell, range(42, 47))
    kept = public.set_index(["world", "regime", "agent", "policy"]).sort_index().loc[cell]
    kept = kept[kept["seed"] < 47]
    assert [row[6] for row in again] == pytest.approx(kept["accuracy"].tolist())
