"""One episode on a model, watched: what it was asked, what it said and what was true, step by step.

The model is asked as `envprobe run` asks it; only the display is of this module. An episode of a replay file
is shown from there; with `live` the weights on this machine are asked, and the display grows as they answer.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from IPython.display import display

from envprobe_core.cells import Cell, make_cell
from envprobe_core.engine.running import Episodes
from envprobe_core.llm.agent import LanguageModelAgent, run_rows
from envprobe_core.llm.answers import Update
from envprobe_core.llm.asking import Answered, Asker, ChatRequest
from envprobe_core.llm.calling import Patience
from envprobe_core.llm.client import Limits
from envprobe_core.llm.hiding import PLACEHOLDER, Secret
from envprobe_core.llm.identity import ModelAgent
from envprobe_core.llm.local import DEADLINE, local_agent
from envprobe_core.llm.replayed import ReplayedRun
from envprobe_core.llm.running import Service, finish_in_loop
from envprobe_core.llm.situations import UNKNOWN_SIGN, action_name
from envprobe_core.llm.store import AnswerStore
from envprobe_core.llm.weights import find_weights


@dataclass(frozen=True)
class Step:
    """What passed at one step.

    Attributes:
        step: of the episode.
        situation, answer: what the model was asked last, and what it said.
        action: what it proposes.
        wrong: the fields whose belief is not true after the update, as `name: believed, not true`.
    """

    step: int
    situation: str
    answer: str
    action: str
    wrong: tuple[str, ...]


class _Watched(LanguageModelAgent):
    """Tells of every step of one episode."""

    def __init__(
        self, episodes: Episodes, asker: Asker, model: ModelAgent, notice: Callable[[Step], None]
    ) -> None:
        super().__init__(episodes, self, model)  # which asks itself, and so hears what is said
        self._from, self._notice, self._said = asker, notice, ("", "")

    async def ask(self, request: ChatRequest, identity: str) -> Answered:
        """Pass a question on and keep it with its answer."""
        answered = await self._from.ask(request, identity)
        self._said = request["messages"][-1]["content"], answered.text
        return answered

    def _write(self, due: np.ndarray, updates: list[Update]) -> None:
        super()._write(due, updates)
        block, world = self._episodes.block, self._world
        tables = (world.field_names, block.table.value[0].tolist(), block.gold[0].tolist())
        wrong = [
            f"{name}: {UNKNOWN_SIGN if believed < 0 else believed}, not {true}"
            for name, believed, true in zip(*tables, strict=False)
            if believed != true
        ]
        for update in updates:
            action = action_name(world, update.action)
            self._notice(Step(int(block.t[0]), *self._said, action, tuple(wrong)))


class Shown:
    """A growing table of steps, for notebooks."""

    def __init__(self, title: str) -> None:
        self.title, self.steps = title, list[Step]()

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{one.step}</td><td><pre>{html.escape(one.situation)}</pre></td>"
            f"<td><pre>{html.escape(one.answer)}</pre></td><td>{html.escape(one.action)}</td>"
            f"<td>{'<br>'.join(map(html.escape, one.wrong)) or 'nothing'}</td></tr>"
            for one in self.steps
        )
        heads = ("step", "asked", "answered", "does", "believes wrongly")
        head = "".join(f"<th>{name}</th>" for name in heads)
        return (
            '<div style="max-height:32em;overflow:auto" tabindex="0" role="region" '
            f'aria-label="{self.title}"><table>'
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )


def play_on_model(run: ReplayedRun, world: str, policy: str, seed: int, *, live: bool = False) -> Shown:
    """Play one episode and show each step beside the truth.

    Args:
        run: a replayed run on a model; the episode has its regime and prompts.
        world: of the episode; without `live` one of the run's, as policy and seed.
        policy: likewise.
        seed: likewise.
        live: ask the local weights instead of the file, and show each answer as it comes.

    Raises:
        MissingAnswerError: if the file has no such episode.
        InputError: if the weights are not here (`envprobe model fetch`).
    """
    cell = make_cell(world, policy, run.inputs.regime)
    shown, model = Shown(f"{world}, {policy}, seed {seed}"), run.file.agent
    if not live:
        finish_in_loop(_play(cell, seed, model, Service(model, run.file), shown.steps.append))
        return shown
    weights = find_weights(None)
    model = local_agent(weights, model.prompt_version)
    store = AnswerStore(weights.with_name("watched.answers.sqlite"))
    handle = display(shown, display_id=True)

    def notice(step: Step) -> None:
        shown.steps.append(step)
        handle.update(shown)

    patience = Patience(deadline=DEADLINE)
    asked = Service(model, store, Secret(PLACEHOLDER), limits=Limits(1, patience=patience), weights=weights)
    try:
        with asked.at_work() as ready:
            finish_in_loop(_play(cell, seed, model, ready, notice))
    finally:
        store.close()
    return shown


async def _play(
    cell: Cell, seed: int, model: ModelAgent, service: Service, notice: Callable[[Step], None]
) -> None:
    client = service.client()
    try:
        await run_rows(cell, np.array([seed]), lambda episodes: _Watched(episodes, client, model, notice))
    finally:
        await client.close()
