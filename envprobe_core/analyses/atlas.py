"""The robustness atlas: which claims survive when the agent behaves differently (ours).

A box of behaviours says which agents the atlas speaks of: those that keep a table. Each behaviour in
`AgentProfile` is one axis, and every named profile that keeps a table lies inside. A scrambled Sobol sequence
fills the box evenly; every agent meets every policy in every world under every protocol on the same seeds,
and each claim is tested once for each agent.

Rates are spread on a square scale: half of the agents lie in the lowest quarter of each range, since an agent
that errs all the time can do nothing that a claim could be tested on, and should be met, but rarely. The
scribe, which keeps nothing, is an agent of another form, and what only it does is no axis.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.analyses.calibration import (
    PROTOCOL,
    TARGET_POLICIES,
    TARGETS,
    measure_with_confidence,
    pool,
)
from envprobe_core.cells import PAPER_POLICIES, Cell, Seeds, find_protocols
from envprobe_core.claims import Claim, find_claim, load_claims
from envprobe_core.claims.judge import (
    HOLDS,
    INCONCLUSIVE,
    NO_EFFECT,
    NOT_TESTED,
    OTHER_SIZE,
    REVERSES,
    decide,
)
from envprobe_core.comparing import Episodes, NotTestable, columns_read
from envprobe_core.policies import OF_THE_PAPER
from envprobe_core.pool import spread
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS
from envprobe_core.worlds.base import Floats

REGIME = REGIMES["S2"]
OURS = "ours"
AT_ONCE = 64  # agents a task

# the box


@dataclass(frozen=True)
class Axis:
    """One behaviour and the values it takes in the box."""

    name: str  # the field of `AgentProfile`
    low: float  # the ends, both included; of a yes-or-no behaviour 0 and 1
    high: float
    why: str  # the reason for the range, one clause
    kind: str = "share"  # `share` (a probability, on a square scale), `whole` or `habit` (yes or no)
    share: float = 0.5  # of a habit, the part of the sample that has it

    def value(self, unit: float) -> Any:
        """Return the behaviour for a coordinate in [0, 1)."""
        if self.kind == "share":
            return self.low + unit * unit * (self.high - self.low)
        if self.kind == "whole":
            return int(self.low + unit * (self.high - self.low + 1))
        has = unit < self.share
        return has if self.name != "writes" else "true" if has else "number"


BOX: tuple[Axis, ...] = (
    Axis("omit", 0.0, 1.0, "from writing all its news to writing none"),
    Axis("overwrite", 0.0, 1.0, "up to one spoilt field at every step"),
    Axis("slip", 0.0, 0.5, "up to every other action drawn at random"),
    Axis("quit", 0.0, 0.1, "up to giving up after ten steps on average"),
    Axis("misreport", 0.0, 1.0, "from true to always wrong about when it last looked"),
    Axis("hedge", 0.0, 0.5, "up to every other report below .7"),
    Axis("confidence", 60, 100, "from less than the .7 that counts as confident to certainty", "whole"),
    Axis("spread", 0, 40, "from one figure for everything to forty percent of variation", "whole"),
    Axis("fade", 0, 5, "up to a loss of confidence that empties a report in twenty steps", "whole"),
    Axis("single_report", 0, 1, "an odd habit, so only a quarter of the sample has it", "habit", 0.25),
    Axis("writes", 0, 1, "1 is `true`, 0 the number seen; matters to `released` scoring alone", "habit"),
    Axis("keeps_open", 0, 1, "matters to `released` scoring alone", "habit"),
)


def coordinates(count: int) -> Floats:
    """Return the first points of a scrambled Sobol sequence, [profile, axis] in [0, 1).

    The scramble's seed is fixed, so a larger sample only adds points to a smaller one; a power of
    two fills the box most evenly.
    """
    from scipy.stats import qmc

    sampler = qmc.Sobol(len(BOX), scramble=True, bits=30, rng=np.random.default_rng(20_250_101))
    return sampler.random_base2(max(count - 1, 0).bit_length())[:count]


def sample_profiles(count: int) -> tuple[AgentProfile, ...]:
    """Return the atlas' agents: `count` points of the box, named by their number."""
    behaviours = (
        {axis.name: axis.value(unit) for axis, unit in zip(BOX, point, strict=True)}
        for point in coordinates(count).tolist()
    )
    return tuple(
        AgentProfile(f"atlas-{number:04}", assumption="A point of the atlas.", **own)
        for number, own in enumerate(behaviours)
    )


def values_of(profile: AgentProfile) -> Floats:
    """Return a profile's behaviours as numbers, [axis] in the order of `BOX`."""
    given = {**vars(profile), "writes": profile.writes == "true"}
    return np.array([float(given[axis.name]) for axis in BOX])


# the questions

COLUMNS = (
    "accuracy", "success", "probes", "useful", "budget", "collapse_onset", "action_onset", "confident",
    "confident_wrong",
)  # fmt: skip
SPATIAL, EVERYWHERE = ("objectstate", "graphnav"), ("tooldag", "objectstate", "graphnav")
ANSWERS = (  # that the paper leaves open and its extra policies answer: id, statement, worlds, arm, reference
    (
        "information-procedural",
        "On the tool world EnvProbe-Simple is more accurate than its yoked placebo, which spends "
        "the same steps and is told nothing.",
        ("tooldag",), "simple", "yoked",
    ),
    (
        "information-spatial",
        "On the spatial worlds EnvProbe-Simple is more accurate than its yoked placebo.",
        SPATIAL, "simple", "yoked",
    ),
    (
        "gain-without-answers",
        "On the tool world the placebo, which is told nothing, is more accurate than Periodic.",
        ("tooldag",), "placebo", "periodic",
    ),
    (
        "better-than-no-probe",
        "Over the three worlds EnvProbe-Simple is more accurate than not probing at all.",
        EVERYWHERE, "simple", "no-probe",
    ),
    (
        "weights-help-the-oracle",
        "Over the three worlds the task-weighted oracle is more accurate than the unweighted one.",
        EVERYWHERE, "oracle-tw", "oracle",
    ),
)  # fmt: skip


def atlas_claims() -> tuple[Claim, ...]:
    """Return the claims the atlas tests: those of its regime whose columns it has, then ours.

    Left out are claims about the settings of the environments (a family of one), which do not depend on
    the agent, about other budgets, and about the agent's log, but for the canonical confident-wrong rate.
    """

    def testable(claim: Claim) -> bool:
        own_budget = not any("@" in arm for arm in claim.arms + claim.references)
        known = set(COLUMNS).issuperset(columns_read(claim.measures))
        return claim.regime == REGIME.name and not claim.setting and known and own_budget

    ours = replace(
        find_claim("main-procedural"), source=OURS, section="atlas", value=None, low=None, high=None, n=None,
        primary=False, inputs=(),
    )  # fmt: skip
    return (
        *filter(testable, load_claims()),
        *(
            replace(ours, id=name, statement=statement, worlds=worlds, arms=(arm,), references=(reference,))
            for name, statement, worlds, arm, reference in ANSWERS
        ),
    )


# the runs

COPIES = {"placebo": "simple", "yoked": "simple", "oracle-tw": "oracle"}
"""Where no answer reaches the agent, these are copies of others bit for bit, and are not run again."""


def run_profiles(profiles: Sequence[AgentProfile], protocol: Protocol, seeds: Seeds) -> dict[str, Floats]:
    """Run every policy in every world; return `COLUMNS`, [world, policy, seed, profile] each.

    Confidence is counted for the policies of the paper's main tables; no claim asks for that of others (0).
    """
    same = COPIES if protocol.answer == "withheld" else {}
    own = [name for name in OF_THE_PAPER if name not in same]
    found = [
        measure_with_confidence(
            Cell(world, OF_THE_PAPER[name], REGIME, protocol, profile), seeds, PAPER_POLICIES
        )
        for world in WORLDS
        for name in own
        for profile in profiles
    ]
    shape = (len(WORLDS), len(own), len(profiles), len(seeds))
    rows = [own.index(same.get(name, name)) for name in OF_THE_PAPER]
    columns = {
        name: np.reshape([part[name] for part in found], shape)[:, rows].swapaxes(2, 3).astype(np.float64)
        for name in COLUMNS
        if name != "budget"
    }
    return columns | {"budget": np.full_like(columns["probes"], REGIME.budget)}


@dataclass(frozen=True)
class Atlas:
    """The verdicts on every claim, for every agent."""

    profiles: tuple[AgentProfile, ...]
    claims: tuple[Claim, ...]
    protocols: tuple[str, ...]  # names, in the order asked
    verdict: npt.NDArray[np.int8]  # [protocol, profile, claim], positions in `OUTCOMES`
    support: Floats  # [protocol, profile, claim], as `judge_all` gives it
    targets: Floats | None  # [profile, target], as in the calibration; None without its protocol


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
        jobs: processes; changes nothing but speed.
    """
    agents, claims, protocols = sample_profiles(profiles), atlas_claims(), find_protocols(protocol)
    shape = (len(protocols), profiles, len(claims))
    verdict, support = np.zeros(shape, np.int8), np.full(shape, np.nan)
    targets = np.full((profiles, len(TARGETS)), np.nan) if PROTOCOL in protocols else None
    parts = [slice(first, first + AT_ONCE) for first in range(0, profiles, AT_ONCE)]
    tasks = [(row, one, part, agents[part]) for row, one in enumerate(protocols) for part in parts]
    work = partial(_run_and_judge, claims=claims, seeds_each=seeds_each, resamples=resamples)
    for row, part, own, reached, met in spread(work, tasks, jobs):
        verdict[row, part], support[row, part] = own, reached
        if met is not None and targets is not None:
            targets[part] = met
    return Atlas(agents, claims, tuple(one.name for one in protocols), verdict, support, targets)


def _run_and_judge(
    task: tuple[int, Protocol, slice, tuple[AgentProfile, ...]],
    claims: Sequence[Claim],
    seeds_each: int,
    resamples: int,
) -> tuple[int, slice, npt.NDArray[np.int8], Floats, Floats | None]:
    """Run some agents under one protocol; return their place in the atlas, verdicts, support and targets."""
    row, protocol, part, agents = task
    seeds = Cell("tooldag", OF_THE_PAPER["no-probe"], REGIME, protocol).default_seeds()[:seeds_each]
    columns, targets = run_profiles(agents, protocol, seeds), None
    if protocol == PROTOCOL:
        chosen = [list(OF_THE_PAPER).index(name) for name in TARGET_POLICIES]
        level, sure, wrong = (
            columns[name][:, chosen] for name in ("accuracy", "confident", "confident_wrong")
        )
        targets = pool(level.mean(axis=2), sure.sum(axis=2), wrong.sum(axis=2))
    return row, part, *judge_all(claims, columns, resamples), targets


# the verdicts

OUTCOMES = (HOLDS, INCONCLUSIVE, REVERSES, NOT_TESTED)
YES, OPEN, NO, UNTESTED = range(4)
ALIKE = {OTHER_SIZE: HOLDS, NO_EFFECT: INCONCLUSIVE}
"""The atlas asks whether a claim survives, not whether its size does."""


def judge_all(
    claims: Sequence[Claim], columns: dict[str, Floats], resamples: int
) -> tuple[npt.NDArray[np.int8], Floats]:
    """Test every claim on every agent of `run_profiles`; return verdicts and support, [profile, claim].

    The support says how far the estimate lies on the claimed side or within the margin, in the claim's unit;
    of several comparisons the least; NaN where a claim is not tested.
    """
    units, agents = columns["accuracy"].shape[2:]
    rows = {
        (REGIME.name, policy, world): np.arange(place * units, (place + 1) * units)
        for place, (world, policy) in enumerate(product(WORLDS, OF_THE_PAPER))
    }
    tables = {name: table.reshape(-1, agents) for name, table in columns.items()}
    episodes = Episodes(tables.__getitem__, rows, np.tile(np.arange(units), len(rows)))
    verdict, support = np.zeros((agents, len(claims)), np.int8), np.zeros((agents, len(claims)))
    for place, claim in enumerate(claims):
        codes = np.full((len(claim.comparisons), agents), UNTESTED)
        reach = np.full(codes.shape, np.nan)
        for own, one in enumerate(claim.comparisons):
            with suppress(NotTestable):
                decided = decide(claim, one, episodes, resamples)
                words = [ALIKE.get(word, word) for word in decided.verdict.tolist()]
                codes[own, decided.enough] = list(map(OUTCOMES.index, words))
                away = decided.found.mean - claim.level
                sides = {"greater": away, "less": -away, "either": np.abs(decided.found.mean)}
                within = (claim.margin or 0.0) - np.abs(away)  # of `none` and `equal`
                reach[own, decided.enough] = sides.get(one.direction, within)
        rules = [(codes == UNTESTED).any(axis=0), (codes == NO).any(axis=0), (codes == YES).all(axis=0)]
        verdict[:, place] = np.select(rules, [UNTESTED, NO, YES], OPEN)
        support[:, place] = reach.min(axis=0)
    return verdict, support
