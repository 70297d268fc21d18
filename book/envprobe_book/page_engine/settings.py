"""Settings of the page's engine: a condition as plain data, and the engine's record of numbers for it.

A plain condition is what JSON can hold. It names a world, and what it leaves out is the default:

    world           tooldag, objectstate or graphnav
    policy          a name; `selector` (another's fields), `answered` and `given` as in `policies.Policy`;
                    `replays`, of the yoked placebo: the policy whose probes it repeats
    weights         of the score's terms: {"c": 1, "s": 1, "u": 1, "d": 1}, or VoI's `weight`
    regime          a name, or a name with levels: {"name": "S2", "complexity": 0, ...}
    horizon         steps; the budget follows it unless it is given too
    protocol        as on the command line: "paper:clock=stands"
    profile         a name, or habits: {"name": "typical", "omit": 0.3}
    budget, threshold
    mutation_rate   of a mutable field and tick, in place of the regime's
    setting         all of it at once: the record's bytes in base64, as for a condition that names cannot say

What is here is the reference; `knobs` condenses it into data, from which a page makes the same bytes.
"""

import base64
import contextlib
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from envprobe_core.agents.profiles import PROFILES, AgentProfile
from envprobe_core.compiled.noise import level32
from envprobe_core.conditions import Condition, find_profile, find_regime
from envprobe_core.engine.batch import kernel_params, replayed
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES, TERMS, Policy, find_policy
from envprobe_core.protocols import parse_protocol
from envprobe_core.regimes import REGIMES, Regime

Plain = Mapping[str, Any]
LEVELS = ("complexity", "density", "mutation", "noise")
WEIGHTS = (*TERMS, "weight")
NO_HABIT = ("name", "assumption")  # of a profile's fields
HABITS = {field.name: field.default for field in fields(AgentProfile) if field.name not in NO_HABIT}
KEYS = (
    "world", "policy", "selector", "answered", "given", "replays", "weights", "regime", "horizon", "protocol",
    "profile", "budget", "threshold", "mutation_rate", "setting",
)  # fmt: skip


def policy_of(plain: Plain) -> Policy:
    """The policy of a plain condition, with another's fields or weights of one's own where it has such."""
    policy = find_policy(plain.get("policy", "simple"))
    if plain.get("selector") is not None:
        policy = replace(policy, selector=find_policy(plain["selector"]).rule)
    for name in ("answered", "given"):
        if plain.get(name) is not None:
            policy = replace(policy, **{name: bool(plain[name])})
    if plain.get("replays") is not None:
        policy = replace(policy, replays=find_policy(plain["replays"]).name)
    weights = {name: float(value) for name, value in (plain.get("weights") or {}).items()}
    return replace(policy, rule=policy.rule._replace(**weights))


def regime_of(plain: Plain) -> Regime:
    """The regime of a plain condition, with levels and a horizon of its own."""
    given = plain.get("regime", "S2")
    given = {"name": given} if isinstance(given, str) else dict(given)
    regime = replace(find_regime(given.pop("name", "S2")), **given)
    horizon = plain.get("horizon")
    return regime if horizon is None else replace(regime, horizon=horizon)


def profile_of(plain: Plain) -> AgentProfile:
    """The profile of a plain condition, with habits of its own."""
    given = plain.get("profile", "typical")
    given = {"name": given} if isinstance(given, str) else dict(given)
    return replace(find_profile(given.pop("name", "typical")), **given)


def from_plain(plain: Plain) -> Condition:
    """The condition of a plain condition, without its `mutation_rate`, which no condition has.

    >>> from_plain({"world": "tooldag", "policy": "simple", "budget": 3}).key["threshold"]
    1.5

    Raises:
        InputError: if a name is unknown or a value is out of range.
    """
    for key in plain:
        if key not in KEYS:
            raise InputError(f"a plain condition has no {key!r}; it has {', '.join(KEYS)}")
    return Condition(
        plain["world"],
        policy_of(plain),
        regime_of(plain),
        parse_protocol(plain.get("protocol", "paper")),
        profile_of(plain),
        plain.get("budget"),
        plain.get("threshold"),
    )


def params_for(plain: Plain, *, scores_all: bool = False) -> Any:
    """The engine's record of a plain condition: what a page's own bytes must equal."""
    setting = kernel_params(from_plain(plain), scores_all=scores_all)
    if plain.get("mutation_rate") is not None:
        setting.world.mutation = level32(plain["mutation_rate"])
    return setting


def to_plain(condition: Condition) -> dict[str, Any] | None:
    """A condition as a plain condition that a page can run; None where a reader's own Python decides.

    What names and numbers cannot say stands as the record's bytes.

    >>> from envprobe_core.conditions import make_condition
    >>> to_plain(make_condition("tooldag", "oracle", "S1"))
    {'world': 'tooldag', 'policy': 'oracle', 'regime': 'S1', 'protocol': 'paper', 'profile': 'typical', 'budget': 5}
    """  # noqa: E501
    if condition.policy.score is not None:
        return None
    wanted = kernel_params(condition)
    with contextlib.suppress(InputError, TypeError):
        said = _in_words(condition)
        if (
            params_for(said).tobytes() == wanted.tobytes()
            and policy_of(said).replays == condition.policy.replays
        ):
            return said
    raw = {"world": condition.world, "setting": _in_base64(wanted)}
    if condition.policy.replays is not None:
        raw["replays"] = _in_base64(kernel_params(replayed(condition)))
    return raw


def _in_words(condition: Condition) -> dict[str, Any]:
    """A condition of a condition's names and numbers, which may leave out what these cannot say."""
    policy, plain = (
        condition.policy,
        {name: value for name, value in condition.key.items() if value is not None},
    )
    alike = [one for one in POLICIES.values() if one.rule == policy.rule]
    gate = next((one for one in alike if one.name == policy.name), (alike or [policy])[0])
    plain["policy"] = gate.name
    if policy.selector != gate.selector:
        named = (name for name, one in POLICIES.items() if one.rule == policy.selector)
        plain["selector"] = next(named, None)
    for name in ("answered", "given", "replays"):
        if getattr(policy, name) != getattr(gate, name):
            plain[name] = getattr(policy, name)
    if condition.profile != PROFILES.get(condition.profile.name):
        plain["profile"] = {"name": "perfect"} | {name: getattr(condition.profile, name) for name in HABITS}
    if condition.regime != REGIMES.get(condition.regime.name):
        plain["regime"] = {level: getattr(condition.regime, level) for level in LEVELS}
        plain["horizon"] = condition.regime.horizon
    return plain


def _in_base64(setting: Any) -> str:
    return base64.b64encode(setting.tobytes()).decode()
