"""The claims on a reader's seeds: what the page judges is what Python judges on the same seeds."""

import functools
import json

import pytest

from built_book import engine_page
from envprobe_book.analyses.scoreboard import choose_claims, run_claims
from envprobe_book.claims import find_claim
from envprobe_book.claims.judge import INPUT, judge
from envprobe_book.live_figures.scripts import front_end
from envprobe_book.pages.other_seeds import other_seeds, script

BOOK, OURS, RESAMPLES = "0:12", "300:340", 200


@functools.cache
def board(seeds):
    claims = choose_claims()
    return judge(run_claims(claims, seeds=seeds), claims, resamples=RESAMPLES)


def data_of(shown):
    return json.loads(shown.html.partition('<script type="application/json">')[2].partition("</script>")[0])


def test_what_seeds_move_is_asked_again_and_what_is_left_out_is_counted():
    claims = choose_claims()
    data = data_of(other_seeds(board(BOOK), claims, "S2", RESAMPLES))
    asked = {one["id"] for one in data["claims"]}
    assert {find_claim(name).kind for name in asked} >= {"paired", "dominance", "equivalence", "mcnemar"}
    assert not any(find_claim(name).setting for name in asked)
    assert len(asked) > 0.8 * sum(claim.about == "comparison" for claim in claims)
    fitted = board(BOOK).assign(profile="calibrated", verdict=INPUT)
    fewer = {one["id"] for one in data_of(other_seeds(fitted, claims, "S2", RESAMPLES))["claims"]}
    assert fewer < asked
    assert not any(find_claim(name).inputs for name in fewer)


@pytest.mark.browser
def test_a_page_judges_other_seeds_as_python_does(browse, tmp_path):
    shown = other_seeds(board(BOOK), choose_claims(), "S2", RESAMPLES).html
    path = engine_page(tmp_path, "seeds.js", f"{front_end()}\n{script()}", shown)
    page = browse(*path.as_uri().rpartition("page.html")[:2])
    field = page.get_by_role("textbox", name="Seeds")
    field.fill("12:3")
    page.get_by_role("button", name="Judge again").click()
    assert "is accepted" in page.locator(".other-seeds-said").inner_text()
    field.fill(OURS)
    page.keyboard.press("Enter")
    page.locator(".other-seeds[data-found]").wait_for(timeout=120_000)
    found = json.loads(page.locator(".other-seeds").get_attribute("data-found"))
    table = board(OURS).set_index(["claim", "protocol"])
    told = {(name, rule): one["verdict"] for name, own in found.items() for rule, one in own.items()}
    assert told == {key: table.loc[key, "verdict"] for key in told}
    for name, own in found.items():
        for rule, one in own.items():
            if one.get("value") is not None:
                ours = table.loc[(name, rule), ["estimate", "low_adjusted", "high_adjusted"]]
                assert [one["value"], one["low"], one["high"]] == pytest.approx(ours.tolist(), abs=1e-9)
    before = board(BOOK).set_index(["claim", "protocol"])["verdict"]
    changed = sum(before[key] != verdict for key, verdict in told.items())
    assert page.locator(".other-seeds-found tbody tr").count() == changed > 0
