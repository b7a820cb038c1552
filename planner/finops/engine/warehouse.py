"""Any DB-API connection: the queries in the warehouse's own SQL, with the view `focus` in front of each.

Nothing is created there: reading the billing table is the only right that is needed.
"""

from __future__ import annotations

import csv
import importlib
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner.finops.engine.base import Parameter
from planner.finops.engine.dialects import bind, checked_text

if TYPE_CHECKING:
    import pandas as pd

_DATA = Path(__file__).resolve().parents[1] / "data"
_DRIVERS = _DATA / "connections.csv"
_SESSIONS = (
    _DATA / "sessions.csv"
)  # how a session is told to count days in UTC; the others have no such setting


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
        # moments of a bill are UTC: in a session elsewhere charges move into other days and months
        for row in _rows_of(_SESSIONS):
            if row["engine"] == name:
                self._execute(row["statement"], answers=False)

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the columns of a table.

        Raises:
            InputError: there is no such table, or it may not be read.
        """
        _, described = self._execute(f"SELECT * FROM {table_name(table, self.dialect)} WHERE 1 = 0")
        return tuple(name for name, _ in described)

    def query(self, sql: str, parameters: Mapping[str, Parameter] | None = None) -> pd.DataFrame:
        """Run one query; see `Engine.query`."""
        import pandas as pd

        tree = with_views(bind(sql, parameters or {}), self.views)
        rows, described = self._execute(checked_text(tree, self.dialect))
        names = tuple(name for name, _ in described)
        if len(tree.named_selects) == len(names) and "*" not in tree.named_selects:
            names = tuple(tree.named_selects)  # as written: some warehouses answer in capitals
        columns = zip(*rows, strict=True) if rows else ((),) * len(names)
        types = (kind for _, kind in described)
        return pd.DataFrame(
            {n: _column(cells, kind) for n, cells, kind in zip(names, columns, types, strict=True)}
        )

    def keep(self, name: str, sql: str, parameters: Mapping[str, Parameter] | None = None) -> None:
        """Put a query in front of those that use its rows; see `Engine.keep`. Nothing is created there."""
        self.views[name] = with_views(bind(sql, parameters or {}), self.views).sql("duckdb")

    def _execute(self, text: str, *, answers: bool = True) -> tuple[list[Any], tuple[tuple[str, str], ...]]:
        """Run a statement: its rows, and the name and the driver's own type of each column."""
        cursor = self._connection.cursor()
        try:
            cursor.execute(text)
            if not answers:
                return [], ()
            described = tuple((str(column[0]), str(column[1:2])) for column in cursor.description or ())
            return list(cursor.fetchall()), described
        except Exception as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(f"{self.name} refuses the query: {first}") from error
        finally:
            cursor.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _column(cells: Sequence[Any], kind: str) -> pd.Series[Any]:
    """A column as DuckDB gives it: exact decimals are numbers, days are moments, and moments are of UTC.

    Args:
        cells: of the column.
        kind: the driver's type of it. ADBC gives PostgreSQL's exact numbers as texts of its opaque type `numeric`.
    """
    import pandas as pd

    kinds = {type(cell) for cell in cells} - {type(None)}
    if Decimal in kinds or (kinds == {str} and "type_name=numeric" in kind):
        return pd.Series([None if cell is None else float(cell) for cell in cells], dtype="float64")
    if kinds and kinds <= {date, datetime}:
        moments = pd.to_datetime(pd.Series(cells, dtype=object), utc=True)
        return moments.dt.tz_localize(None).astype("datetime64[us]")
    return pd.Series(cells, dtype=None if kinds else "float64")


def with_views(tree: Any, views: Mapping[str, str]) -> Any:
    """Return a parsed query with what it uses of the views as its first common table expressions."""
    from sqlglot import exp

    used = {table.name.casefold() for table in tree.find_all(exp.Table)}
    own = [name for name in views if name.casefold() in used]
    if not own:
        return tree
    names = _named_columns(tree)
    tree = tree.copy()
    before = [cte.copy() for cte in tree.ctes]
    if before:
        tree.set("with_" if "with_" in tree.args else "with", None)
    for name in own:
        view = _parsed_view(views[name]).copy()
        tree = tree.with_(name, as_=view if names is None else _narrowed(view, names), copy=False)
    for cte in before:
        tree = tree.with_(cte.alias, as_=cte.this, copy=False)
    return tree


@lru_cache(maxsize=64)
def _parsed_view(text: str) -> Any:
    from sqlglot import parse_one

    return parse_one(text, read="duckdb")


def _named_columns(tree: Any) -> frozenset[str] | None:
    """The columns that a query names, None where it may want all."""
    from sqlglot import exp

    stars = (star for star in tree.find_all(exp.Star) if not isinstance(star.parent, exp.Count))
    if next(stars, None) is not None or any(join.args.get("using") for join in tree.find_all(exp.Join)):
        return None
    return frozenset(column.name.casefold() for column in tree.find_all(exp.Column))


def _narrowed(view: Any, names: frozenset[str]) -> Any:
    """A view that only passes rows on, in place, with the columns that are asked of it.

    A database that keeps a common table expression works out all of its columns for each query, and a text of a hundred
    columns takes longer to write and to read than most queries to run.
    """
    from sqlglot import exp

    if isinstance(view, exp.Union) and not view.args.get("distinct"):
        _narrowed(view.left, names)
        _narrowed(view.right, names)
    if not isinstance(view, exp.Select) or view.ctes or view.args.get("group") or view.args.get("distinct"):
        return view
    kept = [item for item in view.expressions if item.is_star or item.alias_or_name.casefold() in names]
    view.set("expressions", kept or view.expressions[:1])
    passed = names if any(item.is_star for item in view.expressions) else frozenset()
    source = view.args.get("from_") or view.args.get("from")  # older sqlglot
    below = source.this if source is not None else None
    if isinstance(below, exp.Subquery) and not view.args.get("joins"):
        inner = below.this.copy()
        below.set("this", exp.Null())  # what follows are the columns that this level names
        named = frozenset(column.name.casefold() for column in view.find_all(exp.Column))
        below.set("this", _narrowed(inner, passed | named))
    return view


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
        drivers = {row["engine"]: row for row in _rows_of(_DRIVERS)}
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
        call = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise InputError(f"--connection: no {module}:{function} ({type(error).__name__}); {remedy}") from None
    try:
        return call(*arguments)
    except Exception as error:  # noqa: BLE001  the user's own code or a driver
        raise InputError(f"--connection: {module}:{function} fails: {type(error).__name__}") from None


def _rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table_name(name: str, dialect: str = "duckdb") -> str:
    """Return a table's name, whose parts are parted by dots, quoted in a dialect.

    Raises:
        InputError: it has no name's form.
    """
    from sqlglot import exp

    parts = [exp.to_identifier(part, quoted=True) for part in name.split(".")]
    if not 1 <= len(parts) <= 3 or not all(name.split(".")):
        raise InputError(f"{name!r} is not a table: write table, schema.table or catalog.schema.table")
    catalog, schema, table = [None] * (3 - len(parts)) + parts
    return exp.Table(this=table, db=schema, catalog=catalog).sql(dialect)
