"""The API key, which nobody else gets to see, in whatever spelling a server says it.

A server may repeat the key, as it is or encoded: in an error, in its own name for what answered, in an
answer, piece by piece over the events of a stream. So it is hidden twice: in the bytes as they come, and
again in what they mean, once that is decoded and put together. What is stored or told is made of the result.

What programs do to a text on its way is undone: letters change their case, as a host's do in an address;
signs are escaped, more than once, or widened; blanks, line breaks and what nobody sees come between; the
whole is in base64 or hexadecimal, or backwards, which a mark of direction turns round on a screen. No filter
finds what a server disguises at will (a cipher, packed bytes, one sign an answer): it holds the key already.
"""

from __future__ import annotations

import base64
import os
import re
import sys
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from html.entities import html5
from urllib.parse import unquote

from pydantic import SecretStr

from envprobe_core.errors import InputError
from envprobe_core.llm import calls
from envprobe_core.llm.calls import Raw

VARIABLE = "OPENAI_API_KEY"
PLACEHOLDER = "local-server-without-a-key"
SHORTEST_SECRET = 8  # characters; `none`, `EMPTY` and the like are no secrets and may stand in answers
HIDDEN = "[API key]"
DEEPEST = 8  # escapes of escapes, as of JSON in a text in JSON
ESCAPE = re.compile(
    r"""[\\%&](?:
      (?<=\\)(?: U0000(?P<long>[0-9a-f]{4}) | u(?P<json>[0-9a-f]{4}) | x(?P<byte>[0-9a-f]{2})
             | [ux]\{0*(?P<braced>[0-9a-f]{1,6})\} | (?P<sign>.) )
    | (?<=%)(?P<url>[0-7][0-9a-f] | [89a-f][0-9a-f](?:%[89ab][0-9a-f]){0,3})
    | (?<=&)(?: \#0*(?P<decimal>[0-9]{1,7}); | \#x0*(?P<hex>[0-9a-f]{1,6}); | (?P<name>[a-z0-9]{1,31};) ))""",
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)
BLANKS = "bfnrt"  # behind a slash these are no letters
BETWEEN = re.compile("[^!-~]+")
"""What no key holds: much of it is left out wherever text is shown, and the key stays."""
Step = tuple[Sequence[int], Sequence[int]]
"""Where the ends of tokens lie in a text in which they were replaced, and where they lay before."""


class Secret(SecretStr):
    r"""The API key, and others that no text may hold; they show themselves to nobody.

    >>> key = Secret("sk-12345/678")
    >>> key.hide(r"<sk-12345/678> <\u0073k-12345\/678> <SK-12345%2F678> <&#115;k-12345&sol;678>")
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
        """A text without the key: plain, parted, wide, escaped anyhow, encoded as a whole, or backwards."""
        if not self._hidden:
            return text
        small = text.lower()
        if any(own.lower() in small for own in self._hidden):
            text = self._plain.sub(HIDDEN, text)
        bare = lay_bare(text).lower()
        if not (forms := [form for form in self._forms if form in bare]):
            return text
        steps: list[Step] = []
        lay_bare(text, steps)
        found = [
            (came_from(place, steps), came_from(place + len(form), steps, end=True))
            for form in forms
            for place in places_of(form, bare)
        ]
        shown, end = list[str](), 0
        for start, past in sorted(found):
            if start >= end:
                shown += [text[end:start], HIDDEN]
            end = max(end, past)
        return "".join([*shown, text[end:]])

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
    def _plain(self) -> re.Pattern[str]:
        """The key as it stands, though a slash before it may take its first sign for an escape."""
        plain = "|".join(map(re.escape, self._hidden))
        return re.compile(rf"(?<!\\)\\*(?:{plain})|{plain}", re.IGNORECASE)

    @cached_property
    def _forms(self) -> set[str]:
        """What a bare text may hold of the key, in small letters."""
        forms = {lay_bare(form).lower() for own in self._hidden for form in forms_of(own)}
        return {form for form in forms if len(form) >= SHORTEST_SECRET}


def forms_of(own: str) -> Iterator[str]:
    """A key forwards and backwards, and what a text holds of it in hexadecimal and in base64."""
    value = own.encode()
    yield from (own, own[::-1], value.hex())
    for before in range(3):  # base64 writes three bytes as four signs, at the ends with neighbours
        signs = base64.b64encode(bytes(before) + value).decode().rstrip("=")
        known = signs[-(-before * 4 // 3) : (before + len(value)) * 4 // 3]
        yield from (known, known.replace("+", "-").replace("/", "_"))


def places_of(form: str, text: str) -> Iterator[int]:
    """Where a form stands in a text, each place."""
    place = text.find(form)
    while place >= 0:
        yield place
        place = text.find(form, place + 1)


def lay_bare(text: str, steps: list[Step] | None = None) -> str:
    r"""What a text means, without what no key holds.

    Args:
        text: anything.
        steps: to which is added how its places lead back, see `came_from`.

    >>> lay_bare(r"ｓ\\u006b - %2531&amp;#50;")
    'sk-12'
    """
    text = narrowed(text)
    for _ in range(DEEPEST):
        escaped, text = text, narrowed(_replaced(ESCAPE, meaning_of, text, steps))
        if text == escaped:
            break
    return _replaced(BETWEEN, "", text, steps)


def narrowed(text: str) -> str:
    """A text in which signs of ASCII that stand there in another form, as wide or bold, are plain.

    >>> narrowed("ｓｋ－𝟏 é")
    'sk-1 é'
    """
    if text.isascii():
        return text
    plain = {ord(sign): unicodedata.normalize("NFKC", sign) for sign in set(text) if not sign.isascii()}
    return text.translate({sign: own for sign, own in plain.items() if len(own) == 1 and own.isascii()})


def meaning_of(token: re.Match[str]) -> str:
    """The sign that an escape stands for, or the escape where it stands for none."""
    kind = token.lastgroup or ""
    said = token[kind]
    if kind == "sign":
        return " " if said in BLANKS else said
    if kind == "url":
        return unquote(token[0], errors="replace")[0]
    if kind == "name":
        return own if len(own := html5.get(said, "")) == 1 else token[0]
    code = int(said, 10 if kind == "decimal" else 16)
    return chr(code) if code <= sys.maxunicode else token[0]


def _replaced(
    pattern: re.Pattern[str],
    meaning: str | Callable[[re.Match[str]], str],
    text: str,
    steps: list[Step] | None,
) -> str:
    """A text with its tokens replaced; noted among the steps is where their ends lie, and lay before."""
    if steps is None:
        return pattern.sub(meaning, text)
    pieces, after, before, end, length = list[str](), array("q", [0]), array("q", [0]), 0, 0
    for token in pattern.finditer(text):
        own = meaning if isinstance(meaning, str) else meaning(token)
        pieces += (text[end : token.start()], own)
        length += token.start() - end
        after.append(length)
        before.append(token.start())
        length, end = length + len(own), token.end()
        after.append(length)
        before.append(end)
    steps.append((after, before))
    return "".join([*pieces, text[end:]])


def came_from(place: int, steps: list[Step], *, end: bool = False) -> int:
    """The place in a text from which a place in what it means came, as the start or the end of something."""
    for after, before in reversed(steps):
        at = bisect_left(after, place) if end else bisect_right(after, place) - 1
        if end and (at == len(after) or after[at] != place):
            at -= 1
        place = before[at] + place - after[at]
    return place


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
