"""The client against a real server that does everything wrong: bounded, stored, paid for, never scored."""

from __future__ import annotations

import asyncio
import base64
import html
import re
import sqlite3
import time
import unicodedata
import zlib
from contextlib import closing, suppress
from urllib.parse import quote, unquote

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from envprobe_core.agents.model import PROMPT_VERSION, ModelAgent
from envprobe_core.conditions import make_condition
from envprobe_core.errors import InputError
from envprobe_core.llm.agent import exchanges
from envprobe_core.llm.calls import (
    NO_TOKENS,
    Answer,
    Fault,
    Price,
    Raw,
    RunStoppedError,
    Tokens,
    find_price,
    provider_label,
    question,
    read_prices,
    read_response,
    total_cost,
)
from envprobe_core.llm.client import MOST_REDIRECTS, Limits, Service, retry_after
from envprobe_core.llm.secret import HIDDEN, Secret, secret_from_environment
from envprobe_core.llm.store import AnswerStore, check_store, read_stats
from scripted import answer
from scripted_server import HUGE, LASTING, PASSING, ScriptedServer, serving

KEY = "sk-secret/of+the=tests-0123456789"
SECRET = Secret(KEY)
PRICES = {"m": Price(input=100, output=1000, cached_input=50)}
BRIEF = {"start": 0.0, "concurrency": 8, "attempts": 2, "first": 0.01, "longest": 5.0, "deadline": 60.0}
CELL = make_condition("tooldag", "no-probe", "S1")
AGENT = ModelAgent("local", PROMPT_VERSION, "m")
FREE = ("loading", *(name for name in PASSING if name.startswith("rate-limit")), *LASTING[1:])


@pytest.fixture(scope="module")
def requests():
    """What the agent asks at the first steps of an episode."""
    asked = [one.request for one in exchanges(CELL, [0], AGENT)][:8]
    answer(asked[0])  # so that what answers is compiled before a client waits for it
    return asked


@pytest.fixture
def store(tmp_path):
    with closing(AnswerStore(tmp_path / "a.sqlite", prices=PRICES)) as opened:
        yield opened


def at(server, store, *works, **limits):
    """Run coroutines, each with a client of its own, on one server."""

    async def run():
        async with serving(server) as url:
            for work in works:
                service = Service(AGENT, store, SECRET, (url,), Limits(**BRIEF | limits))
                async with service.client() as client:
                    await work(client)

    asyncio.run(run())


def asked(request):
    return question("local", request, "sample")


def worst(request):
    """Dollars that a call can cost."""
    return total_cost(PRICES, {"m": asked(request).most})


@pytest.mark.parametrize("fault", [*PASSING, *LASTING, *HUGE])
def test_a_fault_that_stays_ends_the_run_is_paid_for_and_is_gone_the_next_time(fault, store, requests):
    tries = 1 if fault in LASTING else BRIEF["attempts"]

    async def stop(client):
        with pytest.raises(RunStoppedError) as stopped:
            await client.ask(requests[0], "sample")
        text = str(stopped.value)
        assert "\n" not in text
        assert len(text) < 500
        assert KEY not in text
        assert ("it asks to wait 3600 s" in text) == (fault == "rate-limit-hour")
        stats = read_stats(store.path, PRICES)
        assert (stats["answered"], sum(stats["attempts"].values())) == (0, tries)
        each = 0 if fault in FREE else worst(requests[0])
        if fault == "paid-error":
            each = (1000 * 100 + 100 * 1000) / 1e6
        assert stats["paid_usd"] == pytest.approx(tries * each)

    async def go_on(client):
        """One more fault, if it passes, and then an answer to the same request, byte for byte."""
        assert (await client.ask(requests[0], "sample")).text == answer(requests[0])

    # each of these ends by the deadline alone
    endless = fault in ("stall", "drip")
    server = ScriptedServer(faults=[fault], most=1 if fault in LASTING else tries + (not endless))
    at(server, store, stop, **({"deadline": 1.5} if endless else {}))
    at(server, store, go_on)
    ((times),) = server.asked.values()
    assert times == server.met[fault] + 1
    # constrained decoders write keys in the schema's order: beliefs are to be corrected first
    schema = server.last["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == schema["required"] == ["set", "fade", "act", "risk"]
    assert list(server.last) == list(requests[0])
    assert server.keys == {KEY}
    stats = read_stats(store.path, PRICES)
    assert (stats["answered"], stats["wasted_attempts"]) == (1, times - 1)
    assert not list(check_store(store.path))


def test_a_pause_that_a_server_asks_for_holds_for_every_question(store, requests):
    async def work(client):
        both = [asyncio.create_task(client.ask(requests[0], "sample"))]
        while not client.counts.faults:
            await asyncio.sleep(0.01)
        both.append(asyncio.create_task(client.ask(requests[1], "sample")))
        done, _ = await asyncio.wait(both, timeout=0.5)
        assert not done
        await client.close()
        ends = await asyncio.gather(*both, return_exceptions=True)
        assert {type(end) for end in ends} == {RunStoppedError}

    server = ScriptedServer(faults=["rate-limit-hour"])
    at(server, store, work, longest=4000.0)
    assert server.asked.total() == 1


def test_one_question_in_flight_is_one_call_and_calls_keep_to_the_concurrency(store, requests):
    async def work(client):
        same = await asyncio.gather(*(client.ask(requests[0], "sample") for _ in range(5)))
        assert len({answered.text for answered in same}) == 1
        await asyncio.gather(*(client.ask(request, "another sample") for request in requests))
        await client.ask(requests[0], "sample")
        assert client.counts.replayed == 1

    server = ScriptedServer(latency=0.5)
    at(server, store, work, concurrency=3)
    assert server.asked.total() == 1 + len(requests)
    assert server.most_under_way == 3


@pytest.mark.parametrize("slow", [0.0, 0.03])
def test_calls_wait_for_each_other_under_a_tight_cap(slow, store, requests, monkeypatch):
    """Reservations are given back, by a slow disk too: calls fit of which only some would at their most."""
    store.cap, settle = 2 * max(map(worst, requests)), AnswerStore.settle
    monkeypatch.setattr(AnswerStore, "settle", lambda *given: (time.sleep(slow), settle(*given))[1])

    async def work(client):
        await asyncio.gather(*(client.ask(request, "sample") for request in requests[:3]))
        assert total_cost(PRICES, store.used()) == pytest.approx(client.counts.cost)
        assert client.counts.cost <= store.cap

    at(ScriptedServer(latency=0.02), store, work)


def test_a_second_interrupt_which_cancels_every_task_loses_no_change(store, requests, monkeypatch):
    """It comes while a commit is under way, and a call that it ends is settled by the next."""
    commit = AnswerStore.commit
    server = ScriptedServer(latency=30.0)

    async def work(client):
        first = asyncio.create_task(client.ask(requests[0], "sample"))
        while not server.asked:
            await asyncio.sleep(0.01)
        monkeypatch.setattr(AnswerStore, "commit", lambda *given: (time.sleep(0.5), commit(*given))[1])
        others = [first, asyncio.create_task(client.ask(requests[1], "sample"))]
        await asyncio.sleep(0.1)
        tasks = [task for task in asyncio.all_tasks() if "llm/client.py" in repr(task)]
        for task in sorted(tasks, key=lambda task: "commit" in repr(task.get_coro())):
            task.cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, *others, return_exceptions=True), 600.0)

    at(server, store, work)
    assert read_stats(store.path, PRICES)["attempts"] == {"started": 2}
    assert store._reading.execute("SELECT holder FROM calls ORDER BY id").fetchone() == (None,)  # settled


@pytest.mark.parametrize(
    "refused", [("json_schema",), ("max_tokens", "temperature"), ("seed", "system")], ids=str
)
def test_a_server_that_refuses_a_parameter_is_asked_without_it(refused, store, requests):
    async def work(client):
        for request in requests[:2]:
            assert (await client.ask(request, "sample")).text == answer(request)
        assert client.counts.faults == len(refused)  # each is refused once
        # and by calls that are under way together, more than once, which is no failure of theirs
        await asyncio.gather(*(client.ask(request, "sample") for request in requests[2:]))

    server = ScriptedServer(refuses=refused)
    at(server, store, work, attempts=1)
    assert ("max_completion_tokens" in server.last) == ("max_tokens" in refused)
    form = "json_object" if "json_schema" in refused else "json_schema"
    assert server.last["response_format"]["type"] == form
    assert store.rungs() == {"m": sorted(f"no-{part.replace('_', '-')}" for part in refused)}
    assert not list(check_store(store.path))


class MovedServer(ScriptedServer):
    """Sends a request on, and answers what comes back."""

    def __init__(self, there):
        super().__init__()
        self.there, self.sent_on = there, 0

    async def complete(self, request):
        if request.query_string == "moved":
            return await super().complete(request)
        self.sent_on += 1
        return web.Response(status=308, headers={"Location": self.there})


def test_a_redirect_is_followed_on_its_host_and_the_key_goes_to_no_other(store, requests):
    elsewhere = ScriptedServer()

    async def run():
        async with serving(elsewhere) as other:
            for number, there in enumerate(
                ("?moved", "/v1/chat/completions?moved", f"{other}/chat/completions")
            ):
                server, follows = MovedServer(there), other not in there
                async with serving(server) as url:
                    service = Service(AGENT, store, SECRET, (url,), Limits(**BRIEF))
                    async with service.client() as client:
                        if follows:
                            given = await client.ask(requests[number], "sample")
                            assert given.text == answer(requests[number])
                        else:
                            with pytest.raises(RunStoppedError, match="where the key is not sent; give that"):
                                await client.ask(requests[number], "sample")
                assert (server.sent_on, server.answered, server.keys) == (
                    (1, 1, {KEY}) if follows else (1, 0, set())
                )

    asyncio.run(run())
    assert not elsewhere.keys
    assert not elsewhere.asked


ESCAPED = "".join(f"\\u{ord(sign):04x}" for sign in KEY)
LINE = "\\r\\n"
WIDER = 0xFEE0  # from a sign of ASCII to its wide form
SPELLINGS = {
    "plain": KEY,
    "escaped for JSON": ESCAPED,
    "JSON in JSON": ESCAPED.replace("\\", "\\\\"),
    "slashes escaped": KEY.replace("/", "\\/"),
    "in a URL": "".join(f"%{ord(sign):02x}" for sign in KEY),
    "in HTML": "".join(f"&#{ord(sign)};" for sign in KEY),
    "base64": base64.b64encode(f"Bearer {KEY}!".encode()).decode(),
    "hexadecimal": KEY.encode().hex(),
    "half escaped": KEY[:4] + ESCAPED[24:],
    "parted by what nobody sees": "\u200b".join(KEY),
    "parted by spaces": " ".join(KEY),
    "parted by escapes": r"\u0001".join(KEY),
    "upper case": KEY.upper(),
    "lower case": KEY.lower(),
    "wide": KEY.translate({sign: sign + WIDER for sign in range(0x21, 0x7F)}),
    "wide and escaped": "".join(f"\\u{ord(sign) + WIDER:04x}" for sign in KEY),
    "backwards": KEY[::-1],
    "base64 in lines": re.sub("(.{12})", lambda of: of[1] + LINE, base64.b64encode(KEY.encode()).decode()),
}
WHOLE = '{{"model":"{0}","system_fingerprint":"{0}","choices":[{{"message":{{"content":"{0}"}}}}]}}'
BODIES = {  # where a server says the key
    "an answer": (200, "application/json", WHOLE.format),
    "an error": (500, "application/json", '{{"error":{{"message":"no {0}","code":"{0}"}}}}'.format),
    "a page": (200, "text/html; x={0}", "<html>{0}".format),
    "no JSON": (500, "text/plain", "key {0} is wrong".format),
    "a stream": (
        200, "text/event-stream",
        lambda said: "".join(f'data: {{"choices":[{{"delta":{{"content":"{said[at : at + 18]}"}}}}]}}\n\n'
                             for at in range(0, len(said), 18)),
    ),
}  # fmt: skip


def decoded(text):
    """A text with everything that it may hold in another spelling laid bare beside it."""
    shown = [text]
    for _ in range(3):
        shown.append(re.sub(r"\\u([0-9a-f]{4})", lambda sign: chr(int(sign[1], 16)), shown[-1]))
        shown.append(html.unescape(unquote(shown[-1])).replace("\\/", "/").replace("\\\\", "\\"))
    shown = [unicodedata.normalize("NFKC", one) for one in shown]
    shown += ["".join(sign for sign in one if "!" <= sign <= "~") for one in shown]
    for word in re.findall(r"[A-Za-z0-9+/=]{16,}", f"{text}\n{text.replace(LINE, '')}"):
        with suppress(ValueError):
            shown.append(base64.b64decode(word + "=" * (-len(word) % 4)).decode("latin-1"))
        with suppress(ValueError):
            shown.append(bytes.fromhex(word).decode("latin-1"))
    return "\n".join([*shown, *(one[::-1] for one in shown)]).lower()


@pytest.mark.parametrize("where", BODIES)
def test_the_key_is_nowhere_in_whatever_spelling_a_server_says_it(where, store, requests):
    status, kind, body = BODIES[where]
    said = []

    class Telling(ScriptedServer):
        async def complete(self, request):
            whole = {"status": status, "headers": {"Content-Type": kind.format("x"), "X-Odd": KEY}}
            return web.Response(body=body(self.spelling).encode(), **whole)

    server = Telling()

    async def work(client):
        for number, spelling in enumerate(SPELLINGS):
            server.spelling = SPELLINGS[spelling]
            try:
                said.append(repr(await client.ask(requests[0], f"sample {number}")))
            except RunStoppedError as error:
                said.append(str(error))
                client._stopped = None

    at(server, store, work, attempts=1)
    assert len(said) == len(SPELLINGS)
    with closing(sqlite3.connect(store.path)) as file:
        rows = file.execute("SELECT verdict, kind, response FROM calls").fetchall()
    kept = [f"{verdict} {kind} {zlib.decompress(response).decode()}" for verdict, kind, response in rows]
    assert len(kept) >= len(SPELLINGS)
    for text in (*said, *kept):
        assert KEY[4:].lower() not in decoded(text), text
    assert not list(check_store(store.path))


def test_nothing_answers_there(store, requests):
    async def run():
        async with serving(ScriptedServer()) as url:
            pass  # a port that was just given back
        async with Service(AGENT, store, SECRET, (url,), Limits(**BRIEF)).client() as client:
            with pytest.raises(RunStoppedError, match="no-connection"):
                await client.ask(requests[0], "sample")

    asyncio.run(run())
    assert store.used() == {"m": NO_TOKENS}


# ---------------------------------------------------------------- parts


def test_keys_hold_the_request_the_provider_and_the_sample_and_nothing_else(requests):
    changes = [{"model": "n"}, {"seed": 99}, {"temperature": 0.1}, {"max_tokens": 5}, {"response_format": {}}]
    others = [("local", {}, "sample"), ("openai", {}, "sample"), ("local", {}, "other")]
    others += [("local", change, "sample") for change in changes]
    keys = {question(provider, requests[0] | change, identity).key for provider, change, identity in others}
    assert len(keys) == len(others)
    assert asked(dict(reversed(requests[0].items()))).key in keys
    assert provider_label(None) == provider_label("https://api.openai.com/v1/") == "openai"
    assert provider_label("http://127.0.0.1:1/v1") == provider_label("http://localhost:2/v1") == "local"
    assert provider_label("https://example.org:8443/v1") == "example.org"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0), ("0.5", 0.5), ("-3", 0.0), ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0), ("soon", None), ("nan", None), ("", None),
    ],
)  # fmt: skip
def test_retry_after(header, seconds):
    assert retry_after({"Retry-After": header}, now=10.0) == seconds


def test_retry_after_as_a_date_counts_from_the_servers_own_clock_right_or_wrong():
    dates = {"Date": "Thu, 01 Jan 1970 05:00:00 GMT", "Retry-After": "Thu, 01 Jan 1970 05:00:07 GMT"}
    assert retry_after(dates) == 7.0


def test_a_server_that_never_loads_its_model_is_waited_for_no_longer_than_the_start_limit(store, requests):
    async def work(client):
        began = time.monotonic()
        with pytest.raises(RunStoppedError, match=r"after 1 attempt: loading \(HTTP 503: Loading model\)"):
            await client.ask(requests[0], "sample")
        assert time.monotonic() - began >= 0.5

    server = ScriptedServer(faults=["loading"], most=10**6)
    at(server, store, work, start=0.5, attempts=1, first=0.001)
    assert server.asked.total() > 2
    assert store.used() == {"m": NO_TOKENS}


def test_redirects_in_a_circle_end(store, requests):
    async def work(client):
        with pytest.raises(RunStoppedError, match="moved"):
            await client.ask(requests[0], "sample")

    class Circle(MovedServer):
        async def complete(self, request):
            self.sent_on += 1
            return web.Response(status=307, headers={"Location": self.there})

    server = Circle("?again")
    at(server, store, work, attempts=1)
    assert server.sent_on == MOST_REDIRECTS + 1


def test_waits_are_jittered_honour_the_server_and_are_capped():
    limits = Limits(first=1.0, longest=10.0)
    waits = [limits.wait(3, None) for _ in range(200)]
    assert 0 <= min(waits) < 0.5 < 3.5 < max(waits) <= 4
    assert 6 <= limits.wait(1, 6.0) <= limits.wait(1, 3600.0) == limits.wait(1, float("inf")) == 10
    assert limits.wait(60, None) <= 10


USAGE = '{"prompt_tokens":5,"completion_tokens":2%s}'


@pytest.mark.parametrize(
    ("text", "usage", "tokens"),
    [
        ('"x"', USAGE % "", Tokens(5, 2)),
        ("null", USAGE % ',"prompt_tokens_details":{"cached_tokens":3}', Tokens(5, 2, 3)),
        ("17", USAGE % ',"prompt_tokens_details":{"cached_tokens":9}', Tokens(5, 2)),
        ('{"a":1}', USAGE % ',"prompt_tokens_details":null', Tokens(5, 2)),
        ('"\\ud800"', USAGE.replace("5", "-5") % "", None),
        *(('""', USAGE.replace("5", odd) % "", None) for odd in ("NaN", "1e999", "true")),
        *(('""', odd, None) for odd in ('{"prompt_tokens":5}', "null")),
    ],
)
def test_an_odd_text_is_text_or_none_and_usage_is_taken_where_it_can_be_true(text, usage, tokens):
    body = f'{{"choices":[{{"message":{{"content":{text}}}}}],"usage":{usage},"system_fingerprint":"f"}}'
    found = read_response(Raw(200, "application/json", body.encode()))
    assert found.text in ("", "x", "\ud800")
    assert (type(found), found.used, found.fingerprint) == (Answer, tokens, "f")


MALFORMED = [b"[" * 100_000, b'{"x":' + b"9" * 5000 + b"}", b"\xff\xfe", b"", b"[]", b'{"choices":[null]}']


@pytest.mark.parametrize(
    ("status", "body", "name", "final"),
    [
        *((200, body, "malformed", False) for body in MALFORMED),
        (200, b'{"choices":null,"error":{"code":"insufficient_quota"}}', "error-in-200", True),
        (429, b'{"error":{"type":"insufficient_quota"}}', "no-quota", True),
        (429, b"slow down", "rate-limit", False),
        (400, b'{"error":{"message":"context length exceeded"}}', "refused", True),
        (301, b"", "refused", True),
        (404, b"", "not-found", True),
        (529, b"", "server-error", False),
    ],
)
def test_what_is_no_answer(status, body, name, final):
    found = read_response(Raw(status, "application/json", body))
    assert (type(found), found.name, found.final) == (Fault, name, final)
    assert ("\n" in str(found), "--base-url" in str(found)) == (False, name == "not-found")


def test_prices_are_read_and_bound_a_call(tmp_path, requests):
    prices = read_prices()
    assert find_price(prices, "gpt-4o-mini-2024-07-18") == prices["gpt-4o-mini"]
    assert PRICES["m"].cost(Tokens(10, 2, 4)) == pytest.approx((6 * 100 + 4 * 50 + 2 * 1000) / 1e6)
    assert Price(input=3, output=1).cost(Tokens(10, 2, 4)) == pytest.approx(32 / 1e6)
    assert find_price(prices, "unheard-of") is None
    most = asked(requests[0]).most
    assert most.prompt > sum(len(m["content"].encode()) for m in requests[0]["messages"])
    assert most.completion == requests[0]["max_tokens"]
    for text in ("{", "[]", '{"models":{"m":{"input":1}}}', '{"models":{"m":{"input":NaN,"output":1}}}'):
        (tmp_path / "p.json").write_text(text)
        with pytest.raises(InputError, match=r"prices p\.json: \w.*; accepted is"):
            read_prices(tmp_path / "p.json")


KEYS = st.text("abknstuxABKNSTUX0127-._~+/=", min_size=8, max_size=14)  # what RFC 6750 lets a key hold
WAYS = [
    str,
    str.upper,
    str.lower,
    lambda sign: chr(ord(sign) + WIDER),
    lambda sign: f"\\u{ord(sign):04x}",
    lambda sign: f"\\\\x{ord(sign):02X}",
    lambda sign: f"\\u{{{ord(sign.upper()):x}}}",
    lambda sign: f"%25{ord(sign.lower()):02x}",
    lambda sign: quote(chr(ord(sign) + WIDER)),
    lambda sign: f"&#0{ord(sign)};",
    lambda sign: f"&amp;#x{ord(sign) + WIDER:X};",
]
PARTED = st.sampled_from(["", "", " ", "\u200b", "\\n", "\\\\u00a0", "%0A", "&#8203;"])
ENCODED = [
    lambda value: value.hex(" "),
    lambda value: base64.encodebytes(b"?" + value + b"!").decode(),
    lambda value: base64.urlsafe_b64encode(b"??" + value).decode().replace("-", "%2D"),
    lambda value: base64.b64encode(value + b"??").decode().replace("/", r"\/"),
]


@settings(max_examples=60)
@given(KEYS, st.data())
def test_the_key_is_found_in_every_spelling_of_its_signs(key, data):
    signs = key[:: data.draw(st.sampled_from([1, -1]))]
    ways = data.draw(st.lists(st.sampled_from(WAYS), min_size=len(key), max_size=len(key)))
    parts = [*(data.draw(PARTED) for _ in key[1:]), ""]
    said = "".join(way(sign) + part for way, sign, part in zip(ways, signs, parts, strict=True))
    assert Secret(key).hide(f'é "{said}"\n') == f'é "{HIDDEN}"\n'
    encoded = data.draw(st.sampled_from(ENCODED))(key.encode())
    assert re.fullmatch(rf".{{0,4}}{re.escape(HIDDEN)}\S{{0,8}}\s*", Secret(key).hide(encoded))


@settings(max_examples=60)
@given(st.text(st.sampled_from('\\%&;#ux0s7é\u200b"ｓ k')))
def test_a_text_without_the_key_stays_as_it_is(text):
    assert SECRET.hide(text) == text
    assert SECRET.hide(f"{text}<{KEY}>{text}") == f"{text}<{HIDDEN}>{text}"


def test_a_text_that_nearly_holds_the_key_is_read_at_once():
    nearly = "".join(f"\\u{ord(sign):04x}" * 3 for sign in KEY[:-1])
    assert SECRET.hide(nearly) == nearly


def test_the_key_hides_itself(monkeypatch):
    assert KEY not in repr(SECRET) + str(SECRET) + f"{SECRET}"
    escaped = KEY.replace("/", "\\/")
    assert SECRET.hide(f"<{KEY}> <{escaped}> \ud800") == f"<{HIDDEN}> <{HIDDEN}> \ud800"
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert secret_from_environment("local").hide("local") == "local"
    for key, said in (("", "OPENAI_API_KEY is not set"), ("sk-with a space", "letters that no key has")):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        with pytest.raises(InputError, match=said) as refused:
            secret_from_environment("openai")
        assert "sk-with" not in str(refused.value)
