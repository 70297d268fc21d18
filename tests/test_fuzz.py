"""Every option and every file format, given what nobody meant: one line, exit code 2, nothing written.

`make fuzz` tries thirty times as many cases: more than 10,000 damaged tables, logs and manifests.
"""

import contextlib
import copy
import gzip
import json
import os
import re
import shutil
from pathlib import Path

import hypothesis.strategies as st
import pytest
import typer.main
from hypothesis import assume, example, given, settings

from daily import nightly
from envprobe_book.cli import app
from envprobe_book.cli.model import ModelOptions
from envprobe_book.cli.options import read_scheduler_file
from envprobe_book.reproduce import sections as notebooks
from envprobe_core.conditions import find_policies, find_profile, find_protocols, find_regime, find_worlds
from envprobe_core.errors import WHOLE, InputError, in_one_line
from envprobe_core.files import LARGEST
from envprobe_core.parallel import ADDRESS
from envprobe_core.runs.manifest import EPISODES, MANIFEST
from envprobe_core.runs.recompute import check_run
from processes import call

TIMES = int(os.environ.get("ENVPROBE_FUZZ", "1"))
COUNT = "n: int = 3  # how many; accepts 1..10\nseeds: str = '0:2'  # episodes; accepts seeds"
RUN = ["run", "--world=tooldag", "--policy=simple", "--seeds=0:2", "--out=made"]
MODEL = [*RUN, "--agent=openai", "--model=gpt-4o-mini"]
START = {"run": RUN, "reproduce": ["reproduce", "demo"]}  # before an odd value
OF_MODELS = {name.replace("_", "-") for name in vars(ModelOptions())}
OFFERED = [  # every command with an argument that it does not take, and with each option that takes a value
    (name, option)
    for name, command in typer.main.get_command(app).commands.items()
    for option in ["", *(one.opts[0][2:] for one in command.params if getattr(one, "is_flag", None) is False)]
    if name != "lab" and (name, option) != ("run", "out")  # which take any
]
ODD = st.one_of(
    st.text(max_size=40),
    st.text("0123456789:,.-+eE_xX ", max_size=30),
    st.sampled_from(["9" * 5000, "-1", "1e309", "nan", "inf", "0x10", "٣", "1_0", "x" * 5000, "\udcff"]),
    st.sampled_from(["paper:clock=stands,clock=runs", "a\0b", "all all", "[red]x[/]", "%s{0}$HOME"]),
)


FINDERS = (find_policies, find_worlds, find_protocols, find_profile, find_regime)


def is_name(text):
    """Whether a text names something: hypothesis draws words that our own modules hold, too."""
    for find in FINDERS if text.strip() else ():
        with contextlib.suppress(InputError):
            find(text)
            return True
    return False


def is_meant(option, text):
    """Whether a value could be accepted."""
    if option == "logs":
        return bool(re.fullmatch(r"full|none|sample:[1-9]\d{0,17}", text))
    if option == "scheduler":
        return bool(ADDRESS.fullmatch(text))
    return option not in ("from", "out", "param") and bool(
        is_name(text) or re.fullmatch(r"\s*[+-]?[\d.:,\s]+([eE][+-]?\d+)?\s*", text)
    )


@pytest.fixture
def small(own_checkout, write_notebook, monkeypatch):
    """A checkout of one section, with a file in the way; the working folder is elsewhere, and empty."""
    write_notebook("demo", COUNT, "print(n)")
    (work := own_checkout / "work").mkdir()
    monkeypatch.chdir(work)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return own_checkout


def refused(capsys, small, *arguments):
    """Give a command that must be refused; what it says."""
    capsys.readouterr()
    code, (out, err) = call(*arguments), capsys.readouterr()
    assert (code, out, err.count("\n"), err[:10]) == (2, "", 1, "envprobe: "), arguments
    assert len(err) < 3000
    assert not list((small / "work").iterdir())
    return err


@settings(max_examples=600 * TIMES)
@given(data=st.data())
def test_no_option_gives_a_traceback(small, capsys, data):
    command, option = data.draw(st.sampled_from(OFFERED))
    text, start = data.draw(ODD), START.get(command, [command])
    assume(not is_meant(option, text) and (option or text.strip()))
    if command == "run" and option in OF_MODELS:
        start = MODEL
    elif option == "from":
        start = ["run", "--out=made"]
    elif option == "out":
        text = str(small / "data" / "numbers.csv") + data.draw(st.sampled_from(["", "/x", "/../numbers.csv"]))
    elif option == "param":
        text = f"{data.draw(st.sampled_from(['n', 'seeds', 'm', '']))}={text}"
        assume(not re.fullmatch(r"n=\s*[+-]?[\d_]+\s*|seeds=[\d:,\s]+", text))
    refused(capsys, small, *start, f"--{option}={text}" if option else f"x{text}")


ADDRESSES = (
    "http://[::1", "http://[zz]/", "http://h:abc/", "http://h:99999/", "http://h:٣/", "http://a b/",
    "http://h%zz/", "http://", "ftp://h", "http://h/\\x", "http://h\n/", "http://user:hidden@h/",
)  # fmt: skip


@pytest.mark.parametrize(
    ("option", "text"),
    [("--base-url", url) for url in ADDRESSES]
    + [(name, text) for name in ("--max-cost", "--timeout") for text in ("1e309", "nan", "-inf", "-1", "x")],
)
def test_no_address_or_number_of_a_model_gives_a_traceback(small, capsys, option, text):
    err = refused(capsys, small, *MODEL, f"{option}={text}")
    assert (option in err, "hidden" in err) == (True, False)


@given(st.lists(st.sampled_from(["'", '"', "x" * 300, " a" * 400, "\n", "\0", "\udcff", "ä"]), max_size=30))
def test_a_message_is_one_line_that_can_be_read_at_once(parts):
    line = in_one_line("".join(parts))
    assert len(line) <= WHOLE + 4
    assert "\n" not in line
    assert "x" * 201 not in line


# --- files ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    given = ["run", "--world=graphnav", "--policy=simple", "--budget=5", "--threshold=1.4", "--seeds=0:3"]
    assert call(*given, f"--out={folder}") == 0
    assert not check_run(folder)[0]
    return folder


@st.composite
def damaged(draw, content):
    """Bytes with a bit turned, cut short, or with something put in between."""
    at = draw(st.integers(0, len(content) - 1))
    kind = draw(st.sampled_from(["bit", "bit", "bit", "cut", "put", "twice"]))
    if kind == "bit":
        turned = content[at] ^ (1 << draw(st.integers(0, 7)))
        return content[:at] + bytes([turned]) + content[at + 1 :]
    more = {"cut": b"", "put": draw(st.binary(min_size=1, max_size=8)) + content[at:], "twice": content}
    return content[:at] + more[kind]


@st.composite
def other_json(draw, content):
    """A document in which one value is another."""
    document = copy.deepcopy(content)
    node = document
    while True:
        key = draw(st.sampled_from(list(node) if isinstance(node, dict) else list(range(len(node)))))
        if isinstance(node[key], dict | list) and node[key] and draw(st.booleans()):
            node = node[key]
            continue
        odd = [None, True, 0, -1, 1.5, 10**30, "", "x", [], {}, [[]], {"x": 1}, "9" * 5000]
        node[key] = draw(st.sampled_from(odd))
        return json.dumps(document).encode()


def compared(content):
    """A manifest without what is stated and not compared."""
    try:
        made = json.loads(content)
    except ValueError:
        return None
    made = made if isinstance(made, dict) else {"": made}
    return {key: made[key] for key in made if key not in ("versions", "engine")}


@settings(max_examples=100 * TIMES)
@given(data=st.data())
@pytest.mark.parametrize("name", nightly([EPISODES, "logs/*", MANIFEST, "values"], MANIFEST, "values"))
def test_no_damage_of_a_run_goes_unnoticed(run_folder, tmp_path, name, data):
    (source,) = run_folder.glob(MANIFEST if name == "values" else name)
    before = source.read_bytes()
    content = data.draw(other_json(json.loads(before)) if name == "values" else damaged(before))
    folder = tmp_path / "run"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(run_folder, folder)
    (folder / source.relative_to(run_folder)).write_bytes(content)
    try:
        said = list(map(in_one_line, check_run(folder)[0]))
    except InputError as error:
        said = [in_one_line(str(error))]
    same = content == before if name in (EPISODES, "logs/*") else compared(content) == compared(before)
    assert said or same


@settings(max_examples=50 * TIMES)
@given(data=st.data())
def test_a_manifest_of_odd_types_is_refused_or_run_again(small, run_folder, capsys, data):
    folder = small / "odd"
    folder.mkdir(exist_ok=True)
    (folder / MANIFEST).write_bytes(data.draw(other_json(json.loads((run_folder / MANIFEST).read_bytes()))))
    code, err = call("run", "--out=made", f"--from={folder}"), capsys.readouterr().err
    assert code in (0, 1, 2)
    if code == 2:
        assert err.count("\n") == 1 + err.count("was made differently")
        assert not list((small / "work").iterdir())
    shutil.rmtree("made", ignore_errors=True)


@settings(max_examples=300 * TIMES)
@given(data=st.data())
def test_a_damaged_notebook_is_told_of(checkout, write_notebook, data):
    path = write_notebook("demo", COUNT, "print(n)")
    whole = path.read_bytes()
    path.write_bytes(data.draw(st.one_of(damaged(whole), other_json(json.loads(whole)))))
    (job,) = notebooks.plan(root=checkout)
    fault = in_one_line(job.section.fault)
    assert not fault or fault.startswith("notebook demo: ")


@settings(max_examples=50 * TIMES)
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=100).map(str.encode)))
@example(content=b"[" * 100_000)
def test_a_damaged_scheduler_file_is_refused(tmp_path, content):
    path = tmp_path / "scheduler.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match="states no address"):
        read_scheduler_file(path)


READERS = {
    "replay": [*RUN, "--replay"],
    "prices": [*MODEL, "--prices"],
    "estimate": ["estimate", *RUN[1:4], "--model=m", "--prices"],
    "scheduler file": [*RUN, "--scheduler-file"],
    "weights": [*RUN, "--agent=local", "--model"],
    "store": ["store", "verify"],
    "manifest": ["run", "--out=made", "--from"],
    "recompute": ["recompute"],
}


def replay_of(answers=0, **inputs):
    header = {"format": "envprobe-replay/1", "inputs": inputs, "result_hash": ""}
    return gzip.compress(f'{json.dumps(header)}\n{{"answers":{answers}}}\n'.encode())


HEAD = {"worlds": ["tooldag"], "policies": ["simple"]}
ASKED = {"kind": "openai", "provider": "p", "prompt_version": "1"}
FILES = {
    "text": b"hello",
    "bomb": gzip.compress(bytes(LARGEST + 1), 1),
    "deep": gzip.compress(b"[" * 100_000 + b"\n{}\n"),
}
REPLAYS = {
    "empty": b"",
    "packed nothing": gzip.compress(b""),
    "worlds are a number": replay_of(worlds=1),
    "a world is a list": replay_of(worlds=[["tooldag"]], policies=["simple"]),
    "an unknown input": replay_of(**HEAD, colour="red"),
    "no model": replay_of(**HEAD),
    "another agent": replay_of(**HEAD, agent={"kind": "human"}),
    "no provider": replay_of(**HEAD, agent={"kind": "openai", "model": "m"}),
    "odd settings": replay_of(**HEAD, agent=ASKED | {"model": 1}),
    "cut short": replay_of(**HEAD, agent=ASKED | {"model": "m"})[:-9],
    "a line is missing": replay_of(1, **HEAD, agent=ASKED | {"model": "m"}),
    "unknown settings": replay_of(**HEAD, agent=ASKED | {"model": "m", "mood": "good"}),
}


@pytest.mark.parametrize(
    ("reader", "kind"),
    [(reader, kind) for reader in READERS for kind in ("folder", "pipe", "device", *FILES)]
    + [("replay", kind) for kind in REPLAYS],
)
def test_no_file_gives_a_traceback(small, capsys, monkeypatch, reader, kind):
    """Nor does one without an end keep a command waiting."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    path = Path("/dev/zero") if kind == "device" else small / "odd"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind != "device":
        path.write_bytes((FILES | REPLAYS)[kind])
    err = refused(capsys, small, *READERS[reader], path)
    if (reader, kind) == ("replay", "bomb"):
        assert f"{path} cannot be read (it holds more than {LARGEST:,} bytes)" in err
