"""Answers: what is accepted, what is refused, and that nothing a model can say breaks a run."""

import json
import operator
import re
from dataclasses import replace
from functools import partial
from random import Random

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from envprobe_core.agents.model import PROMPT_VERSION, ModelAgent
from envprobe_core.compiled.records import NONE, TABLE, UNKNOWN, WAIT, new
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import EpisodeBatch
from envprobe_core.llm import answers as reading
from envprobe_core.llm.agent import LanguageModelAgent
from envprobe_core.llm.answers import InvalidAnswer, Update, parse_update, write_update
from envprobe_core.llm.calls import Answer, Raw, read_response
from envprobe_core.llm.served import read_served
from envprobe_core.protocols import PAPER, RELEASED
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS, make_world

TOOLS = make_world("tooldag", REGIMES["S1"], PAPER)  # 5 tools, 15 fields
GOOD = {"set": "0:1,0,95;14:?,3,0", "fade": 2, "act": "call(1)", "risk": 1, "why": "0:2,1,1"}


def changed(**changes):
    return json.dumps(GOOD | changes)


def test_a_good_update_means_what_it_says():
    expected = Update(((0, 1, 0, 95), (14, UNKNOWN, 3, 0)), 2, 1, 1, ((0, 2, 1, 1),))
    for harmless in (
        {},
        {"act": "Call( 1 ) "},
        {"set": "0:1,0,95%;14:?,3,0%"},
        {"set": " 0 : 1 , 0 , 95 ; 14:?,3,0 ; "},
    ):
        assert parse_update(changed(**harmless), TOOLS) == expected
    assert parse_update(changed(why="0:2,1,100"), TOOLS).reasons == ((0, 2, 1, 100),)
    nothing = parse_update(changed(set="", why=" ", act="wait"), TOOLS)
    assert (nothing.entries, nothing.reasons, nothing.action) == ((), (), WAIT)
    dated = parse_update(changed(set="0:1,4,95;1:0,9,80;2:1,-1,7"), TOOLS, step=6)
    assert dated.entries == ((0, 1, 2, 95), (1, 0, 0, 80), (2, 1, 7, 7))  # no evidence is of tomorrow


REFUSED = {  # an update, or a verdict on the candidates 3, 7 and 0, and its fault
    "": "empty",
    "null": "not a JSON object",
    "```json\n" + changed() + "\n```": "not one whole JSON object",
    changed()[:-3]: "not one whole JSON object",
    changed(more=1): "the key 'more' is unknown; accepted: set, fade, act, risk, why",
    changed()[:-1] + ', "risk": 0}': "a key stands twice",
    json.dumps({key: value for key, value in GOOD.items() if key != "fade"}): "'fade' is missing",
    changed(fade=1.0): "'fade': Input should be a valid integer, not 1.0",
    changed(fade=float("nan")): "not nan",
    changed().replace('"fade": 2', '"fade": 1e999'): "not inf",
    changed(fade=True): "valid integer, not True",
    changed(fade=-1): "'fade': Input should be greater than or equal to 0, not -1",
    changed(fade=101): "less than or equal to 100, not 101",
    changed(fade=10**4000): "more than 64 bits",
    changed(risk=3): "'risk': Input should be 0, 1 or 2, not 3",
    changed(act="call(5)"): "act 'call(5)' is not an action; examples: call(0), wait",
    changed(set=[[0, 1, 0, 95]]): "'set': Input should be a valid string, not a list",
    changed(set="15:1,0,95"): "there is no field 15; the last is 14",
    changed(set="-1:1,0,95"): "is not a row",
    changed(set="0:1,0,95;0:1,0,95"): "field 0 stands twice",
    changed(set="0:2,0,95"): "field 0 has values 0 to 1 or ?, not 2",
    changed(set="0:-1,0,95"): "an unknown value is written ?",
    changed(set="0:1,-1,95"): "staleness -1",
    changed(set="0:1,100,95"): "staleness 100",
    changed(set="0:1,0,0.95"): "is not a row",
    changed(set="0:1,0,101"): "confidence 101",
    changed(set="0:1,0"): "is not a row",
    changed(set="0:1,0,95;;1:1,0,95"): "is not a row",
    changed(set="٣:1,0,95"): "is not a row",
    changed(set="0:" + "1" * 3000 + ",0,95"): "is not a row",
    changed(set="\ud800"): "'\\ud800' is not a row",
    changed(why="0:3,1,1"): "criticality 3",
    changed(why="0:?,1,1"): "is not a row",
    changed(why="0:2,2,1"): "used 2",
    changed(why="0:2,1,-1"): "steps -1",
    changed(why=";".join(f"{field}:0,0,0" for field in range(9))): "9 rows; at most 8",
    "[" * 4000: "nested too deeply",
    "9" * (reading.LONGEST_ANSWER + 1): "4097 characters; at most 4096",
    '{"override": 1, "field": 3}': "'override': Input should be a valid boolean, not 1",
    '{"override": true, "field": 4}': "field 4 is neither -1 nor a candidate: 3, 7, 0",
    '{"override": true}': "'field' is missing",
    '{"override": true, "field": true}': "'field': Input should be a valid integer, not True",
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_a_bad_answer_is_refused_and_its_fault_named_in_ascii(text):
    with pytest.raises(InvalidAnswer) as refused:
        reading.parse_verdict(text, [3, 7, 0]) if "override" in text else parse_update(text, TOOLS)
    message = str(refused.value)
    assert REFUSED[text] in message
    assert message.isascii()
    assert len(message) < 250


ROWS_AS_LIST = [[0, 1, 0, 95], [14, None, "3", 0.0]]
LOOSE = {  # answers in which exactly one object means the good update
    "one fence": f"```json\n{changed()}\n```",
    "words round it": f"Here is the update:\n{changed()}\nI hope that this helps {{a lot}}.",
    "thoughts": f"<think>first {changed(fade=9)}, no</think>\n{changed()}",
    "thoughts without their beginning": f"perhaps {changed(fade=9)}</think>{changed()}",
    "numbers as text": changed(fade="2", risk="1"),
    "numbers as floats": changed(fade=2.0, risk=1.0),
    "an extra key": changed(note="checked"),
    "a list of rows": changed(set=["0:1,0,95", " 14:?,3,0;"], why=["0:2,1,1"]),
    "rows as lists": changed(set=ROWS_AS_LIST, why=[[0, 2, 1, 1]]),
    "white space": changed(set="\n 0:1,0,95 ;\t14:?,3,0\n", act=" call(1)\n"),
    "an object within": json.dumps({"update": GOOD}),
    "the same twice": f"```\n{changed()}\n```\n{changed(note=1)}",
    "a text of JSON": json.dumps(changed()),
    "text within": json.dumps({"name": "update", "arguments": changed()}),
}


@pytest.mark.parametrize("habit", LOOSE)
def test_one_object_that_means_an_update_is_taken_and_counted_as_loosely_read(habit):
    read = partial(parse_update, world=TOOLS)
    expected = parse_update(changed(), TOOLS)
    assert read_served(read, changed()) == (expected, False)
    assert read_served(read, LOOSE[habit]) == (expected, True)


UNREADABLE = {
    f"{changed()} or {changed(fade=9)}": "the answer holds 2 objects that could be meant",
    f"{changed()} {changed()} {changed(risk=0)}": "the answer holds 2 objects",
    json.dumps(f"{changed()} or {changed(fade=9)}"): "the answer holds 2 objects",
    f"<think>{changed()}": "nothing follows the thoughts",
    f"<think>{changed()}</think>": "nothing follows the thoughts",
    f"so: {changed(fade=1.5)}": "is not one whole JSON object",
    changed(act="call(5)", note=1): "unknown",
    '{"refusal":"I cannot help with that."}': "the model refuses: 'I cannot help with that.'",
    '{"finish_reason":"content_filter"}': "the server's content filter kept the answer back",
    '{"set":' * 3000: "21000 characters; at most 4096",
}


@pytest.mark.parametrize("text", UNREADABLE, ids=range(len(UNREADABLE)))
def test_what_could_mean_two_things_or_none_is_not_taken_and_said_plainly(text):
    with pytest.raises(InvalidAnswer) as refused:
        read_served(partial(parse_update, world=TOOLS), text)
    assert UNREADABLE[text] in str(refused.value)


PARTS = [{"type": "text", "text": changed()}]
CALL = {"function": {"name": "update", "arguments": changed()}}
MESSAGES = {
    "content parts": {"content": PARTS},
    "a tool's arguments": {"content": None, "tool_calls": [CALL]},
    "reasoning without content": {"content": None, "reasoning_content": f"So I say {changed()}"},
}


@pytest.mark.parametrize("habit", MESSAGES)
def test_an_answer_beside_a_messages_text_is_found(habit):
    body = json.dumps({"choices": [{"message": MESSAGES[habit], "finish_reason": "stop"}]}).encode()
    found = read_response(Raw(200, "application/json", body))
    update = parse_update(changed(), TOOLS)
    assert read_served(partial(parse_update, world=TOOLS), found.text) == (update, True)


def test_a_stream_is_put_together():
    text = changed()
    pieces = [{"choices": [{"delta": {"content": text[i : i + 7]}}]} for i in range(0, len(text), 7)]
    end = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}
    lines = [f"data: {json.dumps(piece)}\n\n" for piece in [*pieces, end, usage]]
    found = read_response(Raw(200, "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]).encode()))
    assert (found.text, found.finish, found.used) == (text, "stop", (5, 2, 0))


@st.composite
def updates(draw, world, most=None):
    def rows(*ends, of):
        return tuple((field, *(draw(st.integers(*end(field))) for end in ends)) for field in of)

    fields = draw(st.lists(st.integers(0, world.fields - 1), unique=True, max_size=most))
    steps, percents = (lambda field: (0, 99)), (lambda field: (0, 100))
    entries = rows(lambda field: (UNKNOWN, int(world.domain[field]) - 1), steps, percents, of=fields)
    reasons = rows(lambda field: (0, 2), lambda field: (0, 1), steps, of=fields[: reading.MOST_REASONS])
    action = draw(st.integers(WAIT, world.actions - 1))
    return Update(entries, draw(st.integers(0, 100)), action, draw(st.integers(0, 2)), reasons)


BUILT = [make_world(name, REGIMES["S3"], protocol) for name in WORLDS for protocol in (PAPER, RELEASED)]


@settings(max_examples=100)
@given(st.data(), st.sampled_from(BUILT))
def test_what_is_written_reads_back_and_what_fits_the_schema_can_be_used(data, world):
    update = data.draw(updates(world))
    assert parse_update(write_update(update, world), world) == update
    dated = parse_update(write_update(update, world, 17), world, 17)
    assert dated == replace(update, reasons=update.reasons if reading.gives_reasons(world) else ())
    rules = reading.update_schema(world)["properties"]
    assert list(rules) == ["set", "fade", "act", "risk", *(["why"] if reading.gives_reasons(world) else [])]
    said = {
        "set": data.draw(st.from_regex(rules["set"]["pattern"].rstrip("$") + r"\Z")),
        "fade": data.draw(st.integers(rules["fade"]["minimum"], rules["fade"]["maximum"])),
        "act": data.draw(st.sampled_from(rules["act"]["enum"])),
        "risk": data.draw(st.sampled_from(rules["risk"]["enum"])),
    }
    assert len(parse_update(json.dumps(said), world, step=99).entries) == said["set"].count(";")
    for wrong in ("1:0,0,0;0:0,0,0;", "0:0,0,0", "0:0,0,101;", "999:0,0,0;", f"0:{world.domain[0]},0,0;"):
        assert not re.fullmatch(rules["set"]["pattern"], wrong)


@pytest.mark.parametrize("world", BUILT, ids=lambda world: f"{world.name}-{world.protocol.name}")
def test_the_longest_update_of_the_largest_world_fits_in_512_tokens(world):
    """Tokenizers of today take up to three digits as one token, and no other ASCII character as two."""
    last = world.fields - 1
    entries = tuple((f, int(world.domain[f]) - 1, 99, 100) for f in range(world.fields))
    action = int(np.argmax([len(name) for name in world.action_names]))
    reasons = tuple((last - index, 2, 1, 99) for index in range(reading.MOST_REASONS))
    for step in (None, 99):
        text = write_update(Update(entries, 100, action, 2, reasons), world, step)
        assert text.isascii()
        assert len(re.findall(r"[0-9]{1,3}|[^0-9]", text)) <= ModelAgent.max_tokens
        assert len(text) < 800  # so reading.LONGEST_ANSWER refuses nothing that could be meant


def test_applying_an_update_fades_all_but_what_is_written_and_told():
    table = new(TABLE, 3)
    table.staleness[:, :4], table.confidence[:, :4] = 5, (50, 1, 100, 100)
    told, rest = Update(((3, 1, 2, 80),), 3), Update(((0, UNKNOWN, 0, 0),), 2)
    reading.apply_updates(table, np.array([1, 2]), [told, rest], np.array([2, NONE]))
    assert table.value[:, :4].tolist() == [[0, 0, 0, 0], [0, 0, 0, 1], [UNKNOWN, 0, 0, 0]]
    assert table.staleness[:, :4].tolist() == [[5, 5, 5, 5], [5, 5, 5, 2], [0, 5, 5, 5]]
    assert table.confidence[:, :4].tolist() == [[50, 1, 100, 100], [47, 0, 100, 80], [0, 0, 98, 98]]
    assert not table.value[:, 4:].any()
    assert not table.confidence[:, 4:].any()


def test_reported_terms_follow_the_public_codes_formula():
    """c: low, medium, high = 0, .5, 1; d: .5 used + .5 min(1, required / 3); nothing of unknown fields."""
    update = Update(reasons=((0, 2, 1, 1), (1, 1, 0, 9), (2, 0, 1, 0), (3, 2, 1, 3)))
    c, d = reading.reported_terms(update, [True, True, True, False, True])
    assert c.tolist() == [1.0, 0.5, 0.0, 0.0, 0.0]
    assert d.tolist() == [0.5 + 0.5 * (1 / 3), 0.5, 0.5, 0.0, 0.0]


# ---------------------------------------------------------------- whatever is said

RELEASED_TOOLS = make_world("tooldag", REGIMES["S1"], RELEASED)
odd = ["0", "1", "?", "-1", "00", "99", "100", "101", "0.95", "1e999", "NaN", "9" * 400, "\u0661", ""]
rows = st.lists(st.builds("{}:{},{},{}".format, *[st.sampled_from(odd)] * 4), max_size=2).map(";".join)
words = st.sampled_from(["wait", "call(0)", "call(4)", "call(5)", "low", "<script>", "\x00", "\ud800"])
scalars = st.one_of(st.none(), st.booleans(), st.integers(-2, 102), st.integers(), st.floats(), words, rows)
nested = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3)
)
off_schema = st.dictionaries(st.sampled_from([*GOOD, "sets", "__class__"]), nested, max_size=4).map(
    json.dumps
)
nonsense = st.fixed_dictionaries({}, optional=dict.fromkeys(GOOD, scalars)).map(lambda part: changed(**part))
valid = updates(RELEASED_TOOLS, 3).map(lambda update: write_update(update, TOOLS))
hostile = st.text(max_size=40) | st.builds(
    operator.mul, st.sampled_from(["[", '{"set":', "9"]), st.integers(0, 5000)
)
MIDDLES = ("", '"', "{", "NaN", ",", "\\ud800", "0", ";", "\x00", "}{")


def damaged(text, random):
    """Cut a text, or put something into it."""
    place = random.randint(0, len(text))
    return text[:place] + random.choice(MIDDLES) + text[place + random.randint(0, 5) :]


@pytest.mark.nightly
@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.one_of(valid, valid, nonsense, off_schema, hostile), min_size=10, max_size=10),
    st.integers(0, 2**32).map(Random),
)
def test_ten_thousand_answers_are_each_applied_or_counted(answers, random):
    cell = make_condition("tooldag", "no-probe", "S1", RELEASED)
    texts = [cut for text in answers for cut in (text, *(damaged(text, random) for _ in range(4)))]
    said = iter(texts)

    async def ask(request, identity, spoilt):
        return Answer(next(said))

    episodes = EpisodeBatch(cell, np.arange(len(texts)))
    agent = LanguageModelAgent(episodes, ask, ModelAgent("local", PROMPT_VERSION, "m", reasks=0))
    block, width = episodes.block, RELEASED_TOOLS.fields
    block.table.confidence[:, :width], block.action[:], block.risk[:] = 50, 3, 1
    block.sight.c[:, :width] = block.sight.d[:, :width] = 1.0
    before = block.table.copy()
    with pytest.raises(StopIteration):  # what never has to wait is finished at once
        agent.propose().send(None)
    assert next(said, None) is None
    for row, text in enumerate(texts):
        invalid = agent.tally[row]["invalid_updates"]
        read = partial(parse_update, world=TOOLS, step=0)
        update, loose = (reading.NO_UPDATE, False) if invalid else read_served(read, text)  # applied
        assert agent.tally[row]["loose_updates"] == loose
        reading.apply_updates(before, np.array([row]), [update], np.array([NONE]))
        assert (block.action[row], block.risk[row]) == (update.action, update.risk)
        values = block.table.value[row, :width]
        assert ((values >= UNKNOWN) & (values < RELEASED_TOOLS.domain)).all()
        for found, told in zip(
            (block.sight.c, block.sight.d), reading.reported_terms(update, values != UNKNOWN), strict=True
        ):
            np.testing.assert_array_equal(found[row, :width], told)
            assert (told <= 1).all()
    assert block.table.tobytes() == before.tobytes()
