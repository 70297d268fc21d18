"""Run whole grids: cells become rows, rows become blocks; these run in turn, in processes, on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TypeVar

import numpy as np

from envprobe_core.cells import Cell, Seeds
from envprobe_core.engine.recording import Columns
from envprobe_core.engine.running import measure
from envprobe_core.pool import scheduler_in_force, spread
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime
from envprobe_core.worlds import make_world

BATCH_SIZE = 4000
Task, Result = TypeVar("Task"), TypeVar("Result")


@dataclass(frozen=True)
class Piece:
    """Neighbouring rows of a block: one cell on some of its seeds."""

    index: int  # position of the cell in the grid
    cell: Cell
    seeds: Seeds


Block = list[Piece]
"""Pieces that share world, regime and protocol."""


def plan_blocks(
    cells: Sequence[Cell], seeds: Sequence[Seeds], batch_size: int = BATCH_SIZE
) -> Iterator[Block]:
    """Cut a grid into blocks of at most `batch_size` rows that share world, regime and protocol."""

    def names(index: int) -> tuple[str, str, str]:
        cell = cells[index]
        return cell.world, cell.regime.name, cell.protocol.name

    def shape(index: int) -> tuple[str, Regime, Protocol]:  # a reader's own may share a name
        cell = cells[index]
        return cell.world, cell.regime, cell.protocol

    for _, group in groupby(sorted(range(len(cells)), key=names), key=shape):
        pieces: Block = []
        room = batch_size
        for index in group:
            rest = seeds[index]
            while len(rest):
                pieces.append(Piece(index, cells[index], rest[:room]))
                room -= len(pieces[-1].seeds)
                rest = rest[len(pieces[-1].seeds) :]
                if room == 0:
                    yield pieces
                    pieces, room = [], batch_size
        if pieces:
            yield pieces


def run_block(work: Callable[[Cell, Seeds], Columns], block: Block) -> Columns:
    """Run a block and measure its episodes: the columns of `work`, and which episodes they are of."""
    parts = [work(piece.cell, piece.seeds) for piece in block]
    return named(block, {name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def named(block: Block, measures: Columns) -> Columns:
    """Put before the measures which episodes they are of."""
    first, sizes = block[0].cell, [len(piece.seeds) for piece in block]
    fields = make_world(first.world, first.regime, first.protocol).fields
    return {
        "cell": np.repeat([piece.index for piece in block], sizes),
        "seed": np.concatenate([piece.seeds for piece in block]),
        "n_fields": np.full(sum(sizes), fields),
        "horizon": np.full(sum(sizes), first.regime.horizon),
    } | measures


def run_cells(
    cells: Sequence[Cell],
    seeds: Seeds | Sequence[Seeds] | None = None,
    *,
    batch_size: int = BATCH_SIZE,
    jobs: int = 1,
    work: Callable[[Cell, Seeds], Columns] = measure,
) -> Columns:
    """Run a grid and return its episode table, in the order of cells and of each cell's seeds.

    Args:
        seeds: the seeds of all cells, or one array a cell; by default each cell's own.
        batch_size: rows a block; changes nothing but speed and memory.
        jobs: processes; changes nothing but speed.
        work: what runs and measures a cell on some of its seeds: columns [row].
    """
    of_cell = seeds_of_cells(cells, seeds)
    parts = list(run_tasks(partial(run_block, work), plan_blocks(cells, of_cell, batch_size), jobs))
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
