"""What the explorer's front end must know beside the numbers: names, titles, colours, the paper's points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from envprobe_core.agents.profiles import TYPICAL, AgentProfile
from envprobe_core.figures import DARK, INK, POLICY_STYLES, STRATA, Style
from envprobe_core.metrics import COLLAPSE
from envprobe_core.paper import printed_levels
from envprobe_core.policies import POLICIES, THRESHOLD, Policy
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.regimes import REGIMES, Regime
from envprobe_core.worlds import WORLDS

POOL = "pool"
PROTOCOL_LINES = {
    "paper": "the paper's text: beliefs start true, answers repair them, the world moves during a probe",
    "observed": "the paper's text, but beliefs start from the first observation alone",
    "released": "the public code: answers never arrive, the world stands during a probe, slots are scored",
}
NO_STYLE = Style(INK, "o")  # a reader's own policy, until the page gives it a colour


def vocabulary(
    policies: Sequence[Policy] = tuple(POLICIES.values()),
    regime: Regime = REGIMES["S2"],
    profile: AgentProfile = TYPICAL,
    seeds: str = "0:220",
) -> dict[str, Any]:
    """Return the names that the front end shows, ready for JSON.

    Args:
        policies: those it offers, a reader's own included.
        regime: whose horizon H and default budget B hold.
        profile: of the simulated agent.
        seeds: as text.

    Returns:
        `worlds` (the pool last), `policies`, `protocols`, `regimes`, `horizon`, `budget`, `threshold`,
        `seeds`, `profile`, `collapse` (the accuracy called collapse) and the paper's `points`.
    """
    return {
        "worlds": [{"name": name, "title": title} for name, title in WORLDS.items()]
        + [{"name": POOL, "title": "All three worlds"}],
        "policies": [describe_policy(policy) for policy in policies],
        "protocols": [{"name": name, "line": PROTOCOL_LINES[name]} for name in PROTOCOLS],
        "regimes": [
            {"name": one.name, "title": one.title, "horizon": one.horizon, "budget": one.budget}
            for one in REGIMES.values()
        ],
        "regime": regime.name,
        "horizon": regime.horizon,
        "budget": regime.budget,
        "threshold": THRESHOLD,
        "seeds": seeds,
        "profile": {"name": profile.name, "assumption": profile.assumption},
        "collapse": COLLAPSE,
        "points": printed_points(),
    }


def describe_policy(policy: Policy) -> dict[str, Any]:
    """Return a policy's name, title, mark and what its controls are; `dark` is its colour on a dark page."""
    style = POLICY_STYLES.get(policy.name, NO_STYLE)
    return {
        "name": policy.name,
        "title": policy.title,
        "colour": None if style.colour == INK else style.colour,  # None: the colour of the page's text
        "dark": DARK.get(style.colour),
        "marker": style.marker,
        "filled": style.filled,
        "threshold": policy.has_threshold,
        "sees_gold": policy.sees_gold,
    }


def printed_points() -> list[dict[str, Any]]:
    """Return the paper's own levels: `world stratum policy accuracy success source`, None where not printed.

    Only where its stratum is one world of the explorer or the pool; `source` names table or section. What it
    prints was measured with its language model, so it stands beside every protocol and setting alike.
    """
    world_of = {STRATA["procedural"]: STRATA["procedural"][0], STRATA["combined"]: POOL}
    points = []
    for (stratum, policy), printed in printed_levels().items():
        world = world_of.get(STRATA.get(stratum, ()))
        if world is None or policy not in POLICIES:
            continue
        accuracy, success = printed.get("accuracy"), printed.get("success_pct")
        points.append(
            {
                "world": world,
                "stratum": stratum,
                "policy": policy,
                "accuracy": accuracy and accuracy.value,
                "success": success and success.value / 100,
                "source": ", ".join(dict.fromkeys(v.source for v in (accuracy, success) if v)),
            }
        )
    return points
