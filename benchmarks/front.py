"""What a move takes on the front page and in *Your own policy*: until something changes, until it is final.

The built pages are opened from their folder in headless Chromium, at places where nobody was before, so that
nothing is remembered. `python benchmarks/front.py` prints a line a move, in milliseconds.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import Page, sync_playwright

from envprobe_book.reproduce.build import html_folder

READING = 3000  # milliseconds before the first move, in which a page makes ready
SETTLE = 1500  # and between two
FRONT = [("budget", 9), ("threshold", 2.25), ("budget", 12), ("threshold", 1.85), ("budget", 4)]
WEIGHTS = [("c", 2), ("s", 0.5), ("u", -0.5), ("d", 1.5), ("gate", 2.4)]
MOVE_FRONT = """async ([knob, value]) => {
  const root = document.querySelector(".live-plane"), begin = performance.now(), took = {};
  const isFinal = (name) => EnvProbe.live.figures[name].setting[knob] === value
    && document.getElementById(name).dataset.settled === "yes";
  const changed = new Promise((done) => {
    new MutationObserver((_, own) => (own.disconnect(), done(performance.now() - begin)))
      .observe(root, {childList: true, subtree: true, characterData: true, attributes: true});
  });
  EnvProbe.bar.move({[knob]: value});
  took.first = await changed;
  for (const [part, name] of [["headline", "headline"], ["beside", "front-numbers"]]) {
    while (!isFinal(name)) await new Promise((go) => setTimeout(go, 4));
    took[part] = performance.now() - begin;
  }
  return took;
}"""
MOVE_POLICY = """async ([name, value]) => {
  const stage = document.querySelector(".own-stage"), input = document.querySelector(`[id$="-${name}"]`);
  const begin = performance.now();
  const changed = new Promise((done) => {
    new MutationObserver((_, own) => (own.disconnect(), done(performance.now() - begin)))
      .observe(stage.querySelector(".own-headline"), {childList: true, subtree: true});
  });
  stage.dataset.state = "";
  input.value = value;
  input.dispatchEvent(new Event("input", {bubbles: true}));
  const first = await changed;
  while (stage.dataset.state !== "final") await new Promise((go) => setTimeout(go, 4));
  return {first, final: performance.now() - begin};
}"""


def front_page(page: Page) -> Iterator[tuple[str, dict[str, float]]]:
    """Moves of budget and threshold on the front page."""
    page.goto((html_folder() / "index.html").as_uri())
    page.locator(".live-plane .lp-here").wait_for()
    page.wait_for_timeout(READING)
    for move in FRONT:
        yield f"front page, {move[0]} {move[1]}", page.evaluate(MOVE_FRONT, list(move))
        page.wait_for_timeout(SETTLE)


def own_policy(page: Page) -> Iterator[tuple[str, dict[str, float]]]:
    """Moves of weights and gate in *Your own policy*."""
    page.goto((html_folder() / "executed" / "your-policy.html").as_uri())
    page.locator(".own-stage[data-state=final]").wait_for()
    page.wait_for_timeout(READING)
    for move in WEIGHTS:
        yield f"your own policy, {move[0]} {move[1]}", page.evaluate(MOVE_POLICY, list(move))
        page.wait_for_timeout(SETTLE)


def moves() -> dict[str, Any]:
    """What each move took, in milliseconds, by its name."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1400, "height": 900})
        found = {**dict(front_page(page)), **dict(own_policy(page))}
        chromium.close()
    return found


if __name__ == "__main__":
    for name, took in moves().items():
        print(json.dumps({"move": name} | {part: round(own) for part, own in took.items()}))
