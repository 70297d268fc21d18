"""The naive twin: one episode in plain scalar Python, straight from the book's definitions page."""

from .given import Episode
from .graphnav import Instance as GraphNavInstance
from .loop import run_episode
from .objectstate import Instance as ObjectStateInstance
from .tooldag import Instance as ToolDAGInstance

__all__ = ["Episode", "GraphNavInstance", "ObjectStateInstance", "ToolDAGInstance", "run_episode"]
