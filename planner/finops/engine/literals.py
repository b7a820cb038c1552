"""Parameters put into a query of DuckDB's dialect as literals, without reading its syntax.

To read 33 queries and to write them again takes 2 CPU s of a first review, and DuckDB reads them itself. A lexer tells
a parameter from a text, a quoted name and a comment, and what is put in its place is one token, or the few around it
that a parameter with several texts repeats. Whatever it does not know goes through `dialects`: the result is the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from planner.finops.engine import dialects

if TYPE_CHECKING:
    from planner.finops.engine.base import Parameter

_TOKEN = re.compile(
    r"""(?P<text>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")*")|(?P<comment>--[^\r\n]*)|::|:(?P<name>[^\W\d]\w*)""",
    re.VERBOSE,
)
# What else a text may begin with, statements besides one SELECT, and what other engines lack: `dialects` refuses it.
_TO_READ = re.compile(
    r"""['";$?]|/\*|\b(?:qualify|group\s+by\s+all|insert|update|delete|merge|create|copy)\b""", re.IGNORECASE
)
_SELECT = re.compile(r"\s*(?:select|with)\b", re.IGNORECASE)
_PREFIXED = re.compile(r"\w\Z")  # E'a\'b', X'00': a text by other rules
# before a colon: e:a, 'key':a and x[1:a] are no parameters, and E'...' would follow other rules
_TOUCHES = re.compile(r"[\w'\")\]}:]")
_LIST = re.compile(r"\bIN\s*\(\s*\Z", re.IGNORECASE)
_PATH = re.compile(r"\bJSON_EXTRACT_STRING\(\s*([A-Za-z_][\w.]*)\s*,\s*\Z", re.IGNORECASE)
# `a || x LIKE :p` and `x LIKE :p || '%'` are other patterns: what stands around one must bind less than LIKE
_LIKE = re.compile(
    r"(?:\(|,|\b(?:WHERE|AND|OR|NOT|ON|WHEN|HAVING)\s)\s*(?!NOT\b)([A-Za-z_][\w.]*)\s+LIKE\s+\Z",
    re.IGNORECASE,
)
_AFTER_LIKE = re.compile(r"\s*(?:[),]|(?:AND|OR|THEN|AS|GROUP|ORDER|HAVING)\b|\Z)", re.IGNORECASE)
_END = re.compile(r"\s*\)")
_Split = tuple[tuple[str, ...], tuple[str, ...]]


def duckdb_text(sql: str, parameters: Mapping[str, Parameter], *, tries_json: bool = False) -> str:
    """Return a query's text with its parameters put in: the query that `dialects.bound_text` gives, spelled as it is.

    Raises:
        InputError: as of `dialects.bound_text`.
    """
    split = None if tries_json else _split(sql)
    written = _written(split, parameters) if split and set(split[1]) == parameters.keys() else None
    return dialects.bound_text(sql, parameters, tries_json=tries_json) if written is None else written


def parameter_names(sql: str) -> tuple[str, ...]:
    """Return the names of a query's parameters, sorted.

    Raises:
        InputError: as of `dialects.parameter_names`.
    """
    split = _split(sql)
    return dialects.parameter_names(sql) if split is None else tuple(sorted(set(split[1])))


@lru_cache(maxsize=512)
def _split(sql: str) -> _Split | None:
    """The text before, between and after the parameters, and their names; None where the syntax must be read."""
    pieces, names, others = [""], list[str](), list[str]()
    end = 0
    for token in _TOKEN.finditer(sql):
        plain = sql[end : token.start()]
        if token["text"] and _PREFIXED.search(plain):
            return None
        others.append(plain)
        pieces[-1] += plain
        end = token.end()
        if token["name"]:
            if _TOUCHES.match(sql, token.start() - 1) or sql[end : end + 1] in ("'", '"'):
                return None
            names.append(token["name"])
            pieces.append("")
        elif not token["comment"]:
            pieces[-1] += token[0]
    others.append(sql[end:])
    pieces[-1] += sql[end:]
    if any(map(_TO_READ.search, others)) or not _SELECT.match(pieces[0]):
        return None
    return tuple(pieces), tuple(names)


def _written(split: _Split, parameters: Mapping[str, Parameter]) -> str | None:
    pieces, out = list(split[0]), list[str]()
    for number, name in enumerate(split[1]):
        value = parameters[name]
        if isinstance(value, tuple):
            spelled = _spellings(pieces[number], value, pieces[number + 1])
            if spelled is None:
                return None
            before, pieces[number + 1] = spelled
            out.append(before)
        elif (literal := _literal(value)) is None:
            return None
        else:
            out += [pieces[number], literal]
    return "".join([*out, pieces[-1]])


def _spellings(before: str, texts: tuple[str, ...], after: str) -> tuple[str, str] | None:
    """The text up to a parameter with several texts, which are put in, and after it; None where it stands elsewhere."""
    quoted, end = [_quoted(text) for text in texts], _END.match(after)
    if _LIST.search(before) and end:
        return before + ", ".join(quoted), after
    if (path := _PATH.search(before)) and end:
        values = (f"NULLIF(TRIM(JSON_EXTRACT_STRING({path[1]}, {text})), '')" for text in quoted)
        return f"{before[: path.start()]}COALESCE({', '.join(values)})", after[end.end() :]
    if texts and (like := _LIKE.search(before)) and _AFTER_LIKE.match(after):
        return f"{before[: like.start(1)]}({' OR '.join(f'{like[1]} LIKE {text}' for text in quoted)})", after
    return None


def _literal(value: Parameter) -> str | None:
    """One literal, as `dialects` writes it; None of what only `dialects` knows."""
    kind = type(value)
    if kind is str:
        return _quoted(str(value))
    if value is None or kind is bool:
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]  # type: ignore[index]
    if isinstance(value, datetime):
        return f"CAST({_quoted(value.isoformat(sep=' '))} AS TIMESTAMP)"
    if isinstance(value, date):
        return f"CAST({_quoted(value.isoformat())} AS DATE)"
    if kind is int:
        return f"({value})" if value < 0 else str(value)  # type: ignore[operator]
    if kind is float and math.isfinite(value):  # type: ignore[arg-type]
        return f"CAST({value} AS DOUBLE)"
    return None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
