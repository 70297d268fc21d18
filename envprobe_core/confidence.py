"""Another name of `measures`."""

from envprobe_core.measures import *
