"""The client against a real server that does everything wrong: bounded, stored, paid for, never scored."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted import answer
from scripted_server import CONTENT, LASTING, PASSING, Plan, ScriptedServer, served

from envprobe_core.cells import make_cell
from envprobe_core.engine.running import Episodes
from envprobe_core.errors import InputError
from envprobe_core.llm.calls import (
    DEMAND,
    NO_TOKENS,
    REFUSED_PARTS,
    Answer,
    ChatRequest,
    Fault,
    MissingAnswerError,
    Price,
    Raw,
    RunStoppedError,
    Tokens,
    find_price,
    key_of,
    most_tokens,
    provider_label,
    question,
    read_prices,
    read_response,
    total_cost,
)
from envprobe_core.llm.client import Client, Limits
from envprobe_core.llm.identity import SECOND, ModelAgent
from envprobe_core.llm.prompts import prompts_of
from envprobe_core.llm.provider import HIDDEN, Caller, Secret, adapted, retry_after, secret_from_environment
from envprobe_core.llm.situations import NONE_YET, SituationWriter
from envprobe_core.llm.store import AnswerStore, check_store, read_stats
from envprobe_core.worlds import make_world

KEY = "sk-secret/of+the=tests-0123456789"
SECRET = Secret(KEY)
PRICES = {"m": Price(input=100, output=1000, cached_input=50)}
BRIEF = {"attempts": 2, "deadline": 60.0, "first": 0.01, "longest": 5.0}
IMPATIENT = BRIEF | {"deadline": 2.0}
ENDLESS = ("stall", "drip")  # each ends by the deadline alone
FREE = ("rate-limit", "rate-limit-seconds", "rate-limit-date", *LASTING)


@pytest.fixture(scope="module")
def requests() -> list[ChatRequest]:
    """First situations of some episodes, as the agent asks about them."""
    cell, seeds = make_cell("tooldag", "no-probe", "S1"), np.arange(8)
    world, block = make_world(cell.world, cell.regime, cell.protocol), Episodes(cell, seeds).block
    texts = SituationWriter(world, block.task).write(block, np.full(8, NONE_YET), seeds)
    agent, prompts = ModelAgent("local", SECOND, "m"), prompts_of(cell, SECOND)
    asked = [prompts.update_request(agent, text, seed) for seed, text in enumerate(texts)]
    answer(asked[0])  # so that what answers is compiled before a client waits for it
    return asked


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AnswerStore]:
    with closing(AnswerStore(tmp_path / "a.sqlite")) as opened:
        yield opened


@asynccontextmanager
async def asking(store: AnswerStore, url: str, **limits: Any) -> AsyncIterator[Client]:
    own = Limits(**({"concurrency": 8} | BRIEF | limits))
    client = Client(store, "local", Caller(SECRET, [url], own.concurrency, own.deadline), own, PRICES)
    try:
        yield client
    finally:
        await client.close()


def at(
    plan: Plan | None = None, *, store: AnswerStore, latency: float = 0.0, refuses: Any = (), **limits: Any
):
    """Run a test's coroutine with a client and the server that it asks."""

    def running(work: Any) -> ScriptedServer:
        async def run() -> ScriptedServer:
            async with (
                served(plan, latency, refuses) as (url, server),
                asking(store, url, **limits) as client,
            ):
                await work(client, server)
                return server

        return asyncio.run(run())

    return running


def worst(request: ChatRequest) -> float:
    """Dollars that a call can cost."""
    return total_cost(PRICES, {"m": most_tokens(request)})


def spent(store: AnswerStore) -> float:
    return total_cost(PRICES, store.used())


def everything_in(folder: Path) -> bytes:
    """All bytes of a folder, and what is compressed in its stores."""
    found = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for path in folder.glob("*.sqlite"):
        with closing(sqlite3.connect(path)) as connection:
            for (body,) in connection.execute("SELECT response FROM calls WHERE response NOT NULL"):
                found += zlib.decompress(body)
    return found


@pytest.mark.parametrize("fault", [*PASSING, *LASTING])
def test_a_fault_that_stays_ends_the_run_and_is_paid_for(
    fault: str, store: AnswerStore, requests: list[ChatRequest]
) -> None:
    @at(Plan((fault,), 1.0, most=99), store=store, **(IMPATIENT if fault in ENDLESS else BRIEF))
    async def _(client: Client, server: ScriptedServer) -> None:
        with pytest.raises(RunStoppedError) as stopped:
            await client.ask(requests[0], "sample")
        text = str(stopped.value)
        assert "\n" not in text
        assert len(text) < 500
        assert KEY not in text

    assert store.find(key_of(question("local", requests[0], "sample"))) is None
    tries = 1 if fault in LASTING else BRIEF["attempts"]
    stats = read_stats(store.path, PRICES)
    assert (stats["answered"], sum(stats["attempts"].values()), stats["wasted_attempts"]) == (0, tries, tries)
    each = 0 if fault in FREE else worst(requests[0])
    if fault == "paid-error":
        each = (1000 * 100 + 100 * 1000) / 1e6
    assert stats["paid_usd"] == pytest.approx(tries * each)
    assert not list(check_store(store.path))
    assert KEY.encode() not in everything_in(store.path.parent)


@pytest.mark.parametrize("fault", list(PASSING))
def test_a_fault_that_passes_is_tried_again_with_the_same_request(
    fault: str, store: AnswerStore, requests: list[ChatRequest]
) -> None:
    @at(Plan((fault,), 1.0, most=1), store=store, **(IMPATIENT if fault in ENDLESS else BRIEF))
    async def server(client: Client, server: ScriptedServer) -> None:
        assert (await client.ask(requests[1], "sample")).text == answer(requests[1])

    assert list(server.asked.values()) == [2]  # one request, byte for byte, twice
    # constrained decoders write keys in the schema's order: beliefs are to be corrected first
    schema = server.last["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == schema["required"] == ["set", "fade", "act", "risk"]
    assert list(server.last) == list(requests[1])
    stats = read_stats(store.path, PRICES)
    assert (stats["answered"], stats["wasted_attempts"]) == (1, 1)


@pytest.mark.parametrize("fault", list(CONTENT))
def test_a_bad_text_is_stored_as_it_came_and_marked_when_asked_again(
    fault: str, store: AnswerStore, requests: list[ChatRequest]
) -> None:
    request = requests[2]

    @at(Plan((fault,), 1.0, most=99), store=store)
    async def _(client: Client, server: ScriptedServer) -> None:
        first = await client.ask(request, "sample")
        assert first.text != answer(request)
        assert KEY not in first.text
        turns = [{"role": "assistant", "content": "no"}, {"role": "user", "content": DEMAND}]
        again = await client.ask(request | {"messages": request["messages"] + turns}, "sample")
        assert again.text == answer(request)
        assert client.counts.unusable == 1

    stats = read_stats(store.path, PRICES)
    assert stats["attempts"] == {"answer": 1, "unusable": 1}
    assert (stats["answered"], stats["wasted_attempts"]) == (2, 1)
    assert KEY.encode() not in everything_in(store.path.parent)


def test_one_question_in_flight_is_one_call(store: AnswerStore, requests: list[ChatRequest]) -> None:
    @at(latency=0.05, store=store)
    async def _(client: Client, server: ScriptedServer) -> None:
        same = await asyncio.gather(*(client.ask(requests[0], "sample") for _ in range(5)))
        assert len({answered.text for answered in same}) == 1
        await client.ask(requests[0], "another sample")
        assert server.asked.total() == 2
        await client.ask(requests[0], "sample")
        assert (server.asked.total(), client.counts.replayed) == (2, 1)


def test_two_clients_on_one_store_pay_no_question_twice(
    store: AnswerStore, requests: list[ChatRequest]
) -> None:
    async def run() -> None:
        with closing(AnswerStore(store.path)) as other:
            async with (
                served(latency=0.05) as (url, server),
                asking(store, url, concurrency=3) as one,
                asking(other, url, concurrency=3) as two,
            ):
                every = [client.ask(request, "sample") for request in requests for client in (one, two)]
                texts = [answered.text for answered in await asyncio.gather(*every)]
                assert texts[::2] == texts[1::2]
                assert server.asked.total() == len(requests)
                assert server.most_under_way <= 6

    asyncio.run(run())


def test_calls_under_way_never_exceed_the_concurrency(
    store: AnswerStore, requests: list[ChatRequest]
) -> None:
    @at(latency=0.05, store=store, concurrency=3)
    async def server(client: Client, server: ScriptedServer) -> None:
        await asyncio.gather(*(client.ask(request, "sample") for request in requests))

    assert server.most_under_way == 3


def test_the_cap_holds_whatever_fails(store: AnswerStore, requests: list[ChatRequest]) -> None:
    """Cut answers may have been charged: each counts its most, and none begins that could exceed it."""
    brief = {"attempts": 10, "first": 0.001, "longest": 0.01}

    @at(Plan(("cut",), 1.0, most=99), store=store, cap=2.5 * worst(requests[0]), **brief)
    async def server(client: Client, server: ScriptedServer) -> None:
        with pytest.raises(RunStoppedError, match=r"cap of .* is reached"):
            await client.ask(requests[0], "sample")

    assert server.asked.total() == 2
    assert spent(store) == pytest.approx(2 * worst(requests[0]))


@pytest.mark.parametrize("slow", [False, True], ids=["", "slow disk"])
def test_calls_wait_for_each_other_under_a_tight_cap(
    slow: bool, store: AnswerStore, requests: list[ChatRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reservations are given back: calls fit of which only some would fit at their worst cost."""
    cap = 2 * max(map(worst, requests))
    if slow:  # calls end while others still wait to hear whether they fit
        settle = AnswerStore.settle
        monkeypatch.setattr(AnswerStore, "settle", lambda *given: (settle(*given), time.sleep(0.03)))

    @at(latency=0.02, store=store, cap=cap)
    async def _(client: Client, server: ScriptedServer) -> None:
        await asyncio.gather(*(client.ask(request, "sample") for request in requests[:3]))
        assert spent(store) == pytest.approx(client.counts.cost)
        assert client.counts.cost <= cap


@pytest.mark.parametrize("refused", [("response_format",), ("max_tokens", "temperature")], ids=str)
def test_a_server_that_refuses_a_parameter_is_asked_without_it(
    refused: tuple[str, ...], store: AnswerStore, requests: list[ChatRequest]
) -> None:
    @at(refuses=refused, store=store, attempts=1)
    async def server(client: Client, server: ScriptedServer) -> None:
        for request in requests[:2]:
            assert (await client.ask(request, "sample")).text == answer(request)
        assert server.asked.total() == 2 + len(refused)  # each is refused once
        # and by calls that are under way together, more than once, which is no failure of theirs
        await asyncio.gather(*(client.ask(request, "sample") for request in requests[2:]))

    assert ("max_completion_tokens" in server.last) == ("max_tokens" in refused)
    assert not list(check_store(store.path))


def test_a_wait_that_is_too_long_is_named(store: AnswerStore, requests: list[ChatRequest]) -> None:
    @at(Plan(("rate-limit-hour",), 1.0), store=store)
    async def server(client: Client, server: ScriptedServer) -> None:
        with pytest.raises(RunStoppedError, match="it asks to wait 3600 s"):
            await client.ask(requests[0], "sample")

    assert server.asked.total() == 1


def test_a_replay_asks_nobody_and_names_what_is_missing(
    store: AnswerStore, requests: list[ChatRequest]
) -> None:
    async def run() -> None:
        client = Client(store, "local", None, Limits(), {})
        with pytest.raises(MissingAnswerError, match=r"answer to [0-9a-f]{16} \(sample, model m of local\)"):
            await client.ask(requests[0], "sample")
        await client.close()

    asyncio.run(run())


def test_nothing_answers_there(store: AnswerStore, requests: list[ChatRequest]) -> None:
    async def run() -> None:
        async with served() as (url, _):
            pass  # a port that was just given back
        async with asking(store, url) as client:
            with pytest.raises(RunStoppedError, match="no-connection"):
                await client.ask(requests[0], "sample")

    asyncio.run(run())
    assert store.used() == {"m": NO_TOKENS}


# ---------------------------------------------------------------- parts


def test_keys_hold_the_request_the_provider_and_the_sample_and_nothing_else(
    requests: list[ChatRequest],
) -> None:
    changes: list[ChatRequest] = [
        {"model": "n"}, {"seed": 99}, {"temperature": 0.1}, {"max_tokens": 5},
        {"response_format": {"type": "json_object"}},
    ]  # fmt: skip
    asked = [("local", {}, "sample"), ("openai", {}, "sample"), ("local", {}, "other")]
    asked += [("local", change, "sample") for change in changes]
    keys = {
        key_of(question(provider, requests[0] | change, identity)) for provider, change, identity in asked
    }
    assert len(keys) == len(asked)
    assert key_of(question("local", dict(reversed(requests[0].items())), "sample")) in keys


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
        ("7", 7.0), ("0.5", 0.5), ("-3", 0.0), ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0), ("soon", None), ("nan", None), ("", None),
    ],
)  # fmt: skip
def test_retry_after(header: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": header}, now=10.0) == seconds


def test_waits_are_jittered_honour_the_server_and_are_capped() -> None:
    limits, dice = Limits(first=1.0, longest=10.0), random.Random(0)
    waits = [limits.wait(3, None, dice) for _ in range(200)]
    assert 0 <= min(waits) < 0.5
    assert 3.5 < max(waits) <= 4
    assert 6 <= limits.wait(1, 6.0, dice) <= 10
    assert limits.wait(1, 3600.0, dice) == limits.wait(1, float("inf"), dice) == 10
    assert limits.wait(60, None, dice) <= 10


USAGE = b'{"prompt_tokens":5,"completion_tokens":2%s}'


@pytest.mark.parametrize(
    ("text", "usage", "tokens"),
    [
        (b'"x"', USAGE % b"", Tokens(5, 2)),
        (b"null", USAGE % b',"prompt_tokens_details":{"cached_tokens":3}', Tokens(5, 2, 3)),
        (b"17", USAGE % b',"prompt_tokens_details":{"cached_tokens":9}', Tokens(5, 2)),
        (b'{"a":1}', USAGE % b',"prompt_tokens_details":null', Tokens(5, 2)),
        (b'"\\ud800"', b'{"prompt_tokens":-5,"completion_tokens":2}', None),
        (b'""', b'{"prompt_tokens":NaN,"completion_tokens":2}', None),
        (b'""', b'{"prompt_tokens":1e999,"completion_tokens":2}', None),
        (b'""', b'{"prompt_tokens":true,"completion_tokens":2}', None),
        (b'""', b'{"prompt_tokens":5}', None),
        (b'""', b"null", None),
    ],
)
def test_an_odd_text_is_text_or_none_and_usage_is_taken_where_it_can_be_true(
    text: bytes, usage: bytes, tokens: Tokens | None
) -> None:
    body = b'{"choices":[{"message":{"content":%s}}],"usage":%s,"system_fingerprint":"f"}' % (text, usage)
    found = read_response(Raw(200, "application/json", body))
    assert isinstance(found, Answer)
    assert found.text in ("", "x", "\ud800")
    assert (found.used, found.fingerprint) == (tokens, "f")


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
    assert SECRET.hide(f"<{KEY}> <{escaped}> \ud800") == f"<{HIDDEN}> <{HIDDEN}> \ud800"
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert secret_from_environment("local").hide("local") == "local"
    with pytest.raises(InputError, match="OPENAI_API_KEY is not set"):
        secret_from_environment("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-with a space")
    with pytest.raises(InputError) as refused:
        secret_from_environment("openai")
    assert "sk-with" not in str(refused.value)
