"""What a policy is: a rule that ranks the fields and opens the gate, and what is said of it."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from envprobe_core.policies.custom import Score
from envprobe_core.protocols import Protocol

TERMS = ("c", "s", "u", "d")
THRESHOLD = 1.5  # rho_star, Table "Hyperparameter configuration"


class Rule(NamedTuple):
    """What ranks the fields and opens the gate; the module of its kind says how."""

    kind: int = 0
    c: float = 0.0  # which terms rho keeps, 1 or 0
    s: float = 0.0
    u: float = 0.0
    d: float = 0.0
    weight: float = 0.0  # VoI's lambda
    paced: bool = False  # VoI keeps its probes for the end


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
    def kinds(self) -> tuple[int, int]:
        """Of the rule that opens the gate, and of the rule that ranks the fields."""
        return self.rule.kind, (self.selector or self.rule).kind

    def scaled_threshold(self, base: float, protocol: Protocol) -> float:
        """The threshold in force: the base, times kept terms / 4 where the protocol scales it."""
        if self.terms is None or protocol.threshold == "fixed":
            return base
        return base * len(self.terms) / len(TERMS)


def additive(
    name: str, title: str, kind: int, terms: tuple[str, ...] = TERMS, *, answered: bool = True
) -> Policy:
    """Make a policy whose score keeps some terms, with the usual gate.

    >>> additive("cd", "EnvProbe-(c+d)", 4, ("c", "d")).rule[1:5]
    (1.0, 0.0, 0.0, 1.0)
    """
    kept: dict[str, Any] = {term: float(term in terms) for term in TERMS}
    return Policy(name, title, Rule(kind)._replace(**kept), terms, answered)


def hybrid(gate: Policy, selector: Policy, *, answered: bool = True) -> Policy:
    """Combine the times of one policy with the fields of another (ours).

    Args:
        gate: says when; its threshold is in force.
        selector: says which field, also at steps at which it would not probe itself.
        answered: whether the answers reach the belief table.

    >>> periodic, simple = Policy("periodic", "Periodic", Rule(2)), Policy("simple", "Simple", Rule(4))
    >>> hybrid(periodic, simple).name
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
