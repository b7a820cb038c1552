"""A file system that fails at the n-th call: `with Injection(folder, at=3, fault="ENOSPC"):`.

Calls of `os` and of files opened by `open` are counted where they concern `folder`; nothing else is touched. Files are
opened with a raw part whose reads and writes are counted too. What native libraries write (DuckDB) is not seen.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

FAULTS = ("ENOSPC", "EACCES", "EIO", "EINTR", "partial", "torn")
_WRITING = ("create", "write", "fsync", "rename", "mkdir", "chmod", "unlink", "rmdir")
# A call of `os` that is interrupted is made again by the interpreter (PEP 475): only buffered parts see EINTR.
_FITTING = {
    "ENOSPC": ("create", "write", "fsync", "rename", "mkdir"),
    "EACCES": ("open", "create", "rename", "unlink", "mkdir", "rmdir", "chmod", "list"),
    "EIO": (*_WRITING, "open", "read", "list"),
    "EINTR": ("write", "read"),
    "partial": ("write",),
    "torn": ("write",),
}
_PATHS: dict[str, str] = {
    "rename": "rename", "replace": "rename", "unlink": "unlink", "remove": "unlink", "mkdir": "mkdir",
    "rmdir": "rmdir", "chmod": "chmod", "scandir": "list", "listdir": "list",
}  # fmt: skip


class Injection(contextlib.AbstractContextManager["Injection"]):
    """Counts file calls below a folder and makes one of them fail.

    Attributes:
        calls: kind and file name of each call so far.
        hit: whether the fault happened.
    """

    def __init__(self, folder: Path, at: int = 0, fault: str = "") -> None:
        """`at` is the number of the call from 1 on, 0 for none; `fault` one of `FAULTS`."""
        self.folder = os.path.realpath(folder)
        self.at, self.fault, self.hit = at, fault, False
        self.calls: list[tuple[str, str]] = []
        self._handles: set[int] = set()
        self._stack = contextlib.ExitStack()
        self._real = {
            name: getattr(os, name) for name in (*_PATHS, "open", "write", "read", "fsync", "close")
        }
        self._open = io.open

    def __enter__(self) -> Injection:
        for name, kind in _PATHS.items():
            self._stack.enter_context(mock.patch.object(os, name, self._by_path(name, kind)))
        for name in ("write", "read", "fsync"):
            self._stack.enter_context(mock.patch.object(os, name, self._by_handle(name)))
        self._stack.enter_context(mock.patch.object(os, "open", self._os_open))
        for module in (io, builtins):
            self._stack.enter_context(mock.patch.object(module, "open", self._any_open))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _is_watched(self, path: Any) -> bool:
        if isinstance(path, int):
            return path in self._handles
        try:
            return os.path.realpath(os.fspath(path)).startswith(self.folder)
        except (TypeError, ValueError):
            return False

    def reached(self, kind: str, path: object) -> str:
        """Count a call; raise its error, or return `partial` where half of it is to be done."""
        self.calls.append((kind, Path(str(path)).name))
        if len(self.calls) != self.at or self.hit:
            return ""
        self.hit = True
        if self.fault in ("partial", "torn"):
            return self.fault
        number = getattr(errno, self.fault)
        raise OSError(number, os.strerror(number), str(path))

    def _by_path(self, name: str, kind: str) -> Callable[..., Any]:
        def call(path: Any = ".", *rest: Any, **named: Any) -> Any:
            if self._is_watched(path):
                self.reached(kind, path)
            return self._real[name](path, *rest, **named)

        return call

    def _by_handle(self, name: str) -> Callable[..., Any]:
        def call(handle: int, *rest: Any) -> Any:
            if handle in self._handles:
                how = self.reached(name, handle)
                if how:
                    return self._part(how, lambda data: self._real[name](handle, data), rest[0])
            return self._real[name](handle, *rest)

        return call

    @staticmethod
    def _part(how: str, write: Callable[[Any], int], data: Any) -> int:
        done = write(memoryview(data).cast("B")[: max(1, len(data) // 2)])
        if how == "torn":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return done

    def _os_open(self, path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if not self._is_watched(path):
            return int(self._real["open"](path, flags, *rest, **named))
        self.reached("create" if flags & os.O_CREAT else "open", path)
        handle = int(self._real["open"](path, flags, *rest, **named))
        self._handles.add(handle)
        return handle

    def _any_open(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        if not self._is_watched(file):
            return self._open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        raw = self._raw(file, mode, closefd, opener)
        if "b" in mode and buffering == 0:
            return raw
        buffered: Any
        if "+" in mode:
            buffered = io.BufferedRandom(raw)
        else:
            buffered = io.BufferedReader(raw) if "r" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)

    def _raw(self, file: Any, mode: str, closefd: bool, opener: Any) -> io.FileIO:
        injection = self
        if not isinstance(file, int):
            self.reached("open" if mode.startswith("r") else "create", file)

        class Raw(io.FileIO):
            def write(self, data: Any) -> int:
                how = injection.reached("write", file)
                if how:
                    return injection._part(how, super().write, data)
                return super().write(data)

            def readinto(self, data: Any) -> int:  # type: ignore[override]
                injection.reached("read", file)
                return int(super().readinto(data) or 0)

            def readall(self) -> bytes:
                injection.reached("read", file)
                return super().readall() or b""

        raw = Raw(file, mode.replace("t", "").replace("b", ""), closefd, opener)
        self._handles.add(raw.fileno())
        return raw


def fitting(calls: list[tuple[str, str]]) -> Iterator[tuple[int, str, str]]:
    """Every call with each fault that it can have: its number, the fault, and what it was."""
    for number, (kind, name) in enumerate(calls, 1):
        for fault in FAULTS:
            if kind in _FITTING[fault]:
                yield number, fault, f"{kind} {name}"
