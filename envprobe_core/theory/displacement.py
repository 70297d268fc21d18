"""Probe-action displacement (Lemma 5.7): effective actions, K, and the bound against measured success."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import make_cell
from envprobe_core.engine.recording import Trajectory
from envprobe_core.engine.records import NO_ACTION
from envprobe_core.experiments import Names, names, record
from envprobe_core.instances import act, instances, states_of, succeeded
from envprobe_core.plans import chain_length, plan_length
from envprobe_core.protocols import parse_protocol
from envprobe_core.statistics import wilson
from envprobe_core.theory.forks import seeds_in
from envprobe_core.theory.pure import displacement_bound
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import Floats, World

if TYPE_CHECKING:
    import pandas as pd

Ints = npt.NDArray[np.int64]
POLICIES = ("no-probe", "random", "periodic", "self-uncertainty", "simple", "cd", "oracle-tw")
FEWEST_ALIKE = 20


def effective_actions(world: World, seeds: Ints, recording: Trajectory) -> Ints:
    """Count the valid actions that shorten the gold shortest plan by one, before success, [row].

    Args:
        world: the world of the episodes.
        seeds: [row].
        recording: their recording.
    """
    instance = instances(world, seeds)
    before = states_of(world, recording.gold[:, :-1], recording.place[:, :-1])
    after, _ = act(world, instance, before, np.where(recording.valid, recording.action, NO_ACTION))
    shorter = plan_length(world, instance, before) - 1 == plan_length(world, instance, after)
    reached = np.logical_or.accumulate(succeeded(world, instance, before), axis=1)
    return (recording.valid & shorter & ~reached).sum(axis=1)


def bound_given_slots(effective: Ints, slots: Ints, needed: Floats) -> float:
    """Return E[min(1, eta N / K)] with eta estimated apart for every N that enough episodes share.

    Episodes whose N is rarer than `FEWEST_ALIKE` share one eta.
    """
    _, group, size = np.unique(slots, return_inverse=True, return_counts=True)
    group = np.where(size[group] >= FEWEST_ALIKE, group, len(size))
    effective_sum = np.bincount(group, effective, minlength=len(size) + 1)
    slot_sum = np.bincount(group, slots, minlength=len(size) + 1)
    eta = np.divide(effective_sum, slot_sum, out=np.zeros(len(slot_sum)), where=slot_sum > 0)
    return displacement_bound(eta[group], slots, needed)


def load_displacement(
    worlds: Names, regime: str, protocols: Names, profile: str, seeds: str,
    policies: Sequence[str] = POLICIES,
) -> pd.DataFrame:  # fmt: skip
    """Put the bound beside measured success, for every policy.

    Returns:
        One row a protocol, world and policy: `K` (mean shortest plan at step 0), `slots` (mean N = H - P),
        `eta` (effective actions a slot), `eta_task` (the same a task action), `success` with `low high`
        (Wilson), `bound` (eta pooled), `bound_given_slots`, `holds` (the interval of success does not lie
        above the bound), `exceeds` (the measured share does), `short` (successes with fewer than K effective
        actions), `successes`, `episodes`.
    """
    import pandas as pd

    rows = []
    for protocol in names(protocols):
        rules, chosen = parse_protocol(protocol), seeds_in(seeds, regime, protocol)
        cells = [
            make_cell(world, policy, regime, rules, profile) for world in names(worlds) for policy in policies
        ]
        needed_by = {
            name: chain_length(make_world(name, cells[0].regime, rules), chosen) for name in names(worlds)
        }
        parts: dict[tuple[str, str], list[tuple[Ints, Trajectory]]] = {}
        for cell, own, recording in record(cells, [chosen] * len(cells)):
            parts.setdefault((cell.world, cell.policy.name), []).append((own, recording))
        for (name, policy), pieces in parts.items():
            world = make_world(name, cells[0].regime, rules)
            effective = np.concatenate([effective_actions(world, own, part) for own, part in pieces])
            success = np.concatenate([part.success for _, part in pieces])
            probes = np.concatenate([(part.probe >= 0).sum(axis=1) for _, part in pieces])
            acted = np.concatenate([part.acted.sum(axis=1) for _, part in pieces])
            needed = needed_by[name]  # pieces of a cell come in the order of its seeds
            slots = cells[0].regime.horizon - probes
            eta = float(effective.sum() / slots.sum()) if slots.sum() else 0.0
            share = wilson(int(success.sum()), len(success))
            bound = displacement_bound(eta, slots, needed)
            rows.append(
                {
                    "protocol": protocol, "world": name, "policy": policy, "K": float(needed.mean()),
                    "slots": float(slots.mean()), "eta": eta,
                    "eta_task": float(effective.sum() / max(1, acted.sum())),
                    "success": share.value, "low": share.low, "high": share.high, "bound": bound,
                    "bound_given_slots": bound_given_slots(effective, slots, needed),
                    "holds": bool(share.low <= bound), "exceeds": bool(share.value > bound),
                    "short": int((success & (effective < needed)).sum()),
                    "successes": int(success.sum()), "episodes": len(success),
                }
            )  # fmt: skip
    return pd.DataFrame(rows)
