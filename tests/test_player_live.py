"""The episode player in a real JupyterLab: the engine records what the reader asks for."""

import re

import nbformat
import pytest
from jupyterlab import jupyter_lab, run_all
from test_player import value_text

from envprobe_core.widgets.player import Setting, record_pair

CELL = """from envprobe_core.policies import custom_policy
from envprobe_core.widgets.player import Player, Setting, record_pair

mine = custom_policy("mine", lambda view: 2.0 * view.d, "<b>Mine</b>")
pairs = [record_pair(Setting("objectstate", seed=n)) | {"group": "rooms", "label": str(n)} for n in (3, 4)]
Player(pairs, live=True, policies=[mine])"""


@pytest.mark.browser
def test_any_episode_is_recorded_anew(chromium, tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, tmp_path / "watch.ipynb")
    context = chromium.new_context()
    page, faults = context.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    with jupyter_lab(tmp_path) as address:
        run_all(page, address("watch.ipynb"))
        form, about = page.locator(".player-form"), page.locator(".player-about")
        form.wait_for(timeout=240_000)
        slider = page.get_by_role("slider", name="Step", exact=True)

        def choose(**chosen):
            for label, value in chosen.items():
                control = form.get_by_label(re.compile(f"^{label}\\b"))
                if label in ("Seed", "Budget", "Threshold"):
                    control.fill(value)
                    control.press("Tab")
                else:
                    control.select_option(value)

        choose(World="graphnav", Regime="S1", Protocol="observed", Seed="1003", Threshold="0.5")
        asked = record_pair(Setting("graphnav", seed=1003, regime="S1", protocol="observed", threshold=0.5))
        page.get_by_text(asked["about"], exact=True).wait_for()
        page.wait_for_function(
            "(text) => document.querySelector('.player-slider').getAttribute('aria-valuetext') === text",
            arg=value_text(asked, 0),
        )
        slider.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert slider.get_attribute("aria-valuetext") == value_text(asked, 2)

        choose(Budget="99")
        form.get_by_text("budget 99 is not in 0..20").wait_for()
        assert about.inner_text() == asked["about"]
        choose(Budget="", Policy="mine")
        page.locator(".player-name", has_text="<b>Mine</b>").wait_for()
        assert page.locator(".player-message").inner_text() == ""
        page.locator(".player").get_by_label("Episode", exact=True).select_option("1")
        page.get_by_text(record_pair(Setting("objectstate", seed=4))["about"], exact=True).wait_for()
        assert form.get_by_label("Seed", exact=True).input_value() == "4"
    context.close()
    assert not faults
