"""Random experiments for hypothesis: conditions over every world, regime, policy, protocol and profile."""

from __future__ import annotations

from dataclasses import fields, replace

import hypothesis.strategies as st
import numpy as np

from envprobe_core.agents.profiles import PROFILES, AgentProfile
from envprobe_core.conditions import Condition
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PROTOCOLS, SWITCHES, switch_values
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS

KINDS = {float: [0.0, 0.05, 0.2, 0.5, 1.0], bool: [False, True]}
HABITS = {field.name: KINDS.get(type(field.default)) for field in fields(AgentProfile)} | {
    "quit": [0.0, 0.03, 0.2],
    "confidence": [100, 90, 60],
    "spread": [0, 10, 60],
    "fade": [0, 1, 5],
    "writes": ["number", "true"],
}
drawn_profiles = st.builds(
    AgentProfile, st.just("drawn"), **{name: st.sampled_from(some) for name, some in HABITS.items() if some}
)
profiles = st.sampled_from(list(PROFILES.values())) | drawn_profiles
seeds = st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=3, unique=True).map(np.array)


@st.composite
def protocols(draw):
    """Draw a named protocol, or one with some switches turned."""
    base = draw(st.sampled_from(list(PROTOCOLS.values())))
    turned = draw(st.lists(st.sampled_from(SWITCHES), unique=True, max_size=len(SWITCHES)))
    changes = {switch: draw(st.sampled_from(switch_values(switch))) for switch in turned}
    return replace(base, name="mixed", **changes) if changes else base


@st.composite
def conditions(draw, policies=tuple(POLICIES)):
    """Draw a condition; budgets reach from none to the horizon, thresholds from always to never."""
    policy = POLICIES[draw(st.sampled_from(policies))]
    world, regime = draw(st.sampled_from(sorted(WORLDS))), REGIMES[draw(st.sampled_from(sorted(REGIMES)))]
    budget = draw(st.sampled_from([None, 0, 1, 3, regime.horizon]))
    threshold = draw(st.sampled_from([None, 0.0, 0.7, 1.1, 2.0, 2.5, 4.5])) if policy.has_threshold else None
    return Condition(world, policy, regime, draw(protocols()), draw(profiles), budget, threshold)
