"""Section *confident-wrong*: how often the agent is sure and wrong, and what its confidence is worth.

Source: the audit table (`tab:pcw_audit`) and the miscoverage proposition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.audit import (
    LEVELS,
    SAMPLE,
    SCAN,
    audit_counts,
    confidence_histogram,
)
from envprobe_core.cells import make_cell
from envprobe_core.experiments import (
    DEFAULT_SEEDS,
    PAPER_POLICIES,
    PROTOCOLS,
    Names,
    find_protocols,
    read_seeds,
    record,
)
from envprobe_core.markup import Table, Text, bracket, number
from envprobe_core.metrics import COLLAPSE
from envprobe_core.sections.paired import printed
from envprobe_core.statistics import RESAMPLES, Estimate, clustered_rate
from envprobe_core.worlds import WORLDS

if TYPE_CHECKING:
    import pandas as pd

ESTIMATORS = {  # row of the paper's table: our title, numerator, denominator, policies
    "canonical": ("(i) canonical", "confident_wrong", "confident", PAPER_POLICIES),
    "self-check": ("(ii) self-check", "low_consistent", "low_steps", ("no-probe",)),
    "high-confidence scan": ("(iii) high-confidence scan", "scan_wrong", "scan_confident", PAPER_POLICIES),
    "smaller sample": ("(iv) smaller sample", "sample_wrong", "sample_confident", PAPER_POLICIES),
}


@dataclass(frozen=True)
class Confidence:
    """What the section measures.

    Attributes:
        frame: one row an episode, with the counts of `audit.audit_counts`.
        right, wrong: for each protocol, counts of known beliefs by reported confidence, [unit, percent].
        worlds: for each protocol the world of each unit, by position; a unit is one seed in one world, all
            policies together.
    """

    frame: pd.DataFrame
    right: dict[str, np.ndarray]
    wrong: dict[str, np.ndarray]
    worlds: dict[str, np.ndarray]


def load_confidence(
    regime: str = "S2",
    protocols: Names = PROTOCOLS,
    profile: str = "typical",
    seeds: str = DEFAULT_SEEDS,
) -> Confidence:
    """Run the paper's seven policies in the three worlds and keep what beliefs and confidence say."""
    import pandas as pd

    cells = [
        make_cell(world, policy, regime, protocol, profile)
        for protocol in find_protocols(protocols)
        for world in WORLDS
        for policy in PAPER_POLICIES
    ]
    chosen = read_seeds(seeds)
    own = [cell.default_seeds() if chosen is None else chosen for cell in cells]
    frames = []
    sums: dict[tuple[str, str], np.ndarray] = {}  # [right or wrong, seed, percent], policies added up
    for cell, part, recording in record(cells, own, reports=True):
        counts = audit_counts(recording, cell, part)
        frames.append(pd.DataFrame(dict(cell.key) | {"seed": part} | counts))
        key = (cell.protocol.name, cell.world)
        every = cell.default_seeds() if chosen is None else chosen
        total = sums.setdefault(key, np.zeros((2, len(every), LEVELS)))
        rows = np.searchsorted(np.sort(every), part)
        total[:, rows] += np.stack(confidence_histogram(recording, cell))
    right, wrong, worlds = {}, {}, {}
    for protocol in dict.fromkeys(name for name, _ in sums):
        parts = [sums[protocol, world] for world in WORLDS]
        right[protocol], wrong[protocol] = np.concatenate(parts, axis=1)
        worlds[protocol] = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
    order = [protocol.name for protocol in find_protocols(protocols)]
    frame = pd.concat(frames, ignore_index=True)
    frame = frame.sort_values("protocol", key=lambda column: column.map(order.index), kind="stable")
    right = {protocol: right[protocol] for protocol in order}
    return Confidence(frame, right, wrong, worlds)


def pooled_rate(
    frame: pd.DataFrame, top: str, bottom: str, policies: tuple[str, ...], resamples: int
) -> Estimate | None:
    """Return a sum over a sum, clustered by seed and resampled within world; None without an event."""
    part = frame[frame["policy"].isin(policies)].groupby(["world", "seed"])[[top, bottom]].sum()
    if not part[bottom].sum():
        return None
    return clustered_rate(
        part[top].to_numpy(), part[bottom].to_numpy(), part.index.get_level_values("world"),
        resamples=resamples,
    )  # fmt: skip


def estimators(data: Confidence, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Estimate the four rates of the paper's audit under each protocol.

    Returns:
        One row an estimator and protocol: `estimator protocol rate low high events`; NaN without an event.
    """
    import pandas as pd

    rows = []
    for name, (_, top, bottom, policies) in ESTIMATORS.items():
        for protocol, part in data.frame.groupby("protocol", sort=False):
            rate = pooled_rate(part, top, bottom, policies, resamples)
            events = int(part.loc[part["policy"].isin(policies), bottom].sum())
            rows.append((name, protocol, *ends(rate), events))
    return pd.DataFrame(rows, columns=["estimator", "protocol", "rate", "low", "high", "events"])


def ends(rate: Estimate | None) -> tuple[float, float, float]:
    """Return a rate and its interval, all NaN without an event."""
    return (np.nan, np.nan, np.nan) if rate is None else (rate.mean, rate.low, rate.high)


def show_estimators(table: pd.DataFrame) -> Table:
    """Show the audit beside the paper's: rate, interval and number of events."""
    rows = []
    for name, (title, *_) in ESTIMATORS.items():
        paper = printed("tab:pcw_audit", name, "confident_wrong")
        rows.append((title, "*the paper*", str(paper), "", f"{paper.n:,}"))
        for row in table[table["estimator"] == name].itertuples():
            rows.append(
                (
                    "", f"`{row.protocol}`", number(row.rate, 3), bracket(row.low, row.high, 3),
                    f"{row.events:,}",
                )
            )  # fmt: skip
    return Table(
        "tab-pcw",
        "The confident-wrong audit. (i) wrong among the beliefs held with confidence .7 or more; (ii) passed "
        f"self-checks among No-Probe's task steps below accuracy {COLLAPSE}; (iii) as (i), on times below "
        f"accuracy {SCAN}; (iv) as (i), on every seed that {SAMPLE} divides. Intervals (95%) are clustered "
        "by seed.",
        ("estimator", "", "rate", "95% interval", "beliefs or steps"),
        rows,
        "llrlr",
    )


def tell_estimators(table: pd.DataFrame) -> Text:
    """Say how far the four rates lie from the paper's, and whether they agree with each other."""
    lines = []
    for protocol, part in table.groupby("protocol", sort=False):
        rates = part.set_index("estimator")
        canonical = rates.loc["canonical"]
        paper = printed("tab:pcw_audit", "canonical", "confident_wrong")
        if np.isnan(canonical["rate"]):
            lines.append(f"* `{protocol}`: no belief is held with confidence .7 or more.")
            continue
        under, over = canonical["high"] < paper.value, canonical["low"] > paper.value
        side = "below" if under else "above" if over else "not apart from"
        spread = rates["rate"].max() - rates["rate"].min()
        lines.append(
            f"* `{protocol}`: a share of {number(canonical['rate'], 3)} of the confident beliefs is wrong "
            f"({number(canonical['low'], 3)} to {number(canonical['high'], 3)}), {side} the paper's {paper}; "
            f"the four estimators differ by up to {number(spread)}, the paper's by "
            f"{number(_printed_spread())}."
        )
    return Text("\n".join(lines))


def _printed_spread() -> float:
    values = [printed("tab:pcw_audit", name, "confident_wrong").value for name in ESTIMATORS]
    return max(values) - min(values)
