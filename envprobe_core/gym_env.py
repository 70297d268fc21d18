"""The worlds as Gymnasium environments (extra `[gym]`): importing this module registers them.

>>> import gymnasium
>>> import envprobe_core.gym_env  # registers ToolDAG-v0, ObjectState-v0 and GraphNav-v0
>>> env = gymnasium.make("envprobe/ToolDAG-v0", regime="S1")
>>> observation, info = env.reset(seed=0)
>>> env.action_space, info["probes_left"]
(Discrete(21), 5)
>>> observation, reward, terminated, truncated, info = env.step(0)  # call tool 0
>>> observation["value"][0].item(), reward, terminated, truncated
(1, 0.0, False, False)
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, get_args

import gymnasium
import numpy as np
from gymnasium import spaces

from envprobe_core.engine.records import CERTAIN, FIELDS, NONE, STALENESS_LIMIT, UNKNOWN, WAIT
from envprobe_core.environment import Observation, SimulatedAgent, make_environment
from envprobe_core.errors import InputError
from envprobe_core.worlds import OF_THE_PAPER

Reward = Literal["success", "accuracy"]
IDS = {world.NAME: f"envprobe/{world.TITLE.removesuffix('World')}-v0" for world in OF_THE_PAPER}


class ProbingEnv(gymnasium.Env[dict[str, Any], np.int64]):
    """One of the paper's worlds, in which to look is an action.

    ## Description
    Load tools, fetch an object or reach a node while the world changes behind the agent's back. An agent
    that keeps notes fills in the belief table and proposes a task action; the learner decides what is done:
    that, another action, or a probe, which tells the true value of one field and takes a step.

    ## Action space
    `Discrete(A + 1 + n)`, of a world with A task actions and n belief fields:

    | action | meaning |
    |---|---|
    | 0 .. A-1 | a task action (`env.unwrapped.world.action_names`) |
    | A | wait |
    | A+1 .. A+n | probe field 0 .. n-1 (`env.unwrapped.world.field_names`) |

    A probe beyond the budget, or of a field that the instance lacks, is a wait; `info["action_mask"]` tells.

    ## Observation space
    A `Dict`: of the belief table `value` (-1 unknown), `staleness` (steps), `confidence` (percent);
    `in_view`; the paper's `c` and, for the proposed action, `d`; all [field]. `proposal` (-1 waits), `place`,
    `valid` (whether the last task action worked), `probed` (the field just probed, or -1), `probes_left`,
    `step`.

    ## Rewards
    `reward="success"`: 1 at the step that first reaches the goal, else 0. `reward="accuracy"`: the share of
    fields believed right after the step, divided by H, so that a whole episode's return is the mean
    belief accuracy. From either `probe_cost` is taken for each probe.

    ## Episode end
    Truncated at the horizon H. Terminated at the goal only where the protocol ends episodes there
    (`protocol="released"` or `"paper:end=success"`); as the paper is written the episode goes on. The last
    `info` holds `measures`, the row of the episode table.

    ## Arguments
    `regime` S1, S2, ...; `protocol`; `profile` of the agent that keeps the notes, by default without errors;
    `budget` of probes, by default H // 4; `reward`; `probe_cost`.

    ## Seeds
    `reset(seed=s)` is the episode of seed s in `envprobe_core.run` too: the same instance, mutations and
    noise for any learner and policy (common random numbers). Without a seed the next one is drawn from
    `np_random`.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(
        self,
        world: str,
        regime: str = "S2",
        protocol: str = "paper",
        profile: str = "perfect",
        budget: int | None = None,
        reward: Reward = "success",
        probe_cost: float = 0.0,
    ) -> None:
        if reward not in get_args(Reward):
            raise InputError(f"reward {reward!r} is none of {', '.join(get_args(Reward))}")
        self.environment = make_environment(
            world, regime=regime, protocol=protocol, profile=profile, budget=budget
        )
        self.world, self.reward, self.probe_cost = self.environment.world, reward, probe_cost
        self._agent = SimulatedAgent(self.environment)
        n, actions = self.world.fields, self.world.actions
        highest = self.world.domain.astype(np.int32) - 1
        numbers = {"value": (UNKNOWN, highest), "staleness": (0, STALENESS_LIMIT), "confidence": (0, CERTAIN)}
        self.action_space = spaces.Discrete(actions + 1 + n)
        self.observation_space = spaces.Dict(
            {name: spaces.Box(low, high, (n,), np.int32) for name, (low, high) in numbers.items()}
            | {name: spaces.Box(0.0, 1.0, (n,), np.float64) for name in "cd"}
            | {
                "in_view": spaces.MultiBinary(n),
                "proposal": spaces.Discrete(actions + 1, start=WAIT),
                "place": spaces.Discrete(FIELDS),
                "valid": spaces.Discrete(2),
                "probed": spaces.Discrete(n + 1, start=NONE),
                "probes_left": spaces.Discrete(self.environment.budget + 1),
                "step": spaces.Discrete(self.environment.horizon + 1),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The first observation and info of a seed's episode."""
        super().reset(seed=seed)
        own = int(self.np_random.integers(2**31)) if seed is None else seed
        return self._shown(self.environment.reset(own))

    def step(self, action: np.int64) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Observation, reward, terminated, truncated and info after an action or a probe."""
        field = int(action) - self.world.actions - 1
        reached = bool(self.environment.episodes.block.succeeded[0])
        if field >= 0 and self._action_mask()[int(action)]:
            observation, cost = self.environment.probe(field), self.probe_cost
        else:
            acts = int(action) < self.world.actions
            observation, cost = self.environment.step(int(action) if acts else WAIT), 0.0
        shown, info = self._shown(observation)
        terminated = observation.last and info["success"] and self.world.protocol.end == "success"
        gain = float(info["success"] and not reached)
        if self.reward == "accuracy":
            gain = info["accuracy"] / self.environment.horizon
        return shown, gain - cost, terminated, observation.last and not terminated, info

    def _action_mask(self) -> np.ndarray:
        """Whether each action does what it says, [action]: probes do while the budget lasts."""
        block, first = self.environment.episodes.block, self.world.actions + 1
        mask = np.zeros(int(self.action_space.n), np.int8)
        mask[:first] = 1
        if block.probes_used[0] < self.environment.budget:
            mask[first : first + self.environment.fields] = 1
        return mask

    def _shown(self, observation: Observation) -> tuple[dict[str, Any], dict[str, Any]]:
        """Let the agent take notes; return observation and info. Behind an instance's fields all is empty."""
        belief, n = self._agent.update(observation), self.environment.fields
        proposal, block = self._agent.propose(), self.environment.episodes.block
        shown: dict[str, Any] = {
            name: np.zeros(space.shape, space.dtype)
            for name, space in self.observation_space.spaces.items()
            if space.shape
        }
        shown["value"][:] = UNKNOWN
        for name in ("value", "staleness", "confidence"):
            shown[name][:n] = getattr(belief, name)
        shown["in_view"][list(observation.seen)] = 1
        info: dict[str, Any] = {}
        if observation.last:
            recording = self.environment.finish(belief)
            info["measures"] = {name: column.item() for name, column in recording.measures.items()}
        else:
            view = self.environment.view(belief, proposal)
            shown["c"][:n], shown["d"][:n] = view.c, view.d
        left = self.environment.budget - int(block.probes_used[0])
        shown |= {"proposal": proposal, "place": observation.place, "valid": int(observation.valid)}
        shown |= {"probed": observation.probed, "probes_left": left, "step": observation.step}
        right = block.table.value[0, :n] == block.gold[0, :n]
        info |= {"success": bool(block.succeeded[0]), "accuracy": float(right.mean()), "probes_left": left}
        return shown, info | {"action_mask": self._action_mask()}


for _world, _id in IDS.items():
    gymnasium.register(_id, f"{__name__}:ProbingEnv", kwargs={"world": _world})
