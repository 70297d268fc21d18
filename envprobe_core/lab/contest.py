"""A contest: a reader's policies and the companion's, on the same seeds; first design, then held-out.

Whoever tries many scores on one set of seeds will find one that fits its luck. So there are two sets: the
design seeds may be looked at as often as one likes; the held-out seeds tell what is left of the gain.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from envprobe_core.cells import Cell, Names, find_profile, find_protocols, find_regime, names, parse_seeds
from envprobe_core.comparing import summarize
from envprobe_core.engine.running import record
from envprobe_core.errors import InputError
from envprobe_core.grid import run_frame
from envprobe_core.lab.guard import GuardedScore
from envprobe_core.policies import POLICIES, Policy, find_policy
from envprobe_core.show.figures import policy_title
from envprobe_core.show.markup import EMPTY, Table
from envprobe_core.show.table import table
from envprobe_core.statistics import RESAMPLES
from envprobe_core.worlds import WORLDS

DESIGN, HELD_OUT = "design", "held-out"
REFERENCES = {"minus_simple": "simple", "minus_no_probe": "no-probe"}
"""What every policy is compared with, by the leaderboard's column."""
MEASURES = {"accuracy": "accuracy", "success": "success", "useful/probes": "useful_rate", "probes": "probes"}
"""What the leaderboard averages, and its name there."""
KEYS = ["protocol", "set", "policy"]
POINTS = 100  # differences are in percentage points
_looks: Counter[str] = Counter()  # how often this session has run its own policies on held-out seeds


@dataclass(frozen=True)
class Contest:
    """Episodes of several policies on the same seeds."""

    frame: pd.DataFrame  # one row an episode, columns as in `grid.run`, and `set`: design or held-out
    own: tuple[str, ...]  # names of the reader's policies, in order
    looks: int  # how often the held-out seeds have been run in this session, this time included
    silent: dict[tuple[str, str], str]  # (protocol, policy) -> why a policy of the reader fired no probe


def compete(
    own: Policy | Sequence[Policy] = (),
    *,
    seeds: str = "0:220",
    held_out: str | None = None,
    worlds: Names = tuple(WORLDS),
    regime: str = "S2",
    protocols: Names = "observed",
    profile: str = "typical",
    rivals: Names = tuple(POLICIES),
    budget: int | None = None,
) -> Contest:
    """Run a reader's policies beside the companion's on paired seeds.

    Args:
        own: one policy or several, made with `@policy`.
        seeds: the design seeds, `FIRST:PAST`; look at them as often as you like.
        held_out: other seeds, to be run last; None to leave them shut.
        rivals: names of the companion's policies; EnvProbe-Simple and No-Probe always take part.
        budget: probes an episode may spend; by default the regime's.

    Raises:
        InputError: for an unknown name, something that is no policy, two policies of one name, or seeds
            that are both design and held-out.
    """
    mine = _own_policies(own)
    others = [find_policy(name) for name in dict.fromkeys((*names(rivals), *REFERENCES.values()))]
    sets = {DESIGN: parse_seeds(seeds)}
    if held_out is not None:
        sets[HELD_OUT] = parse_seeds(held_out)
        shared = np.intersect1d(*sets.values())
        if len(shared):
            raise InputError(
                f"{len(shared)} seeds are both design and held-out, the first {shared[0]}: held-out seeds "
                f"must be new; design is {seeds}, held-out {held_out}"
            )
    cells = [
        Cell(world, policy, find_regime(regime), protocol, find_profile(profile), budget)
        for protocol in find_protocols(protocols)
        for world in names(worlds)
        for policy in (*mine, *others)
    ]
    frame = run_frame(cells, np.concatenate(list(sets.values())))
    frame["set"] = np.where(frame["seed"].isin(sets[DESIGN]), DESIGN, HELD_OUT)
    if held_out is not None and mine:
        _looks[held_out] += 1
    own_names = tuple(policy.name for policy in mine)
    return Contest(frame, own_names, _looks[held_out or ""], _silent(frame, cells, own_names, sets[DESIGN]))


def _own_policies(own: Policy | Sequence[Policy]) -> list[Policy]:
    given = [own] if isinstance(own, Policy) or callable(own) else list(own)
    for policy in given:
        if not isinstance(policy, Policy) or not isinstance(policy.score, GuardedScore):
            name = getattr(policy, "name", getattr(policy, "__name__", repr(policy)))
            raise InputError(
                f'{name} is no policy of yours: write @policy("my rule") above its `def`; those of the '
                "book are named in `rivals`"
            )
    twice = [name for name, count in Counter(policy.name for policy in given).items() if count > 1]
    if twice:
        raise InputError(f"two policies are named {twice[0]!r}; give each a name of its own")
    return given


def _silent(
    frame: pd.DataFrame, cells: Sequence[Cell], own: Sequence[str], seeds: np.ndarray
) -> dict[tuple[str, str], str]:
    """Say of each policy of the reader that fired no probe what its highest score was."""
    probes = frame.groupby(["protocol", "policy"])["probes"].sum()
    found = {}
    for key in ((protocol, policy) for protocol, policy in probes.index[probes == 0] if policy in own):
        alike = [cell for cell in cells if (cell.protocol.name, cell.policy.name) == key]
        highest = max(float(np.nanmax(record(cell, seeds).score)) for cell in alike)
        found[key] = (
            f"fired 0 of {alike[0].budget_in_force} probes: its highest score was {highest:.3g}, the gate is "
            f"{alike[0].threshold_in_force:g}"
        )
    return found


# --- the leaderboard ---------------------------------------------------------------------------


def leaderboard(contest: Contest, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Summarise a contest; intervals resample its episodes within each world.

    Returns:
        One row a protocol, set and policy, by accuracy: `protocol set policy own deployable rank n silent`,
        the means `accuracy success useful_rate probes`, and for each of `REFERENCES` the mean paired
        difference in accuracy in points, all with `_low` and `_high`. Oracles see gold and have rank 0; the
        useful rate is NaN without any probe; `silent` says why a reader's policy fired none.
    """
    frame, pair = contest.frame, ["protocol", "world", "seed"]
    for name, other in REFERENCES.items():
        theirs = frame[frame["policy"] == other].set_index(pair)["accuracy"].rename("theirs")
        frame = frame.assign(**{name: POINTS * (frame["accuracy"] - frame.join(theirs, on=pair)["theirs"])})
    means = summarize(frame, [*MEASURES, *REFERENCES], KEYS, resamples=resamples)
    board = frame[KEYS].drop_duplicates().reset_index(drop=True)
    board["own"] = board["policy"].isin(contest.own)
    board["deployable"] = [name not in POLICIES or not POLICIES[name].sees_gold for name in board["policy"]]
    for text, part in means.groupby("measure", sort=False):
        name = MEASURES.get(text, text)
        board[[name, f"{name}_low", f"{name}_high"]] = part[["mean", "low", "high"]].to_numpy(dtype=float)
        if name == "accuracy":
            board["n"] = part["n"].to_numpy()
    board["silent"] = [contest.silent.get((row.protocol, row.policy), "") for row in board.itertuples()]
    part = board.groupby(KEYS[:2], sort=False)
    board = board.assign(part=part.ngroup(), below=-board["accuracy"]).sort_values(["part", "below"])
    board.insert(5, "rank", board.groupby("part")["deployable"].cumsum().where(board["deployable"], 0))
    return board.drop(columns=["part", "below"]).reset_index(drop=True)


def show_leaderboard(board: pd.DataFrame, label: str = "tab-leaderboard") -> Table:
    """Show accuracy, success, useful rate and probes of every policy, the reader's own in bold."""
    sizes = " and ".join(f"{row.n} {row.set} episodes" for row in board.drop_duplicates("set").itertuples())
    caption = (
        f"All policies by accuracy on the design seeds{_where(board)}, {sizes} each. *Useful*: mean share of "
        "useful probes over the episodes that fired. A reader's own policies in bold; oracles see gold and "
        "have no rank."
    )
    silent = dict.fromkeys(f"{row.policy} {row.silent}." for row in board.itertuples() if row.silent)
    measures = {"accuracy": "{accuracy:3}", "success": "{success:3}", "useful": "{useful_rate:%}"}
    first, last = {"rank": "{place}", "policy": "{title}"}, {"probes": "{probes:1}"}
    return _beside(board, label, " ".join([caption, *silent]), first, measures, last)


def show_differences(board: pd.DataFrame, looks: int = 0, label: str = "tab-differences") -> Table:
    """Show the paired differences of every policy to EnvProbe-Simple and to No-Probe, in points.

    Args:
        board: from `leaderboard`.
        looks: how often the held-out seeds have been run (`Contest.looks`).
    """
    caption = (
        f"Paired differences in accuracy on the same seeds{_where(board)}, in points, with 95% percentile "
        "intervals, each for itself: not widened for the number of policies tried."
    )
    if looks == 1:
        caption += " The held-out seeds have been run once in this session."
    elif looks:
        caption += (
            f" The held-out seeds have been run {looks} times in this session: what was changed in between "
            "may have been chosen with them in view, and then they are held out no longer."
        )
    measures = {
        f"against {policy_title(other)}": f"{{{name}:+2}} {{{name}:[1]}}"
        for name, other in REFERENCES.items()
    }
    return _beside(board, label, caption, {"policy": "{title}"}, measures, {})


def _beside(
    board: pd.DataFrame,
    label: str,
    caption: str,
    first: Mapping[str, str],
    measures: Mapping[str, str],
    last: Mapping[str, str],
) -> Table:
    """Make a table of measures on the design seeds, each beside its held-out value if there is one."""
    key, held = ["protocol", "policy"], board[board["set"] == HELD_OUT]
    columns = {"protocol": "{protocol:code}"} if board["protocol"].nunique() > 1 else {}
    columns |= first
    for place, (head, template) in enumerate(measures.items()):
        columns[head] = template
        if len(held):  # blanks, since no two heads are the same
            columns["held-out" + " " * place] = re.sub(r"\{(\w+)", r"{\1_held", template)
    columns |= last
    ends = {name: re.sub("(_low|_high|)$", r"_held\1", name, count=1) for name in held.columns.drop(key)}
    rows = board[board["set"] == DESIGN].merge(held.rename(columns=ends), on=key, how="left")
    bold = rows["policy"].map(policy_title).where(~rows["own"], "**" + rows["policy"] + "**")
    rows = rows.assign(place=[str(rank or EMPTY) for rank in rows["rank"]], title=bold)
    align = "".join("l" if head in key else "r" for head in columns)
    return table(rows, label, caption, columns, align=align)


def _where(board: pd.DataFrame) -> str:
    """Name the protocol in a caption where there is but one."""
    return f" under `{board['protocol'].iloc[0]}`" if board["protocol"].nunique() == 1 else ""
