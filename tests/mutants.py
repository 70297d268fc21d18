"""Mutation testing: how many small changes of the core's arithmetic do its tests notice?

    python tests/mutants.py                              # one mutant in ten (`make mutants`)
    python tests/mutants.py --sample all rules judge     # all of some parts; of all parts it takes hours

Each part is mutated by mutmut in a copy of the checkout, `build/mutants/PART`, where both packages lie side
by side. Some parts are compiled, and mutmut leaves decorated functions alone: their copy loses decorators,
and runs as plain Python. What is left alive is listed; `mutmut show NAME` in the copy shows a mutant.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EPISODES = "test_golden_engine.py::test_an_episode_is_what_it_was"
PARTS = {  # what is mutated, and the tests that should notice
    "statistics": ("envprobe_core/statistics.py", ["test_statistics.py"]),
    "resampling": ("envprobe_core/resampling.py", ["test_statistics.py"]),
    "measures": ("envprobe_core/measures.py", ["test_measures.py"]),
    "judge": ("envprobe_book/claims/judge.py", ["test_claims.py"]),
    "rules": ("envprobe_core/policies/rules.py", ["test_policies.py", EPISODES]),
    "kernel": ("envprobe_core/engine/kernel.py", ["test_algorithm1.py", "test_faults.py", EPISODES]),
}
DECORATORS = re.compile(r"^from envprobe_core.compiled.numba_support import (.*)$", re.MULTILINE)
CONFIG = """
[tool.mutmut]
source_paths = ["envprobe_core", "envprobe_book"]
only_mutate = ["{file}"]
also_copy = ["book", "data", "notebooks", "tests"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning"]  # of whole words that wrap
pytest_add_cli_args_test_selection = {tests}
"""
ALIVE = ("survived", "no tests")  # a mutant that no test reaches is alive


def mutate(part, sample):
    """Run one part; return the fate of each mutant."""
    file, tests = PARTS[part]
    copy = ROOT / "build" / "mutants" / part
    shutil.rmtree(copy, ignore_errors=True)
    ours = shutil.ignore_patterns("__pycache__", "_build", "executed")
    for name in ("envprobe_core", "book", "data", "notebooks", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=ours)
    shutil.move(copy / "book" / "envprobe_book", copy / "envprobe_book")
    config = CONFIG.format(file=file, tests=[f"tests/{test}" for test in tests])
    (copy / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + config)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    source = copy / file
    if made := DECORATORS.search(source.read_text()):
        decorated = rf"^@(?:{made[1].replace(', ', '|')})\n"
        source.write_text(re.sub(decorated, "", source.read_text(), flags=re.MULTILINE))
        environment["NUMBA_DISABLE_JIT"] = "1"
    how = {"cwd": copy, "env": environment, "check": True}
    mutmut = Path(sys.executable).with_name("mutmut")
    subprocess.run([mutmut, "run", *([] if sample == "all" else [f"*__mutmut_*{sample}"])], **how)
    told = subprocess.run([mutmut, "results", "--all", "true"], capture_output=True, text=True, **how).stdout
    ends = dict(re.findall(r"^ +(\S+): (.*)$", told, re.MULTILINE))
    return {name: end for name, end in ends.items() if end != "not checked"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument(
        "--sample", default="7", metavar="DIGIT", help="mutants whose number ends in it; or all"
    )
    asked = parser.parse_args()
    lines = []
    for part in asked.parts or PARTS:
        ends = mutate(part, asked.sample)
        alive = [f"{name}: {end}" for name, end in ends.items() if end in ALIVE]
        killed = 1 - len(alive) / len(ends)
        lines += [*alive, f"{part}: {len(alive)} of {len(ends)} mutants alive, {killed:.0%} killed"]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
