"""Hands the engine's instances and noise to the naive twin, and compares whole trajectories."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import twin

from envprobe_core import noise
from envprobe_core.cells import Cell
from envprobe_core.engine.noise import Stream
from envprobe_core.policies import POLICIES
from envprobe_core.sweep import Piece, Task, simulate
from envprobe_core.engine.recording import Trajectory
from envprobe_core.worlds import World, make_world

IMPULSES = 4


def twin_noise(world: World, seeds: np.ndarray) -> list[SimpleNamespace]:
    """Draw the words of all streams for each seed, as lists [clock][field] of Python integers."""
    horizon = world.regime.horizon
    widths = {
        Stream.MUTATION: (horizon, world.fields),
        Stream.VISIBLE: (horizon + 1, 1),
        Stream.WRITE: (horizon + 1, world.fields),
        Stream.STALENESS: (horizon + 1, world.fields),
        Stream.IMPULSE: (horizon + 1, IMPULSES),
        Stream.PROBE: (horizon, 1),
    }
    drawn = {}
    for stream, (clocks, fields) in widths.items():
        key = noise.keys(seeds, world.code, stream)
        words = np.stack([noise.words(key, clock, fields) for clock in range(clocks)], axis=1)
        drawn[stream.name.lower()] = words.tolist()
    return [
        SimpleNamespace(**{name: words[row] for name, words in drawn.items()}) for row in range(len(seeds))
    ]


def twin_instances(world: World, seeds: np.ndarray) -> list[Any]:
    """Make the twin's instances from the engine's arrays."""
    instance = world.instances(seeds)
    static = instance.map
    rows = range(len(seeds))
    if world.name == "tooldag":
        return [twin.ToolDAGInstance([np.flatnonzero(p).tolist() for p in static.needs[r]]) for r in rows]
    if world.name == "objectstate":
        return [
            twin.ObjectStateInstance(
                world.rooms,
                world.keys,
                world.boxes,
                world.goals,
                int(instance.start_room[r]),
                instance.object_room[r].tolist(),
                static.key_of_door[r].tolist(),
            )
            for r in rows
        ]
    return [
        twin.GraphNavInstance(
            world.nodes,
            [tuple(ends) for ends in static.ends[r].tolist()],
            static.key_of_edge[r].tolist(),
            instance.key_node[r].tolist(),
            int(static.start[r]),
            int(static.target[r]),
        )
        for r in rows
    ]


def twin_episodes(
    cell: Cell, seeds: np.ndarray, schedule: np.ndarray | None, drawn: Any = None, instances: Any = None
) -> list[Any]:
    """Run the twin on every seed of a cell."""
    world = make_world(cell.world, cell.regime, cell.protocol)
    drawn = twin_noise(world, seeds) if drawn is None else drawn
    instances = twin_instances(world, seeds) if instances is None else instances
    rates = world.rates.tolist()
    return [
        twin.run_episode(
            world=cell.world,
            instance=instances[row],
            noise=drawn[row],
            protocol=cell.protocol,
            profile=cell.profile,
            observation=cell.regime.observation,
            rates=rates,
            policy=cell.policy.name,
            budget=cell.budget_in_force,
            threshold=cell.threshold_in_force,
            horizon=cell.regime.horizon,
            schedule=None if schedule is None else schedule[row].tolist(),
        )
        for row in range(len(seeds))
    ]


def simulate_cell(cell: Cell, seeds: np.ndarray) -> Trajectory:
    """Run the engine on one cell, with staleness and confidence recorded."""
    return simulate(Task((Piece(0, cell, seeds),)), reports=True)


def schedule_of(cell: Cell, seeds: np.ndarray) -> np.ndarray | None:
    """Return the probes that a replayed policy repeats, [row, step], or None."""
    if cell.policy.replays is None:
        return None
    original = Cell(
        cell.world,
        POLICIES[cell.policy.replays],
        cell.regime,
        cell.protocol,
        cell.profile,
        cell.budget,
        cell.threshold,
    )
    return simulate_cell(original, seeds).probe


def assert_same(engine: Trajectory, row: int, episode: Any) -> None:
    """Compare one row with the twin's episode, step by step and field by field."""
    steps = episode.steps
    assert engine.steps[row] == steps
    assert engine.success[row] == episode.success
    for name in ("gold", "belief", "staleness", "confidence"):
        np.testing.assert_array_equal(getattr(engine, name)[row, : steps + 1], getattr(episode, name), name)
    assert engine.place[row, : steps + 1].tolist() == episode.here
    assert engine.action[row, :steps].tolist() == episode.proposal
    assert engine.probe[row, :steps].tolist() == episode.probe
    assert engine.valid[row, :steps].tolist() == [bool(valid) for valid in episode.valid]
    acted = [valid is not None for valid in episode.valid]
    assert engine.acted[row, :steps].tolist() == acted
    scores = [np.nan if score is None else score for score in episode.score]
    np.testing.assert_array_equal(engine.score[row, :steps], np.array(scores, dtype=float))
    for t, answer in enumerate(episode.answer):
        if answer is not None:
            assert engine.answer[row, t] == answer
