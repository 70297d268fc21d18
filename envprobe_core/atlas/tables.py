"""The atlas in tables."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from envprobe_core.agents.profiles import TYPICAL
from envprobe_core.atlas.deciding import DECIDES, Sensitivity
from envprobe_core.atlas.design import BOX, NAMES, values_of
from envprobe_core.atlas.fitting import TOLERANCE, Subset
from envprobe_core.atlas.questions import OURS
from envprobe_core.atlas.running import Atlas
from envprobe_core.atlas.testing import NO, OPEN, UNTESTED, YES
from envprobe_core.calibration import TARGETS
from envprobe_core.claims import Claim
from envprobe_core.markup import EMPTY, Table, number, percent, signed

Floats = npt.NDArray[np.float64]
OUTCOMES = (YES, OPEN, NO)
TESTED = 0.5  # a claim that fewer agents can be tested on is not spoken of


def shares(atlas: Atlas, members: npt.NDArray[np.int64] | None = None) -> Floats:
    """Return the share of agents under which each claim holds, is inconclusive or reverses.

    Args:
        atlas: the atlas.
        members: positions of some agents; by default all.

    Returns:
        [protocol, claim, outcome] in the order of `OUTCOMES`, of the agents under which the claim could be
        tested; NaN where it could not under most of them, as when hardly any accuracy ever collapses.
    """
    verdict = atlas.verdict if members is None else atlas.verdict[:, members]
    tested = (verdict != UNTESTED).sum(axis=1)
    counts = np.stack([(verdict == outcome).sum(axis=1) for outcome in OUTCOMES], axis=2)
    enough = tested > TESTED * verdict.shape[1]
    return np.where(enough[..., None], counts / np.maximum(tested, 1)[..., None], np.nan)


def is_level(claim: Claim) -> bool:
    """Say whether a claim is that a number comes out as printed, rather than a comparison."""
    return claim.directions == ("equal",)


def _thirds(part: Floats) -> str:
    """Write holds / inconclusive / reverses in percent."""
    return EMPTY if np.isnan(part[0]) else " / ".join(f"{100 * value:.0f}" for value in part)


def show_box() -> Table:
    """Show the box: every behaviour, its range, where the default agent stands, and why."""
    rows = []
    for axis, typical in zip(BOX, values_of(TYPICAL).tolist(), strict=True):
        habit, whole = axis.kind == "habit", axis.kind != "share"
        extent = f"{percent(axis.share)} of agents" if habit else f"{axis.low:g} to {axis.high:g}"
        place = ("yes" if typical else "no") if habit else number(typical, 0 if whole else 2)
        rows.append([f"`{axis.name}`", extent, place, axis.why])
    return Table(
        "tab-atlas-box",
        "The box of agent behaviours *(ours)*, filled evenly by a scrambled Sobol sequence. Rates are per "
        "field or per step and spread on a square scale, half of the agents in the lowest quarter of "
        "the range; confidence is in percent. For `writes`, yes means that tool values are written "
        "as `true`.",
        ("behaviour", "range", f"`{TYPICAL.name}`", "why this far"),
        rows,
        "lrrl",
    )


def sections(atlas: Atlas) -> list[tuple[str, list[int]]]:
    """Return the sections of the book in the claims' order, with the positions of their claims."""
    found: dict[str, list[int]] = {}
    for position, claim in enumerate(atlas.claims):
        found.setdefault(claim.section if claim.source != OURS else "ours", []).append(position)
    return list(found.items())


def show_shares(atlas: Atlas, subset: Subset | None) -> list[Table]:
    """Show, section by section, under how many agents each claim survives."""
    box = shares(atlas)
    near = None if subset is None else shares(atlas, subset.members)
    head = ["claim", *(f"`{name}`" for name in atlas.protocols)]
    if subset is not None:
        head += [f"`{name}`, {subset.title}" for name in atlas.protocols]
    tables = []
    for section, positions in sections(atlas):
        rows = []
        for at in positions:
            row = [f"`{atlas.claims[at].id}`", *(_thirds(part) for part in box[:, at])]
            rows.append(row + ([] if near is None else [_thirds(part) for part in near[:, at]]))
        what = "questions of ours" if section == "ours" else f"claims of the section `{section}`"
        tables.append(
            Table(
                f"tab-atlas-shares-{section}",
                f"Percent of agents under which the {what} hold / are inconclusive / reverse, "
                f"over the box of {len(atlas.profiles)} agents"
                + ("." if subset is None else f" and over {_of(subset)}.")
                + " A dash: too few agents give it a value.",
                head,
                rows,
                "l" + "c" * (len(head) - 1),
            )
        )
    return tables


def _of(subset: Subset) -> str:
    return f"the {subset.title} to the calibration targets" if subset.nearest else subset.title


def show_deciders(atlas: Atlas, found: Sensitivity, claims: Iterable[str]) -> Table:
    """Show which behaviour decides each of some claims, how much it explains and how sure that is."""
    rows = []
    for name in claims:
        at = next(place for place, claim in enumerate(atlas.claims) if claim.id == name)
        for protocol, title in enumerate(atlas.protocols):
            axis = found.first[protocol, at]
            row = [f"`{name}`", f"`{title}`"]
            if axis < 0:
                rows.append([*row, "never varies, or not testable", EMPTY, EMPTY, EMPTY])
                continue
            part = found.share[protocol, at, axis]
            low, high = found.low[protocol, at, axis], found.high[protocol, at, axis]
            decides = f"`{NAMES[axis]}`" if part >= DECIDES else f"none alone (`{NAMES[axis]}`)"
            interval = f"{percent(part)} [{number(100 * low, 0)}, {number(100 * high, 0)}]"
            sure, rank = percent(found.sure[protocol, at]), signed(found.rank[protocol, at, axis])
            rows.append([*row, decides, interval, sure, rank])
    return Table(
        "tab-atlas-deciders",
        "The behaviour that explains most of a claim's support by itself: the share of variance it explains "
        "with a 95% interval over resampled agents, how often it came first among them, and Spearman's "
        f"correlation of the support with it. Below {percent(DECIDES)} no behaviour is said to decide.",
        ("claim", "protocol", "decided by", "explains", "comes first", "rank correlation"),
        rows,
        "lllrrr",
    )


def show_nearest(atlas: Atlas, subset: Subset, count: int = 5) -> Table:
    """Show the agents nearest to the calibration targets, beside what the paper prints."""
    rows = [["**the paper**", *(number(target.value, 3) for target in TARGETS), EMPTY]]
    order = np.argsort(subset.distance, kind="stable")[:count]
    for at in order:
        values = [number(value, 3) for value in subset.values[at]]
        rows.append([f"`{atlas.profiles[at].name}`", *values, number(subset.distance[at], 1)])
    met = [f"{count} of {len(atlas.profiles)}" for count in subset.meets.tolist()]
    rows.append([f"within {number(TOLERANCE)}", *met, f"all: {subset.fits}"])
    return Table(
        "tab-atlas-nearest",
        "The agents of the sample nearest to the paper's figures under `released`, by the calibration's "
        f"objective, and how many agents come within {number(100 * TOLERANCE, 0)} points of each target.",
        ("agent", *(target.symbol for target in TARGETS), "objective"),
        rows,
        "l" + "r" * (len(TARGETS) + 1),
    )
