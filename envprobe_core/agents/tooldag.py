"""How the simulated agent reads and plans on ToolDAGWorld."""

from __future__ import annotations

import numpy as np

from envprobe_core import bits
from envprobe_core.agents.base import Implied, join
from envprobe_core.belief import BeliefTable
from envprobe_core.bits import Bits
from envprobe_core.worlds.base import WAIT, Ints, Observation, Values
from envprobe_core.worlds.tooldag import ToolDAGWorld, ToolMap

FAILURE_MEMORY = 5


class ToolMind:
    """Loads the lowest needed tool; without the task graph, the lowest that has not failed lately."""

    def __init__(self, world: ToolDAGWorld, static: ToolMap) -> None:
        """Take the static task graph; it is used only where the protocol makes it known."""
        self.world = world
        self.static = static
        self.knows_graph = world.protocol.structure == "graph"
        rows = len(static.needs)
        self.taken = np.zeros(rows, dtype=np.int64)
        self.failed_at = np.full((rows, world.tools), -FAILURE_MEMORY, dtype=np.int64)

    def remember(self, step: int, observation: Observation) -> None:
        """Note failed calls, by the count of own task actions."""
        if self.knows_graph:
            return
        called = np.flatnonzero((observation.action >= 0) & observation.fresh)
        failed = called[~observation.valid[called]]
        self.failed_at[failed, observation.action[failed]] = self.taken[failed]
        self.taken[called] += 1

    def implied(self, observation: Observation) -> Implied:
        """Conclude from a call's validity: it completed the tool; its dependencies were satisfied."""
        n = self.world.tools
        done = np.flatnonzero(observation.valid)
        complete = done, 2 * n + observation.action[done], np.ones(len(done), dtype=np.int8)
        if self.knows_graph:
            return complete
        rows = np.flatnonzero(observation.action >= 0)
        tool, valid = observation.action[rows], observation.valid[rows]
        told = valid | (observation.value[rows, tool] == 0)
        satisfied = rows[told], n + tool[told], valid[told].astype(np.int8)
        return join(complete, satisfied)

    def derived(self, table: BeliefTable, observation: Observation, told: Ints) -> tuple[Ints, Values]:
        """Conclude from news about tools whether the tools that need them have their dependencies.

        Returns:
            The positions row * fields + field that are concluded, and their values, [conclusion].
        """
        n, needs = self.world.tools, self.static.needs_bits.T  # [tool, row]
        news = bits.pack(observation.seen[:, :n])
        answered = np.flatnonzero((told >= 0) & (told < n))
        news[answered] |= bits.single(told[answered])
        satisfied = needs & ~self._loaded(table) == 0
        concluded = np.flatnonzero(needs & news != 0)
        tool = concluded // len(news)
        row = concluded - tool * len(news)
        return row * self.world.fields + n + tool, satisfied.ravel().take(concluded).view(np.int8)

    def plan(self, table: BeliefTable, observation: Observation) -> Ints:
        """Call the lowest tool that is needed and not believed loaded; wait when the target is done."""
        n = self.world.tools
        missing = ~self._loaded(table) & (bits.single(n) - 1)
        if self.knows_graph:
            wanted = self._needed(missing) & missing
        else:
            rested = self.taken[:, None] - self.failed_at >= FAILURE_MEMORY
            wanted = missing & bits.pack(rested)
            wanted = np.where(wanted == 0, missing, wanted)
        tool = np.where(wanted == 0, n - 1, bits.lowest(wanted))
        return np.where(table.value[:, 3 * n - 1] == 1, WAIT, tool)

    def _loaded(self, table: BeliefTable) -> Bits:
        return bits.pack((table.value == 1)[:, : self.world.tools])

    def _needed(self, missing: Bits) -> Bits:
        last = self.world.tools - 1
        needed = np.full(len(missing), bits.single(last), dtype=np.int32)
        for tool in range(last, 0, -1):
            open_here = (needed & missing) >> np.int32(tool) & bits.ONE
            needed |= self.static.needs_bits[:, tool] * open_here
        return needed
