"""Protocols: how an experiment is run and scored, one switch for each way that text and code differ.

`paper` is the paper's text, `released` its public implementation (commit 3266b54), `observed` the text
without the assumption that the first belief equals gold. Some switches are faults that neither has: an answer
that may be wrong or late, a call of the agent that may fail.
"""

import re
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args, get_type_hints

from envprobe_core.errors import InputError, look_up
from envprobe_core.naming import find_name


def _fault(off: str) -> Any:
    """The default of a switch that is a fault: it is off in every named protocol."""
    return field(default=off, metadata={"fault": True})


@dataclass(frozen=True)
class Protocol:
    """One value per switch.

    The engine reads each by its name, as `numbered_switch` says. `rates`, `instances`, `sight` and
    `structure` act in the world, `accuracy` to `actions` in the scores, `confident` in `measures.reports`,
    `threshold` and `seeds` in the condition, the others in the loop. In each the text and the code differ,
    but for those that are declared a fault.
    """

    name: str
    start: Literal["gold", "observation"] = "gold"  # beliefs at step 0
    memory: Literal["kept", "none"] = "kept"  # whether the belief table outlives a step
    answer: Literal["delivered", "withheld"] = "delivered"  # does a probe's answer reach the belief table
    clock: Literal["runs", "stands"] = "runs"  # the world during a probe
    rates: Literal["mean", "released"] = "mean"  # mutation table
    instances: Literal["ancestors", "sampled"] = "ancestors"  # how tools, rooms and graphs are drawn
    sight: Literal["local", "released"] = "local"  # what an observation shows
    structure: Literal["graph", "reported"] = "graph"  # whence c and d; is the task graph known
    baselines: Literal["text", "released"] = "text"  # Periodic's field, Self-Uncertainty's gate, own probes
    end: Literal["horizon", "success"] = "horizon"  # what happens after success
    accuracy: Literal["terminal", "slots"] = "terminal"  # what A_H is
    pairing: Literal["same-step", "lagged"] = "same-step"  # which belief is scored against which gold
    encoding: Literal["meaning", "literal"] = "meaning"  # whether a copied number matches a gold True
    onset: Literal["first", "two-below"] = "first"  # when accuracy counts as collapsed
    actions: Literal["running", "two-invalid"] = "running"  # when task actions count as drifted
    confident: Literal["field", "anything"] = "field"  # what a confident belief is wrong about
    useful: Literal["answer", "released"] = "answer"  # when a probe counts as useful
    oracle: Literal["fields", "report"] = "fields"  # what the oracles compare with gold
    threshold: Literal["fixed", "kept-terms"] = "fixed"  # threshold of ablations
    seeds: Literal["text", "released"] = "text"  # default seeds
    wrong: Literal["0", "10", "20", "40"] = _fault("0")  # percent of delivered answers that are a wrong value
    delay: Literal["0", "1", "2", "4", "8"] = _fault("0")  # steps by which a delivered answer comes late
    failing: Literal["0", "10", "20", "40"] = _fault("0")  # percent of steps at which the agent's call fails

    def __post_init__(self) -> None:
        """Refuse a value that a switch does not have."""
        for switch, accepted in _CHOICES.items():
            if (value := getattr(self, switch)) not in accepted:
                raise InputError(f"protocol switch {switch} accepts {' or '.join(accepted)}, not {value!r}")


_CHOICES: dict[str, tuple[str, ...]] = {
    switch: get_args(kind) for switch, kind in get_type_hints(Protocol).items() if switch != "name"
}
PAPER = Protocol("paper")
OBSERVED = replace(PAPER, name="observed", start="observation")
SWITCHES: tuple[str, ...] = tuple(_CHOICES)
FAULTS: tuple[str, ...] = tuple(one.name for one in fields(Protocol) if one.metadata.get("fault"))
"""The switches in which text and code agree: their first value is off."""
DEPARTURES: tuple[str, ...] = tuple(switch for switch in SWITCHES if switch not in FAULTS)
"""The switches in which text and code differ: their first value is the text's, their second the code's."""
RELEASED = Protocol("released", **{switch: _CHOICES[switch][1] for switch in DEPARTURES})

PROTOCOLS: dict[str, Protocol] = {p.name: p for p in (PAPER, OBSERVED, RELEASED)}
TITLES = {"paper": "as written", "observed": "partial start", "released": "as released"}
"""How pages call them beside what the paper has *printed*; both are accepted wherever one is."""
NAMES = {name: (title,) for name, title in TITLES.items()}
"""The same, as `naming` takes it."""
_NAMED = re.compile(r"(?<![\w=])(?<!as )(paper|observed|released)(?!\w)")


def in_words(text: str) -> str:
    """A text, such as a panel's title, with the protocols in it by the names that pages use.

    >>> in_words("tools, paper")
    'tools, as written'
    """
    return _NAMED.sub(lambda found: TITLES[found[0]], text)


def switch_values(switch: str) -> tuple[str, ...]:
    """The values a switch accepts, the text's first.

    >>> switch_values("clock")
    ('runs', 'stands')
    """
    return _CHOICES[switch]


def numbered_switch(protocol: Protocol, switch: str) -> int:
    """A switch as the number that the engine reads: its value's place, or its value where all are numbers.

    >>> numbered_switch(RELEASED, "clock"), numbered_switch(replace(PAPER, delay="8"), "delay")
    (1, 8)
    """
    value, accepted = getattr(protocol, switch), _CHOICES[switch]
    return int(value) if all(map(str.isdigit, accepted)) else accepted.index(value)


def parse_protocol(text: str) -> Protocol:
    """Read a protocol: a name or title, or one with switches turned, as in `paper:clock=stands,end=success`.

    >>> parse_protocol("paper:clock=stands").clock
    'stands'
    >>> parse_protocol("as written:clock=stands").name, parse_protocol("Partial start").name
    ('paper:clock=stands', 'observed')
    """
    name, _, switches = text.partition(":") if isinstance(text, str) else (text, "", "")
    base = PROTOCOLS[find_name("protocol", name, NAMES)]
    changes: dict[str, str] = {}
    for item in filter(None, switches.split(",")):
        switch, equals, value = item.partition("=")
        if not equals:
            raise InputError(f"protocol {text!r}: {item!r} is not SWITCH=VALUE")
        look_up("protocol switch", switch, _CHOICES)
        if switch in changes:
            raise InputError(f"protocol {text!r} turns {switch!r} twice; give each switch once")
        changes[switch] = value
    return turned(base, **changes)


def turned(protocol: Protocol, **values: str) -> Protocol:
    """A protocol with switches set, named after its base and all in which it differs from that.

    >>> turned(PAPER, clock="stands").name
    'paper:clock=stands'
    """
    base, whole = PROTOCOLS[protocol.name.partition(":")[0]], replace(protocol, **values)
    held = {switch: getattr(whole, switch) for switch in SWITCHES}
    changes = [f"{switch}={value}" for switch, value in held.items() if value != getattr(base, switch)]
    return replace(whole, name=f"{base.name}:{','.join(changes)}") if changes else base
