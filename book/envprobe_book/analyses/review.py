"""What a reviewer asks of a printed number.

Which switch turns its verdict, which episode shows it, and what else is recorded of it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from envprobe_book.analyses.scoreboard import PRIMARY_REGIME, run_claims
from envprobe_book.claims import SETTING, Claim, PaperValue, load_claims
from envprobe_book.claims.judge import AGREES, UNCOUNTED, judge
from envprobe_core.comparing import columns_read, measured
from envprobe_core.conditions import DEFAULT_SEEDS, find_regime, parse_seeds
from envprobe_core.policies import POLICIES, THRESHOLD
from envprobe_core.protocols import DEPARTURES, parse_protocol, switch_values, turned
from envprobe_core.sources import DATA
from envprobe_core.statistics import RESAMPLES

PLAYER = "one-episode.html"


def find_turns(
    claims: Sequence[Claim],
    board: pd.DataFrame,
    base: str = "paper",
    seeds: str = DEFAULT_SEEDS,
    regime: str = PRIMARY_REGIME,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """The switches that, turned alone, change whether a verdict agrees with the paper.

    Args:
        claims: those that are tried, on the profile of `board`.
        board: what `judge` says of them under `base`.
        base: the protocol in which one switch at a time gets the public code's value.

    Returns:
        A row a claim and switch: `claim switch value verdict estimate low_adjusted high_adjusted`, the last
        four with the switch turned. A verdict of `UNCOUNTED` on either side turns nothing.
    """
    whole, found = parse_protocol(base), []
    own = board[board["protocol"] == whole.name].set_index("claim")["verdict"]
    (profile,) = set(board["profile"])
    before = _columns(run_claims(claims, [base], profile, seeds, regime))
    for switch in DEPARTURES:
        value = switch_values(switch)[1]
        if getattr(whole, switch) == value:
            continue
        name = turned(whole, **{switch: value}).name
        frame = run_claims(claims, [name], profile, seeds, regime)
        after = _columns(frame)
        moved = [claim for claim in claims if _differs(claim, before, after)]
        if not moved:
            continue
        told = judge(frame, moved, protocols=[name], profile=profile, resamples=resamples)
        was = told["claim"].map(own)
        tested = ~was.isin(UNCOUNTED) & ~told["verdict"].isin(UNCOUNTED)
        changed = told[tested & (was.isin(AGREES) != told["verdict"].isin(AGREES))]
        found.append(changed.assign(switch=switch, value=value))
    kept = ["claim", "switch", "value", "verdict", "estimate", "low_adjusted", "high_adjusted"]
    return pd.concat(found, ignore_index=True)[kept] if found else pd.DataFrame(columns=kept)


Columns = Mapping[tuple[str, str, str, str], np.ndarray]
"""Values [episode] in order of seed, by regime, world, policy and column."""


def _columns(frame: pd.DataFrame) -> Columns:
    found = {}
    for key, rows in frame.groupby(["regime", "world", "policy"], sort=False):
        ordered = rows.sort_values("seed")
        for name in ordered.select_dtypes(["number", "bool"]).columns:
            found[*key, name] = ordered[name].to_numpy(dtype=float, na_value=np.nan)
    return found


def _differs(claim: Claim, before: Columns, after: Columns) -> bool:
    """Whether two protocols have other episodes for what a claim measures; if not, one verdict is both's."""
    for world in (*claim.worlds, *claim.against):
        for arm in (*claim.arms, *claim.references):
            for name in ("seed", *columns_read(claim.measures)):
                key = (claim.regime, world, arm, name)
                if not np.array_equal(before[key], after[key], equal_nan=True):
                    return True
    return False


class Typical(NamedTuple):
    """An episode that shows what a claim measures."""

    world: str
    seed: int
    policies: tuple[str, ...]
    value: float  # of the measure in it, or the difference of the two policies
    address: str  # in the book, from a page of a section


def typical_episodes(
    frame: pd.DataFrame, claims: Sequence[Claim], profile: str = "typical"
) -> dict[tuple[str, str], Typical]:
    """The episode nearest to each claim's own mean, by claim and protocol; ties go to the first seed.

    A claim of a setting, of several comparisons or of two groups of worlds has none, nor has one whose
    measure no episode has.
    """
    found: dict[tuple[str, str], Typical] = {}
    for protocol, episodes in frame.groupby("protocol", sort=False):
        by_cell = {key: rows for key, rows in episodes.groupby(["regime", "world", "policy"], sort=False)}
        for claim in claims:
            if claim.about == SETTING or len(claim.comparisons) > 1 or claim.against:
                continue
            candidates = [one for world in claim.worlds for one in _values(claim, world, by_cell)]
            values = np.array([value for *_, value in candidates])
            if not len(values):
                continue
            policies, world, seed, value = candidates[int(np.argmin(np.abs(values - values.mean())))]
            said = {
                "episode": f"{world}-{protocol}-{seed}", "policies": " ".join(policies),
                "regime": claim.regime, "profile": profile,
            }  # fmt: skip
            address = f"{PLAYER}#{urlencode(said)}"
            found[claim.id, str(protocol)] = Typical(world, seed, policies, value, address)
    return found


def _values(
    claim: Claim, world: str, by_cell: Mapping[tuple[str, str, str], pd.DataFrame]
) -> Iterator[tuple[tuple[str, ...], str, int, float]]:
    """Every episode in a world with the claim's measure, or its difference: policies, world, seed, value."""
    measure = claim.measures[0]

    def column(policy: str) -> pd.Series:
        own = by_cell[claim.regime, world, policy]
        told = measured(measure, lambda name: own[name].to_numpy(dtype=float, na_value=np.nan))
        return pd.Series(told, own["seed"].to_numpy())

    for arm in claim.arms:
        if arm not in POLICIES:  # another budget, which the address of an episode would have to say
            continue
        values, policies = column(arm), (arm,)
        if claim.references:
            values, policies = values - column(claim.references[0]), (arm, claim.references[0])
        for seed, value in values.dropna().items():
            yield policies, world, int(seed), float(value)


def own_settings(seeds: str, regime: str, resamples: int) -> dict[tuple[str, str], float]:
    """What this book runs with, by row and column of `tables.csv`, where no claim tests the setting."""
    chosen, level = parse_seeds(seeds), find_regime(regime)
    return {
        ("probe threshold", "score"): THRESHOLD,
        ("bootstrap", "resamples"): resamples,
        ("bonferroni", "family"): sum(claim.primary for claim in load_claims()),
        ("main seeds", "first"): int(chosen[0]),
        ("main seeds", "last"): int(chosen[-1]),
        ("budget", "horizon_divisor"): level.horizon // level.budget,
    }


@cache
def _recorded() -> dict[tuple[str, str, str], list[dict[str, str]]]:
    found = defaultdict(list)
    rows = pd.read_csv(DATA / "public" / "recorded.csv", dtype=str, keep_default_na=False)
    for row in rows.to_dict("records"):
        found[row["source"], row["row"], row["column"]].append(row)
    return found


def recorded_of(value: PaperValue) -> list[dict[str, str]]:
    """The figures that the public repository records where the paper prints this number.

    >>> from envprobe_book.claims import paper_value
    >>> cd = paper_value("tab:main", "procedural: cd vs simple", "accuracy_difference_pct")
    >>> [row["value"] for row in recorded_of(cd)]
    ['34']
    """
    return _recorded().get((value.source, value.row, value.column), [])


@cache
def _registry() -> pd.DataFrame:
    return pd.read_csv(DATA / "public" / "registry.csv")


def campaigns_of(claim: Claim) -> list[str]:
    """The campaigns of the public registry that list each world and policy of a claim, with their episodes.

    >>> from envprobe_book.claims import find_claim
    >>> campaigns_of(find_claim("main-procedural"))[0]
    'gate_a (seeds 42 to 91)'
    """
    cells, found = _registry(), []
    wanted = {(world, policy) for world in claim.worlds for policy in (*claim.arms, *claim.references)}
    for campaign, own in cells[cells["regime"] == claim.regime].groupby("campaign", sort=False):
        here = own[[pair in wanted for pair in zip(own["world"], own["policy"], strict=True)]]
        if len(set(zip(here["world"], here["policy"], strict=True))) == len(wanted) > 0:
            found.append(f"{campaign} (seeds {here['first_seed'].min()} to {here['last_seed'].max()})")
    return found
