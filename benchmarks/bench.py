"""Speed in one run: episodes a second, ratios to the naive twin and to a compiled loop, growth, memory.

`make bench` prints the table and writes `benchmarks/result.json`; `--quick` leaves out the book's builds and
the calls of a model, which take a quarter of an hour. Rates are processor seconds of one core, best of
several rounds in which those compared take turns, so that a busy machine disturbs all alike. Instances,
noise and scores are part of every figure of the engine, unless it is named `kernel` (no scores).
"""

from __future__ import annotations

import argparse
import gzip
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

from building import builds  # noqa: E402
from compiled import check, compiled_run, engine_run  # noqa: E402
from twinning import twin_episodes, twin_instances, twin_noise  # noqa: E402

from envprobe_core.cells import Cell, make_cell  # noqa: E402
from envprobe_core.explorer.cached import load_grid  # noqa: E402
from envprobe_core.explorer.readings import take_readings  # noqa: E402
from envprobe_core.policies import POLICIES  # noqa: E402
from envprobe_core.protocols import PROTOCOLS  # noqa: E402
from envprobe_core.sweep import BATCH_SIZE, run_cells  # noqa: E402
from envprobe_core.worlds import WORLDS, make_world  # noqa: E402

ROUNDS = 5
ENGINE_EPISODES = 8_000
BLOCK = BATCH_SIZE
SPREAD_EPISODES = 1_000_000
SLIDER_POLICIES = ("no-probe", "periodic", "self-uncertainty", "simple")
TWIN_EPISODES = 300
SIZES = (10_000, 100_000, 1_000_000)
RESULT = ROOT / "benchmarks" / "result.json"


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


def compare_with_compiled(cell: Cell) -> dict[str, float]:
    """Let engine and compiled loop take turns on the same seeds, once their trajectories were compared.

    Returns:
        Episodes a second of the engine with scores, of its kernel without them and of the compiled loop, and
        the two ratios to the compiled loop.
    """
    seeds = np.arange(ENGINE_EPISODES)
    check(cell, seeds)
    best = dict.fromkeys(("engine", "kernel", "compiled"), 0.0)
    blocks = np.array_split(seeds, len(seeds) // BLOCK)
    for _ in range(2 * ROUNDS):
        seconds = {
            "engine": processor_seconds(lambda: run_cells([cell], seeds)),
            "kernel": processor_seconds(lambda: [engine_run(cell, block) for block in blocks]),
            "compiled": processor_seconds(lambda: [compiled_run(cell, block) for block in blocks]),
        }
        best = {name: max(best[name], len(seeds) / seconds[name]) for name in best}
    return best | {
        "engine_share": best["engine"] / best["compiled"],
        "kernel_share": best["kernel"] / best["compiled"],
    }


def all_cores(cell: Cell) -> dict[str, float]:
    """Run many episodes in one process and in one a core; episodes a wall second, starts included."""
    seeds, rates = np.arange(SPREAD_EPISODES), {}
    for jobs in (1, os.cpu_count() or 1):
        begin = time.perf_counter()
        run_cells([cell], seeds, jobs=jobs)
        rates[str(jobs)] = len(seeds) / (time.perf_counter() - begin)
    return rates


def growth(cell: Cell) -> dict[str, Any]:
    """Run more and more episodes, each size in a process of its own; time, peak memory and exponents."""
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

    logs = {name: [math.log(row[name]) for row in rows] for name in rows[0]}
    first, last = rows[0], rows[-1]
    added = (last["peak_mib"] - first["peak_mib"]) * 2**20 / (last["episodes"] - first["episodes"])
    return {
        "sizes": rows,
        "time_exponent": float(np.polyfit(logs["episodes"], logs["seconds"], 1)[0]),
        "memory_exponent": float(np.polyfit(logs["episodes"], logs["peak_mib"], 1)[0]),
        "bytes_per_episode": added,
    }


def report_size(size: int) -> None:
    """Print time and peak memory of one size as JSON; runs in a fresh process."""
    cell = make_cell("tooldag", "simple")
    run_cells([cell], np.arange(BLOCK), batch_size=BLOCK)
    seconds = processor_seconds(lambda: run_cells([cell], np.arange(size), batch_size=BLOCK))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"episodes": size, "seconds": seconds, "peak_mib": peak}))


def slider_tick() -> dict[str, float]:
    """Answer ticks of the live explorer, four policies on 220 seeds and their readings; median seconds."""
    ticks = []
    for step in range(2 * ROUNDS):
        cells = [make_cell(world, policy, budget=step) for world in WORLDS for policy in SLIDER_POLICIES]
        begin = time.perf_counter()
        for start in range(0, len(cells), len(SLIDER_POLICIES)):
            take_readings(cells[start : start + len(SLIDER_POLICIES)], np.arange(220))
        ticks.append((time.perf_counter() - begin) / len(WORLDS))
    return {"median_seconds": float(np.median(ticks[1:]))}


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


def explorer_grid() -> dict[str, float]:
    """Compute the published explorer's grid on all cores; wall seconds, and bytes over the wire."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        payload = load_grid(jobs=os.cpu_count() or 1, folder=Path(folder))
        seconds = time.perf_counter() - begin
    return {"seconds": seconds, "bytes": len(gzip.compress(json.dumps(payload).encode(), 6))}


def measure(quick: bool) -> dict[str, Any]:
    """Take every measurement."""
    simple = make_cell("tooldag", "simple")
    rates = {world: max(engine_rate(make_cell(world, "simple")) for _ in range(ROUNDS)) for world in WORLDS}
    fields = {world: make_world(world, simple.regime, simple.protocol).fields for world in WORLDS}
    result = {
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "block": BLOCK,
        "episodes_per_second": rates,
        "fields": fields,
        "twin": compare_with_twin(simple),
        "compiled": compare_with_compiled(simple),
        "all_cores": all_cores(simple),
        "growth": growth(simple),
        "slider": slider_tick(),
        "grid_seconds": {logs: grid_from_the_shell(logs) for logs in ("none", "full")},
        "explorer_grid": explorer_grid(),
    }
    if not quick:
        script = Path(__file__).with_name("llm.py")
        done = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, check=True)
        result["models"] = json.loads(done.stdout)
        result["book"] = builds()
    return result


def show(result: dict[str, Any]) -> None:
    """Print the measurements for people."""
    machine, twin, compiled = result["machine"], result["twin"], result["compiled"]
    print(f"{machine['cores']} cores, Python {machine['python']}, NumPy {machine['numpy']}")
    print(f"engine on one core, S2, Simple, blocks of {result['block']:,}")
    for world, rate in result["episodes_per_second"].items():
        fields = result["fields"][world]
        print(f"  {world:12s} {rate:9,.0f} episodes/s, {rate * fields / 1e6:.2f} million fields/s")
    print("engine against the naive twin, tooldag")
    print(f"  twin, its instances and noise drawn    {twin['twin']:7,.0f}/s: {twin['ratio']:.1f} x")
    print(
        f"  twin, instances and noise handed over  {twin['twin_given']:7,.0f}/s: {twin['ratio_given']:.1f} x"
    )
    print("engine against the compiled loop, tooldag, trajectories compared")
    print(f"  compiled                {compiled['compiled']:9,.0f} episodes/s")
    print(f"  engine without scores   {compiled['kernel']:9,.0f} episodes/s: {compiled['kernel_share']:.1%}")
    print(f"  engine with scores      {compiled['engine']:9,.0f} episodes/s: {compiled['engine_share']:.1%}")
    one, *more = result["all_cores"].values()
    for rate in more:
        print(f"all cores: {one:,.0f} episodes/s on one, {rate:,.0f} on all: {rate / one:.2f} x")
    grown = result["growth"]
    print(
        f"growth, tooldag: time exponent {grown['time_exponent']:.3f}, memory {grown['memory_exponent']:.3f}"
    )
    for row in grown["sizes"]:
        print(f"  {row['episodes']:9,d} episodes {row['seconds']:7.2f} s {row['peak_mib']:6.0f} MiB")
    print(f"  {grown['bytes_per_episode']:.0f} bytes an episode")
    slider = 1000 * result["slider"]["median_seconds"]
    print(f"live slider: {slider:.0f} ms a tick of four policies on 220 seeds")
    cells = f"{len(WORLDS)} worlds, {len(POLICIES)} policies, {len(PROTOCOLS)} protocols, 220 seeds"
    print(f"main grid from the shell: {cells}")
    for logs, seconds in result["grid_seconds"].items():
        print(f"  logs {logs}: {seconds:.1f} s")
    grid = result["explorer_grid"]
    print(f"explorer's grid: {grid['seconds']:.1f} s, {grid['bytes'] / 1000:.0f} kB over the wire")
    if "models" in result:
        show_models(result["models"])
        show_builds(result["book"])


def show_models(models: dict[str, Any]) -> None:
    """Print the rates of calls and of stored answers."""
    print(
        f"calls to a server {models['latency']:.1f} s away, {models['concurrency']} at once: "
        f"{models['live']['steady_per_second']:.0f} of {models['ideal_per_second']:.0f} a second, "
        f"{models['share_of_ideal']:.1%} of the ideal"
    )
    print(f"stored answers replayed: {models['replayed_per_second']:,.0f} a second, engine and logs included")


def show_builds(book: dict[str, Any]) -> None:
    """Print what builds take."""
    print(
        f"book from nothing {book['from_nothing']:.0f} s, again {book['again']:.1f} s, one notebook "
        f"changed {book['one_notebook_changed']:.0f} s; plainly {book['plainly']:.0f} s: "
        f"{book['share_of_plainly']:.0%}"
    )
    for name, seconds in sorted(book["sections"].items(), key=lambda row: -row[1]):
        print(f"  {name:18s} {seconds:6.1f} s")


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="the engine only: no model's calls, no book")
    arguments = parser.parse_args()
    result = measure(arguments.quick)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1)) if arguments.json else show(result)


if __name__ == "__main__":
    main()
