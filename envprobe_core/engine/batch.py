"""Simulation of conditions on seeds: measures or recordings, and a batch that Python takes step by step."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core import ledger
from envprobe_core.agents.minds import mind_of
from envprobe_core.agents.profiles import WRITES, AgentProfile
from envprobe_core.compiled import records
from envprobe_core.compiled.noise import level16, level32
from envprobe_core.compiled.numba_support import announced
from envprobe_core.compiled.records import CODE, NONE, WAIT, new
from envprobe_core.conditions import Condition
from envprobe_core.engine import kernel
from envprobe_core.policies import POLICIES, TERMS, Policy, memories
from envprobe_core.policies.base import Rule
from envprobe_core.policies.custom import NOBODY, Called, rule_of
from envprobe_core.protocols import SWITCHES, Protocol, numbered_switch
from envprobe_core.worlds import MODULES, World, make_world
from envprobe_core.worlds.base import SWITCHES as IN_WORLD
from envprobe_core.worlds.base import Floats, Ints, Mask, Values


@cache
def episode_dtype(world: str) -> np.dtype:
    """The dtype of an episode in the world of a name.

    >>> "table" in episode_dtype("tooldag").names
    True
    """
    module = MODULES[world]
    return records.episode(module.TASK, module.STATE, mind_of(module).MIND, memories())


BY_QUARTERS = ("omit", "hedge", "misreport")  # rates that a quarter of a word is compared with, not its half
STRENGTHS = ("importance", "contrary")  # of a habit, which no draw is compared with
Columns = dict[str, npt.NDArray[np.generic]]
Reports = npt.NDArray[np.uint8]


def kernel_params(condition: Condition, *, scores_all: bool = False, world: World | None = None) -> Any:
    """Put a condition into the record of numbers that the engine works with.

    Args:
        condition: the condition.
        scores_all: whether the highest score is wanted also where the budget is spent, as logs hold it.
        world: a world other than that of the condition's regime and protocol, as a smaller one.

    >>> from envprobe_core.conditions import make_condition
    >>> params = kernel_params(make_condition("tooldag", "simple"))
    >>> int(params.policy.budget), float(params.policy.threshold)
    (7, 1.5)
    """
    built = make_world(condition.world, condition.regime, condition.protocol) if world is None else world
    parts = {
        "protocol": _protocol_record(condition.protocol, condition.regime.horizon, scores_all),
        "habits": _habits_record(condition.profile),
        "policy": _policy_record(
            condition.policy,
            zlib.crc32(condition.policy.name.encode()) if condition.profile.own_noise else 0,
            condition.budget_in_force,
            float(condition.threshold_in_force),
        ),
    }
    return records.record_from({"world": built.record} | parts)


# Conditions of a grid share most of their parts, which are records of their own and made once.
_KEPT = 4096


@lru_cache(_KEPT)
def _protocol_record(protocol: Protocol, horizon: int, scores_all: bool) -> Any:
    """Each switch by its name, but for those that the world's record has; and how long an episode is."""
    switches = {name: numbered_switch(protocol, name) for name in SWITCHES if name not in IN_WORLD}
    return records.record_from({"horizon": horizon, "scores_all": int(scores_all)} | switches)


@lru_cache(_KEPT)
def _policy_record(policy: Policy, arm: int, budget: int, threshold: float) -> Any:
    """What a policy is, with what is in force of its budget and threshold."""
    return records.record_from(
        {
            "gate": policy.rule._asdict(),  # says when
            "selector": (policy.selector or Rule(NONE))._asdict(),  # says which field, if it is another rule
            "answered": int(policy.answered),
            "given": int(policy.given),  # it is told the world's rate
            "arm": arm,
            "budget": budget,
            "threshold": threshold,
        }
    )


@lru_cache(_KEPT)
def _habits_record(profile: AgentProfile) -> Any:
    """An agent's habits; of a rate, the level that draws are compared with."""
    habits = {}
    for field in fields(AgentProfile):
        value = getattr(profile, field.name)
        if field.name in STRENGTHS:
            habits[field.name] = float(value)
        elif isinstance(field.default, float):
            habits[field.name] = level16(value) if field.name in BY_QUARTERS else level32(value)
        elif field.name == "writes":
            habits[field.name] = WRITES.index(value)
        elif isinstance(field.default, int):
            habits[field.name] = int(value)
    return records.record_from(habits)


def room_for_logs(horizon: int, rows: int) -> Any:
    """Make empty logs, [row, time]; what an episode does not reach stays without action, probe and score.

    >>> room_for_logs(30, 2).shape
    (2, 31)
    """
    logs = new(records.ENTRY, rows, horizon + 1)
    logs["action"], logs["probe"], logs["score"] = WAIT, NONE, np.nan
    return logs


NO_SCHEDULE = np.zeros((1, 0), np.int64)
NO_LOGS, NO_MEASURES = room_for_logs(0, 1), new(records.MEASURES, 0)


@dataclass(frozen=True)
class Trajectory:
    """A block's recording; time axes are [step] for t = 0..H-1 and [time] for t = 0..H.

    What lies behind an episode's end is empty: 0, False, WAIT, -1, NaN.
    """

    belief: Values  # [row, time, field], b_t after the agent's update
    gold: Values  # [row, time, field], g_t
    staleness: Reports  # [row, time, field], as reported, in steps
    confidence: Reports  # [row, time, field], as reported, in percent
    place: npt.NDArray[np.int8]  # [row, time], the agent's true room or node
    action: npt.NDArray[np.int16]  # [row, step], the proposed task action
    probe: npt.NDArray[np.int16]  # [row, step], the probed field or -1
    answer: Values  # [row, step], gold of the probed field (0: no probe), also where a fault tells another
    useful: Mask  # [row, step], whether the gold of a probed field differed from the belief held
    valid: Mask  # [row, step], whether the executed task action was valid (False for probes and waits)
    acted: Mask  # [row, step], whether a task action was executed
    score: Floats  # [row, step], max rho, NaN where the policy has none
    steps: Ints  # [row], executed decision steps
    success: Mask  # [row], whether the goal was reached
    accuracy: Floats  # [row, time], whose fall is collapse: b_t or b_(t-1) against g_t, or slots (NaN at 0)
    measures: Columns  # a column [row] for each measure of the episode table

    def rows(self, part: slice | Ints) -> Trajectory:
        """The recording of some rows."""
        measures = {name: column[part] for name, column in self.measures.items()}
        return Trajectory(**{name: getattr(self, name)[part] for name in ARRAYS}, measures=measures)

    @classmethod
    def of(cls, params: Any, logs: Any, measures: Columns) -> Trajectory:
        """The recording that scored logs [row, time] of a condition hold."""
        width, steps = int(params.world.fields), measures["steps"].astype(np.int64)
        accuracy = logs["accuracy"].copy()
        accuracy[np.arange(logs.shape[1])[None, :] > steps[:, None]] = np.nan
        if params.protocol.accuracy == CODE:
            accuracy[:, 0] = np.nan
        return cls(
            *(logs[name][:, :, :width] for name in BY_FIELD),
            logs["place"],
            *(logs[name][:, :-1] for name in ("action", "probe", "answer")),
            *(logs[name][:, :-1].astype(bool) for name in ("useful", "valid", "acted")),
            logs["score"][:, :-1],
            steps,
            measures["success"].astype(bool),
            accuracy,
            measures,
        )

    @classmethod
    def joined(cls, parts: list[Trajectory]) -> Trajectory:
        """Put the rows of several recordings one after the other."""
        if len(parts) == 1:
            return parts[0]
        measures = {
            name: np.concatenate([part.measures[name] for part in parts]) for name in parts[0].measures
        }
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ARRAYS}
        return cls(**arrays, measures=measures)


BY_FIELD = ("belief", "gold", "staleness", "confidence")
ARRAYS = [field.name for field in fields(Trajectory) if field.name != "measures"]


class EpisodeBatch:
    """A block of episodes of one condition, step by step: `propose`, `record`, `decide`, `advance`, again.

    Attributes:
        condition, seeds: what is run, [row].
        params: the condition's numbers.
        rule: a reader's policy, or `custom.NOBODY`.
        block: the episodes as they stand, [row]; a fork is a copy of its rows.
        logs: [row, time].
    """

    def __init__(
        self,
        condition: Condition,
        seeds: Ints,
        *,
        world: World | None = None,
        schedules: Ints | None = None,
        scores_all: bool = True,
    ) -> None:
        """Create the worlds; the agents look around. Arguments are those of `simulate_logged`."""
        self.condition, self.seeds = condition, np.array(seeds, np.int64)
        self.params = kernel_params(condition, scores_all=scores_all, world=world)
        self.rule = rule_of(condition.policy.score)
        self.block = new(episode_dtype(condition.world), len(self.seeds))
        self.logs = room_for_logs(condition.regime.horizon, len(self.seeds))
        self.schedules = NO_SCHEDULE if schedules is None else schedules
        ledger.note_other("episodes taken step by step", len(self.seeds))
        with announced(MODULES[condition.world].TITLE):
            step_batch(kernel.BEGIN, self.params, self.block, seeds=self.seeds)

    def take_stages(self, stages: int, fields: Ints | None = None) -> Ints:
        """Take the episodes through some stages of a step; return the fields that are probed, [row]."""
        fields = np.full(len(self.block), NONE) if fields is None else fields
        arrays = {"logs": self.logs, "schedules": self.schedules, "fields": fields, "rule": self.rule}
        step_batch(stages, self.params, self.block, **arrays)
        return fields

    def propose(self) -> None:
        """Let the simulated agents update their tables and propose."""
        self.take_stages(kernel.PROPOSE)

    def record(self) -> bool:
        """Record b_t and g_t; say whether any episode still runs."""
        self.take_stages(kernel.RECORD)
        return not self.block.over.all()

    def sense(self) -> Any:
        """Fill in what a policy may see; return the sights, [row]."""
        self.take_stages(kernel.SENSE)
        return self.block.sight

    def decide(self) -> Ints:
        """Ask the condition's policy for the field to probe, or NONE, [row]."""
        return self.take_stages(kernel.DECIDE)

    def advance(self, fields: Ints) -> None:
        """Probe a field or act, [row]; the worlds mutate; the agents observe."""
        self.take_stages(kernel.ADVANCE, fields)

    def go_on(self) -> None:
        """Run every episode from its decision to its end."""
        self.advance(self.decide())
        self.take_stages(kernel.TO_THE_END)

    def recording(self) -> Trajectory:
        """Score the episodes, which are over, and return what was recorded."""
        return scored(self.params, self.logs, self.block.t, self.block.succeeded)


def simulate(condition: Condition, seeds: Ints) -> Columns:
    """Run a condition; return a column [row] for each measure.

    >>> from envprobe_core.conditions import make_condition
    >>> simulate(make_condition("tooldag", "simple"), np.arange(4))["probes"].tolist()
    [7, 7, 7, 7]
    """
    return _run(condition, np.array(seeds, np.int64), keep=False)[2]


def simulate_logged(
    condition: Condition, seeds: Ints, *, scores_all: bool = True, schedules: Ints | None = None
) -> Trajectory:
    """Run a condition; return what was recorded, with a column [row] for each measure.

    Args:
        condition: the condition.
        seeds: [row].
        scores_all: whether the highest score is recorded also where the budget is spent.
        schedules: [row, step], the fields that a replayed policy probes; by default those of the policy that
            the condition's replays.

    >>> from envprobe_core.conditions import make_condition
    >>> recording = simulate_logged(make_condition("tooldag", "simple"), np.arange(4))
    >>> recording.belief.shape
    (4, 31, 27)
    """
    rows = np.array(seeds, np.int64)
    return Trajectory.of(*_run(condition, rows, keep=True, scores_all=scores_all, schedules=schedules))


def _run(
    condition: Condition, seeds: Ints, *, keep: bool, scores_all: bool = False, schedules: Ints | None = None
) -> tuple[Any, Any, Columns]:
    """Run a condition; return its record, its logs, all of them or the last one, and its measures."""
    rule, params = rule_of(condition.policy.score), kernel_params(condition, scores_all=scores_all)
    logs = room_for_logs(condition.regime.horizon, len(seeds) if keep else 1)
    measures = new(records.MEASURES, len(seeds))
    by_name = schedules is None and condition.policy.score is None
    schedules = schedules_of(condition, seeds) if schedules is None else schedules
    arrays = {"seeds": seeds, "logs": logs, "schedules": schedules, "measures": measures, "rule": rule}
    with announced(MODULES[condition.world].TITLE):
        step_batch(kernel.WHOLE, params, new(episode_dtype(condition.world), 1), **arrays)
    if by_name:
        ledger.note_condition(condition, seeds, measures["digest"])
    else:
        custom = condition.policy.score is not None
        kind = "episodes of a policy in Python" if custom else "episodes with given probes"
        ledger.note_other(kind, len(seeds))
    return params, logs, columns_of(measures)


def replayed(condition: Condition) -> Condition:
    """The condition whose probes a replayed policy repeats.

    >>> from envprobe_core.conditions import make_condition
    >>> replayed(make_condition("tooldag", "yoked")).policy.name
    'simple'
    """
    policy = POLICIES[condition.policy.replays or ""]
    return replace(condition, policy=policy, threshold=condition.threshold if policy.has_threshold else None)


def schedules_of(condition: Condition, seeds: Ints) -> Ints:
    """The probes of the policy that a condition replays, [row, step].

    >>> from envprobe_core.conditions import make_condition
    >>> schedules_of(make_condition("tooldag", "yoked"), np.arange(2)).shape
    (2, 30)
    """
    if condition.policy.replays is None:
        return NO_SCHEDULE
    played = simulate_logged(replayed(condition), seeds, scores_all=False)
    return np.ascontiguousarray(played.probe, dtype=np.int64)


def terms_of(condition: Condition, seeds: Ints, recording: Trajectory) -> Floats:
    """Play recorded episodes again; return the score's terms, [row, step, field, term], NaN after the end.

    >>> from envprobe_core.conditions import make_condition
    >>> condition, seeds = make_condition("tooldag", "simple"), np.arange(2)
    >>> terms_of(condition, seeds, simulate_logged(condition, seeds)).shape
    (2, 30, 27, 4)
    """
    episodes, width = EpisodeBatch(condition, seeds), condition.built.fields
    terms = np.full((*recording.probe.shape, width, len(TERMS)), np.nan)
    for t in range(int(recording.steps.max(initial=0))):
        episodes.propose()
        episodes.record()
        sight = episodes.sense()
        for place, term in enumerate(TERMS):
            terms[:, t, :, place] = sight[term][:, :width]
        episodes.advance(recording.probe[:, t].astype(np.int64))
    terms[np.arange(terms.shape[1]) >= recording.steps[:, None]] = np.nan
    return terms


def walk(episodes: EpisodeBatch, decide: Callable[[], Ints]) -> None:
    """Run episodes to their end, asking Python for the fields to probe, [row], at each step.

    >>> from envprobe_core.conditions import make_condition
    >>> episodes = EpisodeBatch(make_condition("tooldag", "simple"), np.arange(2))
    >>> walk(episodes, episodes.decide)
    >>> bool(episodes.block.over.all())
    True
    """
    while True:
        episodes.propose()
        if not episodes.record():
            return
        episodes.advance(decide())


def score(params: Any, recorded: Mapping[str, npt.NDArray[np.generic]]) -> Trajectory:
    """Score episodes that were recorded before, under a condition's rules.

    Args:
        params: the condition's record (`kernel_params`).
        recorded: `belief` to `success` of a `Trajectory`.
    """
    rows, times, width = recorded["belief"].shape
    logs = room_for_logs(times - 1, rows)
    for name in BY_FIELD:
        logs[name][:, :, :width] = recorded[name]
    logs["place"] = recorded["place"]
    for name in ("action", "probe", "answer", "useful", "valid", "acted", "score"):
        logs[name][:, :-1] = recorded[name]
    return scored(params, logs, recorded["steps"], recorded["success"])


def scored(
    params: Any, logs: Any, steps: npt.NDArray[np.generic], success: npt.NDArray[np.generic]
) -> Trajectory:
    """Score logs [row, time] of episodes that are over, and return what they hold."""
    measures = new(records.MEASURES, len(logs))
    measures.steps, measures.success = steps, success
    world = next(name for name, module in MODULES.items() if params.world.code == module.CODE)
    over = new(episode_dtype(world), 1)
    over.over = 1
    step_batch(
        kernel.MEASURE, params, over, seeds=np.zeros(len(logs), np.int64), logs=logs, measures=measures
    )
    return Trajectory.of(params, logs, columns_of(measures))


def step_batch(
    stages: int,
    params: Any,
    block: Any,
    *,
    seeds: Ints | None = None,
    logs: Any = NO_LOGS,
    schedules: Ints = NO_SCHEDULE,
    fields: Ints | None = None,
    measures: Any = NO_MEASURES,
    rule: Called = NOBODY,
) -> None:
    """Take a block through some stages of a step (`kernel.run`), with what these need.

    Raises:
        BaseException: what a reader's policy raised.
    """
    seeds = np.zeros(len(block), np.int64) if seeds is None else seeds
    fields = np.full(1, NONE) if fields is None else fields
    kernel.run(stages, params, block, seeds, logs, schedules, fields, measures, rule)
    if rule.error is not None:
        raise rule.error


def columns_of(measures: Any) -> Columns:
    """Return measures [row] as columns of the episode table."""
    kinds = {"i": np.int64, "f": np.float64, "u": np.uint64}
    columns = {name: measures[name].astype(kinds[measures[name].dtype.kind]) for name in measures.dtype.names}
    return columns | {"success": columns["success"] == 1}
