"""What commands need beside the core: an extra that is missing is told in one line, before any work."""

import importlib.util
from collections.abc import Sequence

from envprobe_core.errors import InputError

EXTRAS = {
    "cli": ("typer", "rich"),
    "notebooks": ("papermill", "nbformat", "nbclient", "jupyter_client", "jupyter_core", "ipykernel",
                  "IPython", "ipywidgets", "anywidget", "traitlets", "matplotlib", "seaborn", "yaml",
                  "gymnasium"),
    "book": ("jupyter_book", "sphinx", "myst_nb"),
    "llm": ("openai", "aiohttp", "httpx2"),
    "local": ("xllamacpp", "platformdirs"),
    "dask": ("distributed",),
    "inspect": ("inspect_ai",),
}  # fmt: skip
"""Modules of each extra that is installed: one of them missing means that it is not."""
NEEDS = {
    "reproduce": ("notebooks",), "book": ("notebooks", "book"), "answers": ("notebooks",),
    "lab": ("notebooks",), "estimate": ("llm",), "doctor": ("llm",), "model": ("local",), "store": ("llm",),
}  # fmt: skip
"""Extras of the commands that are no use without."""
AGENTS = {"openai": ("llm",), "local": ("llm", "local"), "inspect": ("llm", "inspect")}
"""Extras of what `--agent` names, up to a colon."""


def is_there(module: str) -> bool:
    """Whether a module can be imported; nothing is.

    >>> is_there("json"), is_there("no_such_module")
    (True, False)
    """
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # of what is kept from being imported
        return False


def check_extra(extra: str, for_what: str) -> None:
    """Refuse to begin without an extra.

    Raises:
        InputError: which names what needs it and how it is installed.
    """
    if lacking := [module for module in EXTRAS[extra] if not is_there(module)]:
        told = f"{for_what} needs {lacking[0]}, which is not installed"
        raise InputError(f"{told}: pip install 'envprobe-core[{extra}]'")


def extra_of(module: str | None) -> str | None:
    """The extra that brings a module, None if none does.

    >>> extra_of("papermill.execute"), extra_of("json")
    ('notebooks', None)
    """
    top = (module or "").partition(".")[0]
    return next((extra for extra, modules in EXTRAS.items() if top in modules), None)


def check_command(arguments: Sequence[str]) -> None:
    """Refuse a command line whose command, agent or cluster needs an extra that is missing.

    Raises:
        InputError: for the first one.
    """
    if not arguments or {"-h", "--help"} & set(arguments):
        return
    command, wanted = arguments[0], [(arguments[0], extra) for extra in NEEDS.get(arguments[0], ())]
    for here, following in zip(arguments, [*arguments[1:], ""], strict=True):
        option, _, value = here.partition("=")
        if command == "run" and option == "--agent":
            named = f"--agent {value or following}"
            wanted += [(named, extra) for extra in AGENTS.get((value or following).partition(":")[0], ())]
        if command == "run" and option == "--replay":
            wanted.append((option, "llm"))
        if option in ("--scheduler", "--scheduler-file"):
            wanted.append((option, "dask"))
    for named, extra in wanted:
        check_extra(extra, named)
