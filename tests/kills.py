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

from processes import COMMAND, MARK, contents, processes_of

from envprobe_core.sources import ROOT

SIGNALS = (signal.SIGTERM, signal.SIGKILL, signal.SIGINT)
GRACE = 5.0  # seconds after which nothing may live
MADE = {"reproduce": ROOT / "book" / "executed", "book": ROOT / "book" / "_build" / "html"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("command", choices=MADE)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--section", default="terms")
    parser.add_argument("-p", dest="given", action="append", default=[])
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    dice, mark, folder = random.Random(asked.seed), f"kills-{os.getpid()}", MADE[asked.command]
    section = [asked.section] if asked.command == "reproduce" else []
    command = [*COMMAND, asked.command, *section, *(f"--param={text}" for text in asked.given)]
    temporary = Path(tempfile.mkdtemp(prefix="kills-"))

    def start():
        if section:
            (folder / f"{asked.section}.ipynb").unlink(missing_ok=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
        how = {"cwd": ROOT, "env": os.environ | {MARK: mark, "TMPDIR": str(temporary)}, "text": True}
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **how)

    def made():
        return {
            name: content for name, content in contents(folder).items() if name.endswith(("html", "ipynb"))
        }

    begun, whole = time.monotonic(), start()
    assert whole.wait() == 0, whole.stderr.read()
    seconds, before = time.monotonic() - begun, made()
    print(f"{asked.command} takes {seconds:.0f} s and makes {len(before)} files", flush=True)
    killed = orphans = tracebacks = 0
    while killed < asked.times:
        process, order = start(), SIGNALS[killed % len(SIGNALS)]
        time.sleep(dice.uniform(0.1, seconds))
        if process.poll() is not None:  # it has ended by itself, sooner than the first
            seconds *= 0.9
            continue
        process.send_signal(order)
        _, said = process.communicate()
        time.sleep(GRACE)
        left = len(processes_of(mark))
        killed, orphans, tracebacks = killed + 1, orphans + left, tracebacks + said.count("Traceback")
        print(f"{killed:2} {order.name}: code {process.returncode}, {left} alive", flush=True)
    code, after, left = start().wait(), made(), [path.name for path in temporary.iterdir()]
    changed = sorted(name for name in before.keys() | after if before.get(name) != after.get(name))
    print(f"orphans {orphans}, tracebacks {tracebacks}; once more: code {code}, temporary folders {left}")
    print(f"{len(after)} files, {len(changed)} other than before: {' '.join(changed[:5])}")
    shutil.rmtree(temporary, ignore_errors=True)
    sys.exit(bool(orphans or tracebacks or code or left or changed))


if __name__ == "__main__":
    main()
