"""`planner optimize`: from a workload and a catalog to the plan. Every step is a function a notebook can call."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from catalogs.store.load import load_catalog
from catalogs.tariffs import load_tariffs
from planner.calibration.find import calibration_notes, find_correction
from planner.candidates.assumptions import load_assumptions
from planner.candidates.choose import choose
from planner.candidates.context import Asked, Context, Dates, Market, SpotRisk
from planner.candidates.decisions import count_near_ties
from planner.candidates.engine import Found, build
from planner.candidates.job_spec import resolve_job
from planner.candidates.model import IN_TURN, MIXED
from planner.errors import CatalogError, InputError
from planner.inputs.faults import Fault, FaultError
from planner.inputs.resolve import Assumed, resolve_times
from planner.inputs.tasks import expand_task
from planner.job.assemble import assemble_plan, infeasible_plan
from planner.job.explain import find_relaxations
from planner.job.summary import lines_of, summarize
from planner.job.warnings import price_age_days
from planner.judge.lines import verify_plan
from planner.market.names import check_names
from planner.market.offers import gather_offers
from planner.market.pricing import total_usd
from planner.plan.brief import Summary
from planner.plan.model import Assumption, Plan, Proof, Sensitivity
from planner.records import record

if TYPE_CHECKING:
    from catalogs.model import Catalog
    from planner.candidates.choose import Choice
    from planner.fleet.question import FleetInput
    from planner.fleet.search import FleetResult
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.schema import Workload
    from planner.spot.hazards import HazardModel


@record(frozen=True)
class Options:
    """Flags of `planner optimize` that are not part of the workload.

    Attributes:
        now: the moment planned at (`--as-of`, default the present).
        as_of: prices as known on this day; None = the newest.
        solver: `enumerate`, or `milp` for the same question through a MILP backend.
        backend: MILP backend name.
        gap: relative gap at which a MILP may stop.
        time_limit_s: most seconds of solving.
        live_quota: read the account's quotas and plan within them.
        max_age_days: refuse prices of a provider whose newest is older; None = never.
        calibrated: correct predictions with the user's own measurements.
        replays: futures on which a plan with spot is replayed; 0 none.
    """

    now: datetime
    as_of: date | None = None
    solver: str = "enumerate"
    backend: str = "scipy"
    gap: float = 1e-3
    time_limit_s: float = 30.0
    live_quota: bool = False
    max_age_days: int | None = None
    calibrated: bool = True
    replays: int = 0


@record(frozen=True, eq=False)
class Answer:
    """A plan with the run behind it, for `--why-not`, `--certificate` and notebooks.

    `proven`: of a fleet with a plan, the question that the proof is about, and its answer.
    """

    plan: Plan
    context: Context
    found: Found | None
    proven: tuple[FleetInput, FleetResult] | None = None


def build_context(
    loaded: LoadedWorkload, workload: Workload, catalog: Catalog, now: datetime, *, calibrate: bool = True
) -> Context:
    """Gather job, offers, tariffs, assumptions and dates of one workload.

    Raises:
        InputError: the workload names something unknown.
    """
    times = resolve_times(workload, now)
    tariffs = load_tariffs()
    job = resolve_job(workload, now.date())
    offer_set = gather_offers(catalog, workload, tariffs, str(loaded.path.parent), now.date())
    calibration = find_correction(workload, job, offer_set, now) if calibrate else None
    if calibration is not None:
        job = replace(job, assumptions=(*job.assumptions, *calibration_notes(calibration)))
    asked = Asked(
        workload=workload, sha256=loaded.sha256, job=job, assumptions=load_assumptions(workload.assumptions),
        calibration=calibration,
    )  # fmt: skip
    return Context(
        asked=asked,
        dates=Dates(now, times.start, times.deadline),
        market=Market(catalog, offer_set, tariffs, asked),
        spot=SpotRisk(offer_set, tariffs, _own_hazards(workload, loaded.path.parent)),
    )


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


def optimize(loaded: LoadedWorkload, options: Options, *, catalog_dir: Path | None = None) -> Answer:
    """Find the plan of a workload.

    Args:
        loaded: the workload file.
        options: flags.
        catalog_dir: snapshot directory, default the bundled one.

    Raises:
        InputError: the workload is wrong in a way only the catalog can tell.
        CatalogError: the catalog cannot be used.
    """
    catalog = load_catalog(catalog_dir, as_of=options.as_of)
    check_age(catalog, options)
    variants = expand_task(loaded.workload)
    if not variants:
        return _plan_one(loaded, loaded.workload, catalog, options)
    answers = [(variant, _plan_one(loaded, variant.workload, catalog, options)) for variant in variants]
    chosen = next(answer for variant, answer in answers if variant.chosen)
    sensitivity = tuple(
        Sensitivity(variant.name, variant.note, None if not answer.plan.lines else _brief(answer))
        for variant, answer in answers
    )
    own = next(variant for variant in variants if variant.chosen)
    noted = tuple(_assumption(item) for item in own.assumptions)
    named = {item.key for item in noted}
    rest = tuple(item for item in chosen.plan.assumptions if item.key not in named)
    plan = replace(chosen.plan, sensitivity=sensitivity, confidence="low", assumptions=(*noted, *rest))
    return replace(chosen, plan=plan)


def check_age(catalog: Catalog, options: Options) -> None:
    """Refuse a catalog whose prices are older than `options.max_age_days`.

    Raises:
        CatalogError: names the stale providers and their newest price.
    """
    if options.max_age_days is None:
        return
    today = options.now.date()
    ages = {m.provider: (price_age_days(m.newest_as_of, today), m.newest_as_of) for m in catalog.manifests}
    stale = [
        f"{name} ({day})" for name, (age, day) in ages.items() if age is None or age > options.max_age_days
    ]
    if stale:
        raise CatalogError(
            f"prices older than {options.max_age_days} days: {', '.join(stale)}; raise --max-age or import newer prices"
        )


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
        context = build_context(loaded, workload, catalog, options.now, calibrate=options.calibrated)
    except FaultError as error:
        raise loaded.error(error.faults) from None
    check_names(loaded, context.market.offer_set, context.market.tariffs)
    if options.live_quota:
        from planner.market.live_quota import with_live_quotas

        context = with_live_quotas(context)
    return context


def _plan_one(loaded: LoadedWorkload, workload: Workload, catalog: Catalog, options: Options) -> Answer:
    context = prepare(loaded, workload, catalog, options)
    if workload.kind == "fleet":
        proven: list[tuple[FleetInput, FleetResult]] = []
        plan = _verified(_plan_fleet(loaded, context, options, proven), context.asked, context.market)
        return Answer(plan, context, None, proven[0] if proven else None)
    begin = time.perf_counter()
    found = build(context)
    context = found.context
    choice = choose(found.candidates, workload.preferences.objective)
    if choice is None:
        return _explain_empty(found, begin)
    if options.solver == "milp":
        from planner.job.milp import choose_by_milp

        proof = choose_by_milp(found, choice, options, begin)
    else:
        proof = _enumeration_proof(found, choice, time.perf_counter() - begin)
    plan = assemble_plan(found, choice, proof)
    if options.replays and plan.launch is not None:
        from planner.job.spot_replay import replay_of

        replay = replay_of(found.candidates, choice.winner, plan, options.replays)
        plan = replace(plan, launch=replace(plan.launch, replay=replay))
    return Answer(_verified(plan, context.asked, context.market), context, found)


def _plan_fleet(
    loaded: LoadedWorkload,
    context: Context,
    options: Options,
    proven: list[tuple[FleetInput, FleetResult]],
) -> Plan:
    from planner.fleet.answer import plan_fleet
    from planner.inputs.faults import Fault
    from solvers.errors import BackendError

    faults = []
    if context.asked.workload.preferences.objective == "time":
        text = "a fleet is planned for cost: set an earlier constraints.deadline instead of objective time"
        faults.append(Fault(("preferences", "objective"), text))
    if context.asked.workload.constraints.max_accelerators is not None:
        text = (
            "a fleet is limited by its nodes: set constraints.max_nodes, or allow fewer accelerators per node"
        )
        faults.append(Fault(("constraints", "max_accelerators"), text))
    if faults:
        raise loaded.error(faults)
    try:
        return plan_fleet(context, options, proven)
    except BackendError as error:
        raise InputError(f"--backend: {error}") from error


def _verified(plan: Plan, asked: Asked, market: Market) -> Plan:
    """Re-check the plan independently; a plan that fails its own verification is never shown."""
    if plan.proof is None or plan.status != "planned":
        return plan
    faults = verify_plan(plan.to_dict(), asked.workload, market.offer_set.offers)
    if faults:
        raise AssertionError("the plan fails its own verification: " + "; ".join(faults))
    return replace(plan, proof=replace(plan.proof, verified=True))


def _explain_empty(found: Found, begin: float) -> Answer:
    """When nothing fits, look beyond the node limit too, so that the smallest relaxation may be more nodes."""
    context = found.candidates.context
    if context.asked.workload.constraints.max_nodes < 128:
        found = build(context, max_nodes=128)
        context = found.context
    relaxations = find_relaxations(found)
    plan = infeasible_plan(found, relaxations, time.perf_counter() - begin)
    return Answer(plan, context, found)


def _enumeration_proof(found: Found, choice: Choice, seconds: float) -> Proof:
    context = found.candidates.context
    made = found.candidates
    cost = total_usd(lines_of(made, choice.winner))
    counts = found.node_counts
    note = f"node counts {counts[0]}..{counts[-1]}: {len(counts)} sizes for all hardware"
    note += (
        f", all sizes for the {found.refined_hardware} that could do better between"
        if found.refined_hardware
        else ""
    )
    if made.mixes is not None:
        note += f"; {made.count(MIXED):,} clusters bought in parts"
    if made.turns is not None:
        note += f"; {made.count(IN_TURN):,} ways to run on spot with a fall-back or in several zones"
    return Proof(
        method="exact enumeration", status="optimal", solver="numpy", objective_usd=cost, bound_usd=cost, gap_ratio=0.0,
        candidates=len(made.all_bits()), offers=context.market.offer_set.offers.n_rows, shapes=made.shapes.n_rows,
        seconds=seconds, near_ties=count_near_ties(made), note=note,
    )  # fmt: skip


def _brief(answer: Answer) -> Summary:
    assert answer.found is not None
    choice = choose(answer.found.candidates, answer.context.asked.workload.preferences.objective)
    assert choice is not None
    return summarize(answer.found.candidates, choice.winner, None)


def _assumption(item: Assumed) -> Assumption:
    return Assumption(item.key, item.value, item.unit, item.origin, item.note)


def utc_now() -> datetime:
    """The present moment in UTC, to the minute."""
    return datetime.now(UTC).replace(second=0, microsecond=0)


__all__ = ["Answer", "Options", "build_context", "optimize", "prepare", "utc_now"]
