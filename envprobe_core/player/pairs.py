"""Two policies on one seed, recorded side by side, and the step at which they part.

Both meet the same instance, the same mutations and the same errors of the agent, so that whatever differs
between them follows from the first step at which they did something else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from envprobe_core.cells import Cell, find_profile, find_regime
from envprobe_core.errors import InputError
from envprobe_core.figures import WORLD_TITLES
from envprobe_core.markup import listed
from envprobe_core.player.recording import record_run
from envprobe_core.player.scenes import make_scene
from envprobe_core.policies import POLICIES, Policy
from envprobe_core.protocols import parse_protocol
from envprobe_core.witness import Witnessed, witness


@dataclass(frozen=True)
class Setting:
    """What is watched: two policies, or one twice, on one seed.

    Attributes:
        world, regime, protocol, profile: their names; a protocol may have switches turned.
        policies: names of the two.
        seed: the episode.
        budget: probes allowed; None for the regime's own.
        threshold: of policies that have one; None for 1.5.
        own: a reader's own policies by name, beside those of the companion.
    """

    world: str = "tooldag"
    policies: tuple[str, ...] = ("simple", "periodic")
    seed: int = 0
    regime: str = "S2"
    protocol: str = "paper"
    profile: str = "typical"
    budget: int | None = None
    threshold: float | None = None
    own: Mapping[str, Policy] = field(default_factory=dict)

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
            if name not in known:
                raise InputError(f"unknown policy {name!r}; accepted: {', '.join(known)}")
            policy = known[name]
            cells.append(
                Cell(
                    self.world, policy, find_regime(self.regime), parse_protocol(self.protocol),
                    find_profile(self.profile), self.budget,
                    self.threshold if policy.has_threshold else None,
                )
            )  # fmt: skip
        return cells


def record_pair(setting: Setting) -> dict[str, Any]:
    """Run a setting and return what the player shows of it.

    Returns:
        `scene` (see `scenes.make_scene`), `runs` (see `recording.record_run`), `parts` (the first step at
        which they differ, or None), `parting` (the same in words), `title`, `about`, `valuetexts` (a text for
        every t of the longer run), `world seed regime protocol profile`.
    """
    seen = [witness(cell, np.array([setting.seed], dtype=np.int64)) for cell in setting.cells()]
    runs = [record_run(one) for one in seen]
    last = max(run["steps"] for run in runs)
    step = parting_step(*seen)
    title = f"{WORLD_TITLES[setting.world]}, seed {setting.seed}"
    cell = seen[0].cell
    return {
        "title": title,
        "about": (
            f"{title}: {listed(_distinct(run['title'] for run in runs))} in {setting.regime} under protocol "
            f"{cell.protocol.name}; simulated agent, profile {cell.profile.name}"
        ),
        "world": setting.world,
        "seed": setting.seed,
        "regime": setting.regime,
        "protocol": cell.protocol.name,
        "profile": cell.profile.name,
        "scene": make_scene(seen[0]),
        "runs": runs,
        "parts": step,
        "parting": parting_words(step, runs),
        "valuetexts": [_valuetext(runs, t, last) for t in range(last + 1)],
    }


def parting_step(one: Witnessed, other: Witnessed, row: int = 0) -> int | None:
    """Return the first step after which two recordings of one seed are not the same any more.

    That is where they do different things, or do the same and one agent is told the answer; None if they
    never part.
    """
    a, b = one.trajectory.rows(slice(row, row + 1)), other.trajectory.rows(slice(row, row + 1))
    steps = min(int(a.steps[0]), int(b.steps[0]))
    after = slice(1, steps + 1)
    differs = (a.probe[0, :steps] != b.probe[0, :steps]) | (a.action[0, :steps] != b.action[0, :steps])
    for name in ("belief", "gold", "staleness", "confidence"):
        differs |= (getattr(a, name)[0, after] != getattr(b, name)[0, after]).any(axis=1)
    if differs.any():
        return int(np.argmax(differs))
    return None


def parting_words(step: int | None, runs: Sequence[Mapping[str, Any]]) -> str:
    """Say where two runs part."""
    if len(runs) == 1 or runs[0]["title"] == runs[1]["title"]:
        return "One policy is shown twice; there is nothing to part."
    names = listed(run["title"] for run in runs)
    if step is None:
        return f"{names} never part on this seed: every step is the same."
    deeds = [run["brief"][step] for run in runs]
    if deeds[0] == deeds[1]:
        return (
            f"They first differ at step {step}: both do the same ({deeds[0]}), and the agents come to know "
            "different things by it."
        )
    return f"They first differ at step {step}: {runs[0]['title']} {deeds[0]}, {runs[1]['title']} {deeds[1]}."


def _distinct(names: Any) -> list[str]:
    return list(dict.fromkeys(names))


def _valuetext(runs: Sequence[Mapping[str, Any]], t: int, last: int) -> str:
    said = "; ".join(f"{run['title']} {_said(run, t)}" for run in runs)
    return f"step {t} of {last}: {said}"


def _said(run: Mapping[str, Any], t: int) -> str:
    return run["brief"][t] if t < run["steps"] else "has ended"
