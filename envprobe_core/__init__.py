"""EnvProbe companion: an executable paper on probing before acting, and the experiment behind it.

The paper is *Ask the World Before Acting: Environment Probing for Calibrated Agent World Models* (Song and
Cai). Nine verbs make its sections: `run` and `play` the experiment, `compare` and `summarize` episodes,
`judge` the paper's claims, `table` and `draw` what was found, `conclude` from it, and `live` puts a figure
under the reader's hand. The core that they run on (worlds, agents, policies, engine) knows nothing of pages.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = ["compare", "play", "run", "summarize"]
_HOMES = {"run": "experiment", "play": "experiment", "compare": "comparing", "summarize": "comparing"}


def __dir__() -> list[str]:
    """List the verbs too, so that completion and `help` find them."""
    return sorted([*globals(), *_HOMES])


def __getattr__(name: str) -> Any:
    """Import a verb when it is first used: most commands need none of them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
