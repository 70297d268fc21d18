"""The engine under `released` against the paper's public code, driven by the same agents (data/public)."""

from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from envprobe_core.agents.profiles import PROFILES, SCRIBE, TYPICAL
from envprobe_core.conditions import Condition, find_policy, find_regime
from envprobe_core.engine.batch import simulate, simulate_logged
from envprobe_core.measures import REPORTING, confident_counts
from envprobe_core.protocols import PROTOCOLS, RELEASED, Protocol
from envprobe_core.worlds import WORLDS

EPISODES = Path(__file__).parents[1] / "data" / "public" / "episodes.parquet"
AGENTS = {
    "scribe": PROFILES["scribe"],
    "copy-gold": PROFILES["copy-gold"],
    "scripted": replace(SCRIBE, name="sure", lost=0.0, loop=0.0),
    "scribe-hesitant": PROFILES["scribe-hesitant"],
}
DRIVEN = [
    *product(("S1", "S2", "S3"), ("scribe", "copy-gold", "scripted")),
    ("S2", "scribe-hesitant"),
]  # regimes and agents
RUN = ("no-probe", "random", "periodic", "simple", "oracle")
FIGURES = ("no-probe", "periodic", "simple")
SEEDS = np.arange(42, 1042)  # those of the public episodes
MORE_SEEDS = np.arange(42, 3042)  # so that what is left is chance on the other side
ERRORS = 4.5  # standard errors of a difference of two means
FARTHEST = {"accuracy": 0.012, "success": 0.045, "collapse_onset": 0.3}  # for the scribes
COLLAPSED = 100  # episodes of each side, for an onset to be compared


@cache
def public() -> dict[tuple[str, ...], pd.DataFrame]:
    """The episodes of the public code, by world, regime, agent and policy."""
    return dict(list(pd.read_parquet(EPISODES).groupby(["world", "regime", "agent", "policy"])))


def condition(world: str, regime: str, agent: str, policy: str) -> Condition:
    return Condition(world, find_policy(policy), find_regime(regime), RELEASED, AGENTS[agent])


@pytest.mark.parametrize(("regime", "agent"), DRIVEN)
@pytest.mark.parametrize("world", WORLDS)
def test_means_are_those_of_the_public_code(world: str, regime: str, agent: str) -> None:
    apart = []
    for policy in RUN:
        theirs = public()[world, regime, agent, policy]
        assert theirs["seed"].tolist() == SEEDS.tolist()
        ours = simulate(condition(world, regime, agent, policy), MORE_SEEDS)
        for name, farthest in FARTHEST.items():
            sides = [np.asarray(side[name], dtype=float) for side in (theirs, ours)]
            one, other = (side[np.isfinite(side)] for side in sides)
            if min(len(one), len(other)) < COLLAPSED:
                continue
            gap, error = (
                abs(one.mean() - other.mean()),
                np.hypot(*(x.std() / len(x) ** 0.5 for x in (one, other))),
            )
            if gap > ERRORS * error + 1e-9 or (agent.startswith("scribe") and gap > farthest):
                apart.append((policy, name, one.mean(), other.mean(), error))
    assert not apart


@cache
def reports(world: str, agent: str) -> np.ndarray:
    """Count wrong and all confident reports of the policies that the public code asks: theirs, ours."""
    counts = []
    for policy in REPORTING:
        own = condition(world, "S2", agent, policy)
        for found in (
            public()[world, "S2", agent, policy],
            confident_counts(simulate_logged(own, SEEDS), own),
        ):
            counts.append([found[name].sum() for name in ("confident_wrong", "confident")])
    return np.reshape(counts, (len(REPORTING), 2, 2)).sum(axis=0)


@pytest.mark.parametrize("agent", ["scribe", "scribe-hesitant"])
@pytest.mark.parametrize("policy", ["periodic", "simple"])
@pytest.mark.parametrize("world", WORLDS)
def test_useful_probes_are_those_of_the_public_code(world: str, policy: str, agent: str) -> None:
    """But for Random-Probe, which there draws a kind of question and here a field."""
    theirs, ours = (
        public()[world, "S2", agent, policy],
        simulate(condition(world, "S2", agent, policy), SEEDS),
    )
    shares = [side["useful"].sum() / side["probes"].sum() for side in (theirs, ours)]
    assert shares[1] == pytest.approx(shares[0], abs=0.03)


@pytest.mark.parametrize("agent", ["scribe", "copy-gold", "scribe-hesitant"])
def test_confident_wrong_rates_are_those_of_the_public_code(agent: str) -> None:
    counts = np.array([reports(world, agent) for world in WORLDS])
    rates = np.concatenate([counts, counts.sum(axis=0, keepdims=True)])  # by world, and pooled
    theirs, ours = (rates[..., 0] / rates[..., 1]).T
    assert ours == pytest.approx(theirs, abs=0.02)


def test_what_the_released_protocol_shows() -> None:
    """Figures that the driven public code gives for the scribe at S2."""
    made = {
        place: simulate(condition(place[0], "S2", "scribe", place[1]), SEEDS)
        for place in product(WORLDS, FIGURES)
    }
    accuracy = {place: columns["accuracy"].mean() for place, columns in made.items()}
    wrong, confident = sum(reports(world, "scribe")[1] for world in WORLDS)
    tools, *spatial = (accuracy[world, "periodic"] for world in WORLDS)
    ours = (
        tools,
        accuracy["tooldag", "simple"],
        np.mean(spatial),
        np.mean([tools, *spatial]),
        wrong / confident,
    )
    assert ours == pytest.approx((0.312, 0.413, 0.305, 0.307, 0.895), abs=0.02)
    onsets = [np.nanmean(made["tooldag", policy]["collapse_onset"]) for policy in FIGURES]
    assert onsets == pytest.approx([1.66, 1.66, 8.54], abs=0.5)
    assert made["tooldag", "simple"]["useful"].sum() == 0 < made["tooldag", "simple"]["probes"].sum()


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
@pytest.mark.parametrize(("regime", "budget"), [("S1", 5), ("S2", 7), ("S3", 10)])
def test_periodic_spends_its_whole_budget(protocol: Protocol, regime: str, budget: int) -> None:
    """In every episode that lasts: that of an agent that stops working after its first action does."""
    for world, profile in product(WORLDS, (replace(TYPICAL, quit=1.0), SCRIBE)):
        own = Condition(world, find_policy("periodic"), find_regime(regime), protocol, profile)
        found = simulate(own, SEEDS)
        lasts = found["steps"] == own.regime.horizon
        assert (found["probes"][lasts] == budget).all()
        assert (found["probes"] <= budget).all()
        assert profile is SCRIBE or lasts.mean() > 0.8
