"""The episode player: recorded episodes to step through, one policy or two on one seed side by side.

Two policies meet the same instance, the same mutations and the same errors of the agent, so that whatever
differs between them follows from the first step at which they did something else. The player holds the
episodes it was given; any other it makes itself with the page's engine (`episode.js`), the same object that
`record_pair` makes, in the book as in JupyterLab. A policy in a reader's own Python cannot run in a page: its
episodes are recorded here, and shown.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envprobe_book.facts.replay import Witnessed, witness
from envprobe_book.pages.figures import POLICY_STYLES
from envprobe_book.pages.markup import listed
from envprobe_book.pages.timeline import OUTCOMES, SAID, record_run, word
from envprobe_book.pages.worlds import layered, short_name
from envprobe_book.plans import members
from envprobe_book.widgets.host import Widget
from envprobe_core.agents.profiles import PROFILES
from envprobe_core.conditions import Condition, check_seed, find_profile, find_regime, titles
from envprobe_core.engine.records import UNKNOWN
from envprobe_core.engine.scoring import COLLAPSE
from envprobe_core.naming import find_name
from envprobe_core.policies import NAMES, POLICIES, Policy
from envprobe_core.protocols import PROTOCOLS, TITLES, in_words, parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS, World, find_world, make_world

PAIR = ("simple", "periodic")
SAID_OF_PAIRS = {
    "never": "{titles} never part on this seed: every step is the same.",
    "differ": "They first differ at step {step}: {first} {one}, {second} {other}.",
    "alike": "They first differ at step {step}: both do the same ({one}), and the agents come to know "
    "different things by it.",
    "about": "{world}, seed {seed}: {policies} in {regime} under protocol {protocol}; simulated agent, "
    "profile {profile}",
}
"""What is said of a pair, beside what `timeline.SAID` says of an episode."""


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
        protocol rules profile`, and `budget threshold` as given. Who shows it may add `group` and `label`
        (for the menu) and `rarity` (a sentence on how it was chosen).

    Raises:
        InputError: for an unknown name or a value that a condition refuses; the message says which.
    """
    check_seed(seed)
    known = POLICIES | {policy.name: policy for policy in own}
    own_titles = NAMES | {policy.name: (policy.title,) for policy in own}
    world = find_world(world)
    level, rules, agent = find_regime(regime), parse_protocol(protocol), find_profile(profile)
    seen = []
    for policy in (known[find_name("policy", name, own_titles)] for name in policies):
        gate = threshold if policy.has_threshold else None
        condition = Condition(world, policy, level, rules, agent, budget, gate)
        seen.append(witness(condition, np.array([seed], dtype=np.int64)))
    runs = [record_run(one) for one in seen]
    titles = [run["title"] for run in runs]
    step, parting = None, ""
    if len(runs) > 1:
        step = parting_step(*seen)
        one, other = (run["brief"][-1 if step is None else step] for run in runs)
        how = "never" if step is None else "alike" if one == other else "differ"
        told = {"titles": listed(titles), "first": titles[0], "second": titles[1], "one": one, "other": other}
        parting = SAID_OF_PAIRS[how].format(step=step, **told)
    named = {"world": WORLDS[world], "policies": listed(dict.fromkeys(titles))}
    set_up = {"seed": seed, "regime": regime, "profile": profile}
    return {
        "key": f"{world}-{rules.name}-{seed}",
        "about": SAID_OF_PAIRS["about"].format(protocol=in_words(rules.name), **named, **set_up),
        "world": world,
        **set_up,
        "protocol": rules.name,
        "rules": in_words(rules.name),
        "budget": budget,
        "threshold": threshold,
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
        What `make_frame` returns, with what the instance was drawn with: which tool needs which, which key
        opens which door or edge, which nodes an edge joins, and where nodes are drawn.
    """
    scene, task = make_frame(seen.world), seen.instance[0].task
    if scene["kind"] == "tools":
        target, tools = scene["target"], len(scene["tools"])
        needed = members(task.ancestors[target] | 1 << target, tools)
        for number, tool in enumerate(scene["tools"]):
            tool["needs"] = np.flatnonzero(members(task.needs[number], tools)).tolist()
            tool["needed"] = bool(needed[number])
    elif scene["kind"] == "rooms":
        for number, door in enumerate(scene["doors"]):
            door["key"] = int(task.key_of_door[number])
    else:
        for number, edge in enumerate(scene["edges"]):
            edge |= {"ends": task.ends[number].tolist(), "key": int(task.key_of_edge[number])}
        spots = layered(scene["nodes"], [edge["ends"] for edge in scene["edges"]], int(task.start))
        scene |= {"spots": [list(spots[node]) for node in range(scene["nodes"])], "target": int(task.target)}
    return scene


def make_frame(world: World) -> dict[str, Any]:
    """What all instances of a world are drawn with.

    Returns:
        `kind` (tools, rooms or graph) and its parts, each with the field that belongs to it; `aims`, for
        every action what it aims at (a kind of part and its number); `fields`, `actions`, their names;
        `words`, lists of what values mean, the unknown first, and `word_of`, the list that each field uses.
    """
    lists = [
        tuple(word(world, field, value) for value in range(UNKNOWN, int(world.domain[field])))
        for field in range(world.fields)
    ]
    distinct = list(dict.fromkeys(lists))
    make = {"tooldag": _tools, "objectstate": _rooms, "graphnav": _graph}[world.name]
    parts, counts = make(world.rules, world.field_names)
    return {
        **parts,
        "aims": [[kind, number] for kind, count in counts for number in range(count)],
        "fields": list(world.field_names),
        "actions": list(world.action_names),
        "words": [list(words) for words in distinct],
        "word_of": [distinct.index(words) for words in lists],
    }


Frame = tuple[dict[str, Any], list[tuple[str, int]]]
"""The parts of a drawing, and at what parts the actions aim, in their order: a kind, and how many."""


def _tools(rules: Any, _: Sequence[str]) -> Frame:
    tools = rules.tools
    parts = [{"parts": [tool, tool + tools, tool + 2 * tools]} for tool in range(tools)]
    heads = ["loaded", "satisfied", "complete"]
    return {"kind": "tools", "tools": parts, "heads": heads, "target": tools - 1}, [("tool", tools)]


def _rooms(rules: Any, names: Sequence[str]) -> Frame:
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
    locks = [{"field": objects + door} for door in range(doors)]
    aims = [("room", rules.rooms), ("thing", objects), ("door", doors), ("thing", objects)]
    return {"kind": "rooms", "rooms": rules.rooms, "things": things, "doors": locks}, aims


def _graph(rules: Any, _: Sequence[str]) -> Frame:
    parts = {
        "kind": "graph",
        "nodes": rules.nodes,
        "edges": [{"field": 1 + rules.keys + edge} for edge in range(rules.edges)],
        "things": [{"label": f"k{key}", "location": 1 + key, "key": True} for key in range(rules.keys)],
    }
    return parts, [("node", rules.nodes), ("thing", rules.keys)]


# the widget


def lexicon() -> dict[str, Any]:
    """What a page must know to make episodes as `record_pair` does, beside what its engine knows.

    Returns:
        `said`, sentences to be filled in; `worlds` and `protocols`, their titles; `titles`, all that an
        address may have for a name; `policies`, of each its
        `title`, the `terms` of its score (None: it has no threshold), whether it is `answered`, and what it
        `replays`; `frames` of `make_frame`, and `frame_of`, which of them a world has in a regime.
    """
    frames: list[dict[str, Any]] = []
    frame_of: dict[str, dict[str, int]] = {}
    for world in WORLDS:
        for name, regime in REGIMES.items():
            frame = make_frame(make_world(world, regime, PROTOCOLS["paper"]))
            if frame not in frames:
                frames.append(frame)
            frame_of.setdefault(world, {})[name] = frames.index(frame)
    told = ("title", "terms", "answered", "replays")
    return {
        "said": SAID | SAID_OF_PAIRS,
        "worlds": WORLDS,
        "protocols": TITLES,
        "titles": titles(),
        "policies": {
            name: {part: getattr(policy, part) for part in told} for name, policy in POLICIES.items()
        },
        "frames": frames,
        "frame_of": frame_of,
    }


class Player(Widget):
    """Episodes to watch, those that were recorded and any other that the page's engine can run."""

    module = "player"
    runs_engine = True

    def __init__(
        self, pairs: Sequence[Mapping[str, Any]] = (), *, start: int = 0, identity: str = "player"
    ) -> None:
        """Show recorded episodes, and a form for any other.

        Args:
            pairs: from `record_pair`; more than one need a `group` and a `label` for the menu.
            start: the step that is shown first.
        """
        shown = list(pairs) or [record_pair()]
        policies = [(name, policy.title) for name, policy in POLICIES.items()]
        state = {
            "pairs": shown,
            "start": start,
            "outcomes": OUTCOMES,
            "collapse": COLLAPSE,
            "marks": {name: style.mark() for name, style in POLICY_STYLES.items()},
            "lexicon": lexicon(),
            "choices": {  # what the form offers, as (value, text)
                "world": list(WORLDS.items()),
                "first": policies,
                "second": [*policies, ("", "nothing")],
                "protocol": [(name, in_words(name)) for name in PROTOCOLS],
                "regime": [(name, f"{name}: {regime.title}") for name, regime in REGIMES.items()],
                "profile": [(name, name) for name in PROFILES],
            },
        }
        pair = shown[0]  # for readers without JavaScript, in words
        lines = ["The episode player needs JavaScript. Here is its first episode in words.", pair["about"]]
        lines += [text for text in (pair.get("rarity"), pair["parting"]) if text]
        for run in pair["runs"]:
            told = zip(run["gate"], run["reply"], run["deed"], run["world"], strict=True)
            for t, (gate, reply, deed, changed) in enumerate(told):
                lines.append(f"{run['title']}, step {t}: {'; '.join((gate, reply or deed, *changed))}")
            lines.append(f"{run['title']} {run['brief'][-1]}")
        super().__init__(state, identity=identity, fallback="\n".join(lines))
