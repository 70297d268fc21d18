"""Policies that keep all probes for the last steps: what a sceptic would set beside VoI (ours)."""

from envprobe_core.compiled.numba_support import inline
from envprobe_core.compiled.records import first_highest
from envprobe_core.policies.base import Policy, Rule
from envprobe_core.policies.voi import NOTED

LATE, STALEST = 11, 12
KINDS = {LATE: "Keep all probes for the last B steps (ours)", STALEST: "Rank the stalest field first (ours)"}
POLICIES = (
    Policy("late", "Late round robin", Rule(LATE)),
    Policy("late-stalest", "Late stalest", Rule(LATE), selector=Rule(STALEST)),
    Policy("late-mismatch", "Late mismatch", Rule(LATE), selector=Rule(NOTED)),
)


@inline
def opens(params, rule, episode, reader):
    """Take the fields in turn, in the last steps alone; or the stalest, for another rule that says when."""
    sight = episode.sight
    if rule.kind == STALEST:
        sight.first = first_highest(sight.staleness, sight.fields)
        return False
    sight.first = sight.used % sight.fields
    return sight.horizon - sight.step <= sight.budget - sight.used
