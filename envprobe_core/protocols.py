"""Protocols: how an experiment is run and scored, one switch for each way that text and code differ.

`paper` is the paper's text, `released` its public implementation (commit 3266b54), `observed` the text
without the assumption that the first belief equals gold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace

from envprobe_core.errors import InputError, look_up

_CHOICES: dict[str, tuple[str, ...]] = {
    "start": ("gold", "observation"),
    "memory": ("kept", "none"),
    "answer": ("delivered", "withheld"),
    "clock": ("runs", "stands"),
    "rates": ("mean", "released"),
    "instances": ("ancestors", "sampled"),
    "sight": ("local", "released"),
    "structure": ("graph", "reported"),
    "baselines": ("text", "released"),
    "end": ("horizon", "success"),
    "accuracy": ("terminal", "slots"),
    "pairing": ("same-step", "lagged"),
    "encoding": ("meaning", "literal"),
    "onset": ("first", "two-below"),
    "actions": ("running", "two-invalid"),
    "confident": ("field", "anything"),
    "useful": ("answer", "released"),
    "oracle": ("fields", "report"),
    "threshold": ("fixed", "kept-terms"),
    "seeds": ("text", "released"),
}


@dataclass(frozen=True)
class Protocol:
    """One value per switch.

    `start` to `end`, `useful` and `oracle` act in the loop, `accuracy` to `confident` in the scorers,
    `threshold` and `seeds` before the run.
    """

    name: str
    start: str = "gold"  # beliefs at step 0
    memory: str = "kept"  # whether the belief table outlives a step
    answer: str = "delivered"  # does a probe's answer reach the belief table
    clock: str = "runs"  # the world during a probe
    rates: str = "mean"  # mutation table
    instances: str = "ancestors"  # how tools, rooms and graphs are drawn
    sight: str = "local"  # what an observation shows
    structure: str = "graph"  # where c and d come from, and whether the task graph is known
    baselines: str = "text"  # field choice of Periodic, gate of Self-Uncertainty, agents' own probes
    end: str = "horizon"  # what happens after success
    accuracy: str = "terminal"  # what A_H is
    pairing: str = "same-step"  # which belief is scored against which gold
    encoding: str = "meaning"  # whether a copied number matches a gold True
    onset: str = "first"  # when accuracy counts as collapsed
    actions: str = "running"  # when task actions count as drifted
    confident: str = "field"  # what a confident belief must be wrong about: its field, or anything
    useful: str = "answer"  # when a probe counts as useful
    oracle: str = "fields"  # what the oracles compare with gold: every field, or what is reported
    threshold: str = "fixed"  # threshold of ablations
    seeds: str = "text"  # default seeds

    def __post_init__(self) -> None:
        """Refuse a value that a switch does not have."""
        for switch, accepted in _CHOICES.items():
            if getattr(self, switch) not in accepted:
                raise InputError(
                    f"protocol switch {switch}: {getattr(self, switch)!r} is not one of {', '.join(accepted)}"
                )


PAPER = Protocol("paper")
OBSERVED = replace(PAPER, name="observed", start="observation")
RELEASED = Protocol("released", **{switch: accepted[1] for switch, accepted in _CHOICES.items()})

PROTOCOLS: dict[str, Protocol] = {p.name: p for p in (PAPER, OBSERVED, RELEASED)}
TITLES = {"paper": "as written", "observed": "partial start", "released": "as released"}
"""How pages call them beside what the paper has *printed*; the ids stay on the command line."""
_NAMED = re.compile(r"(?<![\w=])(?<!as )(paper|observed|released)(?!\w)")
SWITCHES: tuple[str, ...] = tuple(field.name for field in fields(Protocol) if field.name != "name")


def in_words(text: str) -> str:
    """Return a text, such as a panel's title, with the protocols in it by the names that pages use."""
    return _NAMED.sub(lambda found: TITLES[found[0]], text)


def switch_values(switch: str) -> tuple[str, ...]:
    """Return the values a switch accepts, the text's first."""
    return _CHOICES[switch]


def parse_protocol(text: str) -> Protocol:
    """Read a protocol: a name, or a name with switches turned, as in `paper:clock=stands,end=success`.

    Raises:
        InputError: if the name, a switch or a value is unknown; the message names what is accepted.
    """
    name, _, switches = text.partition(":")
    base = look_up("protocol", name, PROTOCOLS)
    changes: dict[str, str] = {}
    for item in filter(None, switches.split(",")):
        switch, equals, value = item.partition("=")
        if not equals:
            raise InputError(f"protocol {text!r}: {item!r} is not SWITCH=VALUE")
        if switch not in _CHOICES:
            raise InputError(f"unknown switch {switch!r} of a protocol; accepted: {', '.join(SWITCHES)}")
        if value not in _CHOICES[switch]:
            raise InputError(
                f"protocol {text!r}: switch {switch} accepts {' or '.join(_CHOICES[switch])}, not {value!r}"
            )
        changes[switch] = value
    return turned(base, **changes)


def turned(protocol: Protocol, **values: str) -> Protocol:
    """Return a protocol with switches set, named after its base and all in which it differs from that."""
    base, whole = PROTOCOLS[protocol.name.partition(":")[0]], replace(protocol, **values)
    changes = [
        f"{switch}={getattr(whole, switch)}"
        for switch in SWITCHES
        if getattr(whole, switch) != getattr(base, switch)
    ]
    return replace(whole, name=f"{base.name}:{','.join(changes)}") if changes else base
