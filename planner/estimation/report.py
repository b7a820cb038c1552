"""Estimates as a report: one cluster in full, several as a comparison."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from planner.estimation.values import MAX_LOADING_RATIO, MIN_BUSY_RATIO
from planner.plan.words import layout_words
from planner.render.document import Bars, Block, Document, Facts, Grid, Notes, without_empty
from planner.render.numbers import UNKNOWN, number, percent
from planner.render.report import Report
from planner.render.words import cluster, devices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.estimation.values import Estimate, Interval

SCHEMA_VERSION = 1
# What the largest part of the step means and what would change it.
LIMITS = {
    "compute": "matrix products and attention: a faster chip or a lower precision would help",
    "memory_bound": "memory bandwidth and kernel launches: a leaner software stack or larger micro-batches would help",
    "tp_comm": "traffic inside layers (tensor, context, expert parallel): a faster link, or splitting less, would help",
    "pp_comm": "traffic between pipeline stages: a faster network, or fewer stages, would help",
    "bubble": "idle pipeline stages: more micro-batches, or fewer stages, would help",
    "dp_comm": "gradient traffic and stragglers: a faster network, a larger batch or fewer nodes would help",
    "optimizer": "the optimizer step: sharding it (ZeRO-1 and up), or a larger batch, would help",
    "data_loading": "data loading: faster storage, more CPU cores or pre-decoded data would help",
    "fixed": "fixed time per step: a larger batch per accelerator would help",
}
PARTS = {
    "compute": "matrix products, attention",
    "memory_bound": "memory-bound, launches",
    "tp_comm": "tensor, context, expert parallel",
    "pp_comm": "pipeline transfers",
    "bubble": "pipeline bubble",
    "dp_comm": "gradients, stragglers",
    "optimizer": "optimizer",
    "data_loading": "waiting for data",
    "fixed": "fixed",
}
COLUMNS = (
    "workload", "provider", "instance_type", "accelerator", "nodes", "accelerators", "fits", "reason",
    "throughput_per_s", "throughput_low_per_s", "throughput_high_per_s", "throughput_per_accelerator_per_s", "unit",
    "step_time_s", "step_time_low_s", "step_time_high_s", "mfu_ratio", "hfu_ratio", "limited_by", "memory_needed_gib",
    "memory_usable_gib", "oom_ratio", "tensor_parallel", "pipeline_parallel", "context_parallel", "data_parallel",
    "expert_parallel", "interleave", "sequence_parallel", "zero_stage", "micro_batch", "grad_accumulation",
    "recompute", "precision", "stack", "learned_factor",
    "calibration",
)  # fmt: skip


def build_report(name: str, estimates: Sequence[Estimate], warnings: Sequence[str] = ()) -> Report:
    """Return the report of one or several estimates of workload `name`."""
    document = (
        _single(name, estimates[0], warnings) if len(estimates) == 1 else _many(name, estimates, warnings)
    )
    values = {
        "workload": name,
        "estimates": [_values(item) for item in estimates],
        "warnings": list(warnings),
    }
    return Report(document, values, COLUMNS, [_row(name, item) for item in estimates], SCHEMA_VERSION)


def _machines(item: Estimate) -> str:
    inside = devices(item.accelerators, item.machine.accelerator)
    return f"{cluster(item.nodes, item.machine.instance_type)} ({inside or 'no accelerators'})"


def three(value: float) -> str:
    """Format a prediction to three significant digits: `105,000`; more would feign precision."""
    return number(float(f"{value:.3g}"))


def rate(value: Interval, unit: str) -> str:
    """Return `12,300 tokens/s (80 %: 10,900 to 13,900)`."""
    return f"{three(value.value)} {unit}/s (80 %: {three(value.low)} to {three(value.high)})"


def seconds(value: float) -> str:
    """Return a time in ms below one second, else in s."""
    return f"{three(value * 1e3)} ms" if value < 1.0 else f"{three(value)} s"


def _single(name: str, item: Estimate, warnings: Sequence[str]) -> Document:
    speed = item.throughput_per_s
    notes: list[Block] = [Notes("Warnings", tuple(warnings), warning=True)] if warnings else []
    if speed is None or item.layout is None or item.step_s is None:
        headline = f"{name} does not run on {_machines(item)}: {item.reason}"
        return Document(
            headline,
            (),
            (*notes, *_memory(item), *_remedy(item), *_others(item), *_basis(item)),
            success=False,
        )
    headline = f"{name} on {_machines(item)}: {rate(speed, item.unit)}"
    each = speed.value / item.accelerators
    facts = (
        ("per accelerator", f"{three(each)} {item.unit}/s"),
        (
            "step time",
            f"{seconds(item.step_s.value)} (80 %: {seconds(item.step_s.low)} to {seconds(item.step_s.high)})",
        ),
        ("MFU, HFU", f"{percent(item.mfu)}, {percent(item.hfu)} of the peak in {item.precision}"),
        ("layout", layout_words(item.layout)),
        ("limited by", LIMITS.get(item.limited_by, item.limited_by)),
    )
    blocks = (
        *notes,
        Facts("Speed", facts),
        *_breakdown(item),
        *_memory(item),
        *_others(item),
        *_loading(item),
        *_host(item),
    )
    return Document(headline, (), (*blocks, *_basis(item)), success=True)


def _breakdown(item: Estimate) -> list[Block]:
    total = sum(item.breakdown_s.values())
    parts = sorted(item.breakdown_s.items(), key=lambda part: -part[1])
    rows = [
        (PARTS.get(name, name), seconds(value), value / total)
        for name, value in parts
        if value > 5e-4 * total
    ]
    return [Bars("Where the step goes", tuple(rows))]


def _memory(item: Estimate) -> list[Block]:
    memory = item.memory
    if not memory.usable_gib > 0 or memory.needed_gib != memory.needed_gib:
        return []
    need = f"{three(memory.needed_gib)} GiB needed of {three(memory.usable_gib)} GiB usable"
    if item.layout is None:
        missing = memory.needed_gib - memory.allowed_gib
        need += f" by the most frugal layout: {three(missing)} GiB too much ({three(memory.allowed_gib)} GiB allowed)"
    risk = (
        ""
        if memory.oom_ratio is None
        else f"; probability of running out of memory {percent(memory.oom_ratio)}"
    )
    parts = dict(memory.parts) or {"needed": memory.needed_gib}
    if memory.free_gib > 0:
        parts["free"] = memory.free_gib
    whole = max(memory.usable_gib, sum(parts.values()))
    rows = tuple((name, f"{three(value)} GiB", value / whole) for name, value in parts.items() if value > 0)
    return [Bars("Memory of the fullest accelerator", rows, (need + risk,))]


def _others(item: Estimate) -> list[Block]:
    """What the best other layouts lose by, and what was out of reach."""
    report = item.others
    if report is None:
        return []
    if report.offload_gib is not None and report.host_gib is not None:
        fits = "would fit" if report.offload_gib <= report.available_gib else "would still not fit"
        text = f"optimizer states in host memory: {three(report.offload_gib)} GiB, {fits}; {three(report.host_gib)} GiB"
        return [Notes("Offload", (f"{text} of each node's memory; its time is not predicted",))]
    rows = tuple(
        (
            other.words, f"+{percent(other.over_best_ratio)}", f"{three(other.memory_gib)} GiB",
            ", ".join(f"{name} +{seconds(more)}" for name, more in other.loses[:2]),
        )
        for other in report.others
    )  # fmt: skip
    notes = [
        f"{report.layouts:,} layouts searched, {report.too_big:,} out of memory, {report.slower:,} slower"
    ]
    if report.blocked is not None:
        gain, blocked = percent(-report.blocked.over_best_ratio), report.blocked
        notes.append(f"with {three(blocked.memory_gib)} GiB allowed, {blocked.words} would be {gain} faster")
    header = ("other layout", "step", "memory", "loses by")
    return [Grid("Next best layouts", header, rows, "lrrl", tuple(notes))] if rows else []


def _loading(item: Estimate) -> list[Block]:
    loading = item.loading
    if loading is None:
        return []
    marks = percent(MAX_LOADING_RATIO, 0), percent(MIN_BUSY_RATIO, 0)
    rule = f"loading below {marks[0]} of the step, accelerators busy above {marks[1]}"
    if loading.seconds is None or loading.passes is None:
        text = (
            "not checked: the size of a sample is unknown (data.sample_size, or data.size with data.samples)"
        )
        return [Facts("Data loading", (("rule", rule), ("result", text)))]
    took = (
        f"{seconds(loading.seconds)} to read and decode a batch, {percent(loading.share_ratio)} of the step"
    )
    busy = f"accelerators busy {percent(loading.busy_ratio)}"
    result = "holds" if loading.passes else "BROKEN"
    return [Facts("Data loading", (("needed", took), ("busy", busy), ("rule", f"{rule}: {result}")))]


def _host(item: Estimate) -> list[Block]:
    host = item.host
    ram = UNKNOWN if host.memory_gib is None else f"{number(host.memory_gib)} GiB"
    rows = [("checkpoint", f"{number(host.checkpoint_gib)} GiB per node, host memory {ram}")]
    if host.needed_gib is not None:
        short = host.memory_gib is not None and host.memory_gib < host.needed_gib
        text = f"about {number(host.needed_gib)} GiB for processes, loaders and checkpoints"
        rows.append(("needed", f"{text}: more than there is" if short else text))
    if host.data_gib is not None:
        disk = UNKNOWN if host.nvme_gib is None else f"{number(host.nvme_gib)} GiB per node"
        rows.append(("data set", f"{number(host.data_gib)} GiB staged, local disks {disk}"))
    return [Facts("Host", tuple(rows))]


def _remedy(item: Estimate) -> list[Block]:
    remedy = item.remedy
    if remedy is None:
        return []
    where = f"on {cluster(remedy.nodes, item.machine.instance_type)}"
    rows = [
        ("layout", layout_words(remedy.layout)),
        ("there", f"{three(remedy.throughput_per_s)} {item.unit}/s {where}"),
    ]
    if remedy.dropped:
        rows.insert(0, ("without fixing", ", ".join(remedy.dropped)))
    return [Facts("Nearest that fits", tuple(rows))]


def _basis(item: Estimate) -> list[Block]:
    factor = "none" if item.learned_factor == 1.0 else f"step time x {number(item.learned_factor)}"
    rows = (
        ("software stack", f"{item.stack} (training.stack)"),
        ("precision", item.precision),
        ("learned factor", f"{factor} for this accelerator generation, precision and stack"),
        (
            "calibration",
            item.calibration or "none: `planner calibrate` tightens the prediction with your own runs",
        ),
    )
    return [Facts("Rests on", rows, detail=True)]


def _many(name: str, estimates: Sequence[Estimate], warnings: Sequence[str]) -> Document:
    running = [item for item in estimates if item.throughput_per_s is not None]
    best = max(
        running, key=lambda item: item.throughput_per_s.value if item.throughput_per_s else 0.0, default=None
    )
    headline = f"{name}: none of {len(estimates)} clusters can run it"
    if best is not None and best.throughput_per_s is not None:
        headline = f"{name}: fastest of {len(estimates)} is {_machines(best)}: {rate(best.throughput_per_s, best.unit)}"
    blocks: list[Block] = [Notes("Warnings", tuple(warnings), warning=True)] if warnings else []
    blocks += [_speeds(estimates), *_layouts(running)]
    return Document(headline, (), (*blocks, *_shared_basis(estimates)), success=best is not None)


def _shared_basis(estimates: Sequence[Estimate]) -> list[Block]:
    notes = [f"software stack {estimates[0].stack}, precision {estimates[0].precision}"]
    notes += list(dict.fromkeys(f"calibration: {item.calibration}" for item in estimates if item.calibration))
    return [Notes("Rests on", tuple(notes), detail=True)]


def _speeds(estimates: Sequence[Estimate]) -> Grid:
    """What each cluster reaches; why not, below."""
    header = ("cluster", "accelerators", f"{estimates[0].unit}/s", "80 %", "each", "MFU", "memory", "OOM")
    rows, notes = [], ["each: per accelerator; memory: needed of usable"]
    for item in estimates:
        what = (
            cluster(item.nodes, item.machine.instance_type),
            devices(item.accelerators, item.machine.accelerator),
        )
        speed, memory = item.throughput_per_s, item.memory
        if speed is None:
            rows.append((*what, "-", "", "", "", "", ""))
            notes.append(f"{what[0]}: {item.reason}")
            continue
        used = percent(memory.needed_gib / memory.usable_gib, 0)
        risk = "" if memory.oom_ratio is None else percent(memory.oom_ratio, 0)
        span, each = f"{three(speed.low)}-{three(speed.high)}", three(speed.value / item.accelerators)
        rows.append((*what, three(speed.value), span, each, percent(item.mfu, 0), used, risk))
    names, cells, align = without_empty(header, rows, "llrrrrrr")
    return Grid("Clusters", names, cells, align, tuple(notes))


def _layouts(running: Sequence[Estimate]) -> list[Block]:
    """How each cluster would run, and what limits it there."""
    rows = []
    for item in running:
        layout = item.layout
        assert layout is not None
        shape = (
            layout.tensor_parallel,
            layout.pipeline_parallel,
            layout.context_parallel,
            layout.data_parallel,
        )
        batch = f"{layout.micro_batch} x {layout.grad_accumulation}"
        rows.append(
            (
                cluster(item.nodes, item.machine.instance_type), *map(str, shape), str(layout.zero_stage), batch,
                layout.recompute, PARTS.get(item.limited_by, item.limited_by),
            )
        )  # fmt: skip
    header = ("cluster", "tp", "pp", "cp", "dp", "ZeRO", "micro-batch", "recompute", "limited by")
    return [Grid("Layouts", header, tuple(rows), "lrrrrrrll")] if rows else []


def _values(item: Estimate) -> dict[str, Any]:
    speed, step = item.throughput_per_s, item.step_s
    return {
        "provider": item.machine.provider,
        "instance_type": item.machine.instance_type,
        "accelerator": item.machine.accelerator,
        "nodes": item.nodes,
        "accelerators": item.accelerators,
        "fits": not item.reason,
        "reason": item.reason or None,
        "unit": item.unit,
        "throughput_per_s": speed and speed.value,
        "throughput_low_per_s": speed and speed.low,
        "throughput_high_per_s": speed and speed.high,
        "throughput_per_accelerator_per_s": speed and speed.value / item.accelerators,
        "step_time_s": step and step.value,
        "step_time_low_s": step and step.low,
        "step_time_high_s": step and step.high,
        "mfu_ratio": item.mfu,
        "hfu_ratio": item.hfu,
        "breakdown_s": dict(item.breakdown_s) or None,
        "limited_by": item.limited_by or None,
        "layout": None if item.layout is None else asdict(item.layout),
        **_machine_values(item),
        "precision": item.precision,
        "stack": item.stack,
        "learned_factor": item.learned_factor,
        "calibration": item.calibration or None,
        **_instead_values(item),
    }


def _machine_values(item: Estimate) -> dict[str, Any]:
    """What the run asks of accelerators, disks and host."""
    return {
        "memory": {
            "needed_gib": item.memory.needed_gib,
            "usable_gib": item.memory.usable_gib,
            "allowed_gib": item.memory.allowed_gib,
            "free_gib": item.memory.free_gib,
            "parts_gib": dict(item.memory.parts) or None,
            "oom_ratio": item.memory.oom_ratio,
        },
        "data_loading": None if item.loading is None else {
            "seconds_per_step_s": item.loading.seconds,
            "share_ratio": item.loading.share_ratio,
            "busy_ratio": item.loading.busy_ratio,
            "passes": item.loading.passes,
        },
        "host": {
            "checkpoint_per_node_gib": item.host.checkpoint_gib,
            "memory_gib": item.host.memory_gib,
            "memory_needed_gib": item.host.needed_gib,
            "local_nvme_gib": item.host.nvme_gib,
            "staged_data_gib": item.host.data_gib,
        },
    }  # fmt: skip


def _instead_values(item: Estimate) -> dict[str, Any]:
    """Other layouts, and what would fit where this does not."""
    return {
        "other_layouts": [] if item.others is None else [
            {
                "layout": other.words,
                "step_time_over_best_ratio": other.over_best_ratio,
                "memory_gib": other.memory_gib,
                "loses_s": dict(other.loses),
            }
            for other in item.others.others
        ],
        "nearest_fit": None if item.remedy is None else {
            "nodes": item.remedy.nodes,
            "released": list(item.remedy.dropped),
            "throughput_per_s": item.remedy.throughput_per_s,
            "layout": asdict(item.remedy.layout),
        },
    }  # fmt: skip


def _row(name: str, item: Estimate) -> dict[str, Any]:
    values = _values(item)
    flat = {**values, **(values["layout"] or {}), "workload": name, "fits": "yes" if values["fits"] else "no"}
    memory = values["memory"]
    flat |= {"memory_needed_gib": memory["needed_gib"], "memory_usable_gib": memory["usable_gib"]}
    flat["oom_ratio"] = memory["oom_ratio"]
    return {name: flat.get(name) for name in COLUMNS}
