"""One thing, one name: titles that pages print are accepted wherever names are, and pages print titles."""

import itertools
import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daily import nightly
from envprobe_book import classroom, judge
from envprobe_book.classroom.policy_check import policy
from envprobe_book.live_figures.estimates import gain
from envprobe_book.live_figures.explorer import explorer
from envprobe_book.pages.frames import titled_frame
from envprobe_book.reproduce.parameters import parse_assignments, resolve
from envprobe_book.reproduce.sections import ROOT, read_section
from envprobe_book.widgets.player import record_pair
from envprobe_core import compare, play, run
from envprobe_core.conditions import find_policies, find_policy, find_protocols, find_worlds, titles
from envprobe_core.errors import InputError, in_one_line
from envprobe_core.naming import split_names
from envprobe_core.protocols import TITLES, parse_protocol
from envprobe_core.worlds import find_world
from processes import envprobe
from watching import tell

FIND = {"world": find_world, "policy": lambda text: find_policy(text).name}
FIND["protocol"] = lambda text: parse_protocol(text).name
SPELLED = [
    (kind, name, word)
    for kind, own in titles().items()
    for name, words in own.items()
    for word in (name, *words)
]


@pytest.mark.parametrize(("kind", "name", "word"), SPELLED)
def test_each_name_and_each_title_is_understood_in_either_case(kind, name, word):
    for text in (
        word,
        word.upper(),
        word.lower(),
        f" {word} ",
        word.replace(" ", "\u00a0").replace("-", "‑"),
    ):
        assert FIND[kind](text) == name


def test_no_title_means_two_things():
    for own in titles().values():
        words = [word.lower() for name, others in own.items() for word in {name, *others}]
        assert len({*words}) >= len({word.lower() for name in own for word in (name,)})
        meant = [(word.lower(), name) for name, others in own.items() for word in (name, *others)]
        assert len({*meant}) == len({word for word, _ in meant})


@given(st.data())
def test_a_text_of_names_and_titles_is_split_where_it_should_be(data):
    kind = data.draw(st.sampled_from(sorted(titles())))
    own = titles()[kind]
    chosen = data.draw(st.lists(st.sampled_from(sorted(own)), unique=True, min_size=1))
    words = [data.draw(st.sampled_from((name, *own[name]))) for name in chosen]
    text = data.draw(st.sampled_from((" ", ", ", ","))).join(words)
    find = {"world": find_worlds, "policy": find_policies, "protocol": find_protocols}[kind]
    assert [getattr(one, "name", one) for one in find(text)] == chosen
    assert split_names(text, own) == words


def test_an_unknown_name_is_told_names_and_titles_and_a_near_miss_of_either():
    with pytest.raises(InputError) as fault:
        run(policies="EnvProbe-Simpel", seeds="0:2")
    told = in_one_line(str(fault.value))
    assert "did you mean EnvProbe-Simple?" in told
    assert "simple (EnvProbe-Simple)" in told
    with pytest.raises(InputError, match=r"accepted: paper \(as written\), observed \(partial start\)"):
        run(protocols=["as planned"], seeds="0:2")


def test_titles_run_what_names_run():
    asked = {"seeds": "0:8"}
    one = run(
        "tools, GraphNavWorld",
        "EnvProbe-Simple, Yoked Placebo",
        protocols="as written, Partial start",
        **asked,
    )
    other = run("tooldag graphnav", "simple yoked", protocols="paper observed", **asked)
    pd.testing.assert_frame_equal(one, other)
    pd.testing.assert_frame_equal(
        play("tools", "No-Probe", protocol="as released"), play("tooldag", "no-probe", protocol="released")
    )
    strata = {"tools": ("tooldag",)}
    frame = run("tooldag", "simple periodic", protocols="paper", seeds="0:20")
    pd.testing.assert_frame_equal(
        compare(frame, "EnvProbe-Simple", "Periodic", strata=strata),
        compare(frame, "simple", "periodic", strata=strata),
    )
    judged = judge(frame, ["main-procedural"], protocols="as written", resamples=100)
    assert judged["protocol"].tolist() == ["paper"]


def test_figures_the_player_the_explorer_and_the_lab_take_titles():
    assert gain("EnvProbe-Simple", "Periodic", worlds="tools", protocol="as written") == gain(
        "simple", "periodic", worlds="tooldag", protocol="paper"
    )
    assert record_pair("rooms", ("EnvProbe-Simple", "No-Probe"), protocol="partial start") == record_pair(
        "objectstate", ("simple", "no-probe"), protocol="observed"
    )
    assert explorer("Tools", "Periodic, EnvProbe-Simple", protocol="as released") == explorer(
        "tooldag", "periodic simple", protocol="released"
    )
    mine = policy("mine")(lambda view: view.c + view.d)
    made = [
        classroom.compete(mine, seeds="0:4", worlds=worlds, protocols=rules, rivals=rivals).frame
        for worlds, rules, rivals in (("tools", "as written", "EnvProbe-(c+d)"), ("tooldag", "paper", "cd"))
    ]
    pd.testing.assert_frame_equal(*made)


def test_parameters_of_notebooks_and_the_command_line_take_titles(tmp_path):
    declared = read_section(ROOT / "notebooks" / "exercises.ipynb").model
    assert (
        resolve(declared, parse_assignments(["protocol=as written, As released"]))["protocol"]
        == "as written, as released"
    )
    assert resolve(declared, parse_assignments(["protocol=paper"]))["protocol"] == "as written"
    run_folder = tmp_path / "run"
    result = envprobe(
        "run", "--world", "tools", "--policy", "EnvProbe-Simple", "--protocol", "as written",
        "--seeds", "0:3", "--logs", "none", "--out", run_folder,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    inputs = json.loads((run_folder / "manifest.json").read_text())["inputs"]
    assert (inputs["worlds"], inputs["policies"], inputs["protocols"]) == (["tooldag"], ["simple"], ["paper"])


def test_a_page_prints_titles_in_the_books_order_and_leaves_the_frame():
    index = pd.MultiIndex.from_tuples(
        itertools.product(["tooldag", "graphnav"], ["observed", "paper", "released"]),
        names=["world", "protocol"],
    )
    frame = pd.DataFrame({"policy": "simple", "n": range(6)}, index=index)
    shown = titled_frame(frame)
    assert shown.index.get_level_values("protocol").tolist() == [*TITLES.values()] * 2
    assert shown.index.get_level_values("world").tolist() == ["tools"] * 3 + ["graphs"] * 3
    assert shown["n"].tolist() == [1, 0, 2, 4, 3, 5]
    assert set(shown["policy"]) == {"EnvProbe-Simple"}
    assert frame.index.get_level_values("protocol")[0] == "observed"
    other = pd.DataFrame({"word": ["simple", "plain"], "paper": [1, 2]})
    pd.testing.assert_frame_equal(titled_frame(other), other)


@pytest.mark.browser
@pytest.mark.parametrize("spelled", nightly(["as+written", "paper"], "as+written"))
def test_an_address_takes_titles(browse, html, spelled):
    page = browse(
        html.as_uri(),
        f"/executed/explorer.html?world=tools&protocol={spelled}:clock=stands&policies=EnvProbe-Simple,No-Probe",
    )
    page.locator(".live-explorer[data-ready=yes]").wait_for()
    setting = page.evaluate("EnvProbe.bar.setting()")
    assert (setting["world"], setting["protocol"], setting["policies"]) == (
        "tooldag", "paper:clock=stands", "simple,no-probe",
    )  # fmt: skip
    address = f"/executed/one-episode.html#episode=rooms-{spelled}-12&policies=EnvProbe-Simple,Yoked+Placebo"
    page.goto(f"{html.as_uri()}{address}")
    page.reload()
    about = tell(page, record_pair("objectstate", ("simple", "yoked"), 12))["about"]
    page.get_by_text(about, exact=True).wait_for()
