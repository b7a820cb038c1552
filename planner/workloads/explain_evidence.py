"""What a plan rests on: prices by kind and age, speed, how capacity comes and goes, and what was assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.plan.front_scale import chance
from planner.render.model import Section, facts
from planner.render.precision import figure, known_places

if TYPE_CHECKING:
    from planner.plan.model import Performance, Plan
    from planner.render.model import Value

_KINDS = {
    "firm": "firm prices", "observed": "spot market quotes", "derived": "ratios, no quotes",
    "declared": "your own prices", "no_market": "on-demand lists, as no spot market is known", "listed": "lists",
    "unplaced": "lists without a place",
}  # fmt: skip
_ORIGINS = {
    "workload": "from your file",
    "default": "by default",
    "derived": "derived",
    "model": "of the model",
}


def rests_on(plan: Plan) -> Section:
    """The evidence behind the figures of a plan."""
    rows: list[tuple[str, str, Value, Any, str]] = [("prices", "prices", None, "text", _prices(plan))]
    speed = plan.performance
    if speed is not None:
        low, high = speed.throughput_low_per_s, speed.throughput_high_per_s
        places = known_places(speed.throughput_per_s, (high - low) / 2.0)
        text = f"{figure(speed.throughput_per_s, places)} {speed.unit}/s predicted, {_interval(speed)}"
        rows.append(("speed", "speed", speed.throughput_per_s, "number", text))
    if plan.launch is not None:
        rows.append(("capacity", "spot", plan.launch.expected_interruptions, "number", _capacity(plan)))
    elif plan.risk is not None:
        rows.append(("capacity", "capacity", None, "text", plan.risk.basis))
    rows.append(("assumptions", "assumed", len(plan.assumptions), "count", _assumed(plan)))
    return facts("grounds", "What it depends on", rows)


def rests_on_brief(plan: Plan) -> Section:
    """The evidence in one row: the oldest price, the interval of the speed, and what nobody gave."""
    said = []
    known = [line for line in plan.lines if line.price_as_of and line.price_age_days is not None]
    if known:
        oldest = max(known, key=lambda line: line.price_age_days or 0.0)
        said.append(f"prices of {oldest.price_as_of} ({oldest.price_age_days:.0f} days old)")
    if plan.performance is not None:
        said.append(f"speed {_interval(plan.performance)}")
    given = sum(one.origin == "workload" for one in plan.assumptions)
    said.append(
        f"{len(plan.assumptions) - given} assumed values, {given or 'none'} from your file: --details grounds"
    )
    return facts("grounds", "What it depends on", [("rests_on", "based on", None, "text", "; ".join(said))])


def _interval(speed: Performance) -> str:
    """An 80 % interval around the prediction, in percent of it."""
    low, high = (
        end / speed.throughput_per_s - 1 for end in (speed.throughput_low_per_s, speed.throughput_high_per_s)
    )
    return f"{low * 100:+.0f} to {high * 100:+.0f} % (80 %)"


def _prices(plan: Plan) -> str:
    """Each kind of price with its share of the cost and its age."""
    groups: dict[str, list[Any]] = {}
    for line in plan.lines:
        groups.setdefault(line.price_kind, []).append(line)
    said = []
    for kind, lines in sorted(groups.items(), key=lambda item: -sum(line.cost_usd for line in item[1])):
        share = float(sum(line.cost_usd for line in lines) / plan.total_usd) if plan.total_usd else 1.0
        ages = [line.price_age_days for line in lines if line.price_age_days is not None]
        since = min(line.price_as_of for line in lines)
        old = f" of {since}" + (f" ({max(ages):.0f} days old)" if ages else "")
        part = "" if len(groups) == 1 else f" for {chance(share)} of the cost"
        said.append(f"{_KINDS.get(kind, kind)}{old}{part}")
    return "; ".join(said)


def _capacity(plan: Plan) -> str:
    assert plan.launch is not None
    by_source: dict[str, list[str]] = {}
    for place, line in zip(plan.launch.places, plan.lines, strict=False):
        name = line.zone or line.region
        up = "" if place.availability_ratio is None else f" {chance(place.availability_ratio)} up"
        by_source.setdefault(place.evidence, []).append(f"{name}{up}")
    return "; ".join(f"{', '.join(names)}: {source}" for source, names in by_source.items())


def _assumed(plan: Plan) -> str:
    count: dict[str, int] = {}
    for one in plan.assumptions:
        count[one.origin] = count.get(one.origin, 0) + 1
    said = ", ".join(f"{number} {_ORIGINS.get(origin, origin)}" for origin, number in count.items())
    return f"{said}: --details assumptions"
