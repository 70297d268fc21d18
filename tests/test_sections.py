"""The two sections: they run with other values, and what they say is what their frames hold."""

import json
import re
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from built_book import SMALL

from envprobe_core import (
    comparisons,
    environments,
    experiments,
    figures,
    main_tables,
    markup,
    plots,
    schematics,
    tables,
    verdicts,
)
from envprobe_core import main_prose as prose
from envprobe_core import prose as environment_prose
from envprobe_core.agents.profiles import PROFILES, AgentProfile
from envprobe_core.averages import mean_by
from envprobe_core.claims import find_claim, load_claims
from envprobe_core.execution import run
from envprobe_core.notebooks import ROOT, plan, read_section
from envprobe_core.paper import paper_value
from envprobe_core.policies import POLICIES
from envprobe_core.statistics import mcnemar_exact

SECTIONS = ("environments", "main-results")
OTHER = {"seeds": "0:12", "resamples": "200", "regime": "S3", "protocol": "observed", "profile": "perfect"}
ODD = {
    "seeds": "5",
    "resamples": "100",
    "regime": "R2",
    "protocol": "released paper:clock=stands,end=success",
}


@pytest.fixture(scope="module")
def grid():
    return experiments.load_grid(seeds="0:30")


@pytest.fixture(scope="module")
def table(grid):
    return comparisons.load_comparisons(grid, resamples=500)


@pytest.fixture(scope="module")
def information(grid):
    return comparisons.load_information(grid, resamples=500)


@pytest.fixture(scope="module")
def ledger(grid):
    return verdicts.evaluate_all(grid, comparisons.claims_at("main", "S2"), resamples=500)


@pytest.fixture(scope="module")
def episodes():
    return experiments.load_environments("S2", "paper observed released", "typical", "0:30")


@pytest.fixture(scope="module")
def drift(episodes):
    curves = experiments.load_drift("S2", "paper observed released", "typical", "0:30", resamples=200)
    return environments.summarise_drift(episodes, curves, "S2", 200)


# --- the notebooks ----------------------------------------------------------------------------


def execute(folder, names, given):
    jobs = plan(names, given, executed=folder)
    outcomes = list(run(jobs, 1))
    assert [outcome.error for outcome in outcomes] == [None] * len(jobs)
    return {job.section.name: job.output for job in jobs}


def outputs(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [output for cell in cells for output in cell.get("outputs", ())]


@pytest.fixture(scope="module")
def small(small_book):
    """Both sections, executed with few seeds."""
    return {name: small_book / "book" / "executed" / f"{name}.ipynb" for name in SECTIONS}


def check(made, protocols):
    for name, path in made.items():
        shown = outputs(path)
        assert all(output["output_type"] in ("display_data", "execute_result") for output in shown), name
        text = "\n".join("".join(output["data"].get("text/markdown", "")) for output in shown)
        assert not re.search(r"\bnan\b|\binf\b|\| None \|", text), name
        for protocol in protocols:
            assert f"`{protocol}`" in text, (name, protocol)


def test_sections_run_with_few_seeds(small):
    check(small, ("paper", "observed", "released"))


@pytest.mark.parametrize("given", [OTHER, ODD], ids=["other", "odd"])
def test_sections_run_with_other_values(tmp_path, given):
    check(execute(tmp_path, SECTIONS, given), experiments.names(given["protocol"]))


def test_the_same_inputs_give_the_same_bytes(small, tmp_path):
    given = {name: SMALL[name] for name in ("seeds", "resamples")}
    again = execute(tmp_path, ("environments",), given)
    assert again["environments"].read_bytes() == small["environments"].read_bytes()


def test_notebooks_are_short_calls_with_captions():
    labels = []
    for name in SECTIONS:
        section = read_section(ROOT / "notebooks" / f"{name}.ipynb")
        assert list(section.parameters) == ["seeds", "regime", "protocol", "profile", "resamples"]
        for cell in section.cells:
            source = "".join(cell["source"])
            labels += re.findall(r":label: (\S+)", source)
            if cell["cell_type"] != "code":
                continue
            assert len(source.splitlines()) <= 10
            assert not re.search(r"^\s*(def|for|while|if) ", source, flags=re.MULTILINE)
            own = cell["metadata"].get("mystnb", {})
            if "plot_" in source:
                assert own["figure"]["caption"].endswith(".")
                labels.append(own["figure"]["name"])
            if "show_" in source or "tell_" in source:
                assert own == {"markdown_format": "myst"}
    assert len(set(labels)) == len(labels) > 12


# --- words follow numbers ---------------------------------------------------------------------


def turned(table, names):
    """The same frame with differences of the opposite sign."""
    other = table.copy()
    for name in names:
        other[name] = -table[name]
        if f"{name}_low" in table:
            other[f"{name}_low"], other[f"{name}_high"] = -table[f"{name}_high"], -table[f"{name}_low"]
    return other


def test_gains_say_what_the_frame_holds(table):
    text = prose.tell_gains(table).markdown
    row = table[(table["claim"] == "main-procedural") & (table["protocol"] == "released")].iloc[0]
    assert markup.signed(row["estimate"]) in text
    assert markup.span(row["low"], row["high"]) in text
    for stratum in ("procedural", "spatial", "combined"):
        printed = paper_value("tab:main", f"{stratum}: simple vs periodic", "accuracy_difference_pct")
        assert f"+{printed} ({stratum})" in text


def test_gains_of_the_other_sign_turn_the_words(table):
    one = table[(table["claim"] == "main-procedural") & (table["protocol"] == "released")]
    assert one["low_adjusted"].iloc[0] > 0
    other = one.copy()
    for low, high in (("low", "high"), ("low_adjusted", "high_adjusted")):
        other[low], other[high] = -one[high], -one[low]
    other["estimate"] = -one["estimate"]
    flat = one.assign(low_adjusted=-1.0, high_adjusted=1.0)

    def told(rows):
        whole = pd.concat([rows.assign(stratum=name) for name in ("procedural", "spatial", "combined")])
        return prose.tell_gains(whole).markdown

    assert "*more* accurate" in told(one)
    assert "the paper's sign under `released`" in told(one)
    assert "*less* accurate" in told(other)
    assert "the opposite sign under `released`" in told(other)
    assert "neither clearly more nor clearly less" in told(flat)
    assert "do not all have one clear sign" in told(flat)


def test_that_a_protocol_decides_is_said_only_where_it_does(table):
    said = "Whether probing pays has no answer"
    gains = table[table["reference"] == "periodic"].copy()
    gains["low_adjusted"], gains["high_adjusted"] = 1.0, 2.0
    assert said not in prose.tell_gains(gains).markdown
    gains.loc[gains["protocol"] == "paper", ["low_adjusted", "high_adjusted"]] = [-2.0, -1.0]
    assert said in prose.tell_gains(gains).markdown


def test_success_turns_with_its_counts(table):
    one = table[(table["claim"] == "main-spatial") & (table["protocol"] == "paper")].copy()
    one["success_p"], one["success_p_adjusted"], one["success_estimate"] = 0.001, 0.006, -8.0
    assert "completes *fewer* episodes than Periodic" in prose.tell_success(one).markdown
    assert "completes *more* episodes" in prose.tell_success(one.assign(success_estimate=8.0)).markdown
    unclear = prose.tell_success(one.assign(success_p_adjusted=0.3)).markdown
    assert "neither clearly more nor clearly fewer" in unclear


def test_levels_name_the_nearest_and_the_farthest(ledger):
    text = prose.tell_levels(ledger).markdown
    own = ledger[ledger["claim"].str.match("level-(?!success)") & (ledger["protocol"] == "released")]
    apart = 100 * own["difference"].astype(float)
    assert f"the farthest {markup.signed(apart[apart.abs().idxmax()], 1)}" in text
    assert f"The nearest is {markup.signed(apart[apart.abs().idxmin()], 1)} points off" in text


def test_a_gain_without_information_is_called_one(information):
    text = prose.tell_information(information).markdown
    blind, told = text.split("* Under `released`")[1], text.split("* Under `released`")[0]
    assert "needs no information from any probe" in blind
    assert "in each of the 90 pairs" in blind
    assert "needs no information" not in told
    seen = information.assign(identical=information["identical"] - 1)
    assert "needs no information" not in prose.tell_information(seen).markdown


def test_the_worth_of_answers_turns_with_its_sign(information):
    one = information[information["protocol"] == "observed"].copy()
    one[["information", "information_low", "information_high"]] = [2.0, 1.0, 3.0]
    assert "Being told helps" in prose.tell_information(one).markdown
    assert "Being told does harm" in prose.tell_information(turned(one, ["information"])).markdown
    one["information_low"] = -1.0
    assert "cannot be told from nothing" in prose.tell_information(one).markdown
    behind = one.assign(information_low=1.0, gain=-3.0, gain_low=-4.0, gain_high=-2.0)
    assert "Periodic, which is told too, ends ahead" in prose.tell_information(behind).markdown
    ahead = prose.tell_information(turned(behind, ["gain"])).markdown
    assert "EnvProbe-Simple ends ahead of Periodic" in ahead


def test_spending(grid):
    steps = experiments.load_probe_steps(seeds="0:30")
    text = prose.tell_spending(grid, steps).markdown
    assert "`paper` EnvProbe-Simple fires its first probe at step" in text
    assert "old and Periodic's 2.0" in text
    released = text.split("* Under `released`")[1]
    assert "No answer is delivered" in released
    assert "go out of date" not in released
    silent = prose.tell_spending(grid, steps[steps["policy"] != "simple"]).markdown
    assert "EnvProbe-Simple never probes" in silent


def test_the_takeaway_counts_what_holds(table, information):
    text = prose.tell_takeaway(table, information, "typical").markdown
    held = table[table["verdict"].str.startswith("holds")]
    count = markup.counted(int((held["protocol"] == "released").sum()))
    assert f"{count} under `released`" in text
    assert "Under `released` a difference to Periodic is no evidence" in text


def test_another_regime_is_called_one():
    assert "primary regime" in prose.tell_regime("S2").markdown
    other = prose.tell_regime("S3").markdown
    assert "`S3`" in other
    assert "carries over" in other


def test_the_ledger_counts_and_names(ledger):
    own = tables.without_levels(ledger)
    text = prose.tell_ledger(ledger).markdown
    held = own["verdict"].str.startswith("holds").groupby(own["protocol"]).sum()
    assert f"{markup.counted(int(held['released']))} of {len(own) // 3} under `released`" in text
    everywhere = ledger.assign(verdict="reverses")
    assert "What reverses under every protocol shown" in prose.tell_ledger(everywhere).markdown
    assert find_claim("main-cd").statement in prose.tell_ledger(everywhere).markdown
    nothing = prose.tell_ledger(ledger.assign(verdict="not tested")).markdown
    assert "Not tested, for want of episodes" in nothing


def test_mutation_is_told_as_drawn(episodes):
    mutation = environments.summarise_mutation(episodes, "S2", 200)
    text = environment_prose.tell_mutation(mutation, "S2").markdown
    assert f"{mutation['drawn'].iloc[0]:.4f} on tools, against 0.10 (inside its interval)" in text
    off = mutation.assign(drawn_low=0.5)
    assert "outside its interval" in environment_prose.tell_mutation(off, "S2").markdown
    still = environment_prose.tell_mutation(mutation.assign(rate=0.0), "S1").markdown
    assert "nothing mutates in `S1`" in still


def test_chains_are_set_against_the_papers(episodes):
    chains = environments.summarise_chains(episodes, "S2", 200)
    text = environment_prose.tell_chains(chains, "S2").markdown
    assert "9.0 actions on tools (always)" in text
    assert "tools need about its 9" in text
    assert "more than the paper's 3 to 5" in text
    short = environment_prose.tell_chains(chains.assign(length=2.0), "S2").markdown
    assert "fewer than the paper's 3 to 5" in short
    tight = environment_prose.tell_chains(chains.assign(fits=0.25), "S2").markdown
    assert "in 25% of the instances" in tight


def test_drift_is_told_by_its_course(drift):
    text = environment_prose.tell_drift(drift).markdown
    assert "* Under `paper`, on tools it falls from 1.00" in text
    assert "Under `paper` the table begins correct" in text
    assert "Under `observed` and `released` most of what is wrong" in text
    rising = drift.assign(start=0.2, top=0.7, last=0.7)
    assert "it rises from 0.20 to 0.70;" in environment_prose.tell_drift(rising).markdown
    level = drift.assign(start=0.5, top=0.5, last=0.5)
    assert "it stays near 0.50" in environment_prose.tell_drift(level).markdown


def test_starts_are_set_side_by_side(episodes):
    claims = [find_claim(name) for name in ("start-correct", "spatial-starts-collapsed")]
    found = verdicts.evaluate_all(episodes, claims, resamples=200)
    text = environment_prose.tell_starts(found).markdown
    assert "the first holds under `paper` and the second holds under `observed` and `released`" in text
    assert "both together under none" in text
    assert "and both under `paper`" in environment_prose.tell_starts(found.assign(verdict="holds")).markdown
    nowhere = environment_prose.tell_starts(found.assign(verdict="reverses")).markdown
    assert "the first holds under no protocol shown" in nowhere


def test_worlds_are_told_with_their_counts():
    text = environment_prose.tell_worlds("S3", ("paper",)).markdown
    assert "ToolDAGWorld has 48 fields (all procedural)" in text
    assert "$H = 40$" in text
    assert "= 10$" in text


# --- the frames behind the words --------------------------------------------------------------


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


def test_every_table_has_its_cells(grid, table, information, ledger, episodes, drift):
    claims = verdicts.evaluate_all(episodes, load_claims(section="environments"), resamples=100)
    made = [
        tables.show_profile("typical"),
        tables.show_worlds("R2", ("released",)),
        tables.show_mutation(environments.summarise_mutation(episodes, "S2", 100), "S2"),
        tables.show_start(drift, "S2"),
        tables.show_ledger(claims, "tab-a", "A."),
        main_tables.show_gains(table),
        main_tables.show_success(table),
        main_tables.show_levels(ledger),
        main_tables.show_ledger(ledger, "tab-b", "B."),
        main_tables.show_information(information),
        *main_tables.show_policies(grid, 100),
    ]
    assert len({one.label for one in made}) == len(made)
    for one in made:
        assert all(len(row) == len(one.head) == len(one.align) for row in one.rows), one.label
        assert "nan" not in one.markdown(), one.label
    policies = made[-1]
    assert len(policies.rows) == len(POLICIES)
    simple = policies.rows[list(POLICIES).index("simple")]
    own = grid[(grid["protocol"] == "released") & (grid["policy"] == "simple")]
    assert simple[1] == f"{own.loc[own['world'] == 'tooldag', 'accuracy'].mean():.3f}"
    assert simple[7] == f"{own['probes'].mean():.1f}"


def test_every_habit_of_a_profile_is_shown():
    habits = {field.name for field in fields(AgentProfile)} - {"name", "assumption"}
    assert set(tables.HABITS) == habits
    for name in PROFILES:
        assert len(tables.show_profile(name).rows) == len(habits)


def test_every_verdict_has_a_badge():
    assert set(tables.BADGES) == set(verdicts.VERDICTS)


@pytest.fixture(scope="module")
def drawings(grid, table, episodes):
    curves = experiments.load_drift("S2", "paper released", "typical", "0:12", resamples=100)
    accuracies = mean_by(grid, "accuracy", ("protocol", "world", "policy"), resamples=100)
    return [
        schematics.plot_tools("S2", ("paper", "observed", "released"), 3),
        schematics.plot_rooms("S3", 3),
        schematics.plot_graph("S2", 3),
        plots.plot_chains(episodes),
        plots.plot_drift(curves),
        plots.plot_gains(table),
        plots.plot_accuracies(grid, accuracies),
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


def test_alt_texts_hold_the_numbers(drawings, table):
    row = table[(table["claim"] == "main-spatial") & (table["protocol"] == "observed")].iloc[0]
    gains = next(drawing for drawing in drawings if drawing.name == "gains")
    assert f"{markup.signed(row['estimate'], 1)} under observed" in gains.alt
    assert "+3.8 in the paper" in gains.alt


def test_no_axis_cuts_an_interval_off(table):
    figure = plots.plot_gains(table).figure
    low, high = figure.axes[0].get_xlim()
    gains = table[table["reference"] == "periodic"]
    assert low < min(gains["low"].min(), gains["paper_low"].min())
    assert high > max(gains["high"].max(), gains["paper_high"].max())


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
