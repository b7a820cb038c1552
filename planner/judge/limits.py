"""Re-check the workload's limits on a plan's JSON; shares no code with the filters of the search."""

from __future__ import annotations

from datetime import datetime, timedelta
from fractions import Fraction
from math import isnan
from typing import TYPE_CHECKING, Any

from catalogs.offers.naming import fits_name
from catalogs.patterns import matches
from planner.judge.capacity_waits import most_by_asking
from planner.judge.launch import at_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.inputs.schema import Constraints, Workload
    from planner.judge.bench import Bench
    from planner.judge.goods import Offer
    from planner.judge.purchases import Buy

Json = dict[str, Any]
_CENTURY_HOURS = 876_600.0  # beyond it nothing is planned
_SHARE = 1e-6  # of the work; what dividing it among workers may be off by


def check_limits(plan: Json, workload: Workload) -> list[str]:
    """Return every limit of `workload` that `plan` breaks."""
    limits = workload.constraints
    faults = [*_century(plan), *_deadline(plan, workload), *_totals(plan, limits), *_speed(plan, workload)]
    for line in plan["lines"]:
        faults += check_offer(line, workload)
    return [*faults, *_quotas(plan, limits), *_obtainable(plan, limits), *_fleet(plan, workload)]


def _century(plan: Json) -> list[str]:
    longest = max([plan["hours"], *(float(line["billed_hours"]) for line in plan["lines"])])
    return [f"takes {longest:g} hours, more than a century"] if longest > _CENTURY_HOURS else []


def check_offer(line: Json, workload: Workload) -> list[str]:
    """Return every limit on what may be bought, and where, that a line breaks."""
    limits = workload.constraints
    return [*_place(line, limits), *_partition(line, workload), *_machine(line, limits)]


def line_of(offer: Offer) -> Json:
    """An offer as a line of a plan names it."""
    names = ("provider", "region", "purchase_option", "instance_type")
    memory = float(offer.kind["accelerator_memory_gib"])
    return {name: offer.text(name) for name in names} | {
        "accelerator": str(offer.kind["accelerator"]), "accelerator_memory_gib": None if isnan(memory) else memory,
        "owned": offer.owned,
    }  # fmt: skip


def check_purchase(offer: Offer, nodes: int, workload: Workload) -> list[str]:
    """Return every limit on what may be bought, where, and how much at once, that `nodes` of an offer break."""
    line = line_of(offer)
    faults = check_offer(line, workload)
    if nodes > offer.capacity:
        faults.append(f"{nodes} x {offer.offer_id}: {offer.capacity:g} are available")
    at_once = {"nodes": nodes, "accelerators_per_node": offer.accelerators}
    return faults + _obtainable({"lines": [line | at_once]}, workload.constraints)


def purchase_faults(bench: Bench, buys: Sequence[Buy], *, in_turn: bool, by_deadline: bool) -> list[str]:
    """Return every limit that purchases break; by a deadline, spot alone needs a record of its family.

    Args:
        bench: the job and its workload.
        buys: what is bought, in the order of its turns.
        in_turn: one after another, not together.
        by_deadline: the question has a deadline.

    Raises:
        NotRecomputedError: the workload brings records of spot of its own.
    """
    workload, last = bench.workload, buys[-1].offer
    faults = [text for buy in buys for text in check_purchase(buy.offer, buy.nodes, workload)]
    if in_turn and not last.is_spot and not has_fallback(workload):
        faults.append("the workload allows no fall-back")
    spot_alone = all(buy.offer.is_spot for buy in buys)
    if by_deadline and spot_alone and has_fallback(workload):
        faults += [
            f"{buy.offer.offer_id}: spot alone by a deadline without recorded availability of its family"
            for buy in buys
            if bench.capacity(buy.offer, buy.nodes)[2] is None
        ]
    return list(dict.fromkeys(faults))


def _deadline(plan: Json, workload: Workload) -> list[str]:
    from planner.inputs.resolve import resolve_times

    now = datetime.fromisoformat(plan["created_at"])
    times, faults = resolve_times(workload, now), []
    if abs((times.start - datetime.fromisoformat(plan["start"])).total_seconds()) > 60:
        faults.append(
            f"start {plan['start']} is not the workload's {times.start.isoformat(timespec='minutes')}"
        )
    stated = None if plan["deadline"] is None else datetime.fromisoformat(plan["deadline"])
    minute = timedelta(minutes=1)
    if (stated is None) != (times.deadline is None) or (
        stated and times.deadline and abs(stated - times.deadline) > minute
    ):
        faults.append(f"deadline {plan['deadline']} is not the workload's {times.deadline}")
    finish = datetime.fromisoformat(plan["finish_expected"])
    if times.deadline is not None and finish > times.deadline + minute:
        faults.append(f"finishes {plan['finish_expected']}, after the deadline {times.deadline}")
    p_meet = (plan["risk"] or {}).get("p_meet_deadline")
    confidence = workload.constraints.deadline_confidence
    if times.deadline is not None and p_meet is not None and p_meet < confidence - 1e-6:
        faults.append(f"P(deadline met) {p_meet} is below {confidence}")
    return faults + (_unrecorded(plan, workload) if times.deadline is not None else [])


def _unrecorded(plan: Json, workload: Workload) -> list[str]:
    """Spot alone by a deadline, as every spot worker of a fleet is, rests on records."""
    launch = plan.get("launch")
    if not launch or launch["strategy"] not in ("spot", "spot_in_fleet") or not has_fallback(workload):
        return []
    return [
        f"{place['offer_id']}: spot alone by a deadline without recorded availability of its family"
        for place in launch["places"]
        if place["observed_ratio"] is None
    ]


def has_fallback(workload: Workload) -> bool:
    """Whether the user leaves on-demand to fall back on; else spot without a record is allowed."""
    limits = workload.constraints
    bought = limits.purchase_options
    allowed = bought is None or "on_demand" in bought
    return allowed and "on_demand" not in limits.exclude_purchase_options and workload.spot.fallback != "none"


def _totals(plan: Json, limits: Constraints) -> list[str]:
    faults = []
    cash = sum((Fraction(month["amount_usd"]) for month in plan["cash"]), Fraction(0))
    if limits.budget_usd is not None and cash > Fraction(limits.budget_usd):
        faults.append(f"cash obligations {float(cash):.2f} exceed the budget {limits.budget_usd}")
    # lines used one after another are one cluster; those used together add up
    nodes = at_once(plan, [line["nodes"] for line in plan["lines"]])
    if nodes > limits.max_nodes:
        faults.append(f"{nodes} nodes exceed max_nodes {limits.max_nodes}")
    devices = at_once(plan, [line["nodes"] * line["accelerators_per_node"] for line in plan["lines"]])
    if limits.max_accelerators is not None and devices > limits.max_accelerators:
        faults.append(f"{devices:g} accelerators exceed max_accelerators {limits.max_accelerators}")
    of_lines = [
        line["nodes"] * max(line["accelerators_per_node"], 1.0) * (line["accelerator_memory_gib"] or 0)
        for line in plan["lines"]
    ]
    memory = at_once(plan, of_lines)
    if limits.min_total_memory_gib is not None and memory < limits.min_total_memory_gib * (1 - 1e-9):
        faults.append(f"{memory:g} GiB of accelerator memory, {limits.min_total_memory_gib:g} asked")
    return faults + _carbon(plan, limits)


def _carbon(plan: Json, limits: Constraints) -> list[str]:
    """What the electricity emits, which must be known."""
    if limits.max_kgco2e is None:
        return []
    kg = (plan.get("carbon") or {}).get("operational_kgco2e")
    if kg is None:
        return ["emissions are limited, and not known"]
    over = kg > limits.max_kgco2e * (1 + 1e-6)
    return [f"emits {kg:g} kgCO2e, {limits.max_kgco2e:g} allowed"] if over else []


def _speed(plan: Json, workload: Workload) -> list[str]:
    floor = workload.constraints.min_throughput
    if floor is None or (workload.training is None and workload.inference is None):
        return []
    from planner.inputs.resolve import resolve_training

    resolved = resolve_training(workload)
    length = resolved.tokens_per_sample
    samples = plan["performance"]["throughput_per_s"] / length
    required = (
        floor.samples_per_s if floor.samples_per_s is not None else (floor.tokens_per_s or 0.0) / length
    )
    return [] if samples >= required * (1 - 1e-9) else [f"{samples:g} samples/s, {required:g} asked"]


def _place(line: Json, limits: Constraints) -> list[str]:
    faults = []
    place = f"{line['provider']}/{line['region']}"
    if limits.providers is not None and line["provider"] not in limits.providers:
        faults.append(f"provider {line['provider']} is not allowed")
    if limits.regions is not None and not any(
        matches(pattern, place if "/" in pattern else line["region"]) for pattern in limits.regions
    ):
        faults.append(f"region {place} is not allowed")
    if limits.residency is not None:
        from catalogs.tables.regions import own_site_in, regions_in

        allowed = set().union(*(regions_in(group) for group in limits.residency))
        if (line["provider"], line["region"]) not in allowed and not own_site_in(place, limits.residency):
            faults.append(f"region {place} is outside the residency {', '.join(limits.residency)}")
    return faults


def _partition(line: Json, workload: Workload) -> list[str]:
    """A place with an account of its own is named, holds the data or is the user's."""
    from catalogs.tables.partitions import asked_places, partition_of

    limits, place = workload.constraints, f"{line['provider']}/{line['region']}"
    apart, home = partition_of(place), partition_of(workload.data.location or "")
    if apart is None or (home is not None and apart.partition == home.partition):
        return []
    if line["purchase_option"] == "owned" or line.get("owned"):
        return []
    if any(
        (commitment.provider, commitment.region, commitment.instance_type)
        == (line["provider"], line["region"], line["instance_type"])
        for commitment in workload.commitments
    ):
        return []
    requested = asked_places([place], limits.regions or (), limits.residency or ())
    return [] if requested else [f"{place} needs {apart.needs}, and is not requested"]


def _machine(line: Json, limits: Constraints) -> list[str]:
    faults = []
    if limits.purchase_options is not None and line["purchase_option"] not in limits.purchase_options:
        faults.append(f"purchase option {line['purchase_option']} is not allowed")
    if line["purchase_option"] in limits.exclude_purchase_options:
        faults.append(f"purchase option {line['purchase_option']} is excluded")
    for key, rule in (("accelerator", limits.accelerators), ("instance_type", limits.instance_types)):
        allowed = rule.allow is None or any(fits_name(pattern, line[key]) for pattern in rule.allow)
        if not allowed or any(fits_name(pattern, line[key]) for pattern in rule.deny):
            faults.append(f"{key} {line[key]} is not allowed")
    never_quoted = line["purchase_option"] == "spot" and line.get("price_basis") == "derived"
    if never_quoted and not limits.allow_derived:
        faults.append(f"the spot price of {line['instance_type']} is derived, never quoted")
    if not _asked_for(line, limits):
        faults.append(f"{line['accelerator']} needs a port to other software")
    memory = line["accelerator_memory_gib"]
    if limits.min_memory_gib is not None and memory is not None and memory < limits.min_memory_gib:
        faults.append(f"{line['accelerator']} has {memory:g} GiB, {limits.min_memory_gib:g} asked")
    return faults


def _asked_for(line: Json, limits: Constraints) -> bool:
    """Whether the accelerator runs software that is asked for: set, named by `allow`, the user's own, else CUDA."""
    from catalogs.tables.accelerators import load_accelerators
    from planner.performance.constants import load_software

    table = load_accelerators()
    vendors = dict(zip(table["accelerator"].tolist(), table["vendor"].tolist(), strict=True))
    runs = load_software().get(str(vendors.get(line["accelerator"], "")), "unknown")
    if limits.software is not None:
        return "any" in limits.software or runs in limits.software
    pairs = (("accelerator", limits.accelerators.allow), ("instance_type", limits.instance_types.allow))
    patterns = (
        fits_name(name, line[key]) for key, allow in pairs for name in allow or () if name.strip("*") != ""
    )
    return runs == "cuda" or line["purchase_option"] == "owned" or any(patterns)


def _quotas(plan: Json, limits: Constraints) -> list[str]:
    """Sum what all lines draw on each declared quota, in its unit, region by region."""
    faults = []
    for quota in limits.quota:
        drawn: dict[str, list[float]] = {}
        for at, line in enumerate(plan["lines"]):
            own_unit = _quota_names(line).get(quota.quota)
            inside = line["provider"] == quota.provider and matches(quota.region, line["region"])
            if own_unit is None or not inside:
                continue
            unit = quota.unit or own_unit
            each = {
                "vCPU": line["vcpus_per_node"],
                "GPU": line["accelerators_per_node"],
                "instances": 1.0,
            }[unit]
            if each is None:
                faults.append(f"quota {quota.quota}: the {unit} of {line['instance_type']} are not known")
                continue
            drawn.setdefault(line["region"], [0.0] * len(plan["lines"]))[at] = each * line["nodes"]
        for region, draws in drawn.items():
            needed = at_once(plan, draws)
            if needed > quota.limit * (1 + 1e-9):
                faults.append(f"quota {quota.quota} in {region}: needs {needed:g}, limit {quota.limit:g}")
    return faults


def _obtainable(plan: Json, limits: Constraints) -> list[str]:
    """Compare what each line asks for at once with what asking brings."""
    faults = []
    for line in plan["lines"]:
        provider, region, count = (
            line["provider"],
            line["region"],
            line["nodes"] * line["accelerators_per_node"],
        )
        accelerator, option = line["accelerator"], line["purchase_option"]
        most = most_by_asking(provider, region, accelerator, option, limits)
        if most is not None and count > most:
            purchase = f"{count:g} x {accelerator} {option} at once in {provider}/{region}"
            faults.append(f"{purchase}: the assumed limit is {most:g}")
    return faults


def _quota_names(line: Json) -> dict[str, str]:
    """What a quota that the line counts against may be called, each name with the quota's own unit."""
    from catalogs.tariffs import load_tariffs

    accelerator, family = line["accelerator"], line["family"]
    ways = (line["purchase_option"], "on_demand", "spot")
    rules = [load_tariffs().quota_rule(line["provider"], family, accelerator, way) for way in ways]
    own_unit = next((rule.unit for rule in rules if rule is not None), "instances")
    names = {accelerator: "GPU", accelerator.split("-")[0]: "GPU", family: own_unit}
    return names if rules[0] is None else names | {rules[0].name: own_unit, rules[0].code: own_unit}


def _fleet(plan: Json, workload: Workload) -> list[str]:
    """Shares of the work, regions and whole workers; a line's work is its throughput over the plan's hours."""
    fleet, lines = workload.fleet, plan["lines"]
    if workload.kind != "fleet" or fleet is None:
        return []
    whole = sum(line["throughput_per_s"] for line in lines)
    places = [f"{line['provider']}/{line['region']}" for line in lines]
    spot = ["spot" if line["purchase_option"] == "spot" else "" for line in lines]
    limits = (
        ("max_spot_share", fleet.max_spot_share, spot),
        ("max_share_per_region", fleet.max_share_per_region, places),
        ("max_share_per_offer", fleet.max_share_per_offer, [line["offer_id"] for line in lines]),
    )
    faults = []
    for name, limit, members in limits:
        for member in dict.fromkeys(filter(None, members)):
            of_member = (
                line for line, line_member in zip(lines, members, strict=True) if line_member == member
            )
            part = sum(line["throughput_per_s"] for line in of_member) / whole
            if limit is not None and part > float(limit) + _SHARE:
                faults.append(f"{member} does {part:.4%} of the work, {name} is {float(limit):.4%}")
    if fleet.max_spot_share == 0 and any(spot):
        faults.append("spot workers, though max_spot_share is 0")
    if fleet.max_regions is not None and len(set(places)) > fleet.max_regions:
        faults.append(f"{len(set(places))} regions exceed max_regions {fleet.max_regions}")
    return faults + [
        f"{line['offer_id']}: {line['nodes']} nodes are not whole runs of {fleet.nodes_per_run}"
        for line in lines
        if line["nodes"] % fleet.nodes_per_run
    ]
