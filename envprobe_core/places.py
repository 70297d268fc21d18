"""Where in the paper something stands: the printed name of every place, in the paper's order.

Claims and numbers name their place by LaTeX label, by `timing` (the table without a number) or by section
(data/paper/README.md); readers know the place by the number that LaTeX gave it.
"""

from __future__ import annotations

from envprobe_core.errors import InputError

PLACES = {
    "abstract": "Abstract",
    "sec:intro": "Section 1",
    "fig:intuition": "Figure 1",
    "def:probe_api": "Definition 3.1",
    "def:taxonomy": "Definition 3.2",
    "sec:prelim": "Section 3",
    "sec:method:score": "Section 4.1",
    "alg:simple": "Algorithm 1",
    "sec:method:algo": "Section 4.2",
    "def:gamma": "Definition 5.2",
    "lem:belief_bound": "Lemma 5.3",
    "lem:decomp_rev": "Lemma 5.4",
    "lem:fano": "Proposition 5.5",
    "lem:nwf": "Proposition 5.6",
    "lem:displacement": "Lemma 5.7",
    "thm:tradeoff": "Theorem 5.8",
    "sec:setup": "Section 6.1",
    "tab:main": "Table 1",
    "sec:results:g1": "Section 6.2.1",
    "sec:results:tradeoff": "Section 6.2.1, trade-off",
    "fig:pareto_proc": "Figure 3",
    "tab:ordering": "Table 2",
    "sec:results:g5": "Section 6.2.2",
    "sec:results:secondary": "Section 6.2.3",
    "fig:collapse_curves": "Figure 4",
    "fig:drift_appendix": "Figure 5",
    "sec:results:ablation": "Section 6.2.3, ablation",
    "tab:ablation": "Table 3",
    "tab:ablation caption": "Table 3, caption",
    "fig:ablation": "Figure 6",
    "sec:disc:tradeoff": "Section 7, trade-off",
    "sec:disc:spatial": "Section 7, asymmetry",
    "fig:pareto_spatial": "Figure 7",
    "sec:disc:prop1": "Section 7, components",
    "sec:conclusion": "Section 8",
    "sec:broader_impact": "Broader impact",
    "app:impl": "Appendix B",
    "tab:hparams_appendix": "Table 4",
    "app:datasets": "Appendix C",
    "app:failures": "Appendix D",
    "app:broader_impact": "Appendix E",
    "app:additional_exp": "Appendix F",
    "tab:g4_main": "Table 5",
    "tab:g4_norm": "Table 6",
    "tab:pcw_audit": "Table 7",
    "tab:pcw_audit caption": "Table 7, caption",
    "app:discussion_extended": "Appendix G",
    "timing": "Appendix G, timing table",
}


def place(source: str) -> str:
    """Return the printed name of a place.

    Raises:
        InputError: for a place that the paper does not have.
    """
    if source not in PLACES:
        raise InputError(f"no place {source!r} in the paper; accepted: {', '.join(PLACES)}")
    return PLACES[source]


def order(source: str) -> int:
    """Return the position of a place in the paper; refused as in `place`."""
    place(source)
    return list(PLACES).index(source)
