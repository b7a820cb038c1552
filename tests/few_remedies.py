"""What stands beside an answer, worked out for some seeds of a search alone.

An enumeration says whether there is a plan and what it costs. It compares nothing of what the planner says beside
that: what would make a question answerable, what else could be bought, what a baseline costs, how far cost and end
may lie off, and why a fall-back is taken. On jobs and fleets that is a tenth to a third of a seed's time; so it is
said for one seed in five, where it still must not fail. Its own tests: `tests/planner/job/test_other_limits.py`,
`test_later_deadline.py` and `test_spine_laws.py`, `tests/planner/fleet/test_limits.py`, `test_fallback.py` and
`test_parts.py`, `tests/planner/schedules/test_schedule.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from importlib import import_module
from typing import Any, TypeVar
from unittest import mock

from planner.fleet.spread import Spread
from planner.job.answer import infeasible_plan
from planner.job.assemble import _NOTHING_BESIDE
from planner.plan.model import Savings

EVERY = 5
T = TypeVar("T")

# module and function: what it returns in place of what is left out, given what it was asked
BESIDE: dict[tuple[str, str], Callable[..., Any]] = {
    ("planner.job.answer", "_explain_empty"): lambda search, _begin: (
        infeasible_plan(search, (), 0.0),
        search,
    ),
    ("planner.job.assemble", "_beside"): lambda *_asked: _NOTHING_BESIDE,
    ("planner.job.assemble", "plan_warnings"): lambda *_asked, **_named: [],
    ("planner.candidates.plan_parts.infeasible", "find_relaxations"): lambda _search: (),
    ("planner.candidates.plan_parts.infeasible", "plan_warnings"): lambda *_asked: [],
    ("planner.fleet.answer", "_reasons"): lambda *_asked: [],
    ("planner.fleet.answer", "with_fewer_at_once"): lambda plan, *_asked: plan,
    ("planner.fleet.plan", "plan_warnings"): lambda *_asked: [],
    ("planner.workloads.fleet_memory", "with_memory_options"): lambda plan, *_asked: plan,
    ("planner.schedules.relaxation", "_least"): lambda _helps, _most: None,
    ("planner.fleet.plan", "spread_of"): lambda _search, mix, usd: Spread(mix.period, mix.period, usd, usd),
    ("planner.fleet.parts_plan", "spread_of"): lambda _search, mix, usd: Spread(
        mix.period, mix.period, usd, usd
    ),
    ("planner.fleet.fallback_plan", "reasons"): lambda *_asked: (),
    ("planner.fleet.fallback_launch", "_hours"): lambda _asked, mix, _chances: (mix.period, mix.period),
    ("planner.fleet.fallback_launch", "_usd"): lambda _asked, _mix, usd: (
        Decimal(repr(usd)),
        Decimal(repr(usd)),
    ),
} | {
    (f"planner.fleet.{module}", name): found
    for module in ("plan", "fallback_plan", "parts_plan")
    for name, found in {
        "savings_of": lambda *_asked: (Savings(None, None, None, ""), ()),
        "storage_of": lambda *_asked: (),
    }.items()
}


class FewRemedies:
    """Leaves what stands beside an answer out while `asked` is False."""

    def __init__(self) -> None:
        """Ask for all."""
        self.asked = True

    def begin(self, seed: int) -> None:
        """Decide for a seed."""
        self.asked = seed % EVERY == 0

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Stand before the planner's own functions."""
        with contextlib.ExitStack() as stack:
            for (module, name), nothing in BESIDE.items():
                place = import_module(module)
                stack.enter_context(
                    mock.patch.object(place, name, self._asked(getattr(place, name), nothing))
                )
            yield

    def _asked(self, function: Callable[..., Any], nothing: Callable[..., Any]) -> Callable[..., Any]:
        def answer(*asked: Any, **named: Any) -> Any:
            return (function if self.asked else nothing)(*asked, **named)

        return answer


def of_each(check: Callable[[int], T], seeds: Iterable[int]) -> list[T]:
    """What a check says of each seed."""
    remedies = FewRemedies()

    def one(seed: int) -> T:
        remedies.begin(seed)
        return check(seed)

    with remedies.in_place():
        return [one(seed) for seed in seeds]
