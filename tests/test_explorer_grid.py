"""The explorer's engine side: distinct trajectories, readings, the grid's text in Python and in a browser."""

import gzip
import json
from dataclasses import fields
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envprobe_core.agents.profiles import TYPICAL
from envprobe_core.averages import mean_track
from envprobe_core.cells import Cell, make_cell, parse_seeds
from envprobe_core.errors import InputError
from envprobe_core.experiments import load_grid as load_frame
from envprobe_core.explorer import cached, encoding, grid
from envprobe_core.explorer.distinct import capped, halving, record_task, run_place
from envprobe_core.explorer.episodes import Episodes
from envprobe_core.explorer.readings import Readings, pooled, take_readings
from envprobe_core.explorer.replays import Place
from envprobe_core.explorer.sums import ResampledSums
from envprobe_core.explorer.vocabulary import vocabulary
from envprobe_core.intervals import mean_interval
from envprobe_core.policies import POLICIES, custom_policy
from envprobe_core.protocols import OBSERVED, PAPER, PROTOCOLS, RELEASED
from envprobe_core.regimes import REGIMES
from envprobe_core.stats import bootstrap_means, mean_of_ratios
from envprobe_core.sweep import run_cells
from envprobe_core.widgets.host import module_text
from envprobe_core.worlds import WORLDS

SEEDS = "7:13"


@pytest.fixture(scope="module")
def small():
    """A whole grid on six seeds."""
    return grid.run_grid(seeds=SEEDS, resamples=200, jobs=1)


@pytest.fixture(scope="module")
def payload(small):
    return encoding.encode(small)


def settings_of(own):
    """Some settings of a grid, of every world, protocol and policy: the key and two positions."""
    draw = np.random.default_rng(4)
    for key, rows in own.rows.items():
        for _ in range(2):
            yield key, int(draw.integers(rows.shape[0])), int(draw.integers(rows.shape[1]))


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


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=list(PROTOCOLS))
@pytest.mark.parametrize("world", WORLDS)
def test_reused_trajectories_are_those_of_real_runs(world, protocol):
    """Every setting of every policy on some seeds, columns and probes: all are run here."""
    seeds = np.array([0, 3, 101, 219])
    place = Place(world, REGIMES["S2"], protocol, TYPICAL, seeds, tuple(range(16)), grid.THRESHOLDS)
    table = run_place(place, list(POLICIES.values()))
    settings, rows = [], []
    for name, at in table.rows.items():
        for b, k in np.ndindex(at.shape[:2]):
            threshold = grid.THRESHOLDS[k] if POLICIES[name].has_threshold else None
            settings.append(place.cell(POLICIES[name], b, threshold))
            rows.append(at[b, k])
    real = run_cells(settings, seeds, work=record_task)
    shared = table.episodes.rows(np.concatenate(rows))
    for field in fields(Episodes):
        np.testing.assert_array_equal(getattr(shared, field.name), real[field.name], err_msg=field.name)
    assert table.simulated < len(settings) * len(seeds) / 3


@pytest.mark.parametrize(
    ("world", "protocol", "regime"),
    [("tooldag", RELEASED, "S3"), ("objectstate", OBSERVED, "S1"), ("graphnav", PAPER, "S3")],
)
def test_reused_trajectories_in_other_regimes(world, protocol, regime):
    level, seeds = REGIMES[regime], np.array([1000, 1017])
    budgets = tuple(range(level.horizon // 2 + 1))
    place = Place(world, level, protocol, TYPICAL, seeds, budgets, grid.THRESHOLDS)
    table = run_place(place, list(POLICIES.values()))
    for name, at in table.rows.items():
        cells = [
            place.cell(POLICIES[name], b, grid.THRESHOLDS[k] if POLICIES[name].has_threshold else None)
            for b, k in np.ndindex(at.shape[:2])
        ]
        real = run_cells(cells, seeds, work=record_task)
        shared = table.episodes.rows(at.ravel())
        for field in fields(Episodes):
            np.testing.assert_array_equal(getattr(shared, field.name), real[field.name])


def test_a_rule_that_may_look_at_its_budget_is_run_at_each():
    assert not capped(POLICIES["random"])
    assert not capped(POLICIES["periodic"])
    assert not capped(custom_policy("mine", lambda view: view.s * view.budget))
    assert all(not capped(policy) for policy in POLICIES.values() if policy.remembers)
    assert capped(POLICIES["simple"])
    assert capped(POLICIES["judge"])


@pytest.mark.parametrize("count", [1, 2, 3, 5, 17, 20])
def test_waves_name_every_threshold_once(count):
    waves = [at for wave in halving(count) for at in wave]
    assert sorted(waves) == list(range(count))


# --- readings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_a_reading_says_what_the_book_says(protocol):
    """The same episodes through the functions of the other sections."""
    frame = load_frame("graphnav", "simple", "S2", protocol, seeds="0:60", budget=5, threshold=2.0)
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
    track = run_cells([cell], seeds, work=record_task)["track"]
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
    frame = load_frame(tuple(WORLDS), "judge", "S2", "paper", seeds="0:50", budget=4)
    reading = take_readings([pooled(cell)], seeds, resamples=400)[0]
    strata = frame["world"].to_numpy(dtype=str)
    order = np.argsort([list(WORLDS).index(world) for world in strata], kind="stable")
    codes = np.array([list(WORLDS).index(world) for world in strata])[order]
    expected = mean_interval(frame["accuracy"].to_numpy()[order], codes, resamples=400)
    assert reading["accuracy"] == pytest.approx(list(expected[:3]), abs=0.5e-4 + 1e-9)
    single = [take_readings([one], seeds, resamples=10)[0] for one in pooled(cell)]
    assert reading["n"] == 150
    assert reading["fires"] == np.sum([one["fires"] for one in single], axis=0).tolist()


@pytest.mark.parametrize("sizes", [(40,), (25, 25), (30, 20, 2)])
def test_resampled_means_are_those_of_the_book_to_the_bit(sizes):
    random = np.random.default_rng(3)
    columns = random.random((7, sum(sizes)))
    columns[2], columns[3] = 0.0, columns[3] > 0.5
    columns[4, : sizes[0]] = columns[1, : sizes[0]]
    strata = np.repeat(np.arange(len(sizes)), sizes)
    expected = bootstrap_means(columns.T, strata if len(sizes) > 1 else None, resamples=700)
    sums = ResampledSums(700)
    for rows in ([1, 4], [0, 1, 2, 3, 4, 5, 6], [6, 6, 0]):
        np.testing.assert_array_equal(sums.means(columns[rows], sizes), expected.T[rows])


def test_readings_come_in_the_order_asked_whatever_their_shape():
    own = custom_policy("always", lambda view: np.full(view.value.shape, 9.0))
    asked = [
        make_cell("graphnav", "simple", "S3"),
        pooled(make_cell("tooldag", "no-probe")),
        Cell("tooldag", own, REGIMES["S1"]),
        make_cell("graphnav", "simple", "S3"),
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
        for measure in ("accuracy", "success", "useful_rate"):
            mean, low, high = reading[measure]
            assert 0 <= mean <= 1
            assert (low, high) == (None, None)


# --- the grid ---------------------------------------------------------------------------------


def test_the_grid_reads_what_the_engine_reads(small):
    """The static page's numbers are those of a live call, digit for digit."""
    asked = list(settings_of(small))
    live = take_readings([cell_of(small, *one) for one in asked], parse_seeds(SEEDS), resamples=200)
    static = [small.readings.record(small.rows[key][b, k]) for key, b, k in asked]
    assert static == live


def test_the_grid_holds_every_setting(small):
    assert set(small.rows) == set(product(PROTOCOLS, (*WORLDS, grid.POOL), POLICIES))
    assert small.budgets == tuple(range(REGIMES["S2"].horizon // 2 + 1))
    assert (small.thresholds[0], small.thresholds[-1]) == (0.0, 4.0)
    assert 1.5 in small.thresholds
    used = np.unique(np.concatenate([rows.ravel() for rows in small.rows.values()]))
    assert used.tolist() == list(range(len(small.readings)))


def test_processes_change_nothing(small):
    two = grid.run_grid(seeds=SEEDS, resamples=200, protocols=("released",), jobs=2)
    for key, rows in two.rows.items():
        np.testing.assert_array_equal(
            two.readings.accuracy[rows], small.readings.accuracy[small.rows[key]], err_msg=str(key)
        )


# --- its text ---------------------------------------------------------------------------------


def test_what_is_encoded_is_decoded(small, payload):
    again = encoding.decode(json.loads(json.dumps(payload)))
    for field in fields(Readings):
        np.testing.assert_array_equal(
            getattr(again.readings, field.name), getattr(small.readings, field.name)
        )
    assert list(again.rows) == list(small.rows)
    for key, rows in small.rows.items():
        np.testing.assert_array_equal(again.rows[key], rows)
    for field in fields(grid.Grid):
        if field.name not in ("rows", "readings"):
            assert getattr(again, field.name) == getattr(small, field.name)


@given(st.lists(st.integers(-32_000, 32_000), min_size=1))
def test_whole_numbers_survive_packing(numbers):
    assert encoding._unpack(encoding._pack(np.array(numbers))).tolist() == numbers


def test_a_number_too_large_for_the_text_is_refused():
    with pytest.raises(InputError, match="at most"):
        encoding._pack(np.array([1, 50_000]))


@pytest.mark.browser
def test_the_page_reads_what_the_engine_reads(chromium, small, payload):
    """Every setting of the grid, through the front end in a browser."""
    records = [small.readings.record(index) for index in range(len(small.readings))]
    rows = [["/".join(key), at.tolist()] for key, at in small.rows.items()]
    source = module_text("explorer") + "\nexport { openGrid };\n"
    page = chromium.new_page()
    wrong = page.evaluate(
        """async ([source, text]) => {
            const { payload, rows, records } = JSON.parse(text);
            const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
            const { openGrid } = await import(url);
            const grid = await openGrid(payload);
            const texts = records.map((record) => JSON.stringify(record, Object.keys(record).sort()));
            let wrong = 0;
            for (const [key, at] of rows) {
                const [protocol, world, policy] = key.split("/");
                at.forEach((line, b) => line.forEach((row, k) => {
                    const budget = payload.budgets[b], threshold = payload.thresholds[k];
                    const own = grid.read({ protocol, world, policy, budget, threshold });
                    if (JSON.stringify(own, Object.keys(own).sort()) !== texts[row]) wrong += 1;
                }));
            }
            const setting = { protocol: "paper", world: "pool", policy: "simple", budget: 3, threshold: 1.5 };
            const outside = [
                { ...setting, budget: 99 }, { ...setting, threshold: 1.3 }, { ...setting, policy: "mine" },
                { ...setting, world: "moon" }, { ...setting, regime: "S3" },
            ].map(grid.read);
            return [wrong, outside, grid.read({ ...setting, regime: payload.regime }) !== null];
        }""",
        [source, json.dumps({"payload": payload, "rows": rows, "records": records})],
    )
    page.close()
    assert wrong == [0, [None] * 5, True]


# --- kept -------------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch, small):
    """Count how often a grid is computed."""
    runs = []

    def run(*arguments):
        runs.append(arguments)
        return small

    monkeypatch.setattr(cached, "run_grid", run)
    return runs


def test_a_grid_is_computed_once(tmp_path, counted, payload):
    folder = tmp_path / "kept"
    assert cached.load_grid(seeds=SEEDS, folder=folder) == payload
    assert cached.load_grid(seeds=SEEDS, folder=folder) == payload
    assert len(counted) == 1
    assert [file.suffix for file in folder.iterdir()] == [".json"]


def test_a_grid_is_computed_again_when_its_inputs_change(tmp_path, counted, monkeypatch):
    for change in ({}, {"seeds": "0:9"}, {"resamples": 50}, {"profile": "perfect"}, {"regime": "S1"}):
        cached.load_grid(folder=tmp_path, **change)
    assert len(counted) == 5
    monkeypatch.setattr(cached, "engine_sha256", lambda roots: "another engine")
    cached.load_grid(folder=tmp_path, regime="S1")
    assert len(counted) == 6
    assert len(list(tmp_path.iterdir())) == cached.KEPT


def test_a_damaged_grid_is_computed_again(tmp_path, counted, payload):
    cached.load_grid(folder=tmp_path)
    for file in tmp_path.iterdir():
        file.write_text(file.read_text()[:1000])
    assert cached.load_grid(folder=tmp_path) == payload
    assert len(counted) == 2


def test_a_folder_that_cannot_be_written_to_is_done_without(tmp_path, counted, payload):
    (tmp_path / "file").write_text("in the way")
    assert cached.load_grid(folder=tmp_path / "file" / "kept") == payload


def test_the_engine_of_a_grid_is_all_that_its_numbers_depend_on():
    from envprobe_core.sources import PACKAGE, engine_sources

    found = {path.relative_to(PACKAGE).as_posix() for path in engine_sources(cached.SOURCES)}
    assert {"engine/loop.py", "policies/rules.py", "worlds/graphnav.py", "agents/simulated.py"} <= found
    assert {"engine/scoring.py", "engine/noise.py", "resampling.py", "explorer/distinct.py"} <= found
    assert not any(name.startswith(("cli/", "sections/", "llm/")) for name in found)


def test_a_protocols_grid_fits_its_page(tmp_path):
    """The bar is 300 KB over the wire for three protocols; `released` takes the most."""
    payload = cached.load_grid(protocols=("released",), folder=tmp_path)
    assert len(gzip.compress(json.dumps(payload).encode(), 6)) < 150_000


# --- vocabulary -------------------------------------------------------------------------------


def test_the_vocabulary_names_all_there_is():
    words = vocabulary()
    assert [one["name"] for one in words["policies"]] == list(POLICIES)
    assert [one["name"] for one in words["worlds"]] == [*WORLDS, "pool"]
    assert [one["name"] for one in words["protocols"]] == list(PROTOCOLS)
    assert (words["horizon"], words["budget"], words["threshold"]) == (30, 7, 1.5)
    assert json.loads(json.dumps(words)) == words


def test_the_papers_points_are_the_papers():
    points = {(one["world"], one["policy"]): one for one in vocabulary()["points"]}
    cd = points["tooldag", "cd"]
    assert (cd["accuracy"], cd["success"], cd["stratum"]) == (0.491, 0.159, "procedural")
    assert points["tooldag", "periodic"]["success"] is None  # not printed
    assert points["pool", "simple"]["accuracy"] == 0.371
    assert {world for world, _ in points} == {"tooldag", "pool"}  # "spatial" is two worlds at once
