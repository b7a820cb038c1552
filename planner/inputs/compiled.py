"""The compiled copy of a valid workload: its values as JSON, so that the next run need not parse YAML.

It only saves time. The key is a hash of the file's bytes and of everything that decides whether and how they are
valid, so a copy never outlives the rules that made it. Whatever is wrong with it (unwritable, cut short, edited,
of other rules) it is ignored and the file is read anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

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
    *(
        f"inputs/{name}.py"
        for name in ("checks", "compiled", "fields", "load", "measured", "models", "plain")
    ),
    *(f"inputs/{name}.py" for name in ("presets", "quantities", "schema", "section", "training_schema")),
    *(f"inputs/{name}.py" for name in ("view", "yaml12")),
)


def cache_directory() -> Path:
    """Where copies live, the same folder as the catalog's: `PLANNER_CACHE_DIR`, else the user's cache directory."""
    chosen = os.environ.get("PLANNER_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "linux":  # what platformdirs answers there, without the 3 ms of importing it
        base = os.environ.get("XDG_CACHE_HOME", "").strip()
        return Path(base or "~/.cache").expanduser() / "ml-training-planner"
    import platformdirs

    return Path(platformdirs.user_cache_dir("ml-training-planner", appauthor=False))


def copy_key(data: bytes) -> str:
    """Return the key of a workload file's copy: a hash over its bytes, the rules and the planner's version."""
    digest = hashlib.sha256(__version__.encode())
    for name in _RULES:
        with contextlib.suppress(OSError):
            digest.update(b"\0" + (_PACKAGE / name).read_bytes())
    digest.update(b"\0" + data)
    return digest.hexdigest()


def load_copy(key: str) -> Workload | None:
    """Return the workload of a copy as a read-only view, or None when there is no usable copy.

    Args:
        key: see `copy_key`.
    """
    try:
        with _path(key).open("rb") as file:
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
    path = _path(key)
    partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
        _drop_oldest(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def _path(key: str) -> Path:
    return cache_directory() / f"{_PREFIX}{key[:32]}.json"


def _hash(coded: object) -> str:
    return hashlib.sha256(json.dumps(coded, sort_keys=True).encode()).hexdigest()


def _drop_oldest(directory: Path) -> None:
    """Keep the newest copies: every edit of a workload makes another one."""
    with os.scandir(directory) as entries:
        own = [entry for entry in entries if entry.name.startswith(_PREFIX)]
    if len(own) > MAX_COPIES:
        own.sort(key=lambda entry: entry.stat().st_mtime)
        for entry in own[: len(own) - MAX_COPIES]:
            with contextlib.suppress(OSError):
                Path(entry.path).unlink()
