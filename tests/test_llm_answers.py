"""Answers: what is accepted, what is refused, and that nothing a model can say breaks a run."""

import json
import operator
import re
from dataclasses import replace
from random import Random

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from envprobe_core.agents.simulated import RISK_LOW
from envprobe_core.cells import make_cell
from envprobe_core.engine.records import NONE, TABLE, UNKNOWN, WAIT, new
from envprobe_core.engine.running import Episodes
from envprobe_core.llm import SECOND, ModelAgent
from envprobe_core.llm.agent import LanguageModelAgent
from envprobe_core.llm.answers import (
    LONGEST_ANSWER,
    MOST_REASONS,
    UPDATE_SCHEMA,
    VERDICT_SCHEMA,
    InvalidAnswer,
    Update,
    Verdict,
    apply_updates,
    gives_reasons,
    parse_update,
    parse_verdict,
    reported_terms,
    update_schema,
    verdict_schema,
    write_update,
    write_verdict,
)
from envprobe_core.llm.calls import Answer
from envprobe_core.protocols import PAPER, RELEASED
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS, make_world

TOKENS = 512  # of a belief update, Table "Hyperparameter configuration"
TOOLS = make_world("tooldag", REGIMES["S1"], PAPER)  # 5 tools, 15 fields
GOOD = {"set": "0:1,0,95;14:?,3,0", "fade": 2, "act": "call(1)", "risk": 1, "why": "0:2,1,1"}


def changed(**changes):
    return json.dumps(GOOD | changes)


def test_a_good_update_means_what_it_says():
    expected = Update(((0, 1, 0, 95), (14, UNKNOWN, 3, 0)), 2, 1, 1, ((0, 2, 1, 1),))
    assert parse_update(json.dumps(GOOD), TOOLS) == expected
    for written in ("call(1) ", "Call( 1 )"):
        assert parse_update(changed(act=written), TOOLS) == expected
    assert parse_update(changed(set="0:1,0,95%;14:?,3,0%"), TOOLS) == expected
    assert parse_update(changed(why="0:2,1,100"), TOOLS).reasons == ((0, 2, 1, 100),)
    assert parse_update(changed(set=" 0 : 1 , 0 , 95 ; 14:?,3,0 ; "), TOOLS) == expected
    nothing = parse_update(changed(set="", why=" ", act="wait"), TOOLS)
    assert (nothing.entries, nothing.reasons, nothing.action) == ((), (), WAIT)
    dated = parse_update(changed(set="0:1,4,95;1:0,9,80;2:1,-1,7"), TOOLS, step=6)
    assert dated.entries == ((0, 1, 2, 95), (1, 0, 0, 80), (2, 1, 7, 7))  # no evidence is of tomorrow


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("null", "not a JSON object"),
        ("[1]", "not a JSON object"),
        (changed()[:-3], "not one whole JSON object"),
        (changed() + "}", "not one whole JSON object"),
        ("```json\n" + changed() + "\n```", "not one whole JSON object"),
        (changed(more=1), "the key 'more' is unknown"),
        (changed()[:-1] + ', "risk": 0}', "a key stands twice"),
        (json.dumps({key: value for key, value in GOOD.items() if key != "fade"}), "'fade' is missing"),
        (changed(fade=1.0), "'fade': Input should be a valid integer, not 1.0"),
        (changed(fade=float("nan")), "not nan"),
        (changed(fade=float("-inf")), "not -inf"),
        (changed().replace('"fade": 2', '"fade": 1e999'), "not inf"),
        (changed(fade=True), "valid integer, not True"),
        (changed(fade=None), "valid integer, not None"),
        (changed(fade=-1), "'fade': Input should be greater than or equal to 0, not -1"),
        (changed(fade=101), "less than or equal to 100, not 101"),
        (changed(fade=10**4000), "more than 64 bits"),
        (changed(risk=3), "'risk': Input should be 0, 1 or 2, not 3"),
        (changed(act="call(5)"), "act 'call(5)' is not an action"),
        (changed(act="nothing"), "is not an action"),
        (changed(act=1), "'act': Input should be a valid string, not 1"),
        (changed(set=[[0, 1, 0, 95]]), "'set': Input should be a valid string, not a list"),
        (changed(set="15:1,0,95"), "there is no field 15; the last is 14"),
        (changed(set="-1:1,0,95"), "is not a row"),
        (changed(set="0:1,0,95;0:1,0,95"), "field 0 stands twice"),
        (changed(set="0:2,0,95"), "field 0 has values 0 to 1 or ?, not 2"),
        (changed(set="0:-1,0,95"), "an unknown value is written ?"),
        (changed(set="0:-2,0,95"), "not -2"),
        (changed(set="0:true,0,95"), "is not a row"),
        (changed(set="0:1,-1,95"), "staleness -1"),
        (changed(set="0:1,100,95"), "staleness 100"),
        (changed(set="0:1,0,0.95"), "is not a row"),
        (changed(set="0:1,0,101"), "confidence 101"),
        (changed(set="0:1,0,-5"), "confidence -5"),
        (changed(set="0:1,0"), "is not a row"),
        (changed(set="0:1,0,95;;1:1,0,95"), "is not a row"),
        (changed(set="٣:1,0,95"), "is not a row"),
        (changed(set="0:" + "1" * 3000 + ",0,95"), "is not a row"),
        (changed(set="\ud800"), "'\\ud800' is not a row"),
        (changed(why="0:3,1,1"), "criticality 3"),
        (changed(why="0:-1,1,1"), "criticality -1"),
        (changed(why="0:?,1,1"), "is not a row"),
        (changed(why="0:2,2,1"), "used 2"),
        (changed(why="0:2,1,-1"), "steps -1"),
        (changed(why=";".join(f"{field}:0,0,0" for field in range(9))), "9 rows; at most 8"),
        ("[" * 4000, "nested too deeply"),
        ('{"set":' * 100, "not one whole JSON object"),
        ("9" * (LONGEST_ANSWER + 1), "4097 characters"),
        (changed(act="x" * LONGEST_ANSWER), "characters; at most 4096"),
        ("<html><body>502</body></html>", "not one whole JSON object"),
    ],
)
def test_a_bad_update_is_refused_and_its_fault_named_in_ascii(text, fault):
    with pytest.raises(InvalidAnswer) as refused:
        parse_update(text, TOOLS)
    message = str(refused.value)
    assert fault in message
    assert message.isascii()
    assert len(message) < 250


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"override": 1, "field": 3}', "'override': Input should be a valid boolean, not 1"),
        ('{"override": true, "field": 4}', "neither -1 nor a candidate: 3, 7, 0"),
        ('{"override": true}', "'field' is missing"),
        ('{"override": true, "field": true}', "'field': Input should be a valid integer, not True"),
        ("yes", "not one whole JSON object"),
    ],
)
def test_a_bad_verdict_is_refused(text, fault):
    with pytest.raises(InvalidAnswer, match=fault):
        parse_verdict(text, [3, 7, 0])


def test_a_verdict_reads_back_as_it_was_written():
    for verdict in (Verdict(True, -1), Verdict(True, 7), Verdict(False, -1)):
        assert parse_verdict(write_verdict(verdict), [3, 7, 0]) == verdict


@st.composite
def updates(draw, world, most=None):
    fields = draw(st.lists(st.integers(0, world.fields - 1), unique=True, max_size=most))
    entries = tuple(
        (
            field,
            draw(st.integers(UNKNOWN, int(world.domain[field]) - 1)),
            draw(st.integers(0, 99)),
            draw(st.integers(0, 100)),
        )
        for field in fields
    )
    reasons = tuple(
        (field, draw(st.integers(0, 2)), draw(st.integers(0, 1)), draw(st.integers(0, 99)))
        for field in fields[:MOST_REASONS]
    )
    action = draw(st.integers(WAIT, world.actions - 1))
    return Update(entries, draw(st.integers(0, 100)), action, draw(st.integers(0, 2)), reasons)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_an_update_reads_back_as_it_was_written(data):
    world = make_world(
        data.draw(st.sampled_from(sorted(WORLDS))),
        REGIMES["S3"],
        data.draw(st.sampled_from([PAPER, RELEASED])),
    )
    update = data.draw(updates(world))
    assert parse_update(write_update(update, world), world) == update
    dated = parse_update(write_update(update, world, 17), world, 17)
    assert dated == replace(update, reasons=update.reasons if gives_reasons(world) else ())


def most_tokens(text):
    """Bound the tokens of an ASCII text for tokenizers that keep up to three digits together.

    cl100k, o200k (GPT-4o mini) and the tokenizer of Llama 3 take a run of one to three digits as one token,
    and no tokenizer of bytes needs more than one token for any other ASCII character.
    """
    assert text.isascii()
    return len(re.findall(r"[0-9]{1,3}|[^0-9]", text))


@pytest.mark.parametrize("world", WORLDS)
def test_the_longest_update_of_the_largest_world_fits_in_512_tokens(world):
    largest = make_world(world, REGIMES["S3"], PAPER)
    last = largest.fields - 1
    entries = tuple((f, int(largest.domain[f]) - 1, 99, 100) for f in range(largest.fields))
    action = int(np.argmax([len(name) for name in largest.action_names]))
    reasons = tuple((last - index, 2, 1, 99) for index in range(MOST_REASONS))
    for step in (None, 99):
        text = write_update(Update(entries, 100, action, 2, reasons), largest, step)
        assert most_tokens(text) <= TOKENS
        assert len(text) < 800  # so LONGEST_ANSWER refuses nothing that could be meant


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("protocol", [PAPER, RELEASED], ids=lambda protocol: protocol.name)
def test_a_worlds_schema_says_what_the_checker_demands(world, protocol):
    built = make_world(world, REGIMES["S2"], protocol)
    rules = update_schema(built)["properties"]
    assert list(rules) == ["set", "fade", "act", "risk", *(["why"] if gives_reasons(built) else [])]
    for wild in range(20):  # whatever fits the schema can be used
        dice = np.random.default_rng(wild)
        fields = np.flatnonzero(dice.random(built.fields) < 0.3).tolist()
        rows = [(f, int(dice.integers(-1, built.domain[f])), *dice.integers(0, 100, 2)) for f in fields]
        said = {
            "set": "".join(f"{f}:{'?' if v < 0 else v},{s},{c};" for f, v, s, c in rows),
            "fade": wild,
            "act": str(dice.choice(rules["act"]["enum"])),
            "risk": wild % 3,
        }
        assert re.fullmatch(rules["set"]["pattern"], said["set"])
        update = parse_update(json.dumps(said), built, step=99)
        assert [entry[0] for entry in update.entries] == fields
    for wrong in ("1:0,0,0;0:0,0,0;", "0:0,0,0", "0:0,0,101;", "999:0,0,0;", f"0:{built.domain[0]},0,0;"):
        assert not re.fullmatch(rules["set"]["pattern"], wrong)


@pytest.mark.parametrize("schema", [UPDATE_SCHEMA, VERDICT_SCHEMA, verdict_schema([3, 7, 0])])
def test_schemas_are_strict(schema):
    """What strict structured output asks for: every key required, no other key, plain types."""
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"])
    assert {rule["type"] for rule in schema["properties"].values()} <= {"string", "integer", "boolean"}
    assert len(json.dumps(schema, separators=(",", ":"))) < 400


def test_applying_an_update_fades_all_but_what_is_written_and_told():
    table = new(TABLE, 3)
    table.staleness[:, :4], table.confidence[:, :4] = 5, (50, 1, 100, 100)
    told, rest = Update(((3, 1, 2, 80),), 3, 0, 0, ()), Update(((0, UNKNOWN, 0, 0),), 2, 0, 0, ())
    apply_updates(table, np.array([1, 2]), [told, rest], np.array([2, NONE]))
    assert table.value[:, :4].tolist() == [[0, 0, 0, 0], [0, 0, 0, 1], [UNKNOWN, 0, 0, 0]]
    assert table.staleness[:, :4].tolist() == [[5, 5, 5, 5], [5, 5, 5, 2], [0, 5, 5, 5]]
    assert table.confidence[:, :4].tolist() == [[50, 1, 100, 100], [47, 0, 100, 80], [0, 0, 98, 98]]
    apply_updates(table, np.array([0]), [Update((), 100, 0, 0, ())], np.array([NONE]))
    assert table.confidence[0, :4].tolist() == [0, 0, 0, 0]
    assert not table.value[:, 4:].any()
    assert not table.confidence[:, 4:].any()


def test_reported_terms_follow_the_public_codes_formula():
    """c: low, medium, high = 0, .5, 1; d: .5 used + .5 min(1, required / 3); nothing of unknown fields."""
    update = Update((), 0, 0, 0, ((0, 2, 1, 1), (1, 1, 0, 9), (2, 0, 1, 0), (3, 2, 1, 3)))
    c, d = reported_terms(update, [True, True, True, False, True])
    assert c.tolist() == [1.0, 0.5, 0.0, 0.0, 0.0]
    assert d.tolist() == [0.5 + 0.5 * (1 / 3), 0.5, 0.5, 0.0, 0.0]


# ---------------------------------------------------------------- ten thousand answers

RELEASED_TOOLS = make_world("tooldag", REGIMES["S1"], RELEASED)
names = st.sampled_from([*GOOD, "sets", "", "act ", "\ud800", "__class__"])
odd = ["0", "1", "?", "-1", "00", "99", "100", "101", "0.95", "1e999", "NaN", "9" * 400, "١", ""]
numbers = st.sampled_from(odd)
rows = st.lists(st.builds("{}:{},{},{}".format, *[numbers] * 4), max_size=2).map(";".join)
words = st.sampled_from(["wait", "call(0)", "call(4)", "call(5)", "low", "<script>", "\x00", "\ud800"])
scalars = st.one_of(st.none(), st.booleans(), st.integers(-2, 102), st.integers(), st.floats(), words, rows)
nested = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3)
)
off_schema = st.dictionaries(names, nested, max_size=4).map(json.dumps)
nonsense = st.fixed_dictionaries({}, optional=dict.fromkeys(GOOD, scalars)).map(lambda part: changed(**part))
valid = updates(RELEASED_TOOLS, 3).map(lambda update: write_update(update, TOOLS))
pieces = st.sampled_from(["[", '{"set":', "9", '"', "\\"])
hostile = st.text(st.characters(), max_size=40) | st.builds(operator.mul, pieces, st.integers(0, 5000))


MIDDLES = ("", '"', "{", "NaN", ",", "\\ud800", "0", ";", "\x00", "}{")


def damaged(text, random):
    """Cut a text, or put something into it."""
    place = random.randint(0, len(text))
    return text[:place] + random.choice(MIDDLES) + text[place + random.randint(0, 5) :]


class Says:
    """Gives one answer, whatever it is asked."""

    text = ""

    async def ask(self, request, identity, spoilt=""):
        return Answer(self.text)


SAYS = Says()
EPISODES = Episodes(make_cell("tooldag", "no-probe", "S1", RELEASED), np.arange(1))
AGENT = LanguageModelAgent(EPISODES, SAYS.ask, ModelAgent("local", SECOND, "m", reasks=0))


@settings(max_examples=200, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.one_of(valid, valid, nonsense, off_schema, hostile), min_size=10, max_size=10),
    st.integers(0, 2**32).map(Random),
)
def test_ten_thousand_answers_are_each_applied_or_counted(answers, random):
    for text in answers:
        for one in (text, *(damaged(text, random) for _ in range(4))):
            applied_or_counted(one)


def applied_or_counted(text):
    fields, block = RELEASED_TOOLS.fields, EPISODES.block
    table, sight = block.table[0], block.sight[0]
    table.value[:fields], table.staleness[:fields], table.confidence[:fields] = UNKNOWN, 4, 50
    table.value[:3] = 1
    block.action[0], block.risk[0] = 3, 1
    sight.c[:fields] = sight.d[:fields] = 1.0
    before = np.stack([table.value, table.staleness, table.confidence])
    counted = int(AGENT.tally[0]["invalid_updates"])
    SAYS.text = text
    with pytest.raises(StopIteration):  # what never has to wait is finished at once
        AGENT.propose().send(None)
    after = np.stack([table.value, table.staleness, table.confidence])
    assert (after[:, fields:] == before[:, fields:]).all()
    if AGENT.tally[0]["invalid_updates"] > counted:
        assert (after == before).all()
        assert (block.action[0], block.risk[0]) == (WAIT, RISK_LOW)
        assert not sight.c[:fields].any()
        assert not sight.d[:fields].any()
        return
    update = parse_update(text, TOOLS, 0)  # what was not counted has a meaning, and that was applied
    assert (block.action[0], block.risk[0]) == (update.action, update.risk)
    written = {field: entry for field, *entry in update.entries}
    for field in range(fields):
        kept = [*before[:2, field].tolist(), max(50 - update.fade, 0)]
        assert after[:, field].tolist() == written.get(field, kept)
    values = table.value[:fields]
    assert ((values >= UNKNOWN) & (values < RELEASED_TOOLS.domain)).all()
    for found, told in zip((sight.c, sight.d), reported_terms(update, values != UNKNOWN), strict=True):
        np.testing.assert_array_equal(found[:fields], told)
        assert (told <= 1).all()
