"""The explorer on the live engine: questions checked and answered, and a drag in a real JupyterLab."""

import json

import numpy as np
import pytest
from jupyterlab import jupyter_lab, run_all
from test_explorer_page import HOSTILE, as_row, shown, slider

from envprobe_core.cells import make_cell
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES, custom_policy
from envprobe_core.reproduce.sections import ROOT
from envprobe_core.widgets.explorer import COMPARED, Explorer
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
OWN = """
from envprobe_core.policies import custom_policy
from envprobe_core.widgets.explorer import Explorer

own = custom_policy("mine", lambda view: view.d + view.s, title=TITLE)
Explorer(policies=[own], identity="own")
"""


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
        {"horizon": 12},
        {"regime": "S3", "horizon": 40},
        {"profile": "perfect"},
        {"protocol": "released"},
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
        ({"policies": ["nobody"]}, "unknown policy 'nobody'"),
        ({"regime": "S9"}, "unknown regime 'S9'"),
        ({"horizon": 0}, f"horizon 0 is not a whole number in 1..{LONGEST_HORIZON}"),
        ({"horizon": 10**9}, "horizon 1000000000"),
        ({"budget": 31}, "budget 31 is not a whole number in 0..30"),
        ({"budget": 2.5}, "budget 2.5"),
        ({"budget": True}, "budget True"),
        ({"threshold": None}, "threshold None is not a number"),
        ({"threshold": float("inf")}, "not a finite number"),
        ({"profile": "nobody"}, "unknown profile 'nobody'"),
        ({"seeds": "5:2"}, "is empty"),
        ({"seeds": "many"}, "is not FIRST:PAST"),
        ({"seeds": "0:1000000"}, "at most 2000 here"),
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


# --- in JupyterLab ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The book's own notebook, and a cell with a policy of the reader's."""
    folder = tmp_path_factory.mktemp("lab")
    notebook = json.loads((ROOT / "notebooks" / "explorer.ipynb").read_text(encoding="utf-8"))
    empty = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    notebook["cells"].append({**empty, "id": "own", "source": OWN.replace("TITLE", repr(HOSTILE))})
    (folder / "explorer.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    with jupyter_lab(folder) as address:
        yield address("explorer.ipynb")


def engine_rows(seeds, budget):
    """The table's rows as the engine computes them."""
    cells = [make_cell("tooldag", name, budget=budget) for name in COMPARED]
    readings = take_readings(cells, np.arange(seeds))
    return [as_row(POLICIES[name].title, r) for name, r in zip(COMPARED, readings, strict=True)]


@pytest.mark.browser
def test_the_notebook_runs_live_in_jupyterlab(chromium, lab):
    """Without a grid that was computed before, the engine answers from the first cell on."""
    context = chromium.new_context(viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    run_all(page, lab)
    page.locator(".ew").nth(1).wait_for(timeout=400_000)
    root, own = page.locator(".ew").nth(0), page.locator(".ew").nth(1)

    def wait_for(selector, text):
        root.locator(selector, has_text=text).wait_for(timeout=240_000)

    wait_for(".ew-note", f"{4 * 220} episodes")
    assert shown(root)[1] == engine_rows(220, 7)
    root.get_by_label("Seeds").fill("0:60")
    root.get_by_label("Seeds").press("Enter")
    wait_for(".ew-note", f"{4 * 60} episodes")

    # a drag: each tick is recomputed
    control = slider(root, "Probe budget B")
    control.focus()
    for budget in range(8, 12):
        page.keyboard.press("ArrowRight")
        wait_for("caption", f"B = {budget}")
    assert shown(root)[1] == engine_rows(60, 11)

    # off the grid: any threshold, any budget up to H
    root.get_by_label("Base threshold, any value").fill("1.37")
    root.get_by_label("Base threshold, any value").press("Enter")
    wait_for("caption", "1.37")
    control.press("End")
    wait_for("caption", "B = 30")

    # a bad value is told once, as text
    root.get_by_label("Seeds").fill("<b>7</b>")
    root.get_by_label("Seeds").press("Enter")
    wait_for(".ew-message", "<b>7</b>")

    # the reader's own policy, whose title is text
    own.locator("tbody th", has_text="<script>").wait_for(timeout=240_000)
    assert len(shown(own)[1]) == len(COMPARED) + 1
    assert page.evaluate("window.hacked") is None
    assert not faults, faults
    context.close()
