"""The tables of the screen: decisions to weigh, rungs of a task, and changes that would make a plan possible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from planner.plan.brief import Choice, Summary
from planner.plan.front_scale import Scale, bounds_chance, chance_or_bound
from planner.plan.model import Plan
from planner.plan.outcome import change_words, enough, places_in_turn, regions_words
from planner.plan.relaxation import Relaxation
from planner.plan.report_launch import strategy_words
from planner.plan.words import machines_of
from planner.render.model import Column, Section, Value, table_section
from planner.render.numbers import whole_percent
from planner.render.precision import HOUR_FROM, known_places, moment_known, rounded
from planner.render.words import cluster, option, place

_KINDS = {
    "cheapest": "cheapest", "fastest": "fastest", "least_carbon": "least carbon",
    "sooner": "sooner", "cheaper": "cheaper", "reserved": "reserved",
    "firm": "firm", "on_demand": "on-demand", "one_offer": "one offer", "owned": "own", "provider": "other provider",
    "known_prices": "known prices", "limits_aside": "limits aside",
}  # fmt: skip
_UNSEEN = {
    "software": ", but needs a port (software {0} -> {1})",
    "derived_price": ", but its price is derived, not quoted (planner catalog refresh, or constraints.allow_derived)",
    "partition": " (if you may use {1})",
}  # what a cheaper choice that is not planned needs
_MOST_KINDS = 2
_MOST_CHANGES = 5
# until the run starts: shorter waits are in the details, unless the run itself is shorter still
_LONG_WAIT_HOURS, WAIT_HOURS, _MOST_OF_IT = 6.0, 3.0, 0.5
_LITTLE_USD_PER_HOUR = 1.0  # what an hour may cost that anybody would rather pay than wait
# Costs nearly the same (prices are not known better), and share of the time that makes such a decision worth a line.
AS_CHEAP, _MUCH_SOONER = 0.03, 0.2
# The same where the time counts, which is predicted less well than prices.
_AS_SOON, _MUCH_CHEAPER = 0.05, 0.2
RECORDED_AT_ONCE = (
    16  # accelerators of a gang, the most in public records of capacity (docs/spot/obtainable.md)
)
MANY_TIMES = 4.0  # the plan's accelerators, from which on it is said that a sooner end rests on their number
_THREE_DIGITS = 0.1  # half-width, relative, of what has no interval of its own: three digits are printed


def choices(plan: Plan) -> list[Section]:
    """Return the decisions: cost, end and chance of each; what needs a port or a quote is named below."""
    if not plan.choices:
        return []
    scale = Scale.of(plan)
    columns = (
        Column("kinds", "choices", "text"), Column("decision", "", "text"), Column("cost_usd", "cost", "usd_known"),
        Column("finish_expected", "done", "text"), Column("p_meet_deadline", "in time", "chance"),
        *([Column("kgco2e", "kgCO2e", "number")] if plan.objective == "carbon" else []),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for item, decision, ends in zip(plan.choices, _decisions(plan), _ends(plan, scale), strict=True):
        best, kinds = item.best, _kinds(item, first=not rows)
        same = (decision, scale.known(plan.total_usd if best is None else best.cost_usd), ends)
        if rows and rows[0][1 : 1 + len(same)] == same:  # a fleet of one offer on demand is its own baseline
            rows[0] = (f"{rows[0][0]}, {kinds.strip()}", *rows[0][1:])
            continue
        rows.append(
            (
                kinds, *same, _in_time(plan, item),
                *(_emitted(plan, item) if plan.objective == "carbon" else ()),
            )
        )  # fmt: skip
    notes = [
        _alike_for_less(plan, scale) or _as_soon(plan, scale),
        _hours_for_little(plan, scale) or _as_cheap(plan, scale),
        *_asked_at_once(plan),
        _fewer_at_once(plan, scale),
        *(_at_once(plan, item) for item in plan.choices if item.best is not None and "sooner" in item.kinds),
    ]
    notes = [note for note in notes if note]
    notes += [_hidden(item, scale) for item in plan.relaxations if item.best is not None]
    return [table_section("choices", "Choices", columns, rows, notes)]


def _decisions(plan: Plan) -> list[str]:
    """Each choice in brief; where two would read alike, with their numbers of zones, or else their regions."""
    texts = [_plan_in_brief(plan) if item.best is None else in_brief(item.best) for item in plan.choices]
    if plan.kind == "fleet":
        return texts
    whole = [
        _plan_in_brief(plan, whole=True) if item.best is None else in_brief(item.best, whole=True)
        for item in plan.choices
    ]
    return [
        text
        if texts.count(text) == 1
        else longer
        if whole.count(longer) == 1
        else _with_regions(plan, item, longer)
        for text, longer, item in zip(texts, whole, plan.choices, strict=True)
    ]


def _with_regions(plan: Plan, item: Choice, longer: str) -> str:
    """A choice in brief, `longer`, with all its regions in the order of use in place of the first."""
    best, first = item.best, plan.lines[0]
    if best is None:
        return longer.removesuffix(place(first.provider, first.region, "")) + regions_words(plan.lines)
    regions = places_in_turn((best.provider, part.region) for part in best.parts)
    return longer.removesuffix(place(best.provider, best.region, "")) + regions


def _ends(plan: Plan, scale: Scale) -> list[str]:
    """The end of each choice as well as it is known; where plans are chosen by it, as well as tells them apart."""
    out = []
    for item in plan.choices:
        hours = plan.hours if item.best is None else item.best.hours
        out.append(scale.moment(item.finish_expected, hours))
    for half_width in (HOUR_FROM, 0.0):
        if plan.objective != "time" or len(set(out)) == len(out):
            break
        out = [
            moment_known(item.finish_expected, half_width, scale.start.year) if out.count(text) > 1 else text
            for text, item in zip(out, plan.choices, strict=True)
        ]
    return out


def _in_time(plan: Plan, item: Choice) -> Value:
    """Chance of meeting the deadline; of a plan of which only a bound is known, as text that says so."""
    return chance_or_bound(item.p_meet_deadline, is_bound=item.best is None and bounds_chance(plan))


def _asked_at_once(plan: Plan) -> list[str]:
    """What the plan itself rests on where it takes more of one offer, had by asking, than was ever recorded."""
    on_request = [line for line in plan.lines if line.purchase_option in ("on_demand", "spot")]
    most = max(on_request, key=lambda line: line.nodes * line.accelerators_per_node, default=None)
    if most is None:
        return []
    count = most.nodes * most.accelerators_per_node
    if count <= RECORDED_AT_ONCE:
        return []
    word = _KINDS[plan.choices[0].kinds[0]]
    machines, records = f"{count:,.0f} {most.accelerator}", f"public records end at {RECORDED_AT_ONCE}"
    if plan.kind == "fleet":
        return [f"{word}: its end assumes {machines} at once in one region; {records}"]
    return [f"{word}: {machines} are needed at once; {records}"]


def _fewer_at_once(plan: Plan, scale: Scale) -> str:
    """What costs nearly the same with no more accelerators than were recorded, where the plan takes more."""
    if plan.objective != "cost" or plan.kind == "fleet" or not _asked_at_once(plan):
        return ""
    alike = [
        best
        for best in plan.alternatives
        if best.accelerators <= RECORDED_AT_ONCE and best.cost_usd <= float(plan.total_usd) * (1.0 + AS_CHEAP)
    ]
    best = min(alike, key=lambda one: one.cost_usd, default=None)
    if best is None:
        return ""
    more, later = scale.usd(best.cost_usd - plan.total_usd), best.hours - plan.hours
    ends = f", ends {whole_hours(later)} later" if later >= WAIT_HOURS else ""
    return f"fewer at once: {in_brief(best)}: {best.accelerators:,.0f} accelerators, for {more} more{ends}"


def _at_once(plan: Plan, item: Choice) -> str:
    planned = max(line.nodes * line.accelerators_per_node for line in plan.lines)
    return "" if item.best is None else assumed_at_once("sooner", item.best, planned)


def assumed_at_once(name: str, best: Summary, own: float) -> str:
    """What a sooner end rests on, where that is many times more accelerators than `own`; nothing elsewhere."""
    is_on_request = all(part.purchase_option in ("on_demand", "spot") for part in best.parts)
    if not is_on_request or best.accelerators <= RECORDED_AT_ONCE or best.accelerators < own * MANY_TIMES:
        return ""
    more = f"{best.accelerators:,.0f} {best.accelerator} at once"
    return f"{name}: {more} are assumed available; public records end at {RECORDED_AT_ONCE}"


def _emitted(plan: Plan, item: Choice) -> tuple[Value, ...]:
    """Emissions of a choice, to two digits: grids are known no better."""
    kg = (
        item.best.operational_kgco2e
        if item.best is not None
        else plan.carbon and plan.carbon.operational_kgco2e
    )
    return ("unknown" if kg is None else float(f"{kg:.2g}"),)


def _alike_for_less(plan: Plan, scale: Scale) -> str:
    """The cheapest choice that emits as much as the plan in the digits that are known; "" where none costs less."""
    if plan.objective != "carbon" or not plan.choices:
        return ""
    kg = _emitted(plan, plan.choices[0])
    alike = [
        (item.best.cost_usd, item)
        for item in plan.choices
        if item.best is not None and _emitted(plan, item) == kg
    ]
    cost, item = min(alike, key=lambda one: one[0], default=(plan.total_usd, None))
    if item is None or scale.known(cost) >= scale.known(plan.total_usd):
        return ""
    spared = scale.usd(plan.total_usd - cost, plan.total_usd)
    return f"{_KINDS[item.kinds[0]]}: emits as much in the digits that are known, for {spared} less"


def _hours_for_little(plan: Plan, scale: Scale) -> str:
    """The choice that spares most of a wait for next to nothing; "" where none does, or the plan waits for little."""
    wait = plan.starts_in_hours or 0.0
    if plan.objective != "cost" or not names_wait(wait, plan.hours):
        return ""
    others = [(item, item.best) for item in plan.choices if item.best is not None]
    found = [
        (float(best.cost_usd - plan.total_usd) / spared, spared, item)
        for item, best in others
        if (spared := plan.hours - best.hours) >= wait / 2.0 and best.cost_usd >= plan.total_usd
    ]  # what costs less is no plan: it breaks a limit
    usd_per_hour, spared, chosen = min(found, key=lambda one: one[0], default=(math.inf, 0.0, None))
    if chosen is None or chosen.best is None or usd_per_hour > _LITTLE_USD_PER_HOUR:
        return ""
    more = scale.usd(chosen.best.cost_usd - plan.total_usd)
    return f"{_kinds(chosen, first=False).strip()}: spares {whole_hours(spared)} for {more} more"


def _as_cheap(plan: Plan, scale: Scale) -> str:
    """The soonest of the decisions that cost nearly the same, where it spares much of the time and no choice does."""
    listed = [item.best for item in plan.choices if item.best is not None]
    spares = max(plan.hours * _MUCH_SOONER, WAIT_HOURS)
    alike = [
        best
        for best in (*listed, *plan.alternatives)
        if best.cost_usd <= float(plan.total_usd) * (1.0 + AS_CHEAP)
        and best.hours <= plan.hours - spares
        and in_brief(best) != _plan_in_brief(plan)  # how many zones a cluster may use is a detail
    ]
    best = min(alike, key=lambda one: one.hours, default=None)
    if plan.objective != "cost" or best is None or best in listed:
        return ""
    more = scale.usd(best.cost_usd - plan.total_usd)
    return f"nearly as cheap: {in_brief(best)}: ends {whole_hours(plan.hours - best.hours)} sooner for {more} more"


def _as_soon(plan: Plan, scale: Scale) -> str:
    """The cheapest of the decisions that end nearly as soon, where time is asked for and it spares much of the cost."""
    if plan.objective != "time":
        return ""
    listed = [
        (item.best, _kinds(item, first=False).strip())
        for item in plan.choices
        if item.best is not None and "limits_aside" not in item.kinds
    ]
    others = [(best, f"nearly as soon: {in_brief(best)}") for best in plan.alternatives]
    alike = [
        (best, words)
        for best, words in (*listed, *others)
        if plan.hours <= best.hours <= plan.hours * (1.0 + _AS_SOON)
        and best.cost_usd <= float(plan.total_usd) * (1.0 - _MUCH_CHEAPER)
    ]
    best, words = min(alike, key=lambda one: one[0].cost_usd, default=(None, ""))
    if best is None:
        return ""
    later = best.hours - plan.hours
    said = f"{max(round(later * 60.0), 1)} min" if later < 1.0 else whole_hours(later)
    return f"{words}: ends {said} later for {scale.usd(plan.total_usd - best.cost_usd)} less"


def names_wait(wait_hours: float, hours: float) -> bool:
    """Whether a wait for machines is named on the screen: a long one, and a shorter one that is most of the time."""
    return wait_hours >= _LONG_WAIT_HOURS or (wait_hours >= WAIT_HOURS and wait_hours >= hours * _MOST_OF_IT)


def whole_hours(value: float) -> str:
    """Hours that nobody knows to the minute: `8 h`, `110 h`."""
    return f"{float(f'{round(value):.2g}'):,g} h"


def _kinds(item: Choice, *, first: bool) -> str:
    names = [_KINDS.get(kind, kind) for kind in item.kinds]
    return ("> " if first else "  ") + ", ".join(names[: _MOST_KINDS + first])


def _plan_in_brief(plan: Plan, *, whole: bool = False) -> str:
    first, launch, lines = plan.lines[0], plan.launch, machines_of(plan)
    nodes = sum(line.nodes for line in lines)
    if plan.side_by_side:
        ways = " + ".join(dict.fromkeys(option(line.purchase_option, line.option_variant) for line in lines))
        if len(lines) == 1:
            return _named(nodes, first.instance_type, ways, first.provider, first.region)
        return f"{nodes:,} machines of {len(lines)} offers, {ways}"
    bought = " + ".join(f"{line.nodes} {line.purchase_option}" for line in plan.lines)
    if len(plan.lines) == 1:
        bought = option(first.purchase_option, first.option_variant)
    elif launch is not None and launch.strategy in ("spot", "spot_with_fallback"):
        options = [line.purchase_option for line in plan.lines]
        nodes, bought = first.nodes, strategy_words(plan) if whole else _in_turn(options)
    return _named(nodes, first.instance_type, bought, first.provider, first.region)


def in_brief(item: Summary, *, whole: bool = False) -> str:
    """A candidate in the room of a table cell: cluster, way to buy (`whole`: with the number of zones), place."""
    bought = option(item.purchase_option, item.option_variant)
    if not whole and len(item.parts) > 1 and sum(part.nodes for part in item.parts) != item.nodes:
        bought = _in_turn([part.purchase_option for part in item.parts])
    return _named(item.nodes, item.instance_type, bought, item.provider, item.region)


def _in_turn(options: Sequence[str]) -> str:
    """How one offer after another is bought; in how many zones is a detail."""
    return ", else ".join(dict.fromkeys(options))


def _named(nodes: int, instance_type: str, bought: str, provider: str, region: str) -> str:
    return f"{cluster(nodes, instance_type)}, {bought}, {place(provider, region, '')}"


def _hidden(item: Relaxation, scale: Scale) -> str:
    assert item.best is not None
    for one in item.changes:
        if one.constraint == "confidence" and one.enough is not None and one.limit is not None:
            offered = f"{in_brief(item.best)}: {scale.usd(item.best.cost_usd)}"
            met, asked = f"{100 * one.enough:.3g} %", f"{100 * one.limit:g} %"
            return f"less sure: {offered}, in time with {met}, not {asked} (deadline_confidence)"
    if item.constraint == "deadline":
        offered = f"{in_brief(item.best)}: {scale.usd(item.best.cost_usd)}"
        less = -float(item.best.delta_cost_usd) / float(item.best.cost_usd - item.best.delta_cost_usd)
        needed, now = (text.replace(".0 h", " h") for text in (enough(item), item.current))
        times = f"by a deadline of {needed} instead of {now}: planner frontier FILE"
        return f"later: {offered}, {whole_percent(less)} less, {times}"
    words = _UNSEEN.get(item.constraint, f" ({item.constraint} {{0}} -> {{1}})")
    change = words.format(item.current, item.needed.removesuffix(" (needs a port)"))
    return f"hidden: {in_brief(item.best)}: {scale.usd(item.best.cost_usd)}{change}"


def rungs(plan: Plan) -> list[Section]:
    """Return every rung of a task's ladder of assumptions, by its `task.effort`."""
    if not plan.sensitivity:
        return []
    columns = (
        Column("rung", "if effort is", "text"), Column("plan", "", "text"), Column("cost_usd", "cost", "usd_known"),
        Column("finish_expected", "done", "text"),
    )  # fmt: skip
    scale = Scale.of(plan)
    rows: list[tuple[Value, ...]] = []
    for item in plan.sensitivity:
        effort = f"  {item.name.rpartition('/')[2]}"
        if item.best is None:
            rows.append((effort, "nothing fits", "", ""))
            continue
        rows.append((effort, in_brief(item.best), *_cost_and_end(plan, item.best, scale)))
    return [table_section("rungs", "By effort", columns, rows)]


def _cost_and_end(plan: Plan, best: Summary, scale: Scale) -> tuple[Decimal, str]:
    ends = datetime.fromisoformat(plan.start) + timedelta(hours=min(best.hours, 1e6))
    return scale.known(best.cost_usd), scale.moment(ends.isoformat(), best.hours)


def changes(plan: Plan) -> list[Section]:
    """Return, where nothing fits, what would make a plan possible: the smallest change of each limit."""
    if plan.status != "infeasible" or not plan.relaxations:
        return []
    title = "each is enough" if len(plan.relaxations) > 1 else "enough"
    columns = (
        Column("change", title, "text"), Column("plan", "", "text"), Column("cost_usd", "cost", "usd_known"),
        Column("finish_expected", "done", "text"),
    )  # fmt: skip
    rows = [_change(plan, item) for item in plan.relaxations[:_MOST_CHANGES]]
    return [table_section("changes", "What would be enough", columns, rows, _larger(plan))]


def _larger(plan: Plan) -> list[str]:
    """A word on clusters that would be quicker, where they are left out for what asking brings."""
    if not any(item.constraint == "deadline" for item in plan.relaxations):
        return []
    counts = [item.removed for item in plan.filters if item.name == "obtainable"]
    return [
        f"  {count:,} larger clusters are excluded: more accelerators than are assumed available; state what you can"
        " get (constraints.obtainable, constraints.waiting)"
        for count in counts
        if count
    ]


def _change(plan: Plan, item: Relaxation) -> Sequence[Value]:
    longer = "" if item.times is None else f" ({item.times:,.1f} times as long)"
    text = f"  {change_words(item)}{longer}"
    if item.best is None:
        return (text, item.note, "", "")
    cost, start = item.best.cost_usd, datetime.fromisoformat(plan.start)
    places = min(known_places(float(cost), float(cost) * _THREE_DIGITS), 2)
    ends = (start + timedelta(hours=min(item.best.hours, 1e6))).isoformat()
    return (
        text,
        in_brief(item.best),
        rounded(cost, places),
        moment_known(ends, item.best.hours / 10.0, start.year),
    )
