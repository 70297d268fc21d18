"""The paper's numbers: complete, well formed, and strict to read."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from envprobe_book.claims import PAPER_FOLDER, paper_value
from envprobe_core.errors import InputError

# printed numbers a source: values, ends of intervals and, once a row, n; counted in the LaTeX
# source (the bodies of the tables: 41, 20, 31 + the caption's 220 on each row, 13 without the two
# in the formula of staleness, 22 + the threshold of 50% in the head, 20, 11, 15)
NUMBERS = {
    "tab:main": 41, "tab:ordering": 20, "tab:ablation": 37, "tab:hparams_appendix": 13, "tab:g4_main": 23,
    "tab:g4_norm": 20, "tab:pcw_audit": 11, "timing": 15, "abstract": 3, "sec:setup": 11,
}  # fmt: skip


def test_the_file_is_well_formed_and_every_table_has_all_its_numbers():
    table = pd.read_csv(PAPER_FOLDER / "tables.csv", dtype=str, keep_default_na=False)
    assert " ".join(table) == "source row column relation value ci_low ci_high n"
    assert not table.duplicated(["source", "row", "column"]).any()
    assert set(table["relation"]) == {"=", "<", ">"}
    assert np.isfinite(table["value"].astype(float)).all()
    assert ((table["ci_low"] == "") == (table["ci_high"] == "")).all()
    counts = Counter(table["source"]) + Counter(table.query("ci_low != ''")["source"].repeat(2))
    counts += Counter(table.query("n != ''").drop_duplicates(["source", "row"])["source"])
    assert {source: counts[source] for source in NUMBERS} == NUMBERS


def test_one_number_is_read_by_its_names():
    gain = paper_value("tab:main", "procedural: simple vs periodic", "accuracy_difference_pct")
    assert (gain.value, gain.low, gain.high, gain.n, gain.decimals) == (11.76, 10.77, 12.75, 220, 2)
    assert (gain.half_unit, str(gain)) == (pytest.approx(0.005), "11.76")
    p = paper_value("tab:main", "procedural: simple vs periodic", "accuracy_p")
    assert (p.relation, str(p)) == ("<", "<0.001")
    rate = paper_value("tab:g4_main", "spatial: simple vs random", "reference_useful_probe_rate")
    assert str(rate) == "0.550"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("tab:mian", "x", "y"), "unknown source 'tab:mian'; accepted: .*tab:main.*timing"),
        (("timing", "x", "y"), "unknown row 'x'; accepted: combined, spatial, procedural"),
        (("timing", "spatial", "y"), "unknown column 'y'; accepted: .*offset_mean_steps.*drift_first_pct"),
    ],
)
def test_an_unknown_name_is_refused_with_the_known(asked, says):
    with pytest.raises(InputError, match=says):
        paper_value(*asked)
