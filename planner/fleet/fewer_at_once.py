"""What costs a fleet nearly the same on no more accelerators than were ever recorded at once.

Nobody knows how many more asking brings. So the question is asked once more with fewer nodes, and a fleet that costs
little more is a note of the plan.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from planner.fleet.second_question import with_note_of
from planner.plan.front_choices import AS_CHEAP, RECORDED_AT_ONCE, WAIT_HOURS, whole_hours
from planner.plan.outcome import choice_words
from planner.render.precision import dollars_known

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.asked.model import Asked
    from planner.asked.options import Options
    from planner.plan.model import Plan, PlanLine

_KNOWN = 0.5  # half-width, relative, of a difference


def with_fewer_at_once(
    plan: Plan, asked: Asked, options: Options, ask: Callable[[Asked, Options], Plan]
) -> Plan:
    """The plan, with a note of a fleet on fewer accelerators that costs nearly the same.

    Args:
        plan: the fleet.
        asked: what was asked.
        options: with which it was planned.
        ask: plans a fleet.
    """
    limits = asked.workload.constraints
    lines = [line for line in plan.lines if line.purchase_option in ("on_demand", "spot")]
    widest = max(lines, key=_accelerators, default=None)
    # whoever states what is to be had knows better
    if widest is None or limits.obtainable or _accelerators(widest) <= RECORDED_AT_ONCE:
        return plan
    nodes = int(RECORDED_AT_ONCE // widest.accelerators_per_node)
    if nodes < (1 if asked.workload.fleet is None else asked.workload.fleet.nodes_per_run):
        return plan
    fewer = limits.model_copy(update={"max_nodes": nodes})
    workload = asked.workload.model_copy(update={"constraints": fewer})
    question = replace(asked, workload=workload), "fewer at once"
    return with_note_of(plan, question, options, AS_CHEAP, ask, lambda other: _note(plan, other, nodes))


def _note(plan: Plan, other: Plan, nodes: int) -> str:
    """What a fleet of at most so many nodes costs and when it ends; empty where it costs much more."""
    more = other.total_usd - plan.total_usd
    if not other.lines or float(more) > AS_CHEAP * float(plan.total_usd):
        return ""
    later = other.hours - plan.hours
    ends = f", ends {whole_hours(later)} later" if later >= WAIT_HOURS else ""
    usd = dollars_known(max(more, Decimal(0)), abs(float(more)) * _KNOWN)  # the plan itself has a gap
    return f"fewer at once: {choice_words(other)}, for {usd} more{ends} (constraints.max_nodes: {nodes})"


def _accelerators(line: PlanLine) -> float:
    return line.nodes * line.accelerators_per_node
