"""Simulates how often intervals of pairs that hardly differ hold the truth.

    .venv/bin/python data/intervals/coverage.py

A law is what pairs of two policies differ by: every success and accuracy of the paper's scores with fewer
terms against EnvProbe-Simple, in each world under each protocol, where fewer than a tenth of 5,000 pairs
differ; and some drawn laws beside them. From each, 220 pairs are drawn 4,000 times, and each sample is
estimated as the book does it, and by resampling alone. A row counts how often each interval holds the law's
mean, at 95% and at 99.17%, as where six comparisons are made.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate
from envprobe_core.estimating import reach_of
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.resampling import SPARSE
from envprobe_core.statistics import Floats, ratios
from envprobe_core.worlds import WORLDS

HERE = Path(__file__).parent
SEEDS = np.arange(500_000, 505_000)  # which no page runs
FEWER = ("cd", "minus-c", "minus-s", "minus-u", "minus-d")
PAIRS, SAMPLES, RESAMPLES, AT_ONCE = 220, 4_000, 2_000, 100
LEVEL, FAMILY = 0.95, 6
RATES = (0.005, 0.01, 0.02, 0.05, 0.09)
SIZES = {  # of the drawn laws: what a pair that differs may differ by, each as likely
    "won alone": [1.0],
    "won two of three": [1.0, 1.0, -1.0],
    "won and lost": [1.0, -1.0],
    "graded, one side": [0.04, 0.04, 0.04, 0.08, 0.12, 0.3],
    "graded, both sides": [-0.12, -0.04, 0.04, 0.04, 0.08, 0.2],
}


def recorded() -> Iterator[tuple[dict[str, object], Floats]]:
    """The laws of the book's own pairs that hardly differ, each with what it is called."""
    for world, (name, protocol) in product(WORLDS, PROTOCOLS.items()):
        columns = {
            policy: simulate(make_condition(world, policy, protocol=protocol), SEEDS)
            for policy in ("simple", *FEWER)
        }
        for policy, measure in product(FEWER, ("success", "accuracy")):
            law = columns[policy][measure].astype(float) - columns["simple"][measure]
            if 0 < np.count_nonzero(law) < len(law) / SPARSE:
                named = {"world": world, "protocol": name, "policy": policy}
                yield {"law": "recorded", **named, "measure": measure}, law


def drawn() -> Iterator[tuple[dict[str, object], Floats]]:
    """The drawn laws, each as values of which one is as likely as another."""
    for (name, sizes), rate in product(SIZES.items(), RATES):
        law = np.zeros(round(len(sizes) / rate))
        law[: len(sizes)] = sizes
        yield {"law": name, "measure": "accuracy" if name.startswith("graded") else "success"}, law


def covered(law: Floats, reach: float | None, luck: np.random.Generator) -> dict[str, float]:
    """How often intervals of samples of a law hold its mean, by level, and how wide they are."""
    held, wide, truth = np.zeros(2), 0.0, law.mean()
    for batch in range(SAMPLES // AT_ONCE):
        sample = luck.choice(law, (PAIRS, AT_ONCE))
        asked = {"level": LEVEL, "family": FAMILY, "reach": reach}
        found = ratios(sample, np.ones_like(sample), resamples=RESAMPLES, seed=batch, **asked)
        ends = ((found.low, found.high), (found.low_adjusted, found.high_adjusted))
        held += [np.mean((low - 1e-12 <= truth) & (truth <= high + 1e-12)) for low, high in ends]
        wide += np.mean(found.high - found.low)
    at, adjusted = held / (SAMPLES // AT_ONCE)
    return {"95": at, "adjusted": adjusted, "width": 100 * wide / (SAMPLES // AT_ONCE)}


def main() -> None:
    """Simulate, and write `coverage.csv`."""
    rows = []
    for named, law in (*recorded(), *drawn()):
        row = named | {"differ": np.count_nonzero(law) / len(law), "mean": 100 * law.mean()}
        for name, reach in (("resampled", None), ("book", reach_of(str(named["measure"])))):
            own = covered(law, reach, np.random.default_rng(1))  # the same samples both times
            row |= {f"{name}_{part}": value for part, value in own.items()}
        rows.append(row)
    pd.DataFrame(rows).round(4).to_csv(HERE / "coverage.csv", index=False)


if __name__ == "__main__":
    main()
