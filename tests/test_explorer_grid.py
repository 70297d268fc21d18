"""The explorer's engine side: distinct trajectories, readings, the grid in Python and in a browser."""

import json
from dataclasses import fields
from itertools import product

import numpy as np
import pytest

from envprobe_core import run as load_frame
from envprobe_core.agents.profiles import TYPICAL
from envprobe_core.cells import make_cell, parse_seeds
from envprobe_core.engine.running import record
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import OBSERVED, PAPER, PROTOCOLS, RELEASED
from envprobe_core.regimes import REGIMES
from envprobe_core.sources import PACKAGE, engine_sources
from envprobe_core.statistics import bootstrap_means, clustered_rate, mean_interval, mean_track
from envprobe_core.widgets import grid
from envprobe_core.widgets.host import module_text
from envprobe_core.widgets.readings import (
    Episodes,
    Readings,
    ResampledSums,
    join,
    measure,
    pooled,
    take_readings,
)
from envprobe_core.worlds import WORLDS

SEEDS = "7:13"


@pytest.fixture(scope="module")
def small():
    """A whole grid on six seeds."""
    return grid.run_grid(seeds=SEEDS, resamples=200, jobs=1)


@pytest.fixture(scope="module")
def records(small):
    """Its distinct readings, as a live explorer has them."""
    readings = Readings(**{name: np.array(column) for name, column in small["readings"].items()})
    return [readings.record(index) for index in range(len(readings))]


def settings_of(own):
    """Some settings of a grid, of every world, protocol and policy: the key and two positions."""
    draw = np.random.default_rng(4)
    for key, rows in own["rows"].items():
        for _ in range(2):
            yield key, int(draw.integers(len(rows[0]))), int(draw.integers(len(rows)))


def cell_of(own, key, b, k):
    protocol, world, name = key.split("/")
    threshold = own["thresholds"][k] if POLICIES[name].has_threshold else None
    place = "tooldag" if world == grid.POOL else world
    first = make_cell(place, name, "S2", PROTOCOLS[protocol], "typical", own["budgets"][b], threshold)
    return pooled(first) if world == grid.POOL else first


# --- distinct trajectories --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("world", "protocol", "regime", "seeds"),
    [(world, protocol, "S2", [0, 219]) for world in WORLDS for protocol in (PAPER, RELEASED)]
    + [("tooldag", RELEASED, "S3", [1000]), ("objectstate", OBSERVED, "S1", [1000, 1017])],
)
def test_reused_trajectories_are_those_of_real_runs(world, protocol, regime, seeds):
    """Every setting of every policy on some seeds, columns and probes: all are run here."""
    level, seeds = REGIMES[regime], np.array(seeds)
    block = grid.Block(world, level, protocol, TYPICAL, seeds, (0, 1, 2, 5, level.horizon // 2))
    _, episodes, rows = grid.run_block(block)
    cells, shared = [], []
    for name, at in rows.items():
        for b, k in np.ndindex(at.shape[:2]):
            threshold = block.thresholds[k] if POLICIES[name].has_threshold else None
            cells.append(block.cell(POLICIES[name], block.budgets[b], threshold))
            shared.append(at[b, k])
    real = join([measure(record(cell, seeds, scores_all=False)) for cell in cells])
    shared = episodes.rows(np.concatenate(shared))
    for field in fields(Episodes):
        np.testing.assert_array_equal(getattr(shared, field.name), getattr(real, field.name), field.name)
    assert len(episodes.success) < len(cells) * len(seeds) / 2


# --- readings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_a_reading_says_what_the_book_says(protocol):
    """The same episodes through the functions of the other sections."""
    frame = load_frame("graphnav", "simple", "S2", protocol, seeds="0:60", budgets=5, thresholds=2.0)
    cell = make_cell("graphnav", "simple", protocol=PROTOCOLS[protocol], budget=5, threshold=2.0)
    reading = take_readings([cell], seeds := parse_seeds("0:60"), resamples=500)[0]
    for column in ("accuracy", "success"):
        expected = mean_interval(frame[column].to_numpy(dtype=float), resamples=500)
        assert reading[column] == pytest.approx(list(expected[:3]), abs=0.5e-4 + 1e-9)
    rates = (frame["useful"] / frame["probes"]).fillna(0)
    rate = clustered_rate(rates, frame["probes"] > 0, resamples=500)
    assert reading["useful_rate"] == pytest.approx([rate.mean, rate.low, rate.high], abs=0.5e-4 + 1e-9)
    assert reading["useful"] == [frame["useful"].sum(), frame["probes"].sum()]
    assert (reading["repeated"], reading["n"]) == (frame["repeated_probes"].sum(), 60)
    assert sum(reading["fires"]) == frame["probes"].sum()
    shown = mean_track(record(cell, seeds).accuracy, resamples=10)["accuracy"]
    known, curve = ~np.isnan(shown), np.array(reading["curve"], dtype=float)
    assert known.sum() > 10
    np.testing.assert_allclose(curve[known], shown[known], rtol=0, atol=0.5e-3 + 1e-9)


def test_the_pool_resamples_within_each_world():
    cell, seeds = make_cell("tooldag", "judge", budget=4), parse_seeds("0:50")
    frame = load_frame(tuple(WORLDS), "judge", "S2", "paper", seeds="0:50", budgets=4)
    reading = take_readings([pooled(cell)], seeds, resamples=400)[0]
    codes = frame["world"].map(list(WORLDS).index)
    order = np.argsort(codes, kind="stable")
    expected = mean_interval(frame["accuracy"].to_numpy()[order], codes.to_numpy()[order], resamples=400)
    assert reading["accuracy"] == pytest.approx(list(expected[:3]), abs=0.5e-4 + 1e-9)
    assert reading["n"] == 150
    alone = take_readings([pooled(cell)], np.array([3]), resamples=20)[0]
    assert take_readings([cell], np.array([3]), resamples=20)[0]["accuracy"][1:] == [None, None]
    assert alone["accuracy"][1:] == [None, None], "one episode has no interval"


@pytest.mark.parametrize("worlds", [1, 2, 3])
def test_resampled_means_are_those_of_the_book_to_the_bit(worlds):
    columns = np.random.default_rng(3).random((7, 40 * worlds))
    columns[2], columns[3] = 0.0, columns[3] > 0.5
    columns[4, :40] = columns[1, :40]
    strata = np.repeat(np.arange(worlds), 40) if worlds > 1 else None
    expected = bootstrap_means(columns.T, strata, resamples=700)
    sums = ResampledSums(700)
    for rows in ([1, 4], [0, 1, 2, 3, 4, 5, 6], [6, 6, 0]):
        np.testing.assert_array_equal(sums.means(columns[rows], worlds), expected.T[rows])


# --- the grid ---------------------------------------------------------------------------------


def test_the_grid_reads_what_the_engine_reads(small, records):
    """The static page's numbers are those of a live call, digit for digit."""
    asked = list(settings_of(small))
    live = take_readings([cell_of(small, *one) for one in asked], parse_seeds(SEEDS), resamples=200)
    assert [records[small["rows"][key][k][b]] for key, b, k in asked] == live


def test_the_grid_holds_every_setting(small, records):
    assert set(small["rows"]) == set(map("/".join, product(PROTOCOLS, (*WORLDS, grid.POOL), POLICIES)))
    assert small["budgets"] == list(range(REGIMES["S2"].horizon // 2 + 1))
    assert (small["thresholds"][0], small["thresholds"][-1]) == (0.0, 4.0)
    assert 1.5 in small["thresholds"]
    used = {at for rows in small["rows"].values() for line in rows for at in line}
    assert used == set(range(len(records)))


@pytest.mark.browser
def test_the_page_reads_what_the_engine_reads(chromium, small, records):
    """Every setting of the grid, through the front end in a browser."""
    page = chromium.new_page()
    wrong = page.evaluate(
        """async ([source, text]) => {
            const { whole, records } = JSON.parse(text);
            const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
            const grid = (await import(url)).openGrid(whole);
            const texts = records.map((record) => JSON.stringify(record, Object.keys(record).sort()));
            let wrong = 0;
            for (const [key, at] of Object.entries(whole.rows)) {
                const [protocol, world, policy] = key.split("/");
                at.forEach((line, k) => line.forEach((row, b) => {
                    const budget = whole.budgets[b], threshold = whole.thresholds[k];
                    const own = grid.read({ protocol, world, policy, budget, threshold });
                    if (JSON.stringify(own, Object.keys(own).sort()) !== texts[row]) wrong += 1;
                }));
            }
            const setting = { protocol: "paper", world: "pool", policy: "simple", budget: 3, threshold: 1.5 };
            const changes = [{ budget: 99 }, { threshold: 1.3 }, { policy: "mine" }, { world: "moon" }];
            return [wrong, ...changes.map((change) => grid.read({ ...setting, ...change }))];
        }""",
        [
            module_text("explorer") + "\nexport { openGrid };\n",
            json.dumps({"whole": small, "records": records}),
        ],
    )
    page.close()
    assert wrong == [0, None, None, None, None]


# --- kept -------------------------------------------------------------------------------------


def test_a_grid_is_computed_once_until_its_inputs_change(tmp_path, monkeypatch, small):
    counted = []
    monkeypatch.setattr(grid, "run_grid", lambda *given: counted.append(given) or small)
    assert grid.load_grid(folder=tmp_path, compute=False) is None
    whole = json.loads(json.dumps(small))
    assert grid.load_grid(folder=tmp_path) == grid.load_grid(folder=tmp_path, compute=False) == whole
    assert len(counted) == 1
    for change in ({"seeds": "0:9"}, {"resamples": 50}, {"profile": "perfect"}, {"regime": "S1"}):
        grid.load_grid(folder=tmp_path, **change)
    monkeypatch.setattr(grid, "engine_sha256", lambda roots: "another engine")
    grid.load_grid(folder=tmp_path, regime="S1")
    assert len(counted) == 6
    assert [file.suffix for file in tmp_path.iterdir()] == [".json"] * grid.KEPT
    for file in tmp_path.iterdir():
        file.write_text(file.read_text()[:1000])
    assert grid.load_grid(folder=tmp_path, regime="S1") == whole  # a damaged one is computed again
    found = {path.relative_to(PACKAGE).as_posix() for path in engine_sources(grid.SOURCES)}
    assert {"engine/loop.py", "policies/rules.py", "statistics.py", "widgets/readings.py"} <= found
    assert not any(name.startswith(("cli/", "sections/", "llm/")) for name in found)
