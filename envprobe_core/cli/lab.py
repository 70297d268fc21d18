"""``envprobe lab``: a folder of one's own, and JupyterLab on it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from envprobe_core.cli.options import option
from envprobe_core.sources import ROOT


def lab(
    out: option(Path, "--out", "The folder.", "DIR", "lab, in the checkout") = ROOT / "lab",
    files_only: option(bool, "--files-only", "Lay the folder out, and open nothing.") = False,
    jupyter: Annotated[
        list[str] | None, typer.Argument(metavar="[-- OPTION...]", help="Options of `jupyter lab`.")
    ] = None,
) -> None:
    """Open JupyterLab in a folder with a START notebook, the exercises and copies of all sections.

    The folder is made at the first time and brought up to date later; files that you have changed there stay
    as they are. Exit code 2 if DIR cannot be used.
    """
    from envprobe_core.lab.desk import CONFIG, START, lay_out

    for name in lay_out(out):
        typer.echo(f"left as you changed it: {out / name}")
    typer.echo(f"{START} is in {out}")
    if files_only:
        return
    folder = out.resolve()
    paths = [str(folder / CONFIG), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(paths)
    as_root = ["--allow-root"] if os.getuid() == 0 else []
    options = [
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url=/lab/tree/{START}",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    sys.stdout.flush()
    command = [sys.executable, "-m", "jupyter", "lab", *as_root, *options, *(jupyter or ())]
    os.execv(sys.executable, command)
