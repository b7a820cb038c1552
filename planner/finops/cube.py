"""Additive cubes: a bill summed up by day (or month) and by everything that is no single resource.

A cube is itself a bill in FOCUS columns, so every query that needs no ResourceId gives the same answer on it, at a
fraction of the rows. Costs and quantities are sums, so months and clouds are built apart and merged. A cube is a folder
of Parquet files and `cube-manifest.json`, which appears whole or not at all.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Literal

from planner.errors import InputError
from planner.files import temporary_folder, write_error
from planner.files.limited import MAX_RECORD_BYTES, read_limited
from planner.finops.engine.duckdb import DuckDbEngine, first_line, memory_to_write, ran_out
from planner.finops.quality import assess_quality
from planner.finops.read import Bill, open_bill
from planner.finops.read.columns import COST, focus_columns
from planner.finops.read.model import Progress
from planner.finops.read.select import UNPRICED, quote, text
from planner.records import record

MANIFEST = "cube-manifest.json"
_LONGEST_NAME = 100  # characters of a file
SCHEMA_VERSION = 1
Grain = Literal["day", "month"]
MEASURES = (
    *("BilledCost", "EffectiveCost", "ListCost", "ContractedCost", "PricingQuantity", "ConsumedQuantity"),
    *("CommitmentDiscountQuantity", "PricingCurrencyEffectiveCost"),
)
# Columns that tell single resources, contracts' shares or rows apart: they are what a cube leaves out.
LEFT_OUT = (
    *("ResourceId", "ResourceName", "AvailabilityZone", "ChargeDescription"),
    *("AllocatedMethodDetails", "AllocatedMethodId", "AllocatedResourceId", "AllocatedResourceName"),
    *(
        "AllocatedTags",
        "ContractApplied",
        "InvoiceDetailId",
        "SkuPriceId",
        "ListUnitPrice",
        "ContractedUnitPrice",
    ),
    *("PricingCurrencyContractedUnitPrice", "PricingCurrencyListUnitPrice"),
)
_DERIVED = ("ChargePeriodStart", "ChargePeriodEnd", "Tags")


@record(frozen=True)
class Cube:
    """What a cube's manifest says.

    Attributes:
        folder: where it lies.
        grain: `day` or `month`.
        tags: tag keys that were kept.
        months: `2026-10`.
        rows, charges: rows of the cube and of the bill.
        billed, effective: sums of cost, in `currency`.
        sources: file name -> sha256 of the bill's files (empty where it was not taken).
    """

    folder: Path
    grain: Grain
    tags: tuple[str, ...]
    currency: str
    months: tuple[str, ...]
    rows: int
    charges: int
    billed: float
    effective: float
    sources: tuple[tuple[str, str], ...]


def build_cube(
    bill: Bill,
    folder: Path,
    *,
    tags: Sequence[str] = (),
    grain: Grain = "day",
    progress: Progress | None = None,
    sources: Sequence[tuple[str, str]] | None = None,
) -> Cube:
    """Sum a bill up into a new folder.

    Args:
        bill: an open bill on the embedded engine.
        folder: what to write; must not exist.
        tags: tag keys to keep; all others are summed over.
        grain: one row per day, or per month (no anomalies, no daily forecast from it). A month that lacks days is
            kept by day, so that reviews of the cube know what is missing.
        progress: told the month and the share done.
        sources: files behind the bill, where the bill is made of cubes.

    Raises:
        InputError: the folder exists or may not be written, or the bill has findings of charges counted twice.
        OutputError: the disk is full or fails.
    """
    engine = bill.engine
    if not isinstance(engine, DuckDbEngine):
        raise InputError(f"a cube is built by the embedded engine, not by {engine.name}")
    if repeated := [finding for finding in bill.findings if finding.code == "repeated_charges"]:
        raise InputError(f"no cube is built of charges that are counted twice: {repeated[0].message}")
    if folder.exists():
        raise _existing(folder)
    own = (
        tuple((Path(source.path).name, source.sha256) for source in bill.sources)
        if sources is None
        else sources
    )
    partial = _partial(folder)
    try:
        _write(engine, bill, partial, tags, grain, progress)
        cube = _describe(engine, bill, partial, tuple(tags), grain, tuple(own))
        (partial / MANIFEST).write_text(_manifest(cube, partial), encoding="utf-8")
        partial.rename(folder)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):  # another process made it in the meantime
            raise _existing(folder) from None
        raise write_error(folder, error) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return replace(cube, folder=folder)


def _existing(folder: Path) -> InputError:
    return InputError(f"{folder}: exists already; choose another folder or remove it")


def merge_cubes(folders: Sequence[Path], folder: Path) -> Cube:
    """Add cubes of other months, accounts or clouds into a new one.

    Raises:
        InputError: a cube is damaged, two were made of the same file, or they keep different tags or grains.
    """
    cubes = [read_cube(path) for path in folders]
    for what in ("tags", "grain", "currency"):
        values = {getattr(cube, what) for cube in cubes}
        if len(values) > 1:
            shown = "; ".join(f"{cube.folder}: {getattr(cube, what) or 'none'}" for cube in cubes)
            raise InputError(f"cubes of different {what} cannot be merged: {shown}")
    sources = tuple(source for cube in cubes for source in cube.sources)
    with open_cube(folders) as bill:
        return build_cube(bill, folder, tags=cubes[0].tags, grain=cubes[0].grain, sources=sources)


def open_cube(folders: Sequence[Path], *, currency: str | None = None) -> Bill:
    """Open cubes as one bill.

    Raises:
        InputError: a cube is damaged, or two were made of the same file.
    """
    cubes = [read_cube(path) for path in folders]
    seen: dict[str, Path] = {}
    for cube in cubes:
        for name, sha256 in cube.sources:
            if sha256 and sha256 in seen:
                raise InputError(
                    f"{cube.folder} and {seen[sha256]} were both made of {name}: give one of them"
                )
            if sha256:
                seen[sha256] = cube.folder
    bill = open_bill(list(folders), currency=currency)
    total = float(bill.engine.query("SELECT SUM(BilledCost) AS billed FROM focus")["billed"].iloc[0])
    billed = sum(cube.billed for cube in cubes)
    if currency is None and abs(total - billed) > 0.01 + 1e-9 * abs(billed):
        bill.close()
        raise InputError(
            f"the cubes' files hold {total:,.2f} and their manifests {billed:,.2f}: build them again"
        )
    return bill


def read_cube(folder: Path) -> Cube:
    """Read a cube's manifest and check its files against it.

    Raises:
        InputError: there is no cube, or a file is missing or was changed.
    """
    path = folder / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(read_limited(path, MAX_RECORD_BYTES).decode("utf-8"))
        files: dict[str, str] = manifest.pop("files")
        if manifest.pop("schema_version") != SCHEMA_VERSION:
            raise InputError(f"{path}: was written by another version: build the cube again")
        cube = _of_manifest(manifest, folder)
        for name, text in files.items():
            if not isinstance(text, str) or Path(name).name != name or len(name) > _LONGEST_NAME:
                raise ValueError("files")
    except OSError:
        raise InputError(f"{folder}: is not a cube (it has no {MANIFEST})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        raise InputError(f"{path}: is damaged: build the cube again") from None
    for name, sha256 in files.items():
        if not (folder / name).is_file():
            raise InputError(f"{folder}: lacks {name}: build the cube again")
        if _sha256(folder / name) != sha256:
            raise InputError(f"{folder / name}: was changed after it was written: build the cube again")
    return cube


def _of_manifest(values: dict[str, Any], folder: Path) -> Cube:
    """The cube that a manifest describes.

    Raises:
        ValueError, KeyError, TypeError: it is none.
    """
    if not all(isinstance(values[name], list) for name in ("tags", "months", "sources")):
        raise TypeError("lists")
    numbers = [values.pop(name) for name in ("rows", "charges", "billed", "effective")]
    if not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
        raise ValueError("numbers")
    cube = Cube(
        folder=folder, grain=values.pop("grain"), currency=values.pop("currency"),
        tags=tuple(values.pop("tags")), months=tuple(values.pop("months")),
        rows=int(numbers[0]), charges=int(numbers[1]), billed=float(numbers[2]), effective=float(numbers[3]),
        sources=tuple((name, sha256) for name, sha256 in values.pop("sources")),
    )  # fmt: skip
    texts = [cube.currency, *cube.tags, *cube.months, *(text for pair in cube.sources for text in pair)]
    if values or cube.grain not in ("day", "month") or not all(isinstance(text, str) for text in texts):
        raise ValueError("texts")
    return cube


def cube_sql(tags: Sequence[str], grain: Grain, month: str, extras: Sequence[str] = ()) -> str:
    """Return the SELECT that sums one month of `focus` up."""
    columns = focus_columns()[COST]
    keys = [name for name in columns if name not in (*MEASURES, *LEFT_OUT, *_DERIVED)] + list(extras)
    start = "ChargePeriodStart"
    # charges of up to a day become the day's; longer ones (purchases, monthly fees) keep their period
    short = f"COALESCE(ChargePeriodEnd <= {start} + INTERVAL 1 DAY, TRUE)"
    unit = text(grain)
    begin = f"CASE WHEN {short} THEN DATE_TRUNC({unit}, {start}) ELSE {start} END"
    end = f"CASE WHEN {short} THEN DATE_TRUNC('day', {start}) + INTERVAL 1 DAY ELSE ChargePeriodEnd END"
    if grain == "month":
        end = (
            f"CASE WHEN {short} THEN DATE_TRUNC('month', {start}) + INTERVAL 1 MONTH ELSE ChargePeriodEnd END"
        )
    grouped = [quote(name) for name in keys]
    # rows with and without a price, and those whose effective cost is missing, stay apart: a sum would hide them
    apart = "x_list_known, x_contracted_known, (EffectiveCost = 0 AND BilledCost > 0), (EffectiveCost < 0)"
    known = {"ListCost": "x_list_known", "ContractedCost": "x_contracted_known"}
    sums = ", ".join(
        f"CASE WHEN {known[name]} THEN SUM({name}) END AS {name}"
        if name in known
        else f"SUM({name}) AS {name}"
        for name in MEASURES
    )
    kept = "CAST(NULL AS VARCHAR)"
    if tags:
        pairs = ", ".join(f"{text(tag)}, JSON_EXTRACT_STRING(raw, {text(_path(tag))})" for tag in tags)
        kept = f"NULLIF(CAST(JSON_MERGE_PATCH('{{}}', JSON_OBJECT({pairs})) AS VARCHAR), '{{}}')"
    where = f"x_month = CAST({text(month)} AS DATE)"
    return (
        f"WITH texts AS (SELECT raw, {kept} AS kept FROM (SELECT DISTINCT Tags AS raw FROM focus WHERE {where})) "
        f"SELECT {', '.join(grouped)}, {begin} AS ChargePeriodStart, {end} AS ChargePeriodEnd, kept AS Tags, {sums}, "
        f"CAST(COUNT(*) AS VARCHAR) AS x_charges FROM focus LEFT JOIN texts ON focus.Tags = texts.raw WHERE {where} "
        f"GROUP BY {', '.join(grouped)}, {begin}, {end}, kept, {apart}"
    )


def _path(tag: str) -> str:
    if not tag or '"' in tag:
        raise InputError(f"tag {tag!r}: an empty key, or one with a double quote, cannot be looked up")
    return f'$."{tag}"'


def _partial(folder: Path) -> Path:
    try:
        return temporary_folder(folder.absolute().parent, f".{folder.name}.")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written there: {error.strerror}") from None


def _write(
    engine: DuckDbEngine,
    bill: Bill,
    folder: Path,
    tags: Sequence[str],
    grain: Grain,
    progress: Progress | None,
) -> None:
    columns = engine.query("SELECT * FROM focus LIMIT 0").columns
    extras = [UNPRICED] if UNPRICED in columns else []
    for number, month in enumerate(bill.months):
        if progress is not None:
            progress(f"{month:%Y-%m}", number / len(bill.months))
        target = folder / f"focus-{month:%Y-%m}.parquet"
        own: Grain = "month" if grain == "month" and not _lacks_days(bill, month) else "day"
        _copy(engine, cube_sql(tags, own, month.isoformat(), extras), target)
    for dataset in focus_columns():
        if dataset != COST and engine.query(f"SELECT COUNT(*) AS n FROM {dataset}")["n"].iloc[0]:
            names = ", ".join(quote(name) for name in focus_columns()[dataset])
            _copy(engine, f"SELECT {names} FROM {dataset}", folder / f"{dataset}.parquet")


def _lacks_days(bill: Bill, month: date) -> bool:
    """Whether a month, or a provider in it, has no use on some of its days: sums of the month would hide that."""
    checks = assess_quality(bill, month).checks
    return any(check.status != "ok" for check in checks if check.key in ("complete", "complete_providers"))


def _copy(engine: DuckDbEngine, sql: str, target: Path) -> None:
    import duckdb

    try:
        with memory_to_write(engine.connection):
            engine.connection.execute(f"COPY ({sql}) TO {text(str(target))} (FORMAT parquet)")
    except duckdb.Error as error:
        if (ended := ran_out(error)) is not None:
            raise ended from None
        raise InputError(f"{target.parent.parent}: the cube cannot be written: {first_line(error)}") from None


def _describe(
    engine: DuckDbEngine,
    bill: Bill,
    folder: Path,
    tags: tuple[str, ...],
    grain: Grain,
    sources: tuple[tuple[str, str], ...],
) -> Cube:
    found = engine.connection.execute(
        "SELECT COUNT(*), SUM(CAST(x_charges AS BIGINT)), SUM(BilledCost), SUM(EffectiveCost) "
        f"FROM READ_PARQUET({text(str(folder / 'focus-*.parquet'))})"
    ).fetchone()
    rows, charges, billed, effective = found or (0, 0, 0.0, 0.0)
    months = tuple(f"{month:%Y-%m}" for month in bill.months)
    return Cube(
        folder=folder,
        grain=grain,
        tags=tags,
        currency=bill.currency,
        months=months,
        rows=int(rows),
        charges=int(charges or 0),
        billed=billed or 0.0,
        effective=effective or 0.0,
        sources=sources,
    )


def _manifest(cube: Cube, folder: Path) -> str:
    manifest = {key: value for key, value in cube.__dict__.items() if key != "folder"}
    manifest["files"] = {path.name: _sha256(path) for path in sorted(folder.iterdir())}
    return json.dumps({"schema_version": SCHEMA_VERSION, **manifest}, indent=1) + "\n"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
