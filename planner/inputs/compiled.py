"""The compiled copy of a valid workload: its values as JSON, so that the next run need not parse YAML.

It only saves time. The key is a hash of the file's bytes and of everything that decides whether and how they are
valid, so a copy never outlives the rules that made it. Whatever is wrong with it (unwritable, cut short, edited,
of other rules) it is ignored and the file is read anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from catalogs.cache.copies import cache_directory, open_copy, write_copy
from planner.inputs.view import decode_section, encode_section
from planner.version import __version__

if TYPE_CHECKING:
    from planner.inputs.schema import Workload

MAX_BYTES = 4 * 1024 * 1024
MAX_COPIES = 256
_PREFIX = "workload-1-"
_PACKAGE = Path(__file__).parent.parent
# What a valid file becomes depends on these: a checkout where one was edited must not use older copies.
_RULES = (
    *("data/schemas/workload.v1.json", "data/presets.csv", "units.py"),
    *("data/adapters.csv", "data/objectives.csv", "data/image_tokens.csv", "inputs/image_work.py"),
    *(
        f"inputs/{name}.py"
        for name in ("checks", "compiled", "config_file", "fields", "load", "measured", "models", "plain")
    ),
    *(
        f"inputs/{name}.py"
        for name in ("presets", "purchase_options", "quantities", "schema", "section", "training_schema")
    ),
    *(
        f"inputs/{name}.py"
        for name in (
            "checks_parts",
            "embeddings",
            "phases",
            "checks_post_training",
            "post_training",
            "post_training_schema",
        )
    ),
    *(f"inputs/{name}.py" for name in ("view", "yaml12")),
)


def copy_key(data: bytes) -> str:
    """Return the key of a workload file's copy: a hash over its bytes, the rules and the planner's version."""
    digest = hashlib.sha256(_hash_of_rules(__version__, _RULES))
    digest.update(data)
    return digest.hexdigest()


@lru_cache(maxsize=4)
def _hash_of_rules(version: str, rules: tuple[str, ...]) -> bytes:
    """Hash of the rules as they are when first asked: this process has imported them, and keeps to them."""
    digest = hashlib.sha256(version.encode())
    for name in rules:
        with contextlib.suppress(OSError):
            digest.update(b"\0" + (_PACKAGE / name).read_bytes())
    return digest.digest()


def load_copy(key: str) -> Workload | None:
    """Return the workload of a copy as a read-only view, or None when there is no usable copy.

    Args:
        key: see `copy_key`.
    """
    try:
        with open_copy(_path(key)) as file:
            stored = json.loads(file.read(MAX_BYTES))
        coded = stored["workload"]
        if stored["key"] != key or stored["sha256"] != _hash(coded) or coded["section"] != "Workload":
            return None
        return cast("Workload", decode_section(coded))
    # A copy may be damaged in any way; every failure to read it means only that it is not used.
    except Exception:  # noqa: BLE001
        return None


def save_copy(key: str, workload: Workload) -> None:
    """Write the copy of a valid workload atomically; one that cannot be written is no error."""
    coded = encode_section(workload)
    text = json.dumps({"key": key, "sha256": _hash(coded), "workload": coded})
    write_copy(
        _path(key), lambda file: file.write(text.encode()), pattern=f"{_PREFIX}*.json", most=MAX_COPIES
    )


def _path(key: str) -> Path:
    return cache_directory() / f"{_PREFIX}{key[:32]}.json"


def _hash(coded: object) -> str:
    return hashlib.sha256(json.dumps(coded, sort_keys=True).encode()).hexdigest()
