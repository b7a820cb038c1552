"""An adapter's data file, and the expressions made of it."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import cast

from planner.finops.read.cells import pairs_map, read_cell
from planner.finops.read.columns import Kind, plain
from planner.finops.read.fields import Field
from planner.finops.read.select import SQL_TYPES, quote, text
from planner.records import record

_FOLDER = Path(__file__).resolve().parent
# kinds that an adapter knows besides those of FOCUS, and what they hold; `credits:PROMOTION` are those of a type
_KINDS: Mapping[str, Kind] = {
    "tags": "json",
    "tags_text": "json",
    "map_text": "json",
    "labels": "json",
    "credits": "number",
}


@record(frozen=True)
class Input:
    """A column an export may have; `spellings` are plain names or, for `tags`, prefixes."""

    name: str
    kind: str
    spellings: tuple[str, ...]


@record(frozen=True)
class Adapter:
    """An export that is not FOCUS.

    Attributes:
        name: of its data file.
        title: for people.
        version: FOCUS version whose columns are filled.
        detect: plain names of the columns that tell it.
        columns: FOCUS column -> expression over the inputs.
        split: part's name -> condition of rows that are given once more as this part.
        kinds: name -> test over a whole file.
        replaced_by: kind -> condition of rows to leave out where a file of that kind has the month.
        alone: kind -> what a reader must know of a file without its counterpart.
        checks: code -> sum that must be 0, and the message where it is not.
    """

    name: str
    title: str
    version: str
    detect: frozenset[str]
    inputs: tuple[Input, ...]
    columns: Mapping[str, str]
    split: Mapping[str, str]
    kinds: Mapping[str, str]
    replaced_by: Mapping[str, str]
    alone: Mapping[str, str]
    checks: Mapping[str, tuple[str, str]]


@lru_cache(maxsize=1)
def load_adapters() -> tuple[Adapter, ...]:
    """Return all adapters, by name."""
    return tuple(_load(path) for path in sorted(_FOLDER.glob("*.csv")))


def detect_adapter(header: Iterable[str]) -> Adapter | None:
    """Return the adapter whose telling columns a file has."""
    names = {plain(name) for name in header}
    return next((adapter for adapter in load_adapters() if adapter.detect <= names), None)


def _load(path: Path) -> Adapter:
    parts: dict[str, list[dict[str, str]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            parts.setdefault(row["part"], []).append(row)

    def values(part: str) -> dict[str, str]:
        return {row["name"]: row["value"] for row in parts.get(part, [])}

    maps: dict[str, list[dict[str, str]]] = {}
    for row in parts.get("map", []):
        maps.setdefault(row["kind"], []).append(row)
    about, checks, lets = values("about"), values("check"), values("let")
    return Adapter(
        name=path.stem,
        title=about["title"],
        version=about["version"],
        detect=frozenset(plain(row["name"]) for row in parts["detect"]),
        inputs=tuple(
            Input(row["name"], row["kind"], (row["name"], *row["value"].split())) for row in parts["input"]
        ),
        columns={row["name"]: _with_maps(_with_lets(row["value"], lets), maps) for row in parts["column"]},
        split={name: _with_lets(value, lets) for name, value in values("split").items()},
        kinds=values("kind"),
        replaced_by=values("replaced_by"),
        alone=values("alone"),
        checks={
            code: (_with_lets(sql, lets), checks[f"{code}_message"])
            for code, sql in checks.items()
            if not code.endswith("_message")
        },
    )


def _with_lets(expression: str, lets: Mapping[str, str]) -> str:
    """Put in the expressions that an adapter names once and uses in several columns; they may use one another."""
    return re.sub(r"\{(\w+)\}", lambda match: f"({_with_lets(lets[match.group(1)], lets)})", expression)


def _with_maps(expression: str, maps: Mapping[str, Sequence[Mapping[str, str]]]) -> str:
    def case(match: re.Match[str]) -> str:
        column = match.group(1)
        whens = " ".join(f"WHEN {text(row['name'])} THEN {text(row['value'])}" for row in maps[column])
        return f"CASE {column} {whens} ELSE 'Other' END"

    return re.sub(r"\{map:(\w+)\}", case, expression)


def typed_inputs(adapter: Adapter, fields: Sequence[Field], *, is_csv: bool) -> dict[str, tuple[str, str]]:
    """Return input -> expression of its value and of its raw cell (empty where the file has no such column)."""
    by_plain: dict[str, Field] = {}
    for one in fields:
        by_plain.setdefault(plain(one.name), one)
    out = {}
    for wanted in adapter.inputs:
        found = [by_plain[plain(name)] for name in wanted.spellings if plain(name) in by_plain]
        field = found[0] if found else None
        plain_kind = wanted.kind.partition(":")[0]
        kind = cast("Kind", _KINDS.get(plain_kind, plain_kind))
        if wanted.kind == "tags" and field is None:
            value = _prefixed(fields, wanted.spellings[1:])
            out[wanted.name] = (value or f"CAST(NULL AS {SQL_TYPES[kind]})", "")
        elif field is None:
            out[wanted.name] = (f"CAST(NULL AS {SQL_TYPES[kind]})", "")
        elif plain_kind in _KINDS:
            unread = field.value if wanted.kind == "credits" and field.type_name == "varchar" else ""
            out[wanted.name] = (_special(wanted.kind, field, is_csv=is_csv), unread)
        else:
            out[wanted.name] = (field.read(kind, is_csv=is_csv), field.value if kind != "text" else "")
    return out


def _special(kind: str, field: Field, *, is_csv: bool) -> str:
    """Return the expression of a map, of labels or of credits in any of their forms."""
    if kind.startswith("credits"):
        return _credits(kind.partition(":")[2], field)
    if kind == "labels" and field.type_name == "varchar":
        return (
            f"CASE WHEN JSON_VALID({field.value}) THEN CASE WHEN JSON_TYPE({field.value}) = 'ARRAY' "
            f"THEN NULLIF({pairs_map(field.value)}, '{{}}') ELSE {field.value} END END"
        )
    value = field.read("text" if kind == "tags_text" else "json", is_csv=is_csv)
    if kind == "tags_text":  # "key": "value" pairs, with or without the braces
        value = f"CASE WHEN TRIM({value}) LIKE '{{%' THEN {value} ELSE '{{' || {value} || '}}' END"
        value = read_cell(value, "json")
    if kind == "tags":  # user:team and user_team are the tag team
        value = f"REGEXP_REPLACE({value}, '([{{,]\\s*)\"user[:_]', '\\1\"', 'g')"
    return f"NULLIF({value}, '{{}}')"


def _credits(kind: str, field: Field) -> str:
    """Return the sum of credits, or of those whose type starts with a word."""
    if field.type_name == "list":
        if kind and "type" not in field.records:
            return "CAST(NULL AS DOUBLE)"
        return _sum_of_credits(kind, field.value)
    if field.type_name == "varchar":
        # either a sum already, or the list as JSON text
        listed = f"TRY_CAST(TRY_CAST({field.value} AS JSON) AS STRUCT(type VARCHAR, amount DOUBLE)[])"
        many = f"CASE WHEN {listed} IS NOT NULL THEN COALESCE({_sum_of_credits(kind, listed)}, 0) END"
        return many if kind else f"COALESCE({read_cell(field.value, 'number')}, {many})"
    return "CAST(NULL AS DOUBLE)" if kind else f"CAST({field.value} AS DOUBLE)"


def _sum_of_credits(kind: str, credits: str) -> str:
    if kind:
        credits = f"LIST_FILTER({credits}, LAMBDA credit: STARTS_WITH(credit.type, {text(kind)}))"
    return (
        f"CAST(LIST_SUM(LIST_TRANSFORM({credits}, LAMBDA credit: CAST(credit.amount AS DOUBLE))) AS DOUBLE)"
    )


def _prefixed(fields: Sequence[Field], prefixes: Sequence[str]) -> str:
    """Return the JSON of columns whose names start with a prefix, without the empty ones."""
    pairs = []
    for field in fields:
        prefix = next((prefix for prefix in prefixes if field.name.startswith(prefix)), None)
        if prefix is not None:
            key = re.sub(r"^user[:_]", "", field.name.removeprefix(prefix))
            pairs += [text(key), f"NULLIF(CAST({field.value} AS VARCHAR), '')"]
    if not pairs:
        return ""
    merged = f"JSON_MERGE_PATCH('{{}}', JSON_OBJECT({', '.join(pairs)}))"
    return f"NULLIF(CAST({merged} AS VARCHAR), '{{}}')"


def adapted_sql(adapter: Adapter, inner: str, cost_kind: str) -> str:
    """Return the SELECT that makes FOCUS columns of a SELECT of the inputs."""
    columns = ", ".join(f"{value} AS {quote(name)}" for name, value in adapter.columns.items())
    parts = ", ".join(["('charge')", *(f"({text(part)})" for part in adapter.split)])
    wanted = " OR ".join(
        ["part = 'charge'", *(f"(part = {text(part)} AND {test})" for part, test in adapter.split.items())]
    )
    return (
        f"SELECT {columns}, CASE WHEN part = 'charge' THEN x_bad END AS x_bad "
        f"FROM (SELECT *, {text(cost_kind)} AS cost_kind FROM ({inner})) AS inputs "
        f"CROSS JOIN (VALUES {parts}) AS parts(part) WHERE {wanted}"
    )
