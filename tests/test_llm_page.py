"""The section on language models: its replay file, what joins the book's tables, and what it shows."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from demonstration import demonstrated_run, make_replay

from envprobe_core.analyses.main_table import claims_at, load_comparisons, show_gains
from envprobe_core.claims.judge import judge as evaluate_all
from envprobe_core.errors import InputError
from envprobe_core.experiments import load_grid
from envprobe_core.llm import replayed
from envprobe_core.llm.prices import read_prices
from envprobe_core.llm.replayed import ReplayedRun, join_comparisons, join_scoreboard, replay_run
from envprobe_core.llm.running import finish_in_loop
from envprobe_core.model_page import costs, exchange, results
from envprobe_core.reproduce.parameters import VOCABULARIES
from envprobe_core.scoreboard_page import as_csv, show_scoreboard

COMMITTED = replayed.FOLDER / f"scripted{replayed.SUFFIX}"
EVERY = "tooldag objectstate graphnav"
HOSTILE = "<script>alert(1)</script>`|x"


def spoiled(change: Callable[[list[Any]], None], folder: Path, name: str = "other") -> Path:
    """A copy of the committed file, its lines changed."""
    lines = [json.loads(line) for line in gzip.decompress(COMMITTED.read_bytes()).splitlines()]
    change(lines)
    lines[-1]["answers"] = len(lines) - 2
    path = folder / f"{name}{replayed.SUFFIX}"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    return path


def older_prompts(lines: list[Any]) -> None:
    lines[0]["inputs"]["agent"]["prompt_version"] = "0-older"


def lose_one(lines: list[Any]) -> None:
    del lines[100]


def alter_one(lines: list[Any]) -> None:
    for line in lines[1:-1]:
        answer = json.loads(line[1])
        line[1] = json.dumps(answer | {"act": "wait"})


def call_it_hostile(lines: list[Any]) -> None:
    lines[0]["inputs"]["agent"]["model"] = lines[0]["note"] = HOSTILE


@pytest.fixture(scope="module")
def run() -> ReplayedRun:
    return replay_run(COMMITTED)


# ---------------------------------------------------------------- the file that the book comes with


def test_the_scripted_server_makes_the_same_file_again(tmp_path: Path) -> None:
    """Every world and policy on the first seeds: the same questions and the same answers."""
    again = tmp_path / "again.gz"
    make_replay(again, demonstrated_run("0:3"))
    (asked, *answers), (made_from, *committed) = (
        gzip.decompress(path.read_bytes()).splitlines() for path in (again, COMMITTED)
    )
    assert len(answers) > len(committed) / 5
    assert set(answers[:-1]) <= set(committed[:-1]), "`make replay` makes it anew"
    first, whole = json.loads(asked), json.loads(made_from)
    assert first["note"] == whole["note"]
    assert first["inputs"] == whole["inputs"] | {"seeds": "0:3"}
    assert COMMITTED.stat().st_size < 300_000


def test_its_run_is_the_simulated_agents_and_says_that_no_model_was_asked(run: ReplayedRun) -> None:
    assert (run.fault, run.scripted, run.seeds) == ("", True, 12)
    beside = results.load_beside(run, "typical")
    assert results.same_episodes(run.frame, beside).all()
    assert "**No language model was asked.**" in results.tell_origin(run).markdown
    assert f"All {len(beside)} episodes equal" in results.tell_results(run, beside).markdown
    perfect = results.load_beside(run, "perfect")
    same = int(results.same_episodes(run.frame, perfect).sum())
    assert same < len(perfect)
    told = results.tell_results(run, perfect).markdown
    assert told.startswith(f"Of {len(perfect)} episodes")
    cells = [row[-1] for row in results.show_results(run, perfect).rows]
    assert sum(int(cell.split(" of ")[0]) for cell in cells) == same


@pytest.mark.parametrize(
    ("change", "fault"),
    [(older_prompts, "prompts"), (lose_one, "an answer is missing"), (alter_one, "")],
    ids=["prompts", "lost", "altered"],
)
def test_what_does_not_come_out_again_has_no_results(
    change: Callable[[list[Any]], None], fault: str, tmp_path: Path
) -> None:
    other = replay_run(spoiled(change, tmp_path))
    assert other.fault
    assert fault in other.fault
    assert other.frame is None
    beside = results.load_beside(other, "typical")
    assert "**It has no results here:**" in results.tell_origin(other).markdown
    assert results.show_results(other, beside).rows[0][0] == "–"
    assert results.show_claims(other, 100).rows == [["–", "not tested"]]
    table = results.load_joined(other, beside, 100)
    assert set(table["protocol"]) == {"paper"}
    assert other.fault in results.tell_joined([other], "S2", "paper").markdown


def test_runs_of_one_label_are_told_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        spoiled(older_prompts, tmp_path, name)
    labels = [each.label for each in replayed.load_replays(tmp_path)]
    assert labels == [f"scripted-server, prompts 0-older, {name}" for name in ("one", "two")]


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / f"broken{replayed.SUFFIX}").write_bytes(b"broken")
    with pytest.raises(InputError, match=r"broken\.replay\.gz"):
        replayed.load_replays(tmp_path)
    with pytest.raises(ValueError, match="accepted: scripted"):
        VOCABULARIES["replay"]("nowhere")
    assert replayed.find_replay("scripted") == replayed.find_replay("data/replays/scripted.replay.gz")


# ---------------------------------------------------------------- joining the book's tables


def test_a_replay_is_one_more_row_and_one_more_column(run: ReplayedRun) -> None:
    grid = load_grid(policies="periodic simple cd minus-u", protocols="paper observed", seeds="0:12")
    table = load_comparisons(grid, resamples=100)
    joined = join_comparisons(table, [run], protocols="paper observed", resamples=100)
    label = f"paper: {run.label}"
    own = joined[joined["protocol"] == label]
    same = table[table["protocol"] == "paper"]
    numbers = ["method", "base", "estimate", "low", "high", "success_method", "only_arm"]
    np.testing.assert_array_equal(own[numbers].to_numpy(), same[numbers].to_numpy())
    sources = [row[1] for row in show_gains(joined).rows]
    assert sources == ["*printed*", "`paper`", "`observed`", f"`{label}`"] * 5

    claims = claims_at("main", "S2")
    board = evaluate_all(grid, claims, protocols=["paper", "observed"], resamples=100)
    board = join_scoreboard(board, [run], claims, protocols="paper observed", resamples=100)
    assert board["protocol"].tolist() == ["paper", "observed", label] * len(claims)
    assert board["claim"].tolist() == [claim.id for claim in claims for _ in range(3)]
    verdicts = board.pivot(index="claim", columns="protocol", values="verdict")
    assert (verdicts["paper"] == verdicts[label]).all()
    page = show_scoreboard(board).html
    assert f'<th scope="col"><code>{label}</code></th>' in page
    assert f',"{label}",{run.file.agent.settings.model},' in as_csv(board)


def test_another_regime_or_protocol_takes_no_part(run: ReplayedRun) -> None:
    grid = load_grid(policies="periodic simple", regime="S1", protocols="observed", seeds="0:12")
    table = load_comparisons(grid, "S1", resamples=100)
    assert len(join_comparisons(table, [run], "S1", "observed", 100)) == len(table)
    assert len(join_comparisons(table, [run], "S2", "observed", 100)) == len(table)
    for regime, protocols in (("S1", "paper"), ("S2", "observed released")):
        assert "is left out" in results.tell_joined([run], regime, protocols).markdown


def test_what_a_file_says_stays_text(tmp_path: Path) -> None:
    path = spoiled(call_it_hostile, tmp_path)
    other = replay_run(path)
    texts = [
        results.tell_origin(other).markdown,
        results.show_replays([other]).markdown(),
        results.tell_joined([other], "S2", "paper").markdown,
    ]
    for text in texts:
        assert HOSTILE not in text
        pieces = text.replace("\\|", "|").split("`")
        assert not any("<script>" in piece for piece in pieces[::2])  # only ever inside code
    assert "<script>" not in results.show_replays([other]).html()


# ---------------------------------------------------------------- what is asked, and what it costs


@pytest.mark.parametrize(
    "setting",
    [
        ("S2", "paper", "typical", "0:220"),
        ("S3", "observed", "perfect", "0:40"),
        ("S1", "released", "typical", "7"),
    ],
    ids=lambda setting: setting[0],
)
@pytest.mark.parametrize("world", EVERY.split())
def test_the_situation_shown_is_whole(world: str, setting: tuple[str, ...]) -> None:
    shown = exchange.load_exchange(world, *setting, "m")
    assert exchange.show_system(shown).markdown == f"~~~text\n{shown.system}\n~~~"
    assert exchange.show_situation(shown).markdown == f"~~~text\n{shown.situation}\n~~~"
    assert f"\nStep: {shown.step} of " in shown.situation
    for row, (field, value, staleness, confidence) in zip(
        exchange.show_effect(shown).rows, shown.update.entries, strict=True
    ):
        assert row[0] == str(field)
        assert row[5:] == ["?" if value < 0 else str(value), str(staleness), str(confidence)]
    assert len(exchange.tell_exchange(shown).markdown) > 100


def test_the_estimate_is_of_the_grid_and_the_list() -> None:
    found = costs.load_estimates(
        "tooldag", "simple periodic", "S1", "paper released", "0:3", "gpt-4o-mini", 3
    )
    assert found["episodes"].tolist() == [6, 6]
    assert found.loc[0, "steps"] == 6 * 21
    assert (found["calls"] < found["steps"]).all()
    table = costs.show_prices(found)
    assert [row[0] for row in table.rows] == [f"`{name}`" for name in read_prices()]
    assert table.rows[0][-1] == costs.show_estimates(found, "gpt-4o-mini").rows[0][-2]
    told = costs.tell_estimates(found, "gpt-4o-mini").markdown
    assert "costs most under `paper`" in told
    assert "costs about" in costs.tell_estimates(found[:1], "gpt-4o-mini").markdown


def test_work_ends_where_a_loop_runs_and_brings_no_error_of_its_own() -> None:
    async def fail() -> None:
        raise ConnectionRefusedError

    async def notebook() -> None:
        with pytest.raises(ConnectionRefusedError):
            finish_in_loop(fail())
        assert finish_in_loop(asyncio.sleep(0, "done")) == "done"

    asyncio.run(notebook())
    with pytest.raises(ConnectionRefusedError) as caught:
        finish_in_loop(fail())
    assert caught.value.__context__ is None  # what a lost connection is named after
