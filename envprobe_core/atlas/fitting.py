"""Which agents of the sample come close to the paper's own figures.

The measure is that of the calibration (`calibration.TARGETS`, counted in the same way), under `released`
alone, and so are the numbers: the accuracies the paper prints for No-Probe and Periodic and its canonical
confident-wrong rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envprobe_core.atlas.running import Atlas
from envprobe_core.calibration import PROTOCOL, TARGET_POLICIES, TARGETS, Target, loss, target_values
from envprobe_core.policies import OF_THE_PAPER
from envprobe_core.worlds import WORLDS

Floats = npt.NDArray[np.float64]
TOLERANCE = 0.05  # a target is met within five points, stated before the atlas was run
NEAREST_SHARE = 1 / 16  # of the sample, where too few fit
FEWEST = 8


@dataclass(frozen=True)
class Subset:
    """The agents that fit, or, if they are too few to speak of, the nearest ones.

    Attributes:
        members: positions in the sample, nearest first.
        fits: how many agents meet every target.
        meets: [target], how many agents meet each target.
        values: [profile, target], what each agent gives.
        distance: [profile], the calibration's objective.
    """

    members: npt.NDArray[np.int64]
    fits: int
    meets: npt.NDArray[np.int64]
    values: Floats
    distance: Floats

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
    protocol = atlas.protocols.index(PROTOCOL.name)
    worlds, policies = list(WORLDS), list(OF_THE_PAPER)

    def of(measure: str, world: str, policy: str) -> Floats:
        return atlas.levels[measure][protocol, worlds.index(world), policies.index(policy)]

    def value(target: Target) -> Floats:
        if target.policy is not None:
            return np.mean([of("accuracy", world, target.policy) for world in target.worlds], axis=0)
        pooled: Callable[[str], Floats] = lambda name: np.sum(  # noqa: E731
            [of(name, world, policy) for world in target.worlds for policy in TARGET_POLICIES], axis=0
        )
        return pooled("confident_wrong") / np.maximum(pooled("confident"), 1)

    return np.stack([value(target) for target in TARGETS], axis=1)


def fitted_subset(atlas: Atlas) -> Subset | None:
    """Find the agents that fit; None where the protocol of the targets was not run."""
    if PROTOCOL.name not in atlas.protocols:
        return None
    values = target_measures(atlas)
    met = np.abs(values - target_values()) <= TOLERANCE
    distance = loss(values, target_values())
    order = np.argsort(distance, kind="stable")
    fits = int(met.all(axis=1).sum())
    kept = order[met.all(axis=1)[order]]
    if fits < FEWEST:
        kept = order[: max(2, round(len(order) * NEAREST_SHARE))]
    return Subset(kept, fits, met.sum(axis=0), values, distance)
