"""The protocol audit: every switch between the paper's text and its public code turned alone, and in groups.

A headline is a figure that the paper puts forward, as a claim of claims.csv. Every protocol meets the same
seeds, so that all changes are paired; what only a scorer reads is scored again, not run again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np
import pandas as pd

from envprobe_core.analyses.shapley import shapley_values
from envprobe_core.cells import Names, make_cell, names, parse_seeds
from envprobe_core.claims import find_claim
from envprobe_core.claims.episodes import MIN_UNITS, Episodes, NotTestable, Sample
from envprobe_core.claims.judge import comparisons, sample_of
from envprobe_core.claims.places import place
from envprobe_core.claims.printed import PAPER_FOLDER, STRATA
from envprobe_core.engine.recording import score
from envprobe_core.engine.running import record
from envprobe_core.engine.setting import setting_of
from envprobe_core.grid import episode_frame
from envprobe_core.measures import confident_counts
from envprobe_core.policies import find_policy
from envprobe_core.protocols import PAPER, SWITCHES, Protocol, in_words, parse_protocol, switch_values, turned
from envprobe_core.show.markup import EMPTY, code
from envprobe_core.statistics import (
    RESAMPLES,
    bootstrap_means,
    clustered_rate,
    mean_intervals,
    percentile_interval,
)
from envprobe_core.sweep import Piece, named
from envprobe_core.worlds import WORLDS

POLICIES = ("random", "periodic", "simple", "minus-u", "cd")  # that a headline speaks of
SCORED = ("accuracy", "pairing", "encoding", "onset", "actions", "confident")  # act on a recording
TURNED = tuple(switch for switch in SWITCHES if switch != "seeds")  # other seeds would break the pairs
GROUPS = {  # in the order of the way from one protocol to the other
    "the world and what is known of it": ("rates", "instances", "start", "sight", "structure"),
    "memory": ("memory",),
    "rules of baselines, gates and the end": ("baselines", "oracle", "threshold", "end"),
    "the world during a probe": ("clock",),
    "the answer": ("answer",),
    "scoring": (*SCORED, "useful"),
}
SCRIPTED = ("scripted", "scripted-open", "scripted-true", "scripted-true-open")


# --- turning switches ---------------------------------------------------------------------------------


def other_value(protocol: str, switch: str) -> str:
    """Return the value of a switch that a protocol does not have."""
    own = getattr(parse_protocol(protocol), switch)
    (other,) = (value for value in switch_values(switch) if value != own)
    return other


def turn(protocol: str, switches: Iterable[str] = ()) -> str:
    """Return the name of a protocol with switches turned to their other value."""
    others = {switch: other_value(protocol, switch) for switch in switches}
    return turned(parse_protocol(protocol), **others).name


def ends_of(protocols: Names) -> tuple[str, str]:
    """Return the first and the last protocol named.

    A single one leads to `released`, or from there to `paper`.
    """
    asked = [turn(name) for name in names(protocols)]
    if asked[0] != asked[-1]:
        return asked[0], asked[-1]
    return asked[0], "paper" if asked[0] == "released" else "released"


def between(first: str, last: str, coalition: int) -> str:
    """Return the first protocol with the groups of a bit mask set as the last one has them."""
    stop = parse_protocol(last)
    groups = [group for bit, group in enumerate(GROUPS.values()) if coalition >> bit & 1]
    values = {switch: getattr(stop, switch) for group in groups for switch in group}
    return turned(parse_protocol(first), **values).name


def played(protocol: Protocol) -> Protocol:
    """Return the protocol whose episodes another one scores: all that only scorers read is the text's."""
    own = {switch: getattr(protocol, switch) for switch in SWITCHES}
    return turned(PAPER, **own | {switch: getattr(PAPER, switch) for switch in SCORED})


def run_protocols(
    protocols: Names,
    policies: Names = POLICIES,
    regime: str = "S2",
    profile: str = "typical",
    seeds: str = "0:220",
    budget: int = -1,
    threshold: float = -1,
    *,
    worlds: Names = tuple(WORLDS),
) -> pd.DataFrame:
    """Run policies under many protocols, each distinct rollout once.

    Args:
        protocols: names, with or without switches turned; the others are as in `grid.run`.
        seeds: as `cells.parse_seeds` reads them; the same for every protocol, so that all are paired.
        budget: probes an episode may spend; -1 is the regime's own.
        threshold: of the policies that have one; -1 is 1.5.

    Returns:
        A row an episode and protocol: the columns of `grid.run`, and `confident` and `confident_wrong`, the
        beliefs held with confidence and those of them that are wrong.
    """
    chosen, order = parse_seeds(seeds), {turn(name): place for place, name in enumerate(names(protocols))}
    scored: dict[Protocol, list[Protocol]] = {}
    for protocol in map(parse_protocol, order):
        scored.setdefault(played(protocol), []).append(protocol)
    cells, tables = [], []
    for rollout, world, policy in product(scored, names(worlds), names(policies)):
        gate = threshold if threshold != -1 and find_policy(policy).has_threshold else None
        cell = make_cell(world, policy, regime, rollout, profile, None if budget == -1 else budget, gate)
        recording = record(cell, chosen, scores_all=False)
        for protocol in scored[rollout]:
            own = replace(cell, protocol=protocol)
            measures = score(setting_of(own), vars(recording)).measures | confident_counts(recording, own)
            tables.append(named([Piece(len(cells), own, chosen)], measures))
            cells.append(own)
    table = {name: np.concatenate([part[name] for part in tables]) for name in tables[0]}
    frame = episode_frame(cells, table, ("confident", "confident_wrong"))
    return frame.sort_values(
        ["protocol", "world", "policy", "seed"], ignore_index=True,
        key=lambda column: column.map(order) if column.name == "protocol" else column,
    )  # fmt: skip


def run_turned(protocols: Names, *how: object, **setting: object) -> pd.DataFrame:
    """Run the two ends of some protocols (`ends_of`), each as it is and with every switch turned alone."""
    every = [turn(end, own) for end in ends_of(protocols) for own in ((), *([one] for one in TURNED))]
    return run_protocols(every, *how, **setting)  # type: ignore[arg-type]


# --- headlines ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Headline:
    """One figure that the paper puts forward."""

    claim: str  # its name in claims.csv, which gives worlds, policies, measure and the printed number
    title: str  # as tables and figures call it
    unit: str  # of what is shown: `points` (shares and rates in percent) or `steps`

    @property
    def printed(self) -> float | None:
        """Return the number that the paper prints, in the headline's unit."""
        claim = find_claim(self.claim)
        return 100 * claim.value if claim.value is not None and claim.unit == "share" else claim.value


GAINS = (
    Headline("main-procedural", "Simple − Periodic, tools", "points"),
    Headline("main-spatial", "Simple − Periodic, rooms and graph", "points"),
    Headline("main-combined", "Simple − Periodic, all worlds", "points"),
    Headline("main-cd", "(c+d) − Simple, tools", "points"),
    Headline("collapse-delay", "collapse later than Periodic, tools", "steps"),
)
LEVELS = (
    Headline("level-simple-procedural", "accuracy of Simple, tools", "points"),
    Headline("level-success-simple", "success of Simple, tools", "points"),
    Headline("main-minus-u-success", "success without u − Simple, tools", "points"),
    Headline("upr-spatial", "useful probes, Simple − Random, rooms and graph", "points"),
    Headline("pcw-canonical", "confident and wrong, all worlds", "points"),
)
HEADLINES = GAINS + LEVELS


def measure(headline: Headline, episodes: Episodes) -> Sample | None:
    """Return what a headline's ratio is made of, in its unit; None where too few episodes carry it.

    A rate over policies takes those that the audit runs.
    """
    claim, regime = find_claim(headline.claim), str(episodes.frame["regime"].iloc[0])
    arms = claim.arms if claim.references else tuple(arm for arm in claim.arms if arm in POLICIES)
    claim = replace(claim, arms=arms, regime=regime)
    try:
        found = sample_of(claim, comparisons(claim)[0], episodes)
    except NotTestable:
        return None
    scale = 100.0 if headline.unit == "points" else 1.0
    return replace(found, top=scale * found.top) if np.count_nonzero(found.bottom) >= MIN_UNITS else None


def level(figure: Sample | None, resamples: int = RESAMPLES) -> tuple[float, float, float]:
    """Return a figure with its interval: estimate, low, high (NaN where it is missing)."""
    if figure is None:
        return np.nan, np.nan, np.nan
    found = clustered_rate(figure.top[:, 0], figure.bottom[:, 0], figure.worlds, resamples=resamples)
    return found.mean, found.low, found.high


def change(
    base: Sample | None, after: Sample | None, resamples: int = RESAMPLES
) -> tuple[float, float, float]:
    """Return how much a figure changes: estimate, low, high (NaN where one is missing).

    The same seeds are drawn on both sides of a resample, so that the interval is that of a paired
    difference, also where the figure is a ratio.
    """
    if base is None or after is None:
        return np.nan, np.nan, np.nan
    columns = np.concatenate([after.top, after.bottom, base.top, base.bottom], axis=1)
    means = np.vstack([columns.mean(axis=0), bootstrap_means(columns, base.worlds, resamples=resamples)])
    means = means[(means[:, 1] > 0) & (means[:, 3] > 0)]
    shifts = means[:, 0] / means[:, 1] - means[:, 2] / means[:, 3]
    low, high = percentile_interval(shifts[1:])
    return float(shifts[0]), float(low), float(high)


def turned_alone(
    episodes: pd.DataFrame,
    protocols: Names,
    resamples: int = RESAMPLES,
    headlines: tuple[Headline, ...] = HEADLINES,
) -> pd.DataFrame:
    """Compare headlines before and after each switch is turned alone.

    Args:
        episodes: from `run_turned`.
        headlines: those to compare; the episodes hold the worlds and policies that they speak of.

    Returns:
        A row a base protocol, switch and headline: `base turned claim headline unit printed value value_low
        value_high shift shift_low shift_high`; `turned` is `switch=value`, `""` for the base itself, and
        `shift` is the value minus that of the base.
    """
    counts = {
        (protocol, one.claim): measure(one, own)
        for protocol, part in episodes.groupby("protocol", sort=False)
        for own in [Episodes(part)]
        for one in headlines
    }
    rows = []
    for base, switch, one in product(ends_of(protocols), ("", *TURNED), headlines):
        named_so = f"{switch}={other_value(base, switch)}" if switch else ""
        before, after = (counts[turn(base, own), one.claim] for own in ((), [switch] if switch else ()))
        about = (base, named_so, one.claim, one.title, one.unit, one.printed)
        rows.append((*about, *level(after, resamples), *change(before, after, resamples)))
    columns = "base turned claim headline unit printed value value_low value_high shift shift_low shift_high"
    return pd.DataFrame(rows, columns=columns.split())


# --- the way from one protocol to the other -----------------------------------------------------------


def split_way(protocols: Names, *how: object, resamples: int = RESAMPLES, **setting: object) -> pd.DataFrame:
    """Split the change of the gain of Simple over Periodic between two protocols among groups of switches.

    Every combination of the groups is run.

    Args:
        protocols: as `ends_of` reads them.
        how: as in `run_protocols`, from the regime on.

    Returns:
        A row a stratum and part, in points: `stratum part switches share share_low share_high reached`.
        Parts are the gain under the first protocol, the groups (Shapley values; `reached` is the gain once
        this group and all before it are turned) and the gain under the last.
    """
    first, last = ends_of(protocols)
    every = [between(first, last, coalition) for coalition in range(1 << len(GROUPS))]
    frame = run_protocols(every, ("periodic", "simple"), *how, **setting)  # type: ignore[arg-type]
    pairs = frame.pivot(index=["world", "seed"], columns=["protocol", "policy"], values="accuracy")
    gains = 100 * pd.DataFrame({name: pairs[name, "simple"] - pairs[name, "periodic"] for name in every})
    parts = (f"gain {in_words(first)}", *GROUPS, f"gain {in_words(last)}")
    switches = (EMPTY, *map(code, GROUPS.values()), EMPTY)
    steps = [0, *((1 << count) - 1 for count in range(1, len(GROUPS) + 1)), -1]
    rows = []
    for stratum, worlds in STRATA.items():
        game = np.concatenate([gains.loc[world].to_numpy() for world in worlds])
        strata = np.repeat(np.arange(len(worlds)), len(game) // len(worlds))
        split = np.concatenate([game[:, :1], shapley_values(game), game[:, -1:]], axis=1)
        shares = zip(*mean_intervals(split, strata, resamples=resamples), strict=True)
        reached = (game[:, step].mean() for step in steps)
        rows += [
            (stratum, part, own, *share, done)
            for part, own, share, done in zip(parts, switches, shares, reached, strict=True)
        ]
    columns = "stratum part switches share share_low share_high reached"
    return pd.DataFrame(rows, columns=columns.split())


# --- where text and code differ -----------------------------------------------------------------------


@lru_cache(maxsize=1)
def load_departures() -> pd.DataFrame:
    """Read where the paper's text and its public code differ (data/paper/departures.csv), in our words.

    Returns:
        `id about places text code switch` as in the file (`switch` is empty where none simulates it), and
        `where`, the places as the paper names them.
    """
    frame = pd.read_csv(PAPER_FOLDER / "departures.csv", keep_default_na=False)
    named = frame["places"].map(lambda text: ", ".join(map(place, text.split())) or EMPTY)
    return frame.assign(where=named)
