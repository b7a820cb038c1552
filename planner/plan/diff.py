"""What differs between two plans of one workload: choice, cost, end, prices and what they rest on."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from planner.plan.front_scale import Scale, bounds_chance, chance_words, cost_places
from planner.plan.outcome import Outcome, outcome_of
from planner.records import record
from planner.render import units
from planner.render.numbers import hours, moment, number, percent, price, usd, usd_change_known
from planner.render.precision import dollars, figure, known_places, rounded
from planner.render.presentable import Presentable
from planner.render.words import cluster, option, place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planner.plan.model import Plan, PlanLine

_SPEED_KNOWN = 0.1  # half-width of a predicted speed, of the speed: two or three digits are printed
Mark = Literal["~", "+", "-"]


@record(frozen=True)
class Change:
    """One difference. `mark`: `~` changed, `+` only in the new plan, `-` only in the old one.

    `change_usd` is what it adds to the cost, where it is a line of the plan or the cost itself. `brief`: old and new as
    people read them, in the digits that are known; empty where they are `old` and `new`.
    """

    mark: Mark
    what: str
    old: str
    new: str
    change_usd: Decimal | None = None
    brief: tuple[str, str] | tuple[()] = ()

    @property
    def words(self) -> tuple[str, str]:
        """Old and new as people read them."""
        return self.brief or (self.old, self.new)


@record(frozen=True)
class PlanDiff(Presentable):
    """Two plans and their differences; `same_workload`: both are of the same file, byte by byte."""

    REPORT = "planner.plan.diff_report:diff_report"
    __repr__ = Presentable.__repr__

    workload: str
    old: Outcome
    new: Outcome
    changes: tuple[Change, ...]
    same_workload: bool

    @property
    def change_usd(self) -> Decimal | None:
        """New cost less the old one; None where one has no plan."""
        if self.old.total_usd is None or self.new.total_usd is None:
            return None
        return self.new.total_usd - self.old.total_usd

    @property
    def change_ratio(self) -> float | None:
        """The change as a part of the old cost."""
        change, base = self.change_usd, self.old.total_usd
        return None if change is None or not base else float(change / base)

    @property
    def usd_ratio(self) -> float:
        """Half of the interval of the worse known cost over the cost; 0: neither is known."""
        return max(self.old.usd_ratio, self.new.usd_ratio)

    def known(self, usd: Decimal) -> Decimal:
        """A change in cost, in the digits that are known of a cost of its size."""
        return rounded(usd, cost_places(usd, self.usd_ratio))


def diff_plans(old: Plan, new: Plan, old_name: str, new_name: str) -> PlanDiff:
    """Compare two plans.

    Args:
        old: the plan before.
        new: the plan after.
        old_name: of the old one: its file or its day.
        new_name: of the new one.
    """
    changes = (*_figures(old, new), *_lines(old, new), *_grounds(old, new))
    return PlanDiff(
        new.workload, outcome_of(old, old_name), outcome_of(new, new_name), changes,
        old.workload_sha256 == new.workload_sha256,
    )  # fmt: skip


def _figures(old: Plan, new: Plan) -> Iterator[Change]:
    if old.status != new.status:
        yield Change("~", "status", old.status, new.status)
    if not old.lines or not new.lines:
        return
    if old.total_usd != new.total_usd:
        yield Change(
            "~", "expected cost", usd(old.total_usd), usd(new.total_usd), new.total_usd - old.total_usd,
            _known_pair(old, new),
        )  # fmt: skip
    before_end, after_end = (Scale.of(plan).moment(plan.finish_expected or "") for plan in (old, new))
    pairs: dict[str, tuple[str, str, tuple[str, str] | tuple[()]]] = {
        "hours": (hours(old.hours), hours(new.hours), ()),
        "done": (moment(old.finish_expected), moment(new.finish_expected), (before_end, after_end)),
        "deadline": (moment(old.deadline), moment(new.deadline), ()),
        "in time": (_chance(old), _chance(new), (_in_time(old), _in_time(new))),
        "speed": (_speed(old), _speed(new), (_speed_in_brief(old), _speed_in_brief(new))),
        "memory": (_memory(old), _memory(new), ()),
    }
    for label, (before, after, brief) in pairs.items():
        if before != after:
            changed = brief if brief and brief[0] != brief[1] else ()
            yield Change("~", label, before, after, None, changed)


def _known_pair(old: Plan, new: Plan) -> tuple[str, str]:
    """Both costs in the digits known, or in as many as set them apart."""
    scales = Scale.of(old), Scale.of(new)
    pair = scales[0].usd(old.total_usd), scales[1].usd(new.total_usd)
    for places in range(scales[0].places(old.total_usd) + 1, 2):
        if pair[0] != pair[1]:
            break
        pair = dollars(old.total_usd, places), dollars(new.total_usd, places)
    return pair if pair[0] != pair[1] else (usd(old.total_usd), usd(new.total_usd))


def _in_time(plan: Plan) -> str:
    return "" if plan.risk is None else chance_words(plan.risk.p_meet_deadline, is_bound=bounds_chance(plan))


def _chance(plan: Plan) -> str:
    if plan.risk is None:
        return ""
    least = bounds_chance(plan) and plan.risk.p_meet_deadline is not None
    return (">=" if least else "") + percent(plan.risk.p_meet_deadline)


def _speed(plan: Plan) -> str:
    speed = plan.performance
    return "" if speed is None else f"{number(speed.throughput_per_s)} {speed.unit}/s"


def _speed_in_brief(plan: Plan) -> str:
    speed = plan.performance
    if speed is None:
        return ""
    rate = speed.throughput_per_s
    return f"{figure(rate, known_places(rate, rate * _SPEED_KNOWN))} {speed.unit}/s"


def _memory(plan: Plan) -> str:
    speed = plan.performance
    if speed is None or speed.memory_needed_gib is None or speed.memory_available_gib is None:
        return ""
    return f"{speed.memory_needed_gib:.1f} of {speed.memory_available_gib:.1f} GiB"


def _lines(old: Plan, new: Plan) -> Iterator[Change]:
    """Lines by offer: more or fewer machines, hours and prices, and offers that are new or gone."""
    before, after = _by_offer(old), _by_offer(new)
    for key, line in after.items():
        was = before.get(key)
        if was is None:
            yield Change("+", _name(line), "", _terms(line), line.cost_usd, ("", _in_brief(line)))
        elif _terms(was) != _terms(line):
            yield Change(
                "~", _name(line), _terms(was), _terms(line), line.cost_usd - was.cost_usd,
                (_in_brief(was), _in_brief(line)),
            )  # fmt: skip
    for key, line in before.items():
        if key not in after:
            yield Change("-", _name(line), _terms(line), "", -line.cost_usd, (_in_brief(line), ""))


def _by_offer(plan: Plan) -> dict[str, PlanLine]:
    return {line.offer_id: line for line in plan.lines}


def _name(line: PlanLine) -> str:
    bought = option(line.purchase_option, line.option_variant)
    return f"{line.instance_type} {bought}, {place(line.provider, line.region, line.zone)}"


def _terms(line: PlanLine) -> str:
    each = price(line.price_per_hour, line.currency)
    return f"{cluster(line.nodes, line.instance_type)}, {hours(line.billed_hours)} h at {each} = {usd(line.cost_usd)}"


def _in_brief(line: PlanLine) -> str:
    """What is bought, without the type that is its name and the cost, which has a column."""
    return f"{line.nodes:,} x {hours(line.billed_hours)} h at {price(line.price_per_hour, line.currency)}"


def _grounds(old: Plan, new: Plan) -> Iterator[Change]:
    """Assumptions and the dates of prices."""
    yield from _mapped("assumption", _assumed(old), _assumed(new))
    yield from _mapped("prices", _dates(old), _dates(new))


def _mapped(what: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for key in dict.fromkeys((*before, *after)):
        was, now = before.get(key), after.get(key)
        if was != now:
            mark: Mark = "+" if was is None else "-" if now is None else "~"
            yield Change(mark, f"{what} {key}", was or "", now or "")


def _assumed(plan: Plan) -> dict[str, str]:
    return {
        assumption.key: f"{assumption.value} {assumption.unit}".strip() for assumption in plan.assumptions
    }


def _dates(plan: Plan) -> dict[str, str]:
    """Dates of each provider's prices; their hash too, for prices may change within a day."""
    return {source.provider: f"to {source.newest_as_of} ({source.sha256[:8]})" for source in plan.catalog}


def verdict(plan_diff: PlanDiff) -> str:
    """The difference in one sentence."""
    old, new = plan_diff.old, plan_diff.new
    if new.total_usd is None or old.total_usd is None or new.hours is None or old.hours is None:
        if new.status == old.status:
            return f"{plan_diff.workload}: neither {old.name} nor {new.name} has a plan"
        has = "has a plan now" if new.total_usd is not None else "no longer has a plan"
        return f"{plan_diff.workload} {has}" + (f": {new.usd_words}" if new.total_usd is not None else "")
    change = new.total_usd - old.total_usd
    if not plan_diff.changes:
        return f"{plan_diff.workload}: nothing differs, {new.usd_words} in {hours(new.hours)} h"
    ratio = plan_diff.change_ratio
    much = (
        "the same"
        if not change
        else usd_change_known(plan_diff.known(change))
        + ("" if ratio is None else f" ({units.change(ratio, 1)})")
    )
    end = new.hours - old.hours
    when = "as soon" if abs(end) < 0.05 else f"{hours(abs(end))} h {'later' if end > 0 else 'sooner'}"
    choice = "the same choice" if new.choice == old.choice else f"now {new.choice} instead of {old.choice}"
    return f"{plan_diff.workload}: cost {much} to {new.usd_words}, done {when}; {choice}"
