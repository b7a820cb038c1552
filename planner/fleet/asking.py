"""From workers to the question: costs and work, the places they open, the limits on their mix; wishes refused."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.table import distinct
from planner.candidates.constraints.registry import CONSTRAINTS
from planner.candidates.constraints.throughput import throughput_floor
from planner.candidates.limits import case_of
from planner.fleet.kept import work_units
from planner.fleet.question import FleetInput
from planner.fleet.whole_runs import whole_share
from planner.inputs.faults import Fault
from planner.market.obtainable import instances_at_once

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.asked.model import Asked, Dates
    from planner.candidates.constraints.base import Use
    from planner.candidates.context import Context
    from planner.fleet.workers import Workers
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.schema import Workload
    from planner.market.model import Market


_SHARES = ("max_spot_share", "max_share_per_region", "max_share_per_offer")  # of the work, in whole runs


def check_asked(loaded: LoadedWorkload, workload: Workload) -> None:
    """Refuse wishes that mean nothing for a fleet."""
    faults = []
    wished = workload.preferences.objective
    if wished != "cost":
        limit = "an earlier constraints.deadline" if wished == "time" else "constraints.max_kgco2e"
        text = f"a fleet is planned for cost: set {limit} instead of objective {wished}"
        faults.append(Fault(("preferences", "objective"), text))
    if workload.constraints.max_accelerators is not None:
        text = (
            "a fleet is limited by its nodes: set constraints.max_nodes, or allow fewer accelerators per node"
        )
        faults.append(Fault(("constraints", "max_accelerators"), text))
    if faults:
        raise loaded.error(faults)


def question_of(
    context: Context, workers: Workers, work: float, spared_usd: float = 0.0, kept_hours: float = 0.0
) -> FleetInput:
    """The question; a place that is used pays `kept_hours` of the copy of the data set and of a file system."""
    rows, nodes = workers.rows, workers.nodes
    shared = workers.copy_usd_per_hour + workers.system_usd_per_hour
    opened = workers.place_usd + workers.opened_usd + kept_hours * shared
    region, names, first = _codes(_places(context.market, rows))
    least = opened[first]
    np.minimum.at(least, region, opened)
    limits, fleet = context.asked.workload.constraints, context.asked.workload.fleet
    wishes: dict[str, Any] = {} if fleet is None else {
        **{name: whole_share(getattr(fleet, name), fleet.runs) for name in _SHARES},
        "max_regions": fleet.max_regions,
    }  # fmt: skip
    types, kind = context.market.offer_set.types, context.market.offer_set.type_of_offer[rows]
    memory = types["accelerator_memory_gib"][kind] * np.maximum(types["accelerator_count"][kind], 1.0) * nodes
    held = instances_at_once(context.market.offer_set, limits.obtainable)
    return FleetInput(
        keys=tuple(range(len(rows))), cost_usd=workers.fixed_usd + workers.usd_per_hour * workers.hours_limit,
        fixed_cost_usd=workers.fixed_usd, throughput=workers.units_per_hour * workers.hours_limit,
        required_throughput=work, max_units=np.floor(held[rows] / nodes),
        region=region, provider=context.market.provider_of_offer[rows], is_spot=context.market.is_spot[rows],
        memory_gib=memory.astype(np.float64),
        region_cost_usd=least, region_names=names,
        min_total_memory_gib=limits.min_total_memory_gib,
        max_total_units=limits.max_nodes // int(nodes.max(initial=1)),
        budget_usd=None if limits.budget_usd is None else float(limits.budget_usd) - spared_usd,
        uses=_uses(context, workers), **wishes, **_shared_capacity(context.market, rows, nodes, held),
    )  # fmt: skip


def limit_hours_of(asked: Asked, dates: Dates) -> float:
    """Hours there are: until the deadline, and no more than a least throughput, sustained, would take."""
    hours = [] if dates.deadline_hours is None else [dates.deadline_hours]
    if asked.workload.constraints.min_throughput is None:
        hours = hours or [asked.assumptions.fleet_horizon_hours]
    else:
        hours.append(work_units(asked) / throughput_floor(asked.workload.constraints, asked.job) / 3600.0)
    return min(hours)


@dataclass(frozen=True)
class Spread:
    """Offers that the work is spread over at least, and the largest share of it on spot."""

    offers: int = 1
    spot_share: float = 1.0


def spread_over(question: FleetInput, spread: Spread, runs: int) -> FleetInput:
    """The question whose answers spread the work so, as far as whole runs let them."""
    each = 1.0 / spread.offers if runs == 1 else math.ceil(runs / spread.offers) / runs
    return replace(
        question,
        max_share_per_offer=_least(question.max_share_per_offer, each),
        max_spot_share=_least(question.max_spot_share, whole_share(spread.spot_share, runs)),
    )


def _least(limit: float | None, share: float | None) -> float | None:
    """The smaller share of the work; None where neither limits it."""
    least = min(1.0 if limit is None else limit, 1.0 if share is None else share)
    return limit if least >= 1.0 else least


def _uses(context: Context, workers: Workers) -> tuple[Use, ...]:
    """Rows of the constraints that count what workers use."""
    worked = workers.hours_limit * workers.paid_ratio
    case, given = case_of(context), (workers.rows, workers.nodes, worked, workers.fixed_hours)
    return tuple(use for item in CONSTRAINTS for use in item.fleet_uses(case, *given))


def _places(market: Market, rows: Ints) -> list[str]:
    offers = market.offer_set.offers
    provider, region = offers["provider"], offers["region"]
    return [f"{provider[row]}/{region[row]}" for row in rows.tolist()]


def _codes(names: list[str]) -> tuple[Ints, tuple[str, ...], Ints]:
    """Codes of `names`, the distinct names, and the first position of each."""
    found, first, codes = distinct(np.asarray(names))
    return codes.astype(np.int64), tuple(found.tolist()), first


def _shared_capacity(market: Market, rows: Ints, nodes: Ints, held: Floats) -> dict[str, Any]:
    """Rows that are the same offer twice share one capacity; commitments of equal terms are one offer, each its own."""
    names = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
    offer, keys = market.offer_set.offers.take(rows).distinct_keys(*names)
    if len(keys) == len(rows):
        return {}
    own = np.where(np.isnan(market.offer_set.owned_share[rows]), -1, rows)
    group = distinct(offer * (int(own.max()) + 2) + own + 1)[2].astype(np.int64)
    limit = np.full(int(group.max()) + 1, np.inf)
    np.minimum.at(limit, group, np.floor(held[rows] / nodes))
    several = {} if len(limit) == len(keys) else {"offer_group": offer}
    return {"capacity_group": group, "capacity_limit": limit, **several}
