"""Recordings with the score terms in them: what the policy saw at every decision.

The terms c and d stand only in what a policy sees, and under `released` they come from the agent. So the
recorded episodes are played again, step by step, with the probes that were made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from envprobe_core.cells import Cell, Seeds
from envprobe_core.engine.running import Episodes, Trajectory, record
from envprobe_core.instances import after_actions, exogenous, instances, states_of, succeeded
from envprobe_core.policies import TERMS
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import Floats, Mask, Values, World


@dataclass(frozen=True)
class Witnessed:
    """Episodes of one cell with their score terms."""

    cell: Cell
    seeds: Seeds  # [row]
    world: World
    instance: Any  # [row], task graphs and first states
    trajectory: Trajectory
    terms: Floats  # [row, step, field, term], c, s, u, d in order; NaN after an episode's end

    def term(self, name: str) -> Floats:
        """Return one term, [row, step, field]."""
        return self.terms[..., TERMS.index(name)]

    @property
    def kept_terms(self) -> tuple[str, ...]:
        """Return the terms that the cell's policy adds up; none where it has no threshold."""
        return self.cell.policy.terms or ()

    def after_action(self) -> Values:
        """Return gold after the executed action and before mutation, [row, step, field]."""
        return after_actions(self.world, self.instance, self.trajectory)

    def exogenous(self) -> Mask:
        """Say which fields mutation changed between t and t + 1, [row, step, field]."""
        return exogenous(self.world, self.instance, self.trajectory)

    def rho(self) -> Floats:
        """Return the policy's own score, [row, step, field]: its kept terms in the order ((c + s) + u) + d.

        A policy without a threshold keeps no terms; for it all four are added up.
        """
        kept = [self.term(name) for name in TERMS if name in (self.kept_terms or TERMS)]
        return reduce(np.add, kept)

    def goal_reached(self) -> Mask:
        """Say at which times the goal had been reached, [row, time]; it is not lost again."""
        recording = self.trajectory
        states = states_of(self.world, recording.gold, recording.place)
        reached = succeeded(self.world, self.instance, states)
        lived = np.arange(reached.shape[1])[None, :] <= recording.steps[:, None]
        return np.logical_or.accumulate(reached & lived, axis=1)


def witness(cell: Cell, seeds: Seeds) -> Witnessed:
    """Run a cell on seeds [row] and keep what its policy saw; decisions are those of any other run of it."""
    world, recording = make_world(cell.world, cell.regime, cell.protocol), record(cell, seeds)
    episodes = Episodes(cell, seeds)
    terms = np.full((len(seeds), cell.regime.horizon, world.fields, len(TERMS)), np.nan)
    for t in range(int(recording.steps.max(initial=0))):
        episodes.propose()
        episodes.settle()
        sight = episodes.look()
        for place, term in enumerate(TERMS):
            terms[:, t, :, place] = sight[term][:, : world.fields]
        episodes.advance(recording.probe[:, t].astype(np.int64))
    over = np.arange(terms.shape[1])[None, :] >= recording.steps[:, None]
    terms[over] = np.nan
    return Witnessed(cell, seeds, world, instances(world, seeds), recording, terms)
