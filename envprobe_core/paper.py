"""Another name of `claims.printed`."""

from envprobe_core.claims.printed import *  # noqa: F403
from envprobe_core.claims.printed import COLUMNS as COLUMNS
