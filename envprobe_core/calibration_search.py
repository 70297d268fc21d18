"""The search behind a fitted profile: differential evolution over a grid of thousandths, and its record.

Every generation is one call of the engine over all its candidates. The best point is a point of the grid that
was evaluated, so that the committed profile is, to the last bit, what the search found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core import __version__
from envprobe_core.agents.profiles import PROFILE_FOLDER, AgentProfile, as_record, read_record
from envprobe_core.calibration import (
    BASE,
    COUNTED,
    FREE,
    PROTOCOL,
    REGIME,
    SCALE,
    TARGET_POLICIES,
    TARGETS,
    Floats,
    Free,
    candidate,
    independent,
    loss,
    predict,
    target_values,
)
from envprobe_core.cells import RELEASED_SEEDS
from envprobe_core.errors import InputError
from envprobe_core.sweep import Seeds

COMMAND = "envprobe calibrate --out calibrated.json"
THOUSANDTHS = 1000
Point = tuple[int, ...]


@dataclass(frozen=True)
class Settings:
    """How long and from where the search runs; the defaults made the committed profile."""

    population: int = 32  # a power of two: the first generation is a scrambled Sobol sequence
    generations: int = 24
    left_out_generations: int = 8
    seed: int = 20_250_101

    def as_dict(self) -> dict[str, Any]:
        """Return the settings by name, with the method's own."""
        return {
            "method": "scipy.optimize.differential_evolution",
            "strategy": "best1bin",
            "grid": 1 / THOUSANDTHS,
            "population": self.population,
            "generations": self.generations,
            "left_out_generations": self.left_out_generations,
            "seed": self.seed,
        }


DEFAULT = Settings()


@dataclass(frozen=True)
class Fit:
    """What a search found.

    Attributes:
        profile: the fitted agent.
        predicted: [target], what it gives.
        loss: the objective over the targets that counted.
        evaluations: distinct candidates that had been evaluated by then.
        left_out: the kind of target that did not count, empty if all did.
        first_loss: the best of the first generation.
    """

    profile: AgentProfile
    predicted: Floats
    loss: float
    evaluations: int
    left_out: str = ""
    first_loss: float = float("nan")

    @property
    def residuals(self) -> Floats:
        """Return ours minus the paper's, [target]."""
        return self.predicted - target_values()


@dataclass
class Search:
    """Candidates and what they give; each is simulated once, whatever it is judged by.

    Attributes:
        free: the rates that may vary.
        base: the profile that holds all others.
        seeds: by default those of the released main run.
        jobs: processes; changes nothing but speed.
        tell: called after every generation with the number of candidates evaluated so far.
        seen: what is known, by point in thousandths.
    """

    free: Sequence[Free] = FREE
    base: AgentProfile = BASE
    seeds: Seeds | None = None
    jobs: int = 1
    tell: Callable[[int], None] | None = None
    seen: dict[Point, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a fit with as many free rates as independent targets."""
        targets = independent()
        if len(self.free) >= targets:
            raise InputError(
                f"{len(self.free)} free rates for {targets} independent targets; fewer rates are accepted"
            )

    def evaluate(self, points: Sequence[Point]) -> Floats:
        """Return what candidates give, [point, target]; the new ones are one call of the engine."""
        new = [point for point in dict.fromkeys(points) if point not in self.seen]
        if new:
            ours = predict([candidate(p, self.free, self.base) for p in new], self.seeds, jobs=self.jobs)
            self.seen.update(zip(new, ours, strict=True))
            if self.tell is not None:
                self.tell(len(self.seen))
        return np.array([self.seen[point] for point in points])

    def best(self, counted: npt.NDArray[np.bool_], count: int = 1) -> list[Point]:
        """Return the best points seen so far, best first; the earlier wins a tie."""
        points = list(self.seen)
        order = np.argsort(loss(np.array(list(self.seen.values())), target_values(), counted), kind="stable")
        return [points[place] for place in order[:count]]

    def run(self, left_out: str = "", settings: Settings = DEFAULT) -> Fit:
        """Minimise the objective.

        Args:
            left_out: a kind of target that shall not count; the search then starts from the best points
                known.
            settings: how long it runs.

        Raises:
            InputError: if no target is of that kind.
        """
        from scipy.optimize import differential_evolution

        kinds = list(dict.fromkeys(target.kind for target in TARGETS if not target.dropped))
        if left_out and left_out not in kinds:
            raise InputError(f"no target is of kind {left_out!r}; accepted: {', '.join(kinds)}")
        paper = target_values()
        counted = COUNTED & np.array([target.kind != left_out for target in TARGETS])
        firsts: list[float] = []

        def objective(grid: npt.NDArray[np.float64]) -> Floats:
            points = [tuple(round(value) for value in point) for point in np.atleast_2d(grid.T)]
            losses = loss(self.evaluate(points), paper, counted)
            firsts.append(float(losses.min()))
            return losses

        warm = bool(left_out) and len(self.seen) >= settings.population
        differential_evolution(
            objective,
            [(item.low * THOUSANDTHS, item.high * THOUSANDTHS) for item in self.free],
            strategy="best1bin",
            init=np.array(self.best(counted, settings.population), dtype=float) if warm else "sobol",
            popsize=max(settings.population // len(self.free), 1),  # rounded up to a power of two
            maxiter=settings.left_out_generations if left_out else settings.generations,
            integrality=[True] * len(self.free),
            vectorized=True,
            updating="deferred",
            polish=False,
            tol=0.0,
            rng=np.random.default_rng(settings.seed),
        )
        point = self.best(counted)[0]
        predicted = self.seen[point]
        return Fit(
            candidate(point, self.free, self.base),
            predicted,
            float(loss(predicted, paper, counted)),
            len(self.seen),
            left_out,
            firsts[0],
        )


def calibrate(search: Search, settings: Settings = DEFAULT) -> tuple[Fit, list[Fit]]:
    """Fit to all targets, and again with each kind of target left out, to see which pulls where.

    Returns:
        The fit, and one fit for each kind left out.
    """
    fitted = search.run(settings=settings)
    kinds = dict.fromkeys(target.kind for target in TARGETS if not target.dropped)
    return fitted, [search.run(kind, settings) for kind in kinds]


def fit_record(
    fitted: Fit, others: Sequence[Fit], search: Search, settings: Settings = DEFAULT
) -> dict[str, Any]:
    """Return the file of a fitted profile: the profile, and all that made it.

    Args:
        fitted: the fit to all targets.
        others: the fits with a kind of target left out.
        search: what was searched.
        settings: how.
    """
    first, past = RELEASED_SEEDS
    seeds = f"{first}:{past}" if search.seeds is None else ",".join(map(str, search.seeds.tolist()))
    return as_record(fitted.profile, "fitted") | {
        "fit": {
            "command": COMMAND,
            "engine_version": __version__,
            "protocol": PROTOCOL.name,
            "regime": REGIME.name,
            "seeds": seeds,
            "policies": list(TARGET_POLICIES),
            "base": search.base.name,
            "free": [asdict(item) for item in search.free],
            "optimizer": settings.as_dict(),
            "objective": {
                "loss": "soft-l1",
                "scale": SCALE,
                "value": fitted.loss,
                "first_generation": fitted.first_loss,
            },
            "evaluations": fitted.evaluations,
            "targets": _target_records(fitted),
            "left_out": [
                {
                    "kind": other.left_out,
                    "value": other.loss,
                    "rates": {item.name: getattr(other.profile, item.name) for item in search.free},
                    "ours": dict(
                        zip([target.name for target in TARGETS], other.predicted.tolist(), strict=True)
                    ),
                }
                for other in others
            ],
        }
    }


def _target_records(fitted: Fit) -> list[dict[str, Any]]:
    def place(key: tuple[str, str, str]) -> dict[str, str]:
        return dict(zip(("source", "row", "column"), key, strict=True))

    return [
        {
            "name": target.name,
            **place(target.place),
            "also": [place(key) for key in target.repeats],
            "follows": target.follows,
            "dropped": target.dropped,
            "paper": target.value,
            "ours": float(ours),
            "residual": float(residual),
        }
        for target, ours, residual in zip(TARGETS, fitted.predicted, fitted.residuals, strict=True)
    ]


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write a profile's file; the same record gives the same bytes."""
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_fit(name: str = "calibrated", folder: Path = PROFILE_FOLDER) -> dict[str, Any]:
    """Return what a committed profile's file says of its fit.

    Raises:
        InputError: if there is no such file, it is damaged, or the profile was not fitted.
    """
    record = read_record(folder / f"{name}.json")
    if record["kind"] != "fitted":
        raise InputError(f"profile {name!r} was not fitted; it is {record['kind']}")
    return record["fit"]
