"""VoI for one episode: a belief about every field, the gain of an answer, the price of a step."""

from .given import NONE, UNKNOWN, WAIT
from .graphnav import Layout as GraphNavLayout
from .graphnav import distances
from .objectstate import Layout as ObjectStateLayout
from .tooldag import Layout as ToolDAGLayout

WEIGHTS = {"voi": 0.5, "voi-accuracy": 1.0, "voi-success": 0.0}
PACE, SETTLED, FAR = 0.6, 0.5, 99


def power(base: float, exponent: int) -> float:
    """Raise to a whole power by repeated squaring."""
    result = 1.0
    while exponent:
        if exponent % 2:
            result = result * base
        base = base * base
        exponent //= 2
    return result


class Public:
    """What anybody knows of a world: which fields may change, what an action proves, how far it is."""

    def __init__(self, layout: ToolDAGLayout | ObjectStateLayout | GraphNavLayout, graph_known: bool) -> None:
        self.layout, self.graph_known = layout, graph_known
        self.tools = isinstance(layout, ToolDAGLayout)
        self.rooms = isinstance(layout, ObjectStateLayout)
        fields = range(layout.fields)
        self.kind = [0] * layout.fields
        self.landing = [0.0] * layout.fields
        self.things: range = range(0)
        self.locks: range = range(0)
        self.places = self.done_value = 1
        self.goal = layout.goal_fields[-1]
        if not self.tools:
            self.places = layout.rooms if self.rooms else layout.nodes
            self.things = range(layout.objects) if self.rooms else range(1, layout.state)
            self.locks = range(self.things.stop, self.things.stop + len(layout.key))
            self.kind = [int(field in self.locks) for field in fields]
            for field in fields:
                if field in self.things:
                    self.landing[field] = 1.0 / self.places
                elif field in self.locks:
                    self.landing[field] = 1.0
        if isinstance(layout, GraphNavLayout):
            self.done_value = layout.target
            self.distance = distances(layout.ways(range(layout.edges)), layout.target)

    def keyed(self, field: int) -> bool:
        """Say whether a lock has a key, as far as is known."""
        return not self.graph_known or self.layout.key[field - self.locks.start] != NONE

    def fixed(self, field: int) -> bool:
        """Say whether a field is 0 for good."""
        return self.graph_known and field in self.locks and not self.keyed(field)

    def loose(self, field: int, value: int) -> bool:
        """Say whether a field that has this value could change by itself."""
        if self.tools:
            return field < self.layout.target and value == 1
        if field in self.things:
            return value != self.places
        return field in self.locks and self.keyed(field)

    def touched(self, action: int) -> int:
        """Return the field that an action may change, or -1."""
        if action < 0:
            return NONE
        if self.tools:
            return action
        if action < self.places:
            return NONE
        if self.rooms:
            return (action - self.places) % self.locks.stop
        return 1 + action - self.places

    def to_go(self, value: list[int], here: int) -> int:
        """Count the actions still needed if all goes well."""
        if not self.graph_known:
            return 1
        if not self.tools:
            return self.distance[here]
        needed = {self.layout.target}
        for tool in reversed(range(self.layout.tools)):
            if tool in needed and value[tool] != 1:
                needed |= self.layout.required[tool]
        return sum(value[tool] != 1 for tool in needed)


class Voi:
    """The policy; it is asked at every step and remembers what it saw."""

    def __init__(self, public: Public, weight: float, horizon: int, budget: int, drops: bool) -> None:
        self.public, self.weight, self.horizon, self.budget = public, weight, horizon, budget
        self.fields = range(public.layout.fields)
        self.ranges = public.layout.ranges
        self.overlooks = 0.4 if drops else 0.0
        self.value = [0 if public.fixed(field) else UNKNOWN for field in self.fields]
        self.chance = [float(public.fixed(field)) for field in self.fields]
        self.since = [0 for _ in self.fields]
        self.watched = [False for _ in self.fields]
        kinds = max(public.kind) + 1
        self.changes, self.steps = [0.5] * kinds, [5.0] * kinds
        self.started = self.done = False
        self.finish = [[1.0] + [0.0] * FAR]
        for _ in range(horizon):
            last = self.finish[-1]
            later = [PACE * last[m - 1] + (1.0 - PACE) * last[m] for m in range(1, FAR + 1)]
            self.finish.append([1.0, *later])

    def hazard(self, field: int) -> float:
        """Return the chance that a field changes in a step."""
        kind = self.public.kind[field]
        return self.changes[kind] / self.steps[kind] if self.public.loose(field, self.value[field]) else 0.0

    def count(self, news: dict[int, tuple[float, float]]) -> None:
        """Add changes and steps watched, summed field by field within a kind."""
        for kind in range(len(self.changes)):
            seen = [news[field] for field in sorted(news) if self.public.kind[field] == kind]
            self.changes[kind] += sum(changes for changes, _ in seen)
            total = 0.0
            for _, steps in seen:
                total += steps
            self.steps[kind] += total

    def wait(self, field: int) -> float:
        """Return the mean wait for a change."""
        kind = self.public.kind[field]
        return self.steps[kind] / self.changes[kind]

    def learn(self, news: dict[int, int], touched: int = NONE) -> None:
        """Take evidence in."""
        counts = {}
        for field, value in news.items():
            held = self.value[field]
            counted = held != UNKNOWN and self.public.loose(field, held) and field != touched
            if counted and self.watched[field] and self.since[field] > 0:
                since, wait = self.since[field], self.wait(field)
                if value != held:
                    counts[field] = 1.0, min((since + 1) * 0.5, wait)
                else:
                    counts[field] = 0.0, min(since, wait) if self.public.landing[field] == 1.0 else since
        self.count(counts)
        for field, value in news.items():
            self.value[field], self.chance[field], self.since[field] = value, 1.0, 0
            self.watched[field] = True

    def world_moves(self) -> None:
        """Let every field change, perhaps."""
        for field in self.fields:
            hazard, chance = self.hazard(field), self.chance[field]
            back = (1.0 - chance) * (hazard * self.public.landing[field])
            self.chance[field] = 0.0 if self.value[field] == UNKNOWN else chance * (1.0 - hazard) + back
            self.since[field] += 1

    def miss(self, seen: dict[int, int], here: int) -> None:
        """Doubt what should be in sight and is not."""
        counts = {}
        gone = [field for field in self.public.things if self.value[field] == here and field not in seen]
        doubts = {}
        for field in gone:
            overlooked = self.chance[field] * self.overlooks
            total = overlooked + (1.0 - self.chance[field])
            doubts[field] = overlooked / total if total > 0.0 else 0.0
            if self.watched[field]:
                changed = 1.0 - doubts[field]
                counts[field] = changed, changed * min((self.since[field] + 1) * 0.5, self.wait(field))
        self.count(counts)
        for field in gone:
            self.chance[field], self.watched[field] = doubts[field], False

    def derive(self) -> None:
        """Conclude from loaded tools whose dependencies are satisfied."""
        public = self.public
        if not (public.tools and public.graph_known):
            return
        n = public.layout.tools
        for tool in range(n):
            ready = 1.0
            for needed in public.layout.prerequisites[tool]:
                chance = self.chance[needed]
                loaded = {1: chance, UNKNOWN: 0.5}.get(self.value[needed], 1.0 - chance)
                ready = ready * loaded
            self.value[n + tool] = int(ready >= 0.5)
            self.chance[n + tool] = ready if ready >= 0.5 else 1.0 - ready

    def watch(
        self,
        table: list[int],
        seen: dict[int, int],
        here: int,
        action: int,
        valid: bool | None,
        fresh: bool,
        told: dict[int, int],
    ) -> None:
        """Follow an episode up to a decision."""
        touched, public = NONE, self.public
        if not self.started:
            self.started = True
            self.learn({field: value for field, value in enumerate(table) if value != UNKNOWN})
            self.learn(seen)
        else:
            self.learn(told)
            if fresh:
                self.world_moves()
            touched = public.touched(action)
            proven = {2 * public.layout.tools + action: 1} if public.tools and action >= 0 and valid else {}
            self.learn(seen | proven, touched)
        if fresh:
            self.miss(seen, here)
        self.derive()
        self.done = self.done or self.value[public.goal] == public.done_value

    def right(self, field: int, believed: int) -> float:
        """Return the chance that the agent's belief is right."""
        if believed == UNKNOWN:
            return 0.0
        if self.value[field] == UNKNOWN:
            return 1.0 / self.ranges[field]
        if believed == self.value[field]:
            return self.chance[field]
        return (1.0 - self.chance[field]) / (self.ranges[field] - 1)

    def prospect(self, here: int) -> tuple[float, int, float, float, int, float]:
        """Return sure, to go, fading, luck, the field the plan hangs on, and the steps saved."""
        public = self.public
        if not public.rooms:
            return 1.0, public.to_go(self.value, here), 0.0, 0.0, 0, 0.0
        thing, rooms = public.layout.goal, public.places
        where = self.value[thing]
        known = 0 <= where < rooms
        distance = abs(where - here) if known else 0
        right = self.chance[thing] if known else 0.0
        stays = 1.0 - self.hazard(thing)
        beyond = rooms - 1 - here
        total = here * (here + 1) + beyond * (beyond + 1)
        mean = total / (2.0 * rooms)
        there = power(stays, (total + rooms) // (2 * rooms))
        told = there * (mean + 1.0) + (1.0 - there) * (mean + rooms)
        saved = (1.0 - right) * ((distance + rooms) - told)
        return right * power(stays, distance), distance + 1, self.hazard(thing), 1.0 / rooms, thing, saved

    def choose(self, t: int, table: list[int], here: int, proposal: int, used: int) -> tuple[int, float]:
        """Return the field to probe, or -1, and the value of it."""
        weight, public, left = self.weight, self.public, self.horizon - t
        sure, to_go, fading, luck, hangs_on, saved = self.prospect(here)
        now, later = self.finish[left][to_go], self.finish[left - 1][to_go]
        step = sure * ((now - later) + fading * later) + (1.0 - sure) * luck
        step = 0.0 if self.done else step
        cost = 0.0 if proposal == WAIT else step

        gain = [
            (1.0 - self.right(field, table[field])) * power(1.0 - self.hazard(field), left)
            for field in self.fields
        ]
        credited = gain[:]
        if public.tools and public.graph_known:
            n = public.layout.tools
            for tool in range(n):
                for needed in public.layout.prerequisites[tool]:
                    credited[needed] += SETTLED * gain[n + tool]
        best = credited.index(max(credited))
        late = -1.0
        if left <= self.budget - used:
            late = weight * credited[best] / len(self.fields) - (1.0 - weight) * cost

        held_back = weight / len(self.fields)
        need = -1.0 if proposal == WAIT else (1.0 - weight) * (step * (saved - 1.0)) - held_back
        restore = -1.0
        says_done = table[public.goal] == public.done_value
        if proposal == WAIT and says_done and not self.done and self.since[public.goal] > 0:
            restore = (1.0 - weight) * later - held_back

        value = max(late, need, restore)
        if restore > 0.0:
            return public.goal, value
        if need > 0.0:
            return hangs_on, value
        return best if late >= 0.0 else NONE, value
