"""A pipeline's answer as a report."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.render import numbers, words
from planner.render.document import Block, Document, Facts, Grid, Notes, without_empty
from planner.render.report import Report

if TYPE_CHECKING:
    from planner.pipelines.answer import PipelineAnswer, Stage, Transfer

LEAST_TIME_GAP = 2e-3  # the least time is called the smallest change when its bound is this near
_COLUMNS = (
    "row", "task", "reads_from", "provider", "region", "zone", "instance_type", "purchase_option", "option_variant",
    "nodes", "start_hours", "end_hours", "expected_hours", "size_gb", "cost_usd", "critical", "price_as_of", "basis",
)  # fmt: skip


def pipeline_report(answer: PipelineAnswer) -> Report:
    """Build the report."""
    stages = [_stage_values(stage) for stage in answer.stages]
    transfers = [_transfer_values(transfer) for transfer in answer.transfers]
    result = answer.result
    values: dict[str, Any] = {
        "pipeline": answer.name, "status": _status(answer),
        "start": answer.start.isoformat(), "currency": "USD",
        "total_usd": answer.total_usd, "end_hours": answer.end_hours,
        "deadline_hours": answer.deadline_hours, "budget_usd": answer.budget_usd, "least_hours": answer.least_hours,
        "least_hours_bound": answer.least_hours_bound,
        "over_budget_usd": answer.over_budget_usd, "tasks_without_candidates": list(answer.empty_tasks),
        "tasks": stages, "transfers": transfers,
        "proof": {
            "method": result.method, "status": result.status.value, "bound_usd": result.bound_usd,
            "gap_ratio": result.gap, "seconds": result.seconds, "dropped": dict(result.dropped),
            "candidates": answer.compared, "durations": answer.durations, "about": _searched(answer),
        },
    }  # fmt: skip
    rows = [{"row": "task", **row} for row in stages]
    rows += [
        {"row": "transfer", **row, "task": row["target"], "reads_from": row["source"]} for row in transfers
    ]
    return Report(_document(answer), values, _COLUMNS, rows)


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


def _document(answer: PipelineAnswer) -> Document:
    blocks: list[Block] = [*_warnings(answer), *_tasks(answer), *_transfers(answer), _proof(answer)]
    if not answer.stages:
        return Document(
            f"No plan for {answer.name}: {_reason(answer)}", _advice(answer), tuple(blocks), False
        )
    end = answer.start + timedelta(hours=answer.end_hours)
    headline = (
        f"{answer.name}: {numbers.usd(answer.total_usd)}, done in {numbers.hours(answer.end_hours)} h "
        f"({end:%Y-%m-%d %H:%M} UTC)"
    )
    return Document(headline, _advice(answer), tuple(blocks), answer.feasible)


def _reason(answer: PipelineAnswer) -> str:
    if answer.empty_tasks:
        return f"no candidate fits {', '.join(answer.empty_tasks)}"
    if answer.result.status.value == "infeasible":
        return "no choice keeps the deadline"
    return answer.result.message or "none was found in time"


def _advice(answer: PipelineAnswer) -> tuple[str, ...]:
    if answer.over_budget_usd is not None:
        text = f"Smallest change: budget {numbers.usd(answer.budget_usd)} -> {numbers.usd(answer.total_usd)}"
        return (f"{text}; the plan shown is {numbers.usd(answer.over_budget_usd)} over",)
    if answer.least_hours is not None and answer.least_hours_bound is not None:
        now, least = numbers.hours(answer.deadline_hours), numbers.hours(answer.least_hours)
        if answer.least_hours <= answer.least_hours_bound * (1 + LEAST_TIME_GAP):
            return (f"Smallest change: deadline {now} h -> {least} h",)
        bound = numbers.hours(answer.least_hours_bound)
        return (f"A deadline of {least} h can be kept instead of {now} h; none below {bound} h can",)
    if answer.undecided:
        return ("A longer --time-limit may find a plan, or prove that there is none",)
    if answer.empty_tasks:
        return ("`planner optimize` on the task's workload says which limits remove the candidates",)
    return ()


def _warnings(answer: PipelineAnswer) -> list[Block]:
    derived = [t for t in answer.transfers if t.basis == "derived"]
    text = tuple(
        f"{t.source} -> {t.target}: transfer price unknown, the dearest known internet price is assumed"
        for t in derived
    )
    return [Notes("Warnings", text, True)] if text else []


def _tasks(answer: PipelineAnswer) -> list[Block]:
    if not answer.stages:
        return []
    rows = [
        (
            stage.way.task, numbers.hours(stage.start_hours), numbers.hours(stage.end_hours),
            numbers.usd(stage.way.cost_usd),
            words.cluster(stage.way.nodes, stage.way.instance_type),
            words.option(stage.way.purchase_option, stage.way.option_variant),
            words.place(stage.way.provider, stage.way.region, stage.way.zone), "*" if stage.critical else "",
        )
        for stage in answer.stages
    ]  # fmt: skip
    header, cells, align = without_empty(
        ("task", "start h", "end h", "cost", "cluster", "option", "place", "critical"), rows, "lrrrllll"
    )
    return [Grid("Tasks", header, cells, align)]


def _transfers(answer: PipelineAnswer) -> list[Block]:
    moved = [t for t in answer.transfers if t.basis]
    if not answer.transfers:
        return []
    rows = tuple(
        (
            f"{t.source} -> {t.target}",
            numbers.number(t.size_gb),
            numbers.usd(t.cost_usd),
            numbers.hours(t.hours),
            t.price_as_of,
        )
        for t in moved
    )
    stay = len(answer.transfers) - len(moved)
    notes = (f"{stay} of {len(answer.transfers)} stay within one region: free",) if stay else ()
    if not rows:
        return [Notes("Data between tasks", notes)]
    return [
        Grid("Data between tasks", ("from -> to", "GB", "cost", "hours", "price of"), rows, "lrrrl", notes)
    ]


def _money(value: float) -> Decimal | None:
    return Decimal(repr(round(value, 6))) if math.isfinite(value) else None


def _searched(answer: PipelineAnswer) -> str:
    """What the proof is about."""
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
    return f"steady capacity at every duration, spot and ways in turn at {span} durations per task{tail}"


def _has_workloads(answer: PipelineAnswer) -> bool:
    return any(stage.way.bought is not None for stage in answer.stages)


def _proof(answer: PipelineAnswer) -> Facts:
    result = answer.result
    rows = [
        ("method", result.method), ("status", result.status.value), ("of", _searched(answer)),
        ("bound", numbers.usd(_money(result.bound_usd))), ("gap", numbers.percent(result.gap, 3)),
        ("candidates", ", ".join(f"{name} {count:,}" for name, count in answer.compared.items())),
        ("dropped exactly", ", ".join(f"{name} {count:,}" for name, count in result.dropped.items()) or "none"),
        ("solving", f"{result.seconds:.2f} s"),
    ]  # fmt: skip
    times = "planned hours are kept with each workload's deadline_confidence, so a chain of them is cautious"
    return Facts("Proof", (*rows, ("times", times)), detail=True)
