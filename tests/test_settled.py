"""The settled scribe: its targets follow from printed figures, its file is what the code finds."""

import json
import re

import numpy as np
import pytest
from scipy import stats

from envprobe_book.analyses import settled
from envprobe_book.analyses.calibration import Settings
from envprobe_book.claims import paper_value
from envprobe_core.agents.profiles import HESITANT, PROFILE_FOLDER, PROFILES, read_record
from envprobe_core.conditions import Condition
from envprobe_core.engine.batch import simulate
from envprobe_core.experiment import run
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import RELEASED
from envprobe_core.sources import ROOT
from processes import script

fit = script("data/profiles/fit.py")
PAPER = settled.target_values()


def test_printed_shares_and_p_name_the_pairs_that_disagree():
    """No other pairs with the printed difference give the printed p, by SciPy's binomial test."""
    for policy, digits, wanted in (("cd", 2, (22, 32)), ("minus-u", 4, (10, 37))):
        row = ("tab:main", f"procedural: {policy} vs simple")
        own, simple = (paper_value(*row, f"{arm}_success_pct").value for arm in ("method", "reference"))
        p = paper_value(*row, "success_mcnemar_p").value
        more = round(2.2 * simple) - round(2.2 * own)
        fits = [
            (alone, alone + more)
            for alone in range(220 - more)
            if round(stats.binomtest(alone, 2 * alone + more).pvalue, digits) == p
        ]
        assert wanted in fits
        assert settled.printed_pairs(policy) == wanted
        assert max(abs(sum(pair) - sum(wanted)) for pair in fits) <= 4  # what rounding leaves open


def test_targets_are_counts_and_levels_and_no_comparison():
    kinds = [target.kind for target in settled.TARGETS]
    assert kinds == ["pairs", "pairs", "silent", "silent", "accuracy", "accuracy"]
    wanted = [54 / 220, 47 / 220, 47 / 220, 121 / 440, 0.313, 0.303]
    np.testing.assert_allclose(PAPER, wanted, atol=1e-12)
    assert len(settled.FREE) < len(settled.TARGETS)
    assert {target.policy for target in settled.TARGETS if target.kind == "accuracy"} == {"periodic"}
    # one rate of episodes without a probe is not refused by the two printed ones
    assert stats.fisher_exact([[47, 173], [121, 319]]).pvalue > 0.05


def test_no_page_runs_the_seeds_of_the_fit():
    texts = [path.read_text("utf-8") for path in (ROOT / "notebooks").glob("*.ipynb")]
    ranges = [tuple(map(int, own)) for text in texts for own in re.findall(r'"(\d+):(\d+)', text)]
    assert len(ranges) > 20
    assert all(past <= settled.SEEDS[0] or first > settled.SEEDS[-1] for first, past in ranges)


def test_predictions_are_the_counts_of_the_episodes():
    seeds = np.arange(100)
    profile = PROFILES["scribe-settled"]
    found = settled.predict([HESITANT, profile], seeds)

    def of(world, policy):
        return simulate(Condition(world, POLICIES[policy], protocol=RELEASED, profile=profile), seeds)

    simple = of("tooldag", "simple")
    assert found[1, 0] == (of("tooldag", "cd")["success"] != simple["success"]).mean()
    assert found[1, 2] == (simple["probes"] == 0).mean()
    spatial = [of(world, "simple")["probes"] == 0 for world in ("objectstate", "graphnav")]
    assert found[1, 3] == pytest.approx(np.mean(spatial))
    assert found[0, 2] == 0
    assert found[1, 4] == pytest.approx(of("tooldag", "periodic")["accuracy"].mean())
    z = (found - PAPER) / [target.scale for target in settled.TARGETS]
    np.testing.assert_allclose(settled.loss(found, PAPER), (2 * (np.sqrt(1 + z * z) - 1)).sum(axis=1))
    assert settled.loss(PAPER, PAPER) == 0


def test_figures_are_those_of_the_fit_and_stand_in_the_order_of_what_is_printed():
    seeds, names = "0:60", "periodic simple cd minus-u"
    episodes = run(policies=names, protocols="released", profiles="scribe-settled", seeds=seeds)
    printed, found = settled.printed_figures(), settled.figures(episodes)
    assert len(printed) == len(found)
    fitted = settled.predict([PROFILES["scribe-settled"]], np.arange(60))[0]
    scales = [220 if unit == "pairs" else 100 for unit in printed["unit"][printed["fitted"]]]
    np.testing.assert_allclose(np.array(found)[printed["fitted"]], fitted * scales)
    np.testing.assert_allclose(printed["printed"][printed["fitted"]], PAPER * scales)
    named = dict(zip(printed["figure"], found, strict=True))
    means = episodes.groupby(["policy", "world"])[["accuracy", "success"]].mean() * 100
    assert named["accuracy of (c+d), tools"] == pytest.approx(means.loc[("cd", "tooldag"), "accuracy"])
    assert named["success of Simple without u, tools"] == pytest.approx(
        means.loc[("minus-u", "tooldag"), "success"]
    )
    alone = named["(c+d) alone succeeds"], named["EnvProbe-Simple alone succeeds, beside (c+d)"]
    assert sum(alone) == pytest.approx(named["pairs of (c+d) and EnvProbe-Simple that disagree"])
    apart = named["success of EnvProbe-Simple, tools"] - named["success of (c+d), tools"]
    assert alone[1] - alone[0] == pytest.approx(2.2 * apart)


@pytest.mark.nightly
def test_a_search_finds_the_best_it_meets_and_the_same_again():
    short, counts, few = Settings(population=8, generations=1, seed=5), [], settled.SEEDS[:30]
    made = [fit.search_settled(short, few, jobs, counts.append) for jobs in (1, 2)]
    assert made[0] == made[1]
    assert made[0][1] == counts[-1]
    found, base = settled.predict([made[0][0], HESITANT], few)
    assert settled.loss(found, PAPER) < settled.loss(base, PAPER)


def test_the_committed_file_is_what_the_code_finds(tmp_path):
    """Its rates are read; all else is made again, to the last byte."""
    path = PROFILE_FOLDER / "scribe-settled.json"
    stated = read_record(path)["fit"]
    rates = [round(1000 * getattr(PROFILES["scribe-settled"], item.name)) for item in settled.FREE]
    profile = fit.settled_profile(rates)
    assert profile == PROFILES["scribe-settled"]
    fit.write_record(tmp_path / path.name, fit.settled_record(profile, stated["evaluations"]))
    assert (tmp_path / path.name).read_text() == path.read_text()
    assert json.loads(path.read_text())["parameters"]["own_noise"] is True
