"""Calibration: only allowed policies are run, the fit is reproducible, and the committed files are true."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from envprobe_book.analyses.calibration import (
    BASE,
    COUNTED,
    FREE,
    KINDS,
    SCALE,
    TARGETS,
    Fit,
    Search,
    Settings,
    candidate,
    loss,
    predict,
    target_values,
)
from envprobe_book.claims import load_claims, paper_value, paper_values
from envprobe_book.claims.judge import CALIBRATED
from envprobe_core.agents.profiles import (
    PROFILE_FOLDER,
    PROFILES,
    TYPICAL,
    as_record,
    committed_profiles,
    read_profile,
    read_record,
)
from envprobe_core.errors import InputError
from processes import script as load

script = load("data/profiles/fit.py")
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
    assert (PAPER.tolist(), COUNTED.tolist()) == ([0.352, 0.313, 0.303, 0.306, 0.924], [False] + [True] * 4)
    for target in TARGETS:
        if target.follows:
            assert target.value == pytest.approx((0.313 + 2 * 0.303) / 3, abs=0.0005)
        if target.policy is not None:
            assert {paper_value(*place).value for place in target.repeats} <= {target.value}
    assert len(FREE) < sum(not target.follows and not target.dropped for target in TARGETS)


@given(arrays.arrays(float, (3, 5), elements=st.floats(0, 1)), arrays.arrays(bool, 5))
def test_loss_is_its_formula_and_is_zero_at_the_target(predicted, counted):
    for row, found in zip(predicted, loss(predicted, PAPER, counted), strict=True):
        terms = [2 * ((1 + ((a - b) / SCALE) ** 2) ** 0.5 - 1) for a, b in zip(row, PAPER, strict=True)]
        assert found == pytest.approx(sum(term for term, own in zip(terms, counted, strict=True) if own))
    assert loss(PAPER, PAPER) == 0
    np.testing.assert_array_equal(loss(predicted, PAPER), loss(predicted, PAPER, COUNTED))


# the search and what is committed of it


@pytest.mark.nightly
def test_a_fit_is_the_best_it_saw_and_the_same_again():
    short, made = Settings(8, generations=2, left_out_generations=1, seed=3), []
    for jobs in (1, 2):
        search = Search(SEEDS, jobs)
        fitted, others = script.calibrate(search, short)
        made.append(script.calibrated_record(fitted, others, search, short))
    assert made[0] == made[1]
    assert fitted.loss <= fitted.first_loss
    assert fitted.loss < loss(predict([BASE], SEEDS), PAPER)[0]
    everything = np.array(list(search.seen.values()))
    for one, kind in zip((fitted, *others), ("", *KINDS), strict=True):
        assert one.loss == loss(everything[: one.evaluations], PAPER, counted_without(kind)).min()
    assert (predict([fitted.profile], SEEDS)[0] == fitted.predicted).all()
    base = {item.name: getattr(BASE, item.name) for item in FREE}
    assert replace(fitted.profile, **base, name=BASE.name, assumption=BASE.assumption) == BASE


def test_the_committed_fit_is_what_the_code_finds(tmp_path):
    """Its rates are read; all else is made again, to the last byte."""
    path = PROFILE_FOLDER / "calibrated.json"
    fit = read_record(path)["fit"]
    first, evaluations, rates = (
        fit["objective"]["first_generation"],
        fit["evaluations"],
        [vars(PROFILES["calibrated"])],
    )
    rates += [entry["rates"] for entry in fit["left_out"]]
    agents = [candidate([round(1000 * own[item.name]) for item in FREE]) for own in rates]
    fits = [
        Fit(agent, ours, float(loss(ours, PAPER, counted_without(kind))), first, evaluations, kind)
        for agent, ours, kind in zip(agents, predict(agents), ("", *KINDS), strict=True)
    ]
    script.write_record(tmp_path / path.name, script.calibrated_record(fits[0], fits[1:], Search()))
    assert (tmp_path / path.name).read_text() == path.read_text()
    assert fits[0].loss < first
    for other in fits[1:]:
        assert other.loss <= loss(fits[0].predicted, PAPER, counted_without(other.left_out))


# files of profiles


def test_committed_profiles_join_the_others():
    kinds = {path.stem: read_record(path)["kind"] for path in PROFILE_FOLDER.glob("*.json")}
    fitted = {"calibrated": "fitted", "scribe-settled": "fitted"}
    assert kinds == fitted | {"careful": "stated", "overconfident": "stated"}
    assert set(CALIBRATED) == {"scribe", "scribe-hesitant", *fitted}
    assert all(PROFILES[profile.name] == profile for profile in committed_profiles())
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
        script.write_record(path, damaged)
    else:  # no profile at all
        path.write_text(says)
    message = rf"profile file broken\.json: .*{re.escape(says) if says in DAMAGE else ''}"
    with pytest.raises(InputError, match=message):
        read_profile(path)
    with pytest.raises(InputError, match=r"profile file broken\.json: "):
        committed_profiles(tmp_path)
