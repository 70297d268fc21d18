"""A compiled lower bound: one ToolDAG episode as a scalar loop, on the noise of the engine.

The same episode as the engine's (Simple, a protocol whose clock runs and whose task graph is known, any
profile without a single report), one seed after another, compiled by Numba. It says what the machine could
do if nothing were spent on arrays; `check` compares its trajectories with the engine's, entry by entry.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from envprobe_core import noise
from envprobe_core.agents.simulated import HEDGED_BELOW, LONGEST_MISREPORT
from envprobe_core.belief import CERTAIN, STALENESS_LIMIT
from envprobe_core.cells import Cell
from envprobe_core.noise import Stream
from envprobe_core.sweep import Piece, Task, simulate
from envprobe_core.trajectory import Trajectory
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import DROP_PROBABILITY, WAIT

U = np.uint64
GOLDEN = U(0x9E3779B97F4A7C15)
FIRST, SECOND = U(0xBF58476D1CE4E5B9), U(0x94D049BB133111EB)
SLOTS = U(noise.FIELD_SLOTS)
STREAMS = tuple(
    int(stream)
    for stream in (
        Stream.INSTANCE,
        Stream.MUTATION,
        Stream.VISIBLE,
        Stream.WRITE,
        Stream.STALENESS,
        Stream.IMPULSE,
    )
)


@njit(inline="always")
def mix(word):
    word = (word ^ (word >> U(30))) * FIRST
    word = (word ^ (word >> U(27))) * SECOND
    return word ^ (word >> U(31))


@njit(inline="always")
def key_of(seed, code, stream):
    return mix(mix(seed + GOLDEN) ^ mix(((code << U(32)) + stream) * GOLDEN))


@njit(inline="always")
def draw(key, clock, field):
    return mix(key + (U(clock) * SLOTS + U(field) + U(1)) * GOLDEN)


@njit(inline="always")
def low(word):
    return word & U(0xFFFFFFFF)


@njit(inline="always")
def high_choice(word, count):
    return np.int64(((word >> U(32)) * U(count)) >> U(32))


@njit(inline="always")
def quarter(word, which):
    return np.int64((word >> U(16 * which)) & U(0xFFFF))


@njit
def draw_needs(key, needs, wanted):
    """Draw each tool's prerequisites: the tool before it and those of the smallest draws."""
    tools = len(needs)
    needs[:] = 0
    for tool in range(1, tools):
        needs[tool] = 1 << (tool - 1)
        for _ in range(min(wanted - 1, tool - 1)):
            best, least = -1, U(0)
            for other in range(tool - 1):
                if needs[tool] >> other & 1:
                    continue
                word = mix(key + U(tool * tools + other + 1) * GOLDEN) >> U(1)
                if best < 0 or word < least:
                    best, least = other, word
            needs[tool] |= 1 << best


@njit
def put(table, field, value, word, lie, habits):
    """Write a value with the confidence and staleness that the profile reports."""
    confidence = habits[1] - ((quarter(word, 2) * (habits[2] + 1)) >> 16)
    if quarter(word, 1) < habits[3]:
        confidence = (quarter(word, 2) * HEDGED_BELOW) >> 16
    table[0, field] = value
    table[1, field] = 0
    if quarter(word, 3) < habits[4]:
        table[1, field] = 1 + high_choice(lie, LONGEST_MISREPORT)
    table[2, field] = confidence


@njit
def run_episodes(seeds, code, tools, wanted, horizon, budget, threshold, levels, rates, habits, start, out):
    """Run every seed; fills belief and gold [row, time, field] and probe and action [row, step]."""
    belief, gold_out, probe_out, action_out = out
    fields, last = 3 * tools, tools - 1
    drop, overwrite, slip, give_up = levels
    needs, ancestors, weight = np.empty(tools, np.int64), np.empty(tools, np.int64), np.empty(fields)
    table, gold = np.empty((3, fields), np.int64), np.empty(fields, np.int64)
    for row in range(len(seeds)):
        seed = U(seeds[row])
        instance, mutation, visible, write, stale, impulse = (
            key_of(seed, code, U(STREAMS[0])),
            key_of(seed, code, U(STREAMS[1])),
            key_of(seed, code, U(STREAMS[2])),
            key_of(seed, code, U(STREAMS[3])),
            key_of(seed, code, U(STREAMS[4])),
            key_of(seed, code, U(STREAMS[5])),
        )
        draw_needs(instance, needs, wanted)
        for tool in range(tools):
            ancestors[tool] = needs[tool]
            for other in range(tool):
                if needs[tool] >> other & 1:
                    ancestors[tool] |= ancestors[other]
        wanted_tools = ancestors[last] | 1 << last
        largest = 0.0
        for tool in range(tools):
            count = 0.0
            for other in range(tools):
                if wanted_tools >> other & 1 and (ancestors[other] >> tool & 1 or other == tool):
                    count += 1.0
            largest = max(largest, count)
            weight[tool] = weight[tools + tool] = weight[2 * tools + tool] = count
        for field in range(fields):
            weight[field] /= largest
        loaded, complete, used, told, quits = 0, 0, 0, -1, False
        acted, worked, shown = -2, False, 0
        for field in range(fields):
            satisfied = tools <= field < 2 * tools and needs[field - tools] == 0
            gold[field] = satisfied
            table[0, field] = gold[field] if start else -1
            table[1, field] = 0 if start else 10
            table[2, field] = CERTAIN if start else 0
        for t in range(horizon + 1):
            if t > 0:
                for field in range(fields):
                    if field != told:
                        table[2, field] -= min(table[2, field], habits[5])
                for field in range(fields):
                    seen = field < tools and shown >> field & 1
                    done = field >= 2 * tools and worked and field - 2 * tools == acted
                    if seen or done:
                        word = draw(write, t, field)
                        if quarter(word, 0) >= habits[0]:
                            put(table, field, gold[field] if seen else 1, word, draw(stale, t, field), habits)
                news = shown | (1 << told if 0 <= told < tools else 0)
                known = 0
                for tool in range(tools):
                    known |= (table[0, tool] == 1) << tool
                for tool in range(tools):
                    if needs[tool] & news:
                        field = tools + tool
                        word = draw(write, t, field)
                        if quarter(word, 0) >= habits[0]:
                            met = needs[tool] & ~known == 0
                            put(table, field, met, word, draw(stale, t, field), habits)
                word = draw(impulse, t, 0)
                if low(word) < overwrite:
                    field = (quarter(word, 2) * fields) >> 16
                    value = (quarter(word, 3) * 2) >> 16
                    put(table, field, value, draw(write, t, field), draw(stale, t, field), habits)
            missing = 0
            for tool in range(tools):
                missing |= (table[0, tool] != 1) << tool
            needed = 1 << last
            for tool in range(last, 0, -1):
                if needed & missing & 1 << tool:
                    needed |= needs[tool]
            action = last
            for tool in range(last, -1, -1):
                if needed & missing & 1 << tool:
                    action = tool
            if table[0, fields - 1] == 1:
                action = WAIT
            word = draw(impulse, t, 2)
            if low(word) < slip:
                action = high_choice(word, tools)
            if t > 0 and low(draw(impulse, t, 3)) < give_up:
                quits = True
            if quits:
                action = WAIT
            for field in range(fields):
                belief[row, t, field] = table[0, field]
                gold_out[row, t, field] = gold[field]
            if t == horizon:
                break
            target, best = -1, -1.0
            if used < budget:
                for field in range(fields):
                    tool, part = field % tools, field // tools
                    role = 0.0
                    if action >= 0 and part < 2:
                        if tool == action or (part == 0 and needs[action] >> tool & 1):
                            role = 1.0
                        elif ancestors[action] >> tool & 1:
                            role = 0.5
                    doubt = 1.0 - table[2, field] / 100.0
                    rho = ((weight[field] + min(table[1, field], 10) / 10.0) + doubt) + role
                    if rho > best:
                        target, best = field, rho
                if best < threshold:
                    target = -1
            for field in range(fields):
                table[1, field] = min(table[1, field] + 1, STALENESS_LIMIT)
            told = target
            acted, worked = action, False
            if target >= 0:
                used += 1
                table[0, target], table[1, target], table[2, target] = gold[target], 0, CERTAIN
                acted = -2
            elif action >= 0 and not loaded >> action & 1 and needs[action] & ~loaded == 0:
                worked = True
                loaded |= 1 << action
                complete |= 1 << action
            probe_out[row, t], action_out[row, t] = target, action
            for tool in range(last):
                if low(draw(mutation, t, tool)) < rates[tool]:
                    loaded &= ~(1 << tool)
            for tool in range(tools):
                gold[tool] = loaded >> tool & 1
                gold[tools + tool] = needs[tool] & ~loaded == 0
                gold[2 * tools + tool] = complete >> tool & 1
            shown = 0
            if acted >= 0:
                shown = needs[acted] | 1 << acted
                if low(draw(visible, t + 1, 0)) < drop:
                    gone = acted
                    for tool in range(tools):
                        if needs[acted] >> tool & 1:
                            gone = tool
                    shown &= ~(1 << gone)


def compiled_run(cell: Cell, seeds: np.ndarray) -> tuple[np.ndarray, ...]:
    """Run a cell of ToolDAGWorld; returns belief, gold [row, time, field], probe and action [row, step]."""
    world = make_world(cell.world, cell.regime, cell.protocol)
    profile, horizon, rows = cell.profile, cell.regime.horizon, len(seeds)
    shape = (rows, horizon + 1, world.fields)
    out = (
        np.empty(shape, np.int8),
        np.empty(shape, np.int8),
        np.empty((rows, horizon), np.int16),
        np.empty((rows, horizon), np.int16),
    )
    chances = (DROP_PROBABILITY * world.drops, profile.overwrite, profile.slip, profile.quit)
    habits = (
        int(noise.level16(profile.omit)),
        profile.confidence,
        profile.spread,
        int(noise.level16(profile.hedge)),
        int(noise.level16(profile.misreport)),
        profile.fade,
    )
    run_episodes(
        np.asarray(seeds),
        U(world.code),
        world.tools,
        world.prerequisites,
        horizon,
        cell.budget_in_force,
        cell.threshold_in_force,
        tuple(U(noise.level32(chance)) for chance in chances),
        world.levels,
        np.array(habits),
        cell.protocol.start == "gold",
        out,
    )
    return out


def engine_run(cell: Cell, seeds: np.ndarray) -> Trajectory:
    """Run the same cell on the engine."""
    return simulate(Task((Piece(0, cell, np.asarray(seeds)),)))


def check(cell: Cell, seeds: np.ndarray) -> None:
    """Compare every belief, gold value, probe and action of both.

    Raises:
        AssertionError: if one of them differs.
    """
    engine, compiled = engine_run(cell, seeds), compiled_run(cell, seeds)
    for name, values in zip(("belief", "gold", "probe", "action"), compiled, strict=True):
        np.testing.assert_array_equal(values, getattr(engine, name), name)
