"""`planner optimize`: from a workload and a catalog to the plan. Every step is a function a notebook can call."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from catalogs.store.load import load_catalog
from planner.candidates.choose import choose
from planner.candidates.plan_parts.summary import summarize
from planner.candidates.prepare import check_ages, prepare
from planner.errors import InputError
from planner.inputs.tasks import expand_task
from planner.job.answer import plan_job
from planner.judge.lines import verify_plan
from planner.plan.brief import Summary
from planner.plan.model import Assumption, Plan, Sensitivity
from planner.plan.quote import check_level
from planner.records import record

if TYPE_CHECKING:
    from pathlib import Path

    from catalogs.tables.model import Catalog
    from planner.asked.model import Asked
    from planner.asked.options import Options
    from planner.candidates.context import Context
    from planner.candidates.engine import CandidateSearch
    from planner.fleet.question import FleetInput
    from planner.fleet.search import FleetResult
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.schema import Workload
    from planner.market.model import Market


@record(frozen=True, eq=False)
class Answer:
    """A plan with the run behind it, for `--why-not`, `--certificate` and notebooks.

    `proven`: of a fleet, the model that the proof is about, and its solution; None for other plans.
    """

    plan: Plan
    context: Context
    found: CandidateSearch | None
    proven: tuple[FleetInput, FleetResult] | None = None


def optimize(
    loaded: LoadedWorkload,
    options: Options,
    *,
    catalog_dir: Path | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """Find the plan of a workload.

    Args:
        loaded: the workload file.
        options: flags.
        catalog_dir: snapshot directory, default the bundled one.
        catalog: what can be bought, where it is loaded already.

    Raises:
        InputError: the workload is wrong in a way only the catalog can tell.
        CatalogError: the catalog cannot be used.
    """
    check_level(options.quote)
    if options.quote is not None and loaded.workload.kind == "fleet":
        raise InputError(
            "--quote: for the cost of a fleet, only P10 and P90 are known, which planner optimize FILE shows without "
            "it (80 %: P10 to P90); other levels are for single jobs"
        )
    known = load_catalog(catalog_dir, as_of=options.as_of) if catalog is None else catalog
    answer = _plan(loaded, known, options)
    check_ages(((line.instance_type, line.price_as_of) for line in answer.plan.lines), options)
    return answer


def _plan(loaded: LoadedWorkload, catalog: Catalog, options: Options) -> Answer:
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
    noted = tuple(Assumption(*item) for item in own.assumptions)
    named = {item.key for item in noted}
    rest = tuple(item for item in chosen.plan.assumptions if item.key not in named)
    plan = replace(chosen.plan, sensitivity=sensitivity, confidence="low", assumptions=(*noted, *rest))
    return replace(chosen, plan=plan)


def _plan_one(loaded: LoadedWorkload, workload: Workload, catalog: Catalog, options: Options) -> Answer:
    context = prepare(loaded, workload, catalog, options)
    if workload.kind == "fleet":
        from planner.candidates.engine import Engine
        from planner.candidates.wanted import Wanted
        from planner.fleet.answer import plan_fleet

        plan, proven = plan_fleet(loaded, context, options)
        if plan.status == "infeasible":
            from planner.workloads.fleet_memory import with_memory_options

            rest = replace(options, time_limit_s=options.time_limit_s / 2.0)
            one = Engine(context, sizes=(workload.fleet.nodes_per_run if workload.fleet else 1,))
            runs = one.at(context.dates.deadline, Wanted(one_offer=True))
            plan = with_memory_options(
                plan, runs, lambda asked: plan_fleet(loaded, context.with_asked(asked), rest)[0]
            )
        return Answer(_verified(plan, context.asked, context.market), context, None, proven)
    plan, found = plan_job(context, options)
    return Answer(_verified(plan, found.context.asked, found.context.market), found.context, found)


def _verified(plan: Plan, asked: Asked, market: Market) -> Plan:
    """Re-check the plan independently; a plan that fails its own verification is never shown."""
    if plan.proof is None or plan.status != "planned":
        return plan
    # pricing thousands of quotes once more would take longer than the search: `planner verify` does
    quotes = market.offer_set.quoted_offers()
    faults = verify_plan(plan.to_dict(), asked.workload, quotes, expected=False)
    if faults:
        raise AssertionError("the plan fails its own verification: " + "; ".join(faults))
    return replace(plan, proof=replace(plan.proof, verified=True))


def _brief(answer: Answer) -> Summary:
    assert answer.found is not None
    choice = choose(answer.found.candidates, answer.context.asked.workload.preferences.objective)
    assert choice is not None
    return summarize(answer.found.candidates, choice.winner, None)


__all__ = ["Answer", "optimize"]
