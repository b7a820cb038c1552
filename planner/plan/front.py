"""The answer that fits on a screen: plan, cost, date, speed, the decisions to weigh, and what to do before buying.

Every figure has the digits that its interval supports (`planner.render.precision`); the exact ones are behind
`--details` and in the machine forms. The figures are the plan's own: nothing is chosen or computed here.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from decimal import Decimal

from planner.plan.front_choices import changes, choices, in_brief, names_wait, rungs, whole_hours
from planner.plan.front_notes import before_you_buy, verdict_lines
from planner.plan.front_scale import Scale, bounds_chance, chance
from planner.plan.model import FilterCount, Performance, Plan, PlanLine
from planner.plan.outcome import MOST_PLACES, regions_words
from planner.plan.report_carbon import emissions
from planner.plan.report_launch import strategy_words
from planner.plan.report_quote import quote_sentence
from planner.plan.words import beside_steps, machines_of, short_layout
from planner.render.model import Section, Unit, Value, facts
from planner.render.numbers import number, percent, whole_percent
from planner.render.precision import dollars_stated, moment_known, with_interval
from planner.render.units import compact
from planner.render.words import assumed_sizes, cluster, devices, option, place

_SURE_TO_FIT = 0.99  # a layout that fits more surely needs no word
_MUCH = {
    "generation": 0.3,
    "other_models": 0.35,
}  # shares of a step from which its low utilisation is explained
_OFTEN_ON_DEMAND = 0.1  # of runs that change to on-demand: from here on it is said
_COVERED = {
    "compute": {"compute", "after_end"}, "upfront payment": {"upfront"}, "transfer": {"data_transfer"},
    "storage": {"system_disk", "data_storage", "checkpoint_storage"}, "interruptions": {"interruption"},
}  # fmt: skip
_MOST_FILTERS = 4
_OF_MACHINES = (
    "inference_only", "unknown_peak", "precision", "memory", "layout", "network", "capacity", "allocation_unit",
)  # fmt: skip
_Row = tuple[str, str, Value, Unit, str]


def headline(plan: Plan) -> str:
    """Return what is asked: name, work, deadline and confidence, budget."""
    parts, goal = [], plan.goal
    if goal is not None and goal.units > 0:
        parts.append(f"{compact(goal.units, 'count')} {goal.unit}")
    if plan.deadline is None:
        parts.append("no deadline")
    else:
        sure = (
            ""
            if goal is None or goal.deadline_confidence_ratio is None
            else _sure(goal.deadline_confidence_ratio)
        )
        year = datetime.fromisoformat(plan.created_at).year  # a job may start in another one
        parts.append(f"by {moment_known(plan.deadline, 0.0, year)}{sure}")
    if goal is not None and goal.budget_usd is not None:
        parts.append(f"budget {dollars_stated(goal.budget_usd)}")
    if plan.carbon is not None and plan.carbon.limit_kgco2e is not None:
        parts.append(f"at most {number(plan.carbon.limit_kgco2e)} kgCO2e")
    parts += assumed_sizes(plan.assumptions)
    low = ["low confidence: sizes are assumed"] if plan.confidence == "low" else []
    return f"{plan.workload}: {', '.join([*parts, *low])}"


def _sure(confidence: float) -> str:
    return f" ({number(100 * confidence, 4)} %)"


def brief(plan: Plan) -> str:
    """Return the plan, its cost and its end in a few words."""
    if plan.status == "infeasible":
        return "no feasible plan"
    scale = Scale.of(plan)
    return f"{bought(plan)}: {scale.usd(plan.total_usd)}, done {scale.moment(plan.finish_expected or plan.start)}"


def front(plan: Plan) -> tuple[Section, ...]:
    """Return the sections of the screen."""
    if plan.status == "infeasible":
        rows: list[_Row] = [("plan", "plan", "none", "text", _none(plan)), *_removed(plan), *_too_long(plan)]
    else:
        scale = Scale.of(plan)
        rows = [
            ("plan", "plan", bought(plan), "text", bought(plan)), _cost(plan, scale), _done(plan, scale),
            *_quote(plan), *_saved(plan, scale),
            *_speed(plan), *_carbon(plan),
        ]  # fmt: skip
    return (
        facts("front", "Plan", rows),
        *choices(plan),
        *rungs(plan),
        *changes(plan),
        *before_you_buy(plan),
        Section("verdict", "Verdict", verdict_lines(plan)),
    )


def none_rows(plan: Plan) -> tuple[Section, ...]:
    """Where nothing fits: how many were compared, and what removes most."""
    rows = [("plan", "plan", "none", "text", _none(plan)), *_removed(plan), *_too_long(plan)]
    return (facts("front", "Plan", rows),)


def _none(plan: Plan) -> str:
    tried = plan.proof.candidates if plan.proof is not None else 0
    if plan.proof is not None and plan.proof.note:
        return f"{plan.proof.note} ({tried:,} candidates to mix)"
    return f"none of the {tried:,} candidates compared meets every limit"


def _removed(plan: Plan) -> list[_Row]:
    """What removes most: candidates that one filter alone keeps out; first what whoever asks can change."""
    alone = sorted((f for f in plan.filters if f.removed_only_by_this), key=lambda f: -f.removed_only_by_this)
    if not alone:
        return []
    stated = _counts([f for f in alone if f.name not in _OF_MACHINES])
    machines = _counts([f for f in alone if f.name in _OF_MACHINES])
    parts = [stated] * bool(stated) + [f"what machines cannot do: {machines}"] * bool(machines)
    of = "of the options for a worker, " if plan.kind == "fleet" else ""
    text = f"{of}excluded by a single limit: {'; '.join(parts)}"
    return [("removed_by_one", "why", len(alone), "count", text)]


def _counts(filters: list[FilterCount]) -> str:
    counts = ", ".join(f"{f.name} {f.removed_only_by_this:,}" for f in filters[:_MOST_FILTERS])
    more = len(filters) - _MOST_FILTERS
    return counts + (f" and {more} more {'limit' if more == 1 else 'limits'}" if more > 0 else "")


def _too_long(plan: Plan) -> list[_Row]:
    """Work that would go on for generations whatever gives way: what a slip of some zeros looks like."""
    removed = sum(f.removed for f in plan.filters if f.name == "longest")
    if plan.relaxations or not removed:
        return []
    text = f"{removed:,} candidates would take longer than a century: check the amount of work"
    return [("too_long", "too long", removed, "count", text)]


def bought(plan: Plan) -> str:
    """What is run, how it is bought, and where."""
    first, lines = plan.lines[0], plan.lines
    if plan.side_by_side:
        return _fleet(machines_of(plan))
    if len(lines) == 1:
        way = option(first.purchase_option, first.option_variant)
        return f"{_cluster(first.nodes, lines[:1])}, {way}, {place(first.provider, first.region, first.zone)}"
    if plan.launch is not None and plan.launch.strategy in ("spot", "spot_with_fallback"):
        return f"{_cluster(first.nodes, lines[:1])}, {strategy_words(plan)}, {regions_words(lines)}"
    parts = " + ".join(f"{line.nodes} {option(line.purchase_option, line.option_variant)}" for line in lines)
    return f"{_cluster(sum(line.nodes for line in lines), lines)}: {parts}, {regions_words(lines)}"


def _cluster(nodes: int, lines: tuple[PlanLine, ...]) -> str:
    inside = devices(sum(line.accelerators for line in lines), lines[0].accelerator)
    return cluster(nodes, lines[0].instance_type) + (f" ({inside})" if inside else "")


def _fleet(lines: tuple[PlanLine, ...]) -> str:
    """The offers of a fleet, the dearest first; zones of a region are one."""
    nodes: dict[tuple[str, ...], int] = {}
    speed: dict[tuple[str, ...], float] = {}
    for line in sorted(lines, key=lambda line: -line.cost_usd):
        bought = option(line.purchase_option, line.option_variant)
        key = (line.instance_type, bought, place(line.provider, line.region, ""))
        nodes[key] = nodes.get(key, 0) + line.nodes
        speed[key] = speed.get(key, 0.0) + line.throughput_per_s
    texts = [
        f"{cluster(count, kind)} {bought} in {where}{_share(speed[kind, bought, where], speed, first=not at)}"
        for at, ((kind, bought, where), count) in enumerate(nodes.items())
    ]
    more = len(texts) - MOST_PLACES
    remainder = f" and {more} more {'offer' if more == 1 else 'offers'}" if more > 0 else ""
    return " + ".join(texts[:MOST_PLACES]) + remainder


def _share(own: float, speed: dict[tuple[str, ...], float], *, first: bool) -> str:
    """The part of the work that one offer of several does."""
    whole = math.fsum(speed.values())
    if len(speed) == 1 or not whole > 0:
        return ""
    return f" ({100 * own / whole:.0f} %{' of the work' if first else ''})"


def _cost(plan: Plan, scale: Scale) -> _Row:
    parts = [f"{scale.usd(plan.total_usd)} expected"]
    quoted = _as_quoted(plan)
    if quoted is not None and scale.usd(quoted, plan.total_usd) != scale.usd(plan.total_usd):
        parts[0] += f" ({scale.usd(quoted, plan.total_usd)} as quoted)"
    if scale.low_usd is not None and scale.high_usd is not None:
        low, high = (scale.usd(end, plan.total_usd) for end in (scale.low_usd, scale.high_usd))
        parts.append(f"80 %: {low} to {high}")
    elif scale.high_usd is not None:
        parts.append(f"90 %: at most {scale.usd(scale.high_usd, plan.total_usd)}")
    parts += _own_machines(plan, scale)
    kinds = {cost.kind for line in plan.lines for cost in line.costs}
    parts.append(", ".join(name for name, members in _COVERED.items() if kinds & members))
    return ("cost_usd", "cost", plan.total_usd, "usd", "; ".join(parts))


def _own_machines(plan: Plan, scale: Scale) -> list[str]:
    """What own machines add to the cost once their purchase counts."""
    owned = [line for line in plan.lines if line.marginal_usd_per_hour is not None]
    if not owned:
        return []
    extra = Decimal(0)
    for line in owned:
        if line.full_usd_per_hour is None or line.marginal_usd_per_hour is None:
            return ["what the purchase of own machines adds is unknown"]
        hours = sum((cost.quantity for cost in line.costs if cost.kind == "compute"), Decimal(0))
        extra += hours * (line.full_usd_per_hour - line.price_per_hour * line.usd_per_currency)
    return [f"{scale.usd(plan.total_usd + extra)} with the purchase of own machines"] if extra else []


def _as_quoted(plan: Plan) -> Decimal | None:
    """The cost at the prices quoted in place of those expected; None where one is no market price."""
    total = plan.total_usd
    for line in plan.lines:
        if line.quoted_price_per_hour is None or line.price_kind == "no_market" or not line.price_per_hour:
            return None
        paid = sum((cost.amount_usd for cost in line.costs if cost.kind == "compute"), Decimal(0))
        total += paid * (line.quoted_price_per_hour / line.price_per_hour - 1)
    return total


def _done(plan: Plan, scale: Scale) -> _Row:
    parts = [scale.moment(plan.finish_expected or plan.start)]
    wait = plan.starts_in_hours or 0.0
    if names_wait(wait, plan.hours):
        parts.append(f"starts in about {whole_hours(wait)}")
    if plan.launch is not None:
        early, late = scale.moment(plan.launch.finish_p10), scale.bound(plan.launch.finish_p90)
        parts.append(f"80 %: {early} to {late}" if early != late else f"80 %: {early}")
    elif scale.high_hours is not None:
        parts.append(f"90 %: by {scale.after(scale.high_hours)}")
    sure = plan.risk.p_meet_deadline if plan.risk is not None else None
    least = "at least " if bounds_chance(plan) else ""
    asked = 0.0 if plan.goal is None else plan.goal.deadline_confidence_ratio or 0.0
    deadline_text = "no deadline" if plan.deadline is None else f"in time with {least}{chance(sure, asked)}"
    parts.append(deadline_text + _at_the_last_moment(plan))
    return ("finish_expected", "done", plan.finish_expected or "", "text", "; ".join(parts))


def _at_the_last_moment(plan: Plan) -> str:
    """How often on-demand takes over, which costs several times as much and ends just before the deadline."""
    launch = plan.launch
    if (
        launch is None
        or launch.strategy != "spot_with_fallback"
        or launch.p_on_demand_needed_ratio < _OFTEN_ON_DEMAND
    ):
        return ""
    return f": in {chance(launch.p_on_demand_needed_ratio)} of runs on-demand takes over at the last moment"


def _quote(plan: Plan) -> list[_Row]:
    """The bound that was asked for."""
    quote = plan.quote
    return [] if quote is None else [("quote_usd", "quote", quote.cost_usd, "usd", quote_sentence(plan))]


def _saved(plan: Plan, scale: Scale) -> list[_Row]:
    """What the plan saves against the cluster that the workload names."""
    saved = plan.savings
    if saved is None or saved.saved_usd is None or saved.baseline is None or not saved.baseline.label:
        return []
    base = saved.baseline
    usd, ratio = abs(saved.saved_usd), abs(saved.saved_ratio or 0.0)
    much = f"{scale.usd(usd, base.cost_usd)} ({percent(ratio, 0)})" if usd else "nothing"
    ends = datetime.fromisoformat(plan.start) + timedelta(hours=min(base.hours, 1e6))
    text = (
        f"{much} against {base.label}, {in_brief(base)}: "
        f"{scale.usd(base.cost_usd)}, done {scale.moment(ends.isoformat(), base.hours)}"
    )
    return [("saved_usd", "saves" if saved.saved_usd >= 0 else "costs more", saved.saved_usd, "usd", text)]


def _carbon(plan: Plan) -> list[_Row]:
    """What the run emits, where the file limits it or asks for the least."""
    footprint = plan.carbon
    if footprint is None or (footprint.limit_kgco2e is None and plan.objective != "carbon"):
        return []
    return [("kgco2e", "carbon", footprint.operational_kgco2e, "number", emissions(footprint))]


def _speed(plan: Plan) -> list[_Row]:
    speed = plan.performance
    if speed is None:
        return []
    low, high = speed.throughput_low_per_s, speed.throughput_high_per_s
    parts = [with_interval(speed.throughput_per_s, low, high, f"{speed.unit}/s")]
    if speed.mfu is not None:
        parts.append(f"MFU {whole_percent(speed.mfu)}{_of_other_work(speed)}")
    if speed.memory_needed_gib is not None and speed.memory_available_gib is not None:
        needed, available = number(speed.memory_needed_gib), number(speed.memory_available_gib)
        fits = speed.memory_fits_ratio
        chance_text = "" if fits is None or fits > _SURE_TO_FIT else f", fits with {chance(fits)}"
        parts.append(f"{needed} of {available} GiB{chance_text}")
    if plan.lines[0].layout is not None:
        parts.append(short_layout(plan.lines[0].layout, inference=plan.kind == "inference"))
    parts += _beside_steps(plan)
    return [("throughput_per_s", "speed", speed.throughput_per_s, "number", "; ".join(parts))]


def _beside_steps(plan: Plan) -> list[str]:
    """What the hours have beside the steps, whose speed this is, unless the workload itself says how much.

    The speed of a fleet is its work over all of its hours.
    """
    if plan.kind == "fleet":
        return ["over all hours, waits included"]
    key = "beside_steps_ratio"
    ratio = next((x.value for x in plan.assumptions if x.key == key and x.origin == "default"), "0")
    return [said] if (said := beside_steps(float(ratio))) else []


def _of_other_work(speed: Performance) -> str:
    """Why the utilisation is low of a step that mostly generates or runs other networks; "" of others."""
    step = speed.step_time_s or math.inf
    words = {"generation": "generates, bound by memory", "other_models": "is passes of other networks"}
    shares = {name: speed.breakdown_s.get(name, 0.0) / step for name in words}
    said = [
        f"{chance(shares[name])} of the step {text}"
        for name, text in words.items()
        if shares[name] >= _MUCH[name]
    ]
    return f" ({', '.join(said)})" if said else ""
