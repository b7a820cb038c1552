"""Files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from planner.errors import InputError


def write_atomically(path: Path, text: str | bytes, *, mode: int = 0o644) -> None:
    """Write `text` to `path`: a reader, or a killed writer, leaves the old file or the new one, never a part.

    Text is written as UTF-8. A link stays a link: what it points to is written. What is no regular file (`/dev/null`,
    a pipe) is written to, never replaced. `mode`: permissions of the file, 0600 for what others must not read.

    Raises:
        InputError: the folder does not exist or cannot be written.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        _write_through(path, text)
        return
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"{path}: cannot write there: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_bytes(text))
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.replace("\n", os.linesep).encode("utf-8")


def _write_through(path: Path, text: str | bytes) -> None:
    """Write to a device or a pipe.

    Raises:
        InputError: it cannot be written.
    """
    try:
        with path.open("wb") as file:
            file.write(_bytes(text))
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
