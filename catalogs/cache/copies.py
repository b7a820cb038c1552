"""Where compiled copies lie and how they are kept: files that only save time and can be made again at any moment."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def cache_directory() -> Path:
    """The folder of compiled copies: `PLANNER_CACHE_DIR`, else the user's cache directory."""
    chosen = os.environ.get("PLANNER_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "linux":  # what platformdirs answers there, without the 3 ms of importing it
        base = os.environ.get("XDG_CACHE_HOME", "").strip()
        return Path(base or "~/.cache").expanduser() / "ml-training-planner"
    import platformdirs

    return Path(platformdirs.user_cache_dir("ml-training-planner", appauthor=False))


def write_copy(path: Path, write: Callable[[BinaryIO], object], *, pattern: str, most: int) -> None:
    """Write a copy whole or not at all, and drop the oldest of its kind; one that cannot be written is no error.

    Args:
        path: where it goes.
        write: writes the bytes.
        pattern: glob of copies of its kind, in the same folder.
        most: copies kept, this one among them.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            write(file)
        partial.replace(path)
        _drop_oldest(path, pattern, most)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def _drop_oldest(newest: Path, pattern: str, most: int) -> None:
    others = [path for path in newest.parent.glob(pattern) if path != newest]
    if len(others) >= most:
        for path in sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)[most - 1 :]:
            path.unlink(missing_ok=True)
