"""What pages show: numbers, tables and figures, and the comparisons of the paper's first table."""

import re
from dataclasses import fields

import numpy as np
import pytest

from envprobe_core import (
    comparisons,
    draw,
    figures,
    main_tables,
    markup,
    schematics,
    summarize,
    tables,
)
from envprobe_core.agents.profiles import PROFILES, AgentProfile
from envprobe_core.claims.judge import verdicts
from envprobe_core.experiments import load_grid
from envprobe_core.policies import POLICIES
from envprobe_core.statistics import mcnemar_exact


@pytest.fixture(scope="module")
def grid():
    return load_grid(seeds="0:30")


@pytest.fixture(scope="module")
def table(grid):
    return comparisons.load_comparisons(grid, resamples=500)


@pytest.fixture(scope="module")
def information(grid):
    return comparisons.load_information(grid, resamples=500)


# --- the paper's first table ------------------------------------------------------------------


def test_comparisons_are_pairs_of_the_frame(grid, table):
    row = table[(table["claim"] == "main-cd") & (table["protocol"] == "observed")].iloc[0]
    own = grid[(grid["world"] == "tooldag") & (grid["protocol"] == "observed")]
    wide = own.pivot(index="seed", columns="policy", values="accuracy")
    apart = wide["cd"] - wide["simple"]
    assert row["estimate"] == pytest.approx(100 * apart.mean())
    assert row["method"] == pytest.approx(wide["cd"].mean())
    assert row["equal"] == (apart == 0).sum()
    won = own.pivot(index="seed", columns="policy", values="success")
    only = int((won["cd"] & ~won["simple"]).sum()), int((~won["cd"] & won["simple"]).sum())
    assert (row["only_arm"], row["only_reference"]) == only
    assert row["success_p"] == pytest.approx(mcnemar_exact(*only))
    assert row["paper_method_success_pct"] == 15.9


def test_every_row_of_the_papers_table_is_there(table):
    assert table["claim"].nunique() == 5
    assert len(table) == 5 * 3
    columns = ["paper_value", "paper_low", "paper_method_accuracy", "paper_reference_accuracy"]
    assert table[columns].notna().all().all()
    assert table["verdict"].isin(verdicts.VERDICTS).all()


def test_information_is_simple_minus_placebo(grid, information):
    row = information[(information["protocol"] == "paper") & (information["stratum"] == "spatial")].iloc[0]
    own = grid[(grid["world"] != "tooldag") & (grid["protocol"] == "paper")]
    wide = own.pivot(index=["world", "seed"], columns="policy", values="accuracy")
    assert row["information"] == pytest.approx(100 * (wide["simple"] - wide["placebo"]).mean())
    assert row["gain"] == pytest.approx(row["placebo_gain"] + row["information"])
    assert row["identical"] == (wide["simple"] == wide["placebo"]).sum()


# --- tables and figures -----------------------------------------------------------------------


def test_numbers_are_written_as_they_should_be():
    assert markup.number(-0.004, 2) == "0.00"
    assert markup.number(-1.5, 1) == "−1.5"
    assert markup.number(float("nan")) == markup.number(None) == "–"
    assert markup.signed(0.001) == "0.00"
    assert markup.signed(2) == "+2.00"
    assert markup.span(-1, 2, 1) == "−1.0 to +2.0"
    assert markup.bracket(-1, 2, 1) == "[−1.0,\u00a02.0]"
    assert markup.p_value(0.0002) == "<\u00a0.001"
    assert markup.p_value(0.0301) == ".030"
    assert markup.p_value(1.0) == "1.000"
    assert markup.p_value(0.9999) == ">\u00a0.999"
    assert markup.percent(0.125, 1) == "12.5%"
    assert markup.listed(["a"]) == "a"
    assert markup.listed(["a", "b", "c"]) == "a, b and c"
    assert markup.listed([]) == "none"
    assert markup.counted(3) == "three"
    assert markup.counted(12) == "12"
    assert markup.under_each({"p": " x", "q": " x", "r": " y"}) == "* Under `p` and `q` x\n* Under `r` y"


def test_a_table_is_myst_in_the_book_and_html_elsewhere():
    table = markup.Table("tab-x", "Of `x` < *y*.", ("a", "b"), [["{bdg-danger}`no`", "1|2"]], "lr")
    bundle = table._repr_mimebundle_()
    assert bundle["text/markdown"].startswith("~~~{table} Of `x` < *y*.\n:name: tab-x\n")
    assert "| {bdg-danger}`no` | 1\\|2 |" in bundle["text/markdown"]
    assert "<caption>Of <code>x</code> &lt; <em>y</em>.</caption>" in bundle["text/html"]
    assert '<td style="text-align: left">no</td>' in bundle["text/html"]


def test_the_table_of_all_policies_has_their_means(grid):
    made = list(main_tables.show_policies(grid, 100))
    for one in made:
        assert all(len(row) == len(one.head) == len(one.align) for row in one.rows), one.label
        assert "nan" not in one.markdown(), one.label
    policies = made[-1]
    assert len(policies.rows) == len(POLICIES)
    simple = policies.rows[list(POLICIES).index("simple")]
    own = grid[(grid["protocol"] == "released") & (grid["policy"] == "simple")]
    assert simple[1] == f"{own.loc[own['world'] == 'tooldag', 'accuracy'].mean():.3f}"
    assert simple[7] == f"{own['probes'].mean():.1f}"


@pytest.mark.parametrize("name", PROFILES)
def test_every_habit_of_a_profile_is_described(name):
    habits, assumption = tables.describe_profile(name)
    assert set(habits["habit"]) == {field.name for field in fields(AgentProfile)} - {"name", "assumption"}
    assert assumption == PROFILES[name].assumption


def test_every_verdict_has_a_badge():
    assert set(tables.BADGES) == set(verdicts.VERDICTS)


@pytest.fixture(scope="module")
def drawings(grid):
    means = summarize(grid, "accuracy", ("protocol", "world", "policy"), resamples=100)
    return [
        schematics.plot_tools("S2", ("paper", "observed", "released"), 3),
        schematics.plot_rooms("S3", 3),
        schematics.plot_graph("S2", 3),
        draw("forest", means, "means", "mean", x="policy", panels="world", label="accuracy of each policy"),
    ]


def test_figures_are_described_and_take_the_pages_colours(drawings):
    assert len({drawing.name for drawing in drawings}) == len(drawings)
    ids = []
    for drawing in drawings:
        svg = drawing.svg()
        assert svg == drawing.svg()
        assert 'role="img" aria-label="' in svg
        assert len(drawing.alt) > 60
        assert "nan" not in drawing.alt
        assert "currentColor" in svg
        assert not re.search(r"#(000000|ffffff)\b", svg)
        assert "<script" not in svg
        assert "*{" not in svg  # no rule that reaches beyond the figure
        ids += re.findall(r' id="([^"]+)"', svg)
        references = set(re.findall(r'(?:href="|url\()#([\w.-]+)', svg))
        assert references <= set(ids)
    assert len(set(ids)) == len(ids)


def test_one_style_a_policy():
    assert set(figures.POLICY_STYLES) == set(POLICIES)
    looks = [(style.colour, style.marker, style.filled) for style in figures.POLICY_STYLES.values()]
    assert len(set(looks)) == len(looks)
    for style in figures.POLICY_STYLES.values():
        assert style.colour in (*figures.DARK, figures.INK)


def luminance(colour):
    parts = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_colours_can_be_read_on_both_grounds():
    """4.5 to 1 on the theme's white and on its dark ground (WCAG 2.1, level AA)."""
    for light, dark in figures.DARK.items():
        assert 1.05 / (luminance(light) + 0.05) >= 4.5, light
        for ground in ("#121212", "#14181e"):
            assert (luminance(dark) + 0.05) / (luminance(ground) + 0.05) >= 4.5, dark


def test_a_graph_is_laid_out_by_distance():
    spot = schematics.layered(5, np.array([[0, 1], [1, 2], [1, 3], [2, 3], [3, 4]]), 0)
    assert [spot[node][0] for node in range(5)] == [0, 1, 2, 2, 3]
    assert len(set(spot.values())) == 5
