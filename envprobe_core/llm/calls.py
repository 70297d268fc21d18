"""A call to a model: its request and key, what came back and what that says, the tokens used and their price.

A request is the body of an OpenAI chat completion, as plain JSON values. What a response says depends on its
stored bytes alone, so that an answer reads the same at every replay. Prices are configuration:
`data/prices.json`, or a file of the same form given with --prices.
"""

from __future__ import annotations

import hashlib
import json
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from envprobe_core.errors import InputError
from envprobe_core.files import read_whole
from envprobe_core.sources import DATA

ChatRequest = dict[str, Any]
DEMAND = "This answer cannot be used"
"""How the last message of a request begins that asks again."""
OPENAI_URL = "https://api.openai.com/v1"
LOCAL, LOCAL_HOSTS = "local", ("localhost", "127.0.0.1", "::1", "0.0.0.0")


class RunStoppedError(Exception):
    """A run cannot go on: the answers so far are kept and nothing was scored.

    Its message is one line that says why and what to do; the command line shows it and ends with exit code 1.
    """


class MissingAnswerError(RunStoppedError):
    """A replay needs an answer that its store does not hold."""


# ---------------------------------------------------------------- what is asked, and its key


class Asker(Protocol):
    """Anything that answers requests."""

    async def ask(self, request: ChatRequest, identity: str) -> Answer:
        """Answer a request, which is left as it is.

        Args:
            identity: whose sample it is (an episode's seed and the role that asks): with the request, the
                whole key of an answer. Two policies that meet one situation share request and identity.

        Raises:
            RunStoppedError: if no answer can be had; it passes through the agent and stops the run.
        """


def written(value: Any, *, in_order_of_names: bool = False) -> bytes:
    """Write a JSON value without spaces, its names as they stand or sorted, as keys are made of."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if in_order_of_names else None)
    except TypeError:  # lone surrogates and whole numbers beyond 64 bits
        separators = (",", ":")
        return json.dumps(value, sort_keys=in_order_of_names, separators=separators, allow_nan=False).encode()


def question(provider: str, request: ChatRequest, identity: str) -> bytes:
    """Return what a key condenses: provider label, whole request and the sample's identity.

    The API key, time limits, retries and concurrency are no part of it.
    """
    return written({"provider": provider, "request": request, "identity": identity}, in_order_of_names=True)


def key_of(content: bytes) -> bytes:
    """Return the 32 bytes of a question's key."""
    return hashlib.sha256(content).digest()


def provider_label(base_url: str | None) -> str:
    """Name who answers: `openai`, `local` for any server of this machine, else the host.

    A local server's port is left out, so that its answers still count after it was started on another.
    """
    host = urlsplit(base_url or OPENAI_URL).hostname or ""
    if host == urlsplit(OPENAI_URL).hostname:
        return "openai"
    return LOCAL if host in LOCAL_HOSTS else host


# ---------------------------------------------------------------- what it uses, and costs

MOST_TOKENS = 10_000_000  # of one call; a count beyond it is no count
TOKENS_A_MESSAGE = 16  # role and separators; no known format needs as many
A_MILLION = 10**6
LARGEST_PRICE = 10**6  # dollars for a million tokens
_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_Dollars = Annotated[float, Field(ge=0, le=LARGEST_PRICE, allow_inf_nan=False, strict=True)]


class Tokens(NamedTuple):
    """What a call used, as the server says."""

    prompt: int
    completion: int
    cached: int = 0

    def plus(self, other: Tokens) -> Tokens:
        """Add what another call used."""
        return Tokens(*map(operator.add, self, other))


NO_TOKENS = Tokens(0, 0)


def most_tokens(request: ChatRequest) -> Tokens:
    """Bound a call's tokens: each is at least a byte of the request, and `max_tokens` caps the answer."""
    length = len(written(request)) + TOKENS_A_MESSAGE * (len(request.get("messages", ())) + 1)
    return Tokens(length, int(request.get("max_tokens") or 0))


class Price(BaseModel):
    """Dollars for a million tokens; a cached prefix costs as much as the rest where nothing is said."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: _Dollars
    output: _Dollars
    cached_input: _Dollars | None = None

    def cost(self, tokens: Tokens) -> float:
        """Return what a call cost, in dollars."""
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = tokens.prompt - tokens.cached
        return (fresh * self.input + tokens.cached * cached + tokens.completion * self.output) / A_MILLION


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
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(
            f"prices {path.name}: {place}: {first['msg']}, not {str(first['input'])[:200]!r}; accepted is "
            f'{{"models": {{NAME: {{"input": X, "output": Y}}}}}}, dollars from 0 to {LARGEST_PRICE} for a '
            "million tokens"
        ) from None


def find_price(prices: Prices, model: str) -> Price | None:
    """Return a model's price; a dated snapshot costs what its model costs."""
    return prices.get(model) or prices.get(_SNAPSHOT.sub("", model))


def total_cost(prices: Prices, used: Mapping[str, Tokens]) -> float:
    """Return in dollars what tokens cost, by model; those of a model without a price cost nothing."""
    found = ((find_price(prices, model), tokens) for model, tokens in used.items())
    return sum(price.cost(tokens) for price, tokens in found if price is not None)


def dollars(amount: float) -> str:
    """Write an amount for people."""
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4g}"


# ---------------------------------------------------------------- what came back

LONGEST_DETAIL = 160
QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
KEY_CODES = ("invalid_api_key", "account_deactivated")
LASTING = (*QUOTA, *KEY_CODES)
REFUSED_PARTS = {
    "no-json-schema": ("json_schema", "response_format", "structured output"),
    "no-max-tokens": ("max_completion_tokens",),
    "no-temperature": ("temperature",),
}
"""Parts of a request that some servers refuse, by the words that name them; `provider` leaves them out."""


@dataclass(frozen=True)
class Raw:
    """A response as it came, but for the API key, should it stand in it."""

    status: int
    kind: str
    body: bytes


@dataclass(frozen=True)
class Answer:
    """A model's answer."""

    text: str  # the message's content; empty where the model gave none
    used: Tokens | None = None  # its tokens, None where the server did not say
    fingerprint: str = ""  # the server's own name for what answered, empty where it gave none
    # why it ended, as `stop`, or `length` where it was cut; empty where the server did not say
    finish: str = ""
    key: str = ""  # under which it is stored, in hexadecimal; empty where there is no store


@dataclass(frozen=True)
class Fault:
    """Why there is no answer."""

    name: str  # a short word, stored as the call's verdict
    detail: str = ""  # the server's own words, shortened
    final: bool = False  # whether asking again is of no use
    # its tokens, none where the provider cannot have charged for it; None where that is not known
    used: Tokens | None = None
    wait: float | None = None  # the seconds that Retry-After asks for, None where it says nothing

    def __str__(self) -> str:
        return f"{self.name} ({self.detail})" if self.detail else self.name


def read_response(raw: Raw) -> Answer | Fault:
    """Read a response; whatever it is, nothing is raised.

    Whether the text of an answer is a belief update is the agent's to say.
    """
    try:
        content = json.loads(raw.body)
    except (ValueError, RecursionError):
        content = None
    if raw.status // 100 != 2:
        return _refusal(raw, content)
    match content:
        case {"error": error} if error:
            code, words = _error(content)
            return Fault("error-in-200", words, code in LASTING, _tokens(content))
        case {"choices": [{"message": {**message}, **choice}, *_]}:
            said = message.get("content"), content.get("system_fingerprint"), choice.get("finish_reason")
            text, fingerprint, finish = (part if isinstance(part, str) else "" for part in said)
            return Answer(text, _tokens(content), fingerprint, finish)
        case {}:
            return Fault("malformed", "no message in it", used=_tokens(content))
    html = "html" in raw.kind or raw.body.lstrip()[:1] == b"<"
    return Fault("html" if html else "malformed", _words_of(raw.body))


def _refusal(raw: Raw, content: Any) -> Fault:
    status, used = raw.status, _tokens(content)
    code, words = _error(content)
    words = words or _words_of(raw.body)
    said = words.lower()
    name, final = "refused", True
    if status == 429 and (code in QUOTA or "exceeded your current quota" in said):
        name = "no-quota"
    elif status in (401, 403) or code in KEY_CODES:
        name = "key-refused"
    elif status == 404:
        name = "not-found"
    elif status in (408, 409, 425, 429) or status >= 500:
        final = False
        name = "rate-limit" if status == 429 else "busy" if status < 500 else "server-error"
    if status in (400, 422, 500, 501):
        for part, named in REFUSED_PARTS.items():
            if any(word in said for word in named):
                name, final = part, False
                break
    detail = f"HTTP {status}{': ' if words else ''}{words}"
    return Fault(name, detail, final, NO_TOKENS if used is None and status < 500 else used)


def _error(content: Any) -> tuple[str, str]:
    """Return an error's code and its words."""
    match content:
        case {"error": str(words)}:
            return "", _shortened(words)
        case {"error": {**error}}:
            codes = [error[name] for name in ("code", "type") if isinstance(error.get(name), str)]
            known = [code for code in codes if code in LASTING]
            words = error.get("message")
            return (known or codes or [""])[0], _shortened(words) if isinstance(words, str) else ""
    return "", ""


def _tokens(content: Any) -> Tokens | None:
    """Read the usage record; None where it is missing or cannot be true."""
    match content:
        case {"usage": {"prompt_tokens": prompt, "completion_tokens": completion, **rest}}:
            if not (_is_count(prompt) and _is_count(completion)):
                return None
            match rest:
                case {"prompt_tokens_details": {"cached_tokens": cached}} if _is_count(cached):
                    return Tokens(prompt, completion, cached if cached <= prompt else 0)
            return Tokens(prompt, completion)
    return None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS


def _words_of(body: bytes) -> str:
    return _shortened(body.decode("utf-8", "replace"))


def _shortened(text: str) -> str:
    """Bring a server's words into one printable line."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text[:2000]).split())
    return line if len(line) <= LONGEST_DETAIL else line[: LONGEST_DETAIL - 3] + "..."
