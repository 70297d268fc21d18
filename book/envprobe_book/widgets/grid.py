"""The explorer's grid: a reading of every policy at every budget and threshold, in every world and protocol.

An episode depends on its policy through its probes alone, so settings that probe alike are run and read once.
A rule that does not look at the budget makes the same probes under a smaller one until that is spent, and
none after, so that its probes are known from the largest budget. Readings are whole numbers, and what the
page shows is what the live engine computes, digit for digit.
"""

import contextlib
import hashlib
import json
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from envprobe_core.conditions import Condition, Seeds, find_profile, find_regime, parse_seeds
from envprobe_core.engine.batch import Trajectory, simulate_logged
from envprobe_core.files import atomic_write, environment
from envprobe_core.ledger import ENVIRONMENT as LEDGER
from envprobe_core.ledger import note_other
from envprobe_core.parallel import map_unordered
from envprobe_core.policies import POLICIES, Policy
from envprobe_core.policies.rules import JUDGE, NEVER, ORACLE, ORACLE_TW, SCORE, SELF_UNCERTAINTY
from envprobe_core.protocols import PROTOCOLS, parse_protocol
from envprobe_core.sources import ROOT, engine_sha256, files_sha256
from envprobe_core.statistics import RESAMPLES, percentile_interval, resampled_sums
from envprobe_core.worlds import WORLDS
from envprobe_core.worlds.base import Floats, Ints

POOL = "pool"
VIEWS = (*WORLDS, POOL)
THRESHOLDS = tuple(quarters / 4 for quarters in range(17))
CAPPED_RULES = {NEVER, SCORE, SELF_UNCERTAINTY, JUDGE, ORACLE, ORACLE_TW}
"""The rules that the budget stops and does not otherwise concern; one with a memory may pace its budget."""
SETTINGS_A_TASK = 256
SHARE = 10_000  # shares and their intervals to four decimals, curves to three
UNITS = {"accuracy": SHARE, "success": SHARE, "useful_rate": SHARE, "curve": 1_000}
NONE = -1  # a value that does not exist
FIXED_POINT = 2.0**32  # sums of A_t are formed in whole numbers: no order of episodes moves a bit
CACHE = ROOT / "book" / "_build" / "explorer"
KEPT = 4  # grids in the cache; older ones are removed

Reading = dict[str, Any]
Setting = tuple[Condition, ...]
"""The conditions whose episodes are read together: one, or one in each of the three worlds, called pool."""


# readings


def pooled(condition: Condition) -> Setting:
    """The condition in each of the three worlds."""
    return tuple(replace(condition, world=world) for world in WORLDS)


@dataclass(frozen=True)
class Totals:
    """What is read of a condition's episodes."""

    shares: Floats
    """[column, episode], what is resampled: A_H as the protocol scores it, success, one, the share of probes
    that were useful (whose answer differed from the belief held), and whether there are any."""
    fires: Ints  # [step], how many episodes probe
    running: Ints  # [time], how many have an A_t
    track: Ints  # [time], the sum of it, in fixed point
    useful: int
    repeated: int  # probes of a field probed before

    @classmethod
    def of(cls, recording: Trajectory) -> "Totals":
        """Take what is read from a recording."""
        found, fired, track = recording.measures, recording.probe >= 0, recording.accuracy
        probes, useful, running = fired.sum(axis=1), found["useful"], ~np.isnan(track)
        ones, rate = np.ones(len(fired)), useful / np.maximum(probes, 1)
        whole = np.rint(np.where(running, track, 0.0) * FIXED_POINT).astype(np.int64)
        return cls(
            np.stack([found["accuracy"], recording.success, ones, rate, probes > 0]),
            fired.sum(axis=0),
            running.sum(axis=0),
            whole.sum(axis=0),
            int(useful.sum()),
            int(found["repeated_probes"].sum()),
        )


def read(settings: Sequence[Sequence[Totals]], resamples: int) -> list[Reading]:
    """Read settings in whole `UNITS`; `NONE` stands for a value that does not exist.

    Args:
        settings: each the episodes of one world or of several, on the same seeds.
        resamples: of each 95% percentile interval; episodes are resampled within their world.

    Returns:
        Of each setting `n`, its episodes; `accuracy`, `success` and, over episodes that fired, `useful_rate`:
        mean, low and high; `curve`, mean A_t over the episodes that still run; `fires`, how many episodes
        probe at each step; `useful`: useful probes, and all; `repeated`.
    """
    columns = np.stack([world.shares for setting in settings for world in setting])
    # settings often share columns, so every distinct one is resampled once
    distinct, place = np.unique(columns.reshape(-1, columns.shape[2]), axis=0, return_inverse=True)
    places = iter(place.reshape(len(columns), -1))
    sums = resampled_sums(distinct.T, resamples, seed=0).T if columns.shape[2] > 1 else None

    @cache
    def draws(at: tuple[int, ...]) -> Any:
        """Sum over worlds; as in `statistics.bootstrap_means`, the k-th reads the counts k rows on."""
        assert sums is not None
        return sum(np.roll(sums[one], shift) for shift, one in enumerate(at))

    @cache
    def ends(top: tuple[int, ...], bottom: tuple[int, ...]) -> Any:
        """A ratio's interval; resamples without an event are left out."""
        if sums is None or not (kept := draws(bottom) > 0).any():
            return np.nan, np.nan
        return percentile_interval(draws(top)[kept] / draws(bottom)[kept])

    found = []
    for setting in settings:
        accuracy, success, every, rate, some = zip(*(next(places).tolist() for _ in setting), strict=True)
        intervals = ends(accuracy, every), ends(success, every), ends(rate, some)
        found.append(_reading(setting, intervals))
    return found


def _reading(worlds: Sequence[Totals], intervals: Any) -> Reading:
    """Read one setting, from its episodes and the intervals of accuracy, success and useful rate."""
    accuracy, success, every, rate, some = np.concatenate([one.shares for one in worlds], axis=1)
    shares = [
        # sums are correctly rounded, so that no order of units moves a bit
        _whole([math.fsum(top.tolist()) / bottom.sum() if bottom.any() else np.nan, *ends], SHARE)
        for top, bottom, ends in zip((accuracy, success, rate), (every, every, some), intervals, strict=True)
    ]
    track, running, fires = (
        sum(getattr(one, name) for one in worlds) for name in ("track", "running", "fires")
    )
    mean = np.divide(track, running * FIXED_POINT, out=np.full(len(track), np.nan), where=running > 0)
    return {
        "n": len(every),
        "accuracy": shares[0],
        "success": shares[1],
        "curve": _whole(mean, UNITS["curve"]),
        "fires": fires.tolist(),
        "useful": [sum(one.useful for one in worlds), int(fires.sum())],
        "useful_rate": shares[2],
        "repeated": sum(one.repeated for one in worlds),
    }


def _whole(values: Any, units: int) -> list[int]:
    """Round to whole units; NaN becomes NONE. A last bit more or less does not decide where a half goes."""
    whole = np.rint(np.round(np.nan_to_num(values) * units, 6))
    return np.where(np.isnan(values), NONE, whole).astype(int).tolist()


def take_readings(settings: Sequence[Setting], seeds: Seeds, *, resamples: int = RESAMPLES) -> list[Reading]:
    """Run settings of one horizon and read them, as plain numbers.

    A value that does not exist is None: an end of a single episode's interval; in `curve`, a time that no
    episode reaches (`released` stops at success and has no A_0); `useful_rate`, where no episode probes.
    """
    conditions = dict.fromkeys(condition for setting in settings for condition in setting)
    ran = {
        condition: Totals.of(simulate_logged(condition, seeds, scores_all=False)) for condition in conditions
    }
    found = read([[ran[condition] for condition in setting] for setting in settings], resamples)
    for reading in found:
        for name, units in UNITS.items():
            reading[name] = [None if one == NONE else one / units for one in reading[name]]
        if reading["useful_rate"][0] is None:
            reading["useful_rate"] = None
    return found


# the grid


def probes_of(base: Condition, policy: Policy, seeds: Seeds, budgets: Sequence[int]) -> Any:
    """The fields that a policy probes, [budget, threshold or 1, seed, step]."""
    own = POLICIES[policy.replays] if policy.replays else policy
    capped = {own.rule.kind, (own.selector or own.rule).kind} <= CAPPED_RULES
    settings = product(budgets[-1:] if capped else budgets, THRESHOLDS if policy.has_threshold else (None,))
    probes = [
        simulate_logged(
            replace(base, policy=own, budget=budget, threshold=gate), seeds, scores_all=False
        ).probe
        for budget, gate in settings
    ]
    found = np.array(probes, np.int8).reshape(1 if capped else len(budgets), -1, *probes[0].shape)
    within = np.cumsum(found >= 0, axis=-1) <= np.array(budgets).reshape(-1, 1, 1, 1)
    return np.where(within, found, np.int8(-1))


def run_block(
    base: Condition, seeds: Seeds, budgets: Sequence[int]
) -> tuple[Condition, list[Totals], dict[str, Ints]]:
    """Run every setting of the companion's policies, those that probe alike once.

    Args:
        base: gives all but policy, budget and threshold.
        budgets: ascending.

    Returns:
        The base; what differs; and policy name -> [budget, threshold or 1], places in it.
    """
    known: dict[Any, int] = {}
    ran, places = [], {}
    for name, policy in POLICIES.items():
        probes = probes_of(base, policy, seeds, budgets)
        answers = policy.answered and base.protocol.answer == "delivered"
        places[name] = np.empty(probes.shape[:2], np.int64)
        for b, k in np.ndindex(probes.shape[:2]):
            own = probes[b, k]
            key = answers or bool((own < 0).all()), own.tobytes()  # of no probe all is alike
            places[name][b, k] = known.setdefault(key, len(ran))
            if len(known) > len(ran):
                gate = THRESHOLDS[k] if policy.has_threshold else None
                condition = replace(base, policy=policy, budget=budgets[b], threshold=gate)
                ran.append(Totals.of(simulate_logged(condition, seeds, scores_all=False)))
    return base, ran, places


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
        seeds: as `conditions.parse_seeds` reads them; the same under every protocol.

    Returns:
        What a page carries, ready for JSON: what was asked; `budgets` and `thresholds`, the sliders'
        positions; `rows`, by `protocol/world/policy` a table [threshold or 1, budget] of places in
        `readings`, whose columns are as `read` has them, in whole `units`. Settings that share all their
        episodes share a reading.
    """
    level, agent, chosen = find_regime(regime), find_profile(profile), [*map(parse_protocol, protocols)]
    budgets, units = range(level.horizon // 2 + 1), parse_seeds(seeds)
    blocks = [
        Condition(world, POLICIES["no-probe"], level, rules, agent)
        for rules, world in product(chosen, WORLDS)
    ]
    run = partial(run_block, seeds=units, budgets=budgets)
    ran = {(base.protocol.name, base.world): rest for base, *rest in map_unordered(run, blocks, jobs)}
    rows: dict[str, list[list[int]]] = {}
    known: dict[Any, int] = {}
    settings: list[list[Totals]] = []
    for rules, policy in product(chosen, POLICIES):
        worlds = [ran[rules.name, world] for world in WORLDS]
        shape = worlds[0][1][policy].shape
        found = {view: np.empty(shape[::-1], dtype=np.int64) for view in VIEWS}
        for b, k in np.ndindex(shape):
            at = [int(places[policy][b, k]) for _, places in worlds]
            own = [episodes[one] for (episodes, _), one in zip(worlds, at, strict=True)]
            parts = [*([one] for one in own), own]
            # a world beside its pool: what is resampled is used twice
            for view, part, place in zip(VIEWS, parts, [*at, tuple(at)], strict=True):
                if (key := (rules.name, view, place)) not in known:
                    known[key] = len(settings)
                    settings.append(part)
                found[view][k, b] = known[key]
        rows |= {f"{rules.name}/{view}/{policy}": own.tolist() for view, own in found.items()}
    tasks = [settings[start : start + SETTINGS_A_TASK] for start in range(0, len(settings), SETTINGS_A_TASK)]
    with ThreadPoolExecutor(jobs) as pool:
        done = pool.map(partial(read, resamples=resamples), tasks)
        readings = [reading for some in done for reading in some]
    return {
        "regime": regime,
        "profile": profile,
        "seeds": seeds,
        "resamples": resamples,
        "episodes": len(units),
        "budgets": list(budgets),
        "thresholds": list(THRESHOLDS),
        "protocols": [rules.name for rules in chosen],
        "policies": list(POLICIES),
        "units": UNITS,
        "rows": rows,
        "readings": {name: [reading[name] for reading in readings] for name in readings[0]},
    }


def load_grid(*, compute: bool = True, folder: Path = CACHE, jobs: int = 2, **asked: Any) -> Any:
    """Return `run_grid(**asked)`, from the folder if it is there.

    It is computed once and kept beside the built book until the engine or its inputs change. A folder that
    cannot be written to is done without.

    Args:
        compute: whether a grid that is not there is computed, which takes about a minute; else it is None.
        folder: where grids are kept.
    """
    key = repr((engine_sha256(), files_sha256([Path(__file__)]), sorted(asked.items())))
    note_other("answers of the explorer, computed beforehand or kept from an earlier build", 1)
    path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # not there, or damaged
        if not compute:
            return None
        with environment(**{LEDGER: None}):  # noted above, whether the grid is there or not
            text = json.dumps(run_grid(**asked, jobs=jobs))
    with contextlib.suppress(OSError):  # a reader may have no room for it
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as partial_file:
            partial_file.write_text(text, encoding="utf-8")
        for old in sorted(folder.glob("*.json"), key=lambda file: file.stat().st_mtime)[:-KEPT]:
            old.unlink(missing_ok=True)
    return json.loads(text)
