"""What a process read of its machine, as the interpreter itself reports it: the ground on which an answer is kept.

A list of the files that an answer follows from would be wrong with the next thing that is read. Python raises an audit
event (PEP 578) for each file that is opened, found or not, and for each folder that is listed; where only the presence
of something decides, `planner.looked_for` is raised beside it (`catalogs.cache.copies.is_folder`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import FrameType

# Who reads what something else tells: copies, by their names; imports (modules and versions of libraries), by their
# folder and the program's own files.
_KNOWN = ("importlib.", "_frozen_importlib", "catalogs.cache.copies", "catalogs.store.cache")
_LOOKED_FOR = "planner.looked_for"
_LISTED = frozenset({"os.listdir", "os.scandir"})
# an answer that other processes or machines had a part in, or that came with a warning, is not told by files alone
_OUTSIDE = (
    "socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "sqlite3.", "urllib.",
    "planner.warned", "planner.read_stdin",
)  # fmt: skip
_MANY = frozenset(
    {
        "builtins.id",
        "object.__getattr__",
        "object.__setattr__",
        "exec",
        "import",
        "marshal.loads",
        "compile",
        "sys._getframe",
    }
)  # of the thousands of events of a run, nearly all
_CLOCK_TICK_NS = 20_000_000  # by which the time stamps of files may lag behind the clock
_COARSE_NS = 2_000_000_000  # FAT; HFS+, ext3 and old NFS know whole seconds
_MOST_BYTES = 64 << 20
_MOST_PLACES = 2_000
_UP = ".."  # behind a link it leads elsewhere than the name says
ABSENT = "absent"


class Reading:
    """Notes what this process reads from now on; for a process that ends with its question, as the hook stays.

    Attributes:
        outside: whether something else than files had a part.
    """

    def __init__(self) -> None:
        self.outside = False
        self._places: dict[str, None] = {}
        self._began_ns = time.time_ns() - _CLOCK_TICK_NS
        self._listening = True
        sys.addaudithook(self._note)

    def states(self, *, apart_from: Iterable[Path]) -> dict[str, str] | None:
        """What was read, by path, as it is now and was all the time; None where that cannot be said. Ends the notes.

        Args:
            apart_from: folders with everything in them, of which something else keeps track.
        """
        self._listening = False
        if self.outside or len(self._places) > _MOST_PLACES:
            return None
        known = tuple(f"{folder}{os.sep}" for folder in apart_from)
        states = {
            path: _state(path, self._began_ns)
            for path in self._places
            if _UP in path or not path.startswith(known)
        }
        told = {path: state for path, state in states.items() if state is not None}
        return told if len(told) == len(states) else None

    def _note(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in _MANY or not self._listening:
            return
        try:
            self._heard(event, arguments)
        except Exception:  # noqa: BLE001 - what is raised here would end what is only watched
            self.outside = True

    def _heard(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            self._opened(arguments, sys._getframe(2))
        elif event in _LISTED:
            if not isinstance(arguments[0], int):  # opened before
                self._add("." if arguments[0] is None else arguments[0], sys._getframe(2))
        elif event == _LOOKED_FOR:
            self._add(arguments[0], None)
        elif event.startswith(_OUTSIDE):
            self.outside = True

    def _opened(self, arguments: tuple[object, ...], frame: FrameType) -> None:
        path, mode, flags = arguments
        if isinstance(path, int):  # its own opening was noted, but for standard input
            self.outside |= path == 0
            return
        written = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR) == os.O_WRONLY
        if not written and not (isinstance(mode, str) and mode.startswith(("w", "a", "x"))):
            self._add(path, frame)

    def _add(self, path: object, frame: FrameType | None) -> None:
        if _is_known(frame):
            return
        if isinstance(path, str | bytes | os.PathLike):
            whole = os.path.join(os.getcwd(), os.fsdecode(path))  # noqa: PTH109, PTH118 - links stay links
            self._places[whole if _UP in whole else os.path.normpath(whole)] = None
        else:
            self.outside = True


def _is_known(frame: FrameType | None, depth: int = 8) -> bool:
    """Whether it is read by an import, or as a copy, whose name tells what it was made of.

    By the names of modules: to look at a frame's code is an event, too.
    """
    while frame is not None and depth:
        if frame.f_globals.get("__name__", "").startswith(_KNOWN):
            return True
        frame, depth = frame.f_back, depth - 1
    return False


def are_as_told(states: Mapping[str, str]) -> bool:
    """Whether each place is as `Reading.states` found it."""
    return all(_state(path, None) == state for path, state in states.items())


def _state(path: str, began_ns: int | None) -> str | None:
    """A file by its content, a folder by its names; None: neither, or changed since `began_ns`."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT if began_ns is None or _is_settled(Path(path).parent, began_ns) else None
    except OSError:
        return None
    try:
        about = os.fstat(handle)
        if began_ns is not None and _latest_ns(about) >= began_ns:
            return None
        if stat.S_ISDIR(about.st_mode):
            return f"folder {_sum('/'.join(sorted(os.listdir(path))).encode(errors='surrogateescape'))}"  # noqa: PTH208
        if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST_BYTES:
            return None
        with os.fdopen(os.dup(handle), "rb") as file:
            return f"file {_sum(file.read(_MOST_BYTES + 1))}"
    except OSError:
        return None
    finally:
        with contextlib.suppress(OSError):
            os.close(handle)


def _is_settled(folder: Path, began_ns: int) -> bool:
    """Whether nothing came or went since then where a file is missing: it may have been read and removed."""
    for place in (folder, *folder.parents):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return _latest_ns(place.stat()) < began_ns
    return False


def _latest_ns(about: os.stat_result) -> int:
    """The latest moment at which it may have changed, where stamps may be cut to whole seconds."""
    stamp = max(about.st_mtime_ns, about.st_ctime_ns)
    return stamp if stamp % 1_000_000_000 else stamp + _COARSE_NS


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
