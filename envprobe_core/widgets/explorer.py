"""The explorer: budget and threshold under the reader's hand.

In the book it reads the grid that the page carries. In JupyterLab the engine answers, so that a reader may
leave the grid: any threshold, any budget up to H, other seeds, horizons, regimes and profiles, own policies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from envprobe_core.agents.profiles import PROFILES, AgentProfile
from envprobe_core.cells import find_profile, find_regime
from envprobe_core.claims.printed import printed_levels
from envprobe_core.engine.scoring import COLLAPSE
from envprobe_core.policies import POLICIES, THRESHOLD, Policy, find_policy
from envprobe_core.protocols import in_words
from envprobe_core.regimes import REGIMES, Regime
from envprobe_core.show.figures import (
    AMBER,
    DARK,
    GREEN,
    INK,
    POLICY_STYLES,
    PURPLE,
    STRATA,
    VERMILLION,
    Style,
)
from envprobe_core.show.interact import fragment
from envprobe_core.statistics import RESAMPLES
from envprobe_core.widgets.grid import POOL, THRESHOLDS
from envprobe_core.widgets.host import Widget
from envprobe_core.widgets.live import Engine
from envprobe_core.worlds import WORLDS

COMPARED = ("no-probe", "periodic", "simple", "placebo")
OWN_COLOURS = (PURPLE, GREEN, VERMILLION, AMBER)  # of a reader's own policies, with a mark no other has
OWN_MARKER = "d"
PROTOCOL_LINES = {
    "paper": "the paper's text: beliefs start true, answers repair them, the world moves during a probe",
    "observed": "the paper's text, but beliefs start from the first observation alone",
    "released": "the public code: answers never arrive, the world stands during a probe, slots are scored",
}
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
        words = vocabulary(
            tuple(self._engine.policies.values()),
            level,
            find_profile(profile),
            seeds,
            grid["protocols"] if grid else tuple(PROTOCOL_LINES),
        )
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
        self.page_state = _page_state(grid, words, start, level) if grid is not None else None

    def answer(self, setting: Mapping[str, Any]) -> dict[str, Any]:
        """Return the readings of a question to `live.Engine`, and how many episodes they are of."""
        readings = self._engine.ask(setting)
        return {"readings": readings, "episodes": sum(reading["n"] for reading in readings.values())}


def _page_state(
    grid: Mapping[str, Any], words: Mapping[str, Any], start: Mapping[str, Any], level: Regime
) -> dict[str, Any]:
    """Return what a static page carries: the grid, and names of what is in it only."""
    held = {
        "policies": [policy for policy in words["policies"] if policy["name"] in grid["policies"]],
        "budgets": list(grid["budgets"]),
        "regimes": [one for one in words["regimes"] if one["name"] == level.name],
        "command": f"envprobe reproduce explorer -p regime={'S2' if level.name != 'S2' else 'S3'}",
    }
    rest = {name: value for name, value in words.items() if name != "profiles"}
    return {"vocabulary": {**rest, **held}, "grid": dict(grid), "start": dict(start)}


def vocabulary(
    policies: Sequence[Policy], regime: Regime, profile: AgentProfile, seeds: str, protocols: Sequence[str]
) -> dict[str, Any]:
    """Return the names that the front end shows, ready for JSON.

    Args:
        policies: those it offers, a reader's own last.
        regime: whose horizon H and default budget B hold.

    Returns:
        `worlds` (the pool last), `policies`, `protocols`, `regimes`, `profiles`, `thresholds`, `horizon`,
        `budget`, `threshold`, `seeds`, `profile`, `collapse` (the accuracy called collapse) and the paper's
        `points`.
    """
    turned = "a protocol with switches turned; what they do is on the page of protocols"
    own_colours = cycle(OWN_COLOURS)
    return {
        "worlds": [
            {"name": name, "title": title} for name, title in (WORLDS | {POOL: "All three worlds"}).items()
        ],
        "policies": [
            describe_policy(policy, None if policy.name in POLICIES else next(own_colours))
            for policy in policies
        ],
        "protocols": [
            {"name": name, "title": in_words(name), "line": PROTOCOL_LINES.get(name, turned)}
            for name in protocols
        ],
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
        "profile": {"name": profile.name, "assumption": profile.assumption},
        "profiles": [{"name": name} for name in PROFILES],
        "collapse": COLLAPSE,
        "points": printed_points(),
    }


def describe_policy(policy: Policy, own_colour: str | None = None) -> dict[str, Any]:
    """Return a policy's name, title, mark (a reader's own in `own_colour`) and what its controls are."""
    style = POLICY_STYLES.get(policy.name, Style(own_colour or INK, OWN_MARKER))
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


# --- what the page says ------------------------------------------------------------------------


def link_to(setting: Mapping[str, Any]) -> str:
    """Return the fragment that sets the page's explorer to `world protocol policies budget threshold`."""
    said = {name: setting[name] for name in ("world", "protocol", "budget", "threshold")}
    return fragment(said | {"policies": ",".join(setting["policies"])})
