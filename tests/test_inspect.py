"""The worlds as a task of Inspect, run for real with its mock model: offline, logs in a test's own folder.

Inspect is imported where it is used: it takes a second, and every process of a test run collects all tests.
"""

import gc
import importlib

import numpy as np
import pytest

from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate
from envprobe_core.errors import InputError
from envprobe_core.protocols import PROTOCOLS
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


def run_task(tmp_path, task, reply, **given):
    """Run a task; return its log, which must have been written where the test wants it."""
    from inspect_ai import eval as evaluate

    (log,) = evaluate(task, model=model_of(reply), log_dir=str(tmp_path / "logs"), display="none", **given)
    gc.collect()  # what Inspect left open ends here, and not in the test that comes next
    assert log.status == "success", log.error
    assert len(list((tmp_path / "logs").glob("*.eval"))) == 1
    return log


def scores(log):
    """Return each sample's scores by seed, and each metric's value."""
    by_seed = {sample.id: sample.scores["episode_measures"] for sample in log.samples}
    return by_seed, {one.name: one.metrics["mean"].value for one in log.results.scores}


@pytest.mark.parametrize(
    ("world", "policy", "protocol"),
    [("tooldag", "simple", "paper"), ("objectstate", "judge", "observed"), ("graphnav", "yoked", "paper")],
)
def test_a_model_that_answers_as_the_simulated_agent_scores_what_the_engine_measures(
    ours, tmp_path, world, policy, protocol
):
    task = ours.probing(world, policy, "S1", protocol, seeds="0:3")
    log = run_task(tmp_path, task, lambda request, config: answer(request))
    by_seed, means = scores(log)
    known = simulate(make_condition(world, policy, "S1", PROTOCOLS[protocol]), np.arange(3))
    assert sorted(by_seed) == [0, 1, 2]
    measured = ours.MEASURES[:-1]
    for seed, score in by_seed.items():
        assert score.metadata["digest"] == known["digest"][seed]
        assert score.value == {name: float(known[name][seed]) for name in measured} | {"invalid": 0.0}
    assert means.keys() == {*measured, "invalid"}
    assert all(np.isclose(means[name], known[name].mean()) for name in measured)
    assert log.eval.metadata["policy"] == policy


def test_what_cannot_be_read_is_asked_for_again_and_counted(ours, tmp_path):
    log = run_task(
        tmp_path, ours.probing(regime="S1", seeds="4"), lambda request, config: "I would rather not."
    )
    (score,) = scores(log)[0].values()
    assert score.value["invalid"] == 1.0
    assert score.metadata["reasks"] == 2 * score.metadata["invalid_updates"] > 0
    assert score.metadata["actions"] == 0  # it waited to the end


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
