"""Candidates in brief: alternatives, baseline and savings."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.registry import SHAPE_FILTERS, constraint
from planner.candidates.decisions import KNOWN_PRICES, ON_DEMAND, best_of, members_of
from planner.candidates.engine import candidates_of, known_shape
from planner.candidates.footprint import footprint_of
from planner.candidates.model import IN_TURN
from planner.market.pricing import total_usd
from planner.plan.brief import Summary, SummaryPart
from planner.plan.model import CostLine, Savings
from planner.plan.words import OBJECTIVES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Table
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates, Part
    from planner.inputs.schema import Baseline
    from planner.market.model import Market


YOUR_CLUSTER = "your cluster"  # label of a baseline that the workload names


def lines_of(candidates: Candidates, at: int) -> list[CostLine]:
    """Return the cost lines of candidate `at` in Decimal."""
    return [line for costs in lines_by_part(candidates, at) for line in costs]


def lines_by_part(candidates: Candidates, at: int) -> list[list[CostLine]]:
    """Return the cost lines of each part of candidate `at`; the first carries what the place costs once."""
    if at not in candidates.priced:
        candidates.priced[at] = _price_parts(candidates, at)
    return candidates.priced[at]


def _price_parts(candidates: Candidates, at: int) -> list[list[CostLine]]:
    context = candidates.context
    if candidates.kind[at] == IN_TURN:
        from planner.candidates.ways.pricing import turn_lines

        return turn_lines(candidates, at)
    costs, run_hours, parts = context.market.costs, float(candidates.hours[at]), candidates.parts(at)
    stored = costs.gib_months(parts[0].row, run_hours)
    lines = [
        costs.lines(
            part.row, part.instance_hours, *stored, part.nodes, with_place=number == 0, run_hours=run_hours,
            after_hours=after_hours(candidates, at, part),
        )
        for number, part in enumerate(parts)
    ]  # fmt: skip
    lines[0] += candidates.store_lines(at)
    return lines


def after_hours(candidates: Candidates, at: int, part: Part) -> float:
    """Expected instance-hours of a part of candidate `at` after the end of what the user pays."""
    one, costs = np.asarray([at]), candidates.context.market.costs
    row, nodes, paid = (np.asarray([value]) for value in (part.row, part.nodes, part.paid_hours))
    return float(costs.after_hours(row, nodes, paid, candidates.hours[one], candidates.spread(one))[0])


def summarize(candidates: Candidates, at: int, reference: int | None) -> Summary:
    """Describe candidate `at`, with differences to candidate `reference` of the same set (0 without one)."""
    context = candidates.context
    row, nodes = int(candidates.offer[at]), int(candidates.nodes[at])
    parts = candidates.parts(at)
    rows = [part.row for part in parts]
    offers, types = context.market.offer_set.offers, context.market.offer_set.types
    # the parts of a mix have one zone or leave it open; what runs in turn is named by its cheapest zone
    zone = str(offers["zone"][row]) or max(str(offers["zone"][part]) for part in rows)
    zone = zone if candidates.kind[at] != IN_TURN else str(offers["zone"][row])
    kind = int(context.market.offer_set.type_of_offer[row])
    cost = total_usd(lines_of(candidates, at))
    base = cost if reference is None else total_usd(lines_of(candidates, reference))
    hours = float(candidates.hours[at])
    provider, region, instance_type = (
        str(offers[name][row]) for name in ("provider", "region", "instance_type")
    )
    flags = [flag for part in rows for flag in str(offers["flags"][part]).split(";") if flag]
    if any(offers["basis"][part] == "derived" for part in rows):
        flags.append("derived")
    marginal, full = _own_machines(candidates, at, cost)
    kwh, kg = footprint_of(candidates, at)
    return Summary(
        label="",
        provider=provider,
        region=region,
        instance_type=instance_type,
        zone=zone,
        purchase_option=bought_text(candidates, at),
        option_variant=str(offers["option_variant"][row]) if len(parts) == 1 else "",
        accelerator=str(types["accelerator"][kind]),
        accelerators=nodes * float(types["accelerator_count"][kind]),
        nodes=nodes,
        hours=hours,
        cost_usd=cost,
        delta_cost_usd=cost - base,
        delta_hours=0.0 if reference is None else hours - float(candidates.hours[reference]),
        price_as_of=min(str(offers["as_of"][part]) for part in rows),
        flags=tuple(dict.fromkeys(flags)),
        parts=tuple(_part(offers, part) for part in parts),
        marginal_cost_usd=marginal,
        full_cost_usd=full,
        energy_kwh=None if math.isnan(kwh) else kwh,
        operational_kgco2e=None if math.isnan(kg) else kg,
    )


def _own_machines(candidates: Candidates, at: int, cost: Decimal) -> tuple[Decimal | None, Decimal | None]:
    """What candidate `at` costs with own machines at the margin and in full; None where unknown or none is used."""
    own = candidates.context.market.offer_set.own_costs
    if not own:
        return None, None
    used = [
        (own[part.row], sum(line.quantity for line in lines if line.kind == "compute"))
        for part, lines in zip(candidates.parts(at), lines_by_part(candidates, at), strict=True)
        if part.row in own
    ]
    if not used:
        return None, None
    beside = cost - sum(hours * machine.usd_per_hour for machine, hours in used)
    marginal = beside + sum(hours * machine.marginal_usd_per_hour for machine, hours in used)
    each = [(machine.full_usd_per_hour, hours) for machine, hours in used]
    if any(rate is None for rate, _ in each):
        return marginal, None
    return marginal, beside + sum(rate * hours for rate, hours in each if rate is not None)


def _part(offers: Table, part: Part) -> SummaryPart:
    names = ("purchase_option", "option_variant", "region", "zone")
    return SummaryPart(part.nodes, *(str(offers[name][part.row]) for name in names))


def bought_text(candidates: Candidates, at: int) -> str:
    """How candidate `at` is bought: its purchase option, those of its parts, or those it runs on in turn."""
    context = candidates.context
    parts = candidates.parts(at)
    if candidates.kind[at] == IN_TURN:
        spot = [part for part in parts if context.market.is_spot[part.row]]
        zones = f" in {len(spot)} zones" if len(spot) > 1 else ""
        return f"spot{zones}" + (", else on_demand" if len(spot) < len(parts) else "")
    if len(parts) > 1:
        return options_text(context.market, parts)
    return str(context.market.offer_set.offers["purchase_option"][parts[0].row])


def options_text(market: Market, parts: Sequence[Part]) -> str:
    """How the instances of a mix are bought: `4 reserved_1y (already_owned) + 2 on_demand`."""
    offers, out = market.offer_set.offers, []
    for part in parts:
        variant = str(offers["option_variant"][part.row])
        out.append(
            f"{part.nodes} {offers['purchase_option'][part.row]}" + (f" ({variant})" if variant else "")
        )
    return " + ".join(out)


def describe(summary: Summary) -> str:
    """Name a candidate in one line: nodes, type, purchase option, place."""
    return f"{summary.nodes} x {summary.instance_type} {summary.purchase_option} in {summary.provider}/{summary.region}"


def words_of_reasons(reasons: Sequence[str]) -> list[str]:
    """Why shapes cannot run the job, each reason once, in the words of the filters."""
    names = dict.fromkeys(SHAPE_FILTERS[reason] for reason in reasons if reason in SHAPE_FILTERS)
    return [constraint(name).words for name in names]


def find_savings(search: CandidateSearch, winner: int) -> Savings:
    """Compare with the user's present cluster, or the cheapest feasible on-demand candidate."""
    context = search.candidates.context
    candidates = search.candidates
    cost = total_usd(lines_of(candidates, winner))
    if context.asked.workload.baseline is not None:
        return _present_cluster(search, winner, cost)
    best = best_of(candidates, ON_DEMAND)
    if best is None:
        return Savings(None, None, None, "no on-demand candidate satisfies the same constraints")
    first = OBJECTIVES[context.asked.workload.preferences.objective].lower()
    return _savings(summarize(candidates, best, winner), cost, f"{first} feasible on-demand candidate")


def best_on_known_prices(candidates: Candidates, winner: int) -> Summary | None:
    """The best candidate on observed or firm prices; None where the winner is one, or there is none."""
    if members_of(candidates, KNOWN_PRICES)[winner]:
        return None
    best = best_of(candidates, KNOWN_PRICES)
    return None if best is None else summarize(candidates, best, winner)


def _savings(baseline: Summary, cost: Decimal, note: str) -> Savings:
    saved = baseline.cost_usd - cost
    ratio = float(saved / baseline.cost_usd) if baseline.cost_usd else 0.0
    return Savings(baseline, saved, ratio, note)


def _where_it_is(market: Market, baseline: Baseline) -> str:
    """Where and how the catalog has a machine that it does not have as it was named; "" where nobody sells it."""
    offers, wanted = market.offer_set.offers, (baseline.purchase_option, baseline.provider, baseline.region)
    sold = offers.equals("instance_type", baseline.instance_type) & np.isnan(market.offer_set.owned_share)
    columns = [offers[name] for name in ("purchase_option", "provider", "region")]
    ways = {tuple(str(column[row]) for column in columns) for row in np.flatnonzero(sold).tolist()}
    if not ways:
        return ""
    option, provider, region = min(ways, key=lambda way: (*map(str.__ne__, way, wanted), way))
    return f"; it has {option} in {provider}/{region}"


def _present_cluster(search: CandidateSearch, winner: int, cost: Decimal) -> Savings:
    context = search.candidates.context
    baseline = context.asked.workload.baseline
    assert baseline is not None
    offers = context.market.offer_set.offers
    hit = np.ones(offers.n_rows, dtype=np.bool_)
    for name in ("provider", "region", "instance_type", "purchase_option"):
        hit &= offers.equals(name, getattr(baseline, name))
    rows = np.flatnonzero(hit & np.isnan(context.market.offer_set.owned_share))
    named = f"{baseline.nodes} x {baseline.instance_type} {baseline.purchase_option}"
    where = f"{baseline.provider}/{baseline.region}"
    if not len(rows):
        there = _where_it_is(context.market, baseline)
        return Savings(None, None, None, f"baseline {named} in {where}: not in the catalog{there}")
    sizes = (baseline.nodes,)
    candidates = candidates_of(search, rows, sizes, known_shape(search, rows, sizes))
    if not len(candidates.offer):
        why = "; ".join(words_of_reasons(candidates.shapes["reason"].tolist())) or "no shape of it is known"
        return Savings(None, None, None, f"baseline {named} in {where} cannot run the job: {why}")
    at = int(np.argmin(candidates.cost_usd))
    summary = replace(summarize(candidates, at, None), label=YOUR_CLUSTER)
    note = "the user's present cluster"
    if baseline.price_per_hour_usd is not None:
        billed = Decimal(repr(round(float(candidates.instance_hours[at]), 9)))
        lines = lines_of(candidates, at)
        owed = total_usd(lines) - lines[0].amount_usd + billed * baseline.price_per_hour_usd
        summary = replace(summary, cost_usd=owed, marginal_cost_usd=None, full_cost_usd=None)
        note += f" at {baseline.price_per_hour_usd} USD per instance-hour"
    if candidates.bits[at]:
        note += " (does not satisfy all constraints)"
    reference = float(search.candidates.hours[winner])
    summary = replace(summary, delta_cost_usd=summary.cost_usd - cost, delta_hours=summary.hours - reference)
    return _savings(summary, cost, note)
