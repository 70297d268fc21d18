"""The worlds as a task of Inspect (extra `[inspect]`), for any model of any provider that Inspect knows.

    inspect eval envprobe_core/probing --model openai/gpt-4o-mini -T world=tooldag -T policy=simple

A sample is the episode of a seed. Its prompts, its checks of answers and its scores are those of
`envprobe run --agent openai`, which has its own store and budget; here Inspect has the calls, the limits and
the log. What a run is worth stands in Inspect's metrics, a mean and a standard error each:

    accuracy        share of belief fields right at the end, or as the protocol defines it
    success         whether the goal was reached
    probes          probes fired
    useful          of these, how many answers differed from the belief
    invalid         share of the belief updates that stayed unusable: the beliefs were left as they were
"""

from functools import partial
from typing import Any

import numpy as np
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ResponseSchema,
    get_model,
)
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import JSONSchema

from envprobe_core.agents.model import PROMPT_VERSION, ModelAgent
from envprobe_core.agents.profiles import TYPICAL
from envprobe_core.conditions import Condition, find_policy, find_regime, parse_seeds
from envprobe_core.llm.agent import LanguageModelAgent, run_rows
from envprobe_core.llm.calls import Answer, ChatRequest, Tokens
from envprobe_core.llm.prompts import find_version
from envprobe_core.protocols import parse_protocol

MEASURES = ("accuracy", "success", "probes", "useful", "invalid")
LONGEST_ANSWER = 512  # tokens, as in the paper; a model that reasons needs more (`--max-tokens`)
ROLES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


@task
def probing(
    world: str = "tooldag",
    policy: str = "simple",
    regime: str = "S2",
    protocol: str = "paper",
    seeds: str = "0:20",
    budget: int | None = None,
    threshold: float | None = None,
    prompts: str = PROMPT_VERSION,
    strict: bool = True,
) -> Task:
    """The task of a world: a sample a seed, the same episodes for every model and policy.

    Args:
        world: tooldag, objectstate or graphnav.
        policy: who decides what is probed; a judge asks the same model.
        regime: S1, S2, S3 or R1 to R6.
        protocol: with or without switches turned.
        seeds: `FIRST:PAST`.
        budget: probes an episode may spend; by default the regime's own.
        threshold: of a policy that has one; by default 1.5.
        prompts: their version.
        strict: whether the provider is asked to hold answers to the schema; some can not.
    """
    condition = Condition(
        world, find_policy(policy), find_regime(regime), parse_protocol(protocol), TYPICAL, budget, threshold
    )
    found = parse_seeds(str(seeds)).tolist()  # `-T seeds=7` arrives as a number
    samples = [
        Sample(f"{condition.built.title}, seed {seed}", id=seed, metadata={"seed": seed}) for seed in found
    ]
    return Task(
        dataset=MemoryDataset(samples, name=f"{world}-{policy}"),
        solver=episode(condition, find_version(str(prompts)), strict),
        scorer=episode_measures(),
        config=GenerateConfig(temperature=0.0, max_tokens=LONGEST_ANSWER),
        metadata=dict(condition.key),
    )


@solver
def episode(condition: Condition, version: str, strict: bool) -> Solver:
    """The solver that plays a sample's episode, a call to the model a step."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        """Play; what the episode was worth goes into the sample's store, its last answer into its output."""
        model = get_model()

        async def ask(request: ChatRequest, identity: str, spoilt: str) -> Answer:
            state.messages, config = _messages(request), _config(request, strict)
            state.output = await model.generate(state.messages, config=config)
            used = state.output.usage
            return Answer(
                state.output.completion, Tokens(used.input_tokens, used.output_tokens) if used else None
            )

        asked = ModelAgent("inspect", version, model.name)
        agent = partial(LanguageModelAgent, ask=ask, model=asked)
        recording, (tally,) = await run_rows(condition, np.array([state.metadata["seed"]]), agent)
        worth = {name: column.item() for name, column in recording.measures.items()}
        updates = tally["calls"] - tally["reasks"] - tally["verdicts"]
        worth |= tally | {"invalid": tally["invalid_updates"] / updates}
        state.store.set("episode", {name: None if value != value else value for name, value in worth.items()})
        state.completed = True
        return state

    return solve


@scorer(metrics={name: [mean(), stderr()] for name in MEASURES})
def episode_measures() -> Scorer:
    """The scorer: the project's own measures of the episode that was played."""

    async def score(state: TaskState, target: Target) -> Score:
        worth: dict[str, Any] = state.store.get("episode")
        return Score(value={name: float(worth[name]) for name in MEASURES}, metadata=worth)

    return score


def _messages(request: ChatRequest) -> list[ChatMessage]:
    return [ROLES[one["role"]](content=one["content"]) for one in request["messages"]]


def _config(request: ChatRequest, strict: bool) -> GenerateConfig:
    """What a single call asks for; the rest is the task's, which the command line of Inspect overrides."""
    form = request["response_format"]["json_schema"]
    schema = ResponseSchema(
        name=form["name"], json_schema=JSONSchema.model_validate(form["schema"]), strict=form["strict"]
    )
    return GenerateConfig(
        seed=request["seed"],
        response_schema=schema if strict else None,
        temperature=request["temperature"] or None,  # above 0 where it is asked again
    )
