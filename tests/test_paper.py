"""The paper's numbers: complete, well formed, strict to read, and checked against themselves."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from envprobe_core.claims.printed import PAPER_FOLDER, PaperValue, inconsistencies, paper_value, paper_values
from envprobe_core.errors import InputError

# printed numbers a source: values, ends of intervals and, once a row, n; counted in the LaTeX
# source (the bodies of the tables: 41, 20, 31 + the caption's 220 on each row, 13 without the two
# in the formula of staleness, 22 + the threshold of 50% in the head, 20, 11, 15)
NUMBERS = {
    "tab:main": 41,
    "tab:ordering": 20,
    "tab:ablation": 37,
    "tab:hparams_appendix": 13,
    "tab:g4_main": 23,
    "tab:g4_norm": 20,
    "tab:pcw_audit": 11,
    "timing": 15,
    "abstract": 3,
    "sec:setup": 11,
}


def value(row, column, number, *, source="t", relation="=", low=None, high=None, n=None):
    decimals = len(number.partition(".")[2])
    return PaperValue(source, row, column, relation, float(number), low, high, n, decimals)


def kinds(*values):
    return inconsistencies(values)["kind"].tolist()


def test_every_table_has_all_its_numbers():
    counts, rows = defaultdict(int), set()
    for v in paper_values():
        counts[v.source] += 1 + 2 * (v.low is not None)
        counts[v.source] += v.n is not None and (v.source, v.row) not in rows
        rows.add((v.source, v.row))
    assert {source: counts[source] for source in NUMBERS} == NUMBERS


def test_one_number_is_read_by_its_names():
    gain = paper_value("tab:main", "procedural: simple vs periodic", "accuracy_difference_pct")
    assert (gain.low, gain.high, gain.n) == (10.77, 12.75, 220)
    assert (gain.value, gain.decimals, gain.half_unit) == (11.76, 2, pytest.approx(0.005))
    assert str(gain) == "11.76"
    p = paper_value("tab:main", "procedural: simple vs periodic", "accuracy_p")
    assert (p.relation, str(p)) == ("<", "<0.001")
    assert str(paper_value("tab:g4_main", "spatial: simple vs random", "reference_useful_probe_rate"
                           )) == "0.550"  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "parts"),
    [
        (("tab:mian", "x", "y"), ("no source 'tab:mian'", "tab:main", "timing", "abstract")),
        (("timing", "x", "y"), ("no row 'x'", "combined, spatial, procedural")),
        (("timing", "spatial", "y"), ("no column 'y'", "offset_mean_steps", "drift_first_pct")),
    ],
)
def test_an_unknown_name_is_refused_with_the_known(asked, parts):
    with pytest.raises(InputError) as error:
        paper_value(*asked)
    assert all(part in str(error.value) for part in parts)


def test_the_file_is_well_formed():
    table = pd.read_csv(PAPER_FOLDER / "tables.csv", dtype=str, keep_default_na=False)
    assert " ".join(table) == "source row column relation value ci_low ci_high n"
    assert not table.duplicated(["source", "row", "column"]).any()
    assert set(table["relation"]) == {"=", "<", ">"}
    assert np.isfinite(table["value"].astype(float)).all()
    assert ((table["ci_low"] == "") == (table["ci_high"] == "")).all()


# the paper against itself


def test_what_the_paper_contradicts():
    found = inconsistencies()
    assert list(found.columns) == ["kind", "source", "row", "column", "printed", "expected", "why"]
    keys = set(found[["kind", "source", "row"]].itertuples(index=False, name=None))
    assert keys == {
        ("difference", "tab:ordering", "spatial: self-uncertainty vs no-probe"),
        ("difference", "tab:ordering", "spatial: judge vs simple"),
        ("two values", "tab:ordering", "spatial: periodic vs self-uncertainty"),
        ("two values", "tab:pcw_audit", "canonical"),
        ("count", "tab:ordering", "unstated: oracle vs judge"),
        ("bound", "tab:pcw_audit", "smaller sample"),
        ("p side", "tab:g4_main", "combined: simple vs random"),
        ("p side", "tab:g4_main", "procedural: simple vs random"),
        ("mirrored", "tab:ordering", "unstated: oracle vs judge"),
        ("lower bound", "tab:g4_main", "spatial: simple vs random"),
    }
    judge = found[(found["row"] == "spatial: judge vs simple")].iloc[0]
    assert (judge["printed"], judge["expected"]) == ("2.39", "-0.20")
    assert judge["why"] == "0.339 - 0.341 = -0.20, not +2.39"
    canonical = found[found["row"] == "canonical"].iloc[0]
    assert "'high-confidence scan'" in canonical["why"]


def test_the_main_table_follows_from_its_cells():
    main = tuple(v for v in paper_values() if v.source in ("tab:main", "sec:setup"))
    assert kinds(*main) == []
    for index, v in enumerate(main):
        if v.source == "tab:main" and v.column in ("accuracy_difference_pct", "method_accuracy"):
            step = 1.0 if v.column.endswith("_pct") else 0.01
            shifted = (*main[:index], replace(v, value=v.value + step), *main[index + 1 :])
            assert kinds(*shifted) != [], v


def test_a_difference_may_be_off_by_the_rounding_alone():
    cells = value("s: a vs b", "method_x", "0.5"), value("s: a vs b", "reference_x", "0.3")
    assert kinds(*cells, value("s: a vs b", "x_difference_pct", "30")) == []
    assert kinds(*cells, value("s: a vs b", "x_difference_pct", "31")) == ["difference"]
    assert kinds(*cells, value("s: a vs b", "x_difference_pct", "9")) == ["difference"]
    assert kinds(*cells, value("s: a vs b", "x_difference", "0.3")) == []
    assert kinds(*cells, value("s: a vs b", "x_difference", "0.4")) == ["difference"]
    assert kinds(cells[0], value("s: a vs b", "x_difference", "9")) == []


def test_one_quantity_has_one_value():
    first = value("s: a vs b", "reference_x", "0.31")
    assert kinds(first, value("s: b", "x", "0.31", source="u")) == []
    assert kinds(first, value("s: b", "x", "0.3", source="u")) == []
    assert kinds(first, value("s: b", "x", "0.32", source="u")) == ["two values"]
    assert kinds(first, value("s: b vs c", "method_x", "0.4", source="u")) == ["two values"]
    assert kinds(first, value("s: a", "x", "0.4", source="u")) == []
    small = value("r", "q_p", "0.001", relation="<")
    assert kinds(small, value("r", "q_p", "0.0001", source="u")) == []
    assert kinds(small, value("r", "q_p", "0.02", source="u")) == ["two values"]


def test_pools_are_weighted_means():
    parts = value("procedural", "m", "0.40", n=100), value("spatial", "m", "0.10", n=200)
    assert kinds(*parts, value("combined", "m", "0.20", n=300)) == []
    assert kinds(*parts, value("combined", "m", "0.25", n=300)) == ["pool"]
    assert kinds(*parts, value("combined", "m", "0.20", n=301)) == ["count"]
    rows = [replace(v, row=f"{v.row}: a vs b", column="x_p") for v in parts]
    assert kinds(*rows, value("combined: a vs b", "x_p", "0.9", n=300)) == []
    pairs = value("procedural", "pairs", "220"), value("spatial", "pairs", "440")
    assert kinds(*pairs, value("combined", "pairs", "660")) == []
    assert kinds(*pairs, value("combined", "pairs", "600")) == ["count"]
    equal = value("graphnav", "m", "0.9"), value("objectstate", "m", "0.3")
    assert kinds(*equal, value("spatial", "m", "0.6")) == []
    assert kinds(*equal, value("spatial", "m", "0.8")) == ["pool"]


def test_counts_of_pairs_seeds_and_probes():
    pairs = value("procedural", "pairs", "220")
    gain = value("procedural: a vs b", "accuracy_difference_pct", "1", n=220)
    assert kinds(pairs, gain) == []
    assert kinds(pairs, replace(gain, n=150)) == ["count"]
    first, last = value("seeds", "first", "0", n=220), value("seeds", "last", "219", n=220)
    assert kinds(first, last) == []
    assert kinds(first, replace(last, value=220.0)) == ["count"]
    horizon, budget = value("r", "horizon", "30"), value("r", "budget", "7")
    assert kinds(horizon, budget) == []
    assert kinds(horizon, replace(budget, value=8.0)) == ["count"]


def test_bounds_p_values_mirrors_and_lower_bounds():
    bound = value("every row", "m", "0.8", source="t caption", relation=">")
    assert kinds(bound, value("r", "m", "0.8")) == []
    assert kinds(bound, value("r", "m", "0.7")) == ["bound"]
    assert kinds(bound, value("r", "m", "0.7", source="u")) == []
    gain = value("r", "x_difference", "2.0", low=-1.0, high=5.0)  # z = 1.31: p = .19 or .095
    assert kinds(gain, value("r", "x_p", "0.19")) == []
    assert kinds(gain, value("r", "x_p", "0.10")) == ["p side"]
    assert kinds(gain, value("r", "x_p", "0.90")) == ["p side"]
    assert kinds(gain, value("r", "x_p", "0.2", relation="<")) == []
    assert kinds(gain, value("r", "x_p", "0.1", relation="<")) == ["p side"]
    twin = value("q", "x_difference", "-2.0")
    assert kinds(gain, twin) == ["mirrored"]
    assert kinds(gain, replace(twin, source="u")) == []
    assert kinds(value("r", "x_difference", "0"), value("q", "x_difference", "0")) == []
    rate = value("r", "m", "0.5", n=100)  # Hoeffding's bound, adjusted for six, is .334
    assert kinds(rate, value("r", "m_lcb", "0.34", n=100)) == []
    assert kinds(rate, value("r", "m_lcb", "0.32", n=100)) == ["lower bound"]
