"""`constraints.waiting_records: [requests.csv]`: requests for capacity, as entries of `constraints.waited`.

Columns: `asked_at`, `started_at` (empty: not come), `until` (when it was given up or last looked at; needed where
`started_at` is empty), `purchase_option`, and, where known, `accelerator`, `accelerators`, `provider`, `region`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.inputs.config_file import Expanded
from planner.inputs.faults import Fault, need_columns

_NEEDED = ("asked_at", "started_at", "purchase_option", "accelerators")
_PLACES = ("accelerator", "provider", "region")


def expand_waits(data: dict[str, Any], folder: Path, read_text: Callable[[Path], str]) -> Expanded:
    """Add the requests of the files that a workload names to those that it states.

    Args:
        data: what YAML gives.
        folder: the workload's own, from which relative paths count.
        read_text: reads a file of the user within limits.
    """
    limits = data.get("constraints")
    names = limits.get("waiting_records") if isinstance(limits, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return Expanded(data)  # the models say what is wrong
    stated = limits.get("waited") or []  # type: ignore[union-attr]
    rows, texts, faults = list(stated), [], []
    for position, name in enumerate(names):
        try:
            text = read_text(folder / name)
            rows += read_requests(text, str(folder / name))
            texts.append(text)
        except InputError as error:
            faults.append(Fault(("constraints", "waiting_records", position), str(error)))
    expanded = {**data, "constraints": {**limits, "waited": rows}}  # type: ignore[dict-item]
    return Expanded(expanded, "".join(texts).encode(), tuple(faults))


def read_requests(text: str, name: str) -> list[dict[str, Any]]:
    """Requests of one file, as entries of `constraints.waited`.

    Args:
        text: the file.
        name: of the file, for messages.

    Raises:
        InputError: a column is missing, or a row cannot be read; names the line.
    """
    from planner.files.tables import csv_rows  # few workloads name records

    reader = csv_rows("\n".join(text.splitlines()), Path(name))
    need_columns(name, reader.fieldnames, _NEEDED)
    return [_request(row, f"{name}:{reader.line_num}") for row in reader]


def _request(row: dict[str, str], where: str) -> dict[str, Any]:
    came = bool((row["started_at"] or "").strip())
    end = row["started_at"] if came else row.get("until")
    if not (end or "").strip():
        raise InputError(f"{where}: has neither started_at nor until")
    waited = (_moment(end or "", where) - _moment(row["asked_at"], where)).total_seconds() / 3600.0
    if waited < 0:
        raise InputError(f"{where}: ends before it was requested")
    try:
        count = int(row["accelerators"])
    except (TypeError, ValueError):
        given = str(row["accelerators"])[:60]
        raise InputError(f"{where}: accelerators {given!r} is not a whole number") from None
    place = {column: row[column].strip() for column in _PLACES if (row.get(column) or "").strip()}
    return {
        **place, "purchase_option": row["purchase_option"].strip(), "accelerators": count,
        "waited_hours": round(waited, 6), "came": came,
    }  # fmt: skip


def _moment(text: str, where: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip())
    except (AttributeError, ValueError):
        raise InputError(f"{where}: {str(text)[:60]!r} is not a timestamp; write 2026-11-20T08:30Z") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
