"""Schematics: one real instance of each world, drawn from what the engine generates.

They show step 0: where things lie and what is locked. Every element comes from the instance of one seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from envprobe_core.instances import instances, members
from envprobe_core.plans import chain_length
from envprobe_core.protocols import parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.show.figures import (
    AMBER,
    BLUE,
    GROUND,
    INK,
    VERMILLION,
    WIDTH,
    Drawing,
    canvas,
    strip,
    styled,
)
from envprobe_core.show.markup import counted, listed
from envprobe_core.worlds import make_world

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOMS_IN_A_ROW = 10
_PATCH = {"boxstyle": "round,pad=0.15", "fc": GROUND, "ec": "none"}
_NODE = {"ha": "center", "va": "center", "fontsize": 9, "zorder": 4}


@styled
def plot_tools(regime: str = "S2", protocols: Iterable[str] = ("paper",), seed: int = 0) -> Drawing:
    """Draw one seed's tools in a row, prerequisites as arcs; a panel for each way in which they are drawn."""
    shown: dict[str, list[str]] = {}
    for name in protocols:
        shown.setdefault(parse_protocol(name).instances, []).append(name)
    longest = max(_longest(regime, users[0], seed) for users in shown.values())
    tools = make_world("tooldag", REGIMES[regime], parse_protocol("paper")).rules.tools
    top = 0.6 + 0.21 * longest  # bows rise by about a fifth of their width
    figure, panels = canvas(len(shown) * (0.35 + (WIDTH / tools) * (top + 0.5)), rows=len(shown))
    told = []
    for axes, users in zip(panels[:, 0], shown.values(), strict=True):
        world = make_world("tooldag", REGIMES[regime], parse_protocol(users[0]))
        task = instances(world, [seed])[0].task
        needs = members(task.needs[:tools], tools)
        needed = members(task.ancestors[tools - 1] | 1 << tools - 1, tools)
        length = int(chain_length(world, [seed])[0])
        for tool in range(tools):
            for before in np.flatnonzero(needs[tool]):
                _arc(axes, float(before), float(tool))
            wanted = needed[tool]
            colour = VERMILLION if tool == tools - 1 else INK
            axes.plot(tool, 0, "o", ms=17, mfc=GROUND, mec=colour, mew=1.8 if wanted else 0.7, zorder=3)
            axes.text(tool, 0, str(tool), color=colour, alpha=1.0 if wanted else 0.6, **_NODE)
        axes.set_title(f"{' and '.join(users)}: {length} calls reach tool {tools - 1}", loc="left")
        axes.set_xlim(-0.6, tools - 0.4)
        axes.set_ylim(-0.5, top)
        axes.set_aspect("equal")
        strip(axes)
        told.append(
            f"under {listed(users)}, {tools} tools with {int(needs.sum())} prerequisites in all, "
            f"of which {length} must be called"
        )
    alt = f"Dependency graph of the tools of seed {seed} in {regime}: {'; '.join(told)}."
    return Drawing(figure, "tools", alt)


def _longest(regime: str, protocol: str, seed: int) -> int:
    """Return how far apart a tool and its prerequisite stand at most."""
    world = make_world("tooldag", REGIMES[regime], parse_protocol(protocol))
    needs = instances(world, [seed])[0].task.needs
    tool, before = np.nonzero(members(needs, world.rules.tools))
    return int((tool - before).max(initial=1))


def _arc(axes: Axes, start: float, end: float) -> None:
    """Draw an arrow from one tool to a later one: straight to the next, else in a bow above."""
    if end - start == 1:
        path, shrink = "arc3,rad=0", 9.0
    else:
        path, shrink = "arc3,rad=-0.42", 8.0
    style = {"arrowstyle": "-|>", "lw": 1.0, "color": INK, "alpha": 0.75}
    axes.annotate(
        "", (end, 0), (start, 0),
        arrowprops=style | {"connectionstyle": path, "shrinkA": shrink, "shrinkB": shrink},
    )  # fmt: skip


@styled
def plot_rooms(regime: str = "S2", seed: int = 0) -> Drawing:
    """Draw the rooms of one seed in a row, with doors, locks, keys, boxes and goals."""
    world = make_world("objectstate", REGIMES[regime], parse_protocol("paper"))
    rules, task = world.rules, instances(world, [seed])[0].task
    rooms, key_of_door = rules.rooms, task.key_of_door[: rules.doors]
    start, places = int(task.start_room), task.object_room[: rules.objects]
    labels = [name[9:-1] for name in world.field_names[: rules.objects]]
    contents = [["agent"] if room == start else [] for room in range(rooms)]
    for label, place in zip(labels, places, strict=True):
        contents[place].append(short_name(label))
    depth = max(len(lines) for lines in contents)
    strips = -(-rooms // ROOMS_IN_A_ROW)
    figure, panels = canvas(strips * (0.75 + 0.24 * depth), rows=strips)
    for row, axes in enumerate(panels[:, 0]):
        first = row * ROOMS_IN_A_ROW
        last = min(first + ROOMS_IN_A_ROW, rooms)
        for room in range(first, last):
            axes.plot([room, room + 1], [0, 0], color=INK, lw=1.2)
            axes.plot([room, room + 1], [1, 1], color=INK, lw=1.2)
            axes.text(room + 0.5, 1.06, str(room), ha="center", va="bottom", fontsize=9)
            for line, label in enumerate(contents[room]):
                colour = {"a": BLUE, "k": AMBER, "g": VERMILLION, "b": INK}[label[0]]
                weight = "bold" if label in ("agent", "goal") else "normal"
                y = 1 - (line + 0.7) / (depth + 0.4)
                axes.text(room + 0.5, y, label, color=colour, weight=weight, ha="center", va="center")
        for wall in range(first, last + 1):
            _wall(axes, wall, 0 < wall < rooms, int(key_of_door[wall - 1]) if 0 < wall < rooms else -1)
        axes.set_xlim(first - 0.05, first + min(rooms, ROOMS_IN_A_ROW) + 0.05)
        axes.set_ylim(-0.3, 1.3)
        strip(axes)
    locks = [f"door {door} opens with key {key}" for door, key in enumerate(key_of_door) if key >= 0]
    length = int(chain_length(world, [seed])[0])
    alt = (
        f"The {rooms} rooms of seed {seed} in {regime}, in a row. The agent starts in room {start}; the "
        f"goal lies in room {places[rules.goal]}. Locked: {listed(locks)}. The shortest plan has {length} "
        "actions."
    )
    return Drawing(figure, "rooms", alt)


def _wall(axes: Axes, wall: int, is_door: bool, key: int) -> None:
    """Draw a wall, an open door (dotted) or a locked one (thick, with the name of its key)."""
    if not is_door:
        axes.plot([wall, wall], [0, 1], color=INK, lw=1.2)
    elif key < 0:
        axes.plot([wall, wall], [0, 1], color=INK, lw=0.9, ls=(0, (1, 2.5)))
    else:
        axes.plot([wall, wall], [0, 1], color=VERMILLION, lw=2.6)
        axes.text(wall, -0.06, f"k{key}", color=AMBER, ha="center", va="top", fontsize=9)


def short_name(label: str) -> str:
    """Shorten an object's name: key 1 -> k1, box 0 -> b0, the first goal -> goal."""
    kind, number = label.split()
    return "goal" if label == "goal 0" else f"{kind[0]}{number}"


@styled
def plot_graph(regime: str = "S2", seed: int = 0) -> Drawing:
    """Draw the graph of one seed in columns by distance from the start, with locks and keys."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    world = make_world("graphnav", REGIMES[regime], parse_protocol("paper"))
    rules, (instance,) = world.rules, instances(world, [seed])
    task, key_node = instance.task, instance.state.location[: rules.keys]
    ends, key_of_edge = task.ends[: rules.edges], task.key_of_edge[: rules.edges]
    start, target = int(task.start), int(task.target)
    spot = layered(rules.nodes, ends, start)
    deepest = max(y for _, y in spot.values()) - min(y for _, y in spot.values())
    figure, panels = canvas(1.1 + 0.62 * max(deepest, 1.5))
    axes = panels[0, 0]
    for edge, (one, other) in enumerate(ends):
        locked = key_of_edge[edge] >= 0
        (x0, y0), (x1, y1) = spot[int(one)], spot[int(other)]
        # edges within a column bow out, so that they do not run through the nodes between
        bow = 0.13 * abs(y0 - y1) if x0 == x1 and abs(y0 - y1) > 1.01 else 0.0
        look = {"color": VERMILLION, "lw": 2.2} if locked else {"color": INK, "lw": 1.0, "alpha": 0.75}
        bend = (x0 + x1) / 2 - bow, (y0 + y1) / 2
        way = Path([(x0, y0), bend, (x1, y1)], [Path.MOVETO, Path.CURVE3, Path.CURVE3])
        axes.add_patch(PathPatch(way, fill=False, zorder=1, **look))
        if locked:
            axes.text(
                bend[0] + bow / 2, bend[1], f"k{key_of_edge[edge]}", color=AMBER, ha="center", va="center",
                fontsize=9, zorder=2, bbox=_PATCH,
            )  # fmt: skip
    for node, (x, y) in spot.items():
        colour = {start: BLUE, target: VERMILLION}.get(node, INK)
        axes.plot(x, y, "o", ms=17, mfc=GROUND, mec=colour, mew=1.4, zorder=3)
        axes.text(x, y, str(node), color=colour, **_NODE)
        keys = [f"k{key}" for key in np.flatnonzero(key_node == node)]
        axes.text(x, y - 0.34, " ".join(keys), color=AMBER, ha="center", va="top", fontsize=9, zorder=4)
        if node in (start, target):
            word = "start" if node == start else "target"
            # where an edge leaves upwards, the word stands below, and below the keys
            upwards = any(x == spot[int(o)][0] and y < spot[int(o)][1] for e in ends if node in e for o in e)
            above, below = (y + 0.33, "bottom"), (y - 0.34 - 0.25 * bool(keys), "top")
            height, side = below if upwards else above
            axes.text(x, height, word, color=colour, ha="center", va=side, fontsize=9, weight="bold")
    axes.set_xlim(min(x for x, _ in spot.values()) - 0.4, max(x for x, _ in spot.values()) + 0.4)
    axes.set_ylim(min(y for _, y in spot.values()) - 0.75, max(y for _, y in spot.values()) + 0.75)
    strip(axes)
    length = int(chain_length(world, [seed])[0])
    locks = int((key_of_edge >= 0).sum())
    alt = (
        f"The graph of seed {seed} in {regime}: {rules.nodes} nodes, {len(ends)} edges, {counted(locks)} "
        f"of them locked, in columns by distance from start node {start}. The target is node {target}, "
        f"{length} actions away."
    )
    return Drawing(figure, "graph", alt)


def layered(nodes: int, ends: Any, start: int) -> dict[int, tuple[float, float]]:
    """Place the nodes of a connected graph: x is the distance from the start, y avoids crossings.

    Args:
        ends: [edge, 2].
        start: the node in the first column.

    Returns:
        A place (x, y) for each node; a column is centred at y = 0, its nodes one apart.
    """
    neighbours: dict[int, list[int]] = {node: [] for node in range(nodes)}
    for one, other in ends:
        neighbours[int(one)].append(int(other))
        neighbours[int(other)].append(int(one))
    distance, queue = {start: 0}, [start]
    for node in queue:
        for other in sorted(neighbours[node]):
            if other not in distance:
                distance[other] = distance[node] + 1
                queue.append(other)
    spot: dict[int, tuple[float, float]] = {}
    for depth in range(max(distance.values()) + 1):
        column = [node for node in range(nodes) if distance[node] == depth]

        def height(node: int, depth: int = depth) -> tuple[float, int]:
            before = [spot[other][1] for other in neighbours[node] if distance[other] == depth - 1]
            return (-sum(before) / max(len(before), 1), node)

        for place, node in enumerate(sorted(column, key=height)):
            spot[node] = (float(depth), (len(column) - 1) / 2 - place)
    return spot
