"""The best possible on a world that can be enumerated: ToolDAGWorld with three tools, a perfect agent (ours).

It is the engine's own world, only smaller. Chance enters through mutation alone: after each step every
loaded tool but the target may unload. So an episode is determined by the policy and by a *script*, what
unloads at each tick, and `leaves` runs a policy on all of them.

An *information state* is all that a policy can know at a step: the agent's table (and so its proposal), the
probes used, and the *posterior*, the chances of the hidden gold states given everything shown so far.
Histories that agree in these have the same future, so they are one state. The true rate, the agent's rule,
the task graph and the start are given: no deployable policy knows more. `grow` finds all states by running
the engine one step at a time. For U = lambda A_H + (1 - lambda) success, `solve` finds the best policy by
backward induction, and `frontier` does so for every lambda.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from envprobe_book.plans import instances, try_actions
from envprobe_core import worlds
from envprobe_core.agents.profiles import PROFILES
from envprobe_core.compiled.numba_support import kernel
from envprobe_core.compiled.records import NONE, Int, dtype_of, new
from envprobe_core.conditions import Condition
from envprobe_core.engine.batch import EpisodeBatch
from envprobe_core.engine.kernel import act as carry_out
from envprobe_core.engine.kernel import observe, propose
from envprobe_core.errors import InputError
from envprobe_core.ledger import note_other
from envprobe_core.policies import POLICIES, THRESHOLD, Policy
from envprobe_core.protocols import FAULTS, PAPER, Protocol, switch_values
from envprobe_core.regimes import HIGH, LOW, MEDIUM, Regime
from envprobe_core.worlds.base import Floats, Ints, Mask, Values, World
from envprobe_core.worlds.tooldag import describe

TOOLS, MUTABLE = 3, 2  # the target, the last tool, never unloads
FIELDS = 3 * TOOLS
HIDDEN = 1 << (2 * TOOLS)  # gold states: loaded and complete tools, as one number
LOADED = np.arange(HIDDEN)[:, None] >> np.arange(TOOLS) & 1  # [hidden, tool]
LOSSES = np.arange(1 << MUTABLE)  # which tools a tick may unload, as sets
ACT = NONE  # the choice to take the proposed action; the others are the fields to probe
DECIMALS = 12  # posteriors that agree in so many are one
TIE = 1e-12  # choices whose worth differs by less are equal; the tolerance of the whole computation is 1e-9
LEAST_GAIN = 1e-10
AGENT = PROFILES["perfect"]
MUTATIONS = (LOW, MEDIUM, HIGH)
SOLVED = (
    "the optimum is computed where answers are delivered, the world runs on during a probe, sight is local, "
    "the task graph is known and A_H is terminal"
)
Point = tuple[float, float]  # accuracy and success

# the world


@dataclass(frozen=True)
class SmallWorld:
    """One small world, its clock and its probes."""

    density: int = 0  # 0: a chain, every tool needs the one before it; 1: a tool needs both earlier ones
    mutation: int = 2  # the regimes' level, 0, 1 or 2, for a rate of .02, .10 or .30
    horizon: int = 8  # H
    budget: int = 2  # B
    protocol: Protocol = PAPER

    def __post_init__(self) -> None:
        """Refuse a protocol under which nothing here holds."""
        if not can_be_solved(self.protocol):
            raise InputError(f"protocol {self.protocol.name!r} cannot be solved exactly; {SOLVED}")

    @property
    def regime(self) -> Regime:
        """The world's regime: clean observations, the sizes of the small world."""
        return Regime("small", LOW, self.density, self.mutation, LOW, self.horizon, (0, 1), "three tools")

    @cached_property
    def built(self) -> World:
        """The engine's world."""
        return describe(self.regime, self.protocol, TOOLS)

    @property
    def rate(self) -> float:
        """The chance that a loaded tool unloads in one step, to the last bit of the engine."""
        return int(self.built.rules.mutation) / 2.0**32

    def episodes(self, policy: Policy, seeds: Ints, threshold: float = THRESHOLD) -> EpisodeBatch:
        """Begin episodes of the perfect agent, a row a seed; with three tools all have the same task.

        Raises:
            InputError: if the policy repeats another one's probes.
        """
        if policy.replays is not None:
            raise InputError(
                f"policy {policy.name} replays another's probes; the small world runs none that does"
            )
        own = threshold if policy.has_threshold else None
        condition = Condition("tooldag", policy, self.regime, self.protocol, AGENT, self.budget, own)
        return EpisodeBatch(condition, seeds, world=self.built, scores_all=False)


def can_be_solved(protocol: Protocol) -> bool:
    """Whether the small world's optimum is computed under a protocol."""
    needed = {
        "answer": "delivered", "clock": "runs", "rates": "mean", "instances": "ancestors", "sight": "local",
        "structure": "graph", "end": "horizon", "accuracy": "terminal", "pairing": "same-step",
    }  # fmt: skip
    needed |= {fault: switch_values(fault)[0] for fault in FAULTS}
    return all(getattr(protocol, switch) == value for switch, value in needed.items())


@kernel
def act(setting, block, fields, logs):
    """Probe a field or carry out the proposed action, [row]; the world stands still."""
    for row in range(len(block)):
        carry_out(setting, block[row], fields[row], logs[row])


@kernel
def lose(setting, block, lost):
    """Unload tools, sets [row], and let the agents observe."""
    for row in range(len(block)):
        episode = block[row]
        episode.state.loaded &= ~lost[row]
        observe(setting, episode)
        episode.t += 1


# policies on every script


@dataclass(frozen=True)
class Leaves:
    """The episodes that a policy can have, one a leaf of its chance tree."""

    right: Floats  # [leaf], share of fields right at the end
    success: Mask  # [leaf]
    lost: Ints  # [leaf], how often a loaded tool unloaded
    kept: Ints  # [leaf], and how often it did not

    def chances(self, rate: float) -> Floats:
        """Each leaf's chance at a mutation rate."""
        return rate**self.lost * (1.0 - rate) ** self.kept

    def means(self, rate: float) -> Point:
        """The policy's exact accuracy and success at a mutation rate."""
        chance = self.chances(rate)
        return float((chance * self.right).sum()), float(chance[self.success].sum())


def leaves(small: SmallWorld, policy: Policy, threshold: float = THRESHOLD) -> Leaves:
    """Run a policy on every script; the world's own rate does not matter.

    After each step an episode forks: one copy goes on for every set of tools that may have unloaded.

    Args:
        policy: any policy that draws nothing; Random does, see `random_policy`.
    """
    episodes = small.episodes(policy, np.zeros(1), threshold)
    lost = kept = np.zeros(1, dtype=np.int64)
    while True:
        episodes.propose()
        if not episodes.record():
            break
        act(episodes.params, episodes.block, episodes.decide(), episodes.logs)
        exposed = episodes.block.state.loaded & LOSSES[-1]
        row, gone = np.nonzero(LOSSES & ~exposed[:, None] == 0)
        lost = lost[row] + np.bitwise_count(gone)
        kept = kept[row] + np.bitwise_count(exposed[row] & ~gone)
        episodes.block, episodes.logs = episodes.block.take(row), episodes.logs.take(row, axis=0)
        lose(episodes.params, episodes.block, gone)
    right = (episodes.block.table.value == episodes.block.gold)[:, :FIELDS]
    return Leaves(right.mean(axis=1), episodes.block.succeeded == 1, lost, kept)


# information states

CASE = dtype_of(("value", np.int8, FIELDS), ("action", Int), ("hidden", Int), ("choice", Int), ("lost", Int))
"""An agent's table and proposal, the gold state, what is chosen, and the tools that then unload, as a set."""

OUTCOME = dtype_of(
    ("value", np.int8, FIELDS), ("action", Int), ("hidden", Int),
    ("exposed", Int), ("answer", Int), ("valid", Int), ("seen", np.int8, FIELDS),
)  # fmt: skip
"""Table, proposal and gold state a step later; which tools could unload, the answer (-1: none was asked for),
whether the action worked, and what is seen of each field.
"""


@dataclass(frozen=True)
class Layer:
    """The information states before the decision at one step."""

    value: Values  # [state, field], the agent's table
    action: Ints  # [state], its proposal
    used: Ints  # [state], probes fired
    posterior: Floats  # [state, hidden], chances of the gold states


@dataclass(frozen=True)
class Steps:
    """What may follow the decisions at one step, one entry an outcome, ordered by state and choice.

    An *option* is a choice in a state.
    """

    state: Ints  # [outcome], index into this layer
    choice: Ints  # [outcome], ACT or the probed field
    chance: Floats  # [outcome], given state and choice
    child: Ints  # [outcome], index into the next layer

    @cached_property
    def first(self) -> Ints:
        """The first outcome of each option, [option]."""
        return np.flatnonzero(np.diff(self.state * (FIELDS + 1) + self.choice, prepend=-2))

    @cached_property
    def states(self) -> Ints:
        """The first option of each state, [state]."""
        return np.flatnonzero(np.diff(self.state[self.first], prepend=-1))

    def mean(self, of_child: Floats) -> Floats:
        """The expectation of what the next layer's states are worth, [option]."""
        return np.add.reduceat(self.chance * of_child[self.child], self.first)

    def best(self, worth: Floats, tied: Floats) -> Ints:
        """Each state's best option by its worth, [option], among equals by another number."""
        state = self.state[self.first]
        tied = np.where(worth >= np.maximum.reduceat(worth, self.states)[state] - TIE, tied, -np.inf)
        options = np.flatnonzero(tied >= np.maximum.reduceat(tied, self.states)[state] - TIE)
        return options[np.unique(state[options], return_index=True)[1]]


@dataclass(frozen=True)
class InformationTree:
    """All information states of a small world, layer by layer (t = 0..H), and the steps between them."""

    small: SmallWorld
    layers: list[Layer]  # [time]
    steps: list[Steps]  # [step]
    accuracy: Floats  # [state of the last layer], expected share of right fields
    success: Floats  # [state of the last layer], chance of success


def grow(small: SmallWorld, *, sees_gold: bool = False) -> InformationTree:
    """Enumerate the information states of a small world.

    Args:
        sees_gold: whether the policy is shown the gold state, as no deployable policy is.
    """
    note_other("small worlds whose information states are enumerated", 1)
    begun = small.episodes(POLICIES["no-probe"], np.zeros(1))
    begun.propose()  # one state before the first decision: nothing is loaded, and that is given
    value, action = begun.block.table.value[:, :FIELDS].astype(np.int8), begun.block.action.astype(np.int64)
    layers, steps = [Layer(value, action, np.zeros(1, np.int64), np.eye(1, HIDDEN))], []
    for _ in range(small.horizon):
        following, step = _grow_step(small, layers[-1], sees_gold)
        layers.append(following)
        steps.append(step)
    instance, number = instances(small.built, [0]), np.arange(HIDDEN)
    state = np.repeat(instance.state[:, None], HIDDEN, axis=1)
    state.loaded, state.complete = number % (1 << TOOLS), number >> TOOLS
    gold, last = try_actions(small.built, instance, state).gold[0], layers[-1]  # [hidden, field]
    right = (last.value[:, None, :] == gold).mean(axis=2)
    success = last.posterior @ gold[:, -1].astype(float)
    return InformationTree(small, layers, steps, (last.posterior * right).sum(axis=1), success)


@kernel
def follow(setting, block, logs, cases, found):
    """Take a step of each case, [case], fill in what is found; the one episode of the block is scratch."""
    world, episode = setting.world, block[0]
    task, state, table = episode.task, episode.state, episode.table
    for number in range(len(cases)):
        case, out = cases[number], found[number]
        state.loaded, state.complete = case.hidden % (1 << TOOLS), case.hidden >> TOOLS
        worlds.reveal(world, task, state, episode.gold)
        for field in range(world.fields):
            table.value[field] = case.value[field]
        episode.t, episode.action = 0, case.action
        carry_out(setting, episode, case.choice, logs[0])
        out.exposed = state.loaded & (1 << MUTABLE) - 1
        state.loaded &= ~case.lost
        observe(setting, episode)
        episode.t = 1
        propose(setting, episode)
        out.hidden = state.loaded + (state.complete << TOOLS)
        out.action, out.valid, out.answer = episode.action, episode.worked, -1
        if case.choice != ACT:
            out.answer = episode.answer
        for field in range(world.fields):
            out.value[field], out.seen[field] = table.value[field], episode.observation.value[field]


def _grow_step(small: SmallWorld, layer: Layer, sees_gold: bool) -> tuple[Layer, Steps]:
    """Take every choice in every state and every gold state it may be, and every mutation that may follow."""
    state, hidden = (np.repeat(own, FIELDS + 1) for own in np.nonzero(layer.posterior > 0.0))
    choice = np.arange(len(state)) % (FIELDS + 1) + ACT
    allowed = (choice == ACT) | (layer.used[state] < small.budget)
    state, hidden, choice = state[allowed], hidden[allowed], choice[allowed]

    cases = new(CASE, len(LOSSES), len(state))
    cases.value, cases.action = layer.value[state], layer.action[state]
    cases.hidden, cases.choice, cases.lost = hidden, choice, LOSSES[:, None]
    found = new(OUTCOME, *cases.shape)
    episodes = small.episodes(POLICIES["no-probe"], np.zeros(1))
    follow(episodes.params, episodes.block, episodes.logs, cases.reshape(-1), found.reshape(-1))
    gone, row = np.nonzero(cases.lost & ~found.exposed == 0)  # only what is loaded can unload
    found, lost = found[gone, row], np.bitwise_count(gone).astype(np.int64)
    kept = np.bitwise_count(found.exposed).astype(np.int64) - lost
    weight = layer.posterior[state, hidden][row] * (small.rate**lost * (1.0 - small.rate) ** kept)

    seen = (found.seen.astype(np.int64) + 1) @ 3 ** np.arange(FIELDS)
    shown = (found.answer + 1) * 2 + found.valid  # and all that is shown after a choice as one number:
    signature = ((state[row] * (FIELDS + 1) + choice[row] + 1) * 6 + shown) * 3**FIELDS + seen
    signature = signature * HIDDEN + (found.hidden if sees_gold else 0)
    _, first, outcome = np.unique(signature, return_index=True, return_inverse=True)
    posterior = np.zeros((len(first), HIDDEN))
    np.add.at(posterior, (outcome, found.hidden), weight)
    chance = posterior.sum(axis=1)
    posterior /= chance[:, None]

    shown, state, choice = found[first], state[row[first]], choice[row[first]]  # the rest follows from these
    used = layer.used[state] + (choice != ACT)
    key = np.concatenate([shown.value, used[:, None], np.round(posterior, DECIMALS)], axis=1)
    _, own, child = np.unique(key, axis=0, return_index=True, return_inverse=True)
    following = Layer(shown.value[own], shown.action[own], used[own], posterior[own])
    return following, Steps(state, choice, chance, child.reshape(-1))


# the best policy


def worth(weight: float, point: Point) -> float:
    """Return U = lambda accuracy + (1 - lambda) success."""
    return weight * point[0] + (1.0 - weight) * point[1]


@dataclass(frozen=True)
class Solution:
    """The best policy for one weight."""

    weight: float  # lambda
    accuracy: float  # exact mean
    success: float  # exact mean
    choices: list[Ints]  # [step] of [state], ACT or the field to probe

    @property
    def worth(self) -> float:
        """Return U."""
        return worth(self.weight, (self.accuracy, self.success))


def solve(tree: InformationTree, weight: float) -> Solution:
    """Find the best policy for a weight; among equals the better sum of both measures counts."""
    accuracy, success, choices = tree.accuracy, tree.success, []
    for steps in reversed(tree.steps):
        accuracy, success = steps.mean(accuracy), steps.mean(success)  # of options
        best = steps.best(weight * accuracy + (1.0 - weight) * success, accuracy + success)
        accuracy, success = accuracy[best], success[best]  # of states
        choices.append(steps.choice[steps.first[best]])
    return Solution(weight, float(accuracy[0]), float(success[0]), choices[::-1])


def frontier(tree: InformationTree) -> list[Solution]:
    """The corners of the optimum over all weights, from the most success to the most accuracy."""

    def between(left: Solution, right: Solution) -> list[Solution]:
        rise, run = right.accuracy - left.accuracy, left.success - right.success
        if rise <= LEAST_GAIN or run <= LEAST_GAIN:
            return []
        middle = solve(tree, run / (rise + run))
        if middle.worth - worth(middle.weight, (left.accuracy, left.success)) <= LEAST_GAIN:
            return []
        return [*between(left, middle), middle, *between(middle, right)]

    first, last = solve(tree, 0.0), solve(tree, 1.0)
    return [first, *between(first, last), last]


def reached_under(tree: InformationTree, solution: Solution) -> list[Floats]:
    """The chance of each state to be met under a policy, [time] of [state]."""
    chances = [np.ones(1)]
    for step, choices in zip(tree.steps, solution.choices, strict=True):
        taken = step.choice == choices[step.state]
        chance = chances[-1][step.state[taken]] * step.chance[taken]
        chances.append(np.bincount(step.child[taken], chance, step.child.max() + 1))
    return chances


def loaded_at_end(tree: InformationTree, solution: Solution) -> float:
    """The expected number of tools that are loaded at the end under a policy."""
    posterior = tree.layers[-1].posterior
    return float(reached_under(tree, solution)[-1] @ (posterior @ LOADED.sum(axis=1)))


def random_policy(tree: InformationTree) -> Point:
    """The exact means of Random: with chance B/H a uniformly drawn field, while budget is left."""
    small, both = tree.small, [tree.accuracy, tree.success]
    chance = (small.budget << 32) // small.horizon / 2.0**32
    for layer, steps in zip(tree.layers[-2::-1], tree.steps[::-1], strict=True):
        left = layer.used[steps.state[steps.first]] < small.budget
        probing = np.where(left, chance, 0.0)
        share = np.where(steps.choice[steps.first] == ACT, 1.0 - probing, probing / FIELDS)
        both = [np.add.reduceat(share * steps.mean(value), steps.states) for value in both]
    return float(both[0][0]), float(both[1][0])
