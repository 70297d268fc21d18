"""The engine does what `tests/golden/` keeps: every condition by digests, some episodes value by value."""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from daily import nightly
from envprobe_core.engine.batch import simulate, simulate_logged
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.worlds import WORLDS, make_world
from golden.cells import (
    DECISIONS,
    MEASURED,
    RECORDED,
    STATES,
    canonical,
    digest,
    fault_sets,
    faults_matter,
    faults_of,
    faulty_key,
    read_cell,
    read_episodes,
    read_rows,
)

ROWS, EPISODES = read_rows(), read_episodes()
TESTS = Path(__file__).parent


def named(row):
    return " ".join(value for name, value in row.items() if name not in ("recorded", "measured"))


def measured(row, columns):
    """Return the digest of measures, as the episode table has them."""
    condition, seeds = read_cell(row)
    sizes = {
        "n_fields": make_world(condition.world, condition.regime, condition.protocol).fields,
        "horizon": condition.regime.horizon,
    }
    constants = {name: np.full(len(seeds), size) for name, size in sizes.items()}
    return digest({"seed": seeds} | constants | columns, MEASURED)


def disagreements(episode):
    """Run an episode that was kept whole; say where it differs, the earliest first."""
    condition, seeds = read_cell(episode["row"])
    made = simulate_logged(condition, seeds[:1])
    found = []
    for name, kind in RECORDED.items():
        kept = np.array(episode["parts"][name], dtype=kind)  # null is NaN
        now = canonical(getattr(made, name)[0], kind)
        if kept.shape != now.shape:
            yield f"{name}: shape {kept.shape} kept, {now.shape} now"
            continue
        same = (kept == now) | ((kept != kept) & (now != now))
        for place in map(tuple, np.argwhere(~same).tolist()):
            found.append((place[:1], list(RECORDED).index(name), name, place, kept[place], now[place]))
    for _, _, name, place, was, now in sorted(found):
        axes = ", field ".join(map(str, place))
        yield f"{name}{' at t = ' * bool(place)}{axes}: {was} kept, {now} now"


def test_everything_is_there():
    assert len(ROWS) == len({named(row) for row in ROWS})
    plain = [(row["policy"], row["world"]) for row in ROWS if not faults_of(row)]
    assert {plain.count(pair) for pair in product(POLICIES, WORLDS)} == {45}
    faulty = [faulty_key(row) for row in ROWS if faults_of(row)]
    assert {faulty.count(key) for key in product(WORLDS, PROTOCOLS, fault_sets())} == {2}
    assert len(faulty) == 2 * len({*faulty})
    assert len(EPISODES) > 40
    assert all(episode["row"] in ROWS for episode in EPISODES)
    assert {*STATES, *DECISIONS, "score", "steps", "success"} == set(RECORDED)


def test_every_fault_that_is_frozen_does_something():
    assert [named(row) for row in ROWS if faults_of(row) and not faults_matter(row)] == []


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_cell_is_what_it_was(policy, world):
    changed = []
    for row in [row for row in ROWS if (row["policy"], row["world"]) == (policy, world)]:
        condition, seeds = read_cell(row)
        made = simulate_logged(condition, seeds)
        recorded = digest({name: getattr(made, name) for name in RECORDED}, RECORDED)
        digests = recorded, measured(row, made.measures), measured(row, simulate(condition, seeds))
        if digests != (row["recorded"], row["measured"], row["measured"]):
            changed.append(named(row))
    assert not changed


@pytest.mark.parametrize("number", range(len(EPISODES)))
def test_an_episode_is_what_it_was(number):
    found = list(disagreements(EPISODES[number]))
    assert not found, f"{named(EPISODES[number]['row'])}: {len(found)} values differ, first {found[:5]}"


@pytest.mark.parametrize("one_of", nightly([1, 4], 4))
def test_plain_python_does_what_compiled_code_does(one_of):
    """Without Numba: the same values; and an index that is out of bounds raises an error there."""
    script = f"""
from test_golden_engine import EPISODES, disagreements
from envprobe_core.engine import kernel
assert type(kernel.run).__name__ == "function", "it would be compiled"
for number, episode in enumerate(EPISODES[::{one_of}]):
    for line in disagreements(episode):
        print("episode", number * {one_of}, line)
"""
    folders = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": folders},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
