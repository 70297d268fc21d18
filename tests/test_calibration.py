"""Calibration: only allowed policies are run, the fit is reproducible, and the committed files are true."""

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
    TARGET_POLICIES,
    TARGETS,
    candidate,
    fit_record,
    loss,
    predict,
    target_values,
    write_record,
)
from envprobe_core.cells import RELEASED_SEEDS, make_cell
from envprobe_core.claims import load_claims, paper_value, paper_values
from envprobe_core.claims.judge import CALIBRATED
from envprobe_core.cli import main
from envprobe_core.engine.running import record
from envprobe_core.errors import InputError
from envprobe_core.measures import confident_counts
from envprobe_core.protocols import RELEASED
from envprobe_core.worlds import WORLDS

SEEDS = np.arange(42, 54)
PAPER = target_values()


def counted_without(kind):
    return COUNTED & np.array([target.kind != kind for target in TARGETS])


# targets


def test_targets_are_all_that_may_be_used():
    """Every accuracy of No-Probe and Periodic and every canonical p_cw in tables.csv, and nothing else."""
    allowed = []
    for value in paper_values():
        arm, _, reference = value.row.partition(": ")[2].partition(" vs ")
        pair = f"{arm} vs {reference}" if reference else arm
        side = {"method_accuracy": arm, "reference_accuracy": reference, "accuracy": pair}.get(value.column)
        canonical = value.column == "confident_wrong" and value.row in ("canonical", "supplementary audit")
        if side in ("no-probe", "periodic") or canonical:
            allowed.append((value.source, value.row, value.column))
    assert sorted(place for target in TARGETS for place in (target.place, *target.repeats)) == sorted(allowed)
    assert {kind for claim in load_claims() for kind in claim.inputs} == set(KINDS)
    fitted = {path.stem for path in PROFILE_FOLDER.glob("*.json") if read_record(path)["kind"] == "fitted"}
    assert set(CALIBRATED) == {"scribe", "scribe-hesitant"} | fitted


def test_targets_have_the_papers_values_and_outnumber_the_free_rates():
    assert PAPER.tolist() == [0.352, 0.313, 0.303, 0.306, 0.924]
    assert COUNTED.tolist() == [False, True, True, True, True]
    follows = [target for target in TARGETS if target.follows]
    assert [target.value for target in follows] == [pytest.approx((0.313 + 2 * 0.303) / 3, abs=0.0005)]
    for target in TARGETS:
        if target.policy is not None:
            assert {paper_value(*place).value for place in target.repeats} <= {target.value}
    assert len(FREE) < sum(not target.follows and not target.dropped for target in TARGETS)
    assert all(0 <= item.low <= getattr(BASE, item.name) <= item.high <= 1 for item in FREE)


def test_predictions_are_those_of_single_episodes():
    assert TARGET_POLICIES == ("no-probe", "periodic", "simple", "oracle")
    (ours,) = predict([PROFILES["careful"]], SEEDS)
    accuracy, counts = {}, []
    for world in WORLDS:
        for policy in TARGET_POLICIES:
            cell = make_cell(world, policy, "S2", RELEASED, "careful")
            recording = record(cell, SEEDS, scores_all=False)
            accuracy[world, policy] = recording.measures["accuracy"].mean()
            found = confident_counts(recording, cell)
            counts.append((found["confident_wrong"].sum(), found["confident"].sum()))
    for target, value in zip(TARGETS[:-1], ours, strict=False):
        expected = np.mean([accuracy[world, target.policy] for world in target.worlds])
        assert value == pytest.approx(expected, abs=1e-15)
    reporting = np.array(counts)[
        [policy in calibration.REPORTING for policy in TARGET_POLICIES] * len(WORLDS)
    ]
    assert ours[-1] == np.divide(*reporting.sum(axis=0))


@given(arrays.arrays(float, (3, 5), elements=st.floats(0, 1)), arrays.arrays(bool, 5))
def test_loss_is_its_formula_and_is_zero_at_the_target(predicted, counted):
    for row, found in zip(predicted, loss(predicted, PAPER, counted), strict=True):
        terms = [2 * ((1 + ((a - b) / SCALE) ** 2) ** 0.5 - 1) for a, b in zip(row, PAPER, strict=True)]
        assert found == pytest.approx(sum(term for term, own in zip(terms, counted, strict=True) if own))
    assert loss(PAPER, PAPER) == 0
    np.testing.assert_array_equal(loss(predicted, PAPER), loss(predicted, PAPER, COUNTED))


# the search


def test_a_fit_is_the_best_it_saw_and_the_same_again(tmp_path):
    short, files = calibration.Settings(8, generations=2, left_out_generations=1, seed=3), []
    for name, jobs in (("one", 1), ("two", 2)):
        search = calibration.Search(SEEDS, jobs)
        fitted, others = calibration.calibrate(search, short)
        write_record(tmp_path / name, fit_record(fitted, others, search, short))
        files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1]
    assert fitted.loss <= fitted.first_loss
    assert fitted.loss < loss(predict([BASE], SEEDS), PAPER)[0]
    assert (predict([fitted.profile], SEEDS)[0] == fitted.predicted).all()
    everything = np.array(list(search.seen.values()))
    assert tuple(other.left_out for other in others) == KINDS
    for other in (fitted, *others):
        by_then = everything[: other.evaluations]
        assert other.loss == loss(by_then, PAPER, counted_without(other.left_out)).min()
    for item in FREE:
        assert item.low <= getattr(fitted.profile, item.name) <= item.high
    base = {item.name: getattr(BASE, item.name) for item in FREE}
    assert replace(fitted.profile, **base, name=BASE.name, assumption=BASE.assumption) == BASE


def test_the_committed_fit_is_what_the_code_finds():
    fit = read_record(PROFILE_FOLDER / "calibrated.json")["fit"]
    profile, (ours,) = PROFILES["calibrated"], predict([PROFILES["calibrated"]])
    for entry, target, value in zip(fit["targets"], TARGETS, ours, strict=True):
        assert (entry["name"], entry["dropped"], entry["paper"]) == (
            target.name,
            target.dropped,
            target.value,
        )
        assert (entry["source"], entry["row"], entry["column"]) == target.place
        assert entry["ours"] == pytest.approx(value, abs=1e-12)
        assert entry["residual"] == pytest.approx(value - target.value, abs=1e-12)
    assert fit["objective"]["value"] == pytest.approx(float(loss(ours, PAPER)), abs=1e-9)
    assert fit["objective"]["value"] < fit["objective"]["first_generation"]
    assert fit["free"] == list(map(asdict, FREE))
    assert fit["optimizer"] == calibration.METHOD | asdict(calibration.DEFAULT)
    assert (fit["protocol"], fit["regime"], fit["base"]) == ("released", "S2", "scribe")
    assert (fit["seeds"], fit["policies"]) == ("{}:{}".format(*RELEASED_SEEDS), list(TARGET_POLICIES))
    assert fit["command"].startswith("envprobe calibrate")
    assert candidate([round(1000 * getattr(profile, item.name)) for item in FREE]) == profile
    assert tuple(entry["kind"] for entry in fit["left_out"]) == KINDS
    points = [[round(1000 * entry["rates"][item.name]) for item in FREE] for entry in fit["left_out"]]
    for entry, row in zip(fit["left_out"], predict(list(map(candidate, points))), strict=True):
        counted = counted_without(entry["kind"])
        assert list(entry["ours"].values()) == pytest.approx(row.tolist(), abs=1e-12)
        assert entry["value"] == pytest.approx(float(loss(row, PAPER, counted)), abs=1e-9)
        assert entry["value"] <= float(loss(ours, PAPER, counted))


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


DAMAGE = {  # what is wrong, and what is said of it
    "parameter 'sleep' is unknown": lambda r: r["parameters"].update(sleep=0.1),
    "parameter 'omit' is missing": lambda r: r["parameters"].pop("omit"),
    "entry 'assumption' is missing": lambda r: r.pop("assumption"),
    "entry 'fit' is unknown": lambda r: r.update(fit={}),
    "kind 'guessed' is none of stated, fitted": lambda r: r.update(kind="guessed"),
    "names the profile 'another'": lambda r: r.update(name="another"),
    "a text of more than 20 characters": lambda r: r.update(assumption="none"),
    "parameter omit is '0.1'": lambda r: r["parameters"].update(omit="0.1"),
    "profile omit: 1.5 is not in 0..1": lambda r: r["parameters"].update(omit=1.5),
    "profile omit: nan is not": lambda r: r["parameters"].update(omit=float("nan")),
}


@pytest.mark.parametrize("says", [*DAMAGE, "", "{", "[1, 2]", "\x00"])
def test_damaged_profiles_are_refused(tmp_path, says):
    path, damaged = tmp_path / "broken.json", as_record(replace(TYPICAL, name="broken"), "stated")
    if says in DAMAGE:
        DAMAGE[says](damaged)
        write_record(path, damaged)
    else:  # no profile at all
        path.write_text(says)
    with pytest.raises(
        InputError, match=rf"profile file broken\.json: .*{re.escape(says) if says in DAMAGE else ''}"
    ):
        read_profile(path)
    with pytest.raises(InputError, match=r"profile file broken\.json: "):
        committed_profiles(tmp_path)


def test_the_command_replaces_no_file(tmp_path, capsys):
    out = tmp_path / "calibrated.json"
    out.touch()
    with pytest.raises(SystemExit) as refused:
        main(["calibrate", "--out", str(out)])
    assert refused.value.code == 2
    assert str(out) in capsys.readouterr().err
