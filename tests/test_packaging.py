"""What is installed: every import is declared, in the extra that needs it, and pinned with its hashes."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distributions, packages_distributions, requires

import pytest
import yaml
from packaging.requirements import Requirement

import envprobe_core
from envprobe_book import extras
from envprobe_core.sources import DATA, ROOT
from processes import contents, envprobe

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BOOK = ["cli", "notebooks", "book"]
EXTRAS = {
    "envprobe_core": [],
    "envprobe_core/parallel.py": ["dask"],
    "envprobe_core/llm": ["llm", "local"],
    "envprobe_core/llm/inspect_calls.py": ["inspect"],
    "envprobe_core/llm/inspect_task.py": ["inspect"],
    "envprobe_core/gym_env.py": ["gym"],
    "book/envprobe_book": BOOK,
    "book/envprobe_book/cli": ["cli"],
    "book/_ext": BOOK,
    "tests": [*BOOK, "llm", "local", "dask", "test"],
}
"""What the files of a folder may import beside what is always there; the longest name counts."""
PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(extras):
    lines = [line for extra in extras for line in PROJECT["optional-dependencies"][extra]]
    return {normal(re.match(r"[\w.-]+", line)[0]) for line in PROJECT["dependencies"] + lines}


def imported(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("folder", ["envprobe_core", "book/envprobe_book", "book/_ext", "tests"])
def test_every_import_is_declared(folder):
    known = packages_distributions()
    own = {path.stem for place in (folder, "book/_ext") for path in (ROOT / place).rglob("*")}
    for path in sorted(set((ROOT / folder).rglob("*.py")) - set((ROOT / "tests/golden").iterdir())):
        name = path.relative_to(ROOT).as_posix()
        place = max((place for place in EXTRAS if name.startswith(place)), key=len)
        allowed = declared(EXTRAS[place]) | {"envprobe-core"}
        for module in set(imported(path.read_text())) - own - set(sys.stdlib_module_names):
            names = {normal(one) for one in known.get(module, [module])}
            assert names & allowed, f"{name} imports {module}"


def test_the_lock_pins_what_is_declared_with_hashes_and_binder_installs_part_of_it():
    texts = [(ROOT / name).read_text() for name in ("requirements.txt", "binder/requirements.txt")]
    for text in texts:
        pins = re.split(r"\n(?=\S)", text.split("make lock\n", 1)[1])
        assert all("--hash=sha256:" in pin for pin in pins)
        assert all(PIN.match(pin) for pin in pins)  # no extra in brackets: the pip of Python 3.11 stumbles
    whole, ours = ({(normal(name), version) for name, version in PIN.findall(text)} for text in texts)
    assert declared(PROJECT["optional-dependencies"]) - {"envprobe-core"} <= {name for name, _ in whole}
    assert ours < whole
    names = {name for name, _ in ours}
    assert declared(["cli", "notebooks"]) - {"envprobe-core"} <= names
    assert not {"sphinx", "pytest", "playwright"} & names


@pytest.mark.parametrize("lock", ["requirements.txt", "binder/requirements.txt"])
def test_what_a_pinned_package_needs_is_pinned_too(lock):
    """Else pip, which is shown hashes, installs nothing at all."""
    pinned, needed = {normal(name) for name, _ in PIN.findall((ROOT / lock).read_text())}, set()
    for name in pinned & {normal(one.name) for one in distributions()}:
        needs = [Requirement(text) for text in requires(name) or ()]
        needed |= {normal(one.name) for one in needs if not one.marker or one.marker.evaluate({"extra": ""})}
    assert needed - pinned == set()
    assert len(needed) > len(pinned) / 2


@pytest.mark.nightly
def test_what_is_installed_holds_its_data_and_says_what_needs_a_checkout(tmp_path):
    """A wheel, unpacked where there is no checkout: it lists names and prices, and has no sections."""
    ours = shutil.ignore_patterns("__pycache__", "executed", "_build", ".venv", ".git", "runs")
    source, site, work = (tmp_path / name for name in ("source", "site", "work"))
    shutil.copytree(ROOT, source, ignore=ours, symlinks=True)
    used = source / "data/public/__pycache__/idle.cpython-311.pyc"  # an import leaves it
    used.parent.mkdir()
    used.write_bytes(b"compiled")
    work.mkdir()
    build = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, work], cwd=source, check=True, timeout=600)
    (wheel,) = work.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    there = {name: text for name, text in contents(DATA).items() if "__pycache__" not in name}
    assert contents(site / "envprobe_core" / "data") == there
    command = [sys.executable, "-P", "-m", "envprobe_book"]
    listed = envprobe("list", command=command, PYTHONPATH=str(site))
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "calibrated" in listed.stdout
    for given in (["reproduce"], ["book"], ["answers", "--out", work / "x"], ["lab"]):
        told = envprobe(*given, command=command, PYTHONPATH=str(site))
        assert (told.returncode, told.stdout, told.stderr.count("\n")) == (2, "", 1)
        assert f"{given[0]} needs the notebooks and pages of a checkout" in told.stderr
    assert [path.name for path in work.iterdir()] == [wheel.name]


# what a section's foot tells a reader of Colab to install
RECIPE = re.search(r"install -e 'companion\[(\w+)\]'", (ROOT / "book/_templates/provenance.html").read_text())
IMPORTS = """
import json, sys
asked = json.load(sys.stdin)
for name in asked["missing"]:
    sys.modules[name] = None
for code in asked["code"]:
    exec(code, {})
"""


@pytest.mark.nightly
def test_what_notebooks_import_comes_with_the_recipe_that_their_feet_give():
    """Without the extras that it leaves out, every import of every notebook goes well."""
    lines, statements = [RECIPE[1]], set()
    for extra in lines:  # which grows: an extra may bring others
        own = PROJECT["optional-dependencies"][extra]
        lines += [found[1] for line in own if (found := re.match(r"envprobe-core\[(\w+)\]", line))]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text())["cells"]:
            if cell["cell_type"] == "code":
                nodes = ast.walk(ast.parse("".join(cell["source"])))
                statements |= {
                    ast.unparse(one) for one in nodes if isinstance(one, ast.Import | ast.ImportFrom)
                }
    assert len(statements) > 50
    known = packages_distributions()
    for module in {name for one in statements for name in imported(one)} - set(sys.stdlib_module_names):
        assert {normal(one) for one in known[module]} & (declared(lines) | {"envprobe-core"}), module
    missing = [name for extra, own in extras.EXTRAS.items() if extra not in lines for name in own]
    assert {"openai", "xllamacpp", "distributed"} <= {*missing}
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], input=json.dumps({"missing": missing, "code": sorted(statements)}),
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_an_archive_and_a_container_are_told_what_the_project_says_of_itself():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    archived = json.loads((ROOT / ".zenodo.json").read_text())
    assert archived["title"] == cited["title"]
    assert archived["version"] == str(cited["version"]) == envprobe_core.__version__
    assert archived["license"] == PROJECT["license"]
    assert archived["keywords"] == PROJECT["keywords"]
    assert [one["name"] for one in archived["creators"]] == [one["name"] for one in cited["authors"]]
    (related,) = archived["related_identifiers"]
    assert related["identifier"] == cited["preferred-citation"]["repository-code"]
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    commands = container["postCreateCommand"].split(" && ")
    assert commands[0] in (ROOT / "README.md").read_text()
