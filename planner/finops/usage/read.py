"""Usage files, recognised by their header: which tool wrote them, or what to export instead."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from planner.errors import InputError
from planner.files.limited import read_unpacked
from planner.files.tables import csv_rows
from planner.finops.usage import kubernetes, prometheus, slurm
from planner.finops.usage.model import Usage, UsageFile

MAX_BYTES = 512 << 20
_KNOWN = (
    f"Slurm ({slurm.REMEDY}), DCGM through Prometheus (query_range as JSON or CSV), OpenCost (daily CSV, or the "
    f"allocation API's JSON, which Kubecost has too), Kubernetes ({kubernetes.REMEDY})"
)


def load_usage(names: Sequence[str | Path]) -> Usage:
    """Read files, each `FILE` or `FILE@PLACE`: PLACE is the account or tag value of the bill that the file belongs to.

    Raises:
        InputError: a file is missing, of no known tool, or has a cell that cannot be read.
    """
    usage_files: list[UsageFile] = []
    for name in names:
        path, place = _place(str(name))
        usage = _read(path)
        if not (usage.allocated or usage.measured or usage.aliases):
            raise InputError(
                f"{path}: {usage.kind} without a single GPU; export the days of the bill's month"
            )
        usage_files.append(_placed(usage, place) if place else usage)
    return Usage(tuple(usage_files))


def _place(name: str) -> tuple[Path, str]:
    if Path(name).exists() or "@" not in name:
        return Path(name), ""
    path, _, place = name.rpartition("@")
    return Path(path), place.strip()


def _placed(usage_file: UsageFile, place: str) -> UsageFile:
    return replace(
        usage_file,
        allocated=tuple(replace(one, places=(place, *one.places)) for one in usage_file.allocated),
        measured=tuple(replace(one, places=(place, *one.places)) for one in usage_file.measured),
    )


def _read(path: Path) -> UsageFile:
    text = _text(path)
    name = str(path)
    start = text.lstrip()
    if not start:
        raise InputError(f"{name}: is empty")
    if start[0] in "{[":
        return _json(name, text)
    if slurm.recognises(text):
        return slurm.read(name, text)
    first = text.split("\n", 1)[0]
    if "CPU(cores)" in first:
        raise InputError(
            f"{name}: kubectl top reports no GPUs; export {kubernetes.REMEDY}, or DCGM through Prometheus"
        )
    if start.startswith(("# HELP", "# TYPE")):
        raise InputError(
            f"{name}: is one scrape, a single moment; ask Prometheus for a range: {prometheus.REMEDY}"
        )
    header = [cell.strip() for cell in csv_rows(first.strip("\r"), path, delimiter=",").fieldnames or ()]
    if prometheus.recognises_csv(header):
        return prometheus.read_csv(name, text)
    if kubernetes.recognises_csv(header):
        return kubernetes.read_csv(name, text)
    if {"date", "allocated_gpu_hours"} <= set(header):
        raise InputError(f"{name}: is a utilisation file; give it with --utilisation")
    shown = ", ".join(header[:8]) or "nothing"
    raise InputError(f"{name}:1: is of no tool that is known: it has {shown}. Known: {_KNOWN}")


def _json(name: str, text: str) -> UsageFile:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: is not JSON: {str(error)[:200]}; fetch the file again") from None
    if prometheus.recognises_json(data):
        return prometheus.read_json(name, data)
    if kubernetes.recognises_json(data):
        return kubernetes.read_json(name, data)
    keys = ", ".join(key[:40] for key in list(data)[:8]) if isinstance(data, dict) else "a list"
    raise InputError(f"{name}: is of no tool that is known: it has {keys}. Known: {_KNOWN}")


def _text(path: Path) -> str:
    try:
        return read_unpacked(path, MAX_BYTES).decode("utf-8-sig")
    except OSError as error:
        hint = "; export fewer days or a longer step" if error.errno == errno.EFBIG else ""
        raise InputError(f"{path}: cannot be read: {error.strerror}{hint}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
