"""Speed in one run, beside the block engine that the compiled one replaced (commit b3b33ea).

`make bench` ends within eight minutes on two quiet cores, `make bench QUICK=1` within three; each result is
printed as it comes, and all are kept in `benchmarks/result.json`. The former engine comes from the history
of the checkout and runs in a process of its own; the two take turns, and a ratio is the median over the
turns of processor seconds, so that a busy machine disturbs both alike. Without that history there are no
ratios. What the book's builds take is `benchmarks/building.py`'s.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import moves
import numba
import numpy as np
from playwright.sync_api import Browser, CDPSession, sync_playwright

from envprobe_book.page_engine import HERE as ENGINE_FOLDER
from envprobe_book.page_engine import write_page_engine
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.worlds import WORLDS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FORMER = "b3b33ea"
EPISODES = 4000  # a turn: the block size at which the former engine was fastest
MILLION = 1_000_000
STEP = 100  # ms until a section's figure has followed a move
CORES = os.cpu_count() or 1
SCRIPTS = ("page-engine.js", "statistics.js")
PAGE = "<!doctype html><title>pace</title>" + "".join(f"<script src={name}></script>" for name in SCRIPTS)
IN_PAGE = """async ([condition, count]) => {
  Object.defineProperty(navigator, "hardwareConcurrency", {value: 1, configurable: true}); // one thread
  await EnvProbe.engine.ready(condition.world);
  const begin = performance.now();
  await EnvProbe.engine.run([condition], `0:${count}`);
  return (performance.now() - begin) / 1000;
}"""
PAIRS = 220  # a stratum, of three
READY = "() => EnvProbe.statistics.ready()"
CALL = """(pairs) => {
  const units = Array.from({length: 3 * pairs}, (_, unit) => unit), begin = performance.now();
  const strata = units.map((unit) => Math.floor(unit / pairs));
  EnvProbe.statistics.mean(units.map((unit) => (unit * unit) % 7 - 3), {strata});
  return performance.now() - begin;
}"""
COMPILE = "import json; from envprobe_book.compilation import *; print(json.dumps({}))"


class Runner:
    """A process that runs what `pace.py` offers, on one of the engines."""

    def __init__(self, root: Path) -> None:
        """Start it on the engine below a folder."""
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "pace.py")],
            cwd=root,
            env=environment(root),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, *asked: object) -> float:
        """Run something; return the processor seconds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(asked), file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


def environment(root: Path) -> dict[str, str]:
    """Return an environment in which Python finds the engine below a folder, with one thread."""
    found = os.pathsep.join((str(root), str(root / "benchmarks")))
    return os.environ | {"PYTHONPATH": found, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def former_engine(folder: Path) -> Path | None:
    """Unpack the former engine into a folder; None where the checkout has no history of it."""
    parts = ["envprobe_core", "benchmarks/compiled.py", "data"]
    try:
        packed = subprocess.run(
            ["git", "archive", "--format=tar", FORMER, *parts], cwd=ROOT, capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


class Bench:
    """What is measured, and where it is kept.

    Attributes:
        quick: whether little is measured.
        former: the folder of the former engine, or None.
        folder: a temporary one.
        result: everything that was measured, by name.
    """

    def __init__(self, quick: bool, folder: Path) -> None:
        """Start the engines."""
        self.quick, self.folder, self.result = quick, folder, {}
        self.rounds = 3 if quick else 5
        self.former = former_engine(folder / "former")
        if self.former is None:
            print(f"no history of commit {FORMER} here (no git, or a shallow clone): the engine alone")
        self.new = Runner(ROOT)
        self.old = Runner(self.former) if self.former else None

    def turns(self, *asked: object, rounds: int = 0, of_former: tuple[object, ...] = ()) -> dict[str, float]:
        """Let the engines take turns on the same work, which both do once before.

        Returns:
            The fewest processor seconds, and the median ratio former / new.
        """
        runners = [(self.new, asked)]
        if self.old is not None:
            runners.append((self.old, of_former or asked))
        took = [
            [runner.seconds(*work) for runner, work in runners] for _ in range(1 + (rounds or self.rounds))
        ]
        found = {"seconds": min(turn[0] for turn in took[1:])}
        if self.old is not None:
            found["ratio"] = statistics.median(turn[1] / turn[0] for turn in took[1:])
        return found

    def stop(self) -> None:
        """Stop the engines."""
        for runner in filter(None, (self.new, self.old)):
            runner.process.communicate()

    def keep(self, name: str, value: Any, line: str) -> None:
        """Keep a result and print it."""
        self.result[name] = value
        print(line, flush=True)

    def compilation(self) -> None:
        """Compile in a copy of the package, whose folder of machine code is empty."""
        copy = self.folder / "fresh"
        shutil.copytree(ROOT / "data", copy / "data")
        shutil.copytree(
            ROOT / "envprobe_core", copy / "envprobe_core", ignore=shutil.ignore_patterns("__pycache__")
        )
        what = 'dict([compile_world("tooldag")])' if self.quick else "compile_everything()"
        begin = time.perf_counter()
        parts = json.loads(run([sys.executable, "-c", COMPILE.format(what)], copy))
        wall = time.perf_counter() - begin
        told = ", ".join(f"{name} {seconds:.1f}" for name, seconds in parts.items())
        line = f"first compilation, processor seconds: {told} ({wall:.0f} s of the clock)"
        self.keep("compilation", parts | {"wall": wall}, line)

    def start(self) -> None:
        """Run a few episodes as a user would, from the start of Python, everything compiled."""
        roots = [ROOT, self.former] if self.former else [ROOT]
        took = [[self.shell(root, "0:20")["processor"] for root in roots] for _ in range(1 + self.rounds)]
        own, *former = (statistics.median(column) for column in zip(*took[1:], strict=True))
        line = f"20 episodes from the shell, from the disk cache: {own:.2f} processor seconds"
        beside = "".join(f"; the former engine {seconds:.2f}" for seconds in former)
        self.keep("start", {"processor": own, "former": former}, line + beside)

    def cells(self) -> None:
        """Compare the engines on cells of S2, a reader's policy included."""
        policies, protocols = ("simple", "judge", "voi"), ("paper", "released")
        if self.quick:
            policies, protocols = ("simple", "voi"), ("paper",)
        for world in WORLDS:
            for policy in policies:
                for protocol in protocols:
                    self.cell(world, policy, protocol)
        self.cell("tooldag", "called", "paper", "a reader's policy, called", episodes=400)

    def cell(
        self, world: str, policy: str, protocol: str, name: str | None = None, episodes: int = EPISODES
    ) -> None:
        """Compare the engines on a cell."""
        found = self.turns("cell", world, policy, protocol, episodes)
        found["episodes_per_second"] = episodes / found["seconds"]
        label = name or f"{world} {policy} {protocol}"
        self.keep(label, found, f"{label:34s} {found['episodes_per_second']:9,.0f} episodes/s{ratio(found)}")

    def yardstick(self) -> None:
        """Compare the engine with a loop that was written by hand for tools and Simple alone."""
        if self.old is not None:
            asked = ("cell", "tooldag", "simple", "paper", EPISODES)
            found = self.turns(*asked, of_former=("loop", EPISODES), rounds=2 * self.rounds)
            told = f"{found['ratio']:.2f} of the speed of a loop for tools and Simple alone, without measures"
            self.keep("yardstick", found, f"the engine, all measures included, has {told}")

    def pages(self) -> None:
        """Compare the engine in a page, in one thread of Chromium, with the compiled one in one process."""
        browser = shutil.which("chromium")
        if browser is None or not write_page_engine(self.folder / "page"):
            print("no Chromium here, or no engine for pages: they are not measured")
            return
        (self.folder / "page" / "page.html").write_text(PAGE)
        shutil.copy(ENGINE_FOLDER / "statistics.js", self.folder / "page")
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            page = chromium.new_page()
            page.goto((self.folder / "page" / "page.html").as_uri())
            for world in WORLDS:
                turns = []
                for _ in range(1 + self.rounds):
                    there = page.evaluate(IN_PAGE, [{"world": world, "policy": "simple"}, EPISODES])
                    begin = time.perf_counter()  # a page knows the clock alone
                    self.new.seconds("cell", world, "simple", "paper", EPISODES)
                    turns.append((there, time.perf_counter() - begin))
                share = statistics.median(here / there for there, here in turns[1:])
                pace = EPISODES / min(there for there, _ in turns[1:])
                told = f"{pace:,.0f} episodes/s a thread, {share:.2f} of the compiled engine's"
                found = {"episodes_per_second": pace, "share": share}
                self.keep(f"page {world}", found, f"in a page, {world}: {told}")
            self.first_call(chromium)
            chromium.close()

    def first_call(self, chromium: Browser) -> None:
        """Resample the pairs of three worlds 10,000 times, as the first that a page does."""
        turns = []
        for _ in range(1 + self.rounds):
            page = chromium.new_page()
            page.goto((self.folder / "page" / "page.html").as_uri())
            page.evaluate(READY)
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable")
            begin = thread_time(session)
            clock = page.evaluate(CALL, PAIRS)
            turns.append((clock, thread_time(session) - begin))
            page.close()
        clock, processor = map(statistics.median, zip(*turns[1:], strict=True))
        told = f"{processor:.0f} ms of a processor, {clock:.0f} of the clock, for {3 * PAIRS} pairs"
        found = {"processor": processor, "clock": clock}
        self.keep("first resampling in a page", found, f"the first resampling in a page: {told}")

    def slider(self) -> None:
        """Compare the engines on ticks of a slider: four policies on 220 seeds."""
        found = self.turns("slider", 6)
        tick = 1000 * found["seconds"] / len(WORLDS)
        self.keep("slider", found, f"live slider: {tick:.0f} ms a tick of four policies{ratio(found)}")

    def sections(self) -> None:
        """Move every live figure of the built book, at the page's own seeds."""
        if shutil.which("chromium") is None or not moves.pages():
            print("no Chromium here, or no built book: moves are not measured")
            return
        for figure, took in moves.moves().items():
            first = min((one["first"] for one in took if one["first"] is not None), default=math.nan)
            rest = min(one["rest"] for one in took)
            told = f"{first:.0f} ms ({first / STEP:.2f}), at rest after {rest:.0f}"
            self.keep(f"move of {figure}", took, f"a move of {figure}: {told}")

    def from_the_shell(self) -> None:
        """Run a million episodes of tools as a user would: growth from a tenth of them, and all cores."""
        small = self.shell(ROOT, f"0:{MILLION // 10}")
        self.told("a hundred thousand episodes of tools from the shell", small)
        if self.quick:
            return
        large = self.shell(ROOT, f"0:{MILLION}")
        self.told("a million", large)
        power = math.log10(large["processor"] / small["processor"])
        added = (large["peak_mib"] - small["peak_mib"]) * 2**20 / (MILLION - MILLION // 10)
        line = f"  growth: time to the power {power:.2f}, {added:.0f} bytes an episode"
        self.keep("growth", {"power": power, "bytes_per_episode": added}, line)
        self.told(f"a million on {CORES} cores", self.shell(ROOT, f"0:{MILLION}", CORES))

    def told(self, what: str, found: dict[str, float]) -> None:
        """Keep what a command took."""
        line = f"{found['seconds']:.1f} s, at most {found['peak_mib']:.0f} MiB a process"
        self.keep(what, found, f"{what}: {line}")

    def shell(self, root: Path, seeds: str, jobs: int = 1, **more: object) -> dict[str, float]:
        """Run `envprobe run`, by default a cell of tools; seconds, processor seconds and peak memory."""
        options = {
            "--world": ["tooldag"],
            "--policy": ["simple"],
            "--protocol": ["paper"],
            "--logs": ["none"],
        }
        options |= {f"--{name}": values for name, values in more.items()}
        arguments = [part for name, values in options.items() for one in values for part in (name, one)]
        command = "envprobe_core" if root == self.former else "envprobe_book"  # where each edition has it
        with tempfile.TemporaryDirectory(dir=self.folder) as out:
            arguments += ["--seeds", seeds, "--jobs", str(jobs), "--json", "--out", f"{out}/run"]
            begin = time.perf_counter()
            process = subprocess.Popen(
                [sys.executable, "-m", command, "run", *arguments],
                cwd=root,
                env=environment(root),
                stdout=subprocess.DEVNULL,
            )
            _, status, used = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - begin
        if status:
            raise SystemExit(f"envprobe run {' '.join(arguments)} failed")
        peak = used.ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)
        return {"seconds": seconds, "processor": used.ru_utime + used.ru_stime, "peak_mib": peak}

    def grids(self) -> None:
        """Run the paper's whole main grid as a user would."""
        everything = {"world": list(WORLDS), "policy": list(POLICIES), "protocol": list(PROTOCOLS)}
        for logs in ("none", "full"):
            found = self.shell(ROOT, "0:220", CORES, logs=[logs], **everything)
            self.keep(f"grid, logs {logs}", found, f"main grid, logs {logs}: {found['seconds']:.1f} s")

    def model_calls(self) -> None:
        """Call a slow server many times at once, and replay its answers."""
        found = json.loads(run([sys.executable, str(HERE / "llm.py")], ROOT))
        live, replayed = found["share_of_ideal"], found["replayed_per_second"]
        line = f"model calls: {live:.1%} of the ideal rate; stored answers: {replayed:,.0f} a second"
        self.keep("models", found, line)


def thread_time(session: CDPSession) -> float:
    """Return the processor time of a page's own thread, in milliseconds."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1000 * next(one["value"] for one in metrics if one["name"] == "ThreadTime")


def ratio(found: dict[str, float]) -> str:
    """Say how many times as fast as the former engine."""
    return f", {found['ratio']:5.2f} times the former engine's" if "ratio" in found else ""


def run(command: list[str], root: Path) -> str:
    """Run a program on the engine below a folder; return what it prints."""
    done = subprocess.run(
        command, cwd=root, env=environment(root), stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few cells, one world compiled")
    quick = parser.parse_args().quick
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(quick, Path(folder))
        versions = f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}"
        bench.keep("machine", {"cores": CORES, "versions": versions}, f"{CORES} cores, {versions}; S2")
        bench.cells()
        bench.yardstick()
        bench.pages()
        bench.slider()
        bench.sections()
        bench.start()
        bench.from_the_shell()
        bench.compilation()
        if not quick:
            bench.grids()
            bench.model_calls()
        bench.stop()
    seconds = time.perf_counter() - begin
    (HERE / "result.json").write_text(json.dumps(bench.result, indent=1) + "\n")
    print(f"taken in {seconds:.0f} s; all figures in benchmarks/result.json")


if __name__ == "__main__":
    main()
