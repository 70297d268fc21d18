"""Rows of the paper's tables, each above what episodes say of the same comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from envprobe_core.claims import STRATA, PaperValue, find_claim, paper_values
from envprobe_core.claims.judge import judge
from envprobe_core.claims.printed import stratum_of
from envprobe_core.protocols import in_words
from envprobe_core.show.markup import EMPTY, MINUS, number, p_value
from envprobe_core.statistics import RESAMPLES, clustered_rate, mean_of_ratios, wilson

ORDER = ("spatial", "combined", "procedural")  # of Table 5
FAMILY = 6


def beside_paper(
    frame: pd.DataFrame,
    rows: Mapping[str, str],
    sources: str,
    columns: Sequence[str],
    *,
    regime: str = "S2",
    profile: str = "typical",
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Judge claims that compare two policies, and put the paper's own numbers above each.

    Args:
        frame: a row an episode.
        rows: claims, and the row of `data/paper/tables.csv` that prints each.
        sources: tables of the paper; a number is taken from the first that prints it.
        columns: where the paper prints method, reference, difference and p.

    Returns:
        For each claim a row of the paper and one a protocol: `claim stratum arm base_policy source printed`;
        `method base` (the two means, success in percent) `estimate low high adjusted_low adjusted_high p
        difference verdict n`; `only_arm only_base`, pairs in which one side alone is higher, and `left_out`,
        pairs without a value on some side. The paper's numbers are texts, as it prints them.
    """
    ledger = judge(frame, list(rows), regime=regime, profile=profile, resamples=resamples)
    ledger = ledger.set_index(["claim", "protocol"])
    found = []
    for name, row in rows.items():
        claim = find_claim(name)
        (arm,), (base,), (measure,) = claim.arms, claim.references, claim.measures
        about = {"claim": name, "stratum": stratum_of(claim.worlds), "arm": arm, "base_policy": base}
        method, reference, gap, p = (printed_at(sources.split(), row, column) for column in columns)
        found.append(
            about
            | {"source": "*printed*", "printed": True, "stratum": row.partition(":")[0]}
            | {"method": as_printed(method), "base": as_printed(reference)}
            | {"estimate": as_printed(gap, sign=True), "p": as_printed(p), "verdict": None}
            | {"low": gap and gap.low, "high": gap and gap.high}
        )
        own = frame[frame["world"].isin(claim.worlds)]
        for protocol, episodes in own.groupby("protocol", sort=False):
            sides = episodes.pivot(index=["world", "seed"], columns="policy", values=measure)
            pairs = sides[[arm, base]].astype(float).dropna()
            scale = claim.scale if measure == "success" else 1.0
            tested = ledger.loc[(name, protocol)]
            found.append(
                about
                | {"source": in_words(protocol), "printed": False, "protocol": protocol}
                | {"method": scale * pairs[arm].mean(), "base": scale * pairs[base].mean()}
                | {key: tested[key] for key in ("estimate", "low", "high", "p", "difference", "verdict", "n")}
                | {"adjusted_low": tested["low_adjusted"], "adjusted_high": tested["high_adjusted"]}
                | {"only_arm": int((pairs[arm] > pairs[base]).sum())}
                | {"only_base": int((pairs[arm] < pairs[base]).sum())}
                | {"left_out": len(sides) - len(pairs)}
            )
    return pd.DataFrame(found).replace({np.nan: None})


def printed_at(sources: Sequence[str], row: str, column: str) -> PaperValue | None:
    """Return the number printed in a row and column of the first source that has it, None where none does."""
    known = {(value.source, value.row, value.column): value for value in paper_values()}
    return next((known[key] for source in sources if (key := (source, row, column)) in known), None)


def as_printed(value: PaperValue | None, *, sign: bool = False) -> str:
    """Write a number with the digits and the relation that the paper prints; none as a dash."""
    if value is None:
        return EMPTY
    text = f"{abs(value.value):.{value.decimals}f}"
    if value.column.endswith("_p"):
        text = text.replace("0.", ".", 1)
    mark = MINUS if value.value < 0 else "+" if sign and value.value > 0 else ""
    return {"=": "", "<": "< ", ">": "> "}[value.relation] + mark + text


# --- useful probes per probe fired (the paper's Table 5) ------------------------------------------------


def raw_rates(frame: pd.DataFrame, profile: str = "typical", resamples: int = RESAMPLES) -> pd.DataFrame:
    """Compare Simple with Random per probe fired, over pairs of episodes in which both fired.

    Args:
        frame: one row an episode, of one regime and profile.

    Returns:
        One row a stratum and source, the paper's own row (`printed`) first: `stratum source n simple random
        estimate low high low_adjusted high_adjusted p p_greater verdict` (differences in points, `p_greater`
        one-sided, as written), and lower ends of Simple's rate over these pairs: `floor`, `floor_adjusted`
        for six comparisons, `floor_wilson` of the pooled probes, `floors` as written.
    """
    claims = [f"upr-{stratum}" for stratum in ORDER]
    regime = str(frame["regime"].iloc[0])
    found = judge(frame, claims, regime=regime, profile=profile, resamples=resamples)
    found = found.set_index(["claim", "protocol"])
    rows = []
    for stratum in ORDER:
        rows.append(_printed(stratum))
        for protocol in dict.fromkeys(frame["protocol"]):
            own = found.loc[(f"upr-{stratum}", protocol)].to_dict()
            part = frame[(frame["protocol"] == protocol) & frame["world"].isin(STRATA[stratum])]
            rows.append(own | {"stratum": stratum, "source": protocol} | _pairs(part, resamples))
    return pd.DataFrame(rows)


def _printed(stratum: str) -> dict[str, object]:
    """Return the paper's own row."""
    row, rate = f"{stratum}: simple vs random", "useful_probe_rate"
    columns = (
        f"{rate}_difference_pct",
        f"method_{rate}",
        f"reference_{rate}",
        f"{rate}_p",
        f"method_{rate}_lcb",
    )
    gap, simple, random, p, floor = (printed_at(["tab:g4_main"], row, column) for column in columns)
    return (
        {"stratum": stratum, "source": "printed", "n": gap.n, "simple": simple.value, "random": random.value}
        | {"estimate": gap.value, "low": gap.low, "high": gap.high}
        | {"p_greater": as_printed(p), "floors": as_printed(floor)}
    )


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
