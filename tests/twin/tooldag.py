"""ToolDAGWorld: tools that need other tools; the last one is the target."""

from collections.abc import Iterable
from dataclasses import dataclass

from .given import LOW, WAIT, bound32


@dataclass(frozen=True)
class Instance:
    """One seed's tools: the prerequisites of each, ascending."""

    prerequisites: list[list[int]]


class Layout:
    """The static task graph: fields loaded(t), satisfied(t), complete(t); action t is call(t)."""

    def __init__(self, instance: Instance) -> None:
        self.prerequisites = instance.prerequisites
        self.required = [frozenset(before) for before in instance.prerequisites]
        self.tools = n = len(instance.prerequisites)
        self.target = n - 1
        self.fields = 3 * n
        self.actions = n
        self.ranges = [2] * self.fields
        self.goal_fields = [self.target, n + self.target, 2 * n + self.target]
        self.ancestors: list[set[int]] = []
        for before in instance.prerequisites:
            self.ancestors.append(set(before).union(*(self.ancestors[p] for p in before)))

    def weights(self) -> list[float]:
        """Return w: how many needed tools depend on the field's tool, itself included."""
        needed = {self.target} | self.ancestors[self.target]
        count = [0.0] * self.tools
        for tool in needed:
            count[tool] += 1.0
            for ancestor in self.ancestors[tool]:
                count[ancestor] += 1.0
        return count * 3

    def roles(self, action: int, here: int) -> dict[int, float]:
        """Return d of an action: 1 for what it reads, .5 for what that depends on."""
        if action == WAIT:
            return {}
        n = self.tools
        role = {}
        for ancestor in self.ancestors[action]:
            role[ancestor] = role[n + ancestor] = 0.5
        for tool in self.prerequisites[action]:
            role[tool] = 1.0
        role[action] = role[n + action] = 1.0
        return role

    def reported_as_used(self, action: int, here: int) -> list[int]:
        """Return the fields an agent without the task graph calls used: the called tool's own."""
        return [] if action == WAIT else [action, self.tools + action]


class World:
    """The truth."""

    def __init__(self, layout: Layout, rates: list[float], sight: str, observation: str) -> None:
        n = layout.tools
        self.layout = layout
        self.local = sight == "local"
        self.drop = bound32(0.4) if observation == "partial" and self.local else 0
        self.bounds = [bound32(rate) for rate in rates[: n - 1]] + [0]  # the target stays loaded
        self.loaded: set[int] = set()
        self.complete = [0] * n
        self.here = 0
        self.success = False

    def gold(self) -> list[int]:
        """Return the true value of every field."""
        loaded = self.loaded
        is_loaded = [1 if tool in loaded else 0 for tool in range(self.layout.tools)]
        satisfied = [1 if required <= loaded else 0 for required in self.layout.required]
        return is_loaded + satisfied + self.complete

    def act(self, action: int) -> bool:
        """Call a tool and return whether that was valid."""
        if action in self.loaded or not self.layout.required[action] <= self.loaded:
            return False
        self.loaded.add(action)
        self.complete[action] = 1
        if action == self.layout.target:
            self.success = True
        return True

    def mutate(self, words: list[int]) -> None:
        """Unload loaded tools at random, never the target."""
        bounds = self.bounds
        self.loaded = {tool for tool in self.loaded if words[tool] & LOW >= bounds[tool]}

    def observe(self, action: int, word: int) -> dict[int, int]:
        """Return what is seen after `action` (after a probe or a wait: WAIT)."""
        loaded = self.loaded
        if not self.local:
            return {tool: 1 if tool in loaded else 0 for tool in range(self.layout.tools)}
        if action == WAIT:
            return {}
        shown = [action, *self.layout.prerequisites[action]]
        if word & LOW < self.drop:
            shown.pop()
        return {tool: 1 if tool in loaded else 0 for tool in shown}


class Mind:
    """What the agent makes of its beliefs."""

    def __init__(self, layout: Layout, sight: str, graph_known: bool) -> None:
        self.layout = layout
        self.graph_known = graph_known
        self.task_actions = 0
        self.failed_at = [-5] * layout.tools  # number of the task action that was its failed call
        self.dependants: list[list[int]] = [[] for _ in range(layout.tools)]
        for tool, before in enumerate(layout.prerequisites):
            for p in before:
                self.dependants[p].append(tool)

    def implied(self, seen: dict[int, int], action: int, valid: bool, origin: int) -> dict[int, int]:
        """Return what the last own action implies."""
        n = self.layout.tools
        news = {}
        if valid:
            news[2 * n + action] = 1
        if not self.graph_known:
            if valid:
                news[n + action] = 1
            elif seen.get(action) == 0:
                news[n + action] = 0
        return news

    def derived(self, value: list[int], seen: Iterable[int], told: int) -> dict[int, int]:
        """Return satisfied(u) of every tool with a prerequisite seen or told just now."""
        if not self.graph_known:
            return {}
        n, required = self.layout.tools, self.layout.required
        touched = set()
        for tool in seen:
            touched.update(self.dependants[tool])
        if 0 <= told < n:
            touched.update(self.dependants[told])
        believed = {tool for tool in range(n) if value[tool] == 1}
        return {n + tool: 1 if required[tool] <= believed else 0 for tool in touched}

    def remember(self, t: int, place: int, action: int, valid: bool | None) -> None:
        """Count own task actions and note when calls failed."""
        if action != WAIT:
            self.task_actions += 1
            if not valid:
                self.failed_at[action] = self.task_actions

    def plan(self, value: list[int], here: int) -> int:
        """Return the next action, from beliefs alone."""
        n, target = self.layout.tools, self.layout.target
        if value[2 * n + target] == 1:
            return WAIT
        if self.graph_known:
            needed = {target}
            action = target
            for tool in range(target, -1, -1):  # prerequisites come before their tool
                if value[tool] != 1 and tool in needed:
                    needed.update(self.layout.prerequisites[tool])
                    action = tool
            return action
        missing = [tool for tool in range(n) if value[tool] != 1]
        coming = self.task_actions + 1
        for tool in missing:
            if coming - self.failed_at[tool] >= 5:
                return tool
        return missing[0] if missing else target
