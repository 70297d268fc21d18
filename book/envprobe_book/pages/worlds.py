"""Worlds as pages show them: an instance of each drawn, and what a world holds in numbers and words."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from envprobe_book.pages.figures import GROUND, INK, ROLES, WIDTH, Drawing, canvas, styled
from envprobe_book.pages.markup import listed
from envprobe_book.plans import chain_length, instances, members, mutable_fields
from envprobe_core.compiled.records import UNKNOWN
from envprobe_core.protocols import in_words, parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import MODULES, make_world
from envprobe_core.worlds.base import PROCEDURAL, World

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOMS_IN_A_ROW = 10
NODE = {"ha": "center", "va": "center", "fontsize": 9, "zorder": 4}
PATCH = {"boxstyle": "round,pad=0.15", "fc": GROUND, "ec": "none"}
NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
SIZES = {  # what the levels of complexity and density set: attribute, and what one of them is called
    "tooldag": {"tools": "tool", "prerequisites": "prerequisite each"},
    "objectstate": {"rooms": "room", "keys": "key", "boxes": "box", "goals": "goal", "locks": "locked door"},
    "graphnav": {"nodes": "node", "edges": "edge", "keys": "key", "locks": "locked edge"},
}
MANY = {"box": "boxes", "prerequisite each": "prerequisites each"}


class Instance(NamedTuple):
    """One instance of a world."""

    world: World
    drawn: Any  # its record, with task and state
    length: int  # of the shortest plan


def build(name: str, regime: str, seed: int, rules: str) -> Instance:
    """A world's instance of a seed, in a regime and under a protocol.

    >>> build("tooldag", "S2", 0, "paper").length
    9
    """
    world = make_world(name, REGIMES[regime], parse_protocol(rules))
    return Instance(world, instances(world, [seed])[0], int(chain_length(world, [seed])[0]))


# drawings


@styled
def draw_tools(protocols: Sequence[str], regime: str, seed: int) -> Drawing:
    """The tools in a row, prerequisites as arrows; a panel for each way in which instances are drawn."""
    panels_of = {}
    for name in protocols:
        panels_of.setdefault(parse_protocol(name).instances, []).append(name)
    built = [build("tooldag", regime, seed, users[0]) for users in panels_of.values()]
    tools = built[0][0].rules.tools
    needs = [members(instance.task.needs[:tools], tools) for _, instance, _ in built]
    longest = max(int(np.subtract(*np.nonzero(own)).max(initial=1)) for own in needs)
    top = 0.6 + 0.21 * longest  # bows rise by about a fifth of their width
    figure, panels = canvas(len(built) * (0.35 + (WIDTH / tools) * (top + 0.5)), rows=len(built))
    said = []
    for axes, users, own, (_, instance, length) in zip(
        panels[:, 0], panels_of.values(), needs, built, strict=True
    ):
        needed = members(instance.task.ancestors[tools - 1] | 1 << tools - 1, tools)
        for tool in range(tools):
            for before in np.flatnonzero(own[tool]):
                _draw_arrow(axes, before, tool)
            wanted, colour = needed[tool], ROLES["goal"] if tool == tools - 1 else INK
            axes.plot(tool, 0, "o", ms=17, mfc=GROUND, mec=colour, mew=1.8 if wanted else 0.7, zorder=3)
            axes.text(tool, 0, str(tool), color=colour, alpha=1.0 if wanted else 0.6, **NODE)
        axes.set_title(f"{listed(map(in_words, users))}: {length} calls reach tool {tools - 1}", loc="left")
        axes.set(xlim=(-0.6, tools - 0.4), ylim=(-0.5, top), aspect="equal")
        _strip(axes)
        said.append(
            f"{listed(map(in_words, users))}, {tools} tools with {int(own.sum())} prerequisites in all, "
            f"of which {length} must be called"
        )
    return Drawing(
        figure, "tools", f"Dependency graph of the tools of seed {seed} in {regime}: {'; '.join(said)}."
    )


def _draw_arrow(axes: Axes, start: int, end: int) -> None:
    """Draw an arrow from one tool to a later one: straight to the next, else in a bow above."""
    path, shrink = ("arc3,rad=0", 9.0) if end - start == 1 else ("arc3,rad=-0.42", 8.0)
    style = {"arrowstyle": "-|>", "lw": 1.0, "color": INK, "alpha": 0.75}
    ends = {"connectionstyle": path, "shrinkA": shrink, "shrinkB": shrink}
    axes.annotate("", (end, 0), (start, 0), arrowprops=style | ends)


@styled
def draw_rooms(regime: str, seed: int) -> Drawing:
    """The rooms in a row, with doors, locks, keys, boxes and goals."""
    world, instance, length = build("objectstate", regime, seed, "paper")
    rules, task = world.rules, instance.task
    rooms, key_of_door, start = rules.rooms, task.key_of_door[: rules.doors], int(task.start_room)
    places = task.object_room[: rules.objects]
    contents = [["agent"] if room == start else [] for room in range(rooms)]
    # the first fields are the objects' locations
    for name, place in zip(world.field_names, places, strict=False):
        contents[place].append(short_name(name[9:-1]))
    depth, strips = max(map(len, contents)), -(-rooms // ROOMS_IN_A_ROW)
    figure, panels = canvas(strips * (0.75 + 0.24 * depth), rows=strips)
    for row, axes in enumerate(panels[:, 0]):
        left = row * ROOMS_IN_A_ROW
        right = min(left + ROOMS_IN_A_ROW, rooms)
        for room in range(left, right):
            axes.plot([room, room + 1], [0, 0], color=INK, lw=1.2)
            axes.plot([room, room + 1], [1, 1], color=INK, lw=1.2)
            axes.text(room + 0.5, 1.06, str(room), ha="center", va="bottom", fontsize=9)
            for line, name in enumerate(contents[room]):
                colour = {"a": ROLES["agent"], "k": ROLES["key"], "g": ROLES["goal"], "b": INK}[name[0]]
                weight = "bold" if name in ("agent", "goal") else "normal"
                y = 1 - (line + 0.7) / (depth + 0.4)
                axes.text(room + 0.5, y, name, color=colour, weight=weight, ha="center", va="center")
        for wall in range(left, right + 1):
            is_door = 0 < wall < rooms
            _draw_wall(axes, wall, is_door, int(key_of_door[wall - 1]) if is_door else -1)
        axes.set(xlim=(left - 0.05, left + min(rooms, ROOMS_IN_A_ROW) + 0.05), ylim=(-0.3, 1.3))
        _strip(axes)
    locks = [f"door {door} opens with key {key}" for door, key in enumerate(key_of_door) if key >= 0]
    alt = (
        f"The {rooms} rooms of seed {seed} in {regime}, in a row. The agent starts in room {start}; the "
        f"goal lies in room {places[rules.goal]}. Locked: {listed(locks)}. The shortest plan has {length} "
        "actions."
    )
    return Drawing(figure, "rooms", alt)


def _draw_wall(axes: Axes, wall: int, is_door: bool, key: int) -> None:
    """Draw a wall, an open door (dotted) or a locked one (thick, with the name of its key)."""
    if is_door and key >= 0:
        axes.plot([wall, wall], [0, 1], color=INK, lw=2.6)
        axes.text(wall, -0.06, f"k{key}", color=ROLES["key"], ha="center", va="top", fontsize=9)
    else:
        look = {"lw": 0.9, "ls": (0, (1, 2.5))} if is_door else {"lw": 1.2}
        axes.plot([wall, wall], [0, 1], color=INK, **look)


def value_word(world: World, field: int, value: int) -> str:
    """The word for a field's value.

    >>> world = make_world("graphnav", REGIMES["S2"], parse_protocol("paper"))
    >>> [value_word(world, 0, 3), value_word(world, 1, 12), value_word(world, 5, UNKNOWN)]
    ['node 3', 'held', 'unknown']
    """
    name = world.field_names[field]
    if value == UNKNOWN:
        return "unknown"
    if name.startswith(("lock", "state")):
        return "locked" if value else "open"
    if name.startswith("location") and value == world.domain[field] - 1:
        return "held"
    if name.startswith(("location", "node")):
        return f"{'room' if world.name == 'objectstate' else 'node'} {value}"
    return "yes" if value else "no"


def short_name(label: str) -> str:
    """The short name of an object; the first goal is the one that counts.

    >>> short_name("key 1"), short_name("box 0"), short_name("goal 0"), short_name("goal 1")
    ('k1', 'b0', 'goal', 'g1')
    """
    kind, number = label.split()
    return "goal" if label == "goal 0" else f"{kind[0]}{number}"


@styled
def draw_graph(regime: str, seed: int) -> Drawing:
    """The graph in columns by distance from the start, with locks and keys."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    world, instance, length = build("graphnav", regime, seed, "paper")
    rules, task, key_node = world.rules, instance.task, instance.state.location[: world.rules.keys]
    ends, key_of_edge = task.ends[: rules.edges], task.key_of_edge[: rules.edges]
    start, target = int(task.start), int(task.target)
    spot = layered(rules.nodes, ends, start)
    xs, ys = zip(*spot.values(), strict=True)
    figure, panels = canvas(1.1 + 0.62 * max(max(ys) - min(ys), 1.5))
    axes = panels[0, 0]
    for (one, other), key in zip(ends.tolist(), key_of_edge, strict=True):
        (x0, y0), (x1, y1) = spot[one], spot[other]
        # edges within a column bow out, so that they do not run through the nodes between
        bow = 0.13 * abs(y0 - y1) if x0 == x1 and abs(y0 - y1) > 1.01 else 0.0
        look = {"color": INK, "lw": 2.2} if key >= 0 else {"color": INK, "lw": 1.0, "alpha": 0.75}
        bend = (x0 + x1) / 2 - bow, (y0 + y1) / 2
        way = Path([(x0, y0), bend, (x1, y1)], [Path.MOVETO, Path.CURVE3, Path.CURVE3])
        axes.add_patch(PathPatch(way, fill=False, zorder=1, **look))
        if key >= 0:
            named = {"color": ROLES["key"], "fontsize": 9, "zorder": 2, "bbox": PATCH}
            axes.text(bend[0] + bow / 2, bend[1], f"k{key}", ha="center", va="center", **named)
    for node, (x, y) in spot.items():
        colour = {start: ROLES["agent"], target: ROLES["goal"]}.get(node, INK)
        axes.plot(x, y, "o", ms=17, mfc=GROUND, mec=colour, mew=1.4, zorder=3)
        axes.text(x, y, str(node), color=colour, **NODE)
        keys = [f"k{key}" for key in np.flatnonzero(key_node == node)]
        axes.text(
            x, y - 0.34, " ".join(keys), color=ROLES["key"], ha="center", va="top", fontsize=9, zorder=4
        )
        if node in (start, target):
            word = "start" if node == start else "target"
            # where an edge leaves upwards, the word stands below, and below the keys
            upwards = any(x == spot[o][0] and y < spot[o][1] for e in ends.tolist() if node in e for o in e)
            above, below = (y + 0.33, "bottom"), (y - 0.34 - 0.25 * bool(keys), "top")
            height, side = below if upwards else above
            axes.text(x, height, word, color=colour, ha="center", va=side, fontsize=9, weight="bold")
    axes.set(xlim=(min(xs) - 0.4, max(xs) + 0.4), ylim=(min(ys) - 0.75, max(ys) + 0.75))
    _strip(axes)
    locked = int((key_of_edge >= 0).sum())
    alt = (
        f"The graph of seed {seed} in {regime}: {rules.nodes} nodes, {len(ends)} edges, "
        f"{NUMBERS[locked] if locked < len(NUMBERS) else locked} of them locked, in columns by distance from "
        f"start node {start}. "
        f"The target is node {target}, {length} actions away."
    )
    return Drawing(figure, "graph", alt)


def layered(nodes: int, ends: Any, start: int) -> dict[int, tuple[float, float]]:
    """Places for the nodes of a connected graph: x is the distance from the start, y avoids crossings.

    Args:
        ends: [edge, 2].
        start: the node in the first column.

    Returns:
        A place (x, y) for each node; a column is centred at y = 0, its nodes one apart.

    >>> layered(3, [(0, 1), (0, 2)], 0)
    {0: (0.0, 0.0), 1: (1.0, 0.5), 2: (1.0, -0.5)}
    """
    neighbours: dict[int, set[int]] = {node: set() for node in range(nodes)}
    for one, other in ends:
        neighbours[int(one)].add(int(other))
        neighbours[int(other)].add(int(one))
    spot: dict[int, tuple[float, float]] = {}
    column, depth = {start}, 0

    def height(node: int) -> tuple[float, int]:
        """Order a column by where the nodes before it stand."""
        before = [spot[other][1] for other in neighbours[node] if other in spot]
        return -sum(before) / max(len(before), 1), node

    while column:
        ordered = sorted(column, key=height)
        spot |= {node: (float(depth), (len(column) - 1) / 2 - place) for place, node in enumerate(ordered)}
        column = {other for node in column for other in neighbours[node]} - set(spot)
        depth += 1
    return spot


def _strip(axes: Axes) -> None:
    """Take spines and ticks from a panel."""
    axes.spines[:].set_visible(False)
    axes.set(xticks=[], yticks=[])


# words and numbers


def world_rules(name: str) -> tuple[pd.DataFrame, str, str]:
    """A world's actions as a frame, a label and a caption for `show`, as the docstring of its module has them.

    >>> frame, label, caption = world_rules("tooldag")
    >>> frame.to_dict("records")
    [{'action': 'call(t)', 'valid if': 't is not loaded, and every prerequisite of t is', 'effect': 't is loaded, and its subgoal complete'}]
    >>> label, "Mutation: a loaded tool" in caption
    ('tab-tooldag-rules', True)
    """  # noqa: E501
    parts = inspect.getdoc(MODULES[name]).split("\n\n")  # type: ignore[union-attr]
    fields, actions = (_table(part) for part in parts if part.startswith("|"))
    goal, seen, moves = (" ".join(part.split()) for part in parts[1:] if not part.startswith("|"))
    named = "; ".join(f"`{one}` ({kind}): {what}" for one, kind, what in fields.itertuples(index=False))
    title = f"**{MODULES[name].TITLE}**: {goal.removeprefix('Description: ')} Fields: {named}."
    return actions, f"tab-{name}-rules", f"{title} {seen} {moves}"


def _table(text: str) -> pd.DataFrame:
    """The frame of a table in Markdown."""
    head, _, *rows = ([cell.strip(" `") for cell in line.strip("|").split("|")] for line in text.splitlines())
    return pd.DataFrame(rows, columns=head)


def describe_world(regime: str, name: str, rules: str) -> dict[str, Any]:
    """What a world holds in a regime, under a protocol, by column of a table.

    Its `sizes` in words, how many fields, actions, steps and probes there are, how many fields are `mutable`
    and at which mean `rate`, NaN where none is.

    >>> describe_world("S2", "graphnav", "paper")["sizes"]
    '12 nodes, 17 edges, 3 keys, 3 locked edges'
    """
    world = make_world(name, REGIMES[regime], parse_protocol(rules))
    mutable = mutable_fields(world, instances(world, [0]))[0]
    counts = [(getattr(world.rules, size), one) for size, one in SIZES[name].items()]
    sizes = [f"{count} {one if count == 1 else MANY.get(one, f'{one}s')}" for count, one in counts]
    procedural = world.field_kinds.count(PROCEDURAL)
    return {
        "regime": regime,
        "world": name,
        "protocol": rules,
        "sizes": ", ".join(sizes),
        "fields": world.fields,
        "procedural": procedural,
        "spatial": world.fields - procedural,
        "actions": world.actions,
        "horizon": world.regime.horizon,
        "budget": world.regime.budget,
        "mutable": mutable.sum(),
        "rate": world.rates[mutable].mean() if mutable.any() else np.nan,
        "observation": world.regime.observation,
    }
