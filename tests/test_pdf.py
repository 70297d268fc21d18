"""The book on paper: pages that are counted, plans that add up, and nobody's file replaced."""

import os
import re
import shutil
import signal
import subprocess
import time
from tempfile import TemporaryDirectory

import pytest
from processes import COMMAND, MARK, call, envprobe, processes_of

from envprobe_core.lab.desk import exercises_notebook
from envprobe_core.reproduce.build import html_folder
from envprobe_core.reproduce.printing import CHROMIUM, DOCUMENTS, MADE_BY_US, SHORT, refuse_foreign
from envprobe_core.sources import ROOT

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


@pytest.fixture
def few_pages(small_book, tmp_path):
    """The small book with three of its pages in its contents: printing all of them takes minutes."""
    folder = tmp_path / "few pages"
    (folder / "book" / "_build").mkdir(parents=True)
    html_folder(folder).symlink_to(html_folder(small_book))
    (folder / "book" / "print").symlink_to(small_book / "book" / "print")
    chapters = "".join(f"\n      - file: {name}" for name in CHAPTERS)
    toc = f"root: index\nparts:\n  - caption: A part\n    chapters:{chapters}\n"
    (folder / "_toc.yml").write_text(toc, encoding="utf-8")
    return folder


@printed
def test_documents_have_their_pages(few_pages, tmp_path):
    out = tmp_path / "pdf"
    with TemporaryDirectory() as work:  # a short name: there are sockets in it
        result = envprobe("pdf", *SHORT, "book", "--book", few_pages, "--out", out, TMPDIR=work)
        assert not os.listdir(work)
    assert result.returncode == 0, result.stderr
    assert {path.stem for path in out.iterdir()} == {*SHORT, "book"}
    sizes = {name: page_sizes(out / f"{name}.pdf") for name in (*SHORT, "book")}
    assert {name: len(sizes[name]) for name in SHORT} == {"summary": 2, "slides": 12, "handout": 2}
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
    for name in DOCUMENTS:
        mine = tmp_path / f"{name}.pdf"
        mine.write_bytes(b"%PDF-1.4 mine" + MADE_BY_US[:-2])
        assert "did not make it" in told(name, "--out", tmp_path)
        assert mine.read_bytes().startswith(b"%PDF-1.4 mine")
        mine.write_bytes(mine.read_bytes() + MADE_BY_US)
        refuse_foreign(mine)  # an earlier print of ours
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "chromium" in told("summary")


def test_a_browser_does_not_outlive_a_killed_command(small_book, tmp_path):
    out, note = tmp_path / "pdf", tmp_path / "pid"
    slow = tmp_path / "bin" / "chromium"
    slow.parent.mkdir()
    wait = f"exec {shutil.which('sleep')} 600"
    slow.write_text(f"#!/bin/sh\necho $$ > '{note}.part'; mv '{note}.part' '{note}'; {wait}\n")
    slow.chmod(0o755)
    mark = f"pdf-{tmp_path.name}"
    process = subprocess.Popen(
        [*COMMAND, "pdf", "summary", "--book", small_book, "--out", out],
        env={**os.environ, "PATH": f"{slow.parent}:{os.environ['PATH']}", MARK: mark},
        stdin=subprocess.DEVNULL,
    )
    while not note.exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline and processes_of(mark):
        time.sleep(0.05)
    assert not processes_of(mark)
    assert not [*out.glob("*.pdf")]


@pytest.mark.parametrize("minutes", [50, 90])
def test_a_plan_adds_up(minutes):
    """Slots follow one another to the end, and none is shorter than its exercises take alone."""
    told = "\n".join("".join(cell["source"]) for cell in exercises_notebook()["cells"])
    takes = {
        label: int(length)
        for label, length in re.findall(r":label: (ex-\w+)\n.*?about (\d+) minutes", told, re.DOTALL)
    }
    text = (ROOT / "book/instructors.md").read_text(encoding="utf-8")
    plan = text.split(f"## A plan for {minutes} minutes")[1].split("\n## ")[0]
    slots = re.findall(r"^\| (\d+)–(\d+) \|(.*)\|$", plan, re.MULTILINE)
    starts, ends = ([int(slot[place]) for slot in slots] for place in (0, 1))
    assert starts == [0, *ends[:-1]]
    assert ends[-1] == minutes
    exercises = [re.findall(r"\{ref\}`(ex-\w+)`", row.split("|")[-1]) for *_, row in slots]
    assert sum(map(len, exercises)) >= 3
    for start, end, labels in zip(starts, ends, exercises, strict=True):
        assert sum(takes[label] for label in labels) <= end - start


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
