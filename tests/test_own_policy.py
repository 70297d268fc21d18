"""A policy of one's own in the page: the same digits as in the lab, and a widget that a student can use."""

import json
import random

import numpy as np
import pytest
from playwright import sync_api as playwright

from built_book import engine_page
from envprobe_book import classroom as lab
from envprobe_book.classroom.policy_page import EXAMPLES, SCRIPT, OwnPolicy, policy_script
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
    host = OwnPolicy("0:12", "10000:10012")._repr_mimebundle_()["text/html"]
    engine_page(made, SCRIPT, policy_script(), host)
    return made


def policy(**changes):
    own = {
        "form": "formula", "weights": {"c": 1, "s": 1, "u": 1, "d": 1}, "formula": "c", "gate": 1.5,
        "notBefore": 0, "last": None, "world": "all", "protocol": "paper", "budget": None,
    }  # fmt: skip
    return own | changes


def test_a_formula_gives_the_same_digits_in_the_page_and_in_the_lab(folder, browse):
    page, luck = browse(folder.as_uri(), "/page.html"), random.Random(6)
    for text in FORMULAS:
        gate = luck.choice([0.0, 0.5, 1.5])
        times = {"not_before": luck.choice([0, 4]), "last": luck.choice([None, 9])}
        mine = lab.formula(text, "mine", gate=gate, **times)
        for rule in ("paper", "observed", "released"):
            frame = run(policies=[mine], protocols=rule, seeds="3:11")
            asked = policy(
                formula=text, gate=gate, notBefore=times["not_before"], last=times["last"], protocol=rule
            )
            found = page.evaluate(RUN, [asked, "3:11"])
            for world, own in frame.groupby("world"):
                np.testing.assert_array_equal(found[world]["accuracy"], own["accuracy"].to_numpy(), text)


def test_weights_and_the_formula_that_they_write_are_one_policy(folder, browse):
    page = browse(folder.as_uri(), "/page.html")
    for weights in ({"c": 1, "s": 0, "u": 0.5, "d": 2}, {"c": 0, "s": 0, "u": 0, "d": 0}):
        written = page.evaluate("weights => EnvProbe.ownPolicy.written(weights)", weights)
        one = page.evaluate(RUN, [policy(form="weights", weights=weights), "0:8"])
        other = page.evaluate(RUN, [policy(formula=written), "0:8"])
        assert one == other


def test_a_student_runs_a_policy_and_looks_once_at_held_out_seeds(folder, browse):
    page = browse(folder.as_uri(), "/page.html", viewport={"width": 390, "height": 844})
    root = page.locator(".own-policy")
    root.get_by_role("button", name=EXAMPLES[0]["title"]).click()
    result = root.locator(".own-result")
    playwright.expect(result).to_contain_text("with our simulated agent", timeout=120_000)
    told = json.loads(result.get_attribute("data-outcome"))
    mine = lab.formula("c + s + u + d", "mine", gate=0, last=7)
    frame = run(policies=[mine], protocols="observed", seeds="0:12")
    assert abs(told["accuracy"]["value"] - frame["accuracy"].mean()) < 1e-12
    assert root.locator(".own-table tbody tr").count() > 20
    root.get_by_role("button", name="Test once").click()
    playwright.expect(root.locator(".own-held")).to_contain_text("on the held-out seeds", timeout=120_000)
    assert root.get_by_role("button", name="Test once").is_disabled()
    address = page.url
    last = root.get_by_label("Only this many last steps")
    last.fill("5")
    playwright.expect(root.locator(".own-moved")).to_be_visible()
    last.press("Enter")
    playwright.expect(root.locator(".own-held")).to_contain_text("looked once", timeout=120_000)
    assert root.locator(".own-moved").is_hidden()
    assert root.locator(".own-attempts li").count() == 2
    root.get_by_role("link", name="take up again").first.click()
    playwright.expect(root.locator(".own-held")).to_contain_text("on the held-out seeds", timeout=120_000)
    assert root.locator(".own-attempts li").count() == 2, "a run again is no further attempt"
    page.goto("about:blank")
    page.goto(address)
    assert page.locator("input[max='30']").nth(1).input_value() == "7", "the link carries the policy"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_what_cannot_be_meant_is_one_sentence_and_runs_nothing(folder, browse):
    page = browse(folder.as_uri(), "/page.html#policy=%7B%22form%22%3A3%7D")
    root = page.locator(".own-policy")
    playwright.expect(root.locator(".own-result")).to_contain_text("not taken up")
    root.get_by_label("Formula", exact=True).check()
    for text in ("__import__('os')", "c +", "(" * 60 + "c" + ")" * 60, "10**9", "while True: pass"):
        root.get_by_label("Value of probing").fill(text)
        assert root.locator(".own-fault").text_content().strip()
        assert root.get_by_role("button", name="Run", exact=True).is_disabled()


def test_a_link_to_a_formula_runs_the_formula(folder, browse):
    """And not the weights that it carries too; so does an example that is a formula."""
    page = browse(folder.as_uri(), "/page.html")
    link = page.evaluate(
        "policy => EnvProbe.ownPolicy.asLink(policy)",
        policy(formula="d * (s + u)", gate=0.5, protocol="observed"),
    )
    page = browse(folder.as_uri(), f"/page.html{link}")
    root = page.locator(".own-policy")
    assert root.get_by_label("Formula", exact=True).is_checked()
    root.get_by_role("button", name="Run", exact=True).click()
    result = root.locator(".own-result")
    playwright.expect(result).to_contain_text("with our simulated agent", timeout=120_000)
    mine = lab.formula("d * (s + u)", "mine", gate=0.5)
    expected = run(policies=[mine], protocols="observed", seeds="0:12")["accuracy"].mean()
    told = json.loads(result.get_attribute("data-outcome"))
    assert abs(told["accuracy"]["value"] - expected) < 1e-12
    root.get_by_label("Weights", exact=True).check()
    root.get_by_role("button", name=EXAMPLES[2]["title"]).click()
    assert root.get_by_label("Formula", exact=True).is_checked()
