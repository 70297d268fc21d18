"""The protocol audit: one switch at a time, against plain runs; the list of departures; the way between."""

import csv
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envprobe_core.claims import find_claim
from envprobe_core.claims.judge import judge
from envprobe_core.claims.printed import PAPER_FOLDER
from envprobe_core.errors import InputError
from envprobe_core.experiments import load_grid
from envprobe_core.protocol_audit import departures, drawing, headlines, running, tables, text, turning
from envprobe_core.protocols import PROTOCOLS, SWITCHES, parse_protocol, switch_values
from envprobe_core.statistics import paired_bootstrap

SEEDS, RESAMPLES = "0:14", 200


@pytest.fixture(scope="module")
def episodes():
    return running.load_audit("paper released", "S1", "typical", SEEDS)


@pytest.fixture(scope="module")
def effects(episodes):
    return turning.turned_alone(headlines.measure_all(episodes), "paper released", RESAMPLES)


# --- turning switches -------------------------------------------------------------------------


@pytest.mark.parametrize("base", [*PROTOCOLS, "paper:clock=stands,end=success"])
@pytest.mark.parametrize("switch", running.TURNED)
def test_a_turned_protocol_differs_in_exactly_one_switch(base, switch):
    before, after = parse_protocol(base), parse_protocol(running.turn(base, [switch]))
    assert [one for one in SWITCHES if getattr(before, one) != getattr(after, one)] == [switch]


def test_every_switch_but_seeds_is_turned():
    assert set(running.TURNED) == set(SWITCHES) - {"seeds"}


def test_all_turned_paper_is_released_but_for_its_seeds():
    turned = parse_protocol(running.turn("paper", running.TURNED))
    released = PROTOCOLS["released"]
    assert turned == replace(released, name=turned.name, seeds="text")


@given(st.sets(st.sampled_from(running.TURNED)))
def test_what_is_played_depends_on_no_scorer(turned):
    protocol = parse_protocol(running.turn("released", sorted(turned)))
    played = running.played(protocol)
    for switch in SWITCHES:
        wanted = switch_values(switch)[0] if switch in running.SCORED else getattr(protocol, switch)
        assert getattr(played, switch) == wanted


def test_shared_rollouts_give_what_plain_runs_give(episodes):
    """Switches that only a scorer reads are not run again; the numbers must be the same."""
    for name in (
        "paper",
        "released",
        "paper:accuracy=slots",
        "released:pairing=same-step",
        "paper:end=success",
    ):
        plain = load_grid(policies="simple cd", regime="S1", protocols=[name], seeds=SEEDS)
        own = episodes[(episodes["protocol"] == name) & episodes["policy"].isin(["simple", "cd"])]
        key = ["world", "policy", "seed"]
        first, second = (frame.sort_values(key, ignore_index=True) for frame in (plain, own))
        for column in ("accuracy", "accuracy_slot", "success", "useful", "collapse_onset", "steps"):
            np.testing.assert_array_equal(first[column], second[column], err_msg=f"{name} {column}")
    assert not episodes.duplicated(["protocol", "world", "policy", "seed"]).any()


# --- headlines --------------------------------------------------------------------------------


def test_headlines_are_what_verdicts_measure(episodes, effects):
    own = effects[effects["switch"] == ""].set_index(["base", "claim"])
    claims = [
        replace(find_claim(name), regime="S1")
        for name in ("main-procedural", "main-combined", "main-cd", "collapse-delay", "upr-spatial")
    ]
    found = judge(episodes, claims, protocols=["paper", "released"], profile="typical", resamples=RESAMPLES)
    for verdict in found.itertuples():
        if verdict.estimate is not None and np.isfinite(verdict.estimate):
            assert own.loc[(verdict.protocol, verdict.claim), "estimate"] == pytest.approx(verdict.estimate)


def test_a_change_of_a_mean_is_the_paired_bootstrap():
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=30), rng.normal(size=30)
    worlds, ones = np.repeat([0, 1], 15), np.ones(30)
    found = headlines.change(
        headlines.Counts(first, ones, worlds), headlines.Counts(second, ones, worlds), 500
    )
    wanted = paired_bootstrap(second - first, worlds, 500)
    np.testing.assert_allclose(found, (wanted.mean, wanted.low, wanted.high), atol=1e-9)


def test_a_change_of_a_ratio_by_hand():
    worlds = np.zeros(2, dtype=int)
    before = headlines.Counts(np.array([1.0, 2.0]), np.array([2.0, 4.0]), worlds)
    after = headlines.Counts(np.array([3.0, 3.0]), np.array([4.0, 4.0]), worlds)
    assert headlines.change(before, after, 50) == (0.25, 0.25, 0.25)
    assert np.isnan(headlines.change(None, after, 50)).all()


def test_scorers_leave_what_they_do_not_score_exactly_alone(effects):
    part = effects[effects["switch"].isin(running.SCORED) & (effects["claim"] == "level-success-simple")]
    assert len(part) == 2 * len(running.SCORED)
    assert (part[["estimate", "low", "high"]] == 0).all().all()


def test_printed_numbers_come_from_the_paper():
    assert headlines.GAINS[0].printed == 11.76
    assert headlines.LEVELS[0].printed == pytest.approx(43.1)
    assert all(headline.printed is not None for headline in headlines.HEADLINES)


# --- the way between two protocols ------------------------------------------------------------


def test_groups_hold_every_switch_once():
    held = [switch for group in turning.GROUPS.values() for switch in group]
    assert sorted(held) == sorted(running.TURNED)


def test_the_way_leads_from_one_protocol_to_the_other():
    full = (1 << len(turning.GROUPS)) - 1
    assert turning.between("paper", "released", 0) == "paper"
    last = parse_protocol(turning.between("paper", "released", full))
    assert last == replace(PROTOCOLS["released"], name=last.name, seeds="text")
    assert turning.path_ends("paper released") == ("paper", "released")
    assert turning.path_ends("observed") == ("observed", "released")
    assert turning.path_ends("released") == ("released", "paper")


def test_shares_of_the_way_add_up_to_the_difference():
    games = turning.load_path("paper released", "S1", "typical", "0:6")
    path = turning.split_path(games, RESAMPLES)
    grid = load_grid(policies="simple periodic", regime="S1", protocols="paper released", seeds="0:6")
    means = grid.groupby(["protocol", "world", "policy"])["accuracy"].mean()
    for stratum, part in path.groupby("stratum"):
        rows = part.set_index("part")["value"]
        shares = rows[list(turning.GROUPS)].sum()
        assert rows["first"] + shares == pytest.approx(rows["last"])
        assert part["after"].iloc[-2] == pytest.approx(rows["last"])
        if stratum == "procedural":
            for end, name in (("first", "paper"), ("last", "released")):
                gain = 100 * (means[name, "tooldag", "simple"] - means[name, "tooldag", "periodic"])
                assert rows[end] == pytest.approx(gain)


# --- a gain without answers -------------------------------------------------------------------


def test_scripted_agents_gain_without_any_answer():
    """The public code's own run: a gain and a later collapse, and no field more right at the end."""
    found = turning.summarise_witnesses(
        turning.load_witnesses("paper released", seeds="42:82"), RESAMPLES
    ).set_index("profile")
    assert (found["differ"] == 0).all()
    scripted = found.loc[list(turning.WITNESSES)]
    assert (scripted["low"] > 0).all()
    assert (scripted["terminal"] == 0).all()
    assert (scripted["onset_simple"] > scripted["onset_periodic"]).all()
    assert (scripted["success_simple"] == scripted["success_periodic"]).all()


# --- departures -------------------------------------------------------------------------------


def test_every_switch_is_among_the_departures():
    every = departures.load_departures()
    assert {one.switch for one in every if one.switch} == set(SWITCHES)
    assert len({one.switch for one in every if one.switch}) == sum(bool(one.switch) for one in every)


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("switch", "clocks", "switch 'clocks'"),
        ("places", "sec:none", "no place"),
        ("code", "", "may be empty"),
        ("id", "start", "given twice"),
    ],
)
def test_damaged_departures_are_refused(tmp_path, column, value, why):
    with (PAPER_FOLDER / "departures.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    rows[1][column] = value
    path = tmp_path / "departures.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, departures.COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(InputError, match=why):
        departures.load_departures(path)


# --- the page ---------------------------------------------------------------------------------


def test_the_page_is_made_of_what_was_run(episodes, effects):
    path = turning.split_path(turning.load_path("paper released", "S1", "typical", "0:4"), RESAMPLES)
    agents = turning.summarise_witnesses(
        turning.load_witnesses("paper released", "S1", "typical", "0:4"), RESAMPLES
    )
    shown = [
        tables.show_headlines(effects),
        tables.show_effects(effects, headlines.GAINS, "gains"),
        tables.show_effects(effects, headlines.LEVELS, "levels"),
        tables.show_simulated(effects),
        tables.show_listed(),
        tables.show_path(path, "paper", "released"),
        tables.show_witnesses(agents),
    ]
    for table in shown:
        assert {len(row) for row in table.rows} == {len(table.head)} == {len(table.align)}
    assert len(shown[1].rows) == 2 * len(running.TURNED)
    assert len(shown[3].rows) + len(shown[4].rows) == len(departures.load_departures())
    for said in (
        text.tell_audit(episodes, effects),
        *(text.tell_effects(effects, one.claim) for one in headlines.HEADLINES),
        text.tell_inert(effects),
        text.tell_path(path, "paper", "released"),
        text.tell_witnesses(agents),
        text.tell_departures(),
    ):
        assert not re.search(r"\bnan\b", said.markdown)
    for one in headlines.HEADLINES:
        drawn = drawing.plot_tornado(effects, one.claim)
        assert not re.search(r"\bnan\b", drawn.alt)
        assert 'role="img"' in drawn.svg()
