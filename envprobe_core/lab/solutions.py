"""What the solved exercises compute and say; their numbers and conclusions come from the episodes at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.confidence import CONFIDENT, confident_counts
from envprobe_core.engine.recording import Trajectory
from envprobe_core.lab.boards import POINTS, title_of
from envprobe_core.lab.contest import Contest
from envprobe_core.markup import Table, Text, bracket, code, number, percent, signed, span
from envprobe_core.prose import lean
from envprobe_core.protocols import Protocol
from envprobe_core.stats import RESAMPLES, Estimate, paired_bootstrap

if TYPE_CHECKING:
    import pandas as pd

QUANTILE, POWER_QUANTILE = 1.96, 0.84  # of a two-sided test at 5%, and of 80% power
_VERBS = {1: "gains", -1: "loses", 0: "is not told apart:"}


def show_means(frame: pd.DataFrame, by: Sequence[str], columns: Sequence[str], label: str) -> Table:
    """Average columns of a frame of episodes over groups.

    Args:
        frame: one row an episode.
        by: the columns that make a group.
        columns: what to average.
        label: the table's label.
    """
    rows = [
        [*(f"`{part}`" for part in key), *(number(row[name], 3) for name in columns), str(int(row["n"]))]
        for key, row in frame.groupby(list(by), sort=False)[list(columns)]
        .mean()
        .assign(n=frame.groupby(list(by), sort=False).size())
        .iterrows()
    ]
    caption = "Means over episodes."
    return Table(label, caption, [*by, *columns, "episodes"], rows, "l" * len(by) + "r" * (len(columns) + 1))


def difference(
    arm: pd.DataFrame, reference: pd.DataFrame, measure: str = "accuracy", resamples: int = RESAMPLES
) -> Estimate:
    """Bootstrap the paired difference of two sets of episodes, in points, joined by world and seed.

    Args:
        arm: one row an episode.
        reference: the same episodes under what is subtracted.
        measure: a column of shares.
        resamples: bootstrap resamples, within each world.
    """
    pairs = arm.merge(reference, on=["world", "seed"], suffixes=("_arm", "_reference"), validate="one_to_one")
    points = POINTS * (
        pairs[f"{measure}_arm"].to_numpy(dtype=float) - pairs[f"{measure}_reference"].to_numpy(dtype=float)
    )
    return paired_bootstrap(points, pairs["world"].to_numpy(dtype=str), resamples)


def show_differences(found: Mapping[str, Estimate], what: str, label: str) -> Table:
    """Show paired differences in points, one row each, with a word for the side on which they lie."""
    words = {1: "above zero", -1: "below zero", 0: "holds zero"}
    rows = [
        [name, signed(e.mean), bracket(e.low, e.high), words[lean(e.low, e.high) or 0], str(e.n)]
        for name, e in found.items()
    ]
    caption = f"{what}, in points, with its 95% interval over paired episodes."
    return Table(
        label, caption, ("setting", "difference", "95% interval", "interval", "pairs"), rows, "lrrlr"
    )


def tell_ends(frame: pd.DataFrame, column: str, resamples: int = RESAMPLES) -> Text:
    """Say what moving a setting from its first to its last value does to accuracy and to success."""
    told = []
    for protocol, part in frame.groupby("protocol", sort=False):
        values = list(dict.fromkeys(part[column]))
        first, last = (part[part[column] == value] for value in (values[0], values[-1]))
        parts = []
        for measure in ("accuracy", "success"):
            e = difference(last, first, measure, resamples)
            verb = _VERBS[lean(e.low, e.high) or 0]
            parts.append(f"{measure} {verb} {signed(e.mean)} points ({span(e.low, e.high)})")
        told.append(f"* `{protocol}`, {column} {values[-1]:g} against {values[0]:g}: {parts[0]}, {parts[1]}.")
    return Text("\n".join(told))


def tell_gate(frame: pd.DataFrame) -> Text:
    """Say up to which threshold the whole budget is spent, and from which on no probe fires."""
    told = []
    for protocol, part in frame.groupby("protocol", sort=False):
        mean = part.groupby("threshold")["probes"].mean()
        most = part["budget"].iloc[0]
        full = mean[mean >= most - 0.05].index
        none = mean[mean == 0].index
        spent = f"the budget of {most} is spent up to a threshold of {full.max():g}"
        unspent = f"no threshold tried spends the whole budget of {most}"
        shut = f"from {none.min():g} on the gate never opens"
        opens = f"the gate opens at every threshold tried, up to {mean.index.max():g}"
        told.append(f"* `{protocol}`: {spent if len(full) else unspent}; {shut if len(none) else opens}.")
    return Text("\n".join(told))


def tell_pairing(first: Trajectory, second: Trajectory) -> Text:
    """Say how long two policies meet the same world on the same seeds, and what that does for precision.

    Args:
        first: episodes of a policy that probes.
        second: the same seeds under No-Probe.
    """
    probed = first.probe >= 0
    start = np.where(probed.any(axis=1), np.argmax(probed, axis=1), probed.shape[1])
    times = np.arange(first.gold.shape[1])
    before = times[None, :] <= start[:, None]
    same = (first.gold == second.gold).all(axis=2)
    ends = [(run.belief[:, -1] == run.gold[:, -1]).mean(axis=1) for run in (first, second)]
    paired = float(np.var(ends[0] - ends[1], ddof=1))
    apart = float(np.var(ends[0], ddof=1) + np.var(ends[1], ddof=1))
    text = (
        f"At step 0 the world is the same in {percent(same[:, 0].mean())} of the {len(same)} seeds, and up "
        f"to the first probe in {percent((same | ~before).all(axis=1).mean())}. Afterwards actions "
        "differ, and with them the world: at the last step it is still the same in "
        f"{percent(same[:, -1].mean())}. "
    )
    if apart > 0:
        text += (
            f"The variance of a paired difference of final accuracy is {percent(paired / apart)} of what two "
            "independent samples would have."
        )
    return Text(text)


def tell_spending(
    steps: pd.DataFrame,
    scores: Mapping[str, np.ndarray],
    budget: int,
    threshold: float,
    where: str = "on tools",
) -> Text:
    """Say when policies spend their budget, and how many first-step scores reach the threshold.

    Args:
        steps: from `experiments.load_probe_steps`.
        scores: by policy, the highest score of each episode at step 0, [row].
        budget: B.
        threshold: in force.
        where: the world of the scores, in words.
    """
    lines = []
    for (protocol, policy), part in steps.groupby(["protocol", "policy"], sort=False):
        at_once = ((part["first"] == 0) & (part["last"] <= budget - 1)).mean()
        first, last = (number(part[column].mean(), 1) for column in ("first", "last"))
        lines.append(
            f"* `{protocol}`, {title_of(policy)}: first probe at step {first}, last at {last} on average; "
            f"{percent(at_once)} of the episodes with a probe begin at step 0 and are done within the first "
            f"{budget} steps."
        )
    for policy, values in scores.items():
        lines.append(
            f"* {title_of(policy)}, {where}: at step 0 the best score is {number(float(np.mean(values)))} on "
            f"average and reaches {threshold:g} in {percent(float(np.mean(values >= threshold)))} of the "
            "episodes."
        )
    return Text("\n".join(lines))


def tell_yoked(runs: Mapping[str, Trajectory]) -> Text:
    """Say how many episodes of each placebo probe when and what Simple probes.

    Args:
        runs: of `simple`, `placebo` and `yoked`, on the same seeds.
    """
    simple = runs["simple"].probe
    parts = [
        f"{title_of(name)} repeats Simple's steps and fields exactly in "
        f"{percent((runs[name].probe == simple).all(axis=1).mean())} of the episodes"
        for name in ("placebo", "yoked")
    ]
    return Text(f"{parts[0]}; {parts[1]}.")


def show_repeats(frame: pd.DataFrame, label: str) -> Table:
    """Show the share of probes that went to a field already probed in the episode."""
    sums = frame.groupby(["protocol", "policy"], sort=False)[["probes", "repeated_probes", "useful"]].sum()
    rows = [
        [
            f"`{protocol}`",
            title_of(policy),
            f"{row['probes']:,.0f}",
            *(
                percent(row[n] / row["probes"] if row["probes"] else np.nan)
                for n in ("repeated_probes", "useful")
            ),
        ]
        for (protocol, policy), row in sums.iterrows()
    ]
    caption = "Probes, the share of them that repeat a field, and the share whose answer was news."
    return Table(
        label, caption, ("protocol", "policy", "probes", "same field again", "useful"), rows, "llrrr"
    )


def tell_conditionals(run: Trajectory, protocol: Protocol) -> Text:
    """Say both conditionals between being wrong and being confident."""
    counts = {name: int(column.sum()) for name, column in confident_counts(run, protocol).items()}
    both, sure, wrong = counts["confident_wrong"], counts["confident"], counts["wrong"]
    return Text(
        f"Under `{protocol.name}`, of {sure:,} beliefs held with confidence {CONFIDENT / 100:g} or more "
        f"{percent(both / sure if sure else np.nan, 1)} are wrong: Pr(wrong | confident). Of {wrong:,} wrong "
        f"beliefs {percent(both / wrong if wrong else np.nan, 1)} are held with such confidence: "
        "Pr(confident | wrong). They share their numerator and nothing else."
    )


def tell_by_hand(by_hand: Sequence[float], book: Estimate, unpaired: Sequence[float]) -> Text:
    """Set an interval made by hand beside the book's, and beside the one that forgets the pairs."""
    ratio = (unpaired[1] - unpaired[0]) / max(by_hand[1] - by_hand[0], 1e-12)
    gap = max(abs(by_hand[0] - book.low), abs(by_hand[1] - book.high))
    return Text(
        f"By hand {span(*by_hand)}, by the book {span(book.low, book.high)}: the ends differ by at most "
        f"{number(gap)} points, chance of the resampling. Without the pairs the interval would be "
        f"{span(*unpaired)}, {number(ratio, 1)} times as wide."
    )


def tell_power(points: np.ndarray, effects: Sequence[float] = (0.5, 1.0, 2.0)) -> Text:
    """Say how many pairs show a difference of so many points in four experiments of five.

    Args:
        points: paired differences, [pair].
        effects: in points.
    """
    spread = float(np.std(points, ddof=1))
    needed = [int(np.ceil(((QUANTILE + POWER_QUANTILE) * spread / effect) ** 2)) for effect in effects]
    parts = [
        f"{count:,} pairs for {effect:g} {'point' if effect == 1 else 'points'}"
        for effect, count in zip(effects, needed, strict=True)
    ]
    smallest = (QUANTILE + POWER_QUANTILE) * spread / np.sqrt(len(points))
    return Text(
        f"The differences have a standard deviation of {number(spread, 1)} points. That asks for "
        f"{', '.join(parts)}. The {len(points)} pairs at hand show {number(float(smallest))} points or more "
        "with that power."
    )


def gains_by_seed(contest: Contest, kind: str) -> np.ndarray:
    """Return each candidate's gain over Simple on each seed, mean over worlds, in points, [seed, candidate].

    Args:
        contest: of one protocol.
        kind: which set, design or held-out.
    """
    frame = contest.frame[contest.frame["set"] == kind]
    wide = frame.pivot_table(index="seed", columns="policy", values="accuracy", aggfunc="mean")
    return POINTS * (wide[list(contest.own)].to_numpy() - wide[["simple"]].to_numpy())


def tell_curse(
    few: int, promised: np.ndarray, kept: np.ndarray, all_promised: np.ndarray, all_kept: float
) -> Text:
    """Say what the winners of many small searches promised, what they kept, and what any candidate kept.

    Args:
        few: design seeds of each search.
        promised: each winner's gain on its own design seeds, [search].
        kept: each winner's gain on the held-out seeds, [search].
        all_promised: the mean gain of all candidates on each search's design seeds, [search].
        all_kept: their mean gain on the held-out seeds.
    """
    lost = float(np.mean(promised - kept))
    common = float(np.mean(all_promised) - all_kept)
    disappointed = float(np.mean(promised > kept))
    return Text(
        f"In {len(promised)} searches on {few} seeds each, the winner promised "
        f"{signed(float(promised.mean()))} points over Simple on average and kept "
        f"{signed(float(kept.mean()))} held out; it kept less than it promised in {percent(disappointed)} of "
        "them. The candidates as a whole went from "
        f"{signed(float(np.mean(all_promised)))} to {signed(all_kept)}. What is left, "
        f"{signed(lost - common)} points, is what a winner promises too much because it was chosen."
    )


def tell_split(frame: pd.DataFrame, resamples: int = RESAMPLES) -> Text:
    """Split Simple's gain over Periodic into what its answers give and what is left without them."""
    lines = []
    for protocol, part in frame.groupby("protocol", sort=False):
        arm = {name: part[part["policy"] == name] for name in ("simple", "placebo", "periodic")}
        whole = difference(arm["simple"], arm["periodic"], resamples=resamples)
        told = difference(arm["simple"], arm["placebo"], resamples=resamples)
        rest = difference(arm["placebo"], arm["periodic"], resamples=resamples)
        lines.append(
            f"* `{protocol}`: the gain is {signed(whole.mean)}; of it {signed(told.mean)} "
            f"({span(told.low, told.high)}) come from the answers, and {signed(rest.mean)} "
            f"({span(rest.low, rest.high)}) are there without any answer."
        )
    return Text("\n".join(lines))


def tell_sides(found: Mapping[str, Estimate]) -> Text:
    """Say for which settings the interval lies above zero, below it, or holds it."""
    sides: dict[int, list[str]] = {1: [], -1: [], 0: []}
    for name, e in found.items():
        sides[lean(e.low, e.high) or 0].append(name.strip("`"))
    words = {1: "above zero", -1: "below zero", 0: "around zero"}
    parts = [f"{words[side]} for {code(names)}" for side, names in sides.items() if names]
    return Text(f"The interval lies {'; '.join(parts)}.")
