"""Run the atlas: many agents side by side, and nothing twice that is provably the same.

Every profile meets every policy on the same seeds. Where no answer reaches the agent (`released`), three
policies are copies of others, bit for bit, and are not run: both placebos are EnvProbe-Simple, and the
task-weighted oracle is the oracle, since the two differ only in the field they name. `tests/test_atlas.py`
proves each identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.analyses.calibration import TARGET_POLICIES
from envprobe_core.atlas.design import sample_profiles
from envprobe_core.atlas.questions import FRAME, REGIME, REPORTS, atlas_claims
from envprobe_core.atlas.testing import Cube, Judgement, judge
from envprobe_core.cells import Cell, Seeds, find_protocols
from envprobe_core.claims import Claim
from envprobe_core.claims.records import columns_of
from envprobe_core.engine import recording
from envprobe_core.engine.loop import WHOLE
from envprobe_core.engine.recording import Columns, Ints, Trajectory
from envprobe_core.engine.records import MEASURES, new
from envprobe_core.engine.running import NO_SCHEDULE, take
from envprobe_core.engine.setting import room_for_episodes, room_for_logs, setting_of
from envprobe_core.measures import confident_counts
from envprobe_core.policies import OF_THE_PAPER
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.sweep import run_tasks
from envprobe_core.worlds import WORLDS, make_world
from envprobe_core.worlds.base import Floats

PROFILES_AT_ONCE = 64
COPIES = {"placebo": "simple", "yoked": "simple", "oracle-tw": "oracle"}
LEVELS = ("accuracy", "success", "probes")
COLUMNS = (*FRAME, *REPORTS)
REPORTING = {
    *TARGET_POLICIES,
    *(arm for claim in atlas_claims() if REPORTS[0] in columns_of(claim) for arm in claim.arms),
}
"""The policies whose confidence is recorded; no claim and no target asks for that of the others."""


@dataclass(frozen=True)
class AtlasTask:
    """Some profiles under one protocol, in every world with every policy."""

    numbers: slice  # positions of the profiles in the sample
    profiles: tuple[AgentProfile, ...]
    protocol: Protocol
    seeds: Seeds
    claims: tuple[Claim, ...]
    resamples: int


@dataclass(frozen=True)
class AtlasPart:
    """What came of a task: its claims' verdicts, and `levels` as in `Atlas` for one protocol."""

    task: AtlasTask
    judgement: Judgement
    levels: dict[str, Floats]  # measure -> [world, policy, profile]
    simulated: int  # episodes that were run; the others are copies


def copies(protocol: Protocol) -> dict[str, str]:
    """Return the policies that are bit-for-bit copies under a protocol, and of which."""
    return COPIES if protocol.answer == "withheld" else {}


def run_profiles(
    cell: Cell, profiles: Sequence[AgentProfile], seeds: Seeds, replayed: list[Ints] | None
) -> tuple[Columns, list[Ints]]:
    """Run a cell with every profile in turn.

    Args:
        replayed: the probes that the policy repeats, [profile] of [seed, step]; None where it repeats none.

    Returns:
        The columns of `COLUMNS`, [profile, seed], counts of confidence only where the policy is `REPORTING`;
        and the probes of such a policy, [profile] of [seed, step].
    """
    made, reporting = make_world(cell.world, cell.regime, cell.protocol), cell.policy.name in REPORTING
    block, measures = room_for_episodes(cell.world, 1), new(MEASURES, len(profiles), len(seeds))
    counts = {name: np.full(measures.shape, np.nan) for name in REPORTS}
    probes = []
    for number, profile in enumerate(profiles):
        setting = setting_of(replace(cell, profile=profile), world=made)
        logs = room_for_logs(cell.regime.horizon, len(seeds) if reporting else 1)
        schedules = NO_SCHEDULE if replayed is None else replayed[number]
        take(WHOLE, setting, block, seeds=seeds, logs=logs, schedules=schedules, measures=measures[number])
        if reporting:
            recorded = Trajectory.of(setting, logs, recording.columns_of(measures[number]))
            counted = confident_counts(recorded, cell)
            for name in REPORTS:
                counts[name][number] = counted[name]
            probes.append(recorded.probe.astype(np.int64))
    budget = np.full(measures.shape, cell.budget_in_force)
    return recording.columns_of(measures) | counts | {"budget": budget}, probes


def run_cube(profiles: Sequence[AgentProfile], protocol: Protocol, seeds: Seeds) -> Cube:
    """Run every policy in every world; copies take their original's columns."""
    same, worlds = copies(protocol), []
    for world in WORLDS:
        found: dict[str, Columns] = {}
        probes: dict[str, list[Ints]] = {}
        for name, policy in OF_THE_PAPER.items():
            if name not in same:
                cell = Cell(world, policy, REGIMES[REGIME], protocol)
                found[name], probes[name] = run_profiles(
                    cell, profiles, seeds, probes.get(policy.replays or "")
                )
        worlds.append([found[same.get(name, name)] for name in OF_THE_PAPER])
    tables = {column: [[own[column] for own in found] for found in worlds] for column in COLUMNS}
    return Cube({name: np.array(table, dtype=np.float64) for name, table in tables.items()})


def run_part(task: AtlasTask) -> AtlasPart:
    """Run one task and test every claim on each of its profiles."""
    cube = run_cube(task.profiles, task.protocol, task.seeds)
    judgement = judge(task.claims, cube, task.resamples)
    levels = {name: cube.columns[name].mean(axis=3) for name in LEVELS}
    levels |= {name: cube.columns[name].sum(axis=3) for name in REPORTS}
    policies = len(OF_THE_PAPER) - len(copies(task.protocol))
    episodes = policies * len(WORLDS) * len(task.profiles) * len(task.seeds)
    return AtlasPart(task, judgement, levels, episodes)


@dataclass(frozen=True)
class Atlas:
    """The whole atlas."""

    profiles: tuple[AgentProfile, ...]
    claims: tuple[Claim, ...]
    protocols: tuple[str, ...]  # names, in the order asked
    seeds_each: int  # episodes of each profile, world and policy
    verdict: npt.NDArray[np.int8]  # [protocol, profile, claim], positions in `testing.CODES`
    estimate: Floats  # [protocol, profile, claim], as in `testing.Judgement`
    support: Floats  # likewise
    levels: dict[str, Floats]  # measure -> [protocol, world, policy, profile], means (of counts: sums)
    episodes: int  # the episodes that the verdicts rest on
    simulated: int  # those that had to be run


def load_atlas(
    profiles: int = 512,
    seeds_each: int = 50,
    protocol: str = "paper observed released",
    resamples: int = 1_000,
    jobs: int = 2,
) -> Atlas:
    """Draw the sample, run it and test every claim; the same arguments give the same verdicts.

    Args:
        seeds_each: episodes of each agent, world and policy: the first of the protocol's default seeds.
        protocol: names of protocols, as `cells.names` splits them.
    """
    agents, claims, protocols = sample_profiles(profiles), atlas_claims(), find_protocols(protocol)
    tasks = []
    for one in protocols:
        cell = Cell("tooldag", OF_THE_PAPER["no-probe"], REGIMES[REGIME], one)
        for first in range(0, profiles, PROFILES_AT_ONCE):
            numbers = slice(first, min(first + PROFILES_AT_ONCE, profiles))
            seeds = cell.default_seeds()[:seeds_each]
            tasks.append(AtlasTask(numbers, agents[numbers], one, seeds, claims, resamples))
    shape = (len(protocols), profiles, len(claims))
    verdict, estimate, support = np.zeros(shape, np.int8), np.full(shape, np.nan), np.full(shape, np.nan)
    shape = (len(protocols), len(WORLDS), len(OF_THE_PAPER), profiles)
    levels = {name: np.full(shape, np.nan) for name in (*LEVELS, *REPORTS)}
    simulated = 0
    for part in run_tasks(run_part, tasks, jobs):
        row, own = protocols.index(part.task.protocol), part.task.numbers
        for table, name in ((verdict, "verdict"), (estimate, "estimate"), (support, "support")):
            table[row, own] = getattr(part.judgement, name)
        for name in levels:
            levels[name][row][:, :, own] = part.levels[name]
        simulated += part.simulated
    return Atlas(
        agents, claims, tuple(one.name for one in protocols), seeds_each, verdict, estimate, support, levels,
        len(protocols) * len(OF_THE_PAPER) * len(WORLDS) * profiles * seeds_each, simulated,
    )  # fmt: skip
