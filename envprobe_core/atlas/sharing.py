"""How many agents share a verdict, what one of them sees, and which come close to the paper's own figures.

Closeness is that of the calibration (`calibration.TARGETS`, counted in the same way), under `released` alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from envprobe_core.agents.profiles import TYPICAL
from envprobe_core.analyses.calibration import PROTOCOL, TARGET_POLICIES, TARGETS, loss, pool, target_values
from envprobe_core.atlas.deciding import DECIDES, Sensitivity
from envprobe_core.atlas.design import BOX, NAMES, values_of
from envprobe_core.atlas.questions import OURS, REGIME
from envprobe_core.atlas.running import Atlas
from envprobe_core.atlas.testing import NO, OPEN, UNTESTED, YES
from envprobe_core.cells import Cell, Names, names
from envprobe_core.grid import run_frame
from envprobe_core.policies import OF_THE_PAPER, find_policy
from envprobe_core.protocols import parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.show.markup import EMPTY, number, percent
from envprobe_core.worlds.base import Floats

OUTCOMES = (YES, OPEN, NO)
TESTED = 0.5  # a claim that fewer agents can be tested on is not spoken of
TOLERANCE = 0.05  # a target is met within five points, stated before the atlas was run
NEAREST_SHARE = 1 / 16  # of the sample, where too few fit
FEWEST = 8


def run_agent(atlas: Atlas, agent: int, worlds: Names, policies: Names) -> pd.DataFrame:
    """Run one agent of the atlas again, on the atlas' own seeds; the rows of `grid.run`."""
    cells = [
        Cell(world, find_policy(policy), REGIMES[REGIME], parse_protocol(protocol), atlas.profiles[agent])
        for protocol in atlas.protocols
        for world in names(worlds)
        for policy in names(policies)
    ]
    return run_frame(cells, [cell.default_seeds()[: atlas.seeds_each] for cell in cells])


def shares(atlas: Atlas, members: npt.NDArray[np.int64] | None = None) -> pd.DataFrame:
    """Share out the verdicts on every claim among all agents, or those at some positions.

    Returns:
        A row a claim and protocol: `section claim statement level protocol holds inconclusive reverses` in
        percent of the agents under which the claim could be tested; NaN where it could not under most of
        them, as when hardly any accuracy ever collapses. Questions of ours have the section `ours`; `level`
        says whether a claim is that a number comes out as printed, rather than a comparison.
    """
    verdict = atlas.verdict if members is None else atlas.verdict[:, members]
    tested = (verdict != UNTESTED).sum(axis=1)
    counts = np.stack([(verdict == outcome).sum(axis=1) for outcome in OUTCOMES], axis=2)
    enough = tested > TESTED * verdict.shape[1]
    parts = np.where(enough[..., None], 100 * counts / np.maximum(tested, 1)[..., None], np.nan)
    rows = []
    for at, claim in enumerate(atlas.claims):
        section = "ours" if claim.source == OURS else claim.section
        about = (section, claim.id, claim.statement, claim.directions == ("equal",))
        rows += [(*about, protocol, *parts[row, at]) for row, protocol in enumerate(atlas.protocols)]
    columns = ["section", "claim", "statement", "level", "protocol", "holds", "inconclusive", "reverses"]
    return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True)
class Subset:
    """The agents that fit, or, if they are too few to speak of, the nearest ones."""

    members: npt.NDArray[np.int64]  # positions in the sample, nearest first
    fits: int  # how many agents meet every target
    meets: npt.NDArray[np.int64]  # [target], how many agents meet each target
    values: Floats  # [profile, target], what each agent gives
    distance: Floats  # [profile], the calibration's objective

    @property
    def nearest(self) -> bool:
        """Say whether the members are merely the nearest."""
        return self.fits < FEWEST

    @property
    def title(self) -> str:
        """Return what to call the members."""
        return f"nearest {len(self.members)}" if self.nearest else f"the {len(self.members)} that fit"


def target_measures(atlas: Atlas) -> Floats:
    """Return what each agent gives for each calibration target, [profile, target]."""
    protocol, policies = atlas.protocols.index(PROTOCOL.name), list(OF_THE_PAPER)
    rows = list(map(policies.index, TARGET_POLICIES))
    levels = (atlas.levels[name][protocol][:, rows] for name in ("accuracy", "confident", "confident_wrong"))
    return pool(*levels)


def fitted_subset(atlas: Atlas) -> Subset | None:
    """Find the agents that fit; None where the protocol of the targets was not run."""
    if PROTOCOL.name not in atlas.protocols:
        return None
    values = target_measures(atlas)
    met = np.abs(values - target_values()) <= TOLERANCE
    distance, fitting = loss(values, target_values()), met.all(axis=1)
    order = np.argsort(distance, kind="stable")
    kept = order[fitting[order]]
    if len(kept) < FEWEST:
        kept = order[: max(2, round(len(order) * NEAREST_SHARE))]
    return Subset(kept, int(fitting.sum()), met.sum(axis=0), values, distance)


def describe_box() -> pd.DataFrame:
    """List the behaviours: `name range typical why`."""
    rows = []
    for axis, typical in zip(BOX, values_of(TYPICAL).tolist(), strict=True):
        habit, whole = axis.kind == "habit", axis.kind != "share"
        extent = f"{percent(axis.share)} of agents" if habit else f"{axis.low:g} to {axis.high:g}"
        place = ("yes" if typical else "no") if habit else number(typical, 0 if whole else 2)
        rows.append((axis.name, extent, place, axis.why))
    return pd.DataFrame(rows, columns=["name", "range", "typical", "why"])


def list_nearest(atlas: Atlas, subset: Subset, count: int = 5) -> pd.DataFrame:
    """List the agents nearest to the calibration targets, as text: `agent`, the targets, `objective`.

    The first row is the paper, the last one how many agents come within the tolerance.
    """
    symbols = [target.symbol for target in TARGETS]
    rows = [["**the paper**", *(number(target.value, 3) for target in TARGETS), EMPTY]]
    for at in np.argsort(subset.distance, kind="stable")[:count]:
        values = [number(value, 3) for value in subset.values[at]]
        rows.append([f"`{atlas.profiles[at].name}`", *values, number(subset.distance[at], 1)])
    met = [f"{own} of {len(atlas.profiles)}" for own in subset.meets.tolist()]
    rows.append([f"within {number(TOLERANCE)}", *met, f"all: {subset.fits}"])
    return pd.DataFrame(rows, columns=["agent", *symbols, "objective"])


def list_deciders(atlas: Atlas, found: Sensitivity, claims: Iterable[str]) -> pd.DataFrame:
    """List which behaviour decides each of some claims.

    Returns:
        A row a claim and protocol: `statement protocol behaviour explains low high sure rank`, shares of
        variance in percent; `behaviour` says so where none decides alone, or nothing varies.
    """
    known = {claim.id: (at, claim.statement) for at, claim in enumerate(atlas.claims)}
    rows = []
    for at, told in map(known.__getitem__, claims):
        for row, protocol in enumerate(atlas.protocols):
            axis = found.first[row, at]
            if axis < 0:
                rows.append((told, protocol, "never varies, or not testable", *[np.nan] * 5))
                continue
            part, low, high = (100 * own[row, at, axis] for own in (found.share, found.low, found.high))
            decides = f"`{NAMES[axis]}`" if part >= 100 * DECIDES else f"none alone (`{NAMES[axis]}`)"
            rows.append(
                (told, protocol, decides, part, low, high, found.sure[row, at], found.rank[row, at, axis])
            )
    return pd.DataFrame(
        rows, columns=["statement", "protocol", "behaviour", "explains", "low", "high", "sure", "rank"]
    )
