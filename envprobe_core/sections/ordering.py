"""Section *ordering*: do neighbours in the paper's expected order of policies stand in that order?

Source: the paper's table of adjacent comparisons (`tab:ordering`).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from envprobe_core.experiments import DEFAULT_SEEDS, PROTOCOLS, Names
from envprobe_core.figures import (
    GREY,
    POLICY_STYLES,
    STRATA,
    Drawing,
    canvas,
    interval,
    policy_title,
    styled,
)
from envprobe_core.inconsistencies import in_words
from envprobe_core.markup import Table, Text, counted, counted_verb, listed, number, percent, signed
from envprobe_core.paper import inconsistencies, paper_values
from envprobe_core.sections.paired import Comparison, compare, in_regime, levels, spending
from envprobe_core.sections.report import (
    PRINTED_POINT,
    comparison_table,
    moves,
    nearest,
    rows_from_top,
    spending_table,
    withheld,
)
from envprobe_core.sections.timed import load_timed
from envprobe_core.statistics import RESAMPLES
from envprobe_core.verdicts import HOLDS, REVERSES, evaluate_all

if TYPE_CHECKING:
    import pandas as pd

EXPECTED = ("no-probe", "self-uncertainty", "periodic", "simple", "judge", "oracle")
STEPS = tuple(pairwise(EXPECTED))
MODELS = {"spatial": "ordering-judge", "procedural": "ordering-judge-procedural"}  # one step's claim
COMPARISONS = tuple(
    Comparison(stratum, arm, reference, claim, "tab:ordering", f"{row}: {arm} vs {reference}")
    for stratum, arm, reference, claim, row in (
        ("spatial", "self-uncertainty", "no-probe", "ordering-self-uncertainty", "spatial"),
        ("spatial", "periodic", "self-uncertainty", "ordering-periodic", "spatial"),
        ("procedural", "simple", "periodic", "main-procedural", "procedural"),
        ("spatial", "judge", "simple", "ordering-judge", "spatial"),
        ("spatial", "oracle", "judge", "ordering-oracle", "unstated"),
        ("procedural", "judge", "simple", "ordering-judge-procedural", "procedural"),
    )
)


def load_ordering(
    regime: str = "S2", protocols: Names = PROTOCOLS, profile: str = "typical", seeds: str = DEFAULT_SEEDS
) -> pd.DataFrame:
    """Run the six policies of the expected order in the three worlds, probes timed."""
    return load_timed(STRATA["combined"], EXPECTED, regime, protocols, profile, seeds)


def compare_neighbours(frame: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Test the rows of the paper's table, and the judge on tools; see `paired.compare`."""
    return compare(frame, COMPARISONS, resamples)


def climb(frame: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Test every step of the expected order, on the spatial worlds and on tools.

    Returns:
        One row a stratum, step and protocol: the fields of `verdicts.Verdict`, and `stratum lower upper`. A
        step that rises *holds*, one that falls *reverses*.
    """
    import pandas as pd

    regime, profile = str(frame["regime"].iloc[0]), str(frame["profile"].iloc[0])
    protocols = list(dict.fromkeys(frame["protocol"]))
    parts = []
    for stratum, model in MODELS.items():
        claim = replace(in_regime(model, regime), value=None, low=None, high=None, n=None, inputs=())
        claims = [replace(claim, id=f"{b} vs {a}", arms=(b,), references=(a,)) for a, b in STEPS]
        part = evaluate_all(frame, claims, protocols=protocols, profile=profile, resamples=resamples)
        part.insert(0, "stratum", stratum)
        part["lower"] = [lower for lower, _ in STEPS for _ in protocols]
        part["upper"] = [upper for _, upper in STEPS for _ in protocols]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def printed_levels() -> pd.DataFrame:
    """Return the accuracies that the paper prints for these policies: `stratum policy value source`.

    A policy may have several: the table of neighbours prints two for Self-Uncertainty.
    """
    import pandas as pd

    found = []
    for value in paper_values():
        stratum, _, pair = value.row.partition(": ")
        arm, versus, reference = pair.partition(" vs ")
        side = {"method_accuracy": arm, "reference_accuracy": reference}.get(value.column)
        if versus and side in EXPECTED and stratum in MODELS:
            found.append((stratum, side, value.value, value.source))
    return pd.DataFrame(found, columns=["stratum", "policy", "value", "source"]).drop_duplicates(
        ["stratum", "policy", "value"], ignore_index=True
    )


def show_neighbours(numbers: pd.DataFrame) -> Table:
    """Show the paper's table of neighbours and ours."""
    return comparison_table(
        numbers,
        COMPARISONS,
        ("method_accuracy", "reference_accuracy", "accuracy_difference_pct", "accuracy_p"),
        "tab-ordering",
        "Neighbours in the expected order of policies: accuracy $A_H$ of both, their paired difference in "
        "points with its 95% interval, the interval adjusted for six comparisons, and the two-sided *p*. The "
        "last comparison is announced in the paper's text without a number.",
    )


def show_spending(frame: pd.DataFrame, stratum: str = "spatial") -> Table:
    """Show when each policy of the expected order spends its probes, and on what."""
    return spending_table(
        spending(frame, [name for name in EXPECTED if name != "no-probe"], stratum),
        "tab-ordering-spending",
        f"What the probes are spent on ({stratum}): probes an episode, their mean step, and shares of all "
        "probes. A probe of an unknown or a wrong field is useful.",
    )


@styled
def plot_ladder(frame: pd.DataFrame, resamples: int = RESAMPLES) -> Drawing:
    """Draw accuracy along the expected order, one panel a stratum and protocol, with the paper's numbers."""
    shown = levels(frame, EXPECTED, MODELS, resamples=resamples)
    protocols = list(dict.fromkeys(frame["protocol"]))
    figure, panels = canvas(4.4, rows=len(MODELS), columns=len(protocols), sharex=True, sharey=True)
    place = {name: i for i, name in enumerate(EXPECTED)}
    theirs, told = printed_levels(), []
    for row, stratum in enumerate(MODELS):
        printed = theirs[theirs["stratum"] == stratum]
        for column, protocol in enumerate(protocols):
            axes = panels[row, column]
            part = shown[(shown["stratum"] == stratum) & (shown["protocol"] == protocol)]
            axes.plot(part["value"], part["policy"].map(place), lw=0.7, color=GREY, zorder=0)
            for point in part.itertuples():
                style = POLICY_STYLES[point.policy].dot()
                interval(axes, point.value, point.low, point.high, place[point.policy], **style)
            axes.plot(printed["value"], printed["policy"].map(place), **PRINTED_POINT)
            axes.grid(axis="x")
            axes.set_title(f"{protocol}, {stratum}", loc="left", fontsize=9.5)
            values = ", ".join(f"{policy_title(p.policy)} {p.value:.3f}" for p in part.itertuples())
            told.append(f"{stratum} under {protocol}: {values}")
    rows_from_top(panels[0, 0], [policy_title(name) for name in EXPECTED])
    figure.supxlabel("accuracy $A_H$ (the protocol's own measure)", fontsize=10)
    alt = f"Accuracy of six policies from the expected worst to the expected best. {'; '.join(told)}."
    return Drawing(figure, "ordering-ladder", alt)


def tell_neighbours(numbers: pd.DataFrame) -> Text:
    """Say of each comparison what it does under each protocol, and how far from the paper it lands."""
    lines = []
    for comparison in COMPARISONS:
        part = numbers[numbers["claim"] == comparison.claim]
        told = listed(f"{moves(row)} under `{row.protocol}`" for row in part.itertuples())
        line = f"* *{policy_title(comparison.reference)} to {policy_title(comparison.arm)}, "
        line += f"{comparison.stratum}.* Accuracy {told}."
        line += nearest(part)
        lines.append(line)
    return Text("\n".join(lines))


def tell_climb(steps: pd.DataFrame, frame: pd.DataFrame, resamples: int = RESAMPLES) -> Text:
    """Say how much of the expected order is there, where it breaks most, and who is really first."""
    best = levels(frame, EXPECTED, MODELS, resamples=resamples)
    lines = []
    for protocol in dict.fromkeys(steps["protocol"]):
        for stratum in MODELS:
            part = steps[(steps["protocol"] == protocol) & (steps["stratum"] == stratum)]
            rise, fall = part[part["verdict"] == HOLDS], part[part["verdict"] == REVERSES]
            open_ = len(part) - len(rise) - len(fall)
            text = (
                f"* `{protocol}`, {stratum}: of {counted(len(part))} steps, "
                f"{counted_verb(len(rise), 'rise')} and {counted_verb(len(fall), 'fall')}; "
                f"{counted(open_)} {'are' if open_ > 1 else 'is'} too close to zero to tell"
            )
            if len(fall):
                worst = fall.loc[fall["estimate"].idxmin()]
                text += (
                    f"; the deepest fall is from {policy_title(worst['lower'])} to "
                    f"{policy_title(worst['upper'])} ({signed(worst['estimate'])} points)"
                )
            own = best[(best["protocol"] == protocol) & (best["stratum"] == stratum)]
            top = own[own["value"] == own["value"].max()]
            names = listed(policy_title(name) for name in top["policy"])
            lines.append(f"{text}. Highest mean: {names} ({number(top['value'].iloc[0], 3)}).")
    return Text("\n".join(lines))


def tell_spending(frame: pd.DataFrame, stratum: str = "spatial") -> Text:
    """Say why Simple and Periodic differ, as far as the timing of probes shows."""
    spent = spending(frame, ("periodic", "simple"), stratum).set_index(["protocol", "policy"])
    without = withheld(list(dict.fromkeys(frame["protocol"])))
    lines = []
    for protocol in dict.fromkeys(frame["protocol"]):
        simple, periodic = spent.loc[(protocol, "simple")], spent.loc[(protocol, "periodic")]
        line = (
            f"* `{protocol}`: Simple fires {number(simple['probes'], 1)} probes at mean step "
            f"{number(simple['probe_step'], 1)}, {percent(simple['early'])} of them within the first *B* "
            f"steps; "
            f"{percent(simple['unknown'] + simple['wrong'])} are useful and {percent(simple['repeated'])} "
            f"ask "
            f"for a field again. Periodic fires {number(periodic['probes'], 1)} at mean step "
            f"{number(periodic['probe_step'], 1)}, {percent(periodic['unknown'] + periodic['wrong'])} useful."
        )
        if protocol in without:
            line += (
                " No answer reaches the agent here, useful or not: whatever separates two policies is the "
                "timing of their probes, not what the probes found."
            )
        lines.append(line)
    return Text("\n".join(lines))


def tell_arithmetic() -> Text:
    """List where the paper's table of neighbours contradicts itself, as arithmetic finds it."""
    found = inconsistencies()
    found = found[found["source"] == "tab:ordering"]
    lines = [f"* {in_words(row.row)}: {in_words(row.why)}." for row in found.itertuples()]
    head = (
        f"Arithmetic finds {counted(len(lines))} contradictions in the printed table (method minus reference "
        "in the order of our rows):"
    )
    return Text("\n".join([head, "", *lines]))
