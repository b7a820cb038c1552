"""Re-check a plan from its lines alone, in exact arithmetic, without the code that made it.

The input is the plan's JSON. Amounts are recomputed with `Fraction`, limits come from the workload, prices from the
catalog where it is given. Nothing of the search, the pricing or a solver is used.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from catalogs.table import Table
    from planner.workload.schema import Constraints, Workload

_CENT_TRILLIONTH = Fraction(1, 10**12)
_HOURS = 1e-6


def verify_plan(
    plan: dict[str, Any], workload: Workload | None = None, offers: Table | None = None
) -> list[str]:
    """Return every fault found in a plan; an empty list means it holds.

    Args:
        plan: the plan as JSON (`Plan.to_dict()`).
        workload: its workload, to check limits and the amount of work.
        offers: the catalog's offers, to check prices (overlaid prices are skipped).
    """
    if plan.get("status") != "planned":
        return [] if not plan.get("lines") else ["an infeasible plan must not have lines"]
    try:
        faults = [*_money(plan), *_time(plan), *_cluster(plan)]
        if workload is not None:
            faults += [*_limits(plan, workload), *_work(plan, workload)]
        if offers is not None:
            faults += _prices(plan, offers)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return [f"not a plan this version can read: {type(error).__name__}: {error}"]
    return faults


def _money(plan: dict[str, Any]) -> list[str]:
    faults = []
    total = Fraction(0)
    for line in plan["lines"]:
        cost = Fraction(0)
        for item in line["costs"]:
            product = (
                Fraction(item["quantity"]) * Fraction(item["unit_price"]) * Fraction(item["usd_per_currency"])
            )
            amount = Fraction(item["amount_usd"])
            if abs(product - amount) > _CENT_TRILLIONTH:
                faults.append(
                    f"{item['label']}: {item['quantity']} x {item['unit_price']} is not {item['amount_usd']}"
                )
            if Fraction(item["quantity"]) < 0 or Fraction(item["unit_price"]) < 0:
                faults.append(f"{item['label']}: a negative quantity or price")
            cost += amount
        if cost != Fraction(line["cost_usd"]):
            faults.append(f"{line['offer_id']}: lines sum to {float(cost)}, not {line['cost_usd']}")
        total += cost
    if total != Fraction(plan["total_usd"]):
        faults.append(f"lines sum to {float(total)}, the total says {plan['total_usd']}")
    cash = sum((Fraction(month["amount_usd"]) for month in plan["cash"]), Fraction(0))
    if cash < total:
        faults.append(f"cash months sum to {float(cash)}, less than the total {plan['total_usd']}")
    return faults


def _time(plan: dict[str, Any]) -> list[str]:
    faults = []
    spent = sum(part["hours"] for part in plan["timeline"])
    if abs(spent - plan["hours"]) > _HOURS * max(1.0, plan["hours"]):
        faults.append(f"the timeline sums to {spent} h, not {plan['hours']} h")
    finish = datetime.fromisoformat(plan["start"]) + timedelta(hours=plan["hours"])
    if abs((finish - datetime.fromisoformat(plan["finish_expected"])).total_seconds()) > 60:
        faults.append("start + hours is not the finish")
    if plan["deadline"] is not None and finish > datetime.fromisoformat(plan["deadline"]) + timedelta(
        minutes=1
    ):
        faults.append(f"finishes {plan['finish_expected']}, after the deadline {plan['deadline']}")
    return faults


def _cluster(plan: dict[str, Any]) -> list[str]:
    faults = []
    headroom = (plan["performance"] or {}).get("memory_headroom_gib")
    if headroom is not None and headroom < 0:
        faults.append(f"memory headroom is {headroom} GiB")
    for line in plan["lines"]:
        compute = [item for item in line["costs"] if item["kind"] == "compute"]
        owed = Fraction(line["billed_hours"]) * line["nodes"]
        shared = "owned" in line["option_variant"] or "share" in line["option_variant"]
        for item in compute:
            off = abs(Fraction(item["quantity"]) - owed)
            if (
                not shared
                and "partly_used_commitment" not in item["flags"]
                and off > Fraction(line["nodes"], 10**8)
            ):
                faults.append(
                    f"{line['offer_id']}: {item['quantity']} instance-hours are not nodes x billed hours"
                )
        layout = line["layout"]
        if layout is not None:
            ways = ("tensor_parallel", "pipeline_parallel", "context_parallel", "data_parallel")
            product = 1
            for way in ways:
                product *= layout[way]
            devices = line["nodes"] * line["accelerators_per_node"]
            if product % devices and devices % product:
                faults.append(f"layout uses {product} ranks on {devices} accelerators")
    return faults


def _limits(plan: dict[str, Any], workload: Workload) -> list[str]:
    limits, faults = workload.constraints, []
    cash = sum((Fraction(month["amount_usd"]) for month in plan["cash"]), Fraction(0))
    if limits.budget_usd is not None and cash > Fraction(limits.budget_usd):
        faults.append(f"cash obligations {float(cash):.2f} exceed the budget {limits.budget_usd}")
    risk = plan["risk"] or {}
    p_meet = risk.get("p_meet_deadline")
    if plan["deadline"] is not None and p_meet is not None and p_meet < limits.deadline_confidence - 1e-6:
        faults.append(f"P(deadline met) {p_meet} is below {limits.deadline_confidence}")
    nodes = sum(line["nodes"] for line in plan["lines"])
    if nodes > limits.max_nodes:
        faults.append(f"{nodes} nodes exceed max_nodes {limits.max_nodes}")
    for line in plan["lines"]:
        faults += _line_limits(line, limits)
    return faults


def _line_limits(line: dict[str, Any], limits: Constraints) -> list[str]:
    faults = []
    place = f"{line['provider']}/{line['region']}"
    if limits.providers is not None and line["provider"] not in limits.providers:
        faults.append(f"provider {line['provider']} is not allowed")
    if limits.regions is not None and not any(
        fnmatchcase(place if "/" in pattern else line["region"], pattern) for pattern in limits.regions
    ):
        faults.append(f"region {place} is not allowed")
    if limits.purchase_options is not None and line["purchase_option"] not in limits.purchase_options:
        faults.append(f"purchase option {line['purchase_option']} is not allowed")
    if line["purchase_option"] in limits.exclude_purchase_options:
        faults.append(f"purchase option {line['purchase_option']} is excluded")
    for key, rule in (("accelerator", limits.accelerators), ("instance_type", limits.instance_types)):
        allowed = rule.allow is None or any(fnmatchcase(line[key], pattern) for pattern in rule.allow)
        if not allowed or any(fnmatchcase(line[key], pattern) for pattern in rule.deny):
            faults.append(f"{key} {line[key]} is not allowed")
    if line["quota"]["limit"] is not None and line["quota"]["needed"] > line["quota"]["limit"]:
        faults.append(
            f"quota {line['quota']['name']}: needs {line['quota']['needed']}, limit {line['quota']['limit']}"
        )
    return faults


def _work(plan: dict[str, Any], workload: Workload) -> list[str]:
    """Steps x throughput must do the work (a task's workload is not known here)."""
    if workload.training is None:
        return []
    from planner.workload.resolve import resolve_training

    resolved = resolve_training(workload)
    units = resolved.total_units * resolved.runs
    if workload.kind == "fleet":
        done = sum(line["throughput_per_s"] for line in plan["lines"]) * plan["hours"] * 3600.0
        return [] if done >= units * (1 - 1e-6) else [f"the workers do {done:g} of {units:g}"]
    hours = sum(part["hours"] for part in plan["timeline"] if part["name"] == "training steps")
    done = hours * 3600.0 * plan["performance"]["throughput_per_s"]
    # a last, partial step counts as a whole one: the work done may exceed the work asked by one step
    return (
        []
        if done >= units * (1 - 1e-6)
        else [f"the steps do {done:g} of {units:g} {plan['performance']['unit']}"]
    )


def _prices(plan: dict[str, Any], offers: Table) -> list[str]:
    faults = []
    names = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
    for line in plan["lines"]:
        if "overlay" in line["flags"]:
            continue
        hit = offers.equals(names[0], line[names[0]])
        for name in names[1:]:
            hit &= offers.equals(name, line[name])
        found = offers.take(hit)
        if not found.n_rows:
            faults.append(f"{line['offer_id']} is not in the catalog")
        elif Fraction(str(found["price_per_hour"][0])) != Fraction(line["price_per_hour"]):
            faults.append(
                f"{line['offer_id']}: the catalog says {found['price_per_hour'][0]} {found['currency'][0]}/h"
            )
    return faults
