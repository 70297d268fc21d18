"""A run's description as an RO-Crate 1.1 (https://w3id.org/ro/crate/1.1), which archives read.

It says nothing that the manifest does not say, holds no times or names of machines, and is not hashed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from envprobe_core import __version__
from envprobe_core.files import replacing

CRATE = "ro-crate-metadata.json"
PUBLISHED = "2026"  # this version of the engine; a run of it has no date, so that its bytes are the same
LICENCE = "https://creativecommons.org/licenses/by/4.0/"


def describe(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a finished run."""
    inputs = manifest["inputs"]
    names = sorted(manifest["sha256"])
    parts = (inputs[name] for name in ("policies", "worlds", "protocols"))
    what = "{} in {} under {}".format(*map(" ".join, parts))
    kinds = {"parquet": "application/vnd.apache.parquet", "jsonl": "application/x-ndjson"}
    files = [
        {
            "@id": name,
            "@type": "File",
            "sha256": manifest["sha256"][name],
            "encodingFormat": kinds[name.rpartition(".")[2]],
        }
        for name in names
    ]
    about = {"@id": CRATE, "@type": "CreativeWork", "about": {"@id": "./"}}
    about["conformsTo"] = {"@id": "https://w3id.org/ro/crate/1.1"}
    return {
        "@context": "https://w3id.org/ro/crate/1.1/context",
        "@graph": [
            about,
            {
                "@id": "./",
                "@type": "Dataset",
                "name": f"EnvProbe run {manifest['result_hash'][:12]}",
                "description": f"Episodes of {what} at {inputs['regime']}, by envprobe_core {__version__}.",
                "datePublished": PUBLISHED,
                "license": {"@id": LICENCE},
                "hasPart": [{"@id": name} for name in ["manifest.json", *names]],
                "mentions": {"@id": "#run"},
            },
            {"@id": "manifest.json", "@type": "File", "encodingFormat": "application/json"},
            *files,
            {
                "@id": "#run",
                "@type": "CreateAction",
                "instrument": {"@id": "#engine"},
                "result": [{"@id": name} for name in names],
            },
            {
                "@id": "#engine",
                "@type": "SoftwareApplication",
                "name": "envprobe_core",
                "version": manifest["engine"]["version"],
                "softwareRequirements": [
                    f"{name} {version}" for name, version in manifest["versions"].items()
                ],
            },
        ],
    }


def write_crate(path: Path, manifest: Mapping[str, Any]) -> None:
    """Write a finished run's metadata beside its manifest."""
    with replacing(path / CRATE) as temporary:
        option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        temporary.write_bytes(orjson.dumps(describe(manifest), option=option))
