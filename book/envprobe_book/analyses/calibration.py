"""Calibration: what an agent profile is fitted to, how far a profile is from the paper, and the search.

Targets are the accuracies that the paper prints for Periodic and its canonical confident-wrong rate p_cw,
and nothing else; they are measured under `released`, with the public code's estimators. Simple and Oracle
run for p_cw alone, which that code counts for these two policies; no other figure of theirs is read, nor is
success, and there are more targets than free parameters. The accuracy of No-Probe is measured and does not
count: what the paper prints of it contradicts itself.

The search is differential evolution over a grid of thousandths; every generation is one call of the engine
over all its candidates. The best point is one that was evaluated, so that the committed profile is, to the
last bit, what the search found. `data/profiles/fit.py` writes it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from envprobe_book.claims import paper_value
from envprobe_core.agents.profiles import SCRIBE, AgentProfile
from envprobe_core.conditions import PAPER_POLICIES, RELEASED_SEEDS, Condition, Seeds
from envprobe_core.engine.batch import Columns, simulate, simulate_logged
from envprobe_core.experiment import run_conditions
from envprobe_core.measures import REPORTING, confident_counts
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import RELEASED, Protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS
from envprobe_core.worlds.base import Floats, Mask

PROTOCOL, REGIME = RELEASED, REGIMES["S2"]
TARGET_POLICIES = ("no-probe", "periodic", *REPORTING)
COUNTS = ("confident", "confident_wrong")
SCALE = 0.03  # the margin that claims.csv allows a level, stated before the fit
Place = tuple[str, str, str]  # source, row and column of tables.csv


@dataclass(frozen=True)
class Target:
    """One number of the paper that the fit may use."""

    name: str  # ours
    symbol: str  # as figures write it
    policy: str | None  # the policy whose accuracy it is; None for p_cw, which is over those that are counted
    worlds: tuple[str, ...]  # the worlds pooled, each episode counting once
    kind: str  # as the column `input` of claims.csv calls it
    place: Place  # where tables.csv has it
    repeats: tuple[Place, ...] = ()  # further places that print the same quantity, with whatever value
    follows: bool = False  # whether it follows from other targets by arithmetic
    dropped: str = ""  # why it does not count, empty where it does

    @property
    def value(self) -> float:
        """The paper's number, a share."""
        return paper_value(*self.place).value


_TOOLS, _SPATIAL, _ALL = ("tooldag",), ("objectstate", "graphnav"), tuple(WORLDS)
_PERIODIC, _NO_PROBE, _PCW = "periodic accuracy", "no-probe accuracy", "canonical p_cw"
TARGETS = (
    Target(
        "No-Probe accuracy, spatial", "No-Probe (spatial)", "no-probe", _SPATIAL, _NO_PROBE,
        ("tab:ordering", "spatial: self-uncertainty vs no-probe", "reference_accuracy"),
        dropped="its row gives two differences for the same two levels",
    ),
    Target(
        "Periodic accuracy, procedural", "Periodic (procedural)", "periodic", _TOOLS, _PERIODIC,
        ("tab:main", "procedural: simple vs periodic", "reference_accuracy"),
        (("tab:ordering", "procedural: simple vs periodic", "reference_accuracy"),),
    ),
    Target(
        "Periodic accuracy, spatial", "Periodic (spatial)", "periodic", _SPATIAL, _PERIODIC,
        ("tab:main", "spatial: simple vs periodic", "reference_accuracy"),
        (("tab:ordering", "spatial: periodic vs self-uncertainty", "method_accuracy"),),
    ),
    Target(
        "Periodic accuracy, combined", "Periodic (combined)", "periodic", _ALL, _PERIODIC,
        ("tab:main", "combined: simple vs periodic", "reference_accuracy"), follows=True,
    ),
    Target(
        "confident-wrong rate, canonical", "confident-wrong rate", None, _ALL, _PCW,
        ("tab:pcw_audit", "canonical", "confident_wrong"),
        (
            ("sec:results:secondary", "canonical", "confident_wrong"),
            ("sec:results:secondary", "supplementary audit", "confident_wrong"),
        ),
    ),
)  # fmt: skip
COUNTED = np.array([not target.dropped for target in TARGETS])
KINDS = tuple(dict.fromkeys(target.kind for target in TARGETS if not target.dropped))


@dataclass(frozen=True)
class Free:
    """A rate that the fit may choose, its range, and why this one."""

    name: str
    low: float
    high: float
    why: str


BASE = SCRIBE  # every behaviour that is not free stays as it is here
FREE = (
    Free("lost", 0.0, 1.0, "a stray call names a tool that is not ready, and a stray move leaves the way"),
    Free("loop", 0.0, 1.0, "a repeated action is mostly not valid, so that less gets done"),
)
ASSUMPTION = (
    f"The scribe, with its two rates ({', '.join(item.name for item in FREE)}) fitted to the accuracies "
    "which the paper prints for Periodic and to its confident-wrong rate, under `released`. An account of "
    "those figures, not a likely agent."
)


def target_values() -> Floats:
    """The paper's numbers, [target]."""
    return np.array([target.value for target in TARGETS])


def measure_with_confidence(condition: Condition, seeds: Seeds) -> Columns:
    """Measures of a condition, with counts of confident beliefs and of wrong ones (0 where nobody counts)."""
    if condition.policy.name not in (
        REPORTING if condition.protocol.confident == "anything" else PAPER_POLICIES
    ):
        return simulate(condition, seeds) | dict.fromkeys(COUNTS, np.zeros(len(seeds), np.int64))
    recording = simulate_logged(condition, seeds, scores_all=False)
    found = confident_counts(recording, condition)
    return recording.measures | {name: found[name] for name in COUNTS}


def run_agents(
    profiles: Sequence[AgentProfile],
    policies: Sequence[str],
    protocol: Protocol,
    seeds: Seeds,
    columns: Sequence[str] = ("accuracy", *COUNTS),
    jobs: int = 1,
) -> dict[str, Floats]:
    """Run agents with policies in every world on common random numbers, in one call of the engine.

    Returns:
        Columns by name, [world, policy, profile, seed] each.
    """
    conditions = [
        Condition(world, POLICIES[policy], REGIME, protocol, profile)
        for world in WORLDS
        for policy in policies
        for profile in profiles
    ]
    table = run_conditions(conditions, seeds, jobs=jobs, work=measure_with_confidence)
    shape = (len(WORLDS), len(policies), len(profiles), len(seeds))
    return {name: table[name].reshape(shape).astype(np.float64) for name in columns}


def predict(
    profiles: Sequence[AgentProfile],
    seeds: Seeds | None = None,
    *,
    protocol: Protocol = PROTOCOL,
    jobs: int = 1,
) -> Floats:
    """Measure the targets for many profiles, [profile, target].

    Args:
        seeds: by default those of the released main run, 42..261.
        protocol: another than the targets', to ask what it does to them; a fit never sees one.
    """
    chosen = np.arange(*RELEASED_SEEDS) if seeds is None else seeds
    return pool(run_agents(profiles, TARGET_POLICIES, protocol, chosen, jobs=jobs), TARGET_POLICIES)


def pool(columns: Mapping[str, Floats], policies: Sequence[str]) -> Floats:
    """The targets, [profile, target], of what `run_agents` gives; shares.

    p_cw is 0 for an agent that is never confident.
    """
    reporting = [policies.index(name) for name in REPORTING]
    confident, wrong = (columns[name][:, reporting].sum(axis=(0, 1, 3)) for name in COUNTS)
    accuracy, found = columns["accuracy"].mean(axis=-1), []
    for target in TARGETS:
        if target.policy is None:
            found.append(wrong / np.maximum(confident, 1))
        else:
            rows = [list(WORLDS).index(world) for world in target.worlds]
            found.append(accuracy[rows, policies.index(target.policy)].mean(axis=0))
    return np.stack(found, axis=-1)


def soft_l1(z: Floats) -> Floats:
    """The penalty 2 (sqrt(1 + z^2) - 1) of each distance z from a target, in units of the target's scale.

    It is quadratic for a target that is met within the scale and linear beyond, so that a target out of reach
    pulls steadily and cannot buy its distance by spoiling all the others.

    >>> soft_l1(np.array([0.0, -3.0])).round(3).tolist()
    [0.0, 4.325]
    """
    return 2.0 * (np.sqrt(1.0 + z * z) - 1.0)


def loss(predicted: Floats, paper: Floats, counted: Mask = COUNTED) -> Floats:
    """The objective, the sum of `soft_l1` of (ours - paper's) / SCALE, [...].

    Args:
        predicted: [..., target].
        paper: [target].
        counted: [target], the targets that count.
    """
    return np.where(counted, soft_l1((predicted - paper) / SCALE), 0.0).sum(axis=-1)


# the search

THOUSANDTHS = 1000
METHOD = {"method": "scipy.optimize.differential_evolution", "strategy": "best1bin", "grid": 1 / THOUSANDTHS}
Point = tuple[int, ...]  # the free rates in thousandths


@dataclass(frozen=True)
class Settings:
    """How long and from where the search runs; the defaults made the committed profile."""

    population: int = 32  # a power of two: the first generation is a scrambled Sobol sequence
    generations: int = 24
    left_out_generations: int = 8
    seed: int = 20_250_101


DEFAULT = Settings()


def candidate(point: Sequence[int]) -> AgentProfile:
    """The base profile with the free rates set, given in thousandths."""
    rates = {item.name: int(whole) / THOUSANDTHS for item, whole in zip(FREE, point, strict=True)}
    return replace(BASE, name="calibrated", **rates, assumption=ASSUMPTION)


@dataclass(frozen=True)
class Fit:
    """What a search found."""

    profile: AgentProfile
    predicted: Floats  # [target], what it gives
    loss: float  # the objective over the targets that counted
    first_loss: float  # the best of the first generation
    evaluations: int  # distinct candidates that had been evaluated by then
    left_out: str = ""  # the kind of target that did not count, empty if all did

    @property
    def residuals(self) -> Floats:
        """Return ours minus the paper's, [target]."""
        return self.predicted - target_values()


def minimise(
    objective: Callable[[list[Point]], Floats],
    free: Sequence[Free],
    generations: int,
    settings: Settings = DEFAULT,
    begin: Sequence[Point] | None = None,
) -> None:
    """A search by differential evolution over whole thousandths; its result is what the objective kept.

    Args:
        objective: the value of each point, [point]; it keeps what it was asked.
        free: the rates that may vary.
        generations: after the first.
        settings: population and seed.
        begin: the first generation; by default a scrambled Sobol sequence.
    """
    from scipy.optimize import differential_evolution

    differential_evolution(
        lambda grid: objective([tuple(map(round, point)) for point in np.atleast_2d(grid.T)]),
        [(item.low * THOUSANDTHS, item.high * THOUSANDTHS) for item in free],
        strategy=METHOD["strategy"],
        init="sobol" if begin is None else np.array(begin, dtype=float),
        popsize=max(settings.population // len(free), 1),  # rounded up to a power of two
        maxiter=generations,
        integrality=[True] * len(free),
        vectorized=True,
        updating="deferred",
        polish=False,
        tol=0.0,
        rng=np.random.default_rng(settings.seed),
    )


@dataclass
class Search:
    """Candidates and what they give; each is simulated once, whatever it is judged by."""

    seeds: Seeds | None = None  # by default those of the released main run
    jobs: int = 1  # processes; changes nothing but speed
    tell: Callable[[int], None] = lambda evaluated: None  # called after a generation
    seen: dict[Point, Floats] = field(default_factory=dict)

    def run(self, left_out: str = "", settings: Settings = DEFAULT) -> Fit:
        """Minimise the objective.

        Args:
            left_out: a kind of target that does not count, one of `KINDS`; the search then starts from the
                best points known.
        """
        counted = COUNTED & np.array([target.kind != left_out for target in TARGETS])
        firsts: list[float] = []

        def objective(points: list[Point]) -> Floats:
            if new := list(dict.fromkeys(point for point in points if point not in self.seen)):
                ours = predict(list(map(candidate, new)), self.seeds, jobs=self.jobs)
                self.seen |= zip(new, ours, strict=True)
                self.tell(len(self.seen))
            losses = loss(np.array([self.seen[point] for point in points]), target_values(), counted)
            firsts.append(float(losses.min()))
            return losses

        warm = left_out and len(self.seen) >= settings.population
        begin = self._best(counted)[: settings.population] if warm else None
        generations = settings.left_out_generations if left_out else settings.generations
        minimise(objective, FREE, generations, settings, begin)
        point = self._best(counted)[0]
        predicted = self.seen[point]
        reached = float(loss(predicted, target_values(), counted))
        return Fit(candidate(point), predicted, reached, firsts[0], len(self.seen), left_out)

    def _best(self, counted: Mask) -> list[Point]:
        """The points seen so far, best first; the earlier wins a tie."""
        points, losses = list(self.seen), loss(np.array(list(self.seen.values())), target_values(), counted)
        return [points[place] for place in np.argsort(losses, kind="stable")]
