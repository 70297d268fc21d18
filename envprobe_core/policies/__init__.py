"""The policies by name: each is a score over fields and a gate (Sections 3 and 4.2).

A policy sees the belief table, the score terms and the proposal; only the two oracles are shown gold. What
the rules do is in `policies.rules`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

from envprobe_core.errors import InputError
from envprobe_core.naming import find_name
from envprobe_core.policies import rules
from envprobe_core.policies.custom import Score
from envprobe_core.policies.rules import Rule
from envprobe_core.protocols import Protocol

TERMS = ("c", "s", "u", "d")
THRESHOLD = 1.5  # rho_star, Table "Hyperparameter configuration"


@dataclass(frozen=True)
class Policy:
    """A named rule; the budget is enforced by the engine."""

    name: str  # as on the command line
    title: str  # as in tables and figures
    rule: Rule  # what ranks the fields and opens the gate
    terms: tuple[str, ...] | None = None  # the score terms it keeps; None where it has no threshold
    answered: bool = True  # whether answers reach the belief table where the protocol delivers them
    sees_gold: bool = False  # whether it is an oracle
    replays: str | None = None  # the policy whose probe times and fields it repeats
    selector: Rule | None = None  # the rule that says which field, where it is not `rule` itself
    given: bool = False  # whether VoI is told the true rates, a privilege that no deployable policy has
    score: Score | None = (
        None  # a reader's own function, from a view (`policies.custom.View`) to scores [field]
    )

    @property
    def has_threshold(self) -> bool:
        """Whether the gate compares a score with a threshold."""
        return self.terms is not None

    @property
    def remembers(self) -> bool:
        """Whether it keeps notes of what it was shown (VoI does)."""
        return not {rules.VOI, rules.NOTED}.isdisjoint((self.rule.kind, (self.selector or self.rule).kind))

    def scaled_threshold(self, base: float, protocol: Protocol) -> float:
        """The threshold in force: the base, times kept terms / 4 where the protocol scales it."""
        if self.terms is None or protocol.threshold == "fixed":
            return base
        return base * len(self.terms) / len(TERMS)


def value_policy(name: str, title: str, weight: float, *, given: bool = False, paced: bool = True) -> Policy:
    """Make VoI with a weight between task success (0) and accuracy (1).

    >>> value_policy("mine", "Mine", 0.5).remembers
    True
    """
    return Policy(name, title, Rule(rules.VOI, weight=weight, paced=paced), given=given)


def hybrid(gate: Policy, selector: Policy, *, answered: bool = True) -> Policy:
    """Combine the times of one policy with the fields of another (ours).

    Args:
        gate: says when; its threshold is in force.
        selector: says which field, also at steps at which it would not probe itself.
        answered: whether the answers reach the belief table.

    >>> hybrid(POLICIES["periodic"], POLICIES["simple"]).name
    'periodic/simple'
    """
    return replace(
        gate,
        name=f"{gate.name}/{selector.name}" + ("" if answered else "/unanswered"),
        title=f"times of {gate.title}, fields of {selector.title}",
        selector=selector.rule,
        answered=answered,
        sees_gold=gate.sees_gold or selector.sees_gold,
    )


def _additive(
    name: str, title: str, terms: tuple[str, ...], answered: bool = True, kind: int = rules.SCORE
) -> Policy:
    return Policy(name, title, Rule(kind, *(float(term in terms) for term in TERMS)), terms, answered)


POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy("no-probe", "No-Probe", Rule(rules.NEVER)),
        Policy("random", "Random", Rule(rules.RANDOM)),
        Policy("periodic", "Periodic", Rule(rules.PERIODIC)),
        Policy("self-uncertainty", "Self-Uncertainty", Rule(rules.SELF_UNCERTAINTY)),
        _additive("simple", "EnvProbe-Simple", TERMS),
        _additive("minus-c", "Simple without c", ("s", "u", "d")),
        _additive("minus-s", "Simple without s", ("c", "u", "d")),
        _additive("minus-u", "Simple without u", ("c", "s", "d")),
        _additive("minus-d", "Simple without d", ("c", "s", "u")),
        _additive("cd", "EnvProbe-(c+d)", ("c", "d")),
        _additive("judge", "EnvProbe-Judge", TERMS, kind=rules.JUDGE),
        Policy("oracle", "Oracle", Rule(rules.ORACLE), sees_gold=True),
        Policy("oracle-tw", "Oracle-TW", Rule(rules.ORACLE_TW), sees_gold=True),
        _additive("placebo", "Placebo", TERMS, answered=False),
        Policy("yoked", "Yoked Placebo", Rule(rules.REPLAY), TERMS, answered=False, replays="simple"),
        value_policy("voi", "VoI", 0.5),
        value_policy("voi-accuracy", "VoI for accuracy", 1.0),
        value_policy("voi-success", "VoI for success", 0.0),
        Policy("late", "Late round robin", Rule(rules.LATE)),
        Policy("late-stalest", "Late stalest", Rule(rules.LATE), selector=Rule(rules.STALEST)),
        Policy("late-mismatch", "Late mismatch", Rule(rules.LATE), selector=Rule(rules.NOTED)),
    )
}
OF_THE_PAPER: dict[str, Policy] = {
    name: policy for name, policy in POLICIES.items() if policy.rule.kind not in (rules.VOI, rules.LATE)
}
"""The paper's policies, its ablations and the placebos: all but VoI and what a sceptic sets beside it."""


NAMES: dict[str, tuple[str, ...]] = {name: (policy.title,) for name, policy in POLICIES.items()}
"""Names and titles, as `naming` takes them."""


def _check_free(name: str) -> None:
    """Refuse a name that a policy of the companion has."""
    if name in POLICIES:
        raise InputError(f"policy name {name!r} is taken; taken names: {', '.join(POLICIES)}")


def custom_policy(name: str, score: Score, title: str | None = None) -> Policy:
    """Make a policy of a reader's own score function, from a view to an array [field], and the usual gate.

    Raises:
        InputError: if the name belongs to a policy of the companion.

    >>> custom_policy("stalest", lambda view: 2.0 * view.s).has_threshold
    True
    """
    _check_free(name)
    return Policy(name, title or name, Rule(rules.OWN), TERMS, score=score)


def weighted_policy(name: str, title: str, weights: Sequence[float]) -> Policy:
    """Make a policy whose score weighs c, s, u and d otherwise than one each, with the usual gate.

    Args:
        name: one that no policy of the companion has.
        title: as in tables and figures.
        weights: [term], finite; a negative one turns a term round.

    Raises:
        InputError: for a name that is taken, and weights that are not four finite numbers.

    >>> weighted_policy("mine", "Mine", [0.0, 1.0, 2.0, 0.0]).has_threshold
    True
    """
    _check_free(name)
    own = tuple(map(float, weights))
    if len(own) != len(TERMS) or not all(map(isfinite, own)):
        raise InputError(f"weights {own}: one finite number for each of {', '.join(TERMS)} is accepted")
    return Policy(name, title, Rule(rules.SCORE, *own), TERMS)


def find_policy(name: str) -> Policy:
    """The policy of a name or title; an unknown one is refused with the known.

    >>> find_policy("cd").terms
    ('c', 'd')
    >>> find_policy("EnvProbe-Simple").name
    'simple'
    """
    return POLICIES[find_name("policy", name, NAMES)]
