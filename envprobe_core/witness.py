"""Recordings with the score terms in them: what the policy saw at every decision of real episodes.

A trajectory holds beliefs, truth and decisions; the terms c and d live only inside the rollout, and under
`released` they come from the agent. A witness stands between the rollout and the policy's rule and keeps
each view, so that nothing is computed a second time in another way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import Cell
from envprobe_core.plans import state_from_gold
from envprobe_core.policies import TERMS, Policy, Rule
from envprobe_core.sweep import Piece, Task, simulate
from envprobe_core.trajectory import Trajectory
from envprobe_core.views import Decision, View
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import NO_ACTION, Floats, Mask, Values, World

Seeds = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Witness:
    """A rule that keeps the terms of every view before it decides as the policy's own rule does."""

    rule: Rule
    seen: list[Floats]

    def __call__(self, view: View) -> Decision:
        """Keep c, s, u, d as [row, field, term] and decide."""
        self.seen.append(np.stack([getattr(view, term) for term in TERMS], axis=2))
        return self.rule(view)


def _watched(policy: Policy, seen: list[Floats]) -> Policy:
    """Return the policy with a witness before its rule, also where that is opened for a block."""
    begin = policy.begin
    if begin is None:
        return replace(policy, rule=_Witness(policy.rule, seen))
    return replace(policy, begin=lambda *block: _Witness(begin(*block), seen))


@dataclass(frozen=True)
class Witnessed:
    """Episodes of one cell with their score terms.

    Attributes:
        cell: the cell.
        seeds: [row].
        world: its world.
        instance: the instances of all rows.
        trajectory: the recording.
        terms: [row, step, field, term] in the order c, s, u, d; NaN after an episode's end.
    """

    cell: Cell
    seeds: Seeds
    world: World
    instance: Any
    trajectory: Trajectory
    terms: Floats

    def term(self, name: str) -> Floats:
        """Return one term, [row, step, field]."""
        return self.terms[..., TERMS.index(name)]

    @property
    def kept_terms(self) -> tuple[str, ...]:
        """Return the terms that the cell's policy adds up; none where it has no threshold."""
        return self.cell.policy.terms or ()

    def after_action(self) -> Values:
        """Return gold after the executed action and before mutation, [row, step, field].

        Each state is rebuilt from gold and the recorded action carried out again.
        """
        recording, world = self.trajectory, self.world
        after = recording.gold[:, 1:].copy()
        for t in range(after.shape[1]):
            state = state_from_gold(world, recording.gold[:, t], recording.place[:, t])
            action = np.where(recording.acted[:, t], recording.action[:, t], NO_ACTION).astype(np.int64)
            after[:, t] = world.gold(self.instance, world.act(self.instance, state, action)[0])
        return after

    def exogenous(self) -> Mask:
        """Say which fields mutation changed between t and t + 1, [row, step, field]."""
        return (self.after_action() != self.trajectory.gold[:, 1:]) & self.running[:, :, None]

    @property
    def running(self) -> Mask:
        """Say which decision steps were executed, [row, step]."""
        return np.arange(self.terms.shape[1])[None, :] < self.trajectory.steps[:, None]


def witness(cell: Cell, seeds: Seeds) -> Witnessed:
    """Run one cell and keep what its policy saw; decisions are those of any other run of the cell.

    Args:
        cell: the cell.
        seeds: [row].
    """
    seen: list[Floats] = []
    watched = replace(cell, policy=_watched(cell.policy, seen))
    recording = simulate(Task((Piece(0, watched, seeds),)), reports=True)
    world = make_world(cell.world, cell.regime, cell.protocol)
    terms = np.full((len(seeds), cell.regime.horizon, world.fields, len(TERMS)), np.nan)
    for t, kept in enumerate(seen):
        terms[:, t] = kept
    over = np.arange(terms.shape[1])[None, :] >= recording.steps[:, None]
    terms[over] = np.nan
    return Witnessed(cell, seeds, world, world.instances(seeds), recording, terms)


def witness_all(cells: Sequence[Cell], seeds: Seeds | None = None) -> list[Witnessed]:
    """Witness several cells, each on the seeds given or on its own."""
    return [witness(cell, cell.default_seeds() if seeds is None else seeds) for cell in cells]
