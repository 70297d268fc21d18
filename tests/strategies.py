"""Random experiments for hypothesis: cells over every world, regime, policy, protocol and profile."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np

from envprobe_core.agents.profiles import PROFILES, AgentProfile
from envprobe_core.cells import Cell
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PROTOCOLS, SWITCHES, switch_values
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS

rates = st.sampled_from([0.0, 0.05, 0.2, 0.5, 1.0])
seeds = st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=3, unique=True).map(
    lambda values: np.array(values, dtype=np.int64)
)


@st.composite
def protocols(draw):
    """Draw a named protocol, or one with some switches turned."""
    base = draw(st.sampled_from(list(PROTOCOLS.values())))
    turned = draw(st.lists(st.sampled_from(SWITCHES), unique=True, max_size=len(SWITCHES)))
    changes = {switch: draw(st.sampled_from(switch_values(switch))) for switch in turned}
    return replace(base, name="mixed", **changes) if changes else base


@st.composite
def profiles(draw):
    """Draw a named profile, or one with random errors and habits."""
    if draw(st.booleans()):
        return draw(st.sampled_from(list(PROFILES.values())))
    return AgentProfile(
        "drawn",
        omit=draw(rates),
        overwrite=draw(rates),
        slip=draw(rates),
        quit=draw(st.sampled_from([0.0, 0.03, 0.2])),
        misreport=draw(rates),
        hedge=draw(rates),
        confidence=draw(st.sampled_from([100, 90, 60])),
        spread=draw(st.sampled_from([0, 10, 60])),
        fade=draw(st.sampled_from([0, 1, 5])),
        single_report=draw(st.booleans()),
        writes=draw(st.sampled_from(["number", "true"])),
        keeps_open=draw(st.booleans()),
        scribe=draw(st.booleans()),
        copies_gold=draw(st.booleans()),
        lost=draw(rates),
        loop=draw(rates),
        critical=draw(rates),
        risky=draw(rates),
        names_goal=draw(rates),
        asks=draw(rates),
        lists_all=draw(st.booleans()),
    )


@st.composite
def cells(draw, policies=tuple(POLICIES)):
    """Draw a cell; budgets reach from none to the horizon, thresholds from always to never."""
    policy = POLICIES[draw(st.sampled_from(policies))]
    regime = REGIMES[draw(st.sampled_from(sorted(REGIMES)))]
    budget = draw(st.sampled_from([None, 0, 1, 3, regime.horizon]))
    threshold = draw(st.sampled_from([None, 0.0, 0.7, 1.1, 2.0, 2.5, 4.5]))
    return Cell(
        draw(st.sampled_from(sorted(WORLDS))),
        policy,
        regime,
        draw(protocols()),
        draw(profiles()),
        budget,
        threshold if policy.has_threshold else None,
    )
