"""Exports of the clouds put into FOCUS columns, and kinds of one export that must not be added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from planner.finops.read.adapters.adapter import Adapter, adapted_sql, load_adapters, typed_inputs
from planner.finops.read.columns import Kind
from planner.finops.read.fields import Field
from planner.finops.read.files import BillFile
from planner.finops.read.model import Finding
from planner.finops.read.overlaps import Total
from planner.finops.read.select import text
from planner.finops.read.stage import Stager

_NOTHING = 0.005  # cents do not break a check


def stage_adapted(
    stager: Stager, file: BillFile, fields: Sequence[Field], adapter: Adapter
) -> tuple[Path, str]:
    """Write an export in FOCUS columns.

    Returns:
        The file written, and the kind of cost that the export holds (empty where it has no kinds).

    Raises:
        InputError: the file is damaged.
        OutputError: the temporary disk is full.
    """
    is_csv = file.kind == "csv"
    inputs = typed_inputs(adapter, fields, is_csv=is_csv)
    kinds = {wanted.name: wanted.kind for wanted in adapter.inputs}
    spelled = {field.value: field.name for field in fields}
    raw = {name: cell for name, (_, cell) in inputs.items() if cell}
    typed = {name: value for name, (value, _) in inputs.items()}
    inner = stager.typed_sql(file, typed, raw)
    cost_kind, sums = _facts(stager, file, adapter, inner)
    target = stager.write(file, adapted_sql(adapter, inner, cost_kind))
    kind_of: dict[str, Kind] = {"number": "number", "moment": "moment", "credits": "number"}
    stager.report_bad(
        file, target, {name: (spelled[cell], kind_of.get(kinds[name], "text")) for name, cell in raw.items()}
    )
    for (code, (_, message)), total in zip(adapter.checks.items(), sums, strict=True):
        if isinstance(total, float) and abs(total) > _NOTHING:
            found = f"{file.path}: {message} (off by {total:,.2f})"
            stager.findings.append(Finding("warning", code, found, str(file.path), 0, total))
    return target, cost_kind


def _facts(stager: Stager, file: BillFile, adapter: Adapter, inner: str) -> tuple[str, tuple[object, ...]]:
    """Return the kind of cost of a file and the sums that must be 0, in one pass over it."""
    tests = [*adapter.kinds.values(), *(sql for sql, _ in adapter.checks.values())]
    if not tests:
        return "", ()
    named = f"SELECT *, {text(file.path.name)} AS file_name FROM ({inner})"
    row = stager.one(file, f"SELECT {', '.join(tests)} FROM ({named}) AS inputs")
    holds, sums = row[: len(adapter.kinds)], row[len(adapter.kinds) :]
    return next((kind for kind, true in zip(adapter.kinds, holds, strict=True) if true), ""), sums


def pair_cost_kinds(
    kinds: Mapping[str, tuple[str, str]], totals: Sequence[Total]
) -> tuple[list[str], list[Finding]]:
    """Leave out what two kinds of one export both hold, and tell which months have one kind only.

    Args:
        kinds: file -> adapter and kind of cost.
        totals: charges by file and month.

    Returns:
        Conditions for all rows, and findings.
    """
    conditions, findings = [], []
    for adapter in load_adapters():
        months: dict[str, set[date]] = {}
        sources: dict[str, list[str]] = {}
        for source, (name, kind) in kinds.items():
            if name == adapter.name and kind:
                sources.setdefault(kind, []).append(source)
                months.setdefault(kind, set()).update(
                    total.month for total in totals if total.source == source and total.month is not None
                )
        for better, condition in adapter.replaced_by.items():
            both = months.get(better, set()) & _others(months, better)
            if both:
                days = ", ".join(f"CAST('{month.isoformat()}' AS DATE)" for month in sorted(both))
                month_sql = "CAST(DATE_TRUNC('month', \"ChargePeriodStart\") AS DATE)"
                conditions.append(f"NOT COALESCE({month_sql} IN ({days}) AND {condition}, FALSE)")
                shown = ", ".join(f"{month:%Y-%m}" for month in sorted(both))
                message = f"{adapter.title}: {shown} come in several kinds of cost; each charge is taken once"
                findings.append(Finding("info", "cost_kinds", message, sources[better][0]))
        for kind, lack in adapter.alone.items():
            alone = months.get(kind, set()) - _others(months, kind)
            if alone:
                shown = ", ".join(f"{month:%Y-%m}" for month in sorted(alone))
                message = f"{', '.join(sources[kind])}: {shown} {lack}"
                findings.append(Finding("warning", f"{kind}_only", message, sources[kind][0]))
    return conditions, findings


def _others(months: Mapping[str, set[date]], kind: str) -> set[date]:
    return {month for other, found in months.items() if other != kind for month in found}
