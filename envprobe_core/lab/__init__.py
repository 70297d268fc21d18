"""The classroom: a reader's own policy, tested, run against all others, and the exercises' answer key."""

from envprobe_core.lab.contest import Contest, compete, leaderboard, show_differences, show_leaderboard
from envprobe_core.lab.drawing import plot_plane, plot_transfer
from envprobe_core.lab.exercises import self_check
from envprobe_core.lab.guard import PolicyError, diagnose, policy

__all__ = [
    "Contest", "PolicyError", "compete", "diagnose", "leaderboard", "plot_plane", "plot_transfer", "policy",
    "self_check", "show_differences", "show_leaderboard",
]  # fmt: skip
