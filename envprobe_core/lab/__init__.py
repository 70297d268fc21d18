"""The classroom: a reader's own policy, tested, run against all others, and the exercises' answer key."""

from envprobe_core.lab.boards import leaderboard, show_differences, show_leaderboard
from envprobe_core.lab.contest import Contest, compete
from envprobe_core.lab.guard import PolicyError
from envprobe_core.lab.trial import diagnose, policy

__all__ = [
    "Contest",
    "PolicyError",
    "compete",
    "diagnose",
    "leaderboard",
    "policy",
    "show_differences",
    "show_leaderboard",
]
