"""The explorer: budget and threshold under the reader's hand.

In the book it reads the grid that the page carries. In JupyterLab the engine answers, so that a reader may
leave the grid: any threshold, any budget up to H, other seeds, horizons, regimes and profiles, own policies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from envprobe_core.agents.profiles import PROFILES
from envprobe_core.cells import find_profile, find_regime
from envprobe_core.errors import InputError
from envprobe_core.explorer.vocabulary import PROTOCOL_LINES, describe_policy, vocabulary
from envprobe_core.figures import AMBER, DARK, GREEN, PURPLE, VERMILLION
from envprobe_core.policies import POLICIES, THRESHOLD, Policy
from envprobe_core.regimes import Regime
from envprobe_core.resampling import RESAMPLES
from envprobe_core.widgets.host import Widget
from envprobe_core.widgets.live_readings import Engine

COMPARED = ("no-probe", "periodic", "simple", "placebo")
OWN_COLOURS = (PURPLE, GREEN, VERMILLION, AMBER)  # of a reader's own policies, with a mark no other has
OWN_MARKER = "d"
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
            grid: what a static page shows, from `explorer.encoding.encode`; where there is one, the regime,
                profile and seeds are its own. Without it the widget needs a kernel.
            policies: a reader's own, from `policies.custom_policy`; for the kernel to run.
            regime: name of the regime that the widget starts with.
            profile: name of the agent's profile, likewise.
            seeds: as `cells.parse_seeds` reads them, likewise.
            resamples: bootstrap resamples of the intervals.
            compared: names of the policies that it starts with, beside a reader's own.
            identity: an id that no other widget of the page has.

        Raises:
            InputError: for an unknown name.
        """
        if grid is not None:
            regime, profile, seeds = grid["regime"], grid["profile"], grid["seeds"]
        for name in compared:
            if name not in POLICIES:
                raise InputError(f"unknown policy {name!r}; accepted: {', '.join(POLICIES)}")
        self._engine = Engine(policies, resamples)
        level = find_regime(regime)
        words = vocabulary(tuple(self._engine.policies.values()), level, find_profile(profile), seeds)
        for place, policy in enumerate(policies):
            words["policies"][len(POLICIES) + place] = _own_style(policy, place)
        words |= {
            "thresholds": [quarters / 4 for quarters in range(17)],
            "profiles": [{"name": name} for name in PROFILES],
            "protocols": _protocols(grid),
        }
        start = {
            "world": words["worlds"][0]["name"],
            "protocol": words["protocols"][0]["name"],
            "policies": [*compared, *(policy.name for policy in policies)],
            "budget": level.budget,
            "threshold": THRESHOLD,
            "close": True,
        }
        engine_start = {
            **start,
            "regime": regime,
            "horizon": level.horizon,
            "profile": profile,
            "seeds": seeds,
        }
        super().__init__(
            {"vocabulary": words, "start": engine_start},
            identity=identity,
            fallback=WITHOUT_SCRIPT,
            live=True,
        )
        self.page_state = None
        if grid is not None:
            self.page_state = _page_state(grid, words, {**start, "policies": list(compared)}, level)
        self.on_msg(self._receive)

    def _receive(self, _: object, content: Mapping[str, Any], buffers: object) -> None:
        """Answer a question of the front end with readings, or say why there are none."""
        if content.get("kind") != "ask":
            return
        reply: dict[str, Any] = {"kind": "answer", "request": content.get("request")}
        try:
            readings = self._engine.ask(content["setting"])
            episodes = sum(reading["n"] for reading in readings.values())
            self.send({**reply, "readings": readings, "episodes": episodes})
        except InputError as error:
            self.send({**reply, "error": str(error)})


def _own_style(policy: Policy, place: int) -> dict[str, Any]:
    colour = OWN_COLOURS[place % len(OWN_COLOURS)]
    return {**describe_policy(policy), "colour": colour, "dark": DARK[colour], "marker": OWN_MARKER}


def _protocols(grid: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Return the protocols on offer: the grid's, or the three that have a name."""
    names = PROTOCOL_LINES if grid is None else grid["protocols"]
    turned = "a protocol with switches turned; what they do is on the page of protocols"
    return [{"name": name, "line": PROTOCOL_LINES.get(name, turned)} for name in names]


def _page_state(
    grid: Mapping[str, Any], words: Mapping[str, Any], start: Mapping[str, Any], level: Regime
) -> dict[str, Any]:
    """Return what a static page carries: the grid, and names of what is in it only."""
    held = {
        "policies": [policy for policy in words["policies"] if policy["name"] in grid["policies"]],
        "worlds": [world for world in words["worlds"] if world["name"] in grid["worlds"]],
        "budgets": list(grid["budgets"]),
        "thresholds": list(grid["thresholds"]),
        "regimes": [one for one in words["regimes"] if one["name"] == level.name],
        "command": f"envprobe reproduce explorer -p regime={'S2' if level.name != 'S2' else 'S3'}",
    }
    rest = {name: value for name, value in words.items() if name != "profiles"}
    return {"vocabulary": {**rest, **held}, "grid": dict(grid), "start": dict(start)}
