"""One step of a language model: requests that differ in one line, recorded answers, and what is counted."""

import json
from itertools import product

import pandas as pd
import pytest
from scipy.stats import binomtest

from envprobe_book.analyses import model_runs
from envprobe_book.analyses.model_runs import least_change, read_one_step, shares_as_told
from envprobe_core.agents.model import ModelAgent
from envprobe_core.errors import InputError
from envprobe_core.llm import replays, running
from envprobe_core.llm.one_step import ASKS, AT_A_TIME, HINTS, PROMPTS, OneStep
from envprobe_core.llm.prompts import find_version
from envprobe_core.statistics import mcnemar_exact
from envprobe_core.worlds import WORLDS
from in_sight import run_cell

RECORDED = running.FOLDER / "smollm2.one-step.gz"
AGENT = ModelAgent("nobody", find_version(PROMPTS), "none")


def asked(situations, worlds=tuple(WORLDS)):
    return list(OneStep(agent=AGENT, worlds=worlds, situations=situations).arms())


def test_the_requests_of_a_situation_differ_in_the_answer_line_and_the_hint_alone():
    for arms in zip(*[iter(asked(3))] * 12, strict=True):
        assert [(one.answered, one.hint, one.ask) for one in arms] == [
            *product((False, True), HINTS, range(ASKS))
        ]
        assert len({(one.world, one.seed, one.step, one.field, one.value) for one in arms}) == 1
        assert (
            len({json.dumps(one.request | {"messages": one.request["messages"][:-1]}) for one in arms}) == 1
        )
        situation = arms[ASKS * len(HINTS)].request["messages"][-1][
            "content"
        ]  # with the line, without a hint
        told = f"Told: {arms[0].field}:{arms[0].value}"
        assert situation.count(told) == 1
        seen = situation.partition("Seen: ")[2].split("; ")
        assert not any(shown.startswith(f"{arms[0].field}:") for shown in seen)
        for one in arms:
            expected = situation if one.answered else situation.replace(told, "Told: nothing")
            expected += f"\nMethod hint: {HINTS[one.hint]}" if HINTS[one.hint] else ""
            assert one.request["messages"][-1]["content"] == expected
            assert one.read(
                f'{{"set":"{one.field}:{one.value},0,9;","fade":0,"act":"wait","risk":0}}'
            ).entries
        assert len({one.identity for one in arms}) == ASKS


def test_a_schema_has_room_for_the_checked_field_alone():
    for one in asked(2)[::12]:
        pattern = one.request["response_format"]["json_schema"]["schema"]["properties"]["set"]["pattern"]
        assert pattern.startswith(f"^({one.field}:(")
        assert pattern.count(";") == 1


def test_fewer_situations_are_the_first_of_more_and_one_episode_gives_one():
    keys = [
        [(one.world, one.seed, one.step) for one in asked(count, ("tooldag", "graphnav"))]
        for count in (AT_A_TIME, 10)
    ]
    assert keys[1][: len(keys[0])] == keys[0]
    places = {(world, seed) for world, seed, _ in keys[1]}
    assert len(places) == 20


def test_the_recorded_answers_are_whole_and_counted_as_by_hand():
    steps = read_one_step(RECORDED)
    situations = steps.groupby(["world", "seed"]).size()
    assert (situations == 12).all()
    assert situations.groupby("world").nunique().eq(1).all()
    given = {"pd": pd, "model_runs": model_runs, "mcnemar_exact": mcnemar_exact, "steps": steps}
    tested = run_cell("language-model", "one-step-test", **given).asked_twice
    found = tested.set_index(["changed", "beside"])
    first = steps[steps["ask"] == 0].set_index(["world", "seed"])
    shares = shares_as_told(steps)
    own = first.query("world == 'objectstate' and answered and hint == 'English'")
    assert (
        shares.loc[f"{WORLDS['objectstate']}, with the answer line", "English hint"] == own["as_told"].mean()
    )
    assert shares.shape == (2 * first.index.get_level_values("world").nunique(), len(HINTS))
    with_it, without = (
        first[(first["hint"] == "Chinese") & (first["answered"] == line)] for line in (True, False)
    )
    only = (with_it["as_told"] & ~without["as_told"]).sum(), (~with_it["as_told"] & without["as_told"]).sum()
    row = found.loc[("the answer line", "Chinese hint")]
    assert (row["only with"], row["only without"]) == only
    assert row["p"] == pytest.approx(binomtest(int(only[0]), int(sum(only))).pvalue)
    assert row["other action"] == (with_it["action"] != without["action"]).sum()


@pytest.mark.nightly
def test_a_file_without_an_answer_is_refused(tmp_path):
    head, answers = replays.read_answers(RECORDED, OneStep)

    class Store:
        def find(self, key):
            return answers[key]

    path = tmp_path / "less.one-step.gz"
    replays.write_answers(path, head, Store(), [key.hex() for key in list(answers)[1:]])
    with pytest.raises(InputError, match="has no answer to step"):
        read_one_step(path)


@pytest.mark.parametrize("pairs", [16, 48, 120])
def test_the_least_change_is_found_four_times_in_five(pairs):
    share = least_change(pairs)
    finds = [binomtest(count, count).pvalue < 0.05 if count else False for count in range(pairs + 1)]
    chance = pd.Series([binom_pmf(count, pairs, share) for count in range(pairs + 1)])
    assert chance[finds].sum() == pytest.approx(0.8, abs=0.01)


def binom_pmf(count, n, share):
    from math import comb

    return comb(n, count) * share**count * (1 - share) ** (n - count)
