"""What a language model's answers are worth: trials of prompts, replays beside the simulated agent."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from envprobe_book.pages.figures import policy_title
from envprobe_book.pages.markup import listed
from envprobe_core import summarize
from envprobe_core.conditions import find_profile
from envprobe_core.errors import InputError
from envprobe_core.experiment import run_frame
from envprobe_core.llm import replays, running
from envprobe_core.llm.agent import Exchange, estimate
from envprobe_core.llm.answers import UNKNOWN_SIGN, InvalidAnswer
from envprobe_core.llm.calls import Prices, Tokens, dollars, question
from envprobe_core.llm.one_step import OneStep
from envprobe_core.protocols import in_words
from envprobe_core.runs.manifest import RunInputs
from envprobe_core.statistics import LEVEL, mcnemar_exact
from envprobe_core.worlds import WORLDS

CELL = ["protocol", "world", "policy"]
COLUMNS = [
    "world", "policy", "episodes", "updates", "usable", "loose_share", "invalid_share", "accuracy",
    "accuracy_low", "accuracy_high", "simulated_accuracy", "success", "simulated_success", "probes", "useful",
    "simulated_useful",
]  # fmt: skip
SCRIPTED = "the scripted test server, no language model"
HEADS = {
    "usable": "share usable", "loose_share": "share loose", "invalid_share": "share invalid",
    "simulated_accuracy": "accuracy simulated", "simulated_success": "success simulated",
    "simulated_useful": "useful simulated",
}  # fmt: skip


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


def read_one_step(path: Path) -> pd.DataFrame:
    """Every answer of an experiment on one step; a row an answer.

    Returns:
        The columns `world seed step answered hint ask`; whether it could be used (`valid`); the value that it
        writes for the checked field (`wrote`, NaN where it writes none), whether that is the told one
        (`as_told`); and the `action`. What cannot be used writes nothing and has no action.

    Raises:
        InputError: if an answer is missing to what the file says that was asked.
    """
    asked, answers = replays.read_answers(path, OneStep)
    rows = []
    for arm in asked.arms():
        key = question(asked.agent.provider, arm.request, arm.identity).key
        if key not in answers:
            raise InputError(f"{path.name} has no answer to step {arm.step} of {arm.world}")
        told: dict[str, Any] = {"valid": False, "wrote": np.nan, "action": np.nan}
        try:
            update = arm.read(answers[key].text)
            wrote = {field: value for field, value, _, _ in update.entries}.get(arm.field, np.nan)
            told = {"valid": True, "wrote": wrote, "action": update.action}
        except InvalidAnswer:
            pass
        place = {name: getattr(arm, name) for name in ("world", "seed", "step", "answered", "hint", "ask")}
        rows.append(place | told | {"as_told": told["wrote"] == arm.value})
    return pd.DataFrame(rows)


def shares_as_told(found: pd.DataFrame) -> pd.DataFrame:
    """The share of situations in which the told value is written for the checked field, asked the first time.

    Args:
        found: as `read_one_step` gives it.

    Returns:
        A row a world, without the answer line and with it; a column a hint.
    """
    places = ["world", "answered", "hint"]
    shares = found[found["ask"] == 0].groupby(places, sort=False)["as_told"].mean().unstack("hint")
    shares.index = [
        f"{WORLDS[world]}, {'with' if line else 'without'} the answer line" for world, line in shares.index
    ]
    return shares.rename(columns=_hints(found))


def _hints(found: pd.DataFrame) -> dict[str, str]:
    """What pages call the hints of an experiment on one step, the first of which is none."""
    none, *hints = dict.fromkeys(found["hint"])
    return {none: "no hint"} | {hint: f"{hint} hint" for hint in hints}


Request = tuple[bool, str, int]
"""One of a situation's requests: with the answer line or without, with which hint, asked which time."""


def request_pairs(found: pd.DataFrame) -> list[tuple[str, str, Request, Request]]:
    """The pairs of requests that are tested: the answer line, a hint, and asking again.

    Args:
        found: as `read_one_step` gives it.

    Returns:
        Of each pair what is changed, what both have, and the request with the change and the one without.
    """
    named = _hints(found)
    none, *hints = named
    lines = {True: "the answer line", False: "no answer line"}
    pairs: list[tuple[str, str, Request, Request]] = [
        (lines[True], named[hint], (True, hint, 0), (False, hint, 0)) for hint in named
    ]
    pairs += [
        (named[hint], lines[line], (line, hint, 0), (line, none, 0)) for line in lines for hint in hints
    ]
    pairs += [
        (named[b], f"{named[a]}, with the answer", (True, b, 0), (True, a, 0)) for a, b in pairwise(hints)
    ]
    return pairs + [("asking again", named[hint], (True, hint, 1), (True, hint, 0)) for hint in named]


def least_change(pairs: int, power: float = 0.8, level: float = LEVEL) -> float:
    """The smallest share of pairs changed to one side, none to the other, that McNemar's test finds so often.

    >>> [round(least_change(pairs), 3) for pairs in (120, 48, 16)]
    [0.065, 0.16, 0.449]
    """
    from scipy.special import bdtrc

    fewest = next(count for count in range(1, pairs + 1) if mcnemar_exact(count, 0) < 1 - level)
    shares = np.linspace(0, 1, 10_001)
    return float(shares[np.argmax(bdtrc(fewest - 1, pairs, shares) >= power)])


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


def as_shown(cells: pd.DataFrame) -> pd.DataFrame:
    """What `beside_simulated` gives, with the columns of a page and their heads."""
    return cells[COLUMNS].rename(columns=HEADS)


def levels(cells: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of what `beside_simulated` gives, the model's rows and then the simulated agent's.

    Returns:
        The columns of a figure: `level` with its ends; the `panel`, a world and who acts there; the `policy`.
    """
    sides = []
    for who, side in (("the model", ""), ("simulated", "simulated_")):
        level = cells[[f"{side}accuracy{end}" for end in ("", "_low", "_high")]]
        level.columns = ["level", "level_low", "level_high"]
        panels = [f"{WORLDS[world]}, {who}" for world in cells["world"]]
        sides.append(level.assign(panel=panels, policy=cells["policy"]))
    return pd.concat(sides)


def described(run: running.ReplayedRun) -> str:
    """A replay file in words: what it holds, on what it was run, and who gave the answers. Markdown."""
    file, inputs, quoted = run.file, run.inputs, running.quoted
    agent, note = file.agent, file.header.note or "nothing"
    who = (
        "**No language model was asked.** Every answer carries the fingerprint of the project's own scripted "
        "test server, which reads the prompt and lets the simulated agent answer it. The numbers below show "
        "that the path works, and nothing about language models."
        if run.scripted
        else f"The answers carry the fingerprints {listed(map(quoted, sorted(file.fingerprints)))}; they "
        f"were given once and are replayed here. Whoever made the file says of it: {quoted(note)}."
    )
    return (
        f"The file {quoted(file.path.name)} holds {len(file.answers):,} answers of the model "
        f"{quoted(agent.model)}, given by {quoted(agent.provider)} to prompts of version "
        f"{quoted(agent.prompt_version)}, temperature {agent.temperature:g}. It was run on "
        f"{listed(WORLDS[world] for world in inputs.worlds)} with "
        f"{listed(map(policy_title, inputs.policies))} at `{inputs.regime}`, "
        f"{listed(map(in_words, inputs.protocols))}, {run.seeds} seeds a cell.\n\n{who}"
    )


def shown_table(asked: Exchange) -> pd.DataFrame:
    """The belief table as a message shows it, a row a field.

    Returns:
        Its `value`, a text, the step of its `evidence`, and its `confidence` in percent.

    >>> from envprobe_core.agents.model import PROMPT_VERSION, ModelAgent
    >>> from envprobe_core.conditions import make_condition
    >>> from envprobe_core.llm.agent import exchanges
    >>> cell, agent = make_condition("tooldag", "simple"), ModelAgent("openai", PROMPT_VERSION, "any")
    >>> shown_table(next(iter(exchanges(cell, np.array([0]), agent)))).head(2)["confidence"].tolist()
    [100, 100]
    """
    lines = asked.situation.partition("Table\n")[2].split("\n")
    names = list(asked.world.field_names)
    rows = [line.partition(":")[2].split(",") for line in lines[: len(names)]]
    table = pd.DataFrame(rows, pd.Index(names, name="field"), ["value", "evidence", "confidence"])
    return table.astype({"evidence": int, "confidence": int})


def costs_of(grid: RunInputs, protocols: Iterable[str], prices: Prices, sample: int) -> pd.DataFrame:
    """What a grid would cost under each protocol, as `estimate` gives it; a row a protocol."""
    agent = grid.agent
    if agent is None:
        raise InputError("costs_of: the simulated agent costs nothing; give the agent of a model")
    rows = []
    for name in protocols:
        own = replace(grid, protocols=[name])
        found = estimate(own.conditions, own.seeds_of_conditions, agent, prices, sample)
        rows.append({"protocol": name} | found)
    return pd.DataFrame(rows)


def priced(prices: Prices, tokens: Tokens) -> pd.DataFrame:
    """A list of prices, in dollars a million tokens, and what some tokens cost at each."""
    rows = [
        (name, one.input, one.input if one.cached_input is None else one.cached_input, one.output,
         dollars(one.cost(tokens)))
        for name, one in prices.items()
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["model", "input", "cached input", "output", "the grid"])


def replay_files() -> pd.DataFrame:
    """The replay files, with who answered and whether their results come out again; a row a file."""
    quoted = running.quoted
    return pd.DataFrame(
        {
            "file": quoted(one.file.path.name), "model": quoted(one.file.agent.model),
            "prompts": quoted(one.file.agent.prompt_version),
            "setting": f"`{one.inputs.regime}`, {listed(map(in_words, one.inputs.protocols))}",
            "seeds": one.seeds,
            "who answered": SCRIPTED if one.scripted else quoted(one.file.agent.provider),
            "state": one.fault or "replayed, hash agrees",
        }
        for one in running.load_replays()
    )  # fmt: skip
