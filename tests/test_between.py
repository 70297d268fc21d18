"""The table of all protocols between the paper's text and its public code: a sample of it, run again."""

import importlib.util
import random

import pandas as pd
import pytest

from envprobe_core.sources import DATA
from envprobe_core.worlds import WORLDS

FOLDER = DATA / "between"
SPEC = importlib.util.spec_from_file_location("every", FOLDER / "every.py")
every = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(every)


@pytest.fixture(scope="module")
def table():
    return pd.read_parquet(FOLDER / "every.parquet")


def test_every_protocol_is_there_once(table):
    switches = list(every.SWITCHES)
    assert len(table) == 2 ** len(switches) == len(table[switches].drop_duplicates())
    assert table[list(WORLDS)].notna().all(axis=None)


def test_a_sample_runs_to_the_same_numbers(table):
    for row in [0, len(table) - 1, *random.Random(0).sample(range(len(table)), 2)]:
        own = table.iloc[row]
        chosen = tuple(int(own[switch]) for switch in every.SWITCHES)
        assert every.gains(chosen) == own[list(WORLDS)].tolist()
