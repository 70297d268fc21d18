"""The section on language models: its replay file, what joins the book's tables, and what it shows."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

import pytest
from demonstration import demonstrated_run, make_replay

from envprobe_core import model_page as page
from envprobe_core import run as run_grid
from envprobe_core.analyses.scoreboard import as_csv, show_scoreboard
from envprobe_core.claims.judge import judge as evaluate_all
from envprobe_core.claims.records import load_claims
from envprobe_core.errors import InputError
from envprobe_core.llm import replayed
from envprobe_core.llm.agent import finish_in_loop
from envprobe_core.llm.calls import read_prices
from envprobe_core.llm.identity import FIRST, PROMPT_VERSION
from envprobe_core.llm.replayed import join_scoreboard, replay_run
from envprobe_core.protocols import in_words
from envprobe_core.reproduce.parameters import VOCABULARIES

COMMITTED = Path(__file__).parent / "replays" / f"first-prompts{replayed.SUFFIX}"
EVERY = "tooldag objectstate graphnav"
HOSTILE = "<script>alert(1)</script>`|x"


def spoiled(change, folder, name="other"):
    """A copy of the committed file, its lines changed."""
    lines = [json.loads(line) for line in gzip.decompress(COMMITTED.read_bytes()).splitlines()]
    change(lines)
    lines[-1]["answers"] = len(lines) - 2
    path = folder / f"{name}{replayed.SUFFIX}"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    return path


def older_prompts(lines):
    lines[0]["inputs"]["agent"]["prompt_version"] = "0-older"


def lose_one(lines):
    del lines[100]


def alter_one(lines):
    for line in lines[1:-1]:
        answer = json.loads(line[1])
        line[1] = json.dumps(answer | {"act": "wait"})


def call_it_hostile(lines):
    lines[0]["inputs"]["agent"]["model"] = lines[0]["note"] = HOSTILE


@pytest.fixture(scope="module")
def run():
    return replay_run(COMMITTED)


# ---------------------------------------------------------------- the file that the book comes with


def test_an_old_file_replays_and_is_the_simulated_agents(run):
    """Answers to the first prompts, of which today's are the second."""
    assert run.file.agent.prompt_version == FIRST
    assert (run.fault, run.scripted, run.seeds) == ("", True, 12)
    beside = page.beside(run, "typical")
    assert page.same_episodes(run.frame, beside).all()
    assert "**No language model was asked.**" in page.show_origin(run).markdown
    cells = page.cells(run, beside, 100)
    assert (cells["same"] == cells["episodes"]).all()
    assert (cells["accuracy"] == cells["simulated_accuracy"]).all()
    assert cells["accuracy_low"].lt(cells["accuracy"]).all()
    assert (cells[["usable", "invalid"]] == [1, 0]).all(axis=None)
    assert not page.same_episodes(run.frame, page.beside(run, "perfect")).all()


def test_a_run_through_the_scripted_server_can_be_handed_on(tmp_path):
    """Every world and policy: asked with today's prompts, exported, replayed."""
    assert make_replay(tmp_path / "again.replay.gz", demonstrated_run("0:2")) > 400
    again = replay_run(tmp_path / "again.replay.gz")
    assert (again.fault, again.file.agent.prompt_version) == ("", PROMPT_VERSION)
    assert page.same_episodes(again.frame, page.beside(again, "typical")).all()


@pytest.mark.parametrize(
    ("change", "fault"),
    [(older_prompts, "prompts"), (lose_one, "an answer is missing"), (alter_one, "")],
    ids=["prompts", "lost", "altered"],
)
def test_what_does_not_come_out_again_has_no_results(change, fault, tmp_path):
    other = replay_run(spoiled(change, tmp_path))
    assert other.fault
    assert fault in other.fault
    assert other.frame is None
    assert "**It has no results here:**" in page.show_origin(other).markdown
    assert page.cells(other, page.beside(other, "typical"), 100).empty


def test_runs_of_one_label_are_told_apart(tmp_path):
    for name in ("one", "two"):
        spoiled(older_prompts, tmp_path, name)
    labels = [each.label for each in replayed.load_replays(tmp_path)]
    assert labels == [f"scripted-server, prompts 0-older, {name}" for name in ("one", "two")]


def test_a_file_that_is_none_is_named(tmp_path):
    (tmp_path / f"broken{replayed.SUFFIX}").write_bytes(b"broken")
    with pytest.raises(InputError, match=r"broken\.replay\.gz"):
        replayed.load_replays(tmp_path)
    with pytest.raises(ValueError, match=r"accepted: .*path of a file"):
        VOCABULARIES["replay"]("nowhere")
    assert replayed.find_replay("tests/replays/first-prompts.replay.gz") == COMMITTED


# ---------------------------------------------------------------- joining the book's tables


def test_a_replay_is_one_more_column_of_the_scoreboard(run):
    grid = run_grid(policies=run.inputs.policies, protocols="paper observed", seeds="0:12")
    claims, label = load_claims(section="main"), f"paper: {run.label}"
    board = evaluate_all(grid, claims, protocols=["paper", "observed"], resamples=100)
    board = join_scoreboard(board, [run], claims, protocols="paper observed", resamples=100)
    assert board["protocol"].tolist() == ["paper", "observed", label] * len(claims)
    assert board["claim"].tolist() == [claim.id for claim in claims for _ in range(3)]
    verdicts = board.pivot(index="claim", columns="protocol", values="verdict")
    assert (verdicts["paper"] == verdicts[label]).all()
    shown = show_scoreboard(board).html
    assert f'<th scope="col">{in_words(label)}</th>' in shown
    assert f',"{label}",{run.file.agent.model},' in as_csv(board)
    other = join_scoreboard(board, [run], claims, "S1", "paper observed", 100)
    assert len(other) == len(board)


def test_what_a_file_says_stays_text(tmp_path):
    path = spoiled(call_it_hostile, tmp_path)
    other = replay_run(path)
    texts = [page.show_origin(other).markdown, page.show_replays([other]).markdown()]
    for text in texts:
        assert HOSTILE not in text
        pieces = text.replace("\\|", "|").split("`")
        assert not any("<script>" in piece for piece in pieces[::2])  # only ever inside code
    assert "<script>" not in page.show_replays([other]).html()


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
def test_the_situation_shown_is_whole(world, setting):
    shown = page.find_exchange(world, *setting, "m")
    assert f"\nStep: {shown.step} of " in shown.texts[-1]
    assert len(shown.texts) == 1 + 6 + 1
    pairs = zip(page.show_effect(shown).rows, shown.update.entries, strict=True)
    for row, (field, value, staleness, confidence) in pairs:
        assert row[0] == str(field)
        evidence = str(shown.step - staleness)
        assert row[5:] == ["?" if value < 0 else str(value), evidence, str(confidence)]
    assert len(page.show_exchange(shown).markdown) > 100


def test_the_estimate_is_of_the_grid_and_the_list():
    found = page.estimates("tooldag", "simple periodic", "S1", "paper released", "0:3", "gpt-4o-mini", 3)
    assert found["episodes"].tolist() == [6, 6]
    assert found.loc[0, "steps"] == 6 * 21
    assert (found["calls"] < found["steps"]).all()
    listed = page.priced(found.iloc[0])
    assert listed["model"].tolist() == list(read_prices())
    assert listed["price"][0] == found["price"][0]


def test_work_ends_where_a_loop_runs_and_brings_no_error_of_its_own():
    async def fail():
        raise ConnectionRefusedError

    async def notebook():
        with pytest.raises(ConnectionRefusedError):
            finish_in_loop(fail())
        assert finish_in_loop(asyncio.sleep(0, "done")) == "done"

    asyncio.run(notebook())
    with pytest.raises(ConnectionRefusedError) as caught:
        finish_in_loop(fail())
    assert caught.value.__context__ is None  # what a lost connection is named after
