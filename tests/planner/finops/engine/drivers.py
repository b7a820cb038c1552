"""Databases that really run here: a PostgreSQL server of the tests' own, and drivers in an environment beside this one.

The drivers need pyarrow, with which pandas stores texts in another way, and hundreds of megabytes: they are no part of
the tests' environment. PLANNER_WAREHOUSE_PYTHON names an interpreter with them:

    python -m venv DIR && DIR/bin/pip install 'psycopg[binary]' adbc-driver-postgresql chdb
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pickle
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

# read before fixtures clear the environment
PYTHON = os.environ.get("PLANNER_WAREHOUSE_PYTHON") or sys.executable
REQUIRED = os.environ.get("PLANNER_REQUIRE_POSTGRES") == "1"
_SERVER = Path(__file__).with_name("driver_server.py")
_ACCOUNTS = ("postgres", "nobody")  # PostgreSQL does not start for root


class Driver:
    """A DB-API connection of another interpreter, as far as the planner uses one."""

    def __init__(self, module: str, function: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [PYTHON, str(_SERVER), module, function, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def cursor(self) -> _Cursor:
        return _Cursor(self)

    def ask(self, text: str) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
        """Run one statement."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump(text, self._process.stdin)
        self._process.stdin.flush()
        answer = pickle.load(self._process.stdout)
        if isinstance(answer, str):
            raise RuntimeError(answer)
        names, rows = answer
        return names, rows

    def close(self) -> None:
        """End the other process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


class _Cursor:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.description: list[tuple[str, str]] = []
        self._rows: list[tuple[Any, ...]] = []

    def execute(self, text: str) -> None:
        self.description, self._rows = self._driver.ask(text)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows

    def close(self) -> None: ...


@lru_cache(maxsize=8)
def has_driver(module: str) -> bool:
    """Whether the interpreter beside has a module."""
    if sys.executable == PYTHON:
        return importlib.util.find_spec(module) is not None
    done = subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False)
    return done.returncode == 0


def need_driver(module: str) -> None:
    """Skip the tests where there is no driver; fail them where PostgreSQL is required."""
    if not has_driver(module):
        _lacking(f"PLANNER_WAREHOUSE_PYTHON names no interpreter with {module}")


def _lacking(why: str) -> None:
    if REQUIRED:
        pytest.fail(f"PLANNER_REQUIRE_POSTGRES=1, but {why}")
    pytest.skip(f"{why}; see tests/planner/finops/engine/drivers.py")


def _binaries() -> Path | None:
    """The folder of the newest PostgreSQL: Debian keeps its programs out of PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    program = shutil.which("initdb")
    return found[-1].parent if found else Path(program).parent if program else None


@dataclass(frozen=True)
class Server:
    """A running server: its address as libpq reads it, and a folder whose files it can read."""

    address: str
    folder: Path


@contextlib.contextmanager
def postgres_server() -> Iterator[Server]:
    """A PostgreSQL server on a socket of its own, whose sessions are in New York unless they say otherwise."""
    binaries = _binaries()
    if binaries is None:
        _lacking("PostgreSQL is not installed (apt-get install postgresql)")
    assert binaries is not None
    account = _account()
    # a socket's path has at most 107 bytes, and pytest's folders are closed to other accounts
    folder = Path(tempfile.mkdtemp(prefix="planner-pg-", dir="/tmp"))
    try:
        if account is not None:
            shutil.chown(folder, account)
        data, started = folder / "data", {"user": account, "cwd": "/", "stdout": subprocess.DEVNULL}
        initdb = [
            binaries / "initdb",
            "-D",
            data,
            "-U",
            "planner",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]
        subprocess.run(initdb, check=True, **started)  # type: ignore[call-overload]
        settings = (
            "listen_addresses=",
            "fsync=off",
            "autovacuum=off",
            "jit=off",
            "timezone=America/New_York",
        )
        options = [word for setting in settings for word in ("-c", setting)]
        server = subprocess.Popen(  # type: ignore[call-overload]
            [binaries / "postgres", "-D", data, "-k", folder, *options], stderr=subprocess.DEVNULL, **started
        )
        try:
            _wait(binaries, folder, server)
            yield Server(f"postgresql://planner@/postgres?host={folder}", folder)
        finally:
            server.send_signal(2)  # fast: sessions end, the server with them
            server.wait(60)
    finally:
        shutil.rmtree(folder)


def _account() -> str | None:
    """Who runs the server; None is who runs the tests."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in _ACCOUNTS if name in known), None)


def _wait(binaries: Path, folder: Path, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while subprocess.run([binaries / "pg_isready", "-q", "-h", folder], check=False).returncode != 0:
        assert server.poll() is None, "PostgreSQL ended while it started"
        assert time.monotonic() < deadline, "PostgreSQL does not start"
        time.sleep(0.1)
