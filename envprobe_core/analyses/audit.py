"""The protocol audit: every switch between the paper's text and its public code turned alone, and in groups.

A headline is a figure that the paper puts forward, as a claim of claims.csv. Every protocol meets the same
seeds, so that all changes are paired; what only a scorer reads is scored again, not run again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from envprobe_core.analyses.shapley import shapley_values
from envprobe_core.cells import make_cell, parse_seeds
from envprobe_core.claims import Claim, find_claim, measure_parts
from envprobe_core.claims.places import place
from envprobe_core.claims.printed import PAPER_FOLDER
from envprobe_core.engine.recording import Columns, Trajectory, score
from envprobe_core.engine.setting import setting_of
from envprobe_core.experiments import COLUMNS, Names, names
from envprobe_core.measures import confident_counts
from envprobe_core.policies import find_policy
from envprobe_core.protocols import SWITCHES, Protocol, parse_protocol, switch_values
from envprobe_core.show.figures import STRATA
from envprobe_core.show.markup import EMPTY
from envprobe_core.statistics import RESAMPLES, bootstrap_means, mean_intervals, percentile_interval
from envprobe_core.sweep import Task, plan_tasks, score_task, simulate
from envprobe_core.worlds import WORLDS

Floats = npt.NDArray[np.float64]
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
UNANSWERED = ("no-probe", "periodic", "simple", "placebo")
SCRIPTED = ("scripted", "scripted-open", "scripted-true", "scripted-true-open")
MIN_UNITS = 10  # fewer episodes carry no bootstrap worth showing
PRIMARY_REGIME = "S2"  # where the paper prints its numbers


# --- turning switches ---------------------------------------------------------------------------------


def other_value(protocol: str, switch: str) -> str:
    """Return the value of a switch that a protocol does not have."""
    own = getattr(parse_protocol(protocol), switch)
    (other,) = (value for value in switch_values(switch) if value != own)
    return other


def turn(protocol: str, switches: Iterable[str]) -> str:
    """Return the name of a protocol with switches turned to their other value."""
    turned = ",".join(f"{switch}={other_value(protocol, switch)}" for switch in switches)
    if not turned:
        return parse_protocol(protocol).name
    return parse_protocol(protocol + ("," if ":" in protocol else ":") + turned).name


def ends_of(protocols: Names) -> tuple[str, str]:
    """Return the first and the last protocol named.

    A single one leads to `released`, or from there to `paper`.
    """
    asked = [turn(name, ()) for name in names(protocols)]
    if asked[0] != asked[-1]:
        return asked[0], asked[-1]
    return asked[0], "paper" if asked[0] == "released" else "released"


def between(first: str, last: str, coalition: int) -> str:
    """Return the first protocol with the groups of a bit mask set as the last one has them."""
    start, stop = parse_protocol(first), parse_protocol(last)
    return turn(
        first,
        [
            switch
            for bit, group in enumerate(GROUPS.values())
            if coalition >> bit & 1
            for switch in group
            if getattr(start, switch) != getattr(stop, switch)
        ],
    )


def played(protocol: Protocol) -> Protocol:
    """Return the protocol whose episodes another one scores: all that only scorers read is the text's."""
    plain = {switch: switch_values(switch)[0] for switch in SCORED}
    name = ",".join(f"{switch}={getattr(protocol, switch)}" for switch in SWITCHES if switch not in SCORED)
    return replace(protocol, name=name, **plain)


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
        policies: names.
        regime: name of a regime.
        profile: name of an agent profile.
        seeds: as `cells.parse_seeds` reads them; the same for every protocol, so that all are paired.
        budget: probes an episode may spend; -1 is the regime's own.
        threshold: of the policies that have one; -1 is 1.5.
        worlds: names.

    Returns:
        A row an episode and protocol: the columns of `grid.run`, and `confident` and `confident_wrong`, the
        beliefs held with confidence and those of them that are wrong.
    """
    chosen, wanted = parse_seeds(seeds), list(dict.fromkeys(names(protocols)))
    scored: dict[Protocol, list[Protocol]] = {}
    for protocol in map(parse_protocol, wanted):
        scored.setdefault(played(protocol), []).append(protocol)
    cells = [
        make_cell(
            world, policy, regime, protocol, profile, None if budget == -1 else budget,
            threshold if threshold != -1 and find_policy(policy).has_threshold else None,
        )
        for protocol in scored
        for world in names(worlds)
        for policy in names(policies)
    ]  # fmt: skip
    parts = []
    for task in plan_tasks(cells, [chosen] * len(cells)):
        recording = simulate(task)
        for protocol in scored[task.pieces[0].cell.protocol]:
            own = under(task, protocol)
            columns = score_task(own, score(setting_of(own.pieces[0].cell), vars(recording)))
            columns |= count_confident(own, recording)
            keys = pd.DataFrame([piece.cell.key for piece in own.pieces]).astype({"threshold": np.float64})
            which = np.repeat(np.arange(len(keys)), [len(piece.seeds) for piece in own.pieces])
            parts.append(pd.DataFrame({name: keys[name].to_numpy()[which] for name in keys} | columns))
    frame = pd.concat(parts, ignore_index=True)
    order = {parse_protocol(name).name: position for position, name in enumerate(wanted)}
    frame = frame.sort_values(["world", "policy", "seed"]).sort_values(
        "protocol", key=lambda column: column.map(order), kind="stable", ignore_index=True
    )
    return frame[[*COLUMNS, "confident", "confident_wrong"]]


def count_confident(task: Task, recording: Trajectory) -> Columns:
    """Count the confident beliefs of a task's episodes and the wrong ones among them, [row] each."""
    parts, start = [], 0
    for piece in task.pieces:
        rows = recording.rows(slice(start, start + len(piece.seeds)))
        parts.append(confident_counts(rows, piece.cell))
        start += len(piece.seeds)
    return {name: np.concatenate([part[name] for part in parts]) for name in ("confident", "confident_wrong")}


def under(task: Task, protocol: Protocol) -> Task:
    """Return a task with the same rows under another protocol."""
    pieces = (replace(piece, cell=replace(piece.cell, protocol=protocol)) for piece in task.pieces)
    return replace(task, pieces=tuple(pieces))


def run_turned(protocols: Names, *how: object, **setting: object) -> pd.DataFrame:
    """Run the two ends of some protocols, each as it is and with every switch turned alone.

    Args:
        protocols: as `ends_of` reads them.
        how: as in `run_protocols`.
        setting: as in `run_protocols`.
    """
    every = [turn(end, turned) for end in ends_of(protocols) for turned in ((), *([s] for s in TURNED))]
    return run_protocols(every, *how, **setting)  # type: ignore[arg-type]


# --- headlines ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Headline:
    """One figure that the paper puts forward.

    Attributes:
        claim: its name in claims.csv, which gives worlds, policies, measure and the printed number.
        title: as tables and figures call it.
        unit: of what is shown: `points` (shares and rates in percent) or `steps`.
    """

    claim: str
    title: str
    unit: str

    def about(self) -> Claim:
        """Return the claim; a rate over policies takes those that the audit runs."""
        claim = find_claim(self.claim)
        return (
            claim if claim.references else replace(claim, arms=tuple(p for p in claim.arms if p in POLICIES))
        )

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


@dataclass(frozen=True)
class Counts:
    """A headline under one protocol, unit by unit: the figure is the ratio of the two sums.

    Attributes:
        top, bottom: [unit], a unit being a seed in a world; in the headline's unit of measurement.
        worlds: [unit], the stratum to resample within.
    """

    top: Floats
    bottom: Floats
    worlds: npt.NDArray[np.int64]

    @property
    def value(self) -> float:
        """Return the figure."""
        return float(self.top.sum() / self.bottom.sum())


def measure(headline: Headline, episodes: pd.DataFrame) -> Counts | None:
    """Measure a headline on the episodes of one protocol; None where too few of them carry it."""
    claim = headline.about()
    left, _, right = measure_parts(claim.measures[0])
    policy, seed = episodes["policy"].to_numpy(), episodes["seed"].to_numpy()
    rank = pd.Index(claim.worlds).get_indexer(episodes["world"])
    rows = {}  # of each policy, its units in the same order
    for name in (*claim.arms, *claim.references):
        own = np.flatnonzero((policy == name) & (rank >= 0))
        rows[name] = own[np.lexsort([seed[own], rank[own]])]
    arms = np.array([rows[name] for name in claim.arms]).T
    above, below = (episodes[name].to_numpy(dtype=np.float64) if name else None for name in (left, right))
    if claim.kind == "rate":
        top, bottom = above[arms].sum(axis=1), below[arms].sum(axis=1)
    else:
        value = above
        if right:
            value = np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)
        gap = value[arms] - value[rows[claim.references[0]]][:, None] if claim.references else value[arms]
        top, bottom = np.nansum(gap, axis=1), (~np.isnan(gap)).sum(axis=1).astype(float)
    if np.count_nonzero(bottom) < MIN_UNITS:
        return None
    scale = 100.0 if headline.unit == "points" else 1.0
    return Counts(scale * top, bottom, rank[arms[:, 0]])


def measure_all(
    episodes: pd.DataFrame, headlines: Iterable[Headline] = HEADLINES
) -> dict[tuple[str, str], Counts | None]:
    """Measure headlines under every protocol of a frame: (protocol, claim) -> counts."""
    return {
        (protocol, one.claim): measure(one, part)
        for protocol, part in episodes.groupby("protocol", sort=False)
        for one in headlines
    }


def level(figure: Counts | None, resamples: int = RESAMPLES) -> tuple[float, float, float]:
    """Return a figure with its interval: estimate, low, high (NaN where it is missing)."""
    if figure is None:
        return np.nan, np.nan, np.nan
    means = bootstrap_means(np.stack([figure.top, figure.bottom], axis=1), figure.worlds, resamples=resamples)
    means = means[means[:, 1] > 0]
    low, high = percentile_interval(means[:, 0] / means[:, 1])
    return figure.value, float(low), float(high)


def change(
    base: Counts | None, turned: Counts | None, resamples: int = RESAMPLES
) -> tuple[float, float, float]:
    """Return how much a figure changes: estimate, low, high (NaN where one is missing).

    The same seeds are drawn on both sides of a resample, so that the interval is that of a paired
    difference, also where the figure is a ratio.

    Args:
        base: the figure before.
        turned: the figure after, of the same seeds in the same worlds.
        resamples: bootstrap resamples.
    """
    if base is None or turned is None:
        return np.nan, np.nan, np.nan
    columns = np.stack([turned.top, turned.bottom, base.top, base.bottom], axis=1)
    means = bootstrap_means(columns, base.worlds, resamples=resamples)
    means = means[(means[:, 1] > 0) & (means[:, 3] > 0)]
    low, high = percentile_interval(means[:, 0] / means[:, 1] - means[:, 2] / means[:, 3])
    return turned.value - base.value, float(low), float(high)


def turned_alone(
    episodes: pd.DataFrame,
    protocols: Names,
    resamples: int = RESAMPLES,
    headlines: tuple[Headline, ...] = HEADLINES,
) -> pd.DataFrame:
    """Compare headlines before and after each switch is turned alone.

    Args:
        episodes: from `run_turned`.
        protocols: as given there.
        resamples: bootstrap resamples.
        headlines: those to compare; the episodes hold the worlds and policies that they speak of.

    Returns:
        A row a base protocol, switch and headline: `base turned claim headline unit printed value value_low
        value_high shift shift_low shift_high`; `turned` is `switch=value`, `""` for the base itself, and
        `shift` is the value minus that of the base.
    """
    counts, rows = measure_all(episodes, headlines), []
    for base in ends_of(protocols):
        for switch in ("", *TURNED):
            turned = f"{switch}={other_value(base, switch)}" if switch else ""
            for one in headlines:
                before = counts[base, one.claim]
                after = counts[turn(base, [switch] if switch else ()), one.claim]
                about = (base, turned, one.claim, one.title, one.unit, one.printed)
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
        resamples: bootstrap resamples.
        setting: as in `run_protocols`.

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
    parts = (f"gain under `{first}`", *GROUPS, f"gain under `{last}`")
    switches = (EMPTY, *map(_coded, GROUPS.values()), EMPTY)
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


def _coded(switches: Iterable[str]) -> str:
    *most, last = (f"`{switch}`" for switch in switches)
    return f"{', '.join(most)} and {last}" if most else last


# --- a gain without answers ---------------------------------------------------------------------------


def run_unanswered(
    protocols: Names, regime: str = "S2", profile: str = "typical", *how: object, **setting: object
) -> pd.DataFrame:
    """Run agents on tools where no probe is answered: the page's own, and four that follow a script.

    The scripted ones never err and read nothing from a probe. The protocol is the first named that withholds
    answers, else `released`.

    Args:
        protocols: names.
        regime: name of a regime.
        profile: name of an agent profile.
        how: as in `run_protocols`, from the seeds on.
        setting: as in `run_protocols`.

    Returns:
        A row an episode of No-Probe, Periodic, Simple and Placebo for each profile.
    """
    asked = [turn(name, ()) for name in names(protocols)]
    asked = [name for name in asked if parse_protocol(name).answer == "withheld"] or ["released"]
    agents = dict.fromkeys((profile, *SCRIPTED))
    parts = [
        run_protocols(asked[:1], UNANSWERED, regime, agent, *how, worlds=("tooldag",), **setting)  # type: ignore[arg-type]
        for agent in agents
    ]
    return pd.concat(parts, ignore_index=True)


def summarize_unanswered(frame: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Put together what each agent shows without any answer.

    Returns:
        A row a profile: `profile protocol n idle periodic simple` (accuracy in percent), `gain` (Simple minus
        Periodic, points) and `terminal` (the same by the share of fields right at the end), each with `_low`
        and `_high`, `differ` (episodes in which Simple and its Placebo are not the same),
        `success_periodic success_simple` in percent and `onset_periodic onset_simple`.
    """
    rows = []
    for profile, part in frame.groupby("profile", sort=False):
        wide = part.pivot(index="seed", columns="policy")
        gaps = [
            100 * (wide[name, "simple"] - wide[name, "periodic"]).to_numpy()
            for name in ("accuracy", "accuracy_terminal")
        ]
        mean, low, high = mean_intervals(np.stack(gaps, axis=1), resamples=resamples)
        differ = np.zeros(len(wide), dtype=bool)
        for name in ("accuracy", "success", "steps", "useful"):
            differ |= (wide[name, "simple"] != wide[name, "placebo"]).to_numpy()
        row = {"profile": profile, "protocol": part["protocol"].iloc[0], "n": len(wide)}
        for name, policy in (("idle", "no-probe"), ("periodic", "periodic"), ("simple", "simple")):
            row[name] = 100 * wide["accuracy", policy].mean()
        for position, name in enumerate(("gain", "terminal")):
            row |= {name: mean[position], f"{name}_low": low[position], f"{name}_high": high[position]}
        row["differ"] = int(differ.sum())
        for policy in ("periodic", "simple"):
            row[f"success_{policy}"] = 100 * wide["success", policy].mean()
            row[f"onset_{policy}"] = wide["collapse_onset", policy].mean()
        rows.append(row)
    return pd.DataFrame(rows)


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
