"""Prices are configuration: `data/prices.json`, or a file of the same form given with --prices.

Money is counted in whole picodollars, so that sums are exact.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envprobe_core.errors import InputError
from envprobe_core.llm.asking import ChatRequest
from envprobe_core.llm.keys import canonical
from envprobe_core.llm.reading import Tokens

PRICE_FILE = Path(__file__).resolve().parents[2] / "data" / "prices.json"
PICO = 10**12  # picodollars in a dollar
A_MILLION = 10**6
LARGEST_PRICE = 10**6  # dollars for a million tokens
TOKENS_A_MESSAGE = 16  # role and separators; no known format needs as many
_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_NAMES = ("input", "output", "cached_input")


@dataclass(frozen=True)
class Price:
    """Picodollars a token."""

    input: int
    output: int
    cached_input: int

    def cost(self, tokens: Tokens) -> int:
        """Return what a call cost."""
        fresh = tokens.prompt - tokens.cached
        return fresh * self.input + tokens.cached * self.cached_input + tokens.completion * self.output

    def worst(self, request: ChatRequest) -> int:
        """Return the most that a request can cost."""
        return self.cost(most_tokens(request))


def most_tokens(request: ChatRequest) -> Tokens:
    """Bound a call's tokens: each is at least a byte of the request, and `max_tokens` caps the answer."""
    messages = request.get("messages", ())
    length = len(canonical(request)) + TOKENS_A_MESSAGE * (len(messages) + 1)
    return Tokens(length, int(request.get("max_tokens") or 0))


def read_prices(path: Path | None = None) -> dict[str, Price]:
    """Read a price file.

    Args:
        path: the file; by default the project's own.

    Raises:
        InputError: if it cannot be read or a price is none.
    """
    path = path or PRICE_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"prices {path} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"prices {path.name} is not JSON ({error})") from None
    models = content.get("models") if isinstance(content, dict) else None
    if not isinstance(models, dict):
        raise InputError(
            f'prices {path.name}: accepted is {{"models": {{NAME: {{"input": X, "output": Y}}}}}} '
            "in dollars for a million tokens"
        )
    return {name: _price(name, entry) for name, entry in models.items()}


def _price(model: str, entry: Any) -> Price:
    if not isinstance(entry, dict) or not {"input", "output"} <= set(entry) <= set(_NAMES):
        raise InputError(f"price of {model!r}: accepted are input, output and, if any, cached_input")
    picos = {}
    for name, value in entry.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not 0 <= value <= LARGEST_PRICE:
            raise InputError(f"price of {model!r}: {name} {value!r} is not in 0..{LARGEST_PRICE} dollars")
        picos[name] = math.ceil(value * (PICO // A_MILLION))
    return Price(picos["input"], picos["output"], picos.get("cached_input", picos["input"]))


def find_price(prices: Mapping[str, Price], model: str) -> Price | None:
    """Return a model's price; a dated snapshot costs what its model costs."""
    return prices.get(model) or prices.get(_SNAPSHOT.sub("", model))


def cost_afterwards(
    prices: Mapping[str, Price], model: str, request: ChatRequest, tokens: Tokens | None
) -> int:
    """Price an attempt that was made without a price.

    Raises:
        InputError: if its model has none now either.
    """
    price = find_price(prices, model)
    if price is None:
        raise InputError(f"the store holds calls to {model!r}, which has no price; give one with --prices")
    return price.worst(request) if tokens is None else price.cost(tokens)


def dollars(picos: int) -> str:
    """Write an amount for people."""
    amount = picos / PICO
    return f"${amount:,.2f}" if amount >= 1 or not picos else f"${amount:.4g}"
