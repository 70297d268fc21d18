"""Run whole grids: cells become rows, rows become blocks; these run in turn, in processes, on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

import numpy as np

from envprobe_core.cells import Cell, Seeds
from envprobe_core.engine.recording import Columns, Trajectory, score
from envprobe_core.engine.running import measure, record
from envprobe_core.engine.setting import setting_of
from envprobe_core.pool import scheduler_in_force, spread
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime
from envprobe_core.worlds import make_world

BATCH_SIZE = 4000
Result = TypeVar("Result")


@dataclass(frozen=True)
class Piece:
    """Neighbouring rows of a block: one cell on some of its seeds."""

    index: int  # position of the cell in the grid
    cell: Cell
    seeds: Seeds


@dataclass(frozen=True)
class Task:
    """One block's worth of pieces; all share world, regime and protocol."""

    pieces: tuple[Piece, ...]


def plan_tasks(cells: Sequence[Cell], seeds: Sequence[Seeds], batch_size: int = BATCH_SIZE) -> Iterator[Task]:
    """Cut a grid into blocks of at most `batch_size` rows that share world, regime and protocol."""

    def names(index: int) -> tuple[str, str, str]:
        cell = cells[index]
        return cell.world, cell.regime.name, cell.protocol.name

    def shape(index: int) -> tuple[str, Regime, Protocol]:  # a reader's own may share a name
        cell = cells[index]
        return cell.world, cell.regime, cell.protocol

    for _, group in groupby(sorted(range(len(cells)), key=names), key=shape):
        pieces: list[Piece] = []
        room = batch_size
        for index in group:
            rest = seeds[index]
            while len(rest):
                pieces.append(Piece(index, cells[index], rest[:room]))
                room -= len(pieces[-1].seeds)
                rest = rest[len(pieces[-1].seeds) :]
                if room == 0:
                    yield Task(tuple(pieces))
                    pieces, room = [], batch_size
        if pieces:
            yield Task(tuple(pieces))


def simulate(task: Task, *, reports: bool = False) -> Trajectory:
    """Run a task's rows with the simulated agent and keep all that happens.

    Args:
        reports: whether the highest score is recorded also where the budget is spent, as logs hold it.
    """
    return Trajectory.joined([record(piece.cell, piece.seeds, scores_all=reports) for piece in task.pieces])


def run_task(task: Task) -> Columns:
    """Run a task and score its episodes: a column [row] for each measure, with `cell` and `seed`."""
    parts = [measure(piece.cell, piece.seeds) for piece in task.pieces]
    return named(task, {name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def score_task(task: Task, trajectory: Trajectory) -> Columns:
    """Score a task's recorded episodes under its cells' rules: a column [row] for each measure."""
    parts, start = [], 0
    for piece in task.pieces:
        rows = trajectory.rows(slice(start, start + len(piece.seeds)))
        parts.append(score(setting_of(piece.cell), vars(rows)).measures)
        start += len(piece.seeds)
    return named(task, {name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def named(task: Task, measures: Columns) -> Columns:
    """Put before the measures which episodes they are of."""
    first, sizes = task.pieces[0].cell, [len(piece.seeds) for piece in task.pieces]
    fields = make_world(first.world, first.regime, first.protocol).fields
    return {
        "cell": np.repeat([piece.index for piece in task.pieces], sizes),
        "seed": np.concatenate([piece.seeds for piece in task.pieces]),
        "n_fields": np.full(sum(sizes), fields),
        "horizon": np.full(sum(sizes), first.regime.horizon),
    } | measures


def run_cells(
    cells: Sequence[Cell],
    seeds: Seeds | Sequence[Seeds] | None = None,
    *,
    batch_size: int = BATCH_SIZE,
    jobs: int = 1,
    work: Callable[[Task], Columns] = run_task,
) -> Columns:
    """Run a grid and return its episode table, in the order of cells and of each cell's seeds.

    Args:
        seeds: the seeds of all cells, or one array a cell; by default each cell's own.
        batch_size: rows a block; changes nothing but speed and memory.
        jobs: processes; changes nothing but speed.
        work: what runs and measures a task; a function of a module, with the columns of `run_task` and more.
    """
    of_cell = seeds_of_cells(cells, seeds)
    parts = list(run_tasks(work, plan_tasks(cells, of_cell, batch_size), jobs))
    table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    asked_cells = np.repeat(np.arange(len(cells)), [len(own) for own in of_cell])
    # the k-th in (cell, seed) order of what was asked for is the k-th of what was run
    order = np.empty(len(asked_cells), dtype=np.int64)
    order[np.lexsort((np.concatenate(of_cell), asked_cells))] = np.lexsort((table["seed"], table["cell"]))
    return {name: column[order] for name, column in table.items()}


def seeds_of_cells(cells: Sequence[Cell], seeds: Seeds | Sequence[Seeds] | None) -> list[Seeds]:
    """Return one array of seeds a cell."""
    if seeds is None:
        return [cell.default_seeds() for cell in cells]
    if isinstance(seeds, np.ndarray):
        return [seeds] * len(cells)
    return list(seeds)


def run_tasks(work: Callable[[Task], Result], tasks: Iterable[Task], jobs: int) -> Iterator[Result]:
    """Do the tasks here, in that many fresh processes, or on the cluster in force; results as they finish."""
    tasks = list(tasks)
    return spread(work, tasks, jobs, scheduler_in_force() if len(tasks) > 1 else None)
