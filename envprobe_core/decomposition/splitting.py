"""The split of every gain with paired intervals: Shapley values, what is there before, and interactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.decomposition.hybrids import (
    ALL,
    BLIND,
    FACTOR_NAMES,
    FACTORS,
    IDLE,
    INFORMATION,
    members,
    own_level,
)
from envprobe_core.decomposition.running import Factorial, gains
from envprobe_core.decomposition.shapley import interactions, pairs, restrict, shapley_values
from envprobe_core.statistics import RESAMPLES, mean_intervals

if TYPE_CHECKING:
    import pandas as pd

REFERENCES = (BLIND, IDLE)
GAMES = ("own", "all")  # what the protocol itself turns on, and all five factors
START, GAIN, UNANSWERED = "start", "gain", "unanswered"
PAIRS = tuple((FACTOR_NAMES[first], FACTOR_NAMES[second]) for first, second in pairs(len(FACTORS)))


def split_episodes(game: np.ndarray, coalition: int) -> dict[str, np.ndarray]:
    """Split the gain of every episode among the factors that a coalition turns on.

    Args:
        game: [episode, coalition], from `running.gains`.
        coalition: where the gain is read; factors outside it stay at their lower level and get no share.

    Returns:
        [episode] each: `start`, the value with every factor at its lower level; the factors' shares; `gain`,
        which is the sum of all these; `unanswered`, the gain at the same place with the answers withheld.
    """
    playing = members(coalition)
    shares = shapley_values(restrict(game, playing))
    return (
        {START: game[:, 0]}
        | {FACTOR_NAMES[factor]: shares[:, place] for place, factor in enumerate(playing)}
        | {GAIN: game[:, coalition], UNANSWERED: game[:, coalition & ~INFORMATION]}
    )


def split_gains(
    runs: Factorial, resamples: int = RESAMPLES, whole: tuple[str, ...] = ("simple",)
) -> pd.DataFrame:
    """Split every gain of every policy, in every world and under every protocol.

    Args:
        runs: the factorial.
        whole: the policies that are also split with all five factors playing.
        resamples: bootstrap resamples; episodes are resampled whole, so all arms of a seed stay together.

    Returns:
        One row a part: `protocol world policy reference game part value low high`, in points; `part` is a
        key of `split_episodes`, `game` one of `GAMES`.
    """
    import pandas as pd

    frames = []
    for protocol in runs.protocols:
        keys, columns = [], []
        for world in runs.worlds:
            for policy in runs.policies:
                for reference in REFERENCES:
                    if policy == reference:
                        continue
                    game = gains(runs, protocol, world, policy, reference)
                    for name, coalition in zip(GAMES, (own_level(protocol), ALL), strict=True):
                        if name == "all" and policy not in whole:
                            continue
                        parts = split_episodes(game, coalition)
                        keys += [(protocol, world, policy, reference, name, part) for part in parts]
                        columns += parts.values()
        frames.append(_intervals(keys, columns, resamples, "protocol world policy reference game part"))
    return pd.concat(frames, ignore_index=True)


def cross(
    runs: Factorial, policy: str = "simple", reference: str = BLIND, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Measure how much more two factors add together than one by one, all five playing.

    Returns:
        One row a protocol, world and pair: `protocol world first second value low high`, in points.
    """
    keys, columns = [], []
    for protocol in runs.protocols:
        for world in runs.worlds:
            found = interactions(gains(runs, protocol, world, policy, reference))
            keys += [(protocol, world, *pair) for pair in PAIRS]
            columns += list(found.T)
    return _intervals(keys, columns, resamples, "protocol world first second")


def _intervals(keys: list[tuple], columns: list[np.ndarray], resamples: int, names: str) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame(keys, columns=names.split())
    ends = mean_intervals(np.stack(columns, axis=1), resamples=resamples)
    return frame.assign(**dict(zip(("value", "low", "high"), ends, strict=True)))


def placebos(runs: Factorial, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Value Simple's answers twice: against its Placebo, which decides anew, and its Yoked Placebo.

    The yoked one repeats Simple's times and fields, so that nothing differs but the answers; the Placebo's
    own gate and fields react to what it was not told. Answers reach Simple here whatever the protocol says.

    Returns:
        One row a protocol, world and `against` (`placebo`, `yoked`, `choice`: the second minus the first).
    """
    keys, columns = [], []
    for protocol in runs.protocols:
        for world in runs.worlds:
            simple, placebo, yoked = (
                runs.unanswered[protocol, world, name] for name in ("simple", "placebo", "yoked")
            )
            keys += [(protocol, world, against) for against in ("placebo", "yoked", "choice")]
            columns += [simple - placebo, simple - yoked, yoked - placebo]
    return _intervals(keys, columns, resamples, "protocol world against")
