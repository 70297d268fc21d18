"""What a practitioner should take from it: rules of thumb, each put to a paired test on the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.cells import Cell, find_profile, find_regime
from envprobe_core.experiments import Names, find_protocols, read_seeds
from envprobe_core.figures import STRATA
from envprobe_core.markup import Table, Text, bracket, code, counted, signed
from envprobe_core.policies import POLICIES, value_policy
from envprobe_core.protocols import Protocol
from envprobe_core.statistics import RESAMPLES, paired_bootstrap
from envprobe_core.sweep import run_cells

if TYPE_CHECKING:
    import pandas as pd

AT_ONCE = value_policy("voi-at-once", "VoI for accuracy, spent at once", 1.0, paced=False)
ARMS = {name: POLICIES[name] for name in ("no-probe", "simple", "voi-success", "voi-accuracy")} | {
    AT_ONCE.name: AT_ONCE
}
MARGIN = 1.0  # points, as in the held-out test


@dataclass(frozen=True)
class RuleOfThumb:
    """A rule and the contrast that tests it.

    Attributes:
        rule: in words.
        arm, reference: names in `ARMS`.
        measure: `accuracy` or `success`.
        worlds: a stratum or a world.
        asks: `gain` (the interval above 0), `no loss` (above minus the margin) or `loss` (below 0).
        answered: whether the rule concerns protocols that deliver answers, or those that withhold them.
    """

    rule: str
    arm: str
    reference: str
    measure: str
    worlds: str
    asks: str
    answered: bool = True

    def holds(self, low: float, high: float) -> bool | None:
        """Say whether an interval, in points, bears the rule out, speaks against it, or neither."""
        if self.asks == "loss":
            return True if high < 0 else False if low > 0 else None
        floor = 0.0 if self.asks == "gain" else -MARGIN
        return True if low > floor else False if high < floor else None


RULES = (
    RuleOfThumb(
        "If the end is what counts, keep the probes for the end.",
        "voi-accuracy", AT_ONCE.name, "accuracy", "combined", "gain",
    ),
    RuleOfThumb(
        "Steps on which the agent waits are free: spend probes there, and lose no task by it.",
        "voi-success", "no-probe", "success", "combined", "no loss",
    ),
    RuleOfThumb(
        "Such free probes already raise accuracy.",
        "voi-success", "no-probe", "accuracy", "combined", "gain",
    ),
    RuleOfThumb(
        "Earlier, ask only for what the plan hangs on: a goal whose place is not known.",
        "voi-success", "no-probe", "success", "objectstate", "gain",
    ),
    RuleOfThumb(
        "If nobody reads the answers, every probe is a step lost.",
        "simple", "no-probe", "success", "combined", "loss", answered=False,
    ),
)  # fmt: skip


def load_rules(
    regime: str, protocols: Names, profile: str, seeds: str, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Put every rule to its test under every protocol that it concerns.

    Returns:
        One row a rule and protocol: `rule protocol contrast measure worlds asks value low high n holds`, in
        points; `holds` is True, False or None.
    """
    import pandas as pd

    worlds, level, agent = STRATA["combined"], find_regime(regime), find_profile(profile)
    rows = []
    for protocol in find_protocols(protocols):
        cells = [Cell(world, arm, level, protocol, agent) for arm in ARMS.values() for world in worlds]
        columns = run_cells(cells, read_seeds(seeds))
        rows += [
            _tested(rule, protocol, columns, resamples)
            for rule in RULES
            if rule.answered == (protocol.answer == "delivered")
        ]
    return pd.DataFrame(rows)


def _tested(
    rule: RuleOfThumb, protocol: Protocol, columns: dict[str, np.ndarray], resamples: int
) -> dict[str, object]:
    worlds = STRATA["combined"]
    table = columns[rule.measure].astype(np.float64).reshape(len(ARMS), len(worlds), -1)
    chosen = [worlds.index(world) for world in STRATA.get(rule.worlds, (rule.worlds,))]
    arm, reference = (table[list(ARMS).index(side), chosen] for side in (rule.arm, rule.reference))
    strata = np.repeat(chosen, table.shape[2])
    found = paired_bootstrap(100.0 * (arm - reference).ravel(), strata, resamples)
    return {
        "rule": rule.rule,
        "protocol": protocol.name,
        "contrast": f"{ARMS[rule.arm].title} − {ARMS[rule.reference].title}",
        "measure": rule.measure,
        "worlds": rule.worlds,
        "asks": rule.asks,
        "value": found.mean,
        "low": found.low,
        "high": found.high,
        "n": strata.size,
        "holds": rule.holds(found.low, found.high),
    }


def show_rules(tested: pd.DataFrame) -> Table:
    """Show every rule with the contrast that tests it."""
    words = {True: "borne out", False: "refuted", None: "open"}
    rows = [
        [
            row.rule,
            f"`{row.protocol}`",
            f"{row.contrast}, {row.measure}, {row.worlds}",
            signed(row.value, 1),
            bracket(row.low, row.high, 1),
            f"**{words[row.holds]}**",
        ]
        for row in tested.itertuples()
    ]
    caption = (
        "Rules of thumb and their tests, in points, paired within world, 95% intervals. *No loss* means that "
        f"the interval lies above −{MARGIN:.0f} point."
    )
    head = ("rule", "protocol", "contrast", "difference", "95% interval", "test")
    return Table("tab-beyond-rules", caption, head, rows, "lllrrl")


def tell_rules(tested: pd.DataFrame) -> Text:
    """Say which rules the page bears out under every protocol it asks, and which not."""
    lines = []
    for rule, part in tested.groupby("rule", sort=False):
        held = part[part["holds"].eq(True)]
        against = part[part["holds"].eq(False)]
        line = f"* *{rule}* Borne out under {counted(len(held))} of {counted(len(part))} protocols"
        if len(against):
            line += f", refuted under {code(against['protocol'])}"
        lines.append(line + ".")
    return Text("\n".join(lines))
