"""Section *ablation*: what each term of the score is worth on tools, in accuracy and in completed episodes.

Source: the paper's ablation table and figure (`tab:ablation`, `fig:ablation`), success also from `tab:main`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from envprobe_core.cells import make_cell
from envprobe_core.experiments import DEFAULT_SEEDS, PROTOCOLS, Names
from envprobe_core.figures import POLICY_STYLES, Drawing, canvas, interval, policy_title, styled
from envprobe_core.markup import (
    EMPTY,
    Table,
    Text,
    bracket,
    counted,
    listed,
    number,
    p_value,
    percent,
    signed,
)
from envprobe_core.protocols import parse_protocol
from envprobe_core.sections.paired import ABLATIONS, Comparison, compare, levels, printed, spending
from envprobe_core.sections.report import (
    PRINTED_POINT,
    as_printed,
    comparison_table,
    moves,
    nearest,
    rows_from_top,
    spending_table,
    withheld,
)
from envprobe_core.sections.timed import load_timed
from envprobe_core.statistics import RESAMPLES, bonferroni, mcnemar_exact
from envprobe_core.tables import badge

if TYPE_CHECKING:
    import pandas as pd

WORLD = "tooldag"
NAMED = 3  # so many policies are named, more are counted
SHOWN = ("simple", *ABLATIONS)
ACCURACY = tuple(
    Comparison("procedural", arm, "simple", claim, "tab:ablation", f"procedural: {arm} vs simple")
    for arm, claim in zip(
        ABLATIONS, ("ablation-c", "ablation-d", "ablation-s", "main-minus-u", "main-cd"), strict=True
    )
)
SUCCESS = tuple(
    Comparison("procedural", arm, "simple", f"{claim}-success", source, f"procedural: {arm} vs simple")
    for arm, claim, source in (
        ("minus-c", "ablation-c", "tab:ablation"),
        ("minus-d", "ablation-d", "tab:ablation"),
        ("minus-s", "ablation-s", "tab:ablation"),
        ("minus-u", "main-minus-u", "tab:main"),  # the ablation table prints its p only
        ("cd", "main-cd", "tab:main"),
    )
)
FAMILY = 6


def load_ablation(
    regime: str = "S2", protocols: Names = PROTOCOLS, profile: str = "typical", seeds: str = DEFAULT_SEEDS
) -> pd.DataFrame:
    """Run the full score and its five ablations on tools, probes timed."""
    return load_timed(WORLD, SHOWN, regime, protocols, profile, seeds)


def compare_accuracy(frame: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Compare every ablation with the full score in accuracy; see `paired.compare`."""
    return compare(frame, ACCURACY, resamples)


def compare_success(frame: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Compare completed episodes, with McNemar's exact p of every pair in `exact_p`; see `paired.compare`."""
    found = compare(frame, SUCCESS, resamples)
    counts = zip(found["only_method"], found["only_reference"], strict=True)
    found["exact_p"] = [mcnemar_exact(first, second) for first, second in counts]
    return found


def thresholds(protocols: Sequence[str]) -> pd.DataFrame:
    """Return the threshold in force of each policy, `policy` by protocol."""
    import pandas as pd

    return pd.DataFrame(
        {
            name: [make_cell(WORLD, p, protocol=parse_protocol(name)).threshold_in_force for p in SHOWN]
            for name in protocols
        },
        index=list(SHOWN),
    )


def show_accuracy(numbers: pd.DataFrame) -> Table:
    """Show the paper's ablation table and ours."""
    return comparison_table(
        numbers,
        ACCURACY,
        ("method_accuracy", "reference_accuracy", "accuracy_difference_pct", "accuracy_p"),
        "tab-ablation-accuracy",
        "What leaving a term out does to accuracy $A_H$ on tools: both levels, the paired difference to the "
        "full score in points, its 95% interval, the interval adjusted for six comparisons, two-sided *p*.",
    )


def show_success(numbers: pd.DataFrame) -> Table:
    """Show completed episodes with the counts that McNemar's test looks at."""
    head = (
        "comparison", "source", "success, %", "full score, %", r"$\hat\Delta$", "adjusted",
        "only one side", "exact $p$", "times 6", "verdict",
    )  # fmt: skip
    rows = []
    for comparison in SUCCESS:
        own = printed(comparison.source, comparison.row, "method_success_pct")
        full = printed(comparison.source, comparison.row, "reference_success_pct")
        p = printed("tab:ablation", comparison.row, "success_mcnemar_p")
        gap = EMPTY if own is None or full is None else signed(own.value - full.value, 1)
        theirs = (as_printed(own), as_printed(full), gap, EMPTY, EMPTY, as_printed(p))
        rows.append([f"**{policy_title(comparison.arm)}**", "*printed*", *theirs, EMPTY, EMPTY])
        rows.extend(
            [
                f"n = {row.n}",
                f"`{row.protocol}`",
                number(row.method, 1),
                number(row.reference, 1),
                signed(row.estimate, 1),
                bracket(row.low_adjusted, row.high_adjusted, 1),
                f"{row.only_method} : {row.only_reference}",
                p_value(row.exact_p),
                p_value(bonferroni(row.exact_p, FAMILY)),
                badge(row.verdict),
            ]
            for row in numbers[numbers["claim"] == comparison.claim].itertuples()
        )
    caption = (
        "Completed episodes with and without a term. *Only one side*: seeds that only the ablation, and that "
        "only the full score completes; McNemar's exact test looks at nothing else. Where the paper claims "
        "no difference the verdict is that of an equivalence test, not of this *p*."
    )
    return Table("tab-ablation-success", caption, head, rows, "llrrrrcrrl")


def show_spending(frame: pd.DataFrame) -> Table:
    """Show when each ablation spends its probes, and on what."""
    return spending_table(
        spending(frame, SHOWN, "procedural"),
        "tab-ablation-spending",
        "Where the probes go on tools: probes an episode, their mean step, and shares of all probes fired. A "
        "probe of an unknown or a wrong field is useful.",
    )


@styled
def plot_bars(frame: pd.DataFrame, resamples: int = RESAMPLES) -> Drawing:
    """Draw accuracy and success of the score and its ablations as bars, with the paper's numbers."""
    protocols = list(dict.fromkeys(frame["protocol"]))
    figure, panels = canvas(4.6, rows=2, columns=len(protocols), sharey=True, sharex=True)
    told = []
    for row, (measure, label) in enumerate((("accuracy", "accuracy"), ("success", "success"))):
        shown = levels(frame, SHOWN, ("procedural",), measure, resamples)
        for column, protocol in enumerate(protocols):
            axes, part = panels[row, column], shown[shown["protocol"] == protocol]
            for place, point in enumerate(part.itertuples()):
                style = POLICY_STYLES[point.policy]
                axes.barh(place, point.value, height=0.62, color=style.colour, alpha=0.45)
                interval(axes, point.value, point.low, point.high, place, **style.dot(marker="none"))
            marks = [(place, value) for place, name in enumerate(SHOWN) if (value := _printed(name, measure))]
            axes.plot([value for _, value in marks], [place for place, _ in marks], **PRINTED_POINT)
            axes.set_xlim(0, 1)
            axes.set_title(f"{protocol}, {label}", loc="left", fontsize=9)
            axes.grid(axis="x")
            values = ", ".join(f"{policy_title(p.policy)} {p.value:.3f}" for p in part.itertuples())
            told.append(f"{label} under {protocol}: {values}")
    rows_from_top(panels[0, 0], [policy_title(name) for name in SHOWN])
    figure.supxlabel("share of fields right ($A_H$), share of episodes completed", fontsize=10)
    alt = f"Bars of accuracy and task success of the full score and five ablations. {'; '.join(told)}."
    return Drawing(figure, "ablation-bars", alt)


def _printed(policy: str, measure: str) -> float | None:
    """Return what the paper prints for a policy of this section, as a share."""
    row = f"procedural: {policy} vs simple"
    if measure == "success":
        if policy == "simple":
            value = printed("tab:main", "procedural: cd vs simple", "reference_success_pct")
        else:
            value = printed("tab:main", row, "method_success_pct")
        return None if value is None else value.value / 100
    if policy == "simple":
        value = printed("tab:ablation", "procedural: simple", "accuracy")
    else:
        value = printed("tab:ablation", row, "method_accuracy")
    return None if value is None else value.value


@styled
def plot_timing(frame: pd.DataFrame, resamples: int = RESAMPLES) -> Drawing:
    """Draw accuracy against the mean step of the probes, a panel a protocol."""
    protocols = list(dict.fromkeys(frame["protocol"]))
    shown = levels(frame, SHOWN, ("procedural",), "accuracy", resamples)
    spent = spending(frame, SHOWN, "procedural")
    both = shown.merge(spent.drop(columns="n"), on=["protocol", "policy"])
    figure, panels = canvas(2.7, columns=len(protocols), sharex=True, sharey=True)
    told = []
    for axes, protocol in zip(panels[0], protocols, strict=True):
        for point in both[both["protocol"] == protocol].itertuples():
            style = POLICY_STYLES[point.policy].dot()
            error = [[point.value - point.low], [point.high - point.value]]
            axes.errorbar(
                point.probe_step, point.value, yerr=error, label=policy_title(point.policy), **style
            )
            name = policy_title(point.policy)
            told.append(f"{protocol}, {name}: step {point.probe_step:.1f}, {point.value:.3f}")
        axes.set_title(protocol, loc="left")
        axes.grid()
    panels[0, 0].set_ylabel("accuracy $A_H$")
    panels[0, len(protocols) // 2].set_xlabel("mean step of the probes")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    alt = f"Accuracy against the mean step at which probes are fired, tools. {'; '.join(told)}."
    return Drawing(figure, "ablation-timing", alt)


def tell_accuracy(numbers: pd.DataFrame) -> Text:
    """Say what each term is worth, and how far that is from the paper."""
    lines = []
    for comparison in ACCURACY:
        part = numbers[numbers["claim"] == comparison.claim]
        told = listed(f"{moves(row)} under `{row.protocol}`" for row in part.itertuples())
        lines.append(f"* *{policy_title(comparison.arm)}.* Accuracy {told}.{nearest(part)}")
    return Text("\n".join(lines))


def tell_success(numbers: pd.DataFrame) -> Text:
    """Say on how many seeds a term decides whether the task is completed."""
    lines = []
    for protocol in dict.fromkeys(numbers["protocol"]):
        part = numbers[numbers["protocol"] == protocol]
        same = part[(part["only_method"] == 0) & (part["only_reference"] == 0)]
        moved = part[part["exact_p"] * FAMILY < 0.05]
        share = number(part["reference"].iloc[0], 1)
        told = f"* `{protocol}`: the full score completes {share}% of the episodes. "
        if len(same):
            verb = "completes" if len(same) == 1 else "complete"
            told += f"{listed(policy_title(name) for name in same['arm'])} {verb} exactly the same seeds. "
        if len(moved):
            told += listed(
                f"{policy_title(row.arm)} differs by {signed(row.estimate, 1)} points "
                f"({row.only_method} seeds won, {row.only_reference} lost)"
                for row in moved.itertuples()
            )
            told += ", beyond what six exact tests allow to chance."
        else:
            told += "No ablation differs beyond what six exact tests allow to chance."
        lines.append(told)
    return Text("\n".join(lines))


def _sharing(steps: pd.Series, step: str) -> str:
    """Name the policies whose mean step is written alike, or count them where they are many."""
    names = [policy_title(name) for name in steps.index[steps == step]]
    return (
        listed(names) if len(names) <= NAMED else f"{counted(len(names))} of {counted(len(steps))} policies"
    )


def tell_spending(frame: pd.DataFrame) -> Text:
    """Say which ablations change what is probed, which only when, and which nothing."""
    spent = spending(frame, SHOWN, "procedural")
    lines = []
    for protocol in dict.fromkeys(frame["protocol"]):
        part = spent[spent["protocol"] == protocol].set_index("policy").dropna(subset=["probe_step"])
        if not len(part):
            lines.append(f"* `{protocol}`: nothing is probed.")
            continue
        steps = part["probe_step"].map(lambda step: number(step, 1))
        first, last = steps[part["probe_step"].idxmin()], steps[part["probe_step"].idxmax()]
        useful = part["unknown"] + part["wrong"]
        line = f"* `{protocol}`: probes fall "
        if first != last:
            line += (
                f"earliest under {_sharing(steps, first)} (mean step {first}) and "
                f"latest under {_sharing(steps, last)} ({last})"
            )
        else:
            line += f"at mean step {first} under every score"
        line += f"; between {percent(useful.min())} and {percent(useful.max())} of them are useful."
        if withheld([protocol]):
            means = frame[frame["protocol"] == protocol].groupby("policy")["accuracy"].mean()[part.index]
            line += " The answers are withheld, so only the timing of its probes can tell an ablation apart"
            if part["probe_step"].nunique() > 1 and means.nunique() > 1:
                order = part["probe_step"].rank().corr(means.rank())
                line += f"; the rank correlation of mean probe step and accuracy is {number(order)}"
            line += "."
        lines.append(line)
    return Text("\n".join(lines))
