"""Replayed runs and trials of prompts on the page: who answered, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from envprobe_core.cells import find_profile
from envprobe_core.comparing import summarize
from envprobe_core.grid import COLUMNS, run_frame
from envprobe_core.llm.replayed import ReplayedRun
from envprobe_core.show.markup import EMPTY, Table, Text, code, listed

CELL = ["protocol", "world", "policy"]


def quoted(text: str) -> str:
    """Write what a file says so that it stays text whatever it is."""
    plain = " ".join(text.split()).replace("`", "'")
    return f"`{plain}`"


def beside(run: ReplayedRun, profile: str) -> pd.DataFrame:
    """Run the simulated agent of a profile on the cells and seeds of a replayed run.

    Returns:
        A row an episode, in the replayed run's order.
    """
    own = find_profile(profile)
    return run_frame([replace(cell, profile=own) for cell in run.inputs.cells], run.inputs.seeds_of_cells)


def tell_origin(run: ReplayedRun) -> Text:
    """Say what the file holds and who answered, and plainly so where that was no language model."""
    agent, inputs = run.file.agent, run.inputs
    said = (
        f"The file {quoted(run.path.name)} holds {len(run.file):,} answers of the model "
        f"{quoted(agent.settings.model)}, given by {quoted(agent.provider)} to prompts of version "
        f"{quoted(agent.prompt_version)}, temperature {agent.settings.temperature:g}. It was run on "
        f"{code(inputs.worlds)} with {code(inputs.policies)} at `{inputs.regime}` under "
        f"{code(inputs.protocols)}, seeds a cell: {run.seeds}."
    )
    who = (
        "**No language model was asked.** Every answer carries the fingerprint of the project's own scripted "
        "test server, which reads the prompt and lets the simulated agent answer it. The numbers below show "
        "that the path works, and nothing about language models."
        if run.scripted
        else f"The answers carry the fingerprints {listed(map(quoted, sorted(run.file.fingerprints)))}; they "
        "were given once and are replayed here. Whoever made the file says of it: "
        f"{quoted(run.file.note or 'nothing')}."
    )
    fault = f"\n\n**It has no results here:** {run.fault}." if run.fault else ""
    return Text(f"{said}\n\n{who}{fault}")


def same_episodes(frame: pd.DataFrame, other: pd.DataFrame) -> np.ndarray:
    """Say which episodes of two frames with the same order are equal, [row], the agent's name aside."""
    same = np.ones(len(frame), dtype=bool)
    for name in COLUMNS:
        if name != "profile":
            one, two = frame[name].to_numpy(), other[name].to_numpy()
            same &= (one == two) | ((one != one) & (two != two))
    return same


def cells(run: ReplayedRun, simulated: pd.DataFrame, resamples: int) -> pd.DataFrame:
    """Set each cell of a replayed run beside the simulated agent on the same seeds.

    Args:
        run: a replayed run; without results it has no cells.
        simulated: from `beside`.
        resamples: bootstrap resamples of the intervals.

    Returns:
        A row a cell: `protocol`, `world`, `policy`, `episodes`; of `accuracy`, `success`, `useful` (useful
        probes among all) and the same with `simulated_` before it the means, accuracies with `_low` and
        `_high`; `probes` an episode; `updates`, and of these the share that was `usable` at once and the
        number that stayed `invalid`; `same`, the episodes that equal the simulated agent's.
    """
    if run.frame is None or run.tally is None:
        return pd.DataFrame()
    asked = run.frame.assign(same=same_episodes(run.frame, simulated), **run.tally)
    rows = []
    for key, own in asked.groupby(CELL, sort=False):
        row = dict(zip(CELL, key, strict=True)) | {"episodes": len(own)}
        for name, frame in (("", own), ("simulated_", simulated.loc[own.index])):
            (told,) = summarize(frame, "accuracy", CELL, resamples=resamples).to_dict("records")
            row |= {f"{name}accuracy{end}": told[f"{at}"] for end, at in ENDS.items()}
            row[f"{name}success"] = frame["success"].mean()
            row[f"{name}useful"] = frame["useful"].sum() / max(frame["probes"].sum(), 1)
        updates = int(own["calls"].sum() - own["reasks"].sum() - own["verdicts"].sum())
        row |= {
            "probes": own["probes"].mean(), "updates": updates, "usable": 1 - own["reasks"].sum() / updates,
            "invalid": int(own["invalid_updates"].sum()), "same": int(own["same"].sum()),
        }  # fmt: skip
        rows.append(row)
    return pd.DataFrame(rows)


ENDS = {"": "mean", "_low": "low", "_high": "high"}


def prompts_compared(answers: pd.DataFrame) -> pd.DataFrame:
    """Sum up a trial of prompts, from `llm.trial.read_trial`.

    Returns:
        A row a world and version: `situations`; the share of answers that were `valid` at once; of the fields
        that were `seen` the share set to the value shown, `right`; of the rows set the share `copied` from an
        example of the prompt; the number of distinct `actions`. A share of nothing is NaN.
    """
    rows = []
    for (world, version), own in answers.groupby(["world", "version"], sort=False):
        sums = own[["seen", "right", "rows", "copied"]].sum().astype(float)
        rows.append(
            {
                "world": world,
                "version": version,
                "situations": len(own),
                "valid": own["valid"].mean(),
                "seen": int(sums["seen"]),
                "right": sums["right"] / sums["seen"] if sums["seen"] else np.nan,
                "copied": sums["copied"] / sums["rows"] if sums["rows"] else np.nan,
                "actions": own.loc[own["valid"], "action"].nunique(),
            }
        )
    return pd.DataFrame(rows)


def show_replays(runs: Sequence[ReplayedRun]) -> Table:
    """Show every replay file of the book, who answered, and whether it has results here."""
    rows = [
        [
            quoted(run.path.name),
            quoted(run.file.agent.settings.model),
            quoted(run.file.agent.prompt_version),
            f"`{run.inputs.regime}`, {code(run.inputs.protocols)}",
            str(run.seeds),
            "the scripted test server, no language model"
            if run.scripted
            else quoted(run.file.agent.provider),
            run.fault or "replayed, hash agrees",
        ]
        for run in runs
    ] or [[EMPTY] * 7]
    caption = "The replay files of `data/replays/`; runs on models join the scoreboard."
    head = ("file", "model", "prompts", "regime, protocol", "seeds", "who answered", "state")
    return Table("tab-model-replays", caption, head, rows, "llllrll")
