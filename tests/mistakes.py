"""Mistakes that a zero for accuracy invites: each is put into a copy of the checkout, and tests must notice.

    python tests/mistakes.py

A mistake is a text of a file and what stands in its place. Printed is which tests failed for each; the
command fails if none did, or if a text is not there any more.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE, NOTICES = "envprobe_core", ["tests/test_zero.py"]
MISTAKES = {  # by name: the file, its text, and what is wrong in its place
    "the agent's own place stands in for the table's": (
        f"{CORE}/constant.py",
        "stays = own_place[row, t] == table[world.fields]",
        "stays = own_place[row, t] == own_place[row, max(t - 1, 0)]",
    ),
    "fields that are read together get their most frequent values": (
        f"{CORE}/constant.py",
        "    if protocol.accuracy != CODE:\n        return\n",
        "    if protocol.accuracy != 10 * CODE:\n        return\n",
    ),
    "what an instance does not have counts as right": (
        f"{CORE}/constant.py",
        "right += (gold[field] != UNKNOWN) & (table[field] == gold[field])",
        "right += (gold[field] == UNKNOWN) | (table[field] == gold[field])",
    ),
    "the table is learned on the seeds that are shown": (
        f"{CORE}/zero.py",
        "np.arange(RESERVED.start, RESERVED.stop, dtype=np.int64)",
        "np.arange(500, dtype=np.int64)",
    ),
    "the placebo of the book stands in for the yoked one": (
        f"{CORE}/zero.py",
        "    return simulate_logged(alike, seeds, scores_all=False, schedules=probes)",
        '    other = replace(condition, policy=POLICIES["placebo"])\n'
        "    return simulate_logged(other, seeds, scores_all=False)",
    ),
    "the placebo's zero is learned from the policy's own episodes": (
        f"{CORE}/zero.py",
        "return best_table(condition, yoked(condition, REFERENCE))",
        "return zero_of(condition)",
    ),
    "the zero reads the agent's belief": (
        f"{CORE}/zero.py",
        "np.ascontiguousarray(one, np.int8) for one in (recording.gold, recording.place)",
        "np.ascontiguousarray(one, np.int8) for one in (recording.belief, recording.place)",
    ),
}


def failed_with(file: str, right: str, wrong: str) -> list[str]:
    """Return the names of the tests that fail in a copy with a mistake."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        left = shutil.ignore_patterns(".git", ".venv", "_build", "executed", "build", "__pycache__")
        shutil.copytree(ROOT, copy, ignore=left, symlinks=True)
        text = (copy / file).read_text(encoding="utf-8")
        if text.count(right) != 1:
            raise SystemExit(f"{file} does not hold once: {right}")
        (copy / file).write_text(text.replace(right, wrong), encoding="utf-8")
        paths = os.pathsep.join(map(str, (copy, copy / "book", copy / "tests")))
        tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *NOTICES]
        told = subprocess.run(
            tests,
            cwd=copy,
            env=os.environ | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )
    return re.findall(r"^(?:FAILED|ERROR) \S+?::(\S+)", told.stdout, re.MULTILINE)


def main() -> None:
    """Make every mistake, and say who noticed."""
    unnoticed = 0
    for name, (file, right, wrong) in MISTAKES.items():
        failed = failed_with(file, right, wrong)
        unnoticed += not failed
        print(f"{name}: {', '.join(failed) or 'nobody noticed'}", flush=True)
    sys.exit(bool(unnoticed))


if __name__ == "__main__":
    main()
