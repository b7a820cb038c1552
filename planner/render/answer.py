"""The sections of a found plan: verdict, lines, cost, time, speed, risk, baseline, alternatives, cash."""

from __future__ import annotations

from decimal import Decimal

from planner.plan.model import CostLine, Plan, PlanLine
from planner.render.document import Block, Facts, Grid, Notes, without_empty
from planner.render.numbers import (
    UNKNOWN,
    amount,
    days_of,
    hours,
    hours_change,
    moment,
    number,
    percent,
    price,
    usd,
    usd_change,
)
from planner.render.words import (
    DERIVED_MARK,
    OBJECTIVES,
    cluster,
    cost_kind,
    devices,
    is_derived,
    join_some,
    layout_words,
    marked_price,
    option,
    place,
    share,
    summary,
)

_MAX_LINES = 12
_MAX_CASH = 14


def verdict(plan: Plan) -> tuple[str, tuple[str, ...]]:
    """Return the headline and the line below it: what to run, where, for how much, ready when."""
    best = OBJECTIVES.get(plan.objective, "Best")
    until = f", deadline {moment(plan.deadline)}" if plan.deadline else ", no deadline"
    ready = f"{usd(plan.total_usd)}, {hours(plan.hours)} h{days_of(plan.hours)}"
    ready += f", finishes {moment(plan.finish_expected)}{until}"
    if len(plan.lines) == 1:
        line = plan.lines[0]
        inside = devices(line.accelerators, line.accelerator)
        machines = cluster(line.nodes, line.instance_type) + (f" ({inside})" if inside else "")
        bought = option(line.purchase_option, line.option_variant)
        where = place(line.provider, line.region, line.zone)
        return f"{best} feasible plan: {machines} {bought} in {where}: {ready}", ()
    nodes = sum(line.nodes for line in plan.lines)
    if plan.kind == "training" and _in_turn(plan):
        from planner.render.launch import strategy_words

        first = plan.lines[0]
        inside = devices(first.accelerators, first.accelerator)
        machines = cluster(first.nodes, first.instance_type) + (f" ({inside})" if inside else "")
        regions = len({line.region for line in plan.lines})
        where = place(first.provider, first.region, first.zone) + (" and elsewhere" if regions > 1 else "")
        return f"{best} feasible plan: {machines} {strategy_words(plan)}, {where}: {ready}", ()
    if plan.kind == "training":  # one cluster bought in parts
        first = plan.lines[0]
        inside = devices(sum(line.accelerators for line in plan.lines), first.accelerator)
        machines = cluster(nodes, first.instance_type) + (f" ({inside})" if inside else "")
        bought = " + ".join(
            f"{line.nodes} {option(line.purchase_option, line.option_variant)}" for line in plan.lines
        )
        where = place(first.provider, first.region, max(line.zone for line in plan.lines))
        return f"{best} feasible plan: {machines}: {bought} in {where}: {ready}", ()
    total = number(sum(line.accelerators for line in plan.lines), 6)
    mix = f"{len(plan.lines)} offers, {nodes:,} nodes, {total} accelerators"
    return f"{best} feasible plan: {mix}: {ready}", ()


def _in_turn(plan: Plan) -> bool:
    """Whether lines are used one after another; else several lines run together."""
    return plan.launch is not None and plan.launch.strategy != "spot_with_steady"


def plan_lines(plan: Plan, verbose: bool) -> list[Block]:
    """Return what to buy and how to run it."""
    header = ("instance type", "accelerators", "where", "option", "hours", "price/h", "cost", "units/s")
    fleet = len(plan.lines) > 1 and not _in_turn(plan)
    rows = [
        (
            cluster(line.nodes, line.instance_type),
            devices(line.accelerators, line.accelerator),
            place(line.provider, line.region, line.zone),
            option(line.purchase_option, line.option_variant),
            hours(line.billed_hours),
            marked_price(line),
            usd(line.cost_usd),
            number(line.throughput_per_s, 4) if fleet else "",
        )
        for line in plan.lines
    ]
    unit = plan.performance.unit if plan.performance else "units"
    names, cells, align = without_empty((*header[:-1], f"{unit}/s"), rows, "llllrrrr")
    notes = [*_price_notes(plan.lines, verbose), *_layouts(plan.lines)]
    if len(plan.lines) > 1 and _in_turn(plan):
        notes.insert(
            0, "one after another, hours and costs expected: the whole cluster is on one line at a time"
        )
    return [Grid("Plan", names, cells, align, tuple(notes))]


def _price_notes(lines: tuple[PlanLine, ...], verbose: bool) -> list[str]:
    notes = []
    for line in lines[: None if verbose else _MAX_LINES]:
        kind = f"{line.price_basis} price" if line.price_basis else "price"
        text = f"{line.instance_type}: {kind} per node-hour of {line.price_as_of or UNKNOWN}"
        if line.currency != "USD":
            text += f", 1 {line.currency} = ${number(line.usd_per_currency, 5)}"
        text += f", source {line.price_source}" if line.price_source else ""
        text += f", flags {', '.join(line.flags)}" if line.flags else ""
        notes.append(text)
    if any(is_derived(line.price_basis, line.flags) for line in lines):
        notes.append(
            f"{DERIVED_MARK} derived: computed from other published figures, not itself a published price"
        )
    return list(dict.fromkeys(notes))


def _layouts(lines: tuple[PlanLine, ...]) -> list[str]:
    notes = []
    for line in lines:
        layout = line.layout
        if layout is None:
            continue
        prefix = f"{line.instance_type}: " if len(lines) > 1 else ""
        notes.append(f"{prefix}parallel layout: {layout_words(layout)}")
    return list(dict.fromkeys(notes))


def costs(plan: Plan, verbose: bool) -> list[Block]:
    """Return the cost split by kind; every priced quantity when verbose."""
    every = [cost for line in plan.lines for cost in line.costs]
    if not every:
        return []
    total = plan.total_usd
    if verbose:
        lines = [_cost_row(cost, total) for cost in every]
        lines.append(("total", "", "", "", usd(total), ""))
        header = ("kind", "item", "quantity", "unit price", "cost", "share")
        return [Grid("Cost", header, tuple(lines), "llrrrr", _sources(every), total=True)]
    kinds = dict.fromkeys(cost.kind for cost in every)
    rows = []
    for kind in kinds:
        parts = [cost for cost in every if cost.kind == kind]
        paid = sum((cost.amount_usd for cost in parts), Decimal(0))
        mark = DERIVED_MARK if any(is_derived(cost.basis) for cost in parts) else ""
        what = join_some(list(dict.fromkeys(_item(cost) for cost in parts)), 2)
        rows.append((cost_kind(kind), what, mark + usd(paid), percent(share(paid, total))))
    rows.append(("total", "", usd(total), ""))
    return [Grid("Cost", ("kind", "item", "cost", "share"), tuple(rows), "llrr", total=True)]


def _item(cost: CostLine) -> str:
    quantity = f"{number(cost.quantity, 6)} {cost.unit}".strip()
    return f"{cost.label}: {quantity} at {price(cost.unit_price, cost.currency)}"


def _cost_row(cost: CostLine, total: Decimal) -> tuple[str, ...]:
    mark = DERIVED_MARK if is_derived(cost.basis) else ""
    return (
        cost_kind(cost.kind),
        cost.label,
        f"{number(cost.quantity, 6)} {cost.unit}".strip(),
        mark + price(cost.unit_price, cost.currency),
        usd(cost.amount_usd),
        percent(share(cost.amount_usd, total)),
    )


def _sources(every: list[CostLine]) -> tuple[str, ...]:
    texts = (
        f"{cost_kind(c.kind)}: {c.basis} price of {c.as_of or UNKNOWN}, source {c.source}" for c in every
    )
    return tuple(dict.fromkeys(texts))


def timeline(plan: Plan, verbose: bool) -> list[Block]:
    """Return what the hours are made of."""
    if not plan.timeline:
        return []
    total = sum(part.hours for part in plan.timeline)
    if verbose:
        rows = [
            (
                part.name,
                hours(part.hours),
                percent(part.hours / total if total else None),
                part.origin,
                part.note,
            )
            for part in plan.timeline
        ]
        header, cells, align = without_empty(("part", "hours", "share", "origin", "note"), rows, "lrrll")
        return [Grid("Time", header, cells, align)]
    spent = [f"{part.name} {hours(part.hours)}" for part in plan.timeline if part.hours]
    return [Facts("Time", ((f"{hours(total)} h", " + ".join(spent)),))]


def performance(plan: Plan, verbose: bool) -> list[Block]:
    """Return the predicted speed, its interval, and what limits it."""
    speed = plan.performance
    if speed is None:
        return []
    low, high = number(speed.throughput_low_per_s, 4), number(speed.throughput_high_per_s, 4)
    rows = [
        ("throughput", f"{number(speed.throughput_per_s, 4)} {speed.unit}/s (80 % interval {low} to {high})"),
    ]
    if speed.step_time_s is not None:
        rows.append(
            ("step time", f"{number(speed.step_time_s, 4)} s{_breakdown(speed.breakdown_s, verbose)}")
        )
    rows.append(("MFU", percent(speed.mfu)))
    if speed.memory_available_gib is not None:
        free = speed.memory_headroom_gib
        room = "" if free is None else f", {number(free)} GiB free"
        needed, available = number(speed.memory_needed_gib), number(speed.memory_available_gib)
        rows.append(("memory", f"{needed} of {available} GiB per accelerator{room}"))
    if speed.limited_by:
        rows.append(("limited by", speed.limited_by))
    return [Facts("Performance (predicted)", tuple(rows))]


def _breakdown(parts: dict[str, float], verbose: bool) -> str:
    total = sum(parts.values())
    if not parts or not total > 0:
        return ""
    ordered = sorted(parts.items(), key=lambda item: (-item[1], item[0]))
    shown = [(name, value) for name, value in ordered if value > 0][: None if verbose else 4]
    words = (
        f"{name.removesuffix('_s').replace('_', ' ')} {percent(value / total, 0)}" for name, value in shown
    )
    return f": {', '.join(words)}"


def risk(plan: Plan) -> list[Block]:
    """Return what interruptions may do; of a plan with spot, all that is known at launch."""
    if plan.launch is not None:
        from planner.render.launch import launch

        return launch(plan.launch)
    danger = plan.risk
    if danger is None:
        return []
    expected = f"{usd(danger.expected_cost_usd)}, {hours(danger.expected_hours)} h"
    worst = f"{usd(danger.worst_cost_usd)}, {hours(danger.worst_hours)} h"
    lost = f"{number(danger.expected_interruptions)}, losing {hours(danger.expected_lost_hours)} h"
    rows = [("deadline met", f"with probability {percent(danger.p_meet_deadline)}")]
    if danger.p_meet_deadline is None:
        rows = [("deadline met", "probability unknown" if plan.deadline else "no deadline given")]
    rows += [("interruptions", f"{lost} (expected)"), ("expected", expected), ("worst case", worst)]
    if danger.basis:
        rows.append(("basis", danger.basis))
    return [Facts("Risk", tuple(rows))]


def savings(plan: Plan) -> list[Block]:
    """Return the baseline and the difference to it."""
    saved = plan.savings
    if saved is None:
        return []
    rows: list[tuple[str, str]] = []
    if saved.baseline is None:
        rows.append(("baseline", "none"))
    else:
        base = saved.baseline
        label = f"{base.label}: " if base.label else ""
        rows.append(("baseline", f"{label}{summary(base)}: {usd(base.cost_usd)}, {hours(base.hours)} h"))
    if saved.saved_usd:
        word = "saves" if saved.saved_usd >= 0 else "costs more"
        ratio = "" if saved.saved_ratio is None else f" ({percent(abs(saved.saved_ratio))})"
        rows.append((word, f"{usd(abs(saved.saved_usd))}{ratio}"))
    if saved.note:
        rows.append(("note", saved.note))
    return [Facts("Baseline", tuple(rows))]


def alternatives(plan: Plan) -> list[Block]:
    """Return the ranked other candidates, each with what it costs and takes beyond the plan."""
    if not plan.alternatives:
        return []
    rows = [
        (
            str(rank),
            item.label,
            cluster(item.nodes, item.instance_type),
            devices(item.accelerators, item.accelerator),
            place(item.provider, item.region, item.zone),
            option(item.purchase_option, item.option_variant),
            (DERIVED_MARK if is_derived("", item.flags) else "") + usd(item.cost_usd),
            usd_change(item.delta_cost_usd),
            hours_change(item.delta_hours),
        )
        for rank, item in enumerate(plan.alternatives, start=2)
    ]
    header = ("#", "", "instance type", "accelerators", "where", "option", "cost", "+$", "+h")
    names, cells, align = without_empty(header, rows, "rlllllrrr")
    shown = f"{len(rows) + 1:,} of {max(plan.n_feasible, len(rows) + 1):,} feasible candidates shown"
    notes = [f"{shown}, the plan being the first; a listed price is not availability"]
    return [Grid("Alternatives", names, cells, align, tuple(notes))]


def quotas(plan: Plan) -> list[Block]:
    """Return what each account must allow before the plan can start."""
    notes = []
    for line in plan.lines:
        need = line.quota
        code = f" ({need.code})" if need.code else ""
        limit = "" if need.limit is None else f", limit {number(need.limit, 6)}"
        scope = f" per {need.scope}" if need.scope else ""
        where = f"{line.provider}/{line.region}" if line.region else line.provider
        what = f"{number(need.needed, 6)} {need.unit}".strip()
        notes.append(f"{where}: {need.name or 'quota'}{code}{scope}: {what} needed{limit}: {need.status}")
    return [Notes("Quota needed", tuple(dict.fromkeys(notes)))] if notes else []


def cash(plan: Plan) -> list[Block]:
    """Return what falls due in each month."""
    if not plan.cash:
        return []
    months = [f"{due.month} {usd(due.amount_usd)}" for due in plan.cash]
    total = sum((due.amount_usd for due in plan.cash), Decimal(0))
    return [Facts("Cash", ((f"${amount(total)} in all", join_some(months, _MAX_CASH, "months")),))]
