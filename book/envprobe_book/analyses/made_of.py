"""What a gain in accuracy is made of: a constant table's gain, the rest of the steps, and answers (ours).

A probe does two things: it spends a step, and it may bring an answer. The yoked placebo of a policy spends
the same steps and is not answered, so that a gain splits into *steps* and *answers* without anything else. A
step that is spent changes the episode itself. What the best table that never changes gains by it, in the
placebos' episodes, is *constant*. It may be less than nothing. The *rest* of the steps is not measured.

    gain  = steps + answers
    steps = constant + rest

The split has an order. The placebo asks when and what an answered agent asked, so what an answer is worth by
the next question that it leads to counts as *answers*.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from envprobe_core.comparing import compare
from envprobe_core.conditions import Names
from envprobe_core.errors import require
from envprobe_core.statistics import RESAMPLES
from envprobe_core.worlds import WORLDS

FACTS = "placebo placebo_zero"
"""What `run` has to be asked for."""
PARTS: Mapping[str, str] = {
    "gain": "accuracy",
    "steps": "placebo",
    "answers": "accuracy-placebo",
    "constant": "placebo_zero",
    "rest": "placebo-placebo_zero",
}
"""What each part is the paired difference of: the measure of two arms."""
BY_WORLD: Mapping[str, tuple[str, ...]] = {**{world: (world,) for world in WORLDS}, "combined": tuple(WORLDS)}


def made_of(
    frame: pd.DataFrame,
    arm: str,
    reference: str,
    *,
    by: Names = ("protocol",),
    strata: Mapping[str, tuple[str, ...]] = BY_WORLD,
    parts: Sequence[str] = tuple(PARTS),
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Split the gain of an arm over a reference: a row a combination of `by` and stratum, in points.

    Every part is compared on the same pairs with the same resamples, so the parts add up in each of them as
    they do in the mean.

    Args:
        frame: of `run`, with the facts `FACTS`.
        arm, reference: policies.
        by, strata: as `compare` takes them.
        parts: names of `PARTS`.
        resamples: of the intervals.

    Returns:
        The columns `by` and `stratum` as the index, and of each part `x x_low x_high`; `n` pairs.

    Raises:
        InputError: for what `compare` refuses, and a frame without the facts.

    >>> from envprobe_book import run
    >>> frame = run("tooldag", "simple periodic", protocols="released", seeds="0:40", facts=FACTS)
    >>> found = made_of(frame, "simple", "periodic", strata={"tools": ("tooldag",)})
    >>> found[["gain", "steps", "answers", "constant"]].round(1).to_numpy().tolist()
    [[13.0, 13.0, 0.0, 10.5]]
    """
    require(frame, FACTS.split())
    columns = []
    for part in parts:
        found = compare(frame, arm, reference, PARTS[part], by=by, strata=strata, resamples=resamples)
        found = found.set_index([*found.columns[: found.columns.get_loc("arm")]])
        own = found[["gain", "gain_low", "gain_high"]]
        columns.append(own.rename(columns=lambda name, part=part: name.replace("gain", part)))
    return pd.concat([*columns, found["n"]], axis=1)
