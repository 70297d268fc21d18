"""Every policy against the best possible (ours): exact on small worlds, under ceilings on full-size ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from envprobe_core.analyses.frontier import COMPETING, ORACLES
from envprobe_core.analyses.voi import VARIANTS, WEIGHTED
from envprobe_core.bound.ceilings import accuracy_ceiling, has_ceiling, success_ceiling
from envprobe_core.bound.exact import Leaves, accuracy, leaves, run
from envprobe_core.bound.optimum import (
    Options,
    Point,
    Solution,
    continuation,
    frontier,
    random_policy,
    reached_under,
    worth,
)
from envprobe_core.bound.small import MUTATIONS, SMALL_TOOLS, SOLVED, Setting, can_be_solved
from envprobe_core.bound.states import ACT, HIDDEN, InformationTree, grow
from envprobe_core.cells import Names, find_profile, find_protocols, find_regime, parse_seeds
from envprobe_core.engine.records import UNKNOWN, WAIT
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES, THRESHOLD, Policy
from envprobe_core.worlds import WORLDS

SHAPES = ("chain", "two prerequisites")  # what the tools of a small world need
SHOWN = (*COMPETING, "placebo", *ORACLES, *VARIANTS)
LEAST = 1e-6  # a distance below which there is nothing to close
LOADED = np.arange(HIDDEN)[:, None] >> np.arange(SMALL_TOOLS) & 1
"""Which tools are loaded in each hidden state, [hidden, tool]."""


@dataclass(frozen=True)
class Board:
    """One small world with everything known about it."""

    setting: Setting
    threshold: float  # of the policies that have one
    leaves: dict[str, Leaves]  # of every policy but Random, by name

    @property
    def shape(self) -> str:
        """Return what the tools need."""
        return SHAPES[self.setting.density]

    @property
    def key(self) -> dict[str, object]:
        """Return what tells this world from the others, by column name."""
        return {"tools": self.shape, "protocol": self.setting.protocol.name, "rate": self.setting.rate}

    @cached_property
    def tree(self) -> InformationTree:
        """Return the information states of a deployable policy."""
        return _tree(self.setting)

    @cached_property
    def optimum(self) -> list[Solution]:
        """Return the corners of the optimum over all weights."""
        return frontier(self.tree)

    @cached_property
    def told_gold(self) -> list[Solution]:
        """Return the corners of the optimum of a policy that is shown gold."""
        return frontier(grow(self.setting, sees_gold=True))

    @cached_property
    def points(self) -> dict[str, Point]:
        """Return every policy's exact accuracy and success."""
        exact = {name: own.means(self.setting.rate) for name, own in self.leaves.items()}
        first = next(iter(exact))
        return {first: exact.pop(first), "random": _random(self.setting), **exact}

    def corner(self, weight: float, *, sees_gold: bool = False) -> Solution:
        """Return the corner of the optimum that is best for a weight."""
        corners = self.told_gold if sees_gold else self.optimum
        return max(corners, key=lambda one: worth(weight, (one.accuracy, one.success)))

    def best(self, weight: float, *, sees_gold: bool = False) -> float:
        """Return the greatest U of any policy for a weight."""
        corner = self.corner(weight, sees_gold=sees_gold)
        return worth(weight, (corner.accuracy, corner.success))

    def distance(self, name: str, weight: float) -> float:
        """Return how far a policy's U is below the optimum."""
        return self.best(weight) - worth(weight, self.points[name])

    def closed(self, weight: float) -> float:
        """Return the share of Simple's distance that VoI with this weight closes; NaN where there is none."""
        far = self.distance("simple", weight)
        return float("nan") if far < LEAST else 1.0 - self.distance(WEIGHTED[weight].name, weight) / far

    def loaded_at_end(self, weight: float) -> float:
        """Return the expected number of loaded tools at the end under the optimum for a weight."""
        reached = reached_under(self.tree, self.corner(weight))[-1]
        return float(reached @ (self.tree.layers[-1].posterior @ LOADED.sum(axis=1)))


def policies() -> dict[str, Policy]:
    """Return the policies that draw nothing, VoI's weights among them, by name."""
    weighted = {policy.name: policy for policy in WEIGHTED.values()}
    return {name: POLICIES[name] for name in SHOWN if name != "random"} | weighted


def load_boards(protocols: Names, horizon: int, budget: int, threshold: float = THRESHOLD) -> list[Board]:
    """Solve the small worlds and run every policy on them.

    Returns:
        A board for each protocol that can be solved, shape and mutation level, in this order.

    Raises:
        InputError: if no protocol can be.
    """
    solvable = [protocol for protocol in find_protocols(protocols) if can_be_solved(protocol)]
    if not solvable:
        raise InputError(f"protocols {protocols!r}: none of them can be solved exactly; {SOLVED}")
    boards = []
    for protocol, density in product(solvable, range(len(SHAPES))):
        setting = Setting(density, MUTATIONS[-1], horizon, budget, protocol)
        found = {
            name: _leaves(setting, policy, threshold if policy.has_threshold else THRESHOLD)
            for name, policy in policies().items()
        }
        boards += [Board(replace(setting, mutation=level), threshold, found) for level in MUTATIONS]
    return boards


_leaves = lru_cache(maxsize=256)(leaves)  # of policies that no threshold moves, and of the last thresholds
_tree = lru_cache(maxsize=16)(grow)


@lru_cache(maxsize=16)
def _random(setting: Setting) -> Point:
    return random_policy(_tree(setting))


def distances(boards: Sequence[Board], weights: Sequence[float]) -> pd.DataFrame:
    """Return distances below the optimum, in points of U: `tools protocol rate weight policy distance`."""
    return pd.DataFrame(
        board.key | {"weight": weight, "policy": name, "distance": 100 * board.distance(name, weight)}
        for board in boards
        for weight in weights
        for name in SHOWN
    )


def check_sampling(board: Board, seeds: str) -> pd.DataFrame:
    """Run every policy on the engine's own draws and compare with its exact means.

    Returns:
        One row a policy and measure: `policy measure exact sample score`, the score in standard errors.
    """
    chosen, rows = parse_seeds(seeds), []
    for name, policy in policies().items():
        own, found = board.leaves[name], run(board.setting, policy, chosen, board.threshold)
        chance = own.chances(board.setting.rate)
        measures = (("accuracy", accuracy(found), own.right), ("success", found.success, own.success))
        for (measure, drawn, values), exact in zip(measures, own.means(board.setting.rate), strict=True):
            error = np.sqrt((chance * (values - exact) ** 2).sum() / len(chosen))
            apart = float(drawn.mean() - exact)
            score = apart / error if error > LEAST else float(abs(apart) > LEAST)
            rows.append((name, measure, exact, drawn.mean(), score))
    return pd.DataFrame(rows, columns=["policy", "measure", "exact", "sample", "score"])


class Worked(NamedTuple):
    """One decision worked out; branches are pairs of the chance of what is shown and the accuracy then."""

    action: str  # the agent's proposal
    tools: pd.DataFrame  # `tool loaded believed`: its chance given all that was shown, and the agent's table
    choices: pd.DataFrame  # `choice branches accuracy success worth`, best first


def work_out(board: Board, weight: float) -> Worked:
    """Work out the last decision, in the likeliest state in which the best policy probes, if it does."""
    tree, best, world = board.tree, board.corner(weight), board.setting.world
    t = board.setting.horizon - 1
    layer, steps, reached = tree.layers[t], tree.steps[t], reached_under(tree, best)[t]
    probing = best.choices[t] != ACT
    state = int(np.argmax(reached * np.where(probing.any(), probing, 1)))
    action = int(layer.action[state])
    proposal = "wait" if action == WAIT else world.action_names[action]
    accuracy_then, success_then = continuation(tree, best, t + 1)
    options, rows = Options(steps), []
    for choice in options.choice[options.state == state].tolist():
        mine = np.flatnonzero((steps.state == state) & (steps.choice == choice))
        chance, child = steps.chance[mine], steps.child[mine]
        title = proposal if choice == ACT else f"probe {world.field_names[choice]}"
        branches = list(zip(chance.tolist(), accuracy_then[child].tolist(), strict=True))
        point = float(chance @ accuracy_then[child]), float(chance @ success_then[child])
        rows.append((title, branches, *point, worth(weight, point)))
    rows.sort(key=lambda row: -row[-1])
    held = layer.value[state, :SMALL_TOOLS]
    tools = {
        "tool": np.arange(SMALL_TOOLS),
        "loaded": layer.posterior[state] @ LOADED,
        "believed": np.select([held == UNKNOWN, held == 1], ["unknown", "loaded"], "not loaded"),
    }
    columns = ["choice", "branches", "accuracy", "success", "worth"]
    return Worked(proposal, pd.DataFrame(tools), pd.DataFrame(rows, columns=columns))


def load_ceilings(regime: str, protocols: Names, profile: str, seeds: str) -> pd.DataFrame:
    """Compute the ceilings of the full-size worlds; protocols without one are left out.

    Returns:
        One row a protocol, world and seed: `protocol world seed`, `possible` (whether any policy can complete
        the task) and `most` (the greatest expected A_H left to any policy).
    """
    chosen, level, agent = parse_seeds(seeds), find_regime(regime), find_profile(profile)
    parts = []
    for protocol, world in product(filter(has_ceiling, find_protocols(protocols)), WORLDS):
        common = (world, level, protocol, agent, chosen)
        ceilings = {"possible": success_ceiling(*common), "most": accuracy_ceiling(*common)}
        parts.append(pd.DataFrame({"protocol": protocol.name, "world": world, "seed": chosen} | ceilings))
    return pd.concat(parts, ignore_index=True)
