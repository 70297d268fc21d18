"""The simulated agent: a belief table, the errors it makes in it, and a mind that plans on it."""

from .given import LOW, NONE, QUARTER, UNKNOWN, WAIT, Noise, Profile, bound16, bound32
from .graphnav import Mind as GraphNavMind
from .objectstate import Mind as ObjectStateMind
from .tooldag import Mind as ToolDAGMind

Mind = ToolDAGMind | ObjectStateMind | GraphNavMind
OLDER = [min(99, steps + 1) for steps in range(100)]


class Agent:
    """One agent for one episode."""

    def __init__(
        self,
        mind: Mind,
        ranges: list[int],
        actions: int,
        profile: Profile,
        noise: Noise,
        distracted: bool,
    ) -> None:
        if profile.spread > profile.confidence:
            raise ValueError("a profile's spread must not exceed its confidence")
        self.mind = mind
        self.ranges, self.actions = ranges, actions
        self.write_words, self.staleness_words = noise.write, noise.staleness
        self.impulse_words = noise.impulse
        self.omit, self.hedge = bound16(profile.omit), bound16(profile.hedge)
        self.misreport = bound16(profile.misreport)
        self.overwrite, self.slip = bound32(profile.overwrite), bound32(profile.slip)
        self.quit, self.has_quit = bound32(profile.quit), False
        self.sure, self.spread = profile.confidence, profile.spread
        self.faded = [0] * profile.fade + list(range(101 - profile.fade))  # by confidence
        self.single_report = profile.single_report
        self.overwrites = (0, 1) if distracted else (0,)
        self.told = NONE  # the field told by a probe in the step just past
        self.place = 0
        self.seen: dict[int, int] = {}
        self.news: dict[int, int] = {}
        self.risk_is_medium = False

    def start(self, known: dict[int, int]) -> None:
        """Fill the table of t = 0."""
        fields = range(len(self.ranges))
        self.value = [known.get(field, UNKNOWN) for field in fields]
        self.staleness = [0 if field in known else 10 for field in fields]
        self.confidence = [100 if field in known else 0 for field in fields]

    def observe(self, t: int, seen: dict[int, int], place: int, action: int, valid: bool | None) -> None:
        """Take in the observation that the update of step `t` will read."""
        self.seen = self.news = seen
        if action != WAIT:
            implied = self.mind.implied(seen, action, bool(valid), self.place)
            self.news = implied | seen  # an implied value never replaces a seen one
            self.risk_is_medium = not valid
        self.place = place
        self.mind.remember(t, place, action, valid)

    def reread(self) -> None:
        """Read the same observation again: what the last action implies has been concluded."""
        self.news = self.seen

    def update(self, t: int) -> None:
        """Update the table with the news of the last observation."""
        # 1. Fading
        told, faded = self.told, self.faded
        told_confidence = self.confidence[told]
        self.confidence = [faded[percent] for percent in self.confidence]
        if told != NONE:
            self.confidence[told] = told_confidence
        # 2. News
        self.write(t, self.news, self.omit)
        # 3. Derived news
        self.write(t, self.mind.derived(self.value, self.seen, told), self.omit)
        # 4. Overwrite
        for number in self.overwrites:
            word = self.impulse_words[t][number]
            if word & LOW < self.overwrite:
                field = ((word >> 32) & QUARTER) * len(self.ranges) >> 16
                self.write(t, {field: (word >> 48) * self.ranges[field] >> 16}, 0)

    def write(self, t: int, news: dict[int, int], omit: int) -> None:
        """Write values, some omitted, with the confidence and staleness the agent then reports."""
        words, values = self.write_words[t], self.value
        staleness, confidence = self.staleness, self.confidence
        for field, value in news.items():
            word = words[field]
            if word & QUARTER < omit:
                continue
            values[field] = value
            if value == UNKNOWN:
                confidence[field] = 0
            elif (word >> 16) & QUARTER < self.hedge:
                confidence[field] = ((word >> 32) & QUARTER) * 70 >> 16
            else:
                below = ((word >> 32) & QUARTER) * (self.spread + 1) >> 16
                confidence[field] = self.sure - below
            if word >> 48 < self.misreport:
                staleness[field] = 1 + ((self.staleness_words[t][field] >> 32) * 10 >> 32)
            else:
                staleness[field] = 0

    def report_only(self, used: int) -> None:
        """Report one field, the first used by the next action, and all others as fresh and sure."""
        fields = len(self.ranges)
        self.staleness, self.confidence = [0] * fields, [100] * fields
        if used != NONE:
            self.confidence[used] = 90

    def publish(self, known_only: bool) -> None:
        """Show the policy what is reported; where the graph is hidden, nothing on unknown fields."""
        self.reported_staleness, self.reported_confidence = self.staleness, self.confidence
        if known_only and UNKNOWN in self.value:
            pairs = list(zip(self.value, self.staleness, strict=True))
            self.reported_staleness = [0 if value == UNKNOWN else tau for value, tau in pairs]
            pairs = list(zip(self.value, self.confidence, strict=True))
            self.reported_confidence = [100 if value == UNKNOWN else conf for value, conf in pairs]

    def propose(self, t: int) -> int:
        """Return the plan's next action, by a slip any action, and `wait` once it has quit."""
        if t > 0 and self.impulse_words[t][3] & LOW < self.quit:
            self.has_quit = True
        if self.has_quit:
            return WAIT
        word = self.impulse_words[t][2]
        if word & LOW < self.slip:
            return (word >> 32) * self.actions >> 32
        return self.mind.plan(self.value, self.place)

    def end_step(self) -> None:
        """Let all reported staleness grow by one step."""
        self.staleness = [OLDER[steps] for steps in self.staleness]
        self.told = NONE

    def learn(self, field: int, answer: int) -> None:
        """Take a probe's answer into the table."""
        self.value[field], self.staleness[field], self.confidence[field] = answer, 0, 100
        self.told = field
