"""What the page of the optimum says; every number, direction and verdict is computed here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from envprobe_core.bound.comparing import (
    BALANCED,
    DIAGNOSTIC,
    SHOWN,
    VOI,
    WEIGHTS,
    Board,
    Check,
    solvable,
    voi_name,
)
from envprobe_core.bound.optimum import Solution, reached_under, worth
from envprobe_core.bound.small import AGENT, SMALL_TOOLS, SOLVED
from envprobe_core.bound.states import ACT, HIDDEN
from envprobe_core.bound.tables import Worked, believes, describe
from envprobe_core.experiments import Names, find_protocols
from envprobe_core.figures import policy_title
from envprobe_core.markup import Text, code, counted, listed, number, percent, signed

GRID = tuple(np.linspace(0.0, 1.0, 101).tolist())  # weights at which points are held against the optimum
HALF = 0.5
TOLERANCE = 1e-9


def tell_size(boards: Sequence[Board], asked: Names) -> Text:
    """Say how small the worlds are, whose agent plays them, and which protocols are left out."""
    left_out = [protocol.name for protocol in find_protocols(asked) if protocol.name not in solvable(asked)]
    setting = boards[0].setting
    states = [sum(map(len, board.tree.layers)) for board in boards]
    ends = [len(own.right) for board in boards for own in board.leaves.values()]
    lines = [
        f"{counted(SMALL_TOOLS).capitalize()} tools, {setting.world.fields} fields, $H = {setting.horizon}$, "
        f"$B = {setting.budget}$. The agent is a simulation, with the profile `{AGENT.name}` on every small "
        f"world of this page; no language model was called. The worlds have {min(states):,} to "
        f"{max(states):,} information states; a policy's chance tree ends in {min(ends):,} to "
        f"{max(ends):,} leaves, all of them run."
    ]
    if left_out:
        lines.append(f"Left out: {code(left_out)}; {SOLVED.replace('A_H', '$A_H$')}.")
    return Text("\n\n".join(lines))


def tell_worked(board: Board, worked: Worked, weight: float) -> Text:
    """Say what is known in the state that is worked out, and why the best choice is best."""
    tools = [
        f"tool {tool} is loaded with the chance {number(chance)} (the agent believes: {believes(belief)})"
        for tool, (chance, belief) in enumerate(zip(worked.loaded, worked.believed, strict=True))
    ]
    title, _, _, _, value = worked.choices[0]
    acting = next(row for row in worked.choices if not row[0].startswith("probe"))
    text = (
        f"The world is *{describe(board)}*, the weight $\\lambda = {weight:g}$, the step "
        f"$t = {worked.step}$, probes left: {worked.left}; under the best policy the episode comes to this "
        f"state with the chance {number(worked.reached)}. By all that was shown, {listed(tools)}. The agent "
        f"proposes `{worked.action}`. "
    )
    if title == acting[0]:
        return Text(f"{text}Nothing is worth more than to let it act.")
    return Text(
        f"{text}The best choice, *{title}*, is worth {signed(100 * (value - acting[4]), 1)} points of $U$ "
        "more than to let it act."
    )


def tell_optimum(boards: Sequence[Board]) -> Text:
    """Say that no policy beats its bound, how far gold would carry, and who comes closest."""
    deployable = [name for name in boards[0].points if name not in DIAGNOSTIC]
    above = max(-board.distance(name, weight) for board in boards for name in deployable for weight in GRID)
    golden = max(
        worth(weight, board.points[name]) - board.best(weight, sees_gold=True)
        for board in boards
        for name in DIAGNOSTIC
        for weight in GRID
    )
    gains = {
        weight: max(board.best(weight, sees_gold=True) - board.best(weight) for board in boards)
        for weight in (0.0, BALANCED, 1.0)
    }
    lines = [
        f"* {_verdict('No deployable policy lies', 'Some deployable policy lies', above)} above the "
        f"optimum: over {len(deployable)} policies, {len(boards)} worlds and {len(GRID)} weights the largest "
        f"excess is {_excess(above)}.",
        f"* {_verdict('No oracle exceeds', 'Some oracle exceeds', golden)} the optimum of a policy that "
        f"sees gold (largest excess {_excess(golden)}).",
        f"* To see gold is worth at most {number(100 * gains[0.0], 1)} points of success, "
        f"{number(100 * gains[1.0], 1)} of accuracy, and {number(100 * gains[BALANCED], 1)} of $U$ at "
        "equal weights.",
    ]
    for board in boards:
        gap = {name: board.distance(name, BALANCED) for name in SHOWN if name not in DIAGNOSTIC}
        least = min(gap.values())
        first = [policy_title(name) for name in gap if gap[name] < least + TOLERANCE]
        others = min(value for name, value in gap.items() if name not in VOI.values())
        lines.append(
            f"* *{describe(board)}*: at equal weights the closest {'is' if len(first) == 1 else 'are'} "
            f"{listed(first)}, {number(100 * least, 2)} points below the optimum; the closest of the "
            f"paper's own is {number(100 * others, 2)} below, Simple {number(100 * gap['simple'], 2)}."
        )
    return Text("\n".join(lines))


def _verdict(holds: str, fails: str, excess: float) -> str:
    return holds if excess <= TOLERANCE else f"**{fails}**"


def _excess(value: float) -> str:
    return f"below $10^{{{int(np.log10(TOLERANCE))}}}$" if value <= TOLERANCE else f"{value:.2g}"


def tell_closed(boards: Sequence[Board]) -> Text:
    """Say in how many small worlds VoI closes half of Simple's distance, and where not and why."""
    found = [(board, weight, board.closed(weight)) for board in boards for weight in WEIGHTS]
    found = [entry for entry in found if not np.isnan(entry[2])]
    short = [entry for entry in found if entry[2] < HALF]
    balanced = [share for _, weight, share in found if weight == BALANCED]
    lines = [
        f"* VoI closes at least half of Simple's distance in {len(found) - len(short)} of {len(found)} cases."
    ]
    if balanced:
        lines.append(
            f"* `voi`, made for equal weights, closes {percent(min(balanced))} to {percent(max(balanced))} "
            "at equal weights."
        )
    for board, weight, share in short:
        lines.append(
            f"* It falls short in *{describe(board)}* at $\\lambda = {weight:g}$: {percent(share)} of "
            f"{number(100 * board.distance('simple', weight), 1)} points. {_why(board, weight)}"
        )
    gains = [_gain_of_other_weights(board) for board in boards]
    ahead = [gain for gain in gains if gain > TOLERANCE]
    if ahead:
        lines.append(
            f"* In {len(ahead)} of {len(boards)} worlds another weight of VoI is more accurate than the one "
            f"for accuracy alone, by up to {number(100 * max(ahead), 1)} points. A step spent on a probe is "
            "one in which no action shows the agent fields for nothing, and that has a price in accuracy too."
        )
    return Text("\n".join(lines))


def _gain_of_other_weights(board: Board) -> float:
    """Return how much more accurate VoI is with its best weight below 1 than with weight 1."""
    accuracies = [board.points[voi_name(weight)][0] for weight in WEIGHTS]
    return max(accuracies[:-1]) - accuracies[-1]


def _why(board: Board, weight: float) -> str:
    """Compare what the optimum gives up with what VoI does."""
    best = max(board.optimum, key=lambda corner: worth(weight, (corner.accuracy, corner.success)))
    success = board.points[voi_name(weight)][1]
    early, loaded, usual = (
        early_share(board, best),
        loaded_at_end(board, best),
        loaded_at_end(board, board.optimum[0]),
    )
    told = (
        f"The optimum fires {percent(early)} of its probes before the last {counted(board.setting.budget)} "
        f"steps and completes {percent(best.success)} of its episodes, VoI {percent(success)}."
    )
    if loaded >= usual or best.success >= success:
        return told
    return (
        f"{told} For accuracy alone a probe may be worth its step because it holds the agent back: at the "
        f"end {number(loaded)} tools are loaded, against {number(usual)} under the optimum for success, and "
        "what is not loaded cannot be lost unseen. VoI does not reckon with what its probes make the agent "
        "do."
    )


def loaded_at_end(board: Board, solution: Solution) -> float:
    """Return the expected number of loaded tools at the end."""
    hidden = np.arange(HIDDEN)
    loaded = sum(hidden >> tool & 1 for tool in range(SMALL_TOOLS))
    return float(reached_under(board.tree, solution)[-1] @ (board.tree.layers[-1].posterior @ loaded))


def early_share(board: Board, solution: Solution) -> float:
    """Return the share of a policy's probes that it fires before the last B steps."""
    chances = reached_under(board.tree, solution)
    fired = [
        float(chance[choice != ACT].sum())
        for chance, choice in zip(chances, solution.choices, strict=False)  # the last chances are those at H
    ]
    return sum(fired[: board.setting.horizon - board.setting.budget]) / max(sum(fired), TOLERANCE)


def tell_sampled(board: Board, check: Check) -> Text:
    """Say whether the engine's own draws agree with the exact means."""
    count = 2 * len(check.scores)
    return Text(
        f"The same world on the engine's own draws ({describe(board)}, {check.episodes} seeds, "
        f"{len(check.scores)} policies that draw nothing): the sample means lie at most "
        f"{number(check.largest, 1)} standard errors from the exact ones, over {count} means."
    )
