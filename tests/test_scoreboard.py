"""The scoreboard: what it runs, what it says, and its command."""

import functools
import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from processes import envprobe

from envprobe_core import run
from envprobe_core.analyses import scoreboard
from envprobe_core.analyses.scoreboard import as_records, choose_claims, load_scoreboard, needs, run_claims
from envprobe_core.cells import make_cell
from envprobe_core.claims import load_claims, places
from envprobe_core.claims.judge import NOT_TESTED, VERDICTS
from envprobe_core.claims.printed import paper_values
from envprobe_core.engine.running import record
from envprobe_core.errors import InputError
from envprobe_core.facts import FACTS, NOTICING
from envprobe_core.grid import COLUMNS
from envprobe_core.instances import exogenous, instances
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.reproduce.sections import find_sections
from envprobe_core.worlds import make_world

SEEDS = "0:60"


@functools.cache
def board():
    return load_scoreboard(seeds=SEEDS, resamples=200)


# --- what is run ------------------------------------------------------------------------------


def test_every_claim_gets_a_verdict_under_every_protocol():
    table = board()
    assert table["claim"].tolist() == [c.id for c in choose_claims() for _ in range(3)]
    assert table["protocol"].tolist() == ["paper", "observed", "released"] * len(load_claims())
    assert set(table["verdict"]) <= set(VERDICTS)
    untested = table[table["verdict"] == NOT_TESTED]
    assert len(untested) <= 0.02 * len(table), untested["reason"].tolist()
    assert untested["reason"].str.contains("episodes with a value").all()  # censored, nothing else


def test_claims_stand_in_the_papers_order_and_all_places_exist():
    positions = [places.order(claim.source) for claim in choose_claims()]
    assert positions == sorted(positions)
    assert {v.source for v in paper_values()} <= set(places.PLACES)
    with pytest.raises(InputError, match="no place 'tab:mian' in the paper; accepted: abstract"):
        places.place("tab:mian")


def test_nothing_is_run_that_no_claim_asks_for():
    claims = choose_claims(["ablation"])
    wanted = needs(claims)
    frame = run_claims(claims, ["paper"], seeds="0:3")
    assert list(frame.columns) == list(COLUMNS)
    cells = set(frame[["regime", "world", "policy"]].itertuples(index=False, name=None))
    assert cells == set(wanted)
    assert {world for _, world, _ in wanted} == {"tooldag"}
    assert wanted["S2", "tooldag", "minus-c"] == {"accuracy", "success"}


def test_the_frame_holds_what_the_grid_holds():
    """The same episodes come out when cells run together with others and their facts."""
    claims = choose_claims()
    asked = set().union(*needs(claims).values())
    assert asked <= FACTS.keys() | set(COLUMNS)
    frame = run_claims(claims, ["observed"], seeds="5:17")
    frame = frame[(frame["regime"] == "S2") & ~frame["policy"].str.contains("@")]
    grid = run(protocols=["observed"], seeds="5:17")
    key = ["world", "policy", "seed"]
    both = frame[list(COLUMNS)].merge(grid, on=key, suffixes=("", "_grid"), validate="one_to_one")
    assert len(both) == len(frame) > 0
    for name in set(COLUMNS) - set(key):
        pd.testing.assert_series_equal(both[name], both[f"{name}_grid"], check_names=False)


def test_processes_and_protocol_sets_move_nothing():
    claims = choose_claims(["budget", "set-up"])
    one = run_claims(claims, "paper released", seeds="0:12")
    two = run_claims(claims, "paper released", seeds="0:12", jobs=2)
    pd.testing.assert_frame_equal(one, two)
    alone = run_claims(claims, "released", seeds="0:12")
    part = one[one["protocol"] == "released"].reset_index(drop=True)
    pd.testing.assert_frame_equal(part, alone)


def test_claims_about_the_primary_regime_move_and_settings_stay():
    moved = {claim.id: claim for claim in choose_claims(regime="S3")}
    assert moved["main-procedural"].regime == "S3"
    assert moved["horizon-s2"].regime == "S2"
    assert moved["stress-gain-s1"].regime == "S1"
    with pytest.raises(InputError, match="unknown regime"):
        choose_claims(regime="S9")
    with pytest.raises(InputError, match="unknown section 'nope'"):
        choose_claims("nope")
    table = load_scoreboard("main", "observed", "perfect", "0:12", "R1", 100)
    assert set(table["regime"]) == {"R1"}
    assert set(table["profile"]) == {"perfect"}
    with pytest.raises(InputError, match="one is named twice"):
        load_scoreboard("main", "paper paper", seeds="0:12")


# --- the facts, recomputed plainly ------------------------------------------------------------


@pytest.mark.parametrize("world", ["tooldag", "objectstate", "graphnav"])
@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_answers_and_traces_against_plain_loops(world, protocol):
    for policy in ("no-probe", "simple"):
        cell, seeds = make_cell(world, policy, protocol=PROTOCOLS[protocol]), np.arange(7)
        recording = record(cell, seeds, scores_all=False)
        found = {
            name: FACTS[name](cell, seeds, recording)[name] for name in ("answered", "noticed", "changes")
        }
        for row in range(len(seeds)):
            answered = sum(
                recording.belief[row, t + 1, field] == recording.answer[row, t]
                for t, field in enumerate(recording.probe[row])
                if field >= 0
            )
            assert found["answered"][row] == answered
        built = make_world(world, cell.regime, cell.protocol)
        moved, right = (
            exogenous(built, instances(built, seeds), recording),
            recording.belief == recording.gold,
        )
        counts = np.zeros((2, len(seeds)), dtype=int)
        for row, t, field in np.argwhere(moved & right[:, :-1]):
            if t + 1 + NOTICING <= recording.steps[row]:
                gold, held = recording.gold[row, t + 1 :, field], right[row, t + 1 :, field]
                seen = any(held[k] and (gold[: k + 1] == gold[0]).all() for k in range(NOTICING + 1))
                counts[:, row] += 1, seen
        np.testing.assert_array_equal(counts, [found["changes"], found["noticed"]])


# --- as records, pages and sentences ----------------------------------------------------------


def test_records_are_plain_and_complete():
    records = as_records(board())
    assert json.loads(json.dumps(records, allow_nan=False)) == records
    assert all(tuple(record) == tuple(scoreboard.RECORDED) for record in records)
    about = {claim.id: (claim.about, claim.family) for claim in load_claims()}
    assert all((r["kind"], r["family"]) == about[r["id"]] for r in records)
    main = {r["protocol"]: r for r in records if r["id"] == "main-procedural"}
    assert {r["paper"] for r in main.values()} == {11.76}
    assert all(r["interval"][0] <= r["ours"] <= r["interval"][1] for r in main.values())
    assert all((r["interval"] is None) == (r["verdict"] == NOT_TESTED) for r in records)
    rows = pd.read_csv(io.StringIO(scoreboard.as_csv(board())))
    assert rows["ours"].notna().tolist() == [r["ours"] is not None for r in records]
    assert rows[["id", "verdict"]].to_dict("records") == [
        {name: r[name] for name in ("id", "verdict")} for r in records
    ]
    assert rows["reason"].notna().all()


def test_the_table_shows_every_claim_with_a_sign_and_a_word():
    shown = scoreboard.show_scoreboard(board()).html
    claims = load_claims()
    assert shown.count('<th scope="row">') == len(claims)
    marks = re.findall(r'class="verdict verdict-([a-z-]+)">(.)&nbsp;([a-z, ]+)<', shown)
    assert len(marks) == 3 * len(claims)
    assert {word: sign for _, sign, word in marks}.items() <= scoreboard.SIGNS.items()
    assert len(set(scoreboard.SIGNS.values())) == len(VERDICTS)
    assert "+11.76 points <small>[10.77, 12.75]</small>" in shown
    heads = re.findall(r'class="scoreboard-place">.*?<span>(.*?)</span>', shown)
    assert heads == list(dict.fromkeys(heads))
    assert heads[0] == "Abstract"


def test_every_claim_leads_to_a_section_that_exists():
    pages = {claim.section: scoreboard.page_of(claim.section) for claim in load_claims()}
    assert None not in pages.values(), pages
    shown = scoreboard.show_scoreboard(board(), "executed/").html
    assert set(re.findall(r'href="executed/([a-z-]+)\.html"', shown)) <= set(find_sections())


# --- the command ------------------------------------------------------------------------------


def test_the_command_writes_one_json_array():
    result = envprobe("claims", "--json", "--seeds", SEEDS, "--resamples", "200", "--section", "main")
    assert (result.returncode, result.stderr) == (0, "")
    records = json.loads(result.stdout)
    expected = [r for r in as_records(board()) if r["section"] == "main"]
    assert records == expected


def test_the_command_prints_a_table_a_section():
    result = envprobe(
        "claims", "--seeds", "0:12", "--resamples", "100", "--section", "ablation", "--protocol", "paper"
    )
    assert result.returncode == 0, result.stderr
    assert "ablation" in result.stdout
    assert "holds, other size" in result.stdout
    assert "Table 3" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--profile", "nobody"], "unknown profile 'nobody'; accepted: typical"),
        (["--section", "nope"], "unknown section 'nope'; accepted: environments"),
        (["--protocol", "text"], "unknown protocol 'text'; accepted: paper"),
        (["--regime", "S9"], "unknown regime 'S9'; accepted: S1"),
        (["--resamples", "5"], "5 is not in 100..1000000"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(arguments, words):
    result = envprobe("claims", "--json", *arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("envprobe: ")
    assert result.stderr.count("\n") == 1
    assert words in result.stderr
