"""The explorer: budget and threshold under the reader's hand.

In the book it reads the grid that the page carries. In JupyterLab the engine answers, so that a reader may
leave the grid: any threshold, any budget up to H, other seeds, horizons, regimes and profiles, own policies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, cycle
from typing import Any
from urllib.parse import quote

from envprobe_book.claims import printed_levels
from envprobe_book.pages.figures import AMBER, GREEN, POLICY_STYLES, PURPLE, VERMILLION, Style
from envprobe_book.widgets.grid import POOL, THRESHOLDS, VIEWS, Setting, pooled, take_readings
from envprobe_book.widgets.host import Widget
from envprobe_core.agents.profiles import PROFILES
from envprobe_core.comparing import STRATA
from envprobe_core.conditions import Condition, find_profile, find_regime, is_whole, parse_seeds
from envprobe_core.engine.records import LONGEST_HORIZON
from envprobe_core.engine.scoring import COLLAPSE
from envprobe_core.errors import InputError, look_up
from envprobe_core.policies import POLICIES, THRESHOLD, Policy
from envprobe_core.protocols import in_words, parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.statistics import RESAMPLES
from envprobe_core.worlds import WORLDS

COMPARED = ("no-probe", "periodic", "simple", "placebo")  # at first, beside a reader's own policies
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
MOST_SEEDS = 2_000  # of each policy, so that an answer does not take minutes


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
        identity: str = "explorer",
    ) -> None:
        """Offer the companion's policies and a reader's own.

        Args:
            grid: what a static page shows, from `experiment.load_grid`; where there is one, the regime,
                profile and seeds are its own. Without it the widget needs a kernel.
            policies: a reader's own, from `policies.custom_policy`; for the kernel to run.
            seeds: as `conditions.parse_seeds` reads them.

        Raises:
            InputError: for an unknown name, or a policy that has the name of another.
        """
        if grid is not None:
            regime, profile, seeds = grid["regime"], grid["profile"], grid["seeds"]
        level, self._resamples = find_regime(regime), resamples
        self._policies = POLICIES | {policy.name: policy for policy in policies}
        if len(self._policies) < len(POLICIES) + len(policies):
            taken = ", ".join([*POLICIES, *(policy.name for policy in policies)])
            raise InputError(f"two policies have the same name; names given and taken: {taken}")
        protocols = tuple(PROTOCOL_LINES) if grid is None else grid["protocols"]
        styles = chain((POLICY_STYLES[name] for name in POLICIES), cycle(OWN_STYLES))
        worlds = WORLDS | {POOL: "All three worlds"}
        words = {
            "worlds": [{"name": name, "title": title} for name, title in worlds.items()],
            "policies": [
                {"name": own.name, "title": own.title, "threshold": own.has_threshold, **style.mark()}
                for own, style in zip(self._policies.values(), styles, strict=False)
            ],
            "protocols": [
                {"name": name, "title": in_words(name), "line": PROTOCOL_LINES.get(name, TURNED)}
                for name in protocols
            ],
            "regimes": [
                {name: getattr(one, name) for name in ("name", "title", "horizon", "budget")}
                for one in REGIMES.values()
            ],
            "profiles": [{"name": name} for name in PROFILES],
            "threshold": THRESHOLD,
            "thresholds": list(THRESHOLDS),
            "collapse": COLLAPSE,
            "points": printed_points(),
        }
        start = {
            "world": VIEWS[0], "protocol": protocols[0], "budget": level.budget, "threshold": THRESHOLD,
            "regime": regime, "horizon": level.horizon, "profile": find_profile(profile).name, "seeds": seeds,
            "policies": [*COMPARED, *(policy.name for policy in policies)],
        }  # fmt: skip
        state = {"vocabulary": words, "start": start}
        super().__init__(state, identity=identity, fallback=WITHOUT_SCRIPT, live=True)
        self.page_state = None
        if grid is not None:  # of the policies, those that are in it
            held = [policy for policy in words["policies"] if policy["name"] in grid["policies"]]
            start = start | {"policies": list(COMPARED)}
            words = words | {"policies": held, "budgets": list(grid["budgets"])}
            self.page_state = {"vocabulary": words, "grid": dict(grid), "start": start}

    def answer(self, setting: Mapping[str, Any]) -> dict[str, Any]:
        """The readings of a setting that a form sent, and how many episodes they are of.

        Args:
            setting: `world` (or pool), `protocol` (switches allowed), `policies` (names), `regime`,
                `horizon`, `budget`, `threshold`, `profile`, `seeds` (text); nothing is taken on trust.

        Returns:
            `readings`, policy name -> what `experiment.take_readings` gives, and `episodes`.

        Raises:
            InputError: what is wrong, the value given and what is accepted; also with the words of a reader's
                own policy that failed.
        """
        seeds = parse_seeds(str(setting["seeds"]))
        if len(seeds) > MOST_SEEDS:
            raise InputError(f"seeds {setting['seeds']!r}: {len(seeds)} seeds; at most {MOST_SEEDS} here")
        asked = {name: self._cells(setting, name) for name in setting["policies"]}
        try:
            found = take_readings(list(asked.values()), seeds, resamples=self._resamples)
        except InputError:
            raise
        except Exception as error:  # a reader's score function may raise anything
            raise InputError(f"the episodes could not be run: {type(error).__name__}: {error}") from error
        readings = dict(zip(asked, found, strict=True))
        return {"readings": readings, "episodes": sum(reading["n"] for reading in found)}

    def _cells(self, given: Mapping[str, Any], name: str) -> Setting:
        """The conditions of one policy that a question names."""
        world, horizon, threshold = (given[part] for part in ("world", "horizon", "threshold"))
        if world not in VIEWS:
            raise InputError(f"unknown world {world!r}; accepted: {', '.join(VIEWS)}")
        if not is_whole(horizon) or not 1 <= horizon <= LONGEST_HORIZON:
            raise InputError(f"horizon {horizon!r} is not a whole number in 1..{LONGEST_HORIZON}")
        policy = look_up("policy", name, self._policies)
        if policy.has_threshold and not isinstance(threshold, int | float):
            raise InputError(f"threshold {threshold!r} is not a number")
        condition = Condition(
            VIEWS[0] if world == POOL else world,
            policy,
            replace(find_regime(given["regime"]), horizon=horizon),
            parse_protocol(str(given["protocol"])),
            find_profile(given["profile"]),
            given["budget"],
            float(threshold) if policy.has_threshold else None,
        )
        return pooled(condition) if world == POOL else (condition,)


def printed_points() -> list[dict[str, Any]]:
    """The paper's own levels: `world policy accuracy success source`, None where not printed.

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


def fragment(setting: Mapping[str, Any]) -> str:
    """The end of an address that puts the explorer at a setting.

    >>> fragment({"world": "tooldag", "budget": 3})
    '#world=tooldag&budget=3'
    """
    return "#" + "&".join(f"{name}={quote(str(value), safe=',')}" for name, value in setting.items())
