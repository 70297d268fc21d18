"""Calibration: what an agent profile is fitted to, what may vary, and how far a profile is from the paper.

Targets are the accuracies that the paper prints for Periodic and its canonical confident-wrong rate p_cw, and
nothing else; they are measured under `released`, with the public code's
estimators. Simple and Oracle run for p_cw alone, which that code counts in their cells; no other figure of
theirs is read, nor is success, and there are more targets than free parameters. The accuracy of No-Probe is
measured and does not count: what the paper prints of it contradicts itself. The search is in
`calibration_search`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from envprobe_core.agents.profiles import SCRIBE, AgentProfile
from envprobe_core.cells import Cell
from envprobe_core.claims.printed import PaperValue, paper_value
from envprobe_core.engine.recording import Columns
from envprobe_core.engine.running import measure, record
from envprobe_core.measures import REPORTING, confident_counts
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import RELEASED, Protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.sweep import Seeds, Task, named, run_cells
from envprobe_core.worlds import WORLDS

if TYPE_CHECKING:
    import pandas as pd

PROTOCOL, REGIME = RELEASED, REGIMES["S2"]
TARGET_POLICIES = ("no-probe", "periodic", *REPORTING)
SCALE = 0.03  # the margin that claims.csv allows a level, stated before the fit
Floats = npt.NDArray[np.float64]
Place = tuple[str, str, str]  # source, row and column of tables.csv


@dataclass(frozen=True)
class Target:
    """One number of the paper that the fit may use.

    Attributes:
        name: ours.
        symbol: as figures write it.
        policy: the policy whose accuracy it is; None for p_cw, which is over those that are counted.
        worlds: the worlds pooled, each episode counting once.
        kind: as the column `input` of claims.csv calls it.
        place: where tables.csv has it.
        repeats: further places that print the same quantity, with whatever value.
        follows: whether it follows from other targets by arithmetic.
        dropped: why it does not count, empty where it does.
    """

    name: str
    symbol: str
    policy: str | None
    worlds: tuple[str, ...]
    kind: str
    place: Place
    repeats: tuple[Place, ...] = ()
    follows: bool = False
    dropped: str = ""

    @property
    def printed(self) -> PaperValue:
        """Return the paper's number."""
        return paper_value(*self.place)

    @property
    def value(self) -> float:
        """Return the paper's number as a share."""
        return self.printed.value


_SPATIAL = ("objectstate", "graphnav")
_PERIODIC, _NO_PROBE, _PCW = "periodic accuracy", "no-probe accuracy", "canonical p_cw"
TARGETS: tuple[Target, ...] = (
    Target(
        "No-Probe accuracy, spatial", "No-Probe (spatial)", "no-probe", _SPATIAL, _NO_PROBE,
        ("tab:ordering", "spatial: self-uncertainty vs no-probe", "reference_accuracy"),
        dropped="its row gives two differences for the same two levels",
    ),
    Target(
        "Periodic accuracy, procedural", "Periodic (procedural)", "periodic", ("tooldag",), _PERIODIC,
        ("tab:main", "procedural: simple vs periodic", "reference_accuracy"),
        (("tab:ordering", "procedural: simple vs periodic", "reference_accuracy"),),
    ),
    Target(
        "Periodic accuracy, spatial", "Periodic (spatial)", "periodic", _SPATIAL, _PERIODIC,
        ("tab:main", "spatial: simple vs periodic", "reference_accuracy"),
        (("tab:ordering", "spatial: periodic vs self-uncertainty", "method_accuracy"),),
    ),
    Target(
        "Periodic accuracy, combined", "Periodic (combined)", "periodic", ("tooldag", *_SPATIAL), _PERIODIC,
        ("tab:main", "combined: simple vs periodic", "reference_accuracy"), follows=True,
    ),
    Target(
        "confident-wrong rate $p_{cw}$, canonical", "confident-wrong rate", None, ("tooldag", *_SPATIAL),
        _PCW,
        ("tab:pcw_audit", "canonical", "confident_wrong"),
        (
            ("sec:results:secondary", "canonical", "confident_wrong"),
            ("sec:results:secondary", "supplementary audit", "confident_wrong"),
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Free:
    """A rate that the fit may choose, its range, and why this one."""

    name: str
    low: float
    high: float
    why: str


BASE = SCRIBE  # every behaviour that is not free stays as it is here
FREE: tuple[Free, ...] = (
    Free("lost", 0.0, 1.0, "a stray call names a tool that is not ready, and a stray move leaves the way"),
    Free("loop", 0.0, 1.0, "a repeated action is mostly not valid, so that less gets done"),
)
ASSUMPTION = (
    "The scribe, with its two rates ({rates}) fitted to the accuracies which the paper prints for Periodic "
    "and to its confident-wrong rate, under `released`. An account of those figures, not a likely agent."
)
COUNTED = np.array([not target.dropped for target in TARGETS])


def independent(targets: Sequence[Target] = TARGETS) -> int:
    """Count the targets that count and do not follow from others."""
    return sum(not target.follows and not target.dropped for target in targets)


def target_values(targets: Sequence[Target] = TARGETS) -> Floats:
    """Return the paper's numbers, [target]."""
    return np.array([target.value for target in targets])


def calibration_cells(profiles: Sequence[AgentProfile], protocol: Protocol = PROTOCOL) -> list[Cell]:
    """Return the cells that the targets are measured on, in the order [world, policy, profile]."""
    return [
        Cell(world, POLICIES[policy], REGIME, protocol, profile)
        for world in WORLDS
        for policy in TARGET_POLICIES
        for profile in profiles
    ]


def measure_with_confidence(task: Task) -> Columns:
    """Run a task and score its episodes, with the counts of `measures.confident_counts` where they count."""
    parts = []
    for piece in task.pieces:
        if piece.cell.policy.name in REPORTING:
            recording = record(piece.cell, piece.seeds, scores_all=False)
            parts.append(recording.measures | confident_counts(recording, piece.cell))
        else:
            nothing = np.zeros(len(piece.seeds), np.int64)
            counts = {"confident": nothing, "confident_wrong": nothing}
            parts.append(measure(piece.cell, piece.seeds) | counts)
    names = ["accuracy", "confident", "confident_wrong"]
    return named(task, {name: np.concatenate([part[name] for part in parts]) for name in names})


def predict(
    profiles: Sequence[AgentProfile],
    seeds: Seeds | None = None,
    *,
    protocol: Protocol = PROTOCOL,
    jobs: int = 1,
) -> Floats:
    """Measure the targets for many profiles on common random numbers, in one call of the engine.

    Args:
        profiles: the agents.
        seeds: by default those of the released main run, 42..261.
        protocol: another than the targets', to ask what it does to them; a fit never sees one.
        jobs: processes; changes nothing but speed.

    Returns:
        [profile, target], shares; p_cw is 0 for an agent that is never confident.
    """
    cells = calibration_cells(profiles, protocol)
    if seeds is None:
        seeds = calibration_cells(profiles[:1])[0].default_seeds()
    table = run_cells(cells, seeds, jobs=jobs, work=measure_with_confidence)
    shape = (len(WORLDS), len(TARGET_POLICIES), len(profiles), -1)
    accuracy = table["accuracy"].reshape(shape).mean(axis=-1)
    confident, wrong = (
        table[name].reshape(shape).sum(axis=(0, 1, 3)) for name in ("confident", "confident_wrong")
    )
    return np.stack(
        [_pooled(target, accuracy, wrong / np.maximum(confident, 1)) for target in TARGETS], axis=-1
    )


def _pooled(target: Target, accuracy: Floats, confident_wrong: Floats) -> Floats:
    """Return a target's value, [profile], from accuracy [world, policy, profile] and p_cw [profile]."""
    if target.policy is None:
        return confident_wrong
    policy, worlds = TARGET_POLICIES.index(target.policy), list(WORLDS)
    total = accuracy[worlds.index(target.worlds[0]), policy]
    for world in target.worlds[1:]:
        total = total + accuracy[worlds.index(world), policy]
    return total / len(target.worlds)


def loss(predicted: Floats, paper: Floats, counted: npt.NDArray[np.bool_] | None = None) -> Floats:
    """Return the objective 2 sum(sqrt(1 + z^2) - 1) with z = (ours - paper's) / SCALE, [...].

    It is quadratic for a target that is met within the scale and linear beyond ("soft L1"), so that a target
    out of reach pulls steadily and cannot buy its distance by spoiling all the others.

    Args:
        predicted: [..., target].
        paper: [target].
        counted: [target], the targets that count; by default those that are not dropped.
    """
    z = (predicted - paper) / SCALE
    terms = 2.0 * (np.sqrt(1.0 + z * z) - 1.0)
    return np.where(COUNTED if counted is None else counted, terms, 0.0).sum(axis=-1)


def candidate(
    thousandths: Sequence[int], free: Sequence[Free] = FREE, base: AgentProfile = BASE
) -> AgentProfile:
    """Return the base profile with the free rates set, given in thousandths."""
    rates = {item.name: int(whole) / 1000 for item, whole in zip(free, thousandths, strict=True)}
    return replace(base, name="calibrated", **rates, assumption=ASSUMPTION.format(rates=", ".join(rates)))


def compare_targets(
    profiles: Sequence[AgentProfile], seeds: Seeds | None = None, *, jobs: int = 1
) -> pd.DataFrame:
    """Set what profiles give beside what the paper prints.

    Args:
        profiles: the agents; their names tell them apart.
        seeds: as in `predict`.
        jobs: processes; changes nothing but speed.

    Returns:
        One row a profile and target: `profile target symbol kind paper ours residual`; the residual is ours
        minus the paper's.
    """
    import pandas as pd

    ours = predict(profiles, seeds, jobs=jobs)
    rows = []
    for profile, values in zip(profiles, ours, strict=True):
        for target, value in zip(TARGETS, values.tolist(), strict=True):
            about = (profile.name, target.name, target.symbol, target.kind, target.value)
            rows.append((*about, value, value - target.value))
    names = ["profile", "target", "symbol", "kind", "paper", "ours", "residual"]
    return pd.DataFrame(rows, columns=names)
