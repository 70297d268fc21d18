"""The worlds as a task of Inspect, run for real with its mock model: offline, logs in a test's own folder.

Inspect is imported where it is used: it takes a second, and every process of a test run collects all tests.
"""

import gc
import importlib
import itertools
import json

import numpy as np
import pytest

from daily import nightly
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate
from envprobe_core.errors import InputError
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.runs import read_run
from processes import call
from scripted import answer

# Inspect's own: how it retries calls is deprecated by the library that it uses, and it leaves streams open
pytestmark = [
    pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <function MemoryObjectReceiveStream"),
    pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning"),
]


@pytest.fixture(scope="module")
def ours():
    """The module that holds the task."""
    return importlib.import_module("envprobe_core.llm.inspect_task")


def model_of(reply):
    """Return Inspect's mock model, which answers a request's messages and settings as `reply` says."""
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def outputs(messages, tools, tool_choice, config):
        request = {"messages": [{"role": one.role, "content": one.text} for one in messages]}
        output = ModelOutput.from_content("mockllm/model", reply(request | {"seed": config.seed}, config))
        # without a count the mock model loads a tokenizer from the network
        output.usage = ModelUsage(input_tokens=100, output_tokens=10, total_tokens=110)
        return output

    return get_model("mockllm/model", custom_outputs=outputs, memoize=False)


def run_task(tmp_path, task, reply, status="success", **given):
    """Run a task; return its log, which must have been written where the test wants it."""
    from inspect_ai import eval as evaluate

    (log,) = evaluate(task, model=model_of(reply), log_dir=str(tmp_path / "logs"), display="none", **given)
    gc.collect()  # what Inspect left open ends here, and not in the test that comes next
    assert log.status == status, log.error
    assert len(list((tmp_path / "logs").glob("*.eval"))) == 1
    return log


def scores(log):
    """Return each sample's scores by seed, and each metric's value."""
    by_seed = {sample.id: sample.scores["episode_measures"] for sample in log.samples}
    return by_seed, {one.name: one.metrics["mean"].value for one in log.results.scores}


@pytest.mark.parametrize(
    ("world", "policy", "protocol"),
    nightly(
        [
            ("tooldag", "simple", "paper"),
            ("objectstate", "judge", "observed"),
            ("graphnav", "yoked", "paper"),
        ],
        ("objectstate", "judge", "observed"),
    ),
)
def test_a_model_that_answers_as_the_simulated_agent_scores_what_the_engine_measures(
    ours, tmp_path, world, policy, protocol
):
    task = ours.probing(world, policy, "S1", protocol, seeds="0:3")
    log = run_task(tmp_path, task, lambda request, config: answer(request))
    by_seed, means = scores(log)
    known = simulate(make_condition(world, policy, "S1", PROTOCOLS[protocol]), np.arange(3))
    assert sorted(by_seed) == [0, 1, 2]
    measured = ours.MEASURES[:-2]
    for seed, score in by_seed.items():
        assert score.metadata["digest"] == known["digest"][seed]
        assert score.value == {name: float(known[name][seed]) for name in measured} | {
            "invalid": 0.0,
            "loose": 0.0,
        }
    assert means.keys() == {*ours.MEASURES}
    assert all(np.isclose(means[name], known[name].mean()) for name in measured)
    assert log.eval.metadata["policy"] == policy


def test_what_cannot_be_read_is_asked_for_again_and_counted(ours, tmp_path):
    count = itertools.count()

    def reply(request, config):
        return "I would rather not." if next(count) % 5 < 3 else f"So: {answer(request)}"

    log = run_task(tmp_path, ours.probing(regime="S1", seeds="4"), reply)
    (score,) = scores(log)[0].values()
    updates, unusable = score.metadata["updates"], score.metadata["invalid_updates"]
    assert 0 < unusable < updates
    assert score.value["invalid"] == unusable / updates
    assert score.value["loose"] == (updates - unusable) / updates
    assert score.metadata["reasks"] >= 2 * unusable


@pytest.mark.nightly
def test_a_sample_of_which_nothing_could_be_read_fails_and_counts_in_no_mean(ours, tmp_path):
    def reply(request, config):
        return answer(request) if config.seed == 4 else "I would rather not."

    log = run_task(tmp_path, ours.probing(regime="S1", seeds="3:6"), reply, fail_on_error=False)
    bad = {sample.id: sample.error.message for sample in log.samples if sample.error}
    assert bad.keys() == {3, 5}
    assert "no belief update of seed 3 could be read; first fault: the answer is not" in bad[3]
    assert log.results.completed_samples == 1
    (score,) = (sample.scores["episode_measures"] for sample in log.samples if not sample.error)
    assert {one.name: one.metrics["mean"].value for one in log.results.scores} == score.value
    again = tmp_path / "strictly"
    again.mkdir()
    run_task(again, ours.probing(regime="S1", seeds="3"), reply, status="error")


@pytest.mark.nightly
def test_a_solver_of_one_s_own_answers_each_call(ours, tmp_path):
    from inspect_ai.solver import chain, generate, solver, system_message, user_message

    @solver
    def twice():
        return ours.episode(
            chain(system_message("Think twice."), generate(), user_message("Sure?"), generate())
        )

    met = []

    def reply(request, config):
        roles = [one["role"] for one in request["messages"]]
        met.append((roles[:2], len(roles)))
        own = [one for one in request["messages"] if one["content"] not in ("Think twice.", "Sure?")]
        own = own[: max(place for place, one in enumerate(own) if one["role"] == "user") + 1]
        return answer(request | {"messages": own}) if roles[-2:] == ["assistant", "user"] else "Perhaps."

    log = run_task(tmp_path, ours.probing(regime="S1", seeds="4"), reply, solver=twice())
    (score,) = scores(log)[0].values()
    assert score.metadata["calls"] * 2 == len(met)
    assert score.value["invalid"] == 0
    assert {roles[0] for roles, _ in met} == {"system"}


def test_a_solver_that_plays_no_episode_is_told_where_to_stand(ours, tmp_path):
    from inspect_ai.solver import generate

    log = run_task(
        tmp_path, ours.probing(regime="S1", seeds="4"), lambda *_: "?", solver=generate(), status="error"
    )
    assert "stands in `episode(...)` of envprobe_core.llm.inspect_task" in log.error.message


@pytest.mark.nightly
def test_the_command_line_s_settings_hold_and_the_schema_can_be_left_out(ours, tmp_path):
    asked = []

    def reply(request, config):
        asked.append(config)
        return answer(request) if len(asked) != 1 else "?"

    run_task(tmp_path, ours.probing(regime="S1", seeds=7, strict=False), reply, max_tokens=2000)
    assert {config.max_tokens for config in asked} == {2000}
    assert {config.seed for config in asked} == {7}
    assert all(config.response_schema is None for config in asked)
    assert asked[0].temperature == asked[2].temperature == 0.0
    again = tmp_path / "strict"
    again.mkdir()
    asked.clear()
    run_task(again, ours.probing(regime="S1", seeds=7), reply)
    assert {config.max_tokens for config in asked} == {512}
    assert {config.response_schema.name for config in asked} == {"update"}
    assert asked[0].response_schema.json_schema.required == ["set", "fade", "act", "risk"]


def test_unknown_settings_are_refused_before_a_model_is_asked(ours):
    for given in ({"world": "chess"}, {"policy": "best"}, {"seeds": "9:3"}, {"prompts": "7"}):
        with pytest.raises(InputError):
            ours.probing(**given)


# ---------------------------------------------------------------- a run on what Inspect knows

RUN = ["--world", "tooldag", "--policy", "simple", "--regime", "S1", "--seeds", "0:2", "--logs", "none"]
KEY = "sk-a-provider-s-own/0123456789"


@pytest.fixture(scope="module")
def provider():
    """A provider of Inspect's that answers as the simulated agent, or does what its model's name says."""
    from inspect_ai.model import ModelAPI, ModelOutput, ModelUsage, modelapi

    class LimitedError(Exception):
        status_code = 429

    class Scripted(ModelAPI):
        asked, failed = [], []

        def should_retry(self, ex):
            return not str(ex).startswith("no")

        async def generate(self, input, tools, tool_choice, config):
            self.asked.append(config)
            if self.model_name != "good" and len(self.failed) < 2:
                self.failed.append(self.model_name)
                error = {"limited": LimitedError(f"slow down, {KEY}"), "later": OSError(f"later, {KEY}")}
                raise error.get(self.model_name, OSError(f"no, {KEY}"))
            request = {"messages": [{"role": one.role, "content": one.text} for one in input]}
            output = ModelOutput.from_content("good-2", answer(request | {"seed": config.seed}))
            output.usage = ModelUsage(input_tokens=60, input_tokens_cache_read=40, output_tokens=10)
            return output

    modelapi("scripted")(Scripted)
    return Scripted


@pytest.fixture
def run_on(provider, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SCRIPTED_API_KEY", KEY)
    provider.asked.clear()
    provider.failed.clear()

    def run(model, *more, code=0):
        out = tmp_path / f"{model}{len(more)}"
        assert call("run", *RUN, "--agent", f"inspect:scripted/{model}", *more, "--out", out) == code
        printed = capsys.readouterr()
        assert KEY not in printed.out + printed.err
        assert KEY.encode() not in b"".join(one.read_bytes() for one in tmp_path.glob("*.sqlite*"))
        return out, printed

    return run


def test_a_run_on_any_provider_is_stored_capped_and_replayed(run_on, provider, tmp_path):
    prices = tmp_path / "p.json"
    prices.write_text('{"models": {"scripted/good": {"input": 1, "output": 1, "cached_input": 0}}}')
    out, printed = run_on("good", "--prices", prices, "--max-cost", "5")
    known = simulate(make_condition("tooldag", "simple", "S1"), np.arange(2))
    frame = read_run(out).episodes
    assert frame["digest"].tolist() == known["digest"].tolist()
    assert set(frame["answered_by"]) == {"good-2"}
    assert "answered by: good-2 42" in printed.out
    assert "4200 + 420 tokens" in printed.out
    assert {config.max_tokens for config in provider.asked} == {512}
    assert {config.response_schema.name for config in provider.asked} == {"update"}
    store, replay = out.with_name(f"{out.name}.answers.sqlite"), tmp_path / "a.replay.gz"
    calls = len(provider.asked)
    assert call("store", "verify", store, "--run", out) == 0
    assert call("store", "export", store, "--run", out, "--out", replay) == 0
    assert call("run", *RUN, "--replay", replay, "--out", tmp_path / "again") == 0
    assert call("run", "--from", out, "--store", store, "--replay-only", "--out", tmp_path / "more") == 0
    assert len(provider.asked) == calls == 42
    stated = json.loads((out / "manifest.json").read_text())["inputs"]["agent"]
    assert (stated["provider"], stated["model"]) == ("inspect", "scripted/good")
    _, printed = run_on("good", "--prices", prices, "--max-cost", "0.0001", "--reasks", "0", code=1)
    assert "the cap of $0.0001 is reached" in printed.err


@pytest.mark.parametrize(("model", "code"), [("limited", 0), ("later", 0), ("broken", 1)])
def test_what_a_provider_raises_is_a_fault_that_passes_or_ends_the_run(run_on, provider, model, code):
    _, printed = run_on(model, "--concurrency", "1", code=code)
    if code:
        assert "inspect gave no answer: provider-error (OSError: no, [API key])" in printed.err
    else:
        assert len(provider.asked) == 42 + 2


def test_what_inspect_does_not_know_is_refused_in_a_line_before_a_store_is_made(tmp_path, capsys):
    for model, said in (("nobody/x", "nobody"), ("openai", "unknown agent")):
        assert call("run", *RUN, "--agent", f"inspect:{model}", "--out", tmp_path / "out") == 2
        printed = capsys.readouterr()
        assert (printed.out, printed.err.count("\n")) == ("", 1)
        assert said in printed.err
    assert not list(tmp_path.iterdir())
