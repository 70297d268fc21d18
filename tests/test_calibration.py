"""Calibration: only allowed policies are run, the fit is reproducible, and the committed file is true."""

import re
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from envprobe_core.agents.profiles import (
    PROFILE_FOLDER,
    PROFILES,
    TYPICAL,
    as_record,
    committed_profiles,
    read_profile,
    read_record,
)
from envprobe_core.analyses import calibration
from envprobe_core.analyses.calibration import (
    BASE,
    COUNTED,
    FREE,
    KINDS,
    SCALE,
    TARGETS,
    Search,
    Settings,
    calibration_cells,
    candidate,
    compare_targets,
    fit_record,
    loss,
    predict,
    target_values,
    write_record,
)
from envprobe_core.cells import RELEASED_SEEDS
from envprobe_core.claims import load_claims, paper_value, paper_values
from envprobe_core.claims.judge import CALIBRATED
from envprobe_core.cli import main
from envprobe_core.engine.running import record
from envprobe_core.errors import InputError
from envprobe_core.grid import run_cells
from envprobe_core.measures import confident_counts

SEEDS = np.arange(42, 54)
SMALL = Settings(population=8, generations=2, left_out_generations=1, seed=3)


# targets


def test_targets_are_all_that_may_be_used():
    """Every accuracy of No-Probe and Periodic and every canonical p_cw in tables.csv, and nothing else."""
    allowed = set()
    for value in paper_values():
        _, _, pair = value.row.partition(": ")
        arm, _, reference = pair.partition(" vs ")
        side = {"method_accuracy": arm, "reference_accuracy": reference, "accuracy": pair}.get(value.column)
        canonical = value.column == "confident_wrong" and value.row in ("canonical", "supplementary audit")
        if side in ("no-probe", "periodic") or canonical:
            allowed.add((value.source, value.row, value.column))
    places = [place for target in TARGETS for place in (target.place, *target.repeats)]
    assert set(places) == allowed
    assert len(places) == len(allowed)


def test_targets_have_the_papers_values_and_outnumber_the_free_rates():
    assert target_values().tolist() == [0.352, 0.313, 0.303, 0.306, 0.924]
    assert COUNTED.tolist() == [not target.dropped for target in TARGETS] == [False, *[True] * 4]
    follows = [target for target in TARGETS if target.follows]
    assert [t.value for t in follows] == [pytest.approx((0.313 + 2 * 0.303) / 3, abs=0.0005)]
    for target in TARGETS:
        for place in target.repeats:
            if target.policy is not None:
                assert paper_value(*place).value == target.value
    assert len(FREE) < sum(not target.follows and not target.dropped for target in TARGETS)
    for item in FREE:
        assert 0 <= item.low <= getattr(BASE, item.name) <= item.high <= 1


def test_claims_name_the_kinds_of_target():
    assert {kind for claim in load_claims() for kind in claim.inputs} == set(KINDS)
    assert set(CALIBRATED) == {"scribe", "scribe-hesitant"} | {
        path.stem for path in PROFILE_FOLDER.glob("*.json") if read_record(path)["kind"] == "fitted"
    }


# predictions


def test_predictions_are_those_of_single_episodes():
    profile = PROFILES["careful"]
    (ours,) = predict([profile], SEEDS)
    cells = calibration_cells([profile])
    assert {cell.policy.name for cell in cells} == {"no-probe", "periodic", "simple", "oracle"}
    assert {(cell.protocol.name, cell.regime.name) for cell in cells} == {("released", "S2")}
    table = run_cells(cells, SEEDS)
    accuracy = {
        (cell.world, cell.policy.name): table["accuracy"][table["cell"] == place].mean()
        for place, cell in enumerate(cells)
    }
    for target, value in zip(TARGETS[:-1], ours, strict=False):
        expected = np.mean([accuracy[world, target.policy] for world in target.worlds])
        assert value == pytest.approx(expected, abs=1e-15)
    wrong = confident = 0
    for cell in cells:
        counts = confident_counts(record(cell, SEEDS, scores_all=False), cell)
        wrong += counts["confident_wrong"].sum()
        confident += counts["confident"].sum()
    assert ours[-1] == wrong / confident


finite = st.floats(0, 1)


@given(arrays.arrays(float, (3, 5), elements=finite), arrays.arrays(bool, 5))
def test_loss_is_its_formula_and_is_zero_only_at_the_target(predicted, counted):
    paper = target_values()
    naive = [
        sum(
            2 * ((1 + ((a - b) / SCALE) ** 2) ** 0.5 - 1)
            for a, b, c in zip(row, paper, counted, strict=True)
            if c
        )
        for row in predicted
    ]
    assert loss(predicted, paper, counted) == pytest.approx(naive)
    assert loss(paper, paper) == 0
    assert (loss(predicted, paper) >= loss(predicted, paper, counted & COUNTED)).all()
    np.testing.assert_array_equal(loss(predicted, paper), loss(predicted, paper, COUNTED))


# the search


@pytest.fixture(scope="module")
def small():
    search = Search(seeds=SEEDS)
    return search, *calibration.calibrate(search, SMALL)


def test_a_fit_improves_the_objective_and_is_the_best_it_saw(small):
    search, fitted, others = small
    assert fitted.loss <= fitted.first_loss
    assert fitted.loss < loss(predict([BASE], SEEDS), target_values())[0]
    everything = np.array(list(search.seen.values()))
    assert tuple(other.left_out for other in others) == KINDS
    for other in others:
        counted = COUNTED & np.array([target.kind != other.left_out for target in TARGETS])
        by_then = everything[: other.evaluations]
        assert other.loss == loss(by_then, target_values(), counted).min()
    (again,) = predict([fitted.profile], SEEDS)
    assert (again == fitted.predicted).all()
    for item in FREE:
        assert item.low <= getattr(fitted.profile, item.name) <= item.high
        changed = {item.name: getattr(BASE, item.name) for item in FREE}
        assert replace(fitted.profile, **changed, name=BASE.name, assumption=BASE.assumption) == BASE


def test_a_fit_is_deterministic(small, tmp_path):
    search, fitted, others = small
    again = Search(seeds=SEEDS)
    found, left_out = calibration.calibrate(again, SMALL)
    paths = [tmp_path / "one.json", tmp_path / "two.json"]
    write_record(paths[0], fit_record(fitted, others, search, SMALL))
    write_record(paths[1], fit_record(found, left_out, again, SMALL))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert found.profile == fitted.profile
    profiles = [fitted.profile, BASE]
    np.testing.assert_array_equal(predict(profiles, SEEDS, jobs=2), predict(profiles, SEEDS))


# the committed profile


@pytest.fixture(scope="module")
def fit():
    return read_record(PROFILE_FOLDER / "calibrated.json")["fit"]


def test_the_committed_fit_is_what_the_code_finds(fit):
    profile = PROFILES["calibrated"]
    assert [entry["name"] for entry in fit["targets"]] == [target.name for target in TARGETS]
    frame = compare_targets([profile])
    for entry, row in zip(fit["targets"], frame.itertuples(), strict=True):
        assert (
            entry["paper"] == row.paper == paper_value(entry["source"], entry["row"], entry["column"]).value
        )
        assert entry["ours"] == pytest.approx(row.ours, abs=1e-12)
        assert entry["residual"] == pytest.approx(row.residual, abs=1e-12)
    ours = np.array([entry["ours"] for entry in fit["targets"]])
    assert fit["objective"]["value"] == pytest.approx(float(loss(ours, target_values())), abs=1e-9)
    assert fit["objective"]["value"] < fit["objective"]["first_generation"]
    assert fit["free"] == [{"name": i.name, "low": i.low, "high": i.high, "why": i.why} for i in FREE]
    assert fit["optimizer"] == calibration.METHOD | asdict(calibration.DEFAULT)
    assert (fit["protocol"], fit["regime"], fit["base"]) == ("released", "S2", "scribe")
    assert fit["seeds"] == "{}:{}".format(*RELEASED_SEEDS)
    assert fit["policies"] == ["no-probe", "periodic", "simple", "oracle"]
    assert [entry["dropped"] for entry in fit["targets"]] == [target.dropped for target in TARGETS]
    assert fit["command"].split()[:2] == ["envprobe", "calibrate"]
    rates = [round(1000 * getattr(profile, item.name)) for item in FREE]
    assert candidate(rates) == profile


def test_the_committed_fit_left_out_one_kind_at_a_time(fit):
    assert tuple(entry["kind"] for entry in fit["left_out"]) == KINDS
    profiles = [
        candidate([round(1000 * entry["rates"][item.name]) for item in FREE]) for entry in fit["left_out"]
    ]
    ours = predict(profiles)
    for entry, row in zip(fit["left_out"], ours, strict=True):
        assert list(entry["ours"].values()) == pytest.approx(row.tolist(), abs=1e-12)
        counted = COUNTED & np.array([target.kind != entry["kind"] for target in TARGETS])
        assert entry["value"] == pytest.approx(float(loss(row, target_values(), counted)), abs=1e-9)
        committed = np.array([target["ours"] for target in fit["targets"]])
        assert entry["value"] <= float(loss(committed, target_values(), counted))


# files of profiles


def test_committed_profiles_join_the_others():
    assert [profile.name for profile in committed_profiles()] == ["calibrated", "careful", "overconfident"]
    for profile in committed_profiles():
        assert PROFILES[profile.name] == profile
        kind = read_record(PROFILE_FOLDER / f"{profile.name}.json")["kind"]
        assert kind == ("fitted" if profile.name in CALIBRATED else "stated")
    careful, sure = PROFILES["careful"], PROFILES["overconfident"]
    for name in ("omit", "overwrite", "slip", "quit", "misreport"):
        assert getattr(careful, name) < getattr(TYPICAL, name) == getattr(sure, name)
    assert careful.fade > TYPICAL.fade > sure.fade == 0
    assert careful.hedge > TYPICAL.hedge > sure.hedge == 0
    assert (sure.confidence, sure.spread) == (100, 0)


DAMAGE = {
    "unknown parameter": (lambda r: r["parameters"].update(sleep=0.1), "parameter 'sleep' is unknown"),
    "missing parameter": (lambda r: r["parameters"].pop("omit"), "parameter 'omit' is missing"),
    "missing entry": (lambda r: r.pop("assumption"), "entry 'assumption' is missing"),
    "fit of a stated one": (lambda r: r.update(fit={}), "entry 'fit' is unknown"),
    "kind": (lambda r: r.update(kind="guessed"), "kind 'guessed' is none of stated, fitted"),
    "name": (lambda r: r.update(name="another"), "names the profile 'another'"),
    "assumption": (lambda r: r.update(assumption="none"), "a text of more than 20 characters"),
    "text for a rate": (lambda r: r["parameters"].update(omit="0.1"), "parameter omit is '0.1'"),
    "out of range": (lambda r: r["parameters"].update(omit=1.5), "profile omit: 1.5 is not in 0..1"),
    "not a number": (lambda r: r["parameters"].update(omit=float("nan")), "profile omit: nan is not"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_profiles_are_refused(tmp_path, damage):
    change, says = DAMAGE[damage]
    record = as_record(replace(TYPICAL, name="broken"), "stated")
    change(record)
    path = tmp_path / "broken.json"
    write_record(path, record)
    with pytest.raises(InputError, match=re.escape(says)) as refused:
        read_profile(path)
    assert "profile file broken.json: " in str(refused.value)


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "\x00"])
def test_what_is_no_profile_is_refused(tmp_path, text):
    (tmp_path / "broken.json").write_text(text)
    with pytest.raises(InputError, match=r"profile file broken\.json: "):
        committed_profiles(tmp_path)


def test_the_command_replaces_no_file(tmp_path, capsys):
    out = tmp_path / "calibrated.json"
    out.touch()
    with pytest.raises(SystemExit) as refused:
        main(["calibrate", "--out", str(out)])
    assert refused.value.code == 2
    assert str(out) in capsys.readouterr().err
