"""What the atlas shows, in sentences that are computed from it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from envprobe_core.atlas.deciding import DECIDES, Sensitivity, entanglement
from envprobe_core.atlas.design import BOX
from envprobe_core.atlas.fitting import FEWEST, TOLERANCE, Subset
from envprobe_core.atlas.questions import OURS
from envprobe_core.atlas.running import Atlas, copies
from envprobe_core.atlas.tables import is_level, shares
from envprobe_core.atlas.testing import NO, YES
from envprobe_core.calibration import PROTOCOL, TARGETS
from envprobe_core.markup import Text, code, counted, counted_verb, listed, number, percent, signed
from envprobe_core.policies import OF_THE_PAPER
from envprobe_core.protocols import parse_protocol
from envprobe_core.worlds import WORLDS

ROBUST = 0.9  # a verdict that so many agents share is robust
MOST = 0.5
NAMED = 8  # so many claims are named, the others counted


def _plural(count: int, noun: str) -> str:
    ending = "es" if noun.endswith("s") else "s"
    return f"{counted(count)} {noun}{'' if count == 1 else ending}"


def _part(count: int, total: int) -> str:
    return f"{counted(count)} of {counted(total)}"


def tell_run(atlas: Atlas) -> Text:
    """Say how much was run, what was not run twice, and what it took."""
    saved = {name: copies(parse_protocol(name)) for name in atlas.protocols}
    told = [f"{code(found)} under `{name}`" for name, found in saved.items() if found]
    skipped = atlas.episodes - atlas.simulated
    speed = atlas.simulated / max(atlas.processor_seconds, 1e-9)
    parts = [
        f"{len(atlas.profiles):,} agents, {len(OF_THE_PAPER)} policies, "
        f"{_plural(len(WORLDS), 'world')}, {_plural(len(atlas.protocols), 'protocol')} and "
        f"{atlas.seeds_each} seeds each make {atlas.episodes:,} episodes; on them rest "
        f"{atlas.verdict.size:,} verdicts, each from {atlas.resamples:,} resamples."
    ]
    if skipped:
        parts.append(
            f"Of the episodes {skipped:,} equal others to the last bit and were not run again "
            f"({listed(told)}): where no answer arrives, it makes no difference that one is withheld, "
            "nor which field was asked about."
        )
    workers = f"with {_plural(atlas.jobs, 'process')}" if atlas.jobs else "on a cluster"
    parts.append(
        f"This took {number(atlas.seconds, 0)} s {workers}, "
        f"{number(atlas.processor_seconds, 0)} s of processor time in all, or {speed:,.0f} episodes "
        "a second on one core, verdicts included."
    )
    return Text(" ".join(parts))


def _named(atlas: Atlas, positions: npt.NDArray[np.int64]) -> str:
    """Name claims in brackets, the first few of many; nothing where there are none."""
    names = [f"`{atlas.claims[at].id}`" for at in positions.tolist()]
    if not names:
        return ""
    more = len(names) - NAMED
    return f" ({listed(names if more <= 0 else [*names[:NAMED], f'{counted(more)} more'])})"


def _theirs(atlas: Atlas) -> npt.NDArray[np.bool_]:
    return np.array([claim.source != OURS for claim in atlas.claims])


def tell_shares(atlas: Atlas) -> Text:
    """Say which of the paper's claims survive nearly everywhere and which nowhere."""
    box, theirs = shares(atlas), _theirs(atlas)
    level = np.array([is_level(claim) for claim in atlas.claims])
    lines = []
    for row, name in enumerate(atlas.protocols):
        told = []
        for kind, chosen in (("comparisons", theirs & ~level), ("printed levels", theirs & level)):
            held, against = (np.flatnonzero(chosen & (box[row, :, place] >= ROBUST)) for place in (0, 2))
            tested = int((chosen & np.isfinite(box[row, :, 0])).sum())
            split, untested = tested - len(held) - len(against), int(chosen.sum()) - tested
            names = [_named(atlas, found) if kind == "comparisons" else "" for found in (held, against)]
            told.append(
                f"of the {int(chosen.sum())} {kind} {counted_verb(len(held), 'hold')} for at least "
                f"{percent(ROBUST)} of the agents{names[0]}, {counted_verb(len(against), 'reverse')} for as "
                f"many{names[1]},{'' if untested else ' and'} {counted_verb(split, 'depend')} on the agent "
                f"or on more seeds than {atlas.seeds_each}"
                + (f", and {counted(untested)} cannot be tested with most agents" if untested else "")
            )
        lines.append(f"* Under `{name}`, {told[0]}; {told[1]}.")
    return Text("\n".join([*lines, "", _turning(atlas)]))


def _turning(atlas: Atlas) -> str:
    """Count the claims whose verdict changes sides between protocols for one and the same agent."""
    if len(atlas.protocols) < 2:
        return "With one protocol alone nothing can be said about the weight of the protocol."
    turns = (atlas.verdict == YES).any(axis=0) & (atlas.verdict == NO).any(axis=0)
    often = np.flatnonzero(_theirs(atlas) & (turns.mean(axis=0) >= MOST))
    if not len(often):
        return "No claim of the paper holds under one protocol and reverses under another for most agents."
    return (
        f"For most agents, {_part(len(often), int(_theirs(atlas).sum()))} claims of the paper hold under "
        f"one protocol and reverse under another{_named(atlas, often)}: there the protocol weighs more "
        "than the agent."
    )


def tell_ours(atlas: Atlas) -> Text:
    """Say what the policies that the paper lacks tell: is a gain information?"""
    box = shares(atlas)
    lines = []
    for at, claim in enumerate(atlas.claims):
        if claim.source == OURS:
            parts = [
                f"{percent(box[row, at, 0])} under `{name}` (the opposite for {percent(box[row, at, 2])})"
                for row, name in enumerate(atlas.protocols)
            ]
            lines.append(f"* {claim.statement} Of the agents, this holds for {listed(parts)}.")
    return Text("\n".join(lines))


def tell_fit(atlas: Atlas, subset: Subset | None) -> Text:
    """Say how many agents fit the calibration targets, which is hardest, what changes."""
    if subset is None:
        return Text(
            f"The calibration targets are measured under `{PROTOCOL.name}`, which was not run here, so that "
            "no part of the box can be called fitting."
        )
    place = int(np.argmin(subset.meets))
    own = subset.values[:, place]
    parts = [
        f"An agent *fits* if each of the {counted(len(TARGETS))} calibration targets comes out within "
        f"{number(100 * TOLERANCE, 0)} points; {_part(subset.fits, len(atlas.profiles))} do. "
        f"The hardest target is {TARGETS[place].name}, {number(TARGETS[place].value, 3)} in the paper, which "
        f"{_part(int(subset.meets[place]), len(atlas.profiles))} meet: in the box it runs from "
        f"{number(own.min(), 3)} to {number(own.max(), 3)}."
    ]
    if subset.nearest:
        parts.append(
            f"Since fewer than {counted(FEWEST)} fit, the *{subset.title}* by the calibration's own "
            "objective stand in for them below; they are near, not fitting."
        )
    change = shares(atlas, subset.members)[..., 0] - shares(atlas)[..., 0]
    if np.isfinite(change).any():
        row, at = np.unravel_index(np.nanargmax(np.abs(change)), change.shape)
        parts.append(
            "From the box to these agents, the share under which a claim holds moves by "
            f"{number(100 * float(np.nanmean(np.abs(change))), 0)} points on average and most for "
            f"`{atlas.claims[at].id}` under `{atlas.protocols[row]}` "
            f"({signed(100 * float(change[row, at]), 0)})."
        )
    return Text(" ".join(parts))


def tell_deciders(atlas: Atlas, found: Sensitivity) -> Text:
    """Say which behaviours decide most claims under each protocol, and how many none decides alone."""
    entangled = entanglement(atlas)
    if entangled >= DECIDES:
        return Text(
            f"In a sample of {len(atlas.profiles)} agents two behaviours are entangled: slices of one "
            f"explain {percent(entangled)} of the other. Which behaviour decides cannot be told from so few."
        )
    lines = [
        f"In the sample no behaviour explains more than {percent(max(entangled, 0.0), 1)} of another, "
        "so that what is said of one does not stem from another.",
        "",
    ]
    for row, name in enumerate(atlas.protocols):
        deciders = [found.decides(row, at) for at in range(len(atlas.claims))]
        tally = Counter(one for one in deciders if one is not None).most_common()
        told = [f"`{behaviour}` {_plural(count, 'claim')}" for behaviour, count in tally]
        lines.append(
            f"* Under `{name}`, {_part(sum(count for _, count in tally), len(deciders))} claims are decided "
            f"by a single behaviour{': ' + listed(told) if told else ''}."
        )
    idle = [axis.name for place, axis in enumerate(BOX) if not (found.first == place).any()]
    if idle:
        lines += [
            "",
            f"No claim under any protocol depends most on {listed([f'`{n}`' for n in idle], 'or')}.",
        ]
    return Text("\n".join(lines))
