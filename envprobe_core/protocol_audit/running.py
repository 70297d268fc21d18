"""Run each protocol with one switch turned at a time; what only a scorer reads is scored, not run again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.cells import make_cell, parse_seeds
from envprobe_core.engine.recording import score
from envprobe_core.engine.setting import setting_of
from envprobe_core.experiments import COLUMNS, Names, names
from envprobe_core.measures import confident_counts
from envprobe_core.protocol_audit.headlines import POLICIES
from envprobe_core.protocols import SWITCHES, Protocol, parse_protocol, switch_values
from envprobe_core.sweep import Task, plan_tasks, score_task, simulate
from envprobe_core.worlds import WORLDS

if TYPE_CHECKING:
    import pandas as pd

ENDS = "paper released"
SCORED = ("accuracy", "pairing", "encoding", "onset")  # switches that act on a recording
TURNED = tuple(switch for switch in SWITCHES if switch != "seeds")  # other seeds would break the pairs


def other_value(protocol: str, switch: str) -> str:
    """Return the value of a switch that a protocol does not have."""
    own = getattr(parse_protocol(protocol), switch)
    (other,) = (value for value in switch_values(switch) if value != own)
    return other


def turn(protocol: str, switches: Iterable[str]) -> str:
    """Return the name of a protocol with switches turned to their other value."""
    turned = ",".join(f"{switch}={other_value(protocol, switch)}" for switch in switches)
    if not turned:
        return parse_protocol(protocol).name
    return parse_protocol(protocol + ("," if ":" in protocol else ":") + turned).name


def played(protocol: Protocol) -> Protocol:
    """Return the protocol whose episodes another one scores: all that only scorers read is the text's."""
    plain = {switch: switch_values(switch)[0] for switch in SCORED}
    name = ",".join(f"{switch}={getattr(protocol, switch)}" for switch in SWITCHES if switch not in SCORED)
    return replace(protocol, name=name, **plain)


def run_protocols(
    protocols: Iterable[str],
    policies: Names = POLICIES,
    regime: str = "S2",
    profile: str = "typical",
    seeds: str = "0:220",
    *,
    worlds: Names = tuple(WORLDS),
    confidence: bool = True,
) -> pd.DataFrame:
    """Run policies in the worlds under many protocols, each distinct rollout once.

    Args:
        protocols: names, with or without switches turned.
        policies: names of policies.
        regime: name of a regime.
        profile: name of an agent profile.
        seeds: as `cells.parse_seeds` reads them; the same for every protocol, so that all are paired.
        worlds: names of worlds.
        confidence: whether to count confident and wrong beliefs too.

    Returns:
        One row an episode and protocol: the columns of `experiments.load_grid`, and `confident` and
        `confident_wrong`.
    """
    import pandas as pd

    chosen = parse_seeds(seeds)
    scored: dict[Protocol, list[Protocol]] = {}
    for name in dict.fromkeys(protocols):
        protocol = parse_protocol(name)
        scored.setdefault(played(protocol), []).append(protocol)
    cells = [
        make_cell(world, policy, regime, protocol, profile)
        for protocol in scored
        for world in names(worlds)
        for policy in names(policies)
    ]
    parts = []
    for task in plan_tasks(cells, [chosen] * len(cells)):
        recording = simulate(task)
        for protocol in scored[task.pieces[0].cell.protocol]:
            own = under(task, protocol)
            columns = score_task(own, score(setting_of(own.pieces[0].cell), vars(recording)))
            if confidence:
                counts = confident_counts(recording, protocol)
                columns |= {name: counts[name] for name in ("confident", "confident_wrong")}
            parts.append(_keyed(own, columns))
    order = ["protocol", "world", "policy", "seed"]
    frame = pd.concat(parts, ignore_index=True)
    place = {parse_protocol(name).name: k for k, name in enumerate(dict.fromkeys(protocols))}
    frame = frame.assign(_place=frame["protocol"].map(place)).sort_values(
        ["_place", *order[1:]], kind="stable", ignore_index=True
    )
    extra = ["confident", "confident_wrong"] if confidence else []
    return frame[[*COLUMNS, *extra]]


def under(task: Task, protocol: Protocol) -> Task:
    """Return a task with the same rows under another protocol."""
    pieces = (replace(piece, cell=replace(piece.cell, protocol=protocol)) for piece in task.pieces)
    return replace(task, pieces=tuple(pieces))


def _keyed(task: Task, columns: dict[str, np.ndarray]) -> pd.DataFrame:
    import pandas as pd

    sizes = [len(piece.seeds) for piece in task.pieces]
    keys = {
        name: np.repeat([piece.cell.key[name] for piece in task.pieces], sizes)
        for name in task.pieces[0].cell.key
        if name != "threshold"
    }
    thresholds = [piece.cell.base_threshold for piece in task.pieces]
    keys["threshold"] = np.repeat([np.nan if one is None else one for one in thresholds], sizes)
    return pd.DataFrame(keys | dict(columns))


def load_audit(
    ends: Names = ENDS, regime: str = "S2", profile: str = "typical", seeds: str = "0:220"
) -> pd.DataFrame:
    """Run the protocols to start from, and each of them with every switch turned alone.

    Args:
        ends: names of protocols.
        regime: as in `run_protocols`.
        profile: as in `run_protocols`.
        seeds: as in `run_protocols`.
    """
    wanted = [one for base in names(ends) for one in (turn(base, ()), *(turn(base, [s]) for s in TURNED))]
    return run_protocols(wanted, POLICIES, regime, profile, seeds)
