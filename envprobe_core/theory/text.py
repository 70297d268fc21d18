"""What the theory section says about its numbers: every direction, count and conclusion is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims.printed import paper_value
from envprobe_core.figures import WORLD_TITLES
from envprobe_core.markup import Text, counted, listed, number, percent, signed
from envprobe_core.theory.assumption import PROPERTIES, AssumptionTest, Violation
from envprobe_core.theory.quality import QualityRun
from envprobe_core.theory.singles import SelfReport, SingleGains
from envprobe_core.theory.tables import of_total, points, score_title, title_of, violations_of

if TYPE_CHECKING:
    import pandas as pd

SAME_ACTIONS = 0.05


def tell_forks(runs: Sequence[SingleGains]) -> Text:
    """Say how gains are measured here: how many pasts, how many futures, at what moment."""
    first = runs[0]
    alive = [f"{len(run.past.seeds)} in {run.setting.title}" for run in runs]
    left = sum(run.past.left_out for run in runs)
    wrong = [number(run.past.wrong.sum(axis=1).mean(), 1) for run in runs]
    text = (
        f"The agent on this page is a simulation with the profile `{first.setting.profile.name}`; no "
        "language "
        f"model was called. Gains are measured under `{first.setting.world.protocol.name}` in regime "
        f"{first.setting.world.regime.name}, at step {first.setting.moment} of {first.setting.horizon}, on "
        f"{listed(alive)} episodes, each with {first.futures} futures. At that step {listed(wrong)} fields "
        "are "
        "wrong on average, in the same order."
    )
    if left:
        text += f" {left:,} episodes had already ended and have no future to compare."
    return Text(text)


def _mechanism(found: Violation) -> str:
    """Say how a violation comes about, as far as the counts of actions can tell."""
    if abs(found.actions) < SAME_ACTIONS:
        return (
            "the agent takes as many valid actions with the repair as without, so it is the table itself: "
            "an answer is true when it is given, and the world may leave it before the end"
        )
    return (
        f"the repair changes what the agent does next ({signed(found.actions, 2)} valid actions), and what "
        "it "
        "does changes both the world and what it sees of it"
    )


def tell_assumption(tests: Sequence[AssumptionTest]) -> Text:
    """Say whether the assumption survives, and show the clearest counterexample of each property."""
    pasts = sum(len(test.lattices) for test in tests)
    if not pasts:
        return Text("No past here has two or more wrong fields, so that there is nothing to enumerate.")
    lines = []
    for name in PROPERTIES:
        total = sum(test.comparisons[name] for test in tests)
        clear = sum(test.significant[name] for test in tests)
        standing = [v for v in violations_of(tests) if v.property == name and v.holds_up]
        line = f"**{name.capitalize()}.** {clear:,} of {total:,} differences lie clearly below zero. "
        if standing:
            worst = min(standing, key=lambda v: v.confirmed.value)
            held = ", ".join(worst.smaller) or "nothing"
            what = (
                f"repairing *{worst.item}* when {held} is repaired"
                if name == "monotone"
                else f"the gain of *{worst.item}* after {held} is smaller than after "
                f"{', '.join(worst.larger)}"
            )
            line += (
                "On fresh futures "
                f"{of_total(len(standing), sum(v.property == name for v in violations_of(tests)))} "
                f"of the retried cases stand. The largest is in {title_of(worst.world, worst.kind)}, seed "
                f"{worst.seed}: {what}, by {points(worst.confirmed.value)} points "
                f"({points(worst.confirmed.low)} to {points(worst.confirmed.high)}); {_mechanism(worst)}. "
                "As a law for every past, the property fails here."
            )
        elif not any(v.property == name for v in violations_of(tests)):
            line += "There was none to try again: here the property is not refuted."
        else:
            line += "None of the retried cases stands on fresh futures: here the property is not refuted."
        lines.append(line)
    return Text("\n\n".join(lines))


def tell_quality(quality: pd.DataFrame, runs: Sequence[QualityRun]) -> Text:
    """Say which score chooses best, what the oracles reach, and how far the proxy is off."""
    lines = []
    for run in runs:
        rows = quality[(quality["world"] == run.setting.world.name) & (quality["kind"] == run.kind)]
        title = title_of(run.setting.world.name, run.kind)
        rows = rows.set_index("score")
        deployable = rows.drop(index=["oracle", "oracle-tw"])["gamma"]
        if deployable.isna().all():
            lines.append(f"* {title}: no repair of this type changes the end, so that γ is undefined.")
            continue
        best = deployable.idxmax()
        chance = rows.loc["random", "gamma"]
        above = [score_title(s) for s, low in rows["gamma_low"].items() if low > chance and "oracle" not in s]
        gap = (rows["proxy"] - rows["gamma"]).drop(index=["oracle", "oracle-tw"]).mean()
        line = (
            f"* {title} ({int(rows['pasts'].iloc[0])} pasts): the best score without sight of gold is "
            f"{score_title(best)} (γ {number(deployable[best])}); a random field has {number(chance)}. "
            f"Clearly above that: {listed(above)}. Oracle-TW itself has "
            f"{number(rows.loc['oracle-tw', 'gamma'])}: it knows what is wrong, not what will matter."
        )
        if not np.isnan(gap):
            line += (
                f" The proxy {'exceeds' if gap > 0 else 'falls short of'} γ by {number(abs(gap))} on "
                "average: it compares sums with a reference that need not be the best, and never looks at "
                "the worst step."
            )
        lines.append(line)
    return Text("\n".join(lines))


def tell_lemma(lemma: pd.DataFrame) -> Text:
    """Say how often the repair bound holds and how loose it is."""
    if lemma.empty:
        return Text("Too few pasts could be enumerated to compare the two sides.")
    positive = lemma[lemma["bound"] > 0]
    ratio = (positive["realized"] / positive["bound"]).median() if len(positive) else np.nan
    greedy = lemma[lemma["score"] == "greedy"]
    share = greedy["realized"].sum() / greedy["best"].sum() if greedy["best"].sum() > 0 else np.nan
    return Text(
        f"The bound is met in {of_total(int(lemma['holds'].sum()), len(lemma))} rows. The median score "
        "realizes "
        f"{number(ratio, 1)} times what it promises. Greedy repair, which the lemma promises "
        f"{percent(1 - np.exp(-1))} of the best set, realizes {percent(share)}"
        + (": these gains nearly add up, and the exponential is far too careful." if share > 0.9 else ".")
    )


def tell_self_report(found: Sequence[SelfReport], spatial: str = "spatial") -> Text:
    """Say whether the measured advantage stays within the bound and whether there is one."""
    rows = [r for r in found if not np.isnan(r.epsilon)]
    chosen = [r for r in rows if r.kind == spatial]
    clear = [title_of(r.world, r.kind) for r in rows if r.advantage.low > 0]
    within = sum(r.within for r in chosen)
    half = sum(r.advantage.value <= r.epsilon for r in chosen)
    return Text(
        f"The printed bound holds in {of_total(within, len(chosen))} spatial rows, the sharper one (ε in "
        "place of "
        f"2ε) in {of_total(half, len(chosen))}. Self-reports add something that can be told from zero in: "
        f"{listed(clear)}. The rules compared read a field's own features only, as the lemma's *m* does."
    )


def tell_miscoverage(table: pd.DataFrame) -> Text:
    """Say what the ceiling is and how far the other conditional misses it."""
    gap = (table["eligible"] - table["ceiling"]).abs().max()
    misses = (table["misread"] - table["eligible"]).abs()
    worst = table.loc[misses.idxmax()] if misses.notna().any() else None
    text = (
        "The identity is exact: counted directly, the share that may be probed differs from 1 − Pr(conf ≥ "
        ".7 | "
        f"wrong) by at most {number(gap, 3)}. What is really probed is less, because a step holds one probe "
        "and many wrong fields: the printed equality is a ceiling, not a recall."
    )
    if worst is not None:
        side = "too high" if worst["misread"] > worst["eligible"] else "too low"
        text += (
            f" Reading 1 − Pr(wrong | conf ≥ .7) instead misses by up to {number(misses.max(), 2)} "
            f"({WORLD_TITLES[worst['world']]}, `{worst['protocol']}`: {number(worst['misread'], 2)} for "
            f"{number(worst['eligible'], 2)}, {side}). That conditional is the paper's canonical "
            "estimator; it says "
            "how often confidence is wrong, not how much of what is wrong is held with confidence."
        )
    printed = paper_value("tab:pcw_audit", "canonical", "confident_wrong").value
    text += (
        f" The paper prints {number(printed, 3)} for it, from which one would read a ceiling of "
        f"{number(1 - printed, 3)}; what Self-Uncertainty may probe here lies between "
        f"{number(table['eligible'].min(), 3)} and {number(table['eligible'].max(), 3)}."
    )
    return Text(text)


def tell_efficiency(table: pd.DataFrame) -> Text:
    """Say where a uniform probe is clearly worse and where the proposition says nothing."""
    known = table[table["efficiency"].notna()]
    silent = [title_of(row.world, row.kind) for row in table[table["efficiency"].isna()].itertuples()]
    text = (
        f"The efficiency lies clearly below 1 in {of_total(int(known['below_one'].sum()), len(known))} rows"
    )
    if len(known):
        text += f", from {number(known['efficiency'].min())} to {number(known['efficiency'].max())}"
    text += "."
    if silent:
        text += f" In {listed(silent)} no field's gain is clearly positive, and the quotient is left out."
    if table["negative"].any():
        text += (
            f" {counted(int(table['negative'].sum())).capitalize()} fields do clear harm when repaired alone."
        )
    return Text(text)


def tell_displacement(table: pd.DataFrame) -> Text:
    """Say where the bound is close, where success exceeds it, and why it may."""
    above = table[table["exceeds"]]
    short, successes = int(table["short"].sum()), int(table["successes"].sum())
    slack = (table["bound"] - table["success"]).median()
    by_world = [
        f"{WORLD_TITLES[world]} {part['short'].sum():,} of {part['successes'].sum():,}"
        for world, part in table.groupby("world", sort=False)
    ]
    text = (
        "The interval of success lies above the bound in "
        f"{of_total(int((~table['holds']).sum()), len(table))} rows, "
        f"the measured share in {counted(len(above))}"
    )
    if len(above):
        count = above["world"].value_counts(sort=False)
        named = [f"{counted(n)} in {WORLD_TITLES[world]}" for world, n in count.items()]
        text += f" ({listed(named)})"
    text += (
        f"; the median slack is {points(slack, 0)} points. Of {successes:,} successes {short:,} needed "
        "fewer than "
        f"*K* effective actions ({listed(by_world)}): the world did part of the work by itself, so "
        '"at least *K*" is no law of worlds that move.'
        if short
        else f"; the median slack is {points(slack, 0)} points. Every one of {successes:,} successes took "
        "at least "
        "*K* effective actions."
    )
    return Text(text)


def tell_frontier(changes: pd.DataFrame) -> Text:
    """Say where more probes trade success for accuracy, and where they do not."""
    lines = []
    for protocol, part in changes.groupby("protocol", sort=False):
        count = part["shape"].value_counts()
        named = [f"{shape} {number_of}" for shape, number_of in count.items()]
        down = part[(part["accuracy_high"] < 0)]
        line = f"* `{protocol}`: {listed(named)} of {len(part)} comparisons."
        if len(down):
            line += (
                f" Accuracy falls clearly in {counted(len(down))}, although the theorem's lower bound is "
                "never "
                "negative."
            )
        lines.append(line)
    return Text("\n".join(lines))


def tell_separation(runs: Sequence[SingleGains], resamples: int) -> Text:
    """Say what a repair of one type does to the accuracy of the other, where a world has both."""
    from envprobe_core.statistics import mean_interval

    lines, clear = [], 0
    for run in runs:
        if len(run.setting.types) < 2:
            continue
        for kind in run.setting.types:
            own = run.setting.of_type(kind)
            leak = mean_interval(run.other[:, own].sum(axis=1), resamples=resamples)
            clear += leak.low > 0 or leak.high < 0
            lines.append(
                f"the {kind} repairs of a past in {run.setting.title}, each done alone, change the accuracy "
                f"of the other type by {points(leak.value)} points in sum ({points(leak.low)} to "
                f"{points(leak.high)})"
            )
    if not lines:
        return Text("No world here has fields of both types, so that nothing can leak from one to the other.")
    return Text(
        f"Repairs of one type clearly move the other in {of_total(clear, len(lines))} cases: "
        f"{'; '.join(lines)}."
    )
