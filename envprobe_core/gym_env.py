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

Many at once, in lockstep on the compiled engine:

>>> envs = gymnasium.make_vec("envprobe/ToolDAG-v0", num_envs=100, regime="S1")
>>> observation, info = envs.reset(seed=0)
>>> observation["value"].shape
(100, 15)
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import DependencyNotInstalled
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv, VectorObservationWrapper
from gymnasium.vector.utils import batch_space

from envprobe_core import ledger
from envprobe_core.compiled.records import CERTAIN, FIELDS, NONE, STALENESS_LIMIT, UNKNOWN, WAIT, new
from envprobe_core.conditions import Condition, check_seed, is_whole, make_condition
from envprobe_core.engine.batch import (
    Columns,
    episode_dtype,
    kernel_params,
    room_for_logs,
    scored,
    step_batch,
)
from envprobe_core.engine.kernel import ADVANCE, BEGIN, PROPOSE, RECORD, SENSE
from envprobe_core.errors import InputError
from envprobe_core.protocols import parse_protocol
from envprobe_core.worlds import OF_THE_PAPER
from envprobe_core.worlds.base import Floats, Ints, Mask, World

Reward = Literal["success", "accuracy"]
Shown = dict[str, Any]
IDS = {world.NAME: f"envprobe/{world.TITLE.removesuffix('World')}-v0" for world in OF_THE_PAPER}
RENDER_MODES = ("ansi", "rgb_array")
STALE = 10  # steps of staleness at which the paper's term s is 1


class Rows:
    """Episodes of one condition in lockstep, a row each, and what a learner sees of them.

    An agent that keeps notes fills in the belief table and proposes; `step` does what a learner chose.

    Attributes:
        condition, world: what is played.
        seeds: [row], of the episodes as they stand; NONE where none has begun.
        block: the engine's episodes, [row], gold included.
    """

    def __init__(
        self,
        rows: int,
        world: str,
        regime: str,
        protocol: str,
        profile: str,
        budget: int | None,
        reward: Reward,
        probe_cost: float,
    ) -> None:
        """Take a named setting; see `ProbingEnv` for its parts."""
        if reward not in get_args(Reward):
            raise InputError(f"reward {reward!r} is none of {', '.join(get_args(Reward))}")
        number = isinstance(probe_cost, int | float | np.number) and not isinstance(probe_cost, bool)
        if not number or not math.isfinite(probe_cost) or probe_cost < 0:
            raise InputError(f"probe_cost {probe_cost!r} is not a finite number from 0")
        self.condition: Condition = make_condition(
            world, "simple", regime, parse_protocol(protocol), profile, budget
        )
        self.world: World = self.condition.built
        self.horizon, self.budget = self.condition.regime.horizon, self.condition.budget_in_force
        self.seeds = np.full(rows, NONE, np.int64)
        self.block = new(episode_dtype(self.world.name), rows)
        self._reward, self._probe_cost = reward, float(probe_cost)
        self._params = kernel_params(self.condition)
        self._logs = room_for_logs(self.horizon, rows)

    def __deepcopy__(self, memo: dict[int, Any]) -> Rows:
        """Copies of the episodes; what is played is shared, as it never changes."""
        made = copy.copy(self)
        made.seeds, made.block, made._logs = self.seeds.copy(), self.block.copy(), self._logs.copy()
        return made

    @property
    def probing(self) -> int:
        """The first action that is a probe; the one before it waits."""
        return self.world.actions + 1

    @property
    def actions(self) -> int:
        """How many actions there are: the world's, to wait, and a probe of each field."""
        return self.probing + self.world.fields

    @property
    def over(self) -> Mask:
        """Whether an episode is over, [row]."""
        return np.asarray(self.block)["over"] == 1

    def space(self) -> spaces.Dict:
        """The space of one row's observation."""
        n, highest = self.world.fields, self.world.domain.astype(np.int32) - 1
        numbers = {"value": (UNKNOWN, highest), "staleness": (0, STALENESS_LIMIT), "confidence": (0, CERTAIN)}
        return spaces.Dict(
            {name: spaces.Box(low, high, (n,), np.int32) for name, (low, high) in numbers.items()}
            | {name: spaces.Box(0.0, 1.0, (n,), np.float64) for name in "cd"}
            | {
                "in_view": spaces.MultiBinary(n),
                "proposal": spaces.Discrete(self.probing, start=WAIT),
                "place": spaces.Discrete(FIELDS),
                "valid": spaces.Discrete(2),
                "probed": spaces.Discrete(n + 1, start=NONE),
                "probes_left": spaces.Discrete(self.budget + 1),
                "step": spaces.Discrete(self.horizon + 1),
            }
        )

    def begin(self, rows: Ints, seeds: Sequence[int]) -> None:
        """Begin episodes of some seeds in some rows; `look` follows."""
        for seed in seeds:
            check_seed(seed)
        own = np.array(seeds, np.int64)
        begun = new(episode_dtype(self.world.name), len(own))
        step_batch(BEGIN, self._params, begun, seeds=own)
        ledger.note_other("episodes taken step by step", len(own))
        self.seeds[rows], self.block[rows] = own, begun
        self._logs[rows] = room_for_logs(self.horizon, len(own))

    def look(self) -> None:
        """Let the agents of all episodes that go on take notes and propose; c and d follow."""
        np.asarray(self.block)["sight"]["highest"] = np.nan  # no policy scores here
        step_batch(PROPOSE | RECORD | SENSE, self._params, self.block, logs=self._logs)

    def choose(self, actions: Any) -> tuple[Ints, Mask]:
        """The fields that actions probe, or NONE, and which episodes go on, [row].

        Raises:
            InputError: for what is no action.
        """
        given, rows = np.asarray(actions), len(self.seeds)
        if given.shape != (rows,) or given.dtype.kind not in "iu":
            raise InputError(
                f"action {str(actions)[:60]!r}: accepted is a whole number in 0..{self.actions - 1}"
            )
        if (wrong := (given < 0) | (given >= self.actions)).any():
            raise InputError(f"action {given[np.argmax(wrong)]} is not in 0..{self.actions - 1}")
        if (self.seeds == NONE).any():
            raise InputError("the environment has no episode yet; call reset(seed=...) first")
        probes = self.mask()[np.arange(rows), given] & (given >= self.probing)
        block = np.asarray(self.block)
        block["action"] = np.where(probes, block["action"], np.where(given < self.world.actions, given, WAIT))
        return np.where(probes, given - self.probing, NONE), ~self.over

    def step(self, fields: Ints, going: Mask, anew: Sequence[int] = ()) -> Floats:
        """Take every episode that goes on a step further; begin those of seeds `anew` in place of the rest.

        Returns:
            Rewards, [row]; none for those that begin.
        """
        block = np.asarray(self.block)
        reached = block["succeeded"] == 1
        step_batch(ADVANCE, self._params, self.block, logs=self._logs, fields=fields)
        if len(anew):
            self.begin(np.flatnonzero(~going), anew)
        self.look()
        gain = ((block["succeeded"] == 1) & ~reached).astype(float)
        if self._reward == "accuracy":
            gain = self.accuracy() / self.horizon
        return np.where(going, gain - self._probe_cost * (fields != NONE), 0.0)

    def accuracy(self) -> Floats:
        """The share of the instance's fields that are believed right, [row]."""
        block, width = np.asarray(self.block), self.world.fields
        right = (block["table"]["value"] == block["gold"])[:, :width] & self._there()
        return right.sum(axis=1) / block["fields"]

    def mask(self) -> Mask:
        """Whether each action does what it says, [row, action]: probes do while the budget lasts."""
        left = np.asarray(self.block)["probes_used"] < self.budget
        able = np.ones((len(self.seeds), self.actions), bool)
        able[:, self.probing :] = self._there() & left[:, None]
        return able

    def ends(self) -> tuple[Mask, Mask]:
        """Whether episodes are terminated, and truncated, [row]: at the goal, where it ends them, or at H."""
        reached = np.asarray(self.block)["succeeded"] == 1
        terminated = self.over & reached & (self.world.protocol.end == "success")
        return terminated, self.over & ~terminated

    def observations(self) -> Shown:
        """What is seen of each episode, arrays [row] or [row, field]; empty behind an instance's fields."""
        block, width, there = np.asarray(self.block), self.world.fields, self._there()
        table, sight, seen = block["table"], block["sight"], block["observation"]
        shown: Shown = {"value": np.where(there, table["value"][:, :width], UNKNOWN).astype(np.int32)}
        for name in ("staleness", "confidence"):
            shown[name] = np.where(there, table[name][:, :width], 0).astype(np.int32)
        for name in "cd":
            shown[name] = np.where(there & ~self.over[:, None], sight[name][:, :width], 0.0)
        shown["in_view"] = (there & (seen["value"][:, :width] != UNKNOWN)).astype(np.int8)
        numbers = {"proposal": block["action"], "place": seen["place"], "valid": seen["valid"] == 1}
        numbers |= {
            "probed": block["told"],
            "probes_left": self.budget - block["probes_used"],
            "step": block["t"],
        }
        return shown | {name: own.astype(np.int64) for name, own in numbers.items()}

    def infos(self) -> Shown:
        """What stands beside the observations, arrays [row] and [row, action]."""
        block = np.asarray(self.block)
        left = (self.budget - block["probes_used"]).astype(np.int64)
        told = {"success": block["succeeded"] == 1, "accuracy": self.accuracy(), "probes_left": left}
        return told | {"action_mask": self.mask().astype(np.int8)}

    def measures(self, rows: Ints) -> Columns:
        """The measures of some episodes, which are over; `digest` as text, in hexadecimal."""
        block = np.asarray(self.block)[rows]
        found = scored(self._params, self._logs[rows], block["t"], block["succeeded"]).measures
        return found | {"digest": np.array([f"{one:016x}" for one in found["digest"].tolist()], object)}

    def text(self, row: int) -> str:
        """An episode as it stands: each field with what is believed and what is so."""
        block, shown = (
            np.asarray(self.block)[row],
            {name: own[row] for name, own in self.observations().items()},
        )
        names = [*self.world.action_names, "wait"]
        at, left, proposal = shown["step"], shown["probes_left"], names[shown["proposal"]]
        right = f"{self.accuracy()[row]:.0%} right"
        lines = [
            f"{self.world.title} {self.condition.regime.name}, seed {self.seeds[row]}: "
            f"step {at} of {self.horizon}, {left} of {self.budget} probes left, {right}",
            f"proposed: {proposal}{', goal reached' if block['succeeded'] else ''}",
            f"{'field':<28} belief truth staleness confidence",
        ]
        for field, name in enumerate(self.world.field_names):
            if field >= block["fields"]:
                lines.append("")
                continue
            believed, truth = int(shown["value"][field]), int(block["gold"][field])
            numbers = f"{shown['staleness'][field]:>9} {shown['confidence'][field]:>9}%"
            value = "?" if believed == UNKNOWN else str(believed)
            mark = " <- probed" if shown["probed"] == field else " wrong" if believed != truth else ""
            lines.append(f"{name[:28]:<28} {value:>6} {truth:>5} {numbers}{mark}")
        return "\n".join(lines)

    def picture(self, row: int) -> np.ndarray:
        """The text of an episode as an image, [height, width, 3]; of the same size at every step."""
        try:
            from PIL import Image, ImageDraw
        except ImportError:
            raise DependencyNotInstalled("render_mode rgb_array needs pillow: pip install pillow") from None
        height = LINE * (self.world.fields + 3) + 2 * EDGE
        image = Image.new("RGB", (WIDTH, height), "white")
        pen = ImageDraw.Draw(image)
        for number, line in enumerate(self.text(row).splitlines()):
            colour = MARKED.get(line.rpartition(" ")[2], "black")
            pen.text((EDGE, EDGE + LINE * number), line, fill=colour, font=_font())
        return np.asarray(image)

    def _there(self) -> Mask:
        """Whether the instance has a field, [row, field]: a graph may lack some edges."""
        return np.arange(self.world.fields) < np.asarray(self.block)["fields"][:, None]


LINE, EDGE, WIDTH = 15, 8, 620  # pixels of a picture
MARKED = {"wrong": "firebrick", "probed": "navy"}  # colours of lines by their last word


def _font() -> Any:
    """A font all of whose letters are equally wide, as Pillow has one on every machine."""
    from PIL import ImageFont

    return ImageFont.load_default_imagefont()


def _check_mode(mode: str | None) -> str | None:
    if mode is not None and mode not in RENDER_MODES:
        raise InputError(f"render_mode {mode!r} is none of {', '.join(RENDER_MODES)}")
    return mode


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
    What is no action is refused with an `InputError`.

    ## Observation space
    A `Dict`: of the belief table `value` (-1 unknown), `staleness` (steps), `confidence` (percent);
    `in_view`; the paper's `c` and, for the proposed action, `d`; all [field]. `proposal` (-1 waits), `place`,
    `valid` (whether the last task action worked), `probed` (the field just probed, or -1), `probes_left`,
    `step`. `FlatObservation` makes one vector of it.

    ## Rewards
    `reward="success"`: 1 at the step that first reaches the goal, else 0. `reward="accuracy"`: the share of
    fields believed right after the step, divided by H, so that a whole episode's return is the mean
    belief accuracy. From either `probe_cost` is taken for each probe.

    ## Episode end
    Truncated at the horizon H. Terminated at the goal only where the protocol ends episodes there
    (`protocol="released"` or `"paper:end=success"`); as the paper is written the episode goes on. The last
    `info` holds `measures`, the row of the episode table; its `digest` is text, in hexadecimal.

    ## Arguments
    `regime` S1, S2, ...; `protocol`; `profile` of the agent that keeps the notes, by default without errors;
    `budget` of probes, by default H // 4; `reward`; `probe_cost`, from 0; `render_mode` "ansi" or
    "rgb_array": each field with what is believed of it, and what is so.

    ## Seeds
    `reset(seed=s)` is the episode of seed s in `envprobe_core.run` too: the same instance, mutations and
    noise for any learner and policy (common random numbers). Without a seed the next one is drawn from
    `np_random`.

    ## Many at once
    `gymnasium.make_vec(id, num_envs)` steps all episodes in one call of the compiled engine.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": [*RENDER_MODES], "render_fps": 4}

    def __init__(
        self,
        world: str,
        regime: str = "S2",
        protocol: str = "paper",
        profile: str = "perfect",
        budget: int | None = None,
        reward: Reward = "success",
        probe_cost: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        self.rows = Rows(1, world, regime, protocol, profile, budget, reward, probe_cost)
        self.world, self.render_mode = self.rows.world, _check_mode(render_mode)
        self.action_space = spaces.Discrete(self.rows.actions)
        self.observation_space = self.rows.space()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The first observation and info of a seed's episode."""
        super().reset(seed=seed)
        own = int(self.np_random.integers(2**31)) if seed is None else seed
        self.rows.begin(np.array([0]), [own])
        self.rows.look()
        return self._shown()

    def step(self, action: np.int64) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Observation, reward, terminated, truncated and info after an action or a probe."""
        fields, going = self.rows.choose(np.asarray(action)[None])
        if not going[0]:
            raise InputError("the episode has ended; call reset(seed=...) for another")
        reward = float(self.rows.step(fields, going)[0])
        shown, info = self._shown()
        terminated, truncated = (bool(each[0]) for each in self.rows.ends())
        if terminated or truncated:
            info["measures"] = {name: own[0] for name, own in _as_python(self.rows.measures(np.array([0])))}
        return shown, reward, terminated, truncated, info

    def render(self) -> Any:
        """The episode as it stands: as text, or as an image [height, width, 3]."""
        return None if self.render_mode is None else _rendered(self.rows, 0, self.render_mode)

    def _shown(self) -> tuple[dict[str, Any], dict[str, Any]]:
        told = {name: own[0] for name, own in self.rows.infos().items()}
        info = {name: own if own.ndim else own.item() for name, own in told.items()}
        return {name: own[0] for name, own in self.rows.observations().items()}, info


def _as_python(columns: Columns) -> Any:
    """Columns with their values as Python has them."""
    return ((name, column.tolist()) for name, column in columns.items())


def _rendered(rows: Rows, row: int, mode: str) -> Any:
    return rows.text(row) if mode == "ansi" else rows.picture(row)


class ProbingVectorEnv(VectorEnv[dict[str, Any], np.ndarray, np.ndarray]):
    """Many episodes of one world in lockstep, on the compiled engine; each is that of `ProbingEnv`.

    An episode that has ended begins anew at the next step, whose action is of no account (Gymnasium's
    `AutoresetMode.NEXT_STEP`). Arguments, rewards and infos are those of `ProbingEnv`.
    """

    metadata: ClassVar[dict[str, Any]] = ProbingEnv.metadata | {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        num_envs: int,
        world: str,
        regime: str = "S2",
        protocol: str = "paper",
        profile: str = "perfect",
        budget: int | None = None,
        reward: Reward = "success",
        probe_cost: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        if not is_whole(num_envs) or num_envs < 1:
            raise InputError(f"num_envs {str(num_envs)[:60]!r}: accepted is a whole number from 1")
        self.num_envs = num_envs
        self.rows = Rows(num_envs, world, regime, protocol, profile, budget, reward, probe_cost)
        self.world, self.render_mode = self.rows.world, _check_mode(render_mode)
        self.single_action_space = spaces.Discrete(self.rows.actions)
        self.single_observation_space = self.rows.space()
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._luck = [seeding.np_random(None)[0] for _ in range(num_envs)]  # of the seeds that are drawn

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The first observations: of the episodes of one seed and those behind it, or of a seed each."""
        one_each = isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str)
        if seed is not None and not one_each:
            check_seed(seed)
            seed = [int(seed) + row for row in range(self.num_envs)]
        seeds = [None] * self.num_envs if seed is None else seed
        if len(seeds) != self.num_envs:
            raise InputError(f"{len(seeds)} seeds for {self.num_envs} environments")
        for row, own in enumerate(seeds):
            if own is not None:
                self._luck[row] = seeding.np_random(own)[0]
        drawn = [self._draw(row) if own is None else own for row, own in enumerate(seeds)]
        self.rows.begin(np.arange(self.num_envs), drawn)
        self.rows.look()
        return self.rows.observations(), _told(self.rows.infos(), np.ones(self.num_envs, bool))

    def step(
        self, actions: np.ndarray
    ) -> tuple[dict[str, Any], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Observations, rewards, terminated, truncated, [env], and infos."""
        fields, going = self.rows.choose(actions)
        anew = [self._draw(row) for row in np.flatnonzero(~going).tolist()]
        rewards = self.rows.step(fields, going, anew)
        terminated, truncated = self.rows.ends()
        infos, over = _told(self.rows.infos(), np.ones(self.num_envs, bool)), terminated | truncated
        if over.any():
            columns = self.rows.measures(np.flatnonzero(over))
            infos |= _told(
                {"measures": _told({name: _spread(own, over) for name, own in columns.items()}, over)}, over
            )
        return self.rows.observations(), rewards, terminated, truncated, infos

    def render(self) -> tuple[Any, ...] | None:
        """The episodes as they stand: as text, or as images [height, width, 3]."""
        mode = self.render_mode
        return (
            None if mode is None else tuple(_rendered(self.rows, row, mode) for row in range(self.num_envs))
        )

    def _draw(self, row: int) -> int:
        return int(self._luck[row].integers(2**31))


def _told(infos: Mapping[str, Any], there: Mask) -> dict[str, Any]:
    """Infos as Gymnasium's vectors have them: beside each array whether an environment has it, [env]."""
    return {**infos} | {f"_{name}": there for name in infos}


def _spread(column: Any, there: Mask) -> Any:
    """A column of some environments, [env], empty where there is none."""
    spread = np.zeros(len(there), column.dtype) if column.dtype != object else np.full(len(there), None)
    spread[there] = column
    return spread


# ---------------------------------------------------------------- one vector of all that is seen


def flat_space(seen: spaces.Dict) -> spaces.Box:
    """The space of `flat` observations."""
    fields, proposals = seen["c"].shape[0], int(seen["proposal"].n)
    return spaces.Box(-1.0, 1.0, (fields * len(BY_FIELD) + proposals + len(PLAIN),), np.float32)


BY_FIELD = ("known", "value", "s", "u", "in_view", "c", "d", "probed")
PLAIN = ("place", "valid", "probes_left", "step")


def flat(seen: spaces.Dict, shown: Mapping[str, Any]) -> np.ndarray:
    """Observations as vectors of numbers from -1 to 1, [..., feature]; any axes may stand before.

    Of each field in turn `BY_FIELD`: whether a value is believed, which one, the paper's s and u, whether it
    is in view, c and d, whether it was just probed. Then the proposed action, the wait first, and `PLAIN`.

    Args:
        seen: the space of one observation.
        shown: observations.
    """
    value, highest = np.asarray(shown["value"]), np.maximum(seen["value"].high, 1)
    probed = np.asarray(shown["probed"])[..., None] == np.arange(value.shape[-1])
    columns = {
        "known": value != UNKNOWN,
        "value": value / highest,
        "s": np.minimum(shown["staleness"], STALE) / STALE,
        "u": 1.0 - np.asarray(shown["confidence"]) / CERTAIN,
        "in_view": shown["in_view"],
        "c": shown["c"],
        "d": shown["d"],
        "probed": probed,
    }
    fields = np.stack([np.asarray(columns[name], np.float32) for name in BY_FIELD], axis=-1)
    first, count = int(seen["proposal"].start), int(seen["proposal"].n)
    proposed = np.asarray(shown["proposal"])[..., None] == np.arange(first, first + count)
    plain = [np.asarray(shown[name]) / max(int(seen[name].n) - 1, 1) for name in PLAIN]
    parts = [fields.reshape(*value.shape[:-1], -1), proposed, np.stack(plain, axis=-1)]
    return np.concatenate(parts, axis=-1, dtype=np.float32, casting="same_kind")


class FlatObservation(gymnasium.ObservationWrapper):
    """`ProbingEnv` whose observation is one vector; see `flat`."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = flat_space(env.observation_space)

    def observation(self, observation: Mapping[str, Any]) -> np.ndarray:
        """The observation as a vector, [feature]."""
        return flat(self.env.observation_space, observation)


class FlatVectorObservation(VectorObservationWrapper):
    """Many `ProbingEnv`, whichever way they are run, whose observations are vectors; see `flat`."""

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        self.single_observation_space = flat_space(env.single_observation_space)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    def observations(self, observations: Mapping[str, Any]) -> np.ndarray:
        """The observations as vectors, [env, feature]."""
        return flat(self.env.single_observation_space, observations)


for _world, _id in IDS.items():
    gymnasium.register(
        _id,
        f"{__name__}:ProbingEnv",
        vector_entry_point=f"{__name__}:ProbingVectorEnv",
        kwargs={"world": _world},
    )
