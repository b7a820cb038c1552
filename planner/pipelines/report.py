"""A pipeline's answer as a report."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.pipelines.screen import known_total, pipeline_screen, set_aside_notes
from planner.render import claims, numbers
from planner.render.model import Answer, Chart, Column, Section, Unit, Value, facts, table_section, versioned
from planner.render.precision import dollars_enough, dollars_stated
from planner.render.screen import on_screen

if TYPE_CHECKING:
    from collections.abc import Collection

    from planner.pipelines.answer import PipelineAnswer, Stage, Transfer

LEAST_TIME_GAP = 2e-3  # the least time is called the smallest change when its bound is this near
_COLUMNS = (
    "row", "task", "reads_from", "provider", "region", "zone", "instance_type", "purchase_option", "option_variant",
    "nodes", "start_hours", "end_hours", "expected_hours", "size_gb", "cost_usd", "critical", "waits_for",
    "price_as_of", "basis",
)  # fmt: skip


def pipeline_report(answer: PipelineAnswer, *, details: Collection[str] = ()) -> Answer:
    """Build the answer in the shape that every format is made of.

    Args:
        answer: the answer.
        details: keys of sections to show in place of the screen, or `all`.
    """
    stages = [_stage_values(stage) for stage in answer.stages]
    transfers = [_transfer_values(transfer) for transfer in answer.transfers]
    result = answer.result
    low, high = (None, None) if answer.between_usd is None else answer.between_usd
    values: dict[str, Any] = {
        "pipeline": answer.name, "status": _status(answer),
        "sha256": answer.sha256, "created_at": answer.created_at, "catalog": [vars(one) for one in answer.sources],
        "start": answer.start.isoformat(), "currency": "USD",
        "total_usd": answer.total_usd, "cost_p10_usd": low, "cost_p90_usd": high,
        "deadline_confidence": answer.confidence, "end_hours": answer.end_hours,
        "deadline_hours": answer.deadline_hours, "budget_usd": answer.budget_usd, "least_hours": answer.least_hours,
        "least_hours_bound": answer.least_hours_bound,
        "over_budget_usd": answer.over_budget_usd, "tasks_without_candidates": list(answer.empty_tasks),
        "data_set_aside": list(answer.set_aside),
        "tasks": stages, "transfers": transfers,
        "proof": {
            "method": result.method, "status": result.status.value, "bound_usd": result.bound_usd,
            "gap_asked_ratio": answer.gap_asked, "gap_ratio": round(result.gap, 9),
            "seconds": result.seconds, "dropped": dict(result.dropped),
            "candidates": answer.compared, "durations": answer.durations, "about": _searched(answer),
        },
        **({} if answer.robust is None else {"risk": answer.robust.values()}),
    }  # fmt: skip
    rows = [{"row": "task", **row, "waits_for": "; ".join(row["waits_for"])} for row in stages]
    rows += [
        {"row": "transfer", **row, "task": row["target"], "reads_from": row["source"]} for row in transfers
    ]
    title, helps = _said(answer)
    whole = Answer(
        f"Pipeline {answer.name}", title, helps, _sections(answer), versioned(values), _COLUMNS, rows,
        success=answer.feasible,
    )  # fmt: skip
    return on_screen(
        whole, pipeline_screen(answer, _set_of(answer), title.partition(": ")[2], helps), details
    )


def _status(answer: PipelineAnswer) -> str:
    if answer.feasible:
        return "planned"
    return "no_plan_in_time" if answer.undecided else "infeasible"


def _stage_values(stage: Stage) -> dict[str, Any]:
    way = stage.way
    own = {
        "task": way.task,
        "start_hours": stage.start_hours,
        "end_hours": stage.end_hours,
        "critical": stage.critical,
        "waits_for": list(stage.waits_for),
        "own_from_hours": stage.own_from_hours,
    }
    names = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant", "nodes",
             "expected_hours", "cost_usd", "price_as_of")  # fmt: skip
    bought = way.bought
    parts = [] if bought is None else [part.to_dict() for part in bought.parts]
    own |= {"in_turn": bought is not None and bought.in_turn, "parts": parts}
    return own | {name: getattr(way, name) for name in names}


def _transfer_values(transfer: Transfer) -> dict[str, Any]:
    names = ("source", "target", "size_gb", "cost_usd", "hours", "basis", "price_as_of")
    return {name: getattr(transfer, name) for name in names}


def _sections(answer: PipelineAnswer) -> tuple[Section, ...]:
    return (*_warnings(answer), *_tasks(answer), *_transfers(answer), _proof(answer))


def _said(answer: PipelineAnswer) -> tuple[str, tuple[str, ...]]:
    """The verdict and what follows it."""
    if not answer.stages:
        return f"No plan for {answer.name}: {_reason(answer)}", _advice(answer)
    end = answer.start + timedelta(hours=answer.end_hours)
    title = (
        f"{answer.name}: {known_total(answer)}, done in {numbers.hours(answer.end_hours)} h "
        f"({end:%Y-%m-%d %H:%M} UTC)"
    )
    return title, _advice(answer)


def _reason(answer: PipelineAnswer) -> str:
    if answer.empty_tasks:
        return f"no candidate fits {', '.join(answer.empty_tasks)}"
    if answer.result.status.value == "infeasible":
        quotas = " and the quotas that tasks share" if answer.result.conflict else ""
        return f"no choice {_set_of(answer)} meets the deadline{quotas}"
    return answer.result.message or "none was found in time"


def _advice(answer: PipelineAnswer) -> tuple[str, ...]:
    if answer.over_budget_usd is not None and answer.total_usd is not None:
        if answer.undecided:
            longer = "A longer --time-limit may find a plan within the budget, or prove that there is none"
            return (f"{longer}; the plan shown is {numbers.usd(answer.over_budget_usd)} over",)
        change = f"budget {dollars_stated(answer.budget_usd or 0)} -> {dollars_enough(answer.total_usd)}"
        text = f"Smallest change found ({_set_of(answer)}): {change}"
        return (f"{text}; the plan shown is {numbers.usd(answer.over_budget_usd)} over",)
    if answer.least_hours is not None and answer.least_hours_bound is not None:
        now, least = numbers.hours(answer.deadline_hours), numbers.hours_enough(answer.least_hours)
        if answer.least_hours <= answer.least_hours_bound * (1 + LEAST_TIME_GAP):
            return (f"Smallest change ({_set_of(answer)}): deadline {now} h -> {least} h",)
        bound = numbers.hours(answer.least_hours_bound)
        text = f"A deadline of {least} h can be met instead of {now} h"
        return (f"{text}; none below {bound} h can by any {_set_of(answer)}",)
    if answer.result.conflict:
        return (f"Raise the quota or the deadline: {answer.result.conflict}",)
    if answer.undecided:
        return ("A longer --time-limit may find a plan, or prove that there is none",)
    if answer.empty_tasks:
        return (
            "`planner optimize` on the task's workload shows which limits exclude the candidates; capacity that "
            "is available less often than the workload's deadline_confidence is not a candidate here",
        )
    return ()


def _warnings(answer: PipelineAnswer) -> list[Section]:
    derived = [t for t in answer.transfers if t.basis == "derived"]
    text = tuple(
        f"{t.source} -> {t.target}: transfer price unknown, the highest known internet price is assumed"
        for t in derived
    )
    text += (*set_aside_notes(answer), *answer.notes)
    return [Section("warnings", "Warnings", text, warning=True)] if text else []


def _tasks(answer: PipelineAnswer) -> list[Section]:
    if not answer.stages:
        return []
    rows: list[tuple[Value, ...]] = [
        (
            stage.way.task, stage.start_hours, stage.end_hours, stage.way.cost_usd,
            (stage.way.nodes, stage.way.instance_type), (stage.way.purchase_option, stage.way.option_variant),
            (stage.way.provider, stage.way.region, stage.way.zone), "*" if stage.critical else "",
        )
        for stage in answer.stages
    ]  # fmt: skip
    columns = (
        Column("task", "task", "text"), Column("start_hours", "start h", "hours"),
        Column("end_hours", "end h", "hours"), Column("cost_usd", "cost", "usd"),
        Column("cluster", "cluster", "cluster"), Column("option", "option", "option"),
        Column("place", "place", "place"), Column("critical", "critical", "text"),
    )  # fmt: skip
    series = (
        ("start", tuple(stage.start_hours for stage in answer.stages)),
        ("end", tuple(stage.end_hours for stage in answer.stages)),
    )
    names = tuple(stage.way.task for stage in answer.stages)
    chart = Chart("time_line", "", "spans", names, series, "hours", "When each task runs.", drawn_only=True)
    notes = tuple(
        f"{stage.way.task} waits for {' and '.join(stage.waits_for)} to end: together they would exceed a quota"
        for stage in answer.stages if stage.waits_for
    )  # fmt: skip
    return [table_section("tasks", "Tasks", columns, rows, notes, charts=(chart,))]


def _transfers(answer: PipelineAnswer) -> list[Section]:
    moved = [t for t in answer.transfers if t.basis]
    if not answer.transfers:
        return []
    title, stay = "Data between tasks", len(answer.transfers) - len(moved)
    notes = (f"{stay} of {len(answer.transfers)} stay within one region: free",) if stay else ()
    if not moved:
        return [Section("transfers", title, notes)]
    columns = (
        Column("transfer", "from -> to", "text"), Column("size_gb", "GB", "number"),
        Column("cost_usd", "cost", "usd"), Column("hours", "hours", "hours"),
        Column("price_as_of", "price of", "date"),
    )  # fmt: skip
    rows = [(f"{t.source} -> {t.target}", t.size_gb, t.cost_usd, t.hours, t.price_as_of) for t in moved]
    return [table_section("transfers", title, columns, rows, notes)]


def _money(value: float) -> Decimal | None:
    return Decimal(repr(round(value, 6))) if math.isfinite(value) else None


def _searched(answer: PipelineAnswer) -> str:
    """What the proof is about."""
    tail = f"; tasks together within {len(answer.shared)} shared quotas" if answer.shared else ""
    return _candidates_searched(answer) + tail


def _candidates_searched(answer: PipelineAnswer) -> str:
    asked = {name: count for name, count in answer.durations.items() if count}
    if not asked:
        return (
            "all candidates given"
            if not _has_workloads(answer)
            else "all that `optimize` searches for each task"
        )
    counts = sorted(set(asked.values()))
    span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    tail = ", each within one region"
    if not answer.transfers:
        return "all that `optimize` searches for each task, which may take all the time there is"
    return (
        f"steady capacity at every duration, spot and sequences of zones at {span} durations per task{tail}"
    )


def _set_of(answer: PipelineAnswer) -> str:
    # of tasks that are workloads; those with candidates of their own have all of them compared
    free = answer.deadline_hours is None and answer.confidence is not None
    needs = f" {claims.NONE_NEEDED}" if free else ""
    return f"of the {sum(answer.compared.values()):,} candidates considered{needs}"


def _risk(answer: PipelineAnswer) -> list[tuple[str, str, Value, Unit, str]]:
    """What is proven of the choice with risk."""
    if answer.robust is None:
        return []
    return [
        ("risk_objective_usd", "with risk", answer.robust.chosen.objective_usd, "usd", answer.robust.proof())
    ]


def _has_workloads(answer: PipelineAnswer) -> bool:
    return any(stage.way.bought is not None for stage in answer.stages)


def _proof(answer: PipelineAnswer) -> Section:
    result, bound, of = answer.result, _money(answer.result.bound_usd), _set_of(answer)
    amount = numbers.usd(bound)
    said = amount if bound is None else claims.by_solver(amount, of)
    compared = ", ".join(f"{name} {count:,}" for name, count in answer.compared.items())
    dropped = ", ".join(f"{name} {count:,}" for name, count in result.dropped.items()) or "none"
    times = "planned hours are met with each workload's deadline_confidence, so a chain of tasks is cautious"
    return facts("proof", "Proof", [
        ("method", "method", result.method, "text", result.method),
        ("status", "status", result.status.value, "text", claims.state(result.status.value, of, result.gap)),
        ("searched", "of", _searched(answer), "text", _searched(answer)),
        ("bound_usd", "bound", bound, "usd", said),
        ("gap_ratio", "gap", result.gap, "ratio", numbers.percent(result.gap, 3)),
        *_risk(answer),
        ("candidates", "candidates", sum(answer.compared.values()), "count", compared),
        ("dropped", "dropped exactly", sum(result.dropped.values()), "count", dropped),
        ("seconds", "solving", result.seconds, "seconds", f"{result.seconds:.2f} s"),
        ("times", "times", times, "text", times),
    ], detail=True)  # fmt: skip
