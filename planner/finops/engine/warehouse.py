"""Any DB-API connection: the queries in the warehouse's own SQL, with the view `focus` in front of each.

Nothing is created there: reading the billing table is the only right that is needed.
"""

from __future__ import annotations

import csv
import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner.finops.engine.base import Parameter
from planner.finops.engine.dialects import bind, checked_text

if TYPE_CHECKING:
    import pandas as pd

_DRIVERS = Path(__file__).resolve().parents[1] / "data" / "connections.csv"


class WarehouseEngine:
    """A warehouse behind a DB-API or ADBC connection.

    Attributes:
        name, dialect: of the warehouse (`bigquery`).
        views: name -> query in DuckDB's dialect, put in front of the queries that use it.
    """

    def __init__(self, name: str, connection: Any) -> None:
        self.name = self.dialect = name
        self.views: dict[str, str] = {}
        self._connection = connection

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the columns of a table.

        Raises:
            InputError: there is no such table, or it may not be read.
        """
        _, names = self._execute(f"SELECT * FROM {table_name(table, self.dialect)} WHERE 1 = 0")
        return names

    def query(self, sql: str, parameters: Mapping[str, Parameter] | None = None) -> pd.DataFrame:
        """Run one query; see `Engine.query`."""
        import pandas as pd

        tree = with_views(bind(sql, parameters or {}), self.views)
        rows, names = self._execute(checked_text(tree, self.dialect))
        if len(tree.named_selects) == len(names) and "*" not in tree.named_selects:
            names = tuple(tree.named_selects)  # as written: some warehouses answer in capitals
        frame = pd.DataFrame([tuple(row) for row in rows], columns=list(names))
        for name in frame.columns:  # exact decimals become what DuckDB gives
            if frame[name].map(type).map(lambda kind: kind.__name__).eq("Decimal").any():
                frame[name] = frame[name].astype("float64")
        return frame

    def keep(self, name: str, sql: str, parameters: Mapping[str, Parameter] | None = None) -> None:
        """Put a query in front of those that use its rows; see `Engine.keep`. Nothing is created there."""
        self.views[name] = with_views(bind(sql, parameters or {}), self.views).sql("duckdb")

    def _execute(self, text: str) -> tuple[list[Any], tuple[str, ...]]:
        cursor = self._connection.cursor()
        try:
            cursor.execute(text)
            return list(cursor.fetchall()), tuple(str(column[0]) for column in cursor.description or ())
        except Exception as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(f"{self.name} refuses the query: {first}") from error
        finally:
            cursor.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def with_views(tree: Any, views: Mapping[str, str]) -> Any:
    """Return a parsed query with the views it uses as its first common table expressions."""
    from sqlglot import exp, parse_one

    used = {table.name.casefold() for table in tree.find_all(exp.Table)}
    own = [name for name in views if name.casefold() in used]
    if not own:
        return tree
    tree = tree.copy()
    before = [cte.copy() for cte in tree.ctes]
    if before:
        tree.set("with_" if "with_" in tree.args else "with", None)
    for name in own:
        tree = tree.with_(name, as_=parse_one(views[name], read="duckdb"), copy=False)
    for cte in before:
        tree = tree.with_(cte.alias, as_=cte.this, copy=False)
    return tree


def open_connection(engine: str, connection: Any) -> Any:
    """Return a DB-API connection.

    Args:
        engine: name of the warehouse.
        connection: an open connection; `module:function`, the user's own function that returns one (looked for in
            the working folder too); or a URL for a driver of `planner/finops/data/connections.csv`.

    Raises:
        InputError: nothing was given, or it does not lead to a connection. URLs are never shown.
    """
    if connection is None:
        raise InputError(
            f"--engine {engine} needs --connection: module:function that returns a DB-API connection, or a URL"
        )
    if not isinstance(connection, str):
        return connection
    if "://" in connection:
        drivers = {row["engine"]: row for row in _drivers()}
        if engine not in drivers:
            known = ", ".join(sorted(drivers))
            raise InputError(f"a URL is understood for {known}; for {engine} give module:function")
        row = drivers[engine]
        return _call(row["module"], row["function"], (connection,), f"pip install {row['package']}")
    module, _, function = connection.partition(":")
    if not function:
        raise InputError(f"--connection {connection}: write module:function, or a URL")
    return _call(module, function, (), "the module must be importable from here")


def _call(module: str, function: str, arguments: tuple[str, ...], remedy: str) -> Any:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        made = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise InputError(f"--connection: no {module}:{function} ({type(error).__name__}); {remedy}") from None
    try:
        return made(*arguments)
    except Exception as error:  # noqa: BLE001  the user's own code or a driver
        raise InputError(f"--connection: {module}:{function} fails: {type(error).__name__}") from None


def _drivers() -> list[dict[str, str]]:
    with _DRIVERS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table_name(name: str, dialect: str = "duckdb") -> str:
    """Return a table's name, whose parts are parted by dots, quoted in a dialect.

    Raises:
        InputError: it has no name's form.
    """
    from sqlglot import exp

    parts = [exp.to_identifier(part, quoted=True) for part in name.split(".")]
    if not 1 <= len(parts) <= 3 or not all(name.split(".")):
        raise InputError(f"{name!r} is no table: write table, schema.table or catalog.schema.table")
    catalog, schema, table = [None] * (3 - len(parts)) + parts
    return exp.Table(this=table, db=schema, catalog=catalog).sql(dialect)
