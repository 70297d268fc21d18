"""A finger on a phone: what is dragged follows, and the page stays where it is."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.nightly]
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SETTING = "(({budget, threshold}) => [budget, threshold])(EnvProbe.bar.setting())"


@pytest.fixture
def phone(browse, html):
    """Open a page as a phone does."""
    return lambda name: browse(html.as_uri(), f"/{name}", **PHONE)


def drag(page, thing, start, end):
    """Drag a finger over a thing, between two places that are shares of its width and height."""
    thing.scroll_into_view_if_needed()
    box, stood = thing.bounding_box(), page.evaluate("scrollY")
    begun, *places = (
        {
            "x": box["x"] + box["width"] * (start[0] + (end[0] - start[0]) * at / 12),
            "y": box["y"] + box["height"] * (start[1] + (end[1] - start[1]) * at / 12),
        }
        for at in range(13)
    )
    finger = page.context.new_cdp_session(page)
    finger.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [begun]})
    for place in places:
        finger.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [place]})
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    finger.detach()
    assert page.evaluate("scrollY") == stood


def test_the_front_page_follows_a_finger(phone):
    page = phone("index.html")
    page.locator(".live-plane .lp-here").wait_for()
    page.evaluate("scrollTo(0, 60)")
    frame = page.locator(".live-plane-frame")
    drag(page, page.locator(".live-handle").first, (0.5, 0.5), (1.5, 0.5))
    budget, _ = page.evaluate(SETTING)
    assert budget > 7
    drag(page, frame.get_by_role("slider", name="Budget"), (0.5, 0.5), (0.95, 0.5))
    drag(page, frame.get_by_role("slider", name="Threshold"), (0.5, 0.5), (0.5, 0.1))
    budget, threshold = page.evaluate(SETTING)
    assert budget >= 14
    assert threshold >= 3.5
    drag(page, frame.locator("svg").last, (0.7, 0.5), (0.3, 0.3))
    to_the_left, lower = page.evaluate(SETTING)
    assert to_the_left < budget - 5
    assert lower < threshold


def test_the_bar_and_a_lead_follow_a_finger(phone):
    page = phone("executed/main-results.html")
    page.locator("#gains .lp-value").first.wait_for()
    bar = page.locator(".live-bar")
    drag(page, bar.locator("[data-knob=budget]"), (0.3, 0.5), (0.8, 0.5))
    drag(page, bar.locator("[data-knob=threshold]"), (0.3, 0.5), (0.8, 0.5))
    budget, threshold = page.evaluate(SETTING)
    assert budget > 15
    assert threshold > 2.5
    drag(page, page.locator(".live-handle").first, (0.5, 0.5), (-0.5, 0.5))
    assert page.evaluate(SETTING)[0] < budget


def test_the_weights_of_ones_own_policy_follow_a_finger(phone):
    page = phone("executed/your-policy.html")
    page.locator(".own-stage[data-state=final]").wait_for(timeout=60_000)
    said = {page.locator(".own-headline").inner_text()}
    for slider in page.locator(".own-policy input[type=range]").all():
        before = float(slider.input_value())
        drag(page, slider, (0.3, 0.5), (0.85, 0.5))
        assert float(slider.input_value()) > before
        page.locator(".own-stage[data-state=final]").wait_for(timeout=60_000)
        said.add(page.locator(".own-headline").inner_text())
        assert page.locator(".own-headline").is_visible()
    assert len(said) > 2
