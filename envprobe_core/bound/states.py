"""Information states: all that a policy can know at a step, found by running the engine one step at a time.

A state is the agent's table (and so its proposal), the probes used, and the *posterior*, the chances of the
hidden gold states given everything shown so far. Histories that agree in these have the same future, so they
are one state. The true rate, the agent's rule, the task graph and the start are given: no deployable policy
knows more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from envprobe_core.agents.base import Request
from envprobe_core.agents.simulated import SimulatedAgent
from envprobe_core.belief import BeliefTable
from envprobe_core.bound.small import MUTABLE, SMALL_TOOLS, Setting, forced
from envprobe_core.deciding import taken
from envprobe_core.worlds.base import NO_ACTION, Floats, Ints, Observation, Values
from envprobe_core.worlds.tooldag import ToolState

ACT = -1  # the choice to take the proposed action; the others are the fields to probe
HIDDEN = 1 << (2 * SMALL_TOOLS)  # loaded and complete tools, as one number
DECIMALS = 12  # posteriors that agree in so many are one


@dataclass(frozen=True)
class Layer:
    """The information states before the decision at one step.

    Attributes:
        value: [state, field], the agent's table.
        action: [state], its proposal.
        used: [state], probes fired.
        posterior: [state, hidden], chances of the gold states.
    """

    value: Values
    action: Ints
    used: Ints
    posterior: Floats

    def __len__(self) -> int:
        """Return the number of states."""
        return len(self.used)


@dataclass(frozen=True)
class Steps:
    """What may follow the decisions at one step, one entry an outcome, ordered by state and choice.

    Attributes:
        signature: [outcome], ascending: the state, the choice and what is shown, as one number.
        state: [outcome], index into this layer.
        choice: [outcome], ACT or the probed field.
        chance: [outcome], given state and choice.
        child: [outcome], index into the next layer.
    """

    signature: Ints
    state: Ints
    choice: Ints
    chance: Floats
    child: Ints


@dataclass(frozen=True)
class InformationTree:
    """All information states of a setting, layer by layer (t = 0..H), and the steps between them.

    Attributes:
        setting: the small world.
        sees_gold: whether the policy is shown the gold state, as no deployable policy is.
        layers: [time].
        steps: [step].
        accuracy, success: [state of the last layer], expected share of right fields, chance of success.
    """

    setting: Setting
    sees_gold: bool
    layers: list[Layer]
    steps: list[Steps]
    accuracy: Floats
    success: Floats


def grow(setting: Setting, *, sees_gold: bool = False) -> InformationTree:
    """Enumerate the information states of a setting."""
    layers, steps = [_root(setting)], []
    for t in range(setting.horizon):
        following, step = _grow_step(setting, layers[-1], t, sees_gold)
        layers.append(following)
        steps.append(step)
    gold, done = _gold_of_hidden(setting)
    last = layers[-1]
    right = (last.value[:, None, :] == gold[None]).mean(axis=2)
    accuracy, success = (last.posterior * right).sum(axis=1), last.posterior @ done
    return InformationTree(setting, sees_gold, layers, steps, accuracy, success)


def signature_of(state: Ints, choice: Ints, answer: Ints, observation: Observation) -> Ints:
    """Number what a policy is shown after a choice, [row]; `answer` is -1 without a probe."""
    digits = 3 ** np.arange(observation.value.shape[1])
    shown = (observation.value.astype(np.int64) + 1) @ digits
    fields = observation.value.shape[1]
    number = (state * (fields + 1) + choice + 1) * 3 + answer + 1
    return ((number * 2 + observation.valid) * 3**fields + shown) * HIDDEN


def _root(setting: Setting) -> Layer:
    """Return the one state before the first decision: nothing is loaded, and that is given."""
    world, instance = setting.world, setting.instance(1)
    state = world.start(instance)
    gold = world.gold(instance, state)
    nothing, nobody = np.full(1, NO_ACTION), np.zeros(1, dtype=bool)
    observation = world.observe(
        instance, state, gold, np.zeros(1, dtype=np.uint64), nothing, nobody, world.place(state), ~nobody
    )
    known = np.ones((1, 1), dtype=bool) if setting.protocol.start == "gold" else observation.seen
    value, action = _answer(setting, 0, BeliefTable.known(gold, known).value, observation, np.full(1, -1))
    posterior = np.zeros((1, HIDDEN))
    posterior[0, _number(state)] = 1.0
    return Layer(value, action, np.zeros(1, dtype=np.int64), posterior)


def _grow_step(setting: Setting, layer: Layer, t: int, sees_gold: bool) -> tuple[Layer, Steps]:
    """Take every choice in every state and every gold state it may be, and every mutation that may follow."""
    world = setting.world
    row_state, row_choice, hidden = _choices(setting, layer)
    weight = layer.posterior[row_state, hidden]
    instance = setting.instance(len(hidden))
    before = ToolState(*(part.astype(np.int32) for part in (hidden % 8, hidden // 8)))
    probed = np.maximum(row_choice, 0)
    answer = world.gold(instance, before)[np.arange(len(hidden)), probed].astype(np.int64)
    answer = np.where(row_choice == ACT, -1, answer)
    acting = np.where(row_choice == ACT, layer.action[row_state], NO_ACTION)
    after, valid = world.act(instance, before, acting)

    row, state, chance = _mutations(setting, after)
    row_state, row_choice, answer, acting, valid = (
        part[row] for part in (row_state, row_choice, answer, acting, valid)
    )
    weight = weight[row] * chance
    instance = setting.instance(len(row))
    gold, nowhere = world.gold(instance, state), world.place(state)
    observation = world.observe(
        instance, state, gold, np.zeros(len(row), dtype=np.uint64), acting, valid, nowhere, valid | True
    )
    signature = signature_of(row_state, row_choice, answer, observation)
    signature += _number(state) if sees_gold else 0
    signature, first, outcome = np.unique(signature, return_index=True, return_inverse=True)
    posterior = np.zeros((len(signature), HIDDEN))
    np.add.at(posterior, (outcome, _number(state)), weight)
    chance = posterior.sum(axis=1)
    posterior /= chance[:, None]

    told = np.where(row_choice[first] == ACT, -1, row_choice[first])
    value = layer.value[row_state[first]].copy()
    probing = np.flatnonzero(told >= 0)
    value[probing, told[probing]] = answer[first[probing]]
    value, action = _answer(setting, t + 1, value, taken(observation, first), told)
    used = layer.used[row_state[first]] + (told >= 0)
    kept, child = _merged(value, used, posterior)
    following = Layer(value[kept], action[kept], used[kept], posterior[kept])
    return following, Steps(signature, row_state[first], row_choice[first], chance, child)


def _choices(setting: Setting, layer: Layer) -> tuple[Ints, Ints, Ints]:
    """Return state, choice and hidden gold state of everything that may be tried, [row] each."""
    fields = setting.world.fields
    state, hidden = np.nonzero(layer.posterior > 0.0)
    choice = np.tile(np.arange(ACT, fields), len(state))
    state, hidden = np.repeat(state, fields + 1), np.repeat(hidden, fields + 1)
    allowed = (choice == ACT) | (layer.used[state] < setting.budget)
    return state[allowed], choice[allowed], hidden[allowed]


def _mutations(setting: Setting, state: ToolState) -> tuple[Ints, ToolState, Floats]:
    """Return for every mutation that may happen: the row it happens in, the state it leads to, its chance."""
    rows, states, chances = [], [], []
    for pattern in range(1 << MUTABLE):
        possible = np.flatnonzero(pattern & ~state.loaded == 0)
        part = ToolState(state.loaded[possible], state.complete[possible])
        lost = np.zeros((len(possible), SMALL_TOOLS), dtype=bool)
        lost[:, :MUTABLE] = pattern >> np.arange(MUTABLE) & 1
        moved = setting.world.mutate(
            setting.instance(len(possible)), part, forced(lost), np.ones(len(possible), dtype=bool)
        )
        at_risk = np.bitwise_count(part.loaded & ((1 << MUTABLE) - 1)).astype(np.int64)
        gone = pattern.bit_count()
        rows.append(possible)
        states.append(moved)
        chances.append(setting.rate**gone * (1.0 - setting.rate) ** (at_risk - gone))
    loaded, complete = (
        np.concatenate([getattr(part, name) for part in states]) for name in ("loaded", "complete")
    )
    return np.concatenate(rows), ToolState(loaded, complete), np.concatenate(chances)


def _answer(
    setting: Setting, step: int, value: Values, observation: Observation, told: Ints
) -> tuple[Values, Ints]:
    """Let the agent update its table and propose; what it reports of age and doubt does not matter here."""
    static = setting.instance(len(value)).map
    agent = SimulatedAgent(*setting.agent_arguments(static, len(value)))
    table = BeliefTable.known(value, np.ones((1, 1), dtype=bool))
    reply = agent.answer(Request(step, table, observation, told))
    return table.value, reply.action


def _merged(value: Values, used: Ints, posterior: Floats) -> tuple[Ints, Ints]:
    """Find equal information states: which rows to keep, and for each row which of these it is."""
    key = np.concatenate([value, used[:, None], np.round(posterior, DECIMALS)], axis=1)
    _, first, which = np.unique(key, axis=0, return_index=True, return_inverse=True)
    return first, which.reshape(-1)


def _number(state: ToolState) -> Ints:
    """Number gold states."""
    return (state.loaded + (state.complete << SMALL_TOOLS)).astype(np.int64)


def _gold_of_hidden(setting: Setting) -> tuple[Values, Floats]:
    """Return the gold fields of every numbered state, [hidden, field], and whether it is a success."""
    number = np.arange(HIDDEN, dtype=np.int32)
    state = ToolState(number % 8, number // 8)
    instance = setting.instance(HIDDEN)
    return setting.world.gold(instance, state), setting.world.succeeded(instance, state).astype(float)
