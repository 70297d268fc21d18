"""What the policies of a block decide at one step: each sees its own rows, and only an oracle sees gold."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from envprobe_core import noise
from envprobe_core.agents.base import Consultation, Reply
from envprobe_core.belief import BeliefTable
from envprobe_core.blocks import Block
from envprobe_core.noise import Stream
from envprobe_core.policies import Policy
from envprobe_core.views import Decision, Sight, View
from envprobe_core.worlds.base import Floats, Ints, Mask, Observation, Values

HIDDEN_FROM_ALL_BUT_ORACLES = frozenset({"gold", "weights"})
NOT_SCHEDULED = -1


class Deciders:
    """The policies of a block, opened for it: those with a memory keep it here."""

    def __init__(self, block: Block, static: Any, weights: Floats) -> None:
        """Open the policies.

        Args:
            block: what is run.
            static: the static task graph of every row.
            weights: [row, field], the weights w.
        """
        self._block, self._static, self._weights = block, static, weights
        self._criticality = weights / weights.max(axis=1, keepdims=True)
        self._chance = noise.keys(block.seeds, block.world.code, Stream.PROBE)
        self._rules = [
            policy.rule if policy.begin is None else policy.begin(block.world, static, arm.rows)
            for arm in block.arms
            for policy in (arm.policy,)
        ]

    def decide(
        self,
        t: int,
        asked: Mask,
        table: BeliefTable,
        reply: Reply,
        sight: Sight,
        used: Ints,
        gold: Values,
        place: Ints,
    ) -> Generator[Consultation, Decision, tuple[Mask, Ints, Floats]]:
        """Ask every policy, or the agent on its behalf, for its decision on the rows that are `asked`.

        Args:
            t: the step.
            asked: [row]; the others do not probe.
            table: the agent's beliefs.
            reply: the agent's proposal and reports.
            sight: what policies with a memory may follow.
            used: [row], probes fired so far.
            gold: [row, field]; passed on to oracles only.
            place: [row], where the agent is.

        Returns:
            [row] whether it probes, [row] which field, [row] the highest score (NaN where there is none).
        """
        rows = len(used)
        probes, target = np.zeros(rows, dtype=bool), np.zeros(rows, dtype=np.int64)
        rho = np.full(rows, np.nan)
        if not asked.any():
            return probes, target, rho
        whole = self._view(t, asked, table, reply, sight, used, gold, place)
        for arm, rule in zip(self._block.arms, self._rules, strict=True):
            among = asked[arm.rows]
            if not among.any():
                continue
            part = arm.rows if among.all() else arm.rows.start + np.flatnonzero(among)
            view = view_of(whole, arm.policy, part)
            consults = arm.policy.name in self._block.consults
            decision = (yield Consultation(view, part)) if consults else rule(view)
            probes[part] = decision.probe & (view.used < view.budget)
            target[part] = decision.field
            if decision.score is not None:
                rho[part] = decision.score
        return probes, target, rho

    def _view(
        self,
        t: int,
        asked: Mask,
        table: BeliefTable,
        reply: Reply,
        sight: Sight,
        used: Ints,
        gold: Values,
        place: Ints,
    ) -> View:
        """Return everything that there is to see of the rows asked; no policy gets it whole."""
        block, protocol = self._block, self._block.world.protocol
        shown = table.reported() if protocol.structure == "reported" else table
        c, d, schedule = reply.criticality, reply.dependency, block.schedule
        return View(
            step=t,
            horizon=block.world.regime.horizon,
            value=shown.value,
            staleness=shown.staleness,
            confidence=shown.confidence,
            c=self._criticality if c is None else c,
            d=self._roles(asked, place, reply.action) if d is None else d,
            action=reply.action,
            risk=reply.risk,
            budget=block.budget,
            used=used,
            threshold=block.threshold,
            draws=noise.word(self._chance, t, 0),
            schedule=np.full(len(used), NOT_SCHEDULED) if schedule is None else schedule[:, t],
            protocol=protocol,
            gold=gold,
            weights=self._weights,
            sight=sight,
        )

    def _roles(self, asked: Mask, place: Ints, action: Ints) -> Floats:
        """Return the dependency roles of the rows asked, 0 in all others, [row, field]."""
        if asked.all():
            return self._block.world.roles(self._static, place, action)
        rows = np.flatnonzero(asked)
        roles = np.zeros(self._weights.shape)
        roles[rows] = self._block.world.roles(self._static, place[rows], action[rows], rows)
        return roles


def view_of(whole: View, policy: Policy, rows: slice | Ints) -> View:
    """Return what a policy may see: its rows; gold for an oracle only, the sight for a memory only."""
    hidden = set() if policy.sees_gold else set(HIDDEN_FROM_ALL_BUT_ORACLES)
    if policy.begin is None:
        hidden.add("sight")
    return View(**{name: None if name in hidden else taken(seen, rows) for name, seen in vars(whole).items()})


def taken(value: Any, rows: slice | Ints) -> Any:
    """Return some rows of an array, or of each array of a record; all else belongs to every row."""
    if isinstance(value, np.ndarray):
        return value[rows]
    if isinstance(value, Sight | Observation):
        return type(value)(**{name: taken(part, rows) for name, part in vars(value).items()})
    return value
