"""Sections of results: their pure parts against hand-worked cases, their tables against plain averages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envprobe_core.cells import make_cell
from envprobe_core.claims import find_claim
from envprobe_core.claims.printed import paper_value
from envprobe_core.protocols import RELEASED, parse_protocol
from envprobe_core.sections import paired, report, timed
from envprobe_core.sections import ablation
from envprobe_core.sections import normalized
from envprobe_core.sections import ordering
from envprobe_core.sections import sides
from envprobe_core.sections import switched
from envprobe_core.sweep import Piece, Task, run_cells, simulate

SEEDS, RESAMPLES = "0:14", 200


@pytest.fixture(scope="module")
def ablations():
    return ablation.load_ablation("S1", "paper released", "typical", SEEDS)


@pytest.fixture(scope="module")
def ladder():
    return ordering.load_ordering("S1", "observed", "typical", SEEDS)


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


# --- comparisons and levels -------------------------------------------------------------------


def test_comparisons_join_pairs_by_seed(ladder):
    shuffled = ladder.sample(frac=1, random_state=0)
    numbers, again = (ordering.compare_neighbours(f, RESAMPLES) for f in (ladder, shuffled))
    assert numbers.drop(columns="reason").equals(again.drop(columns="reason"))
    row = numbers[numbers["claim"] == "ordering-judge"].iloc[0]
    spatial = ladder[ladder["world"].isin(("objectstate", "graphnav"))]
    means = spatial.groupby("policy")["accuracy"].mean()
    assert row["method"] == pytest.approx(means["judge"], rel=1e-12)
    assert row["estimate"] == pytest.approx(100 * (means["judge"] - means["simple"]), rel=1e-9, abs=1e-9)
    assert row["n"] == 28


def test_every_comparison_is_the_claim_it_names_and_printed_where_it_says():
    for comparison in (*ordering.COMPARISONS, *ablation.ACCURACY, *ablation.SUCCESS):
        claim = find_claim(comparison.claim)
        assert (claim.arms, claim.references) == ((comparison.arm,), (comparison.reference,))
        assert set(claim.worlds) == set(comparison.worlds)
    unprinted = "procedural: judge vs simple"
    for comparison in ordering.COMPARISONS:
        if comparison.row != unprinted:
            assert paper_value("tab:ordering", comparison.row, "accuracy_difference_pct")
    for comparison in ablation.ACCURACY:
        found = paper_value("tab:ablation", comparison.row, "accuracy_difference_pct")
        assert find_claim(comparison.claim).value == found.value
        assert paper_value("tab:ablation", comparison.row, "success_mcnemar_p")


def test_claims_move_to_another_regime_and_others_stay():
    assert paired.in_regime("main-procedural", "R3").regime == "R3"
    s1 = dataclasses.replace(find_claim("main-procedural"), regime="S1")
    assert paired.in_regime(s1, "R3") is s1


def test_levels_are_plain_means_with_wilson_intervals_for_success(ablations):
    found = paired.levels(ablations, ablation.SHOWN, ("procedural",), "success", RESAMPLES)
    for row in found.itertuples():
        part = ablations[(ablations["policy"] == row.policy) & (ablations["protocol"] == row.protocol)]
        assert row.value == part["success"].mean()
        assert row.low <= row.value <= row.high
    assert (found["n"] == 14).all()


def test_a_frame_of_two_regimes_is_refused(ablations):
    mixed = ablations.assign(regime=["S1", "S2"] * (len(ablations) // 2))
    with pytest.raises(ValueError, match="several values of regime: S1, S2"):
        ablation.compare_accuracy(mixed, RESAMPLES)


# --- ordering ---------------------------------------------------------------------------------


def test_the_climb_takes_every_step_in_every_stratum(ladder):
    steps = ordering.climb(ladder, RESAMPLES)
    assert list(zip(steps["lower"], steps["upper"], strict=True)) == [*ordering.STEPS, *ordering.STEPS]
    means = ladder[ladder["world"] == "tooldag"].groupby("policy")["accuracy"].mean()
    tools = steps[steps["stratum"] == "procedural"]
    for row in tools.itertuples():
        expected = 100 * (means[row.upper] - means[row.lower])
        assert row.estimate == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_self_uncertainty_is_printed_twice():
    printed = ordering.printed_levels()
    twice = printed[(printed["stratum"] == "spatial") & (printed["policy"] == "self-uncertainty")]
    assert sorted(twice["value"]) == [0.307, 0.387]


# --- ablation ---------------------------------------------------------------------------------


def test_success_is_tested_on_discordant_pairs(ablations):
    numbers = ablation.compare_success(ablations, RESAMPLES)
    wide = ablations.pivot(index=["protocol", "seed"], columns="policy", values="success")
    for row in numbers.itertuples():
        own = wide.loc[row.protocol]
        won = int((own[row.arm] & ~own["simple"]).sum())
        lost = int((~own[row.arm] & own["simple"]).sum())
        assert (row.only_method, row.only_reference) == (won, lost)
        assert row.exact_p == mcnemar_exact(won, lost)


def test_switches_are_turned_one_at_a_time():
    frame = switched.load_switched("S1", "paper released", "typical", "0:3")
    expected = ["released", *(switched.join("released", switch) for switch in switched.TURNED)]
    assert list(dict.fromkeys(frame["protocol"])) == expected
    assert switched.load_switched("S1", "paper observed").empty
    assert "nothing to take apart" in switched.show_switched(frame.iloc[:0]).markdown
    own = "released:clock=runs"
    assert switched.join(own, "end=horizon") == "released:clock=runs,end=horizon"


# --- Pareto -----------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_nondominated_points_are_those_that_no_point_beats(points):
    array = np.array(points, dtype=float)
    naive = [not any(a >= x and b >= y and (a, b) != (x, y) for a, b in points) for x, y in points]
    assert pareto.nondominated(array).tolist() == naive
    assert any(naive)
    stacked = np.stack([array, array[::-1]])
    assert pareto.nondominated(stacked).tolist() == [naive, naive[::-1]]


def test_opposed_counts_trades():
    points = np.array([[0.0, 3.0], [1.0, 2.0], [1.0, 1.0], [2.0, 4.0]])
    assert pareto.opposed(points) == (2, 5)  # the pair with equal first coordinates trades nothing


def test_frontiers_leave_oracles_out_and_name_who_beats():
    frame = pareto.load_pareto("S1", "paper", "typical", SEEDS)
    points = pareto.find_frontiers(frame, RESAMPLES)
    assert points.loc[points["diagnostic"], "stability"].isna().all()
    assert not points.loc[points["diagnostic"], "nondominated"].any()
    rest = points[~points["diagnostic"]]
    assert (rest["nondominated"] == (rest["beaten_by"] == "")).all()
    assert rest["stability"].between(0, 1).all()
    assert (points["success_low"] <= points["success"]).all()


def test_the_paper_prints_three_points_of_one_frontier():
    printed = pareto.printed_points().set_index("policy")
    assert set(printed["stratum"]) == {"procedural"}
    assert printed.loc["cd", ["success", "accuracy"]].tolist() == [15.9 / 100, 0.491]
    assert printed.loc["simple", ["success", "accuracy"]].tolist() == [20.5 / 100, 0.431]
    assert printed.loc["minus-u", ["success", "accuracy"]].tolist() == [8.2 / 100, 0.488]


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
    told = [
        sides.show_sides(numbers).markdown(), sides.tell_sides(numbers).markdown,
        ordering.tell_arithmetic().markdown,
    ]  # fmt: skip
    for text in told:
        assert "tab:" not in text
        assert "minus-s" not in text
        assert " vs simple" not in text
    assert "EnvProbe-Simple" in told[2]
    assert "Table 2 prints" in told[2]


def test_the_printed_lower_bound_is_held_against_the_loosest_of_the_bounds_shown():
    found = inconsistencies()
    why = found.loc[found["kind"] == "lower bound", "why"].iloc[0]
    assert why.endswith(f"is {min(sides.printed_floors().values()):.3f}")


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


def test_pages_have_whole_tables_and_drawings(ablations, ladder):
    accuracy = ablation.compare_accuracy(ablations, RESAMPLES)
    neighbours = ordering.compare_neighbours(ladder, RESAMPLES)
    tables = (
        ablation.show_accuracy(accuracy),
        ablation.show_success(ablation.compare_success(ablations, RESAMPLES)),
        ablation.show_spending(ablations),
        ordering.show_neighbours(neighbours),
        ordering.show_spending(ladder),
    )
    assert len({table.label for table in tables}) == len(tables)
    for table in tables:
        assert all(len(row) == len(table.head) == len(table.align) for row in table.rows)
        assert "nan" not in table.markdown()
    drawings = (
        ablation.plot_bars(ablations, RESAMPLES),
        ablation.plot_timing(ablations, RESAMPLES),
        ordering.plot_ladder(ladder, RESAMPLES),
    )
    for drawing in drawings:
        assert drawing.svg().count("<svg") == 1
        assert "nan" not in drawing.alt
