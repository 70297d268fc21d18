"""One decision, told: its words follow from the logs, and all six steps are there for everyone."""

import numpy as np
import pytest

from envprobe_book.pages.decision import STEPS, Decision, first_worth_telling
from envprobe_book.widgets.host import STYLES
from envprobe_book.widgets.player import record_pair
from watching import serious

SETTINGS = [
    ("objectstate", ("simple", "periodic"), 4, "paper"),
    ("tooldag", ("no-probe",), 3, "released"),
    ("graphnav", ("voi", "periodic"), 4, "observed"),
    ("objectstate", ("placebo", "simple"), 9, "paper:delay=2"),
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_words_follow_from_the_logs(setting):
    world, policies, seed, protocol = setting
    recorded = record_pair(world, policies, seed, protocol=protocol)
    run = recorded["runs"][0]
    step = first_worth_telling(run)
    fired = [t for t, field in enumerate(run["probe"]) if field >= 0]
    assert (step in fired) == bool(fired)
    decision = Decision(recorded, step)
    belief, drift, score, gate, probe, cost = decision.texts()
    assert f"{len(run['gold'][0])} beliefs" in belief
    held, gold = np.array(run["belief"][step]), np.array(run["gold"][step])
    wrong = (held != gold) & (held >= 0)
    assert ("no belief is wrong" in drift) == (not wrong.any())
    names = decision.world.field_names
    assert f"<em>{names[int(np.argmax(decision.score))]}</em> comes first" in score
    if run["threshold"] is None:
        assert "no threshold" in gate
    elif policies[0] != "voi":
        assert ("does not reach" in gate) == (decision.score.max() < run["threshold"])
    assert ("No probe" in probe) == (run["probe"][step] < 0)
    assert ("No answer" in probe) == (run["probe"][step] >= 0 and policies[0] == "placebo")
    assert cost.startswith(f"{len(fired)} of the {run['steps']} steps")
    assert all(
        f"{(np.array(one['belief'][-1]) == one['gold'][-1]).sum()} " in cost for one in recorded["runs"]
    )


@pytest.mark.parametrize(("delay", "late"), [("1", "1 step"), ("2", "2 steps")])
def test_a_late_answer_says_by_how_many_steps(delay, late):
    recorded = record_pair("objectstate", ("simple",), 9, protocol=f"paper:delay={delay}")
    decision = Decision(recorded, first_worth_telling(recorded["runs"][0]))
    assert f"the answer comes {late} later." in decision.texts()[STEPS.index("Probe")]


def test_each_picture_adds_to_the_one_before():
    recorded = record_pair("objectstate", seed=4)
    decision = Decision(recorded, first_worth_telling(recorded["runs"][0]))
    pictures = [decision.picture(at) for at in range(len(STEPS))]
    assert [len(one) for one in pictures] == sorted({len(one) for one in pictures})
    assert pictures[-1].count("decision-probe") == sum(field >= 0 for field in recorded["runs"][0]["probe"])
    assert pictures[-1].count("decision-failed") == sum(
        action >= 0 and probe < 0 and not valid
        for action, probe, valid in zip(
            *(recorded["runs"][0][name] for name in ("action", "probe", "valid")), strict=True
        )
    )


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1400])
def test_a_picture_stays_while_the_text_scrolls_and_without_script_there_are_six(tmp_path, browse, width):
    recorded = record_pair("objectstate", seed=4)
    told = Decision(recorded, 1)._repr_mimebundle_()["text/html"]
    script = (STYLES / "decision.js").read_text(encoding="utf-8")
    body = f"<main><h1>Told</h1>{told}</main><script>{script}</script>"
    (tmp_path / "page.html").write_text(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>Told</title><link rel=icon href=data:,>{body}",
        encoding="utf-8",
    )
    size = {"width": width, "height": 844}
    page = browse(tmp_path.as_uri(), "/page.html", viewport=size, reduced_motion="reduce")
    page.set_default_timeout(20_000)
    seen = page.locator(".decision-screen > .decision-shown")
    for at, name in enumerate(STEPS):
        way = page.get_by_role("link", name=name, exact=True)
        way.focus()
        page.keyboard.press("Enter")
        page.locator(f".decision-here#decision-{at + 1}").wait_for()
        assert seen.count() == 1
        assert seen.get_attribute("aria-label").startswith(name)
        box, text = seen.bounding_box(), page.locator(".decision-here p").bounding_box()
        assert box["y"] >= 0
        assert text["y"] + 20 < size["height"]
        assert box["y"] + box["height"] <= text["y"] or box["x"] >= text["x"] + text["width"]
    page.mouse.move(width / 2, 700)
    page.mouse.wheel(0, -6000)
    page.locator(".decision-here#decision-1").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert serious(page) == []
    still = browse(tmp_path.as_uri(), "/page.html", viewport=size, java_script_enabled=False)
    assert [one.is_visible() for one in still.locator(".decision-step svg").all()] == [True] * len(STEPS)
