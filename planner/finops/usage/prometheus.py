"""DCGM through Prometheus: the answer of `query_range` as JSON, or its samples as CSV."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from planner.errors import InputError, shortened
from planner.files.tables import csv_rows
from planner.finops.usage.cells import moment
from planner.finops.usage.model import Allocated, Measured, UsageFile

KIND = "DCGM export of Prometheus"
# metric -> (what full duty reads, rank: the best metric that a file has for a GPU counts)
DUTY = {
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": (1.0, 0),
    "DCGM_FI_DEV_GPU_UTIL": (100.0, 1),
}
REQUESTS = "kube_pod_container_resource_requests"
GPU_RESOURCES = ("nvidia_com_gpu", "amd_com_gpu", "nvidia.com/gpu", "amd.com/gpu", "google_com_tpu")
_MACHINE = ("Hostname", "hostname", "node", "kubernetes_node", "instance", "host")
_TIME, _VALUE, _NAME = (
    ("timestamp", "time", "Time", "ts"),
    ("value", "Value"),
    ("__name__", "metric", "Metric"),
)
_EXPORTER = ("dcgm-exporter", "nvidia-dcgm-exporter", "gpu-operator-dcgm")
REMEDY = (
    "curl -G PROMETHEUS/api/v1/query_range --data-urlencode 'query=DCGM_FI_DEV_GPU_UTIL' "
    "-d start=... -d end=... -d step=300"
)
_LATEST_S = 253_402_300_799.0  # the end of the year 9999
_Series = tuple[Mapping[str, str], list[tuple[float, float]]]


def recognises_csv(header: list[str]) -> bool:
    """Whether a CSV has samples: a time, a value and a metric's name, or a column named by a metric."""
    names = set(header)
    return bool(names & set(_TIME)) and (
        bool(names & set(DUTY)) or (bool(names & set(_VALUE)) and bool(names & set(_NAME)))
    )


def recognises_json(data: Any) -> bool:
    """Whether it is an answer of Prometheus."""
    answer = data.get("data") if isinstance(data, dict) else None
    return isinstance(answer, dict) and "status" in data and "resultType" in answer


def read_json(path: str, data: dict[str, Any]) -> UsageFile:
    """Samples of an answer.

    Raises:
        InputError: it is no range, or has no metric that says how busy a GPU was.
    """
    answer = data["data"]
    if data["status"] != "success" or answer["resultType"] != "matrix":
        kind = answer.get("resultType", data["status"])
        raise InputError(
            f"{path}: holds a {shortened(str(kind))}, not a range of samples; ask for it with {REMEDY}"
        )
    series: list[_Series] = []
    results = answer.get("result", [])
    if not isinstance(results, list):
        raise InputError(f"{path}: its result is not a list of series; ask for it with {REMEDY}")
    for number, one in enumerate(results, 1):
        place = f"{path}: series {number}"
        try:
            pairs = [(_second(at), float(value)) for at, value in one["values"]]
            labels = {str(name): str(text) for name, text in one["metric"].items()}
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise InputError(
                f"{place}: has no samples as [moment, value]; ask for them with {REMEDY}"
            ) from None
        series.append((labels, pairs))
    return _file(path, series)


def _second(at: Any) -> float:
    """Seconds since 1970.

    Raises:
        ValueError: they are no moment of a calendar.
    """
    seconds = float(at)
    if not 0 <= seconds <= _LATEST_S:
        raise ValueError(f"{at} is no moment")
    return seconds


def read_csv(path: str, text: str) -> UsageFile:
    """Samples of a CSV: time, value, metric, and labels as the other columns.

    Raises:
        InputError: a cell cannot be read.
    """
    lines = csv_rows("\n".join(text.splitlines()), Path(path), delimiter=",")
    header = [name.strip() for name in lines.fieldnames or ()]
    lines.fieldnames = header
    time = next(name for name in _TIME if name in header)
    wide = [name for name in DUTY if name in header]
    value = next((name for name in _VALUE if name in header), "")
    name_of = next((name for name in _NAME if name in header), "")
    found: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = defaultdict(list)
    skip = {time, value, *wide}
    for row in lines:
        at = moment(row[time], f"{path}:{lines.line_num}: {time}").timestamp()
        labels = {name: str(cell).strip() for name, cell in row.items() if name and name not in skip and cell}
        if name_of:
            labels["__name__"] = labels.pop(name_of, "")
        for metric in wide or [labels.get("__name__", "")]:
            cell = (row[metric] if wide else row[value]) or ""
            try:
                sample = float(cell) if cell.strip() else math.nan
            except ValueError:
                raise InputError(
                    f"{path}:{lines.line_num}: {metric or value}: {cell[:40]!r} is not a number"
                ) from None
            found[tuple(sorted({**labels, "__name__": metric}.items()))].append((at, sample))
    return _file(path, [(dict(key), sorted(pairs)) for key, pairs in found.items()])


def _file(path: str, series: list[_Series]) -> UsageFile:
    named = [labels.get("__name__", "") for labels, _ in series]
    known = [one for one in series if one[0].get("__name__", "") in DUTY]
    requests = [
        one
        for one in series
        if one[0].get("__name__") == REQUESTS and one[0].get("resource") in GPU_RESOURCES
    ]
    if not known and not requests:
        shown = (
            ", ".join(sorted({shortened(name) for name in named if name})[:5])
            or "no name (a function of PromQL drops it)"
        )
        raise InputError(
            f"{path}: has no metric of {', '.join(DUTY)} or {REQUESTS} of GPUs, but {shown}; ask for one with {REMEDY}"
        )
    measured, dropped = _measured(known)
    remarks = (
        [f"{path}: {dropped:,} samples hold no duty (blank or out of range) and count as unknown."]
        if dropped
        else []
    )
    if known:
        best = min((labels["__name__"] for labels, _ in known), key=lambda name: DUTY[name][1])
        remarks.append(f"Busy is the mean of {best}: a kernel ran, however small.")
    allocated = tuple(_requested(requests))
    days = frozenset(one.day for one in allocated)
    return UsageFile(path, KIND, allocated, measured, days=days, remarks=tuple(remarks))


def _step(series: list[_Series]) -> float:
    """Hours that a sample stands for: the usual distance between two."""
    gaps = [b - a for _, pairs in series for (a, _), (b, _) in pairwise(pairs) if b > a]
    return median(gaps) / 3600 if gaps else 0.0


def _measured(series: list[_Series]) -> tuple[tuple[Measured, ...], int]:
    """Hours watched and busy by day, machine and team; of a GPU in several series (MIG, two metrics) one counts."""
    step, dropped = _step(series), 0
    best: dict[tuple[str, str], int] = {}
    for labels, _ in series:
        key, rank = _gpu(labels), DUTY[labels["__name__"]][1]
        best[key] = min(rank, best.get(key, rank))
    samples: dict[tuple[tuple[str, str], float], list[tuple[str, float]]] = defaultdict(list)
    for labels, pairs in series:
        full, rank = DUTY[labels["__name__"]]
        if rank != best[_gpu(labels)]:
            continue
        for at, value in pairs:
            if not 0 <= value <= full * (1 + 1e-6):
                dropped += 1
                continue
            samples[_gpu(labels), at].append((_team(labels), value / full))
    sums: dict[tuple[date, str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for ((machine, _), at), found in samples.items():
        for team, duty in found:
            entry = sums[datetime.fromtimestamp(at, UTC).date(), machine, team]
            entry[0] += step / len(found)
            entry[1] += step * duty / len(found)
    rows = (
        Measured(day, machine, team, (), hours, busy) for (day, machine, team), (hours, busy) in sums.items()
    )
    return tuple(sorted(rows, key=lambda one: (one.day, one.machine, one.team))), dropped


def _gpu(labels: Mapping[str, str]) -> tuple[str, str]:
    return _machine(labels), labels.get("UUID") or labels.get("gpu", "")


def _machine(labels: Mapping[str, str]) -> str:
    name = next((labels[key] for key in _MACHINE if labels.get(key)), "")
    return name.rsplit(":", 1)[0] if name.rsplit(":", 1)[-1].isdigit() else name


def _team(labels: Mapping[str, str]) -> str:
    """Namespace of the workload; a label of the exporter's own pod names nobody."""
    if labels.get("exported_pod"):
        return labels.get("exported_namespace", "")
    pod = labels.get("pod", "")
    return labels.get("namespace", "") if pod and not pod.startswith(_EXPORTER) else ""


def _requested(series: list[_Series]) -> Iterator[Allocated]:
    step = _step(series)
    for labels, pairs in series:
        by_day: dict[date, float] = defaultdict(float)
        for at, value in pairs:
            by_day[datetime.fromtimestamp(at, UTC).date()] += value * step if 0 <= value < math.inf else 0.0
        runs = tuple(one for one in (labels.get("exported_pod") or labels.get("pod", ""),) if one)
        team = labels.get("exported_namespace") or labels.get("namespace", "")
        places = tuple(one for one in (labels.get("cluster", ""),) if one)
        for day, hours in sorted(by_day.items()):
            yield Allocated(day, _machine(labels), team, runs, places, hours)
