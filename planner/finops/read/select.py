"""The SQL that makes one view `focus` of files with different columns. Plain enough for sqlglot to carry it over."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Literal

from planner.finops.read.columns import COST, Kind, allowed_values, focus_columns, focus_values, hour_units
from planner.finops.read.model import Conversion, Finding
from planner.records import record

SQL_TYPES: Mapping[Kind, str] = {
    "text": "VARCHAR",
    "json": "VARCHAR",
    "number": "DOUBLE",
    "moment": "TIMESTAMP",
    "flag": "BOOLEAN",
}
HELPERS = (
    *("x_month", "x_day", "x_list_known", "x_contracted_known", "x_hours_of", "x_unit_hours", "x_source"),
    *("x_focus_version", "x_rows"),
)
# A price is unknown where the export gives no cost at it, or 0 for something that was charged: Microsoft writes
# ListCost and ContractedCost 0 for use covered by reservations.
# What nobody used of a commitment would have cost nothing at any price: there 0, or none, is the price.
# An adapter marks what has no price of its own (`x_unpriced`: a discount as a row): there 0 is the price.
_KNOWN = (
    "({0} IS NOT NULL AND ({0} <> 0 OR (COALESCE(EffectiveCost, 0) = 0 AND COALESCE(BilledCost, 0) = 0){1})) "
    "OR COALESCE(CommitmentDiscountStatus, '') = 'Unused'"
)
UNPRICED = "x_unpriced"
_CURRENCY = "BillingCurrency"


@record(frozen=True)
class Group:
    """Files that share columns and types, behind one table.

    Attributes:
        table: its name in the engine.
        files: Parquet files.
        columns: FOCUS name (or `x_` name) -> expression over the table; what lacks here is NULL.
        source: expression of the file's name.
        version, adapter, dataset: see `Source`.
        cost_kind: of an export that comes in several kinds (`actual`).
        beside: what is joined to the table, whose columns `columns` may use too.
        units: letters of the pricing units that its charges have (`unit_letters`); None where nobody looked.
    """

    table: str
    files: tuple[str, ...]
    columns: Mapping[str, str]
    source: str
    version: str
    adapter: str = ""
    dataset: str = COST
    cost_kind: str = ""
    beside: str = ""
    units: frozenset[str] | None = None


def with_effective(columns: Mapping[str, str]) -> dict[str, str]:
    """Columns with BilledCost in the place of an EffectiveCost that a bill lacks."""
    billed = columns.get("BilledCost")
    return dict(columns) if billed is None else {"EffectiveCost": billed, **columns}


def billed_as_effective(where: str, names: Collection[str]) -> list[Finding]:
    """What a reader must know of charges without an EffectiveCost."""
    if "EffectiveCost" in names or "BilledCost" not in names:
        return []
    message = (
        f"{where}: has no EffectiveCost, so BilledCost is used instead: what is paid ahead counts when it is billed; "
        "export EffectiveCost to spread it over its use"
    )
    return [Finding("warning", "billed_as_effective", message, where)]


def quote(name: str) -> str:
    """Return an identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return a text literal in SQL."""
    return "'" + value.replace("'", "''") + "'"


def spelled_columns(names: Collection[str]) -> set[str]:
    """Return the columns whose values are read as FOCUS writes them: closed lists, and codes of currencies."""
    return {*names} & {*focus_values(), _CURRENCY}


def spelled(column: str, value: str) -> str:
    """Return the expression of a value as FOCUS writes it, whatever its capitals and hyphens."""
    if column == _CURRENCY:
        return f"UPPER(TRIM({value}))"
    # no pattern: engines differ in how they replace all of its matches
    letters = f"REPLACE(REPLACE(REPLACE(LOWER({value}), '-', ''), '_', ''), ' ', '')"
    whens = " ".join(
        f"WHEN {text(own)} THEN {text(name) if name else 'NULL'}"
        for own, name in focus_values()[column].items()
    )
    return f"CASE {letters} {whens} ELSE {value} END"


def unlisted(column: str) -> str:
    """Return the condition of a value that FOCUS does not have for a column."""
    return f"{column} NOT IN ({', '.join(map(text, allowed_values(column)))})"


def unit_letters(unit: str) -> str:
    """Return the expression of a pricing unit's letters, the keys of `hour_units`."""
    letters = f"LOWER({unit})"
    for sign in "-_ .":
        letters = f"REPLACE({letters}, {text(sign)}, '')"
    return letters


def of_unit_sql(what: Literal["of", "hours"], units: Collection[str] | None = None) -> str:
    """Return what a pricing unit counts the hours of, or how many one of it is; NULL where it is no unit of time.

    Args:
        what: which of the two.
        units: letters of the units that there are; None for all.
    """
    letters = unit_letters("PricingUnit")
    alike: dict[str, list[str]] = {}
    for unit, row in hour_units().items():
        if units is None or unit in units:
            value = text(row["of"]) if what == "of" else f"CAST({row['hours']} AS DOUBLE)"
            alike.setdefault(value, []).append(text(unit))
    if not alike:
        return _null("text" if what == "of" else "number")
    whens = " ".join(f"WHEN {letters} IN ({', '.join(own)}) THEN {value}" for value, own in alike.items())
    return f"CASE {whens} END"


# Amounts and prices in the billing currency.
_MONEY = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost", "ListUnitPrice", "ContractedUnitPrice")


def _converted(union: str, extras: Sequence[str], conversion: Conversion) -> str:
    """Return the rows that name a currency, with amounts in the target currency."""
    names = [*focus_columns()[COST], *extras, "x_source", "x_focus_version"]
    target = text(conversion.target)
    is_target = f"original.BillingCurrency = {target}"
    items = [
        f"CASE WHEN {is_target} THEN original.{name} ELSE original.{name} * rates.x_rate END AS {name}"
        if name in _MONEY
        else f"{target} AS {name}"
        if name == "BillingCurrency"
        else f"original.{_bare(name)} AS {_bare(name)}"
        for name in names
    ]
    pairs = [(c, d, r) for c, d, r in conversion.rates if c != conversion.target] or [("", date.min, 1.0)]
    rows = ", ".join(
        f"({text(code)}, CAST({text(day.isoformat())} AS DATE), CAST({rate!r} AS DOUBLE))"
        for code, day, rate in sorted(pairs)
    )
    return (
        f"SELECT {', '.join(items)}\nFROM (\n{union}\n) AS original\n"
        f"LEFT JOIN (VALUES {rows}) AS rates(x_currency, x_on, x_rate)\n"
        "  ON original.BillingCurrency = rates.x_currency AND CAST(original.ChargePeriodStart AS DATE) = rates.x_on\n"
        "WHERE COALESCE(original.BillingCurrency, '') <> ''"
    )


def dataset_sql(
    groups: Sequence[Group], dataset: str, where: str = "", conversion: Conversion | None = None
) -> str:
    """Return the SELECT behind the view of a dataset; without groups it has all columns and no rows.

    Args:
        groups: tables; those of other datasets are left out.
        dataset: the dataset.
        where: a condition on FOCUS columns and `x_source`, for all rows.
        conversion: rates into one currency; contracts in another are left out, for their amounts cannot be compared.
    """
    own = [group for group in groups if group.dataset == dataset]
    extras = sorted({name for group in own for name in group.columns} - focus_columns()[dataset].keys())
    parts = [_group_sql(group, dataset, extras) for group in own] or [_empty_sql(dataset)]
    union = "\nUNION ALL\n".join(parts)
    if dataset == "ContractCommitment" and conversion is not None:
        target = text(conversion.target)
        return (
            f"SELECT * FROM (\n{union}\n) AS contracts\nWHERE COALESCE(BillingCurrency, {target}) = {target}"
        )
    if dataset != COST:
        return union
    if conversion is not None:
        union = _converted(union, extras, conversion)
    condition = f"\nWHERE {where}" if where else ""
    looked = [group.units for group in own if group.units is not None]
    units = frozenset().union(*looked) if len(looked) == len(own) else None
    free = f" OR COALESCE({UNPRICED}, '') = 'yes'" if UNPRICED in extras else ""
    return (
        "SELECT *,\n"
        "  CAST(DATE_TRUNC('month', ChargePeriodStart) AS DATE) AS x_month,\n"
        "  CAST(ChargePeriodStart AS DATE) AS x_day,\n"
        f"  ({_KNOWN.format('ListCost', free)}) AS x_list_known,\n"
        f"  ({_KNOWN.format('ContractedCost', free)}) AS x_contracted_known,\n"
        f"  {of_unit_sql('of', units)} AS x_hours_of,\n"
        f"  {of_unit_sql('hours', units)} AS x_unit_hours,\n"
        "  CAST(1 AS BIGINT) AS x_rows\n"
        f"FROM (\n{union}\n) AS charges{condition}"
    )


def _group_sql(group: Group, dataset: str, extras: Sequence[str]) -> str:
    items = []
    for column in focus_columns()[dataset].values():
        own = group.columns.get(column.name)
        fed = group.columns.get(column.fed_by) if column.fed_by else None
        value = f"COALESCE({own}, {fed})" if own and fed else own or fed
        items.append(f"{value or _null(column.kind)} AS {_bare(column.name)}")
    items += [f"{group.columns.get(name) or _null('text')} AS {_bare(name)}" for name in extras]
    items += [f"{group.source} AS x_source", f"{text(group.version)} AS x_focus_version"]
    return f"SELECT {', '.join(items)}\nFROM {group.table}" + (f"\n{group.beside}" if group.beside else "")


def _empty_sql(dataset: str) -> str:
    items = [f"{_null(column.kind)} AS {_bare(column.name)}" for column in focus_columns()[dataset].values()]
    items += ["CAST(NULL AS VARCHAR) AS x_source", "CAST(NULL AS VARCHAR) AS x_focus_version"]
    return f"SELECT {', '.join(items)}\nFROM (SELECT 1 AS one) AS nothing\nWHERE 1 = 0"


def _bare(name: str) -> str:
    """Leave a plain name unquoted: engines that fold case then fold it here and in the queries alike."""
    return name if name.isascii() and name.isidentifier() else quote(name)


def _null(kind: Kind) -> str:
    return f"CAST(NULL AS {SQL_TYPES[kind]})"
