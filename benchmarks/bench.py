"""Speed of the engine, in one run: episodes a second, the ratio to the naive twin, growth and memory.

`make bench` prints the table; `python benchmarks/bench.py --json` prints the same as one JSON object.
Times are processor seconds of one core, best of several rounds in which engine and twin take turns, so that
a busy machine disturbs both alike. Instances, noise and scores are part of every figure of the engine.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from twinning import twin_episodes, twin_instances, twin_noise  # noqa: E402

from envprobe_core.cells import Cell, make_cell  # noqa: E402
from envprobe_core.policies import POLICIES  # noqa: E402
from envprobe_core.protocols import PROTOCOLS  # noqa: E402
from envprobe_core.sweep import run_cells  # noqa: E402
from envprobe_core.worlds import WORLDS, make_world  # noqa: E402

ROUNDS = 5
ENGINE_EPISODES = 8_000
BLOCK = 2_000
TWIN_EPISODES = 300
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
TARGETS = {"tooldag_per_second": 25_000, "twin_ratio": 20, "memory_mib": 1024, "grid_seconds": 5}


def processor_seconds(work: Callable[[], Any]) -> float:
    """Time one call in processor seconds."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def engine_rate(cell: Cell) -> float:
    """Run the engine once over its benchmark episodes; episodes a second."""
    seeds = np.arange(ENGINE_EPISODES)
    return ENGINE_EPISODES / processor_seconds(lambda: run_cells([cell], seeds, batch_size=BLOCK))


def compare_with_twin(cell: Cell) -> dict[str, float]:
    """Let engine and twin take turns on the same cell.

    Returns:
        Episodes a second of both, and the ratio engine / twin; once with the twin's instances and noise drawn
        within its time, as the engine's are within its own, and once handed to it ready-made.
    """
    seeds = np.arange(TWIN_EPISODES)
    world = make_world(cell.world, cell.regime, cell.protocol)
    drawn, instances = twin_noise(world, seeds), twin_instances(world, seeds)
    best = dict.fromkeys(("engine", "twin", "twin_given"), 0.0)
    for _ in range(ROUNDS):
        rates = {
            "engine": engine_rate(cell),
            "twin": TWIN_EPISODES / processor_seconds(lambda: twin_episodes(cell, seeds, None)),
            "twin_given": TWIN_EPISODES
            / processor_seconds(lambda: twin_episodes(cell, seeds, None, drawn, instances)),
        }
        best = {name: max(best[name], rate) for name, rate in rates.items()}
    return best | {
        "ratio": best["engine"] / best["twin"],
        "ratio_given": best["engine"] / best["twin_given"],
    }


def growth(cell: Cell) -> dict[str, Any]:
    """Run more and more episodes, each size in a process of its own; time, peak memory and exponent."""
    rows = []
    for size in SIZES:
        code = f"import bench; bench.report_size({size})"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
        rows.append(json.loads(done.stdout))
    # below some thousand episodes the fixed costs of a block still show
    large = [row for row in rows if row["episodes"] >= 10_000]
    exponent = np.polyfit(
        [math.log(row["episodes"]) for row in large], [math.log(row["seconds"]) for row in large], 1
    )[0]
    return {"sizes": rows, "exponent": float(exponent)}


def report_size(size: int) -> None:
    """Print time and peak memory of one size as JSON; runs in a fresh process."""
    cell = make_cell("tooldag", "simple")
    run_cells([cell], np.arange(BLOCK), batch_size=BLOCK)
    seconds = processor_seconds(lambda: run_cells([cell], np.arange(size), batch_size=BLOCK))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"episodes": size, "seconds": seconds, "peak_mib": peak}))


def grid_from_the_shell(logs: str) -> float:
    """Run the paper's whole main grid as a user would; wall seconds, start of Python included."""
    arguments = [sys.executable, "-m", "envprobe_core", "run", "--regime", "S2", "--logs", logs, "--json"]
    arguments += [part for world in WORLDS for part in ("--world", world)]
    arguments += [part for policy in POLICIES for part in ("--policy", policy)]
    arguments += [part for protocol in PROTOCOLS for part in ("--protocol", protocol)]
    arguments += ["--seeds", "0:220", "--jobs", str(os.cpu_count() or 1)]
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        subprocess.run(
            [*arguments, "--out", str(Path(folder) / "run")], cwd=ROOT, stdout=subprocess.PIPE, check=True
        )
        return time.perf_counter() - begin


def measure() -> dict[str, Any]:
    """Take every measurement."""
    simple = make_cell("tooldag", "simple")
    rates = {world: max(engine_rate(make_cell(world, "simple")) for _ in range(3)) for world in WORLDS}
    return {
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "episodes_per_second": rates,
        "twin": compare_with_twin(simple),
        "growth": growth(simple),
        "grid_seconds": {logs: grid_from_the_shell(logs) for logs in ("none", "full")},
    }


def show(result: dict[str, Any]) -> None:
    """Print the measurements for people."""
    machine, twin = result["machine"], result["twin"]
    print(f"{machine['cores']} cores, Python {machine['python']}, NumPy {machine['numpy']}")
    print("engine on one core, S2, Simple")
    for world, rate in result["episodes_per_second"].items():
        aim = f"  (aim: {TARGETS['tooldag_per_second']:,})" if world == "tooldag" else ""
        print(f"  {world:12s} {rate:9,.0f} episodes/s, blocks of {BLOCK:,}{aim}")
    print("engine against the naive twin, tooldag")
    print(f"  twin, its instances and noise drawn    {twin['twin']:7,.0f}/s: {twin['ratio']:.1f} x")
    print(
        f"  twin, instances and noise handed over  {twin['twin_given']:7,.0f}/s: {twin['ratio_given']:.1f} x"
    )
    print(f"growth, tooldag: exponent {result['growth']['exponent']:.3f} from 10,000 to 100,000 episodes")
    for row in result["growth"]["sizes"]:
        print(f"  {row['episodes']:9,d} episodes {row['seconds']:7.2f} s {row['peak_mib']:6.0f} MiB")
    print("main grid from the shell: 3 worlds, 15 policies, 3 protocols, 220 seeds")
    for logs, seconds in result["grid_seconds"].items():
        print(f"  logs {logs}: {seconds:.1f} s")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    result = measure()
    print(json.dumps(result, indent=1)) if parser.parse_args().json else show(result)


if __name__ == "__main__":
    main()
