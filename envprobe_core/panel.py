"""Episodes of one protocol and profile, joined by key: the view that claims are tested on.

Pairs are joined by (world, regime, seed), never by row order, and come out sorted by world and
seed, so no order of rows can move a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims import measure_parts
from envprobe_core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

KEY = ("regime", "policy", "world", "seed")
REQUIRED = (*KEY, "protocol", "profile")
NULLABLE = ("collapse_onset", "action_onset")  # never: censored
MIN_UNITS = 10  # fewer episodes carry no bootstrap worth a verdict


class NotTestableError(Exception):
    """A claim that this frame cannot test, and why."""


def require_units(units: int, what: str) -> None:
    """Refuse to test on fewer than `MIN_UNITS` units that carry an event."""
    if units < MIN_UNITS:
        raise NotTestableError(f"{what}: {units} episodes with a value, {MIN_UNITS} are needed")


@dataclass(frozen=True, slots=True)
class Sample:
    """Numerators and denominators [unit] of a statistic, and each unit's world by position."""

    numerators: np.ndarray
    denominators: np.ndarray
    worlds: np.ndarray
    left_out: int  # episodes or pairs whose measure is undefined (censored, nothing fired)
    spread: np.ndarray | None = None  # [unit, arm], each value by itself; NaN where undefined

    @property
    def n(self) -> int:
        """Episodes, pairs or (for a rate) events that carry the statistic."""
        return int(self.denominators.sum())


class Panel:
    """The rows of a frame under one protocol and profile, one sorted block a cell.

    Refused: missing key columns, a protocol or profile the frame does not hold, an episode that
    occurs twice (a frame with several budgets or thresholds of one policy: choose one first).
    """

    def __init__(self, frame: pd.DataFrame, protocol: str, profile: str) -> None:
        missing = [name for name in REQUIRED if name not in frame.columns]
        if missing:
            raise InputError(f"the frame has no column {', '.join(missing)}")
        for name, asked in (("protocol", protocol), ("profile", profile)):
            held = sorted(frame[name].unique())
            if asked not in held:
                raise InputError(f"the frame has no {name} {asked!r}; it holds {', '.join(held)}")
        chosen = frame[(frame["protocol"] == protocol) & (frame["profile"] == profile)]
        self.frame = chosen.sort_values(list(KEY), ignore_index=True)
        self.protocol, self.profile = protocol, profile
        self.seed = self.frame["seed"].to_numpy()
        labels = [self.frame[name].to_numpy(dtype=object) for name in KEY[:3]]
        changes = reduce(np.logical_or, (column[1:] != column[:-1] for column in labels))
        twice = np.flatnonzero(~changes & (self.seed[1:] == self.seed[:-1]))
        if len(twice):
            at = twice[0]
            regime, policy, world = (column[at] for column in labels)
            raise InputError(
                f"seed {self.seed[at]} of {policy} in {world}, {regime}, occurs twice; "
                "one budget and one threshold a policy are accepted"
            )
        edges = [0, *(np.flatnonzero(changes) + 1).tolist(), len(self.frame)]
        self._cells = {
            tuple(column[start] for column in labels): slice(start, stop) for start, stop in pairwise(edges)
        }
        self._measures: dict[str, np.ndarray] = {}

    def column(self, name: str) -> np.ndarray:
        """A column [row] as floats; `sample` refuses the gaps that it meets."""
        if name not in self.frame.columns:
            raise NotTestableError(f"the frame has no column {name}")
        return self.frame[name].to_numpy(dtype=np.float64, na_value=np.nan)

    def _refuse_gaps(self, measure: str, rows: list[np.ndarray]) -> None:
        """Refuse a gap in a column, except where an event may never come.

        A cell without any value was not measured and cannot be tested; one with some is damaged.
        """
        left, _, right = measure_parts(measure)
        for name in (left, right):
            if not name or name[0].isdigit() or name in NULLABLE:
                continue
            values = self.column(name)
            for block in rows:
                gaps = np.isnan(values[block])
                if not gaps.any():
                    continue
                at = self.frame.iloc[int(block[np.flatnonzero(gaps)[0]])]
                if gaps.all():
                    raise NotTestableError(
                        f"{name} was not measured for {at['policy']} in {at['world']}, {at['regime']}"
                    )
                raise InputError(
                    f"{name} is missing for seed {at['seed']} of {at['policy']} in {at['world']}"
                )

    def measure(self, text: str) -> np.ndarray:
        """A measure [row]: a column, a ratio, a difference, or 1 and 0 for a comparison.

        NaN where it is undefined: nothing in the denominator, an event that never came. A
        censored event compared with a number counts as later than it.
        """
        if text not in self._measures:
            self._measures[text] = self._measure(*measure_parts(text))
        return self._measures[text]

    def _measure(self, left_name: str, sign: str, right_name: str) -> np.ndarray:
        left = self.column(left_name)
        if not sign:
            return left
        if right_name[0].isdigit():
            right, left = float(right_name), np.where(np.isnan(left), np.inf, left)
        else:
            right = self.column(right_name)
        if sign == "/":
            return np.divide(left, right, out=np.full(left.shape, np.nan), where=right > 0)
        if sign == "-":
            return left - right
        holds = left < right if sign == "<" else left > right
        return np.where(np.isnan(left) | np.isnan(right), np.nan, holds)

    def _rows(self, regime: str, policies: tuple[str, ...], world: str) -> list[np.ndarray]:
        """Row numbers of each policy for the seeds that all of them have, in order of seed."""
        blocks = []
        for policy in policies:
            block = self._cells.get((regime, policy, world))
            if block is None:
                raise NotTestableError(f"the frame has no {policy} in {world}, {regime}")
            blocks.append(np.arange(block.start, block.stop))
        seeds = [self.seed[block] for block in blocks]
        common = reduce(lambda a, b: a if np.array_equal(a, b) else np.intersect1d(a, b), seeds)
        return [
            block if len(block) == len(common) else block[np.isin(own, common)]
            for block, own in zip(blocks, seeds, strict=True)
        ]

    def sample(
        self,
        measure: str,
        regime: str,
        worlds: tuple[str, ...],
        arms: tuple[str, ...],
        reference: str | None = None,
        *,
        pooled_events: bool = False,
    ) -> Sample:
        """The measure of `arms` summed by seed (minus that of `reference`), world by world.

        With `pooled_events` the measure a/b gives sums of a over sums of b, else each episode's
        own value counts once. What the frame cannot give raises `NotTestableError`.
        """
        left, _, right = measure_parts(measure)
        tops, bottoms, labels, spread, left_out = [], [], [], [], 0
        for position, world in enumerate(worlds):
            policies = arms if reference is None else (*arms, reference)
            rows = self._rows(regime, policies, world)
            self._refuse_gaps(measure, rows)
            shape = (len(arms), len(rows[0]))
            if pooled_events:
                top = np.stack([self.column(left)[block] for block in rows])
                bottom = np.stack([self.column(right)[block] for block in rows])
            else:
                values = self.measure(measure)
                top = np.stack([values[block] for block in rows[: len(arms)]])
                if reference is not None:
                    top = top - values[rows[-1]]
                spread.append(top.T)
                defined = ~np.isnan(top)
                top, bottom = np.where(defined, top, 0.0), defined.astype(np.float64)
                left_out += int(np.prod(shape) - defined.sum())
            tops.append(top.sum(axis=0))
            bottoms.append(bottom.sum(axis=0))
            labels.append(np.full(shape[1], position))
            if shape[1] < 2:
                raise NotTestableError(f"{world} has {shape[1]} episodes in common")
        joined = (np.concatenate(part) for part in (tops, bottoms, labels))
        sample = Sample(*joined, left_out, np.concatenate(spread) if spread else None)
        require_units(np.count_nonzero(sample.denominators), measure)
        return sample
