"""Section *calibration*, what stands in the way: what pulls which target, and what is out of reach."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.atlas.design import sample_profiles
from envprobe_core.calibration import (
    BASE,
    FREE,
    PROTOCOL,
    TARGETS,
    compare_targets,
    loss,
    predict,
    target_values,
)
from envprobe_core.figures import GREY, Drawing, canvas, styled
from envprobe_core.markup import Table, Text, listed, number, signed
from envprobe_core.protocols import PAPER, parse_protocol
from envprobe_core.sections.calibration import COMMITTED, PAPER_STYLE, Fitted, style_of

if TYPE_CHECKING:
    import pandas as pd

LEFT = "*left to the paper's number*"
STEP = 0.1  # how far a rate is moved, as a share of its range
SAMPLE = 32  # agents of the atlas, for the space of targets
SWITCHES = ("answer", "clock", "end", "accuracy", "pairing")  # what a spent step can mean to the score


def load_pulls(fitted: Fitted) -> pd.DataFrame:
    """Move each free rate, and turn each habit, and see where the targets go.

    Returns:
        One row a change: `change`, the difference it makes to each target by symbol, and to the objective
        as `loss`; the last row is what is left to the paper's numbers.
    """
    import pandas as pd

    profile = fitted.profile
    changes: dict[str, AgentProfile] = {}
    for item in FREE:
        now = getattr(profile, item.name)
        reach = STEP * (item.high - item.low)
        new = now - reach if now - reach >= item.low else now + reach
        changes[f"`{item.name}` {number(new, 3)} instead of {number(now, 3)}"] = replace(
            profile, name=f"{item.name} moved", **{item.name: new}
        )
    other = "true" if profile.writes == "number" else "number"
    changes[f"tool values written as {'`True`' if other == 'true' else 'numbers'}"] = replace(
        profile, name="writes", writes=other
    )
    kept = "not kept" if profile.keeps_open else "kept"
    changes[f"list of open tools {kept}"] = replace(profile, name="open", keeps_open=not profile.keeps_open)
    ours = predict([profile, *changes.values()])
    losses = loss(ours, target_values())
    table = pd.DataFrame(ours[1:] - ours[0], columns=[target.symbol for target in TARGETS])
    table.insert(0, "change", list(changes))
    table["loss"] = losses[1:] - losses[0]
    table.loc[len(table)] = [LEFT, *(target_values() - ours[0]), np.nan]
    return table


def show_pulls(pulls: pd.DataFrame) -> Table:
    """Show what one change does to every target and to the objective."""
    symbols = [target.symbol for target in TARGETS]
    rows = [
        [row["change"], *(signed(row[symbol], 3) for symbol in symbols), signed(row["loss"], 2)]
        for _, row in pulls.iterrows()
    ]
    caption = (
        "What moves a target. Each row changes one thing about the fitted agent and gives the difference in "
        "every target; the last row is the way that is left."
    )
    return Table(
        "tab-calibration-pulls",
        caption,
        ("change", *symbols, "objective"),
        rows,
        "l" + "r" * (len(symbols) + 1),
    )


def tell_pulls(pulls: pd.DataFrame) -> Text:
    """Say which change moves each target most, and whether any change lowers the objective."""
    symbols = [target.symbol for target in TARGETS]
    changes = pulls[pulls["change"] != LEFT]
    moved = []
    for symbol in symbols:
        row = changes.loc[changes[symbol].abs().idxmax()]
        moved.append(f"{symbol} by {row['change']} ({signed(row[symbol], 3)})")
    better = changes[changes["loss"] < 0]
    if better.empty:
        verdict = "None of these changes would have brought the agent nearer to the targets together."
    else:
        verdict = (
            f"The agent would be nearer to the targets with {listed(better['change'])}; habits were not for "
            "the fit to choose, and rates it searched only as long as stated above."
        )
    return Text(f"Most is moved: {'; '.join(moved)}. {verdict}")


def show_left_out(fitted: Fitted) -> Table | Text:
    """Show the fits in which one kind of target did not count."""
    if not fitted.fit["left_out"]:
        return Text("A page that fits by itself does not repeat the fit with targets left out.")
    entries = fitted.fit["left_out"]
    rows = [
        [
            target.name,
            str(target.printed),
            *(
                number(entry["ours"][target.name], 3)
                + ("" if entry["kind"] != target.kind else " *(left out)*")
                for entry in entries
            ),
        ]
        for target in TARGETS
    ]
    rows += [
        [f"`{item.name}`", "", *(number(entry["rates"][item.name], 3) for entry in entries)] for item in FREE
    ]
    caption = "The same fit with one kind of target left out: what the others would have liked."
    head = (
        "target or rate",
        "printed",
        *(f"without {entry['kind'].replace('p_cw', '$p_{cw}$')}" for entry in entries),
    )
    return Table("tab-calibration-left-out", caption, head, rows, "lr" + "r" * len(entries))


def load_space(residuals: pd.DataFrame, count: int = SAMPLE) -> pd.DataFrame:
    """Measure the targets for a space-filling sample of agents too; rows as in `load_targets`."""
    import pandas as pd

    return pd.concat([residuals, compare_targets(sample_profiles(count))], ignore_index=True)


def _wide(space: pd.DataFrame) -> pd.DataFrame:
    return space.pivot(index="profile", columns="symbol", values="ours")


@styled
def plot_space(space: pd.DataFrame) -> Drawing:
    """Draw agents in the space of targets: two accuracies on spatial worlds, and tools against p_cw."""
    wide, paper = _wide(space), {target.symbol: target.value for target in TARGETS}
    pairs = (
        ("No-Probe (spatial)", "Periodic (spatial)"),
        ("Periodic (procedural)", "confident-wrong rate"),
    )
    figure, panels = canvas(3.5, columns=2)
    sampled = wide.index.str.startswith("atlas-")
    for axes, (x, y) in zip(panels[0], pairs, strict=True):
        axes.plot(
            wide[x][sampled], wide[y][sampled], ".", color=GREY, label=f"{sampled.sum()} sampled agents"
        )
        for agent in wide.index[~sampled]:
            marker, colour = style_of(agent)
            axes.plot(
                wide[x][agent], wide[y][agent], marker=marker, color=colour, linestyle="none", label=agent
            )
        axes.plot(paper[x], paper[y], label="the paper", **PAPER_STYLE)
        axes.set_xlabel(f"{x} (share)")
        axes.set_ylabel(f"{y} (share)")
        axes.margins(0.08)
    low, high = 0.25, 0.6
    panels[0, 0].axline((low, low), (high, high), color=GREY, linewidth=0.8, linestyle=(0, (4, 3)))
    panels[0, 1].set_ylim(0, 1)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    told = [
        f"{y} against {x}: the paper at ({number(paper[x], 3)}, {number(paper[y], 3)}), the fitted agent at "
        f"({number(wide[x][COMMITTED], 3)}, {number(wide[y][COMMITTED], 3)}), "
        f"all agents from {number(wide[x].min(), 2)} to {number(wide[x].max(), 2)} across and "
        f"{number(wide[y].min(), 2)} to {number(wide[y].max(), 2)} up"
        for x, y in pairs
    ]
    alt = f"Agents in the space of targets. {'; '.join(told)}. A dashed line marks equal spatial accuracies."
    return Drawing(figure, "calibration-space", alt)


def tell_space(space: pd.DataFrame) -> Text:
    """Say which targets none of the agents at hand reaches, and which none of them meets together."""
    wide = _wide(space)
    sentences = [_tell_gap(wide)]
    for target in TARGETS:
        values = wide[target.symbol]
        if not values.min() <= target.value <= values.max():
            above = target.value > values.max()
            agent = values.idxmax() if above else values.idxmin()
            sentences.append(
                f"None of them reaches the printed *{target.name}* of {target.printed}; the "
                f"{'highest' if above else 'lowest'} is {number(float(values[agent]), 3)}, of `{agent}`."
            )
    return Text(" ".join(sentences))


def _tell_gap(wide: pd.DataFrame) -> str:
    """Compare No-Probe with Periodic on the spatial worlds: what the paper prints, what agents give."""
    paper = {target.symbol: target.value for target in TARGETS}
    one, other = "No-Probe (spatial)", "Periodic (spatial)"
    gap, printed = wide[one] - wide[other], paper[one] - paper[other]
    low, high = (100 * float(end) for end in (gap.min(), gap.max()))
    text = (
        "On the spatial worlds the paper prints an accuracy of No-Probe that differs from that of Periodic "
        f"by {signed(100 * printed, 1)} points. Over the {len(wide)} agents of "
        f"{{numref}}`fig-calibration-space` this difference runs from {signed(low, 1)} to {signed(high, 1)} "
        "points."
    )
    if low <= 100 * printed <= high:
        return text
    missed = min(abs(100 * printed - high), abs(100 * printed - low))
    return (
        f"{text} So none of them meets the two targets together: each misses them by {number(missed, 1)} "
        "points or more in sum, however well it does on either."
    )


def load_switches(fitted: Fitted) -> pd.DataFrame:
    """Turn single switches of the targets' protocol back to the text, and see what the difference becomes.

    Returns:
        One row a protocol: `protocol switch`, and No-Probe minus Periodic on the spatial worlds in points for
        the `fitted` agent and for the `base` that it was made of.
    """
    import pandas as pd

    symbols = [target.symbol for target in TARGETS]
    one, other = symbols.index("No-Probe (spatial)"), symbols.index("Periodic (spatial)")
    rows = []
    for switch in ("", *SWITCHES):
        turned = f"{PROTOCOL.name}:{switch}={getattr(PAPER, switch)}" if switch else PROTOCOL.name
        ours = predict([fitted.profile, BASE], protocol=parse_protocol(turned))
        rows.append((turned, switch, *(100 * (ours[:, one] - ours[:, other])).tolist()))
    return pd.DataFrame(rows, columns=["protocol", "switch", "fitted", "base"])


def show_switches(switches: pd.DataFrame) -> Table:
    """Show the spatial difference of No-Probe and Periodic under each turned switch."""
    rows = [[f"`{row.protocol}`", signed(row.fitted), signed(row.base)] for row in switches.itertuples()]
    caption = (
        "No-Probe minus Periodic on the spatial worlds, in points of accuracy, under the targets' protocol "
        "and with one switch at a time turned back to the paper's text."
    )
    head = ("protocol", "fitted agent", f"`{BASE.name}`")
    return Table("tab-calibration-switches", caption, head, rows, "lrr")


def tell_switches(switches: pd.DataFrame) -> Text:
    """Say which switches shrink the difference, and whether any brings it to the paper's size."""
    whole, turned = switches.iloc[0], switches.iloc[1:]
    least = turned.loc[turned["base"].abs().idxmin()]
    text = f"For `{BASE.name}` the difference is {signed(whole['base'])} points under `{PROTOCOL.name}`."
    smaller = turned[turned["base"].abs() <= abs(whole["base"]) / 2].sort_values("base", key=abs)
    if smaller.empty:
        text += " No single switch halves it."
    else:
        which = [f"`{row.switch}` ({signed(row.base)})" for row in smaller.itertuples()]
        verb = "shrinks" if len(which) == 1 else "shrink"
        text += f" Turned back alone, {listed(which)} {verb} it to half or less."
    if least["switch"] == "pairing" and not smaller.empty:
        text += (
            " So most of it comes with the lag: a belief meets the world as it is one action later, so an "
            "action of the agent's own can cost it matches, and a step that is spent on a probe cannot."
        )
    values = {target.symbol: target.value for target in TARGETS}
    printed = 100 * (values["No-Probe (spatial)"] - values["Periodic (spatial)"])
    most = float(turned[["fitted", "base"]].max(axis=None))
    reached = "A single switch is enough for" if most >= printed else "No single switch reaches"
    return Text(f"{text} {reached} the printed {signed(printed, 1)} points: the most is {signed(most)}.")
