"""What passes between the rollout and an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from envprobe_core.belief import BeliefTable
from envprobe_core.views import View
from envprobe_core.worlds.base import Floats, Ints, Mask, Observation, Values, World

RISK_LOW, RISK_MEDIUM = 0, 1


@dataclass(frozen=True)
class Request:
    """What the rollout wants to know from its agent at one decision step.

    Attributes:
        step: t, 0..H.
        table: the current belief table, which the agent writes to.
        observation: what the agent sees.
        told: [row], the field a delivered probe answer has just repaired, or -1.
        due: [row], whose answer matters: their episodes have not ended; None where all do.
    """

    step: int
    table: BeliefTable
    observation: Observation
    told: Ints
    due: Mask | None = None


@dataclass(frozen=True)
class Reply:
    """The agent's answer.

    Attributes:
        action: [row], proposed task action, or WAIT.
        criticality: [row, field] in {0, .5, 1}, the agent's own c; None where the graph gives it.
        dependency: [row, field] in [0, 1], the agent's own d; None likewise.
        risk: [row], self-reported risk, RISK_LOW or RISK_MEDIUM.
    """

    action: Ints
    criticality: Floats | None
    dependency: Floats | None
    risk: npt.NDArray[np.int8]


@dataclass(frozen=True)
class Consultation:
    """A decision that the rollout asks its agent for, where a second model stands in for a policy's rule.

    Attributes:
        view: what the policy may look at; the answer is a `policies.Decision` for its rows.
        rows: which of the block's rows these are.
    """

    view: View
    rows: slice | Ints


class Agent(Protocol):
    """Anything that answers requests for a block of rows."""

    def answer(self, request: Request) -> Reply:
        """Update the belief table from the observation and propose the next action."""


Implied = tuple[Ints, Ints, Values]  # rows, fields and values, each [conclusion]


def join(*conclusions: Implied) -> Implied:
    """Put several lists of conclusions together; they must not share a row's field."""
    rows, fields, values = zip(*conclusions, strict=True)
    return np.concatenate(rows), np.concatenate(fields), np.concatenate(values)


class Mind(Protocol):
    """What a simulated agent knows of one world: how to read its own actions and how to plan."""

    world: World

    def implied(self, observation: Observation) -> Implied:
        """Return what the last own action implies."""

    def plan(self, table: BeliefTable, observation: Observation) -> Ints:
        """Return the next action, from beliefs alone, [row]."""

    def remember(self, step: int, observation: Observation) -> None:
        """Note where it has been and which calls failed."""
