"""Claims of the paper and our runs: the scoreboard of all of them, and rows of its tables beside ours.

What is run follows from the claims alone: the conditions their arms name, and in each condition the facts
their measures name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from envprobe_book.analyses import settled
from envprobe_book.claims import (
    Claim,
    PaperValue,
    find_claim,
    load_claims,
    paper_items,
    paper_values,
    policy_and_budget,
    stratum_of,
)
from envprobe_book.claims.judge import (
    CANNOT_DIFFER,
    HOLDS,
    INCONCLUSIVE,
    INPUT,
    NEGLIGIBLE,
    NO_EFFECT,
    NOT_TESTED,
    OTHER_SIZE,
    REVERSES,
    judge,
)
from envprobe_book.facts import FACTS
from envprobe_book.pages.markup import EMPTY, FIXED, MINUS
from envprobe_core.comparing import columns_read
from envprobe_core.conditions import (
    DEFAULT_SEEDS,
    Names,
    find_profile,
    find_protocols,
    find_regime,
    make_condition,
    names,
    read_seeds,
)
from envprobe_core.experiment import run_frame
from envprobe_core.protocols import PROTOCOLS, in_words
from envprobe_core.statistics import RESAMPLES

if TYPE_CHECKING:
    from envprobe_core.llm.running import ReplayedRun

PRIMARY_REGIME = "S2"
RECORDED = {  # the keys of a plain record, and the columns of `judge` that they hold
    "id": "claim", "source": "source", "statement": "statement", "kind": "about", "family": "family",
    "paper": "paper_value", "ours": "estimate", "protocol": "protocol", "profile": "profile",
    "interval": "", "verdict": "verdict", "section": "section",
}  # fmt: skip
GROUPS = {  # six signs with a word each, and the verdicts that wear them
    "agrees": ("✓", (HOLDS, "near", "as printed")),
    "another number": ("≈", (OTHER_SIZE, "differs")),
    "open": ("?", (INCONCLUSIVE,)),
    "nothing there": ("=", (NO_EFFECT, NEGLIGIBLE)),
    "against": ("✗", (REVERSES, "not as printed")),
    "no test": ("–", (CANNOT_DIFFER, INPUT, NOT_TESTED)),
}
SIGNS = {verdict: sign for sign, verdicts in GROUPS.values() for verdict in verdicts}


# every claim


def choose_claims(sections: Names = (), regime: str = PRIMARY_REGIME) -> tuple[Claim, ...]:
    """The claims of some sections (default: all), in the paper's order.

    Args:
        regime: where claims about the paper's primary regime S2 are asked instead. Claims that state a
            setting of a regime, as its horizon, stay where they are.

    Raises:
        InputError: for an unknown section or regime.
    """
    find_regime(regime)
    found = [claim for name in names(sections) for claim in load_claims(section=name)] or load_claims()
    return tuple(
        replace(claim, regime=regime)
        if claim.regime == PRIMARY_REGIME and claim.about != "setting"
        else claim
        for claim in sorted(found, key=lambda claim: paper_items.order(claim.source))
    )


def run_claims(
    claims: Sequence[Claim],
    protocols: Names = tuple(PROTOCOLS),
    profile: str = "typical",
    seeds: str = DEFAULT_SEEDS,
    regime: str = PRIMARY_REGIME,
    jobs: int = 1,
) -> pd.DataFrame:
    """Run what claims ask for.

    Args:
        protocols: names, with or without switches turned.
        seeds: as in `experiment.run`, for conditions of `regime`; other regimes run on their own.
        regime: the regime that `seeds` are for.

    Returns:
        One row an episode: the columns of `experiment.run` and every fact that a claim names, NaN where none
        asks it of a condition. `policy` holds the arm as claims call it (`cd@3` is c+d with three probes).

    Raises:
        InputError: for an unknown name or a value that a condition refuses.
    """
    wanted = defaultdict(set)  # the columns that measures name, by regime, world and arm
    for claim in claims:
        for world in claim.worlds + claim.against:
            for arm in claim.arms + claim.references:
                wanted[claim.regime, world, arm].update(columns_read(claim.measures))
    chosen, alike = read_seeds(seeds), defaultdict(list)  # conditions of which the same facts are asked
    asked = [(protocol, *own) for protocol in find_protocols(protocols) for own in wanted.items()]
    for place, (protocol, (level, world, arm), columns) in enumerate(asked):
        policy, budget = policy_and_budget(arm)
        condition = make_condition(world, policy, level, protocol, profile, budget)
        own = condition.default_seeds() if chosen is None or level != regime else chosen
        alike[tuple(sorted(columns & FACTS.keys()))].append((condition, own, place, arm))
    parts = []
    for facts, conditions in alike.items():
        settings, own, place, arms = zip(*conditions, strict=True)
        sizes = list(map(len, own))
        part = run_frame(settings, own, facts, jobs=jobs)
        parts.append(part.assign(policy=np.repeat(arms, sizes), place=np.repeat(place, sizes)))
    frame = pd.concat(parts).sort_values("place", kind="stable", ignore_index=True).drop(columns="place")
    if "pattern" in frame:  # of failures, as the claims mean it
        frame["pattern"] = frame["failed"] * (frame["pattern"] > 0)
    return frame


def load_scoreboard(
    sections: Names = (),
    protocols: Names = tuple(PROTOCOLS),
    profile: str = "typical",
    seeds: str = DEFAULT_SEEDS,
    regime: str = PRIMARY_REGIME,
    resamples: int = RESAMPLES,
    jobs: int = 1,
    *,
    report: Callable[[str], None] = lambda text: None,
) -> pd.DataFrame:
    """Run and judge the claims; arguments are those of `choose_claims` and `run_claims`.

    Args:
        report: called with a sentence on what is being done.

    Returns:
        One row a claim and protocol, claims in the paper's order, as `judge` gives it.

    Raises:
        InputError: for an unknown name or a value that a condition refuses.
    """
    find_profile(profile)
    claims = choose_claims(sections, regime)
    chosen = [protocol.name for protocol in find_protocols(protocols)]
    report(f"running the episodes of {len(claims)} claims")
    frame = run_claims(claims, protocols, profile, seeds, regime, jobs)
    report(f"testing {len(claims)} claims on {len(frame):,} episodes")
    return judge(frame, claims, protocols=chosen, profile=profile, resamples=resamples)


def judge_open(
    board: pd.DataFrame, seeds: str, *, regime: str = PRIMARY_REGIME, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """The claims that a scoreboard leaves inconclusive, run and judged again on other seeds.

    Args:
        board: as `load_scoreboard` gives it, of one profile.
        seeds: of conditions of `regime`; other regimes run on their own.

    Returns:
        Rows of `judge`, one a claim and protocol of those that are open; without any, none.
    """
    claims = {claim.id: claim for claim in choose_claims((), regime)}
    parts = [board.iloc[:0]]
    for (protocol, profile), own in board[board["verdict"] == INCONCLUSIVE].groupby(["protocol", "profile"]):
        asked = [claims[name] for name in own["claim"]]
        frame = run_claims(asked, protocol, profile, seeds, regime)
        parts.append(judge(frame, asked, protocols=[protocol], profile=profile, resamples=resamples))
    return pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)


def ask_settled(
    board: pd.DataFrame, seeds: str, *, regime: str = PRIMARY_REGIME, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """The claims of which a scoreboard says that they cannot differ, judged on an agent in which they do.

    The settled scribe was fitted to how many pairs disagree, not to which arm wins them, under the protocol
    in which it is asked here. Where it cannot differ either, it says so.

    Args:
        board: as `load_scoreboard` gives it.
        seeds: of conditions of `regime`; other regimes run on their own.

    Returns:
        Rows of `judge`, one a claim; without any, none.
    """
    claims = [
        claim
        for claim in choose_claims((), regime)
        if ((board["claim"] == claim.id) & (board["verdict"] == CANNOT_DIFFER)).any()
    ]
    if not claims:
        return board.iloc[:0]
    asked = {"profile": settled.NAME, "resamples": resamples}
    frame = run_claims(claims, settled.PROTOCOL.name, settled.NAME, seeds, regime)
    return judge(frame, claims, protocols=[settled.PROTOCOL.name], **asked)


def as_records(board: pd.DataFrame) -> list[dict[str, object]]:
    """A scoreboard as plain records, an object a claim and protocol with the keys `RECORDED`.

    `paper` and `ours` are in the claim's own unit (differences of accuracy in percentage points, levels as
    shares); `interval` is the adjusted one that decides. A missing value is None.
    """
    plain = board.astype(object).where(board.notna(), None)
    ends = [
        None if None in pair else list(pair)
        for pair in zip(plain["low_adjusted"], plain["high_adjusted"], strict=True)
    ]
    columns = {key: ends if key == "interval" else plain[name] for key, name in RECORDED.items()}
    return pd.DataFrame(columns, dtype=object).to_dict("records")


def as_csv(board: pd.DataFrame) -> str:
    """A scoreboard as CSV: what its plain records have, then unit, n and the reason of the verdict."""
    kept = {name: key for key, name in RECORDED.items() if name}
    kept |= {"low_adjusted": "interval_low", "high_adjusted": "interval_high"}
    rows = board[[*kept, "unit", "n", "reason"]].rename(columns=kept)
    return rows.to_csv(index=False, lineterminator="\n")


def add_replays(
    board: pd.DataFrame,
    runs: Iterable[ReplayedRun],
    claims: Sequence[Claim],
    regime: str,
    protocols: Names,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """A scoreboard with the verdicts of replayed runs of language models, claim by claim.

    Args:
        board: as `judge` gives it.
        runs: those of another regime, and those without episodes, are left out.
        protocols: of the runs, those to judge.

    Returns:
        The board with two more columns, `replayed` and `invalid` (the share of the model's updates that could
        not be used). In a replayed row `protocol` names protocol, model and prompts.
    """
    parts = [board.assign(replayed=False, invalid=0.0)]
    for run in runs:
        if run.frame is None or run.inputs.regime != regime:
            continue
        model = run.inputs.conditions[0].profile.name
        for name in (each.name for each in find_protocols(protocols)):
            if name in run.inputs.protocols:
                found = judge(run.frame, claims, protocols=[name], profile=model, resamples=resamples)
                invalid = run.frame.loc[run.frame["protocol"] == name, "invalid_share"].mean()
                parts.append(found.assign(protocol=f"{name}: {run.label}", replayed=True, invalid=invalid))
    places = {name: place for place, name in enumerate(board["claim"].unique())}
    joined = pd.concat(parts, ignore_index=True)
    return joined.sort_values("claim", key=lambda names: names.map(places), kind="stable", ignore_index=True)


# rows of the paper's tables, each above what episodes say of the same comparison


def beside_paper(
    frame: pd.DataFrame,
    rows: Mapping[str, str],
    sources: str,
    columns: Sequence[str],
    *,
    regime: str = PRIMARY_REGIME,
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
    ledger = ledger.rename(columns={"low_adjusted": "adjusted_low", "high_adjusted": "adjusted_high"})
    decided = ["estimate", "low", "high", "adjusted_low", "adjusted_high", "p", "difference", "verdict"]
    ledger = ledger.set_index(["claim", "protocol"])[decided]
    found = []
    for name, row in rows.items():
        claim = find_claim(name)
        (arm,), (base,), (measure,) = claim.arms, claim.references, claim.measures
        about = {"claim": name, "stratum": stratum_of(claim.worlds), "arm": arm, "base_policy": base}
        method, reference, gap, p = (printed_at(sources.split(), row, column) for column in columns)
        printed = {"method": as_printed(method), "base": as_printed(reference), "p": as_printed(p)}
        printed |= {"estimate": as_printed(gap, sign=True), "low": gap and gap.low, "high": gap and gap.high}
        about_paper = {"source": "*printed*", "printed": True, "stratum": row.partition(":")[0]}
        found.append(about | about_paper | printed | {"verdict": None})
        own = frame[frame["world"].isin(claim.worlds)]
        for protocol, episodes in own.groupby("protocol", sort=False):
            sides = episodes.pivot(index=["world", "seed"], columns="policy", values=measure)
            pairs = sides[[arm, base]].astype(float).dropna()
            ours, theirs = pairs[arm], pairs[base]
            scale = 100.0 if measure == "success" else 1.0
            found.append(
                about
                | {"source": in_words(protocol).replace(" ", FIXED), "printed": False, "protocol": protocol}
                | {"method": scale * ours.mean(), "base": scale * theirs.mean()}
                | ledger.loc[(name, protocol)].to_dict()
                | {"only_arm": int((ours > theirs).sum()), "only_base": int((ours < theirs).sum())}
                | {"n": len(pairs), "left_out": len(sides) - len(pairs)}
            )
    return pd.DataFrame(found).replace({np.nan: None})


def printed_at(sources: Sequence[str], row: str, column: str) -> PaperValue | None:
    """The number printed in a row and column of the first source that has it, None where none does."""
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
