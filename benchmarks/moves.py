"""What a move of budget or threshold takes in the built pages, until the figure changes and until it rests.

Each page with a live figure is opened from its folder in headless Chromium, each of its live figures is moved
several times, and the best time counts. `python benchmarks/moves.py` prints a line a figure.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from envprobe_book.reproduce.build import html_folder

MOVES = [("budget", 4), ("threshold", 2.4), ("budget", 6), ("threshold", 2.3)]
MOVE = """async ([name, knob, value]) => {
  const root = document.getElementById(name), numbers = root.querySelector(".lp-numbers");
  const begin = performance.now();
  const changed = new Promise((done) => {
    const watching = new MutationObserver(() => {
      watching.disconnect();
      done(performance.now() - begin);
    });
    watching.observe(numbers, {childList: true, subtree: true, characterData: true});
    setTimeout(() => done(null), 5000); // a threshold may change nothing
  });
  EnvProbe.bar.move({[knob]: value});
  const first = await changed;
  while (root.dataset.settled !== "yes") await new Promise((go) => setTimeout(go, 5));
  return {first, rest: performance.now() - begin};
}"""
READING = 1500  # milliseconds before the first move, in which a page makes ready
OPEN = "document.querySelectorAll('details').forEach((fold) => { fold.open = true; })"  # some lie in folds
NAMES = "[...document.querySelectorAll('.live-figure:has(.lp)')].map(({id}) => id)"


def pages() -> list[Path]:
    """The built pages that hold a live figure."""
    found = sorted((html_folder() / "executed").glob("*.html"))
    return [path for path in found if '<div class="live-figure"' in path.read_text(encoding="utf-8")]


def figures(page: Page, path: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The figures of a page, each with what its moves took in milliseconds: `first` and `rest`."""
    page.goto(path.as_uri())
    page.locator(".live-figure").first.wait_for(state="attached")  # some pages have figures of numbers alone
    page.evaluate(OPEN)
    page.wait_for_timeout(READING)
    for name in page.evaluate(NAMES):
        page.locator(f"#{name}").scroll_into_view_if_needed()
        page.wait_for_timeout(READING)
        yield name, [page.evaluate(MOVE, [name, knob, value]) for knob, value in MOVES]
        page.evaluate("EnvProbe.bar.rest()")


def moves() -> dict[str, list[dict[str, Any]]]:
    """What the moves of every live figure of the book took, by page and figure."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1400, "height": 900})
        found = {f"{path.stem}: {name}": took for path in pages() for name, took in figures(page, path)}
        chromium.close()
    return found


if __name__ == "__main__":
    for figure, took in moves().items():
        print(json.dumps({"figure": figure, "moves": took}))
