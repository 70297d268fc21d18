"""The API key, which nobody else gets to see, in whatever spelling a server says it.

A server may repeat the key, as it is or encoded: in an error, in its own name for what answered, in an
answer, piece by piece over the events of a stream. So it is hidden twice: in the bytes as they come, and
again in what they mean, once that is decoded and put together. What is stored or told is made of the result.
"""

from __future__ import annotations

import base64
import os
import re
from functools import cached_property
from html.entities import html5

from pydantic import SecretStr

from envprobe_core.errors import InputError
from envprobe_core.llm import calls
from envprobe_core.llm.calls import Raw

VARIABLE = "OPENAI_API_KEY"
PLACEHOLDER = "local-server-without-a-key"
SHORTEST_SECRET = 8  # characters; `none`, `EMPTY` and the like are no secrets and may stand in answers
HIDDEN = "[API key]"
ESCAPES = "\\%&"  # without one of these signs a text spells nothing otherwise
DEEPEST = 8  # escapes of escapes, as of JSON in a text in JSON
BETWEEN = r"(?:[^!-~]|\\u[0-9a-fA-F]{4}|\\[bfnrt]){0,8}"
"""What no key holds, between its signs: much of it is left out wherever text is shown, and the key stays."""


class Secret(SecretStr):
    r"""The API key, and others that no text may hold; they show themselves to nobody.

    >>> key = Secret("sk-12345/678")
    >>> key.hide(r"<sk-12345/678> <\u0073k-12345\/678> <sk-12345%2F678> <&#115;k-12345&sol;678>")
    '<[API key]> <[API key]> <[API key]> <[API key]>'
    >>> key.hide("it ends with 678"), key
    ('it ends with 678', Secret('**********'))
    """

    def __init__(self, key: str = "", *others: str) -> None:
        """Take the key that is sent, and other values that are hidden with it."""
        super().__init__(key)
        taken = {one for one in (key, *others) if len(one) >= SHORTEST_SECRET and one != PLACEHOLDER}
        self._hidden = sorted(taken, key=len, reverse=True)

    def hide(self, text: str) -> str:
        """A text without the key: plain, parted, in base64, hexadecimal, or with signs escaped anyhow."""
        if not self._hidden:
            return text
        if any(sign in text for sign in ESCAPES):
            text = self._escaped.sub(HIDDEN, text)
        return self._whole.sub(HIDDEN, text)

    def hide_response(self, raw: Raw) -> Raw:
        """A response without the key, neither in its bytes nor in what they mean.

        Where decoding brings the key to light, the body becomes what it means, written plainly; the parts
        of a stream become its one event.
        """
        text = self.hide(raw.body.decode("utf-8", "surrogateescape"))
        raw = raw._replace(kind=self.hide(raw.kind), body=text.encode("utf-8", "surrogateescape"))
        if (content := calls.read_content(raw)) is None:
            return raw
        try:
            plain = calls.written(content).decode()
        except (RecursionError, ValueError):  # nested beyond what can be written: nobody could read it either
            return raw._replace(body=b"")
        if (hidden := self.hide(plain)) == plain:
            return raw
        event = "data: " if "event-stream" in raw.kind or raw.body.lstrip()[:5] == b"data:" else ""
        return raw._replace(body=f"{event}{hidden}".encode())

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        """The key as it is, or encoded as a whole, wherever in an encoded text it begins."""
        forms: set[str] = set()
        for value in (own.encode() for own in self._hidden):
            forms |= {BETWEEN.join(map(re.escape, value.decode())), f"(?i:{value.hex()})"}
            for before in range(3):  # base64 writes three bytes as four signs, at the ends with neighbours
                signs = base64.b64encode(bytes(before) + value).decode().rstrip("=")
                known = signs[-(-before * 4 // 3) : (before + len(value)) * 4 // 3]
                forms |= {re.escape(known), re.escape(known.replace("+", "-").replace("/", "_"))}
        return re.compile("|".join(sorted(forms, key=len, reverse=True)))

    @cached_property
    def _escaped(self) -> re.Pattern[str]:
        """The key with each sign plain or escaped: for JSON, a URL or HTML, several times over."""
        spelled = (BETWEEN.join(f"(?:{'|'.join(_spelled(sign))})" for sign in own) for own in self._hidden)
        return re.compile("|".join(spelled))


def _spelled(sign: str) -> list[str]:
    """Patterns of the ways to write a sign; every repetition is bounded, so that no text takes long."""
    code, slashes = ord(sign), rf"\\{{0,{DEEPEST}}}"
    named = [re.escape(f"&{name}") for name, own in html5.items() if own == sign and name.endswith(";")]
    return [
        rf"{slashes}{re.escape(sign)}",
        rf"(?i:\\{slashes}u00{code:02x})",
        rf"(?i:\\{slashes}x{code:02x})",
        rf"(?i:%(?:25){{0,{DEEPEST}}}{code:02x})",
        rf"(?i:&(?:amp;){{0,{DEEPEST}}}#0{{0,{DEEPEST}}}{code};)",
        rf"(?i:&(?:amp;){{0,{DEEPEST}}}#x0{{0,{DEEPEST}}}{code:x};)",
        *named,
    ]


def secret_from_environment(provider: str) -> Secret:
    """Read the key from OPENAI_API_KEY; a server on this machine needs none.

    Raises:
        InputError: if there is none, or it cannot stand in a header; the message does not show it.
    """
    value = os.environ.get(VARIABLE, "").strip()
    if not value and provider == calls.LOCAL:
        return Secret(PLACEHOLDER)
    if not value:
        raise InputError(
            f"{VARIABLE} is not set; it holds the key for {provider} (a server on this machine needs none, "
            "and --replay-only opens no connection)"
        )
    if not all("!" <= letter <= "~" for letter in value):
        raise InputError(f"{VARIABLE} holds spaces or letters that no key has")
    return Secret(value)
