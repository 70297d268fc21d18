"""One real situation: what is asked, what is answered, and what the answer does to the belief table."""

from __future__ import annotations

import json
from dataclasses import dataclass

from envprobe_core.cells import Names, find_profile, find_protocols, make_cell, names, parse_seeds
from envprobe_core.engine.records import UNKNOWN
from envprobe_core.llm.answers import Update, Vocabulary, parse_update
from envprobe_core.llm.asking import ChatRequest
from envprobe_core.llm.identity import ModelAgent, ModelSettings
from envprobe_core.llm.prompts import PROMPT_VERSION
from envprobe_core.llm.rehearsal import rehearse
from envprobe_core.llm.situations import DATED_TABLE, NOTHING, UNKNOWN_SIGN, action_name
from envprobe_core.show.markup import EMPTY, Table, Text
from envprobe_core.worlds import World, make_world

POLICY = "simple"
WANTED = 2  # entries that an answer must change to be shown


@dataclass(frozen=True)
class Exchange:
    """A request and its answer.

    Attributes:
        world: the episode's world.
        protocol: name of its protocol.
        seed: its seed.
        step: the decision step.
        request: the body of the chat completion.
        answer: the text that came back.
    """

    world: World
    protocol: str
    seed: int
    step: int
    request: ChatRequest
    answer: str

    @property
    def system(self) -> str:
        """Return the first message: the rules."""
        return str(self.request["messages"][0]["content"])

    @property
    def situation(self) -> str:
        """Return the last message: what is the case."""
        return str(self.request["messages"][-1]["content"])

    @property
    def examples(self) -> list[str]:
        """Return the messages between: worked examples and their answers, in turn."""
        return [str(message["content"]) for message in self.request["messages"][1:-1]]

    @property
    def update(self) -> Update:
        """Return the answer, checked."""
        return parse_update(self.answer, Vocabulary(self.world), self.step)


def load_exchange(
    worlds: Names, regime: str, protocols: Names, profile: str, seeds: str, model: str
) -> Exchange:
    """Run one episode of EnvProbe-Simple and pick a situation.

    The episode is the first seed in the first world under the first protocol; the situation is the first that
    follows a task action and whose answer changes at least `WANTED` entries, else the last one.

    Args:
        worlds: names of worlds.
        regime: name of a regime.
        protocols: names of protocols.
        profile: of the simulated agent, which answers.
        seeds: a text of seeds.
        model: the name that stands in the request.
    """
    protocol = find_protocols(protocols)[0]
    cell = make_cell(names(worlds)[0], POLICY, regime, protocol, profile)
    world, seed = make_world(cell.world, cell.regime, cell.protocol), parse_seeds(seeds)[:1]
    seen: list[tuple[ChatRequest, str]] = []
    rehearse(
        cell,
        seed,
        ModelAgent("openai", PROMPT_VERSION, ModelSettings(model)),
        lambda request, identity, answer: seen.append((request, answer)),
        find_profile(profile),
    )
    vocabulary = Vocabulary(world)
    telling = (
        step
        for step, (request, answer) in enumerate(seen)
        if f"Last step: {NOTHING}" not in request["messages"][-1]["content"]
        and len(parse_update(answer, vocabulary, step).entries) >= WANTED
    )
    step = next(telling, len(seen) - 1)
    return Exchange(world, protocol.name, int(seed[0]), step, *seen[step])


def _quoted(text: str, language: str = "text") -> Text:
    return Text(f"~~~{language}\n{text}\n~~~")


def show_system(exchange: Exchange) -> Text:
    """Show the message that never changes: the rules, the fields, the form of the answer."""
    return _quoted(exchange.system)


def show_situation(exchange: Exchange) -> Text:
    """Show the message of this step."""
    return _quoted(exchange.situation)


def show_example(exchange: Exchange) -> Text:
    """Show the first worked example, a turn of user and assistant."""
    return _quoted("\n\n----------\n\n".join(exchange.examples[:2]))


def show_schema(exchange: Exchange) -> Text:
    """Show the JSON schema of the world that is asked for with `response_format`."""
    return _quoted(json.dumps(exchange.request["response_format"]["json_schema"]["schema"], indent=2), "json")


def show_answer(exchange: Exchange) -> Text:
    """Show the answer as it came."""
    return _quoted(exchange.answer, "json")


def tell_exchange(exchange: Exchange) -> Text:
    """Say which situation is shown, and how long its messages are."""
    return Text(
        f"The situation is step {exchange.step} of the episode of seed {exchange.seed}, in the world "
        f"`{exchange.world.name}` at `{exchange.world.regime.name}` under `{exchange.protocol}`, with "
        f"EnvProbe-Simple. The rules take {len(exchange.system):,} characters and are the same bytes at "
        f"every step of every episode of this world; the situation takes {len(exchange.situation):,}."
    )


def show_effect(exchange: Exchange) -> Table:
    """Show every entry of the belief table that the answer changes by itself, before and after it."""
    world, update = exchange.world, exchange.update
    table = exchange.situation.partition(f"{DATED_TABLE}\n")[2].split("\n")
    rows = []
    for field, value, staleness, confidence in update.entries:
        before = table[field].partition(":")[2].split(",")
        known = UNKNOWN_SIGN if value == UNKNOWN else str(value)
        after = [known, str(exchange.step - staleness), str(confidence)]
        rows.append([str(field), f"`{world.field_names[field]}`", *before, *after])
    rows = rows or [[EMPTY, NOTHING, *[EMPTY] * 6]]
    risk = ("low", "medium", "high")[update.risk]
    caption = (
        f"What the answer does to the belief table. All other confidences fall by {update.fade}; the "
        f"proposed action is `{action_name(world, update.action)}`, its risk {risk}."
    )
    head = (
        "index", "field", "value", "evidence at", "confidence", "value after", "evidence at, after",
        "confidence after",
    )  # fmt: skip
    return Table("tab-model-effect", caption, head, rows, "rlrrrrrr")
