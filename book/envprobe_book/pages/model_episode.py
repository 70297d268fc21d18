"""One episode on a language model, step by step: what it was asked, said, and then believes."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from envprobe_book.pages.figures import titled
from envprobe_book.pages.markup import Html
from envprobe_core.conditions import Condition
from envprobe_core.engine.batch import EpisodeBatch
from envprobe_core.llm import local
from envprobe_core.llm.agent import LanguageModelAgent, finish_in_loop, run_rows
from envprobe_core.llm.answers import UNKNOWN_SIGN
from envprobe_core.llm.client import Limits, Service
from envprobe_core.llm.prompts import action_name
from envprobe_core.llm.secret import PLACEHOLDER, Secret
from envprobe_core.llm.store import AnswerStore
from envprobe_core.worlds import make_world

HEADS = ("step", "asked", "answered", "does", "believes wrongly")


class Step(NamedTuple):
    """One step of an episode on a model."""

    number: int
    asked: str  # the last message
    answered: str
    action: str
    wrong: list[str]  # what the table then holds that is not so


def watch(service: Service, cell: Condition, seed: int, notice: Callable[[list[Step]], Any]) -> list[Step]:
    """The steps of an episode that is played on a model.

    Args:
        service: who answers.
        cell: the condition.
        seed: the episode's.
        notice: told of the steps so far whenever there is one more.
    """
    steps: list[Step] = []
    said, world = ["", ""], make_world(cell.world, cell.regime, cell.protocol)

    async def play() -> None:
        async with service.client() as client:

            async def ask(request: Any, identity: str, spoilt: Any) -> Any:
                answer = await client.ask(request, identity, spoilt)
                said[:] = request["messages"][-1]["content"], answer.text
                return answer

            def put_in_charge(episodes: EpisodeBatch) -> LanguageModelAgent:
                agent = LanguageModelAgent(episodes, ask, service.agent)
                propose = agent.propose

                async def propose_and_note() -> None:
                    await propose()
                    own = episodes.block
                    pairs = zip(
                        world.field_names, own.table.value[0].tolist(), own.gold[0].tolist(), strict=False
                    )
                    wrong = [
                        f"{name}: {UNKNOWN_SIGN if believed < 0 else believed}, not {true}"
                        for name, believed, true in pairs
                        if believed != true
                    ]
                    steps.append(Step(int(own.t[0]), *said, action_name(world, int(own.action[0])), wrong))
                    notice(steps)

                agent.propose = propose_and_note  # type: ignore[method-assign]
                return agent

            await run_rows(cell, np.array([seed]), put_in_charge)

    finish_in_loop(play())
    return steps


def show_steps(title: str, steps: Iterable[Step]) -> Html:
    """Steps as a table that scrolls; what a model was told or said stays text.

    >>> show_steps("one", [Step(0, "<b>", "{}", "wait", [])]).html.count("&lt;b&gt;")
    1
    """
    heads = "".join(f"<th>{name}</th>" for name in HEADS)
    rows = "".join(
        f"<tr><td>{step}</td><td><pre>{html.escape(asked)}</pre></td>"
        f"<td><pre>{html.escape(answered)}</pre></td><td>{html.escape(action)}</td>"
        f"<td>{'<br>'.join(map(html.escape, wrong)) or 'nothing'}</td></tr>"
        for step, asked, answered, action, wrong in steps
    )
    return Html(
        f'<div style="max-height:32em;overflow:auto" tabindex="0" role="region" aria-label="{title}"><table>'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>",
        title,
    )


def play_on_model(file: Any, cell: Condition, seed: int, *, live: bool = False) -> Html | None:
    """The steps of an episode from a replay file; live, one that is played now on the local weights.

    Args:
        file: the replay file, which names the agent.
        cell: the condition.
        seed: the episode's.
        live: whether to ask the weights that `envprobe model fetch` got.
    """
    title = f"{titled(cell.world)}, {cell.policy.title}, seed {seed}"
    if not live:
        return show_steps(title, watch(Service(file.agent, file), cell, seed, lambda steps: None))
    from IPython.display import display

    weights, place = local.find_weights(None), display(show_steps(title, []), display_id=True)
    service = Service(
        local.local_agent(weights, file.agent.prompt_version),
        AnswerStore(weights.with_name("watched.answers.sqlite")),
        Secret(PLACEHOLDER),
        limits=Limits(1, deadline=local.DEADLINE),
        weights=weights,
    )
    watch(service, cell, seed, lambda steps: place.update(show_steps(title, steps)))
    return None
