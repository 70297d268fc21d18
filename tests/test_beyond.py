"""The pages beyond the paper: the held-out test's arithmetic, the frontier's standing, the rules."""

import numpy as np
import pandas as pd
import pytest

from envprobe_core.beyond import frontier, heldout, learning, rules
from envprobe_core.cells import make_cell
from envprobe_core.protocols import OBSERVED
from envprobe_core.sweep import run_cells


@pytest.fixture(scope="module")
def compared() -> pd.DataFrame:
    return heldout.load_heldout("S1", "observed", seeds="300000:300060", resamples=300)


def test_design_seeds_are_refused() -> None:
    with pytest.raises(ValueError, match="seed 101999 was used to design VoI"):
        heldout.load_heldout("S1", "paper", seeds="101999:102003")


def test_differences_are_paired_and_in_points(compared: pd.DataFrame) -> None:
    seeds = np.arange(300000, 300060)
    mine, rival = (
        run_cells([make_cell("graphnav", name, "S1", OBSERVED)], seeds) for name in ("voi", "periodic")
    )
    row = compared[
        (compared["world"] == "graphnav") & (compared["variant"] == "voi") & (compared["rival"] == "periodic")
    ].iloc[0]
    for measure in heldout.MEASURES:
        difference = 100 * (mine[measure].astype(float) - rival[measure].astype(float))
        assert row[measure] == pytest.approx(difference.mean())
        assert row[f"{measure}_low"] <= row[measure] <= row[f"{measure}_high"]


def test_a_comparison_passes_if_it_is_no_worse_and_somewhere_better(compared: pd.DataFrame) -> None:
    for row in compared.itertuples():
        lows = row.accuracy_low, row.success_low
        assert row.passes == (min(lows) >= -1 and max(lows) > 0)
    pairs = heldout.passed_pairs(compared)
    assert len(pairs) == 3 * len(heldout.RIVALS)
    for row in pairs.itertuples():
        own = compared[(compared["world"] == row.world) & (compared["rival"] == row.rival)]
        assert row.by.split() == own[own["passes"]]["variant"].tolist()


def test_the_text_counts_what_the_table_counts(compared: pd.DataFrame) -> None:
    pairs = heldout.passed_pairs(compared)
    won = int((pairs["by"] != "").sum())
    assert f"{won} of {len(pairs)} comparisons pass" in heldout.tell_heldout(compared).markdown
    table = heldout.show_heldout(compared)
    assert sum(int(row[2].strip("*").split()[0]) for row in table.rows) == won
    none = compared.assign(passes=False)
    told = heldout.tell_heldout(none).markdown
    assert f"0 of {len(pairs)} comparisons pass" in told
    assert "met for none of the 11 policies" in told


def points(*rows: tuple[str, float, float]) -> pd.DataFrame:
    """Place policies by name, success and accuracy; `voi@W` are VoI's."""
    table = pd.DataFrame(rows, columns=["policy", "success", "accuracy"])
    weight = [float(name[4:]) if name.startswith("voi@") else np.nan for name in table["policy"]]
    return table.assign(protocol="paper", regime="S2", world="tooldag", weight=weight, share=1.0, n=9)


def test_dominance_by_hand() -> None:
    found = frontier.dominance(
        points(
            ("no-probe", 0.9, 0.5), ("simple", 0.5, 0.7), ("cd", 0.4, 0.6), ("oracle", 1.0, 1.0),
            ("voi@0", 0.8, 0.8), ("voi@1", 0.5, 0.65),
        )
    ).iloc[0]  # fmt: skip
    assert (found["rivals"], found["beats"], found["unbeaten"]) == (2, 1, "no-probe")
    assert (found["beaten"], found["weights"]) == (1, 2)
    assert (found["most"], found["best"]) == ("simple", "no-probe")
    assert found["accuracy"] == pytest.approx(10)
    assert found["success"] == pytest.approx(-10)
    told = frontier.tell_dominance(found.to_frame().T.infer_objects()).markdown
    assert "in 0 of 1 pairs VoI beats the whole frontier" in told
    assert "Unbeaten are No-Probe in ToolDAGWorld S2" in told


def test_under_a_protocol_without_answers_voi_stands_still() -> None:
    frame = frontier.load_frontier("S1", "released observed", seeds="0:12")
    placed = frontier.place(frame)
    found = frontier.dominance(placed)
    assert found.set_index("protocol")["same"].groupby("protocol").all().to_dict() == {
        "observed": False,
        "released": True,
    }
    assert "VoI never probes" in frontier.tell_dominance(found).markdown
    assert frontier.tell_budgets(placed).markdown.startswith("* `observed`")


@pytest.mark.parametrize(
    ("asks", "low", "high", "holds"),
    [
        ("gain", 0.1, 2, True), ("gain", -1, 2, None), ("gain", -2, -0.1, False),
        ("no loss", -0.9, 2, True), ("no loss", -1.5, 2, None), ("no loss", -3, -1.2, False),
        ("loss", -2, -0.1, True), ("loss", -2, 1, None), ("loss", 0.1, 1, False),
    ],
)  # fmt: skip
def test_rules_are_judged_by_their_interval(asks: str, low: float, high: float, holds: bool | None) -> None:
    rule = rules.RuleOfThumb("x", "simple", "no-probe", "success", "combined", asks)
    assert rule.holds(low, high) is holds


def test_rules_concern_protocols_that_can_test_them() -> None:
    tested = rules.load_rules("S1", "paper released", "typical", "0:20", 200)
    assert tested["protocol"].tolist() == ["paper"] * 4 + ["released"]
    assert len(rules.tell_rules(tested).markdown.splitlines()) == len(rules.RULES)


def test_learned_rates_come_nearer_to_the_truth() -> None:
    learned = learning.learned_rates("S3", "paper", seeds="0:40")
    assert (learned[learned["step"] == 0]["mean"] == 0.1).all()
    assert (learned["true"] == 0.3).all()
    last = learned[learned["step"] == 39]
    assert ((last["mean"] > 0.1) & (last["mean"] < 0.35)).all()
