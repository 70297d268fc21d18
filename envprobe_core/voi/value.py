"""The value of an answer, the price of the step it costs, and the decision (ours).

The weight lambda sets what is measured: U = lambda A_H + (1 - lambda) success.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from envprobe_core.voi.belief import ChangePointBelief
from envprobe_core.voi.knowledge import KNOWLEDGE, UNREACHED, Knowledge, Prospect, power
from envprobe_core.worlds.base import UNKNOWN, WAIT, Floats, Ints, Mask, World

if TYPE_CHECKING:
    from envprobe_core.views import View

PACE = 0.6  # the share of task actions taken to bring the goal one action nearer
MUCH = 1e9  # steps watched, as if: a hazard that is given is never corrected


@lru_cache(maxsize=8)
def finish_chances(horizon: int) -> Floats:
    """Return the chance to do m actions in l steps, [l, m], where a step does one with chance PACE."""
    chance = np.zeros((horizon + 1, UNREACHED + 1))
    chance[:, 0] = 1.0
    for left in range(1, horizon + 1):
        chance[left, 1:] = PACE * chance[left - 1, :-1] + (1.0 - PACE) * chance[left - 1, 1:]
    chance.setflags(write=False)
    return chance


class Prober:
    """VoI on a run of rows: watches what the policy may see, and decides step by step.

    Answers `(probe, field, value)` to a view, as `policies.Decision` takes them.
    """

    def __init__(
        self,
        world: World,
        static: Any,
        rows: slice,
        weight: float,
        *,
        given: bool = False,
        paced: bool = True,
    ) -> None:
        """Start a block.

        Args:
            world: the world, for its public rules; its gold is never asked for.
            static: the static task graph of the whole block, used where the protocol makes it known.
            rows: the policy's rows in the block.
            weight: lambda, 0 (task success) to 1 (accuracy).
            given: whether it is told the true rates, a privilege that no deployable policy has.
            paced: whether it keeps its probes for the end, where they gain most.
        """
        self.world, self.weight, self.paced = world, weight, paced
        self.knowledge: Knowledge = KNOWLEDGE[world.name](world, static, rows)
        self.belief = ChangePointBelief(world, self.knowledge, self.knowledge.rows)
        if given:
            self.belief.steps[:] = MUCH
            self.belief.changes[:] = world.rates.max() * MUCH
        self.position = np.arange(rows.start, rows.stop)
        self.done = np.zeros(len(self.position), dtype=bool)
        self.started = False
        self.finish = finish_chances(world.regime.horizon)

    def __call__(self, view: View) -> tuple[Mask, Ints, Floats | None]:
        """Decide for the rows of a view; an answer that reaches nobody is worth nothing."""
        if view.protocol.answer == "withheld":
            rows = len(view.budget)
            return np.zeros(rows, dtype=bool), np.zeros(rows, dtype=np.int64), None
        self._keep(view)
        self._watch(view)
        return self._choose(view)

    def _keep(self, view: View) -> None:
        """Forget rows that are not asked about any more."""
        asked = view.sight.position
        if len(asked) == len(self.position):
            return
        rows = np.searchsorted(self.position, asked)
        self.position, self.done = asked, self.done[rows]
        self.knowledge.take(rows)
        self.belief.take(rows)

    def _watch(self, view: View) -> None:
        """Take in the own answer, the world's step and the new observation; at first the table itself."""
        belief, sight, observation = self.belief, view.sight, view.sight.observation
        known, value = observation.seen, observation.value
        untouched = np.zeros(known.shape, dtype=bool)
        touched = untouched.copy()
        if self.started:
            told = np.arange(view.value.shape[1]) == sight.told[:, None]
            if told.any():
                belief.learn(told, sight.answer[:, None], untouched)
            belief.step(observation.fresh)
            rows, fields = self.knowledge.concluded(observation)
            known, value = known.copy(), value.copy()
            known[rows, fields], value[rows, fields] = True, 1
            rows, fields = self.knowledge.touched(observation)
            touched[rows, fields] = True
        else:
            belief.learn(view.value != UNKNOWN, view.value, untouched)
            self.started = True
        belief.learn(known, value, touched)
        belief.miss(self.knowledge.missed(belief.value, observation))
        self.knowledge.derive(belief.value, belief.chance)
        self.done |= belief.value[:, self.knowledge.goal] == self.knowledge.done_value

    def _choose(self, view: View) -> tuple[Mask, Ints, Floats]:
        """Weigh the two reasons to probe: what will be right at the end, and what the plan needs now."""
        weight, fields, rows = self.weight, self.world.fields, np.arange(len(view.budget))
        belief, left = self.belief, view.horizon - view.step
        hazard = belief.hazard()
        prospect = self.knowledge.prospect(belief.value, belief.chance, hazard, view.sight.observation.place)
        step = np.where(self.done, 0.0, self._step_value(prospect, left))
        cost = np.where(view.action == WAIT, 0.0, step)

        gain = (1.0 - belief.right(view.value)) * power(1.0 - hazard, left)
        gain = self.knowledge.spread(gain)
        late_field = np.argmax(gain, axis=1)
        late = weight * gain[rows, late_field] / fields - (1.0 - weight) * cost
        if self.paced:  # earlier, waiting gains more
            late = np.where(left <= view.budget - view.used, late, -1.0)

        held_back = weight / fields  # what a probe kept for the end can repair: one field
        need = (1.0 - weight) * (step * (prospect.saved - 1.0)) - held_back
        need = np.where(view.action == WAIT, -1.0, need)
        stuck = self._waits_in_error(view)
        lost = self.finish[left - 1, np.minimum(prospect.to_go, UNREACHED)]
        restore = np.where(stuck, (1.0 - weight) * lost - held_back, -1.0)

        value = np.maximum(np.maximum(late, need), restore)
        field = np.where(need > 0.0, prospect.field, late_field)
        field = np.where(restore > 0.0, self.knowledge.goal, field)
        probe = (late >= 0.0) | (need > 0.0) | (restore > 0.0)
        probe &= view.used < view.budget
        return probe, field, value

    def _step_value(self, prospect: Prospect, left: int) -> Floats:
        """Return what one step is worth in task success, [row]."""
        to_go = np.minimum(prospect.to_go, UNREACHED)
        later = self.finish[left - 1, to_go]
        lost = (self.finish[left, to_go] - later) + prospect.fading * later
        return prospect.sure * lost + (1.0 - prospect.sure) * prospect.luck

    def _waits_in_error(self, view: View) -> Mask:
        """Say where the agent waits because it believes the task done, and no evidence says so."""
        goal = self.knowledge.goal
        believed = view.value[:, goal] == self.knowledge.done_value
        return (view.action == WAIT) & believed & ~self.done & (self.belief.since[:, goal] > 0)
