"""Tables of the exercises' solutions: means of groups, paired differences, and where policies stand."""

from collections.abc import Mapping, Sequence

import pandas as pd

from envprobe_book.pages.frames import is_name, title_of
from envprobe_book.pages.show import show
from envprobe_book.pages.table import Table
from envprobe_core.statistics import RESAMPLES, Estimate, paired_bootstrap


def show_means(frame: pd.DataFrame, by: Sequence[str], columns: Sequence[str], label: str) -> Table:
    """A table of the means of columns of a frame of episodes, by groups, with how many episodes each has.

    >>> frame = pd.DataFrame({"policy": ["simple", "simple"], "accuracy": [0.5, 1.0]})
    >>> show_means(frame, ["policy"], ["accuracy"], "tab-one").rows
    [['EnvProbe-Simple', '0.750', '2']]
    """
    groups = frame.groupby(list(by), sort=False)
    means = groups[list(columns)].mean().assign(episodes=groups.size())
    return show(means, label, "Means over episodes.")


def difference(
    arm: pd.DataFrame, reference: pd.DataFrame, measure: str = "accuracy", resamples: int = RESAMPLES
) -> Estimate:
    """The paired difference of two sets of episodes, in points, joined by world and seed, with its interval.

    >>> one = pd.DataFrame({"world": ["tooldag"] * 2, "seed": [0, 1], "accuracy": [0.5, 1.0]})
    >>> difference(one, one.assign(accuracy=0.5), resamples=100).mean
    25.0
    """
    pairs = arm.merge(reference, on=["world", "seed"], validate="one_to_one")
    points = 100 * (pairs[f"{measure}_x"].astype(float) - pairs[f"{measure}_y"].astype(float))
    return paired_bootstrap(points.to_numpy(), pairs["world"].to_numpy(dtype=str), resamples)


def show_differences(found: Mapping[str, Estimate], what: str, label: str) -> Table:
    """A table of paired differences, one row each, with a word for the side on which they lie.

    >>> one = pd.DataFrame({"world": ["tooldag"] * 2, "seed": [0, 1], "accuracy": [0.5, 1.0]})
    >>> found = {"released:clock=runs": difference(one, one, resamples=100)}
    >>> show_differences(found, "A difference", "tab-two").rows[0][0]
    'as released, letting the world run on during a probe'
    """
    rows = pd.DataFrame(
        {
            "setting": [title_of(name) if is_name(name) else name for name in found],
            "difference": [own.mean for own in found.values()],
            "difference_low": [own.low for own in found.values()],
            "difference_high": [own.high for own in found.values()],
            "interval": [_side(own) for own in found.values()],
            "pairs": [own.n for own in found.values()],
        }
    )
    caption = f"{what}, in points, with its 95% interval over paired episodes."
    return show(rows, label, caption, digits=2)


def standing(board: pd.DataFrame) -> pd.DataFrame:
    """Where a reader's own policies stand on a leaderboard: rank, and points over EnvProbe-Simple.

    Args:
        board: as `lab.leaderboard` gives it.

    >>> row = {"policy": "mine", "protocol": "paper", "set": "design", "own": True, "rank": 1}
    >>> ends = {"minus_simple": 2.0, "minus_simple_low": 1.0, "minus_simple_high": 3.0}
    >>> standing(pd.DataFrame([row | ends])).iloc[0].tolist()
    [1.0, 2.0, 1.0, 3.0]
    """
    own = board[board["own"]].set_index(["policy", "protocol", "set"])
    return own[list(STANDING)].rename(columns=STANDING).round(2)


STANDING = {
    "rank": "rank",
    "minus_simple": "points over EnvProbe-Simple",
    "minus_simple_low": "low end",
    "minus_simple_high": "high end",
}


def _side(own: Estimate) -> str:
    return "above zero" if own.low > 0 else "below zero" if own.high < 0 else "contains zero"
