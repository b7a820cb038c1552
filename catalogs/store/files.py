"""Files of the snapshot history: written whole or not at all, by one writer at a time; readers never lock.

One directory per provider holds immutable snapshot directories and `current.json`, which names the one in use.
A snapshot is made beside its final name, forced to disk and renamed; the pointer is replaced last. So a process
that is killed anywhere leaves the old or the new state, and what it left half made is a name no reader looks at.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from catalogs.errors import CatalogError

POINTER = "current.json"
LOCK_TIMEOUT_S = 60.0
_SNAPSHOT_NAME = re.compile(r"\d{4}-\d{2}-\d{2}-[0-9a-f]{12}")
_DAY = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")
_LEFTOVERS = (".new-*", ".gone-*")


@dataclass(frozen=True)
class Pointer:
    """Which snapshot of a provider is in use.

    Attributes:
        snapshot: name of its directory.
        checked_as_of: ISO date of the last refresh that found nothing else, "" where none came after it.
    """

    snapshot: str
    checked_as_of: str = ""


def is_snapshot_name(name: str) -> bool:
    """Whether `name` is that of a snapshot directory: ISO date and 12 digits of its hash."""
    return _SNAPSHOT_NAME.fullmatch(name) is not None


def snapshot_directories(provider_directory: Path) -> list[Path]:
    """Snapshot directories of a provider, in order of their names; none where it cannot be read."""
    try:
        names = [path.name for path in provider_directory.iterdir()]
    except OSError:
        return []
    return [provider_directory / name for name in sorted(names) if is_snapshot_name(name)]


def read_pointer(provider_directory: Path) -> Pointer | None:
    """Read the pointer; None where there is none or it is damaged."""
    try:
        values = json.loads((provider_directory / POINTER).read_bytes())
        pointer = Pointer(values["snapshot"], values.get("checked_as_of", ""))
        checked = pointer.checked_as_of == "" or _DAY.fullmatch(pointer.checked_as_of)
        good = is_snapshot_name(pointer.snapshot) and checked
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return pointer if good else None


def write_pointer(provider_directory: Path, pointer: Pointer) -> None:
    """Replace the pointer in one step."""
    values = {"snapshot": pointer.snapshot, "checked_as_of": pointer.checked_as_of}
    temporary = provider_directory / f".new-{POINTER}-{os.getpid()}"
    _write_synced(temporary, (json.dumps(values) + "\n").encode())
    temporary.replace(provider_directory / POINTER)
    _sync_directory(provider_directory)


def write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a file that must not exist yet, never readable beyond `mode`, and force it to disk.

    Raises:
        FileExistsError: it exists.
        OSError: it cannot be written; nothing is left of it.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:  # a signal too
        path.unlink(missing_ok=True)
        raise


def write_directory(parent: Path, name: str, files: Mapping[str, bytes]) -> None:
    """Make the directory `name` with `files`, in one step; a damaged one of that name is set aside first."""
    import shutil

    temporary, final = parent / f".new-{name}-{os.getpid()}", parent / name
    try:
        temporary.mkdir()
        for file, data in files.items():
            _write_synced(temporary / file, data)
        _sync_directory(temporary)
        if final.exists():
            remove_directory(final)
        temporary.rename(final)
        _sync_directory(parent)
    except BaseException:  # a signal too
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def remove_directory(path: Path) -> None:
    """Remove a snapshot directory so that no reader finds a part of it under its name."""
    import shutil

    gone = path.with_name(f".gone-{path.name}-{os.getpid()}")
    shutil.rmtree(gone, ignore_errors=True)
    path.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def remove_leftovers(provider_directory: Path) -> int:
    """Remove what killed writers left half made; only for the holder of the lock. Returns how many."""
    import shutil

    leftovers = [path for pattern in _LEFTOVERS for path in provider_directory.glob(pattern)]
    for path in leftovers:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
    return len(leftovers)


@contextlib.contextmanager
def writing(home: Path, provider: str, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[Path]:
    """Hold the lock of one provider's history and turn failures to write into a message.

    The lock is the operating system's own: it ends with the process that holds it, however that ends.

    Args:
        home: directory of the history.
        provider: provider id.
        timeout_s: longest wait for another writer, in seconds.

    Yields:
        The provider's directory, which exists.

    Raises:
        CatalogError: when another writer keeps the lock, or the disk is full or not writable.
    """
    from filelock import FileLock, Timeout

    directory = home / provider
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with FileLock(home / f".{provider}.lock", timeout=timeout_s):
            remove_leftovers(directory)
            yield directory
    except Timeout as error:
        raise CatalogError(
            f"another planner has been writing the {provider} catalog in {directory} for {timeout_s:g} s; "
            "try again when it has ended"
        ) from error
    except (OSError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CatalogError(
            f"cannot write the {provider} catalog to {directory}: {reason}; what was stored before is "
            "unchanged; free space or set PLANNER_DATA_DIR to a writable directory"
        ) from error


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    """Force a directory's names to disk, where the system can (not on Windows)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
