"""Every name in backticks, in docstrings, comments and pages, is one of the code, its data or a file."""

import builtins
import io
import json
import re
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("benchmarks", "book", "data", "envprobe_core", "notebooks", "tests")
LEFT_OUT = {"_build", "executed", "__pycache__"}
TREE = [*ROOT.glob("*.*"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
TREE = [
    path for path in TREE if not LEFT_OUT & set(path.parts) and path.name != "CHANGELOG.md"
]  # what is gone
DATA = (".bib", ".css", ".csv", ".json", ".toml", ".yml")
NAMED = re.compile(r"(?<![`\w])`([A-Za-z_][\w.]*(?:/[\w.]+)*)(?:\(\))?`(?!`)")
WORD = re.compile(r"[A-Za-z_]\w*")
ELSEWHERE = {  # names of other people's code
    "ANTHROPIC_API_KEY", "_belief_mismatch", "build_user_prompt", "cells_registry.csv",
    "cluster.scheduler_address", "distributed.comm.tls", "getrusage", "savefig", "score_task",
    "song2026ask", "src/agents/prompts.py", "src/methods/oracle_probe.py", "src/scripts/run_main.py", "tsc",
    "width_ratios",
}  # fmt: skip
MADE = re.compile(r"\ba/b\b|(?<![a-z_])[A-Z]{2,}\b[./]|[./][A-Z]{2,}\b|_build/")  # to be filled in, or made


def prose_and_code(path: Path) -> tuple[str, str]:
    """The docstrings, comments and pages of a file, and the rest of it."""
    if path.suffix not in (".ipynb", ".js", ".md", ".py", *DATA):
        return "", ""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        tokens = [(one.string, one.type) for one in tokenize.generate_tokens(io.StringIO(text).readline)]
        prose = {own for own, kind in tokens if kind == tokenize.COMMENT or own.lstrip("r")[:3] == '"""'}
        return "\n".join(prose), "\n".join(own for own, _ in tokens if own not in prose)
    if path.suffix == ".js":
        return "\n".join(re.findall(r"(?<!:)//.*", text)), re.sub(r"(?<!:)//.*", "", text)
    if path.suffix == ".ipynb":
        cells = [(own["cell_type"] == "code", "".join(own["source"])) for own in json.loads(text)["cells"]]
        prose, code = ("\n".join(own for is_code, own in cells if is_code == side) for side in (False, True))
        return prose, code
    return (text, "") if path.suffix == ".md" else ("", text)


def test_every_name_in_backticks_is_there():
    read = {path.relative_to(ROOT): prose_and_code(path) for path in TREE if path.is_file()}
    words_of = defaultdict(set)  # of each module, by its name
    for path, (_, code) in read.items():
        words_of[path.parent.name if path.stem == "__init__" else path.stem].update(WORD.findall(code))
    words = set().union(dir(builtins), sys.stdlib_module_names, words_of, *words_of.values())
    code = "\n".join(code for _, code in read.values())
    paths = [f"/{path.relative_to(ROOT)}" for path in TREE]

    def is_there(name: str) -> bool:
        if "/" in name:
            return name in code or any(path.endswith(f"/{name}") for path in paths)
        *_, home, last = ["", *name.split(".")]
        if home and (name in code or any(path.endswith(f"/{name}") for path in paths)):
            return True
        known = all(part in words for part in name.split("."))
        return known and (home not in words_of or last in words_of[home] or last in words_of)

    lost = sorted(
        f"{path}: {name}"
        for path, (prose, _) in read.items()
        for name in set(NAMED.findall(prose)) - ELSEWHERE
        if not MADE.search(name) and not is_there(name)
    )
    assert not lost, "\n".join(lost)
