"""Disk rates from a fio JSON of one's own: what one machine's local disk gives, all jobs together."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.files.limited import read_limited
from planner.records import record

_MOST_BYTES = 64 * 1024 * 1024
_MOST_MB_S = 1e7
_REMEDY = "write one with `fio --output-format=json --output=fio.json ...`"


@record(frozen=True)
class DiskRates:
    """Sustained MB/s of one machine's local disk; `write_mb_s` None where nothing was written."""

    read_mb_s: float
    write_mb_s: float | None


def read_fio(path: Path) -> DiskRates:
    """Read a fio result.

    Jobs are added up: with `group_reporting` there is one, without it one per worker.

    Raises:
        InputError: not readable, no JSON of fio, or nothing was read in it; names the file and the remedy.
    """
    try:
        document = json.loads(read_limited(path, _MOST_BYTES).decode("utf-8"))
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise InputError(f"{path}: larger than 64 MiB, so no result of fio; {_REMEDY}") from None
        raise InputError(f"{path}: cannot be read ({error.strerror}); {_REMEDY}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: no JSON (fio writes text unless asked); {_REMEDY}") from None
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list) or not jobs:
        raise InputError(f"{path}: JSON, but no result of fio: it has no 'jobs'; {_REMEDY}")
    read, write = (sum(_mb_s(path, job, at, way) for at, job in enumerate(jobs)) for way in ("read", "write"))
    if read <= 0:
        raise InputError(f"{path}: nothing was read in this run; add a job with rw=read or rw=randread")
    return DiskRates(read, write or None)


def _mb_s(path: Path, job: Any, at: int, way: str) -> float:
    """Decimal MB/s of one direction of one job: `bw_bytes`, or `bw` in KiB/s of older versions."""
    part = job.get(way) if isinstance(job, dict) else None
    if part is None:
        return 0.0
    value = part.get("bw_bytes", None) if isinstance(part, dict) else part
    factor = 1e6
    if isinstance(part, dict) and value is None:
        value, factor = part.get("bw", 0), 1e6 / 1024.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_MB_S * factor:
        raise InputError(f"{path}: jobs[{at}].{way}: {str(value)[:40]!r} is not a bandwidth; {_REMEDY}")
    return value / factor
