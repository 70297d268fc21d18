"""The engine in a page: the built book runs what it prints, from a server or a folder, without a network.

`write_page_engine` writes the scripts that a page loads; `engine.js` says what they offer. The experiment is
the core's own, as WebAssembly (`envprobe_core.engine.wasm`); what a condition means is data that Python
writes (`knobs`), and `to_plain` says a cell in the page's words.
"""

import base64
import gzip
import hashlib
import json
from functools import cache
from pathlib import Path

from numba import float64, int8, int64, typeof

from envprobe_book.page_engine.knobs import common, describe
from envprobe_book.page_engine.settings import from_plain, params_for, to_plain
from envprobe_book.pages.markup import script_json
from envprobe_core import constant, resampling
from envprobe_core.compiled.compiled_files import cache_folder, keep, kept
from envprobe_core.conditions import make_condition
from envprobe_core.engine import wasm
from envprobe_core.engine.batch import kernel_params
from envprobe_core.estimating import YES_OR_NO
from envprobe_core.sources import files_sha256, package_sha256
from envprobe_core.statistics import Estimate
from envprobe_core.worlds import WORLDS

__all__ = ["SCRIPT", "from_plain", "inline_page_engine", "params_for", "to_plain", "write_page_engine"]

HERE = Path(__file__).parent
ONE, TWO = int64[::1], float64[:, ::1]
SIGNATURE = (TWO, ONE, int64, int64, float64, float64, float64, float64, ONE, TWO, TWO, TWO)
"""Of `resampling.ratios`."""
EPISODES = (int8[:, :, ::1], int8[:, ::1], ONE)
SCRIPT = "page-engine.js"
"""What a page loads; the scripts of the worlds lie beside it and are loaded when they are asked for."""


def page_scripts() -> dict[str, str] | None:
    """The text of each script by its file's name; None where no engine can be made for pages.

    All are of one edition: a page that finds two says so and runs nothing.
    """
    made = _made()
    if made is None:
        return None
    shared, worlds = made
    texts = {SCRIPT: f"{(HERE / 'engine.js').read_text('utf-8')}EnvProbe.engine.describe({shared});\n"}
    for world, found in worlds.items():
        texts[f"page-engine-{world}.js"] = f'EnvProbe.engine.add("{world}", {found});\n'
    return texts


def statistics_module() -> bytes | None:
    """The module of the bootstrap, as `wasm.module_of` gives one of a world."""
    return wasm.module_for("resampling", "the statistics of pages", resampling.ratios, lambda: SIGNATURE)


def constant_module(world: str) -> bytes | None:
    """The module of tables that never change, of a world."""
    params = typeof(kernel_params(make_condition(world, "simple")))
    signature = (params, *EPISODES, *EPISODES, ONE, float64[::1], TWO, int64[:, ::1], TWO)
    what = f"the zeros of pages of {WORLDS[world]}"
    return wasm.module_for(f"constant-{world}", what, constant.constant, lambda: signature)


@cache
def _made() -> tuple[str, dict[str, str]] | None:
    """What is in the scripts beside `engine.js`: what all worlds share, and each world's own.

    It takes some seconds, so it lies beside the machine code, under a name that says of what it was made.
    """
    found = {world: wasm.module_of(world) for world in WORLDS}
    zeros = {world: constant_module(world) for world in WORLDS}
    resampler = statistics_module()
    modules = {world: module for world, module in found.items() if module is not None}
    constants = {world: module for world, module in zeros.items() if module is not None}
    if resampler is None or len(modules) + len(constants) < 2 * len(WORLDS):
        return None
    made_of = [package_sha256(), files_sha256(sorted(HERE.glob("*.py")), HERE.parent)]
    made_of += [
        hashlib.sha256(module).hexdigest() for module in (resampler, *modules.values(), *constants.values())
    ]
    edition = hashlib.sha256(" ".join(made_of).encode()).hexdigest()[:16]
    folder = cache_folder()
    path = None if folder is None else folder / f"pages-{edition}.json.gz"
    if path is not None and (packed := kept(path)) is not None:
        shared, worlds = json.loads(gzip.decompress(packed))
        return shared, worlds
    worlds = {}
    for world, module in modules.items():
        knobs = script_json(describe(world)).encode()
        parts = {"edition": edition, "module": _packed(module), "knobs": _packed(knobs)}
        parts["constant"] = _packed(constants[world])
        worlds[world] = script_json(parts)
    scratch = {"stratum": resampling.SCALES, "least": resampling.PARTIALS}
    statistics = {"module": _packed(resampler), "names": Estimate._fields, "scratch": scratch}
    statistics["yesOrNo"] = YES_OR_NO.pattern
    shared = script_json(common() | {"edition": edition, "statistics": statistics})
    if path is not None:
        keep(path, gzip.compress(json.dumps([shared, worlds]).encode(), 1))
    return shared, worlds


def _packed(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def write_page_engine(folder: Path) -> list[Path]:
    """Write the scripts to a folder; return their paths, none where no engine can be made for pages."""
    texts = page_scripts() or {}
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def inline_page_engine(*worlds: str) -> str:
    """The engine and some worlds, or all, as one script's text, for a page that is one file.

    It is empty where no engine can be made for pages.
    """
    texts = page_scripts()
    if texts is None:
        return ""
    return texts[SCRIPT] + "".join(texts[f"page-engine-{world}.js"] for world in worlds or WORLDS)
