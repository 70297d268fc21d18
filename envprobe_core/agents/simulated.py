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
from envprobe_core.worlds.base import UNKNOWN, WAIT, Floats, Ints, Mask, Observation, Values, World

HEDGED_BELOW = 70
LONGEST_MISREPORT = 10
SINGLE_REPORT_CONFIDENCE = 90
REPORTED_DEPENDENCY = 0.5 + 0.5 * min(1.0, 1 / 3)
_OVERWRITE, _DISTRACTED, _SLIP, _QUIT = 0, 1, 2, 3
_MINDS: dict[str, Any] = {"tooldag": ToolMind, "objectstate": RoomMind, "graphnav": GraphMind}


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
        self.mind: Mind = _MINDS[world.name](world, static)
        self.static = static
        self.reports = world.protocol.structure == "reported"
        self._write_key = noise.keys(seeds, world.code, Stream.WRITE)
        self._staleness_key = noise.keys(seeds, world.code, Stream.STALENESS)
        self._impulse_key = noise.keys(seeds, world.code, Stream.IMPULSE)

        def column(name: str) -> npt.NDArray[Any]:
            return np.array([getattr(profile, name) for profile in profiles])[profile_of_row]

        self._omit = noise.level16(column("omit"))
        self._hedge = noise.level16(column("hedge"))
        self._misreport = noise.level16(column("misreport"))
        self._overwrite = noise.level32(column("overwrite"))
        self._slip = noise.level32(column("slip"))
        self._quit = noise.level32(column("quit"))
        self._has_quit = np.zeros(len(profile_of_row), dtype=bool)
        self._confidence = column("confidence").astype(np.int64)
        self._spread = column("spread").astype(np.int64)
        self._fade = column("fade").astype(np.uint8)[:, None]
        self._single = column("single_report").astype(bool)
        rows = len(profile_of_row)
        self._risk = np.full(rows, RISK_LOW, dtype=np.int8)

    def answer(self, request: Request) -> Reply:
        """Fade, write the news, err, and propose the next action."""
        step, table, observation = request.step, request.table, request.observation
        self.mind.remember(step, observation)
        if step > 0:
            self._fade_others(table, request.told)
            implied, value = self.mind.implied(observation)
            implied &= observation.fresh[:, None]
            news = np.where(observation.seen, observation.value, value)
            self._write(step, table, implied | observation.seen, news)
            if isinstance(self.mind, ToolMind) and self.mind.knows_graph:
                first, known, value = self.mind.derived(table, observation, request.told)
                self._write(step, table, known, value, first)
            self._spoil(step, table, _OVERWRITE)
            if observation.distractor:
                self._spoil(step, table, _DISTRACTED)
            acted = (observation.action >= 0) & observation.fresh
            risk = np.where(observation.valid, RISK_LOW, RISK_MEDIUM)
            self._risk = np.where(acted, risk, self._risk).astype(np.int8)
        action = self._strayed(step, self.mind.plan(table, observation))
        return self._reply(table, observation, action)

    def _fade_others(self, table: BeliefTable, told: Ints) -> None:
        fade = np.minimum(table.confidence, self._fade)
        answered = np.flatnonzero(told >= 0)
        fade[answered, told[answered]] = 0
        table.confidence -= fade

    def _write(
        self, step: int, table: BeliefTable, known: Mask, value: Values, first: int = 0
    ) -> None:
        """Write known values [row, field from `first` on], but for omissions."""
        where = np.flatnonzero(known)
        row = where // known.shape[1]
        field = where - row * known.shape[1] + first
        draws = noise.words_at(self._write_key[row], step, field)
        kept = np.flatnonzero(noise.quarter(draws, 0) >= self._omit[row])
        news = value.ravel()[where[kept]]
        self._put(step, table, row[kept], field[kept], news, draws[kept])

    def _put(
        self, step: int, table: BeliefTable, row: Ints, field: Ints, value: Values, draws: Words
    ) -> None:
        """Write values with the confidence and staleness that the profile reports."""
        hedged = noise.quarter(draws, 1) < self._hedge[row]
        sure = self._confidence[row] - noise.quarter_choice(draws, 2, self._spread[row] + 1)
        confidence = np.where(hedged, noise.quarter_choice(draws, 2, HEDGED_BELOW), sure)
        confidence[value == UNKNOWN] = 0
        staleness = np.zeros(len(row), dtype=np.int64)
        wrong = np.flatnonzero(noise.quarter(draws, 3) < self._misreport[row])
        lies = noise.words_at(self._staleness_key[row[wrong]], step, field[wrong])
        staleness[wrong] = 1 + noise.high_choice(lies, LONGEST_MISREPORT)
        table.put(row * self.world.fields + field, value, staleness, confidence)

    def _spoil(self, step: int, table: BeliefTable, impulse: int) -> None:
        """Overwrite a random field with a random value, now and then."""
        draws = noise.word(self._impulse_key, step, impulse)
        row = np.flatnonzero(noise.low(draws) < self._overwrite)
        field = noise.quarter_choice(draws[row], 2, self.world.fields)
        value = noise.quarter_choice(draws[row], 3, self.world.domain[field]).astype(np.int8)
        own = noise.words_at(self._write_key[row], step, field)
        self._put(step, table, row, field, value, own)

    def _strayed(self, step: int, action: Ints) -> Ints:
        """Slip to a random action now and then; wait for good once it takes its task for finished."""
        draws = noise.word(self._impulse_key, step, _SLIP)
        stray = noise.high_choice(draws, self.world.actions)
        action = np.where(noise.low(draws) < self._slip, stray, action)
        if step > 0:
            draws = noise.word(self._impulse_key, step, _QUIT)
            self._has_quit |= noise.low(draws) < self._quit
        return np.where(self._has_quit, WAIT, action)

    def _reply(self, table: BeliefTable, observation: Observation, action: Ints) -> Reply:
        """Report c, d and risk where the protocol asks the agent, and one belief only where it has that habit."""
        criticality: Floats | None = None
        dependency: Floats | None = None
        single = np.flatnonzero(self._single)
        if self.reports or len(single):
            used = self.world.used_fields(self.static, observation.place, action)
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
            criticality[:, goal] = np.maximum(criticality[:, goal], 0.5)
            if len(single):
                only = np.zeros((len(single), self.world.fields), dtype=bool)
                only[named, first[named]] = True
                criticality[single] *= only
                dependency[single] *= only
        return Reply(action, criticality, dependency, self._risk)
