"""Compare two policies pair by pair, and average what episodes measure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from envprobe_core.cells import Names, names
from envprobe_core.claims.episodes import KEY, MIN_UNITS, Episodes, NotTestable, draw_sample, measured
from envprobe_core.claims.printed import STRATA
from envprobe_core.claims.records import measure_columns, measure_parts
from envprobe_core.errors import InputError, look_up, require
from envprobe_core.statistics import RESAMPLES, clustered_rate, exact_mean, mean_intervals, wilson
from envprobe_core.worlds import WORLDS

GAIN = ("gain", "gain_low", "gain_high", "gain_low_adjusted", "gain_high_adjusted", "p", "p_adjusted")
MEAN = ("mean", "low", "high", "n")


def compare(
    frame: pd.DataFrame,
    arm: str,
    reference: str,
    measure: str = "accuracy",
    *,
    by: Names = ("protocol",),
    strata: Mapping[str, tuple[str, ...]] = STRATA,
    family: int = 1,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Estimate the mean difference of two policies over pairs of episodes with the same world and seed.

    Pairs are resampled within their world. A pair in which the measure is undefined on one side (nothing
    fired, never collapsed) is resampled but does not count.

    Args:
        frame: one row an episode, of one regime unless `by` names it.
        measure: a column, or two joined by one of / - < >.
        by: columns; each combination of their values is compared by itself.
        strata: names and the worlds that each pools.
        family: comparisons that the adjusted interval and p allow for.

    Returns:
        One row a combination and stratum: `by`, `stratum arm reference`; `gain` with its 95% interval
        `gain_low gain_high` and the adjusted one `gain_low_adjusted gain_high_adjusted`, in points where the
        measure is a share, else in its own unit; two-sided `p` and `p_adjusted`; `n` pairs that count, and
        how many of them are the `same` on both sides. NaN where fewer than `MIN_UNITS` pairs count.

    Raises:
        InputError: for a policy or column that the frame does not have, an episode that occurs twice, and a
            gap in a column.
    """
    read = dict.fromkeys([*KEY, *names(by), *measure_columns(measure)])
    require(frame, read)
    held = sorted(map(str, frame["policy"].unique()))
    for policy in (arm, reference):
        if policy not in held:
            raise InputError(f"the frame has no policy {policy!r}; it holds {', '.join(held)}")
    for name, worlds in strata.items():
        if isinstance(worlds, str):
            raise InputError(f"stratum {name!r} is a text, {worlds!r}; give a tuple of worlds")
        for world in worlds:
            look_up("world", world, WORLDS)
    scale = 100.0 if is_share(measure) else 1.0
    rows = []
    own = frame.loc[frame["policy"].isin((arm, reference)), list(read)]
    for key, places in _places(own, by, np.arange(len(own))):
        part = own.iloc[places]
        regimes = part["regime"].unique()
        if len(regimes) > 1:
            raise InputError(
                f"the frame has regimes {', '.join(regimes)}; name `regime` in `by`, or choose one"
            )
        episodes = Episodes(part)
        for stratum, worlds in strata.items():
            row = key | {"stratum": stratum, "arm": arm, "reference": reference} | dict.fromkeys(GAIN, np.nan)
            row |= {"n": 0, "same": 0}
            rows.append(row)
            try:
                pairs = draw_sample(episodes, measure, regimes[0], worlds, (arm,), reference)
            except NotTestable:
                continue
            top, counts = pairs.top[:, 0], pairs.bottom[:, 0]
            row |= {"n": int(counts.sum()), "same": int(((top == 0) & (counts > 0)).sum())}
            if row["n"] >= MIN_UNITS:
                found = clustered_rate(scale * top, counts, pairs.worlds, family=family, resamples=resamples)
                row |= {
                    name: getattr(found, name.removeprefix("gain_").replace("gain", "mean")) for name in GAIN
                }
    return pd.DataFrame(rows)


def summarize(
    frame: pd.DataFrame,
    measures: Names,
    by: Names,
    *,
    strata: Mapping[str, tuple[str, ...]] | None = None,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Average measures over the episodes of every group, with 95% intervals.

    Success has Wilson's interval, every other measure the percentile interval of the bootstrap, resampled
    within worlds. Episodes in which a measure is undefined (NaN) are left out of its mean.

    Args:
        frame: one row an episode.
        measures: columns, or two joined by one of / - < >.
        by: columns that name the groups.
        strata: names and the worlds that each pools; by default all worlds of a group.

    Returns:
        One row a group, stratum and measure, groups in order of first appearance: `by`, `stratum` (where
        strata are given), `measure mean low high n`. NaN ends where some world has a single episode.

    Raises:
        InputError: for a column that the frame does not have.
    """
    require(frame, ("world", "seed"))
    tables = {text: values_of(frame, text).to_numpy() for text in names(measures)}
    world = frame["world"].to_numpy(dtype=str)
    order = np.lexsort([frame["seed"].to_numpy(), world])
    rows, alike = [], {}
    for key, places in _places(frame, by, order):
        for stratum, worlds in ({"": None} if strata is None else strata).items():
            own = places if worlds is None else places[np.isin(world[places], worlds)]
            for text, table in tables.items():
                values = table[own]
                known = ~np.isnan(values)
                values, labels = values[known], world[own][known]
                pooled = {} if strata is None else {"stratum": stratum}
                row = (
                    key
                    | pooled
                    | {"measure": text, "mean": np.nan, "low": np.nan, "high": np.nan, "n": len(values)}
                )
                rows.append(row)
                if text == "success" and len(values):
                    row |= zip(MEAN, wilson(int(values.sum()), len(values)), strict=True)
                elif len(values):
                    row["mean"] = exact_mean(values)
                    new = np.flatnonzero(labels[1:] != labels[:-1]) + 1
                    sizes = tuple(np.diff(new, prepend=0, append=len(labels)).tolist())
                    if min(sizes) > 1:
                        alike.setdefault(sizes, []).append((row, values))
    for sizes, group in sorted(alike.items(), key=lambda item: item[0]):  # those of one size share resamples
        labels = None if len(sizes) == 1 else np.repeat(np.arange(len(sizes)), sizes)
        columns = np.stack([values for _, values in group], axis=1)
        ends = mean_intervals(columns, labels, resamples=resamples)
        for (row, _), *found in zip(group, *ends, strict=True):
            row |= zip(MEAN, map(float, found), strict=False)
    return pd.DataFrame(rows)


def is_share(measure: str) -> bool:
    """Say whether a measure is a share: an accuracy, success, a ratio or a comparison."""
    name, sign, _ = measure_parts(measure)
    return sign in ("/", "<", ">") or (name.partition("_")[0] in ("accuracy", "success") and sign != "-")


def _places(
    frame: pd.DataFrame, by: Names, order: npt.NDArray[np.int64]
) -> Iterable[tuple[dict[str, object], npt.NDArray[np.int64]]]:
    """Yield the places of every combination of values, in order of first appearance; its rows in an order."""
    own = list(names(by))
    require(frame, own)
    if not own:
        yield {}, order
        return
    grouped = frame.groupby(own, sort=False, dropna=False)
    which = grouped.ngroup().to_numpy()
    first = np.unique(which, return_index=True)[1]
    values = [frame[name].to_numpy()[first].tolist() for name in own]
    for number, key in enumerate(zip(*values, strict=True)):
        yield dict(zip(own, key, strict=True)), order[which[order] == number]


def values_of(frame: pd.DataFrame, measure: str) -> pd.Series:
    """Return a measure of every row; a column that the frame does not have is refused."""
    require(frame, measure_columns(measure))
    columns = {
        name: frame[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in measure_columns(measure)
    }
    return pd.Series(measured(measure, columns.__getitem__), index=frame.index)
