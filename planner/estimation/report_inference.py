"""Batch inference in an estimate: requests, answers, replicas and the engine instead of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.plan.words import layout_words
from planner.render.model import Column, Section, Unit, Value, facts, table_section
from planner.render.numbers import UNKNOWN, number, percent
from planner.render.units import seconds, three

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.estimation.values import Answered, Estimate, Interval

_Facts = list[tuple[str, str, Value, Unit, str]]
LIMITS = {
    "compute": "reading prompts: a faster chip, 8-bit arithmetic, or keeping a prefix that prompts share would help",
    "generation": "writing answers: memory bandwidth, and memory for more requests at once; smaller weights would help",
}
_ITEM_LIMITS = {
    "compute": "arithmetic: a faster chip would help",
    "data_loading": "data loading: faster storage, more CPU cores or smaller files would help",
}
_PARTS = {"compute": "reading prompts", "generation": "writing answers"}
_ITEM_PARTS = {"compute": "forward passes", "data_loading": "waiting for data"}


def parts(answered: Answered) -> dict[str, str]:
    """Words for the parts of the time, of models that write nothing too."""
    return _PARTS if answered.output_tokens_per_s else _ITEM_PARTS


def headline(answered: Answered) -> str:
    """The rate with its interval, of answers' tokens too where the model writes any."""
    rate = _span(answered.rate, f" {answered.what}/s")
    tokens_per_s = answered.output_tokens_per_s
    return rate if tokens_per_s is None else f"{rate}, {three(tokens_per_s.value)} output tokens/s"


def limit_words(item: Estimate, answered: Answered) -> str:
    """What limits the rate, and what would raise it."""
    return (LIMITS if answered.output_tokens_per_s else _ITEM_LIMITS)[item.limited_by]


def speed_sections(item: Estimate, answered: Answered) -> list[Section]:
    """Speed on this cluster, and the whole work at that speed."""
    assert item.layout is not None and item.step_s is not None
    each, step, hours = answered.rate.value / item.accelerators, item.step_s, answered.hours
    words = limit_words(item, answered)
    replicas = layout_words(item.layout, inference=True)
    batch = (
        f"{seconds(step.value)} (80 %: {seconds(step.low)} to {seconds(step.high)}) for {answered.batch:,}"
        f" {answered.what}, after which progress can be saved"
    )
    total = answered.hours.value * item.accelerators
    rows: _Facts = [
        ("rate_per_accelerator_per_s", "per accelerator", each, "number", f"{three(each)} {answered.what}/s"),
        ("throughput_per_s", "tokens", item.units_per_step / step.value, "number",
         f"{three(item.units_per_step / step.value)} {item.unit}/s, prompts and answers"),
        ("batch_time_s", "batch", step.value, "seconds", batch),
        ("mfu_ratio", "MFU", item.mfu, "ratio", f"{percent(item.mfu)} of the peak in {item.precision}"),
        ("layout", "layout", replicas, "text", replicas),
        ("limited_by", "limited by", item.limited_by, "text", words),
    ]  # fmt: skip
    if answered.output_tokens_per_s is None:
        rows = [row for row in rows if row[0] != "throughput_per_s"]
    work: _Facts = [
        ("amount", "work", float(answered.amount), "number", f"{answered.amount:,} {answered.what}"),
        ("work_hours", "duration", hours.value, "number",
         f"{_span(hours, ' h')} at this speed, without start-up and interruptions (`planner optimize` counts them)"),
        ("accelerator_hours", "accelerator-hours", total, "number", three(total)),
    ]  # fmt: skip
    return [facts("speed", "Speed", rows), facts("run", "All of it", work)]


def host_section(item: Estimate) -> Section:
    """What a node's memory and disks must hold."""
    host = item.host
    ram = UNKNOWN if host.memory_gib is None else f"{number(host.memory_gib)} GiB"
    need = UNKNOWN if host.needed_gib is None else f"about {number(host.needed_gib)} GiB"
    short = host.needed_gib is not None and host.memory_gib is not None and host.memory_gib < host.needed_gib
    text = f"{need} for processes, of {ram}" + (": more than there is" if short else "")
    rows: _Facts = [("memory_needed_gib", "memory", host.needed_gib, "gib", text)]
    if host.data_gib is not None:
        disk = UNKNOWN if host.nvme_gib is None else f"{number(host.nvme_gib)} GiB per node"
        staged_text = f"{number(host.data_gib)} GiB staged, local disks {disk}"
        rows.append(("staged_data_gib", "input", host.data_gib, "gib", staged_text))
    return facts("host", "Host", rows)


def basis_section(item: Estimate, answered: Answered) -> Section:
    """The engine and the measurements that the estimate rests on."""
    engine = f"{item.stack}: {answered.evidence}"
    precision = f"weights {item.precision}" + (
        f", keys and values {answered.kv_precision}" if answered.kv_precision else ""
    )
    none = "none: one load test narrows the interval (`planner calibrate`)"
    rows: _Facts = [
        ("stack", "engine", item.stack, "text", engine), ("precision", "precision", item.precision, "text", precision),
        ("calibration", "calibration", item.calibration or None, "text", item.calibration or none),
    ]  # fmt: skip
    if item.doubts:
        words = "low: " + "; ".join(item.doubts)
        rows.append(("confidence", "confidence", words, "text", words))
    return facts("basis", "Rests on", rows, detail=not item.doubts)


def layouts_section(running: Sequence[Estimate]) -> list[Section]:
    """Replicas on each cluster, and what limits them."""
    rows: list[tuple[Value, ...]] = [
        (
            (item.nodes, item.machine.instance_type), item.layout.data_parallel, item.layout.tensor_parallel,
            _PARTS.get(item.limited_by, item.limited_by),
        )
        for item in running if item.layout is not None
    ]  # fmt: skip
    columns = (
        Column("cluster", "cluster", "cluster"), Column("data_parallel", "replicas", "count"),
        Column("tensor_parallel", "accelerators each", "count"), Column("limited_by", "limited by", "text"),
    )  # fmt: skip
    return [table_section("layouts", "Replicas", columns, rows)] if rows else []


def answered_values(answered: Answered | None) -> dict[str, Any]:
    """The machine form; null of training."""
    if answered is None:
        return {"answered": None}
    rate, tokens_per_s, hours = answered.rate, answered.output_tokens_per_s, answered.hours
    return {
        "answered": {
            "amount": answered.amount,
            "what": answered.what,
            "batch": answered.batch,
            "rate_per_s": rate.value,
            "rate_low_per_s": rate.low,
            "rate_high_per_s": rate.high,
            "output_tokens_per_s": tokens_per_s and tokens_per_s.value,
            "work_hours": hours.value,
            "work_hours_low": hours.low,
            "work_hours_high": hours.high,
            "engine": answered.engine,
            "kv_precision": answered.kv_precision or None,
        }
    }


def _span(value: Interval, unit: str) -> str:
    return f"{three(value.value)}{unit} (80 %: {three(value.low)} to {three(value.high)})"
