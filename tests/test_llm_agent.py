"""The language-model agent: its prompts as text, the driver, the judge, and the scripted brain."""

import asyncio
import hashlib
import json
import re
from collections import defaultdict
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scripted import Scripted, answer, read_situation, world_of
from strategies import cells

from envprobe_core.agents.profiles import PROFILES, AgentProfile
from envprobe_core.cells import make_cell
from envprobe_core.engine.loop import PROPOSE
from envprobe_core.engine.records import UNKNOWN, WAIT
from envprobe_core.engine.running import record, score, setting_of, take
from envprobe_core.llm import PROMPT_VERSION, ModelAgent
from envprobe_core.llm.agent import LanguageModelAgent, exchanges, prompts_of, run_model, simulated_setting
from envprobe_core.llm.calls import Answer
from envprobe_core.llm.prompts import (
    DEMAND,
    JUDGE_TITLE,
    LONGEST_ECHO,
    UNCHANGED,
    VERSIONS,
    WORDS,
    SituationWriter,
    find_version,
)
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PAPER, PROTOCOLS, RELEASED, parse_protocol
from envprobe_core.runs.tables import step_table
from envprobe_core.worlds import WORLDS, make_world

MODEL = ModelAgent("local", PROMPT_VERSION, "scripted")
TURNS = 7  # messages before the situation: the rules, and three worked examples
GATE_WORDS = ("probe", "budget", "threshold", "policy", "gold")
REQUEST_KEYS = ["model", "messages", "response_format", "temperature", "max_tokens", "seed"]


class Asker(Scripted):
    """The scripted brain, with every request it was asked; a test may change what it answers."""

    def __init__(self, cell, change=lambda request, answered: answered):
        super().__init__(cell.profile)
        self.requests, self.change = [], change

    async def ask(self, request, identity, spoilt=""):
        self.requests.append(request)
        await asyncio.sleep(0)
        return self.change(request, await super().ask(request, identity, spoilt))

    @property
    def bodies(self):
        return [json.dumps(request, sort_keys=True) for request in self.requests]


def run(cell, seeds, asker, rows=1, live=8, how=MODEL):
    async def running():
        live_blocks = asyncio.Semaphore(live)
        return await run_model(cell, seeds, asker.ask, how, live=live_blocks, rows=rows)

    asked = asyncio.run(running())
    return asked.trajectory, pd.DataFrame(asked.tally)


def requests_of(cell, seeds, rows=1):
    asker = Asker(cell)
    run(cell, seeds, asker, rows=rows)
    return asker


def is_case(request):
    return request["messages"][0]["content"].startswith(JUDGE_TITLE)


def assert_same(cell, seeds, trajectory):
    direct = record(cell, seeds)
    expected, found = (score(setting_of(cell), vars(one)).measures for one in (direct, trajectory))
    for name, column in expected.items():
        np.testing.assert_array_equal(column, found[name], name)
    assert step_table(cell, seeds, trajectory).equals(step_table(cell, seeds, direct))


# ---------------------------------------------------------------- the scripted brain


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_run_through_the_scripted_brain_equals_the_simulated_run(world, protocol):
    """All regimes, three profiles, every policy in its turn: all columns, and the bytes of the logs."""
    first = 9 * (3 * list(WORLDS).index(world) + list(PROTOCOLS).index(protocol))
    turns = product(("S1", "S2", "S3"), ("typical", "perfect", "scripted"))
    for turn, (regime, profile) in enumerate(turns, start=first):
        for policy in {list(POLICIES)[turn % len(POLICIES)], *(["judge"] if turn % 4 == 0 else [])}:
            cell = make_cell(world, policy, regime, PROTOCOLS[protocol], profile)
            seeds = np.array([17 + turn])
            trajectory, tally = run(cell, seeds, Scripted(cell.profile))
            assert_same(cell, seeds, trajectory)
            assert not tally[["invalid_updates", "invalid_verdicts", "reasks"]].any(axis=None)
            assert (tally.calls == trajectory.steps + 1 + tally.verdicts).all()


READERS = cells().filter(lambda cell: not cell.profile.scribe)
"""Agents that go by what a situation tells; a scribe goes by its last five steps and how they came out."""


@settings(max_examples=20, deadline=None)
@given(READERS)
def test_so_does_any_profile_protocol_regime_budget_and_threshold(cell):
    """And a rehearsal, which answers from the episode, asks and answers the same, line by line."""
    seeds, asker = np.array([3, 2**62 + 5]), Asker(cell)
    trajectory, _ = run(cell, seeds, asker, rows=2)
    assert_same(cell, seeds, trajectory)
    texts = [answer(request, cell.profile) for request in asker.requests]
    met = exchanges(cell, seeds, MODEL, cell.profile)
    rehearsed = [(json.dumps(one.request, sort_keys=True), one.answer) for one in met]
    assert sorted(rehearsed) == sorted(zip(asker.bodies, texts, strict=True))
    for request in asker.requests:  # a situation, written again from what was read in it, is the same text
        if not is_case(request):
            system, user = (request["messages"][place]["content"] for place in (0, -1))
            read = read_situation(user, world := world_of(system.partition("\n")[0]))
            world = make_world(world.name, cell.regime, world.protocol)  # the horizon is told, not read
            noted = read.block.copy()
            take(PROPOSE, simulated_setting(world, cell.regime, PROFILES["perfect"]), noted)
            read.block.mind = noted.mind
            again = SituationWriter(world, read.block.task).write(read.block, read.last_worked, np.array([0]))
            assert again == [user]
            assert len(user) < 5000  # however long the history


CARELESS = AgentProfile("careless", omit=0.5, slip=0.2, overwrite=0.2)
NOTES = {  # what a situation tells: a pattern, what hides it, and a cell in which it matters
    "told": (r"Told: \d+", "Told: nothing", "tooldag", "simple", "S2", PAPER),
    "stood still": (
        f"Observation: {UNCHANGED}\n", "", "tooldag", "random", "S2", parse_protocol("paper:clock=stands"),
    ),
    "worked": ("action: invalid", "action: valid", "tooldag", "self-uncertainty", "S2", RELEASED),
    "failed calls": (r"(?<=calls ago\): ).*", "nothing", "tooldag", "no-probe", "S2", RELEASED),
    "rooms seen": (r"(?<=place and step\): ).*", "nothing", "objectstate", "no-probe", "S2", PAPER),
    "validity": (r"\(invalid\)", "(valid)", "objectstate", "no-probe", "S2", PAPER),
    "distractor": (r"; location\(box 5\)=\d+", "", "objectstate", "no-probe", "S3", PAPER),
    "came from": (r"taken at \d+", "taken at 0", "graphnav", "no-probe", "S2", RELEASED),
    "edges met": (r"(?<=Edges met: ).*", "nothing", "graphnav", "no-probe", "S2", RELEASED),
    "keys of edges": (r" key \d+", "", "graphnav", "no-probe", "S3", PAPER),
}  # fmt: skip


@pytest.mark.parametrize("note", NOTES)
def test_nothing_a_situation_tells_is_idle(note, monkeypatch):
    """Hide one note, and the run is another: so the equality above tests each of them."""
    pattern, hidden, *place = NOTES[note]
    cell, seeds = replace(make_cell(*place), profile=CARELESS), np.arange(8)
    write = SituationWriter.write
    monkeypatch.setattr(
        SituationWriter, "write", lambda *given: [re.sub(pattern, hidden, text) for text in write(*given)]
    )
    without, _ = run(cell, seeds, Scripted(CARELESS), rows=8)
    assert not step_table(cell, seeds, without).equals(step_table(cell, seeds, record(cell, seeds)))


# ---------------------------------------------------------------- prompts


@pytest.mark.parametrize("version", list(VERSIONS)[1:])
def test_a_new_wording_is_a_new_version(version):
    """A version ends with the fingerprint of its texts, schemas, examples and situations, of every world."""
    digest = hashlib.sha256()
    for world, regime, protocol in product(WORLDS, ("S1", "S3"), PROTOCOLS.values()):
        cell = make_cell(world, "judge", regime, protocol)
        for one in exchanges(cell, np.array([0]), replace(MODEL, prompt_version=version)):
            digest.update(json.dumps([one.request, one.identity, one.answer]).encode())
        again = prompts_of(cell, version).asked_again({"messages": [], "temperature": 0}, "x", "y")
        digest.update(json.dumps(again).encode())
    name = version.rpartition("-")[0]
    assert f"{name}-{digest.hexdigest()[:8]}" == version, "a new wording is a new version in llm/prompts.py"
    assert find_version(name) == version


def test_the_public_codes_way_shows_five_actions_no_table_and_where_wanted_a_hint():
    cell, said = make_cell("graphnav", "periodic", "S1"), {}
    for version in ("public", "public-hint"):
        met = exchanges(cell, np.array([4]), replace(MODEL, prompt_version=find_version(version)))
        said[version] = [one.request["messages"] for one in met]
    for step, (plain, hinted) in enumerate(zip(said["public"], said["public-hint"], strict=True)):
        situation = plain[-1]["content"]
        assert "Table" not in situation
        recent = situation.partition("Your last actions: ")[2].partition("\n")[0]
        assert len(recent.split(", ")) == (min(step, 5) or 1)
        assert hinted[-1]["content"] == f"{situation}\nMethod hint: {WORDS['hints']['periodic']}"
        assert hinted[:-1] == plain[:-1]
    told = [re.search(r"Told: (\d+):(\S+)", messages[-1]["content"]) for messages in said["public"]]
    assert any(told)  # what a check has found is said, since no table shows it


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_prompt_tells_the_policy_budget_or_gate_and_what_never_changes_stands_first(world, protocol):
    """Same bytes for the same situation: requests of all policies differ only in what has happened."""
    rules, seeds = PROTOCOLS[protocol], np.arange(2)
    names = [name for name in POLICIES if name not in ("judge", "yoked")]
    told = re.compile(rf"\b(?:{'|'.join((*names, *GATE_WORDS))})s?\b", re.IGNORECASE).search
    begins, maps, firsts = set(), defaultdict(set), defaultdict(set)
    for turn, name in enumerate(names):
        cell = make_cell(world, name, "S1", rules, budget=None if turn % 2 else 2)
        for request in requests_of(cell, seeds[: 1 + (turn == 0)]).requests:
            user = request["messages"][-1]["content"]
            begins.add(json.dumps(request["messages"][:TURNS]))
            maps[request["seed"]].add(user.partition("\n\nTable")[0])
            if "\nStep: 0 of" in user:
                firsts[request["seed"]].add(json.dumps(request))
            assert not told(user)
            assert list(request) == REQUEST_KEYS
    assert len(begins) == 1
    assert [len(kinds[seed]) for kinds in (maps, firsts) for seed in (0, 1)] == [1] * 4
    assert not told(json.loads(begins.pop())[0]["content"].partition("\n")[2])
    quiet = [make_cell(world, "no-probe", "S1", rules), make_cell(world, "simple", "S1", rules, budget=0)]
    one, other = (requests_of(cell, seeds[:1]).bodies for cell in quiet)
    assert one == other


@pytest.mark.parametrize("policy", ["random", "judge"])
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_poisoned_gold_reaches_no_prompt(world, policy, protocol, monkeypatch):
    """The model is shown observations and answers only: all else may be wrong, no byte changes."""
    cell, seeds = make_cell(world, policy, "S2", PROTOCOLS[protocol]), np.arange(4)
    clean, lies = requests_of(cell, seeds, rows=4), []

    def lied_to(name):
        asked = getattr(LanguageModelAgent, name)

        async def deceived(self):
            """Let every gold value and the whole hidden state be wrong while the agent is at work."""
            block, domain = self._episodes.block, self._world.domain
            truth = block.gold.copy(), block.state.copy()
            block.gold[:, : len(domain)] = (block.gold[:, : len(domain)] + 1) % domain
            for part in block.state.dtype.names:
                block.state[part][:] ^= 1
            false = block.gold.tobytes(), block.state.tobytes()
            outcome = await asked(self)
            assert false == (block.gold.tobytes(), block.state.tobytes())
            assert all(lie != told.tobytes() for lie, told in zip(false, truth, strict=True))
            block.gold, block.state = truth
            lies.append(name)
            return outcome

        monkeypatch.setattr(LanguageModelAgent, name, deceived)

    lied_to("propose")
    lied_to("judge")
    assert requests_of(cell, seeds, rows=4).bodies == clean.bodies
    assert lies


# ---------------------------------------------------------------- the driver


class Delaying(Asker):
    """Holds back one episode's first answer until the answers of all others are given."""

    def __init__(self, cell, seeds):
        super().__init__(cell)
        self.left = (cell.regime.horizon + 1) * (len(seeds) - 1)
        self.others_are_done, self.seeds_under_way, self.most = asyncio.Event(), set(), 0

    async def ask(self, request, identity, spoilt=""):
        self.seeds_under_way.add(request["seed"])
        self.most = max(self.most, len(self.seeds_under_way))
        if request["seed"] == 0:
            await self.others_are_done.wait()
        self.left -= request["seed"] != 0
        if not self.left:
            self.others_are_done.set()
        if "Step: 30 of 30" in request["messages"][-1]["content"]:
            self.seeds_under_way.remove(request["seed"])
        return await super().ask(request, identity, spoilt)


def test_one_slow_answer_holds_up_nobody_and_no_more_are_live_than_allowed():
    cell, seeds = make_cell("tooldag", "simple"), np.arange(9)
    asker = Delaying(cell, seeds)
    trajectory, _ = run(cell, seeds, asker, live=4)
    assert asker.most == 4
    assert_same(cell, seeds, trajectory)


def test_blocks_of_any_size_give_the_same_rows_and_requests():
    for protocol in (PAPER, RELEASED):  # under `released` episodes end one after the other
        cell, seeds = make_cell("tooldag", "judge", "S1", protocol), np.arange(7)
        alone, block = Asker(cell), Asker(cell)
        one, counted = run(cell, seeds, alone, rows=1)
        other, counted_block = run(cell, seeds, block, rows=5)
        assert_same(cell, seeds, other)
        assert sorted(alone.bodies) == sorted(block.bodies)
        assert counted.equals(counted_block)
        assert one.belief.shape == other.belief.shape


@pytest.mark.parametrize("rows", [1, 4])
def test_an_infrastructure_failure_stops_the_run_as_itself(rows):
    cell = make_cell("tooldag", "simple")

    def fail(request, answered):
        if len(asker.requests) >= 20:
            raise ConnectionError("the server is gone")
        return answered

    asker = Asker(cell, fail)
    with pytest.raises(ConnectionError, match="the server is gone"):
        run(cell, np.arange(8), asker, rows=rows)
    assert len(asker.requests) < 20 + 8  # what was in flight, and nothing after


# ---------------------------------------------------------------- answers that cannot be used


def test_an_unusable_answer_is_asked_again_with_its_fault_named():
    def garble(request, answered):
        attempts = sum(message["content"].startswith(DEMAND) for message in request["messages"])
        return answered if attempts == 2 else Answer("\ud800" * 2000, used=answered.used)

    cell, seeds = make_cell("objectstate", "judge"), np.arange(2)
    asker = Asker(cell, garble)
    trajectory, tally = run(cell, seeds, asker, live=1)
    assert_same(cell, seeds, trajectory)
    assert (tally.calls == 3 * (31 + tally.verdicts)).all()
    assert (tally.reasks == 2 * (31 + tally.verdicts)).all()
    assert not (tally.invalid_updates + tally.invalid_verdicts).any()
    last = asker.requests[2]
    assert [message["role"] for message in last["messages"]] == ["system", *("user", "assistant") * 5, "user"]
    assert last["messages"][: TURNS + 1] == asker.requests[0]["messages"]
    assert [request["temperature"] for request in asker.requests[:3]] == [0.0, 0.7, 0.7]
    echo, demand = last["messages"][TURNS + 1 : TURNS + 3]
    assert "not one whole JSON object" in demand["content"]
    assert echo["content"].isascii()
    assert len(echo["content"]) <= 6 * LONGEST_ECHO
    json.dumps(last, ensure_ascii=False).encode()  # no lone surrogate is sent on


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_stays_unusable_is_counted_and_changes_no_belief(protocol):
    """Beliefs stay as they were, or where the table is not kept as they are without an update: unknown."""
    cell, seeds = make_cell("graphnav", "judge", "S1", PROTOCOLS[protocol]), np.arange(3)
    trajectory, tally = run(cell, seeds, Asker(cell, lambda request, answered: Answer("")))
    held = record(make_cell("graphnav", "no-probe", "S1", PROTOCOLS[protocol]), seeds).belief[:, 0]
    probed = trajectory.probe >= 0
    assert (tally.invalid_updates == trajectory.steps + 1).all()
    assert (tally.invalid_verdicts == tally.verdicts).all()
    assert (tally.calls == 3 * (tally.invalid_updates + tally.verdicts)).all()
    assert (trajectory.action == WAIT).all()
    assert not trajectory.success.any()
    for t in range(trajectory.belief.shape[1]):
        if t and PROTOCOLS[protocol].memory == "none":
            held[:] = UNKNOWN
        np.testing.assert_array_equal(trajectory.belief[:, t], held)
        if t < probed.shape[1] and PROTOCOLS[protocol].answer == "delivered":
            row = np.flatnonzero(probed[:, t])
            held[row, trajectory.probe[row, t]] = trajectory.answer[row, t]


# ---------------------------------------------------------------- the judge


def ruling(cell, override, field):
    """Answer updates as scripted, and every case with one verdict."""
    verdict = Answer(json.dumps({"override": override, "field": field}))
    return Asker(cell, lambda request, answered: verdict if is_case(request) else answered)


def test_the_judges_verdict_decides():
    cell, seeds = make_cell("tooldag", "judge"), np.arange(4)
    stands, tally = run(cell, seeds, ruling(cell, False, -1))
    assert_same(replace(cell, policy=POLICIES["simple"]), seeds, stands)
    assert (tally.verdicts > 0).all()
    vetoing = ruling(cell, True, -1)
    vetoes, _ = run(cell, seeds, vetoing, how=replace(MODEL, judge_model="second", judge_max_tokens=48))
    assert (vetoes.probe < 0).all()
    models = {(request["model"], request["max_tokens"]) for request in vetoing.requests}
    assert models == {("scripted", 512), ("second", 48)}


def test_the_judge_may_force_a_candidate_and_is_not_asked_once_the_budget_is_spent():
    cell = make_cell("tooldag", "judge", budget=3, threshold=100.0)
    case = requests_of(cell, np.array([5])).requests[1]["messages"][1]["content"]
    first = int(case.partition("score)\n")[2].partition(" ")[0])  # the highest-scored field
    asker = ruling(cell, True, first)
    trajectory, tally = run(cell, np.array([5]), asker, how=replace(MODEL, reasks=0))
    fired = np.flatnonzero(trajectory.probe[0] >= 0)
    assert trajectory.probe[0, 0] == first
    assert len(fired) <= 3
    asked = sum(map(is_case, asker.requests))
    assert asked == tally.verdicts[0] == (fired[-1] + 1 if len(fired) == 3 else 30)
