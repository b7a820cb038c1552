"""One cell of a sweep: a workload under a scenario, planned as on a day, and the row of plain values it comes to."""

from __future__ import annotations

import hashlib
import os
import platform
import time
import traceback
from dataclasses import replace
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalogs.errors import CatalogError
from planner.errors import InputError, PlannerError
from planner.files.limited import MAX_RECORD_BYTES, read_limited
from planner.records import record
from planner.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable

    from catalogs.tables.model import Catalog
    from planner.asked.options import Options
    from planner.inputs.load import LoadedWorkload
    from planner.plan.model import Plan

PLANNED, INFEASIBLE, REFUSED, FAILED = "planned", "infeasible", "refused", "failed"
_STATE = {"warm": False}  # whether this process has planned before


@record(frozen=True)
class Source:
    """What all cells of a day rest on besides their files; workers must have the same.

    Attributes:
        as_of: the day.
        catalog_dir: snapshot directory; empty: the bundled one and those in use.
        catalog_sha256: hash over the hashes of the providers' snapshots.
        measurements_sha256: hash of the user's calibrations; empty where they are not used.
        planner_version: of this package.
    """

    as_of: date
    catalog_dir: str
    catalog_sha256: str
    measurements_sha256: str
    planner_version: str = __version__


@record(frozen=True)
class Cell:
    """A question that a worker can answer without anything else; it can be pickled.

    Attributes:
        file: as it was named.
        scenario: name; empty: the file as it is.
        loaded: the file with the scenario's values in it.
        options: flags and day.
        source: what it rests on.
    """

    file: str
    scenario: str
    loaded: LoadedWorkload
    options: Options
    source: Source


@lru_cache(maxsize=2)  # cells come day by day
def catalog_of(as_of: date, catalog_dir: str) -> Catalog:
    """The catalog of a day, read once in a process."""
    from catalogs.store.load import load_catalog

    return load_catalog(Path(catalog_dir) if catalog_dir else None, as_of=as_of)


@lru_cache(maxsize=1)
def _measurements() -> str:
    from planner.calibration.store import directory

    folder = directory()
    files = sorted(folder.glob("*")) if folder.is_dir() else []
    return digest(path.name + digest_of_file(path) for path in files if path.is_file())


def digest(texts: Iterable[str]) -> str:
    """SHA-256 of texts in their order."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def digest_of_file(path: Path) -> str:
    """SHA-256 of a file's bytes; empty where it cannot be read or is too large: planning says so."""
    try:
        return hashlib.sha256(read_limited(path, MAX_RECORD_BYTES)).hexdigest()
    except OSError:
        return ""


def source_of(as_of: date, catalog_dir: str, *, calibrated: bool) -> Source:
    """What the cells of a day rest on, as this process has it.

    Raises:
        CatalogError: there are no prices of that day.
    """
    catalog = catalog_of(as_of, catalog_dir)
    prices = digest(f"{one.provider} {one.sha256}" for one in catalog.manifests)
    return Source(as_of, catalog_dir, prices, _measurements() if calibrated else "")


def forget() -> None:
    """Forget what this process has read, so that the next sweep sees the files of its time."""
    catalog_of.cache_clear()
    _measurements.cache_clear()


def run_cell(cell: Cell) -> dict[str, Any]:
    """Plan a cell: its row, and what the planning took under `seconds`, `cpu_seconds`, `warm` and `worker`.

    Args:
        cell: the question.

    Raises:
        InputError: this process has other prices, measurements or another version than the one that asks.
    """
    from planner.job.overrides import override
    from planner.workloads.answer import optimize

    # a row has no alternatives: the plan is the same without them
    lean, brief = override(cell.loaded, max_results=1), replace(cell.options, brief=True)
    catalog = _checked_catalog(cell)
    warm = _STATE["warm"]
    wall, cpu = time.perf_counter(), time.thread_time()
    try:
        values = _row_of(optimize(lean, brief, catalog=catalog).plan)
    except (PlannerError, CatalogError) as error:
        values = {"status": REFUSED, "message": str(error)}
    except Exception as error:  # noqa: BLE001 - a defect that one workload meets is a row, counted and shown
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        values = {"status": FAILED, "message": f"internal error: {type(error).__name__} at {place}: {error}"}
    _STATE["warm"] = True
    spent = {
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.thread_time() - cpu,
        "warm": warm,
        "worker": f"{platform.node()}:{os.getpid()}",
    }
    return {**_head(cell), **values, **spent}


def lost_row(cell: Cell, why: str) -> dict[str, Any]:
    """The row of a cell whose workers died."""
    return {**_head(cell), "status": FAILED, "message": why}


def _checked_catalog(cell: Cell) -> Catalog:
    """The catalog, if all that the cell rests on is the same here."""
    asked, day, folder = cell.source, cell.source.as_of, cell.source.catalog_dir
    calibrated = cell.options.calibrated
    if source_of(day, folder, calibrated=calibrated) != asked:
        forget()  # a worker may be older than the prices
        here = source_of(day, folder, calibrated=calibrated)
        if here != asked:
            raise InputError(f"worker {platform.node()} {_difference(here, asked)}")
    return catalog_of(day, folder)


def _difference(here: Source, asked: Source) -> str:
    if here.planner_version != asked.planner_version:
        return f"has planner {here.planner_version}, this process {asked.planner_version}: install the same on all"
    if here.catalog_sha256 != asked.catalog_sha256:
        return (
            f"has other prices of {asked.as_of}: give all workers the same snapshots, such as by a shared folder and "
            "PLANNER_CATALOG_DIR"
        )
    return (
        "has other measurements of your runs: copy the folder of calibrations there, or use --no-calibration"
    )


def _head(cell: Cell) -> dict[str, Any]:
    return {
        "file": cell.file,
        "workload": cell.loaded.workload.name,
        "scenario": cell.scenario,
        "as_of": cell.source.as_of.isoformat(),
        "kind": cell.loaded.workload.kind,
        "workload_sha256": cell.loaded.sha256,
        "catalog_sha256": cell.source.catalog_sha256,
        "planner_version": cell.source.planner_version,
    }


def _row_of(plan: Plan) -> dict[str, Any]:
    """What a plan comes to."""
    if not plan.lines:
        needs = "; ".join(f"{one.constraint} {one.current} -> {one.needed}" for one in plan.relaxations)
        return {"status": INFEASIBLE, "needs": needs}
    from planner.plan.outcome import choice_words

    saved = plan.savings
    baseline = None if saved is None or saved.baseline is None else saved.baseline
    return {
        "status": PLANNED,
        "plan_id": plan.run_id,
        "choice": choice_words(plan),
        "provider": _distinct(line.provider for line in plan.lines),
        "region": _distinct(line.region for line in plan.lines),
        "instance_type": _distinct(line.instance_type for line in plan.lines),
        "accelerator": _distinct(line.accelerator for line in plan.lines),
        "purchase_option": _distinct(line.purchase_option for line in plan.lines),
        "nodes": _nodes(plan),
        "total_usd": format(plan.total_usd, "f"),
        "hours": plan.hours,
        "finish": plan.finish_expected,
        "p_meet_deadline": None if plan.risk is None else plan.risk.p_meet_deadline,
        "baseline_usd": None if baseline is None else format(baseline.cost_usd, "f"),
        "saved_ratio": None if saved is None else saved.saved_ratio,
        "price_as_of": min(line.price_as_of for line in plan.lines),
        "price_basis": _distinct(line.price_basis for line in plan.lines),
    }


def _nodes(plan: Plan) -> int:
    """Instances in use at once, at most: what is bought one after another does not add up."""
    from planner.plan.words import machines_of

    in_turn = plan.launch is not None and plan.launch.strategy in ("spot", "spot_with_fallback")
    return (
        max(line.nodes for line in plan.lines) if in_turn else sum(line.nodes for line in machines_of(plan))
    )


def _distinct(texts: Iterable[str]) -> str:
    return " + ".join(dict.fromkeys(texts))
