"""Open a bill: find its files, tell what they are, and register one view over all of them."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from planner.errors import InputError, shortened
from planner.files import remove_folder, temporary_folder
from planner.finops.engine.duckdb import HELD_ROWS, DuckDbEngine, is_damage
from planner.finops.engine.registry import WAREHOUSES, FileEngine, open_engine
from planner.finops.read.adapted import pair_cost_kinds, stage_adapted
from planner.finops.read.adapters import detect_adapter, load_adapters
from planner.finops.read.columns import (
    COST,
    Kind,
    detect_dataset,
    detect_version,
    focus_columns,
    likely_product,
    match_columns,
)
from planner.finops.read.fields import Field, names_of
from planner.finops.read.files import BillFile, damaged, find_files, inspect_files
from planner.finops.read.long_tags import has_long
from planner.finops.read.machines import narrowed
from planner.finops.read.mapping import Renaming
from planner.finops.read.model import Bill, Consolidated, Conversion, Finding, Progress, Source, worst_first
from planner.finops.read.overlaps import Total, find_repeats, find_twins, superseded, superseded_sql
from planner.finops.read.rates import Rates, consolidate
from planner.finops.read.select import (
    HELPERS,
    Group,
    billed_as_effective,
    dataset_sql,
    quote,
    spelled,
    with_effective,
)
from planner.finops.read.stage import Stager
from planner.finops.read.tables import open_tables
from planner.finops.read.tag_texts import texts_sql
from planner.finops.read.totals import (
    charges_of_no_month,
    check_month,
    choose_currency,
    missing_months,
    only_currency,
    read_totals,
    rows_beside,
)
from planner.inputs.faults import near

_ONE_THREAD_BYTES = 1 << 20  # so little gives a second thread nothing to do: it is started and waited for
_ESSENTIAL = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost", "ChargeCategory")


def open_bill(
    paths: Sequence[str | Path],
    *,
    engine: str = "duckdb",
    month: date | None = None,
    currency: str | None = None,
    connection: Any = None,
    progress: Progress | None = None,
    extra_columns: Sequence[str] = (),
    costs: bool = True,
    mapping: Mapping[str, str] | None = None,
    rates: Rates | None = None,
    tags_later: bool = False,
) -> Bill:
    """Open files as one bill with the view `focus`.

    Args:
        paths: files, folders and globs: CSV (plain or gzip), Parquet, JSON lines.
        engine: name of the engine.
        month: a month that must be there.
        currency: keep rows of this billing currency only; needed where there are several.
        connection: the user's own connection, for engines that need one.
        progress: told the step and the share done.
        extra_columns: columns outside FOCUS to keep as text, besides those that start with `x_`.
        costs: charges must have costs; a reader of quantities alone can do without.
        mapping: FOCUS column -> column of the files, or a constant in single quotes (`read.mapping.read_mapping`).
        rates: put all currencies into one (`read.rates.load_rates`).
        tags_later: of large files whether tags are JSON is left to the caller, see `read.long_tags`.

    Raises:
        InputError: a file is missing, damaged or no bill; several currencies; the month has no charges.
    """
    _check_options(engine in WAREHOUSES, currency, mapping, rates)
    if engine in WAREHOUSES:
        return open_tables([str(path) for path in paths], engine, month, currency, connection)
    temporary = temporary_folder(Path(tempfile.gettempdir()), "planner-bill-")
    try:
        return _open(
            paths,
            engine,
            month,
            currency,
            connection,
            progress or _silent,
            temporary,
            tuple(extra_columns),
            costs,
            mapping or {},
            rates,
            tags_later=tags_later and engine == DuckDbEngine.name,
        )
    except BaseException:
        remove_folder(temporary)
        raise


def _check_options(
    is_warehouse: bool, currency: str | None, mapping: Mapping[str, str] | None, rates: Rates | None
) -> None:
    if is_warehouse and rates is not None:
        raise InputError("--rates: is for files; convert a table of a warehouse in a view")
    if is_warehouse and mapping:
        raise InputError("--map: is for files; give a table of a warehouse FOCUS names in a view")
    if rates is not None and currency is not None:
        raise InputError(
            "--currency: cannot go with --rates, which keeps all currencies; leave one of them out"
        )


def _silent(_step: str, _share: float) -> None:
    """Tell nobody."""


def _open(
    paths: Sequence[str | Path], engine_name: str, month: date | None, currency: str | None, connection: Any,
    progress: Progress, temporary: Path, extra_columns: tuple[str, ...], costs: bool, mapping: Mapping[str, str],
    rates: Rates | None, *, tags_later: bool,
) -> Bill:  # fmt: skip
    files, findings = inspect_files(find_files(paths))
    little = sum(file.path.stat().st_size for file in files) <= _ONE_THREAD_BYTES
    reader = DuckDbEngine(temporary, threads=1 if little else None)
    reader.plan(briefly=little)
    stager = Stager(reader.connection, temporary, little=little)
    stager.read_clocks(files)
    read, renaming = list[Group](), Renaming(mapping)
    for number, file in enumerate(files):
        progress(f"reading {file.path.name}", number / len(files))
        with _damage_named(file):
            read.append(
                _read_file(stager, file, number, extra_columns, costs, renaming, tags_later=tags_later)
            )
    progress("reading", 1.0)
    reader.tries_json = bool(stager.unchecked)
    if not any(group.dataset == COST for group in read):
        raise InputError(f"{files[0].path}: no file holds costs (dataset CostAndUsage): add the cost export")
    groups = [narrowed(reader, group, findings) for group in _merge(read)]
    held = ("focus",) if engine_name == reader.name and _is_small(reader, groups) else ()
    reader.hold(*held)
    _register(reader, groups, "")
    totals = read_totals(reader)
    if not totals:
        raise InputError(_no_charges(files[0], stager.findings))
    totals, conditions, later = _without_doubles(reader, groups, files, read, totals)
    conversion: Conversion | None = None
    together: Consolidated | None = None
    if rates is not None:
        totals, conversion, together, more = consolidate(totals, rates)
        chosen = rates.target
    else:
        chosen, more = choose_currency(totals, currency)
        totals, kept = only_currency(totals, chosen)
        more = [*more, *charges_of_no_month(totals)]
        conditions += [kept] if kept else []
    where = " AND ".join(conditions)
    if where or conversion:
        _register(reader, groups, where, conversion)
    months = tuple(sorted({total.month for total in totals if total.month is not None}))
    check_month(months, month, stager.findings)
    findings += [*stager.findings, *later, *more, *renaming.findings(), *missing_months(totals)]
    findings += [*find_repeats(reader, totals), *find_twins(reader, totals)]
    beside = rows_beside(reader, read)
    tag_texts = texts_sql(reader, groups, where, conversion)
    engine: FileEngine = reader
    if engine_name != reader.name:
        engine = open_engine(engine_name, temporary=temporary, connection=connection)
        _register(engine, groups, where, conversion)
        reader.close()
    sources = _sources(files, read, totals, beside)
    return Bill(
        engine, sources, worst_first(findings), chosen, months, temporary, tuple(mapping.items()),
        tuple(map(str, paths)), together, unchecked=tuple(stager.unchecked),
        tag_texts=tag_texts,
    )  # fmt: skip


def _is_small(reader: DuckDbEngine, groups: Sequence[Group]) -> bool:
    """Whether the charges are few enough to be held in memory."""
    files = [file for group in groups if group.dataset == COST for file in group.files]
    return reader.count_rows(files) <= HELD_ROWS


@contextlib.contextmanager
def _damage_named(file: BillFile) -> Iterator[None]:
    """Turn what DuckDB says of a damaged page, whichever query meets it first, into the file's name.

    Raises:
        InputError: the file is damaged.
    """
    try:
        yield
    except Exception as error:
        if not is_damage(error):
            raise
        raise damaged(file.path, file.kind, error) from None


def _no_charges(file: BillFile, findings: Sequence[Finding]) -> str:
    """Why a bill has no charge: the first row that could not be read, else none is there."""
    rejected = [finding.message for finding in findings if finding.code == "rejected_rows"]
    return rejected[0] if rejected else f"{file.path}: holds a header but no charges; fetch the export again"


def _without_doubles(
    reader: DuckDbEngine,
    groups: Sequence[Group],
    files: Sequence[BillFile],
    read: Sequence[Group],
    totals: Sequence[Total],
) -> tuple[list[Total], list[str], list[Finding]]:
    """Leave out deliveries that a later one replaces, and the actual costs beside amortised ones.

    Returns:
        Totals of what is left, the SQL conditions that keep it, and the findings.
    """
    replaced, findings = superseded(totals)
    conditions = [superseded_sql(replaced)] if replaced else []
    left = [total for total in totals if (total.source, total.month) not in replaced]
    kinds = {
        str(file.path): (group.adapter, group.cost_kind) for file, group in zip(files, read, strict=True)
    }
    counterparts, paired = pair_cost_kinds(kinds, left)
    if counterparts:
        conditions += counterparts
        _register(reader, groups, " AND ".join(conditions))
        left = read_totals(reader)
    return left, conditions, [*findings, *paired]


def _read_file(
    stager: Stager,
    file: BillFile,
    number: int,
    extra_columns: tuple[str, ...],
    costs: bool,
    renaming: Renaming,
    *,
    tags_later: bool,
) -> Group:
    fields = renaming.fields(stager.fields(file))
    names = names_of(fields)
    table = f"source_{number}"
    dataset = detect_dataset(names, costs=costs)
    if dataset is not None:
        if dataset == COST and costs:
            stager.findings += _lacking(file, names)
        return _read_focus(stager, file, fields, dataset, table, extra_columns, tags_later=tags_later)
    adapter = detect_adapter(names)
    if adapter is None:
        raise InputError(_not_a_bill(file, names) + renaming.hint())
    target, cost_kind = stage_adapted(stager, file, fields, adapter)
    columns = {name: quote(name) for name in adapter.columns}
    return Group(table, (str(target),), columns, "x_source", adapter.version, adapter.name, COST, cost_kind)


def _read_focus(
    stager: Stager,
    file: BillFile,
    fields: Sequence[Field],
    dataset: str,
    table: str,
    extra_columns: tuple[str, ...],
    *,
    tags_later: bool,
) -> Group:
    names = names_of(fields)
    by_name = {field.name: field for field in fields}
    found = match_columns(names, dataset)
    version = detect_version(found, dataset)
    columns = focus_columns()[dataset]
    inputs = {name: (by_name[own], columns[name].kind) for name, own in found.items()}
    taken = {*found.values(), *columns}
    for name in names:
        extra = name.startswith("x_") or name in extra_columns
        if extra and name not in taken and name.casefold() not in HELPERS:
            inputs[name] = (by_name[name], "text")
    if file.kind == "parquet" and _in_place(stager, file, inputs, tags_later=tags_later):
        blank = stager.blank_columns(file)
        expressions = {
            name: field.in_place(kind, blank=field.name in blank) for name, (field, kind) in inputs.items()
        }
        odd = stager.oddly_spelled(file, {name: field.value for name, (field, _) in inputs.items()})
        expressions |= {name: spelled(name, expressions[name]) for name in odd}
        expressions = with_effective(expressions) if dataset == COST else expressions
        return Group(table, (str(file.path),), expressions, "x_file", version, "", dataset)
    target = stager.stage(file, inputs)
    staged = {name: quote(name) for name in inputs}
    staged = with_effective(staged) if dataset == COST else staged
    return Group(table, (str(target),), staged, "x_source", version, "", dataset)


def _lacking(file: BillFile, names: Sequence[str]) -> list[Finding]:
    there = match_columns(names)
    findings = billed_as_effective(str(file.path), there)
    lacking = [
        name for name in _ESSENTIAL if name not in there and not (findings and name == "EffectiveCost")
    ]
    if not lacking:
        return findings
    message = f"{file.path}: has no {', '.join(lacking)}; figures that need them are withheld"
    return [*findings, Finding("warning", "lacking_columns", message, str(file.path))]


def _in_place(
    stager: Stager, file: BillFile, inputs: Mapping[str, tuple[Field, Kind]], *, tags_later: bool
) -> bool:
    """Whether a Parquet file can be queried where it lies, without reading text into numbers again and again."""
    if not all(field.is_plain(kind) for field, kind in inputs.values()):
        return False
    numbers = [field.value for field, kind in inputs.values() if kind == "number"]
    if not stager.all_numbers(file, numbers):
        return False
    texts = {name: field.value for name, (field, kind) in inputs.items() if kind == "json"}
    if tags_later and "Tags" in texts and has_long(stager, file, texts["Tags"]):
        stager.unchecked.append(str(file.path))
        del texts["Tags"]
    return stager.all_json(file, list(texts.values()))


def _not_a_bill(file: BillFile, names: Sequence[str]) -> str:
    there = match_columns(names)
    wanted = ["ChargePeriodStart"] if "ChargePeriodStart" not in there else []
    if not {"BilledCost", "EffectiveCost"} & there.keys():
        wanted.append("BilledCost")
    lacks = " and ".join(
        f"{name!r} (did you mean {close!r}?)" if (close := near(name, names)) else name for name in wanted
    )
    if likely := likely_product(names):
        return f"{file.path}: looks like {likely[0]}, which cannot be read directly: {likely[1]}"
    known = "; ".join(adapter.title for adapter in load_adapters())
    return (
        f"{file.path}: is neither FOCUS nor an export that is known ({known}): as FOCUS it lacks {lacks}; "
        f"it has {', '.join(map(shortened, names[:12]))}; name its columns with --map COLUMN={wanted[0]}, "
        "or leave it out if it is no bill"
    )


def _merge(groups: Sequence[Group]) -> list[Group]:
    """Put files of the same columns behind one table."""
    merged: dict[tuple[Any, ...], list[Group]] = {}
    for group in groups:
        key = (
            tuple(sorted(group.columns.items())),
            group.source,
            group.version,
            group.adapter,
            group.dataset,
        )
        merged.setdefault(key, []).append(group)
    return [
        replace(same[0], files=tuple(file for group in same for file in group.files), cost_kind="")
        for same in merged.values()
    ]


def _register(
    engine: FileEngine, groups: Sequence[Group], where: str, conversion: Conversion | None = None
) -> None:
    for group in groups:
        engine.register_files(group.table, group.files)
    for dataset in focus_columns():
        name = "focus" if dataset == COST else dataset
        engine.register_view(name, dataset_sql(groups, dataset, where, conversion))


def _sources(
    files: Sequence[BillFile], read: Sequence[Group], totals: Sequence[Total], beside: Mapping[str, int]
) -> tuple[Source, ...]:
    out = []
    for file, group in zip(files, read, strict=True):
        own = [total for total in totals if total.source == str(file.path)]
        months = tuple(sorted({total.month for total in own if total.month is not None}))
        rows = sum(total.rows for total in own) if group.dataset == COST else beside.get(str(file.path), 0)
        out.append(
            Source(str(file.path), rows, group.version, group.adapter, group.dataset, months, file.sha256)
        )
    return tuple(out)
