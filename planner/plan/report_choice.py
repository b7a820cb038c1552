"""The sections of a found plan: verdict, lines, cost, time, speed, risk, cash."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import partial

from planner.plan import report_charts as charts
from planner.plan.front_scale import chance
from planner.plan.ids import WAITED, TimePartId
from planner.plan.model import CostLine, Plan, PlanLine
from planner.plan.report_launch import launch, strategy_words
from planner.plan.words import claim, cost_kind, layout_words, machines_of, own_machines, step_part
from planner.render.model import Chart, Column, Section, Unit, Value, facts, table_section
from planner.render.numbers import UNKNOWN, billed, days_of, hours, moment, number, percent, price, usd
from planner.render.words import DERIVED_MARK, cluster, devices, is_derived, join_some, option, place, share

_MAX_LINES = 12
_MAX_CASH = 14


def verdict(plan: Plan) -> str:
    """Return the headline: what to run, where, for how much, ready when."""
    opening = claim(plan)
    until = f", deadline {moment(plan.deadline)}" if plan.deadline else ", no deadline"
    ready = f"{usd(plan.total_usd)}, {hours(plan.hours)} h{days_of(plan.hours)}"
    ready += f", finishes {moment(plan.finish_expected)}{until}"
    if len(plan.lines) == 1:
        line = plan.lines[0]
        inside = devices(line.accelerators, line.accelerator)
        machines = cluster(line.nodes, line.instance_type) + (f" ({inside})" if inside else "")
        bought = option(line.purchase_option, line.option_variant)
        where = place(line.provider, line.region, line.zone)
        return f"{opening}: {machines} {bought} in {where}: {ready}"
    nodes = sum(line.nodes for line in plan.lines)
    if _in_turn(plan):
        first = plan.lines[0]
        inside = devices(first.accelerators, first.accelerator)
        machines = cluster(first.nodes, first.instance_type) + (f" ({inside})" if inside else "")
        regions = len({line.region for line in plan.lines})
        where = place(first.provider, first.region, first.zone) + (" and elsewhere" if regions > 1 else "")
        return f"{opening}: {machines} {strategy_words(plan)}, {where}: {ready}"
    if plan.kind != "fleet":  # one cluster bought in parts
        first = plan.lines[0]
        inside = devices(sum(line.accelerators for line in plan.lines), first.accelerator)
        machines = cluster(nodes, first.instance_type) + (f" ({inside})" if inside else "")
        bought = " + ".join(
            f"{line.nodes} {option(line.purchase_option, line.option_variant)}" for line in plan.lines
        )
        where = place(first.provider, first.region, max(line.zone for line in plan.lines))
        return f"{opening}: {machines}: {bought} in {where}: {ready}"
    lines = machines_of(plan)
    nodes, total = sum(line.nodes for line in lines), number(sum(line.accelerators for line in lines), 6)
    mix = f"{len(plan.lines)} offers, {nodes:,} nodes, {total} accelerators"
    return f"{opening}: {mix}: {ready}"


def _in_turn(plan: Plan) -> bool:
    """Whether lines are used one after another; else several lines run together."""
    return plan.launch is not None and plan.launch.in_turn


def plan_lines(plan: Plan, verbose: bool) -> Section:
    """Return what to buy and how to run it."""
    fleet = len(plan.lines) > 1 and not _in_turn(plan)
    unit = plan.performance.unit if plan.performance else "units"
    columns = (
        Column("cluster", "instance type", "cluster"),
        Column("accelerators", "accelerators", "devices"),
        Column("place", "where", "place"),
        Column("option", "option", "option"),
        Column("billed_hours", "hours", "hours"),
        Column("price_per_hour", "price/h", "price"),
        Column("cost_usd", "cost", "usd"),
        Column("throughput_per_s", f"{unit}/s", "number", 4),
    )
    rows: list[tuple[Value, ...]] = [
        (
            (line.nodes, line.instance_type),
            (line.accelerators, line.accelerator),
            (line.provider, line.region, line.zone),
            (line.purchase_option, line.option_variant),
            line.billed_hours,
            (line.price_per_hour, line.currency, is_derived(line.price_basis, line.flags)),
            line.cost_usd,
            line.throughput_per_s if fleet else "",
        )
        for line in plan.lines
    ]
    notes = [*_price_notes(plan.lines, verbose), *_layouts(plan)]
    if len(plan.lines) > 1 and _in_turn(plan):
        whole = "each worker" if plan.kind == "fleet" else "the whole cluster"
        notes.insert(0, f"one after another, hours and costs expected: {whole} is on one line at a time")
    if plan.launch is not None and plan.launch.in_parts:
        notes.insert(
            0, "hours and costs expected: each worker of the first two lines is on one of them at a time"
        )
    return table_section("lines", "Plan", columns, rows, notes)


def _price_notes(lines: tuple[PlanLine, ...], verbose: bool) -> list[str]:
    notes = []
    for line in lines[: None if verbose else _MAX_LINES]:
        kind = f"{line.price_basis} price" if line.price_basis else "price"
        text = f"{line.instance_type}: {kind} per node-hour of {line.price_as_of or UNKNOWN}"
        if line.currency != "USD":
            text += f", 1 {line.currency} = ${number(line.usd_per_currency, 5)}"
        text += _expectation(line)
        text += f", source {line.price_source}" if line.price_source else ""
        text += f", flags {', '.join(line.flags)}" if line.flags else ""
        notes.append(text)
        notes += _own_machines(line)
    if any(is_derived(line.price_basis, line.flags) for line in lines):
        notes.append(
            f"{DERIVED_MARK} derived: computed from other published figures, not itself a published price"
        )
    return list(dict.fromkeys(notes))


def _own_machines(line: PlanLine) -> list[str]:
    """What the own machines of a line cost at the margin and in full, nothing where it has none."""
    hours = sum((cost.quantity for cost in line.costs if cost.kind == "compute"), Decimal(0))
    rates = (line.marginal_usd_per_hour, line.full_usd_per_hour)
    marginal, full = (
        "" if rate is None else f"{usd(rate * hours)} ({price(rate)} per hour)" for rate in rates
    )
    return [f"own machines: {own_machines(marginal, full)}"] if marginal else []


def _expectation(line: PlanLine) -> str:
    """Quote, its age and what to expect of it, where the price is not firm."""
    if line.price_age_days is None or line.quoted_price_per_hour is None:
        return ""
    text = f", {number(line.price_age_days, 4)} days old"
    if line.price_kind == "no_market":
        return f"{text}: quoted {number(line.quoted_price_per_hour, 4)} is no market price, on-demand is expected"
    if line.price_p10_per_hour == line.price_p90_per_hour:
        return text
    low, high = (number(price, 4) for price in (line.price_p10_per_hour, line.price_p90_per_hour))
    expected = number(line.price_per_hour, 4)
    return f"{text}: quoted {number(line.quoted_price_per_hour, 4)}, expected {expected} (P10-P90 {low} to {high})"


def _layouts(plan: Plan) -> list[str]:
    notes, inference = [], plan.kind == "inference"
    for line in plan.lines:
        layout = line.layout
        if layout is None:
            continue
        prefix = f"{line.instance_type}: " if len(plan.lines) > 1 else ""
        words = layout_words(layout, inference=inference)
        notes.append(f"{prefix}{'layout' if inference else 'parallel layout'}: {words}")
    each = enumerate(plan.phase_layouts or (), start=1)
    notes += [f"layout of phase {at}: {layout_words(phase)}" for at, phase in each]
    return list(dict.fromkeys(notes))


def costs(plan: Plan, verbose: bool) -> list[Section]:
    """Return the cost split by kind; every priced quantity when verbose."""
    every = [cost for line in plan.lines for cost in line.costs]
    if not every:
        return []
    kinds = {
        kind: [cost for cost in every if cost.kind == kind] for kind in dict.fromkeys(c.kind for c in every)
    }
    paid = {kind: sum((cost.amount_usd for cost in parts), Decimal(0)) for kind, parts in kinds.items()}
    kind_words = partial(cost_kind, inference=plan.kind == "inference")
    drawn = (*charts.cost_by_kind(paid, inference=plan.kind == "inference"), *charts.cost_by_day(plan))
    if verbose:
        return [_every_cost(plan, every, drawn)]
    rows: list[tuple[Value, ...]] = []
    for kind, parts in kinds.items():
        derived = any(is_derived(cost.basis) for cost in parts)
        items = join_some(_items(parts), 2)
        rows.append((kind_words(kind), items, (paid[kind], derived), share(paid[kind], plan.total_usd)))
    rows.append(("total", "", (plan.total_usd, False), ""))
    columns = (
        Column("kind", "kind", "text"), Column("item", "item", "text"), Column("cost_usd", "cost", "usd_marked"),
        Column("share_ratio", "share", "ratio"),
    )  # fmt: skip
    return [table_section("cost", "Cost", columns, rows, total=True, charts=drawn)]


def _every_cost(plan: Plan, every: list[CostLine], drawn: tuple[Chart, ...]) -> Section:
    """One row per priced quantity."""
    kind_words = partial(cost_kind, inference=plan.kind == "inference")
    columns = (
        Column("kind", "kind", "text"), Column("item", "item", "text"), Column("quantity", "quantity", "measure"),
        Column("unit_price", "unit price", "price"), Column("amount_usd", "cost", "usd"),
        Column("share_ratio", "share", "ratio"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (
            kind_words(cost.kind), cost.label, (cost.quantity, cost.unit),
            (cost.unit_price, cost.currency, is_derived(cost.basis)), cost.amount_usd,
            share(cost.amount_usd, plan.total_usd),
        )
        for cost in every
    ]  # fmt: skip
    rows.append(("total", "", "", "", plan.total_usd, ""))
    return table_section("cost", "Cost", columns, rows, _sources(plan.kind, every), total=True, charts=drawn)


def _items(parts: list[CostLine]) -> list[str]:
    """Return each priced thing once: what is bought of it in several zones is summed."""
    bought: dict[tuple[str, str, str], Decimal] = {}
    for cost in parts:
        key = (cost.label, cost.unit, price(cost.unit_price, cost.currency))
        bought[key] = bought.get(key, Decimal(0)) + cost.quantity
    return [
        f"{label}: {f'{billed(quantity)} {unit}'.strip()} at {at}"
        for (label, unit, at), quantity in bought.items()
    ]


def _sources(kind: str, every: list[CostLine]) -> tuple[str, ...]:
    kind_words = partial(cost_kind, inference=kind == "inference")
    texts = (
        f"{kind_words(c.kind)}: {c.basis} price of {c.as_of or UNKNOWN}, source {c.source}" for c in every
    )
    return tuple(dict.fromkeys(texts))


def timeline(plan: Plan, verbose: bool) -> list[Section]:
    """Return what the hours are made of."""
    if not plan.timeline:
        return []
    total = sum(part.hours for part in plan.timeline)
    drawn = (*charts.finish_range(plan), *charts.hours_by_use(plan), *charts.time_line(plan.timeline))
    if not verbose:
        spent = [f"{part.name} {hours(part.hours)}" for part in plan.timeline if part.hours]
        shown: list[tuple[str, str, Value, Unit, str]] = [
            ("hours", f"{hours(total)} h", total, "hours", " + ".join(spent)),
            ("starts_in_hours", "starts", plan.starts_in_hours, "hours", _starts(plan)),
        ]
        return [replace(facts("time", "Time", shown), charts=drawn)]
    columns = (
        Column("part", "part", "text"), Column("hours", "hours", "hours"), Column("share_ratio", "share", "ratio"),
        Column("origin", "origin", "text"), Column("note", "note", "text"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (part.name, part.hours, part.hours / total if total else None, part.origin, part.note)
        for part in plan.timeline
    ]
    return [table_section("time", "Time", columns, rows, charts=drawn)]


def _starts(plan: Plan) -> str:
    """When the first instance is in use, and how sure that is."""
    if plan.launch is not None and plan.launch.strategy in ("spot_in_fleet", "fallback_in_fleet"):
        return f"from about {hours(plan.starts_in_hours or 0.0)} h on, worker by worker as spot becomes available"
    about = f"in about {hours(plan.starts_in_hours or 0.0)} h"
    if plan.launch is not None and plan.launch.first_wait_hours > 0:
        wait = hours(plan.launch.first_wait_hours)
        return f"{about}, of which {wait} h until spot is expected to be available (from records)"
    if any(row.key == WAITED for row in plan.assumptions):
        return f"{about}, by your requests (constraints.waited) and assumed waits"
    if any(part.id is TimePartId.CAPACITY for part in plan.timeline):
        return f"{about}; the wait for capacity is assumed (constraints.waiting takes what you know)"
    return about


def performance(plan: Plan, verbose: bool) -> list[Section]:
    """Return the predicted speed, its interval, and what limits it."""
    speed = plan.performance
    if speed is None:
        return []
    low, high = number(speed.throughput_low_per_s, 4), number(speed.throughput_high_per_s, 4)
    rows: list[tuple[str, str, Value, Unit, str]] = [
        (
            "throughput_per_s", "throughput", speed.throughput_per_s, "number",
            f"{number(speed.throughput_per_s, 4)} {speed.unit}/s (80 % interval {low} to {high})",
        )
    ]  # fmt: skip
    if speed.step_time_s is not None:
        words = f"{number(speed.step_time_s, 4)} s{_breakdown(plan, verbose)}"
        label = "batch time" if plan.kind == "inference" else "step time"
        rows.append(("step_time_s", label, speed.step_time_s, "seconds", words))
    rows.append(("mfu_ratio", "MFU", speed.mfu, "ratio", percent(speed.mfu)))
    if speed.memory_available_gib is not None:
        free = speed.memory_headroom_gib
        room = "" if free is None else f", {number(free)} GiB free"
        if speed.memory_fits_ratio is not None:
            room += f"; fits with {chance(speed.memory_fits_ratio)}"
        needed, available = number(speed.memory_needed_gib), number(speed.memory_available_gib)
        words = f"{needed} of {available} GiB per accelerator{room}"
        rows.append(("memory_needed_gib", "memory", speed.memory_needed_gib, "gib", words))
    if speed.limited_by:
        limit = step_part(speed.limited_by, inference=plan.kind == "inference")
        rows.append(("limited_by", "limited by", speed.limited_by, "text", limit))
    drawn = charts.step_and_memory(speed, inference=plan.kind == "inference")
    return [replace(facts("performance", "Performance (predicted)", rows), charts=drawn)]


def _breakdown(plan: Plan, verbose: bool) -> str:
    assert plan.performance is not None
    parts, inference = plan.performance.breakdown_s, plan.kind == "inference"
    total = sum(parts.values())
    if not parts or not total > 0:
        return ""
    ordered = sorted(parts.items(), key=lambda item: (-item[1], item[0]))
    shown = [(name, value) for name, value in ordered if value > 0][: None if verbose else 4]
    words = (f"{step_part(name, inference=inference)} {percent(value / total, 0)}" for name, value in shown)
    return f": {', '.join(words)}"


def risk(plan: Plan) -> list[Section]:
    """Return what interruptions may do; of a plan with spot, all that is known at launch."""
    if plan.launch is not None:
        return [launch(plan.launch, inference=plan.kind == "inference")]
    danger = plan.risk
    if danger is None:
        return []
    expected = f"{usd(danger.expected_cost_usd)}, {hours(danger.expected_hours)} h"
    worst = f"{usd(danger.worst_cost_usd)}, {hours(danger.worst_hours)} h"
    lost = f"{number(danger.expected_interruptions)}, losing {hours(danger.expected_lost_hours)} h"
    chance_text = f"with probability {percent(danger.p_meet_deadline)}"
    if danger.p_meet_deadline is None:
        chance_text = "probability unknown" if plan.deadline else "no deadline given"
    rows: list[tuple[str, str, Value, Unit, str]] = [
        ("p_meet_deadline_ratio", "deadline met", danger.p_meet_deadline, "ratio", chance_text),
        (
            "expected_interruptions", "interruptions", danger.expected_interruptions, "quantity",
            f"{lost} (expected)",
        ),
        ("expected_cost_usd", "expected", danger.expected_cost_usd, "usd", expected),
        ("worst_cost_usd", "worst case", danger.worst_cost_usd, "usd", worst),
    ]  # fmt: skip
    if danger.basis:
        rows.append(("basis", "basis", danger.basis, "text", ""))
    return [facts("risk", "Risk", rows)]


def cash(plan: Plan) -> list[Section]:
    """Return what falls due in each month."""
    if not plan.cash:
        return []
    months = [f"{due.month} {usd(due.amount_usd)}" for due in plan.cash]
    total = sum((due.amount_usd for due in plan.cash), Decimal(0))
    months_text = join_some(months, _MAX_CASH, "months")
    section = facts("cash", "Cash", [("due_usd", f"{usd(total)} in all", total, "usd", months_text)])
    return [replace(section, charts=charts.cash_by_month(plan.cash))]
