"""The section on language models: its replay files, what joins the book's tables, and what it shows."""

from __future__ import annotations

import ast
import asyncio
import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from envprobe_book.analyses.model_runs import priced
from envprobe_book.analyses.scoreboard import add_replays, as_csv
from envprobe_book.claims import load_claims
from envprobe_book.claims.judge import judge
from envprobe_book.pages.model_episode import Step, show_steps
from envprobe_book.pages.scoreboard import show_scoreboard
from envprobe_book.reproduce.parameters import check_words
from envprobe_book.reproduce.sections import find_sections
from envprobe_core import run as run_grid
from envprobe_core.conditions import find_profile
from envprobe_core.errors import InputError
from envprobe_core.experiment import run_frame
from envprobe_core.llm import running
from envprobe_core.llm.agent import finish_in_loop
from envprobe_core.protocols import in_words
from envprobe_core.sources import ROOT

COMMITTED = Path(__file__).parent / "replays" / f"first-prompts{running.SUFFIX}"
HOSTILE = "<script>alert(1)</script>`|x"
CELLS = {
    cell["id"]: "".join(cell["source"])
    for cell in json.loads((ROOT / "notebooks" / "language-model.ipynb").read_text())["cells"]
}


def execute(*ids, before=None, **given):
    """Execute cells of the section with other parameters; return their names, and what the last one shows."""
    space = dict(before or {})
    if before is None:
        exec(CELLS["1"], space)
    space |= given
    for name in ids:
        *body, shown = ast.parse(CELLS[name]).body
        last = [] if isinstance(shown, ast.Expr) else [shown]
        exec(compile(ast.Module(body + last, []), name, "exec"), space)
        value = None if last else eval(compile(ast.Expression(shown.value), name, "eval"), space)
    return space, value


def spoiled(folder, change=lambda lines: None, name="other", **agent):
    """A copy of the committed file, its lines changed, or what it says of the agent."""
    lines = [json.loads(line) for line in gzip.decompress(COMMITTED.read_bytes()).splitlines()]
    lines[0]["inputs"]["agent"] |= agent
    change(lines)
    lines[-1]["answers"] = len(lines) - 2
    path = folder / f"{name}{running.SUFFIX}"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    return path


@pytest.fixture(scope="module")
def begun():
    """The section's names after its first cell, which replays the file, and what is said of the file."""
    return execute("answer", "imports", "runs", "2", replay=str(COMMITTED), resamples=100)


# ---------------------------------------------------------------- a replay file


def test_an_old_file_replays_and_is_the_simulated_agents(begun):
    """Answers to the first prompts, of which today's are the second."""
    space, said = begun
    run = space["run"]
    assert run.file.agent.prompt_version == "1-4e55db8f"
    assert (run.fault, run.scripted, run.seeds) == ("", True, 12)
    cells = [replace(cell, profile=find_profile("typical")) for cell in run.inputs.conditions]
    played = run_frame(cells, run.inputs.seeds_of_conditions)
    assert not run.frame[["invalid_share", "loose_share"]].any(axis=None)
    there = run.frame.drop(columns=["profile", "invalid_share", "loose_share"])
    assert played.drop(columns="profile").equals(there)
    assert "**No language model was asked.**" in said.markdown
    cells = space["cells"]
    assert (cells["accuracy"] == cells["simulated_accuracy"]).all()
    assert cells["accuracy_low"].lt(cells["accuracy"]).all()
    assert (cells[["usable", "invalid"]] == [1, 0]).all(axis=None)
    assert execute("gains", before=space, resamples=100)[0]["gains"].empty  # it has no policy to compare with
    _, shown = execute("27", before=space)  # an episode, step by step; what is said stays text
    assert shown.html.count("<tr>") == 1 + 31
    assert "<script>" not in show_steps("t", [Step(0, HOSTILE, HOSTILE, HOSTILE, [HOSTILE])]).html


@pytest.mark.parametrize(
    ("change", "agent", "fault"),
    [
        (lambda lines: None, {"prompt_version": "0-older"}, "unknown prompts '0-older'"),
        (lambda lines: lines.pop(100), {}, "an answer is missing"),
        (lambda lines: lines[0].update(result_hash="0" * 64), {}, "other episodes come out"),
    ],
)
def test_what_does_not_come_out_again_has_no_results(change, agent, fault, tmp_path):
    path = spoiled(tmp_path, change, **agent)
    run = running.replay_file(path)
    assert fault in run.fault
    assert run.frame is None
    with pytest.raises(InputError, match=f"has no results here: .*{fault}"):
        execute("answer", "imports", "runs", replay=str(path), resamples=100)


def test_files_are_found_by_name_told_apart_and_named_where_they_are_none(tmp_path):
    for name in ("one", "two"):
        spoiled(tmp_path, name=name, prompt_version="0-older")
    labels = [each.label for each in running.load_replays(tmp_path)]
    assert labels == [f"scripted-server, prompts 0-older, {name}" for name in ("one", "two")]
    (tmp_path / f"broken{running.SUFFIX}").write_bytes(b"broken")
    with pytest.raises(InputError, match=r"broken\.replay\.gz"):
        running.load_replays(tmp_path)
    with pytest.raises(ValueError, match=r"accepted: .*path of a file"):
        check_words("replay", "nowhere")
    assert running.find_replay("tests/replays/first-prompts.replay.gz") == COMMITTED


def test_what_a_file_says_stays_text(begun, tmp_path, monkeypatch):
    path = spoiled(tmp_path, lambda lines: lines[0].update(note=HOSTILE), model=HOSTILE)
    run = running.replay_file(path)
    told = {"run": run, "file": run.file, "agent": run.file.agent, "inputs": run.inputs}
    space, said = execute("2", before=begun[0] | told)
    monkeypatch.setattr(running, "load_replays", lambda: [space["run"]])
    table = execute("33", before=space)[1]
    for text in (said.markdown, table.markdown()):
        assert HOSTILE not in text
        pieces = text.replace("\\|", "|").split("`")
        assert not any("<script>" in piece for piece in pieces[::2])  # only ever inside code
    assert "<script>" not in table.html()


def test_a_replay_is_one_more_column_of_the_scoreboard(begun):
    run = begun[0]["run"]
    grid = run_grid(policies=run.inputs.policies, protocols="paper observed", seeds="0:12")
    claims, label = load_claims(section="main"), f"paper: {run.label}"
    board = judge(grid, claims, protocols=["paper", "observed"], resamples=100)
    assert len(add_replays(board, [run], claims, "S1", "paper observed", 100)) == len(board)
    board = add_replays(board, [run], claims, "S2", "paper observed", 100)
    titles = {name: section.title for name, section in find_sections().items()}
    assert board["protocol"].tolist() == ["paper", "observed", label] * len(claims)
    verdicts = board.pivot(index="claim", columns="protocol", values="verdict")
    assert (verdicts["paper"] == verdicts[label]).all()
    assert f'<th scope="col">{in_words(label)}</th>' in show_scoreboard(board, titles).html
    board.loc[board["protocol"] == label, "invalid"] = 0.0316
    assert f"{in_words(label)}; 3.2% of belief updates invalid</th>" in show_scoreboard(board, titles).html
    assert f',"{label}",{run.file.agent.model},' in as_csv(board)


# ---------------------------------------------------------------- what is asked, and what it costs


@pytest.mark.parametrize(
    ("worlds", "regime", "protocol", "profile", "seeds"),
    [
        ("tooldag", "S1", "released", "typical", "7"),
        ("objectstate", "S3", "observed", "perfect", "0:40"),
        ("graphnav", "S2", "paper", "typical", "0:220"),
    ],
)
def test_the_situation_shown_is_whole(begun, worlds, regime, protocol, profile, seeds):
    own = {"worlds": worlds, "regime": regime, "protocol": protocol, "profile": profile, "seeds": seeds}
    space, effect = execute("4", "15", before=begun[0], **own)
    assert f"\nStep: {space['asked'].step} of " in space["situation"]
    assert len(space["texts"]) == 1 + 6 + 1
    pairs = zip(effect.rows, space["update"].entries, strict=True)
    for row, (field, value, staleness, confidence) in pairs:
        evidence = str(space["asked"].step - staleness)
        assert row[0] == space["asked"].world.field_names[field]
        assert row[4:] == ["?" if value < 0 else str(value), evidence, str(confidence)]


def test_the_estimate_is_of_the_grid_and_the_list(begun):
    own = {"worlds": "tooldag", "policies": "simple periodic", "regime": "S1", "protocol": "paper released"}
    space, _ = execute("4", "29", "29-cost", "31", before=begun[0], seeds="0:3", dry_run=3, **own)
    found, listed = space["estimates"], priced(space["prices"], space["tokens"])
    assert found["episodes"].tolist() == [6, 6]
    assert found.loc[0, "steps"] == 6 * 21
    assert (found["calls"] < found["steps"]).all()
    assert listed["the grid"][0] == space["cost"]["cost"][0]


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
