"""The scoreboard: every claim of the paper, run and judged under every protocol, and shown on a page.

What is run follows from the claims alone: the cells their arms name, and on each cell the facts their
measures name. On the page a sign and a word tell a verdict; colour only repeats them. The table is HTML,
because it groups rows, scrolls in both directions by itself and keeps its head in sight.
"""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
import yaml

from envprobe_core.cells import (
    DEFAULT_SEEDS,
    Names,
    find_profile,
    find_protocols,
    find_regime,
    make_cell,
    names,
    read_seeds,
)
from envprobe_core.claims import Claim, find_claim, load_claims, places, policy_and_budget
from envprobe_core.claims.judge import (
    HOLDS,
    INCONCLUSIVE,
    INPUT,
    NO_EFFECT,
    NOT_TESTED,
    OTHER_SIZE,
    REVERSES,
    judge,
)
from envprobe_core.claims.records import LEVELS, columns_of
from envprobe_core.errors import InputError
from envprobe_core.facts import FACTS
from envprobe_core.grid import run_frame
from envprobe_core.protocols import PROTOCOLS, in_words
from envprobe_core.show.markup import EMPTY, Html, number, signed
from envprobe_core.sources import ROOT
from envprobe_core.statistics import RESAMPLES

PRIMARY_REGIME = "S2"
RECORDED = {  # the keys of a plain record, and the columns of `judge` that they hold
    "id": "claim", "source": "source", "statement": "statement", "kind": "about", "family": "family",
    "paper": "paper_value", "ours": "estimate", "protocol": "protocol", "profile": "profile",
    "interval": "", "verdict": "verdict", "section": "section",
}  # fmt: skip


# --- what is run ------------------------------------------------------------------------------


def choose_claims(sections: Names = (), regime: str = PRIMARY_REGIME) -> tuple[Claim, ...]:
    """Return the claims of some sections (default: all), in the paper's order.

    Args:
        regime: where claims about the paper's primary regime S2 are asked instead. Claims that state a
            setting of a regime, as its horizon, stay where they are.

    Raises:
        InputError: for an unknown section or regime.
    """
    find_regime(regime)
    found = [claim for name in names(sections) for claim in load_claims(section=name)] or list(load_claims())
    found.sort(key=lambda claim: places.order(claim.source))
    return tuple(
        replace(claim, regime=regime)
        if claim.regime == PRIMARY_REGIME and claim.about != "setting"
        else claim
        for claim in found
    )


def needs(claims: Sequence[Claim]) -> dict[tuple[str, str, str], set[str]]:
    """Return what claims ask for: for each (regime, world, arm) the columns their measures name."""
    wanted: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for claim in claims:
        for world in claim.worlds + claim.against:
            for arm in claim.arms + claim.references:
                wanted[claim.regime, world, arm] |= columns_of(claim)
    return dict(wanted)


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
        seeds: as in `grid.run`, for cells of `regime`; other regimes run on their own.
        regime: the regime that `seeds` are for.

    Returns:
        One row an episode: the columns of `grid.run` and every fact that a claim names, NaN where none asks
        it of a cell. `policy` holds the arm as claims call it (`cd@3` is c+d with three probes).

    Raises:
        InputError: for an unknown name or a value that a cell refuses.
    """
    chosen, alike = read_seeds(seeds), defaultdict(list)  # cells of which the same facts are asked
    asked = [
        (protocol, *where, columns) for protocol in find_protocols(protocols)
        for where, columns in needs(claims).items()
    ]  # fmt: skip
    for place, (protocol, level, world, arm, columns) in enumerate(asked):
        policy, budget = policy_and_budget(arm)
        cell = make_cell(world, policy, level, protocol, profile, budget)
        own = cell.default_seeds() if chosen is None or level != regime else chosen
        alike[tuple(sorted(columns & FACTS.keys()))].append((cell, own, place, arm))
    parts = []
    for facts, cells in alike.items():
        settings, own, place, arms = zip(*cells, strict=True)
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
    report: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Run and judge the claims; arguments are those of `choose_claims` and `run_claims`.

    Args:
        report: called with a sentence on what is being done.

    Returns:
        One row a claim and protocol, claims in the paper's order, as `judge` gives it.

    Raises:
        InputError: for an unknown name or a value that a cell refuses.
    """
    find_profile(profile)
    claims = choose_claims(sections, regime)
    chosen = [protocol.name for protocol in find_protocols(protocols)]
    if len(set(chosen)) < len(chosen):
        raise InputError(f"protocols {', '.join(chosen)}: one is named twice")
    report = report or (lambda text: None)
    report(f"running the episodes of {len(claims)} claims")
    frame = run_claims(claims, protocols, profile, seeds, regime, jobs)
    report(f"testing {len(claims)} claims on {len(frame):,} episodes")
    return judge(frame, claims, protocols=chosen, profile=profile, resamples=resamples)


def as_records(board: pd.DataFrame) -> list[dict[str, object]]:
    """Return a scoreboard as plain records, an object a claim and protocol with the keys `RECORDED`.

    `paper` and `ours` are in the claim's own unit (differences of accuracy in percentage points, levels as
    shares); `interval` is the adjusted one that decides. What there is none of is None.
    """
    plain = board.astype(object).where(board.notna(), None)
    ends = [
        None if None in pair else list(pair)
        for pair in zip(plain["low_adjusted"], plain["high_adjusted"], strict=True)
    ]
    columns = {key: ends if key == "interval" else plain[name] for key, name in RECORDED.items()}
    return pd.DataFrame(columns, dtype=object).to_dict("records")


def as_csv(board: pd.DataFrame) -> str:
    """Return the scoreboard as CSV: what `as_records` has, unit, n and the reason."""
    kept = {name: key for key, name in RECORDED.items() if name}
    kept |= {"low_adjusted": "interval_low", "high_adjusted": "interval_high"}
    table = board[[*kept, "unit", "n", "reason"]].rename(columns=kept)
    return table.to_csv(index=False, lineterminator="\n")


# --- what a page shows ------------------------------------------------------------------------

SIGNS = {
    HOLDS: "✓", OTHER_SIZE: "≈", INCONCLUSIVE: "?", NO_EFFECT: "=", REVERSES: "✗", "near": "○",
    "differs": "◇", "as printed": "☑", "not as printed": "☐", INPUT: "•", NOT_TESTED: "–",
}  # fmt: skip
PAGES = {  # the notebook that shows a section's claims, where its name is another
    "main": "main-results",
    "set-up": "scoreboard",
    "budget": "scoreboard",
    "useful-probes": "what-probes-find",
    "confident-wrong": "what-probes-find",
    "failures": "what-probes-find",
}
SEVERAL = ("ordering", "dominance")
DIGITS = {"points": 2, "share": 3, "steps": 2, "count": 2}
FOLDER = "executed/"


@cache
def page_of(section: str) -> str | None:
    """Return the notebook that shows a section's claims, None where there is none."""
    moved = yaml.safe_load((ROOT / "book" / "redirects.yml").read_text(encoding="utf-8"))
    name = PAGES.get(section, section)
    name = moved.get(FOLDER + name, name).removeprefix(FOLDER).partition("#")[0]
    return name if (ROOT / "notebooks" / f"{name}.ipynb").is_file() else None


def _amount(value: float | None, unit: str, sign: bool = False) -> str:
    if value is None or value != value:
        return EMPTY
    whole = unit in ("steps", "count") and float(value).is_integer()
    return (signed if sign else number)(value, 0 if whole else DIGITS[unit])


def _ends(low: float, high: float, unit: str) -> str:
    return f"<small>[{_amount(low, unit)}, {_amount(high, unit)}]</small>"


def _printed(row: Any) -> str:
    """Return the paper's figure with its interval and unit, or the unit alone."""
    claim, unit = find_claim(row.claim), row.unit
    word = "" if unit in ("share", "count") else f" {unit}"
    if claim.value is None:
        return f'<span class="scoreboard-none">no figure{f" ({unit})" if word else ""}</span>'
    text = _amount(claim.value, unit, claim.kind not in LEVELS) + word
    return text if claim.low is None else f"{text} {_ends(claim.low, claim.high, unit)}"


def mark(verdict: str) -> str:
    """Return a verdict as a sign and a word, in its colour."""
    name = verdict.replace(",", "").replace(" ", "-")
    return f'<span class="verdict verdict-{name}">{SIGNS[verdict]}&nbsp;{html.escape(verdict)}</span>'


def _ours(row: Any) -> str:
    """Return one cell: our figure with the interval that decides, and the verdict."""
    reason = html.escape(row.reason, quote=True)
    if row.verdict == NOT_TESTED and getattr(row, "replayed", False):
        return f'<td title="{reason}">{mark(row.verdict)}</td>'
    if row.verdict == NOT_TESTED:
        return f'<td>{mark(row.verdict)}<br><span class="scoreboard-why">{reason}</span></td>'
    text = "weakest " if row.kind in SEVERAL else ""
    text += _amount(row.estimate, row.unit, row.kind not in LEVELS)
    ends = _ends(row.low_adjusted, row.high_adjusted, row.unit)
    return f'<td title="{reason}">{mark(row.verdict)}<br>{text} {ends}</td>'


def _claim_cell(row: Any, folder: str) -> str:
    section, page = html.escape(row.section), page_of(row.section)
    link = f'<a href="{folder}{page}.html">{section}</a>' if page else f"<span>{section}</span>"
    statement = html.escape(row.statement)
    return f'<th scope="row">{statement} <span class="scoreboard-link">{link}</span></th>'


def _heads(titles: Sequence[str]) -> str:
    return "".join(f'<th scope="col">{title}</th>' for title in titles)


def show_scoreboard(board: pd.DataFrame, folder: str = "") -> Html:
    """Show every claim in the paper's order: its figure, ours and the verdict under each protocol.

    Args:
        board: from `load_scoreboard`, with or without what `llm.recorded.join_scoreboard` adds.
        folder: where the pages of sections lie, seen from the page that shows the table.
    """
    protocols, profile = list(dict.fromkeys(board["protocol"])), board["profile"].iloc[0]
    titles = ["Claim, and the section that shows it", "The paper"]
    body = []
    for source, part in groupby(board.itertuples(), key=lambda row: row.source):
        body.append(
            f'<tr class="scoreboard-place"><th scope="rowgroup" colspan="{2 + len(protocols)}">'
            f"<span>{html.escape(places.place(source))}</span></th></tr>"
        )
        for _, cells in groupby(part, key=lambda row: row.claim):
            rows = list(cells)
            own = "".join(map(_ours, rows))
            body.append(f"<tr>{_claim_cell(rows[0], folder)}<td>{_printed(rows[0])}</td>{own}</tr>")
    caption = (
        f"{board['claim'].nunique()} claims in the paper's order. Under each protocol: the verdict, our "
        f"figure and the interval that decides, from the simulated agent <code>{profile}</code>."
    )
    if "replayed" in board and board["replayed"].any():
        caption += " Columns that name a model and its prompts are replayed runs, on seeds of their own."
    heads = _heads([*titles, *(in_words(html.escape(name)) for name in protocols)])
    table = (
        f'<div class="scoreboard" role="region" tabindex="0" aria-label="Scoreboard, profile {profile}">'
        f"<table><caption><span>{caption}</span></caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )
    lines = [f"{row.claim}\t{row.protocol}\t{row.verdict}" for row in board.itertuples()]
    return Html(table, "\n".join(lines))
