"""A command killed at random: what is left behind, and whether the next goes on to the same.

    python tests/kills.py reproduce --times 20 --section terms -p resamples=300
    python tests/kills.py book --times 20
    python tests/kills.py run --times 20

Each time what it makes is taken away, it is started, and ended by TERM, KILL or INT at a random moment. Five
seconds later nothing that it started may live. In the end the command is given once more, a run in the folder
that the last one left: it must leave no temporary folder, and the same bytes as one that nobody disturbed.
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

from envprobe_core.sources import ROOT
from processes import COMMAND, MARK, contents, processes_of

GRACE = 5.0  # seconds after which nothing may live
COMMANDS = ("reproduce", "book", "run")
RUN = ["--world=all", "--policy=all", "--protocol=paper", "--protocol=observed", "--jobs=2"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--section", default="terms")
    parser.add_argument("-p", dest="given", action="append", default=[])
    asked = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    mark, temporary = f"kills-{os.getpid()}", Path(tempfile.mkdtemp(prefix="kills-"))
    command = [*COMMAND, asked.command, *(f"--param={text}" for text in asked.given)]
    endings = ("parquet", "json") if asked.command == "run" else ("html", "ipynb")
    if asked.command == "reproduce":
        made, command = ROOT / "book" / "executed" / f"{asked.section}.ipynb", [*command, asked.section]
    elif asked.command == "book":
        made = ROOT / "book" / "_build" / "html"
    else:
        made = Path(tempfile.mkdtemp(prefix="kills-run-"))
        command += [*RUN, f"--out={made}"]
    how = {"cwd": ROOT, "env": os.environ | {MARK: mark, "TMPDIR": str(temporary)}, "text": True}

    def start(anew=True):
        if anew:
            shutil.rmtree(made) if made.is_dir() else made.unlink(missing_ok=True)
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **how)

    def found():
        pages = contents(made) if made.is_dir() else {made.name: made.read_bytes()}
        return {name: content for name, content in pages.items() if name.endswith(endings)}

    begun, whole = time.monotonic(), start()
    assert whole.wait() == 0, whole.stderr.read()
    seconds, before, ended = time.monotonic() - begun, found(), []
    print(f"{asked.command} takes {seconds:.0f} s and makes {len(before)} files", flush=True)
    while len(ended) < asked.times:
        begun, process = time.monotonic(), start()
        order = (signal.SIGTERM, signal.SIGKILL, signal.SIGINT)[len(ended) % 3]
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(random.uniform(0.1, seconds))
            seconds = time.monotonic() - begun  # it has ended by itself: the first had more to do
            continue
        process.send_signal(order)
        _, said = process.communicate()
        time.sleep(GRACE)
        ended.append((len(processes_of(mark)), said.count("Traceback")))
        print(f"{len(ended):2} {order.name}: code {process.returncode}, {ended[-1][0]} alive", flush=True)
    code, after = start(anew=asked.command != "run").wait(), found()
    left = [path.name for path in temporary.iterdir()]
    orphans, tracebacks = map(sum, zip(*ended, strict=True))
    changed = sorted(name for name in before.keys() | after if before.get(name) != after.get(name))
    print(f"orphans {orphans}, tracebacks {tracebacks}; once more: code {code}, temporary folders {left}")
    print(f"{len(after)} files, {len(changed)} other than before: {' '.join(changed[:5])}")
    for folder in (temporary, *([made] if asked.command == "run" else [])):
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(bool(orphans or tracebacks or code or left or changed))


if __name__ == "__main__":
    main()
