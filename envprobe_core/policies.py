"""Probe policies: each is a score over fields and a gate (Sections 3 and 4.2).

A policy sees the belief table, the score terms and the proposal; only the two oracles are shown gold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from envprobe_core import noise
from envprobe_core.errors import InputError
from envprobe_core.protocols import Protocol
from envprobe_core.views import Decision, View
from envprobe_core.voi import Prober
from envprobe_core.worlds.base import Floats, Mask, World

TERMS = ("c", "s", "u", "d")
THRESHOLD = 1.5  # rho_star, Table "Hyperparameter configuration"
SELF_UNCERTAINTY_ALPHA = 70  # percent
RELEASED_UNCERTAINTY = 50  # percent
JUDGE_CANDIDATES = 3
JUDGE_CONFIDENCE = 70  # percent

Rule = Callable[[View], Decision]
Score = Callable[[View], Floats]
Begin = Callable[[World, Any, slice], Rule]
"""Opens a rule with a memory for one block: the world, its static task graph and the policy's rows."""


@dataclass(frozen=True)
class Policy:
    """A named rule.

    Attributes:
        name: as on the command line.
        title: as in tables and figures.
        rule: from a view to a decision; the budget is enforced by the rollout.
        terms: the score terms it keeps, or None where it has no threshold.
        answered: whether answers reach the belief table where the protocol delivers them.
        sees_gold: whether it is an oracle.
        replays: the policy whose probe times and fields it repeats, or None.
        begin: for a policy with a memory, what opens its rule for a block; `rule` alone never probes.
    """

    name: str
    title: str
    rule: Rule
    terms: tuple[str, ...] | None = None
    answered: bool = True
    sees_gold: bool = False
    replays: str | None = None
    begin: Begin | None = None

    @property
    def has_threshold(self) -> bool:
        """Say whether the gate compares a score with a threshold."""
        return self.terms is not None

    def scaled_threshold(self, base: float, protocol: Protocol) -> float:
        """Return the threshold in force: the base, times kept terms / 4 where the protocol scales it."""
        if self.terms is None or protocol.threshold == "fixed":
            return base
        return base * len(self.terms) / len(TERMS)


def probe_score(view: View, terms: Sequence[str] = TERMS) -> Floats:
    """Return rho = ((c + s) + u) + d over the kept terms, [row, field] (Equation 2)."""
    kept = [getattr(view, term) for term in TERMS if term in terms]
    total = kept[0]
    for term in kept[1:]:
        total = total + term
    return total


@dataclass(frozen=True)
class AdditiveScore:
    """The probe score with only some of its terms."""

    terms: tuple[str, ...] = TERMS

    def __call__(self, view: View) -> Floats:
        """Return rho over the kept terms, [row, field]."""
        return probe_score(view, self.terms)


@dataclass(frozen=True)
class ThresholdRule:
    """Probe the first highest-scored field if its score reaches the threshold (Algorithm 1)."""

    score: Score

    def __call__(self, view: View) -> Decision:
        """Decide for every row."""
        rho = self.score(view)
        field = np.argmax(rho, axis=1)
        best = rho[np.arange(len(rho)), field]
        return Decision(best >= view.threshold, field, best)


def never(view: View) -> Decision:
    """Never probe."""
    rows = len(view.budget)
    return Decision(np.zeros(rows, dtype=bool), np.zeros(rows, dtype=np.int64))


def at_random(view: View) -> Decision:
    """Probe a uniformly drawn field with probability B/H."""
    level = (view.budget.astype(np.uint64) << np.uint64(32)) // np.uint64(view.horizon)
    probe = noise.low(view.draws) < level
    return Decision(probe, noise.high_choice(view.draws, view.value.shape[1]))


def periodic(view: View) -> Decision:
    """Probe at steps K, 2K, ... with K = floor(H/B): fields in turn, or the stalest as in the public code."""
    period = view.horizon // np.maximum(view.budget, 1)
    probe = (view.budget > 0) & (view.step > 0) & (view.step % np.maximum(period, 1) == 0)
    if view.protocol.baselines == "text":
        return Decision(probe, view.used % view.value.shape[1])
    return Decision(probe, np.argmax(view.staleness, axis=1))


def self_uncertainty(view: View) -> Decision:
    """Probe the field of lowest reported confidence, if that is low enough."""
    field = np.argmin(view.confidence, axis=1)
    lowest = view.confidence[np.arange(len(field)), field]
    if view.protocol.baselines == "text":
        return Decision(lowest < SELF_UNCERTAINTY_ALPHA, field)
    return Decision((lowest < RELEASED_UNCERTAINTY) | (view.risk >= 1), field)


def judge(view: View) -> Decision:
    """Let an embedded judge override Simple: veto d = 0, force a doubted direct blocker (ours)."""
    rho = probe_score(view)
    rows = np.arange(len(rho))
    order = np.argsort(-rho, axis=1, kind="stable")[:, :JUDGE_CANDIDATES]
    best = rho[rows, order[:, 0]]
    stands = (best >= view.threshold) & (view.d[rows, order[:, 0]] > 0)
    candidates = rows[:, None], order
    doubted = (view.d[candidates] == 1.0) & (view.confidence[candidates] < JUDGE_CONFIDENCE)
    forced = order[rows, np.argmax(doubted, axis=1)]
    return Decision(stands | doubted.any(axis=1), np.where(stands, order[:, 0], forced), best)


def by_value(view: View) -> Decision:
    """Probe where an answer is expected to gain more than the step is worth (ours)."""
    return never(view)  # without a memory: `Policy.begin` opens the rule that has one


def mismatches(view: View) -> Mask:
    """Say which beliefs differ from gold; for oracles only."""
    return view.value != view.gold


def oracle(view: View) -> Decision:
    """Probe the first mismatched field."""
    wrong = mismatches(view)
    return Decision(wrong.any(axis=1), np.argmax(wrong, axis=1))


def oracle_task_weighted(view: View) -> Decision:
    """Probe the mismatched field of greatest weight w (Section 4.2, Oracle-TW)."""
    wrong = mismatches(view)
    field = np.argmax(np.where(wrong, view.weights, -1.0), axis=1)
    return Decision(wrong.any(axis=1), field)


def replayed(view: View) -> Decision:
    """Probe what the schedule says, when it says so."""
    return Decision(view.schedule >= 0, np.maximum(view.schedule, 0))


@dataclass(frozen=True)
class ValueOfInformation:
    """Opens VoI (ours) for a block; the attributes are those of `voi.Prober`."""

    weight: float
    given: bool = False
    paced: bool = True

    def __call__(self, world: World, static: Any, rows: slice) -> Rule:
        """Return the rule, which remembers what it saw of these rows."""
        prober = Prober(world, static, rows, self.weight, given=self.given, paced=self.paced)
        return lambda view: Decision(*prober(view))


def value_policy(name: str, title: str, weight: float, *, given: bool = False, paced: bool = True) -> Policy:
    """Make VoI with a weight between task success (0) and accuracy (1)."""
    return Policy(name, title, by_value, begin=ValueOfInformation(weight, given, paced))


def _additive(name: str, title: str, terms: tuple[str, ...], answered: bool = True) -> Policy:
    return Policy(name, title, ThresholdRule(AdditiveScore(terms)), terms, answered)


POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy("no-probe", "No-Probe", never),
        Policy("random", "Random", at_random),
        Policy("periodic", "Periodic", periodic),
        Policy("self-uncertainty", "Self-Uncertainty", self_uncertainty),
        _additive("simple", "EnvProbe-Simple", TERMS),
        _additive("minus-c", "Simple without c", ("s", "u", "d")),
        _additive("minus-s", "Simple without s", ("c", "u", "d")),
        _additive("minus-u", "Simple without u", ("c", "s", "d")),
        _additive("minus-d", "Simple without d", ("c", "s", "u")),
        _additive("cd", "EnvProbe-(c+d)", ("c", "d")),
        Policy("judge", "EnvProbe-Judge", judge, TERMS),
        Policy("oracle", "Oracle", oracle, sees_gold=True),
        Policy("oracle-tw", "Oracle-TW", oracle_task_weighted, sees_gold=True),
        _additive("placebo", "Placebo", TERMS, answered=False),
        Policy("yoked", "Yoked Placebo", replayed, TERMS, answered=False, replays="simple"),
        value_policy("voi", "VoI", 0.5),
        value_policy("voi-accuracy", "VoI for accuracy", 1.0),
        value_policy("voi-success", "VoI for success", 0.0),
    )
}
OF_THE_PAPER: dict[str, Policy] = {name: policy for name, policy in POLICIES.items() if not policy.begin}
"""The paper's policies, its ablations and the placebos: all but VoI."""


def custom_policy(name: str, score: Score, title: str | None = None) -> Policy:
    """Make a policy of a reader's own score function and the usual gate.

    Args:
        name: a name no other policy has.
        score: from a view to an array [row, field].
        title: how tables and figures call it.

    Raises:
        InputError: if the name belongs to a policy of the companion.
    """
    if name in POLICIES:
        raise InputError(f"policy name {name!r} is taken; taken names: {', '.join(POLICIES)}")
    return Policy(name, title or name, ThresholdRule(score), TERMS)


def find_policy(name: str) -> Policy:
    """Return the policy of a name.

    Raises:
        InputError: if there is none; the message lists those there are.
    """
    if name not in POLICIES:
        raise InputError(f"unknown policy {name!r}; accepted: {', '.join(POLICIES)}")
    return POLICIES[name]
