"""EnvProbe companion: an executable paper on probing before acting, and the experiment behind it.

The paper is *Ask the World Before Acting: Environment Probing for Calibrated Agent World Models* (Song and
Cai). Eight verbs make its sections: `run` and `play` the experiment, `compare` and `summarize` episodes,
`judge` the paper's claims, `table` and `draw` what was found, `conclude` from it; a ninth, `interact`, lets a
reader move budget and threshold. The core that they run on (worlds, agents, policies, engine) knows nothing
of pages.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envprobe_core.claims.judge import judge
    from envprobe_core.comparing import compare, summarize
    from envprobe_core.grid import play, run
    from envprobe_core.show.draw import draw
    from envprobe_core.show.interact import interact
    from envprobe_core.show.markup import conclude, guess, take_away
    from envprobe_core.show.table import table

__version__ = "0.1.0"
__all__ = [
    "compare", "conclude", "draw", "guess", "interact", "judge", "play", "run", "summarize", "table",
    "take_away",
]  # fmt: skip

_HOMES = {
    "run": "grid", "play": "grid", "compare": "comparing", "summarize": "comparing", "judge": "claims.judge",
    "table": "show.table", "draw": "show.draw", "interact": "show.interact", "conclude": "show.markup",
    "guess": "show.markup", "take_away": "show.markup",
}  # fmt: skip


def __dir__() -> list[str]:
    """List the verbs too, so that completion and `help` find them."""
    return sorted([*globals(), *_HOMES])


def __getattr__(name: str) -> Any:
    """Import a verb when it is first used: most commands need none of them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
