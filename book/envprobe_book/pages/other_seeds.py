"""The claims of the paper as data for a page that judges them again, on seeds of the reader's own.

What a claim compares, which interval has which verdict (`judge.cases_of`) and what several verdicts make
(`judge.OF_SEVERAL`) stands in the judge alone; `other_seeds.js` runs the episodes in the page, resamples them
with the core's own bootstrap, and looks the verdicts up. Claims that it cannot ask are counted by reason.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from envprobe_book.claims import LEVELS, UNITS, Claim, policy_and_budget
from envprobe_book.claims.judge import (
    CALIBRATED,
    CANNOT_DIFFER,
    HARDLY,
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
    OF_SEVERAL,
    OTHER_SIZE,
    REVERSES,
    VERDICTS,
    WORDS,
    cases_of,
    says_yes_or_no,
)
from envprobe_book.pages.markup import Html, listed, script_json
from envprobe_book.pages.review import DIGITS, mark
from envprobe_core.comparing import columns_read
from envprobe_core.compiled.records import MEASURES
from envprobe_core.estimating import MIN_UNITS, reach_of
from envprobe_core.policies import find_policy
from envprobe_core.protocols import in_words
from envprobe_core.statistics import LEVEL

HERE = Path(__file__).parent
SCRIPT, STYLES = "page-other-seeds.js", ("scoreboard.css", "review.css")
"""What the page loads after the front end of live figures."""
KNOWN = {*MEASURES.names, "budget", "horizon"} - {"digest"}
"""What a page's engine says of an episode."""
FIRST = "1000:1220"  # seeds that are offered


def script() -> str:
    """The page's script."""
    return (HERE / "other_seeds.js").read_text(encoding="utf-8")


def other_seeds(board: pd.DataFrame, claims: Sequence[Claim], regime: str, resamples: int) -> Html:
    """The claims of a board with a field for seeds, a button, and their verdicts in the book.

    Args:
        board: of `judge`, of one profile.
        claims: those of the board.
        regime: whose claims are asked again.
        resamples: of each interval, as the board was made.
    """
    profile, protocols = board["profile"].iloc[0], list(dict.fromkeys(board["protocol"]))
    left = Counter(why for claim in claims if (why := _left_out(claim, regime, profile)))
    asked = [_as_data(claim) for claim in claims if not _left_out(claim, regime, profile)]
    book: dict[str, dict[str, Any]] = {}
    for row in board.itertuples():
        ends = (row.estimate, row.low_adjusted, row.high_adjusted)
        book.setdefault(row.claim, {})[row.protocol] = [
            row.verdict,
            *(None if math.isnan(own) else own for own in ends),
        ]
    data = {
        "claims": asked, "book": {one["id"]: book[one["id"]] for one in asked}, "profile": profile,
        "protocols": {name: in_words(name) for name in protocols}, "regime": regime,
        "marks": {verdict: mark(verdict) for verdict in VERDICTS},
        "digits": DIGITS, "resamples": resamples, "least": MIN_UNITS, "level": LEVEL, "open": INCONCLUSIVE,
        "untested": NOT_TESTED, "alike": CANNOT_DIFFER, "hardly": HARDLY,
        "several": [one._asdict() for one in OF_SEVERAL], "sides": {HOLDS: 1, OTHER_SIZE: 1, REVERSES: -1},
    }  # fmt: skip
    reasons = listed(f"{count} {why}" for why, count in left.items())
    also = f" Not asked here: {reasons}." if left else ""
    text = (
        f"{len(asked)} claims under {len(protocols)} protocols are run on these seeds in this page, and "
        f"judged by the rule that judges them in the book.{also}"
    )
    field = f'<input type="text" value="{FIRST}" size="12" spellcheck="false" autocomplete="off">'
    progress = 'max="1" value="0" aria-label="What was run and judged" hidden'
    return Html(
        f'<div class="other-seeds" data-engine role="group" aria-label="Verdicts on your seeds"><p>{text}</p>'
        f'<p><label>Seeds {field}</label> <button type="button" data-run-here hidden>Judge again</button> '
        '<button type="button" class="other-seeds-cancel" hidden>Cancel</button></p>'
        f"<progress {progress}></progress>"
        '<p class="other-seeds-said" role="status" aria-live="polite"></p>'
        '<div class="other-seeds-found"></div>'
        f'<script type="application/json">{script_json(data)}</script></div>',
        text,
    )


def _left_out(claim: Claim, regime: str, profile: str) -> str:
    """Why a page does not ask a claim; nothing if it does."""
    if claim.setting:
        return "on the set-up, which seeds do not move"
    if claim.regime != regime:
        return "of another regime"
    if claim.kind == "median":
        return "on a median"
    if claim.inputs and profile in CALIBRATED:
        return "that the agent was fitted to"
    arms = (*claim.arms, *claim.references)
    if any(find_policy(policy_and_budget(arm)[0]).name == "yoked" for arm in arms):
        return "on a placebo"
    return "" if set(columns_read(claim.measures)) <= KNOWN else "on what the page's engine does not log"


def _arm(arm: str) -> dict[str, Any]:
    policy, budget = policy_and_budget(arm)
    return {"policy": policy} if budget is None else {"policy": policy, "budget": budget}


def _as_data(claim: Claim) -> dict[str, Any]:
    """What a page needs to judge a claim; bounds that are infinite are left out."""
    comparisons = [
        {
            "measure": one.measure,
            "arms": [_arm(arm) for arm in one.arms],
            "reference": one.reference and _arm(one.reference),
            "direction": one.direction,
            "yesOrNo": says_yes_or_no(claim, one),
            "reach": None
            if one.reference is None or claim.kind == "rate"
            else UNITS[claim.unit] * reach_of(one.measure),
            "cases": [_finite(case._asdict()) for case in cases_of(claim, one.direction)],
        }
        for one in claim.comparisons
    ]
    return {
        "id": claim.id, "statement": claim.statement, "kind": claim.kind, "family": claim.family,
        "worlds": [*claim.worlds, *claim.against], "first": len(claim.worlds), "unit": claim.unit,
        "scale": UNITS[claim.unit], "signed": claim.kind not in LEVELS, "words": WORDS[claim.about],
        "comparisons": comparisons,
    }  # fmt: skip


def _finite(case: Mapping[str, Any]) -> dict[str, Any]:
    return {name: own for name, own in case.items() if not (isinstance(own, float) and math.isinf(own))}
