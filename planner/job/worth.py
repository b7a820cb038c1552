"""What one more unit of each limit is worth, and what the plan would cost without it: the question solved again.

Each answer is the best of the candidates that `planner optimize` compares for the file with that one limit changed.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.candidates.choose import best_where
from planner.candidates.constraints.registry import CONSTRAINTS
from planner.candidates.engine import Engine
from planner.candidates.plan_parts.summary import summarize
from planner.candidates.wanted import Scope, Wanted
from planner.inputs.plain import section_of
from planner.market.quota import draws_on
from planner.records import record
from planner.render.precision import dollars_stated

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime

    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Constraints
    from planner.market.model import Market
    from planner.plan.brief import Summary

_BEST = Wanted(Scope.BEST)
_MORE_USD, _MORE_HOURS, _CONFIDENCE_STEP = Decimal(100), 1, 0.05
# Limits that move by a unit, and what the file states of capacity; all others are taken away as a whole.
_BY_UNIT = frozenset(
    ("deadline", "deadline_confidence", "budget_usd", "max_nodes", "max_accelerators", "quota", "waiting", "waited",
     "waiting_records", "obtainable")
)  # fmt: skip
_PREFIX = "constraints."


@record(frozen=True)
class Worth:
    """The best plan with one limit changed.

    Attributes:
        limit: its key under `constraints`; setting: what the file says.
        change: what is changed, in words; relaxes: whether that can only make the plan better.
        best: the plan in brief, with its differences to the plan as the file is; None: none keeps all limits.
    """

    limit: str
    setting: str
    change: str
    relaxes: bool
    best: Summary | None


@record(frozen=True)
class _Change:
    limit: str
    setting: str
    change: str
    fields: dict[str, Any]
    more_hours: int = 0
    relaxes: bool = True


def worth_of_limits(search: CandidateSearch, winner: int) -> tuple[Worth, ...]:
    """Solve again with each limit of the file changed: by one unit where it has one, else taken away.

    Args:
        search: all candidates.
        winner: the plan's.
    """
    candidates, run = search.candidates, search.context
    engine = Engine(run)
    out = []
    for one in _changes(run.asked.workload.constraints, run.dates.deadline, run.market):
        best = _best(search, one, engine)
        beside = None if best is None else against(best, candidates, winner)
        out.append(Worth(one.limit, one.setting, one.change, one.relaxes, beside))
    return tuple(out)


def against(best: Summary, candidates: Candidates, winner: int) -> Summary:
    """A best plan with its differences to candidate `winner`."""
    plan = summarize(candidates, winner, None)
    return replace(best, delta_cost_usd=best.cost_usd - plan.cost_usd, delta_hours=best.hours - plan.hours)


def _best(search: CandidateSearch, change: _Change, unchanged: Engine) -> Summary | None:
    """The best candidate under a change, None where none meets the limits.

    Args:
        search: all candidates.
        change: one limit; without fields it is the deadline, on which the engine does not depend.
        unchanged: the engine of the run as it is.
    """
    context, asked = search.context, search.context.asked
    workload = asked.workload.model_copy(
        update={"constraints": asked.workload.constraints.model_copy(update=change.fields)}
    )
    engine = unchanged
    if change.fields:
        same_sizes = "max_nodes" not in change.fields
        engine = Engine(
            context.with_asked(replace(asked, workload=workload)), admitted_only=True,
            shapes=unchanged.shapes if same_sizes else None, finer=unchanged.finer if same_sizes else None,
        )  # fmt: skip
    deadline = context.dates.deadline
    if deadline is not None:
        deadline += timedelta(hours=change.more_hours)
    candidates = engine.at(deadline, _BEST).candidates
    at = best_where(candidates, candidates.bits == 0, workload.preferences.objective)
    return None if at is None else summarize(candidates, at, None)


def best_of_type(search: CandidateSearch, wanted: str, filters: Collection[str]) -> Summary | None:
    """The best plan on one instance type, were the limits of some filters not in the file.

    Args:
        search: all candidates.
        wanted: the instance type.
        filters: ids of filters.

    Returns:
        The plan in brief, None where other limits or facts, which no file moves, keep all out.
    """
    asked, defaults = search.context.asked, section_of("Constraints")
    fields: dict[str, Any] = {}
    for item in CONSTRAINTS:
        if item.id in filters and item.id != "deadline":
            names = [path.removeprefix(_PREFIX) for path in item.paths]
            values = {name: getattr(defaults, name) for name in names if hasattr(defaults, name)}
            fields |= {name: True if value is False else value for name, value in values.items()}
    fields["instance_types"] = asked.workload.constraints.instance_types.model_copy(
        update={"allow": (wanted,), "deny": ()}
    )
    limits = asked.workload.constraints.model_copy(update=fields)
    workload = asked.workload.model_copy(update={"constraints": limits})
    engine = Engine(search.context.with_asked(replace(asked, workload=workload)), admitted_only=True)
    deadline = None if "deadline" in filters else search.context.dates.deadline
    candidates = engine.at(deadline, _BEST).candidates
    at = best_where(candidates, candidates.bits == 0, workload.preferences.objective)
    return None if at is None else summarize(candidates, at, None)


def _changes(limits: Constraints, deadline: datetime | None, market: Market) -> Iterator[_Change]:
    """What to ask, in the order of reports."""
    if deadline is not None:
        yield from _of_time(limits, deadline)
    if limits.budget_usd is not None:
        said, more = dollars_stated(limits.budget_usd), limits.budget_usd + _MORE_USD
        yield _Change("budget_usd", said, f"{dollars_stated(_MORE_USD)} more", {"budget_usd": more})
    if "max_nodes" in limits.model_fields_set:
        nodes = limits.max_nodes
        yield _Change("max_nodes", str(nodes), "1 node more", {"max_nodes": nodes + 1})
    if limits.max_accelerators is not None:
        most = limits.max_accelerators
        yield _Change("max_accelerators", str(most), "8 more", {"max_accelerators": most + 8})
    yield from _of_quotas(limits, market)
    yield from _of_offers(limits)


def _of_time(limits: Constraints, deadline: datetime) -> Iterator[_Change]:
    moment, sure = deadline.isoformat(timespec="minutes"), limits.deadline_confidence
    yield _Change("deadline", moment, f"{_MORE_HOURS} h more", {}, more_hours=_MORE_HOURS)
    less = round(max(sure - _CONFIDENCE_STEP, 0.5), 6)
    if less < sure:
        yield _Change("deadline_confidence", f"{sure:g}", f"{less:g}", {"deadline_confidence": less})
    more = round(sure + min(_CONFIDENCE_STEP, (1.0 - sure) / 2.0), 6)
    if sure < more < 1.0:
        yield _Change(
            "deadline_confidence", f"{sure:g}", f"{more:g}", {"deadline_confidence": more}, relaxes=False
        )


def _of_quotas(limits: Constraints, market: Market) -> Iterator[_Change]:
    """Room for one more instance in each declared quota: the largest draw of one of the types that count towards it."""
    drawn = draws_on(limits.quota, market.offer_set, market.tariffs)
    for number, (one, (_, units)) in enumerate(zip(limits.quota, drawn, strict=True)):
        step = float(units.max(initial=0.0))
        if step > 0:
            more = one.model_copy(update={"limit": one.limit + step})
            quota = (*limits.quota[:number], more, *limits.quota[number + 1 :])
            said = f"{one.provider}/{one.region} {one.quota}: {one.limit:g}"
            yield _Change("quota", said, f"{step:g} more (one instance)", {"quota": quota})


def _of_offers(limits: Constraints) -> Iterator[_Change]:
    """Limits of the file that only keep offers out; what it admits (`include_arm64`, `allow_derived`) is none."""
    defaults = section_of("Constraints")
    paths = (path for item in CONSTRAINTS for path in item.paths if path.startswith(_PREFIX))
    for name in dict.fromkeys(path.removeprefix(_PREFIX) for path in paths):
        value = getattr(limits, name)
        if name in limits.model_fields_set - _BY_UNIT and not isinstance(value, bool):
            yield _Change(name, _said(value), "without it", {name: getattr(defaults, name)})


def _said(value: Any) -> str:
    """A limit as a reader writes it."""
    if isinstance(value, tuple):
        return ", ".join(str(one) for one in value)
    if hasattr(value, "model_dump"):
        kept = {key: one for key, one in value.model_dump().items() if one not in (None, ())}
        return "; ".join(
            f"{key} {_said(one) if isinstance(one, tuple) else one}" for key, one in kept.items()
        )
    return str(value)
