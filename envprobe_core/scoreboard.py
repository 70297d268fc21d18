"""The scoreboard: every claim of the paper, run and judged under every protocol.

What is run follows from the claims alone: the cells their arms name, and on each cell the facts their
measures name. Nothing is run that no claim asks for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.cells import Cell, find_profile, find_regime, make_cell
from envprobe_core.claims import Claim, load_claims, places, policy_and_budget
from envprobe_core.claims.records import measure_columns
from envprobe_core.errors import InputError
from envprobe_core.experiments import (
    COLUMNS,
    DEFAULT_SEEDS,
    PROTOCOLS,
    Names,
    find_protocols,
    names,
    read_seeds,
)
from envprobe_core.protocols import Protocol
from envprobe_core.statistics import RESAMPLES
from envprobe_core.sweep import BATCH_SIZE, Task, plan_tasks, run_cells, run_tasks, score_task, simulate

if TYPE_CHECKING:
    import pandas as pd

PRIMARY_REGIME = "S2"
SECOND_BATCH = 701  # another cut of the grid into blocks, for the claim that nothing depends on it
KEYS = (
    "id", "source", "statement", "kind", "family", "paper", "ours", "protocol", "profile", "interval",
    "verdict", "section",
)  # fmt: skip


def choose_claims(sections: Names = (), regime: str = PRIMARY_REGIME) -> tuple[Claim, ...]:
    """Return the claims of some sections (default: all), in the paper's order.

    Args:
        sections: names of sections of the book, as text or a sequence.
        regime: where claims about the paper's primary regime S2 are asked instead. Claims that state a
            setting of a regime, as its horizon, stay where they are.

    Raises:
        InputError: for an unknown section or regime.
    """
    find_regime(regime)
    wanted = names(sections)
    found = [claim for section in wanted for claim in load_claims(section=section)] or list(load_claims())
    found.sort(key=lambda claim: places.order(claim.source))
    return tuple(
        replace(claim, regime=regime)
        if claim.regime == PRIMARY_REGIME and claim.about != "setting"
        else claim
        for claim in found
    )


def needs(claims: Sequence[Claim]) -> dict[tuple[str, str, str], set[str]]:
    """Return what claims ask for: for each (regime, world, arm) the columns their measures name."""
    wanted: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for claim in claims:
        columns = {name for measure in claim.measures for name in measure_columns(measure)}
        for world in claim.worlds + claim.against:
            for arm in claim.arms + claim.references:
                wanted[claim.regime, world, arm] |= columns
    return dict(wanted)


def load_scoreboard_frame(
    claims: Sequence[Claim] | None = None,
    protocols: Names = PROTOCOLS,
    profile: str = "typical",
    seeds: str = DEFAULT_SEEDS,
    regime: str = PRIMARY_REGIME,
    jobs: int = 1,
) -> pd.DataFrame:
    """Run what the claims ask for.

    Args:
        claims: what is to be tested; by default every claim.
        protocols: as in `experiments.load_grid`.
        profile: name of the agent profile.
        seeds: as in `experiments.load_grid`, for cells of `regime`; other regimes run on their own.
        regime: the regime that `seeds` are for.
        jobs: processes.

    Returns:
        One row an episode: `experiments.COLUMNS` and every fact that a claim names. `policy` holds the arm
        as the claims call it (`cd@3` is c+d with three probes). A fact that no claim asks of a cell is NaN.

    Raises:
        InputError: for an unknown name or a value that a cell refuses.
    """
    import pandas as pd

    from envprobe_core.scoreboard_facts import FACTS

    wanted = needs(choose_claims(regime=regime) if claims is None else claims)
    chosen = read_seeds(seeds)
    labels, cells, own, facts = [], [], [], []
    for protocol in find_protocols(protocols):
        for (level, world, arm), columns in wanted.items():
            cell = _cell(world, arm, level, protocol, profile)
            labels.append(arm)
            cells.append(cell)
            own.append(cell.default_seeds() if chosen is None or level != regime else chosen)
            facts.append(columns)
    tasks = list(plan_tasks(cells, own, BATCH_SIZE))
    work = partial(_run, facts=[frozenset(columns & FACTS.keys()) for columns in facts])
    parts = list(run_tasks(work, tasks, jobs))
    table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.lexsort((table["seed"], table["cell"]))
    table = {name: column[order] for name, column in table.items()}
    again = [place for place, columns in enumerate(facts) if "reproduced" in columns]
    table["reproduced"] = _reproduced(table, cells, own, again)
    keys = {name: np.array([cell.key[name] for cell in cells], dtype=object) for name in cells[0].key}
    keys |= {"policy": np.array(labels, dtype=object), "budget": keys["budget"].astype(np.int64)}
    keys["threshold"] = keys["threshold"].astype(np.float64)
    columns = {name: column[table["cell"]] for name, column in keys.items()} | table
    asked = [name for name in (*FACTS, "reproduced") if any(name in part for part in facts)]
    return pd.DataFrame({name: columns[name] for name in (*COLUMNS, *asked)})


def _cell(world: str, arm: str, regime: str, protocol: Protocol, profile: str) -> Cell:
    policy, budget = policy_and_budget(arm)
    return make_cell(world, policy, regime, protocol, profile, budget)


def _run(task: Task, facts: Sequence[frozenset[str]]) -> dict[str, np.ndarray]:
    """Run a task, score it, and measure on each piece the facts asked of its cell, NaN elsewhere."""
    from envprobe_core.scoreboard_facts import FACTS, REPORTED, measure_facts

    asked = frozenset().union(*(facts[piece.index] for piece in task.pieces))
    recording = simulate(task, reports=bool(asked & REPORTED))
    columns = score_task(task, recording)
    rows = len(columns["seed"])
    columns |= {name: np.full(rows, np.nan) for name in FACTS}
    start = 0
    for piece in task.pieces:
        part = slice(start, start + len(piece.seeds))
        start = part.stop
        if facts[piece.index]:
            scored = {name: column[part] for name, column in columns.items()}
            found = measure_facts(facts[piece.index], piece.cell, piece.seeds, recording.rows(part), scored)
            for name, values in found.items():
                columns[name][part] = values
    return columns


def _reproduced(
    table: dict[str, np.ndarray], cells: Sequence[Cell], own: Sequence[np.ndarray], again: Sequence[int]
) -> np.ndarray:
    """Say which episodes came out the same when their cell was run a second time, [row]; else NaN."""
    same = np.full(len(table["cell"]), np.nan)
    if again:
        second = run_cells([cells[i] for i in again], [own[i] for i in again], batch_size=SECOND_BATCH)
        rows = np.concatenate([np.flatnonzero(table["cell"] == i) for i in again])
        order = np.lexsort((second["seed"], second["cell"]))
        same[rows] = table["digest"][rows] == second["digest"][order]
    return same


def load_scoreboard(
    sections: Names = (),
    protocols: Names = PROTOCOLS,
    profile: str = "typical",
    seeds: str = DEFAULT_SEEDS,
    regime: str = PRIMARY_REGIME,
    resamples: int = RESAMPLES,
    jobs: int = 1,
    *,
    report: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Run and judge the claims.

    Args:
        sections: as in `choose_claims`.
        protocols: as in `load_scoreboard_frame`.
        profile: name of the agent profile.
        seeds: as in `load_scoreboard_frame`.
        regime: as in `choose_claims`.
        resamples: bootstrap resamples.
        jobs: processes.
        report: called with a sentence on what is being done.

    Returns:
        One row a claim and protocol, claims in the paper's order, as `claims.judge.judge` gives it.

    Raises:
        InputError: for an unknown name or a value that a cell refuses.
    """
    from envprobe_core.claims.judge import judge

    find_profile(profile)
    claims = choose_claims(sections, regime)
    chosen = [protocol.name for protocol in find_protocols(protocols)]
    if len(set(chosen)) < len(chosen):
        raise InputError(f"protocols {', '.join(chosen)}: one is named twice")
    if report:
        report(f"running the episodes of {len(claims)} claims")
    frame = load_scoreboard_frame(claims, protocols, profile, seeds, regime, jobs)
    if report:
        report(f"testing {len(claims)} claims on {len(frame):,} episodes")
    return judge(frame, claims, protocols=chosen, profile=profile, resamples=resamples)


def as_records(board: pd.DataFrame) -> list[dict[str, object]]:
    """Return a scoreboard as plain records, an object a claim and protocol with the keys `KEYS`.

    `paper` and `ours` are in the claim's own unit (differences of accuracy in percentage points, levels as
    shares); `interval` is the adjusted one that decides. What there is none of is None.
    """
    records = []
    for row in board.itertuples(index=False):
        ends = [_plain(row.low_adjusted), _plain(row.high_adjusted)]
        values = (
            row.claim, row.source, row.statement, row.about, int(row.family),
            _plain(row.paper_value), _plain(row.estimate), row.protocol, row.profile,
            None if None in ends else ends, row.verdict, row.section,
        )  # fmt: skip
        records.append(dict(zip(KEYS, values, strict=True)))
    return records


def _plain(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
