"""Estimates from frames of episodes: pairs are joined by key, groups are made by columns.

`estimate` answers what is asked (`estimating.What`); `compare` and `summarize` are its two everyday forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial, reduce
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from envprobe_core.conditions import Names, names
from envprobe_core.errors import InputError, look_up, require
from envprobe_core.estimating import Arm, Sample, What, estimates_of, gain, reach_of, sample_of
from envprobe_core.measures import is_played
from envprobe_core.naming import Titles, find_name
from envprobe_core.policies import NAMES
from envprobe_core.statistics import RESAMPLES, mean_track
from envprobe_core.worlds import MODULES
from envprobe_core.worlds.base import Floats, Ints

STRATA: dict[str, tuple[str, ...]] = {  # how the paper pools worlds
    "procedural": ("tooldag",),
    "spatial": ("objectstate", "graphnav"),
    "combined": ("tooldag", "objectstate", "graphnav"),
}
KEY = ["regime", "policy", "world", "seed"]
NULLABLE = ("collapse_onset", "action_onset", "chain_length")  # never: censored, or no way there is
MEASURE = re.compile(r"([a-z_]+)(?:([/<>-])([a-z_]+|\d+(?:\.\d+)?))?")
MARKS = ("invalid_share", "loose_share")  # of a frame, where a language model answered
JOINED = " + "  # between the names of several models that answered one condition
WHO = "answered_by"  # a frame's column: which models did, by the names that their server calls them
GAIN = {
    "gain": "mean", "gain_low": "low", "gain_high": "high", "gain_low_adjusted": "low_adjusted",
    "gain_high_adjusted": "high_adjusted", "p": "p", "p_adjusted": "p_adjusted",
}  # fmt: skip
"""The columns of a gain, and the parts of an estimate that they hold."""
MEAN = {"mean": "", "low": "_low", "high": "_high", "n": "_n"}


class NotTestable(Exception):
    """Why a frame cannot tell what it was asked."""


def columns_read(measures: Iterable[str]) -> list[str]:
    """The columns that measures read.

    Raises:
        InputError: for a text that is no measure.

    >>> columns_read(["useful/probes", "accuracy"])
    ['useful', 'probes', 'accuracy']
    """
    names = []
    for text in measures:
        if (parts := MEASURE.fullmatch(str(text))) is None:
            what = "a column, or two joined by one of / - < >, is accepted"
            raise InputError(f"measure {text!r} cannot be read; {what}")
        names += [name for name in parts.group(1, 3) if name and not name[0].isdigit()]
    return names


def measured(text: str, column: Callable[[str], Floats]) -> Floats:
    """A measure of episodes: a column, a ratio, a difference, or 1 and 0 for a comparison.

    Args:
        text: a column's name, or two joined by one of / - < > (a number may stand on the right); one that
            `columns_read` can read.
        column: gives a column by its name, in any shape.

    Returns:
        The columns' shape; NaN where the measure is undefined: nothing in the denominator, an event that
        never came. A censored event compared with a number counts as later than it.

    >>> episodes = {"useful": np.array([1.0, 2.0]), "probes": np.array([2.0, 0.0])}
    >>> measured("useful/probes", episodes.__getitem__).tolist()
    [0.5, nan]
    """
    name, sign, other = MEASURE.fullmatch(text).group(1, 2, 3)  # type: ignore[union-attr]
    left = column(name)
    if not sign:
        return left
    if other[0].isdigit():
        left, right = np.where(np.isnan(left), np.inf, left), np.asarray(float(other))
    else:
        right = column(other)
    if sign == "/":
        return np.divide(left, right, out=np.full(left.shape, np.nan), where=right > 0)
    if sign == "-":
        return left - right
    holds = left < right if sign == "<" else left > right
    return np.where(np.isnan(left) | np.isnan(right), np.nan, holds)


@dataclass(frozen=True)
class PairedEpisodes:
    """Episodes of one protocol and profile; joined by key, so that no order of rows moves anything."""

    column: Callable[[str], Floats]  # by its name, [row], or [row, column] for many agents at once
    conditions: Mapping[tuple[str, str, str], Ints]  # by regime, policy and world: rows in order of seed
    seed: Ints  # [row]

    @classmethod
    def of(
        cls, frame: pd.DataFrame, by: Sequence[str] = (), **chosen: str
    ) -> list[tuple[tuple[Any, ...], PairedEpisodes]]:
        """Take the rows of a frame in which the columns named have the values `chosen`.

        Returns:
            For each combination of values of the columns `by`, in order of first appearance, these values and
            its episodes.

        Raises:
            InputError: for a missing key column, a value that the frame does not hold, or an episode that
                occurs twice (a frame with several budgets or thresholds of one policy: choose one first).
        """
        require(frame, [*KEY, *by, *chosen])
        for name, asked in chosen.items():
            own = frame[name] == asked
            if not own.any():
                held = sorted(map(str, frame[name].unique()))
                raise InputError(f"the frame has no {name} {asked!r}; it holds {', '.join(held)}")
            frame = frame[own]
        parts = list(dict.fromkeys([*by, *KEY[:3]]))
        if (twice := frame.duplicated([*parts, "seed"]).to_numpy()).any():
            at = frame.iloc[np.argmax(twice)]
            raise InputError(
                f"seed {at['seed']} of {at['policy']} in {at['world']}, {at['regime']}, occurs twice; "
                "one budget and one threshold a policy are accepted"
            )
        column = cache(lambda name: frame[name].to_numpy(dtype=np.float64, na_value=np.nan))
        seed, how = frame["seed"].to_numpy(), {"sort": False, "dropna": False, "observed": True}
        condition = frame.groupby(parts, **how).ngroup().to_numpy()
        order, firsts = np.lexsort([seed, condition]), np.unique(condition, return_index=True)[1]
        rows = np.split(order, np.searchsorted(condition[order], np.arange(1, len(firsts))))
        heads = frame[parts].iloc[firsts]
        group = heads.groupby(list(by), **how).ngroup().to_numpy() if by else np.zeros(len(heads), int)
        found: dict[int, tuple[tuple[Any, ...], dict[Any, Ints]]] = {}
        named = heads.to_dict("records")
        for at in np.argsort(firsts):  # in order of first appearance
            _, conditions = found.setdefault(int(group[at]), (tuple(named[at][name] for name in by), {}))
            conditions[tuple(named[at][name] for name in KEY[:3])] = rows[at]
        return [(key, cls(column, conditions, seed)) for key, conditions in found.values()]

    def sample(
        self,
        measure: str,
        regime: str,
        worlds: Sequence[str],
        arms: Sequence[str],
        reference: str | None = None,
        *,
        pooled_events: bool = False,
    ) -> Sample:
        """A measure of the arms (minus that of a reference), summed by seed, world by world.

        Args:
            measure: as in `measured`.
            regime: whose episodes.
            worlds: in each, policies share seeds: others are left out.
            arms: policies.
            reference: a policy.
            pooled_events: whether the measure a/b gives sums of a over sums of b; else each episode's own
                value counts once.

        Raises:
            NotTestable: for a missing condition or column, and for fewer than two shared seeds.
            InputError: for a gap in a column that only a damaged frame can have.
        """
        policies, places = arms if reference is None else (*arms, reference), []
        columns: dict[str, Floats] = {}
        for world in worlds:
            for policy in policies:
                if (regime, policy, world) not in self.conditions:
                    raise NotTestable(f"the frame has no {policy} in {world}, {regime}")
            for name in columns_read([measure]) if not columns else ():
                try:
                    columns[name] = self.column(name)
                except KeyError:
                    raise NotTestable(f"the frame has no column {name}") from None
                except (TypeError, ValueError) as error:
                    raise InputError(f"column {name} holds no numbers: {error}") from None
            conditions = [self.conditions[regime, policy, world] for policy in policies]
            seeds = [self.seed[condition] for condition in conditions]
            if all(np.array_equal(seeds[0], own) for own in seeds):  # as nearly always
                common, rows = seeds[0], conditions
            else:
                common = reduce(np.intersect1d, seeds)
                rows = [own[np.isin(of, common)] for own, of in zip(conditions, seeds, strict=True)]
            places.append(np.array(rows))
            for name in (own for own in columns if own not in NULLABLE):  # a gap: not measured, or damage
                for policy, own in zip(policies, places[-1], strict=True):
                    if (gaps := np.isnan(columns[name][own]).reshape(len(own), -1).any(axis=1)).any():
                        if gaps.all():
                            raise NotTestable(f"{name} was not measured for {policy} in {world}, {regime}")
                        seed = self.seed[own[np.argmax(gaps)]]
                        raise InputError(f"{name} is missing for seed {seed} of {policy} in {world}")
            if len(common) < 2:
                raise NotTestable(f"{world} has {len(common)} episodes in common")
        whole = np.concatenate(places, axis=1)
        labels = np.repeat(np.arange(len(worlds)), [own.shape[1] for own in places])
        texts = columns_read([measure]) if pooled_events else [measure]
        taken = {name: own[whole] for name, own in columns.items()}
        tables = [measured(text, taken.__getitem__).reshape(*whole.shape, -1) for text in texts]
        if pooled_events:
            return Sample(tables[0].sum(axis=0), tables[1].sum(axis=0), labels)
        if reference is None:
            return Sample.of_values(tables[0], labels)
        return Sample.of_values(tables[0][:-1] - tables[0][-1:], labels, reach_of(measure))


def _meant(given: str, titles: Titles) -> str:
    """The name that a title stands for; what stands for none as it is."""
    with suppress(InputError):
        return find_name("policy", given, titles)
    return given


def _played(frame: pd.DataFrame) -> pd.DataFrame:
    """The episodes of a frame, without those of which no belief update of a model could be read."""
    return frame[is_played(frame["invalid_share"])] if "invalid_share" in frame else frame


def _refuse_several_models(frame: pd.DataFrame, by: Sequence[str]) -> None:
    """Refuse episodes to compare of which more than one model answered a group."""
    said = frame[frame[WHO].notna()]
    for _, own in said.groupby(list(by), sort=False) if by else [((), said)]:
        if len(who := list(dict.fromkeys(own[WHO]))) > 1 or any(JOINED in names for names in who):
            by_policy = ((name, dict.fromkeys(part[WHO])) for name, part in own.groupby("policy"))
            held = "; ".join(f"{name}: {', '.join(models)}" for name, models in by_policy)
            accepted = "one model is accepted; across_models=True compares them all the same"
            raise InputError(f"several models answered ({held}); {accepted}")


def estimate(
    episodes: pd.DataFrame,
    what: What,
    by: Names = (),
    *,
    strata: Mapping[str, tuple[str, ...]] | None = None,
    family: int = 1,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Estimate a statistic of a measure over the episodes of every group, with 95% intervals.

    Args:
        episodes: one row an episode.
        what: of `estimating`: a `gain`, `mean`, `shift` or `track`.
        by: columns; each combination of their values is a group, in order of first appearance.
        strata: names and the worlds that each pools; by default all worlds of a group.
        family: comparisons that the adjusted interval and p of a gain allow for.
        resamples: of each interval.

    Returns:
        One row a group and stratum. Of a gain as `compare`, of a mean as `summarize`; of a shift
        `shift shift_low shift_high p n`. Of a track, whose column holds an array [time] for each episode, a
        row a step, as `statistics.mean_track`.

    Raises:
        InputError: as `compare` and `summarize`.

    >>> from envprobe_core import run
    >>> from envprobe_core.estimating import gain, shift
    >>> frame = run("tooldag", "simple periodic", protocols="paper observed", seeds="0:40")
    >>> estimate(frame, gain("simple", "periodic"), by="protocol")["gain"].round(2).tolist()
    [-0.46, -4.91]
    >>> start = shift("simple", "periodic", {"protocol": "observed"}, {"protocol": "paper"})
    >>> estimate(frame, start)["shift"].round(2).tolist()
    [-4.44]
    """
    by, first = list(names(by)), dict(what.arms[0]) if what.arms else {}
    if what.statistic == "mean":
        rows = _rows_of(episodes, first)
        return summarize(rows, what.measure, by, strata=strata, resamples=resamples)
    if what.statistic == "gain":
        arm, reference = (side["policy"] for side in what.arms)
        rows = _rows_of(episodes, {name: value for name, value in first.items() if name != "policy"})
        pooled = {"all": tuple(dict.fromkeys(rows["world"]))} if strata is None else strata
        asked = {"by": by, "strata": pooled, "family": family, "resamples": resamples}
        return compare(rows, arm, reference, what.measure, **asked)
    heads, parts = [], []
    for head, rows in _groups(episodes, by, strata):
        heads.append(head)
        parts.append(_rows_of(rows, first) if what.statistic == "track" else _paired(rows, what))
    if what.statistic == "track":
        tracks = [_track(rows, what.measure, resamples) for rows in parts]
        return pd.concat([pd.DataFrame(head | own) for head, own in zip(heads, tracks, strict=True)])
    numbers = {"shift": "mean", "shift_low": "low", "shift_high": "high", "p": "p", "n": "n"}
    shifts = estimates_of([sample_of(what, *pairs) for pairs in parts], resamples=resamples)
    return pd.DataFrame(
        head | {name: getattr(own, part)[0] for name, part in numbers.items()}
        for head, own in zip(heads, shifts, strict=True)
    )


def _groups(
    episodes: pd.DataFrame, by: list[str], strata: Mapping[str, tuple[str, ...]] | None
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """The episodes of every group and stratum, each with what its row says of it."""
    require(episodes, [*by, "world", "seed"])
    how = {"sort": False, "dropna": False, "observed": True}
    played = _played(episodes)
    for key, rows in played.groupby(by, **how) if by else [((), played)]:
        head = dict(zip(by, key, strict=True))
        if strata is None:
            yield head, rows
        for stratum, worlds in (strata or {}).items():
            yield head | {"stratum": stratum}, rows[rows["world"].isin(worlds)]


def _rows_of(episodes: pd.DataFrame, arm: Arm) -> pd.DataFrame:
    """The episodes of an arm."""
    require(episodes, list(arm))
    for name, value in arm.items():
        episodes = episodes[episodes[name] == value]
        if episodes.empty:
            raise InputError(f"the frame has no {name} {value!r}")
    return episodes


def _paired(episodes: pd.DataFrame, what: What) -> tuple[list[Floats], Ints]:
    """The measure of each arm, [unit], on the worlds and seeds that all share, and each unit's world."""
    require(episodes, columns_read([what.measure]))
    tables = [_rows_of(episodes, arm).set_index(["world", "seed"]) for arm in what.arms]
    for arm, table in zip(what.arms, tables, strict=True):
        if table.index.has_duplicates:
            world, seed = table.index[table.index.duplicated()][0]
            raise InputError(
                f"seed {seed} in {world} occurs twice for {dict(arm)}; name what tells them apart"
            )
    shared = reduce(pd.Index.intersection, (table.index for table in tables)).sort_values()

    def column(table: pd.DataFrame, name: str) -> Floats:
        return table.loc[shared, name].to_numpy(np.float64, na_value=np.nan)

    arms = [measured(what.measure, partial(column, table)) for table in tables]
    return arms, np.unique(shared.get_level_values("world"), return_inverse=True)[1]


def _track(episodes: pd.DataFrame, measure: str, resamples: int) -> dict[str, npt.NDArray[np.generic]]:
    """The mean of a column of arrays [time] at each step, resampled within worlds, by the column's name."""
    worlds = episodes["world"].to_numpy(dtype=str)
    strata = worlds if len(set(worlds)) > 1 else None
    found = mean_track(np.stack(episodes[measure].to_list()), resamples, strata)
    return {measure if name == "accuracy" else name: values for name, values in found.items()}


def compare(
    frame: pd.DataFrame,
    arm: str,
    reference: str,
    measure: str = "accuracy",
    *,
    by: Names = ("protocol",),
    strata: Mapping[str, tuple[str, ...]] = STRATA,
    family: int = 1,
    resamples: int = RESAMPLES,
    across_models: bool = False,
) -> pd.DataFrame:
    """Estimate the mean difference of two policies over pairs of episodes with the same world and seed.

    Pairs are resampled within their world. A pair in which the measure is undefined on one side (nothing
    fired, never collapsed) is resampled but does not count.

    Args:
        frame: one row an episode, of one regime unless `by` names it.
        measure: a column, or two joined by one of / - < >.
        by: columns; each combination of their values is compared by itself.
        strata: names and the worlds that each pools.
        family: comparisons that the adjusted interval and p allow for.
        across_models: whether episodes that several language models answered may be compared; their server
            says which (`answered_by`), as when a proxy falls back on another.

    Returns:
        One row a combination and stratum: `by`, `stratum arm reference`; `gain` with its 95% interval
        `gain_low gain_high` and the adjusted one `gain_low_adjusted gain_high_adjusted`, in points where the
        measure is a share, else in its own unit; two-sided `p` and `p_adjusted`; `n` pairs that count, and
        how many of them are the `same` on both sides. NaN where fewer than `MIN_UNITS` pairs count. Of a
        frame that says so, also `invalid_share` and `loose_share`: of the belief updates that a language
        model gave in the episodes of both policies, those that could not be read, or only loosely.

    Raises:
        InputError: for a policy or column that the frame does not have, an episode that occurs twice, a gap
            in a column, `policy` in `by`, and several models that answered.

    >>> from envprobe_core import run
    >>> frame = run("tooldag", "simple periodic", protocols="paper", seeds="0:40")
    >>> tools = {"tools": ("tooldag",)}
    >>> found = compare(frame, "simple", "periodic", strata=tools)
    >>> found[["gain", "n", "same"]].round(2).to_dict("records")
    [{'gain': -0.46, 'n': 40, 'same': 6}]
    """
    by = list(names(by))
    if "policy" in by:
        raise InputError("by 'policy': a pair is of two policies; name columns that both share, as protocol")
    require(frame, read := list(dict.fromkeys([*KEY, *by, *columns_read([measure])])))
    held = sorted(map(str, frame["policy"].unique()))
    titles = {name: NAMES.get(name, ()) for name in held}
    arm, reference = (_meant(one, titles) for one in (arm, reference))
    if missing := {arm, reference} - set(held):
        raise InputError(f"the frame has no policy {min(missing)!r}; it holds {', '.join(held)}")
    for name, worlds in strata.items():
        if isinstance(worlds, str) or not worlds:
            raise InputError(f"stratum {name!r} is {worlds!r}; give a tuple of worlds")
        for world in worlds:
            look_up("world", world, MODULES)
    asked, samples = gain(arm, reference, measure), {}
    rows, marks, frame = [], [name for name in MARKS if name in frame], _played(frame)
    own = frame.loc[frame["policy"].isin((arm, reference)), read]
    if WHO in frame and not across_models:
        _refuse_several_models(frame.loc[own.index], by)
    for key, episodes in PairedEpisodes.of(own, by):
        if len(regimes := list(dict.fromkeys(regime for regime, _, _ in episodes.conditions))) > 1:
            held = ", ".join(regimes)
            raise InputError(f"the frame has regimes {held}; name `regime` in `by`, or choose one")
        for stratum, worlds in strata.items():
            row = dict(zip(by, key, strict=True)) | dict.fromkeys(GAIN, np.nan)
            row |= {"stratum": stratum, "arm": arm, "reference": reference, "n": 0, "same": 0}
            rows.append(row)
            if marks:
                here = frame["policy"].isin((arm, reference)) & frame["world"].isin(worlds)
                here &= np.logical_and.reduce([frame[name] == own for name, own in zip(by, key, strict=True)])
                row |= frame.loc[here, marks].mean().to_dict()
            try:
                pairs = episodes.sample(measure, regimes[0], worlds, (arm,), reference)
            except NotTestable:
                continue
            row["same"] = int(((pairs.top == 0) & (pairs.bottom > 0)).sum())
            samples[len(rows) - 1] = pairs.times(asked.scale)
    estimates = estimates_of([*samples.values()], family=family, resamples=resamples)
    for place, found in zip(samples, estimates, strict=True):
        rows[place] |= {name: getattr(found, part)[0] for name, part in GAIN.items()} | {"n": int(found.n[0])}
    return pd.DataFrame(rows, columns=[*by, "stratum", "arm", "reference", *GAIN, "n", "same", *marks])


def summarize(
    frame: pd.DataFrame,
    measures: Names | Mapping[str, str],
    by: Names,
    *,
    strata: Mapping[str, tuple[str, ...]] | None = None,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Average measures over the episodes of every group, with 95% intervals.

    Success has Wilson's interval, every other measure the percentile interval of the bootstrap, resampled
    within worlds. Episodes in which a measure is undefined (NaN) are left out of its mean.

    Args:
        frame: one row an episode.
        measures: columns, or two joined by one of / - < >; or such by the names that they get, side by side.
        by: columns that name the groups.
        strata: names and the worlds that each pools; by default all worlds of a group.

    Returns:
        One row a group, stratum and measure, groups in order of first appearance: `by`, `stratum` (where
        strata are given), `measure mean low high n`. NaN ends where some world has a single episode. Of
        measures with names one row a group and stratum, with four columns a name: `x x_low x_high x_n`.
        Of a frame that says so, also `invalid_share` and `loose_share`, as in `compare`: means of the
        episodes of the group and stratum. One of which no belief update could be read is no episode.

    Raises:
        InputError: for a column that the frame does not have.

    >>> from envprobe_core import run
    >>> frame = run("tooldag", "simple", protocols="paper", seeds="0:40")
    >>> summarize(frame, "success", "policy").round(3).to_dict("records")
    [{'policy': 'simple', 'measure': 'success', 'mean': 0.225, 'low': 0.123, 'high': 0.375, 'n': 40}]
    """
    texts = list(measures.values() if isinstance(measures, Mapping) else names(measures))
    by = list(names(by))
    require(frame, ["world", "seed", *by, *columns_read(texts)])
    for one in chain.from_iterable((strata or {}).values()):
        look_up("world", one, MODULES)
    frame = _played(frame).reset_index(drop=True)
    try:
        tables = [
            measured(text, lambda name: frame[name].to_numpy(dtype=np.float64, na_value=np.nan))
            for text in texts
        ]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"one of the columns {', '.join(columns_read(texts))} holds no numbers: {error}"
        ) from None
    world, seed = frame["world"].to_numpy(dtype=str), frame["seed"].to_numpy()
    taken = {*by, *(measures if isinstance(measures, Mapping) else ())}
    marks = [name for name in MARKS if name in frame and name not in taken]
    keys, samples, shares = [], [], []
    for key, part in frame[by].groupby(by, sort=False, dropna=False, observed=True) if by else [((), frame)]:
        places = part.index.to_numpy()
        places = places[np.lexsort([seed[places], world[places]])]
        for stratum, worlds in ({"": None} if strata is None else strata).items():
            own = places if worlds is None else places[np.isin(world[places], worlds)]
            keys.append((*key, *([] if strata is None else [stratum])))
            shares.append(frame[marks].iloc[own].mean().tolist())
            for text, table in zip(texts, tables, strict=True):
                places_of = np.unique(world[own], return_inverse=True)[1]
                samples.append(Sample.of_mean(table[own], places_of, is_share=text == "success"))
    rows_of = [
        [float(part[0]) for part in found[:3]] + [int(found.n[0])]
        for found in estimates_of(samples, resamples=resamples)
    ]
    head = [*by, *([] if strata is None else ["stratum"])]
    if isinstance(measures, Mapping):
        named = [f"{name}{end}" for name in measures for end in MEAN.values()]
        side_by_side = np.reshape(np.array(rows_of, dtype=object), (len(keys), len(named))).tolist()
        rows = [(*key, *row, *own) for key, row, own in zip(keys, side_by_side, shares, strict=True)]
        return pd.DataFrame(rows, columns=[*head, *named, *marks])
    every = (((*key, text), own) for key, own in zip(keys, shares, strict=True) for text in texts)
    rows = [(*key, *row, *own) for (key, own), row in zip(every, rows_of, strict=True)]
    return pd.DataFrame(rows, columns=[*head, "measure", *MEAN, *marks])
