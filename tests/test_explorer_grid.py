"""The explorer's numbers: readings, the grid that a page carries, and the live engine."""

import json
from functools import partial
from itertools import product

import numpy as np
import pytest

from envprobe_book import run
from envprobe_book.widgets import grid
from envprobe_book.widgets.explorer import LONGEST_HORIZON, Explorer
from envprobe_book.widgets.grid import POOL, pooled, take_readings
from envprobe_core.conditions import make_condition, parse_seeds
from envprobe_core.engine.batch import simulate_logged
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES, custom_policy
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.statistics import clustered_rate, mean_interval, mean_track
from envprobe_core.worlds import WORLDS

SEEDS = "7:13"


@pytest.fixture(scope="module")
def small():
    """A whole grid on six seeds."""
    return grid.run_grid(seeds=SEEDS, resamples=200, jobs=1)


def setting_of(key, budget, threshold):
    """The cells of a key of the grid."""
    protocol, view, name = key.split("/")
    gate = threshold if POLICIES[name].has_threshold else None
    world = "tooldag" if view == POOL else view
    cell = make_condition(world, name, "S2", PROTOCOLS[protocol], "typical", budget, gate)
    return pooled(cell) if view == POOL else (cell,)


def plain(reading):
    """A reading of the grid as the plain numbers that the live engine gives."""

    shown = {
        name: [None if one == grid.NONE else one / units for one in reading[name]]
        for name, units in grid.UNITS.items()
    }
    return reading | shown | ({} if reading["useful"][1] else {"useful_rate": None})


@pytest.mark.parametrize(
    ("view", "protocol"), [("graphnav", "paper"), ("graphnav", "released"), (POOL, "paper")]
)
def test_a_reading_says_what_the_book_says(view, protocol):
    """The same episodes through the functions of the other sections; a pool resamples within each world."""
    worlds = tuple(WORLDS) if view == POOL else (view,)
    frame = run(worlds, "simple", "S2", protocol, seeds="0:60", budgets=5, thresholds=2.0)
    codes = frame["world"].map(list(WORLDS).index).to_numpy()
    order = np.argsort(codes, kind="stable")
    frame, strata = frame.iloc[order], codes[order] if view == POOL else None
    cells, seeds = setting_of(f"{protocol}/{view}/simple", 5, 2.0), parse_seeds("0:60")
    (reading,) = take_readings([cells], seeds, resamples=500)
    rates = (frame["useful"] / frame["probes"]).fillna(0).to_numpy()
    rate = clustered_rate(rates, (frame["probes"] > 0).to_numpy(), strata, resamples=500)
    expected = {"useful_rate": [rate.mean, rate.low, rate.high]}
    for name in ("accuracy", "success"):
        expected[name] = list(mean_interval(frame[name].to_numpy(dtype=float), strata, resamples=500)[:3])
    for name, interval in expected.items():
        assert reading[name] == pytest.approx(interval, abs=0.5e-4 + 1e-9)
    assert reading["useful"] == [frame["useful"].sum(), frame["probes"].sum()]
    assert (reading["repeated"], reading["n"]) == (frame["repeated_probes"].sum(), len(frame))
    assert sum(reading["fires"]) == frame["probes"].sum()
    tracks = np.concatenate([simulate_logged(cell, seeds).accuracy for cell in cells])
    mean = mean_track(tracks, resamples=10)["accuracy"]
    known, curve = ~np.isnan(mean), np.array(reading["curve"], dtype=float)
    assert known.sum() > 10
    np.testing.assert_allclose(curve[known], mean[known], rtol=0, atol=0.5e-3 + 1e-9)
    alone = take_readings([cells], np.array([3]), resamples=20)[0]
    assert alone["accuracy"][1:] == [None, None], "one episode has no interval"


def test_the_grid_reads_what_the_engine_reads(small):
    """It holds every setting; what those that probe alike share is what a run of each of them gives."""
    assert set(small["rows"]) == set(map("/".join, product(PROTOCOLS, (*WORLDS, POOL), POLICIES)))
    assert small["budgets"] == list(range(16))
    assert (small["thresholds"][0], small["thresholds"][-1], 1.5 in small["thresholds"]) == (0.0, 4.0, True)
    columns = small["readings"]
    used = {at for rows in small["rows"].values() for line in rows for at in line}
    assert used == set(range(len(columns["n"])))
    assert len(used) < sum(len(rows) * 16 for rows in small["rows"].values()) / 2
    draw, settings, found = np.random.default_rng(4), [], []
    for key, rows in small["rows"].items():
        for _ in range(3):
            k, b = int(draw.integers(len(rows))), int(draw.integers(len(rows[0])))
            settings.append(setting_of(key, small["budgets"][b], small["thresholds"][k]))
            found.append(plain({name: column[rows[k][b]] for name, column in columns.items()}))
    assert found == take_readings(settings, parse_seeds(SEEDS), resamples=200)


def test_a_grid_is_computed_once_until_its_inputs_change(tmp_path, monkeypatch, small):
    counted = []
    monkeypatch.setattr(grid, "run_grid", lambda **given: counted.append(given) or small)
    load, whole = partial(grid.load_grid, folder=tmp_path), json.loads(json.dumps(small))
    assert load(compute=False) is None
    assert load() == load(compute=False) == whole
    assert len(counted) == 1
    for change in ({"seeds": "0:9"}, {"resamples": 50}, {"profile": "perfect"}, {"regime": "S1"}):
        load(**change)
    monkeypatch.setattr(grid, "engine_sha256", lambda: "another engine")
    load(regime="S1")
    assert len(counted) == 6
    assert [file.suffix for file in tmp_path.iterdir()] == [".json"] * grid.KEPT
    for file in tmp_path.iterdir():
        file.write_text(file.read_text()[:1000])
    assert load(regime="S1") == whole  # a damaged one is computed again


# --- the live engine --------------------------------------------------------------------------

ASKED = {
    "world": "tooldag", "protocol": "paper", "policies": ["no-probe", "simple"], "regime": "S2",
    "horizon": 30, "budget": 7, "threshold": 1.5, "profile": "typical", "seeds": "0:10",
}  # fmt: skip


def test_the_widget_answers_with_the_engines_readings(monkeypatch):
    widget, sent = Explorer(), []
    monkeypatch.setattr(widget, "send", sent.append)
    off_grid = {"world": "pool", "budget": 29, "threshold": 1.37, "policies": ["simple"]}
    for number, change in enumerate(({}, off_grid, {"budget": -1}), 1):
        widget._receive(None, {"kind": "ask", "request": number, "setting": {**ASKED, **change}}, [])
    widget._receive(None, {"kind": "other"}, [])
    assert [(one["kind"], one["request"]) for one in sent] == [("answer", 1), ("answer", 2), ("answer", 3)]
    cells = [(make_condition("tooldag", name, budget=7),) for name in ASKED["policies"]]
    assert list(sent[0]["readings"].values()) == take_readings(cells, np.arange(10))
    cells = [pooled(make_condition("tooldag", "simple", budget=29, threshold=1.37))]
    assert list(sent[1]["readings"].values()) == take_readings(cells, np.arange(10))
    assert [one.get("episodes") for one in sent] == [20, 30, None]
    assert "budget -1" in sent[2]["error"]


@pytest.mark.parametrize(
    "change",
    [
        {"seeds": "100:110"}, {"regime": "S3", "horizon": 40}, {"profile": "perfect"}, {"world": "graphnav"},
        {"protocol": "paper:answer=withheld"},
    ],
)  # fmt: skip
def test_every_field_of_a_question_matters(change):
    widget = Explorer(resamples=100)
    before, after = (widget.answer(asked)["readings"]["simple"] for asked in (ASKED, {**ASKED, **change}))
    assert after != before
    assert len(after["curve"]) == change.get("horizon", 30) + 1


def fails(view):
    raise ZeroDivisionError("of mine")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"world": "<b>moon</b>"}, "unknown world '<b>moon</b>'; accepted: tooldag"),
        ({"protocol": "paper:nonsense"}, "is not SWITCH=VALUE"),
        ({"budget": 2.5}, "budget 2.5"),
        ({"budget": True}, "budget True"),
        ({"threshold": None}, "threshold None is not a number"),
        ({"profile": "nobody"}, "unknown profile 'nobody'"),
        ({"seeds": "5:2"}, "is empty"),
        ({"seeds": "0:1000000"}, "at most 2000 here"),
        ({"horizon": LONGEST_HORIZON + 1}, f"horizon {LONGEST_HORIZON + 1}"),
        ({"policies": ["bad"]}, "ZeroDivisionError: of mine"),
    ],
)
def test_what_cannot_be_run_is_refused_in_words(change, said):
    with pytest.raises(InputError) as refused:
        Explorer(policies=[custom_policy("bad", fails)], resamples=100).answer({**ASKED, **change})
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_readers_policies_are_run_and_have_names_of_their_own():
    own = custom_policy("d", lambda view: 2 * view.d)
    found = Explorer(policies=[own], resamples=100).answer({**ASKED, "policies": ["d"]})["readings"]
    assert found["d"]["useful"][1] > 0
    with pytest.raises(InputError, match="same name"):
        Explorer(policies=[own, own])
