"""The paper's rows and ours below them."""

import pytest

from envprobe_core import judge, run
from envprobe_core.analyses.beside import as_printed, beside_paper
from envprobe_core.claims import paper_value

ACCURACY = ["method_accuracy", "reference_accuracy", "accuracy_difference_pct", "accuracy_p"]


@pytest.fixture(scope="module")
def episodes():
    return run(policies="simple judge minus-u", regimes="S1", protocols="paper released", seeds="0:14")


def test_pairs_are_joined_by_seed_and_judged_as_the_claim(episodes):
    rows = {"ordering-judge": "spatial: judge vs simple"}
    asked = {"regime": "S1", "resamples": 200}
    shuffled = episodes.sample(frac=1, random_state=0)
    found, again = (
        beside_paper(frame, rows, "tab:ordering", ACCURACY, **asked).set_index("source").sort_index()
        for frame in (episodes, shuffled)
    )
    assert found.equals(again)
    spatial = episodes[(episodes["world"] != "tooldag") & (episodes["protocol"] == "paper")]
    means = spatial.groupby("policy")["accuracy"].mean()
    own = found.loc["as written"]
    assert own["method"] == pytest.approx(means["judge"], rel=1e-12)
    assert own["estimate"] == pytest.approx(100 * (means["judge"] - means["simple"]), rel=1e-9, abs=1e-9)
    assert (own["n"], own["left_out"]) == (28, 0)
    verdict = judge(episodes, list(rows), **asked).set_index("protocol").loc["paper"]
    assert (own["verdict"], own["adjusted_low"]) == (verdict["verdict"], verdict["low_adjusted"])
    printed = found.loc["*printed*"]
    assert tuple(printed[["method", "base", "estimate", "p"]]) == ("0.339", "0.341", "+2.39", "–")
    assert printed["difference"] is None


def test_too_few_pairs_to_judge_are_still_counted(episodes):
    few, rows = episodes[episodes["seed"] < 3], {"ordering-judge": "spatial: judge vs simple"}
    found = beside_paper(few, rows, "tab:ordering", ACCURACY, regime="S1").set_index("source")
    own = found.loc["as written"]
    assert (own["verdict"], own["n"], own["estimate"]) == ("not tested", 6, None)


def test_printed_numbers_keep_their_digits_and_relation():
    value = paper_value("tab:ablation", "procedural: minus-d vs simple", "accuracy_difference_pct")
    assert as_printed(value) == "−12.08"
    p = paper_value("tab:g4_main", "procedural: simple vs random", "useful_probe_rate_p")
    assert as_printed(p) == "> .99"
    gain = paper_value("tab:ordering", "procedural: simple vs periodic", "accuracy_difference_pct")
    assert as_printed(gain, sign=True) == "+11.76"
    assert as_printed(None) == "–"
