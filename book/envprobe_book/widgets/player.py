"""The episode player: recorded episodes to step through, one policy or two on one seed side by side.

Two policies meet the same instance, the same mutations and the same errors of the agent, so that whatever
differs between them follows from the first step at which they did something else. In the book the player
holds the episodes it was given. In JupyterLab the reader chooses any other, which the engine then runs; a
setting that cannot be run is refused in the widget, in words.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envprobe_book.facts.replay import Witnessed, witness
from envprobe_book.pages.figures import DARK, POLICY_STYLES, TERM_COLOURS, WORLD_TITLES
from envprobe_book.pages.markup import listed
from envprobe_book.pages.timeline import OUTCOMES, record_run, word
from envprobe_book.plans import members
from envprobe_book.widgets.host import Widget
from envprobe_core.agents.profiles import PROFILES
from envprobe_core.conditions import Condition, check_seed, find_profile, find_regime
from envprobe_core.engine.records import UNKNOWN
from envprobe_core.engine.scoring import COLLAPSE
from envprobe_core.errors import InputError, look_up
from envprobe_core.policies import POLICIES, Policy
from envprobe_core.protocols import PROTOCOLS, in_words, parse_protocol
from envprobe_core.regimes import REGIMES

PAIR = ("simple", "periodic")


def record_pair(
    world: str = "tooldag",
    policies: Sequence[str] = PAIR,
    seed: int = 0,
    regime: str = "S2",
    protocol: str = "paper",
    profile: str = "typical",
    budget: int | None = None,
    threshold: float | None = None,
    *,
    own: Sequence[Policy] = (),
) -> dict[str, Any]:
    """Run one policy or two on a seed and return what the player shows.

    Args:
        policies: one name or two.
        protocol: may have switches turned.
        budget: probes allowed; None for the regime's own.
        threshold: of policies that have one; None for 1.5.
        own: a reader's own policies, whose names `policies` may hold.

    Returns:
        `key` (for links), `scene` (see `make_scene`), `runs` (see `timeline.record_run`), `parts` (the first
        step at which they differ, or None), `parting` (the same in words), `about`, `world seed regime
        protocol rules profile`.

    Raises:
        InputError: for an unknown name or a value that a condition refuses; the message says which.
    """
    check_seed(seed)
    known = POLICIES | {policy.name: policy for policy in own}
    level, rules, agent = find_regime(regime), parse_protocol(protocol), find_profile(profile)
    seen = []
    for policy in (look_up("policy", name, known) for name in policies):
        gate = threshold if policy.has_threshold else None
        condition = Condition(world, policy, level, rules, agent, budget, gate)
        seen.append(witness(condition, np.array([seed], dtype=np.int64)))
    runs = [record_run(one) for one in seen]
    titles = [run["title"] for run in runs]
    step, parting = None, ""
    if len(runs) > 1:
        step = parting_step(*seen)
        if step is None:
            parting = f"{listed(titles)} never part on this seed: every step is the same."
        else:
            one, other = (run["brief"][step] for run in runs)
            parting = f"They first differ at step {step}: {titles[0]} {one}, {titles[1]} {other}."
            if one == other:
                parting = f"They first differ at step {step}: both do the same ({one}), and the agents come "
                parting += "to know different things by it."
    shown = f"{WORLD_TITLES[world]}, seed {seed}: {listed(dict.fromkeys(titles))}"
    how = f"{regime} under protocol {in_words(rules.name)}; simulated agent, profile {profile}"
    return {
        "key": f"{world}-{rules.name}-{seed}",
        "about": f"{shown} in {how}",
        "world": world,
        "seed": seed,
        "regime": regime,
        "protocol": rules.name,
        "rules": in_words(rules.name),
        "profile": profile,
        "scene": make_scene(seen[0]),
        "runs": runs,
        "parts": step,
        "parting": parting,
    }


def parting_step(one: Witnessed, other: Witnessed) -> int | None:
    """The first step after which two recordings of one seed are not the same any more.

    That is where they do different things, or do the same and one agent is told the answer; None if they
    never part.
    """
    a, b = one.trajectory, other.trajectory
    steps = min(int(a.steps[0]), int(b.steps[0]))
    after = slice(1, steps + 1)
    differs = (a.probe[0, :steps] != b.probe[0, :steps]) | (a.action[0, :steps] != b.action[0, :steps])
    for name in ("belief", "gold", "staleness", "confidence"):
        differs |= (getattr(a, name)[0, after] != getattr(b, name)[0, after]).any(axis=1)
    return int(np.argmax(differs)) if differs.any() else None


# where things stand


def make_scene(seen: Witnessed) -> dict[str, Any]:
    """The structure of the first row's instance, as it is drawn; what is true or believed is no part.

    Returns:
        `kind` (tools, rooms or graph) and its parts, each with the field that belongs to it; `aims`, for
        every action what it aims at (a kind of part and its number); `fields`, `actions`, their names;
        `words`, lists of what values mean, the unknown first, and `word_of`, the list that each field uses.
    """
    world, task, rules = seen.world, seen.instance[0].task, seen.world.rules
    make = {"tooldag": _tools, "objectstate": _rooms, "graphnav": _graph}[world.name]
    lists = [
        tuple(word(world, field, value) for value in range(UNKNOWN, int(world.domain[field])))
        for field in range(world.fields)
    ]
    distinct = list(dict.fromkeys(lists))
    parts, counts = make(rules, task, world.field_names)
    return {
        **parts,
        "aims": [[kind, number] for kind, count in counts for number in range(count)],
        "fields": list(world.field_names),
        "actions": list(world.action_names),
        "words": [list(words) for words in distinct],
        "word_of": [distinct.index(words) for words in lists],
    }


Scene = tuple[dict[str, Any], list[tuple[str, int]]]
"""The parts of a drawing, and at what parts the actions aim, in their order: a kind, and how many."""


def _tools(rules: Any, task: Any, _: Sequence[str]) -> Scene:
    tools = rules.tools
    needed = members(task.ancestors[tools - 1] | 1 << tools - 1, tools)
    parts = [
        {
            "needs": np.flatnonzero(members(task.needs[tool], tools)).tolist(),
            "needed": bool(needed[tool]),
            "parts": [tool, tool + tools, tool + 2 * tools],
        }
        for tool in range(tools)
    ]
    heads = ["loaded", "satisfied", "complete"]
    return {"kind": "tools", "tools": parts, "heads": heads, "target": tools - 1}, [("tool", tools)]


def _rooms(rules: Any, task: Any, names: Sequence[str]) -> Scene:
    objects, doors = rules.objects, rules.doors
    things = [
        {
            "label": short_name(names[thing][len("location(") : -1]),
            "location": thing,
            "held": objects + doors + thing,
            "goal": thing == rules.goal,
            "key": thing < rules.keys,
        }
        for thing in range(objects)
    ]
    locks = [{"field": objects + door, "key": int(task.key_of_door[door])} for door in range(doors)]
    aims = [("room", rules.rooms), ("thing", objects), ("door", doors), ("thing", objects)]
    return {"kind": "rooms", "rooms": rules.rooms, "things": things, "doors": locks}, aims


def _graph(rules: Any, task: Any, _: Sequence[str]) -> Scene:
    spots = layered(rules.nodes, task.ends[: rules.edges], int(task.start))
    edges = [
        {"ends": task.ends[edge].tolist(), "field": 1 + rules.keys + edge, "key": int(task.key_of_edge[edge])}
        for edge in range(rules.edges)
    ]
    parts = {
        "kind": "graph",
        "spots": [list(spots[node]) for node in range(rules.nodes)],
        "edges": edges,
        "things": [{"label": f"k{key}", "location": 1 + key, "key": True} for key in range(rules.keys)],
        "target": int(task.target),
    }
    return parts, [("node", rules.nodes), ("thing", rules.keys)]


def short_name(label: str) -> str:
    """Shorten an object's name: key 1 -> k1, box 0 -> b0, the first goal -> goal."""
    kind, number = label.split()
    return "goal" if label == "goal 0" else f"{kind[0]}{number}"


def layered(nodes: int, ends: Any, start: int) -> dict[int, tuple[float, float]]:
    """Place the nodes of a connected graph: x is the distance from the start, y avoids crossings.

    Args:
        ends: [edge, 2].
        start: the node in the first column.

    Returns:
        A place (x, y) for each node; a column is centred at y = 0, its nodes one apart.
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


# the widget


class Player(Widget):
    """Episodes to watch."""

    module = "player"

    def __init__(
        self,
        pairs: Sequence[Mapping[str, Any]] = (),
        *,
        start: int = 0,
        live: bool = False,
        policies: Sequence[Policy] = (),
        identity: str = "player",
    ) -> None:
        """Show recorded episodes, and in JupyterLab any other.

        Args:
            pairs: from `record_pair`; more than one need a `group` and a `label` for the menu.
            live: whether Python answers: the reader then chooses any setting.
            policies: a reader's own.
        """
        self._own, shown = tuple(policies), list(pairs) or [record_pair()]
        state = {
            "pairs": shown,
            "start": start,
            "outcomes": OUTCOMES,
            "collapse": COLLAPSE,
            "inks": {term: [colour, DARK[colour]] for term, colour in TERM_COLOURS.items()},
            "marks": {name: style.mark() for name, style in POLICY_STYLES.items()},
        }
        if live:
            known = [(policy.name, policy.title) for policy in (*POLICIES.values(), *self._own)]
            state["choices"] = {  # what the form offers, as (value, text), and what it shows at first
                "world": list(WORLD_TITLES.items()),
                "first": known,
                "second": known,
                "protocol": [(name, in_words(name)) for name in PROTOCOLS],
                "regime": [(name, f"{name}: {regime.title}") for name, regime in REGIMES.items()],
                "profile": [(name, name) for name in PROFILES],
                "setting": {
                    "world": "tooldag", "protocol": "paper", "regime": "S2", "profile": "typical", "seed": 0,
                    "budget": None, "threshold": None, "first": PAIR[0], "second": PAIR[1],
                },
            }  # fmt: skip
        pair = shown[0]  # for readers without JavaScript, in words
        lines = ["The episode player needs JavaScript. Here is its first episode in words.", pair["about"]]
        lines += [pair["parting"]] * bool(pair["parting"])
        for run in pair["runs"]:
            told = zip(run["gate"], run["reply"], run["deed"], run["world"], strict=True)
            for t, (gate, reply, deed, changed) in enumerate(told):
                lines.append(f"{run['title']}, step {t}: {'; '.join((gate, reply or deed, *changed))}")
            lines.append(f"{run['title']} {run['brief'][-1]}")
        super().__init__(state, identity=identity, fallback="\n".join(lines), live=live)

    def answer(self, setting: Mapping[str, str]) -> dict[str, Any]:
        """The episode that a reader chose, every value a text as the form sends it."""
        seed, budget = (_number(name, setting[name], int, "a whole number") for name in ("seed", "budget"))
        threshold = _number("threshold", setting["threshold"], float, "a number")
        rest = (setting[name] for name in ("regime", "protocol", "profile"))
        pair = (setting["first"], setting["second"])
        return {
            "pair": record_pair(setting["world"], pair, seed or 0, *rest, budget, threshold, own=self._own)
        }


def _number(name: str, text: str, kind: type, what: str) -> Any:
    """Read a number that may be left out."""
    try:
        return kind(text) if text.strip() else None
    except ValueError:
        raise InputError(f"{name} {text!r} is not {what}; leave it empty for the default") from None
