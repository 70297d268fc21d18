"""A process that runs episodes when it is told to, on the engine that PYTHONPATH names.

`bench.py` lets two of them take turns. A line of standard input is a JSON list, the name of a function below
and its arguments; the line that answers it is the processor seconds that it took.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from envprobe_core.policies import custom_policy
from envprobe_core.protocols import parse_protocol
from envprobe_core.worlds import WORLDS

try:  # the former engine, beside which this file is timed
    from envprobe_core.cells import make_cell as make_condition
    from envprobe_core.sweep import run_cells as run_conditions
except ModuleNotFoundError:
    from envprobe_core.conditions import make_condition
    from envprobe_core.experiment import run_conditions

SLIDER_POLICIES = ("no-probe", "periodic", "self-uncertainty", "simple")
SLIDER_SEEDS = 220


def reader(view: Any) -> Any:
    """Score as Simple does, in a reader's words."""
    return view.c + view.s + view.u + view.d


OWN = {
    "called": custom_policy("called", partial(reader))  # the former engine compiles what is a plain function
}


def cell(world: str, policy: str, protocol: str, episodes: int) -> None:
    """Run a cell of S2 with all measures; a policy may also be one of `OWN`."""
    made = make_condition(world, "simple" if policy in OWN else policy, "S2", parse_protocol(protocol))
    if policy in OWN:
        made = replace(made, policy=OWN[policy])
    run_conditions([made], np.arange(episodes))


def loop(episodes: int) -> None:
    """Run the former engine's yardstick, a loop over tools alone that takes no measures."""
    from compiled import compiled_run

    compiled_run(make_condition("tooldag", "simple"), np.arange(episodes))


def slider(budget: int) -> None:
    """Run what a tick of a slider asks for, in each world."""
    for world in WORLDS:
        cells = [make_condition(world, policy, budget=budget) for policy in SLIDER_POLICIES]
        run_conditions(cells, np.arange(SLIDER_SEEDS))


def main() -> None:
    """Do what is asked for, line by line."""
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        begin = time.process_time()
        globals()[name](*arguments)
        print(time.process_time() - begin, flush=True)


if __name__ == "__main__":
    main()
