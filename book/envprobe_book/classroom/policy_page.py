"""A policy of one's own in the page: what `policy.js` needs to run a reader's weights or formula there.

The widget runs on the engine that the page carries, beside all policies of the book, which are run once here.
A formula is the page's; below what it found stands the Python function that decides alike, for the lab.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envprobe_book.classroom import compete, leaderboard
from envprobe_book.page_engine import HERE as ENGINE_FOLDER
from envprobe_book.pages.figures import POLICY_STYLES, policy_title
from envprobe_book.pages.markup import script_json
from envprobe_book.widgets.host import page_tools
from envprobe_core.conditions import find_regime
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PROTOCOLS, in_words
from envprobe_core.statistics import RESAMPLES
from envprobe_core.worlds import WORLDS

HERE = Path(__file__).parent
PAIRED = ("simple", "periodic", "voi")
"""Whom a reader's policy is compared with seed by seed, as `policy.js` has it."""
SCRIPT, STYLE = "page-policy.js", "policy.css"
"""What a page with the widget loads, after the engine."""
IN_THE_LAB = (
    "The book's page has sliders and a formula here, which it runs itself. In the lab it is a function: "
    '@lab.policy("mine") above def mine(view): return view.c + 2 * view.d, for lab.compete.'
)
EXAMPLES: tuple[dict[str, Any], ...] = (
    {"title": "the paper’s score: gate 1.5", "policy": {}},
    {"title": "ask late: last 7 steps, gate 0", "policy": {"gate": 0, "last": 7}},
    {"title": "only doubt: gate 0.5", "policy": {"weights": {"c": 0, "s": 0, "u": 1, "d": 0}, "gate": 0.5}},
    {
        "title": "what the next action needs, if in doubt: gate 0.5",
        "policy": {"form": "formula", "formula": "d * (s + u)", "gate": 0.5},
    },
)
"""Things to try, each a change of EnvProbe-Simple's own score."""


def policy_script() -> str:
    """The scripts of the widget as one text, in the order in which they use each other."""
    files = [ENGINE_FOLDER / "statistics.js", HERE / "formula.js", HERE / "policy.js"]
    return "\n".join([page_tools(), *(file.read_text(encoding="utf-8") for file in files)])


def known(seeds: str, resamples: int = RESAMPLES) -> dict[str, Any]:
    """The others' part of a contest, run once: what each policy of the book does on a reader's seeds.

    Returns:
        By protocol and policy: the means `accuracy success` with their ends, and `probes`; `found`, the
        accuracy by world and seed, of those alone that a reader is paired with.
    """
    contest = compete(seeds=seeds, protocols=tuple(PROTOCOLS))
    board = leaderboard(contest, resamples).set_index(["protocol", "policy"])
    ends: dict[str, Any] = {name: {} for name in PROTOCOLS}
    for (protocol, policy), row in board.iterrows():
        means = {
            name: {"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}
            for name in ("accuracy", "success")
        }
        ends[protocol][policy] = means | {"probes": row["probes"]}
    for (protocol, policy), rows in contest.frame.groupby(["protocol", "policy"], sort=False):
        if policy in PAIRED:
            own = {
                world: {"accuracy": part.sort_values("seed")["accuracy"].tolist()}
                for world, part in rows.groupby("world")
            }
            ends[protocol][policy]["found"] = own
    return ends


@dataclass(frozen=True)
class OwnPolicy:
    """The widget; a notebook's last expression.

    Attributes:
        seeds: a reader's, `FIRST:PAST`.
        held_out: others, for one look at the end.
        protocol: where it begins.
        others: what `known` says of those seeds; without it the page runs the others itself, once.
    """

    seeds: str = "0:220"
    held_out: str = "10000:10220"
    protocol: str = "observed"
    others: Mapping[str, Any] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """What the page is given."""
        level = find_regime("S2")
        policies = {
            name: {
                "title": policy_title(name),
                "mark": POLICY_STYLES[name].mark(),
                "deployable": not policy.sees_gold,
            }
            for name, policy in POLICIES.items()
        }
        return {
            "seeds": self.seeds, "heldOut": self.held_out, "protocol": self.protocol, "known": self.others,
            "horizon": level.horizon, "budget": level.budget, "worlds": dict(WORLDS),
            "protocols": {name: in_words(name) for name in PROTOCOLS},
            "policies": policies, "examples": list(EXAMPLES),
        }  # fmt: skip

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        data = script_json(self.as_data())
        page = (
            f'<div class="own-policy" data-engine><p>{IN_THE_LAB}</p>'
            f'<script type="application/json">{data}</script></div>'
        )
        return {"text/html": page, "text/plain": IN_THE_LAB}
