"""A command killed at random: what is left behind, and whether the next goes on to the same.

    python tests/kills.py reproduce --times 20 --section terms -p resamples=300
    python tests/kills.py book --times 20
    python tests/kills.py run --times 20
    python tests/kills.py server --times 20      a run on a model's server, which is scripted

Each time what it makes is taken away, it is started, and ended by TERM, KILL or INT at a random moment. Five
seconds later nothing that it started may live. In the end the command is given once more, a run in the folder
that the last one left: it must leave no temporary folder, and the same bytes as one that nobody disturbed.

A run on a server goes on where it was ended, each time, until it is whole; then it begins anew. Answers that
the server gave must be in the store, all that were not under way when the process was killed.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from envprobe_core.llm.store import read_stats
from envprobe_core.sources import ROOT
from processes import COMMAND, MARK, contents, processes_of
from scripted_server import server_process

GRACE = 5.0  # seconds after which nothing may live
COMMANDS = ("reproduce", "book", "run", "server")
RUN = ["--world=all", "--policy=all", "--protocol=paper", "--protocol=observed", "--jobs=2"]
AT_ONCE, LATENCY = 4, 0.05  # calls under way, seconds each
ASK = ["--agent=openai", "--model=gpt-4o-mini", "--world=tooldag", "--policy=simple", "--seeds=0:12"]
ASK += [f"--concurrency={AT_ONCE}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--section", default="terms")
    parser.add_argument("-p", dest="given", action="append", default=[])
    with contextlib.ExitStack() as stack:
        sys.exit(kill_and_look(parser.parse_args(), stack))


def kill_and_look(asked, stack):
    """Whether anything is not as it should be."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    mark, temporary = f"kills-{os.getpid()}", Path(tempfile.mkdtemp(prefix="kills-"))
    home = Path(tempfile.mkdtemp(prefix="kills-run-"))
    for folder in (temporary, home):
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
    made, store, counts = home / "run", home / "run.answers.sqlite", None
    command = [*COMMAND, asked.command, *(f"--param={text}" for text in asked.given)]
    endings, resumes = ("parquet", "json"), asked.command in ("run", "server")
    if asked.command == "server":
        server = stack.enter_context(server_process(LATENCY))
        command, counts = [*COMMAND, "run", *ASK, f"--base-url={server.url}", f"--out={made}"], server.counts
    elif asked.command == "run":
        command += [*RUN, f"--out={made}"]
    else:
        endings, made = ("html", "ipynb"), ROOT / "book" / "_build" / "html"
    if asked.command == "reproduce":
        made, command = ROOT / "book" / "executed" / f"{asked.section}.ipynb", [*command, asked.section]
    how = {"cwd": ROOT, "env": os.environ | {MARK: mark, "TMPDIR": str(temporary)}, "text": True}

    def take_away():
        shutil.rmtree(made) if made.is_dir() else made.unlink(missing_ok=True)
        for path in home.glob(f"{store.name}*"):
            path.unlink()

    def start():
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **how)

    def found():
        pages = contents(made) if made.is_dir() else {made.name: made.read_bytes()}
        return {name: content for name, content in pages.items() if name.endswith(endings)}

    def other():
        """Names of files that are not as those that nobody disturbed."""
        after = found()
        return {name for name in before.keys() | after if before.get(name) != after.get(name)}

    def missing():
        """Answers that a server gave, and no store of this program has."""
        if counts is None:
            return 0
        there = read_stats(store, {})["attempts"].get("answer", 0) if store.exists() else 0
        return counts()["answered"] - there

    take_away()
    begun, whole = time.monotonic(), start()
    assert whole.wait() == 0, whole.stderr.read()
    seconds, before = time.monotonic() - begun, found()
    ended, changed, again = list[tuple[int, int, int]](), set[str](), 0
    print(f"{asked.command} takes {seconds:.0f} s and makes {len(before)} files", flush=True)
    anew, earlier = True, 0
    while len(ended) < asked.times:
        if anew:
            take_away()
            earlier = missing()
        begun, process = time.monotonic(), start()
        order = (signal.SIGTERM, signal.SIGKILL, signal.SIGINT)[len(ended) % 3]
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(random.uniform(0.1, seconds))
            if asked.command == "server":  # it is whole, after as many kills as there were
                changed, again, anew = changed | other(), again + 1, True
                changed |= {f"code {code}"} if code else set()
            else:  # the first had more to do
                seconds = time.monotonic() - begun
            continue
        process.send_signal(order)
        _, said = process.communicate()
        time.sleep(GRACE)
        lost, earlier = missing() - earlier, missing()
        lost = max(0, lost - (AT_ONCE if order == signal.SIGKILL else 0))
        ended.append((len(processes_of(mark)), said.count("Traceback"), lost))
        anew = asked.command != "server"
        print(f"{len(ended):2} {order.name}: code {process.returncode}, {ended[-1][0]} alive", flush=True)
        if ended[-1][1]:
            print(said, flush=True)
    if not resumes:
        take_away()
    code = start().wait()
    changed |= other()
    left = [path.name for path in temporary.iterdir()]
    orphans, tracebacks, lost = map(sum, zip(*ended, strict=True))
    print(f"orphans {orphans}, tracebacks {tracebacks}; once more: code {code}, temporary folders {left}")
    if counts is not None:
        print(f"{counts()['answered']} answers given, {lost} lost; whole after kills {again + 1} times")
    print(f"{len(found())} files, {len(changed)} other than before: {' '.join(sorted(changed)[:5])}")
    return bool(orphans or tracebacks or lost or code or left or changed)


if __name__ == "__main__":
    main()
