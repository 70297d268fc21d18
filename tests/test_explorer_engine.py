"""The explorer on the live engine: questions checked and answered."""

import numpy as np
import pytest

from envprobe_core.cells import make_cell
from envprobe_core.errors import InputError
from envprobe_core.policies import custom_policy
from envprobe_core.widgets.explorer import Explorer
from envprobe_core.widgets.live import LONGEST_HORIZON, Engine
from envprobe_core.widgets.readings import pooled, take_readings

ASKED = {
    "world": "tooldag",
    "protocol": "paper",
    "policies": ["no-probe", "simple"],
    "regime": "S2",
    "horizon": 30,
    "budget": 7,
    "threshold": 1.5,
    "profile": "typical",
    "seeds": "0:10",
}


def test_answers_are_the_engines_readings():
    engine = Engine()
    seeds = np.arange(10)
    cells = [
        make_cell("tooldag", "no-probe", budget=7),
        make_cell("tooldag", "simple", budget=7, threshold=1.5),
    ]
    assert list(engine.ask(ASKED).values()) == take_readings(cells, seeds)
    off_grid = {**ASKED, "world": "pool", "budget": 29, "threshold": 1.37, "policies": ["simple"]}
    cell = make_cell("tooldag", "simple", budget=29, threshold=1.37)
    assert list(engine.ask(off_grid).values()) == take_readings([pooled(cell)], seeds)
    assert engine.ask(ASKED) == Engine().ask(ASKED), "what is remembered is what is computed"


@pytest.mark.parametrize(
    "change",
    [
        {"seeds": "100:110"},
        {"regime": "S3", "horizon": 40},
        {"profile": "perfect"},
        {"protocol": "paper:answer=withheld"},
        {"world": "graphnav"},
    ],
)
def test_every_field_of_a_question_matters(change):
    engine = Engine(resamples=100)
    before, after = (engine.ask(asked)["simple"] for asked in (ASKED, {**ASKED, **change}))
    assert after != before
    assert len(after["curve"]) == change.get("horizon", 30) + 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"world": "<b>moon</b>"}, "unknown world '<b>moon</b>'; accepted: tooldag"),
        ({"protocol": "paper:nonsense"}, "is not SWITCH=VALUE"),
        ({"budget": 2.5}, "budget 2.5"),
        ({"budget": True}, "budget True"),
        ({"threshold": None}, "threshold None is not a number"),
        ({"profile": "nobody"}, "unknown profile 'nobody'"),
        ({"seeds": "5:2"}, "is empty"),
        ({"seeds": "0:1000000"}, "at most 2000 here"),
        ({"horizon": LONGEST_HORIZON + 1}, f"horizon {LONGEST_HORIZON + 1}"),
    ],
)
def test_what_cannot_be_run_is_refused_in_words(change, said):
    with pytest.raises(InputError) as refused:
        Engine(resamples=100).ask({**ASKED, **change})
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_readers_policy_is_run_and_its_fault_is_told():
    def fails(view):
        raise ZeroDivisionError("of mine")

    engine = Engine([custom_policy("d", lambda view: 2 * view.d), custom_policy("bad", fails)], resamples=100)
    assert engine.ask({**ASKED, "policies": ["d"]})["d"]["useful"][1] > 0
    with pytest.raises(InputError, match="ZeroDivisionError: of mine"):
        engine.ask({**ASKED, "policies": ["bad"]})
    with pytest.raises(InputError, match="same name"):
        Engine([custom_policy("d", fails), custom_policy("d", fails)])


def test_the_widget_answers_messages_in_their_order(monkeypatch):
    widget = Explorer()
    sent = []
    monkeypatch.setattr(widget, "send", sent.append)
    for number, change in enumerate(({}, {"budget": -1}), 1):
        widget._receive(None, {"kind": "ask", "request": number, "setting": {**ASKED, **change}}, [])
    widget._receive(None, {"kind": "other"}, [])
    assert [(one["kind"], one["request"]) for one in sent] == [("answer", 1), ("answer", 2)]
    assert sent[0]["readings"] == Engine().ask(ASKED)
    assert "budget -1" in sent[1]["error"]
