"""Useful probes per probe fired: the comparison of the paper's Table 5, beside the printed one."""

from __future__ import annotations

import numpy as np
import pandas as pd

from envprobe_core import judge
from envprobe_core.analyses.beside import as_printed
from envprobe_core.claims import STRATA, paper_value, paper_values
from envprobe_core.show.markup import EMPTY, number, p_value
from envprobe_core.statistics import RESAMPLES, clustered_rate, mean_of_ratios, wilson

TABLE, RATE = "tab:g4_main", "useful_probe_rate"
ORDER = ("spatial", "combined", "procedural")
FAMILY = 6


def raw_rates(frame: pd.DataFrame, profile: str = "typical", resamples: int = RESAMPLES) -> pd.DataFrame:
    """Compare Simple with Random per probe fired, over pairs of episodes in which both fired.

    Args:
        frame: one row an episode, of one regime and profile.
        profile: of the episodes.
        resamples: bootstrap resamples.

    Returns:
        One row a stratum and source, the paper's own row (`printed`) first: `stratum source n simple random
        estimate low high low_adjusted high_adjusted p p_greater verdict` (differences in points, `p_greater`
        one-sided, as written), and lower ends of Simple's rate over these pairs: `floor`, `floor_adjusted`
        for six comparisons, `floor_wilson` of the pooled probes, `floors` as written.
    """
    claims = [f"upr-{stratum}" for stratum in ORDER]
    regime = str(frame["regime"].iloc[0])
    found = judge(frame, claims, regime=regime, profile=profile, resamples=resamples).set_index(
        ["claim", "protocol"]
    )
    rows = []
    for stratum in ORDER:
        rows.append(_printed(stratum))
        for protocol in dict.fromkeys(frame["protocol"]):
            own = found.loc[(f"upr-{stratum}", protocol)].to_dict()
            part = frame[(frame["protocol"] == protocol) & frame["world"].isin(STRATA[stratum])]
            rows.append(own | {"stratum": stratum, "source": protocol} | _pairs(part, resamples))
    return pd.DataFrame(rows)


def _printed(stratum: str) -> dict[str, object]:
    values = {v.column: v for v in paper_values() if v.source == TABLE and v.row.startswith(f"{stratum}:")}
    gap = values[f"{RATE}_difference_pct"]
    return {
        "stratum": stratum,
        "source": "printed",
        "n": gap.n,
        "simple": values[f"method_{RATE}"].value,
        "random": values[f"reference_{RATE}"].value,
        "estimate": gap.value,
        "low": gap.low,
        "high": gap.high,
        "p_greater": as_printed(values[f"{RATE}_p"]),
        "floors": as_printed(values.get(f"method_{RATE}_lcb")),
    }


def _pairs(part: pd.DataFrame, resamples: int) -> dict[str, object]:
    """Average both rates over the pairs in which both fired, and bound Simple's from below."""
    wide = part.pivot(index=["world", "seed"], columns="policy", values=["useful", "probes"])
    both = wide[(wide["probes"][["simple", "random"]] > 0).all(axis=1)]
    useful, probes = both["useful"], both["probes"]
    rates = (useful / probes)[["simple", "random"]]
    row: dict[str, object] = {"n": len(both), **rates.mean().to_dict()}
    worlds = both.index.get_level_values("world").to_numpy(dtype=str)
    if not len(both) or min(np.unique(worlds, return_counts=True)[1]) < 2:
        return row | {"p_greater": EMPTY, "floors": EMPTY}
    gap = (rates["simple"] - rates["random"]).to_numpy()
    test = clustered_rate(gap, np.ones(len(gap)), worlds, family=FAMILY, resamples=resamples)
    own = mean_of_ratios(
        useful["simple"].to_numpy(float), probes["simple"].to_numpy(float), worlds, family=FAMILY,
        resamples=resamples,
    )  # fmt: skip
    pooled = wilson(int(useful["simple"].sum()), int(probes["simple"].sum()))
    floors = {"floor": own.low, "floor_adjusted": own.low_adjusted, "floor_wilson": pooled.low}
    written = " / ".join(number(floor, 3) for floor in floors.values())
    return row | floors | {"p_greater": p_value(test.p_greater), "floors": written}


def allowed_rates(rates: pd.DataFrame) -> pd.DataFrame:
    """Set the rates of the paper's Table 6 beside ours.

    Args:
        rates: from `summarize` of `useful/budget`, by `protocol policy` in strata named as the paper's rows.

    Returns:
        The same rows with `printed_mean` and `difference`, ours minus the paper's.
    """
    theirs = [
        paper_value("tab:g4_norm", f"{row.stratum}: {row.policy}", "useful_per_budget").value
        for row in rates.itertuples()
    ]
    return rates.assign(printed_mean=theirs, difference=rates["mean"] - theirs)
