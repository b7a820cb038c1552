"""What a dialect lacks, written in what it has, where sqlglot's own text would be refused or mean something else.

One table, `_REWRITES`: dialect -> rewrites of a syntax tree, in this order. Everything else is sqlglot's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlglot import exp

    _Rewrite = Callable[[exp.Expression], exp.Expression]

# A number that PostgreSQL's cast accepts and that fits into a double; NaN and infinity are no amounts.
_NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?\s*$"


def portable(tree: exp.Query, dialect: str) -> exp.Query:
    """Return a query with what a dialect lacks written in what it has.

    Args:
        tree: parsed from DuckDB's dialect; it is not changed.
        dialect: one of `DIALECTS`.
    """
    from sqlglot import exp

    out: Any = tree
    for rewrite in _REWRITES.get(dialect, ()):
        out = out.transform(rewrite)
    assert isinstance(out, exp.Query)  # rewrites are of expressions
    return out


def _json_of_text(node: exp.Expression) -> exp.Expression:
    """Read JSON out of a text: `json_extract_path_text` takes no text, and an empty one is not JSON."""
    from sqlglot import exp

    if isinstance(node, exp.JSONExtractScalar):
        own = node.this
        node.set("this", exp.cast(exp.Nullif(this=own, expression=exp.Literal.string("")), "JSON"))
    return node


def _number_by_pattern(node: exp.Expression) -> exp.Expression:
    """Write `TRY_CAST(text AS DOUBLE)` where a cast of what is not a number ends the query."""
    from sqlglot import exp

    if not isinstance(node, exp.TryCast):
        return node
    fits = exp.RegexpLike(this=node.this.copy(), expression=exp.Literal.string(_NUMBER))
    return exp.Case().when(fits, exp.cast(node.this, node.to))


def _try_of_text(node: exp.Expression) -> exp.Expression:
    """Say that what is tried is a text: of other types TRY_CAST is refused, and sqlglot writes a plain cast."""
    from sqlglot import exp

    if isinstance(node, exp.TryCast) and not isinstance(node.this, exp.Cast):
        node.set("this", exp.cast(node.this, "VARCHAR"))
    return node


def _json_or_null(node: exp.Expression) -> exp.Expression:
    """Look a key up so that one that lacks is NULL, and what is no text is read as it stands."""
    from sqlglot import exp

    if not isinstance(node, exp.JSONExtractScalar):
        return node
    steps = [
        exp.Literal.number(step.this + 1)
        if isinstance(step, exp.JSONPathSubscript)
        else exp.Literal.string(step.this)
        for step in node.expression.expressions
        if not isinstance(step, exp.JSONPathRoot)
    ]
    kind = exp.Literal.string("Nullable(String)")
    return exp.Anonymous(this="JSONExtract", expressions=[node.this, *steps, kind])


def _number_or_null(node: exp.Expression) -> exp.Expression:
    """Write `TRY_CAST(text AS DOUBLE)` where a cast of what is not a number ends the query."""
    from sqlglot import exp

    if isinstance(node, exp.TryCast):
        return exp.Anonymous(this="toFloat64OrNull", expressions=[exp.Trim(this=node.this)])
    return node


_REWRITES: Mapping[str, tuple[_Rewrite, ...]] = {
    "clickhouse": (_number_or_null, _json_or_null),
    "postgres": (_number_by_pattern, _json_of_text),
    "snowflake": (_try_of_text,),
}
