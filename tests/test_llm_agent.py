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

from daily import nightly
from envprobe_core.agents.model import PROMPT_VERSION, ModelAgent
from envprobe_core.agents.profiles import PROFILES, AgentProfile
from envprobe_core.compiled.records import UNKNOWN, WAIT
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate_logged, step_batch
from envprobe_core.engine.kernel import PROPOSE
from envprobe_core.llm import prompts
from envprobe_core.llm.agent import (
    LanguageModelAgent,
    Readings,
    exchanges,
    prompts_of,
    run_model,
    simulated_setting,
)
from envprobe_core.llm.calls import Answer, RunStoppedError
from envprobe_core.llm.prompts import DEMAND, LONGEST_ECHO, SituationWriter
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PAPER, PROTOCOLS, RELEASED, parse_protocol
from envprobe_core.runs.tables import step_table
from envprobe_core.worlds import WORLDS, make_world
from scripted import Scripted, read_situation, world_of
from strategies import conditions

MODEL = ModelAgent("local", PROMPT_VERSION, "scripted")
TURNS = 7  # messages before the situation: the rules, and three worked examples
GATE_WORDS = ("probe", "budget", "threshold", "policy", "gold")
EVERYWHERE = list(product(WORLDS, PROTOCOLS))


class Asker(Scripted):
    """The scripted brain, with every request it was asked; a test may change what it answers."""

    def __init__(self, condition, change=lambda request, answered: answered):
        super().__init__(condition.profile)
        self.requests, self.change, self.said = [], change, []

    async def ask(self, request, identity, spoilt=""):
        self.requests.append(request)
        await asyncio.sleep(0)
        answered = self.change(request, await super().ask(request, identity, spoilt))
        self.said.append((json.dumps(request, sort_keys=True), answered.text))
        return answered


def run(condition, seeds, asker, rows=1, live=8, how=MODEL):
    async def running():
        return await run_model(condition, seeds, asker.ask, how, live=asyncio.Semaphore(live), rows=rows)

    asked = asyncio.run(running())
    return asked.trajectory, pd.DataFrame(asked.tally)


def requests_of(condition, seeds):
    """What is asked; a test below says that a rehearsal asks what a run does."""
    return [one.request for one in exchanges(condition, seeds, MODEL, condition.profile)]


def is_case(request):
    return request["messages"][0]["content"].startswith(prompts.JUDGE_TITLE)


def assert_same(condition, seeds, trajectory):
    direct = simulate_logged(condition, seeds)
    for name, column in direct.measures.items():
        np.testing.assert_array_equal(column, trajectory.measures[name], name)
    assert step_table(condition, seeds, trajectory).equals(step_table(condition, seeds, direct))


# ---------------------------------------------------------------- the scripted brain


def assert_asked_as_simulated(condition, seeds):
    """A run by text alone is the simulated run in all columns and the bytes of its logs; so is a rehearsal.

    That answers from the episode, in one block, and asks and answers the same, line by line.
    """
    asker = Asker(condition)
    trajectory, tally = run(condition, seeds, asker, rows=2)
    assert_same(condition, seeds, trajectory)
    assert not tally[["invalid_updates", "invalid_verdicts", "reasks"]].any(axis=None)
    assert (tally.calls == trajectory.steps + 1 + tally.verdicts).all()
    met = exchanges(condition, seeds, MODEL, condition.profile)
    said = [(json.dumps(one.request, sort_keys=True), one.answer) for one in met]
    if (
        condition.policy.replays is None
    ):  # else the policy that is replayed was asked for first, and is not counted
        assert len(asker.said) == tally.calls.sum()
    assert sorted(said) == sorted(asker.said)
    for request in asker.requests:  # a situation, written again from what was read in it, is the same text
        if not is_case(request):
            system, user = (request["messages"][place]["content"] for place in (0, -1))
            read = read_situation(user, world := world_of(system.partition("\n")[0]))
            world = make_world(world.name, condition.regime, world.protocol)  # the horizon is told, not read
            noted = read.block.copy()
            step_batch(PROPOSE, simulated_setting(world, condition.regime, PROFILES["perfect"]), noted)
            read.block.mind = noted.mind
            again = SituationWriter(world, read.block.task).write(read.block, read.last_worked, np.array([0]))
            assert again == [user]
            assert len(user) < 5000  # however long the history


@pytest.mark.parametrize(("world", "protocol"), nightly(EVERYWHERE, *EVERYWHERE[::4]))
def test_a_run_through_the_scripted_brain_equals_the_simulated_run(world, protocol):
    """All regimes, three profiles, every policy in its turn."""
    first = 9 * EVERYWHERE.index((world, protocol))
    turns = product(("S1", "S2", "S3"), ("typical", "perfect", "scripted"))
    for turn, (regime, profile) in enumerate(turns, start=first):
        policy = "judge" if turn % 4 == 0 else list(POLICIES)[turn % len(POLICIES)]
        condition = make_condition(world, policy, regime, PROTOCOLS[protocol], profile)
        assert_asked_as_simulated(condition, 17 + turn + np.arange(1 + 2 * (turn % 3 == 0)))


@settings(max_examples=15)
@given(
    conditions().filter(lambda condition: not condition.profile.scribe)
)  # a scribe goes by its last five steps
def test_so_does_any_profile_protocol_regime_budget_and_threshold(condition):
    """But for what a situation does not tell: where errors fall, luck of one's own, and which calls fail."""
    plain = replace(condition.profile, importance=0.0, contrary=0.0, own_noise=False, critical_once=False)
    sound = replace(condition.protocol, failing="0")
    assert_asked_as_simulated(replace(condition, profile=plain, protocol=sound), np.array([3, 2**62 + 5]))


CARELESS = AgentProfile("careless", omit=0.5, slip=0.2, overwrite=0.2)
STANDS = parse_protocol("paper:clock=stands")
NOTES = {  # what a situation tells: a pattern, what hides it, and a condition in which it matters
    "told": (r"Told: \d+", "Told: nothing", "tooldag", "simple", "S2", PAPER),
    "stood still": (f"Observation: {prompts.UNCHANGED}\n", "", "tooldag", "random", "S2", STANDS),
    "worked": ("action: invalid", "action: valid", "tooldag", "self-uncertainty", "S2", RELEASED),
    "failed calls": (r"(?<=calls ago\): ).*", "nothing", "tooldag", "no-probe", "S2", RELEASED),
    "rooms seen": (r"(?<=place and step\): ).*", "nothing", "objectstate", "no-probe", "S2", PAPER),
    "validity": (r"\(invalid\)", "(valid)", "objectstate", "no-probe", "S2", PAPER),
    "distractor": (r"; location\(box 5\)=\d+", "", "objectstate", "no-probe", "S3", PAPER),
    "came from": (r"taken at \d+", "taken at 0", "graphnav", "no-probe", "S2", RELEASED),
    "edges met": (r"(?<=Edges met: ).*", "nothing", "graphnav", "no-probe", "S2", RELEASED),
    "keys of edges": (r" key \d+", "", "graphnav", "no-probe", "S3", PAPER),
}


@pytest.mark.parametrize("note", NOTES)
def test_nothing_a_situation_tells_is_idle(note, monkeypatch):
    """Hide one note, and the run is another: so the equality above tests each of them."""
    pattern, hidden, *place = NOTES[note]
    condition, seeds = replace(make_condition(*place), profile=CARELESS), np.arange(8)
    write = SituationWriter.write
    monkeypatch.setattr(
        SituationWriter, "write", lambda *given: [re.sub(pattern, hidden, text) for text in write(*given)]
    )
    without, _ = run(condition, seeds, Scripted(CARELESS), rows=8)
    assert not step_table(condition, seeds, without).equals(
        step_table(condition, seeds, simulate_logged(condition, seeds))
    )


# ---------------------------------------------------------------- prompts


@pytest.mark.parametrize("version", list(prompts.VERSIONS)[1:])  # the first's texts are held by its replay
def test_a_new_wording_is_a_new_version(version):
    """A version ends with the fingerprint of its texts, schemas, examples and situations, of every world."""
    digest = hashlib.sha256()
    for world, regime, protocol in product(WORLDS, ("S1", "S3"), PROTOCOLS.values()):
        condition = make_condition(world, "judge", regime, protocol)
        for one in exchanges(condition, np.array([0]), replace(MODEL, prompt_version=version)):
            digest.update(json.dumps([one.request, one.identity, one.answer]).encode())
        again = prompts_of(condition, version).asked_again({"messages": [], "temperature": 0}, "x", "y")
        digest.update(json.dumps(again).encode())
    name = version.rpartition("-")[0]
    assert f"{name}-{digest.hexdigest()[:8]}" == version, "a new wording is a new version in llm/prompts.toml"
    assert prompts.find_version(name) == version


def test_the_public_codes_way_shows_five_actions_no_table_and_where_wanted_a_hint():
    condition, asked = make_condition("graphnav", "periodic", "S1"), []
    for name in ("public", "public-hint"):
        how = replace(MODEL, prompt_version=prompts.find_version(name))
        asked.append([*exchanges(condition, np.array([4]), how)])
    acts = ["nothing", *(json.loads(one.answer)["act"] for one in asked[0])]
    for step, (plain, hinted) in enumerate(zip(*asked, strict=True)):
        assert "Table" not in plain.situation
        recent = ", ".join(acts[max(1, step - 4) : step + 1] if step else acts[:1])
        assert f"\nYour last actions: {recent}\n" in plain.situation
        assert hinted.situation == f"{plain.situation}\nMethod hint: {prompts.WORDS['hints']['periodic']}"
        assert hinted.request["messages"][:-1] == plain.request["messages"][:-1]
    # what a check has found is said, since no table shows it
    assert any(re.search(r"Told: \d+:\S+", one.situation) for one in asked[0])


@pytest.mark.parametrize(("world", "protocol"), EVERYWHERE)
def test_no_prompt_tells_the_policy_budget_or_gate_and_what_never_changes_stands_first(world, protocol):
    """Same bytes for the same situation: requests of all policies differ only in what has happened."""
    rules, seeds = PROTOCOLS[protocol], np.arange(2)
    names = [name for name in POLICIES if name not in ("judge", "yoked")]
    told = re.compile(rf"\b(?:{'|'.join((*names, *GATE_WORDS))})s?\b", re.IGNORECASE).search
    begins, firsts = set(), defaultdict(set)
    for turn, name in enumerate(names):
        condition = make_condition(world, name, "S1", rules, budget=None if turn % 2 else 2)
        for request in requests_of(condition, seeds):
            *begin, situation = (message["content"] for message in request["messages"])
            graph, _, rest = situation.partition("\n\nTable")
            begins.add((*begin, request["seed"], graph))
            firsts[request["seed"]].add(json.dumps(request) if "\nStep: 0 of" in rest else None)
            assert not told(situation)
    assert [len(firsts[seed] - {None}) for seed in (0, 1)] == [1, 1]
    assert len(begins) == 2
    assert not told(begins.pop()[0].partition("\n")[2])
    quiet = [
        make_condition(world, "no-probe", "S1", rules),
        make_condition(world, "simple", "S1", rules, budget=0),
    ]
    one, other = (requests_of(condition, seeds) for condition in quiet)
    assert one == other


@pytest.mark.parametrize("policy", ["random", "judge"])
@pytest.mark.parametrize(("world", "protocol"), EVERYWHERE)
def test_poisoned_gold_reaches_no_prompt(world, policy, protocol, monkeypatch):
    """The model is shown observations and answers only: all else may be wrong, no byte changes."""
    condition, seeds = make_condition(world, policy, "S2", PROTOCOLS[protocol]), np.arange(4)
    clean, lies = requests_of(condition, seeds), []

    def lied_to(asked):
        async def deceived(self):
            """Let every gold value and the whole hidden state be wrong while the agent is at work."""
            block, domain = self._episodes.block, self._world.domain
            truth = block.gold.copy(), block.state.copy()
            block.gold[:, : len(domain)] = (block.gold[:, : len(domain)] + 1) % domain
            for part in block.state.dtype.names:
                block.state[part][:] ^= 1
            lies.append(block.gold.tobytes() + block.state.tobytes())
            outcome = await asked(self)
            assert lies[-1] == block.gold.tobytes() + block.state.tobytes()
            block.gold, block.state = truth
            assert lies[-1] != block.gold.tobytes() + block.state.tobytes()
            return outcome

        return deceived

    for name in ("propose", "judge"):
        monkeypatch.setattr(LanguageModelAgent, name, lied_to(getattr(LanguageModelAgent, name)))
    assert requests_of(condition, seeds) == clean
    assert lies


# ---------------------------------------------------------------- the driver


def test_one_slow_answer_holds_up_nobody_and_no_more_are_live_than_allowed():
    """One episode's first answer is held back until the answers of all others are given."""
    condition, seeds, live, most = make_condition("tooldag", "simple"), np.arange(9), set(), 0

    class Delaying(Asker):
        left, others_are_done = (condition.regime.horizon + 1) * (len(seeds) - 1), asyncio.Event()

        async def ask(self, request, identity, spoilt=""):
            nonlocal most
            live.add(request["seed"])
            most = max(most, len(live))
            if request["seed"] == 0:
                await self.others_are_done.wait()
            self.left -= request["seed"] != 0
            if not self.left:
                self.others_are_done.set()
            if "Step: 30 of 30" in request["messages"][-1]["content"]:
                live.remove(request["seed"])
            return await super().ask(request, identity, spoilt)

    trajectory, _ = run(condition, seeds, Delaying(condition), live=4)
    assert most == 4
    assert_same(condition, seeds, trajectory)


@pytest.mark.parametrize("rows", [1, 4])
def test_an_infrastructure_failure_stops_the_run_as_itself(rows):
    def fail(request, answered):
        if len(asker.requests) >= 20:
            raise ConnectionError("the server is gone")
        return answered

    asker = Asker(condition := make_condition("tooldag", "simple"), fail)
    with pytest.raises(ConnectionError, match="the server is gone"):
        run(condition, np.arange(8), asker, rows=rows)
    assert len(asker.requests) < 20 + 8  # what was in flight, and nothing after


# ---------------------------------------------------------------- answers that cannot be used


def test_an_unusable_answer_is_asked_again_with_its_fault_named():
    def garble(request, answered):
        attempts = sum(message["content"].startswith(DEMAND) for message in request["messages"])
        return answered if attempts == 2 else Answer("\ud800" * 2000, used=answered.used)

    condition, seeds = make_condition("objectstate", "judge"), np.arange(2)
    asker = Asker(condition, garble)
    trajectory, tally = run(condition, seeds, asker, live=1)
    assert_same(condition, seeds, trajectory)
    assert (tally.calls == 3 * (31 + tally.verdicts)).all()
    assert (tally.reasks == 2 * (31 + tally.verdicts)).all()
    assert not (tally.invalid_updates + tally.invalid_verdicts).any()
    last = asker.requests[2]["messages"]
    assert [message["role"] for message in last] == ["system", *("user", "assistant") * 5, "user"]
    assert last[: TURNS + 1] == asker.requests[0]["messages"]
    assert [request["temperature"] for request in asker.requests[:3]] == [0.0, 0.7, 0.7]
    hot = prompts_of(condition, PROMPT_VERSION).asked_again(asker.requests[0] | {"temperature": 1.5}, "", "")
    assert hot["temperature"] == 1.5  # is not cooled
    echo, demand = (message["content"] for message in last[TURNS + 1 : TURNS + 3])
    assert "not one whole JSON object" in demand
    assert echo.isascii()  # no lone surrogate is sent on
    assert len(echo) <= 6 * LONGEST_ECHO


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_stays_unusable_is_counted_and_changes_no_belief(protocol):
    """Beliefs stay as they were, or where the table is not kept as they are without an update: unknown."""
    condition, seeds = make_condition("graphnav", "judge", "S1", PROTOCOLS[protocol]), np.arange(3)
    trajectory, tally = run(condition, seeds, Asker(condition, lambda request, answered: Answer("")))
    held = simulate_logged(make_condition("graphnav", "no-probe", "S1", PROTOCOLS[protocol]), seeds).belief[
        :, 0
    ]
    probed = trajectory.probe >= 0
    assert (tally.invalid_updates == trajectory.steps + 1).all()
    assert (tally.invalid_verdicts == tally.verdicts).all()
    assert (tally.calls == 3 * (tally.invalid_updates + tally.verdicts)).all()
    assert (trajectory.action == WAIT).all()
    for t in range(trajectory.belief.shape[1]):
        if t and PROTOCOLS[protocol].memory == "none":
            held[:] = UNKNOWN
        np.testing.assert_array_equal(trajectory.belief[:, t], held)
        if t < probed.shape[1] and PROTOCOLS[protocol].answer == "delivered":
            row = np.flatnonzero(probed[:, t])
            held[row, trajectory.probe[row, t]] = trajectory.answer[row, t]


# ---------------------------------------------------------------- the judge


def test_the_judges_verdict_decides_and_none_is_asked_for_once_the_budget_is_spent():
    """A second model lets every decision stand, vetoes every one, or forces the highest-scored field."""
    seeds = np.arange(4)

    def ruled(condition, override, field):
        verdict = Answer(json.dumps({"override": override, "field": field}))
        asker = Asker(condition, lambda request, answered: verdict if is_case(request) else answered)
        how = replace(MODEL, judge_model="second", judge_max_tokens=48, reasks=0)
        trajectory, tally = run(condition, seeds[: 1 if field >= 0 else 4], asker, how=how)
        assert {(one["model"], one["max_tokens"]) for one in asker.requests} == {
            ("scripted", 512),
            ("second", 48),
        }
        assert sum(map(is_case, asker.requests)) == tally.verdicts.sum() > 0
        return trajectory, tally

    condition = make_condition("tooldag", "judge")
    assert_same(replace(condition, policy=POLICIES["simple"]), seeds, ruled(condition, False, -1)[0])
    assert (ruled(condition, True, -1)[0].probe < 0).all()
    condition = make_condition("tooldag", "judge", budget=3, threshold=100.0)
    case = next(filter(is_case, requests_of(condition, seeds[:1])))["messages"][1]["content"]
    first = int(case.partition("score)\n")[2].partition(" ")[0])  # the highest-scored field
    trajectory, tally = ruled(condition, True, first)
    fired = np.flatnonzero(trajectory.probe[0] >= 0)
    assert trajectory.probe[0, 0] == first
    assert len(fired) <= 3
    assert tally.verdicts[0] == (fired[-1] + 1 if len(fired) == 3 else 30)


def test_a_run_whose_first_episode_has_no_readable_update_stops_and_fenced_ones_are_counted():
    condition, seeds = make_condition("tooldag", "no-probe", "S1"), np.arange(2)

    def asked(change):
        asker = Asker(condition, lambda request, answered: answered._replace(text=change(answered.text)))
        how = {"live": asyncio.Semaphore(1), "readings": Readings()}

        async def running():
            return await run_model(condition, seeds, asker.ask, MODEL, **how)

        return asyncio.run(running())

    with pytest.raises(RunStoppedError, match="could be read; first fault: the answer is not one whole JSON"):
        asked(lambda text: "I believe that tool 3 is loaded.")
    plain, fenced = asked(lambda text: text), asked(lambda text: f"```json\n{text}\n```")
    assert_same(condition, seeds, fenced.trajectory)
    assert plain.columns["loose_share"].tolist() == [0.0, 0.0]
    assert fenced.columns["loose_share"].tolist() == [1.0, 1.0]
    assert fenced.columns["invalid_share"].tolist() == [0.0, 0.0]
