"""Figures that show every episode or agent and not their mean; seaborn places and sizes the marks.

Hues belong to policies. So worlds are told apart by shape, and signs by shape and filling.
"""

import pandas as pd

from envprobe_book.claims import STRATA
from envprobe_book.pages.figures import GREY, INK, STRATUM_TITLES, Drawing, canvas, styled
from envprobe_core.protocols import in_words
from envprobe_core.worlds import WORLDS

WORLD_MARKERS = {"tooldag": "o", "objectstate": "s", "graphnav": "^"}
DIAGONAL = {"color": GREY, "linestyle": (0, (4, 3)), "linewidth": 1}
ONE, EACH = 5.0, 0.8  # square points: the area of a mark, and what each of its episodes adds
PANEL = 2.0  # inches, the height of a square panel


@styled
def draw_onsets(timed: pd.DataFrame) -> Drawing:
    """Action onset against drift onset, a panel a protocol and stratum (Section 5, the order of the onsets).

    Args:
        timed: a row an episode: `protocol world horizon`, and `collapse_onset action_onset` in steps, NaN for
            one that never comes. Episodes on the same spot make one mark of their number.
    """
    import seaborn as sns

    sides, protocols = ("spatial", "procedural"), list(dict.fromkeys(timed["protocol"]))
    figure, panels = canvas(
        0.7 + PANEL * len(protocols), rows=len(protocols), columns=len(sides), sharex=True, sharey=True
    )
    both = timed.dropna(subset=["collapse_onset", "action_onset"])
    spots = ["protocol", "world", "collapse_onset", "action_onset"]
    dots = both.groupby(spots, sort=False).size().reset_index(name="n")
    most, far, said = max(dots["n"], default=1), int(timed["horizon"].max()) + 1, []
    for name, line in zip(protocols, panels, strict=True):
        for side, axes in zip(sides, line, strict=True):
            here = (dots["protocol"] == name) & dots["world"].isin(STRATA[side])
            sns.scatterplot(
                dots[here],
                x="collapse_onset",
                y="action_onset",
                style="world",
                markers=WORLD_MARKERS,
                size="n",
                size_norm=(0, most),
                sizes=(ONE, ONE + EACH * most),
                color=INK,
                alpha=0.4,
                linewidth=0,
                legend=False,
                ax=axes,
            )
            axes.plot([-1, far], [-1, far], **DIAGONAL)
            axes.set(xlim=(-1, far), ylim=(-1, far), xlabel="", ylabel="")
            own = both[(both["protocol"] == name) & both["world"].isin(STRATA[side])]
            above = (own["action_onset"] > own["collapse_onset"]).sum()
            place, counted = f"{in_words(name)}, {STRATUM_TITLES[side]}", f"{above:,} of {len(own):,}"
            axes.set_title(f"{place}:\n{counted} above", fontsize=9)
            said.append(f"{place}: {counted} episodes above the diagonal")
    figure.supylabel("action onset (step)", fontsize=9.5)
    for axes in panels[-1]:
        axes.set_xlabel("drift onset (step)")
    marks = [
        panels[0, 0].scatter([], [], marker=WORLD_MARKERS[world], s=40, color=INK, alpha=0.4, linewidth=0)
        for world in dict.fromkeys(both["world"])
    ]
    if marks:
        titles = [WORLDS[world] for world in dict.fromkeys(both["world"])]
        figure.legend(marks, titles, loc="outside lower center", ncols=len(marks))
    alt = "Action onset against drift onset. A mark's area is its number of episodes. Dashed: the diagonal."
    return Drawing(figure, "onsets", f"{alt} {'; '.join(said)}.")
