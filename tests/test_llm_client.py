"""The client against a real server that does everything wrong: bounded, stored, paid for, never scored."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
import zlib
from pathlib import Path

import pytest
from scripted import answer
from scripted_server import CONTENT, LASTING, PASSING, Plan, served

from envprobe_core.cells import make_cell
from envprobe_core.engine.running import Episodes
from envprobe_core.errors import InputError
from envprobe_core.llm.asking import (
    DEMAND,
    NO_TOKENS,
    Answered,
    ChatRequest,
    MissingAnswerError,
    RunStoppedError,
    Tokens,
)
from envprobe_core.llm.audit import check_store, read_stats
from envprobe_core.llm.calling import Caller, Patience, adapted, retry_after
from envprobe_core.llm.client import Client, Limits
from envprobe_core.llm.hiding import HIDDEN, Secret, secret_from_environment
from envprobe_core.llm.identity import ModelSettings
from envprobe_core.llm.keys import key_of, provider_label, question
from envprobe_core.llm.prices import Price, find_price, most_tokens, read_prices, total_cost
from envprobe_core.llm.prompts import SECOND, prompts_of
from envprobe_core.llm.reading import REFUSED_PARTS, Completion, Fault, Raw, read_response
from envprobe_core.llm.situations import NONE_YET, SituationWriter
from envprobe_core.llm.store import AnswerStore
from envprobe_core.protocols import PAPER
from envprobe_core.worlds import make_world

KEY = "sk-secret/of+the=tests-0123456789"
SECRET = Secret(KEY)
PRICES = {"m": Price(input=100, output=1000, cached_input=50)}
BRIEF = Patience(attempts=2, deadline=60.0, first=0.01, longest=5.0)
IMPATIENT = Patience(attempts=2, deadline=2.0, first=0.01, longest=5.0)
ENDLESS = ("stall", "drip")  # each ends by the deadline alone
FREE = ("rate-limit", "rate-limit-seconds", "rate-limit-date", *LASTING)


@pytest.fixture(scope="module")
def requests() -> list[ChatRequest]:
    """First situations of some episodes, as the agent asks about them."""
    import numpy as np

    cell, seeds = make_cell("tooldag", "no-probe", "S1", PAPER), np.arange(8)
    world, block = make_world(cell.world, cell.regime, cell.protocol), Episodes(cell, seeds).block
    texts = SituationWriter(world, block.task).write(block, np.full(8, NONE_YET), seeds)
    prompts = prompts_of(cell, SECOND)
    asked = [prompts.update_request(ModelSettings("m"), text, seed) for seed, text in enumerate(texts)]
    answer(asked[0])  # so that what answers is compiled before a client waits for it
    return asked


def opened(
    store: AnswerStore, url: str, patience: Patience = BRIEF, cap: int | None = None, concurrency: int = 8
) -> Client:
    caller = Caller(SECRET, [url], concurrency, patience.deadline)
    return Client(store, "local", caller, Limits(concurrency, cap, patience), PRICES)


def worst(request: ChatRequest) -> float:
    """Dollars that a call can cost."""
    return total_cost(PRICES, {"m": most_tokens(request)})


def spent(store: AnswerStore) -> float:
    return total_cost(PRICES, store.used())


async def ask_one(store: AnswerStore, url: str, request: ChatRequest, **more: object) -> Answered:
    client = opened(store, url, **more)  # type: ignore[arg-type]
    try:
        return await client.ask(request, "sample")
    finally:
        await client.close()


def everything_in(folder: Path) -> bytes:
    """All bytes of a folder, and what is compressed in its stores."""
    found = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for path in folder.glob("*.sqlite"):
        connection = sqlite3.connect(path)
        for (body,) in connection.execute("SELECT response FROM calls WHERE response NOT NULL"):
            found += zlib.decompress(body)
        connection.close()
    return found


@pytest.mark.parametrize("fault", [*PASSING, *LASTING])
def test_a_fault_that_stays_ends_the_run_and_is_paid_for(
    fault: str, tmp_path: Path, requests: list[ChatRequest]
) -> None:
    patience = IMPATIENT if fault in ENDLESS else BRIEF

    async def run() -> None:
        store = AnswerStore(tmp_path / "a.sqlite")
        async with served(Plan((fault,), 1.0, most=99)) as (url, _):
            with pytest.raises(RunStoppedError) as stopped:
                await ask_one(store, url, requests[0], patience=patience)
        text = str(stopped.value)
        assert "\n" not in text
        assert len(text) < 500
        assert KEY not in text
        assert store.find(key_of(question("local", requests[0], "sample"))) is None
        store.close()

    asyncio.run(run())
    tries = 1 if fault in LASTING else BRIEF.attempts
    stats = read_stats(tmp_path / "a.sqlite", PRICES)
    assert (stats.answered, sum(stats.attempts.values()), stats.wasted_attempts) == (0, tries, tries)
    each = worst(requests[0])
    if fault in FREE:
        each = 0
    elif fault == "paid-error":
        each = (1000 * 100 + 100 * 1000) / 1e6
    assert stats.paid_usd == pytest.approx(tries * each)
    assert not list(check_store(tmp_path / "a.sqlite"))
    assert KEY.encode() not in everything_in(tmp_path)


@pytest.mark.parametrize("fault", list(PASSING))
def test_a_fault_that_passes_is_tried_again_with_the_same_request(
    fault: str, tmp_path: Path, requests: list[ChatRequest]
) -> None:
    async def run() -> None:
        store = AnswerStore(tmp_path / "a.sqlite")
        async with served(Plan((fault,), 1.0, most=1)) as (url, server):
            patience = IMPATIENT if fault in ENDLESS else BRIEF
            answered = await ask_one(store, url, requests[1], patience=patience)
            assert answered.text == answer(requests[1])
            assert list(server.asked.values()) == [2]  # one request, byte for byte, twice
        store.close()

    asyncio.run(run())
    stats = read_stats(tmp_path / "a.sqlite", PRICES)
    assert (stats.answered, sum(stats.attempts.values()), stats.wasted_attempts) == (1, 2, 1)


@pytest.mark.parametrize("fault", list(CONTENT))
def test_a_bad_text_is_stored_as_it_came_and_marked_when_asked_again(
    fault: str, tmp_path: Path, requests: list[ChatRequest]
) -> None:
    request = requests[2]

    async def run() -> None:
        store = AnswerStore(tmp_path / "a.sqlite")
        async with served(Plan((fault,), 1.0, most=99)) as (url, _):
            client = opened(store, url)
            first = await client.ask(request, "sample")
            assert first.text != answer(request)
            assert KEY not in first.text
            turns = [{"role": "assistant", "content": "no"}, {"role": "user", "content": DEMAND}]
            again = await client.ask(request | {"messages": request["messages"] + turns}, "sample")
            assert again.text == answer(request)
            assert client.counts.unusable == 1
            await client.close()
        store.close()

    asyncio.run(run())
    stats = read_stats(tmp_path / "a.sqlite", PRICES)
    assert stats.attempts == {"answer": 1, "unusable": 1}
    assert (stats.answered, stats.wasted_attempts) == (2, 1)
    assert KEY.encode() not in everything_in(tmp_path)


def test_a_server_is_asked_for_the_table_before_the_action(
    tmp_path: Path, requests: list[ChatRequest]
) -> None:
    """Constrained decoders write keys in the schema's order: beliefs are to be corrected first."""

    async def run() -> ChatRequest:
        store = AnswerStore(tmp_path / "a.sqlite")
        async with served() as (url, server):
            await ask_one(store, url, requests[0])
        store.close()
        return server.last

    last = asyncio.run(run())
    schema = last["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == schema["required"] == ["set", "fade", "act", "risk"]
    assert list(last) == list(requests[0])


def test_one_question_in_flight_is_one_call(tmp_path: Path, requests: list[ChatRequest]) -> None:
    async def run() -> None:
        store = AnswerStore(tmp_path / "a.sqlite")
        async with served(latency=0.05) as (url, server):
            client = opened(store, url)
            same = await asyncio.gather(*(client.ask(requests[0], "sample") for _ in range(5)))
            assert len({answered.text for answered in same}) == 1
            await client.ask(requests[0], "another sample")
            assert server.asked.total() == 2
            await client.ask(requests[0], "sample")
            assert (server.asked.total(), client.counts.replayed) == (2, 1)
            await client.close()
        store.close()

    asyncio.run(run())


def test_calls_under_way_never_exceed_the_concurrency(tmp_path: Path, requests: list[ChatRequest]) -> None:
    async def run() -> None:
        store = AnswerStore(tmp_path / "a.sqlite")
        async with served(latency=0.05) as (url, server):
            client = opened(store, url, concurrency=3)
            await asyncio.gather(*(client.ask(request, "sample") for request in requests))
            await client.close()
            assert server.most_under_way == 3
        store.close()

    asyncio.run(run())


def test_the_cap_holds_whatever_fails(tmp_path: Path, requests: list[ChatRequest]) -> None:
    """Cut answers may have been charged: each counts its most, and none begins that could exceed it."""
    cap = 2.5 * worst(requests[0])

    async def run() -> None:
        store = AnswerStore(tmp_path / "a.sqlite")
        async with served(Plan(("cut",), 1.0, most=99)) as (url, server):
            patience = Patience(attempts=10, deadline=60.0, first=0.001, longest=0.01)
            with pytest.raises(RunStoppedError, match=r"cap of .* is reached"):
                await ask_one(store, url, requests[0], patience=patience, cap=cap)
            assert server.asked.total() == 2
        assert spent(store) == pytest.approx(2 * worst(requests[0]))
        store.close()

    asyncio.run(run())


@pytest.mark.parametrize("slow", [False, True], ids=["", "slow disk"])
def test_calls_wait_for_each_other_under_a_tight_cap(
    slow: bool, tmp_path: Path, requests: list[ChatRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reservations are given back: calls fit of which only some would fit at their worst cost."""
    cap = 2 * max(map(worst, requests))
    if slow:  # calls end while others still wait to hear whether they fit
        settle = AnswerStore.settle
        monkeypatch.setattr(AnswerStore, "settle", lambda *given: (settle(*given), time.sleep(0.03)))

    async def run() -> None:
        store = AnswerStore(tmp_path / "a.sqlite")
        async with served(latency=0.02) as (url, _):
            client = opened(store, url, cap=cap)
            await asyncio.gather(*(client.ask(request, "sample") for request in requests[:3]))
            await client.close()
            assert spent(store) == pytest.approx(client.counts.cost)
        store.close()
        assert client.counts.cost <= cap

    asyncio.run(run())


def test_two_clients_on_one_store_pay_no_question_twice(tmp_path: Path, requests: list[ChatRequest]) -> None:
    async def run() -> None:
        stores = [AnswerStore(tmp_path / "a.sqlite") for _ in range(2)]
        async with served(latency=0.05) as (url, server):
            clients = [opened(store, url, concurrency=3) for store in stores]
            every = [client.ask(request, "sample") for request in requests for client in clients]
            texts = [answered.text for answered in await asyncio.gather(*every)]
            assert texts[::2] == texts[1::2]
            assert server.asked.total() == len(requests)
            for client in clients:
                await client.close()
        for store in stores:
            store.close()

    asyncio.run(run())


@pytest.mark.parametrize("refused", [("response_format",), ("max_tokens", "temperature")], ids=str)
def test_a_server_that_refuses_a_parameter_is_asked_without_it(
    refused: tuple[str, ...], tmp_path: Path, requests: list[ChatRequest]
) -> None:
    async def run() -> None:
        store = AnswerStore(tmp_path / "a.sqlite")
        async with served(refuses=refused) as (url, server):
            client = opened(store, url, Patience(attempts=1, deadline=60.0))
            for request in requests[:2]:
                assert (await client.ask(request, "sample")).text == answer(request)
            assert server.asked.total() == 2 + len(refused)  # each is refused once
            assert ("max_completion_tokens" in server.last) == ("max_tokens" in refused)
            await client.close()
        store.close()

    asyncio.run(run())
    assert not list(check_store(tmp_path / "a.sqlite"))


def test_a_wait_that_is_too_long_is_named(tmp_path: Path, requests: list[ChatRequest]) -> None:
    async def run() -> None:
        store = AnswerStore(tmp_path / "a.sqlite")
        async with served(Plan(("rate-limit-hour",), 1.0)) as (url, server):
            with pytest.raises(RunStoppedError, match="it asks to wait 3600 s"):
                await ask_one(store, url, requests[0])
            assert server.asked.total() == 1
        store.close()

    asyncio.run(run())


def test_a_replay_asks_nobody_and_names_what_is_missing(tmp_path: Path, requests: list[ChatRequest]) -> None:
    AnswerStore(tmp_path / "a.sqlite").close()
    store = AnswerStore(tmp_path / "a.sqlite", writable=False)

    async def run() -> None:
        client = Client(store, "local", None, Limits(), {})
        with pytest.raises(MissingAnswerError, match=r"answer to [0-9a-f]{16} \(sample, model m of local\)"):
            await client.ask(requests[0], "sample")
        await client.close()

    asyncio.run(run())
    store.close()


def test_nothing_answers_there(tmp_path: Path, requests: list[ChatRequest]) -> None:
    async def run() -> None:
        store = AnswerStore(tmp_path / "a.sqlite")
        async with served() as (url, _):
            pass  # a port that was just given back
        with pytest.raises(RunStoppedError, match="no-connection"):
            await ask_one(store, url, requests[0])
        assert store.used() == {"m": NO_TOKENS}
        store.close()

    asyncio.run(run())


# ---------------------------------------------------------------- parts


def test_keys_hold_the_request_the_provider_and_the_sample_and_nothing_else(
    requests: list[ChatRequest],
) -> None:
    request = requests[0]
    keys = {
        key_of(question("local", request, "sample")),
        key_of(question("openai", request, "sample")),
        key_of(question("local", request, "other")),
        *(key_of(question("local", request | change, "sample")) for change in CHANGES),
    }
    assert len(keys) == 3 + len(CHANGES)
    backwards = dict(reversed(request.items()))
    assert key_of(question("local", backwards, "sample")) in keys


CHANGES: list[ChatRequest] = [
    {"model": "n"},
    {"seed": 99},
    {"temperature": 0.1},
    {"max_tokens": 5},
    {"response_format": {"type": "json_object"}},
]


def test_a_provider_is_named_without_its_port() -> None:
    assert provider_label(None) == provider_label("https://api.openai.com/v1/") == "openai"
    assert provider_label("http://127.0.0.1:1/v1") == provider_label("http://localhost:2/v1") == "local"
    assert provider_label("https://example.org:8443/v1") == "example.org"


def test_an_adapted_request_keeps_the_messages(requests: list[ChatRequest]) -> None:
    request = requests[0]
    sent = adapted(request, REFUSED_PARTS)
    assert adapted(request, ()) == request
    assert set(request) - set(sent) == {"response_format", "temperature", "max_tokens"}
    assert (sent["messages"], sent["max_completion_tokens"]) == (request["messages"], request["max_tokens"])


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("", None),
    ],
)
def test_retry_after(header: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": header}, now=10.0) == seconds


def test_waits_are_jittered_honour_the_server_and_are_capped() -> None:
    patience, dice = Patience(first=1.0, longest=10.0), random.Random(0)
    waits = [patience.wait(3, None, dice) for _ in range(200)]
    assert 0 <= min(waits) < 0.5
    assert 3.5 < max(waits) <= 4
    assert 6 <= patience.wait(1, 6.0, dice) <= 10
    assert patience.wait(1, 3600.0, dice) == patience.wait(1, float("inf"), dice) == 10
    assert patience.wait(60, None, dice) <= 10


COMPLETION = b'{"choices":[{"message":{"content":%s}}],"usage":%s,"system_fingerprint":"f"}'


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (b'{"prompt_tokens":5,"completion_tokens":2}', Tokens(5, 2)),
        (
            b'{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3}}',
            Tokens(5, 2, 3),
        ),
        (
            b'{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":9}}',
            Tokens(5, 2),
        ),
        (b'{"prompt_tokens":-5,"completion_tokens":2}', None),
        (b'{"prompt_tokens":NaN,"completion_tokens":2}', None),
        (b'{"prompt_tokens":1e999,"completion_tokens":2}', None),
        (b'{"prompt_tokens":true,"completion_tokens":2}', None),
        (b'{"prompt_tokens":5}', None),
        (b"null", None),
    ],
)
def test_usage_is_taken_where_it_can_be_true(usage: bytes, tokens: Tokens | None) -> None:
    assert read_response(Raw(200, "application/json", COMPLETION % (b'"x"', usage))) == Completion(
        "x", tokens, "f"
    )


@pytest.mark.parametrize("text", [b"null", b"17", b'{"a":1}', b'"\\ud800"'])
def test_an_odd_content_is_text_or_none(text: bytes) -> None:
    found = read_response(Raw(200, "application/json", COMPLETION % (text, b"null")))
    assert isinstance(found, Completion)
    assert found.text in ("", "\ud800")


@pytest.mark.parametrize(
    ("status", "body", "name", "final"),
    [
        (200, b"[" * 100_000, "malformed", False),
        (200, b'{"x":' + b"9" * 5000 + b"}", "malformed", False),
        (200, b"\xff\xfe", "malformed", False),
        (200, b"", "malformed", False),
        (200, b"[]", "malformed", False),
        (200, b'{"choices":[]}', "malformed", False),
        (200, b'{"choices":[null]}', "malformed", False),
        (200, b'{"choices":null,"error":{"code":"insufficient_quota"}}', "error-in-200", True),
        (200, b'{"error":"busy"}', "error-in-200", False),
        (429, b'{"error":{"type":"insufficient_quota"}}', "no-quota", True),
        (429, b"slow down", "rate-limit", False),
        (401, b"", "key-refused", True),
        (404, b"<html>", "not-found", True),
        (400, b"use max_completion_tokens", "no-max-tokens", False),
        (400, b'{"error":{"message":"json_schema is not supported"}}', "no-json-schema", False),
        (400, b'{"error":{"message":"context length exceeded"}}', "refused", True),
        (301, b"", "refused", True),
        (529, b"", "server-error", False),
    ],
)
def test_what_is_no_answer(status: int, body: bytes, name: str, final: bool) -> None:
    found = read_response(Raw(status, "application/json", body))
    assert isinstance(found, Fault)
    assert (found.name, found.final) == (name, final)
    assert "\n" not in str(found)


def test_prices_are_read_and_bound_a_call(tmp_path: Path, requests: list[ChatRequest]) -> None:
    prices = read_prices()
    price = find_price(prices, "gpt-4o-mini-2024-07-18")
    assert price == prices["gpt-4o-mini"] == Price(input=0.15, output=0.6, cached_input=0.075)
    assert price.cost(Tokens(10, 2, 4)) == pytest.approx((6 * 0.15 + 4 * 0.075 + 2 * 0.6) / 1e6)
    assert Price(input=3, output=1).cost(Tokens(10, 2, 4)) == pytest.approx(32 / 1e6)
    assert find_price(prices, "unheard-of") is None
    bound = most_tokens(requests[0])
    assert bound.prompt > sum(len(m["content"].encode()) for m in requests[0]["messages"])
    assert bound.completion == requests[0]["max_tokens"]
    for text in ("{", "[]", '{"models":{"m":{"input":1}}}', '{"models":{"m":{"input":NaN,"output":1}}}'):
        (tmp_path / "p.json").write_text(text)
        with pytest.raises(InputError):
            read_prices(tmp_path / "p.json")


def test_the_key_hides_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert KEY not in repr(SECRET) + str(SECRET) + f"{SECRET}"
    escaped = KEY.replace("/", "\\/")
    assert SECRET.hide(f"<{KEY}> <{escaped}>") == f"<{HIDDEN}> <{HIDDEN}>"
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert secret_from_environment("local").hide("local") == "local"
    with pytest.raises(InputError, match="OPENAI_API_KEY is not set"):
        secret_from_environment("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-with a space")
    with pytest.raises(InputError) as refused:
        secret_from_environment("openai")
    assert "sk-with" not in str(refused.value)
