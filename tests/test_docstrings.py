"""The worked examples of both packages are run, and public functions that readers call have one."""

import doctest
import inspect
import pkgutil
from importlib import import_module

import pytest

import envprobe_book
import envprobe_core

CALLED_BY_READERS = (
    "conditions", "experiment", "comparing", "estimating", "protocols", "policies", "statistics",
)  # fmt: skip
LEAVES = ("envprobe_core.llm", "envprobe_core.gym_env")  # have extras of their own
MODULES = sorted(
    found.name
    for package in (envprobe_core, envprobe_book)
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not found.name.startswith(LEAVES)
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name):
    module = import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        runner.run(example)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("name", CALLED_BY_READERS)
def test_what_readers_call_has_an_example(name):
    module = import_module(f"envprobe_core.{name}")
    functions = [
        found
        for found in vars(module).values()
        if inspect.isfunction(found) and found.__module__ == module.__name__ and found.__name__[0] != "_"
    ]
    assert functions
    assert [found.__name__ for found in functions if ">>>" not in (found.__doc__ or "")] == []
