"""The ceilings of success and accuracy in the full-size worlds (ours): what no policy can exceed.

For the ceiling of success, an actor who knows every future draw of the world chooses its actions freely and
may stand still at no charge; it is bound only by what no probe can change, the agent's slips and its
quitting, by the world's preconditions and by the horizon. So it exceeds every policy seed by seed. All that
it can reach is followed at once.

The ceiling of accuracy forgives all but the last step: what mutates there out of sight, and what the agent
overwrites.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from envprobe_book.plans import instances
from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.agents.simulated import SLIP, quits
from envprobe_core.compiled.noise import IMPULSE, choice, draw, happens
from envprobe_core.compiled.numba_support import kernel
from envprobe_core.compiled.records import NONE, WAIT
from envprobe_core.conditions import Condition
from envprobe_core.engine.batch import EpisodeBatch
from envprobe_core.protocols import Protocol
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import Floats, Ints, Mask, World

NO_SLIP = -1


def has_ceiling(protocol: Protocol) -> bool:
    """Whether the ceilings are computed: the clock runs, and A_H is terminal, of the same step."""
    return (protocol.clock, protocol.accuracy, protocol.pairing) == ("runs", "terminal", "same-step")


def success_ceiling(condition: Condition, seeds: Ints) -> Mask:
    """Say on which seeds any policy at all could complete the task, [seed].

    Args:
        condition: whatever its policy; its protocol is one that `has_ceiling`.
        seeds: [seed].
    """
    episodes = EpisodeBatch(condition, seeds)
    slipped, acts = impulses(episodes)

    def allowed(t: int, action: Any) -> Mask:
        """Which actions, [seed or 1, action], may be carried out at step t, [seed, action]."""
        return acts[:, t, None] & ((slipped[:, t, None] == NO_SLIP) | (slipped[:, t, None] == action))

    return (_calls if condition.world == "tooldag" else _ways)(episodes, allowed)


def impulses(episodes: EpisodeBatch) -> tuple[Ints, Mask]:
    """The action that the agent slips to, or NO_SLIP, and whether it still acts, [seed, step] each."""
    shape = len(episodes.block), episodes.condition.regime.horizon
    slipped, acts = np.full(shape, NO_SLIP), np.ones(shape, dtype=bool)
    if not episodes.condition.profile.scribe:  # which errs in other ways
        draw_impulses(episodes.params, episodes.block, slipped, acts)
    return slipped, acts


@kernel
def draw_impulses(setting, block, slipped, acts):
    """Fill in what `impulses` returns."""
    for row in range(len(block)):
        keys, over = block[row].keys, False
        for t in range(slipped.shape[1]):
            word = draw(keys[IMPULSE], t, SLIP)
            if happens(word, setting.habits.slip):
                slipped[row, t] = choice(word, setting.world.actions)
            over = over or quits(setting.habits, keys, t)
            acts[row, t] = not over


def _untouched(episodes: EpisodeBatch) -> Iterator[tuple[int, Any]]:
    """Yield each step and the state before it, [seed], in a world in which nobody does anything."""
    for t in range(episodes.condition.regime.horizon):
        yield t, episodes.block.state
        episodes.propose()
        episodes.record()
        episodes.block.action = WAIT
        episodes.advance(np.full(len(episodes.block), NONE))


def _calls(episodes: EpisodeBatch, allowed: Callable[[int, Any], Mask]) -> Mask:
    """Follow every set of loaded tools, a number by its bits, that some sequence of calls leads to."""
    target = int(episodes.params.world.tools) - 1  # it ends the search
    tools, everything = np.arange(target + 1), (1 << target) - 1
    needs = episodes.block.task.needs[:, tools]
    done = np.zeros(len(needs), dtype=bool)
    seed, loaded = np.arange(len(needs)), np.zeros(len(needs), np.int64)  # [set], those of all seeds
    for t, state in _untouched(episodes):
        loaded &= state.loaded[seed]  # what has not unloaded
        state.loaded = everything
        ready = (needs[seed] & ~loaded[:, None] == 0) & (loaded[:, None] >> tools & 1 == 0)
        ready &= allowed(t, tools)[seed]
        done[seed[ready[:, target]]] = True
        at, tool = np.nonzero(ready[:, :target])
        before = seed << target | loaded
        reached = np.unique(np.concatenate([before, before[at] | 1 << tool]))
        seed, loaded = reached >> target, reached & everything
    return done


def _ways(episodes: EpisodeBatch, allowed: Callable[[int, Any], Mask]) -> Mask:
    """Follow every place, and set of keys ever held, that some sequence of steps leads to.

    What nobody touches goes its own way: keys not yet held, the goal object, locks. A door or edge can be
    passed while it is open by itself, and for good once its key was held.
    """
    rules, task, rooms = episodes.params.world, episodes.block.task, episodes.condition.world == "objectstate"
    seeds, places = np.arange(len(task)), int(rules.rooms if rooms else rules.nodes)
    ways = np.arange(int(rules.doors if rooms else rules.edges))
    key_of = (task.key_of_door if rooms else task.key_of_edge)[:, : len(ways)]
    ends = np.tile(np.stack([ways, ways + 1], axis=1), (len(task), 1, 1)) if rooms else task.ends
    held = np.arange(1 << int(rules.keys))  # sets of keys
    unlocks = (key_of[:, :, None] != NONE) & (held >> np.maximum(key_of, 0)[:, :, None] & 1 == 1)
    reached = np.zeros((len(task), places, len(held)), dtype=bool)
    reached[seeds, episodes.block.state.place, 0] = True
    done = np.zeros(len(task), dtype=bool)
    for t, state in _untouched(episodes):
        if rooms:  # the goal is picked up where it lies
            there = reached[seeds, state.location[:, rules.goal]] & allowed(t, places + rules.goal)
            done |= there.any(axis=1)
            locked = state.locked[:, None] >> ways & 1 == 1
        else:
            locked = state.locked == 1
        following = reached.copy()
        for way in ways:
            passable = ~locked[:, way, None] | unlocks[:, way]
            for here, there in (ends[:, way].T, ends[:, way, ::-1].T):
                following[seeds, there] |= reached[seeds, here] & passable & allowed(t, there[:, None])
        for key in range(int(rules.keys)):
            here = state.location[:, key]
            taken = reached[seeds, here][:, held & ~(1 << key)] & (held >> key & 1 == 1)
            following[seeds, here] |= taken & allowed(t, places + key)
        reached = following
        if not rooms:
            done |= reached[seeds, task.target].any(axis=1)
    return done


def accuracy_ceiling(condition: Condition, seeds: Ints) -> Floats:
    """The greatest expected A_H that is left to any policy, [seed], given the instance.

    Args:
        condition: whatever its policy; its protocol is one that `has_ceiling`.
        seeds: [seed].

    >>> from envprobe_core.conditions import make_condition
    >>> accuracy_ceiling(make_condition("tooldag", "no-probe", profile="perfect"), np.arange(2))
    array([1., 1.])
    """
    world = make_world(condition.world, condition.regime, condition.protocol)
    profile, once = condition.profile, 1 - condition.profile.overwrite
    undone: Any = 0.0  # of tools nothing: a policy may leave none loaded that could unload
    if condition.world != "tooldag":
        undone = undone_out_of_sight(world, profile, instances(world, seeds).task)
    q = (1 - (once**2 if condition.regime.observation == "distractor" else once)) / world.fields
    lost = (1 - q) * undone + q * (1 - 1 / world.domain)
    return np.broadcast_to(1 - lost.mean(axis=-1), len(seeds))


def undone_out_of_sight(world: World, profile: AgentProfile, task: Any) -> Floats:
    """The least chance m h of each field to be undone by the last mutation unseen, [seed, field].

    Boxes and idle goal objects are at risk unless a slip picked them up; keys and the goal object may all be
    held; as many locks are seen as one place shows.

    Args:
        world: rooms or a graph.
        profile: the agent, for its slips.
        task: [seed], as instances have it.
    """
    undone, rules, rooms = np.zeros((len(task), world.fields)), world.rules, world.name == "objectstate"
    ways = np.arange(rules.doors if rooms else rules.edges)
    lockable = (task.key_of_door if rooms else task.key_of_edge)[:, ways] != NONE
    seen = np.zeros((len(task), rules.rooms if rooms else rules.nodes), dtype=int)
    for way in ways:
        for end in (0, 1):
            seen[np.arange(len(task)), way + end if rooms else task.ends[:, way, end]] += lockable[:, way]
    hidden = (lockable.sum(axis=1) - seen.max(axis=1)) / len(ways)
    locks = ways + (rules.objects if rooms else 1 + rules.keys)
    undone[:, locks] = np.minimum(world.rates, 1 - world.rates)[locks] * hidden[:, None]
    if rooms:
        idle = [thing for thing in range(rules.keys, rules.objects) if thing != rules.goal]
        held = min(1.0, world.regime.horizon * profile.slip / world.actions)
        undone[:, idle] = world.rates[idle] * (1 - 2 / rules.rooms) * (1 - held)
    return undone
