"""The episode player: recorded episodes to step through, one policy or two on one seed side by side.

Two policies meet the same instance, the same mutations and the same errors of the agent, so that whatever
differs between them follows from the first step at which they did something else. Python hands over logs and
labels. What is told of them and how they are drawn stands in `episode.js` and `player.js`, in the book as in
JupyterLab. Any other episode the player makes itself, with the page's engine. A policy in a reader's own
Python cannot run in a page: its episodes are recorded here, and shown.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envprobe_book.facts.replay import Witnessed, witness
from envprobe_book.pages.episode import draw_episode
from envprobe_book.pages.figures import POLICY_STYLES
from envprobe_book.pages.worlds import short_name, value_word
from envprobe_book.widgets.host import Widget
from envprobe_core.agents.profiles import PROFILES
from envprobe_core.compiled.records import UNKNOWN
from envprobe_core.conditions import Condition, check_seed, find_profile, find_regime, titles
from envprobe_core.engine.scoring import COLLAPSE
from envprobe_core.naming import find_name
from envprobe_core.policies import NAMES, POLICIES, Policy
from envprobe_core.protocols import PROTOCOLS, SWITCHES, TITLES, in_words, parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS, World, find_world, make_world

PAIR = ("simple", "periodic")
BY_TIME = ("belief", "gold", "confidence", "staleness", "place")
BY_STEP = ("probe", "answer", "action", "valid", "useful")


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
    """Logs of one policy or two on a seed, as the player takes them.

    Args:
        policies: one name or two.
        protocol: may have switches turned.
        budget: probes allowed; None for the regime's own.
        threshold: of policies that have one; None for 1.5.
        own: a reader's own policies, whose names `policies` may hold.

    Returns:
        The setting as given: `world seed regime protocol profile budget threshold`; of the protocol its
        `rules` (a title) and `switches`; `task`, what the instance was drawn with; and `runs`, the logs of
        each policy (see `logs_of`). Who shows it may add `group` and `label` (for the menu), `rarity` (a
        sentence on how it was chosen) and `start` (the step that is shown first).

    Raises:
        InputError: for an unknown name or a value that a condition refuses; the message says which.
    """
    seen = [
        witness(one, np.array([seed], dtype=np.int64))
        for one in _conditions(world, policies, seed, regime, protocol, profile, budget, threshold, own)
    ]
    first = seen[0].condition
    task = seen[0].instance[0].task
    return {
        "world": first.world,
        "seed": seed,
        "regime": regime,
        "profile": profile,
        "protocol": first.protocol.name,
        "rules": in_words(first.protocol.name),
        "switches": {name: getattr(first.protocol, name) for name in SWITCHES},
        "budget": budget,
        "threshold": threshold,
        "task": {name: np.ravel(task[name]).tolist() for name in DRAWN_WITH[first.world]},
        "runs": [logs_of(one) for one in seen],
    }


def _conditions(
    world: str,
    policies: Sequence[str],
    seed: int,
    regime: str,
    protocol: str,
    profile: str,
    budget: int | None,
    threshold: float | None,
    own: Sequence[Policy],
) -> list[Condition]:
    """The condition of each policy; the threshold is for those that have one."""
    check_seed(seed)
    known = POLICIES | {policy.name: policy for policy in own}
    own_titles = NAMES | {policy.name: (policy.title,) for policy in own}
    named = [known[find_name("policy", name, own_titles)] for name in policies]
    level, rules, agent = find_regime(regime), parse_protocol(protocol), find_profile(profile)
    gates = [threshold if policy.has_threshold else None for policy in named]
    return [
        Condition(find_world(world), policy, level, rules, agent, budget, gate)
        for policy, gate in zip(named, gates, strict=True)
    ]


def logs_of(seen: Witnessed) -> dict[str, Any]:
    """The first of the episodes that were witnessed, ready for JSON.

    Returns:
        `name title kept` (the terms of its score; None: it has no threshold) `answered replays` of the
        policy, `budget` and `threshold` in force, `steps`, `reached` (the goal). Tables [time, field] over
        t = 0..steps: `belief gold confidence staleness`; lists over them: `place accuracy`. Lists over
        steps: `probe answer action valid useful score`; `acted` [step, field], the truth after the action
        and before the world moved; `terms` [step, term, field], what the policy saw of c, s, u, d. A number
        that there is none of is None.
    """
    recording, condition = seen.trajectory, seen.condition
    steps = int(recording.steps[0])
    return {
        "name": condition.policy.name,
        **_told_of(condition.policy),
        "budget": condition.budget_in_force,
        "threshold": condition.threshold_in_force if condition.policy.has_threshold else None,
        "steps": steps,
        "reached": bool(seen.goal_reached()[0, steps]),
        **{name: getattr(recording, name)[0, : steps + 1].tolist() for name in BY_TIME},
        **{name: getattr(recording, name)[0, :steps].tolist() for name in BY_STEP},
        "accuracy": _numbers(recording.accuracy[0, : steps + 1]),
        "score": _numbers(recording.score[0, :steps]),
        "acted": seen.after_action()[0, :steps].tolist(),
        "terms": np.moveaxis(seen.terms[0, :steps], 2, 1).tolist(),
    }


def _numbers(values: np.ndarray) -> list[float | None]:
    """Numbers as JSON can say them."""
    return [float(value) if np.isfinite(value) else None for value in values]


def _told_of(policy: Policy) -> dict[str, Any]:
    """What a page knows of a policy."""
    return {
        "title": policy.title,
        "kept": policy.terms,
        "answered": policy.answered,
        "replays": policy.replays,
    }


# labels


DRAWN_WITH = {
    "tooldag": ("needs", "ancestors"),
    "objectstate": ("key_of_door",),
    "graphnav": ("ends", "key_of_edge", "start", "target"),
}
"""The parts of an instance's task that its drawing shows."""


def make_frame(world: World) -> dict[str, Any]:
    """What all instances of a world are drawn with.

    Returns:
        `kind` (tools, rooms or graph) and its parts, each with the field that belongs to it; `aims`, for
        every action what it aims at (a kind of part and its number); `fields`, `actions`, their names;
        `words`, lists of what values mean, the unknown first, and `word_of`, the list that each field uses;
        `drawn_with`, what of an instance's task its drawing shows.
    """
    lists = [
        tuple(value_word(world, field, value) for value in range(UNKNOWN, int(world.domain[field])))
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
        "drawn_with": list(DRAWN_WITH[world.name]),
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
    """The labels of a page that makes episodes as `record_pair` does, beside what its engine knows.

    Returns:
        `worlds` and `protocols`, their titles; `titles`, all that an address may have for a name;
        `policies`, what is known of each; `frames` of `make_frame`, and `frame_of`, which of them a world
        has in a regime.
    """
    frames: list[dict[str, Any]] = []
    frame_of: dict[str, dict[str, int]] = {}
    for world in WORLDS:
        for name, regime in REGIMES.items():
            frame = make_frame(make_world(world, regime, PROTOCOLS["paper"]))
            if frame not in frames:
                frames.append(frame)
            frame_of.setdefault(world, {})[name] = frames.index(frame)
    return {
        "worlds": WORLDS,
        "protocols": TITLES,
        "titles": titles(),
        "policies": {name: _told_of(policy) for name, policy in POLICIES.items()},
        "frames": frames,
        "frame_of": frame_of,
    }


class Player(Widget):
    """Episodes to watch, those that were recorded and any other that the page's engine can run."""

    module = "player"
    runs_engine = True

    def __init__(self, pairs: Sequence[Mapping[str, Any]] = (), *, identity: str = "player") -> None:
        """Show recorded episodes, and a form for any other.

        Args:
            pairs: from `record_pair`; more than one need a `group` and a `label` for the menu.
        """
        shown = list(pairs) or [record_pair()]
        policies = [(name, policy.title) for name, policy in POLICIES.items()]
        state = {
            "pairs": shown,
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
        super().__init__(state, identity=identity, still=draw_episode(shown[0], f"{identity}-still"))
