"""The encoded grid, computed once: it is kept beside the built book until the engine or its inputs change."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from envprobe_core.cells import find_profile, find_regime
from envprobe_core.explorer.encoding import encode
from envprobe_core.explorer.grid import run_grid
from envprobe_core.protocols import PROTOCOLS, parse_protocol
from envprobe_core.resampling import RESAMPLES
from envprobe_core.sources import ROOT, engine_sha256

FOLDER = ROOT / "book" / "_build" / "explorer"
SOURCES = ("explorer/encoding.py",)  # with what it imports: the engine, the readings and their encoding
KEPT = 4  # files; older ones are removed


def load_grid(
    regime: str = "S2",
    protocols: Sequence[str] = tuple(PROTOCOLS),
    profile: str = "typical",
    seeds: str = "0:220",
    resamples: int = RESAMPLES,
    jobs: int = 2,
    folder: Path = FOLDER,
) -> dict[str, Any]:
    """Return the encoded grid of `grid.run_grid`, from the folder if it is there.

    Args:
        regime: name of the regime.
        protocols: names of protocols.
        profile: name of the agent's profile.
        seeds: as text.
        resamples: bootstrap resamples of the intervals.
        jobs: processes; changes nothing but the time.
        folder: where grids are kept; one that cannot be written to is done without.
    """
    asked = {
        "engine": engine_sha256(SOURCES),
        "regime": asdict(find_regime(regime)),
        "protocols": [asdict(parse_protocol(name)) for name in protocols],
        "profile": asdict(find_profile(profile)),
        "seeds": seeds,
        "resamples": resamples,
    }
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    path = folder / f"{digest[:32]}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # not there, or damaged
        payload = encode(run_grid(regime, protocols, profile, seeds, resamples, jobs))
    _keep(path, json.dumps(payload))
    return payload


def _keep(path: Path, text: str) -> None:
    """Put a file in place in one step, and remove the oldest of its kind."""
    partial = path.with_name(f".{path.stem}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
        kept = sorted(path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime, reverse=True)
        for old in kept[KEPT:]:
            old.unlink(missing_ok=True)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
