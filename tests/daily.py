"""What is asked each time and what at night, of a test with many values."""

import pytest


def nightly(values, *daily):
    """Values for a test that asks a few of them each time, and all at night."""
    late = pytest.mark.nightly
    return [
        one if one in daily else pytest.param(*(one if isinstance(one, tuple) else [one]), marks=late)
        for one in values
    ]
