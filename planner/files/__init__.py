"""Files of users: written whole or not at all; `limited` reads them, `opened` notes which were read."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
import zlib
from pathlib import Path

from planner.errors import InputError, OutputError

PRIVATE = 0o600  # what shows somebody's bill
_SHARED = 0o666  # less the process's umask, as any program creates a file
_LONGEST_STEM = 80  # characters of a file's name in that of its temporary file: names end at 255 bytes
_DAY_S = 86_400.0
_FAULTS_OF_NAMES = frozenset(
    getattr(errno, name)
    for name in ["ENOENT", "ENOTDIR", "EISDIR", "EACCES", "EPERM", "ELOOP", "ENAMETOOLONG"]
)


def write_atomically(path: Path, text: str | bytes, *, mode: int | None = None) -> None:
    """Write `text` to `path`: a reader, or a killed writer, leaves the old file or the new one, never a part.

    Text is written as UTF-8. A link stays a link: what it points to is written. What is no regular file (`/dev/null`,
    a pipe) is written to, never replaced. Temporary files that killed writers of the same file left are removed.

    Args:
        path: where to.
        text: what.
        mode: permissions of the file, whatever they were; None: those that it has, a new one's as the umask says.

    Raises:
        InputError: the folder does not exist or may not be written.
        OutputError: the disk is full or fails.
    """
    path = Path(os.path.realpath(path))
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                file.write(_bytes(text))
            return
        sweep(path)
        _replace(path, _bytes(text), _kept_mode(path) if mode is None else mode)
    except OSError as error:
        raise write_error(path, error) from error


def _replace(path: Path, data: bytes, mode: int | None) -> None:
    new = path.parent / f"{_prefix(path)}{os.getpid()}-{os.urandom(4).hex()}"
    try:
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _SHARED if mode is None else mode)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            new.chmod(mode)
        new.replace(path)
    except (
        BaseException
    ):  # a signal too, even one that comes while the file is opened: nothing is left behind
        with contextlib.suppress(OSError):  # the first error is the one to report
            new.unlink(missing_ok=True)
        raise


def _kept_mode(path: Path) -> int | None:
    with contextlib.suppress(FileNotFoundError):
        return stat.S_IMODE(path.stat().st_mode)
    return None


def _prefix(path: Path) -> str:
    """Beginning of the names of temporary files of this file and this machine; a process id follows."""
    host = zlib.crc32(os.uname().nodename.encode() if hasattr(os, "uname") else b"")
    return f".{path.name[:_LONGEST_STEM]}.{host:08x}-"


def sweep(path: Path) -> None:
    """Remove what killed writers of this file left: of this machine by process, of others by a day of age.

    Args:
        path: the file itself, not a link to it.
    """
    mine = _prefix(path)
    of_any_machine = re.compile(rf"{re.escape(mine[:-9])}[0-9a-f]{{8}}-([0-9]+)-[0-9a-f]{{8}}")
    with contextlib.suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            match = of_any_machine.fullmatch(entry.name) if entry.name.startswith(".") else None
            if match is None:
                continue
            is_left = (
                not _is_running(int(match[1]))
                if entry.name.startswith(mine)
                else time.time() - entry.stat(follow_symlinks=False).st_mtime > _DAY_S
            )
            if is_left:
                Path(entry.path).unlink(missing_ok=True)


def temporary_folder(parent: Path, stem: str) -> Path:
    """Make a folder for its owner alone, named `stem`, this process and chance; remove those that killed ones left.

    Raises:
        OSError: it cannot be made.
    """
    import shutil
    import tempfile

    left = re.compile(rf"{re.escape(stem)}([0-9]+)-.{{8}}")
    mine = os.getuid() if hasattr(os, "getuid") else None
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            match = left.fullmatch(entry.name)
            if match is None or not entry.is_dir(follow_symlinks=False) or _is_running(int(match[1])):
                continue
            if mine is None or entry.stat(follow_symlinks=False).st_uid == mine:
                shutil.rmtree(entry.path, ignore_errors=True)
    return Path(tempfile.mkdtemp(dir=parent, prefix=f"{stem}{os.getpid()}-"))


def files_below(folder: Path) -> list[Path]:
    """The files in a folder and its subfolders, in order. `Path.rglob` passes over a folder that may not be read.

    Raises:
        OSError: a folder cannot be read.
    """

    def fail(error: OSError) -> None:
        raise error

    paths = [Path(at, name) for at, _, names in os.walk(folder, onerror=fail) for name in names]
    return sorted(path for path in paths if path.is_file())


def remove_folder(folder: Path) -> None:
    """Remove what `temporary_folder` made; what stays all the same, the next process removes."""
    import shutil

    for _ in range(2):  # an error of a moment leaves no copy of anybody's bill
        shutil.rmtree(folder, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.replace("\n", os.linesep).encode("utf-8")


def write_error(path: Path, error: OSError) -> InputError | OutputError:
    """What went wrong, in the words of a name that is wrong, or of a disk that is."""
    if error.errno in _FAULTS_OF_NAMES:
        what = "cannot be written" if path.is_dir() else "cannot write there"
        return InputError(f"{path}: {what}: {error.strerror}")
    return OutputError(f"{path}: cannot be written: {error.strerror}")
