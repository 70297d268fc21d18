"""GraphNavWorld: nodes, edges that may be locked, and keys; the agent must reach the target."""

from collections.abc import Iterable
from dataclasses import dataclass

from .given import LOW, NONE, UNKNOWN, WAIT, bound32


@dataclass(frozen=True)
class Instance:
    """One seed's graph: edges by their ends, the key of each, and where keys lie."""

    n_nodes: int
    ends: list[tuple[int, int]]
    key_of_edge: list[int]  # -1: not lockable
    key_node: list[int]
    start: int
    target: int


Ways = list[list[int]]  # the neighbours of every node


def distances(ways: Ways, origin: int) -> list[int]:
    """Return how many steps every node is from `origin` (-1: it cannot be reached)."""
    far = [-1] * len(ways)
    far[origin] = 0
    queue = [origin]
    for node in queue:
        for neighbour in ways[node]:
            if far[neighbour] < 0:
                far[neighbour] = far[node] + 1
                queue.append(neighbour)
    return far


def first_step(ways: Ways, origin: int, destination: int) -> int:
    """Return the lowest next node on a shortest way."""
    far = distances(ways, destination)
    return min(node for node in ways[origin] if far[node] == far[origin] - 1)


class Layout:
    """The static task graph: fields own node, location(k), state(e); actions move, collect."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.key = instance.key_of_edge
        self.target = instance.target
        self.nodes = n = instance.n_nodes
        self.keys = len(instance.key_node)
        self.edges = len(instance.ends)
        # the agent's node is field 0, location(k) is field 1 + k
        self.state = 1 + self.keys  # state(e) is field state + e
        self.fields = self.state + self.edges
        self.ranges = [n] + [n + 1] * self.keys + [2] * self.edges
        # move(v) is action v
        self.collect = n
        self.actions = n + self.keys
        self.goal_fields = [0]
        self.edge_between: dict[tuple[int, int], int] = {}
        self.edges_at: list[list[int]] = [[] for _ in range(n)]
        for edge, (a, b) in enumerate(instance.ends):
            self.edge_between[a, b] = self.edge_between[b, a] = edge
            self.edges_at[a].append(edge)
            self.edges_at[b].append(edge)

    def ways(self, edges: Iterable[int]) -> Ways:
        """Return the neighbours of every node over these edges."""
        ways: Ways = [[] for _ in range(self.nodes)]
        for edge in edges:
            a, b = self.instance.ends[edge]
            ways[a].append(b)
            ways[b].append(a)
        return ways

    def weights(self) -> list[float]:
        """Return w: own node and the shortest path 1, keys of locked edges on it .7, else .1."""
        w = [0.1] * self.fields
        w[0] = 1.0
        ways = self.ways(range(self.edges))
        node = self.instance.start
        while node != self.target:
            following = first_step(ways, node, self.target)
            edge = self.edge_between[node, following]
            w[self.state + edge] = 1.0
            if self.key[edge] != NONE:
                w[1 + self.key[edge]] = 0.7
            node = following
        return w

    def roles(self, action: int, here: int) -> dict[int, float]:
        """Return d of an action: 1 for what it reads, .5 for what that depends on."""
        if action == WAIT:
            return {}
        if action >= self.collect:
            return {0: 1.0, 1 + action - self.collect: 1.0}
        role = {0: 1.0}
        edge = self.edge_between.get((here, action), NONE)
        if edge != NONE:
            role[self.state + edge] = 1.0
            if self.key[edge] != NONE:
                role[1 + self.key[edge]] = 0.5
        return role

    def reported_as_used(self, action: int, here: int) -> list[int]:
        """Return the fields an agent without the task graph calls used: those of role 1."""
        return [field for field, role in self.roles(action, here).items() if role == 1]


class World:
    """The truth."""

    def __init__(self, layout: Layout, rates: list[float], sight: str, observation: str) -> None:
        self.layout = layout
        self.local = sight == "local"
        self.drop = bound32(0.4) if observation == "partial" else 0
        self.bounds = [bound32(rate) for rate in rates]
        self.here = layout.instance.start
        self.location = list(layout.instance.key_node)
        self.state = [int(key != NONE) for key in layout.key]
        self.success = False

    def gold(self) -> list[int]:
        """Return the true value of every field."""
        return [self.here, *self.location, *self.state]

    def act(self, action: int) -> bool:
        """Move or collect, and return whether that was valid."""
        layout, n = self.layout, self.layout.nodes
        if action >= layout.collect:
            key = action - layout.collect
            valid = self.location[key] == self.here
            if valid:
                self.location[key] = n
            return valid
        edge = layout.edge_between.get((self.here, action), NONE)
        if edge == NONE:
            return False
        key = layout.key[edge]
        valid = self.state[edge] == 0 or (key != NONE and self.location[key] == n)
        if valid:
            self.here = action
            if action == layout.target:
                self.success = True
        return valid

    def mutate(self, words: list[int]) -> None:
        """Let loose keys drift and lockable edges flip."""
        layout, bounds, n = self.layout, self.bounds, self.layout.nodes
        for key, node in enumerate(self.location):
            if node != n and words[1 + key] & LOW < bounds[1 + key]:
                self.location[key] = (words[1 + key] >> 32) * n >> 32
        for edge, key in enumerate(layout.key):
            field = layout.state + edge
            if key != NONE and words[field] & LOW < bounds[field]:
                self.state[edge] = 1 - self.state[edge]

    def observe(self, action: int, word: int) -> dict[int, int]:
        """Return what is seen: the own node, keys lying here and held, edges here."""
        layout, here, n = self.layout, self.here, self.layout.nodes
        lying = [key for key, node in enumerate(self.location) if node == here]
        if lying and word & LOW < self.drop:
            lying.pop()
        seen = {0: here}
        for key in lying:
            seen[1 + key] = here
        for key, node in enumerate(self.location):
            if node == n:
                seen[1 + key] = n
        if self.local:
            for edge in layout.edges_at[here]:
                seen[layout.state + edge] = self.state[edge]
        return seen


class Mind:
    """What the agent makes of its beliefs."""

    def __init__(self, layout: Layout, sight: str, graph_known: bool) -> None:
        self.layout = layout
        self.sees_states = sight == "local"
        self.known_edges = set(range(layout.edges)) if graph_known else set()
        self.last_seen = [-1] * layout.nodes

    def implied(self, seen: dict[int, int], action: int, valid: bool, origin: int) -> dict[int, int]:
        """Return what the last own action implies."""
        layout = self.layout
        if action >= layout.collect:
            return {} if valid else {1 + action - layout.collect: UNKNOWN}
        edge = layout.edge_between.get((origin, action), NONE)
        if edge == NONE or self.sees_states:
            return {}
        return {layout.state + edge: 0 if valid else 1}

    def derived(self, value: list[int], seen: Iterable[int], told: int) -> dict[int, int]:
        """Return nothing: only tools have derived news."""
        return {}

    def remember(self, t: int, place: int, action: int, valid: bool | None) -> None:
        """Note when this node was last seen, and which edges are here."""
        self.last_seen[place] = t
        self.known_edges.update(self.layout.edges_at[place])

    def plan(self, value: list[int], here: int) -> int:
        """Return the next action, from beliefs alone (the own node is one of them)."""
        layout, n = self.layout, self.layout.nodes
        own = value[0] if value[0] != UNKNOWN else 0
        if own == layout.target:
            return WAIT
        ways = layout.ways([edge for edge in self.known_edges if self.passable(value, edge)])
        far = distances(ways, own)
        if far[layout.target] >= 0:
            return first_step(ways, own, layout.target)
        for key in range(layout.keys):
            node = value[1 + key]
            if 0 <= node < n and far[node] >= 0:
                return layout.collect + key if node == own else first_step(ways, own, node)
        # explore
        others = [node for node in range(n) if far[node] > 0]
        if others:
            return first_step(ways, own, min(others, key=lambda v: (self.last_seen[v], v)))
        return min(layout.ways(self.known_edges)[own], default=WAIT)

    def passable(self, value: list[int], edge: int) -> bool:
        """Return whether an edge is not believed locked, or its key believed held."""
        if value[self.layout.state + edge] != 1:
            return True
        key = self.layout.key[edge]
        return key != NONE and value[1 + key] == self.layout.nodes
