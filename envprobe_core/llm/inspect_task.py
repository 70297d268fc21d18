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
    loose           share of those that were read though not in the form that is asked for

A sample of which no belief update could be read fails: it played no episode, and waited to the end.

A solver of one's own answers each call of the episode, in place of one plain `generate`:

    @solver
    def mine():
        return episode(chain(system_message("Think first."), generate(), self_critique()))

    inspect eval envprobe_core/probing --solver mine.py@mine --model openai/gpt-4o-mini
"""

from functools import partial
from typing import Any

import numpy as np
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from envprobe_core.agents.model import PROMPT_VERSION, ModelAgent
from envprobe_core.agents.profiles import TYPICAL
from envprobe_core.conditions import Condition, find_policy, find_regime, parse_seeds
from envprobe_core.errors import InputError
from envprobe_core.llm.agent import LanguageModelAgent, Readings, run_rows
from envprobe_core.llm.calls import INSPECT, Answer, ChatRequest, read_response
from envprobe_core.llm.inspect_calls import config_of, messages_of, response_of
from envprobe_core.llm.prompts import find_version
from envprobe_core.protocols import parse_protocol

MEASURES = ("accuracy", "success", "probes", "useful", "invalid", "loose")
LONGEST_ANSWER = 512  # tokens, as in the paper; a model that reasons needs more (`--max-tokens`)


class UnreadEpisodeError(Exception):
    """No belief update of an episode could be read, so that it is none."""


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
    played = {"world": world, "policy": policy, "regime": regime, "protocol": protocol, "budget": budget}
    played |= {"threshold": threshold, "prompts": find_version(str(prompts)), "strict": strict}
    condition = _condition(played)
    found = parse_seeds(str(seeds)).tolist()  # `-T seeds=7` arrives as a number
    samples = [
        Sample(f"{condition.built.title}, seed {seed}", id=seed, metadata=played | {"seed": seed})
        for seed in found
    ]
    return Task(
        dataset=MemoryDataset(samples, name=f"{world}-{policy}"),
        solver=episode(),
        scorer=episode_measures(),
        config=GenerateConfig(temperature=0.0, max_tokens=LONGEST_ANSWER),
        metadata=dict(condition.key),
    )


def _condition(played: dict[str, Any]) -> Condition:
    """The condition that a sample's metadata name."""
    policy, regime = find_policy(played["policy"]), find_regime(played["regime"])
    rest = parse_protocol(played["protocol"]), TYPICAL, played["budget"], played["threshold"]
    return Condition(played["world"], policy, regime, *rest)


@solver
def episode(answering: Solver | None = None) -> Solver:
    """The solver that plays a sample's episode, a call to the model a step.

    Args:
        answering: what answers each call, given its messages; by default one `generate`.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        """Play; what the episode was worth goes into the sample's store, its last answer into its output."""
        played, readings = state.metadata, Readings()
        condition = _condition(played)

        async def ask(request: ChatRequest, identity: str, spoilt: str) -> Answer:
            # what is not said here is the task's, which the command line of Inspect overrides
            config = config_of(request, strict=played["strict"])
            del config["max_tokens"]
            if not config["temperature"]:  # above 0 where it is asked again
                del config["temperature"]
            state.messages = messages_of(request)
            answered = await (answering or _plainly)(state, partial(generate, **config))
            found = read_response(response_of(answered.output))
            if not isinstance(found, Answer):
                raise RuntimeError(f"the model gave no answer: {found}")
            return found

        asked = ModelAgent(INSPECT, played["prompts"], str(state.model))
        agent = partial(LanguageModelAgent, ask=ask, model=asked, readings=readings)
        recording, (tally,) = await run_rows(condition, np.array([played["seed"]]), agent)
        if not readings.readable:
            raise UnreadEpisodeError(
                f"no belief update of seed {played['seed']} could be read; first fault: {readings.fault}"
            )
        worth = {name: column.item() for name, column in recording.measures.items()}
        shares = {name: tally[f"{name}_updates"] / tally["updates"] for name in ("invalid", "loose")}
        worth |= tally | shares
        state.store.set("episode", {name: None if value != value else value for name, value in worth.items()})
        state.completed = True
        return state

    return solve


async def _plainly(state: TaskState, generate: Generate) -> TaskState:
    return await generate(state)


@scorer(metrics={name: [mean(), stderr()] for name in MEASURES})
def episode_measures() -> Scorer:
    """The scorer: the project's own measures of the episode that was played."""

    async def score(state: TaskState, target: Target) -> Score:
        if (worth := state.store.get("episode")) is None:
            raise InputError(
                "no episode was played: a solver of one's own stands in `episode(...)` of "
                "envprobe_core.llm.inspect_task, which asks it for each answer"
            )
        return Score(value={name: float(worth[name]) for name in MEASURES}, metadata=worth)

    return score
