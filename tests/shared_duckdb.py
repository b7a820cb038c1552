"""One DuckDB for all bills that tests open, a database in it for each: one of its own starts in 15 ms.

That is as long as three queries of a small bill take. What is set for the whole of it, memory and threads, is set anew
at each opening; tests about memory, disk and what else it holds ask for one of their own (`own_duckdb`).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb

from planner.finops.engine.duckdb import MEMORY_LIMIT

Connect = Callable[..., Any]


@functools.lru_cache(256)
def _parsed(query: str) -> Any:
    """The query as a statement, where it is one."""
    statements = duckdb.extract_statements(query)
    return statements[0] if len(statements) == 1 else query


class _Database:
    """A connection to a database of its own, which goes when it is closed."""

    def __init__(self, instance: duckdb.DuckDBPyConnection, name: str) -> None:
        self._connection, self._name = instance.cursor(), name
        self._connection.execute(f"ATTACH ':memory:' AS {name}; USE {name}")

    def execute(self, query: Any, *args: Any) -> Any:
        """As DuckDB's own; what many bills are asked is parsed once, a tenth of what a query of a small bill takes."""
        return self._connection.execute(_parsed(query) if isinstance(query, str) else query, *args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def __del__(self) -> None:
        """What is no longer used is closed, as DuckDB's own is."""
        self.close()

    def close(self) -> None:
        """Close the connection; a second time nothing happens, as with DuckDB's own."""
        with contextlib.suppress(duckdb.ConnectionException):
            self._connection.execute(f"USE memory; DETACH {self._name}")
            self._connection.close()


@contextlib.contextmanager
def shared_duckdb(folder: Path, connect: Connect = duckdb.connect) -> Iterator[None]:
    """Let engines of bills connect to one instance within, which spills to `folder`."""
    numbers, instances = itertools.count(), list[Any]()

    def asked(*args: Any, config: Mapping[str, Any] | None = None, **given: Any) -> Any:
        if args or not config or config.get("memory_limit") != MEMORY_LIMIT:
            return connect(*args, config=config or {}, **given)
        if not instances:
            instances.append(connect(config={**config, "temp_directory": str(folder)}))
            # files of tests change under their names
            instances[0].execute("SET enable_external_file_cache = false")
        for name in ("memory_limit", "threads"):
            instances[0].execute(f"SET {name} = '{config[name]}'")
        instances[0].execute("SET disabled_optimizers = ''")
        return _Database(instances[0], f"bill_{next(numbers)}")

    with mock.patch("duckdb.connect", asked):
        yield


@contextlib.contextmanager
def own_duckdb(connect: Connect = duckdb.connect) -> Iterator[None]:
    """Let each engine within have a DuckDB of its own."""
    with mock.patch("duckdb.connect", connect):
        yield
