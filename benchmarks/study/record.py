"""One workload's record: a pure function of the file and the options, so any engine can map it over a suite."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.study import arms, clusters
from benchmarks.study.suite import Published, published
from catalogs.store.load import load_catalog
from catalogs.tables.table import Bools
from planner.asked.given import options_on
from planner.asked.options import Options
from planner.candidates.limits import mark_offers
from planner.candidates.model import SINGLE
from planner.errors import InputError, PlannerError
from planner.inputs.load import LoadedWorkload, load_workload
from planner.job.overrides import override
from planner.plan.model import Plan, PlanLine
from planner.workloads.answer import Answer, optimize

Record = dict[str, Any]
SHARED = "commitments_shared"
PLACE_NOT_STATED = "place_not_stated"
LONGEST_S = 600.0  # of a fleet's search: the default would end it early on a busy machine
_RESULTS = 1
_YEAR_HOURS = 8760.0


@dataclass(frozen=True)
class StudyOptions:
    """What every workload of a study is asked under.

    Attributes:
        as_of: day planned on, ISO date.
        solver: `both`: a MILP chooses each plan of one job too and must agree; `enumerate`: enumeration alone.
    """

    as_of: str = "2026-11-22"
    solver: str = "both"

    @property
    def planner(self) -> Options:
        """The planner's options: prices known that day, no measurements of whoever runs the study."""
        return replace(options_on(self.as_of), calibrated=False, time_limit_s=LONGEST_S, solver=self.solver)


def study_record(path: str, options: StudyOptions) -> Record:
    """Plan a workload in every arm and price what it is compared with.

    Args:
        path: the workload file.
        options: of the study.

    Returns:
        Plain JSON values, the same wherever it runs; `status` is `planned`, or `refused` and `failed` with a `reason`.
    """
    file = Path(path)
    record: Record = {"id": file.stem}
    try:
        record["published"] = asdict(published(file))
        record |= _studied(file, options)
    except (PlannerError, ValueError) as error:
        record |= {"status": "refused", "reason": _reason(error, file)}
    except Exception as error:  # noqa: BLE001  a fault of the planner is a row of the study, not its end
        record |= {"status": "failed", "reason": f"{type(error).__name__}: {_reason(error, file)}"}
    record.setdefault("published", asdict(Published()))
    return record


def _reason(error: Exception, file: Path) -> str:
    """The first line of a message, without the folder that the workload lies in."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    for folder in (file.parent, file.parent.parent):
        first = first.replace(f"{folder}/", "")
    return first[:200]


@cache
def placed_providers() -> tuple[str, ...]:
    """Providers whose list prices all say where the machine is, and own machines."""
    offers = load_catalog().offers
    flags = [str(value) for value in offers["flags"]]
    names = [str(value) for value in offers["provider"]]
    without = {name for name, flag in zip(names, flags, strict=True) if PLACE_NOT_STATED in flag}
    return tuple(sorted(set(names) - without))


def _studied(file: Path, options: StudyOptions) -> Record:
    loaded = override(load_workload(file), max_results=_RESULTS)
    ask = options.planner
    whole, fault = _whole(loaded, ask)
    if fault:
        loaded = arms.without_baseline(loaded)
    placed = placed_providers()
    if loaded.workload.prices.offers:
        placed = (*placed, *_own_providers(whole, placed))
    plans = {"spot": plan_record(whole.plan)}
    if loaded.workload.baseline is None:
        plans["home"] = {"status": "refused", "reason": fault or "no baseline, so no provider of the owner"}
    for name in arms.ARMS:
        if name not in plans:
            share = (
                min(plans["anywhere"].get("hours", _YEAR_HOURS) / _YEAR_HOURS, 1.0) if name == SHARED else 1.0
            )
            plans[name] = _arm_record(arms.arm(loaded, name, placed, share), ask)
    compared = _compared(loaded, whole, ask)
    planned = any(item["status"] == "planned" for item in plans.values())
    return {
        "status": "planned" if planned else "infeasible",
        "reason": "" if planned else _why_infeasible(whole.plan),
        "baseline_fault": fault,
        "kind": loaded.workload.kind,
        "deadline_confidence": loaded.workload.constraints.deadline_confidence,
        "arms": plans,
        **compared,
        "instance_hours": _instance_hours(whole),
        "steps": _steps(loaded, whole, plans, compared, ask),
    }


def _whole(loaded: LoadedWorkload, ask: Options) -> tuple[Answer, str]:
    """The plan with everything allowed; where the catalog does not know the baseline, without it and why not with it.

    Raises:
        InputError: the workload is wrong beside its baseline.
    """
    try:
        return optimize(loaded, ask), ""
    except InputError as error:
        if loaded.workload.baseline is None:
            raise
        fault = _reason(error, loaded.path)
    return optimize(arms.without_baseline(loaded), ask), fault


def _arm_record(loaded: LoadedWorkload, ask: Options) -> Record:
    """A workload's plan in one arm, or why the arm cannot be asked of it."""
    try:
        return plan_record(optimize(loaded, ask).plan)
    except InputError as error:
        return {"status": "refused", "reason": _reason(error, loaded.path)}


def _instance_hours(answer: Answer) -> dict[str, float]:
    """Least instance-hours on demand in time, by `provider/instance type`; of fleets none."""
    if answer.found is None:
        return {}
    made, offers = answer.found.candidates, answer.context.market.offer_set.offers
    least: dict[str, float] = {}
    firm = offers.equals("purchase_option", "on_demand")[made.offer]
    for at in np.flatnonzero((made.bits == 0) & (made.kind == SINGLE) & firm):
        row = int(made.offer[at])
        name = f"{offers['provider'][row]}/{offers['instance_type'][row]}"
        least[name] = min(least.get(name, np.inf), float(made.instance_hours[at]))
    return dict(sorted(least.items()))


def _own_providers(answer: Answer, known: tuple[str, ...]) -> tuple[str, ...]:
    catalog = {str(name) for name in load_catalog().offers["provider"]}
    here = {str(name) for name in answer.context.market.offer_set.offers["provider"]}
    return tuple(sorted(here - catalog - set(known)))


def _why_infeasible(plan: Plan) -> str:
    removed = sorted(plan.filters, key=lambda item: -item.removed)
    return "no candidate satisfies all limits; most are removed by " + ", ".join(
        item.name for item in removed[:3]
    )


def plan_record(plan: Plan) -> Record:
    """A plan in brief: money in USD as numbers, hours, the chance, and the dates of its prices."""
    if plan.status != "planned":
        return {"status": plan.status, "reason": _why_infeasible(plan)}
    risk, launch = plan.risk, plan.launch
    costs = [cost for line in plan.lines for cost in line.costs]
    high = plan.total_usd if risk is None else risk.worst_cost_usd
    return {
        "status": "planned",
        "cost_usd": float(plan.total_usd),
        "cost_p10_usd": None if launch is None else float(launch.cost_p10_usd),
        "cost_p90_usd": float(max(high, plan.total_usd)),
        "hours": plan.hours,
        "hours_p90": plan.hours if risk is None else max(risk.worst_hours, plan.hours),
        "p_meet_deadline": None if risk is None else risk.p_meet_deadline,
        "fall_back_hours": None if launch is None else launch.on_demand_hours,
        "proof": None if plan.proof is None else plan.proof.method,
        "lines": [_line_record(line) for line in plan.lines],
        "beside_compute_usd": float(sum(cost.amount_usd for cost in costs if cost.kind not in ("compute", "upfront"))),
    }  # fmt: skip


def _line_record(line: PlanLine) -> Record:
    layout = line.layout
    return {
        "provider": line.provider, "region": line.region, "zone": line.zone, "instance_type": line.instance_type,
        "accelerator": line.accelerator, "nodes": line.nodes, "purchase_option": line.purchase_option,
        "price_per_hour_usd": float(line.price_per_hour * line.usd_per_currency),
        "price_kind": line.price_kind, "price_as_of": line.price_as_of, "billed_hours": float(line.billed_hours),
        "layout": None if layout is None else (
            f"tp {layout.tensor_parallel} pp {layout.pipeline_parallel} dp {layout.data_parallel}"
            f" zero {layout.zero_stage} micro {layout.micro_batch} recompute {layout.recompute}"
        ),
    }  # fmt: skip


def _compared(loaded: LoadedWorkload, whole: Answer, ask: Options) -> Record:
    """What the plan is compared with: the named baseline, and SkyPilot's choice on demand and on spot."""
    baseline = loaded.workload.baseline
    if baseline is None:
        return {"baseline": None, "sky_on_demand": None, "sky_spot": None}
    if whole.found is None:
        return _compared_fleet(loaded, whole, ask)
    found = whole.found
    sky = {f"sky_{option}": clusters.sky_cluster(found, baseline, option) for option in ("on_demand", "spot")}
    named = clusters.named_cluster(found, baseline)
    return {
        "baseline": named.as_dict(),
        **{name: None if made is None else made.as_dict() for name, made in sky.items()},
    }


def _compared_fleet(loaded: LoadedWorkload, whole: Answer, ask: Options) -> Record:
    """A fleet's baseline and SkyPilot's choice, planned on that machine type alone."""
    baseline = loaded.workload.baseline
    assert baseline is not None
    market = whole.context.market
    rows, note = clusters.rows_of(market, baseline)
    made: Record = {"baseline": None, "sky_on_demand": None, "sky_spot": None}
    if not len(rows):
        told: dict[str, Any] = {
            name: getattr(baseline, name)
            for name in ("provider", "region", "instance_type", "purchase_option")
        }
        return made | {
            "baseline": clusters.Cluster(**told, nodes=baseline.nodes, status="not in the catalog").as_dict()
        }
    made["baseline"] = _pinned(loaded, whole, int(rows[0]), baseline.nodes, note, ask)
    usable = np.isfinite(market.offer_set.usd_per_hour) & admitted_offers(whole)
    for option in ("on_demand", "spot"):
        row = clusters.sky_row(market, usable, int(rows[0]), option)
        if row is not None:
            made[f"sky_{option}"] = _pinned(loaded, whole, row, baseline.nodes, "", ask)
    return made


def admitted_offers(answer: Answer) -> Bools:
    """Mask of the offers that a workload's limits admit, shape `(n_offers,)`."""
    asked, market = answer.context.asked, answer.context.market
    bits = mark_offers(market.offer_set, asked.workload.constraints, asked.job)
    return np.asarray(bits == 0, dtype=np.bool_)


def _pinned(loaded: LoadedWorkload, whole: Answer, row: int, nodes: int, note: str, ask: Options) -> Record:
    offers = whole.context.market.offer_set.offers
    names = ("provider", "region", "instance_type", "purchase_option")
    told: dict[str, Any] = {name: str(offers[name][row]) for name in names}
    accelerator = clusters.accelerator_of(whole.context.market, row)
    plan = optimize(arms.fleet_pinned(loaded, *told.values()), ask).plan
    if plan.status != "planned":
        return clusters.Cluster(
            **told, nodes=nodes, status="does not fit", note=_why_infeasible(plan), accelerator=accelerator
        ).as_dict()
    used = float(sum(line.nodes * float(line.billed_hours) for line in plan.lines))
    hours = used / nodes
    deadline = whole.context.dates.deadline_hours
    first = plan.lines[0]
    return clusters.Cluster(
        **told, nodes=nodes, status="late" if deadline is not None and hours > deadline else "ok", note=note,
        accelerator=accelerator, price_per_hour=float(first.price_per_hour * first.usd_per_currency),
        price_as_of=first.price_as_of, cost_usd=float(plan.total_usd), hours=hours, running_hours=hours,
    ).as_dict()  # fmt: skip


def _steps(
    loaded: LoadedWorkload, whole: Answer, plans: dict[str, Record], compared: Record, ask: Options
) -> list[Record]:
    """The way from the owner's cluster to the plan, one freedom more at each step; None: no figure there.

    plain layout -> the named baseline -> any number of machines -> any place and provider of that accelerator -> any
    machine type -> any way to buy, done no later than the plan before (P90) -> any time up to the deadline.
    """
    named, baseline = compared["baseline"], loaded.workload.baseline
    if baseline is None or named is None or named["status"] not in ("ok", "late"):
        return []

    def cost(change: LoadedWorkload) -> float | None:
        made = _arm_record(change, ask).get("cost_usd")
        return None if made is None else float(made)

    firm = plans["anywhere"]
    free = None
    if firm["status"] == "planned":  # the plan on demand is one of the ways to buy
        free = cost(arms.by(loaded, firm["hours_p90"]))
        free = firm["cost_usd"] if free is None else min(free, firm["cost_usd"])
    values = {
        "plain layout": _plain_layout_cost(loaded, whole, ask),
        "baseline": named["cost_usd"],
        "count": cost(arms.pinned_type(loaded, named["provider"], named["region"], named["instance_type"])),
        "place": cost(arms.same_accelerator(loaded, named["accelerator"])),
        "type": firm.get("cost_usd"),
        "option": free,
        "timing": plans["spot"].get("cost_usd"),
    }
    return [{"step": name, "cost_usd": value} for name, value in values.items()]


def _plain_layout_cost(loaded: LoadedWorkload, whole: Answer, ask: Options) -> float | None:
    baseline = loaded.workload.baseline
    transformer = whole.context.asked.job.model.family == "transformer"
    plain = arms.plain_layout(loaded, transformer)
    if plain is None or baseline is None:
        return None
    found = optimize(arms.on_type(plain, baseline.instance_type), ask).found
    assert found is not None
    return clusters.named_cluster(found, baseline).cost_usd
