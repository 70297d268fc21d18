"""An agent that keeps notes by Bayes' rule (ours): a chance for every value of every field.

The simulated agent holds what it wrote down last. This one holds P_t(v), the chance that a field has the
value v: a step of the world carries it on, and what is observed, answered or done conditions it. It believes
the likeliest value, states its chance as confidence, and plans as the simulated agent does. It may be told
the true rates, so that it shows the most that Bayes' rule can add to notes. Gold it never sees.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from envprobe_core import experiment
from envprobe_core.agents.profiles import PROFILES, AgentProfile
from envprobe_core.agents.simulated import UNKNOWN_STALENESS
from envprobe_core.compiled.records import CERTAIN, NONE, STALENESS_LIMIT, UNKNOWN
from envprobe_core.conditions import (
    Condition,
    Names,
    Seeds,
    find_profile,
    find_protocols,
    find_regime,
    names,
    read_seeds,
)
from envprobe_core.engine.batch import Columns, EpisodeBatch, schedules_of, simulate
from envprobe_core.errors import InputError
from envprobe_core.experiment import OWN, run_conditions
from envprobe_core.policies import find_policy
from envprobe_core.protocols import Protocol, turned
from envprobe_core.worlds import WORLDS
from envprobe_core.worlds.base import DROP_PROBABILITY, Floats, Ints, Mask

NO_TABLE, TABLE, NOTES = "no table", "table", "notes"
FACTORS = {"bayes": 1.0, "bayes, a third": 1 / 3, "bayes, threefold": 3.0}
"""The agents by Bayes' rule: how many times the true rates they take the rates to be."""
TIE = 1e-9  # chances that are as near as this are equal
NEEDED = {
    "memory": "kept",
    "clock": "runs",
    "structure": "graph",
    "sight": "local",
    "rates": "mean",
    "delay": "0",
    "failing": "0",
}
"""What a protocol must say so that the filter's motion and sight are the world's."""


def notetaker(profile: AgentProfile, name: str) -> AgentProfile:
    """An agent that strays and stops as a profile does, and writes down all that it sees, without an error.

    >>> notetaker(PROFILES["typical"], "notes").slip, notetaker(PROFILES["typical"], "notes").omit
    (0.1, 0.0)
    """
    assumption = f"Strays and stops as {profile.name} does; writes down all that it sees, without an error."
    return replace(
        PROFILES["perfect"], name=name, slip=profile.slip, quit=profile.quit, assumption=assumption
    )


class BayesNotes:
    """The chances that the agents of a block hold, and the tables that follow from them.

    Attributes:
        chance: [row, field, value]; it sums to 1 where the instance has the field.
        since: [row, field], steps since a value was seen, told or proved.
    """

    def __init__(self, episodes: EpisodeBatch, factor: float = 1.0) -> None:
        """Begin with what the agents know at first; what they do not is anything, but for what is held.

        Args:
            episodes: a block that has just begun.
            factor: how many times the true rates the agents take the rates to be.

        Raises:
            InputError: for a protocol under which the world moves or shows itself in another way.
        """
        for switch in unlike(protocol := episodes.condition.protocol):
            own = getattr(protocol, switch)
            took = f"notes by Bayes' rule take {switch}={NEEDED[switch]}, not {own}"
            raise InputError(f"protocol {protocol.name!r}: {took}")
        self.world, self.block, self.name = episodes.condition.built, episodes.block, episodes.condition.world
        rules, rows, n = self.world.rules, len(episodes.block), self.world.fields
        self._overlooks = DROP_PROBABILITY if rules.drop > 0 else 0.0
        self._values = np.arange(self.world.domain.max())
        self._rates = np.minimum(factor * self.world.rates, 1.0)
        self._exists = np.arange(n) < self.block.fields[:, None]
        allowed = np.broadcast_to(self._values < self.world.domain[:, None], (rows, n, len(self._values)))
        self.chance: Floats = np.where(allowed, 1.0, 0.0)
        self.since: Ints = np.full((rows, n), UNKNOWN_STALENESS)
        tools = self.name == "tooldag"
        self._things = slice(0, 0)  # the fields of what drifts, whose last value is *held*
        self._locks = slice(0, 0)
        self._places = 0
        if not tools:
            rooms = self.name == "objectstate"
            self._places = rules.rooms if rooms else rules.nodes
            first, count = (0, rules.objects) if rooms else (1, rules.keys)
            self._things = slice(first, first + count)
            ways = rules.doors if rooms else rules.edges
            self._locks = slice(first + count, first + count + ways)
            key_of = (self.block.task.key_of_door if rooms else self.block.task.key_of_edge)[:, :ways]
            self._loose: Mask = key_of != NONE
            self.chance[:, self._things, self._places] = 0.0  # what is held is seen
            self._set(self._locks, np.where(self._loose, UNKNOWN, 0))
        self.chance /= self.chance.sum(axis=2, keepdims=True)
        self._set(slice(0, n), self.block.table.value[:, :n])
        self._believed: Ints = np.full((rows, n), UNKNOWN)
        self._started = False

    def _set(self, fields: slice, value: Ints) -> None:
        """Be certain of values, [row, field]; those that are UNKNOWN say nothing."""
        known = value != UNKNOWN
        at = (value[..., None] == self._values).astype(float)
        own, since = self.chance[:, fields], self.since[:, fields]
        own[known], since[known] = at[known], 0

    def take_in(self) -> None:
        """Take in an answer and the own action, let the world move, and take in what is seen."""
        if self._started:
            block = self.block
            told = np.flatnonzero(block.told != NONE)
            self._certain(told, block.told[told], block.answer[told])
            self._act()
            self._move()
        self._started = True
        seen = self.block.observation.value[:, : self.world.fields]
        self._miss(seen)
        self._set(slice(0, self.world.fields), seen)
        if self.name == "tooldag":
            self._derive()

    def _certain(self, rows: Ints, fields: Ints, values: Ints) -> None:
        self.chance[rows, fields] = values[:, None] == self._values
        self.since[rows, fields] = 0

    def _act(self) -> None:
        """What an action's outcome says of the world before it moved."""
        seen, rules = self.block.observation, self.world.rules
        rows = np.flatnonzero((seen.valid == 1) & (seen.action >= 0))
        action = seen.action[rows]
        if self.name == "tooldag":  # a valid call proves its tool complete and all that it needs loaded
            self._certain(rows, 2 * rules.tools + action, np.ones_like(action))
            self._certain(rows, action, np.ones_like(action))
            for tool in range(rules.tools):
                on = rows[(self.block.task.needs[rows, action] >> tool) & 1 == 1]
                self._certain(on, np.full_like(on, tool), np.ones_like(on))
            return
        if self.name == "objectstate":
            opened = (action >= rules.unlock) & (action < rules.place)
            self._certain(
                rows[opened], rules.objects + action[opened] - rules.unlock, np.zeros_like(action[opened])
            )
            down = action >= rules.place
            self._certain(rows[down], action[down] - rules.place, seen.came_from[rows][down])
        first = rules.pick if self.name == "objectstate" else rules.nodes
        past = rules.unlock if self.name == "objectstate" else self.world.actions
        tried = np.flatnonzero((seen.action >= first) & (seen.action < past))
        thing = self._things.start + seen.action[tried] - first
        got = seen.valid[tried] == 1
        self._certain(tried[got], thing[got], np.full_like(thing[got], self._places))
        self._rule_out(tried[~got], thing[~got], seen.came_from[tried][~got], 0.0)

    def _rule_out(self, rows: Ints, fields: Ints, values: Ints, likelihood: float) -> None:
        """Bayes' rule for a value under which what happened has this likelihood, and 1 under all others."""
        before = self.chance[rows, fields]
        after = np.where(values[:, None] == self._values, likelihood * before, before)
        total = after.sum(axis=1, keepdims=True)
        self.chance[rows, fields] = np.divide(after, total, out=before, where=total > 0)

    def _move(self) -> None:
        """One step of the paper's Section 6.1, with the true rates."""
        self.since = np.minimum(self.since + 1, STALENESS_LIMIT)
        rate = self._rates
        if self.name == "tooldag":
            lost = self.chance[:, :, 1] * rate
            self.chance[:, :, 1] -= lost
            self.chance[:, :, 0] += lost
            return
        things, locks = self.chance[:, self._things, : self._places], self.chance[:, self._locks]
        h = rate[self._things][:, None]
        things[:] = things * (1 - h) + h * things.sum(axis=2, keepdims=True) / self._places
        flips = (rate[self._locks] * self._loose)[:, :, None]
        locks[:, :, :2] = locks[:, :, :2] * (1 - flips) + locks[:, :, 1::-1] * flips

    def _miss(self, seen: Ints) -> None:
        """A thing that would be in sight here and is not is elsewhere, unless it is overlooked."""
        for field in range(*self._things.indices(self.world.fields)):
            rows = np.flatnonzero(seen[:, field] == UNKNOWN)
            self._rule_out(
                rows, np.full_like(rows, field), self.block.observation.place[rows], self._overlooks
            )

    def _derive(self) -> None:
        """A dependency is satisfied if all that it needs is loaded, each by a chance of its own."""
        tools = self.world.rules.tools
        for tool in range(tools):
            needs = (self.block.task.needs[:, tool, None] >> np.arange(tools)) & 1 == 1
            ready = np.where(needs, self.chance[:, :tools, 1], 1.0).prod(axis=1)
            self.chance[:, tools + tool, 1], self.chance[:, tools + tool, 0] = ready, 1.0 - ready
            self.since[:, tools + tool] = np.where(needs, self.since[:, :tools], 0).max(axis=1)

    def write(self) -> None:
        """Write the likeliest values into the agents' tables, with their chances as confidence.

        Of values that are equally likely the one that was believed before stays; if it is none of them, the
        field is unknown.
        """
        n = self.world.fields
        highest = self.chance.max(axis=2)
        likeliest = self.chance >= highest[..., None] - TIE
        stays = (likeliest & (self._believed[..., None] == self._values)).any(axis=2)
        alone = likeliest.sum(axis=2) == 1
        found = np.where(alone, self.chance.argmax(axis=2), UNKNOWN)
        self._believed = np.where(self._exists, np.where(stays, self._believed, found), UNKNOWN)
        known = self._believed != UNKNOWN
        table = self.block["table"]
        table["value"][:, :n] = self._believed
        table["confidence"][:, :n] = np.where(known, np.floor(CERTAIN * highest + 0.5), 0)
        table["staleness"][:, :n] = np.where(known, self.since, UNKNOWN_STALENESS)


def unlike(protocol: Protocol) -> list[str]:
    """The switches by which a protocol's world moves or shows itself otherwise than the filter has it.

    >>> from envprobe_core.protocols import PAPER
    >>> unlike(PAPER), unlike(turned(PAPER, clock="stands"))
    ([], ['clock'])
    """
    return [switch for switch, value in NEEDED.items() if getattr(protocol, switch) != value]


def simulate_bayes(condition: Condition, seeds: Seeds, factor: float = 1.0) -> Columns:
    """The measures of a condition's episodes with agents that keep notes by Bayes' rule, [row].

    Args:
        condition: its profile says how the agents stray and stop.
        seeds: [row].
        factor: how many times the true rates the agents take the rates to be.

    >>> from envprobe_core.conditions import make_condition
    >>> simulate_bayes(make_condition("tooldag", "simple"), np.arange(4))["probes"].tolist()
    [7, 7, 7, 7]
    """
    episodes = EpisodeBatch(condition, seeds, schedules=schedules_of(condition, seeds), scores_all=False)
    notes = BayesNotes(episodes, factor)
    while True:
        notes.take_in()
        notes.write()
        episodes.propose()
        notes.write()  # the agent has written down what it saw last in the meantime
        if not episodes.record():
            return episodes.recording().measures
        episodes.advance(episodes.decide())


def _simulated(factors: Mapping[str, float], condition: Condition, seeds: Seeds) -> Columns:
    factor = factors.get(condition.profile.name)
    return simulate(condition, seeds) if factor is None else simulate_bayes(condition, seeds, factor)


def run_notes(
    policies: Names,
    regimes: Names = "S2",
    protocols: Names = "paper observed",
    profile: str = "typical",
    seeds: str = "default",
    budget: int = OWN,
    threshold: float = OWN,
) -> pd.DataFrame:
    """Episodes of six agents on the same seeds, which a column `agent` names, in the frame of `run`.

    The agents: `no table`, the profile's under `memory=none`; `table`, the profile's; `notes`, which strays
    and stops as that one does and writes down all that it sees, without an error; `bayes`, which keeps these
    notes by Bayes' rule; and two of the last kind that take the rates for a third of the true ones, or for
    three times those.

    >>> frame = run_notes("no-probe", protocols="paper", seeds="0:40")
    >>> tools = frame[frame["world"] == "tooldag"]
    >>> tools.groupby("agent", sort=False)["accuracy"].mean().round(2)[["notes", "bayes"]].to_dict()
    {'notes': 0.69, 'bayes': 0.96}
    """
    agent = find_profile(profile)
    takers = {name: notetaker(agent, name) for name in (NOTES, *FACTORS)}
    conditions, called = [], []
    for protocol in find_protocols(protocols):
        agents = {NO_TABLE: (turned(protocol, memory="none"), agent), TABLE: (protocol, agent)}
        agents |= {name: (protocol, own) for name, own in takers.items()}
        for name, (rules, own) in agents.items():
            for regime, world, policy in product(names(regimes), WORLDS, names(policies)):
                arm, most = find_policy(policy), None if budget == OWN else budget
                gate = threshold if arm.has_threshold and threshold != OWN else None
                conditions.append(Condition(world, arm, find_regime(regime), rules, own, most, gate))
                called.append((name, protocol.name))
    table = run_conditions(conditions, read_seeds(seeds), work=partial(_simulated, FACTORS))
    agents_of, rules_of = np.array(called)[table["condition"]].T
    return experiment.episode_frame(conditions, table).assign(agent=agents_of, protocol=rules_of)
