"""The scoreboard: what it runs, what it says, its page and its command; the paper's rows above ours."""

import functools
import io
import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envprobe_book import judge, run
from envprobe_book.analyses import nondominated, scoreboard
from envprobe_book.analyses.frontiers import find_frontiers, stability_of
from envprobe_book.analyses.scoreboard import as_printed, as_records, choose_claims, run_claims
from envprobe_book.claims import find_claim, load_claims, paper_items, paper_value, paper_values
from envprobe_book.claims.judge import NOT_TESTED, VERDICTS
from envprobe_book.pages.review import PAGES
from envprobe_book.pages.scoreboard import MEANINGS, show_legend, show_scoreboard
from envprobe_book.reproduce.sections import find_sections
from envprobe_core.conditions import make_condition
from envprobe_core.errors import InputError
from envprobe_core.experiment import COLUMNS
from processes import envprobe

SEEDS = "0:60"


@functools.cache
def board():
    return scoreboard.load_scoreboard(seeds=SEEDS, resamples=200)


def test_every_claim_gets_a_verdict_under_every_protocol_in_the_papers_order():
    table, claims = board(), choose_claims()
    assert table["claim"].tolist() == [claim.id for claim in claims for _ in range(3)]
    assert table["protocol"].tolist() == ["paper", "observed", "released"] * len(load_claims())
    assert set(table["verdict"]) <= set(VERDICTS)
    untested = table[table["verdict"] == NOT_TESTED]
    assert len(untested) <= 0.02 * len(table), untested["reason"].tolist()
    assert untested["reason"].str.contains("episodes with a value").all()  # censored, nothing else
    positions = [paper_items.order(claim.source) for claim in claims]
    assert positions == sorted(positions)
    assert {value.source for value in paper_values()} <= set(paper_items.PLACES)
    with pytest.raises(InputError, match="unknown place 'tab:mian'; accepted: abstract"):
        paper_items.place("tab:mian")


@pytest.mark.nightly
def test_only_what_a_claim_asks_for_is_run_and_it_is_what_the_grid_gives():
    """Cells run together with others, their facts and processes move nothing."""
    claims = choose_claims(["budget", "set-up", "ablation"])
    frame = run_claims(claims, "paper observed", seeds="5:17")
    pd.testing.assert_frame_equal(frame, run_claims(claims, "paper observed", seeds="5:17", jobs=2))
    frame = frame[(frame["regime"] == "S2") & ~frame["policy"].str.contains("@")]
    asked = {arm for claim in claims for arm in claim.arms + claim.references if "@" not in arm}
    assert set(frame["policy"]) == asked
    key = ["protocol", "world", "policy", "seed"]
    whole = run(policies=sorted(asked), protocols="paper observed", seeds="5:17")
    both = frame[list(COLUMNS)].merge(whole, on=key, suffixes=("", "_grid"), validate="one_to_one")
    assert len(both) == len(frame) > 0
    for name in set(COLUMNS) - set(key):
        pd.testing.assert_series_equal(both[name], both[f"{name}_grid"], check_names=False)


def test_claims_about_the_primary_regime_move_and_settings_stay():
    moved = {claim.id: claim.regime for claim in choose_claims(regime="S3")}
    assert [moved[name] for name in ("main-procedural", "horizon-s2", "stress-gain-s1")] == ["S3", "S2", "S1"]
    table = scoreboard.load_scoreboard("main", "observed", "perfect", "0:12", "R1", 100)
    assert (set(table["regime"]), set(table["profile"])) == ({"R1"}, {"perfect"})
    with pytest.raises(InputError, match="names one twice"):
        scoreboard.load_scoreboard("main", "paper paper", seeds="0:12")


def test_records_are_plain_and_complete_in_csv_json_and_the_command():
    records = as_records(board())
    assert json.loads(json.dumps(records, allow_nan=False)) == records
    assert all(tuple(record) == tuple(scoreboard.RECORDED) for record in records)
    about = {claim.id: (claim.about, claim.family) for claim in load_claims()}
    assert all((record["kind"], record["family"]) == about[record["id"]] for record in records)
    main = [record for record in records if record["id"] == "main-procedural"]
    assert {record["paper"] for record in main} == {11.76}
    assert all(record["interval"][0] <= record["ours"] <= record["interval"][1] for record in main)
    assert all((record["interval"] is None) == (record["verdict"] == NOT_TESTED) for record in records)
    rows = pd.read_csv(io.StringIO(scoreboard.as_csv(board())))
    assert rows["ours"].notna().tolist() == [record["ours"] is not None for record in records]
    assert rows["verdict"].tolist() == [record["verdict"] for record in records]
    assert rows["reason"].notna().all()
    asked = ["claims", "--seeds", SEEDS, "--resamples", "200", "--section", "main"]
    result = envprobe(*asked, "--json")
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout) == [one for one in records if one["section"] == "main"]
    result = envprobe(*asked[:-1], "ablation", "--protocol", "paper")  # a table a section
    assert result.returncode == 0, result.stderr
    assert all(word in result.stdout for word in ("ablation", "holds, other size", "Table 3"))


def test_the_page_shows_every_claim_with_a_sign_and_a_word_and_a_section_that_exists():
    titles = {name: section.title for name, section in find_sections().items()}
    shown, claims = show_scoreboard(board(), titles).html, load_claims()
    assert shown.count('<th scope="row">') == len(claims)
    marks = re.findall(r'class="verdict verdict-([a-z-]+)">(.)&nbsp;([a-z, ]+)<', shown)
    assert len(marks) == 3 * len(claims)
    assert {word: sign for _, sign, word in marks}.items() <= scoreboard.SIGNS.items()
    assert {*scoreboard.SIGNS} == {*VERDICTS}
    assert len(set(scoreboard.SIGNS.values())) <= 6
    assert "+11.76 points <small>[10.77, 12.75]</small>" in shown
    heads = re.findall(r'class="scoreboard-place">.*?<span>(.*?)</span>', shown)
    assert heads == list(dict.fromkeys(heads))
    assert heads[0] == "Abstract"
    assert set(PAGES) == {claim.section for claim in claims}
    linked = set(re.findall(r'href="([a-z-]+)\.html"', shown))
    assert linked == set(PAGES.values()) <= set(find_sections())


def test_the_legend_counts_every_claim_under_every_protocol():
    shown = show_legend(board()).html
    assert set(MEANINGS) == set(VERDICTS)
    counts = list(map(int, re.findall(r'class="scoreboard-count">(\d+)<', shown)))
    by_protocol = [sum(counts[place::3]) for place in range(3)]
    assert by_protocol == [len(load_claims())] * 3


def test_the_settled_scribe_answers_where_our_agent_cannot_differ():
    few = [find_claim(name) for name in ("main-cd-success", "main-minus-u-success", "main-cd")]
    table = judge(scoreboard.run_claims(few, "paper"), few, resamples=200)
    assert table["verdict"].tolist()[:2] == ["cannot differ"] * 2
    instead = scoreboard.ask_settled(table, "0:220", resamples=200)
    assert instead["claim"].tolist() == ["main-cd-success", "main-minus-u-success"]
    assert set(instead["profile"]) == {"scribe-settled"}
    assert "cannot differ" not in set(instead["verdict"])
    titles = {name: section.title for name, section in find_sections().items()}
    shown = show_scoreboard(table, titles, instead=instead).html
    assert shown.count("the agent scribe-settled, as released: ") == 2
    assert scoreboard.ask_settled(table.iloc[2:], "0:220").empty


def test_a_models_replayed_run_stands_beside_the_claims_it_can_answer():
    claims = choose_claims(["main"])
    ours = scoreboard.load_scoreboard("main", "observed", seeds="0:12", resamples=100)
    frame = run_claims(claims, "observed", seeds="0:12").assign(invalid_share=0.25)
    condition = make_condition("tooldag", "simple")
    inputs = SimpleNamespace(regime="S2", conditions=[condition], protocols=["observed"])
    runs = [
        SimpleNamespace(frame=frame, inputs=inputs, label="a model"),
        SimpleNamespace(frame=None, inputs=inputs, label="without episodes"),
    ]
    both = scoreboard.add_replays(ours, runs, claims, "S2", "paper observed", 100)
    assert both["protocol"].unique().tolist() == ["observed", "observed: a model"]
    assert both["claim"].tolist() == [claim.id for claim in claims for _ in range(2)]
    assert both["verdict"][::2].tolist() == both["verdict"][1::2].tolist()  # it is the same agent
    head = show_scoreboard(both, dict.fromkeys(PAGES.values(), "a page")).html
    assert "a model; 25.0% of belief updates invalid" in head
    assert scoreboard.add_replays(ours, runs, claims, "S3", "observed", 100)["replayed"].sum() == 0


def test_pairs_are_joined_by_seed_and_judged_as_the_claim():
    episodes = run(policies="simple judge", regimes="S1", protocols="paper released", seeds="0:14")
    columns = ["method_accuracy", "reference_accuracy", "accuracy_difference_pct", "accuracy_p"]
    rows, asked = {"ordering-judge": "spatial: judge vs simple"}, {"regime": "S1", "resamples": 200}
    found, again, few = (
        scoreboard.beside_paper(frame, rows, "tab:ordering", columns, **asked)
        .set_index("source")
        .sort_index()
        for frame in (episodes, episodes.sample(frac=1, random_state=0), episodes[episodes["seed"] < 3])
    )
    assert found.equals(again)
    spatial = episodes[(episodes["world"] != "tooldag") & (episodes["protocol"] == "paper")]
    means = spatial.groupby("policy")["accuracy"].mean()
    own, untested, printed = found.loc["as\u00a0written"], few.loc["as\u00a0written"], found.loc["*printed*"]
    assert own["method"] == pytest.approx(means["judge"], rel=1e-12)
    assert own["estimate"] == pytest.approx(100 * (means["judge"] - means["simple"]), rel=1e-9, abs=1e-9)
    assert (own["n"], own["left_out"]) == (28, 0)
    verdict = judge(episodes, list(rows), **asked).set_index("protocol").loc["paper"]
    assert (own["verdict"], own["adjusted_low"]) == (verdict["verdict"], verdict["low_adjusted"])
    assert tuple(untested[["verdict", "n", "estimate"]]) == ("not tested", 6, None)
    assert tuple(printed[["method", "base", "estimate", "p"]]) == ("0.339", "0.341", "+2.39", "–")
    assert printed["difference"] is None
    random = ("tab:g4_main", "procedural: simple vs random", "useful_probe_rate_p")
    minus_d = ("tab:ablation", "procedural: minus-d vs simple", "accuracy_difference_pct")
    assert [as_printed(paper_value(*place)) for place in (random, minus_d)] == ["> .99", "−12.08"]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_nondominated_points_are_those_that_no_point_beats(points):
    array = np.array(points, dtype=float)
    naive = [not any(a >= x and b >= y and (a, b) != (x, y) for a, b in points) for x, y in points]
    assert nondominated(np.stack([array, array[::-1]])).tolist() == [naive, naive[::-1]]


def test_frontiers_are_of_those_that_compete_and_say_who_beats_whom():
    frame = run(policies="no-probe periodic simple oracle", protocols="paper released", seeds="0:20")
    strata, competing = {"spatial": ("objectstate", "graphnav")}, ("no-probe", "periodic", "simple")
    points = find_frontiers(frame, strata, competing, resamples=300)
    assert len(points) == 2 * 4
    assert points.loc[points["policy"] == "oracle", "stability"].isna().all()
    for _, own in points[points["competing"]].groupby("protocol"):
        front = nondominated(own[["success", "accuracy"]])
        assert own["nondominated"].tolist() == front.tolist()
        assert (own["beaten_by"] == "").tolist() == front.tolist()
        assert own["stability"].between(0, 1).all()
        assert own.loc[own["nondominated"], "stability"].max() > 0
    alone = frame[(frame["policy"] == "simple") & (frame["protocol"] == "paper")]
    assert stability_of(alone, ["simple"], 100).tolist() == [1.0]
