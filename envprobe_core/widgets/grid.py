"""The explorer's grid: readings of every policy at every budget and threshold, in every world and protocol.

An episode depends on its policy through its probes alone, so two settings with the same probes on a seed are
the same episode. Which probes a setting makes is mostly known without running it:

* a gate compares its score with the threshold and nothing else: every threshold from the one that was run up
  to the lowest score that fired gives the same probes;
* a rule that does not look at the budget makes the same probes under a smaller one until that is spent, and
  none after;
* a yoked placebo's probes are its original's; where no answer arrives, all probes are alike.

So each policy runs under the largest budget at those thresholds that differ, and each distinct sequence of
probes is then replayed once, whatever policies and settings it belongs to. `tests/test_explorer_grid.py`
compares settings that were never run with real runs.
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
from envprobe_core.pool import spread
from envprobe_core.protocols import PROTOCOLS, Protocol, parse_protocol
from envprobe_core.regimes import Regime
from envprobe_core.sources import PACKAGE, engine_sha256
from envprobe_core.statistics import RESAMPLES
from envprobe_core.widgets.readings import (
    CURVE_UNITS,
    SHARE_UNITS,
    Episodes,
    Ints,
    Readings,
    ResampledSums,
    join,
    measure,
    read_episodes,
)
from envprobe_core.worlds import WORLDS

AT_ONCE = 4000  # sequences of probes
POOL = "pool"
VIEWS = (*WORLDS, POOL)
THRESHOLDS = tuple(quarters / 4 for quarters in range(17))
CAPPED_RULES = {NEVER, SCORE, SELF_UNCERTAINTY, JUDGE, ORACLE, ORACLE_TW}
"""The rules that the budget stops and does not otherwise concern; one with a memory may pace its budget."""
SETTINGS_A_TASK = 512
CACHE = PACKAGE.parent / "book" / "_build" / "explorer"
SOURCES = ("widgets/grid.py",)  # with what it imports: the engine and the readings
KEPT = 4  # grids in the cache; older ones are removed

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


def probes_of(block: Block, policy: Policy) -> tuple[Sequences, Ints, Ints]:
    """Run a policy at each budget, if that can matter, and at each threshold where it matters to a seed.

    Returns:
        What each run probed; the position of its seed, [run]; and the run of each setting, [budget,
        threshold, seed]: one budget where the policy is capped, one threshold where it has none.
    """
    budgets = block.budgets[-1:] if capped(policy) else block.budgets
    thresholds = block.thresholds if policy.has_threshold else (None,)
    of = np.empty((len(budgets), len(thresholds), len(block.seeds)), dtype=np.int64)
    probes, positions, total = [], [], 0
    for b, budget in enumerate(budgets):
        upto = np.full(len(block.seeds), -np.inf)  # thresholds in force up to this one change nothing
        for k, threshold in enumerate(thresholds):
            cell = block.cell(policy, budget, threshold)
            at = np.flatnonzero(upto < cell.threshold_in_force)
            of[b, k] = of[b, k - 1]
            of[b, k, at] = total + np.arange(len(at))
            total += len(at)
            if len(at):
                recording = record(cell, block.seeds[at], scores_all=False)
                probed = recording.probe >= 0
                unspent = np.cumsum(probed, axis=1) - probed < cell.budget_in_force
                if capped(policy):
                    fired = unspent & (recording.score >= cell.threshold_in_force)
                    upto[at] = np.where(fired, recording.score, np.inf).min(axis=1)
                probes.append(recording.probe.astype(np.int8))
                positions.append(at)
    return np.concatenate(probes), np.concatenate(positions), of


def run_block(block: Block) -> tuple[Block, Episodes, dict[str, Ints]]:
    """Run every setting of the companion's policies, each distinct sequence of probes once.

    Returns:
        The block; the distinct episodes; policy name -> [budget, threshold, seed], positions among them, one
        threshold where the policy has none.
    """
    ran: dict[Policy, tuple[Sequences, Ints, Ints]] = {}
    keys, shapes, total = [], {}, 0  # a key: whether answers arrive, the seed's position, the probes
    for name, policy in POLICIES.items():
        # policies that decide alike and are answered alike are one: under `released`, placebos are Simple
        first = POLICIES[policy.replays] if policy.replays else policy
        alike = replace(first, name="", title="", answered=block.answers(first))
        if alike not in ran:
            ran[alike] = probes_of(block, first)
        probe, at, of = ran[alike]
        numbers = []
        for budget in block.budgets if capped(first) else block.budgets[-1:]:
            cut = (
                np.where(np.cumsum(probe >= 0, axis=1) <= budget, probe, np.int8(-1))
                if capped(first)
                else probe
            )
            answered = block.answers(policy) | ~(cut >= 0).any(axis=1)  # of no probe all is alike
            place = at.astype(">u4")[:, None].view(np.uint8)
            keys.append(
                np.concatenate([answered[:, None].astype(np.uint8), place, cut.view(np.uint8)], axis=1)
            )
            numbers.append(total + of)
            total += len(probe)
        shapes[name] = np.concatenate(numbers)
    whole = np.concatenate(keys)
    distinct, number = np.unique(whole.view(f"V{whole.shape[1]}")[:, 0], return_inverse=True)
    episodes = join(list(_replayed(block, distinct.view(np.uint8).reshape(-1, whole.shape[1]))))
    return block, episodes, {name: number[of].astype(np.int32) for name, of in shapes.items()}


def _replayed(block: Block, keys: npt.NDArray[np.uint8]) -> Iterator[Episodes]:
    """Run sequences of probes, as `run_block` has sorted them, in blocks of one kind of answer."""
    for answered in (False, True):
        own = keys[keys[:, 0] == answered]
        policy = Policy("replay", "Replay", Rule(REPLAY), answered=answered)
        cell = block.cell(policy, budget=block.regime.horizon)
        for first in range(0, len(own), AT_ONCE):
            part = own[first : first + AT_ONCE]
            seeds = block.seeds[np.ascontiguousarray(part[:, 1:5]).view(">u4")[:, 0]]
            schedules = part[:, 5:].astype(np.int8).astype(np.int64)
            yield measure(record(cell, seeds, scores_all=False, schedules=schedules))


def run_grid(
    regime: str = "S2",
    protocols: Sequence[str] = tuple(PROTOCOLS),
    profile: str = "typical",
    seeds: str = "0:220",
    resamples: int = RESAMPLES,
    jobs: int = 2,
) -> dict[str, Any]:
    """Run and read every setting: budgets 0..H/2, base thresholds 0..4 in steps of .25, every policy.

    Args:
        protocols: names of protocols, with or without switches turned.
        seeds: as `cells.parse_seeds` reads them; the same under every protocol.

    Returns:
        What a page carries, ready for JSON: what was asked; `budgets` and `thresholds`, the sliders'
        positions; `rows`, by `protocol/world/policy` a table [threshold or 1, budget] of places in
        `readings`; these as `Readings` has them, in whole `units`. Settings that share all their episodes
        share a reading.
    """
    level, chosen = find_regime(regime), [parse_protocol(name) for name in protocols]
    budgets = tuple(range(level.horizon // 2 + 1))
    blocks = [
        Block(world, level, protocol, find_profile(profile), parse_seeds(seeds), budgets)
        for protocol, world in product(chosen, WORLDS)
    ]
    ran = {(block.protocol.name, block.world): rest for block, *rest in spread(run_block, blocks, jobs)}
    rows: dict[str, list[list[int]]] = {}
    parts: list[Readings] = []
    for protocol in chosen:
        several = [ran[protocol.name, world] for world in WORLDS]
        starts = np.cumsum([0, *(len(episodes.success) for episodes, _ in several)])
        numbers: dict[bytes, int] = {}
        settings: list[Ints] = []
        held = sum(map(len, parts))
        for policy in POLICIES:
            places = [own[policy] + start for (_, own), start in zip(several, starts, strict=False)]
            views = dict(zip(VIEWS, [*places, np.concatenate(places, axis=-1)], strict=True))
            found = {view: np.empty(own.shape[1::-1], dtype=np.int64) for view, own in views.items()}
            for b, k in np.ndindex(places[0].shape[:2]):
                for view, own in views.items():  # a world beside its pool: what it resamples is used twice
                    key = own[b, k].tobytes()
                    if numbers.setdefault(key, len(numbers)) == len(settings):
                        settings.append(own[b, k])
                    found[view][k, b] = held + numbers[key]
            rows |= {f"{protocol.name}/{view}/{policy}": own.tolist() for view, own in found.items()}
        parts += _read(
            join([episodes for episodes, _ in several]), settings, len(blocks[0].seeds), resamples, jobs
        )
    readings = join(parts)
    return {
        "regime": regime,
        "profile": profile,
        "seeds": seeds,
        "resamples": resamples,
        "episodes": len(blocks[0].seeds),
        "budgets": list(budgets),
        "thresholds": list(THRESHOLDS),
        "protocols": [protocol.name for protocol in chosen],
        "worlds": list(VIEWS),
        "policies": list(POLICIES),
        "units": {"share": SHARE_UNITS, "curve": CURVE_UNITS},
        "rows": rows,
        "readings": {field.name: getattr(readings, field.name).tolist() for field in fields(Readings)},
    }


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
    """Return `run_grid(...)`, from the folder if it is there.

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
        text = json.dumps(run_grid(regime, protocols, profile, seeds, resamples, jobs))
    with contextlib.suppress(OSError):  # a reader may have no room for it
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_text(text, encoding="utf-8")
        for old in sorted(folder.glob("*.json"), key=lambda file: file.stat().st_mtime)[:-KEPT]:
            old.unlink(missing_ok=True)
    return json.loads(text)
