"""Reading a saved plan or certificate."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.files.limited import read_limited
from planner.inputs.faults import Fault, Source
from planner.plan.model import Plan
from planner.plan.upgrade import OLDEST_VERSION, SCHEMA_VERSION, upgrade

MAX_BYTES = 16 * 2**20
MAX_CERTIFICATE_BYTES = 128 * 2**20
_KEYS = {"schema_version", "status", "lines", "catalog", "created_at"}


def load_plan(path: Path) -> Plan:
    """Read a plan that `planner optimize -o json` saved.

    Raises:
        InputError: no such file, not JSON, not a plan, of a version this planner does not read, or faulty.
    """
    return Plan.from_dict(load_saved(path, MAX_BYTES), str(path))


def load_saved(path: Path, max_bytes: int = MAX_CERTIFICATE_BYTES) -> Any:
    """Read a JSON file that this program saved: a plan or a certificate.

    Raises:
        InputError: no such file, too large, or not JSON.
    """
    try:
        return parse_saved(read_limited(path, max_bytes), str(path), max_bytes)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def parse_saved(content: bytes, name: str, max_bytes: int) -> Any:
    """Read JSON that this program saved, from its bytes.

    Raises:
        InputError: too large, or not JSON.
    """
    if len(content) > max_bytes:
        raise InputError(f"{name}: larger than {max_bytes // 2**20} MiB, not a plan")
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{name}: not JSON ({error}); save one with `planner optimize ... -o json --out FILE`"
        ) from error


def as_plan(path: Path, content: Any) -> dict[str, Any]:
    """Return `content`, the content of `path`, as the JSON of the present version, for `planner verify`.

    Raises:
        InputError: it is not.
    """
    if not isinstance(content, dict) or not set(content) >= _KEYS:
        raise InputError(
            f"{path}: JSON, but not a plan; save one with `planner optimize ... -o json --out FILE`"
        )
    if content["schema_version"] not in range(OLDEST_VERSION, SCHEMA_VERSION + 1):
        versions = f"{OLDEST_VERSION} to {SCHEMA_VERSION}"
        raise InputError(f"{path}: plan schema {content['schema_version']}, this planner reads {versions}")
    faults: list[Fault] = []
    upgraded = upgrade(content, faults)
    if faults:
        raise Source(str(path), "").error(faults)
    return upgraded


def moment_of(text: str) -> datetime:
    """Parse an ISO 8601 timestamp of a plan; UTC if it has no time zone."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
