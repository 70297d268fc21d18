"""Requests and responses as Inspect has them (extra `[inspect]`): any provider that it knows answers a run.

    envprobe run --agent inspect:anthropic/claude-sonnet-4-0 ...

An answer is written down as the response of an OpenAI-compatible server, so that the store, its reading and
its replay are those of any run. Inspect neither retries nor caches here: each attempt is a call that is
stored, under the cap.
"""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass, field
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelUsage,
    ResponseSchema,
    get_model,
)
from inspect_ai.util import JSONSchema

from envprobe_core.agents.model import OWN_PARTS
from envprobe_core.errors import InputError, in_one_line
from envprobe_core.llm import calls
from envprobe_core.llm.calls import ChatRequest, Fault, Raw
from envprobe_core.llm.secret import Secret

ROLES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
ENDS = {"max_tokens": "length", "model_length": "length", "unknown": ""}
"""Why answers end, as OpenAI's servers call it; the rest has the same names."""
JSON = "application/json"
KEYS = re.compile(r"(^|_)(KEY|TOKEN|SECRET)(_|$)")  # names of variables that hold what nobody may see


def messages_of(request: ChatRequest) -> list[ChatMessage]:
    """The messages of a request."""
    return [ROLES[one["role"]](content=one["content"]) for one in request["messages"]]


def config_of(request: ChatRequest, *, strict: bool = True) -> dict[str, Any]:
    """What a request asks for beside messages, as `GenerateConfig` names it; its schema where `strict`."""
    form = request.get("response_format", {}).get("json_schema")
    asked = {name: request.get(name) for name in ("seed", "temperature")}
    asked["max_tokens"] = request.get("max_completion_tokens") or request.get("max_tokens")
    if form and strict:
        schema = JSONSchema.model_validate(form["schema"])
        asked["response_schema"] = ResponseSchema(
            name=form["name"], json_schema=schema, strict=form["strict"]
        )
    if more := {name: own for name, own in request.items() if name not in (*OWN_PARTS, "stream_options")}:
        asked["extra_body"] = more
    return {name: own for name, own in asked.items() if own is not None}


def response_of(output: ModelOutput) -> Raw:
    """What a model said, as a response of an OpenAI-compatible server."""
    ended = output.stop_reason if output.choices else ""
    choice: dict[str, Any] = {"message": {"content": output.completion}}
    choice["finish_reason"] = ENDS.get(ended, ended)
    whole: dict[str, Any] = {"model": output.model, "choices": [choice], "usage": _usage(output.usage)}
    if output.error:
        whole["error"] = {"message": output.error}
    return Raw(200, JSON, calls.written(whole))


def _usage(used: ModelUsage | None) -> dict[str, Any] | None:
    """Tokens as OpenAI counts them: a prompt's cached ones are among all of its."""
    if used is None:
        return None
    cached = used.input_tokens_cache_read or 0
    prompt = used.input_tokens + cached + (used.input_tokens_cache_write or 0)
    details = {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"prompt_tokens": prompt, "completion_tokens": used.output_tokens} | details


def find_model(name: str) -> Model:
    """The model of a name, as `anthropic/claude-sonnet-4-0`.

    Raises:
        InputError: if Inspect knows no such provider, or lacks its package or its key.
    """
    try:
        return get_model(name, config=GenerateConfig(max_retries=0))
    except Exception as error:  # whatever a provider's own code finds missing
        told = in_one_line(secrets_from_environment().hide(re.sub(r"\[/?[a-z ]*\]", "", str(error))))
        raise InputError(f"--agent inspect:{name}: {told or type(error).__name__}") from None


def secrets_from_environment() -> Secret:
    """The values of all variables that hold keys, as nobody knows which of them a provider sends."""
    return Secret(*(own for name, own in sorted(os.environ.items()) if KEYS.search(name.upper())))


@dataclass(eq=False)
class InspectServer:
    """Inspect's providers as a server that a client asks."""

    secret: Secret
    deadline: float  # seconds that a call may take
    path: str = ""  # nothing is redirected
    models: dict[str, Model] = field(default_factory=dict)  # by name

    async def send(self, request: ChatRequest) -> Raw | Fault:
        """Ask, and wait for the answer until the deadline; whatever goes wrong is a fault."""
        name = str(request["model"])
        model = self.models[name] if name in self.models else self.models.setdefault(name, find_model(name))
        config = GenerateConfig(**config_of(request), max_retries=0)
        try:
            async with asyncio.timeout(self.deadline):
                output = await model.generate(messages_of(request), config=config, cache=False)
        except TimeoutError:
            return Fault("timeout", f"no whole answer within {self.deadline:g} s")
        except Exception as error:  # each provider's SDK has its own
            return self._fault(model, error)
        return self.secret.hide_response(response_of(output))

    async def close(self) -> None:
        """Close the connections."""
        for model in self.models.values():
            await model.api.aclose()

    def _fault(self, model: Model, error: Exception) -> Raw | Fault:
        """What went wrong: a status as of any server, else whether the provider would try again."""
        if (last := getattr(error, "last_attempt", None)) is not None:  # what Inspect would have retried
            error = last.exception()
        words = " ".join(f"{type(error).__name__}: {error}".split())
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and 400 <= status < 600:
            told = {"error": {"message": words, "code": getattr(error, "code", None)}}
            return self.secret.hide_response(Raw(status, JSON, calls.written(told)))
        words = self.secret.hide(words)[: calls.LONGEST_DETAIL]
        return Fault("provider-error", words, final=not model.api.should_retry(error))
