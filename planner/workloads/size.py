"""`planner size`: machines for those who know their data and their goal, beside what rules of thumb would say."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.inputs.checks_of_jobs import tiny_data
from planner.inputs.load import parse_workload
from planner.inputs.quantities import parse_deadline
from planner.inputs.tasks import load_tasks, nearest_tasks
from planner.plan.front_scale import Scale
from planner.plan.ids import AT_WORK
from planner.plan.outcome import Outcome, outcome_of
from planner.plan.storage_words import reason_of
from planner.records import record
from planner.render.presentable import Presentable
from planner.units import parse_size
from planner.workloads.answer import optimize
from planner.workloads.size_alternatives import Alternative, alternatives_to, with_memory
from planner.workloads.size_needs import (
    ASSUMED_THREADS,
    GB_PER_GIB,
    Needs,
    disk_for,
    ram_for,
    read_rate,
    threads_per_core,
    tier_of,
    vcpus_for,
    workers_for,
)
from planner.workloads.size_rules import Rule, load_facts, load_rules

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    from planner.asked.options import Options
    from planner.inputs.load import LoadedWorkload
    from planner.market.model import Market
    from planner.plan.model import Plan
    from planner.workloads.answer import Answer

_IMAGES = "image"
_BYTES_PER_TOKEN = 4.0  # tokens of a vocabulary above 65,536
_TELLS = 0.05  # of a need: 199 GB of RAM do not refute a rule of 200 to 300; the needs are estimates
_RULE_ACCELERATOR = "a100-*"  # what the rules on numbers of accelerators name


@record(frozen=True)
class Judged:
    """One rule beside the model's answer.

    Attributes:
        low, high: what the rule asks for; model: what the run needs, or what is measured or listed.
        cost: of the cheapest plan that keeps the rule: on at most so many of the accelerators that it names, or with so
            much memory each; None: it names neither, or none has so much.
    """

    rule: Rule
    low: float
    high: float | None
    model: float
    cost: Outcome | None = None

    @property
    def differs(self) -> bool:
        """Whether what the run needs is outside what the rule asks for, by more than an estimate of it can tell."""
        high = math.inf if self.high is None else self.high
        return not self.low * (1.0 - _TELLS) <= self.model <= high * (1.0 + _TELLS)


@record(frozen=True)
class Size(Presentable):
    """What to run on, what that needs, and the rules beside it; `workload` is a valid file.

    Attributes:
        rules: on this run; published: on what is measured or listed, whatever the run.
        undetermined: rules that cannot be applied to this run: each says why, or is for other volumes or goals.
        beside: the run on a workstation, in a notebook service and on CPUs.
        work_hours: of the plan in steps, evaluation and beside the steps, as the hours of `beside` are; not in waits,
            starts, checkpoints and stops.
    """

    REPORT = "planner.workloads.size_report:size_report"
    __repr__ = Presentable.__repr__

    goal: str
    data_gb: float
    outcome: Outcome
    accelerator: str
    nodes: int
    needs: Needs | None
    has: Mapping[str, float]
    rules: tuple[Judged, ...]
    workload: str
    published: tuple[Judged, ...] = ()
    undetermined: tuple[Rule, ...] = ()
    beside: tuple[Alternative, ...] = ()
    work_hours: float | None = None


def size_workload(
    data: str, goal: str, options: Options, *, effort: str = "medium", deadline: str | None = None,
    budget_usd: Decimal | None = None, location: str | None = None,
) -> Size:  # fmt: skip
    """Size a run by its data and goal.

    Args:
        data: volume, such as `100GB`.
        goal: a task of `planner/data/tasks.csv`.
        options: flags, as of `planner optimize`.
        effort: rung of its ladder: small, medium, large.
        deadline: time from now, such as `3w`.
        budget_usd: most to pay.
        location: where the data lie, `provider/region`.

    Raises:
        InputError: a value is wrong; the goal names the nearest one.
    """
    goal = "_".join(re.split(r"[\s_-]+", goal.strip().lower()))
    if goal not in load_tasks():
        hints = " or ".join(repr(task) for task in nearest_tasks(goal))
        known = f"did you mean {hints}?" if hints else f"known: {', '.join(load_tasks())}"
        raise InputError(f"--goal {goal}: is not a goal ({known})")
    _check_amounts(data, deadline)
    text = _workload_text(data, goal, effort, deadline, budget_usd, location)
    try:
        loaded = parse_workload(text, Path("workload.yaml"))
        answer = optimize(loaded, options)
    except InputError as error:
        given = {"deadline": deadline, "budget_usd": budget_usd, "location": location}
        raise InputError(_by_option(str(error), given)) from None
    size = loaded.workload.data.size
    assert size is not None
    data_gb = float(size) / 1e9
    outcome = outcome_of(answer.plan, "model")
    if not answer.plan.lines:
        return Size(goal, data_gb, outcome, "", 0, None, {}, (), text)
    first = answer.plan.lines[0]
    needs, has = _needs(answer, goal, data_gb)
    rules = _judged(loaded, options, answer, needs, data_gb, goal, has)
    own = {one.rule.rule_id for one in (*rules, *_published())}
    work_hours = sum(part.hours for part in answer.plan.timeline if part.id in AT_WORK)
    others = alternatives_to(first.accelerator, work_hours * needs.accelerators, needs.device_memory_gib)
    undetermined = tuple(rule for rule in load_rules() if rule.rule_id not in own)
    return Size(
        goal,
        data_gb,
        outcome,
        first.accelerator,
        first.nodes,
        needs,
        has,
        rules,
        text,
        _published(),
        undetermined,
        others,
        work_hours,
    )


def _published() -> tuple[Judged, ...]:
    """Rules on what is measured or listed, beside it."""
    facts = load_facts()
    return tuple(
        Judged(rule, *rule.value({}), facts[rule.quantity].value)
        for rule in load_rules()
        if rule.is_published
    )


def _check_amounts(data: str, deadline: str | None) -> None:
    """Read the amounts as the workload will, to name the option where one is wrong.

    Raises:
        InputError: one is wrong.
    """
    try:
        small = next(tiny_data((), parse_size(data)), None)
    except ValueError as error:
        raise InputError(f"--data {data}: {error}") from None
    if small is not None:
        raise InputError(f"--data {data}: {small.message}")
    try:
        if deadline is not None:
            parse_deadline(deadline)
    except ValueError as error:
        raise InputError(f"--deadline {deadline}: {error}") from None


def _by_option(message: str, given: Mapping[str, object]) -> str:
    """A fault in the workload that the options make, which no file holds, told of its option."""
    for key, value in given.items():
        _, found, fault = message.partition(f".{key}: ")
        if found:
            return f"--{key.removesuffix('_usd')} {value}: {fault.splitlines()[0]}"
    return message


def _workload_text(
    data: str, goal: str, effort: str, deadline: str | None, budget_usd: Decimal | None, location: str | None
) -> str:  # fmt: skip
    """A workload file for the goal."""
    lines = [
        "version: 1",
        f"name: {goal.replace('_', '-')}",
        "task:",
        f"  type: {goal}",
        f"  effort: {effort}",
    ]
    lines += ["data:", f"  size: {data}", *([f"  location: {location}"] if location else [])]
    limits = {"deadline": deadline, "budget_usd": budget_usd}
    given = [f"  {key}: {value}" for key, value in limits.items() if value is not None]
    return "\n".join([*lines, *(["constraints:", *given] if given else [])]) + "\n"


def _needs(answer: Answer, goal: str, data_gb: float) -> tuple[Needs, dict[str, float]]:
    """What the plan's run needs, and what its machines have, all nodes together."""
    plan, job, line = answer.plan, answer.context.asked.job, answer.plan.lines[0]
    nodes, accelerators = line.nodes, line.nodes * line.accelerators_per_node
    speed = plan.performance
    assert speed is not None
    images = goal.startswith(_IMAGES)
    per_sample = job.training.bytes_per_sample if images else _BYTES_PER_TOKEN
    read = read_rate(speed.throughput_per_s, per_sample or 0.0)
    workers = workers_for(speed.throughput_per_s if images else 0.0, accelerators)
    has = _hardware(answer.context.market, line.provider, line.instance_type, nodes)
    checkpoint_gb = job.checkpoint_gib * GB_PER_GIB
    kept = disk_for(data_gb, checkpoint_gb, job.checkpoints_kept)
    memory_gb = accelerators * (line.accelerator_memory_gib or 0.0) * GB_PER_GIB
    needs = Needs(
        tier=tier_of(data_gb), accelerators=accelerators, device_memory_gib=speed.memory_needed_gib,
        workers_per_accelerator=workers, vcpus=vcpus_for(accelerators, nodes, workers),
        ram_gb=ram_for(data_gb, accelerators, memory_gb, nodes, workers, checkpoint_gb), accelerators_gb=memory_gb,
        disk_gb=kept, read_gb_per_s=read,
        network_gbps=has["network_gbps"] if nodes > 1 else 0.0,
        storage=_storage(plan, Scale.of(plan)),
    )  # fmt: skip
    return needs, has


def _storage(plan: Plan, scale: Scale) -> str:
    """Where the plan has the data, and why; empty where it has none."""
    data = next((choice for choice in plan.storage if choice.content == "data"), None)
    if data is None:
        return ""
    other = data.runner_up
    beside = "" if other is None else f"; next {other.service}, {scale.usd(other.cost_usd)}"
    return f"{data.chosen.service}, {scale.usd(data.chosen.cost_usd)}: {reason_of(data, data.chosen)}{beside}"


def _hardware(market: Market, provider: str, instance_type: str, nodes: int) -> dict[str, float]:
    """vCPUs, memory, local disk of all nodes, threads of a core and the network of one; 0 where it is not known."""
    types = market.offer_set.types
    row = types.take(types.equals("provider", provider) & types.equals("instance_type", instance_type)).row(0)

    def known(key: str) -> float:
        value = row[key]
        return 0.0 if value is None or math.isnan(float(value)) else float(value)

    return {
        "vcpus": known("vcpus") * nodes,
        "threads_per_core": float(threads_per_core(provider, instance_type) or 0),
        "ram_gb": known("memory_gib") * GB_PER_GIB * nodes,
        "disk_gb": known("local_nvme_gib") * GB_PER_GIB * nodes,
        "network_gbps": known("internode_gbps"),
    }


def _judged(
    loaded: LoadedWorkload, options: Options, answer: Answer, needs: Needs, data_gb: float, goal: str,
    has: Mapping[str, float],
) -> tuple[Judged, ...]:  # fmt: skip
    """Each rule that sizes something of this run, beside the model's figure."""
    figures = {
        "data_gb": data_gb, "data_100_gb": data_gb / 100.0, "accelerators_4": needs.accelerators / 4.0,
        "params_billion": answer.context.asked.job.model.params / 1e9, "accelerator_memory_gb": needs.accelerators_gb,
    }  # fmt: skip
    model = _figures(answer, needs, has)
    out = []
    for rule in load_rules():
        if rule.applies(data_gb, goal):
            low, high = rule.value(figures)
            cost = _cost_by_rule(loaded, options, answer, rule.quantity, low, high)
            out.append(Judged(rule, low, high, model[rule.quantity], cost))
    return tuple(out)


def _figures(answer: Answer, needs: Needs, has: Mapping[str, float]) -> dict[str, float]:
    """What rules of a run are on, as the model has it."""
    speed = answer.plan.performance
    assert speed is not None
    return {
        "accelerators": needs.accelerators, "cores": needs.vcpus / (has["threads_per_core"] or ASSUMED_THREADS),
        "ram_gb": needs.ram_gb, "disk_gb": needs.disk_gb,
        "read_gb_per_s": needs.read_gb_per_s, "network_gbps": has["network_gbps"] if needs.network_gbps else 0.0,
        "device_memory_gb": (needs.device_memory_gib or 0.0) * GB_PER_GIB, "nodes": answer.plan.lines[0].nodes,
        "loading_ratio": speed.breakdown_s.get("data_loading", 0.0) / (speed.step_time_s or math.inf),
        "workers": needs.workers_per_accelerator,
    }  # fmt: skip


def _cost_by_rule(
    loaded: LoadedWorkload, options: Options, answer: Answer, quantity: str, low: float, high: float | None
) -> Outcome | None:  # fmt: skip
    """The cheapest plan that keeps a rule on accelerators or their memory; None for what changes no plan."""
    limits, line = loaded.workload.constraints, answer.plan.lines[0]
    if quantity == "device_memory_gb":
        if low <= (line.accelerator_memory_gib or 0.0) * GB_PER_GIB:
            return outcome_of(answer.plan, "model")
        large = with_memory(low / GB_PER_GIB)
        if not large:
            return None
        chips = limits.accelerators.model_copy(update={"allow": large})
        limited = limits.model_copy(update={"accelerators": chips})
        said = f"at least {low:,.0f} GB each"
    elif quantity == "accelerators":
        count = max(1, math.ceil(high or low))
        chips = limits.accelerators.model_copy(update={"allow": (_RULE_ACCELERATOR,)})
        limited = limits.model_copy(update={"accelerators": chips, "max_accelerators": count})
        said = f"at most {count} x A100"
    else:
        return None
    workload = loaded.workload.model_copy(update={"constraints": limited})
    return outcome_of(optimize(replace(loaded, workload=workload), options).plan, said)
