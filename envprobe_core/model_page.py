"""The page on language models: a situation, replayed runs beside the simulated agent, an episode, costs."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from IPython.display import display

from envprobe_core.cells import Names, find_profile, find_protocols, make_cell, names, parse_seeds
from envprobe_core.comparing import summarize
from envprobe_core.engine.running import Episodes
from envprobe_core.grid import COLUMNS, run_frame
from envprobe_core.llm.agent import LanguageModelAgent, finish_in_loop, run_rows
from envprobe_core.llm.answers import UNKNOWN_SIGN, Update
from envprobe_core.llm.calls import Answer, Asker, ChatRequest, Tokens, dollars, read_prices
from envprobe_core.llm.client import Limits
from envprobe_core.llm.identity import PROMPT_VERSION, ModelAgent
from envprobe_core.llm.local import DEADLINE, find_weights, local_agent
from envprobe_core.llm.provider import PLACEHOLDER, Secret
from envprobe_core.llm.rehearsal import Exchange, estimate, exchanges
from envprobe_core.llm.replayed import ReplayedRun
from envprobe_core.llm.running import Service
from envprobe_core.llm.situations import DATED_TABLE, NOTHING, action_name
from envprobe_core.llm.store import AnswerStore
from envprobe_core.runs.manifest import RunInputs
from envprobe_core.show.markup import EMPTY, Table, Text, code, listed
from envprobe_core.worlds.base import Ints

POLICY = "simple"  # of the episode that is shown
WANTED = 2  # entries that an answer must change to be shown
CELL = ["protocol", "world", "policy"]
MILLIONS = 1e6


def block(text: str, language: str = "text") -> Text:
    """Show a text as it is."""
    return Text(f"~~~{language}\n{text}\n~~~")


def quoted(text: str) -> str:
    """Write what a file says so that it stays text whatever it is."""
    plain = " ".join(text.split()).replace("`", "'")
    return f"`{plain}`"


# ---------------------------------------------------------------- a request and its answer


def find_exchange(
    worlds: Names, regime: str, protocols: Names, profile: str, seeds: str, model: str
) -> Exchange:
    """Run one episode of EnvProbe-Simple and pick a situation.

    The episode is the first seed in the first world under the first protocol; the situation is the first that
    follows a task action and whose answer, by the simulated agent of the profile, changes at least `WANTED`
    entries, else the last one. `model` is the name that stands in the request.
    """
    cell = make_cell(names(worlds)[0], POLICY, regime, find_protocols(protocols)[0], profile)
    agent, seed = ModelAgent("openai", PROMPT_VERSION, model), parse_seeds(seeds)[:1]
    for one in exchanges(cell, seed, agent, find_profile(profile)):
        if f"Last step: {NOTHING}" not in one.texts[-1] and len(one.update.entries) >= WANTED:
            break
    return one


def show_exchange(shown: Exchange) -> Text:
    """Say which situation is shown, and how long its messages are."""
    return Text(
        f"The situation is step {shown.step} of the episode of seed {shown.seed}, in the world "
        f"`{shown.world.name}` at `{shown.world.regime.name}` under `{shown.world.protocol.name}`, with "
        f"EnvProbe-Simple. The rules take {len(shown.texts[0]):,} characters and are the same bytes at "
        f"every step of every episode of this world; the situation takes {len(shown.texts[-1]):,}."
    )


def show_effect(shown: Exchange) -> Table:
    """Show every entry of the belief table that the answer changes by itself, before and after it."""
    world, update = shown.world, shown.update
    lines = shown.texts[-1].partition(f"{DATED_TABLE}\n")[2].split("\n")
    rows = []
    for field, value, staleness, confidence in update.entries:
        before = lines[field].partition(":")[2].split(",")
        after = [UNKNOWN_SIGN if value < 0 else str(value), str(shown.step - staleness), str(confidence)]
        rows.append([str(field), f"`{world.field_names[field]}`", *before, *after])
    rows = rows or [[EMPTY, NOTHING, *[EMPTY] * 6]]
    risk = ("low", "medium", "high")[update.risk]
    caption = (
        f"What the answer does to the belief table. All other confidences fall by {update.fade}; the "
        f"proposed action is `{action_name(world, update.action)}`, its risk {risk}."
    )
    entry = ("value", "evidence at", "confidence")
    head = ("index", "field", *entry, "value after", "evidence at, after", "confidence after")
    return Table("tab-model-effect", caption, head, rows, "rlrrrrrr")


# ---------------------------------------------------------------- replayed runs


def show_origin(run: ReplayedRun) -> Text:
    """Say what the file holds and who answered, and plainly so where that was no language model."""
    agent, inputs = run.file.agent, run.inputs
    said = (
        f"The file {quoted(run.path.name)} holds {len(run.file):,} answers of the model "
        f"{quoted(agent.model)}, given by {quoted(agent.provider)} to prompts of version "
        f"{quoted(agent.prompt_version)}, temperature {agent.temperature:g}. It was run on "
        f"{code(inputs.worlds)} with {code(inputs.policies)} at `{inputs.regime}` under "
        f"{code(inputs.protocols)}, seeds a cell: {run.seeds}."
    )
    who = (
        "**No language model was asked.** Every answer carries the fingerprint of the project's own scripted "
        "test server, which reads the prompt and lets the simulated agent answer it. The numbers below show "
        "that the path works, and nothing about language models."
        if run.scripted
        else f"The answers carry the fingerprints {listed(map(quoted, sorted(run.file.fingerprints)))}; they "
        "were given once and are replayed here. Whoever made the file says of it: "
        f"{quoted(run.file.header.note or 'nothing')}."
    )
    fault = f"\n\n**It has no results here:** {run.fault}." if run.fault else ""
    return Text(f"{said}\n\n{who}{fault}")


def show_replays(runs: Sequence[ReplayedRun]) -> Table:
    """Show every replay file of the book, who answered, and whether it has results here."""
    rows = [
        [
            quoted(run.path.name),
            quoted(run.file.agent.model),
            quoted(run.file.agent.prompt_version),
            f"`{run.inputs.regime}`, {code(run.inputs.protocols)}",
            str(run.seeds),
            "the scripted test server, no language model"
            if run.scripted
            else quoted(run.file.agent.provider),
            run.fault or "replayed, hash agrees",
        ]
        for run in runs
    ] or [[EMPTY] * 7]
    caption = "The replay files of `data/replays/`; runs on models join the scoreboard."
    head = ("file", "model", "prompts", "regime, protocol", "seeds", "who answered", "state")
    return Table("tab-model-replays", caption, head, rows, "llllrll")


def beside(run: ReplayedRun, profile: str) -> pd.DataFrame:
    """Run the simulated agent of a profile on the cells and seeds of a replayed run, in its order."""
    own = find_profile(profile)
    return run_frame([replace(cell, profile=own) for cell in run.inputs.cells], run.inputs.seeds_of_cells)


def same_episodes(frame: pd.DataFrame, other: pd.DataFrame) -> np.ndarray:
    """Say which episodes of two frames with the same order are equal, [row], the agent's name aside."""
    one, two = (each[[name for name in COLUMNS if name != "profile"]] for each in (frame, other))
    return (one.eq(two) | (one.isna() & two.isna())).all(axis=1).to_numpy()


def cells(run: ReplayedRun, simulated: pd.DataFrame, resamples: int) -> pd.DataFrame:
    """Set each cell of a replayed run beside the simulated agent on the same seeds, from `beside`.

    Returns:
        A row a cell: `protocol`, `world`, `policy`, `episodes`; of `accuracy`, `success`, `useful` (useful
        probes among all; NaN without any) and the same with `simulated_` before it the means, accuracies
        with `_low` and `_high`; `probes` an episode; `updates`, and of these the share that was `usable` at
        once and the number that stayed `invalid`; `same`, the episodes that equal the simulated agent's.
    """
    if run.frame is None or run.tally is None:
        return pd.DataFrame()
    asked = run.frame.assign(same=same_episodes(run.frame, simulated), **run.tally)
    rows = []
    for key, own in asked.groupby(CELL, sort=False):
        row = dict(zip(CELL, key, strict=True)) | {"episodes": len(own)}
        for name, frame in (("", own), ("simulated_", simulated.loc[own.index])):
            (told,) = summarize(frame, "accuracy", CELL, resamples=resamples).to_dict("records")
            for end, at in (("", "mean"), ("_low", "low"), ("_high", "high")):
                row[f"{name}accuracy{end}"] = told[at]
            row[f"{name}success"] = frame["success"].mean()
            row[f"{name}useful"] = frame["useful"].sum() / (frame["probes"].sum() or np.nan)
        updates = int(own["calls"].sum() - own["reasks"].sum() - own["verdicts"].sum())
        row |= {
            "probes": own["probes"].mean(), "updates": updates, "usable": 1 - own["reasks"].sum() / updates,
            "invalid": int(own["invalid_updates"].sum()), "same": int(own["same"].sum()),
        }  # fmt: skip
        rows.append(row)
    return pd.DataFrame(rows)


def prompts_compared(answers: pd.DataFrame) -> pd.DataFrame:
    """Sum up a trial of prompts, from `llm.trial.read_trial`.

    Returns:
        A row a world and version: `situations`; the share of answers that were `valid` at once; of the fields
        that were `seen` the share set to the value shown, `right`; of the rows set the share `copied` from an
        example of the prompt; the number of distinct `actions`. A share of nothing is NaN.
    """
    groups = answers.groupby(["world", "version"], sort=False)
    sums = groups[["seen", "right", "rows", "copied"]].sum()
    actions = (
        answers["action"].where(answers["valid"].astype(bool)).groupby([answers["world"], answers["version"]])
    )
    return pd.DataFrame(
        {
            "situations": groups.size(),
            "valid": groups["valid"].mean(),
            "seen": sums["seen"],
            "right": sums["right"] / sums["seen"],
            "copied": sums["copied"] / sums["rows"],
            "actions": actions.nunique(),
        }
    ).reset_index()


# ---------------------------------------------------------------- one episode, watched


class Watched:
    """A table of steps that grows, for notebooks: a row a step, as `HEADS` names them."""

    HEADS = ("step", "asked", "answered", "does", "believes wrongly")

    def __init__(self, title: str) -> None:
        self.title = title
        self.steps: list[tuple[int, str, str, str, list[str]]] = []

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{step}</td><td><pre>{html.escape(asked)}</pre></td>"
            f"<td><pre>{html.escape(said)}</pre></td><td>{html.escape(action)}</td>"
            f"<td>{'<br>'.join(map(html.escape, wrong)) or 'nothing'}</td></tr>"
            for step, asked, said, action, wrong in self.steps
        )
        head = "".join(f"<th>{name}</th>" for name in self.HEADS)
        return (
            '<div style="max-height:32em;overflow:auto" tabindex="0" role="region" '
            f'aria-label="{self.title}"><table>'
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )


class _Watching(LanguageModelAgent):
    """Adds every step of one episode to a table, and tells of it."""

    def __init__(
        self,
        episodes: Episodes,
        asker: Asker,
        model: ModelAgent,
        watched: Watched,
        notice: Callable[[], object],
    ) -> None:
        super().__init__(episodes, self, model)  # which asks itself, and so hears what is said
        self._from, self._watched, self._notice, self._said = asker, watched, notice, ("", "")

    async def ask(self, request: ChatRequest, identity: str) -> Answer:
        """Pass a question on and keep it with its answer."""
        answer = await self._from.ask(request, identity)
        self._said = request["messages"][-1]["content"], answer.text
        return answer

    def _write(self, due: Ints, updates: Sequence[Update]) -> None:
        super()._write(due, updates)
        own, world = self._episodes.block, self._world
        pairs = zip(world.field_names, own.table.value[0].tolist(), own.gold[0].tolist(), strict=False)
        wrong = [
            f"{name}: {UNKNOWN_SIGN if believed < 0 else believed}, not {true}"
            for name, believed, true in pairs
            if believed != true
        ]
        for update in updates:
            step = int(own.t[0])
            self._watched.steps.append((step, *self._said, action_name(world, update.action), wrong))
            self._notice()


def play_on_model(run: ReplayedRun, world: str, policy: str, seed: int, *, live: bool = False) -> Watched:
    """Play one episode and show each step beside the truth: what was asked, said, done and believed wrongly.

    The episode has the regime and prompts of a replayed run on a model; world, policy and seed are also the
    run's, but with `live`: then the local weights are asked, and each answer is shown as it comes.

    Raises:
        MissingAnswerError: if the file has no such episode.
        InputError: if the weights are not here (`envprobe model fetch`).
    """
    watched = Watched(f"{world}, {policy}, seed {seed}")
    service, notice = Service(run.file.agent, run.file), lambda: None
    if live:
        weights = find_weights(None)
        handle = display(watched, display_id=True)
        notice = lambda: handle.update(watched)  # noqa: E731
        service = Service(
            local_agent(weights, run.file.agent.prompt_version),
            AnswerStore(weights.with_name("watched.answers.sqlite")),
            Secret(PLACEHOLDER),
            limits=Limits(1, deadline=DEADLINE),
            weights=weights,
        )

    async def play(ready: Service) -> None:
        cell = make_cell(world, policy, run.inputs.regime)
        async with ready.client() as client:
            make = partial(_Watching, asker=client, model=ready.agent, watched=watched, notice=notice)
            await run_rows(cell, np.array([seed]), make)

    with service.at_work() as ready:
        finish_in_loop(play(ready))
    return watched


# ---------------------------------------------------------------- what the paper's grid would cost


def estimates(
    worlds: Names, policies: Names, regime: str, protocols: Names, seeds: str, model: str, sample: int
) -> pd.DataFrame:
    """Estimate the grid under each protocol by a dry run of its prompts, on a sample of each cell's seeds.

    Returns:
        A row a protocol: `protocol`, the values of `llm.rehearsal.estimate`, the tokens in millions (`asked`,
        `answered`), and `price` and `highest`, its cost and its most as text.
    """
    agent, prices = ModelAgent("openai", PROMPT_VERSION, model), read_prices()
    rows = []
    for protocol in find_protocols(protocols):
        grid = (names(worlds), names(policies), regime, [protocol.name])
        inputs = RunInputs(*grid, seeds=seeds, logs="none", agent=agent)
        found = estimate(inputs.cells, inputs.seeds_of_cells, agent, prices, sample)
        rows.append({"protocol": protocol.name} | found)
    frame = pd.DataFrame(rows)
    return frame.assign(
        asked=frame["prompt_tokens"] / MILLIONS,
        answered=frame["completion_tokens"] / MILLIONS,
        price=frame["cost"].map(dollars),
        highest=frame["most"].map(dollars),
    )


def priced(grid: pd.Series) -> pd.DataFrame:
    """Return what one row of `estimates` comes to at each listed price, nothing taken from a cache.

    Returns:
        A row a model: `model`, the dollars for a million tokens (`input`, `cached`, `output`), and `price`.
    """
    tokens = Tokens(int(grid["prompt_tokens"]), int(grid["completion_tokens"]))
    rows = [
        {
            "model": model, "input": price.input, "output": price.output,
            "cached": price.input if price.cached_input is None else price.cached_input,
            "price": dollars(price.cost(tokens)),
        }
        for model, price in read_prices().items()
    ]  # fmt: skip
    return pd.DataFrame(rows)
