"""``envprobe list``: every name that the other commands take, with what it stands for."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from envprobe_core.cli import options
from envprobe_core.errors import InputError, in_one_line

if TYPE_CHECKING:
    from rich.table import Table

    from envprobe_core.policies import Policy

WIDTH = 160  # of the tables where standard output is no terminal
ABOUT_PROTOCOLS = {
    "paper": "the paper's text: the first belief equals gold (Algorithm 1)",
    "observed": "the text, but the first belief holds only what the first observation shows",
    "released": "the paper's public code (commit 3266b54)",
}


def list_names(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[worlds|policies|protocols|regimes|profiles|sections]",
            help="What to list; everything if left out.",
        ),
    ] = None,
) -> None:
    """List worlds, policies, protocols, regimes, profiles and sections."""
    if what is not None and what not in TABLES:
        raise InputError(f"no list of {what!r}; accepted: {', '.join(TABLES)}")
    console = options.console(WIDTH)
    for name in TABLES if what is None else [what]:
        console.print(TABLES[name](), "")


def worlds() -> Table:
    """Return the worlds, with their sizes at low, medium and high complexity and density."""
    from envprobe_core.protocols import PAPER
    from envprobe_core.regimes import REGIMES
    from envprobe_core.worlds import MODULES, WORLDS, make_world

    table = options.table("worlds", ["name", "title", "fields (S1/S2/S3)", "actions", "what it is"])
    for name, title in WORLDS.items():
        sizes = [make_world(name, REGIMES[regime], PAPER) for regime in ("S1", "S2", "S3")]
        table.add_row(
            name,
            title,
            " / ".join(str(world.fields) for world in sizes),
            " / ".join(str(world.actions) for world in sizes),
            _described(MODULES[name]),
        )
    return table


def _described(module: ModuleType) -> str:
    """The line `Description:` of a world's module."""
    lines = (module.__doc__ or "").splitlines()
    return next(line.removeprefix("Description: ") for line in lines if line.startswith("Description: "))


def policies() -> Table:
    """Return the policies, with the terms of their score."""
    from envprobe_core.policies import POLICIES, THRESHOLD

    table = options.table("policies", ["name", "title", "score", "threshold", "what it does"])
    for name, policy in POLICIES.items():
        table.add_row(
            name,
            policy.title,
            "+".join(policy.terms) if policy.terms else "-",
            str(THRESHOLD) if policy.has_threshold else "-",
            _doing(policy),
        )
    return table


def _doing(policy: Policy) -> str:
    """One line on a policy, from its rule and its properties."""
    from envprobe_core.policies import rules

    highest = "Probe the first highest-scored field if its score reaches the threshold (Algorithm 1)"
    periodic = "fields in turn, or the stalest as in the public code"
    judge = "veto d = 0, force a doubted direct blocker"
    text = {
        rules.NEVER: "Never probe",
        rules.RANDOM: "Probe a uniformly drawn field with probability B/H",
        rules.PERIODIC: f"Probe at steps K - 1, 2K - 1, ... with K = floor(H/B): {periodic}",
        rules.SELF_UNCERTAINTY: "Probe the field of lowest reported confidence, if that is low enough",
        rules.SCORE: highest,
        rules.OWN: highest,
        rules.JUDGE: f"Let an embedded judge override Simple: {judge} (ours)",
        rules.ORACLE: "Probe the first mismatched field",
        rules.ORACLE_TW: "Probe the mismatched field of greatest weight w (Section 4.2, Oracle-TW)",
        rules.REPLAY: "Probe what the schedule says, when it says so",
        rules.VOI: "Probe where an answer is expected to gain more than the step is worth (ours)",
        rules.LATE: "Keep all probes for the last B steps (ours)",
    }[policy.rule.kind]
    if policy.replays:
        text += f"; repeats the probes of {policy.replays}"
    if policy.sees_gold:
        text += "; sees gold"
    if not policy.answered:
        text += "; the answer is withheld"
    return text


def protocols() -> Table:
    """Return the protocols, one row a switch; the first value of a switch is the text's."""
    from envprobe_core.protocols import PROTOCOLS, SWITCHES, switch_values

    table = options.table("protocols", ["switch", *PROTOCOLS, "accepted"])
    table.add_row("", *(ABOUT_PROTOCOLS.get(name, "") for name in PROTOCOLS), "")
    for switch in SWITCHES:
        values = [getattr(protocol, switch) for protocol in PROTOCOLS.values()]
        table.add_row(switch, *values, " ".join(switch_values(switch)))
    table.caption = "a switch is turned behind a colon: paper:clock=stands,end=success"
    table.caption_justify = "left"
    return table


def regimes() -> Table:
    """Return the regimes, with their levels."""
    from envprobe_core.regimes import REGIMES

    levels = ("low", "medium", "high")
    table = options.table(
        "regimes",
        [
            *("name", "what it is", "complexity", "density", "mutation", "observations"),
            *("horizon", "budget", "seeds"),
        ],
    )
    for name, regime in REGIMES.items():
        table.add_row(
            name,
            regime.title,
            *(levels[level] for level in (regime.complexity, regime.density, regime.mutation)),
            regime.observation,
            str(regime.horizon),
            str(regime.budget),
            "{}:{}".format(*regime.seeds),
        )
    return table


def profiles() -> Table:
    """Return the profiles of the simulated agent, with the assumption behind each."""
    from envprobe_core.agents.profiles import PROFILES, TYPICAL

    table = options.table("profiles", ["name", "what it assumes"])
    for name, profile in PROFILES.items():
        label = f"{name} (default)" if profile is TYPICAL else name
        table.add_row(label, profile.assumption)
    return table


def sections() -> Table:
    """Return the paper's sections that have a notebook, with their titles."""
    from rich.markup import escape

    from envprobe_core.reproduce.sections import find_sections

    table = options.table("sections", ["name", "title"])
    faults: dict[str, str] = {}
    try:
        for name, section in find_sections(faults=faults).items():
            table.add_row(escape(name), escape(section.title))
    except InputError as error:  # the package without its checkout
        faults["-"] = str(error)
    for name, fault in faults.items():
        table.add_row(escape(name), escape(in_one_line(fault)))
    return table


TABLES: dict[str, Callable[[], Table]] = {
    "worlds": worlds,
    "policies": policies,
    "protocols": protocols,
    "regimes": regimes,
    "profiles": profiles,
    "sections": sections,
}
