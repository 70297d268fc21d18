"""The explorer: every setting under the reader's hand, run in the page by the engine that it carries.

What Python gives is no result but words: how policies and protocols are told, the levels that the paper
prints, and the setting at first. `explorer.js` beside this module runs what the reader asks for, in the book
and in JupyterLab alike.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from envprobe_book.claims import printed_levels
from envprobe_book.live_figures.scripts import lab_widget
from envprobe_book.pages.figures import POLICY_STYLES, policy_title
from envprobe_book.pages.markup import script_json
from envprobe_book.pages.switches import deeds, words_of
from envprobe_core.comparing import STRATA
from envprobe_core.conditions import find_policies, find_profile, find_regime, parse_seeds
from envprobe_core.errors import InputError
from envprobe_core.naming import find_name
from envprobe_core.policies import POLICIES, THRESHOLD, find_policy
from envprobe_core.protocols import FAULTS, PROTOCOLS, in_words, parse_protocol
from envprobe_core.worlds import WORLDS, world_titles

POOL = "pool"
VIEWS = (*WORLDS, POOL)
COMPARED = ("no-probe", "periodic", "simple", "placebo")
FAULTS_IN_WORDS = {
    "wrong": ("Answers that are wrong", "%"),
    "delay": ("Steps by which answers come late", ""),
    "failing": ("The agent’s calls that fail", "%"),
}
"""What is called how where it differs from both text and code, and its unit."""
FEWEST, MOST = 10, 5_000  # seeds of a policy
WITHOUT_SCRIPT = (
    "Here stands an interactive figure, which needs JavaScript. It runs any setting of the experiment and "
    "draws accuracy, success, their differences, accuracy over time, when probes fire, and useful probes."
)
ABOUT = (
    "Every number is of a simulated agent, and was run in this page just now; all policies meet the same "
    "episodes. Intervals are 95%, differences paired. Diamonds are what the paper prints of its language "
    "model."
)


@dataclass(frozen=True)
class Explorer:
    """The explorer at a setting; a notebook's last expression."""

    start: dict[str, Any]

    def as_data(self) -> dict[str, Any]:
        """What a page is given: words, printed levels, and the setting at first."""
        series = {
            name: style.mark() | {"title": policy_title(name), "dash": ""}
            for name, style in POLICY_STYLES.items()
        }
        return {
            "start": self.start,
            "series": series,
            "protocols": {name: in_words(name) for name in PROTOCOLS},
            "switches": switches_in_words(),
            "faults": {fault: words_of(fault, FAULTS_IN_WORDS, "FAULTS_IN_WORDS") for fault in FAULTS},
            "printed": printed_points(),
            "about": ABOUT,
        }

    def page_html(self) -> str:
        """The explorer in a page: a sentence, which a script replaces, and what it is given."""
        data = script_json(self.as_data())
        return (
            f'<div class="live-explorer" data-engine id="explorer">'
            f'<p class="live-static">{WITHOUT_SCRIPT}</p>'
            f'<script type="application/json">{data}</script></div>'
        )

    def _repr_mimebundle_(self, **keywords: Any) -> Any:
        widget = lab_widget(self.as_data(), front="explorer")
        data, metadata = widget._repr_mimebundle_(**keywords) or ({}, {})
        return {**data, "text/html": self.page_html(), "text/plain": WITHOUT_SCRIPT}, metadata


def explorer(
    world: str = "tooldag",
    policies: str | Iterable[str] = COMPARED,
    *,
    protocol: str = "paper",
    reference: str = "periodic",
    regime: str = "S2",
    profile: str = "typical",
    seeds: str = "0:220",
) -> Explorer:
    """The explorer, which begins at a setting; the reader moves it from there.

    Args:
        world: a world, or `pool` for all three.
        policies: those compared at first.
        protocol: as on the command line, switches allowed.
        reference: of differences.
        regime: its budget and horizon too.
        profile: of the simulated agent.
        seeds: `FIRST:PAST`, 10 to 5,000 of them.

    Raises:
        InputError: for an unknown name, or seeds that the explorer does not take.

    >>> explorer("pool", "periodic simple").start["policies"]
    'periodic,simple'
    """
    world = find_name("world", world, {name: world_titles().get(name, ()) for name in VIEWS})
    compared = [policy.name for policy in find_policies(policies)]
    reference = find_policy(reference).name
    given = parse_seeds(seeds)
    first, past = int(given[0]), int(given[-1]) + 1
    if past - first != len(given) or not FEWEST <= len(given) <= MOST:
        raise InputError(f"seeds {seeds!r}: {FEWEST} to {MOST} seeds in one run, FIRST:PAST, are accepted")
    start = {
        "world": world, "protocol": parse_protocol(protocol).name, "policies": ",".join(compared),
        "reference": reference, "regime": find_regime(regime).name, "horizon": None, "mutation_rate": None,
        "profile": find_profile(profile).name, "habits": "", "seeds": f"{first}:{past}", "budget": None,
        "threshold": THRESHOLD,
    }  # fmt: skip
    return Explorer(start)


def link(**setting: Any) -> str:
    """The address of the explorer at a setting, from any page beside it.

    >>> link(world="pool", policies=["simple", "oracle"], budget=3)
    'explorer.html?world=pool&policies=simple,oracle&budget=3'
    """
    texts = {
        name: value if isinstance(value, str | int | float) else ",".join(value)
        for name, value in setting.items()
    }
    return "explorer.html?" + "&".join(
        f"{name}={quote(str(value), safe=',:=')}" for name, value in texts.items()
    )


def switches_in_words() -> dict[str, list[tuple[str, str]]]:
    """The switches in which text and code differ, each with the text's value and the code's, in words.

    >>> switches_in_words()["end"]
    [('horizon', 'go on after success'), ('success', 'stop at success')]
    """
    paper, released = PROTOCOLS["paper"], PROTOCOLS["released"]
    return {
        switch: [(value, words[value][0]) for value in (getattr(paper, switch), getattr(released, switch))]
        for switch, words in deeds().items()
    }


def printed_points() -> dict[str, dict[str, dict[str, float]]]:
    """The paper's own levels, world -> policy -> measure, where its stratum is a world here or the pool.

    They were measured with its language model, and stand beside every setting alike.
    """
    world_of = {STRATA["procedural"]: STRATA["procedural"][0], STRATA["combined"]: POOL}
    found: dict[str, dict[str, dict[str, float]]] = {}
    for (stratum, policy), printed in printed_levels().items():
        world = world_of.get(STRATA.get(stratum, ()))
        if world is None or policy not in POLICIES:
            continue
        own = found.setdefault(world, {}).setdefault(policy, {})
        if "accuracy" in printed:
            own["accuracy"] = printed["accuracy"].value
        if "success_pct" in printed:
            own["success"] = printed["success_pct"].value / 100
    return found
