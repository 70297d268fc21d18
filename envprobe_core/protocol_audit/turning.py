"""What one switch does to each headline, and how groups of switches lead from one protocol to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.decomposition.shapley import shapley_values
from envprobe_core.experiments import Names, names
from envprobe_core.figures import STRATA
from envprobe_core.protocol_audit.headlines import HEADLINES, Counts, change, level
from envprobe_core.protocol_audit.running import TURNED, other_value, run_protocols, turn
from envprobe_core.protocols import parse_protocol
from envprobe_core.sections.report import withheld
from envprobe_core.statistics import RESAMPLES, mean_intervals

if TYPE_CHECKING:
    import pandas as pd

GROUPS = {  # in the order of the path
    "the world and what is known of it": ("rates", "instances", "start", "sight", "structure"),
    "rules of baselines, gates and the end": ("baselines", "threshold", "end"),
    "the world during a probe": ("clock",),
    "the answer": ("answer",),
    "scoring": ("accuracy", "pairing", "encoding", "onset"),
}
PAIR = ("periodic", "simple")
WITNESSED = ("no-probe", "periodic", "simple", "placebo")
WITNESSES = ("scripted", "scripted-open", "scripted-true", "scripted-true-open")


def turned_alone(
    counts: dict[tuple[str, str], Counts | None], ends: Names, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Compare every headline before and after each switch is turned alone.

    Args:
        counts: from `headlines.measure_all`, on the episodes of `running.load_audit`.
        ends: the protocols that were started from.
        resamples: bootstrap resamples.

    Returns:
        One row a base protocol, switch and headline: `base switch value claim before after estimate low
        high after_low after_high`; `estimate` is after minus before, and the last two are the interval of
        `after` itself. A switch named `""` is the base itself, whose `estimate` and interval are the
        figure's own.
    """
    import pandas as pd

    rows = []
    for end in names(ends):
        base = turn(end, ())
        for headline in HEADLINES:
            before = counts[base, headline.claim]
            own = level(before, resamples)
            rows.append((base, "", "", headline.claim, own[0], own[0], *own, *own[1:]))
            for switch in TURNED:
                after = counts[turn(end, [switch]), headline.claim]
                moved = change(before, after, resamples)
                value, *ends_of_it = level(after, resamples)
                named = (base, switch, other_value(end, switch), headline.claim)
                rows.append((*named, own[0], value, *moved, *ends_of_it))
    columns = ["base", "switch", "value", "claim", "before", "after", "estimate", "low", "high"]
    columns += ["after_low", "after_high"]
    return pd.DataFrame(rows, columns=columns)


def path_ends(ends: Names) -> tuple[str, str]:
    """Return where the path begins and ends: the first and the last protocol named.

    With a single one it leads to `released`, or from there to `paper`.
    """
    asked = [turn(end, ()) for end in names(ends)]
    if asked[0] != asked[-1]:
        return asked[0], asked[-1]
    return asked[0], "paper" if asked[0] == "released" else "released"


def between(first: str, last: str, coalition: int) -> str:
    """Return the first protocol with the groups of a bit mask set as the last one has them."""
    start, stop = parse_protocol(first), parse_protocol(last)
    chosen = [
        switch
        for place, group in enumerate(GROUPS.values())
        if coalition >> place & 1
        for switch in group
        if getattr(start, switch) != getattr(stop, switch)
    ]
    return turn(first, chosen)


def load_path(
    ends: Names, regime: str = "S2", profile: str = "typical", seeds: str = "0:220"
) -> dict[str, np.ndarray]:
    """Run Simple and Periodic with every combination of the groups turned.

    Returns:
        For each stratum the gain in points, [episode, coalition]; coalitions as in `between`.
    """
    first, last = path_ends(ends)
    every = [between(first, last, coalition) for coalition in range(1 << len(GROUPS))]
    frame = run_protocols(every, PAIR, regime, profile, seeds, confidence=False)
    ordered = frame.sort_values("seed", kind="stable")
    reached = {
        key: 100 * part["accuracy"].to_numpy()
        for key, part in ordered.groupby(["protocol", "world", "policy"], sort=False)
    }
    gains = {
        (name, world): reached[name, world, "simple"] - reached[name, world, "periodic"]
        for name in every
        for world in STRATA["combined"]
    }
    return {
        stratum: np.stack(
            [np.concatenate([gains[name, world] for world in worlds]) for name in every], axis=1
        )
        for stratum, worlds in STRATA.items()
    }


def split_path(games: dict[str, np.ndarray], resamples: int = RESAMPLES) -> pd.DataFrame:
    """Split the change of the gain between two protocols among the groups of switches.

    Returns:
        One row a stratum and part: `stratum part value low high after`. Parts are `first` (the gain at the
        start), the groups (their Shapley values; `after` is the gain once this group and all before it are
        turned) and `last`.
    """
    import pandas as pd

    rows = []
    for stratum, game in games.items():
        worlds = np.repeat(np.arange(len(STRATA[stratum])), len(game) // len(STRATA[stratum]))
        steps = [(1 << place) - 1 for place in range(1, len(GROUPS) + 1)]
        columns = np.concatenate([game[:, :1], shapley_values(game), game[:, -1:]], axis=1)
        ends = np.stack(mean_intervals(columns, worlds, resamples=resamples), axis=1)
        after = [game[:, 0].mean(), *(game[:, step].mean() for step in steps), game[:, -1].mean()]
        parts = ("first", *GROUPS, "last")
        rows += [(stratum, part, *end, done) for part, end, done in zip(parts, ends, after, strict=True)]
    return pd.DataFrame(rows, columns=["stratum", "part", "value", "low", "high", "after"])


def load_witnesses(
    ends: Names, regime: str = "S2", profile: str = "typical", seeds: str = "0:220"
) -> pd.DataFrame:
    """Run scripted agents where no probe is answered, on tools.

    The protocol is the first of `ends` that withholds answers, else `released`. Agents are the page's own
    and the four scripted ones, who never err and read nothing from a probe.

    Returns:
        One row an episode of No-Probe, Periodic, Simple and Placebo for each profile.
    """
    import pandas as pd

    protocol = (withheld([turn(end, ()) for end in names(ends)]) or ["released"])[0]
    parts = [
        run_protocols([protocol], WITNESSED, regime, agent, seeds, confidence=False, worlds=("tooldag",))
        for agent in dict.fromkeys((profile, *WITNESSES))
    ]
    return pd.concat(parts, ignore_index=True)


def summarise_witnesses(frame: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Put together what each agent shows without any answer.

    Returns:
        One row a profile: `profile protocol n`, the mean accuracy of each policy in percent, `gain low
        high` (Simple minus Periodic, points), `terminal terminal_low terminal_high` (the same by the share
        of fields right at the end, belief and world of one step), `differ` (episodes in which Simple and
        its Placebo are not the same), `success_periodic success_simple` in percent and
        `onset_periodic onset_simple`.
    """
    import pandas as pd

    rows = []
    for profile, part in frame.groupby("profile", sort=False):
        table = {
            name: part.pivot(index="seed", columns="policy", values=name)
            for name in ("accuracy", "accuracy_terminal", "success", "collapse_onset", "steps", "useful")
        }
        gains = [
            100 * (table[name]["simple"] - table[name]["periodic"]).to_numpy()
            for name in ("accuracy", "accuracy_terminal")
        ]
        mean, low, high = mean_intervals(np.stack(gains, axis=1), resamples=resamples)
        differ = np.zeros(len(gains[0]), dtype=bool)
        for name in ("accuracy", "success", "steps", "useful"):
            differ |= (table[name]["simple"] != table[name]["placebo"]).to_numpy()
        row = {"profile": profile, "protocol": part["protocol"].iloc[0], "n": len(gains[0])}
        row |= {name: 100 * table["accuracy"][name].mean() for name in WITNESSED}
        row |= {"gain": mean[0], "low": low[0], "high": high[0]}
        row |= {"terminal": mean[1], "terminal_low": low[1], "terminal_high": high[1]}
        row |= {"differ": int(differ.sum())}
        for name in PAIR:
            row[f"success_{name}"] = 100 * table["success"][name].mean()
            row[f"onset_{name}"] = table["collapse_onset"][name].mean()
        rows.append(row)
    return pd.DataFrame(rows)
