"""The book on paper: pages that are counted, plans that add up, and nobody's file replaced."""

import os
import re
import shutil
import signal
from tempfile import TemporaryDirectory

import pytest

from envprobe_book.reproduce.build import html_folder
from envprobe_book.reproduce.printing import CHROMIUM, DOCUMENTS, MADE_BY_US, refuse_foreign
from envprobe_book.reproduce.sections import find_sections
from envprobe_core.sources import ROOT
from processes import call, envprobe, going, processes_of, wait_for

CHAPTERS = ("definitions", "executed/over-time")
printed = pytest.mark.skipif(
    not any(map(shutil.which, CHROMIUM)) and "ENVPROBE_REQUIRE_BROWSER" not in os.environ,
    reason="no Chromium",
)


def page_sizes(path):
    """Width and height of each page of a PDF, in points."""
    content = path.read_bytes()
    assert content.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type /Page\b", content)) == content.count(b"/MediaBox")
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", content)
    return [(round(float(width)), round(float(height))) for width, height in boxes]


@printed
def test_documents_have_their_pages(small_book, tmp_path):
    few, out = tmp_path / "few pages", tmp_path / "pdf"  # in the contents: printing all takes minutes
    (few / "book" / "_build").mkdir(parents=True)
    html_folder(few).symlink_to(html_folder(small_book))
    (few / "book" / "print").symlink_to(small_book / "book" / "print")
    chapters = "".join(f"\n      - file: {name}" for name in CHAPTERS)
    toc = f"root: index\nparts:\n  - caption: A part\n    chapters:{chapters}\n"
    (few / "_toc.yml").write_text(toc, encoding="utf-8")
    with TemporaryDirectory() as work:  # a short name: there are sockets in it
        result = envprobe("pdf", "--book", few, "--out", out, TMPDIR=work)
        assert not os.listdir(work)
    assert result.returncode == 0, result.stderr
    sizes = {path.stem: page_sizes(path) for path in out.iterdir()}
    assert {*sizes} == {*DOCUMENTS}
    assert [len(sizes[name]) for name in ("summary", "slides", "handout")] == [2, 12, 2]
    assert {*sizes["summary"], *sizes["handout"], *sizes["book"]} == {(595, 842)}
    assert {round(width / height, 2) for width, height in sizes["slides"]} == {round(16 / 9, 2)}
    content = (out / "book.pdf").read_bytes()
    for page in ("index", *CHAPTERS):
        assert f"{page.replace('/', '-')}--".encode() in content
    assert b"/Outlines" in content
    assert b"/Subtype /Type3" in content, "formulas are set in MathJax's fonts"


def test_a_fault_is_one_line(tmp_path, monkeypatch, capsys):
    html = html_folder(tmp_path)

    def told(*given):
        assert call("pdf", *given, "--book", tmp_path) == 2
        fault = capsys.readouterr().err
        assert fault.count("\n") == 1
        return fault

    html.mkdir(parents=True)
    assert "no built book" in told()
    (html / "index.html").write_text("<h1>A book</h1>")
    assert "accepted: summary" in told("sumary")
    mine = tmp_path / "slides.pdf"
    mine.write_bytes(b"%PDF-1.4 mine" + MADE_BY_US[:-2])
    assert "did not make it" in told("--out", tmp_path)
    assert mine.read_bytes() == b"%PDF-1.4 mine" + MADE_BY_US[:-2]
    mine.write_bytes(b"%PDF-1.4" + MADE_BY_US)
    refuse_foreign(mine)  # an earlier print of ours
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "chromium" in told("summary")


def test_a_browser_does_not_outlive_a_killed_command(small_book, tmp_path, monkeypatch):
    out, note, slow = tmp_path / "pdf", tmp_path / "pid", tmp_path / "bin" / "chromium"
    slow.parent.mkdir()
    slow.write_text(f"#!/bin/sh\ntouch '{note}'; exec {shutil.which('sleep')} 600\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    with going("pdf", "summary", "--book", small_book, "--out", out) as process:
        wait_for(note.exists, process)
        process.send_signal(signal.SIGKILL)
    wait_for(lambda: not processes_of(str(out)))
    assert not [*out.glob("*.pdf")]


@pytest.mark.parametrize("minutes", [50, 90])
def test_a_plan_adds_up(minutes):
    """Slots follow one another to the end, and none is shorter than its exercises take alone."""
    told = "\n".join("".join(cell["source"]) for cell in find_sections()["exercises"].cells)
    takes = dict(re.findall(r":label: (ex-\w+)\n.*?about (\d+) minutes", told, re.DOTALL))
    text = (ROOT / "book/instructors.md").read_text(encoding="utf-8")
    plan = text.split(f"## A plan for {minutes} minutes")[1].split("\n## ")[0]
    slots = re.findall(r"^\| (\d+)–(\d+) \|(.*)\|$", plan, re.MULTILINE)
    starts, ends = ([int(slot[place]) for slot in slots] for place in (0, 1))
    assert [*starts, minutes] == [0, *ends]
    exercises = [re.findall(r"\{ref\}`(ex-\w+)`", row.split("|")[-1]) for *_, row in slots]
    assert sum(map(len, exercises)) >= 3
    for start, end, labels in zip(starts, ends, exercises, strict=True):
        assert sum(int(takes[label]) for label in labels) <= end - start


@printed
def test_a_shared_link_has_a_picture(html):
    page = (html / "executed/voi.html").read_text(encoding="utf-8")
    tags = dict(re.findall(r'<meta property="(og:[\w:]+)" content="([^"]*)">', page))
    assert tags["og:image"] == "../_static/preview.png"
    assert "EnvProbe-Simple" in tags["og:image:alt"]
    assert "<" not in tags["og:title"]
    picture = (html / "_static/preview.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert [int.from_bytes(picture[place : place + 4]) for place in (16, 20)] == [1200, 630]
