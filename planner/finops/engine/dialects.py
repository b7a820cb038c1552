"""Queries in DuckDB's dialect: parameters put in as literals, and the text for other engines without loss."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner.finops.engine.portable import portable

if TYPE_CHECKING:
    from sqlglot import exp

    from planner.finops.engine.base import Parameter

DIALECT = "duckdb"
# What can be emitted. Only DuckDB and Spark are run by the test suite; the others are written and read back.
DIALECTS = (
    "duckdb",
    "spark",
    "databricks",
    "bigquery",
    "snowflake",
    "clickhouse",
    "trino",
    "athena",
    "redshift",
    "postgres",
)


def emit_sql(sql: str, dialect: str, parameters: Mapping[str, Parameter] | None = None) -> str:
    """Return a query as another engine's text, readable and checked.

    Args:
        sql: one query in DuckDB's dialect; `:name` is a parameter.
        dialect: one of `DIALECTS`.
        parameters: values of `:name`; one for each.

    Raises:
        InputError: unknown dialect, a parameter is missing or unknown, syntax that would not survive.
    """
    if dialect not in DIALECTS:
        raise InputError(f"no SQL dialect is called {dialect!r}; there are {', '.join(DIALECTS)}")
    return checked_text(bind(sql, parameters or {}), dialect)


def checked_text(tree: exp.Query, dialect: str) -> str:
    """Return a parsed query as a dialect's text that the dialect's reader understands.

    Raises:
        InputError: something in it would not survive.
    """
    from sqlglot import ErrorLevel, parse_one
    from sqlglot.errors import SqlglotError

    try:
        text: str = portable(tree, dialect).sql(dialect, pretty=True, unsupported_level=ErrorLevel.RAISE)
        parse_one(text, read=dialect)
    except SqlglotError as error:
        raise InputError(f"the query cannot be written for {dialect} without loss: {error}") from None
    return text


def parameter_names(sql: str) -> tuple[str, ...]:
    """Return the names of a query's parameters, sorted.

    Raises:
        InputError: the query cannot be read or uses what other engines lack.
    """
    from sqlglot import exp

    return tuple(sorted({str(node.this) for node in _parse(sql).find_all(exp.Placeholder)}))


def bind(sql: str, parameters: Mapping[str, Parameter]) -> exp.Query:
    """Parse a query and put its parameters in as literals; the tree is the caller's own.

    Raises:
        InputError: the query cannot be read or uses what other engines lack, or a parameter is missing or unknown.
    """
    # a JSON path is understood, and written for other engines, only where it stood in the text
    return _parse(bound_text(sql, parameters)).copy() if parameters else _bound(sql, parameters)


def bound_text(sql: str, parameters: Mapping[str, Parameter], *, tries_json: bool = False) -> str:
    """Return a query's text in DuckDB's dialect with its parameters put in as literals.

    Args:
        sql: the query.
        parameters: as of `bind`.
        tries_json: JSON that is read out of a text that is none has no value; else it ends the query.

    Raises:
        InputError: as of `bind`.
    """
    # 1, 1.0 and True are equal and written differently, and so are 0.0 and -0.0
    return _text(sql, tuple((name, repr(value), value) for name, value in parameters.items()), tries_json)


@lru_cache(maxsize=1024)  # bills of one month are asked the same
def _text(sql: str, parameters: tuple[tuple[str, str, Parameter], ...], tries_json: bool) -> str:
    tree = _bound(sql, {name: value for name, _, value in parameters})
    if tries_json:
        _try_json(tree)
    text: str = tree.sql(DIALECT, copy=False)  # the tree is nobody's after this
    return text


def _try_json(tree: exp.Query) -> None:
    from sqlglot import exp

    for node in list(tree.find_all(exp.JSONExtractScalar)):
        if node.find(exp.AggFunc, exp.Window):  # which TRY must not hold
            is_json = exp.Anonymous(this="JSON_VALID", expressions=[node.this.copy()])
            node.replace(exp.Case(ifs=[exp.If(this=is_json, true=node.copy())]))
        else:
            node.replace(exp.Anonymous(this="TRY", expressions=[node.copy()]))


def _bound(sql: str, parameters: Mapping[str, Parameter]) -> exp.Query:
    from sqlglot import exp

    tree = _parse(sql).copy()
    found = list(tree.find_all(exp.Placeholder))
    names = {str(node.this) for node in found}
    if missing := sorted(names - parameters.keys()):
        raise InputError(f"the query needs a value for :{', :'.join(missing)}")
    if unknown := sorted(parameters.keys() - names):
        known = ", ".join(f":{name}" for name in sorted(names)) or "no parameters"
        raise InputError(f"the query has no parameter :{', :'.join(unknown)}; it has {known}")
    for node in found:
        value = parameters[str(node.this)]
        if isinstance(value, tuple):
            _put_spellings(node, value)
        else:
            node.replace(_literal(value))
    return tree


@lru_cache(maxsize=512)
def _parse(sql: str) -> exp.Query:
    from sqlglot import exp, parse
    from sqlglot.errors import SqlglotError

    try:
        trees = [tree for tree in parse(_dollar_names(sql), read=DIALECT) if tree is not None]
    except SqlglotError as error:
        raise InputError(f"the query cannot be read: {error}") from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise InputError("one SELECT is needed")
    tree = trees[0]
    # sqlglot writes both for engines that have neither, without a complaint
    if any(group.args.get("all") for group in tree.find_all(exp.Group)):
        raise InputError("the query uses GROUP BY ALL, which other engines lack: name the columns")
    if tree.find(exp.Qualify):
        raise InputError("the query uses QUALIFY, which other engines lack: filter in an outer SELECT")
    return tree


def _dollar_names(sql: str) -> str:
    """Write `:name` as `$name`, DuckDB's own form; `a::date`, texts and comments stay as they are."""
    from sqlglot import TokenType
    from sqlglot.dialects.duckdb import DuckDB

    tokens = DuckDB().tokenize(sql)
    out, last = [], 0
    for colon, name in pairwise(tokens):
        if colon.token_type == TokenType.COLON and name.start == colon.end + 1 and name.text.isidentifier():
            out += [sql[last : colon.start], "$"]
            last = name.start
    return "".join([*out, sql[last:]])


def _put_spellings(node: exp.Placeholder, texts: tuple[str, ...]) -> None:
    """Put a parameter with several texts in: into an IN list, around a JSON path or a pattern of LIKE.

    Raises:
        InputError: it stands where one text is needed.
    """
    from sqlglot import exp

    around: Any = node.parent
    if isinstance(around, exp.In):
        others = [one for one in around.expressions if one is not node]
        around.set("expressions", [*others, *map(exp.Literal.string, texts)])
        return
    if not isinstance(around, exp.JSONExtractScalar | exp.Like):
        raise InputError(
            f"the query's :{node.this} is neither a JSON path nor a pattern of LIKE: give one text"
        )
    found: list[Any] = []
    for text in texts:
        spelled = around.copy()
        spelled.set(str(node.arg_key), exp.Literal.string(text))
        found.append(spelled)
    if isinstance(around, exp.Like):
        around.replace(exp.paren(exp.or_(*found)))
        return
    blank = exp.Literal.string("")
    filled = [exp.func("NULLIF", exp.Trim(this=spelled), blank.copy()) for spelled in found]
    around.replace(exp.func("COALESCE", *filled))


def _literal(value: Parameter) -> exp.Expression:
    from sqlglot import exp

    if isinstance(value, datetime):
        return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), "TIMESTAMP")
    if isinstance(value, date):
        return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
    literal: Any = exp.convert(value)
    return exp.cast(literal, "DOUBLE") if isinstance(value, float) else literal
