"""`reproduce` or `book` killed at random: what is left behind, and whether the next goes on to the same.

    python tests/kills.py reproduce --times 20 --section terms -p resamples=300
    python tests/kills.py book --times 20

Each time what it makes is taken away, it is started, and ended by TERM, KILL or INT at a random moment. Five
seconds later nothing that it started may live. In the end the command is given once more: it must
leave no temporary folder, and the same bytes as one that nobody disturbed.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from processes import MARK, processes_of

from envprobe_core.sources import ROOT

SIGNALS = (signal.SIGTERM, signal.SIGKILL, signal.SIGINT)
GRACE = 5.0  # seconds after which nothing may live
EXECUTED, HTML = ROOT / "book" / "executed", ROOT / "book" / "_build" / "html"
SAME = {"reproduce": (EXECUTED, "*.ipynb"), "book": (HTML, "**/*.html")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("command", choices=SAME)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--within", type=float, default=3600.0, help="seconds in which a kill falls")
    parser.add_argument("--section", default="terms")
    parser.add_argument("-p", dest="given", action="append", default=[])
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    dice, mark = random.Random(asked.seed), f"kills-{os.getpid()}"
    sections = [asked.section] if asked.command == "reproduce" else []
    options = [part for text in asked.given for part in ("-p", text)]
    command = [sys.executable, "-m", "envprobe_core", asked.command, *sections, *options]
    folder, pattern = SAME[asked.command]
    temporary = Path(tempfile.mkdtemp(prefix="kills-"))
    environment = os.environ | {MARK: mark, "TMPDIR": str(temporary)}

    def start():
        if asked.command == "book":
            shutil.rmtree(HTML, ignore_errors=True)
        else:
            (EXECUTED / f"{asked.section}.ipynb").unlink(missing_ok=True)
        where = {"cwd": ROOT, "env": environment, "text": True}
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **where)

    def bytes_made():
        return {path.relative_to(folder): path.read_bytes() for path in folder.glob(pattern)}

    begun = time.monotonic()
    whole = start()
    assert whole.wait() == 0, whole.stderr.read()
    seconds, before = time.monotonic() - begun, bytes_made()
    print(f"{asked.command} takes {seconds:.0f} s and makes {len(before)} files", flush=True)
    killed = orphans = faults = 0
    while killed < asked.times:
        process, order = start(), SIGNALS[killed % len(SIGNALS)]
        time.sleep(dice.uniform(0.1, min(asked.within, seconds)))
        if process.poll() is not None:  # it has ended by itself, sooner than the first
            seconds *= 0.9
            continue
        process.send_signal(order)
        _, said = process.communicate()
        time.sleep(GRACE)
        left, tracebacks = processes_of(mark), said.count("Traceback")
        killed, orphans, faults = killed + 1, orphans + len(left), faults + tracebacks
        print(f"{killed:2} {order.name}: code {process.returncode}, {len(left)} alive", flush=True)
    again = start()
    code = again.wait()
    after, left = bytes_made(), [path.name for path in temporary.iterdir()]
    changed = sorted(str(name) for name in before.keys() | after if before.get(name) != after.get(name))
    print(f"orphans {orphans}, tracebacks {faults}; once more: code {code}, temporary folders {left}")
    print(f"{len(after)} files, {len(changed)} other than before: {' '.join(changed[:5])}")
    shutil.rmtree(temporary, ignore_errors=True)
    sys.exit(bool(orphans or faults or code or left or changed))


if __name__ == "__main__":
    main()
