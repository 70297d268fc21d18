"""How long to wait before a call is tried again, and when to give up."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime


@dataclass(frozen=True)
class Patience:
    """Bounds on one call; they change nothing but time and whether a run stops.

    Attributes:
        attempts: tries of one call before the run stops.
        deadline: seconds that one try may take from its start to the last byte.
        first: seconds of the longest wait after the first failure; it doubles with each further one.
        longest: seconds of the longest wait, what a server asks for included.
    """

    attempts: int = 6
    deadline: float = 120.0
    first: float = 0.5
    longest: float = 60.0

    def wait(self, failures: int, asked: float | None, dice: random.Random) -> float:
        """Return the seconds to wait: full jitter, and no less than the server asked for.

        Args:
            failures: how often the call has failed so far, from 1.
            asked: what Retry-After says, None where it says nothing.
            dice: the source of the jitter.
        """
        jitter = dice.uniform(0.0, min(self.longest, self.first * 2 ** (failures - 1)))
        return min(self.longest, max(jitter, asked or 0.0))


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Read Retry-After, in seconds or as a date; None where it is missing or makes no sense.

    Args:
        headers: of the response.
        now: seconds since the epoch; by default the clock's.
    """
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - (time.time() if now is None else now)
        except (ValueError, OverflowError, TypeError):
            return None
    return max(0.0, seconds) if seconds == seconds else None
