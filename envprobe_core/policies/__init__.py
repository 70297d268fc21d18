"""The policies by name: each is a score over fields and a gate (Sections 3 and 4.2).

A policy sees the belief table, the score terms and the proposal; only the two oracles are shown gold. A
module holds some of them:

POLICIES
    A tuple of `base.Policy`, whose names and titles no other has.
KINDS
    The numbers of its rules, which no other module has, and what each does in a sentence.
``opens(params, rule, episode, reader)``
    Writes the field that it ranks first into `episode.sight.first`; says whether to probe it now. A rule that
    only ranks, as a policy's `selector`, says False.
MEMORY
    Of one that remembers: the dtypes of the records that it keeps in an episode, by name.
``begin(params, episode)``, ``notice(params, episode)``
    What it does with these at the first step, and before each decision. Both are needed, also where one does
    nothing.
RULES_FOR
    Of one that has no rules for some worlds: the names of those for which it has.

The functions are compiled: each stands below the decorator `inline` of `compiled.numba_support`. `late` is a
short module, `voi` one that remembers. `joining` says in a line what a module lacks.

A module of one's own is a file in this folder. CONTRIBUTING.md has the steps, and what then is renewed. A
reader's function (`custom_policy`) is shorter.
"""

import pkgutil
from collections.abc import Sequence
from importlib import import_module
from math import isfinite
from types import ModuleType

import numpy as np

from envprobe_core.errors import InputError
from envprobe_core.naming import find_name
from envprobe_core.policies import joining, late, rules, voi
from envprobe_core.policies.base import TERMS, THRESHOLD, Policy, Rule, hybrid
from envprobe_core.policies.custom import Score
from envprobe_core.policies.voi import value_policy

__all__ = ["TERMS", "THRESHOLD", "Policy", "Rule", "hybrid", "value_policy"]

MODULES: list[ModuleType] = []
"""The paper's policies, ours, and every other module of this folder that has some."""
POLICIES: dict[str, Policy] = {}
KINDS: dict[int, str] = {}
"""What each kind of rule does, in a sentence."""


def _join(module: ModuleType) -> None:
    joining.check(module, MODULES)
    MODULES.append(module)
    POLICIES.update((policy.name, policy) for policy in module.POLICIES)
    KINDS.update(module.KINDS)


for _module in (rules, voi, late):
    _join(_module)
for _file in pkgutil.iter_modules(__path__):
    if _file.name != "gates":  # which asks them all
        _module = import_module(f"{__name__}.{_file.name}")
        if joining.holds_policies(_module) and _module not in MODULES:
            _join(_module)
for _policy in POLICIES.values():
    for _kind in _policy.kinds:
        if _kind not in KINDS:  # it would never probe
            raise InputError(f"policy {_policy.name!r}: no module has rules of kind {_kind}")

OF_THE_PAPER: dict[str, Policy] = {policy.name: policy for policy in rules.POLICIES}
"""The paper's policies, its ablations and the placebos: all but VoI and what a sceptic sets beside it."""


def rules_for(policy: Policy) -> tuple[str, ...] | None:
    """The worlds that a policy has rules for; None where it has for all.

    >>> rules_for(POLICIES["late-mismatch"]), rules_for(POLICIES["late"])
    (('tooldag', 'objectstate', 'graphnav'), None)
    """
    asked = [module for module in MODULES if not module.KINDS.keys().isdisjoint(policy.kinds)]
    limits = [module.RULES_FOR for module in asked if hasattr(module, "RULES_FOR")]
    return tuple(world for world in limits[0] if all(world in own for own in limits)) if limits else None


def memories() -> dict[str, np.dtype]:
    """The records that policies keep in an episode, by name.

    >>> [*memories()]
    ['evidence']
    """
    return {name: kind for module in MODULES for name, kind in getattr(module, "MEMORY", {}).items()}


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
    kept = tuple(map(float, weights))
    if len(kept) != len(TERMS) or not all(map(isfinite, kept)):
        raise InputError(f"weights {kept}: one finite number for each of {', '.join(TERMS)} is accepted")
    return Policy(name, title, Rule(rules.SCORE, *kept), TERMS)


def find_policy(name: str) -> Policy:
    """The policy of a name or title; an unknown one is refused with the known.

    >>> find_policy("cd").terms
    ('c', 'd')
    >>> find_policy("EnvProbe-Simple").name
    'simple'
    """
    return POLICIES[find_name("policy", name, NAMES)]
