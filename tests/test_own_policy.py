"""A policy of one's own in the page: the Python that it writes decides alike, and a student can use it."""

import json
import random

import numpy as np
import pytest
from playwright import sync_api as playwright

from built_book import engine_page
from envprobe_book import classroom as lab
from envprobe_book.classroom.policy_page import EXAMPLES, SCRIPT, OwnPolicy, known, policy_script
from envprobe_book.widgets.host import STYLES
from envprobe_core import run

pytestmark = pytest.mark.browser
FORMULAS = (
    "c + s + u + d", "c + 2 * d", "u", "staleness / 10 if d > 0 else 0", "min(s, u) + c",
    "(1 - confidence) * (c > 0.5)", "d * (s + u)", "max(c, d) ** 2 + s", "s * (horizon - step) / horizon",
    "2 if used < budget / 2 and c >= 0.5 else u",
)  # fmt: skip
RUN = """async ([policy, seeds]) => {
  const found = await EnvProbe.ownPolicy.episodes(policy, seeds);
  return Object.fromEntries(Object.entries(found).map(([world, one]) =>
    [world, {accuracy: [...one.accuracy].map(Number), digest: [...one.digest].map(String)}]));
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("own policy")
    others = known("0:12")
    host = OwnPolicy("0:12", "10000:10012", others=others)._repr_mimebundle_()["text/html"]
    style = (STYLES / "policy.css").read_text(encoding="utf-8")
    engine_page(made, SCRIPT, policy_script(), host, f"<style>{style}</style>")
    return made


def policy(**changes):
    own = {
        "form": "formula", "weights": {"c": 1, "s": 1, "u": 1, "d": 1}, "formula": "c", "gate": 1.5,
        "notBefore": 0, "last": None, "world": "all", "protocol": "paper", "budget": None,
    }  # fmt: skip
    return own | changes


def in_the_lab(page, **changes):
    """The policy of the Python text that the page shows, without its last line, which runs it."""
    write = "policy => EnvProbe.ownPolicy.inPython(policy, {seeds: '0:2'})"
    text, found = page.evaluate(write, policy(**changes)), {}
    exec(text[: text.index("lab.leaderboard(")], found)
    return found["mine"]


def test_a_formula_gives_the_same_digits_in_the_page_and_as_the_python_that_it_shows(folder, browse):
    page, luck = browse(folder.as_uri(), "/page.html"), random.Random(6)
    for text in FORMULAS:
        gate = luck.choice([0.0, 0.5, 1.5])
        asked = {"formula": text, "gate": gate}
        asked |= {"notBefore": luck.choice([0, 4]), "last": luck.choice([None, 9])}
        mine = in_the_lab(page, **asked)
        for rule in ("paper", "observed", "released"):
            frame = run(policies=[mine], protocols=rule, seeds="3:11")
            found = page.evaluate(RUN, [policy(protocol=rule, **asked), "3:11"])
            for world, own in frame.groupby("world"):
                np.testing.assert_array_equal(found[world]["accuracy"], own["accuracy"].to_numpy(), text)


def test_weights_and_the_formula_that_they_write_are_one_policy(folder, browse):
    page = browse(folder.as_uri(), "/page.html")
    for weights in ({"c": 1, "s": 0, "u": 0.5, "d": 2}, {"c": 0, "s": 0, "u": 0, "d": 0}):
        written = page.evaluate("weights => EnvProbe.ownPolicy.written(weights)", weights)
        one = page.evaluate(RUN, [policy(form="weights", weights=weights), "0:8"])
        other = page.evaluate(RUN, [policy(formula=written), "0:8"])
        assert one == other


def at_rest(page, act=None):
    """The outcome of what is shown, once it has all its seeds and resamples after an act."""
    if act:
        page.evaluate("document.querySelector('.own-stage').dataset.state = 'asked'")
        act()
    page.locator(".own-stage[data-state=final]").wait_for(timeout=120_000)
    return json.loads(page.locator(".own-result").get_attribute("data-outcome"))


def expected(page, text, protocol="observed", **gate):
    """The accuracy of a formula, and its place among the book's deployable policies."""
    contest = lab.compete(in_the_lab(page, formula=text, **gate), seeds="0:12", protocols=protocol)
    return lab.leaderboard(contest, 100).set_index("policy").loc["mine"]


def test_a_move_of_a_weight_ranks_the_policy_anew(folder, browse):
    """By hand and by keyboard; what is said is what the lab finds, and the picture stays in sight."""
    page = browse(folder.as_uri(), "/page.html", viewport={"width": 390, "height": 844})
    began = at_rest(page)
    wanted = expected(page, "c + s + u + d")
    assert abs(began["accuracy"]["value"] - wanted["accuracy"]) < 1e-12
    assert began["rank"] == wanted["rank"]
    slider = page.get_by_role("slider", name="d, dependency")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)

    def drag():
        page.mouse.down()
        for x in range(0, 60, 6):
            page.mouse.move(box["x"] + box["width"] / 2 + x, middle)
        page.mouse.up()

    at_rest(page, drag)
    assert float(slider.input_value()) > 1.2
    picture = page.locator(".own-picture").bounding_box()
    assert picture["y"] >= 0
    assert picture["y"] + picture["height"] < middle
    slider.focus()
    moved = at_rest(page, lambda: page.keyboard.press("End"))
    wanted = expected(page, "c + s + u + 3 * d")
    assert abs(moved["accuracy"]["value"] - wanted["accuracy"]) < 1e-12
    assert moved["rank"] == wanted["rank"]
    assert abs(moved["gains"]["simple"]["value"] - wanted["minus_simple"]) < 1e-9
    assert "%22d%22%3A3" in page.url
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.nightly
def test_a_student_plays_the_final_for_what_is_shown(folder, browse):
    page = browse(folder.as_uri(), "/page.html", viewport={"width": 1400, "height": 900})
    root, held = page.locator(".own-policy"), page.locator(".own-held")
    at_rest(page)
    late = at_rest(page, lambda: root.get_by_role("button", name=EXAMPLES[1]["title"]).click())
    assert (
        abs(late["accuracy"]["value"] - expected(page, "c + s + u + d", gate=0, last=7)["accuracy"]) < 1e-12
    )
    final = root.get_by_role("button", name="Play the final")
    playwright.expect(held).to_contain_text("not looked at them yet")
    final.press("Enter")
    playwright.expect(held).to_contain_text("You have looked at them once", timeout=120_000)
    playwright.expect(held).to_be_focused()
    assert final.is_disabled()
    address = page.url
    at_rest(page, lambda: root.get_by_label("Ask only in so many last steps").fill("5"))
    playwright.expect(held).to_contain_text("looked at them once", timeout=120_000)
    assert final.is_enabled(), "what is shown has not been tested"
    root.get_by_text("Your attempts: 3").click()
    at_rest(page, lambda: root.get_by_role("link", name="take up again").first.click())
    root.get_by_text("Your attempts: 3").wait_for()
    page.goto("about:blank")
    page.goto(address)
    assert page.get_by_label("Ask only in so many last steps").input_value() == "7", (
        "the link carries the policy"
    )
    assert at_rest(page)["accuracy"] == late["accuracy"]
    root.get_by_text("World, protocol").click()
    other = at_rest(page, lambda: root.get_by_label("World", exact=True).select_option("graphnav"))
    mine = in_the_lab(page, formula="c + s + u + d", gate=0, last=7)
    alone = lab.compete(mine, seeds="0:12", worlds="graphnav")
    assert other["rank"] == lab.leaderboard(alone, 100).set_index("policy").loc["mine", "rank"]


def test_what_cannot_be_meant_is_one_sentence_and_runs_nothing(folder, browse):
    page = browse(folder.as_uri(), "/page.html#policy=%7B%22form%22%3A3%7D")
    root = page.locator(".own-policy")
    playwright.expect(root.locator(".own-notice")).to_contain_text("not taken up")
    root.get_by_label("Formula", exact=True).check()
    for text in ("__import__('os')", "c +", "(" * 60 + "c" + ")" * 60, "10**9", "while True: pass"):
        root.get_by_label("Value of probing").fill(text)
        assert root.locator(".own-fault").text_content().strip()
    assert not any(word in page.url for word in ("import", "10**9", "while")), "what is refused is not run"


def test_a_link_to_a_formula_runs_the_formula(folder, browse):
    """And not the weights that it carries too; so does an example that is a formula."""
    page = browse(folder.as_uri(), "/page.html")
    link = page.evaluate(
        "policy => EnvProbe.ownPolicy.asLink(policy)",
        policy(formula="d * (s + u)", gate=0.5, protocol="observed"),
    )
    page = browse(folder.as_uri(), f"/page.html{link}")
    root = page.locator(".own-policy")
    told = at_rest(page)
    assert root.get_by_label("Formula", exact=True).is_checked()
    assert abs(told["accuracy"]["value"] - expected(page, "d * (s + u)", gate=0.5)["accuracy"]) < 1e-12
    root.get_by_label("Weights", exact=True).check()
    root.get_by_role("button", name=EXAMPLES[3]["title"]).click()
    assert root.get_by_label("Formula", exact=True).is_checked()
