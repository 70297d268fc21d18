"""Freezes what the engine of commit b3b33ea does; it wrote `cells.csv` and `trajectories.json.gz`.

That engine and its naive twin, which a worktree of that commit holds, run every episode, and nothing is
written unless both agree on all that is recorded. `tests/golden/README.md` says how to run it. Later engines
have no twin and are held against the two files.
"""

from __future__ import annotations

import csv
import gzip
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.append(str(Path(__file__).resolve().parents[1]))  # last: `twinning` is the worktree's

from golden.cells import CELLS, COMMENT, EPISODES, FLOAT, MEASURED, RECORDED, canonical, digest, read_cell
from twinning import assert_same, schedule_of, twin_episodes

import envprobe_core
from envprobe_core.cells import LARGEST_SEED, PROFILES, AgentProfile
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PROTOCOLS, SWITCHES, switch_values
from envprobe_core.regimes import REGIMES
from envprobe_core.sweep import Piece, Task, score_task, simulate
from envprobe_core.worlds import WORLDS

DRAWS = 20261  # seed of the cells
ROUNDS = 37  # cells of every world and policy
SEEDS = 4  # episodes of a cell
STRIDE = 49  # of the cells whose first episode is kept whole; shares no factor with worlds times policies
FILLS = {"action": -1, "probe": -1, "score": np.nan}  # behind an episode's end, where all else is 0

Row = dict[str, str]


def draw_protocol(rng: random.Random) -> str:
    """Draw a named protocol, or seven times in eight one with one to four switches turned."""
    name = rng.choice(sorted(PROTOCOLS))
    turned = rng.sample(sorted(set(SWITCHES) - {"seeds"}), rng.choice((0, 1, 1, 2, 2, 3, 3, 4)))
    values = [min(set(switch_values(switch)) - {getattr(PROTOCOLS[name], switch)}) for switch in turned]
    changes = ",".join(f"{switch}={value}" for switch, value in zip(turned, values, strict=True))
    return f"{name}:{changes}" if changes else name


def draw_profile(rng: random.Random) -> str:
    """Draw a registered profile, or every other time the parameters of a new one."""
    if rng.random() < 0.5:
        return rng.choice(sorted(PROFILES))
    drawn: dict[str, Any] = {
        name: rng.choice((0.0, 0.05, 0.2, 0.5, 1.0, round(rng.random(), 3)))
        for name in ("omit", "overwrite", "slip", "misreport", "hedge")
    }
    drawn["quit"] = rng.choice((0.0, 0.0, 0.03, 0.2))
    drawn["confidence"] = rng.choice((100, 95, 90, 70, 60, 30))
    drawn["spread"] = rng.randint(0, rng.choice((0, 10, drawn["confidence"])))
    drawn["fade"] = rng.choice((0, 1, 5, rng.randint(0, 100)))
    drawn["single_report"] = rng.random() < 0.3
    drawn["writes"] = rng.choice(("number", "true"))
    drawn["keeps_open"] = rng.random() < 0.5
    plain = AgentProfile("plain").as_dict()
    return json.dumps({name: value for name, value in drawn.items() if value != plain[name]})


def draw_rows(rng: random.Random) -> Iterator[Row]:
    """Draw equally many cells of every world and policy, all else at random."""
    for _, world, policy in product(range(ROUNDS), sorted(WORLDS), sorted(POLICIES)):
        regime = rng.choice(sorted(REGIMES))
        budget = rng.choice(("", str(rng.randint(0, REGIMES[regime].horizon))))
        threshold = rng.choice(("", str(round(rng.uniform(0.2, 3.6), rng.choice((1, 2, 16))))))
        huge = rng.random() < 0.02
        first = LARGEST_SEED - SEEDS + 1 - rng.randrange(1000) if huge else rng.randrange(10**6 + 1)
        yield {
            "world": world,
            "policy": policy,
            "regime": regime,
            "protocol": draw_protocol(rng),
            "profile": draw_profile(rng),
            "budget": budget,
            "threshold": threshold if POLICIES[policy].has_threshold else "",
            "seeds": f"{first}:{first + SEEDS}",
        }


def record_of_twin(episode: Any, horizon: int) -> dict[str, npt.NDArray[Any]]:
    """Lay out what the twin did in one episode as the canonical form has it."""
    asked = zip(episode.probe, episode.belief, episode.gold, strict=False)
    told = [(belief[field], gold[field]) if field >= 0 else (0, 0) for field, belief, gold in asked]
    record = vars(episode) | {
        "place": episode.here,
        "action": episode.proposal,
        "answer": [gold for _, gold in told],
        "useful": [held != gold for held, gold in told],
        "valid": [bool(valid) for valid in episode.valid],
        "acted": [valid is not None for valid in episode.valid],
        "score": [np.nan if score is None else score for score in episode.score],
    }
    parts = {name: np.array(record[name], dtype=dtype) for name, dtype in RECORDED.items()}
    for name in [name for name, part in parts.items() if part.ndim]:
        behind = [(0, horizon - episode.steps)] + [(0, 0)] * (parts[name].ndim - 1)
        parts[name] = np.pad(parts[name], behind, constant_values=FILLS.get(name, 0))
    return parts


def freeze(row: Row) -> tuple[Row, dict[str, npt.NDArray[Any]]]:
    """Run a row by engine and twin; return it with its digests, and the recording of its episodes."""
    cell, seeds = read_cell(row)
    task = Task((Piece(0, cell, seeds),))
    trajectory = simulate(task, reports=True)
    parts = {name: canonical(getattr(trajectory, name), dtype) for name, dtype in RECORDED.items()}
    twins = twin_episodes(cell, seeds, schedule_of(cell, seeds))
    for number, episode in enumerate(twins):
        assert_same(trajectory, number, episode)
    records = [record_of_twin(episode, cell.regime.horizon) for episode in twins]
    recorded = digest(parts, RECORDED)
    if recorded != digest({name: [record[name] for record in records] for name in RECORDED}, RECORDED):
        raise AssertionError(f"engine and twin differ in what `assert_same` does not compare: {row}")
    return row | {"recorded": recorded, "measured": digest(score_task(task, trajectory), MEASURED)}, parts


def plain(part: npt.NDArray[Any]) -> Any:
    """Return an array, or one number, as JSON has it, with null for NaN."""
    return np.where(np.isnan(part), None, part).tolist() if part.dtype == FLOAT else part.tolist()


def engine_commit() -> str:
    """Return the commit of the engine's checkout, marked `dirty` where its files were changed."""
    describe = ["git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    folder = Path(envprobe_core.__file__).parent
    return subprocess.run(describe, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    """Draw the cells, run them, write both files."""
    made_by = f"`python tests/golden/freeze.py` with the engine of commit {engine_commit()}"
    rows, episodes = [], []
    for number, drawn in enumerate(draw_rows(random.Random(DRAWS))):
        row, parts = freeze(drawn)
        rows.append(row)
        if number % STRIDE == 0:
            episodes.append({"row": row, "parts": {name: plain(part[0]) for name, part in parts.items()}})
    with CELLS.open("w", encoding="utf-8", newline="") as file:
        file.write(f"{COMMENT} {made_by}\n")
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    content = json.dumps({"made_by": made_by, "episodes": episodes}, separators=(",", ":"), allow_nan=False)
    EPISODES.write_bytes(gzip.compress(content.encode(), mtime=0))
    print(f"{len(rows)} cells of {SEEDS} episodes, {len(episodes)} episodes whole; {made_by}")


if __name__ == "__main__":
    main()
