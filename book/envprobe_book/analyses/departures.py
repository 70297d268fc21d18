"""What each departure of the public code from the text moves: switches turned alone, in groups, and a phase.

Every protocol runs on the same seeds, so a figure before and after a switch is turned is compared in pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from envprobe_book.claims import find_claim
from envprobe_core.comparing import NotTestable, PairedEpisodes
from envprobe_core.conditions import Condition
from envprobe_core.engine.batch import simulate_logged
from envprobe_core.estimating import Sample, estimates_of
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import DEPARTURES, parse_protocol, switch_values, turned
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import Floats, Ints

TURNED = [switch for switch in DEPARTURES if switch != "seeds"]  # other seeds would break the pairs
AUDITED = ("random", "periodic", "simple", "minus-u", "cd")  # the policies that a headline speaks of
GAINS = {  # figures that the paper puts forward: a claim of it, title and unit
    "main-procedural": ("Simple − Periodic, tools", "points"),
    "main-spatial": ("Simple − Periodic, rooms and graphs", "points"),
    "main-combined": ("Simple − Periodic, all worlds", "points"),
    "main-cd": ("(c+d) − Simple, tools", "points"),
    "collapse-delay": ("collapse later than Periodic, tools", "steps"),
}
LEVELS = {
    "level-simple-procedural": ("accuracy of Simple, tools", "points"),
    "level-success-simple": ("success of Simple, tools", "points"),
    "main-minus-u-success": ("success without u − Simple, tools", "points"),
    "upr-spatial": ("useful probes, Simple − Random, rooms and graphs", "points"),
    "pcw-canonical": ("confident and wrong, all worlds", "points"),
}
GROUPS = {  # of switches, in the order of the way from one protocol to the other
    "the world and what is known of it": ("rates", "instances", "start", "sight", "structure"),
    "memory": ("memory",),
    "rules of baselines, gates and the end": ("baselines", "oracle", "threshold", "end"),
    "the world during a probe": ("clock",),
    "the answer": ("answer",),
    "scoring": ("accuracy", "pairing", "encoding", "onset", "actions", "confident", "useful"),
}

# protocols


def turn(name: str, *switches: str) -> str:
    """The protocol with some switches set to their other value, by name.

    >>> turn("paper", "clock"), turn("released", "clock")
    ('paper:clock=stands', 'released:clock=runs')
    """
    rules = parse_protocol(name)
    other = {s: next(v for v in switch_values(s) if v != getattr(rules, s)) for s in switches}
    return turned(rules, **other).name


def between(first: str, last: str, coalition: int) -> str:
    """The first protocol with the `GROUPS` of a bit mask set as the last one has them, by name.

    >>> between("paper", "released", 0b1010)
    'paper:memory=none,clock=stands'
    """
    chosen = [group for bit, group in enumerate(GROUPS.values()) if coalition >> bit & 1]
    stop = parse_protocol(last)
    own = {switch: getattr(stop, switch) for group in chosen for switch in group}
    return turned(parse_protocol(first), **own).name


# headlines before and after a switch is turned


def sample_of(name: str, unit: str, episodes: PairedEpisodes, regime: str) -> Sample | None:
    """What a headline is made of, measured in a regime; None where it cannot be measured.

    Args:
        name: of the claim that the paper makes with it.
        unit: `points` are hundredths of what episodes hold; any other is taken as it is.
        episodes: of one protocol.
        regime: in place of the claim's own.
    """
    claim = find_claim(name)
    arms = claim.arms if claim.references else tuple(arm for arm in claim.arms if arm in AUDITED)
    claim = replace(claim, arms=arms, regime=regime)
    try:
        (one,), rate = claim.comparisons, claim.kind == "rate"
        asked = (one.measure, regime, claim.worlds, one.arms, one.reference)
        sample = episodes.sample(*asked, pooled_events=rate)
    except NotTestable:
        return None
    return sample.times(100.0) if unit == "points" else sample


def turned_alone(
    episodes: pd.DataFrame,
    headlines: Mapping[str, tuple[str, str]],
    bases: Sequence[str],
    regime: str,
    resamples: int,
) -> pd.DataFrame:
    """Headlines before and after each switch of `TURNED` is turned alone.

    Args:
        episodes: of the bases and of every protocol that differs from one in a switch.
        headlines: title and unit of each claim, as `GAINS` has them.
        bases: protocols to start from.
        regime: whose episodes these are.
        resamples: of every interval.

    Returns:
        For each base, with nothing turned and then with each switch, a row a headline: `value` and `shift`
        (after minus before) with their intervals, beside what the paper printed. A resample draws the same
        seeds on both sides. NaN where too few episodes carry a headline.
    """
    by_protocol = {name: part for (name,), part in PairedEpisodes.of(episodes, ["protocol"])}
    rows: list[list[Any]] = []
    samples: dict[tuple[int, str], Sample] = {}  # by row and column
    for base, *switch in [(base, *own) for base in bases for own in ((), *([s] for s in TURNED))]:
        value = [f"{own}={getattr(parse_protocol(turn(base, own)), own)}" for own in switch]
        for name, (title, unit) in headlines.items():
            before, after = (
                sample_of(name, unit, by_protocol[turn(base, *own)], regime) for own in ((), switch)
            )
            claim = find_claim(name)
            scale = 100 if claim.unit == "share" and claim.value is not None else 1
            printed = np.nan if claim.value is None else scale * claim.value
            if after is not None:
                samples[len(rows), "value"] = after
            if after is not None and before is not None:
                samples[len(rows), "shift"] = after.minus(before)
            rows.append([base, "".join(value), name, title, unit, printed])
    frame = pd.DataFrame(rows, columns=["base", "turned", "claim", "headline", "unit", "printed"])
    ends = [f"{name}{end}" for name in ("value", "shift") for end in ("", "_low", "_high")]
    frame[ends] = np.nan
    estimates = estimates_of([*samples.values()], resamples=resamples)
    for (row, name), estimate in zip(samples, estimates, strict=True):
        frame.loc[row, [name, f"{name}_low", f"{name}_high"]] = np.concatenate(estimate[:3])
    return frame


# the phase of a schedule


def scheduled_accuracy(condition: Condition, seeds: Ints, first: int, period: int) -> Floats:
    """Accuracy under a schedule that probes from one step on, fields in turn, [seed].

    Args:
        condition: whatever its policy; its budget says how many probes there are.
        seeds: [seed].
        first: the first probe's step, counted from 0.
        period: steps from one probe to the next.
    """
    answered = replace(POLICIES["yoked"], answered=True, replays=None)  # probes what a schedule says
    cell = replace(condition, policy=answered, threshold=None)
    schedule = np.full((len(seeds), cell.regime.horizon), -1)
    steps = np.arange(first, cell.regime.horizon, period)[: cell.budget_in_force]
    schedule[:, steps] = np.arange(len(steps)) % make_world(cell.world, cell.regime, cell.protocol).fields
    return simulate_logged(cell, seeds, schedules=schedule).measures["accuracy"]
