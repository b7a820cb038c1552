"""The screen of an estimate: speed, whole run, memory and what limits them; or several clusters side by side."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.estimation import report_inference as inference
from planner.estimation import report_prices as prices
from planner.plan.front_scale import chance
from planner.plan.words import layout_words, short_layout
from planner.render.model import Column, Section, Value, table_section
from planner.render.numbers import number, percent, whole_percent
from planner.render.precision import figure, known_places, with_interval
from planner.render.screen import Row, Screen
from planner.render.units import seconds, three
from planner.render.words import cluster

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.estimation.values import Answered, Estimate, Interval

_SEEN = 5e-3  # share of a part in a run from which it is named
_RISKY = 0.1  # probability of running out of memory from which it is said
_BEFORE = "Before you rely on it"


def one_screen(
    name: str, item: Estimate, words: Mapping[str, str], limits: Mapping[str, str], warnings: Sequence[str]
) -> Screen:  # fmt: skip
    """The screen of one cluster.

    Args:
        name: of the workload.
        item: the estimate.
        words: of the parts of a step.
        limits: what each largest part means, and what would change it.
        warnings: of the run.
    """
    inside = f"{cluster(item.nodes, item.machine.instance_type)}, {item.precision}, {item.stack} software"
    if item.is_inference:
        inside = f"{cluster(item.nodes, item.machine.instance_type)}, {item.precision} weights, engine {item.stack}"
    title = f"{name} on {inside}"
    following = (f"compare FILE --pick {item.machine.instance_type}", "optimize FILE")
    if item.throughput_per_s is None or item.layout is None or item.step_s is None:
        rows: list[Row] = [
            ("fits", "fits", "no", "text", f"no: {item.reason}"),
            _memory(item),
            *_remedy(item),
            *_offload(item),
            *prices.price_rows(item),
        ]
        return Screen(title, rows, None, warnings, _basis(item), ("optimize FILE",), _BEFORE)
    if item.answered is not None:
        answering = _answering(item, item.answered)
        return Screen(
            title,
            answering,
            _step(item, inference.parts(item.answered)),
            [*_low(item), *warnings],
            _basis(item),
            following,
            _BEFORE,
        )
    speed = item.throughput_per_s
    rows = [
        ("speed", "speed", speed.value, "number", f"{_known(speed, f'{item.unit}/s')}, MFU {whole_percent(item.mfu)}"),
        *_run(item), *prices.price_rows(item), _memory(item),
        ("layout", "layout", short_layout(item.layout), "text", short_layout(item.layout)),
        ("limited_by", "limited by", item.limited_by, "text", limits.get(item.limited_by, item.limited_by)),
    ]  # fmt: skip
    return Screen(
        title,
        rows,
        _step(item, words),
        [*_notes(item, warnings), *_beyond_steps(item)],
        _basis(item),
        following,
        _BEFORE,
    )


def _answering(item: Estimate, answered: Answered) -> list[Row]:
    """Batch inference: requests and replicas, where training has steps."""
    assert item.layout is not None
    layout, hours = layout_words(item.layout, inference=True), answered.hours
    work = f"{_known(hours, 'h')} for {answered.amount:,} {answered.what}, without start-up and interruptions"
    limit_text = inference.limit_words(item, answered)
    return [
        ("speed", "speed", answered.rate.value, "number",
         f"{inference.headline(answered)}; MFU {whole_percent(item.mfu)}"),
        ("work_hours", "all of it", hours.value, "hours", work), *prices.price_rows(item), _memory(item),
        ("layout", "layout", layout, "text", layout), ("limited_by", "limited by", item.limited_by, "text", limit_text),
    ]  # fmt: skip


def _known(value: Interval, unit: str) -> str:
    return with_interval(value.value, value.low, value.high, unit)


def _run(item: Estimate) -> list[Row]:
    if item.run is None:
        return []
    spent = item.run.accelerator_hours
    places = known_places(spent.value, (spent.high - spent.low) / 2.0)
    text = f"{_known(item.run.wall_hours, 'h')}, {figure(spent.value, places)} accelerator-hours"
    text += f" at a typical site; {item.run.flops:.3g} FLOPs" + (
        ", where it stops on average" if item.run.stops_early else ""
    )
    return [("wall_hours", "whole run", item.run.wall_hours.value, "hours", text)]


def _memory(item: Estimate) -> Row:
    memory = item.memory
    text = f"{three(memory.needed_gib)} of {three(memory.usable_gib)} GiB"
    if item.layout is None:
        subject = "choice of replicas (each within one machine)" if item.is_inference else "layout"
        text += f" by the most frugal {subject}, {three(memory.allowed_gib)} GiB allowed"
        if not item.is_inference and memory.free_gib > 0 and memory.oom_ratio is not None:
            least = math.floor(100.0 * (1.0 - memory.oom_ratio)) / 100.0
            text += f"; risk of running out: {chance(memory.oom_ratio)}"
            text += f" (training.memory.confidence: {least:g} accepts that)"
    elif memory.oom_ratio is not None:
        text += f"; risk of running out: {chance(memory.oom_ratio)}"
    return ("memory_gib", "memory", memory.needed_gib, "gib", text)


def _remedy(item: Estimate) -> list[Row]:
    remedy = item.remedy
    if remedy is None:
        return []
    text = f"{cluster(remedy.nodes, item.machine.instance_type)}: {layout_words(remedy.layout)}; "
    text += f"{three(remedy.throughput_per_s)} {item.unit}/s"
    if remedy.dropped:
        text += f", without fixing {', '.join(remedy.dropped)}"
    return [("nearest_fit", "instead", text, "text", text)]


def _offload(item: Estimate) -> list[Row]:
    """What would fit these machines with more in host memory, where that holds it."""
    report, host = item.others, item.host.memory_gib
    if report is None or report.offload_gib is None or report.host_gib is None:
        return []
    if report.offload_gib > report.available_gib or (host is not None and report.host_gib > host):
        return []
    text = f"{report.offload_words}: {three(report.offload_gib)} GiB, and "
    text += f"{three(report.host_gib)} GiB of each node's {'memory' if host is None else f'{three(host)}'}"
    return [("offload", "or here", report.offload_gib, "gib", text)]


def _step(item: Estimate, words: Mapping[str, str]) -> Section:
    """Where the step goes, the largest part first."""
    total = sum(item.breakdown_s.values())
    parts = sorted(item.breakdown_s.items(), key=lambda part: -part[1])
    rows: list[tuple[Value, ...]] = [
        (words.get(name, name), seconds(value), value / total)
        for name, value in parts
        if value > 5e-3 * total
    ]
    batch, title = "a step of ", "Where the step goes"
    if item.answered is not None:
        batch, title = f"{item.answered.batch:,} {item.answered.what} in ", "Where the time goes"
    columns = (
        Column("part", batch + (seconds(item.step_s.value) if item.step_s else ""), "text"),
        Column("time", "time", "quantity"), Column("share_ratio", "share", "ratio", 0),
    )  # fmt: skip
    return table_section("step_parts", title, columns, rows)


def _low(item: Estimate) -> list[str]:
    return [f"low confidence: {'; '.join(item.doubts)}"] if item.doubts else []


def _notes(item: Estimate, warnings: Sequence[str]) -> list[str]:
    notes = [*_low(item), *warnings]
    if item.memory.oom_ratio is not None and item.memory.oom_ratio > _RISKY:
        notes.append("memory is tight: a smaller micro-batch or recompute leaves more room (--layout)")
    loading = item.loading
    if loading is not None and loading.passes is False:
        notes.append(
            f"data loading takes {percent(loading.share_ratio, 0)} of the step: shard, cache, or more workers"
        )
    if loading is not None and loading.passes is None:
        notes.append("data loading is not checked: the size of a sample is unknown (data.sample_size)")
    host = item.host
    if host.needed_gib is not None and host.memory_gib is not None and host.memory_gib < host.needed_gib:
        notes.append(f"host memory: {number(host.needed_gib)} GiB needed of {number(host.memory_gib)} GiB")
    if not item.calibration:
        notes.append("predicted, not measured: `planner calibrate` with your log tightens it")
    return notes


def _beyond_steps(item: Estimate) -> list[str]:
    """What the hours of a whole run are made of."""
    if item.run is None:
        return []
    wall = item.run.wall_hours.value
    (name, steps), *others = item.run.parts
    rest = [f", {other} {percent(hours / wall, 0)}" for other, hours in others if hours > _SEEN * wall]
    return [f"whole run: {name} {three(steps)} h ({percent(steps / wall, 0)}){''.join(rest)}"]


def _basis(item: Estimate) -> str:
    basis = item.calibration or "No measurement from you"
    others = "" if item.others is None else f"; best of {item.others.layouts:,} layouts searched"
    return f"{basis[0].upper()}{basis[1:]}{others}. {prices.BASIS}"


def several_screen(
    name: str, title: str, estimates: Sequence[Estimate], table: Section, costs: Sequence[Section],
    warnings: Sequence[str],
) -> Screen:  # fmt: skip
    """The screen of several clusters.

    Args:
        name: of the workload.
        title: which is the fastest.
        estimates: of each cluster.
        table: of the clusters.
        costs: what they cost, if anything is known of it.
        warnings: of the run.
    """
    running = [item for item in estimates if item.throughput_per_s is not None]
    heading = f"{name} on {len(estimates)} clusters"
    rows: list[Row] = [("fastest", "fastest", title, "text", title)]
    if running:
        best = max(running, key=_each)
        text = f"{cluster(best.nodes, best.machine.instance_type)}: {three(_each(best))} {best.unit}/s per accelerator"
        rows.append(("leanest", "leanest", text, "text", text))
    rows += prices.cheapest_row(running)
    notes = _joined_notes(running, warnings)
    picked = ",".join(dict.fromkeys(item.machine.instance_type for item in running))
    following = (f"compare FILE --pick {picked}", "optimize FILE") if picked else ("optimize FILE",)
    joined = replace(
        table,
        tables=(*table.tables, *(section_table for section in costs for section_table in section.tables)),
    )
    return Screen(heading, rows, joined, notes, _basis(estimates[0]), following, _BEFORE)


def _joined_notes(running: Sequence[Estimate], warnings: Sequence[str]) -> list[str]:
    """The notes of all clusters, each once; one that is not of all names its clusters."""
    of: dict[str, list[str]] = {}
    for item in running:
        for note in _notes(item, warnings):
            of.setdefault(note, []).append(cluster(item.nodes, item.machine.instance_type))
    return [
        note if len(names) == len(running) else f"{', '.join(names)}: {note}" for note, names in of.items()
    ]


def _each(item: Estimate) -> float:
    return 0.0 if item.throughput_per_s is None else item.throughput_per_s.value / item.accelerators
