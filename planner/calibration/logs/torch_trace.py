"""Trace of torch.profiler (Chrome trace events): the ranges `ProfilerStep#N` that `prof.step()` marks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from planner.calibration.logs import Log, ReadOptions, read_text
from planner.calibration.logs.look import kind_of, object_of
from planner.errors import InputError

_LINE = 10_000  # characters of a line that may be an object of a log: a trace is longer
_STEP = re.compile(r"ProfilerStep\s?#(\d+)")
_NOTE = (
    "profiling itself slows the steps, most with stacks or shapes recorded; a plain log is better evidence"
)


def read(path: Path, options: ReadOptions) -> Log:
    """Read one duration per step: from its start to the next one's, the last by its own length."""
    del options
    text = read_text(path)
    first = object_of(text[:_LINE].partition("\n")[0])
    if first is not None and "step" in map(kind_of, first):
        raise InputError(f"{path}:1: an object of a step without its time; give each line step and time")
    try:
        trace = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}:{error.lineno}: not whole JSON ({error.msg}); is the trace cut short?"
        ) from None
    except (
        ValueError,
        RecursionError,
    ) as error:  # a whole number of thousands of digits, or brackets without end
        raise InputError(f"{path}: not a trace: {str(error)[:200]}") from None
    events = trace.get("traceEvents") if isinstance(trace, dict) else trace
    if not isinstance(events, list):
        raise InputError(
            f"{path}: no 'traceEvents' in it; write the trace with prof.export_chrome_trace(...)"
        )
    spans = _spans(events)
    if not spans:
        raise InputError(f"{path}: no range 'ProfilerStep#N'; call prof.step() after each training step")
    numbers = sorted(spans)
    seconds = []
    for at, number in enumerate(numbers):
        start, length = spans[number]
        follows = at + 1 < len(numbers) and numbers[at + 1] == number + 1
        took = spans[number + 1][0] - start if follows else length
        if took > 0:
            seconds.append(took * 1e-6)
    world = trace.get("distributedInfo", {}) if isinstance(trace, dict) else {}
    size = world.get("world_size") if isinstance(world, dict) else None
    return Log("torch", tuple(seconds), accelerators=size if isinstance(size, int) else None, note=_NOTE)


def _spans(events: list[Any]) -> dict[int, tuple[float, float]]:
    """Start and length in microseconds of each step; of several tracks (host, device) the host's."""
    spans: dict[int, tuple[float, float]] = {}
    for event in events:
        if (
            not isinstance(event, dict)
            or event.get("ph") != "X"
            or str(event.get("cat", "")).startswith("gpu")
        ):
            continue
        hit = _STEP.match(str(event.get("name", "")))
        start, length = event.get("ts"), event.get("dur")
        if hit and isinstance(start, int | float) and isinstance(length, int | float):
            number = int(hit[1])
            if number not in spans or length > spans[number][1]:
                spans[number] = (float(start), float(length))
    return spans
