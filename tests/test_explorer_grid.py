"""The explorer's engine side: distinct trajectories, readings, the grid in Python and in a browser."""

import json
from dataclasses import fields
from itertools import product

import numpy as np
import pytest

from envprobe_core import run as load_frame
from envprobe_core.agents.profiles import TYPICAL
from envprobe_core.cells import Cell, make_cell, parse_seeds
from envprobe_core.engine.running import record
from envprobe_core.policies import POLICIES, custom_policy
from envprobe_core.protocols import OBSERVED, PAPER, PROTOCOLS, RELEASED
from envprobe_core.regimes import REGIMES
from envprobe_core.sources import PACKAGE, engine_sources
from envprobe_core.statistics import bootstrap_means, mean_interval, mean_of_ratios, mean_track
from envprobe_core.widgets import grid
from envprobe_core.widgets.explorer import Explorer
from envprobe_core.widgets.host import module_text
from envprobe_core.widgets.readings import Episodes, ResampledSums, join, measure, pooled, take_readings
from envprobe_core.worlds import WORLDS

SEEDS = "7:13"


@pytest.fixture(scope="module")
def small():
    """A whole grid on six seeds."""
    return grid.run_grid(seeds=SEEDS, resamples=200, jobs=1)


def settings_of(own):
    """Some settings of a grid, of every world, protocol and policy: the key and two positions."""
    draw = np.random.default_rng(4)
    for key, rows in own.rows.items():
        for _ in range(2):
            yield key, int(draw.integers(rows.shape[1])), int(draw.integers(rows.shape[0]))


def cell_of(own, key, b, k):
    protocol, world, name = key
    policy = POLICIES[name]
    threshold = own.thresholds[k] if policy.has_threshold else None
    first = Cell(
        "tooldag" if world == grid.POOL else world,
        policy,
        REGIMES[own.regime],
        PROTOCOLS[protocol],
        budget=own.budgets[b],
        threshold=threshold,
    )
    return pooled(first) if world == grid.POOL else first


# --- distinct trajectories --------------------------------------------------------------------


CASES = [
    *(
        (world, protocol, "S2", [0, 3, 101, 219])
        for world in WORLDS
        for protocol in (PAPER, OBSERVED, RELEASED)
    ),
    ("tooldag", RELEASED, "S3", [1000, 1017]),
    ("objectstate", OBSERVED, "S1", [1000, 1017]),
    ("graphnav", PAPER, "S3", [1000, 1017]),
]


@pytest.mark.parametrize(("world", "protocol", "regime", "seeds"), CASES)
def test_reused_trajectories_are_those_of_real_runs(world, protocol, regime, seeds):
    """Every setting of every policy on some seeds, columns and probes: all are run here."""
    level, seeds = REGIMES[regime], np.array(seeds)
    block = grid.Block(world, level, protocol, TYPICAL, seeds, tuple(range(level.horizon // 2 + 1)))
    _, episodes, rows, simulated = grid.run_block(block)
    cells, shared = [], []
    for name, at in rows.items():
        for b, k in np.ndindex(at.shape[:2]):
            threshold = block.thresholds[k] if POLICIES[name].has_threshold else None
            cells.append(block.cell(POLICIES[name], b, threshold))
            shared.append(at[b, k])
    real = join([measure(record(cell, seeds, scores_all=False), cell) for cell in cells])
    shared = episodes.rows(np.concatenate(shared))
    for field in fields(Episodes):
        np.testing.assert_array_equal(getattr(shared, field.name), getattr(real, field.name), field.name)
    assert simulated < len(cells) * len(seeds) / 3


# --- readings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_a_reading_says_what_the_book_says(protocol):
    """The same episodes through the functions of the other sections."""
    frame = load_frame("graphnav", "simple", "S2", protocol, seeds="0:60", budgets=5, thresholds=2.0)
    cell = make_cell("graphnav", "simple", protocol=PROTOCOLS[protocol], budget=5, threshold=2.0)
    reading = take_readings([cell], parse_seeds("0:60"), resamples=500)[0]
    for column in ("accuracy", "success"):
        expected = mean_interval(frame[column].to_numpy(dtype=float), resamples=500)
        assert reading[column] == pytest.approx(list(expected[:3]), abs=0.5e-4 + 1e-9)
    rate = mean_of_ratios(frame["useful"], frame["probes"], resamples=500)
    assert reading["useful_rate"] == pytest.approx([rate.mean, rate.low, rate.high], abs=0.5e-4 + 1e-9)
    assert reading["useful"] == [frame["useful"].sum(), frame["probes"].sum()]
    assert reading["repeated"] == frame["repeated_probes"].sum()
    assert sum(reading["fires"]) == frame["probes"].sum()
    assert reading["n"] == 60


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_a_curve_is_the_mean_over_running_episodes(protocol):
    cell = make_cell("tooldag", "cd", protocol=PROTOCOLS[protocol])
    seeds = parse_seeds("0:40")
    track = record(cell, seeds).accuracy
    curve = np.array(take_readings([cell], seeds, resamples=10)[0]["curve"], dtype=float)
    shown = mean_track(track, resamples=10)["accuracy"]
    running = (~np.isnan(track)).sum(axis=0)
    assert np.isnan(curve[running == 0]).all()
    known = ~np.isnan(shown)
    assert known.sum() > 10
    np.testing.assert_allclose(curve[known], shown[known], rtol=0, atol=0.5e-3 + 1e-9)


def test_the_pool_resamples_within_each_world():
    cell = make_cell("tooldag", "judge", budget=4)
    seeds = parse_seeds("0:50")
    frame = load_frame(tuple(WORLDS), "judge", "S2", "paper", seeds="0:50", budgets=4)
    reading = take_readings([pooled(cell)], seeds, resamples=400)[0]
    strata = frame["world"].to_numpy(dtype=str)
    order = np.argsort([list(WORLDS).index(world) for world in strata], kind="stable")
    codes = np.array([list(WORLDS).index(world) for world in strata])[order]
    expected = mean_interval(frame["accuracy"].to_numpy()[order], codes, resamples=400)
    assert reading["accuracy"] == pytest.approx(list(expected[:3]), abs=0.5e-4 + 1e-9)
    single = [take_readings([one], seeds, resamples=10)[0] for one in pooled(cell)]
    assert reading["n"] == 150
    assert reading["fires"] == np.sum([one["fires"] for one in single], axis=0).tolist()


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


def test_readings_come_in_the_order_asked_whatever_their_shape():
    own = custom_policy("always", lambda view: np.full(view.value.shape, 9.0))
    asked = [
        make_cell("graphnav", "simple"),
        pooled(make_cell("tooldag", "no-probe")),
        Cell("tooldag", own),
        make_cell("graphnav", "simple"),
    ]
    together = take_readings(asked, parse_seeds("5:9"), resamples=50)
    apart = [take_readings([one], parse_seeds("5:9"), resamples=50)[0] for one in asked]
    assert together == apart
    assert together[0] == together[3]
    assert together[1]["useful_rate"] is None
    assert together[2]["fires"][:5] == [4] * 5
    assert json.loads(json.dumps(together)) == together


def test_one_episode_has_no_interval():
    cell = make_cell("tooldag", "simple")
    for setting in (cell, pooled(cell)):
        reading = take_readings([setting], np.array([3]), resamples=20)[0]
        for name in ("accuracy", "success", "useful_rate"):
            mean, low, high = reading[name]
            assert 0 <= mean <= 1
            assert (low, high) == (None, None)


# --- the grid ---------------------------------------------------------------------------------


def test_the_grid_reads_what_the_engine_reads(small):
    """The static page's numbers are those of a live call, digit for digit."""
    asked = list(settings_of(small))
    live = take_readings([cell_of(small, *one) for one in asked], parse_seeds(SEEDS), resamples=200)
    static = [small.readings.record(small.rows[key][k, b]) for key, b, k in asked]
    assert static == live


def test_the_grid_holds_every_setting(small):
    assert set(small.rows) == set(product(PROTOCOLS, (*WORLDS, grid.POOL), POLICIES))
    assert small.budgets == tuple(range(REGIMES["S2"].horizon // 2 + 1))
    assert (small.thresholds[0], small.thresholds[-1]) == (0.0, 4.0)
    assert 1.5 in small.thresholds
    used = np.unique(np.concatenate([rows.ravel() for rows in small.rows.values()]))
    assert used.tolist() == list(range(len(small.readings)))


@pytest.mark.browser
def test_the_page_reads_what_the_engine_reads(chromium, small):
    """Every setting of the grid, through the front end in a browser."""
    records = [small.readings.record(index) for index in range(len(small.readings))]
    rows = [["/".join(key), at.tolist()] for key, at in small.rows.items()]
    page = chromium.new_page()
    wrong = page.evaluate(
        """async ([source, text]) => {
            const { whole, rows, records } = JSON.parse(text);
            const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
            const grid = (await import(url)).openGrid(whole);
            const texts = records.map((record) => JSON.stringify(record, Object.keys(record).sort()));
            let wrong = 0;
            for (const [key, at] of rows) {
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
            json.dumps({"whole": small.record(), "rows": rows, "records": records}),
        ],
    )
    page.close()
    assert wrong == [0, None, None, None, None]


# --- kept -------------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch, small):
    """Count how often a grid is computed."""
    runs = []
    monkeypatch.setattr(grid, "run_grid", lambda *given: runs.append(given) or small)
    return runs


def test_a_grid_is_computed_once_until_its_inputs_change(tmp_path, counted, monkeypatch, small):
    assert grid.load_grid(folder=tmp_path, compute=False) is None
    whole = json.loads(json.dumps(small.record()))
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
    assert grid.load_grid(folder=tmp_path / file.name / "not a folder") == whole
    assert len(counted) == 8


def test_the_engine_of_a_grid_is_all_that_its_numbers_depend_on():
    found = {path.relative_to(PACKAGE).as_posix() for path in engine_sources(grid.SOURCES)}
    assert {"engine/loop.py", "policies/rules.py", "worlds/graphnav.py", "agents/simulated.py"} <= found
    assert {"engine/scoring.py", "engine/noise.py", "statistics.py", "widgets/readings.py"} <= found
    assert not any(name.startswith(("cli/", "sections/", "llm/")) for name in found)


# --- vocabulary -------------------------------------------------------------------------------


def test_the_vocabulary_names_all_there_is():
    words = Explorer().state["vocabulary"]
    assert [one["name"] for one in words["policies"]] == list(POLICIES)
    assert [one["name"] for one in words["worlds"]] == [*WORLDS, "pool"]
    assert [one["name"] for one in words["protocols"]] == list(PROTOCOLS)
    assert (words["horizon"], words["budget"], words["threshold"]) == (30, 7, 1.5)
    points = {(one["world"], one["policy"]): one for one in words["points"]}
    cd = points["tooldag", "cd"]
    assert (cd["accuracy"], cd["success"], cd["stratum"]) == (0.491, 0.159, "procedural")
    assert points["tooldag", "periodic"]["success"] is None  # not printed
    assert points["pool", "simple"]["accuracy"] == 0.371
    assert {world for world, _ in points} == {"tooldag", "pool"}  # "spatial" is two worlds at once
