"""A call to a model: its request and key, what came back and what that says, the tokens used and their price.

A request is the body of an OpenAI chat completion, as plain JSON values. What a response says depends on its
stored bytes alone, so that an answer reads the same at every replay. Prices are configuration:
`data/prices.json`, or a file of the same form given with --prices.
"""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from envprobe_core.errors import InputError, StoppedError, first_fault
from envprobe_core.files import read_whole
from envprobe_core.sources import DATA

ChatRequest = dict[str, Any]
OPENAI_URL = "https://api.openai.com/v1"
INSPECT = "inspect"  # who answers, where Inspect asks its provider
LOCAL, LOCAL_HOSTS = "local", ("localhost", "127.0.0.1", "::1", "0.0.0.0")


class RunStoppedError(StoppedError):
    """A run cannot go on: the answers so far are kept and nothing was scored."""


# ---------------------------------------------------------------- what it uses, and costs

MOST_TOKENS = 10_000_000  # of one call; a count beyond it is no count
TOKENS_A_MESSAGE = 16  # role and separators; no known format needs as many
LARGEST_PRICE = 10**6  # dollars for a million tokens
_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_Dollars = Annotated[float, Field(ge=0, le=LARGEST_PRICE, allow_inf_nan=False, strict=True)]


class Tokens(NamedTuple):
    """What a call used, as the server says."""

    prompt: int
    completion: int
    cached: int = 0  # of the prompt


NO_TOKENS = Tokens(0, 0)


class Price(BaseModel):
    """Dollars for a million tokens; a cached prefix costs as much as the rest where nothing is said."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: _Dollars
    output: _Dollars
    cached_input: _Dollars | None = None

    def cost(self, tokens: Tokens) -> float:
        """What a call cost, in dollars."""
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = tokens.prompt - tokens.cached
        return (fresh * self.input + tokens.cached * cached + tokens.completion * self.output) / 10**6


class PriceList(BaseModel):
    """A price file's content."""

    models: dict[str, Price]


Prices = Mapping[str, Price]


def read_prices(path: Path | None = None) -> dict[str, Price]:
    """Read a price file, by default the project's own; return prices by model.

    Raises:
        InputError: if it cannot be read or a price is none.
    """
    path = path or DATA / "prices.json"
    try:
        return PriceList.model_validate_json(read_whole(path)).models
    except OSError as error:
        raise InputError(f"prices {path} cannot be read ({error.strerror})") from None
    except ValidationError as error:
        given = str(error.errors()[0]["input"])[:200]
        raise InputError(
            f"prices {path.name}: {first_fault(error)}, not {given!r}; accepted is "
            f'{{"models": {{NAME: {{"input": X, "output": Y}}}}}}, dollars from 0 to {LARGEST_PRICE} for a '
            "million tokens"
        ) from None


def find_price(prices: Prices, model: str) -> Price | None:
    """A model's price; a dated snapshot costs what its model costs."""
    return prices.get(model) or prices.get(_SNAPSHOT.sub("", model))


def total_cost(prices: Prices, used: Mapping[str, Tokens]) -> float:
    """Return in dollars what tokens cost, by model; those of a model without a price cost nothing."""
    found = ((find_price(prices, model), tokens) for model, tokens in used.items())
    return sum(price.cost(tokens) for price, tokens in found if price is not None)


def dollars(amount: float) -> str:
    """Write an amount for people."""
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4g}"


# ---------------------------------------------------------------- what is asked, and its key


class Question(NamedTuple):
    """What is asked, of whom, and whose sample the answer is: one question has one answer."""

    request: ChatRequest
    content: bytes  # canonical JSON of provider, request and identity
    key: bytes  # SHA-256 of the content: 32 bytes

    @property
    def model(self) -> str:
        """The model that is asked."""
        return str(self.request.get("model", ""))

    @property
    def most(self) -> Tokens:
        """Bound a call's tokens: each is at least a byte of the request, and `max_tokens` caps the answer."""
        length = len(written(self.request)) + TOKENS_A_MESSAGE * (len(self.request.get("messages", ())) + 1)
        return Tokens(length, int(self.request.get("max_tokens") or 0))


def question(provider: str, request: ChatRequest, identity: str) -> Question:
    """A question with its key, of which neither API key nor time limits nor retries are a part.

    Args:
        provider: from `provider_label`.
        request: what is asked.
        identity: whose sample it is: the role that asks and the episode's seed. Two policies that meet one
            situation share request and identity.
    """
    whole = {"provider": provider, "request": request, "identity": identity}
    content = written(whole, in_order_of_names=True)
    return Question(request, content, hashlib.sha256(content).digest())


def written(value: Any, *, in_order_of_names: bool = False) -> bytes:
    """Write a JSON value without spaces, its names as they stand or sorted, as keys are made of."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if in_order_of_names else None)
    except TypeError:  # lone surrogates and whole numbers beyond 64 bits
        separators = (",", ":")
        return json.dumps(value, sort_keys=in_order_of_names, separators=separators, allow_nan=False).encode()


def provider_label(base_url: str | None) -> str:
    """Name who answers: `openai`, `local` for any server of this machine, else the host.

    A local server's port is left out, so that its answers still count after it was started on another.
    """
    host = urlsplit(base_url or OPENAI_URL).hostname or ""
    if host == urlsplit(OPENAI_URL).hostname:
        return "openai"
    return LOCAL if host in LOCAL_HOSTS else host


# ---------------------------------------------------------------- what came back

LONGEST_DETAIL = 160
LONGEST_SERVED = 120  # characters of a name that a server gives
LARGEST_RESPONSE = 2**24
"""Bytes of a response, unpacked, that are read: off the network, into the store and out of it. The events of
a stream take some 300 bytes a token, so that 50,000 tokens fit; as one text, millions do."""
TOO_LARGE = "too-large"  # a response beyond that, which is not kept
FILTERED = "content_filter"  # why an answer ended, where its server kept it back
ELSEWHERE = ("refusal", "tool_calls", "function_call", "reasoning_content", "reasoning")
"""Parts of a message that may hold the answer, or say why there is none, where it has no content."""
QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
KEY_CODES = ("invalid_api_key", "account_deactivated")
REFUSED_PARTS = {
    "no-max-tokens": ("max_tokens", ("max_completion_tokens",)),
    "no-temperature": ("temperature", ("temperature",)),
    "no-seed": ("seed", ("seed",)),
    "only-streams": ("stream", ("stream mode", "non-streaming", "only support stream", "stream must")),
    "no-system": (
        "messages",
        ("system role", "role system", "'system'", '"system"', "system message", "system prompt"),
    ),
    "no-json-schema": (
        "response_format",
        ("schema", "response_format", "response format", "structured", "grammar", "guided", "regex",
         "pattern", "enum", "json_object", "json mode"),
    ),
}  # fmt: skip
"""Parts of a request that some servers refuse, and the words that say so, in the order in which they are
looked for."""
IN_200 = "error-in-200"  # an error that came as an answer, with no status of its own
NO_SCHEMA, NO_OBJECT, STREAMED, MOVED = "no-json-schema", "no-json-object", "streamed", "moved"
RUNGS = {
    "no-max-tokens": "with max_completion_tokens in place of max_tokens",
    "no-temperature": "without a temperature",
    "no-seed": "without a seed",
    "only-streams": "for a stream, as it gives nothing else",
    "no-system": "without a system message: the rules stand in the first question",
    NO_SCHEMA: "for a JSON object, without its schema",
    NO_OBJECT: "without a form of the answer: the rules alone describe it",
    STREAMED: "for whole answers, and it sends streams",
    MOVED: "at the address to which it redirects",
}
"""Rungs of a ladder: how a server is asked that does not take a request as it is, in words that follow
`asked`. `adapted` makes the requests."""
LOADING = "loading"  # a server that is up and whose model is not yet


class Raw(NamedTuple):
    """A response as it came, but for the API key, should it stand in it."""

    status: int
    kind: str  # its Content-Type
    body: bytes
    wait: float | None = None  # the seconds that Retry-After asks for, which is not stored


class Answer(NamedTuple):
    """A model's answer."""

    text: str  # the message's content, or what stands in its place, as JSON; empty where the model gave none
    used: Tokens | None = None  # its tokens, None where the server did not say
    fingerprint: str = ""  # the server's own name for what answered, empty where it gave none
    # why it ended, as `stop`, or `length` where it was cut; empty where the server did not say
    finish: str = ""
    key: str = ""  # of its question, in hexadecimal; empty where there is no store
    served: str = ""  # the model that answered, as the server calls it; empty where it did not say


Ask = Callable[[ChatRequest, str, str], Awaitable[Answer]]
"""What answers: from a request, whose sample it is, and the key of the answer that it is to replace because
it could not be used, or "". It raises `RunStoppedError` if there is no answer to be had."""


class Fault(NamedTuple):
    """Why there is no answer."""

    name: str  # a short word, stored as the call's verdict
    detail: str = ""  # the server's own words, shortened
    final: bool = False  # whether asking again is of no use
    # its tokens, none where the provider cannot have charged for it; None where that is not known
    used: Tokens | None = None
    wait: float | None = None  # the seconds that Retry-After asks for, None where it says nothing

    def __str__(self) -> str:
        return f"{self.name} ({self.detail})" if self.detail else self.name


def adapted(request: ChatRequest, rungs: Collection[str]) -> ChatRequest:
    """A request without the parts that its server refuses, by names of `RUNGS`.

    The prompt says by itself what form an answer has, so that a schema may go, and then all of the form;
    models that reason name their limit otherwise and have no temperature; the rules stand at the head of the
    first question where there is no system message. The key of an answer is that of the request as the agent
    makes it.
    """
    parts = {REFUSED_PARTS[name][0] for name in rungs if name in REFUSED_PARTS}
    more: dict[str, Any] = {}
    if "max_tokens" in parts:
        more["max_completion_tokens"] = request["max_tokens"]
    if "stream" in parts:
        more |= {"stream": True, "stream_options": {"include_usage": True}}
    if NO_SCHEMA in rungs and NO_OBJECT not in rungs:
        more["response_format"] = {"type": "json_object"}
    if "messages" in parts:
        (first, second, *rest), parts = request["messages"], parts - {"messages"}
        if first["role"] == "system":
            joined = {"role": second["role"], "content": f"{first['content']}\n\n{second['content']}"}
            more["messages"] = [joined, *rest]
    return {name: value for name, value in request.items() if name not in parts} | more


def next_rung(found: "Fault", rungs: Collection[str]) -> "Fault":
    """A fault as the rung that it leads to, by those already taken: what refuses an object refuses no schema.

    >>> next_rung(Fault(NO_SCHEMA), []).name, next_rung(Fault(NO_SCHEMA), [NO_SCHEMA]).name
    ('no-json-schema', 'no-json-object')
    """
    return found._replace(name=NO_OBJECT) if found.name == NO_SCHEMA and NO_SCHEMA in rungs else found


def in_words(rungs: Collection[str]) -> list[str]:
    """How a server is asked, in words that follow `asked`: of rungs that lead on, the last one alone.

    >>> in_words(["no-json-object", "no-json-schema"])
    ['without a form of the answer: the rules alone describe it']
    """
    passed = {NO_SCHEMA: NO_OBJECT, STREAMED: "only-streams"}
    return [RUNGS[name] for name in rungs if passed.get(name) not in rungs]


def read_content(raw: Raw) -> Any:
    """The JSON value that a response holds, put together where it is a stream; None where there is none."""
    streamed = "event-stream" in raw.kind or raw.body.lstrip()[:5] == b"data:"
    # the last takes lone surrogates too
    for read in (_streamed,) if streamed else (orjson.loads, json.loads):
        try:
            return read(raw.body)
        except (ValueError, RecursionError, AttributeError, TypeError):
            pass
    return None


def read_response(raw: Raw) -> Answer | Fault:
    """Read a response; whatever it is, nothing is raised.

    Whether the text of an answer is a belief update is the agent's to say.
    """
    content, status = read_content(raw), raw.status
    used, error = _tokens(content), _error_in(content)
    match content:
        case {"choices": [{"message": {**message}, **choice}, *_]} if status // 100 == 2 and not error:
            said = (content.get("system_fingerprint"), choice.get("finish_reason"), content.get("model"))
            fingerprint, finish, served = map(_name, said)
            return Answer(_text(message, finish), used, fingerprint, finish, served=served)
    code, whole = _code_and_words(error, raw.body)
    words = whole if len(whole) <= LONGEST_DETAIL else f"{whole[: LONGEST_DETAIL - 3]}..."
    inside = status // 100 == 2
    if inside and not (number := _status_in(error)):
        html = "html" in raw.kind or raw.body.lstrip()[:1] == b"<"
        name = IN_200 if error else "html" if html and content is None else "malformed"
        return Fault(name, words, bool(error) and code in QUOTA + KEY_CODES, used, raw.wait)
    status = number if inside else status
    name, final, said = "refused", True, whole.lower()
    parts = [part for part, (_, named) in REFUSED_PARTS.items() if any(word in said for word in named)]
    if status in (400, 422, 500, 501) and parts:
        name, final = parts[0], False
    elif status == 503 and "loading" in said:
        name, final, used = LOADING, False, NO_TOKENS
    elif status == 429 and (code in QUOTA or "exceeded your current quota" in said):
        name = "no-quota"
    elif status in (401, 403) or code in KEY_CODES:
        name = "key-refused"
    elif status == 404:
        name = "not-found"
    elif status in (408, 409, 425, 429) or status >= 500:
        name, final = "rate-limit" if status == 429 else "busy" if status < 500 else "server-error", False
    detail = f"HTTP {f'{raw.status} with error ' if inside else ''}{status}{': ' if words else ''}{words}"
    if status == 404:
        detail += "; --base-url, which mostly ends in /v1, or --model names nothing there"
    free = used is None and status < 500 and not inside  # an answer that broke off may have been charged for
    return Fault(name, detail, final, NO_TOKENS if free else used, raw.wait)


def _name(said: Any) -> str:
    """A name that a server gives, as far as it can be shown; nothing where it gives none."""
    return "".join(filter(str.isprintable, said[:LONGEST_SERVED])) if isinstance(said, str) else ""


def _error_in(content: Any) -> Any:
    """What a response says went wrong: beside its choices, or in the first of them; None where nothing did.

    >>> _error_in({"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "gone"}}]})
    {'code': 502, 'message': 'gone'}
    """
    match content:
        case {"error": error} if error:
            return error
        case {"choices": [{"error": error}, *_]} if error:
            return error
        case {"choices": [{"finish_reason": "error"}, *_]}:
            return "the answer ended with an error"
    return None


def _status_in(error: Any) -> int:
    """The HTTP status that an error's code is, as a number or as text; 0 where it is none.

    >>> _status_in({"code": "429"}), _status_in({"code": "overloaded"})
    (429, 0)
    """
    code = error.get("code") if isinstance(error, dict) else None
    return int(str(code)) if re.fullmatch("[45][0-9]{2}", str(code), re.ASCII) else 0


def _text(message: dict[str, Any], finish: str) -> str:
    """Return a message's content; where that is no text, all that may hold or explain the answer, as JSON."""
    content = message.get("content")
    if isinstance(content, str) and content:
        return content
    if isinstance(content, list):
        return written(content).decode()
    more = {name: message[name] for name in ELSEWHERE if message.get(name)}
    more |= {"finish_reason": finish} if finish == FILTERED else {}
    return written(more).decode() if more else ""


def _streamed(body: bytes) -> Any:
    """Put together a response that a server sent as a stream, though none was asked for."""
    whole: dict[str, Any] = {}
    message: dict[str, str] = {}
    ended: dict[str, Any] = {"finish_reason": None}
    for line in body.splitlines():
        name, _, data = line.partition(b":")
        if name != b"data" or data.strip() == b"[DONE]":
            continue
        piece = orjson.loads(data)
        match piece:
            case {"choices": [{**choice}, *_]}:
                delta = choice.get("delta") or choice.get("message") or {}
                for part, value in delta.items():
                    if isinstance(value, str) and part != "role":
                        message[part] = message.get(part, "") + value
                ended |= {name: choice[name] for name in ("finish_reason", "error") if choice.get(name)}
        whole |= {name: value for name, value in piece.items() if value is not None}
    text = message.pop("content", "")
    if "choices" not in whole:
        return whole
    return whole | {"choices": [{"message": {"content": text} | message} | ended]}


def _code_and_words(error: Any, body: bytes) -> tuple[str, str]:
    """An error's code, first one that asking again does not mend, and its words in one short line."""
    told = error if isinstance(error, dict) else {"message": error}
    codes = [told[name] for name in ("code", "type") if isinstance(told.get(name), str)]
    words = told.get("message") if isinstance(told.get("message"), str) else body.decode("utf-8", "replace")
    words = " ".join("".join(letter if letter.isprintable() else " " for letter in words[:2000]).split())
    return min(codes, key=lambda code: code not in QUOTA + KEY_CODES, default=""), words


def _tokens(content: Any) -> Tokens | None:
    """Read the usage record; None where it is missing or cannot be true."""

    def is_count(value: Any, most: int = MOST_TOKENS) -> bool:
        return type(value) is int and 0 <= value <= most

    match content:
        case {"usage": {"prompt_tokens": prompt, "completion_tokens": completion, **more}}:
            if is_count(prompt) and is_count(completion):
                details = more.get("prompt_tokens_details")
                cached = details.get("cached_tokens") if isinstance(details, dict) else 0
                return Tokens(prompt, completion, cached if is_count(cached, prompt) else 0)
    return None
