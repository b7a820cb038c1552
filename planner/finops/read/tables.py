"""A bill that is a table of the user's warehouse: nothing is copied, every question is asked there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from planner.errors import InputError
from planner.finops.engine.warehouse import WarehouseEngine, open_connection, table_name
from planner.finops.read.columns import (
    COST,
    detect_dataset,
    detect_version,
    focus_columns,
    focus_values,
    match_columns,
)
from planner.finops.read.model import Bill, Finding, Source
from planner.finops.read.overlaps import Total
from planner.finops.read.select import (
    SQL_TYPES,
    Group,
    billed_as_effective,
    dataset_sql,
    quote,
    spelled,
    text,
    with_effective,
)
from planner.finops.read.totals import (
    charges_of_no_month,
    check_month,
    choose_currency,
    only_currency,
    read_totals,
    rows_beside,
)


def open_tables(
    names: Sequence[str], engine_name: str, month: date | None, currency: str | None, connection: Any
) -> Bill:
    """Open tables in FOCUS columns as one bill.

    Args:
        names: `table`, `schema.table` or `catalog.schema.table`.
        engine_name: the warehouse.
        month: a month that must be there.
        currency: keep rows of this billing currency only.
        connection: see `open_connection`.

    Raises:
        InputError: no connection, no such table, or a table without FOCUS columns.
    """
    engine = WarehouseEngine(engine_name, open_connection(engine_name, connection))
    try:
        groups = [_group(engine, name) for name in names]
        stands_in = [
            found
            for name, group in zip(names, groups, strict=True)
            if group.dataset == COST
            for found in billed_as_effective(name, match_columns(engine.columns(name)))
        ]
        if not any(group.dataset == COST for group in groups):
            raise InputError(f"{', '.join(names)}: no table holds costs (dataset CostAndUsage)")
        _register(engine, groups, "")
        totals = read_totals(engine)
        if not totals:
            raise InputError(f"{', '.join(names)}: holds no charges")
        chosen, findings = choose_currency(totals, currency)
        totals, kept = only_currency(totals, chosen)
        if kept:
            _register(engine, groups, kept)
        months = tuple(sorted({total.month for total in totals if total.month is not None}))
        check_month(months, month)
        beside = rows_beside(engine, groups)
    except BaseException:
        engine.close()
        raise
    findings = [
        *stands_in,
        *findings,
        *charges_of_no_month(totals),
        Finding("info", "not_checked", _UNCHECKED, names[0]),
    ]
    # an open connection cannot be written down, and a URL holds a password
    reached = connection if isinstance(connection, str) and "://" not in connection else ""
    return Bill(
        engine, _sources(names, groups, totals, beside), tuple(findings), chosen, months,
        named=tuple(names) if reached else (), connection=reached,
    )  # fmt: skip


def _sources(
    names: Sequence[str], groups: Sequence[Group], totals: Sequence[Total], beside: Mapping[str, int]
) -> tuple[Source, ...]:
    out = []
    for name, group in zip(names, groups, strict=True):
        own = [total for total in totals if total.source == name]
        found = tuple(sorted({total.month for total in own if total.month is not None}))
        rows = sum(total.rows for total in own) if group.dataset == COST else beside.get(name, 0)
        out.append(Source(name, rows, group.version, "", group.dataset, found, ""))
    return tuple(out)


_UNCHECKED = "tables of a warehouse are not searched for malformed cells and charges delivered twice"


def _group(engine: WarehouseEngine, name: str) -> Group:
    header = engine.columns(name)
    dataset = detect_dataset(header)
    if dataset is None:
        raise InputError(f"{name}: has no FOCUS columns; it has {', '.join(header[:12])}")
    found = match_columns(header, dataset)
    kinds = focus_columns()[dataset]
    columns = {
        column: f"CAST({quote(own)} AS {SQL_TYPES[kinds[column].kind]})" for column, own in found.items()
    }
    columns = with_effective(columns) if dataset == COST else columns
    columns |= {name: spelled(name, columns[name]) for name in focus_values().keys() & columns.keys()}
    version = detect_version(found, dataset)
    return Group(table_name(name), (), columns, text(name), version, "", dataset)


def _register(engine: WarehouseEngine, groups: Sequence[Group], where: str) -> None:
    for dataset in focus_columns():
        engine.views["focus" if dataset == COST else dataset] = dataset_sql(groups, dataset, where)
