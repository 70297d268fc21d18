"""Section *score*: what the probe score is made of, and one episode step by step.

Source: the probe score and Algorithm 1 (Section 4), the hyperparameter table.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.cells import make_cell
from envprobe_core.engine.records import STALENESS_LIMIT, UNKNOWN
from envprobe_core.errors import InputError
from envprobe_core.experiments import PROTOCOLS, Names, find_protocols, names
from envprobe_core.figures import (
    BLUE,
    GREY,
    GROUND,
    INK,
    VERMILLION,
    WORLD_TITLES,
    Drawing,
    canvas,
    policy_title,
)
from envprobe_core.markup import Table, Text, listed, number
from envprobe_core.metrics import COLLAPSE
from envprobe_core.policies import TERMS, find_policy
from envprobe_core.timeline import goal_times, rho, word
from envprobe_core.widgets.player import TERM_COLOURS, Player, pair_of
from envprobe_core.witness import Witnessed, witness

if TYPE_CHECKING:
    pass

TERM_NAMES = {"c": "criticality", "s": "staleness", "u": "uncertainty", "d": "dependency role"}
OWN_BUDGET = -1  # the regime's floor(H / 4)


def load_episode(
    world: str = "tooldag",
    policy: str = "simple",
    seed: int = 0,
    regime: str = "S2",
    protocol: Names = PROTOCOLS,
    profile: str = "typical",
    threshold: float = 1.5,
    budget: int = OWN_BUDGET,
) -> Witnessed:
    """Run one episode and keep what its policy saw, under the first of the protocols.

    Args:
        world: its name; of several the first.
        policy: its name; of several the first.
        seed: which episode.
        regime: its name.
        protocol: names; the first is played.
        profile: the agent's.
        threshold: of policies that have one; others ignore it, and `tell_episode` says so.
        budget: probes allowed; -1 is the regime's floor(H / 4).
    """
    name = names(policy)[0]
    cell = make_cell(
        names(world)[0], name, regime, find_protocols(protocol)[0], profile,
        None if budget == OWN_BUDGET else budget,
        threshold if find_policy(name).has_threshold else None,
    )  # fmt: skip
    return witness(cell, np.array([seed], dtype=np.int64))


def story(seen: Witnessed, start: int = 0, name: str = "story") -> Player:
    """Show the episode step by step, first the step `start`."""
    return Player([pair_of(seen)], start=start, identity=name)


def moment_of(seen: Witnessed, moment: int) -> int:
    """Return a decision step of the episode: the one asked for, or the last if it is shorter."""
    last = int(seen.trajectory.steps[0]) - 1
    if last < 0:
        raise InputError("the episode has no decision: its goal is reached at the start")
    return min(moment, last)


def show_table(seen: Witnessed, moment: int) -> Table:
    """Show the whole belief table at one decision, highest score first."""
    t = moment_of(seen, moment)
    world, run, score = seen.world, seen.trajectory, rho(seen)[0, t]
    rows = []
    for i in np.argsort(-score, kind="stable").tolist():
        held, truth = int(run.belief[0, t, i]), int(run.gold[0, t, i])
        rows.append(
            (
                f"*{world.field_names[i]}*", word(world, i, held),
                "" if held == truth else word(world, i, truth),
                f"{run.confidence[0, t, i]}%", str(min(int(run.staleness[0, t, i]), STALENESS_LIMIT)),
                *(number(float(term)) for term in seen.terms[0, t, i]), number(float(score[i])),
            )
        )  # fmt: skip
    kept = seen.kept_terms or TERMS
    return Table(
        "tab-beliefs",
        f"The belief table at step {t}, and its score: $\\rho = {' + '.join(kept)}$. *Truth* is filled in "
        "where the belief is wrong; the agent does not see that column.",
        ("field", "belief", "truth", "conf", "$\\hat\\tau$", *TERMS, "$\\rho$"),
        rows,
        "lllrrrrrrr",
    )


def plot_episode(seen: Witnessed, name: str = "episode") -> Drawing:
    """Draw an episode at a glance: accuracy, the best field's score by term, and the table by time."""
    recording, world, steps = seen.trajectory, seen.world, int(seen.trajectory.steps[0])
    figure, panels = canvas(
        3.4 + 0.15 * world.fields, rows=3, sharex=True, height_ratios=(1, 1.3, max(1.5, 0.12 * world.fields))
    )
    top, middle, bottom = panels[:, 0]
    track = recording.accuracy[0]
    top.plot(np.arange(len(track)), track, color=BLUE)
    top.axhline(COLLAPSE, color=GREY, linestyle=(0, (4, 3)), linewidth=1)
    top.set_ylim(0, 1.02)
    top.set_ylabel("accuracy\n(share)")
    fired = _bars(middle, seen, steps)
    _grid(bottom, seen, steps)
    bottom.set_xlabel("time t (steps)")
    bottom.set_xlim(-0.6, seen.cell.regime.horizon + 0.6)
    useful = int(recording.useful[0].sum())
    low = float(np.nanmin(track)) if np.isfinite(track).any() else np.nan
    alt = (
        f"One episode: accuracy by time (lowest {low:.2f}), the highest score at each step by term, and "
        f"which of {world.fields} fields are believed right, wrong or unknown. {fired} probes, {useful} "
        "of them useful."
    )
    return Drawing(figure, name, alt)


def _bars(axes: object, seen: Witnessed, steps: int) -> int:
    """Stack the terms of the probed, else of the best field at each step; return the number of probes."""
    recording, score = seen.trajectory, rho(seen)[0]
    kept = seen.kept_terms or TERMS
    probe = recording.probe[0, :steps].astype(np.int64)
    shown = np.where(probe >= 0, probe, np.argmax(np.nan_to_num(score[:steps], nan=-1.0), axis=1))
    times, base = np.arange(steps), np.zeros(steps)
    for term in kept:
        height = seen.term(term)[0, times, shown]
        axes.bar(
            times,
            height,
            bottom=base,
            width=0.8,
            color=TERM_COLOURS[term],
            label=f"{term}: {TERM_NAMES[term]}",
        )
        base = base + height
    axes.plot(times[probe >= 0], base[probe >= 0] + 0.15, "v", color=INK, markersize=5, label="probe")
    if seen.cell.policy.has_threshold:
        axes.axhline(seen.cell.threshold_in_force, color=INK, linewidth=1, linestyle=(0, (1, 2)))
    axes.set_ylim(0, len(kept) + 0.4)
    axes.set_ylabel("score ρ")
    axes.legend(
        ncols=3, fontsize=7.5, frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.32), columnspacing=1
    )
    return int((probe >= 0).sum())


def _grid(axes: object, seen: Witnessed, steps: int) -> None:
    """Mark each field's beliefs by time: wrong, unknown; probes and mutations."""
    recording, world = seen.trajectory, seen.world
    belief, gold = recording.belief[0, : steps + 1], recording.gold[0, : steps + 1]
    unknown = belief == UNKNOWN
    for mask, colour, label in (
        ((belief != gold) & ~unknown, VERMILLION, "wrong"),
        (unknown, GREY, "unknown"),
    ):
        for field in range(world.fields):
            runs = _runs(mask[:, field])
            if runs:
                axes.broken_barh(runs, (field - 0.4, 0.8), color=colour, alpha=0.55, linewidth=0)
        axes.barh(
            [0], [0], color=colour, alpha=0.55, label=f"believed {label}" if label == "wrong" else label
        )
    time, field = np.nonzero(seen.exogenous()[0, :steps])
    axes.plot(time + 0.5, field, "x", color=INK, markersize=4, linestyle="none", label="the world changes it")
    times = np.flatnonzero(recording.probe[0, :steps] >= 0)
    for useful, face in ((True, INK), (False, GROUND)):
        some = times[recording.useful[0, times] == useful]
        axes.plot(
            some, recording.probe[0, some], "o", color=INK, markerfacecolor=face, markersize=5.5,
            linestyle="none", label="probe that corrects" if useful else "probe that confirms",
        )  # fmt: skip
    axes.set_yticks(range(world.fields), world.field_names, fontsize=7)
    axes.set_ylim(world.fields - 0.4, -0.6)
    axes.legend(
        ncols=3, fontsize=7.5, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), columnspacing=1
    )


def _runs(mask: np.ndarray) -> list[tuple[float, float]]:
    """List runs of true entries as (start, width), centred on whole times."""
    runs, start = [], 0
    for value, group in groupby(mask.tolist()):
        length = len(list(group))
        if value:
            runs.append((start - 0.5, float(length)))
        start += length
    return runs


def tell_episode(seen: Witnessed) -> Text:
    """Say which episode is played, by whom, with which threshold and budget, and how it ends."""
    cell, recording = seen.cell, seen.trajectory
    steps = int(recording.steps[0])
    fired = np.flatnonzero(recording.probe[0, :steps] >= 0).tolist()
    useful = int(recording.useful[0].sum())
    gate = (
        f"threshold {cell.threshold_in_force:g}"
        if cell.policy.has_threshold
        else "no threshold (the policy compares no score with one)"
    )
    when = f"at steps {listed(map(str, fired))}" if fired else "never"
    return Text(
        f"Seed {seen.seeds[0]} in {WORLD_TITLES[cell.world]}, regime {cell.regime.name}, under "
        f"`{cell.protocol.name}`: {policy_title(cell.policy.name)} with {gate} and a budget of "
        f"{cell.budget_in_force}. The agent is a simulation with the profile `{cell.profile.name}`; no "
        f"language model was called. It probes {when}"
        f"{f'; {useful} of {len(fired)} answers correct a belief' if fired else ''}. {_ending(seen)}"
    )


def _ending(seen: Witnessed) -> str:
    reached, steps = goal_times(seen)[0], int(seen.trajectory.steps[0])
    if reached[0] or not reached[steps]:
        success = bool(seen.trajectory.success[0])
        return f"After {steps} steps the goal is {'reached' if success else 'not reached'}."
    return f"The goal is reached by the action of step {int(np.argmax(reached)) - 1}."
