"""The robustness atlas: which claims survive when the agent behaves differently (ours).

A box of behaviours says which agents the atlas speaks of: those that keep a table. Each behaviour in
`AgentProfile` is one axis, and every named profile that keeps a table lies inside. A scrambled Sobol sequence
fills the box evenly; every agent meets every policy in every world under every protocol on the same seeds,
and each claim is tested once for each agent.

Rates are spread on a square scale: half of the agents lie in the lowest quarter of each range, since an agent
that errs all the time can do nothing that a claim could be tested on, and should be met, but rarely. The
scribe, which keeps nothing, is an agent of another form, and what only it does is no axis; nor is a report
settled once an episode, which changes nothing while all is called critical.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from envprobe_book.analyses.calibration import PROTOCOL, REGIME, TARGETS, pool, run_agents
from envprobe_book.claims import Claim, find_claim, load_claims
from envprobe_book.claims.judge import (
    CANNOT_DIFFER,
    HOLDS,
    INCONCLUSIVE,
    NEGLIGIBLE,
    NO_EFFECT,
    NOT_TESTED,
    REVERSES,
    assess_claim,
    combine,
)
from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.comparing import NotTestable, PairedEpisodes, columns_read
from envprobe_core.conditions import Condition, Seeds, find_protocols
from envprobe_core.parallel import hands, map_unordered
from envprobe_core.policies import OF_THE_PAPER
from envprobe_core.protocols import Protocol, in_words
from envprobe_core.worlds import WORLDS
from envprobe_core.worlds.base import Floats

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
        """The behaviour for a coordinate in [0, 1)."""
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
WIDE_BOX: tuple[Axis, ...] = (
    *BOX,
    Axis("importance", 0.0, 1.0, "from errors that fall evenly to errors in proportion to weight"),
    Axis("contrary", 0.0, 1.0, "from confidence as held to confidence turned round"),
    Axis("own_noise", 0, 1, "luck of its own in each arm blurs every pair, so only a quarter", "habit", 0.25),
)
"""The box with the habits that came later; an agent of it is that of `BOX` of the same number, with them."""


def coordinates(count: int, axes: int = len(BOX)) -> Floats:
    """The first points of a scrambled Sobol sequence, [profile, axis] in [0, 1).

    The scramble's seed is fixed, so a larger sample only adds points to a smaller one, and further axes only
    add columns; a power of two fills the box most evenly.
    """
    from scipy.stats import qmc

    sampler = qmc.Sobol(axes, scramble=True, bits=30, rng=np.random.default_rng(20_250_101))
    points = sampler.random_base2(max(count - 1, 0).bit_length())[:count]
    if axes > len(BOX):  # each axis is scrambled by itself: together they are a scrambled sequence still
        points[:, : len(BOX)] = coordinates(count)
    return points


def sample_profiles(count: int, box: Sequence[Axis] = BOX) -> tuple[AgentProfile, ...]:
    """The atlas' agents: `count` points of the box, named by their number."""
    behaviours = (
        {axis.name: axis.value(unit) for axis, unit in zip(box, point, strict=True)}
        for point in coordinates(count, len(box)).tolist()
    )
    return tuple(
        AgentProfile(f"atlas-{number:04}", assumption="A point of the atlas.", **own)
        for number, own in enumerate(behaviours)
    )


def values_of(profile: AgentProfile, box: Sequence[Axis] = BOX) -> Floats:
    """A profile's behaviours as numbers, [axis] in the order of the box."""
    given = {**vars(profile), "writes": profile.writes == "true"}
    return np.array([float(given[axis.name]) for axis in box])


# the questions

COLUMNS = (
    "accuracy", "success", "probes", "useful", "budget", "collapse_onset", "action_onset", "confident",
    "confident_wrong",
)  # fmt: skip
SPATIAL, EVERYWHERE = ("objectstate", "graphnav"), ("tooldag", "objectstate", "graphnav")
ANSWERS = (  # that the paper leaves open and its extra policies answer: id, statement, worlds, arm, reference
    (
        "information-procedural",
        "On tools EnvProbe-Simple is more accurate than its yoked placebo, which spends "
        "the same steps and is told nothing.",
        ("tooldag",), "simple", "yoked",
    ),
    (
        "information-spatial",
        "In rooms and graphs EnvProbe-Simple is more accurate than its yoked placebo.",
        SPATIAL, "simple", "yoked",
    ),
    (
        "gain-without-answers",
        "On tools the placebo, which is told nothing, is more accurate than Periodic.",
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
    """The claims the atlas tests: those of its regime whose columns it has, then ours.

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
"""Where no answer reaches agents without luck of their own in each arm, these are copies of others bit for
bit, and are not run again."""


def run_profiles(profiles: Sequence[AgentProfile], protocol: Protocol, seeds: Seeds) -> dict[str, Floats]:
    """Run every policy in every world; return `COLUMNS`, [world, policy, profile, seed] each.

    Confidence is counted for the policies of the paper's main tables; no claim asks for that of others (0).
    """
    own_luck = any(profile.own_noise for profile in profiles)
    same = COPIES if protocol.answer == "withheld" and not own_luck else {}
    own = [name for name in OF_THE_PAPER if name not in same]
    columns = run_agents(profiles, own, protocol, seeds, [name for name in COLUMNS if name != "budget"])
    columns["budget"] = np.full_like(columns["probes"], REGIME.budget)
    rows = [own.index(same.get(name, name)) for name in OF_THE_PAPER]
    return {name: table[:, rows] for name, table in columns.items()}


@dataclass(frozen=True)
class Atlas:
    """The verdicts on every claim, for every agent."""

    profiles: tuple[AgentProfile, ...]
    claims: tuple[Claim, ...]
    protocols: tuple[str, ...]  # names, in the order asked
    verdict: npt.NDArray[np.object_]  # [protocol, profile, claim], one of `OUTCOMES` or not tested
    support: Floats  # [protocol, profile, claim], as `judge_all` gives it
    targets: Floats | None  # [profile, target], as in the calibration; None without its protocol


def load_atlas(
    profiles: int = 128,
    seeds_each: int = 50,
    protocol: str = "paper observed released",
    resamples: int = 1_000,
    jobs: int = 2,
    box: Sequence[Axis] = BOX,
    claims: Sequence[Claim] | None = None,
) -> Atlas:
    """Draw the sample, run it and test every claim; the same arguments give the same verdicts.

    Args:
        seeds_each: episodes of each agent, world and policy: the first of the protocol's default seeds.
        protocol: names of protocols, as `conditions.names` splits them.
        jobs: processes; changes nothing but speed.
        box: the behaviours that the agents are drawn from.
        claims: by default all of the atlas.
    """
    agents, protocols = sample_profiles(profiles, box), find_protocols(protocol)
    claims = atlas_claims() if claims is None else tuple(claims)
    shape = (len(protocols), profiles, len(claims))
    verdict, support = np.full(shape, NOT_TESTED, object), np.full(shape, np.nan)
    targets = np.full((len(protocols), profiles, len(TARGETS)), np.nan)
    parts = [slice(first, first + AT_ONCE) for first in range(0, profiles, AT_ONCE)]
    tasks = [((row, part), one, agents[part]) for row, one in enumerate(protocols) for part in parts]
    work = partial(_run_and_judge, claims=claims, seeds_each=seeds_each, resamples=resamples)
    with hands(len(tasks), jobs) as executor:
        for place, *found in map_unordered(work, tasks, executor):
            verdict[place], support[place], targets[place] = found
    fitted = targets[protocols.index(PROTOCOL)] if PROTOCOL in protocols else None
    return Atlas(agents, claims, tuple(one.name for one in protocols), verdict, support, fitted)


def _run_and_judge(
    task: tuple[tuple[int, slice], Protocol, tuple[AgentProfile, ...]],
    claims: Sequence[Claim],
    seeds_each: int,
    resamples: int,
) -> tuple[tuple[int, slice], npt.NDArray[np.object_], Floats, Floats]:
    """Run some agents under one protocol; return their place in the atlas, verdicts, support and targets."""
    place, protocol, agents = task
    seeds = Condition("tooldag", OF_THE_PAPER["no-probe"], REGIME, protocol).default_seeds()[:seeds_each]
    columns = run_profiles(agents, protocol, seeds)
    return place, *judge_all(claims, columns, resamples), pool(columns, list(OF_THE_PAPER))


# the verdicts

OUTCOMES = (HOLDS, INCONCLUSIVE, REVERSES)
"""The atlas asks whether a claim survives, not whether its size does."""


def judge_all(
    claims: Sequence[Claim], columns: dict[str, Floats], resamples: int
) -> tuple[npt.NDArray[np.object_], Floats]:
    """Test every claim on every agent of `run_profiles`; return verdicts and support, [profile, claim].

    The support says how far the estimate lies on the claimed side or within the margin, in the claim's unit;
    of several comparisons the least; NaN where a claim is not tested.
    """
    agents, units = columns["accuracy"].shape[2:]
    rows = {
        (REGIME.name, policy, world): np.arange(place * units, (place + 1) * units)
        for place, (world, policy) in enumerate(product(WORLDS, OF_THE_PAPER))
    }
    tables = {name: table.swapaxes(2, 3).reshape(-1, agents) for name, table in columns.items()}
    episodes = PairedEpisodes(tables.__getitem__, rows, np.tile(np.arange(units), len(rows)))
    verdict, support = [], []
    for claim in claims:
        words = np.full((len(claim.comparisons), agents), NOT_TESTED, object)
        reach = np.full(words.shape, np.nan)
        for own, one in enumerate(claim.comparisons):
            with suppress(NotTestable):
                decided = assess_claim(claim, one, episodes, resamples)
                words[own, decided.enough] = decided.verdict
                away = decided.found.mean - claim.level
                sides = {"greater": away, "less": -away, "either": np.abs(decided.found.mean)}
                within = (claim.margin or 0.0) - np.abs(away)  # of `none` and `equal`
                reach[own, decided.enough] = sides.get(one.direction, within)
        found = combine(words)
        verdict.append(np.where(np.isin(found, (NEGLIGIBLE, NO_EFFECT, CANNOT_DIFFER)), INCONCLUSIVE, found))
        support.append(reach.min(axis=0))
    return np.stack(verdict, axis=1), np.stack(support, axis=1)


def shares_of(
    verdict: npt.NDArray[np.object_], claims: Sequence[Claim], protocols: Sequence[str]
) -> pd.DataFrame:
    """The percent of agents under which each claim gets each outcome, a row a claim and protocol.

    Args:
        verdict: [protocol, agent, claim].

    Returns:
        `section` (`ours` for claims of ours), `claim statement protocol`, `level` (whether it claims that a
        number comes out as printed), `holds inconclusive reverses`, NaN where most agents cannot be tested.
    """
    tested = (verdict != NOT_TESTED).sum(axis=1)
    counts = np.stack([(verdict == outcome).sum(axis=1) for outcome in OUTCOMES], axis=2)
    enough = (tested > 0.5 * verdict.shape[1])[..., None]
    parts = np.where(enough, 100 * counts / np.maximum(tested, 1)[..., None], np.nan)
    rows = [
        {
            "section": OURS if claim.source == OURS else claim.section,
            "claim": claim.id,
            "statement": claim.statement,
            "level": claim.directions == ("equal",),
            "protocol": name,
        }
        | dict(zip(("holds", "inconclusive", "reverses"), parts[row, at], strict=True))
        for at, claim in enumerate(claims)
        for row, name in enumerate(protocols)
    ]
    return pd.DataFrame(rows)


def beside(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The shares of several groups of agents, one after the other, as a table shows them.

    Args:
        parts: of each group, by its title, as `shares_of` gives them.

    Returns:
        Their rows, with `column` (protocol and group in words) and `cell` (the three shares, or a dash).
    """
    both = pd.concat([part.assign(agents=title) for title, part in parts.items()])
    shares = both[["holds", "inconclusive", "reverses"]].itertuples(index=False)
    return both.assign(
        column=both["protocol"].map(in_words) + ", " + both["agents"],
        cell=["–" if np.isnan(row[0]) else " / ".join(f"{part:.0f}" for part in row) for row in shares],
    )
