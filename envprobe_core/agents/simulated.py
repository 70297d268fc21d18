"""The simulated agent: plans on its beliefs and errs as its profile says; it never reads gold.

Source: book/definitions.md, "The simulated agent"; every behaviour is an assumption, none is the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core import noise
from envprobe_core.agents.base import RISK_LOW, RISK_MEDIUM, Mind, Reply, Request
from envprobe_core.agents.graphnav import GraphMind
from envprobe_core.agents.objectstate import RoomMind
from envprobe_core.agents.tooldag import ToolMind
from envprobe_core.belief import CERTAIN, BeliefTable
from envprobe_core.noise import Stream, Words
from envprobe_core.profiles import AgentProfile
from envprobe_core.worlds.base import UNKNOWN, WAIT, Floats, Ints, Observation, Values, World

HEDGED_BELOW = 70
LONGEST_MISREPORT = 10
SINGLE_REPORT_CONFIDENCE = 90
REPORTED_DEPENDENCY = 0.5 + 0.5 * min(1.0, 1 / 3)
_OVERWRITE, _DISTRACTED, _SLIP, _QUIT = 0, 1, 2, 3
IMPULSES = 4
MINDS: dict[str, Any] = {"tooldag": ToolMind, "objectstate": RoomMind, "graphnav": GraphMind}


class SimulatedAgent:
    """Answers for a block of rows, each with its own seed and profile."""

    def __init__(
        self,
        world: World,
        static: Any,
        seeds: npt.ArrayLike,
        profiles: Sequence[AgentProfile],
        profile_of_row: Ints,
    ) -> None:
        """Set up a block.

        Args:
            world: the world, for its rules; its gold is never asked for.
            static: the static task graph of every row.
            seeds: [row].
            profiles: the distinct profiles.
            profile_of_row: [row], index into profiles.
        """
        self.world = world
        self.mind: Mind = MINDS[world.name](world, static)
        self.static = static
        self.reports = world.protocol.structure == "reported"
        self.draw_from(seeds)

        def column(name: str) -> npt.NDArray[Any]:
            values = np.array([getattr(profile, name) for profile in profiles])
            return values[0] if len(profiles) == 1 else values[profile_of_row]

        self._omit = noise.level16(column("omit"))
        self._hedge = noise.level16(column("hedge"))
        self._misreport = noise.level16(column("misreport"))
        self._overwrite = noise.level32(column("overwrite"))
        self._slip = noise.level32(column("slip"))
        self._quit = noise.level32(column("quit"))
        self._has_quit = np.zeros(len(profile_of_row), dtype=bool)
        self._confidence = column("confidence").astype(np.int32)
        self._spread = column("spread").astype(np.int32)
        rows = len(profile_of_row)
        self._fade = np.empty((rows, world.fields), dtype=np.uint8)
        self._fade[:] = column("fade")[..., None]
        self._single = np.flatnonzero(np.broadcast_to(column("single_report"), rows))
        self._risk = np.full(rows, RISK_LOW, dtype=np.int8)

    def draw_from(self, seeds: npt.ArrayLike) -> None:
        """Draw all errors from these seeds, [row]; rows that share a seed share its draws."""
        code, fields = self.world.code, self.world.fields
        self._write_key = noise.field_keys(noise.keys(seeds, code, Stream.WRITE), fields).ravel()
        self._staleness_key = noise.field_keys(noise.keys(seeds, code, Stream.STALENESS), fields).ravel()
        self._impulse_key = noise.keys(seeds, code, Stream.IMPULSE)

    def resume(self, step: int, risk: npt.NDArray[np.int8]) -> None:
        """Take episodes over before a step: with the risk last reported, [row], and quit if they had quit."""
        self._risk = risk
        for past in range(1, step):
            self._has_quit |= noise.low(noise.word(self._impulse_key, past, _QUIT)) < self._quit

    def answer(self, request: Request) -> Reply:
        """Fade, write the news, err, and propose the next action."""
        step, table, observation = request.step, request.table, request.observation
        impulses = noise.words(self._impulse_key, step, IMPULSES)
        self.mind.remember(step, observation)
        if step > 0:
            self._fade_others(table, request.told)
            self._write(step, table, *self._news(observation))
            if isinstance(self.mind, ToolMind) and self.mind.knows_graph:
                self._write(step, table, *self.mind.derived(table, observation, request.told))
            self._spoil(step, table, impulses[:, _OVERWRITE])
            if observation.distractor:
                self._spoil(step, table, impulses[:, _DISTRACTED])
            acted = (observation.action >= 0) & observation.fresh
            risk = np.where(observation.valid, RISK_LOW, RISK_MEDIUM)
            self._risk = np.where(acted, risk, self._risk).astype(np.int8)
        action = self._strayed(step, impulses, self.mind.plan(table, observation))
        return self._reply(table, observation, action)

    def _fade_others(self, table: BeliefTable, told: Ints) -> None:
        fade = np.minimum(table.confidence, self._fade)
        answered = np.flatnonzero(told >= 0)
        fade[answered, told[answered]] = 0
        table.confidence -= fade

    def _news(self, observation: Observation) -> tuple[Ints, Values]:
        """Gather what is seen and what the last own action implies: positions and values, [news]."""
        row, field, value = self.mind.implied(observation)
        new = observation.fresh[row] & ~observation.seen[row, field]
        known, news = observation.seen.copy(), observation.value.copy()
        known[row[new], field[new]] = True
        news[row[new], field[new]] = value[new]
        where = np.flatnonzero(known)
        return where, news.ravel().take(where)

    def _write(self, step: int, table: BeliefTable, where: Ints, value: Values) -> None:
        """Write news at positions row * fields + field, but for omissions."""
        draws = noise.at_clock(self._write_key.take(where), step)
        kept = np.flatnonzero(noise.quarter(draws, 0) >= self._of(self._omit, where))
        self._put(step, table, where.take(kept), value.take(kept), draws.take(kept))

    def _put(self, step: int, table: BeliefTable, where: Ints, value: Values, draws: Words) -> None:
        """Write values at positions row * fields + field, with the confidence and age the profile reports."""
        below = noise.quarter_choice(noise.quarter(draws, 2), self._of(self._spread, where) + 1)
        confidence = self._of(self._confidence, where) - below
        hedged = np.flatnonzero(noise.quarter(draws, 1) < self._of(self._hedge, where))
        confidence[hedged] = noise.quarter_choice(noise.quarter(draws[hedged], 2), HEDGED_BELOW)
        confidence[value == UNKNOWN] = 0
        staleness = np.zeros(len(where), dtype=np.uint8)
        wrong = np.flatnonzero(noise.quarter(draws, 3) < self._of(self._misreport, where))
        lies = noise.at_clock(self._staleness_key[where[wrong]], step)
        staleness[wrong] = 1 + noise.high_choice(lies, LONGEST_MISREPORT)
        table.put(where, value, staleness, confidence)

    def _spoil(self, step: int, table: BeliefTable, impulse: Words) -> None:
        """Overwrite a random field with a random value, now and then."""
        row = np.flatnonzero(noise.low(impulse) < self._overwrite)
        field = noise.quarter_choice(noise.quarter(impulse[row], 2), self.world.fields)
        value = noise.quarter_choice(noise.quarter(impulse[row], 3), self.world.domain[field])
        where = row * self.world.fields + field
        draws = noise.at_clock(self._write_key[where], step)
        self._put(step, table, where, value.astype(np.int8), draws)

    def _of(self, column: npt.NDArray[Any], where: Ints) -> npt.NDArray[Any]:
        """Return a profile column's entries at positions; one profile for all rows needs no look-up."""
        return column if column.ndim == 0 else column[where // self.world.fields]

    def _strayed(self, step: int, impulses: Words, action: Ints) -> Ints:
        """Slip to a random action now and then; wait for good once it takes its task for finished."""
        slips = np.flatnonzero(noise.low(impulses[:, _SLIP]) < self._slip)
        action[slips] = noise.high_choice(impulses[slips, _SLIP], self.world.actions)
        if step > 0:
            self._has_quit |= noise.low(impulses[:, _QUIT]) < self._quit
        action[self._has_quit] = WAIT
        return action

    def _reply(self, table: BeliefTable, observation: Observation, action: Ints) -> Reply:
        """Report c, d and risk where the protocol asks for them, and one belief only by habit."""
        criticality: Floats | None = None
        dependency: Floats | None = None
        single = self._single
        if self.reports or len(single):
            known = table.value != UNKNOWN
            used = self.world.used_fields(self.static, observation.place, action) & known
        if len(single):
            first = np.argmax(used[single], axis=1)
            named = used[single, first]
            table.staleness[single] = 0
            table.confidence[single] = CERTAIN
            table.confidence[single[named], first[named]] = SINGLE_REPORT_CONFIDENCE
        if self.reports:
            dependency = np.where(used, REPORTED_DEPENDENCY, 0.0)
            criticality = used.astype(np.float64)
            goal = list(self.world.goal_fields)
            criticality[:, goal] = np.maximum(criticality[:, goal], 0.5 * known[:, goal])
            if len(single):
                only = np.zeros((len(single), self.world.fields), dtype=bool)
                only[named, first[named]] = True
                criticality[single] *= only
                dependency[single] *= only
        return Reply(action, criticality, dependency, self._risk)
