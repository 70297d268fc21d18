"""The explorer: budget and threshold under the reader's hand.

In the book it reads the grid that the page carries. In JupyterLab the engine answers, so that a reader may
leave the grid: any threshold, any budget up to H, other seeds, horizons, regimes and profiles, own policies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any
from urllib.parse import quote

from envprobe_core.agents.profiles import PROFILES, AgentProfile
from envprobe_core.cells import Cell, find_profile, find_regime, parse_seeds
from envprobe_core.claims.printed import printed_levels
from envprobe_core.errors import InputError
from envprobe_core.figures import (
    AMBER,
    DARK,
    GREEN,
    INK,
    POLICY_STYLES,
    PURPLE,
    STRATA,
    VERMILLION,
    WORLD_TITLES,
    Style,
    policy_title,
)
from envprobe_core.markup import Html, Text, code, listed, number, numbered, percent
from envprobe_core.metrics import COLLAPSE
from envprobe_core.policies import POLICIES, THRESHOLD, Policy
from envprobe_core.protocols import PROTOCOLS, parse_protocol
from envprobe_core.regimes import REGIMES, Regime
from envprobe_core.statistics import RESAMPLES
from envprobe_core.widgets.grid import POOL, THRESHOLDS
from envprobe_core.widgets.host import Widget, packed
from envprobe_core.widgets.live import Engine
from envprobe_core.widgets.readings import Reading, pooled, take_readings
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
HIGH_THRESHOLD = 2.5
SAME = 0.0005  # shares that differ by less are told as equal: half of the last digit shown


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
        for described, colour in zip(words["policies"][len(POLICIES) :], cycle(OWN_COLOURS), strict=False):
            described |= {"colour": colour, "dark": DARK[colour], "marker": OWN_MARKER}
        turned = "a protocol with switches turned; what they do is on the page of protocols"
        words |= {
            "thresholds": list(THRESHOLDS),
            "profiles": [{"name": name} for name in PROFILES],
            "protocols": [
                {"name": name, "line": PROTOCOL_LINES.get(name, turned)}
                for name in (grid["protocols"] if grid else PROTOCOL_LINES)
            ],
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


def vocabulary(
    policies: Sequence[Policy], regime: Regime, profile: AgentProfile, seeds: str
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
    style = POLICY_STYLES.get(policy.name, Style(INK, "o"))
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


class Tries:
    """Settings worth trying, each a link with what is read there.

    Every number and direction is computed, so the sentences stay true for any seeds, regime or agent.
    """

    def __init__(self, regime: str, protocols: Sequence[str], profile: str, seeds: str) -> None:
        """Keep what the settings have in common; arguments are those of `grid.load_grid`."""
        self.regime, self.protocols, self.profile = find_regime(regime), protocols, find_profile(profile)
        self.seeds = parse_seeds(seeds)
        self.world = next(iter(WORLDS))

    def read(
        self, policy: str, protocol: str, budget: int, threshold: float = THRESHOLD, world: str = ""
    ) -> Reading:
        """Read one setting, without intervals worth the name."""
        cell = Cell(
            self.world, POLICIES[policy], self.regime, parse_protocol(protocol), self.profile, budget,
            threshold if POLICIES[policy].has_threshold else None,
        )  # fmt: skip
        return take_readings([pooled(cell) if world == POOL else cell], self.seeds, resamples=2)[0]

    def link(self, text: str, policies: Sequence[str], **setting: Any) -> str:
        """Return a link that sets the explorer of the same page."""
        said = {"world": self.world, "policies": ",".join(policies), "threshold": THRESHOLD, **setting}
        fragment = "&".join(f"{name}={quote(str(value), safe=',')}" for name, value in said.items())
        return f"[{text}](#{fragment})"

    def tell(self) -> Html:
        """Suggest four settings, and say what is found there."""
        return numbered([self._budget(), self._threshold(), self._placebo(), self._oracle()])

    def _budget(self) -> str:
        protocol, usual, most = self.protocols[0], self.regime.budget, self.regime.horizon // 2
        policies, changes = ("no-probe", "periodic", "simple"), []
        for policy in policies[1:]:
            first, last = (self.read(policy, protocol, budget) for budget in (0, most))
            moved = [_moved(word, last[word][0] - first[word][0]) for word in ("accuracy", "success")]
            changes.append(f"{policy_title(policy)} {listed(moved)}")
        texts = {
            0: "without a budget",
            usual: f"the budget of the paper, B = {usual}",
            most: f"to B = {most}",
        }
        none, paper, all_of_it = (
            self.link(texts[budget], policies, protocol=protocol, budget=budget)
            for budget in (0, usual, most)
        )
        return (
            f"**What does a probe cost?** Start {none} in {WORLD_TITLES[self.world]} under `{protocol}`, "
            f"pass {paper}, and go on {all_of_it}. From the first to the last, {listed(changes)}."
        )

    def _threshold(self) -> str:
        protocol, budget, found, links = self.protocols[0], self.regime.budget, [], []
        for threshold, text in ((THRESHOLD, "at the threshold of the paper"), (HIGH_THRESHOLD, "at 2.5")):
            setting = {"protocol": protocol, "budget": budget, "threshold": threshold}
            links.append(self.link(text, ("simple", "minus-d"), **setting))
            reading = self.read("simple", **setting)
            fired, rate = reading["useful"][1], reading["useful_rate"]
            early = percent(sum(reading["fires"][:budget]) / fired) if fired else ""
            told = f"{early} of its probes fall within the first {budget} steps" if fired else "it fires none"
            useful = f", and a probing episode finds {percent(rate[0])} of them useful" if rate else ""
            found.append(f"at threshold {threshold:g}, {told}{useful}")
        return (
            f"**When does {policy_title('simple')} probe?** In {WORLD_TITLES[self.world]} under "
            f"`{protocol}`, watch the third plot {links[0]} and {links[1]}: {'; '.join(found)}."
        )

    def _placebo(self) -> str:
        budget, found = self.regime.budget, []
        for protocol in self.protocols:
            simple, placebo = (self.read(policy, protocol, budget) for policy in ("simple", "placebo"))
            gap = simple["accuracy"][0] - placebo["accuracy"][0]
            ahead = policy_title("simple" if gap > 0 else "placebo")
            told = (
                "every number of the two is the same"
                if simple == placebo
                else f"their accuracies are {number(100 * abs(gap), 1)} points apart, with {ahead} ahead"
                if abs(gap) >= SAME
                else "their accuracies are the same, though not every number is"
            )
            policies = ("no-probe", "simple", "placebo")
            link = self.link(f"under `{protocol}`", policies, protocol=protocol, budget=budget)
            found.append(f"{link} {told}")
        return (
            f"**Is it information?** The placebo spends its steps as {policy_title('simple')} does and is "
            f"told nothing. Compare the two in {WORLD_TITLES[self.world]}: {listed(found)}."
        )

    def _oracle(self) -> str:
        setting = {"protocol": self.protocols[0], "budget": self.regime.budget, "world": POOL}
        policies = ("no-probe", "simple", "oracle")
        told = [
            f"{policy_title(policy)} {number(self.read(policy, **setting)['accuracy'][0], 3)}"
            for policy in policies
        ]
        return (
            "**How much is there to win?** An oracle sees which beliefs are wrong and has the same budget. "
            f"{self.link('In all three worlds together', policies, **setting)}, under `{self.protocols[0]}`, "
            f"accuracy is: {listed(told)}."
        )


def _moved(word: str, change: float) -> str:
    if abs(change) < SAME:
        return f"keeps its {word}"
    return f"{'gains' if change > 0 else 'loses'} {number(100 * abs(change), 1)} points of {word}"


def tell_grid(grid: Mapping[str, Any] | None) -> Text:
    """Say how many settings the page holds, how they were run, and what they weigh."""
    if grid is None:
        return Text(
            "No grid was computed for this session: the engine answers each setting when it is asked for."
        )
    settings = sum(len(budgets) for rows in grid["rows"].values() for budgets in rows)
    return Text(
        f"The page carries {settings:,} settings: {len(grid['policies'])} policies, "
        f"{len(grid['budgets'])} budgets, {len(grid['thresholds'])} thresholds where a policy has one, each "
        f"world and the three pooled, under {code(grid['protocols'])}, on {grid['episodes']} paired seeds "
        "each. Many of them are the same episodes: a budget that is never reached, a threshold that no score "
        f"falls below. Only distinct trajectories are run; {len(grid['readings']['n']):,} distinct readings "
        f"are left, which take {len(packed(grid)) // 1000:,} kB of this page."
    )
