"""Another name of `claims.judge`."""

from envprobe_core.claims.judge import *  # noqa: F403
from envprobe_core.claims.judge import judge as evaluate_all  # noqa: F401
