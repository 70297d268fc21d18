"""What the slots of sentences say, by where intervals lie: the rule of `telling`, and of `telling.js`."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from envprobe_book.pages.markup import listed, number, signed

PLACES = "+-0~=?"  # above and below the base, astride it, within a margin of it, on it; not known
REST = "*"  # the case of all other places


def place(found: Mapping[str, float], base: float = 0.0, within: float = 0.0) -> str:
    """Where an interval lies.

    >>> [place({"value": 0.1, "low": low, "high": 0.3}, within=0.5) for low in (-0.2, -0.6, math.nan)]
    ['~', '0', '?']
    """
    low, high = found["low"] - base, found["high"] - base
    if not all(math.isfinite(found[part]) for part in ("value", "low", "high")):
        return "?"
    if low == high == 0:
        return "="
    if -within < low and high < within:
        return "~"
    return "+" if low > 0 else "-" if high < 0 else "0"


def said(data: Mapping[str, Any], found: Sequence[Mapping[str, float]]) -> str:
    """What a slot's data say of readings; `telling.js` does the same."""
    scale = data.get("scale", 1)
    found = [{part: scale * own[part] for part in ("value", "low", "high")} for own in found]
    places = [place(own, data.get("base", 0.0), data.get("within", 0.0)) for own in found]
    cases, names, digits = data["say"], data.get("names", []), data["digits"]
    if data["kind"] == "counts":
        n, all_ = sum(own in cases for own in places), len(places)
        return f"all {all_}" if n == all_ else f"{n or 'none'} of {all_}"
    if data["kind"] == "ranks":
        known = [
            (own["value"], name)
            for own, name in zip(found, names, strict=True)
            if math.isfinite(own["value"])
        ]
        rows: dict[str, list[str]] = {}
        for value, name in sorted(known, key=lambda pair: -pair[0]):
            rows.setdefault(_thousands(number(value, digits)), []).append(name)
        groups = [f"{listed(own)} ({text})" for text, own in rows.items()]
        return ", then ".join(groups[: data.get("top")]) or "not known"
    if data["kind"] == "groups":
        groups = []
        for case in PLACES:
            here = [at for at, own in enumerate(places) if own == case]
            if here:
                whole = data.get("every") if len(here) == len(places) else None
                text = cases.get(case, cases.get(REST, "")).replace(
                    "{names}", whole or listed(names[at] for at in here)
                )
                groups.append(_filled(text, [found[at] for at in here], data))
        return ", ".join(groups)
    if data["kind"] == "each":
        words = [
            _filled(next((text for case, text in cases.items() if fits(case, at)), ""), [own], data)
            for at, own in zip(places, found, strict=True)
        ]
        return _clauses(words, names)
    fitting = (text for case, text in cases.items() if fits(case, "".join(places)))
    return _filled(next(fitting, ""), found, data)


def _clauses(words: Sequence[str], names: Sequence[str]) -> str:
    """Words before their names, those that are the same once; `<...>` is said in the first clause alone.

    >>> _clauses(["<is >level (+0.1)", "<is >level (0.0)", "<is >ahead"], ["here", "there", "abroad"])
    'is level here (+0.1) and there (0.0), and ahead abroad'
    """
    said_of: dict[str, list[str]] = {}
    for text, name in zip(words, names, strict=True):
        stem, _, rest = text.partition(" (")
        said_of.setdefault(stem, []).append(f"{name} ({rest}" if rest else name)
    clauses = [
        f"{re.sub('<[^>]*>', '', stem) if at else re.sub('[<>]', '', stem)} {listed(own)}"
        for at, (stem, own) in enumerate(said_of.items())
    ]
    if 1 < len(clauses) < len(words):
        return f"{', '.join(clauses[:-1])}, and {clauses[-1]}"
    return listed(clauses)


def fits(case: str, places: str) -> bool:
    """Whether a case of `pattern` is that of some places."""
    how, _, which = case.partition(" ")
    if which:
        return {"every": set(places) == {which}, "some": which in places, "no": which not in places}[how]
    if case == "both":
        return "+" in places and "-" in places
    return case == REST or (
        len(case) == len(places) and all(a in (".", b) for a, b in zip(case, places, strict=True))
    )


def _filled(text: str, found: Sequence[Mapping[str, float]], data: Mapping[str, Any]) -> str:
    """A text with the numbers of its readings; what is above or below by less than is shown is said to be."""
    digits, base = data["digits"], data.get("base", 0.0)

    def one(match: re.Match[str]) -> str:
        own, part = found[int(match[1] or 0)], match[2]
        off = own["value"] - base
        if part == "v":
            return _thousands(signed(off, digits))
        if part != "n":
            return _thousands(number(own[part] - base, digits))
        text = number(abs(off), digits)
        least = number(10.0**-digits, digits)
        return _thousands(text) if off == 0 or text.strip("0.") else f"less than {least}"

    return in_units(re.sub(r"\{(?:(\d)\.)?(n|v|low|high)\}", one, text), data.get("unit", ""))


def _thousands(text: str) -> str:
    return re.sub(
        r"\d+", lambda whole: f"{int(whole[0]):,}" if len(whole[0]) > 3 else whole[0], text, count=1
    )


def in_units(text: str, unit: str) -> str:
    """A unit in the singular after `1` alone."""
    return re.sub(r"(\S+) \{unit\}", lambda m: f"{m[1]} {unit}{'' if m[1] == '1' else 's'}", text)
