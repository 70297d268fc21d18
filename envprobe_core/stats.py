"""Another name of `statistics`."""

from envprobe_core.statistics import *  # noqa: F403
