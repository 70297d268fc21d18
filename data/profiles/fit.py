"""The fitted profiles: searches for the agents that are nearest to the paper, and their files.

    python data/profiles/fit.py calibrated --out data/profiles/calibrated.json
    python data/profiles/fit.py scribe-settled --out data/profiles/scribe-settled.json

For `calibrated` only the accuracies of Periodic and the canonical confident-wrong rate are looked at; for
`scribe-settled` pairs that disagree, episodes without a probe, and the accuracies of Periodic. Both are
measured under `released`. The same command gives the same bytes, which hold all that made them: run it again
whenever the engine's trajectories under `released` change.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from envprobe_book.analyses import calibration, settled
from envprobe_book.analyses.calibration import Fit, Place, Point, Search, Settings
from envprobe_core import __version__
from envprobe_core.agents.profiles import HESITANT, AgentProfile, as_record
from envprobe_core.conditions import RELEASED_SEEDS, Seeds
from envprobe_core.errors import InputError
from envprobe_core.files import atomic_write, refuse_existing
from envprobe_core.parallel import cores
from envprobe_core.worlds.base import Floats

COMMAND = "python data/profiles/fit.py {name} --out data/profiles/{name}.json"
SETTLED = Settings(population=32, generations=16)


# --- calibrated -------------------------------------------------------------------------------


def calibrate(search: Search, settings: Settings = calibration.DEFAULT) -> tuple[Fit, list[Fit]]:
    """Fit to all targets, and again with each kind of target left out, to see which pulls where."""
    return search.run(settings=settings), [search.run(kind, settings) for kind in calibration.KINDS]


def calibrated_record(
    fitted: Fit, others: Sequence[Fit], search: Search, settings: Settings = calibration.DEFAULT
) -> dict[str, Any]:
    """The file of a fitted profile and of all that made it; `others` left a kind of target out."""

    def place(key: Place) -> dict[str, str]:
        return dict(zip(("source", "row", "column"), key, strict=True))

    targets = [
        {"name": target.name, **place(target.place), "also": list(map(place, target.repeats))}
        | {"follows": target.follows, "dropped": target.dropped, "paper": target.value}
        | {"ours": float(ours), "residual": float(ours - target.value)}
        for target, ours in zip(calibration.TARGETS, fitted.predicted, strict=True)
    ]
    titles = [target.name for target in calibration.TARGETS]
    left_out = [
        {"kind": other.left_out, "value": other.loss}
        | {"rates": {item.name: getattr(other.profile, item.name) for item in calibration.FREE}}
        | {"ours": dict(zip(titles, other.predicted.tolist(), strict=True))}
        for other in others
    ]
    seeds = "{}:{}".format(*RELEASED_SEEDS) if search.seeds is None else ",".join(map(str, search.seeds))
    fit = {"command": COMMAND.format(name="calibrated"), "engine_version": __version__}
    fit |= {"protocol": calibration.PROTOCOL.name, "regime": calibration.REGIME.name, "seeds": seeds}
    fit |= {
        "policies": list(calibration.TARGET_POLICIES),
        "base": calibration.BASE.name,
        "free": list(map(asdict, calibration.FREE)),
    }
    objective = {"loss": "soft-l1", "scale": calibration.SCALE, "value": fitted.loss}
    objective |= {"first_generation": fitted.first_loss}
    fit |= {"optimizer": calibration.METHOD | asdict(settings), "objective": objective}
    fit |= {"evaluations": fitted.evaluations, "targets": targets, "left_out": left_out}
    return as_record(fitted.profile, "fitted") | {"fit": fit}


# --- scribe-settled ---------------------------------------------------------------------------


def settled_profile(point: Sequence[int]) -> AgentProfile:
    """The base profile with the free rates set, given in thousandths."""
    rates = {
        item.name: int(whole) / calibration.THOUSANDTHS
        for item, whole in zip(settled.FREE, point, strict=True)
    }
    return replace(settled.BASE, name=settled.NAME, **rates, assumption=settled.ASSUMPTION)


def search_settled(
    settings: Settings = SETTLED,
    seeds: Seeds = settled.SEEDS,
    jobs: int = 1,
    tell: Callable[[int], None] = lambda evaluated: None,
) -> tuple[AgentProfile, int]:
    """The profile of the least objective that a search meets, and how many it met.

    Args:
        settings: how long and from where it runs.
        seeds: the episodes of each arm.
        jobs: processes; changes nothing but speed.
        tell: called after a generation with how many were met so far.
    """
    seen: dict[Point, Floats] = {}

    def objective(points: list[Point]) -> Floats:
        if new := list(dict.fromkeys(point for point in points if point not in seen)):
            seen.update(
                zip(new, settled.predict(list(map(settled_profile, new)), seeds, jobs=jobs), strict=True)
            )
            tell(len(seen))
        return settled.loss(np.array([seen[point] for point in points]), settled.target_values())

    calibration.minimise(objective, settled.FREE, settings.generations, settings)
    losses = settled.loss(np.array(list(seen.values())), settled.target_values())
    return settled_profile(list(seen)[int(np.argmin(losses))]), len(seen)


def settled_record(profile: AgentProfile, evaluations: int, settings: Settings = SETTLED) -> dict[str, Any]:
    """The file of the fitted profile and of all that made it."""
    predicted = settled.predict([profile])[0]
    targets = [
        {"name": target.name, "kind": target.kind, "scale": target.scale}
        | dict(zip(("source", "row", "column"), target.place, strict=True))
        | {"paper": target.value, "ours": float(ours), "residual": float(ours - target.value)}
        for target, ours in zip(settled.TARGETS, predicted, strict=True)
    ]
    fit = {"command": COMMAND.format(name=settled.NAME), "engine_version": __version__}
    fit |= {"protocol": calibration.PROTOCOL.name, "regime": calibration.REGIME.name}
    fit |= {"seeds": f"{settled.SEEDS[0]}:{settled.SEEDS[-1] + 1}", "base": HESITANT.name}
    fit |= {"free": list(map(asdict, settled.FREE))}
    used = {name: value for name, value in asdict(settings).items() if name != "left_out_generations"}
    fit |= {"optimizer": calibration.METHOD | used, "evaluations": evaluations, "targets": targets}
    fit |= {
        "objective": {"loss": "soft-l1", "value": float(settled.loss(predicted, settled.target_values()))}
    }
    return as_record(profile, "fitted") | {"fit": fit}


# --- files ------------------------------------------------------------------------------------


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write a profile's file; the same record gives the same bytes."""
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def fit_calibrated(jobs: int) -> dict[str, Any]:
    """The file of `calibrated`."""
    search = Search(jobs=jobs, tell=tell)
    fitted, others = calibrate(search)
    return calibrated_record(fitted, others, search)


def fit_settled(jobs: int) -> dict[str, Any]:
    """The file of `scribe-settled`."""
    return settled_record(*search_settled(jobs=jobs, tell=tell))


FITS = {"calibrated": fit_calibrated, settled.NAME: fit_settled}


def tell(count: int) -> None:
    """Say how many profiles were evaluated, where somebody looks."""
    if sys.stderr.isatty():
        print(f"\r{count} profiles evaluated", end="", file=sys.stderr)


def main() -> None:
    """Fit a profile, say how well it fits, and write its file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("profile", choices=FITS)
    parser.add_argument("--jobs", type=int, default=cores(), help="processes; changes nothing but speed")
    parser.add_argument("--out", type=Path, help="new file for the profile")
    given = parser.parse_args()
    try:
        if given.out is not None:
            refuse_existing("--out", given.out)
        record = FITS[given.profile](given.jobs)
    except InputError as error:
        parser.error(str(error))
    for target in record["fit"]["targets"]:
        print("{name:40} printed {paper:.3f}  fit {ours:.3f} ({residual:+.3f})".format(**target))
    for one in record["fit"]["free"]:
        print(f"{one['name']:40} free rate      {record['parameters'][one['name']]:.3f}")
    fit = record["fit"]
    print(f"objective {fit['objective']['value']:.3f}, {fit['evaluations']} profiles evaluated")
    if given.out is not None:
        with atomic_write(given.out, new=True) as temporary:
            write_record(temporary, record)


if __name__ == "__main__":
    main()
