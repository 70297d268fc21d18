"""Which switch makes the timing of probes pay where no answer reaches the agent (section *ablation*)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envprobe_core.experiments import DEFAULT_SEEDS, PROTOCOLS, Names, load_grid, names
from envprobe_core.figures import policy_title
from envprobe_core.markup import Table, Text, code, number, signed
from envprobe_core.protocols import parse_protocol
from envprobe_core.sections.ablation import SHOWN, WORLD
from envprobe_core.sections.paired import ABLATIONS
from envprobe_core.sections.report import withheld

if TYPE_CHECKING:
    import pandas as pd

TURNED = (  # each turns one switch of the public code back to the paper's text
    "answer=delivered",
    "clock=runs",
    "encoding=meaning",
    "accuracy=terminal",
    "structure=graph",
    "sight=local",
)


def load_switched(
    regime: str = "S2", protocols: Names = PROTOCOLS, profile: str = "typical", seeds: str = DEFAULT_SEEDS
) -> pd.DataFrame:
    """Run the ablations again with single switches turned, for protocols that withhold the answer.

    Where no answer reaches the agent, a term can only matter through the timing of probes; turning one
    switch at a time shows what makes the timing pay. An empty frame where no protocol withholds answers.
    """
    import pandas as pd

    bases = withheld(names(protocols))
    turned = [join(base, switch) for base in bases for switch in ("", *TURNED)]
    if not turned:
        return pd.DataFrame({"protocol": [], "policy": [], "accuracy": [], "seed": []})
    return load_grid(WORLD, SHOWN, regime, list(dict.fromkeys(turned)), profile, seeds)


def join(protocol: str, switch: str) -> str:
    """Turn one more switch of a protocol, given by its text; returns the protocol's own name."""
    text = protocol + ("," if ":" in protocol else ":") + switch if switch else protocol
    return parse_protocol(text).name


def show_switched(frame: pd.DataFrame) -> Table | Text:
    """Show the cost of leaving a term out with one switch turned at a time."""
    if not len(frame):
        return Text("No protocol of this run withholds the answers, so there is nothing to take apart here.")
    means = frame.groupby(["protocol", "policy"], sort=False)["accuracy"].mean().unstack()
    gaps = 100 * means.sub(means["simple"], axis=0)
    rows = [
        [f"`{name}`", number(means.loc[name, "simple"], 3), *(signed(gaps.loc[name, p]) for p in ABLATIONS)]
        for name in means.index
    ]
    head = ("protocol", "full score, $A_H$", *(policy_title(name) for name in ABLATIONS))
    caption = (
        "What remains of each term's worth when one switch is turned back to the paper's text (ours): "
        "accuracy "
        "of the full score, and the points an ablation differs from it."
    )
    return Table("tab-ablation-switched", caption, head, rows, "lrrrrrr")


def tell_switched(frame: pd.DataFrame) -> Text:
    """Say which single switch removes most of a term's worth where answers are withheld."""
    if not len(frame):
        return Text("Every protocol of this run delivers its answers.")
    means = frame.groupby(["protocol", "policy"], sort=False)["accuracy"].mean().unstack()
    gaps = 100 * means.sub(means["simple"], axis=0)
    lines = []
    for base in withheld(list(dict.fromkeys(name.partition(":")[0] for name in gaps.index))):
        own = gaps.loc[base, list(ABLATIONS)]
        worst = own.idxmin()
        rest = {s: gaps.loc[join(base, s), worst] for s in TURNED if join(base, s) in gaps.index}
        cut = min(rest, key=lambda s: abs(rest[s]))
        flips = [s for s, gap in rest.items() if gap * own[worst] < 0]
        line = (
            f"Under `{base}` the largest loss is that of {policy_title(worst)}: {signed(own[worst])} "
            f"points. With "
            f"`{cut}` alone it becomes {signed(rest[cut])}. "
        )
        line += (
            f"It changes sign with {code(flips)}. " if flips else "No single switch of these turns its sign. "
        )
        line += f"Delivering the answers moves it to {signed(rest['answer=delivered'])}."
        lines.append(line)
    return Text("\n\n".join(lines))
