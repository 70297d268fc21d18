"""Speed of a run on a model: calls a second against a slow server, and stored answers a second at a replay.

`python benchmarks/llm.py` prints one JSON object. The server is the scripted one, in a process of its own,
with 200 ms before each answer; the ideal is concurrency / latency. Store, engine and logs are part of every
figure. The throughput is taken between a tenth and nine tenths of the calls: the start of Python, and the
end, where fewer than `concurrency` episodes are left, are no part of it. Processor seconds are given too:
on a machine that others use they say more than the clock.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from envprobe_core.agents.model import PROMPT_VERSION, ModelAgent
from envprobe_core.llm.calls import read_prices
from envprobe_core.llm.client import Counts, Limits, Service
from envprobe_core.llm.running import run_into
from envprobe_core.llm.secret import PLACEHOLDER, Secret
from envprobe_core.llm.store import AnswerStore
from envprobe_core.runs.folder import open_run
from envprobe_core.runs.manifest import RunInputs, read_manifest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from scripted_server import server_process

LATENCY = 0.2
CONCURRENCY = 64
EPISODES = 330  # of 31 answers each at S2: 10,230
TARGETS = {"share_of_ideal": 0.9, "replayed_per_second": 8_000}


def run(folder: Path, service: Service, episodes: int) -> dict[str, float]:
    """Run episodes of a condition into a folder; seconds, processor seconds, and the steady rate of calls."""
    inputs = RunInputs(["tooldag"], ["simple"], seeds=f"0:{episodes}", agent=service.agent)
    marks: list[tuple[int, float]] = []

    def notice(done: int, counts: Counts) -> None:
        marks.append((counts.calls + counts.replayed, time.perf_counter()))

    begin, processor = time.perf_counter(), time.process_time()
    with open_run(folder, inputs) as opened:
        run_into(opened, service, notice)
    seconds, processor = time.perf_counter() - begin, time.process_time() - processor
    total = marks[-1][0]
    early = next(mark for mark in marks if mark[0] >= total / 10)
    late = next(mark for mark in marks if mark[0] >= total * 9 / 10)
    return {
        "answers": total,
        "seconds": seconds,
        "processor_seconds": processor,
        "answers_per_second": total / seconds,
        "steady_per_second": (late[0] - early[0]) / max(late[1] - early[1], 1e-9),
    }


def measure(latency: float, concurrency: int, episodes: int) -> dict[str, Any]:
    """Take both measurements, on one store."""
    agent = ModelAgent("local", PROMPT_VERSION, "gpt-4o-mini")
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name), Path(name) / "answers.sqlite"
        with server_process(latency) as server, closing(AnswerStore(path, prices=read_prices())) as store:
            service = Service(agent, store, Secret(PLACEHOLDER), (server.url,), Limits(concurrency))
            live = run(folder / "live", service, episodes)
        with closing(AnswerStore(path, writable=False)) as store:
            replay = run(folder / "replay", Service(agent, store), episodes)
        hashes = {read_manifest(folder / name).result_hash for name in ("live", "replay")}
    ideal = concurrency / latency
    return {
        "latency": latency,
        "concurrency": concurrency,
        "ideal_per_second": ideal,
        "live": live,
        "share_of_ideal": live["steady_per_second"] / ideal,
        "processor_ms_a_call": 1000 * live["processor_seconds"] / live["answers"],
        "replay": replay,
        "replayed_per_processor_second": replay["answers"] / replay["processor_seconds"],
        "replayed_per_second": replay["answers_per_second"],
        "same_results": len(hashes) == 1,
        "targets": TARGETS,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=LATENCY)
    parser.add_argument("--concurrency", type=int, default=CONCURRENCY)
    parser.add_argument("--episodes", type=int, default=EPISODES)
    given = parser.parse_args()
    print(json.dumps(measure(given.latency, given.concurrency, given.episodes), indent=2))
