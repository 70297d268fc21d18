"""Information states: all that a policy can know at a step, found by running the engine one step at a time.

A state is the agent's table (and so its proposal), the probes used, and the *posterior*, the chances of the
hidden gold states given everything shown so far. Histories that agree in these have the same future, so they
are one state. The true rate, the agent's rule, the task graph and the start are given: no deployable policy
knows more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from envprobe_core import worlds
from envprobe_core.bound.small import LOSSES, MUTABLE, SMALL_TOOLS, Setting, lose
from envprobe_core.engine import loop
from envprobe_core.engine.compiling import entry
from envprobe_core.engine.records import NONE, Int, new, record
from envprobe_core.policies import POLICIES
from envprobe_core.worlds.base import Floats, Ints, Values

ACT = NONE  # the choice to take the proposed action; the others are the fields to probe
SMALL_FIELDS = 3 * SMALL_TOOLS
HIDDEN = 1 << (2 * SMALL_TOOLS)  # loaded and complete tools, as one number
DECIMALS = 12  # posteriors that agree in so many are one


CASE = record(
    ("value", np.int8, SMALL_FIELDS), ("action", Int), ("hidden", Int), ("choice", Int), ("lost", Int)
)
"""An agent's table and proposal, the gold state, what is chosen, and the tools that then unload, as a set."""

OUTCOME = record(
    ("value", np.int8, SMALL_FIELDS), ("action", Int), ("hidden", Int),
    ("exposed", Int), ("answer", Int), ("valid", Int), ("seen", np.int8, SMALL_FIELDS),
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

    def __len__(self) -> int:
        """Return the number of states."""
        return len(self.used)


@dataclass(frozen=True)
class Steps:
    """What may follow the decisions at one step, one entry an outcome, ordered by state and choice."""

    signature: Ints  # [outcome], ascending: the state, the choice and what is shown, as one number
    state: Ints  # [outcome], index into this layer
    choice: Ints  # [outcome], ACT or the probed field
    chance: Floats  # [outcome], given state and choice
    child: Ints  # [outcome], index into the next layer


@dataclass(frozen=True)
class InformationTree:
    """All information states of a setting, layer by layer (t = 0..H), and the steps between them."""

    setting: Setting
    sees_gold: bool  # whether the policy is shown the gold state, as no deployable policy is
    layers: list[Layer]  # [time]
    steps: list[Steps]  # [step]
    accuracy: Floats  # [state of the last layer], expected share of right fields
    success: Floats  # [state of the last layer], chance of success


def grow(setting: Setting, *, sees_gold: bool = False) -> InformationTree:
    """Enumerate the information states of a setting."""
    layers, steps = [_root(setting)], []
    for _ in range(setting.horizon):
        following, step = _grow_step(setting, layers[-1], sees_gold)
        layers.append(following)
        steps.append(step)
    gold = _gold_of_hidden(setting)
    last = layers[-1]
    right = (last.value[:, None, :] == gold[None]).mean(axis=2)
    success = last.posterior @ gold[:, -1].astype(float)
    return InformationTree(setting, sees_gold, layers, steps, (last.posterior * right).sum(axis=1), success)


def _root(setting: Setting) -> Layer:
    """Return the one state before the first decision: nothing is loaded, and that is given."""
    episodes = setting.episodes(POLICIES["no-probe"], np.zeros(1))
    episodes.propose()
    block = episodes.block
    posterior = np.zeros((1, HIDDEN))
    posterior[0, 0] = 1.0
    value = block.table.value[:, :SMALL_FIELDS].astype(np.int8)
    return Layer(value, block.action.astype(np.int64), np.zeros(1, dtype=np.int64), posterior)


def signature_of(state: Ints, choice: Ints, answer: Ints, valid: Ints, seen: Values) -> Ints:
    """Number what a policy is shown after a choice, [row]; `answer` is -1 without a probe."""
    digits = 3 ** np.arange(SMALL_FIELDS)
    number = (state * (SMALL_FIELDS + 1) + choice + 1) * 3 + answer + 1
    return ((number * 2 + valid) * 3**SMALL_FIELDS + (seen.astype(np.int64) + 1) @ digits) * HIDDEN


@entry
def follow(setting, block, logs, cases, found):
    """Take a step of each case, [case], and fill in what is found; the one episode of the block is paper."""
    world, episode = setting.world, block[0]
    task, state, table = episode.task, episode.state, episode.table
    for number in range(len(cases)):
        case, out = cases[number], found[number]
        state.loaded, state.complete = case.hidden % (1 << SMALL_TOOLS), case.hidden >> SMALL_TOOLS
        worlds.reveal(world, task, state, episode.gold)
        for field in range(world.fields):
            table.value[field] = case.value[field]
        episode.t, episode.action = 0, case.action
        loop.act(setting, episode, case.choice, logs[0])
        out.exposed = state.loaded & (1 << MUTABLE) - 1
        state.loaded &= ~case.lost
        loop.observe(setting, episode, episode.acting, episode.worked)
        episode.t = 1
        loop.propose(setting, episode)
        out.hidden = state.loaded + (state.complete << SMALL_TOOLS)
        out.action, out.valid, out.answer = episode.action, episode.worked, -1
        if case.choice != ACT:
            out.answer = episode.answer
        for field in range(world.fields):
            out.value[field], out.seen[field] = table.value[field], episode.observation.value[field]


def _grow_step(setting: Setting, layer: Layer, sees_gold: bool) -> tuple[Layer, Steps]:
    """Take every choice in every state and every gold state it may be, and every mutation that may follow."""
    row_state, row_choice, hidden = _choices(setting, layer)
    row, found, chance = _mutations(setting, layer, row_state, row_choice, hidden)
    weight = layer.posterior[row_state, hidden][row] * chance
    row_state, row_choice = row_state[row], row_choice[row]
    signature = signature_of(row_state, row_choice, found.answer, found.valid, found.seen)
    signature += found.hidden if sees_gold else 0
    signature, first, outcome = np.unique(signature, return_index=True, return_inverse=True)
    posterior = np.zeros((len(signature), HIDDEN))
    np.add.at(posterior, (outcome, found.hidden), weight)
    chance = posterior.sum(axis=1)
    posterior /= chance[:, None]

    shown = found[first]  # table and proposal follow from what is shown
    used = layer.used[row_state[first]] + (row_choice[first] != ACT)
    kept, child = _merged(shown.value, used, posterior)
    following = Layer(shown.value[kept], shown.action[kept], used[kept], posterior[kept])
    return following, Steps(signature, row_state[first], row_choice[first], chance, child)


def _choices(setting: Setting, layer: Layer) -> tuple[Ints, Ints, Ints]:
    """Return state, choice and hidden gold state of everything that may be tried, [row] each."""
    state, hidden = np.nonzero(layer.posterior > 0.0)
    choice = np.tile(np.arange(ACT, SMALL_FIELDS), len(state))
    state, hidden = np.repeat(state, SMALL_FIELDS + 1), np.repeat(hidden, SMALL_FIELDS + 1)
    allowed = (choice == ACT) | (layer.used[state] < setting.budget)
    return state[allowed], choice[allowed], hidden[allowed]


def _mutations(
    setting: Setting, layer: Layer, state: Ints, choice: Ints, hidden: Ints
) -> tuple[Ints, Any, Floats]:
    """Return for every mutation that may happen: the row it happens in, what is found, its chance."""
    cases = new(CASE, len(LOSSES), len(state))
    cases.value, cases.action = layer.value[state], layer.action[state]
    cases.hidden, cases.choice, cases.lost = hidden, choice, np.array(LOSSES)[:, None]
    found = new(OUTCOME, cases.size)
    episodes = setting.episodes(POLICIES["no-probe"], np.zeros(1))
    follow(episodes.setting, episodes.block, episodes.logs, cases.reshape(-1), found)
    found = found.reshape(cases.shape)
    rows, chances = [], []
    for lost in LOSSES:
        possible = np.flatnonzero(lost & ~found[lost].exposed == 0)
        at_risk = np.bitwise_count(found[lost].exposed[possible]).astype(np.int64)
        gone = lost.bit_count()
        rows.append(possible)
        chances.append(setting.rate**gone * (1.0 - setting.rate) ** (at_risk - gone))
    kept = np.concatenate([found[lost][possible] for lost, possible in zip(LOSSES, rows, strict=True)])
    return np.concatenate(rows), kept.view(np.recarray), np.concatenate(chances)


def _merged(value: Values, used: Ints, posterior: Floats) -> tuple[Ints, Ints]:
    """Find equal information states: which rows to keep, and for each row which of these it is."""
    key = np.concatenate([value, used[:, None], np.round(posterior, DECIMALS)], axis=1)
    _, first, which = np.unique(key, axis=0, return_index=True, return_inverse=True)
    return first, which.reshape(-1)


def _gold_of_hidden(setting: Setting) -> Values:
    """Return the gold fields of every numbered state, [hidden, field]; the last says that it is a success."""
    episodes = setting.episodes(POLICIES["no-probe"], np.zeros(HIDDEN))
    state, number = episodes.block.state, np.arange(HIDDEN)
    state.loaded, state.complete = number % (1 << SMALL_TOOLS), number >> SMALL_TOOLS
    lose(episodes.setting, episodes.block, np.zeros(HIDDEN, dtype=np.int64))
    return episodes.block.gold[:, :SMALL_FIELDS].astype(np.int8)
