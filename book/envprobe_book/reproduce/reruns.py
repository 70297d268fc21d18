"""What a section's engine ran, as a list that a page can run again and compare.

`read_ledger` condenses the ledger of a kernel (`envprobe_core.ledger`) into what the executed notebook keeps
in its record under `rerun`:

    cells, episodes   how many are listed
    packed            the list, as JSON in gzip in base64: `conditions`, as the page's engine takes them, and
                      `runs`, of a condition each: [its place, FIRST, PAST, digest]
    elsewhere         what was run and is not listed: [in words, how many], in the order of words

The digest of a run is `envprobe_core.ledger.condensed`, 16 hexadecimal digits. A range of seeds that another
of the same condition holds is left out, and ranges that follow one another are one: how work was split into
pieces and processes does not change the list.
"""

import base64
import gzip
import json
import pickle
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from envprobe_book.page_engine.settings import to_plain
from envprobe_core.agents.profiles import PROFILES
from envprobe_core.conditions import Condition

RERUN = "rerun"
MOST_AGENTS = 100
"""Of a section's profiles without a name. A section with more draws agents by the thousand, as the atlas:
a list of them would be larger than the page, and they are counted instead."""
Run = tuple[int, int, int]  # the first seed, the one past the last, and the digest


def read_ledger(path: Path) -> dict[str, Any]:
    """The record of what a ledger holds; one that was never written holds nothing."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    ranges, elsewhere = defaultdict[str, set[Run]](set), Counter[str]()
    for line in dict.fromkeys(lines) if lines else ():
        found = json.loads(line)
        if "condition" in found:
            ranges[found["condition"]].add((*found["seeds"], int(found["digest"], 16)))
    for line in lines:
        found = json.loads(line)
        if "kind" in found:
            elsewhere[found["kind"]] += found["count"]
    conditions = {text: pickle.loads(base64.b64decode(text)) for text in ranges}
    return _record([(conditions[text], joined(own)) for text, own in ranges.items()], elsewhere)


def joined(runs: Iterable[Run]) -> list[Run]:
    """The runs of one condition without those that others hold, and neighbours as one.

    >>> joined([(4, 6, 10), (0, 4, 1), (1, 3, 99)])
    [(0, 6, 11)]
    """
    kept: list[Run] = []
    for first, past, digest in sorted(set(runs), key=lambda run: (run[0], -run[1], run[2])):
        if kept and past <= kept[-1][1] and (first, past) != kept[-1][:2]:
            continue
        if kept and first == kept[-1][1]:
            kept[-1] = (kept[-1][0], past, (kept[-1][2] + digest) % 2**64)
        else:
            kept.append((first, past, digest))
    return kept


def _record(found: list[tuple[Condition, list[Run]]], elsewhere: Counter[str]) -> dict[str, Any]:
    """The record of conditions with their runs, in an order of their own."""
    nameless = {
        condition.profile
        for condition, _ in found
        if condition.profile != PROFILES.get(condition.profile.name)
    }
    if len(nameless) > MOST_AGENTS:
        left_out = [runs for condition, runs in found if condition.profile in nameless]
        found = [(condition, runs) for condition, runs in found if condition.profile not in nameless]
        kind = f"conditions of {len(nameless):,} agents without a name, too many to list"
        elsewhere[kind] += len(left_out)
    listed = defaultdict[str, set[Run]](set)
    for condition, runs in found:
        plain = to_plain(condition)
        if plain is None:
            elsewhere["conditions of a policy in Python"] += 1
        else:
            listed[json.dumps(plain, sort_keys=True)].update(runs)
    order = sorted(listed)
    runs = [
        [place, first, past, f"{digest:016x}"]
        for place, text in enumerate(order)
        for first, past, digest in joined(listed[text])
    ]
    content = {"conditions": [json.loads(text) for text in order], "runs": runs}
    text = json.dumps(content, separators=(",", ":"))
    return {
        "cells": len(runs),
        "episodes": sum(past - first for _, first, past, _ in runs),
        "packed": base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode(),
        "elsewhere": sorted([kind, count] for kind, count in elsewhere.items()),
    }


def unpacked(rerun: Mapping[str, Any]) -> dict[str, Any]:
    """The list that a record holds: `conditions` and `runs`."""
    return json.loads(gzip.decompress(base64.b64decode(rerun["packed"])))
