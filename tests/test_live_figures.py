"""Live figures: a description gives the tables' numbers in Python, and the same numbers in a page."""

import json
import math
import random

import numpy as np
import pytest

from built_book import engine_page
from envprobe_book import compare, live, run, summarize
from envprobe_book.live_figures import estimates, fixed, gain, mean, shift, track
from envprobe_book.live_figures.scripts import SCRIPT, front_end
from envprobe_book.pages import BOOK
from envprobe_book.pages.markup import ConclusionError
from envprobe_core.agents.profiles import PROFILES
from envprobe_core.comparing import STRATA
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.regimes import REGIMES
from envprobe_core.statistics import mean_track

FOUND = """async ([asked, setting, seeds, resamples]) => {
  const {evaluate} = EnvProbe.estimates, overtaken = new AbortController();
  const lost = evaluate(asked, setting, {seeds, resamples, signal: overtaken.signal}).catch(({name}) => name);
  const both = [asked, asked.slice(3)].map((some) => evaluate(some, setting, {seeds, resamples}));
  overtaken.abort();
  const [one, other] = await Promise.all(both), told = JSON.stringify(one.found.slice(3));
  if (await lost !== "AbortError" || told !== JSON.stringify(other.found)) throw new Error("not the same");
  return one.found.map((one) => ({value: one.value, low: one.low, high: one.high}));
}"""
"""What a figure finds that shares its episodes with one that is overtaken, and with one that is not."""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("live figures")
    engine_page(folder, SCRIPT, front_end())
    return folder


def test_gains_and_means_are_those_of_the_tables():
    frame = run(policies="simple periodic", seeds="0:30", budgets=5, thresholds=2.0)
    setting = {"budget": 5, "threshold": 2.0}
    for measure in ("accuracy", "success", "useful/probes", "collapse_onset"):
        table = compare(frame, "simple", "periodic", measure, resamples=300)
        asked = [
            gain("simple", "periodic", measure, row.stratum, protocol=row.protocol)
            for row in table.itertuples()
        ]
        found = estimates.evaluate(asked, setting, "0:30", 300)
        values = [[one["value"], one["low"], one["high"]] for one in found]
        np.testing.assert_array_equal(values, table[["gain", "gain_low", "gain_high"]].to_numpy())
        table = summarize(frame, measure, ("protocol", "policy"), strata=STRATA, resamples=300)
        asked = [mean(row.policy, measure, row.stratum, protocol=row.protocol) for row in table.itertuples()]
        found = estimates.evaluate(asked, setting, "0:30", 300)
        values = [[one["value"], one["low"], one["high"]] for one in found]
        np.testing.assert_array_equal(values, table[["mean", "low", "high"]].to_numpy())


def test_gains_that_share_resamples_are_those_alone():
    asked = [
        gain("simple", other, measure, worlds, protocol=protocol)
        for protocol in PROTOCOLS
        for other, measure, worlds in (
            ("periodic", "accuracy", "combined"),
            ("late", "success", "combined"),
            ("no-probe", "collapse_onset", "combined"),
            ("periodic", "accuracy", "spatial"),
            ("no-probe", "useful/probes", "combined"),  # no pair counts
        )
    ]
    setting = {"budget": 7, "threshold": 1.5}
    alone = [estimates.evaluate([one], setting, "0:30", 200)[0] for one in asked]
    assert str(estimates.evaluate(asked, setting, "0:30", 200)) == str(alone)  # NaN is NaN


def test_tracks_and_shifts_are_what_their_words_say():
    frame = run(
        "tooldag", "simple periodic", protocols="paper paper:clock=stands", seeds="0:30", facts="track"
    )
    own = frame.query("policy == 'simple' and protocol == 'paper'")
    expected = mean_track(np.stack(own["track"]), 300)
    (found,) = estimates.evaluate([track("simple", "tooldag", protocol="paper")], {}, "0:30", 300)
    np.testing.assert_array_equal(found["value"], expected["accuracy"])
    turned = shift(
        "simple", "periodic", {"protocol": "paper:clock=stands"}, {"protocol": "paper"}, worlds="procedural"
    )
    (found,) = estimates.evaluate([turned], {}, "0:30", 300)
    gains = compare(frame, "simple", "periodic", strata={"tools": ("tooldag",)}).set_index("protocol")["gain"]
    assert math.isclose(found["value"], gains["paper:clock=stands"] - gains["paper"], abs_tol=1e-12)
    assert found["low"] <= found["value"] <= found["high"]


def figure(**changes):
    rows = [
        {"panel": "tooldag", "name": "printed", "value": fixed(11.8, 7.0, 16.0)},
        *(
            {
                "panel": "tooldag",
                "name": rule,
                "value": gain("simple", "periodic", worlds="tooldag", protocol=rule),
            }
            for rule in PROTOCOLS
        ),
    ]
    given = {"title": "It turns", "seeds": "0:20", "resamples": 200, "line": 0.0}
    return live("forest", "gains", rows, **(given | changes))


def test_a_figure_has_a_static_form_a_description_and_a_widget():
    one = figure()
    forms, _ = one._repr_mimebundle_()
    assert one.drawing.svg() in forms["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in forms
    told = json.loads(forms["text/html"].split('<script type="application/json">')[1].split("</script>")[0])
    assert [row["found"]["value"]["value"] for row in told["rows"]] == one.frame["value"].tolist()
    assert told["setting"] == {"budget": None, "threshold": 1.5, "regime": "S2", "profile": "typical"}


def test_a_reading_of_a_figure_is_a_number():
    one = figure()
    printed, released = one.at(name="printed"), one.at(name="released")
    assert bool(printed.low > 0)
    assert bool(abs(released.value) > 0)
    assert not (released.low > printed.value)
    with pytest.raises(InputError, match="4 rows"):
        one.at(panel="tooldag")


def test_a_title_that_says_what_is_found_has_a_condition(monkeypatch):
    so = figure(title="Ahead.", when=lambda one: [one.at(name="released").high > -100], about="The gain.")
    assert so.as_data()["title"] == "Ahead."
    elsewhere = figure(title="Ahead.", when=lambda one: [one.at(name="nowhere").low > 0], about="The gain.")
    assert elsewhere.as_data()["title"] == "The gain."
    monkeypatch.setenv(BOOK, "1")
    with pytest.raises(ConclusionError):
        figure(title="Far ahead.", when=lambda one: [one.at(name="released").low > 1000])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rows": []}, "nothing to show"),
        ({"rows": [{"name": "a", "value": 3}]}, "no estimate"),
        ({"budget": 31}, "budget 31"),
        ({"budget": 2.5}, "budget 2.5"),
        ({"threshold": 4.5}, "threshold 4.5"),
        ({"threshold": True}, "threshold True"),
        ({"regime": "S9"}, "S9"),
        ({"profile": "nobody"}, "nobody"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_line(given, words):
    rows = given.pop("rows", [{"name": "a", "value": fixed(1.0)}])
    with pytest.raises(InputError, match=words):
        live("forest", "one", rows, title="One", **given)


def random_estimates(luck):
    """Estimates of every statistic, each of other policies, worlds, protocols and measures."""
    rule, other = luck.choice(list(PROTOCOLS)), "paper:clock=stands,end=success"
    arm, reference = luck.sample([name for name in POLICIES if not name.startswith("voi")], 2)
    stratum = luck.choice(list(STRATA))
    measure = luck.choice(
        ["accuracy", "success", "useful/probes", "useful/budget", "probes", "collapse_onset"]
    )
    return [
        gain(arm, reference, measure, stratum, protocol=rule),
        mean(arm, measure, stratum, protocol=other),
        mean("simple", "success", "spatial", protocol=rule),
        shift("simple", "periodic", {"protocol": other}, {"protocol": "paper"}, worlds="procedural"),
        shift(arm, "periodic", {"protocol": other}, {"protocol": "paper"}, worlds="procedural"),
        *(gain(arm, "no-probe", own, stratum, protocol=rule) for own in ("accuracy", "success", "steps")),
        *(gain("simple", "late", "useful/probes", stratum, protocol=own) for own in PROTOCOLS),
        fixed(1.5, 1.0, 2.0),
        track(arm, "graphnav", protocol=rule),
        track(reference, stratum, protocol=other),
        track(arm, stratum, "probe", protocol=rule),
    ]


@pytest.mark.browser
def test_a_page_finds_the_same_numbers_at_any_setting(scripts, browse):
    page, luck = browse(scripts.as_uri(), "/page.html"), random.Random(32)
    for _ in range(10):
        regime = luck.choice(list(REGIMES))
        setting = {
            "budget": luck.randint(0, REGIMES[regime].horizon),
            "threshold": round(luck.uniform(0, 3), 2),
            "regime": regime,
            "profile": luck.choice(list(PROFILES)),
        }
        asked = random_estimates(luck)
        first = luck.randrange(1000)
        seeds = f"{first}:{first + luck.randint(12, 40)}"
        expected = estimates.evaluate(asked, setting, seeds, 400)
        found = page.evaluate(FOUND, [[one.as_data() for one in asked], setting, seeds, 400])
        for estimate, ours, theirs in zip(asked, expected, found, strict=True):
            for part in ("value", "low", "high"):
                one = np.atleast_1d(np.asarray(ours[part], dtype=float))
                other = np.atleast_1d(np.array(theirs[part], dtype=float))
                np.testing.assert_allclose(
                    other, one, rtol=0, atol=1e-12, err_msg=f"{setting} {estimate} {part}"
                )
