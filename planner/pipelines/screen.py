"""The screen of a pipeline: what each task runs on, what all of it costs, when it is done, and on what that rests."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from planner.plan.words import beside_steps, enable_first, sentence
from planner.render import claims, numbers
from planner.render.model import Column, Section, Value, table_section
from planner.render.precision import dollars, dollars_stated, known_places, moment_known, rounded
from planner.render.screen import Row, Screen, prices_note
from planner.render.words import place, without_zones

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.pipelines.answer import PipelineAnswer

NEXT = ("pipeline FILE -o json --out answer.json", "verify answer.json --workload FILE")
_MOST_TASKS = 10
_WHOLE_FROM = 100  # US dollars
_TIE_HOURS = 1e-6
_SOONER_RATIO = 0.9  # expected ends from here on are not told apart from the planned one


def pipeline_screen(answer: PipelineAnswer, of: str, why: str, helps: Sequence[str]) -> Screen:
    """Return the screen.

    Args:
        answer: the answer.
        of: the candidates that the proof is about.
        why: there is no plan, where there is none.
        helps: what would make one possible.
    """
    asked = f"{answer.name}: {_asked(answer)}"
    changes: list[Row] = [
        (f"change_{at}", "" if at else "instead", text, "text", text) for at, text in enumerate(helps)
    ]
    status, gap = answer.result.status.value, answer.result.gap
    if not answer.stages:
        rows: list[Row] = [("plan", "plan", "none", "text", f"none: {why}"), *changes]
        proof = claims.state(status, of, gap)
        return Screen(asked, rows, None, (), f"{proof[0].upper()}{proof[1:]}.", ("validate FILE",))
    over = answer.over_budget_usd is not None
    none: list[Row] = [("none", "plan", "none", "text", f"none {_found(answer)}")] if over else []
    rows = [
        *none,
        *changes,
        _plan(answer, "then" if over else "plan"),
        _cost(answer),
        *_risk(answer),
        _done(answer),
    ]
    best = claims.best_plan("Cheapest", status, gap, "plan" if over else "feasible plan")
    of = f"{of}, whatever the budget" if over else of
    if answer.robust is not None:
        proof = answer.robust.claim(answer.gap_asked)
        return Screen(asked, rows, _tasks(answer), _notes(answer), proof, NEXT)
    method = "" if answer.result.method == "MILP" else f" by {answer.result.method}"
    proof = f"{best} {of}, proven{method} to {numbers.percent(gap, 2)}. Without taxes and support plans. "
    proof = f"{proof}{sentence(beside_steps(answer.beside.ratio, answer.beside.whose('tasks')))}".rstrip()
    return Screen(asked, rows, _tasks(answer), _notes(answer), proof, NEXT)


def _asked(answer: PipelineAnswer) -> str:
    tasks = len(answer.stages) or len(answer.compared)
    parts = ["1 task" if tasks == 1 else f"{tasks:,} tasks"]
    if answer.deadline_hours is None:
        parts.append("no deadline")
    else:
        end = (answer.start + timedelta(hours=answer.deadline_hours)).isoformat()
        parts.append(f"by {moment_known(end, 0.0, answer.start.year)}")
    if answer.budget_usd is not None:
        parts.append(f"budget {dollars_stated(answer.budget_usd)}")
    return ", ".join(parts)


def _found(answer: PipelineAnswer) -> str:
    """How the plan shown was found, where it costs more than the budget."""
    if answer.undecided:
        return "found within the budget in time; this is not proven impossible"
    best = "plan" if answer.result.status.value == "optimal" else "plan found"
    return f"within the budget: the cheapest {best} costs more"


def _plan(answer: PipelineAnswer, label: str) -> Row:
    regions = dict.fromkeys(place(stage.way.provider, stage.way.region, "") for stage in answer.stages)
    moved = sum(1 for transfer in answer.transfers if transfer.basis)
    count = "1 task" if len(answer.stages) == 1 else f"{len(answer.stages):,} tasks"
    text = f"{count} in {', '.join(list(regions)[:4])}"
    text += f" and {len(regions) - 4} more regions" if len(regions) > 4 else ""
    edges = (
        f"{moved} of {len(answer.transfers)} outputs change region"
        if moved
        else "all data stay in their region"
    )
    return ("plan", label, text, "text", f"{text}; {edges}" if answer.transfers else text)


def _half_usd(answer: PipelineAnswer) -> float:
    between = answer.between_usd
    return 0.0 if between is None else float(between[1] - between[0]) / 2.0


def _places(usd: Decimal, total: Decimal, half: float) -> int:
    """Decimals of a part of the total, whose own interval is as wide for its size."""
    known = half * float(usd / total) if total else 0.0
    return min(known_places(float(usd), known), 0 if usd >= _WHOLE_FROM else 2)


def known_total(answer: PipelineAnswer) -> str:
    """The cost of a plan in the digits that its interval leaves."""
    assert answer.total_usd is not None
    return dollars(answer.total_usd, _places(answer.total_usd, answer.total_usd, _half_usd(answer)))


def _cost(answer: PipelineAnswer) -> Row:
    total, half = answer.total_usd, _half_usd(answer)
    assert total is not None
    places = _places(total, total, half)
    parts = [f"{known_total(answer)} expected"]
    if answer.between_usd is not None:
        low, high = answer.between_usd
        parts.append(
            f"80 %: {dollars(low, places)} to {dollars(high, places)}, if the errors of all tasks coincide"
        )
        sized = sum(1 for stage in answer.stages if stage.way.source is None)
        parts += [f"tasks sized elsewhere ({sized:,}) are assumed to be certain"] if sized else []
    else:
        parts.append("no interval: all tasks were sized elsewhere")
    moving = sum((transfer.cost_usd for transfer in answer.transfers), Decimal(0))
    if moving:
        parts.append(f"{dollars(moving, min(known_places(float(moving), 0.0), 2))} of it for transfers")
    return ("cost_usd", "cost", total, "usd", "; ".join(parts))


def _risk(answer: PipelineAnswer) -> list[Row]:
    """What the worst outcomes cost, where the choice counts them."""
    if answer.robust is None:
        return []
    return [
        (
            "risk",
            "at worst",
            answer.robust.chosen.worst_usd,
            "usd",
            answer.robust.sentence("task", answer.gap_asked),
        )
    ]


def expected_end_hours(answer: PipelineAnswer) -> float:
    """When the last task ends, if each takes its expected hours and starts when what it waits for has ended.

    Where tasks share quotas, also when those have ended that end before it in the plan: it then runs at once with no
    other tasks than in the plan, which keeps the quotas.
    """
    ends: dict[str, float] = {}
    for stage in answer.stages:
        task = stage.way.task
        ready = [ends[move.source] + move.hours for move in answer.transfers if move.target == task]
        if answer.shared:
            before = (one for one in answer.stages if one.end_hours <= stage.start_hours + _TIE_HOURS)
            ready += [ends.get(one.way.task, 0.0) for one in before]
        ends[task] = max(ready, default=0.0) + stage.way.expected_hours
    return max(ends.values(), default=math.nan)


def _done(answer: PipelineAnswer) -> Row:
    end = (answer.start + timedelta(hours=answer.end_hours)).isoformat()
    by = (
        "" if answer.confidence is None else "by "
    )  # a task is over before, on average: it is given hours that it keeps
    parts = [
        f"{by}{moment_known(end, 0.0, answer.start.year)}, {numbers.hours(answer.end_hours)} h from the start"
    ]
    if answer.confidence is not None:
        expected = expected_end_hours(answer)
        if expected < _SOONER_RATIO * answer.end_hours:
            parts.append(f"about {expected:,.{int(expected < 10)}f} h if each takes its expected time")
        parts.append(f"each task ends as planned with {numbers.percent(answer.confidence, 0)} or more")
    return ("end", "done", end, "text", "; ".join(parts))


def _tasks(answer: PipelineAnswer) -> Section:
    total, half = answer.total_usd, _half_usd(answer)
    assert total is not None
    every = all(stage.critical for stage in answer.stages)
    rows: list[tuple[Value, ...]] = []
    for stage in answer.stages:
        way = stage.way
        begin, end = (answer.start + timedelta(hours=hours) for hours in (stage.start_hours, stage.end_hours))
        cost = rounded(way.cost_usd, _places(way.cost_usd, total, half if way.source is not None else 0.0))
        name = f"{way.task}*" if stage.critical and not every else way.task
        rows.append((
            name, (way.nodes, way.instance_type), without_zones(way.purchase_option), (way.provider, way.region, ""),
            _short(begin, answer.start), _short(end, answer.start), cost,
        ))  # fmt: skip
    columns = (
        Column("task", "task", "text"), Column("cluster", "machines", "cluster"), Column("bought", "bought", "text"),
        Column("place", "where", "place"), Column("start", "from", "text"), Column("end", "until", "text"),
        Column("cost_usd", "cost", "usd_known"),
    )  # fmt: skip
    notes: tuple[str, ...] = ()
    if any(stage.critical for stage in answer.stages):
        notes = ("a late task delays the end of all" if every else "* delays the end of all if it is late",)
    return table_section("plan", "Plan", columns, rows, notes, shown=_MOST_TASKS)


def _short(moment: datetime, start: datetime) -> str:
    return moment_known(moment.isoformat(), 1.0, start.year)


def _notes(answer: PipelineAnswer) -> tuple[str, ...]:
    dates = [stage.way.price_as_of for stage in answer.stages]
    spot = [stage.way.task for stage in answer.stages if stage.way.purchase_option.startswith("spot")]
    derived = sum(1 for transfer in answer.transfers if transfer.basis == "derived")
    waits = [
        f"{stage.way.task} waits for {' and '.join(stage.waits_for)} to end: together they would exceed a quota"
        for stage in answer.stages
        if stage.waits_for
    ]
    today = datetime.fromisoformat(answer.created_at).date() if answer.created_at else answer.start.date()
    return (
        *waits,
        *prices_note(dates, today),
        *([f"spot for {', '.join(spot)}: needs automatic resume and checkpoints"] if spot else ()),
        *(
            text
            for stage in answer.stages
            if stage.way.bought is not None
            for text in stage.way.bought.outlasting(stage.way.task, answer.total_usd or Decimal(0))
        ),
        *(
            [f"{derived} transfer prices are not known: the highest known internet price is assumed"]
            if derived
            else ()
        ),
        *set_aside_notes(answer),
        *answer.notes,
        *enable_first((stage.way.provider, stage.way.region) for stage in answer.stages),
        "quotas that the workloads do not declare are not checked",
    )


def set_aside_notes(answer: PipelineAnswer) -> tuple[str, ...]:
    """That data of tasks is not moved: what they read from others stands for it."""
    if not answer.set_aside:
        return ()
    reads, their = (
        ("it reads", "its workload's") if len(answer.set_aside) == 1 else ("they read", "their workloads'")
    )
    return (
        f"{', '.join(answer.set_aside)}: what {reads} replaces {their} data, which is neither transferred nor stored; "
        "if that is needed too, read it from a task with `candidates` where it is",
    )
