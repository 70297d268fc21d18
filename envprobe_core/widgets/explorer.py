"""The explorer: budget and threshold under the reader's hand.

In the book it reads the grid that the page carries. In JupyterLab the engine answers, so that a reader may
leave the grid: any threshold, any budget up to H, other seeds, horizons, regimes and profiles, own policies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from envprobe_core.agents.profiles import PROFILES
from envprobe_core.cells import find_profile, find_regime
from envprobe_core.claims import printed_levels
from envprobe_core.comparing import STRATA
from envprobe_core.engine.scoring import COLLAPSE
from envprobe_core.policies import POLICIES, THRESHOLD, Policy, find_policy
from envprobe_core.protocols import in_words
from envprobe_core.regimes import REGIMES, Regime
from envprobe_core.show.figures import AMBER, GREEN, POLICY_STYLES, PURPLE, VERMILLION, Style
from envprobe_core.statistics import RESAMPLES
from envprobe_core.widgets.grid import POOL, THRESHOLDS
from envprobe_core.widgets.host import Widget
from envprobe_core.widgets.live import Engine
from envprobe_core.worlds import WORLDS

COMPARED = ("no-probe", "periodic", "simple", "placebo")
OWN_STYLES = tuple(Style(colour, "d") for colour in (PURPLE, GREEN, VERMILLION, AMBER))
"""Of a reader's own policies, with a mark that no other has."""
PROTOCOL_LINES = {
    "paper": "the paper's text: beliefs start true, answers repair them, the world moves during a probe",
    "observed": "the paper's text, but beliefs start from the first observation alone",
    "released": "the public code: answers never arrive, the world stands during a probe, slots are scored",
}
TURNED = "a protocol with switches turned; the page Definitions says what they do"
WITHOUT_SCRIPT = (
    "Here stands an interactive figure, which needs JavaScript. It draws accuracy against task success, "
    "accuracy over time, when probes fire, and useful probes, for any budget and threshold."
)


class Explorer(Widget):
    """Accuracy, success and probes of several policies, as budget and threshold move."""

    module = "explorer"

    def __init__(
        self,
        grid: Mapping[str, Any] | None = None,
        *,
        policies: Sequence[Policy] = (),
        regime: str = "S2",
        profile: str = "typical",
        seeds: str = "0:220",
        resamples: int = RESAMPLES,
        compared: Sequence[str] = COMPARED,
        identity: str = "explorer",
    ) -> None:
        """Offer the companion's policies and a reader's own.

        Args:
            grid: what a static page shows, from `grid.load_grid`; where there is one, the regime,
                profile and seeds are its own. Without it the widget needs a kernel.
            policies: a reader's own, from `policies.custom_policy`; for the kernel to run.
            seeds: as `cells.parse_seeds` reads them.
            compared: names of the policies that it starts with, beside a reader's own.

        Raises:
            InputError: for an unknown name.
        """
        if grid is not None:
            regime, profile, seeds = grid["regime"], grid["profile"], grid["seeds"]
        self._engine, level = Engine(policies, resamples), find_regime(regime)
        words = vocabulary(policies, level, find_profile(profile).name, seeds)
        if grid is not None:
            words["protocols"] = [_protocol(name) for name in grid["protocols"]]
        start = {
            "world": next(iter(WORLDS)),
            "protocol": words["protocols"][0]["name"],
            "policies": [find_policy(name).name for name in compared],
            "budget": level.budget,
            "threshold": THRESHOLD,
            "close": True,
        }
        live = {"regime": regime, "horizon": level.horizon, "profile": profile, "seeds": seeds}
        live["policies"] = [*compared, *(policy.name for policy in policies)]
        super().__init__(
            {"vocabulary": words, "start": start | live},
            identity=identity,
            fallback=WITHOUT_SCRIPT,
            live=True,
        )
        self.page_state = None
        if grid is not None:  # of the names, those that are in it only
            held = {
                "policies": [policy for policy in words["policies"] if policy["name"] in grid["policies"]],
                "budgets": list(grid["budgets"]),
                "regimes": [one for one in words["regimes"] if one["name"] == regime],
                "command": f"envprobe reproduce explorer -p regime={'S2' if regime != 'S2' else 'S3'}",
            }
            self.page_state = {"vocabulary": words | held, "grid": dict(grid), "start": start}

    def answer(self, setting: Mapping[str, Any]) -> dict[str, Any]:
        """Return the readings of a question to `live.Engine`, and how many episodes they are of."""
        readings = self._engine.ask(setting)
        return {"readings": readings, "episodes": sum(reading["n"] for reading in readings.values())}


def vocabulary(own: Sequence[Policy], regime: Regime, profile: str, seeds: str) -> dict[str, Any]:
    """Return the names that the front end shows, ready for JSON.

    Args:
        own: a reader's policies, offered last.
        regime: whose horizon H and default budget B hold.

    Returns:
        `worlds` (the pool last), `policies`, `protocols`, `regimes`, `profiles`, `thresholds`, `horizon`,
        `budget`, `threshold`, `seeds`, `profile`, `collapse` (the accuracy called collapse) and the paper's
        `points`.
    """
    worlds = WORLDS | {POOL: "All three worlds"}
    styles = [*((policy, POLICY_STYLES[name]) for name, policy in POLICIES.items())]
    styles += zip(own, cycle(OWN_STYLES), strict=False)
    return {
        "worlds": [{"name": name, "title": title} for name, title in worlds.items()],
        "policies": [
            {"name": policy.name, "title": policy.title, "threshold": policy.has_threshold} | style.mark()
            for policy, style in styles
        ],
        "protocols": [_protocol(name) for name in PROTOCOL_LINES],
        "regimes": [
            {name: getattr(one, name) for name in ("name", "title", "horizon", "budget")}
            for one in REGIMES.values()
        ],
        "regime": regime.name,
        "horizon": regime.horizon,
        "budget": regime.budget,
        "threshold": THRESHOLD,
        "thresholds": list(THRESHOLDS),
        "seeds": seeds,
        "profile": profile,
        "profiles": [{"name": name} for name in PROFILES],
        "collapse": COLLAPSE,
        "points": printed_points(),
    }


def _protocol(name: str) -> dict[str, str]:
    return {"name": name, "title": in_words(name), "line": PROTOCOL_LINES.get(name, TURNED)}


def printed_points() -> list[dict[str, Any]]:
    """Return the paper's own levels: `world policy accuracy success source`, None where not printed.

    Only where its stratum is one world of the explorer or the pool; `source` names table or section. What it
    prints was measured with its language model, so it stands beside every protocol and setting alike.
    """
    world_of, points = {STRATA["procedural"]: STRATA["procedural"][0], STRATA["combined"]: POOL}, []
    for (stratum, policy), printed in printed_levels().items():
        world = world_of.get(STRATA.get(stratum, ()))
        if world is None or policy not in POLICIES:
            continue
        accuracy, success = printed.get("accuracy"), printed.get("success_pct")
        points.append(
            {
                "world": world,
                "policy": policy,
                "accuracy": accuracy and accuracy.value,
                "success": success and success.value / 100,
                "source": ", ".join(dict.fromkeys(v.source for v in (accuracy, success) if v)),
            }
        )
    return points
