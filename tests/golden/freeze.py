"""Writes `cells.csv` and `trajectories.json.gz`: what the engine does, on the cells that are there and more.

Run it when the engine is changed on purpose, and say in the commit which cells changed and why. It prints how
many did, by what their digests cover; a cell that should not have changed is a fault, not a new golden value.
"""

from __future__ import annotations

import csv
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.append(str(Path(__file__).resolve().parents[1]))

from envprobe_core.agents.profiles import PROFILES, AgentProfile
from envprobe_core.conditions import LARGEST_SEED, RESERVED
from envprobe_core.engine.batch import simulate_logged
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import DEPARTURES, PROTOCOLS, switch_values
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS
from golden.cells import (
    CELLS,
    EPISODES,
    FLOAT,
    RECORDED,
    canonical,
    digest,
    fault_sets,
    faults_matter,
    faults_of,
    faulty_key,
    read_cell,
    read_rows,
)
from test_golden_engine import measured, named

DRAWS = 20262  # seed of the cells that are added
CELLS_EACH = 45  # of every world and policy, without a fault
SEEDS = 4  # episodes of a cell
STRIDE = 61  # of the cells whose first episode is kept whole; shares no factor with worlds times policies

Row = dict[str, str]


def draw_protocol(rng: random.Random) -> str:
    """Draw a named protocol, or seven times in eight one with one to four switches turned."""
    name = rng.choice(sorted(PROTOCOLS))
    turned = rng.sample(sorted(set(DEPARTURES) - {"seeds"}), rng.choice((0, 1, 1, 2, 2, 3, 3, 4)))
    values = [min(set(switch_values(switch)) - {getattr(PROTOCOLS[name], switch)}) for switch in turned]
    changes = ",".join(f"{switch}={value}" for switch, value in zip(turned, values, strict=True))
    return f"{name}:{changes}" if changes else name


def draw_profile(rng: random.Random) -> str:
    """Draw a registered profile, or every other time the parameters of a new one."""
    if rng.random() < 0.5:
        return rng.choice(sorted(PROFILES))
    drawn: dict[str, Any] = {
        name: rng.choice((0.0, 0.05, 0.2, 0.5, 1.0, round(rng.random(), 3)))
        for name in ("omit", "overwrite", "slip", "misreport", "hedge", "lost", "loop")
    }
    drawn["scribe"] = rng.random() < 0.3
    drawn["quit"] = rng.choice((0.0, 0.0, 0.03, 0.2))
    drawn["confidence"] = rng.choice((100, 95, 90, 70, 60, 30))
    drawn["spread"] = rng.randint(0, rng.choice((0, 10, drawn["confidence"])))
    drawn["fade"] = rng.choice((0, 1, 5, rng.randint(0, 100)))
    drawn["single_report"] = rng.random() < 0.3
    drawn["writes"] = rng.choice(("number", "true"))
    drawn["keeps_open"] = rng.random() < 0.5
    plain = AgentProfile("plain").as_dict()
    return json.dumps({name: value for name, value in drawn.items() if value != plain[name]})


def draw_row(rng: random.Random, world: str, policy: str, protocol: str) -> Row:
    """Draw a cell of a world, a policy and a protocol, all else at random."""
    regime = rng.choice(sorted(REGIMES))
    budget = rng.choice(("", str(rng.randint(0, REGIMES[regime].horizon))))
    threshold = rng.choice(("", str(round(rng.uniform(0.2, 3.6), rng.choice((1, 2, 16))))))
    huge = rng.random() < 0.02
    first = LARGEST_SEED - SEEDS + 1 - rng.randrange(1000) if huge else rng.randrange(10**6 + 1)
    while any(seed in RESERVED for seed in range(first, first + SEEDS)):
        first = rng.randrange(10**6 + 1)
    return {
        "world": world,
        "policy": policy,
        "regime": regime,
        "protocol": protocol,
        "profile": draw_profile(rng),
        "budget": budget,
        "threshold": threshold if POLICIES[policy].has_threshold else "",
        "seeds": f"{first}:{first + SEEDS}",
    }


def draw_rows(rng: random.Random, there: list[Row]) -> Iterator[Row]:
    """Draw cells until every world and policy has as many without a fault."""
    have = Counter((row["world"], row["policy"]) for row in there if not faults_of(row))
    for number, world, policy in product(range(CELLS_EACH), sorted(WORLDS), sorted(POLICIES)):
        if number >= have[world, policy]:
            yield draw_row(rng, world, policy, draw_protocol(rng))


def draw_faulty_rows(rng: random.Random, there: list[Row]) -> Iterator[Row]:
    """Draw cells until each fault, alone and with all others, does something in every world and protocol.

    VoI, which reckons with what comes late, has one of each, and one is of a policy that is drawn. The public
    code delivers no answer, so that none could be wrong or late: here it does.
    """
    have = Counter((*faulty_key(row), row["policy"] == "voi") for row in there)
    others = sorted(set(POLICIES) - {"voi"})
    keys = product(sorted(WORLDS), sorted(PROTOCOLS), fault_sets())
    for (world, name, faults), of_voi in product(keys, (True, False)):
        while not have[world, name, faults, of_voi]:
            turned = [f"{one}={rng.choice(switch_values(one)[1:])}" for one in faults]
            protocol = f"{name}:{','.join([*turned, 'answer=delivered'])}"
            row = draw_row(rng, world, "voi" if of_voi else rng.choice(others), protocol)
            if faults_matter(row):
                have[world, name, faults, of_voi] += 1
                yield row


def plain(part: npt.NDArray[Any]) -> Any:
    """Return an array, or one number, as JSON has it, with null for NaN."""
    return np.where(np.isnan(part), None, part).tolist() if part.dtype == FLOAT else part.tolist()


def main() -> None:
    """Run the cells that are there and those that are added, and write both files."""
    rows = [{name: row[name] for name in row if name not in ("recorded", "measured")} for row in read_rows()]
    before = {named(row): (row["recorded"], row["measured"]) for row in read_rows()}
    rows += [*draw_rows(random.Random(DRAWS), rows), *draw_faulty_rows(random.Random(DRAWS), rows)]
    episodes, changed = [], Counter[str]()
    for number, row in enumerate(rows):
        cell, seeds = read_cell(row)
        made = simulate_logged(cell, seeds)
        recorded = digest({name: getattr(made, name) for name in RECORDED}, RECORDED)
        key = named(row)
        row |= {"recorded": recorded, "measured": measured(row, made.measures)}
        if key in before and before[key] != (row["recorded"], row["measured"]):
            changed["recorded" if before[key][0] != recorded else "measures alone"] += 1
        if number % STRIDE == 0:
            parts = {name: plain(canonical(getattr(made, name)[0], RECORDED[name])) for name in RECORDED}
            episodes.append({"row": row, "parts": parts})
    with CELLS.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    content = json.dumps({"episodes": episodes}, separators=(",", ":"), allow_nan=False)
    EPISODES.write_bytes(gzip.compress(content.encode(), mtime=0))
    print(f"{len(rows)} cells of {SEEDS} episodes, {len(episodes)} episodes whole; changed: {dict(changed)}")


if __name__ == "__main__":
    main()
