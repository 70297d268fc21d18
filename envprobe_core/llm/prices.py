"""Prices are configuration: `data/prices.json`, or a file of the same form given with --prices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from envprobe_core.errors import InputError
from envprobe_core.files import read_whole
from envprobe_core.llm.asking import ChatRequest, Tokens
from envprobe_core.llm.keys import canonical
from envprobe_core.sources import DATA

PRICE_FILE = DATA / "prices.json"
A_MILLION = 10**6
LARGEST_PRICE = 10**6  # dollars for a million tokens
TOKENS_A_MESSAGE = 16  # role and separators; no known format needs as many
_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")

Dollars = Annotated[float, Field(ge=0, le=LARGEST_PRICE, allow_inf_nan=False, strict=True)]


class Price(BaseModel):
    """Dollars for a million tokens; a cached prefix costs as much as the rest where nothing is said."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: Dollars
    output: Dollars
    cached_input: Dollars | None = None

    def cost(self, tokens: Tokens) -> float:
        """Return what a call cost, in dollars."""
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = tokens.prompt - tokens.cached
        return (fresh * self.input + tokens.cached * cached + tokens.completion * self.output) / A_MILLION


class PriceList(BaseModel):
    """A price file's content."""

    models: dict[str, Price]


def most_tokens(request: ChatRequest) -> Tokens:
    """Bound a call's tokens: each is at least a byte of the request, and `max_tokens` caps the answer."""
    messages = request.get("messages", ())
    length = len(canonical(request)) + TOKENS_A_MESSAGE * (len(messages) + 1)
    return Tokens(length, int(request.get("max_tokens") or 0))


def read_prices(path: Path | None = None) -> dict[str, Price]:
    """Read a price file.

    Args:
        path: the file; by default the project's own.

    Returns:
        Prices by model.

    Raises:
        InputError: if it cannot be read or a price is none.
    """
    path = path or PRICE_FILE
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


def find_price(prices: Mapping[str, Price], model: str) -> Price | None:
    """Return a model's price; a dated snapshot costs what its model costs."""
    return prices.get(model) or prices.get(_SNAPSHOT.sub("", model))


def total_cost(prices: Mapping[str, Price], used: Mapping[str, Tokens]) -> float:
    """Return in dollars what tokens cost, by model; those of a model without a price cost nothing."""
    found = ((find_price(prices, model), tokens) for model, tokens in used.items())
    return sum(price.cost(tokens) for price, tokens in found if price is not None)


def dollars(amount: float) -> str:
    """Write an amount for people."""
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4g}"
