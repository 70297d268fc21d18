"""What a language model's answers are worth: trials of prompts, replays beside the simulated agent."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from envprobe_core import summarize
from envprobe_core.conditions import find_profile
from envprobe_core.errors import InputError
from envprobe_core.experiment import run_frame
from envprobe_core.llm import replays, running
from envprobe_core.llm.agent import Exchange
from envprobe_core.llm.answers import UNKNOWN_SIGN, InvalidAnswer
from envprobe_core.llm.calls import question

CELL = ["protocol", "world", "policy"]


def judged(asked: Exchange, answer: str) -> dict[str, Any]:
    """Whether an answer could be used as it was first given, and how it treats what was seen.

    Returns:
        Whether it is `valid`; of the fields `seen` how many it sets to the value shown (`right`); of its
        `rows` how many stand in an example of the prompt and were not seen (`copied`); and its `action`.
    """
    said = {"valid": False, "seen": len(asked.seen), "right": 0, "rows": 0, "copied": 0, "action": ""}
    try:
        update = asked.read(answer)
    except InvalidAnswer:
        return said
    shown = "".join(message["content"] for message in asked.request["messages"][:-1])
    examples = re.findall(r'"set":"([^"]*)"', shown)
    worked = {entry.partition(",")[0] for rows in examples for entry in rows.split(";")}
    believed = {field: value for field, value, _, _ in update.entries}
    copied = [
        (field, value)
        for field, value in believed.items()
        if f"{field}:{UNKNOWN_SIGN if value < 0 else value}" in worked and (field, value) not in asked.seen
    ]
    right = sum(believed.get(field) == value for field, value in asked.seen)
    told = {"valid": True, "right": right, "rows": len(believed), "copied": len(copied)}
    return said | told | {"action": update.action}


def read_trials(*paths: Path) -> pd.DataFrame:
    """Every answer of some trials, as `judged`, with its letters and, where known, tokens; a row an answer.

    Raises:
        InputError: if a trial lacks an answer to what it says that it asked.
    """
    rows = []
    for path in paths:
        trial, answers = replays.read_answers(path, running.Trial)
        for version in trial.versions:
            for world in trial.worlds:
                for one in trial.met(world, version):
                    key = question(trial.agent.provider, one.request, one.identity).key
                    if key not in answers:
                        raise InputError(f"trial {path.name} has no answer to step {one.step} of {world}")
                    text, tokens = answers[key].text, answers[key].used or ()
                    asked = sum(len(message["content"]) for message in one.request["messages"])
                    told = judged(one, text) | {"letters_in": asked, "letters_out": len(text)}
                    told |= dict(zip(("tokens_in", "tokens_out"), tokens, strict=False))
                    rows.append({"world": world, "version": version} | told)
    return pd.DataFrame(rows).sort_values(["world", "version"], kind="stable", ignore_index=True)


def beside_simulated(run: running.ReplayedRun, profile: str, resamples: int) -> pd.DataFrame:
    """Each cell of a replayed run, beside the simulated agent's on the same seeds; a row a cell.

    Args:
        run: one with results.
        profile: of the simulated agent, whose columns begin with `simulated_`.
        resamples: of the intervals of accuracy.

    Raises:
        InputError: if the run has no results here.
    """
    if run.frame is None:
        raise InputError(f"replay {run.file.path.name} has no results here: {run.fault}")
    own = find_profile(profile)
    same = [replace(cell, profile=own) for cell in run.inputs.conditions]
    played = run.frame.assign(**run.tally), run_frame(same, run.inputs.seeds_of_conditions)
    sides = []
    for name, frame in zip(("", "simulated_"), played, strict=True):
        groups = frame.groupby(CELL, sort=False)
        told = summarize(frame, "accuracy", CELL, resamples=resamples).set_index(CELL)
        sums = groups[["useful", "probes"]].sum()
        side = {"accuracy": told["mean"], "accuracy_low": told["low"], "accuracy_high": told["high"]}
        side |= {"success": groups["success"].mean(), "useful": sums["useful"] / sums["probes"]}
        side |= {share: told[share] for share in ("invalid_share", "loose_share") if share in told}
        sides.append(pd.DataFrame(side).add_prefix(name))
    groups = played[0].groupby(CELL, sort=False)
    asked = groups[["calls", "reasks", "verdicts", "invalid_updates"]].sum()
    updates = asked["calls"] - asked["reasks"] - asked["verdicts"]
    cells = pd.concat([groups.size().rename("episodes"), *sides], axis=1)
    cells = cells.assign(
        probes=groups["probes"].mean(), updates=updates, usable=1 - asked["reasks"] / updates
    )
    return cells.assign(invalid=asked["invalid_updates"]).reset_index()
