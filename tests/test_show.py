"""Tables by the names of their columns, and findings that one section says and another shows."""

import json

import pandas as pd
import pytest

from envprobe_book import collect, finding, gains, show
from envprobe_book.live_figures import gain, live, tell, worded
from envprobe_book.pages import EXECUTED
from envprobe_core import run
from envprobe_core.errors import InputError


def test_names_decide_how_values_are_written():
    frame = pd.DataFrame(
        {
            "success": [0.1234],
            "share_useful": [0.5],
            "p": [0.0001],
            "price_low": [1.0],
            "price_high": [2.0],
            "n": [1234],
        },
        pd.Index(["simple"], name="policy"),
    )
    shown = show(frame, "tab-one", "One.")
    assert list(shown.head) == ["policy", "success", "share useful", "p", "price", "n"]
    assert shown.rows == [["EnvProbe-Simple", "12.3%", "50%", "<\xa0.001", "[1.00,\xa02.00]", "1,234"]]


def test_of_two_levels_one_is_the_head():
    frame = run("tooldag", "simple periodic", protocols="released paper", seeds="0:40")
    found = gains(
        frame, {"S − P": ("simple", "periodic")}, strata={"procedural": ("tooldag",)}, resamples=200
    )
    shown = show(found, "tab-two", "Two.")
    assert list(shown.head) == ["protocol", "worlds", "S − P"]
    assert [row[0] for row in shown.rows] == ["as written", "as released"]
    beside = pd.DataFrame(
        {("printed", "gain"): [1.0], ("printed", "gain_low"): [0.5], ("printed", "gain_high"): [2.0]}
    )
    assert show(beside, "tab-three", "Three.", digits=2).rows == [["+1.00 [0.50,\xa02.00]"]]
    both = pd.DataFrame({("accuracy", "0%"): [0.5], ("success", "0%"): [0.25]})
    assert list(show(both, "tab-three", "Three.").head) == ["accuracy, 0%", "success, 0%"]


def test_a_finding_is_collected_with_what_it_reads(tmp_path, monkeypatch):
    rows = [{"name": "paper", "value": gain("simple", "periodic", worlds="procedural", protocol="paper")}]
    figure = live("forest", "one", rows, title="One", seeds="0:40", resamples=200)
    said = finding("lead", tell("It ends {where}.", where=worded("ahead", figure.at(name="paper"))))
    outputs = [{"data": {"text/html": figure.page_html()}, "metadata": {}}]
    data, _ = said._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data, "in JupyterLab it follows the figure"
    monkeypatch.setenv(EXECUTED, str(tmp_path))
    data, metadata = said._repr_mimebundle_()
    outputs.append({"data": data, "metadata": metadata})
    (tmp_path / "here.ipynb").write_text(json.dumps({"cells": [{"outputs": outputs}]}), encoding="utf-8")
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    assert collect("here", "lead").markdown == said.markdown
    assert 'id="one"' in shown[0].html
    assert '"kind":"numbers"' in shown[0].html
    assert collect("here", "one").html == figure.page_html()
    with pytest.raises(InputError, match="finding of here"):
        collect("here", "nothing")
    with pytest.raises(InputError, match="was not executed"):
        collect("there", "lead")
