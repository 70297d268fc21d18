"""The tables of the theory section."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from envprobe_core.figures import WORLD_TITLES, policy_title
from envprobe_core.markup import EMPTY, Table, bracket, counted, number, percent, signed
from envprobe_core.theory.assumption import PROPERTIES, AssumptionTest, Violation
from envprobe_core.theory.gains import SCORES
from envprobe_core.theory.lemma import GREEDY
from envprobe_core.theory.singles import SelfReport

if TYPE_CHECKING:
    import pandas as pd

POINTS = 100.0


def title_of(world: str, kind: str) -> str:
    """Return how tables call a belief type of a world."""
    return f"{WORLD_TITLES[world]}, {kind}"


def score_title(score: str) -> str:
    """Return how tables and figures call a score."""
    titles = {
        "full": "full score",
        "oracle": "Oracle",
        "oracle-tw": "Oracle-TW",
        GREEDY: "greedy repair (ours)",
    }
    return titles.get(score, score)


def points(value: float, digits: int = 2) -> str:
    """Write a difference of accuracy in points."""
    return signed(POINTS * value, digits)


def of_total(count: int, total: int) -> str:
    """Write a part of a whole in words: `none of two`, `3 of 13`."""
    return f"{'none' if count == 0 else counted(count)} of {counted(total)}"


def show_assumption(tests: Sequence[AssumptionTest]) -> Table:
    """Show how many differences were compared and how many lie below zero."""
    head = ("World and type", "Property", "Pasts", "Differences", "Below 0", "Clearly below 0",
            "Pasts with one, % [95%]")  # fmt: skip
    rows = []
    for test in tests:
        for name in PROPERTIES:
            share = test.share_failing(name)
            told = (
                EMPTY
                if not share.n
                else f"{percent(share.value)} {bracket(100 * share.low, 100 * share.high, 0)}"
            )
            rows.append(
                [
                    title_of(test.world, test.kind), name, f"{len(test.lattices)}",
                    f"{test.comparisons[name]:,}", f"{test.negative[name]:,}", f"{test.significant[name]:,}",
                    told,
                ]
            )  # fmt: skip
    caption = (
        "The assumption, tested on every subset of the wrong fields of small worlds: differences that should "
        "not be negative, and how many are, clearly so at a level adjusted for all of a row's differences."
    )
    return Table("tab-theory-assumption", caption, head, rows, "llrrrrr")


def violations_of(tests: Sequence[AssumptionTest]) -> list[Violation]:
    """Return the worst violation of each world, type and property that was tried again."""
    return [found for test in tests for name in PROPERTIES if (found := test.worst[name]) is not None]


def show_counterexamples(tests: Sequence[AssumptionTest]) -> Table:
    """Show the worst violations, found on some futures and tried again on fresh ones."""
    head = ("World and type", "Property", "Seed", "*S*", "Added in *R*", "*i*", "When found",
            "On fresh futures", "95% interval", "Stands")  # fmt: skip

    def fields(names: Sequence[str]) -> str:
        return ", ".join(names) if names else "∅"

    def added(found: Violation) -> str:
        new = [name for name in found.larger if name not in found.smaller]
        return fields(new) if new else EMPTY

    rows = [
        [
            title_of(v.world, v.kind), v.property, f"{v.seed}", fields(v.smaller),
            added(v),
            v.item, points(v.found), points(v.confirmed.value),
            bracket(POINTS * v.confirmed.low, POINTS * v.confirmed.high), "yes" if v.holds_up else "no",
        ]
        for v in violations_of(tests)
    ]  # fmt: skip
    caption = (
        "The clearest violation in each world and type, in points of accuracy: Δ(*i* | *S*) for monotone, "
        "Δ(*i* | *S*) − Δ(*i* | *R*) for submodular; found on one set of futures, measured again on another."
    )
    return Table("tab-theory-counterexamples", caption, head, rows, "llrlllrrrl")


def show_quality(quality: pd.DataFrame) -> Table:
    """Show gamma by definition and by proxy for every score, types side by side."""
    kinds = [
        key for key, part in quality.groupby(["world", "kind"], sort=False) if part["gamma"].notna().any()
    ]
    head = ["Score"]
    for world, kind in kinds:
        head += [f"{title_of(world, kind)}: γ", "95% interval", "proxy", "proxy, episodes"]
    rows = []
    for score in SCORES:
        row = [score_title(score)]
        for world, kind in kinds:
            here = quality[
                (quality["world"] == world) & (quality["kind"] == kind) & (quality["score"] == score)
            ]
            found = here.iloc[0]
            row += [
                number(found["gamma"]), bracket(found["gamma_low"], found["gamma_high"]),
                number(found["proxy"]), number(found["proxy_episodes"]),
            ]  # fmt: skip
        rows.append(row)
    caption = (
        "Marginal quality γ of each score by the definition, and by the paper's proxy: gain over "
        "Oracle-TW's, on the same repairs, and on whole episodes of the policy. Below 0 a repair does harm."
    )
    return Table("tab-theory-quality", caption, head, rows, "l" + "rrrr" * len(kinds))


def show_lemma(lemma: pd.DataFrame) -> Table:
    """Show both sides of the targeted-repair bound."""
    head = ("World and type", "Score", "γ", "Realized", "95% interval", "Bound", "Best set", "Within")
    rows = [
        [
            title_of(row.world, row.kind), score_title(row.score), number(row.gamma), points(row.realized),
            bracket(POINTS * row.low, POINTS * row.high), points(row.bound), points(row.best),
            "yes" if row.holds else "no",
        ]
        for row in lemma.itertuples()
    ]  # fmt: skip
    caption = (
        "Both sides of the repair bound on the small worlds, in points of accuracy: the gain that a score "
        "realizes with its probes, the bound (1 − exp(−γ)) G(S*), and the best set found by trying them all. "
        "That set is chosen on one half of the futures and valued on the other, so that it can lie below "
        "what Oracle realizes."
    )
    return Table("tab-theory-lemma", caption, head, rows, "llrrrrrl")


def show_self_report(found: Sequence[SelfReport]) -> Table:
    """Show epsilon and both sides of the self-report bound."""
    head = ("World and type", "Bins", "ε", "ε, split", "Best rule of *h*", "of (*h*, *z*)", "Advantage",
            "95% interval", "2ε", "Within 2ε", "Within ε")  # fmt: skip
    rows = [
        [
            title_of(r.world, r.kind), f"{r.bins}", number(POINTS * r.epsilon),
            number(POINTS * r.epsilon_split),
            points(r.structural), points(r.both), points(r.advantage.value),
            bracket(POINTS * r.advantage.low, POINTS * r.advantage.high), number(2 * POINTS * r.epsilon),
            "yes" if r.within else "no", "yes" if r.advantage.value <= r.epsilon else "no",
        ]
        for r in found
    ]  # fmt: skip
    caption = (
        "What self-reports add to structure, in points of accuracy a probe: ε from binned features, the mean "
        "gain of the best rule without and with *z*, their difference, and the bound."
    )
    return Table("tab-theory-self-report", caption, head, rows, "lrrrrrrrrll")


def show_miscoverage(table: pd.DataFrame) -> Table:
    """Show both conditionals and the recall that each would promise."""
    head = ("Protocol", "World", "Pr(conf ≥ .7 | wrong)", "95% interval", "Ceiling on recall",
            "May be probed", "Really probed", "Pr(wrong | conf ≥ .7)", "What that would promise")  # fmt: skip
    rows = [
        [
            f"`{row.protocol}`", WORLD_TITLES[row.world], number(row.needed, 3),
            bracket(row.needed_low, row.needed_high, 3), number(row.ceiling, 3), number(row.eligible, 3),
            number(row.recall, 3), number(row.canonical, 3), number(row.misread, 3),
        ]
        for row in table.itertuples()
    ]  # fmt: skip
    caption = (
        "Recall of Self-Uncertainty among wrong beliefs, a step: the ceiling that the proposition's own "
        "conditional gives, the share that may be probed and that is, and the ceiling one would read off the "
        "other conditional."
    )
    return Table("tab-theory-miscoverage", caption, head, rows, "llrrrrrrr")


def show_efficiency(table: pd.DataFrame) -> Table:
    """Show what a uniform probe is worth beside the best single field."""
    head = ("World and type", "Mean gain", "Best field's gain", "Efficiency", "95% interval", "Below 1",
            "Best field", "Harmful fields")  # fmt: skip
    rows = [
        [
            title_of(row.world, row.kind), points(row.mean_gain, 3), points(row.best_gain, 3),
            number(row.efficiency), bracket(row.low, row.high), "yes" if row.below_one else "no",
            EMPTY if row.equal else row.best_field, f"{row.negative}",
        ]
        for row in table.itertuples()
    ]  # fmt: skip
    caption = (
        "A uniform probe against the best fixed field, in points of accuracy; the best field is chosen on "
        "one half of the seeds and valued on the other. Harmful: fields whose whole interval lies below 0."
    )
    return Table("tab-theory-efficiency", caption, head, rows, "lrrrrllr")


def show_displacement(table: pd.DataFrame) -> Table:
    """Show the displacement bound and measured success."""
    head = ("Protocol", "World", "Policy", "*K*", "*N*", "η", "Success", "95% interval", "Bound",
            "Bound, η given *N*", "Above", "Successes short of *K*")  # fmt: skip
    rows = [
        [
            f"`{row.protocol}`", WORLD_TITLES[row.world], policy_title(row.policy), number(row.K, 1),
            number(row.slots, 1), number(row.eta, 3), number(row.success), bracket(row.low, row.high),
            number(row.bound), number(row.bound_given_slots), "yes" if row.exceeds else "no",
            f"{row.short} of {row.successes}",
        ]
        for row in table.itertuples()
    ]  # fmt: skip
    caption = (
        "The displacement bound: shortest plan *K*, task slots *N* = *H* − *P* and effective actions a slot "
        "η (means), success, and the bound with η pooled and with η estimated apart for each *N*."
    )
    return Table("tab-theory-displacement", caption, head, rows, "lllrrrrrrrlr")


def show_changes(changes: pd.DataFrame) -> Table:
    """Show what a budget does against none."""
    head = (
        "Protocol",
        "World",
        "Policy",
        "Budget",
        "Accuracy",
        "95% interval",
        "Success",
        "95% interval",
        "Shape",
    )
    rows = [
        [
            f"`{row.protocol}`", WORLD_TITLES[row.world], policy_title(row.policy), f"{row.budget}",
            points(row.accuracy, 1), bracket(POINTS * row.accuracy_low, POINTS * row.accuracy_high, 1),
            points(row.success, 1), bracket(POINTS * row.success_low, POINTS * row.success_high, 1),
            row.shape,
        ]
        for row in changes.itertuples()
    ]  # fmt: skip
    caption = (
        "What a budget changes against a budget of 0 on the same seeds, in points: the regime's own budget "
        "and the whole horizon. A trade-off is accuracy up and success down, both intervals off 0."
    )
    return Table("tab-theory-frontier", caption, head, rows, "lllrrrrrl")
