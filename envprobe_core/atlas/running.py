"""Run the atlas: many agents side by side, and nothing twice that is provably the same.

A block holds one policy for many profiles on the same seeds, so that all blocks of a world share its
instances. Where no answer reaches the agent (`released`), three policies are copies of others, bit for bit,
and are not run: both placebos are EnvProbe-Simple, and the task-weighted oracle is the oracle, since the
two differ only in the field they name. `tests/test_atlas.py` proves each identity.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.agents.simulated import SimulatedAgent
from envprobe_core.atlas.design import sample_profiles
from envprobe_core.atlas.questions import FRAME, REGIME, REPORTS, atlas_claims, columns_of
from envprobe_core.atlas.testing import Cube, judge
from envprobe_core.blocks import Arm, Block
from envprobe_core.calibration import TARGET_POLICIES
from envprobe_core.cells import Cell
from envprobe_core.claims import Claim
from envprobe_core.cluster import scheduler_in_force
from envprobe_core.confidence import confident_counts
from envprobe_core.experiments import find_protocols
from envprobe_core.policies import OF_THE_PAPER
from envprobe_core.profiles import AgentProfile
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.rollout import drive, rollout
from envprobe_core.scoring import score_episodes
from envprobe_core.sweep import run_tasks
from envprobe_core.worlds import WORLDS, World, make_world

Floats = npt.NDArray[np.float64]
Seeds = npt.NDArray[np.int64]

PROFILES_AT_ONCE = 64
COPIES = {"placebo": "simple", "yoked": "simple", "oracle-tw": "oracle"}
LEVELS = ("accuracy", "success", "probes", *REPORTS)
COLUMNS = (*FRAME, *REPORTS)
REPORTING = {
    *TARGET_POLICIES,
    *(arm for claim in atlas_claims() if REPORTS[0] in columns_of(claim) for arm in claim.arms),
}
"""The policies whose confidence is recorded; no claim and no target asks for that of the others."""


@dataclass(frozen=True)
class AtlasTask:
    """Some profiles under one protocol, in every world with every policy."""

    numbers: tuple[int, ...]  # positions of the profiles in the sample
    profiles: tuple[AgentProfile, ...]
    protocol: Protocol
    seeds: Seeds
    claims: tuple[Claim, ...]
    resamples: int


@dataclass(frozen=True)
class AtlasPart:
    """What came of a task; `seconds` is processor time.

    Attributes:
        task: what was asked, without its profiles' results.
        verdict: [profile, claim], positions in `testing.CODES`.
        estimate, support: [profile, claim], as in `testing.Judgement`.
        levels: measure -> [world, policy, profile], means over episodes (of counts: sums).
        simulated: episodes that were run; the others are copies.
        seconds: processor time.
    """

    task: AtlasTask
    verdict: npt.NDArray[np.int8]
    estimate: Floats
    support: Floats
    levels: dict[str, Floats]
    simulated: int
    seconds: float


def copies(protocol: Protocol) -> dict[str, str]:
    """Return the policies that are bit-for-bit copies under a protocol, and of which."""
    return COPIES if protocol.answer == "withheld" else {}


def run_policies(
    world: World, profiles: Sequence[AgentProfile], seeds: Seeds
) -> dict[str, dict[str, npt.NDArray[np.generic]]]:
    """Run every policy in one world, each on every profile and seed.

    Returns:
        policy -> column -> [profile, seed], the columns of `COLUMNS`; copies share their original's arrays.
    """
    rows = np.tile(seeds, len(profiles))
    instance = world.instances(rows)
    profile_of_row = np.repeat(np.arange(len(profiles)), len(seeds))
    writes_true = np.repeat([profile.writes == "true" for profile in profiles], len(seeds))
    keeps_open = np.repeat([profile.keeps_open for profile in profiles], len(seeds))
    same = copies(world.protocol)
    found: dict[str, dict[str, npt.NDArray[np.generic]]] = {}
    probes: dict[str, Any] = {}
    for name, policy in OF_THE_PAPER.items():
        if name in same:
            continue
        cell = Cell(world.name, policy, world.regime, world.protocol)
        block = Block(
            world,
            rows,
            [Arm(policy, slice(0, len(rows)))],
            np.full(len(rows), cell.budget_in_force),
            np.full(len(rows), cell.threshold_in_force),
            probes.get(policy.replays or ""),
        )
        agent = SimulatedAgent(world, instance.map, rows, profiles, profile_of_row)
        trajectory = drive(rollout(block, instance, reports=name in REPORTING), agent)
        if name == "simple":
            probes[name] = trajectory.probe.astype(np.int64)
        columns = score_episodes(trajectory, world, world.protocol, writes_true, keeps_open, FRAME)
        columns["budget"] = block.budget
        columns |= dict.fromkeys(REPORTS, np.full(len(rows), np.nan))
        if name in REPORTING:
            counts = confident_counts(trajectory, world.protocol)
            columns |= {column: counts[column] for column in REPORTS}
        found[name] = {column: v.reshape(len(profiles), len(seeds)) for column, v in columns.items()}
    return {name: found[same.get(name, name)] for name in OF_THE_PAPER}


def run_cube(profiles: Sequence[AgentProfile], protocol: Protocol, seeds: Seeds) -> Cube:
    """Run every policy in every world: columns [world, policy, profile, seed]."""
    worlds = [run_policies(make_world(name, REGIMES[REGIME], protocol), profiles, seeds) for name in WORLDS]
    return Cube(
        {
            column: np.array(
                [[found[policy][column] for policy in OF_THE_PAPER] for found in worlds], dtype=np.float64
            )
            for column in COLUMNS
        }
    )


def run_part(task: AtlasTask) -> AtlasPart:
    """Run one task and test every claim on each of its profiles."""
    begun = time.process_time()
    cube = run_cube(task.profiles, task.protocol, task.seeds)
    judgement = judge(task.claims, cube, task.resamples)
    levels = {
        name: cube.columns[name].sum(axis=3) if name in REPORTS else cube.columns[name].mean(axis=3)
        for name in LEVELS
    }
    policies = len(OF_THE_PAPER) - len(copies(task.protocol))
    episodes = policies * len(WORLDS) * len(task.profiles) * len(task.seeds)
    seconds = time.process_time() - begun
    return AtlasPart(
        task, judgement.verdict, judgement.estimate, judgement.support, levels, episodes, seconds
    )


@dataclass(frozen=True)
class Atlas:
    """The whole atlas.

    Attributes:
        profiles: the agents.
        claims: the questions.
        protocols: names, in the order asked.
        seeds_each: episodes of each profile, world and policy.
        resamples: of each interval.
        verdict: [protocol, profile, claim], positions in `testing.CODES`.
        estimate, support: [protocol, profile, claim].
        levels: measure -> [protocol, world, policy, profile].
        episodes: the episodes that the verdicts rest on.
        simulated: those that had to be run.
        seconds: wall-clock time.
        processor_seconds: summed over the processes.
        jobs: processes; 0 for a cluster's.
    """

    profiles: tuple[AgentProfile, ...]
    claims: tuple[Claim, ...]
    protocols: tuple[str, ...]
    seeds_each: int
    resamples: int
    verdict: npt.NDArray[np.int8]
    estimate: Floats
    support: Floats
    levels: dict[str, Floats]
    episodes: int
    simulated: int
    seconds: float
    processor_seconds: float
    jobs: int


def load_atlas(
    profiles: int = 512,
    seeds_each: int = 50,
    protocol: str = "paper observed released",
    resamples: int = 1_000,
    jobs: int = 2,
) -> Atlas:
    """Draw the sample, run it and test every claim; the same arguments give the same verdicts.

    Args:
        profiles: agents in the sample.
        seeds_each: episodes of each agent, world and policy: the first of the protocol's default seeds.
        protocol: names of protocols, as `experiments.names` splits them.
        resamples: bootstrap resamples of each interval.
        jobs: processes; changes nothing but the time.
    """
    begun = time.perf_counter()
    agents, claims = sample_profiles(profiles), atlas_claims()
    protocols = find_protocols(protocol)
    # blocks of one kind of report are faster
    order = sorted(range(profiles), key=lambda number: agents[number].single_report)
    chunks = [
        tuple(order[start : start + PROFILES_AT_ONCE]) for start in range(0, profiles, PROFILES_AT_ONCE)
    ]
    tasks = [
        AtlasTask(
            chunk, tuple(agents[number] for number in chunk), one, _seeds(one, seeds_each), claims, resamples
        )
        for one in protocols
        for chunk in chunks
    ]
    empty = np.full((len(protocols), profiles, len(claims)), np.nan)
    verdict, estimate, support = np.zeros(empty.shape, dtype=np.int8), empty.copy(), empty.copy()
    shape = (len(protocols), len(WORLDS), len(OF_THE_PAPER), profiles)
    levels = {name: np.full(shape, np.nan) for name in LEVELS}
    simulated, processor_seconds = 0, 0.0
    for part in run_tasks(run_part, tasks, jobs):
        row, own = protocols.index(part.task.protocol), list(part.task.numbers)
        verdict[row, own], estimate[row, own], support[row, own] = part.verdict, part.estimate, part.support
        for name in LEVELS:
            levels[name][row][:, :, own] = part.levels[name]
        simulated += part.simulated
        processor_seconds += part.seconds
    return Atlas(
        agents,
        claims,
        tuple(one.name for one in protocols),
        seeds_each,
        resamples,
        verdict,
        estimate,
        support,
        levels,
        len(protocols) * len(OF_THE_PAPER) * len(WORLDS) * profiles * seeds_each,
        simulated,
        time.perf_counter() - begun,
        processor_seconds,
        jobs if scheduler_in_force() is None else 0,
    )


def _seeds(protocol: Protocol, count: int) -> Seeds:
    return Cell("tooldag", OF_THE_PAPER["no-probe"], REGIMES[REGIME], protocol).default_seeds()[:count]
