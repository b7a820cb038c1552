"""Estimates as a report: one cluster in full, several as a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.estimation import report_inference as inference
from planner.estimation import report_prices as prices
from planner.estimation import report_rows as rows_of_estimates
from planner.estimation.report_rows import LIMITS, PARTS
from planner.estimation.screen import one_screen, several_screen
from planner.estimation.values import MAX_LOADING_RATIO, MIN_BUSY_RATIO
from planner.plan.words import layout_words
from planner.render.model import (
    Answer,
    Chart,
    Column,
    Section,
    Table,
    Unit,
    Value,
    facts,
    table_section,
    versioned,
)
from planner.render.numbers import UNKNOWN, number, percent
from planner.render.screen import on_screen
from planner.render.units import seconds, three
from planner.render.words import cluster, devices

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from planner.estimation.answer import Estimates
    from planner.estimation.values import Estimate, Interval

SCHEMA_VERSION = 1
_Facts = list[tuple[str, str, Value, Unit, str]]


def estimates_report(estimates: Estimates, *, details: Collection[str] = ()) -> Answer:
    """The answer of `planner estimate`; `details`: keys of sections to show in place of the screen, or `all`."""
    return build_report(estimates.name, estimates.estimates, estimates.warnings, details=details)


def build_report(
    name: str, estimates: Sequence[Estimate], warnings: Sequence[str] = (), *, details: Collection[str] = ()
) -> Answer:  # fmt: skip
    """Return one or several estimates of workload `name` in the shape that every format is made of."""
    several = len(estimates) > 1
    title, sections, success = _many(name, estimates) if several else _single(name, estimates[0])
    if warnings:
        sections = [Section("warnings", "Warnings", tuple(warnings), warning=True), *sections]
    values = {
        "workload": name,
        "estimates": [rows_of_estimates.values_of(item) for item in estimates],
        "warnings": list(warnings),
    }
    whole = Answer(
        f"Estimate of {name}", title, (), tuple(sections), versioned(values, SCHEMA_VERSION), rows_of_estimates.COLUMNS,
        [rows_of_estimates.row_of(name, item) for item in estimates], success=success,
    )  # fmt: skip
    if several:
        table = next(section for section in sections if section.key == "clusters")
        best = title.rpartition(" is ")[2] if " is " in title else title.partition(": ")[2]
        costs = [section for section in sections if section.key == "prices"]
        return on_screen(whole, several_screen(name, best, estimates, table, costs, warnings), details)
    return on_screen(whole, one_screen(name, estimates[0], PARTS, LIMITS, warnings), details)


def _machines(item: Estimate) -> str:
    inside = devices(item.accelerators, item.machine.accelerator)
    return f"{cluster(item.nodes, item.machine.instance_type)} ({inside or 'no accelerators'})"


def rate(value: Interval, unit: str) -> str:
    """Return `12,300 tokens/s (80 %: 10,900 to 13,900)`."""
    return f"{three(value.value)} {unit}/s (80 %: {three(value.low)} to {three(value.high)})"


def _single(name: str, item: Estimate) -> tuple[str, list[Section], bool]:
    speed = item.throughput_per_s
    if speed is None or item.layout is None or item.step_s is None:
        title = f"{name} does not run on {_machines(item)}: {item.reason}"
        parts = [*_memory(item), *_remedy(item), *prices.price_section(item), *_others(item), _basis(item)]
        return title, parts, False
    if item.answered is not None:
        title = f"{name} on {_machines(item)}: {inference.headline(item.answered)}"
        sections = [
            *inference.speed_sections(item, item.answered), *prices.price_section(item), _breakdown(item),
            *_memory(item), *_loading(item), inference.host_section(item), inference.basis_section(item, item.answered),
        ]  # fmt: skip
        return title, sections, True
    title = f"{name} on {_machines(item)}: {rate(speed, item.unit)}"
    each, step = speed.value / item.accelerators, item.step_s
    spread = f"{seconds(step.value)} (80 %: {seconds(step.low)} to {seconds(step.high)})"
    use = f"{percent(item.mfu)}, {percent(item.hfu)} of the peak in {item.precision}"
    limit = LIMITS.get(item.limited_by, item.limited_by)
    rows: _Facts = [
        (
            "throughput_per_accelerator_per_s",
            "per accelerator",
            each,
            "number",
            f"{three(each)} {item.unit}/s",
        ),
        ("step_time_s", "step time", step.value, "seconds", spread),
        ("mfu_ratio", "MFU, HFU", item.mfu, "ratio", use),
        ("layout", "layout", layout_words(item.layout), "text", layout_words(item.layout)),
        ("limited_by", "limited by", item.limited_by, "text", limit),
    ]
    sections = [
        facts("speed", "Speed", rows), *_run(item), *prices.price_section(item), _breakdown(item), *_memory(item),
        *_others(item), *_loading(item), _host(item), _basis(item),
    ]  # fmt: skip
    return title, sections, True


def _run(item: Estimate) -> list[Section]:
    """The whole run: work, hours and what they are made of, accelerator-hours and goodput."""
    run = item.run
    if run is None:
        return []
    total, wall, useful = run.accelerator_hours, run.wall_hours, run.goodput
    spent = f"{three(total.value)} (80 %: {three(total.low)} to {three(total.high)})"
    lasts = f"{three(wall.value)} h (80 %: {three(wall.low)} to {three(wall.high)})"
    bounds = f"{percent(useful.low)} on a first large run, {percent(useful.high)} at best"
    left = f"{percent(useful.value)} ({bounds}), the share of the training steps"
    parts = " + ".join(f"{name} {three(hours)} h" for name, hours in run.parts if hours > 0)
    stops = f"{number(run.stops)} unplanned, a checkpoint every {three(run.checkpoint_interval_hours * 60.0)} minutes"
    return [facts("run", "Whole run", [
        ("total_flops", "work", run.flops, "number", f"{run.flops:.3g} FLOPs"),
        ("accelerator_hours", "accelerator-hours", total.value, "number", spent),
        ("wall_hours", "duration", wall.value, "number", lasts),
        ("time_parts", "made of", parts, "text", parts),
        ("goodput_ratio", "goodput", useful.value, "ratio", left),
        ("stops", "stops", run.stops, "number", stops),
    ])]  # fmt: skip


def _breakdown(item: Estimate) -> Section:
    total = sum(item.breakdown_s.values())
    parts = sorted(item.breakdown_s.items(), key=lambda part: -part[1])
    labels, title = PARTS, "Where the step goes"
    if item.answered is not None:
        labels, title = inference.parts(item.answered), "Where the time goes"
    shown = [(labels.get(name, name), value) for name, value in parts if value > 5e-4 * total]
    return _parts("step", title, shown, "seconds", total, "")


def _parts(
    key: str, title: str, parts: list[tuple[str, float]], unit: Unit, whole: float, note: str
) -> Section:
    """Parts of a whole as bars."""
    names, values = tuple(name for name, _ in parts), tuple(value for _, value in parts)
    return Section(
        key, title, charts=(Chart(key, "", "parts", names, (("", values),), unit, note, whole=whole),)
    )


def _memory(item: Estimate) -> list[Section]:
    memory = item.memory
    if not memory.usable_gib > 0 or memory.needed_gib != memory.needed_gib:
        return []
    need = f"{three(memory.needed_gib)} GiB needed of {three(memory.usable_gib)} GiB usable"
    if item.layout is None:
        missing = memory.needed_gib - memory.allowed_gib
        choice = "choice of replicas" if item.is_inference else "layout"
        need += f" by the most frugal {choice}: {three(missing)} GiB too much ({three(memory.allowed_gib)} GiB allowed)"
    risk = (
        ""
        if memory.oom_ratio is None
        else f"; probability of running out of memory {percent(memory.oom_ratio)}"
    )
    parts = dict(memory.parts) or {"needed": memory.needed_gib}
    if memory.free_gib > 0:
        parts["free"] = memory.free_gib
    whole = max(memory.usable_gib, sum(parts.values()))
    shown = [(name, value) for name, value in parts.items() if value > 0]
    return [_parts("memory", "Memory of the fullest accelerator", shown, "gib", whole, need + risk)]


def _others(item: Estimate) -> list[Section]:
    """What the best other layouts lose by, and what was out of reach."""
    report = item.others
    if report is None:
        return []
    if report.offload_gib is not None and report.host_gib is not None:
        fits = "would fit" if report.offload_gib <= report.available_gib else "would still not fit"
        text = f"with {report.offload_words}: {three(report.offload_gib)} GiB, {fits}"
        return [
            Section("offload", "Offload", (f"{text}; {three(report.host_gib)} GiB of each node's memory",))
        ]
    rows: list[tuple[Value, ...]] = [
        (
            other.words, other.over_best_ratio, other.memory_gib,
            ", ".join(f"{name} +{seconds(more)}" for name, more in other.loses[:2]),
        )
        for other in report.others
    ]  # fmt: skip
    fitting = f"{report.slower:,} {'others fit' if report.measured else 'slower'}"
    notes = [f"{report.layouts:,} layouts searched, {report.too_big:,} out of memory, {fitting}"]
    if report.measured:
        notes.append(f"the layout is {report.measured}")
    if report.simpler is not None:
        notes.append(report.simpler_words)
    if report.blocked is not None:
        gain, blocked = percent(-report.blocked.over_best_ratio), report.blocked
        notes.append(f"with {three(blocked.memory_gib)} GiB allowed, {blocked.words} would be {gain} faster")
    columns = (
        Column("layout", "other layout", "text"), Column("step_time_over_best_ratio", "step", "percent_change"),
        Column("memory_gib", "memory", "gib"), Column("loses", "loses by", "text"),
    )  # fmt: skip
    return [table_section("other_layouts", "Next best layouts", columns, rows, notes)] if rows else []


def _loading(item: Estimate) -> list[Section]:
    loading = item.loading
    if loading is None:
        return []
    marks = percent(MAX_LOADING_RATIO, 0), percent(MIN_BUSY_RATIO, 0)
    rule = f"loading below {marks[0]} of the step, accelerators busy above {marks[1]}"
    title = "Data loading"
    if loading.seconds is None or loading.passes is None:
        text = (
            "not checked: the size of a sample is unknown (data.sample_size, or data.size with data.samples)"
        )
        return [
            facts(
                "loading",
                title,
                [("rule", "rule", rule, "text", rule), ("result", "result", None, "text", text)],
            )
        ]
    took = (
        f"{seconds(loading.seconds)} to read and decode a batch, {percent(loading.share_ratio)} of the step"
    )
    busy = f"accelerators busy {percent(loading.busy_ratio)}"
    result = "holds" if loading.passes else "BROKEN"
    return [facts("loading", title, [
        ("seconds_per_step_s", "needed", loading.seconds, "seconds", took),
        ("busy_ratio", "busy", loading.busy_ratio, "ratio", busy),
        ("rule", "rule", result, "text", f"{rule}: {result}"),
    ])]  # fmt: skip


def _host(item: Estimate) -> Section:
    host = item.host
    ram = UNKNOWN if host.memory_gib is None else f"{number(host.memory_gib)} GiB"
    saved_text = f"{number(host.checkpoint_gib)} GiB per node, host memory {ram}"
    rows: _Facts = [("checkpoint_per_node_gib", "checkpoint", host.checkpoint_gib, "gib", saved_text)]
    if host.needed_gib is not None:
        short = host.memory_gib is not None and host.memory_gib < host.needed_gib
        text = f"about {number(host.needed_gib)} GiB for processes, loaders and checkpoints"
        text = f"{text}: more than there is" if short else text
        rows.append(("memory_needed_gib", "needed", host.needed_gib, "gib", text))
    if host.data_gib is not None:
        disk = UNKNOWN if host.nvme_gib is None else f"{number(host.nvme_gib)} GiB per node"
        text = f"{number(host.data_gib)} GiB staged, local disks {disk}"
        rows.append(("staged_data_gib", "data set", host.data_gib, "gib", text))
    return facts("host", "Host", rows)


def _remedy(item: Estimate) -> list[Section]:
    remedy = item.remedy
    if remedy is None:
        return []
    where = f"on {cluster(remedy.nodes, item.machine.instance_type)}"
    speed, layout = remedy.throughput_per_s, layout_words(remedy.layout, inference=item.is_inference)
    rows: _Facts = [
        ("layout", "layout", layout, "text", layout),
        ("throughput_per_s", "there", speed, "number", f"{three(speed)} {item.unit}/s {where}"),
    ]
    if remedy.dropped:
        dropped = ", ".join(remedy.dropped)
        rows.insert(0, ("released", "without fixing", dropped, "text", dropped))
    return [facts("nearest_fit", "Nearest that fits", rows)]


def _basis(item: Estimate) -> Section:
    factor = "none" if item.learned_factor == 1.0 else f"step time x {number(item.learned_factor)}"
    none = "none: `planner calibrate` tightens the prediction with your runs"
    if item.is_inference:
        return Section("basis", "Rests on", (f"engine {item.stack}, weights {item.precision}",), detail=True)
    learned = f"{factor} for this accelerator, precision, stack and adapter, alone or one of several"
    rows: _Facts = [
        ("stack", "software stack", item.stack, "text", f"{item.stack} (training.stack)"),
        ("precision", "precision", item.precision, "text", item.precision),
        ("learned_factor", "learned factor", item.learned_factor, "number", learned),
        ("calibration", "calibration", item.calibration or None, "text", item.calibration or none),
    ]
    if item.doubts:
        words = "low: " + "; ".join(item.doubts)
        rows.append(("confidence", "confidence", words, "text", words))
    return facts("basis", "Rests on", rows, detail=not item.doubts)


def _many(name: str, estimates: Sequence[Estimate]) -> tuple[str, list[Section], bool]:
    running = [item for item in estimates if item.throughput_per_s is not None]
    best = max(
        running, key=lambda item: item.throughput_per_s.value if item.throughput_per_s else 0.0, default=None
    )
    title = f"{name}: none of {len(estimates)} clusters can run it"
    if best is not None and best.answered is not None:
        fastest = f"fastest of {len(estimates)} is {_machines(best)}"
        title = f"{name}: {fastest}: {inference.headline(best.answered)}"
    elif best is not None and best.throughput_per_s is not None:
        title = f"{name}: fastest of {len(estimates)} is {_machines(best)}: {rate(best.throughput_per_s, best.unit)}"
    answers = best is not None and best.answered is not None
    layouts = inference.layouts_section(running) if answers else _layouts(running)
    costs = prices.costs_table(estimates)
    return title, [_speeds(estimates), *costs, *layouts, _shared_basis(estimates)], best is not None


def _shared_basis(estimates: Sequence[Estimate]) -> Section:
    kind = "engine" if any(item.answered for item in estimates) else "software stack"
    notes = [f"{kind} {estimates[0].stack}, precision {estimates[0].precision}"]
    notes += list(dict.fromkeys(f"calibration: {item.calibration}" for item in estimates if item.calibration))
    return Section("basis", "Rests on", tuple(notes), detail=True)


def _speeds(estimates: Sequence[Estimate]) -> Section:
    """What each cluster reaches; why not, below."""
    rows: list[tuple[Value, ...]] = []
    notes = ["each: per accelerator; memory: needed of usable"]
    if any(item.answered and item.answered.output_tokens_per_s for item in estimates):
        notes.append("tokens: of prompts and answers")
    for item in estimates:
        prefix: tuple[Value, ...] = (
            (item.nodes, item.machine.instance_type), (item.accelerators, item.machine.accelerator)
        )  # fmt: skip
        speed, memory = item.throughput_per_s, item.memory
        if speed is None:
            rows.append((*prefix, "-", "", "", "", "", ""))
            notes.append(f"{cluster(item.nodes, item.machine.instance_type)}: {item.reason}")
            continue
        risk = "" if memory.oom_ratio is None else memory.oom_ratio
        rows.append((
            *prefix, speed.value, (speed.low, speed.high), speed.value / item.accelerators, item.mfu,
            memory.needed_gib / memory.usable_gib, risk,
        ))  # fmt: skip
    columns = (
        Column("cluster", "cluster", "cluster"), Column("accelerators", "accelerators", "devices"),
        Column("throughput_per_s", f"{estimates[0].unit}/s", "three"), Column("interval", "80 %", "three_span"),
        Column("throughput_per_accelerator_per_s", "each", "three"), Column("mfu_ratio", "MFU", "ratio", 0),
        Column("memory_ratio", "memory", "ratio", 0), Column("oom_ratio", "OOM", "chance"),
    )  # fmt: skip
    chart = _compared(estimates)
    table = Table("clusters", "", columns, tuple(rows), tuple(notes), shown=len(rows))
    return Section("clusters", "Clusters", tables=(table,), charts=(chart,))


def _compared(estimates: Sequence[Estimate]) -> Chart:
    """Throughput of each cluster with its interval."""
    speeds = [item.throughput_per_s for item in estimates]
    series = tuple(
        (name, tuple(None if speed is None else getattr(speed, field) for speed in speeds))
        for name, field in (("throughput", "value"), ("throughput low", "low"), ("throughput high", "high"))
    )
    labels = tuple(cluster(item.nodes, item.machine.instance_type) for item in estimates)
    return Chart(
        "throughput", "", "dots", labels, series, "number", "", drawn_only=True, axis=f"{estimates[0].unit}/s"
    )


def _layouts(running: Sequence[Estimate]) -> list[Section]:
    """How each cluster would run, and what limits it there."""
    rows: list[tuple[Value, ...]] = []
    for item in running:
        layout = item.layout
        assert layout is not None
        batch = f"{layout.micro_batch} x {layout.grad_accumulation}"
        rows.append(
            (
                (item.nodes, item.machine.instance_type), layout.tensor_parallel, layout.pipeline_parallel,
                layout.context_parallel, layout.data_parallel, layout.zero_stage, batch, layout.recompute,
                PARTS.get(item.limited_by, item.limited_by),
            )
        )  # fmt: skip
    columns = (
        Column("cluster", "cluster", "cluster"), Column("tensor_parallel", "tp", "count"),
        Column("pipeline_parallel", "pp", "count"), Column("context_parallel", "cp", "count"),
        Column("data_parallel", "dp", "count"), Column("zero_stage", "ZeRO", "count"),
        Column("micro_batch", "micro-batch", "quantity"), Column("recompute", "recompute", "text"),
        Column("limited_by", "limited by", "text"),
    )  # fmt: skip
    return [table_section("layouts", "Layouts", columns, rows)] if rows else []
