"""What the public repository records (`data/public`), against the paper's numbers and the repository."""

import csv
import os
import subprocess

import pandas as pd
import pytest

from envprobe_book import compare, run
from envprobe_book.claims import PaperValue, paper_value, paper_values
from envprobe_book.claims.registry import find_campaigns, find_origins, level_on_tools
from envprobe_core.policies import POLICIES
from envprobe_core.regimes import REGIMES
from envprobe_core.sources import DATA
from envprobe_core.worlds import WORLDS

FOLDER = DATA / "public"
REPOSITORY = os.environ.get("ENVPROBE_PUBLIC_CODE", "")
"""A clone of the public repository, to read each recorded line again."""
COMMIT = "3266b54"
ROWS = {"registry": 178, "recorded": 33, "hints": 13}
OWN = {"ToolDAGWorld": "tooldag", "ObjectStateWorld": "objectstate", "GraphNavWorld": "graphnav"}
OTHER_NAMES = {"oracle-task-weighted": "oracle-tw", "simple-cd": "cd"}


def rows_of(name):
    with (FOLDER / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def lines_of(file):
    shown = subprocess.run(
        ["git", "-C", REPOSITORY, "show", f"{COMMIT}:{file}"], capture_output=True, check=True
    )
    return shown.stdout.decode().split("\n")


@pytest.mark.parametrize(("name", "count"), ROWS.items())
def test_every_row_names_what_there_is(name, count):
    rows = rows_of(name)
    assert len(rows) == count == len({tuple(row.values()) for row in rows})
    assert all(int(row["line"]) > 0 for row in rows)
    assert {row.get("commit", COMMIT) for row in rows} == {COMMIT}
    for row in rows:
        assert not row["policy"] or row["policy"] in POLICIES
        assert row.get("world", "") in {*WORLDS, "unstated", ""}
        assert row.get("regime", "S2") in REGIMES


def test_a_recorded_figure_stands_beside_the_one_that_is_printed():
    rows = rows_of("recorded")
    beside = [row for row in rows if row["printed"]]
    assert len(beside) == 8
    for row in rows:
        if not row["printed"]:
            assert not row["source"]
            continue
        printed = paper_value(row["source"], row["row"], row["column"])
        assert f"{printed.value:.{printed.decimals}f}" == row["printed"]
        assert row["policy"] in row["row"]
        assert row["reference"] in row["row"]


def test_seeds_of_the_registry_are_as_many_as_it_says():
    """And the last one belongs to them, as in the public runner."""
    cells = pd.read_csv(FOLDER / "registry.csv")
    ten_fewer = cells["campaign"] == "boundary_smoke"
    assert (cells["last_seed"] - cells["first_seed"] + 1 == cells["n"]).all()
    assert set(cells.loc[ten_fewer, "n"]) == {30}
    assert not cells.duplicated(["campaign", "world", "regime", "policy"]).any()
    late = cells[cells["campaign"].str.startswith("r3_stage_d")]
    assert set(late["world"]) == {"tooldag"}
    assert not {"self-uncertainty", "judge", "oracle"} & set(late["policy"])


def test_only_one_campaign_has_150_pairs_of_judge_and_oracle():
    cells, pair = pd.read_csv(FOLDER / "registry.csv"), ("judge", "oracle")
    assert find_campaigns(cells, ("tooldag", "objectstate", "graphnav"), pair, 150) == ["gate A"]
    assert find_campaigns(cells, ("objectstate", "graphnav"), pair, 150) == []
    assert find_campaigns(cells, ("objectstate",), pair, 10, at_least=True) == ["first", "gate A"]


def test_a_row_says_what_level_of_simple_on_tools_it_holds():
    levels = {
        "combined: simple vs periodic": 3 * 0.5 - 2 * 0.4,
        "procedural: simple vs periodic": 0.6,
        "procedural: minus-s vs simple": 0.55 - 0.02,
        "procedural: judge vs random": None,
    }
    printed = {
        ("combined: simple vs periodic", "method_accuracy"): 0.5,
        ("spatial: simple vs periodic", "method_accuracy"): 0.4,
        ("procedural: simple vs periodic", "method_accuracy"): 0.6,
        ("procedural: minus-s vs simple", "method_accuracy"): 0.55,
        ("procedural: minus-s vs simple", "accuracy_difference_pct"): 2.0,
        ("procedural: judge vs random", "method_accuracy"): 0.3,
    }
    numbers = [PaperValue("tab:x", *at, "=", value, None, None, 220, 3) for at, value in printed.items()]
    for row, level in levels.items():
        assert level_on_tools(numbers, "tab:x", row) == (level and pytest.approx(level))


def test_a_recorded_level_tells_campaigns_apart_where_the_registry_does_not():
    cells, numbers = pd.read_csv(FOLDER / "registry.csv"), paper_values()
    level = paper_value("tab:main", "procedural: simple vs periodic", "method_accuracy").value
    there = find_origins(cells, numbers, level).set_index(["source", "row"])
    elsewhere = find_origins(cells, numbers, level - 0.1).set_index(["source", "row"])
    main = ("tab:main", "procedural: simple vs periodic")
    assert there.loc[main, ["fits", "why"]].tolist() == ["first or second", "registry"]
    assert elsewhere.loc[main, ["fits", "why"]].tolist() == ["second", "recorded level"]
    assert there.loc[("tab:ordering", "unstated: oracle vs judge"), "fits"] == "gate A"


def test_on_the_seeds_of_gate_a_the_oracle_is_behind_the_judge_as_released_alone():
    """As an independent check found with other code, but for the last digits that resampling moves."""
    pairs = compare(run(policies="judge oracle", seeds="42:92"), "oracle", "judge")
    found = pairs[pairs["stratum"] == "combined"].set_index("protocol")
    assert set(found["n"]) == {150}
    released = found.loc["released", ["gain", "gain_low", "gain_high"]].tolist()
    assert released == pytest.approx([-4.0, -5.0, -3.1], abs=0.1)
    assert found.loc["observed", "gain"] == pytest.approx(3.2, abs=0.05)
    assert found.loc["paper", "gain"] == pytest.approx(2.7, abs=0.05)
    spatial = pairs.set_index(["protocol", "stratum"]).loc[("released", "spatial")]
    assert (
        spatial.gain > found.loc["released", "gain"]
    )  # where the claim was tested before the registry was read


def test_agents_that_do_nothing_leave_the_recorded_signature():
    made = pd.read_parquet(FOLDER / "idle.parquet")
    assert len(made) == 40 * 220
    tools = made[made["world"] == "tooldag"]
    assert (tools["accuracy"] - 0.7).abs().max() < 1e-9
    assert not made["success"].any()
    probes = tools.groupby(["agent", "policy"])[["probes", "useful"]].mean()
    assert probes.loc[("target-only", "self-uncertainty")].tolist() == [7, 7]
    assert probes.loc[("target-only", "oracle")].tolist() == [0, 0]
    assert probes.loc[("no-answer", "self-uncertainty")].tolist() == [0, 0]
    levels = made[made["agent"] == "no-answer"].groupby("world")["accuracy"].agg(["min", "max"])
    assert levels.loc["objectstate"].tolist() == pytest.approx([0.3, 0.3])
    assert levels.loc["graphnav"].tolist() == pytest.approx([0.2, 0.2])


def test_no_loop_on_one_tool_leaves_the_recorded_signature():
    made = pd.read_parquet(FOLDER / "loops.parquet")
    assert len(made) == 30 * 220
    loops = made.groupby(["agent", "policy"])["accuracy"].agg(["mean", "std"])
    assert loops["std"].min() > 0.005
    assert (loops["mean"] - 0.7).abs().min() > 0.02


def test_the_released_rate_of_true_tables_goes_by_what_an_agent_does_and_by_the_words_of_its_line():
    made = pd.read_parquet(FOLDER / "habits.parquet")
    sums = made.groupby(["line", "agent", "world"])[["confident_wrong", "confident"]].sum()
    by_world = sums["confident_wrong"] / sums["confident"]
    sums = sums.groupby(["line", "agent"]).sum()
    rates = sums["confident_wrong"] / sums["confident"]
    assert rates["names"].min() < 0.25 < rates["names", "scribe"] < 0.5 < rates["names", "lost"]
    assert rates["nameless"].max() < 0.4
    assert by_world["names", "lost", "tooldag"] > 0.95
    assert by_world["nameless", "lost", "tooldag"] < 0.2
    elsewhere = by_world.drop("tooldag", level="world")  # the rule about what is named is of tools, mostly
    assert (elsewhere["names"] - elsewhere["nameless"]).abs().max() < 0.06


@pytest.mark.skipif(not REPOSITORY, reason="ENVPROBE_PUBLIC_CODE names no clone of the public repository")
@pytest.mark.parametrize("name", ["recorded", "hints"])
def test_every_row_stands_in_the_repository(name):
    for row in rows_of(name):
        assert row["token"] in lines_of(row["file"])[int(row["line"]) - 1], row


@pytest.mark.skipif(not REPOSITORY, reason="ENVPROBE_PUBLIC_CODE names no clone of the public repository")
def test_the_registry_is_the_repository_s():
    theirs = list(csv.DictReader(lines_of("cells_registry.csv")))
    for line, (row, own) in enumerate(zip(theirs, rows_of("registry"), strict=True), start=2):
        policy = row["method"].removeprefix("envprobe_").removesuffix("_probe").replace("_", "-")
        policy = {"no": "no-probe"}.get(policy, policy).replace("simple-minus", "minus")
        seeds = f"{own['first_seed']}:{own['last_seed']}"
        found = [str(line), row["role"], OWN[row["env"]], row["stress_config"]]
        found += [OTHER_NAMES.get(policy, policy), row["n_seeds"], *row["seeds_spec"].split(":")]
        assert list(own.values()) == found
        assert seeds == row["seeds_spec"]
