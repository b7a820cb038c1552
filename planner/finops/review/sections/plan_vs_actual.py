"""Did plans match the bill?"""

from __future__ import annotations

import math
from datetime import date, datetime, time
from typing import Any

from planner.finops.frames import records_of
from planner.finops.plan_vs_actual import (
    ActualRun,
    Difference,
    Measurement,
    PlannedRun,
    measure,
    split_difference,
)
from planner.finops.review.inputs import Inputs
from planner.finops.review.model import Chart, Section
from planner.finops.review.parts import (
    figure,
    money,
    nothing,
    percent,
    ratio,
    run_regions,
    table,
    twice_words,
    withheld,
)
from planner.records import record
from planner.render.currency import UNKNOWN_CURRENCY

TITLE = "Did plans match the bill?"


@record(frozen=True)
class Compared:
    """A plan and its run.

    Attributes:
        plan: what of it was due by the end of the bill.
        due: that share of the whole plan; below 1 of a run that is taken as still going.
        regions: of the run, by the bill.
        counted: whether the bill tells how many machines it had; else they are taken to be the plan's.
    """

    plan: PlannedRun
    due: float
    actual: ActualRun
    difference: Difference
    measurement: Measurement | None
    regions: tuple[str, ...]
    counted: bool


def compared_runs(inputs: Inputs) -> list[Compared]:
    """Plans whose run has charges in the month, over all the run's months; worked out once."""
    if inputs.gate.status("plan_effective_money")[0] == "withheld":
        return []
    if "compared" not in inputs.answers:
        runs = inputs.runs()
        own = runs[runs["run_id"].isin([plan.run_id for plan in inputs.plans])]
        bills = {row["run_id"]: row for row in records_of(own)}
        month = f"{inputs.month:%Y-%m}"
        out = []
        for plan in inputs.plans:
            row = bills.get(plan.run_id)
            if row and row["first_month"] <= month <= row["last_month"] and row["node_hours"] > 0:
                out.append(_compare(inputs, plan, row))
        inputs.answers["compared"] = out
    comparisons: list[Compared] = inputs.answers["compared"]
    return comparisons


def _compare(inputs: Inputs, plan: PlannedRun, row: dict[str, Any]) -> Compared:
    counted = float(row["nodes"]) > 0  # sums without resources (a cube) do not tell how many
    nodes = float(row["nodes"]) if counted else plan.nodes
    busy = inputs.utilisation.between(date.min, date.max, plan.run_id) if inputs.utilisation else None
    gpus = float(row["gpu_hours"]) / float(row["node_hours"])
    lost = busy.lost / (nodes * gpus) if busy is not None and busy.lost is not None and gpus else None
    actual = ActualRun(
        nodes,
        float(row["node_hours"]) / nodes,
        lost,
        float(row["machine_cost"]),
        float(row["effective_cost"]),
        float(row["storage_cost"]),
    )
    units = busy.tokens if busy is not None and plan.unit == "tokens" else None
    due = _due(inputs, plan, row)
    share = ratio(due.hours, plan.hours)
    # what an unfinished run has done is known from the utilisation file only
    measured = measure(plan, actual, units) if counted and (share >= 1 or units) else None
    return Compared(due, share, actual, split_difference(due, actual), measured, run_regions(row), counted)


def _due(inputs: Inputs, plan: PlannedRun, row: dict[str, Any]) -> PlannedRun:
    """The whole plan, or of a run with charges on the bill's last day what should be done by then."""
    start, end = (datetime.fromisoformat(str(row[name])[:19]) for name in ("first_start", "last_end"))
    if end.date() < inputs.use_days()[-1] or end == datetime.combine(inputs.use_days()[-1], time()):
        return plan
    return plan.due_after((end - start).total_seconds() / 3600)


def build(inputs: Inputs) -> Section:
    """Planned and billed cost of each run and what made the difference."""
    if not inputs.plans:
        return nothing("plan_vs_actual", TITLE,
                       f"No plans were given: save them with `planner optimize -o json`, tag the machines with their "
                       f"run id ({inputs.run_tag}) and name them with --plans.")  # fmt: skip
    if inputs.bill.currency == UNKNOWN_CURRENCY:
        why = "Plans are in USD and the bill states no currency: if it is in US dollars, add --currency USD."
        return nothing("plan_vs_actual", TITLE, why)
    if inputs.bill.currency != "USD":
        why = f"Plans are in USD and the bill is in {inputs.bill.currency}: they cannot be compared."
        return nothing("plan_vs_actual", TITLE, why)
    status, reason = inputs.gate.status("plan_effective_money")
    if status == "withheld":
        return withheld("plan_vs_actual", TITLE, reason)
    runs, twice = compared_runs(inputs), twice_words(inputs, {plan.run_id for plan in inputs.plans})
    if not runs and twice:
        return withheld("plan_vs_actual", TITLE, twice)
    if not runs:
        return nothing("plan_vs_actual", TITLE,
                       f"No charge of the month carries the run id of one of the {len(inputs.plans)} plans in the tag "
                       f"{inputs.run_tag!r}.")  # fmt: skip
    planned = math.fsum(r.plan.total_usd for r in runs)
    billed = math.fsum(r.actual.total_cost for r in runs)
    steps = [(name, math.fsum(getattr(r.difference, name) or 0.0 for r in runs)) for name in _EFFECTS]
    figures = (
        figure(inputs, "plan_runs_count", "Runs with a plan", len(runs), "count"),
        figure(inputs, "plan_planned_money", "Planned", planned, "money"),
        figure(inputs, "plan_effective_money", "Billed", billed, "money"),
        figure(
            inputs, "plan_difference_ratio", "Billed over planned", ratio(billed - planned, planned), "ratio"
        ),
        *(figure(inputs, f"plan_{n}_effect_money", f"{_EFFECTS[n]} effect", v, "money") for n, v in steps),
    )
    word = "more" if billed >= planned else "less"
    chart = Chart(
        "plan_bridge", "From planned to billed", "bridge", ("Planned", *_EFFECTS.values(), "Billed"),
        (("cost", (planned, *(v for _, v in steps), billed)),), "money",
        f"Runs cost {money(abs(billed - planned), inputs.bill.currency)} {word} than planned.",
    )  # fmt: skip
    top = max(steps, key=lambda step: abs(step[1]))
    runs_word = f"{len(runs)} planned run{'s' * (len(runs) > 1)}, joined by the tag {inputs.run_tag},"
    said = [
        f"{runs_word} cost {money(abs(billed - planned), inputs.bill.currency)} "
        f"({percent(abs(ratio(billed - planned, planned)))}) {word} than planned, mostly by {_EFFECTS[top[0]].lower()} "
        f"({top[1]:+,.0f})."
    ]  # fmt: skip
    said += [*_remarks(inputs, runs), *([f"{twice[0].upper()}{twice[1:]}."] if twice else [])]
    return Section("plan_vs_actual", TITLE, tuple(said), figures, _tables(runs), (chart,))


_NAMED = 5  # runs named in a sentence
_NIL = 0.005  # of money: below a cent
_EFFECTS = {"price": "Price", "duration": "Duration", "nodes": "Nodes in use", "interruption": "Interruptions",
            "storage": "Storage", "other": "Transfer, rest"}  # fmt: skip


def _remarks(inputs: Inputs, runs: list[Compared]) -> list[str]:
    """What a reader must know of the comparison."""
    said = []
    bills = inputs.runs().set_index("run_id")["ahead_cost"]
    if (ahead := math.fsum(bills[r.plan.run_id] for r in runs)) >= _NIL:
        borne = f"{money(ahead, inputs.bill.currency)} of what was billed"
        said.append(f"{borne} is the runs' share of what was bought ahead (capacity blocks, reservations).")
    if not all(r.counted for r in runs):
        said.append(
            "Where the bill names no machines (ResourceId) they are taken to be as many as planned: more or fewer of "
            "them count as duration, and no speed is measured."
        )
    if any(r.difference.interruption is None for r in runs):
        said.append(
            "Without lost_gpu_hours in the utilisation file, work lost to interruptions counts as duration."
        )
    if going := [r for r in runs if r.due < 1]:
        names = ", ".join(f"{r.plan.run_id} ({percent(r.due, 0)})" for r in going[:_NAMED])
        more = f" and {len(going) - _NAMED} more" if len(going) > _NAMED else ""
        said.append(
            f"Charged on the bill's last day, so taken as still running and compared with the share of the plan that "
            f"was due by then: {names}{more}."
        )
    return said


def _tables(runs: list[Compared]) -> Any:
    columns: list[Any] = [("run_id", "Run", "text"), ("workload", "Workload", "text"),
                          ("regions", "Regions", "text"),
                          ("due", "Share of the plan due", "ratio"), ("planned", "Planned", "money"),
                          ("billed", "Billed", "money"), ("difference", "Difference", "money")]  # fmt: skip
    columns += [(name, label, "money") for name, label in _EFFECTS.items()]
    columns += [("planned_hours", "Hours planned", "hours"), ("hours", "Hours billed", "hours")]
    columns += [
        ("planned_price", "Price planned", "money_per_hour"),
        ("price", "Price billed", "money_per_hour"),
    ]
    rows = [
        (r.plan.run_id, r.plan.workload, ", ".join(r.regions), r.due, r.plan.total_usd, r.actual.total_cost,
         r.difference.total,
         *(getattr(r.difference, name) for name in _EFFECTS), r.plan.hours, r.actual.hours, r.plan.price_usd,
         r.actual.price)
        for r in sorted(runs, key=lambda r: (-abs(r.difference.total), r.plan.run_id))
    ]  # fmt: skip
    tables = [
        table(
            "plan_vs_actual",
            "Runs",
            columns,
            rows,
            "Difference: billed minus planned; its reasons add up to it.",
        )
    ]
    measured = [r.measurement for r in runs if r.measurement is not None]
    if measured:
        tables.append(table(
            "measurements", "Measured speed, for `planner calibrate`", [("run_id", "Run", "text"),
            ("speed", "Per second", "quantity"), ("unit", "Unit", "text"), ("command", "Command", "text")],
            [(m.run_id, m.value_per_s, m.unit, m.command) for m in measured],
            "Training hours are the billed hours less lost ones and less what the plan needs besides."
            + (" Runs are taken to have done the whole planned work." if any(m.whole_work for m in measured) else ""),
        ))  # fmt: skip
    return tuple(tables)
