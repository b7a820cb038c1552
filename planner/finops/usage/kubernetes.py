"""Kubernetes: OpenCost's CSV, the allocation API of OpenCost and Kubecost, and `kubectl get pods,nodes -o json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.files.tables import csv_rows
from planner.finops.usage.cells import day, moment, number
from planner.finops.usage.model import Allocated, UsageFile, days_of

OPENCOST_CSV, ALLOCATION, OBJECTS = "OpenCost CSV", "OpenCost or Kubecost allocation", "Kubernetes objects"
REMEDY = "kubectl get pods,nodes -A -o json"
GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "google.com/tpu")
_OWN = ("__idle__", "__unallocated__", "__unmounted__")  # rows of the tool that are no workload
_FULL_DAY = 24.0


def recognises_csv(header: list[str]) -> bool:
    """Whether a CSV has OpenCost's columns."""
    names = set(header)
    return {"Date", "GPUCost"} <= names or {"Date", "GPUs"} <= names


def read_csv(path: str, text: str) -> UsageFile:
    """Accelerators by day and pod. Without a column GPUHours only their number is known: they count for the whole day.

    Raises:
        InputError: it has no column of accelerators, or a cell cannot be read.
    """
    lines = csv_rows("\n".join(text.splitlines()), Path(path), delimiter=",")
    lines.fieldnames = [name.strip() for name in lines.fieldnames or ()]
    names = set(lines.fieldnames)
    if not names & {"GPUs", "GPUHours"}:
        raise InputError(f"{path}:1: this OpenCost CSV has no column GPUs; export it with a newer OpenCost")
    allocations, days = [], set()
    for row in lines:
        place = f"{path}:{lines.line_num}"
        when = day(row["Date"], f"{place}: Date")
        days.add(when)
        gpus = number(row.get("GPUs"), f"{place}: GPUs")
        hours = number(row.get("GPUHours"), f"{place}: GPUHours") if "GPUHours" in names else gpus * _FULL_DAY
        namespace = (row.get("Namespace") or (row.get("Name") or "").split("/")[0]).strip()
        if hours and namespace not in _OWN:
            runs = (row.get("Pod") or "", row.get("ControllerName") or "", *_labels(row.get("Labels") or ""))
            places = tuple(one for one in ((row.get("Cluster") or "").strip(),) if one)
            node = (row.get("Node") or row.get("ProviderID") or "").strip()
            allocations.append(
                Allocated(when, node, namespace, tuple(one for one in runs if one), places, hours)
            )
    remarks = () if "GPUHours" in names else (
        "OpenCost's CSV has GPUs and no hours: a pod counts for the whole day, so allocated hours are at most.",
    )  # fmt: skip
    return UsageFile(path, OPENCOST_CSV, tuple(allocations), days=frozenset(days), remarks=remarks)


def _labels(text: str) -> tuple[str, ...]:
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return ()
    return tuple(str(value) for value in found.values()) if isinstance(found, dict) else ()


def recognises_json(data: Any) -> bool:
    """Whether it is an answer of the allocation API or a list of Kubernetes objects."""
    if not isinstance(data, dict):
        return False
    return isinstance(data.get("items"), list) or (isinstance(data.get("data"), list) and "code" in data)


def read_json(path: str, data: dict[str, Any]) -> UsageFile:
    """Accelerators of allocations, or of pods.

    Raises:
        InputError: an entry has not the shape that the API documents.
    """
    try:
        return _objects(path, data["items"]) if "items" in data else _allocations(path, data["data"])
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: an entry lacks {error}; fetch the file again, whole") from None


def _allocations(path: str, sets: list[Any]) -> UsageFile:
    allocations, days = [], set()
    ids: dict[str, set[str]] = {}  # by node
    for number_of, one in enumerate(sets, 1):
        for name, entry in (one or {}).items():
            place = f"{path}: set {number_of}, {name}"
            own = entry.get("properties") or {}
            start, end = moment(entry["start"], f"{place}: start"), moment(entry["end"], f"{place}: end")
            spans = list(days_of(start, end, place))
            days |= {when for when, _ in spans}
            hours = number(entry.get("gpuHours"), f"{place}: gpuHours")
            if not hours or name in _OWN:
                continue
            total = sum(span for _, span in spans) or 1.0
            runs = tuple(
                str(text)
                for text in (own.get("pod"), own.get("controller"), *(own.get("labels") or {}).values())
                if text
            )
            places = tuple(str(text) for text in (own.get("cluster"),) if text)
            provider, node = str(own.get("providerID") or ""), str(own.get("node") or "")
            if provider and node:
                ids.setdefault(node, set()).add(provider)
            allocations += [
                Allocated(
                    when, provider or node, str(own.get("namespace", "")), runs, places, hours * span / total
                )
                for when, span in spans
            ]
    # a name that several machines had one after another tells none of them
    aliases = {next(iter(own)): (node,) for node, own in ids.items() if len(own) == 1}
    return UsageFile(path, ALLOCATION, tuple(allocations), aliases=aliases, days=frozenset(days))


def _objects(path: str, items: list[Any]) -> UsageFile:
    latest = max(_moments(items), default=None)
    allocations: list[Allocated] = []
    aliases: dict[str, tuple[str, ...]] = {}
    for one in items:
        name = str(one["metadata"]["name"])
        if one.get("kind") == "Node":
            provider = str(one.get("spec", {}).get("providerID", ""))
            addresses = [str(a.get("address", "")) for a in one.get("status", {}).get("addresses", ())]
            aliases[name] = tuple(
                dict.fromkeys(text for text in (provider, *addresses) if text and text != name)
            )
        elif one.get("kind") == "Pod":
            allocations += _pod(one, name, latest)
    days = sorted({one.day for one in allocations})
    window = (
        frozenset(days[0] + timedelta(n) for n in range((days[-1] - days[0]).days + 1))
        if days
        else frozenset()
    )
    remarks = (
        "Kubernetes lists the pods that are still there: what was deleted before is missing, and running pods count up "
        "to the latest moment of the file.",
    ) if allocations else ()  # fmt: skip
    return UsageFile(path, OBJECTS, tuple(allocations), aliases=aliases, days=window, remarks=remarks)


def _pod(one: Mapping[str, Any], name: str, latest: datetime | None) -> Iterator[Allocated]:
    spec, status, meta = one["spec"], one.get("status", {}), one["metadata"]
    gpus = sum(_gpus(container) for container in spec.get("containers", ()))
    if not gpus or not status.get("startTime"):
        return
    start = moment(status["startTime"], f"pod {name}: startTime")
    ends = [moment(at, f"pod {name}: finishedAt") for at in _finished(status)]
    phase = status.get("phase")
    end = max(ends) if phase in ("Succeeded", "Failed") and ends else latest
    labels = {str(key): str(value) for key, value in (meta.get("labels") or {}).items()}
    runs = (name, *labels.values())
    for when, hours in days_of(start, end or start, f"pod {name}"):
        own = hours * gpus
        bad = own if phase == "Failed" else 0.0
        yield Allocated(
            when, str(spec.get("nodeName", "")), str(meta.get("namespace", "")), runs, (), own, bad
        )


def _gpus(container: Mapping[str, Any]) -> float:
    wanted = container.get("resources", {})
    named = {**(wanted.get("limits") or {}), **(wanted.get("requests") or {})}
    return sum(
        number(named.get(name), f"container {container.get('name', '')}: {name}") for name in GPU_RESOURCES
    )


def _finished(status: Mapping[str, Any]) -> Iterator[str]:
    for container in status.get("containerStatuses", ()):
        at = container.get("state", {}).get("terminated", {}).get("finishedAt")
        if at:
            yield str(at)


def _moments(items: list[Any]) -> Iterator[datetime]:
    """Moments that the objects mention: starts, ends, heartbeats."""
    for one in items:
        status = one.get("status", {})
        named = [status.get("startTime"), *_finished(status)]
        for condition in status.get("conditions", ()):
            named += [condition.get("lastHeartbeatTime"), condition.get("lastTransitionTime")]
        yield from (moment(text, "status") for text in named if text)
