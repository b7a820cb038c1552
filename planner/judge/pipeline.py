"""The answer of `planner pipeline`: each task as a plan of its own, transfers with their tiers, the course of time."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Any

from planner.inputs.bounds import MOST_HOURS
from planner.inputs.checks import end_moment, start_moment
from planner.judge import frame
from planner.judge.bench import Bench, Candidate, ImpossibleError, NotRecomputedError
from planner.judge.chance import chance_within
from planner.judge.ends import alike_of
from planner.judge.findings import STATED, Exactly, Findings, IfStated, Near, NotRecomputed, Timestamp
from planner.judge.limits import purchase_faults
from planner.judge.pipeline_quotas import check_shared
from planner.judge.purchases import Bought, Buy
from planner.judge.quote import sure_hours, table_ratio
from planner.judge.robust import risk_of
from planner.judge.schedule import GB, moved_usd
from planner.judge.work import assumption_rows

if TYPE_CHECKING:
    from decimal import Decimal

    from planner.inputs.pipeline_load import LoadedPipeline
    from planner.inputs.pipeline_schema import PipelineTask
    from planner.judge.document import Node
    from planner.judge.memory import Memory

_HOURS = 1e-7
_TIE = 1e-6
_STATED_PROOF = ("method", "seconds", "dropped", "candidates", "durations", "about", "gap_asked_ratio")
PART = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")


def check(findings: Findings, loaded: LoadedPipeline, memory: Memory) -> None:
    """Compare a pipeline's plan with what is recomputed."""
    answer, pipeline = findings.answer, loaded.pipeline
    created = answer["created_at"].moment()
    start = start_moment(pipeline.start or created)
    names = [task.name for task in pipeline.tasks]
    stages = {node["task"].text(): node for node in answer["tasks"]}
    findings.require(sorted(stages) == sorted(names), "tasks", "not every task of the pipeline once")
    if sorted(stages) != sorted(names):
        return
    transfers = _transfers(pipeline.tasks, stages)
    waits = {name: [item.text() for item in node["waits_for"]] for name, node in stages.items()}
    for name, others in waits.items():
        is_valid = set(others) <= set(names) and len(set(others)) == len(others)
        findings.require(is_valid, stages[name]["waits_for"].path, "not other tasks, each once")
    if not all(set(others) <= set(names) for others in waits.values()):
        return
    if _sorted(pipeline.tasks, waits) is None:
        findings.fault("tasks", "tasks wait for each other in a circle")
        return
    limits = [
        limit for item in loaded.workloads if item is not None for limit in item.workload.constraints.quota
    ]
    check_shared(findings, list(answer["tasks"]), limits, memory.catalog.instance_types)
    _course(findings, pipeline.tasks, stages, transfers, waits)
    findings.saw(answer["end_hours"])
    total = sum((node["cost_usd"].money() for node in (*answer["tasks"], *answer["transfers"])), Fraction(0))
    limit = pipeline.deadline
    length = limit if isinstance(limit, timedelta) or limit is None else end_moment(limit) - start
    deadline = None if length is None else length / timedelta(hours=1)
    ends = max(node["end_hours"].number() for node in answer["tasks"])
    in_time = deadline is None or ends <= deadline * (1 + 1e-9)
    findings.require(in_time, "end_hours", f"after the deadline of {deadline} h")
    budget = pipeline.budget_usd
    over = total - Fraction(budget) if budget is not None and total > Fraction(budget) else None
    proof, bound = answer["proof"], answer["proof"]["bound_usd"].money()
    gap = max(0.0, float((total - bound) / total)) if total else 0.0
    sure = [item.workload.constraints.deadline_confidence for item in loaded.workloads if item is not None]
    expected: dict[str, Any] = {
        "pipeline": pipeline.name, "sha256": loaded.sha256, "created_at": created.isoformat(timespec="minutes"),
        "catalog": frame.catalog_sources(memory.catalog), "status": _status(over, proof, budget),
        "start": Timestamp(start), "currency": "USD", "schema_version": 1, "planner_version": STATED,
        "total_usd": Exactly(total), "cost_p10_usd": STATED, "cost_p90_usd": STATED,
        "deadline_confidence": min(sure, default=None), "data_set_aside": IfStated(_set_aside(loaded)),
        "end_hours": Near(ends), "least_hours": None, "least_hours_bound": None,
        "deadline_hours": None if deadline is None else Near(deadline),
        "budget_usd": None if budget is None else Exactly(Fraction(budget)),
        "over_budget_usd": None if over is None else Exactly(over), "tasks_without_candidates": [],
        "tasks": [_stage(memory, loaded, names.index(node["task"].text()), node, answer) for node in answer["tasks"]],
        "transfers": transfers,
        "proof": dict.fromkeys((name for name in _STATED_PROOF if name in proof), STATED)
        | {
            "bound_usd": Exactly(min(bound, total * (1 + Fraction(1, 10**9)))), "gap_ratio": Near(gap, 1e-5, 1e-8),
            "status": STATED,
        },
        **risk_of(findings, answer, pipeline.risk, total),
    }  # fmt: skip
    findings.expect(answer, expected)
    order = [(node["start_hours"].number(), node["task"].text()) for node in answer["tasks"]]
    findings.require(order == sorted(order), "tasks", "not in the order of their starts")


def _status(over: Fraction | None, proof: Node, budget: Decimal | None) -> str:
    """What the answer is worth: a plan over the budget that was found early proves nothing of others."""
    if over is None:
        return "planned"
    late = proof["status"].value == "feasible" and proof["bound_usd"].money() <= Fraction(budget or 0)
    return "no_plan_in_time" if late else "infeasible"


def _set_aside(loaded: LoadedPipeline) -> list[str]:
    """Tasks with inputs from others, in whose workload there is a place of the data too."""
    out = []
    for number, task in enumerate(loaded.pipeline.tasks):
        task_workload = loaded.workloads[number]
        if task_workload is not None and task_workload.workload.data.location is not None and len(task.reads):
            out.append(task.name)
    return out


def _transfers(tasks: tuple[PipelineTask, ...], stages: dict[str, Node]) -> list[dict[str, Any]]:
    """What moves between the places of tasks: hours, cost with tiers, nothing within a region."""
    from catalogs.tariffs import load_tariffs

    tariffs, out = load_tariffs(), []
    figures = {row["key"]: float(row["value"]) for row in assumption_rows()}
    for task in tasks:
        for read in task.reads:
            a, b = (
                [stages[name][key].text() for key in ("provider", "region")]
                for name in (read.task, task.name)
            )
            size = Fraction(read.size) / GB
            entry = {"source": read.task, "target": task.name, "size_gb": Near(size)}
            if a == b:
                out.append(
                    entry | {"cost_usd": Exactly(Fraction(0)), "hours": 0.0, "basis": "", "price_as_of": ""}
                )
                continue
            listed = tariffs.transfer_curve(a[0], a[1], b[0], b[1])
            curve = tariffs.dearest_internet_curve() if listed is None else listed
            gbps = figures["inter_region_staging_gbps" if a[0] == b[0] else "cross_cloud_staging_gbps"]
            out.append(
                entry
                | {
                    "cost_usd": Near(moved_usd(curve, size), slack=1e-6),
                    "hours": Near(float(size) * 8.0 / gbps / 3600.0),
                    "basis": "derived" if listed is None else "list", "price_as_of": curve.as_of,
                }
            )  # fmt: skip
    return out


def _course(
    findings: Findings, tasks: tuple[PipelineTask, ...], stages: dict[str, Node], moves: list[dict[str, Any]],
    waits: dict[str, list[str]],
) -> None:  # fmt: skip
    """Each task starts when the last of what it reads has come and those it waits for have ended."""
    edges = list(zip([(r.task, t.name) for t in tasks for r in t.reads], moves, strict=True))
    hours = {pair: move["hours"].value if isinstance(move["hours"], Near) else 0.0 for pair, move in edges}
    ends = {name: node["end_hours"].number() for name, node in stages.items()}
    latest = dict.fromkeys(stages, max(ends.values()))
    for task in reversed(_sorted(tasks, waits) or []):
        followers = [(name, hours[task.name, name]) for name in task_readers(tasks, task.name)]
        followers += [(name, 0.0) for name, others in waits.items() if task.name in others]
        for name, move in followers:
            length = ends[name] - stages[name]["start_hours"].number()
            latest[task.name] = min(latest[task.name], latest[name] - length - move)
    for task in tasks:
        node = stages[task.name]
        read = [ends[read.task] + hours[read.task, task.name] for read in task.reads]
        begin = max([0.0, *read, *(ends[name] for name in waits[task.name])])
        findings.expect(node["start_hours"], Near(begin, slack=_HOURS))
        findings.expect(node["critical"], ends[task.name] >= latest[task.name] - _TIE)


def task_readers(tasks: tuple[PipelineTask, ...], name: str) -> list[str]:
    """Tasks that read what a task makes."""
    return [task.name for task in tasks for read in task.reads if read.task == name]


def _sorted(tasks: tuple[PipelineTask, ...], waits: dict[str, list[str]]) -> list[PipelineTask] | None:
    """Tasks, each after those it reads from or waits for; None where there is a circle."""
    ordered: list[PipelineTask] = []
    left = list(tasks)
    while left:
        names = {task.name for task in ordered}
        ready = [task for task in left if {*(read.task for read in task.reads), *waits[task.name]} <= names]
        if not ready:
            return None
        ordered += ready
        left = [task for task in left if task not in ready]
    return ordered


def _stage(memory: Memory, loaded: LoadedPipeline, at: int, node: Node, answer: Node) -> dict[str, Any]:
    task, workload = loaded.pipeline.tasks[at], loaded.workloads[at]
    length = node["end_hours"].number() - node["start_hours"].number()
    times: dict[str, Any] = {
        "task": task.name,
        "critical": STATED,
        "start_hours": STATED,
        "waits_for": [awaited.text() for awaited in node["waits_for"]],
        "own_from_hours": IfStated(None),
    }
    if workload is None:
        return times | _sized(task, node)
    if not 0 < length <= 1e6:
        node["end_hours"].fail("an hour after the start")
    bought = [(part, frame.instances(part)) for part in node["parts"]]
    begin = node["start_hours"].number()
    own_from = _own_from(node, begin)
    bench = memory.task(loaded, at, answer["created_at"].moment(), timedelta(hours=length), own_from)
    buys = [Buy(bench.goods.offer(part.path, part["offer_id"].text()), count) for part, count in bought]
    in_turn = node["in_turn"].flag()
    if not buys:
        node["parts"].fail("one purchase at least")
    lead = frame.leading(buys, in_turn=in_turn)
    ends = any(until < inf for buy in buys for *_, until in alike_of(buy.offer, bench.workload, bench.start))
    times |= {
        **({"own_from_hours": Near(own_from)} if ends else {}),
        **{name: lead.text(name) for name in ("provider", "region", "zone", "instance_type")},
        "purchase_option": frame.bought_text(buys, in_turn=in_turn),
        "nodes": buys[0].nodes if in_turn else sum(buy.nodes for buy in buys),
        "option_variant": lead.text("option_variant") if len(buys) == 1 else "", "in_turn": in_turn,
        "price_as_of": min(buy.offer.text("as_of") for buy in buys),
    }  # fmt: skip
    try:
        candidate = bench.candidate(buys, in_turn=in_turn)
        if faults := purchase_faults(
            bench, buys, in_turn=in_turn, by_deadline=loaded.pipeline.deadline is not None
        ):
            raise ImpossibleError(f"{task.name}: {'; '.join(faults)}")
    except NotRecomputedError as error:
        why = NotRecomputed(str(error))
        return times | dict.fromkeys(("end_hours", "expected_hours", "cost_usd"), why) | {
            "parts": [
                {"offer_id": buy.offer.offer_id, **{name: buy.offer.text(name) for name in PART}, "nodes": buy.nodes,
                 "hours": why, "lines": why}
                for buy in buys
            ],
        }  # fmt: skip
    ratio = frame.closeness(candidate)
    return times | {
        "parts": [part_of(part, candidate) for part in candidate.parts],
        "end_hours": Near(begin + _sure_hours(bench, candidate, length), slack=_HOURS),
        "expected_hours": Near(candidate.hours, ratio), "cost_usd": Near(candidate.cost, ratio),
    }  # fmt: skip


def part_of(part: Bought, candidate: Candidate) -> dict[str, Any]:
    """What a purchase of a task or job must say."""
    ratio = frame.part_closeness(candidate, part)
    lines = [
        {"kind": c.kind, "label": c.label, "amount_usd": Near(c.usd, ratio, c.slack_usd)}
        for c in part.charges
    ]
    return {
        "offer_id": part.offer.offer_id, **{name: part.offer.text(name) for name in PART}, "nodes": part.nodes,
        "hours": Near(part.paid_hours, ratio, 1e-8), "lines": lines,
    }  # fmt: skip


def _own_from(node: Node, begin: float) -> float:
    """The start for which a task on a commitment that ends is priced: its own, or a later one."""
    if "own_from_hours" not in node or node["own_from_hours"].is_null:
        return 0.0
    hours = node["own_from_hours"].number()
    if not begin - _TIE <= hours <= MOST_HOURS:
        node["own_from_hours"].fail("the task's start, or a later hour")
    return hours


def _sure_hours(bench: Bench, candidate: Candidate, length: float) -> float:
    """Hours that a way is planned for: kept with the confidence asked, and no longer than that needs.

    A way in turn ends by the time it is given; steady capacity has a closed form, at the confidence asked of what comes
    at all; the hours of spot alone are found on a grid, at most a thousandth above.
    """
    confidence = bench.workload.constraints.deadline_confidence
    before = candidate.waiting + candidate.steps.fixed
    if candidate.situation is None:
        if candidate.had <= confidence:
            raise ImpossibleError(f"capacity comes with {candidate.had:.4f}, {confidence} is asked")
        sure = sure_hours(candidate, confidence / candidate.had, candidate.steps.sigma)
        sure = max(sure, candidate.hours)
        return length if abs(length - sure) <= table_ratio(candidate) * sure else sure
    assert candidate.p_meet is not None
    if candidate.p_meet < confidence - 1e-6:
        raise ImpossibleError(f"{length:g} h are met with {candidate.p_meet:.4f}, {confidence} is asked")
    if not candidate.in_turn:
        sooner = before + (length - before) / 1.001
        chance = chance_within(
            candidate.situation.course, candidate.situation.pool, sooner - before, candidate.steps.sigma
        )
        if chance * candidate.had > confidence + 1e-4 and length > candidate.hours * (1 + 1e-6):
            raise ImpossibleError(f"{length:g} h are more than the task needs")
    return length


def _sized(task: PipelineTask, node: Node) -> dict[str, Any]:
    """A candidate that the file itself sizes: the one with the numbers of the answer."""
    names = ("provider", "region", "instance_type", "purchase_option", "nodes")
    hours = node["expected_hours"].number()
    alike = [one for one in task.candidates if all(getattr(one, name) == node[name].value for name in names)]
    if not alike:
        return {"task": f"a candidate of {task.name}"}
    sized = min(alike, key=lambda one: abs(float(one.hours) - hours))
    hours, each = float(sized.hours), sized.usd_per_hour
    cost = (
        Fraction(sized.cost_usd or 0)
        if each is None
        else Fraction(each) * sized.nodes * Fraction(repr(hours))
    )
    return {
        **{name: getattr(sized, name) for name in names}, "zone": "", "option_variant": "", "in_turn": False,
        "parts": [], "expected_hours": Near(hours), "cost_usd": Near(cost, 1e-9, 1e-6), "price_as_of": "",
        "end_hours": Near(node["start_hours"].number() + hours, slack=_HOURS),
    }  # fmt: skip
