"""The episode player: recorded episodes to step through, one policy or two on one seed side by side.

Two policies meet the same instance, the same mutations and the same errors of the agent, so that whatever
differs between them follows from the first step at which they did something else. In the book the player
holds the episodes it was given. In JupyterLab the reader chooses any other, which the engine then runs; a
setting that cannot be run is refused in the widget, in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from envprobe_core.agents.profiles import PROFILES
from envprobe_core.cells import Cell, find_profile, find_regime, parse_seeds
from envprobe_core.engine.scoring import COLLAPSE
from envprobe_core.errors import InputError, look_up
from envprobe_core.facts.witness import Witnessed, witness
from envprobe_core.policies import POLICIES, Policy
from envprobe_core.protocols import PROTOCOLS, in_words, parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.show.figures import DARK, POLICY_STYLES, TERM_COLOURS, WORLD_TITLES, policy_title
from envprobe_core.show.markup import listed, signed
from envprobe_core.show.timeline import OUTCOMES, record_run
from envprobe_core.widgets.host import Widget
from envprobe_core.widgets.scenes import make_scene

if TYPE_CHECKING:
    import pandas as pd

BEST, MEDIAN, WORST = "best", "median", "worst"


@dataclass(frozen=True)
class Setting:
    """What is watched: one policy or two on one seed."""

    world: str = "tooldag"
    policies: tuple[str, ...] = ("simple", "periodic")  # one name or two
    seed: int = 0  # the episode
    regime: str = "S2"
    protocol: str = "paper"  # may have switches turned
    profile: str = "typical"
    budget: int | None = None  # probes allowed; None for the regime's own
    threshold: float | None = None  # of policies that have one; None for 1.5
    own: Mapping[str, Policy] = field(default_factory=dict)  # a reader's own policies by name

    def cells(self) -> list[Cell]:
        """Return the cell of each policy.

        Raises:
            InputError: for an unknown name or a value that a cell refuses; the message says which.
        """
        if self.seed < 0:
            raise InputError(f"seed {self.seed} is negative; accepted: 0, 1, 2, ...")
        known = {**POLICIES, **self.own}
        cells = []
        for name in self.policies:
            policy = look_up("policy", name, known)
            threshold = self.threshold if policy.has_threshold else None
            cells.append(
                Cell(
                    self.world, policy, find_regime(self.regime), parse_protocol(self.protocol),
                    find_profile(self.profile), self.budget, threshold,
                )
            )  # fmt: skip
        return cells


# --- what is recorded --------------------------------------------------------------------------


def record_pair(setting: Setting) -> dict[str, Any]:
    """Run a setting and return what the player shows of its one or two episodes.

    Returns:
        `key` (for links), `scene` (see `scenes.make_scene`), `runs` (see `timeline.record_run`), `parts` (the
        first step at which they differ, or None), `parting` (the same in words), `title`, `about`, `world
        seed regime protocol profile`.
    """
    seed = setting.seed
    seen = [witness(cell, np.array([seed], dtype=np.int64)) for cell in setting.cells()]
    cell, runs = seen[0].cell, [record_run(one) for one in seen]
    step = parting_step(*seen) if len(seen) > 1 else None
    title = f"{WORLD_TITLES[cell.world]}, seed {seed}"
    return {
        "key": f"{cell.world}-{cell.protocol.name}-{seed}",
        "title": title,
        "about": (
            f"{title}: {listed(dict.fromkeys(run['title'] for run in runs))} in {cell.regime.name} under "
            f"protocol {in_words(cell.protocol.name)}; simulated agent, profile {cell.profile.name}"
        ),
        "world": cell.world,
        "seed": seed,
        "regime": cell.regime.name,
        "protocol": cell.protocol.name,
        "rules": in_words(cell.protocol.name),
        "profile": cell.profile.name,
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


# --- episodes chosen by rule -------------------------------------------------------------------


def choose(gaps: pd.DataFrame) -> pd.DataFrame:
    """Pick rows of `protocol world seed difference` by rule, of equals the lowest seed, and add the `rule`.

    In every world under the first protocol `best`, the largest difference, `median` (the lower) and `worst`,
    the smallest; under the others the median.
    """
    import pandas as pd

    picked = []
    for (protocol, _), part in gaps.groupby(["protocol", "world"], sort=False):
        down = part.sort_values(["difference", "seed"], ascending=[False, True])
        up = part.sort_values(["difference", "seed"])
        rows = {BEST: down.iloc[0], MEDIAN: up.iloc[(len(up) - 1) // 2], WORST: up.iloc[0]}
        rules = rows if protocol == gaps["protocol"].iloc[0] else (MEDIAN,)
        picked += [{**rows[rule], "rule": rule} for rule in rules]
    return pd.DataFrame(picked)


def record_choices(
    choices: pd.DataFrame, budget: int | None = None, threshold: float | None = None
) -> list[dict[str, Any]]:
    """Record episodes for the player, with their group and label in its menu.

    Args:
        choices: from `choose`, with `regime profile` and the two policies, `policy other`.
    """
    pairs = []
    for row in choices.itertuples():
        first = policy_title(row.policy)
        words = {
            BEST: f"{first} best against the other",
            MEDIAN: "the median seed",
            WORST: f"{first} worst against the other",
        }
        setting = Setting(
            row.world, (row.policy, row.other), row.seed, row.regime, row.protocol, row.profile,
            budget, threshold,
        )  # fmt: skip
        group = f"{WORLD_TITLES[row.world]}, {in_words(row.protocol)}"
        label = f"{words[row.rule]} ({signed(row.difference)}): seed {row.seed}"
        pairs.append(record_pair(setting) | {"group": group, "label": label})
    return pairs


# --- the widget --------------------------------------------------------------------------------


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
        """
        self._own = {policy.name: policy for policy in policies}
        first = Setting(own=self._own)
        shown = list(pairs) or [record_pair(first)]
        state = {
            "pairs": shown,
            "start": start,
            "outcomes": OUTCOMES,
            "collapse": COLLAPSE,
            "inks": {term: [colour, DARK[colour]] for term, colour in TERM_COLOURS.items()},
            "marks": {name: style.mark() for name, style in POLICY_STYLES.items()},
        }
        if live:
            state["choices"] = _choices(first, self._own)
        super().__init__(state, identity=identity, fallback=_fallback(shown), live=live)

    def answer(self, setting: Mapping[str, str]) -> dict[str, Any]:
        """Return the episode that a reader chose (see `read_setting`)."""
        return {"pair": record_pair(read_setting(setting, self._own))}


def read_setting(given: Mapping[str, str], own: Mapping[str, Policy]) -> Setting:
    """Read what a reader chose in the form.

    Args:
        given: texts by name: `world first second protocol regime profile seed budget threshold`.

    Raises:
        InputError: if a number is none, or a seed is not one seed.
    """
    seeds = parse_seeds(given["seed"])
    if len(seeds) != 1:
        raise InputError(f"seed {given['seed']!r} names {len(seeds)} episodes; accepted: one whole number")
    numbers: dict[str, Any] = {}
    for name, kind, what in (("budget", int, "a whole number"), ("threshold", float, "a number")):
        try:
            numbers[name] = kind(given[name]) if given[name].strip() else None
        except ValueError:
            message = f"{name} {given[name]!r} is not {what}; leave it empty for the default"
            raise InputError(message) from None
    return Setting(
        given["world"], (given["first"], given["second"]), int(seeds[0]), given["regime"], given["protocol"],
        given["profile"], **numbers, own=own,
    )  # fmt: skip


def _choices(first: Setting, own: Mapping[str, Policy]) -> dict[str, Any]:
    """List what the form offers, as (value, text), and what it shows at first."""
    policies = [(name, policy_title(name)) for name in POLICIES]
    policies += [(name, policy.title) for name, policy in own.items()]
    shown = ("world", "protocol", "regime", "profile", "seed", "budget", "threshold")
    return {
        "world": list(WORLD_TITLES.items()),
        "first": policies,
        "second": policies,
        "protocol": [(name, in_words(name)) for name in dict.fromkeys((*PROTOCOLS, first.protocol))],
        "regime": [(name, f"{name}: {regime.title}") for name, regime in REGIMES.items()],
        "profile": [(name, name) for name in PROFILES],
        "setting": {
            **{name: getattr(first, name) for name in shown},
            "first": first.policies[0],
            "second": first.policies[-1],
        },
    }


def _fallback(pairs: Sequence[Mapping[str, Any]]) -> str:
    """Tell the first episode to readers without JavaScript."""
    pair = pairs[0]
    lines = ["The episode player needs JavaScript. Here is its first episode in words.", pair["about"]]
    lines += [pair["parting"]] * bool(pair["parting"])
    for run in pair["runs"]:
        lines += [f"{run['title']}, step {t}: {said}" for t, said in enumerate(run["sentence"])]
    return "\n".join(lines)
