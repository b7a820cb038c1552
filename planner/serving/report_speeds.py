"""Predicted speeds of a serving fleet, as values and as a section of its report."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from planner.render import numbers
from planner.render.model import Column, Section, table_section

if TYPE_CHECKING:
    from planner.serving.answer import ServingAnswer
    from planner.serving.speeds import Speed

_KEYS = {
    "expected": "expected_requests_per_s", "low": "low_requests_per_s", "high": "high_requests_per_s",
    "token_s": "time_per_token_s", "first_token_s": "time_to_first_token_s",
}  # fmt: skip


def speed_values(answer: ServingAnswer) -> list[dict[str, Any]]:
    """The speeds as machine-readable rows; empty where all are given."""
    return [{_KEYS.get(key, key): value for key, value in asdict(speed).items()} for speed in answer.speeds]


def speed_section(answer: ServingAnswer) -> Section:
    """What one machine serves of each bucket alone, how sure that is, and what a user waits."""
    columns = (
        Column("machine", "machine", "text"), Column("bucket", "bucket", "text"),
        Column("requests_per_s", "counted req/s", "number"), Column("interval", "80 % interval", "text"),
        Column("tensor_parallel", "GPUs a replica", "count"), Column("concurrency", "at once", "count"),
        Column("time_per_token_ms", "ms per token", "number"),
        Column("time_to_first_token_s", "s to first token", "number"), Column("basis", "speed is", "text"),
    )  # fmt: skip
    rows = [
        (speed.machine, speed.bucket, speed.requests_per_s, _interval(speed), speed.tensor_parallel or None,
         speed.concurrency or None, speed.token_s * 1e3 or None, speed.first_token_s or None, _basis(speed))
        for speed in answer.speeds
    ]  # fmt: skip
    note = (
        f"Machines are counted with the speed that they reach with {numbers.percent(answer.confidence, 0)}. A load test"
        " of one bucket (machines.measured) narrows the interval. The first token waits for the prompts read beside it,"
        " not in a queue: keep headroom_ratio for queues and bursts."
    )
    notes = (*(f"low confidence: {doubt}" for doubt in answer.doubts), note)
    return table_section(
        "speeds", "Predicted speeds, one machine on one bucket alone", columns, rows, notes=notes
    )


def _interval(one: Speed) -> str:
    if one.basis == "measured" or not one.high:
        return ""
    return f"{numbers.number(one.low)} to {numbers.number(one.high)}"


def _basis(one: Speed) -> str:
    return one.basis if one.requests_per_s else "too slow or too small"
