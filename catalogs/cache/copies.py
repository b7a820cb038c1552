"""Where compiled copies lie and how they are kept: files that only save time and can be made again at any moment."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

_WRITING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_LEFT_S = 3600.0  # no writer takes as long for a copy


def cache_directory() -> Path:
    """The folder of compiled copies: `PLANNER_CACHE_DIR`, else the user's cache directory."""
    chosen = os.environ.get("PLANNER_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "linux":  # what platformdirs answers there, without the 3 ms of importing it
        return user_folder("XDG_CACHE_HOME", "~/.cache") / "ml-training-planner"
    import platformdirs

    return Path(platformdirs.user_cache_dir("ml-training-planner", appauthor=False))


def user_folder(variable: str, default: str) -> Path:
    """A folder of the XDG Base Directory Specification, by which a relative one is ignored; so is a relative HOME."""
    chosen = os.path.expanduser(os.environ.get(variable, "").strip())  # noqa: PTH111 - no error without a home
    usual = os.path.expanduser(default)  # noqa: PTH111
    return Path(next((path for path in (chosen, usual) if os.path.isabs(path)), "") or _of_account(default))  # noqa: PTH117


def _of_account(default: str) -> str:
    """A folder in the home of the account, whatever HOME says; where there is none, a place that keeps nothing."""
    try:
        import pwd

        home = pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):
        home = os.devnull
    return default.replace("~", home, 1)


def is_folder(path: Path) -> bool:
    """Whether there is a folder, for code to which its being there alone says something.

    Who notes what an answer was read from hears of it (`planner.files.opened`): Python reports what is opened and
    listed, and nothing of what is only looked for.
    """
    sys.audit("planner.looked_for", path)
    try:
        return path.is_dir()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # no folder can be called so
            return False
        raise


def open_copy(path: Path) -> BinaryIO:
    """Open a copy for reading, unless another user of the machine can have written it.

    Copies carry no signature, and `PLANNER_CACHE_DIR` may be a folder that many can write to.

    Raises:
        OSError: it cannot be opened, belongs to another user than this one or root, or others may write to it.
    """
    file = path.open("rb")
    about = os.fstat(file.fileno())
    if hasattr(os, "getuid") and (about.st_uid not in (os.getuid(), 0) or about.st_mode & stat.S_IWOTH):
        file.close()
        raise PermissionError(f"{path} may have been written by another user")
    return file


def write_copy(
    path: Path, write: Callable[[BinaryIO], object], *, pattern: str, most: int, mode: int = 0o666
) -> None:
    """Write a copy whole or not at all, and drop the oldest of its kind; one that cannot be written is no error.

    Args:
        path: where it goes.
        write: writes the bytes.
        pattern: names of copies of its kind, in the same folder, with `*` for what differs.
        most: most copies kept, this one among them.
        mode: permissions, less the process's umask.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)  # of a killed process of this number, or made by another user
        with os.fdopen(os.open(partial, _WRITING, mode), "wb") as file:
            write(file)
        partial.replace(path)
        _tidy(path, pattern, most)
    except BaseException as error:  # a signal too: nothing is left behind
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise


def _tidy(newest: Path, pattern: str, most: int) -> None:
    """Drop the oldest copies of a kind, and parts of copies whose writers were killed, in one look at the folder."""
    prefix, suffix = pattern.split("*")
    copies, parts = [], []
    with os.scandir(newest.parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.name != newest.name:
                if entry.name.endswith(suffix):
                    copies.append(entry)
                elif entry.name.endswith(".tmp") and f"{suffix}." in entry.name:
                    parts.append(entry)
    if len(copies) >= most:
        copies.sort(key=_age_s)
        for copy in copies[most - most // 8 - 1 :]:  # some more, so that not every copy asks for all ages
            Path(copy.path).unlink(missing_ok=True)
    for part in parts:
        if _LEFT_S < _age_s(part) < math.inf:
            Path(part.path).unlink(missing_ok=True)


def _age_s(entry: os.DirEntry[str]) -> float:
    try:
        return time.time() - entry.stat().st_mtime
    except FileNotFoundError:  # another process removed it
        return math.inf
