"""What the loop asks of a policy: it goes to the module of a rule's kind, or to all that remember."""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from envprobe_core.compiled.numba_support import inline
from envprobe_core.compiled.records import NONE
from envprobe_core.policies import MODULES


@inline
def choose(params, episode, reader):
    """The field to probe, or NONE, whatever is left of the budget."""
    policy, sight = params.policy, episode.sight
    sight.first, sight.highest = 0, np.nan
    notice(params, episode)
    if not opens(params, policy.gate, episode, reader):
        return NONE
    if policy.selector.kind != NONE:
        highest = sight.highest
        opens(params, policy.selector, episode, reader)
        sight.highest = highest
    return np.int64(sight.first)


def _of_kind(modules: Sequence[ModuleType]) -> Callable[..., Any]:
    """The `opens` of all modules as one function, which looks at the rule's kind."""
    if not modules:
        return _never
    module, others = modules[0], _of_kind(modules[1:])
    kinds, its_own = tuple(module.KINDS), module.opens

    @inline
    def ask(params, rule, episode, reader):
        if rule.kind in kinds:
            return its_own(params, rule, episode, reader)
        return others(params, rule, episode, reader)

    return ask


@inline
def _never(params, rule, episode, reader):
    return False


def _of_memory(modules: Sequence[ModuleType], name: str) -> Callable[..., Any]:
    """A function of all modules that remember as one, each asked if one of a policy's rules is its own."""
    if not modules:
        return _nothing
    module, others = modules[0], _of_memory(modules[1:], name)
    kinds, its_own = tuple(module.KINDS), getattr(module, name)

    @inline
    def ask(params, episode):
        if params.policy.gate.kind in kinds or params.policy.selector.kind in kinds:
            its_own(params, episode)
        others(params, episode)

    return ask


@inline
def _nothing(params, episode):
    pass


_REMEMBERING = [module for module in MODULES if hasattr(module, "MEMORY")]
opens = _of_kind(MODULES)
begin, notice = _of_memory(_REMEMBERING, "begin"), _of_memory(_REMEMBERING, "notice")
