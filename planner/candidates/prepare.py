"""From a workload file and a catalog to the run that candidates are built for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from catalogs.tariffs import load_tariffs
from planner.asked.assumptions import load_assumptions
from planner.asked.job import resolve_job
from planner.asked.model import Asked, Dates
from planner.calibration.find import calibration_notes, find_correction
from planner.candidates.context import Context
from planner.candidates.default_precision import as_admitted
from planner.errors import CatalogError, InputError
from planner.inputs.faults import Fault, FaultError
from planner.inputs.resolve import resolve_times
from planner.market.model import Market
from planner.market.names import check_names
from planner.market.offers import gather_offers
from planner.market.pricing import price_age_days
from planner.spot.risk import SpotRisk

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

    from catalogs.tables.model import Catalog
    from planner.asked.options import Options
    from planner.inputs.fio import DiskRates
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.schema import Workload
    from planner.market.machines import MachineSet
    from planner.spot.hazards import HazardModel


def prepare(loaded: LoadedWorkload, workload: Workload, catalog: Catalog, options: Options) -> Context:
    """Gather what planning needs and check the workload against the catalog.

    Args:
        loaded: the file, for places in messages.
        workload: the file's workload or a variant of it.
        catalog: what can be bought.
        options: flags.

    Raises:
        InputError: the workload names something unknown.
    """
    try:
        context = build_context(
            loaded,
            workload,
            catalog,
            options.now,
            calibrate=options.calibrated,
            keep_shapes=not options.brief,
        )
    except FaultError as error:
        raise loaded.error(error.faults) from None
    check_names(loaded, context.market.offer_set, context.market.tariffs)
    if options.live_prices:
        from catalogs.offers.overlays import PriceNote

        said = tuple(PriceNote(text, True, "prices.live") for text in options.live_prices)
        offers = context.market.offer_set
        context = context.with_asked(context.asked, replace(offers, notes=(*offers.notes, *said)))
    if options.live_quota:
        from planner.candidates.live_quota import with_live_quotas

        context = with_live_quotas(context)
    return context


def build_context(
    loaded: LoadedWorkload, workload: Workload, catalog: Catalog, now: datetime, *, calibrate: bool = True,
    keep_shapes: bool = True,
) -> Context:  # fmt: skip
    """Gather job, offers, tariffs, assumptions and dates of one workload.

    Raises:
        InputError: the workload names something unknown.
    """
    times = resolve_times(workload, now)
    tariffs = load_tariffs()
    offer_set = gather_offers(
        catalog, workload, tariffs, str(loaded.path.parent), now.date(), times.start.date()
    )
    asked = resolve_asked(loaded, workload, offer_set, now, calibrate=calibrate)
    admitted = as_admitted(workload, asked.job, offer_set)
    if admitted is not workload:
        asked = resolve_asked(loaded, admitted, offer_set, now, calibrate=calibrate)
    asked = asked if keep_shapes else replace(asked, keeps_shapes=False)
    return Context(
        asked=asked,
        dates=Dates(now, times.start, times.deadline),
        market=Market(catalog, offer_set, tariffs, asked),
        spot=SpotRisk(offer_set, tariffs, _own_hazards(workload, loaded.path.parent)),
    )


def resolve_asked(
    loaded: LoadedWorkload,
    workload: Workload,
    machine_set: MachineSet,
    now: datetime,
    *,
    calibrate: bool = True,
) -> Asked:
    """The job of one workload, corrected by the user's measurements; reads no price.

    Raises:
        FaultError: the workload names something unknown.
    """
    job = resolve_job(workload, now.date())
    calibration = find_correction(workload, job, machine_set, now) if calibrate else None
    if calibration is not None:
        job = replace(job, assumptions=(*job.assumptions, *calibration_notes(calibration)))
    return Asked(
        workload=workload, sha256=loaded.sha256, job=job,
        assumptions=load_assumptions(workload.assumptions, workload.kind), calibration=calibration,
        disk=_own_disk(workload, loaded.path.parent),
    )  # fmt: skip


def _own_disk(workload: Workload, folder: Path) -> DiskRates | None:
    """The user's own measurement of a local disk.

    Raises:
        FaultError: the file is no result of fio.
    """
    if workload.storage.fio is None:
        return None
    from planner.inputs.fio import read_fio

    try:
        return read_fio(folder / workload.storage.fio)
    except InputError as error:
        raise FaultError(Fault(("storage", "fio"), str(error))) from None


def _own_hazards(workload: Workload, folder: Path) -> HazardModel | None:
    """Hazards with the user's own records of spot capacity, None without any.

    Raises:
        InputError: a file cannot be read as a record or a preemption log.
    """
    if not workload.spot.evidence:
        return None
    from planner.spot.hazards_evidence import model_from_files

    try:
        return model_from_files([folder / name for name in workload.spot.evidence])
    except InputError as error:  # so that the message gets the place of the key in the workload
        raise FaultError(Fault(("spot", "evidence"), str(error))) from None


def check_ages(prices: Iterable[tuple[str, str]], options: Options) -> None:
    """Refuse an answer that rests on prices older than `options.max_age_days`.

    Args:
        prices: what is bought, and the date of its price.
        options: flags.

    Raises:
        CatalogError: names what is bought at an old price.
    """
    if options.max_age_days is None:
        return
    today = options.now.date()
    ages = {(name, day): price_age_days(day, today) for name, day in prices}
    old = [
        f"{name} ({day})" for (name, day), age in ages.items() if age is None or age > options.max_age_days
    ]
    if old:
        raise CatalogError(
            f"the answer depends on prices older than {options.max_age_days} days: {', '.join(old)}; "
            "raise --max-age, or get newer prices with `planner catalog refresh`"
        )


def unlimited(workload: Workload) -> Workload:
    """The workload without deadline and budget, compared by cost.

    Raises:
        InputError: the workload is a fleet, whose frontier is a different question.
    """
    if workload.kind == "fleet":
        raise InputError(
            "the cost/time frontier is for one synchronous job: a fleet has no single finishing time"
        )
    limits = workload.constraints.model_copy(update={"deadline": None, "budget_usd": None})
    wishes = workload.preferences.model_copy(update={"objective": "cost"})
    return workload.model_copy(update={"constraints": limits, "preferences": wishes})
