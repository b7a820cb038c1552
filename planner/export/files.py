"""Files of an export: named, checked and written so that nothing of the user's is lost."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from planner.errors import InputError
from planner.files import sweep, write_atomically
from planner.records import record


@record(frozen=True)
class ExportFile:
    """One file: `path` is relative to the folder of the export, with forward slashes; `text` ends in a newline."""

    path: str
    text: str
    executable: bool = False


def write_files(files: Sequence[ExportFile], folder: Path, *, force: bool = False) -> list[Path]:
    """Write all files below `folder`, which is made where it does not exist; files with the same text are left alone.

    Args:
        files: of one export.
        folder: to write to.
        force: replace files with other content.

    Returns:
        The paths, in the order of the files.

    Raises:
        InputError: a file with other content is there (nothing is written then), or the folder cannot be written.
    """
    paths = [folder / _inside(file.path) for file in files]
    others = [str(path) for path, file in zip(paths, files, strict=True) if _differs(path, file.text)]
    if others and not force:
        raise InputError(
            f"{', '.join(others)}: exists with other content; move it away, or replace it with --force"
        )
    for path, file in zip(paths, files, strict=True):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{path.parent}: cannot be created: {error.strerror}") from error
        if not path.exists() or _differs(path, file.text):
            write_atomically(path, file.text.encode("utf-8"))
        else:  # nothing to write, yet another process may have been killed while it wrote the same
            sweep(path.resolve())
        if file.executable:
            mode = stat.S_IMODE(path.stat().st_mode)
            path.chmod(mode | (mode & 0o444) >> 2)  # those who may read it, as the umask says, may run it
    return paths


def _inside(name: str) -> PurePosixPath:
    """The path of a file, which no text of a user may lead out of the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.name:
        raise InputError(f"{name!r}: no name of a file inside the folder of an export")
    return path


def _differs(path: Path, text: str) -> bool:
    """Whether something else than this text is there.

    Raises:
        InputError: a folder is there, or the file cannot be read.
    """
    try:
        return path.exists() and path.read_bytes() != text.encode("utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; move it away") from error
