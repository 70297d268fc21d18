"""ToolDAGWorld: tools with prerequisites; loaded tools may become unavailable.

Description: load tools along a dependency graph until the target, the last tool, completes.
Fields: loaded, dependency satisfied, subgoal complete, one of each a tool; all procedural.
Actions: `call(t)`, valid if t is not loaded and every prerequisite is.
Observations: local: the called tool and its prerequisites; released: every tool's loaded state.
Mutation: a loaded tool, the target aside, becomes unloaded.
Episode end: at the horizon, or on success where the protocol stops there.
Source: Sections 3 and 6.1; book/definitions.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from envprobe_core import bits, noise
from envprobe_core.bits import Bits
from envprobe_core.noise import Words
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime
from envprobe_core.worlds.base import PROCEDURAL, Floats, Ints, Mask, Rows, Values, World, first_ranked

TOOLS = (5, 9, 16)
PREREQUISITES = (1, 2, 3)
RELEASED_RATES = (0.0, 0.10, 0.25)
MEAN_RATES = (0.02, 0.10, 0.30)


@dataclass(frozen=True)
class ToolMap:
    """The static task graph: needs[row, tool, prerequisite]."""

    needs: Mask

    @property
    def tools(self) -> int:
        """Return the number of tools."""
        return self.needs.shape[1]

    @cached_property
    def needs_bits(self) -> Bits:
        """Return each tool's prerequisites as a mask, [row, tool]; tools first in memory."""
        return np.asfortranarray(bits.pack(self.needs))

    @cached_property
    def ancestor_bits(self) -> Bits:
        """Return all direct and indirect prerequisites of each tool as a mask, [row, tool]."""
        ancestors = self.needs_bits.copy()
        for tool in range(1, self.tools):
            inherited = np.where(self.needs[:, tool, :tool], ancestors[:, :tool], 0)
            ancestors[:, tool] |= np.bitwise_or.reduce(inherited, axis=1)
        return ancestors

    @cached_property
    def last_shown(self) -> Bits:
        """Return the last tool an observation of each called tool lists, as a mask, [row, tool]."""
        highest = bits.single(np.maximum(bits.highest(self.needs_bits), 0))
        return np.where(self.needs_bits == 0, bits.single(np.arange(self.tools)), highest)

    @cached_property
    def role_halves(self) -> Values:
        """Return every call's dependency roles times two, [row, action, field]; WAIT is the last one."""
        rows, tools = self.needs.shape[:2]
        halves = np.zeros((rows, tools + 1, 3 * tools), dtype=np.int8)
        own = np.eye(tools, dtype=np.int8)
        ancestors = bits.unpack(self.ancestor_bits, tools).view(np.int8)
        halves[:, :tools, :tools] = ancestors + self.needs + 2 * own
        halves[:, :tools, tools : 2 * tools] = ancestors + 2 * own
        return halves


@dataclass(frozen=True)
class ToolInstance:
    """One instance a row; nothing is loaded at the start."""

    map: ToolMap


@dataclass(frozen=True)
class ToolState:
    """Which tools are loaded now and which ever were, [row] masks."""

    loaded: Bits
    complete: Bits


class ToolDAGWorld(World):
    """Tools with prerequisites (see the module)."""

    name = "tooldag"
    title = "ToolDAGWorld"
    code = 1
    sizes: ClassVar[tuple[int, int, int]] = TOOLS

    def __init__(self, regime: Regime, protocol: Protocol) -> None:
        """Set 5, 9 or 16 tools with 1, 2 or 3 prerequisites each."""
        super().__init__(regime, protocol)
        self.tools = self.sizes[regime.complexity]
        self.prerequisites = PREREQUISITES[regime.density]
        parts = ("loaded", "dependency satisfied", "subgoal complete")
        self.field_names = tuple(f"{part}({t})" for part in parts for t in range(self.tools))
        self.field_kinds = (PROCEDURAL,) * len(self.field_names)
        self.action_names = tuple(f"call({t})" for t in range(self.tools))
        self.domain = np.full(self.fields, 2)
        table = MEAN_RATES if protocol.rates == "mean" else RELEASED_RATES
        self.exposed = self.tools
        self.rates = np.zeros(self.fields)
        self.rates[: self.tools - 1] = table[regime.mutation]
        last = self.tools - 1
        self.goal_fields = (last, last + self.tools, last + 2 * self.tools)

    def instances(self, seeds: npt.ArrayLike) -> ToolInstance:
        """Draw each tool's prerequisites among the earlier tools."""
        draws = self.draws(seeds, self.tools * self.tools)
        needs = np.zeros((len(draws), self.tools, self.tools), dtype=bool)
        for tool in range(1, self.tools):
            mine = draws[:, tool * self.tools : tool * self.tools + tool]
            wanted = self.prerequisites
            if self.protocol.instances == "ancestors":
                needs[:, tool, tool - 1] = True
                mine, wanted = mine[:, :-1], wanted - 1
            needs[:, tool, : mine.shape[1]] |= first_ranked(mine, np.ones(mine.shape, dtype=bool), wanted)
        return ToolInstance(ToolMap(needs))

    def start(self, instance: ToolInstance) -> ToolState:
        """Start with nothing loaded."""
        rows = len(instance.map.needs)
        return ToolState(np.zeros(rows, dtype=np.int32), np.zeros(rows, dtype=np.int32))

    def gold(self, instance: ToolInstance, state: ToolState) -> Values:
        """Return loaded, dependency satisfied and subgoal complete of every tool."""
        n = self.tools
        gold = np.empty((len(state.loaded), 3 * n), dtype=np.int8)
        gold[:, :n] = bits.unpack(state.loaded, n)
        gold[:, n : 2 * n] = (instance.map.needs_bits & ~state.loaded[:, None]) == 0
        gold[:, 2 * n :] = bits.unpack(state.complete, n)
        return gold

    def place(self, state: ToolState) -> Ints:
        """Return 0: tools have no place."""
        return np.zeros(len(state.loaded), dtype=np.int64)

    def succeeded(self, instance: ToolInstance, state: ToolState) -> Mask:
        """Say where the target is complete."""
        return bits.has(state.complete, self.tools - 1)

    def act(self, instance: ToolInstance, state: ToolState, action: Ints) -> tuple[ToolState, Mask]:
        """Call one tool a row."""
        tool = np.maximum(action, 0)
        needed = instance.map.needs_bits[np.arange(len(tool)), tool]
        called = bits.single(tool)
        valid = (action >= 0) & (state.loaded & called == 0) & (needed & ~state.loaded == 0)
        gained = called * valid
        return ToolState(state.loaded | gained, state.complete | gained), valid

    def mutate(self, instance: ToolInstance, state: ToolState, draws: Words, moving: Mask) -> ToolState:
        """Unload tools at their rate."""
        lost = bits.pack(noise.low(draws) < self.levels)
        lost[~moving] = 0
        return ToolState(state.loaded & ~lost, state.complete)

    def visible(self, instance: ToolInstance, state: ToolState, action: Ints, dropped: Mask) -> Mask:
        """Show the called tool and its prerequisites, or every tool's loaded state."""
        n = self.tools
        seen = np.zeros((len(action), 3 * n), dtype=bool)
        if self.protocol.sight == "released":
            seen[:, :n] = True
            return seen
        rows, tool = np.arange(len(action)), np.maximum(action, 0)
        shown = instance.map.needs_bits[rows, tool] | bits.single(tool)
        shown &= ~(instance.map.last_shown[rows, tool] * dropped)
        seen[:, :n] = bits.unpack(shown * (action >= 0), n)
        return seen

    def weights(self, static: ToolMap) -> Floats:
        """Count the needed tools that depend on each tool, itself included."""
        n = self.tools
        needed = static.ancestor_bits[:, -1] | bits.single(n - 1)
        depends = bits.unpack(static.ancestor_bits | bits.single(np.arange(n)), n)
        members = bits.unpack(needed, n)
        counts = np.einsum("ro,rot->rt", members.view(np.int8), depends.view(np.int8)).astype(np.float64)
        return np.tile(counts, (1, 3))

    def roles(self, static: ToolMap, place: Ints, action: Ints, rows: Rows = slice(None)) -> Floats:
        """Look the roles up by the called tool."""
        _, choices, fields = static.role_halves.shape
        called = np.where(action >= 0, action, choices - 1)
        chosen = np.arange(len(static.needs))[rows] * choices + called
        return static.role_halves.reshape(-1, fields).take(chosen, axis=0) * 0.5

    def used_fields(self, static: ToolMap, place: Ints, action: Ints) -> Mask:
        """Mark what the call uses; without the task graph these are the called tool's own fields."""
        if self.protocol.structure == "graph":
            return super().used_fields(static, place, action)
        n = self.tools
        used = np.zeros((len(action), 3 * n), dtype=bool)
        rows = np.flatnonzero(action >= 0)
        used[rows, action[rows]] = True
        used[rows, n + action[rows]] = True
        return used
