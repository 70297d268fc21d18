"""A replayed run on the page: who answered, what it measured, and the simulated agent beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.analyses.main_table import claims_at, load_comparisons, show_gains
from envprobe_core.cells import find_profile
from envprobe_core.claims.judge import NOT_TESTED
from envprobe_core.claims.judge import judge as evaluate_all
from envprobe_core.experiments import COLUMNS, run_frame
from envprobe_core.llm.replayed import ReplayedRun, join_comparisons, rows_of
from envprobe_core.show.figures import WORLD_TITLES, policy_title
from envprobe_core.show.markup import EMPTY, Table, Text, code, counted, listed, number, percent
from envprobe_core.show.table import show_ledger

if TYPE_CHECKING:
    import pandas as pd

CELL = ["protocol", "world", "policy"]


def quoted(text: str) -> str:
    """Write what a file says so that it stays text whatever it is."""
    plain = " ".join(text.split()).replace("`", "'")
    return f"`{plain}`"


def load_beside(run: ReplayedRun, profile: str) -> pd.DataFrame:
    """Run the simulated agent on the cells and seeds of a replayed run.

    Args:
        run: the replayed run.
        profile: name of the simulated agent's profile.

    Returns:
        A row an episode, in the replayed run's order.
    """
    own = find_profile(profile)
    return run_frame([replace(cell, profile=own) for cell in run.inputs.cells], run.inputs.seeds_of_cells)


def tell_origin(run: ReplayedRun) -> Text:
    """Say what the file holds and who answered, and plainly so where that was no language model."""
    agent, inputs = run.file.agent, run.inputs
    said = (
        f"The file `{run.path.name}` holds {len(run.file):,} answers of the model "
        f"{quoted(agent.settings.model)}, given by {quoted(agent.provider)} to prompts of version "
        f"{quoted(agent.prompt_version)}, temperature {agent.settings.temperature:g}. It was run on "
        f"{code(inputs.worlds)} with {code(inputs.policies)} at `{inputs.regime}` under "
        f"{code(inputs.protocols)}, {run.seeds} seeds a cell. These are the file's own; of the page's "
        "parameters only `profile` and `resamples` matter to it."
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


def show_results(run: ReplayedRun, beside: pd.DataFrame) -> Table:
    """Show what each cell of a replayed run achieved, and what it asked for.

    Args:
        run: a replayed run.
        beside: from `load_beside`.
    """
    rows = []
    if run.frame is not None and run.tally is not None:
        columns = run.frame.assign(same=same_episodes(run.frame, beside), **run.tally)
        for (protocol, world, policy), own in columns.groupby(CELL, sort=False):
            rows.append(
                [
                    f"`{protocol}`",
                    WORLD_TITLES[world],
                    policy_title(policy),
                    str(len(own)),
                    number(own["accuracy"].mean(), 3),
                    percent(own["success"].mean()),
                    number(own["probes"].mean(), 1),
                    f"{own['calls'].sum():,}",
                    str(own["reasks"].sum()),
                    str(own["invalid_updates"].sum() + own["invalid_verdicts"].sum()),
                    f"{own['prompt_tokens'].mean():,.0f} + {own['completion_tokens'].mean():,.0f}",
                    f"{own['same'].sum()} of {len(own)}",
                ]
            )
    rows = rows or [[EMPTY] * 12]
    profile = beside["profile"].iloc[0]
    caption = (
        f"The replayed run of {quoted(run.label)}, a row a cell: accuracy, success and probes; answers used, "
        "how many were asked for again, how many stayed *invalid*; tokens an episode as the server counted "
        "them, to the model and from it; and the episodes that equal those of the simulated agent "
        f"`{profile}` in every column."
    )
    head = (
        "protocol", "world", "policy", "episodes", "$A_H$", "success", "probes", "answers", "asked again",
        "invalid", "tokens an episode", "as simulated",
    )  # fmt: skip
    return Table("tab-model-results", caption, head, rows, "lllrrrrrrrrr")


def same_episodes(frame: pd.DataFrame, other: pd.DataFrame) -> np.ndarray:
    """Say which episodes of two frames with the same order are equal, [row], the agent's name aside."""
    same = np.ones(len(frame), dtype=bool)
    for name in COLUMNS:
        if name != "profile":
            one, two = frame[name].to_numpy(), other[name].to_numpy()
            same &= (one == two) | ((one != one) & (two != two))
    return same


def tell_results(run: ReplayedRun, beside: pd.DataFrame) -> Text:
    """Say how many episodes equal the simulated agent's, and how many updates could not be used."""
    if run.frame is None or run.tally is None:
        return Text("There is nothing to compare.")
    same, profile = same_episodes(run.frame, beside), beside["profile"].iloc[0]
    invalid, calls = int(run.tally["invalid_updates"].sum()), int(run.tally["calls"].sum())
    updates = calls - int(run.tally["reasks"].sum() + run.tally["verdicts"].sum())
    if same.all():
        equal = f"All {len(same)} episodes equal those of the simulated agent `{profile}` run directly"
        because = (
            ": what a prompt tells and an answer can say is all that this agent uses" if run.scripted else ""
        )
    else:
        count = counted(int(same.sum()))
        equal = f"Of {len(same)} episodes {count} equal those of the simulated agent `{profile}`"
        because = ", which is another agent than the one that answered" if run.scripted else ""
    effect = ": in those steps beliefs were left as they were, and the agent waited" if invalid else ""
    return Text(f"{equal}{because}. Of {updates:,} belief updates {counted(invalid)} stayed invalid{effect}.")


def load_joined(run: ReplayedRun, beside: pd.DataFrame, resamples: int) -> pd.DataFrame:
    """Set a replayed run beside the simulated agent on the same seeds, by row of the paper's first table.

    Args:
        run: a replayed run.
        beside: from `load_beside`.
        resamples: bootstrap resamples.
    """
    regime, profile = run.inputs.regime, beside["profile"].iloc[0]
    table = load_comparisons(beside, regime, profile, resamples)
    return join_comparisons(table, [run], regime, run.inputs.protocols, resamples)


def show_joined(joined: pd.DataFrame, profile: str) -> Table:
    """Show the rows of the paper's first table with the replayed run.

    Args:
        joined: from `load_joined`.
        profile: of the simulated agent.
    """
    caption = (
        f"The paper's Table 1 as printed, the simulated agent `{profile}` on the replay's seeds, and the "
        "replayed run. Levels are shares, differences percentage points."
    )
    return replace(show_gains(joined), label="tab-model-gains", caption=caption)


def show_claims(run: ReplayedRun, resamples: int) -> Table:
    """Show the verdicts on the claims of the main results that the replayed run can test.

    Args:
        run: a replayed run.
        resamples: bootstrap resamples.
    """
    caption = f"What the replayed run of {quoted(run.label)} says about the claims that its cells can test."
    label = "tab-model-claims"
    if run.frame is not None:
        claims = claims_at("main", run.inputs.regime)
        profile = run.inputs.cells[0].profile.name
        found = evaluate_all(run.frame, claims, profile=profile, resamples=resamples)
        tested = found[found["verdict"] != NOT_TESTED]
        if len(tested):
            kept = found[found["claim"].isin(tested["claim"])]
            return show_ledger(kept, label, caption)
    return Table(label, caption, ("claim", "verdict"), [[EMPTY, NOT_TESTED]], "ll")


def show_replays(runs: Sequence[ReplayedRun]) -> Table:
    """Show every replay file of the book, who answered, and whether it has results here."""
    rows = [
        [
            f"`{run.path.name}`",
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
    caption = "The replay files of `data/replays/`: their runs join the main table and the scoreboard."
    head = ("file", "model", "prompts", "regime, protocol", "seeds", "who answered", "state")
    return Table("tab-model-replays", caption, head, rows, "llllrll")


def tell_joined(runs: Sequence[ReplayedRun], regime: str, protocols: str) -> Text:
    """Say on another page which replayed runs stand in its tables, and which do not.

    Args:
        runs: every replayed run.
        regime: of the page.
        protocols: of the page.
    """
    lines = []
    for run in runs:
        shown = [] if run.frame is None or run.inputs.regime != regime else rows_of(run, protocols)
        who = " (the scripted test server, no language model)" if run.scripted else ""
        if shown:
            labels = code(label for _, label in shown)
            lines.append(
                f"{labels}{who} is a replayed run on {run.seeds} seeds a cell, not on this page's seeds"
            )
        else:
            reason = run.fault or "it was run in another regime or under another protocol"
            lines.append(f"{quoted(run.label)}{who} is left out: {reason}")
    told = ". ".join(lines)
    return Text(
        f"Replayed runs, from the section on [language models](language-model.ipynb): {told}."
        if lines
        else "There are no replayed runs in `data/replays/`."
    )
