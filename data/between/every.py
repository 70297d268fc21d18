"""Runs EnvProbe-Simple and Periodic under every protocol between the paper's text and its public code.

    .venv/bin/python data/between/every.py

Thirteen switches in which the two differ move a pair of episodes; each is set as the text has it or as the
code has it, which makes 8,192 protocols. Budget, threshold, regime, agent and seeds are the paper's. A row
holds the switches (1: as the code) and what EnvProbe-Simple gains over Periodic in each world, in points.
"""

from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate
from envprobe_core.protocols import parse_protocol, turned
from envprobe_core.worlds import WORLDS

HERE = Path(__file__).parent
SWITCHES = (
    "accuracy", "pairing", "encoding", "end", "answer", "memory", "clock", "start", "sight", "structure",
    "baselines", "rates", "instances",
)  # fmt: skip
SEEDS = np.arange(220)
TEXT, CODE = parse_protocol("paper"), parse_protocol("released")


def gains(chosen: tuple[int, ...]) -> list[float]:
    """The gain in each world, in points, with some switches as the code has them."""
    protocol = turned(
        TEXT, **{switch: getattr(CODE, switch) for switch, on in zip(SWITCHES, chosen, strict=True) if on}
    )
    found = []
    for world in WORLDS:
        one, other = (
            simulate(make_condition(world, policy, protocol=protocol), SEEDS)["accuracy"]
            for policy in ("simple", "periodic")
        )
        found.append(100 * float(np.mean(one - other)))
    return found


def main() -> None:
    """Run all of them on two processes and keep the table beside this file."""
    every = list(product((0, 1), repeat=len(SWITCHES)))
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        rows = list(pool.map(gains, every, chunksize=64))
    frame = pd.DataFrame(every, columns=SWITCHES, dtype=np.int8)
    frame[list(WORLDS)] = rows
    frame.to_parquet(HERE / "every.parquet", index=False)


if __name__ == "__main__":
    main()
