"""The sections about episodes: score, confident-wrong, failure cases."""

from __future__ import annotations

import re
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from envprobe_core.verdicts import evaluate_all
from hypothesis import given, settings
from scipy.stats import mannwhitneyu
from strategies import cells, seeds

from envprobe_core import audit, patterns
from envprobe_core.cells import Cell, make_cell
from envprobe_core.claims.judge import NOT_TESTED
from envprobe_core.comparisons import claims_at
from envprobe_core.confidence import confident_counts
from envprobe_core.engine.records import UNKNOWN
from envprobe_core.errors import InputError
from envprobe_core.markup import Text
from envprobe_core.patterns import Matches, match
from envprobe_core.policies import TERMS
from envprobe_core.sections import (
    confident,
    failures,
    reliability,
    remedy,
    score,
    score_terms,
)
from envprobe_core.sweep import Piece, Task, run_cells, simulate
from envprobe_core.timeline import action_name, goal_times, record_run, rho, word
from envprobe_core.tracks import step_accuracy
from envprobe_core.witness import witness

SMALL = {"seeds": "0:25"}
NAMES = ["paper", "observed", "released"]
few = settings(max_examples=25, deadline=None)


def recorded(cell: Cell, own: np.ndarray):
    return simulate(Task((Piece(0, cell, own),)), reports=True)


# ---------------------------------------------------------------- witness and timeline


@few
@given(cells(), seeds)
def test_a_witness_changes_nothing_and_sees_what_decided(cell, own):
    seen, plain = witness(cell, own), recorded(cell, own)
    for name in ("belief", "gold", "probe", "action", "valid", "steps", "confidence"):
        np.testing.assert_array_equal(getattr(seen.trajectory, name), getattr(plain, name))
    running = seen.running
    assert np.isfinite(seen.terms[running]).all()
    assert np.isnan(seen.terms[~running]).all()
    assert ((seen.terms[running] >= 0) & (seen.terms[running] <= 1)).all()
    if cell.policy.has_threshold and not cell.policy.replays:
        np.testing.assert_array_equal(rho(seen)[running].max(axis=1), plain.score[running])


@few
@given(cells(("simple", "minus-c", "cd", "placebo")), seeds)
def test_told_steps_follow_algorithm_1(cell, own):
    seen = witness(cell, own)
    for row in range(len(own)):
        run, best = record_run(seen, row), rho(seen)[row].max(axis=1)
        assert run["steps"] == seen.trajectory.steps[row]
        for t, gate in enumerate(run["gate"]):
            fires = best[t] >= cell.threshold_in_force and run["used"][t] < cell.budget_in_force
            assert fires == (run["probe"][t] >= 0) == gate.endswith(": probe")
        reached = sum("the goal is reached" in said for said in run["sentence"])
        assert reached == (run["success"] and not goal_times(seen)[row, 0])


def test_a_told_episode_can_be_replayed_from_its_words():
    seen = witness(make_cell("objectstate", "simple"), np.array([7]))
    world, recording, run = seen.world, seen.trajectory, record_run(seen)
    belief = {name: word(world, i, recording.belief[0, 0, i]) for i, name in enumerate(world.field_names)}
    truth = {name: word(world, i, recording.gold[0, 0, i]) for i, name in enumerate(world.field_names)}
    for t in range(run["steps"]):
        assert np.mean([belief[name] == truth[name] for name in belief]) == pytest.approx(run["accuracy"][t])
        if run["reply"][t]:
            name, told = re.match(r"(.*?): the world says ([^,]*)", run["reply"][t]).groups()
            belief[name] = told
        for said, _ in run["wrote"][t]:
            name, before, after = re.match(r"(.*): (.*) → (.*)", said).groups()
            assert belief[name] == before
            belief[name] = after
        for i, name in enumerate(world.field_names):
            truth[name] = word(world, i, recording.gold[0, t + 1, i])
        for said in run["world"][t]:
            name, before, after = re.match(r"(.*): (.*) → (.*)", said).groups()
            assert truth[name] == after != before
    assert all(belief[name] == word(world, i, recording.belief[0, -1, i]) for i, name in enumerate(belief))


def test_words_for_values_and_actions():
    rooms = witness(make_cell("objectstate", "no-probe"), np.array([0])).world
    graph = witness(make_cell("graphnav", "no-probe"), np.array([0])).world
    place, lock = rooms.field_names.index("location(key 0)"), rooms.field_names.index("lock(0)")
    assert [word(rooms, place, v) for v in (UNKNOWN, 3, 10)] == ["unknown", "room 3", "held"]
    assert [word(rooms, lock, v) for v in (0, 1)] == ["open", "locked"]
    assert [word(rooms, rooms.fields - 1, v) for v in (0, 1)] == ["no", "yes"]
    assert word(graph, 0, 11) == "node 11"
    assert action_name(graph, -1) == "wait"
    assert action_name(graph, 0) == "move(0)"


# ---------------------------------------------------------------- tracks and collapse


@few
@given(cells(), seeds)
def test_the_watched_track_collapses_where_the_episode_table_says(cell, own):
    recording = recorded(cell, own)
    track = recording.accuracy
    first = 1 if cell.protocol.accuracy == "slots" else 0
    for row, onset in enumerate(run_cells([cell], own)["collapse_onset"]):
        last = recording.steps[row]
        low = [t for t in range(first, last + 1) if track[row, t] < 0.6]
        if cell.protocol.onset == "two-below":
            low = [t for t in low if t == last or t + 1 in low]
        np.testing.assert_equal(onset, low[0] if low else np.nan)


# ---------------------------------------------------------------- confidence

counts = st.lists(st.integers(0, 6), min_size=101, max_size=101).map(np.array)


@few
@given(counts, counts)
def test_auc_equals_mann_whitney(right, wrong):
    percents = np.arange(101)
    ours = float(audit.area_under_curve(right, wrong))
    if not right.sum() or not wrong.sum():
        assert np.isnan(ours)
        return
    one, other = np.repeat(percents, right), np.repeat(percents, wrong)
    expected = mannwhitneyu(one, other).statistic / (len(one) * len(other))
    assert ours == pytest.approx(expected, abs=1e-12)


@few
@given(counts, counts)
def test_ece_equals_its_definition(right, wrong):
    total = right + wrong
    if not total.sum():
        return
    gap = 0.0
    for low in range(0, 100, 10):
        inside = slice(low, 101 if low == 90 else low + 10)
        count = total[inside].sum()
        if count:
            sure = (total[inside] * np.arange(101)[inside] / 100).sum() / count
            gap += count / total.sum() * abs(right[inside].sum() / count - sure)
    assert float(audit.expected_calibration_error(right, wrong)) == pytest.approx(gap, abs=1e-12)
    assert audit.reliability(right, wrong)["count"].sum() == total.sum()


def test_a_perfect_and_a_useless_confidence():
    right, wrong = np.zeros(101), np.zeros(101)
    right[100], wrong[0] = 5, 7
    assert audit.area_under_curve(right, wrong) == 1
    assert audit.expected_calibration_error(right, wrong) == 0
    assert audit.area_under_curve(wrong, right) == 0
    assert audit.area_under_curve(right, right) == 0.5


@few
@given(cells(), seeds)
def test_audit_counts_fit_together(cell, own):
    recording = recorded(cell, own)
    found = audit.audit_counts(recording, cell, own)
    right, wrong = audit.confidence_histogram(recording, cell)
    canonical = confident_counts(recording, cell.protocol)
    np.testing.assert_array_equal(found["confident"], canonical["confident"])
    np.testing.assert_array_equal((right + wrong)[:, 70:].sum(axis=1), found["confident"])
    np.testing.assert_array_equal(wrong[:, 70:].sum(axis=1), found["confident_wrong"])
    np.testing.assert_array_equal(wrong.sum(axis=1), found["wrong_known"])
    assert (found["low_consistent"] <= found["low_steps"]).all()
    assert (found["scan_wrong"] <= found["scan_confident"]).all()
    assert (found["scan_confident"] <= found["scan_beliefs"]).all()
    inside = own % audit.SAMPLE == 0
    np.testing.assert_array_equal(found["sample_wrong"], np.where(inside, found["confident_wrong"], 0))


def test_the_self_check_is_the_last_own_action():
    acted = np.array([[True, False, True, False, False]])
    valid = np.array([[False, False, True, False, False]])
    expected = [[True, False, False, True, True]]
    np.testing.assert_array_equal(audit.consistent(acted, valid), expected)


@few
@given(cells(), seeds)
def test_low_steps_by_naive_loops(cell, own):
    recording = recorded(cell, own)
    accuracy = step_accuracy(recording, cell)
    found = audit.audit_counts(recording, cell, own)
    for row in range(len(own)):
        low = passed = 0
        sure = True
        for t in range(int(recording.steps[row])):
            if recording.acted[row, t]:
                if accuracy[row, t] < 0.6:
                    low += 1
                    passed += sure
                sure = bool(recording.valid[row, t])
        assert (found["low_steps"][row], found["low_consistent"][row]) == (low, passed)


def test_estimators_and_conditionals_by_hand():
    data = confident.load_confidence("S2", "released paper", **SMALL)
    frame = data.frame
    assert list(dict.fromkeys(frame["protocol"])) == ["released", "paper"]
    table = confident.estimators(data, 200).set_index(["estimator", "protocol"])
    part = frame[frame["protocol"] == "paper"]
    rate = part["confident_wrong"].sum() / part["confident"].sum()
    assert table.loc[("canonical", "paper"), "rate"] == pytest.approx(rate)
    idle = part[part["policy"] == "no-probe"]
    assert table.loc[("self-check", "paper"), "events"] == idle["low_steps"].sum()
    worth = reliability.conditionals(data, 200).set_index(["protocol", "quantity"])
    given_wrong = part["confident_wrong"].sum() / part["wrong"].sum()
    assert worth.loc[("paper", "confident given wrong"), "rate"] == pytest.approx(given_wrong)
    auc = worth.loc[("paper", "AUC")]
    assert auc["low"] <= auc["rate"] <= auc["high"]
    assert data.right["paper"].sum() + data.wrong["paper"].sum() == (
        part["total"].sum() - (part["wrong"].sum() - part["wrong_known"].sum())
    )


# ---------------------------------------------------------------- failure patterns


def naive_procedural(seen, row, t):
    """The procedural pattern, condition by condition, for one probe."""
    r, n = seen.trajectory, seen.world.rules.tools
    needs, field = seen.instance[row].task.needs, int(r.probe[row, t])
    u, c = (seen.terms[row, t, field, TERMS.index(name)] for name in "uc")

    def blockers(time):
        call = int(r.action[row, time])
        if call < 0:
            return set()
        tools = {p for p in range(n) if int(needs[call]) >> p & 1}
        return {p for p in tools if r.gold[row, time, p] == 0 and r.belief[row, time, p] != 0}

    standing = blockers(t) - {field if field < n else -1}
    later = next((k for k in range(t + 1, int(r.steps[row])) if r.acted[row, k]), None)
    failed = later is not None and not r.valid[row, later] and bool(standing & blockers(later))
    done = r.gold[row, : t + 1, seen.world.fields - 1].any()
    conditions = [
        u >= 0.3 and c < 0.5, bool(standing), failed, bool(r.useful[row, t]),
        not done and not r.success[row],
    ]  # fmt: skip
    return np.logical_and.accumulate(conditions)


def naive_spatial(seen, row, t):
    """The spatial pattern, condition by condition, for one probe."""
    r, field = seen.trajectory, int(seen.trajectory.probe[row, t])
    reported = min(int(r.staleness[row, t, field]), t)
    window = r.gold[row, t - reported : t + 1, field]
    after, stale = seen.after_action()[row], False
    for place, name in enumerate(seen.world.field_names):
        held, truth = int(r.belief[row, t, place]), r.gold[row, : t + 2, place]
        if not name.startswith("location") or place == field or held in (UNKNOWN, int(truth[t])):
            continue
        changes = [k for k in range(1, t + 1) if truth[k] != truth[k - 1]]
        drifted = bool(changes) and after[changes[-1] - 1, place] != truth[changes[-1]]
        still = r.belief[row, t + 1, place] != truth[t + 1]
        stale |= drifted and still and held in truth[:t].tolist()
    conditions = [
        seen.terms[row, t, field, TERMS.index("s")] >= 0.5, len(set(window.tolist())) == 1,
        not r.useful[row, t], stale,
    ]  # fmt: skip
    return np.logical_and.accumulate(conditions)


@few
@given(cells(("simple", "random", "self-uncertainty", "periodic", "cd")), seeds)
def test_patterns_equal_their_definitions(cell, own):
    seen = witness(cell, own)
    found = match(seen)
    naive = naive_procedural if cell.world == "tooldag" else naive_spatial
    assert len(found.row) == (seen.trajectory.probe >= 0).sum()
    for row, step, stage in zip(found.row, found.step, found.stage, strict=True):
        np.testing.assert_array_equal(stage, naive(seen, int(row), int(step)))


def test_each_pattern_occurs_and_the_naive_twin_agrees_there():
    frame = failures.load_failures("self-uncertainty", "S2", "paper", seeds="0:60")
    hits = frame[frame["full"] > 0]
    assert {"tooldag", "objectstate", "graphnav"} == set(hits["world"])
    for world, naive in (("tooldag", naive_procedural), ("graphnav", naive_spatial)):
        hit = hits[hits["world"] == world].iloc[0]
        seen = witness(make_cell(world, "self-uncertainty"), np.array([hit["seed"]]))
        assert naive(seen, 0, int(hit["step"])).all()


def test_matches_count_by_episode_and_find_the_first():
    stage = np.array([[True, True], [True, False], [True, True]])
    found = Matches(*(np.array(x) for x in ([0, 2, 2], [4, 1, 3], [5, 6, 7], [1, 2, 3])), stage)
    np.testing.assert_array_equal(found.episodes(3), [[1, 1], [0, 0], [2, 1]])
    assert found.first() == (0, 4, 5, 1)
    assert replace(found, stage=np.zeros((3, 2), dtype=bool)).first() is None


def test_the_oracle_never_shows_the_spatial_pattern():
    frame = failures.load_failures("oracle", "S2", "paper observed", **SMALL)
    assert not frame[frame["world"] != "tooldag"]["full"].any()


def test_the_played_episode_is_the_first_by_the_stated_rule():
    frame = failures.load_failures("periodic simple", "S2", "observed paper", **SMALL)
    find = failures.find_first(frame, "spatial")
    rows = frame[(frame["world"] == find.world) & (frame["policy"] == find.policy)]
    rows = rows[(rows["protocol"] == find.protocol) & (rows["full"] > 0)]
    assert (find.protocol, find.policy) == ("observed", "periodic")
    assert find.seed == rows["seed"].min()
    state = failures.play(find, "one").state
    assert state["start"] == find.step
    assert state["pairs"][0]["seed"] == find.seed
    assert "confirms" in state["pairs"][0]["runs"][0]["reply"][find.step]


def test_no_match_is_said():
    frame = failures.load_failures("cd simple", "S2", "paper", **SMALL)
    assert failures.find_first(frame, "procedural") is None
    assert isinstance(failures.play(None, "none"), Text)
    assert "No episode matches" in failures.tell_choice(frame, "procedural").markdown


def test_shares_are_wilson_shares_of_episodes():
    frame = failures.load_failures("simple", "S2", "paper", **SMALL)
    table = failures.shares(frame)
    assert (table["episodes"] == 25).all()
    assert (table["low"] <= table["share"]).all()
    assert (table["share"] <= table["high"]).all()
    own = frame[frame["world"] == "objectstate"]
    row = table[table["world"] == "objectstate"].iloc[0]
    assert row["matched"] == (own["full"] > 0).sum()
    assert patterns.STAGES["objectstate"] == patterns.SPATIAL_STAGES


# ---------------------------------------------------------------- score


def test_scores_by_hand():
    table = score_terms.load_scores("S2", "paper", resamples=200, **SMALL)
    seen = witness(make_cell("graphnav", "simple"), np.arange(25))
    row, step = np.nonzero(seen.trajectory.probe >= 0)
    terms = seen.terms[row, step, seen.trajectory.probe[row, step]]
    own = table[table["world"] == "graphnav"].iloc[0]
    np.testing.assert_allclose([own[t] for t in TERMS], terms.mean(axis=0))
    assert own["structure"] == pytest.approx((terms[:, 0] + terms[:, 3] >= 1.5).mean())
    assert own["useful"] == pytest.approx(seen.trajectory.useful.sum() / len(row))


def test_an_episode_with_other_values():
    seen = score.load_episode(
        "graphnav tooldag", "random simple", 5, "S3", "released paper", "perfect", 1.0, 4
    )
    assert (seen.cell.world, seen.cell.policy.name, seen.cell.protocol.name) == (
        "graphnav",
        "random",
        "released",
    )
    assert seen.cell.budget_in_force == 4
    assert (seen.trajectory.probe >= 0).sum() <= 4
    table = score.show_table(seen, 39)
    assert len(table.rows) == seen.world.fields
    with pytest.raises(InputError, match="unknown world"):
        score.load_episode("maze")


# ---------------------------------------------------------------- claims and text

OTHER = {"regime": "S3", "protocols": "observed", "profile": "perfect", "seeds": "0:25"}


@pytest.mark.parametrize("setting", [{"seeds": "0:25"}, OTHER], ids=["book", "other"])
def test_every_claim_of_the_sections_gets_a_verdict(setting):
    regime, profile = setting.get("regime", "S2"), setting.get("profile", "typical")
    frames = {
        "confident-wrong": confident.load_confidence(**setting).frame,
    }
    for section, frame in frames.items():
        ledger = evaluate_all(frame, claims_at(section, regime), profile=profile, resamples=200)
        assert len(ledger)
        for row in ledger[ledger["verdict"] == NOT_TESTED].itertuples():
            assert "episodes" in row.reason  # too few with an event, never a column that is missing


@pytest.mark.parametrize(
    "setting",
    [{"seeds": "0:25"}, OTHER, {"regime": "S1", "profile": "scripted", "seeds": "0:12"}],
    ids=["book", "other", "scripted"],
)
def test_texts_tables_and_figures_stand_on_any_setting(setting):
    told, shown, drawn = [], [], []
    data = confident.load_confidence(**setting)
    rates, worth = confident.estimators(data, 100), reliability.conditionals(data, 100)
    told += [confident.tell_estimators(rates), reliability.tell_conditionals(worth)]
    shown += [confident.show_estimators(rates), reliability.show_conditionals(worth)]
    drawn.append(reliability.plot_reliability(data))
    cases = failures.load_failures(**setting)
    share, avoided = failures.shares(cases), remedy.motives(cases, 100)
    told += [failures.tell_shares(share), remedy.tell_motives(avoided)]
    shown += [failures.show_shares(share, "spatial"), failures.show_stages(cases, "procedural", "simple")]
    drawn.append(failures.plot_shares(share))
    for pattern in failures.PATTERNS:
        told.append(failures.tell_choice(cases, pattern))
        assert failures.play(failures.find_first(cases, pattern), pattern)
    scores = score_terms.load_scores(resamples=100, **setting)
    told.append(score_terms.tell_scores(scores))
    shown.append(score_terms.show_scores(scores))
    seen = score.load_episode(**{k: v for k, v in setting.items() if k in ("regime", "profile")})
    drawn.append(score.plot_episode(seen))
    for text in told:
        assert text.markdown
        assert "nan" not in text.markdown.lower()
    for table in shown:
        assert all(len(row) == len(table.head) == len(table.align) for row in table.rows)
        assert "nan" not in table.markdown().lower()
    for drawing in drawn:
        assert drawing.svg().count("<svg") == 1
        assert drawing.alt
