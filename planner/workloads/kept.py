"""Answers kept for the next time that the same is asked (docs/adr/0018): the plan, with all that it was read from.

A kept plan is shown while everything that it follows from is as it was: the arguments, the environment, the program
and its data, and every file and folder that was read for it (`planner.files.opened`). The minute of the question is one
of these. A question that names its day (`--as-of`) asks for the same minute each time; any other asks, for a few
minutes, that of the first time, so what is shown is what was true then, to the byte.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from catalogs.cache.copies import cache_directory, open_copy, write_copy
from planner.files.opened import Reading, are_as_told
from planner.plan.model import Plan
from planner.startup import is_interrupted
from planner.version import __version__

if TYPE_CHECKING:
    from planner.asked.options import Options

MAX_COPIES = 128
MAX_BYTES = 4 << 20
_PREFIX = "answer-1-"
_ROOT = Path(__file__).parents[2]
PACKAGES = tuple(_ROOT / name for name in ("catalogs", "planner", "solvers"))
# what else of the environment an answer may follow from: where files lie, how numpy and the solvers compute
_VARIABLES = ("PLANNER_", "XDG_", "HOME", "USERPROFILE", "NPY_", "OPENBLAS_", "OMP_", "MKL_", "PYTHON", "TZ")
_SUM_BYTES = 32


class KeptAnswer:
    """The place of one question's answer.

    Attributes:
        plan: the answer, where it was kept and is still true.
        asked_at: the moment that it is of; that of the question where there is none.
    """

    def __init__(self, arguments: Mapping[str, object], now: datetime, within: timedelta | None) -> None:
        """Look for the answer.

        Args:
            arguments: all that the question says.
            now: its moment.
            within: longest time since the moment that an answer is of; None: the question names its moment.

        Raises:
            OSError: the program's own files cannot be listed, or the current folder is gone.
        """
        self._key = _key(arguments, now if within is None else None)
        self._path = cache_directory() / f"{_PREFIX}{self._key[:40]}.json"
        self.asked_at = now
        self.plan = self._read(now, within)
        self._reading: Reading | None = None

    def watch(self) -> None:
        """Where there is no answer, note from here on what is read to find it, so that it can be kept.

        To be called once the planner is imported: what imports read is the program's own, of which the key keeps track,
        and hundreds of files that need no notes.
        """
        if self.plan is None:
            self._reading = Reading()

    def _read(self, now: datetime, within: timedelta | None) -> Plan | None:
        # A copy may be damaged in any way; every failure to read it means only that it is not used.
        with contextlib.suppress(Exception), open_copy(self._path) as file:
            data = file.read(MAX_BYTES + 1)
            if _sum(self._key, data[_SUM_BYTES:]) != data[:_SUM_BYTES]:
                return None
            kept = json.loads(data[_SUM_BYTES:])
            asked_at = datetime.fromisoformat(kept["asked_at"])
            age = now - asked_at
            if not timedelta() <= age <= (within or timedelta()) or not are_as_told(kept["read"]):
                return None
            plan = Plan.from_dict(kept["plan"], str(self._path))
            self.asked_at = asked_at
            return plan
        return None

    def keep(self, plan: Plan, options: Options) -> None:
        """Keep the answer found since `watch`, unless something that it follows from may differ the next time."""
        if self._reading is None:
            return
        read = self._reading.states(apart_from=PACKAGES)
        if read is None or not _is_repeatable(plan, options):
            return
        body = json.dumps(
            {"asked_at": options.now.isoformat(), "read": read, "plan": plan.to_dict()}
        ).encode()
        data = _sum(self._key, body) + body
        if len(data) <= MAX_BYTES:
            write_copy(
                self._path,
                lambda file: file.write(data),
                pattern=f"{_PREFIX}*.json",
                most=MAX_COPIES,
                mode=0o600,
            )


def _is_repeatable(plan: Plan, options: Options) -> bool:
    """Whether neither a clock nor Ctrl-C had a part in it: the next time, the search of a fleet may get further.

    Each step of that search may take at least a quarter of the time that is left; one that took a tenth in all met no
    limit.
    """
    if is_interrupted():
        return False
    if plan.kind != "fleet":
        return options.solver == "enumerate"
    return plan.proof is not None and plan.proof.seconds < options.time_limit_s / 10.0


def _key(arguments: Mapping[str, object], moment: datetime | None) -> str:
    """Hash over what the answer follows from beside files that the workload names."""
    digest = hashlib.sha256(
        repr((__version__, sys.version, sys.flags, sys.path, platform.node(), platform.machine())).encode()
    )
    digest.update(repr((sorted(arguments.items()), moment, os.getcwd())).encode())  # noqa: PTH109 - the text alone
    digest.update(
        repr(sorted(item for item in os.environ.items() if item[0].startswith(_VARIABLES))).encode()
    )
    digest.update(repr(_program()).encode())
    return digest.hexdigest()


def _program() -> list[tuple[str | int, ...]]:
    """The program's files as git's index knows files, and the folders in which libraries come and go.

    More than Python asks before it takes compiled code: not size and time of writing alone, but the time of the last
    change of any kind, which no tool can set, and the file's number.

    Raises:
        OSError: a folder cannot be listed.
    """
    files: list[tuple[str | int, ...]] = []
    folders = [str(package) for package in PACKAGES]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    files.append((entry.path, *_identity(entry.path)))
                elif entry.name != "__pycache__":
                    folders.append(entry.path)
    files.sort()
    files += [(path, *_identity(path)) for path in sys.path if path.endswith("-packages")]
    return files


def _identity(path: str) -> tuple[int, ...]:
    """Of a link that leads nowhere, or a file that is gone: nothing."""
    try:
        about = os.stat(path)  # noqa: PTH116 - thousands of them
    except OSError:
        return ()
    return about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino


def _sum(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + body).digest()
