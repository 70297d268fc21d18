"""Keys of answers: SHA-256 of everything that could change an answer, and of nothing else."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import urlsplit

import orjson

from envprobe_core.llm.asking import ChatRequest

OPENAI_URL = "https://api.openai.com/v1"
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
LOCAL = "local"


def canonical(value: Any) -> bytes:
    """Write a JSON value in the one form that keys are made of: sorted names, no spaces."""
    return written(value, in_order_of_names=True)


def written(value: Any, *, in_order_of_names: bool = False) -> bytes:
    """Write a JSON value without spaces, its names as they stand or sorted."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if in_order_of_names else None)
    except TypeError:  # lone surrogates and whole numbers beyond 64 bits
        separators = (",", ":")
        return json.dumps(value, sort_keys=in_order_of_names, separators=separators, allow_nan=False).encode()


def question(provider: str, request: ChatRequest, identity: str) -> bytes:
    """Return what a key condenses: provider label, whole request and the sample's identity.

    The API key, time limits, retries and concurrency are no part of it.
    """
    return canonical({"provider": provider, "request": request, "identity": identity})


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
