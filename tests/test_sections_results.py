"""Sections of results: their pure parts against hand-worked cases, their tables against plain averages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envprobe_core.cells import make_cell
from envprobe_core.claims.printed import inconsistencies
from envprobe_core.protocols import RELEASED, parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.sections import (
    everywhere,
    normalized,
    paired,
    report,
    sides,
    stability,
    stress,
    timed,
    useful,
)
from envprobe_core.sweep import Piece, Task, run_cells, simulate

SEEDS, RESAMPLES = "0:14", 200


@pytest.fixture(scope="module")
def probes():
    return useful.load_useful("S1", "paper released", "typical", SEEDS)


# --- episodes with probe timing ---------------------------------------------------------------


def test_timed_episodes_are_those_of_the_sweep():
    cells = [
        make_cell(world, policy, "S1", protocol)
        for protocol in (parse_protocol("paper"), RELEASED)
        for world in ("tooldag", "graphnav")
        for policy in ("simple", "random")
    ]
    seeds = np.array([5, 3, 9])
    frame = timed.run_timed(cells, seeds)
    plain = run_cells(cells, seeds)
    for name in ("accuracy", "success", "probes", "useful", "steps"):
        by_seed = frame[name].to_numpy()
        order = np.lexsort((plain["seed"], plain["cell"]))
        np.testing.assert_array_equal(by_seed, plain[name][order])
    assert frame["seed"].tolist() == [3, 5, 9] * len(cells)
    assert frame["policy"].tolist() == [cell.policy.name for cell in cells for _ in seeds]
    np.testing.assert_array_equal(frame["unknown_probes"] + frame["wrong_probes"], frame["useful"])


def test_probe_timing_is_that_of_the_recording():
    cell = make_cell("tooldag", "simple", "S2", parse_protocol("observed"))
    recording = simulate(Task((Piece(0, cell, np.arange(6)),)))
    found = timed.probe_timing(recording, np.full(6, cell.budget_in_force))
    for row in range(6):
        steps = np.flatnonzero(recording.probe[row] >= 0)
        fields = recording.probe[row, steps]
        held, gold = recording.belief[row, steps, fields], recording.gold[row, steps, fields]
        assert found["probe_step"][row] == steps.mean()
        assert found["early_probes"][row] == (steps < cell.budget_in_force).sum()
        assert found["unknown_probes"][row] == (held == -1).sum()
        assert found["wrong_probes"][row] == ((held != -1) & (held != gold)).sum()


def test_an_episode_without_probes_has_no_probe_step():
    frame = timed.load_timed("tooldag", "no-probe", "S1", "paper", seeds="0:3")
    assert frame["probe_step"].isna().all()
    spent = paired.spending(frame, ["no-probe"], "procedural").iloc[0]
    assert spent["probes"] == 0
    assert np.isnan(spent["early"])


# --- useful probes ----------------------------------------------------------------------------


def test_raw_rates_rest_on_pairs_in_which_both_fired(probes):
    numbers = useful.compare_raw(probes, RESAMPLES)
    for row in numbers.itertuples():
        part = probes[(probes["protocol"] == row.protocol) & probes["world"].isin(paired.GROUPS[row.stratum])]
        wide = part.pivot(index=["world", "seed"], columns="policy", values=["useful", "probes"])
        both = wide[(wide["probes"]["simple"] > 0) & (wide["probes"]["random"] > 0)]
        rates = both["useful"] / both["probes"]
        assert row.n == len(both)
        assert row.method == pytest.approx(rates["simple"].mean(), abs=1e-12)
        assert row.reference == pytest.approx(rates["random"].mean(), abs=1e-12)
        assert row.floor_adjusted <= row.floor_raw <= row.method + 1e-12


def test_normalized_rates_divide_by_the_budget(probes):
    rates = normalized.load_normalized(probes, RESAMPLES)
    assert rates["printed"].notna().all()
    for row in rates.itertuples():
        part = probes[
            (probes["protocol"] == row.protocol)
            & (probes["policy"] == row.policy)
            & probes["world"].isin(paired.GROUPS[row.stratum])
        ]
        assert row.value == pytest.approx((part["useful"] / part["budget"]).mean(), abs=1e-12)


def test_an_interval_implies_both_p_values():
    one, two = sides.implied_p(1.959963984540054, 0.0, 2 * 1.959963984540054)
    assert one == pytest.approx(0.025, abs=1e-12)
    assert two == pytest.approx(0.05, abs=1e-12)
    one, two = sides.implied_p(-1.959963984540054, -2 * 1.959963984540054, 0.0)
    assert one == pytest.approx(0.975, abs=1e-12)
    assert two == pytest.approx(0.05, abs=1e-12)


def test_the_paper_mixes_sides():
    found = sides.p_sides().set_index("row")["side"]
    assert found["combined: simple vs random"] == "one-sided"
    assert found["procedural: simple vs random"] == "one-sided"
    assert found["procedural: minus-s vs simple"] == "two-sided"
    assert found["spatial: simple vs random"] == "both"


def test_readers_see_places_and_titles_not_labels():
    numbers = sides.p_sides()
    for text in (sides.show_sides(numbers).markdown(), sides.tell_sides(numbers).markdown):
        assert "tab:" not in text
        assert "minus-s" not in text
        assert " vs simple" not in text


def test_the_printed_lower_bound_is_held_against_the_loosest_of_the_bounds_shown():
    found = inconsistencies()
    why = found.loc[found["kind"] == "lower bound", "why"].iloc[0]
    assert why.endswith(f"is {min(sides.printed_floors().values()):.3f}")


# --- stress -----------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 9), min_size=2, max_size=8, unique=True))
def test_agreement_is_one_with_itself_and_minus_one_reversed(scores):
    assert stability.agreement(scores, scores) == 1
    assert stability.agreement(scores, [-score for score in scores]) == -1


def test_agreement_equals_kendall_without_ties():
    from scipy.stats import kendalltau

    generator = np.random.default_rng(3)
    for _ in range(20):
        one, other = generator.permutation(7), generator.permutation(7)
        assert stability.agreement(one, other) == pytest.approx(kendalltau(one, other).statistic)


def test_every_regime_is_asked_and_seeds_are_those_of_the_reference():
    frame = stress.load_stress("S1", "paper", "perfect", "0:12")
    counts = frame[frame["policy"] == "simple"].groupby("regime")["seed"].nunique()
    assert counts["S1"] == 12
    assert counts["R5"] == 60
    asked = everywhere.ask_everywhere(frame, RESAMPLES)
    assert len(asked) == 3 * len(REGIMES)
    assert asked.loc[asked["regime"] != "S2", "paper_value"].isna().all()
    gains = stress.find_gains(frame, "S1", RESAMPLES)
    own = gains[(gains["measure"] == "accuracy") & (gains["regime"] == "R4") & (gains["world"] == "graphnav")]
    part = frame[(frame["regime"] == "R4") & (frame["world"] == "graphnav")]
    means = part.groupby("policy")["accuracy"].mean()
    assert own["gain"].iloc[0] == pytest.approx(100 * (means["simple"] - means["periodic"]), abs=1e-9)
    assert gains.loc[gains["regime"] == "S1", "shift"].isna().all()
    order = stability.find_order(frame, "S1")
    assert (order.loc[order["regime"] == "S1", "tau"] <= 1).all()
    for text in (
        stress.tell_shifts(gains, "S1"), stress.tell_costs(gains), stress.tell_setting(frame),
        stability.tell_order(order, "S1"), everywhere.tell_claims(asked),
    ):  # fmt: skip
        assert "`paper`" in text.markdown
        assert "nan" not in text.markdown


# --- what a page shows ------------------------------------------------------------------------


def test_words_of_direction_follow_the_interval():
    class Row:
        estimate, low_adjusted, high_adjusted = -2.0, -3.0, -1.0

    row = Row()
    assert report.moves(row) == "falls by 2.00"
    row.low_adjusted, row.high_adjusted, row.estimate = 1.0, 3.0, 2.0
    assert report.moves(row) == "rises by 2.00"
    row.low_adjusted = -1.0
    assert report.moves(row) == "cannot be told from unchanged (+2.00)"


def test_pages_have_whole_tables_and_drawings(probes):
    raw = useful.compare_raw(probes, RESAMPLES)
    rates = normalized.load_normalized(probes, RESAMPLES)
    tables = (
        useful.show_raw(raw),
        useful.show_spending(probes, "spatial"),
        normalized.show_normalized(rates),
        sides.show_sides(sides.p_sides()),
    )
    assert len({table.label for table in tables}) == len(tables)
    for table in tables:
        assert all(len(row) == len(table.head) == len(table.align) for row in table.rows)
        assert "nan" not in table.markdown()
    drawings = (normalized.plot_normalized(rates),)
    for drawing in drawings:
        assert drawing.svg().count("<svg") == 1
        assert "nan" not in drawing.alt
