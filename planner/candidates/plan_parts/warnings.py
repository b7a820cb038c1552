"""What a reader must know before spending money on the plan."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from catalogs.offers.flags import load_flags
from catalogs.tables.model import places_of
from catalogs.tables.regions import group_names
from planner.candidates.constraints.places import Provider, Region, Residency
from planner.candidates.limits import mark_offers
from planner.candidates.plan_parts.workload_notes import workload_notes
from planner.market.name_check import some_names
from planner.market.names import name_notes
from planner.market.offers import match_names
from planner.market.pricing import price_age_days
from planner.performance.device import has_peak
from planner.performance.evidence import load_evidence
from planner.plan.words import in_sentence, old_price, over_budget
from planner.spot.evidence import unused_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from catalogs.tariffs import Tariffs
    from planner.asked.job import Job
    from planner.asked.model import Asked, Dates
    from planner.candidates.context import Context
    from planner.candidates.model import Candidates
    from planner.market.model import Market
    from planner.market.offers import OfferSet
    from planner.performance.spec import ModelFamily
    from planner.plan.model import PlanLine, Risk

OLD_PRICE_DAYS = 90
OOM_WARNING = 0.05
_CANCELLED = {
    True: "can be cancelled",
    False: "cannot be cancelled",
    None: "whether it can be cancelled is unknown",
}


# Limits on places, and how own machines come to be within them.
_PLACED = (
    (Provider(), "providers", "add {provider} to use them"),
    (Region(), "regions", "add {place} to use them"),
    (
        Residency(),
        "residency",
        "their file has region {region}; write a country such as DE, or a group such as eu, as their location",
    ),
)
# What a reader of the plan must know of the offer itself: no place, no longer sold, an old price on purpose.
_SAID_FLAGS = frozenset({"place_not_stated", "region_availability_not_reflected", "retired", "price_kept"})


def _booking(tariffs: Tariffs, dates: Dates, line: PlanLine) -> str:
    """How a line that is booked is paid and cancelled, and from when it can be; "" for all else, and if owned."""
    rule = tariffs.option_rule(line.provider, line.purchase_option, line.option_variant)
    if not rule.is_booked or line.option_variant == "already_owned":
        return ""
    said = ["paid upfront"] if rule.upfront_all else []
    said.append(_CANCELLED[rule.cancellable])
    if rule.book_days is None:
        said.append("how far ahead it can be booked is unknown")
    elif rule.book_days == 0:
        said.append("requested when it is needed, not booked ahead")
    else:
        said.append(f"booked at most {rule.book_days} days ahead")
        opens = dates.start - timedelta(days=rule.book_days)
        if opens > dates.now:
            said.append(
                f"for this start from {opens:%Y-%m-%d}; until then, neither its price nor capacity is certain"
            )
    return f"{line.purchase_option} of {line.instance_type}: {', '.join(said)}"


def _commitment(tariffs: Tariffs, share: float | None, line: PlanLine, risk: Risk | None) -> str:
    """What a new commitment binds the buyer to beyond this run; "" for other ways to buy, and where it is owned."""
    rule = tariffs.option_rule(line.provider, line.purchase_option, line.option_variant)
    if not rule.whole_term or line.purchase_option == "owned" or line.option_variant == "already_owned":
        return ""
    counted = "is in the cost" if share is None else f"counts by {100 * share:g} % (prices.commitment_share)"
    takes = "" if risk is None else f"; this run takes {risk.expected_hours:,.0f} h"
    others = "; where other work pays a part, state prices.commitment_share" if share is None else ""
    return (
        f"{line.purchase_option} of {line.instance_type}: its whole term of {line.billed_hours:,.0f} h is owed, "
        f"used or not, and {counted}{takes}; {_CANCELLED[rule.cancellable]}{others}"
    )


def _started(dates: Dates) -> list[str]:
    """That the start is over, where nobody can buy for it any more."""
    if dates.start >= dates.now - timedelta(days=1):
        return []
    return [
        f"the start, {dates.start:%Y-%m-%d}, is before the day of planning, {dates.now:%Y-%m-%d}: no capacity "
        "can be bought for it"
    ]


def _measured(family: ModelFamily, market: Market, lines: Sequence[PlanLine]) -> Iterator[str]:
    """What is known of this kind of model on the software of each vendor."""
    for vendor in dict.fromkeys(market.vendor_of(line.accelerator) for line in lines):
        evidence = load_evidence().get((vendor, family))
        if evidence is None:
            yield f"never measured: {family} models on {vendor} software; the prediction is a guess"
        elif evidence.note:
            yield evidence.note


def _calibrated(market: Market, lines: Sequence[PlanLine]) -> bool:
    """Whether the user's measurements correct the speed on every line."""
    correction = market.asked.calibration
    generations = {market.generation_of(line.accelerator) for line in lines}
    return correction is not None and all(correction.describe(one) for one in generations)


def _not_moved(job: Job, lines: Sequence[PlanLine]) -> str:
    """That the data goes elsewhere and nobody said how much it is; "" where it is known, or stays."""
    location = job.location
    elsewhere = [
        line.region for line in lines if location not in (line.region, f"{line.provider}/{line.region}")
    ]
    if location is None or job.data_gb is not None or not elsewhere:
        return ""
    return (
        f"the size of the data is not stated, so neither the time nor the price of moving it from {location} is "
        "counted: give data.size or data.sample_size"
    )


def _left_out(asked: Asked, offer_set: OfferSet) -> Iterator[str]:
    """Own machines that a limit on places leaves out, which was most likely meant for what is rented."""
    limits, offers = asked.workload.constraints, offer_set.offers
    places, types = places_of(offers), offer_set.types.coded("instance_type")
    owned = offers.equals("purchase_option", "owned")
    for limit, key, how in _PLACED:
        removed = limit.offers(offer_set, limits, asked.job) if owned.any() else None
        at = [] if removed is None else np.flatnonzero(owned & removed).tolist()
        found: dict[str, set[str]] = {}
        for row in at:
            place = places.values[places.codes[row]]
            provider, region = place.split("/", 1)
            if key != "residency" or region.lower() not in group_names():
                said = how.format(place=place, provider=provider, region=region)
                found.setdefault(said, set()).add(types.values[types.codes[offer_set.type_of_offer[row]]])
        for said, names in found.items():
            yield f"own machines {some_names(names)} are excluded by constraints.{key}: {said}"


def _alone(asked: Asked, offer_set: OfferSet) -> Iterator[str]:
    """Own machines that the job may use several of and that no cluster joins, as their network is not stated."""
    limits, fleet = asked.workload.constraints, asked.workload.fleet
    nodes = fleet.nodes_per_run if fleet is not None else 1 if asked.job.is_inference else limits.max_nodes
    offers, types = offer_set.offers, offer_set.types
    rows = offer_set.type_of_offer
    several = offers.equals("purchase_option", "owned") & (offers["capacity"] > 1)
    joined = types["link_domain_accelerators"] > types["accelerator_count"]  # as in a rack
    found = several & (np.isnan(types["internode_gbps"]) & ~joined)[rows]
    if nodes == 1 or not found.any():
        return
    names = types.coded("instance_type")
    for row in dict.fromkeys(rows[found & (mark_offers(offer_set, limits, asked.job) == 0)].tolist()):
        name = names.values[names.codes[row]]
        yield (
            f"{name}: internode_gbps is not stated, so no plan joins several of these machines: give it in the file of "
            "prices.offers"
        )


def _other_precision(asked: Asked, offer_set: OfferSet) -> Iterator[str]:
    """Own machines, and what `allow` names beside others, that no plan uses: they lack the precision of the job."""
    if asked.job.is_inference:
        return
    training, limits, rows = asked.job.training, asked.workload.constraints, offer_set.type_of_offer
    lacks = ~has_peak(offer_set.hardware, training)[offer_set.hardware_of_type][rows]
    known = {name: offer_set.types.coded(name) for name in ("accelerator", "instance_type")}
    owned, machines = offer_set.offers.equals("purchase_option", "owned"), known["instance_type"]
    left_out = {
        str(machines.values[machines.codes[row]]): owned & (rows == row)
        for row in dict.fromkeys(rows[owned & lacks].tolist())
    }
    for key, rule in (("accelerator", limits.accelerators), ("instance_type", limits.instance_types)):
        named = {name: match_names(known[key], [name])[rows] for name in rule.allow or ()}
        left_out |= {name: fits for name, fits in named.items() if (lacks & fits).any()}
    if not left_out:
        return
    admitted = mark_offers(offer_set, limits, asked.job) == 0
    others = bool((admitted & ~lacks).any())
    has = {
        name: (offer_set.hardware[f"{name}_tflops"] > 0)[offer_set.hardware_of_type][rows]
        for name in ("bf16", "fp16")
    }
    for name, fits in left_out.items():
        own = admitted & fits
        if own.any() and lacks[own].all() and (others or owned[own].any()):
            other = next((precision for precision, rated in has.items() if rated[own].any()), "")
            how = f" (training.precision: {other} would allow it)" if other else ""
            yield f"{name} has no {training.precision}, so no plan uses it{how}"


def plan_warnings(
    context: Context, lines: Sequence[PlanLine], risk: Risk | None, *, in_turn: bool = False
) -> tuple[str, ...]:
    """Collect warnings about prices, risk and budget of the chosen lines; `in_turn`: used one after another."""
    out = [note.text for note in context.market.offer_set.notes if note.is_warning]
    out += context.asked.calibration.warnings if context.asked.calibration is not None else ()
    limits = context.asked.workload.constraints
    out += name_notes(limits, context.market.offer_set)
    out += _started(context.dates)
    out += _measured(context.asked.job.model.family, context.market, lines)
    if context.asked.workload.kind == "fleet" and limits.deadline is None and limits.min_throughput is None:
        hours = context.asked.assumptions.fleet_horizon_hours
        out.append(f"no deadline: the fleet is planned to be done within {hours:g} h (fleet_horizon_hours)")
    location = context.asked.job.location
    if location is not None and location not in places_of(context.market.offer_set.offers).values:
        out.append(
            f"data.location {location} is not a region of the catalog: its transfer price may be a general rate"
        )
    out += filter(None, [_not_moved(context.asked.job, lines)])
    for said in (_left_out, _alone, _other_precision):
        out += said(context.asked, context.market.offer_set)
    tariffs, share = context.market.tariffs, context.asked.workload.prices.commitment_share
    for line in lines:
        out += filter(None, (_booking(tariffs, context.dates, line), _commitment(tariffs, share, line, risk)))
    for line in lines:
        age = price_age_days(line.price_as_of, context.dates.now.date())
        if line.price_basis == "derived":
            out.append(
                f"the {line.purchase_option} price of {line.instance_type} is derived, not quoted ({age} days old)"
            )
        elif age is not None and age > OLD_PRICE_DAYS and line.option_variant != "already_owned":
            out.append(old_price(line.instance_type, line.price_as_of, age))
        out += [
            f"{line.instance_type}: {in_sentence(load_flags()[flag].description)}"
            for flag in line.flags
            if flag in _SAID_FLAGS
        ]
        out += [
            f"{cost.label}: price unknown, the highest known internet egress price is assumed"
            for cost in line.costs
            if "unknown_transfer_price" in cost.flags
        ]
    if context.asked.workload.kind != "fleet" and len(lines) > 1 and not in_turn:
        bought = " + ".join(f"{line.nodes} {line.purchase_option}" for line in lines)
        out.append(
            f"one cluster bought in parts ({bought}): the speed assumes that all its nodes share one network; "
            "ask for the same placement"
        )
    out += dict.fromkeys(filter(None, (_rack_note(context, line) for line in lines)))
    spot = dict.fromkeys(line.instance_type for line in lines if line.purchase_option == "spot")
    out += filter(None, [unused_records(context.spot, list(spot))])
    out += workload_notes(context.asked, lines, calibrated=_calibrated(context.market, lines))
    budget = context.asked.workload.constraints.budget_usd
    if risk is not None and budget is not None and risk.worst_cost_usd > Decimal(str(budget)):
        out.append(over_budget(risk.worst_cost_usd, Decimal(str(budget))))
    return tuple(dict.fromkeys(out))


def _rack_note(context: Context, line: PlanLine) -> str:
    """What a plan on racks assumes of their links, and how they are sold; "" for machines of their own."""
    types = context.market.offer_set.types
    same = types.equals("provider", line.provider) & types.equals("instance_type", line.instance_type)
    row = types.row(int(same.argmax()))
    joined, unit = row["link_domain_accelerators"], row["allocation_unit"]
    if not joined > row["accelerator_count"]:
        return ""
    sold = f"; sold in units of {unit:g}" if unit > 1 else ""
    return (
        f"{line.instance_type}: the speed assumes racks in which {joined:g} accelerators "
        f"({joined / row['accelerator_count']:g} machines) share one fast link{sold}"
    )


def memory_warnings(candidates: Candidates, at: int) -> tuple[str, ...]:
    """What candidate `at` risks in memory: too little on the accelerator, or on the host."""
    context = candidates.context
    row = candidates.shapes.row(int(candidates.shape[at]))
    out = []
    if row["oom_probability"] > OOM_WARNING:
        out.append(
            "the layout leaves little accelerator memory: "
            f"it runs out with a probability of {row['oom_probability']:.0%}"
        )
    types = context.market.offer_set.types
    host = float(types["memory_gib"][context.market.offer_set.type_of_offer[candidates.offer[at]]])
    need = row["host_memory_needed_gib"]
    if host < need:
        out.append(
            f"each node needs about {need:,.0f} GiB of host memory for processes, loaders and checkpoints; "
            f"it has {host:,.0f} GiB"
        )
    return tuple(out)
