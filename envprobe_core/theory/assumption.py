"""Is measured repair gain monotone and submodular? Every subset of the wrong fields, on small worlds.

Violations are found on one set of futures and confirmed on fresh ones, so that the worst of many noisy
differences is not taken for a finding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envprobe_core.experiments import Names, names
from envprobe_core.statistics import Interval, wilson
from envprobe_core.theory.forks import Past, Setting, look, seeds_in
from envprobe_core.theory.gains import accuracies
from envprobe_core.theory.pure import TOLERANCE, first_differences, members, second_differences
from envprobe_core.worlds.base import Floats

Ints = npt.NDArray[np.int64]
MOST_WRONG = 6
FRESH = 50_000  # number of the first future that serves confirmation alone
NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class Lattice:
    """G_T on every subset of the wrong fields of one past.

    Attributes:
        row: the past's row.
        wrong: [item], the wrong fields of the type.
        accuracy: [future, 2**item], A_H^T.
    """

    row: int
    wrong: Ints
    accuracy: Floats

    @property
    def gain(self) -> Floats:
        """Return G_T by set, [2**item]."""
        mean = self.accuracy.mean(axis=0)
        return mean - mean[0]


@dataclass(frozen=True)
class Violation:
    """One place where a property fails, confirmed or not on fresh futures.

    Attributes:
        world, kind, property: where, and `monotone` or `submodular`.
        seed, moment: the past.
        smaller: names of the fields of S.
        larger: names of the fields of R (equal to S for monotonicity).
        item: name of the field i.
        found: Delta(i | S), or Delta(i | S) - Delta(i | R), on the futures on which it was found.
        confirmed: the same on fresh futures, with a 95% interval.
        actions: extra valid task actions that the agent takes when i is repaired too, beside R.
    """

    world: str
    kind: str
    property: str
    seed: int
    moment: int
    smaller: tuple[str, ...]
    larger: tuple[str, ...]
    item: str
    found: float
    confirmed: Interval
    actions: float

    @property
    def holds_up(self) -> bool:
        """Say whether the interval on fresh futures lies below 0."""
        return self.confirmed.high < 0


@dataclass(frozen=True)
class AssumptionTest:
    """What the lattices of one world and type say.

    Attributes:
        world, kind, setting, past, lattices: what was enumerated; pasts with 2 to `MOST_WRONG` wrong fields.
        skipped: pasts with fewer or more.
        comparisons, negative, significant: by property: how many differences there are, how many are below
            0, how many significantly so at the Bonferroni-adjusted level.
        pasts_failing: by property: pasts with at least one significant violation.
        worst: by property the most significant violation, tried again; None where nothing is below 0.
    """

    world: str
    kind: str
    setting: Setting
    past: Past
    lattices: list[Lattice]
    skipped: int
    comparisons: dict[str, int]
    negative: dict[str, int]
    significant: dict[str, int]
    pasts_failing: dict[str, int]
    worst: dict[str, Violation | None]

    def share_failing(self, name: str) -> Interval:
        """Return the share of pasts with a significant violation, with Wilson's interval."""
        if not self.lattices:
            return Interval(np.nan, np.nan, np.nan, 0)
        return wilson(self.pasts_failing[name], len(self.lattices))


PROPERTIES = ("monotone", "submodular")


def run_assumption(
    setting: Setting, kind: str, seeds: Ints, futures: int = 96, pasts: int = 24, fresh: int = 4_000
) -> AssumptionTest:
    """Enumerate and test.

    Args:
        setting: a small world.
        kind: the belief type T.
        seeds: [past], taken in order.
        futures: futures a subset.
        pasts: how many pasts are enumerated at most.
        fresh: futures of each confirmation.
    """
    past = look(setting, seeds)
    wrong = past.wrong & setting.of_type(kind)
    size = wrong.sum(axis=1)
    fitting = np.flatnonzero((size >= 2) & (size <= MOST_WRONG))
    lattices = enumerate_lattices(setting, past, kind, fitting[:pasts], futures)
    differences = {name: [_differences(lattice, name) for lattice in lattices] for name in PROPERTIES}
    comparisons = {name: sum(d[1].shape[1] for d in parts) for name, parts in differences.items()}
    negative, significant, failing = {}, {}, {}
    worst: dict[str, Violation | None] = {}
    for name, parts in differences.items():
        scores = [_z_scores(values) for _, values in parts]
        cut = -_quantile(1 - 0.025 / max(1, comparisons[name]))
        negative[name] = int(sum((values.mean(axis=0) < -TOLERANCE).sum() for _, values in parts))
        significant[name] = int(sum((z < cut).sum() for z in scores))
        failing[name] = sum(bool((z < cut).any()) for z in scores)
        worst[name] = None
        lowest = [z.min() if z.size else 0.0 for z in scores]
        if lowest and min(lowest) < 0:
            at = int(np.argmin(lowest))
            where = int(np.argmin(scores[at]))
            found = float(parts[at][1][:, where].mean())
            place = tuple(int(column[where]) for column in parts[at][0])
            worst[name] = _confirm(setting, past, kind, lattices[at], name, place, found, fresh)
    return AssumptionTest(
        setting.world.name, kind, setting, past, lattices, len(past.seeds) - len(fitting), comparisons,
        negative, significant, failing, worst,
    )  # fmt: skip


def enumerate_lattices(
    setting: Setting, past: Past, kind: str, rows: Ints, futures: int, first: int = 0
) -> list[Lattice]:
    """Play every subset of the wrong fields of a type, on the given rows of a past."""
    own = setting.of_type(kind)
    wrong = [np.flatnonzero(past.wrong[row] & own) for row in rows]
    sizes = [1 << len(fields) for fields in wrong]
    repaired = np.zeros((sum(sizes), setting.world.fields), dtype=bool)
    start = 0
    for fields, size in zip(wrong, sizes, strict=True):
        repaired[start : start + size, fields] = (np.arange(size)[:, None] >> np.arange(len(fields))) & 1 == 1
        start += size
    if not sizes:
        return []
    accuracy = accuracies(setting, past, np.repeat(rows, sizes), repaired, futures, first)[0][kind]
    parts = np.split(accuracy, np.cumsum(sizes)[:-1])
    return [Lattice(int(row), fields, part.T) for row, fields, part in zip(rows, wrong, parts, strict=True)]


def _differences(lattice: Lattice, name: str) -> tuple[tuple[Ints, ...], Floats]:
    """Where the differences of a property stand, and their values [future, difference]."""
    if name == "monotone":
        sets, item, values = first_differences(lattice.accuracy)
        return (sets, sets, item), values
    sets, other, item, values = second_differences(lattice.accuracy)
    return (sets, sets | 1 << other, item), values


def _z_scores(values: Floats) -> Floats:
    """Mean over its standard error by column; 0 where nothing varies."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    varies = error > TOLERANCE
    return np.divide(values.mean(axis=0), error, out=np.zeros(values.shape[1]), where=varies)


def _quantile(probability: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def _confirm(
    setting: Setting, past: Past, kind: str, lattice: Lattice, name: str, place: tuple[int, ...],
    found: float, fresh: int,
) -> Violation:  # fmt: skip
    """Play the four sets of one difference again, on futures that nothing was chosen on."""
    smaller, larger, item = place
    corners = [smaller, smaller | 1 << item, larger, larger | 1 << item]
    repaired = np.zeros((4, setting.world.fields), dtype=bool)
    for corner, mask in enumerate(corners):
        repaired[corner, lattice.wrong[members(mask, len(lattice.wrong))]] = True
    rows = np.full(4, lattice.row)
    by_type, actions = accuracies(setting, past, rows, repaired, fresh, FRESH)
    a = by_type[kind]
    values = a[1] - a[0] if name == "monotone" else (a[1] - a[0]) - (a[3] - a[2])
    half = NORMAL_95 * values.std(ddof=1) / np.sqrt(fresh)
    mean = float(values.mean())
    names = np.array(setting.world.field_names, dtype=object)[lattice.wrong]
    return Violation(
        setting.world.name, kind, name, int(past.seeds[lattice.row]), setting.moment,
        tuple(names[members(smaller, len(names))]), tuple(names[members(larger, len(names))]),
        str(names[item]), found, Interval(mean, mean - half, mean + half, fresh),
        float((actions[3] - actions[2]).mean()),
    )  # fmt: skip


def load_assumption(
    worlds: Names, regime: str, protocol: str, profile: str, seeds: str, share: float = 0.5,
    **settings: int,
) -> list[AssumptionTest]:  # fmt: skip
    """Test the assumption for every type of every world; `settings` as in `run_assumption`."""
    chosen = seeds_in(seeds, regime, protocol)
    built = [Setting.of(world, regime, protocol, profile, share) for world in names(worlds)]
    return [run_assumption(s, kind, chosen, **settings) for s in built for kind in s.types]
