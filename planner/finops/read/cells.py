"""Expressions that read a text cell: numbers, moments and JSON as exports write them; NULL where it is none."""

from __future__ import annotations

from collections.abc import Sequence

from planner.finops.read.columns import Kind
from planner.records import record

# `$1,234.50` or `-$5`, `1,234.50`: a comma is a thousands mark only behind a sign of money or beside a decimal point,
# because `0,123` is a number with a decimal comma elsewhere. `1 234.50` and `1'234.50` are unambiguous. What is none of
# these stays unread and is reported.
_SIGN = "[$€£¥]"
_POINT = "([.][0-9]*)?"
_APART = "[0-9]{1,3}([ ''][0-9]{3}){1,5}"
_PLAIN = rf"([1-9][0-9]{{0,2}}(,[0-9]{{3}}){{1,5}}[.][0-9]*|({_APART}|[0-9]{{1,18}}){_POINT})"
_AMOUNT = rf"({_SIGN}\s*-?([0-9]{{1,3}}(,[0-9]{{3}}){{0,5}}|[0-9]{{1,18}}){_POINT}|{_PLAIN}\s*{_SIGN}?)"
_MONEY = rf"'^\s*-?{_AMOUNT}\s*$'"
# `(1,250.00)` is how accountants write -1,250.00, and `1,250.00-` how SAP does
_CREDIT = rf"'^\s*([(]\s*{_AMOUNT}\s*[)]|{_PLAIN}\s*{_SIGN}?-)\s*$'"
_COMMA = r"([0-9]{1,3}([. ''][0-9]{3})+|[0-9]+)(,[0-9]+)?"
_COMMAS = rf"'^\s*(-?({_SIGN}\s*)?-?{_COMMA}([eE]-?[0-9]+)?(\s*{_SIGN})?|[(]{_COMMA}[)]|{_COMMA}(\s*{_SIGN})?-)\s*$'"
_TYPED, _KEYED = (
    "−\u00a0\u202f’",
    "-  ''",
)  # signs that word processors and locales put in the place of others
TOO_LARGE = "1e18"  # no cost or quantity reaches it; NaN and infinity are above it in every engine
_ISO = r"'^\s*[0-9]{4}[-/][0-9]{2}'"
_OFFSET = r"'(:[0-9.]+)\s*[+-][0-9]{2}(:?[0-9]{2})?\s*$'"
_EPOCH = (
    r"'^\s*1[0-9]{9}([0-9]{3}){0,2}\s*$'"  # seconds, or thousandths or millionths, since 1970: up to May 2033
)
_COMPACT = r"'^\s*(19|20)[0-9]{6}\s*$'"  # 20261031
_LONG_YEAR = "'[0-9]{4}'"
_NO_DAYS = "'infinity', '-infinity', 'epoch'"  # which DuckDB takes for moments of any format
_TIMES = ("", " %H:%M", " %H:%M:%S")
_HALVES = (" %I:%M %p", " %I:%M:%S %p")  # ` 11:30 PM`
# `Oct 15, 2026`, `15-Oct-26`: Y or y follows
_NAMED = ("%b %d, %", "%B %d, %", "%b %d %", "%B %d %", "%d %b %", "%d %B %", "%d-%b-%")
_MONTH_NAMES = ("%b %Y", "%B %Y", "%Y.%m.%d", "%Y%m%dT%H%M%SZ")  # a month of an invoice is its first day


@record(frozen=True)
class Spelling:
    """How a CSV writes moments and numbers.

    Attributes:
        day_first: dates with slashes are day/month/year, not month/day/year.
        decimal_comma: numbers are written `1.234,50`, not `1,234.50`.
        own_clock: moments are written with an offset from UTC, and days and months are those of that clock.
    """

    day_first: bool = False
    decimal_comma: bool = False
    own_clock: bool = False


USUAL = Spelling()


def read_cell(cell: str, kind: Kind, spelling: Spelling = USUAL) -> str:
    """Return the DuckDB expression of a text cell's value.

    Args:
        cell: expression of the text.
        kind: what it holds. Moments without an offset are UTC; dates with dots are day.month.year.
        spelling: how the file writes it.
    """
    if kind == "number" and spelling.decimal_comma:
        keyed = f"TRANSLATE({cell}, '{_TYPED}', '{_KEYED}')"
        bare = f"REGEXP_REPLACE(REPLACE({keyed}, '(', '-'), '[$€£¥.)\\s'']', '', 'g')"  # `(5,00)` is -5,00
        bare = f"REGEXP_REPLACE({bare}, '^([^-]*)-$', '-\\1')"
        swapped = f"TRY_CAST(REPLACE({bare}, ',', '.') AS DOUBLE)"
        return f"CASE WHEN REGEXP_MATCHES({keyed}, {_COMMAS}) AND ABS({swapped}) < {TOO_LARGE} THEN {swapped} END"
    if kind == "number":
        keyed = f"TRANSLATE({cell}, '{_TYPED}', '{_KEYED}')"
        stripped = f"REGEXP_REPLACE({keyed}, '[$€£¥,\\s'']', '', 'g')"
        credit = f"-TRY_CAST(REGEXP_REPLACE({stripped}, '[()]|-$', '', 'g') AS DOUBLE)"
        money = (
            f"CASE WHEN REGEXP_MATCHES({keyed}, {_MONEY}) THEN TRY_CAST({stripped} AS DOUBLE) "
            f"WHEN REGEXP_MATCHES({keyed}, {_CREDIT}) THEN {credit} END"
        )
        value = f"TRY_CAST({cell} AS DOUBLE)"
        return f"CASE WHEN ABS({value}) < {TOO_LARGE} THEN {value} ELSE {money} END"
    if kind == "moment":
        padded = f"TRY_CAST(TRIM({cell}) AS TIMESTAMPTZ)"  # `2026-10-01 ` is no moment to DuckDB
        month = f"TRY_CAST(TRIM({cell}) || '-01' AS TIMESTAMPTZ)"  # `2026-10`, of an invoice
        iso = f"COALESCE(TRY_CAST({cell} AS TIMESTAMPTZ), {padded}, {month}) AT TIME ZONE 'UTC'"
        if spelling.own_clock:
            iso = f"TRY_CAST(REGEXP_REPLACE({cell}, {_OFFSET}, '\\1') AS TIMESTAMP)"
        date = "%d/%m/%" if spelling.day_first else "%m/%d/%"
        timed = [f"{date}Y{time}" for time in (*_TIMES, *_HALVES)] + [f"%d.%m.%Y{time}" for time in _TIMES]
        long = _moments(cell, [*timed, *(f"{one}Y" for one in _NAMED), *_MONTH_NAMES])
        # `%Y` would read 26 as a year of its own
        dated = [f"{date}y{time}" for time in (*_TIMES, *_HALVES)]
        short = _moments(cell, [*dated, "%d.%m.%y", *(f"{one}y" for one in _NAMED)])
        return (
            f"CASE WHEN REGEXP_MATCHES({cell}, {_ISO}) THEN {iso} "
            f"WHEN REGEXP_MATCHES({cell}, {_EPOCH}) THEN MAKE_TIMESTAMP(CAST(RPAD(TRIM({cell}), 16, '0') AS BIGINT)) "
            f"WHEN REGEXP_MATCHES({cell}, {_COMPACT}) THEN TRY_STRPTIME(TRIM({cell}), '%Y%m%d') "
            f"WHEN REGEXP_MATCHES({cell}, {_LONG_YEAR}) THEN {long} "
            f"WHEN LOWER(TRIM({cell})) NOT IN ({_NO_DAYS}) THEN {short} END"
        )
    if kind == "json":
        return f"CASE WHEN JSON_VALID({cell}) THEN {cell} END"
    return cell


def _moments(cell: str, formats: Sequence[str]) -> str:
    listed = ", ".join(f"'{one}'" for one in formats)
    return f"TRY_STRPTIME(TRIM({cell}), [{listed}])"


NUMBERS = {"double", "float", "decimal"} | {
    f"{sign}{name}" for sign in ("", "u") for name in ("tinyint", "smallint", "integer", "bigint", "hugeint")
}
# DuckDB's names of types that hold a time of day; pandas writes nanoseconds
TYPED_MOMENTS = frozenset(
    ("timestamp", "timestamp with time zone", "timestamp_s", "timestamp_ms", "timestamp_ns")
)
_MOMENTS = TYPED_MOMENTS | {"date"}


def is_number(value: str) -> str:
    """Return the condition that a typed cell holds an amount that can be."""
    return f"ABS(CAST({value} AS DOUBLE)) < {TOO_LARGE}"


def entries_map(value: str) -> str:
    """Return the expression of a map of a list of key and value pairs; of a key given twice the first counts."""
    keys = f"LIST_TRANSFORM({value}, LAMBDA pair: pair.key)"
    is_first = f"pair.key IS NOT NULL AND LIST_POSITION({keys}, pair.key) = place"
    first = f"LIST_FILTER({value}, LAMBDA pair, place: {is_first})"
    return f"MAP_FROM_ENTRIES(LIST_TRANSFORM({first}, LAMBDA pair: {{'key': pair.key, 'value': pair.value}}))"


def pairs_map(cell: str) -> str:
    """Return the expression of a JSON object of a JSON list of key and value pairs, NULL where the text is none."""
    entries = f"TRY_CAST(TRY_CAST({cell} AS JSON) AS STRUCT(key VARCHAR, value VARCHAR)[])"
    nameless = f"LEN(LIST_FILTER({entries}, LAMBDA pair: pair.key IS NULL))"
    return f"CASE WHEN {nameless} = 0 THEN CAST(TO_JSON({entries_map(entries)}) AS VARCHAR) END"


def tags_text(cell: str, value: str) -> str:
    """Return the expression of tags in a text cell; they may be a list, as BigQuery's TO_JSON_STRING writes them."""
    return f"CASE WHEN {value} LIKE '[%' THEN {pairs_map(cell)} ELSE {value} END"


def read_typed(
    value: str,
    type_name: str,
    kind: Kind,
    *,
    entries: bool = False,
    checked: bool = False,
    spelling: Spelling = USUAL,
) -> str:
    """Return the expression of a typed value of a Parquet or JSON file.

    Args:
        value: expression of the value.
        type_name: DuckDB's name of its type, without parameters (`decimal`, `map`).
        kind: what it holds.
        entries: it is a list of key and value pairs.
        checked: numbers that cannot be, NaN among them, become NULL.
        spelling: of text.
    """
    if type_name == "varchar":
        return read_cell(f"NULLIF({value}, '')", kind, spelling)
    if kind == "number" and type_name in NUMBERS:
        number = value if type_name == "double" else f"CAST({value} AS DOUBLE)"
        return f"CASE WHEN {is_number(value)} THEN {number} END" if checked else number
    if kind == "moment" and type_name in _MOMENTS:
        if type_name == "timestamp with time zone":
            return f"({value} AT TIME ZONE 'UTC')"
        return value if type_name == "timestamp" else f"CAST({value} AS TIMESTAMP)"
    if kind == "json" and type_name in ("map", "struct", "list"):
        value = entries_map(value) if entries else value
        return f"CAST(TO_JSON({value}) AS VARCHAR)"
    if kind in ("text", "json"):
        return f"CAST({value} AS VARCHAR)"
    return read_cell(f"CAST({value} AS VARCHAR)", kind)


def is_plain(type_name: str, kind: Kind) -> bool:
    """Whether a typed value needs no reading of text: then a Parquet file is queried where it lies."""
    if kind == "number":
        return type_name in NUMBERS
    if kind == "moment":
        return type_name in _MOMENTS
    return type_name == "varchar"


def bad_cells(where: str, name: str, wanted: str, example: str, count: int, hint: str = "") -> str:
    """What to say of cells that hold no value of their kind; their rows are kept."""
    many = f"; {count:,} cells are like it, and the rows are kept with this value unknown"
    kept = "; the row is kept with this value unknown" if count == 1 else many
    return f"{where}: {name}: must be {wanted}, got {example[:60]!r}{hint}{kept}"
