"""Episodes as a statistic takes them: pairs joined by key, and a measure as numerators and denominators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import pandas as pd

from envprobe_core.claims.records import measure_columns, measure_parts
from envprobe_core.errors import InputError, require
from envprobe_core.worlds.base import Floats

KEY = ("regime", "policy", "world", "seed")
NULLABLE = ("collapse_onset", "action_onset", "chain_length")  # never: censored, or no way there is
MIN_UNITS = 10  # fewer episodes carry no bootstrap worth a verdict


class NotTestable(Exception):
    """Why a frame cannot tell what it was asked."""


def measured(text: str, column: Callable[[str], Floats]) -> Floats:
    """Return a measure of episodes: a column, a ratio, a difference, or 1 and 0 for a comparison.

    Args:
        text: a column's name, or two joined by one of / - < > (a number may stand on the right).
        column: gives a column by its name, in any shape.

    Returns:
        The columns' shape; NaN where the measure is undefined: nothing in the denominator, an event that
        never came. A censored event compared with a number counts as later than it.
    """
    left_name, sign, right_name = measure_parts(text)
    left = column(left_name)
    if not sign:
        return left
    if right_name[0].isdigit():
        left, right = np.where(np.isnan(left), np.inf, left), np.asarray(float(right_name))
    else:
        right = column(right_name)
    if sign == "/":
        return np.divide(left, right, out=np.full(left.shape, np.nan), where=right > 0)
    if sign == "-":
        return left - right
    holds = left < right if sign == "<" else left > right
    return np.where(np.isnan(left) | np.isnan(right), np.nan, holds)


class Episodes:
    """Episodes of one protocol and profile; joined by key, so that no order of rows moves anything."""

    def __init__(self, frame: pd.DataFrame, **chosen: str) -> None:
        """Take the rows of a frame in which the columns named have the values `chosen`.

        Raises:
            InputError: for a missing key column, a value that the frame does not hold, or an episode that
                occurs twice (a frame with several budgets or thresholds of one policy: choose one first).
        """
        require(frame, [*KEY, *chosen])
        for name, asked in chosen.items():
            own = frame[name] == asked
            if not own.any():
                held = sorted(map(str, frame[name].unique()))
                raise InputError(f"the frame has no {name} {asked!r}; it holds {', '.join(held)}")
            frame = frame[own]
        codes = [pd.factorize(frame[name])[0] for name in KEY[:3]]
        seed = frame["seed"].to_numpy()
        order = np.lexsort((seed, *codes[::-1]))
        self.frame, self._seed = frame.iloc[order].reset_index(drop=True), seed[order]
        starts = np.logical_or.reduce([np.diff(code[order], prepend=-1) != 0 for code in codes])
        if (twice := ~starts & (np.diff(self._seed, prepend=0) == 0)).any():
            at = self.frame.iloc[np.argmax(twice)]
            raise InputError(
                f"seed {at['seed']} of {at['policy']} in {at['world']}, {at['regime']}, occurs twice; "
                "one budget and one threshold a policy are accepted"
            )
        first = np.flatnonzero(starts)
        cells = zip(*(self.frame[name].to_numpy()[first].tolist() for name in KEY[:3]), strict=True)
        self._rows = dict(zip(cells, np.split(np.arange(len(order)), first[1:]), strict=True))
        self._measures: dict[str, Floats] = {}

    def _column(self, name: str) -> Floats:
        if name not in self.frame.columns:
            raise NotTestable(f"the frame has no column {name}")
        return self.frame[name].to_numpy(dtype=np.float64, na_value=np.nan)

    def values(self, measure: str, regime: str, world: str, policies: Sequence[str]) -> Floats:
        """Return a measure of some policies on the seeds they share, in order of seed: [policy, unit, 1].

        Raises:
            NotTestable: for a cell or a column that the frame does not have, and fewer than two shared seeds.
            InputError: for a gap in a column that only a damaged frame can have.
        """
        cells = []
        for policy in policies:
            if (regime, policy, world) not in self._rows:
                raise NotTestable(f"the frame has no {policy} in {world}, {regime}")
            cells.append(self._rows[regime, policy, world])
        common = reduce(np.intersect1d, (self._seed[cell] for cell in cells))
        rows = np.array([cell[np.isin(self._seed[cell], common)] for cell in cells])
        for name in measure_columns(measure):
            self._refuse_gaps(name, rows)
        if len(common) < 2:
            raise NotTestable(f"{world} has {len(common)} episodes in common")
        if measure not in self._measures:
            self._measures[measure] = measured(measure, self._column)
        return self._measures[measure][rows][..., None]

    def _refuse_gaps(self, name: str, rows: npt.NDArray[np.int64]) -> None:
        """Refuse a gap where an event cannot fail to come: not measured at all, or a damaged frame."""
        for own, gaps in zip(rows, np.isnan(self._column(name)[rows]), strict=True):
            if name not in NULLABLE and gaps.any():
                at = self.frame.iloc[own[np.argmax(gaps)]]
                if gaps.all():
                    where = f"{at['policy']} in {at['world']}, {at['regime']}"
                    raise NotTestable(f"{name} was not measured for {where}")
                raise InputError(
                    f"{name} is missing for seed {at['seed']} of {at['policy']} in {at['world']}"
                )


@dataclass(frozen=True, slots=True)
class Sample:
    """What a statistic is made of."""

    top: Floats  # [unit, column], numerators
    bottom: Floats  # [unit, column], denominators
    worlds: npt.NDArray[np.int64]  # [unit], each unit's world by its position
    each: Floats | None = None  # [arm, unit, column], every value, NaN: undefined; None for events pooled


def draw_sample(
    episodes: Episodes,
    measure: str,
    regime: str,
    worlds: Sequence[str],
    arms: Sequence[str],
    reference: str | None = None,
    *,
    pooled_events: bool = False,
) -> Sample:
    """Return a measure of the arms (minus that of a reference), summed by seed, world by world.

    Args:
        episodes: a frame's, or the atlas' `Table`: what has their method `values`.
        measure: as in `measured`.
        pooled_events: whether the measure a/b gives sums of a over sums of b; else each episode's own value
            counts once.

    Raises:
        NotTestable, InputError: as `Episodes.values`.
    """
    policies = arms if reference is None else (*arms, reference)
    texts = measure_columns(measure) if pooled_events else [measure]
    parts = [[episodes.values(text, regime, world, policies) for text in texts] for world in worlds]
    labels = np.repeat(np.arange(len(worlds)), [own[0].shape[1] for own in parts])
    tables = [np.concatenate(own, axis=1) for own in zip(*parts, strict=True)]
    if pooled_events:
        return Sample(*(table.sum(axis=0) for table in tables), labels)
    each = tables[0] if reference is None else tables[0][:-1] - tables[0][-1:]
    known = ~np.isnan(each)
    return Sample(np.where(known, each, 0.0).sum(axis=0), known.sum(axis=0).astype(float), labels, each)
