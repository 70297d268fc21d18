"""The tables of the small worlds: distances from the optimum, what VoI closes, one decision worked out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from envprobe_core.bound.comparing import SHOWN, WEIGHTS, Board
from envprobe_core.bound.optimum import Options, Solution, continuation, reached_under
from envprobe_core.bound.states import ACT
from envprobe_core.engine.records import UNKNOWN, WAIT
from envprobe_core.figures import policy_title
from envprobe_core.markup import EMPTY, FIXED, Table, listed, number, percent

SHAPES = ("chain", "two prerequisites")
COLUMNS = (0.0, 0.5, 1.0)  # weights of the table of distances
SHOWN_CHOICES = 4


def shape_title(board: Board) -> str:
    """Return what the tools of a small world need."""
    return SHAPES[board.setting.density]


def describe(board: Board) -> str:
    """Name a small world."""
    return f"{shape_title(board)}, {board.setting.protocol.name}, rate {number(board.setting.rate)}"


def show_distances(boards: Sequence[Board]) -> Table:
    """Show how far below the optimum every policy is, by weight."""
    head = ["policy", *(f"{shape_title(board)}, `{board.setting.protocol.name}`" for board in boards)]
    best = ["*optimum* $U^*$"]
    best += [_side_by_side([board.best(weight) for weight in COLUMNS], 3) for board in boards]
    alike: dict[tuple[str, ...], list[str]] = {}
    for name in SHOWN:
        gaps = [[100 * board.distance(name, weight) for weight in COLUMNS] for board in boards]
        alike.setdefault(tuple(_side_by_side(own, 1) for own in gaps), []).append(policy_title(name))
    rows = [best, *([listed(titles), *cells] for cells, titles in alike.items())]
    caption = (
        "Exact distances below the optimum in points of $U$, at $\\lambda = 0$ (success alone), ½ and 1 "
        f"(accuracy alone); mutation rate {number(boards[0].setting.rate)}. Policies of one row agree to the "
        "digits shown. The oracles see gold and may lie above the optimum."
    )
    return Table("tab-bound-distances", caption, head, rows, "l" + "r" * len(boards))


def _side_by_side(values: Sequence[float], digits: int) -> str:
    return f"{FIXED}/{FIXED}".join(number(value, digits) for value in values)


def show_closed(boards: Sequence[Board]) -> Table:
    """Show which share of Simple's distance VoI closes, by weight."""
    rows = []
    for board in boards:
        shares = [
            EMPTY
            if np.isnan(share := board.closed(weight))
            else percent(share)
            if share >= 0.5
            else f"**{percent(share)}**"
            for weight in WEIGHTS
        ]
        rows.append(
            [shape_title(board), f"`{board.setting.protocol.name}`", number(board.setting.rate), *shares]
        )
    head = ("tools", "protocol", "rate", *(f"$\\lambda = {weight:g}$" for weight in WEIGHTS))
    caption = (
        "The share of the distance between EnvProbe-Simple and the optimum that VoI closes, each weight of "
        "VoI "
        "judged by its own $U$. Less than half is set in bold; a dash: Simple is optimal already."
    )
    return Table("tab-bound-closed", caption, head, rows, "llr" + "r" * len(WEIGHTS))


@dataclass(frozen=True)
class Worked:
    """One decision worked out.

    Attributes:
        step: t; `state`: the information state in its layer; `reached`: its chance under the best policy.
        loaded: the chance that each tool is loaded, given what was shown.
        believed: what the agent's table says of each tool: 0, 1 or UNKNOWN.
        action: its proposal, in words; `left`: probes left.
        choices: rows (choice, branches, accuracy, success, U), the best first.
    """

    step: int
    state: int
    reached: float
    loaded: list[float]
    believed: list[int]
    action: str
    left: int
    choices: list[tuple[str, list[tuple[float, float]], float, float, float]]


def work_out(board: Board, weight: float) -> Worked:
    """Work out the last decision, in the likeliest state in which the best policy probes, if it does."""
    tree, best = board.tree, _nearest(board, weight)
    reached = reached_under(tree, best)
    t = board.setting.horizon - 1
    probing = best.choices[t] != ACT
    state = int(np.argmax(reached[t] * np.where(probing.any(), probing, 1)))
    layer, steps, world = tree.layers[t], tree.steps[t], board.setting.world
    accuracy, success = continuation(tree, best, t + 1)
    options, rows = Options(steps), []
    for option in np.flatnonzero(options.state == state):
        choice = int(options.choice[option])
        mine = np.flatnonzero((steps.state == state) & (steps.choice == choice))
        chance = steps.chance[mine]
        right, done = accuracy[steps.child[mine]], success[steps.child[mine]]
        title = (
            _action(world, int(layer.action[state]))
            if choice == ACT
            else f"probe {world.field_names[choice]}"
        )
        branches = list(zip(chance.tolist(), right.tolist(), strict=True))
        means = float(chance @ right), float(chance @ done)
        rows.append((title, branches, *means, weight * means[0] + (1.0 - weight) * means[1]))
    rows.sort(key=lambda row: -row[4])
    hidden = np.arange(layer.posterior.shape[1])
    tools = world.rules.tools
    loaded = [float(layer.posterior[state] @ (hidden >> tool & 1)) for tool in range(tools)]
    return Worked(
        t,
        state,
        float(reached[t][state]),
        loaded,
        layer.value[state, :tools].tolist(),
        _action(world, int(layer.action[state])),
        board.setting.budget - int(layer.used[state]),
        rows,
    )


def show_worked(worked: Worked) -> Table:
    """Show the best choices of a decision, the outcomes each may have, and what they are worth."""
    acting = [row for row in worked.choices if not row[0].startswith("probe")]
    shown = worked.choices[:SHOWN_CHOICES]
    shown += [row for row in acting if row not in shown]
    rows = [
        [
            title,
            "; ".join(f"{number(chance)} → {number(right, 3)}" for chance, right in branches),
            number(accuracy, 3),
            number(success, 3),
            number(value, 4),
        ]
        for title, branches, accuracy, success, value in shown
    ]
    caption = (
        "One decision worked out: what may be shown after each choice (chance → expected accuracy), the "
        "choice's expected accuracy and success, and $U$. The best choice comes first; the choices left out "
        "are worth no more."
    )
    return Table(
        "tab-bound-worked", caption, ("choice", "outcomes", "$A_H$", "success", "$U$"), rows, "llrrr"
    )


def believes(value: int) -> str:
    """Say what a table holds of a tool."""
    return "unknown" if value == UNKNOWN else "loaded" if value else "not loaded"


def _action(world: object, action: int) -> str:
    return "wait" if action == WAIT else world.action_names[action]  # type: ignore[attr-defined]


def _nearest(board: Board, weight: float) -> Solution:
    """Return the corner of the optimum that is best for a weight."""
    return max(board.optimum, key=lambda corner: weight * corner.accuracy + (1.0 - weight) * corner.success)
