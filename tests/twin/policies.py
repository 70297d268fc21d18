"""The policies: score terms that come from the task, and gates that choose a field or none."""

from .agent import Agent
from .given import LOW, NONE, UNKNOWN
from .graphnav import Layout as GraphNavLayout
from .objectstate import Layout as ObjectStateLayout
from .tooldag import Layout as ToolDAGLayout

Layout = ToolDAGLayout | ObjectStateLayout | GraphNavLayout

# weights of c, s, u, d
SCORES = {
    "simple": (1, 1, 1, 1),
    "minus-c": (0, 1, 1, 1),
    "minus-s": (1, 0, 1, 1),
    "minus-u": (1, 1, 0, 1),
    "minus-d": (1, 1, 1, 0),
    "cd": (1, 0, 0, 1),
    "judge": (1, 1, 1, 1),
    "placebo": (1, 1, 1, 1),
}
S = [min(1, steps / 10) for steps in range(100)]  # s by reported staleness
U = [1 - percent / 100 for percent in range(101)]  # u by reported confidence
UNANSWERED = ("placebo", "yoked")


class Structure:
    """c and d of every field by proposed action, from the task graph or from the agent's report.

    They come weighted, as the score adds them up; the judge, who looks at d alone, has weights 1.
    """

    def __init__(
        self,
        layout: Layout,
        weights: list[float],
        reported: bool,
        single_report: bool,
        wc: int,
        wd: int,
    ) -> None:
        top = max(weights)
        self.layout = layout
        self.c = [wc * (w / top) for w in weights]
        self.reported, self.single_report = reported, single_report
        self.wc, self.wd = wc, wd
        self.known: dict[tuple[int, int], tuple[list[float], list[float], list[int]]] = {}

    def terms(self, action: int, here: int, value: list[int]) -> tuple[list[float], list[float], int]:
        """Return wc * c, wd * d and the first known field used by the action (-1: none)."""
        if self.reported:
            return self.from_report(action, here, value)
        terms = self.known.get((action, here))
        if terms is None:
            terms = self.known[action, here] = self.from_graph(action, here)
        c, d, used = terms
        return c, d, next((field for field in used if value[field] != UNKNOWN), NONE)

    def from_graph(self, action: int, here: int) -> tuple[list[float], list[float], list[int]]:
        """Return the terms that the static task graph gives."""
        d = [0.0] * self.layout.fields
        roles = self.layout.roles(action, here)
        for field, role in roles.items():
            d[field] = self.wd * role
        return self.c, d, sorted(field for field in roles if roles[field] == 1)

    def from_report(self, action: int, here: int, value: list[int]) -> tuple[list[float], list[float], int]:
        """Return the terms that the agent reports: none on what it does not know."""
        c, d = [0.0] * self.layout.fields, [0.0] * self.layout.fields
        used = [f for f in self.layout.reported_as_used(action, here) if value[f] != UNKNOWN]
        first = min(used, default=NONE)
        if self.single_report:
            used = used and [first]
        else:
            for field in self.layout.goal_fields:
                if value[field] != UNKNOWN:
                    c[field] = self.wc * 0.5
        for field in used:
            c[field] = self.wc * 1.0
            d[field] = self.wd * (0.5 + 0.5 * min(1, 1 / 3))
        return c, d, first


class Gates:
    """One method a policy: the field to probe at this step, or -1; asked while budget is left.

    Each gets the step, the agent's tables, gold, rho, d, and how many probes were used.
    """

    def __init__(
        self,
        weights: list[float],
        budget: int,
        horizon: int,
        threshold: float,
        probe_words: list[list[int]],
        released: bool,
        schedule: list[int] | None,
    ) -> None:
        self.weights, self.fields = weights, len(weights)
        self.budget, self.horizon, self.threshold = budget, horizon, threshold
        self.probe_words = probe_words
        self.released = released
        self.schedule = schedule or [NONE] * horizon

    def no_probe(
        self, t: int, agent: Agent, gold: list[int], rho: list[float], d: list[float], used: int
    ) -> int:
        """Never probe."""
        return NONE

    def random(
        self, t: int, agent: Agent, gold: list[int], rho: list[float], d: list[float], used: int
    ) -> int:
        """Probe any field with probability B/H."""
        word = self.probe_words[t][0]
        if word & LOW < self.budget * 2**32 // self.horizon:
            return (word >> 32) * self.fields >> 32
        return NONE

    def periodic(
        self, t: int, agent: Agent, gold: list[int], rho: list[float], d: list[float], used: int
    ) -> int:
        """Probe at K, 2K, ...: the fields in turn, or the stalest by its report."""
        period = max(1, self.horizon // self.budget)
        if t == 0 or t % period != 0:
            return NONE
        if self.released:
            return agent.reported_staleness.index(max(agent.reported_staleness))
        return used % self.fields

    def self_uncertainty(
        self, t: int, agent: Agent, gold: list[int], rho: list[float], d: list[float], used: int
    ) -> int:
        """Probe the lowest reported confidence, if it is low (or, released, a risk reported)."""
        lowest = min(agent.reported_confidence)
        unsure = lowest < 50 or agent.risk_is_medium if self.released else lowest < 70
        return agent.reported_confidence.index(lowest) if unsure else NONE

    def simple(
        self, t: int, agent: Agent, gold: list[int], rho: list[float], d: list[float], used: int
    ) -> int:
        """Probe the first field of the highest score, if it reaches the threshold."""
        highest = max(rho)
        return rho.index(highest) if highest >= self.threshold else NONE

    def judge(
        self, t: int, agent: Agent, gold: list[int], rho: list[float], d: list[float], used: int
    ) -> int:
        """Veto Simple's probe of an unrelated field; force one of a doubtful blocker."""
        field = self.simple(t, agent, gold, rho, d, used)
        if field != NONE and d[field] != 0:
            return field
        ranked = sorted(range(self.fields), key=lambda i: -rho[i])  # stable: ties to the first
        for candidate in ranked[:3]:
            if d[candidate] == 1 and agent.reported_confidence[candidate] < 70:
                return candidate
        return NONE

    def oracle(
        self, t: int, agent: Agent, gold: list[int], rho: list[float], d: list[float], used: int
    ) -> int:
        """Probe the first field whose belief is wrong."""
        for field in range(self.fields):
            if agent.value[field] != gold[field]:
                return field
        return NONE

    def oracle_tw(
        self, t: int, agent: Agent, gold: list[int], rho: list[float], d: list[float], used: int
    ) -> int:
        """Probe the wrong field of the highest task weight."""
        wrong = [field for field in range(self.fields) if agent.value[field] != gold[field]]
        return max(wrong, key=lambda field: self.weights[field], default=NONE)

    def yoked(
        self, t: int, agent: Agent, gold: list[int], rho: list[float], d: list[float], used: int
    ) -> int:
        """Probe when and where the schedule says."""
        return self.schedule[t]

    minus_c = minus_s = minus_u = minus_d = cd = placebo = simple
