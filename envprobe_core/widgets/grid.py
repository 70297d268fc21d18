"""The explorer's grid: readings of every policy at every budget and threshold, in every world and protocol.

An episode depends on its policy through its probes alone, so two settings with the same probes on a seed are
the same episode. Which probes a setting makes is mostly known without running it:

* a gate compares its score with the threshold and nothing else: every threshold from the one that was run up
  to the lowest score that fired gives the same probes;
* a rule that does not look at the budget makes the same probes under a smaller one until that is spent, and
  none after;
* a yoked placebo's probes are its original's; where no answer arrives, all probes are alike.

So each policy runs under the largest budget at those thresholds that differ, and what is left are probe
sequences that are known beforehand: each is replayed once, whatever policies and settings it belongs to.
`tests/test_explorer_grid.py` compares settings that were never run with real runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.cells import Cell, find_profile, find_regime, parse_seeds
from envprobe_core.engine.running import record
from envprobe_core.files import replacing
from envprobe_core.policies import POLICIES, Policy
from envprobe_core.policies.rules import (
    JUDGE,
    NEVER,
    ORACLE,
    ORACLE_TW,
    REPLAY,
    SCORE,
    SELF_UNCERTAINTY,
    Rule,
)
from envprobe_core.protocols import PROTOCOLS, Protocol, parse_protocol
from envprobe_core.regimes import Regime
from envprobe_core.sources import PACKAGE, engine_sha256
from envprobe_core.statistics import RESAMPLES
from envprobe_core.sweep import BATCH_SIZE, run_tasks
from envprobe_core.widgets.readings import (
    CURVE_UNITS,
    SHARE_UNITS,
    Episodes,
    Ints,
    Mask,
    Readings,
    ResampledSums,
    join,
    measure,
    read_episodes,
)
from envprobe_core.worlds import WORLDS

POOL = "pool"
VIEWS = (*WORLDS, POOL)
THRESHOLDS = tuple(quarters / 4 for quarters in range(17))
CAPPED_RULES = {NEVER, SCORE, SELF_UNCERTAINTY, JUDGE, ORACLE, ORACLE_TW}
"""The rules that the budget stops and does not otherwise concern; one with a memory may pace its budget."""
SETTINGS_A_TASK = 512
CACHE = PACKAGE.parent / "book" / "_build" / "explorer"
SOURCES = ("widgets/grid.py",)  # with what it imports: the engine and the readings
KEPT = 4  # grids in the cache; older ones are removed

Rows = npt.NDArray[np.int32]
Sequences = npt.NDArray[np.int8]  # [run, step], the probed field or -1


@dataclass(frozen=True)
class Block:
    """Where settings run on the same seeds: everything of a cell but policy, budget and threshold."""

    world: str
    regime: Regime
    protocol: Protocol
    profile: AgentProfile
    seeds: Ints  # [seed]
    budgets: tuple[int, ...]  # [budget], ascending
    thresholds: tuple[float, ...] = THRESHOLDS  # [threshold], base thresholds, ascending

    def cell(self, policy: Policy, budget: int | None = None, threshold: float | None = None) -> Cell:
        """Return a cell of this block."""
        return Cell(self.world, policy, self.regime, self.protocol, self.profile, budget, threshold)

    def answers(self, policy: Policy) -> bool:
        """Say whether the policy's probes are answered here."""
        return policy.answered and self.protocol.answer == "delivered"


def capped(policy: Policy) -> bool:
    """Say whether a smaller budget only stops the policy earlier."""
    return {policy.rule.kind, (policy.selector or policy.rule).kind} <= CAPPED_RULES


# --- distinct trajectories ---------------------------------------------------------------------


@dataclass(frozen=True)
class Runs:
    """A policy's own runs in a block."""

    episodes: Episodes  # [run]
    probe: Sequences  # [run]
    at: Ints  # [run], its seed's position
    of: Ints  # [budget, threshold, seed], the run of a setting; one budget where the policy is capped


def run_policy(block: Block, policy: Policy) -> Runs:
    """Run a policy at each budget, if that can matter, and at each threshold where it matters to a seed."""
    budgets = block.budgets[-1:] if capped(policy) else block.budgets
    thresholds = block.thresholds if policy.has_threshold else (None,)
    of = np.empty((len(budgets), len(thresholds), len(block.seeds)), dtype=np.int64)
    parts, probes, positions, total = [], [], [], 0
    for b, budget in enumerate(budgets):
        upto = np.full(len(block.seeds), -np.inf)  # thresholds in force up to this one change nothing
        for k, threshold in enumerate(thresholds):
            cell = block.cell(policy, budget, threshold)
            at = np.flatnonzero(upto < cell.threshold_in_force)
            of[b, k] = of[b, k - 1]
            of[b, k, at] = total + np.arange(len(at))
            if len(at):
                recording = record(cell, block.seeds[at], scores_all=False)
                probed = recording.probe >= 0
                unspent = np.cumsum(probed, axis=1) - probed < cell.budget_in_force
                if capped(policy):
                    fired = unspent & (recording.score >= cell.threshold_in_force)
                    upto[at] = np.where(fired, recording.score, np.inf).min(axis=1)
                parts.append(measure(recording))
                probes.append(recording.probe.astype(np.int8))
                positions.append(at)
                total += len(at)
    return Runs(join(parts), np.concatenate(probes), np.concatenate(positions), of)


class Catalogue:
    """Numbers probe sequences in the order in which they are first met."""

    def __init__(self, horizon: int) -> None:
        """Start empty; sequences have `horizon` steps."""
        self._horizon = horizon
        self._numbers: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def find(self, answered: bool, at: Ints, probe: Sequences) -> Rows:
        """Return the number of each sequence, [run]; new ones are entered.

        Args:
            answered: whether the probes are answered; means nothing where there are none.
            at: [run], position of the seed.
            probe: [run, step], the probed field or -1.
        """
        keys = np.empty((len(probe), 5 + self._horizon), dtype=np.uint8)
        keys[:, 0] = answered | ~(probe >= 0).any(axis=1)
        keys[:, 1:5] = at.astype("<u4")[:, None].view(np.uint8)
        keys[:, 5:] = probe.view(np.uint8)
        numbers = self._numbers
        listed = keys.view(f"V{keys.shape[1]}")[:, 0].tolist()
        return np.array([numbers.setdefault(key, len(numbers)) for key in listed], dtype=np.int32)

    def entries(self, start: int) -> tuple[Mask, Ints, Sequences]:
        """Return answered [run], positions of seeds [run] and probes [run, step] from a number on."""
        joined = b"".join(list(self._numbers)[start:])
        keys = np.frombuffer(joined, dtype=np.uint8).reshape(-1, 5 + self._horizon)
        at = keys[:, 1:5].copy().view("<u4")[:, 0].astype(np.int64)
        return keys[:, 0] == 1, at, keys[:, 5:].view(np.int8)


def run_block(block: Block) -> tuple[Block, Episodes, dict[str, Rows], int]:
    """Run every setting of the companion's policies, each distinct trajectory once.

    Returns:
        The block; the distinct episodes; policy name -> [budget, threshold, seed], positions among them, one
        threshold where the policy has none; and how many episodes were run.
    """
    known, rows = Catalogue(block.regime.horizon), {}
    # policies that decide alike and are answered alike are one: under `released`, placebos are Simple
    alike, own = {}, {}
    for name, policy in POLICIES.items():
        first = POLICIES[policy.replays] if policy.replays else policy
        alike[name] = replace(first, name="", title="", answered=block.answers(first))
        if alike[name] not in own:
            own[alike[name]] = first, run_policy(block, first)
    numbers = [known.find(block.answers(first), runs.at, runs.probe) for first, runs in own.values()]
    run, replayed_from = sum(map(len, numbers)), len(known)
    for name, policy in POLICIES.items():
        first, runs = own[alike[name]]
        answered, spent = block.answers(policy), np.cumsum(runs.probe >= 0, axis=1)
        whole = known.find(answered, runs.at, runs.probe)
        rows[name] = whole[runs.of]
        if capped(first):
            found = []
            for budget in block.budgets:
                stopped = np.flatnonzero(spent[:, -1] > budget)
                cut = np.where(spent[stopped] <= budget, runs.probe[stopped], np.int8(-1))
                number = whole.copy()
                number[stopped] = known.find(answered, runs.at[stopped], cut)
                found.append(number[runs.of[0]])
            rows[name] = np.stack(found)
    first_run = np.unique(np.concatenate(numbers), return_index=True)[1]
    episodes = join([runs.episodes for _, runs in own.values()]).rows(first_run)
    episodes = join([episodes, *_replayed(block, *known.entries(replayed_from))])
    return block, episodes, rows, run + len(known) - replayed_from


def _replayed(block: Block, answered: Mask, at: Ints, probe: Sequences) -> Iterator[Episodes]:
    """Run sequences of probes, in blocks of one kind of answer that share seeds and with them draws."""
    order = np.lexsort((at, answered))
    unanswered = int((~answered).sum())
    parts = []
    for group in (order[:unanswered], order[unanswered:]):
        for first in range(0, len(group), BATCH_SIZE):
            rows = group[first : first + BATCH_SIZE]
            policy = Policy("replay", "Replay", Rule(REPLAY), answered=bool(answered[rows[0]]))
            cell = block.cell(policy, budget=block.regime.horizon)
            seeds, schedules = block.seeds[at[rows]], probe[rows].astype(np.int64)
            parts.append(measure(record(cell, seeds, scores_all=False, schedules=schedules)))
    if parts:
        yield join(parts).rows(np.argsort(order))


# --- the grid ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """All readings of a grid; `rows` are by protocol, world or pool, and policy."""

    regime: str  # what it was run on, as text, like the next two
    profile: str
    seeds: str
    resamples: int  # of the readings' intervals
    simulated: int  # episodes that were run for it
    budgets: tuple[int, ...]  # the positions of the slider
    thresholds: tuple[float, ...]  # the positions of the slider
    rows: dict[tuple[str, str, str], Rows]  # -> [threshold or 1, budget], positions in `readings`
    readings: Readings  # the distinct ones, which settings share that share all their episodes

    def record(self) -> dict[str, Any]:
        """Return the grid ready for JSON, its readings in whole numbers as `Readings` has them."""
        protocols, views, policies = (list(dict.fromkeys(part)) for part in zip(*self.rows, strict=True))
        return {
            "regime": self.regime,
            "profile": self.profile,
            "seeds": self.seeds,
            "resamples": self.resamples,
            "simulated": self.simulated,
            "episodes": int(self.readings.n.min()),
            "budgets": list(self.budgets),
            "thresholds": list(self.thresholds),
            "protocols": protocols,
            "worlds": views,
            "policies": policies,
            "units": {"share": SHARE_UNITS, "curve": CURVE_UNITS},
            "rows": {"/".join(key): rows.tolist() for key, rows in self.rows.items()},
            "readings": {f.name: getattr(self.readings, f.name).tolist() for f in fields(Readings)},
        }


def run_grid(
    regime: str = "S2",
    protocols: Sequence[str] = tuple(PROTOCOLS),
    profile: str = "typical",
    seeds: str = "0:220",
    resamples: int = RESAMPLES,
    jobs: int = 2,
) -> Grid:
    """Run and read every setting: budgets 0..H/2, base thresholds 0..4 in steps of .25, every policy.

    Args:
        protocols: names of protocols, with or without switches turned.
        seeds: as `cells.parse_seeds` reads them; the same under every protocol.
    """
    level = find_regime(regime)
    budgets = tuple(range(level.horizon // 2 + 1))
    chosen = [parse_protocol(name) for name in protocols]
    blocks = [
        Block(world, level, protocol, find_profile(profile), parse_seeds(seeds), budgets)
        for protocol, world in product(chosen, WORLDS)
    ]
    ran = {(block.protocol.name, block.world): rest for block, *rest in run_tasks(run_block, blocks, jobs)}
    rows: dict[tuple[str, str, str], Rows] = {}
    parts: list[Readings] = []
    for protocol in chosen:
        several = [ran[protocol.name, world] for world in WORLDS]
        starts = np.cumsum([sum(map(len, parts)), *(len(episodes.success) for episodes, _, _ in several)])
        numbers: dict[bytes, int] = {}
        settings: list[Ints] = []
        for policy in POLICIES:
            places = [
                own[policy] + start for (_, own, _), start in zip(several, starts - starts[0], strict=False)
            ]
            views = dict(zip(VIEWS, [*places, np.concatenate(places, axis=-1)], strict=True))
            for view in VIEWS:
                rows[protocol.name, view, policy] = np.empty(views[view].shape[1::-1], dtype=np.int32)
            for b, k in np.ndindex(places[0].shape[:2]):
                for view, own in views.items():  # a world beside its pool: what it resamples is used twice
                    key = own[b, k].tobytes()
                    if numbers.setdefault(key, len(numbers)) == len(settings):
                        settings.append(own[b, k])
                    rows[protocol.name, view, policy][k, b] = starts[0] + numbers[key]
        episodes = join([own for own, _, _ in several])
        parts += _read(episodes, settings, len(blocks[0].seeds), resamples, jobs)
    simulated = sum(count for _, _, count in ran.values())
    return Grid(regime, profile, seeds, resamples, simulated, budgets, THRESHOLDS, rows, join(parts))


def _read(
    episodes: Episodes, settings: Sequence[Ints], seeds: int, resamples: int, jobs: int
) -> list[Readings]:
    """Read settings, of one world or of the pool, in threads; the readings come in their order."""

    def read(start: int) -> Readings:
        sums, part = ResampledSums(resamples), settings[start : start + SETTINGS_A_TASK]
        sizes = np.array([len(setting) // seeds for setting in part])
        order = np.argsort(sizes, kind="stable")
        found = [
            read_episodes(episodes, np.stack([part[at] for at in order if sizes[at] == worlds]), worlds, sums)
            for worlds in np.unique(sizes).tolist()
        ]
        return join(found).rows(np.argsort(order))

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(read, range(0, len(settings), SETTINGS_A_TASK)))


# --- kept --------------------------------------------------------------------------------------


def load_grid(
    regime: str = "S2",
    protocols: Sequence[str] = tuple(PROTOCOLS),
    profile: str = "typical",
    seeds: str = "0:220",
    resamples: int = RESAMPLES,
    jobs: int = 2,
    *,
    compute: bool = True,
    folder: Path = CACHE,
) -> dict[str, Any] | None:
    """Return `run_grid(...).record()`, from the folder if it is there.

    It is computed once and kept beside the built book until the engine or its inputs change. A folder that
    cannot be written to is done without.

    Args:
        compute: whether a grid that is not there is computed, which takes about a minute; else it is None.
        folder: where grids are kept.
    """
    asked = {
        "engine": engine_sha256(SOURCES),
        "regime": asdict(find_regime(regime)),
        "protocols": [asdict(parse_protocol(name)) for name in protocols],
        "profile": asdict(find_profile(profile)),
        "seeds": seeds,
        "resamples": resamples,
    }
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    path = folder / f"{digest[:32]}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # not there, or damaged
        if not compute:
            return None
        text = json.dumps(run_grid(regime, protocols, profile, seeds, resamples, jobs).record())
    with contextlib.suppress(OSError):  # a reader may have no room for it
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_text(text, encoding="utf-8")
        for old in sorted(folder.glob("*.json"), key=lambda file: file.stat().st_mtime)[:-KEPT]:
            old.unlink(missing_ok=True)
    return json.loads(text)
