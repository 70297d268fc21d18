"""The episode player: recorded episodes to step through, one policy or two on one seed side by side.

Two policies meet the same instance, the same mutations and the same errors of the agent, so that whatever
differs between them follows from the first step at which they did something else. In the book the player
holds the episodes it was given. In JupyterLab the reader chooses any other, which the engine then runs; a
setting that cannot be run is refused in the widget, in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envprobe_core.agents.profiles import PROFILES
from envprobe_core.cells import Cell, find_profile, find_regime, parse_seeds
from envprobe_core.engine.scoring import COLLAPSE
from envprobe_core.errors import InputError, look_up
from envprobe_core.facts.witness import Witnessed, witness
from envprobe_core.policies import POLICIES, Policy
from envprobe_core.protocols import PROTOCOLS, in_words, parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.show.figures import DARK, POLICY_STYLES, TERM_COLOURS, WORLD_TITLES
from envprobe_core.show.markup import listed
from envprobe_core.show.timeline import OUTCOMES, record_run
from envprobe_core.widgets.host import Widget
from envprobe_core.widgets.scenes import make_scene

PAIR = ("simple", "periodic")


def record_pair(
    world: str = "tooldag",
    policies: Sequence[str] = PAIR,
    seed: int = 0,
    regime: str = "S2",
    protocol: str = "paper",
    profile: str = "typical",
    budget: int | None = None,
    threshold: float | None = None,
    *,
    own: Sequence[Policy] = (),
) -> dict[str, Any]:
    """Run one policy or two on a seed and return what the player shows.

    Args:
        policies: one name or two.
        protocol: may have switches turned.
        budget: probes allowed; None for the regime's own.
        threshold: of policies that have one; None for 1.5.
        own: a reader's own policies, whose names `policies` may hold.

    Returns:
        `key` (for links), `scene` (see `scenes.make_scene`), `runs` (see `timeline.record_run`), `parts` (the
        first step at which they differ, or None), `parting` (the same in words), `title`, `about`, `world
        seed regime protocol profile`.

    Raises:
        InputError: for an unknown name or a value that a cell refuses; the message says which.
    """
    if seed < 0:
        raise InputError(f"seed {seed} is negative; accepted: 0, 1, 2, ...")
    known = POLICIES | {policy.name: policy for policy in own}
    level, rules, agent = find_regime(regime), parse_protocol(protocol), find_profile(profile)
    seen = []
    for policy in (look_up("policy", name, known) for name in policies):
        gate = threshold if policy.has_threshold else None
        cell = Cell(world, policy, level, rules, agent, budget, gate)
        seen.append(witness(cell, np.array([seed], dtype=np.int64)))
    runs = [record_run(one) for one in seen]
    step = parting_step(*seen) if len(seen) > 1 else None
    title = f"{WORLD_TITLES[world]}, seed {seed}"
    return {
        "key": f"{world}-{rules.name}-{seed}",
        "title": title,
        "about": (
            f"{title}: {listed(dict.fromkeys(run['title'] for run in runs))} in {regime} under "
            f"protocol {in_words(rules.name)}; simulated agent, profile {profile}"
        ),
        "world": world,
        "seed": seed,
        "regime": regime,
        "protocol": rules.name,
        "rules": in_words(rules.name),
        "profile": profile,
        "scene": make_scene(seen[0]),
        "runs": runs,
        "parts": step,
        "parting": parting_words(step, runs),
    }


def parting_step(one: Witnessed, other: Witnessed) -> int | None:
    """Return the first step after which two recordings of one seed are not the same any more.

    That is where they do different things, or do the same and one agent is told the answer; None if they
    never part.
    """
    a, b = one.trajectory, other.trajectory
    steps = min(int(a.steps[0]), int(b.steps[0]))
    after = slice(1, steps + 1)
    differs = (a.probe[0, :steps] != b.probe[0, :steps]) | (a.action[0, :steps] != b.action[0, :steps])
    for name in ("belief", "gold", "staleness", "confidence"):
        differs |= (getattr(a, name)[0, after] != getattr(b, name)[0, after]).any(axis=1)
    return int(np.argmax(differs)) if differs.any() else None


def parting_words(step: int | None, runs: Sequence[Mapping[str, Any]]) -> str:
    """Say where two runs part; nothing of one."""
    if len(runs) == 1:
        return ""
    if runs[0]["title"] == runs[1]["title"]:
        return "One policy is shown twice; there is nothing to part."
    if step is None:
        return f"{listed(run['title'] for run in runs)} never part on this seed: every step is the same."
    deeds = [run["brief"][step] for run in runs]
    if deeds[0] == deeds[1]:
        return (
            f"They first differ at step {step}: both do the same ({deeds[0]}), and the agents come to know "
            "different things by it."
        )
    return f"They first differ at step {step}: {runs[0]['title']} {deeds[0]}, {runs[1]['title']} {deeds[1]}."


class Player(Widget):
    """Episodes to watch."""

    module = "player"

    def __init__(
        self,
        pairs: Sequence[Mapping[str, Any]] = (),
        *,
        start: int = 0,
        live: bool = False,
        policies: Sequence[Policy] = (),
        identity: str = "player",
    ) -> None:
        """Show recorded episodes, and in JupyterLab any other.

        Args:
            pairs: from `record_pair`; more than one need a `group` and a `label` for the menu.
            live: whether Python answers: the reader then chooses any setting.
            policies: a reader's own.
        """
        self._own, shown = tuple(policies), list(pairs) or [record_pair()]
        state = {
            "pairs": shown,
            "start": start,
            "outcomes": OUTCOMES,
            "collapse": COLLAPSE,
            "inks": {term: [colour, DARK[colour]] for term, colour in TERM_COLOURS.items()},
            "marks": {name: style.mark() for name, style in POLICY_STYLES.items()},
        }
        if live:
            state["choices"] = _choices(self._own)
        super().__init__(state, identity=identity, fallback=_fallback(shown), live=live)

    def answer(self, setting: Mapping[str, str]) -> dict[str, Any]:
        """Return the episode that a reader chose, every value a text as the form sends it."""
        seeds = parse_seeds(setting["seed"])
        if len(seeds) != 1:
            raise InputError(
                f"seed {setting['seed']!r} names {len(seeds)} episodes; accepted: one whole number"
            )
        budget = _number("budget", setting["budget"], int, "a whole number")
        threshold = _number("threshold", setting["threshold"], float, "a number")
        pair, seed = (setting["first"], setting["second"]), int(seeds[0])
        rest = (setting[name] for name in ("regime", "protocol", "profile"))
        return {"pair": record_pair(setting["world"], pair, seed, *rest, budget, threshold, own=self._own)}


def _number(name: str, text: str, kind: type, what: str) -> Any:
    """Read a number that may be left out."""
    try:
        return kind(text) if text.strip() else None
    except ValueError:
        raise InputError(f"{name} {text!r} is not {what}; leave it empty for the default") from None


def _choices(own: Sequence[Policy]) -> dict[str, Any]:
    """List what the form offers, as (value, text), and what it shows at first."""
    policies = [(policy.name, policy.title) for policy in (*POLICIES.values(), *own)]
    return {
        "world": list(WORLD_TITLES.items()),
        "first": policies,
        "second": policies,
        "protocol": [(name, in_words(name)) for name in PROTOCOLS],
        "regime": [(name, f"{name}: {regime.title}") for name, regime in REGIMES.items()],
        "profile": [(name, name) for name in PROFILES],
        "setting": {
            "world": "tooldag", "protocol": "paper", "regime": "S2", "profile": "typical", "seed": 0,
            "budget": None, "threshold": None, "first": PAIR[0], "second": PAIR[1],
        },
    }  # fmt: skip


def _fallback(pairs: Sequence[Mapping[str, Any]]) -> str:
    """Put the first episode into words, for readers without JavaScript."""
    pair = pairs[0]
    lines = ["The episode player needs JavaScript. Here is its first episode in words.", pair["about"]]
    lines += [pair["parting"]] * bool(pair["parting"])
    for run in pair["runs"]:
        lines += [f"{run['title']}, step {t}: {said}" for t, said in enumerate(run["sentence"])]
    return "\n".join(lines)
