"""Distinct trajectories: which settings of budget and threshold give one and the same episode.

An episode depends on its policy through its probes alone, so two settings with the same probes are the same
episode. Which probes a setting makes is mostly known without running it:

* a gate compares its score with the threshold and nothing else: every threshold above the highest score that
  did not fire and not above the lowest that did gives the same probes;
* a rule that does not look at the budget makes the same probes under a smaller one until that is spent, and
  none after; scores after that do not count;
* a yoked placebo's probes are its original's; where no answer arrives, all probes are alike.

So each policy runs under the largest budget at those thresholds that differ, and what is left are probe
sequences that are known beforehand: each is replayed once, whatever policies and settings it belongs to.
`tests/test_explorer_grid.py` compares settings that were never run with real runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Columns
from envprobe_core.engine.running import record
from envprobe_core.explorer.episodes import Episodes, Ints, join, label, measure
from envprobe_core.explorer.replays import Catalogue, Place, Rows, replay
from envprobe_core.policies import POLICIES, Policy
from envprobe_core.policies.rules import JUDGE, NEVER, ORACLE, ORACLE_TW, SCORE, SELF_UNCERTAINTY
from envprobe_core.sweep import Piece, Task, run_cells

CAPPED_RULES = {NEVER, SCORE, SELF_UNCERTAINTY, JUDGE, ORACLE, ORACLE_TW}
"""The rules that the budget stops and does not otherwise concern; one with a memory may pace its budget."""


def capped(policy: Policy) -> bool:
    """Say whether a smaller budget only stops the policy earlier."""
    return {policy.rule.kind, (policy.selector or policy.rule).kind} <= CAPPED_RULES


def record_task(task: Task) -> Columns:
    """Run a task: what `measure_task` returns, its probes, and the thresholds between which they hold.

    Returns:
        Also `probe` [row, step]; `above`, `upto` [row]: every threshold in force in (above, upto] gives the
        same decisions (only of policies that have one).
    """
    parts = [_record_piece(piece) for piece in task.pieces]
    return label(task) | {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _record_piece(piece: Piece) -> Columns:
    recording = record(piece.cell, piece.seeds, scores_all=False)
    threshold = piece.cell.threshold_in_force
    probed = recording.probe >= 0
    counts = np.cumsum(probed, axis=1) - probed < piece.cell.budget_in_force  # it is not yet spent
    reached = recording.score >= threshold
    above = np.where(counts & (recording.score < threshold), recording.score, -np.inf).max(axis=1)
    upto = np.where(counts & reached, recording.score, np.inf).min(axis=1)
    own = {"probe": recording.probe.astype(np.int8), "above": above, "upto": upto}
    return vars(measure(recording, piece.cell)) | own


def halving(count: int) -> Iterator[list[int]]:
    """Yield positions 0..count-1 in waves, each between those before: the ends first, then the middles."""
    stride, done = 1, set[int]()
    while stride < count - 1:
        stride *= 2
    stride = max(stride // 4, 1)
    while len(done) < count:
        wave = [at for at in range(0, count, stride) if at not in done]
        yield wave
        done.update(wave)
        stride = max(stride // 2, 1)


@dataclass(frozen=True)
class Table:
    """All episodes of a place, each once, and where the settings find theirs.

    Attributes:
        episodes: the distinct ones.
        rows: policy name -> [budget, threshold, seed] positions in `episodes`; one threshold where the
            policy has none.
        simulated: episodes that were run, twins that were recognised too late included.
    """

    episodes: Episodes
    rows: dict[str, Rows]
    simulated: int


def run_place(place: Place, policies: Sequence[Policy]) -> Table:
    """Run every setting of the policies, each distinct trajectory once."""
    original = {policy.name: POLICIES[policy.replays] if policy.replays else policy for policy in policies}
    # policies that decide alike and are answered alike are one: under `released`, placebos are Simple
    alike = {
        name: replace(one, name="", title="", answered=place.answers(one)) for name, one in original.items()
    }
    leader = {key: original[name] for name, key in reversed(alike.items())}
    runs, run_of = _run_own(place, list(leader.values()))
    known = Catalogue(place.regime.horizon)
    answers = np.array([place.answers(policy) for policy in leader.values()])
    at_run = known.find(answers[runs["policy"]], runs["at"], runs["probe"])
    own = len(known)
    rows = {}
    for policy in policies:
        lead = leader[alike[policy.name]]
        used, inverse = np.unique(run_of[lead.name], return_inverse=True)
        inverse = inverse.reshape(run_of[lead.name].shape)
        probe, at = runs["probe"][used], runs["at"][used]
        if capped(lead):
            answered, spent = place.answers(policy), np.cumsum(probe >= 0, axis=1)
            whole, found = known.find(answered, at, probe), []
            for budget in place.budgets:
                more = np.flatnonzero(spent[:, -1] > budget)  # these it stops
                cut = np.where(spent[more] <= budget, probe[more], np.int8(-1))
                numbers = whole.copy()
                numbers[more] = known.find(answered, at[more], cut)
                found.append(numbers[inverse[0]])
            rows[policy.name] = np.stack(found)
        else:
            rows[policy.name] = known.find(place.answers(policy), at, probe)[inverse]
    first = np.unique(at_run, return_index=True)[1]
    replayed = replay(place, known, own)
    episodes = join([Episodes(*(runs[f.name] for f in fields(Episodes))).rows(first), *replayed])
    return Table(episodes, rows, len(at_run) + len(known) - own)


@dataclass(frozen=True)
class Ask:
    """Seeds of one setting that are yet to be run: a cell, its positions, and [seed] positions."""

    cell: Cell
    policy: int
    budget: int
    threshold: int
    at: Ints


def _run_own(place: Place, policies: Sequence[Policy]) -> tuple[Columns, dict[str, Ints]]:
    """Run policies as themselves: capped ones at the largest budget, others at each.

    Returns:
        The columns of `record_task` with `policy` and `at` (positions of policy and seed) [run], and
        policy name -> [budget, threshold, seed], the run of a setting.
    """
    run_of = {
        one.name: np.full((len(_budgets(place, one)), len(_thresholds(place, one)), len(place.seeds)), -1)
        for one in policies
    }
    parts: list[Columns] = []
    total = 0
    for wave in halving(len(place.thresholds)):
        asked = list(_missing(place, policies, run_of, wave))
        if not asked:
            continue
        part = run_cells(
            [ask.cell for ask in asked], [place.seeds[ask.at] for ask in asked], work=record_task
        )
        start = 0
        for ask in asked:
            rows = slice(start, start + len(ask.at))
            _enter(place, ask, run_of[ask.cell.policy.name][ask.budget], total + start, part, rows)
            start = rows.stop
        part["policy"] = np.repeat([ask.policy for ask in asked], [len(ask.at) for ask in asked])
        part["at"] = np.concatenate([ask.at for ask in asked])
        parts.append(part)
        total += start
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, run_of


def _missing(
    place: Place, policies: Sequence[Policy], run_of: dict[str, Ints], wave: Sequence[int]
) -> Iterator[Ask]:
    """Yield what a wave of thresholds has yet to run."""
    for number, policy in enumerate(policies):
        levels = _thresholds(place, policy)
        for b, budget in enumerate(_budgets(place, policy)):
            for k in (k for k in wave if k < len(levels)):
                at = np.flatnonzero(run_of[policy.name][b, k] < 0)
                if len(at):
                    yield Ask(place.cell(policy, budget, levels[k]), number, b, k, at)


def _enter(place: Place, ask: Ask, run_of: Ints, first: int, part: Columns, rows: slice) -> None:
    """Note in `run_of` [threshold, seed] the runs of an ask, and every threshold that would give the same."""
    policy = ask.cell.policy
    runs = first + np.arange(len(ask.at))
    run_of[ask.threshold, ask.at] = runs
    if not (capped(policy) and policy.has_threshold):
        return
    in_force = [place.cell(policy, None, base).threshold_in_force for base in place.thresholds]
    level = np.array(in_force)[:, None]
    same = (level > part["above"][rows]) & (level <= part["upto"][rows])
    mine = run_of[:, ask.at]
    run_of[:, ask.at] = np.where(same & (mine < 0), runs, mine)


def _budgets(place: Place, policy: Policy) -> tuple[int, ...]:
    return place.budgets[-1:] if capped(policy) else place.budgets


def _thresholds(place: Place, policy: Policy) -> tuple[float | None, ...]:
    return place.thresholds if policy.has_threshold else (None,)
