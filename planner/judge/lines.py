"""Re-check a plan from its lines alone, in exact arithmetic, without the code that made it.

The input is the plan's JSON. Amounts are recomputed with `Fraction`, limits come from the workload, prices from
the catalog where it is given. Nothing of the search, the pricing or a solver is used.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from fractions import Fraction
from math import floor, prod
from typing import TYPE_CHECKING, Any

from planner.inputs.checks import end_moment
from planner.judge.launch import check_launch, runs_in_turn
from planner.judge.limits import check_limits
from planner.judge.prices import RUN_HOURS, PriceOf, expected_price

if TYPE_CHECKING:
    from catalogs.tables.table import Table
    from planner.inputs.schema import Workload

Json = dict[str, Any]
OFFER_KEY = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
_CENT_TRILLIONTH = Fraction(1, 10**12)
_HOURS = 1e-6
_ROUNDED_UP = 1.0  # hours; billing rounds a line up at most to the next whole hour
_COMMITMENT_KEY = ("provider", "region", "instance_type", "purchase_option")
_ONCE_PER_PLACE = ("data_storage", "checkpoint_storage", "data_transfer")
_NOT_IN_USE = ("data_staging", "capacity", "provisioning")
_COMMITMENTS = ("reserved", "cud", "savings_plan", "subscription", "owned", "dedicated")


def verify_plan(
    plan: Json, workload: Workload | None = None, offers: Table | None = None, *, expected: bool = True,
    price_of: PriceOf = expected_price,
) -> list[str]:  # fmt: skip
    """Return every fault found in a plan; an empty list means it holds.

    Args:
        plan: the plan as JSON (`Plan.to_dict()`).
        workload: its workload, to check limits and the amount of work.
        offers: the catalog's offers, to check prices (overlaid prices are skipped).
        expected: also price spot anew; False leaves that to the full judgement.
        price_of: says the price to expect; one that remembers spares many plans of one catalog most of their cost.
    """
    try:
        if plan["status"] != "planned":
            return [] if not plan["lines"] else ["an infeasible plan must not have lines"]
        if not plan["lines"]:
            return ["a plan without lines"]
        faults = [*_money(plan), *_time(plan), *_cluster(plan), *check_launch(plan)]
        if workload is not None:
            faults += [*check_limits(plan, workload), *_work(plan, workload), *_owned(plan, workload)]
        if offers is not None:
            mode = "" if workload is None else workload.preferences.prices
            faults += _prices(plan, offers, mode if expected else None, price_of)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        return [f"not a plan this version can read: {type(error).__name__}: {error}"]
    return faults


def _money(plan: Json) -> list[str]:
    faults = []
    total = Fraction(0)
    for line in plan["lines"]:
        cost = Fraction(0)
        for item in line["costs"]:
            quantity, price = Fraction(item["quantity"]), Fraction(item["unit_price"])
            product = quantity * price * Fraction(item["usd_per_currency"])
            amount = Fraction(item["amount_usd"])
            if abs(product - amount) > _CENT_TRILLIONTH:
                faults.append(
                    f"{item['label']}: {item['quantity']} x {item['unit_price']} is not {item['amount_usd']}"
                )
            if quantity < 0 or price < 0:
                faults.append(f"{item['label']}: a negative quantity or price")
            cost += amount
        if cost != Fraction(line["cost_usd"]):
            faults.append(f"{line['offer_id']}: lines sum to {float(cost)}, not {line['cost_usd']}")
        total += cost
    if total != Fraction(plan["total_usd"]):
        faults.append(f"lines sum to {float(total)}, the total says {plan['total_usd']}")
    cash = sum((Fraction(month["amount_usd"]) for month in plan["cash"]), Fraction(0))
    due = total - sum((_purchase(line) for line in plan["lines"]), Fraction(0))
    # amounts are rounded on their own, as above
    if due - cash > _CENT_TRILLIONTH:
        faults.append(f"cash months sum to {float(cash)}, less than the {float(due)} that falls due")
    return faults


def _purchase(line: Json) -> Fraction:
    """What the purchase of own machines adds to the cost of a line: it never falls due."""
    paid = line.get("marginal_usd_per_hour")
    if paid is None:
        return Fraction(0)
    hours = sum(
        (Fraction(cost["quantity"]) for cost in line["costs"] if cost["kind"] == "compute"), Fraction(0)
    )
    return hours * (Fraction(line["price_per_hour"]) - Fraction(paid))


def _time(plan: Json) -> list[str]:
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


def _cluster(plan: Json) -> list[str]:
    faults = []
    headroom = (plan["performance"] or {}).get("memory_headroom_gib")
    if headroom is not None and headroom < 0:
        faults.append(f"memory headroom is {headroom} GiB")
    for line in plan["lines"]:
        key = "/".join(str(line[name]) or "-" for name in OFFER_KEY)
        if key != line["offer_id"]:
            faults.append(f"offer_id {line['offer_id']} is not that of its line ({key})")
        faults += _compute(line)
        if plan["kind"] == "fleet":
            faults += _ranks(line, _devices(line))
    if plan["kind"] == "fleet":
        return faults
    return faults + (_one_after_another(plan) if runs_in_turn(plan) else _one_cluster(plan))


def _compute(line: Json) -> list[str]:
    """One compute cost per line, at the line's own price, for its nodes and billed hours."""
    compute = [item for item in line["costs"] if item["kind"] == "compute"]
    if len(compute) != 1:
        return [f"{line['offer_id']}: {len(compute)} compute costs, expected one"]
    item, faults = compute[0], []
    for name, field in (("unit_price", "price_per_hour"), ("usd_per_currency", "usd_per_currency")):
        if Fraction(item[name]) != Fraction(line[field]):
            faults.append(f"{line['offer_id']}: compute {name} {item[name]} is not the line's {line[field]}")
    owed, used = Fraction(line["billed_hours"]) * line["nodes"], Fraction(item["quantity"])
    slack = Fraction(line["nodes"], 10**8)
    # of a commitment the job may carry only a part, or nothing when it is already owned
    part = line["purchase_option"].startswith(_COMMITMENTS) or line["option_variant"] == "already_owned"
    if used > owed + slack or (used < owed - slack and not part):
        faults.append(f"{line['offer_id']}: {item['quantity']} instance-hours are not nodes x billed hours")
    return faults


def _one_cluster(plan: Json) -> list[str]:
    """All lines of one job are instances of one type in one place, in one layout, in use as long as the job runs."""
    lines = plan["lines"]
    faults = [
        f"one job runs on lines of different {name}"
        for name in ("provider", "region", "instance_type", "layout")
        if any(line[name] != lines[0][name] for line in lines)
    ]
    zones = sorted({line["zone"] for line in lines if line["zone"]})
    if len(zones) > 1:
        faults.append(f"one job runs in {len(zones)} zones: {', '.join(zones)}")
    if sum(line["purchase_option"] == "spot" for line in lines) > 1:
        faults.append("one job runs on two spot offers: their interruptions are not predicted together")
    faults += [f"{label}: charged by more than one line" for label in sorted(_by_two_lines(lines))]
    used = sum(part["hours"] for part in plan["timeline"] if part["id"] not in _NOT_IN_USE)
    for line in lines:
        # spot instances are not paid while the job waits for them; the others are
        if line["purchase_option"] != "spot" and float(line["billed_hours"]) < used - _HOURS * max(1.0, used):
            faults.append(f"{line['offer_id']}: {line['billed_hours']} h billed, in use for {used:.6f} h")
    return faults + _ranks(lines[0], sum(map(_devices, lines)))


def _one_after_another(plan: Json) -> list[str]:
    """Each line is the whole cluster for a part of the time: one type and layout; regions are charged once each."""
    lines = plan["lines"]
    faults = [
        f"one job runs on lines of different {name}"
        for name in ("provider", "instance_type", "layout")
        if any(line[name] != lines[0][name] for line in lines)
    ]
    for region in sorted({line["region"] for line in lines}):
        local_lines = [line for line in lines if line["region"] == region]
        faults += [f"{label}: charged by more than one line" for label in sorted(_by_two_lines(local_lines))]
    return faults + _ranks(lines[0], _devices(lines[0]))


def _by_two_lines(lines: list[Json]) -> set[str]:
    """Ids of what a place costs once, though more than one line charges it."""
    seen: set[str] = set()
    twice: set[str] = set()
    for line in lines:
        ids = {item["id"] for item in line["costs"] if item["kind"] in _ONCE_PER_PLACE}
        twice |= ids & seen
        seen |= ids
    return twice


def _devices(line: Json) -> int:
    """Devices that a process can take on a line's instances; a share of an accelerator is one of its own."""
    return int(line["nodes"]) * max(int(line["accelerators_per_node"] + 1e-9), 1)


def _ranks(line: Json, devices: int) -> list[str]:
    if line["layout"] is None:
        return []
    ways = ("tensor_parallel", "pipeline_parallel", "context_parallel", "data_parallel")
    ranks = prod(line["layout"][way] for way in ways)
    return [] if ranks == devices else [f"layout uses {ranks} ranks on {devices} accelerators"]


def _work(plan: Json, workload: Workload) -> list[str]:
    """Steps x throughput must do the work (a task's workload is not known here)."""
    if workload.training is None and workload.inference is None:
        return []
    from planner.inputs.resolve import resolve_training

    resolved = resolve_training(workload)
    units = resolved.total_units * resolved.runs
    if workload.kind == "fleet":
        units_done = sum(line["throughput_per_s"] for line in plan["lines"]) * plan["hours"] * 3600.0
        return [] if units_done >= units * (1 - 1e-6) else [f"the workers do {units_done:g} of {units:g}"]
    hours = sum(part["hours"] for part in plan["timeline"] if part["id"] == "training_steps")
    units_done = hours * 3600.0 * plan["performance"]["throughput_per_s"]
    # a last, partial step counts as a whole one: the work done may exceed the work asked by one step
    return (
        []
        if units_done >= units * (1 - 1e-6)
        else [f"the steps do {units_done:g} of {units:g} {plan['performance']['unit']}"]
    )


def _wrong_price(plan: Json, line: Json, offers: Table, row: int, mode: str | None, price_of: PriceOf) -> str:
    """What is wrong with the price of a line: its quote is that of the catalog, the rest follows from all quotes."""
    listed = Fraction(str(offers["price_per_hour"][row]))
    if listed != Fraction(line["quoted_price_per_hour"] or line["price_per_hour"]):
        return f"the catalog says {_listed_text(offers, row)}"
    if mode is None or line["quoted_price_per_hour"] is None or _has_overlay(offers):
        return ""
    price = Fraction(line["price_per_hour"])
    believed = price == listed if not mode else mode == "quoted"
    now, start = (datetime.fromisoformat(plan[name]).date() for name in ("created_at", "start"))
    expected = [price_of(offers, row, believed, now, start, hours) for hours in _run_hours(plan, line)]
    slack = max(expected) * Fraction(1, 10**9)
    if not min(expected) - slack <= price <= max(expected) + slack:
        words = " to ".join(f"{float(bound):.10g}" for bound in sorted({min(expected), max(expected)}))
        return f"{line['price_per_hour']} {line['currency']}/h, expected is {words}"
    return ""


def _run_hours(plan: Json, line: Json) -> list[float]:
    """Lengths of the runs that a line may be priced for, with those between which prices bend.

    Workers of a fleet run as long as they are paid, at least, and no longer than the fleet.
    """
    longest = float(plan["hours"])
    if plan["kind"] != "fleet":
        return [longest]
    shortest = min(max(float(line["billed_hours"]) - _ROUNDED_UP, 0.0), longest)
    return [shortest, *(hours for hours in RUN_HOURS if shortest < hours < longest), longest]


def _has_overlay(offers: Table) -> bool:
    """Whether quotes were changed by overlays, which levels do not know."""
    return any("overlay" in flags.split(";") for flags in offers.coded("flags").values)


def _listed_text(offers: Table, row: int) -> str:
    """A price as the catalog has it."""
    return f"{offers['price_per_hour'][row]} {offers['currency'][row]}/h"


def _prices(plan: Json, offers: Table, mode: str | None, price_of: PriceOf) -> list[str]:
    faults = []
    providers = set(offers.coded("provider").values)
    for line in plan["lines"]:
        foreign = (
            line["provider"] not in providers
        )  # an own or quoted machine, checked when its workload is given
        if "overlay" in line["flags"] or foreign or line["option_variant"] == "already_owned":
            continue
        hit = offers.equals(OFFER_KEY[0], line[OFFER_KEY[0]])
        for name in OFFER_KEY[1:]:
            hit &= offers.equals(name, line[name])
        offer = offers.take(hit)
        if not offer.n_rows:
            faults.append(f"{line['offer_id']} is not in the catalog")
        elif fault := _wrong_price(plan, line, offers, int(hit.nonzero()[0][0]), mode, price_of):
            faults.append(f"{line['offer_id']}: {fault}")
        # not (nodes > NaN): an unknown capacity limits nothing
        elif line["nodes"] > (capacity := float(offer["capacity"][0])):
            faults.append(f"{line['offer_id']}: {line['nodes']} nodes, the catalog has {capacity:g}")
    return faults


def _owned(plan: Json, workload: Workload) -> list[str]:
    """What is already paid for holds no more instances than the workload's commitments say.

    Workers of a fleet end at times of their own, which `planner.judge.fleet_ends` knows.
    """
    faults = []
    used: dict[tuple[str, ...], int] = {}
    for line in plan["lines"]:
        if line["option_variant"] == "already_owned":
            key = tuple(line[name] for name in _COMMITMENT_KEY)
            used[key] = used.get(key, 0) + line["nodes"]
    hours = 0.0 if workload.kind == "fleet" else plan["hours"] - _HOURS
    finish = datetime.fromisoformat(plan["start"]) + timedelta(hours=hours)
    for key, nodes in used.items():
        available = sum(
            floor(commitment.nodes * (1 if commitment.share is None else float(commitment.share)))
            for commitment in workload.commitments
            if tuple(str(getattr(commitment, name)) for name in _COMMITMENT_KEY) == key
            and (commitment.expires is None or finish <= end_moment(commitment.expires))
        )
        if nodes > available:
            faults.append(f"{' '.join(key)}: {nodes} nodes of commitments that hold {available} to the end")
    return faults
